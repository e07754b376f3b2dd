"""peer.py: what the scripts of the peers share: the clock and the form of a result, the same as in
`monochord bench SUITE --json`."""
import gc
import json
import statistics
import time

import numpy

THREADS = 2
rng = numpy.random.default_rng(1)


def floats(*shape):
    return rng.random(shape, dtype=numpy.float32)


def batch(once, calls):
    start = time.perf_counter()
    for _ in range(calls):
        once()
    return (time.perf_counter() - start) / calls


def measure(once, seconds=1.0, grain=100e-6, least=3, fewest=5, most=2000):
    """Seconds of one call: median, least, most. Short calls in batches, as our own bench does."""
    calls, one = 1, batch(once, 1)
    while calls * one < grain:
        calls *= 2
        one = batch(once, calls)
    gc.disable()
    sample, start, past = [], time.perf_counter(), 0.0
    while len(sample) < most and (len(sample) < least or past < seconds or (len(sample) < fewest and past < 3 * seconds)):
        sample.append(batch(once, calls))
        past = time.perf_counter() - start
    gc.enable()
    return statistics.median(sample), min(sample), max(sample)


def error(got, want):
    got, want = numpy.asarray(got, dtype=numpy.float64), numpy.asarray(want, dtype=numpy.float64)
    return float(numpy.linalg.norm((got - want).ravel()) / numpy.linalg.norm(want.ravel()))


def report(suite, case, once, which="", algo="", flops=0.0, moved=0.0, rel_err=None, seconds=1.0, dtype="float32", calls=3):
    ms, least, most = (1e3 * t for t in measure(once, seconds, least=calls, fewest=5 if calls > 1 else 1))
    print(json.dumps({"suite": suite, "case": case, "pass": which, "device": "cpu", "dtype": dtype, "algo": algo,
                      "ms": ms, "ms_min": least, "ms_max": most, "gflops": flops / ms * 1e-6, "gbs": moved / ms * 1e-6,
                      "rel_err": rel_err}), flush=True)

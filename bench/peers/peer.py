"""peer.py: what the scripts of the peers share: the clock and the form of a result, the same as in
`monochord bench SUITE --json`."""
import gc
import json
import os
import statistics
import sys
import time

import numpy

THREADS = 2
DEVICE = os.environ.get("BENCH_DEVICE", "cpu")  # as PyTorch names it
rng = numpy.random.default_rng(1)


def floats(*shape):
    return rng.random(shape, dtype=numpy.float32)


def batch(once, calls):
    start = time.perf_counter()
    for _ in range(calls):
        last = once()
    settle(last)
    return (time.perf_counter() - start) / calls


def settle(last=None):
    """Until the device has done what it was asked.  JAX waits for a result, and what was asked before is done by then."""
    if hasattr(last, "block_until_ready"):
        last.block_until_ready()
    elif DEVICE != "cpu":
        __import__("torch").cuda.synchronize()


def ways(f, *args, here=("eager",)):
    """(name, call) of each way in which PyTorch can run f on args: eager, compiled, replayed as a CUDA graph.  here: those on a
    processor; on a GPU, those that BENCH_WAYS names."""
    import torch

    wanted = here if DEVICE == "cpu" else WAYS
    if "eager" in wanted:
        yield "", lambda: f(*args)
    if "compile" in wanted:
        yield "compile", lambda made=torch.compile(f): made(*args)
    if "graph" not in wanted:
        return
    for _ in range(3):
        f(*args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f(*args)
    yield "graph", graph.replay


def recorded(step, *inputs):
    """A whole step as one CUDA graph, updates included; inputs are copied to where it was recorded."""
    import torch

    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(4):
            step(*inputs)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step(*inputs)

    def replay(*new):
        for there, here in zip(inputs, new):
            there.copy_(here)
        graph.replay()
        return results

    return replay


# How a training step can be run: eager, compiled whole, with its loss compiled in a mode that records (a step with its
# optimizer inside fails there), or eager and recorded.  BENCH_WAYS names those wanted, with commas between.
STEPS = {"eager": None, "compile": "default", "reduce-overhead": "reduce-overhead", "max-autotune": "max-autotune", "graph": None}
WAYS = os.environ.get("BENCH_WAYS", ",".join(STEPS)).split(",")


def steps(make, *ways, inputs=()):
    """(algo, call, seconds of the first one) of each of these ways to run what make(compiled) makes, past what the first calls
    compile.  make gives its loss to compiled().  A way in which PyTorch fails is told and left out."""
    import torch

    for way in (way for way in ways if way in WAYS):
        torch._dynamo.reset()  # a way does not inherit what another one compiled
        start = time.perf_counter()
        try:
            step = make(lambda f: torch.compile(f, mode=STEPS[way]) if way in ("reduce-overhead", "max-autotune") else f)
            if way == "compile":
                step = torch.compile(step)
            if way == "graph":
                step = recorded(step, *[x.clone() for x in inputs])
            step()
            settle()
            first = time.perf_counter() - start
            for _ in range(3):  # there are momenta only from the second step on, and recordings from the third
                step()
            settle()
        except Exception as problem:  # of any kind: a compiler's own among them
            print(f"{way}: {problem}", file=sys.stderr)
            continue
        yield "" if way == "eager" else way, step, first


GRAIN = 100e-6 if DEVICE == "cpu" else 2e-3  # seconds a batch takes at least: the wait at its end takes microseconds


def measure(once, seconds=1.0, grain=GRAIN, least=3, fewest=5, most=2000):
    """Seconds of one call: median, least, most. Short calls in batches, as our own bench does."""
    calls, one = 1, batch(once, 1)
    for _ in range(3):  # the first calls are slower: what is enough is asked again
        while calls * one < grain:
            calls *= 2
            one = batch(once, calls)
        before, one = one, batch(once, calls)
        if min(before, one) > seconds:  # two calls that take longer than all samples are to: there is nothing to ask
            break
    gc.disable()
    sample, start, past = [], time.perf_counter(), 0.0
    while len(sample) < most and (len(sample) < least or past < seconds or (len(sample) < fewest and past < 3 * seconds)):
        sample.append(batch(once, calls))
        past = time.perf_counter() - start
    gc.enable()
    return statistics.median(sample), min(sample), max(sample)


SECONDS = 1.0 if DEVICE == "cpu" else 0.25  # of a case: on a GPU a hundred batches


def error(got, want):
    got, want = (numpy.asarray(x.cpu() if hasattr(x, "cpu") else x, dtype=numpy.float64) for x in (got, want))
    return float(numpy.linalg.norm((got - want).ravel()) / numpy.linalg.norm(want.ravel()))


def moments(drawn, mean, variance):
    """How far mean and variance of a draw are off: relative to the deviation, and to the variance."""
    drawn = numpy.asarray(drawn.cpu() if hasattr(drawn, "cpu") else drawn, dtype=numpy.float64)
    return float(max(abs(drawn.mean() - mean) / variance**0.5, abs(drawn.var() / variance - 1)))


def tables():
    """(case, dtype, op, x, what is searched, k) of the suite tables (tools/monochord_bench_tables.c)."""
    most = {"float32": None, "int32": 2**30, "int64": 2**50}
    shapes = {"1e3": (1000,), "1e5": (100000,), "1e7": (10000000,), "1000x1000": (1000, 1000)}
    for op, dtypes in [("sort", ("float32", "int32", "int64")), ("argsort", ("float32", "int64")), ("topk 10", ("float32",)),
                       ("topk 100", ("float32",)), ("cumsum", ("float32", "int64")), ("searchsorted", ("float32", "int64")),
                       ("bincount", ("int64",))]:
        for dtype in dtypes:
            for name, shape in shapes.items():
                case, (plain, *k) = f"{op} {name}", op.split()
                if ONLY not in f"{case} " or (plain in ("searchsorted", "bincount") and len(shape) > 1):
                    continue
                below = 1000 if plain in ("bincount", "cumsum") else most[dtype]
                x = floats(*shape) if dtype == "float32" else rng.integers(below, size=shape, dtype=dtype)
                yield case, dtype, plain, x, numpy.sort(x[::-1]) if plain == "searchsorted" else x[:0], int(k[0]) if k else None


def check_device(last):
    """A peer whose results are elsewhere would be timed on another machine."""
    for one in last if isinstance(last, (tuple, list)) else [last]:
        device = getattr(one, "device", None)
        name = str(getattr(device, "type", None) or getattr(device, "platform", None) or device)
        if device is not None and not callable(device) and (name == "cpu") != (DEVICE == "cpu"):
            raise SystemExit(f"a result is on {name}, the device is {DEVICE}")


ONLY = os.environ.get("BENCH_ONLY", "")  # as `monochord bench SUITE --only` reads it


def wanted(case, *passes):
    """ONLY asks for one of these passes."""
    return any(ONLY in f"{case} {one}" for one in passes)


def report(suite, case, once, which="", algo="", flops=0.0, moved=0.0, rel_err=None, seconds=SECONDS, dtype="float32", calls=3, home=False, always=False):
    """which: a pass, or several that are the same to a peer; home: results are asked for in the host's memory; always: whatever ONLY says."""
    passes = [one for one in ([which] if isinstance(which, str) else which) if always or ONLY in f"{case} {one}"]
    if not passes:
        return
    if not home:
        check_device(once())
    ms, least, most = (1e3 * t for t in measure(once, seconds, least=calls, fewest=5 if calls > 1 else 1))
    for one in passes:
        print(json.dumps({"suite": suite, "case": case, "pass": one, "device": DEVICE, "dtype": dtype, "algo": algo,
                          "ms": ms, "ms_min": least, "ms_max": most, "gflops": flops / ms * 1e-6, "gbs": moved / ms * 1e-6,
                          "rel_err": rel_err}), flush=True)

#!/usr/bin/env python3
"""scale.py: the tables of docs/scale.md: steps that were measured on one GPU, and what the model there makes of them.

    scripts/scale.py                 prints the tables
    scripts/scale.py --check         are they those of docs/scale.md?

Invariant: a number here is read from bench/results, counted from a model, or published with its source in docs/scale.md."""
import argparse, os, re, sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LINK, NET, HOST = 450e9, 50e9, 8        # bytes a second a GPU and direction: NVLink, network; GPUs of a host
SHARE = 2 / 3                           # of a step's arithmetic that is backward
NETS = (("resnet-50 b32", 25557032), ("vgg-a b64", 132863336))
MODES = (("float32", 4), ("tf32", 4), ("bfloat16", 2))
GPUS = (2, 8, 64, 512)


def measured():
    """Seconds of a step, by case."""
    text = open(os.path.join(HERE, "bench/results/nets-train-cuda.txt")).read()
    return {m[1]: float(m[2]) * 1e-3 for m in re.finditer(r"^(\S+ b\d+ train \S+) +([0-9.]+) ", text, re.M)}


def moved(n, size):
    """Seconds that an all_reduce of size bytes takes at the links' published speed, without latency."""
    hosts, own = -(-n // HOST), min(n, HOST)
    return 2 * (own - 1) / own * size / LINK + 2 * (hosts - 1) / hosts * size / own / NET


def tables():
    step = measured()
    yield "| network, batch of a GPU | numbers | step, ms | bytes of gradients, MB | " + " | ".join(f"reduction on {n}, ms" for n in GPUS) + " |"
    yield "|---|---|---|---|" + "---|" * len(GPUS)
    for net, count in NETS:
        for mode, each in MODES:
            yield f"| {net} | {mode} | {step[f'{net} train {mode}'] * 1e3:.2f} | {count * each / 1e6:.1f} | " + " | ".join(f"{moved(n, count * each) * 1e3:.2f}" for n in GPUS) + " |"
    yield ""
    yield "| network, batch of a GPU | numbers | " + " | ".join(f"{n} GPUs: E, u" for n in GPUS) + " |"
    yield "|---|---|" + "---|" * len(GPUS)
    for net, count in NETS:
        for mode, each in MODES:
            t, x = step[f"{net} train {mode}"], [moved(n, count * each) for n in GPUS]
            yield f"| {net} | {mode} | " + " | ".join(f"{t / (t + v):.3f}, {v / (SHARE * t):.2f}" for v in x) + " |"


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--check", action="store_true")
    lines = list(tables())
    if not a.parse_args().check:
        print("\n".join(lines))
        return 0
    doc = open(os.path.join(HERE, "docs/scale.md")).read().splitlines()
    old = [line for line in lines if line and line not in doc]
    print("\n".join(f"docs/scale.md has not: {line}" for line in old) if old else "docs/scale.md: its tables are those of bench/results")
    return bool(old)


sys.exit(main())

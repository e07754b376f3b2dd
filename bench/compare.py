"""compare.py: ours and theirs in one run, against what this library promises.

Runs `monochord bench SUITE --json` (bench/python.py for the suite python), every bench/peers/SUITE_*.py and the loops of bench/hand.c in turn, several
rounds, A B A B, so that a machine that slows down slows all of them.  Each prints one JSON object a
line; cases are matched by (case, pass, dtype).  A ratio is theirs / ours, of medians over rounds: above 1, ours
is faster.  Machines differ from day to day: only ratios within one run mean anything.
"""
import argparse
import ctypes
import fnmatch
import importlib.util
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

# Two threads, bound and active: the fastest setting of the libraries that run on OpenMP.
SETTING = {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "OMP_PROC_BIND": "true",
           "OMP_WAIT_POLICY": "active"}

# What the suite zoo is compared with: the fastest of these.
ZOO, ZOO_CUDA = "torch|torch_last|torch_mkldnn", "torch|torch:compile|torch_last|jax"

# suite, case, pass (or pass and dtype, or these and "library" or "own": by whose kernels ours is), against whom, at least, aim.  Who: a peer, "case NAME" (another case of ours in the same run: its time
# over this one's, of the same pass; the median turn's, where the two were timed in turns), several peers with | between them (the
# fastest), "wider" (the fastest of ours that keeps more bits), or "ms" (a limit in milliseconds, which a smaller time keeps).
PROMISES = [
    ("exp",         "exp 230400",             "",        "numpy",  4.0,   None),
    ("exp",         "exp 230400",             "",        "torch",  2.0,   None),
    ("exp",         "exp 230400",             "",        "hand:*", None,  1.0),
    ("call",        "x + 1, 4 floats",        "",        "ms",     5e-4,  2e-4),
    ("elementwise", "chain 64M",              "",        "case copy 64M *", 0.90, 0.97),
    ("rows",        "softmax 4096x1024",      "*",       "torch",  1.5,   3.0),
    ("rows",        "logsumexp 4096x1024",    "*",       "torch",  1.5,   3.0),
    ("rows",        "layernorm 4096x1024",    "*",       "torch",  1.5,   3.0),
    ("gemm",        "500x500x500",            "",        "onednn", 0.9,   None),
    ("gemm",        "1000x1000x1000",         "",        "onednn", 0.9,   None),
    ("gemm",        "2000x2000x2000",         "",        "onednn", 0.9,   None),
    ("gemm",        "4096x4096x4096",         "",        "onednn", 0.9,   None),
    ("conv",        "* geometric mean",       "*",       "torch|torch_last|ours:onednn", 2.0, 4.0),
    ("conv",        "* least",                "*",       "torch|torch_last|ours:onednn", 1.0, None),
    ("conv128",     "* geometric mean",       "*",       "torch",  2.0,   4.0),
    ("conv128",     "* least",                "*",       "torch",  1.0,   None),
    *(("room",      f"L{i} b{n} in 64M",      "*",       f"case L{i} b{n}", 0.87, 0.91) for n in (16, 128) for i in range(1, 6)),
    ("few",         "* least",                "inputs",  "hand:*", 0.6,   0.8),
    *(("zoo",       f"{what} geometric mean", "*",       ZOO,      least, aim) for what, least, aim in (
        ("product *|pointwise *", 0.97, 1.05), ("depthwise *|grouped *|strided *|dilated *", 1.5, 2.5), ("*", 1.3, 1.8))),
    ("zoo",         "* least",                "*",       ZOO,      0.95,  1.0),
    ("planning",    "cold, LeNet b500",       "",        "ms",     4 * 2000, None),
    ("planning",    "cold, AlexNet b16",      "",        "ms",     8 * 2000, None),
    ("planning",    "warm, LeNet b500",       "",        "ms",     1.0,   None),
    ("planning",    "warm, LeNet b500 again", "",        "ms",     1.0,   None),
    ("planning",    "warm, AlexNet b16",      "",        "ms",     1.0,   None),
    ("planning",    "warm, AlexNet b16 again", "",       "ms",     1.0,   None),
    ("nets",        "* geometric mean",       "*",       "torch|torch_last", 1.0, 2.0),
    ("nets",        "pair 28x28 b32",         "*",       "case pair 5x5 b32", 0.667, None),
    ("pool",        "* least",                "*",       "torch",  1.5,   3.0),
    ("norm",        "* least",                "*",       "torch",  1.5,   3.0),
    ("softmax",     "* least",                "*",       "torch",  1.5,   3.0),
    *(("recurrent",  f"{cell}{what}",         "*",       "torch",  1.0,   2.0)
      for cell in ("lstm", "gru") for what in (" * least", " * geometric mean")),
    ("recurrent",   "mgu h256 b32",           "*",       "torch|torch:compile|jax", 2.0, 5.0),
    ("recurrent",   "cold, first step of an LSTM", "",   "ms", 1000, 300),
    ("recurrent",   "spring, 10,000 steps",   "fwd",     "ms", 2.0, 0.5), # 0.2 and 0.05 us a step
    ("einsum",      "* least",                "",        "numpy",  1.0,   1.5),
    ("einsum",      "* geometric mean",       "",        "numpy",  1.0,   1.5),
    ("einsum",      "* least",                "",        "torch",  1.0,   1.5),
    ("einsum",      "* geometric mean",       "",        "torch",  1.0,   1.5),
    *(("linalg",    f"{work}{what}",          f"{way} *", peer,    least, aim) for work in ("cholesky", "solve", "eigh", "svd")
      for way, least, aim in (("lapack", 0.9, 1.2), ("own", 0.4, 0.8)) for peer in ("numpy", "torch")
      for what in (" * least", " * geometric mean")),
    *(("tables",    f"{op} * least",          "*",       peer,     1.0,   2.0)
      for op in ("sort", "argsort", "topk", "searchsorted", "bincount", "cumsum") for peer in ("numpy", "torch")),
    *(("random",    f"{op} * least",          "*",       peer,     1.0,   3.0)
      for op in ("uniform", "normal", "poisson", "choice") for peer in ("numpy", "torch")),
    ("optimizers",  "adam resnet-50",         "",        "torch:fused|torch:foreach", 1.0, 1.5),
    ("transformer", "4 blocks of 256, 4x256 words", "train", "torch|torch:*", 1.1, 1.4),
    ("logreg",      "step 600x784x10",        "train",   "torch",  2.0,   4.0),
    ("lenet",       "step",                   "train",   "torch",  3.0,   5.0),
    ("lenet",       "step",                   "train",   "torch:compile", 2.0, 3.3),
    ("lenet",       "step, MiB of memory",    "train",   "torch",  1.0,   2.0),
    *(("export",    net,                      "predict", f"case library {net}", 0.75, 0.95)
      for net in ("lenet b1", "lenet b32", "mlp b1", "mobile b1", "resnet-50 b1")),
    ("export",      "l* geometric mean",      "predict", "ort",    0.8,    1.2),
    ("export",      "m* geometric mean",      "predict", "ort",    0.8,    1.2),
    ("export",      "resnet-50 b1",           "predict", "ort",    0.8,    1.2),
    *(row for peer in ("onnx2c", "tinygrad") for row in (  # none against xnnpack, which is only shown
        ("export",  "lenet*|mobile*|res* geometric mean", "predict", peer, 5.0, 10.0),
        ("export",  "mlp b1",                 "predict", peer,     1.0,    2.0))),
    ("export",      "lenet b32",              "train",   "torch",  2.0,    4.0),
    ("export",      "lenet b500",             "train",   "torch",  2.0,    4.0),
    ("export",      "lenet b1, KiB of code",  "predict", "ms",     64.0,   24.0),
    ("export",      "lenet b32, KiB of code", "train",   "ms",     160.0,  64.0),
    ("export",      "lenet load",             "load",    "ms",     5.0,    1.0),
    ("export",      "resnet-50 load",         "load",    "ms",     50.0,   20.0),
    ("inference",   "* least",                "predict", "ort|torch|torch:compile|torch_last|torch_last:compile", 1.0, 1.3),
    ("ranks cuda",  "all_reduce 1 KiB",       "",        "torch:nccl", 0.833, 0.952),  # 1.2 and 1.05 of NCCL's latency
    ("ranks cuda",  "all_reduce 100 MiB, ten in a call", "", "torch:nccl", 0.97, 1.0),
    *(("ranks cuda", f"{net} b64, two GPUs",  f"train {dtype}", against, least, aim) for net in ("resnet-50", "vgg-a")
      for dtype in ("float32", "bfloat16") for against, least, aim in
      ((f"case {net} b64, one GPU", 0.93, 0.97), ("torch|torch_last", 1.0, 1.3))),
    ("python",      "exp loop 230400",        "",        "numpy",  4.0,   6.0),
    ("python",      "lenet step",             "train",   "torch",  4.0,   4.5),
    ("python",      "lenet, theano.function, cold", "",  "ms",     1000.0, 400.0),
    ("python",      "x + 1, 4 floats, past C", "",       "ms",     1.5e-3, 1e-3),
    ("python",      "import monochord",       "",        "ms",     60.0,  None),
    ("python cuda", "exp loop 230400",        "",        "torch",  1.5,   2.2),
    ("python cuda", "lenet step",             "train",   "torch",  5.0,   6.5),
    ("lenet cuda",  "step",                   "train",   "torch|torch:*", 2.0, 4.0),
    ("lenet cuda",  "epoch of 50,000",        "train",   "torch|torch:*", 2.0, 4.0),
    ("lenet cuda",  "epoch of 50,000",        "train",   "ms",     40.0,  20.0),  # 50 of them
    ("lenet cuda",  "step, MiB of memory",    "train",   "torch",  1.0,   2.0),
    ("lenet cuda",  "cold, mc_compile alone", "",        "ms",     500.0, 250.0),
    ("lenet",       "cold, mc_compile alone", "",        "ms",     500.0, 150.0),
    ("lenet cuda",  "warm, mc_compile alone", "",        "ms",     20.0,  10.0),
    ("compile",     "cold, first result",     "",        "ms",     150.0, 80.0),
    ("compile",     "warm, first result",     "",        "ms",     10.0,  3.0),
    ("compile",     "new batch size, planning", "",      "ms",     1.0,   0.1),
    ("compile",     "rewriting 10000 nodes",  "",        "ms",     50.0,  None),
    ("exp cuda",    "exp 230400",             "",        "ms",     2.4e-3, 2.2e-3),
    ("exp cuda",    "exp 230400",             "",        "torch",  None,   2.0),
    ("exp cuda",    "exp 230400",             "",        "jax",    None,   12.0),
    ("exp cuda",    "exp 230400 home",        "",        "ms",     40e-3, 30e-3),
    ("elementwise cuda", "chain 256M",        "",        "torch:copy", 0.90, 0.92),
    ("conv cuda",   "* geometric mean",       "*",       "torch|torch_last", 1.8, 2.5),
    ("conv cuda",   "* least",                "*",       "torch|torch_last", 1.0, None),
    ("conv128 cuda", "* geometric mean",      "*",       "torch|torch_last", 1.8, 2.5),
    ("conv128 cuda", "* least",               "*",       "torch|torch_last", 1.0, None),
    ("rows cuda",   "softmax 4096x1024",      "*",       "torch:compile", 1.0, 1.3),
    ("rows cuda",   "layernorm 4096x1024",    "*",       "torch:compile", 1.0, 1.3),
    *(("zoo cuda",  f"* {what}",              f"* {mode}", ZOO_CUDA, least, aim) for what, mode, least, aim in (
        ("least", "float32 own", 1.0, 1.1), ("least", "float32 library", 0.97, 1.0), ("geometric mean", "float32", 1.8, 3.0),
        ("least", "bfloat16", 1.0, 1.1), ("geometric mean", "bfloat16", 1.4, 2.0))),
    *(("inference cuda", "* least",           f"predict {mode}", "torch:graph|torch_last:graph", least, aim)
      for mode, least, aim in (("float32", 1.2, 2.0), ("bfloat16", 1.0, 1.3))),
    ("narrow cuda", "* least",                "*",       "torch|torch_last", 1.0, 1.5),
    ("narrow cuda", "* geometric mean",       "*",       "torch|torch_last", 1.0, 1.5),
    ("narrow cuda", "* least",                "*",       "wider",  1.0,   None),
    ("corrmm cuda", "* geometric mean",       "*",       "torch",  3.0,   8.0),
    ("nets cuda",   "pair 28x28 b32",         "*",       "case pair 5x5 b32", 0.667, None),
    ("nets cuda",   "* geometric mean",       "*",       "torch|torch_last", 1.0, 2.0),
    ("optimizers cuda", "adam resnet-50",     "",        "torch:copy", 0.85, 0.92),
    ("optimizers cuda", "adam resnet-50",     "",        "torch:fused|torch:foreach", 1.0, 2.0),
    *(("nets-train cuda", net, f"train {mode}", "torch|torch:*|torch_last|torch_last:*", least, aim)
      for net in ("alexnet b128", "vgg-a b64", "resnet-50 b32", "mobilenet-v2 b64", "convnext-t b32", "regnet-y b64", "u-net b4")
      for mode, least, aim in (("float32", 1.3, 3.0), ("tf32", 1.0, 1.2), ("bfloat16", 1.0, 1.2))),
    *(("recurrent cuda", f"{cell}{what}",     "*",       "torch|torch:graph", 1.0, 1.3)
      for cell in ("lstm", "gru") for what in (" * least", " * geometric mean")),
    ("recurrent cuda", "mgu h256 b32",        "*",       "torch|torch:compile|torch:graph|jax", 2.0, 5.0),
    ("recurrent cuda", "spring, 10,000 steps", "fwd",    "torch:graph", 0.667, 0.909), # a compiled step in a CUDA graph
    ("pool cuda",   "* least",                "*",       "torch:compile", 1.0, 1.3),
    ("norm cuda",   "batch 32x64x56x56",      "*",       "torch:compile", 1.0, 1.3),
    ("softmax cuda", "* least",               "*",       "torch:compile", 1.0, 1.3),
    *(("linalg cuda", f"{work}{what}",        "*",       "torch",  0.9,   1.2) for work in ("cholesky", "solve", "eigh", "svd")
      for what in (" * least", " * geometric mean")),
]
WIDTH = ["bfloat16", "tf32", "float32"]
LIBRARIES = ("cudnn", "cublas", "onednn", "blas")  # solvers that call one begin with these


# In our process, where other libraries are only some of the solvers, their threads must not spin while ours work.
OURS = {**SETTING, "OMP_WAIT_POLICY": "passive"}


def rows(command, setting):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **setting})
    if done.returncode:
        raise SystemExit(f"bench: {pathlib.Path(command[-1]).name}: {done.stderr.strip()[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def lapack():
    """The OpenBLAS that comes with SciPy: in build and version the one that NumPy brings, whose integers have 64 bits."""
    scipy = importlib.util.find_spec("scipy")
    found = sorted(pathlib.Path(scipy.origin).parents[1].glob("scipy.libs/libscipy_openblas-*.so")) if scipy else []
    return f"lapack={found[0]}" if found else ""


def contestants(suite, ours, folder, device, only, shard=None):
    if suite == "linalg" and "lapack=" not in os.environ.get("MONOCHORD_FLAGS", ""):
        os.environ["MONOCHORD_FLAGS"] = ",".join(filter(None, [os.environ.get("MONOCHORD_FLAGS"), lapack()]))
    runs = {"ours": [ours, "bench", suite, "--json", *(["--only", only] if only else []), *(["--shard", shard] if shard else [])]}
    if suite == "python":
        runs["ours"] = [sys.executable, str(HERE / "python.py"), ours]
    os.environ["BENCH_ONLY"], os.environ["BENCH_SHARD"] = only or "", shard or ""
    if device != "cpu":
        for peer in sorted((HERE / "peers").glob(f"{suite}_*.py")):
            if peer.stem[len(suite) + 1:] in ("torch", "torch_last", "jax"):
                runs[peer.stem[len(suite) + 1:]] = [sys.executable, str(peer)]
        return runs
    hand = pathlib.Path(folder) / "hand"
    built = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O3", "-pthread", HERE / "hand.c", "-o", hand, "-lm"],
                           stderr=subprocess.DEVNULL)
    if built.returncode == 0:
        runs["hand"] = [str(hand), suite]
    for peer in sorted((HERE / "peers").glob(f"{suite}_*.py")):
        runs[peer.stem[len(suite) + 1:]] = [sys.executable, str(peer)]
    return runs


def run(runs, rounds):
    """Rows as they come, with who printed each; before each round, how busy the machine is with other work."""
    for number in range(rounds):
        yield {"who": "machine", "busy": busy()}
        for who, command in list(runs.items()):
            print(f"round {number + 1} of {rounds}: {who}", file=sys.stderr)
            try:
                found = rows(command, OURS if who == "ours" else SETTING)
            except SystemExit as problem:
                if who == "ours":
                    raise
                print(problem, file=sys.stderr)
                del runs[who]
                continue
            for row in found:
                yield {"who": who, **row}


def sort(suite, found):
    """(case, pass, dtype) -> who -> {"ms": [...], "err": ..., "beside": [...]}.  Solvers forced by name are contestants of their own."""
    times = {}
    for row in found:
        who, algo = row["who"], row.get("algo", "")
        if who == "machine":
            continue
        plain = "im2col" if suite == "corrmm" else "auto"
        apart = suite in ("gemm", "conv", "conv128", "narrow", "nets", "zoo", "corrmm") and not algo.startswith(plain) if who == "ours" else algo
        name = f"{who}:{algo.split(':')[0]}" if apart else who
        key = row["case"], row.get("pass", ""), row.get("dtype", "")
        cell = times.setdefault(key, {}).setdefault(name, {"ms": [], "err": row.get("rel_err"), "beside": [], "algo": algo,
                                                              "work": [row.get(rate, 0) * row["ms"] for rate in ("gflops", "gbs")],
                                                              "least": []})
        cell["ms"].append(row["ms"])
        cell["least"].append(row.get("ms_min", row["ms"]))
        cell["beside"] += [row["beside"]] if "beside" in row else []
    return times


def median(cell):
    return statistics.median(cell["ms"])


def best(cells):
    """What a user gets in the better of two layouts, where both were measured: peers may have theirs.  Windows gathered in the
    product (split) are columns of a matrix as those are that were written before."""
    return min(median(cells[name]) for name in ("ours", "ours:b01c", "ours:split") if name in cells)


def take_rates(times):
    """The cases "rate ..." of the suite zoo leave the table.  The greatest rate that anyone reached: GB/s, and GFLOP/s of each dtype."""
    rates = {}
    for key in [key for key in times if key[0].startswith("rate ")]:
        copy = key[0] == "rate copy"
        rates["copy" if copy else key[2]] = max(cell["work"][copy] / min(cell["least"]) for cell in times[key].values())
        del times[key]
    return rates


def bound(key, cells, rates):
    """The least time that bytes and operations allow, over ours; None: no rate was measured."""
    if "copy" not in rates or key[2] not in rates or "ours" not in cells:
        return None
    flops, moved = cells["ours"]["work"]
    return max(flops / rates[key[2]], moved / rates["copy"]) / best(cells)


def about_rates(rates):
    """What the column "limit" is."""
    if "copy" in rates:
        products = ", ".join(f"{rate:.0f} GFLOP/s in {dtype}" for dtype, rate in rates.items() if dtype != "copy")
        yield f"limit      the greater of bytes / ({rates['copy']:.1f} GB/s) and operations / ({products}), over our time in the better layout."
        yield "           Bytes: each operand and result once.  Rates: the best measured here by anyone, of y = 2 * x and of a square product."
        yield "           Above 1: arrays that stay in caches, or transforms, which need fewer operations"


def table(times, rates):
    names = []
    for cells in times.values():
        names += [who for who in cells if who not in names]
    peers = [who for who in names if not who.startswith("ours")]
    wide = max(len(" ".join(key).strip()) for key in times) + 1
    yield f"{'case':{wide}} {'ours ms':>11} {'error':>8}" + f" {'limit':>6}" * bool(rates) + "".join(f" {who + ' ms':>14} {'ratio':>6}" for who in peers)
    for key, cells in times.items():
        ours = median(cells["ours"]) if "ours" in cells else None
        wrong = cells["ours"]["err"] if ours else None
        line = f"{' '.join(part for part in key if part):{wide}} " + (f"{ours:11.5f}" if ours else f"{'-':>11}")
        line += f" {wrong:8.1e}" if wrong is not None else f" {'':8}"
        share = bound(key, cells, rates)
        line += (f" {share:6.2f}" if share else f" {'':6}") * bool(rates)
        for who in peers:
            there = who in cells
            line += f" {median(cells[who]):14.5f}" if there else f" {'-':>14}"
            line += f" {median(cells[who]) / ours:6.2f}" if there and ours else f" {'-':>6}"
        yield line


def errors(times):
    """The greatest error of each peer that tells one."""
    most = {}
    for cells in times.values():
        for who, cell in cells.items():
            if not who.startswith("ours") and cell["err"] is not None:
                most[who] = max(cell["err"], most.get(who, 0))
    if most:
        yield ""
        yield "errors     " + ", ".join(f"{who} {error:.1e}" for who, error in most.items()) + ", at most"


def by_solver(times):
    """Milliseconds of each solver forced by name; the chosen one's first."""
    names = []
    for cells in times.values():
        names += [who for who in cells if who.startswith("ours:") and who not in names]
    if names:
        yield ""
        yield f"{'by solver, ms':24}" + "".join(f" {who.replace('ours:', ''):>10}" for who in ["auto", *names])
        for key, cells in times.items():
            label = f"{key[0]} {key[1]}".strip()
            shown = (f"{median(cells[who]):.5f}"[:10] if who in cells else "-" for who in ["ours", *names])
            yield f"{label:24}" + "".join(f" {ms:>10}" for ms in shown)


def score(promise, key, cells, times):
    """The number a promise speaks of, or None where it was not measured."""
    who, ours = promise[3], best(cells)
    if who == "ms":
        return ours
    if who == "wider":
        more = WIDTH[WIDTH.index(key[2]) + 1:]
        others = [best(c) for k, c in times.items() if k[:2] == key[:2] and k[2] in more and "ours" in c]
        return min(others) / ours if others else None
    if who.startswith("case ") and cells["ours"]["beside"] and "ours:b01c" not in cells:
        return statistics.median(cells["ours"]["beside"])
    if who.startswith("case "):
        others = [best(c) for k, c in times.items() if fnmatch.fnmatch(k[0], who[5:]) and k[1:] == key[1:] and "ours" in c]
        return min(others) / ours if others else None
    others = [median(cells[name]) for name in cells if any(fnmatch.fnmatch(name, pattern) for pattern in who.split("|"))]
    return min(others) / ours if others else None


def overall(promise, times):
    """What a promise on many cases (patterns, with | between them) speaks of: each pair of (key, cells) it is to be judged on, once."""
    cases = promise[1].removesuffix(" least").removesuffix(" geometric mean")
    values = [score(promise, key, cells, times) for key, cells in times.items()
              if "ours" in cells and any(fnmatch.fnmatch(key[0], case) for case in cases.split("|")) and speaks_of(promise, key, cells)]
    values = [value for value in values if value]
    if not values:
        return None
    return min(values) if promise[1].endswith(" least") else statistics.geometric_mean(values)


def verdict(value, least, aim, limit):
    good = (lambda mark: value <= mark) if limit else (lambda mark: value >= mark)
    if aim is not None and good(aim):
        return "aim reached"
    if least is not None:
        return "kept" if good(least) else "NOT KEPT"
    return "aim not reached"


def speaks_of(promise, key, cells):
    """By the pass, with the dtype, and with whose kernel is ours in its better layout."""
    ours = min((cells[name] for name in ("ours", "ours:b01c") if name in cells), key=median)
    by = "library" if ours["algo"].split(":")[-1].startswith(LIBRARIES) else "own"
    return any(fnmatch.fnmatch(passed, promise[2]) for passed in (key[1], f"{key[1]} {key[2]}", f"{key[1]} {key[2]} {by}"))


def promises(suite, times):
    first = True
    for promise in PROMISES:
        whole = promise[1].endswith((" least", " geometric mean"))
        for key, cells in [((promise[1], ""), None)] if whole and promise[0] == suite else times.items():
            if not whole and (promise[0] != suite or promise[1] != key[0] or "ours" not in cells or not speaks_of(promise, key, cells)):
                continue
            if whole and promise[0] != suite:
                continue
            value = overall(promise, times) if whole else score(promise, key, cells, times)
            if first:
                yield f"\n{'promise':34} {'against':16} {'measured':>10} {'at least':>9} {'aim':>7}"
                first = False
            least, aim = (f"{mark:g}" if mark is not None else "-" for mark in promise[4:6])
            shown = f"{value:.4g}" if value is not None else "-"
            said = verdict(value, promise[4], promise[5], promise[3] == "ms") if value is not None else "not measured"
            said_of = f"{key[0]} {promise[2] if ' ' in promise[2] else key[1]}".strip()
            yield f"{said_of:34} {promise[3]:16} {shown:>10} {least:>9} {aim:>7}  {said}"


# ---- what this was measured on

def processor():
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    known = ("avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512_bf16", "amx_tile")
    has = [flag for flag in known if flag in fields.get("flags", "").split()]
    return (f"{fields.get('vendor_id', '')} {fields.get('model name', platform.machine())}, family {fields.get('cpu family', '?')} "
            f"model {fields.get('model', '?')}, {os.cpu_count()} processors, {' '.join(has)}")


def libraries():
    found = []
    for name in ("numpy", "torch", "jax", "onnxruntime", "tinygrad", "ai-edge-litert"):
        try:
            found.append(f"{name} {__import__('importlib.metadata', fromlist=['version']).version(name)}")
        except Exception:  # not installed: nothing to say
            pass
    for name in ("libdnnl.so.3", "libdnnl.so.2"):
        try:
            version = ctypes.CDLL(name).dnnl_version
        except OSError:
            continue
        version.restype = ctypes.POINTER(ctypes.c_int * 3)
        found.append("oneDNN " + ".".join(map(str, version().contents)))
        break
    return ", ".join(found)


def busy():
    """Processors that are at work, on the mean of a quarter of a second."""
    def used():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return sum(fields) - fields[3] - fields[4]  # but for idle, and waiting for disks
    before = used()
    time.sleep(0.25)
    return (used() - before) / os.sysconf("SC_CLK_TCK") / 0.25


def again(suite, args):
    """What prints the same again."""
    options = {"only": args.only and f"'{args.only}'", "shard": args.shard, "peers": args.peers}
    given = "".join(f" --{name} {value}" for name, value in options.items() if value)
    if args.device == "cpu" and not given:
        return f"make bench SUITE={suite}"
    return f"bench/compare.py --suite {suite} --ours build/monochord --device {args.device}{given}"


def heading(suite, rounds, most_busy, args):
    ours, device = args.ours, args.device
    said = subprocess.run([ours, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
    cc = subprocess.run([os.environ.get("CC", "cc"), "--version"], stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]
    yield f"{again(suite, args)}     {rounds} round{'s' if rounds > 1 else ''}, medians of medians"
    yield f"machine    {processor()}"
    yield f"load       {most_busy:.2f} processors busy before a round, at most" + ("; others were at work: do not believe this" if most_busy > 0.5 else "")
    yield f"software   monochord {said}, {cc}, {libraries()}"
    yield f"threads    2, {' '.join(f'{k}={v}' for k, v in SETTING.items() if k.startswith('OMP_'))}"
    if device != "cpu":
        yield "GPU        " + subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                                             stdout=subprocess.PIPE, text=True).stdout.strip().replace("\n", "; ")
    flags = os.environ.get("MONOCHORD_FLAGS")
    if flags:
        yield "flags      " + re.sub(r"=[^,]*/", "=", flags)  # files without their folders
    yield ""


def suites(ours, device):
    """All that can run there: ranks are GPUs."""
    listed = subprocess.run([ours, "bench"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()] + ["python"]
    return [name for name in names if name != "ranks" or device != "cpu"]


def compare(suite, args):
    if args.saved:
        found = [json.loads(line) for line in pathlib.Path(args.saved).read_text().splitlines()]
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = []
            runs = contestants(suite, args.ours, folder, args.device, args.only, args.shard)
            if args.peers:
                runs = {who: command for who, command in runs.items() if who in ("ours", *args.peers.split(","))}
            for row in run(runs, args.rounds):
                found.append(row)
                if args.save:
                    with open(args.save, "a") as out:
                        out.write(json.dumps(row) + "\n")
    times = sort(suite, found)
    rounds = min(len(cell["ms"]) for cells in times.values() for cell in cells.values())
    rates = take_rates(times) if suite == "zoo" else {}
    lines = list(heading(suite, rounds, max(row["busy"] for row in found if row["who"] == "machine"), args))
    lines[-1:-1] = about_rates(rates)
    lines += [*table(times, rates), *errors(times), *by_solver(times), *promises(suite if args.device == "cpu" else f"{suite} {args.device}", times)]
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    print(text, flush=True)
    if not args.no_result and not args.only and not args.shard and not args.peers:
        (HERE / "results").mkdir(exist_ok=True)
        name = suite if args.device == "cpu" else f"{suite}-{args.device}"
        (HERE / "results" / f"{name}.txt").write_text(text)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--suite", required=True, help="or all")
    args.add_argument("--ours", required=True, help="the program monochord")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--only", help="cases whose name and pass have this in them; leaves bench/results alone")
    args.add_argument("--shard", help="SEED:COUNT: so many layers of the suite zoo, drawn by the seed; leaves bench/results alone")
    args.add_argument("--peers", help="only these, with commas between, such as torch,torch_last; leaves bench/results alone")
    args.add_argument("--save", help="append every object to this file, with who printed it")
    args.add_argument("--saved", help="run nothing: the table of what --save wrote, in one go or piece by piece")
    args.add_argument("--device", default="cpu", help="cuda: all that can run there, there")
    args.add_argument("--no-result", action="store_true", help="leave bench/results alone")
    args = args.parse_args()
    if args.device != "cpu":
        os.environ["BENCH_DEVICE"] = args.device
        os.environ["MONOCHORD_FLAGS"] = ",".join(filter(None, [os.environ.get("MONOCHORD_FLAGS"), f"device={args.device}"]))
    for suite in suites(args.ours, args.device) if args.suite == "all" else [args.suite]:
        compare(suite, args)


if __name__ == "__main__":
    main()

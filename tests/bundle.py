#!/usr/bin/env python3
"""bundle.py: functions against what is loaded from their files, bit for bit.

    bundle.py                        two models, a few random nets and programs
    bundle.py --night                all models, several hundred nets and programs
    bundle.py --case "net 17"        that one alone
    bundle.py --seeds 0:50           random nets; --programs A:B random programs, --loops A:B random loops as well

Models, random nets (their training and prediction in one file) and random programs are those of export.py.  Both
functions are called with the same arguments, at several sizes: results, variables, errors and steps must be the same.
Then the loaded ones are saved and loaded again.  Needs NumPy; the library is build/libmonochord.so, or the one that
MC_LIBRARY names.
"""
import argparse
import ctypes
import os
import sys
import tempfile
import time
import traceback
import warnings

import export                   # ends here if there is no NumPy
import mc
import numpy as np

lib = mc.lib


class Spec(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("nfunction", ctypes.c_int), ("function", ctypes.c_void_p), ("isa", ctypes.c_char_p),
                ("nnote", ctypes.c_int), ("note", ctypes.c_void_p), ("gpu", ctypes.c_char_p)]


P, S, I = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
for _name, _returns, _takes in (("mc_bundle_save", I, [P]), ("mc_bundle_load", I, [S, I, P]), ("mc_function_ninputs", I, [P]),
                                ("mc_function_input_name", S, [P, I]), ("mc_function_output_name", S, [P, I]), ("mc_function_nshared", I, [P]),
                                ("mc_function_shared", P, [P, I]), ("mc_shared_name", S, [P]), ("mc_function_memory", ctypes.c_size_t, [P])):
    getattr(lib, _name).restype, getattr(lib, _name).argtypes = _returns, _takes


def saved_and_loaded(path, functions, isa):
    """The functions of the file, in their order."""
    pointers = (P * len(functions))(*[f.p for f in functions])
    spec = Spec(path=path.encode(), nfunction=len(functions), function=ctypes.cast(pointers, P), isa=isa)
    if lib.mc_bundle_save(ctypes.byref(spec)) < 0:
        mc.fail()
    loaded = (P * len(functions))()
    if lib.mc_bundle_load(path.encode(), len(functions), loaded) != len(functions):
        mc.fail()
    return [mc.Function(p) for p in loaded]


def variables(f):
    pointers = [lib.mc_function_shared(f.p, i) for i in range(lib.mc_function_nshared(f.p))]
    return {lib.mc_shared_name(p): mc.Shared(None, p).get() for p in pointers}


def names(f):
    return [lib.mc_function_input_name(f.p, i) for i in range(lib.mc_function_ninputs(f.p))] + \
           [lib.mc_function_output_name(f.p, i) for i in range(f.noutputs)]


def called(f, inputs):
    try:
        return f(*inputs), None
    except mc.Error as e:
        return [], (e.status, e.text)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def compare(f, loaded, inputs):
    """Calls both; what differs."""
    want, error = called(f, inputs)
    got, other = called(loaded, inputs)
    if error != other:
        return [f"'{error}' before, '{other}' after"]
    wrong = [f"result {i} differs: {export.difference(g, w)}" for i, (g, w) in enumerate(zip(got, want)) if not same(g, w)]
    old, new = variables(f), variables(loaded)
    if old.keys() != new.keys():
        wrong.append(f"variables {list(old)}, then {list(new)}")
    wrong += [f"variable {name.decode()} differs" for name in old if name in new and not same(old[name], new[name])]
    if not error and f.steps != loaded.steps:
        wrong += [f"step {a}, then {b}" for a, b in zip(f.steps, loaded.steps) if a != b] or ["other steps"]
    # What a second call prepares is counted as well: f's memory is that after as many calls.
    taken = loaded.__dict__.setdefault("taken", [])
    taken.append(lib.mc_function_memory(loaded.p))
    if not error and f.__dict__.get("taken", taken[:-1] + [lib.mc_function_memory(f.p)])[len(taken) - 1] != taken[-1]:
        wrong.append("other memory")
    return wrong


def rounds(functions, path, calls, isa):
    """calls: (number of the function, inputs).  Three generations: the functions, the loaded ones, these again."""
    wrong = []
    loaded = saved_and_loaded(path, functions, isa)
    for k, inputs in calls:
        wrong += [f"{k}: {w}" for w in compare(functions[k], loaded[k], inputs)]
    again = saved_and_loaded(path, loaded, isa)
    for k, inputs in calls:
        wrong += [f"{k}, saved again: {w}" for w in compare(loaded[k], again[k], inputs)]
    for f, g, h in zip(functions, loaded, again):
        if names(f) != names(g) or names(f) != names(h):
            wrong.append(f"names {names(f)}, {names(g)}, {names(h)}")
        if f.graph_text != g.graph_text or f.graph_text != h.graph_text:
            wrong.append("another text of the graph")
    return wrong


def net(text, path, isa, classes=10, words=1, seed=1, batches=(3, 1, 8)):
    n = export.Net(text)
    rng = np.random.default_rng(seed)
    data = [n.batch(b, rng, classes, words) for b in batches]
    calls = [(k, d[:2 - k]) for d in data for k in (0, 1)]
    return rounds([n.train, n.predict], path, calls, isa)


def random_net(seed, path, isa):
    for again in range(20):
        d = export.Drawer(f"{seed}.{again}" if again else seed)
        with mc.flags(floatX=d.floatX):
            try:
                export.Net(d.text)
            except mc.Error:    # such as a pool that is larger than its image
                continue
            wrong = net(d.text, path, isa, d.classes, d.words, seed, (d.batch, 1, 4))
            return [f"floatX={d.floatX} batch {d.batch}\n{d.text}{w}" for w in wrong[:3]], {"nets": 1}
    return [f"no net for seed {seed}"], {}


MODES = [None, None, None, "FAST_COMPILE", None, "NANGUARD"]


def random_program(seed, path, isa):
    from programs import draw
    p = draw.draw(seed).p
    mode = MODES[seed % len(MODES)]
    if not p.outputs:
        return [], {}
    with mc.flags(floatX=p.floatX):
        try:
            g, _ = p.graph()
            f = g.compile(inputs=", ".join(x.name for x in p.leaves if not x.shared), outputs=", ".join(p.outputs), on_unused="ignore",
                          updates="; ".join(f"{s} = {t}" for s, t in p.updates) or None, **({"mode": mode} if mode else {}))
        except mc.Error:
            return [], {"programs that are wrong": 1}
        inputs = [x for x in p.leaves if not x.shared]
        wrong = rounds([f], path, [(0, [x.at(k) for x in inputs]) for k in (0, 1, 2)], isa)
    return [f"mode {mode} floatX={p.floatX}\n{p.text()}\n{w}" for w in wrong[:2]], {"programs": 1}


def random_loop(seed, path, isa):
    import random_loops
    d, mode = random_loops.Loops(seed), MODES[seed % len(MODES)]
    try:
        f = d.compiled(mc.Graph(), **({"mode": mode} if mode else {}))
        wrong = rounds([f], path, [(0, d.at(k)) for k in (0, 1, 0)], isa)
    except mc.Error as e:
        wrong = [str(e)]
    return [f"mode {mode}\n{d.text}\n{d.outputs}\n{d.updates}\n{w}" for w in wrong[:2]], {"loops": 1}


def one_case(case, options):
    """What is to be told of "net 17", for worker.py."""
    kind, _, name = case.partition(" ")
    number = int(name) if name.isdigit() else 0
    isa = [None, b"native", b"avx512,avx2,sse2"][number % 3] if export.X86 else None
    answer = {"done": case, "found": [], "calls": {}, "kinds": {}, "counts": {}, "dropped": {}}
    with tempfile.TemporaryDirectory() as folder, mc.flags(threads=1 + number % 2, floatX="float32"):
        path = os.path.join(folder, "case.mcf")
        try:
            if kind == "net":
                wrong, counts = random_net(number, path, isa)
            elif kind == "program":
                wrong, counts = random_program(number, path, isa)
            elif kind == "loop":
                wrong, counts = random_loop(number, path, isa)
            else:
                by, batch, _ = export.MODEL_ROWS[name]
                text = export.narrow(export.model_text(name), by)
                wrong, counts = net(text, path, isa, batches=(batch, 1)), {"models": 1}
        except Exception:
            wrong, counts = [traceback.format_exc()], {}
    answer["found"] = [("bundle", w) for w in wrong]
    answer["counts"] = counts
    return answer


def main():
    a = argparse.ArgumentParser(description="functions against what is loaded from their files, bit for bit")
    a.add_argument("--night", action="store_true")
    a.add_argument("--seeds", help="A:B, random nets from A up to B alone")
    a.add_argument("--programs", help="A:B, random programs")
    a.add_argument("--loops", help="A:B, random loops")
    a.add_argument("--case", action="append", default=[], help='"net 17", "program 3", "model lenet": that one alone')
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--cache", help="folder of compiled kernels")
    a.add_argument("--quiet", action="store_true", help="no counts")
    args = a.parse_args()
    if not export.ways():
        print("bundle: left out, there is no compiler")
        return 0
    warnings.simplefilter("ignore")
    cases = list(args.case)
    for kind, text in (("net", args.seeds), ("program", args.programs), ("loop", args.loops)):
        if text:
            low, high = map(int, text.split(":"))
            cases += [f"{kind} {i}" for i in range(low, high)]
    if not cases:
        cases = [f"model {m}" for m in (export.MODEL_ROWS if args.night else export.DAY_MODELS)]
        cases += [f"net {i}" for i in range(300 if args.night else 8)] + [f"program {i}" for i in range(1500 if args.night else 20)]
        cases += [f"loop {i}" for i in range(600 if args.night else 20)]
    from programs import worker
    start, found, counts, done = time.time(), [], {}, 0

    def report(answer):
        nonlocal done
        done += 1
        for k, n in answer["counts"].items():
            counts[k] = counts.get(k, 0) + n
        if answer["found"]:
            found.append(answer["done"])
            print(f"==== {answer['done']}\n" + "\n".join(t for _, t in answer["found"]) + f"\nbundle.py --case '{answer['done']}'", flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        mc.flag("cache", args.cache or temporary)
        worker.run(cases, {"one": one_case}, args.jobs, report, chunk=5)
    if not args.quiet:
        for k, n in sorted(counts.items()):
            print(f"  {n:>5} {k}")
    print(f"bundle: {done} cases in {time.time() - start:.0f} s, {len(found)} with findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

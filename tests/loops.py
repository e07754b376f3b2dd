#!/usr/bin/env python3
"""loops.py: random loops: a scan against the same steps one after another, in NumPy and as a graph.

    loops.py --seeds 0:2000 --jobs 2                 a long one
    loops.py --seed 123                              that loop alone, with all that is known of it
    loops.py --export                                each loop as a C file, too, at the sizes of both calls

Values are compared with the evaluator in programs/, first and second gradients with those of the steps written one
after another and with differences of the evaluator's values.  The modes FAST_RUN, FAST_COMPILE and DEBUG take turns.
With --export sizes depend on no values, and the exported file must give the library's bits (export.py).
The status is 1 if there were findings.  Needs NumPy; the library is build/libmonochord.so, or the one that
MC_LIBRARY names.
"""
import argparse
import os
import sys
import tempfile
import time
import warnings

try:
    import numpy as np
except ImportError:
    print("random loops: left out, there is no NumPy")
    sys.exit(0)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
warnings.simplefilter("ignore")

import mc  # noqa: E402
from programs import loops, rows, worker  # noqa: E402
from programs.check import LATER, check_gradient, difference, plain, same_bits, show  # noqa: E402
from programs.minimise import apart, values_text  # noqa: E402
from programs.value import EPS, Unsure, is_float  # noqa: E402

MODES = ("FAST_RUN", "FAST_COMPILE", "DEBUG")


def compiled(p, mode, device, outputs):
    g, _ = p.graph()
    more = {} if device != "cpu" else {"threads": 1 + p.seed % 2 * 2}
    f = g.compile(inputs=", ".join(x.name for x in p.leaves if not x.shared), outputs=", ".join(outputs), on_unused="ignore", mode=mode, **more)
    f.graph = g
    return f


def call(p, f, k):
    return f(*[x.at(k) for x in p.leaves if not x.shared])


def unequal(a, b, eps):
    """None, or how far a gradient of the loop is from that of its steps."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"it is {a.dtype}{list(a.shape)}, that of the steps {b.dtype}{list(b.shape)}"
    a, b = plain(a), plain(b)
    known = np.isfinite(a) & np.isfinite(b)
    size = max(1, float(np.max(np.abs(b[known]), initial=0)))
    off = float(np.max(np.abs(a - b)[known], initial=0))
    if off <= size * (1e-8 if eps < 1e-10 else 1e-2):
        return None
    return f"it is {off:.3g} from that of the steps\n    loop     {show(a)}\n    steps    {show(b)}"


class Check:
    def __init__(self, case, options):
        self.case, self.options, self.found, self.counts = case, options, [], {}
        self.mode = options.get("mode") or ("FAST_RUN" if options.get("export") else MODES[case.seed % 3])

    def count(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    def add(self, kind, text):
        self.found.append((kind, text))

    def run(self):
        c, p = self.case, self.case.program
        for text, message in p.refused:
            if not loops.MAY_REFUSE.search(message):
                self.add("refused", f"{text}\n    {message}")
        # Most of a kernel's compilation is the compiler's optimiser, which is not what is looked at.
        with mc.flags(floatX=p.floatX, cflags="-O0" if c.seed % 8 else ""):
            grads, steps = self.by_steps()
            if steps is not None and self.options.get("export"):
                self.by_file(grads, steps)
            elif steps is not None:
                self.by_loop(grads, steps)
        return self.found

    def by_file(self, grads, steps):
        """The library's values under the flag `portable`, then those of the exported file."""
        import export
        c, p, have = self.case, self.case.program, export.ways()
        way = have[c.seed % len(have)]
        with mc.flags(portable=True, threads=1, cpu__isa="native" if way[2] or not export.X86 else "sse2", plan="measure" if "MEASURED" in way[1] else "estimate"), \
                tempfile.TemporaryDirectory() as folder:
            f = self.by_loop(grads, steps)
            given = [x for x in p.leaves if not x.shared]
            sizes = [", ".join(f"{x.name}{list(x.at(k).shape)}" for x in given if x.at(k).ndim) for k in range(2)]
            try:
                e = f and export.Exported(folder, "loop", f.graph, [(f, "one", sizes[0]), (f, "other", sizes[1])], way)
                large = [] if e and e.model and "sin, cos or tan" not in open(os.path.join(folder, "loop.h")).read() else ["returns 2"]   # of 2^45 or more
                wrong = [w for k in (0, 1, 0) for w in e.call(k, [np.array(x.at(k), order="C", subok=True) for x in given])] if f else []
                wrong = [w for w in wrong if not any(t in w for t in large)]
            except mc.Error as e:
                self.count("exports that are refused")
                wrong = ["it is refused: " + e.text] if "depend on" in e.text else []
            except export.Wrong as e:
                wrong = [str(e)]
            self.count("exported loops", int(f is not None))
            for w in wrong[:2]:
                self.add("export", f"[{self.mode}, {way[0]} {way[1]}] {w}")

    def by_steps(self):
        """The gradients that the steps have, and their values; None where the library refuses the steps themselves."""
        p, grads, said = self.case.steps[0], [], ""
        for entry in list(p.grads):
            if entry[3] is None or entry[3] in grads:
                try:
                    compiled(p, "FAST_COMPILE", "cpu", [entry[0]])
                    grads.append(entry[0])
                    continue
                except mc.Error as e:
                    said = e.text
            for q in [self.case.program] + self.case.steps:
                q.grads = [g for g in q.grads if g[0] != entry[0] and g[3] != entry[0]]
            self.count("gradients that the steps refuse")
        try:
            values = [call(p, compiled(p, "FAST_COMPILE", "cpu", p.outputs + grads), 0)]
            q = self.case.steps[1]
            values.append(call(q, compiled(q, "FAST_COMPILE", "cpu", p.outputs), 1))
        except mc.Error as e:
            self.count("steps that are refused")
            if not LATER.search(e.text) and not rows.refusal(e.text, said):
                self.add("steps", str(e))
            return None, None
        for k, got in enumerate(values):
            for name, y in zip(p.outputs, got):
                wrong = difference(y, self.case.want[k][name])
                if wrong:
                    self.add("steps", f"call {k}, {name}: {wrong}")
                    return None, None
        return grads, values

    def by_loop(self, grads, steps):
        """The compiled loop; None where it is refused."""
        c, p = self.case, self.case.program
        try:
            f = compiled(p, self.mode, self.options["device"], p.outputs + grads)
            got = [call(p, f, 0), call(p, f, 1), call(p, f, 0)]
        except mc.Error as e:
            if loops.MAY_REFUSE.search(e.text) or LATER.search(e.text):
                self.count("sizes that a loop cannot know")
            else:
                self.add("refused", f"[{self.mode}] {e}")
            return None
        n = len(p.outputs)
        for k in range(2):
            for name, y in zip(p.outputs, got[k]):
                self.count("values")
                wrong = difference(y, c.want[k][name])
                if wrong:
                    self.add("value", f"[{self.mode}, call {k}] {name}: {wrong}")
                    return f
        for name, a, b in zip(p.outputs + grads, got[0], got[2]):
            if not same_bits(a, b):
                self.add("bits", f"[{self.mode}] {name} differs when it is called again\n    {show(plain(a))}\n    {show(plain(b))}")
        eps = max([EPS[x.dt] for x in p.leaves if is_float(x.dt)] + [EPS[v.dt] for v in c.want[0].values() if is_float(v.dt)], default=0)
        known = {}
        for name, y, ours in zip(grads, got[0][n:], steps[0][n:]):
            entry = next(g for g in p.grads if g[0] == name)
            self.count("second gradients" if entry[3] else "first gradients")
            wrong = unequal(y, ours, eps)
            way = "reference" if self.mode == "FAST_COMPILE" else "run"
            told = check_gradient(c.steps[0], 0, entry, y, self.count, known, way)
            if wrong and (told or eps < 1e-10):
                self.add("gradient", f"[{self.mode}] {name} by {entry[2]}: {wrong}")
            elif told and not check_gradient(c.steps[0], 0, entry, ours, self.count, known, way):
                self.add("gradient", f"[{self.mode}] {name}: {told}")
            elif told:
                self.count("gradients of the steps, too, that differences deny")
        return f


def one_seed(seed, options):
    answer = {"done": seed, "found": [], "calls": {}, "kinds": {}, "counts": {}, "dropped": {}}
    try:
        c = loops.draw_case(seed, fixed=bool(options.get("export")))
    except Unsure:
        answer["counts"]["loops that the evaluator cannot tell"] = 1
        return answer
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as e:
        answer["counts"]["steps whose sizes do not fit"] = 1
        if options.get("tell"):
            raise
        answer["dropped"][f"{type(e).__name__}: {e}"] = 1
        return answer
    check = Check(c, options)
    answer["found"] = check.run()
    answer["counts"] = check.counts
    answer["counts"]["loops"] = 1
    text = c.program.lines[0][1]
    for what, is_ in (("nested", text.count("scan(") > 1), ("until", " until " in text), ("halt", " halt " in text), ("backwards", "[::-1]" in text),
                      ("steps by an input", "steps=n" in text), ("no step", any("u0" not in dict(s.lines) or len(s.lines) < 8 for s in c.steps))):
        answer["counts"][what] = int(is_)
    return answer


# ---- smaller loops


def kind_of(kind, text):
    """What a smaller loop must have, too: of what is refused the first words of the reason."""
    return kind + (text.split("]")[-1][:36] if kind == "refused" else "")


def trial(c, loop, options, kinds):
    """The case with this loop, if it has a finding of these kinds still."""
    import copy
    import random
    new = loops.Case(c.seed)
    new.program.leaves, new.program.floatX = c.program.leaves, c.program.floatX
    new.loop = loop
    try:
        loops.finish(new, random.Random(1))
    except Exception:
        return None
    found = apart(lambda: Check(copy.deepcopy(new), options).run(), 60)
    again = [found.split(":")[0]] if isinstance(found, str) else [kind_of(k, t) for k, t in found]
    return new if set(again) & kinds else None


def without(loop):
    """The loop with one thing less, in every way."""
    import copy
    for i in range(len(loop.yields)):
        if len(loop.yields) > 1:
            q = copy.copy(loop)
            q.yields, q.shape = loop.yields[:i] + loop.yields[i + 1:], loop.shape[:i] + loop.shape[i + 1:]
            yield q
    if loop.until:
        q = copy.copy(loop)
        q.until = None
        yield q
    for i, (names, what) in enumerate(loop.body):           # a line by what it reads
        for word in () if isinstance(what, loops.Loop) or len(names) > 1 else set(loops.WORD.findall(what[0])):
            if what[0] != word and word not in loops.formula.OPS and word not in loops.formula.DTYPES and not word.isdigit():
                q = copy.copy(loop)
                q.body = loop.body[:i] + [(names, [word])] + loop.body[i + 1:]
                yield q
    for part in ("states", "elements", "constants"):
        rows_ = getattr(loop, part)
        for i in range(len(rows_)):
            q = copy.copy(loop)
            setattr(q, part, rows_[:i] + rows_[i + 1:])
            if part == "states":
                q.body = [(n, w) for n, w in loop.body if n != [rows_[i][0]]]
            yield q
    for i, (names, what) in enumerate(loop.body):
        q = copy.copy(loop)
        q.body = loop.body[:i] + loop.body[i + 1:]
        yield q
        if isinstance(what, loops.Loop):
            for inner in without(what):
                if len(inner.yields) == len(what.yields):
                    q = copy.copy(loop)
                    q.body = loop.body[:i] + [(names, inner)] + loop.body[i + 1:]
                    yield q


def smaller(c, options, kinds, seconds):
    end, going = time.time() + seconds, True
    while going and time.time() < end:
        going = False
        for loop in without(c.loop):
            if time.time() > end:
                break
            got = trial(c, loop, options, kinds)
            if got:
                c, going = got, True
                break
    return c


def full(seed, found, options, seconds):
    lines = [f"==== seed {seed}: {', '.join(sorted(set(k for k, _ in found)))}"] + [f"{k}: {t}" for k, t in found[:3]]
    try:
        c = loops.draw_case(seed, fixed=bool(options.get("export")))
    except Exception:
        return "\n".join(lines)
    if seconds:
        c = smaller(c, options, {kind_of(k, t) for k, t in found}, seconds)
        again = apart(lambda: Check(c, options).run())
        lines += [f"smaller: {k}: {t}" for k, t in again[:1]] if not isinstance(again, str) else [again]
    need = set(loops.WORD.findall(c.program.lines[0][1]))
    c.program.leaves = [x for x in c.program.leaves if x.name in need]
    return "\n".join(lines + [c.program.text(), values_text(c.program)]) + f"\nloops.py {'--export ' if options.get('export') else ''}--seed {seed}"


def main():
    a = argparse.ArgumentParser(description="random loops against their steps")
    a.add_argument("--seed", type=int)
    a.add_argument("--seeds", default="0:2000", help="A:B, from A up to B")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--mode", choices=MODES, help="this one alone")
    a.add_argument("--device", default="cpu", help="cuda: on this machine's GPU, or under scripts/fake_gpu.sh BUILD -- ...")
    a.add_argument("--export", action="store_true", help="each loop as a C file, too")
    a.add_argument("--cache", help="folder of compiled kernels")
    a.add_argument("--small", type=float, default=20, help="seconds to make a finding smaller")
    a.add_argument("--most", type=int, default=20, help="findings printed in full")
    a.add_argument("--quiet", action="store_true", help="no table")
    args = a.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start, findings, counts, dropped = time.time(), [], {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        mc.flag("cache", args.cache or temporary)
        mc.flag("cache_size", "256M")
        mc.flag("device", args.device)
        options = {"device": args.device, "mode": args.mode, "export": args.export, "one": one_seed}

        def report(answer):
            for mine, theirs in ((counts, "counts"), (dropped, "dropped")):
                for k, n in answer[theirs].items():
                    mine[k] = mine.get(k, 0) + n
            if answer["found"]:
                findings.append(answer["done"])
                if len(findings) <= args.most:
                    print(full(answer["done"], answer["found"], options, args.small), flush=True)
        low, high = map(int, args.seeds.split(":")) if args.seed is None else (args.seed, args.seed + 1)
        worker.run(range(low, high), options, args.jobs, report, chunk=10)
    if not args.quiet:
        print("\n".join(f"{n:>8} {k}" for k, n in sorted(counts.items())))
        print("\n".join(f"{n:>8} {k}" for k, n in sorted(dropped.items(), key=lambda x: -x[1])[:12]))
    print(f"random loops: {counts.get('loops', 0)} in {time.time() - start:.0f} s, {len(findings)} with findings")
    if findings and args.seed is None:
        print("seeds: " + " ".join(str(s) for s in sorted(findings)[:200]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

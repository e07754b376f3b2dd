#!/usr/bin/env python3
"""random_programs.py: random typed programs against an independent evaluator in NumPy.

    random_programs.py --seconds 15                  a short dose
    random_programs.py --seed 123                    that program alone, with all that is known of it
    random_programs.py --seeds 0:50000 --jobs 8 --results FOLDER
                                                     a long one, in slices; what is in FOLDER is not done again

Each finding is printed with its seed, a program made as small as could be, and both values.  At the end: how many
programs had each op, dtype and rank.  The status is 1 if there were findings.  Needs NumPy; the library is
build/libmonochord.so, or the one that MC_LIBRARY names.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy  # noqa: F401
except ImportError:
    print("random programs: left out, there is no NumPy")
    sys.exit(0)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
warnings.simplefilter("ignore")


def arguments():
    a = argparse.ArgumentParser(description="random typed programs against NumPy")
    a.add_argument("--seed", type=int, help="this program alone")
    a.add_argument("--seeds", default=None, help="A:B, from A up to B")
    a.add_argument("--first", type=int, default=None, help="with --seconds: the seed to begin with")
    a.add_argument("--seconds", type=float, help="end after this time")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--device", default="cpu", help="cuda: on this machine's GPU, or under scripts/fake_gpu.sh BUILD -- ...")
    a.add_argument("--nvrtc", action="append", default=[], help="folder of NVRTC: with --device cuda texts are compiled for every architecture")
    a.add_argument("--alone", action="store_true", help="in this process, without workers: for tools that watch it")
    a.add_argument("--chunk", type=int, default=20, help="programs of one process")
    a.add_argument("--ways", help="run, reference, ...: of check.py's table, joined by ','; - for each seed's own")
    a.add_argument("--results", help="folder for one file a slice; it is not in the tree")
    a.add_argument("--slice", type=int, default=500)
    a.add_argument("--cache", help="folder of compiled kernels")
    a.add_argument("--flags", default="", help="of the library: name=value,name=value")
    a.add_argument("--small", type=float, default=20, help="seconds to make a finding smaller")
    a.add_argument("--most", type=int, default=20, help="findings printed in full")
    a.add_argument("--quick", action="store_true", help="kernels of three programs of four are compiled without the C compiler's optimiser")
    a.add_argument("--beside", help="another build of the library: findings that it has, too, are left out, and the first other one ends it")
    a.add_argument("--quiet", action="store_true", help="no tables")
    return a.parse_args()


def commit():
    try:
        here = os.path.dirname(os.path.abspath(__file__))
        return subprocess.run(["git", "-C", here, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


class Tally:
    def __init__(self, options, args):
        self.options, self.args = options, args
        self.programs, self.findings, self.printed = 0, [], 0
        self.calls, self.kinds, self.counts, self.dropped = {}, {}, {}, {}

    def add(self, answer):
        self.programs += 1
        for mine, theirs in ((self.calls, "calls"), (self.kinds, "kinds"), (self.counts, "counts"), (self.dropped, "dropped")):
            for k, n in answer[theirs].items():
                mine[k] = mine.get(k, 0) + (n if theirs in ("counts", "dropped") else 1)
        if answer["found"] and not self.options.get("enough") and not self.known(answer["done"]):
            self.options["enough"] = bool(self.args.beside)
            self.findings.append((answer["done"], answer["found"]))
            if self.printed < self.args.most:
                self.printed += 1
                print(full(answer["done"], answer["found"], self.options, self.args), flush=True)

    def known(self, seed):
        """Has the other build findings of this seed?"""
        if not self.args.beside:
            return False
        words = [sys.executable, os.path.abspath(__file__), "--seed", str(seed), "--small", "0", "--quiet", "--device", self.args.device]
        return subprocess.run(words, env={**os.environ, "MC_LIBRARY": self.args.beside}, capture_output=True).returncode != 0

    def tables(self):
        from programs import formula
        rows = ["", f"{self.programs} programs, {len(self.findings)} with findings; " + ", ".join(f"{n} {k}" for k, n in sorted(self.counts.items()))]
        rows += ["", "programs by dtype and rank"]
        rows += ["  " + "dtype".ljust(10) + "".join(f"{r:>7}" for r in range(9))]
        for dt in formula.DTYPES:
            rows.append("  " + dt.ljust(10) + "".join(f"{self.kinds.get(f'{dt} {r}', 0):>7}" for r in range(9)))
        rows += ["", "programs by op"]
        words = [f"{k} {n}" for k, n in sorted(self.calls.items(), key=lambda x: (-x[1], x[0]))]
        rows += wrapped(words)
        never = [k for k in formula.ROWS if k not in self.calls]
        rows += ["", f"never drawn: {len(never)} of {len(formula.ROWS)}"] + wrapped(never)
        return "\n".join(rows)


def wrapped(words):
    rows, line = [], " "
    for w in words:
        if len(line) + len(w) > 108:
            rows.append(line)
            line = " "
        line += " " + w
    return rows + [line]


def full(seed, found, options, args):
    """A finding: the seed, the kinds, a smaller program, both values."""
    from programs import draw
    from programs.check import Checker
    from programs.minimise import apart, smaller, values_text
    rows = [f"==== seed {seed}: {', '.join(sorted(set(k for k, _ in found)))}"]
    refused = [t for k, t in found if k == "refused" and not t.startswith("[")]
    rows += [f"refused: {t}" for t in refused[:3]]
    rest = [(k, t) for k, t in found if (k, t) not in [("refused", r) for r in refused]]
    if rest:
        kind, text = rest[0]
        rows += [f"{k}: {t}" for k, t in rest[:3 if args.small == 0 else 1]]
        if kind != "generator":
            p = draw.draw(seed).p
            way = text[1:].split(",")[0].split("]")[0] if text.startswith("[") else None
            ways = [way] if way else options.get("ways")
            if args.small:
                p = smaller(p, kind, ways, options["device"], args.small, text[:30] if kind == "refused" else "")
                again = apart(lambda: Checker(p, ways, options["device"]).run())
                if not isinstance(again, str) and again:
                    rows[-1] = f"{again[0][0]}: {again[0][1]}"
            rows += [p.text(), values_text(p)]
    return "\n".join(rows) + f"\nrandom_programs.py --seed {seed}"


def main():
    args = arguments()
    from programs import nvrtc, worker
    import mc
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder = args.cache or os.environ.get("XDG_CACHE_HOME") and os.path.join(os.environ["XDG_CACHE_HOME"], "random")
    with tempfile.TemporaryDirectory() as temporary:
        mc.flag("cache", folder or temporary)
        mc.flag("cache_size", "256M")
        for word in filter(None, args.flags.split(",")):
            mc.flag(*word.split("=", 1))
        mc.flag("device", args.device)
        if args.nvrtc and not (args.device != "cpu" and nvrtc.find(args.nvrtc)):
            print("NVRTC: left out, it is not there")
        options = {"device": args.device, "ways": args.ways.split(",") if args.ways and args.ways != "-" else None, "quick": args.quick}
        until = time.time() + args.seconds if args.seconds else None
        t = Tally(options, args)
        start = time.time()
        if args.alone:
            a, b = map(int, (args.seeds or f"{args.seed}:{(args.seed or 0) + 1}").split(":"))
            for seed in range(a, b):
                t.add(worker.one_seed(seed, options))
        elif args.seed is not None:
            worker.run([args.seed], options, 1, t.add)
        elif args.results:
            slices(args, options, t, until)
        else:
            a, b = map(int, args.seeds.split(":")) if args.seeds else (args.first or 0, 10 ** 9)
            worker.run(range(a, b), options, args.jobs, t.add, until, args.chunk)
    if not args.quiet and args.seed is None:
        print(t.tables())
    kinds = {}
    for _, found in t.findings:
        for k in set(k for k, _ in found):
            kinds[k] = kinds.get(k, 0) + 1
    print(f"random programs: {t.programs} in {time.time() - start:.0f} s, {len(t.findings)} with findings" +
          (f" ({', '.join(f'{n} {k}' for k, n in kinds.items())})" if kinds else ""))
    if t.findings and args.seed is None:
        print("seeds: " + " ".join(str(s) for s, _ in sorted(t.findings)[:200]))
    return 1 if t.findings else 0


def slices(args, options, t, until):
    """One file for each slice of seeds: seeds, commit, findings, counts.  A slice that has its file is done."""
    from programs import worker
    os.makedirs(args.results, exist_ok=True)
    a, b = map(int, (args.seeds or "0:50000").split(":"))
    for low in range(a, b, args.slice):
        high = min(b, low + args.slice)
        path = os.path.join(args.results, f"{args.device}-{low:08d}-{high:08d}.json")
        if os.path.exists(path):
            continue
        if until and time.time() > until:
            break
        mine, start, done = [], time.time(), []

        def report(answer):
            done.append(answer["done"])
            if answer["found"]:
                mine.append(answer)
            t.add(answer)
        worker.run(range(low, high), options, args.jobs, report, until, args.chunk)
        if len(done) < high - low:
            break
        with open(path + ".part", "w") as f:
            json.dump({"seeds": [low, high], "commit": commit(), "device": args.device, "flags": args.flags,
                       "seconds": round(time.time() - start, 1), "findings": [{"seed": x["done"], "found": x["found"]} for x in mine]}, f, indent=1)
        os.replace(path + ".part", path)
        print(f"seeds {low} to {high}: {len(mine)} with findings, {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())

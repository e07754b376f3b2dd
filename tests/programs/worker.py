"""worker.py: seeds given out to forked workers; a worker that dies or says nothing is a finding of the seed it was at."""
import json
import os
import re
import select
import signal
import sys
import time
import traceback
import warnings

HANG = 300       # seconds for one program, on a machine that may be busy


def one_seed(seed, options):
    """Draws and checks a program: what is to be told of it, for JSON."""
    from . import check, draw
    d = draw.draw(seed)
    c = check.Checker(d.p, options.get("ways"), options.get("device", "cpu"), options.get("quick"))
    found = c.run()
    calls = {}
    for text, dt, rank in d.made:
        for word in set(re.findall(r"([a-z_]\w*)\(", text)):
            calls[word] = calls.get(word, 0) + 1
        for o, name in ((" + ", "add"), (" - ", "sub"), (" * ", "mul"), (" / ", "true_div"), (" // ", "int_div"), (" % ", "mod"),
                        (" ** ", "pow"), (" @ ", "matmul"), (" < ", "lt"), (" <= ", "le"), (" > ", "gt"), (" >= ", "ge"),
                        (" == ", "eq"), (" != ", "neq"), (" & ", "and_"), (" | ", "or_"), (" ^ ", "xor"), ("~", "invert"), ("[", "index")):
            if o in text and not (o == "[" and not re.search(r"\w\[", text)):
                calls[name] = calls.get(name, 0) + 1
    kinds = {}
    for x in d.p.leaves:
        kinds[f"{x.dt} {len(x.dims)}"] = 1
    for _, dt, rank in d.made:
        kinds[f"{dt} {rank}"] = 1
    if d.p.grads:
        calls["grad"] = 1
    if any(g[3] for g in d.p.grads):
        calls["grad of grad"] = 1
    if d.p.updates:
        calls["update"] = 1
    return {"done": seed, "found": found, "calls": calls, "kinds": kinds, "counts": c.counts, "dropped": d.dropped}


def work(seeds, options, write):
    warnings.simplefilter("ignore")
    out = os.fdopen(write, "w")

    def say(x):
        out.write(json.dumps(x) + "\n")
        out.flush()
    for seed in seeds:
        if options.get("until") and time.time() > options["until"]:
            break
        say({"begin": seed})
        try:
            say(options.get("one", one_seed)(seed, options))
        except Exception:
            say({"done": seed, "found": [("generator", traceback.format_exc())], "calls": {}, "kinds": {}, "counts": {}, "dropped": {}})
    out.close()


class Job:
    def __init__(self, seeds, options):
        self.seeds, self.at, self.begun, self.text = list(seeds), None, time.time(), b""
        read, write = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                work(self.seeds, options, write)
            finally:
                os._exit(0)
        os.close(write)
        self.read = read


def run(seeds, options, jobs, report, until=None, chunk=20):
    """Calls report(answer) for each seed.  Stops giving out seeds at the time `until`."""
    todo, running, stopped = iter(seeds), [], False
    options["until"] = until

    def more():
        got = []
        if (until is None or time.time() < until) and not options.get("enough"):
            for s in todo:
                got.append(s)
                if len(got) == chunk:
                    break
        return got

    def lost(j, kind, text):
        report({"done": j.at, "found": [(kind, text)], "calls": {}, "kinds": {}, "counts": {}, "dropped": {}})

    while True:
        while len(running) < jobs and not stopped:
            batch = more()
            if not batch:
                stopped = True
                break
            running.append(Job(batch, options))
        if not running:
            return
        ready, _, _ = select.select([j.read for j in running], [], [], 1)
        for j in list(running):
            if j.read in ready:
                piece = os.read(j.read, 1 << 16)
                j.text += piece
                *rows, j.text = j.text.split(b"\n")
                for row in rows:
                    answer = json.loads(row)
                    j.begun = time.time()
                    if "begin" in answer:
                        j.at = answer["begin"]
                    else:
                        report(answer)
                        j.seeds.remove(answer["done"])
                        j.at = None
                if not piece:
                    os.close(j.read)
                    _, status = os.waitpid(j.pid, 0)
                    running.remove(j)
                    if j.seeds and j.at is not None:
                        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
                        lost(j, "crash", how)
                        j.seeds.remove(j.at)
                    if j.seeds and (until is None or time.time() < until) and not options.get("enough"):
                        running.append(Job(j.seeds, options))
            elif time.time() - j.begun > HANG:
                os.kill(j.pid, signal.SIGKILL)
                os.waitpid(j.pid, 0)
                os.close(j.read)
                running.remove(j)
                if j.at is not None:
                    lost(j, "hang", f"nothing for {HANG} s")
                    j.seeds.remove(j.at)
                    if j.seeds:
                        running.append(Job(j.seeds, options))
            elif options.get("enough") or until is not None and time.time() > until + 60:
                os.kill(j.pid, signal.SIGKILL)
                os.waitpid(j.pid, 0)
                os.close(j.read)
                running.remove(j)

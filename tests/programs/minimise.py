"""minimise.py: a smaller program with the same kind of finding: fewer outputs, lines cut off at new inputs, plain
inputs.  Each trial runs in a process of its own, so a program that crashes can be made smaller, too."""
import copy
import json
import os
import select
import signal
import time

import numpy as np

import mc
from .check import Checker
from .program import Leaf
from .value import is_float, rounded


def apart(f, seconds=60):
    """What f gives, by way of JSON, computed in a child; "crash ..." or "hang" otherwise."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            with os.fdopen(write, "w") as out:
                json.dump(f(), out)
        finally:
            os._exit(0)
    os.close(write)
    end, data = time.time() + seconds, b""
    while True:
        ready, _, _ = select.select([read], [], [], max(0, end - time.time()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(read)
            return "hang"
        piece = os.read(read, 65536)
        if not piece:
            break
        data += piece
    os.close(read)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"crash: {signal.Signals(os.WTERMSIG(status)).name}"
    return json.loads(data) if data else "crash: it ended without a word"


def as_leaf(p, name, values):
    v = values[0][name]
    if v.v.ndim > 8:
        return None
    dims = [-1 if values[1][name].v.shape[i] != v.v.shape[i] else s for i, s in enumerate(v.v.shape)]
    arrays = []
    for k in range(2):
        x = values[k][name].v
        with np.errstate(all="ignore"):
            x = mc.bfloat16.of(x) if v.dt == "bfloat16" else np.array(rounded(x, v.dt) if is_float(v.dt) else x).astype(v.dt)
        arrays.append(x)
    return Leaf(name, v.dt, dims, arrays)


def candidates(p):
    """Smaller programs, the smallest first."""
    if len(p.outputs) > 1:
        for o in p.outputs:
            q = copy.copy(p)
            q.outputs = [o]
            yield q
    if p.updates:
        q = copy.copy(p)
        q.updates = []
        yield q
    try:
        values = [p.evaluate(k) for k in range(2)]
    except Exception:
        values = None
    for name, _ in reversed(p.lines):
        if values and name not in p.outputs and all(g[1] != name for g in p.grads):
            leaf = as_leaf(p, name, values)
            if leaf:
                q = copy.copy(p)
                q.lines = [r for r in p.lines if r[0] != name]
                q.leaves = p.leaves + [leaf]
                yield q
    for i, x in enumerate(p.leaves):
        if not x.shared and any(not a.flags.c_contiguous for a in x.arrays):
            q = copy.copy(p)
            q.leaves = list(p.leaves)
            q.leaves[i] = Leaf(x.name, x.dt, x.dims, [a.copy() for a in x.arrays])
            yield q


def without_dead(p):
    """Only what the outputs need."""
    grads, keep = [], set(p.outputs)
    for g in reversed(p.grads):
        if g[0] in keep:
            grads.insert(0, g)
            keep |= {g[1], g[2]} | ({g[3]} if g[3] else set())
    texts = [t for _, t in p.updates]
    for t in texts:
        keep |= set(__import__("re").findall(r"[A-Za-z_]\w*", t))
    p.grads = grads
    p.lines, need = p.needed(list(keep))
    p.leaves = [x for x in p.leaves if x.name in need or x.name in keep or any(x.name == s for s, _ in p.updates)]
    return p


def smaller(p, kind, ways, device, seconds=60, like=""):
    """The smallest that was found within the time; `like`: what its finding's text begins with."""
    p = copy.copy(p)
    p.refused = []
    end = time.time() + seconds

    def fails(q):
        result = apart(lambda: [k for k, t in Checker(q, ways, device).run() if t.startswith(like)], 30)
        return result.split(":")[0] == kind if isinstance(result, str) else kind in result

    best, going = p, True
    while going and time.time() < end:
        going = False
        for q in candidates(best):
            q = without_dead(q)
            if time.time() > end:
                break
            try:
                good = fails(q)
            except Exception:
                good = False
            if good:
                best, going = q, True
                break
    return best


def values_text(p):
    rows = []
    for x in p.leaves:
        for k in range(2):
            a = x.arrays[k]
            if k and (x.shared or np.array_equal(a, x.arrays[0])):
                continue
            v = a.float32() if x.dt == "bfloat16" else a
            words = np.array2string(np.asarray(v), precision=9, threshold=48, max_line_width=200, separator=",").replace("\n", "")
            rows.append(f"# {x.name} in call {k}: shape {list(a.shape)}, strides {list(a.strides)}: {' '.join(words.split())}")
    return "\n".join(rows)

"""check.py: a program by the library, in several ways, against what the evaluator says.

run(p, ...) yields findings: (kind, text).  Kinds: refused, value, bits, gradient, update, crash and hang come from
worker.py.
"""
import random
import re

import numpy as np

import mc
from . import formula, nvrtc
from .program import WORD
from .value import EPS, LARGE, REAL, State, Unsure, V, is_float

# Ways to compile a program; each seed takes the first two and some others.
WAYS = {
    "run":        dict(mode="FAST_RUN", threads=1),
    "reference":  dict(mode="FAST_COMPILE"),
    "threads":    dict(mode="FAST_RUN", threads=3),
    "scalar":     dict(mode="FAST_RUN", vectors=False),
    "strict":     dict(mode="FAST_RUN", strict_math=True),
    "no rules":   dict(mode="FAST_RUN", excluding="stabilize:canonicalize:specialize:recognise"),
    "as written": dict(mode="FAST_RUN", strict_math=True, excluding="stabilize:canonicalize:specialize:recognise:fusion"),
    "no fusion":  dict(mode="FAST_RUN", excluding="fusion"),
    "channels":   dict(mode="FAST_RUN", layout="b01c"),
    "gc":         dict(mode="FAST_RUN", allow_gc=True),
    "debug":      dict(mode="DEBUG"),
    "no blas":    dict(mode="FAST_RUN", blas="none", onednn="none"),
    "halves":     dict(mode="FAST_RUN", floatX="float32"),
}
SPEC = ("mode", "threads", "excluding", "including")
OTHERS = ["threads", "threads", "scalar", "strict", "channels", "gc", "debug", "no rules", "no fusion", "as written"]
NAIVE = ("reference", "no rules", "as written")      # formulas run as they are written
SLACK = 4.0
NORMALISES = re.compile(r"\bstd\(|\bvar\(|norm|lrn|softmax|/ sum\(|arctan2")
SATURATES = re.compile(r"tanh|sigmoid|erf|arctan")     # 1 - tanh(x) ** 2 and its like cancel
# What one way refuses and another takes: a size of 1 that was not declared does not broadcast, which is seen when sizes are
# known; a gradient that there is none of, which a rule for finite numbers makes 0.
LATER = re.compile("declare (the|a) size (of )?1 to broadcast it|only a size known to be 1 broadcasts|specify_shape: axis [0-9]+ has size 1,|has no gradient with respect to argument")


def flags_of(way):
    return {k: v for k, v in WAYS[way].items() if k not in SPEC and k != "floatX"}


def show(v):
    v = np.asarray(v)
    return np.array2string(v.astype(np.float64) if v.dtype == REAL else v, precision=9, threshold=24, edgeitems=2, max_line_width=10 ** 6).replace("\n", "")


def plain(a):
    """What the library gave, as the evaluator has values."""
    return a.float32().astype(REAL) if isinstance(a, mc.bfloat16) else a.astype(REAL) if a.dtype.kind == "f" else np.asarray(a)


def difference(got, want):
    """None, or what is wrong with a result."""
    if mc.dtype_name(got) != want.dt:
        return f"the dtype is {mc.dtype_name(got)}, not {want.dt}"
    if got.shape != want.v.shape:
        return f"the shape is {got.shape}, not {want.v.shape}"
    g = plain(got)
    with np.errstate(all="ignore"):
        if is_float(want.dt):
            e = np.zeros(g.shape) if want.e is None else np.asarray(want.e)
            off = np.abs(g - want.v)
            known = np.isfinite(e) & np.isfinite(want.v) & (np.isfinite(g) | (SLACK * e < np.abs(want.v)))     # else anything may have overflowed
            bad = known & ~(off <= SLACK * e + (e > 0) * 1.2e-38)           # a GPU may round what is below the normal range to 0
        else:
            e = np.zeros(g.shape) if want.e is None else np.asarray(want.e)
            bad = (g != want.v) & (e == 0)
    if not np.any(bad):
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    bound = f" +- {float(SLACK * e[at]):.3g}" if is_float(want.dt) else ""
    return (f"{int(bad.sum())} of {bad.size} elements; at {list(at)} it is {g[at]}, and should be {want.v[at]}{bound}\n"
            f"    got      {show(g)}\n    expected {show(want.v)}")


def same_bits(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    return np.array_equal(np.ascontiguousarray(a).view(f"u{a.itemsize}") if a.ndim else a.tobytes(),
                          np.ascontiguousarray(b).view(f"u{b.itemsize}") if b.ndim else b.tobytes()) or \
        bool(np.all((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))))


class Slope:
    """Derivatives of a cost by differences, in long double."""

    def __init__(self, p, k, cost):
        self.p, self.k, self.cost = p, k, cost
        self.scale = REAL(1)
        self.lines, self.need = p.needed([cost])
        State.track, State.noise, State.replay, State.frozen = False, None, None, []
        State.tie = False
        self.base = p.evaluate(k, targets=[cost])
        self.tie = State.tie
        self.frozen, State.frozen = State.frozen, None
        self.eps = max([EPS[v.dt] for v in self.base.values() if isinstance(v, V) and is_float(v.dt)])

    def largest(self):
        """The largest magnitude among the values of floats."""
        return max((np.max(np.abs(a.v), initial=REAL(0)) for a in self.base.values() if isinstance(a, V) and is_float(a.dt)), default=REAL(0))

    def at(self, moves, noise):
        """The cost with each leaf of moves = [(name, direction, h)] moved."""
        values = {}
        for name, u, h in moves:
            old = values.get(name, self.base[name])
            values[name] = V(old.v + h * u, None, old.dt)
        State.replay = list(self.frozen)
        State.noise = None if noise is None else np.random.default_rng(noise)
        try:
            moved = self.p.evaluate(self.k, values, [self.cost])
            if any(isinstance(v, V) and isinstance(self.base.get(n), V) and v.v.shape != self.base[n].v.shape for n, v in moved.items()):
                raise Unsure("sizes that change with what is moved")
            return REAL(moved[self.cost].v)
        finally:
            State.replay, State.noise = None, None

    def size(self, name, u):
        """How large what is added up on the way back may be: the change of what the cost sums, times its own slope."""
        h = self.step(name, u)
        State.replay, State.noise = list(self.frozen), None
        try:
            moved = self.p.evaluate(self.k, {name: V(self.base[name].v + h * u, None, self.base[name].dt)}, [self.cost])
        finally:
            State.replay = None

        def through(line):
            """How far the line's operands move: what cancels on the way back through it has been multiplied by that."""
            pairs = [(self.base.get(x), moved.get(x)) for x in set(WORD.findall(line))]
            slopes = [np.sum(np.abs(b.v - a.v)) / h for a, b in pairs if isinstance(a, V) and is_float(a.dt) and a.v.shape == b.v.shape]
            return max([np.sum(np.abs(u))] + slopes)
        # What is normalised loses on the way back what cancels there: terms of the size 1 / deviation.
        total = sum(20 * through(t) for _, t in self.lines if NORMALISES.search(t))
        total += sum(through(t) / 8 for _, t in self.lines if SATURATES.search(t))
        for line in WORD.findall(next(t for n, t in self.lines if n == self.cost)):
            a, b = self.base.get(line), moved.get(line)
            if isinstance(a, V) and line != self.cost and is_float(a.dt) and a.v.shape == b.v.shape:
                total += np.sum((1 + 2 * np.abs(a.v)) * np.abs(b.v - a.v)) / h
        return total

    def step(self, name, u):
        size = np.max(np.abs(self.base[name].v), initial=REAL(0.1))
        return self.scale * REAL(2.0 ** -20) * max(size, REAL(1e-3)) / max(np.max(np.abs(u), initial=REAL(0)), REAL(1e-30))

    def first(self, name, u, noise=None):
        """The slope along u, or Unsure where there is a kink."""
        h = self.step(name, u)
        f = {t: self.at([(name, u, t * h)], noise) for t in (-1.0, -0.5, 0.0, 0.5, 1.0)}
        wide, near = (f[1.0] - f[-1.0]) / (2 * h), (f[0.5] - f[-0.5]) / h
        left, right = (f[0.0] - f[-0.5]) / (h / 2), (f[0.5] - f[0.0]) / (h / 2)
        bend = abs((f[1.0] - f[0.0]) / h - (f[0.0] - f[-1.0]) / h)
        floor = REAL(1e-17) * max(1, *[abs(i) for i in f.values()]) / h + REAL(1e-15) * abs(near)
        if not np.isfinite(wide) or abs(right - left) > 0.6 * bend + 8 * floor or abs(wide - near) > 1e-6 * abs(near) + 8 * floor + bend:
            raise Unsure("a kink")
        if bend > 1e-4 * abs(near) + 64 * floor:        # of a smooth function the difference of both sides shrinks with the step
            a, b = self.at([(name, u, -0.25 * h)], noise), self.at([(name, u, 0.25 * h)], noise)
            if abs(abs((b - f[0.0]) - (f[0.0] - a)) / (h / 4) - 0.5 * abs(right - left)) > 0.1 * bend + 32 * floor:
                raise Unsure("a kink")
        return (4 * near - wide) / 3, 8 * floor + abs(wide - near)

    def second(self, name, u, other, v, noise=None):
        """u . d/dname (v . d/dother)."""
        self.first(name, u), self.first(other, v)       # is there a kink?
        h, k = self.step(name, u) * 32, self.step(other, v) * 32
        moves = {name: np.abs(h * u)}
        moves[other] = moves.get(other, 0) + np.abs(k * v)
        for leaf, by in moves.items():                  # of abs(x) four values on both sides of 0 do not tell that there is a kink
            if np.any((self.base[leaf].v != 0) & (np.abs(self.base[leaf].v) <= by)):
                raise Unsure("a kink")

        def mixed(s):
            f = lambda a, b: self.at([(name, u, a * h * s), (other, v, b * k * s)], noise)
            parts = [f(1, 1), f(1, -1), f(-1, 1), f(-1, -1)]
            return (parts[0] - parts[1] - parts[2] + parts[3]) / (4 * h * k * s * s), max(abs(i) for i in parts)
        (wide, size), (near, _), (last, _) = mixed(1), mixed(0.5), mixed(0.25)
        floor = REAL(4e-19) * max(size, 1) / (h * k / 16)
        good = (4 * last - near) / 3
        if not np.isfinite(wide) or abs(near - last) > 0.4 * abs(wide - near) + 8 * floor:
            raise Unsure("a kink")
        return good, abs(good - (4 * near - wide) / 3) + 16 * floor


class Expected:
    """What a gradient of round k is along two directions; it is found once for all ways to compile the program."""

    def __init__(self, p, k, entry):
        _, cost, self.wrt, first = entry
        self.s = Slope(p, k, cost)
        self.shape = self.s.base[self.wrt].v.shape
        self.other = first and next(g[2] for g in p.grads if g[0] == first)
        self.rng = np.random.default_rng(p.seed + k)
        self.told = []

    def ones(self):
        return np.ones(self.s.base[self.other].v.shape, REAL)

    def ask(self, u, noise=None):
        return self.s.second(self.wrt, u, self.other, self.ones(), noise) if self.other else self.s.first(self.wrt, u, noise)

    def along(self, i):
        """(direction, slope, how well that is known, how far rounding moves it, the size of what is added up), or Unsure."""
        while len(self.told) <= i:
            u = (self.rng.standard_normal(self.shape) if not self.told else self.rng.integers(0, 2, self.shape)).astype(REAL)
            try:
                self.told.append(self.tell(u))
            except Unsure as e:
                self.told.append(e)
        if isinstance(self.told[i], Unsure):
            raise self.told[i]
        return self.told[i]

    def tell(self, u):
        want, off = self.ask(u)
        State.scale = 8.0
        spread = max(abs(self.ask(u, noise)[0] - want) for noise in (1, 2, 3))
        size = self.s.size(self.wrt, u)
        size = (1 + size) * (1 + self.s.size(self.other, self.ones())) if self.other else size * (1 + np.max(np.abs(u), initial=0))
        return u, want, off, spread, size


def check_gradient(p, k, entry, got, count, known, way="run"):
    """None, or what is wrong with a gradient of round k.  Formulas that stay as they are written may overflow inside."""
    name, _, wrt, first = entry
    naive = way in NAIVE
    if not np.all(np.isfinite(got)) and (EPS[p_dtype(p, wrt)] > 1e-4 or way == "strict"):
        return None
    try:
        with np.errstate(all="ignore"):
            if (k, name) not in known:
                known[k, name] = Expected(p, k, entry)
            e = known[k, name]
            eps, tie = e.s.eps, e.s.tie
            if got.shape != e.shape:
                return f"the shape is {got.shape}, not {e.shape}"
            for i in range(2 if got.size else 0):
                u, want, off, spread, size = e.along(i)
                if not u.any():
                    continue
                g = plain(got)
                if not np.all(np.isfinite(g)):
                    too_large = max(abs(want), e.s.largest()) > 1e-6 * LARGE[p_dtype(p, wrt)]  # its dtype cannot hold it
                    if tie or too_large or not np.isfinite(spread) or spread > 1e-3 * (1 + abs(want)):
                        return None
                    return f"it has {int((~np.isfinite(g)).sum())} elements that are not finite; its slope along a direction is {want}\n    got      {show(g)}"
                have = np.sum(g * u)
                size += np.sum(np.abs(u)) if naive else 0       # as written, terms of the size 1 may cancel
                size += np.sum(np.abs(u)) * min(1, e.s.largest())           # (x + y) * (x - y) cancels on the way back
                bound = 60 * spread + 60 * eps * size + 100 * eps * np.sum(np.abs(g * u)) + 40 * eps * abs(want) + 8 * off + (1e-6 if first else 1e-9) * abs(want) + REAL(1e-30)
                count("gradients")
                if eps > 1e-4:
                    bound = bound * 10 + REAL(1e-2)
                if abs(have - want) <= bound:
                    continue
                if tie:
                    raise Unsure("a corner")
                # Differences know more or less how much they know: is it the same by shorter steps?  What jumps again and again, by much shorter ones?
                jumps = any("%" in t or "//" in t for _, t in e.s.lines)
                for shorter in (3, 1000) if jumps else (3,):
                    e.s.scale = REAL(1) / shorter
                    nearer = e.ask(u)[0]
                    e.s.scale = REAL(1)
                    if abs(nearer - want) > 0.2 * abs(have - want):
                        raise Unsure("a kink nearby")
                each = expected_gradient(e.s, p, entry)
                if each is not None and np.isnan(each).any() and np.allclose(g[~np.isnan(each)], each[~np.isnan(each)], rtol=1e-3, atol=1e-6):
                    raise Unsure("a kink in one element")
                return (f"along a direction it is {have}, and should be {want} +- {float(bound):.3g}\n    got      {show(g)}\n"
                        f"    expected {'(large)' if each is None else show(each)}")
    except Unsure:
        count("kinks")
    except (FloatingPointError, ValueError, IndexError, TypeError, ZeroDivisionError, KeyError):
        count("gradients that the evaluator cannot tell")
    finally:
        State.track, State.noise, State.replay, State.frozen = True, None, None, None
    return None


def expected_gradient(s, p, entry):
    """Element by element; NaN where it cannot be told, None for many."""
    name, cost, wrt, first = entry
    shape = s.base[wrt].v.shape
    if int(np.prod(shape)) > 60:
        return None
    out = np.full(shape, np.nan)
    for i in np.ndindex(*shape):
        u = np.zeros(shape, REAL)
        u[i] = 1
        try:
            if first is None:
                out[i] = s.first(wrt, u)[0]
            else:
                other = next(g[2] for g in p.grads if g[0] == first)
                out[i] = s.second(wrt, u, other, np.ones(s.base[other].v.shape, REAL))[0]
        except Unsure:
            pass
    return out


def p_dtype(p, name):
    return next(x.dt for x in p.leaves if x.name == name)


class Checker:
    def __init__(self, p, ways=None, device="cpu", quick=False):
        self.p, self.device = p, device
        self.found = []
        self.counts = {}
        self.slopes = {}         # what is known of gradients
        rng = random.Random(p.seed * 7 + 1)
        self.ways = ways or (["run", "reference"] + rng.sample(OTHERS, 1) if device == "cpu" else ["run"])
        # Most of a kernel's compilation is the compiler's optimiser, which is not what is looked at.
        self.cflags = "-O0" if quick and p.seed % 4 else ""
        self.inputs = [x.name for x in p.leaves if not x.shared]

    def count(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    def add(self, kind, text):
        self.found.append((kind, text))

    def compile(self, way, outputs=None):
        spec = {k: v for k, v in WAYS[way].items() if k in SPEC}
        if self.device != "cpu":
            spec.pop("threads", None)
        g, shared = self.p.graph()
        f = g.compile(inputs=", ".join(self.inputs), outputs=", ".join(outputs or self.p.outputs), on_unused="ignore",
                      updates="; ".join(f"{s} = {t}" for s, t in self.p.updates) or None, **spec)
        return f, shared

    def call(self, f, k):
        return f(*[x.at(k) for x in self.p.leaves if not x.shared])

    def run(self):
        p = self.p
        for text, message in p.refused:
            self.add("refused", f"{text}\n    {message}")
        if not p.outputs:
            return self.found
        try:
            want, naive = self.expected(), self.expected(naive=True)
        except (Unsure, ValueError, IndexError):        # sizes and indices that an update has changed need not fit
            return self.found
        first = None
        for way in self.ways:
            try:
                with mc.flags(**flags_of(way), floatX=p.floatX, cflags=self.cflags):
                    got = self.one_way(way, naive if way in NAIVE else want, first)
            except mc.Error as e:
                if not LATER.search(e.text) and not any(self.refused_as_written(k) for k in (0, 1)):
                    self.add("refused", f"[{way}] {e}")
                continue
            first = first if first is not None or way != "run" else got
        return self.found

    def expected(self, naive=False):
        """For each round the outputs' values, as far as the evaluator knows them; shared variables after each call."""
        p, rounds = self.p, []
        State.track, State.naive = True, naive
        shared = {}
        numbers = any(x.arrays[0].ndim == 0 for x in p.leaves if not x.shared)
        for k in (0, 2 if numbers and not p.updates else 0, 1):
            with np.errstate(all="ignore"):
                try:
                    names = p.evaluate(k, shared)
                except (Unsure, ValueError, IndexError, TypeError):
                    if k != 2:
                        raise
                    k, names = 0, p.evaluate(0, shared)         # numbers and sizes that do not fit
                new = {s: formula.run(t, names) for s, t in p.updates}
            rounds.append((k, names, new))
            shared = {**shared, **new}
        State.naive = False
        return rounds

    def refused_as_written(self, k):
        """Do its sizes not fit?  Rules may drop the operand that tells, or say it in other words: then each line is asked."""
        for asked in [self.p.outputs] + [[name] for name, _ in self.p.lines]:
            try:
                with mc.flags(**flags_of("as written"), floatX=self.p.floatX):
                    self.call(self.compile("as written", asked)[0], k)
            except mc.Error as e:
                if LATER.search(e.text):
                    return True
        return False

    def one_way(self, way, want, first):
        p = self.p
        f, shared = self.compile(way)
        if self.device != "cpu" and nvrtc.architectures() and "__global__" in f.source:
            for sm in nvrtc.architectures():
                if (self.p.seed + sm // 10) % 4 == 0:
                    said = [nvrtc.compile(t, sm) for t in nvrtc.texts(f.source)]
                    self.count("texts through NVRTC", len(said))
                    if any(said):
                        self.add("nvrtc", f"[{way}] sm_{sm}: {next(filter(None, said))[:1500]}")
                        break
        kernels = any(s[0] == "kernel" for s in f.steps)
        self.count("compiled with kernels" if kernels else "compiled without")
        results = []
        for i, (k, names, new) in enumerate(want):
            got = self.call(f, k)
            results.append(got)
            for name, y in zip(p.outputs, got):
                entry = next((g for g in p.grads if g[0] == name), None)
                if entry is None:
                    wrong = difference(y, names[name])
                    self.count("values")
                elif i == 1 or way != "run" and i == 2:
                    continue
                else:
                    wrong = check_gradient(p, k, entry, y, self.count, self.slopes, way) if not p.updates or i == 0 else None
                if wrong and not self.refused_as_written(k):
                    self.add("value" if entry is None else "gradient", f"[{way}, call {i}] {name}: {wrong}")
                    return results
            for s, v in new.items():
                wrong = difference(shared[s].get(), v)
                if wrong:
                    self.add("update", f"[{way}, call {i}] {s}: {wrong}")
                    return results
        if not p.updates:
            again = self.call(f, 0)
            for name, a, b in zip(p.outputs, again, results[0]):
                if not same_bits(a, b):
                    self.add("bits", f"[{way}] {name} differs when it is called again\n    {show(a)}\n    {show(b)}")
        if way in ("threads",) and first:
            for name, a, b in zip(p.outputs, results[0], first[0]):
                if not same_bits(a, b):
                    self.add("bits", f"{name} differs with 3 threads\n    {show(plain(a))}\n    {show(plain(b))}")
        return results

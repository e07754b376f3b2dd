"""loops.py: draws loops: a body of lines as other programs have them, written as a `scan` and as the same steps one
after another.

The steps are written while the evaluator computes them, so that their number is known; two calls may differ in it.
"""
import random

import numpy as np

import mc
from . import draw, formula, leaves, rows
from .program import WORD, Leaf, Program, Var, one, with_own
from .value import EPS, REAL, State, Unsure, V, is_float

STEPS = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7]
DTYPES = {
    "float64": ["float64"] * 6 + ["int64"],
    "float32": ["float32"] * 6 + ["int64"],
    "three":   ["float32", "float32", "float64", "int64"],
    "all":     leaves.DTYPES,
}
MOST_LINES = 600          # of the steps written one after another
MAY_REFUSE = formula.re.compile("sizes in the body depend on|size of axis [0-9]+ is not known")     # what only a loop has reason to say no to


class Loop:
    """body: (names, texts or Loop); yields: ("all", text), ("last", state) or ("count", "")."""

    def __init__(self):
        self.elements, self.states, self.constants = [], [], []       # (name in the body, text outside)
        self.steps, self.body, self.until, self.yields = None, [], None, []
        self.shape = []       # for each of yields the values of some step in both rounds, or None

    def text(self):
        head = [f"{x} in {e}" for x, e in self.elements] + [f"{s} from {e}" for s, e in self.states]
        head += [f"{k} = {e}" for k, e in self.constants] + ([f"steps={self.steps}"] if self.steps else [])
        body = [f"{', '.join(names)} = {what.text() if isinstance(what, Loop) else ', '.join(what)}" for names, what in self.body]
        words = [f"{kind} {text}".strip() if kind != "all" else text for kind, text in self.yields]
        tail = ["yield " + ", ".join(words)] + ([" ".join(self.until)] if self.until else [])
        return f"scan({', '.join(head)}: {'; '.join(body + tail)})"


class Steps:
    """A loop's steps as lines of a program without loops, in round k; names: values."""

    def __init__(self, names, k):
        self.names, self.k, self.lines = names, k, []

    def line(self, text, env):
        text = WORD.sub(lambda m: env.get(m[0], m[0]), text)
        if len(self.lines) > MOST_LINES:
            raise Unsure("too many steps")
        name = f"u{len(self.lines)}"
        self.names[name] = one(formula.run(text, self.names))
        self.lines.append((name, text))
        return name

    def whole(self, name):
        v = self.names[name]
        if v.e is not None and np.any(v.e > 0):
            raise Unsure("a number of steps that rounding decides")
        return int(v.v)

    def run(self, loop, env):
        """The names of the results."""
        every = [(x, self.line(e, env)) for x, e in loop.elements]
        state = {s: self.line(e, env) for s, e in loop.states}
        inner = {**env, **{k: self.line(e, env) for k, e in loop.constants}}
        lengths = [self.names[q].v.shape[0] for _, q in every]
        steps = self.whole(self.line(f"cast({loop.steps}, int64)", env)) if loop.steps else lengths[0]
        if any(n != steps for n in lengths) or steps < 0:
            raise Unsure("sequences of several lengths")
        made, count = [[] for _ in loop.yields], 0
        for t in range(steps):
            here = {**inner, **state, **{x: self.line(f"{q}[{t}]", {}) for x, q in every}}
            for names, what in loop.body:
                got = self.run(what, here) if isinstance(what, Loop) else [self.line(e, here) for e in what]
                here.update(zip(names, got))
            state = {s: here[s] for s in state}
            for i, (kind, text) in enumerate(loop.yields):
                if kind == "all":
                    made[i].append(self.line(text, here))
            count += 1
            if loop.until and self.whole(self.line(f"cast({loop.until[1]}, int64)", here)):
                break
        return [self.result(loop, i, made[i], state, count, steps) for i in range(len(made))]

    def result(self, loop, i, made, state, count, steps):
        kind, text = loop.yields[i]
        if kind == "count":
            return self.line(f"cast({count}, int64)", {})
        if kind == "last":
            return state[text]
        v = loop.shape[i][self.k]
        parts = [self.line(f"stack({', '.join(made)})", {})] if made else []
        missing = (steps if loop.until and loop.until[0] == "halt" else count) - count
        if missing or not parts:
            zeros = "False" if v.dt == "bool" else "0"
            parts.append(self.line(f"alloc(cast({zeros}, {v.dt}), {[missing] + list(v.v.shape)})", {}))
        return parts[0] if len(parts) == 1 else self.line(f"join({parts[0]}, {parts[1]}, axis=0)", {})


# ---- lines that bodies often have


def by_constant(d):
    """A product with a matrix that no step changes."""
    v = d.real(fits=lambda v: v.rank in (1, 2))
    n = (list(s[-1] for s in v.shapes), v.dims[-1] >= 0)
    W = d.leaf(v.dt, [n, ([d.any(1, 2, 3, 5)] * 2, True)])
    return f"dot({v.name}, {W.name})"


def outer_product(d):
    a = d.real(2)
    b = d.real(2, lambda b: [s[0] for s in b.shapes] == [s[0] for s in a.shapes] and b.dims[0] == a.dims[0])
    return f"dot({a.name}.T, {b.name})"


def mixed(d):
    a = d.real()
    b = d.meets(a)
    return d.any(f"tanh({a.name} + {b.name})", f"sigmoid({a.name}) * {b.name}", f"{a.name} * 0.5 + {b.name}", f"sin({a.name} * {b.name})",
                 f"{a.name} - 0.3 * {b.name}", f"where({a.name} > {b.name}, {a.name}, {b.name})", f"exp(-sqr({a.name}))", f"maximum({a.name}, {b.name})")


def folded(d):
    v = d.real()
    return f"{d.any('sum', 'mean', 'max', 'sum')}({v.name}{d.axes(v)}{d.any('', ', keepdims=True')})"


def row_of(d):
    """An element of a constant, by an integer that steps may change."""
    i = d.pick(lambda v: v.dt == "int64" and v.rank == 0)
    n = d.any(1, 2, 3, 4)
    axes = [([n, n], True)] + [(s, k) for s, k in zip(d.size, d.known)][-d.any(0, 1, 1, 2):]
    table = d.leaf(d.any("float64", "float32") if d.kinds is leaves.DTYPES else d.any(*d.kinds), axes)
    return f"{table.name}[{i.name} % {n}]"


def part_set(d):
    v = d.real(fits=lambda v: v.rank >= 1 and all(s[0] > 0 for s in v.shapes))
    i = d.pick(lambda v: v.dt == "int64" and v.rank == 0) if d.coin(0.6) else None
    at = f"{i.name} % {v.name}.shape[0]" if i else d.any("0", "-1")
    return f"{d.any('set', 'inc')}_subtensor({v.name}[{at}], {d.any('0.5', f'{v.name}[0] * 2', f'sin({v.name}[-1])')})"


OWN = [(8, by_constant), (3, outer_product), (12, mixed), (5, folded), (4, row_of), (3, part_set)]


class Body(draw.Drawer):
    """Lines of a body; its leaves are elements, states and constants."""

    def __init__(self, seed, kinds, mark, general):
        self.kinds, self.mark, self.general = kinds, mark, general
        self.loops = 0
        super().__init__(seed)

    def space(self):
        rng = self.rng
        self.rank = rng.choice([0, 1, 1, 2, 2, 2, 3])
        pick = lambda: rng.choice([0] + [1] * 6 + [2] * 8 + [3] * 10 + [4] * 4 + [5] * 4 + [7, 17])
        if rng.random() < 0.1:  # rows and work enough that each thread takes a band of the rows
            self.rank, pick = 2, lambda: rng.choice([40, 64, 96])
        self.size = [[pick(), pick()] for _ in range(self.rank)]
        self.known = [rng.random() < 0.5 for _ in range(self.rank)]
        for s, known in zip(self.size, self.known):
            if known or rng.random() < 0.5:
                s[1] = s[0]
        for i, s in enumerate(self.size):        # size 1 is declared: that other ones do not broadcast, only a loop tells that makes no step
            if 1 in s:
                self.size[i], self.known[i] = [1, 1], True

    def leaf(self, dt=None, axes=None, name=None, shared=False, numbers=None):
        return super().leaf(dt or self.rng.choice(self.kinds), axes, name or f"{self.mark}x{len(self.p.leaves)}", shared, numbers)

    def line(self):
        if self.coin(self.general):
            return super().line()
        row = self.rng.choices([r for _, r in OWN], [w for w, _ in OWN])[0]
        try:
            text = row(self)
            return self.take(text) if text else None
        except Unsure as e:
            return self.drop(str(e))

    def known_again(self, v, name):
        """Another name for a value that is known outside, as an input of the body's own graph."""
        self.graph.input(name, v.dt, v.dims)
        for k in range(2):
            self.names[k][name] = v.values[k]
        self.pool.append(Var(name, v.dt, v.dims, v.values))
        return self.pool[-1]

    def fresh(self):
        self.loops += 1
        return f"{self.mark}n{self.loops}"

    def take_loop(self, loop, first):
        """The nested loop as lines: its values by its steps."""
        names = [f"{first}r{i}" for i in range(len(loop.yields))]
        State.floatX, State.track = self.p.floatX, True
        results = []
        for k in range(2):
            with np.errstate(all="ignore"):
                steps = Steps(formula.Names(self.names[k]), k)
                try:
                    results.append([steps.names[r] for r in steps.run(loop, {})])
                except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, OverflowError) as e:
                    raise Unsure(str(e)) from e
        if any(v.v.size > 600 or v.v.ndim > 7 for r in results for v in r):
            raise Unsure("too large")
        text = f"{', '.join(names)} = {loop.text()}"
        try:
            self.graph.formula(text)
            nodes = [self.graph.formula(n) for n in names]
        except mc.Error as e:
            if not rows.refusal(e.text, text):
                self.p.refused.append((text, str(e)))
            return self.drop("refused: " + e.text.split("\n")[0])
        self.p.lines.append((names, loop))
        for word in formula.re.findall(r"[a-z]\w*", text):
            self.used[word] = True
        for i, (name, n) in enumerate(zip(names, nodes)):
            values = [r[i] for r in results]
            for k in range(2):
                self.names[k][name] = values[k]
            if n.dtype != values[0].dt or n.rank != values[0].v.ndim:
                self.p.refused.append((text, f"type: expected {values[0].dt}{list(values[0].v.shape)}, is {n.dtype}{list(n.dims)}"))
            self.pool.append(Var(name, n.dtype, n.dims, values))
            self.made.append(("scan()", n.dtype, n.rank))
        return True

    def statements(self):
        return [(list(names), what) if isinstance(what, Loop) else ([names], [what]) for names, what in self.p.lines]


def as_state(d, s):
    """A line that may be the next value of s: of its dtype and sizes."""
    same = lambda v: v.dt == s.dt and v.dims == s.dims and v.shapes == s.shapes
    some = [v for v in d.pool if same(v) and v.name != s.name]
    lines = [v for v in some if v.name not in d.leaf_names]
    if lines and d.coin(0.5):
        return d.rng.choice(lines)
    for _ in range(8):
        try:
            v = d.meets(s) if d.coin(0.7) else d.pick()
        except Unsure:
            break
        if s.real:
            e = v.name if v.dt == s.dt else f"cast({v.name}, {s.dt})"
            text = d.any(f"{s.name} + {e}", f"{s.name} * 0.5 + {e}", f"tanh({s.name} - {e})", f"{e} * sigmoid({s.name})", f"cos({s.name} + {e})",
                         f"{s.name} + sum({e})", f"0.7 * {s.name} + {e} * 0.1")
        elif s.dt == "bool":
            text = f"xor({s.name}, {v.name})" if v.dt == "bool" else f"~{s.name}"
        else:
            text = f"cast(({s.name} * 3 + cast({v.name}, {s.dt})) % 17, {s.dt})"
        got = d.take(text)
        if got and same(got):
            return got
    plain = f"sin({s.name})" if s.real else f"~{s.name}" if s.dt == "bool" else f"cast({s.name} * 2 + 1, {s.dt})"
    got = d.take(plain)
    if got and same(got):
        return got
    return some[0] if some else s


def nested(d, depth):
    """A loop over an axis of something that the body has, as a line of it."""
    rng = d.rng
    xs = d.pick(lambda v: v.rank >= 1 and all(s[0] <= 5 for s in v.shapes))
    loop, first = Loop(), d.fresh()
    inner = Body(rng.getrandbits(40), d.kinds, first, d.general)
    inner.p.floatX = d.p.floatX
    values = [V(np.zeros(v.v.shape[1:], v.v.dtype) if v.v.shape[0] == 0 else v.v[0], None if v.e is None or v.v.shape[0] == 0 else v.e[0], v.dt)
              for v in xs.values]
    loop.elements.append((f"{first}e", xs.name))
    inner.known_again(Var("", xs.dt, xs.dims[1:], values), f"{first}e")
    states = []
    for i in range(rng.choice([0, 1, 1, 2])):
        v = d.pick()
        states.append(inner.known_again(v, f"{first}s{i}"))
        loop.states.append((f"{first}s{i}", v.name))
    for v in rng.sample(d.pool, min(len(d.pool), rng.randint(0, 3))):
        if v.name not in inner.names[0]:
            inner.known_again(v, v.name)
    inner.leaf_names = {v.name for v in inner.pool}
    fill(inner, loop, states, rng.choice([0, 1, 2]), depth - 1)
    for x in inner.p.leaves:             # what its rows made is a constant of the outer loop, too
        if x.name not in d.names[0]:
            d.p.leaves.append(x)
            d.graph.input(x.name, x.dt, x.dims)
            d.leaf_names.add(x.name)
            for k in range(2):
                d.names[k][x.name] = x.value(k)
    d.p.refused += inner.p.refused
    yields(inner, loop, states, last_only=d.coin(0.5))
    return d.take_loop(loop, first)


def fill(d, loop, states, want, depth):
    """The body's lines, then the states' next values."""
    for _ in range(want * 6):
        if len(d.statements()) >= want:
            break
        if depth > 0 and d.coin(0.12):
            try:
                nested(d, depth)
            except Unsure as e:
                d.drop(str(e))
        else:
            d.line()
    next_ = [(s, as_state(d, s)) for s in states]
    loop.body = d.statements()
    moves = [(s.name, v.name) for s, v in next_]
    if moves and d.coin(0.5):            # all at once, or one after another: later ones then read the new values
        loop.body.append(([s for s, _ in moves], [v for _, v in moves]))
    else:
        loop.body += [([s], [v]) for s, v in moves]


def yields(d, loop, states, last_only=False):
    """What the loop gives, with some step's values for its dtypes and sizes."""
    rng = d.rng
    made = [v for v in d.pool if v.name not in d.leaf_names and v.rank < 7]
    unread = [v for v in made if v.name not in d.used]
    some = [] if last_only and states else (unread + [v for v in made if v.name in d.used and rng.random() < 0.25])[:3]
    for v in some:
        loop.yields.append(("all", v.name))
        loop.shape.append(v.values)
    for s in states:
        if rng.random() < (0.4 if not last_only else 0.1) and s.rank < 7:
            loop.yields.append(("all", s.name))
            loop.shape.append(s.values)
        if rng.random() < 0.6 or last_only:
            loop.yields.append(("last", s.name))
            loop.shape.append(s.values)
    if not loop.yields:
        v = rng.choice([v for v in d.pool if v.rank < 7])
        text = v.name if v.name not in d.leaf_names or states and v in states else f"{v.name} + 0" if v.dt != "bool" else f"~{v.name}"
        loop.yields.append(("all", text))
        loop.shape.append(v.values)
    rng.shuffle(pairs := list(zip(loop.yields, loop.shape)))
    loop.yields, loop.shape = [y for y, _ in pairs], [s for _, s in pairs]
    if loop.until and rng.random() < 0.6:
        loop.yields.append(("count", ""))
        loop.shape.append(None)


class Case:
    """A program with a loop; steps[k]: the program with the steps of round k one after another."""

    def __init__(self, seed):
        self.seed, self.made, self.dropped = seed, [], {}
        self.loop, self.program, self.steps = Loop(), Program(seed), [Program(seed), Program(seed)]
        self.want = [None, None]       # values of the results


def outer_leaf(d, x, name, lengths):
    """Inputs outside for the body's leaf x: with an axis of the steps in front, of which there are lengths[k] in round k."""
    arrays = [leaves.array(d.rng, x.dt, [n] + list(x.arrays[k].shape)) for k, n in enumerate(lengths)]
    known = lengths[0] == lengths[1] and d.coin(0.4)
    return Leaf(name, x.dt, [lengths[0] if known else -1] + list(x.dims), arrays)


def stop(d, loop, states, fixed):
    """A condition that ends the loop, and a state that counts, now and then."""
    if not d.coin(0.3):
        return
    real = [v for v in d.pool if v.real and v.name not in d.leaf_names]
    word = d.any("until", "until", "halt")
    word = "halt" if fixed else word
    count = [s for s in states if s.name == "tick"]
    if count and d.coin(0.6):
        loop.until = (word, f"{count[0].name} >= {d.any(1, 2, 3, 4, 9)}")
    elif real:
        v = d.rng.choice(real)
        loop.until = (word, f"{d.any('sum', 'mean')}(sqr({v.name})) {d.any('>', '<')} {d.any('0.1', '0.5', '1', '3', '20')}")


def draw_case(seed, fixed=False):
    """fixed: its sizes depend neither on values of inputs nor on what it computes."""
    c = Case(seed)
    rng = random.Random(seed * 31 + 7)
    kinds = DTYPES[rng.choice(["float64"] * 4 + ["float32"] * 3 + ["three"] * 3 + ["all"])]
    d = Body(seed * 17 + 3, kinds, "", rng.choice([0, 0.15, 0.3, 0.6]))
    p, loop = c.program, c.loop
    lengths = [rng.choice(STEPS)] * 2
    if rng.random() < 0.5:
        lengths[1] = rng.choice(STEPS)
    nelement, nstate = rng.choice([0, 1, 1, 1, 2, 3]), rng.choice([0, 1, 1, 1, 2, 3])
    if nelement + nstate == 0:
        nelement = 1
    elements = [d.leaf() for _ in range(nelement)]
    states = [d.leaf() for _ in range(nstate)]
    for _ in range(rng.choice([0, 0, 1, 2])):
        d.leaf(shared=rng.random() < 0.3)
    if rng.random() < 0.35:
        states.append(d.known_again(Var("", "int64", (), [V(np.array(0, np.int64), None, "int64")] * 2), "tick"))
    inner = {x.name: x for x in d.p.leaves}
    d.leaf_names = {v.name for v in d.pool}
    outside = []
    for x in elements:
        q = outer_leaf(d, inner[x.name], f"q{x.name}", lengths)
        outside.append(q)
        e = rng.choice([q.name] * 5 + [f"{q.name}[::-1]", f"{q.name} * 1"]) if x.dt != "bool" else q.name
        loop.elements.append((x.name, e))
    for s in states:
        if s.name == "tick":
            loop.states.append((s.name, "cast(0, int64)"))
            continue
        h = inner[s.name]
        outside.append(Leaf(f"h{s.name}", s.dt, h.dims, h.arrays))
        loop.states.append((s.name, rng.choice([f"h{s.name}"] * 4 + ([f"h{s.name} * 0.5", f"zeros_like(h{s.name})"] if s.real else []))))
    if not elements or rng.random() < 0.1:
        if rng.random() < 0.6 and not fixed:
            outside.append(Leaf("n", "int64", [], [np.array(n, np.int64) for n in lengths]))
            loop.steps = "n"
        elif lengths[0] == lengths[1] or not elements:
            lengths[1] = lengths[0] if not elements else lengths[1]
            loop.steps = str(lengths[0])
    fill(d, loop, [s for s in states if s.name != "tick"], rng.choice([1, 2, 3, 3, 4, 6]), 2)
    if any(s.name == "tick" for s in states):
        loop.body.append((["tick"], ["tick + 1"]))
    stop(d, loop, states, fixed)
    yields(d, loop, [s for s in states if s.name != "tick" or loop.until])
    c.made, c.dropped = d.made, d.dropped
    roles = {x.name for x in elements + states}
    p.leaves = outside + [x for x in d.p.leaves if x.name not in roles]
    p.refused, p.floatX = d.p.refused, d.p.floatX
    finish(c, rng)
    return c


def finish(c, rng):
    """The steps of both rounds; costs and gradients; Unsure where the evaluator cannot tell them."""
    p, loop = c.program, c.loop
    results = [f"r{i}" for i in range(len(loop.yields))]
    State.floatX, State.track = p.floatX, True
    for k in range(2):
        s = c.steps[k]
        s.leaves, s.floatX = p.leaves, p.floatX
        with np.errstate(all="ignore"):
            steps = Steps(formula.Names({x.name: x.value(k) for x in p.leaves}), k)
            got = steps.run(loop, {})
        s.lines = steps.lines + list(zip(results, got))
        c.want[k] = {r: steps.names[u] for r, u in zip(results, got)}
    p.lines = [(", ".join(results), loop.text())]
    p.outputs = list(results)
    real = [r for r in results if c.want[0][r].dt in ("float32", "float64")]
    parts = [rng.choice([f"sum(sin({r}))", f"sum(sqr({r}))", f"sum({r} * 0.7)", f"sum({r} * {r} + {r})"]) for r in real]
    if real:
        wide = [f"cast({t}, float64)" for t in parts] if len({c.want[0][r].dt for r in real}) > 1 else parts
        cost = ("cost", " + ".join(wide))
        p.lines.append(cost)
        for s in c.steps:
            s.lines.append(cost)
        need = c.steps[0].needed(["cost"])[1] | c.steps[1].needed(["cost"])[1]
        wrt = [x for x in p.leaves if x.dt in ("float32", "float64") and x.name in need]
        rng.shuffle(wrt)
        for x in wrt[:3]:
            p.grads.append((f"g{len(p.grads)}", "cost", x.name, None))
        if p.grads and rng.random() < 0.35:
            first, at = p.grads[0][0], rng.choice(wrt).name
            p.grads.append((f"g{len(p.grads)}", "cost", at, first))
    for s in c.steps:
        s.grads, s.outputs = p.grads, p.outputs

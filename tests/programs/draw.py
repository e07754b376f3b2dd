"""draw.py: draws a program: leaves cut from one space, so that most pairs broadcast, and lines from the table of rows.

A candidate is a piece of text.  It is taken when the evaluator can tell its value in both rounds, and the library has
the same type for it; what the evaluator can do and the library refuses is kept in `refused`.
"""
import random

import numpy as np

import mc
from . import formula, leaves, rows
from .program import Leaf, Program, Var, one, with_own
from .value import State, Unsure, is_float

LARGEST = 6000        # elements


class Drawer:
    mark = ""             # in front of the names of lines

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.p = Program(seed)
        self.pool = []
        self.used = {}
        self.starts = set()   # inputs at which slices start
        self.graph = with_own(mc.Graph())
        self.names = [formula.Names(), formula.Names()]
        self.dropped = {}
        self.loose = False    # the candidate's operands were not chosen to fit
        self.poor = False     # it may be nothing but rounding, or not be known
        self.curved = []      # lines whose gradients are asked for first
        self.made = []        # (text, dtype, rank) of what was taken
        self.space()

    # ---- chance

    def coin(self, p=0.5):
        return self.rng.random() < p

    def any(self, *things):
        return self.rng.choice(things)

    def space(self):
        """Sizes of up to 7 axes, for both rounds; which are known when it is compiled."""
        rng = self.rng
        rank = rng.choice([0, 1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7])
        most = 36 if rank < 3 else 9 if rank < 5 else 3
        pick = lambda: rng.choice([s for s in leaves.SIZES if s <= most and (s or rng.random() < 0.35)] or [2])
        self.size = [[pick(), pick()] for _ in range(rank)]
        self.known = [rng.random() < 0.35 for _ in range(rank)]
        for s, known in zip(self.size, self.known):
            if known or rng.random() < 0.4:
                s[1] = s[0]
        self.rank = rank

    def leaf(self, dt=None, axes=None, name=None, shared=False, numbers=None):
        """axes: pairs of sizes with whether they are known; from the space otherwise.  numbers: one for each round."""
        rng = self.rng
        dt = dt or rng.choice(leaves.DTYPES)
        if axes is None:
            rank = self.rank if rng.random() < 0.6 else rng.randint(0, self.rank)
            axes = []
            for i in range(self.rank - rank, self.rank):
                axes.append(([1, 1], True) if rng.random() < 0.18 else (self.size[i], self.known[i]))
        dims = [s[0] if known or shared else -1 for s, known in axes]
        arrays = [leaves.array(rng, dt, [s[0 if shared else k] for s, _ in axes]) for k in range(2)]
        if numbers:
            arrays = [np.full(a.shape, n, a.dtype) for a, n in zip(arrays, numbers)]
        if shared:
            arrays[1] = arrays[0]
        x = Leaf(name or f"{'w' if shared else 'x'}{len(self.p.leaves)}", dt, dims, arrays, shared)
        if shared:
            self.graph.shared(x.name, x.arrays[0])
        else:
            self.graph.input(x.name, dt, dims)
        self.p.leaves.append(x)
        values = [x.value(k) for k in range(2)]
        for k in range(2):
            self.names[k][x.name] = values[k]
        v = Var(x.name, dt, dims, values)
        self.pool.append(v)
        return v

    # ---- choosing operands

    def pick(self, fits=lambda v: True):
        """A name of the pool, late ones sooner; those that nothing has read yet sooner still."""
        some = [v for v in self.pool if fits(v)]
        if not some:
            raise Unsure("nothing fits")
        weight = [1 + 0.3 * i + (2 if v.name not in self.used else 0) for i, v in enumerate(some)]
        return self.rng.choices(some, weight)[0]

    def real(self, rank=None, fits=lambda v: True):
        return self.pick(lambda v: v.real and (rank is None or v.rank == rank) and fits(v))

    def meets(self, a):
        """Something that broadcasts with a, as far as is known."""
        def fits(b):
            for i in range(1, min(a.rank, b.rank) + 1):
                if 1 not in (a.dims[-i], b.dims[-i]) and any(s[-i] != t[-i] for s, t in zip(a.shapes, b.shapes)):
                    return False
            return True
        return self.pick(fits)

    def axis(self, v):
        return self.rng.randrange(v.rank) - (v.rank if self.coin(0.3) else 0)

    def axes(self, v):
        """axis=..., or nothing."""
        if v.rank == 0 or self.coin(0.25):
            return ""
        if self.coin(0.6):
            return f", axis={self.axis(v)}"
        some = self.rng.sample(range(v.rank), self.rng.randint(1, v.rank))
        return f", axis={some}"

    # ---- lines

    def drop(self, why):
        self.dropped[why] = self.dropped.get(why, 0) + 1
        return None

    def take(self, text):
        """The candidate as a new line, or None."""
        State.floatX, State.track = self.p.floatX, True
        try:
            with np.errstate(all="ignore"):
                values = [one(formula.run(text, n)) for n in self.names]
        except Unsure as e:
            return self.drop(str(e))
        except (NameError, TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, AttributeError, OverflowError) as e:
            return self.drop(f"{type(e).__name__}: {e} in {text}")
        if max(v.v.size for v in values) > LARGEST or values[0].v.ndim > 8 or not self.sane(values):
            return self.drop("too large, or nothing is known of it")
        name = f"{self.mark}t{len(self.p.lines)}"
        try:
            n = self.graph.formula(f"{name} = {text}")
        except mc.Error as e:
            if not self.loose and not rows.refusal(e.text, text):
                self.p.refused.append((text, str(e)))
            return self.drop("refused: " + e.text.split("\n")[0])
        for k, v in enumerate(values):
            self.names[k][name] = v
            fits = len(n.dims) == v.v.ndim and all(d in (-1, s) for d, s in zip(n.dims, v.v.shape))
            if n.dtype != v.dt or not fits:
                self.p.refused.append((text, f"type: expected {v.dt}{list(v.v.shape)}, is {n.dtype}{list(n.dims)}"))
                return self.drop("another type")
        self.p.lines.append((name, text))
        self.made.append((text, n.dtype, n.rank))
        for word in formula.re.findall(r"[a-z]\w*", text):
            self.used[word] = True
        v = Var(name, n.dtype, n.dims, values)
        self.pool.append(v)
        return v

    def sane(self, values):
        """Values of moderate size of which something is known; others only now and then."""
        for v in values:
            if v.v.size and is_float(v.dt):
                with np.errstate(all="ignore"):
                    size = np.abs(v.v)
                    e = 0 if v.e is None else v.e
                    poor = np.mean(~(np.isfinite(size) & (e < 0.02 * size + 1e-3))) > 0.3 or np.nanmax(size, initial=0) > 1e5
                if poor and not self.coin(0.5 if self.poor else 0.08):
                    return False
            elif v.v.size and v.e is not None and not self.coin(0.3):
                return False
        return True

    def line(self):
        row = self.rng.choices(rows.ROWS, rows.WEIGHTS)[0]
        try:
            text = row(self)
            self.loose, self.poor = row is rows.anything, row in (rows.cancelling, rows.smooth)
            v = self.take(text) if text else None
            if v and row is rows.smooth:
                self.curved.append(v)
            return v
        except Unsure as e:
            return self.drop(str(e))
        finally:
            self.loose = self.poor = False


def depends(p, name):
    return p.needed([name])[1]


def gradients(d):
    """Costs, their gradients, and the gradients' own."""
    p, rng = d.p, d.rng
    some = [v for v in d.pool if v.real and v.name.startswith("t") and v.size]
    rng.shuffle(some)
    some.sort(key=lambda v: v not in d.curved)
    for y in some[:rng.choice([1, 1, 2])]:
        wide = f"cast({y.name}, float32)" if y.dt in ("float16", "bfloat16") and d.coin() else y.name
        text = rng.choice([f"sum({wide})", f"sum(sqr({wide}))", f"mean({wide} * {wide} + {wide})", f"sum(sin({wide}))"])
        d.poor = True         # differences tell its slope, also where its value is not known
        cost = d.take(text)
        d.poor = False
        if cost is None or not cost.real or not all(np.isfinite(float(v.v)) for v in cost.values):
            continue
        need = depends(p, cost.name)
        wrt = [x for x in p.leaves if is_float(x.dt) and x.name in need]
        rng.shuffle(wrt)
        for x in wrt[:2]:
            first = f"g{len(p.grads)}"
            p.grads.append((first, cost.name, x.name, None))
            try:
                d.graph.formula(f"{first} = {p.grad_text(first)}")
            except mc.Error as e:
                p.grads.pop()
                if not rows.refusal(e.text, "grad"):
                    p.refused.append((f"grad({cost.name}, {x.name})", str(e)))
                continue
            p.outputs.append(first)
            if d.coin(0.5):
                at = rng.choice(wrt).name
                second = f"g{len(p.grads)}"
                p.grads.append((second, cost.name, at, first))
                try:
                    d.graph.formula(f"{second} = {p.grad_text(second)}")
                    p.outputs.append(second)
                except mc.Error as e:
                    p.grads.pop()
                    if not rows.refusal(e.text, "grad"):
                        p.refused.append((f"grad(sum(grad({cost.name}, {first})), {at})", str(e)))


def draw(seed):
    d = Drawer(seed)
    p, rng = d.p, d.rng
    for _ in range(rng.choice([1, 2, 2, 3, 3, 4])):
        d.leaf()
    if not any(x.real for x in d.pool):
        d.leaf(rng.choice(["float32", "float32", "float64"]))
    if d.coin(0.2):
        d.leaf(shared=True)
    want = rng.choice([2, 4, 6, 8, 10, 14])
    for _ in range(want * 6):
        if len(p.lines) >= want:
            break
        d.line()
    unread = [v.name for v in d.pool if v.name.startswith("t") and v.name not in d.used]
    more = [v.name for v in d.pool if v.name.startswith("t") and v.name in d.used]
    p.outputs = (unread + rng.sample(more, min(len(more), rng.choice([0, 0, 1, 2]))))[-8:]
    if d.coin(0.55):
        gradients(d)
    for s in [x for x in p.leaves if x.shared]:
        fit = [v for v in d.pool if v.dt == s.dt and all(t == s.arrays[0].shape for t in v.shapes)
               and all(a in (-1, b) for a, b in zip(v.dims, s.dims)) and v.name != s.name]
        fit = [v for v in fit if not any(rows.BY_VALUES.search(text) for _, text in p.needed([v.name])[0])]     # what is stored decides sizes
        if fit and d.coin(0.8):
            v = rng.choice(fit)
            p.updates.append((s.name, v.name if d.coin() or s.dt == "bool" else f"{s.name} + {v.name}"))
    return d

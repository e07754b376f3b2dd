"""program.py: a typed program in the text form with values for its inputs, twice: sizes that are not known when it is
compiled differ between the two.  It is evaluated here; the library is asked for types only while it is drawn."""
import re

import numpy as np

import mc
from . import formula
from .scalar import OWN
from .value import REAL, State, Unsure, V, is_float

WORD = re.compile(r"[A-Za-z_]\w*")


def with_own(g):
    """The graph, which knows the program's own ops."""
    for name, (kernel, *grads) in OWN.items():
        g.register(name, kernel, *grads)
    return g


class Leaf:
    """An input or a shared variable: declared sizes (-1: not known), arrays for two rounds as they lie in memory."""

    def __init__(self, name, dt, dims, arrays, shared=False):
        self.name, self.dt, self.dims, self.arrays, self.shared = name, dt, list(dims), arrays, shared

    def at(self, k):
        """The array of round 0 or 1; of round 2, which has the sizes of 0 and the numbers of 1."""
        return self.arrays[k if k < 2 else int(self.arrays[0].ndim == 0)]

    def value(self, k):
        a = self.at(k)
        return V(a.float32().astype(REAL) if self.dt == "bfloat16" else np.array(a, REAL if is_float(self.dt) else a.dtype), None, self.dt)

    def text(self):
        sizes = ", ".join("?" if d < 0 else str(d) for d in self.dims)
        return f"{'shared' if self.shared else 'input'} {self.name} {self.dt}" + (f"[{sizes}]" if self.dims else "")


class Var:
    def __init__(self, name, dt, dims, values):
        self.name, self.dt, self.dims, self.values = name, dt, tuple(dims), values

    rank = property(lambda v: len(v.dims))
    shapes = property(lambda v: [x.v.shape for x in v.values])
    shape = property(lambda v: v.values[0].v.shape)
    size = property(lambda v: max(x.v.size for x in v.values))
    real = property(lambda v: is_float(v.dt))


class Program:
    def __init__(self, seed):
        self.seed = seed
        self.leaves = []
        self.lines = []          # (name, text)
        self.costs = []          # names of lines that gradients are taken of
        self.grads = []          # (name, cost, wrt, first or None): first: the gradient that this one is the gradient of
        self.outputs = []
        self.updates = []        # (shared, text)
        self.floatX = "float64"
        self.flags = {}
        self.refused = []        # (text, message): the library would not have it, the evaluator does

    def text(self):
        rows = [x.text() for x in self.leaves] + [f"{n} = {t}" for n, t in self.lines]
        rows += [f"{n} = {self.grad_text(n)}" for n, *_ in self.grads]
        rows += ["output " + ", ".join(self.outputs)] if self.outputs else []
        rows += [f"update {s} = {t}" for s, t in self.updates]
        return "\n".join(rows)

    def grad_text(self, name):
        _, cost, wrt, first = next(g for g in self.grads if g[0] == name)
        return f"grad({cost if first is None else f'sum({first})'}, {wrt})"

    def graph(self):
        g = with_own(mc.Graph())
        shared = {}
        for x in self.leaves:
            if x.shared:
                shared[x.name] = g.shared(x.name, np.array(x.arrays[0], copy=True, subok=True), x.dims)
            else:
                g.input(x.name, x.dt, x.dims)
        for name, text in self.lines:
            g.formula(f"{name} = {text}")
        for name, *_ in self.grads:
            g.formula(f"{name} = {self.grad_text(name)}")
        return g, shared

    def needed(self, targets):
        """The lines that these names need, in order."""
        want, lines = set(targets), []
        for name, text in reversed(self.lines):
            if name in want:
                lines.append((name, text))
                want |= set(WORD.findall(text))
        return lines[::-1], want

    def evaluate(self, k, values=None, targets=None):
        """All names' values in round k; values: other ones for some leaves."""
        lines, want = self.needed(targets) if targets else (self.lines, None)
        names = formula.Names()
        for x in self.leaves:
            if want is None or x.name in want:
                names[x.name] = x.value(k)
        names.update(values or {})
        State.floatX = self.floatX
        for name, text in lines:
            names[name] = one(formula.run(text, names))
        return names


def one(value):
    fields = formula.fields(value)
    if len(fields) != 1:
        raise Unsure("several results")
    return fields[0]

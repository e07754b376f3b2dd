"""Graphs, nodes and functions for Python: one current graph, operators, and each op as a function."""
import sys
import threading

from . import _monochord


class Graph(_monochord.Graph):
    """Nodes and their names. `with graph:` makes it the current one."""

    def __enter__(self):
        here.stack.append(self)
        return self

    def __exit__(self, *error):
        here.stack.pop()


class Here(threading.local):
    def __init__(self):
        self.stack = [Graph()]


here = Here()


def current():
    return here.stack[-1]


def reset():
    """Another empty graph becomes the current one; names are free again."""
    here.stack[-1] = Graph()


def text_of(v):
    """An attribute of an op, as in a formula."""
    if isinstance(v, str):
        return "'%s'" % v
    if isinstance(v, (list, tuple)):
        return "[%s]" % ", ".join(text_of(x) for x in v)
    return repr(v)


class Node:
    """A tensor of the graph. Operators, indexing and all ops are there; `dims` has -1 for a size not known yet."""
    __array_priority__ = 1000
    __array_ufunc__ = None
    __slots__ = ("node", "__weakref__")

    def __init__(self, node):
        self.node = node

    dtype = property(lambda self: self.node.dtype)
    dims = property(lambda self: self.node.dims)
    ndim = property(lambda self: len(self.node.dims))
    name = property(lambda self: self.node.name)
    T = property(lambda self: apply("transpose", self))
    shape = property(lambda self: apply("shape", self))

    def __repr__(self):
        return "<%s %s%s>" % (self.node, self.dtype, ["?" if d < 0 else d for d in self.dims])

    def _repr_html_(self):
        from .display import of_node
        return of_node(self)

    def __getitem__(self, index):
        g = self.node.graph
        parts = index if isinstance(index, tuple) else (index,)
        return Node(g.part(self.node, ", ".join(part(g, p) for p in parts) or "..."))

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        f = op_of(name)
        return lambda *args, **given: f(self, *args, **given)

    def __iter__(self):
        raise TypeError("a node is computed when a function is called; it cannot be iterated over")

    def __bool__(self):
        raise TypeError("a node has no value before a function is called; where(c, a, b) chooses")


OPERATORS = dict(add="add", sub="sub", mul="mul", truediv="true_div", floordiv="int_div", mod="mod", pow="pow",
                 matmul="matmul", lt="lt", le="le", gt="gt", ge="ge", **{"and": "and_", "or": "or_", "xor": "xor"})
for word, name in OPERATORS.items():
    setattr(Node, "__%s__" % word, lambda a, b, op=name: apply(op, a, b))
    setattr(Node, "__r%s__" % word, lambda a, b, op=name: apply(op, b, a))
for word, name in dict(neg="neg", abs="abs", invert="invert").items():
    setattr(Node, "__%s__" % word, lambda a, op=name: apply(op, a))


def part(g, x):
    """An entry of an index as text."""
    if x is Ellipsis:
        return "..."
    if isinstance(x, slice):
        items = ["" if v is None else part(g, v) for v in (x.start, x.stop, x.step)]
        return ":".join(items if x.step is not None else items[:2])
    if x is None or isinstance(x, int) and not isinstance(x, bool):
        return repr(x)
    node = node_of(g, x)
    if not node.name:
        g.name(node, "_node_%d" % node.id)
    return node.name


def node_of(g, x):
    if isinstance(x, Node):
        return x.node
    if isinstance(x, Shared):
        return g.shared_node(x.shared)
    if isinstance(x, (bool, int, float)):
        return g.formula(repr(x))
    if isinstance(x, (list, tuple)) and any(isinstance(v, (Node, Shared)) for v in x):
        return g.op("stack", [node_of(g, v) for v in x])
    if isinstance(x, (list, tuple)):
        return g.formula(text_of(x))
    return g.constant(x)


def graph_of(args):
    for x in args:
        if isinstance(x, Node):
            return x.node.graph
        if isinstance(x, (list, tuple)):
            g = graph_of(x)
            if g is not current():
                return g
    return current()


def apply(op, *args, **given):
    """Any op by name: positional arguments are tensors, the others attributes."""
    g = graph_of(args)
    node = g.op(op, [node_of(g, x) for x in args], ", ".join("%s=%s" % (k, text_of(v)) for k, v in given.items()) or None)
    return Node(node)


OPS = _monochord.op_names()


def op_of(name):
    if name not in OPS or name.startswith("_"):
        raise AttributeError("there is no op %r; monochord.op_names() lists them" % name)

    def op(*args, **given):
        return apply(name, *args, **given)
    op.__name__, op.__doc__ = name, OPS[name]
    return op


def input(name, dtype="floatX", sizes=0):
    """An input: sizes is the number of axes, or their sizes with None for one not known before the call."""
    sizes = [None] * sizes if isinstance(sizes, int) else sizes
    return Node(current().input(name, dtype, sizes))


class Shared(Node):
    """A variable that keeps its value between calls."""
    __slots__ = ("shared",)

    def __init__(self, node, shared):
        self.node, self.shared = node, shared

    def get(self):
        import numpy
        return numpy.asarray(self.shared.get())

    def set(self, value):
        self.shared.set(value)

    value = property(get, set)


def shared(name, value, sizes="fixed"):
    """A shared variable; sizes None: they may change."""
    import numpy
    g = current()
    value = numpy.asarray(value)
    s = g.shared(name, value, value.shape if sizes == "fixed" else sizes)
    return Shared(g.shared_node(s), s)


def random(name="rng", seed=12345):
    """A stream of random numbers for uniform, normal, bernoulli, ..."""
    g = current()
    s = g.random(name, seed)
    return Shared(g.shared_node(s), s)


def formula(text, **names):
    """The value of a formula; keyword arguments are names in it."""
    g = graph_of(names.values())
    for k, v in names.items():
        g.name(node_of(g, v), k)
    return Node(g.formula(text))


def grad(cost, wrt, consider_constant=(), known=None, disconnected="raise"):
    """The gradient of a scalar by one node, or a list of them by several."""
    many = isinstance(wrt, (list, tuple))
    wrts = list(wrt) if many else [wrt]
    known = known or {}
    found = wrts[0].node.graph.grads(
        None if cost is None else cost.node, [w.node for w in wrts], [c.node for c in consider_constant],
        [k.node for k in known], [v.node for v in known.values()], disconnected == "zero")
    return [Node(n) for n in found] if many else Node(found[0])


def function(inputs, outputs=(), updates=None, givens=None, name=None, mode=None, numpy=True, **spec):
    """A compiled function. Inputs, outputs, updates and givens are nodes, or text as in docs/text-form.md."""
    listed = isinstance(outputs, (list, tuple))
    frame = sys._getframe(1)
    places = dict(name=name, mode=mode, file=frame.f_code.co_filename, line=frame.f_lineno,
                  single=not listed, **spec)
    if numpy:
        import numpy as np
        places["numpy"] = np.asarray
    texts = [("inputs", inputs), ("updates", updates), ("givens", givens)]
    places.update({k: v for k, v in texts if isinstance(v, str)})
    g = graph_of([x for x in (inputs, outputs) if not isinstance(x, str)])
    if not isinstance(inputs, str):
        places["input"] = [x.node for x in inputs]
    if isinstance(outputs, str):
        places["outputs"] = outputs
    nodes = [] if isinstance(outputs, str) else [node_of(g, o) for o in (outputs if listed else [outputs])]
    pairs = [] if updates is None or isinstance(updates, str) else list(
        updates.items() if hasattr(updates, "items") else updates)
    new = [node_of(g, v) for _, v in pairs]
    if givens and not isinstance(givens, str):
        made = g.replace(nodes + new, [k.node for k in givens], [node_of(g, v) for v in givens.values()])
        nodes, new = made[:len(nodes)], made[len(nodes):]
    return g.compile(output=nodes, update_of=[k.node for k, _ in pairs], update=new, **places)


def _function_html(f):
    from .display import of_function
    return of_function(f)


_monochord.Function._repr_html_ = _function_html


def load_function(path):
    """A function that Function.save wrote."""
    import numpy
    return _monochord.load_function(path, numpy.asarray, True)

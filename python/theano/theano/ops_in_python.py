"""Ops that a program defines: the library calls perform, or the thunk of make_thunk, for values.

The library asks for the sizes of results before it runs an op. They come from infer_shape; without one the op runs once
on zeros of the inputs' shapes, and what it gives has the sizes. So sizes must not depend on values.
"""
import numpy as np

from .core import Apply, TensorVariable, as_tensor_variable, graph, variable_of


class Bare:
    """A variable's type and name."""

    def __init__(self, v):
        self.type, self.name = v.type, v.name
        self.dtype, self.ndim, self.broadcastable = v.type.dtype, v.type.ndim, v.type.broadcastable


def build(op, apply):
    """Gives the outputs of an Apply their nodes."""
    apply.inputs = [as_tensor_variable(x) for x in apply.inputs]
    g = apply.inputs[0]._node.graph if apply.inputs else graph()
    types = [v.type for v in apply.outputs]
    key = (op, tuple(x.type for x in apply.inputs), tuple(types))
    name = g.ops.get(key)
    if name is None:
        name = g.ops[key] = g.free_name("python_" + type(op).__name__)
        # What the library keeps must not keep the graph: variables without nodes stand for those of the call.
        bare = Apply(op, [Bare(v) for v in apply.inputs], [Bare(v) for v in apply.outputs])
        run = runner(op, bare)
        g.register(name, len(apply.inputs), len(types), sizer(op, bare, types, run), run, gradient(op))
    node = g.op(name, [x._node for x in apply.inputs])
    for i, v in enumerate(apply.outputs):
        v._node = node if len(types) == 1 else g.item(node, i)
        v._owner, v.index, v._type = apply, i, None


def sizer(op, apply, types, run):
    """The dtype and the sizes of result i, from those of the inputs."""
    known = {}

    def sizes(given):
        key = tuple(shape for _, shape in given)
        if key not in known:
            try:
                known[key] = [[int(getattr(s, "data", s)) for s in shape]
                              for shape in op.infer_shape(apply, [tuple(s) for s in key])]
            except (AttributeError, TypeError, NotImplementedError):
                known[key] = [v.shape for v in run([np.zeros(shape, dtype) for dtype, shape in given])]
        return known[key]

    def infer(i, given):
        t = types[i]
        open_ = any(s < 0 for _, shape in given for s in shape)
        return t.dtype, [1 if b else -1 for b in t.broadcastable] if open_ else list(sizes(given)[i])
    return infer


def runner(op, apply):
    """values of inputs -> values of outputs"""
    def values_of(storage):
        made = [np.asarray(s[0], dtype=v.type.dtype) for s, v in zip(storage, apply.outputs)]
        for x, v in zip(made, apply.outputs):
            if x.ndim != v.type.ndim:
                raise ValueError("%s gave a result with %d axes, its type has %d" % (op, x.ndim, v.type.ndim))
        return made

    if hasattr(op, "perform"):
        def run(values):
            storage = [[None] for _ in apply.outputs]
            op.perform(apply, [np.asarray(v) for v in values], storage)
            return values_of(storage)
        return run
    storage = {v: [None] for v in apply.inputs + apply.outputs}
    thunk = []

    def run_thunk(values):
        if not thunk:
            thunk.append(op.make_thunk(apply, storage, {v: [True] for v in storage}, []))
        for v, x in zip(apply.inputs, values):
            storage[v][0] = np.ascontiguousarray(x).reshape(np.shape(x))
        thunk[0]()
        return values_of([storage[v] for v in apply.outputs])
    return run_thunk


def gradient(op):
    if not hasattr(op, "grad"):
        return None

    def grad(inputs, outputs, grads, wrt):
        given = [TensorVariable(n) if n is not None else variable_of(outputs[i]).zeros_like()
                 for i, n in enumerate(grads)]
        r = op.grad([variable_of(n) for n in inputs], given)[wrt]
        return None if r is None else as_tensor_variable(r)._node
    return grad

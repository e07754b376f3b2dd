"""Ops that a program defines: the library calls perform, or the thunk of make_thunk, for values."""
import numpy as np

from .core import TensorVariable, as_tensor_variable, graph, variable_of


def build(op, apply):
    """Gives the outputs of an Apply their nodes."""
    inputs = [as_tensor_variable(x) for x in apply.inputs]
    apply.inputs = inputs
    g = inputs[0]._node.graph if inputs else graph()
    types = [v.type for v in apply.outputs]
    key = (op, tuple(x.type for x in inputs), tuple(types))
    name = g.ops.get(key)
    if name is None:
        name = g.free_name("python_" + type(op).__name__)
        g.ops[key] = name
        g.register(name, len(inputs), len(types), lambda i, given: (
            types[i].dtype, [1 if b else -1 for b in types[i].broadcastable]), runner(op, apply), gradient(op))
    node = g.op(name, [x._node for x in inputs])
    for i, v in enumerate(apply.outputs):
        v._node = node if len(types) == 1 else g.item(node, i)
        v._owner, v.index, v._type = apply, i, None


def runner(op, apply):
    """values of inputs -> values of outputs"""
    if hasattr(op, "perform"):
        def run(values):
            storage = [[None] for _ in apply.outputs]
            op.perform(apply, [np.asarray(v) for v in values], storage)
            return [np.asarray(s[0], dtype=v.type.dtype) for s, v in zip(storage, apply.outputs)]
        return run
    storage = {v: [None] for v in apply.inputs + apply.outputs}
    thunk = []

    def run_thunk(values):
        if not thunk:
            thunk.append(op.make_thunk(apply, storage, {v: [True] for v in storage}, []))
        for v, x in zip(apply.inputs, values):
            storage[v][0] = np.ascontiguousarray(x).reshape(np.shape(x))
        thunk[0]()
        return [np.asarray(storage[v][0], dtype=v.type.dtype) for v in apply.outputs]
    return run_thunk


def gradient(op):
    if not hasattr(op, "grad"):
        return None

    def grad(inputs, outputs, grads, wrt):
        ins = [variable_of(n) for n in inputs]
        gs = [TensorVariable(n, owner=None) if n is not None else as_tensor_variable(
            np.zeros((), outputs[i].dtype)) for i, n in enumerate(grads)]
        r = op.grad(ins, gs)[wrt]
        return None if r is None else as_tensor_variable(r)._node
    return grad

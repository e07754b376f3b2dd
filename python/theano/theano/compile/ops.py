"""Ops that are made of functions."""
from ..core import Apply, Op, as_tensor_variable, missing


class FromFunction(Op):
    def __init__(self, fn, itypes, otypes, infer_shape=None):
        self.fn, self.itypes, self.otypes = fn, list(itypes), list(otypes)
        if infer_shape is not None:
            self.infer_shape = infer_shape

    def make_node(self, *inputs):
        inputs = [as_tensor_variable(x) for x in inputs]
        if [x.type for x in inputs] != self.itypes:
            raise TypeError("We expected inputs of types %s but got types %s" % (self.itypes, [x.type for x in inputs]))
        return Apply(self, inputs, [t() for t in self.otypes])

    def perform(self, node, inputs, outputs):
        values = self.fn(*inputs)
        for place, value in zip(outputs, values if isinstance(values, (list, tuple)) else [values]):
            place[0] = value

    def __str__(self):
        return "FromFunctionOp{%s}" % self.fn.__name__


def as_op(itypes, otypes, infer_shape=None):
    """A function of arrays as an op."""
    listed = [t if isinstance(t, (list, tuple)) else [t] for t in (itypes, otypes)]
    return lambda fn: FromFunction(fn, *listed, infer_shape=infer_shape)


__getattr__ = missing("theano.compile.ops")

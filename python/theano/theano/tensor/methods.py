"""Operators, methods and indexing of tensors."""
import numpy as np

from ..core import (Constant, Part, Variable, as_tensor_variable,
                    constant, has_variable, operators)
from . import basic

BINARY = dict(add="add", sub="sub", mul="mul", truediv="true_div", floordiv="int_div", mod="mod", pow="pow",
              **{"and": "and_", "or": "or_", "xor": "xor"})
for name, op in BINARY.items():
    def method(self, other, f=basic.names[op]):
        try:
            return f(self, other)
        except (TypeError, NotImplementedError):
            if isinstance(other, (Variable, int, float, np.ndarray, np.generic, list, tuple)):
                raise
            return NotImplemented

    def reverse(self, other, f=basic.names[op]):
        return f(other, self)
    setattr(operators, "__%s__" % name, method)
    setattr(operators, "__r%s__" % name, reverse)
for name in "lt le gt ge".split():
    setattr(operators, "__%s__" % name, lambda self, other, f=basic.names[name]: f(self, other))
operators.__neg__ = lambda self: basic.names["neg"](self)
operators.__abs__ = lambda self: basic.names["abs_"](self)
operators.__invert__ = lambda self: basic.names["invert"](self)
operators.__pos__ = lambda self: self
operators.__divmod__ = lambda self, other: basic.divmod(self, other)
operators.__dot__ = operators.__matmul__ = lambda self, other: basic.dot(self, other)
operators.__rdot__ = operators.__rmatmul__ = lambda self, other: basic.dot(other, self)

METHODS = """sum prod max min argmax argmin any all mean var std norm ptp cumsum cumprod sort argsort dot flatten
reshape dimshuffle swapaxes clip repeat nonzero round take fill nonzero_values""".split()
for name in METHODS:
    f = basic.names.get(name) or getattr(basic, name)
    setattr(operators, name, lambda self, *args, f=f, **given: f(self, *args, **given))
operators.astype = basic.cast
operators.copy = lambda self, name=None: self
operators.ravel = lambda self: basic.flatten(self)
operators.squeeze = lambda self: basic.squeeze(self)
operators.diagonal = lambda self, offset=0: basic.diag(self, offset)
operators.trace = lambda self: basic.trace(self)
operators.conj = operators.get_scalar_constant_value = lambda self: self
operators.zeros_like = lambda self, dtype=None: basic.zeros_like(self, dtype)
operators.ones_like = lambda self, dtype=None: basic.ones_like(self, dtype)
operators.norm = lambda self, L, axis=None, keepdims=False: basic.norm(self, L, axis, keepdims)
operators.T = property(basic.transpose)
operators.shape = property(basic.shape)
operators.size = property(basic.size)
operators.real = property(lambda self: self)


def transpose(self, *axes):
    axes = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (list, tuple))) else axes or None
    return basic.transpose(self, axes)


operators.transpose = transpose


def reshape(self, *shape, ndim=None):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple, Variable)) and (
        not isinstance(shape[0], Variable) or shape[0].ndim == 1) else shape
    return basic.reshape(self, shape, ndim)


operators.reshape = reshape


# NumPy's functions of variables, and of arrays together with variables, give variables.
UFUNCS = dict({n: n for n in basic.names}, subtract="sub", multiply="mul", divide="true_div", true_divide="true_div",
              floor_divide="int_div", remainder="mod", power="pow", absolute="abs_", negative="neg", less="lt",
              less_equal="le", greater="gt", greater_equal="ge", equal="eq", not_equal="neq", sign="sgn",
              square="sqr", reciprocal="inv", bitwise_and="and_", bitwise_or="or_", bitwise_xor="xor",
              logical_and="and_", logical_or="or_", rint="round", matmul="dot")


def array_ufunc(self, ufunc, method, *inputs, **given):
    name = UFUNCS.get(ufunc.__name__)
    f = basic.names.get(name) or getattr(basic, name or "", None)
    if method != "__call__" or given or f is None:
        return NotImplemented
    return f(*inputs)


operators.__array_ufunc__ = array_ufunc


# ---- indexing

def entry(x, variables):
    """One entry of an index as text; variables among it go into the list."""
    if x is None or isinstance(x, (type(None),)):
        return "None"
    if x is Ellipsis:
        return "..."
    if isinstance(x, slice):
        parts = [("" if p is None else entry(p, variables)) for p in (x.start, x.stop, x.step)]
        return ":".join(parts if x.step is not None else parts[:2])
    if isinstance(x, Constant) and x.ndim == 0 and x.data.dtype.kind in "iu":
        x = int(x.data)
    if isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.bool_)):
        return str(int(x))
    if isinstance(x, (float, np.floating)):
        raise TypeError("Expected an integer as an index, not %r" % x)
    if isinstance(x, (list, tuple)) and has_variable(x):
        x = as_tensor_variable(x)
    if not isinstance(x, Variable):
        value = np.asarray(x)
        if value.size == 0 and value.dtype.kind == "f":
            value = value.astype("int64")
        if value.dtype.kind not in "iub":
            raise TypeError("an index is made of whole numbers: %r" % (x,))
        x = constant(value)
    if x.dtype.startswith("float"):
        raise TypeError("Expected an integer as an index, not %s of type %s" % (x, x.type))
    variables.append(as_tensor_variable(x))
    return "{%d}" % (len(variables) - 1)


class Index(Part):
    def part_of(self, part):
        return part.owner.inputs[0], self, part.owner.inputs[1:]


def is_softmax(v):
    """Is v a softmax along rows, or the logarithm of one?"""
    op = getattr(v.owner, "op", None)
    name = getattr(op, "name", None)
    return name in ("softmax", "logsoftmax") or name == "log" and is_softmax(v.owner.inputs[0])


def rows_of_labels(p, index):
    """p[arange(t.shape[0]), t] of a softmax has as many labels as rows, as Theano's cross-entropy asks when it is called.  Said
    so, the library knows a cross-entropy where sizes are known to calls alone."""
    t = index[-1]
    if len(index) == 2 and all(isinstance(v, Variable) and v.ndim == 1 for v in index) and not t.broadcastable[0] and (
            p.broadcastable[:-1] == (False,) and t.dtype.startswith(("int", "uint")) and is_softmax(p)) and (
            index[0]._node == basic.arange(t.shape[0])._node):
        return basic.arange(p.shape[0]), t
    return index


def getitem(self, index):
    if isinstance(index, list) and [i for i in index if i is None or i is Ellipsis or isinstance(i, slice)]:
        index = tuple(index)  # as NumPy had it
    index = index if isinstance(index, tuple) else (index,)
    index = rows_of_labels(self, index)
    used = [i for i in index if i is not None and i is not Ellipsis]
    if len(used) > self.ndim and not [i for i in used if getattr(i, "ndim", 0) > 1]:
        raise IndexError("too many indices for array")
    variables = []
    text = ", ".join([entry(i, variables) for i in index]) or "..."
    return Index("Subtensor", text)(self, *variables)


operators.__getitem__ = getitem
operators.set = lambda self, y: basic.set_subtensor(self, y)
operators.inc = lambda self, y: basic.inc_subtensor(self, y)

"""Monochord: an optimizing compiler for tensor expressions.

    import monochord as mc
    x, t = mc.input("x", "float32", 2), mc.input("t", "int32", 1)
    W, b = mc.shared("W", zeros(784, 10)), mc.shared("b", zeros(10))
    cost = mc.mean(mc.crossentropy_softmax_1hot(x @ W + b, t))
    train = mc.function([x, t], cost, updates={W: W - 0.1 * mc.grad(cost, W), b: b - 0.1 * mc.grad(cost, b)})

Every op of docs/ops.md is a function here, and a method of nodes.  Formulas are text: mc.formula("softmax(x @ W + b)").
"""
from ._monochord import (ArgumentError, Array, BoundsError, CheckError, CompilerError, DeviceError,  # noqa: F401
                         DtypeError, Error, FileError, FormatError, FormulaError, GradientError, InternalError,
                         OutOfMemory, ShapeError, UnsupportedError, flag_get, flag_set, load, op_names, save,
                         synchronize, version)
from .graph import (Graph, Node, Shared, formula, function, grad, input, load_function, random,  # noqa: F401
                    reset, shared)
from .net import Net  # noqa: F401

__version__ = version


def __getattr__(name):
    from .graph import op_of
    return op_of(name)


def __dir__():
    return sorted(set(globals()) | {name for name in op_names() if not name.startswith("_")})

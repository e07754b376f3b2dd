"""theano.tensor: tensors, their functions, and constructors of variables."""
from ..core import (Constant, TensorConstant, TensorType, TensorVariable, Variable,  # noqa: F401
                    as_tensor_variable, constant, missing)
from ..core import Elemwise  # noqa: F401
from ..config import config
from . import basic
from .basic import *  # noqa: F401,F403
from . import methods  # noqa: F401
from ..gradient import grad, Lop, Rop, jacobian, hessian, verify_grad, consider_constant  # noqa: F401

globals().update(basic.names)
sum, prod, max, min, any, all, round, abs = (basic.sum, basic.prod, basic.max, basic.min, basic.any, basic.all,
                                             basic.round, basic.names["abs_"])
as_tensor = as_tensor_variable
newaxis = None
inf = float("inf")

# ---- constructors: matrix, imatrix, matrices, imatrices, ...

LETTERS = {"": None, "f": "float32", "d": "float64", "b": "int8", "w": "int16", "i": "int32", "l": "int64"}
SHAPES = {"scalar": (), "vector": (False,), "row": (True, False), "col": (False, True), "matrix": (False,) * 2,
          "tensor3": (False,) * 3, "tensor4": (False,) * 4, "tensor5": (False,) * 5, "tensor6": (False,) * 6, "tensor7": (False,) * 7}
PLURALS = {"scalar": "scalars", "vector": "vectors", "row": "rows", "col": "cols", "matrix": "matrices",
           "tensor3": "tensor3s", "tensor4": "tensor4s", "tensor5": "tensor5s", "tensor6": "tensor6s", "tensor7": "tensor7s"}


def constructors(letter, shape):
    dtype, broadcastable = LETTERS[letter], SHAPES[shape]

    def one(name=None, dtype=dtype):
        return TensorType(dtype or config.floatX, broadcastable)(name)

    def many(*names, **given):
        if len(names) == 1:
            names = [None] * names[0] if isinstance(names[0], int) else names[0]
        made = [one(n, **given) for n in names]
        return made[0] if len(made) == 1 else made
    one.__name__, many.__name__ = letter + shape, letter + PLURALS[shape]
    if dtype:
        globals()[letter + shape] = TensorType(dtype, broadcastable)
        one = globals()[letter + shape]
    else:
        globals()[shape] = one
    globals()[letter + PLURALS[shape]] = many


for letter in LETTERS:
    for shape_name in SHAPES:
        constructors(letter, shape_name)


def tensor(dtype=None, broadcastable=None, name=None):
    return TensorType(dtype or config.floatX, broadcastable)(name)


int_types = bscalar, wscalar, iscalar, lscalar  # noqa: F821
float_types = fscalar, dscalar  # noqa: F821
discrete_dtypes = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
continuous_dtypes = float_dtypes = ("float16", "float32", "float64")
integer_dtypes = int_dtypes = discrete_dtypes[1:]
all_dtypes = discrete_dtypes + continuous_dtypes


def get_scalar_constant_value(v, *unused, **also):
    v = as_tensor_variable(v)
    if not isinstance(v, Constant) or v.data.size != 1:
        raise NotScalarConstantError(v)
    return v.data.reshape(())


class NotScalarConstantError(Exception):
    """A variable whose value is not known when the graph is built."""


class EmptyConstantError(NotScalarConstantError):
    pass


class ShapeError(Exception):
    pass


class var:
    """theano.tensor.var"""
    from ..core import operators as _tensor_py_operators
    TensorVariable, TensorConstant = TensorVariable, TensorConstant


variance = basic.var
var_module, var = var, basic.var
from . import nnet, signal, extra_ops, raw_random, shared_randomstreams, xlogx, opt, type, nlinalg, slinalg, fft, subtensor, elemwise, blas  # noqa: E402,F401
from .extra_ops import bincount, fill_diagonal_offset, ravel_multi_index, unravel_index  # noqa: E402,F401
from .sharedvar import shared as _shared  # noqa: E402,F401
from .sharedvar import TensorSharedVariable  # noqa: E402,F401

__getattr__ = missing("theano.tensor")

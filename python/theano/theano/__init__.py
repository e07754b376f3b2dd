"""Theano's interface over Monochord: import theano, and the program runs.

docs/theano.md says what is the same, what differs, and what is refused.
"""
import numpy

from .core import (Apply, Constant, Op, TensorType, TensorVariable, Type, Variable, as_tensor_variable,  # noqa: F401
                   missing)
from .config import changed, config  # noqa: F401
from .sharedvar import SharedVariable, shared  # noqa: F401
from . import gradient  # noqa: F401
from . import compile, gof, tensor, scan_module, scalar, printing, sandbox, gpuarray, misc, ifelse  # noqa: F401
from .compile import (In, Mode, Out, Param, function, function_dump, DebugMode, OpFromGraph,  # noqa: F401
                      NanGuardMode)
from .compile.clone import clone  # noqa: F401
from .gradient import Lop, Rop, grad, subgraph_grad  # noqa: F401
from .printing import pp  # noqa: F401
from .scan_module import foldl, foldr, map, reduce, scan, scan_checkpoints  # noqa: F401

__version__ = version = "0.9.0"


def change_flags(*unused, **flags):
    """Flags for a block, or for a function: change_flags(floatX="float32"); dots of names are __."""
    return changed({k.replace("__", "."): v for k, v in flags.items()})


def _asarray(a, dtype, order=None):
    return numpy.asarray(a, dtype=config.floatX if dtype == "floatX" else dtype, order=order)


def sparse_grad(x):
    return x


def dot(a, b):
    return tensor.dot(a, b)


__getattr__ = missing("theano")

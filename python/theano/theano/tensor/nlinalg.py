"""Linear algebra, by the library's ops of the same names."""
import numpy as np

from ..core import Library, as_tensor_variable, attributes, library, missing
from . import basic
from .basic import alloc_diag, diag, extract_diag, trace  # noqa: F401


def several(name, nout, x, **given):
    return Library(name, attributes(given), nout)(as_tensor_variable(x))


def matrix_inverse(x):
    return library("matrix_inverse", x)


def pinv(x):
    return library("pinv", x)


def det(x):
    return library("det", x)


def eig(x):
    """Real eigenvalues and eigenvectors; complex ones are an error of the call."""
    return several("eig", 2, x)


def eigh(a, UPLO="L"):
    return several("eigh", 2, a, UPLO=UPLO)


def qr(a, mode="reduced"):
    q, r = several("qr", 2, a, mode="complete" if mode == "complete" else "reduced")
    return r if mode == "r" else [q, r]


def svd(a, full_matrices=1, compute_uv=1):
    if not compute_uv:
        return library("svdvals", a)
    return several("svd", 3, a, full_matrices=bool(full_matrices))


def matrix_dot(*args):
    return library("matrix_dot", *basic.promoted([as_tensor_variable(a) for a in args]))


def matrix_power(M, n):
    return library("matrix_power", M, n=n)


def norm(x, ord):
    x = as_tensor_variable(x)
    if x.ndim == 1:
        order = 2 if ord in (None, "fro") else ord
        return library("norm", x, ord=float(order)) if np.isfinite(order) else (
            basic.max if order > 0 else basic.min)(abs(x))
    if x.ndim != 2:
        raise NotImplementedError("norm: of vectors and matrices, not of %d axes" % x.ndim)
    if ord in (None, "fro", "nuc", 2, -2):
        return library("matrix_norm", x, ord=str(ord or "fro"))
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(0)
    sums = basic.sum(abs(x), axis=0 if abs(ord) == 1 else 1)
    return basic.max(sums) if ord > 0 else basic.min(sums)


def lstsq(x, y, rcond=-1):
    given = {} if rcond in (None, -1) else {"rcond": rcond}
    return Library("lstsq", attributes(given), 4)(*basic.promoted([as_tensor_variable(x), as_tensor_variable(y)]))


def op_of(f):
    """The class of an op of Theano, whose instances are called like f."""
    return lambda *given, **more: lambda *tensors: f(*tensors, *given, **more)


MatrixInverse, MatrixPinv, Det, Eig, Eigh = [op_of(f) for f in (matrix_inverse, pinv, det, eig, eigh)]
__getattr__ = missing("theano.tensor.nlinalg")

"""Linear algebra that Theano takes from SciPy, by the library's ops."""
from ..core import as_tensor_variable, library, missing
from .basic import promoted
from .nlinalg import op_of


def pair(a, b):
    return promoted([as_tensor_variable(a), as_tensor_variable(b)])


def cholesky(x, lower=True):
    return library("cholesky", x, lower=bool(lower))


def solve_lower_triangular(a, b):
    return library("solve_triangular", *pair(a, b), lower=True)


def solve_upper_triangular(a, b):
    return library("solve_triangular", *pair(a, b), lower=False)


def solve(a, b, A_structure="general", lower=False, **unused):
    if A_structure.endswith("_triangular"):
        return library("solve_triangular", *pair(a, b), lower=A_structure.startswith("lower"))
    return library("solve", *pair(a, b))


def eigvalsh(a, b=None, lower=True):
    if b is not None:
        raise NotImplementedError("eigvalsh: of one matrix; docs/theano.md")
    return library("eigvalsh", a, UPLO="L" if lower else "U")


def kron(a, b):
    return library("kron", *pair(a, b))


def expm(x):
    return library("expm", x)


Cholesky, Expm = op_of(cholesky), op_of(expm)


def Solve(A_structure="general", lower=False, overwrite_A=False, overwrite_b=False):
    return lambda a, b: solve(a, b, A_structure)


__getattr__ = missing("theano.tensor.slinalg")

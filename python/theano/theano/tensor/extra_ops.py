from ..core import Library, as_tensor_variable, library, missing, promoted
from .basic import (bartlett, compress, cumprod, cumsum, fill_diagonal, repeat, squeeze, to_one_hot)  # noqa: F401
from . import basic
from .basic import names


def diff(x, n=1, axis=-1):
    for _ in range(n):
        at = [slice(None)] * x.ndim
        low, high = list(at), list(at)
        low[axis], high[axis] = slice(None, -1), slice(1, None)
        x = x[tuple(high)] - x[tuple(low)]
    return x


def bincount(x, weights=None, minlength=None, assert_nonneg=False):
    """How often each number occurs: as many as the largest says, or minlength."""
    n = basic.max(x) + 1
    n = n if minlength is None else basic.names["maximum"](n, minlength)
    counts = basic.zeros((basic.cast(n, "int64"),), dtype="int64" if weights is None else weights.dtype)
    return basic.inc_subtensor(counts[x], 1 if weights is None else weights)


def searchsorted(x, v, side="left", sorter=None):
    x, v = promoted([as_tensor_variable(x), as_tensor_variable(v)])
    x = x if sorter is None else basic.take(x, sorter)
    return library("searchsorted", x, v, side=side)


def sizes_in(dims, order):
    """A shape, as the library takes it for the order of elements."""
    dims = basic.shape_vector(dims)
    if order not in ("C", "F"):
        raise ValueError("order must be 'C' or 'F', not %r" % (order,))
    return dims if order == "C" else dims[::-1]


def unravel_index(indices, dims, order="C", ndim=None):
    """An index for each axis, from indices into the elements of a shape."""
    n = basic.get_vector_length(basic.shape_vector(dims)) if ndim is None else ndim
    made = Library("unravel_index", "", n)(basic.cast(as_tensor_variable(indices), "int64"), sizes_in(dims, order))
    made = made if isinstance(made, list) else [made]
    return tuple(made if order == "C" else made[::-1])


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """Indices into the elements of a shape, from an index for each axis."""
    index = [basic.cast(as_tensor_variable(i), "int64") for i in multi_index]
    return library("ravel_multi_index", sizes_in(dims, order), *(index if order == "C" else index[::-1]), mode=mode)


def fill_diagonal_offset(a, val, offset):
    return library("fill_diagonal_offset", a, val, basic.cast(as_tensor_variable(offset), "int64"))


unique = names["unique"]
cpu_contiguous = lambda x: x  # noqa: E731
__getattr__ = missing("theano.tensor.extra_ops")

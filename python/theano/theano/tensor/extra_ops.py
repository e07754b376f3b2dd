from ..core import missing
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


unique = names["unique"]
cpu_contiguous = lambda x: x  # noqa: E731
__getattr__ = missing("theano.tensor.extra_ops")

"""Pooling.  Of equal maxima of a window each receives the gradient, as in Theano on a CPU."""
from ...core import Variable, as_tensor_variable, library, missing
from ..basic import shape_vector
from ..nnet import per_axis


def axes(x, nd):
    """A number for each axis, or a variable of them."""
    if isinstance(x, Variable) and x.ndim == 1:
        return x
    return list(x) if isinstance(x, (tuple, list)) else [x] * nd


def pooling(op, nd, **more):
    def pool(input, ws=None, ignore_border=None, stride=None, pad=(0,) * nd, mode="max", ds=None, st=None,
             padding=None):
        ws, stride = ws if ws is not None else ds, stride if stride is not None else st
        pad = padding if padding is not None else pad
        if ws is None:
            raise ValueError("pooling needs ws, the size of its windows")
        x = as_tensor_variable(input)
        if x.ndim < nd:
            raise NotImplementedError("%s requires a dimension >= %d" % (op, nd))
        if mode not in ("max", "sum", "average_inc_pad", "average_exc_pad"):
            raise ValueError("Pool mode parameter only support 'max', 'sum', 'average_inc_pad' and "
                             "'average_exc_pad'. Got %s" % mode)
        ws, stride, pad = [axes(v, nd) for v in (ws, ws if stride is None else stride, (0,) * nd if pad is None else pad)]
        known = [v for v in pad if not isinstance(v, Variable)] if isinstance(pad, list) else []
        if any(known) and not ignore_border:
            raise NotImplementedError("padding works only with ignore_border=True")
        if known and isinstance(ws, list) and [p for p, w in zip(pad, ws) if not isinstance(w, Variable) and p >= w]:
            raise NotImplementedError("padding must be smaller than the window")
        return library(op, x, *[shape_vector(v) for v in (ws, stride, pad)], ignore_border=bool(ignore_border),
                       mode=mode, ties="all", **more)
    pool.__name__ = op
    return pool


pool_2d, pool_3d = pooling("pool_2d", 2), pooling("pool_3d", 3)


def max_pool_2d(input, ds, ignore_border=None, st=None, padding=(0, 0), mode="max"):
    return pool_2d(input, ds, ignore_border, st, padding, mode)


def max_pool_2d_same_size(input, patch_size):
    return library("max_pool_2d_same_size", input, shape_vector(per_axis(patch_size, 2)))


class Pool:
    """Pool(ignore_border, mode, ndim)(x, ws, stride, pad), or with the sizes first, as before."""

    def __init__(self, ds=None, ignore_border=False, st=None, padding=None, mode="max", ndim=2, **unused):
        if isinstance(ds, bool):
            ds, ignore_border = None, ds
        if ds is not None:
            ndim = len(ds)
        self.pool = pooling("pool", ndim, axis=list(range(-ndim, 0)))
        self.given, self.sizes = dict(ignore_border=ignore_border, mode=mode), (ds, st, padding)

    def __call__(self, x, ws=None, stride=None, pad=None):
        given = [ours if ours is not None else first for ours, first in zip((ws, stride, pad), self.sizes)]
        return self.pool(x, given[0], stride=given[1], pad=given[2], **self.given)

    @staticmethod
    def out_shape(imgshape, ws=None, ignore_border=False, stride=None, pad=(0, 0), ndim=2, ds=None, st=None,
                  padding=None):
        ws, stride, pad = ws or ds, stride or st or ws or ds, padding or pad

        def size(i, w, s, p):
            if ignore_border:
                return max(0, (i + 2 * p - w) // s + 1)
            return (i - 1) // s + 1 if s >= w else max(0, (i - 1 - w + s) // s) + 1
        spatial = [size(*v) for v in zip(imgshape[-ndim:], ws, stride, pad)]
        return list(imgshape[:-ndim]) + spatial


DownsampleFactorMax = Pool
__getattr__ = missing("theano.tensor.signal.pool")

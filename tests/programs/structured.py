"""structured.py: what each op does to whole tensors, in NumPy alone.  OPS has a function for each name that a formula
may call; ops that the manual defines as formulas of others are read from there (formula.py)."""
import itertools

import numpy as np

from .scalar import TABLE, scalar, where
from .value import (EPS, LARGE, REAL, State, Unsure, V, cast, constant, element, errors, exact, is_float, linear, make, meet, move,
                    promote, tie, to_float)

OPS = {}


def op(f):
    OPS[f.__name__.rstrip("_") if f.__name__ in ("max_", "min_", "sum_", "any_", "all_", "round_") else f.__name__] = f
    return f


def T(x):
    """A tensor of what stands in a formula: also of lists of tensors and numbers."""
    if isinstance(x, V):
        return x
    if isinstance(x, (list, tuple)):
        flat = [T(i) if isinstance(i, (V, list, tuple)) else i for i in x]
        if any(isinstance(i, V) for i in flat):
            return stack(*flat)
    return constant(x)


def integer(x):
    return int(x)


def ints(x):
    if isinstance(x, V):
        if x.e is not None:
            raise Unsure("sizes that rounding decides")
        return [int(i) for i in np.atleast_1d(x.v)]
    return [int(i) for i in (x if isinstance(x, (list, tuple)) else [x])]


def axes_of(x, axis):
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(a % x.ndim for a in ints(axis))


def count_of(x, axes):
    n = 1
    for a in axes:
        n *= x.v.shape[a]
    return n


# ---- over axes

def summed(dt):
    return dt if is_float(dt) else "uint64" if dt.startswith("uint") else "int64"


def passed_on(x, dt):
    """x as dt; the kernel that made it may pass it on as it was."""
    y = cast(x, dt)
    with np.errstate(all="ignore"):
        lost = np.abs(y.v - x.v).astype(np.float64)
    return y if y.e is None and not np.any(lost > 0) else V(y.v, errors(y) + np.where(np.isnan(lost), 0, lost), dt)


@op
def sum_(x, axis=None, keepdims=False, dtype=None, acc_dtype=None):
    x = T(x)
    dt = dtype or summed(x.dt)
    axes = axes_of(x, axis)
    if is_float(dt) and not is_float(x.dt):
        x = cast(x, dt)
    if not is_float(dt):
        x = cast(x, dt)
    if acc_dtype and not is_float(dt):
        raise Unsure("integers in another dtype")
    if not axes:
        return cast(cast(x, acc_dtype) if acc_dtype and is_float(acc_dtype) else x, dt)
    if acc_dtype and EPS[acc_dtype] > EPS[dt]:
        s = OPS["sum"](cast(x, acc_dtype), axes, keepdims)
        return cast(s, dt)
    wide = max(acc_dtype or dt, dt, key=lambda d: {"float16": 1, "bfloat16": 1, "float32": 2}.get(d, 3)) if is_float(dt) else dt
    f = lambda a: np.sum(a, axis=axes, keepdims=keepdims)
    n = count_of(x, axes)
    if is_float(dt) and x.dt in ("float16", "bfloat16"):
        wide = "float32" if wide in ("float16", "bfloat16") else wide
    if is_float(wide) and wide != dt:
        s = linear(f, wide, V(x.v, x.e, wide), ulps=2, count=n)
        return passed_on(s, dt)
    return linear(f, dt, x, ulps=2, count=n)


def overflows_in_part(product, v, dt):
    """A derivative multiplies products of some factors: of those larger than 1 the product may overflow where the rest are 0."""
    if is_float(dt):
        with np.errstate(all="ignore"):
            tie(product(np.maximum(np.abs(v), 1).astype(REAL)) > LARGE[dt])


@op
def prod(x, axis=None, keepdims=False, dtype=None, acc_dtype=None):
    x = T(x)
    dt = dtype or summed(x.dt)
    axes = axes_of(x, axis)
    if acc_dtype and (not is_float(dt) or EPS[acc_dtype] > EPS[dt]):
        raise Unsure("a product in another dtype")
    x = cast(x, dt)
    if not axes:
        return x
    f = lambda a: np.prod(a, axis=axes, keepdims=keepdims)
    y = f(x.v)
    overflows_in_part(f, x.v, dt)
    if not is_float(dt):
        return make(y, None if x.e is None else np.where(np.any(errors(x) > 0, axis=axes, keepdims=keepdims), np.inf, 0), dt)
    if x.e is None and exact(y, dt) and exact(x.v, dt):
        return make(y, None, dt, whole=True)
    e = f(np.abs(x.v) + errors(x)) - f(np.abs(x.v))
    return make(y, e.astype(np.float64), dt, ulps=1 + count_of(x, axes))


def extreme(f, better):
    def g(x, axis=None, keepdims=False):
        x, axes = T(x), axes_of(T(x), axis)
        if not axes:
            return x
        if count_of(x, axes) == 0:
            raise Unsure("the largest of nothing")
        e = None if x.e is None else np.max(errors(x), axis=axes, keepdims=keepdims)
        v = f(x.v, axis=axes, keepdims=keepdims)
        if is_float(x.dt):
            best = f(x.v, axis=axes, keepdims=True)
            tie(np.sum(np.abs(x.v - best) <= 16 * EPS[x.dt] * np.abs(best), axis=axes) > 1)
        y = V(np.asarray(v), None if e is None else np.asarray(e), x.dt)
        y.peak = x.v, axes
        return y
    return g


OPS["max"], OPS["min"] = extreme(np.max, 1), extreme(np.min, -1)


def lines(x, axes):
    """x with these axes behind the others, as one."""
    rest = [a for a in range(x.ndim) if a not in axes]
    t = move(lambda v: np.transpose(v, rest + list(axes)), x)
    shape = tuple(x.v.shape[a] for a in rest)
    return move(lambda v: v.reshape(shape + (count_of(x, axes),)), t), rest


def arg_extreme(sign):
    def g(x, axis=None, keepdims=False):
        x, axes = T(x), sorted(axes_of(T(x), axis))
        if count_of(x, axes) == 0:
            raise Unsure("the largest of nothing")
        y, _ = lines(x, axes)
        i = np.argmax(y.v, axis=-1) if sign > 0 else np.argmin(y.v, axis=-1)
        e = None
        if x.e is not None:
            best = np.take_along_axis(y.v, i[..., None], -1)
            off = errors(y)
            near = np.abs(y.v - best) <= off + np.take_along_axis(off, i[..., None], -1)
            e = np.where((near.sum(axis=-1) > 1) & (off.max(axis=-1) > 0), np.inf, 0.0)
            e = np.where(np.isinf(off).any(axis=-1), np.inf, e)
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.v.shape)) if keepdims else i.shape
        return make(i.astype(np.int64).reshape(shape), None if e is None else e.reshape(shape), "int64")
    return g


OPS["argmax"], OPS["argmin"] = arg_extreme(1), arg_extreme(-1)


@op
def any_(x, axis=None, keepdims=False):
    x = cast(T(x), "bool")
    axes = axes_of(x, axis)
    e = x.e if x.e is None else np.any(x.e > 0, axis=axes, keepdims=keepdims)
    return make(np.any(x.v, axis=axes, keepdims=keepdims), None if x.peak == (None, axes) else e, "bool")


@op
def all_(x, axis=None, keepdims=False):
    x = cast(T(x), "bool")
    axes = axes_of(x, axis)
    return make(np.all(x.v, axis=axes, keepdims=keepdims), x.e if x.e is None else np.any(x.e > 0, axis=axes, keepdims=keepdims), "bool")


def running(f, is_sum):
    def g(x, axis=None):
        x = T(x)
        if axis is None:
            x, axis = move(np.ravel, x), 0
        dt = summed(x.dt)
        x = cast(x, dt)
        if is_sum:
            return linear(lambda a: np.cumsum(a, axis=axis, dtype=a.dtype), dt, x, ulps=2, count=4 * max(x.v.shape[axis], 1))
        y = np.cumprod(x.v, axis=axis, dtype=x.v.dtype)
        overflows_in_part(lambda a: np.cumprod(a, axis=axis), x.v, dt)
        if not is_float(dt):
            return make(y, None if x.e is None else np.full(y.shape, np.inf), dt)
        if x.e is None and exact(y, dt) and exact(x.v, dt):
            return make(y, None, dt, whole=True)
        e = np.cumprod(np.abs(x.v) + errors(x), axis=axis) - np.cumprod(np.abs(x.v), axis=axis)
        return make(y, e.astype(np.float64), dt, ulps=1 + x.v.shape[axis])
    return g


OPS["cumsum"], OPS["cumprod"] = running(np.cumsum, True), running(np.cumprod, False)


# ---- shapes

@op
def dimshuffle(x, order):
    x, order = T(x), ints(order)
    keep = [a for a in order if a >= 0]
    gone = [a for a in range(x.ndim) if a not in keep]

    def f(v):
        v = np.transpose(v, keep + gone).reshape([v.shape[a] for a in keep])
        return v.reshape([1 if a < 0 else x.v.shape[a] for a in order])
    if any(x.v.shape[a] != 1 for a in gone):
        raise Unsure("an axis left out that is not 1")
    return move(f, x)


@op
def reshape(x, shape, ndim=None):
    x, shape = T(x), ints(shape)
    return move(lambda v: v.reshape(shape), x)


@op
def shape(x):
    return T(x).shape


@op
def size(x, axis=None):
    return V(np.asarray(T(x).v.shape[int(axis)], np.int64), None, "int64")


@op
def count(x, axis=None):
    return V(np.asarray(count_of(T(x), axes_of(T(x), axis)), np.int64), None, "int64")


@op
def specify_shape(x, sizes):
    if any(s not in (-1, n) for s, n in zip(ints(sizes), T(x).v.shape)):
        raise Unsure("a broken promise")
    return T(x)


@op
def transpose(x, axes=None):
    return move(lambda v: np.transpose(v, None if axes is None else ints(axes)), T(x))


@op
def swapaxes(x, a, b):
    return move(lambda v: np.swapaxes(v, int(a), int(b)), T(x))


@op
def expand_dims(x, axis):
    return move(lambda v: np.expand_dims(v, tuple(ints(axis))), T(x))


@op
def shape_padleft(x, n=1):
    return move(lambda v: v.reshape((1,) * n + v.shape), T(x))


@op
def shape_padright(x, n=1):
    return move(lambda v: v.reshape(v.shape + (1,) * n), T(x))


@op
def shape_padaxis(x, axis):
    return expand_dims(x, axis)


@op
def squeeze(x, axis=None):
    if axis is None:
        raise Unsure("which axes depends on what is known of the sizes")
    return move(lambda v: np.squeeze(v, tuple(ints(axis))), T(x))


@op
def flatten(x, ndim=1):
    return move(lambda v: v.reshape(v.shape[:ndim - 1] + (-1,) if v.size else v.shape[:ndim - 1] + (int(np.prod(v.shape[ndim - 1:])),)), T(x))


@op
def addbroadcast(x, axis):
    if any(T(x).v.shape[a] != 1 for a in ints(axis)):
        raise Unsure("a broken promise")
    return T(x)


@op
def unbroadcast(x, axis):
    return T(x)


# ---- side by side

def together(xs):
    xs = [T(x) for x in (xs[0] if len(xs) == 1 and isinstance(xs[0], (list, tuple)) else xs)]
    dt = xs[0].dt
    for x in xs[1:]:
        dt = promote(dt, x.dt)
    return [cast(x, dt) for x in xs]


@op
def join(*xs, axis=0):
    return move(lambda *v: np.concatenate(v, axis=axis), *together(xs))


@op
def stack(*xs, axis=0):
    if len(xs) == 1 and isinstance(xs[0], (list, tuple)):
        xs = xs[0]
    if not all(isinstance(x, V) for x in xs):
        xs, _ = meet([x if isinstance(x, V) else x for x in xs])
    return move(lambda *v: np.stack(v, axis=axis), *together(xs))


OPS["concatenate"] = join
OPS["vertical_stack"] = lambda *xs: join(*xs, axis=0)
OPS["horizontal_stack"] = lambda *xs: join(*xs, axis=1)


@op
def split(x, sizes, axis=0):
    at = np.cumsum(ints(sizes))[:-1]
    if sum(ints(sizes)) != T(x).v.shape[axis]:
        raise Unsure("parts that are not the whole")
    return [move(lambda v, i=i: np.split(v, at, axis=axis)[i], T(x)) for i in range(len(ints(sizes)))]


@op
def roll(x, shift, axis=None):
    return move(lambda v: np.roll(v, int(shift), axis=axis), T(x))


@op
def tile(x, reps):
    x, reps = T(x), ints(reps)
    return move(lambda v: np.tile(v, reps), x)


@op
def repeat(x, n, axis=None):
    return move(lambda v: np.repeat(v, int(n), axis=axis), T(x))


@op
def alloc(x, shape):
    return move(lambda v: np.array(np.broadcast_to(v, ints(shape))), T(x))


@op
def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if isinstance(stop, V) and is_float(stop.dt) and stop.e is None and stop.v.ndim == 0 and isinstance(start, int) and isinstance(step, int):
        y = V(np.arange(start, float(stop.v), step).astype(REAL), None, stop.dt)
        return cast(y, dtype) if dtype else y
    if not all(isinstance(i, (int, np.integer)) or isinstance(i, V) and not is_float(i.dt) for i in (start, stop, step)):
        raise Unsure("a range of floats")
    y = V(np.arange(int(start), int(stop), int(step), dtype=np.int64), None, "int64")
    return cast(y, dtype) if dtype else y


def grids(xs, indexing, sparse):
    v = [T(x) for x in xs]
    out = np.meshgrid(*[np.arange(x.v.size) for x in v], indexing=indexing, sparse=sparse)
    return [move(lambda a, i=i: a[i], x) for x, i in zip(v, out)]


@op
def meshgrid(*xs, indexing="xy", sparse=False):
    return grids(xs, indexing, sparse)


# ---- at indices

@op
def take(x, index, axis=None, mode="raise"):
    x, i = T(x), T(index)
    if i.e is not None:
        raise Unsure("an index that rounding decides")
    if i.v.size and 0 in (x.v.size, 1 if axis is None else x.v.shape[axis]):
        raise Unsure("an element of nothing")
    if mode == "raise" and i.v.size:
        n = x.v.size if axis is None else x.v.shape[axis]
        if np.any(i.v.astype(object) >= n) or np.any(i.v.astype(object) < -n):
            raise Unsure("an index out of range")
    return move(lambda v: np.take(v, i.v.astype(np.int64), axis=axis, mode=mode), x)


def index_of(i, for_numpy=True):
    if isinstance(i, tuple):
        return tuple(index_of(j) for j in i)
    if isinstance(i, slice):
        return slice(*[None if j is None else int(j) for j in (i.start, i.stop, i.step)])
    if isinstance(i, V):
        if i.e is not None:
            raise Unsure("an index that rounding decides")
        return i.v if i.dt == "bool" else int(i.v) if i.ndim == 0 else i.v.astype(np.int64)
    if isinstance(i, list) and i and all(isinstance(j, V) and j.ndim for j in i):
        return tuple(index_of(j) for j in i)
    return np.asarray(i, np.int64) if isinstance(i, list) else i


class Part(V):
    """x[i], which can be set."""
    __slots__ = ("whole", "index")


def get_item(x, i):
    i = index_of(i)
    y = move(lambda v: np.array(v[i]), x)
    part = Part(y.v, y.e, y.dt)
    part.whole, part.index = x, i
    return part


@op
def set_subtensor(part, y):
    x, i, y = part.whole, part.index, cast_fitting(y, part.dt)

    def f(v, u):
        v = np.array(v)
        v[i] = u
        return v
    if any(isinstance(j, np.ndarray) and j.dtype != bool for j in (i if isinstance(i, tuple) else (i,))):
        hits = np.zeros(x.v.shape, np.int64)
        np.add.at(hits, i, 1)
        if np.any(hits > 1):
            raise Unsure("set twice")
    return move(f, x, y)


def cast_fitting(y, dt):
    y = y if isinstance(y, V) else constant(y, dt) if not isinstance(y, list) else T(y)
    if promote(y.dt, dt) != dt:
        raise Unsure("would be rounded")
    return cast(y, dt)


@op
def inc_subtensor(part, y):
    x, i, y = part.whole, part.index, cast_fitting(y, part.dt)
    if x.dt == "bool":
        raise Unsure("bools are not increased")

    def f(v, u):
        v = np.array(v)
        np.add.at(v, i, u)
        return v
    return linear(f, x.dt, x, y, ulps=3, count=y.v.size)


@op
def nonzero(x):
    tie(is_float(T(x).dt) and T(x).v == 0)
    x = cast(T(x), "bool")
    if x.e is not None:
        raise Unsure("rounding decides")
    return [V(i.astype(np.int64), None, "int64") for i in np.nonzero(x.v)]


@op
def compress(c, x, axis=None):
    c = cast(T(c), "bool")
    if c.e is not None:
        raise Unsure("rounding decides")
    if c.v.size > (T(x).v.size if axis is None else T(x).v.shape[axis]):
        raise Unsure("choices beyond the end")
    return move(lambda v: np.compress(c.v, v, axis=axis), T(x))


@op
def flatnonzero(x):
    return nonzero(move(np.ravel, T(x)))[0]


# ---- products

def product_dtype(a, b):
    dt = promote(a.dt, b.dt)
    return dt, cast(a, dt), cast(b, dt)


def product(f, a, b, n):
    a, b = T(a), T(b)
    dt, a, b = product_dtype(a, b)
    if dt == "bool":
        y = f(a.v.astype(np.int64), b.v.astype(np.int64)) != 0
        return make(y, None if a.e is None and b.e is None else np.full(y.shape, np.inf), dt)
    if dt in ("float16", "bfloat16"):
        y = linear(f, "float32", V(a.v, a.e, "float32"), V(b.v, b.e, "float32"), ulps=2, count=n)
        return passed_on(y, dt)
    return linear(f, dt, a, b, ulps=2, count=n)


@op
def dot(a, b):
    a, b = T(a), T(b)
    n = a.v.shape[-1] if a.ndim else 1
    return product(np.dot, a, b, n)


@op
def batched_dot(a, b):
    a, b = T(a), T(b)
    if a.ndim == 3 and b.ndim == 3:
        return product(np.matmul, a, b, a.v.shape[-1])
    if a.v.shape[0] != b.v.shape[0]:
        raise Unsure("a batch of one and a rank of two")
    letters = "ij" if a.ndim == 2 else "imj"
    other = "ij" if b.ndim == 2 else "ijn"
    out = "i" + letters.replace("i", "").replace("j", "") + other.replace("i", "").replace("j", "")
    return product(lambda x, y: np.einsum(f"{letters},{other}->{out}", x, y), a, b, a.v.shape[-1])


@op
def matmul(a, b):
    a, b = T(a), T(b)
    return product(np.matmul, a, b, a.v.shape[-1])


@op
def tensordot(a, b, axes=2, axes_b=None):
    a, b = T(a), T(b)
    ax = axes if isinstance(axes, int) else ints(axes)
    if axes_b is None:
        n = ax if isinstance(ax, int) else ax[0]
        return product(lambda x, y: np.tensordot(x, y, n), a, b, int(np.prod(a.v.shape[a.ndim - n:])))
    return product(lambda x, y: np.tensordot(x, y, (ax, ints(axes_b))), a, b, int(np.prod([a.v.shape[i] for i in ax])))


# ---- matrices

@op
def diagonal(x, offset=0, axis1=0, axis2=1):
    return move(lambda v: np.array(np.diagonal(v, offset, axis1, axis2)), T(x))


@op
def diag(x, k=0):
    return move(lambda v: np.array(np.diag(v, k)), T(x))


@op
def trace(x, offset=0, axis1=0, axis2=1):
    return sum_(diagonal(x, offset, axis1, axis2), axis=-1)


@op
def kron(a, b):
    a, b = T(a), T(b)
    r = max(a.ndim, b.ndim)
    a, b = shape_padleft(a, r - a.ndim), shape_padleft(b, r - b.ndim)
    dims = [m * n for m, n in zip(a.v.shape, b.v.shape)]
    far = [move(lambda v, i=i: np.expand_dims(v, tuple(range(1 - i, 2 * r, 2))), x) for i, x in ((0, a), (1, b))]
    return move(lambda v: v.reshape(dims), scalar("mul", *far))


def solution(a, b):
    """Of a x = b, with what rounding may change: |inverse| (errors + n |a| |x|)."""
    if a.dt not in ("float32", "float64") or a.dt != b.dt:
        raise Unsure("linear algebra in other dtypes")
    if not (np.isfinite(a.v).all() and np.isfinite(b.v).all()):
        raise Unsure("a matrix that is not finite")
    wide = a.v.astype(np.float64)
    try:
        inverse = np.abs(np.linalg.inv(wide))
        y = np.linalg.solve(wide, b.v.astype(np.float64))
    except np.linalg.LinAlgError:
        raise Unsure("a singular matrix") from None
    if not np.isfinite(inverse).all() or np.any(inverse.sum(-1) * np.abs(wide).sum(-1) > 100):
        raise Unsure("a matrix that is ill-conditioned")
    if not State.track:
        return make(y, None, a.dt)
    e = np.matmul(inverse, np.matmul(errors(a), np.abs(y)) + errors(b) + 64 * wide.shape[-1] * EPS[a.dt] * np.matmul(np.abs(wide), np.abs(y)))
    return make(y, 2 * e + EPS[a.dt] * np.abs(y), a.dt)


@op
def solve(a, b, assume_a="gen"):
    return solution(T(a), T(b))


@op
def matrix_inverse(x):
    x = T(x)
    return solution(x, V(np.broadcast_to(np.eye(x.v.shape[-1]), x.v.shape).astype(x.v.dtype), None, x.dt))


@op
def expm(x):
    raise Unsure("its formula has a loop")


# ---- in order

@op
def sort(x, axis=-1):
    x = T(x)
    y = np.sort(x.v, axis=axis)
    tie(is_float(x.dt) and np.any(np.diff(y, axis=axis) == 0))
    if x.e is None:
        return V(y, None, x.dt)
    return V(y, np.broadcast_to(np.max(errors(x), axis=axis, keepdims=True) if x.v.size else errors(x), y.shape), x.dt)


@op
def argsort(x, axis=-1):
    x = T(x)
    y = np.argsort(x.v, axis=axis, kind="stable").astype(np.int64)
    if x.e is None or not x.v.size:
        return V(y, None, "int64")
    s = np.sort(x.v, axis=axis)
    off = np.max(errors(x), axis=axis, keepdims=True)
    close = np.any(np.diff(s, axis=axis) <= 2 * off, axis=axis, keepdims=True)
    return make(y, np.where(close | np.isinf(off), np.inf, np.zeros(y.shape)), "int64")


@op
def permute_row_elements(x, p, axis=-1):
    x, p = T(x), T(p)
    y = move(lambda v: np.take_along_axis(v, np.broadcast_to(p.v, v.shape), axis), x)
    return y if p.e is None else V(y.v, np.where(np.broadcast_to(p.e, y.v.shape) > 0, np.inf, errors(y)), x.dt)


# ---- constants to gradients

@op
def consider_constant(x):
    x = T(x)
    if State.replay is not None:
        return V(State.replay.pop(0), None, x.dt)
    if State.frozen is not None:
        State.frozen.append(x.v)
    return x


OPS["as_float"] = lambda x: cast(T(x), x.dt if is_float(T(x).dt) else "float64" if T(x).dt not in () else x.dt)
OPS["wide"] = lambda x: cast(T(x), {"float16": "float32", "bfloat16": "float32"}.get(T(x).dt, T(x).dt if is_float(T(x).dt) else "float64"))
OPS["cast_to"] = lambda x, dtype=None: cast(T(x), dtype or State.floatX)
OPS["default"] = lambda a, b: b if a is None else a
OPS["check_index"] = lambda i, n: i
OPS["with_rank"] = lambda x, *a, **k: T(x)
OPS["cast"] = lambda x, dtype: cast(T(x), dtype)
OPS["where"] = lambda c, a, b: where(T(c), *[i if not isinstance(i, list) else T(i) for i in (a, b)])
OPS["identity"] = lambda x: x
for name in TABLE:
    OPS[name] = lambda *args, name=name: scalar(name, *[T(a) if isinstance(a, list) else a for a in args])


# ---- operators

def binary(name, swap=False):
    def f(a, b):
        if isinstance(b, list):
            b = T(b)
        return scalar(name, b, a) if swap else scalar(name, a, b)
    return f


for word, name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "true_div", "floordiv": "int_div", "mod": "mod",
                   "pow": "pow", "and": "and_", "or": "or_", "xor": "xor"}.items():
    setattr(V, f"__{word}__", binary(name))
    setattr(V, f"__r{word}__", binary(name, swap=True))
for word, name in {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "neq"}.items():
    setattr(V, f"__{word}__", binary(name))


def equal(a, b):
    """x == max(x) is true somewhere, however x was rounded: at the one element that may be the largest, if there is one."""
    y, b = scalar("eq", a, T(b) if isinstance(b, list) else b), T(b)
    sure = b.peak[0] is a.v and a.v.size and np.all(np.isfinite(a.v)) and np.all(np.isfinite(errors(a)))
    y.peak = None, b.peak[1] if sure else None
    if sure and y.e is not None and b.ndim == a.ndim:
        with np.errstate(all="ignore"):
            one = np.sum(y.e > 0, axis=b.peak[1], keepdims=True) == 1
        y.e = np.where(one, 0.0, y.e)
    return y


V.__eq__ = equal
for word, name in {"neg": "neg", "invert": "invert"}.items():
    setattr(V, f"__{word}__", lambda a, name=name: scalar(name, a))
V.__matmul__ = lambda a, b: OPS["@"](a, b)
V.__getitem__ = get_item
V.__hash__ = None
OPS["@"] = matmul

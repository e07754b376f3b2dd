"""value.py: tensors of the independent evaluator: a value and a bound of the error that a correct library may make.

Floats are evaluated in long double, whatever their dtype; integers and bools in their own, where they wrap.
`e` bounds the absolute error, element by element: None where the value must be met exactly, inf where nothing is
known (a jump within the bound, an overflow, a NaN).  It is made of what each operation rounds and of what its
operands' errors do to it; so it is small where little was added and large where much cancelled.
"""
import numpy as np

REAL = np.longdouble
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
EPS = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52}
TINY = {"float16": 2.0 ** -24, "bfloat16": 2.0 ** -133, "float32": 2.0 ** -149, "float64": 5e-324}
LARGE = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38, "float64": 1.79e308}
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


class State:
    """How values are made now."""
    track = True     # error bounds; off while derivatives are taken by differences
    noise = None     # a generator: every float result is off by a few eps, drawn from it
    scale = 1.0      # of the noise
    frozen = None    # values that consider_constant had; they are given out again, in order
    replay = None
    floatX = "float64"
    naive = False    # formulas as they are written, where no rule makes them stable
    tie = False      # was a corner or a step met exactly?


def is_float(dt):
    return dt in EPS


def is_int(dt):
    return dt in INTS


def storage(dt):
    return REAL if dt in EPS else np.dtype(dt)


def to_float(dt):
    """The dtype in which a function of real numbers computes for a dtype."""
    return dt if is_float(dt) else "float32" if dt in ("bool", "int8", "int16", "uint8", "uint16") else "float64"


def promote(a, b):
    if a == b:
        return a
    if "bfloat16" in (a, b):
        other = b if a == "bfloat16" else a
        if other in ("float16", "int16", "uint16"):
            return "float32"
        return "bfloat16" if other in ("bool", "int8", "uint8") else promote("float32", other)
    return np.result_type(np.dtype(a), np.dtype(b)).name


def rounded(v, dt):
    """v as dt holds it."""
    if dt == "bfloat16":
        m, ex = np.frexp(v)
        r = np.ldexp(np.rint(np.ldexp(m, 8)), ex - 8)
        return np.where(np.isfinite(v), r, v).astype(REAL)
    with np.errstate(over="ignore"):
        if dt == "float16":         # NumPy goes by way of a float, which would round twice
            near = v.astype(np.float32)
            off = near.astype(REAL)
            cut = np.where(np.abs(off) > np.abs(v), np.nextafter(near, np.float32(0)), near)
            bits = np.ascontiguousarray(cut).view(np.uint32) | np.where((off != v) & np.isfinite(v), 1, 0).astype(np.uint32)
            v = bits.view(np.float32).reshape(v.shape)
        return v.astype(dt).astype(REAL)


class V:
    """One tensor: v its values, e their error bounds or None, dt the library's name of its dtype.  peak: of a maximum, the
    values and the axes that it is of; of the comparison of the two, None and the axes along which something is true."""
    __array_priority__ = 100
    __array_ufunc__ = None
    __slots__ = ("v", "e", "dt", "peak")

    def __init__(self, v, e, dt):
        self.v, self.e, self.dt, self.peak = v, e, dt, (None, None)

    shape = property(lambda x: V(np.array(x.v.shape, np.int64), None, "int64"))
    ndim = property(lambda x: x.v.ndim)
    dtype = property(lambda x: x.dt)
    T = property(lambda x: move(np.transpose, x))

    def __int__(self):
        if self.e is not None and np.any(self.e > 0):
            raise Unsure("a size or an index that rounding decides")
        return int(self.v)

    __index__ = __int__

    def __iter__(self):
        raise TypeError("a tensor is no sequence")


def tie(hit):
    """Where a function has a corner or a step: its slope there is a convention, which differences cannot tell."""
    if not State.tie and np.any(hit):
        State.tie = True


class Unsure(Exception):
    """What is asked cannot be told: this statement is not taken."""


def errors(x):
    return np.zeros(x.v.shape) if x.e is None else x.e


def exact(v, dt):
    """Whole numbers that no order of additions rounds."""
    return v.size == 0 or bool(np.all(np.isfinite(v)) and np.all(v == np.rint(v)) and np.max(np.abs(v)) < 2.0 ** (DIGITS[dt] - 1))


def make(v, e, dt, ulps=1, whole=False):
    """A result: v rounded to dt, e made larger by what that costs.  whole: an exact operation on exact values."""
    if not is_float(dt):
        v = np.asarray(v)
        if e is not None:
            e = np.where(np.asarray(e) > 0, np.inf, 0.0)
            e = e if e.any() else None
        return V(v if v.dtype == np.dtype(dt) else v.astype(dt), e, dt)
    v = np.asarray(v, REAL)
    if State.noise is not None:
        v = v * (1 + REAL(State.scale * EPS[dt]) * State.noise.uniform(-1, 1, v.shape))
    if not State.track:
        return V(v, None, dt)
    if e is None and whole and exact(v, dt):
        return V(v, None, dt)
    with np.errstate(all="ignore"):
        size = np.abs(v).astype(np.float64)
        e = (0.0 if e is None else e) + ulps * EPS[dt] * size + 4 * TINY[dt]
        e = np.where((size < 0.9 * LARGE[dt]) & np.isfinite(e), e, np.inf)
    return V(v, np.broadcast_to(e, v.shape), dt)


def constant(x, dt=None):
    """A Python number, list or array as a tensor."""
    if isinstance(x, V):
        return x
    a = np.asarray(x)
    if a.dtype == object:
        if a.ndim == 1 and all(isinstance(i, V) for i in x):
            return None
        raise Unsure("a list of many kinds")
    dt = dt or ("bool" if a.dtype == bool else "int64" if a.dtype.kind in "iu" else State.floatX)
    return V(rounded(a.astype(REAL), dt) if is_float(dt) else a.astype(dt), None, dt)


def is_literal(x):
    return isinstance(x, (bool, int, float, np.floating, np.integer)) and not isinstance(x, V)


def literal_dtype(x, dt):
    """The dtype in which a literal and a dt meet."""
    if isinstance(x, bool):
        return promote("bool", dt)
    if isinstance(x, int):
        if is_float(dt):
            return dt
        for small in (dt, "int8", "int16", "int32", "int64", "uint64"):
            if small == "bool":
                continue
            info = np.iinfo(small)
            if info.min <= x <= info.max:
                return promote(dt, small)
        raise Unsure("a literal that no integer holds")
    return dt if is_float(dt) else State.floatX


def meet(args):
    """The operands in one dtype: literals take that of what they meet."""
    real = [a for a in args if isinstance(a, V)]
    if not real:
        raise Unsure("literals alone")
    dt = real[0].dt
    for a in real[1:]:
        dt = promote(dt, a.dt)
    for a in args:
        if not isinstance(a, V):
            dt = literal_dtype(a, dt) if is_literal(a) else promote(dt, constant(a).dt)
    return [cast(a, dt) if isinstance(a, V) else constant(a, dt) for a in args], dt


def cast(x, dt):
    if x.dt == dt:
        return x
    if is_float(dt):
        v = x.v.astype(REAL)
        if x.e is None and State.track:
            r = rounded(v, dt)
            e = None if np.all(np.isfinite(r)) else np.where(np.isfinite(r), 0.0, np.inf)
            return V(r, e, dt)
        wide = not is_float(x.dt) or EPS[x.dt] > EPS[dt]
        with np.errstate(all="ignore"):
            tie(is_float(x.dt) and np.abs(v) > LARGE[x.dt])         # its own dtype does not hold it
        return make(v, x.e, dt, 0 if wide and is_float(x.dt) else 1, whole=True)
    if dt == "bool":
        tie(is_float(x.dt) and x.v == 0)
        near = None if x.e is None else np.where((np.abs(x.v.astype(REAL)) <= errors(x)) & (errors(x) > 0), np.inf, 0.0)
        return make(x.v != 0, near, "bool")
    if is_float(x.dt):
        info = np.iinfo(dt)

        def to_int(a):
            low, high = REAL(info.min), REAL(info.max)
            inside = np.isfinite(a) & (np.trunc(a) >= low) & (np.trunc(a) <= high)
            r = np.where(inside, a, 0).astype(dt)
            r = np.where(a > high, info.max, np.where(a < low, info.min, r))
            return np.where(np.isnan(a), 0, r).astype(dt)

        tie(x.v == np.rint(x.v))
        return element(to_int, dt, x)
    return V(x.v.astype(dt), x.e, dt)


def element(f, dt, *args, ulps=1, whole=False):
    """f of each element.  The error is what f does at the corners of the operands' bounds."""
    with np.errstate(all="ignore"):
        y = np.asarray(f(*[a.v for a in args]))
        off = [i for i, a in enumerate(args) if a.e is not None]
        if not off or not State.track:
            return make(y, None, dt, ulps, whole)
        e = np.zeros(y.shape)
        for corner in range(2 ** len(off)):
            at = [a.v for a in args]
            for k, i in enumerate(off):
                d = np.where(np.isfinite(args[i].e), args[i].e, 0)
                if is_float(args[i].dt):
                    at[i] = at[i] + (d if corner >> k & 1 else -d)
            z = np.asarray(f(*at))
            d = np.abs(z.astype(REAL) - y.astype(REAL)).astype(np.float64)
            e = np.maximum(e, np.where(np.isnan(d), np.inf, d))
        for i in off:
            e = np.where(np.isinf(np.broadcast_to(args[i].e, y.shape)), np.inf, e)
        for i in off:                 # between the bounds there may be a root or a pole at 0
            if is_float(args[i].dt) and np.any(near := np.abs(args[i].v) <= args[i].e):
                at = [a.v for a in args]
                at[i] = np.where(near, 0, at[i])
                z = np.asarray(f(*at))
                d = np.abs(z.astype(REAL) - y.astype(REAL)).astype(np.float64)
                e = np.maximum(e, np.where(np.isnan(d), np.inf, d))
        same = np.isnan(y) if y.dtype == REAL else np.zeros(y.shape, bool)
        return make(y, np.where(same, np.inf, e), dt, ulps, whole)


def move(f, *args, dt=None):
    """f takes elements to other places."""
    v = f(*[a.v for a in args])
    e = None if all(a.e is None for a in args) else f(*[errors(a) for a in args])
    return V(v, e, dt or args[0].dt)


def linear(f, dt, *args, ulps=2, count=1):
    """f sums products of its operands' elements, `count` for a result."""
    f_eps = 0.0 if dt not in EPS else EPS[dt]
    with np.errstate(all="ignore"):
        y = np.asarray(f(*[a.v for a in args]))
        if not is_float(dt):
            bad = [a for a in args if a.e is not None]
            if not bad:
                return make(y, None, dt)
            e = f(*[errors(a) if a.e is not None else np.ones(a.v.shape) for a in args])
            return make(y, np.where(np.isnan(e) | (e > 0), np.inf, 0), dt)
        if not State.track:
            return make(y, None, dt)
        size = [np.abs(a.v) for a in args]
        total = np.asarray(f(*size)).astype(np.float64)
        if all(a.e is None for a in args) and exact(y, dt) and exact(total, dt) and all(exact(a.v, dt) for a in args):
            return make(y, None, dt, whole=True)
        e = 0.0
        for i, a in enumerate(args):
            if a.e is not None:
                at = list(size)
                at[i] = a.e.astype(REAL)
                e = e + np.asarray(f(*at)).astype(np.float64)
        if len(args) == 2 and all(a.e is not None for a in args):
            e = e + np.asarray(f(*[a.e.astype(REAL) for a in args])).astype(np.float64)
        e = e + f_eps * (ulps + 0.5 * np.sqrt(count)) * total
        return make(y, np.where(np.isnan(e), np.inf, e), dt)

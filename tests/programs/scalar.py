"""scalar.py: what each op does to an element, in NumPy and mathematics alone.

A row of TABLE: the function over long doubles (or over integers of one dtype, where INTEGER has another), the dtype
of its result (as the table of ops calls it: same, float, div, bool, bits), and how many eps a kernel may be off.
"""
import numpy as np

from .value import EPS, LARGE, REAL, State, V, Unsure, cast, element, errors, is_float, make, meet, rounded, tie, to_float

PI = REAL("3.14159265358979323846264338327950288")
LOG2PI_2 = REAL("0.91893853320467274178032973640561764")
BERNOULLI = [REAL(1) / 6, REAL(-1) / 30, REAL(1) / 42, REAL(-1) / 30, REAL(5) / 66, REAL(-691) / 2730, REAL(7) / 6,
             REAL(-3617) / 510, REAL(43867) / 798, REAL(-174611) / 330]


def erf(x):
    """Its Taylor series near 0, one less erfc's continued fraction beyond."""
    x = np.asarray(x, REAL)
    a = np.minimum(np.abs(x), REAL(3))
    term, s = a, a
    for n in range(1, 90):
        term = -term * a * a / n
        s = s + term / (2 * n + 1)
    near = 2 / np.sqrt(PI) * s
    return np.sign(x) * np.where(np.abs(x) < 2.5, near, 1 - erfc_far(np.abs(x)))


def erfc_far(x):
    x = np.maximum(x, REAL(2))
    f = x
    for n in range(250, 0, -1):
        f = x + REAL(n) / 2 / f
    return np.exp(-x * x) / np.sqrt(PI) / f


def erfc(x):
    x = np.asarray(x, REAL)
    return np.where(x > 2.5, erfc_far(x), 1 - erf(np.minimum(x, REAL(2.5))))


def above(x, f, step):
    """f where x is large, and from there down by recurrence: step(x) at each x passed."""
    x = np.asarray(x, REAL)
    total = np.zeros(x.shape, REAL)
    for _ in range(25):
        low = x < 25
        total = total + np.where(low, step(np.where(low, x, 1)), 0)
        x = np.where(low, x + 1, x)
    return f(x) + total


def gammaln(x):
    def far(z):
        s = sum(b / (2 * k * (2 * k - 1)) / z ** (2 * k - 1) for k, b in enumerate(BERNOULLI, 1))
        return (z - REAL(0.5)) * np.log(z) - z + LOG2PI_2 + s

    x = np.asarray(x, REAL)
    up = above(np.where(x > 0, x, 1 - x), far, lambda z: -np.log(z))
    return np.where(x > 0, up, np.where(x == np.floor(x), np.inf, np.log(PI / np.abs(np.sin(PI * x))) - up))


def psi(x):
    def far(z):
        return np.log(z) - 1 / (2 * z) - sum(b / (2 * k) / z ** (2 * k) for k, b in enumerate(BERNOULLI, 1))

    x = np.asarray(x, REAL)
    up = above(np.where(x > 0, x, 1 - x), far, lambda z: -1 / z)
    return np.where(x > 0, up, np.where(x == np.floor(x), np.nan, up - PI / np.tan(PI * x)))


def tri_gamma(x):
    def far(z):
        return 1 / z + 1 / (2 * z * z) + sum(b / z ** (2 * k + 1) for k, b in enumerate(BERNOULLI, 1))

    x = np.asarray(x, REAL)
    up = above(np.where(x > 0, x, 1 - x), far, lambda z: 1 / (z * z))
    return np.where(x > 0, up, np.where(x == np.floor(x), np.inf, (PI / np.sin(PI * x)) ** 2 - up))


def sigmoid(x):
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + z), z / (1 + z))


def int_power(a, b):
    """Exponents below 0 have no integer result."""
    if a.dtype.kind == "i" and np.any(b < 0):
        raise Unsure("an integer to a power below 0")
    y, a, b = np.ones(np.broadcast(a, b).shape, a.dtype), a + np.zeros_like(b), b + np.zeros_like(a)
    while np.any(b):
        y = np.where(b & 1, y * a, y)
        a, b = a * a, b >> np.asarray(1, b.dtype)
    return y


def int_floor(a, b):
    zero = b == 0
    with np.errstate(all="ignore"):
        return np.where(zero, np.zeros((), a.dtype), a // np.where(zero, np.ones((), b.dtype), b))


def int_mod(a, b):
    zero = b == 0
    with np.errstate(all="ignore"):
        return np.where(zero, np.zeros((), a.dtype), a % np.where(zero, np.ones((), b.dtype), b))


def larger(a, b):
    return np.maximum(a, b)


def half_away(a):
    return np.copysign(np.floor(np.abs(a) + REAL(0.5)), a)


# Ops of the program's own: C of one element, and the gradient by each argument.
OWN = {
    "own_swish": ("a / (1 + M(exp)(-a * b))", "g * sigmoid(a * b) * (1 + a * b * sigmoid(-a * b))", "g * sqr(a) * sigmoid(a * b) * sigmoid(-a * b)"),
    "own_ratio": ("a * b / (1 + c * c)", "g * b / (1 + sqr(c))", "g * a / (1 + sqr(c))", "-2 * g * c * y / (1 + sqr(c))"),
    "own_bell":  ("M(exp)(-a * a)", "-2 * g * a * y"),
}

# name: arguments, dtype of the result, eps that a kernel may be off, function
TABLE = {
    "add":        (2, "same", 1, np.add),
    "own_swish":  (2, "float", 99, lambda a, b: a / (1 + np.exp(-a * b))),
    "own_ratio":  (3, "float", 4, lambda a, b, c: a * b / (1 + c * c)),
    "own_bell":   (1, "float", 99, lambda a: np.exp(-a * a)),
    "sub":        (2, "same", 1, np.subtract),
    "mul":        (2, "same", 1, np.multiply),
    "true_div":   (2, "div", 1, np.divide),
    "int_div":    (2, "same", 1, lambda a, b: np.floor_divide(a, b)),
    "mod":        (2, "same", 1, lambda a, b: np.mod(a, b)),
    "pow":        (2, "same", 6, lambda a, b: np.power(a, b)),
    "neg":        (1, "same", 0, np.negative),
    "abs":        (1, "same", 0, np.abs),
    "sqr":        (1, "same", 1, lambda a: a * a),
    "sqrt":       (1, "float", 1, np.sqrt),
    "reciprocal": (1, "float", 1, lambda a: 1 / a),
    "maximum":    (2, "same", 0, np.maximum),
    "minimum":    (2, "same", 0, np.minimum),
    "clip":       (3, "same", 0, lambda a, b, c: np.where(a < b, b, np.where(a > c, c, a))),
    "sgn":        (1, "same", 0, np.sign),
    "lt":         (2, "bool", 0, np.less),
    "le":         (2, "bool", 0, np.less_equal),
    "gt":         (2, "bool", 0, np.greater),
    "ge":         (2, "bool", 0, np.greater_equal),
    "eq":         (2, "bool", 0, np.equal),
    "neq":        (2, "bool", 0, np.not_equal),
    "isnan":      (1, "bool", 0, np.isnan),
    "isinf":      (1, "bool", 0, np.isinf),
    "isfinite":   (1, "bool", 0, np.isfinite),
    "and_":       (2, "bits", 0, np.bitwise_and),
    "or_":        (2, "bits", 0, np.bitwise_or),
    "xor":        (2, "bits", 0, np.bitwise_xor),
    "invert":     (1, "bits", 0, np.invert),
    "exp":        (1, "float", 4, np.exp),
    "exp2":       (1, "float", 4, np.exp2),
    "expm1":      (1, "float", 4, np.expm1),
    "log":        (1, "float", 4, np.log),
    "log2":       (1, "float", 4, np.log2),
    "log10":      (1, "float", 4, np.log10),
    "log1p":      (1, "float", 4, np.log1p),
    "floor":      (1, "same", 0, np.floor),
    "ceil":       (1, "same", 0, np.ceil),
    "trunc":      (1, "same", 0, np.trunc),
    "round":      (1, "same", 0, np.rint),
    "round_half_away": (1, "same", 0, half_away),
    "iround":     (1, "iround", 0, np.rint),
    "sin":        (1, "float", 4, np.sin),
    "cos":        (1, "float", 4, np.cos),
    "tan":        (1, "float", 6, np.tan),
    "arcsin":     (1, "float", 4, np.arcsin),
    "arccos":     (1, "float", 4, np.arccos),
    "arctan":     (1, "float", 4, np.arctan),
    "arctan2":    (2, "float", 4, np.arctan2),
    "sinh":       (1, "float", 6, np.sinh),
    "cosh":       (1, "float", 6, np.cosh),
    "tanh":       (1, "float", 4, np.tanh),
    "arcsinh":    (1, "float", 6, np.arcsinh),
    "arccosh":    (1, "float", 6, np.arccosh),
    "arctanh":    (1, "float", 6, np.arctanh),
    "deg2rad":    (1, "float", 2, lambda a: a * PI / 180),
    "rad2deg":    (1, "float", 2, lambda a: a * 180 / PI),
    "erf":        (1, "float", 6, erf),
    "erfc":       (1, "float", 20, erfc),
    "gammaln":    (1, "float", 8, gammaln),
    "psi":        (1, "float", 16, psi),
    "tri_gamma":  (1, "float", 16, tri_gamma),
    "sigmoid":    (1, "float", 6, sigmoid),
    "softplus":   (1, "float", 6, lambda a: np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a)))),
    "hypot":      (2, "float", 4, np.hypot),
    "logaddexp":  (2, "float", 6, np.logaddexp),
    "xlogx":      (1, "float", 4, lambda a: np.where(a == 0, 0, a * np.log(np.where(a == 0, 1, a)))),
    "xlogy0":     (2, "float", 4, lambda a, b: np.where(a == 0, 0, a * np.log(np.where(a == 0, 1, b)))),
    "gpu_from_host": (1, "same", 0, lambda a: a),
    "host_from_gpu": (1, "same", 0, lambda a: a),
}
INTEGER = {"int_div": int_floor, "mod": int_mod, "pow": int_power, "isnan": lambda a: np.zeros(a.shape, bool),
           "isinf": lambda a: np.zeros(a.shape, bool), "isfinite": lambda a: np.ones(a.shape, bool), "iround": lambda a: a}
INTEGER.update({name: (lambda a: a) for name in ("floor", "ceil", "trunc", "round", "round_half_away")})
WHOLE = {"add", "sub", "mul", "neg", "abs", "sqr", "maximum", "minimum", "clip", "sgn", "floor", "ceil", "trunc", "round",
         "round_half_away", "where", "gpu_from_host", "host_from_gpu"}
NOT_BOOL = {"sub", "neg"}


def steps_of_quotient(a, b):
    """Also where so many steps lie side by side that differences see none."""
    return (a / b == np.rint(a / b)) | (np.abs(b) < 1e-3 * np.maximum(np.abs(a), 1))


def near_zero(a):
    """Also what is 0 in a narrower range of exponents than that of a long double."""
    return np.abs(a) < 1e-30


# Where there are corners and steps.
CORNERS = {"abs": near_zero, "sgn": near_zero, "clip": lambda a, b, c: (a == b) | (a == c),
           "int_div": steps_of_quotient, "mod": steps_of_quotient,
           "round": lambda a: 2 * a == np.rint(2 * a), "xlogx": lambda a: a == 0, "xlogy0": lambda a, b: a == 0}
CORNERS.update({name: (lambda a, b: a == b) for name in ("maximum", "minimum", "lt", "le", "gt", "ge", "eq", "neq", "pow")})
CORNERS.update({name: (lambda a: a == np.rint(a)) for name in ("floor", "ceil", "trunc")})
CORNERS["round_half_away"] = CORNERS["iround"] = CORNERS["round"]
CORNERS["sqrt"] = CORNERS["abs"]
CORNERS["arctan2"] = lambda a, b: np.abs(a) + np.abs(b) < 1e-3
CORNERS["pow"] = lambda a, b: a == 0


def scalar(name, *args):
    n, typing, ulps, f = TABLE[name]
    if len(args) != n:
        raise TypeError(f"{name} takes {n}")
    if typing == "float" and all(isinstance(a, (int, float)) and not isinstance(a, bool) for a in args):
        with np.errstate(all="ignore"):
            return float(f(*[REAL(a) for a in args]))       # literals stay one
    given, plain = args, any(not isinstance(a, V) for a in args)
    args, dt = meet(args)
    if typing == "bool" and is_float(dt):           # 0.1 is compared as dt has it
        args = [a if isinstance(x, V) else V(rounded(a.v, dt), None, dt) for x, a in zip(given, args)]
    if is_float(dt) and name in CORNERS:
        tie(CORNERS[name](*[a.v for a in args]))
    if dt == "bool" and name in NOT_BOOL:
        raise Unsure("not for bool")
    if typing in ("float", "div") and not is_float(dt):
        dt = State.floatX if typing == "div" else to_float(dt)
        args = [cast(a, dt) for a in args]
    if typing == "bits" and is_float(dt):
        raise Unsure("bits of floats")
    if not is_float(dt):
        f = INTEGER.get(name, f)
        if dt == "bool" and name not in ("and_", "or_", "xor", "invert") and typing != "bool":
            args = [V(a.v.astype(np.int64), a.e, "int64") for a in args]
            result = element(f, "int64", *args)
            return V(result.v != 0, result.e, "bool") if typing == "same" else cast(result, "int64")
    if name in ("eq", "neq") and any(a.e is not None for a in args):
        with np.errstate(all="ignore"):
            a, b = args
            off = errors(a) + errors(b)
            near = (np.abs(a.v.astype(REAL) - b.v.astype(REAL)) <= off) & (off > 0) | np.isinf(off)
            return make(f(a.v, b.v), np.where(near, np.inf, 0.0), "bool")
    out = {"bool": "bool", "iround": "int64"}.get(typing, dt)
    if name == "iround" and is_float(dt):
        return cast(element(np.rint, dt, *args, ulps=0, whole=True), "int64")
    y = element(f, out, *args, ulps=ulps, whole=name in WHOLE)
    if name == "own_swish" and y.e is not None:     # where the power is infinite nothing is left
        y = V(y.v, y.e + (np.abs(args[0].v) / LARGE[dt if dt == "float64" else "float32"]).astype(np.float64), out)
    if name == "own_swish":
        tie(np.abs(args[1].v) > 1e3)                # nearly a step: differences cannot see how steep it is at 0
    if name == "own_ratio" and State.track:         # where c * c is infinite it is 0
        with np.errstate(all="ignore"):
            far = np.abs(args[2].v) > REAL(LARGE[dt if dt == "float64" else "float32"]) ** 0.5
            y = V(y.v, np.where(far, np.inf, errors(y)), out) if np.any(far) else y
    if plain and name in ("add", "sub") and is_float(dt) and State.track:        # constants are added up first, which may be larger than what is left
        off = EPS[dt] * np.maximum(*[np.abs(a.v) for a in args]).astype(np.float64)
        y = V(y.v, errors(y) + np.where(np.isnan(off), np.inf, off), out)
    if name in ("psi", "tri_gamma", "gammaln") and State.track:    # near roots and poles: what a unit in the argument's last place does
        a = args[0].v
        with np.errstate(all="ignore"):
            moved = np.maximum(*[np.abs(f(a * (1 + t * REAL(EPS[dt]))) - y.v) for t in (-2, 2)])
            moved = np.where((a < 0) & (errors(args[0]) + EPS[dt] * np.abs(a) > 0.05), np.inf, moved)     # a pole may be there
            y = V(y.v, errors(y) + np.where(np.isnan(moved), np.inf, moved).astype(np.float64), out)
    if name in ("mod", "int_div") and is_float(dt) and y.e is not None:      # how many times b is in a may be another number
        a, b = args
        with np.errstate(all="ignore"):
            turns = (errors(a) + np.abs(a.v / b.v) * errors(b)) / np.abs(b.v)
        y = V(y.v, np.where(turns > 0.4, np.inf, y.e), out)
    if name in ("sin", "cos", "tan") and args[0].e is not None and y.e is not None:      # what is not known of a turn's part
        y = V(y.v, np.where(args[0].e > 0.05, np.inf if name == "tan" else np.maximum(y.e, 2.0), y.e), out)
    if name == "arctan2":                                    # which 0 it is
        y = V(y.v, np.where(args[0].v == 0, np.inf, errors(y)), out)
    if name in ("true_div", "reciprocal") and y.e is not None and args[-1].e is not None:    # may the divisor be 0?
        y = V(y.v, np.where(np.abs(args[-1].v) <= args[-1].e, np.inf, y.e), out)
    return y


def where(c, a, b):
    (a, b), dt = meet([a, b])
    c = cast(c, "bool")
    return element(lambda c, a, b: np.where(c, a, b), dt, c, a, b, ulps=0, whole=True)

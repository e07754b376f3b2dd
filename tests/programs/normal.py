"""normal.py: what is made of sums and exponentials, in forms that do not overflow."""
import numpy as np

from .scalar import scalar
from .structured import OPS, T, axes_of, count_of, op
from .value import LARGE, REAL, State, Unsure, V, cast, is_float, make, tie


def as_float(x):
    return T(x) if is_float(T(x).dt) else cast(T(x), "float64")


@op
def mean(x, axis=None, keepdims=False):
    x = T(x)
    dt = as_float(x).dt
    n = count_of(x, axes_of(x, axis))
    s = OPS["sum"](OPS["wide"](x), axis=axis, keepdims=keepdims)
    return cast(s / V(np.asarray(REAL(n)), None, s.dt), dt)


def shifted(x, axis):
    """x less its maximum, which is a constant to derivatives: the function does not depend on it."""
    if count_of(x, axes_of(x, axis)) == 0:
        raise Unsure("the largest of nothing")
    m = np.max(x.v, axis=axes_of(x, axis), keepdims=True)
    return scalar("sub", x, V(np.where(np.isfinite(m), m, 0), None, x.dt)), m


@op
def logsumexp(x, axis=None, keepdims=False):
    x = T(x)
    if not is_float(x.dt):
        x = cast(x, {"int32": "float64", "int64": "float64", "uint32": "float64", "uint64": "float64"}.get(x.dt, "float32"))
    axes = axes_of(x, axis)
    if State.naive:
        return OPS["log"](OPS["sum"](OPS["exp"](x), axis=axes, keepdims=keepdims))
    d, m = shifted(x, axes)
    s = OPS["log"](OPS["sum"](OPS["exp"](d), axis=axes, keepdims=True))
    y = scalar("add", s, V(m, None, x.dt))
    return y if keepdims or not axes else V(np.squeeze(y.v, axes), None if y.e is None else np.squeeze(y.e, axes), y.dt)


@op
def softmax(x, axis=-1):
    x = as_float(x)
    e = OPS["exp"](shifted(x, [axis])[0])
    return e / OPS["sum"](e, axis=[axis], keepdims=True)


@op
def logsoftmax(x, axis=-1):
    x = as_float(x)
    d = shifted(x, [axis])[0]
    return d - OPS["log"](OPS["sum"](OPS["exp"](d), axis=[axis], keepdims=True))


OPS["dnn_softmax"] = lambda x, mode="channel", algo="accurate", layout="bc01": (
    logsoftmax if algo == "log" else softmax)(x, axis=1) if mode == "channel" and layout == "bc01" else refuse()


def refuse():
    raise Unsure("another mode")


@op
def norm(x, ord=2, axis=None):
    x = as_float(x)
    if ord in ("inf", float("inf")):
        return OPS["max"](OPS["abs"](x), axis=axis)
    if ord in ("-inf", float("-inf")):
        return OPS["min"](OPS["abs"](x), axis=axis)
    if ord == 0:
        raise Unsure("which dtype")
    s = OPS["sum"](OPS["abs"](x) ** ord, axis=axis)
    with np.errstate(all="ignore"):
        tie(np.abs(s.v) ** REAL(1 / ord - 2) > LARGE[s.dt])       # its second derivative has such a factor
    return OPS["pow"](s, 1 / ord)


@op
def sigmoid_binary_crossentropy(x, t):
    return OPS["softplus"](x) - x * t


def parameter(p, x, axes):
    p = T(p)
    if p.ndim == x.ndim:
        return p
    if p.ndim != x.ndim - len(axes):
        raise Unsure("another rank")
    shape = iter(p.v.shape)
    shape = [1 if a in axes else next(shape) for a in range(x.ndim)]
    return V(p.v.reshape(shape), None if p.e is None else p.e.reshape(shape), p.dt)


@op
def batch_normalization_train(x, gamma, beta, running_mean=None, running_var=None, axes="per-activation", epsilon=1e-4,
                              running_average_factor=0.1):
    x = T(x)
    if running_mean is not None or running_var is not None or x.ndim < 2:
        raise Unsure("running averages")
    axes = [0] if axes == "per-activation" else [0] + list(range(2, x.ndim)) if axes == "spatial" else [a % x.ndim for a in axes]
    g, b = parameter(gamma, x, axes), parameter(beta, x, axes)
    m = mean(x, axis=axes, keepdims=True)
    v = OPS["var"](x, axis=axes, keepdims=True)
    s = OPS["reciprocal"](OPS["sqrt"](v + epsilon))
    return [(x - m) * s * g + b]


@op
def batch_normalization_test(x, gamma, beta, mean, var, axes=None, epsilon=1e-4):
    return (T(x) - mean) * (gamma / OPS["sqrt"](var + epsilon)) + beta

"""jaxed.py: the suites exp, elementwise, rows, softmax, pool, norm, and on a GPU conv128 and zoo by JAX; each case is one function that XLA compiled.

Forward with gradients is one function as well, whose results are y and the gradients, as ours are."""
import math
import os

from networks import along, extents, shard
from peer import DEVICE, ONLY, SECONDS, error, floats, report, rng, wanted
from shapes import BETWEEN, LAYERS

os.environ["JAX_PLATFORMS"] = DEVICE  # where there is none: an error, not another device
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

jax.config.update("jax_enable_x64", True)  # for what errors are measured against
jax.config.update("jax_default_matmul_precision", "highest")  # float32 is float32
jax.config.update("jax_cpu_enable_async_dispatch", False)
ROWS, COLUMNS = 4096, 1024


def window(x, first, join, sizes, steps=(1, 1, 1, 1), pads=(0, 0, 0, 0)):
    return lax.reduce_window(x, x.dtype.type(first), join, sizes, steps, [(p, p) for p in pads])


def maxima(x, size, step, pad=0):
    return window(x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, step, step), (0, 0, pad, pad))


def means(x, size, step, pad=0):
    return window(x, 0, lax.add, (1, 1, size, size), (1, 1, step, step), (0, 0, pad, pad)) / size**2


def standard(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) * lax.rsqrt(x.var(axes, keepdims=True) + eps)


BY_WORD = {
    "max3": lambda x: maxima(x, 3, 2), "max3p": lambda x: maxima(x, 3, 2, 1), "max2": lambda x: maxima(x, 2, 2),
    "mean7": lambda x: means(x, 7, 7), "mean3": lambda x: means(x, 3, 1, 1),
    "lrn": lambda x: x / (2 + 1e-4 * window(x * x, 0, lax.add, (1, 5, 1, 1), pads=(0, 2, 0, 0))) ** 0.75,
    "batch": lambda x, g, b: standard(x, (0, 2, 3), 1e-4) * g[:, None, None] + b[:, None, None],
    "softmax": lambda x: jax.nn.softmax(x, 1), "logsoftmax": lambda x: jax.nn.log_softmax(x, 1),
    "logsumexp": lambda x: jax.nn.logsumexp(x, 1), "layernorm": lambda x, w, b: standard(x, 1, 1e-5) * w + b,
}


def timed(suite, case, f, args, which="", **said):
    """f gives one result or several; the last is what is compared, and waited for."""
    made = jax.jit(f)
    last = (lambda y: y[-1]) if isinstance(made(*args), tuple) else (lambda y: y)
    wide = [a.astype("float64") for a in args]
    report(suite, case, lambda: last(made(*args)), which, rel_err=error(last(made(*args)), last(made(*wide))), **said)


def backward(f, wanted):
    """y, and the gradients in the first arguments, x last; the last argument is the gradient in y."""
    def both(*args):
        free, v = args[:wanted], args[-1]
        y, back = jax.vjp(lambda *a: f(*a, *args[wanted:-1]), *free)
        return (y, *reversed(back(v)))

    return both


def there(*arrays):
    """On the device."""
    return [jax.device_put(a) for a in arrays]


def exp():
    x, = there(floats(230400))
    case = {"moved": 8 * x.size}
    timed("exp", "exp 230400", jnp.exp, [x], **case)
    if DEVICE != "cpu":
        made = jax.jit(jnp.exp)
        report("exp", "exp 230400 home", lambda: jax.device_get(made(x)), **case)


def elementwise():
    n, name = (64 << 20, "64M") if DEVICE == "cpu" else (256 << 20, "256M")
    x, = there(floats(n))
    a, b, c = (float(v) for v in floats(3))
    made = jax.jit(lambda x: a * x + b * jnp.tanh(x) - c / (1 + x * x))
    wrong = error(made(x[:99999]), made(x[:99999].astype("float64")))
    report("elementwise", f"chain {name}", lambda: made(x), moved=8 * n, rel_err=wrong)


def rows():
    x, v, r, w, b = there(floats(ROWS, COLUMNS), floats(ROWS, COLUMNS), floats(ROWS), floats(COLUMNS), floats(COLUMNS))
    for word, args, v in (("softmax", [x], v), ("logsumexp", [x], r), ("layernorm", [x, w, b], v)):
        case, f, moved = f"{word} {ROWS}x{COLUMNS}", BY_WORD[word], 4 * x.size
        timed("rows", case, f, args, "fwd", moved=2 * moved)
        timed("rows", case, backward(f, len(args)), [*args, v], "fwd+bwd", moved=4 * moved)


def between(suite):
    for case, word, shape in BETWEEN[suite]:
        f, x = BY_WORD[word], floats(*shape)
        args = there(x, *[floats(shape[1]) for _ in range(2 if word == "batch" else 0)])
        v, = there(floats(*jax.eval_shape(f, *args).shape))
        timed(suite, case, f, args, "fwd", seconds=SECONDS / 2)
        timed(suite, case, backward(f, 1), [*args, v], "fwd+bwd", seconds=SECONDS / 2)


def bits(dtype, *shapes):
    """On the device, centred: sums that cancel show errors."""
    return there(*(jnp.asarray(2 * rng.random(s, dtype="float32") - 1, dtype) for s in shapes))


def passes(suite, name, op, dtype, x, w, y, **said):
    """Those of a function that is linear in each of its operands."""
    by = {
        "fwd": (op, x, w),
        "inputs": (lambda y, w: jax.linear_transpose(lambda x: op(x, w), x)(y)[0], y, w),
        "weights": (lambda x, y: jax.linear_transpose(lambda w: op(x, w), w)(y)[0], x, y),
    }
    for which, (once, *args) in by.items():
        if ONLY in f"{name} {which}":
            made = jax.jit(once)
            report(suite, name, lambda: made(*args), which, dtype=dtype, **said)


def convolution(suite, name, sizes, dtype="float32", **limits):
    n, c, size, f, k, strides, pads, dilation, groups = sizes
    out = extents(size, k, strides, pads, dilation)
    x, w, y = bits(dtype, (n, c) + size, (f, c // groups) + k, (n, f) + out)

    def op(x, w):
        return lax.conv_general_dilated(x, w, strides, [(p, p) for p in pads], rhs_dilation=(dilation,) * len(k), feature_group_count=groups)

    passes(suite, name, op, dtype, x, w, y, flops=2.0 * n * f * (c // groups) * math.prod(out) * math.prod(k), **limits)


def product(name, sizes, dtype):
    m, c, f = sizes
    passes("zoo", name, lambda x, w: x @ w.T, dtype, *bits(dtype, (m, c), (f, c), (m, f)), flops=2.0 * m * c * f, seconds=0.05)


def norm(name, word, size, dtype):
    f, scaled = BY_WORD[word], word in ("batch", "layernorm")
    *args, v = there(*(jnp.asarray(floats(*s), dtype) for s in [size, *[size[1:2]] * (2 * scaled), size]))
    moved = {"fwd": 2 * v.nbytes, "fwd+bwd": 4 * v.nbytes}
    timed("zoo", name, f, args, "fwd", dtype=dtype, moved=moved["fwd"], seconds=0.05)
    timed("zoo", name, backward(f, len(args)), [*args, v], "fwd+bwd", dtype=dtype, moved=moved["fwd+bwd"], seconds=0.05)


def convolutions(suite):
    for name, n, c, size, f, k, stride, pad, axes in LAYERS[suite]:
        convolution(suite, name, (n, c, (size,) * axes, f, (k,) * axes, *along((k,) * axes, stride, pad), 1, 1), seconds=0.1, calls=1)


def zoo():
    for dtype in ("float32", "bfloat16"):
        for name, what, sizes in shard():
            if not wanted(name, "fwd", "inputs", "weights", "fwd+bwd"):
                continue
            if what == "conv":
                convolution("zoo", name, sizes, dtype, seconds=0.05)
            elif what == "product":
                product(name, sizes, dtype)
            else:
                norm(name, what, sizes, dtype)


def run(suite):
    own = {"exp": exp, "elementwise": elementwise, "rows": rows}
    if DEVICE != "cpu":  # on two processors XLA takes 4 to 15 seconds for a call
        own.update({"conv128": lambda: convolutions("conv128"), "zoo": zoo})
    if suite in BETWEEN or suite in own:
        own.get(suite, lambda: between(suite))()

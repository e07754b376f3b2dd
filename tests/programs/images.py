"""images.py: convolution, pooling and what goes with images, tap by tap."""
import itertools

import numpy as np

from .structured import OPS, T, ints, op
from .value import REAL, State, Unsure, V, cast, errors, exact, is_float, linear, make, move, promote, tie

from .scalar import scalar


def each(x, n):
    x = ints(x)
    return x * n if len(x) == 1 else x


def pads(border, k, d, n):
    """What goes in front of and behind each axis."""
    full = [(a - 1) * b for a, b in zip(k, d)]
    if border == "valid":
        return [(0, 0)] * n
    if border == "full":
        return [(f, f) for f in full]
    if border == "half":
        return [((f + 1) // 2,) * 2 for f in full]
    if border == "same":
        return [(f // 2, f - f // 2) for f in full]
    if border == "causal":
        return [(f, 0) for f in full]
    if isinstance(border, str):
        raise Unsure(border)
    border = border if isinstance(border, (list, tuple)) else [border]
    border = list(border) * n if len(border) == 1 and n > 1 else border
    return [tuple(b) if isinstance(b, (list, tuple)) else (int(b), int(b)) for b in border]


def each_tap(shape, k, pad, stride, dilation, groups, filters, channels, flip):
    """The windows of images of `shape`: places of the result, and for each tap its index and where its cells lie when padded."""
    n = len(k)
    wide = [shape[2 + i] + sum(pad[i]) for i in range(n)]
    out = [(wide[i] - (k[i] - 1) * dilation[i] - 1) // stride[i] + 1 for i in range(n)]
    if min(out) <= 0 or min(k) <= 0:
        raise Unsure("a result without places")
    if shape[1] != channels * groups or filters % groups:
        raise Unsure("channels that do not fit")
    taps = [(tuple(j - 1 - t if flip else t for t, j in zip(tap, k)), (slice(None), slice(None)) + tuple(
        slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, out, stride)))
        for tap in itertools.product(*[range(i) for i in k])]
    return out, taps


def correlate(x, w, pad, stride, dilation, groups, flip):
    """x (batch, channels, places), w (filters, channels / groups, taps)."""
    f, c = w.shape[:2]
    out, taps = each_tap(x.shape, w.shape[2:], pad, stride, dilation, groups, f, c, flip)
    x = np.pad(x, [(0, 0), (0, 0)] + list(pad))
    y = np.zeros((x.shape[0], groups, f // groups) + tuple(out), x.dtype)
    for tap, cells in taps:
        y += np.einsum("bgc...,gfc->bgf...", x[cells].reshape((x.shape[0], groups, c) + tuple(out)),
                       w[(slice(None), slice(None)) + tap].reshape(groups, f // groups, c))
    return y.reshape((x.shape[0], f) + tuple(out))


def to_images(y, w, shape, pad, stride, dilation, groups, flip):
    """The transpose of x -> correlate(x, w)."""
    f, c = w.shape[:2]
    out, taps = each_tap(shape, w.shape[2:], pad, stride, dilation, groups, f, c, flip)
    if y.shape != (shape[0], f) + tuple(out):
        raise Unsure("shapes that do not fit")
    x = np.zeros(tuple(shape[:2]) + tuple(n + sum(p) for n, p in zip(shape[2:], pad)), y.dtype)
    y = y.reshape((shape[0], groups, f // groups) + tuple(out))
    for tap, cells in taps:
        part = np.einsum("bgf...,gfc->bgc...", y, w[(slice(None), slice(None)) + tap].reshape(groups, f // groups, c))
        x[cells] += part.reshape((shape[0], groups * c) + tuple(out))
    return x[(slice(None), slice(None)) + tuple(slice(p[0], p[0] + n) for n, p in zip(shape[2:], pad))]


def to_weights(x, y, shape, pad, stride, dilation, groups, flip):
    """The transpose of w -> correlate(x, w)."""
    f, c = shape[:2]
    out, taps = each_tap(x.shape, shape[2:], pad, stride, dilation, groups, f, c, flip)
    if y.shape != (x.shape[0], f) + tuple(out):
        raise Unsure("shapes that do not fit")
    x = np.pad(x, [(0, 0), (0, 0)] + list(pad))
    w, y = np.zeros(shape, y.dtype), y.reshape((x.shape[0], groups, f // groups, -1))
    for tap, cells in taps:
        part = np.einsum("bgfp,bgcp->gfc", y, x[cells].reshape((x.shape[0], groups, c, -1)))
        w[(slice(None), slice(None)) + tap] = part.reshape(f, c)
    return w


@op
def conv(x, w, border="valid", stride=[1], dilation=[1], groups=1, flip=True, unshared=False, layout=None, ceil=False,
         algo=None, precision=None):
    x, w = T(x), T(w)
    if unshared or ceil:
        raise Unsure("unshared, ceil")
    n = x.ndim - 2
    dt = promote(x.dt, w.dt)
    if not is_float(dt):
        raise Unsure("convolution of integers")
    x, w = cast(x, dt), cast(w, dt)
    perm = [layout.index(c) for c in "bc" + "0123"[:n]] if layout else None
    if layout:
        back = np.argsort(perm)
        wperm = perm
    s, d = each(stride, n), each(dilation, n)

    def f(a, b):
        if layout:
            a, b = np.transpose(a, perm), np.transpose(b, wperm)
        y = correlate(a, b, pads(border, b.shape[2:], d, n), s, d, groups, flip)
        return np.transpose(y, back) if layout else y
    taps = int(np.prod(w.v.shape)) // max(w.v.shape[0] if not layout else w.v.shape[wperm[0]], 1)
    wide = "float32" if dt in ("float16", "bfloat16") else dt
    # Transforms (Winograd, FFT) lose some digits more than sums of products do.
    return cast(linear(f, wide, V(x.v, x.e, wide), V(w.v, w.e, wide), ulps=24, count=taps), dt)


@op
def conv_inputs(w, y, shape=None, border="valid", stride=[1], dilation=[1], groups=1, flip=True, unshared=False,
                layout=None, ceil=False, algo=None, precision=None):
    w, y = T(w), T(y)
    if unshared or ceil or layout:
        raise Unsure("unshared, ceil, layout")
    n = y.ndim - 2
    s, d = each(stride, n), each(dilation, n)
    pad = pads(border, w.v.shape[2:], d, n)
    if shape is None:
        if max(s) > 1:
            raise Unsure("which shape")
        size = [o + (k - 1) * e - sum(p) for o, k, e, p in zip(y.v.shape[2:], w.v.shape[2:], d, pad)]
    else:
        size = ints(shape)[-n:]
    whole = (y.v.shape[0], w.v.shape[1] * groups) + tuple(size)
    if int(np.prod(whole)) > 6000 or min(size) <= 0:
        raise Unsure("large")
    dt = promote(w.dt, y.dt)
    wide = "float32" if dt in ("float16", "bfloat16") else dt

    def f(a, b):
        return to_images(b, a, whole, pad, s, d, groups, flip)
    return cast(linear(f, wide, cast(w, wide), cast(y, wide), ulps=24, count=w.v.size), dt)


@op
def conv_weights(x, y, shape=None, border="valid", stride=[1], dilation=[1], groups=1, flip=True, unshared=False,
                 layout=None, ceil=False, algo=None, precision=None):
    x, y = T(x), T(y)
    if unshared or ceil or layout or shape is None:
        raise Unsure("unshared, ceil, layout")
    n = y.ndim - 2
    s, d = each(stride, n), each(dilation, n)
    k = ints(shape)[-n:]
    whole = (y.v.shape[1], x.v.shape[1] // groups) + tuple(k)
    pad = pads(border, k, d, n)
    if int(np.prod(whole)) > 6000 or min(k) <= 0:
        raise Unsure("large")
    dt = promote(x.dt, y.dt)
    wide = "float32" if dt in ("float16", "bfloat16") else dt

    def f(a, b):
        return to_weights(a, b, whole, pad, s, d, groups, flip)
    return cast(linear(f, wide, cast(x, wide), cast(y, wide), ulps=24, count=y.v.size), dt)


@op
def conv_transpose(x, w, shape=None, border="valid", stride=[1], dilation=[1], groups=1, flip=True, layout=None,
                   output_padding=[0]):
    x, w = T(x), T(w)
    n = x.ndim - 2
    s, d, more = each(stride, n), each(dilation, n), each(output_padding, n)
    if layout or shape is not None:
        raise Unsure("layout")
    pad = pads(border, w.v.shape[2:], d, n)
    size = [(o - 1) * a + (k - 1) * e + 1 - sum(p) + m
            for o, a, k, e, p, m in zip(x.v.shape[2:], s, w.v.shape[2:], d, pad, more)]
    if min(size) <= 0:
        raise Unsure("a result without places")
    return conv_inputs(w, x, [-1, -1] + size, border, stride, dilation, groups, flip)


@op
def corrmm(x, w, border_mode="valid", subsample=[1], filter_dilation=[1], num_groups=1, unshared=False, pad=None):
    return conv(x, w, auto(pad, border_mode), subsample, filter_dilation, num_groups, False)


def auto(pad, border_mode):
    """corrmm's pad, which is border_mode by another name; 'auto' is all that a window can reach."""
    return border_mode if pad is None else "full" if pad == "auto" else pad


@op
def dnn_conv(img, kerns, border_mode="valid", subsample=[1], dilation=[1], conv_mode="conv", direction_hint=None,
             workmem=None, algo=None, precision=None, num_groups=1):
    return conv(img, kerns, border_mode, subsample, dilation, num_groups, conv_mode == "conv")


# ---- pooling

def places(n, w, st, p, ignore, start):
    """For each window of an axis: its cells, and which of them are in the image."""
    if start is not None:
        if n - start < w:
            raise Unsure("a window that is larger than the image")
        o = -(-(n - start - w) // st) + 1 if n - start > w else 1
        first = [start + i * st for i in range(max(o, 1))]
    elif ignore:
        o = max(0, (n + 2 * p - w) // st + 1)
        first = [i * st - p for i in range(o)]
    else:
        if p:
            raise Unsure("pads of cut windows")
        o = (n - 1) // st + 1 if st >= w else max(0, (n - 1 - w + st) // st) + 1
        first = [i * st for i in range(o)]
    at = np.array([[f + j for j in range(w)] for f in first], np.int64).reshape(len(first), w)
    return at, (at >= 0) & (at < n)


@op
def pool(x, ws, stride=None, pad=None, mode="max", ignore_border=True, start=None, ties="first", axis=None, strict=False,
         layout=None):
    x = T(x)
    ws = ints(ws)
    if strict:
        raise Unsure("cuda-convnet's limits")
    if layout is not None:
        axes = [i for i, c in enumerate(layout) if c.isdigit()]
    elif axis is not None:
        axes = [a % x.ndim for a in ints(axis)]
    else:
        axes = list(range(x.ndim - len(ws), x.ndim))
    n = len(axes)
    ws = each(ws, n)
    st = each(ws if stride is None else stride, n)
    pd = each([0] if pad is None else pad, n)
    if not is_float(x.dt):
        raise Unsure("pooling of integers")
    if any(p >= w for p, w in zip(pd, ws)):
        raise Unsure("windows of padding alone")
    table = [places(x.v.shape[a], w, s, p, ignore_border, start) for a, w, s, p in zip(axes, ws, st, pd)]
    if any(t[0].size == 0 or not t[1].any(axis=1).all() for t in table) or x.v.size == 0:
        raise Unsure("empty windows")

    def fold(v, f, fill):
        for a, (at, inside) in zip(axes, table):
            v = np.moveaxis(v, a, -1)
            cells = np.where(inside, v[..., np.clip(at, 0, v.shape[-1] - 1)], fill)
            v = np.moveaxis(f(cells, axis=-1), -1, a)
        return v

    if mode == "max":
        most = fold(x.v, np.max, -np.inf)
        tie(fold(x.v, lambda v, axis: np.sum(v == np.max(v, axis=axis, keepdims=True), axis=axis), -np.inf) > 1 if len(axes) == 1 else
            len(np.unique(x.v)) < x.v.size)
        return V(most, None if x.e is None else fold(errors(x), np.max, 0.0), x.dt)
    wide = "float32" if x.dt in ("float16", "bfloat16") else x.dt
    y = linear(lambda v: fold(v, np.sum, 0), wide, V(x.v, x.e, wide), ulps=2, count=int(np.prod(ws)))
    if mode == "sum":
        return cast(y, x.dt)
    if mode == "average_exc_pad":
        counts = [t[1].sum(axis=1) for t in table]
    elif ignore_border:
        counts = [np.full(len(t[0]), w) for t, w in zip(table, ws)]
    else:
        counts = [t[1].sum(axis=1) for t in table]
    by = np.ones(y.v.shape, REAL)
    for a, c in zip(axes, counts):
        by = by * c.reshape([-1 if i == a else 1 for i in range(x.ndim)])
    return cast(scalar("true_div", y, V(by, None, y.dt)), x.dt)


@op
def dnn_pool(x, ws, stride=None, pad=None, mode="max", ties="first"):
    n = T(x).ndim - 2
    return pool(x, each(ws, n), [1] if stride is None else stride, pad, mode, True)


@op
def upscale(x, factor, mode="repeat", nd=2):
    x = T(x)
    factor = each(factor, nd)

    def f(v):
        for i, k in enumerate(factor):
            a = v.ndim - nd + i
            if mode == "repeat":
                v = np.repeat(v, k, axis=a)
            else:
                shape = list(v.shape)
                shape[a] *= k
                w = np.zeros(shape, v.dtype)
                w[(slice(None),) * a + (slice(None, None, k),)] = v
                v = w
        return v
    return move(f, x)


@op
def channel_sum(x, n, axis=1, blocked=False, back=False):
    x = T(x)
    if back:
        raise Unsure("back")

    def f(v):
        v = np.moveaxis(v, axis, 0)
        y = np.zeros(v.shape, v.dtype)
        for c in range(len(v)):
            low = c // n * n if blocked else c - n // 2
            y[c] = v[max(low, 0):low + n].sum(axis=0)
        return np.moveaxis(y, 0, axis)
    return linear(f, x.dt, x, count=n)


@op
def lrn(x, n=5, alpha=1e-4, beta=0.75, k=2, axis=1, blocked=False, strict=False):
    x = T(x)
    return x / (k + alpha * channel_sum(x * x, n, axis, blocked)) ** beta


@op
def cross_map_norm(x, size_f, add_scale, pow_scale, blocked=False, strict=False, axis=0):
    d = 1 + add_scale * channel_sum(x * x, size_f, axis, blocked)
    return [x * d ** (-pow_scale), d]


@op
def images2neibs(x, neib_shape, neib_step=None, mode="valid"):
    if mode != "valid":
        raise Unsure(mode)
    x = T(x)
    (h, w), step = ints(neib_shape), ints(neib_step or neib_shape)
    if (x.v.shape[2] - h) % step[0] or (x.v.shape[3] - w) % step[1] or x.v.shape[2] < h or x.v.shape[3] < w:
        raise Unsure("neighbours that do not fit")

    def f(v):
        rows = [v[b, c, i:i + h, j:j + w].ravel() for b in range(v.shape[0]) for c in range(v.shape[1])
                for i in range(0, v.shape[2] - h + 1, step[0]) for j in range(0, v.shape[3] - w + 1, step[1])]
        return np.array(rows).reshape(-1, h * w)
    return move(f, x)

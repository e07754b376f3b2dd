"""other_names.py: convolution, pooling and rows of probabilities by the names of Theano, cuDNN, cuda-convnet and Nervana:
what each is in NumPy, and rows that draw them.  Images of cuda-convnet are c01b: channels, rows, columns, batch."""
import numpy as np

from . import images, normal
from .images import OPS, correlate, each, to_images, to_weights
from .structured import T, index_of, ints, op
from .value import Unsure, V, cast, linear, move, promote, tie

conv, conv_inputs, conv_weights = images.conv, images.conv_inputs, images.conv_weights
FRONT = (3, 0, 1, 2)      # c01b to bc01; also filters, c01f to fc01
BACK = (1, 2, 3, 0)


def turned(x, order):
    return move(lambda v: np.transpose(v, order), T(x))


# ---- convolution

@op
def corrmm_grad_weights(x, topgrad, shape=None, border_mode="valid", subsample=[1], filter_dilation=[1], num_groups=1, unshared=False, pad=None):
    return conv_weights(x, topgrad, shape, images.auto(pad, border_mode), subsample, filter_dilation, num_groups, False)


@op
def corrmm_grad_inputs(w, topgrad, shape=None, border_mode="valid", subsample=[1], filter_dilation=[1], num_groups=1, unshared=False, pad=None):
    return conv_inputs(w, topgrad, shape, images.auto(pad, border_mode), subsample, filter_dilation, num_groups, False)


@op
def dnn_gradinput(kerns, topgrad, img_shp, border_mode="valid", subsample=[1], dilation=[1], conv_mode="conv", num_groups=1):
    return conv_inputs(kerns, topgrad, img_shp, border_mode, subsample, dilation, num_groups, conv_mode == "conv")


@op
def dnn_gradweight(img, topgrad, kerns_shp, border_mode="valid", subsample=[1], dilation=[1], conv_mode="conv", num_groups=1):
    return conv_weights(img, topgrad, kerns_shp, border_mode, subsample, dilation, num_groups, conv_mode == "conv")


def covers(n, k, pad, stride):
    """Places of cuda-convnet along an axis: ceil((n + 2 * pad - k) / stride) + 1."""
    return -(-(n + 2 * pad - k) // stride) + 1


def acts(f, a, w, sizes, k, pad, stride):
    """f, which is correlate or one of its transposes, over images (channels, rows, columns, batch) of these sizes and filters
    (channels, rows, columns, filters): the last window may hang over the end."""
    behind = [(covers(n, j, pad, stride) - 1) * stride + j - n - pad for n, j in zip(sizes, k)]
    if any(n + 2 * pad < j for n, j in zip(sizes, k)):
        raise Unsure("a result without places")
    y = f(np.transpose(a, FRONT), np.transpose(w, FRONT), [(pad, max(b, 0)) for b in behind], [stride] * 2, [1, 1], 1, False)
    return np.transpose(y, BACK)


@op
def filter_acts(images, filters, pad=0, stride=1):
    a, w = T(images), T(filters)
    dt = promote(a.dt, w.dt)
    n = int(np.prod(w.v.shape[:3]))
    wide = "float32" if dt in ("float16", "bfloat16") else dt
    return cast(linear(lambda x, k: acts(correlate, x, k, a.v.shape[1:3], w.v.shape[1:3], pad, stride), wide, cast(a, wide), cast(w, wide), ulps=24, count=n), dt)


@op
def image_acts(hid_acts, filters, output_shape=None, pad=0, stride=1):
    y, w = T(hid_acts), T(filters)
    dt = promote(y.dt, w.dt)
    whole = (w.v.shape[0], *ints(output_shape), y.v.shape[3])
    front = tuple(whole[i] for i in FRONT)
    return linear(lambda b, k: acts(lambda g, f, *more: to_images(g, f, front, *more), b, k, whole[1:3], w.v.shape[1:3], pad, stride), dt, cast(y, dt), cast(w, dt), ulps=24, count=w.v.size)


@op
def weight_acts(images, hid_grads, output_shape=None, pad=0, stride=1):
    a, y = T(images), T(hid_grads)
    dt = promote(a.dt, y.dt)
    whole = (a.v.shape[0], *ints(output_shape), y.v.shape[0])
    front = tuple(whole[i] for i in FRONT)
    return linear(lambda x, b: acts(lambda p, g, *more: to_weights(p, g, front, *more), x, b, a.v.shape[1:3], whole[1:3], pad, stride), dt, cast(a, dt), cast(y, dt), ulps=24, count=y.v.size)


@op
def nervana_conv(input_, filters, padding=None, strides=[1], dimshuffle=True, relu=False):
    x, w = T(input_), T(filters)
    n = x.ndim - 2
    if not dimshuffle:
        x, w = turned(x, [n + 1, *range(n + 1)]), turned(w, [n + 1, *range(n + 1)])
    pad = [k // 2 for k in w.v.shape[2:]] if padding in ("half", "same") else "valid" if padding is None else padding
    y = conv(x, w, pad, strides, [1], 1, False)
    y = y if dimshuffle else turned(y, [*range(1, n + 2), 0])
    return OPS["maximum"](y, 0) if relu else y


@op
def nervana_dot(x, y, relu=False):
    z = OPS["dot"](x, y)
    return OPS["maximum"](z, 0) if relu else z


# ---- windows

def windows(x, ws, stride, pad, ignore_border, start, layout):
    """The axes that windows run along, and where each window has its cells."""
    axes = [i for i, c in enumerate(layout) if c.isdigit()] if layout else list(range(x.ndim - len(ws), x.ndim))
    st, pd = each(ws if stride is None else stride, len(axes)), each([0] if pad is None else pad, len(axes))
    table = [images.places(x.v.shape[a], w, s, p, ignore_border, start) for a, w, s, p in zip(axes, ws, st, pd)]
    if any(t[0].size == 0 or not t[1].any(axis=1).all() for t in table) or x.v.size == 0:
        raise Unsure("empty windows")
    return axes, table


def each_window(x, axes, table):
    """(place of the window in the result, flat places of its cells in x) for every window."""
    at = np.arange(x.v.size).reshape(x.v.shape)
    rest = [n for i, n in enumerate(x.v.shape) if i not in axes]
    at = np.moveaxis(at, axes, range(-len(axes), 0)).reshape(rest + [x.v.shape[a] for a in axes])
    for place in np.ndindex(*[len(t[0]) for t in table]):
        cells = at
        for k, (i, (where, inside)) in enumerate(zip(place, table)):
            cells = np.take(cells, where[i][inside[i]], axis=len(rest) + k)
        yield place, cells.reshape(tuple(rest) + (-1,))


def chosen(x, cells, ties):
    """1 for the cells that are the maximum of their window: all of them, or the first; without ties: for every cell."""
    if not ties:
        return np.ones(cells.shape, bool)
    v = x.v.reshape(-1)[cells]
    hit = v == v.max(axis=-1, keepdims=True)
    tie(hit.sum(axis=-1) > 1)
    return hit if ties == "all" else hit & (np.cumsum(hit, axis=-1) == 1)


def spread(x, g, ws, stride=None, pad=None, ignore_border=True, start=None, ties="first", layout=None):
    """The gradient of pooling: each window's g goes to its maximum, or to each of its cells where ties is None."""
    x, g, ws = T(x), T(g), ints(ws)
    if ties and x.e is not None:
        raise Unsure("which is the largest")
    axes, table = windows(x, ws if len(ws) > 1 or not layout else ws * 2, stride, pad, ignore_border, start, layout)

    def f(b):
        out = np.zeros(x.v.size, b.dtype)
        b = np.moveaxis(b, axes, range(-len(axes), 0))
        for place, cells in each_window(x, axes, table):
            np.add.at(out, cells, b[(..., *place)][..., None] * chosen(x, cells, ties))
        return out.reshape(x.v.shape)
    shape = list(x.v.shape)
    for a, t in zip(axes, table):
        shape[a] = len(t[0])
    if list(g.v.shape) != shape:
        raise Unsure("shapes that do not fit")
    return linear(f, x.dt, cast(g, x.dt), ulps=3, count=int(np.prod(ws)) ** 2)


@op
def pool_grad(x, g, ws, stride=None, pad=None, mode="max", ignore_border=True, start=None, ties="first", layout=None, strict=False):
    if mode not in ("max", "sum"):
        raise Unsure("means")
    return spread(x, g, ws, stride, pad, ignore_border, start, None if mode == "sum" else ties, layout)


@op
def pool_pick(x, v, ws, stride=None, pad=None, ignore_border=True, start=None, ties="first", layout=None, strict=False):
    x, v, ws = T(x), T(v), ints(ws)
    if x.e is not None or ties != "first":
        raise Unsure("which is the largest")
    axes, table = windows(x, ws if len(ws) > 1 or not layout else ws * 2, stride, pad, ignore_border, start, layout)
    shape = [len(table[axes.index(a)][0]) if a in axes else n for a, n in enumerate(x.v.shape)]

    def f(b):
        out = np.zeros(shape, b.dtype)
        inner = np.moveaxis(out, axes, range(-len(axes), 0))
        for place, cells in each_window(x, axes, table):
            inner[(..., *place)] = np.sum(b.reshape(-1)[cells] * chosen(x, cells, ties), axis=-1)
        return out
    return move(f, cast(v, x.dt))


@op
def lrn_grad(x, g, n=5, alpha=1e-4, beta=0.75, k=2, axis=1):
    x, g = T(x), T(g)
    s = k + alpha * OPS["channel_sum"](x * x, n, axis)
    if n % 2 == 0:
        raise Unsure("windows that are not symmetric")
    return g * s ** (-beta) - 2 * alpha * beta * x * OPS["channel_sum"](g * x * s ** (-beta - 1), n, axis)


@op
def neibs2images(neibs, neib_shape, original_shape, mode="valid"):
    x, (h, w), (b, c, rows, columns) = T(neibs), ints(neib_shape), ints(original_shape)
    if rows % h or columns % w:
        raise Unsure("neighbours that do not fit")
    return move(lambda v: v.reshape(b, c, rows // h, columns // w, h, w).transpose(0, 1, 2, 4, 3, 5).reshape(b, c, rows, columns), x)


# ---- others

OPS["gather"] = lambda x, *index, axes: move(
    lambda v: v[tuple(index_of(index[ints(axes).index(a)]) if a in ints(axes) else slice(None) for a in range(v.ndim))], T(x)) \
    if ints(axes) == list(range(min(ints(axes)), min(ints(axes)) + len(ints(axes)))) else refuse()
OPS["tensor_copy"] = T
OPS["assert_"] = lambda x, *conditions, msg=None: T(x)
OPS["grad_clip"] = lambda x, lo, hi: T(x)
OPS["grad_scale"] = lambda x, by: T(x)
OPS["dnn_softmax_grad"] = lambda dy, sm: (T(dy) - OPS["sum"](T(dy) * T(sm), axis=[1], keepdims=True)) * T(sm)


def refuse():
    raise Unsure("axes apart")


def mesh(xs, sparse):
    xs = [V(np.arange(x), None, "int64") if isinstance(x, int) else T(x) for x in xs]
    return OPS["meshgrid"](*xs, indexing="ij", sparse=sparse)


OPS["mgrid"] = lambda *xs: mesh(xs, False)
OPS["ogrid"] = lambda *xs: mesh(xs, True)


# ---- rows

def c01b(d, rows=None):
    """Images of cuda-convnet, of any channels."""
    some = [v for v in d.pool if v.real and v.rank == 4 and v.name.startswith("c")]
    size = [d.any(1, 2, 3, 4), d.any(2, 3, 4, 5, 7), d.any(2, 3, 4, 5, 7), d.any(1, 2, 3)]
    return d.any(*some) if some and d.coin() else d.leaf(d.any("float32", "float32", "float64"), [([s, s], d.coin()) for s in size])


def convnet(d):
    x = c01b(d)
    k = d.any("acts", "acts", "pool", "pool", "grad", "rop", "norm", "weighted", "c01b", "turn", "prob")
    size, stride, start = d.any(1, 2, 3), d.any(1, 2, 3), d.any(0, 0, 1)
    if k == "acts":
        taps = d.any(1, 2, 3)
        w = d.leaf(x.dt, [([n, n], d.coin()) for n in (x.shape[0], taps, taps, d.any(1, 2, 3))])
        more = f"pad={d.any(0, 0, 1)}, stride={stride}"
        y = d.take(f"filter_acts({x.name}, {w.name}, {more})")
        if y is None or d.coin(0.3):
            return None
        shape = lambda v: f"[{v.name}.shape[1], {v.name}.shape[2]]"
        return d.any(f"image_acts({y.name}, {w.name}, {shape(x)}, {more})", f"weight_acts({x.name}, {y.name}, {shape(w)}, {more})")
    if k == "turn":
        return d.any(f"c01b_to_bc01({x.name})", f"bc01_to_c01b({x.name})")
    if k == "norm":
        y = d.take(f"cross_map_norm({x.name}, {d.any(1, 2, 3)}, 0.1, 0.75)[{d.any(0, 1)}]")
        return f"cross_map_norm_undo({x.name}, {x.name}, 1 + sqr({x.name}), {y.name}, 3, 0.1, 0.75)" if y and d.coin() else None
    if k == "c01b":
        return f"max_pool_c01b({x.name}, [{size}, {d.any(1, 2)}])"
    if k == "weighted":
        return f"weighted_max_pool(abs({x.name}) + 0.2, {size}, {stride})"
    if k == "prob":
        return f"prob_max_pool({x.name}, ds={size})[{d.any(0, 1)}]"
    y = d.take(f"max_pool({x.name}, {size}, {stride}, start={start})")
    if y is None or k == "pool":
        return None
    return f"max_pool_grad({x.name}, {y.name}, {size}, {stride}, start={start})" if k == "grad" else f"max_pool_rop({x.name}, {x.name} * 0.5, {size}, {stride}, start={start})"


def by_other_names(d):
    from . import rows
    n = d.any(1, 2, 2, 3)
    x = rows.images(d, n)
    c = x.dims[1]
    if c < 0:
        raise Unsure("channels")
    filters, taps = d.any(1, 2, 3), [d.any(1, 2, 3) for _ in range(n)]
    stride, dilation = [d.any(1, 1, 2) for _ in range(n)], [d.any(1, 1, 2) for _ in range(n)]
    border = d.any("'valid'", "'full'", "'half'", str([d.any(0, 1) for _ in range(n)]))
    k = d.any("old", "old", "dnn", "corrmm", "nervana", "causal", "separable", "transpose", "auto", "lines", "lines", "lines")
    if k == "lines":
        return lines(d, x, n)
    w = d.leaf(x.dt, [([m, m], True) for m in [filters, c] + taps])
    if k == "causal":
        return f"causal_conv1d({x.name}, {w.name}, subsample=[{stride[0]}], filter_dilation=[{dilation[0]}])" if n == 1 else None
    if k == "separable":
        each_ = d.leaf(x.dt, [([m, m], True) for m in [c, 1] + taps])
        point = d.leaf(x.dt, [([m, m], True) for m in [filters, c] + [1] * n])
        return f"separable_conv{n}d({x.name}, {each_.name}, {point.name}, {c}, border_mode={border}, subsample={stride})" if n > 1 else None
    if k == "auto":
        return f"corrmm({x.name}, {w.name}, pad='auto')" if n == 2 and max(stride) == 1 else None
    if k == "nervana":
        more = f", padding={d.any('None', repr('half'), str([d.any(0, 1) for _ in range(n)]))}, strides={stride}"
        if d.coin(0.4):
            order = lambda v: f"dimshuffle({v.name}, {[*range(1, n + 2), 0]})"
            return f"nervana_conv({order(x)}, {order(w)}{more}, dimshuffle=False)".replace("padding=None, ", "")
        return f"nervana_conv({x.name}, {w.name}{more}, relu={d.coin()})".replace("padding=None, ", "")
    front = {"old": f"conv{n}d", "transpose": f"conv{n}d", "dnn": "dnn_conv" if n < 3 else "dnn_conv3d", "corrmm": "corrmm"}[k]
    more = f"border_mode={border}, subsample={stride}, {'dilation' if k == 'dnn' else 'filter_dilation'}={dilation}"
    more += f", conv_mode='{d.any('conv', 'cross')}'" if k == "dnn" else f", filter_flip={d.coin()}" if k in ("old", "transpose") else ""
    y = d.take(f"{front}({x.name}, {w.name}, {more})")
    if y is None:
        return None
    if k == "dnn":
        n3 = "3d" if n == 3 else ""
        return d.any(f"dnn_gradinput{n3}({w.name}, {y.name}, {x.name}.shape, {more})", f"dnn_gradweight{n3}({x.name}, {y.name}, {w.name}.shape, {more})")
    if k == "corrmm":
        return d.any(f"corrmm_grad_inputs({w.name}, {y.name}, {x.name}.shape, {more})", f"corrmm_grad_weights({x.name}, {y.name}, {w.name}.shape, {more})")
    if n == 1:
        return None
    if k == "transpose":
        return f"conv{n}d_transpose({y.name}, {w.name}, {x.name}.shape, {more.replace('subsample', 'input_dilation')})"
    return d.any(f"conv{n}d_grad_wrt_inputs({y.name}, {w.name}, {x.name}.shape, {more})", f"conv{n}d_grad_wrt_weights({x.name}, {y.name}, {w.name}.shape, {more})")


def lines(d, x, n):
    """Windows of images by other names."""
    a, b, t = d.any(1, 2, 3), d.any(1, 2), d.any("first", "all")
    k = d.any("pool_2d", "old", "same", "pool_3d", "grad", "pick", "lrn", "softmax", "neibs", "channels", "axes")
    if k in ("pool_2d", "old", "same", "neibs", "softmax") and n != 2:
        return None
    if k == "pool_2d":
        return f"pool_2d({x.name}, [{a}, {b}], mode='{d.any('max', 'sum', 'average_exc_pad', 'average_inc_pad')}', ignore_border={d.coin()})"
    if k == "old":
        return f"max_pool_2d({x.name}, [{a}, {b}], ignore_border={d.coin()})"
    if k == "same":
        return f"max_pool_2d_same_size({x.name}, [{a}, {b}], ties='{t}')"
    if k == "pool_3d":
        return f"pool_3d({x.name}, [{a}, {b}, {a}], ignore_border={d.coin()})" if n == 3 else None
    if k == "axes":
        return f"pool({x.name}, [{a}, {b}], axis=[{d.any('0, 1', '1, 2', '0, 2')}], mode='{d.any('max', 'sum')}')"
    if k in ("grad", "pick"):
        more = f"{[d.any(1, 2, 3) for _ in range(n)]}, ties='{t}'" + (f", stride={[d.any(1, 2) for _ in range(n)]}" if d.coin() else "") + f", ignore_border={d.coin()}"
        if k == "pick":
            return f"pool_pick({x.name}, sin({x.name}), {more.replace(repr('all'), repr('first'))})"
        y = d.take(f"pool({x.name}, {more})")
        return f"pool_grad({x.name}, {y.name} * 2, {more})" if y else None
    if k == "lrn":
        return f"lrn_grad({x.name}, sin({x.name}), n={d.any(1, 3, 5)}, alpha=0.1)"
    if k == "channels":
        return f"channel_sum({x.name}, {d.any(1, 2, 3, 4)}, blocked={d.coin()})"
    if k == "softmax":
        y = d.take(f"dnn_softmax({x.name})")
        return f"dnn_softmax_grad({x.name}, {y.name})" if y else None
    y = d.take(f"images2neibs({x.name}, [{a}, {b}])")
    return f"neibs2images({y.name}, [{a}, {b}], {x.name}.shape)" if y else None


def tables(d):
    """Rows of probabilities, labels, grids."""
    v = d.real(2)
    n, m = f"{v.name}.shape[0]", f"{v.name}.shape[1]"
    t = f"arange({n}) * 7 % {m}"
    p = f"softmax({v.name})"
    bias = f"sum({v.name}, axis=0)"
    return d.any(
        f"crossentropy_softmax_1hot_with_bias({v.name}, {bias}, {t})", f"crossentropy_softmax_max_and_argmax_1hot({v.name}, {t})[{d.any(0, 1, 2)}]",
        f"crossentropy_softmax_max_and_argmax_1hot_with_bias({v.name}, {bias}, {t})[{d.any(0, 1, 2)}]", f"crossentropy_1hot({p}, {t})",
        f"crossentropy_categorical_1hot({p}, {t})", f"categorical_crossentropy({p}, softmax({v.name} * 2))",
        f"binary_crossentropy(0.98 * sigmoid({v.name}) + 0.01, {p})", f"prepend_scalar_to_each_row({v.name}[0, 0], {v.name})",
        f"confusion_matrix({t}, arange({n}) % 2)[{d.any(0, 1)}]", f"softmax_with_bias({v.name}, {bias})",
        f"dot({p}, transpose({p}))", f"tril({v.name}, k={d.any(-1, 0, 1)})", f"triu({v.name}, k={d.any(-1, 0, 2)})",
        f"divmod({v.name}, 0.5)[{d.any(0, 1)}]", f"allclose({v.name}, {v.name} * 1.5)", f"mgrid(3, {d.any(2, 4)})[{d.any(0, 1)}] * 2", f"ogrid(3, 2)[{d.any(0, 1)}] + {v.name}[0, 0]",
        f"tensor_copy({v.name})", f"assert_({v.name}, ~({v.name} < {v.name}))", f"grad_clip({v.name}, -1e9, 1e9)", f"grad_scale({v.name}, 1)",
        f"gather({v.name}, {t}, axes=[1])", f"gather({v.name}, arange(2), arange(2)[::-1], axes=[0, 1])", f"join({v.name}, {v.name}, axis={d.any(0, 1)})",
        f"shape_padaxis({v.name}, {d.any(0, 1, 2)})", f"squeeze(expand_dims({v.name}, 1), axis=1)", f"unbroadcast({v.name}, 0)",
        f"bartlett({d.any(1, 2, 5)}) + {v.name}[0, 0]", f"{v.name}.shape * 2", f"nervana_dot({v.name}, transpose({v.name}), relu={d.coin()})", f"size({v.name}, {d.any(0, 1)}) * {v.name}",
        f"bilinear_kernel_1D({d.any(1, 2, 3)}) * {v.name}[0, 0]", f"bilinear_kernel_2D({d.any(1, 2, 3)})",
        f"norm({v.name}, ord={d.any('inf', repr('inf'), '-inf', repr('-inf'), '1', '3')}{d.axes(v)})")


def matrices(d):
    """NumPy's matmul: batches broadcast, vectors lose their axis."""
    a = d.real(fits=lambda v: 0 < v.rank < 6)

    def fits(b):
        if not 0 < b.rank < 6:
            return False
        for s, t in zip(a.shapes, b.shapes):
            if s[-1] != (t[-2] if len(t) > 1 else t[-1]):
                return False
        for i in range(3, min(a.rank, b.rank) + 1):
            if 1 not in (a.dims[-i], b.dims[-i]) and any(s[-i] != t[-i] for s, t in zip(a.shapes, b.shapes)):
                return False
        return True
    k = d.any("gram", "gram", "pair", "leaf", "leaf", "batched")
    if k == "gram" and a.rank > 1:
        flip = f"swapaxes({a.name}, {a.rank - 1}, {a.rank - 2})"
        return d.any(f"{a.name} @ {flip}", f"{flip} @ {a.name}", f"matmul({a.name}[..., :, :1], {a.name}[..., :1, :])", f"{flip} @ sum({a.name}, axis=0)" if a.rank == 2 else f"{a.name}[0] @ {flip}")
    if k == "leaf":
        more = [([n, n], n == 1 or d.coin()) for n in [d.any(1, 2, 3)]] if d.coin(0.8) else []
        batch = []
        for i in range(3, d.rng.randint(2, 5) + 1):
            at = a.rank - i
            batch.insert(0, ([1, 1], True) if at < 0 or d.coin(0.3) else ([s[at] for s in a.shapes], a.dims[at] >= 0))
        if not more:
            batch = []
        b = d.leaf(a.dt, batch + [([s[-1] for s in a.shapes], a.dims[-1] >= 0)] + more)
        return f"{a.name} @ {b.name}" if d.coin() else f"matmul({a.name}, {b.name})"
    if k == "batched" and a.rank == 3:
        return f"batched_dot(expand_dims({a.name}[0], 0), swapaxes({a.name}, 1, 2))" if d.coin() else f"batched_dot({a.name}, expand_dims({a.name}[0].T, 0))"
    b = d.pick(fits)
    return f"{a.name} @ {b.name}"

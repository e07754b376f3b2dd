"""leaves.py: inputs: dtypes, sizes, what they hold and how they lie in memory."""
import numpy as np

import mc
from .value import is_float

DTYPES = ["float32"] * 9 + ["float64"] * 4 + ["float16", "bfloat16"] + ["int32", "int64"] * 2 + \
         ["int8", "int16", "uint8", "uint16", "uint32", "uint64", "bool"]
SIZES = [0] + [1] * 3 + [2] * 6 + [3] * 6 + [4] * 4 + [5] * 3 + [7, 8, 8, 9, 16, 17, 31, 33]


def whole_numbers(rng, dt, shape, n):
    """Integers, mostly small; now and then all that the dtype holds, or the ends and the middle of its range."""
    if dt == "bool":
        return n.integers(0, 2, shape).astype(bool)
    info = np.iinfo(dt)
    kind = rng.random()
    if kind < 0.12:
        return n.integers(info.min, info.max, shape, dtype=dt, endpoint=True)
    if kind < 0.24:
        middle = info.max // 2
        return n.choice(np.array([info.min, info.min + 1, 0, 1, middle, middle + 1, info.max - 1, info.max], dt), shape)
    low = 0 if info.min == 0 or rng.random() < 0.3 else -6
    return n.integers(low, 10, shape).astype(dt)


def reals(rng, shape, n):
    kind = rng.random()
    if kind < 0.55:
        return n.standard_normal(shape)
    if kind < 0.7:
        return n.integers(-3, 4, shape).astype(float)              # ties, zeros
    if kind < 0.8:
        return n.uniform(0.1, 2, shape)
    if kind < 0.86:
        return n.standard_normal(shape) * 20
    if kind < 0.9:
        return np.full(shape, n.choice([0.0, 1.0, -1.0, 0.1, 100.0]))
    if kind < 0.95:
        return n.standard_normal(shape) * n.choice([1e-3, 1e-6])
    return np.rint(n.standard_normal(shape)) * n.choice([0.0, 1.0, 40.0, 100.0], shape)


def lay(rng, a):
    """The same elements in another order in memory: axes exchanged, reversed, with gaps; strides of axes of size 1 are
    anything."""
    if a.ndim == 0 or rng.random() < 0.35:
        return a
    order = list(range(a.ndim))
    if rng.random() < 0.6:
        rng.shuffle(order)
    step = [rng.choice([1, 1, 1, 2, -1, -2]) for _ in order]
    room = np.zeros([a.shape[i] * abs(step[i]) for i in order], a.dtype)
    view = room.transpose(np.argsort(order)) if order else room
    view = view[tuple(slice(None, None, s) for s in step)]
    view = view[tuple(slice(0, n) for n in a.shape)]
    view[...] = a
    if 1 in a.shape and rng.random() < 0.5:
        strides = [s if n != 1 else a.itemsize * rng.choice([0, 1, 2, 3, 7, -1]) for n, s in zip(a.shape, view.strides)]
        view = np.lib.stride_tricks.as_strided(view, a.shape, strides)
    return view


def array(rng, dt, shape):
    n = np.random.default_rng(rng.getrandbits(62))
    spread = [i for i in range(len(shape)) if shape[i] > 1 and rng.random() < 0.5] if rng.random() < 0.1 else []
    inner = tuple(1 if i in spread else s for i, s in enumerate(shape))
    a = reals(rng, inner, n) if is_float(dt) else whole_numbers(rng, dt, inner, n)
    if dt == "bfloat16":
        a = np.asarray(mc.bfloat16.of(a))
    a = np.asarray(a, np.uint16 if dt == "bfloat16" else dt)
    a = np.broadcast_to(a, shape) if spread else lay(rng, a)       # stride 0
    return a.view(mc.bfloat16) if dt == "bfloat16" else a

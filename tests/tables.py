#!/usr/bin/env python3
"""tables.py: what ops give that NumPy or SciPy has as well: the table that t_tables.c holds the library to.

    tests/tables.py > tests/tables.txt

The table:

    input NAME DTYPE RANK SIZES ... ELEMENTS ...
    row FLAGS FORMULA            g: the gradient is checked by differences; r: rough, within 1e-10; x: dtypes may differ
    want DTYPE RANK SIZES ... ELEMENTS ...
"""
import numpy as np
from scipy import special as sp, stats

rng = np.random.default_rng(5)
INPUTS = {
    "x": rng.permutation(24).reshape(4, 6) / 8.0 - 1.2,
    "y": rng.normal(size=(4, 6)).round(3),
    "v": rng.normal(size=6).round(3),
    "w": rng.normal(size=6).round(3),
    "c": rng.normal(size=(2, 3, 4)).round(3),
    "d": rng.normal(size=(2, 4, 3)).round(3),
    "e": rng.normal(size=(3, 3)).round(3),
    "s": np.float64(0.7),
    "holes": np.array([[1.5, np.nan, 3, -1], [np.nan, np.nan, 2, 0.5]]),
    "odd": np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -2.5]),
    "k": np.array([[5, 0, 2], [1, 1, 3]]),
    "m": np.array([2, 0, 1, 2, 7, 2, 0]),
    "b": np.array([-7, 7, 13, -128, 127], np.int8),
    "u": np.array([7, 200, 255], np.uint8),
    "f": rng.normal(size=7).astype(np.float32),
    "p": np.array([0.1, 0.5, 0.9]),
    "im": rng.normal(size=(2, 3, 2, 2)).round(3),
    "flag": np.array([True, False, True, True]),
}
globals().update(INPUTS)


def complex_last(z):
    return np.stack([z.real, z.imag], -1)


def pairs(x):
    return x[..., 0] + 1j * x[..., 1]


def put(a, i, val, axis, how):
    out, i = a.copy(), np.asarray(i)
    grid = list(np.indices(i.shape))
    grid[axis] = i
    {"add": np.add, "max": np.maximum, "min": np.minimum}[how].at(out, tuple(grid), np.broadcast_to(val, i.shape))
    return out


def erf(a):
    return sp.erf(a)


def group(a, n):
    r = a.reshape(a.shape[0], n, -1)
    return ((r - r.mean(-1, keepdims=True)) / np.sqrt(r.var(-1, keepdims=True) + 1e-5)).reshape(a.shape)


def unique_all(a):
    return np.unique(a, return_index=True, return_inverse=True, return_counts=True)


# flags, formula, value
ROWS = [
    # element by element
    ("", "isfinite(odd)", lambda: np.isfinite(odd)),
    ("", "isfinite(k)", lambda: np.isfinite(k)),
    ("", "signbit(where(isnan(odd), 1, odd))", lambda: np.signbit(np.where(np.isnan(odd), 1, odd))),
    ("", "signbit(b)", lambda: np.signbit(b.astype(float))),
    ("g", "copysign(x, y)", lambda: np.copysign(x, y)),
    ("g", "hypot(x, y)", lambda: np.hypot(x, y)),
    ("", "hypot(odd, 1e308)", lambda: np.hypot(odd, 1e308)),
    ("g", "logaddexp(x, y)", lambda: np.logaddexp(x, y)),
    ("g", "fmod(7 * y, 1 + x * x)", lambda: np.fmod(7 * y, 1 + x * x)),
    ("", "fmod(b, 5i8)", lambda: np.fmod(b, np.int8(5))),
    ("", "left_shift(b, 3i8)", lambda: np.left_shift(b, np.int8(3))),
    ("", "right_shift(b, 2i8)", lambda: np.right_shift(b, np.int8(2))),
    ("", "right_shift(u, 1u8)", lambda: np.right_shift(u, np.uint8(1))),
    ("", "left_shift(u, 9u8)", lambda: np.left_shift(u, np.uint8(9))),
    ("", "right_shift(b, 70i8)", lambda: np.right_shift(b, np.int8(70))),
    ("", "left_shift(1, m)", lambda: np.left_shift(1, m)),
    ("", "left_shift(flag, flag)", lambda: np.left_shift(flag, flag)),
    ("", "nan_to_num(odd)", lambda: np.nan_to_num(odd)),
    ("", "nan_to_num(cast(odd, float32), nan=3, posinf=9)", lambda: np.nan_to_num(odd.astype(np.float32), nan=3, posinf=9)),
    ("", "nan_to_num(m)", lambda: m),
    ("g", "rsqrt(2 + x)", lambda: 1 / np.sqrt(2 + x)),
    ("gr", "gelu(y)", lambda: y * stats.norm.cdf(y)),
    ("gr", "gelu(10 * y - 8)", lambda: (10 * y - 8) * stats.norm.cdf(10 * y - 8)),
    ("gr", "gelu_tanh(y)", lambda: 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))),
    ("g", "silu(y)", lambda: y * sp.expit(y)),
    ("g", "mish(y)", lambda: y * np.tanh(np.log1p(np.exp(y)))),
    ("g", "hardswish(3 * y)", lambda: 3 * y * np.clip(3 * y / 6 + 0.5, 0, 1)),
    ("g", "prelu(y, v)", lambda: np.where(y > 0, y, v * y)),
    # special functions
    ("gr", "erfinv(tanh(y))", lambda: sp.erfinv(np.tanh(y))),
    ("gr", "erfcinv(1 + tanh(y))", lambda: sp.erfcinv(1 + np.tanh(y))),
    ("gr", "erfcx(y)", lambda: sp.erfcx(y)),
    ("gr", "gamma(y * y + 0.1)", lambda: sp.gamma(y * y + 0.1)),
    ("r", "gamma(y)", lambda: sp.gamma(y)),
    ("r", "gammainc(p[:, None, None] * 9, abs(y) * 6)", lambda: sp.gammainc(p[:, None, None] * 9, abs(y) * 6)),
    ("r", "gammaincc(p[:, None, None] * 9, abs(y) * 6)", lambda: sp.gammaincc(p[:, None, None] * 9, abs(y) * 6)),
    ("gr", "gammaincc(2.5, abs(y) * 6)", lambda: sp.gammaincc(2.5, abs(y) * 6)),
    ("r", "gammaincinv(3 * x * x + 0.2, p[:, None, None])", lambda: sp.gammaincinv(3 * x * x + 0.2, p[:, None, None])),
    ("r", "betainc(2.5, 0.7, p)", lambda: sp.betainc(2.5, 0.7, p)),
    ("gr", "betainc(2.5, 4.5, p)", lambda: sp.betainc(2.5, 4.5, p)),
    ("r", "chi2sf(abs(5 * y), 3)", lambda: stats.chi2.sf(abs(5 * y), 3)),
    ("r", "gammau(1.5, abs(y))", lambda: sp.gammaincc(1.5, abs(y)) * sp.gamma(1.5)),
    ("r", "gammal(1.5, abs(y))", lambda: sp.gammainc(1.5, abs(y)) * sp.gamma(1.5)),
    ("gr", "j0(5 * y)", lambda: sp.j0(5 * y)),
    ("gr", "j1(5 * y)", lambda: sp.j1(5 * y)),
    ("gr", "jv(2.5, abs(9 * y) + 0.1)", lambda: sp.jv(2.5, abs(9 * y) + 0.1)),
    ("r", "jv(3, 5 * y)", lambda: sp.jv(3, 5 * y)),
    ("r", "jv(-1.5, abs(9 * y) + 0.1)", lambda: sp.jv(-1.5, abs(9 * y) + 0.1)),
    ("gr", "i0(3 * y)", lambda: sp.i0(3 * y)),
    ("gr", "i1(3 * y)", lambda: sp.i1(3 * y)),
    ("gr", "iv(1.5, abs(9 * y) + 0.1)", lambda: sp.iv(1.5, abs(9 * y) + 0.1)),
    ("r", "iv(-0.5, abs(9 * y) + 0.1)", lambda: sp.iv(-0.5, abs(9 * y) + 0.1)),
    # over axes
    ("", "nansum(holes, axis=0)", lambda: np.nansum(holes, axis=0)),
    ("", "nanmean(holes, axis=1)", lambda: np.nanmean(holes, axis=1)),
    ("", "nanmax(holes, axis=0)", lambda: np.nanmax(holes, axis=0)),
    ("", "nanmin(holes)", lambda: np.nanmin(holes)),
    ("", "nanmax(k, axis=1)", lambda: np.nanmax(k, axis=1)),
    ("r", "nanvar(holes, axis=1)", lambda: np.nanvar(holes, axis=1)),
    ("r", "nanstd(holes, axis=1, ddof=1)", lambda: np.nanstd(holes, axis=1, ddof=1)),
    ("gr", "nanmean(where(x > 0, x, nan), axis=1)", lambda: np.nanmean(np.where(x > 0, x, np.nan), axis=1)),
    ("gr", "cov(y)", lambda: np.cov(y)),
    ("gr", "cov(v)", lambda: np.cov(v)),
    ("gr", "corrcoef(y)", lambda: np.corrcoef(y)),
    ("g", "cummax(y, axis=1)", lambda: np.maximum.accumulate(y, axis=1)),
    ("g", "cummin(y, axis=0)", lambda: np.minimum.accumulate(y, axis=0)),
    ("", "cummax(m)", lambda: np.maximum.accumulate(m)),
    ("", "cummax(holes)", lambda: np.maximum.accumulate(holes.ravel())),
    # shapes
    ("g", "x.dimshuffle(1, 'x', 0)", lambda: x.T[:, None]),
    ("", "dimshuffle(c, ('x', 2, 0, 1))", lambda: c.transpose(2, 0, 1)[None]),
    ("", "c.transpose(2, 0, 1)", lambda: c.transpose(2, 0, 1)),
    ("", "sum(c, axis=(0, 2))", lambda: c.sum(axis=(0, 2))),
    ("", "alloc(s, (2, 1))", lambda: np.full((2, 1), s)),
    ("", "(x + 1) * (2)", lambda: (x + 1) * 2),
    ("", "gpu_contiguous(x.T)", lambda: x.T),
    ("g", "flip(x)", lambda: np.flip(x)),
    ("g", "flip(c, axis=[0, 2])", lambda: np.flip(c, (0, 2))),
    ("g", "moveaxis(c, 0, -1)", lambda: np.moveaxis(c, 0, -1)),
    ("", "moveaxis(c, [0, 1], [-1, 0])", lambda: np.moveaxis(c, [0, 1], [-1, 0])),
    ("", "broadcast_to(v, [2, 6])", lambda: np.broadcast_to(v, (2, 6))),
    ("", "full([2, 3], 7)", lambda: np.full((2, 3), 7)),
    ("", "full([2], 1.5, dtype=float32)", lambda: np.full(2, 1.5, np.float32)),
    ("", "full_like(m, 4)", lambda: np.full_like(m, 4)),
    ("", "linspace(0, 1, 7)", lambda: np.linspace(0, 1, 7)),
    ("g", "linspace(s, 3, 5, endpoint=False)", lambda: np.linspace(s, 3, 5, endpoint=False)),
    ("", "linspace(v, w, 4)", lambda: np.linspace(v, w, 4)),
    ("", "linspace(2, 5, 1)", lambda: np.linspace(2, 5, 1)),
    ("r", "logspace(-1, 2, 4)", lambda: np.logspace(-1, 2, 4)),
    ("r", "geomspace(1, 1000, 4)", lambda: np.geomspace(1, 1000, 4)),
    ("", "diff(y, n=2, axis=0)", lambda: np.diff(y, n=2, axis=0)),
    ("g", "diff(v)", lambda: np.diff(v)),
    ("", "diff(flag)", lambda: np.diff(flag)),
    ("g", "repeat(x, [2, 0, 1, 3], axis=0)", lambda: np.repeat(x, [2, 0, 1, 3], axis=0)),
    ("", "repeat(m, m)", lambda: np.repeat(m, m)),
    # pad
] + [("g" if mode not in ("maximum", "minimum", "median") else "", f"pad(x, [[2, 1], [0, 3]], mode='{mode}'{more})",
      (lambda mode=mode, kw=kw: np.pad(x, [(2, 1), (0, 3)], mode=mode, **kw)))
     for mode, more, kw in [
         ("constant", "", {}), ("constant", ", constant_values=2.5", {"constant_values": 2.5}),
         ("constant", ", constant_values=[2.5, -1]", {"constant_values": (2.5, -1)}),
         ("constant", ", constant_values=((1, 2), (0.1, -4))", {"constant_values": ((1, 2), (0.1, -4))}),
         ("linear_ramp", ", end_values=[[1, 2], [0.5, -4]]", {"end_values": [(1, 2), (0.5, -4)]}), ("edge", "", {}), ("wrap", "", {}),
         ("symmetric", "", {}), ("reflect", "", {}), ("maximum", "", {}), ("minimum", "", {}), ("mean", "", {}), ("median", "", {}),
         ("linear_ramp", "", {}), ("linear_ramp", ", end_values=-3", {"end_values": -3}), ("mean", ", stat_length=2", {"stat_length": 2}),
         ("maximum", ", stat_length=[[1, 2], [3, 1]]", {"stat_length": [(1, 2), (3, 1)]}),
         ("reflect", ", reflect_type='odd'", {"reflect_type": "odd"}), ("symmetric", ", reflect_type='odd'", {"reflect_type": "odd"})]] + [
    ("", "pad(v, 14, mode='reflect')", lambda: np.pad(v, 14, mode="reflect")),
    ("r", "pad(v, 14, mode='reflect', reflect_type='odd')", lambda: np.pad(v, 14, mode="reflect", reflect_type="odd")),
    ("r", "pad(v, [13, 20], mode='symmetric', reflect_type='odd')", lambda: np.pad(v, (13, 20), mode="symmetric", reflect_type="odd")),
    ("", "pad(v, [13, 20], mode='symmetric')", lambda: np.pad(v, (13, 20), mode="symmetric")),
    ("", "pad(v, [13, 20], mode='wrap')", lambda: np.pad(v, (13, 20), mode="wrap")),
    ("", "pad(k, 2, mode='mean')", lambda: np.pad(k, 2, mode="mean")),
    ("", "pad(m, 3, mode='linear_ramp')", lambda: np.pad(m, 3, mode="linear_ramp")),
    ("", "pad(b, 3, mode='reflect')", lambda: np.pad(b, 3, mode="reflect")),
    # along one axis
    ("g", "take_along_axis(x, argsort(x, axis=0), axis=0)", lambda: np.sort(x, axis=0)),
    ("g", "take_along_axis(y, k[:, :3][[0, 1, 0, 1]] - 3, axis=1)", lambda: np.take_along_axis(y, k[[0, 1, 0, 1]] - 3, 1)),
    ("", "put_along_axis(y, argsort(x, axis=1), x, axis=1)", lambda: (lambda a: (np.put_along_axis(a, np.argsort(x, 1), x, 1), a)[1])(y.copy())),
    ("g", "put_along_axis(y, [[0, 0, 5], [1, 1, 1], [2, 2, 3], [0, 1, 1]], y[:, :3], axis=1, mode='add')",
     lambda: put(y, [[0, 0, 5], [1, 1, 1], [2, 2, 3], [0, 1, 1]], y[:, :3], 1, "add")),
    ("g", "put_along_axis(y, [[0, 0, 5], [1, 1, 1], [2, 2, 3], [0, 1, 1]], x[:, :3], axis=1, mode='max')",
     lambda: put(y, [[0, 0, 5], [1, 1, 1], [2, 2, 3], [0, 1, 1]], x[:, :3], 1, "max")),
    ("g", "put_along_axis(y, [[0, 3, 2, 1, 0, 0], [0, 1, 2, 3, 1, 1]], x[:2], axis=0, mode='min')",
     lambda: put(y, [[0, 3, 2, 1, 0, 0], [0, 1, 2, 3, 1, 1]], x[:2], 0, "min")),
    ("", "put_along_axis(m, [1, 1, 6], [9, 3, 4], mode='max')", lambda: put(m, [1, 1, 6], np.array([9, 3, 4]), 0, "max")),
    ("g", "topk(x, 2)", lambda: -np.sort(-x, 1)[:, :2]),
    ("", "topk(x, -3, axis=0)", lambda: np.sort(x, 0)[:3]),
    ("", "argtopk(x, 4)", lambda: np.argsort(-x, 1, kind="stable")[:, :4]),
    ("", "argtopk(m, 3)", lambda: np.argsort(-m, kind="stable")[:3]),
    ("", "argtopk(u, -2)", lambda: np.argsort(u, kind="stable")[:2]),
    ("", "topk_and_argtopk(x, 2)[1]", lambda: np.argsort(-x, 1, kind="stable")[:, :2]),
    ("g", "median(x)", lambda: np.median(x)),
    ("g", "median(c, axis=1)", lambda: np.median(c, axis=1)),
    ("", "median(holes, axis=1)", lambda: np.median(holes, axis=1)),
    ("", "median(m)", lambda: np.median(m)),
    ("", "median(x, axis=1, keepdims=True)", lambda: np.median(x, axis=1, keepdims=True)),
    ("g", "quantile(x, 0.3, axis=1)", lambda: np.quantile(x, 0.3, axis=1)),
    ("g", "quantile(c, p, axis=2)", lambda: np.quantile(c, p, axis=2)),
    ("", "quantile(c, p, axis=0, keepdims=True)", lambda: np.quantile(c, p, axis=0, keepdims=True)),
    ("", "quantile(c, 0.4, keepdims=True)", lambda: np.quantile(c, 0.4, keepdims=True)),
    ("", "percentile(y, [0, 10.0, 50, 100])", lambda: np.percentile(y, [0, 10.0, 50, 100])),
    ("", "quantile(holes, 0.5, axis=1)", lambda: np.quantile(holes, 0.5, axis=1)),
] + [("", f"quantile(v, [0, 0.2, 0.5, 0.77, 1.0], method='{how}')", (lambda how=how: np.quantile(v, [0, 0.2, 0.5, 0.77, 1.0], method=how)))
     for how in "linear lower higher nearest midpoint hazen weibull median_unbiased normal_unbiased".split()] + [
    # positions
    ("", "searchsorted(sort(v), y)", lambda: np.searchsorted(np.sort(v), y)),
    ("", "searchsorted([1, 2, 2, 2, 5], k)", lambda: np.searchsorted([1, 2, 2, 2, 5], k)),
    ("", "searchsorted([1, 2, 2, 2, 5], k, side='right')", lambda: np.searchsorted([1, 2, 2, 2, 5], k, side="right")),
    ("", "searchsorted([1.0, 2, nan, nan], odd)", lambda: np.searchsorted([1.0, 2, np.nan, np.nan], odd)),
    ("", "searchsorted([1.0, 2, nan, nan], odd, side='right')", lambda: np.searchsorted([1.0, 2, np.nan, np.nan], odd, side="right")),
    ("", "digitize(y, [-1.0, 0, 0.5])", lambda: np.digitize(y, [-1.0, 0, 0.5])),
    ("", "bincount(m)", lambda: np.bincount(m)),
    ("", "bincount(m, minlength=12)", lambda: np.bincount(m, minlength=12)),
    ("", "bincount(m[:6], v)", lambda: np.bincount(m[:6], v)),
    ("", "bincount(m[:0], minlength=3)", lambda: np.bincount(m[:0], minlength=3)),
    ("", "histogram(y, 5)[0]", lambda: np.histogram(y, 5)[0]),
    ("", "histogram(y, 5)[1]", lambda: np.histogram(y, 5)[1]),
    ("", "histogram(y)[0]", lambda: np.histogram(y)[0]),
    ("", "histogram(y, [-1.0, 0, 0.25, 2])[0]", lambda: np.histogram(y, [-1.0, 0, 0.25, 2])[0]),
    ("", "histogram(y, 4, [-1.0, 1.0])[0]", lambda: np.histogram(y, 4, (-1.0, 1.0))[0]),
    ("", "histogram(y, 4, weights=x)[0]", lambda: np.histogram(y, 4, weights=x)[0]),
    ("", "histogram(y, 4, density=True)[0]", lambda: np.histogram(y, 4, density=True)[0]),
    ("", "histogram(m, 3)[0]", lambda: np.histogram(m, 3)[0]),
    ("", "unique_all(m)[0]", lambda: unique_all(m)[0]),
    ("", "unique_all(m)[1]", lambda: unique_all(m)[1]),
    ("", "unique_all(k)[2]", lambda: unique_all(k)[2].reshape(k.shape)),
    ("", "unique_all(m)[3]", lambda: unique_all(m)[3]),
    ("", "unravel_index(m, [3, 4])[0]", lambda: np.unravel_index(m, (3, 4))[0]),
    ("", "unravel_index(m, [3, 4])[1]", lambda: np.unravel_index(m, (3, 4))[1]),
    ("", "ravel_multi_index([6, 4], k, k // 2)", lambda: np.ravel_multi_index((k, k // 2), (6, 4))),
    ("", "ravel_multi_index([3, 2], k, k - 2, mode='wrap')", lambda: np.ravel_multi_index((k, k - 2), (3, 2), mode="wrap")),
    ("", "ravel_multi_index([3, 2], k, k - 2, mode='clip')", lambda: np.ravel_multi_index((k, k - 2), (3, 2), mode="clip")),
    ("g", "choose(k % 3, v[:3], w[:3], 5.0)", lambda: np.choose(k % 3, [v[:3], w[:3], 5.0])),
    ("", "choose(k, [1, 2, 3], mode='clip')", lambda: np.choose(k, [1, 2, 3], mode="clip").astype(np.int8)),
    ("", "choose(k, [[1, 2, 3], [4, 5, 6]], mode='wrap')", lambda: np.choose(k, [[1, 2, 3], [4, 5, 6]], mode="wrap")),
    ("g", "fill_diagonal(x, 2.5)", lambda: (lambda a: (np.fill_diagonal(a, 2.5), a)[1])(x.copy())),
    ("g", "fill_diagonal_offset(x, s, 1)", lambda: np.where(np.eye(4, 6, 1) > 0, s, x)),
    ("", "fill_diagonal_offset(x, 9, -2)", lambda: np.where(np.eye(4, 6, -2) > 0, 9, x)),
    # products
    ("g", "x @ y.T", lambda: x @ y.T),
    ("g", "outer(e, v)", lambda: np.outer(e, v)),
    ("g", "vdot(x, y)", lambda: np.vdot(x, y)),
    ("g", "inner(x, y)", lambda: np.inner(x, y)),
    ("g", "inner(c, e[:, 1:][:, [0, 1, 1, 0]])", lambda: np.inner(c, e[:, 1:][:, [0, 1, 1, 0]])),
    ("g", "cross(e, e[::-1])", lambda: np.cross(e, e[::-1])),
    ("g", "cross(d, e[0])", lambda: np.cross(d, e[0])),
    ("g", "tensordot(c, d, axes=[1, 2], axes_b=[2, 1])", lambda: np.tensordot(c, d, ([1, 2], [2, 1]))),
    ("g", "batched_tensordot(c, d, axes=[1], axes_b=[2])", lambda: np.einsum("bij,bki->bjk", c, d)),
    ("g", "batched_tensordot(c, d, axes=1)", lambda: c @ d),
    ("", "batched_tensordot(c, c, axes=2)", lambda: np.einsum("bij,bij->b", c, c)),
] + [(flags, f"einsum('{sub}', {', '.join(args.split())})", (lambda sub=sub, args=args: np.einsum(sub, *[eval(a) for a in args.split()])))
     for flags, sub, args in [
         ("g", "ij,kj->ik", "x y"), ("g", "ij,kj", "x y"), ("g", "ij->ji", "x"), ("", "ba", "x"), ("g", "ii->i", "e"), ("g", "ii", "e"),
         ("g", "ij->", "x"), ("g", "ij->j", "x"), ("g", "i,i->", "v w"), ("g", "i,j->ij", "v w"), ("g", "i,i->i", "v w"),
         ("g", "bij,bjk->bik", "c d"), ("g", "bij,bjk->ki", "c d"), ("g", "bij,cjk->ibkc", "c d"), ("g", "bij,bij->b", "c c"),
         ("g", "bij,bji->b", "c d"), ("g", "ij,jk,kl,lm->im", "e e e e"), ("g", "ij,jk,ki->", "e e e"), ("", "ij,jk,ki", "e e e"),
         ("g", "...j,kj->...k", "c d[0].T"), ("g", "...ij,...jk->...ik", "c d"), ("", "...ii->...i", "e"), ("", "i...->...", "c"),
         ("g", "b...,b...->...", "c c"), ("", "i->", "v"),
         ("g", "abcd,ab->cd", "im[:1] e[:1]"), ("g", "abcc->ab", "im"), ("", "abcc->cab", "im"),
         ("g", "ab,abcd,cd->b", "c[:,:,0] im e[:2,:2]"), ("", "ij,j,i", "x v x[:,0]"), ("", "i,i", "m m"), ("", "ij->i", "b[None]"),
         ("g", "bij,bjk,bkl->il", "c d c")]] + [
    # normalisation
    ("gr", "rms_norm(y)", lambda: y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5)),
    ("gr", "rms_norm(y, v)", lambda: y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5) * v),
    ("gr", "group_norm(im[:, [0, 1, 2, 0]], groups=2)", lambda: group(im[:, [0, 1, 2, 0]], 2)),
    ("gr", "group_norm(im, v[:3], w[:3], groups=1)", lambda: group(im, 1) * v[:3, None, None] + w[:3, None, None]),
    ("gr", "instance_norm(im)", lambda: group(im, 3)),
    ("gr", "instance_norm(d, v[:4], w[:4])", lambda: group(d, 4) * v[:4, None] + w[:4, None]),
    # Fourier transforms
    ("gr", "rfft(x)", lambda: complex_last(np.fft.rfft(x))),
    ("gr", "rfft(c)", lambda: complex_last(np.fft.rfftn(c, axes=(1, 2)))),
    ("gr", "rfft(d, norm='ortho')", lambda: complex_last(np.fft.rfftn(d, axes=(1, 2), norm="ortho"))),
    ("gr", "rfft(im)", lambda: complex_last(np.fft.rfftn(im, axes=(1, 2, 3)))),
    ("r", "rfft(f[None])", lambda: complex_last(np.fft.rfft(f[None].astype(float))).astype(np.float32)),
    ("r", "rfft(m[None])", lambda: complex_last(np.fft.rfft(m[None]))),
    ("gr", "irfft(rfft(x))", lambda: x),
    ("gr", "irfft(rfft(e), is_odd=True)", lambda: e),
    ("gr", "irfft(rfft(im, norm='ortho'), norm='ortho')", lambda: im),
    ("gr", "irfft(im)", lambda: np.fft.irfftn(im[..., 0] + 1j * im[..., 1], axes=(1, 2))),
    ("gr", "irfft(im, norm='no_norm', is_odd=True)", lambda: np.fft.irfftn(im[..., 0] + 1j * im[..., 1], s=(3, 3), axes=(1, 2), norm="forward")),
    ("gr", "fft(c[:, :, :2])", lambda: complex_last(np.fft.fft(pairs(c[:, :, :2])))),
    ("gr", "fft(im, norm='ortho')", lambda: complex_last(np.fft.fftn(pairs(im), axes=(1, 2), norm="ortho"))),
    ("gr", "ifft(im)", lambda: complex_last(np.fft.ifftn(pairs(im), axes=(1, 2)))),
    ("gr", "ifft(fft(im), norm='no_norm')", lambda: 6 * im),
    ("r", "fft(reshape(x, [1, 2, 3, 2, 2]))", lambda: complex_last(np.fft.fftn(pairs(x.reshape(1, 2, 3, 2, 2)), axes=(1, 2, 3)))),
    ("r", "ifft(reshape(x, [2, 2, 3, 1, 2]), norm='ortho')", lambda: complex_last(np.fft.ifftn(pairs(x.reshape(2, 2, 3, 1, 2)), axes=(1, 2, 3), norm="ortho"))),
    ("r", "rfft(linspace(0, 5, 97)[None] ** 2)", lambda: complex_last(np.fft.rfft(np.linspace(0, 5, 97)[None] ** 2))),
    ("r", "rfft(linspace(0, 5, 64)[None] ** 2)", lambda: complex_last(np.fft.rfft(np.linspace(0, 5, 64)[None] ** 2))),
]


def line(a):
    a = np.asarray(a)
    words = [a.dtype.name, str(a.ndim), *map(str, a.shape)]
    return " ".join(words + ([repr(float(v)) for v in a.ravel()] if a.dtype.kind == "f" else [str(int(v)) for v in a.ravel()]))


if __name__ == "__main__":
    print("# written by tests/tables.py, which says what it means")
    with np.errstate(all="ignore"):
        for name, value in INPUTS.items():
            print("input", name, line(value))
        for flags, formula, value in ROWS:
            print("row", flags or "-", formula)
            print("want", line(value()))

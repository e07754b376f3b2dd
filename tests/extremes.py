#!/usr/bin/env python3
"""extremes.py: every scalar op of the table (src/op/ops.def), and every cast, at the extreme values of each dtype: 0, -0, 1, -1,
subnormals, the largest, infinities, NaN, the ends of integers.

    extremes.py                       the dtypes of DOSE
    extremes.py --all                 every dtype
    extremes.py --dtypes int8,float16

The compiled kernel is compared with the reference, bit for bit unless the op is OP_COSTLY (then to a few units in the last
place; NaN, infinities and zeros must agree), and both with NumPy, or SciPy where it is installed.  DIFFERENCES lists what may
differ from NumPy, with the reason; each row must occur in a run over every dtype.  The status is 1 if there were findings.
"""
import argparse
import os
import re
import sys
import warnings

try:
    import numpy as np
except ImportError:
    print("extremes: left out, there is no NumPy")
    sys.exit(0)
try:
    from scipy import special
except ImportError:
    special = None
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mc  # noqa: E402

warnings.simplefilter("ignore")
np.seterr(all="ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
DOSE = "float32 float64 int32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
ULPS = 4            # of a costly op against NumPy in float64, of the kernel against the reference
LOOSE = {"gammainc": 64, "gammaincc": 64, "gammaincinv": 64, "betainc": 256, "j0": 64, "j1": 64, "jv": 64, "iv": 64, "logaddexp": 64, "psi": 64, "tri_gamma": 64, "gammaln": 64, "pow": 16}

# (ops, test of dtype, test of the arguments where it may differ, reason)
DIFFERENCES = [
    ("pow", lambda d: d[:3] == "int", lambda a, b, c: b < 0, "NumPy refuses integers to negative integer powers"),
    ("clip", lambda d: d in FLOATS, lambda a, b, c: np.isnan(b) | np.isnan(c) | (b > c) | ((a == 0) & ((b == 0) | (c == 0))),
     "a NaN bound bounds nothing; the lower bound goes first"),
    ("clip", lambda d: d not in FLOATS, lambda a, b, c: b > c, "the lower bound goes first"),
    ("sgn", lambda d: d in FLOATS, lambda a, b, c: a == 0, "-0 stays -0"),
    ("rad2deg deg2rad", lambda d: True, lambda a, b, c: a == a, "one multiplication by the rounded constant; NumPy divides by another"),
    ("gammaln", lambda d: d in FLOATS, lambda a, b, c: (a == -np.inf) | (abs(a) < 1e-300), "inf at -inf, as C has it; SciPy loses subnormals"),
]


def values(d):
    if d == "bool":
        return np.array([False, True])
    if d in FLOATS:
        f = np.finfo("float32" if d == "bfloat16" else d)
        v = np.array([0., -0., 1, -1, 0.5, -0.5, 2, 3, -3, 10, 0.1, -0.9, 87.5, -20, float(f.smallest_subnormal), -float(f.smallest_subnormal),
                      float(f.tiny), float(f.max), -float(f.max), np.inf, -np.inf, np.nan, 1e4, 2.5, -2.5])
        if d == "bfloat16":
            return mc.bfloat16.of(np.where(abs(v) == f.max, np.sign(v) * 3.3895313892515355e38, v))
        return v.astype(d)
    i = np.iinfo(d)
    return np.unique(np.array([i.min, i.min + 1, 0, 1, 2, 3, 7, 10, i.max // 2 + 1, i.max - 1, i.max] + ([-1, -2, -7] if i.min else []), d))


def rows():
    """(name, arguments, typing, costly) of each row that is not hidden."""
    text = open(os.path.join(HERE, os.pardir, "src", "op", "ops.def")).read()
    for name, n, typing, flags in re.findall(r"^OPI?\((\w+),\s*(\d),\s*(\w+),\s*([\w|]+),", text, re.M):
        if "OP_HIDDEN" not in flags:
            yield name, int(n), typing, "OP_COSTLY" in flags


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def iround(x):
    if x.dtype.kind != "f":
        return x.astype(np.int64)
    y = np.rint(x)
    return np.array([0 if v != v else 2 ** 63 - 1 if v >= 2.0 ** 63 else -2 ** 63 if v <= -2.0 ** 63 else int(v) for v in y.ravel()], np.int64).reshape(y.shape)


NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "true_div": np.divide, "int_div": np.floor_divide, "mod": np.remainder,
    "pow": np.power, "neg": np.negative, "abs": np.abs, "sqr": np.square, "sqrt": np.sqrt, "reciprocal": lambda a: 1 / a,
    "maximum": np.maximum, "minimum": np.minimum, "clip": np.clip, "sgn": np.sign, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "neq": np.not_equal, "isnan": np.isnan, "isinf": np.isinf, "and_": np.bitwise_and,
    "or_": np.bitwise_or, "xor": np.bitwise_xor, "invert": np.invert, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": lambda a: a if a.dtype.kind != "f" else np.rint(a),
    "round_half_away": lambda a: a if a.dtype.kind != "f" else np.copysign(np.floor(abs(a) + a.dtype.type(0.5)), a), "iround": iround, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "arctan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "arcsinh": np.arcsinh, "arccosh": np.arccosh, "arctanh": np.arctanh, "deg2rad": np.deg2rad, "rad2deg": np.rad2deg,
    "sigmoid": sigmoid, "softplus": lambda x: np.logaddexp(x, 0), "where": np.where, "gpu_from_host": lambda a: a, "host_from_gpu": lambda a: a,
    "isfinite": np.isfinite, "signbit": np.signbit, "fmod": np.fmod, "copysign": np.copysign, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "xlogx": lambda a: np.where(a == 0, 0 * a, a * np.log(a)), "xlogy0": lambda a, b: np.where(a == 0, 0 * a, a * np.log(b)),
}
if special:
    NUMPY.update({n: getattr(special, n) for n in "erfinv erfcx gamma".split()})
    NUMPY.update(erf=special.erf, erfc=special.erfc, gammaln=special.gammaln, psi=special.psi, tri_gamma=lambda a: special.polygamma(1, a))


class Findings:
    def __init__(self):
        self.count, self.seen, self.met = 0, 0, set()

    def say(self, what, args, have, want, wrong):
        self.count += 1
        at = np.argwhere(wrong)
        print(f"{what}: {len(at)} of {wrong.size} differ")
        for i in at[:3]:
            print("    of", *[wide(a)[tuple(i)] for a in args], "is", wide(have)[tuple(i)], "not", wide(want)[tuple(i)])


def wide(a):
    return a.float32() if isinstance(a, mc.bfloat16) else a


def grids(v, n):
    """n arrays that have every choice of n values."""
    return [np.ascontiguousarray(a).view(type(v)) for a in np.meshgrid(*[v] * n, indexing="ij")]


def steps(x):
    """Floats as whole numbers in their order."""
    kind = {2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]
    i = np.ascontiguousarray(x).view(kind).astype(object if kind is np.int64 else np.int64)
    top = 1 << (8 * x.dtype.itemsize - 1)
    return np.where(i < 0, -(i + top), i)


def unlike(have, want, ulps):
    """Where two arrays of one dtype differ: NaN is NaN, -0 is not 0 when bits are compared, floats by units in the last place."""
    if have.dtype != want.dtype or have.shape != want.shape:
        return np.ones(want.shape, bool)
    half = isinstance(have, mc.bfloat16)
    h, w = wide(have), wide(want)
    if h.dtype.kind != "f":
        return h != w
    nan = np.isnan(h) | np.isnan(w)
    near = (h == w) & ((ulps > 0) | (np.signbit(h) == np.signbit(w)))
    if ulps:
        with np.errstate(all="ignore"):
            apart = abs(steps(np.asarray(have).view(np.int16) if half else h) - steps(np.asarray(want).view(np.int16) if half else w)) if not half else \
                abs(steps(np.asarray(have)) - steps(np.asarray(want)))
        near = near | ((np.isfinite(h) == np.isfinite(w)) & (apart <= ulps)).astype(bool)
    return np.where(nan, np.isnan(h) != np.isnan(w), ~near)


def numpys(name, typing, costly, args, out):
    """NumPy's result in the result's dtype: arithmetic in it, functions in float64 and rounded once."""
    f = NUMPY[name]
    kind = mc.dtype_name(out)
    real = [wide(a) for a in args]
    if typing in ("FLOAT", "DIV") or (name == "pow" and kind in FLOATS):
        work = np.float64 if costly or kind in ("float16", "bfloat16") else np.dtype(kind)
        real = [a.astype(work) for a in real]
    elif kind == "float16" and name not in ("int_div", "mod"):
        real = [a if a.dtype == bool else a.astype(np.float32) for a in real]
    y = np.asarray(f(*real))
    if kind == "bfloat16":
        return mc.bfloat16.of(y)
    return y.astype(out.dtype)


def compile_all(d, n, texts, mode):
    g = mc.Graph()
    names = "abc"[:n]
    for i, c in enumerate(names):
        g.input(c, d, [-1] * n)
    if n == 3:
        g.input("t", "bool", [-1] * n)
    return g.compile(inputs=", ".join(names) + (", t" if n == 3 else ""), outputs=", ".join(texts), mode=mode, on_unused="ignore")


def run(d, found):
    ints = d not in FLOATS
    for n in (1, 2, 3):
        v = values(d)
        args = grids(v if n < 3 else v[::2] if len(v) > 12 else v, n)
        list_ = [r for r in rows() if r[1] == n and not (r[2] == "BITS" and not ints)]
        if d == "bool":
            list_ = [r for r in list_ if r[0] not in ("sub", "neg")]
        texts = [f"where(t, b, c)" if r[0] == "where" else f"{r[0]}({', '.join('abc'[:n])})" for r in list_]
        if n == 1:
            texts += [f"cast(a, {t})" for t in mc.DTYPES]
        given = args + ([wide(args[0]) > 0] if n == 3 else [])
        have = {mode: compile_all(d, n, texts, mode)(*given) for mode in ("FAST_RUN", "FAST_COMPILE")}
        for i, text in enumerate(texts):
            name, _, typing, costly = list_[i] if i < len(list_) else ("cast", 1, "SAME", False)
            k, r = have["FAST_RUN"][i], have["FAST_COMPILE"][i]
            found.seen += k.size
            ulps = LOOSE.get(name, ULPS) if costly else 0
            if ints and name in ("pow", "mod", "int_div"):
                ulps = 0
            wrong = unlike(k, r, ulps)
            if wrong.any():
                found.say(f"{d} {text}: the kernel against the reference", args, k, r, wrong)
            if name == "cast":
                want = cast(args[0], text.split()[1][:-1])
            elif name in NUMPY:
                real = given[3:] + args[1:] if name == "where" else args
                safe = [np.maximum(a, 0) if ints and name == "pow" and j == 1 and a.dtype != bool else a for j, a in enumerate(real)]
                try:
                    want = numpys(name, typing, costly, safe, r)
                except TypeError:
                    continue # NumPy has none of that dtype
            else:
                continue
            for label, y in (("kernel", k), ("reference", r)):
                wrong = unlike(y, want, ulps if ulps else 1 if mc.dtype_name(y) in ("float16", "bfloat16") and name not in ("add", "sub", "mul", "cast") else 0)
                wrong = excuse(name, d, args, wrong, found)
                if wrong.any():
                    found.say(f"{d} {text}: the {label} against NumPy", args, y, want, wrong)


def cast(a, to):
    x = wide(a)
    if to in FLOATS:
        return mc.bfloat16.of(x) if to == "bfloat16" else x.astype(to)
    if to == "bool" or x.dtype.kind != "f":
        return x.astype(to)
    i = np.iinfo(to)    # what docs/limits.md says
    return np.array([0 if v != v else i.max if v >= i.max else i.min if v <= i.min else int(v) for v in x.astype(np.float64).ravel().tolist()], to).reshape(x.shape)


def excuse(name, d, args, wrong, found):
    for at, (ops, of, where, _) in enumerate(DIFFERENCES):
        if wrong.any() and name in ops.split() and of(d):
            a, b, c = [wide(x) for x in (args + args[:1] * 3)[:3]]
            may = where(a, b, c)
            if (wrong & may).any():
                found.met.add(at)
            wrong = wrong & ~may
    return wrong


def main():
    p = argparse.ArgumentParser(description="every scalar op at extreme values")
    p.add_argument("--dtypes", default=",".join(DOSE))
    p.add_argument("--all", action="store_true")
    p.add_argument("--device", default="cpu")
    o = p.parse_args()
    dtypes = mc.DTYPES if o.all else o.dtypes.split(",")
    if o.device != "cpu":
        mc.flag("device", o.device)
    found = Findings()
    for d in dtypes:
        run(d, found)
    for i, row in enumerate(DIFFERENCES):
        if o.all and i not in found.met and (special or row[0] != "gammaln"):
            print(f"DIFFERENCES: {row[0]} ({row[3]}) does not occur")
            found.count += 1
    print(f"extremes: {found.seen} results of {len(dtypes)} dtypes, {found.count} findings" + ("" if special else "; SciPy is not there"))
    return found.count > 0


if __name__ == "__main__":
    sys.exit(main())

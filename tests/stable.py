#!/usr/bin/env python3
"""stable.py: what formulas that lose digits as they are written are worth, by mpmath: the table that t_ladder.c holds
the library to, values and first and second derivatives, on a ladder of magnitudes.

    tests/stable.py > tests/stable.txt                   the table of the everyday tests
    tests/stable.py --random 200 --seed 7 > FILE         formulas composed at random; t_ladder.c reads $STABLE_TABLE

A formula is evaluated as it is written, in enough digits that what cancels leaves enough of them.  The table:

    input_set NAME          then a line for each input: its name, rank, sizes and elements
    formula NAME TEXT       then lines V, G and H: the value, G = grad(sum(V), x) and H = grad(sum(G * v), x),
                            each element as number~slack

slack tells by how much the number moves when each input moves by its own rounding, which no program can undo: a result
is right within a few times eps * (|number| + slack).
"""
import argparse
import functools
import itertools
import random
import re
import sys

import numpy as np
from mpmath import mp, mpf

mp.dps = 500                # of exp(800), and 1 - erf(30), enough are left
STEP = mpf(10) ** -40       # of differences: their error is its square
NUDGE = mpf(10) ** -25      # of inputs, for the slack

# ---- the functions of the text form, as mathematics ----


def each(f, n=1):
    return np.frompyfunc(lambda *a: f(*[mpf(v) for v in a]), n, 1)


exp, log, erf, erfc, log1p, expm1 = map(each, (mp.exp, mp.log, mp.erf, lambda v: 1 - mp.erf(v), lambda v: mp.log(1 + v),
                                               lambda v: mp.exp(v) - 1))
sqrt, sqr, tanh = map(each, (mp.sqrt, lambda v: v * v, mp.tanh))
sigmoid = each(lambda v: 1 / (1 + mp.exp(-v)))
softplus = each(lambda v: mp.log(1 + mp.exp(v)))
logaddexp = each(lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), 2)
elu = each(lambda v: v if v > 0 else mp.exp(v) - 1)
selu = each(lambda v: mpf("1.0507009873554804934") * (v if v > 0 else mpf("1.6732632423543772848") * (mp.exp(v) - 1)))
softsign = each(lambda v: v / (1 + abs(v)))
where = np.frompyfunc(lambda c, a, b: mpf(a) if c else mpf(b), 3, 1)
minimum, maximum = each(min, 2), each(max, 2)
clip = each(lambda v, low, high: min(max(v, low), high), 3)


def axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def sum_(a, axis=None, keepdims=False):
    return np.sum(a, axis=axes(axis), keepdims=keepdims)


def mean(a, axis=None, keepdims=False):
    total = np.sum(a, axis=axes(axis), keepdims=keepdims)
    return total / mpf(np.size(a) // np.size(total))


def logsumexp(a, axis=None, keepdims=False):
    return log(sum_(exp(a), axis, keepdims))


def softmax(a, axis=-1):
    e = exp(a)
    return e / np.sum(e, axis=axis, keepdims=True)


def logsoftmax(a, axis=-1):
    return log(softmax(a, axis))


def crossentropy_1hot(p, t):
    return -log(p)[np.arange(len(p)), t]


WORDS = dict(exp=exp, log=log, erf=erf, erfc=erfc, log1p=log1p, expm1=expm1, sqrt=sqrt, sqr=sqr, tanh=tanh, sigmoid=sigmoid,
             softplus=softplus, logaddexp=logaddexp, sum=sum_, mean=mean, logsumexp=logsumexp, softmax=softmax,
             logsoftmax=logsoftmax, arange=np.arange, expand_dims=np.expand_dims, transpose=np.transpose,
             crossentropy_1hot=crossentropy_1hot, elu=elu, selu=selu, softsign=softsign, where=where, minimum=minimum, maximum=maximum, clip=clip,
             crossentropy_softmax_1hot=lambda x, t: crossentropy_1hot(softmax(x), t),
             categorical_crossentropy=lambda p, t: -np.sum(t * log(p), axis=-1),
             binary_crossentropy=lambda p, t: -(t * log(p) + (1 - t) * log(1 - p)),
             sigmoid_binary_crossentropy=lambda x, t: softplus(x) - t * x,
             alloc=lambda v, shape: np.broadcast_to(v, shape))

# ---- inputs ----


def as_float32(values):
    return np.vectorize(lambda v: mpf(float(np.float32(v))), otypes=[object])(np.asarray(values, dtype=float))


def input_set(x, y=None, seed=1):
    r = np.random.default_rng(seed)
    x = np.asarray(x, dtype=float)
    s = {"x": x, "y": np.asarray(y, dtype=float) if y is not None else np.flip(x), "w": r.uniform(0.5, 2, x.shape),
         "v": r.uniform(0.5, 2, x.shape), "s": 1.5}
    s = {k: as_float32(v) for k, v in s.items()}
    s["p"] = as_float32(r.integers(0, 3, x.shape) / 2)   # targets: 0, 1/2, 1
    s["t"] = r.integers(0, x.shape[1], x.shape[0])
    return s


def ladder(*up):
    """0, and each number with either sign: in a matrix."""
    a = [0.0] + [q for v in up for q in (v, -v)]
    a = a + [a[-1] / 2] * (-len(a) % 4)
    return np.reshape(a, (4, -1))


r = np.random.default_rng(0)
INPUT_SETS = {
    "e": input_set(ladder(1e-10, 1e-3, .3, 2, 9.5, 30, 95, 800), np.reshape(np.roll(ladder(1e-10, 1e-3, .3, 2, 9.5, 30, 95, 800).ravel(), 5), (4, -1))),
    "f": input_set(ladder(1e-10, 1e-3, .3, 1.5, 3, 5.5, 9, 14, 30)),                # for the error function
    "n": input_set(ladder(1e-30, 1e-10, 1e-5, 1e-3, .3, .9)),                       # within (-1, 1)
    "m": input_set(-np.abs(ladder(1e-20, 1e-10, 1e-3, .3, .69, .7, 5, 40, 300)) - 1e-25),   # below 0
    "p": input_set(np.abs(ladder(1e-20, 1e-10, 1e-3, .3, 5, 40, 300, 1e3)) + 1e-25),        # above 0
    "k": input_set(ladder(1e-10, 1e-3, .3, 2, 30, 95, 800, 1e4).ravel()[1:17].reshape(4, 4)),   # where a kink is at 0
    "r0": input_set(r.uniform(-2, 2, (3, 4))),
    "r1": input_set(r.uniform(99, 101, (3, 4))),
    "r2": input_set([[700, 700, -700, 0.5], [-800, -801, -799.5, -1000], [1000, -1000, 999, 3]]),
    "r3": input_set(r.uniform(-1, 1, (3, 4)) * 1e-6 - 200),
    "c": input_set(r.uniform(99, 101, (4, 1))),                                     # one column
}
ROWS = ("r0", "r1", "r2", "r3")
E, F, N, M, P, K = ("e",), ("f",), ("n",), ("m",), ("p",), ("k",)

# ---- formulas: a row each; digits: how many bits of rounding more than a few the derivatives are allowed ----

POINTWISE = [
    # near 0
    ("-(expm1(x) + 1)", F), ("log(1 + x)", N), ("log(1 - x)", N), ("log(x + 1)", N), ("log1p(x)", N), ("log(-x + 1)", N), ("log(1 + (-x))", N),
    ("exp(x) - 1", F), ("1 - exp(x)", F), ("-1 + exp(x)", F), ("exp(x) + (-1)", F), ("expm1(x) + 1", F), ("1 - (-expm1(x))", F),
    ("log(-expm1(x))", M), ("log(1 - exp(x))", M), ("log1p(-exp(x))", M), ("log(1 - exp(-x))", P), ("log(exp(x) - 1)", P), ("log(expm1(x))", P),
    # sums of exponentials
    ("log(exp(x) + exp(y))", E), ("log(exp(x) + exp(-x))", E), ("log(exp(x) * 3)", E), ("log(exp(x) / 3)", E),
    ("log(exp(x) * w)", E), ("log(2 + exp(x))", E), ("log(exp(x) + exp(y) + exp(w))", E), ("log1p(3 * exp(x))", E),
    # sigmoid and softplus
    ("log(sigmoid(x))", E), ("log(1 - sigmoid(x))", E), ("log(sigmoid(x) * 0.5)", E), ("log(1 + exp(x))", E), ("log1p(exp(x))", E),
    ("log(1 + exp(-x))", E), ("log1p(-sigmoid(x))", E), ("1 - sigmoid(x)", E), ("sigmoid(x) - 1", E), ("sigmoid(x) + (-1)", E),
    ("-sigmoid(x) + 1", E), ("-1 + sigmoid(x)", E), ("softplus(x) - x", E), ("x - softplus(x)", E), ("softplus(-x) + x", E),
    ("log(1 + exp(x)) - x", E), ("exp(x) / (1 + exp(x))", E), ("w * exp(x) / (1 + exp(x))", E), ("w / (1 + exp(x))", E),
    ("1 / (1 + exp(-x))", E), ("exp(x) * (w / (1 + exp(x)))", E), ("exp(x) / (exp(x) + exp(y))", E),
    ("(exp(x) * w) / (exp(x) + exp(y))", E), ("exp(x) * (w / (exp(x) + exp(y)))", E),
    ("sigmoid(x) - sigmoid(x) * sigmoid(-x)", E), ("sigmoid(-x) - sigmoid(-x) * sigmoid(x)", E), ("sigmoid(x) * (1 - sigmoid(x))", E),
    ("exp(x) * sqr(sigmoid(-x))", E), ("exp(-x) * sqr(sigmoid(x))", E), ("exp(x) * sigmoid(-x)", E), ("(w * exp(-x)) * (sigmoid(x) * s)", E),
    ("-exp(x) / ((1 + exp(x)) * (1 + exp(-x)))", E), ("exp(x) / sqr(1 + exp(x))", E), ("exp(-x) / (1 + exp(-x)) ** 2", E),
    ("w / ((1 + exp(x)) * (1 + exp(y)))", E), ("1 - tanh(x)", F), ("1 + tanh(x)", F), ("tanh(x) - 1", F),
    ("sigmoid_binary_crossentropy(x, p)", E), ("binary_crossentropy(sigmoid(x), p)", E), ("sigmoid_binary_crossentropy(x, w)", E),
    ("-log(1 / (1 + exp(-x)))", E), ("log(exp(x) / (1 + exp(x)))", E),
    # the error function
    ("1 - erf(x)", F), ("1 + erf(x)", F), ("erf(x) - 1", F), ("erf(x) + (-1)", F), ("-1 + erf(x)", F), ("-erf(x) + 1", F),
    ("-1 - erf(x)", F), ("1 - erfc(x)", F), ("erfc(x) - 1", F), ("erfc(x) + (-1)", F), ("0.5 * (1 + erf(x))", F), ("0.5 * erf(x) + 0.5", F),
    ("log(erfc(x))", F), ("log(erfc(-x))", F), ("log(1 + erf(x))", F), ("log(0.5 * (1 + erf(x)))", F), ("log(1 - erf(x))", F), ("log1p(-erf(x))", F), ("log(0.5 * erfc(x))", F),
    ("exp(-sqr(x)) / erfc(x)", F), ("exp(-sqr(x)) / erfc(-x)", F), ("exp(-sqr(x)) * (w / erfc(x))", F),
    ("(exp(-sqr(x)) * w) / erfc(x)", F), ("exp(-x * x) / (1 - erf(x))", F),
    ("0.5 - 0.5 * erf(x)", F), ("-0.5 - 0.5 * erf(x)", F), ("erf(x) * -2 - 2", F), ("erf(x) * -2 + 2", F),
    ("w - w * erf(x)", F), ("w * erf(x) - w", F), ("log(erfc(x) / 2)", F), ("w - w * sigmoid(x)", E), ("w * sigmoid(x) - w", E),
    # the branch that is not taken is infinite, or no number
    ("elu(x)", K), ("selu(x)", K), ("selu(w - x)", K), ("softsign(x)", K), ("where(x > 0, x, exp(x) - 1)", K),
    ("where(x < 1, exp(x), x * s)", K), ("where(x > 0, log(x), x)", K), ("where(x > 0, sqrt(x * w), 0)", K), ("where(x < 0, 0, x * sqrt(x))", K),
    ("minimum(exp(x), 10)", K), ("maximum(exp(-x), expm1(x))", ("n",)), ("clip(exp(x * s), 0.5, 5)", K), ("w * minimum(x, exp(x) - 2)", K),
    ("where(x > 0, 1 / sqrt(x), where(x < -1, exp(-x / 1000), x))", K),
    ("-1 - tanh(x)", F), ("2 - erfc(x)", F), ("erfc(x) - 2", F), ("log1p(erf(x))", F),
]
ALONG = [
    # log of a sum: over some and all axes, kept or not
    "log(sum(exp(x), axis=1))", "log(sum(exp(x), axis=0, keepdims=True))", "log(sum(exp(x)))", "log(sum(exp(x), axis=[0, 1], keepdims=True))",
    "logsumexp(x, axis=1, keepdims=True)", "logsumexp(x)", "logsumexp(x, axis=0)", "log(mean(exp(x), axis=1))", "log(mean(exp(x)))",
    "log(sum(exp(x), axis=1) / 4)", "sum(w[:, 0] * logsumexp(x, axis=1))", "logsumexp(x * s, axis=[0, 1])", "logsumexp(x + y, axis=1)",
    "logsumexp(x, axis=1) - logsumexp(x)", "logsumexp(logsumexp(x, axis=1))", "log(sum(exp(x - y), axis=1))",
    "log(1 + sum(exp(x), axis=1))", "log(1 + sum(exp(x)))",
    # softmax
    "exp(x) / sum(exp(x), axis=1, keepdims=True)", "exp(x) / sum(exp(x))", "exp(x) / sum(exp(x), axis=[0, 1], keepdims=True)",
    "exp(x) / expand_dims(sum(exp(x), axis=1), 1)", "exp(x) / sum(exp(x), axis=0)", "(exp(x) * w) / sum(exp(x), axis=1, keepdims=True)",
    "exp(x) * (w / sum(exp(x), axis=1, keepdims=True))", "(exp(x) * w) / sum(exp(x))", "exp(x) * (w / sum(exp(x)))", "w * (exp(x) / sum(exp(x)))", "exp(x[0]) / sum(exp(x[0]))",
    "softmax(x)", "softmax(x, axis=0)", "softmax(x + y)", "softmax(x - sum(x, axis=1, keepdims=True))", "softmax(x) * w",
    # its logarithm
    "log(softmax(x))", "logsoftmax(x)", "logsoftmax(x, axis=0)", "x - log(sum(exp(x), axis=1, keepdims=True))", "x - logsumexp(x)",
    "log(exp(x) / sum(exp(x), axis=1, keepdims=True))", "log(exp(x) / sum(exp(x)))", "exp(logsoftmax(x))", "log(softmax(x) * w)",
    "log(softmax(x)[:, 1])", "log(transpose(softmax(x)))", "log(softmax(x)[1])", "log(expand_dims(softmax(x), 1))",
    # cross-entropy
    "-log(softmax(x))[arange(3), t]", "-log(softmax(x)[arange(3), t])", "-log(softmax(x)[arange(t.shape[0]), t])",
    "-log(softmax(x))[arange(t.shape[0]), t]", "-log(softmax(x)[arange(x.shape[0]), t])", "crossentropy_1hot(softmax(x), t)",
    "crossentropy_softmax_1hot(x, t)", "categorical_crossentropy(softmax(x), p)", "-log((exp(x) / sum(exp(x), axis=1, keepdims=True))[arange(t.shape[0]), t])",
    "-sum(w * logsoftmax(x), axis=1)", "sum(exp(x) * w) / sum(exp(x))", "sum(w * exp(x), axis=1) / sum(exp(x), axis=1)",
]
AROUND = ["{}", "({}) * w", "-({})", "sqr({})", "sum({})", "({}) * s", "log(1 + exp({}))", "sum({}, axis=1)"]
AROUND_ROWS = ["{}", "sqr({})", "({}) * s", "-({})", "sum({})", "log(1 + exp({}))"]


def table():
    k = 0
    for i, (text, input_sets) in enumerate(POINTWISE):
        around = AROUND[1:4] if input_sets == M or "erf" in text else AROUND[1:]    # log(1 + exp(log(1 - f))) is 2 - f
        for form in (AROUND[0], around[i % len(around)]):
            yield form.format(text), input_sets
    for i, text in enumerate(ALONG):
        yield text, ROWS[1:]
        for form in (AROUND_ROWS[1 + i % 5], AROUND_ROWS[1 + (i + 2) % 5]):
            yield form.format(text), (ROWS[k % 4],)
            k += 1
    for text in ("softmax(x, axis=0)", "logsumexp(x)", "-log(softmax(x)[arange(t.shape[0]), t])"):
        yield text, ("c",)


def compose(seed, count):
    """Formulas inside formulas, the argument changed, the result used in several ways."""
    choose = random.Random(seed)
    inner = ["x", "(-x)", "(x * 2)", "(x - y)", "(x + y)", "(x * s)", "(x / 3)", "(0.5 - x)", "(x * w)", "tanh(x)", "softplus(x)"]
    outer = AROUND[:-1] + ["exp(-({}))", "softplus({})", "({}) + w", "({}) - x", "sigmoid({})", "tanh({})", "sum(w * ({}))"]
    loose = [t for t, s in POINTWISE if s in (E, F)]
    for _ in range(count):
        rows = choose.random() < 0.5
        text = choose.choice(ALONG if rows else loose)
        swap, form = choose.choice(inner), choose.choice(outer)
        yield form.format(replace_x(text, swap)), (choose.choice(ROWS),) if rows else choose.choice((F, ("r0",)))


def replace_x(text, by):
    """x as a name of its own, but where its shape or a part is asked for."""
    return re.sub(r"\bx\b(?!\.|\[)", by, text)


# ---- values ----


def evaluate(code, s):
    return np.asarray(eval(code, {"__builtins__": {}}, {**WORDS, **s}), dtype=object)


def moved(s, by):
    return {**s, "x": s["x"] + by}


def units(x):
    for at in itertools.product(*map(range, x.shape)):
        u = np.full(x.shape, mpf(0), dtype=object)
        u[at] = STEP
        yield at, u


def pointwise(code):
    return not any(w in code for w in ("sum", "mean", "softmax", "crossentropy_", "transpose", "[", "expand"))


def gradient(total, s, alone):
    g = np.empty(s["x"].shape, dtype=object)
    if alone is not None:
        return (alone(moved(s, STEP)) - alone(moved(s, -STEP))) / (2 * STEP)
    for at, u in units(s["x"]):
        g[at] = (total(moved(s, u)) - total(moved(s, -u))) / (2 * STEP)
    return g


def derivatives(code, body, s):
    """V, G, H at one set of inputs.  body: what stands inside a sum over everything, where that is what the code is."""
    value = functools.partial(evaluate, code)
    inside = body and compile(body, body, "eval")
    alone = functools.partial(evaluate, inside) if inside and pointwise(body) else None
    if alone:
        s = {**s}
        up, mid, down = (np.broadcast_to(alone(moved(s, h)), s["x"].shape) for h in (STEP, 0, -STEP))
        return value(s), (up - down) / (2 * STEP), s["v"] * (up - 2 * mid + down) / (STEP * STEP)

    def total(q):
        return np.sum(value(q))
    along = s["v"] * STEP
    g = gradient(total, s, None)
    h = np.empty(s["x"].shape, dtype=object)
    for at, u in units(s["x"]):     # of v . grad, by a difference in both directions
        h[at] = (total(moved(s, u + along)) - total(moved(s, u - along)) - total(moved(s, along - u)) + total(moved(s, -u - along))) \
            / (4 * STEP * STEP)
    return value(s), g, h


def squares(text, set_name):
    """The derivatives of a square add up terms of the size of what is squared."""
    return float(max(abs(v) for v in INPUT_SETS[set_name]["x"].flat)) / 8 if "sqr(" in text else 0


def unit(text, set_name, kind, x):
    """Rounding that derivatives show where they pass through 0, and those of what adds up to 1: of the size of the whole."""
    if kind == "V":
        return 0
    if set_name in ROWS or set_name == "c":
        return 4 + squares(text, set_name)
    if "-sqr(x)" in text or "-x * x" in text:
        return 800 if kind == "H" else 0
    return 2 if abs(x) < 0.01 and (set_name == "e" or "tanh" in text) else 0


def unit_composed(text, set_name, kind, x):
    """The same of formulas inside formulas, whose terms are larger than what is left of them."""
    if set_name in ROWS:                  # the logarithm of a softmax near 1 is as exact as the sum of exponentials, not as itself
        return 1 if kind == "V" else 4 + squares(text, set_name)
    if kind == "V":
        return 0
    if "exp(-" in text and re.search(r"/ (erfc|\(1 - erf)\(|\(w / erfc\(", text):
        size = 1 + abs(x) * 2               # of the ratio to erfc: d = 2 * x * r - 2 / sqrt(pi) * r * r
        return 8 * size ** 2 if kind == "G" else 40 * size ** 3
    return 4 if "tanh" in text or abs(x) < 0.01 else 0      # the derivative of tanh is 1 - y * y


def nudged(s, rnd):
    def one(a):
        return a + a * NUDGE * np.vectorize(lambda _: mpf(rnd.choice((-1, 1)) * rnd.uniform(.7, 1.3)), otypes=[object])(a)
    return {k: a if k in ("t", "p") else one(a) for k, a in s.items()}


def inside_of_sum(text):
    """The text under sum(...), or the text itself: its total is the same."""
    deep, end = 0, 0
    while text.startswith("sum(") and end < len(text):
        deep += (text[end] == "(") - (text[end] == ")")
        if text[end] == ")" and deep == 0:
            break
        end += 1
    if end != len(text) - 1:
        return text
    inner = text[4:-1]
    return inner[:-len(", axis=1")] if inner.endswith(", axis=1") else inner


def rows(text, set_name, unit_of):
    s = INPUT_SETS[set_name]
    code = compile(text, text, "eval")
    rnd = random.Random(text)
    body = inside_of_sum(text)
    exact = derivatives(code, body, s)
    near = [derivatives(code, body, nudged(s, rnd)) for _ in range(2)]
    for i, name in enumerate("VGH"):
        want = np.ravel(exact[i])
        slack = [max(abs(np.ravel(n[i])[k] - want[k]) for n in near) / NUDGE for k in range(len(want))]
        x = np.ravel(s["x"])
        yield name, [(a, b + unit_of(text, set_name, name, x[k] if len(want) == len(x) else 1)) for k, (a, b) in enumerate(zip(want, slack))]


def digits(v, n):
    v = mpf(v)
    if abs(v) < mpf(10) ** -60:     # differences tell nothing below
        return "0"
    return mp.nstr(v, n, min_fixed=-3, max_fixed=6, strip_zeros=True).replace("+", "")


def show_input_set(name, s):
    print("input_set", name)
    for k, a in s.items():
        a = np.asarray(a)
        print(" ", k, a.ndim, *a.shape, *(str(v) if k == "t" else repr(float(v)) for v in a.ravel()))


def main():
    p = argparse.ArgumentParser(description="writes a table of formulas and of what they are worth")
    p.add_argument("--random", type=int, default=0, metavar="COUNT", help="as many formulas composed at random, instead of the rows")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    print("# written by tests/stable.py, which says what it means" + (f"; --random {a.random} --seed {a.seed}" if a.random else ""))
    for name, s in INPUT_SETS.items():
        show_input_set(name, s)
    for text, input_sets in compose(a.seed, a.random) if a.random else table():
        for name in input_sets:
            try:
                with mp.workdps(2000 if a.random and "erf" in text else mp.dps):     # erf(60) is 1 for 1565 digits
                    lines = list(rows(text, name, unit_composed if a.random else unit))
            except (ZeroDivisionError, ValueError, TypeError) as e:
                print(f"{text} in inputs {name}: {e}", file=sys.stderr)
                continue
            if any(isinstance(v, mp.mpc) or not mp.isfinite(v) for _, line in lines for v, _ in line):
                continue
            print("formula", name, text)
            for kind, line in lines:
                print(" ", kind, *(f"{digits(v, 12)}~{digits(e, 1)}" for v, e in line))


if __name__ == "__main__":
    main()

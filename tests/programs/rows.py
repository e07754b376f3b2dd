"""rows.py: candidates for lines: each row makes a piece of text from what is in the pool.

An op of the library that no row names is drawn by `anything`, by the manual's parameters.
"""
import re

from . import formula, other_names
from .scalar import TABLE
from .value import Unsure, is_float, is_int

# Where a function has values: operands are brought there, mostly.
DOMAIN = {
    "log": "abs({}) + 0.3", "log2": "abs({}) + 0.3", "log10": "abs({}) + 0.3", "log1p": "abs({})", "sqrt": "abs({}) + 0.1",
    "reciprocal": "abs({}) + 0.4", "arcsin": "0.9 * sin({})", "arccos": "0.9 * sin({})", "arctanh": "0.9 * sin({})",
    "arccosh": "abs({}) + 1.2", "gammaln": "abs({}) + 0.2", "psi": "abs({}) + 0.3", "tri_gamma": "abs({}) + 0.3",
    "exp": "minimum({}, 4)", "exp2": "minimum({}, 4)", "expm1": "minimum({}, 4)", "sinh": "clip({}, -3, 3)",
    "cosh": "clip({}, -3, 3)", "tan": "sin({})", "xlogx": "abs({})",
}
UNARY = [n for n, r in TABLE.items() if r[0] == 1 and n not in ("gpu_from_host", "host_from_gpu", "invert")]
COMPARE = ["<", "<=", ">", ">=", "==", "!="]

# What the library says no to, with reason: what was drawn is no program.
REFUSALS = re.compile("|".join([
    "use xor or invert", "does not depend", "no gradient", "never broadcasts", "would be rounded", "needs integers or bool",
    "is not known", "fewer than 8 axes", "does not fit into", "only a size known to be 1", "not known to be", "promise", "axes of size 1 alone", "whole number", "integer scalar", "is not a float",
]))


BY_VALUES = re.compile(r"nonzero|unique|compress|\[.*[<>=].*\]")       # sizes that only running tells


def refusal(message, text):
    return REFUSALS.search(message) is not None


def literal(d, v):
    if is_float(v.dt):
        return d.any("0.5", "2", "1", "-1", "3", "0.1", "1.5", "-2", "0.25", "1e-3", "2 ** -1", "10 ** -1", "1 / 3", "0", "7.5")
    return d.any("1", "2", "3", "-1", "5", "7", "10", "100", "2 ** 3", "300", "0")


def unary(d):
    name = d.any(*UNARY)
    v = d.pick(lambda v: v.dt != "bool" or d.coin(0.1)) if d.coin(0.3) else d.real()
    arg = DOMAIN[name].format(v.name) if name in DOMAIN and d.coin(0.8) else v.name
    return f"{name}({arg})"


def arithmetic(d):
    a = d.pick()
    b = d.meets(a).name if d.coin(0.7) else literal(d, a)
    o = d.any("+", "-", "*", "+", "-", "*", "/", "//", "%", "**")
    one, two = (a.name, b) if d.coin() else (b, a.name)
    if o == "/" and d.coin(0.7):
        two = f"(abs({two}) + 0.5)"
    if o in ("//", "%") and d.coin(0.6):
        two = d.any("2", "3", "0.5", "7", "0.1", "0.3", "inf", "-0.7") if is_float(a.dt) else d.any("2", "3", "7")
        one = a.name
    if o == "**":
        return f"{a.name} ** {d.any('2', '3', '2', '1', '0')}" if d.coin(0.7) else f"(abs({a.name}) + 0.5) ** {two}"
    return f"{one} {o} {two}"


def chain(d):
    """Several operations in one line: what rules look at."""
    a = d.real()
    b = d.meets(a).name
    x = a.name
    return d.any(
        f"log(1 + exp({x}))", f"1 / (1 + exp(-{x}))", f"exp({x}) - 1", f"log(1 - sigmoid({x}))", f"log(sigmoid({x}))",
        f"{x} * {b} + {x} * {b}", f"({x} + 1) + 2", f"({x} * 2) * 0.5", f"{x} - {x} * {b}", f"sqrt(sqr({x}) + 0.1)",
        f"erf({x}) - 1", f"erf({x}) + (-1)", f"1 - erf({x})", f"sqr(log(1 + exp({x})))", f"tanh({x}) * sigmoid({b})",
        f"{x} / 3 * 3", f"({x} + {b}) * ({x} - {b})", f"-(-{x})", f"exp({x}) / (1 + exp({x}))", f"maximum({x}, 0) + minimum({x}, 0)",
        f"{x} * exp(-0.5) + log(3)", f"tanh(0.5) + {x} * sigmoid(2)", f"0.5 * {x} * (1 + tanh(0.79788 * ({x} + 0.044715 * {x} ** 3)))", f"relu({x})", f"elu({x})", f"softsign({x})", f"selu({x})",
        f"hard_sigmoid({x})", f"{x} * (2 ** -1) + 10 ** -2", f"where({x} > 0, {x}, {b})", f"-exp({x}) / ((1 + exp({x})) * (1 + exp(-{x})))",
        f"ultra_fast_sigmoid({x})", f"log(exp({x}) + exp({b}))", f"sigmoid_binary_crossentropy({x}, {b})",
        f"abs({x}) * sgn({x})", f"log(erfc(-{x}))", f"{x} + cast({b}, {a.dt})", f"sigmoid({x}) * (1 - sigmoid({x}))")


def comparison(d):
    a = d.pick()
    b = d.meets(a).name if d.coin() else literal(d, a)
    if d.coin(0.15):
        return f"{d.any('-1', '0')} {d.any('<', '<=')} {a.name} {d.any('<', '<=')} {d.any('1', '2')}"
    return f"{a.name} {d.any(*COMPARE)} {b}"


def bits(d):
    a = d.pick(lambda v: not v.real)
    if d.coin(0.2):
        return f"~{a.name}"
    b = d.meets(a)
    if b.real:
        raise Unsure("floats have no bits")
    return f"{a.name} {d.any('&', '|', '^')} {b.name}"


def choose(d):
    a = d.pick()
    b = d.meets(a)
    k = d.any("where", "clip", "maximum", "minimum", "arctan2", "hypot", "logaddexp", "xlogy0", "isclose", "second", "fill", "pow")
    if k == "where":
        c = d.pick(lambda v: v.dt == "bool").name if d.coin(0.4) else f"({a.name} > {literal(d, a)})"
        return f"where({c}, {a.name}, {b.name if d.coin(0.6) else literal(d, a)})"
    if k == "clip":
        return f"clip({a.name}, {d.any('0', '-1', '-0.5', b.name)}, {d.any('1', '2', '0.5')})"
    if k in ("second", "fill"):
        return f"{k}({a.name}, {b.name})"
    if k == "xlogy0":
        return f"xlogy0({a.name}, abs({b.name}) + 0.5)"
    if k == "pow":
        return f"pow(abs({a.name}) + 0.5, {b.name})"
    return f"{k}({a.name}, {b.name})"


def conversion(d):
    a = d.pick()
    return f"cast({a.name}, {d.any(*[t for t in formula.DTYPES if t != a.dt])})"


def reduction(d):
    a = d.pick() if d.coin(0.4) else d.real()
    name = d.any("sum", "sum", "sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "var", "std", "ptp", "norm",
                 "logsumexp", "logsumexp", "max", "mean")
    x = a.name
    if a.real and d.coin(0.3) and name in ("sum", "mean", "max"):
        x = d.any(f"sqr({x})", f"abs({x})", f"exp(-abs({x}))", f"{x} * {d.meets(a).name}")
    more = d.axes(a)
    if name in ("sum", "prod") and d.coin(0.2):
        more += f", {d.any('dtype', 'acc_dtype')}={d.any('float64', 'float32')}"
    if name == "norm":
        return f"norm({x}, ord={d.any('1', '2', '3')}{more})"
    if name not in ("ptp", "norm") and d.coin(0.3):
        more += ", keepdims=True"
    if name == "var" and d.coin(0.2):
        more += ", ddof=1"
    return f"{name}({x}{more})"


def peak(d):
    """What is the largest of something computed is one of its elements, also where it is computed again."""
    a = d.real(fits=lambda v: v.rank > 0)
    x, k = a.name, d.axis(a)
    y = d.take(d.any(f"{x} / (sum(abs({x}), axis={k}, keepdims=True) + 1)", f"{x} / (max(abs({x}), axis={k}, keepdims=True) + 1)", f"sqr({x}) * 0.3",
                     f"tanh({x}) * {x}", f"{x} * {d.meets(a).name} + {x}", f"exp(-abs({x})) * 0.7", chain(d)))
    if y is None or y.rank == 0 or not y.real:
        return None
    row = k if y.rank == a.rank else 0
    k = k if y.rank == a.rank and d.coin() else d.axis(y)
    most = d.any("max", "max", "min")
    same = f"{y.name} == {most}({y.name}, axis={k}, keepdims=True)"
    there = f"where({same}, {y.name}, 0.0)"
    # a sum along the axis of the quotient is a kernel of rows, which may divide by a row otherwise than the maximum's kernel
    return d.any(f"any({same}, axis={k})", f"any({same}, axis={d.axis(y)})", same, there, f"{most}({y.name}, axis={k})",
                 f"sum({there}, axis={row})", f"sum({there}, axis={row})")


def own(d):
    """The program's own ops, given as kernel text: on literals alone too."""
    a = d.real()
    b = d.meets(a).name
    return d.any(f"own_swish({a.name}, {b})", f"own_swish({a.name}, 1.5)", f"own_swish(2.0, 1) + {a.name}", f"own_ratio({a.name}, {b}, 0.5)",
                 f"own_ratio(1, {b}, {a.name})", f"own_ratio(1, 3.0, 0.5) * {a.name}", f"own_bell({a.name})", f"sum(own_bell({a.name}){d.axes(a)})")


def pair(d):
    a = d.real(fits=lambda v: v.rank > 0)
    return f"max_and_argmax({a.name}{d.axes(a)})[{d.any(0, 1)}]"


def row_wise(d):
    a = d.real(fits=lambda v: v.rank > 0)
    ax = d.axis(a)
    k = a.name
    return d.any(f"softmax({k}, axis={ax})", f"softmax({k})", f"logsoftmax({k}, axis={ax})", f"layer_norm({k})",
                 f"exp({k}) / sum(exp({k}), axis={ax}, keepdims=True)", f"({k} - mean({k}, axis={ax}, keepdims=True)) / (std({k}, axis={ax}, keepdims=True) + 0.5)",
                 f"{k} - max({k}, axis={ax}, keepdims=True)", f"log(softmax({k}, axis={ax}) + 0.01)", f"{k} / (norm({k}, axis={ax}, ord=1) + 1)" if a.rank == 1 else f"-log(softmax({k}))")


def scan(d):
    a = d.pick(lambda v: v.rank > 0 or d.coin(0.1))
    name = d.any("cumsum", "cumsum", "cumprod")
    x = f"sin({a.name})" if name == "cumprod" and a.real else a.name
    return f"{name}({x}{'' if d.coin(0.2) or not a.rank else f', axis={d.axis(a)}'})"


def matrices(d):
    """Diagonals and Kronecker products of anything; systems with matrices that are far from singular."""
    a = d.pick(lambda v: v.rank > 1)
    k, x = d.any(-1, 0, 1, 2), a.name
    one, other = d.rng.sample(range(a.rank), 2)
    if d.coin(0.4) and a.real and a.rank == 2:
        size = max(s[0] for s in a.shapes)
        m = f"dot(tanh({x}), tanh({x}).T) + {size + 1} * cast(eye(size({x}, 0)), {x}.dtype)"
        return d.any(f"solve({m}, {x})", f"solve({m}, {x}[:, 0])", f"matrix_inverse({m})", f"solve({m}, {x}, assume_a='pos')")
    if a.rank == 2 and d.coin(0.4):
        return d.any(f"diag({x}, k={k})", f"kron({x}, {x})", f"diag({x}[0], k={k})", f"trace({x})")
    return f"{d.any('trace', 'diagonal')}({x}, offset={k}, axis1={one}, axis2={other})"


def axes_moved(d):
    a = d.pick(lambda v: v.rank > 0)
    order = list(range(a.rank))
    d.rng.shuffle(order)
    k = d.any("dimshuffle", "dimshuffle", "dimshuffle", "transpose", "swapaxes", "expand_dims", "left", "right", "T", "drop")
    if k == "dimshuffle":
        for _ in range(d.any(0, 0, 1, 2)):
            if len(order) < 7:
                order.insert(d.rng.randint(0, len(order)), -1)
        return f"dimshuffle({a.name}, {order})"
    if k == "drop":
        return f"dimshuffle({a.name}, {[i for i in order if a.dims[i] != 1]})"
    if k == "transpose":
        return f"transpose({a.name}, {order})"
    if k == "swapaxes":
        return f"swapaxes({a.name}, {d.axis(a)}, {d.axis(a)})"
    if a.rank > 6:
        raise Unsure("rank")
    if k == "expand_dims":
        return f"expand_dims({a.name}, {d.rng.randint(0, a.rank)})"
    return f"{a.name}.T" if k == "T" else f"shape_pad{k}({a.name})"


def reshaped(d):
    a = d.pick()
    n = a.rank
    k = d.any("ravel", "flatten", "join", "split", "minus")
    if k == "ravel" or n == 0:
        return d.any(f"ravel({a.name})", f"reshape({a.name}, [-1])", f"reshape({a.name}, [-1, 1])")
    if k == "flatten":
        return f"flatten({a.name}, ndim={d.rng.randint(1, n)})"
    i = d.rng.randrange(n)
    sizes = [f"{a.name}.shape[{j}]" if a.dims[j] < 0 else str(a.dims[j]) for j in range(n)]
    if k == "join" and n > 1:
        i = d.rng.randrange(n - 1)
        sizes[i:i + 2] = ["-1" if d.coin() else f"{sizes[i]} * {sizes[i + 1]}"]
    elif k == "split" and a.dims[i] > 1 and n < 7:
        parts = [f for f in range(1, a.dims[i] + 1) if a.dims[i] % f == 0]
        f = d.any(*parts)
        sizes[i:i + 1] = [str(f), str(a.dims[i] // f)]
    elif n < 7:
        sizes[i] = "-1"
        sizes.insert(d.rng.randint(0, n), "1")
    return f"reshape({a.name}, [{', '.join(sizes)}])"


def from_start(d, n):
    """A slice of n elements, or an element, whose place is an input: it may be another in each round."""
    some = [v for v in d.pool if v.name in d.starts]
    if some and d.coin(0.4):
        i = d.any(*some)
    else:
        i = d.leaf(d.any("int64", "int64", "int32"), [], numbers=[d.rng.randint(0, max(n // 2, 1)) for _ in range(2)])
        d.starts.add(i.name)
    i, b = i.name, d.any(1, 2, 2, 3)
    return d.any(f"{i} * {b}:({i} + 1) * {b}", f"{i} * {b}:({i} + 1) * {b}", f"{i}:{i} + {b}", f"{i}:", f":{i}", f"-{i} - {b}:-{i}", f"{i} + {b}:{i}:-1",
                 f"{i} + {2 * b}:{i}:-2", f"-1 - {i}:-{b + 1} - {i}:-1", f"{i} - 1", f"{i} // 2:{i} // 2 + {b}")


def indexed(d, setting=False):
    a = d.pick(lambda v: v.rank > 0 and all(0 not in s for s in v.shapes))
    out, lists = [], 0
    for i in range(d.rng.randint(1, a.rank)):
        n = min(s[i] for s in a.shapes)
        k = d.any("all", "slice", "slice", "step", "number", "list", "tail", "new", "tensor", "start")
        if k == "list" and lists == 0:
            out.append(str([d.rng.randint(-n, n - 1) for _ in range(d.any(1, 2, 3))]))
            lists += 1
        elif k == "tensor" and lists == 0:
            some = [v for v in d.pool if v.dt in ("int64", "int32", "int8") and v.rank == 1]
            out.append(d.any(*some).name if some and d.coin(0.5) else "arange(2)[::-1]" if n > 1 else ":")
            lists += 1
        elif k == "new" and a.rank < 6 and not setting:
            out += ["None", ":"]
        elif k == "number" and setting and d.coin(0.3) and any(v.rank == 0 and v.dt in ("int64", "int32") for v in d.pool):
            i = d.any(*[v for v in d.pool if v.rank == 0 and v.dt in ("int64", "int32")]).name
            out.append(d.any(f"{i} % {n}", f"{i} % {n}:", f"{i} % {n}:{i} % {n} + 2"))      # a place that is computed
        elif k == "number":
            out.append(str(d.rng.randint(-n, n - 1)))
        elif k == "slice":
            lo = d.rng.randint(0, n)
            out.append(f"{lo}:{d.rng.randint(lo, n + 1)}")
        elif k == "start":
            out.append(from_start(d, n))
        elif k == "step":
            out.append(d.any("::-1", "::2", "::-2", "1::2", f"{n - 1}::-1", "-1:0:-1", ":-1"))
        elif k == "tail":
            out.append(d.any("1:", ":-1", "-2:", ":2"))
        else:
            out.append(":")
    if d.coin(0.1):
        out.append("...")
    text = f"{a.name}[{', '.join(out)}]"
    if not setting:
        return text
    y = d.any("1", "0", f"sum({a.name})" if a.real else "2")
    if d.coin():
        y = f"{text} * 2"
    if d.coin(0.3):
        fit = [v for v in d.pool if v.dt == a.dt and v.rank == 0]
        y = d.any(*fit).name if fit else y
    return f"{d.any('set', 'inc')}_subtensor({text}, {y})"


def set_part(d):
    return indexed(d, setting=True)


def masked(d):
    a = d.pick(lambda v: v.rank > 0)
    k = d.any("mask", "mask", "compress", "nonzero", "take", "take", "flatnonzero", "nonzero_values", "unique", "gather")
    if k == "mask":
        return f"{a.name}[{a.name} > {literal(d, a)}]"
    if k == "compress":
        c = d.pick(lambda v: v.rank == 1 and v.dt == "bool" or v.rank == 1 and not v.real)
        return f"compress({c.name}, {a.name}, axis={d.axis(a)})"
    if k == "nonzero":                                   # of a vector there is one result, which [0] would look into
        return f"nonzero({a.name})" + (f"[{d.rng.randrange(a.rank)}]" if a.rank > 1 else "")
    if k == "take":
        n = min(min(s) for s in a.shapes)
        axis = d.axis(a)
        n = min(s[axis] for s in a.shapes)
        mode = d.any("raise", "wrap", "clip")
        at = [d.rng.randint(-n, n - 1) if mode == "raise" else d.rng.randint(-9, 9) for _ in range(d.any(1, 2, 4))] if n else [0]
        if mode == "clip":
            at = [abs(i) for i in at]
        return f"take({a.name}, {at}, axis={axis}, mode='{mode}')"
    if k == "gather":
        b = d.pick(lambda v: v.dt in ("int64", "int32") and v.rank <= 2)
        return f"{a.name}[{b.name} % {a.name}.shape[0]]"
    return f"{k}({a.name})"


def together(d):
    a = d.pick(lambda v: v.rank > 0)
    k = d.any("concatenate", "concatenate", "stack", "roll", "tile", "repeat", "split", "prepend", "list")
    ax = d.rng.randrange(a.rank)

    def fits(b, whole=False):
        return b.rank == a.rank and all(s[i] == t[i] for s, t in zip(a.shapes, b.shapes) for i in range(a.rank) if whole or i != ax)
    if k in ("concatenate", "stack"):
        xs = [a.name] + [d.pick(lambda b: fits(b, k == "stack")).name for _ in range(d.any(1, 1, 2))]
        d.rng.shuffle(xs)
        return f"{k}([{', '.join(xs)}], axis={ax})"
    if k == "roll":
        return f"roll({a.name}, {d.any(-2, -1, 1, 3)}{'' if d.coin(0.2) else f', axis={ax}'})"
    if k == "tile":
        return f"tile({a.name}, {[d.any(1, 1, 2) for _ in range(a.rank)]})"
    if k == "repeat":
        return f"repeat({a.name}, {d.any(0, 1, 2, 3)}{'' if d.coin(0.2) else f', axis={ax}'})"
    if k == "split":
        n = a.dims[ax]
        if n < 2:
            raise Unsure("too short to split")
        at = d.rng.randint(0, n)
        return f"split({a.name}, {[at, n - at]}, axis={ax})[{d.any(0, 1)}]"
    if k == "list":
        s = [v.name for v in d.pool if v.rank == 0]
        if len(s) < 2:
            raise Unsure("no scalars")
        return f"[{', '.join(d.rng.sample(s, 2))}]"
    b = d.pick(lambda v: v.rank == 2)
    return d.any(f"prepend_0_to_each_row({b.name})", f"prepend_1_to_each_row({b.name})", f"tril({b.name}, k={d.any(-1, 0, 1)})",
                 f"triu({b.name})", f"fill_diagonal({b.name}, 1)", f"horizontal_stack({b.name}, {b.name})")


def made(d):
    a = d.pick(lambda v: v.rank > 0)
    n = d.any("2", "3", f"{a.name}.shape[0]")
    if d.coin(0.1):
        return f"arange({d.leaf(d.any('float32', 'float64'), [], numbers=[d.any(0, 1, 2, 3), d.any(0.5, 2.0, 2.25, 2.75, 3.5)]).name})"
    return d.any(f"arange({n})", f"alloc({literal(d, a)} + {a.name}, [{n}, {', '.join(f'{a.name}.shape[{i}]' for i in range(a.rank))}])",
                 f"zeros_like({a.name})", f"ones_like({a.name})", f"eye({n})", f"tri({n}, 3, k={d.any(-1, 0, 1)})", f"zeros([{n}, 2])",
                 f"ones([{n}])", f"meshgrid(arange({n}), arange(3))[{d.any(0, 1)}]", f"to_one_hot(arange({n}), 4)", f"bartlett({n})",
                 f"{a.name}.shape", f"outer(ravel({a.name}), arange(2))", f"alloc({a.name}, {[1] * (a.rank + 1)})" if all(s == 1 for s in a.dims) else f"{a.name} + arange({a.name}.shape[{a.rank - 1}])")


def product(d):
    a = d.pick(lambda v: v.rank > 0) if d.coin(0.15) else d.real(fits=lambda v: v.rank > 0)
    k = d.any("dot", "dot", "@", "tensordot", "batched_dot", "self", "gram")
    same = lambda i, j: (lambda b: all(s[i] == t[j] for s, t in zip(a.shapes, b.shapes)))
    if k == "self":
        return f"dot({a.name}, transpose({a.name}))"
    if k == "gram" and a.rank == 3:
        return f"batched_dot({a.name}, dimshuffle({a.name}, [0, 2, 1]))"
    if k in ("dot", "@"):
        b = d.pick(lambda b: 0 < b.rank < 4 and a.rank < 4 and (k == "dot" or (a.rank <= 2 and b.rank <= 2)) and same(-1, -1 if b.rank == 1 else -2)(b))
        return f"dot({a.name}, {b.name})" if k == "dot" else f"{a.name} @ {b.name}"
    if k == "tensordot":
        i = d.rng.randrange(a.rank)
        b = d.pick(lambda b: b.rank > 0 and a.rank + b.rank < 8 and any(same(i, j)(b) for j in range(b.rank)))
        j = d.any(*[j for j in range(b.rank) if same(i, j)(b)])
        return f"tensordot({a.name}, {b.name}, axes=[{i}], axes_b=[{j}])"
    if a.rank not in (2, 3):
        raise Unsure("rank")
    b = d.pick(lambda b: b.rank in (2, 3) and same(0, 0)(b) and same(a.rank - 1, 1)(b))
    return f"batched_dot({a.name}, {b.name})"


def ordered(d):
    a = d.pick(lambda v: v.rank > 0)
    ax = d.axis(a)
    return d.any(f"sort({a.name}, axis={ax})", f"sort({a.name})", f"argsort({a.name}, axis={ax})",
                 f"permute_row_elements({a.name}, argsort({a.name}))")


def images(d, n, channels=None):
    """A tensor of n image axes: one of the pool, or a new leaf."""
    fits = lambda v: v.real and v.rank == n + 2 and min(min(s) for s in v.shapes) > 0
    some = [v for v in d.pool if fits(v) and (channels is None or all(s[1] == channels for s in v.shapes))]
    if some and d.coin(0.8):
        return d.any(*some)
    size = lambda most: d.rng.randint(1, most)
    axes = []
    for i in range(n + 2):
        s = [size(3), size(3)] if i == 0 else [size(5)] * 2 if i == 1 else [d.any(1, 2, 3, 4, 5, 6, 7, 9) for _ in range(2)]
        known = i == 1 or d.coin(0.3)
        axes.append(([s[0], s[0]] if known else s, known))
    return d.leaf(d.any("float32", "float32", "float32", "float64", "float16", "bfloat16"), axes)


def convolution(d):
    n = d.any(1, 2, 2, 2, 2, 3)
    x = images(d, n)
    c = x.dims[1]
    if c < 0:
        raise Unsure("channels")
    groups = d.any(*[g for g in (1, 1, 1, c) if c % g == 0 and c])
    filters = groups * d.any(1, 2, 3, 4)
    taps = [d.any(1, 1, 2, 3, 3, 5) for _ in range(n)]
    axes = [([k, k], d.coin(0.8)) for k in [filters, c // groups] + taps]
    axes[0], axes[1] = (axes[0][0], True), (axes[1][0], True)
    w = d.leaf(x.dt, axes)
    border = d.any("'valid'", "'full'", "'half'", "'same'", "'valid'", str([d.any(0, 1, 2) for _ in range(n)]))
    stride = [d.any(1, 1, 1, 2, 3) for _ in range(n)]
    dilation = [d.any(1, 1, 1, 2) for _ in range(n)]
    k = d.any("conv", "conv", "conv", "conv2d", "corrmm", "dnn_conv", "transpose", "inputs", "weights")
    more = f"border={border}, stride={stride}, dilation={dilation}, groups={groups}, flip={d.any(True, False)}"
    text = f"conv({x.name}, {w.name}, {more})"
    if k == "conv2d":
        text = f"conv{n}d({x.name}, {w.name}, border_mode={border}, subsample={stride}, filter_dilation={dilation}, num_groups={groups}, filter_flip={d.any(True, False)})"
    elif k == "corrmm":
        text = f"corrmm({x.name}, {w.name}, border_mode={border}, subsample={stride}, num_groups={groups})"
    elif k == "dnn_conv":
        text = f"dnn_conv({x.name}, {w.name}, border_mode={border.replace('same', 'half')}, subsample={stride}, conv_mode='{d.any('conv', 'cross')}', num_groups={groups})"
    elif k == "transpose" and filters == c:
        text = f"conv_transpose({x.name}, {w.name}, border={d.any(0, 1)}, stride={stride})"
    elif k == "weights":
        text = f"conv_weights({x.name}, {text}, shape={w.name}.shape, {more})"
    elif k == "inputs":
        text = f"conv_inputs({w.name}, {text}, shape={x.name}.shape, {more})"
    y = d.take(text)
    if y is None:
        return None
    if d.coin(0.6):
        b = d.leaf(y.dt, [([filters, filters], True)] + [([1, 1], True)] * n) if y.dims[1] == filters else y
        return d.any(f"{y.name} + {b.name}", f"relu({y.name} + {b.name})", f"sigmoid({y.name}) * {b.name}",
                     f"dimshuffle({y.name}, {[0] + list(range(2, n + 2)) + [1]}) * 2 + 1")
    return None


def spread(d):
    """A convolution of one feature, and cheap work after it that meets what has more of them."""
    x = images(d, 2)
    y = f"conv2d({x.name}, sum({x.name}, axis=[0, 2, 3], keepdims=True) * 0.1, border_mode={d.any(0, 0, 1)})"
    y = d.any("{}", "abs({})", "{} * 0.5", "relu({})", "sqr({}) + 1").format(y)
    return f"{y} {d.any('+', '*', '-')} {d.any(x.name, x.name, f'{x.name}[:1]', f'sum({x.name}, axis=[2, 3], keepdims=True)')}"


def cancelling(d):
    """Little or nothing but rounding is left."""
    a = d.real(fits=lambda v: v.rank > 0)
    x, axes = a.name, d.axes(a)
    return d.any(f"sum({x}{axes}) - sum({x} * 1.000001{axes})", f"sqr({x}) - sqr({x} * 1.000001)", f"({x} * 1.7 - {x} * 1.3 - {x} * 0.4) * 1e3",
                 f"erf(abs({x}) + 4) - 1", f"1 - sigmoid(abs({x}) + 20)", f"({x} + 100) - 100", f"exp(({x} * 1.1 - {x} * 0.6 - {x} * 0.5) * 1e3)",
                 f"dot({x}, transpose({x})) - dot({x} * 1.000001, transpose({x}))")


def smooth(d):
    """Functions that are smooth at 0 and far from it, where what they are written with may have corners or overflow."""
    x = d.leaf(d.any("float32", "float64"), numbers=[d.any(0, 100, -100), d.any(0, 1, -2)]) if d.coin(0.6) else d.real()
    b = d.meets(x).name
    return d.any(f"sigmoid_binary_crossentropy({x.name}, {b})", f"softplus({x.name})", f"log(exp({x.name}) + exp({b} * 0))", f"arcsinh({x.name})",
                 f"log(2 + exp({x.name}))", f"log1p(3 * exp({x.name}))", f"1.3 * exp({x.name}) / (1 + exp({x.name}))", f"log(1 + sum(exp({x.name})))",
                 f"elu({x.name})", f"where({x.name} > 0, {x.name}, exp({x.name}) - 1)", f"minimum(exp({x.name}), 10)", f"softsign({x.name})",
                 f"{x.name} ** 2", f"erf({x.name})", f"expm1({x.name})", f"log1p(sqr({x.name}))",
                 f"sigmoid({x.name})", f"log(1 + exp({x.name}))", f"log(sigmoid({x.name}))", f"log(1 - sigmoid({x.name}))", f"sqrt(sqr({x.name}) + 1)", f"{x.name} * tanh({x.name})", f"var({x.name})")


def narrow(d):
    """float16 whose products would overflow but for a factor that stands in front of them."""
    x = d.leaf("float16", numbers=[d.any(100, 200, 300), d.any(1, 30)]).name
    k = d.any("* 0.1", "/ 10", "* 0.01", "* 0.5")
    return d.any(f"{x} {k} * {x}", f"dot({x} {k}, transpose({x}))", f"dot({x}, transpose({x}) {k})", f"sum({x} {k})", f"({x} {k}) * sqrt({x}) * sqrt({x})",
                 f"exp(log({x}) * 0.9) * ({x} {k})")


def pooling(d):
    n = d.any(1, 2, 2, 2, 3)
    x = images(d, n)
    ws = [d.any(1, 2, 2, 3) for _ in range(n)]
    mode = d.any("max", "max", "max", "sum", "average_inc_pad", "average_exc_pad")
    more = ""
    if d.coin(0.4):
        more += f", stride={[d.any(1, 2, 3) for _ in range(n)]}"
    if d.coin(0.3) and mode != "average_exc_pad":
        more += f", pad={[d.any(0, 1) if w > 1 else 0 for w in ws]}"
    elif d.coin(0.5):
        more += ", ignore_border=False"
    if d.coin(0.15):
        more += ", ties='all'"
    k = d.any("pool", "pool", "pool", "pool", "dnn_pool", "upscale", "global", "neibs")
    if k == "dnn_pool" and n > 1:
        return f"dnn_pool({x.name}, {ws}, mode='{mode}')"
    if k == "upscale":
        return f"upscale({x.name}, {d.any(1, 2, 3)}, mode='{d.any('repeat', 'dilate')}')"
    if k == "global":
        return f"global_pool({x.name}, mode='{d.any('max', 'average_inc_pad', 'sum')}')"
    if k == "neibs" and n == 2:
        return f"images2neibs({x.name}, [{d.any(1, 2, 3)}, {d.any(1, 2, 3)}])"
    return f"pool({x.name}, {ws}, mode='{mode}'{more})"


def normal(d):
    n = d.any(1, 2, 2)
    x = images(d, n)
    k = d.any("lrn", "cross", "train", "train", "softmax", "rows", "test")
    if k == "lrn":
        return f"lrn({x.name}, n={d.any(1, 3, 5)}, alpha=0.1)"
    if k == "cross":
        return f"cross_map_norm({x.name}, {d.any(1, 2, 3)}, 0.1, 0.75)[{d.any(0, 1)}]"
    if k == "softmax" and n == 2:
        return f"dnn_softmax({x.name}, algo='{d.any('accurate', 'log')}')"
    if k in ("train", "test") and x.dims[1] > 0:
        c = x.dims[1]
        g, b = (d.leaf(x.dt, [([1, 1], True), ([c, c], True)] + [([1, 1], True)] * n) for _ in range(2))
        if k == "test":
            return f"batch_normalization_test({x.name}, {g.name}, {b.name}, {b.name} * 0.5, sqr({g.name}) + 1)"
        y = f"batch_normalization_train({x.name}, {g.name}, {b.name}, axes='spatial', epsilon=0.1)[0]"
        if d.coin(0.4):
            v = d.take(y)
            return f"pool({v.name}, {[d.any(1, 2)] * n}, mode='max')" if v else None
        return y
    v = d.real(2)
    return d.any(f"crossentropy_softmax_1hot({v.name}, arange({v.name}.shape[0]) % {v.name}.shape[1])",
                 f"-log(softmax({v.name})[arange({v.name}.shape[0]), arange({v.name}.shape[0]) % {v.name}.shape[1]])",
                 f"categorical_crossentropy(softmax({v.name}), softmax({v.name} * 2))")


def effect(d):
    a = d.real()
    return d.any(f"{a.name} * consider_constant({a.name})", f"disconnected_grad({a.name})", f"specify_shape({a.name}, {[-1] * a.rank})",
                 f"host_from_gpu({a.name})")


KNOWN = set()


def anything(d):
    """An op that no row above names, by its parameters in the manual: operands at random, attributes left out."""
    names = [n for n in formula.ROWS if n not in KNOWN and n in formula.OPS]
    if not names:
        raise Unsure("none")
    name = d.any(*names)
    words = [w.strip() for w in re.sub(r"\[[^\]]*\]", "", formula.ROWS[name][0]).split(",")]
    need = [w for w in words if w and "=" not in w]
    args = []
    for w in need:
        args.append(d.pick().name if not args or d.coin(0.3) else d.any(d.pick().name, "1", "2", args[0]))
    return f"{name}({', '.join(args)})"


TABLE_OF_ROWS = [
    (10, unary), (16, arithmetic), (10, chain), (4, comparison), (3, bits), (5, choose), (5, conversion), (14, reduction), (2, pair), (9, peak), (3, own), (3, cancelling), (5, smooth), (2, narrow),
    (7, row_wise), (3, scan), (3, matrices), (9, axes_moved), (6, reshaped), (9, indexed), (4, set_part), (5, masked), (7, together), (4, made),
    (8, product), (4, ordered), (7, convolution), (2, spread), (6, pooling), (5, normal), (2, effect), (4, anything),
    (5, other_names.matrices), (5, other_names.by_other_names), (4, other_names.convnet), (6, other_names.tables),
]
WEIGHTS = [w for w, _ in TABLE_OF_ROWS]
ROWS = [r for _, r in TABLE_OF_ROWS]
for _file in (__file__, other_names.__file__):
    with open(_file, encoding="utf-8") as _f:
        KNOWN |= set(re.findall(r"[a-z_][a-zA-Z0-9_]+", _f.read()))

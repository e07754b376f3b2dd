"""The functions of theano.tensor: tables of names, each with the op of the library that it is."""
import numpy as np

from ..core import (Constant, Elemwise, Library, SetPart, TensorType, Variable, as_tensor_variable, attributes,
                    constant, library, operators, promoted, upcast)
from ..config import config

# ---- element by element: Theano's name, or both names

SAME = """add sub mul pow neg maximum minimum isnan isinf and_ or_ xor exp exp2 expm1 log log2 log10 log1p floor ceil
trunc iround sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg erf erfc
gammaln psi tri_gamma sqr sqrt sigmoid softplus lt le gt ge eq neq sgn where mod invert int_div true_div erfinv erfcinv
erfcx gamma gammainc gammaincc gammal gammau chi2sf j0 j1 jv i0 i1 iv""".split()
OTHER = {"abs_": "abs", "inv": "reciprocal", "square": "sqr", "switch": "where", "bitwise_and": "and_",
         "bitwise_or": "or_", "bitwise_xor": "xor", "bitwise_not": "invert", "minus": "sub", "plus": "add",
         "div_proxy": "true_div", "power": "pow", "floor_div": "int_div"}
FLOATS = set("""exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh
arccosh arctanh deg2rad rad2deg erf erfc gammaln psi tri_gamma sqrt sigmoid softplus reciprocal erfinv erfcinv erfcx gamma
gammainc gammaincc gammal gammau chi2sf j0 j1 jv i0 i1 iv""".split())
TESTS = set("lt le gt ge eq neq".split())
WIDER = {"bool": "float32", "int8": "float32", "uint8": "float32", "int16": "float32", "uint16": "float32"}


class elementwise:
    """exp, add, ...: a function of variables, and of what can become one."""

    def __init__(self, name, op):
        self.__name__ = self.name = name
        self.op = op

    def __call__(self, *args, **kwargs):
        name = kwargs.pop("name", None)
        if kwargs:
            raise TypeError("%s has no argument %s" % (self.name, ", ".join(kwargs)))
        xs = [as_tensor_variable(x) for x in args]
        if self.op in FLOATS:
            xs = [cast(x, WIDER[x.dtype]) if x.dtype in WIDER else x for x in xs]
        if self.op in ("add", "mul") and len(xs) != 2:  # any number of terms
            y = xs[0]
            for x in xs[1:]:
                y = Elemwise(self.op)(y, x)
        else:
            y = Elemwise(self.op)(*xs)
        if self.op in TESTS:
            y._is_nonzero = False
        y.name = name or y.name
        return y

    def __repr__(self):
        return "Elemwise{%s,no_inplace}" % self.name


names = {n: elementwise(n, n) for n in SAME}
names.update({n: elementwise(n, op) for n, op in OTHER.items()})
globals().update(names)


def cast(x, dtype):
    dtype = config.floatX if dtype == "floatX" else str(np.dtype(dtype))
    x = as_tensor_variable(x)
    return x if x.dtype == dtype else library("cast", x, dtype=dtype)


def clip(x, min, max):
    x, lo, hi = promoted([as_tensor_variable(v) for v in (x, min, max)])
    return Elemwise("clip")(x, lo, hi)


def round(x, mode="half_to_even"):
    return Elemwise({"half_to_even": "round", "half_away_from_zero": "round_half_away"}[mode])(as_tensor_variable(x))


def smallest(*xs):
    """The smallest of several, element by element."""
    return names["minimum"](*xs) if len(xs) == 2 else min(stack(xs), axis=0)


def largest(*xs):
    return names["maximum"](*xs) if len(xs) == 2 else max(stack(xs), axis=0)


def identity(x):
    return as_tensor_variable(x)


tensor_copy = conj = real = identity


# ---- reductions

def axes_of(x, axis):
    """axis as the library takes it: numbers that exist."""
    if axis is None:
        return None
    if isinstance(axis, Variable):
        if not isinstance(axis, Constant):
            raise TypeError("reduction axis must be known when the graph is built, got %s" % axis)
        axis = axis.data
    many = [int(a) for a in np.atleast_1d(axis)]
    for a in many:
        if not -x.ndim <= a < x.ndim:
            raise ValueError("axis %d is out of bounds of a tensor with %d axes" % (a, x.ndim))
    return sorted({a % x.ndim for a in many}) if np.ndim(axis) else many[0]


def reduction(op, more=()):
    def reduce(x, axis=None, keepdims=False, **given):
        x = as_tensor_variable(x)
        dtype = given.pop("dtype", None)
        given.pop("acc_dtype", None)
        given = {{"corrected": "ddof"}.get(k, k): v for k, v in given.items()}
        if set(given) - set(more):
            raise TypeError("%s has no argument %s" % (op, ", ".join(set(given) - set(more))))
        axis = axes_of(x, axis)
        if axis == []:  # nothing is reduced
            return {"var": zeros_like, "std": zeros_like, "argmax": zeros_like, "argmin": zeros_like}.get(op, identity)(x)
        if isinstance(axis, list) and op in ("argmax", "argmin") and len(axis) == x.ndim:
            axis = None
        if dtype not in (None, x.dtype):
            x = cast(x, dtype)
        given = dict(given, axis=axis, keepdims=bool(keepdims))
        y = library(op, x, **given)
        return y if dtype in (None, y.dtype) else cast(y, dtype)
    reduce.__name__ = op
    return reduce


sum = reduction("sum")
prod = reduction("prod")
max = reduction("max")
min = reduction("min")
argmax = reduction("argmax")
argmin = reduction("argmin")
any = reduction("any")
all = reduction("all")
mean = reduction("mean")
var = reduction("var", ["ddof"])
std = reduction("std", ["ddof"])
logsumexp = reduction("logsumexp")


def max_and_argmax(x, axis=None, keepdims=False):
    return [max(x, axis, keepdims), argmax(x, axis, keepdims)]


def ptp(x, axis=None):
    x = as_tensor_variable(x)
    return library("ptp", x, axis=axes_of(x, axis))


def norm(x, ord=2, axis=None, keepdims=False):
    x = as_tensor_variable(x)
    y = library("norm", x, ord=float(ord), axis=axes_of(x, axis))
    return makeKeepDims(x, y, axis) if keepdims else y


def makeKeepDims(x, y, axis):
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    gone = axes_of(x, axis)
    gone = list(range(x.ndim)) if gone is None else gone if isinstance(gone, list) else [gone % x.ndim]
    left = iter(range(y.ndim))
    return y.dimshuffle(["x" if i in gone else next(left) for i in range(x.ndim)])


# ---- shapes

def shape_vector(shape):
    """Sizes, some of them variables, as a vector of int64."""
    if isinstance(shape, Variable) and shape.ndim == 1:
        return cast(shape, "int64")
    if isinstance(shape, (Variable, int, np.integer)):
        shape = [shape]
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    shape = [s.data if isinstance(s, Constant) else s for s in shape]
    if not [s for s in shape if isinstance(s, Variable)]:
        if [s for s in shape if int(s) != s]:
            raise TypeError("a size must be a whole number: %r" % (shape,))
        return constant(np.array([int(s) for s in shape], "int64"))
    for s in shape:
        if isinstance(s, Variable) and (s.ndim or s.dtype.startswith("float")):
            raise TypeError("a size must be a whole number, not %s of type %s" % (s, s.type))
    return library("stack", *[cast(s, "int64") if isinstance(s, Variable) else constant(np.asarray(int(s), "int64"))
                              for s in shape])


def get_vector_length(v):
    v = as_tensor_variable(v)
    if v.ndim != 1:
        raise TypeError("argument must be symbolic vector, got '%s'" % v)
    if v._node.dims[0] < 0:
        raise ValueError("length not known: %s" % v)
    return v._node.dims[0]


def reshape(x, newshape, ndim=None):
    x = as_tensor_variable(x)
    shape = shape_vector(newshape)
    known = shape._node.dims[0]
    if known < 0 and ndim is None:
        raise ValueError("newshape must have a length that is known when the graph is built, or ndim must be given")
    return Library("reshape", "ndim=%d" % ndim if known < 0 else "")(x, shape)


def dimshuffle(x, *pattern):
    pattern = pattern[0] if len(pattern) == 1 and isinstance(pattern[0], (list, tuple)) else pattern
    for p in pattern:
        if p != "x" and not 0 <= p < as_tensor_variable(x).ndim:
            raise ValueError("new_order[%s] is %s, but the input only has %d axes."
                             % (list(pattern).index(p), p, as_tensor_variable(x).ndim))
    return library("dimshuffle", x, order=[-1 if p == "x" else int(p) for p in pattern])


def DimShuffle(input_broadcastable, new_order, inplace=False):
    return lambda x: dimshuffle(x, *new_order)


def transpose(x, axes=None):
    x = as_tensor_variable(x)
    return dimshuffle(x, *(reversed(range(x.ndim)) if axes is None else [int(a) % x.ndim for a in axes]))


def flatten(x, outdim=None, ndim=None):
    n = ndim or outdim or 1
    x = as_tensor_variable(x)
    if not 1 <= n <= builtin_max(x.ndim, 1):
        raise ValueError("invalid output ndimensions (%d) for tensor of rank %d" % (n, x.ndim))
    return library("flatten", x, ndim=n)


def shape(x):
    return Library("shape")(x)


def shape_i(x, i):
    return library("size", x, axis=i)


def size(x):
    return library("count", x)


def squeeze(x, axis=None):
    x = as_tensor_variable(x)
    return dimshuffle(x, *[i for i, b in enumerate(x.broadcastable) if not b])


def swapaxes(x, axis1, axis2):
    return library("swapaxes", x, a=axis1, b=axis2)


def moved(op):
    def move(x, *axes):
        x = as_tensor_variable(x)
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else axes
        return library(op, x, axis=[int(a) for a in axes]) if axes else x
    move.__name__ = op
    return move


addbroadcast = Rebroadcast = moved("addbroadcast")
unbroadcast = moved("unbroadcast")


def patternbroadcast(x, broadcastable):
    return library("patternbroadcast", x, pattern=[int(b) for b in broadcastable])


def shape_padleft(x, n_ones=1):
    return library("shape_padleft", x, n=n_ones)


def shape_padright(x, n_ones=1):
    return library("shape_padright", x, n=n_ones)


def shape_padaxis(x, axis):
    return library("shape_padaxis", x, axis=axis)


expand_dims = shape_padaxis


def specify_shape(x, sizes):
    if isinstance(sizes, Variable):
        raise TypeError("specify_shape: the sizes must be known when the graph is built")
    return library("specify_shape", x, sizes=list(sizes))


def roll(x, shift, axis=None):
    return library("roll", x, cast(as_tensor_variable(shift), "int64"), axis=axis)


# ---- joining

def join(axis, *xs):
    xs = promoted([as_tensor_variable(x) for x in xs])
    if isinstance(axis, Constant):
        axis = int(axis.data)
    if len({x.ndim for x in xs}) > 1:
        raise TypeError("Join() can only join tensors with the same number of dimensions.")
    return library("join", *xs, axis=axis)


def concatenate(tensor_list, axis=0):
    if not isinstance(tensor_list, (tuple, list)):
        raise TypeError("The 'tensors' argument must be either a tuple or a list, make sure you did not forget () or "
                        "[] around arguments of concatenate.", tensor_list)
    return join(axis, *tensor_list)


def stack(*xs, **given):
    axis = given.pop("axis", 0)
    if xs and isinstance(xs[0], (list, tuple)):
        if len(xs) > 1:
            axis = xs[1]
        xs = xs[0]
    if not xs:
        raise Exception("theano.tensor.stack(tensors, axis) must have at least one parameter")
    xs = promoted([as_tensor_variable(x) for x in xs])
    return library("stack", *xs, axis=int(axis))


stacklists = as_tensor_variable


def vertical_stack(*xs):
    return join(0, *xs)


def horizontal_stack(*xs):
    return join(1, *xs)


def split(x, splits_size, n_splits=None, axis=0):
    sizes = [int(s) for s in (splits_size.data if isinstance(splits_size, Constant) else splits_size)]
    return Library("split", "sizes=%s, axis=%d" % (sizes, axis), len(sizes))(x)


def tile(x, reps, ndim=None):
    reps = [reps] if isinstance(reps, (int, np.integer)) else list(reps)
    x = as_tensor_variable(x)
    if [r for r in reps if isinstance(r, Variable)]:
        raise TypeError("tile: the repeats must be known when the graph is built")
    return library("tile", x, reps=[1] * builtin_max(0, (ndim or x.ndim) - len(reps)) + [int(r) for r in reps])


def repeat(x, repeats, axis=None):
    x = as_tensor_variable(x)
    if isinstance(repeats, Constant) and repeats.ndim == 0:
        repeats = int(repeats.data)
    return Library("repeat", "axis=%s" % axis)(x, cast(as_tensor_variable(repeats), "int64"))


# ---- from sizes

def alloc(value, *shape):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    return Library("alloc")(value, shape_vector(shape))


class Alloc:
    def __call__(self, value, *shape):
        return alloc(value, *shape)


def zeros(shape, dtype=None):
    return alloc(constant(0, dtype=dtype or config.floatX), *(shape if isinstance(shape, (list, tuple)) else [shape]))


def ones(shape, dtype=None):
    return alloc(constant(1, dtype=dtype or config.floatX), *(shape if isinstance(shape, (list, tuple)) else [shape]))


def zeros_like(x, dtype=None, opt=False):
    return fill(x, constant(0, dtype=dtype or as_tensor_variable(x).dtype))


def ones_like(x, dtype=None, opt=False):
    return fill(x, constant(1, dtype=dtype or as_tensor_variable(x).dtype))


def fill(a, b):
    return Library("second")(a, b)


second = fill


def arange(start, stop=None, step=1, dtype=None):
    if stop is None:
        start, stop = 0, start
    xs = [as_tensor_variable(x) for x in (start, stop, step)]
    if dtype is None:
        dtype = upcast(*[x.dtype for x in xs])
        dtype = {"i": "int64", "b": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
    meet = upcast(dtype, *[x.dtype for x in xs]) if dtype.startswith("float") else "int64"
    return library("arange", *[cast(x, meet) for x in xs], dtype=dtype)


def eye(n, m=None, k=0, dtype=None):
    m = n if m is None else m
    ns = [cast(as_tensor_variable(v), "int64") for v in (n, m)]
    rows, columns = arange(ns[0]).dimshuffle(0, "x"), arange(ns[1])
    return cast(names["eq"](rows + k, columns), dtype or config.floatX)


def identity_like(x):
    x = as_tensor_variable(x)
    return eye(x.shape[0], x.shape[1], k=0, dtype=x.dtype)


def tri(n, m=None, k=0, dtype=None):
    rows, columns = arange(n).dimshuffle(0, "x"), arange(n if m is None else m)
    return cast(rows + k >= columns, dtype or config.floatX)


def triangle(op):
    def part(x, k=0):
        return library(op, x, k=k)
    part.__name__ = op
    return part


tril, triu = triangle("tril"), triangle("triu")


def take(a, indices, axis=None, mode="raise"):
    return library("take", a, cast(as_tensor_variable(indices), "int64"), axis=axis, mode=mode)


def choose(a, choices, out=None, mode="raise"):
    """Element by element that of one of choices: a list, or the parts of a tensor along its first axis."""
    if not isinstance(choices, (list, tuple)):
        choices = list(as_tensor_variable(choices))
    return library("choose", cast(as_tensor_variable(a), "int64"), *promoted([as_tensor_variable(c) for c in choices]), mode=mode)


def count_of(kth):
    return int(kth.data) if isinstance(kth, Constant) else kth


def topk(x, kth, axis=-1, sorted=True, idx_dtype="int64"):
    return library("topk", x, k=count_of(kth), axis=axis)


def argtopk(x, kth, axis=-1, sorted=True, idx_dtype="int64"):
    return cast(library("argtopk", x, k=count_of(kth), axis=axis), idx_dtype)


def topk_and_argtopk(x, kth, axis=-1, sorted=True, idx_dtype="int64"):
    values, at = Library("topk_and_argtopk", attributes({"k": count_of(kth), "axis": axis}), 2)(x)
    return [values, cast(at, idx_dtype)]


class Grid:
    """mgrid[0:3, 0:4], ogrid[...]: a tensor for each slice, of numbers along its axis."""

    def __init__(self, op):
        self.op = op

    def __getitem__(self, slices):
        slices = slices if isinstance(slices, tuple) else (slices,)
        lines = promoted([arange(s.start or 0, s.stop, 1 if s.step is None else s.step) for s in slices])
        made = Library(self.op, "", len(lines))(*lines)
        return made if len(lines) > 1 else [made]


mgrid, ogrid = Grid("mgrid"), Grid("ogrid")


def nonzero(x, return_matrix=False):
    x = as_tensor_variable(x)
    found = Library("nonzero", "", x.ndim)(x)
    found = found if isinstance(found, list) else [found]
    return stack(found) if return_matrix else tuple(found)


# ---- products

def dot(a, b):
    if hasattr(a, "__dot__") and not isinstance(a, operators):
        return a.__dot__(b)
    a, b = promoted([as_tensor_variable(a), as_tensor_variable(b)])
    return Library("dot")(a, b)


def tensordot(a, b, axes=2):
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if isinstance(axes, (int, np.integer)):
        return Library("tensordot", "axes=[%d]" % axes)(a, b)
    left, right = [[int(v) for v in np.atleast_1d(x)] for x in axes]
    return Library("tensordot", "axes=%s, axes_b=%s" % (left, right))(a, b)


# ---- more: Theano's name, and the op with the names of its attributes

CALLS = """
all_close allclose rtol atol | allclose allclose rtol atol | isclose isclose rtol atol | outer outer
batched_dot batched_dot | batched_tensordot tensordot axes | inverse_permutation inverse_permutation
permute_row_elements permute_row_elements | flatnonzero flatnonzero | nonzero_values nonzero_values
sort sort axis | argsort argsort axis | compress compress axis
cumsum cumsum axis | cumprod cumprod axis | to_one_hot to_one_hot n* dtype | unique unique
fill_diagonal fill_diagonal | bartlett bartlett | ceil_intdiv ceil_intdiv | logsoftmax logsoftmax
"""


def call(op, *parameters):
    """A function whose first arguments are tensors, followed by attributes of these names; name* is a tensor too."""
    more = [p[:-1] for p in parameters if p.endswith("*")]
    parameters = [p.rstrip("*") for p in parameters]

    def f(*args, **given):
        tensors = [a for a in args if isinstance(a, (Variable, np.ndarray, list))]
        rest = args[len(tensors):]
        while len(rest) > len(parameters):
            tensors.append(rest[0])
            rest = rest[1:]
        given.update(zip(parameters, rest))
        given = {k: v for k, v in given.items() if v is not None or k == "axis"}
        unknown = set(given) - set(parameters)
        if unknown:
            raise TypeError("%s has no argument %s" % (op, ", ".join(unknown)))
        tensors += [given.pop(m) for m in more if m in given]
        return library(op, *tensors, **given)
    f.__name__ = op
    return f


for row in CALLS.replace("\n", "|").split("|"):
    words = row.split()
    if words and words[0] not in globals():
        names[words[0]] = globals()[words[0]] = call(*words[1:])


def diag(x, k=0):
    """The k-th diagonal of a matrix, or a matrix with a vector on its diagonal."""
    x = as_tensor_variable(x)
    if x.ndim == 1:
        n = x.shape[0] + builtins.abs(k)
        at = arange(x.shape[0])
        return set_subtensor(zeros((n, n), x.dtype)[at + builtin_max(-k, 0), at + builtin_max(k, 0)], x)
    if x.ndim != 2:
        raise ValueError("Input must be 1- or 2-d.")
    n = names["minimum"](x.shape[0] - builtin_max(-k, 0), x.shape[1] - builtin_max(k, 0))
    return x[arange(n) + builtin_max(-k, 0), arange(n) + builtin_max(k, 0)]


alloc_diag = extract_diag = diag


def trace(x):
    return sum(diag(x))


def divmod(x, y):
    return names["int_div"](x, y), names["mod"](x, y)


# ---- setting parts

def update_part(part, y, name):
    source = part.owner.op.part_of(part) if hasattr(part.owner and part.owner.op, "part_of") else None
    if source is None:
        raise TypeError("set_subtensor and inc_subtensor take a part of a variable, such as x[2:], not %s" % part)
    x, op, index = source
    y = as_tensor_variable(y)
    if y.ndim > part.ndim:
        raise TypeError("Trying to increment a %d-dimensional subtensor with a %d-dimensional value."
                        % (part.ndim, y.ndim))
    return SetPart(name, op.attributes)(x, cast(y, x.dtype), *index)


def set_subtensor(x, y, inplace=False, tolerate_inplace_aliasing=False):
    return update_part(x, y, "set_subtensor")


def inc_subtensor(x, y, inplace=False, set_instead_of_inc=False, tolerate_inplace_aliasing=False):
    return update_part(x, y, "set_subtensor" if set_instead_of_inc else "inc_subtensor")


import builtins  # noqa: E402
builtin_max = builtins.max
__all__ = [n for n in globals() if not n.startswith("_")]

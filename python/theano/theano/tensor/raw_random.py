"""Draws from NumPy's RandomState: each takes a state and gives the state after it, and the numbers.

In the graph a state is a vector of uint32: the 624 words of MT19937, the position among them, and the number that the
normal distribution keeps, if there is one.  A draw is an op in Python; it runs on the host, on every device.
"""
import threading

import numpy as np

from ..config import config
from ..core import (Apply, Constant, Op, TensorType, TensorVariable, Variable, as_tensor_variable, graph, leaf, library, missing,
                    upcast)
from . import basic as T

KEYS = 624
WORDS = KEYS + 4


def words_of(state):
    """A RandomState as a vector."""
    _, keys, position, kept, number = state.get_state()
    number = np.array([number if kept else 0.], "float64").view("uint32")
    return np.concatenate([keys, np.array([position, kept], "uint32"), number]).astype("uint32")


def load(state, words):
    """Gives a RandomState the value of a vector."""
    position, kept = int(words[KEYS]), int(words[KEYS + 1])
    state.set_state(("MT19937", words[:KEYS], position, kept, float(words[KEYS + 2:].copy().view("float64")[0])))
    return state


class RandomStateType(TensorType):
    """The type of states."""

    def __init__(self):
        TensorType.__init__(self, "uint32", (False,), "RandomStateType")

    def __call__(self, name=None):
        g = graph()
        v = leaf(TensorVariable, g.input(g.free_name(name or "random_state"), self.dtype, [WORDS]), name)
        v._type = self
        return v

    make_variable = __call__

    def filter(self, data, strict=False, allow_downcast=None):
        if isinstance(data, np.random.RandomState):
            return words_of(data)
        if isinstance(data, np.ndarray) and data.dtype == np.uint32 and data.shape == (WORDS,):
            return data
        raise TypeError("expected a numpy.random.RandomState, not a %s" % type(data).__name__)

    def values_eq(self, a, b):
        return np.array_equal(self.filter(a), self.filter(b))


random_state_type = RandomStateType()
scratch = threading.local()


class RandomFunction(Op):
    """Draws by a method of RandomState, or a function of one: its last argument is the shape of the result."""
    __props__ = ("fn", "outtype", "known")

    def __init__(self, fn, outtype, inplace=False, ndim_added=0, known=None):
        if ndim_added:
            raise NotImplementedError("RandomFunction: ndim_added")
        self.fn, self.outtype, self.inplace, self.known = fn, outtype, inplace, known
        self.destroy_map = {0: [0]} if inplace else {}  # as Theano says it; states are never written over here

    def __call__(self, r, shape, *args):
        args = [as_tensor_variable(a) for a in args]
        return drawn(r, self.fn, self.outtype.dtype, sizes_of(self.outtype.ndim, shape, args), args)

    def __str__(self):
        return "RandomFunction{%s}" % getattr(self.fn, "__name__", self.fn)

    __repr__ = __str__


class Draw(RandomFunction):
    """A draw of a known shape; without one, of the shape of the input after the state."""
    __call__ = Op.__call__

    def make_node(self, r, *inputs):
        return Apply(self, [r] + list(inputs), [random_state_type(), self.outtype()])

    def infer_shape(self, node, shapes):
        return [(WORDS,), shapes[1] if self.known is None else self.known]

    def perform(self, node, inputs, outputs):
        if not hasattr(scratch, "state"):
            scratch.state = np.random.RandomState(0)
        r = load(scratch.state, inputs[0])
        shape, args = (inputs[1].shape, inputs[2:]) if self.known is None else (self.known, inputs[1:])
        fn = getattr(np.random.RandomState, self.fn) if isinstance(self.fn, str) else self.fn
        outputs[1][0] = fn(r, *args, shape)
        outputs[0][0] = words_of(r)


def drawn(r, fn, dtype, sizes, args):
    """The state after a draw, and the numbers."""
    known = tuple(sizes) if all(isinstance(s, int) for s in sizes) else None
    outtype = TensorType(dtype, [isinstance(s, int) and s == 1 for s in sizes])
    like = [] if known is not None else [T.alloc(np.int8(0), *sizes)]
    return Draw(fn, outtype, known=known)(r, *(like + list(args)))


# ---- shapes

def size_of_axis(axis, ndim, args):
    """The size of an axis of what arguments broadcast to."""
    reach = [a for a in args if axis >= ndim - a.ndim]
    if not reach:
        raise ValueError("a size of -1 is that of an argument, and none has that axis")
    for a in reach:
        k = axis + a.ndim - ndim
        if not a.broadcastable[k]:
            known = a._node.dims[k]
            return int(known) if known >= 0 else a.shape[k]
    return 1


def entries_of(size, ndim):
    """Sizes as a list of whole numbers and variables."""
    if isinstance(size, Constant):
        size = size.data.tolist()
    if isinstance(size, Variable) and size.ndim == 1:
        known = size._node.dims[0]
        if known < 0 and ndim is None:
            raise ValueError("the length of size is not known: give ndim")
        if known < 0:
            known, size = ndim, library("specify_shape", size, sizes=[ndim])
        return [size[i] for i in range(known)]
    listed = [size] if isinstance(size, (Variable, int, np.integer)) else list(size)
    listed = [s.data if isinstance(s, Constant) else s for s in listed]
    for s in listed:
        if np.dtype(s.dtype if hasattr(s, "dtype") else type(s)).kind not in "iu":
            raise TypeError("shape must be an integer vector or list", size)
    return [s if isinstance(s, Variable) else int(s) for s in listed]


def sizes_of(ndim, size, args):
    """The shape of a draw: size, or without one that of the arguments."""
    widest = max([a.ndim for a in args] + [0])
    if size is None:
        if not args:
            raise TypeError("cannot infer shape without either size or arguments")
        size, ndim = (-1,) * widest, widest
    entries = entries_of(size, ndim)
    if ndim is not None and len(entries) != ndim:
        raise ValueError("ndim should be equal to len(size), but ndim = %d, size = %s" % (ndim, size))
    if widest > len(entries):
        raise ValueError("ndim should be at least as big as required by args value", (len(entries), widest), args)
    for s in entries:
        if isinstance(s, int) and s < -1:
            raise ValueError("negative shape", s)
    return [size_of_axis(i, len(entries), args) if isinstance(s, int) and s == -1 else s for i, s in enumerate(entries)]


# ---- distributions

def real_dtype(dtype, *args):
    return dtype if dtype not in (None, "floatX") else upcast(config.floatX, *[a.dtype for a in args])


def uniform(random_state, size=None, low=0.0, high=1.0, ndim=None, dtype=None):
    args = [as_tensor_variable(low), as_tensor_variable(high)]
    return drawn(random_state, "uniform", real_dtype(dtype, *args), sizes_of(ndim, size, args), args)


def normal(random_state, size=None, avg=0.0, std=1.0, ndim=None, dtype=None):
    args = [as_tensor_variable(avg), as_tensor_variable(std)]
    return drawn(random_state, "normal", real_dtype(dtype, *args), sizes_of(ndim, size, args), args)


def binomial(random_state, size=None, n=1, p=0.5, ndim=None, dtype="int64", prob=None):
    args = [as_tensor_variable(n), as_tensor_variable(p if prob is None else prob)]
    return drawn(random_state, "binomial", dtype, sizes_of(ndim, size, args), args)


def poisson(random_state, size=None, lam=1.0, ndim=None, dtype="int64"):
    lam = as_tensor_variable(lam)
    return drawn(random_state, "poisson", dtype, sizes_of(ndim, size, []), [lam])


def random_integers_helper(random_state, low, high, size):
    """Both limits are drawn."""
    return random_state.randint(np.asarray(low, "int64"), np.asarray(high, "int64") + 1, size, "int64")


def random_integers(random_state, size=None, low=0, high=1, ndim=None, dtype="int64"):
    args = [as_tensor_variable(low), as_tensor_variable(high)]
    return drawn(random_state, random_integers_helper, dtype, sizes_of(ndim, size, args), args)


def choice_helper(random_state, a, replace, p, size):
    """No probabilities are an empty vector."""
    return random_state.choice(a if a.ndim else int(a), size, bool(replace), p if p.size else None)


def choice(random_state, size=None, a=2, replace=True, p=None, ndim=None, dtype="int64"):
    args = [as_tensor_variable(a), as_tensor_variable(np.int8(replace) if isinstance(replace, bool) else replace),
            as_tensor_variable(np.zeros(0) if p is None or isinstance(p, int) and p == 0 else p)]
    if args[0].ndim > 1 or args[2].ndim != 1:
        raise ValueError("choice: a is a number or a vector, p a vector")
    return drawn(random_state, choice_helper, dtype, sizes_of(ndim, () if size is None else size, []), args)


def permutation_helper(random_state, n, shape):
    """A permutation of 0 to n - 1 in each row."""
    rows = [random_state.permutation(int(n)) for _ in range(int(np.prod(shape[:-1], dtype="int64")))]
    return np.array(rows, "int64").reshape(shape)


def permutation(random_state, size=None, n=1, ndim=None, dtype="int64"):
    n = as_tensor_variable(n)
    if n.ndim:
        raise TypeError("permutation: n is a number")
    one = size is None or isinstance(size, (tuple, list)) and not len(size)
    if one and ndim not in (None, 1):
        raise TypeError("You asked for just one permutation but asked for more then 1 dimensions.")
    sizes = [] if one else sizes_of(ndim, size, [])
    return drawn(random_state, permutation_helper, dtype, sizes + entries_of(n, None), [n])


def multinomial_helper(random_state, n, pvals, shape):
    """One row after another.  Rows whose sum is a little above 1, or whose last number is next to 0, are made smaller, as
    Theano does: NumPy takes no sum above 1."""
    n, pvals = np.broadcast_to(n, shape[:-1]), np.broadcast_to(pvals, shape)
    out = np.empty(shape, "int64")
    for at in np.ndindex(*shape[:-1]):
        row = pvals[at]
        if 1.0 < row.sum() < 1.0 + 1e-5 or row[-1] < 5e-5:
            row = row * (1.0 - 5e-5)
        out[at] = random_state.multinomial(int(n[at]), row.astype("float64"))
    return out


def multinomial(random_state, size=None, n=1, pvals=(0.5, 0.5), ndim=None, dtype="int64"):
    n, pvals = as_tensor_variable(n), as_tensor_variable(pvals)
    sizes = sizes_of(ndim, size, [n, pvals[..., 0]]) + [size_of_axis(pvals.ndim - 1, pvals.ndim, [pvals])]
    return drawn(random_state, multinomial_helper, dtype, sizes, [n, pvals])


# ---- streams

class RandomStreamsBase:
    """The distributions as methods: gen(distribution, ...) chooses the state."""

    def shuffle_row_elements(self, input):
        """Each row in an order of its own; .permutation of the result has the orders."""
        input = as_tensor_variable(input)
        shape = [size_of_axis(i, input.ndim, [input]) for i in range(input.ndim)]
        order = self.permutation(shape[:-1], shape[-1])
        shuffled = T.permute_row_elements(input, order)
        shuffled.permutation = order
        return shuffled


def method(distribution):
    def draw(self, *args, **given):
        return self.gen(distribution, *args, **given)
    draw.__name__ = distribution.__name__
    return draw


for distribution in (uniform, normal, binomial, poisson, random_integers, choice, permutation, multinomial):
    setattr(RandomStreamsBase, distribution.__name__, method(distribution))

__getattr__ = missing("theano.tensor.raw_random")

"""Streams of random numbers: MRG31k3p's, bit for bit as Theano draws them, and the library's own counter-based ones.

MRG31k3p (L'Ecuyer and Touzin, 2000) combines two recurrences of order three:

    x[n] = 2^22 x[n-2] + (2^7 + 1) x[n-3] mod M1      y[n] = 2^15 y[n-1] + (2^15 + 1) y[n-3] mod M2

and gives x - y mod M1, scaled.  A draw has a matrix of states, one row (x, x, x, y, y, y) for each stream: rows lie 2^72
numbers apart, draws 2^134.  Element i of a draw comes from stream i % rows.
"""
import numpy as np

from ..core import Variable, as_tensor_variable, graph, library, missing
from ..config import config
from ..sharedvar import TensorSharedVariable, shared
from ..tensor import basic as T
from ..tensor.basic import cast, dimshuffle, names, shape_vector


class Streams:
    """Each call of a method is another stream, which goes on from call to call of a function."""

    def __init__(self, seed=12345, use_cuda=None):
        self.state_updates = []
        self.seed(seed)

    def seed(self, seed=None):
        seed = 12345 if seed is None else seed
        first = int(np.atleast_1d(seed)[0])
        g = graph()
        if getattr(self, "_state", None) is not None:  # streams that were made go on from the new seed
            fresh = g.random(g.free_name("random"), first)
            self._state._shared.set(fresh.get())
            return
        s = g.random(g.free_name("random"), first)
        self._state = TensorSharedVariable(g.shared_node(s), name=s.name)
        self._state._shared = s
        g.known[self._state._node.id] = self._state

    def _draw(self, op, inputs, **given):
        dtype = given.pop("dtype", None)
        given["dtype"] = config.floatX if dtype in (None, "floatX") else str(np.dtype(dtype))
        out = library(op, self._state, *inputs, **given)
        out.rng, out.update = self._state, None
        return out

    def _size(self, size, ndim, *parameters):
        if size is None:
            shapes = [as_tensor_variable(p) for p in parameters]
            widest = max(shapes, key=lambda p: p.ndim)
            return widest.shape
        if ndim is not None and isinstance(size, Variable) and size._node.dims[0] < 0:
            return library("specify_shape", shape_vector(size), sizes=[ndim])
        return shape_vector(size)

    def uniform(self, size=None, low=0.0, high=1.0, ndim=None, dtype=None, nstreams=None):
        dtype = dtype or float_dtype(low, high)
        u = self._draw("random_uniform", [self._size(size, ndim, low, high)], dtype=dtype)
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low == 0 and high == 1:
            return u
        low, high = [cast(as_tensor_variable(v), u.dtype) for v in (low, high)]
        return u * (high - low) + low

    def normal(self, size=None, avg=0.0, std=1.0, ndim=None, dtype=None, nstreams=None):
        dtype = dtype or float_dtype(avg, std)
        z = self._draw("normal", [self._size(size, ndim, avg, std)], dtype=dtype)
        avg, std = [cast(as_tensor_variable(v), z.dtype) for v in (avg, std)]
        return z * std + avg

    def binomial(self, size=None, n=1, p=0.5, ndim=None, dtype="int64", nstreams=None, prob=None):
        if n != 1:
            raise NotImplementedError("binomial: n must be 1")
        p = as_tensor_variable(p if prob is None else prob)
        p = cast(p, config.floatX) if p.dtype.startswith(("int", "uint")) else p
        u = self._draw("random_uniform", [self._size(size, ndim, p)], dtype=p.dtype)
        return cast(u < p, dtype)

    def multinomial(self, size=None, n=1, pvals=None, ndim=None, dtype="int64", nstreams=None):
        if n != 1:
            raise NotImplementedError("multinomial: n must be 1")
        if pvals is None:
            raise TypeError("You have to specify pvals")
        if size is not None and not isinstance(size, Variable) and [s for s in np.atleast_1d(size) if s != 1] and \
                as_tensor_variable(pvals).ndim > 1:
            raise NotImplementedError("multinomial: size and a matrix of probabilities")
        pvals = as_tensor_variable(pvals)
        one = pvals.ndim == 1
        r = self._draw("multinomial", [dimshuffle(pvals, "x", 0) if one else pvals], dtype=dtype)
        return r[0] if one else r

    def permutation(self, size=None, n=1, ndim=None, dtype="int64"):
        if size not in (None, (), []):
            raise NotImplementedError("permutation: size")
        return cast(library("permutation", self._state, cast(as_tensor_variable(n), "int64")), dtype)

    def random_integers(self, size=None, low=0, high=1, ndim=None, dtype="int64", prob=None):
        return self._draw("random_integers", [self._size(size, ndim, low, high), as_tensor_variable(low),
                                              as_tensor_variable(high)], dtype=dtype)

    def choice(self, size=1, a=2, replace=True, p=None, ndim=None, dtype="int64", nstreams=None):
        if not replace or p is not None:
            raise NotImplementedError("choice: without replacement, or with probabilities")
        if not isinstance(a, (int, np.integer)):
            raise NotImplementedError("choice: a must be a number")
        return self.random_integers(size, 0, a - 1, dtype=dtype)

    def shuffle_row_elements(self, input):
        input = as_tensor_variable(input)
        return library("permute_row_elements", input, self.permutation(n=input.shape[input.ndim - 1]))

    def updates(self):
        return []


def float_dtype(*parameters):
    known = [p.dtype for p in parameters if hasattr(p, "dtype") and np.dtype(p.dtype).kind == "f"]
    return str(np.result_type(config.floatX, *known)) if known else config.floatX


M1, M2 = 2 ** 31 - 1, 2 ** 31 - 21069
A1 = [[0, 1 << 22, (1 << 7) + 1], [1, 0, 0], [0, 1, 0]]
A2 = [[1 << 15, 0, (1 << 15) + 1], [1, 0, 0], [0, 1, 0]]
MOST_STREAMS = 60 * 256
# What makes whole numbers fractions: the largest factors with which none becomes 1.
NORM = {"float64": 4.656612873077392578125e-10, "float32": 4.6566126e-10}


def power(a, n, m):
    """The matrix a to the n-th power modulo m, in whole numbers of Python."""
    def times(p, q):
        return [[sum(p[i][k] * q[k][j] for k in range(3)) % m for j in range(3)] for i in range(3)]
    out = [[int(i == j) for j in range(3)] for i in range(3)]
    for bit in bin(n)[2:]:
        out = times(out, out)
        out = times(out, a) if bit == "1" else out
    return out


def ahead(states, n):
    """Rows of states, n numbers further on."""
    def move(a, x, m):
        return (np.array(power(a, n, m), "int64") * x[:, None, :] % m).sum(2) % m
    states = np.asarray(states, "int64")
    return np.concatenate([move(A1, states[:, :3], M1), move(A2, states[:, 3:], M2)], axis=1).astype("int32")


def guess_n_streams(size, warn=False):
    """As many as Theano takes for a size."""
    if isinstance(size, (tuple, list)) and all(isinstance(i, (int, np.integer)) for i in size):
        n = int(np.prod(size, dtype="int64"))
        return min(n // 6 if n > 6 else n, MOST_STREAMS)
    return MOST_STREAMS


def mrg_uniform(state, n, dtype):
    """n numbers from the rows of state, and the rows after that."""
    from ..scan_module import scan
    rows = state.shape[0]
    where, number = names["switch"], T.arange(rows)

    def below(v, m):
        return where(v >= m, v - m, v)

    def turned(v, low, high, place):
        """v times a power of two modulo 2^31 - 1: its 31 bits, turned round."""
        return (v % low) * high + v // place

    def step(t, x1, x2, x3, y1, y2, y3, n):
        x = below(below(turned(x2, 1 << 9, 1 << 22, 1 << 9) + turned(x3, 1 << 24, 1 << 7, 1 << 24), M1) + x3, M1)
        a, b = [below((v % 65536) * 32768 + 21069 * (v // 65536), M2) for v in (y1, y3)]
        y = below(below(b + y3, M2) + a, M2)
        d = where(x <= y, x - y + M1, x - y)
        drawn = t * rows + number < n
        new = [where(drawn, v, old) for v, old in zip((x, x1, x2, y, y1, y2), (x1, x2, x3, y1, y2, y3))]
        return new + [library("mul", cast(d, dtype), as_tensor_variable(np.asarray(NORM[dtype], dtype)))]

    steps = names["maximum"]((n + rows - 1) // rows, 1)
    states, _ = scan(step, T.arange(steps), [cast(state[:, k], "int64") for k in range(6)] + [None], [n])
    after = T.stack([v[-1] for v in states[:6]], axis=1)
    return states[6].flatten()[:n], cast(after, "int32")


class MRG_RandomStreams(Streams):
    """MRG31k3p: each call of a method is a draw with a state of its own, which goes on from call to call of a function."""

    def __init__(self, seed=12345, use_cuda=None):
        self.default_instance_seed = 12345 if seed is None else seed
        Streams.__init__(self, self.default_instance_seed)

    def seed(self, seed=None):
        seed = self.default_instance_seed if seed is None else seed
        self.set_rstate(seed)
        Streams.seed(self, seed)
        for old, new, size, nstreams in self.state_updates:
            old.set_value(self.get_substream_rstates(guess_n_streams(size) if nstreams is None else nstreams))

    def set_rstate(self, seed):
        if isinstance(seed, (int, np.integer)):
            if seed == 0:
                raise ValueError("seed should not be 0", seed)
            seed = [seed] * 6
        elif len(seed) != 6:
            raise TypeError("seed should be 1 integer or 6 integers")
        for part, m in ((seed[:3], M1), (seed[3:], M2)):
            if not any(part):
                raise ValueError("neither the first nor the last 3 values of seed should be all 0", seed)
            if any(not 0 <= v < m for v in part):
                raise ValueError("seed should be less than %d" % m, seed)
        self.rstate = np.array(seed, "int32")

    def inc_rstate(self):
        self.rstate = ahead(self.rstate[None], 1 << 134)[0]

    def get_substream_rstates(self, n_streams, dtype=None, inc_rstate=True):
        rows = self.rstate[None]
        while len(rows) < n_streams:  # twice as many, from those that are there
            rows = np.concatenate([rows, ahead(rows, len(rows) << 72)])[:n_streams]
        if inc_rstate:
            self.inc_rstate()
        return rows

    def n_streams(self, size):
        return guess_n_streams(size)

    def updates(self):
        return [pair[:2] for pair in self.state_updates]

    def uniform(self, size, low=0.0, high=1.0, ndim=None, dtype=None, nstreams=None):
        dtype = str(np.dtype(dtype if dtype not in (None, "floatX") else float_dtype(low, high)))
        if isinstance(size, (tuple, list)):
            if any(isinstance(i, (int, np.integer)) and i <= 0 for i in size):
                raise ValueError("The specified size contains a dimension with value <= 0", size)
        elif not (isinstance(size, Variable) and size.ndim == 1):
            raise TypeError("size must be a tuple of int or a Theano Variable with 1 dimension, got %s of type %s"
                            % (size, type(size)))
        state = shared(self.get_substream_rstates(guess_n_streams(size) if nstreams is None else nstreams),
                       broadcastable=(False, False))
        state.tag.is_rng = True
        shape = self._size(size, ndim)
        flat, after = mrg_uniform(state, T.prod(shape), dtype if dtype in NORM else "float32")
        u = cast(flat.reshape(shape, ndim=ndim), dtype)
        state.default_update = after
        self.state_updates.append((state, after, size, nstreams))
        if not (isinstance(low, (int, float)) and isinstance(high, (int, float)) and low == 0 and high == 1):
            low, high = [cast(as_tensor_variable(v), dtype) for v in (low, high)]
            u = u * (high - low) + low
        u.rstate, u.update = state, (state, after)
        return u

    def binomial(self, size=None, n=1, p=0.5, ndim=None, dtype="int64", nstreams=None, prob=None):
        if n != 1:
            raise NotImplementedError("MRG_RandomStreams.binomial with n > 1")
        p = as_tensor_variable(p if prob is None else prob)
        return cast(self.uniform(p.shape if size is None else size, ndim=ndim, nstreams=nstreams) < p, dtype)

    def multinomial(self, size=None, n=1, pvals=None, ndim=None, dtype="int64", nstreams=None):
        if n != 1 or pvals is not None and as_tensor_variable(pvals).ndim != 2:
            return Streams.multinomial(self, size, n, pvals, ndim, dtype, nstreams)
        if pvals is None:
            raise TypeError("You have to specify pvals")
        pvals = as_tensor_variable(pvals)
        u = self.uniform((pvals.shape[0],), nstreams=nstreams)
        sums = library("cumsum", pvals, axis=1)
        first = T.sum(cast(sums <= dimshuffle(u, 0, "x"), "int64"), axis=1)
        return cast(names["eq"](dimshuffle(T.arange(pvals.shape[1]), "x", 0), dimshuffle(first, 0, "x")), dtype)

    def normal(self, size, avg=0.0, std=1.0, ndim=None, dtype=None, nstreams=None):
        """Box and Muller's: the first half of an even number of uniform numbers with the second."""
        dtype = str(np.dtype(dtype if dtype not in (None, "floatX") else float_dtype(avg, std)))
        if isinstance(size, (tuple, list)) and all(isinstance(i, (int, np.integer)) for i in size):
            n = int(np.prod(size, dtype="int64"))
            u = self.uniform((n + n % 2,), dtype=dtype, nstreams=nstreams)
            half = (n + n % 2) // 2
        else:
            n = T.prod(self._size(size, ndim))
            u = self.uniform((n + n % 2,), dtype=dtype, nstreams=nstreams)
            half = u.shape[0] // 2
        radius = names["sqrt"](-2.0 * names["log"](u[:half]))
        angle = as_tensor_variable(np.array(2.0 * np.pi, dtype)) * u[half:]
        z = T.join(0, radius * names["cos"](angle), radius * names["sin"](angle))[:n]
        shape = self._size(size, ndim)
        z = z.reshape(shape, ndim=ndim)
        avg, std = [cast(as_tensor_variable(v), dtype) for v in (avg, std)]
        return cast(avg + std * z, dtype)


RandomStreams = MRG_RandomStreams
__getattr__ = missing("theano.sandbox.rng_mrg")

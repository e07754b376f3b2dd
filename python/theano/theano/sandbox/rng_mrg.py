"""Streams of random numbers.  The library's are counter-based: other numbers than MRG31k3p's, the same everywhere."""
import numpy as np

from ..core import Variable, as_tensor_variable, graph, library, missing
from ..config import config
from ..sharedvar import TensorSharedVariable
from ..tensor.basic import cast, dimshuffle, shape_vector


class MRG_RandomStreams:
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


RandomStreams = MRG_RandomStreams
__getattr__ = missing("theano.sandbox.rng_mrg")

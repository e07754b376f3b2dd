"""Helpers of tests: seeds, comparisons, gradients against finite differences."""
import unittest

import numpy as np

from .. import gradient
from ..config import config
from ..core import missing


def fetch_seed(pseed=None):
    """The seed of a test: pseed, or else 666, as Theano's flag unittests.rseed has it."""
    return 666 if pseed is None else int(pseed)


def seed_rng(pseed=None):
    seed = fetch_seed(pseed)
    np.random.seed(seed)
    return seed


def verify_grad(op, pt, n_tests=2, rng=None, *args, **kwargs):
    if rng is None:
        seed_rng()
        rng = np.random
    return gradient.verify_grad(op, pt, n_tests, rng, *args, **kwargs)


def assert_allclose(expected, value, rtol=None, atol=None):
    single = "float32" in (str(getattr(v, "dtype", config.floatX)) for v in (expected, value))
    np.testing.assert_allclose(value, expected, rtol=rtol or (1e-4 if single else 1e-6), atol=atol or (1e-5 if single else 1e-8))


class InferShapeTester(unittest.TestCase):
    """Tests of the sizes that ops say their results have."""

    def setUp(self):
        seed_rng()

    def _compile_and_check(self, inputs, outputs, numeric_inputs, cls, excluding=None, warn=True, check_topo=True):
        from ..compile import function
        values = function(inputs, outputs, on_unused_input="ignore")(*numeric_inputs)
        shapes = function(inputs, [o.shape for o in outputs], on_unused_input="ignore")(*numeric_inputs)
        for value, shape in zip(values, shapes):
            assert value.shape == tuple(shape), (value.shape, shape)


__getattr__ = missing("theano.tests.unittest_tools")

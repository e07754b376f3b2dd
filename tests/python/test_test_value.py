"""config.compute_test_value: ops are computed where they are written."""
import warnings

import numpy as np
import pytest

import theano
import theano.tensor as T

A = np.arange(6.).reshape(2, 3)


@pytest.fixture(autouse=True)
def raising():
    with theano.change_flags(compute_test_value="raise"):
        yield


def given(value, name=None):
    v = T.TensorType("float64", (False,) * np.ndim(value))(name)
    v.tag.test_value = value
    return v


def value(v):
    return theano.gof.test_value.get_test_value(v)


def test_values_follow_the_formula():
    x, w = given(A), theano.shared(np.ones((3, 2)))
    y = T.exp(x).dot(w).sum(axis=0) / 2
    np.testing.assert_allclose(value(y), np.exp(A).dot(np.ones((3, 2))).sum(0) / 2)
    np.testing.assert_array_equal(value(x[1:, ::2]), A[1:, ::2])
    g = T.grad((x ** 2).sum(), x)
    np.testing.assert_array_equal(value(g * 3), 6 * A)
    outputs, _ = theano.scan(lambda row, h: h + row.sum(), sequences=x, outputs_info=T.constant(0.))
    assert value(outputs).tolist() == [3, 15] and value(outputs[-1]) == 15


def test_a_mistake_of_sizes_is_found_where_it_is_written():
    x, y = given(A), given(np.ones((4, 2)))
    with pytest.raises(ValueError):
        T.dot(x, y)
    with pytest.raises(ValueError):
        x + y
    with theano.change_flags(compute_test_value="off"):
        T.dot(x, y)


def test_inputs_without_a_test_value():
    x = T.matrix("x")
    with pytest.raises(AttributeError, match="missing default value"):
        T.exp(x)
    with theano.change_flags(compute_test_value="ignore"):
        T.exp(x)
    with theano.change_flags(compute_test_value="warn"), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        T.exp(x)
    assert len(said) == 1 and "missing default value" in str(said[0].message)
    x.tag.test_value = np.ones(3)
    with pytest.raises(TypeError):
        T.exp(x)


def test_ops_in_python_and_updates():
    class Twice(theano.Op):
        __props__ = ()

        def make_node(self, x):
            x = T.as_tensor_variable(x)
            return theano.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] * 2

        def infer_shape(self, node, shapes):
            return shapes
    assert np.array_equal(value(Twice()(given(A)) + 1), 2 * A + 1)
    r = theano.sandbox.rng_mrg.MRG_RandomStreams(3)
    u = r.uniform((3, 2), nstreams=2)
    state = u.rstate.get_value()
    assert np.array_equal(value(u), theano.function([], u)()) and np.array_equal(state, r.__class__(3).get_substream_rstates(2))

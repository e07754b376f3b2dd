"""theano: values are compared with NumPy's."""
import copy
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import theano
import theano.tensor as T

R = np.random.RandomState(42)
A, B, V, W = R.rand(3, 4) + .5, R.rand(3, 4) + .5, R.rand(4) + .5, R.rand(4, 5)
I, C = np.array([2, 0, 1]), R.rand(2, 3, 4)
x, y, v, w, c = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.dmatrix("w"), T.dtensor3("c")
i, k, s = T.lvector("i"), T.lscalar("k"), T.dscalar("s")
VALUES = {x: A, y: B, v: V, w: W, c: C, i: I, k: 2, s: .7}


def value(e):
    used = [a for a in VALUES if a in theano.gof.graph.inputs([T.as_tensor_variable(e)])]
    return theano.function(used, e)(*[VALUES[a] for a in used])


def softmax(a):
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


CASES = {
    "operators": (lambda: (x + y) * 2 - x / y ** 2 + (-x) // 1 + abs(y - 1) + x % .3,
                  lambda: (A + B) * 2 - A / B ** 2 + (-A) // 1 + abs(B - 1) + A % .3),
    "reverse": (lambda: 2 - x + 1 / x + 2 ** x + 3 // x + 3 % x, lambda: 2 - A + 1 / A + 2 ** A + 3 // A + 3 % A),
    "compare": (lambda: T.stack([x > y, x <= y, T.eq(x, x), T.neq(x, y)]),
                lambda: np.stack([A > B, A <= B, A == A, A != B])),
    "broadcast": (lambda: x + v, lambda: A + V),
    "numpy on the left": (lambda: A + x * np.float64(2), lambda: A * 3),
    "functions of NumPy": (lambda: np.exp(x) + np.sqrt(y) * np.maximum(A, y) - np.subtract(A, x) + np.abs(-x),
                           lambda: np.exp(A) + np.sqrt(B) * np.maximum(A, B) + A),
    "elementwise": (lambda: T.exp(x) + T.log(x) + T.sqrt(x) + T.tanh(x) + T.sqr(x) + T.sgn(x) + T.inv(x) + T.erf(x),
                    lambda: np.exp(A) + np.log(A) + np.sqrt(A) + np.tanh(A) + A * A + 1 + 1 / A + value(T.erf(x))),
    "switch": (lambda: T.switch(x > 1, x, 0), lambda: np.where(A > 1, A, 0)),
    "clip": (lambda: x.clip(.6, 1), lambda: A.clip(.6, 1)),
    "maximum": (lambda: T.maximum(x, y) - T.minimum(x, 1), lambda: np.maximum(A, B) - np.minimum(A, 1)),
    "round": (lambda: T.round(x * 3) + T.floor(x) + T.ceil(x), lambda: np.round(A * 3) + np.floor(A) + np.ceil(A)),
    "sum": (lambda: x.sum(axis=0), lambda: A.sum(0)),
    "sum of several": (lambda: c.sum(axis=(0, 2)), lambda: C.sum((0, 2))),
    "mean": (lambda: T.mean(x, axis=1, keepdims=True), lambda: A.mean(1, keepdims=True)),
    "mean of truth": (lambda: T.mean(T.neq(i, 1)), lambda: np.mean(I != 1)),
    "var": (lambda: x.var(axis=0) + x.std(axis=0), lambda: A.var(0) + A.std(0)),
    "max": (lambda: x.max(axis=-1) - x.min(axis=-1), lambda: A.max(-1) - A.min(-1)),
    "argmax": (lambda: T.argmax(x, axis=1) + x.argmin(axis=1), lambda: A.argmax(1) + A.argmin(1)),
    "prod": (lambda: x.prod(axis=1), lambda: A.prod(1)),
    "any": (lambda: T.stack([(x > 1).any(axis=0), (x > .2).all(axis=0)]),
            lambda: np.stack([(A > 1).any(0), (A > .2).all(0)])),
    "norm": (lambda: v.norm(2), lambda: np.linalg.norm(V)),
    "cumsum": (lambda: x.cumsum(axis=1), lambda: A.cumsum(1)),
    "dot": (lambda: T.dot(x, w), lambda: A @ W),
    "dot of vectors": (lambda: v.dot(v), lambda: V @ V),
    "tensordot": (lambda: T.tensordot(c, w, axes=[[2], [0]]), lambda: np.tensordot(C, W, ([2], [0]))),
    "batched_dot": (lambda: T.batched_dot(c, c.dimshuffle(0, 2, 1)), lambda: C @ C.transpose(0, 2, 1)),
    "outer": (lambda: T.outer(v, v), lambda: np.outer(V, V)),
    "transpose": (lambda: c.transpose(2, 0, 1) + 0, lambda: C.transpose(2, 0, 1)),
    "dimshuffle": (lambda: x.dimshuffle(1, "x", 0), lambda: A.T[:, None, :]),
    "reshape": (lambda: x.reshape((x.shape[1], -1)), lambda: A.reshape(4, -1)),
    "flatten": (lambda: c.flatten(2), lambda: C.reshape(2, 12)),
    "swapaxes": (lambda: c.swapaxes(0, 2), lambda: C.swapaxes(0, 2)),
    "shape": (lambda: x.shape, lambda: np.array(A.shape)),
    "size": (lambda: x.size * 2, lambda: A.size * 2),
    "concatenate": (lambda: T.concatenate([x, y], axis=1), lambda: np.concatenate([A, B], 1)),
    "stack": (lambda: T.stack([x, y], axis=1), lambda: np.stack([A, B], 1)),
    "list": (lambda: T.as_tensor_variable([s, 2 * s]), lambda: np.array([.7, 1.4])),
    "join promotes": (lambda: T.join(0, i, v), lambda: np.concatenate([I, V])),
    "split": (lambda: T.split(x, [1, 3], 2, axis=1)[1], lambda: A[:, 1:]),
    "tile": (lambda: T.tile(v, (2, 2)), lambda: np.tile(V, (2, 2))),
    "repeat": (lambda: T.repeat(x, 2, axis=1), lambda: A.repeat(2, 1)),
    "roll": (lambda: T.roll(v, 1), lambda: np.roll(V, 1)),
    "arange": (lambda: T.arange(k, 9, 3), lambda: np.arange(2, 9, 3)),
    "eye": (lambda: T.eye(3, 4, 1), lambda: np.eye(3, 4, 1)),
    "zeros": (lambda: T.zeros((k, 3)) + T.ones((2, 3)) + T.zeros_like(w)[:2, :3], lambda: np.ones((2, 3))),
    "alloc": (lambda: T.alloc(v, 3, 4), lambda: np.broadcast_to(V, (3, 4))),
    "tril": (lambda: T.tril(x) + T.triu(x, 1), lambda: A),
    "index": (lambda: x[1, ::-1], lambda: A[1, ::-1]),
    "index by a variable": (lambda: x[k - 1, k:], lambda: A[1, 2:]),
    "index by a vector": (lambda: x[i, 1:], lambda: A[I, 1:]),
    "index by two": (lambda: x[T.arange(3), i], lambda: A[np.arange(3), I]),
    "index by a mask": (lambda: x[x > 1], lambda: A[A > 1]),
    "new axis": (lambda: x[:, None, ..., 0], lambda: A[:, None, ..., 0]),
    "index by a list": (lambda: x[[0, 2]], lambda: A[[0, 2]]),
    "index by a list of variables": (lambda: x[[k, k - 1]], lambda: A[[2, 1]]),
    "take": (lambda: T.take(x, i, axis=1) + x.take(0, axis=1).dimshuffle(0, "x"), lambda: A[:, I] + A[:, :1]),
    "set_subtensor": (lambda: T.set_subtensor(x[:, 1], v[:3]), lambda: np.c_[A[:, :1], V[:3], A[:, 2:]]),
    "inc_subtensor": (lambda: T.inc_subtensor(v[[0, 0, 1]], 1), lambda: V + [2, 1, 0, 0]),
    "inc_subtensor by a variable": (lambda: T.inc_subtensor(x[k], v), lambda: A + np.array([[0], [0], [1]]) * V),
    "nonzero": (lambda: T.nonzero(x > 1)[1], lambda: np.nonzero(A > 1)[1]),
    "sort": (lambda: T.sort(v) + v[T.argsort(v)], lambda: 2 * np.sort(V)),
    "cast": (lambda: T.cast(x * 9, "int32"), lambda: (A * 9).astype("int32")),
    "divmod": (lambda: T.stack(divmod(i, 2)), lambda: np.stack(divmod(I, 2))),
    "bits": (lambda: (i & 1) | (i ^ 2), lambda: (I & 1) | (I ^ 2)),
    "softmax": (lambda: T.nnet.softmax(x), lambda: softmax(A)),
    "sigmoid": (lambda: T.nnet.sigmoid(x) + T.nnet.softplus(x) + T.nnet.relu(x - 1, .1),
                lambda: 1 / (1 + np.exp(-A)) + np.log1p(np.exp(A)) + np.where(A > 1, A - 1, .1 * (A - 1))),
    "crossentropy": (lambda: T.nnet.categorical_crossentropy(T.nnet.softmax(x), i),
                     lambda: -np.log(softmax(A))[np.arange(3), I]),
    "one hot": (lambda: T.extra_ops.to_one_hot(i, 3), lambda: np.eye(3)[I]),
    "diff": (lambda: T.extra_ops.diff(v), lambda: np.diff(V)),
    "diag": (lambda: T.diag(x), lambda: np.diag(A)),
    "diag below": (lambda: T.diag(x, -1), lambda: np.diag(A, -1)),
    "diag of a vector": (lambda: T.diag(v, 1), lambda: np.diag(V, 1)),
    "trace": (lambda: T.nlinalg.trace(x), lambda: np.trace(A)),
    "bincount": (lambda: T.extra_ops.bincount(i[[0, 1, 1]], minlength=5), lambda: np.bincount(I[[0, 1, 1]], minlength=5)),
    "xlogx": (lambda: T.xlogx.xlogy0(v, v), lambda: V * np.log(V)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_value(name):
    ours, numpys = CASES[name]
    e = ours()
    got, want = value(e), numpys()
    assert got.shape == np.shape(want) and got.dtype == e.dtype and got.ndim == e.ndim
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("a, b, result", [
    ("int8", "int32", "int32"), ("int32", "float32", "float64"), ("int16", "float32", "float32"),
    ("float32", "float64", "float64"), ("uint8", "int8", "int16"), ("int64", "float32", "float64")])
def test_dtypes_meet_as_arrays_of_numpy_do(a, b, result):
    assert (T.TensorType(a, [False])() + T.TensorType(b, [False])()).dtype == result
    assert str(np.result_type(a, b)) == result


def test_literals_take_the_smallest_dtype():
    assert T.constant(3).dtype == "int8" and T.constant(300).dtype == "int16" and T.constant(.5).dtype == "float32"
    assert (T.fvector() * .5).dtype == "float32" and (T.fvector() + 300).dtype == "float32"
    assert (T.fvector() * .1).dtype == "float64"  # floatX is float64, and float32 does not hold 0.1
    with theano.config.change_flags(floatX="float32"):
        assert (T.fvector() * .1).dtype == "float32" and T.matrix().dtype == "float32"
    assert T.matrix().dtype == "float64"


def test_integers_divide_to_floatX_and_sum_to_int64():
    assert (i / 2).dtype == "float64" and (i // 2).dtype == "int64" and T.ivector().sum().dtype == "int64"
    assert T.exp(T.bvector()).dtype == "float32" and T.exp(T.ivector()).dtype == "float64"


def test_variables_say_what_they_are():
    z = T.dot(x, w)
    assert z.ndim == 2 and z.dtype == "float64" and z.broadcastable == (False, False)
    assert T.row().broadcastable == (True, False) and T.zeros((1, k)).broadcastable == (True, False)
    assert z.owner.inputs == [x, w] and z.owner.outputs == [z] and x.owner is None
    assert z.type == T.dmatrix and str(x.type) == "TensorType(float64, matrix)"
    assert isinstance(z, T.TensorVariable) and isinstance(T.constant(1), theano.Constant)
    assert [n.name for n in theano.gof.graph.inputs([z])] == ["x", "w"]
    g = theano.grad(z.sum(), w)
    assert x in theano.gof.graph.inputs([g]) and g.owner is not None
    assert len(theano.gof.graph.io_toposort([x, w], [z + 1])) == 2


def test_names_may_be_any():
    vs = [T.dscalar(n) for n in ("a_1", "a", "a", "a", "1 b", "input", "input_1", "float32", None, "a_2", "e'")]
    f = theano.function(vs, T.stack(vs))
    assert list(f(*range(len(vs)))) == list(range(len(vs)))
    assert [v.name for v in vs][:4] == ["a_1", "a", "a", "a"]


def test_variables_have_no_truth_and_no_length():
    with pytest.raises(TypeError):
        bool(x > 1)
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        list(x)
    assert len(list(x.shape)) == 2


def test_gradients():
    cost = T.sum(T.tanh(T.dot(x, w)) ** 2)
    gx, gw = theano.function([x, w], T.grad(cost, [x, w]))(A, W)
    t = np.tanh(A @ W)
    d = 2 * t * (1 - t * t)
    np.testing.assert_allclose(gx, d @ W.T)
    np.testing.assert_allclose(gw, A.T @ d)
    np.testing.assert_allclose(value(T.grad(x.sum() * 2, x)), np.full(A.shape, 2))
    np.testing.assert_allclose(value(theano.gradient.jacobian(v ** 2, v)), np.diag(2 * V))
    np.testing.assert_allclose(value(theano.gradient.hessian((v ** 3).sum(), v)), np.diag(6 * V))
    np.testing.assert_allclose(value(theano.Rop(v ** 2, v, T.ones_like(v))), 2 * V)
    np.testing.assert_allclose(value(theano.Lop(v ** 2, v, T.ones_like(v) * 3)), 6 * V)
    np.testing.assert_allclose(value(T.grad((v * theano.gradient.grad_clip(v, -1, 1)).sum(), v)), V + V.clip(-1, 1))
    np.testing.assert_allclose(value(T.grad((v * theano.gradient.disconnected_grad(v)).sum(), v)), V)
    np.testing.assert_allclose(value(theano.grad(None, v, known_grads={v * 2: T.ones_like(v)})), np.full(4, 2))
    theano.gradient.verify_grad(lambda a: T.sqr(a).sum(), [V])


def test_gradients_that_are_not_there():
    with pytest.raises(theano.gradient.DisconnectedInputError):
        T.grad(x.sum(), v)
    np.testing.assert_array_equal(theano.function([v], T.grad(v.sum() * 0 + s, v, disconnected_inputs="ignore"),
                                                  givens={s: np.float64(1)})(V), np.zeros(4))
    with pytest.raises(TypeError):
        T.grad(x, x)


def test_shared_variables_and_updates():
    a = theano.shared(np.array([1., 2.]), name="a")
    n = theano.shared(0)
    f = theano.function([], a * n, updates=[(a, a + 1), (n, n + 2)])
    assert list(f()) == [0, 0] and list(f()) == [4, 6] and list(a.get_value()) == [3, 4] and n.get_value() == 4
    a.set_value(np.zeros(3))  # another shape
    assert f().shape == (3,)
    with pytest.raises(TypeError):
        a.set_value(np.zeros((2, 2)))
    with pytest.raises(TypeError):
        theano.shared(np.zeros(2, "float32")).set_value(np.zeros(2))
    with pytest.raises(TypeError):
        theano.shared([1, 2])
    borrowed = a.get_value(borrow=True)
    borrowed[:] = 5
    assert list(a.get_value()) == [5, 5, 5]
    d = theano.shared(1.)
    d.default_update = d * 2
    g = theano.function([], d)
    assert [float(g()) for _ in range(3)] == [1, 2, 4]
    assert float(theano.function([], d, no_default_updates=True)()) == 8 == d.get_value()


def test_updates_are_cast_with_a_warning():
    a = theano.shared(np.zeros(2, "float32"))
    with pytest.warns(UserWarning, match="cast to the variable's dtype"):
        f = theano.function([], [], updates=[(a, a + np.float64(.1))])
    f()
    assert a.get_value().dtype == "float32" and np.allclose(a.get_value(), .1)


def test_functions():
    f = theano.function([x, theano.In(s, value=2., name="scale")], [x * s, x.sum()], name="f")
    assert np.allclose(f(A)[0], 2 * A) and np.allclose(f(A, scale=3)[0], 3 * A) and np.allclose(f(A, 4.)[0], 4 * A)
    assert isinstance(f(A)[1], np.ndarray) and f(A)[1].shape == ()
    assert theano.function([x], {"a": x, "b": x + 1})(A)["b"][0, 0] == A[0, 0] + 1
    assert theano.function([], [])() == []
    z = x * 2
    assert np.allclose(theano.function([z], z + 1)(A), A + 1)  # an intermediate value as an input
    assert np.allclose(theano.function([v], (x * 2).sum(axis=0), givens={x: T.stack([v, v])})(V), 4 * V)
    counter = theano.function([theano.In(k, value=0, update=k + 1)], k)
    assert [int(counter()) for _ in range(3)] == [0, 1, 2]
    assert x.eval({x: A}) is not None and float((s * 2).eval({s: 3.})) == 6
    steps = f.maker.fgraph.toposort()
    assert steps and any(isinstance(n.op, T.Elemwise) for n in steps)


@pytest.mark.parametrize("wrong, error", [
    (lambda: theano.function([x, v], x), theano.compile.UnusedInputError),
    (lambda: theano.function([], x), theano.gof.MissingInputError),
    (lambda: theano.function([theano.shared(1.)], s), TypeError),
    (lambda: theano.function(x, x), Exception),
    (lambda: theano.function([x], x, updates={theano.shared(1): s + .5}), TypeError),
    (lambda: theano.function([x], x)(V), TypeError),
    (lambda: theano.function([x], x)(), TypeError),
    (lambda: theano.function([x], x)(A, A), TypeError),
    (lambda: theano.function([x], x)(z=A), TypeError),
    (lambda: theano.function([T.fvector()], s, on_unused_input="ignore", givens={s: np.float64(1)})(V), TypeError),
    (lambda: theano.function([x, w], x * w)(A, W), ValueError),
    (lambda: theano.function([x, k], x[k])(A, 7), IndexError),
    (lambda: T.dot(x, T.dvector()) + T.zeros((3, 9)) + T.zeros((2, 9)), ValueError),
    (lambda: x.sum(axis=2), ValueError),
    (lambda: T.nonexistent, AttributeError),
    (lambda: theano.nonexistent, AttributeError),
    (lambda: theano.config.nonexistent, AttributeError),
    (lambda: T.TensorType("complex64", []), NotImplementedError),
])
def test_mistakes_are_errors(wrong, error):
    with pytest.raises(error):
        wrong()


def test_arguments_are_converted_as_theano_does():
    f32 = T.fvector()
    f = theano.function([f32], f32 * 2)
    assert list(f([1, 2])) == [2, 4] and list(f(np.array([1, 2], "int16"))) == [2, 4]
    with pytest.raises(TypeError):
        f(np.array([.1]))
    assert theano.function([f32], f32, allow_input_downcast=True)(np.array([.5]))[0] == .5
    big = np.arange(4, dtype=">f8")
    assert list(theano.function([v], v)(big)) == [0, 1, 2, 3]
    assert list(theano.function([v], v + 1)(np.arange(8.)[::-2])) == [8, 6, 4, 2]


def test_unused_inputs_may_be_warned_of():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        theano.function([x, v], x, on_unused_input="warn")
    assert seen and "v" in str(seen[0].message)


def test_scan():
    xs = T.dmatrix("xs")
    h0 = T.dvector("h0")
    hs, updates = theano.scan(lambda e, h, u: T.tanh(e + h * u), sequences=xs, outputs_info=h0, non_sequences=s)
    f = theano.function([xs, h0, s], [hs, T.grad(hs[-1].sum(), h0)], updates=updates)
    got, g = f(A, V, .7)
    h, d = V, np.ones(4)
    for row, out in zip(A, got):
        h = np.tanh(row + h * .7)
        d = d * .7 * (1 - h * h)
        np.testing.assert_allclose(out, h)
    np.testing.assert_allclose(g, d)
    total, _ = theano.reduce(lambda e, t: e + t, xs, T.zeros_like(xs[0]))
    np.testing.assert_allclose(theano.function([xs], total)(A), A.sum(0))
    np.testing.assert_allclose(value(theano.map(lambda r: r.sum(), x)[0]), A.sum(1))


def test_scan_with_taps_steps_and_conditions():
    fib, _ = theano.scan(lambda a, b: a + b, outputs_info=[dict(initial=T.constant(np.array([0, 1])), taps=[-2, -1])],
                         n_steps=6)
    assert list(theano.function([], fib)()) == [1, 2, 3, 5, 8, 13]
    power, _ = theano.scan(lambda p, a: p * a, outputs_info=T.ones_like(v), non_sequences=v, n_steps=k)
    np.testing.assert_allclose(theano.function([v, k], power[-1])(V, 3), V ** 3)
    both, _ = theano.scan(lambda a, b: [a + b, a - b], sequences=[dict(input=v, taps=[0, 1])])
    np.testing.assert_allclose(value(both[0]), V[:-1] + V[1:])
    doubled, _ = theano.scan(lambda p: (p * 2, theano.scan_module.until(p * 2 > s)), outputs_info=T.constant(1.),
                             n_steps=50)
    assert list(theano.function([s], doubled)(20.)) == [2, 4, 8, 16, 32]
    back, _ = theano.scan(lambda e: e, sequences=v, go_backwards=True)
    np.testing.assert_array_equal(value(back), V[::-1])
    short, _ = theano.scan(lambda a, b: a * b, sequences=[v, i])
    np.testing.assert_allclose(value(short), V[:3] * I)


def test_a_state_of_size_one_may_grow():
    z = T.dmatrix()
    h, _ = theano.scan(lambda h, z: h + z, outputs_info=T.zeros((1, 4)), non_sequences=z, n_steps=2)
    np.testing.assert_allclose(theano.function([z], h[-1])(A[:1]), 2 * A[:1])


def test_a_number_is_a_state_of_the_dtype_that_comes_out():
    total, _ = theano.scan(lambda e, t: e + t, sequences=T.ivector("z"), outputs_info=0)
    assert total.dtype == "int32"


def test_scan_updates_shared_variables():
    n = theano.shared(1)
    _, updates = theano.scan(lambda: {n: n * 2}, n_steps=5)
    theano.function([], [], updates=updates)()
    assert n.get_value() == 32


def of_softmax(p, t):
    rows = T.arange(t.shape[0])
    return [-T.mean(T.log(p)[rows, t]), -T.log(p[rows, t]).sum()]


@pytest.mark.parametrize("which", [0, 1])
def test_crossentropy_with_as_many_labels_as_a_call_brings(which):
    """The tutorials' cost: two kernels compute it with its gradient, though no size is known."""
    t = T.ivector()
    cost = of_softmax(T.nnet.softmax(x), t)[which]
    f = theano.function([x, t], [cost, T.grad(cost, x)])
    labels = np.array([2, 0, -1], "int32")
    got, p = f(A, labels), softmax(A)
    rows, divisor = np.arange(3), 3 if which == 0 else 1
    np.testing.assert_allclose(got[0], -np.log(p[rows, labels]).sum() / divisor)
    hot = np.zeros_like(p)
    hot[rows, labels] = 1
    np.testing.assert_allclose(got[1], (p - hot) / divisor)
    assert len([s for s in f._call.steps if s["kind"] not in ("size", "view")]) == 2
    for wrong in ([0, 1], [1], [0, 1, 2, 3], []):  # Theano: y_idx must have same number of rows as x
        with pytest.raises(ValueError):
            f(A, np.array(wrong, "int32"))
    with pytest.raises(IndexError):
        f(A, np.array([0, 1, 4], "int32"))


def test_rows_of_other_matrices_may_be_more_than_labels():
    t = T.ivector()
    np.testing.assert_array_equal(theano.function([x, t], x[T.arange(t.shape[0]), t])(A, np.array([2, 0], "int32")), A[[0, 1], [2, 0]])
    row = T.drow()
    one = T.nnet.softmax(row)[T.arange(t.shape[0]), t]
    with pytest.raises(IndexError):
        theano.function([row, t], one)(A[:1], np.array([0, 1], "int32"))


def test_ifelse():
    e = theano.ifelse.ifelse(T.gt(s, 0), x, -x)
    f = theano.function([s, x], e)
    assert np.allclose(f(1., A), A) and np.allclose(f(-1., A), -A)


def test_clone_and_same_graph():
    e = T.exp(x) + T.grad((x * y).sum(), x)
    copied = theano.clone(e, replace={y: y * 2})
    np.testing.assert_allclose(value(copied), np.exp(A) + 2 * B)
    assert theano.gof.graph.is_same_graph(T.exp(x) + y, T.exp(x) + y)
    assert not theano.gof.graph.is_same_graph(T.exp(x) + y, T.exp(x) - y)
    assert theano.gof.graph.is_same_graph(x * 2, y * 2, givens={x: y})


def test_inputs_that_simplification_leaves_out_are_no_mistake():
    z = T.dscalar()
    assert theano.function([z], T.grad(2 * z, z))(5.) == 2
    W, U = T.dmatrix(), T.dmatrix()
    J = theano.Rop(T.dot(v, W), W, U)
    np.testing.assert_allclose(theano.function([W, U, v], J)(np.ones((4, 2)), np.ones((4, 2)), V), [V.sum()] * 2)


def test_a_copy_with_other_variables():
    a, b, n = theano.shared(0), theano.shared(0), T.iscalar()
    f = theano.function([n], a, updates=[(a, a + n)])
    g = f.copy(swap={a: b})
    f(10), g(100)
    assert a.get_value() == 10 and b.get_value() == 100
    h = f.copy(delete_updates=True)
    h(9000)
    assert a.get_value() == 10


def test_givens_do_not_differentiate():
    """The gradient is taken first, and what stands in for a variable afterwards."""
    a = theano.shared(np.array([1., 2.]))
    z = T.dvector()
    g = T.grad((a * z).sum(), a)
    assert list(theano.function([], g, givens={z: a * 3})()) == [3, 6]


def test_pickles_and_copies():
    a = theano.shared(np.arange(3.), name="a")
    z = T.dvector("z")
    p = T.nnet.sigmoid(a * z[::-1] + 1)
    z2, p2, a2 = pickle.loads(pickle.dumps((z, p, a), -1))
    a.set_value(np.zeros(3))
    got = theano.function([z2], p2)(np.ones(3))
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-(np.arange(3) + 1))))
    assert a2.name == "a" and list(a2.get_value()) == [0, 1, 2]
    f = theano.function([], a, updates={a: a + 1})
    g = copy.deepcopy(f)
    f(), f()
    assert list(g()) == [0, 0, 0] and list(f()) == [2, 2, 2]


def test_ops_of_a_program():
    class Double(theano.Op):
        __props__ = ()

        def make_node(self, a):
            a = T.as_tensor_variable(a)
            return theano.Apply(self, [a], [a.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] * 2

        def grad(self, inputs, grads):
            return [grads[0] * 2]
    z = Double()(x)
    np.testing.assert_allclose(value(z + 1), 2 * A + 1)
    np.testing.assert_allclose(value(T.grad((z * x).sum(), x)), 4 * A)
    assert isinstance(z.owner.op, Double) and z.owner.inputs == [x]

    class Broken(Double):
        def infer_shape(self, node, shapes):
            return shapes

        def perform(self, node, inputs, outputs):
            raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        value(Broken()(x))


def test_functions_and_graphs_as_ops():
    @theano.compile.ops.as_op(itypes=[T.dmatrix, T.dmatrix], otypes=[T.dmatrix])
    def product(a, b):
        return a @ b
    np.testing.assert_allclose(value(product(x, w)), A @ W)
    with pytest.raises(TypeError):
        product(v, w)
    a, b = T.dvectors("ab")
    both = theano.OpFromGraph([a, b], [a + b, a * b])
    np.testing.assert_allclose(value(both(v, v * 2)[1]), 2 * V * V)


def test_graphs_go_when_their_variables_are_gone():
    """Also those with an op of a program."""
    code = """
import gc, weakref, numpy, theano, theano.tensor as T
class Double(theano.Op):
    def make_node(self, a):
        return theano.Apply(self, [a], [a.type()])
    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2
def work():
    x = T.dvector()
    f = theano.function([x], [Double()(x) + theano.shared(1.), T.grad(T.exp(x).sum(), x)])
    assert list(f(numpy.ones(2))[0]) == [3, 3]
    return weakref.ref(theano.core.graph())
graph = work()
gc.collect()
assert graph() is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_convolution_and_pooling():
    t4, k4 = T.dtensor4(), T.dtensor4()
    image, kernel = R.rand(2, 3, 7, 6), R.rand(4, 3, 3, 2)
    out = theano.function([t4, k4], T.nnet.conv2d(t4, k4, border_mode="valid", subsample=(2, 1)))(image, kernel)
    want = np.zeros((2, 4, 5, 5))
    for r in range(3):
        for q in range(2):
            want += np.einsum("bcij,fc->bfij", image[:, :, r:r + 5, q:q + 5], kernel[:, :, 2 - r, 1 - q])
    np.testing.assert_allclose(out, want[:, :, ::2])
    pooled = theano.function([t4], T.signal.pool.pool_2d(t4, (2, 2), ignore_border=True))(image)
    np.testing.assert_allclose(pooled, image[:, :, :6].reshape(2, 3, 3, 2, 3, 2).max((3, 5)))
    shape = theano.function([t4, k4], T.grad(T.nnet.conv2d(t4, k4, border_mode="half").sum(), k4))(image, kernel).shape
    assert shape == kernel.shape
    with pytest.raises(ValueError):
        T.nnet.conv2d(t4, k4, border_mode="sideways")
    with pytest.raises(TypeError):
        T.nnet.conv2d(t4, k4, no_such_argument=1)


def test_batch_normalization():
    a = R.rand(5, 3) + 1
    m = T.dmatrix()
    out = T.nnet.bn.batch_normalization_train(m, T.ones((1, 3)), T.zeros((1, 3)), epsilon=1e-8)
    got, mean, invstd = theano.function([m], list(out))(a)
    np.testing.assert_allclose(got, (a - a.mean(0)) / np.sqrt(a.var(0) + 1e-8))
    np.testing.assert_allclose(invstd, 1 / np.sqrt(a.var(0, keepdims=True) + 1e-8))
    assert mean.shape == (1, 3)


def test_printing(capfd):
    text = theano.printing.debugprint(T.exp(x) + y, file="str")
    assert "Elemwise{add,no_inplace}" in text and " |Elemwise{exp,no_inplace}" in text
    assert theano.pp(T.exp(x) + -y) == "(exp(x) + (-y))"
    value(theano.printing.Print("here")(x) * 2)
    assert "here" in capfd.readouterr().out


def test_assert():
    f = theano.function([x, s], T.opt.Assert("s is small")(x, s > 1))
    np.testing.assert_array_equal(f(A, 2.), A)
    with pytest.raises(AssertionError, match="s is small"):
        f(A, 0.)


def test_every_convolution_runs():
    from theano.tensor.nnet import abstract_conv as ac
    t3, k3, t4, k4, t5, k5 = T.dtensor3(), T.dtensor3(), T.dtensor4(), T.dtensor4(), T.dtensor5(), T.dtensor5()
    image, kernel = R.rand(2, 3, 8, 8), R.rand(4, 3, 3, 3)
    y = T.nnet.conv2d(t4, k4)
    gx, gw = T.grad((y ** 2).sum(), [t4, k4])
    by_hand = [ac.conv2d_grad_wrt_inputs(2 * y, k4, (None, None, 8, 8)),
               ac.conv2d_grad_wrt_weights(t4, 2 * y, (4, 3, 3, 3)),
               ac.AbstractConv2d_gradInputs((2, 3, 8, 8))(k4, 2 * y, (8, 8)),
               ac.AbstractConv2d_gradWeights()(t4, 2 * y, k4.shape[2:]),
               T.nnet.conv2d_transpose(2 * y, k4, output_shape=(2, 3, 8, 8))]
    a, b, a2, b2, a3, b3, a4 = theano.function([t4, k4], [gx, gw] + by_hand)(image, kernel)
    for other in (a2, a3, a4):
        np.testing.assert_allclose(other, a)
    for other in (b2, b3):
        np.testing.assert_allclose(other, b)
    assert theano.function([t3, k3], ac.causal_conv1d(t3, k3))(R.rand(2, 3, 9), R.rand(4, 3, 2)).shape == (2, 4, 9)
    assert theano.function([t3, k3], T.nnet.conv1d(t3, k3))(R.rand(2, 3, 9), R.rand(4, 3, 2)).shape == (2, 4, 8)
    assert theano.function([t5, k5], T.nnet.conv3d(t5, k5, border_mode="half"))(
        R.rand(1, 2, 5, 5, 5), R.rand(3, 2, 3, 3, 3)).shape == (1, 3, 5, 5, 5)
    assert theano.function([t4], T.nnet.neighbours.images2neibs(t4, (2, 2)))(image).shape == (96, 4)
    assert T.nnet.abstract_conv.get_conv_output_shape((2, 3, 8, 8), (4, 3, 3, 3), "valid", (1, 1)) == (2, 4, 6, 6)


def test_modes():
    f = theano.function([x], T.exp(x), mode=theano.compile.mode.get_default_mode().excluding("fusion"))
    np.testing.assert_allclose(f(A), np.exp(A))
    np.testing.assert_allclose(theano.function([x], T.exp(x), mode="FAST_COMPILE")(A), np.exp(A))
    with pytest.raises(Exception):
        theano.function([x], T.log(x), mode="NanGuardMode")(-A)


def test_the_tables_name_ops_of_the_library():
    from monochord import op_names
    from theano.tensor import basic
    ops = op_names()
    for name, f in basic.names.items():
        assert getattr(f, "op", f.__name__) in ops, name


def test_flags_come_from_the_environment_and_the_file(tmp_path):
    (tmp_path / "rc").write_text("[global]\nfloatX = float32\n\n[dnn.conv]\nalgo_fwd = time_once\n")
    code = ("import theano; c = theano.config; print(c.floatX, c.dnn.conv.algo_fwd, c.mode, c.device,"
            " theano.tensor.matrix().dtype)")

    def run(**env):
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=dict(os.environ, **env), text=True,
                              capture_output=True)
        return done.stdout.strip() or done.stderr
    assert run(THEANORC=str(tmp_path / "rc"), THEANO_FLAGS="") == "float32 time_once Mode cpu float32"
    both = run(THEANORC=str(tmp_path / "rc"), THEANO_FLAGS="floatX=float64,mode=FAST_COMPILE,optimizer=None")
    assert both == "float64 time_once FAST_COMPILE cpu float64"
    assert "no flag nonsense" in run(THEANO_FLAGS="nonsense=1", THEANORC="")
    assert "floatX is" in run(THEANO_FLAGS="floatX=float31", THEANORC="")


def test_alpha_and_beta_of_a_convolution():
    from theano.sandbox.cuda import dnn
    a, k = R.rand(2, 3, 6, 7), R.rand(4, 3, 3, 2)
    patches = np.lib.stride_tricks.sliding_window_view(a, (3, 2), (2, 3))
    true = np.einsum("bcijkl,fckl->bfij", patches, k)
    img, kern, out = T.dtensor4("img"), T.dtensor4("kern"), T.dtensor4("out")
    desc = dnn.GpuDnnConvDesc("valid", (1, 1), "cross")(img.shape, kern.shape)
    f = theano.function([img, kern, out], dnn.GpuDnnConv(inplace=True)(img, kern, out, desc, .5, 2.))
    before = R.rand(*true.shape)
    kept = before.copy()
    np.testing.assert_allclose(f(a, k, before), .5 * true + 2 * kept, rtol=1e-12)
    np.testing.assert_array_equal(before, kept)
    assert dnn.GpuDnnConv.get_out_shape(a.shape, k.shape, "valid", (1, 1)) == true.shape
    weights = dnn.GpuDnnConvGradW()(img, out, kern, desc, 2., 0.)
    f = theano.function([img, kern, out], weights, on_unused_input="ignore")
    np.testing.assert_allclose(f(a, k, kept), 2 * np.einsum("bcijkl,bfij->fckl", patches, kept), rtol=1e-12)


def test_shared_variables_that_change_their_shape():
    """A function is compiled for the shapes that they have, and once more when one of them got another."""
    a, b = theano.shared(A), theano.shared(B)
    f = theano.function([], (a * 2 + b).sum(axis=0))
    assert np.allclose(f(), (2 * A + B).sum(0)) and f._call.steps[0]["text"].count("size") == 0
    for shape in ((5, 4), (2, 3), (5, 4)):
        new = R.rand(*shape), R.rand(*shape)
        a.set_value(new[0])
        with pytest.raises(ValueError):  # b has the shape of before
            f()
        b.set_value(new[1])
        assert np.allclose(f(), (2 * new[0] + new[1]).sum(0))
    compiled = f._call
    for shape in ((7, 7), (1, 7), (0, 2)):
        a.set_value(np.ones(shape)), b.set_value(np.ones(shape))
        assert np.array_equal(f(), np.full(shape[1], 3 * shape[0])) and f._call is compiled


def test_shared_variables_that_updates_make_longer():
    a, n = theano.shared(np.arange(3.)), theano.shared(0)
    f = theano.function([], a.sum(), updates=[(a, T.concatenate([a, a[-1:] + 1])), (n, n + 1)])
    assert [float(f()) for _ in range(4)] == [3, 6, 10, 15] and len(a.get_value()) == 7 and n.get_value() == 4
    g = f.copy(delete_updates=True)
    assert [float(g()), float(g())] == [21, 21]
    a.set_value(np.arange(2.))
    assert float(g()) == 1 and len(a.get_value()) == 2 and n.get_value() == 4
    assert copy.deepcopy(f)() == 1 and len(a.get_value()) == 2


def test_shared_variables_that_are_set_after_functions_are_made():
    a, b = theano.shared(np.zeros((0, 0))), theano.shared(np.zeros((1, 1)))
    f = theano.function([x], T.dot(x, a) + b)
    a.set_value(W), b.set_value(R.rand(3, 5))
    assert np.allclose(f(A), A @ W + b.get_value())
    wrong = theano.shared(np.zeros(6))
    g = theano.function([x], T.dot(x, a) + wrong)  # does not fit yet
    with pytest.raises(ValueError):
        g(A)
    wrong.set_value(np.ones(5))
    assert np.allclose(g(A), A @ W + 1)

"""Names of Theano's documentation beyond those that its tutorials use: values against NumPy's and SciPy's."""
import numpy as np
import pytest
import theano
import theano.tensor as T

R = np.random.RandomState(3)
A, V = R.rand(3, 4) * 2 - 1, np.array([5., 1., 9., 1., 7.])
x, v = T.dmatrix("x"), T.dvector("v")


def of(e, *given):
    """The value of an expression of x, or of v."""
    many = isinstance(e, (list, tuple))
    used = theano.gof.graph.inputs(list(e) if many else [e])
    return theano.function([i for i in (x, v) if i in used], e if not many else list(e))(*[
        value for i, value in ((x, A), (v, V)) if i in used])


# the argument, or both, and the value by SciPy 1.17
SPECIAL = {"erfinv": (.25, 0.2253120550121781), "erfcinv": (.25, 0.8134198475976184), "erfcx": (2., 0.2553956763105058),
           "gamma": (.25, 3.625609908221908), "j0": (2., 0.22389077914123562), "j1": (2., 0.5767248077568734),
           "i0": (2., 2.279585302336067), "i1": (2., 1.5906368546373295)}
SPECIAL_OF_TWO = {"jv": (.5, 2., 0.5130161365618283), "iv": (1.5, 2., 1.0994731886331102), "gammainc": (.5, 2., 0.9544997361036415),
                  "gammaincc": (.5, 2., 0.04550026389635857), "chi2sf": (2., 3., 0.5724067044708798)}


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_special_functions(name):
    at, want = SPECIAL[name]
    np.testing.assert_allclose(getattr(T, name)(T.constant(at, dtype="float64")).eval(), want, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(SPECIAL_OF_TWO))
def test_special_functions_of_two(name):
    a, b, want = SPECIAL_OF_TWO[name]
    np.testing.assert_allclose(getattr(T, name)(T.constant(a, dtype="float64"), T.constant(b, dtype="float64")).eval(), want,
                               rtol=1e-11)


def test_choose():
    i = np.array([0, 2, 1, 2])
    np.testing.assert_array_equal(T.choose(i, [A[0], A[1], A[2]]).eval(), np.choose(i, A))
    np.testing.assert_array_equal(T.choose(i, A).eval(), np.choose(i, A))
    np.testing.assert_array_equal(T.choose(i - 1, [A[0], A[1], A[2]], mode="wrap").eval(), np.choose(i - 1, A, mode="wrap"))


def test_grids():
    for ours, numpys in ((T.mgrid, np.mgrid), (T.ogrid, np.ogrid)):
        for got, want in zip(of(ours[0:3, 2:8:2]), numpys[0:3, 2:8:2]):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(of(ours[1:4]), [np.arange(1, 4)])


def test_largest():
    np.testing.assert_array_equal(np.sort(of(T.topk(v, 2))), [7, 9])
    np.testing.assert_array_equal(np.sort(of(T.topk(v, -2))), [1, 1])
    values, at = of(T.topk_and_argtopk(x, 2, axis=0, idx_dtype="int32"))
    np.testing.assert_array_equal(np.sort(values, 0), np.sort(A, 0)[1:])
    np.testing.assert_array_equal(np.take_along_axis(A, at, 0), values)
    assert at.dtype == np.int32 and of(T.argtopk(v, 1)) == [2]


def test_indices():
    i = np.array([0, 5, 23])
    for order in "CF":
        index = T.unravel_index(i, (2, 3, 4), order)
        np.testing.assert_array_equal(of(index), np.unravel_index(i, (2, 3, 4), order))
        np.testing.assert_array_equal(T.ravel_multi_index(index, (2, 3, 4), order=order).eval(), i)
    np.testing.assert_array_equal(T.ravel_multi_index(([3, -1], [0, 9]), (2, 4), mode="wrap").eval(),
                                  np.ravel_multi_index(([3, -1], [0, 9]), (2, 4), mode="wrap"))
    np.testing.assert_array_equal(T.extra_ops.searchsorted(np.sort(V), v, side="right").eval({v: V}), np.searchsorted(
        np.sort(V), V, side="right"))
    np.testing.assert_array_equal(T.extra_ops.searchsorted(v, np.array([2., 6.]), sorter=np.argsort(V)).eval({v: V}),
                                  np.searchsorted(V, [2, 6], sorter=np.argsort(V)))
    want = A.copy()
    want[[0, 1, 2], [1, 2, 3]] = 8
    np.testing.assert_array_equal(of(T.fill_diagonal_offset(x, 8., 1)), want)


def test_conv3d2d():
    """A film and filters, by shifted sums."""
    from theano.tensor.nnet.conv3d2d import conv3d
    film, filters = R.rand(2, 5, 3, 6, 7), R.rand(4, 2, 3, 3, 2)
    want = np.zeros((2, 4, 4, 4, 6))
    for t in range(2):
        for r in range(3):
            for c in range(2):
                part = film[:, 1 - t:5 - t, :, 2 - r:6 - r, 1 - c:7 - c]
                want += np.einsum("btchw,fc->btfhw", part, filters[:, t, :, r, c])
    signals, kernels = T.TensorType("float64", (False,) * 5)(), T.TensorType("float64", (False,) * 5)()
    f = theano.function([signals, kernels], conv3d(signals, kernels))
    np.testing.assert_allclose(f(film, filters), want)
    f = theano.function([signals, kernels], conv3d(signals, kernels, film.shape, filters.shape, ("valid",) * 3))
    np.testing.assert_allclose(f(film, filters), want)


def test_ctc():
    """Two steps, one label: the three alignments a-, -a, aa."""
    from theano.tensor.nnet.ctc import ctc
    logits = R.rand(2, 1, 3)
    p = np.exp(logits[:, 0]) / np.exp(logits[:, 0]).sum(1, keepdims=True)
    cost = ctc(logits, np.array([[2]], "int32"), np.array([2], "int32")).eval()
    np.testing.assert_allclose(cost, [-np.log(p[0, 2] * p[1, 0] + p[0, 0] * p[1, 2] + p[0, 2] * p[1, 2])])


def test_ops_in_graphs():
    y = T.nnet.softmax(x)
    assert isinstance(y.owner.op, T.nnet.Softmax) and not isinstance(T.exp(x).owner.op, T.nnet.Softmax)


def test_shapes_of_ops():
    class Halves(theano.Op):
        def make_node(self, a):
            return theano.Apply(self, [T.as_tensor_variable(a)], [a.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0][::2]

        def infer_shape(self, node, shapes):
            return [((shapes[0][0] + self.more) // 2,) + tuple(shapes[0][1:])]
    from theano.tests.unittest_tools import InferShapeTester
    tester, op, wrong = InferShapeTester(), Halves(), Halves()
    tester.setUp()
    op.more, wrong.more = 1, 3
    tester._compile_and_check([x], [op(x)], [A], Halves)
    with pytest.raises((AssertionError, ValueError)):
        tester._compile_and_check([x], [wrong(x)], [A], Halves)


def test_other_names():
    from theano.compat.python2x import OrderedDict
    from theano.gpuarray.fft import curfft
    assert OrderedDict([(1, 2)]) == {1: 2} and curfft is T.fft.rfft
    assert T.tensor7().ndim == 7 and theano.config.profiling.n_ops == 20 and theano.config.numpy.seterr_over == "None"
    np.testing.assert_array_equal(T.bincount(np.array([1, 3, 1])).eval(), [0, 2, 0, 1])

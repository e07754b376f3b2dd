"""shared_randomstreams and raw_random: numbers are those of numpy.random.RandomState, bit for bit."""
import copy
import pickle

import numpy as np
import pytest
import theano
import theano.tensor as T
from theano.tensor import raw_random
from theano.tensor.shared_randomstreams import RandomStreams

P = np.array([[.1, .4, .5], [.3, .3, .4]])


def states(seed, n):
    """What NumPy draws for the first n random variables of a seed."""
    seeds = np.random.RandomState(seed)
    return [np.random.RandomState(int(seeds.randint(2 ** 30))) for _ in range(n)]


def choice(r, a, size, p=None, replace=True):
    return r.choice(a, size, replace, p)


def each(draw, *shape):
    return np.array([draw(at) for at in np.ndindex(*shape)])


# what is drawn, and the same by NumPy
DRAWS = [
    (lambda s: s.uniform((2, 3)), lambda r: r.uniform(0, 1, (2, 3))),
    (lambda s: s.uniform((4,), -2., 5.), lambda r: r.uniform(-2, 5, 4)),
    (lambda s: s.uniform(low=np.array([0., 10.]), high=np.array([[1.], [20.], [30.]])),
     lambda r: r.uniform([0, 10], [[1], [20], [30]])),
    (lambda s: s.uniform((), 2, 3), lambda r: r.uniform(2, 3)),
    (lambda s: s.uniform((2, -1), low=np.zeros(3)), lambda r: r.uniform(0, 1, (2, 3))),
    (lambda s: s.normal((3, 3), 1., .5), lambda r: r.normal(1, .5, (3, 3))),
    (lambda s: s.normal(avg=np.arange(3.), std=2.), lambda r: r.normal(np.arange(3), 2)),
    (lambda s: s.binomial((50,), n=1, p=.3), lambda r: r.binomial(1, .3, 50)),
    (lambda s: s.binomial(n=np.array([3, 40]), p=np.array([.5, .2])), lambda r: r.binomial([3, 40], [.5, .2])),
    (lambda s: s.random_integers((30,), -3, 7), lambda r: each(lambda at: r.randint(-3, 8), 30)),
    (lambda s: s.random_integers((3, 2), np.array([0, 100]), np.array([5, 1000])),
     lambda r: each(lambda at: r.randint([0, 100][at[1]], [6, 1001][at[1]]), 3, 2).reshape(3, 2)),
    (lambda s: s.random_integers((5,), 0, 2 ** 40), lambda r: each(lambda at: r.randint(0, 2 ** 40 + 1), 5)),
    (lambda s: s.random_integers((5,), 0, 127), lambda r: r.randint(0, 128, 5)),
    (lambda s: s.choice((3, 2), 5), lambda r: r.choice(5, (3, 2))),
    (lambda s: s.choice((4,), np.array([2, 3, 5, 7]), False), lambda r: r.choice([2, 3, 5, 7], 4, False)),
    (lambda s: s.choice((6,), 3, p=np.array([.1, .2, .7])), lambda r: r.choice(3, 6, True, [.1, .2, .7])),
    (lambda s: s.poisson((20,), 3.5), lambda r: r.poisson(3.5, 20)),
    (lambda s: s.poisson((2,), lam=np.array([1., 50.])), lambda r: r.poisson([1, 50])),
    (lambda s: s.normal(None, 2., .5, ndim=3), lambda r: r.normal(2, .5)),
    (lambda s: s.permutation(n=7), lambda r: r.permutation(7)),
    (lambda s: s.permutation((2, 2), 5), lambda r: each(lambda at: r.permutation(5), 2, 2).reshape(2, 2, 5)),
    (lambda s: s.multinomial((4,), 10, [.2, .3, .5]), lambda r: r.multinomial(10, [.2, .3, .5], 4)),
    (lambda s: s.multinomial(n=6, pvals=P), lambda r: np.array([r.multinomial(6, p) for p in P])),
    (lambda s: s.multinomial((3, -1), np.array([1, 9]), P),
     lambda r: each(lambda at: r.multinomial([1, 9][at[1]], P[at[1]]), 3, 2).reshape(3, 2, 3)),
    (lambda s: s.shuffle_row_elements(np.arange(12.).reshape(3, 4)),
     lambda r: np.array([row[r.permutation(4)] for row in np.arange(12.).reshape(3, 4)])),
]


@pytest.mark.parametrize("at", range(len(DRAWS)))
def test_draws(at):
    """Two random variables of one stream, three calls each."""
    ours, numpys = DRAWS[at]
    s = RandomStreams(234)
    f = theano.function([], [ours(s), ours(s)])
    r = states(234, 2)
    for _ in range(3):
        for got, state in zip(f(), r):
            want = numpys(state)
            assert got.shape == np.shape(want) and np.array_equal(got, want)


def test_dtypes():
    s = RandomStreams(1)
    assert [v.dtype for v in (s.uniform((2,)), s.normal((2,)), s.binomial((2,)), s.permutation(n=3))] == [
        theano.config.floatX] * 2 + ["int64"] * 2
    u = s.uniform((3,), dtype="float32")
    assert theano.function([], u)().dtype == np.float32
    assert np.array_equal(theano.function([], RandomStreams(1).uniform((3,), dtype="float32"))(),
                          states(1, 1)[0].uniform(0, 1, 3).astype("float32"))
    assert s.binomial((3,), p=.5, dtype="int8").dtype == "int8"


def test_shapes_that_calls_tell():
    s, x, n, v = RandomStreams(5), T.dmatrix(), T.lscalar(), T.lvector()
    r = states(5, 5)
    f = theano.function([x], s.normal(x.shape, avg=x))
    for shape in ((2, 3), (4, 1)):
        assert np.array_equal(f(np.ones(shape)), r[0].normal(1, 1, shape))
    f = theano.function([x], s.binomial(n=1, p=x))
    assert np.array_equal(f(np.full((2, 2), .5)), r[1].binomial(1, .5, (2, 2)))
    f = theano.function([n], s.permutation(n=n))
    assert np.array_equal(f(4), r[2].permutation(4)) and np.array_equal(f(9), r[2].permutation(9))
    f = theano.function([v], s.uniform(v, ndim=2))
    for wrong in ([2], [2, 5, 1]):
        with pytest.raises(ValueError):
            f(wrong)
    assert np.array_equal(f([2, 5]), r[3].uniform(0, 1, (2, 5)))
    shuffled = s.shuffle_row_elements(x)
    f = theano.function([x], [shuffled, shuffled.permutation])
    got, order = f(P)
    assert np.array_equal(order, [r[4].permutation(3) for _ in P]) and np.array_equal(got, np.take_along_axis(P, order, 1))


def test_gradients_stop_at_draws_and_pass_beside_them():
    x = T.dmatrix()
    s = RandomStreams(5)
    kept = T.cast(s.binomial(x.shape, p=.5), "float64")
    f = theano.function([x], [kept, T.grad((kept * x).sum(), x)], no_default_updates=True)
    kept, g = f(P)
    assert np.array_equal(kept, g)


def test_updates():
    s = RandomStreams(9)
    u = s.uniform((3,))
    [state] = states(9, 1)
    first, second, third = [state.uniform(0, 1, 3) for _ in range(3)]
    assert u.rng is s.state_updates[0][0] and u.update == s.updates()[0] and u.rng.default_update is u.update[1]
    still = theano.function([], u, no_default_updates=True)
    assert np.array_equal(still(), first) and np.array_equal(still(), first)
    explicit = theano.function([], u, updates=s.updates(), no_default_updates=True)
    assert np.array_equal(explicit(), first) and np.array_equal(still(), second)
    silent = theano.function([], [], updates=s.updates())
    silent()
    assert np.array_equal(still(), third)
    zeros = theano.function([], u + u - 2 * u)
    assert np.array_equal(zeros(), np.zeros(3))


def test_seeds_of_the_tutorial():
    """Theano's tutorial, "Using Random Numbers"."""
    srng = RandomStreams(seed=234)
    rv_u, rv_n = srng.uniform((2, 2)), srng.normal((2, 2))
    f = theano.function([], rv_u)
    g = theano.function([], rv_n, no_default_updates=True)
    nearly_zeros = theano.function([], rv_u + rv_u - 2 * rv_u)
    rng_val = rv_u.rng.get_value(borrow=True)
    rng_val.seed(89234)
    rv_u.rng.set_value(rng_val, borrow=True)
    assert np.array_equal(f(), np.random.RandomState(89234).uniform(0, 1, (2, 2)))
    srng.seed(902340)
    r = states(902340, 2)
    assert np.array_equal(f(), r[0].uniform(0, 1, (2, 2))) and np.array_equal(g(), r[1].normal(0, 1, (2, 2)))
    state_after_v0 = rv_u.rng.get_value().get_state()
    nearly_zeros()
    v1 = f()
    rng = rv_u.rng.get_value(borrow=True)
    rng.set_state(state_after_v0)
    rv_u.rng.set_value(rng, borrow=True)
    assert not np.array_equal(f(), v1) and np.array_equal(f(), v1)


def test_state_between_graphs():
    """The tutorial's "Copying Random State Between Theano Graphs"."""
    def graph(seed):
        rng = RandomStreams(seed)
        return rng, theano.function([], rng.uniform(size=(1,)))
    (a, f), (b, g) = graph(123), graph(987)
    assert f() != g()
    for (old, _), (new, _) in zip(a.state_updates, b.state_updates):
        new.set_value(old.get_value())
    assert f() == g() and f() == g()


def test_get_value_is_a_copy_unless_borrowed():
    u = RandomStreams(3).uniform((2,))
    f = theano.function([], u)
    u.rng.get_value().seed(1)
    assert np.array_equal(f(), states(3, 1)[0].uniform(0, 1, 2))
    mine = u.rng.get_value(borrow=True)
    assert mine is u.rng.get_value(borrow=True) is u.rng.container.storage[0] is not u.rng.get_value()
    mine.seed(1)  # no set_value: it is the variable's
    assert np.array_equal(f(), np.random.RandomState(1).uniform(0, 1, 2))
    assert mine is u.rng.get_value(borrow=True) and mine.get_state()[2] == 4  # two numbers of two words were drawn
    other = np.random.RandomState(5)
    u.rng.set_value(other, borrow=True)
    assert u.rng.get_value(borrow=True) is other
    mine.seed(3)
    assert np.array_equal(f(), np.random.RandomState(3).uniform(0, 1, 2))
    s = RandomStreams(3)
    v = s.uniform((2,))
    s[v.rng] = np.random.RandomState(8)
    s[v.rng].set_state(np.random.RandomState(7).get_state())
    assert np.array_equal(v.eval(), np.random.RandomState(7).uniform(0, 1, 2))


def test_the_kept_normal_number_is_part_of_the_state():
    n = RandomStreams(3).normal(())
    f, r = theano.function([], n), states(3, 1)[0]
    assert [float(f()) for _ in range(5)] == [r.normal() for _ in range(5)]
    a, b = n.rng.get_value().get_state(), r.get_state()
    assert a[0] == b[0] and np.array_equal(a[1], b[1]) and a[2:] == b[2:]


def test_copies_of_functions():
    u = RandomStreams(4).uniform((2,))
    f = theano.function([], u)
    r = states(4, 1)[0]
    shares, alone = copy.copy(f), copy.deepcopy(f)
    first, second, third = [r.uniform(0, 1, 2) for _ in range(3)]
    assert np.array_equal(f(), first) and np.array_equal(shares(), second) and np.array_equal(f(), third)
    assert np.array_equal(alone(), first) and np.array_equal(alone(), second)
    other = theano.shared(np.random.RandomState(77))
    swapped, r77 = f.copy(swap={u.rng: other}), np.random.RandomState(77)
    assert np.array_equal(swapped(), r77.uniform(0, 1, 2)) and np.array_equal(swapped(), r77.uniform(0, 1, 2))
    assert np.array_equal(f(), r.uniform(0, 1, 2))
    still = f.copy(delete_updates=True)
    assert np.array_equal(still(), still())


def test_givens():
    u = RandomStreams(4).uniform((2,))
    other = theano.shared(np.random.RandomState(77))
    f = theano.function([], theano.Out(u, borrow=True), givens={u.rng: other})
    assert np.array_equal(f(), np.random.RandomState(77).uniform(0, 1, 2))
    assert np.array_equal(u.eval(), states(4, 1)[0].uniform(0, 1, 2))  # its own state was not touched


def test_states_as_inputs():
    """As Theano's tests of raw_random have them: In with an update."""
    r = raw_random.random_state_type()
    after, out = raw_random.uniform(r, (4,), low=1., high=3.)
    f = theano.function([theano.In(r, value=np.random.RandomState(5), update=after, mutable=True)], [out])
    numpy = np.random.RandomState(5)
    assert np.array_equal(f()[0], numpy.uniform(1, 3, 4)) and np.array_equal(f()[0], numpy.uniform(1, 3, 4))
    f[r] = np.random.RandomState(6)
    assert np.array_equal(f()[0], np.random.RandomState(6).uniform(1, 3, 4))
    g, mine = theano.function([r], out), np.random.RandomState(5)
    assert np.array_equal(g(mine), np.random.RandomState(5).uniform(1, 3, 4)) and np.array_equal(g(mine), g(mine))
    with pytest.raises(TypeError):
        g(3)


def test_random_function():
    """An op of a method of RandomState, and of a function."""
    r = theano.shared(np.random.RandomState(2))
    for fn in ("gamma", lambda state, shape, scale, size: state.gamma(shape, scale, size)):
        after, out = raw_random.RandomFunction(fn, T.dvector)(r, (3,), 2., 3.)
        assert np.array_equal(out.eval(), np.random.RandomState(2).gamma(2, 3, 3))


def test_scan():
    s, x = RandomStreams(6), theano.shared(np.zeros(2))
    xs, updates = theano.scan(lambda h: h + s.normal((2,)), outputs_info=[x], n_steps=3)
    assert [v.type for v in updates] == [raw_random.random_state_type]
    f, r = theano.function([], xs, updates=updates), states(6, 1)[0]
    for _ in range(2):
        np.testing.assert_array_equal(f(), np.cumsum([r.normal(0, 1, 2) for _ in range(3)], 0))


def test_pickles():
    u = RandomStreams(4).uniform((2,))
    again = pickle.loads(pickle.dumps(u.rng))
    assert again.get_value().uniform() == states(4, 1)[0].uniform()
    assert np.array_equal(pickle.loads(pickle.dumps(u)).eval(), states(4, 1)[0].uniform(0, 1, 2))


@pytest.mark.parametrize("wrong, kind", [
    (lambda s: s.choice(None, np.zeros((2, 2))), ValueError), (lambda s: s.uniform((2, -2)), ValueError),
    (lambda s: s.uniform((2, 3), ndim=1), ValueError), (lambda s: s.uniform((2,), low=P), ValueError),
    (lambda s: s.uniform((2.,)), TypeError), (lambda s: s.uniform(T.lvector()), ValueError),
    (lambda s: s.uniform((-1, 2)), ValueError), (lambda s: s.poisson(lam=2.), TypeError),
    (lambda s: s.permutation(ndim=2), TypeError), (lambda s: s.permutation(n=np.arange(3)), TypeError)])
def test_mistakes(wrong, kind):
    with pytest.raises(kind):
        wrong(RandomStreams(1))


def test_values_that_numpy_refuses():
    with pytest.raises(ValueError):
        RandomStreams(1).binomial((2,), p=1.5).eval()

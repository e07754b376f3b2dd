"""MRG31k3p's streams: against samples of L'Ecuyer's own implementation, and against the recurrences in whole numbers."""
import numpy as np
import pytest

import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams, guess_n_streams

M1, M2 = 2 ** 31 - 1, 2 ** 31 - 21069
# Seed 12345: five numbers of stream 0, of its second substream, and of stream 1.
KNOWN = [[0.7353244530968368, 0.6142074400559068, 0.11007806099951267, 0.6487741703167558, 0.36619443260133266],
         [0.2585685825906694, 0.9489980279468, 0.4309556516818702, 0.12257590936496854, 0.9760319022461772],
         [0.5180770065635443, 0.2319392478093505, 0.36197659047320485, 0.11120751267299056, 0.5018561617471278]]


def numbers(states, n, dtype, norm):
    """n numbers from rows of states, element i from row i % rows; the states are moved on."""
    out = np.empty(n, dtype)
    for i in range(n):
        s = states[i % len(states)]
        x = (2 ** 22 * s[1] + 129 * s[2]) % M1
        y = (2 ** 15 * s[3] + 32769 * s[5]) % M2
        s[:] = [x, s[0], s[1], y, s[3], s[4]]
        d = x - y + M1 if x <= y else x - y
        out[i] = np.dtype(dtype).type(d) * np.dtype(dtype).type(norm)
    return out


def test_known_samples():
    r = MRG_RandomStreams(12345)
    a, b = r.uniform((5, 7), dtype="float64", nstreams=7), r.uniform((35,), dtype="float64", nstreams=7)
    a, b = theano.function([], [a, b])()
    assert a[:, 0].tolist() == KNOWN[0] and a[:, 1].tolist() == KNOWN[1] and b[::7].tolist() == KNOWN[2]


@pytest.mark.parametrize("dtype,norm", [("float64", 4.656612873077392578125e-10), ("float32", 4.6566126e-10)])
@pytest.mark.parametrize("size", [(1,), (6,), (7,), (5, 9), (40, 3)])
def test_every_bit_call_after_call(dtype, norm, size):
    r = MRG_RandomStreams([1, 2, 3, 4, 5, 6])
    u = r.uniform(size, dtype=dtype)
    states = [[int(v) for v in row] for row in u.rstate.get_value()]
    n = int(np.prod(size))
    assert len(states) == (n // 6 if n > 6 else n) and states[0] == [1, 2, 3, 4, 5, 6]
    f = theano.function([], u)
    for _ in range(3):
        got, want = f(), numbers(states, n, dtype, norm).reshape(size)
        assert got.dtype == dtype and got.tobytes() == want.tobytes() and 0 < got.min() and got.max() < 1
    assert u.rstate.get_value().tolist() == states
    r.seed()
    again = f()
    r.seed([1, 2, 3, 4, 5, 6])
    assert np.array_equal(f(), again) and not np.array_equal(again, got)


def test_sizes_and_numbers_of_streams():
    assert [guess_n_streams(s) for s in [(3,), (6,), (7,), (600, 784), T.ivector()]] == [3, 6, 1, 15360, 15360]
    x = T.matrix()
    u = MRG_RandomStreams(7).uniform(x.shape, low=-1, high=3)
    f = theano.function([x], u)
    a = f(np.zeros((50, 400)))
    assert a.shape == (50, 400) and -1 < a.min() < -.9 and 2.9 < a.max() < 3 and abs(a.mean() - 1) < .05
    for bad in (0, [0, 0, 0, 1, 1, 1], M1, [1, 1, 1, M2, 1, 1]):
        with pytest.raises(ValueError):
            MRG_RandomStreams(bad)
    with pytest.raises(TypeError):
        MRG_RandomStreams([1, 2])
    with pytest.raises(ValueError):
        MRG_RandomStreams(1).uniform((3, 0))


def test_distributions_are_theanos_formulas():
    def uniform(n, dtype="float64"):
        return theano.function([], MRG_RandomStreams(99).uniform((n,), dtype=dtype, nstreams=4))()
    r = MRG_RandomStreams(99)
    z = theano.function([], r.normal((3, 3), avg=2., std=.5, nstreams=4))()
    u = uniform(10)
    radius, angle = np.sqrt(-2 * np.log(u[:5])), 2 * np.pi * u[5:]
    want = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:9].reshape(3, 3)
    np.testing.assert_allclose(z, 2 + .5 * want, rtol=1e-12)
    b = theano.function([], MRG_RandomStreams(99).binomial((20,), p=.3, nstreams=4))()
    assert b.dtype == "int64" and np.array_equal(b, uniform(20) < .3)
    p = np.array([[.2, .3, .5], [0, 1, 0], [.6, .4, 0], [.1, .1, .8]])
    m = theano.function([], MRG_RandomStreams(99).multinomial(pvals=p, nstreams=4))()
    assert m.argmax(1).tolist() == [int((np.cumsum(q) <= v).sum()) for q, v in zip(p, uniform(4))]
    assert m.sum(1).tolist() == [1, 1, 1, 1]


def test_a_loop_draws_anew_in_each_step():
    r = MRG_RandomStreams(5)
    made = []

    def step(x):
        made.append(r.uniform((4,), dtype="float64"))
        return x + made[0]
    out, updates = theano.scan(step, outputs_info=[T.zeros((4,), dtype="float64")], n_steps=3)
    state = made[0].rstate
    assert list(updates) == [state]
    states = [[int(v) for v in row] for row in state.get_value()]
    f = theano.function([], out, updates=updates)
    for _ in range(2):
        want = np.cumsum([numbers(states, 4, "float64", 4.656612873077392578125e-10) for _ in range(3)], axis=0)
        np.testing.assert_array_equal(f(), want)
    assert state.get_value().tolist() == states


def test_draws_whose_sizes_follow_from_other_draws():
    x = T.matrix()
    r = MRG_RandomStreams(1)
    a = r.uniform(x.shape, nstreams=2)
    h = T.dot(x * a, T.ones((4, 3)))
    b = r.uniform(h.shape, nstreams=2)
    states = [[[int(v) for v in row] for row in u.rstate.get_value()] for u in (a, b)]
    f = theano.function([x], [a, h * b])
    for _ in range(2):
        wa, wb = [numbers(s, n, "float64", 4.656612873077392578125e-10) for s, n in zip(states, (20, 15))]
        got = f(np.ones((5, 4)))
        assert np.array_equal(got[0].ravel(), wa)
        np.testing.assert_allclose(got[1], wa.reshape(5, 4).sum(1, keepdims=True) * wb.reshape(5, 3), rtol=1e-12)


def test_a_loop_leaves_draws_alone_that_it_is_given():
    r = MRG_RandomStreams(5)
    start, more = r.uniform((4,), dtype="float64"), r.uniform((4,), dtype="float64")
    states = [[[int(v) for v in row] for row in u.rstate.get_value()] for u in (start, more)]
    out, updates = theano.scan(lambda x, y: x + y, outputs_info=start, non_sequences=more, n_steps=2)
    assert not updates
    a, b = [numbers(s, 4, "float64", 4.656612873077392578125e-10) for s in states]
    np.testing.assert_array_equal(theano.function([], out)(), [a + b, a + b + b])

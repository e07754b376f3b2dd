"""theano.tensor.nlinalg, slinalg, fft: against NumPy."""
import numpy as np
import pytest

import theano
import theano.tensor as T
from theano.tensor import nlinalg, slinalg
from theano.tests import unittest_tools

R = np.random.RandomState(1)
A, B = R.randn(5, 5) + 5 * np.eye(5), R.randn(5, 3)
S = A.dot(A.T)
L = np.linalg.cholesky(S)
x, y = T.dmatrix(), T.dmatrix()


def close(e, want, *values):
    f = theano.function([x, y][:len(values)], e)
    np.testing.assert_allclose(f(*values), want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name,value,want", [
    ("matrix_inverse", A, np.linalg.inv(A)), ("det", A, np.linalg.det(A)), ("pinv", B, np.linalg.pinv(B)),
    ("trace", A, np.trace(A)), ("diag", A, np.diag(A)), ("extract_diag", A, np.diag(A))])
def test_one_matrix(name, value, want):
    close(getattr(nlinalg, name)(x), want, value)


def test_factors():
    w, v = theano.function([x], nlinalg.eigh(x))(S)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(S))
    np.testing.assert_allclose(v.dot(np.diag(w)).dot(v.T), S)
    q, r = theano.function([x], nlinalg.qr(x))(B)
    np.testing.assert_allclose(q.dot(r), B)
    np.testing.assert_allclose(q.T.dot(q), np.eye(3), atol=1e-12)
    u, s, vt = theano.function([x], nlinalg.svd(x, full_matrices=0))(B)
    np.testing.assert_allclose(s, np.linalg.svd(B)[1])
    np.testing.assert_allclose((u * s).dot(vt), B)
    close(nlinalg.svd(x, compute_uv=0), np.linalg.svd(B)[1], B)
    w, v = theano.function([x], nlinalg.eig(x))(S)
    np.testing.assert_allclose(S.dot(v), v * w)
    found = theano.function([x, y], nlinalg.lstsq(x, y))(B, A)
    np.testing.assert_allclose(found[0], np.linalg.lstsq(B, A, rcond=None)[0])


def test_products_and_norms():
    close(nlinalg.matrix_dot(x, x, y), A.dot(A).dot(B), A, B)
    close(nlinalg.matrix_power(x, 3), A.dot(A).dot(A), A)
    close(slinalg.kron(x, y), np.kron(A, B), A, B)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        close(nlinalg.norm(x, order), np.linalg.norm(A, order), A)
    v = T.dvector()
    for order in (1, 2, 3, np.inf, -np.inf):
        np.testing.assert_allclose(theano.function([v], nlinalg.norm(v, order))(A[0]), np.linalg.norm(A[0], order))


def test_systems():
    close(slinalg.cholesky(x), L, S)
    close(slinalg.Cholesky(lower=False)(x), L.T, S)
    close(slinalg.solve(x, y), np.linalg.solve(A, B), A, B)
    close(slinalg.solve_lower_triangular(x, y), np.linalg.solve(L, B), L, B)
    close(slinalg.Solve(A_structure="upper_triangular")(x, y), np.linalg.solve(L.T, B), L.T, B)
    close(slinalg.eigvalsh(x), np.linalg.eigvalsh(S), S)
    w, v = np.linalg.eigh(S / 50)
    close(slinalg.expm(x), (v * np.exp(w)).dot(v.T), S / 50)


def test_gradients():
    close(T.grad(T.log(nlinalg.det(x)), x), np.linalg.inv(A).T, A)
    unittest_tools.verify_grad(lambda a, b: slinalg.solve(a, b).sum(), [A, B], rng=R)
    unittest_tools.verify_grad(lambda a: T.exp(a).sum(), [B])
    unittest_tools.assert_allclose(A, A + 1e-9)
    with pytest.raises(AssertionError):
        unittest_tools.assert_allclose(A, A + 1e-3)


@pytest.mark.parametrize("n", [6, 7])
def test_fourier_transforms(n):
    a = R.randn(4, n)
    f = np.fft.rfft(a)
    close(T.fft.rfft(x), np.stack([f.real, f.imag], -1), a)
    close(T.fft.irfft(T.fft.rfft(x), is_odd=n % 2 == 1), a, a)
    f = np.fft.rfft(a, norm="ortho")
    close(T.fft.rfft(x, norm="ortho"), np.stack([f.real, f.imag], -1), a)
    with pytest.raises(ValueError):
        T.fft.rfft(x, norm="none")

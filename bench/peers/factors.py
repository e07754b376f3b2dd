"""factors.py: the suite linalg by any library that has NumPy's functions: cholesky, solve, eigh, svd."""
import numpy

from peer import DEVICE, report, rng
from shapes import LINALG


def numbers(work, n, batch):
    """A stack of matrices as the work needs them, and right hand sides."""
    x = 2 * rng.random((max(batch, 1), n, n), dtype=numpy.float32) - 1
    if work in ("cholesky", "eigh"):
        x = numpy.tril(x) + numpy.tril(x, -1).swapaxes(-1, -2)
    if work == "cholesky":
        x += n * numpy.eye(n, dtype=numpy.float32)
    b = 2 * rng.random((max(batch, 1), n, 1), dtype=numpy.float32) - 1
    return (x, b) if batch else (x[0], b[0])


def residual(work, x, b, y):
    """Relative to the norms of what was multiplied, in float64."""
    norm = lambda a: numpy.linalg.norm(numpy.ravel(a))  # noqa: E731
    y = [numpy.asarray(t.cpu() if hasattr(t, "cpu") else t, dtype=numpy.float64) for t in (y if isinstance(y, tuple) else (y,))]
    if work == "cholesky":
        return norm(x - y[0] @ y[0].swapaxes(-1, -2)) / norm(x)
    if work == "solve":
        return norm(x @ y[0] - b) / norm(x) / norm(y[0])
    if work == "eigh":
        return norm(x @ y[1] - y[1] * y[0][..., None, :]) / norm(x)
    return norm(x - y[0] * y[1][..., None, :] @ y[2]) / norm(x)


def run(calls, convert):
    """calls: by work, of x and b; convert: an array to the library's."""
    for work, sizes in LINALG:
        for n, batch in sizes:
            for dtype in ("float32", "float64"):
                x, b = (t.astype(dtype) for t in numbers(work, n, batch))
                args = convert(x), convert(b)
                once = lambda: calls[work](*args)  # noqa: E731
                wrong = residual(work, x.astype("float64"), b.astype("float64"), tuple(once()) if work in ("eigh", "svd") else once())
                report("linalg", f"{work} {n} b{batch}" if batch else f"{work} {n}", once, ("lapack", "own") if DEVICE == "cpu" else "", rel_err=wrong, seconds=0.25,
                       dtype=dtype)

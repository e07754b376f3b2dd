"""Sums of products by NumPy's einsum."""
import numpy

from peer import error, report, rng
from shapes import EINSUM

for case, subscripts, shapes in EINSUM:
    x = [2 * rng.random(shape, dtype=numpy.float32) - 1 for shape in shapes]
    want = numpy.einsum(subscripts, *(t.astype(numpy.float64) for t in x), optimize=True)
    once = lambda: numpy.einsum(subscripts, *x, optimize=True)  # noqa: E731
    report("einsum", case, once, rel_err=error(once(), want), seconds=0.5)

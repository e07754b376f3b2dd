"""Sorts, the k largest, searches, counts and running sums by NumPy, as one writes them."""
import numpy

from peer import error, report, tables


def largest(x, k):
    return numpy.sort(numpy.partition(x, x.shape[-1] - k, axis=-1)[..., -k:], axis=-1)[..., ::-1]


for case, dtype, op, x, a, k in tables():
    once, want = {
        "sort": lambda: (lambda: numpy.sort(x), None),
        "argsort": lambda: (lambda: numpy.argsort(x), None),
        "topk": lambda: (lambda: largest(x, k), None),
        "cumsum": lambda: (lambda: numpy.cumsum(x, axis=-1), numpy.cumsum(x, axis=-1, dtype=numpy.float64)),
        "searchsorted": lambda: (lambda: numpy.searchsorted(a, x), None),
        "bincount": lambda: (lambda: numpy.bincount(x), None),
    }[op]()
    report("tables", case, once, dtype=dtype, rel_err=0.0 if want is None else error(once(), want), seconds=0.5)

"""Softmax and log-sum-exp of 4096 rows of 1024 by NumPy, as one writes them."""
import numpy

from peer import floats, report

x = floats(4096, 1024)


def softmax():
    e = numpy.exp(x - x.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


def logsumexp():
    m = x.max(axis=1, keepdims=True)
    return numpy.log(numpy.exp(x - m).sum(axis=1)) + m[:, 0]


report("rows", "softmax 4096x1024", softmax, "fwd", moved=8 * x.size)
report("rows", "logsumexp 4096x1024", logsumexp, "fwd", moved=4 * x.size)

"""a*x + b*tanh(x) - c/(1 + x*x) of 64 million floats by NumPy, as one writes it."""
import numpy

from peer import error, floats, report

N = 64 << 20
x = floats(N)
a, b, c = (numpy.float32(v) for v in floats(3))


def chain(x):
    return a * x + b * numpy.tanh(x) - c / (1 + x * x)


report("elementwise", "chain 64M", lambda: chain(x), moved=8 * N, rel_err=error(chain(x[:99999]), chain(x[:99999].astype(float))))

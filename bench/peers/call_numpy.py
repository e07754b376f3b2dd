"""One op on four floats by NumPy: what a call costs."""
import numpy

from peer import floats, report

x, one, y = floats(4), numpy.float32(1), numpy.empty(4, dtype=numpy.float32)
report("call", "x + 1, 4 floats", lambda: numpy.add(x, one, out=y))

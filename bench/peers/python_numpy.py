"""The rows of the suite python by NumPy: exp of 230,400 floats into a new array, as the loop of Theano's tutorial does, and x + 1 of
four."""
import numpy

from peer import error, floats, report

x, few = floats(230400), floats(4)
wrong = error(numpy.exp(x), numpy.exp(x.astype(numpy.float64)))
report("python", "exp loop 230400", lambda: numpy.exp(x), moved=8 * x.size, rel_err=wrong)
report("python", "x + 1, 4 floats", lambda: few + 1)

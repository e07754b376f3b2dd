"""exp of 230,400 floats by NumPy: into an array that is there, and into a new one."""
import numpy

from peer import error, floats, report

x = floats(230400)
y = numpy.empty_like(x)
numpy.exp(x, out=y)
wrong = error(y, numpy.exp(x.astype(numpy.float64)))
report("exp", "exp 230400", lambda: numpy.exp(x, out=y), moved=8 * x.size, rel_err=wrong)
report("exp", "exp 230400 new", lambda: numpy.exp(x), moved=8 * x.size, rel_err=wrong)

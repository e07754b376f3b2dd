"""Matrix products by NumPy and the BLAS it brings."""
import numpy

from peer import error, report
from shapes import products

for case, a, b, c, flops, rows, want in products():
    numpy.matmul(a, b, out=c)
    report("gemm", case, lambda: numpy.matmul(a, b, out=c), flops=flops, rel_err=error(c[rows], want), seconds=0.4)

"""Matrix products by oneDNN's dnnl_sgemm; without the library nothing is printed."""
import ctypes
import ctypes.util
import sys

from peer import error, report
from shapes import products


def library():
    for name in ("libdnnl.so.3", "libdnnl.so.2", ctypes.util.find_library("dnnl")):
        try:
            return ctypes.CDLL(name) if name else None
        except OSError:
            continue
    return None


dnnl = library()
if dnnl is None:
    sys.exit("gemm_onednn: no library")
size, real, matrix = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
dnnl.dnnl_sgemm.argtypes = [ctypes.c_char, ctypes.c_char, size, size, size, real, matrix, size, matrix, size, real, matrix, size]


def laid(t):
    """How a matrix lies, and how far its lines are apart."""
    return ctypes.c_char(b"N" if t.flags.c_contiguous else b"T"), max(t.strides) // t.itemsize


for case, a, b, c, flops, rows, want in products():
    (m, k), n = a.shape, b.shape[1]
    (turn_a, lines_a), (turn_b, lines_b) = laid(a), laid(b)
    args = turn_a, turn_b, m, n, k, 1.0, a.ctypes.data, lines_a, b.ctypes.data, lines_b, 0.0, c.ctypes.data, n
    if dnnl.dnnl_sgemm(*args) != 0:
        sys.exit(f"gemm_onednn: {case} failed")
    report("gemm", case, lambda: dnnl.dnnl_sgemm(*args), flops=flops, rel_err=error(c[rows], want), seconds=0.4)

"""shapes.py: the products of the suite gemm: m, k, n of (m, k) times (k, n)."""
import numpy

from peer import ONLY, rng

SHAPES = [
    (500, 500, 500), (1000, 1000, 1000), (2000, 2000, 2000), (4096, 4096, 4096),
    (600, 784, 10), (784, 600, 10), (600, 784, 500), (4096, 4096, 16),
    (1, 4096, 4096), (16, 4096, 4096), (128, 128, 128), (64, 100000, 64),
]


def products():
    """Case, operands, room for the result, flops; and what is checked of the result: some rows in float64."""
    for m, k, n in SHAPES:
        if ONLY not in f"{m}x{k}x{n} ":
            continue
        a = (2 * rng.random((m, k), dtype=numpy.float32) - 1)
        b = (2 * rng.random((k, n), dtype=numpy.float32) - 1)
        rows = slice(0, m, max(1, m // 16))
        want = a[rows].astype(numpy.float64) @ b.astype(numpy.float64)
        yield f"{m}x{k}x{n}", a, b, numpy.empty((m, n), dtype=numpy.float32), 2.0 * m * k * n, rows, want

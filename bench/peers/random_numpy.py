"""A million random numbers of each distribution by NumPy's default generator."""
import numpy

from peer import moments, report, rng

N = 1000000
single = numpy.float32
weights = numpy.full(1000, 1e-3)
for case, dtype, once, mean, variance in [
    ("uniform 1e6", "float32", lambda: rng.random(N, dtype=single), 0.5, 1 / 12),
    ("uniform 1e6", "float64", lambda: rng.random(N), 0.5, 1 / 12),
    ("normal 1e6", "float32", lambda: rng.standard_normal(N, dtype=single), 0, 1),
    ("normal 1e6", "float64", lambda: rng.standard_normal(N), 0, 1),
    ("poisson 4 1e6", "int64", lambda: rng.poisson(4.0, N), 4, 4),
    ("poisson 100 1e6", "int64", lambda: rng.poisson(100.0, N), 100, 100),
    ("choice 1e6", "int64", lambda: rng.choice(N, N), (N - 1) / 2, (N * N - 1) / 12),
    ("choice once 1e6", "int64", lambda: rng.choice(N, N, replace=False), (N - 1) / 2, (N * N - 1) / 12),
    ("choice weights 1e6", "int64", lambda: rng.choice(1000, N, p=weights), 499.5, (1e6 - 1) / 12),
]:
    report("random", case, once, dtype=dtype, rel_err=moments(once(), mean, variance), seconds=0.5)

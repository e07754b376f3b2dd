"""A million random numbers of each distribution by PyTorch's default generator."""
import torch

from peer import DEVICE, THREADS, moments, report

torch.set_num_threads(THREADS)
N = 1000000
double = torch.float64
four, hundred = (torch.full((N,), mean, device=DEVICE) for mean in (4.0, 100.0))
weights = torch.full((1000,), 1e-3, dtype=double, device=DEVICE)
for case, dtype, once, mean, variance in [
    ("uniform 1e6", "float32", lambda: torch.rand(N, device=DEVICE), 0.5, 1 / 12),
    ("uniform 1e6", "float64", lambda: torch.rand(N, dtype=double, device=DEVICE), 0.5, 1 / 12),
    ("normal 1e6", "float32", lambda: torch.randn(N, device=DEVICE), 0, 1),
    ("normal 1e6", "float64", lambda: torch.randn(N, dtype=double, device=DEVICE), 0, 1),
    ("poisson 4 1e6", "int64", lambda: torch.poisson(four), 4, 4),
    ("poisson 100 1e6", "int64", lambda: torch.poisson(hundred), 100, 100),
    ("choice 1e6", "int64", lambda: torch.randint(N, (N,), device=DEVICE), (N - 1) / 2, (N * N - 1) / 12),
    ("choice once 1e6", "int64", lambda: torch.randperm(N, device=DEVICE), (N - 1) / 2, (N * N - 1) / 12),
    ("choice weights 1e6", "int64", lambda: torch.multinomial(weights, N, replacement=True), 499.5, (1e6 - 1) / 12),
]:
    report("random", case, once, dtype=dtype, rel_err=moments(once(), mean, variance), seconds=0.5)

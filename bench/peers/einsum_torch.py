"""Sums of products by PyTorch's einsum."""
import numpy
import torch

from peer import DEVICE, THREADS, error, report, rng
from shapes import EINSUM

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
for case, subscripts, shapes in EINSUM:
    x = [torch.from_numpy(2 * rng.random(shape, dtype=numpy.float32) - 1).to(DEVICE) for shape in shapes]
    once = lambda: torch.einsum(subscripts, *x)  # noqa: E731
    report("einsum", case, once, rel_err=error(once(), torch.einsum(subscripts, *(t.double() for t in x))), seconds=0.5)

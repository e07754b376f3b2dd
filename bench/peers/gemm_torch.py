"""Matrix products by PyTorch."""
import torch

from peer import THREADS, error, report
from shapes import products

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
for case, a, b, c, flops, rows, want in products():
    a, b, c = (torch.from_numpy(t) for t in (a, b, c))
    torch.mm(a, b, out=c)
    report("gemm", case, lambda: torch.mm(a, b, out=c), flops=flops, rel_err=error(c[rows], want), seconds=0.4)

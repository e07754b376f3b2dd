"""a*x + b*tanh(x) - c/(1 + x*x) of 64 million floats by PyTorch, eager; with COMPILE=1 by torch.compile too."""
import os

import torch

from peer import THREADS, error, floats, report

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
N = 64 << 20
x = torch.from_numpy(floats(N))
a, b, c = (float(v) for v in floats(3))


def chain(x):
    return a * x + b * torch.tanh(x) - c / (1 + x * x)


wrong = error(chain(x[:99999]), chain(x[:99999].double()))
report("elementwise", "chain 64M", lambda: chain(x), moved=8 * N, rel_err=wrong)
if os.environ.get("COMPILE") == "1":
    compiled = torch.compile(chain)
    compiled(x)
    report("elementwise", "chain 64M", lambda: compiled(x), algo="torch.compile", moved=8 * N, rel_err=wrong)

"""a*x + b*tanh(x) - c/(1 + x*x) of 64 million floats by PyTorch, eager; with COMPILE=1 by torch.compile too."""
import os

import torch

from peer import DEVICE, THREADS, error, floats, report, ways

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
N, NAME = (64 << 20, "64M") if DEVICE == "cpu" else (256 << 20, "256M")
x = torch.from_numpy(floats(N)).to(DEVICE)
a, b, c = (float(v) for v in floats(3))


def chain(x):
    return a * x + b * torch.tanh(x) - c / (1 + x * x)


wrong = error(chain(x[:99999]), chain(x[:99999].double()))
for way, once in ways(chain, x):
    report("elementwise", f"chain {NAME}", once, algo=way, moved=8 * N, rel_err=wrong)
if DEVICE != "cpu":
    y = torch.empty_like(x)
    report("elementwise", f"chain {NAME}", lambda: y.copy_(x), algo="copy", moved=8 * N)
elif os.environ.get("COMPILE") == "1":
    compiled = torch.compile(chain)
    compiled(x)
    report("elementwise", f"chain {NAME}", lambda: compiled(x), algo="compile", moved=8 * N, rel_err=wrong)

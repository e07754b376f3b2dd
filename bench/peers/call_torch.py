"""One op on four floats by PyTorch: what a call costs."""
import torch

from peer import THREADS, floats, report

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
x, y = torch.from_numpy(floats(4)), torch.empty(4)
report("call", "x + 1, 4 floats", lambda: torch.add(x, 1, out=y))

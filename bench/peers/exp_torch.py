"""exp of 230,400 floats by PyTorch: into a tensor that is there, and into a new one."""
import torch

from peer import DEVICE, THREADS, error, floats, report, ways

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
x = torch.from_numpy(floats(230400)).to(DEVICE)
y = torch.empty_like(x)
torch.exp(x, out=y)
wrong = error(y, torch.exp(x.double()))
for way, once in ways(lambda: torch.exp(x, out=y)):
    report("exp", "exp 230400", once, algo=way, moved=8 * x.numel(), rel_err=wrong)
report("exp", "exp 230400 new", lambda: torch.exp(x), moved=8 * x.numel(), rel_err=wrong)
if DEVICE != "cpu":
    report("exp", "exp 230400 home", lambda: torch.exp(x).cpu(), moved=8 * x.numel(), rel_err=wrong)

"""Softmax, log-sum-exp and layer normalisation of 4096 rows of 1024 by PyTorch, eager, forward and with gradients."""
import torch

from peer import DEVICE, THREADS, error, floats, report, ways

torch.set_num_threads(THREADS)
ROWS, COLUMNS = 4096, 1024
x = torch.from_numpy(floats(ROWS, COLUMNS)).to(DEVICE)
v = torch.from_numpy(floats(ROWS, COLUMNS)).to(DEVICE)
r = torch.from_numpy(floats(ROWS)).to(DEVICE)
w, b = torch.from_numpy(floats(COLUMNS)).to(DEVICE), torch.from_numpy(floats(COLUMNS)).to(DEVICE)

cases = {
    "softmax": (lambda x, w, b: torch.softmax(x, 1), v),
    "logsumexp": (lambda x, w, b: torch.logsumexp(x, 1), r),
    "layernorm": (lambda x, w, b: torch.nn.functional.layer_norm(x, (COLUMNS,), w, b, 1e-5), v),
}


def backward(f, g, dtype=torch.float32):
    args = [t.detach().to(dtype).requires_grad_() for t in (x, w, b)]
    g = g.to(dtype)

    def once():
        for t in args:
            t.grad = None
        f(*args).backward(g)
        return args[0].grad

    return once


for name, (f, g) in cases.items():
    case = f"{name} {ROWS}x{COLUMNS}"
    moved = 4 * ROWS * COLUMNS
    with torch.no_grad():
        wrong = error(f(x, w, b), f(x.double(), w.double(), b.double()))
        for way, once in ways(f, x, w, b):
            report("rows", case, once, "fwd", way, moved=2 * moved, rel_err=wrong)
    once = backward(f, g)
    wrong = error(once(), backward(f, g, torch.float64)())
    for way, once in [("", once), *([("compile", backward(torch.compile(f), g))] if DEVICE != "cpu" else [])]:
        report("rows", case, once, "fwd+bwd", way, moved=4 * moved, rel_err=wrong)

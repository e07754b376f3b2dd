"""The rows of the suite python by PyTorch, eager: exp of 230,400 floats into a new tensor, x + 1 of four, and a step of LeNet of
the Deep Learning Tutorials, with plain descent."""
import torch

import lenet_python as net
from peer import DEVICE, THREADS, error, floats, report

torch.set_num_threads(THREADS)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
n = torch.nn
with torch.no_grad():
    x = torch.from_numpy(floats(230400)).to(DEVICE)
    wrong = error(torch.exp(x), torch.exp(x.double()))
    report("python", "exp loop 230400", lambda: torch.exp(x), moved=8 * x.numel(), rel_err=wrong)
    if DEVICE != "cpu":
        report("python", "exp loop 230400 home", lambda: torch.exp(x).cpu(), moved=8 * x.numel(), rel_err=wrong, home=True)
    else:
        few = torch.from_numpy(floats(4))
        report("python", "x + 1, 4 floats", lambda: few + 1)

form = n.Sequential(n.Conv2d(1, net.FILTERS[0], 5), n.MaxPool2d(2), n.Tanh(), n.Conv2d(*net.FILTERS, 5), n.MaxPool2d(2), n.Tanh(), n.Flatten(),
                    n.Linear(net.FILTERS[1] * 16, 500), n.Tanh(), n.Linear(500, 10))
for layer, (w, b) in zip((form[0], form[3], form[7], form[9]), net.first):
    layer.weight.data = torch.from_numpy(w.T.copy() if w.ndim == 2 else w.copy())
    layer.bias.data = torch.from_numpy(b.copy())
form.to(DEVICE)
rule = torch.optim.SGD(form.parameters(), lr=net.RATE)
images, labels = torch.from_numpy(net.images).to(DEVICE), torch.from_numpy(net.labels).to(DEVICE)
turn = 0


def step(i):
    at = slice(i * net.BATCH, (i + 1) * net.BATCH)
    cost = n.functional.cross_entropy(form(images[at]), labels[at])
    rule.zero_grad(set_to_none=True)
    cost.backward()
    rule.step()
    return cost


def next_step():
    global turn
    turn = (turn + 1) % net.BATCHES
    return step(turn)


wrong = error(net.costs_of_first_steps(step), net.costs_in_float64())
report("python", "lenet step", next_step, "train", flops=net.FLOPS, rel_err=wrong, seconds=3 if DEVICE == "cpu" else 1)

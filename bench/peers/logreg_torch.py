"""A step of logistic regression, 600 x 784 x 10, by PyTorch, eager: cost, gradients, updates in place."""
import torch

from peer import THREADS, floats, report, rng

torch.set_num_threads(THREADS)
BATCH, PIXELS, CLASSES = 600, 784, 10
x = torch.from_numpy(floats(BATCH, PIXELS))
t = torch.from_numpy(rng.integers(0, CLASSES, BATCH))
W = torch.zeros(PIXELS, CLASSES, requires_grad=True)
b = torch.zeros(CLASSES, requires_grad=True)


def step():
    cost = torch.nn.functional.cross_entropy(torch.addmm(b, x, W), t)
    cost.backward()
    with torch.no_grad():
        for p in (W, b):
            p.add_(p.grad, alpha=-0.1)
            p.grad = None
    return cost


report("logreg", "step 600x784x10", step, "train", flops=4.0 * BATCH * PIXELS * CLASSES)

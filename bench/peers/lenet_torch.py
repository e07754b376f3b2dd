"""A training step of LeNet, batch 500, by PyTorch: eager, and compiled; and how long compiling takes until there is a first step."""
import os
import time

import torch

from peer import DEVICE, THREADS, floats, report, rng, settle

torch.set_num_threads(THREADS)
BATCH, CLASSES = 500, 10
FLOPS = 2.0 * BATCH * (24 * 24 * 32 * 25 * 2 + (8 * 8 * 64 * 32 * 25 + 1024 * 500 + 500 * CLASSES) * 3)
images = torch.from_numpy(floats(BATCH, 1, 28, 28)).to(DEVICE)
labels = torch.from_numpy(rng.integers(0, CLASSES, BATCH)).to(DEVICE)


def make():
    """The layers of models/lenet.txt, and a step of momentum: cost, share that is wrong, updates."""
    n = torch.nn
    net = n.Sequential(n.Conv2d(1, 32, 5), n.Tanh(), n.MaxPool2d(2), n.Conv2d(32, 64, 5), n.Tanh(), n.MaxPool2d(2), n.Flatten(),
                       n.Linear(1024, 500), n.Tanh(), n.Linear(500, CLASSES)).to(DEVICE)
    rule = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step(x, t):
        y = net(x)
        cost = n.functional.cross_entropy(y, t)
        wrong = (y.argmax(1) != t).float().mean()
        cost.backward()
        rule.step()
        rule.zero_grad(set_to_none=True)
        return cost, wrong

    return step


step = make()
report("lenet", "step", lambda: step(images, labels), "train", flops=FLOPS, seconds=3)
if os.environ.get("BENCH_COMPILE", "1") == "1":
    fast = torch.compile(make())
    start = time.perf_counter()
    fast(images, labels)
    settle()
    took = time.perf_counter() - start
    report("lenet", "step", lambda: fast(images, labels), "train", algo="compile", flops=FLOPS, seconds=3)
    print('{"suite": "lenet", "case": "cold, first result", "pass": "", "device": "%s", "dtype": "float32", "algo": "compile", "ms": %g, '
          '"ms_min": %g, "ms_max": %g, "rel_err": null}' % ((DEVICE,) + 3 * (took * 1e3,)))

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


def resident(name):
    """A line of /proc/self/status in MiB: VmRSS, what this process has in memory; VmHWM, the most it had."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def memory(most):
    """MiB stand where other rows have milliseconds."""
    print('{"suite": "lenet", "case": "step, MiB of memory", "pass": "train", "device": "%s", "dtype": "float32", "algo": "", "ms": %g, '
          '"ms_min": %g, "ms_max": %g, "rel_err": null}' % ((DEVICE,) + 3 * (most,)))


before = resident("VmRSS")
step = make()
for call in range(4):
    if call == 2:  # from here on: the peak of a step after the first
        with open("/proc/self/clear_refs", "w") as forget:
            forget.write("5")
        if DEVICE != "cpu":
            torch.cuda.reset_peak_memory_stats()
    step(images, labels)
memory(resident("VmHWM") - before if DEVICE == "cpu" else torch.cuda.max_memory_allocated() / 2**20)
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

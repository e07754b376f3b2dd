"""A training step of LeNet, batch 500, by PyTorch, and on a GPU an epoch of 50,000 pictures that lie there, in the same
steps: eager, compiled, and on a GPU compiled with CUDA graphs, autotuned, and eager but recorded whole as a CUDA graph, each
with channels innermost too; what an eager step takes of memory; and how long compiling takes until there is a first step."""
import torch

from peer import DEVICE, THREADS, WAYS, floats, report, rng, steps

torch.set_num_threads(THREADS)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
BATCH, CLASSES, EPOCH = 500, 10, 50000
FLOPS = 2.0 * BATCH * (24 * 24 * 32 * 25 * 2 + (8 * 8 * 64 * 32 * 25 + 1024 * 500 + 500 * CLASSES) * 3)
TRIED = ("eager", "compile") if DEVICE == "cpu" else ("eager", "compile", "reduce-overhead", "max-autotune", "graph")
FORMS = {"": torch.contiguous_format} | ({"last": torch.channels_last} if DEVICE != "cpu" else {})
images = torch.from_numpy(floats(BATCH, 1, 28, 28)).to(DEVICE)
labels = torch.from_numpy(rng.integers(0, CLASSES, BATCH)).to(DEVICE)


def make(form, compiled):
    """The layers of models/lenet.txt, and a step of momentum: cost, share that is wrong, updates."""
    n = torch.nn
    net = n.Sequential(n.Conv2d(1, 32, 5), n.Tanh(), n.MaxPool2d(2), n.Conv2d(32, 64, 5), n.Tanh(), n.MaxPool2d(2), n.Flatten(),
                       n.Linear(1024, 500), n.Tanh(), n.Linear(500, CLASSES)).to(DEVICE, memory_format=form)
    rule = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    @compiled
    def loss(x, t):
        y = net(x)
        return n.functional.cross_entropy(y, t), (y.argmax(1) != t).float().mean()

    def step(x=images, t=labels):
        cost, wrong = loss(x, t)
        cost.backward()
        rule.step()
        rule.zero_grad(set_to_none=True)
        return cost, wrong

    return step


def resident(name):
    """A line of /proc/self/status in MiB: VmRSS, what this process has in memory; VmHWM, the most it had."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def tell(case, which, algo, number):
    """One number, which stands where other rows have milliseconds."""
    print('{"suite": "lenet", "case": "%s", "pass": "%s", "device": "%s", "dtype": "float32", "algo": "%s", "ms": %g, '
          '"ms_min": %g, "ms_max": %g, "rel_err": null}' % ((case, which, DEVICE, algo) + 3 * (number,)), flush=True)


def memory():
    """Of a step after the first."""
    before = resident("VmRSS")
    step = make(torch.contiguous_format, lambda f: f)
    for call in range(4):
        if call == 2:
            with open("/proc/self/clear_refs", "w") as forget:
                forget.write("5")
            if DEVICE != "cpu":
                torch.cuda.reset_peak_memory_stats()
        step()
    tell("step, MiB of memory", "train", "", resident("VmHWM") - before if DEVICE == "cpu" else torch.cuda.max_memory_allocated() / 2**20)


def epoch(step, all_images, all_labels):
    """In an order drawn there; nothing comes home before its end."""
    order = torch.randperm(EPOCH, device=DEVICE)
    for at in range(0, EPOCH, BATCH):
        which = order[at:at + BATCH]
        step(all_images[which], all_labels[which])


if "eager" in WAYS:
    memory()
for form_name, form in FORMS.items():
    for algo, step, first in steps(lambda compiled: make(form, compiled), *TRIED, inputs=(images, labels)):
        name = "-".join(filter(None, [form_name, algo]))
        report("lenet", "step", step, "train", algo=name, flops=FLOPS, seconds=3 if DEVICE == "cpu" else 1)
        if DEVICE != "cpu":
            data = images.repeat(EPOCH // BATCH, 1, 1, 1), labels.repeat(EPOCH // BATCH)
            epoch(step, *data)
            report("lenet", "epoch of 50,000", lambda: epoch(step, *data), "train", algo=name, flops=EPOCH / BATCH * FLOPS)
        if algo and not form_name:
            tell("cold, first result", "", algo, first * 1e3)

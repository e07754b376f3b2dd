"""A step of an optimizer for all parameters of ResNet-50 by PyTorch: one fused kernel (fused), ops over lists of arrays (foreach);
and a copy of as many bytes."""
import torch

from peer import DEVICE, THREADS, report

torch.set_num_threads(THREADS)


def shapes():
    found, channels = [(64, 3, 7, 7), (64,), (64,)], 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for shape in [(width, channels, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)] + [(4 * width, channels, 1, 1)] * (block == 0):
                found += [shape, shape[:1], shape[:1]]
            channels = 4 * width
    return [*found, (1000, 2048), (1000,)]


def parameters():
    made = [torch.nn.Parameter(torch.randn(s, device=DEVICE) * 0.1) for s in shapes()]
    for p in made:
        p.grad = torch.rand_like(p) - 0.5
    return made


RULES = {"adam": (7, lambda p, **how: torch.optim.Adam(p, lr=0.01, **how)),
         "momentum": (5, lambda p, **how: torch.optim.SGD(p, lr=0.01, momentum=0.9, **how)),
         "sgd": (3, lambda p, **how: torch.optim.SGD(p, lr=0.01, **how))}
for rule, (arrays, make) in RULES.items():
    for how in ("fused", "foreach"):
        held = parameters()
        step = make(held, **{how: True}).step
        step()
        moved = arrays * 4 * sum(p.numel() for p in held)
        report("optimizers", f"{rule} resnet-50", step, algo=how, moved=moved)
    x = torch.zeros(moved // 8, device=DEVICE)
    y = torch.empty_like(x)
    report("optimizers", f"{rule} resnet-50", lambda: y.copy_(x), algo="copy", moved=moved)

"""train.py: training steps of the nets of models/*.txt by PyTorch, on noise; eager, compiled, and recorded.  The cases are
those of tools/monochord_bench_train.c."""
import torch

import peer
from modern import convnext_t, mobilenet_v2, regnet_y, u_net
from peer import DEVICE, THREADS, floats, report, rng, steps

n = torch.nn
MODES = [("float32", torch.float32, False), ("tf32", torch.float32, True), ("bfloat16", torch.bfloat16, False)]
CLASSES = 1000
TRIED = ("eager", "compile", "graph") if DEVICE != "cpu" else ("eager",)


def convs(channels, *parts):
    """(filters, taps, stride, pad) is a convolution with a rectifier, (taps, stride) a pool."""
    layers = []
    for part in parts:
        if len(part) == 2:
            layers.append(n.MaxPool2d(*part))
        else:
            layers += [n.Conv2d(channels, *part), n.ReLU()]
            channels = part[0]
    return layers


def dense(*parts):
    """Sizes, with None where half is dropped."""
    layers, have = [n.Flatten()], None
    for size in parts:
        if size is None:
            layers.append(n.Dropout(0.5))
        else:
            layers += [n.Linear(have, size), n.ReLU()] if have else []
            have = size
    return layers + [n.Linear(have, CLASSES)]


def alexnet():
    return n.Sequential(*convs(3, (64, 11, 4, 2), (3, 2), (192, 5, 1, 2), (3, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1), (3, 2)),
                        *dense(9216, None, 4096, None, 4096))


def vgg_a():
    def three(filters):
        return filters, 3, 1, 1

    pool = (2, 2)
    return n.Sequential(*convs(3, three(64), pool, three(128), pool, three(256), three(256), pool, three(512), three(512), pool,
                               three(512), three(512), pool), *dense(25088, 4096, None, 4096, None))


class Bottleneck(n.Module):
    def __init__(self, channels, wide, stride):
        super().__init__()
        out = 4 * wide
        self.deep = n.Sequential(n.Conv2d(channels, wide, 1, bias=False), n.BatchNorm2d(wide), n.ReLU(),
                                 n.Conv2d(wide, wide, 3, stride, 1, bias=False), n.BatchNorm2d(wide), n.ReLU(),
                                 n.Conv2d(wide, out, 1, bias=False), n.BatchNorm2d(out))
        self.past = n.Sequential()
        if channels != out or stride != 1:
            self.past = n.Sequential(n.Conv2d(channels, out, 1, stride, bias=False), n.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.deep(x) + self.past(x))


def resnet_50():
    layers, channels = [n.Conv2d(3, 64, 7, 2, 3, bias=False), n.BatchNorm2d(64), n.ReLU(), n.MaxPool2d(3, 2, 1)], 64
    for stage, (blocks, wide) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
        for block in range(blocks):
            layers.append(Bottleneck(channels, wide, 2 if stage and not block else 1))
            channels = 4 * wide
    return n.Sequential(*layers, n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(channels, CLASSES))


def momentum(rate, decay, keep=0.9):
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=keep, weight_decay=decay)


def adam(rate):
    """In the form that PyTorch records."""
    return lambda parameters: torch.optim.Adam(parameters, lr=rate, capturable=DEVICE != "cpu")


COLOURS = (3, 224, 224)
# name, model, images on a GPU, an image, rule: as in models/*.txt
NETS = [("alexnet", alexnet, 128, COLOURS, momentum(0.01, 1e-3)), ("vgg-a", vgg_a, 64, COLOURS, momentum(0.01, 1e-3)),
        ("resnet-50", resnet_50, 32, COLOURS, momentum(0.1, 2e-4)), ("mobilenet-v2", mobilenet_v2, 64, COLOURS, momentum(0.045, 4e-5)),
        ("convnext-t", convnext_t, 32, COLOURS, adam(0.000125)), ("regnet-y", regnet_y, 64, COLOURS, momentum(0.1, 5e-5)),
        ("u-net", u_net, 4, (1, 256, 256), momentum(0.001, 0, 0.99))]


def make(net, compiled, rule, x, t):
    """A step: cost, share that is wrong, updates."""
    rule = rule(net.parameters())

    @compiled
    def loss():
        y = net(x).flatten(0, -2)
        return n.functional.cross_entropy(y, t), (y.argmax(1) != t).float().mean()

    def step():
        cost, wrong = loss()
        cost.backward()
        rule.step()
        rule.zero_grad(set_to_none=True)
        return cost, wrong

    return step


def run(last=False):
    """last: images and filters with their channels innermost."""
    torch.set_num_threads(THREADS)
    torch.backends.cudnn.benchmark = True
    only, peer.ONLY = peer.ONLY, ""  # asked here, with the mode, before anything is made
    for name, net, batch, image, rule in NETS:
        batch = batch if DEVICE != "cpu" else 2
        for mode, dtype, tf32 in MODES if DEVICE != "cpu" else MODES[:1]:
            if only not in f"{name} b{batch} {mode}":
                continue
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
            form = torch.channels_last if last else torch.contiguous_format
            x = torch.from_numpy(floats(batch, *image)).to(DEVICE, dtype, memory_format=form)
            with torch.no_grad():
                places = net().to(DEVICE, dtype)(x).shape
            t = torch.from_numpy(rng.integers(0, places[-1], places[:-1])).to(DEVICE).flatten()
            for algo, step, _ in steps(lambda compiled: make(net().to(DEVICE, dtype, memory_format=form), compiled, rule, x, t), *TRIED):
                report("nets-train", f"{name} b{batch}", step, "train", algo, dtype=mode)

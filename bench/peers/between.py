"""between.py: the layers between convolutions by PyTorch: pool, norm, softmax, forward and with gradients; on a GPU compiled and
replayed too."""
import torch
import torch.nn.functional as F

from peer import DEVICE, THREADS, error, floats, report, ways


def batch(x, g, b):
    return F.batch_norm(x, None, None, g, b, training=True, eps=1e-4)


def lrn(x):
    return F.local_response_norm(x, 5, alpha=5 * 0.0001, beta=0.75, k=2.0)  # PyTorch divides alpha by the size


def max3(x):
    return F.max_pool2d(x, 3, 2)


def max3p(x):
    return F.max_pool2d(x, 3, 2, 1)


def max2(x):
    return F.max_pool2d(x, 2, 2)


def mean7(x):
    return F.avg_pool2d(x, 7, 7)


def mean3(x):
    return F.avg_pool2d(x, 3, 1, 1)


CASES = {
    "pool": [
        ("max 3x3 s2 16x96x55x55", max3, (16, 96, 55, 55)), ("max 3x3 s2 p1 16x64x112x112", max3p, (16, 64, 112, 112)),
        ("max 2x2 16x64x112x112", max2, (16, 64, 112, 112)), ("max 2x2 500x32x24x24", max2, (500, 32, 24, 24)),
        ("max 2x2 16x32x24x24", max2, (16, 32, 24, 24)), ("mean 7x7 16x2048x7x7", mean7, (16, 2048, 7, 7)),
        ("mean 3x3 p1 16x192x28x28", mean3, (16, 192, 28, 28)),
    ],
    "norm": [("lrn 16x96x27x27", lrn, (16, 96, 27, 27)), ("lrn 16x64x56x56", lrn, (16, 64, 56, 56)), ("batch 32x64x56x56", batch, (32, 64, 56, 56))],
    "softmax": [
        ("rows 600x10", lambda x: torch.softmax(x, 1), (600, 10)), ("rows 128x1000", lambda x: torch.softmax(x, 1), (128, 1000)),
        ("rows 64x32000", lambda x: torch.softmax(x, 1), (64, 32000)), ("log rows 128x1000", lambda x: torch.log_softmax(x, 1), (128, 1000)),
        ("channels 8x21x64x64", lambda x: torch.softmax(x, 1), (8, 21, 64, 64)),
    ],
}


def gradient(f, x, rest, v):
    x = x.detach().clone().requires_grad_()

    def once():
        x.grad = None
        f(x, *rest).backward(v)
        return x.grad

    return once


def run(suite):
    torch.set_num_threads(THREADS)
    for name, f, shape in CASES[suite]:
        x = torch.from_numpy(floats(*shape)).to(DEVICE)
        rest = [torch.from_numpy(floats(shape[1])).to(DEVICE) for _ in range(2)] if f is batch else []
        with torch.no_grad():
            y = f(x, *rest)
            wrong = error(y, f(x.double(), *[r.double() for r in rest]))
            for way, once in ways(f, x, *rest):
                report(suite, name, once, "fwd", way, rel_err=wrong, seconds=0.5)
        v = torch.from_numpy(floats(*y.shape)).to(DEVICE)
        once = gradient(f, x, rest, v)
        wrong = error(once(), gradient(f, x.double(), [r.double() for r in rest], v.double())())
        for way, once in [("", once), *([("compile", gradient(torch.compile(f), x, rest, v))] if DEVICE != "cpu" else [])]:
            report(suite, name, once, "fwd+bwd", way, rel_err=wrong, seconds=0.5)

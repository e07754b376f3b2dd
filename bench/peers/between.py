"""between.py: the layers between convolutions by PyTorch: pool, norm, softmax, and the norms of zoo, forward and with gradients; on a GPU
compiled and replayed too."""
import torch
import torch.nn.functional as F

from networks import RATES, shard
from peer import DEVICE, ONLY, SECONDS, THREADS, WAYS, error, floats, recorded, report, wanted, ways
from shapes import BETWEEN


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


def softmax(x):
    return torch.softmax(x, 1)


def logsoftmax(x):
    return torch.log_softmax(x, 1)


def layernorm(x, g, b):
    return F.layer_norm(x, x.shape[1:], g, b)


def copy(x):
    return 2 * x


def gradients(f, *args):
    """Of all inputs; the last argument is the gradient in y, the first result that in x."""
    free, v = [a.detach().clone().requires_grad_() for a in args[:-1]], args[-1]
    return lambda: torch.autograd.grad(f(*free), free, v)


def zoo():
    """Norms.  On a GPU each call is recorded, as the convolutions are, eager and compiled."""
    torch.set_num_threads(THREADS)
    norms = [layer for layer in shard() if layer[1] not in ("conv", "product") and wanted(layer[0], "fwd", "fwd+bwd")]
    for mode, dtype in [("float32", torch.float32)] + [("bfloat16", torch.bfloat16)] * (DEVICE != "cpu"):
        for name, word, shape in norms + RATES[1:] * (mode == "float32"):
            f, rate = globals()[word], name.startswith("rate")
            args = [torch.from_numpy(floats(*size)).to(DEVICE, dtype) for size in [shape] + [shape[1:2]] * (2 if word in ("batch", "layernorm") else 0)]
            v = torch.from_numpy(floats(*shape)).to(DEVICE, dtype)
            limits = {"seconds": 0.05, "dtype": mode, "always": rate}
            for way in ["eager"] + ["compile"] * (DEVICE != "cpu" and not rate and "compile" in WAYS):
                made = torch.compile(f) if way == "compile" else f
                calls = {"fwd": lambda: made(*args), "fwd+bwd": gradients(made, *args, v)}
                for which in ["fwd"] if rate else [which for which in calls if ONLY in f"{name} {which}"]:
                    once = recorded(calls[which]) if DEVICE != "cpu" else calls[which]
                    moved = args[0].nbytes * (2 if which == "fwd" else 4)
                    report("zoo", name, once, which, "" if way == "eager" else way, moved=moved, **limits)


def gradient(f, x, rest, v):
    x = x.detach().clone().requires_grad_()

    def once():
        x.grad = None
        f(x, *rest).backward(v)
        return x.grad

    return once


def run(suite):
    torch.set_num_threads(THREADS)
    for name, word, shape in BETWEEN[suite]:
        f = globals()[word]
        x = torch.from_numpy(floats(*shape)).to(DEVICE)
        rest = [torch.from_numpy(floats(shape[1])).to(DEVICE) for _ in range(2)] if f is batch else []
        with torch.no_grad():
            y = f(x, *rest)
            wrong = error(y, f(x.double(), *[r.double() for r in rest]))
            for way, once in ways(f, x, *rest):
                report(suite, name, once, "fwd", way, rel_err=wrong, seconds=SECONDS / 2)
        v = torch.from_numpy(floats(*y.shape)).to(DEVICE)
        once = gradient(f, x, rest, v)
        wrong = error(once(), gradient(f, x.double(), [r.double() for r in rest], v.double())())
        for way, once in [("", once), *([("compile", gradient(torch.compile(f), x, rest, v))] if DEVICE != "cpu" else [])]:
            report(suite, name, once, "fwd+bwd", way, rel_err=wrong, seconds=SECONDS / 2)

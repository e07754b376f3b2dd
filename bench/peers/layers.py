"""layers.py: convolutions in three passes by PyTorch."""
import numpy
import torch

from peer import DEVICE, THREADS, report, rng
from shapes import LAYERS

MODES = {"narrow": [("tf32", torch.float32), ("bfloat16", torch.bfloat16)]}
SECONDS = {"conv": 0.5, "conv128": 0.1, "narrow": 0.3, "nets": 0.1, "few": 0.1}
CALLS = {"conv": 3, "conv128": 1, "narrow": 1, "nets": 3, "few": 3}  # at least; some take seconds
FORWARD = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}
LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


def run(suite, last=False):
    """last: images and filters with their channels innermost, where PyTorch has such a layout."""
    torch.set_num_threads(THREADS)
    torch.backends.cudnn.benchmark = True
    for name, dtype in MODES.get(suite, [("float32", torch.float32)]):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        run_mode(suite, last, name, dtype)


def run_mode(suite, last, mode, dtype):
    usual = dtype
    for name, n, c, size, f, k, stride, pad, axes in LAYERS[suite]:
        dtype = torch.float64 if name.startswith("double") else usual
        limits = {"seconds": SECONDS[suite], "calls": CALLS[suite], "dtype": "float64" if dtype == torch.float64 else mode}
        out = (size + 2 * pad - k) // stride + 1
        shapes = ((n, c) + (size,) * axes, (f, c) + (k,) * axes, (n, f) + (out,) * axes)
        x, w, y = (torch.from_numpy((2 * rng.random(s, dtype=numpy.float32) - 1)).to(DEVICE, dtype) for s in shapes)
        if last and axes not in LAST:
            continue
        if last:
            x, w, y = (t.contiguous(memory_format=LAST[axes]) for t in (x, w, y))
        flops = 2.0 * n * f * c * (out * k) ** axes

        def backward(which):
            mask = [which == "inputs", which == "weights", False]
            return torch.ops.aten.convolution_backward(y, x, w, None, [stride] * axes, [pad] * axes, [1] * axes, False, [0] * axes, 1, mask)

        with torch.no_grad():
            report(suite, name, lambda: FORWARD[axes](x, w, None, stride, pad), "fwd", flops=flops, **limits)
            report(suite, name, lambda: backward("inputs"), "inputs", flops=flops, **limits)
            report(suite, name, lambda: backward("weights"), "weights", flops=flops, **limits)

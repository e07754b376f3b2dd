"""layers.py: convolutions in three passes by PyTorch."""
import math

import numpy
import torch

from peer import DEVICE, ONLY, THREADS, recorded, report, rng
from shapes import LAYERS, shard

MODES = {"narrow": [("tf32", torch.float32), ("bfloat16", torch.bfloat16)]}
if DEVICE != "cpu":  # device time: recorded calls, as ours are, by the fastest of all of cuDNN's engines
    MODES["zoo"] = [("float32", torch.float32), ("bfloat16", torch.bfloat16)]
SECONDS = {"conv": 0.5, "conv128": 0.1, "narrow": 0.3, "nets": 0.1, "few": 0.1, "zoo": 0.05}
CALLS = {"conv": 3, "conv128": 1, "narrow": 1, "nets": 3, "few": 3, "zoo": 3}  # at least; some take seconds
FORWARD = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}
LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


def run(suite, last=False):
    """last: images and filters with their channels innermost, where PyTorch has such a layout."""
    torch.set_num_threads(THREADS)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0 if suite == "zoo" and DEVICE != "cpu" else 10
    for name, dtype in MODES.get(suite, [("float32", torch.float32)]):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        run_mode(suite, last, name, dtype)


def run_mode(suite, last, mode, dtype):
    usual = dtype
    rows = shard() if suite == "zoo" else [(*layer[:3], layer[3:4] * layer[8], layer[4], layer[5:6] * layer[8], *layer[6:8], 1, 1) for layer in LAYERS[suite]]
    for name, n, c, size, f, k, stride, pad, dilation, groups in rows:
        axes, pad = len(size), [pad if taps > 1 else 0 for taps in k]  # along axes with more than one tap
        dtype = torch.float64 if name.startswith("double") else usual
        limits = {"seconds": SECONDS[suite], "calls": CALLS[suite], "dtype": "float64" if dtype == torch.float64 else mode}
        out = tuple((i + 2 * p - (taps - 1) * dilation - 1) // stride + 1 for i, p, taps in zip(size, pad, k))
        shapes = ((n, c) + size, (f, c // groups) + k, (n, f) + out)
        x, w, y = (torch.from_numpy((2 * rng.random(s, dtype=numpy.float32) - 1)).to(DEVICE, dtype) for s in shapes)
        if last and axes not in LAST:
            continue
        if last:
            x, w, y = (t.contiguous(memory_format=LAST[axes]) for t in (x, w, y))
        flops = 2.0 * n * f * (c // groups) * math.prod(out) * math.prod(k)

        def backward(which):
            mask = [which == "inputs", which == "weights", False]
            return torch.ops.aten.convolution_backward(y, x, w, None, [stride] * axes, pad, [dilation] * axes, False, [0] * axes, groups, mask)

        calls = {"fwd": lambda: FORWARD[axes](x, w, None, stride, pad, dilation, groups), "inputs": lambda: backward("inputs"),
                 "weights": lambda: backward("weights")}
        with torch.no_grad():
            for which, call in calls.items():
                if ONLY in f"{name} {which}":
                    again = recorded(call) if suite == "zoo" and DEVICE != "cpu" else call
                    report(suite, name, again, which, flops=flops, **limits)

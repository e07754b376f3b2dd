"""layers.py: convolutions in three passes by PyTorch, and the products of the suite zoo."""
import math

import numpy
import torch

from networks import RATES, along, extents, shard
from peer import DEVICE, ONLY, THREADS, recorded, report, rng, wanted
from shapes import LAYERS

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
        if suite == "zoo" and not last:
            products(name, dtype)


def convolutions(suite):
    """(name, sizes as of networks.zoo)"""
    if suite == "zoo":
        return [(name, sizes) for name, what, sizes in shard() if what == "conv" and wanted(name, "fwd", "inputs", "weights")]
    return [(name, (n, c, (size,) * axes, f, (k,) * axes, *along((k,) * axes, stride, pad), 1, 1))
            for name, n, c, size, f, k, stride, pad, axes in LAYERS[suite]]


def run_mode(suite, last, mode, dtype):
    usual = dtype
    for name, (n, c, size, f, k, stride, pad, dilation, groups) in convolutions(suite):
        axes = len(size)
        dtype = torch.float64 if name.startswith("double") else usual
        limits = {"seconds": SECONDS[suite], "calls": CALLS[suite], "dtype": "float64" if dtype == torch.float64 else mode}
        out = extents(size, k, stride, pad, dilation)
        shapes = ((n, c) + size, (f, c // groups) + k, (n, f) + out)
        x, w, y = (torch.from_numpy((2 * rng.random(s, dtype=numpy.float32) - 1)).to(DEVICE, dtype) for s in shapes)
        if last and axes not in LAST:
            continue
        if last:
            x, w, y = (t.contiguous(memory_format=LAST[axes]) for t in (x, w, y))
        flops = 2.0 * n * f * (c // groups) * math.prod(out) * math.prod(k)

        def backward(which):
            mask = [which == "inputs", which == "weights", False]
            return torch.ops.aten.convolution_backward(y, x, w, None, stride, pad, [dilation] * axes, False, [0] * axes, groups, mask)

        calls = {"fwd": lambda: FORWARD[axes](x, w, None, stride, pad, dilation, groups), "inputs": lambda: backward("inputs"),
                 "weights": lambda: backward("weights")}
        time(suite, name, calls, flops, limits)


def time(suite, name, calls, flops, limits):
    with torch.no_grad():
        for which, call in calls.items():
            if ONLY in f"{name} {which}" or name.startswith("rate"):
                again = recorded(call) if suite == "zoo" and DEVICE != "cpu" else call
                report(suite, name, again, which, flops=flops, always=name.startswith("rate"), **limits)


def products(mode, dtype):
    """Dense layers, weights as PyTorch keeps them, and the rate of products."""
    for name, (m, c, f) in [(name, sizes) for name, what, sizes in RATES[:1] + shard() if what == "product"]:
        if not name.startswith("rate") and not wanted(name, "fwd", "inputs", "weights"):
            continue
        x, w, y = (torch.from_numpy(2 * rng.random(s, dtype=numpy.float32) - 1).to(DEVICE, dtype) for s in ((m, c), (f, c), (m, f)))
        calls = {"fwd": lambda: x @ w.T, "inputs": lambda: y @ w, "weights": lambda: y.T @ x}
        calls = {"fwd": calls["fwd"]} if name.startswith("rate") else calls
        time("zoo", name, calls, 2.0 * m * c * f, {"seconds": SECONDS["zoo"], "calls": CALLS["zoo"], "dtype": mode})

"""The suite zoo by oneDNN where PyTorch runs code of its own: small pointwise layers and small ones with three axes, of one image.
Tensors that oneDNN keeps make PyTorch call it."""
import math

import numpy
import torch

from layers import CALLS, FORWARD, SECONDS, convolutions, time
from networks import extents
from peer import DEVICE, THREADS, rng

torch.set_num_threads(THREADS)
for name, (n, c, size, f, k, stride, pad, dilation, groups) in convolutions("zoo") if DEVICE == "cpu" else []:
    axes, out = len(size), extents(size, k, stride, pad, dilation)
    shapes = ((n, c) + size, (f, c // groups) + k, (n, f) + out)
    x, w, y = (torch.from_numpy(2 * rng.random(s, dtype=numpy.float32) - 1) for s in shapes)
    backend = torch._C._select_conv_backend(x, w, None, stride, pad, [dilation] * axes, False, [0] * axes, groups, [f])
    if backend == torch._C._ConvBackend.Mkldnn:
        continue
    x, y, kept = x.to_mkldnn(), y.to_mkldnn(), w.to_mkldnn()

    def backward(which):
        mask = [which == "inputs", which == "weights", False]
        return torch.ops.aten.convolution_backward(y, x, w, None, stride, pad, [dilation] * axes, False, [0] * axes, groups, mask)

    calls = {"fwd": lambda: FORWARD[axes](x, kept, None, stride, pad, dilation, groups), "inputs": lambda: backward("inputs"),
             "weights": lambda: backward("weights")}
    flops = 2.0 * n * f * (c // groups) * math.prod(out) * math.prod(k)
    time("zoo", name, calls, flops, {"seconds": SECONDS["zoo"], "calls": CALLS["zoo"]})

"""Five convolutions in three passes by PyTorch, in its usual layout."""
import numpy
import torch

from peer import THREADS, report, rng

torch.set_num_threads(THREADS)
BATCH = 16
for name, c, size, f, k in [("L1", 3, 128, 96, 11), ("L2", 64, 64, 128, 9), ("L3", 128, 32, 128, 9), ("L4", 128, 16, 128, 7), ("L5", 384, 13, 384, 3)]:
    out = size - k + 1
    x, w, y = (torch.from_numpy((2 * rng.random(s, dtype=numpy.float32) - 1)) for s in ((BATCH, c, size, size), (f, c, k, k), (BATCH, f, out, out)))
    flops = 2.0 * BATCH * out * out * f * c * k * k

    def backward(which):
        mask = [which == "inputs", which == "weights", False]
        return torch.ops.aten.convolution_backward(y, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask)

    with torch.no_grad():
        report("conv", f"{name} b{BATCH}", lambda: torch.nn.functional.conv2d(x, w), which="fwd", flops=flops, seconds=0.5)
        report("conv", f"{name} b{BATCH}", lambda: backward("inputs"), which="inputs", flops=flops, seconds=0.5)
        report("conv", f"{name} b{BATCH}", lambda: backward("weights"), which="weights", flops=flops, seconds=0.5)

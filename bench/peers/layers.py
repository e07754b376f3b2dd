"""layers.py: convolutions in three passes by PyTorch; the table is that of tools/monochord_bench_conv.c."""
import numpy
import torch

from peer import DEVICE, THREADS, report, rng

FIVE = [("L1", 3, 128, 96, 11), ("L2", 64, 64, 128, 9), ("L3", 128, 32, 128, 9), ("L4", 128, 16, 128, 7), ("L5", 384, 13, 384, 3)]
# name, images, channels, size, filters, taps, stride, pad, axes
LAYERS = {
    "conv": [(f"{name} b16", 16, c, size, f, k, 1, 0, 2) for name, c, size, f, k in FIVE],
    "conv128": [(f"{name} b128", 128, c, size, f, k, 1, 0, 2) for name, c, size, f, k in FIVE],
    "nets": [
        ("pair 5x5 b32", 32, 64, 32, 128, 5, 1, 0, 2), ("pair 28x28 b32", 32, 64, 32, 128, 28, 1, 0, 2),
        ("LeNet 1 b500", 500, 1, 28, 32, 5, 1, 0, 2), ("LeNet 2 b500", 500, 32, 12, 64, 5, 1, 0, 2),
        ("VGG 1.1 b4", 4, 3, 224, 64, 3, 1, 1, 2), ("VGG 2.2 b4", 4, 128, 112, 128, 3, 1, 1, 2),
        ("VGG 3.2 b4", 4, 256, 56, 256, 3, 1, 1, 2), ("VGG 5.1 b4", 4, 512, 14, 512, 3, 1, 1, 2),
        ("VGG 5.1 b1", 1, 512, 14, 512, 3, 1, 1, 2),
        ("ResNet 7x7 b4", 4, 3, 224, 64, 7, 2, 3, 2), ("ResNet 7x7 b1", 1, 3, 224, 64, 7, 2, 3, 2),
        ("ResNet 1x1 56 b4", 4, 256, 56, 64, 1, 1, 0, 2), ("ResNet 3x3 56 b4", 4, 64, 56, 64, 3, 1, 1, 2),
        ("ResNet 3x3 56 b1", 1, 64, 56, 64, 3, 1, 1, 2), ("ResNet 3x3 s2 b4", 4, 128, 56, 128, 3, 2, 1, 2),
        ("ResNet 1x1 14 b4", 4, 1024, 14, 256, 1, 1, 0, 2), ("ResNet 3x3 7 b4", 4, 512, 7, 512, 3, 1, 1, 2),
        ("one axis b8", 8, 64, 4096, 64, 9, 1, 0, 1), ("one axis s2 b8", 8, 64, 4096, 64, 9, 2, 4, 1),
        ("three axes b2", 2, 16, 32, 32, 3, 1, 1, 3), ("three axes 64 b2", 2, 64, 16, 64, 3, 1, 1, 3),
        ("double L5 b8", 8, 384, 13, 384, 3, 1, 0, 2), ("double 5x5 b8", 8, 64, 32, 128, 5, 1, 0, 2),
        ("double three axes b2", 2, 64, 16, 64, 3, 1, 1, 3),
    ],
}
LAYERS["narrow"] = LAYERS["conv128"]
MODES = {"narrow": [("tf32", torch.float32), ("bfloat16", torch.bfloat16)]}
SECONDS = {"conv": 0.5, "conv128": 0.1, "narrow": 0.1, "nets": 0.1}
CALLS = {"conv": 3, "conv128": 1, "narrow": 1, "nets": 3}  # at least; some take seconds
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

"""shapes.py: what is computed, by ours and by every peer: the products of the suite gemm, the layers of the suites of
convolutions (as in tools/monochord_bench_conv.c), and those of the suites pool, norm, softmax, einsum
(tools/monochord_bench_layers.c) and linalg.  networks.py has those of zoo."""
import numpy

from peer import ONLY, rng

SHAPES = [
    (500, 500, 500), (1000, 1000, 1000), (2000, 2000, 2000), (4096, 4096, 4096),
    (600, 784, 10), (784, 600, 10), (600, 784, 500), (4096, 4096, 16),
    (1, 4096, 4096), (16, 4096, 4096), (128, 128, 128), (64, 100000, 64),
    (500, 1024, 500), (500, 500, 1024, "nt"), (1024, 500, 500, "tn"), (500, 500, 10), (500, 10, 500, "nt"), (500, 500, 10, "tn"),
]

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
LAYERS["few"] = [layer for layer in LAYERS["nets"] + LAYERS["conv"] if layer[0] in ("LeNet 1 b500", "VGG 1.1 b4", "ResNet 7x7 b4", "L1 b16")]

BETWEEN = {  # case, function, size
    "pool": [
        ("max 3x3 s2 16x96x55x55", "max3", (16, 96, 55, 55)), ("max 3x3 s2 p1 16x64x112x112", "max3p", (16, 64, 112, 112)),
        ("max 2x2 16x64x112x112", "max2", (16, 64, 112, 112)), ("max 2x2 500x32x24x24", "max2", (500, 32, 24, 24)),
        ("max 2x2 16x32x24x24", "max2", (16, 32, 24, 24)), ("mean 7x7 16x2048x7x7", "mean7", (16, 2048, 7, 7)),
        ("mean 3x3 p1 16x192x28x28", "mean3", (16, 192, 28, 28)),
    ],
    "norm": [
        ("lrn 16x96x27x27", "lrn", (16, 96, 27, 27)), ("lrn 16x64x56x56", "lrn", (16, 64, 56, 56)),
        ("batch 32x64x56x56", "batch", (32, 64, 56, 56)),
    ],
    "softmax": [
        ("rows 600x10", "softmax", (600, 10)), ("rows 128x1000", "softmax", (128, 1000)), ("rows 64x32000", "softmax", (64, 32000)),
        ("rows 8x262144", "softmax", (8, 262144)), ("log rows 128x1000", "logsoftmax", (128, 1000)), ("channels 8x21x64x64", "softmax", (8, 21, 64, 64)),
    ],
}

# case, subscripts, sizes of operands: as in tools/monochord_bench_layers.c
EINSUM = [
    ("ij,jk->ik 512", "ij,jk->ik", [(512, 512), (512, 512)]),
    ("bij,bjk->bik 64x64", "bij,bjk->bik", [(64, 64, 64), (64, 64, 64)]),
    ("ij,kj->ik 256x1024", "ij,kj->ik", [(256, 1024), (256, 1024)]),
    ("bi,ij,bj->b 256", "bi,ij,bj->b", [(256, 256), (256, 256), (256, 256)]),
    ("bqhd,bkhd->bhqk 8x128", "bqhd,bkhd->bhqk", [(8, 128, 8, 64), (8, 128, 8, 64)]),
    ("bhqk,bkhd->bqhd 8x128", "bhqk,bkhd->bqhd", [(8, 8, 128, 128), (8, 128, 8, 64)]),
    ("ijk,kl,jm->ilm 32x64", "ijk,kl,jm->ilm", [(32, 64, 64), (64, 16), (64, 16)]),
    ("bi,bi->b 4096x128", "bi,bi->b", [(4096, 128), (4096, 128)]),
    ("i,j->ij 1000", "i,j->ij", [(1000,), (1000,)]),
    ("ij->i 2000x1000", "ij->i", [(2000, 1000)]),
    ("ii->i 1000", "ii->i", [(1000, 1000)]),
    ("ii-> 1000", "ii->", [(1000, 1000)]),
]

# work, sizes and numbers of matrices (0: one matrix), as in tools/monochord_bench_linalg.c
LARGE = [(16, 0), (32, 0), (64, 0), (128, 0), (256, 0), (512, 0), (1024, 0), (2048, 0), (16, 1000), (64, 100), (256, 8)]
SPECTRA = [(16, 0), (32, 0), (64, 0), (128, 0), (256, 0), (512, 0), (16, 1000), (64, 20)]
LINALG = [("cholesky", LARGE), ("solve", LARGE), ("eigh", SPECTRA), ("svd", SPECTRA)]


def products():
    """Case, operands, which may lie the other way, room for the result, flops; and what is checked of the result: some rows in float64."""
    for m, k, n, *turned in SHAPES:
        case = " ".join([f"{m}x{k}x{n}", *turned])
        if ONLY not in case + " ":
            continue
        a = 2 * (rng.random((k, m), dtype=numpy.float32).T if "tn" in turned else rng.random((m, k), dtype=numpy.float32)) - 1
        b = 2 * (rng.random((n, k), dtype=numpy.float32).T if "nt" in turned else rng.random((k, n), dtype=numpy.float32)) - 1
        rows = slice(0, m, max(1, m // 16))
        want = a[rows].astype(numpy.float64) @ b.astype(numpy.float64)
        yield case, a, b, numpy.empty((m, n), dtype=numpy.float32), 2.0 * m * k * n, rows, want

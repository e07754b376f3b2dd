"""The checksums in tests/t_conv_chain.c, by NumPy in integers. By hand: python3 tests/conv_chain.py"""
import numpy as np

# images, channels of x, height, width; channels of the first, second and third pointwise convolution; taps of the
# depthwise ones
CASES = [(4, 3, 121, 123, 24, 16, 96, 3), (6, 3, 90, 94, 40, 8, 48, 5), (1, 3, 225, 231, 16, 16, 96, 3), (1, 2, 241, 240, 8, 24, 144, 5)]


def numbers(shape, a, m, low):
    return (np.arange(np.prod(shape), dtype=np.int64) * a % m + low).reshape(shape)


def conv(x, w, stride=1, groups=1):
    """Cross-correlation's mirror image, as formulas have it: filters are flipped. Borders are half of the taps."""
    f, each, kh, kw = w.shape
    p, q = kh // 2, kw // 2
    x = np.pad(x, ((0, 0), (0, 0), (p, p), (q, q)))
    rows, columns = (x.shape[2] - kh) // stride + 1, (x.shape[3] - kw) // stride + 1
    y = np.zeros((x.shape[0], f, rows, columns), np.int64)
    for i in range(kh):
        for j in range(kw):
            part = x[:, :, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
            tap = w[:, :, kh - 1 - i, kw - 1 - j]
            y += part * tap[:, 0][:, None, None] if groups > 1 else np.einsum("ncab,fc->nfab", part, tap)
    return y


for n, c, height, width, first, second, third, taps in CASES:
    x = numbers((n, c, height, width), 7919, 7, -3)
    y = np.clip(conv(x, numbers((first, c, 3, 3), 31, 3, -1), 2) + numbers((first, 1, 1), 1, 3, -1), 0, 6)
    y = np.clip(conv(y, numbers((first, 1, taps, taps), 17, 3, -1), 1, first), 0, 6)
    y = conv(y, numbers((second, first, 1, 1), 13, 3, -1))
    y = np.clip(conv(y, numbers((third, second, 1, 1), 11, 3, -1)) - 1, 0, 6)
    y = np.clip(conv(y, numbers((third, 1, taps, taps), 7, 3, -1), 2, third) + np.arange(y.shape[3] // 2 + y.shape[3] % 2), 0, 60)
    y = conv(y, numbers((10, third, 1, 1), 5, 3, -1)).ravel()
    print(y.size, int((y * (np.arange(y.size) % 1009 + 1)).sum()))

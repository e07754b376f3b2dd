"""The suite corrmm as CorrMM was before images were batched: columns of one image, one matrix product, the next image."""
import torch
from torch.nn.functional import fold, unfold

from layers import CALLS, SECONDS
from peer import DEVICE, THREADS, report, rng
from shapes import LAYERS

torch.set_num_threads(THREADS)
torch.backends.cuda.matmul.allow_tf32 = False
for name, n, c, size, f, k, _, _, _ in LAYERS["conv128"]:
    out = size - k + 1
    shapes = ((n, c, size, size), (f, c * k * k), (n, f, out * out))
    x, w, y = (torch.from_numpy((2 * rng.random(s, dtype="float32") - 1)).to(DEVICE) for s in shapes)
    dx, dw, result = torch.empty_like(x), torch.empty_like(w), torch.empty_like(y)
    limits = {"seconds": SECONDS["conv128"], "calls": CALLS["conv128"], "flops": 2.0 * n * f * c * (out * k) ** 2}

    def forward():
        for i in range(n):
            torch.mm(w, unfold(x[i : i + 1], k)[0], out=result[i])

    def inputs():
        for i in range(n):
            dx[i] = fold((w.t() @ y[i]).unsqueeze(0), (size, size), k)[0]

    def weights():
        dw.zero_()
        for i in range(n):
            dw.addmm_(y[i], unfold(x[i : i + 1], k)[0].t())

    with torch.no_grad():
        for which, once in (("fwd", forward), ("inputs", inputs), ("weights", weights)):
            report("corrmm", name, once, which, **limits)

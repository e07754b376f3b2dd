"""A training step of a small transformer by PyTorch: eager, its loss compiled, the whole step compiled.  Numbers and words are
those of tools/monochord_bench_transformer.c."""
import os
import sys

import numpy
import torch
import torch.nn.functional as F

from peer import DEVICE, SECONDS, THREADS, error, report, settle

CASE = "4 blocks of 256, 4x256 words"
BATCH, LONG, WIDE, HEADS, WORDS, BLOCKS = 4, 256, 256, 4, 8192, 4
SHAPES = [(WORDS, WIDE), (LONG, WIDE)]
BLOCK = [(WIDE,), (WIDE,), (WIDE, 3 * WIDE), (3 * WIDE,), (WIDE, WIDE), (WIDE,), (WIDE,), (WIDE,), (WIDE, 4 * WIDE), (4 * WIDE,),
         (4 * WIDE, WIDE), (WIDE,)]
LAST = [(WIDE,), (WIDE,), (WIDE, WORDS)]
ONES = {0, 6}  # of BLOCK: the factors of layer norms


def numbers(k, shape, ones):
    i = numpy.arange(numpy.prod(shape), dtype=numpy.uint32)
    bits = i * numpy.uint32(2654435761) + numpy.uint32((k + 1) * 40503)
    return ones + (((bits / 4294967296.0) - 0.5) * 0.07).astype("float32").astype("float64").reshape(shape)


def parameters(dtype):
    shapes = [(s, 0) for s in SHAPES] + [(s, i in ONES) for _ in range(BLOCKS) for i, s in enumerate(BLOCK)]
    shapes += [(s, i == 0) for i, s in enumerate(LAST)]
    return [torch.from_numpy(numbers(k, s, ones)).to(dtype).to(DEVICE).requires_grad_() for k, (s, ones) in enumerate(shapes)]


def words(step):
    return torch.from_numpy(numpy.arange(BATCH * LONG) * step % WORDS).view(BATCH, LONG).to(DEVICE)


def cost(p, x, t):
    h = p[0][x] + p[1]
    for b in range(BLOCKS):
        g, d, q, a, o, e, f, c, u, v, w, z = p[2 + 12 * b:14 + 12 * b]
        part = (F.layer_norm(h, (WIDE,), g, d) @ q + a).view(BATCH, LONG, 3, HEADS, WIDE // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(part[0], part[1], part[2], is_causal=True)
        h = h + y.transpose(1, 2).reshape(BATCH, LONG, WIDE) @ o + e
        h = h + F.gelu(F.layer_norm(h, (WIDE,), f, c) @ u + v) @ w + z
    logits = F.layer_norm(h, (WIDE,), p[-3], p[-2]) @ p[-1]
    return F.cross_entropy(logits.view(-1, WORDS), t.reshape(-1))


def gradients(dtype):
    p = parameters(dtype)
    made = cost(p, *TEXT)
    made.backward()
    return made, torch.cat([w.grad.ravel() for w in p])


def step_of(way):
    p = parameters(torch.float32)
    rule = torch.optim.Adam(p, lr=0.001, **({} if way == "compile-step" else {"fused": True}))
    loss = torch.compile(cost) if way == "compile" else cost

    def step():
        rule.zero_grad()
        made = loss(p, *TEXT)
        made.backward()
        rule.step()
        return made

    return torch.compile(step) if way == "compile-step" else step


torch.set_num_threads(THREADS)
torch.backends.cuda.matmul.allow_tf32 = False
TEXT = words(3079), words(6151)
(first, want), (_, have) = gradients(torch.float64), gradients(torch.float32)
if "--numbers" in sys.argv:
    print(f"{first.item():.12g} {want.norm().item():.12g}")
for way in os.environ.get("BENCH_WAYS", "eager,compile,compile-step").split(","):
    torch._dynamo.reset()
    try:
        step = step_of(way)
        for _ in range(4):
            step()
        settle()
        report("transformer", CASE, step, "train", "" if way == "eager" else way, rel_err=error(have, want), seconds=2 * SECONDS)
    except Exception as problem:  # of any kind: a compiler's own among them
        print(f"{way}: {problem}", file=sys.stderr)

"""networks.py: the layers of the suite zoo, from tools/zoo.def, and the shards of them that seeds draw.  As a program: their names, as
`monochord bench zoo --list` prints them."""
import ast
import fractions
import os
import pathlib
import re

SHARD = os.environ.get("BENCH_SHARD", "")  # "SEED:COUNT", as `monochord bench zoo --shard` reads it


def zoo():
    """The rows of tools/zoo.def, with one image and with 16: (name, what, sizes).  What is conv (images, channels, sizes, filters, taps,
    strides, pads, dilation, groups), product (rows, channels, filters), or a word of BETWEEN (size)."""
    text = (pathlib.Path(__file__).parents[2] / "tools" / "zoo.def").read_text()
    for macro, row in re.findall(r"^(ZOO|ZOO_AXES|PRODUCT|NORM)\((.+)\)$", text, re.M):
        kind, *row = ast.literal_eval(re.sub(r"^(\w+),", r'"\1",', row) if macro != "PRODUCT" else f'"product", {row}')
        for n in (1, 16):
            name, *sizes = row
            if macro == "NORM":
                (size,), word = sizes, "layernorm" if kind == "layer" else kind
                yield f"norm {name} b{n}", word, (n, *size) if kind == "batch" else (n * size[0], size[1])
            elif macro == "PRODUCT":
                yield f"product {name} b{n}", "product", (n * sizes[0], *sizes[1:])
            else:
                c, size, f, k, stride, pad, *rest = sizes
                size, k = (part if isinstance(part, tuple) else (part,) for part in (size, k))
                yield f"{kind} {name} b{n}", "conv", (n, c, size, f, k, *along(k, stride, pad), *rest)


def along(k, stride, pad):
    """Strides and pads of each axis; there is no pad along one with a single tap."""
    strides, pads = (part if isinstance(part, tuple) else (part,) * len(k) for part in (stride, pad))
    return strides, tuple(p if taps > 1 else 0 for p, taps in zip(pads, k))


def extents(size, k, strides, pads, dilation):
    """Sizes of the result of a convolution."""
    return tuple((i + 2 * p - (taps - 1) * dilation - 1) // s + 1 for i, taps, s, p in zip(size, k, strides, pads))


def fnv(seed, name):
    value = 2166136261
    for byte in f"{seed} {name}".encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def shard():
    """Those that SHARD draws, as in tools/monochord_bench_zoo.c: by the share of its class that is before a layer, then by hash."""
    layers = list(zoo())
    if not SHARD:
        return layers
    seed, count = (int(part) for part in SHARD.split(":"))
    order = {}
    for kind in {name.split()[0] for name, *_ in layers}:
        of = sorted((fnv(seed, name), name) for name, *_ in layers if name.split()[0] == kind)
        order.update({name: (fractions.Fraction(rank, len(of)), value) for rank, (value, name) in enumerate(of)})
    drawn = sorted(order, key=order.get)[:count]
    return [layer for layer in layers if layer[0] in drawn]


# the rates of the machine, which the suite zoo is measured by: as in tools/monochord_bench_conv.c and _layers.c
RATE = 2048 if os.environ.get("BENCH_DEVICE", "cpu") == "cpu" else 8192
RATES = [("rate product", "product", (RATE, RATE, RATE)), ("rate copy", "copy", (64 << 20,))]


if __name__ == "__main__":
    print("\n".join(name for name, *_ in shard()))

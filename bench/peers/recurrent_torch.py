"""Recurrent layers by PyTorch: its own layers, and a cell that they lack as a loop; on a GPU replayed too."""
import os
import sys

import torch

from peer import DEVICE, SECONDS, THREADS, error, report, rng, settle, ways

STEPS = 100


class Mgu(torch.nn.Module):
    def __init__(self, h, _):
        super().__init__()
        self.W, self.U = (torch.nn.Parameter(torch.zeros(h, 2 * h)) for _ in range(2))
        self.b = torch.nn.Parameter(torch.zeros(2 * h))

    def forward(self, x, h):
        n, out = h.shape[-1], []
        p = x @ self.W + self.b
        for t in range(x.shape[0]):
            f = torch.sigmoid(p[t, :, :n] + h @ self.U[:, :n])
            h = (1 - f) * h + f * torch.tanh(p[t, :, n:] + (f * h) @ self.U[:, n:])
            out.append(h)
        return torch.stack(out), h


def numbers(*shape, variance):
    return torch.from_numpy(((rng.random(shape) - 0.5) * (12 * variance) ** 0.5).astype("float32")).to(DEVICE)


def case(cell, h, b):
    kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "mgu": Mgu}[cell]
    net = kind(h, h).to(DEVICE)
    with torch.no_grad():
        for w in net.parameters():
            w.copy_(numbers(*w.shape, variance=2 / h))
    x, first, v = (numbers(*shape, variance=2 / h) for shape in ((STEPS, b, h), (b, h), (STEPS, b, h)))
    state = {"lstm": (first[None], first[None]), "gru": first[None], "mgu": first}[cell]
    name = f"{cell} h{h} b{b}"

    def step(x, *_):
        return net(x, state)[0]

    def once():
        for w in (x, *net.parameters()):
            w.grad = None
        net(x, state)[0].backward(v)

    with torch.no_grad():
        double = kind(h, h).to(DEVICE).double()
        for to, w in zip(double.parameters(), net.parameters()):
            to.copy_(w)
        wide = tuple(s.double() for s in state) if cell == "lstm" else state.double()
        wrong = error(step(x), double(x.double(), wide)[0])
        for way, call in ways(step, x, here=("eager", "compile") if cell == "mgu" else ("eager",)):
            if way != "compile" or cell == "mgu":
                report("recurrent", name, call, "fwd", way, rel_err=wrong, seconds=SECONDS / 2)
    x.requires_grad_()
    report("recurrent", name, once, "fwd+bwd", seconds=SECONDS / 2)
    if DEVICE != "cpu":
        try:
            beside = torch.cuda.Stream()
            with torch.cuda.stream(beside):
                for _ in range(3):
                    once()
            settle()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                once()
            report("recurrent", name, graph.replay, "fwd+bwd", "graph", seconds=SECONDS / 2)
        except RuntimeError as problem:
            print(f"graph: {problem}", file=sys.stderr)


def spring():
    """A compiled step of the spring, 10,000 times in a CUDA graph."""
    def body(x, v):
        u = v - 0.01 * x
        return x + 0.01 * u, u

    def steps(made, x, v):
        for _ in range(10000):
            x, v = made(x, v)
        return x

    x, v = numbers(256, variance=1 / 3), numbers(256, variance=1 / 3)
    made = torch.compile(body)
    made(x, v)
    settle()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        last = steps(made, x, v)
    graph.replay()
    report("recurrent", "spring, 10,000 steps", graph.replay, "fwd", "graph", rel_err=error(last, steps(body, x.double(), v.double())), seconds=SECONDS / 2)


torch.set_num_threads(THREADS)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
for cell, h, b in [(cell, h, b) for h in (256, 1024) for b in (1, 32, 128) for cell in ("lstm", "gru")] + [("mgu", 256, 32)]:
    case(cell, h, b)
if DEVICE != "cpu":
    spring()

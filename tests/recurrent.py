"""Writes the expected values of tests/t_recurrent.c, tests/recurrent_values.h, by PyTorch in float64.

Layers that PyTorch has (recurrent, lstm without peepholes, gru_dnn) are its modules; the others are Lasagne's
formulas, written out here, with PyTorch's gradients.  Parameter k of a layer, in the order in which the layer makes
them, has the elements 0.5 sin(1.3 i + k + 1), the input sin(0.7 i + 0.3); the cost is the sum of y_i cos(0.9 i).

    python3 tests/recurrent.py > tests/recurrent_values.h
"""
import torch

torch.set_default_dtype(torch.float64)
BATCH, STEPS, FEATURES, UNITS = 2, 4, 3, 2


def fill(shape, k):
    i = torch.arange(torch.Size(shape).numel())
    return (0.5 * torch.sin(1.3 * i + k + 1)).reshape(shape).requires_grad_()


def numbers(shape, first=0.3):
    i = torch.arange(torch.Size(shape).numel())
    return torch.sin(0.7 * i + first).reshape(shape).requires_grad_()


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.c = c
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-ctx.c, ctx.c), None


def clip(x, c):
    return Clip.apply(x, c) if c else x


def loop(x, step, states, mask=None, backwards=False, final=False):
    """Lasagne's loop: x is (batch, time, features)."""
    order = range(x.shape[1])
    ys = []
    for t in reversed(order) if backwards else order:
        new = step(x[:, t], *states)
        if mask is not None:
            m = mask[:, t:t + 1] != 0
            new = [torch.where(m, n, s) for n, s in zip(new, states)]
        states = new
        ys.append(states[0])
    if final:
        return ys[-1]
    return torch.stack(ys[::-1] if backwards else ys, dim=1)


def zeros(x, n=1):
    return [torch.zeros(x.shape[0], UNITS) for _ in range(n)]


def split(a):
    return a.split(UNITS, dim=1)


def rnn(x, W, U, b, c=0, **how):
    return loop(x, lambda a, h: [torch.tanh(clip(a @ W + b + h @ U, c))], zeros(x), **how)


def lstm(x, W, U, P, b, *start, c=0, f=torch.sigmoid, **how):
    def step(a, h, cell):
        i, fo, n, o = split(clip(a @ W + b + h @ U, c))
        pi, pf, po = P.split(UNITS)
        new = f(fo + cell * pf) * cell + torch.sigmoid(i + cell * pi) * torch.tanh(n)
        return [torch.sigmoid(o + new * po) * torch.tanh(new), new]
    states = [s.expand(x.shape[0], UNITS) for s in start] if start else zeros(x, 2)
    return loop(x, step, states, **how)


def gru(x, W, U, b, c=0, **how):
    def step(a, h):
        ar, au, an = split(clip(a @ W + b, c))
        dr, du, dn = split(clip(h @ U, c))
        r, u = torch.sigmoid(ar + dr), torch.sigmoid(au + du)
        return [(1 - u) * h + u * torch.tanh(clip(an + r * dn, c))]
    return loop(x, step, zeros(x), **how)


def module(kind, two_biases=False, **how):
    """PyTorch's own: our parameters, in our order, become those of the module."""
    net = kind(FEATURES, UNITS, batch_first=True, **how)
    names = []
    for l in range(net.num_layers):
        for d in ["", "_reverse"][:1 + net.bidirectional]:
            names += [f"weight_ih_l{l}{d}", f"weight_hh_l{l}{d}", f"bias_ih_l{l}{d}"]
            names += [f"bias_hh_l{l}{d}"] if two_biases else []

    def run(x, *p):
        given = {n: v.T if v.dim() == 2 else v for n, v in zip(names, p)}
        given = {n: given.get(n, torch.zeros_like(v)) for n, v in net.named_parameters()}
        return torch.func.functional_call(net, given, (x,))[0]
    shapes = {n: tuple(v.shape[::-1]) for n, v in net.named_parameters()}
    return run, [shapes[n] for n in names]


def started(x, W, U, b, bh, start):
    net = torch.nn.GRU(FEATURES, UNITS, batch_first=True)
    given = {"weight_ih_l0": W.T, "weight_hh_l0": U.T, "bias_ih_l0": b, "bias_hh_l0": bh}
    return torch.func.functional_call(net, given, (x, start[None]))[0]


MASK = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0]])
S1, S3, S4 = [(FEATURES, UNITS), (UNITS, UNITS), (UNITS,)], [(FEATURES, 3 * UNITS), (UNITS, 3 * UNITS), (3 * UNITS,)], \
    [(FEATURES, 4 * UNITS), (UNITS, 4 * UNITS), (4 * UNITS,)]
PEEP = S4[:2] + [(3 * UNITS,)] + S4[2:]
X = "input 4x3\n"
M = "input 4x3\nm = input 4\n"
nn = torch.nn
CASES = [
    (X + "recurrent 2 tanh", *module(nn.RNN)),
    (X + "recurrent 2 rectify", *module(nn.RNN, nonlinearity="relu")),
    (X + "recurrent 2 tanh layers=2 bidirectional=true", *module(nn.RNN, num_layers=2, bidirectional=True)),
    (X + "lstm 2 peepholes=false", *module(nn.LSTM)),
    (X + "lstm 2 peepholes=false layers=2", *module(nn.LSTM, num_layers=2)),
    (X + "lstm 2 peepholes=false bidirectional=true", *module(nn.LSTM, bidirectional=True)),
    (X + "gru_dnn 2", *module(nn.GRU, True)),
    (X + "gru_dnn 2 layers=2 bidirectional=true", *module(nn.GRU, True, num_layers=2, bidirectional=True)),
    (X + "recurrent 2 tanh grad_clipping=0.25 backwards=true", lambda x, *p: rnn(x, *p, c=0.25, backwards=True), S1),
    (M + "recurrent 2 tanh from=x mask=m only_return_final=true", lambda x, *p: rnn(x, *p, mask=MASK, final=True), S1),
    (X + "lstm 2", lstm, PEEP),
    (X + "lstm 2 learn_init=true", lstm, PEEP + [(1, UNITS)] * 2),
    (X + "lstm 2 grad_clipping=0.125 forgetgate=gate(act=softsign)",
     lambda x, *p: lstm(x, *p, c=0.125, f=nn.functional.softsign), PEEP),
    (M + "lstm 2 from=x mask=m backwards=true", lambda x, *p: lstm(x, *p, mask=MASK, backwards=True), PEEP),
    (X + "lstm 2 only_return_final=true backwards=true", lambda x, *p: lstm(x, *p, backwards=True, final=True), PEEP),
    (X + "gru 2", gru, S3),
    (M + "gru 2 from=x mask=m", lambda x, *p: gru(x, *p, mask=MASK), S3),
    (X + "gru 2 grad_clipping=0.125", lambda x, *p: gru(x, *p, c=0.125), S3),
]


def row(values):
    flat = torch.cat([v.reshape(-1) for v in values]).tolist()
    lines = []
    for i in range(0, len(flat), 8):
        lines.append("      " + " ".join(f"{v:.8g}," for v in flat[i:i + 8]))
    return "{\n" + "\n".join(lines) + " }"


print("/* recurrent_values.h: written by tests/recurrent.py: a layer's result, the gradient of its input, and the")
print(" * gradients of its parameters. */")
print("static const struct {\n    const char *model;\n    double want[500];\n} layers[] = {")
for model, run, shapes in CASES:
    x = numbers((BATCH, STEPS, FEATURES))
    p = [fill(s, k) for k, s in enumerate(shapes)]
    y = run(x, *p)
    i = torch.arange(y.numel())
    grads = torch.autograd.grad((y.reshape(-1) * torch.cos(0.9 * i)).sum(), [x] + p)
    text = model.replace("\n", "\\n")
    print(f'    {{ "{text}",\n      {row([y] + list(grads))} }},')
x, h = numbers((BATCH, STEPS, FEATURES)), numbers((BATCH, UNITS), 0.1)
p = [fill(s, k) for k, s in enumerate(S3 + S3[2:])]
y = started(x, *p, h)
i = torch.arange(y.numel())
grads = torch.autograd.grad((y.reshape(-1) * torch.cos(0.9 * i)).sum(), [x] + p)
print(f'    {{ "input 4x3\\nh0 = input 2\\ngru_dnn 2 from=x hid_init=h0",\n      {row([y] + list(grads))} }},')
print("};")

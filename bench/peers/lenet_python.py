"""lenet_python.py: LeNet of the Deep Learning Tutorials, from Python, on the same pictures and with the same first weights for
every contestant: batches of 500 of 28 x 28, 20 and 50 filters of 5 x 5, 500 hidden units, a step of plain descent."""
import numpy

BATCH, BATCHES, FILTERS, RATE = 500, 4, (20, 50), 0.1
rng = numpy.random.RandomState(23455)
images = rng.rand(BATCH * BATCHES, 1, 28, 28).astype("float32")
labels = rng.randint(0, 10, BATCH * BATCHES)


def weights():
    """W and b of each layer; convolutions as correlations."""
    def uniform(fan_in, fan_out, shape):
        bound = numpy.sqrt(6. / (fan_in + fan_out))
        return rng.uniform(-bound, bound, shape).astype("float32"), numpy.zeros(shape[-1 if len(shape) == 2 else 0], "float32")
    a, b = FILTERS
    return [uniform(25, a * 25 // 4, (a, 1, 5, 5)), uniform(a * 25, b * 25 // 4, (b, a, 5, 5)),
            uniform(b * 16, 500, (b * 16, 500)), (numpy.zeros((500, 10), "float32"), numpy.zeros(10, "float32"))]


FLOPS = 2.0 * BATCH * (24 * 24 * FILTERS[0] * 25 * 2 + (8 * 8 * FILTERS[1] * FILTERS[0] * 25 + FILTERS[1] * 16 * 500 + 5000) * 3)
first = weights()


def costs_of_first_steps(step, n=4):
    """What a contestant's first steps cost, to compare them."""
    return [float(step(i % BATCHES)) for i in range(n)]


def costs_in_float64(n=4):
    """The same by NumPy."""
    p = [[w.astype("float64"), b.astype("float64")] for w, b in first]
    costs = []
    for k in range(n):
        at = slice(k % BATCHES * BATCH, (k % BATCHES + 1) * BATCH)
        layers, h = [], images[at].astype("float64")
        for w, b in p[:2]:
            windows = numpy.lib.stride_tricks.sliding_window_view(h, w.shape[2:], (2, 3))
            z = numpy.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
            blocks = z.reshape(z.shape[0], z.shape[1], z.shape[2] // 2, 2, z.shape[3] // 2, 2)
            top = blocks.max((3, 5))
            y = numpy.tanh(top + b[:, None, None])
            layers.append((h, windows, blocks == top[:, :, :, None, :, None], y, z.shape))
            h = y
        flat = h.reshape(BATCH, -1)
        hidden = numpy.tanh(flat @ p[2][0] + p[2][1])
        e = numpy.exp(hidden @ p[3][0] + p[3][1])
        e /= e.sum(1, keepdims=True)
        costs.append(-numpy.log(e[range(BATCH), labels[at]]).mean())
        e[range(BATCH), labels[at]] -= 1
        g = e / BATCH
        d = (g @ p[3][0].T) * (1 - hidden ** 2)
        change = {3: (hidden.T @ g, g.sum(0)), 2: (flat.T @ d, d.sum(0))}
        g = (d @ p[2][0].T).reshape(h.shape)
        for i in (1, 0):
            x, windows, winners, y, shape = layers[i]
            g = g * (1 - y ** 2)
            dz = (winners * g[:, :, :, None, :, None]).reshape(shape)
            change[i] = numpy.tensordot(dz, windows, ((0, 2, 3), (0, 2, 3))), g.sum((0, 2, 3))
            g = numpy.zeros(x.shape)
            w = p[i][0]
            for r in range(5):
                for c in range(5):
                    g[:, :, r:r + shape[2], c:c + shape[3]] += numpy.tensordot(dz, w[:, :, r, c], (1, 0)).transpose(0, 3, 1, 2)
        for i, (w, b) in change.items():
            p[i][0] -= RATE * w
            p[i][1] -= RATE * b
    return costs

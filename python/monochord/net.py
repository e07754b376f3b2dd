"""Networks of layers, from the lines of a model: docs/networks.md."""
from . import _monochord
from .graph import Node, current


class Net:
    """Net("input 1x28x28", "conv 8 5x5 relu", "dense 10 softmax"): lines, or one text of many."""

    def __init__(self, *lines, seed=1, prefix=None):
        self.graph = current()
        self.net = _monochord.Net(self.graph, prefix, seed)
        self.functions, self.costs = {}, []  # costs: of the epochs so far
        self.add(*lines)

    def add(self, *lines):
        """Adds layers and settings."""
        self.net.read("net", "\n".join(lines) + "\n")
        return self

    def function(self, kind):
        """Compiled on first use: train and test (cost, and the share that is wrong), predict."""
        if kind not in self.functions:
            import numpy
            self.functions[kind] = self.net.function(kind, numpy.asarray, kind == "predict")
        return self.functions[kind]

    def fit(self, x, t, epochs=None, batch=None, shuffle=None, report=None, progress=None):
        """Trains; gives the mean cost of each epoch. report(epoch, cost) is called after each. progress: a bar on a
        terminal and a chart in a notebook; False: neither."""
        import numpy
        from .display import Progress
        said = self.net.training()
        epochs, batch = epochs or said["epochs"], batch or said["batch"]
        rng, costs, train = numpy.random.RandomState(shuffle), [], self.function("train")
        shown = Progress(epochs, -(-len(x) // batch), progress)
        for epoch in range(epochs):
            order = rng.permutation(len(x))
            parts, total = [order[i:i + batch] for i in range(0, len(x), batch)], 0.
            for i, p in enumerate(parts):
                shown.step(i)
                total += float(train(x[p], t[p])[0]) * len(p)
            costs.append(total / len(x))
            self.costs.append(costs[-1])
            shown.epoch(costs[-1])
            if report:
                report(epoch, costs[-1])
        return costs

    def predict(self, x):
        return self.function("predict")(x)

    def test(self, x, t):
        """The cost, and the share that is wrong where the loss can say."""
        return [float(v) for v in self.function("test")(x, t)[:-1]]

    def params(self, tags=None):
        """The values of the parameters by name."""
        import numpy
        return {k: numpy.asarray(s.get()) for k, s in self.net.params(tags).items()}

    def output(self, layer="", training=False):
        """What a layer computes, as a node: the last one, or that of this name; also "cost" and "target"."""
        return Node(self.net.node(layer, training))

    def save(self, path, tags=None):
        self.net.file("save", path, tags)

    def load(self, path, tags=None):
        self.net.file("load", path, tags)

    def save_torch(self, path, names=None):
        self.net.file("save_torch", path, names)

    def load_torch(self, path, names=None):
        self.net.file("load_torch", path, names)

    def set_rate(self, rate):
        self.net.rate(rate)

    layers = property(lambda self: self.net.layers())

    def _repr_html_(self):
        from .display import of_net
        return of_net(self)

    def __repr__(self):
        return "\n".join("%(name)s: %(text)s" % layer for layer in self.layers)

"""The package monochord: formulas, operators, functions."""
import ast
import inspect
import os
from html.parser import HTMLParser

import numpy as np
import pytest
import monochord as mc


@pytest.fixture(autouse=True)
def fresh():
    mc.reset()


def test_operators_and_ops():
    x, y = mc.input("x", "float64", 2), mc.input("y", "float64", [None, 3])
    a, b = np.random.rand(2, 3), np.random.rand(2, 3)
    e = (x + 2 * y - 1 / x) @ y.T + mc.sum(x, axis=1, keepdims=True) + x[0, 1:].max() - (-x).mean()
    want = (a + 2 * b - 1 / a) @ b.T + a.sum(1, keepdims=True) + a[0, 1:].max() + a.mean()
    np.testing.assert_allclose(mc.function([x, y], e)(a, b), want)
    assert e.ndim == 2 and e.dtype == "float64" and y.dims == (-1, 3)
    both = mc.function([x], [x > .5, mc.where(x > .5, x, 0)])(a)
    np.testing.assert_array_equal(both[1], np.where(a > .5, a, 0))


def test_formulas_and_operators_mix():
    x = mc.input("x", "float64", 1)
    h = mc.formula("exp(x) / sum(exp(x))") * 2
    z = mc.formula("k - x", k=h)
    a = np.random.rand(4)
    np.testing.assert_allclose(mc.function("x", z)(a), 2 * np.exp(a) / np.exp(a).sum() - a)
    mc.input("s", "float64", 0)
    f = mc.function("x, s=3.0", "x * s")
    np.testing.assert_allclose(f(a), 3 * a)
    np.testing.assert_allclose(f(a, 2.), 2 * a)


def test_training():
    rng = np.random.RandomState(0)
    x, t = mc.input("x", "float32", 2), mc.input("t", "int32", 1)
    W, b = mc.shared("W", np.zeros((5, 3), "float32")), mc.shared("b", np.zeros(3, "float32"))
    cost = mc.mean(mc.crossentropy_softmax_1hot(x @ W + b, t))
    gW, gb = mc.grad(cost, [W, b])
    train = mc.function([x, t], cost, updates={W: W - gW, b: b - gb})
    same = mc.function("x, t", "mean(crossentropy_softmax_1hot(x @ W + b, t))")
    images = rng.rand(30, 5).astype("float32")
    labels = images[:, :3].argmax(1).astype("int32")
    first = train(images, labels)
    for _ in range(300):
        last = train(images, labels)
    assert np.isclose(first, np.log(3)) and last < .5 * first and same(images, labels) <= last
    W.value = np.zeros((5, 3), "float32")
    assert not W.get().any()


def test_givens_and_random_numbers():
    x, rng = mc.input("x", "float64", 1), mc.random(seed=3)
    data = mc.shared("data", np.arange(4.))
    assert mc.function([], mc.sum(x), givens={x: data * 2})() == 12
    f = mc.function([], mc.uniform(rng, [3]))
    assert not np.array_equal(f(), f())


def test_mistakes():
    x = mc.input("x", "float32", [None, 3])
    with pytest.raises(mc.ShapeError):
        x + mc.input("y", "float32", [4])
    with pytest.raises(AttributeError, match="no op 'sums'"):
        mc.sums(x)
    with pytest.raises(TypeError):
        bool(x > 0)
    with pytest.raises(TypeError):
        iter(x)
    with pytest.raises(mc.ArgumentError, match="in use"):
        mc.input("x", "float32", 1)
    assert (x + 1).ndim == 2  # a mistake leaves the graph usable


def test_graphs():
    with mc.Graph() as g:
        x = mc.input("x", "float32", 1)
    y = mc.input("x", "float32", 1)  # another graph, another name
    assert x.node.graph is g and y.node.graph is not g
    assert mc.function([x], x * 2)(np.ones(2, "float32"))[0] == 2


def test_the_docstring_runs():
    example = mc.__doc__.split("\n\n")[1].replace("zeros(784, 10)", "np.zeros((784, 10), 'float32')").replace(
        "zeros(10)", "np.zeros(10, 'float32')")
    scope = {"np": np}
    exec("\n".join(line.strip() for line in example.splitlines()), scope)
    cost = scope["train"](np.random.rand(4, 784).astype("float32"), np.arange(4, dtype="int32"))
    assert np.isclose(cost, np.log(10))


def test_nets(tmp_path):
    mc.flag_set("floatX", "float32")
    try:
        net = mc.Net("input 1x8x8\nconv 4 3x3 relu\npool 2x2", "dense 3 softmax", "rule momentum rate=0.05", seed=5)
        rng = np.random.RandomState(1)
        patterns = rng.rand(3, 1, 8, 8) > .5
        t = rng.randint(0, 3, 60).astype("int32")
        x = (patterns[t] + .1 * rng.rand(60, 1, 8, 8)).astype("float32")
        costs = net.fit(x, t, epochs=15, batch=20, shuffle=0)
        assert costs[-1] < .3 * costs[0] and net.test(x, t)[1] == 0
        assert np.array_equal(net.predict(x).argmax(1), t) and [k["kind"] for k in net.layers][:2] == ["input", "conv"]
        net.save(str(tmp_path / "net.npz"))
        with mc.Graph():
            other = mc.Net("input 1x8x8\nconv 4 3x3 relu\npool 2x2", "dense 3 softmax", seed=9)
        assert not np.allclose(other.predict(x), net.predict(x))
        other.load(str(tmp_path / "net.npz"))
        np.testing.assert_array_equal(other.predict(x), net.predict(x))
        h = mc.function([mc.formula("x")], net.output("conv1"))
        assert h(x).shape == (60, 4, 6, 6) and set(net.params()) == set(np.load(tmp_path / "net.npz"))
        with pytest.raises(mc.Error, match="dens"):
            net.add("dens 4")
        with pytest.raises(ValueError):
            net.output("none")
    finally:
        mc.flag_set("floatX", "float64")


class Page(HTMLParser):
    """The tags that are open, and how often each was opened; a tag closed out of order is a failure."""

    def __init__(self, page):
        HTMLParser.__init__(self)
        self.open, self.count, self.text = [], {}, ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_notebooks_show_graphs_and_functions():
    x = mc.input("x", "float64", 1)
    y = mc.sum(mc.where(x < 2, mc.exp(x), x))
    page = Page(y._repr_html_())
    assert page.count["svg"] == 1 and "exp" in page.text and "float64" in page.text
    f = mc.function([x], [y, mc.exp(x)], name="a<b", profile=True)
    f(np.arange(4.))
    page = Page(f._repr_html_())
    steps = [s for s in f.steps if s["kind"] not in ("size", "view")]
    assert page.count["tr"] == 1 + len(steps) and "a<b" in page.text and "x < 2" in page.text
    assert page.count["pre"] == 1 and sum(s["seconds"] for s in steps) > 0 and "ms a call" in page.text
    assert "ms a call" not in mc.function([x], y)._repr_html_()
    assert Page(f.report()).count["html"] == 1
    assert set(f.about) == {"compile_seconds", "cc_seconds", "memory", "warning"}


def test_progress_of_a_training(capsys):
    mc.flag_set("floatX", "float32")
    try:
        with mc.Graph():
            net = mc.Net("input 2", "dense 3 tanh", "dense 2 softmax", seed=1)
        x, t = np.eye(2, dtype="float32"), np.array([0, 1], "int32")
        assert "svg" not in Page(net._repr_html_()).count
        costs = net.fit(x, t, epochs=3, batch=1, progress=True)
        said = capsys.readouterr().err
        assert "epoch 2 of 3" in said and said.endswith("\n") and "cost %.4g" % costs[-1] in said
        net.fit(x, t, epochs=2, batch=2)
        assert capsys.readouterr().err == "" and len(net.costs) == 5 and net.costs[:3] == costs
        page = Page(net._repr_html_())
        assert page.count["polyline"] == 1 and "17 parameters" in page.text and "epoch 5" in page.text
    finally:
        mc.flag_set("floatX", "float64")


def test_the_types_are_those_of_the_package():
    with open(os.path.join(os.path.dirname(mc.__file__), "__init__.pyi")) as f:
        body = ast.parse(f.read()).body
    given = {n: v for n, v in vars(mc).items() if not inspect.ismodule(v) and (not n.startswith("_") or n == "__version__")}
    typed = {n.name: n for n in body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    names = set(typed) | {n.target.id for n in body if isinstance(n, ast.AnnAssign)}
    assert set(given) <= names | {"Function"} and names <= set(given) | {"Function", "Op", "__getattr__", "__version__"}
    for name, node in typed.items():
        if isinstance(node, ast.FunctionDef) and inspect.isfunction(given.get(name)):
            assert [a.arg for a in node.args.args] == list(inspect.signature(given[name]).parameters)[:len(node.args.args)], name
    for name in ("Node", "Shared", "Graph", "Net", "Array"):
        for n in typed[name].body:
            if not isinstance(n, ast.FunctionDef) or n.name == "__init__":
                continue
            there = getattr(getattr(mc, name), n.name)
            if inspect.isfunction(there) and not n.name.startswith("__"):
                want = list(inspect.signature(there).parameters)
                more = [a.arg for a in (n.args.vararg, n.args.kwarg) if a]
                assert [a.arg for a in n.args.args] + more == want, (name, n.name)
    assert {"exp", "softmax", "function"} <= set(dir(mc))

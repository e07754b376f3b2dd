"""_monochord: what the C code does with arrays, errors, threads and callbacks."""
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from monochord import _monochord as m

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


def function(formula, inputs, **given):
    g = m.Graph()
    for name, dtype, rank in inputs:
        g.input(name, dtype, [-1] * rank)
    return g.compile(inputs=", ".join(i[0] for i in inputs), outputs=formula, numpy=np.asarray, single=True, **given)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_go_both_ways_without_a_copy(dtype):
    a = np.arange(24).reshape(2, 3, 4).astype(dtype)
    b = m.Array(a[:, ::-1, 1::2])
    assert b.shape == (2, 3, 2) and b.dtype == dtype and b.device == "cpu"
    back = np.asarray(b)
    assert back.dtype == dtype and back.dtype.char == a.dtype.char and np.array_equal(back, a[:, ::-1, 1::2])
    assert back.__array_interface__["data"] == a[:, ::-1, 1::2].__array_interface__["data"]
    assert back.strides == a[:, ::-1, 1::2].strides


def test_an_array_keeps_what_it_views():
    a = np.arange(5.)
    alive = weakref.ref(a)
    b = m.Array(a)
    del a
    gc.collect()
    assert alive() is not None and list(np.asarray(b)) == [0, 1, 2, 3, 4]
    del b
    gc.collect()
    assert alive() is None


@pytest.mark.skipif(not hasattr(np, "from_dlpack"), reason="NumPy before 1.23")
def test_dlpack():
    a = np.arange(6.).reshape(2, 3)
    b = np.from_dlpack(m.Array(a))
    assert b.__array_interface__["data"][0] == a.__array_interface__["data"][0] and np.array_equal(a, b)
    assert m.Array(np.float32(3)).shape == () and m.Array(a).__dlpack_device__() == (1, 0)


def test_bfloat16_is_an_array_of_the_library():
    f = function("cast(x, bfloat16)", [("x", "float32", 1)])
    y = f(np.array([1.5, 2], "float32"))
    assert isinstance(y, m.Array) and y.dtype == "bfloat16" and list(np.asarray(y.cast("float32"))) == [1.5, 2]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(y)


@pytest.mark.parametrize("formula, error, python, text", [
    ("y +", "FormulaError", ValueError, "y +"),
    ("sums(x)", "FormulaError", ValueError, "did you mean 'sum'"),
    ("sum(x, axis=5)", "ShapeError", ValueError, "axis"),
    ("x & 1", "DtypeError", TypeError, "float32"),
    ("grad(sum(x), z)", "GradientError", ValueError, "z"),
])
def test_errors_are_exceptions_with_the_whole_message(formula, error, python, text):
    with pytest.raises(getattr(m, error)) as e:
        function(formula, [("x", "float32", 1), ("z", "float32", 1)], on_unused="ignore")
    assert text in str(e.value) and isinstance(e.value, python) and isinstance(e.value, m.Error)


def test_calls_that_do_not_fit():
    f = function("x[k] * 2", [("x", "float32", 1), ("k", "int64", 0)])
    a = np.arange(3, dtype="float32")
    assert f(a, 1) == 2 and f(a, np.int64(2)) == 4
    for args, error in [((a, 3), IndexError), ((a.astype("float64"), 0), TypeError), ((a[None], 0), ValueError),
                        ((a,), ValueError), ((a, .5), TypeError), ((a, "1"), TypeError), (([1, 2], 0), TypeError),
                        ((np.array(["a"]), 0), TypeError), ((a, 0, 0), ValueError), ((a, 2 ** 70), OverflowError)]:
        with pytest.raises(error):
            f(*args)
    assert f(a, 1) == 2


def test_many_inputs_and_results():
    n = 20
    names = ["x%d" % i for i in range(n)]
    g = m.Graph()
    nodes = [g.input(name, "float64", []) for name in names]
    f = g.compile(input=nodes, output=[g.formula(v.name + " * 2") for v in nodes], numpy=np.asarray)
    assert [float(v) for v in f(*[float(i) for i in range(n)])] == [2. * i for i in range(n)]


def test_graphs_do_not_mix():
    a, b = m.Graph(), m.Graph()
    x, y = a.input("x", "float32", []), b.input("y", "float32", [])
    with pytest.raises(TypeError, match="another graph"):
        a.op("add", [x, y])
    assert a.op("add", [x, x]) == a.op("add", [x, x]) != x  # equal nodes are one node
    assert a.replace([a.op("exp", [x])], [x], [a.op("neg", [x])]) == [a.formula("exp(-x)")]


def test_a_graph_may_go_before_its_nodes_and_functions():
    g = m.Graph()
    s = g.shared("s", np.zeros(2))
    x = g.op("add", [g.shared_node(s), g.formula("1.0")])
    f = g.compile(output=[x], update_of=[g.shared_node(s)], update=[x], numpy=np.asarray, single=True)
    del g
    gc.collect()
    assert x.dtype == "float64" and list(f()) == [1, 1] and list(f()) == [2, 2] and list(np.asarray(s.get())) == [2, 2]


def test_calls_run_in_several_threads():
    f = function("tanh(x @ x)", [("x", "float64", 2)])
    a = np.random.rand(60, 60)
    want, wrong = f(a), []

    def work():
        mine = f.copy()
        for _ in range(20):
            if not np.array_equal(mine(a), want) or not np.array_equal(f(a), want):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_graph_is_built_while_another_thread_compiles():
    g = m.Graph()
    x = g.input("x", "float64", [-1])
    results = []

    def compile_():
        results.append(g.compile(input=[x], output=[g.formula("sum(exp(x) * x)")], numpy=np.asarray, single=True))
    t = threading.Thread(target=compile_)
    t.start()
    for i in range(2000):
        g.formula("x + %d" % i)
    t.join()
    assert np.isclose(results[0](np.ones(3)), 3 * np.e)


def test_an_op_in_python():
    g = m.Graph()
    x = g.input("x", "float64", [-1])
    g.register("twice", 1, 1, lambda i, given: given[0], lambda values: [np.asarray(values[0]) * 2],
               lambda ins, outs, grads, wrt: g.op("mul", [grads[0], g.formula("2.0")]))
    y = g.op("twice", [x])
    cost = g.op("sum", [g.op("mul", [y, x])])
    f = g.compile(input=[x], output=[y] + g.grads(cost, [x]), numpy=np.asarray)
    got = f(np.array([1., 3.]))
    assert list(got[0]) == [2, 6] and list(got[1]) == [4, 12]


@pytest.mark.parametrize("part", ["infer", "run", "grad"])
def test_an_exception_of_an_op_comes_through(part):
    g = m.Graph()
    x = g.input("x", "float64", [-1])

    def fail(*args):
        raise KeyError("mine")
    calls = dict(infer=lambda i, given: given[0], run=lambda values: values, grad=lambda *args: x)
    calls[part] = fail
    with pytest.raises(KeyError, match="mine"):
        g.register("bad", 1, 1, calls["infer"], calls["run"], calls["grad"])
        y = g.op("bad", [x])
        g.grads(g.op("sum", [y]), [x])
        g.compile(input=[x], output=[y], numpy=np.asarray, single=True)(np.ones(2))


def test_an_exception_of_an_op_stays_in_its_thread():
    g = m.Graph()
    x = g.input("x", "float64", [-1])

    def fail(values):
        raise KeyError("mine")
    g.register("bad", 1, 1, lambda i, given: given[0], fail, None)
    bad = g.compile(input=[x], output=[g.op("bad", [x])], numpy=np.asarray, single=True)
    good = function("x * 2", [("x", "float32", 1)])
    wrong = []

    def work(f, error):
        for _ in range(200):
            try:
                f(np.ones(2))
            except error:
                continue
            except Exception as e:
                wrong.append(e)
    threads = [threading.Thread(target=work, args=a) for a in ((bad, KeyError), (good, m.DtypeError)) * 2]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_files(tmp_path):
    path = str(tmp_path / "a.npz")
    m.save(path, {"a": np.arange(3.), "b": np.ones((2, 2), "int8")})
    assert list(np.load(path)["a"]) == [0, 1, 2] and np.asarray(m.load(path)["b"]).dtype == np.int8
    with pytest.raises(OSError):
        m.load(str(tmp_path / "none.npz"))
    f = function("x * 2", [("x", "float32", 1)])
    f.save(str(tmp_path / "f.mcb"))
    assert list(m.load_function(str(tmp_path / "f.mcb"), np.asarray, True)(np.ones(2, "float32"))) == [2, 2]


def test_flags_and_ops():
    assert m.flag_get("floatX") in ("float32", "float64") and "sum over axes" in m.op_names()["sum"]
    with pytest.raises(ValueError, match="floatX"):
        m.flag_set("floatY", "float32")


def test_memory_does_not_grow():
    """Calls, and calls that fail, give back what they take."""
    f = function("x * 2", [("x", "float64", 1)])
    a = np.zeros(100000)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for _ in range(30):
        f(a)
    before = resident()
    for _ in range(300):
        f(a)
        try:
            f(a.astype("complex128"))
        except TypeError:
            pass
    assert resident() - before < 40e6  # 300 results would be 240 MB


def test_import_needs_no_numpy():
    code = "import sys, monochord; assert 'numpy' not in sys.modules; monochord.input('x', 'float32', 1).sum()"
    subprocess.run([sys.executable, "-c", code], check=True)

"""python.py: what the packages of Python take, as rows of `compare.py --suite python`: the loop of exp of Theano's tutorial, a step
of LeNet of the Deep Learning Tutorials, theano.function of that step with an empty cache, a call, imports.

    python.py build/monochord          the extension module is in build/python, the program tells what a call takes in C
"""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
OURS = pathlib.Path(sys.argv[1]).resolve()
sys.path[:0] = [str(OURS.parent / "python"), str(HERE.parent / "python" / "theano"), str(HERE / "peers")]

import numpy  # noqa: E402

import lenet_python as net  # noqa: E402
import peer  # noqa: E402
from peer import DEVICE, ONLY, error, floats  # noqa: E402

os.environ["THEANO_FLAGS"] = f"floatX=float32,device={'gpu' if DEVICE != 'cpu' else 'cpu'}"
import theano  # noqa: E402
import theano.tensor as T  # noqa: E402
from monochord import synchronize  # noqa: E402
from theano.sandbox.cuda.basic_ops import gpu_from_host  # noqa: E402

report = functools.partial(peer.report, home=True)  # what the tutorials' programs return
if DEVICE != "cpu":
    peer.settle = lambda last=None: synchronize()


def lenet():
    """theano.function of a step, given the number of its batch."""
    x, y = theano.shared(net.images), theano.shared(net.labels.astype("int32"))
    i, images, labels = T.lscalar(), T.tensor4(), T.ivector()
    p = [(theano.shared(w[:, :, ::-1, ::-1].copy() if w.ndim == 4 else w), theano.shared(b)) for w, b in net.first]
    h = images
    for w, b in p[:2]:
        h = T.tanh(T.signal.pool.pool_2d(T.nnet.conv2d(h, w), (2, 2), ignore_border=True) + b.dimshuffle("x", 0, "x", "x"))
    h = T.tanh(T.dot(h.flatten(2), p[2][0]) + p[2][1])
    probabilities = T.nnet.softmax(T.dot(h, p[3][0]) + p[3][1])
    cost = -T.mean(T.log(probabilities)[T.arange(labels.shape[0]), labels])
    wrt = [v for pair in p for v in pair]
    at = slice(i * net.BATCH, (i + 1) * net.BATCH)
    start = time.perf_counter()
    f = theano.function([i], cost, updates=[(v, v - net.RATE * g) for v, g in zip(wrt, T.grad(cost, wrt))],
                        givens={images: x[at], labels: y[at]})
    return f, time.perf_counter() - start


def tell(case, ms):
    if ONLY in case:
        print(json.dumps({"suite": "python", "case": case, "pass": "", "device": DEVICE, "dtype": "", "algo": "", "ms": ms,
                          "ms_min": ms, "ms_max": ms, "rel_err": None}), flush=True)


def in_fresh_process(code, times=7):
    """Milliseconds, the median, that code says, where it starts with an empty cache of kernels."""
    found = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as cache:
            env = dict(os.environ, XDG_CACHE_HOME=cache, PYTHONPATH=os.pathsep.join(sys.path[:3]))
            found.append(float(subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True,
                                              check=True).stdout) * 1e3)
    return sorted(found)[times // 2]


IMPORT = "import time; t = time.perf_counter(); import %s; print(time.perf_counter() - t)"
COLD = "import sys; sys.argv = ['', %r]; sys.path.insert(0, %r); import python as m; print(m.lenet()[1])"


def main():
    values = floats(230400)
    want = numpy.exp(values.astype(numpy.float64))
    x = theano.shared(values)
    f = theano.function([], gpu_from_host(T.exp(x)) if DEVICE != "cpu" else T.exp(x))
    report("python", "exp loop 230400", f, moved=8 * values.size, rel_err=error(numpy.asarray(f()), want))
    if DEVICE != "cpu":
        f = theano.function([], T.exp(x))
        report("python", "exp loop 230400 home", f, moved=8 * values.size, rel_err=error(f(), want))
    step, turn = lenet()[0], [0]
    wrong = error(net.costs_of_first_steps(step), net.costs_in_float64())

    def next_step():
        turn[0] = (turn[0] + 1) % net.BATCHES
        return step(turn[0])

    report("python", "lenet step", next_step, "train", flops=net.FLOPS, rel_err=wrong, seconds=3 if DEVICE == "cpu" else 1)
    if "lenet, theano.function, cold".find(ONLY) >= 0:
        tell("lenet, theano.function, cold", in_fresh_process(COLD % (str(OURS), str(HERE)), 3))
    if DEVICE != "cpu":
        return
    import monochord as mc
    few = floats(4)
    v = mc.input("v", "float32", 1)
    f = mc.function([v], v + 1)
    report("python", "x + 1, 4 floats", lambda: f(few), rel_err=error(f(few), few.astype("float64") + 1))
    in_c = [json.loads(line)["ms"] for line in subprocess.run(
        [OURS, "bench", "call", "--json", "--only", "x + 1, 4 floats"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
        if line.startswith("{")]
    tell("x + 1, 4 floats, past C", peer.measure(lambda: f(few))[0] * 1e3 - max(in_c))
    tell("import monochord", in_fresh_process(IMPORT % "monochord"))
    tell("import theano", in_fresh_process(IMPORT % "theano"))


if __name__ == "__main__":
    main()

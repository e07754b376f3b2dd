"""Where no compiler is: a loop of exp, LeNet's inference and a step of its training, against NumPy.  A program of its
own, for an environment that has the installed package and nothing else in its PATH."""
import shutil
import sys

import numpy as np

import monochord as mc

for name in ("cc", "gcc", "clang", "c99", "tcc"):
    assert not shutil.which(name), name
rng = np.random.RandomState(22)

# exp, again and again
x = mc.shared("x", rng.rand(10 * 30 * 768).astype("float32"))
f = mc.function([], mc.exp(x))
for _ in range(10):
    r = f()
np.testing.assert_allclose(r, np.exp(x.get()), rtol=1e-6)
assert any("compiler" in s["reason"] for s in f.steps), f.steps


# LeNet
def conv(x, w, b):
    """NumPy's: the filters reversed, as in Theano."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, w[:, :, ::-1, ::-1], optimize=True) + b[:, None, None]


def pool(x):
    return x.reshape(x.shape[0], x.shape[1], x.shape[2] // 2, 2, x.shape[3] // 2, 2).max((3, 5))


mc.flag_set("floatX", "float32")
with mc.Graph():
    net = mc.Net("input 1x28x28", "conv 32 5x5 tanh", "pool 2x2", "conv 64 5x5 tanh", "pool 2x2", "dense 500 tanh",
                 "dense 10 softmax", "rule sgd rate=0.1", seed=1)
p = {k: v.astype("float64") for k, v in net.params().items()}
images, labels = rng.rand(8, 1, 28, 28).astype("float32"), rng.randint(0, 10, 8).astype("int32")
h = pool(np.tanh(conv(images.astype("float64"), p["conv1_W"], p["conv1_b"])))
h = pool(np.tanh(conv(h, p["conv2_W"], p["conv2_b"]))).reshape(8, -1)
h = np.tanh(h @ p["dense1_W"] + p["dense1_b"])
z = np.exp(h @ p["dense2_W"] + p["dense2_b"])
want = z / z.sum(1, keepdims=True)
np.testing.assert_allclose(net.predict(images), want, rtol=1e-4, atol=1e-6)
cost, _ = net.function("train")(images, labels)
np.testing.assert_allclose(cost, -np.log(want[range(8), labels]).mean(), rtol=1e-5)
wrong = want.copy()
wrong[range(8), labels] -= 1
np.testing.assert_allclose(net.params()["dense2_W"], p["dense2_W"] - .1 * h.T @ wrong / 8, rtol=1e-3, atol=1e-5)
np.testing.assert_allclose(net.params()["dense2_b"], p["dense2_b"] - .1 * wrong.mean(0), rtol=1e-3, atol=1e-5)

# Theano's interface, where it is installed too
try:
    import theano
except ImportError:
    print("monochord alone")
    sys.exit(0)
v = theano.tensor.fvector()
a = rng.rand(5).astype("float32")
np.testing.assert_allclose(theano.function([v], theano.tensor.exp(v))(a), np.exp(a), rtol=1e-6)
print("monochord and theano")

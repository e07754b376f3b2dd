#!/usr/bin/env python3
"""theano_suites.py: other people's programs and tests for Theano, unedited, on this tree's `theano`.

    theano_suites.py [--folder build/suites] [lasagne-0.1 lasagne examples models tutorials]

What they are is fetched into the folder: Lasagne 0.1 from PyPI; from GitHub Lasagne's newest commit, whose examples are
run as well, Lasagne's Recipes, whose networks compute something, and the Deep Learning Tutorials.  Nothing of it is in
the tree.  A folder that is there already is used as it is.  Data sets are made up: small,
of the right shape, and easy to learn.  Status 1 if something fails that is not listed here with its reason.
Needs NumPy, pytest before version 8, mock, six; the tutorials SciPy and Pillow too.
"""
import argparse
import gzip
import os
import pickle
import subprocess
import sys
import tarfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NUMPY = "NumPy's change, in the suite itself: "
# tests that fail, and why
KNOWN = {
    "lasagne-0.1": {"TestNINLayer_c01b": "Python 2's range in Lasagne itself; with device=gpu only"},
    "lasagne": {
        "TestNINLayer_c01b": "Python 2's range in Lasagne itself; with device=gpu only",
        "TestTPSTransformLayer": NUMPY + "linspace with a float as number of points",
        "test_multiclass_hinge_loss_invalid": "shape[1] of a vector is an error where it is written, not later",
    },
}
if np.lib.NumpyVersion(np.__version__) >= "1.23.0":
    KNOWN["lasagne"]["test_conv.py"] = NUMPY + "arrays are indexed by lists of slices; no test of the file is collected"
TUTORIALS = {  # a program, and what is called
    "logistic_sgd": "m.sgd_optimization_mnist(n_epochs=2)",
    "logistic_cg": "m.cg_optimization_mnist(n_epochs=3)",
    "mlp": "m.test_mlp(n_epochs=1)",
    "convolutional_mlp": "m.evaluate_lenet5(n_epochs=1, nkerns=[5, 5])",
    "dA": "m.test_dA(training_epochs=1, output_folder='plots')",
    "cA": "m.test_cA(training_epochs=1, output_folder='plots')",
    "SdA": "m.test_SdA(pretraining_epochs=1, training_epochs=1, batch_size=300)",
    "DBN": "m.test_DBN(pretraining_epochs=1, training_epochs=1, batch_size=300)",
    "rbm": "m.test_rbm(training_epochs=1, batch_size=300, n_chains=1, n_samples=1, n_hidden=20, output_folder='plots')",
    "rnnrbm": "m.RnnRbm().train(['a', 'b'], num_epochs=2)",
    "rnnslu": "m.main({'fold': 0, 'data': 'atis', 'lr': 0.1, 'verbose': 1, 'decay': True, 'win': 3, 'nhidden': 20, "
              "'seed': 345, 'emb_dimension': 10, 'nepochs': 2, 'savemodel': False})",
    "lstm": "m.train_lstm(dim_proj=16, max_epochs=2, n_words=1000, batch_size=16, valid_batch_size=16, test_size=50, "
            "saveto=None)",
    "hmc.test_hmc": "m.test_hmc()",
}


MODELS = """
import importlib, lasagne, numpy as np, theano
net = importlib.import_module("%s").build_%s()
layers = lasagne.layers.get_all_layers(list(net.values()))
first = [v for v in layers if isinstance(v, lasagne.layers.InputLayer)][0]
f = theano.function([first.input_var], lasagne.layers.get_output(list(net.values())[-1], deterministic=True))
y = f(np.random.rand(*[1] + list(first.shape[1:])).astype("float32"))
assert np.isclose(y.sum(), 1, atol=1e-4), y
"""


def run(command, cwd, *more, **given):
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore",
               PYTHONPATH=os.pathsep.join([os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build")), "python"),
                                           os.path.join(ROOT, "python", "theano"), cwd] + list(more)),
               **given.pop("env", {}))
    return subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **given)


# ---- what is fetched

def fetch_lasagne_01(folder):
    subprocess.check_call([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                           "--no-binary", ":all:", "Lasagne==0.1", "-d", os.path.dirname(folder)])
    with tarfile.open(os.path.join(os.path.dirname(folder), "Lasagne-0.1.tar.gz")) as tar:
        tar.extractall(os.path.dirname(folder), filter="data")
    os.rename(os.path.join(os.path.dirname(folder), "Lasagne-0.1"), folder)


def from_github(name):
    return lambda folder: subprocess.check_call(
        ["git", "clone", "--quiet", "--depth", "1", "https://github.com/" + name, folder])


# ---- data

def save(path, *values, zipped=False):
    with (gzip.open if zipped else open)(path, "wb") as f:
        for v in values:
            pickle.dump(v, f)


def make_data(code):
    r, data = np.random.RandomState(0), os.path.join(os.path.dirname(code), "data")
    for folder in (data, os.path.join(code, "plots"), os.path.join(code, "midi")):
        os.makedirs(folder, exist_ok=True)
    patterns = r.rand(10, 784) > .7

    def digits(n):
        y = r.randint(0, 10, n)
        return np.abs(patterns[y] * .8 - (r.rand(n, 784) < .1) * .8 * r.rand(n, 784)).astype("float32"), y

    def reviews(n):
        y = [int(v) for v in r.randint(0, 2, n)]
        return [[int(w) for w in r.randint(2, 500, r.randint(5, 40)) + 500 * c] for c in y], y

    def sentences(n):
        x = [r.randint(0, 20, r.randint(3, 9)).astype("int32") for _ in range(n)]
        return x, list(x), [(v // 10).astype("int32") for v in x]
    save(os.path.join(data, "mnist.pkl.gz"), (digits(3000), digits(900), digits(900)), zipped=True)
    save(os.path.join(data, "imdb.pkl"), reviews(200), reviews(50))
    words = {"labels2idx": {"O": 0, "B-x": 1}, "words2idx": {"w%d" % i: i for i in range(20)}}
    for path in (data, code, os.path.join(code, "rnnslu")):
        os.makedirs(path, exist_ok=True)
        save(os.path.join(path, "atis.fold0.pkl.gz"), (sentences(30), sentences(9), sentences(9), words), zipped=True)
    open(os.path.join(code, "midi", "__init__.py"), "w").close()
    with open(os.path.join(code, "midi", "utils.py"), "w") as f:
        f.write("import numpy\n\n\nclass midiread:\n    def __init__(self, *unused):\n"
                "        self.piano_roll = numpy.random.rand(50, 88) < .1\n\n\nmidiwrite = None\n")


# ---- suites

def lasagne(folder, known):
    """Its own tests, file by file, so that a file that cannot be read leaves the others alone."""
    with open(os.path.join(folder, "..", "pytest.ini"), "w") as f:
        f.write("[pytest]\n")
    tests = sorted(os.path.join(where, name) for where, _, names in os.walk(os.path.join(folder, "lasagne", "tests"))
                   for name in names if name.startswith("test_") and name.endswith(".py"))
    tests = [t for t in tests if os.path.basename(t) not in known]
    done = run([sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-W", "ignore", "-c",
                os.path.join(folder, "..", "pytest.ini"), "--rootdir", folder] + tests, folder)
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    new = [line for line in failed if not [k for k in known if k in line]]
    print("    " + (lines[-1] if lines else "nothing ran"))
    for line in failed:
        print("    %s%s" % (line, "".join(": " + v for k, v in known.items() if k in line)))
    if new:
        print(done.stdout)
    return len(new) + (not lines)


def tell(name, done):
    print("    %-18s %s" % (name, "runs" if done.returncode == 0 else "FAILS"))
    if done.returncode:
        print(done.stdout[-3000:])
    return done.returncode != 0


def tutorials(folder, known):
    code = os.path.join(folder, "code")
    make_data(code)
    return sum(tell(name, run([sys.executable, "-c", "import sys; sys.argv = ['']; import %s as m; %s" % (name, call)],
                              code, timeout=600)) for name, call in TUTORIALS.items())


def examples(folder, known):
    """Lasagne's mnist.py on digits that are made up."""
    code, r = os.path.join(folder, "examples"), np.random.RandomState(0)
    patterns = r.rand(10, 28, 28) > .7
    for stem, n in (("train", 12000), ("t10k", 1000)):
        y = r.randint(0, 10, n).astype("uint8")
        x = (patterns[y] * 200 + r.rand(n, 28, 28) * 50).astype("uint8")
        for kind, head, values in (("images-idx3", [2051, n, 28, 28], x), ("labels-idx1", [2049, n], y)):
            with gzip.open(os.path.join(code, "%s-%s-ubyte.gz" % (stem, kind)), "wb", 1) as f:
                f.write(np.array(head, ">i4").tobytes() + values.tobytes())
    return sum(tell("mnist.py " + kind, run([sys.executable, "mnist.py", kind, "1"], code, folder, timeout=600))
               for kind in ("mlp", "custom_mlp:2,100,.2,.5", "cnn"))


def models(folder, known):
    lasagne_folder = os.path.join(os.path.dirname(folder), "lasagne")
    if not os.path.exists(lasagne_folder):
        SUITES["lasagne"][0](lasagne_folder)
    return sum(tell(name, run([sys.executable, "-c", MODELS % (name, kind)], os.path.join(folder, "modelzoo"),
                              lasagne_folder, timeout=600, env={"THEANO_FLAGS": "floatX=float32"}))
               for name, kind in (("resnet50", "model"), ("inception_v3", "network")))


SUITES = {"lasagne-0.1": (fetch_lasagne_01, lasagne), "lasagne": (from_github("Lasagne/Lasagne"), lasagne),
          "examples": (from_github("Lasagne/Lasagne"), examples),
          "models": (from_github("Lasagne/Recipes"), models), "tutorials": (from_github("lisa-lab/DeepLearningTutorials"), tutorials)}


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("suites", nargs="*", default=list(SUITES), metavar="SUITE", help=", ".join(SUITES))
    a.add_argument("--folder", default=os.path.join(ROOT, "build", "suites"))
    given = a.parse_args()
    bad = 0
    for name in given.suites:
        fetch, check = SUITES[name]
        folder = os.path.abspath(os.path.join(given.folder, name))
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if not os.path.exists(folder):
            fetch(folder)
        print(name)
        bad += check(folder, KNOWN.get(name, {}))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

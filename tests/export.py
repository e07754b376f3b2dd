#!/usr/bin/env python3
"""export.py: exported C files against the library, bit for bit.

    export.py                        models, a training run, a few random nets and programs
    export.py --night                all models, a few hundred nets and programs
    export.py --case "net 17"        that one alone
    export.py --seeds 0:50           random nets; --programs A:B random programs, --loops A:B random loops as well
    export.py --found                the seeds that found defects alone
    export.py --keep FOLDER          leaves the exported files there

A case is exported, compiled as a shared library with all warnings as errors, and called through ctypes beside the
function itself under the flag `portable`: results and variables must have the same bytes.  Each case takes the next of
the compilers and instruction sets in WAYS; those with OpenMP run on three threads.  A refusal (unsupported) is counted; it must name an op and write nothing.
Needs NumPy; the library is build/libmonochord.so, or the one that MC_LIBRARY names.
"""
import argparse
import ctypes
import functools
import json
import os
import platform
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

try:
    import numpy as np
except ImportError:
    print("export: left out, there is no NumPy")
    sys.exit(0)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mc  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, os.pardir, "models")
lib = mc.lib


class Entry(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("name", ctypes.c_char_p), ("shapes", ctypes.c_char_p)]


class Spec(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("nfunction", ctypes.c_int), ("function", ctypes.POINTER(Entry)), ("parameters", ctypes.c_char_p),
                ("isa", ctypes.c_char_p), ("measure", ctypes.c_int), ("freestanding", ctypes.c_int)]


P, S, I = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
for _name, _returns, _takes in (("mc_export", I, [P]), ("mc_net_new", P, [P, S, ctypes.c_uint64]), ("mc_net_free", None, [P]),
                                ("mc_net_read", I, [P, S, S]), ("mc_net_trainer", P, [P]), ("mc_net_predictor", P, [P]), ("mc_net_target", P, [P]),
                                ("mc_net_layer", P, [P, I]), ("mc_layer_name", S, [P]), ("mc_layer_node", P, [P, I]), ("mc_node_name", S, [P]),
                                ("mc_shared_named", P, [P, S])):
    getattr(lib, _name).restype, getattr(lib, _name).argtypes = _returns, _takes

# ---- compilers ----

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LANGUAGES = {"gcc": ["-std=c99"], "clang": ["-std=c99"], "g++": ["-x", "c++", "-std=c++11"], "clang++": ["-x", "c++", "-std=c++11"]}
X86 = platform.machine() in ("x86_64", "AMD64")
# compiler, flags, whether it multiplies and adds in one step.  PLAIN stands for -DNAME_PLAIN, SHARED for
# -DNAME_PARALLEL_WORK=0, by which threads share small loops too; ISA=all for an export with code for several instruction
# sets, TENSORS for one with its parameters in a .safetensors file, MEASURED for one whose solvers are timed, as they are then
# for the library.
WAYS = [
    ("gcc", "-O2 -march=native", True),
    ("clang", "-O3 -march=native", True),
    ("gcc", "-O3 -march=x86-64-v3", True),
    ("g++", "-O2 -march=x86-64", False),
    ("clang++", "-O2 -march=x86-64-v3", True),
    ("gcc", "-O0 -march=native", True),
    ("clang", "-O2 -march=x86-64", False),
    ("g++", "-O3 -march=native PLAIN", True),
    ("gcc", "-O2 -march=x86-64 PLAIN", False),
    ("clang++", "-O0 -march=native PLAIN", True),
    ("gcc", "-O3 -march=x86-64 -mfma", True),
    ("clang", "-O2 -march=native PLAIN", True),
    ("g++", "-O0 -march=x86-64", False),
    ("gcc", "-O1 -march=native -fsanitize=undefined -fsanitize-undefined-trap-on-error", True),
    ("gcc", "-O2 -march=native -fopenmp SHARED", True),
    ("clang", "-O2 -march=native -fopenmp SHARED", True),
    ("g++", "-O3 -march=x86-64 -fopenmp SHARED", False),
    ("gcc", "-O2 -march=native -fopenmp SHARED PLAIN", True),
    ("gcc", "-O2 -march=x86-64 ISA=all", True),
    ("clang", "-O2 -march=x86-64 ISA=avx2", True),
    ("clang++", "-O3 -march=x86-64 -fopenmp SHARED ISA=all", True),
    ("g++", "-O2 -march=x86-64-v3 ISA=avx512 TENSORS", True),
    ("gcc", "-O1 -march=native ISA=all PLAIN TENSORS", True),
    ("clang", "-O1 -march=native MEASURED", True),
]
os.environ.update(OMP_NUM_THREADS="3", OMP_DYNAMIC="false", OMP_WAIT_POLICY="passive")


@functools.lru_cache
def features():
    """What the kernel says that this processor has, in words such as "fma"."""
    try:
        return frozenset(re.search(r"flags\s*:(.*)", open("/proc/cpuinfo").read()).group(1).split())
    except (OSError, AttributeError):
        return frozenset()


def fused():
    """Does this processor multiply and add in one step?"""
    return not X86 or {"avx2", "fma"} <= features()


def chosen(isa, words):
    """What NAME_isa() must say."""
    if "PLAIN" in words:
        return "plain"
    wide = "-march=native" in words or isa in ("avx512", "all")
    if wide and {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"} <= features():
        return "avx512"
    return "avx2" if {"avx2", "fma"} <= features() else "generic"


@functools.lru_cache
def openmp(cc):
    """Has the compiler OpenMP and its library?"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.c")
        open(path, "w").write("int main(void)\n{\n#pragma omp parallel\n    {\n    }\n    return 0;\n}\n")
        return subprocess.run([cc, *LANGUAGES[cc], "-fopenmp", path, "-o", path[:-2]], capture_output=True).returncode == 0


@functools.lru_cache
def ways():
    """Those of WAYS that this machine has."""
    rows = [w for w in WAYS if shutil.which(w[0]) and (X86 or "x86" not in w[1]) and ("-fopenmp" not in w[1] or openmp(w[0]))]
    return [w for w in rows if fused() or not w[2] or "native" in w[1]]


def build(path, name, way):
    cc, flags, _ = way
    macros = {"PLAIN": f"-D{name.upper()}_PLAIN", "SHARED": f"-D{name.upper()}_PARALLEL_WORK=0"}
    words = [macros.get(f, f) for f in flags.split() if not f.startswith("ISA=") and f not in ("TENSORS", "MEASURED")]
    out = path[:-2] + "-" + re.sub(r"\W+", "_", f"{cc}{flags}") + ".so"
    obj = out[:-3] + ".o"       # two commands, so that ccache keeps the first one's result
    for command in ([cc, *LANGUAGES[cc], *WARNINGS, *words, "-fPIC", "-c", path, "-o", obj], [cc, "-shared", *[f for f in words if f == "-fopenmp"], obj, "-o", out, "-lm"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or done.stderr:
            raise Wrong(f"{' '.join(command)}\n{done.stderr[:3000]}")
    return ctypes.CDLL(out)


class Wrong(Exception):
    """A finding."""


# ---- an exported file ----

NUMBERS = {"float": np.float32, "double": np.float64}
SCALARS = {"bool": ctypes.c_uint8, "float16": ctypes.c_uint16, "bfloat16": ctypes.c_uint16, "float32": ctypes.c_float,
           "float64": ctypes.c_double, **{f"{u}int{n}": getattr(ctypes, f"c_{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)}}


def as_others_write(raw):
    """The bytes of a .safetensors file with its tensors in another order, metadata, and a tensor more."""
    n, = struct.unpack("<Q", raw[:8])
    header, data, place, out = json.loads(raw[8:8 + n]), raw[8 + n:], {}, b"more"
    for name in sorted(set(header) - {"__metadata__"}, reverse=True):
        at, to = header[name]["data_offsets"]
        place[name] = {"data_offsets": [len(out), len(out) + to - at], "shape": header[name]["shape"], "dtype": header[name]["dtype"]}
        out += data[at:to]
    text = json.dumps({"more": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, **place, "__metadata__": {"by": "\u00fc"}}).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + out


class Model:
    """The exported structure, by the members that its header declares."""

    def __init__(self, header, code, name, parameters):
        body = re.search(r"struct %s \{\n(.*?)\n\};" % name, header, re.S).group(1)
        self.fields, at = {}, 0
        for kind, member, n, comment in re.findall(r"^    (\w+) (\w+)\[(\d+)\]; /\* (.*) \*/$", body, re.M):
            dtype = np.dtype(NUMBERS.get(kind) or kind[:-2])
            at = -(-at // dtype.itemsize) * dtype.itemsize
            quoted = re.match(r'"(.*)", ', comment)
            self.fields[member] = (at, int(n), dtype, quoted.group(1) if quoted else member)
            at += int(n) * dtype.itemsize
        self.room = np.full(at + 128, 0xa5, np.uint8)      # the structure, then bytes that nothing may change
        self.size = at
        self.first = -self.room.ctypes.data % 64
        self.pointer = ctypes.c_void_p(self.room.ctypes.data + self.first)
        if parameters:
            data = as_others_write(open(parameters, "rb").read())
            if getattr(code, f"{name}_load")(self.pointer, data, ctypes.c_size_t(len(data))):
                raise Wrong(f"{name}_load returns an error")
        else:
            getattr(code, f"{name}_init").restype = None
            getattr(code, f"{name}_init")(self.pointer)

    def __getitem__(self, member):
        at, n, dtype, _ = self.fields[member]
        at += self.first
        return self.room[at:at + n * dtype.itemsize].view(dtype)

    def guarded(self):
        return bool((self.room[self.first + self.size + 8:] == 0xa5).all() and (self.room[:self.first] == 0xa5).all())


def plain(a):
    """The bytes, with one NaN for all."""
    a = np.ascontiguousarray(a)
    if a.dtype.kind == "f":
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    elif isinstance(a, mc.bfloat16):
        a = np.where((a & 0x7fff) > 0x7f80, np.uint16(0x7fc0), a)
    return a.tobytes()


def difference(got, want):
    if plain(got) == plain(want):
        return ""
    if got.dtype.kind != "f":
        return f"{np.sum(np.asarray(got) != np.asarray(want))} of {want.size} elements differ"
    g, w = np.asarray(got, np.float64), np.asarray(want, np.float64)
    with np.errstate(all="ignore"):
        if np.array_equal(g, w, equal_nan=True):
            return "signs of zeros differ"
        return f"{np.sum(~((g == w) | (np.isnan(g) & np.isnan(w))))} of {want.size} elements differ, by {np.nanmax(np.abs(g - w)):g}"


class Exported:
    """functions: (mc.Function, its name, its sizes); graph: where its variables have their names."""

    def __init__(self, folder, name, graph, functions, way):
        self.name, self.graph, self.functions = name, graph, functions
        path = os.path.join(folder, name + ".c")
        rows = (Entry * len(functions))(*[Entry(f.p, n.encode(), s.encode()) for f, n, s in functions])
        before = set(os.listdir(folder))
        isa = re.search(r"ISA=(\w+)", way[1])
        parameters = path[:-2] + ".safetensors" if "TENSORS" in way[1].split() else None
        spec = Spec(path.encode(), len(functions), rows, parameters and parameters.encode(), isa and isa.group(1).encode(), "MEASURED" in way[1])
        if lib.mc_export(ctypes.byref(spec)) < 0:
            try:
                mc.fail()
            except mc.Error as e:
                if set(os.listdir(folder)) != before:
                    raise Wrong(f"it is refused, yet a file is written: {e}")
                if e.status == "unsupported" and not re.search(r"depend on", e.text) and not set(re.findall(r"\w+", e.text)) & OPS():
                    raise Wrong(f"the refusal names no op: {e}")
                raise
        header = open(path[:-2] + ".h").read()
        if re.search(r".{111}", header):
            raise Wrong(f"the header has a line of more than 110 columns\n{header}")
        self.code = build(path, name, way)
        if isa:
            said = getattr(self.code, f"{name}_isa")
            said.restype = ctypes.c_char_p
            if said().decode() != chosen(isa.group(1), way[1].split()):
                raise Wrong(f"{name}_isa() says {said().decode()}, not {chosen(isa.group(1), way[1].split())}")
        self.model = Model(header, self.code, name, parameters)
        self.needs = int(re.search(rf"#define {name.upper()}_MEMORY (\d+)", header).group(1))
        self.memory = np.zeros(self.needs + 256, np.uint8)
        self.own = True

    def arena(self):
        """Memory of the caller, with other bytes than before; every other time that of the file."""
        self.own = not self.own
        if self.own:
            return None
        first = -self.memory.ctypes.data % 64
        self.memory[:] = 0xff
        self.end = first + self.needs
        return ctypes.c_void_p(self.memory.ctypes.data + first)

    def call(self, k, inputs):
        """Calls the library and the file, and returns the differences."""
        f, name, _ = self.functions[k]
        try:
            want, failed = f(*inputs), None
        except mc.Error as e:
            want, failed = None, e
        kept = []
        args = [self.model.pointer, self.arena()]
        for x in inputs:
            x = np.asarray(x) if not isinstance(x, mc.bfloat16) else x
            kept.append(np.ascontiguousarray(x))
            if x.ndim:
                args.append(ctypes.c_void_p(kept[-1].ctypes.data))
            else:
                bits = x.view(np.uint16) if x.dtype.itemsize == 2 and x.dtype.kind == "f" else x
                args.append(SCALARS[mc.dtype_name(x)](bits.item()))
        outs = [np.full(w.nbytes + 64, 0x5a, np.uint8) for w in want] if want else [np.zeros(1 << 20, np.uint8) for _ in range(f.noutputs)]
        args += [ctypes.c_void_p(o.ctypes.data) for o in outs]
        code = getattr(self.code, f"{self.name}_{name}")(*args)
        if not self.own and not (self.memory[self.end:] == 0xff).all():
            return [f"{name} writes past the end of its memory"]
        if failed:
            return [] if code else [f"{name} returns 0, the library fails: {failed}"]
        if code:
            return [f"{name} returns {code}, the library does not fail"]
        wrong = []
        for i, (w, o) in enumerate(zip(want, outs)):
            got = o[:w.nbytes].view(w.dtype).reshape(w.shape)
            text = difference(got.view(mc.bfloat16) if isinstance(w, mc.bfloat16) else got, w)
            if text:
                wrong.append(f"{name}, result {i}: {text}")
            if not (o[w.nbytes:] == 0x5a).all():
                wrong.append(f"{name}, result {i}: written past its end")
        return wrong + self.variables()

    def variables(self):
        wrong = [] if self.model.guarded() else ["written outside of the structure"]
        for member, (_, n, _, name) in self.model.fields.items():
            s = lib.mc_shared_named(self.graph.p, name.encode())
            if not s:
                wrong.append(f"there is no variable {name} for the member {member}")
                continue
            want = mc.Shared(self.graph, s).get()
            text = difference(self.model[member][:want.size].reshape(want.shape), want.view(np.uint16) if want.dtype == np.float16 else want)
            if text:
                wrong.append(f"variable {name}: {text}")
        return wrong


_ops = set()


def OPS():
    if not _ops:
        _ops.update(mc.ops())
    return _ops


# ---- nets ----

class Net:
    def __init__(self, text, seed=1):
        self.graph = mc.Graph()
        self.p = lib.mc_net_new(self.graph.p, None, seed) or mc.fail()
        if lib.mc_net_read(self.p, b"net", text.encode()) < 0:
            mc.fail()
        train, predict = lib.mc_net_trainer(self.p), lib.mc_net_predictor(self.p)
        if not train or not predict:
            self.graph.check()
            mc.fail()
        self.train, self.predict = mc.Function(train), mc.Function(predict)
        self.input = mc.Node(self.graph, lib.mc_layer_node(lib.mc_net_layer(self.p, 0), 0))
        self.target = mc.Node(self.graph, lib.mc_net_target(self.p))
        self.names = [lib.mc_node_name(n.p).decode() for n in (self.input, self.target)]

    def __del__(self):
        if getattr(self, "p", None):
            lib.mc_net_free(self.p)

    def sizes(self, batch, n):
        return ", ".join(f"{name}[{', '.join(map(str, (batch, *node.dims[1:])))}]" for name, node in list(zip(self.names, (self.input, self.target)))[:n])

    def batch(self, batch, rng, classes, words):
        x = (rng.integers(0, words, (batch, *self.input.dims[1:])) if "int" in self.input.dtype else
             rng.standard_normal((batch, *self.input.dims[1:])))
        whole = "int" in self.target.dtype
        dims = (batch, *self.target.dims[1:])
        t = rng.integers(0, classes, dims) if whole else rng.random(dims)
        return [x.astype(self.input.dtype), t.astype(self.target.dtype)]


def run_net(text, folder, way, batch=4, steps=3, classes=10, words=1, seed=1):
    """Trains and predicts.  Returns what differs."""
    n = Net(text)
    rng = np.random.default_rng(seed)
    e = Exported(folder, "net", n.graph, [(n.train, "train", n.sizes(batch, 2)), (n.predict, "predict", n.sizes(batch, 1))], way)
    wrong = []
    for k in range(steps):
        data = n.batch(batch, rng, classes, words)
        wrong += [f"step {k}: {w}" for w in e.call(0, data) + e.call(1, data[:1])]
        if wrong:
            break
    return wrong


def one_of(r, *things):
    return r.choice(things)


class Drawer:
    """A random net: a line a layer.  dims: the sizes of one example."""

    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.lines, self.names = [], 0
        self.batch, self.classes, self.words = r.choice([1, 2, 3, 5, 8, 16, 17]), r.choice([2, 3, 10]), r.choice([5, 12])
        self.floatX = r.choice(["float32"] * 3 + ["float64"])
        kind = r.choice(["flat", "words"] + ["line"] * 2 + ["image"] * 6 + ["volume"])
        c = r.choice([1, 2, 3, 4, 6, 8])
        if kind == "flat":
            self.dims = [r.choice([1, 3, 10, 20, 33])]
        elif kind == "words":
            self.dims = [r.choice([3, 7])]
        elif kind == "line":
            self.dims = [c, r.choice([9, 16, 21])]
        elif kind == "image":
            self.dims = [c, r.choice([7, 8, 12, 17]), r.choice([7, 8, 12, 15])]
        else:
            self.dims = [c, 6, r.choice([5, 7]), 8]
        self.add(f"input {'x'.join(map(str, self.dims))}" + (" dtype=int32" if kind == "words" else ""))
        if kind == "words":
            self.add(f"embedding {self.words} {r.choice([3, 8])}")
            if r.random() < 0.5:
                self.add("dimshuffle 0,2,1")
        if kind in ("flat",):
            self.flat(r.choice([1, 2, 3]))
        else:
            for _ in range(r.choice([1, 2, 3, 4])):
                self.spatial()
        self.end()

    def add(self, line):
        self.lines.append(line)

    def act(self):
        return self.r.choice(["rectify", "tanh", "sigmoid", "linear", "elu", "softplus", "leaky_rectify", "selu", "very_leaky_rectify", "scaled_tanh", "relu(alpha=0.1)"])

    def any(self):
        """A layer for anything."""
        r = self.r
        self.add(r.choice([f"dropout {r.choice([0.2, 0.5])}", "noise", f"batch_norm {self.act()}", "batch_norm", "bias", "scale", "prelu", "rrelu",
                           f"nonlinearity {self.act()}", "expression 'tanh($x) * 0.5 + sqr($x)'", "standardize", "layer_norm",
                           "dropout 0.5 rescale=false", "nonlinearity softmax" if len(self.dims) == 1 else "nonlinearity tanh"]))

    def branches(self, line):
        """Two layers of the same input, joined."""
        r = self.r
        self.names += 1
        n = self.names
        self.add(f"base{n} = nonlinearity linear")
        self.add(f"a{n} = {line} from=base{n}")
        self.add(f"b{n} = {line} from=base{n}")
        self.add(r.choice([f"concat a{n} b{n}", f"sum a{n} b{n}", f"sum a{n} b{n} coeffs=0.5 act=rectify", f"merge a{n} b{n}",
                           f"merge a{n} b{n} op=maximum", f"concat a{n} b{n} base{n} crop=none,none,center,center" if len(self.dims) == 3 else f"concat a{n} b{n}"]))

    def flat(self, n):
        r = self.r
        for _ in range(n):
            line = r.choice(["dense", "dense", "dense", "any", "branches", "pad", "slice", "feature_pool", "wta", "reshape"])
            if line == "dense":
                self.add(f"dense {r.choice([1, 4, 6, 16, 30])} {self.act()}" + r.choice(["", " b=none", " W=he_normal", " W=orthogonal"]))
            elif line == "branches":
                self.branches(f"dense {r.choice([4, 6])} {self.act()}")
            elif line == "feature_pool":
                self.add("dense 12 linear")
                self.add(f"feature_pool {r.choice([2, 3])}" + r.choice(["", " mode=mean", " mode=sum"]))
            elif line == "wta":
                self.add("dense 12 linear")
                self.add("feature_wta 3")
            elif line == "reshape":
                self.add("dense 12 linear")
                self.add("reshape [0],3,4")
                self.add("flatten")
            elif line == "pad":
                self.add("dense 5 linear")
                self.add("pad 2 value=0.5 batch_axes=1")
            elif line == "slice":
                self.add("dense 9 tanh")
                self.add(f"slice {r.choice(['1:8:2', '2:', '::-1'])}")
            else:
                self.any()

    def size(self, *sizes):
        nd = len(self.dims) - 1
        k = self.r.choice(sizes)
        return "x".join(str(max(1, k + (self.r.choice([0, 0, 1]) if k > 1 else 0))) for _ in range(nd)) if nd > 0 else str(k)

    def conv(self):
        r = self.r
        line = f"conv {r.choice([1, 4, 6, 8, 17])} {self.size(1, 2, 3, 3)} {self.act()}"
        line += r.choice(["", "", " stride=2", " stride=3"]) + r.choice(["", " pad=1", " pad=same", " pad=full", " pad=2"])
        return line + r.choice(["", "", "", " dilation=2", " flip=false", " b=none", " untie=true"])

    def spatial(self):
        r, nd = self.r, len(self.dims) - 1
        kind = r.choice(["conv"] * 6 + ["groups", "mm", "dilated", "deconv", "pool", "pool", "pool", "upscale", "lrn", "branches", "nin", "feature_pool",
                                        "wta", "any", "any", "any", "channels", "pad", "slice", "dimshuffle", "inverse", "pyramid", "cc", "instance", "local"])
        if kind == "conv":
            self.add(self.conv())
        elif kind == "groups":
            self.add(f"conv {r.choice([4, 8])} {self.size(1, 3)} pad=same")
            self.add(f"conv {r.choice([4, 8])} {self.size(1, 3)} pad=same groups={r.choice([2, 4])}{r.choice(['', ' stride=2'])}")
        elif kind == "mm":
            self.add(f"{r.choice(['conv_mm', 'conv_dnn'])} 4 {self.size(2, 3)} {self.act()}")
        elif kind == "dilated":
            self.add(f"dilated_conv 4 {self.size(2, 3)} dilation=2")
        elif kind == "deconv":
            self.add(f"deconv {r.choice([1, 4])} {self.size(2, 3)} {self.act()}{r.choice(['', ' stride=2', ' stride=2 crop=1', ' crop=1'])}")
        elif kind == "pool":
            self.add(f"pool {self.size(2, 2, 3)}{r.choice(['', ' stride=1', ' stride=2'])}"
                     f"{r.choice(['', '', ' mode=average_inc_pad', ' mode=average_exc_pad', ' mode=sum'])}{r.choice(['', '', ' ignore_border=false', ' pad=1'])}")
        elif kind == "upscale":
            self.add(f"upscale 2{r.choice(['', ' mode=dilate'])}")
        elif kind == "lrn":
            self.add(f"lrn{r.choice(['', ' n=3', ' alpha=0.1 beta=0.5 k=1'])}")
        elif kind == "branches":
            self.branches(r.choice([f"conv 4 {self.size(1)} {self.act()}", f"conv 3 {self.size(3)} pad=same", "nonlinearity tanh"]))
        elif kind == "nin":
            self.add(f"nin {r.choice([3, 8])} {self.act()}{r.choice(['', ' untie=true'])}")
        elif kind in ("feature_pool", "wta"):
            self.add(f"conv 6 {self.size(1)} linear")
            self.add(f"feature_{'pool' if kind == 'feature_pool' else 'wta'} {r.choice([2, 3])}")
        elif kind == "channels":
            self.add(r.choice(["dropout_channels", "dropout_locations"]))
        elif kind == "pad":
            self.add(f"pad {r.choice(['1', '2 value=1'])}")
        elif kind == "slice":
            self.add(f"slice {r.choice(['1:', '::-1', '::2'])}{r.choice(['', ' axis=1'])}")
        elif kind == "dimshuffle":
            self.add("dimshuffle " + ",".join(["0", "1"] + [str(i) for i in range(nd + 1, 1, -1)]))
        elif kind == "inverse":
            self.names += 1
            self.add(f"p{self.names} = pool 2" if nd == 1 else f"p{self.names} = pool {'x'.join(['2'] * nd)}")
            self.add(f"inverse p{self.names}")
        elif kind == "pyramid":
            self.add("spatial_pyramid 2,1")
            self.add("flatten")
        elif kind == "cc":
            self.add(r.choice(["conv_cc 16 3x3", "pool_cc 3x3 stride=2", "nervana_conv 4 3x3 pad=1"]))
        elif kind == "instance":
            self.add("instance_norm")
        elif kind == "local":
            self.add(f"local 3 {self.size(3)}{r.choice(['', ' channelwise=false'])}" if r.random() < 0.3 else self.conv())
        else:
            self.any()

    def end(self):
        r = self.r
        if r.random() < 0.25:
            self.add("global_pool" + r.choice(["", " mode=max"]))
        if r.random() < 0.4:
            self.flat(1)
        rule = r.choice(["sgd rate=0.05", "momentum rate=0.02", "nesterov rate=0.02", "adagrad rate=0.05", "rmsprop rate=0.01", "adadelta", "adam",
                         "adamax", "adamw", "amsgrad", "sgd rate=0.05 max_norm=1", "adam clip=0.5", "momentum rate=0.05 clip=1"])
        loss = r.choice(["categorical"] * 5 + ["squared_error", "absolute_error", "binary_crossentropy", "multiclass_hinge", "huber", "binary_hinge"])
        if loss == "categorical":
            self.add(f"dense {self.classes} softmax")
        else:
            self.add(f"dense {self.classes} {'sigmoid' if loss.startswith('binary') else 'linear'}")
            self.add(f"loss {loss}")
        self.add(f"rule {rule}")
        if r.random() < 0.3:
            self.add(f"penalty {r.choice(['l1', 'l2'])} 0.001")

    text = property(lambda d: "\n".join(d.lines) + "\n")


def plain_call(d, seed):
    """A step and a prediction by the library alone."""
    n = Net(d.text)
    data = n.batch(d.batch, np.random.default_rng(seed), d.classes, d.words)
    n.train(*data)
    n.predict(*data[:1])


def random_net(seed, folder, way):
    """(what differs, counts)"""
    counts = {}
    for again in range(20):
        d = Drawer(f"{seed}.{again}" if again else seed)
        with mc.flags(floatX=d.floatX):
            try:
                Net(d.text)
            except mc.Error as e:       # such as a pool that is larger than its image
                counts["drawn in vain"] = counts.get("drawn in vain", 0) + 1
                if os.environ.get("EXPORT_SHOW"):
                    print(e.text, file=sys.stderr)
                continue
            try:
                wrong = run_net(d.text, folder, way, d.batch, 3, d.classes, d.words, seed)
            except Wrong as e:
                wrong = [str(e)]
            except mc.Error as e:
                if e.status != "unsupported":
                    try:        # the library says the same?
                        plain_call(d, seed)
                    except mc.Error as same:
                        if same.status == e.status:
                            return [], {**counts, "nets that do not run": 1}
                    raise
                counts["refused"] = 1
                counts["refused: " + e.text.split("\n")[0][:100]] = 1
                return [], counts
            counts["nets"] = 1
            return [f"floatX={d.floatX} batch {d.batch}\n{d.text}{w}" for w in wrong[:3]], counts
    return [f"no net for seed {seed}"], counts


# ---- models ----

def narrow(text, by):
    """The same layers with fewer filters and units: initial values are text, which takes its time to compile."""
    def few(n):
        return str(max(4, int(n) // by))

    text = re.sub(r"(conv (\d+) .*groups=)\2\b", lambda m: m.group(1) + few(m.group(2)), text)  # a filter for each channel
    return re.sub(r"\b((?:de)?conv|dense) (\d+)", lambda m: f"{m.group(1)} {few(m.group(2))}", text)


# by: how much narrower; steps of training
MODEL_ROWS = {"lenet": (8, 32, 5), "mlp": (8, 32, 3), "alexnet": (16, 2, 1), "vgg-a": (16, 1, 1), "resnet-50": (16, 2, 1),
              "mobilenet-v2": (4, 2, 1), "convnext-t": (16, 2, 1), "regnet-y": (4, 2, 1), "u-net": (16, 1, 1),
              "depthwise": (1, 2, 1), "small-images": (1, 70, 2)}
DAY_MODELS = ["lenet", "mlp", "depthwise", "small-images"]
# Models for what the others do not reach: sums for one filter, in rows of more than four vectors, at every second position;
# blocks of rows, and of 1x1 convolutions; gradients by col2im, and by sums over chains of images, of which the last is short.
OWN_MODELS = {
    "depthwise": """input 3x72x96
conv 16 3x3 stride=2 pad=1 W=he_normal
conv 16 3x3 groups=16 pad=1 W=he_normal
conv 40 1x1 W=he_normal
conv 40 3x3 groups=40 stride=2 pad=1 W=he_normal
conv 40 5x5 groups=20 pad=2 tanh
global_pool
dense 10 softmax
rule sgd rate=0.1
""",
    "small-images": """input 3x12x13
conv 16 4x5 tanh
conv 24 3x3 tanh flip=false
conv 12 3x3 tanh groups=2
dense 10 softmax
rule momentum rate=0.05 momentum=0.9
""",
}
# What found defects: the models above, and seeds: sums of integers that overflow, tails of vectors, comparisons with themselves, counters that nothing
# reads, products of nothing, phases without taps.
FOUND = ["model depthwise/0", "model small-images/0", "program 20/13", "program 341/3", "program 159/3", "program 227/6", "program 958/6", "net 56/0", "net 23/9"]


def model_text(name):
    return OWN_MODELS[name] if name in OWN_MODELS else open(os.path.join(MODELS, name + ".txt")).read()


def model(name, folder, way):
    by, batch, steps = MODEL_ROWS[name]
    text = model_text(name)
    wrong = run_net(narrow(text, by), folder, way, batch, steps)
    libraries = [open(os.path.join(folder, f), "rb").read() for f in os.listdir(folder) if f.endswith(".so")]
    if "-fopenmp" in way[1] and not any(start in text for text in libraries for start in (b"GOMP_parallel", b"__kmpc_fork_call")):
        wrong.append("no loop is shared by threads")
    return wrong


def training(folder, way, steps=200):
    """LeNet, as it is: losses of all steps, and all variables at the end."""
    n = Net(open(os.path.join(MODELS, "lenet.txt")).read())
    rng = np.random.default_rng(7)
    batch = 16
    e = Exported(folder, "lenet", n.graph, [(n.train, "train", n.sizes(batch, 2)), (n.predict, "predict", n.sizes(batch, 1))], way)
    e.variables, last = lambda: [], e.variables
    patterns = rng.standard_normal((10, *n.input.dims[1:]))
    wrong, losses = [], []
    for k in range(steps):
        t = rng.integers(0, 10, batch)
        x = (patterns[t] + rng.standard_normal((batch, *n.input.dims[1:]))).astype(np.float32)
        wrong += [f"step {k}: {w}" for w in e.call(0, [x, t.astype(np.int32)])]
        if wrong:
            return wrong
    wrong += e.call(1, [x])
    return wrong + last()


# ---- random programs ----

def contiguous(a):
    b = np.ascontiguousarray(a).reshape(a.shape)
    return b.view(mc.bfloat16) if isinstance(a, mc.bfloat16) else b


def random_program(seed, folder, way):
    from programs import draw
    p, counts = draw.draw(seed).p, {}
    if not p.outputs:
        return [], counts
    with mc.flags(floatX=p.floatX):
        try:
            g, _ = p.graph()
            f = g.compile(inputs=", ".join(x.name for x in p.leaves if not x.shared), outputs=", ".join(p.outputs), on_unused="ignore",
                          updates="; ".join(f"{s} = {t}" for s, t in p.updates) or None)
            inputs = [x for x in p.leaves if not x.shared]
            sizes = ", ".join(f"{x.name}[{', '.join(map(str, x.at(0).shape))}]" for x in inputs if x.at(0).ndim)
            f(*[x.at(0) for x in inputs])       # sizes that do not fit are no export's fault
        except mc.Error:
            return [], {"programs that do not run": 1}
        g, _ = p.graph()
        f = g.compile(inputs=", ".join(x.name for x in inputs), outputs=", ".join(p.outputs), on_unused="ignore",
                      updates="; ".join(f"{s} = {t}" for s, t in p.updates) or None)
        try:
            e = Exported(folder, "program", g, [(f, "run", sizes)], way)
            # contiguous: the order of a sum may depend on strides
            wrong = [w for k in (0, 0) for w in e.call(0, [contiguous(x.at(k)) for x in inputs])]
        except Wrong as x:
            wrong = [str(x)]
        except mc.Error as x:
            if x.status != "unsupported":
                return [f"{p.text()}\n{x}"], counts
            return [], {"programs refused": 1, "refused: " + x.text.split("\n")[0][:100]: 1}
    signs = [w for w in wrong if "signs of zeros" in w and "cast(" in p.text()]     # the library's (double)(int)x may be -0
    wrong = [w for w in wrong if w not in signs]
    return [f"floatX={p.floatX}\n{p.text()}\n{w}" for w in wrong[:2]], {"programs": 1, **({"programs with other signs of zeros": 1} if signs else {})}


# ---- random loops ----

def random_loop(seed, folder, way):
    import random_loops
    d, g = random_loops.Loops(seed), mc.Graph()
    try:
        f = d.compiled(g)
        e = Exported(folder, "loops", g, [(f, "one", d.sizes(0)), (f, "other", d.sizes(1))], way)
        wrong = [w for k in (0, 1, 0, 1) for w in e.call(k, d.at(k))]
    except (Wrong, mc.Error) as x:
        wrong = [str(x)]
    return [f"{d.text}\n{d.outputs}\n{d.updates}\n{w}" for w in wrong[:2]], {"loops": 1}


# ---- cases ----

def one_case(case, options):
    """A case's name and number: "net 17"; what is to be told of it, for worker.py."""
    kind, _, what = case.partition(" ")
    name, _, at = what.partition("/")
    number = int(name) if name.isdigit() else sum(map(ord, name))
    have = ways()
    way = have[(int(at) if at else number) % len(have)]
    answer = {"done": case, "found": [], "calls": {}, "kinds": {}, "counts": {}, "dropped": {}}
    with tempfile.TemporaryDirectory() as temporary:
        folder = temporary
        if options.get("keep"):
            folder = os.path.join(options["keep"], re.sub(r"\W", "_", case))
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        isa = "native" if way[2] or not X86 else "sse2"
        wrong, counts = [], {}
        with mc.flags(portable=True, threads=1, floatX="float32", cpu__isa=isa, plan="measure" if "MEASURED" in way[1] else "estimate"):
            try:
                if kind == "net":
                    wrong, counts = random_net(number, folder, way)
                elif kind == "program":
                    wrong, counts = random_program(number, folder, way)
                elif kind == "loop":
                    wrong, counts = random_loop(number, folder, way)
                elif kind == "training":
                    wrong, counts = training(folder, way), {"training runs": 1}
                else:
                    wrong, counts = model(name, folder, way), {"models": 1}
            except Exception:
                wrong = [traceback.format_exc()]
        answer["found"] = [("export", f"[{way[0]} {way[1]}] {w}") for w in wrong]
        answer["counts"] = counts
    return answer


def main():
    a = argparse.ArgumentParser(description="exported C against the library, bit for bit")
    a.add_argument("--night", action="store_true")
    a.add_argument("--seeds", help="A:B, random nets from A up to B alone")
    a.add_argument("--programs", help="A:B, random programs")
    a.add_argument("--loops", help="A:B, random loops")
    a.add_argument("--case", action="append", default=[], help='"net 17", "program 3", "model lenet/2", "training": that one alone; /2: with that row of WAYS')
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--found", action="store_true", help="the seeds that found defects")
    a.add_argument("--keep", help="folder for the exported files")
    a.add_argument("--cache", help="folder of compiled kernels")
    a.add_argument("--quiet", action="store_true", help="no counts of what was refused")
    args = a.parse_args()
    if not ways():
        print("export: left out, there is no compiler")
        return 0
    warnings.simplefilter("ignore")
    cases = list(args.case) + (FOUND if args.found else [])
    for kind, text in (("net", args.seeds), ("program", args.programs), ("loop", args.loops)):
        if text:
            low, high = map(int, text.split(":"))
            cases += [f"{kind} {i}" for i in range(low, high)]
    if not cases:
        n = len(ways())
        shared = [i for i, w in enumerate(ways()) if "-fopenmp" in w[1]]
        models = list(MODEL_ROWS) if args.night else DAY_MODELS
        cases = [f"model {m}/{i}" for m in models for i in (range(n) if m in DAY_MODELS and args.night else [0, 1 % n, 3 % n] if m == "lenet" else [0, 7 % n] if m in OWN_MODELS else [0])]
        cases += [f"model {m}/{i}" for m in ("lenet", "mlp") for i in shared[:1] if not args.night]
        cases += [f"training /{i}" for i in ([0, 1, 3] if args.night else [0]) + shared[:1]]
        cases += [f"net {i}" for i in range(300 if args.night else 14)] + [f"program {i}" for i in range(600 if args.night else 14)]
        cases += [f"loop {i}" for i in range(600 if args.night else 14)]
        cases += [c for c in FOUND if c not in cases]
    from programs import worker
    start, found, counts, done = time.time(), [], {}, 0

    def report(answer):
        nonlocal done
        done += 1
        for k, n in answer["counts"].items():
            counts[k] = counts.get(k, 0) + n
        if answer["found"]:
            found.append(answer["done"])
            print(f"==== {answer['done']}\n" + "\n".join(t for _, t in answer["found"]) + f"\nexport.py --case '{answer['done']}'", flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.cache or os.environ.get("XDG_CACHE_HOME") and os.path.join(os.environ["XDG_CACHE_HOME"], "export")
        mc.flag("cache", folder or temporary)
        worker.run(cases, {"one": one_case, "keep": args.keep}, args.jobs, report, chunk=5)
    if not args.quiet:
        for k, n in sorted(counts.items()):
            print(f"  {n:>5} {k}")
    print(f"export: {done} cases in {time.time() - start:.0f} s, {counts.get('refused', 0) + counts.get('programs refused', 0)} refused, "
          f"{len(found)} with findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

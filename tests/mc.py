"""mc.py: the library through ctypes, for tests that compare it with NumPy.

    import mc
    g = mc.Graph()
    g.input("x", "float32", [-1, 3])
    f = g.compile(inputs="x", outputs="y = exp(x), sum(x, axis=0)")
    y, s = f(np.ones((2, 3), np.float32))

Arrays go in as they lie: any strides, also negative ones and zeros.  Results are copies.  NumPy has no bfloat16:
such arrays are of the class `bfloat16`, uint16 that hold the bits.  Every failure is an `mc.Error` with the status.
MC_LIBRARY names the library; otherwise it is build/libmonochord.so beside this folder.
"""
import contextlib
import ctypes
import os
from ctypes import c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

import numpy as np

LIBRARY = os.environ.get("MC_LIBRARY") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), os.pardir, "build", "libmonochord.so")

DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64").split()
STATUS = ("ok arg syntax type shape index grad memory file format device compile check unsupported internal").split()


class Arg(ctypes.Structure):
    _fields_ = [("kind", c_int), ("dtype", c_int), ("u", c_void_p)]


class Spec(ctypes.Structure):
    _fields_ = [(name, c_char_p) for name in ("name", "inputs", "outputs", "updates", "givens", "mode",
                                              "including", "excluding", "on_unused")] + \
               [(name, c_int) for name in ("no_default_updates", "profile", "threads")] + \
               [("input", c_void_p), ("ninput", c_int), ("output", c_void_p), ("noutput", c_int),
                ("update_of", c_void_p), ("update", c_void_p), ("nupdate", c_int)]


class Custom(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("nin", c_int), ("nout", c_int), ("infer", c_void_p), ("run", c_void_p), ("grad", c_void_p),
                ("kernel", c_char_p), ("kernel_grad", c_char_p * 8), ("cuda", c_char_p), ("threads", c_int), ("release", c_void_p), ("arg", c_void_p)]


class StepInfo(ctypes.Structure):
    _fields_ = [(name, c_char_p) for name in ("kind", "name", "text", "device", "solver", "reason")] + \
               [("calls", c_int64), ("seconds", c_double), ("flops", c_double), ("bytes", c_double)]


# name: what it returns, what it takes
FUNCTIONS = {
    "mc_version":             (c_char_p, []),
    "mc_last_error":          (c_char_p, []),
    "mc_last_status":         (c_int, []),
    "mc_flag_set":            (c_int, [c_char_p, c_char_p]),
    "mc_flag_get":            (c_char_p, [c_char_p]),
    "mc_op_count":            (c_int, []),
    "mc_op_name":             (c_char_p, [c_int]),
    "mc_op_doc":              (c_char_p, [c_int]),
    "mc_text_free":           (None, [c_void_p]),
    "mc_register":            (c_int, [c_void_p, c_void_p]),
    "mc_array_wrap":          (c_void_p, [c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "mc_array_unref":         (None, [c_void_p]),
    "mc_array_dtype":         (c_int, [c_void_p]),
    "mc_array_rank":          (c_int, [c_void_p]),
    "mc_array_dims":          (ctypes.POINTER(c_int64), [c_void_p]),
    "mc_array_strides":       (ctypes.POINTER(c_int64), [c_void_p]),
    "mc_array_size":          (c_int64, [c_void_p]),
    "mc_array_data":          (c_void_p, [c_void_p]),
    "mc_array_device":        (c_char_p, [c_void_p]),
    "mc_array_to":            (c_void_p, [c_void_p, c_char_p]),
    "mc_array_cast":          (c_void_p, [c_void_p, c_int]),
    "mc_graph_new":           (c_void_p, []),
    "mc_graph_free":          (None, [c_void_p]),
    "mc_error":               (c_char_p, [c_void_p]),
    "mc_graph_status":        (c_int, [c_void_p]),
    "mc_graph_clear_error":   (None, [c_void_p]),
    "mc_input_sized":         (c_void_p, [c_void_p, c_char_p, c_int, c_int, c_void_p]),
    "mc_formula":             (c_void_p, [c_void_p, c_char_p]),
    "mc_shared_sized":        (c_void_p, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "mc_random":              (c_void_p, [c_void_p, c_char_p, c_uint64]),
    "mc_shared_get":          (c_void_p, [c_void_p]),
    "mc_shared_set":          (c_int, [c_void_p, c_void_p]),
    "mc_node_text":           (c_void_p, [c_void_p]),
    "mc_graph_text":          (c_void_p, [c_void_p, c_int, c_void_p]),
    "mc_node_op":             (c_char_p, [c_void_p]),
    "mc_node_dtype":          (c_int, [c_void_p]),
    "mc_node_rank":           (c_int, [c_void_p]),
    "mc_node_dims":           (ctypes.POINTER(c_int64), [c_void_p]),
    "mc_compile_at":          (c_void_p, [c_void_p, ctypes.POINTER(Spec), c_char_p, c_int]),
    "mc_function_free":       (None, [c_void_p]),
    "mc_function_noutputs":   (c_int, [c_void_p]),
    "mc_function_nsteps":     (c_int, [c_void_p]),
    "mc_function_step":       (StepInfo, [c_void_p, c_int]),
    "mc_function_source":     (c_char_p, [c_void_p]),
    "mc_function_graph_text": (c_char_p, [c_void_p]),
    "mc_call_args":           (c_int, [c_void_p, c_int, c_void_p, c_int, c_void_p]),
}

lib = ctypes.CDLL(LIBRARY)
for _name, (_returns, _takes) in FUNCTIONS.items():
    _f = getattr(lib, _name)
    _f.restype, _f.argtypes = _returns, _takes


class Error(Exception):
    """status is a word of STATUS."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


def fail():
    raise Error(STATUS[-lib.mc_last_status()], lib.mc_last_error().decode(errors="replace"))


class bfloat16(np.ndarray):
    """The bits, as uint16."""

    @staticmethod
    def of(x):
        """Rounded to nearest, ties to even, once: from float64, too."""
        x = np.asarray(x, np.float64)
        with np.errstate(over="ignore"):
            f = x.astype(np.float32)
        b = np.atleast_1d(f).view(np.uint32).astype(np.int64).reshape(f.shape)
        exact = np.asarray(np.abs(x)), np.asarray(np.abs(f.astype(np.float64)))
        half = (b & 0xffff) == 0x8000       # the first rounding may have made a tie, or broken one
        b = np.where(half & (exact[0] > exact[1]), b + 1, np.where(half & (exact[0] < exact[1]), b - 1, b))
        bits = (b + 0x7fff + ((b >> 16) & 1)) >> 16
        bits = np.where(np.isnan(x), 0x7fc0, bits)
        return np.asarray(bits.astype(np.uint16)).view(bfloat16)

    def float32(self):
        b = np.asarray(self).astype(np.uint32) << 16
        return np.atleast_1d(b).view(np.float32).reshape(b.shape)


def dtype_name(a):
    return "bfloat16" if isinstance(a, bfloat16) else a.dtype.name


def dims_of(dims):
    return (c_int64 * max(len(dims), 1))(*dims)


def wrap(a):
    """An mc_array over a's memory, which must outlive it."""
    name = dtype_name(a)
    if name not in DTYPES:
        raise TypeError(f"there is no dtype {name}")
    p = lib.mc_array_wrap(DTYPES.index(name), a.ndim, dims_of(a.shape), dims_of(a.strides), a.ctypes.data, None, None)
    return p or fail()


def unref(p):
    lib.mc_array_unref(ctypes.byref(c_void_p(p)))


def numpy_of(p):
    """A NumPy copy of an mc_array, which is given back."""
    try:
        if lib.mc_array_device(p) != b"cpu":
            home = lib.mc_array_to(p, b"cpu") or fail()
            unref(p)
            p = home
        name, rank = DTYPES[lib.mc_array_dtype(p)], lib.mc_array_rank(p)
        item = np.dtype(np.uint16 if name == "bfloat16" else name)
        shape = tuple(lib.mc_array_dims(p)[:rank])
        out = np.empty(shape, item)
        if out.size:
            strides = lib.mc_array_strides(p)[:rank]
            data = lib.mc_array_data(p)
            low = data + sum(min(0, s * (n - 1)) for s, n in zip(strides, shape))
            high = data + sum(max(0, s * (n - 1)) for s, n in zip(strides, shape)) + item.itemsize
            raw = (ctypes.c_char * (high - low)).from_address(low)
            out[...] = np.ndarray(shape, item, raw, data - low, strides)
        return out.view(bfloat16) if name == "bfloat16" else out
    finally:
        unref(p)


def text_of(p):
    if not p:
        fail()
    text = ctypes.string_at(p).decode()
    lib.mc_text_free(p)
    return text


def flag(name, value=None):
    """The flag's value; sets it when one is given."""
    if value is not None and lib.mc_flag_set(name.encode(), str(value).encode()) < 0:
        fail()
    value = lib.mc_flag_get(name.encode())
    if value is None:
        raise Error("arg", f"there is no flag {name}")
    return value.decode()


@contextlib.contextmanager
def flags(**values):
    """flags(threads=1, conv__algo_fwd="fft"): set inside, as before afterwards.  Two underscores are a point."""
    before = {}
    try:
        for name, value in values.items():
            name = name.replace("__", ".")
            before[name] = flag(name)
            flag(name, value)
        yield
    finally:
        for name, value in before.items():
            flag(name, value)


def ops():
    """{name: "exp(x): e to the x"} of every op."""
    return {lib.mc_op_name(i).decode(): lib.mc_op_doc(i).decode() for i in range(lib.mc_op_count())}


class Node:
    def __init__(self, graph, p):
        self.graph, self.p = graph, p

    text = property(lambda n: text_of(lib.mc_node_text(n.p)))
    op = property(lambda n: lib.mc_node_op(n.p).decode())
    dtype = property(lambda n: DTYPES[lib.mc_node_dtype(n.p)])
    rank = property(lambda n: lib.mc_node_rank(n.p))
    dims = property(lambda n: tuple(lib.mc_node_dims(n.p)[:n.rank]))


class Shared:
    def __init__(self, graph, p):
        self.graph, self.p = graph, p

    def get(self):
        return numpy_of(lib.mc_shared_get(self.p) or fail())

    def set(self, value):
        a = wrap(value)
        try:
            if lib.mc_shared_set(self.p, a) < 0:
                fail()
        finally:
            unref(a)


class Graph:
    def __init__(self):
        self.p = lib.mc_graph_new() or fail()

    def __del__(self):
        if getattr(self, "p", None):
            lib.mc_graph_free(self.p)

    def check(self):
        """Raises the graph's error, and clears it."""
        status = lib.mc_graph_status(self.p)
        if status < 0:
            text = lib.mc_error(self.p).decode(errors="replace")
            lib.mc_graph_clear_error(self.p)
            raise Error(STATUS[-status], text)

    def node(self, p):
        self.check()
        return Node(self, p or fail())

    def input(self, name, dtype, dims=()):
        """dims: -1 for a size that is known only when called."""
        return self.node(lib.mc_input_sized(self.p, name.encode(), DTYPES.index(dtype), len(dims), dims_of(dims)))

    def register(self, name, kernel, *grads):
        """An op of the user's: C of one element, and the gradient by each input as a formula."""
        op = Custom(name=name.encode(), nin=len(grads), nout=1, kernel=kernel.encode())
        for i, g in enumerate(grads):
            op.kernel_grad[i] = g.encode()
        if lib.mc_register(self.p, ctypes.byref(op)) < 0:
            fail()

    def shared(self, name, value, dims=None):
        """dims: -1 for a size that may change."""
        value = value if isinstance(value, bfloat16) else np.asarray(value)
        a = wrap(value)
        p = lib.mc_shared_sized(self.p, name.encode(), a, dims_of(value.shape if dims is None else dims))
        unref(a)
        self.check()
        return Shared(self, p or fail())

    def random(self, name, seed):
        p = lib.mc_random(self.p, name.encode(), seed)
        self.check()
        return Shared(self, p or fail())

    def formula(self, text):
        return self.node(lib.mc_formula(self.p, text.encode()))

    def text(self, *nodes):
        return text_of(lib.mc_graph_text(self.p, len(nodes), (c_void_p * max(len(nodes), 1))(*[n.p for n in nodes])))

    def compile(self, inputs="", outputs="", **more):
        """more: the other members of mc_spec: mode, updates, givens, including, excluding, threads, ..."""
        words = {k: v.encode() if isinstance(v, str) else v for k, v in more.items()}
        spec = Spec(inputs=inputs.encode(), outputs=outputs.encode(), **words)
        p = lib.mc_compile_at(self.p, ctypes.byref(spec), None, 0)
        if not p:
            self.check()
            fail()
        return Function(p)


class Function:
    def __init__(self, p):
        self.p = p

    def __del__(self):
        if getattr(self, "p", None):
            lib.mc_function_free(self.p)

    source = property(lambda f: lib.mc_function_source(f.p).decode())
    graph_text = property(lambda f: lib.mc_function_graph_text(f.p).decode())
    noutputs = property(lambda f: lib.mc_function_noutputs(f.p))

    @property
    def steps(self):
        """(kind, name, text, device, solver, reason) of each step."""
        rows = [lib.mc_function_step(self.p, i) for i in range(lib.mc_function_nsteps(self.p))]
        return [tuple(getattr(r, k).decode() for k in ("kind", "name", "text", "device", "solver", "reason")) for r in rows]

    def __call__(self, *values, out=None):
        """The results, as a list.  out: arrays that are written to, None for those to be made."""
        values = [v if isinstance(v, np.ndarray) else np.asarray(v) for v in values]
        out = [None] * self.noutputs if out is None else out
        taken = [wrap(v) for v in values] # given back below
        written = [o if o is None else wrap(o) for o in out]
        slots = (c_void_p * max(len(out), 1))(*written)
        step = ctypes.sizeof(c_void_p)
        src = (Arg * max(len(taken), 1))(*[Arg(0, 0, p) for p in taken])
        dst = (Arg * max(len(out), 1))(*[Arg(3, 0, ctypes.addressof(slots) + i * step) for i in range(len(out))])
        try:
            if lib.mc_call_args(self.p, len(taken), src, len(out), dst) < 0:
                for i, o in enumerate(out):
                    if slots[i]:
                        unref(slots[i])
                fail()
            results = [numpy_of(slots[i]) if o is None else o for i, o in enumerate(out)]
            for p in written:
                if p:
                    unref(p)
            return results
        finally:
            for p in taken:
                unref(p)

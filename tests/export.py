"""export.py: exported C files against the library, bit for bit.

    python3 tests/export.py [--seeds A:B] [--cc CC] [--flags FLAGS]

A case is a graph, its functions and their calls.  It is exported, compiled as a shared library, and called through
ctypes beside the function itself under the flag `portable`: results and variables must have the same bytes.
"""
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mc  # noqa: E402


class Entry(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("name", ctypes.c_char_p), ("shapes", ctypes.c_char_p)]


mc.lib.mc_export_c.restype = ctypes.c_int
mc.lib.mc_export_c.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-std=c99", "-Wno-misleading-indentation"]


def export(path, entries):
    """entries: (function, name, shapes)"""
    rows = (Entry * len(entries))(*[Entry(f.p, n.encode(), s.encode()) for f, n, s in entries])
    if mc.lib.mc_export_c(path.encode(), len(entries), rows) < 0:
        mc.fail()


def build(path, cc=("cc",), flags=("-O2", "-march=native")):
    out = path[:-2] + ".so"
    subprocess.run([*cc, *WARNINGS, *flags, "-fPIC", "-shared", path, "-o", out, "-lm"], check=True)
    return ctypes.CDLL(out)


class Struct:
    """The exported structure, by the members that its header declares."""

    def __init__(self, header, lib, name):
        text = open(header).read()
        body = text[text.index(f"struct {name} {{"):]
        body = body[:body.index("};")]
        types = {"float": np.float32, "double": np.float64}
        self.fields, at = {}, 0
        for line in body.splitlines()[1:]:
            words = line.split()
            if "[" not in line:
                continue
            kind, rest = words[0], words[1]
            member, n = rest[:rest.index("[")], int(rest[rest.index("[") + 1:rest.index("]")])
            dtype = np.dtype(types.get(kind) or kind[:-2])
            at = -(-at // dtype.itemsize) * dtype.itemsize
            self.fields[member] = (at, n, dtype)
            at += n * dtype.itemsize
        self.memory = np.zeros(at + 64, np.uint8)
        getattr(lib, f"{name}_init")(ctypes.c_void_p(self.memory.ctypes.data))

    def __getitem__(self, member):
        at, n, dtype = self.fields[member]
        return self.memory[at:at + n * dtype.itemsize].view(dtype)


def check(name, f, shapes, calls, shared=(), cc=("cc",), flags=("-O2", "-march=native"), keep=None):
    """f: compiled under `portable`; calls: lists of input arrays.  shared: (name, mc.Shared).  Returns differences."""
    with tempfile.TemporaryDirectory() as folder:
        folder = keep or folder
        path = os.path.join(folder, f"{name}.c")
        export(path, [(f, "run", shapes)])
        lib = build(path, cc, flags)
        m = Struct(path[:-2] + ".h", lib, name)
        wrong = []
        for k, inputs in enumerate(calls):
            want = f(*inputs)
            outs = [np.zeros_like(w) for w in want]
            args = [ctypes.c_void_p(m.memory.ctypes.data), None]
            for x in inputs:
                x = np.asarray(x)
                args.append(ctypes.c_void_p(np.ascontiguousarray(x).ctypes.data) if x.ndim else
                            (ctypes.c_float if x.dtype == np.float32 else ctypes.c_double if x.dtype == np.float64
                             else ctypes.c_int64)(x.item()))
            contiguous = [np.ascontiguousarray(o) for o in outs]
            for o in contiguous:
                args.append(ctypes.c_void_p(o.ctypes.data))
            code = getattr(lib, f"{name}_run")(*args)
            if code:
                wrong.append(f"call {k} returns {code}")
            for i, (w, o) in enumerate(zip(want, contiguous)):
                if np.ascontiguousarray(w).tobytes() != o.tobytes():
                    d = np.abs(w.astype(np.float64) - o.astype(np.float64)).max() if w.size else 0
                    wrong.append(f"call {k}: output {i} differs by {d:g}")
        for member, s in shared:
            if np.ascontiguousarray(s.get()).tobytes() != m[member].tobytes():
                wrong.append(f"variable {member} differs")
        return wrong

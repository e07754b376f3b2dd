"""A part of PyCUDA on the host: SourceModule compiles CUDA C as C, and a launch runs its threads one after another.

Kernels in which threads wait for each other (__syncthreads, __shared__) are refused."""
import ctypes
import os
import re
import subprocess
import tempfile
import time
import types

import numpy as np

from monochord import _monochord

PRELUDE = """#include <math.h>
#include <stddef.h>
#include <stdint.h>
struct dim3 { unsigned x, y, z; };
static struct dim3 threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__ static
#define __restrict__ restrict
"""
LAUNCH = """
void launch_%(name)s(const unsigned *size, void **arg)
{
    gridDim = (struct dim3){ size[0], size[1], size[2] };
    blockDim = (struct dim3){ size[3], size[4], size[5] };
    for (size_t i = 0; i < (size_t)size[0] * size[1] * size[2]; i++) {
        blockIdx = (struct dim3){ i %% size[0], i / size[0] %% size[1], i / size[0] / size[1] };
        for (size_t k = 0; k < (size_t)size[3] * size[4] * size[5]; k++) {
            threadIdx = (struct dim3){ k %% size[3], k / size[3] %% size[4], k / size[3] / size[4] };
            %(name)s(%(arguments)s);
        }
    }
}
"""


class SourceModule:
    def __init__(self, source, **unused):
        for word in ("__syncthreads", "__shared__", "atomic"):
            if word in source:
                raise NotImplementedError("%s: this kernel needs PyCUDA and a GPU" % word)
        kernels = re.findall(r"__global__\s+void\s+(\w+)\s*\(([^)]*)\)", source)
        self.kinds = {name: [p.rsplit(None, 1)[0] + "*" * p.rsplit(None, 1)[1].count("*") for p in parameters.split(",")]
                      for name, parameters in kernels}
        text = PRELUDE + source.replace('extern "C"', "") + "".join(
            LAUNCH % {"name": name, "arguments": ", ".join("*(%s *)arg[%d]" % (k, i) for i, k in enumerate(kinds))}
            for name, kinds in self.kinds.items())
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "kernel")
        with open(path + ".c", "w") as f:
            f.write(text)
        subprocess.run([_monochord.flag_get("cc") or "cc", "-O2", "-shared", "-fPIC", "-o", path + ".so", path + ".c",
                        "-lm"], check=True)
        self.library = ctypes.CDLL(path + ".so")

    def get_function(self, name):
        launch, kinds = getattr(self.library, "launch_" + name), self.kinds[name]

        def call(*args, block=(1, 1, 1), grid=(1, 1), **unused):
            sizes = (list(grid) + [1, 1])[:3] + (list(block) + [1, 1])[:3]
            kept, places = [], []
            for a, kind in zip(args, kinds):
                a = getattr(a, "array", a)
                if "*" in kind:
                    kept.append(ctypes.c_void_p(a.ctypes.data))
                    places.append(ctypes.cast(ctypes.pointer(kept[-1]), ctypes.c_void_p))
                else:
                    kept.append(np.array(a))
                    places.append(ctypes.c_void_p(kept[-1].ctypes.data))
            launch((ctypes.c_uint * 6)(*[int(s) for s in sizes]), (ctypes.c_void_p * len(places))(*places))
        call.module = self  # the code lives as long
        return call


class Argument:
    """In, Out, InOut: the kernel sees the array itself."""

    def __init__(self, array):
        if not array.flags.c_contiguous:
            raise ValueError("the array must be contiguous")
        self.array = array


class Event:
    """A moment: when all that was asked for before was done."""

    def record(self, stream=None):
        _monochord.synchronize()
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def time_till(self, other):
        return 1e3 * (other.at - self.at)


def modules():
    made = {n: types.ModuleType(n) for n in ("pycuda", "pycuda.autoinit", "pycuda.compiler", "pycuda.driver")}
    made["pycuda.compiler"].SourceModule = SourceModule
    made["pycuda.driver"].Event = Event
    made["pycuda.driver"].In = made["pycuda.driver"].Out = made["pycuda.driver"].InOut = Argument
    for name in ("autoinit", "compiler", "driver"):
        setattr(made["pycuda"], name, made["pycuda." + name])
    made["pycuda"].__path__ = []
    return made

"""The models of the suite export by onnx2c: C made of an ONNX file, compiled by gcc, which runs on one thread.

The parameters are not written out in the C file, which would be hundreds of megabytes of text for ResNet-50: onnx2c
declares them, and an assembler file takes them from a binary one."""
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx

from exported import onnx_bytes, predictions
from peer import error, report

FLAGS = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
ONNX2C = pathlib.Path(sys.executable).parent / "onnx2c"


def parameters(model, c, folder):
    """An assembler file of the arrays that the C file declares extern."""
    arrays = {"tensor_" + re.sub(r"\W", "_", array.name): onnx.numpy_helper.to_array(array) for array in model.graph.initializer}
    lines = ['.section .note.GNU-stack,"",@progbits', ".section .rodata"]
    for name in re.findall(r"^extern const \w+ (\w+)\[", c, re.MULTILINE):
        numpy.ascontiguousarray(arrays[name]).tofile(folder / name)
        lines += [f".globl {name}", ".balign 64", f'{name}: .incbin "{folder / name}"']
    file = folder / "parameters.s"
    file.write_text("\n".join(lines) + "\n")
    return file


def compiled(file, folder):
    """The model's function of pointers to its input and its result."""
    folder = pathlib.Path(folder)
    (folder / "net.onnx").write_bytes(file)
    c = subprocess.run([ONNX2C, "-l", "0", "-e", folder / "net.onnx"], stdout=subprocess.PIPE, text=True, check=True).stdout
    (folder / "net.c").write_text(c)
    assembler = parameters(onnx.load_from_string(file), c, folder)
    subprocess.run(["gcc", *FLAGS, folder / "net.c", assembler, "-o", folder / "net.so", "-lm"], check=True)
    return ctypes.CDLL(folder / "net.so").entry


for case, net, x, want in predictions():
    with tempfile.TemporaryDirectory() as folder:
        entry, y = compiled(onnx_bytes(net, x), folder), numpy.empty(want.shape, dtype=numpy.float32)
    call = lambda: entry(src, dst)  # noqa: E731
    src, dst = (ctypes.c_void_p(array.ctypes.data) for array in (x, y))
    call()
    report("export", case, call, "predict", rel_err=error(y, want), calls=1 if case.startswith("resnet") else 3)

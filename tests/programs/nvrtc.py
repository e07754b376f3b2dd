"""nvrtc.py: CUDA texts through NVIDIA's run-time compiler, for any architecture; no GPU is needed."""
import ctypes
import glob
import os

_lib = None


def find(folders):
    """The library, from what scripts/nvrtc.sh fetched or what is installed; None where there is none."""
    global _lib
    for folder in folders + ["/usr/local/cuda/lib64"]:
        for path in sorted(glob.glob(os.path.join(folder, "**", "libnvrtc.so.1[23]*"), recursive=True)):
            try:
                for b in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so*")):
                    ctypes.CDLL(b, mode=ctypes.RTLD_GLOBAL)
                _lib = ctypes.CDLL(path)
                return path
            except OSError:
                continue
    return None


def architectures():
    n = ctypes.c_int()
    if _lib is None or _lib.nvrtcGetNumSupportedArchs(ctypes.byref(n)):
        return []
    sm = (ctypes.c_int * n.value)()
    _lib.nvrtcGetSupportedArchs(sm)
    return list(sm)


def texts(source):
    """A function's source is several texts, each with the same first line."""
    first = source.split("\n", 1)[0] + "\n"
    return [first + part for part in source.split(first)[1:]]


def compile(text, sm):
    """None, or what the compiler says."""
    p = ctypes.c_void_p()
    _lib.nvrtcCreateProgram(ctypes.byref(p), text.encode(), b"kernel.cu", 0, None, None)
    words = [f"--gpu-architecture=sm_{sm}{'a' if sm == 90 else ''}".encode(), b"--std=c++17"]
    code = _lib.nvrtcCompileProgram(p, len(words), (ctypes.c_char_p * len(words))(*words))
    said = None
    if code:
        n = ctypes.c_size_t()
        _lib.nvrtcGetProgramLogSize(p, ctypes.byref(n))
        log = ctypes.create_string_buffer(n.value + 1)
        _lib.nvrtcGetProgramLog(p, log)
        said = log.value.decode(errors="replace")
    _lib.nvrtcDestroyProgram(ctypes.byref(p))
    return said

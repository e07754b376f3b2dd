"""The names of Theano's CUDA module.  The library decides where a step runs, so that most of them do nothing."""
import numpy as np

from ...config import config
from ...core import TensorType, missing


class CudaNdarray(np.ndarray):
    """An array that a program makes on the device: here it is an array of the host."""

    def __new__(cls, value):
        return np.asarray(value, "float32").view(cls)

    @staticmethod
    def zeros(shape):
        return CudaNdarray(np.zeros(shape, "float32"))


def on_gpu():
    return config.device.startswith(("gpu", "cuda"))


cuda_available = cuda_enabled = on_gpu()


def use(device, force=False, default_to_move_computation_to_gpu=True, move_shared_float32_to_gpu=True,
        enable_cuda=True, test_driver=False):
    global cuda_enabled
    config.device = device
    cuda_enabled = on_gpu()


def synchronize():
    from monochord import _monochord
    _monochord.synchronize()


def CudaNdarrayType(broadcastable=(), dtype="float32", name=None):
    return TensorType(dtype, broadcastable, name)


from ...sharedvar import TensorSharedVariable as CudaNdarraySharedVariable  # noqa: E402,F401
from ...core import TensorConstant as CudaNdarrayConstant, TensorVariable as CudaNdarrayVariable  # noqa: E402,F401
from ...sharedvar import shared as float32_shared_constructor  # noqa: E402,F401
from . import basic_ops, blas, dnn, nnet  # noqa: E402,F401
from .basic_ops import gpu_from_host, host_from_gpu  # noqa: E402,F401
__getattr__ = missing("theano.sandbox.cuda")

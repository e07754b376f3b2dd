from ..core import missing
from ..tensor.nnet.ctc import ctc as gpu_ctc  # noqa: F401
__getattr__ = missing("theano.gpuarray.ctc")

from ..core import missing
from ..tensor.fft import irfft as cuirfft, rfft as curfft  # noqa: F401
__getattr__ = missing("theano.gpuarray.fft")

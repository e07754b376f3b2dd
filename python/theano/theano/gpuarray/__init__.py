"""The names of Theano's newer GPU module."""
from ..core import missing
from ..sandbox.cuda import dnn, on_gpu, use  # noqa: F401
pygpu_activated = on_gpu()
__getattr__ = missing("theano.gpuarray")

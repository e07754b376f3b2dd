"""The names of Theano's newer GPU module.  As in Theano, device=cuda means this one, device=gpu the older one."""
import sys

from ..config import config
from ..core import missing
from ..sandbox.cuda import basic_ops, blas, dnn, use  # noqa: F401
pygpu_activated = config.device.startswith("cuda")
for _name in ("basic_ops", "blas"):
    sys.modules[__name__ + "." + _name] = globals()[_name]
__getattr__ = missing("theano.gpuarray")

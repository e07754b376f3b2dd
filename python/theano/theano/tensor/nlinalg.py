from ..core import missing
from .basic import alloc_diag, diag, extract_diag, trace  # noqa: F401
__getattr__ = missing("theano.tensor.nlinalg")

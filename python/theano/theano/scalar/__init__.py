"""Scalar types, as far as programs use them."""
from ..core import missing, upcast  # noqa: F401
__getattr__ = missing("theano.scalar")

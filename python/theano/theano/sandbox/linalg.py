"""Where Theano had its linear algebra before."""
from ..core import missing
from ..tensor.nlinalg import *  # noqa: F401,F403
from ..tensor.slinalg import *  # noqa: F401,F403
__getattr__ = missing("theano.sandbox.linalg")

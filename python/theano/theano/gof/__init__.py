"""The graph of variables and applied ops."""
from ..core import Apply, Constant, Op, Type, Variable, missing  # noqa: F401


class MissingInputError(Exception):
    """A variable is needed, but not given."""


class MethodNotDefined(Exception):
    pass


class CLinker:
    pass


class Generic(Type):
    pass


generic = Generic()
from . import fg, graph, op, utils, type, null_type, test_value  # noqa: E402,F401
local_optimizer = None
__getattr__ = missing("theano.gof")

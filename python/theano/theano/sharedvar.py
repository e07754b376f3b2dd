"""Shared variables."""
import numpy as np

from .core import TensorType, Variable, as_tensor_variable, graph, leaf, operators
from .config import config


class Container:
    """The place of a shared variable's value, as other code of Theano's calls it."""

    def __init__(self, variable):
        self.variable = variable

    data = property(lambda self: self.variable.get_value(borrow=True),
                    lambda self, value: self.variable.set_value(value))
    value = data
    storage = property(lambda self: [self.data])


class SharedVariable(Variable):
    """A variable that keeps its value between calls."""
    _update = None

    @property
    def default_update(self):
        return self._update

    @default_update.setter
    def default_update(self, value):
        self._update = None if value is None else as_tensor_variable(value)

    container = property(Container)

    def get_value(self, borrow=False, return_internal_type=False):
        return np.asarray(self._shared.get(borrow))

    def set_value(self, value, borrow=False):
        self._shared.set(contiguous(self.type.filter(value)))

    def zero(self, borrow=False):
        self.set_value(np.zeros_like(self.get_value(borrow=True)))

    def clone(self):
        return self

    def __reduce__(self):
        return revive, (self.get_value(), self.name, self.type.broadcastable)

    def __deepcopy__(self, memo):
        return revive(self.get_value(), self.name, self.type.broadcastable)


class TensorSharedVariable(operators, SharedVariable):
    pass


ScalarSharedVariable = TensorSharedVariable


def contiguous(x):
    """x in the order of bytes of this machine."""
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def make(value, name, broadcastable):
    g = graph()
    s = g.shared(g.free_name(name or "shared"), contiguous(value), [1 if b else -1 for b in broadcastable])
    v = leaf(TensorSharedVariable, g.shared_node(s), name)
    v._shared = s
    return v


def revive(value, name, broadcastable):
    return make(value, name, broadcastable)


CONSTRUCTORS = {}  # of values of other types: type -> function


def shared(value, name=None, strict=False, allow_downcast=None, borrow=False, broadcastable=None, target=None,
           **kwargs):
    """A shared variable of this value: an array, or a number of Python or NumPy."""
    if isinstance(value, Variable):
        raise TypeError("Shared variable constructor needs numeric values and not symbolic variables.")
    for kind, constructor in CONSTRUCTORS.items():
        if isinstance(value, kind):
            return constructor(value, name, strict, allow_downcast, borrow)
    if not isinstance(value, (np.ndarray, np.generic, int, float)) or isinstance(value, bool):
        raise TypeError("shared: the value is an array or a number, not a %s; numpy.asarray makes an array"
                        % type(value).__name__)
    value = np.asarray(value)
    if value.dtype.kind not in "biuf":
        raise TypeError("shared: no tensors of dtype %s" % value.dtype)
    return make(value, name, (False,) * value.ndim if broadcastable is None else broadcastable)


def shared_type(dtype, ndim):
    return TensorType(dtype or config.floatX, (False,) * ndim)

"""Variables, types and ops over the nodes of a Monochord graph.

Every variable has a node of one graph, which the library makes at once: it infers types and finds mistakes. Python
keeps beside it what Theano shows: the op and the inputs that a variable was made from. Nodes that the library made by
itself, such as gradients, get theirs when somebody asks.
"""
import os
import re
import sys
import weakref

import numpy as np

from monochord import _monochord
from .config import config


class Graph(_monochord.Graph):
    """The graph of all variables that live; when the last is gone, it goes too."""

    def __init__(self):
        self.known = weakref.WeakValueDictionary()  # id of a node: its variable
        self.names, self.counts = set(), {}
        self.ops = {}                                # ops in Python: their names in the graph

    def free_name(self, wish):
        """A name that no node has: wish, if it can be one."""
        wish = re.sub(r"\W", "_", wish or "", flags=re.ASCII)
        wish = wish if wish and not wish[0].isdigit() else "v" + wish
        count, name = self.counts.get(wish, 0), wish
        while name in self.names or name in RESERVED or count and name == wish:
            count += 1
            name = "%s_%d" % (wish, count)
        self.counts[wish] = max(count, 1)
        self.names.add(name)
        return name


RESERVED = set("""True False None newaxis inf nan pi and or not input shared borrow floatX bool int8 int16 int32 int64
uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64""".split())
_graph = None


def graph():
    global _graph
    g = _graph and _graph()
    if g is None:
        g = Graph()
        _graph = weakref.ref(g)
    return g


# ---- types

class scratchpad:
    """What users keep with a variable."""

    def clear(self):
        self.__dict__.clear()


class Type:
    pass


NAMES = {(): "scalar", (False,): "vector", (False, True): "col", (True, False): "row", (False, False): "matrix"}


class TensorType(Type):
    """A dtype, and for each axis whether its size is 1, so that it broadcasts."""

    def __init__(self, dtype, broadcastable, name=None, sparse_grad=False):
        self.dtype = config.floatX if dtype == "floatX" else str(np.dtype(dtype))
        if self.dtype.startswith("complex"):
            raise NotImplementedError("complex dtypes are not there: docs/theano.md")
        self.broadcastable = tuple(bool(b) for b in broadcastable)
        self.name = name
        self.numpy_dtype = np.dtype(self.dtype)

    ndim = property(lambda self: len(self.broadcastable))

    def __eq__(self, other):
        return type(self) == type(other) and self.dtype == other.dtype and self.broadcastable == other.broadcastable

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((self.dtype, self.broadcastable))

    def __str__(self):
        if self.name:
            return self.name
        b = self.broadcastable
        kind = NAMES.get(b) or ("%dD" % len(b) if not any(b) else str(b))
        return "TensorType(%s, %s)" % (self.dtype, kind)

    __repr__ = __str__

    def __call__(self, name=None):
        g = graph()
        node = g.input(g.free_name(name), self.dtype, [1 if b else -1 for b in self.broadcastable])
        v = leaf(TensorVariable, node, name)
        v._type = self
        return v

    make_variable = __call__

    def clone(self, dtype=None, broadcastable=None):
        return TensorType(dtype or self.dtype, self.broadcastable if broadcastable is None else broadcastable)

    def filter(self, data, strict=False, allow_downcast=None):
        """data as an array of this type; TypeError if it does not fit."""
        if isinstance(data, Variable):
            raise TypeError("Expected an array-like object, but found a Variable: maybe you are trying to call a "
                            "function on a (possibly shared) variable instead of a numeric array?")
        if strict and not (isinstance(data, np.ndarray) and data.dtype == self.numpy_dtype):
            raise TypeError("%s expected an ndarray with dtype=%s, not %s of type %s"
                            % (self, self.dtype, getattr(data, "dtype", ""), type(data)))
        x = np.asarray(data)
        if x.dtype != self.numpy_dtype:
            plain = type(data) is float and self.dtype == config.floatX and allow_downcast is not False
            fits = np.can_cast(x.dtype, self.numpy_dtype, "safe") or np.promote_types(x.dtype, self.dtype) == self.dtype
            if isinstance(data, (int, list, tuple)) and x.dtype.kind in "iub" and not fits:
                fits = bool(np.all(x.astype(self.dtype) == x))  # whole numbers that the dtype holds
            if not (fits or plain or allow_downcast or x.size == 0):
                raise TypeError("%s cannot store a value of dtype %s without risking loss of precision. If you do not "
                                "mind this loss, you can: 1) explicitly cast your data to %s, or 2) set "
                                "\"allow_input_downcast=True\" when calling \"function\". Value: %r"
                                % (self, x.dtype, self.dtype, data))
            x = x.astype(self.dtype)
        if x.ndim != self.ndim:
            raise TypeError("Wrong number of dimensions: expected %d, got %d with shape %s."
                            % (self.ndim, x.ndim, x.shape))
        for i, b in enumerate(self.broadcastable):
            if b and x.shape[i] != 1:
                raise TypeError("Non-unit value on shape on a broadcastable dimension.", x.shape, self.broadcastable)
        return x

    def is_valid_value(self, x):
        try:
            self.filter(x, strict=True)
            return True
        except TypeError:
            return False

    def filter_variable(self, other, allow_convert=True):
        other = as_tensor_variable(other)
        if other.type != self:
            raise TypeError("Cannot convert Type %s (of Variable %s) into Type %s." % (other.type, other, self))
        return other

    def values_eq_approx(self, a, b):
        return a.shape == b.shape and np.allclose(a, b, equal_nan=True)


def type_of(node):
    return TensorType(node.dtype, [d == 1 for d in node.dims])


# ---- variables

LAZY = object()


class Variable:
    """A node of the graph, with Theano's names around it."""
    _is_nonzero = True

    def __init__(self, node, owner=None, index=None, name=None):
        self._node = node
        self._owner = owner
        self.index = index
        self.name = name
        self.tag = scratchpad()
        self._type = None
        self._functions = {}
        self._mentions = ()  # what it was derived from, though it may not need it

    @property
    def type(self):
        if self._type is None:
            self._type = type_of(self._node)
        return self._type

    @property
    def owner(self):
        if self._owner is LAZY:
            node = self._node
            if node.op == "item":
                source = node.inputs[0]
                self._owner = Apply(Made(source), [variable_of(n) for n in source.inputs], [self])
            else:
                self._owner = Apply(Made(node), [variable_of(n) for n in node.inputs], [self])
        return self._owner

    @owner.setter
    def owner(self, value):
        self._owner = value

    def __str__(self):
        if self.name is not None:
            return self.name
        if self.owner is not None:
            op = self.owner.op
            return "%s.%s" % (op, self.index or 0)
        return "<%s>" % self.type

    __repr__ = __str__

    def clone(self):
        return self.type(self.name)

    def get_parents(self):
        return [self.owner] if self.owner is not None else []

    def eval(self, inputs_to_values=None):
        """The value, for these values of inputs; the compiled function is kept."""
        from .compile import function
        given = inputs_to_values or {}
        if any(isinstance(k, str) for k in given):
            names = {v.name: v for v in inputs_of([self])}
            given = {names[k] if isinstance(k, str) else k: v for k, v in given.items()}
        key = tuple(given)
        if key not in self._functions:
            self._functions[key] = function(list(key), self, on_unused_input="ignore")
        return self._functions[key](*given.values())

    def __reduce__(self):
        if self._owner is None:
            return revive_leaf, (self.type, self.name)
        if self._owner is LAZY or not self._owner.op.revives:
            raise TypeError("%s cannot be pickled: it was made by %s" % (self, self.owner.op))
        return revive, (self._owner.op, self._owner.inputs, self.index, self.name)


def revive_leaf(type, name):
    return type(name)


def revive(op, inputs, index, name):
    out = op(*inputs)
    out = out[index] if isinstance(out, list) and index is not None else out
    out.name = name
    return out


class operators:
    """Operators and methods of tensors; tensor/methods.py fills it."""
    __array_priority__ = 1000
    dtype = property(lambda self: self._node.dtype)
    ndim = property(lambda self: len(self._node.dims))
    broadcastable = property(lambda self: self.type.broadcastable)

    def __bool__(self):
        if not self._is_nonzero:
            raise TypeError("Variables do not support boolean operations.")
        return True

    def __len__(self):
        raise TypeError("object of type 'TensorVariable' has no len(): its size is known when a function is called. "
                        "Use x.shape[0].")

    def __iter__(self):
        n = self._node.dims[0] if self.ndim else -1
        if n < 0:
            raise TypeError("TensorType does not support iteration: the length is not known. Maybe you are using "
                            "builtin sum instead of theano.tensor.sum?")
        return iter([self[i] for i in range(n)])


class TensorVariable(operators, Variable):
    pass


class Constant(Variable):
    """A value in the graph."""

    def __init__(self, node, value, name=None):
        Variable.__init__(self, node, name=name)
        self.data = value

    value = property(lambda self: self.data)

    def __str__(self):
        return self.name if self.name is not None else "TensorConstant{%s}" % str(self.data)

    __repr__ = __str__

    def clone(self):
        return constant(self.data, self.name)

    def signature(self):
        return (self.type, self.data.tobytes())

    def __reduce__(self):
        return constant, (self.data, self.name)


class TensorConstant(operators, Constant):
    pass


def leaf(cls, node, name):
    v = cls(node, name=name)
    node.graph.known[node.id] = v
    return v


def variable_of(node):
    """The variable of a node that the library made."""
    if not node.inputs and node.op in ("input", "shared", "constant"):
        if node.op == "constant":
            return TensorConstant(node, np.asarray(node.value))
        known = node.graph.known.get(node.id)
        if known is not None:
            return known
        return TensorVariable(node, name=node.name or None)
    return TensorVariable(node, owner=LAZY)


def leaves_of(variables):
    """Inputs, shared variables and constants that variables are computed from."""
    nodes = [v._node for v in variables]
    return [variable_of(n) for n in nodes[0].graph.leaves(nodes)] if nodes else []


def inputs_of(variables):
    return [v for v in leaves_of(variables) if v._owner is None and not isinstance(v, Constant)]


# ---- constants

def autocast(x):
    """A number of Python as Theano's smallest constant: docs of config.cast_policy, 'custom'."""
    if isinstance(x, (bool, np.bool_)):
        return np.asarray(x)
    if isinstance(x, int):
        for d in ("int8", "int16", "int32", "int64", "uint64"):
            if np.iinfo(d).min <= x <= np.iinfo(d).max:
                return np.asarray(x, d)
        raise OverflowError("%d does not fit into 64 bits" % x)
    if config.floatX != "float64":
        return np.asarray(x, config.floatX)
    single = np.float32(x) if abs(x) < 3e38 or not np.isfinite(x) else np.float32("inf")
    return np.asarray(x, "float32" if float(single) == x or x != x else "float64")


def constant(x, name=None, ndim=None, dtype=None):
    if isinstance(x, Variable):
        if isinstance(x, Constant):
            return x
        raise TypeError("a variable is no constant: %s" % x)
    if dtype is not None:
        value = np.asarray(x, config.floatX if dtype == "floatX" else dtype)
    elif isinstance(x, (int, float)) and not isinstance(x, np.generic):
        value = autocast(x)
    else:
        value = np.asarray(x)
        if value.dtype == np.float64 and isinstance(x, (list, tuple)):
            value = value.astype(config.floatX)
        elif value.dtype == np.int64 and isinstance(x, (list, tuple)):
            limits = [d for d in ("int8", "int16", "int32", "int64")
                      if not value.size or (np.iinfo(d).min <= value.min() and value.max() <= np.iinfo(d).max)]
            value = value.astype(limits[0])
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise TypeError("Could not convert %r to TensorType" % (x,), type(x))
    if ndim is not None and value.ndim < ndim:
        value = value.reshape((1,) * (ndim - value.ndim) + value.shape)
    value = np.array(value, dtype=value.dtype.newbyteorder("="), order="C")
    return TensorConstant(graph().constant(value), value, name)


def as_tensor_variable(x, name=None, ndim=None):
    if isinstance(x, Apply):
        if len(x.outputs) != 1:
            raise ValueError("It is ambiguous which output of a multi-output Op has to be fetched.", x)
        x = x.outputs[0]
    if hasattr(x, "_as_TensorVariable"):
        return x._as_TensorVariable()
    if isinstance(x, Variable):
        if not isinstance(x, operators):
            raise TypeError("not a tensor: %s" % x)
        if ndim is not None and x.ndim != ndim:
            if x.ndim > ndim:
                raise ValueError("TensorType could not be cast to have %d dimensions" % ndim)
            return library("shape_padleft", x, n=ndim - x.ndim)
        return x
    if isinstance(x, (list, tuple)) and any(isinstance(v, (Variable, list, tuple)) for v in x) and has_variable(x):
        return library("stack", *promoted([as_tensor_variable(v) for v in x]))
    if isinstance(x, bool):
        raise TypeError("Cannot cast True or False as a tensor variable. Please use 1 or 0, or numpy.bool_.")
    return constant(x, name, ndim)


def has_variable(x):
    return any(isinstance(v, Variable) or isinstance(v, (list, tuple)) and has_variable(v) for v in x)


def promoted(xs):
    """The variables, cast to the dtype in which they meet."""
    dtype = upcast(*[x.dtype for x in xs])
    return [x if x.dtype == dtype else library("cast", x, dtype=dtype) for x in xs]


def upcast(*dtypes):
    return str(np.result_type(*[np.dtype(d) for d in dtypes]))


# ---- ops

class Apply:
    """An op, what it was given, and what it gave."""

    def __init__(self, op, inputs, outputs):
        self.op = op
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.tag = scratchpad()

    nin = property(lambda self: len(self.inputs))
    nout = property(lambda self: len(self.outputs))

    def default_output(self):
        return self.outputs[getattr(self.op, "default_output", None) or 0]

    out = property(default_output)

    def __str__(self):
        return "%s(%s)" % (self.op, ", ".join(str(v) for v in self.inputs)) if self.inputs else str(self.op)

    __repr__ = __str__


def compute_test_value(apply):
    if config.compute_test_value != "off":
        from .gof.test_value import compute
        compute(apply)


class Library:
    """An op of the library with its attributes: called with variables, it gives a variable, or a list of them."""
    revives = True

    def __init__(self, name, attributes="", nout=1):
        self.name = name
        self.attributes = attributes
        self.nout = nout

    def build(self, g, nodes):
        return g.op(self.name, nodes, self.attributes or None)

    def __call__(self, *inputs):
        inputs = [as_tensor_variable(x) for x in inputs]
        g = inputs[0]._node.graph if inputs else graph()
        g.here(*user_line())
        node = self.build(g, [x._node for x in inputs])
        nodes = [node] if self.nout == 1 else [g.item(node, i) for i in range(self.nout)]
        apply = Apply(self, inputs, [])
        apply.outputs = [TensorVariable(n, apply, i) for i, n in enumerate(nodes)]
        compute_test_value(apply)
        return apply.outputs[0] if self.nout == 1 else apply.outputs

    def __eq__(self, other):
        return type(self) == type(other) and (self.name, self.attributes) == (other.name, other.attributes)

    def __hash__(self):
        return hash((self.name, self.attributes))

    def __str__(self):
        return "%s{%s}" % (self.name, self.attributes) if self.attributes else self.name

    __repr__ = __str__


def user_line():
    """The line of the program that is at work, for messages."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDER):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


FOLDER = os.path.dirname(os.path.abspath(__file__))


class Elemwise(Library):
    def __str__(self):
        return "Elemwise{%s,no_inplace}" % self.name

    __repr__ = __str__


class Made(Library):
    """The op of a node that the library made by itself."""
    revives = False

    def __init__(self, node):
        Library.__init__(self, node.op)


class Part(Library):
    """x[...]: the index as text, with {0}, {1}, ... for its variables."""

    def build(self, g, nodes):
        return g.part(nodes[0], self.text(g, nodes[1:]))

    def text(self, g, nodes):
        return self.attributes.format(*[named(g, n) for n in nodes])


class SetPart(Part):
    """x with a part set to y, or increased by it."""

    def build(self, g, nodes):
        return g.part(nodes[0], self.text(g, nodes[2:]), nodes[1], self.name == "set_subtensor")


def named(g, node):
    if not node.name:
        g.name(node, "_node_%d" % node.id)
    return node.name or "_node_%d" % node.id


def attribute(v):
    if isinstance(v, str):
        return "'%s'" % v
    if isinstance(v, (list, tuple, np.ndarray)):
        return "[%s]" % ", ".join(attribute(x) for x in v)
    if isinstance(v, (bool, np.bool_)) or v is None:
        return str(v)
    if isinstance(v, (int, np.integer)):
        return str(int(v))
    if isinstance(v, (float, np.floating)):
        return repr(float(v))
    raise TypeError("%r must be known when the graph is built, not a variable" % (v,))


def attributes(given):
    return ", ".join("%s=%s" % (k, attribute(v)) for k, v in given.items())


def library(name, *inputs, **given):
    return Library(name, attributes(given))(*inputs)


# ---- ops in Python

class Op:
    """The base of ops that programs define: make_node, perform or make_thunk, grad."""
    revives = True
    default_output = None
    view_map = {}
    destroy_map = {}
    __props__ = ()

    def __call__(self, *inputs, **kwargs):
        kwargs.pop("return_list", None)
        node = self.make_node(*inputs, **kwargs)
        return_list = len(node.outputs) > 1 and self.default_output is None
        from .ops_in_python import build
        build(self, node)
        compute_test_value(node)
        return list(node.outputs) if return_list else node.default_output()

    def make_node(self, *inputs):
        if not hasattr(self, "itypes"):
            raise NotImplementedError("You can either define itypes and otypes, or implement make_node")
        inputs = [as_tensor_variable(x) for x in inputs]
        if len(inputs) != len(self.itypes) or any(x.type != t for x, t in zip(inputs, self.itypes)):
            raise TypeError("We expected inputs of types %s but got types %s"
                            % (self.itypes, [x.type for x in inputs]))
        return Apply(self, inputs, [t() for t in self.otypes])

    def __eq__(self, other):
        return type(self) == type(other) and all(getattr(self, p) == getattr(other, p) for p in self.__props__) and (
            bool(self.__props__) or self is other)

    def __hash__(self):
        props = tuple(getattr(self, p) for p in self.__props__)
        return hash((type(self), props)) if props else id(self)

    def __str__(self):
        props = ", ".join("%s=%r" % (p, getattr(self, p)) for p in self.__props__)
        return type(self).__name__ + ("{%s}" % props if props else "")

    __repr__ = __str__


def missing(module):
    """__getattr__ of a module: a name of Theano's that is not there says so."""
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError("%s has no %s here. docs/theano.md lists what differs from Theano" % (module, name))
    return __getattr__

"""Compiled functions."""
import copy
import sys
import warnings
from collections import OrderedDict

import numpy as np

from ..core import Apply, Constant, Elemwise, Library, Variable, as_tensor_variable, graph, missing
from ..config import MODES, config, stages_of
from ..sharedvar import CONSTRUCTORS, SharedVariable, shared  # noqa: F401
from monochord import _monochord


class UnusedInputError(Exception):
    """An input that no output needs."""


class In:
    def __init__(self, variable, name=None, value=None, update=None, mutable=None, strict=False, allow_downcast=None,
                 autoname=True, borrow=None, implicit=None, shared=False):
        self.variable, self.value, self.update = variable, value, update
        self.name = name if name is not None else getattr(variable, "name", None)
        self.strict, self.allow_downcast = strict, allow_downcast


class Param(In):
    def __init__(self, variable, default=None, name=None, **rest):
        In.__init__(self, variable, name=name, value=default, **rest)


class Out:
    def __init__(self, variable, borrow=False):
        self.variable, self.borrow = variable, borrow


SymbolicInput, SymbolicOutput = In, Out


def as_value(i, value=None):
    """The value of an input with an update, or another, as its shared variable takes it."""
    value = i.value if value is None else value
    return value if isinstance(value, tuple(CONSTRUCTORS)) else np.asarray(value, i.variable.dtype)


class Mode:
    """Which rules are applied, and how functions run: mode is one of the library's."""

    def __init__(self, linker=None, optimizer="default", mode=None, including=(), excluding=()):
        self.linker, self.optimizer = linker, optimizer
        plain = optimizer in (None, "None", "fast_compile") or linker == "py"
        self.mode = mode or ("FAST_COMPILE" if plain else "FAST_RUN")
        self.included, self.excluded = list(including), list(excluding)

    def including(self, *tags):
        return Mode(self.linker, self.optimizer, self.mode, self.included + list(tags), self.excluded)

    def excluding(self, *tags):
        return Mode(self.linker, self.optimizer, self.mode, self.included, self.excluded + list(tags))

    def clone(self, **unused):
        return copy.copy(self)


class DebugMode(Mode):
    def __init__(self, **unused):
        Mode.__init__(self, mode="DEBUG")


class NanGuardMode(Mode):
    def __init__(self, nan_is_error=None, inf_is_error=None, big_is_error=None, **unused):
        Mode.__init__(self, mode="NANGUARD")


def get_mode(mode=None):
    if isinstance(mode, Mode):
        return mode
    word = mode or config.mode
    if word not in MODES:
        raise Exception("No predefined mode exist for string: %s" % word)
    return Mode(mode=MODES[word])


get_default_mode = get_mode
FAST_RUN, FAST_COMPILE = Mode(), Mode(mode="FAST_COMPILE")

def as_pairs(x, what):
    if x is None:
        return []
    pairs = list(x.items()) if hasattr(x, "items") else [tuple(p) for p in x]
    if [p for p in pairs if len(p) != 2]:
        raise ValueError("%s: expected pairs" % what)
    return pairs


def is_input(v):
    return v._owner is None and v._node.op == "input"


def mentions(variables, without):
    """All variables that these were written with, also those that simplification left out."""
    seen, todo = {}, list(variables)
    stop = {id(v) for v in without}
    while todo:
        v = todo.pop()
        if id(v) not in seen:
            seen[id(v)] = v
            if id(v) not in stop:
                todo += list(v._mentions) + (v._owner.inputs if isinstance(v._owner, Apply) else [])
    return seen


class Plan:
    """What theano.function was asked for, as nodes."""

    def __init__(self, inputs, outputs, updates, givens, no_default_updates, on_unused_input, allow_downcast):
        self.inputs = [x if isinstance(x, In) else In(x, allow_downcast=allow_downcast) for x in inputs]
        self.outputs = [as_tensor_variable(o.variable if isinstance(o, Out) else o) for o in outputs]
        self.updates = OrderedDict()
        for target, value in as_pairs(updates, "updates"):
            self.update(target, value)
        self.replaced = []
        for i in self.inputs:
            self.check_input(i)
        for old, new in as_pairs(givens, "givens"):
            self.given(old, new)
        self.make_state()
        self.no_default_updates = no_default_updates
        self.default_updates(no_default_updates)
        self.check_used(on_unused_input)

    def update(self, target, value):
        if not isinstance(target, SharedVariable):
            raise TypeError("update target must be a SharedVariable", target)
        if target in self.updates:
            raise ValueError("this shared variable already has an update expression", (target, value))
        value = as_tensor_variable(value)
        if value.ndim != target.ndim or np.dtype(value.dtype).kind == "f" and np.dtype(target.dtype).kind != "f":
            raise TypeError("An update must have the same type as the original shared variable (shared_var=%s, "
                            "shared_var.type=%s, update_val=%s, update_val.type=%s). If the difference is related to "
                            "the broadcast pattern, you can call the tensor.unbroadcast(var, axis_to_unbroadcast) "
                            "function to remove broadcastable dimensions." % (target, target.type, value, value.type))
        if value.dtype != target.dtype and not np.can_cast(value.dtype, target.dtype, "safe"):
            warnings.warn("the update of %s is %s, and is cast to the variable's dtype, %s"
                          % (target, value.dtype, target.dtype), stacklevel=5)
        self.updates[target] = value

    def check_input(self, i):
        v = i.variable
        if not isinstance(v, Variable):
            raise TypeError("Unknown parameter type: %s" % type(v))
        if isinstance(v, SharedVariable):
            raise TypeError("Cannot use a shared variable (%s) as explicit input. Consider substituting a non-shared "
                            "variable via the `givens` parameter" % v)
        if isinstance(v, Constant):
            raise TypeError("A constant (%s) cannot be an input" % v)
        i.placed = v
        if not is_input(v):  # an intermediate value: an input stands in its place
            i.placed = v.type(v.name)
            self.replaced.append((v, i.placed))

    def given(self, old, new):
        if not isinstance(old, Variable):
            raise TypeError("givens must be keyed by Variables, not %r" % (old,))
        new = as_tensor_variable(new)
        if new.ndim != old.ndim or new.dtype != old.dtype and not np.can_cast(new.dtype, old.dtype, "safe"):
            raise TypeError("Cannot convert Type %s (of Variable %s) into Type %s. You can try to manually convert %s "
                            "into a %s." % (new.type, new, old.type, new, old.type))
        self.replaced.append((old, new if new.dtype == old.dtype else new.astype(old.dtype)))

    def make_state(self):
        """Inputs with an update are shared variables."""
        for i in list(self.inputs):
            if i.update is not None:
                i.state = shared(as_value(i), i.name)
                self.replaced.append((i.variable, i.state))
                self.updates[i.state] = as_tensor_variable(i.update)
        self.states = [i for i in self.inputs if i.update is not None]
        self.inputs = [i for i in self.inputs if i.update is None]

    def nodes(self):
        return [v._node for v in self.outputs + list(self.updates.values())]

    def place(self):
        """The nodes of outputs and updates, after all replacements."""
        nodes = self.nodes()
        if self.replaced and nodes:
            g = nodes[0].graph
            olds, news = zip(*self.replaced)
            nodes = g.replace(nodes, [v._node for v in olds], [v._node for v in news])
        return nodes

    def default_updates(self, none):
        more = none is not True
        left_out = none if isinstance(none, (list, tuple)) else []
        while more:
            more = False
            nodes = self.place()
            for n in nodes[0].graph.leaves(nodes) if nodes else []:
                v = n.graph.known.get(n.id) if n.op == "shared" else None
                if v is not None and v.default_update is not None and v not in self.updates and v not in left_out:
                    self.updates[v] = v.default_update
                    more = True

    def check_used(self, what):
        nodes = self.place()
        used = {n.id: n for n in (nodes[0].graph.leaves(nodes) if nodes else []) if n.op == "input"}
        unused = [i for i in self.inputs if used.pop(i.placed._node.id, None) is None]
        mentioned = mentions(self.outputs + list(self.updates.values()) + [new for _, new in self.replaced],
                             [v for v, _ in self.replaced]) if unused else ()
        for i in unused:
            if what == "ignore" or id(i.variable) in mentioned:
                continue
            text = ("theano.function was asked to create a function computing outputs given certain inputs, but the "
                    "provided input variable is not part of the computational graph needed to compute the outputs: "
                    "%s.\nTo make this error into a warning, you can pass the parameter on_unused_input='warn' to "
                    "theano.function. To disable it completely, use on_unused_input='ignore'." % i.variable)
            if what == "raise":
                raise UnusedInputError(text)
            warnings.warn(text, stacklevel=5)
        for n in used.values():
            from ..gof import MissingInputError
            name = getattr(n.graph.known.get(n.id), "name", None) or n.name
            raise MissingInputError("Input %s of the graph, used to compute the outputs, was not provided and not "
                                    "given a value." % name)
        if len({id(i.placed) for i in self.inputs}) < len(self.inputs):
            raise UnusedInputError("theano.function was given the same input twice: %s"
                                   % [str(i.variable) for i in self.inputs])


def shared_of(nodes, targets):
    """The shared variables that are updated, and those that nodes are computed from."""
    found = list(targets)
    for n in nodes[0].graph.leaves(nodes) if nodes else []:
        v = n.graph.known.get(n.id)
        if isinstance(v, SharedVariable) and not [f for f in found if f is v]:
            found.append(v)
    return found


def shapes_of(variables):
    return [v._shared.get(True).shape for v in variables]


class Function:
    """A compiled function."""

    def __init__(self, plan, mode, name, output_keys, single, profile):
        self.name = name
        self.inputs = plan.inputs
        self._plan, self._keys = plan, output_keys
        self._states = plan.states
        self._many = not single
        self._mode, self._single = mode, single
        self.profile = profile
        self._make(plan.place(), list(plan.updates), sys._getframe(2))
        self._plain = all(i.value is None and not i.strict for i in plan.inputs) and output_keys is None
        self.maker = Maker(self)
        self.trust_input = False

    def _make(self, nodes, targets, frame):
        """Compiles for the shapes that shared variables have; where these do not fit yet, for any shape."""
        self._nodes, self._targets, self._line = nodes, targets, (frame.f_code.co_filename, frame.f_lineno)
        self._leaves = shared_of(nodes, targets)
        self._fit(shapes_of(self._leaves))

    def _fit(self, shapes):
        self._shapes = shapes
        try:
            self._call = self._compile(True)
            return
        except Exception:  # raised again below, if it has another reason
            pass
        self._call = self._compile(False)

    def _make_again(self):
        """Compiles for the shapes that shared variables have now; False if they are those of before."""
        shapes = shapes_of(self._leaves)
        if shapes == self._shapes:
            return False
        self._fit(shapes)
        return True

    def _compile(self, fixed_sizes):
        nodes, targets = self._nodes, self._targets
        n, mode, plan = len(self._plan.outputs), self._mode, self._plan
        return (nodes[0].graph if nodes else graph()).compile(
            name=self.name, input=[i.placed._node for i in plan.inputs], output=nodes[:n],
            update_of=[v._node for v in targets], update=nodes[n:], mode=mode.mode,
            including=stages_of(mode.included) or None, excluding=stages_of(mode.excluded) or None,
            on_unused="ignore", numpy=np.asarray, single=self._single, profile=bool(self.profile),
            no_default_updates=plan.no_default_updates is True, fixed_sizes=fixed_sizes,
            file=self._line[0], line=self._line[1])

    def __call__(self, *args, **kwargs):
        if self._plain and not kwargs and len(args) == len(self.inputs):
            try:
                return self._call(*args)
            except (TypeError, _monochord.ShapeError):
                pass  # an argument that must be converted, or the error that says why not
        return self._call_converted(args, kwargs)

    def _call_converted(self, args, kwargs):
        if len(args) > len(self.inputs):
            raise TypeError("Too many parameter passed to theano function: it has %d inputs, %d were given"
                            % (len(self.inputs), len(args)))
        values = [i.value for i in self.inputs]
        given = [False] * len(values)
        output_subset = kwargs.pop("output_subset", None)
        for k, v in list(enumerate(args)) + [(self._position(k), v) for k, v in kwargs.items()]:
            if given[k]:
                raise TypeError("Multiple values for input: %s" % self.inputs[k].name)
            values[k], given[k] = v, True
        for k, i in enumerate(self.inputs):
            if values[k] is None:
                raise TypeError("Missing required input: %s" % (i.name or i.variable))
            try:
                values[k] = i.variable.type.filter(values[k], strict=i.strict, allow_downcast=i.allow_downcast)
            except TypeError as e:
                raise TypeError("Bad input argument%s to theano function%s at index %d (0-based). %s" % (
                    " with name \"%s\"" % i.name if i.name else "", " with name \"%s\"" % self.name if self.name
                    else "", k, e.args[0])) from None
            values[k] = np.asarray(values[k], dtype=values[k].dtype.newbyteorder("="))
        try:
            r = self._call(*values)
        except _monochord.ShapeError:
            if not self._make_again():
                raise
            r = self._call(*values)
        if self._keys is not None:
            return dict(zip(self._keys, r))
        return [r[i] for i in output_subset] if output_subset is not None else r

    def _position(self, name):
        for k, i in enumerate(self.inputs):
            if name == i.name:
                return k
        raise TypeError("Unknown input or state: %s. The function has %d named inputs"
                        % (name, sum(i.name is not None for i in self.inputs)))

    def _input(self, key):
        for i in self.inputs + self._states:
            if key is i.variable or key == i.name and key is not None:
                return i
        raise TypeError("Unknown input or state: %s" % key)

    def __getitem__(self, key):
        i = self._input(key)
        return i.state.get_value() if i.update is not None else i.value

    def __setitem__(self, key, value):
        i = self._input(key)
        if i.update is not None:
            i.state.set_value(as_value(i, value))
        else:
            i.value, self._plain = value, False

    value = property(lambda self: self)

    def get_shared(self):
        return shared_of(self._plan.place(), list(self._plan.updates))

    def _twin(self):
        twin = Function.__new__(Function)
        twin.__dict__.update(self.__dict__)
        return twin

    def copy(self, share_memory=False, swap=None, delete_updates=False, name=None, profile=None):
        """The same function; swap: other variables in place of shared ones."""
        if swap:
            twin = self._with(list(swap.items()), updates=not delete_updates)
        else:
            twin = self._twin()
            twin._call = self._call.copy(not delete_updates)
            if delete_updates:
                twin._nodes, twin._targets = self._nodes[:len(self._plan.outputs)], []
        twin.name = name or self.name
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo):
        """A function of its own shared variables, which are copied too."""
        return self._with([(v, copy.deepcopy(v, memo)) for v in self.get_shared()])

    def _with(self, pairs, updates=True):
        twin, plan = self._twin(), self._plan
        nodes = plan.place()
        nodes = nodes if updates else nodes[:len(plan.outputs)]
        if pairs and nodes:
            nodes = nodes[0].graph.replace(nodes, [v._node for v, _ in pairs], [w._node for _, w in pairs])
        others = {id(v): w for v, w in pairs}
        targets = [others.get(id(v), v) for v in plan.updates] if updates else []
        twin._make(nodes, targets, sys._getframe(2))
        return twin

    def free(self):
        pass

    def sync_shared(self):
        _monochord.synchronize()

    def __str__(self):
        return "<theano.compile.Function %s>" % (self.name or "")


class Step(Library):
    """A step of a compiled function, as an op: what it computes, in the library's text form."""

    def __init__(self, step):
        Library.__init__(self, step["name"] or step["kind"])
        self.step = step

    def __str__(self):
        s = self.step
        where = "" if s["device"] == "cpu" else "Gpu"
        name = "Elemwise" if s["kind"] == "kernel" else s["solver"] or s["kind"]
        return "%s%s{%s}" % (where, name, s["text"].strip())

    __repr__ = __str__


class HostStep(Step, Elemwise):
    """A kernel of fused elementwise work on the CPU."""
    __str__ = __repr__ = Step.__str__


class Fgraph:
    def __init__(self, f):
        self.f = f
        self.inputs = [i.variable for i in f.inputs]
        self.outputs = f._plan.outputs

    def toposort(self):
        """What a call runs, in order; Theano's nodes stand for its steps."""
        steps = self.f._call.steps
        return [Apply((HostStep if s["kind"] == "kernel" and s["device"] == "cpu" else Step)(s), [], [])
                for s in steps]

    apply_nodes = property(lambda self: set(self.toposort()))


class Maker:
    def __init__(self, f):
        self.fgraph = Fgraph(f)
        self.inputs = f.inputs
        self.mode = get_mode()


def function(inputs, outputs=None, mode=None, updates=None, givens=None, no_default_updates=False,
             accept_inplace=False, name=None, rebuild_strict=True, allow_input_downcast=None, profile=None,
             on_unused_input=None):
    """A function from values of inputs to values of outputs, which also updates shared variables."""
    if not isinstance(inputs, (list, tuple)):
        raise Exception("Input variables of a Theano function should be contained in a list, even when there is a "
                        "single input.")
    keys = sorted(outputs) if isinstance(outputs, dict) else None
    single = not isinstance(outputs, (list, tuple, dict)) and outputs is not None
    listed = [outputs[k] for k in keys] if keys else [outputs] if single else list(outputs or [])
    plan = Plan(inputs, listed, updates, givens, no_default_updates, on_unused_input or config.on_unused_input,
                allow_input_downcast if allow_input_downcast is not None else config.allow_input_downcast)
    return Function(plan, get_mode(mode), name, keys, single, profile)


def function_dump(*args, **kwargs):
    raise NotImplementedError("function_dump is not there: docs/theano.md")


from . import debugmode, io, mode, nanguardmode, sharedvalue  # noqa: E402,F401
from .ops import as_op  # noqa: E402,F401
from .builders import OpFromGraph  # noqa: E402,F401
__getattr__ = missing("theano.compile")

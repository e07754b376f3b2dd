"""config.compute_test_value: each op is computed where it is written, from the test values of its inputs.

An op of the library is computed alone, on inputs that stand for its own; what is made otherwise (loops, gradients, ops
in Python) is computed from its leaves.  Nothing is compiled by a C compiler for that.
"""
import sys
import warnings

import numpy as np

from ..config import config
from ..core import LAZY, Constant, Library, graph, leaves_of


def compiled(nodes, inputs, values):
    g = graph()
    f = g.compile(output=nodes, input=inputs, on_unused="ignore", numpy=np.asarray, single=False, mode="FAST_COMPILE",
                  no_default_updates=True)
    return f(*values)


def from_leaves(variables):
    leaves = [v for v in leaves_of(variables) if not isinstance(v, Constant) and not hasattr(v, "_shared")]
    return compiled([v._node for v in variables], [v._node for v in leaves], [get_test_value(v) for v in leaves])


def get_test_value(v):
    """AttributeError if there is none."""
    if isinstance(v, Constant):
        return v.data
    if hasattr(v, "_shared"):
        return v.get_value(borrow=True)
    if hasattr(v.tag, "test_value"):
        return v.type.filter(v.tag.test_value, allow_downcast=True)
    if v._owner is LAZY:
        v.tag.test_value = from_leaves([v])[0]
        return v.tag.test_value
    raise AttributeError("%s has no test value" % v)


def compute(apply):
    """The test values of what an op gives; config.compute_test_value says what happens if one of its inputs has none."""
    values = []
    for i, v in enumerate(apply.inputs):
        try:
            values.append(get_test_value(v))
        except AttributeError:
            said = "Cannot compute test value: input %d (%s) of Op %s missing default value" % (i, v, apply)
            if config.compute_test_value == "raise":
                raise AttributeError(said)
            if config.compute_test_value == "warn":
                warnings.warn(said, stacklevel=4)
            return
    try:
        if isinstance(apply.op, Library) and apply.op.revives and not any(hasattr(v, "_shared") for v in apply.inputs):
            g = graph()
            placed = [v._node if isinstance(v, Constant) else
                      g.input(g.free_name("test"), v.dtype, [1 if b else -1 for b in v.broadcastable]) for v in apply.inputs]
            node = apply.op.build(g, placed)
            nodes = [node] if apply.op.nout == 1 else [g.item(node, i) for i in range(apply.op.nout)]
            pairs = [(p, x) for v, p, x in zip(apply.inputs, placed, values) if not isinstance(v, Constant)]
            made = compiled(nodes, [p for p, _ in pairs], [x for _, x in pairs])
        else:
            made = from_leaves(apply.outputs)
    except Exception:
        if config.compute_test_value == "pdb":
            import pdb
            pdb.post_mortem(sys.exc_info()[2])
        raise
    for v, x in zip(apply.outputs, made):
        v.tag.test_value = x

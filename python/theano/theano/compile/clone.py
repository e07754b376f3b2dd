"""Copies of expressions, with variables replaced."""
from ..core import LAZY, TensorVariable, as_tensor_variable, inputs_of
from ..sharedvar import SharedVariable
from . import as_pairs


def clone(output, replace=None, strict=True, share_inputs=True, copy_inputs=None):
    """output, one variable or several, computed from the replacements."""
    share = copy_inputs if copy_inputs is not None else share_inputs
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    pairs = [(old, as_tensor_variable(new)) for old, new in as_pairs(replace, "replace")]
    for old, new in pairs:
        if strict and (old.ndim != new.ndim or old.dtype != new.dtype):
            raise TypeError("Cannot convert Type %s (of Variable %s) into Type %s" % (new.type, new, old.type))
    if not share:
        taken = [old for old, _ in pairs]
        pairs += [(v, v.clone()) for v in inputs_of(outputs)
                  if not isinstance(v, SharedVariable) and not [t for t in taken if t is v]]
    made = list(outputs)
    if pairs and outputs:
        g = outputs[0]._node.graph
        found = g.replace([v._node for v in outputs], [o._node for o, _ in pairs], [n._node for _, n in pairs])
        made = [v if n == v._node else variable_for(n, pairs) for v, n in zip(outputs, found)]
    for old, new in zip(outputs, made):
        new.name = new.name or old.name
    return made if isinstance(output, (list, tuple)) else made[0]


def variable_for(node, pairs):
    for _, new in pairs:
        if new._node == node:
            return new
    return TensorVariable(node, owner=LAZY)



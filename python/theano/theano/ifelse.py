"""A choice between values of which one is computed."""
from .core import Apply, Library, TensorVariable, as_tensor_variable, promoted


class IfElse(Library):
    revives = False

    def __init__(self):
        Library.__init__(self, "ifelse")


def ifelse(condition, then_branch, else_branch, name=None):
    many = isinstance(then_branch, (list, tuple))
    yes, no = [list(b) if isinstance(b, (list, tuple)) else [b] for b in (then_branch, else_branch)]
    if len(yes) != len(no):
        raise ValueError("The number of values on the `then` branch should have the same number of variables as the "
                         "`else` branch : (variables on `then` %d, variables on `else` %d)" % (len(yes), len(no)))
    pairs = [promoted([as_tensor_variable(a), as_tensor_variable(b)]) for a, b in zip(yes, no)]
    c = as_tensor_variable(condition)
    g = c._node.graph
    node = g.ifelse(c._node, [a._node for a, _ in pairs], [b._node for _, b in pairs])
    nodes = [node] if len(pairs) == 1 else [g.item(node, i) for i in range(len(pairs))]
    apply = Apply(IfElse(), [c] + [a for a, _ in pairs] + [b for _, b in pairs], [])
    apply.outputs = [TensorVariable(n, apply, i, name) for i, n in enumerate(nodes)]
    return apply.outputs if many else apply.outputs[0]

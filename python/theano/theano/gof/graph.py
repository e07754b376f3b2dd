"""Walks over graphs."""
from ..core import Apply, Constant, Variable, inputs_of, leaves_of  # noqa: F401
from ..compile.clone import clone


def inputs(variables, blockers=None):
    """The variables without an owner that these are computed from."""
    return leaves_of(list(variables))


def ancestors(variables, blockers=None):
    """All variables that these are computed from, these among them."""
    seen, todo = [], list(variables)
    found = set()
    while todo:
        v = todo.pop()
        if v._node in found:
            continue
        found.add(v._node)
        seen.append(v)
        if v.owner is not None and not (blockers and v in blockers):
            todo += v.owner.inputs
    return seen


def variables(i, o):
    return ancestors(o)


def io_toposort(i, o, orderings=None):
    """The applied ops, each after those that it needs."""
    all_ = sorted((v for v in ancestors(o) if v.owner is not None), key=lambda v: v._node.id)
    seen, order = set(), []
    for v in all_:
        if id(v.owner) not in seen:
            seen.add(id(v.owner))
            order.append(v.owner)
    return order


sort_apply_nodes = io_toposort


def is_same_graph(var1, var2, givens=None, debug=False):
    """Do both compute the same?  Equal nodes of a graph are one node."""
    if givens:
        var1, var2 = clone([var1, var2], dict(givens), strict=False)
    return var1._node == var2._node

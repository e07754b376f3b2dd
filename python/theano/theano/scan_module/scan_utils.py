from ..compile.clone import clone  # noqa: F401
from . import OrderedUpdates, until  # noqa: F401


def equal_computations(xs, ys, in_xs=None, in_ys=None):
    """Do they compute the same?  Equal nodes of a graph are one node."""
    if in_xs:
        xs = clone(list(xs), dict(zip(in_xs, in_ys)))
    return len(xs) == len(ys) and all(x._node == y._node for x, y in zip(xs, ys))

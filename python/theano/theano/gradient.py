"""Gradients: the library derives them."""
import warnings

import numpy as np

from .config import config
from .core import Library, TensorVariable, Variable, as_tensor_variable, LAZY, library, missing
from monochord import _monochord


class DisconnectedInputError(ValueError):
    """The cost does not depend on a variable."""


class NullTypeGradError(TypeError):
    """An op on the way has no gradient."""


class GradientError(Exception):
    """verify_grad found a gradient that is off."""


class DisconnectedType:
    def __call__(self, *unused):
        return None


def made(node):
    """The variable of a node that the library made."""
    return TensorVariable(node, owner=LAZY)


def nodes(variables):
    return [as_tensor_variable(v)._node for v in variables]


def grad(cost, wrt, consider_constant=None, disconnected_inputs="raise", add_names=True, known_grads=None,
         return_disconnected="zero", null_gradients="raise"):
    """The gradient of a scalar by one variable, or by each of several."""
    if cost is None and not known_grads:
        raise ValueError("cost and known_grads can't both be None.")
    if cost is not None and as_tensor_variable(cost).ndim:
        raise TypeError("cost must be a scalar.")
    if cost is not None and not as_tensor_variable(cost).dtype.startswith("float"):
        cost = as_tensor_variable(cost).astype(config.floatX)
    many = not isinstance(wrt, Variable) and hasattr(wrt, "__iter__")
    wrts = list(wrt) if many else [wrt]
    for w in wrts:
        if not isinstance(w, Variable):
            raise TypeError("Expected Variable, got %s of type %s" % (w, type(w)))
    known = list((known_grads or {}).items())
    if not wrts:
        return []
    g = wrts[0]._node.graph
    if disconnected_inputs not in ("raise", "ignore", "warn"):
        raise ValueError("Invalid value for keyword 'disconnected_inputs', valid values are 'ignore', 'warn' and "
                         "'raise'.")

    def derive(zero):
        return g.grads(None if cost is None else as_tensor_variable(cost)._node, nodes(wrts),
                       consider_constant=nodes(consider_constant or []), known=nodes([k for k, _ in known]),
                       known_grad=nodes([v for _, v in known]), disconnected_zero=zero)
    try:
        try:
            found = derive(disconnected_inputs == "ignore")
        except _monochord.GradientError as e:
            if disconnected_inputs != "warn":
                raise
            warnings.warn(str(e), stacklevel=2)
            found = derive(True)
    except _monochord.GradientError as e:
        kind = DisconnectedInputError if "depend" in str(e) else NullTypeGradError
        raise kind(str(e)) from None
    results = [made(n) for n in found]
    for r in results:
        r._mentions = wrts + ([] if cost is None else [cost])
    for r, w in zip(results, wrts):
        if add_names and w.name and cost is not None and getattr(cost, "name", None):
            r.name = "(d%s/d%s)" % (cost.name, w.name)
    return results[0] if not many else tuple(results) if isinstance(wrt, tuple) else results


def each(f, wrt, make):
    if isinstance(wrt, (list, tuple)):
        return type(wrt)(make(f, w) for w in wrt)
    return make(f, wrt)


def Lop(f, wrt, eval_points, consider_constant=None, disconnected_inputs="raise"):
    """eval_points . df/dwrt"""
    fs = f if isinstance(f, (list, tuple)) else [f]
    points = eval_points if isinstance(eval_points, (list, tuple)) else [eval_points]
    return grad(None, wrt, consider_constant, disconnected_inputs, known_grads=dict(zip(fs, points)))


def Rop(f, wrt, eval_points):
    """df/dwrt . eval_points"""
    if isinstance(f, (list, tuple)):
        return [Rop(x, wrt, eval_points) for x in f]
    wrts = wrt if isinstance(wrt, (list, tuple)) else [wrt]
    points = eval_points if isinstance(eval_points, (list, tuple)) else [eval_points]
    g = f._node.graph
    y = None
    for w, p in zip(wrts, points):
        term = made(g.Rop(f._node, w._node, as_tensor_variable(p)._node))
        term._mentions = [f, w]
        y = term if y is None else y + term
    return y


def jacobian(expression, wrt, consider_constant=None, disconnected_inputs="raise"):
    def derive(f, w):
        y = made(f._node.graph.jacobian(f._node, w._node))
        y._mentions = [f, w]
        return y
    return each(expression, wrt, derive)


def hessian(cost, wrt, consider_constant=None, disconnected_inputs="raise"):
    return each(cost, wrt, lambda c, w: jacobian(grad(c, w, consider_constant, disconnected_inputs), w))


def consider_constant(x):
    return Library("consider_constant")(x)


zero_grad = consider_constant


def disconnected_grad(x):
    return Library("disconnected_grad")(x)


def undefined_grad(x):
    return Library("undefined_grad")(x)


def grad_clip(x, lower_bound, upper_bound):
    return library("grad_clip", x, lo=float(lower_bound), hi=float(upper_bound))


def grad_scale(x, multiplier):
    return library("grad_scale", x, by=float(multiplier))


def subgraph_grad(wrt, end, start=None, cost=None, details=False):
    known = dict(start or {})
    first = grad(cost, end, known_grads=known or None, disconnected_inputs="ignore")
    params = grad(None, wrt, consider_constant=end, known_grads=dict(zip(end, first)),
                  disconnected_inputs="ignore") if wrt else []
    return params, first


def verify_grad(fun, pt, n_tests=2, rng=None, eps=None, out_type=None, abs_tol=None, rel_tol=None, mode=None,
                cast_to_output_type=False, no_debug_ref=True):
    """Compares the gradient of fun with differences at the point pt."""
    from .compile import function
    from . import tensor
    pt = [np.array(p) for p in pt]
    xs = [tensor.TensorType(p.dtype, [n == 1 for n in p.shape])("input_%d" % i) for i, p in enumerate(pt)]
    y = fun(*xs)
    weights = np.asarray((rng or np.random.RandomState(1)).rand(*function(xs, y)(*pt).shape) + 0.1, y.dtype)
    cost = (y * weights).sum()
    f, g = function(xs, cost, on_unused_input="ignore"), function(xs, grad(cost, xs), on_unused_input="ignore")
    eps = eps or (1e-7 if pt[0].dtype == np.float64 else 3e-4)
    allowed = rel_tol or (1e-4 if pt[0].dtype == np.float64 else 5e-2)
    for k, exact in enumerate(g(*pt)):
        for i in np.ndindex(*pt[k].shape):
            high, low = [p.copy() for p in pt], [p.copy() for p in pt]
            high[k][i] += eps
            low[k][i] -= eps
            slope = (float(f(*high)) - float(f(*low))) / (float(high[k][i]) - float(low[k][i]))
            if abs(slope - exact[i]) > allowed * max(1, abs(slope), abs(exact[i])):
                raise GradientError("argument %d, element %s: gradient %g, differences %g"
                                    % (k, i, exact[i], slope))


def grad_not_implemented(op, x_pos, x, comment=""):
    raise NullTypeGradError("%s has no gradient by input %d. %s" % (op, x_pos, comment))


grad_undefined = grad_not_implemented
__getattr__ = missing("theano.gradient")

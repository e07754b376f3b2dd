"""Loops: scan and its relatives."""
from collections import OrderedDict

import numpy as np

from ..config import config
from ..core import Apply, Constant, Library, TensorVariable, Variable, as_tensor_variable, compute_test_value, missing
from ..sharedvar import SharedVariable


class OrderedUpdates(OrderedDict):
    pass


class until:
    """Returned by the function of scan: the step for which the condition is true is the last."""

    def __init__(self, condition):
        self.condition = as_tensor_variable(condition)


class Scan(Library):
    """A loop; it is not built again."""
    revives = False

    def __init__(self):
        Library.__init__(self, "scan")


def listed(x):
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def parts_of(result):
    """What the function of scan returned: outputs, updates, condition."""
    outputs, updates, condition = [], OrderedUpdates(), None
    items = result if isinstance(result, (list, tuple)) else [result]
    if isinstance(result, (list, tuple)) and result and all(
            isinstance(p, (list, tuple)) and len(p) == 2 and isinstance(p[0], SharedVariable) for p in result):
        return [], OrderedUpdates(result), None
    for item in items:
        if isinstance(item, until):
            condition = item.condition
        elif isinstance(item, dict):
            updates.update(item)
        elif isinstance(item, (list, tuple)):
            more = parts_of(item)
            outputs += more[0]
            updates.update(more[1])
            condition = more[2] or condition
        elif item is not None:
            outputs.append(as_tensor_variable(item))
    return outputs, updates, condition


def sequence_slices(sequences, n_steps, go_backwards):
    """For each tap of each sequence the part whose element t it is, all of one length."""
    slices = []
    for s in sequences:
        given = s if isinstance(s, dict) else {"input": s}
        x, taps = as_tensor_variable(given["input"]), given.get("taps", [0])
        taps = [0] if taps is None else listed(taps)
        low, high = min(taps + [0]), max(taps + [0])
        if x.ndim == 0:
            raise ValueError("a sequence of scan has at least one axis: %s" % x)
        for k in taps:
            start, stop = k - low, k - high
            part = x if start == 0 and stop == 0 else x[start:stop] if stop < 0 else x[start:]
            slices.append(part[::-1] if go_backwards else part)
    if n_steps is not None:
        return [x[:n_steps] for x in slices], n_steps
    if len(slices) > 1 and len({x._node.dims[0] for x in slices}) > 1 or any(x._node.dims[0] < 0 for x in slices[1:]):
        from ..tensor.basic import names
        n = slices[0].shape[0]
        for x in slices[1:]:
            n = names["minimum"](n, x.shape[0])
        return [x[:n] for x in slices], None
    return slices, None


def first_values(inner, starts):
    """Test values of what the function of scan is given: those of the first step."""
    from ..gof.test_value import get_test_value
    for v, start in zip(inner, starts):
        try:
            v.tag.test_value = get_test_value(start)
        except AttributeError:
            pass  # config.compute_test_value says what that means where v is used


def add_default_updates(outputs, updates, outer):
    """Those of streams of random numbers that a step draws from: not those that outer nodes, which are given to the step, were
    computed from."""
    more = True
    while more:
        more = False
        nodes = [as_tensor_variable(v)._node for v in outputs + list(updates.values())]
        if not drawn_from(nodes, updates):
            return
        g = nodes[0].graph
        inside = [g.input(g.free_name("outer"), n.dtype, list(n.dims)) for n in outer]
        for v in drawn_from(g.replace(nodes, outer, inside) if outer else nodes, updates):
            updates[v] = v.default_update
            more = True


def drawn_from(nodes, known):
    """The shared variables with a default update that nodes are computed from."""
    shared = [n.graph.known.get(n.id) for n in (nodes[0].graph.leaves(nodes) if nodes else []) if n.op == "shared"]
    return [v for v in shared if v is not None and v.default_update is not None and v not in known]


def scan(fn, sequences=None, outputs_info=None, non_sequences=None, n_steps=None, truncate_gradient=-1,
         go_backwards=False, mode=None, name=None, profile=False, allow_gc=None, strict=False, return_list=False):
    """Calls fn for one step, and computes what it returns again and again; gives the outputs, and updates."""
    from ..tensor.basic import unbroadcast
    n_steps_given, go_backwards_given = n_steps, go_backwards
    if n_steps is not None and not isinstance(n_steps, Variable):
        n_steps = int(n_steps)
        go_backwards, n_steps = go_backwards or n_steps < 0, abs(n_steps)
    slices, n_steps = sequence_slices(listed(sequences), n_steps, go_backwards)
    if not slices and n_steps is None:
        raise ValueError("No information about the number of steps provided: give sequences or n_steps")
    infos = [i if isinstance(i, dict) else {"initial": i} for i in listed(outputs_info)]
    others = [as_tensor_variable(x) for x in listed(non_sequences)]

    # The states, and what the function is given of them.
    states, given, starts, kinds = [], [], [], []
    for info in infos:
        initial, taps = info.get("initial"), info.get("taps", [-1])
        if initial is None or taps is None:
            kinds.append(None)
            continue
        initial = as_tensor_variable(initial)
        taps = listed(taps)
        g, back = initial._node.graph, -min(taps)
        if max(taps) >= 0:
            raise ValueError("taps of outputs_info are negative: %s" % taps)
        made = [g.scan_state(initial._node)] if back == 1 else g.scan_states(initial[:back]._node, back)
        kinds.append((len(states), back, initial))
        states += made
        given += [TensorVariable(made[-k - 1]) for k in taps]
        starts += [initial if back == 1 else initial[back + k] for k in taps]
    first = (slices or others or [as_tensor_variable(n_steps)])[0]
    g = (states[0] if states else first._node).graph
    elements = [g.scan_element(x._node) for x in slices]
    inner = [TensorVariable(e) for e in elements] + given
    if config.compute_test_value != "off":
        first_values(inner, [x[0] for x in slices] + starts)
    result = fn(*inner + others)
    outputs, updates, condition = parts_of(result)
    if infos and len(infos) != len(outputs):
        raise ValueError("Please provide None as outputs_info for any output that does not feed back into scan (i.e. "
                         "it behaves like a map): %d outputs, but %d entries" % (len(outputs), len(infos)))
    kinds = kinds or [None] * len(outputs)

    add_default_updates(outputs, updates, elements + states + [v._node for v in others if not isinstance(
        v, (Constant, SharedVariable))])

    # A shared variable that is updated is a state of the loop.
    values = [o._node for o in outputs] + [as_tensor_variable(u)._node for u in updates.values()]
    values += [condition._node] if condition is not None else []
    placed = [g.scan_state(v._node) for v in updates]
    if placed:
        values = g.replace(values, [v._node for v in updates], placed)
    if condition is not None:
        until_node = g.op("cast", [values.pop()], "dtype=bool")
    else:
        until_node = None

    next_values, collected, where = [None] * len(states), [], []
    for node, kind in zip(values, kinds):
        if kind is None:
            where.append(len(collected))
            collected.append(node)
            continue
        at, back, initial = kind
        k = kinds.index(kind)
        if isinstance(initial, Constant) and np.promote_types(node.dtype, initial.dtype) == node.dtype != initial.dtype:
            # once more, with a number of the dtype that comes out
            infos[k] = dict(infos[k], initial=initial.astype(node.dtype))
            return scan(fn, sequences, infos, non_sequences, n_steps_given, truncate_gradient, go_backwards_given, mode,
                        name, profile, allow_gc, strict, return_list)
        wider = [a for a, (d, e) in enumerate(zip(states[at].dims, node.dims)) if d == 1 != e]
        if wider and len(node.dims) == len(states[at].dims):  # once more, with an axis that does not broadcast
            infos[k] = dict(infos[k], initial=unbroadcast(initial, *[a + (back > 1) for a in wider]))
            return scan(fn, sequences, infos, non_sequences, n_steps_given, truncate_gradient, go_backwards_given, mode,
                        name, profile, allow_gc, strict, return_list)
        if node.dtype != initial.dtype:
            if np.promote_types(node.dtype, initial.dtype) != initial.dtype:
                raise TypeError("scan: an output has dtype %s, its initial state %s; cast one of them"
                                % (node.dtype, initial.dtype))
            node = g.op("cast", [node], "dtype=%s" % initial.dtype)
        next_values[at] = node
        for k in range(1, back):
            next_values[at + k] = states[at + k - 1]
        where.append(None)
    for at, (v, node) in enumerate(zip(updates, values[len(outputs):])):
        states.append(placed[at])
        next_values.append(node)
    steps = as_tensor_variable(n_steps).astype("int64")._node if n_steps is not None else None
    loop = g.scan(elements, states, next_values, collected, steps, until_node,
                  truncate_gradient=builtin_max(truncate_gradient, 0))
    made = [g.item(loop, len(states) + w if w is not None else kind[0]) for w, kind in zip(where, kinds)]
    apply = Apply(Scan(), slices + [i for _, _, i in filter(None, kinds)] + others, [])
    apply.outputs = [TensorVariable(n, apply, i) for i, n in enumerate(made)]
    results = OrderedUpdates()
    for i, v in enumerate(updates):
        last = g.item(loop, len(states) + len(collected) + len(states) - len(updates) + i)
        results[v] = TensorVariable(last, apply, None)
    found = apply.outputs
    compute_test_value(apply)
    return (found if return_list or len(found) > 1 else found[0] if found else None), results


builtin_max = max


def map(fn, sequences, non_sequences=None, truncate_gradient=-1, go_backwards=False, mode=None, name=None):
    return scan(fn, sequences, [], non_sequences, None, truncate_gradient, go_backwards, mode, name)


def reduce(fn, sequences, outputs_info, non_sequences=None, go_backwards=False, mode=None, name=None):
    results, updates = scan(fn, sequences, outputs_info, non_sequences, None, -1, go_backwards, mode, name)
    return [r[-1] for r in results] if isinstance(results, list) else results[-1], updates


def foldl(fn, sequences, outputs_info, non_sequences=None, mode=None, name=None):
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name)


def foldr(fn, sequences, outputs_info, non_sequences=None, mode=None, name=None):
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name)


def scan_checkpoints(fn, sequences=None, outputs_info=None, non_sequences=None, name="", n_steps=None,
                     save_every_N=10, padding=True):
    return scan(fn, sequences, outputs_info, non_sequences, n_steps, name=name)


from . import scan_utils  # noqa: E402,F401
__getattr__ = missing("theano.scan_module")

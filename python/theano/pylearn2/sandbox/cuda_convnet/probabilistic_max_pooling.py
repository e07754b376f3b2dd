from theano.core import Library


def prob_max_pool_c01b(c01b, pool_shape, top_down=None, **unused):
    """The probabilities that a window, and that a cell of it, is on."""
    if len(set(pool_shape)) != 1:
        raise ValueError("windows must be square: %s" % (pool_shape,))
    inputs = [c01b] if top_down is None else [c01b, top_down]
    return tuple(Library("prob_max_pool", "ds=%d" % pool_shape[0], 2)(*inputs))

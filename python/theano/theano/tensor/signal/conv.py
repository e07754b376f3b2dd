from ..basic import as_tensor_variable, dimshuffle


def conv2d(input, filters, image_shape=None, filter_shape=None, border_mode="valid", subsample=(1, 1), **unused):
    """Each image, or one, with each filter, or one."""
    from ..nnet import conv2d as conv
    x, w = as_tensor_variable(input), as_tensor_variable(filters)
    many_x, many_w = x.ndim == 3, w.ndim == 3
    x = dimshuffle(x, 0, "x", 1, 2) if many_x else dimshuffle(x, "x", "x", 0, 1)
    w = dimshuffle(w, 0, "x", 1, 2) if many_w else dimshuffle(w, "x", "x", 0, 1)
    y = conv(x, w, border_mode=border_mode, subsample=subsample)
    return y if many_x and many_w else y[:, 0] if many_x else y[0] if many_w else y[0, 0]

from theano.core import as_tensor_variable, library
from theano.tensor.basic import promoted


def nervana_conv(input, filters, padding=None, strides=1, dimshuffle=True, relu=False):
    x, w = promoted([as_tensor_variable(input), as_tensor_variable(filters)])
    strides = [strides] if isinstance(strides, int) else list(strides)
    padding = padding if isinstance(padding, (str, int, type(None))) else list(padding)
    return library("nervana_conv", x, w, padding=padding, strides=strides, dimshuffle=bool(dimshuffle),
                   relu=bool(relu))

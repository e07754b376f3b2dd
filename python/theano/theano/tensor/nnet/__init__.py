"""Functions of neural networks."""
import numpy as np

from ...core import Constant, Library, as_tensor_variable, attributes, library, missing
from ...config import config
from ..basic import call, cast, dimshuffle, names, promoted

sigmoid, softplus = names["sigmoid"], names["softplus"]


def activation(op, *parameters):
    def f(x, *args, **given):
        x = as_tensor_variable(x)
        x = x if x.dtype.startswith("float") else cast(x, config.floatX)
        return library(op, x, **dict(given, **dict(zip(parameters, args))))
    f.__name__ = op
    return f


elu = activation("elu", "alpha")
selu, hard_sigmoid, ultra_fast_sigmoid, softsign = [
    activation(n) for n in ("selu", "hard_sigmoid", "ultra_fast_sigmoid", "softsign")]


def relu(x, alpha=0):
    if isinstance(x, np.ndarray):  # Theano's formula, which NumPy computes too
        return 0.5 * (1 + alpha) * x + 0.5 * (1 - alpha) * abs(x)
    if isinstance(alpha, (int, float)):
        return activation("relu", "alpha")(x, alpha)
    x, alpha = promoted([as_tensor_variable(x), as_tensor_variable(alpha)])
    return names["switch"](x > 0, x, x * alpha)


def rows(x):
    """Theano's softmax takes a vector as one row."""
    x = as_tensor_variable(x)
    return dimshuffle(x, "x", 0) if x.ndim == 1 else x


class Softmax(Library):
    """The op, for programs that look for it in graphs."""


def softmax(c, axis=-1):
    return Softmax("softmax", attributes({"axis": axis}))(rows(c))


def logsoftmax(c, axis=-1):
    return library("logsoftmax", rows(c), axis=axis)


softmax_op = softmax_graph = softmax
softmax_with_bias = call("softmax_with_bias")
crossentropy_softmax_1hot_with_bias = call("crossentropy_softmax_1hot_with_bias")
crossentropy_softmax_1hot = call("crossentropy_softmax_1hot")
prepend_scalar_to_each_row = call("prepend_scalar_to_each_row")
prepend_0_to_each_row, prepend_1_to_each_row = call("prepend_0_to_each_row"), call("prepend_1_to_each_row")


def crossentropy_softmax_argmax_1hot_with_bias(x, b, y_idx):
    z = as_tensor_variable(x) + b
    return [library("crossentropy_softmax_1hot", z, y_idx), softmax(z), z.argmax(axis=-1)]


def crossentropy_softmax_max_and_argmax_1hot(x, y_idx):
    return Library("crossentropy_softmax_max_and_argmax_1hot", "", 3)(x, y_idx)


def crossentropy_softmax_max_and_argmax_1hot_with_bias(x, b, y_idx):
    return Library("crossentropy_softmax_max_and_argmax_1hot_with_bias", "", 3)(x, b, y_idx)


def binary_crossentropy(output, target):
    output, target = promoted([as_tensor_variable(output), as_tensor_variable(target)])
    return library("binary_crossentropy", output, target)


def sigmoid_binary_crossentropy(output, target):
    output, target = promoted([as_tensor_variable(output), as_tensor_variable(target)])
    return library("sigmoid_binary_crossentropy", output, target)


def categorical_crossentropy(coding_dist, true_dist):
    p, t = as_tensor_variable(coding_dist), as_tensor_variable(true_dist)
    if t.ndim == p.ndim:
        return library("categorical_crossentropy", *promoted([p, t]))
    if t.ndim == p.ndim - 1:
        if t.dtype.startswith("float"):
            raise TypeError("integer vector required for argument: true_dist (got type: %s instead of: integer)"
                            % t.type)
        return library("crossentropy_1hot", p, t)
    raise TypeError("rank mismatch between coding and true distributions")


crossentropy_categorical_1hot = call("crossentropy_1hot")


def confusion_matrix(actual, pred):
    return Library("confusion_matrix", "", 2)(actual, pred)


def h_softmax(x, batch_size, n_outputs, n_classes, n_outputs_per_class, W1, b1, W2, b2, target=None):
    if target is None:
        return library("h_softmax", x, W1, b1, W2, b2, n_outputs=n_outputs)
    return library("h_softmax_at", x, W1, b1, W2, b2, target)


# ---- convolution

def sizes(shape, unknown=-1):
    """A shape, None where a size is not known, as the attribute of an op; None: nothing is known."""
    if shape is None:
        return None
    shape = [s.data if hasattr(s, "data") and not isinstance(s, np.generic) else s for s in shape]
    return [unknown if s is None else int(s) for s in shape]


def border(mode, nd):
    if isinstance(mode, str):
        if mode not in ("valid", "full", "half"):
            raise ValueError("invalid border_mode {}, which must be either \"valid\", \"full\", \"half\", an integer "
                             "or a tuple of length {}".format(mode, nd))
        return mode
    if isinstance(mode, (int, np.integer)):
        mode = (int(mode),) * nd
    mode = tuple(mode)
    if len(mode) != nd or [m for m in mode if np.min(m) < 0]:
        raise ValueError("invalid border_mode {}, which must be a tuple of length {} of non-negative numbers".format(
            mode, nd))
    return [[int(a) for a in m] if isinstance(m, (tuple, list)) else int(m) for m in mode]


def per_axis(x, nd):
    x = x.data if isinstance(x, Constant) else x
    return [int(x)] * nd if isinstance(x, (int, np.integer)) else [int(v) for v in x]


def convolution(op, nd):
    """conv2d and its relatives: (x, w) and the names of Theano's arguments."""
    def conv(input, filters, input_shape=None, filter_shape=None, border_mode="valid", subsample=(1,) * nd,
             filter_flip=True, image_shape=None, filter_dilation=(1,) * nd, num_groups=1, unshared=False,
             imshp=None, kshp=None, **given):
        for old in ("nkern", "bsize", "kshp_logical", "kshp_logical_top_aligned", "imshp_logical", "verbose",
                    "version", "unroll_patch", "unroll_batch", "unroll_kern", "openmp"):
            given.pop(old, None)
        if given:
            raise TypeError("%s has no argument %s" % (op, ", ".join(given)))
        x, w = promoted([as_tensor_variable(input), as_tensor_variable(filters)])
        shape = input_shape if input_shape is not None else image_shape
        return library(op, x, w, input_shape=sizes(shape), filter_shape=sizes(filter_shape),
                       border_mode=border(border_mode, nd), subsample=per_axis(subsample, nd),
                       filter_flip=bool(filter_flip), filter_dilation=per_axis(filter_dilation, nd),
                       num_groups=num_groups, unshared=bool(unshared))
    conv.__name__ = op
    return conv


conv1d, conv2d, conv3d = convolution("conv1d", 1), convolution("conv2d", 2), convolution("conv3d", 3)


def conv2d_transpose(input, filters, output_shape, filter_shape=None, border_mode="valid", input_dilation=(1, 1),
                     filter_flip=True, filter_dilation=(1, 1), num_groups=1, unshared=False):
    return abstract_conv.conv2d_grad_wrt_inputs(input, filters, output_shape, filter_shape, border_mode,
                                                input_dilation, filter_flip, filter_dilation, num_groups, unshared)


def separable_conv2d(input, depthwise_filters, pointwise_filters, num_channels, input_shape=None,
                     depthwise_filter_shape=None, pointwise_filter_shape=None, border_mode="valid",
                     subsample=(1, 1), filter_flip=True, filter_dilation=(1, 1)):
    y = conv2d(input, depthwise_filters, input_shape, depthwise_filter_shape, border_mode, subsample, filter_flip,
               filter_dilation=filter_dilation, num_groups=num_channels)
    return conv2d(y, pointwise_filters, None, pointwise_filter_shape, filter_flip=filter_flip)


from . import abstract_conv, bn, conv, neighbours, nnet, sigm, corr  # noqa: E402,F401
from .bn import batch_normalization, batch_normalization_test, batch_normalization_train  # noqa: E402,F401
__getattr__ = missing("theano.tensor.nnet")

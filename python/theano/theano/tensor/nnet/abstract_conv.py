"""Convolutions and their gradients, also as ops that are made before they are called."""
from ...core import Variable, as_tensor_variable, library, missing
from ..basic import promoted, shape_vector
from . import border, conv2d, conv3d, per_axis, sizes  # noqa: F401


STEPS = ["border_mode", "subsample", "filter_flip", "filter_dilation", "num_groups", "unshared"]


def gradient(op, nd, names):
    """conv2d_grad_wrt_inputs and its relatives: names of two tensors, of the shape that is asked for, of the other."""
    def conv(*args, **given):
        known = names + STEPS
        given = dict({names[3]: None, "border_mode": "valid", "subsample": 1, "filter_flip": True,
                      "filter_dilation": 1, "num_groups": 1, "unshared": False}, **dict(zip(known, args)), **given)
        unknown = set(given) - set(known)
        if unknown or len(args) > len(known) or not set(names) <= set(given):
            raise TypeError("%s takes %s" % (op, ", ".join(known)))
        a, b = promoted([as_tensor_variable(given[n]) for n in names[:2]])
        shape = given[names[2]]
        if not isinstance(shape, Variable) and [v for v in shape[:2] if v is None]:
            shape = shape[2:]  # the others follow from the operands
        return library(op, a, b, shape_vector(shape), border_mode=border(given["border_mode"], nd),
                       subsample=per_axis(given["subsample"], nd), filter_flip=bool(given["filter_flip"]),
                       filter_dilation=per_axis(given["filter_dilation"], nd), num_groups=given["num_groups"],
                       unshared=bool(given["unshared"]), **{names[3]: sizes(given[names[3]])})
    conv.__name__ = op
    return conv


INPUTS = ["output_grad", "filters", "input_shape", "filter_shape"]
WEIGHTS = ["input", "output_grad", "filter_shape", "input_shape"]
conv2d_grad_wrt_inputs = gradient("conv2d_grad_wrt_inputs", 2, INPUTS)
conv3d_grad_wrt_inputs = gradient("conv3d_grad_wrt_inputs", 3, INPUTS)
conv2d_grad_wrt_weights = gradient("conv2d_grad_wrt_weights", 2, WEIGHTS)
conv3d_grad_wrt_weights = gradient("conv3d_grad_wrt_weights", 3, WEIGHTS)


def made_first(nd, what):
    """AbstractConv2d and its relatives: attributes first, then the call."""
    class Conv:
        def __init__(self, imshp=None, kshp=None, border_mode="valid", subsample=(1,) * nd, filter_flip=True,
                     filter_dilation=(1,) * nd, num_groups=1, unshared=False, convdim=None):
            border(border_mode, nd)
            self.imshp, self.kshp = imshp, kshp
            self.given = dict(border_mode=border_mode, subsample=subsample, filter_flip=filter_flip,
                              filter_dilation=filter_dilation, num_groups=num_groups, unshared=unshared)

        def __call__(self, a, b, shape=None):
            if what == "forward":
                return (conv2d if nd == 2 else conv3d)(a, b, self.imshp, self.kshp, **self.given)
            if what == "inputs":  # kernels, gradient, spatial sizes of the images
                f = conv2d_grad_wrt_inputs if nd == 2 else conv3d_grad_wrt_inputs
                return f(b, a, whole(self.imshp, b.shape[0], a.shape[1], shape, nd), self.kshp, **self.given)
            f = conv2d_grad_wrt_weights if nd == 2 else conv3d_grad_wrt_weights
            return f(a, b, whole(self.kshp, b.shape[1], a.shape[1], shape, nd), self.imshp, **self.given)
    return Conv


def whole(known, first, second, spatial, nd):
    """A shape that is known, or else put together from the spatial sizes."""
    if known is not None and not [s for s in known if s is None]:
        return known
    return [first, second] + [spatial[i] for i in range(nd)]


AbstractConv2d, AbstractConv3d = made_first(2, "forward"), made_first(3, "forward")
AbstractConv2d_gradInputs, AbstractConv3d_gradInputs = made_first(2, "inputs"), made_first(3, "inputs")
AbstractConv2d_gradWeights, AbstractConv3d_gradWeights = made_first(2, "weights"), made_first(3, "weights")


def get_conv_shape_1axis(image_shape, kernel_shape, border_mode, subsample, dilation=1):
    if None in (image_shape, kernel_shape):
        return None
    k = (kernel_shape - 1) * dilation + 1
    pad = {"half": 2 * (k // 2), "full": 2 * (k - 1), "valid": 0}.get(border_mode) if isinstance(border_mode, str) \
        else sum(border_mode) if isinstance(border_mode, tuple) else 2 * border_mode
    return (image_shape + pad - k) // subsample + 1


def get_conv_output_shape(image_shape, kernel_shape, border_mode, subsample, filter_dilation=None):
    nd = len(subsample)
    modes = border_mode if isinstance(border_mode, tuple) else (border_mode,) * nd
    dilation = filter_dilation or (1,) * nd
    return (image_shape[0], kernel_shape[0]) + tuple(
        get_conv_shape_1axis(image_shape[2 + i], kernel_shape[2 + i], modes[i], subsample[i], dilation[i])
        for i in range(nd))


def causal_conv1d(input, filters, filter_shape=None, input_shape=None, subsample=1, filter_flip=True,
                  filter_dilation=1, num_groups=1, unshared=False):
    x, w = promoted([as_tensor_variable(input), as_tensor_variable(filters)])
    return library("causal_conv1d", x, w, filter_shape=sizes(filter_shape), input_shape=sizes(input_shape),
                   subsample=per_axis(subsample, 1), filter_flip=bool(filter_flip),
                   filter_dilation=per_axis(filter_dilation, 1), num_groups=num_groups, unshared=bool(unshared))


def bilinear_kernel_1D(ratio, normalize=True):
    return library("bilinear_kernel_1D", ratio=int(ratio), normalize=bool(normalize))


def bilinear_kernel_2D(ratio, normalize=True):
    return library("bilinear_kernel_2D", ratio=int(ratio), normalize=bool(normalize))


def bilinear_upsampling(input, ratio=None, frac_ratio=None, batch_size=None, num_input_channels=None,
                        use_1D_kernel=True):
    return library("bilinear_upsampling", input, ratio=ratio, frac_ratio=frac_ratio, batch_size=batch_size,
                   num_input_channels=num_input_channels, use_1D_kernel=bool(use_1D_kernel))


__getattr__ = missing("theano.tensor.nnet.abstract_conv")

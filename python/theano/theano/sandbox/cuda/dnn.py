"""The names of Theano's cuDNN module.  The library takes cuDNN where it is the fastest, and computes the same
without it."""
import numpy as np

from ...core import Variable, as_tensor_variable, library, missing
from ...tensor.basic import promoted, shape_vector
from ...tensor.nnet import bn, per_axis
from ...tensor.nnet.abstract_conv import get_conv_output_shape


def dnn_available():
    from . import on_gpu
    dnn_available.msg = "" if on_gpu() else "Device is not on a GPU"
    return on_gpu()


dnn_present = dnn_available
dnn_available.msg = ""


def version(raises=True):
    return 9000, 9000


def numbers(mode):
    return mode if isinstance(mode, str) else int(mode) if isinstance(mode, (int, np.integer)) else list(mode)


PARAMETERS = {"border_mode": "valid", "subsample": None, "conv_mode": "conv", "direction_hint": None, "workmem": None,
              "algo": None, "precision": None, "dilation": None, "num_groups": 1, "nb_dims": None}


def convolution(op, nd, tensors):
    """dnn_conv and its relatives: tensors are the first parameters, the third of them a shape."""
    def conv(*args, **given):
        names = list(tensors) + list(PARAMETERS)
        given = dict(PARAMETERS, **dict(zip(names, args)), **given)
        unknown = set(given) - set(names)
        if unknown or not set(tensors) <= set(given):
            raise TypeError("%s takes %s" % (op, ", ".join(names)))
        a, b = promoted([as_tensor_variable(given.pop(t)) for t in tensors[:2]])
        shape = [shape_vector(given.pop(t)) for t in tensors[2:]]
        given["border_mode"] = numbers(given["border_mode"])
        for k in ("subsample", "dilation"):
            given[k] = per_axis(given[k] or 1, nd)
        given.pop("nb_dims")
        return library(op, a, b, *shape, **{k: v for k, v in given.items() if v is not None})
    conv.__name__ = op
    return conv


dnn_conv, dnn_conv3d = [convolution(n, d, ("img", "kerns")) for n, d in (("dnn_conv", 2), ("dnn_conv3d", 3))]
dnn_gradweight, dnn_gradweight3d = [convolution(n, d, ("img", "topgrad", "kerns_shp")) for n, d in (
    ("dnn_gradweight", 2), ("dnn_gradweight3d", 3))]
dnn_gradinput, dnn_gradinput3d = [convolution(n, d, ("kerns", "topgrad", "img_shp")) for n, d in (
    ("dnn_gradinput", 2), ("dnn_gradinput3d", 3))]


def dnn_pool(img, ws, stride=None, mode="max", pad=None):
    ws = list(ws)
    if mode == "average":
        mode = "average_inc_pad"
    n = len(ws)
    return library("dnn_pool", img, *[shape_vector(v) for v in (ws, stride or (1,) * n, pad or (0,) * n)], mode=mode)


def dnn_batch_normalization_train(inputs, gamma, beta, mode="per-activation", *args, **given):
    return bn.batch_normalization_train(inputs, gamma, beta, mode, *args, **given)


def dnn_batch_normalization_test(inputs, gamma, beta, mean, var, mode="per-activation", epsilon=1e-4):
    return bn.batch_normalization_test(inputs, gamma, beta, mean, var, mode, epsilon)


class GpuDnnSoftmax:
    def __init__(self, tensor_format="bc01", algo="accurate", mode="channel"):
        if tensor_format in ("fast", "accurate", "log"):  # the newer order: algo, mode
            tensor_format, algo, mode = "bc01", tensor_format, algo if algo in ("channel", "instance") else mode
        self.given = dict(mode=mode, algo=algo, layout=tensor_format)

    def __call__(self, x):
        return library("dnn_softmax", x, **self.given)


class GpuDnnSoftmaxGrad(GpuDnnSoftmax):
    def __call__(self, dy, sm):
        return library("dnn_softmax_grad", dy, sm, **self.given)


class GpuDnnPoolDesc:
    def __init__(self, ws=(1, 1), stride=(1, 1), mode="max", pad=(0, 0)):
        self.given = dict(ws=ws, stride=stride, mode=mode, pad=pad)

    def __call__(self):
        return self


class GpuDnnPool:
    def __init__(self, mode="max"):
        self.mode = mode

    def __call__(self, img, *rest):
        if isinstance(rest[0], GpuDnnPoolDesc):
            return dnn_pool(img, **rest[0].given)
        return dnn_pool(img, *rest[:2], self.mode, *rest[2:])


class GpuDnnConvDesc:
    def __init__(self, border_mode, subsample=(1, 1), conv_mode="conv", precision="float32", **more):
        self.given = dict(border_mode=border_mode, subsample=subsample, conv_mode=conv_mode, **more)

    def __call__(self, *shapes):
        return self


class GpuDnnConv:
    """GpuDnnConv()(images, kernels, output, description, alpha, beta): alpha * convolution + beta * output.  The
    memory of output is not used, with inplace neither."""
    compute = staticmethod(dnn_conv)
    get_out_shape = staticmethod(get_conv_output_shape)

    def __init__(self, workmem=None, inplace=False, algo=None):
        self.algo = algo or workmem

    def __call__(self, a, b, output, desc, alpha=1, beta=0, *unused):
        given = dict(desc.given, algo=self.algo)
        forward = self.compute in (dnn_conv, dnn_conv3d)
        shape = [] if forward else [output.shape if isinstance(output, Variable) else output]
        y = self.compute(a, b, *shape, **given)
        y = y if isinstance(alpha, (int, float)) and alpha == 1 else alpha * y
        return y if isinstance(beta, (int, float)) and beta == 0 else y + beta * output


class GpuDnnConv3d(GpuDnnConv):
    compute = staticmethod(dnn_conv3d)


class GpuDnnConvGradW(GpuDnnConv):
    compute = staticmethod(dnn_gradweight)


class GpuDnnConvGradI(GpuDnnConv):
    compute = staticmethod(dnn_gradinput)


__getattr__ = missing("theano.sandbox.cuda.dnn")

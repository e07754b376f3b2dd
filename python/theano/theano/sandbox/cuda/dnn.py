"""The names of Theano's cuDNN module.  The library takes cuDNN where it is the fastest, and computes the same
without it."""
import numpy as np

from ...core import Variable, as_tensor_variable, library, missing
from ...tensor.basic import promoted, shape_vector
from ...tensor.nnet import per_axis


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


def convolution(op, nd, shaped=False):
    def conv(a, b, *rest, border_mode="valid", subsample=(1,) * nd, conv_mode="conv", direction_hint=None,
             workmem=None, algo=None, precision=None, dilation=(1,) * nd, num_groups=1, **given):
        given.pop("nb_dims", None)
        if given:
            raise TypeError("%s has no argument %s" % (op, ", ".join(given)))
        a, b = promoted([as_tensor_variable(a), as_tensor_variable(b)])
        known = dict(border_mode=numbers(border_mode), subsample=per_axis(subsample, nd), conv_mode=conv_mode,
                     dilation=per_axis(dilation, nd), num_groups=num_groups)
        known.update({k: v for k, v in dict(direction_hint=direction_hint, workmem=workmem, algo=algo,
                                            precision=precision).items() if v is not None})
        shape = [shape_vector(rest[0])] if shaped else []
        for name, value in zip(("border_mode", "subsample", "conv_mode"), rest[len(shape):]):
            known[name] = {"border_mode": numbers, "subsample": list}.get(name, str)(value)
        return library(op, a, b, *shape, **known)
    conv.__name__ = op
    return conv


dnn_conv, dnn_conv3d = convolution("dnn_conv", 2), convolution("dnn_conv3d", 3)
dnn_gradweight, dnn_gradinput = convolution("dnn_gradweight", 2, True), convolution("dnn_gradinput", 2, True)
dnn_gradweight3d, dnn_gradinput3d = convolution("dnn_gradweight3d", 3, True), convolution("dnn_gradinput3d", 3, True)


def dnn_pool(img, ws, stride=None, mode="max", pad=None):
    ws = list(ws)
    if mode == "average":
        mode = "average_inc_pad"
    n = len(ws)
    return library("dnn_pool", img, *[shape_vector(v) for v in (ws, stride or (1,) * n, pad or (0,) * n)], mode=mode)


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
    """GpuDnnConv()(images, kernels, output, description): the output's memory is not used."""
    compute = staticmethod(dnn_conv)

    def __init__(self, workmem=None, inplace=False, algo=None):
        self.algo = algo or workmem

    def __call__(self, a, b, output, desc, *unused):
        more = {"algo": self.algo} if self.algo else {}
        if self.compute is dnn_conv or self.compute is dnn_conv3d:
            return self.compute(a, b, **dict(desc.given, **more))
        return self.compute(a, b, output.shape if isinstance(output, Variable) else output, **dict(desc.given, **more))


class GpuDnnConv3d(GpuDnnConv):
    compute = staticmethod(dnn_conv3d)


class GpuDnnConvGradW(GpuDnnConv):
    compute = staticmethod(dnn_gradweight)


class GpuDnnConvGradI(GpuDnnConv):
    compute = staticmethod(dnn_gradinput)


__getattr__ = missing("theano.sandbox.cuda.dnn")

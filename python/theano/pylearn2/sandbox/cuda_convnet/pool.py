from theano.core import library
from . import made_first

NAMES, PRESETS = ["ds", "stride", "start", "outputs"], {"start": 0, "outputs": 0}
MaxPool = made_first("max_pool", NAMES, PRESETS)
MaxPoolGrad = made_first("max_pool_grad", NAMES, PRESETS)
MaxPoolRop = made_first("max_pool_rop", NAMES, PRESETS)


def max_pool_c01b(c01b, pool_shape, pool_stride=None, image_shape=None, start=0):
    return library("max_pool_c01b", c01b, pool_shape=list(pool_shape),
                   pool_stride=None if pool_stride is None else list(pool_stride))

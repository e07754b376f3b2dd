"""Convolutions of films, (examples, time, channels, rows, columns)."""
from . import conv3d as convolve
from ...core import as_tensor_variable, missing

ORDER = (0, 2, 1, 3, 4)


def conv3d(signals, filters, signals_shape=None, filters_shape=None, border_mode="valid"):
    signals, filters = [as_tensor_variable(x).dimshuffle(*ORDER) for x in (signals, filters)]
    shapes = [None if s is None else tuple(s[a] for a in ORDER) for s in (signals_shape, filters_shape)]
    if isinstance(border_mode, (tuple, list)) and len(set(border_mode)) == 1:
        border_mode = border_mode[0]
    return convolve(signals, filters, *shapes, border_mode=border_mode).dimshuffle(*ORDER)


__getattr__ = missing("theano.tensor.nnet.conv3d2d")

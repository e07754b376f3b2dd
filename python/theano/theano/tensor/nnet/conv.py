from . import conv2d  # noqa: F401


class ConvOp:
    def __init__(self, *unused, **also):
        raise NotImplementedError("ConvOp is not there; use theano.tensor.nnet.conv2d")

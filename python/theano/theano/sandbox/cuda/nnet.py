from ...tensor.nnet import softmax as GpuSoftmax  # noqa: F401

from ...core import Library, as_tensor_variable, missing


def gpu_contiguous(x):
    return as_tensor_variable(x)


def gpu_from_host(x):
    return Library("gpu_from_host")(as_tensor_variable(x))


def host_from_gpu(x):
    return Library("host_from_gpu")(as_tensor_variable(x))


as_cuda_ndarray_variable = as_tensor_variable
from ...tensor.basic import alloc as gpu_alloc, join as gpu_join, shape as gpu_shape  # noqa: E402,F401
__getattr__ = missing("theano.sandbox.cuda.basic_ops")

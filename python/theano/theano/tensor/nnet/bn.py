from ...core import Library, as_tensor_variable, attributes, library
from ..basic import promoted


def batch_normalization(inputs, gamma, beta, mean, std, mode="low_mem"):
    return library("batch_normalization", inputs, gamma, beta, mean, std)


def batch_normalization_train(inputs, gamma, beta, axes="per-activation", epsilon=1e-4, running_average_factor=0.1,
                              running_mean=None, running_var=None):
    more = [v for v in (running_mean, running_var) if v is not None]
    xs = promoted([as_tensor_variable(v) for v in [inputs, gamma, beta] + more])
    given = dict(axes=axes if isinstance(axes, str) else list(axes), epsilon=epsilon,
                 running_average_factor=running_average_factor)
    return tuple(Library("batch_normalization_train", attributes(given), 5)(*xs)[:3 + len(more)])


def batch_normalization_test(inputs, gamma, beta, mean, var, axes="per-activation", epsilon=1e-4):
    xs = promoted([as_tensor_variable(v) for v in (inputs, gamma, beta, mean, var)])
    if axes == "per-activation":
        axes = [0]
    elif axes == "spatial":
        axes = [0] + list(range(2, xs[0].ndim))
    return library("batch_normalization_test", *xs, axes=list(axes), epsilon=epsilon)

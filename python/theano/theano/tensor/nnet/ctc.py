"""Connectionist temporal classification."""
from ...core import as_tensor_variable, library, missing


def ctc_available():
    return True


def ctc(activations, labels, input_lengths):
    """The cost of each example; activations: (steps, examples, classes) before softmax, class 0 is the blank."""
    return library("ctc_loss", *[as_tensor_variable(x) for x in (activations, labels, input_lengths)])


__getattr__ = missing("theano.tensor.nnet.ctc")

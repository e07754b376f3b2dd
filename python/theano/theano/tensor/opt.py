from ..core import Library, as_tensor_variable, attributes, missing


class Assert:
    """Assert(message)(x, conditions...): x, and an error of the call where a condition has a zero."""

    def __init__(self, msg="Theano Assert failed!"):
        self.msg = msg

    def __call__(self, x, *conditions):
        return Library("assert_", attributes({"msg": self.msg}))(as_tensor_variable(x), *conditions)


assert_op = Assert()
__getattr__ = missing("theano.tensor.opt")

"""The wrappers of cuda-convnet's kernels.  Images are in the layout c01b; docs of the ops: docs/ops.md."""
from theano.core import as_tensor_variable, library


def made_first(op, names, defaults):
    """An op whose attributes are given before it is called with variables."""
    class Made:
        def __init__(self, *args, **given):
            if len(args) > len(names) or set(given) - set(names):
                raise TypeError("%s takes %s" % (op, ", ".join(names)))
            self.given = dict(defaults)
            self.given.update(zip(names, args))
            self.given.update(given)

        def __call__(self, *inputs):
            return self.apply(inputs, {k: v for k, v in self.given.items() if v is not None})

        def apply(self, inputs, given):
            return library(op, *[as_tensor_variable(x) for x in inputs], **given)
    Made.__name__ = op
    return Made

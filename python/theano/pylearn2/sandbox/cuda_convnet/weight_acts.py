from theano.tensor.basic import shape_vector
from . import made_first


class WeightActs(made_first("weight_acts", ["pad", "partial_sum", "stride"],
                            {"pad": 0, "partial_sum": None, "stride": 1})):
    """WeightActs(...)(images, gradients, output_shape): a list; partial sums are not among it"""

    def __call__(self, images, hid_grads, output_shape=None):
        more = [] if output_shape is None else [shape_vector(output_shape)]
        return [super().__call__(images, hid_grads, *more)]

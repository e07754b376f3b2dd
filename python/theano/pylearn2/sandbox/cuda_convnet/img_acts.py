from theano.tensor.basic import shape_vector
from . import made_first


class ImageActs(made_first("image_acts", ["pad", "partial_sum", "stride"],
                           {"pad": 0, "partial_sum": None, "stride": 1})):
    """ImageActs(...)(gradients, filters, output_shape)"""

    def __call__(self, hid_acts, filters, output_shape=None):
        more = [] if output_shape is None else [shape_vector(output_shape)]
        return super().__call__(hid_acts, filters, *more)

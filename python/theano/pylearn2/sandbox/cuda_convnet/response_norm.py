from theano.core import Library, attributes


class CrossMapNorm:
    """CrossMapNorm(size_f, add_scale, pow_scale, blocked)(images): the images, and the denominators"""

    def __init__(self, size_f, add_scale, pow_scale, blocked):
        self.given = dict(size_f=size_f, add_scale=float(add_scale), pow_scale=float(pow_scale), blocked=bool(blocked))

    def __call__(self, images):
        return Library("cross_map_norm", attributes(self.given), 2)(images)

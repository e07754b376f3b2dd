from ..sandbox.rng_mrg import Streams


class RandomStreams(Streams):
    """Theano's streams of NumPy's generator: the library's own, counter-based."""

    def __init__(self, seed=None):
        Streams.__init__(self, 12345 if seed is None else seed)

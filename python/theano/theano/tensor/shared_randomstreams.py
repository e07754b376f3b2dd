from ..sandbox.rng_mrg import MRG_RandomStreams


class RandomStreams(MRG_RandomStreams):
    """Theano's streams of NumPy's generator: the library's, like those of rng_mrg."""

    def __init__(self, seed=None):
        MRG_RandomStreams.__init__(self, 12345 if seed is None else seed)

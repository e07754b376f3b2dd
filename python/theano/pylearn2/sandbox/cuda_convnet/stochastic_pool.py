from theano.core import library
from theano.sandbox.rng_mrg import MRG_RandomStreams


class StochasticMaxPool:
    def __init__(self, ds, stride=None, start=0, outputs=0):
        self.given = dict(ds=ds, stride=stride or ds, start=start)
        self.random = MRG_RandomStreams()

    def __call__(self, images):
        return library("stochastic_max_pool", self.random._state, images, **self.given)


class WeightedMaxPool:
    def __init__(self, ds, stride=None, start=0, outputs=0):
        self.given = dict(ds=ds, stride=stride or ds, start=start)

    def __call__(self, images):
        return library("weighted_max_pool", images, **self.given)

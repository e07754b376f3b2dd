"""Streams of NumPy's random numbers: each random variable has a RandomState of its own, in a shared variable."""
import weakref

import numpy as np

from ..core import graph, leaf, missing
from ..sharedvar import CONSTRUCTORS, TensorSharedVariable
from .raw_random import WORDS, RandomStreamsBase, load, random_state_type, words_of


class RandomStateSharedVariable(TensorSharedVariable):
    """A shared variable whose value is a RandomState."""
    _borrowed = None  # what get_value(borrow=True) gives: the same object each time, with the state of now
    type = property(lambda self: random_state_type)

    def get_value(self, borrow=False, return_internal_type=False):
        words = np.asarray(self._shared.get(True))
        if not borrow:
            return load(np.random.RandomState(0), words)
        if self._borrowed is None:
            self._borrowed = Borrowed(self)
        if not np.array_equal(words_of(self._borrowed), words):
            load(self._borrowed, words)
        return self._borrowed

    def set_value(self, value, borrow=False):
        self._shared.set(self.type.filter(value))
        if value is not self._borrowed:
            self._borrowed = value if borrow and isinstance(value, np.random.RandomState) else None

    def __reduce__(self):
        return randomstate_constructor, (self.get_value(), self.name)

    def __deepcopy__(self, memo):
        return randomstate_constructor(self.get_value(), self.name)


class Borrowed(np.random.RandomState):
    """A new seed or state is that of the variable too."""

    def __init__(self, variable):
        self._variable = lambda: None
        np.random.RandomState.__init__(self, 0)
        self._variable = weakref.ref(variable)

    def seed(self, seed=None):
        np.random.RandomState.seed(self, seed)
        self._give_back()

    def set_state(self, state):
        np.random.RandomState.set_state(self, state)
        self._give_back()

    def _give_back(self):
        variable = self._variable()
        if variable is not None:
            variable.set_value(self)


def randomstate_constructor(value, name=None, strict=False, allow_downcast=None, borrow=False, **unused):
    """A shared variable of a RandomState."""
    g = graph()
    s = g.shared(g.free_name(name or "random_state"), words_of(value), [WORDS])
    v = leaf(RandomStateSharedVariable, g.shared_node(s), name)
    v._shared = s
    v._borrowed = value if borrow else None
    v.tag.is_rng = True
    return v


CONSTRUCTORS[np.random.RandomState] = randomstate_constructor


class RandomStreams(RandomStreamsBase):
    """Makes random variables, which numpy.random.RandomState(seed) gives their seeds."""

    def __init__(self, seed=None):
        self.state_updates = []
        self.default_instance_seed = seed
        self.gen_seedgen = np.random.RandomState(seed)

    def updates(self):
        return list(self.state_updates)

    def seed(self, seed=None):
        """New seeds for all random variables that were made."""
        seeds = np.random.RandomState(self.default_instance_seed if seed is None else seed)
        for old, _ in self.state_updates:
            old.set_value(np.random.RandomState(int(seeds.randint(2 ** 30))), borrow=True)

    def __getitem__(self, item):
        return item.get_value(borrow=True)

    def __setitem__(self, item, value):
        item.set_value(value)

    def gen(self, op, *args, **kwargs):
        """A random variable, drawn by a function of raw_random."""
        state = randomstate_constructor(np.random.RandomState(int(self.gen_seedgen.randint(2 ** 30))))
        after, out = op(state, *args, **kwargs)
        out.rng, out.update = state, (state, after)
        self.state_updates.append(out.update)
        state.default_update = after
        return out


__getattr__ = missing("theano.tensor.shared_randomstreams")

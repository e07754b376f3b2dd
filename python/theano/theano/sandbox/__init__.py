from . import cuda, rng_mrg  # noqa: F401

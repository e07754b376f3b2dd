from . import cuda, gpuarray, rng_mrg  # noqa: F401

from .pool import DownsampleFactorMax, max_pool_2d, max_pool_2d_same_size, pool_2d  # noqa: F401

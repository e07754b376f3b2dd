from . import conv, downsample, pool  # noqa: F401

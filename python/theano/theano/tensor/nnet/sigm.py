from . import hard_sigmoid, sigmoid, softplus, ultra_fast_sigmoid  # noqa: F401

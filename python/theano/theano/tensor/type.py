from ..core import TensorType  # noqa: F401

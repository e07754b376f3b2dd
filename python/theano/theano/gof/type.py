from ..core import Type  # noqa: F401

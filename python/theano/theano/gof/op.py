from ..core import Apply, Op  # noqa: F401

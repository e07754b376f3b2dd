from . import DebugMode  # noqa: F401

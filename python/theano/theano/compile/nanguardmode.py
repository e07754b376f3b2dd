from . import NanGuardMode  # noqa: F401

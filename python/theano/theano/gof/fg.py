from . import MissingInputError  # noqa: F401

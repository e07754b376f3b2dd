from ..sharedvar import SharedVariable, shared  # noqa: F401

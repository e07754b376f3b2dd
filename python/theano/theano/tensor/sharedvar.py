from ..sharedvar import ScalarSharedVariable, TensorSharedVariable, shared  # noqa: F401

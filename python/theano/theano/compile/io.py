from . import In, Out, Param, SymbolicInput, SymbolicOutput  # noqa: F401

from .basic import batched_dot, dot  # noqa: F401
_dot22 = dot

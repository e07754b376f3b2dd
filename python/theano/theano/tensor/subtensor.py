from .basic import inc_subtensor, set_subtensor, take  # noqa: F401

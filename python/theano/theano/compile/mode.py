from . import FAST_COMPILE, FAST_RUN, Mode, get_default_mode, get_mode  # noqa: F401
predefined_modes = {"FAST_RUN": FAST_RUN, "FAST_COMPILE": FAST_COMPILE}

from ..core import scratchpad  # noqa: F401


class undef:
    pass


def give_variables_names(variables):
    """Names all variables: those without one get a number."""
    for i, v in enumerate(variables):
        v.name = v.name or "var%d" % i
    return [v.name for v in variables]


def flatten(x):
    return [y for v in x for y in flatten(v)] if isinstance(x, (list, tuple, set)) else [x]

from ..core import Type


class NullType(Type):
    pass

from ..core import Elemwise  # noqa: F401
from .basic import DimShuffle  # noqa: F401

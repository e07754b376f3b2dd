"""Names that differed between Python 2 and 3."""
import sys
from collections import OrderedDict  # noqa: F401

PY3 = True
imap, izip, ifilter = map, zip, filter
sys.modules[__name__ + ".python2x"] = python2x = sys.modules[__name__]

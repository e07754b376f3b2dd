"""Starts PyCUDA; where it is not installed, pycuda_host stands in for it."""
import importlib.util
import sys

if importlib.util.find_spec("pycuda") is None:
    from . import pycuda_host
    sys.modules.update(pycuda_host.modules())
pycuda_available = True

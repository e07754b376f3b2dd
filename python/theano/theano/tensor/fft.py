"""Fourier transforms of real arrays: over all axes but the first; real and imaginary parts are a last axis of two."""
from ..core import library, missing


def checked(norm):
    if norm not in (None, "ortho", "no_norm"):
        raise ValueError("Invalid value %s for norm, must be None, 'ortho' or 'no norm'" % norm)
    return {} if norm is None else {"norm": norm}


def rfft(inp, norm=None):
    return library("rfft", inp, **checked(norm))


def irfft(inp, norm=None, is_odd=False):
    return library("irfft", inp, is_odd=bool(is_odd), **checked(norm))


__getattr__ = missing("theano.tensor.fft")

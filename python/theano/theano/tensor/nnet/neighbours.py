from ...core import library
from ..basic import shape_vector
from . import per_axis


def images2neibs(ten4, neib_shape, neib_step=None, mode="valid"):
    step = None if neib_step is None else per_axis(neib_step, 2)
    return library("images2neibs", ten4, neib_shape=per_axis(neib_shape, 2), neib_step=step, mode=mode)


def neibs2images(neibs, neib_shape, original_shape, mode="valid"):
    return library("neibs2images", neibs, shape_vector(neib_shape), shape_vector(original_shape), mode=mode)

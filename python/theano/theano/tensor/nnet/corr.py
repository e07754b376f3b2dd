"""CorrMM, CorrMM_gradWeights, CorrMM_gradInputs: correlations by matrix products, as ops made before the call."""
from ...core import library
from . import border, per_axis


def made_first(op, nd=2):
    class Corr:
        def __init__(self, border_mode="valid", subsample=(1,) * nd, filter_dilation=(1,) * nd, num_groups=1,
                     unshared=False, pad=None):
            if pad is not None:
                border_mode = pad
            self.given = dict(border_mode=border(border_mode, nd), subsample=per_axis(subsample, nd),
                              filter_dilation=per_axis(filter_dilation, nd), num_groups=num_groups,
                              unshared=bool(unshared))

        def __call__(self, a, b, shape=None):
            given = dict(self.given)
            if shape is None:
                return library(op, a, b, **given)
            from ..basic import shape_vector
            return library(op, a, b, shape_vector(shape), **given)
    return Corr


CorrMM = made_first("corrmm")
CorrMM_gradWeights = made_first("corrmm_grad_weights")
CorrMM_gradInputs = made_first("corrmm_grad_inputs")

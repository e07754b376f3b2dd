from ...core import missing
from ...tensor.basic import batched_dot as BatchedDotOp, batched_dot, dot as gpu_dot22  # noqa: F401
from ...tensor.nnet.corr import (CorrMM as GpuCorrMM, CorrMM_gradInputs as GpuCorrMM_gradInputs,  # noqa: F401
                                 CorrMM_gradWeights as GpuCorrMM_gradWeights)
__getattr__ = missing("theano.sandbox.cuda.blas")

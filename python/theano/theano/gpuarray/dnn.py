from ..sandbox.cuda.dnn import *  # noqa: F401,F403
from ..sandbox.cuda.dnn import dnn_available, dnn_conv, dnn_pool, version  # noqa: F401

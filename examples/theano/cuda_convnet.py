"""Sander Dieleman's listings: cuda-convnet's convolution and pooling in place of Theano's."""
import numpy
import theano
import theano.tensor as T
from theano.sandbox.cuda.basic_ops import gpu_contiguous
from theano.tensor.nnet import conv
from theano.tensor.signal import downsample
from pylearn2.sandbox.cuda_convnet.filter_acts import FilterActs
from pylearn2.sandbox.cuda_convnet.pool import MaxPool

input = T.tensor4('input')
filters = T.tensor4('filters')

out = conv.conv2d(input, filters, filter_shape=(16, 4, 3, 3), image_shape=(2, 4, 9, 9))
pooled = downsample.max_pool_2d(out, (2, 2), ignore_border=False)

# The same with the wrappers: the layout is c01b, and the filters are flipped.
conv_op = FilterActs(stride=1, partial_sum=1, pad=0)
input_shuffled = input.dimshuffle(1, 2, 3, 0)  # bc01 to c01b
filters_flipped = filters[:, :, ::-1, ::-1]
filters_shuffled = filters_flipped.dimshuffle(1, 2, 3, 0)
contiguous_input = gpu_contiguous(input_shuffled)
contiguous_filters = gpu_contiguous(filters_shuffled)
out_shuffled = conv_op(contiguous_input, contiguous_filters)
out_convnet = out_shuffled.dimshuffle(3, 0, 1, 2)  # c01b to bc01

pool_op = MaxPool(ds=2, stride=2)
pooled_convnet = pool_op(gpu_contiguous(out_shuffled)).dimshuffle(3, 0, 1, 2)

# A "full" convolution: pad with filter_size - 1 zeros.
full = T.nnet.conv2d(input, filters, border_mode='full')
full_convnet = FilterActs(pad=2, partial_sum=1)(contiguous_input, contiguous_filters).dimshuffle(3, 0, 1, 2)

rng = numpy.random.RandomState(3)
x = rng.rand(2, 4, 9, 9).astype(theano.config.floatX)
w = rng.rand(16, 4, 3, 3).astype(theano.config.floatX)
f = theano.function([input, filters], [out, out_convnet, pooled, pooled_convnet, full, full_convnet])
a, a2, b, b2, c, c2 = f(x, w)
assert numpy.allclose(a, a2) and numpy.allclose(b, b2) and numpy.allclose(c, c2)
print(a.shape, b.shape, c.shape)

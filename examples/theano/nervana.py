"""The listings of nervana_theano: its product and its convolution beside Theano's own."""
import numpy
import theano
import theano.tensor as T
from nervana_theano.gemm import nervana_dot
from nervana_theano.conv import nervana_conv

x, y = T.matrices('x', 'y')
prod_cublas = T.dot(x, y)
prod_nervana = nervana_dot(x, y)
# these should give the same result
f = theano.function([x, y], [prod_cublas, prod_nervana])
rng = numpy.random.RandomState(1)
a, b = f(rng.rand(5, 4).astype(theano.config.floatX), rng.rand(4, 3).astype(theano.config.floatX))
assert numpy.allclose(a, b)

x = T.tensor4('x')
w = T.tensor4('w')

border_mode = 'valid'  # or 'full', or...
strides = (1, 1)
# for nervana_conv this can also be a tuple of integers

conv_theano = T.nnet.conv.conv2d(x, w, border_mode=border_mode, subsample=strides)
conv_nervana = nervana_conv(x, w, padding=border_mode, strides=strides)

# or with manual shuffling:
x_shuffled = x.dimshuffle(1, 2, 3, 0)  # batch size last
w_shuffled = w.dimshuffle(1, 2, 3, 0)  # batch size last

conv_shuffled = nervana_conv(x_shuffled, w_shuffled, padding=border_mode, strides=strides, dimshuffle=False)

f = theano.function([x, w], [conv_theano, conv_nervana, conv_shuffled])
images = rng.rand(4, 3, 8, 8).astype(theano.config.floatX)
filters = rng.rand(6, 3, 3, 3).astype(theano.config.floatX)
flipped = filters[:, :, ::-1, ::-1]
# Theano convolves, nervana_conv correlates: the filters are flipped
assert numpy.allclose(f(images, filters)[0], f(images, flipped)[1])
assert numpy.allclose(f(images, flipped)[1], f(images, flipped)[2].transpose(3, 0, 1, 2))
print(f(images, filters)[0].shape)

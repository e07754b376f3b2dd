"""What the page on theano.sandbox.cuda.dnn names: convolution, its gradients, pooling, softmax."""
import numpy
import theano
import theano.tensor as T
from theano.sandbox.cuda import dnn

x, w = T.ftensor4('x'), T.ftensor4('w')
y = dnn.dnn_conv(x, w, border_mode='half', subsample=(1, 1), conv_mode='conv', algo='guess_once')
plain = T.nnet.conv2d(x, w, border_mode='half')
pooled = dnn.dnn_pool(y, (2, 2), stride=(2, 2), mode='average_exc_pad', pad=(1, 1))
soft = dnn.GpuDnnSoftmax('bc01', 'accurate', 'channel')(y)
cost = (y ** 2).sum()
gx, gw = T.grad(cost, [x, w])
by_hand = [dnn.dnn_gradinput(w, 2 * y, x.shape, 'half'), dnn.dnn_gradweight(x, 2 * y, w.shape, 'half')]

f = theano.function([x, w], [y, plain, pooled, soft, gx, gw] + by_hand)
rng = numpy.random.RandomState(7)
a, b, p, s, gx, gw, hx, hw = f(rng.rand(2, 3, 7, 7).astype('float32'), rng.rand(4, 3, 3, 3).astype('float32'))
assert numpy.allclose(a, b, rtol=1e-4) and numpy.allclose(s.sum(axis=1), 1, rtol=1e-5)
assert numpy.allclose(gx, hx, rtol=1e-3) and numpy.allclose(gw, hw, rtol=1e-3)
print(a.shape, p.shape)

volumes, filters = T.ftensor5('volumes'), T.ftensor5('filters')
g = theano.function([volumes, filters], dnn.dnn_conv3d(volumes, filters, border_mode=(1, 1, 1)))
print(g(rng.rand(2, 3, 4, 5, 6).astype('float32'), rng.rand(4, 3, 3, 3, 3).astype('float32')).shape)

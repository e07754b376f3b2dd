"""The LeNet of the Deep Learning Tutorials with cuda-convnet's wrappers, as Sander Dieleman changed it.

It learns to tell digits that are made up: MNIST need not be there."""
import numpy
import theano
import theano.tensor as T
from theano.sandbox.cuda.basic_ops import gpu_contiguous
from pylearn2.sandbox.cuda_convnet.filter_acts import FilterActs
from pylearn2.sandbox.cuda_convnet.pool import MaxPool


class LeNetConvPoolLayer(object):
    def __init__(self, rng, input, filter_shape, image_shape, poolsize=2):
        assert image_shape[1] == filter_shape[1]
        fan_in = numpy.prod(filter_shape[1:])
        fan_out = filter_shape[0] * numpy.prod(filter_shape[2:]) / poolsize ** 2
        W_bound = numpy.sqrt(6. / (fan_in + fan_out))
        self.W = theano.shared(numpy.asarray(rng.uniform(low=-W_bound, high=W_bound, size=filter_shape),
                                             dtype=theano.config.floatX), borrow=True)
        b_values = numpy.zeros((filter_shape[0],), dtype=theano.config.floatX)
        self.b = theano.shared(value=b_values, borrow=True)

        input_shuffled = input.dimshuffle(1, 2, 3, 0)  # bc01 to c01b
        filters_shuffled = self.W.dimshuffle(1, 2, 3, 0)  # bc01 to c01b
        conv_op = FilterActs(stride=1, partial_sum=1)
        conv_out_shuffled = conv_op(gpu_contiguous(input_shuffled), gpu_contiguous(filters_shuffled))
        pool_op = MaxPool(ds=poolsize, stride=poolsize)
        pooled_out_shuffled = pool_op(conv_out_shuffled)
        pooled_out = pooled_out_shuffled.dimshuffle(3, 0, 1, 2)  # c01b to bc01
        self.output = T.tanh(pooled_out + self.b.dimshuffle('x', 0, 'x', 'x'))
        self.params = [self.W, self.b]


rng = numpy.random.RandomState(23455)
batch, nkerns = 50, (32, 64)
patterns = rng.rand(10, 28, 28) > .7
labels = rng.randint(0, 10, 300)
images = (patterns[labels] * .8 + rng.rand(300, 28, 28) * .2).astype(theano.config.floatX)
train_x = theano.shared(images.reshape(300, 784), borrow=True)
train_y = T.cast(theano.shared(labels), 'int32')

index = T.lscalar()
x, y = T.matrix('x'), T.ivector('y')
layer0 = LeNetConvPoolLayer(rng, x.reshape((batch, 1, 28, 28)), (nkerns[0], 1, 5, 5), (batch, 1, 28, 28))
layer1 = LeNetConvPoolLayer(rng, layer0.output, (nkerns[1], nkerns[0], 5, 5), (batch, nkerns[0], 12, 12))
W2 = theano.shared(numpy.zeros((nkerns[1] * 4 * 4, 10), dtype=theano.config.floatX))
b2 = theano.shared(numpy.zeros(10, dtype=theano.config.floatX))
p = T.nnet.softmax(T.dot(layer1.output.flatten(2), W2) + b2)
cost = -T.mean(T.log(p)[T.arange(y.shape[0]), y])
params = layer0.params + layer1.params + [W2, b2]
updates = [(v, v - 0.05 * g) for v, g in zip(params, T.grad(cost, params))]
train = theano.function([index], [cost, T.mean(T.neq(T.argmax(p, axis=1), y))], updates=updates,
                        givens={x: train_x[index * batch:(index + 1) * batch],
                                y: train_y[index * batch:(index + 1) * batch]})
for epoch in range(3):
    results = [train(i) for i in range(6)]
    print('epoch %d, cost %f, error %f' % (epoch, numpy.mean([r[0] for r in results]), numpy.mean([r[1] for r in results])))
assert results[-1][1] < 0.1

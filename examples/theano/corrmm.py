"""From the discussion of Theano's convolution by matrix products: three ops that compute the same."""
import numpy
import theano
import theano.tensor as T
import theano.sandbox.cuda.blas

i, k = T.ftensor4('i'), T.ftensor4('k')
subsample = (1, 1)
rng = numpy.random.RandomState(5)
npy_img = rng.rand(3, 2, 8, 7).astype('float32')
npy_kern = rng.rand(4, 2, 3, 3).astype('float32')


def py_conv(img, kern):
    """A valid convolution, written out."""
    out = numpy.zeros((img.shape[0], kern.shape[0], img.shape[2] - 2, img.shape[3] - 2), 'float64')
    for r in range(3):
        for c in range(3):
            part = img[:, :, 2 - r:img.shape[2] - r, 2 - c:img.shape[3] - c]
            out += numpy.einsum('bcij,fc->bfij', part, kern[:, :, r, c])
    return out


cpuval = py_conv(npy_img, npy_kern)

op = theano.sandbox.cuda.blas.GpuCorrMM(border_mode='valid',
                                        subsample=subsample)(i, k)
f = theano.function([i, k], op)
gpuval1 = f(npy_img, npy_kern[:, :, ::-1, ::-1])

op = theano.sandbox.cuda.blas.GpuCorrMM_gradWeights(border_mode='valid',
                                                    subsample=subsample)(i, k)
f = theano.function([i, k], op)
gpuval2 = numpy.array(f(npy_img.transpose(1, 0, 2, 3),
                        npy_kern.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])).transpose(1, 0, 2, 3)

# cpuval, gpuval1 and gpuval2 are now approximately equal
assert numpy.allclose(cpuval, gpuval1, atol=1e-4) and numpy.allclose(cpuval, gpuval2, atol=1e-4)
print(gpuval1.shape)

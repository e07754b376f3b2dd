"""An op that a program defines with a CUDA kernel, from Theano's GPU tutorial; and one with two results, its exercise."""
import numpy
import theano
import theano.misc.pycuda_init
from pycuda.compiler import SourceModule
import theano.sandbox.cuda as cuda


class PyCUDADoubleOp(theano.Op):
    def __eq__(self, other):
        return type(self) == type(other)

    def __hash__(self):
        return hash(type(self))

    def __str__(self):
        return self.__class__.__name__

    def make_node(self, inp):
        inp = cuda.basic_ops.gpu_contiguous(
            cuda.basic_ops.as_cuda_ndarray_variable(inp))
        assert inp.dtype == "float32"
        return theano.Apply(self, [inp], [inp.type()])

    def make_thunk(self, node, storage_map, _, _2):
        mod = SourceModule("""
    __global__ void my_fct(float * i0, float * o0, int size) {
    int i = blockIdx.x*blockDim.x + threadIdx.x;
    if(i<size){
        o0[i] = i0[i]*2;
    }
  }""")
        pycuda_fct = mod.get_function("my_fct")
        inputs = [storage_map[v] for v in node.inputs]
        outputs = [storage_map[v] for v in node.outputs]

        def thunk():
            z = outputs[0]
            if z[0] is None or z[0].shape != inputs[0][0].shape:
                z[0] = cuda.CudaNdarray.zeros(inputs[0][0].shape)
            grid = (int(numpy.ceil(inputs[0][0].size / 512.)), 1)
            pycuda_fct(inputs[0][0], z[0], numpy.intc(inputs[0][0].size),
                       block=(512, 1, 1), grid=grid)
        return thunk


class SumAndDifference(theano.Op):
    def make_node(self, x, y):
        x, y = theano.tensor.as_tensor_variable(x), theano.tensor.as_tensor_variable(y)
        return theano.Apply(self, [x, y], [x.type(), x.type()])

    def perform(self, node, inputs, outputs):
        x, y = inputs
        outputs[0][0], outputs[1][0] = x + y, x - y

    def grad(self, inputs, grads):
        return [grads[0] + grads[1], grads[0] - grads[1]]


x = theano.tensor.fmatrix()
f = theano.function([x], PyCUDADoubleOp()(x))
xv = numpy.ones((4, 5), dtype="float32")
assert numpy.allclose(f(xv), xv * 2)
print(numpy.asarray(f(xv)))

y = theano.tensor.fmatrix()
both = SumAndDifference()(x, y)
g = theano.function([x, y], both + theano.grad((both[0] * both[1]).sum(), [x, y]))
s, d, gx, gy = g(xv * 3, xv)
assert numpy.allclose(s, 4) and numpy.allclose(d, 2) and numpy.allclose(gx, 6) and numpy.allclose(gy, -2)

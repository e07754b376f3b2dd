"""PyCUDA's own example from Theano's GPU tutorial.  Without PyCUDA its kernel runs on the processor."""
import theano.misc.pycuda_init  # noqa: F401
import pycuda.autoinit  # noqa: F401
import pycuda.driver as drv
import numpy
from pycuda.compiler import SourceModule

mod = SourceModule("""
__global__ void multiply_them(float *dest, float *a, float *b)
{
  const int i = threadIdx.x;
  dest[i] = a[i] * b[i];
}
""")

multiply_them = mod.get_function("multiply_them")

a = numpy.random.randn(400).astype(numpy.float32)
b = numpy.random.randn(400).astype(numpy.float32)

dest = numpy.zeros_like(a)
multiply_them(
    drv.Out(dest), drv.In(a), drv.In(b),
    block=(400, 1, 1), grid=(1, 1))

assert numpy.allclose(dest, a * b)
print(dest)

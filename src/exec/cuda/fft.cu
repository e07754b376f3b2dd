/* fft.cu: to = from, half a spectrum of real numbers, in which what must be its own conjugate is: of the
 * rest a transform of real numbers reads nothing.  T: the dtype; complex numbers are pairs. */
#include "exec/cuda/fft_args.h"
typedef mc_fft_args args;

extern "C" __global__ void __launch_bounds__(256) spectrum(const __grid_constant__ args a)
{
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.count; e += gridDim.x * 256ll) {
        const i64 k = e % a.half, row = e / a.half, j = row % a.inner[1], rest = row / a.inner[1],
                  i = rest % a.inner[0], batch = rest / a.inner[0];
        const i64 mirror = ((batch * a.inner[0] + (i ? a.inner[0] - i : 0)) * a.inner[1] +
                            (j ? a.inner[1] - j : 0)) *
                               a.half +
                           k;
        T re = a.from[2 * e], im = a.from[2 * e + 1];
        if (k == 0 || 2 * k == a.last) {
            re = (re + a.from[2 * mirror]) / 2;
            im = (im - a.from[2 * mirror + 1]) / 2;
        }
        a.to[2 * e] = re;
        a.to[2 * e + 1] = im;
    }
}

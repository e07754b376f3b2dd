/* cuda_test.h: what tests of GPUs share.  Libraries are looked for where TEST_CUDA_PATH says, which the
 * Makefile sets to where scripts/nvrtc.sh put NVRTC. */
#ifndef CUDA_TEST_H
#define CUDA_TEST_H

#include "check.h"
#include "device/cuda/cuda.h"

#include <stdlib.h>

/* A kernel for tests, of struct { float *p; long long n; }. */
#define TWICE "struct args { float *p; long long n; };\n" \
              "extern \"C\" __global__ void twice(struct args a)\n" \
              "{\n" \
              "    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n" \
              "    if (i < a.n) a.p[i] *= 2;\n" \
              "}\n"

static inline void cuda_test_path(void)
{
    const char *path = getenv("TEST_CUDA_PATH");
    if (path && !mc_flag_text(FLAG_cuda_path)[0]) {
        mc_flag_set("cuda.path", path);
    }
}

static inline bool nvrtc_here(void)
{
    cuda_test_path();
    return mc_nv_found(NV_NVRTC)->present;
}

static inline struct mc_cuda *gpu_here(void) /* NULL: there is none that can compile */
{
    return nvrtc_here() && mc_cuda_count() > 0 ? mc_cuda_start(0) : NULL;
}

/* Functions are for the GPU from here on, if there is one and its kernels can be compiled. */
static inline bool gpu_is_the_device(void)
{
    return nvrtc_here() && mc_cuda_count() > 0 && mc_flag_set("device", "cuda") == MC_OK;
}

#define ON_GPU()                                                                                   \
    do {                                                                                           \
        if (!gpu_is_the_device()) {                                                                \
            SKIP("no GPU");                                                                        \
        }                                                                                          \
    } while (0)
#define NEEDS_NVRTC                                                                                \
    do {                                                                                           \
        if (!nvrtc_here()) {                                                                       \
            SKIP("%s", mc_nv_found(NV_NVRTC)->why);                                                \
        }                                                                                          \
    } while (0)
#define NEEDS_GPU(d)                                                                               \
    struct mc_cuda *d = gpu_here();                                                                \
    do {                                                                                           \
        if (!d && mc_cuda_count() > 0 && nvrtc_here()) {                                           \
            CHECK(d, "%s", mc_last_error());                                                       \
            return;                                                                                \
        }                                                                                          \
        if (!d) {                                                                                  \
            SKIP("%d GPUs, NVRTC %s", mc_cuda_count(), nvrtc_here() ? "found" : "not found");      \
        }                                                                                          \
    } while (0)

#endif

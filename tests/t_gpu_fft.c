/* t_gpu_fft.c: Fourier transforms on a GPU against the reference: sizes with all kinds of factors, one to
 * three axes, both norms, gradients, inputs that are not contiguous or whose spectrum is not that of real
 * numbers.
 *
 * Invariant: the flag cuda.host is False: nothing runs on the host. */
#include "agree.h"
#include "cuda_test.h"
#include "sample.h"

static const char *const formulas[] = {
    "rfft(x)",
    "rfft(x, norm='ortho')",
    "rfft(x[1:])",
    "rfft(swapaxes(x, 0, -1))",
    "irfft(rfft(x))",
    "irfft(z)",
    "fft(z)",
    "ifft(z[1:], norm='ortho')",
    "grad(sum(fft(z) * z), z)",
    "irfft(z, norm='ortho', is_odd=True)",
    "irfft(z[1:], norm='no_norm')",
    "grad(sum(sqr(rfft(x))), x)",
    "grad(sum(sqr(irfft(z))), z)",
};

static void compare(mc_dtype d, int rank, const int64_t *dims)
{
    struct agree a = { .scale = 4096 };
    int64_t pairs[MC_MAX_RANK];
    memcpy(pairs, dims, (size_t)rank * sizeof *pairs);
    pairs[rank] = 2;
    agree_input(&a, "x", sample(d, rank, dims, -1, 1), 0);
    agree_input(&a, "z", sample(d, rank + 1, pairs, -1, 1), 0);
    for (size_t i = 0; i < NELEM(formulas); i++) {
        CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
    }
    const char *wrong = agree_in(&a, "FAST_RUN", 1);
    CHECK(!wrong, "%s, %lld x ... x %lld: %s", mc_dtype_name(d), (long long)dims[0],
          (long long)dims[rank - 1], wrong ? wrong : "");
    agree_free(&a);
}

TEST(gpu_fourier_transforms)
{
    static const struct { int rank; int64_t dims[4]; } sizes[] = {
        { 2, { 3, 2 } },  { 2, { 2, 16 } },    { 2, { 5, 15 } },      { 2, { 3, 37 } },
        { 3, { 2, 3, 4 } }, { 3, { 4, 8, 7 } }, { 4, { 2, 3, 4, 5 } }, { 4, { 3, 2, 5, 6 } },
    };
    ON_GPU();
    if (!mc_nv_found(NV_CUFFT)->present) {
        SKIP("%s", mc_nv_found(NV_CUFFT)->why);
    }
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(sizes); i++) {
        compare(i % 2 ? MC_FLOAT32 : MC_FLOAT64, sizes[i].rank, sizes[i].dims);
        compare(i % 2 ? MC_FLOAT64 : MC_FLOAT32, sizes[i].rank, sizes[i].dims);
    }
    mc_flag_set("cuda.host", "True");
}

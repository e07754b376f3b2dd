/* report.c: a report of NVIDIA's libraries and GPUs: versions, what is missing, and the effect of that.
 *
 * Invariant: the report opens the libraries and initialises the driver, but starts no GPU. */
#include "device/cuda/driver.h"

static void library(struct mc_str *out, enum mc_nv_lib l, const char *title)
{
    const struct mc_nv_found *f = mc_nv_found(l);
    if (f->present) {
        mc_str_addf(out, "%-11s %s at %s\n", title, f->version, f->file);
    } else {
        mc_str_addf(out, "%-11s none, so %s: %s\n", title, f->cost, f->why);
    }
}

static void gpu(struct mc_str *out, int i)
{
    struct mc_cuda_properties f;
    if (mc_cuda_properties(i, &f) < 0) {
        mc_str_addf(out, "cuda%-7d %s\n", i, mc_last_error());
        return;
    }
    mc_str_addf(out, "cuda%-7d %s, %.0f GiB, compute capability %d.%d, %d multiprocessors", i, f.name,
                (double)f.memory / (1 << 30), f.sm / 10, f.sm % 10, f.processors);
    if (f.sm < NV_OLDEST_SM) {
        mc_str_addf(out, ": too old, %d.%d is needed at least", NV_OLDEST_SM / 10, NV_OLDEST_SM % 10);
    }
    mc_str_add(out, "\n");
}

/* Without a GPU the other libraries are useless, so they are listed only if the flag cuda.path is set. */
void mc_cuda_report(struct mc_str *out)
{
    static const struct { enum mc_nv_lib lib; const char *title; } row[] = {
        { NV_NVRTC, "NVRTC" }, { NV_CUBLASLT, "cuBLASLt" }, { NV_CUDNN, "cuDNN" }, { NV_CUFFT, "cuFFT" },
        { NV_CUBLAS, "cuBLAS" }, { NV_CUSOLVER, "cuSOLVER" }, { NV_NCCL, "NCCL" },
    };
    const bool clean = mc_last_status() == MC_OK;
    const int n = mc_cuda_count();
    library(out, NV_DRIVER, "GPU driver");
    for (size_t i = 0; i < NELEM(row) && (n || mc_flag_text(FLAG_cuda_path)[0]); i++) {
        library(out, row[i].lib, row[i].title);
    }
    for (int i = 0; i < n; i++) {
        gpu(out, i);
    }
    if (!n && mc_nv_found(NV_DRIVER)->present &&
        mc_cuda_properties(0, &(struct mc_cuda_properties){ .sm = 0 }) < 0) {
        mc_str_addf(out, "GPU         none: %s\n", mc_last_error());
    }
    if (clean) {
        mc_clear_error();
    }
}

int mc_cuda_has(const char *library)
{
    static const struct {
        const char *name;
        enum mc_nv_lib lib;
    } rows[] = {
        { "cuda", NV_DRIVER }, { "nvrtc", NV_NVRTC }, { "cublaslt", NV_CUBLASLT }, { "cublas", NV_CUBLAS },
        { "cudnn", NV_CUDNN }, { "cufft", NV_CUFFT }, { "cusolver", NV_CUSOLVER }, { "nccl", NV_NCCL },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        if (strcmp(rows[i].name, library) == 0) {
            return mc_nv_found(rows[i].lib)->present;
        }
    }
    return -1;
}

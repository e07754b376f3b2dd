/* driver.h: what the files of this folder say to each other.
 *
 * Invariant: all that is mutable of a struct mc_cuda is changed under its lock, by who has entered it. */
#ifndef MC_CUDA_DRIVER_H
#define MC_CUDA_DRIVER_H

#include "device/cache.h"
#include "device/cuda/cuda.h"

enum {
#define CU(name, value) NV_##name = value,
#include "device/cuda/driver.def"
#undef CU
};

/* Volta; what NVRTC 12 compiles, a driver for CUDA 12 loads */
enum { NV_OLDEST_SM = 70, NV_OLDEST_DRIVER = 12000 };

/* ---- start.c ---- */
/* false: it is lost, or another process's.  Sets no error */
bool mc_cuda_usable(const struct mc_cuda *d);

/* ---- compiler.c ---- */
struct mc_cuda_compiler {
    char version[32];
    int sm[64], n;              /* what it compiles for, the oldest first */
};
/* found, and opened only if that is needed to know */
mc_status mc_cuda_compiler(struct mc_cuda_compiler *out);

/* ---- nvrtc.c ---- */
enum { NV_OPTIONS = 32 };
struct mc_cuda_job {            /* a text to compile */
    const char *source;
    char arch[40];              /* "--gpu-architecture=sm_90a" */
    bool portable;              /* NVRTC does not know the GPU: it gives PTX, which the driver finishes */
    char *words;                /* the user's options, cut up */
    const char *option[NV_OPTIONS];
    int n;
    struct mc_key key;
    struct mc_str image;        /* machine code */
    mc_status status;
    char why[2000];
};
mc_status mc_cuda_job_begin(struct mc_cuda_job *j, const char *source, const char *options, int sm);
mc_status mc_cuda_job_image(struct mc_cuda_job *j);       /* found on disk, or compiled */
mc_status mc_cuda_job_images(struct mc_cuda_job **job, int n); /* of all at once; at most MC_CUDA_TEXTS */
void mc_cuda_job_free(struct mc_cuda_job *j);
struct mc_cuda_code_stats mc_cuda_compiled(void);         /* but for from_memory */

/* ---- fault.c ---- */
/* The names of what was launched since the device was last known to be well, oldest first. */
enum { TRAIL = 8, TRAIL_NAME = 48 };
struct mc_cuda_launch_history {
    char name[TRAIL][TRAIL_NAME]; /* a ring: number i is at i % TRAIL */
    uint64_t n;
    /* the error after which nothing works on the device any more; "" while it is well */
    char broken[384];
};
void mc_cuda_launched(struct mc_cuda *d, const char *name);
/* MC_OK, or why the device can do nothing any more */
mc_status mc_cuda_synchronized_ok(const struct mc_cuda *d);

/* ---- memory.c ---- */
mc_status mc_cuda_pool_new(struct mc_cuda *d);            /* entered; d->pool */
/* entered; of a device that did not start after all */
void mc_cuda_pool_free(struct mc_cuda *d);
void mc_cuda_free_parked(struct mc_cuda *d);              /* what was given back while work was recorded */

#endif

/* driver.h: the interface among the files of this folder.
 *
 * Invariant: a struct mc_cuda is changed only under its lock, by the thread that has entered the device. */
#ifndef MC_CUDA_DRIVER_H
#define MC_CUDA_DRIVER_H

#include "device/cache.h"
#include "device/image.h"
#include "device/cuda/cuda.h"

enum {
#define CU(name, value) NV_##name = value,
#include "device/cuda/driver.def"
#undef CU
};

/* Volta; a driver for CUDA 12 loads what NVRTC 12 compiles */
enum { NV_OLDEST_SM = 70, NV_OLDEST_DRIVER = 12000 };

/* ---- start.c ---- */
/* false: the device is lost, or this process is a fork of the one that started it.  Sets no error. */
bool mc_cuda_usable(const struct mc_cuda *d);

/* ---- compiler.c ---- */
struct mc_cuda_compiler {
    char version[32];
    int sm[64], n;              /* supported compute capabilities, the oldest first */
};
/* opens NVRTC only if no valid note is on disk */
mc_status mc_cuda_compiler(struct mc_cuda_compiler *out);

/* ---- nvrtc.c ---- */
enum { NV_OPTIONS = 32 };
struct mc_cuda_job {            /* a text to compile */
    const char *source;
    char arch[40];              /* "--gpu-architecture=sm_90a" */
    bool portable;              /* NVRTC does not know the GPU: the image is PTX, which the driver compiles */
    bool bundled;               /* the image came with a bundle */
    char *words;                /* the options, split into words */
    const char *option[NV_OPTIONS];
    int n;
    struct mc_key key;
    struct mc_str image;        /* machine code or PTX */
    mc_status status;
    char why[2000];
};
/* takes the image of a bundle, if there is one */
mc_status mc_cuda_job_begin(struct mc_cuda_job *j, const char *source, const char *options, int sm);
const char *mc_cuda_job_arch(const struct mc_cuda_job *j); /* "sm_90a" */
mc_status mc_cuda_job_image(struct mc_cuda_job *j);       /* of a bundle, from disk, or compiled */
mc_status mc_cuda_job_images(struct mc_cuda_job **job, int n); /* in parallel; n at most MC_CUDA_TEXTS */
void mc_cuda_job_free(struct mc_cuda_job *j);
struct mc_cuda_code_stats mc_cuda_compiled(void);         /* all fields except from_memory */

/* ---- fault.c ---- */
/* Names of the launches since the last successful synchronization. */
enum { TRAIL = 8, TRAIL_NAME = 48 };
struct mc_cuda_launch_history {
    char name[TRAIL][TRAIL_NAME]; /* a ring buffer: launch i is at i % TRAIL */
    uint64_t n;
    /* the error that made the device unusable, or "" */
    char broken[384];
};
void mc_cuda_launched(struct mc_cuda *d, const char *name);
/* MC_OK, or an error: the device is lost */
mc_status mc_cuda_synchronized_ok(const struct mc_cuda *d);

/* ---- memory.c ---- */
mc_status mc_cuda_pool_new(struct mc_cuda *d);            /* makes d->pool; the context is current */
/* for a device that failed to start; the context is current */
void mc_cuda_pool_free(struct mc_cuda *d);
void mc_cuda_free_parked(struct mc_cuda *d);              /* releases blocks that were freed during capture */

#endif

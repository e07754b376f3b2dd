/* cuda.h: NVIDIA GPUs as devices.  Libraries are opened at run time; api.def is the one table of what is
 * used of each, so that building needs no header of theirs.
 *
 * Invariant: nothing of a GPU is touched before a program asks for one, and every failure is one clear
 * error after which the process is usable. */
#ifndef MC_CUDA_H
#define MC_CUDA_H

#include "device/cuda/args.h"
#include "device/device.h"

/* ---- open.c: the libraries ---- */
enum mc_nv_lib { NV_DRIVER, NV_NVRTC, NV_CUBLASLT, NV_CUDNN, NV_CUFFT, NV_LIBS };
struct mc_nv_found {
    const char *name;           /* "cuDNN" */
    bool tried, there;
    char version[32];           /* "9.19.0" */
    char file[256];             /* what was opened */
    char why[256];              /* it is not there */
    const char *cost;           /* what its lack costs: "convolutions run on kernels of our own" */
};
const struct mc_nv_found *mc_nv_found(enum mc_nv_lib l);      /* opens it the first time */
bool mc_nv_opened(enum mc_nv_lib l);                          /* has anybody asked yet?  Opens nothing */
mc_status mc_nv_need(enum mc_nv_lib l);                       /* an error that says why it is not there */
/* The functions: mc_nv.cuInit(0).  Valid once mc_nv_need said MC_OK. */
struct mc_nv {
#define NV(lib, ret, name, args) ret (*name) args;
#include "device/cuda/api.def"
#undef NV
};
extern struct mc_nv mc_nv;

/* ---- start.c: a GPU, started once a process and kept ---- */
struct mc_cuda {
    struct mc_device device;    /* as code that knows of no GPU sees it */
    char id[16];                /* "cuda0" */
    char name[96];              /* "NVIDIA H200" */
    int sm;                     /* 90: compute capability 9.0 */
    int processors;             /* multiprocessors */
    size_t shared;              /* bytes of shared memory a block may ask for */
    unsigned together;          /* blocks that can reach each other's shared memory; 1: none */
    void *context, *stream;     /* CUcontext, CUstream: all work of the device is on this stream, in order */
    struct mc_space space;      /* its memory, as arrays know it */
    pthread_mutex_t lock;       /* recursive; held by mc_cuda_enter */
    long pid;                   /* of the process that started it: a forked child gets an error */
    void *blas, *dnn;           /* handles of cuBLASLt and cuDNN, made on first use by those who use them */
    struct mc_cuda_pool *pool;
    struct mc_cuda_staging_buffer *stage; /* NULL until several large transfers */
    size_t plain;               /* bytes that went without it */
    struct mc_cuda_launch_history *trail;
    bool recording;             /* between mc_cuda_capture_begin and mc_cuda_capture_end */
    bool apart;                 /* what is recorded next does not follow one node alone */
};
struct mc_cuda_properties {          /* of a GPU that need not be started */
    char name[96];
    int sm, processors;
    size_t memory;
};
int mc_cuda_count(void);                                      /* GPUs there are; 0 without a driver */
mc_status mc_cuda_properties(int ordinal, struct mc_cuda_properties *out);
/* "cpu" gives -1, "cuda" 0, "cuda3" 3; anything else is an error.  Opens nothing. */
mc_status mc_cuda_parse(const char *device, int *ordinal);
struct mc_cuda *mc_cuda_start(int ordinal);                   /* NULL: the error says what is missing */
enum { MC_CUDA_MOST = MC_DEVICE_MOST };                       /* GPUs of one process */
struct mc_cuda *mc_cuda_running(int ordinal);                 /* the same if it has been started, else NULL */
/* locks it for this thread and makes its context current; nests */
mc_status mc_cuda_enter(struct mc_cuda *d);
void mc_cuda_leave(struct mc_cuda *d);
/* the one this thread entered last; NULL: none */
struct mc_cuda *mc_cuda_current(void);
/* until all work is done; errors that surface late surface here */
mc_status mc_cuda_wait(struct mc_cuda *d);

/* ---- fault.c: the driver's errors as ours ---- */
/* MC_OK, or the driver's error with what was being done: "cuda0: launch of k3_map: an illegal memory access
 * was encountered".  An error that surfaced late names the launches it may come from; one after which a
 * device is lost is told again by every mc_cuda_enter. */
mc_status mc_cuda_check(struct mc_cuda *d, int code, const char *what, const char *name);
/* CUDA_LAUNCH_BLOCKING=1 or the flag cuda.blocking: each launch waits */
bool mc_cuda_blocking(void);
bool mc_cuda_lost(const struct mc_cuda *d);                   /* nothing works on it any more */

/* ---- memory.c: stream-ordered, pooled; who holds what is known, for the message when there is no more
 * ---- */
/* 256-byte aligned; NULL: MC_EMEMORY names bytes, free bytes, holders */
void *mc_cuda_alloc(struct mc_cuda *d, size_t bytes, const char *what);
void mc_cuda_free(struct mc_cuda *d, void *p);                /* NULL does nothing */
size_t mc_cuda_held(const struct mc_cuda *d);                 /* bytes handed out */
/* contiguous, in the device's memory, not cleared */
mc_array *mc_cuda_array(struct mc_cuda *d, mc_dtype t, int rank, const int64_t *dims);

/* An array in the host's memory that transfers reach at full speed; its memory is used again once it is let
 * go.  NULL with no error: there is enough of that out already, or n is too small to matter. */
mc_array *mc_cuda_pinned_array(struct mc_cuda *d, mc_dtype t, int rank, const int64_t *dims);

/* ---- staging.c: between the host and the device ---- */
/* here may change afterwards */
mc_status mc_cuda_copy_to_device(struct mc_cuda *d, void *there, const void *here, size_t n);
/* waits for all work before it */
mc_status mc_cuda_copy_to_host(struct mc_cuda *d, void *here, const void *there, size_t n);
/* the same into an array of mc_cuda_pinned_array */
mc_status mc_cuda_get_pinned(struct mc_cuda *d, void *here, const void *there, size_t n);
mc_status mc_cuda_copy(struct mc_cuda *d, void *to, const void *from, size_t n);
mc_status mc_cuda_clear(struct mc_cuda *d, void *p, size_t n);

/* ---- nvrtc.c, code.c: CUDA C text to machine code, cached on disk; that to kernels ---- */
/* one a text and device, shared by all who ask */
struct mc_cuda_code;
/* NULL: the compiler's message */
struct mc_cuda_code *mc_cuda_code_load(struct mc_cuda *d, const char *source, const char *options);
enum { MC_CUDA_TEXTS = 9 };                                   /* compiled at once */
#define MC_CUDA_OPTIONS "--disable-warnings"                  /* for texts of our own */
/* all or none */
mc_status mc_cuda_code_load_all(struct mc_cuda *d, int n, const char *const *source, const char *options,
                                struct mc_cuda_code **out);
/* CUfunction; NULL: there is none, no error set */
void *mc_cuda_code_kernel(struct mc_cuda_code *c, const char *name);
void mc_cuda_code_free(struct mc_cuda_code *c);
/* Compiles only: the machine code's size, for tests where there is no GPU. */
mc_status mc_cuda_compile_only(const char *source, const char *options, int sm, size_t *bytes);
struct mc_cuda_code_stats { int64_t compiled, from_memory, from_disk; double seconds; };
struct mc_cuda_code_stats mc_cuda_code_stats(void);

/* ---- launch.c ---- */
struct mc_grid {
    unsigned blocks[3], threads[3];
    size_t shared;
    /* blocks along y that run at the same time and reach each other's shared memory, d->together at most;
     * 0 is 1 */
    unsigned together;
    bool maps;                  /* the parameter has a mc_cuda_tensor_map, and is put where those may lie */
};
/* args: one struct, the kernel's only parameter.  A grid without blocks launches nothing. */
mc_status mc_cuda_launch(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                         const void *args, size_t nargs);
/* The same for a kernel that begins with griddepcontrol.wait, where GPUs know that (9.0 and later): its
 * blocks may be set up while the kernel before it ends. */
mc_status mc_cuda_launch_dependent(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                         const void *args, size_t nargs);
/* Events, for times on the device. */
void *mc_cuda_event_record(struct mc_cuda *d);                        /* NULL: failed */
double mc_cuda_event_seconds(struct mc_cuda *d, void *from, void *to); /* seconds, waits; frees both; < 0: failed */

/* ---- tensor_map.c: arrays as the copy engine of Hopper's multiprocessors knows them ---- */
enum { MC_CUDA_MAP_RANK = 5, MC_CUDA_ROW = 128 };
struct mc_cuda_tensor_map_spec {          /* innermost axis first, whose elements lie side by side */
    mc_dtype dtype;             /* float32 becomes TF32 on the way, rounded to nearest */
    int rank;
    int64_t size[MC_CUDA_MAP_RANK], stride[MC_CUDA_MAP_RANK];  /* in elements; stride[0] is 1 */
    /* elements that are brought, and how far apart: box[0] makes a row of 128 bytes */
    int box[MC_CUDA_MAP_RANK], step[MC_CUDA_MAP_RANK];
};
bool mc_cuda_has_tensor_map(void);                                      /* does the driver know them? */
/* array: aligned to 16 bytes, as strides are */
mc_status mc_cuda_tensor_map(struct mc_cuda_tensor_map *m, const struct mc_cuda_tensor_map_spec *b, const void *array);

/* ---- replay.c: work captured once and launched whole ---- */
/* From here on work on d->stream is recorded, not done, until mc_cuda_capture_end; the device stays entered. */
mc_status mc_cuda_capture_begin(struct mc_cuda *d);
/* ends it; NULL with an error if something could not be recorded */
mc_status mc_cuda_capture_end(struct mc_cuda *d, void **graph);
/* What is recorded next follows these nodes alone, not what was recorded last; and the nodes that it would
 * follow: at most `most` are stored, and how many there are is told. */
bool mc_cuda_can_fork_capture(void);                                     /* can that be asked? */
mc_status mc_cuda_capture_set_dependencies(struct mc_cuda *d, void **node, int n);
mc_status mc_cuda_capture_get_dependencies(struct mc_cuda *d, int most, void **node, int *n);
mc_status mc_cuda_replay(struct mc_cuda *d, void *graph);
void mc_cuda_graph_free(struct mc_cuda *d, void *graph);

/* ---- report.c ---- */
/* libraries, GPUs, and what is missing: for `monochord info` */
void mc_cuda_report(struct mc_str *out);

#endif

/* cuda.h: NVIDIA GPUs as devices.  Libraries are opened at run time.  api.def lists the functions used, so
 * that building needs no header of NVIDIA's.
 *
 * Invariant: no GPU is touched before a program requests one.  Every failure is one error message, after
 * which the process can go on. */
#ifndef MC_CUDA_H
#define MC_CUDA_H

#include "device/cuda/args.h"
#include "device/device.h"
#include "device/image.h"

/* ---- open.c: the libraries ---- */
enum mc_nv_lib {
    NV_DRIVER, NV_NVRTC, NV_CUBLASLT, NV_CUDNN, NV_CUFFT, NV_CUBLAS, NV_CUSOLVER, NV_NCCL, NV_LIBS
};
struct mc_nv_found {
    const char *name;           /* "cuDNN" */
    bool tried, present;
    char version[32];           /* "9.19.0" */
    char file[256];             /* path of the opened file */
    char why[256];              /* why it cannot be used */
    const char *cost;           /* effect of its absence: "convolutions run on kernels of our own" */
};
const struct mc_nv_found *mc_nv_found(enum mc_nv_lib l);      /* opens the library the first time */
bool mc_nv_opened(enum mc_nv_lib l);                          /* was it tried before?  Opens nothing */
mc_status mc_nv_need(enum mc_nv_lib l);                       /* opens it; the error gives the reason */
struct mc_nccl_id { char bytes[128]; }; /* ncclUniqueId: what ranks that belong together have */
/* The functions: mc_nv.cuInit(0).  Valid once mc_nv_need returned MC_OK for their library. */
struct mc_nv {
#define NV(lib, ret, name, args) ret (*name) args;
#include "device/cuda/api.def"
#undef NV
};
extern struct mc_nv mc_nv;

/* ---- start.c: a GPU is started once a process and kept ---- */
struct mc_cuda {
    struct mc_device device;    /* the generic device; must be first */
    char id[16];                /* "cuda0" */
    char name[96];              /* "NVIDIA H200" */
    int sm;                     /* 90: compute capability 9.0 */
    int processors;             /* multiprocessors */
    size_t shared;              /* most bytes of shared memory of a block */
    unsigned together;          /* most blocks of a cluster; 1: no clusters */
    bool cooperative;           /* it can run all blocks of a launch at the same time */
    void *context, *stream;     /* CUcontext, CUstream: all work of the device is on this stream, in order */
    struct mc_space space;      /* its memory space */
    pthread_mutex_t lock;       /* recursive; held by mc_cuda_enter */
    long pid;                   /* of the process that started it: a forked child gets an error */
    /* handles of cuBLASLt, cuDNN, cuSOLVER, with its options, and cuBLAS, made by their solvers on first
     * use */
    void *blas, *dnn, *solver, *solver_options, *triangular;
    struct mc_cuda_pool *pool;
    struct mc_cuda_staging_buffer *stage; /* NULL until several large transfers */
    size_t plain;               /* bytes transferred without the staging buffer */
    struct mc_cuda_launch_history *trail;
    bool recording;             /* between mc_cuda_capture_begin and mc_cuda_capture_end */
    bool branches;                 /* the next recorded launch does not depend on exactly one node */
    void *mark;                 /* the event of the capture in progress; NULL: it has none yet */
    /* the stream and the pinned page of mc_cuda_fetch_at_mark; NULL until needed */
    void *fetch_stream, *page;
};
struct mc_cuda_properties {     /* of a GPU, which need not be started */
    char name[96];
    int sm, processors;
    size_t memory;
};
int mc_cuda_count(void);                                      /* number of GPUs; 0 without a driver */
mc_status mc_cuda_properties(int ordinal, struct mc_cuda_properties *out);
/* "cpu" gives -1, "cuda" 0, "cuda3" 3; anything else is an error.  Opens nothing. */
mc_status mc_cuda_parse(const char *device, int *ordinal);
struct mc_cuda *mc_cuda_start(int ordinal);                   /* NULL: error set */
enum { MC_CUDA_MOST = MC_DEVICE_MOST };                       /* most GPUs of one process */
struct mc_cuda *mc_cuda_running(int ordinal);                 /* the device if it was started, else NULL */
/* locks the device for this thread and makes its context current; nests */
mc_status mc_cuda_enter(struct mc_cuda *d);
void mc_cuda_leave(struct mc_cuda *d);
/* the one this thread entered last; NULL: none */
struct mc_cuda *mc_cuda_current(void);
/* waits until all work is done; returns errors of asynchronous work */
mc_status mc_cuda_wait(struct mc_cuda *d);

/* ---- fault.c: error messages for the driver's codes ---- */
/* MC_OK, or an error that names the action: "cuda0: launch of k3_map: an illegal memory access was
 * encountered".  An error of asynchronous work lists the launches that may have caused it.  After an error
 * that makes the device unusable every mc_cuda_enter fails with it. */
mc_status mc_cuda_check(struct mc_cuda *d, int code, const char *what, const char *name);
/* CUDA_LAUNCH_BLOCKING=1 or the flag cuda.blocking: each launch waits */
bool mc_cuda_blocking(void);
bool mc_cuda_lost(const struct mc_cuda *d);                   /* an earlier error made it unusable */
/* of any thread, also while another waits for the GPU */
void mc_cuda_lose(struct mc_cuda *d, const char *why);        /* as such an error does */
bool mc_cuda_works(const struct mc_cuda *d);                  /* something on the stream is not done */

/* ---- memory.c: stream-ordered memory from a pool.  The purpose of each block is recorded for the message
 * when memory runs out ---- */
/* 256-byte aligned; `what` is the purpose.  NULL: the error gives bytes, free bytes and the largest
 * holders */
void *mc_cuda_alloc(struct mc_cuda *d, size_t bytes, const char *what);
/* the same that GPUs of other ranks can map; NCCL is there and has the functions */
void *mc_cuda_alloc_shared(struct mc_cuda *d, size_t bytes, const char *what);
void mc_cuda_free(struct mc_cuda *d, void *p);                /* NULL does nothing */
size_t mc_cuda_held(const struct mc_cuda *d);                 /* bytes allocated and not freed */
/* contiguous, in the device's memory, not cleared */
mc_array *mc_cuda_array(struct mc_cuda *d, mc_dtype t, int rank, const int64_t *dims);

/* An array in pinned memory, which transfers reach at full speed.  Its block is reused after it is freed.
 * NULL: the limit is reached, or the array is too small or too large; not an error. */
mc_array *mc_cuda_pinned_array(struct mc_cuda *d, mc_dtype t, int rank, const int64_t *dims);

/* ---- staging.c: between the host and the device ---- */
/* `host` may be changed after the return */
mc_status mc_cuda_copy_to_device(struct mc_cuda *d, void *to, const void *host, size_t n);
/* waits for all earlier work */
mc_status mc_cuda_copy_to_host(struct mc_cuda *d, void *host, const void *from, size_t n);
/* the same, into an array of mc_cuda_pinned_array */
mc_status mc_cuda_get_pinned(struct mc_cuda *d, void *host, const void *from, size_t n);
mc_status mc_cuda_copy(struct mc_cuda *d, void *to, const void *from, size_t n);
mc_status mc_cuda_clear(struct mc_cuda *d, void *p, size_t n);

/* ---- nvrtc.c, code.c: CUDA C text to machine code, which a bundle or the cache on disk may have, and
 * machine code to kernels ---- */
/* counted: one for each text and device */
struct mc_cuda_code;
/* NULL: error set, with the compiler's message */
struct mc_cuda_code *mc_cuda_code_load(struct mc_cuda *d, const char *source, const char *options);
enum { MC_CUDA_ARCHS = 16 };                                  /* most architectures of a bundle */
enum { MC_CUDA_TEXTS = 9 };                                   /* most texts of mc_cuda_code_load_all */
#define MC_CUDA_OPTIONS "--disable-warnings"                  /* for texts of our own */
/* loads all texts or, on an error, none */
mc_status mc_cuda_code_load_all(struct mc_cuda *d, int n, const char *const *source, const char *options,
                                struct mc_cuda_code **out);
/* a CUfunction; NULL: no such kernel, or the device cannot be entered (then an error is set) */
void *mc_cuda_code_kernel(struct mc_cuda_code *c, const char *name);
void mc_cuda_code_free(struct mc_cuda_code *c);
struct mc_cuda_input { const char *source, *options; };
struct mc_cuda_input mc_cuda_code_input(const struct mc_cuda_code *c); /* what it was compiled from */
/* Compiles without loading, for tests without a GPU.  *bytes: size of the machine code. */
mc_status mc_cuda_compile_only(const char *source, const char *options, int sm, size_t *bytes);
struct mc_cuda_code_stats { int64_t compiled, from_memory, from_disk, from_bundle; double seconds; };
struct mc_cuda_code_stats mc_cuda_code_stats(void);

/* ---- images.c ---- */
/* how well a GPU of that compute capability runs an image for "sm_90a"; 0: not at all */
int mc_cuda_arch_rank(const char *arch, int sm);
/* Adds images of texts to the list, if it has none, for architectures such as "sm_90,sm_80,native"; NULL:
 * native, that of the compute capability `native`. */
mc_status mc_cuda_images(int native, size_t n, const struct mc_cuda_input *in, const char *archs,
                         struct mc_images *list);
/* MC_EFORMAT: it ends too early */
mc_status mc_cuda_image_check(const struct mc_str *image);

/* ---- launch.c ---- */
struct mc_grid {
    unsigned blocks[3], threads[3];
    size_t shared;
    /* size of a cluster along y, at most d->together; 0 is 1 */
    unsigned together;
    bool all_at_once;           /* all blocks run at the same time, or the launch fails */
    bool maps;                  /* args hold a mc_cuda_tensor_map, which the driver must align to 64 bytes */
};
/* args: one struct, the kernel's only parameter.  An empty grid launches nothing. */
mc_status mc_cuda_launch(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                         const void *args, size_t nargs);
/* The same for a kernel that begins with griddepcontrol.wait.  On compute capability 9.0 and later its blocks
 * may start while the previous kernel ends. */
mc_status mc_cuda_launch_dependent(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                         const void *args, size_t nargs);
/* Events, for times on the device. */
void *mc_cuda_event_record(struct mc_cuda *d);                        /* NULL: failed */
double mc_cuda_event_seconds(struct mc_cuda *d, void *from, void *to); /* waits; frees both; < 0: failed */

/* ---- tensor_map.c: tensor maps for the copy engine of Hopper's multiprocessors (TMA) ---- */
enum { MC_CUDA_MAP_RANK = 5 };
struct mc_cuda_tensor_map_spec {          /* axes from the innermost, which is contiguous */
    mc_dtype dtype;             /* the copy rounds float32 to TF32, to nearest */
    int rank;
    int64_t size[MC_CUDA_MAP_RANK], stride[MC_CUDA_MAP_RANK];  /* in elements; stride[0] is 1 */
    /* elements of a box along each axis, and their distance; box[0] elements are 128, 64 or 32
     * bytes, the width of the swizzle */
    int box[MC_CUDA_MAP_RANK], step[MC_CUDA_MAP_RANK];
};
bool mc_cuda_has_tensor_map(void);                            /* does the driver support tensor maps? */
/* The array and its strides are aligned to 16 bytes. */
mc_status mc_cuda_tensor_map(struct mc_cuda_tensor_map *m, const struct mc_cuda_tensor_map_spec *b,
                             const void *array);

/* ---- replay.c: capture and replay ---- */
/* Work on d->stream is recorded and not run until mc_cuda_capture_end.  The device stays entered between. */
mc_status mc_cuda_capture_begin(struct mc_cuda *d);
/* Ends the capture.  *graph is NULL after an error. */
mc_status mc_cuda_capture_end(struct mc_cuda *d, void **graph);
/* Dependencies of the next recorded launch: set replaces them by these nodes, get stores at most `most` of
 * them and sets *n to their number. */
bool mc_cuda_can_fork_capture(void);                          /* does the driver support set and get? */
mc_status mc_cuda_capture_set_dependencies(struct mc_cuda *d, void **node, int n);
mc_status mc_cuda_capture_get_dependencies(struct mc_cuda *d, int most, void **node, int *n);
/* Marks a point of the capture: what the next recorded launch waits for, of at most 32 nodes.  No launch
 * waits for the mark.  At most one in a capture. */
bool mc_cuda_can_mark_capture(void);                          /* does the driver support marks? */
mc_status mc_cuda_capture_mark(struct mc_cuda *d);
mc_status mc_cuda_replay(struct mc_cuda *d, void *graph);
bool mc_cuda_graph_has_mark(const void *graph);
/* Copies to the host as soon as the last replay of the graph has passed its mark, and waits for no more than
 * that.  host: of mc_cuda_pinned_array, or all copies together fit into MC_CUDA_PAGE bytes. */
enum { MC_CUDA_PAGE = 32 << 10 };
struct mc_cuda_fetch { void *host; const void *from; size_t bytes; bool pinned; };
mc_status mc_cuda_fetch_at_mark(struct mc_cuda *d, const void *graph, int n, const struct mc_cuda_fetch *at);
void mc_cuda_graph_free(struct mc_cuda *d, void *graph);

/* ---- report.c ---- */
/* text for `monochord info`: libraries, GPUs, and what is missing */
void mc_cuda_report(struct mc_str *out);
int mc_cuda_has(const char *library); /* can it be opened?  -1: no such name */

#endif

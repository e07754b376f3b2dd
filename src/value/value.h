/* value.h: dtypes and arrays.  dtypes.def is the table of dtypes. */
#ifndef MC_VALUE_H
#define MC_VALUE_H

#include "base/base.h"

/* ---- dtype.c ---- */
enum mc_kind { KIND_BOOL, KIND_INT, KIND_UINT, KIND_FLOAT };
/* The class in which reference code computes a dtype: integers as 64 bits, halves as float. */
enum mc_class { CLASS_I64, CLASS_U64, CLASS_F32, CLASS_F64, MC_NCLASS };
struct mc_dtype_row {
    char name[9];      /* names are not pointers, which the loader would relocate */
    uint8_t size;
    enum mc_kind kind;
    enum mc_class cls;
    char npy[3];       /* "<f4" without the order mark: "f4" */
    char tensors[5];   /* in a .safetensors file: "F32" */
    char c[19];        /* how kernels spell it: "float" */
    double eps;        /* spacing at one; 0 for integers */
    uint8_t dl_code;   /* DLPack's type code */
};
extern const struct mc_dtype_row mc_dtypes[MC_NDTYPE];
static inline bool mc_is_float(mc_dtype d) { return mc_dtypes[d].kind == KIND_FLOAT; }
static inline bool mc_is_int(mc_dtype d)
{
    return mc_dtypes[d].kind == KIND_INT || mc_dtypes[d].kind == KIND_UINT;
}
mc_dtype mc_dtype_floatX(void);
/* the result dtype of exp: d if it is a float; float32 for integers of at most 16 bits; else float64 */
mc_dtype mc_dtype_to_float(mc_dtype d);
uint16_t mc_f32_to_f16(float x);
float    mc_f16_to_f32(uint16_t h);
uint16_t mc_f32_to_bf16(float x);
static inline float mc_bf16_to_f32(uint16_t h)
{
    union { uint32_t u; float f; } v = { .u = (uint32_t)h << 16 };
    return v.f;
}
/* Load one element as the widest type of its class; store one with the wrap or rounding of the dtype. */
double   mc_load_f64(mc_dtype d, const void *p);
int64_t  mc_load_i64(mc_dtype d, const void *p);
void     mc_store_f64(mc_dtype d, void *p, double v);
void     mc_store_i64(mc_dtype d, void *p, int64_t v);
/* Converts n strided elements like a C cast, but every value is defined: to bool is != 0; a float out of an
 * integer's range becomes the nearest end of the range, NaN becomes 0. */
void mc_convert(mc_dtype dd, void *dst, int64_t dstride, mc_dtype sd, const void *src, int64_t sstride,
                int64_t n);

/* ---- array.c ---- */
/* memory that the host cannot address; on failure every function but release sets the error */
struct mc_space {
    const char *name;            /* "cuda0" */
    void *device;                /* argument of the functions */
    /* may return before the copy is done to `dev`; `host` may be changed after the return */
    mc_status (*put)(const struct mc_space *s, void *dev, const void *host, size_t n);
    /* waits for the copy */
    mc_status (*get)(const struct mc_space *s, void *host, const void *dev, size_t n);
    /* both in this space, not overlapping */
    mc_status (*copy)(const struct mc_space *s, void *to, const void *from, size_t n);
    void (*release)(const struct mc_space *s, void *p);
    /* Of n int64 numbers in this space: the largest, -1 of none, and whether one is negative; how often each
     * of 0 ... bins - 1 occurs, times weight, as an array on the host.  NULL: the numbers must be copied to
     * the host. */
    mc_status (*largest)(const struct mc_space *s, const int64_t *x, int64_t n, int64_t *most,
                         bool *negative);
    mc_status (*counts)(const struct mc_space *s, const int64_t *x, int64_t n, int64_t weight, int64_t bins,
                        int64_t *host);
};
struct mc_storage {
    _Atomic int refs;
    void *data;
    size_t bytes;
    const struct mc_space *space; /* the space that data belongs to; NULL: the host */
    void (*release)(void *arg);  /* NULL: that of the space, or mc_free_pages(data) */
    void *arg;
};
struct mc_array {
    _Atomic int refs;
    mc_dtype dtype;
    int rank;
    int64_t dims[MC_MAX_RANK];
    int64_t strides[MC_MAX_RANK]; /* bytes */
    char *data;
    struct mc_storage *storage;
};
/* not cleared; NaN-poisoned if MC_POISON */
mc_array *mc_array_empty(mc_dtype d, int rank, const int64_t *dims);
/* An array in a memory space, always contiguous.  It owns data and frees it with space->release.  After a
 * failure (NULL) data still belongs to the caller. */
mc_array *mc_array_on_device(const struct mc_space *space, mc_dtype d, int rank, const int64_t *dims,
                             void *data);
static inline const struct mc_space *mc_array_space(const mc_array *a) { return a->storage->space; }
mc_array *mc_array_view(const mc_array *a, int rank, const int64_t *dims, const int64_t *strides, char *data);
/* product; -1 on overflow or if a size is negative */
int64_t   mc_dims_count(int rank, const int64_t *dims);
bool      mc_dims_equal(int ra, const int64_t *a, int rb, const int64_t *b);
void      mc_dims_text(struct mc_str *out, int rank, const int64_t *dims);  /* "(600, ?, 10)" */
void      mc_contiguous_strides(mc_dtype d, int rank, const int64_t *dims, int64_t *strides);
bool      mc_array_overlaps(const mc_array *a, const mc_array *b);     /* may they share a byte? */
bool      mc_array_same_bits(const mc_array *a, const mc_array *b);    /* dtype, shape and every byte */
/* Compares |a-b| <= atol + rtol*|b|; NaN equals NaN.  Returns the flat index of the first element that
 * differs, or -1. */
int64_t   mc_array_differs(const mc_array *a, const mc_array *b, double rtol, double atol);

/* ---- device_array.c: arrays in memory spaces, for code that reads elements ---- */
/* a new reference to a, or to a copy in the host's memory */
mc_array *mc_array_on_host(const mc_array *a);
/* same shape, at least one in a memory space */
mc_status mc_array_assign_device(mc_array *dst, const mc_array *src);
/* copy bytes from and to the memory of a */
mc_status mc_array_fetch(const mc_array *a, void *host, const void *dev, size_t n);
mc_status mc_array_store(mc_array *a, void *dev, const void *host, size_t n);

/* ---- npy.c: .npy from a file or from memory ---- */
struct mc_source {
    int fd;          /* used if mem is NULL */
    const char *mem;
    uint64_t size;
    const char *name; /* for messages */
};
mc_status mc_source_open(struct mc_source *s, const char *path);
void      mc_source_close(struct mc_source *s);
mc_status mc_source_read(const struct mc_source *s, uint64_t at, void *dst, size_t n);
mc_array *mc_npy_read(const struct mc_source *s);
void      mc_swap_bytes(char *p, int64_t n, int size);         /* of n elements: the other byte order */
mc_status mc_npy_head(struct mc_str *out, const mc_array *a);  /* what goes before the elements in C order */

/* ---- archive.c ---- */
mc_archive *mc_archive_read(struct mc_source s);               /* takes s over, also when it fails */

/* ---- walking, in elements.c ---- */
/* Steps through the outer axes of several arrays of one shape.  The reference loops use it. */
struct mc_walk {
    int rank, n;
    int64_t dims[MC_MAX_RANK], at[MC_MAX_RANK];
    const int64_t *strides[10];
    char *p[10];                /* current position in each array */
    int64_t left;               /* rows still to visit */
};
/* Visits all axes but the last `inner`; returns false if there is nothing to visit. */
bool mc_walk_begin(struct mc_walk *w, int rank, const int64_t *dims, int inner, int n, char *const *data,
                   const int64_t *const *strides);
bool mc_walk_next(struct mc_walk *w);

#endif

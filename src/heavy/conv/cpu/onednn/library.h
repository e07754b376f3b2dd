/* library.h: what is used of oneDNN's C interface, in versions 2 and 3, without its headers.
 *
 * Both versions pass descriptors by pointer: version 2 to a struct of the caller, version 3 to one of the
 * library. So one type serves, and only making and freeing differ.
 *
 * Invariant: no struct of the library is read. Those of version 2 are blocks of memory that are large
 * enough. */
#ifndef MC_HEAVY_CONV_CPU_ONEDNN_LIBRARY_H
#define MC_HEAVY_CONV_CPU_ONEDNN_LIBRARY_H

#include "heavy/conv/solver.h"

typedef void *dnnl;             /* any of the library's handles */
enum {
    DNNL_F32 = 3,
    DNNL_ANY = 1,
    DNNL_CPU = 1,
    DNNL_IN_ORDER = 1,
    DNNL_USER_SCRATCHPAD = 1,
    DNNL_DIMS = 12
};
enum { DNNL_TRAINING = 64, DNNL_INFERENCE = 96 };
enum { DNNL_DIRECT = 1, DNNL_WINOGRAD = 2 };
enum {
    DNNL_SRC = 1,
    DNNL_DST = 17,
    DNNL_WEIGHTS = 33,
    DNNL_SCRATCHPAD = 80,
    DNNL_DIFF_SRC = 129,
    DNNL_DIFF_DST = 145,
    DNNL_DIFF_WEIGHTS = 161
}; /* arguments */
enum {
    DNNL_SRC_MD = 129,
    DNNL_DIFF_SRC_MD,
    DNNL_WEIGHTS_MD,
    DNNL_DIFF_WEIGHTS_MD,
    DNNL_DST_MD,
    DNNL_DIFF_DST_MD,
    DNNL_WORKSPACE_MD,
    DNNL_SCRATCHPAD_MD
}; /* queries */
struct dnnl_arg {
    int arg;
    dnnl memory;
};

/* name, version (0: both), arguments; all return a status, 0 for success */
#define DNNL_FUNCTIONS(X)                                                                                    \
    X(engine_create,                0, (dnnl * engine, int kind, size_t index))                              \
    X(engine_destroy,               0, (dnnl engine))                                                        \
    X(stream_create,                0, (dnnl * stream, dnnl engine, unsigned flags))                         \
    X(stream_wait,                  0, (dnnl stream))                                                        \
    X(stream_destroy,               0, (dnnl stream))                                                        \
    X(memory_create,                0, (dnnl * memory, const void *desc, dnnl engine, void *data))           \
    X(memory_destroy,               0, (dnnl memory))                                                        \
    X(memory_desc_equal,            0, (const void *a, const void *b))                                       \
    X(primitive_attr_create,        0, (dnnl * attr))                                                        \
    X(primitive_attr_destroy,       0, (dnnl attr))                                                          \
    X(primitive_attr_set_scratchpad_mode, 0, (dnnl attr, int mode))                                          \
    X(primitive_desc_destroy,       0, (dnnl pd))                                                            \
    X(primitive_create,             0, (dnnl * primitive, const void *pd))                                   \
    X(primitive_execute,            0, (dnnl primitive, dnnl stream, int n, const struct dnnl_arg *args))    \
    X(primitive_destroy,            0, (dnnl primitive))                                                     \
    X(reorder_primitive_desc_create, 0,                                                                      \
      (dnnl * pd, const void *from, dnnl engine, const void *to, dnnl engine2, const void *attr))            \
    X(memory_desc_init_by_strides, 2,                                                                        \
      (void *desc, int n, const int64_t *dims, int type, const int64_t *strides))                            \
    X(memory_desc_init_by_tag,      2, (void *desc, int n, const int64_t *dims, int type, int tag))          \
    X(primitive_desc_create, 2,                                                                              \
      (dnnl * pd, const void *op, const void *attr, dnnl engine, const void *hint))                          \
    X(dilated_convolution_forward_desc_init, 2,                                                              \
      (void *op, int prop, int alg, const void *src, const void *weights, const void *bias,                  \
       const void *dst, const int64_t *strides, const int64_t *dilates, const int64_t *front,                \
       const int64_t *behind))                                                                               \
    X(dilated_convolution_backward_data_desc_init, 2,                                                        \
      (void *op, int alg, const void *src, const void *weights, const void *dst, const int64_t *strides,     \
       const int64_t *dilates, const int64_t *front, const int64_t *behind))                                 \
    X(dilated_convolution_backward_weights_desc_init, 2,                                                     \
      (void *op, int alg, const void *src, const void *weights, const void *bias, const void *dst,           \
       const int64_t *strides, const int64_t *dilates, const int64_t *front, const int64_t *behind))         \
    X(memory_desc_create_with_strides, 3,                                                                    \
      (dnnl * desc, int n, const int64_t *dims, int type, const int64_t *strides))                           \
    X(memory_desc_create_with_tag,  3, (dnnl * desc, int n, const int64_t *dims, int type, int tag))         \
    X(memory_desc_destroy,          3, (dnnl desc))                                                          \
    X(convolution_forward_primitive_desc_create, 3,                                                          \
      (dnnl * pd, dnnl engine, int prop, int alg, const void *src, const void *weights,                      \
       const void *bias, const void *dst, const int64_t *strides, const int64_t *dilates,                    \
       const int64_t *front, const int64_t *behind, const void *attr))                                       \
    X(convolution_backward_data_primitive_desc_create, 3,                                                    \
      (dnnl * pd, dnnl engine, int alg, const void *src, const void *weights, const void *dst,               \
       const int64_t *strides, const int64_t *dilates, const int64_t *front, const int64_t *behind,          \
       const void *hint, const void *attr))                                                                  \
    X(convolution_backward_weights_primitive_desc_create, 3,                                                 \
      (dnnl * pd, dnnl engine, int alg, const void *src, const void *weights, const void *bias,              \
       const void *dst, const int64_t *strides, const int64_t *dilates, const int64_t *front,                \
       const int64_t *behind, const void *hint, const void *attr))

struct dnnl_library {
    void *handle;
    int version;                /* 2 or 3 */
    size_t (*memory_desc_get_size)(const void *desc);
    const void *(*primitive_desc_query_md)(const void *pd, int what, int index);
#define DNNL_MEMBER(name, version, args) int (*name) args;
    DNNL_FUNCTIONS(DNNL_MEMBER)
#undef DNNL_MEMBER
};
/* False: no library is found, or its version is unknown. */
bool mc_onednn_open(struct dnnl_library *l);
/* Strides NULL: the library chooses the layout. Returns NULL on failure. */
dnnl mc_onednn_desc(const struct dnnl_library *l, int n, const int64_t *dims, const int64_t *strides);
void mc_onednn_desc_free(const struct dnnl_library *l, dnnl desc);
/* A convolution in any layouts. desc: of x, w, y. */
struct dnnl_conv {
    enum mc_conv_pass pass;
    int algorithm;
    dnnl desc[3];
    int64_t strides[3], dilates[3], front[3], behind[3];
};
/* NULL: the library cannot */
dnnl mc_onednn_conv(const struct dnnl_library *l, const struct dnnl_conv *c, dnnl engine, dnnl attr);

/* ---- onednn.c makes the plan, run.c runs it ---- */
struct onednn {
    struct mc_plan base;
    struct dnnl_library l;
    int threads;
    dnnl engine, stream, attr, pd, primitive;
    dnnl desc[3];               /* of x, w, y, or of their plain copies */
    dnnl reorder[3];            /* NULL: the library takes the operand's layout */
    const void *liked[3];       /* the layouts that the library chose; owned by pd */
    bool plain[3];              /* uses a contiguous copy: a flipped filter, or a result with alpha or beta */
    size_t at[3], plain_at[3], scratch_at;
    int64_t plain_stride[3][8];
};
mc_status mc_onednn_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif

/* pool_node.h: what the files of the pooling ops share. */
#ifndef MC_OP_POOL_NODE_H
#define MC_OP_POOL_NODE_H

#include "op/op.h"
#include "op/pool.h"

/* The attributes of all pooling nodes, in the order of their signature. */
#define POOL_ATTRS                                                                                           \
    "mode=max:text, ignore_border=True:bool, start=None:ints, ties=first:text, axis=None:ints, "             \
    "strict=False:bool, layout=None:text"
enum {
    POOL_MODE,
    POOL_IGNORE_BORDER,
    POOL_START,
    POOL_TIES,
    POOL_AXIS,
    POOL_STRICT,
    POOL_LAYOUT,
    POOL_NATTR
};
enum { POOL_MARKS = POOL_NATTR }; /* pool_max has one more: the dtype of its marks */
enum { POOL_WS, POOL_STRIDE, POOL_PAD, POOL_NVECTOR }; /* inputs that are vectors, wherever they begin */

/* The same by meaning, for those who make nodes.  Zero is the default; axes: those named, else the digits of
 * the layout, else the last nd, else as many of the last as ws has entries. */
struct mc_pool_how {
    const char *mode, *ties, *layout;
    bool keep_border, strict;
    const struct mc_attr *start, *axis; /* lists; start: cuda-convnet's windows */
    int nd;
};
struct mc_pool_how mc_pool_how(const struct mc_attr *attr);

/* pool_make.c */
enum mc_pool_key mc_pool_key_of(const struct mc_attr *attr);
/* All that the nodes over the same windows have in common: vectors and attributes; numbers that these point
 * at. */
struct mc_pool_parts {
    mc_node *vector[POOL_NVECTOR];
    struct mc_attr attr[POOL_NATTR + 1];
    int64_t number[5], axis[3];
};
/* A node of n inputs, then the vectors, then `last` unless that is NULL. */
mc_node *mc_pool_node(mc_graph *g, const char *op, int n, mc_node *const *in, struct mc_pool_parts *p,
                      mc_node *last);
mc_node *mc_pool_make(mc_node *x, mc_node *const vector[POOL_NVECTOR], const struct mc_pool_how *how);
mc_node *mc_pool_grad_make(mc_node *x, mc_node *g, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how);
mc_node *mc_pool_pick_make(mc_node *x, mc_node *v, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how);
/* Flat index in x of a cell of each window, drawn in proportion to the cells; u: uniform numbers, one a
 * window. */
mc_node *mc_pool_draw_make(mc_node *x, mc_node *u, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how);

/* pool.c, for infer and eval */
mc_status mc_pool_type(struct mc_infer *q, int first, const struct mc_type *x, struct mc_pool_shape *s,
                       struct mc_type *y);
mc_status mc_pool_fits(const struct mc_infer *q, const char *what, const struct mc_type *have,
                       const struct mc_type *want);
mc_status mc_pool_shape_at(const mc_node *n, mc_array *const *in, struct mc_pool_shape *s);

/* pool_shape.c */
/* What is known of n's geometry, -1 where a size of x or y is not.  Inputs from `first` on are ws, stride,
 * pad; x is the type of what is pooled. */
mc_status mc_pool_solve(const struct mc_infer *q, int first, const struct mc_type *x,
                        struct mc_pool_shape *s);
void mc_pool_dims(const struct mc_pool_shape *s, int64_t *dims);               /* of y */
int mc_pool_slot(const mc_node *n, int axis);                                  /* -1: not a pooled axis */
/* of y, over the size i of x */
mc_node *mc_pool_size(mc_node *n, int first, mc_node *i, int slot);
/* entry k, as an int64 scalar */
mc_node *mc_pool_entry(mc_node *vector, int k);

#endif

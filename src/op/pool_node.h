/* pool_node.h: shared by the files of the pooling ops. */
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
enum { POOL_WS, POOL_STRIDE, POOL_PAD, POOL_NVECTOR }; /* the vector inputs, counted from the first of them */

/* The attributes by meaning, for the functions that make nodes. Zero is the default. The pooled axes are
 * those of `axis`, else the digits of the layout, else the last nd, else the last axes, as many as ws has
 * entries. */
struct mc_pool_how {
    const char *mode, *ties, *layout;
    bool keep_border, strict;
    const struct mc_attr *start, *axis; /* lists; start: first window, as in cuda-convnet */
    int nd;
};
struct mc_pool_how mc_pool_how(const struct mc_attr *attr);

/* pool_make.c */
enum mc_pool_key mc_pool_key_of(const struct mc_attr *attr);
/* What all nodes over the same windows have in common: vectors and attributes, and the numbers to which
 * they point. */
struct mc_pool_parts {
    mc_node *vector[POOL_NVECTOR];
    struct mc_attr attr[POOL_NATTR + 1];
    int64_t number[5], axis[3];
};
/* Makes a node of n inputs, then the vectors, then `last` if it is not NULL. */
mc_node *mc_pool_node(mc_graph *g, const char *op, int n, mc_node *const *in, struct mc_pool_parts *p,
                      mc_node *last);
mc_node *mc_pool_make(mc_node *x, mc_node *const vector[POOL_NVECTOR], const struct mc_pool_how *how);
mc_node *mc_pool_grad_make(mc_node *x, mc_node *g, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how);
mc_node *mc_pool_pick_make(mc_node *x, mc_node *v, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how);
/* The flat index in x of a cell of each window, drawn with probability proportional to the cells; u:
 * uniform numbers, one for each window. */
mc_node *mc_pool_draw_make(mc_node *x, mc_node *u, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how);

/* pool.c, for infer and eval */
mc_status mc_pool_type(struct mc_infer *q, int first, const struct mc_type *x, struct mc_pool_shape *s,
                       struct mc_type *y);
mc_status mc_pool_fits(const struct mc_infer *q, const char *what, const struct mc_type *have,
                       const struct mc_type *want);
mc_status mc_pool_shape_at(const mc_node *n, mc_array *const *in, struct mc_pool_shape *s);

/* pool_shape.c */
/* The known geometry of a node; unknown sizes of x and y are -1. The inputs from `first` on are ws, stride
 * and pad; x is the type of the pooled tensor. */
mc_status mc_pool_solve(const struct mc_infer *q, int first, const struct mc_type *x,
                        struct mc_pool_shape *s);
void mc_pool_dims(const struct mc_pool_shape *s, int64_t *dims);               /* of y */
int mc_pool_slot(const mc_node *n, int axis);                                  /* -1: not a pooled axis */
/* the size of y as a formula over i, the size of x */
mc_node *mc_pool_size(mc_node *n, int first, mc_node *i, int slot);
/* entry k of a vector, as an int64 scalar */
mc_node *mc_pool_entry(mc_node *vector, int k);

#endif

/* pool.h: the geometry that every pooling is reduced to, and its reference.
 *
 * Window j of an axis begins at j * stride - pad and is `w` cells long. It is clipped to the image and
 * never empty. There are three passes over the same windows:
 *
 *   FORWARD  y = the maximum, the sum or the mean of the cells of each window of x
 *   SPREAD   its transpose: each y is added to the cells of its window in dx
 *   GATHER   y = the element of v (shaped as x) at the maximum of each window of x
 *
 * If several cells of a window hold the maximum, the first in scan order (the last axis varies fastest)
 * counts. A NaN is larger than every number; the first NaN counts. FORWARD writes argmax marks: the number
 * of that cell in the unclipped window. SPREAD and GATHER read the marks, so they do not need x. With the
 * attribute `ties` set to 'all', every cell that equals the maximum counts, and SPREAD and GATHER read x
 * instead of marks.  With 'bits', which lower/tie_bits.c sets, FORWARD writes in place of a mark a byte that
 * has bit i where cell i equals the maximum, and SPREAD reads it.
 *
 * There are always three pooled slots here. If fewer axes are pooled, the leading slots have size 1. */
#ifndef MC_OP_POOL_H
#define MC_OP_POOL_H

#include "graph/graph.h"
#include "op/pool_kind.h"

enum mc_pool_pass { POOL_FORWARD, POOL_SPREAD, POOL_GATHER };

struct mc_pool_shape {
    enum mc_pool_pass pass;
    enum mc_pool_mode mode;
    enum mc_pool_key key;
    bool whole;                     /* average_inc_pad: divide by the unclipped size */
    int rank, nd, axis[3];          /* rank of x; the axis of each slot, -1: none */
    int64_t dims[MC_MAX_RANK];      /* sizes of x; y has out[] in place of the pooled axes */
    int64_t in[3], out[3], w[3], stride[3], pad[3]; /* pad < 0: the first window begins inside the image */
    mc_dtype mark;                  /* uint8 if a window has at most 256 cells, else int32 */
};
/* The arrays by role. FORWARD reads X, SPREAD writes it (dx), GATHER reads it (v). */
enum { POOL_X, POOL_Y, POOL_KEY, POOL_NARRAY };

/* The nodes are pool (x; ws, stride, pad), pool_max (the same inputs; results y and marks), pool_spread
 * (g; shape, ws, stride, pad; key) and pool_gather (v; key; ws, stride, pad). A role is the number of an
 * input, POOL_RESULT plus the number of a result, or -1 for none. */
enum { POOL_RESULT = 16 };
bool mc_pool_roles(const mc_node *n, int role[POOL_NARRAY]);  /* false: n is none of these nodes */
static inline bool mc_pool_key_like_y(const struct mc_pool_shape *s)
{
    return s->key == POOL_KEY_MARKS || s->key == POOL_KEY_BITS;
}
int mc_pool_pass_of(const mc_node *n);                        /* POOL_FORWARD, ...; -1: none of these nodes */
bool mc_pool_marks(const mc_node *n);                         /* does n have marks as its second result? */
/* pool_shape.c: the whole geometry, from the types of n's inputs. value[i] (or value) may be NULL for
 * constants of the graph. An impossible geometry is an error that prints the formula. */
mc_status mc_pool_shape_of(const mc_node *n, const struct mc_type *in, const mc_array *const *value,
                           struct mc_pool_shape *s);

/* pool_loops.c: the reference of all passes, for every dtype and stride (in bytes, in the order of x's
 * axes). FORWARD writes marks only if there is an array for them. */
struct mc_pool_arrays {
    mc_dtype dtype;
    char *at[POOL_NARRAY];
    const int64_t *strides[POOL_NARRAY];
};
mc_status mc_pool_loops(const struct mc_pool_shape *s, const struct mc_pool_arrays *a);

#endif

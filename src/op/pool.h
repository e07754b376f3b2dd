/* pool.h: the geometry that every pooling comes down to, whatever it is called, and its reference.
 *
 * Window j of an axis begins at j * stride - pad and is `w` cells long; it is cut at the borders of the
 * image, and never empty.  There are three passes over the same windows:
 *
 *   FORWARD  y = the maximum, the sum or the mean of the cells of each window of x
 *   SPREAD   its transpose: each y goes back to the cells of its window, dx is what arrives
 *   GATHER   y = what v (shaped as x) has where the maximum of each window of x stands
 *
 * Where several cells of a window hold its maximum the first in scan order (the last axis runs fastest) is
 * the maximum; a NaN is larger than anything, the first one again.  FORWARD writes marks: the number of that
 * cell in the uncut window.  SPREAD and GATHER read them, so neither needs x.  With the switch `ties` on
 * "all" every cell that equals the maximum counts as the maximum, and SPREAD and GATHER read x instead of
 * marks.
 *
 * There are always three pooled slots here; where fewer axes are pooled the leading slots have size 1. */
#ifndef MC_OP_POOL_H
#define MC_OP_POOL_H

#include "graph/graph.h"

enum mc_pool_pass { POOL_FORWARD, POOL_SPREAD, POOL_GATHER };
enum mc_pool_mode { POOL_MAX, POOL_SUM, POOL_AVERAGE_INC, POOL_AVERAGE_EXC };
/* the third array: none; marks, shaped as y; x */
enum mc_pool_key { POOL_KEY_NONE, POOL_KEY_MARKS, POOL_KEY_X };

struct mc_pool_shape {
    enum mc_pool_pass pass;
    enum mc_pool_mode mode;
    enum mc_pool_key key;
    bool whole;                     /* average_inc_pad divides by the window, not by what is left of it */
    int rank, nd, axis[3];          /* of x; the axis of each slot, -1: none */
    int64_t dims[MC_MAX_RANK];      /* of x; y has out[] in place of the pooled axes */
    int64_t in[3], out[3], w[3], stride[3], pad[3]; /* pad < 0: the first window begins inside */
    mc_dtype mark;                  /* uint8 if a window has at most 256 cells, else int32 */
};
/* The arrays by role.  X and Y: FORWARD reads X, SPREAD writes it (dx), GATHER reads it (v). */
enum { POOL_X, POOL_Y, POOL_KEY, POOL_NARRAY };

/* The nodes are pool (x; ws, stride, pad), pool_max (the same; results y and marks), pool_spread (g; shape,
 * ws, stride, pad; key) and pool_gather (v; key; ws, stride, pad).  Which input or result has which role, -1:
 * none; results count from 16 on. */
enum { POOL_RESULT = 16 };
bool mc_pool_roles(const mc_node *n, int role[POOL_NARRAY]);  /* false: n is no such node */
int mc_pool_pass_of(const mc_node *n);                        /* POOL_FORWARD, ...; -1: n is no such node */
bool mc_pool_marks(const mc_node *n);                         /* is the second result of n marks? */
/* pool_shape.c: all of the geometry, from the types of n's inputs; value[i] (or value) may be NULL where it
 * is a constant of the graph.  An impossible one is an error that prints the formula. */
mc_status mc_pool_shape_of(const mc_node *n, const struct mc_type *in, const mc_array *const *value,
                           struct mc_pool_shape *s);

/* pool_loops.c: the reference of all passes, every dtype and stride (bytes, in the order of x's axes).  Marks
 * are written by FORWARD only if there is an array for them. */
struct mc_pool_arrays {
    mc_dtype dtype;
    char *at[POOL_NARRAY];
    const int64_t *strides[POOL_NARRAY];
};
mc_status mc_pool_loops(const struct mc_pool_shape *s, const struct mc_pool_arrays *a);

#endif

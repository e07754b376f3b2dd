/* norm.h: normalisation across channels, the problem behind Lasagne's LRN and cuda-convnet's CrossMapNorm.
 *
 *   d[c] = k + alpha * sum over e in W(c) of x[e]^2          y[c] = x[c] * d[c]^-beta
 *
 * W(c) is the n channels that begin at c - n / 2, without those that do not exist; if blocked, it is the
 * aligned block of n channels that contains c. The gradient uses T(e) = { c : e in W(c) }, which begins at
 * c - n + n / 2 + 1 (another window than W when n is even):
 *
 *   dx[e] = g[e] d[e]^-beta - 2 alpha beta x[e] * sum over c in T(e) of g[c] x[c] d[c]^(-beta-1) */
#ifndef MC_OP_NORM_H
#define MC_OP_NORM_H

#include "graph/graph.h"

struct mc_norm_shape {
    bool backward, blocked;
    int rank, axis;
    int64_t dims[MC_MAX_RANK];
    int64_t n;
    double alpha, beta, k;
};
/* The nodes are map_norm (x) and map_norm_grad (x, g).  False: n is neither. */
bool mc_norm_shape_of(const mc_node *n, const struct mc_type *x, struct mc_norm_shape *s);

/* The first channel and the end of the window of channel c of `channels`; `back`: T instead of W. */
static inline void mc_norm_window(const struct mc_norm_shape *s, bool back, int64_t channels, int64_t c,
                                  int64_t *from, int64_t *to)
{
    const int64_t first = s->blocked ? c / s->n * s->n : back ? c - s->n + s->n / 2 + 1 : c - s->n / 2;
    *from = MC_MAX(first, 0);
    *to = MC_MIN(first + s->n, channels);
}

/* The reference, in float64: arrays x, g (NULL: forward) and the result, strides in bytes. */
struct mc_norm_arrays {
    mc_dtype dtype;
    char *x, *g, *y;
    const int64_t *xs, *gs, *ys;
};
mc_status mc_norm_loops(const struct mc_norm_shape *s, const struct mc_norm_arrays *a);

#endif

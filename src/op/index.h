/* index.h: what slices (index.c) and index tensors (gather.c) share: putting a value into a region. */
#ifndef MC_INDEX_H
#define MC_INDEX_H

#include "op/op.h"

/* y as it must be to fill a region of x: x's dtype, the region's rank. */
mc_node *mc_region_value(const char *op, mc_node *x, mc_node *y, int rank);
mc_status mc_region_fits(const char *op, const struct mc_type *y, const struct mc_type *region);
/* Strides under which y has the region's shape; only sizes of 1 that were promised repeat. */
mc_status mc_region_strides(const mc_node *n, const mc_array *y, int rank, const int64_t *dims, int64_t *strides);
mc_node *mc_region_grad(mc_node *g, mc_node *y); /* the region's gradient, summed to y's shape */
/* n elements x = y, or x += y, in dtype d */
void mc_region_row(mc_dtype d, bool set, char *x, int64_t xstep, const char *y, int64_t ystep, int64_t n);
/* Prints input 0, in brackets if it is an operator's result. */
void mc_print_indexed(struct mc_str *out, const mc_node *n, void (*arg)(struct mc_str *, const mc_node *, int, void *), void *ctx);

#endif

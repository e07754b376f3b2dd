/* index.h: shared by slices (index.c) and index tensors (gather.c): reads and prints a spec, and puts a
 * value into a region of x. */
#ifndef MC_INDEX_H
#define MC_INDEX_H

#include "op/op.h"

typedef void print_arg(struct mc_str *out, const mc_node *n, int i, void *ctx);

/* slice.c */
bool mc_spec_is_whole(const int64_t *s);             /* s: the numbers of one axis */
/* Does the spec fit x, and do the bounds that it names exist? If not, infer reports why. */
bool mc_spec_is_sound(const struct mc_attr *spec, const mc_node *x, int nbound);
/* Writes constant bounds into the spec and returns the number of bounds that are left. bound[1] is the
 * first. */
int mc_spec_fold(const struct mc_attr *spec, mc_node *const *bound, int64_t *out, mc_node **left);
/* The type of the region; first: the input that is the first bound. */
mc_status mc_spec_infer(const struct mc_infer *q, int first, struct mc_type *out);
mc_array *mc_spec_view(const mc_node *n, const mc_array *x, mc_array *const *in);
void mc_spec_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx);   /* x[1:3, i] */
/* set_subtensor(x[...], y), or inc_subtensor; region prints the part. */
void mc_update_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx,
                     void region(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx));
/* x alone, in brackets if needed */
void mc_print_indexed(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx);

/* index.c. y converted so that it can fill a region of x: the dtype of x, the rank of the region. */
mc_node *mc_region_value(const char *op, mc_node *x, mc_node *y, int rank);
/* the type of x with the region set to input 1, which is that of x; an error if the value does not fit */
mc_status mc_region_update(struct mc_infer *q, const struct mc_type *region);
/* Makes the node that sets, or adds to, the region of x at these bounds or index tensors: subtensor_update
 * or gather_update. */
mc_node *mc_region_put(const char *op, mc_node *x, mc_node *y, int n, mc_node *const *at,
                       const struct mc_attr *where, bool set);
/* Strides with which y has the shape of the region; only promised sizes of 1 broadcast. */
mc_status mc_region_strides(const mc_node *n, const mc_array *y, int rank, const int64_t *dims,
                            int64_t *strides);
mc_node *mc_region_grad(mc_node *g, mc_node *y);     /* of the region, summed to y's shape */
/* n elements x = y, or x += y, in dtype d */
void mc_region_row(mc_dtype d, bool set, char *x, int64_t xstep, const char *y, int64_t ystep, int64_t n);

/* gather_print.c */
bool mc_gather_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx);
bool mc_gather_update_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx);
/* nonzero.c */
mc_status mc_nonzero_infer(struct mc_infer *q);
mc_status mc_nonzero_eval(const mc_node *n, mc_array *const *in, mc_array *const *out);

#endif

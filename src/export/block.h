/* block.h: what the printers of host steps share: lines of text, nests of loops, operands. */
#ifndef MC_EXPORT_BLOCK_H
#define MC_EXPORT_BLOCK_H

#include "export/export.h"
#include <inttypes.h>

struct mc_block {
    struct mc_c_text c;
    const mc_node *n;
    const struct mc_export_value *in, *result;
};
#define LINE(b, ...) mc_c_line(&(b)->c, __VA_ARGS__)

/* ---- block.c ---- */
/* Axes with their steps, in elements, in up to four arrays.  Axes of size 1 are left out. */
struct mc_nest {
    int n, arrays;
    int64_t size[2 * MC_MAX_RANK], step[4][2 * MC_MAX_RANK];
};
void mc_nest_add(struct mc_nest *s, int64_t size, const int64_t *step);
void mc_nest_join(struct mc_nest *s);         /* joins neighbours that are contiguous in all arrays */
/* Opens loops i0, i1, ... (name "i"). */
void mc_nest_open(struct mc_block *b, const struct mc_nest *s, const char *name);
struct mc_c_sum mc_nest_place(const struct mc_nest *s, int array, const char *name);
bool mc_nest_empty(const struct mc_nest *s);

/* Declares in_K or out_0, a typed pointer to the first element. */
void mc_block_in(struct mc_block *b, int k);
void mc_block_out(struct mc_block *b);

bool mc_block_half(mc_dtype d);
int64_t mc_block_step(const struct mc_export_value *v, int axis); /* the stride in elements */
bool mc_block_contiguous(const struct mc_export_value *v);
/* MC_EUNSUPPORTED: "export as C: OP: WHY" */
mc_status mc_block_refuse(const mc_node *n, const char *why);
/* Prints the nest with out_0[...] = in_K[...], arrays 0 and 1; offset: added to the place in out_0. */
void mc_block_copy(struct mc_block *b, struct mc_nest *s, int in, mc_dtype d, int64_t offset);

/* A printer of one op.  It opens the block; host_op.c closes it. */
typedef mc_status mc_block_print(struct mc_block *b);
/* ---- host_make.c ---- */
mc_block_print mc_block_uniform, mc_block_arange, mc_block_alloc, mc_block_join, mc_block_stack,
    mc_block_reshape, mc_block_product, mc_block_assert;
/* ---- host_index.c ---- */
mc_block_print mc_block_gather, mc_block_gather_update, mc_block_part_update;
/* ---- host_lines.c ---- */
mc_block_print mc_block_running, mc_block_recurrence, mc_block_sort, mc_block_permute, mc_block_channels;

#endif

/* grid.h: a kernel's launch at one shape on a GPU: its axes and its threads.
 *
 * Invariant: struct mc_axes counts elements; in struct mc_grid_head the innermost axis is counted in
 * vectors. */
#ifndef MC_EXEC_CUDA_GRID_H
#define MC_EXEC_CUDA_GRID_H

#include "exec/cuda/cuda.h"

/* ---- axes.c ---- */
struct mc_axis { int64_t size; int at; };
struct mc_axes {
    struct mc_axis axis[MC_MAX_RANK]; /* innermost first: kept, then reduced */
    int n[2];
    int64_t count[2];
    int64_t stride[MOST_OPERANDS][MC_MAX_RANK]; /* by operand and axis of the kernel: bytes, or positions */
};
/* called for kept axes, then for reduced ones */
void mc_axes_collapse(struct mc_axes *s, const struct mc_kernel *k, const int64_t *size, bool reduced);
bool mc_axes_dense(const struct mc_kernel *k, const struct mc_axes *s, const struct mc_grid_launch *l,
                   const struct mc_slot *slot, int first, int v);
bool mc_axes_fit_int32(const struct mc_kernel *k, const struct mc_axes *s);
/* sets the constants by which a kernel divides by the axis' size */
void mc_axes_divide(struct mc_grid_head *h, int axis);

/* ---- blocks.c: the threads of each form.  Requires h->count ---- */
void mc_grid_threads_map(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h,
                         const struct mc_axes *s, int64_t count);
void mc_grid_threads_points(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h,
                            int vector);
void mc_grid_threads_rows(const struct mc_kernel *k, struct mc_grid_launch *l, const struct mc_grid_head *h,
                          struct mc_grid_row row, unsigned n);
void mc_grid_threads_columns(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h);
/* after one of the above */
void mc_grid_threads_column_sums(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h);
/* Can the lanes of `most` blocks keep rows of that length, and does it keep them busy? */
bool mc_grid_threads_keeps(struct mc_grid_row row, int64_t length, unsigned most);
/* do several blocks keep a row of that length together, at least if there are few rows? */
bool mc_grid_threads_shares(const struct mc_kernel *k, struct mc_grid_row row, int64_t length);
unsigned mc_grid_threads_keeps_rows(const struct mc_kernel *k, const struct mc_axes *s,
                                    const struct mc_grid_launch *l, const struct mc_slot *slot,
                                    struct mc_grid_row row, unsigned most);
bool mc_grid_threads_keeps_columns(const struct mc_kernel *k, const struct mc_axes *s,
                                   const struct mc_grid_launch *l, const struct mc_slot *slot);

#endif

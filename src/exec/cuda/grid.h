/* grid.h: a kernel's launch at one shape on a GPU, as its parts see it: the axes it goes along, the threads
 * that do.
 *
 * Invariant: in counts of elements nothing is a vector yet; in struct mc_grid_head what lies innermost is. */
#ifndef MC_EXEC_CUDA_GRID_H
#define MC_EXEC_CUDA_GRID_H

#include "exec/cuda/cuda.h"

/* ---- grid_axes.c ---- */
struct mc_axis { int64_t size; int at; };
struct mc_axes {
    struct mc_axis axis[MC_MAX_RANK]; /* innermost first: kept, then reduced */
    int n[2];
    int64_t count[2];
    int64_t stride[MOST_OPERANDS][MC_MAX_RANK]; /* by the kernel's axes: bytes, or positions */
};
/* those kept, then those reduced */
void mc_axes_collapse(struct mc_axes *s, const struct mc_kernel *k, const int64_t *size, bool reduced);
bool mc_axes_dense(const struct mc_kernel *k, const struct mc_axes *s, const struct mc_grid_launch *l,
                   const struct mc_slot *slot, int first, int v);
bool mc_axes_fit_int32(const struct mc_kernel *k, const struct mc_axes *s);
void mc_axes_divide(struct mc_grid_head *h, int axis);          /* by which a kernel divides by its size */

/* ---- grid_spread.c: the threads of each form.  h->count is there already ---- */
void mc_grid_threads_map(struct mc_grid_launch *l, struct mc_grid_head *h, const struct mc_axes *s, int64_t count);
void mc_grid_threads_points(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h,
                      int vector);
void mc_grid_threads_rows(const struct mc_kernel *k, struct mc_grid_launch *l, const struct mc_grid_head *h,
                    struct mc_grid_row row, unsigned n);
void mc_grid_threads_columns(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h);
/* behind one of these */
void mc_grid_threads_column_sums(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h);
/* A length that the lanes of `most` blocks can keep and that keeps them busy? */
bool mc_grid_threads_keeps(struct mc_grid_row row, int64_t length, unsigned most);
/* that several blocks keep together, at least where rows are few? */
bool mc_grid_threads_shares(struct mc_grid_row row, int64_t length);
unsigned mc_grid_threads_keeps_rows(const struct mc_kernel *k, const struct mc_axes *s,
                              const struct mc_grid_launch *l, const struct mc_slot *slot,
                              struct mc_grid_row row, unsigned most);
bool mc_grid_threads_keeps_columns(const struct mc_kernel *k, const struct mc_axes *s,
                             const struct mc_grid_launch *l, const struct mc_slot *slot);

#endif

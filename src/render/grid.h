/* grid.h: what the printers of kernels for a grid share: offsets of operands, and pointers made of them.
 *
 * Invariant: in the printed text, o3 is operand 3's offset at a point of the kept axes (in a map: at an
 * element), e3 its offset at an element of that point. */
#ifndef MC_GRID_H
#define MC_GRID_H

#include "render/print.h"

/* ---- grid_entry.c ---- */
/* prints NAME, NAME_v and NAME_s as calls of the template NAME_of, with a vector's length and, for a
 * reduction, whether it prefetches */
void mc_grid_entries(struct print *p);
/* ---- the forms ---- */
void mc_grid_print_map(struct print *p);
/* grid_map.c: NAME_part, a map's elements from A.first to A.count[0], which one block computes */
void mc_grid_print_part(struct print *p);
/* grid_many.c: NAME_many */
void mc_grid_print_many(struct print *p);
void mc_grid_print_reducing(struct print *p);
/* "[](T &c6, i64 &z6, const T l6, const i64 q6) { c6 += l6; }" */
void mc_grid_merge(struct print *p, int v, const char *type);
/* the number of reduction v among all */
int  mc_grid_slot(const struct mc_kernel *k, int v);

/* ---- grid_address.c ---- */
/* does operand i vary by element? */
bool mc_grid_varies(const struct print *p, size_t i);
/* declares offsets `name`, as 0 or as a copy of offsets `from` */
void mc_grid_offsets(struct print *p, char name, bool elements, char from);
/* Splits a linear index along `n` axes from axis `first` on, and adds to the offsets `name`. */
void mc_grid_print_split_index(struct print *p, char name, bool elements, const char *index, const char *n,
                            const char *first);
/* is it an element that this stage stores? */
bool mc_grid_computed_in_stage(const struct print *p, const struct mc_koperand *o);
/* Prints whether `at` is a point, its offsets, and the addresses of row operands. */
void mc_grid_point(struct print *p);
/* declares a3 of operands that are no elements, at their offset `name` */
void mc_grid_pointers(struct print *p, char name);
/* Declares a3 of each element operand: an address, a position, or V elements, which a map loads.
 * mc_grid_close_elements stores the V elements of results. */
void mc_grid_open_elements(struct print *p, char name);
void mc_grid_close_elements(struct print *p, char name);

/* ---- grid_column_sums.c: each team of lanes has partial column sums in the scratch memory ---- */
/* opens the loop over the team's rows; without column sums there is one row */
void mc_grid_open_rows(struct print *p);
void mc_grid_close_rows(struct print *p);
/* prints the address of a team's sums */
void mc_grid_part(struct print *p, size_t operand, const char *team);
/* sets the team's sums to zero */
void mc_grid_begin_column_sums(struct print *p);
void mc_grid_print_column_sum(struct print *p);

/* ---- grid_reduce.c: every second pass runs backwards, as the end of the row is still in the caches ---- */
/* declares from and to: the block's part of a point's elements, for the stage of the launch */
void mc_grid_block(struct print *p);
/* opens the loop over the U elements or vectors r that a lane loads before it uses the first */
void mc_grid_ahead(struct print *p);

/* ---- grid_centred_sum.c: the next stage's sums about a row value, computed in this stage's pass ---- */
/* is reduction r a sum of float32 or halves? */
bool mc_grid_adds(const struct mc_kernel *k, const struct mc_kval *r);
void mc_grid_each_centred_sum(struct print *p, void (*f)(struct print *p, int v));
/* the sum of the pass that is the second part of centred sum v too; -1: none */
int  mc_grid_centred_sum_of(const struct mc_kernel *k, int v);
/* marks the elements it needs */
void mc_grid_centred_sum_need(struct print *p, int v);
/* declare the accumulator; a lane's sums within a block */
void mc_grid_centred_sum_acc(struct print *p, int v);
void mc_grid_centred_sum_lane(struct print *p, int v);
/* add an element; add the lane's sums; add those of another lane */
void mc_grid_centred_sum_add(struct print *p, int v);
void mc_grid_centred_sum_close(struct print *p, int v);
void mc_grid_centred_sum_merge(struct print *p, int v);
/* the value, in its own stage */
void mc_grid_centred_sum_finish(struct print *p, int v);
/* the same for the columns of grid_column.c */
void mc_grid_centred_sum_lane_column(struct print *p, int v);
void mc_grid_centred_sum_add_column(struct print *p, int v);
void mc_grid_centred_sum_close_column(struct print *p, int v, bool second);   /* one of its two parts */
void mc_grid_centred_sum_finish_column(struct print *p, int v);

/* ---- grid_column_reduce.c: the sums of a pass, with the centred sums that it makes ---- */
/* functions that each NAME_c calls */
extern const char mc_grid_column_reduce[];
void mc_grid_column_reduce_open(struct print *p);
/* the sums of each warp, from those of its lanes */
void mc_grid_column_reduce_lanes(struct print *p);
/* the sums of each warp, from those that the blocks of the launch before have stored */
void mc_grid_column_reduce_gather(struct print *p);
/* then the block's sums: stored, which ends the kernel, or used */
void mc_grid_column_reduce_total(struct print *p);
/* the stage's values for each column of a thread */
void mc_grid_column_reduce_finish(struct print *p);

/* ---- grid_column.c ---- */
/* NAME_c; p->k's mode is KERNEL_COLUMN */
void mc_grid_print_column(struct print *p);

/* ---- grid_row_reduce.c ---- */
/* functions that each NAME_t calls */
extern const char mc_grid_meeting[];
/* all lanes of a row get the stage's sums, over one block or over a cluster (together) */
void mc_grid_row_reduce(struct print *p, bool lanes, bool together);

/* ---- grid_row.c ---- */
void mc_grid_print_row(struct print *p, struct mc_grid_row row, char form); /* NAME_r, NAME_t, NAME_q */

#endif

/* grid.h: what the printers of kernels for a grid share: offsets of operands and pointers made of them.
 *
 * Invariant: o3 is operand 3's offset at a point of the kept axes (of a map: at an element), e3 at an element
 * of it. */
#ifndef MC_GRID_H
#define MC_GRID_H

#include "render/print.h"

/* ---- grid_entry.c ---- */
/* NAME, NAME_v, NAME_s: the template NAME_of by what it takes at once; of a reduction, by whether it asks
 * ahead */
void mc_grid_entries(struct print *p);
/* ---- the forms ---- */
void mc_grid_print_map(struct print *p);
void mc_grid_print_reducing(struct print *p);
/* "[](T &c6, i64 &z6, const T l6, const i64 q6) { c6 += l6; }" */
void mc_grid_merge(struct print *p, int v, const char *type);
int  mc_grid_slot(const struct mc_kernel *k, int v);                     /* of reduction v among all */

/* ---- grid_address.c ---- */
bool mc_grid_passes(const struct print *p, size_t i);                     /* is operand i an element? */
/* declared: 0, or as those of another name */
void mc_grid_offsets(struct print *p, char name, bool elements, char from);
/* Takes a linear index apart along `n` axes from axis `first` on; adds to the offsets. */
void mc_grid_separate_stage(struct print *p, char name, bool elements, const char *index, const char *n,
                   const char *first);
/* an element that this stage stores? */
bool mc_grid_computed_in_stage(const struct print *p, const struct mc_koperand *o);
/* Whether `at` is a point, the offsets and the row operands there. */
void mc_grid_point(struct print *p);
/* a3 of those that do not walk, at the offset of that name */
void mc_grid_pointers(struct print *p, char name);
/* a3 of each operand that walks: an address, a position, or V elements, those that a map reads loaded; then
 * what was made is stored. */
void mc_grid_open_elements(struct print *p, char name);
void mc_grid_close_elements(struct print *p, char name);

/* ---- grid_column_sums.c: each team of lanes has sums of its own in the scratch memory, a row's length of them
 * ---- */
/* the team's rows, one after another, or the one */
void mc_grid_open_rows(struct print *p);
void mc_grid_close_rows(struct print *p);
void mc_grid_part(struct print *p, size_t operand, const char *team);    /* the address of a team's sums */
void mc_grid_begin_column_sums(struct print *p);                             /* the team's sums are zero */
void mc_grid_print_column_sum(struct print *p);

/* ---- grid_reduce.c: every other walk goes back from the end, which caches still have ---- */
/* declared: the block's part of a point's elements, for the walk that is launched */
void mc_grid_block(struct print *p);
/* opened: element or vector r, u of those that a lane asks for at once */
void mc_grid_ahead(struct print *p);

/* ---- grid_centred_sum.c: what the next stage sums about a row's value, summed by this one's walk ---- */
/* is reduction r a sum of floats or halves? */
bool mc_grid_adds(const struct mc_kernel *k, const struct mc_kval *r);
void mc_grid_each_centred_sum(struct print *p, void (*f)(struct print *p, int v));
/* which sum of the walk is moment v's second part too; -1: none */
int  mc_grid_centred_sum_sum(const struct mc_kernel *k, int v);
void mc_grid_centred_sum_need(struct print *p, int v);                        /* its elements */
/* declared: the accumulator, a block's lane */
void mc_grid_centred_sum_acc(struct print *p, int v);
void mc_grid_centred_sum_lane(struct print *p, int v);
/* an element; the lane's sums, others' */
void mc_grid_centred_sum_add(struct print *p, int v);
void mc_grid_centred_sum_close(struct print *p, int v);
void mc_grid_centred_sum_merge(struct print *p, int v);
void mc_grid_centred_sum_finish(struct print *p, int v);                      /* the value, in its own stage */
void mc_grid_centred_sum_lane_column(struct print *p, int v);                 /* of grid_column.c's neighbours */
void mc_grid_centred_sum_add_column(struct print *p, int v);
void mc_grid_centred_sum_close_column(struct print *p, int v, bool second);   /* one of its two parts */
void mc_grid_centred_sum_finish_column(struct print *p, int v);

/* ---- grid_column_reduce.c: the sums of a walk, or of a walk and of the moments it makes ---- */
extern const char mc_grid_column_reduce[];                                        /* what each NAME_c calls */
void mc_grid_column_reduce_open(struct print *p);
/* of a block's warps, of what its lanes have added up */
void mc_grid_column_reduce_fold(struct print *p);
/* of a block's warps, of what blocks of the launch before have left */
void mc_grid_column_reduce_gather(struct print *p);
/* then the block's, or left and the kernel's end */
void mc_grid_column_reduce_total(struct print *p);
/* the stage's values, of each neighbour */
void mc_grid_column_reduce_finish(struct print *p);

/* ---- grid_column.c ---- */
/* NAME_c; p->k's mode is KERNEL_COLUMN */
void mc_grid_print_column(struct print *p);

/* ---- grid_row_reduce.c ---- */
extern const char mc_grid_meeting[];                                     /* what each NAME_t calls */
/* all lanes of a row get the stage's sums, of a block or of several */
void mc_grid_row_reduce(struct print *p, bool lanes, bool together);

/* ---- grid_row.c ---- */
void mc_grid_print_row(struct print *p, struct mc_grid_row row, char form); /* NAME_r, NAME_t, NAME_q */

#endif

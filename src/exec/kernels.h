/* kernels.h: the kernels of a program, divided among texts that are compiled at the same time. */
#ifndef MC_KERNELS_H
#define MC_KERNELS_H

#include "exec/function.h"

/* By step, the first step whose kernel prints the same.  Both steps use that kernel and its name.  A first
 * step maps to itself; -1: the step has no kernel.  The caller frees the array; NULL: out of memory. */
int *mc_kernels_share(struct mc_program *p);
/* Sets mc_kernel.never: forms that none of the steps that share a kernel needs. never() returns those of one
 * step. */
void mc_kernels_rule_out(const struct mc_program *p, const int *first,
                         unsigned (*never)(const struct mc_step *st));
enum { MC_MOST_TEXTS = 16 };
/* Divides the kernels that `first` names among at most `most` texts (at most MC_MOST_TEXTS): the most
 * expensive kernel first, each to the cheapest text. to[i] is the text of step i; -1: none.  Returns the
 * number of texts. */
int mc_kernels_distribute(const struct mc_program *p, const int *first, int most, int *to);
/* Fills k with the kernels of one text; returns their number. */
int mc_kernels_of(const struct mc_program *p, const int *first, const int *to, int text,
                  struct mc_kernel **k);

/* Independent maps that follow each other may be joint (schedule/joint.c).  first: by step, the first step of
 * those that may be, whatever the shape; -1: the step is not such a map */
void mc_joint_candidates(const struct mc_program *p, int *first);

#endif

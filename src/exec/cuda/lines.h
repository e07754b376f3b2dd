/* lines.h: ops on lines along an axis on a GPU.  lines.c has the table of what computes them. */
#ifndef MC_EXEC_CUDA_LINES_H
#define MC_EXEC_CUDA_LINES_H

#include "exec/cuda/cuda.h"
#include "exec/cuda/lines_args.h"

struct mc_lines_step {
    struct mc_function *f;
    struct mc_shape_plan *p;
    int step, kind;             /* kind: from the table */
    int x, y;                   /* value ids */
    mc_dtype from, to;          /* of x and y */
    int64_t keep;               /* elements of a line of y */
    struct mc_lines_args l;     /* not of mc_each_make; no line and no element is missing */
};
typedef mc_status mc_lines_make(const struct mc_lines_step *s, struct mc_exec **made);
extern const struct mc_cuda_text mc_lines_text, mc_keys_text;

/* running.c: the kinds are sums, products, the largest and the smallest so far */
enum { RUN_SUM, RUN_PRODUCT, RUN_MOST, RUN_LEAST };
mc_lines_make mc_running_make;
/* order.c: values or positions in rising order, or the first positions in rising or falling order */
enum { ORDER_VALUES, ORDER_POSITIONS, ORDER_FIRST, ORDER_LAST };
mc_lines_make mc_order_make;
/* defines what keys.cu needs, for elements of dtype d */
void mc_keys_define(struct mc_str *defines, mc_dtype d, bool falling);
/* first.c: the first positions of long lines; *made stays NULL if they are too many */
mc_lines_make mc_first_make;
/* each.c */
enum { EACH_SEARCH, EACH_PERMUTE, EACH_PICK, EACH_RECUR };
mc_lines_make mc_each_make;

/* Workspace of a step at one shape. */
static inline void mc_lines_workspace(const struct mc_lines_step *s, size_t bytes)
{
    struct mc_step_plan *sp = &s->p->step[s->step];
    sp->workspace = MC_MAX(sp->workspace, bytes);
}

#endif

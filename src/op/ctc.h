/* ctc.h: the costs of connectionist temporal classification, as exported files and GPUs compute them. */
#ifndef MC_OP_CTC_H
#define MC_OP_CTC_H

#include "graph/graph.h"

/* 0: ctc_costs, 1: its gradient, 2: its Hessian times a direction; -1: another op */
int mc_ctc_kind(const struct mc_op *op);
const char *mc_ctc_text(void);                  /* ctc_sums.h without its first comment */
/* The memory for one example at a time. */
mc_status mc_ctc_work(int kind, int64_t steps, int64_t labels, size_t *bytes);
/* The error of what ctc_example returned: the label or length at fault, the classes or steps there are. */
mc_status mc_ctc_failed(int64_t wrong, int64_t value, int64_t limit);

#endif

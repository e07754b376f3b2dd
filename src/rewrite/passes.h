/* passes.h: the passes and their rules, read; between passes.c and the driver. */
#ifndef MC_PASSES_H
#define MC_PASSES_H

#include "rewrite/rewrite.h"

enum { MC_OPS_MOST = 512 };          /* one slot an op, the last for items and users' ops */

struct mc_pass {
    const char *name;
    const struct mc_rule_table *table[16];
    unsigned levels;                 /* bit l: runs at level l of struct mc_rewrite */
};
struct mc_compiled {
    const struct mc_rule *rule;
    const struct mc_pattern *from, *to;
    const struct mc_op *op;          /* of the nodes it is tried on; NULL: all */
    const struct mc_rule_table *table;
    const char *stage;               /* a tag of all rules of the table */
};
mc_status mc_passes_ready(void);     /* reads the tables at first use; again if there was no memory */
const struct mc_pass *mc_pass_at(int i);              /* NULL behind the last */
int mc_op_slot(const struct mc_op *op);
const int *mc_pass_rules(int pass, const struct mc_op *op, int *n);
const struct mc_compiled *mc_compiled_at(int i);
bool mc_rule_mends(int i);           /* of a table that mends formulas */
/* Excluded, or off and not included?  stage: a tag of the rule beside its own; NULL: none. */
bool mc_rule_off(const struct mc_rule *r, const char *stage, const struct mc_rewrite *o);

#endif

/* passes.h: the passes and their compiled rules, as the driver reads them. */
#ifndef MC_PASSES_H
#define MC_PASSES_H

#include "rewrite/rewrite.h"

enum { MC_OPS_MOST = 512 };          /* one slot per op; slot MC_OPS_MOST is for items and users' ops */

struct mc_pass {
    const char *name;
    const struct mc_rule_table *table[16];
    unsigned levels;                 /* bit l: runs at level l of struct mc_rewrite */
};
struct mc_compiled {
    const struct mc_rule *rule;
    const struct mc_pattern *from, *to;
    const struct mc_op *op;          /* the rule is tried on nodes of this op; NULL: on all nodes */
    const struct mc_rule_table *table;
    const char *stage;               /* a tag of all rules of the table */
};
mc_status mc_passes_ready(void);     /* reads the tables at first use; tries again after a failure */
const struct mc_pass *mc_pass_at(int i);              /* NULL after the last */
int mc_op_slot(const struct mc_op *op);
const int *mc_pass_rules(int pass, const struct mc_op *op, int *n);
const struct mc_compiled *mc_compiled_at(int i);
bool mc_rule_mends(int i);           /* does rule i remove a loss of digits? (its table or a tag says so) */
/* Is the rule excluded, or off by default and not included? stage: an additional tag of the rule, or NULL. */
bool mc_rule_off(const struct mc_rule *r, const char *stage, const struct mc_rewrite *o);

#endif

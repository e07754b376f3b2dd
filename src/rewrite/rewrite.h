/* rewrite.h: rules and passes that turn a graph into an equal, faster and more stable one.
 *
 * A rule is a row: left text, right text (or a C function), what it promises, tags.  Rule sets run one
 * after the other, each to its fixed point; whole-graph passes stand between them. */
#ifndef MC_REWRITE_H
#define MC_REWRITE_H

#include "op/op.h"

enum mc_promise {
    EXACT,  /* same bits for every input, -0, inf and NaN included */
    ROUND,  /* same real function, other rounding; stability lives here */
    FINITE  /* may differ on -0, inf or NaN; skipped under strict_math */
};
struct mc_match { mc_node *bound[26]; mc_node *root; mc_graph *g; const unsigned *uses; }; /* 'a'..'z'; uses by node id */
struct mc_rule {
    const char *from, *to;
    enum mc_promise promise;
    const char *tags;                               /* "stabilize", "fast_compile:local_x" */
    bool (*when)(const struct mc_match *m);
    mc_node *(*make)(const struct mc_match *m);     /* NULL back: does not apply after all */
    const char *op;                                 /* instead of from: try make on every node of this op; "*": every node */
    const char *name;                               /* for including/excluding; the left text otherwise */
};
struct mc_rewrite {
    const char *including, *excluding;              /* NULL: the flags' */
    bool strict;
    enum { REWRITE_FULL, REWRITE_FAST } level;      /* FAST: canonical only, for FAST_COMPILE */
    /* called after each pass with the outputs before and after: DEBUG mode compares values */
    mc_status (*watch)(void *arg, const char *pass, int n, mc_node *const *before, mc_node *const *after);
    void *arg;
};
/* Replaces out[0..n) by equal nodes.  A rule that fails is rolled back and reported once (log); the
 * result is then that of the other rules. */
mc_status mc_rewrite(mc_graph *g, int n, mc_node **out, const struct mc_rewrite *o);
int mc_rule_count(void);
const struct mc_rule *mc_rule_at(int i);

#endif

/* pattern.h: one side of a rule as a small tree; between its reader (pattern.c) and match.c.
 *
 * Invariant: a pattern is immutable once read, so threads share it. */
#ifndef MC_PATTERN_H
#define MC_PATTERN_H

#include "rewrite/rewrite.h"

enum pattern_kind { ANY, CONSTANT, NUMBER, CALL };
enum { MOST_ARGS = 4, MOST_ATTRS = 16, MOST_SWAPS = 12, DEEPEST = 64 };

struct pattern_attr {
    int letter;                      /* -1: the attribute must equal `value` */
    struct mc_attr value;
};
struct mc_pattern {
    enum pattern_kind kind;
    int letter;                      /* ANY, CONSTANT */
    double number;                   /* NUMBER */
    bool real, truth;                /* NUMBER: written with a point; as True or False */
    const struct mc_op *op;          /* CALL */
    int nin;
    const struct mc_pattern *in[MOST_ARGS];
    struct pattern_attr attr[MOST_ATTRS];
    int swap;                        /* commutes: number of its choice; -1: does not */
    int nswap;                       /* of the whole, at the root */
    uint32_t nodes, attrs;           /* letters bound, at the root */
};

#endif

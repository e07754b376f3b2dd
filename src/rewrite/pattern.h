/* pattern.h: one side of a rule as a small tree. pattern.c reads it, match.c matches it.
 *
 * Invariant: a pattern is immutable once read, so threads may share it. */
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
    bool real, truth;                /* NUMBER: written with a decimal point; written as True or False */
    const struct mc_op *op;          /* CALL */
    int nin;
    const struct mc_pattern *in[MOST_ARGS];
    struct pattern_attr attr[MOST_ATTRS];
    int swap;                        /* index of this node among the commutative ones; -1: not commutative */
    int nswap;                       /* root only: number of commutative nodes in the pattern */
    uint32_t nodes, attrs;           /* root only: letters bound to nodes and to attributes, as bits */
};

#endif

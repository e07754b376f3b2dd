/* rewrite.h: rules and passes that turn a graph into an equal, faster and more stable one.
 *
 * A rule is a row: left text, right text (or a C function), what it promises, tags.  Passes run one
 * after the other, each to its fixed point.  docs/adding-a-rule.md shows how a row is written. */
#ifndef MC_REWRITE_H
#define MC_REWRITE_H

#include "op/op.h"

enum mc_promise {
    EXACT,  /* same bits for every input, -0, inf and NaN included */
    ROUND,  /* same real function, other rounding; stability lives here */
    FINITE  /* may differ on -0, inf or NaN; skipped for floats under strict_math */
};
/* What the letters of a left side stand for: nodes, or attributes where an attribute stands. */
struct mc_match {
    mc_node *bound[26];
    const struct mc_attr *attr[26];
    /* of the tensor the attribute speaks of: axes count from behind */
    int rank[26];
    mc_node *root;
    mc_graph *g;
    const unsigned *uses;                           /* by node id, as far as known */
    size_t nuses;
};
struct mc_rule {
    const char *from, *to;
    enum mc_promise promise;
    const char *tags;                               /* "stabilize:local_x"; "off": only when included */
    bool (*when)(const struct mc_match *m);
    mc_node *(*make)(const struct mc_match *m);     /* NULL back: does not apply after all */
    /* instead of from: try make on every node of this op; "*": every node */
    const char *op;
    const char *name;                               /* for including/excluding; the left text otherwise */
    /* only if the inner nodes of the left side serve nobody else */
    bool once;
    /* numbers match within two roundings of their dtype, not bit for bit */
    bool near;
    /* rows with make: formulas over x y z it changes, for the tests; ';' between */
    const char *sample;
};
struct mc_rewrite {
    const char *including, *excluding;              /* NULL: the flags' */
    bool strict;
    /* FAST: canonical and stable, for FAST_COMPILE.  COST: what gradients are taken of; see
     * mc_rewrite_cost */
    enum { REWRITE_FULL, REWRITE_FAST, REWRITE_COST } level;
    /* told of each rule that applies: DEBUG mode compares the values of both */
    mc_status (*watch)(void *arg, const struct mc_rule *rule, mc_node *from, mc_node *to);
    void *arg;
    unsigned *fired, *failed;                       /* by rule number, counted up; may be NULL */
};
/* Replaces out[0..n) by equal nodes.  A rule that fails is rolled back and reported once (log); the
 * result is then that of the other rules. */
mc_status mc_rewrite(mc_graph *g, int n, mc_node **out, const struct mc_rewrite *o);
/* Replaces *n by an equal formula that keeps its digits, so that its derivative keeps them too; where no rule
 * applies that mends something (of such a table, or tagged "mends"), *n stays as it is.  Rows tagged
 * "derivative" take no part: they keep the value, but not the derivative at a kink, or what gradients are
 * told to leave out. */
mc_status mc_rewrite_cost(mc_graph *g, mc_node **n);
/* Is a stage ("canonicalize", "fusion", ...) excluded?  excluding: NULL: the flag's. */
bool mc_stage_off(const char *stage, const char *excluding);
/* An error unless each word of the list, joined by ':', names a stage, a rule or a tag; g's own rules count.
 * what: how the error calls the list. */
mc_status mc_rewrite_words(const mc_graph *g, const char *what, const char *list);
int mc_rule_count(void);                            /* -1: no memory to read the tables */
const struct mc_rule *mc_rule_at(int i);
const char *mc_rule_name(const struct mc_rule *r);

/* ---- pattern.c, match.c: sides of rules ---- */
struct mc_pattern;
/* Reads one side; g's arena holds it, g takes the blame.  left: NULL while reading a left side; a right
 * side may use no letters but those of its left one.  NULL back: g has the error. */
const struct mc_pattern *mc_pattern_parse(mc_graph *g, const char *text, const struct mc_pattern *left);
const struct mc_op *mc_pattern_root(const struct mc_pattern *p);   /* NULL: a letter or a number */
/* Rejects most nodes by the ops of their inputs. */
bool mc_pattern_may_match(const struct mc_pattern *p, const mc_node *n);
/* Of a node that may match: finds letters that satisfy the rule's condition too. */
bool mc_pattern_match(const struct mc_pattern *p, const struct mc_rule *r, mc_node *n, struct mc_match *m);
/* NULL: cannot be said of this match */
mc_node *mc_pattern_build(const struct mc_pattern *p, const struct mc_match *m);

/* ---- tables ---- */
/* What a rule in C asks of a node: does it look like this left side?  Read with the rules of its table, so
 * that asking costs what a rule costs that does not match: mostly one comparison of ops. */
struct mc_probe { const char *text; const struct mc_pattern *pattern; };
struct mc_rule_table {
    const struct mc_rule *row;
    int n;
    bool mends;                                     /* formulas that lose digits as they are written */
    struct mc_probe *probe;                         /* the pattern is filled in when the rules are read */
    int nprobe;
};
extern const struct mc_rule_table mc_rules_fold, mc_rules_shape, mc_rules_index, mc_rules_update,
    mc_rules_join, mc_rules_canon, mc_rules_product, mc_rules_conv, mc_rules_pool, mc_rules_reduce,
    mc_rules_centred, mc_rules_recognise, mc_rules_stable, mc_rules_special, mc_rules_late;

/* ---- user.c: rules of one graph, newest last; they live in its arena ---- */
struct mc_user_rule {
    struct mc_rule rule;
    const struct mc_pattern *from, *to;
    struct mc_user_rule *next;
};

mc_status mc_rewrite_share(mc_graph *g, const mc_graph *from);    /* the rules of another graph, read anew */

/* ---- for rules in C ---- */
/* its letters in *m; NULL: they do not matter */
bool mc_matches(const struct mc_probe *p, const mc_node *n, struct mc_match *m);
static inline mc_node *mc_letter(const struct mc_match *m, char c) { return m->bound[c - 'a']; }
/* May n be dropped or changed with nobody else noticing? */
static inline bool mc_used_once(const struct mc_match *m, const mc_node *n)
{
    return n->id >= m->nuses || m->uses[n->id] <= 1;
}
double mc_letter_number(const struct mc_match *m, char c);         /* of a constant letter */
/* May the letter be added, or multiplied with, later than the formula says?  Not if what comes between might
 * overflow. */
bool mc_letter_may_wait(const struct mc_match *m, char c);
/* x in the shape of n: x itself if it has it, else an alloc; NULL: it cannot. */
mc_node *mc_fit(mc_node *n, mc_node *x);
/* of a result, over sizes of the inputs; NULL: none */
mc_node *mc_lifted_size(mc_node *n, int item, int axis);
/* is the number x's size, as far as can be seen? */
bool mc_size_is(mc_node *size, mc_node *x, int axis);
mc_node *mc_shape_vector(mc_node *n);
mc_node *mc_op1(const char *op, mc_node *a);
mc_node *mc_op2(const char *op, mc_node *a, mc_node *b);
mc_node *mc_shuffle(mc_node *x, int rank, const int64_t *order);   /* dimshuffle */

#endif

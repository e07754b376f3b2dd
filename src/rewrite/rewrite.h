/* rewrite.h: rules and passes that turn a graph into an equal one that is faster and more stable.
 *
 * A rule is a row: left side, right side (text or a C function), promise, tags. Passes run one after the
 * other, each to its fixed point. docs/adding-a-rule.md shows how to write a row. */
#ifndef MC_REWRITE_H
#define MC_REWRITE_H

#include "op/op.h"
#include "op/size.h"

enum mc_promise {
    EXACT,  /* same bits for every input, -0, inf and NaN included */
    ROUND,  /* same real function, other rounding; rules for stability promise this */
    FINITE  /* may differ on -0, inf or NaN; skipped for floats under strict_math */
};
/* The nodes and attributes that the letters of a left side are bound to. */
struct mc_match {
    mc_node *bound[26];
    const struct mc_attr *attr[26];
    int rank[26];                                   /* of the tensor of attr, to resolve negative axes */
    mc_node *root;
    mc_graph *g;
    const unsigned *uses;                           /* number of users by node id, for the first nuses */
    size_t nuses;
};
struct mc_rule {
    const char *from, *to;
    enum mc_promise promise;
    const char *tags;                               /* "stabilize:local_x"; "off": only when included */
    bool (*when)(const struct mc_match *m);
    mc_node *(*make)(const struct mc_match *m);     /* returns NULL if the rule does not apply */
    /* instead of from: try make on every node of this op; "*": every node */
    const char *op;
    const char *name;                               /* for including/excluding; default: the left side */
    /* applies only if the inner nodes of the left side have no other user */
    bool once;
    /* numbers match within two roundings of their dtype, not bit for bit */
    bool near;
    /* rows with make: formulas over x, y, z that the rule changes, separated by ';', for the tests */
    const char *sample;
};
struct mc_rewrite {
    const char *including, *excluding;              /* NULL: the values of the flags */
    bool strict;
    /* FAST: canonical and stable only, for FAST_COMPILE. COST: for the formula that a gradient is taken of,
     * see mc_rewrite_cost */
    enum { REWRITE_FULL, REWRITE_FAST, REWRITE_COST } level;
    /* called for each rule that applies: DEBUG mode compares the values of `from` and `to` */
    mc_status (*watch)(void *arg, const struct mc_rule *rule, mc_node *from, mc_node *to);
    void *arg;
    unsigned *fired, *failed;                       /* counters by rule number; may be NULL */
};
/* Replaces out[0..n) by equal nodes. A rule that fails is rolled back and logged once; the other rules still
 * apply. */
mc_status mc_rewrite(mc_graph *g, int n, mc_node **out, const struct mc_rewrite *o);
/* Replaces *n by its stable form, so that its derivative is stable too. *n stays as it is unless a rule
 * that removes a loss of digits applies (a rule of a table with `mends`, or with the tag "mends"). Rows
 * tagged "derivative" are excluded: they keep the value but may change the derivative, at a kink or by
 * dropping an op such as consider_constant. */
mc_status mc_rewrite_cost(mc_graph *g, mc_node **n);
/* Is a stage ("canonicalize", "fusion", ...) excluded? excluding: NULL for the value of the flag. */
bool mc_stage_off(const char *stage, const char *excluding);
/* Fails unless each word of the list, separated by ':', names a stage, a rule or a tag, including the rules
 * of g. what: the name of the list in the error. */
mc_status mc_rewrite_words(const mc_graph *g, const char *what, const char *list);
int mc_rule_count(void);                            /* -1: no memory to read the tables */
const struct mc_rule *mc_rule_at(int i);
const char *mc_rule_name(const struct mc_rule *r);

/* ---- pattern.c, match.c: sides of rules ---- */
struct mc_pattern;
/* Reads one side into g's arena. left: NULL when reading a left side; a right side may use only the letters
 * of its left side. Returns NULL on failure; the error is set on g. */
const struct mc_pattern *mc_pattern_parse(mc_graph *g, const char *text, const struct mc_pattern *left);
const struct mc_op *mc_pattern_root(const struct mc_pattern *p);   /* NULL: a letter or a number */
/* A quick test that rejects most nodes by the ops of their inputs. */
bool mc_pattern_may_match(const struct mc_pattern *p, const mc_node *n);
/* For a node that passed that test: binds the letters so that the rule's `when` holds too. */
bool mc_pattern_match(const struct mc_pattern *p, const struct mc_rule *r, mc_node *n, struct mc_match *m);
/* builds a right side; NULL: an attribute of the match does not fit */
mc_node *mc_pattern_build(const struct mc_pattern *p, const struct mc_match *m);

/* ---- tables ---- */
/* A pattern that a rule in C matches nodes against. It is read with the rules of its table. Matching a node
 * that does not fit costs mostly one comparison of ops. */
struct mc_probe { const char *text; const struct mc_pattern *pattern; };
struct mc_rule_table {
    const struct mc_rule *row;
    int n;
    bool mends;                                     /* its rules remove a loss of digits */
    struct mc_probe *probe;                         /* the pattern is filled in when the rules are read */
    int nprobe;
};
extern const struct mc_rule_table mc_rules_fold, mc_rules_shape, mc_rules_index, mc_rules_update,
    mc_rules_join, mc_rules_canon, mc_rules_product, mc_rules_conv, mc_rules_pool, mc_rules_reduce,
    mc_rules_centred, mc_rules_recognise, mc_rules_stable, mc_rules_special, mc_rules_late;

/* ---- user.c: a graph's own rules, newest last, in its arena ---- */
struct mc_user_rule {
    struct mc_rule rule;
    const struct mc_pattern *from, *to;
    struct mc_user_rule *next;
};

/* merge_loops.c.  Replaces out[] */
mc_status mc_loops_merge(int n, mc_node **out);
struct mc_loop;
/* loop_rows.c: x[i] with an i that steps change becomes a gather.  Replaces result[], the body's results */
mc_status mc_loop_rows(const struct mc_loop *l, const struct mc_body *b, mc_node **result);
/* one_loop.c: which inputs of loop n it needs, if the results that are `live` are read */
mc_status mc_loop_needs(const mc_node *n, const bool *live, bool *needed);
/* Its results, where its inputs became in[]; not whole: only what nothing reads goes. */
mc_status mc_loop_simplify(mc_graph *g, const mc_node *n, mc_node *const *in, const bool *live, bool whole,
                           mc_node **new);
/* loops.c; not whole: only what nothing reads goes.  Replaces out[] */
mc_status mc_loops_simplify(mc_graph *g, int n, mc_node **out, bool whole);
/* branches.c: choices become branches.  Replaces out[] */
mc_status mc_branches_make(mc_graph *g, int n, mc_node **out);
mc_status mc_rewrite_share(mc_graph *g, const mc_graph *from);    /* copies the rules of another graph */

/* ---- for rules in C ---- */
/* m: receives the letters; may be NULL */
bool mc_matches(const struct mc_probe *p, const mc_node *n, struct mc_match *m);
static inline mc_node *mc_letter(const struct mc_match *m, char c) { return m->bound[c - 'a']; }
/* Has n at most one user, so that it may be dropped or changed? */
static inline bool mc_used_once(const struct mc_match *m, const mc_node *n)
{
    return n->id >= m->nuses || m->uses[n->id] <= 1;
}
double mc_letter_number(const struct mc_match *m, char c);         /* of a constant letter */
/* May the letter be added or multiplied later than in the formula, without an overflow in between? */
bool mc_letter_may_wait(const struct mc_match *m, char c);
/* x in the shape of n: x itself if it has that shape, else an alloc; NULL if x does not fit. */
mc_node *mc_fit(mc_node *n, mc_node *x);
/* is `size` provably the size of x along the axis? */
bool mc_size_is(mc_node *size, mc_node *x, int axis);
mc_node *mc_shape_vector(mc_node *n);
mc_node *mc_op1(const char *op, mc_node *a);
mc_node *mc_op2(const char *op, mc_node *a, mc_node *b);
mc_node *mc_shuffle(mc_node *x, int rank, const int64_t *order);   /* dimshuffle */

#endif

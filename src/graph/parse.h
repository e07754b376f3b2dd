/* parse.h: the parser of formulas, shared by expressions, statements and attributes. */
#ifndef MC_PARSE_H
#define MC_PARSE_H

#include "graph/graph.h"

enum tok_kind { T_END, T_NAME, T_NUMBER, T_STRING, T_OP };
struct tok {
    enum tok_kind kind;
    size_t at, n;          /* position in the text, and length */
    char op[4];            /* T_OP: "**", "<=", "+" */
};
struct parser {
    mc_graph *g;
    const char *text;
    size_t at;             /* end of tok */
    struct tok tok;        /* the current token */
    const struct mc_bind *bind;
    int nbind, depth, brackets;
    bool failed;
    const struct mc_desc *desc; /* descriptors that have names, the last one first (parse_desc.h) */
    struct mc_source_location location;
    const struct mc_source_location *outer;
};
/* A whole number of either sign and at most 1024 bits. */
enum { WHOLE_LIMBS = 32 };
struct whole {
    bool neg;
    int n;                 /* limbs in use, the lowest first */
    uint32_t limb[WHOLE_LIMBS];
};
/* The value of an expression before it is known whether a node or an attribute is needed. */
enum val_kind {
    V_NODE, V_INT, V_WIDE, V_REAL, V_BOOL, V_NONE, V_TEXT, V_LIST, V_SLICE, V_ELLIPSIS, V_ATTR, V_DESC
};
struct val {
    enum val_kind kind;
    mc_node *node;
    int64_t i;             /* V_INT, V_BOOL */
    double real;           /* the nearest double of a number */
    const struct whole *wide; /* V_WIDE: a literal that int64 does not hold */
    int dtype;             /* of a number with a suffix; otherwise -1 */
    const char *text;      /* in the graph's arena; V_DESC: the function that made it */
    const struct mc_attr *attr;
    bool several;          /* V_LIST: several results, not the elements of one tensor */
    struct val *item;      /* V_LIST; V_SLICE: start, stop, step; V_DESC: names and values in turn */
    int n;
    size_t at;             /* start in the text, for carets */
};

/* lex.c */
void mc_parse_begin(struct parser *p, mc_graph *g, const char *text, const struct mc_bind *bind, int nbind);
void mc_parse_end(struct parser *p);
void mc_parse_next(struct parser *p);
bool mc_parse_is(const struct parser *p, const char *op);
bool mc_parse_take(struct parser *p, const char *op);
bool mc_parse_word(const struct parser *p, const char *word);
void mc_parse_expect(struct parser *p, const char *op);
void mc_parse_separator(struct parser *p, const char *close); /* takes a comma, unless the list ends here */
char *mc_parse_copy(struct parser *p, const struct tok *t);
void mc_parse_fail(struct parser *p, size_t at, const char *fmt, ...) MC_PRINTF(3, 4);
/* the same for mistakes other than of syntax */
void mc_parse_refuse(struct parser *p, size_t at, mc_status code, const char *fmt, ...) MC_PRINTF(4, 5);
void mc_parse_memory(struct parser *p); /* sets the graph's error to "out of memory" */
struct val mc_parse_number(struct parser *p);
struct val mc_parse_string(struct parser *p);
/* bigint.c */
enum whole_result { WHOLE_NOT, WHOLE_MADE, WHOLE_BOOL, WHOLE_FAULT };
struct whole mc_bigint_of(int64_t v);
struct whole mc_bigint_neg(const struct whole *a);
/* false: no digits, or more than 1024 bits */
bool mc_bigint_read(const char *digits, int base, struct whole *out);
bool mc_bigint_i64(const struct whole *a, int64_t *out);             /* false: it does not fit */
bool mc_bigint_u64(const struct whole *a, uint64_t *out);
double mc_bigint_real(const struct whole *a);
int mc_bigint_compare(const struct whole *a, const struct whole *b);
/* Applies an op to two whole numbers; WHOLE_NOT: not an op on whole numbers, or the result is not whole. */
enum whole_result mc_bigint_op(const char *op, const struct whole *a, const struct whole *b,
                               struct whole *out, const char **fault);
/* parse_value.c */
bool mc_val_is_number(const struct val *v);                          /* without a suffix */
/* false: it is not a whole number without a suffix */
bool mc_val_bigint(const struct val *v, struct whole *out);
struct val mc_val_of_bigint(struct parser *p, const struct whole *w, size_t at);
struct val mc_val_of(mc_node *n, size_t at);
struct val mc_val_list(struct parser *p, const struct val *item, int n, size_t at);
/* the parser stops if n is the error node */
struct val mc_val_made(struct parser *p, mc_node *n, size_t at);
mc_node *mc_val_node(struct parser *p, const struct val *v);
/* after "name("; self: the value before the dot, or NULL */
struct val mc_parse_call(struct parser *p, const char *name, const struct val *self, size_t at);
const struct mc_op *mc_parse_op(struct parser *p, const char *name);       /* users' ops first */
/* parse_initial.c: parses the text after "shared name type =".  Returns the value, and in *rule the text that
 * is printed; NULL: the parse failed. */
mc_array *mc_parse_initial(struct parser *p, const char *name, const struct mc_type *t, char **rule);
/* parse_scan.c: after "scan(" and its like */
bool mc_parse_is_loop(const char *name);
struct val mc_parse_scan(struct parser *p, const char *word, size_t at);
/* primary.c */
struct val mc_parse_primary(struct parser *p);
/* parse.c */
struct val mc_parse_expr(struct parser *p);
/* the op of literals is a literal */
struct val mc_parse_apply(struct parser *p, const char *name, const struct val *arg, int n, size_t at);
bool mc_parse_skip(struct parser *p); /* skips line ends and semicolons */
/* attr.c */
bool mc_val_attr(struct parser *p, const struct mc_op *op, const struct mc_param *param, const struct val *v,
                 struct mc_attr *out);
const struct mc_param *mc_attr_missing(const struct mc_op *op, const bool *given);
/* index.c: x[...] */
mc_node *mc_index_apply(struct parser *p, mc_node *x, struct val *item, int n);
#endif

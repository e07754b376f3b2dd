/* graph.h: nodes, their types, and the text form.
 *
 * A graph is an arena of immutable nodes.  Two nodes with the same op, inputs and attributes are one
 * node, so "the same expression" is pointer equality everywhere above.  A node only ever points at
 * older nodes (smaller ids): walking ids upwards is a topological order, and no traversal recurses.
 *
 * What an op is stands here (struct mc_op); which ops there are stands in src/op. */
#ifndef MC_GRAPH_H
#define MC_GRAPH_H

#include "value/value.h"

/* ---- types: dtype, rank, and sizes where known ---- */
struct mc_type {
    mc_dtype dtype;
    int rank;
    int64_t dims[MC_MAX_RANK]; /* -1: not known before the call; 1: broadcasts */
};
struct mc_type mc_type_make(mc_dtype d, int rank, const int64_t *dims); /* dims NULL: unknown */
bool mc_type_equal(const struct mc_type *a, const struct mc_type *b);
void mc_type_text(struct mc_str *out, const struct mc_type *t);          /* "float32[?, 784]" */

/* ---- attributes: what an op knows besides its inputs ---- */
enum mc_attr_kind {
    ATTR_TENSOR,   /* not an attribute: a node */
    ATTR_TENSORS,  /* all further positional arguments are nodes */
    ATTR_INT, ATTR_BOOL, ATTR_REAL, ATTR_DTYPE, ATTR_TEXT,
    ATTR_INTS,     /* a list */
    ATTR_AXES,     /* None (all), one axis or a list; normalised to sorted non-negative by infer helpers */
    ATTR_BORDER    /* a word, a number, a list, or a list of pairs, which is kept flat */
};
struct mc_attr {
    enum mc_attr_kind kind;
    bool none;             /* None was given, or it is the default */
    int n;                 /* of ints; 1 for INT, BOOL, DTYPE */
    int64_t *ints;
    double real;
    const char *text;
};
bool mc_attr_equal(const struct mc_attr *a, const struct mc_attr *b);
struct mc_param {          /* one parameter of an op, from its signature */
    const char *name;
    enum mc_attr_kind kind;
    bool optional;         /* "b=None" for tensors; has a default for attributes */
    struct mc_attr dflt;
};
struct mc_signature {
    int nparam, ntensor, nattr; /* ntensor: tensor parameters, the variadic one not counted */
    bool variadic;
    const struct mc_param *param; /* tensors first, then attributes */
};

/* ---- ops ---- */
enum {
    OP_COMMUTES   = 1 << 0,  /* a op b == b op a */
    /* strictly increasing in input 0, the others held; with an axis: the largest of a line stays the
     * largest */
    OP_ASSOCIATES = 1 << 1,
    OP_MONOTONE   = 1 << 2,
    OP_COSTLY     = 1 << 3,  /* worth keeping rather than computing again: exp, tanh, ... */
    OP_IMPURE     = 1 << 4,  /* never shared, never folded: print_, assert_ */
    OP_VIEW       = 1 << 5,  /* result i may be a view of input 0's memory */
    OP_EXPANDS    = 1 << 6,  /* a formula that stays a node until lowering */
    OP_HIDDEN     = 1 << 7,  /* made by passes only: no public function, not in the manual */
    OP_NOFOLD     = 1 << 8,  /* result much larger than the inputs */
    OP_RANDOM     = 1 << 9,
    OP_LEAF       = 1 << 10, /* input, constant, shared: made by their own functions */
    OP_HEAVY      = 1 << 12, /* floats: a family of solvers does it, by the planner's choice */
    OP_REDUCES    = 1 << 11, /* attribute 0 is axis, attribute 1 is keepdims */
    /* inputs and result have one shape; attribute 0 is axis, each line along it is made of such lines
     * alone */
    OP_LINES      = 1 << 13,
    OP_TRANSFER   = 1 << 14, /* only says where a value shall lie */
    OP_STAYS      = 1 << 15, /* a result of a function that is made by it stays on the device */
    OP_DIVIDES    = 1 << 16, /* as slow as a division */
    /* the result is an operand; of equal ones, such as 0 and -0, their order says which */
    /* near a root or a pole the last digit of the argument moves many of the result's */
    OP_PICKS      = 1 << 17,
    OP_ROOTS      = 1 << 18,
    OP_BLOCKS     = 1 << 19, /* heavy: its result is made block by block, and a kernel may finish each */
    OP_MATMUL     = 1 << 20, /* products of matrices: of two matrices, or of two stacks of them */
    /* linear in the inputs so marked together, the others held; ask mc_op_linear, which knows */
    OP_LINEAR_A   = 1 << 21,
    OP_LINEAR_B   = 1 << 22, /* that an op which commutes is linear in its inputs either way round */
    /* never decreases when input 0 increases, the others held, but may stay the same */
    OP_LINEAR_C   = 1 << 23,
    OP_RISES      = 1 << 24,
    OP_EXPONENTIAL = 1 << 25, /* e to the a */
    OP_HAS_LOG    = 1 << 26, /* rules_stable.c knows the logarithm of it without computing it: exp, sigmoid */
    OP_DISTRIBUTION = 1 << 27, /* probabilities: its gradient by its input is a multiple of the result */
    OP_SIGN       = 1 << 28  /* -1, 0 or 1; NaN where input 0 is NaN */
};
/* What a reduction makes of the elements; any other op: FOLD_NONE. */
enum mc_fold { FOLD_NONE, FOLD_SUM, FOLD_PRODUCT, FOLD_MOST, FOLD_LEAST, FOLD_ANY, FOLD_ALL, FOLD_POSITION /* of the largest */ };
/* The family of solvers that does an op of OP_HEAVY. */
enum mc_solvers { SOLVERS_NONE, SOLVERS_GEMM, SOLVERS_CONV, SOLVERS_POOL, SOLVERS_NORM };
/* What an op of OP_LINES makes of each line, where that is one of these. */
enum mc_line { LINE_OTHER, LINE_SUMS, LINE_PRODUCTS, LINE_SORTED, LINE_ORDER /* the positions that sort it */ };
/* The ops in which sizes, views and dtypes are said: passes must know what such a node stands for.  All
 * others are FORM_NONE, and are known by their flags alone. */
enum mc_op_form {
    FORM_NONE,
    FORM_CAST, FORM_DIMSHUFFLE, FORM_RESHAPE, FORM_SUBTENSOR, FORM_GATHER, FORM_JOIN, FORM_STACK,
    FORM_SUBTENSOR_UPDATE, FORM_GATHER_UPDATE, /* x, of which a part is set or added to */
    FORM_SPECIFY,          /* x itself, whose sizes are promised and checked */
    FORM_UNBROADCAST,      /* x itself, whose axes of size 1 broadcast no more */
    FORM_FORWARD,          /* x itself, but its gradient is another */
    FORM_SIZE, FORM_SHAPE, FORM_ALLOC, FORM_ARANGE,
    FORM_CHECK             /* x itself; an error where an index is out of range */
};
enum mc_typing {           /* how a scalar op's result dtype follows from its inputs' */
    TYPE_SAME,             /* promote */
    TYPE_NUMBER,           /* like SAME, but not defined for bool */
    TYPE_POWER,            /* like SAME, but an integer to a constant negative power is refused */
    TYPE_FLOAT,            /* promote, integers become floats */
    TYPE_DIV,              /* like FLOAT, but two integers give floatX */
    TYPE_BOOL,             /* computed in the promoted type, result bool */
    TYPE_WHERE,            /* input 0 becomes bool, the others promote */
    TYPE_BITS,             /* integers and bool only */
    TYPE_INT64
};
/* One op's arguments at the time its type is inferred: while building (sizes may be -1, values only
 * of constants) and again when a plan is made (all sizes known, values where host code needs them). */
struct mc_infer {
    const struct mc_op *op;
    mc_graph *graph;                /* NULL when planning */
    int nin;
    const struct mc_type *in;
    const mc_array *const *value;   /* value[i] may be NULL */
    mc_node *const *node;           /* the inputs themselves; NULL when planning */
    const struct mc_attr *attr;
    int nout;                       /* set by infer when it is not op->nout */
    struct mc_type out[16];
};
struct mc_op {
    const char *name;
    const char *params;             /* "x, axis=None:axes, keepdims=False:bool" */
    unsigned flags;
    enum mc_op_form form;
    enum mc_fold fold;
    enum mc_line line;
    enum mc_solvers solvers;
    int nout;                       /* results; more than one: the node is a tuple of items */
    mc_status (*infer)(struct mc_infer *in);
    /* The symbolic size of one axis of a result, as a node over the inputs' sizes; NULL: not known. */
    mc_node *(*size)(mc_node *n, int item, int axis);
    /* The reference: in[] as they come (any strides), out[] made to the inferred type, C order. */
    mc_status (*eval)(const mc_node *n, mc_array *const *in, mc_array *const *out);
    /* d cost / d input `wrt`, given g[i] = d cost / d result i (NULL: none).  NULL back: disconnected. */
    mc_node *(*grad)(mc_node *n, int wrt, mc_node *const *g);
    /* the same as formulas over parameter names, y and g; used if grad is NULL */
    const char *dx[4];
    const char *formula;            /* what a formula op stands for, over parameter names */
    /* Made of other ops at once, in C: no node of this op exists.  in[i] is NULL for an optional one not
     * given. */
    mc_node *(*build)(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr);
    const char *doc;
    /* "x = [1, 2]; sum(x)", for docs/api; NULL: one is found (src/inspect/pages.c) */
    const char *example;
    /* scalar ops only */
    enum mc_typing typing;
    int arity;                      /* > 0: a scalar op */
    const char *code, *icode;       /* C expression over a, b, c for floats; for integers (NULL: the same) */
    double lo, hi;                  /* test domain */
    bool (*print)(struct mc_str *out, const mc_node *n,
                  void (*arg)(struct mc_str *out, const mc_node *n, int i, void *ctx),
                  void *ctx); /* own notation, e.g. x[1:2]; NULL, or false and nothing printed: name(args) */
    int index;                      /* in the table of ops, set at start */
    const struct mc_signature *sig; /* parsed from params at start */
    const struct mc_custom *custom; /* a user's op */
    /* bit i: input i's value decides the result's sizes; bit 31: all from input 1 on */
    unsigned shape_args;
    /* bit i: input i has no gradient (custom and structured ops without grad) */
    unsigned char disconnected;
};
/* What a graph is told of the layers above it when it is made. */
struct mc_language {
    /* of the table of ops, signatures parsed; NULL: there is none */
    const struct mc_op *(*find)(const char *name);
    const struct mc_op *(*op)(int i);                /* NULL: beyond the last */
    mc_node *(*expand)(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                       const struct mc_attr *attr);
    void (*forget)(struct mc_op *op);                /* a user's op: one owner less */
    /* of formulas; all NULL: these words are an error in formulas of this graph */
    mc_status (*grads)(mc_node *cost, int n, mc_node *const *wrt, mc_node **grads, const mc_grad_spec *spec);
    mc_node *(*Lop)(mc_node *f, mc_node *wrt, mc_node *eval),
        *(*Rop)(mc_node *f, mc_node *wrt, mc_node *eval);
};
mc_status mc_signature_parse(const char *params, struct mc_arena *a, struct mc_signature *out);

/* ---- nodes ---- */
/* What nodes were made for, in words for people (label.c).  Nothing is computed by it. */
struct mc_label {
    const char *text;              /* as mc_label said: "conv1"; NULL: nothing was said */
    /* a gradient's: the variable that it is the gradient of; NULL: of what is between */
    const char *of;
    bool gradient;                 /* it was made by taking a gradient through a node with this text */
    bool differentiated;           /* not a gradient's: there is one with this text */
};
struct mc_node {
    const struct mc_op *op;
    mc_graph *graph;
    uint32_t id;
    int nin;
    mc_node **in;
    const struct mc_attr *attr;    /* op->sig->nattr of them */
    struct mc_type type;           /* of the only result; of item 0 for a tuple */
    int nout;
    const struct mc_type *types;   /* of all results; &type when there is one */
    int item;                      /* "item" nodes: which result of in[0] */
    bool weak;                     /* a literal without dtype: takes the other operand's */
    mc_array *value;               /* constants */
    struct mc_shared *shared;
    const char *name;              /* NULL: none */
    /* x, where this is x[...]: the last such x if there are several; NULL: none */
    mc_node *indexed;
    const char *file;              /* where the user made it; NULL: unknown */
    int line;
    const struct mc_label *label;  /* NULL: none */
    uint64_t hash;
};
struct mc_shared {
    _Atomic int refs;
    char *name;
    struct mc_type type;           /* what may be put in */
    mc_array *value;
    pthread_mutex_t lock;
    uint64_t version;              /* counts sets: plans watch it */
    int random;                    /* next stream number, for random streams */
    bool is_random;
    char *initial;                 /* what its declaration says behind =; NULL: nothing */
};
struct mc_graph {
    const struct mc_language *language;
    struct mc_arena arena;
    VEC(mc_node *) nodes;          /* by id */
    struct { uint32_t *slot; size_t cap, n; } cons;
    struct mc_dict names;          /* name -> node */
    VEC(struct mc_shared *) shareds;
    VEC(struct mc_op *) custom;
    VEC(struct mc_default_update) defaults;
    /* what gradients sent to inputs before (grad.c): asking for one more is cheap */
    struct mc_map sent;
    struct mc_map taken;           /* what gradients are of (twice.c), by their ids */
    struct mc_user_rule *rules;    /* mc_rewrite_add's, in the arena */
    mc_node *error;                /* the error node, made first so that it is always there */
    mc_status status;
    char *message;                 /* the first mistake */
    const struct mc_label *label;  /* of nodes that are made now; NULL: none */
    struct mc_dict labels;         /* all of them */
    const struct mc_source_location *place;  /* the formula being read, for carets; NULL: none */
};
mc_graph *mc_graph_make(const struct mc_language *language);
static inline const struct mc_op *mc_op_named(const mc_graph *g, const char *name)
{
    return g->language->find(name);
}
struct mc_source_location { const char *text; size_t at; };
struct mc_default_update { struct mc_shared *shared; mc_node *value; };

/* graph.c, shared.c, node.c */
extern const struct mc_op mc_op_error, mc_op_input, mc_op_constant, mc_op_shared, mc_op_item;
mc_node *mc_node_make(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                      const struct mc_attr *attr);
mc_node *mc_node_leaf(mc_graph *g, struct mc_node leaf);
mc_node *mc_node_no_memory(mc_graph *g);                               /* the error node, for want of it */
/* leaf.c */
/* takes value over; equal values shared */
mc_node *mc_node_const(mc_graph *g, mc_array *value, bool weak);
mc_node *mc_node_number(mc_graph *g, mc_dtype d, double v);           /* exact for |v| < 2^53 */
mc_node *mc_node_int(mc_graph *g, int64_t v);                         /* int64 scalar */
mc_node *mc_node_ints(mc_graph *g, int n, const int64_t *v);          /* int64 vector */
mc_node *mc_node_like(mc_node *like, double v);                       /* scalar constant of like's dtype */
mc_node *mc_shared_leaf(mc_graph *g, struct mc_shared *s);
/* an input without a name, to be replaced later */
mc_node *mc_node_blank(mc_graph *g, const struct mc_type *t);
mc_node *mc_node_fail(mc_graph *g, mc_status code, const char *fmt, ...) MC_PRINTF(3, 4); /* the error node */
static inline bool mc_is_error(const mc_node *n) { return !n || n == n->graph->error; }
/* Is each element of the result made of one element of each input? */
static inline bool mc_is_elementwise(const mc_node *n)
{
    return n->op->arity > 0 || n->op->form == FORM_CAST;
}
/* Does it look at no element of its input, but at its sizes? */
static inline bool mc_reads_type_only(const mc_node *n)
{
    return n->op->form == FORM_SIZE || n->op->form == FORM_SHAPE;
}
static inline bool mc_is_const(const mc_node *n) { return n->op == &mc_op_constant; }
/* a constant all of whose elements are v (broadcasts too) */
bool mc_const_number(const mc_node *n, double *v);
/* small integer constant, rank 0 or 1 */
bool mc_const_ints(const mc_node *n, int64_t *v, int max, int *count);
mc_graph *mc_graph_of(int n, mc_node *const *nodes); /* the first non-error's graph; NULL if there is none */
/* Where the user is: the wrappers of monochord_ops.h set it, nodes and messages carry it. */
MC_API void mc_here(const char *file, int line);
void mc_here_text(char *text, size_t n);             /* "\n    at train.c:17", "" where that is not known */
/* All nodes the outputs need, in id order (a topological order); the array is the caller's (mc_free). */
mc_node **mc_graph_reach(int n, mc_node *const *outputs, size_t *count);

/* apply.c: the one way to apply an op with its typing, weak literals, casts and broadcasting checks */
mc_node *mc_apply(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                  const struct mc_attr *attr);
/* attributes have their defaults */
mc_node *mc_apply_plain(mc_graph *g, const char *name, int nin, mc_node *const *in);
mc_node *mc_cast_to(mc_node *x, mc_dtype d);         /* x itself if it has that dtype */
/* of a whole literal: the smallest signed one that holds it */
mc_dtype mc_literal_dtype(int64_t v);
bool mc_literal_fits(int64_t v, mc_dtype d);         /* d an integer dtype; false for others */
/* the dtype in which in[from..] meet; literals follow the others */
mc_dtype mc_meet(int nin, mc_node *const *in, int from);
mc_node *mc_size_of(mc_node *x, int axis);           /* int64 scalar: a constant if known */
mc_node *mc_shape_of(mc_node *x);                    /* int64 vector */
/* sizes only */
mc_status mc_broadcast(const struct mc_op *op, int nin, const struct mc_type *in, struct mc_type *out);

/* parse.c: formulas.  mc_expr evaluates one with names bound to nodes or attributes:
 *     mc_expr(g, "dot(g, W.T)", (struct mc_bind[]){ { "g", gy }, { "W", w } }, 2) */
struct mc_bind { const char *name; mc_node *node; const struct mc_attr *attr; };
mc_node *mc_expr(mc_graph *g, const char *text, const struct mc_bind *bind, int nbind);
/* several nodes as one value: a formula with several results */
extern const struct mc_op mc_op_tuple;
/* Several values "a, b" or statements "W = e; b = e2": called for each; see struct mc_item_text. */
struct mc_named { char *name; bool borrow, has_default; double dflt; mc_node *node; };
mc_status mc_parse_list(mc_graph *g, const char *text, bool statements, struct mc_named **out, int *n);
void mc_named_free(struct mc_named *v, int n);
/* parse_attr.c: an op by name, its attributes as in a formula */
mc_node *mc_call_op(mc_graph *g, const char *name, int nin, mc_node *const *in, const char *attrs, ...)
    MC_PRINTF(5, 6);

/* index.c: attribute "spec" of subtensor and inc_subtensor: SPEC_N numbers for each axis of x.  A kind
 * says whether a bound is absent, the number itself, or the op's input of that number. */
enum {
    SPEC_INDEX,
    SPEC_START_KIND,
    SPEC_START,
    SPEC_STOP_KIND,
    SPEC_STOP,
    SPEC_STEP_KIND,
    SPEC_STEP,
    SPEC_N
};
enum { BOUND_NONE, BOUND_CONST, BOUND_INPUT };
/* x with the region that `region` (an indexing of x) names set to y, or increased by it. */
mc_node *mc_index_update(mc_node *region, mc_node *y, bool set);

/* print.c */
void mc_attr_defaults(const struct mc_op *op, struct mc_attr *out);
void mc_attr_text(struct mc_str *out, const struct mc_attr *a);
/* nested up to depth, then ... ; <0: all */
void mc_node_print(struct mc_str *out, const mc_node *n, int depth);
/* custom.c: users' ops, counted: functions keep them when the graph is gone */
mc_status mc_custom_share(mc_graph *to, const mc_graph *from);
extern mc_status (*mc_custom_kernel_hook)(const mc_node *n, mc_array *const *in, mc_array *const *out);
/* Defined by src/op (initial.c): an mc_initial_draw of numbers that follow from the seed, the variable's name
 * and their order alone, to the bit on every machine. */
struct mc_numbers { uint64_t key, at; };
struct mc_numbers mc_numbers_of(uint64_t seed, const char *name);
mc_array *mc_numbers_draw(void *numbers, int normal, int64_t n, double a, double b);
/* label.c.  Labels are interned in the graph's arena; NULL: no label, or no memory for one. */
const struct mc_label *mc_label_of(mc_graph *g, const char *text, const char *of, bool gradient);
/* the same label in another graph */
const struct mc_label *mc_label_copy(mc_graph *g, const struct mc_label *l);
/* of n's gradient by input wrt */
const struct mc_label *mc_label_gradient(const mc_node *n, int wrt);
/* Nodes from that number on that have no label get this one: what was made in place of a node takes its label
 * over. */
void mc_label_since(mc_graph *g, size_t first, const struct mc_label *label);
/* replace.c: the nodes of out rebuilt with from[i] replaced by to[i] */
mc_status mc_graph_replace(mc_graph *g, int n, mc_node *const *from, mc_node *const *to, int nout,
                           mc_node **out);

#endif

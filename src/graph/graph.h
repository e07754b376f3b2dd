/* graph.h: nodes, their types, and the text form.
 *
 * A graph is an arena of immutable nodes.  Two nodes with the same op, inputs and attributes are one node, so
 * expressions are equal if their pointers are equal.  A node's inputs are older than it (smaller ids), so the
 * order of ids is a topological order and no traversal needs recursion.
 *
 * This header defines what an op is (struct mc_op); the ops are defined in src/op. */
#ifndef MC_GRAPH_H
#define MC_GRAPH_H

#include "comm/comm.h"
#include "value/value.h"

/* ---- types: dtype, rank, and the sizes that are known ---- */
struct mc_type {
    mc_dtype dtype;
    int rank;
    int64_t dims[MC_MAX_RANK]; /* -1: not known before the call; 1: broadcasts */
};
struct mc_type mc_type_make(mc_dtype d, int rank, const int64_t *dims); /* dims NULL: unknown */
bool mc_type_equal(const struct mc_type *a, const struct mc_type *b);
void mc_type_text(struct mc_str *out, const struct mc_type *t);          /* "float32[?, 784]" */
/* the error "WHAT NUMBER is TYPE WHEN and TYPE WHEN" */
mc_status mc_types_differ(mc_status s, const char *what, int number, const struct mc_type *a,
                          const char *when_a, const struct mc_type *b, const char *when_b);

/* ---- attributes: constant arguments of an op ---- */
enum mc_attr_kind {
    ATTR_TENSOR,   /* not an attribute: an input node */
    ATTR_TENSORS,  /* all further positional arguments are nodes */
    ATTR_INT, ATTR_BOOL, ATTR_REAL, ATTR_DTYPE, ATTR_TEXT,
    ATTR_INTS,     /* a list */
    ATTR_AXES,     /* None (all), one axis or a list; normalised to sorted non-negative by infer helpers */
    ATTR_BORDER,   /* a word, a number, a list, or a list of pairs, which is kept flat */
    ATTR_REALS,    /* a number, a list, or a list of pairs, flat; ints has the bits of float64 numbers */
    ATTR_BODY      /* the body of a loop, as text; mc_node_make finds the body */
};
struct mc_attr {
    enum mc_attr_kind kind;
    bool none;             /* None was given, or it is the default */
    int n;                 /* of ints; 1 for INT, BOOL, DTYPE */
    int64_t *ints;
    double real;
    const char *text;
    const struct mc_body *body; /* BODY: what the text says; the graph holds a reference */
};
bool mc_attr_equal(const struct mc_attr *a, const struct mc_attr *b);
double mc_attr_real(const struct mc_attr *a, int i); /* of REALS, number i */
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
    OP_ASSOCIATES = 1 << 1,
    /* strictly increasing in input 0, the others fixed; with an axis: the largest element along it stays the
     * largest */
    OP_MONOTONE   = 1 << 2,
    OP_COSTLY     = 1 << 3,  /* expensive, so its result is kept rather than recomputed: exp, tanh, ... */
    OP_IMPURE     = 1 << 4,  /* never shared, never folded: print_, assert_ */
    OP_VIEW       = 1 << 5,  /* result i may be a view of input 0 */
    OP_EXPANDS    = 1 << 6,  /* a formula op whose node is kept until lowering */
    OP_HIDDEN     = 1 << 7,  /* made by passes only; no public function, not in the manual */
    OP_NOFOLD     = 1 << 8,  /* not folded: the result is much larger than the inputs */
    OP_RANDOM     = 1 << 9,
    OP_LEAF       = 1 << 10, /* input, constant, shared variable: made by their own functions */
    OP_HEAVY      = 1 << 12, /* for floats, a family of solvers computes it */
    OP_REDUCES    = 1 << 11, /* attribute 0 is axis, attribute 1 is keepdims */
    /* inputs and result have one shape; attribute 0 is axis; each line of the result along it depends only on
     * the same line of the inputs */
    OP_LINES      = 1 << 13,
    OP_TRANSFER   = 1 << 14, /* only says where a value is to be stored */
    OP_STAYS      = 1 << 15, /* if it computes an output of a function, that stays on the device */
    OP_DIVIDES    = 1 << 16, /* about as slow as a division */
    /* the result is one of the operands; if they are equal, such as 0 and -0, their order decides */
    OP_PICKS      = 1 << 17,
    /* near a root or a pole, the last digit of the argument changes many digits of the result */
    OP_ROOTS      = 1 << 18,
    /* heavy: the result is computed tile by tile, and an epilogue kernel may run on each tile */
    OP_BLOCKS     = 1 << 19,
    OP_MATMUL     = 1 << 20, /* matrix products: of two matrices or of two stacks of matrices */
    /* linear in the marked inputs together, the others fixed; mc_op_linear also covers the other operand of
     * an op that commutes */
    OP_LINEAR_A   = 1 << 21,
    OP_LINEAR_B   = 1 << 22,
    OP_LINEAR_C   = 1 << 23,
    /* never decreases when input 0 increases, the others fixed, but may stay the same */
    OP_RISES      = 1 << 24,
    OP_EXPONENTIAL = 1 << 25, /* e^a */
    /* rules_stable.c has a formula for its logarithm that does not compute it: exp, sigmoid */
    OP_HAS_LOG    = 1 << 26,
    /* probabilities: the gradient with respect to the input is a multiple of the result */
    OP_DISTRIBUTION = 1 << 27,
    OP_SIGN       = 1 << 28, /* -1, 0 or 1; NaN where input 0 is NaN */
    /* element i of the result along axis 0 depends only on element i of each input; each takes long to
     * compute */
    OP_ROWS       = 1 << 29,
    /* results for adjacent a are mostly words of one block, which takes long to compute */
    OP_WORDS      = 1 << 30
};
/* How a reduction combines the elements; REDUCE_NONE for other ops. */
enum mc_reduction {
    REDUCE_NONE, REDUCE_SUM, REDUCE_PRODUCT, REDUCE_MOST, REDUCE_LEAST, REDUCE_ANY, REDUCE_ALL,
    REDUCE_POSITION          /* of the largest element */
};
/* The family of solvers of an op with OP_HEAVY. */
enum mc_solvers { SOLVERS_NONE, SOLVERS_GEMM, SOLVERS_CONV, SOLVERS_POOL, SOLVERS_NORM };
/* What an op computes of each line along its axis. */
enum mc_line {
    LINE_OTHER, LINE_SUMS, LINE_PRODUCTS, LINE_MOST, LINE_LEAST, LINE_SORTED,
    LINE_ORDER,            /* the positions that sort it */
    LINE_FIRST, LINE_LAST, /* the first of these, and of those of the falling order */
    LINE_SEARCH,           /* where elements belong in a sorted vector */
    LINE_PERMUTED,         /* elements at positions */
    LINE_PICKED,           /* elements at positions are replaced by larger ones, or smaller ones */
    LINE_RECURS,           /* y[i + 1] = x[i] * y[i] + v[i] */
    LINE_COUNTS,           /* how often each whole number occurs */
    LINE_DRAW,             /* uniform numbers */
    LINE_KINDS
};
/* Ops that determine sizes, views and dtypes.  Passes must know what such a node means; other ops are
 * FORM_NONE, and their flags say all that passes need. */
enum mc_op_form {
    FORM_NONE,
    FORM_CAST, FORM_DIMSHUFFLE, FORM_RESHAPE, FORM_SUBTENSOR, FORM_GATHER, FORM_JOIN, FORM_STACK,
    FORM_SUBTENSOR_UPDATE, FORM_GATHER_UPDATE, /* x with a part set or increased */
    FORM_SPECIFY,          /* x, whose sizes are promised and checked */
    FORM_UNBROADCAST,      /* x, whose axes of size 1 no longer broadcast */
    FORM_FORWARD,          /* x, with another gradient */
    FORM_SIZE, FORM_SHAPE, FORM_ALLOC, FORM_ARANGE,
    FORM_CHECK,            /* x; an error if an index is out of range */
    FORM_LOOP,             /* attribute 0 is a body, which is computed again and again */
    FORM_IFELSE,           /* input 0 chooses between the first and the second half of the others */
    FORM_RANKS,            /* ranks do it together, in this process or with others */
    FORM_BRANCH            /* attributes 0 and 1 are bodies, one of which is computed, as input 0 says */
};
enum mc_typing {           /* the result dtype of a scalar op, from the dtypes of its inputs */
    TYPE_SAME,             /* promote */
    TYPE_NUMBER,           /* like SAME, but bool is refused */
    TYPE_POWER,            /* like SAME, but an integer to a constant negative power is refused */
    TYPE_FLOAT,            /* promote, integers become floats */
    TYPE_DIV,              /* like FLOAT, but two integers give floatX */
    TYPE_BOOL,             /* computed in the promoted dtype, result bool */
    TYPE_WHERE,            /* input 0 becomes bool, the others promote */
    TYPE_BITS,             /* integers and bool only */
    TYPE_INT64
};
enum { MC_MOST_RESULTS = 64 };  /* of one node */
/* BUILT(row): a row whose op is built of others when a graph is made.  No program has such an op, and
 * libmonochord-run has no such rows. */
#ifdef MC_RUNTIME
#define BUILT(...)
enum { MC_MOST_DX = 2 };
#else
#define BUILT(...) __VA_ARGS__,
enum { MC_MOST_DX = 4 };
#endif
/* The arguments of an op while its type is inferred: when the node is made (sizes may be -1, values of
 * constants only) and again when a shape is planned (all sizes known, values that host code needs). */
struct mc_infer {
    const struct mc_op *op;
    mc_graph *graph;                /* NULL when planning */
    int nin;
    const struct mc_type *in;
    const mc_array *const *value;   /* value[i] may be NULL */
    mc_node *const *node;           /* the input nodes; NULL when planning */
    const struct mc_attr *attr;
    int nout;                       /* set by infer if it differs from op->nout */
    struct mc_type out[MC_MOST_RESULTS];
};
struct mc_op {
    const char *name;
    const char *params;             /* "x, axis=None:axes, keepdims=False:bool" */
    unsigned flags;
    enum mc_op_form form;
    enum mc_reduction reduction;
    enum mc_line line;
    enum mc_solvers solvers;
    int nout;                       /* number of results; if several, the node is a tuple of items */
    mc_status (*infer)(struct mc_infer *in);
    /* The reference.  in[]: any strides; out[]: of the inferred type, in C order. */
    mc_status (*eval)(const mc_node *n, mc_array *const *in, mc_array *const *out);
    /* scalar ops only */
    enum mc_typing typing;
    int arity;                      /* > 0: a scalar op */
    /* Prints the op's own notation, such as x[1:2].  If it is NULL or returns false (then it has printed
     * nothing), name(args) is printed. */
    bool (*print)(struct mc_str *out, const mc_node *n,
                  void (*arg)(struct mc_str *out, const mc_node *n, int i, void *ctx),
                  void *ctx);
    int index;                      /* in the table of ops; set at start */
    const struct mc_signature *sig; /* parsed from params at start */
    const struct mc_custom *custom; /* a user's op */
    /* bit i: the value of input i determines sizes of the result; bit 31: so do all inputs from 1 on */
    unsigned shape_args;
    /* bit i: input i has no gradient (custom and structured ops without grad) */
    unsigned char disconnected;
#ifdef MC_RUNTIME
    /* What only the making and compiling of a graph reads.  libmonochord-run does neither: there these share
     * one place, and nothing that a row names is linked but the last. */
    union {
#endif
    /* scalar ops: C expression over a, b, c for floats, and for integers (NULL: the same) */
    const char *code, *icode;
    double lo, hi;                  /* the interval that tests draw from */
    /* The size of one axis of a result as a node over the inputs' sizes; NULL: not known. */
    mc_node *(*size)(mc_node *n, int item, int axis);
    /* d cost / d input `wrt`, given g[i] = d cost / d result i (NULL: none).  Returns NULL if
     * disconnected. */
    mc_node *(*grad)(mc_node *n, int wrt, mc_node *const *g);
    /* the same as formulas over the parameter names, y and g; used if grad is NULL */
    const char *dx[MC_MOST_DX];
    const char *formula;            /* the definition of a formula op, over the parameter names */
    /* Builds the result from other ops; no node of this op is made.  in[i] is NULL for an optional input that
     * is not given. */
    mc_node *(*build)(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr);
    const char *doc;
    /* such as "x = [1, 2]; sum(x)", for docs/api; NULL: src/inspect/pages.c finds one */
    const char *example;
#ifdef MC_RUNTIME
    };
#endif
};
/* What a graph knows of the layers above it.  It is given when the graph is made. */
struct mc_language {
    /* the op of that name, with its signature parsed; NULL: there is none */
    const struct mc_op *(*find)(const char *name);
    const struct mc_op *(*op)(int i);                /* NULL: i is past the last */
    mc_node *(*expand)(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                       const struct mc_attr *attr);
    void (*forget)(struct mc_op *op);                /* drops one reference to a user's op */
    mc_status (*share)(mc_graph *to, const mc_graph *from); /* adds the users' ops of another graph */
    /* a loop as one node; kept: by state, are its values at every step a result?  NULL: all */
    mc_node *(*scan)(mc_graph *g, const mc_scan_spec *spec, const bool *kept);
    const struct mc_body *(*read_body)(const mc_graph *of, const char *text); /* parse_body.c */
    /* for the words grad, Lop, Rop, jacobian and hessian in formulas; all NULL: there they are errors */
    mc_status (*grads)(mc_node *cost, int n, mc_node *const *wrt, mc_node **grads, const mc_grad_spec *spec);
    mc_node *(*Lop)(mc_node *f, mc_node *wrt, mc_node *eval),
        *(*Rop)(mc_node *f, mc_node *wrt, mc_node *eval);
    mc_node *(*jacobian)(mc_node *y, mc_node *x), *(*hessian)(mc_node *cost, mc_node *x);
};
mc_status mc_signature_parse(const char *params, struct mc_arena *a, struct mc_signature *out);

/* ---- nodes ---- */
/* What a node was made for, as text for people (label.c).  It has no effect on what is computed. */
struct mc_label {
    const char *text;              /* the text given to mc_label, such as "conv1"; NULL: none */
    /* of a gradient: the variable that it is the gradient of; NULL: an intermediate value */
    const char *of;
    bool gradient;                 /* the node was made by differentiating a node with this text */
    /* of a label that is no gradient: a gradient label with this text exists */
    bool differentiated;
};
struct mc_node {
    const struct mc_op *op;
    mc_graph *graph;
    uint32_t id;
    int nin;
    mc_node **in;
    const struct mc_attr *attr;    /* op->sig->nattr attributes */
    struct mc_type type;           /* of the result; of item 0 if there are several */
    int nout;
    const struct mc_type *types;   /* of all results; &type if there is one */
    int item;                      /* "item" nodes: which result of in[0] */
    bool weak;                     /* a literal without dtype: takes that of the other operand */
    mc_array *value;               /* constants */
    struct mc_shared *shared;
    const char *name;              /* NULL: none */
    /* x, if this node was made as x[...]; the last such x if there are several; NULL: none */
    mc_node *indexed;
    const char *file;              /* the user's source file; NULL: unknown */
    int line;
    const struct mc_label *label;  /* NULL: none */
    uint64_t hash;
};
struct mc_shared {
    _Atomic int refs;
    char *name;
    struct mc_type type;           /* what values it accepts */
    mc_array *value;
    pthread_mutex_t lock;
    uint64_t version;              /* incremented by each set and each update */
    /* mc_shared_borrow gave the memory to somebody, who may write to it without a new version */
    bool lent;
    int random;                    /* for random streams: number of the next stream */
    bool is_random;
    bool varies;                   /* its shape changed, though a function was compiled for it */
    char *initial;                 /* text after = in its declaration; NULL: none */
};
struct mc_graph {
    const struct mc_language *language;
    bool of_body;                  /* it belongs to a body */
    struct mc_arena arena;
    VEC(mc_node *) nodes;          /* by id */
    struct { uint32_t *slot; size_t cap, n; } cons;
    struct mc_dict names;          /* name -> node */
    VEC(struct mc_shared *) shareds;
    VEC(struct mc_op *) custom;
    VEC(struct mc_rank_group) groups;   /* of ranks, by name: mc_graph_ranks */
    VEC(struct mc_default_update) defaults;
    VEC(const struct mc_body *) bodies; /* of its loops */
    /* adjoints that were derived before (src/grad), so that another gradient of the same cost is cheap */
    struct mc_map sent;
    /* by a gradient's id: what it is the gradient of (src/grad/second_order.c) */
    struct mc_map taken;
    struct mc_user_rule *rules;    /* mc_rewrite_add's, in the arena */
    mc_node *error;                /* made first, so that it always exists */
    mc_status status;
    char *message;                 /* of the first mistake */
    const struct mc_label *label;  /* given to nodes made now; NULL: none */
    struct mc_dict labels;         /* all labels */
    /* position in the formula that is being read, for carets; NULL: none */
    const struct mc_source_location *location;
};
mc_graph *mc_graph_make(const struct mc_language *language);
static inline const struct mc_op *mc_op_named(const mc_graph *g, const char *name)
{
    return g->language->find(name);
}
struct mc_source_location { const char *text; size_t at; };
struct mc_default_update { struct mc_shared *shared; mc_node *value; };
struct mc_rank_group { const char *name; mc_comm *comm; }; /* holds comm */

/* graph.c, shared.c, node.c */
extern const struct mc_op mc_op_error, mc_op_input, mc_op_constant, mc_op_shared, mc_op_item;
mc_node *mc_node_make(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                      const struct mc_attr *attr);
mc_node *mc_node_leaf(mc_graph *g, struct mc_node leaf);
/* the error node, when out of memory */
mc_node *mc_node_no_memory(mc_graph *g);
/* leaf.c */
/* takes ownership of value; equal constants are one node */
mc_node *mc_node_const(mc_graph *g, mc_array *value, bool weak);
mc_node *mc_node_number(mc_graph *g, mc_dtype d, double v);           /* exact for |v| < 2^53 */
mc_node *mc_node_int(mc_graph *g, int64_t v);                         /* int64 scalar */
mc_node *mc_node_ints(mc_graph *g, int n, const int64_t *v);          /* int64 vector */
/* scalar constant of the dtype of like */
mc_node *mc_node_like(mc_node *like, double v);
mc_node *mc_shared_leaf(mc_graph *g, struct mc_shared *s);
/* an input without a name, as a placeholder */
mc_node *mc_node_blank(mc_graph *g, const struct mc_type *t);
bool mc_node_can_be_called(const char *name);        /* is the name allowed? */
mc_node *mc_node_fail(mc_graph *g, mc_status code, const char *fmt, ...) MC_PRINTF(3, 4); /* the error node */
static inline bool mc_is_error(const mc_node *n) { return !n || n == n->graph->error; }
/* Does each element of the result depend on one element of each input? */
static inline bool mc_is_elementwise(const mc_node *n)
{
    return n->op->arity > 0 || n->op->form == FORM_CAST;
}
/* Does the result depend only on the sizes of the input? */
static inline bool mc_reads_type_only(const mc_node *n)
{
    return n->op->form == FORM_SIZE || n->op->form == FORM_SHAPE;
}
static inline bool mc_is_const(const mc_node *n) { return n->op == &mc_op_constant; }
/* all elements of the constant are v */
bool mc_const_number(const mc_node *n, double *v);
/* small integer constant of rank 0 or 1 */
bool mc_const_ints(const mc_node *n, int64_t *v, int max, int *count);
/* the graph of the first node that is no error; NULL if there is none */
mc_graph *mc_graph_of(int n, mc_node *const *nodes);
/* The user's source location: set by the wrappers of monochord_ops.h, stored in nodes and shown in
 * messages. */
MC_API void mc_here(const char *file, int line);
/* "\n    at train.c:17", or "" if unknown */
void mc_user_line_text(char *text, size_t n);
/* All nodes that the outputs need, in the order of ids (a topological order).  The caller frees the array
 * with mc_free. */
mc_node **mc_graph_reach(int n, mc_node *const *outputs, size_t *count);

/* apply.c: applies an op: typing, weak literals, casts, broadcasting checks */
mc_node *mc_apply(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                  const struct mc_attr *attr);
/* all attributes have their defaults */
mc_node *mc_apply_plain(mc_graph *g, const char *name, int nin, mc_node *const *in);
mc_node *mc_cast_to(mc_node *x, mc_dtype d);         /* x itself if it has that dtype */
/* the smallest signed dtype that holds v */
mc_dtype mc_literal_dtype(int64_t v);
bool mc_literal_fits(int64_t v, mc_dtype d);         /* d an integer dtype; false for others */
/* the common dtype of in[from..]; literals adapt to the others */
mc_dtype mc_meet(int nin, mc_node *const *in, int from);
mc_node *mc_size_of(mc_node *x, int axis);           /* int64 scalar: a constant if known */
mc_node *mc_shape_of(mc_node *x);                    /* int64 vector */
/* computes the sizes only */
mc_status mc_broadcast_types(const struct mc_op *op, int nin, const struct mc_type *in, struct mc_type *out);

/* parse.c: formulas.  mc_expr evaluates one with names bound to nodes or attributes:
 *     mc_expr(g, "dot(g, W.T)", (struct mc_bind[]){ { "g", gy }, { "W", w } }, 2) */
struct mc_bind { const char *name; mc_node *node; const struct mc_attr *attr; };
mc_node *mc_expr(mc_graph *g, const char *text, const struct mc_bind *bind, int nbind);
/* several nodes as one value: the result of a formula with several results */
extern const struct mc_op mc_op_tuple;
/* Reads "a, b", or statements "W = e; b = e2" if `statements`. */
struct mc_named { char *name; bool borrow, has_default; double dflt; mc_node *node; };
mc_status mc_parse_list(mc_graph *g, const char *text, bool statements, struct mc_named **out, int *n);
void mc_named_free(struct mc_named *v, int n);
/* parse_attr.c: an op by name, its attributes as in a formula */
mc_node *mc_call_op(mc_graph *g, const char *name, int nin, mc_node *const *in, const char *attrs, ...)
    MC_PRINTF(5, 6);

/* index.c: the attribute "spec" of subtensor and inc_subtensor has SPEC_N numbers for each axis of x.  The
 * kind of a bound says whether it is absent, the number itself, or the number of an input of the op. */
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
/* x with a region set to y or increased by y.  region: an indexing of x. */
mc_node *mc_index_update(mc_node *region, mc_node *y, bool set);

/* print.c */
void mc_attr_defaults(const struct mc_op *op, struct mc_attr *out);
void mc_attr_text(struct mc_str *out, const struct mc_attr *a);
/* prints `depth` levels, then "..."; negative: all */
void mc_node_print(struct mc_str *out, const mc_node *n, int depth);
/* custom.c: users' ops are counted, because functions may outlive the graph */
/* what a user gave a graph: ops, groups of ranks */
mc_status mc_custom_share(mc_graph *to, const mc_graph *from);
extern mc_status (*mc_custom_kernel_hook)(const mc_node *n, mc_array *const *in, mc_array *const *out);
/* Defined in src/op/initial.c: an mc_initial_draw whose numbers depend only on the seed, the variable's name
 * and their order, and are the same bits on every machine. */
struct mc_numbers { uint64_t key, at; };
struct mc_numbers mc_numbers_of(uint64_t seed, const char *name);
mc_array *mc_numbers_draw(void *numbers, int normal, int64_t n, double a, double b);
/* label.c.  Labels are interned in the graph's arena; NULL: no label, or no memory for one. */
const struct mc_label *mc_label_of(mc_graph *g, const char *text, const char *of, bool gradient);
/* the same label in another graph */
const struct mc_label *mc_label_copy(mc_graph *g, const struct mc_label *l);
/* of n's gradient by input wrt */
const struct mc_label *mc_label_gradient(const mc_node *n, int wrt);
/* Gives the label to all nodes with id >= first that have none: nodes made in place of another one inherit
 * its label. */
void mc_label_since(mc_graph *g, size_t first, const struct mc_label *label);
/* body.c: the body of a loop or a branch: nodes of a graph of its own, from inputs to results.  It is closed:
 * its leaves are its inputs and constants.  Equal texts are equal bodies.  It never changes, and it is
 * counted: each graph with a node over it holds a reference. */
struct mc_body {
    _Atomic int refs;
    mc_graph *graph;
    int nin, nout;
    mc_node **in, **out;
    bool *key;             /* by input: its value determines sizes in the body */
    const char *text;      /* declarations of the inputs, statements, and "yield" with the results */
};
/* Copies what is between the nodes in[], which become the inputs, and out[].  Every leaf but constants must
 * be among the inputs.  The caller owns the reference; NULL: error. */
const struct mc_body *mc_body_make(mc_graph *from, int nin, mc_node *const *in, int nout,
                                   mc_node *const *out);
/* Takes the graph, which has no leaves but in[] and constants, and makes a body of it.  text: the body's. */
const struct mc_body *mc_body_of(mc_graph *g, int nin, mc_node *const *in, int nout, mc_node *const *out,
                                 const char *text);
void mc_body_unref(const struct mc_body *b);
/* the name of input i, which is that of the node that it stands for; NULL: that had none */
const char *mc_body_name(const struct mc_body *b, int i);
/* parse_scan.c: elements and states at several steps.  Names a node for messages and the bodies of loops, if
 * it has no name; formulas do not know the name. */
void mc_node_call(mc_node *n, const char *name);
/* x; an error if it has fewer than `least` elements.  name: of the sequence or state, for messages */
mc_node *mc_tap_checked(mc_node *x, const char *name, bool state, int least);
/* the elements that steps read at `tap`, where first and last are the least and the greatest of the taps */
mc_node *mc_tap_slice(mc_node *checked, int tap, int first, int last);
/* of a block of `depth` initial values, the one `back` steps before the first step */
mc_node *mc_tap_initial(mc_node *checked, int depth, int back);
/* Copies nodes of another graph: from[i] becomes to[i], what out[] needs is copied.  Replaces out[]. */
mc_status mc_graph_copy(mc_graph *to, int n, mc_node *const *from, mc_node *const *into, int nout,
                        mc_node **out);
/* A loop's attributes: its body and the meaning of the body's inputs and results (src/op/scan.c). */
enum { LOOP_BODY, LOOP_SEQUENCES, LOOP_STATES, LOOP_KEPT, LOOP_UNTIL, LOOP_TRUNCATE, MC_LOOP_ATTRS };
/* Attributes of ifelse and of a branch (src/op/ifelse.c); *_RAGGED: the sizes of the results depend on the
 * condition. */
enum { IFELSE_RAGGED };
enum { BRANCH_TRUE, BRANCH_FALSE, BRANCH_VALUES, BRANCH_RAGGED, MC_BRANCH_ATTRS };
/* parse_body.c: as mc_body_make, from text; ops that are not in the table are those of the graph */
const struct mc_body *mc_body_read(const mc_graph *of, const char *text);
/* print.c: the text of a body */
char *mc_body_text(const struct mc_body *b);
/* How many bodies has a node of the op?  They are its first attributes. */
static inline int mc_bodies_of(const struct mc_op *op)
{
    return op->form == FORM_LOOP ? 1 : op->form == FORM_BRANCH ? 2 : 0;
}
/* Does the value of input i determine sizes of the result? */
static inline bool mc_is_shape_arg(const mc_node *n, int i)
{
    if (n->op->form == FORM_LOOP) {
        return i == 0 || n->attr[LOOP_BODY].body->key[i - 1];
    }
    if (n->op->form == FORM_IFELSE || n->op->form == FORM_BRANCH) {
        const bool branch = n->op->form == FORM_BRANCH;
        const struct mc_attr *a = n->attr;
        return i == 0 ? a[branch ? BRANCH_RAGGED : IFELSE_RAGGED].ints[0] != 0
                      : branch && (a[BRANCH_TRUE].body->key[i - 1] || a[BRANCH_FALSE].body->key[i - 1]);
    }
    return (i < 31 && n->op->shape_args >> i & 1) || (n->op->shape_args >> 31 && i >= 1);
}
/* replace.c: copies of the nodes of out, with from[i] replaced by to[i] */
mc_status mc_graph_replace(mc_graph *g, int n, mc_node *const *from, mc_node *const *to, int nout,
                           mc_node **out);

#endif

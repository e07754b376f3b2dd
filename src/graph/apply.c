/* apply.c: applies an op to nodes.  Literals take the dtype of the other operands, operands of a scalar op
 * get one dtype and rank, and other ops use their own infer function.
 *
 * Invariant: the operands of a scalar node have the rank of the node or rank 0, and one dtype (except the
 * condition of where). */
#include "graph/graph.h"

/* ---- dtypes ---- */

mc_dtype mc_literal_dtype(int64_t v)
{
    return v == (int8_t)v ? MC_INT8 : v == (int16_t)v ? MC_INT16 : v == (int32_t)v ? MC_INT32 : MC_INT64;
}

bool mc_literal_fits(int64_t v, mc_dtype d)
{
    const struct mc_dtype_row *row = &mc_dtypes[d];
    if (row->kind == KIND_UINT) {
        return v >= 0 && (row->size == 8 || v >> 8 * row->size == 0);
    }
    return row->kind == KIND_INT && (row->size == 8 || (v >> (8 * row->size - 1)) == -(v < 0));
}

static bool is_whole_literal(const mc_node *n)
{
    return n->weak && !mc_is_float(n->type.dtype);
}

/* Does the integer dtype d hold a whole literal?  Literals have dtype uint64 only from 2^63 on. */
static bool literal_fits(const mc_node *n, mc_dtype d)
{
    return n->type.dtype == MC_UINT64 ? d == MC_UINT64
                                      : mc_literal_fits(mc_load_i64(n->type.dtype, n->value->data), d);
}

mc_node *mc_cast_to(mc_node *x, mc_dtype d)
{
    if (mc_is_error(x) || x->type.dtype == d) {
        return x;
    }
    if (is_whole_literal(x) && !mc_is_float(d) && d != MC_BOOL && !literal_fits(x, d)) {
        struct mc_str text = { 0 };
        mc_node_print(&text, x, 0);
        mc_node_fail(x->graph, MC_ETYPE, "the literal %s does not fit into %s", text.s ? text.s : "",
                     mc_dtype_name(d));
        mc_str_free(&text);
        return x->graph->error;
    }
    if (mc_is_const(x)) {
        return mc_node_const(x->graph, mc_array_cast(x->value, d), false);
    }
    int64_t v = d;
    struct mc_attr to = { .kind = ATTR_DTYPE, .n = 1, .ints = &v };
    return mc_node_make(x->graph, mc_op_named(x->graph, "cast"), 1, &x, &to);
}

/* The common dtype of the operands.  A weak literal adapts: a real one to any float dtype, a whole one to any
 * dtype that holds it.  Otherwise the result is an integer dtype that holds both; if there is none, the cast
 * of the literal fails. */
mc_dtype mc_meet(int nin, mc_node *const *in, int from)
{
    bool strong = false, real = false;
    mc_dtype d = MC_BOOL;
    for (int i = from; i < nin; i++) {
        if (!in[i]->weak) {
            d = strong ? mc_dtype_promote(d, in[i]->type.dtype) : in[i]->type.dtype;
            strong = true;
        } else {
            real |= mc_is_float(in[i]->type.dtype);
        }
    }
    if (strong && (mc_is_float(d) || !real)) {
        if (mc_is_float(d)) {
            return d;
        }
        for (int i = from; i < nin; i++) { /* int8 + 300 is int16 */
            mc_dtype both = mc_dtype_promote(d, in[i]->type.dtype);
            d = in[i]->weak && !literal_fits(in[i], d) && !mc_is_float(both) ? both : d;
        }
        return d;
    }
    if (real) {
        return mc_dtype_floatX();
    }
    d = in[from]->type.dtype;
    for (int i = from + 1; i < nin; i++) {
        d = mc_dtype_promote(d, in[i]->type.dtype);
    }
    return d;
}

static mc_status meet_for(const struct mc_op *op, int nin, mc_node *const *in, mc_dtype *d)
{
    *d = mc_meet(nin, in, op->typing == TYPE_WHERE ? 1 : 0);
    if ((op->typing == TYPE_FLOAT || op->typing == TYPE_DIV) && !mc_is_float(*d)) {
        *d = op->typing == TYPE_DIV ? mc_dtype_floatX() : mc_dtype_to_float(*d);
    }
    /* A comparison of integers with a real literal is computed in float64, which is exact.  The result is
     * bool, so this dtype is not visible. */
    for (int i = 0; i < nin && op->typing == TYPE_BOOL && nin == 2; i++) {
        if (in[i]->weak && mc_is_float(in[i]->type.dtype) && !in[1 - i]->weak &&
            !mc_is_float(in[1 - i]->type.dtype)) {
            *d = MC_FLOAT64;
        }
    }
    if (op->typing == TYPE_BITS && mc_is_float(*d)) {
        return mc_fail(MC_ETYPE, "%s: needs integers or bool, not %s", op->name, mc_dtype_name(*d));
    }
    if (*d == MC_BOOL && op->typing == TYPE_NUMBER) {
        return mc_fail(MC_ETYPE, "%s: not defined for bool; use xor or invert", op->name);
    }
    const mc_array *to = op->typing == TYPE_POWER && !mc_is_float(*d) ? in[1]->value : NULL;
    for (int64_t i = 0; to && mc_dtypes[to->dtype].kind == KIND_INT && i < mc_array_size(to); i++) {
        if (mc_load_i64(to->dtype, to->data + i * (int64_t)mc_dtypes[to->dtype].size) < 0) {
            return mc_fail(MC_ETYPE,
                           "%s: an integer to a negative power is not an integer; cast %s to a float",
                           op->name, mc_dtype_name(*d));
        }
    }
    return MC_OK;
}

/* Compares x with a whole literal L where no integer dtype holds both.  L is then below or above all values
 * of x, so every element has the same result.  Returns a comparison, with its operands in *to, that gives
 * this result; NULL: not such a case. */
static const struct mc_op *compare_beyond(const struct mc_op *op, mc_node *const *in, mc_node **to)
{
    static const struct { const char *op; bool below, above; } rows[] = { /* the result with L on the right */
        { "lt", false, true }, { "le", false, true }, { "gt", true, false }, { "ge", true, false }, { "eq", false, false }, { "neq", true, true },
    };
    if (op->typing != TYPE_BOOL || op->arity != 2 || in[0]->weak == in[1]->weak) {
        return NULL;
    }
    const int left = in[0]->weak; /* 1: L is on the left */
    mc_node *x = in[left], *literal = in[!left];
    mc_dtype d = x->type.dtype;
    if (!is_whole_literal(literal) || mc_is_float(d) ||
        !mc_is_float(mc_dtype_promote(d, literal->type.dtype)) || literal_fits(literal, d)) {
        return NULL;
    }
    bool below = literal->type.dtype != MC_UINT64;
    for (size_t i = 0; i < NELEM(rows); i++) {
        if (strcmp(op->name, rows[i].op) == 0) { /* the table is of these six comparisons */
            bool symmetric = rows[i].below == rows[i].above,
                 answer = below != (left && !symmetric) ? rows[i].below : rows[i].above;
            int64_t least = 0, most = INT64_MAX; /* below: uint64; above: int64 */
            to[0] = mc_cast_to(x, below ? MC_UINT64 : MC_INT64);
            to[1] = mc_node_const(
                x->graph, mc_array_from(below ? MC_UINT64 : MC_INT64, 0, NULL, below ? &least : &most),
                false);
            return mc_op_named(x->graph, below ? (answer ? "ge" : "lt") : answer ? "le" : "gt");
        }
    }
    return NULL;
}

/* ---- ranks ---- */

/* x with `rank` axes: new axes of size 1 come first. */
static mc_node *pad_rank(mc_node *x, int rank)
{
    if (x->type.rank == rank || x->type.rank == 0) {
        return x;
    }
    int64_t order[MC_MAX_RANK];
    int more = rank - x->type.rank;
    for (int i = 0; i < rank; i++) {
        order[i] = i < more ? -1 : i - more;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = order };
    return mc_node_make(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a);
}

/* ---- applying ---- */

static mc_array *eval_literals(mc_graph *g, const struct mc_op *op, mc_node *const *in, mc_dtype d)
{
    mc_array *value[4] = { 0 }, *y = NULL;
    const mc_dtype makes = op->typing == TYPE_BOOL ? MC_BOOL : op->typing == TYPE_INT64 ? MC_INT64 : d;
    struct mc_node n = { .op = op, .graph = g, .nin = op->arity, .type.dtype = makes };
    bool ok = (y = mc_array_empty(n.type.dtype, 0, NULL)) != NULL;
    for (int i = 0; ok && i < op->arity; i++) {
        value[i] = mc_array_cast(in[i]->value, op->typing == TYPE_WHERE && i == 0 ? MC_BOOL : d);
        ok = value[i] != NULL;
    }
    ok = ok && op->eval(&n, value, &y) == MC_OK;
    for (int i = 0; i < op->arity; i++) {
        mc_array_unref(&value[i]);
    }
    if (!ok) {
        mc_array_unref(&y);
    }
    return y;
}

/* Arithmetic on literals gives a literal, so 0.5 * (1 + alpha) takes the dtype of the other operand. */
static mc_node *fold_literals(mc_graph *g, const struct mc_op *op, mc_node *const *in)
{
    bool real = op->typing == TYPE_FLOAT || op->typing == TYPE_DIV;
    for (int i = 0; i < op->arity; i++) {
        real |= mc_is_float(in[i]->type.dtype) || in[i]->type.dtype == MC_UINT64;
    }
    mc_array *y = eval_literals(g, op, in, real ? MC_FLOAT64 : MC_INT64);
    if (y && !real && y->dtype == MC_INT64) {
        mc_array *r = op->typing == TYPE_SAME || op->typing == TYPE_NUMBER || op->typing == TYPE_POWER
                          ? eval_literals(g, op, in, MC_FLOAT64)
                          : NULL;
        double v = r ? mc_load_f64(MC_FLOAT64, r->data) : 0;
        if (v < -0x1p63 || v >= 0x1p63) { /* such as sqr(10 ** 10): beyond int64, so a float */
            mc_array_unref(&y);
            y = mc_array_ref(r);
        } else { /* of the smallest dtype, as if it had been written as a number */
            mc_array *narrow = mc_array_cast(y, mc_literal_dtype(mc_load_i64(MC_INT64, y->data)));
            mc_array_unref(&y);
            y = narrow;
        }
        mc_array_unref(&r);
    }
    return y ? mc_node_const(g, y, y->dtype != MC_BOOL)
             : mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

static mc_node *apply_scalar(mc_graph *g, const struct mc_op *op, mc_node *const *in)
{
    mc_node *arg[4];
    mc_dtype d;
    int rank = 0;
    bool literals = true;

    for (int i = 0; i < op->arity; i++) {
        literals &= in[i]->weak;
    }
    if (literals && op->typing != TYPE_BITS) {
        return fold_literals(g, op, in);
    }
    mc_node *beyond[2];
    const struct mc_op *instead = compare_beyond(op, in, beyond);
    if (instead) {
        return apply_scalar(g, instead, beyond);
    }
    if (meet_for(op, op->arity, in, &d) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    for (int i = 0; i < op->arity; i++) {
        rank = MC_MAX(rank, in[i]->type.rank);
    }
    for (int i = 0; i < op->arity; i++) {
        mc_dtype to = op->typing == TYPE_WHERE && i == 0 ? MC_BOOL : d;
        arg[i] = mc_cast_to(in[i], to);
        if (mc_is_const(arg[i]) && arg[i]->weak) {
            arg[i] = mc_node_const(g, mc_array_ref(arg[i]->value), false);
        }
        if (mc_is_error(arg[i])) {
            return g->error;
        }
        arg[i] = pad_rank(arg[i], rank);
    }
    return mc_node_make(g, op, op->arity, arg, NULL);
}

/* Applies an op that is not scalar.  A literal gets the dtype it has by itself; formula ops and built ops are
 * expanded. */
static mc_node *apply_other(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                            const struct mc_attr *attr)
{
    if (op->build) {
        return op->build(g, nin, in, attr);
    }
    if (op->formula && !(op->flags & OP_EXPANDS)) {
        return g->language->expand(g, op, nin, in, attr);
    }
    mc_node *on_stack[8], **arg = nin <= 8 ? on_stack : mc_arena_alloc(&g->arena, (size_t)nin * sizeof *arg);
    if (!arg) {
        return mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
    }
    for (int i = 0; i < nin; i++) {
        arg[i] = !in[i]->weak                     ? in[i]
                 : mc_is_float(in[i]->type.dtype) ? mc_cast_to(in[i], mc_dtype_floatX())
                                                  : mc_node_const(g, mc_array_ref(in[i]->value), false);
        if (arg[i]->weak) { /* floatX is float64 already */
            arg[i] = mc_node_const(g, mc_array_ref(in[i]->value), false);
        }
    }
    return mc_node_make(g, op, nin, arg, attr);
}

/* The arguments as text for messages: "x: float32[?, 784], W: float32[512, 10]". */
static void describe(struct mc_str *out, int nin, mc_node *const *in)
{
    for (int i = 0; i < nin && i < 4; i++) {
        if (!in[i]) {
            continue;
        }
        mc_str_add(out, i ? ", " : "");
        mc_node_print(out, in[i], 2);
        mc_str_add(out, ": ");
        mc_type_text(out, &in[i]->type);
    }
}

/* Completes the message of infer: the op before it, the inputs with their types and the user's source line
 * after it. */
static mc_node *explain(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in)
{
    struct mc_str said = { 0 }, args = { 0 };
    mc_status code = mc_last_status();
    const char *why = mc_last_error(), *args_within = strstr(why, "  [");
    /* in the message of an expanded formula, keep the mistake and drop the inner op's arguments */
    mc_str_addn(&said, why,
                op->formula && args_within ? (size_t)(args_within - why)
                : op->formula              ? strcspn(why, "\n")
                                           : strlen(why));
    if (strncmp(said.s ? said.s : "", op->name, strlen(op->name)) != 0) {
        struct mc_str named = { 0 };
        mc_str_addf(&named, "%s: %s", op->name, said.s ? said.s : "");
        mc_str_free(&said);
        said = named;
    }
    describe(&args, nin, in);
    mc_node *e = mc_node_fail(g, code, "%s  [%s]", said.s ? said.s : "", args.s ? args.s : "");
    mc_str_free(&said);
    mc_str_free(&args);
    return e;
}

mc_node *mc_apply(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                  const struct mc_attr *attr)
{
    if (!op) { /* the table of ops could not be made */
        return mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
    }
    const struct mc_signature *s = op->sig;
    bool gaps = op->build || op->formula;
    for (int i = 0; i < nin; i++) {
        if (!in[i] && gaps && i < s->ntensor && s->param[i].optional) {
            continue;
        }
        if (!in[i]) {
            return mc_node_fail(g, MC_EARG, "%s: argument %d is missing (NULL)", op->name, i + 1);
        }
        if (in[i]->graph != g) {
            return mc_node_fail(g, MC_EARG, "%s: argument %d belongs to another graph", op->name, i + 1);
        }
        if (mc_is_error(in[i])) {
            return g->error;
        }
        if (in[i]->nout != 1) {
            return mc_node_fail(g, MC_EARG, "%s: argument %d is a tuple; take one of its items", op->name,
                                i + 1);
        }
    }
    if (op->flags & OP_LEAF) {
        return mc_node_fail(g, MC_EARG, "%s cannot be applied", op->name);
    }
    if (nin > s->ntensor && !s->variadic) {
        return mc_node_fail(g, MC_EARG, "%s takes %d argument%s, not %d: %s(%s)", op->name, s->ntensor,
                            s->ntensor == 1 ? "" : "s", nin, op->name, op->params);
    }
    int need = 0;
    while (need < s->ntensor && !s->param[need].optional) {
        need++;
    }
    if (nin < need) {
        return mc_node_fail(g, MC_EARG, "%s needs the argument '%s': %s(%s)", op->name, s->param[nin].name,
                            op->name, op->params);
    }
    if (g->status < 0 && g->nodes.n == 0) {
        return g->error;
    }
    const struct mc_source_location *location = g->location;
    mc_status before = g->status;
    g->location = NULL; /* complete the message first; the caret comes last */
    char *message = g->message;
    g->message = NULL;
    g->status = MC_OK;
    mc_node *n = op->arity ? apply_scalar(g, op, in) : apply_other(g, op, nin, in, attr);
    bool failed = g->status < 0;
    mc_graph_clear_error(g);
    g->message = message;
    g->status = before;
    g->location = location;
    return failed || mc_is_error(n) ? explain(g, op, nin, in) : n;
}

mc_node *mc_apply_plain(mc_graph *g, const char *name, int nin, mc_node *const *in)
{
    const struct mc_op *op = mc_op_named(g, name);
    struct mc_attr attr[16] = { 0 };
    mc_attr_defaults(op, attr);
    return mc_apply(g, op, nin, in, attr);
}

mc_node *mc_size_of(mc_node *x, int axis)
{
    if (mc_is_error(x)) {
        return x;
    }
    if (axis < 0) {
        axis += x->type.rank;
    }
    if (axis < 0 || axis >= x->type.rank) {
        return mc_node_fail(x->graph, MC_ESHAPE, "size: rank %d has no axis %d", x->type.rank, axis);
    }
    if (x->type.dims[axis] >= 0) {
        return mc_node_int(x->graph, x->type.dims[axis]);
    }
    int64_t at = axis;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &at };
    return mc_apply(x->graph, mc_op_named(x->graph, "size"), 1, &x, &a);
}

mc_node *mc_shape_of(mc_node *x)
{
    return mc_is_error(x) ? x : mc_apply_plain(x->graph, "shape", 1, &x);
}

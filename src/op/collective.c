/* collective.c: ops in which ranks work together: each rank runs the same program on its share of the data,
 * and gives its part of a value to all.
 *
 * The gradient is that of the sum of the costs of all ranks, so it is an op of the same kind.
 *
 * Invariant: all ranks compute these ops in the same order, as they run the same program; what they are
 * about to do is compared before any data moves (src/comm). */
#include "op/collective.h"
#include "op/op.h"

enum { AT_WAY, AT_GROUP, AT_RANKS, REDUCE_ORDER = 2, SCATTER_ORDER };

/* ---- groups ---- */

mc_status mc_graph_ranks(mc_graph *g, const char *name, mc_comm *c)
{
    if (!g || !name || !*name || !c) {
        return mc_fail(MC_EARG, "graph_ranks: the %s is missing",
                       !g   ? "graph"
                       : !c ? "communicator"
                            : "name");
    }
    for (size_t i = 0; i < g->groups.n; i++) {
        if (strcmp(g->groups.at[i].name, name) == 0) {
            mc_node_fail(g, MC_EARG, "graph_ranks: the graph has a group '%s' already", name);
            return MC_EARG;
        }
    }
    const struct mc_rank_group row = { mc_arena_str(&g->arena, name, strlen(name)), c };
    if (!row.name || !VEC_PUSH(g->groups, row)) {
        return MC_EMEMORY;
    }
    mc_comm_ref(c);
    return MC_OK;
}

/* The communicator of that name; the first of the graph for NULL, and *alone if it has none. */
static mc_comm *group_of(const mc_graph *g, const char *name, bool *alone)
{
    *alone = !name && !g->groups.n;
    for (size_t i = 0; i < g->groups.n; i++) {
        if (!name || strcmp(g->groups.at[i].name, name) == 0) {
            return g->groups.at[i].comm;
        }
    }
    return NULL;
}

static mc_status no_group(const char *op, const char *name)
{
    return mc_fail(MC_EARG,
                   "%s: the graph has no group '%s'; mc_graph_ranks names the ranks of a communicator", op,
                   name ? name : "");
}

static int ranks_of(const mc_graph *g, const struct mc_attr *group)
{
    bool alone;
    const mc_comm *c = group_of(g, group->text, &alone);
    return c ? c->size : alone ? 1 : 0;
}

/* ---- types ---- */

static int way_of(const char *name)
{
    int how = 0;
    while (how < RANKS_N && strcmp(name, mc_ranks_ops[how]) != 0) {
        how++;
    }
    return how;
}

static mc_status check_way(const struct mc_infer *q)
{
    const char *name = q->attr[AT_WAY].text;
    const int how = way_of(name);
    const mc_dtype d = q->in[0].dtype;
    return how == RANKS_N ? mc_fail(MC_EARG, "%s: '%s' is none of sum, mean, max, min", q->op->name, name)
           : how == RANKS_MEAN && !mc_is_float(d)
               ? mc_fail(MC_ETYPE, "%s: the mean of %s; only floats have one", q->op->name, mc_dtype_name(d))
           : how == RANKS_SUM && d == MC_BOOL
               ? mc_fail(MC_ETYPE, "%s: the sum of bool; max says whether any is true", q->op->name)
               : MC_OK;
}

static mc_status check_order(const struct mc_infer *q, int attr)
{
    const char *name = q->attr[attr].text;
    return strcmp(name, "fixed") == 0 || strcmp(name, "any") == 0
               ? MC_OK
               : mc_fail(MC_EARG, "%s: order='%s' is none of fixed, any", q->op->name, name);
}

static mc_status check_group(const struct mc_infer *q, int attr)
{
    const char *name = q->attr[attr].text;
    return q->graph && name && ranks_of(q->graph, &q->attr[attr]) == 0 ? no_group(q->op->name, name) : MC_OK;
}

static mc_status reduce_infer(struct mc_infer *q)
{
    q->out[0] = q->in[0];
    TRY(check_way(q));
    TRY(check_order(q, REDUCE_ORDER));
    return check_group(q, AT_GROUP);
}

static mc_status broadcast_infer(struct mc_infer *q)
{
    const int64_t root = mc_attr_int(&q->attr[0]);
    q->out[0] = q->in[0];
    TRY(check_group(q, 1));
    const int ranks = q->graph ? ranks_of(q->graph, &q->attr[1]) : 0;
    return root < 0 || (ranks && root >= ranks)
               ? mc_fail(MC_EINDEX, "broadcast: there is no rank %lld", (long long)root)
               : MC_OK;
}

static mc_status rank_infer(struct mc_infer *q)
{
    q->out[0] = (struct mc_type){ .dtype = MC_INT64 };
    return check_group(q, 0);
}

static mc_status along_ranks(struct mc_infer *q, bool gather)
{
    const int64_t ranks = mc_attr_int(&q->attr[gather ? 1 : AT_RANKS]);
    q->out[0] = q->in[0];
    int64_t *n = &q->out[0].dims[0];
    if (q->in[0].rank < 1 || ranks < 1) {
        return mc_fail(MC_ESHAPE, "%s: x is a scalar; the ranks' parts lie along the first axis",
                       q->op->name);
    }
    if (*n >= 0 && !gather && *n % ranks) {
        return mc_fail(MC_ESHAPE, "%s: %lld rows do not divide among %lld ranks", q->op->name, (long long)*n,
                       (long long)ranks);
    }
    *n = *n < 0 ? *n : gather ? *n * ranks : *n / ranks;
    return MC_OK;
}

static mc_status gather_infer(struct mc_infer *q)
{
    return along_ranks(q, true);
}

static mc_status scatter_infer(struct mc_infer *q)
{
    TRY(check_way(q));
    TRY(check_order(q, SCATTER_ORDER));
    return along_ranks(q, false);
}

static mc_node *along_size(mc_node *n, int axis, const char *op, int attr)
{
    mc_node *size = mc_size_of(n->in[0], axis);
    return axis ? size
                : mc_call_op(n->graph, op, 2,
                             (mc_node *[]){ size, mc_node_int(n->graph, mc_attr_int(&n->attr[attr])) }, NULL);
}

static mc_node *gather_size(mc_node *n, int item, int axis)
{
    (void)item;
    return along_size(n, axis, "mul", 1);
}

static mc_node *scatter_size(mc_node *n, int item, int axis)
{
    (void)item;
    return along_size(n, axis, "int_div", AT_RANKS);
}

/* ---- values ---- */

/* x in C order; to mc_array_unref. */
static mc_array *dense(mc_array *x)
{
    return mc_array_is_contiguous(x) ? mc_array_ref(x) : mc_array_copy(x);
}

static mc_status with_group(const mc_node *n, const char *name, mc_comm **c)
{
    bool alone;
    *c = group_of(n->graph, name, &alone);
    return *c || alone ? MC_OK : no_group(n->op->name, name);
}

static mc_status reduce_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_comm *c;
    TRY(with_group(n, n->attr[AT_GROUP].text, &c));
    if (!c) {
        return mc_array_assign(out[0], in[0]);
    }
    mc_array *x = dense(in[0]);
    const mc_status s = x ? mc_comm_reduce_to(c, n->op->name, (enum mc_ranks_op)way_of(n->attr[AT_WAY].text),
                                              x->dtype, x->data, out[0]->data, mc_array_size(x))
                          : mc_last_status();
    mc_array_unref(&x);
    return s;
}

static mc_status broadcast_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_comm *c;
    TRY(with_group(n, n->attr[1].text, &c));
    TRY(mc_array_assign(out[0], in[0]));
    return c ? mc_comm_broadcast_to(c, n->op->name, (int)mc_attr_int(&n->attr[0]), out[0]->dtype,
                                    out[0]->data, mc_array_size(out[0]))
             : MC_OK;
}

static mc_status rank_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_comm *c;
    (void)in;
    TRY(with_group(n, n->attr[0].text, &c));
    *(int64_t *)(void *)out[0]->data = c ? c->rank : 0;
    return MC_OK;
}

static mc_status same_ranks(const mc_node *n, const mc_comm *c, int attr)
{
    const int64_t made_for = mc_attr_int(&n->attr[attr]), are = c ? c->size : 1;
    return made_for == are ? MC_OK
                           : mc_fail(MC_EARG, "%s: made for %lld ranks, and there are %lld", n->op->name,
                                     (long long)made_for, (long long)are);
}

static mc_status gather_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_comm *c;
    TRY(with_group(n, n->attr[0].text, &c));
    TRY(same_ranks(n, c, 1));
    mc_array *x = c ? dense(in[0]) : NULL;
    const mc_status s = !c  ? mc_array_assign(out[0], in[0])
                        : x ? mc_comm_gather_to(c, n->op->name, x->dtype, x->data, out[0]->data,
                                                mc_array_size(x))
                            : mc_last_status();
    mc_array_unref(&x);
    return s;
}

static mc_status scatter_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_comm *c;
    TRY(with_group(n, n->attr[AT_GROUP].text, &c));
    TRY(same_ranks(n, c, AT_RANKS));
    mc_array *x = c ? dense(in[0]) : NULL;
    const mc_status s = !c  ? mc_array_assign(out[0], in[0])
                        : x ? mc_comm_scatter_to(c, n->op->name,
                                                 (enum mc_ranks_op)way_of(n->attr[AT_WAY].text), x->dtype,
                                                 x->data, out[0]->data, mc_array_size(out[0]))
                            : mc_last_status();
    mc_array_unref(&x);
    return s;
}

/* ---- gradients ---- */

static const struct mc_attr fixed = { .kind = ATTR_TEXT, .text = "fixed" };

static mc_node *reduced(mc_node *x, const char *how, const struct mc_attr *group, const struct mc_attr *order)
{
    const struct mc_attr attr[] = { { .kind = ATTR_TEXT, .text = how }, *group, *order };
    return mc_apply(x->graph, mc_op_named(x->graph, "all_reduce"), 1, &x, attr);
}

/* The elements that were chosen share it: those of all ranks that equal the result. */
static mc_node *share_of_chosen(mc_node *n, mc_node *g)
{
    mc_graph *graph = n->graph;
    mc_node *is = mc_call_op(graph, "eq", 2, (mc_node *[]){ n->in[0], n }, NULL),
            *one = mc_cast_to(is, g->type.dtype);
    mc_node *share = mc_call_op(graph, "true_div", 2,
                                (mc_node *[]){ one, reduced(one, "sum", &n->attr[AT_GROUP], &fixed) }, NULL);
    return mc_call_op(graph, "mul", 2,
                      (mc_node *[]){ reduced(g, "sum", &n->attr[AT_GROUP], &n->attr[REDUCE_ORDER]), share },
                      NULL);
}

static mc_node *reduce_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const int how = way_of(n->attr[AT_WAY].text);
    (void)wrt;
    return !g[0] || !mc_is_float(g[0]->type.dtype) ? g[0]
           : how == RANKS_SUM || how == RANKS_MEAN
               ? reduced(g[0], mc_ranks_ops[how], &n->attr[AT_GROUP], &n->attr[REDUCE_ORDER])
               : share_of_chosen(n, g[0]);
}

static mc_node *broadcast_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    if (!g[0] || !mc_is_float(g[0]->type.dtype)) {
        return g[0];
    }
    mc_graph *graph = n->graph;
    mc_node *rank = mc_apply(graph, mc_op_named(graph, "rank_of"), 0, NULL, &n->attr[1]);
    mc_node *is = mc_call_op(graph, "eq", 2,
                             (mc_node *[]){ rank, mc_node_int(graph, mc_attr_int(&n->attr[0])) }, NULL);
    return mc_call_op(graph, "where", 3,
                      (mc_node *[]){ is, reduced(g[0], "sum", &n->attr[1], &fixed), mc_node_like(g[0], 0) },
                      NULL);
}

static mc_node *scattered(mc_node *x, const char *how, const struct mc_attr *group,
                          const struct mc_attr *ranks, const struct mc_attr *order)
{
    const struct mc_attr attr[] = { { .kind = ATTR_TEXT, .text = how }, *group, *ranks, *order };
    return mc_apply(x->graph, mc_op_named(x->graph, "scatter_ranks"), 1, &x, attr);
}

static mc_node *gathered(mc_node *x, const struct mc_attr *group, const struct mc_attr *ranks)
{
    const struct mc_attr attr[] = { *group, *ranks };
    return mc_apply(x->graph, mc_op_named(x->graph, "gather_ranks"), 1, &x, attr);
}

static mc_node *gather_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return g[0] && mc_is_float(g[0]->type.dtype) ? scattered(g[0], "sum", &n->attr[0], &n->attr[1], &fixed)
                                                 : g[0];
}

static mc_node *scatter_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const int how = way_of(n->attr[AT_WAY].text);
    (void)wrt;
    if (!g[0] || !mc_is_float(g[0]->type.dtype)) {
        return g[0];
    }
    if (how != RANKS_SUM && how != RANKS_MEAN) {
        return mc_node_fail(n->graph, MC_EGRAD, "reduce_scatter of a %s has no gradient: take all_reduce",
                            mc_ranks_ops[how]);
    }
    mc_node *all = gathered(g[0], &n->attr[AT_GROUP], &n->attr[AT_RANKS]);
    return how == RANKS_SUM
               ? all
               : mc_call_op(n->graph, "true_div", 2,
                            (mc_node *[]){ all, mc_node_like(all, (double)mc_attr_int(&n->attr[AT_RANKS])) },
                            NULL);
}

/* ---- on a device ---- */

/* Where the attributes of each collective are; -1: it has none. */
static const struct row {
    const char *name;
    enum mc_collective_kind kind;
    int group, ranks, order;
} rows[] = {
    { "all_reduce",    RANKS_REDUCE,    AT_GROUP, -1,       REDUCE_ORDER },
    { "scatter_ranks", RANKS_SCATTER,   AT_GROUP, AT_RANKS, SCATTER_ORDER },
    { "gather_ranks",  RANKS_GATHER,    0,        1,        -1 },
    { "broadcast",     RANKS_BROADCAST, 1,        -1,       -1 },
};

static const struct row *row_of(const mc_node *n)
{
    for (size_t i = 0; n->op->form == FORM_RANKS && i < NELEM(rows); i++) {
        if (strcmp(n->op->name, rows[i].name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

bool mc_collective_of(const mc_node *n, struct mc_collective *out)
{
    bool alone;
    const struct row *row = row_of(n);
    if (!row) {
        return false;
    }
    mc_comm *c = group_of(n->graph, n->attr[row->group].text, &alone);
    *out = (struct mc_collective){ .kind = row->kind, .comm = c };
    if (row->order >= 0) {
        out->how = (enum mc_ranks_op)way_of(n->attr[AT_WAY].text);
        out->any_order = strcmp(n->attr[row->order].text, "any") == 0;
    }
    out->root = row->kind == RANKS_BROADCAST ? (int)mc_attr_int(&n->attr[0]) : -1;
    return c && (row->ranks < 0 || same_ranks(n, c, row->ranks) == MC_OK);
}

mc_node *mc_collective_alone(const mc_node *n)
{
    const struct row *row = row_of(n);
    return row && ranks_of(n->graph, &n->attr[row->group]) == 1 && mc_type_equal(&n->type, &n->in[0]->type)
               ? n->in[0]
               : NULL;
}

/* ---- what users write ---- */

static mc_node *build_gather(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t ranks = ranks_of(g, &attr[0]);
    const struct mc_attr number = { .kind = ATTR_INT, .n = 1, .ints = &ranks };
    (void)nin;
    return ranks ? gathered(in[0], &attr[0], &number)
                 : mc_node_fail(g, no_group("all_gather", attr[0].text), "%s", mc_last_error());
}

static mc_node *build_scatter(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t ranks = ranks_of(g, &attr[AT_GROUP]);
    const struct mc_attr number = { .kind = ATTR_INT, .n = 1, .ints = &ranks };
    (void)nin;
    return ranks ? scattered(in[0], attr[AT_WAY].text, &attr[AT_GROUP], &number, &attr[2])
                 : mc_node_fail(g, no_group("reduce_scatter", attr[AT_GROUP].text), "%s", mc_last_error());
}

const struct mc_op mc_ops_collective[] = {
    { .name = "all_reduce", .params = "x, op=sum:text, group=None:text, order=fixed:text", .form = FORM_RANKS, .flags = OP_IMPURE, .nout = 1, .infer = reduce_infer,
      .size = mc_same_size, .eval = reduce_eval, .grad = reduce_grad,
      .doc = MANUAL("x of all ranks, reduced by sum, mean, max or min; every rank has the result. Without a group x is alone. order=any: in whatever order is fastest, not in the fixed tree") },
    { .name = "broadcast", .params = "x, root=0:int, group=None:text", .form = FORM_RANKS, .flags = OP_IMPURE, .nout = 1, .infer = broadcast_infer,
      .size = mc_same_size, .eval = broadcast_eval, .grad = broadcast_grad,
      .doc = MANUAL("x of rank root, in every rank") },
    BUILT({ .name = "all_gather", .params = "x, group=None:text", .nout = 1, .build = build_gather,
      .example = MANUAL("all_gather([1., 2])"), .doc = MANUAL("x of all ranks, one after another along the first axis") })
    BUILT({ .name = "reduce_scatter", .params = "x, op=sum:text, group=None:text, order=fixed:text", .nout = 1, .build = build_scatter,
      .example = MANUAL("reduce_scatter([1., 2])"),
      .doc = MANUAL("the rank's own part, along the first axis, of what all_reduce gives") })
    { .name = "rank_of", .params = "group=None:text", .form = FORM_RANKS, .flags = OP_IMPURE, .nout = 1, .infer = rank_infer, .size = mc_same_size,
      .eval = rank_eval, .doc = MANUAL("the number of this rank in its group, from 0; an int64") },
    { .name = "gather_ranks", .params = "x, group=None:text, ranks=1:int", .form = FORM_RANKS, .flags = OP_IMPURE | OP_HIDDEN, .nout = 1,
      .infer = gather_infer, .size = gather_size, .eval = gather_eval, .grad = gather_grad,
      .doc = MANUAL("all_gather for a known number of ranks") },
    { .name = "scatter_ranks", .params = "x, op=sum:text, group=None:text, ranks=1:int, order=fixed:text", .form = FORM_RANKS, .flags = OP_IMPURE | OP_HIDDEN,
      .nout = 1, .infer = scatter_infer, .size = scatter_size, .eval = scatter_eval, .grad = scatter_grad,
      .doc = MANUAL("reduce_scatter for a known number of ranks") },
};
const int mc_nops_collective = (int)NELEM(mc_ops_collective);

/* program.c: a program: its values, its steps, their kernels in kernel form. */
#include "bundle/bundle.h"
#include "op/op.h"
#include <limits.h>

/* ---- kernels ---- */

struct counts { int64_t value, step, operand; }; /* what numbers of a step may name */

static const struct mc_op *scalar_op(struct mc_wire *w, const mc_graph *g, const struct mc_op *have, int narg,
                                     bool reduces)
{
    const char *name = have ? have->name : NULL;
    mc_wire_text(w, &name);
    const struct mc_op *op = have ? have : name && mc_wire_good(w) ? mc_wire_op(g, name) : NULL;
    if (w->reading && mc_wire_good(w) &&
        (!op || (reduces ? op->reduction == REDUCE_NONE || narg != 1 : !narg || op->arity != narg))) {
        mc_wire_fail(w, "a kernel has an op that there is not");
    }
    return op;
}

static void kernel_value(struct mc_wire *w, const mc_graph *g, struct mc_kval *v, int number,
                         int64_t operands)
{
    MC_WIRE_INT(w, v->kind, K_LOAD, K_CHECK);
    MC_WIRE_INT(w, v->dtype, 0, MC_NDTYPE - 1);
    MC_WIRE_INT(w, v->acc, 0, MC_NDTYPE - 1);
    MC_WIRE_INT(w, v->narg, 0, (int)NELEM(v->arg));
    for (int i = 0; i < v->narg && mc_wire_good(w); i++) {
        MC_WIRE_INT(w, v->arg[i], 0, number - 1);
    }
    if (v->kind == K_OP || v->kind == K_REDUCE) {
        MC_WIRE_FIELD(w, v->op, scalar_op(w, g, v->op, v->narg, v->kind == K_REDUCE));
    }
    if (v->kind == K_LOAD || v->kind == K_INDEX) {
        MC_WIRE_INT(w, v->operand, 0, operands - 1);
    }
    MC_WIRE_INT(w, v->varies, 0, (1 << MC_MAX_RANK) - 1);
    mc_wire_bytes(w, v->bits, sizeof v->bits);
}

static void kernel_operand(struct mc_wire *w, struct mc_koperand *o, int64_t values)
{
    MC_WIRE_INT(w, o->dtype, 0, MC_NDTYPE - 1);
    MC_WIRE_INT(w, o->varies, 0, (1 << MC_MAX_RANK) - 1);
    MC_WIRE_BOOL(w, o->dst);
    MC_WIRE_BOOL(w, o->column_sums);
    MC_WIRE_BOOL(w, o->index);
    if (o->dst) {
        MC_WIRE_INT(w, o->val, 0, values - 1);
    }
}

static void kernel(struct mc_wire *w, const mc_graph *g, struct mc_kernel *k)
{
    mc_wire_bytes(w, k->name, sizeof k->name);
    MC_WIRE_INT(w, k->rank, 0, MC_MAX_RANK);
    MC_WIRE_INT(w, k->reduced, 0, (1 << MC_MAX_RANK) - 1);
    MC_WIRE_BOOL(w, k->exact);
    MC_WIRE_BOOL(w, k->lanes);
    const bool bounded = mc_wire_bool(w, k->bounded);
    const int values = mc_wire_int(w, (int)k->val.n, 0, INT32_MAX);
    const int operands = mc_wire_int(w, (int)k->operand.n, 0, MOST_OPERANDS);
    if (w->reading && mc_wire_good(w)) {
        k->name[sizeof k->name - 1] = '\0';
        if (values > w->end - w->at) {
            mc_wire_fail(w, "a list is longer than the file");
        } else if (!VEC_RESERVE(k->val, (size_t)values) || !VEC_RESERVE(k->operand, (size_t)operands)) {
            w->status = MC_EMEMORY;
        }
    }
    for (int i = 0; i < values && mc_wire_good(w); i++) {
        if (w->reading) {
            k->val.at[k->val.n++] = (struct mc_kval){ 0 };
        }
        kernel_value(w, g, &k->val.at[i], i, operands);
    }
    for (int i = 0; i < operands && mc_wire_good(w); i++) {
        if (w->reading) {
            k->operand.at[k->operand.n++] = (struct mc_koperand){ 0 };
        }
        kernel_operand(w, &k->operand.at[i], values);
    }
    if (w->reading && mc_wire_good(w)) {
        w->status = mc_kernel_analyse(k);
        k->bounded = bounded; /* how a function was printed, only its printer knows */
    }
}

/* ---- values and steps ---- */

static void value(struct mc_wire *w, struct mc_value *v, int number, const struct mc_bundle_nodes *nodes,
                  const struct mc_program *p, int64_t steps)
{
    MC_WIRE_INT(w, v->kind, VALUE_INPUT, VALUE_VIEW);
    mc_wire_node(w, nodes, &v->node);
    MC_WIRE_INT(w, v->step, -1, steps - 1);
    MC_WIRE_INT(w, v->view_of, v->kind == VALUE_VIEW ? 0 : -1, number - 1);
    MC_WIRE_INT(w, v->last, -1, INT_MAX);
    MC_WIRE_INT(w, v->input, v->kind == VALUE_INPUT ? 0 : -1, p->ninput - 1);
    MC_WIRE_BOOL(w, v->is_output);
    if (w->reading && mc_wire_good(w) &&
        ((v->kind == VALUE_CONST && !v->node->value) || (v->kind == VALUE_SHARED && !v->node->shared))) {
        mc_wire_fail(w, "a value is of another kind than its node");
    }
}

static void numbers(struct mc_wire *w, int **at, int *n, int64_t least, int64_t most)
{
    MC_WIRE_INT(w, *n, 0, INT32_MAX);
    MC_WIRE_LIST(w, *at, *n);
    for (int i = 0; i < *n && mc_wire_good(w); i++) {
        MC_WIRE_INT(w, (*at)[i], least, most);
    }
}

static void epilogue(struct mc_wire *w, struct mc_epilogue *e, int64_t values)
{
    MC_WIRE_BOOL(w, e->known);
    if (!e->known) {
        return;
    }
    MC_WIRE_INT(w, e->act, 0, ACT_SWISH);
    MC_WIRE_INT(w, e->nterm, 0, EPILOGUE_TERMS);
    for (int i = 0; i < e->nterm; i++) {
        MC_WIRE_INT(w, e->term[i], 0, values - 1);
    }
    MC_WIRE_INT(w, e->result, 0, values - 1);
    MC_WIRE_INT(w, e->cast, 0, MC_NDTYPE - 1);
}

static void step(struct mc_wire *w, const mc_graph *g, struct mc_step *s, int number,
                 const struct mc_bundle_nodes *nodes, int64_t values)
{
    int operands = s->kernel ? (int)s->kernel->operand.n : 0;
    MC_WIRE_INT(w, s->kind, STEP_KERNEL, STEP_HOST);
    MC_WIRE_INT(w, s->nnode, 1, INT32_MAX);
    MC_WIRE_LIST(w, s->node, s->nnode);
    for (int i = 0; i < s->nnode && mc_wire_good(w); i++) {
        mc_wire_node(w, nodes, &s->node[i]);
    }
    if (mc_wire_bool(w, s->kernel)) {
        if (w->reading && !(s->kernel = mc_calloc(1, sizeof *s->kernel, "kernel"))) {
            w->status = MC_EMEMORY;
            return;
        }
        kernel(w, g, s->kernel);
        numbers(w, &s->operand, &operands, -MC_MAX_RANK, values - 1);
        if (mc_wire_good(w) && operands != (int)s->kernel->operand.n) {
            mc_wire_fail(w, "a kernel has other operands than its step");
        }
    }
    numbers(w, &s->src, &s->nsrc, 0, values - 1);
    numbers(w, &s->dst, &s->ndst, 0, values - 1);
    MC_WIRE_INT(w, s->product, -1, operands - 1);
    if (mc_wire_bool(w, s->heavy)) {
        mc_wire_node(w, nodes, &s->heavy);
    }
    epilogue(w, &s->epilogue, values);
    MC_WIRE_INT(w, s->before, -1, number - 1);
    mc_wire_text(w, &s->reason);
    if (w->reading && mc_wire_good(w) &&
        (!s->reason || (s->kind == STEP_KERNEL && !s->kernel) ||
         (s->kind == STEP_HEAVY) != (s->heavy != NULL) ||
         (s->kernel && s->kind != STEP_KERNEL && s->kind != STEP_HEAVY))) {
        mc_wire_fail(w, "a step lacks a part");
    }
}

/* ---- programs ---- */

/* By node id, the value that the node is. */
static void find_values(struct mc_wire *w, struct mc_program *p)
{
    p->value_of = mc_alloc((p->graph->nodes.n + 1) * sizeof *p->value_of, "program");
    if (!p->value_of) {
        w->status = MC_EMEMORY;
        return;
    }
    for (size_t i = 0; i <= p->graph->nodes.n; i++) {
        p->value_of[i] = -1;
    }
    for (size_t i = 0; i < p->value.n; i++) {
        p->value_of[p->value.at[i].node->id] = (int)i;
    }
}

/* The nodes that a program names, and those that they depend on, in the order of ids. */
static bool collect(const struct mc_program *p, struct mc_bundle_nodes *nodes)
{
    VEC(mc_node *) named = { 0 };
    bool good = true;
    size_t count = 0;
    for (size_t i = 0; i < p->value.n; i++) {
        good = good && VEC_PUSH(named, p->value.at[i].node);
    }
    for (size_t i = 0; i < p->step.n; i++) {
        for (int k = 0; k < p->step.at[i].nnode; k++) {
            good = good && VEC_PUSH(named, p->step.at[i].node[k]);
        }
    }
    for (int i = 0; i < p->ninput; i++) {
        good = good && VEC_PUSH(named, p->input[i]);
    }
    nodes->at = good ? mc_graph_reach((int)named.n, named.at, &count) : NULL;
    nodes->number = mc_alloc((p->graph->nodes.n + 1) * sizeof *nodes->number, "program");
    nodes->n = (int64_t)count;
    for (size_t i = 0; nodes->number && i <= p->graph->nodes.n; i++) {
        nodes->number[i] = -1;
    }
    for (size_t i = 0; nodes->at && nodes->number && i < count; i++) {
        nodes->number[nodes->at[i]->id] = (int64_t)i;
    }
    VEC_FREE(named);
    return nodes->at && nodes->number;
}

static void lists(struct mc_wire *w, struct mc_program *p, const struct mc_bundle_shared *s,
                  const struct mc_bundle_nodes *nodes, int64_t values)
{
    MC_WIRE_LIST(w, p->input, p->ninput);
    MC_WIRE_LIST(w, p->key_input, p->ninput);
    for (int i = 0; i < p->ninput && mc_wire_good(w); i++) {
        mc_wire_node(w, nodes, &p->input[i]);
        MC_WIRE_BOOL(w, p->key_input[i]);
    }
    numbers(w, &p->output, &p->noutput, 0, values - 1);
    numbers(w, &p->update, &p->nupdate, 0, values - 1);
    MC_WIRE_LIST(w, p->shared, p->nupdate);
    for (int i = 0; i < p->nupdate && mc_wire_good(w); i++) {
        int at = 0;
        while (!w->reading && s->at[at] != p->shared[i]) {
            at++;
        }
        at = mc_wire_int(w, at, 0, s->n - 1);
        if (w->reading && mc_wire_good(w)) {
            p->shared[i] = s->at[at];
        }
    }
}

void mc_wire_program(struct mc_wire *w, struct mc_program *p, const struct mc_bundle_shared *s, bool on_host)
{
    struct mc_bundle_nodes nodes = { 0 };
    if (!w->reading && !collect(p, &nodes)) {
        w->status = MC_EMEMORY;
    }
    mc_wire_nodes(w, p->graph, s, &nodes, on_host);
    const int values = mc_wire_int(w, (int)p->value.n, 0, INT32_MAX);
    const int steps = mc_wire_int(w, (int)p->step.n, 0, INT32_MAX);
    MC_WIRE_INT(w, p->ninput, 0, INT32_MAX);
    if (w->reading && mc_wire_good(w)) {
        if (values > w->end - w->at || steps > w->end - w->at) {
            mc_wire_fail(w, "a list is longer than the file");
        } else if (!VEC_RESERVE(p->value, (size_t)values) || !VEC_RESERVE(p->step, (size_t)steps)) {
            w->status = MC_EMEMORY;
        }
    }
    for (int i = 0; i < values && mc_wire_good(w); i++) {
        if (w->reading) {
            p->value.at[p->value.n++] = (struct mc_value){ 0 };
        }
        value(w, &p->value.at[i], i, &nodes, p, steps);
    }
    for (int i = 0; i < steps && mc_wire_good(w); i++) {
        if (w->reading) {
            p->step.at[p->step.n++] = (struct mc_step){ 0 };
        }
        step(w, p->graph, &p->step.at[i], i, &nodes, values);
    }
    if (mc_wire_good(w)) {
        lists(w, p, s, &nodes, values);
    }
    MC_WIRE_BOOL(w, p->dynamic);
    MC_WIRE_INT(w, p->last_check, -1, steps - 1);
    MC_WIRE_INT(w, p->nkernel, 0, INT32_MAX);
    if (w->reading && mc_wire_good(w)) {
        find_values(w, p);
    }
    if (!w->reading) {
        mc_free(nodes.at);
        mc_free(nodes.number);
    }
}

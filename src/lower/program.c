/* program.c: makes a program: groups become steps, what they read and store becomes values.  The steps of
 * lowering are listed in group.c.
 *
 * Invariant: a step reads only values of earlier steps and leaves. */
#include "lower/make.h"
#include <limits.h>

static bool is_view(const mc_node *n)
{
    return n->op->flags & OP_VIEW && n->op->form != FORM_NONE;
}

/* ---- values ---- */

int mc_add_value(struct make *m, enum mc_value_kind kind, mc_node *n, int step)
{
    struct mc_value v = { .kind = kind, .node = n, .step = step, .view_of = -1, .last = -1, .input = -1 };
    m->p->value_of[n->id] = (int)m->p->value.n;
    return VEC_PUSH(m->p->value, v) ? (int)m->p->value.n - 1 : -1;
}

int mc_value_of(struct make *m, mc_node *n)
{
    int v = m->p->value_of[n->id];
    if (v >= 0) {
        return v;
    }
    if (n->op == &mc_op_shared) {
        return mc_add_value(m, VALUE_SHARED, n, -1);
    }
    if (mc_is_const(n)) {
        return mc_add_value(m, VALUE_CONST, n, -1);
    }
    return n->op == &mc_op_input ? mc_add_value(m, VALUE_INPUT, n, -1) : -1;
}

bool mc_copy_list(struct mc_program *p, int **to, const int *from, int n)
{
    *to = mc_arena_alloc(&p->arena, (size_t)(n + 1) * sizeof *from);
    if (*to && n) {
        memcpy(*to, from, (size_t)n * sizeof *from);
    }
    return *to != NULL;
}

/* The value of n, to read its size: a node inside a kernel gets a value without memory. */
static int size_of(struct make *m, mc_node *n)
{
    int v = mc_value_of(m, n);
    return v < 0 && m->made[n->id] ? mc_add_value(m, VALUE_FUSED, n, m->made[n->id] - 1) : v;
}

/* A step over whole nodes: its sources are all inputs of the nodes, its results their items. */
mc_status mc_add_step(struct make *m, enum mc_step_kind kind, mc_node *n, const char *reason)
{
    struct mc_program *p = m->p;
    VEC(int) src = { 0 };
    int dst[MC_MOST_RESULTS];
    struct mc_step s = {
        .kind = kind, .nnode = 1, .product = -1, .before = -1, .reason = reason, .ndst = n->nout
    };
    mc_status st = MC_OK;
    for (int i = 0; i < n->nin && st == MC_OK; i++) {
        int v = kind == STEP_TYPE || mc_reads_type_only(n) ? size_of(m, n->in[i]) : mc_value_of(m, n->in[i]);
        st = v < 0              ? mc_fail(MC_EINTERNAL, "lower: no value for input %d of %s", i, n->op->name)
             : VEC_PUSH(src, v) ? MC_OK
                                : MC_EMEMORY;
    }
    s.nsrc = (int)src.n;
    enum mc_value_kind made = kind == STEP_PLAN_TIME ? VALUE_PLAN_TIME
                              : kind == STEP_VIEW    ? VALUE_VIEW
                                                     : VALUE_TEMP;
    for (int i = 0; i < n->nout && st == MC_OK; i++) {
        mc_node *item = n->nout == 1 ? n : mc_item(n, i);
        if (item->id >= p->graph->nodes.n || mc_is_error(item)) {
            st = MC_EMEMORY;
            break;
        }
        dst[i] = mc_add_value(m, made, item, (int)p->step.n);
        if (dst[i] >= 0 && made == VALUE_VIEW) {
            p->value.at[dst[i]].view_of = src.at[0];
        }
        st = dst[i] >= 0 ? MC_OK : MC_EMEMORY;
    }
    s.node = mc_arena_copy(&p->arena, &n, sizeof n);
    s.heavy = kind == STEP_HEAVY ? n : NULL;
    if (st == MC_OK && (!s.node || !mc_copy_list(p, &s.src, src.at, s.nsrc) ||
                        !mc_copy_list(p, &s.dst, dst, s.ndst) || !VEC_PUSH(p->step, s))) {
        st = MC_EMEMORY;
    }
    VEC_FREE(src);
    return st;
}

static const char *reference_reason(const mc_node *n)
{
    if (n->op->custom) {
        return "a custom op";
    }
    if (n->op->flags & OP_MATMUL) {
        return "an integer product";
    }
    return "no kernel for this op";
}

static bool needs_type_only(const struct make *m, const mc_node *n)
{
    return !m->early[n->id] && !m->needed[n->id] && n->op != &mc_op_item;
}

/* The nodes of one group, in id order. */
static mc_status emit_group(struct make *m, mc_node **node, int n)
{
    struct mc_node_list inner = { 0 }, all = { 0 };
    mc_status st = MC_OK;
    for (int i = 0; i < n && st == MC_OK; i++) {
        mc_node *x = node[i];
        if (m->early[x->id]) {
            st = mc_add_step(m, STEP_PLAN_TIME, x, "");
        } else if (needs_type_only(m, x)) {
            continue; /* added after the kernel, where the types of its nodes are known */
        } else if (mc_is_fusible(x)) {
            st = (mc_counts(x) && !m->wanted[x->id]) || VEC_PUSH(inner, x) ? MC_OK : MC_EMEMORY;
        } else if (x->op == &mc_op_item) {
            continue; /* its tuple made it */
        } else if (is_view(x)) {
            st = mc_position_axis(x) >= 0 && !m->wanted[x->id] ? MC_OK : mc_add_step(m, STEP_VIEW, x, "");
        } else if (mc_is_heavy(x)) {
            st = m->finisher[x->id] ? MC_OK : mc_add_step(m, STEP_HEAVY, x, "");
        } else {
            st = mc_add_step(m, STEP_HOST, x, reference_reason(x));
        }
    }
    bool used = false;
    for (size_t i = 0; i < inner.n; i++) {
        used |= m->wanted[inner.at[i]->id] != 0;
    }
    if (st == MC_OK && inner.n && used) {
        int group = m->groups.of[inner.at[0]->id];
        st = mc_kernel_nodes(m, group, inner.at, (int)inner.n, &all);
        st = st < 0 ? st : mc_make_kernel(m, group, all.at, (int)all.n);
    }
    for (int i = 0; i < n && st == MC_OK; i++) {
        st = needs_type_only(m, node[i]) ? mc_add_step(m, STEP_TYPE, node[i], "") : MC_OK;
    }
    VEC_FREE(inner);
    VEC_FREE(all);
    return st;
}

/* Step i reads what s reads: s is step i itself, or a step before, whose work step i may do. */
static void reads(struct mc_program *p, const struct mc_step *s, int i)
{
    for (int k = 0; k < s->nsrc; k++) {
        for (int v = s->src[k]; v >= 0; v = p->value.at[v].view_of) {
            p->value.at[v].last = MC_MAX(p->value.at[v].last, i);
        }
    }
}

static void find_lifetimes(struct mc_program *p)
{
    for (size_t i = 0; i < p->step.n; i++) {
        reads(p, &p->step.at[i], (int)i);
        for (int k = p->step.at[i].before; k >= 0; k = p->step.at[k].before) {
            reads(p, &p->step.at[k], (int)i);
        }
    }
    for (int i = 0; i < p->noutput + p->nupdate; i++) {
        for (int v = i < p->noutput ? p->output[i] : p->update[i - p->noutput]; v >= 0;
             v = p->value.at[v].view_of) {
            p->value.at[v].last = INT_MAX;
            p->value.at[v].is_output = true;
        }
    }
}

/* ---- decisions on nodes, before steps are made ---- */

static mc_status alloc_tables(struct make *m)
{
    struct mc_program *p = m->p;
    size_t n = p->graph->nodes.n + 1;
    for (size_t i = 0; i < m->groups.count; i++) { /* items of tuples may still be made */
        n += m->groups.list[i]->nout > 1 ? (size_t)m->groups.list[i]->nout : 0;
    }
    p->value_of = mc_alloc(n * sizeof *p->value_of, "lower");
    m->early = mc_calloc(n, 1, "lower");
    m->needed = mc_calloc(n, 1, "lower");
    m->wanted = mc_calloc(n, 1, "lower");
    m->coded = mc_calloc(n, 1, "lower");
    m->val = mc_calloc(n, sizeof *m->val, "lower");
    m->made = mc_calloc(n, sizeof *m->made, "lower");
    m->within = mc_calloc(n, sizeof *m->within, "lower");
    m->finisher = mc_calloc(n, sizeof *m->finisher, "lower");
    m->epilogue = mc_alloc((size_t)(m->groups.n + 1) * sizeof *m->epilogue, "lower");
    m->late = mc_calloc((size_t)(m->groups.n + 1), sizeof *m->late, "lower");
    m->separate = mc_calloc((size_t)(m->groups.n + 1), sizeof *m->separate, "lower");
    if (!p->value_of || !m->early || !m->needed || !m->wanted || !m->coded || !m->val || !m->made ||
        !m->within || !m->finisher || !m->epilogue || !m->late || !m->separate) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        p->value_of[i] = -1;
    }
    for (int i = 0; i <= m->groups.n; i++) {
        m->epilogue[i] = -1;
    }
    return MC_OK;
}

static void free_tables(struct make *m)
{
    mc_free(m->early);
    mc_free(m->needed);
    mc_free(m->wanted);
    mc_free(m->coded);
    mc_free(m->val);
    mc_free(m->made);
    mc_free(m->within);
    mc_free(m->finisher);
    mc_free(m->epilogue);
    mc_free(m->late);
    mc_free(m->separate);
    mc_groups_free(&m->groups);
    *m = (struct make){
        .p = m->p, .rounds = m->rounds, .starts = m->starts, .updates_late = m->updates_late
    };
}

static mc_status find_wanted(struct make *m, mc_node *const *out, int nout, enum mc_fusing fuse)
{
    mc_node **list = m->groups.list;
    size_t count = m->groups.count;
    mc_find_shape_work(m, list, count);
    mc_find_required(m, list, count);
    for (int i = 0; i < nout; i++) {
        m->needed[out[i]->id] = 1;
        m->wanted[out[i]->id] = 1;
    }
    for (size_t i = count; i-- > 0;) {
        mc_node *n = list[i];
        for (int k = 0; k < n->nin; k++) { /* sizes need this input even if n is not needed */
            m->needed[n->in[k]->id] |= (m->needed[n->id] && !mc_reads_type_only(n)) || mc_is_shape_arg(n, k);
        }
    }
    for (size_t i = count; i-- > 0;) { /* readers first: they decide whether n is stored */
        if ((m->needed[list[i]->id] || m->early[list[i]->id]) && !(list[i]->op->flags & OP_LEAF)) {
            mc_mark_stored_inputs(m, list[i]);
        }
        for (int k = 0; k < list[i]->nin; k++) {
            m->wanted[list[i]->in[k]->id] |= mc_is_shape_arg(list[i], k);
        }
    }
    /* a size that is read at plan time, of a node inside a kernel: the node must be stored after all */
    for (size_t i = 0; i < count; i++) {
        if (mc_reads_type_only(list[i]) && m->early[list[i]->id]) {
            m->wanted[list[i]->in[0]->id] = 1;
        }
    }
    return fuse == FUSE_NOTHING ? MC_OK : mc_find_recomputed(m, list, count);
}

/* Groups the nodes that `out` depends on, and decides which of them are stored. */
static mc_status init_lowering(struct make *m, mc_node **out, int nout, enum mc_fusing fuse)
{
    struct mc_program *p = m->p;
    TRY(fuse == FUSE_NOTHING ? MC_OK : mc_lower_copies(p->graph, nout, out));
    TRY(mc_group(p->graph, nout, out, fuse, &m->groups));
    TRY(alloc_tables(m));
    for (int i = 0; i < nout; i++) {
        *(i < p->noutput ? &p->output[i] : &p->update[i - p->noutput]) = (int)out[i]->id;
    }
    return find_wanted(m, out, nout, fuse);
}

/* Calls init_lowering.  If signs are stored, they are then made from bytes, and the new graph is grouped (see
 * group.c). */
static mc_status lower_with_sign_bytes(struct make *m, mc_node **out, int nout, enum mc_fusing fuse)
{
    bool changed = false;
    TRY(init_lowering(m, out, nout, fuse));
    if (fuse != FUSE_NOTHING) {
        TRY(mc_lower_sign_bytes(m, nout, out, &changed));
    }
    if (changed) {
        mc_free(m->p->value_of);
        m->p->value_of = NULL;
        free_tables(m);
        TRY(init_lowering(m, out, nout, fuse));
    }
    return MC_OK;
}

/* x == max(x) compares bits, and x may be computed twice: once for the maximum, once here.  The two must
 * round alike, or no element is the largest.  They would not if the compiler fuses a product and a sum in one
 * place alone, if one multiplies by 1 / y where the other divides, or if one is a half that was stored and
 * the other was not. */
static bool compares(mc_node *const *list, size_t n)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        const mc_node *x = list[i];
        found |= x->op->typing == TYPE_BOOL && x->op->arity == 2 && mc_is_float(x->in[0]->type.dtype) &&
                 !mc_is_const(x->in[0]) && !mc_is_const(x->in[1]);
    }
    return found;
}

static void make_exact(struct mc_program *p)
{
    for (size_t i = 0; i < p->step.n; i++) {
        if (p->step.at[i].kernel) {
            p->step.at[i].kernel->exact = true;
        }
    }
}

/* ---- steps ---- */

static mc_status build(struct make *m, mc_node *const *out, int nout)
{
    struct mc_program *p = m->p;
    mc_node **list = m->groups.list;
    size_t count = m->groups.count;
    m->exact = compares(list, count);
    m->rounds |= m->exact;
    TRY(mc_find_updates(m, list, count));
    TRY(mc_find_epilogues(m, list, count));
    mc_node **sorted = mc_alloc((count + 1) * sizeof *sorted, "lower");
    mc_status st = sorted ? mc_order_groups(m, list, count, sorted) : MC_EMEMORY;
    for (size_t i = 0, to; st == MC_OK && sorted[i]; i = to) {
        for (to = i + 1; sorted[to] && m->groups.of[sorted[to]->id] == m->groups.of[sorted[i]->id]; to++) {
        }
        st = emit_group(m, sorted + i, (int)(to - i));
    }
    mc_free(sorted);
    for (int i = 0; i < nout && st == MC_OK; i++) {
        int v = mc_value_of(m, out[i]);
        *(i < p->noutput ? &p->output[i] : &p->update[i - p->noutput]) = v;
        st = v >= 0 ? MC_OK : mc_fail(MC_EINTERNAL, "lower: an output has no value");
    }
    if (st == MC_OK) {
        if (m->exact) {
            make_exact(p);
        }
        mc_find_pooled_steps(p);
        find_lifetimes(p);
    }
    return st;
}

/* Also inputs that nothing reads: a call passes them. */
static mc_status add_inputs(struct make *m, int nin, mc_node *const *in)
{
    for (int i = 0; i < nin; i++) {
        const int v = mc_add_value(m, VALUE_INPUT, in[i], -1);
        if (v < 0) {
            return MC_EMEMORY;
        }
        m->p->value.at[v].input = i;
    }
    return MC_OK;
}

/* all: outputs, then updates */
static mc_status lower(struct make *m, mc_node **all, enum mc_fusing fuse)
{
    struct mc_program *p = m->p;
    const int n = p->noutput + p->nupdate;
    TRY(mc_lower_expand(p->graph, n, all, fuse == FUSE_DRAWS));
    TRY(lower_with_sign_bytes(m, all, n, fuse));
    TRY(add_inputs(m, p->ninput, p->input));
    return build(m, all, n);
}

/* Can the step fail during a call? */
static bool may_fail(const struct mc_program *p, const struct mc_step *s)
{
    return mc_step_sets_part(s) ? !mc_part_is_known(p, s)
                                : s->kind == STEP_HOST || (s->kernel && mc_kernel_checks(s->kernel));
}

mc_status mc_program_make(struct mc_program *p, mc_graph *g, int nin, mc_node *const *in, int nout,
                          mc_node *const *out, int nup, struct mc_shared *const *shared,
                          mc_node *const *update, const struct mc_lower_how *how)
{
    *p = (struct mc_program){ .graph = g, .ninput = nin, .noutput = nout, .nupdate = nup };
    mc_node **all = mc_alloc((size_t)(nout + nup + 1) * sizeof *all, "lower");
    struct make m = {
        .p = p, .rounds = how->rounds, .starts = how->starts, .updates_late = how->fuse == FUSE_DRAWS
    };
    p->input = mc_arena_alloc(&p->arena, (size_t)(nin + 1) * sizeof *in);
    p->key_input = mc_arena_alloc(&p->arena, (size_t)nin + 1);
    p->output = mc_arena_alloc(&p->arena, (size_t)(nout + 1) * sizeof *p->output);
    p->update = mc_arena_alloc(&p->arena, (size_t)(nup + 1) * sizeof *p->update);
    p->shared = mc_arena_alloc(&p->arena, (size_t)(nup + 1) * sizeof *shared);
    mc_status st = all && p->input && p->key_input && p->output && p->update && p->shared ? MC_OK
                                                                                          : MC_EMEMORY;
    for (int i = 0; i < nout + nup && st == MC_OK; i++) {
        all[i] = i < nout ? out[i] : update[i - nout];
    }
    for (int i = 0; i < nin && st == MC_OK; i++) {
        p->input[i] = in[i];
    }
    for (int i = 0; i < nup && st == MC_OK; i++) {
        p->shared[i] = shared[i];
    }
    st = st < 0 ? st : lower(&m, all, how->fuse);
    p->last_check = -1;
    for (size_t i = 0; i < p->step.n; i++) {
        p->last_check = may_fail(p, &p->step.at[i]) ? (int)i : p->last_check;
    }
    mc_free(all);
    free_tables(&m);
    if (st < 0) {
        mc_program_free(p);
    }
    return st;
}

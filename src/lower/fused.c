/* fused.c: makes a kernel of a group: its nodes become kernel values, nodes outside the group operands. */
#include "lower/make.h"

bool mc_inside(const struct make *m, const mc_node *n, int group)
{
    return !m->early[n->id] && m->groups.of[n->id] == group && !(n->op->flags & OP_LEAF);
}

static int add_operand(struct mc_kernel *k, struct mc_koperand o)
{
    for (size_t i = 0; i < k->operand.n; i++) {
        struct mc_koperand *x = &k->operand.at[i];
        if (!o.dst && !x->dst && x->val == o.val && x->index == o.index && x->varies == o.varies) {
            return (int)i;
        }
    }
    return VEC_PUSH(k->operand, o) ? (int)k->operand.n - 1 : -1;
}

/* The kernel value for a node x outside the kernel: a constant, a position or a load. Until collect_loads,
 * the `val` of an operand that is read is its node's id. */
static int outside_value(struct make *m, struct mc_kernel *k, mc_node *x)
{
    struct mc_kval v = { .dtype = x->type.dtype };
    double number;
    int axis = mc_position_axis(x);
    (void)m;
    if (mc_is_const(x) && mc_array_size(x->value) == 1 && mc_const_number(x, &number)) {
        v.kind = K_CONST;
        memcpy(v.bits, x->value->data, mc_dtypes[v.dtype].size);
        return mc_kernel_add(k, v);
    }
    if (axis >= 0 && x->type.dims[axis] == 1) { /* the only position is 0 */
        v.kind = K_CONST;
        return mc_kernel_add(k, v);
    }
    v.varies = axis >= 0 ? 1u << axis : mc_varies(&x->type);
    v.kind = axis >= 0 ? K_INDEX : K_LOAD;
    v.operand = add_operand(
        k,
        (struct mc_koperand){ .dtype = v.dtype, .varies = v.varies, .index = axis >= 0, .val = (int)x->id });
    return v.operand < 0 ? -1 : mc_kernel_add(k, v);
}

/* May x / row become x * (1 / row), with one division per row instead of one per element? Not if 1 / row
 * might overflow. */
static bool divides_row(const struct mc_kernel *k, const mc_node *n, const struct mc_kval *v)
{
    return n->op->flags & OP_DIVIDES && n->nin == 2 && k->reduced && v->varies & k->reduced &&
           !(k->val.at[v->arg[1]].varies & k->reduced) && k->val.at[v->arg[1]].kind != K_CONST &&
           mc_lower_bound(n->in[1], 6) > 0x1p-100;
}

/* Is n a sum over other axes than those that its row kernel reduces? */
static bool is_column_sum(const struct make *m, const mc_node *n, int group)
{
    unsigned r = n->op->flags & OP_REDUCES ? mc_varies(&n->in[0]->type) & ~mc_varies(&n->type) : 0;
    return r && m->groups.axes[group].reduced && r != m->groups.axes[group].reduced;
}

static const mc_dtype added_in[MC_NCLASS] = {
    [CLASS_I64] = MC_INT64, [CLASS_U64] = MC_UINT64, [CLASS_F32] = MC_FLOAT32, [CLASS_F64] = MC_FLOAT64,
};

/* Did the user choose the accumulator's dtype, or is it of another class than the elements? Otherwise a
 * kernel may add a few elements at a time in their own dtype. */
static bool acc_is_asked(const mc_node *n, const struct mc_attr *acc, mc_dtype x)
{
    return !acc->none ||
           (mc_is_float(x) ? mc_dtypes[n->type.dtype].cls != mc_dtypes[x].cls : mc_is_float(n->type.dtype));
}

/* Adds the kernel value v. Kernels compute halves in float32; if the program rounds after each operation, a
 * cast to v's own dtype follows. */
static int add_rounded(const struct make *m, struct mc_kernel *k, struct mc_kval v)
{
    const bool half = mc_is_float(v.dtype) && mc_dtypes[v.dtype].size == 2;
    if (!m->rounds || !half || (v.kind != K_OP && v.kind != K_REDUCE)) {
        return mc_kernel_add(k, v);
    }
    struct mc_kval round = { .kind = K_CAST, .dtype = v.dtype, .narg = 1, .varies = v.varies };
    v.dtype = MC_FLOAT32;
    round.arg[0] = mc_kernel_add(k, v);
    return round.arg[0] < 0 ? -1 : mc_kernel_add(k, round);
}

static int node_value(struct make *m, struct mc_kernel *k, mc_node *n, int group)
{
    struct mc_kval v = {
        .kind = K_OP, .op = n->op, .dtype = n->type.dtype, .varies = mc_varies(&n->type), .narg = n->nin
    };
    bool alloc = n->op->form == FORM_ALLOC;
    if (mc_counts(n)) {
        return outside_value(m, k, n);
    }
    v.narg = alloc || n->op->flags & OP_REDUCES || n->op->form == FORM_CAST ? 1 : n->nin;
    for (int i = 0; i < v.narg; i++) {
        mc_node *x = n->in[i];
        v.arg[i] = m->within[x->id] == group + 1 && !mc_counts(x) ? m->val[x->id] : outside_value(m, k, x);
        if (v.arg[i] < 0) {
            return -1;
        }
    }
    if (!m->exact && divides_row(k, n, &v)) {
        const struct mc_kval *row = &k->val.at[v.arg[1]];
        struct mc_kval once = { .kind = K_OP,
                                .op = mc_op_find("reciprocal"),
                                .dtype = v.dtype,
                                .narg = 1,
                                .arg = { v.arg[1] },
                                .varies = row->varies };
        v.op = mc_op_find("mul");
        v.arg[1] = once.op && v.op ? mc_kernel_add(k, once) : -1;
        if (v.arg[1] < 0) {
            return -1;
        }
    } else if (alloc || n->op->form == FORM_CAST) {
        v.kind = K_CAST;
        v.op = NULL;
    } else if (n->op->form == FORM_CHECK) {
        v.kind = K_CHECK;
        v.op = NULL;
    } else if (n->op->flags & OP_REDUCES) {
        v.kind = K_REDUCE;
        const struct mc_attr *acc = mc_attr_named(n, "acc_dtype");
        const struct mc_kval *x = &k->val.at[v.arg[0]];
        v.acc = added_in[mc_dtypes[acc && !acc->none ? (mc_dtype)mc_attr_int(acc) : mc_sum_acc(v.dtype)].cls];
        if (acc && acc_is_asked(n, acc, x->dtype) &&
            mc_dtypes[x->dtype].cls != mc_dtypes[v.acc].cls) { /* elements are cast before they are added */
            v.arg[0] = mc_kernel_add(
                k, (struct mc_kval){
                       .kind = K_CAST, .dtype = v.acc, .narg = 1, .arg = { v.arg[0] }, .varies = x->varies });
            if (v.arg[0] < 0) {
                return -1;
            }
        }
        if (!(mc_varies(&n->in[0]->type) & ~mc_varies(&n->type))) { /* over axes of size 1 */
            if (n->op->reduction != REDUCE_POSITION) {
                v.kind = K_CAST;
                v.op = NULL;
            } else {
                v = (struct mc_kval){ .kind = K_CONST, .dtype = v.dtype }; /* argmax of one: 0 */
            }
        }
    }
    return add_rounded(m, k, v);
}

/* ---- a group: its values, loads, stores, the step ---- */

struct fused {
    struct make *m;
    int group;
    mc_node **node;
    int nnode;
    struct mc_kernel *k;
    struct mc_step step;
    int nsource;            /* number of k's operands that are read; they come first */
    int *operand, *dst;     /* value ids, as in the step */
};

static void set_axes(struct fused *f)
{
    for (int i = 0; i < f->nnode; i++) {
        const mc_node *n = f->node[i];
        f->k->rank = MC_MAX(f->k->rank, n->type.rank);
        if (n->op->flags & OP_REDUCES && !is_column_sum(f->m, n, f->group)) {
            f->k->reduced |= mc_varies(&n->in[0]->type) & ~mc_varies(&n->type);
        }
    }
}

static mc_status values(struct fused *f)
{
    struct make *m = f->m;
    for (int i = 0; i < f->nnode; i++) {
        mc_node *n = f->node[i], *x = n->in[0];
        m->val[n->id] = !is_column_sum(m, n, f->group)     ? node_value(m, f->k, n, f->group)
                        : m->within[x->id] == f->group + 1 ? m->val[x->id]
                                                           : outside_value(m, f->k, x);
        m->made[n->id] = (int)m->p->step.n + 1;
        if (m->val[n->id] < 0) {
            return MC_EMEMORY;
        }
    }
    f->nsource = (int)f->k->operand.n;
    f->operand = mc_arena_alloc(&m->p->arena, (size_t)(f->nsource + f->nnode + 1) * sizeof *f->operand);
    f->dst = mc_arena_alloc(&m->p->arena, (size_t)(f->nnode + 1) * sizeof *f->dst);
    return f->operand && f->dst ? MC_OK : MC_EMEMORY;
}

/* The values of the operands that are read. If the kernel is an epilogue, one of them is the solver's
 * result. */
static mc_status collect_loads(struct fused *f)
{
    struct make *m = f->m;
    for (int i = 0; i < f->nsource; i++) {
        mc_node *x = m->p->graph->nodes.at[f->k->operand.at[i].val];
        if (f->k->operand.at[i].index) {
            f->operand[i] = -1 - mc_position_axis(x);
            continue;
        }
        f->operand[i] = mc_value_of(m, x);
        if ((int)x->id == m->epilogue[f->group]) {
            f->step.product = i;
            f->step.heavy = x->op == &mc_op_item ? x->in[0] : x;
            f->operand[i] = mc_add_value(m, VALUE_TEMP, x, (int)m->p->step.n);
        }
        if (f->operand[i] < 0) {
            return mc_fail(MC_EINTERNAL, "lower: %s has no value", x->op->name);
        }
    }
    return MC_OK;
}

static mc_status collect_stores(struct fused *f)
{
    struct make *m = f->m;
    struct mc_kernel *k = f->k;
    for (int i = 0; i < f->nnode; i++) {
        mc_node *n = f->node[i];
        if (!m->wanted[n->id]) {
            continue;
        }
        struct mc_koperand o = { .dtype = n->type.dtype, .varies = mc_varies(&n->type), .dst = true,
                                .column_sums = is_column_sum(m, n, f->group), .val = m->val[n->id] };
        if (!o.column_sums &&
            ((k->val.at[o.val].varies & o.varies) != o.varies || k->val.at[o.val].kind == K_CONST)) {
            struct mc_kval wide = {
                .kind = K_CAST, .dtype = o.dtype, .narg = 1, .arg = { o.val }, .varies = o.varies
            };
            o.val = mc_kernel_add(k, wide); /* a broadcast or a constant, stored everywhere */
        }
        int v = mc_add_value(m, VALUE_TEMP, n, (int)m->p->step.n),
            at = v >= 0 && o.val >= 0 ? add_operand(k, o) : -1;
        if (at < 0) {
            return MC_EMEMORY;
        }
        f->operand[at] = f->dst[f->step.ndst++] = v;
    }
    return MC_OK;
}

/* The sources and results of the solver that the kernel is an epilogue of. Of its results, the kernel's
 * operand comes first. */
static mc_status solver_operands(struct fused *f)
{
    struct mc_step *s = &f->step;
    for (int i = 0; i < s->heavy->nin; i++) {
        int v = mc_value_of(f->m, s->heavy->in[i]);
        if (v < 0) {
            return MC_EMEMORY;
        }
        s->src[s->nsrc++] = v;
    }
    int *all = mc_arena_alloc(&f->m->p->arena, (size_t)(s->ndst + s->heavy->nout) * sizeof *all);
    if (!all) {
        return MC_EMEMORY;
    }
    memcpy(all, f->dst, (size_t)s->ndst * sizeof *all);
    all[s->ndst++] = f->operand[s->product];
    s->dst = all;
    for (int i = 1; i < s->heavy->nout; i++) {
        mc_node *item = mc_item(s->heavy, i);
        int v = mc_is_error(item) ? -1 : mc_add_value(f->m, VALUE_TEMP, item, (int)f->m->p->step.n);
        if (v < 0) {
            return MC_EMEMORY;
        }
        all[s->ndst++] = v;
    }
    return MC_OK;
}

static mc_status add_step(struct fused *f)
{
    struct mc_program *p = f->m->p;
    struct mc_step *s = &f->step;
    s->dst = f->dst;
    s->operand = f->operand;
    s->node = mc_arena_copy(&p->arena, f->node, (size_t)f->nnode * sizeof *f->node);
    s->src = mc_arena_alloc(&p->arena,
                            (size_t)(f->nsource + (s->heavy ? s->heavy->nin : 0) + 1) * sizeof *s->src);
    if (!s->node || !s->src) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < f->nsource; i++) {
        if (f->operand[i] >= 0 && i != s->product) {
            s->src[s->nsrc++] = f->operand[i];
        }
    }
    if (s->heavy) {
        TRY(solver_operands(f));
    }
    return VEC_PUSH(p->step, *s) ? MC_OK : MC_EMEMORY;
}

/* requires: the kernel is analysed. */
static mc_status epilogue(struct fused *f)
{
    if (!f->step.heavy || f->step.ndst != 1) {
        return MC_OK;
    }
    mc_node *result = f->m->p->value.at[f->dst[0]].node;
    return mc_find_epilogue(f->m, f->group, result, f->k, &f->step.epilogue);
}

static mc_status fuse(struct fused *f)
{
    set_axes(f);
    TRY(values(f));
    TRY(collect_loads(f));
    TRY(collect_stores(f));
    TRY(mc_kernel_analyse(f->k));
    TRY(epilogue(f));
    return add_step(f);
}

mc_status mc_make_kernel(struct make *m, int group, mc_node **node, int nnode)
{
    struct fused f = {
        .m = m, .group = group, .node = node, .nnode = nnode, .k = mc_calloc(1, sizeof *f.k, "kernel")
    };
    if (!f.k) {
        return MC_EMEMORY;
    }
    mc_snprintf(f.k->name, sizeof f.k->name, "k%d", m->p->nkernel++);
    f.step = (struct mc_step){ .kind = m->epilogue[group] >= 0 ? STEP_HEAVY : STEP_KERNEL,
                               .kernel = f.k,
                               .nnode = nnode,
                               .product = -1,
                               .before = -1,
                               .reason = "" };
    mc_status s = fuse(&f);
    if (s < 0) {
        mc_kernel_free(f.k);
    }
    return s;
}

/* fused.c: one group of nodes as one kernel: nodes become kernel values, what lies outside operands. */
#include "lower/make.h"

bool mc_counts(const mc_node *n)
{
    return mc_is_op(n, "arange") && mc_is_fusible(n);
}

int mc_position_axis(const mc_node *n)
{
    if (mc_counts(n)) {
        return 0;
    }
    if (mc_is_op(n, "dimshuffle") && mc_counts(n->in[0])) {
        for (int i = 0; i < n->attr[0].n; i++) {
            if (n->attr[0].ints[i] == 0) {
                return i;
            }
        }
    }
    return -1;
}

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

/* The kernel value that stands for node x outside the kernel.  Until operands get their values, a
 * source's val is its node's id. */
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
    if (axis >= 0 && x->type.dims[axis] == 1) { /* the only position there is */
        v.kind = K_CONST;
        return mc_kernel_add(k, v);
    }
    v.varies = axis >= 0 ? 1u << axis : mc_varies(&x->type);
    v.kind = axis >= 0 ? K_INDEX : K_LOAD;
    v.operand = add_operand(k, (struct mc_koperand){ .dtype = v.dtype, .varies = v.varies, .index = axis >= 0, .val = (int)x->id });
    return v.operand < 0 ? -1 : mc_kernel_add(k, v);
}

static bool divides_row(const struct mc_kernel *k, const mc_node *n, const struct mc_kval *v)
{
    return mc_is_op(n, "true_div") && k->reduced && v->varies & k->reduced && !(k->val.at[v->arg[1]].varies & k->reduced) &&
           k->val.at[v->arg[1]].kind != K_CONST;
}

/* Is n a sum over the other axes than those its row kernel reduces? */
static bool is_tally(const struct make *m, const mc_node *n, int group)
{
    unsigned r = n->op->flags & OP_REDUCES ? mc_varies(&n->in[0]->type) & ~mc_varies(&n->type) : 0;
    return r && m->groups.reduced[group] && r != m->groups.reduced[group];
}

static int node_value(struct make *m, struct mc_kernel *k, mc_node *n, int group)
{
    struct mc_kval v = { .kind = K_OP, .op = n->op, .dtype = n->type.dtype, .varies = mc_varies(&n->type), .narg = n->nin };
    bool alloc = mc_is_op(n, "alloc");
    if (mc_counts(n)) {
        return outside_value(m, k, n);
    }
    v.narg = alloc || n->op->flags & OP_REDUCES || mc_is_op(n, "cast") ? 1 : n->nin;
    for (int i = 0; i < v.narg; i++) {
        mc_node *x = n->in[i];
        v.arg[i] = m->within[x->id] == group + 1 && !mc_counts(x) ? m->val[x->id] : outside_value(m, k, x);
        if (v.arg[i] < 0) {
            return -1;
        }
    }
    if (divides_row(k, n, &v)) { /* x / row = x * (1 / row): one division a row, not one an element */
        const struct mc_kval *row = &k->val.at[v.arg[1]];
        struct mc_kval once = { .kind = K_OP, .op = mc_op_find("reciprocal"), .dtype = v.dtype, .narg = 1, .arg = { v.arg[1] }, .varies = row->varies };
        v.op = mc_op_find("mul");
        v.arg[1] = once.op && v.op ? mc_kernel_add(k, once) : -1;
        if (v.arg[1] < 0) {
            return -1;
        }
    } else if (alloc || mc_is_op(n, "cast")) {
        v.kind = K_CAST;
        v.op = NULL;
    } else if (mc_is_op(n, "check_index")) {
        v.kind = K_CHECK;
        v.op = NULL;
    } else if (n->op->flags & OP_REDUCES) {
        v.kind = K_REDUCE;
        const struct mc_attr *acc = mc_attr_named(n, "acc_dtype");
        v.acc = acc && !acc->none ? (mc_dtype)mc_attr_int(acc) : mc_sum_acc(v.dtype);
        const struct mc_kval *x = &k->val.at[v.arg[0]];
        if (acc && mc_is_float(x->dtype) != mc_is_float(v.acc)) { /* each element is read as what is added */
            v.arg[0] = mc_kernel_add(k, (struct mc_kval){ .kind = K_CAST, .dtype = v.acc, .narg = 1, .arg = { v.arg[0] }, .varies = x->varies });
            if (v.arg[0] < 0) {
                return -1;
            }
        }
        if (!(mc_varies(&n->in[0]->type) & ~mc_varies(&n->type))) { /* over axes of size 1 */
            if (!mc_monoid(n->op)->positions) {
                v.kind = K_CAST;
                v.op = NULL;
            } else {
                v = (struct mc_kval){ .kind = K_CONST, .dtype = v.dtype }; /* argmax of one: 0 */
            }
        }
    }
    return mc_kernel_add(k, v);
}

mc_status mc_make_kernel(struct make *m, int group, mc_node **node, int nnode)
{
    struct mc_program *p = m->p;
    struct mc_kernel *k = mc_calloc(1, sizeof *k, "kernel");
    struct mc_step s = { .kind = m->epilogue[group] >= 0 ? STEP_HEAVY : STEP_KERNEL, .kernel = k, .nnode = nnode, .product = -1, .before = -1, .reason = "" };
    if (!k) {
        return MC_EMEMORY;
    }
    snprintf(k->name, sizeof k->name, "k%d", p->nkernel++);
    k->rank = 0;
    mc_status st = MC_OK;
    for (int i = 0; i < nnode; i++) {
        k->rank = MC_MAX(k->rank, node[i]->type.rank);
        if (node[i]->op->flags & OP_REDUCES && !is_tally(m, node[i], group)) {
            unsigned r = mc_varies(&node[i]->in[0]->type) & ~mc_varies(&node[i]->type);
            k->reduced |= r;
        }
    }
    for (int i = 0; i < nnode && st == MC_OK; i++) {
        mc_node *x = node[i]->in[0];
        m->val[node[i]->id] = !is_tally(m, node[i], group) ? node_value(m, k, node[i], group)
                              : m->within[x->id] == group + 1 ? m->val[x->id]
                                                              : outside_value(m, k, x);
        m->made[node[i]->id] = (int)p->step.n + 1;
        st = m->val[node[i]->id] >= 0 ? MC_OK : MC_EMEMORY;
    }
    int nsource = (int)k->operand.n, *operand = mc_arena_alloc(&p->arena, (size_t)(nsource + nnode + 1) * sizeof *operand);
    int *dst = mc_arena_alloc(&p->arena, (size_t)(nnode + 1) * sizeof *dst);
    st = operand && dst ? st : MC_EMEMORY;
    for (int i = 0; i < nsource && st == MC_OK; i++) {
        mc_node *x = p->graph->nodes.at[k->operand.at[i].val];
        if (k->operand.at[i].index) {
            operand[i] = -1 - mc_position_axis(x);
            continue;
        }
        operand[i] = mc_value_of(m, x);
        if ((int)x->id == m->epilogue[group]) {
            s.product = i;
            s.heavy = x->op == &mc_op_item ? x->in[0] : x;
            operand[i] = mc_add_value(m, VALUE_TEMP, x, (int)p->step.n);
        }
        st = operand[i] >= 0 ? MC_OK : mc_fail(MC_EMEMORY, "lower: %s has no value", x->op->name);
    }
    for (int i = 0; i < nnode && st == MC_OK; i++) {
        if (!m->wanted[node[i]->id]) {
            continue;
        }
        struct mc_koperand o = { .dtype = node[i]->type.dtype, .varies = mc_varies(&node[i]->type), .dst = true,
                                .tally = is_tally(m, node[i], group), .val = m->val[node[i]->id] };
        if (!o.tally && ((k->val.at[o.val].varies & o.varies) != o.varies || k->val.at[o.val].kind == K_CONST)) {
            struct mc_kval wide = { .kind = K_CAST, .dtype = o.dtype, .narg = 1, .arg = { o.val }, .varies = o.varies };
            o.val = mc_kernel_add(k, wide); /* a broadcast or a constant, stored everywhere */
        }
        int v = mc_add_value(m, VALUE_TEMP, node[i], (int)p->step.n), at = v >= 0 && o.val >= 0 ? add_operand(k, o) : -1;
        st = at >= 0 ? MC_OK : MC_EMEMORY;
        if (st == MC_OK) {
            operand[at] = dst[s.ndst++] = v;
        }
    }
    mc_kernel_analyse(k);
    s.dst = dst;
    s.operand = operand;
    s.node = mc_arena_copy(&p->arena, node, (size_t)nnode * sizeof *node);
    s.src = mc_arena_alloc(&p->arena, (size_t)(nsource + 4) * sizeof *s.src);
    if (st == MC_OK && s.src && s.node) {
        for (int i = 0; i < nsource; i++) {
            if (operand[i] >= 0 && i != s.product) {
                s.src[s.nsrc++] = operand[i];
            }
        }
        for (int i = 0; s.heavy && i < s.heavy->nin && st == MC_OK; i++) {
            int v = mc_value_of(m, s.heavy->in[i]);
            s.src[s.nsrc++] = v;
            st = v >= 0 ? MC_OK : MC_EMEMORY;
        }
        if (s.heavy) {
            int *all = mc_arena_alloc(&p->arena, (size_t)(s.ndst + s.heavy->nout) * sizeof *all);
            st = all ? st : MC_EMEMORY;
            if (all) {
                memcpy(all, dst, (size_t)s.ndst * sizeof *all);
                all[s.ndst++] = operand[s.product];
                s.dst = all;
            }
            for (int i = 1; i < s.heavy->nout && st == MC_OK; i++) {
                mc_node *item = mc_item(s.heavy, i);
                all[s.ndst++] = mc_is_error(item) ? -1 : mc_add_value(m, VALUE_TEMP, item, (int)p->step.n);
                st = all[s.ndst - 1] >= 0 ? MC_OK : MC_EMEMORY;
            }
        }
        st = st == MC_OK && VEC_PUSH(p->step, s) ? MC_OK : MC_EMEMORY;
    } else {
        st = MC_EMEMORY;
    }
    if (st < 0) {
        mc_kernel_free(k);
    }
    return st;
}

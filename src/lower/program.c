/* program.c: groups become steps, what lies between them becomes values. */
#include "lower/lower.h"
#include <limits.h>

struct make {
    struct mc_program *p;
    struct mc_groups groups;
    unsigned char *early;    /* by node id: computed on the host when a plan is made */
    unsigned char *needed;   /* its data are needed, not only its type */
    unsigned char *wanted;   /* must have memory: somebody outside its kernel reads it */
    int *last_of;            /* by group: the number of its nodes still to come */
    int *val;                /* by node id: the kernel value while a kernel is made */
    int *made;               /* by node id: the kernel step it is inside of, plus one */
    int *epilogue;           /* by group: the node id of the product it finishes, or -1 */
};

static bool is_op(const mc_node *n, const char *name) { return strcmp(n->op->name, name) == 0; }
static bool reads_type_only(const mc_node *n) { return is_op(n, "size") || is_op(n, "shape"); }
static bool is_product(const mc_node *n) { return (is_op(n, "dot") || is_op(n, "batched_dot")) && mc_is_float(n->type.dtype); }

static bool is_view(const mc_node *n)
{
    return n->op->flags & OP_VIEW && (is_op(n, "dimshuffle") || is_op(n, "reshape") || is_op(n, "subtensor") || is_op(n, "specify_shape"));
}

static bool is_shape_arg(const mc_node *n, int i)
{
    return (i < 31 && n->op->shape_args >> i & 1) || (n->op->shape_args >> 31 && i >= 1);
}

/* ---- what is computed early ---- */

static bool small(const struct mc_type *t)
{
    return t->rank == 0 || (t->rank == 1 && t->dims[0] >= 0 && t->dims[0] <= 64);
}

/* Sizes, and all small things that follow from sizes and constants alone. */
static void find_shape_work(struct make *m, mc_node *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const mc_node *n = list[i];
        bool all = small(&n->type) && n->nout == 1 && n->nin > 0 && !(n->op->flags & (OP_IMPURE | OP_RANDOM | OP_LEAF)) &&
                   n->op != &mc_op_item && !n->op->custom;
        for (int k = 0; k < n->nin; k++) {
            all &= reads_type_only(n) || mc_is_const(n->in[k]) || m->early[n->in[k]->id];
        }
        m->early[n->id] = all;
    }
}

/* What decides sizes must be known when planning: marked downwards from the ops that ask. */
static void find_required(struct make *m, mc_node *const *list, size_t count)
{
    unsigned char *required = m->wanted; /* not in use yet */
    for (size_t i = count; i-- > 0;) {
        mc_node *n = list[i];
        for (int k = 0; k < n->nin; k++) {
            if (is_shape_arg(n, k) || (required[n->id] && !reads_type_only(n))) {
                required[n->in[k]->id] = 1;
            }
        }
        if (!required[n->id] || m->early[n->id] || mc_is_const(n)) {
            continue;
        }
        if (n->op == &mc_op_input && small(&n->type)) {
            for (int k = 0; k < m->p->ninput; k++) {
                m->p->key_input[k] |= m->p->input[k] == n;
            }
        } else if ((n->op->flags & OP_LEAF) || !small(&n->type) || n->nout != 1 || (n->op->flags & (OP_IMPURE | OP_RANDOM))) {
            m->p->dynamic = true;
        } else {
            m->early[n->id] = 2;
        }
    }
    memset(m->wanted, 0, m->p->graph->nodes.n);
}

/* ---- values ---- */

static int add_value(struct make *m, enum mc_value_kind kind, mc_node *n, int step)
{
    struct mc_value v = { .kind = kind, .node = n, .step = step, .view_of = -1, .last = -1, .input = -1 };
    m->p->value_of[n->id] = (int)m->p->value.n;
    return VEC_PUSH(m->p->value, v) ? (int)m->p->value.n - 1 : -1;
}

static int value_of(struct make *m, mc_node *n)
{
    int v = m->p->value_of[n->id];
    if (v >= 0) {
        return v;
    }
    if (n->op == &mc_op_shared) {
        return add_value(m, VALUE_SHARED, n, -1);
    }
    if (mc_is_const(n)) {
        return add_value(m, VALUE_CONST, n, -1);
    }
    return n->op == &mc_op_input ? add_value(m, VALUE_INPUT, n, -1) : -1;
}

static bool copy_list(struct mc_program *p, int **to, const int *from, int n)
{
    *to = mc_arena_alloc(&p->arena, (size_t)(n + 1) * sizeof *from);
    if (*to && n) {
        memcpy(*to, from, (size_t)n * sizeof *from);
    }
    return *to != NULL;
}

/* The value whose size is asked for: a node inside a kernel gets one without memory. */
static int size_of(struct make *m, mc_node *n)
{
    int v = value_of(m, n);
    return v < 0 && m->made[n->id] ? add_value(m, VALUE_INSIDE, n, m->made[n->id] - 1) : v;
}

/* A step over whole nodes: its sources are all inputs of the nodes, its results their items. */
static mc_status add_step(struct make *m, enum mc_step_kind kind, mc_node *n, const char *reason)
{
    struct mc_program *p = m->p;
    VEC(int) src = { 0 };
    int dst[16];
    struct mc_step s = { .kind = kind, .nnode = 1, .product = -1, .reason = reason, .ndst = n->nout };
    mc_status st = MC_OK;
    for (int i = 0; i < n->nin && st == MC_OK; i++) {
        int v = kind == STEP_TYPE || reads_type_only(n) ? size_of(m, n->in[i]) : value_of(m, n->in[i]);
        st = v >= 0 && VEC_PUSH(src, v) ? MC_OK : mc_fail(MC_EMEMORY, "lower: no value for input %d of %s", i, n->op->name);
    }
    s.nsrc = (int)src.n;
    enum mc_value_kind made = kind == STEP_EARLY ? VALUE_EARLY : kind == STEP_VIEW ? VALUE_VIEW : VALUE_TEMP;
    for (int i = 0; i < n->nout && st == MC_OK; i++) {
        mc_node *item = n->nout == 1 ? n : mc_item(n, i);
        if (item->id >= p->graph->nodes.n || mc_is_error(item)) {
            st = MC_EMEMORY;
            break;
        }
        dst[i] = add_value(m, made, item, (int)p->step.n);
        if (dst[i] >= 0 && made == VALUE_VIEW) {
            p->value.at[dst[i]].view_of = src.at[0];
        }
        st = dst[i] >= 0 ? MC_OK : MC_EMEMORY;
    }
    s.node = mc_arena_copy(&p->arena, &n, sizeof n);
    s.gemm = kind == STEP_GEMM ? n : NULL;
    if (st == MC_OK && (!s.node || !copy_list(p, &s.src, src.at, s.nsrc) || !copy_list(p, &s.dst, dst, s.ndst) || !VEC_PUSH(p->step, s))) {
        st = MC_EMEMORY;
    }
    VEC_FREE(src);
    return st;
}

/* ---- kernels ---- */

static bool counts(const mc_node *n)
{
    return is_op(n, "arange") && mc_is_fusible(n);
}

int mc_position_axis(const mc_node *n)
{
    if (counts(n)) {
        return 0;
    }
    if (is_op(n, "dimshuffle") && counts(n->in[0])) {
        for (int i = 0; i < n->attr[0].n; i++) {
            if (n->attr[0].ints[i] == 0) {
                return i;
            }
        }
    }
    return -1;
}

static bool inside(const struct make *m, const mc_node *n, int group)
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

static int node_value(struct make *m, struct mc_kernel *k, mc_node *n, int group)
{
    struct mc_kval v = { .kind = K_OP, .op = n->op, .dtype = n->type.dtype, .varies = mc_varies(&n->type), .narg = n->nin };
    bool alloc = is_op(n, "alloc");
    if (counts(n)) {
        return outside_value(m, k, n);
    }
    v.narg = alloc || n->op->flags & OP_REDUCES || is_op(n, "cast") ? 1 : n->nin;
    for (int i = 0; i < v.narg; i++) {
        mc_node *x = n->in[i];
        v.arg[i] = inside(m, x, group) && !counts(x) ? m->val[x->id] : outside_value(m, k, x);
        if (v.arg[i] < 0) {
            return -1;
        }
    }
    if (alloc || is_op(n, "cast")) {
        v.kind = K_CAST;
        v.op = NULL;
    } else if (is_op(n, "check_index")) {
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

static mc_status make_kernel(struct make *m, int group, mc_node **node, int nnode)
{
    struct mc_program *p = m->p;
    struct mc_kernel *k = mc_calloc(1, sizeof *k, "kernel");
    struct mc_step s = { .kind = m->epilogue[group] >= 0 ? STEP_GEMM : STEP_KERNEL, .kernel = k, .nnode = nnode, .product = -1, .reason = "" };
    if (!k) {
        return MC_EMEMORY;
    }
    snprintf(k->name, sizeof k->name, "k%d", p->nkernel++);
    k->rank = 0;
    mc_status st = MC_OK;
    for (int i = 0; i < nnode && st == MC_OK; i++) {
        k->rank = MC_MAX(k->rank, node[i]->type.rank);
        if (node[i]->op->flags & OP_REDUCES) {
            unsigned r = mc_varies(&node[i]->in[0]->type) & ~mc_varies(&node[i]->type);
            k->reduced |= r;
        }
        m->val[node[i]->id] = node_value(m, k, node[i], group);
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
        operand[i] = value_of(m, x);
        if ((int)x->id == m->epilogue[group]) {
            s.product = i;
            s.gemm = x;
            operand[i] = add_value(m, VALUE_TEMP, x, (int)p->step.n);
        }
        st = operand[i] >= 0 ? MC_OK : mc_fail(MC_EMEMORY, "lower: %s has no value", x->op->name);
    }
    for (int i = 0; i < nnode && st == MC_OK; i++) {
        if (!m->wanted[node[i]->id]) {
            continue;
        }
        struct mc_koperand o = { .dtype = node[i]->type.dtype, .varies = mc_varies(&node[i]->type), .dst = true, .val = m->val[node[i]->id] };
        if ((k->val.at[o.val].varies & o.varies) != o.varies || k->val.at[o.val].kind == K_CONST) {
            struct mc_kval wide = { .kind = K_CAST, .dtype = o.dtype, .narg = 1, .arg = { o.val }, .varies = o.varies };
            o.val = mc_kernel_add(k, wide); /* a broadcast or a constant, stored everywhere */
        }
        int v = add_value(m, VALUE_TEMP, node[i], (int)p->step.n), at = v >= 0 && o.val >= 0 ? add_operand(k, o) : -1;
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
        for (int i = 0; s.gemm && i < s.gemm->nin && st == MC_OK; i++) {
            int v = value_of(m, s.gemm->in[i]);
            s.src[s.nsrc++] = v;
            st = v >= 0 ? MC_OK : MC_EMEMORY;
        }
        if (s.gemm) {
            int *all = mc_arena_alloc(&p->arena, (size_t)(s.ndst + 1) * sizeof *all);
            if (all) {
                memcpy(all, dst, (size_t)s.ndst * sizeof *all);
                all[s.ndst++] = operand[s.product];
                s.dst = all;
            }
            st = all ? st : MC_EMEMORY;
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

/* ---- which values have memory, which products get an epilogue ---- */

static bool constant_operand(const mc_node *x)
{
    return mc_is_const(x) && mc_array_size(x->value) == 1;
}

/* The nodes outside the kernel that n reads from memory. */
static void want_inputs(struct make *m, mc_node *n)
{
    int group = m->groups.of[n->id];
    bool kernel = mc_is_fusible(n);
    for (int i = 0; i < n->nin && (mc_position_axis(n) < 0 || m->wanted[n->id]); i++) {
        mc_node *x = n->in[i];
        if (reads_type_only(n) || (kernel && i >= 1 && (is_op(n, "alloc") || is_op(n, "arange"))) || (kernel && inside(m, x, group)) ||
            (kernel && (mc_position_axis(x) >= 0 || constant_operand(x)))) {
            continue;
        }
        m->wanted[x->id] = 1;
    }
}

/* A map over a product's whole result, and its only reader, finishes the product tile by tile. */
static void find_epilogues(struct make *m, mc_node *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mc_node *n = list[i];
        if (!m->needed[n->id] || !is_product(n) || !is_op(n, "dot")) {
            continue;
        }
        int group = -1;
        bool only = true;
        for (size_t k = i + 1; k < count && only; k++) {
            for (int j = 0; j < list[k]->nin; j++) {
                if (list[k]->in[j] == n && m->needed[list[k]->id]) {
                    int h = mc_is_fusible(list[k]) && !m->early[list[k]->id] ? m->groups.of[list[k]->id] : -1;
                    only &= h >= 0 && (group < 0 || group == h) && list[k]->type.rank == 2 && mc_varies(&list[k]->type) == 3;
                    group = h;
                }
            }
        }
        for (int k = 0; k < m->p->noutput + m->p->nupdate; k++) {
            only &= (k < m->p->noutput ? m->p->output[k] : m->p->update[k - m->p->noutput]) != (int)n->id;
        }
        if (only && group >= 0 && m->groups.reduced[group] == 0 && m->epilogue[group] < 0 && mc_varies(&n->type) == 3) {
            m->epilogue[group] = (int)n->id;
        }
    }
}

/* ---- order ---- */

/* Groups in an order in which each stands behind what it reads; lists the nodes group by group. */
static mc_status order_groups(struct make *m, mc_node *const *list, size_t count, mc_node **sorted)
{
    size_t ng = (size_t)m->groups.n;
    int *waiting = mc_calloc(ng + 1, sizeof *waiting, "lower"), *ready = mc_alloc((ng + 1) * sizeof *ready, "lower");
    VEC(int) *users = mc_calloc(ng + 1, sizeof *users, "lower"), *members = mc_calloc(ng + 1, sizeof *members, "lower");
    size_t head = 0, tail = 0, k = 0;
    mc_status st = waiting && ready && users && members ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && st == MC_OK; i++) {
        int h = m->groups.of[list[i]->id];
        if (h < 0) {
            continue;
        }
        st = VEC_PUSH(members[h], (int)i) ? MC_OK : MC_EMEMORY;
        for (int j = 0; j < list[i]->nin && st == MC_OK; j++) {
            int from = m->groups.of[list[i]->in[j]->id];
            if (from >= 0 && from != h) {
                st = VEC_PUSH(users[from], h) ? MC_OK : MC_EMEMORY;
                waiting[h]++;
            }
        }
    }
    for (size_t i = 0; i < ng && st == MC_OK; i++) {
        if (!waiting[i] && members[i].n) {
            ready[tail++] = (int)i;
        }
    }
    while (head < tail && st == MC_OK) {
        int h = ready[head++];
        for (size_t i = 0; i < members[h].n; i++) {
            sorted[k++] = list[members[h].at[i]];
        }
        for (size_t i = 0; i < users[h].n; i++) {
            if (--waiting[users[h].at[i]] == 0) {
                ready[tail++] = users[h].at[i];
            }
        }
    }
    for (size_t i = 0; i < ng && users && members; i++) {
        VEC_FREE(users[i]);
        VEC_FREE(members[i]);
    }
    mc_free(waiting);
    mc_free(ready);
    mc_free(users);
    mc_free(members);
    sorted[k] = NULL;
    return st;
}

static const char *host_reason(const mc_node *n)
{
    if (n->op->custom) {
        return "a custom op";
    }
    if (is_op(n, "dot") || is_op(n, "batched_dot")) {
        return "an integer product";
    }
    return "no kernel for this op";
}

static bool only_typed(const struct make *m, const mc_node *n)
{
    return !m->early[n->id] && !m->needed[n->id] && n->op != &mc_op_item;
}

/* The nodes of one group, in id order. */
static mc_status emit_group(struct make *m, mc_node **node, int n)
{
    VEC(mc_node *) inner = { 0 };
    mc_status st = MC_OK;
    for (int i = 0; i < n && st == MC_OK; i++) {
        mc_node *x = node[i];
        if (m->early[x->id]) {
            st = add_step(m, STEP_EARLY, x, "");
        } else if (only_typed(m, x)) {
            continue; /* behind the kernel, where the types are known of all that is inside */
        } else if (mc_is_fusible(x)) {
            st = (counts(x) && !m->wanted[x->id]) || VEC_PUSH(inner, x) ? MC_OK : MC_EMEMORY;
        } else if (x->op == &mc_op_item) {
            continue; /* its tuple made it */
        } else if (is_view(x)) {
            st = mc_position_axis(x) >= 0 && !m->wanted[x->id] ? MC_OK : add_step(m, STEP_VIEW, x, "");
        } else if (is_product(x)) {
            bool finished = false;
            for (int g = 0; g < m->groups.n; g++) {
                finished |= m->epilogue[g] == (int)x->id;
            }
            st = finished ? MC_OK : add_step(m, STEP_GEMM, x, "");
        } else {
            st = add_step(m, STEP_HOST, x, host_reason(x));
        }
    }
    bool used = false;
    for (size_t i = 0; i < inner.n; i++) {
        used |= m->wanted[inner.at[i]->id] != 0;
    }
    if (st == MC_OK && inner.n && used) {
        st = make_kernel(m, m->groups.of[inner.at[0]->id], inner.at, (int)inner.n);
    }
    for (int i = 0; i < n && st == MC_OK; i++) {
        st = only_typed(m, node[i]) ? add_step(m, STEP_TYPE, node[i], "") : MC_OK;
    }
    VEC_FREE(inner);
    return st;
}

static void find_lifetimes(struct mc_program *p)
{
    for (size_t i = 0; i < p->step.n; i++) {
        const struct mc_step *s = &p->step.at[i];
        for (int k = 0; k < s->nsrc; k++) {
            for (int v = s->src[k]; v >= 0; v = p->value.at[v].view_of) {
                p->value.at[v].last = MC_MAX(p->value.at[v].last, (int)i);
            }
        }
    }
    for (int i = 0; i < p->noutput + p->nupdate; i++) {
        for (int v = i < p->noutput ? p->output[i] : p->update[i - p->noutput]; v >= 0; v = p->value.at[v].view_of) {
            p->value.at[v].last = INT_MAX;
            p->value.at[v].is_output = true;
        }
    }
}

static mc_status build(struct make *m, mc_node *const *out, int nout)
{
    struct mc_program *p = m->p;
    mc_node **list = m->groups.list;
    size_t count = m->groups.count;
    find_shape_work(m, list, count);
    find_required(m, list, count);
    for (int i = 0; i < nout; i++) {
        m->needed[out[i]->id] = 1;
        m->wanted[out[i]->id] = 1;
    }
    for (size_t i = count; i-- > 0;) {
        mc_node *n = list[i];
        for (int k = 0; k < n->nin; k++) { /* what decides sizes is needed even where only the size is */
            m->needed[n->in[k]->id] |= (m->needed[n->id] && !reads_type_only(n)) || is_shape_arg(n, k);
        }
    }
    for (size_t i = count; i-- > 0;) { /* who reads n says first whether n itself must be there */
        if ((m->needed[list[i]->id] || m->early[list[i]->id]) && !(list[i]->op->flags & OP_LEAF)) {
            want_inputs(m, list[i]);
        }
        for (int k = 0; k < list[i]->nin; k++) {
            m->wanted[list[i]->in[k]->id] |= is_shape_arg(list[i], k);
        }
    }
    for (size_t i = 0; i < count; i++) { /* a size of what only a kernel knows: it must have memory after all */
        if (reads_type_only(list[i]) && m->early[list[i]->id]) {
            m->wanted[list[i]->in[0]->id] = 1;
        }
    }
    find_epilogues(m, list, count);

    mc_node **sorted = mc_alloc((count + 1) * sizeof *sorted, "lower");
    mc_status st = sorted ? order_groups(m, list, count, sorted) : MC_EMEMORY;
    for (size_t i = 0, to; st == MC_OK && sorted[i]; i = to) {
        for (to = i + 1; sorted[to] && m->groups.of[sorted[to]->id] == m->groups.of[sorted[i]->id]; to++) {
        }
        st = emit_group(m, sorted + i, (int)(to - i));
    }
    mc_free(sorted);
    for (int i = 0; i < nout && st == MC_OK; i++) {
        int v = value_of(m, out[i]);
        *(i < p->noutput ? &p->output[i] : &p->update[i - p->noutput]) = v;
        st = v >= 0 ? MC_OK : mc_fail(MC_EMEMORY, "lower: an output has no value");
    }
    if (st == MC_OK) {
        find_lifetimes(p);
    }
    return st;
}

mc_status mc_program_make(struct mc_program *p, mc_graph *g, int nin, mc_node *const *in, int nout, mc_node *const *out,
                          int nup, struct mc_shared *const *shared, mc_node *const *update, bool fuse)
{
    *p = (struct mc_program){ .graph = g, .ninput = nin, .noutput = nout, .nupdate = nup };
    mc_node **all = mc_alloc((size_t)(nout + nup + 1) * sizeof *all, "lower");
    struct make m = { .p = p };
    mc_status st = all ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < nout + nup && st == MC_OK; i++) {
        all[i] = i < nout ? out[i] : update[i - nout];
    }
    st = st < 0 ? st : mc_lower_expand(g, nout + nup, all);
    st = st < 0 ? st : mc_group(g, nout + nup, all, fuse, &m.groups);
    size_t n = g->nodes.n + 64; /* items of tuples may still be made */
    p->value_of = mc_alloc(n * sizeof *p->value_of, "lower");
    p->input = mc_arena_alloc(&p->arena, (size_t)(nin + 1) * sizeof *in);
    p->key_input = mc_arena_alloc(&p->arena, (size_t)nin + 1);
    p->output = mc_arena_alloc(&p->arena, (size_t)(nout + 1) * sizeof *p->output);
    p->update = mc_arena_alloc(&p->arena, (size_t)(nup + 1) * sizeof *p->update);
    p->shared = mc_arena_alloc(&p->arena, (size_t)(nup + 1) * sizeof *shared);
    m.early = mc_calloc(n, 1, "lower");
    m.needed = mc_calloc(n, 1, "lower");
    m.wanted = mc_calloc(n, 1, "lower");
    m.val = mc_calloc(n, sizeof *m.val, "lower");
    m.made = mc_calloc(n, sizeof *m.made, "lower");
    m.epilogue = mc_alloc((size_t)(m.groups.n + 1) * sizeof *m.epilogue, "lower");
    if (!p->value_of || !p->input || !p->key_input || !p->output || !p->update || !p->shared || !m.early || !m.needed || !m.wanted ||
        !m.val || !m.made || !m.epilogue) {
        st = MC_EMEMORY;
    }
    if (st == MC_OK) {
        for (size_t i = 0; i < n; i++) {
            p->value_of[i] = -1;
        }
        for (int i = 0; i <= m.groups.n; i++) {
            m.epilogue[i] = -1;
        }
        for (int i = 0; i < nup; i++) {
            p->shared[i] = shared[i];
        }
        for (int i = 0; i < nin; i++) {
            p->input[i] = in[i];
        }
        for (int i = 0; i < nin; i++) { /* also those nothing reads: a call passes them */
            int v = p->value_of[in[i]->id] < 0 ? add_value(&m, VALUE_INPUT, in[i], -1) : -1;
            if (v >= 0) {
                p->value.at[v].input = i;
            }
        }
        for (int i = 0; i < nout; i++) {
            p->output[i] = (int)all[i]->id;
        }
        for (int i = 0; i < nup; i++) {
            p->update[i] = (int)all[nout + i]->id;
        }
        st = build(&m, all, nout + nup);
    }
    mc_free(all);
    mc_free(m.early);
    mc_free(m.needed);
    mc_free(m.wanted);
    mc_free(m.val);
    mc_free(m.made);
    mc_free(m.epilogue);
    mc_groups_free(&m.groups);
    if (st < 0) {
        mc_program_free(p);
    }
    return st;
}

void mc_program_free(struct mc_program *p)
{
    for (size_t i = 0; i < p->step.n; i++) {
        mc_kernel_free(p->step.at[i].kernel);
    }
    VEC_FREE(p->step);
    VEC_FREE(p->value);
    mc_free(p->value_of);
    mc_arena_free(&p->arena);
    *p = (struct mc_program){ 0 };
}

/* rules_index.c: parts of tensors, tensors with parts changed.
 *
 * A part of a result is made from parts of the operands, if nobody needs the rest; parts of parts become
 * one.  What is out of range must stay an error: an index is only merged where that can be seen. */
#include "rewrite/rewrite.h"

/* ---- an index under construction: specs and the bounds they name ---- */

struct index {
    int64_t spec[MC_MAX_RANK * SPEC_N];
    mc_node *bound[3 * MC_MAX_RANK];
    int nbound;
};

static const int64_t *entry(const mc_node *n, int axis)
{
    return &n->attr[0].ints[axis * SPEC_N];
}

/* The node that bound number k of a subtensor or an update stands for. */
static mc_node *bound_of(const mc_node *n, int64_t k)
{
    return n->in[n->op->sig->ntensor - 1 + k];
}

static bool is_whole(const int64_t *s)
{
    return !s[SPEC_INDEX] && !s[SPEC_START_KIND] && !s[SPEC_STOP_KIND] && s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] == 1;
}

static bool all_whole(const mc_node *n)
{
    for (int i = 0; i < n->attr[0].n; i += SPEC_N) {
        if (!is_whole(&n->attr[0].ints[i])) {
            return false;
        }
    }
    return true;
}

static void set_whole(struct index *to, int axis)
{
    int64_t *s = &to->spec[axis * SPEC_N];
    memset(s, 0, SPEC_N * sizeof *s);
    s[SPEC_STEP_KIND] = BOUND_CONST;
    s[SPEC_STEP] = 1;
}

static void set_first(struct index *to, int axis)
{
    int64_t *s = &to->spec[axis * SPEC_N];
    memset(s, 0, SPEC_N * sizeof *s);
    s[SPEC_INDEX] = 1;
    s[SPEC_START_KIND] = BOUND_CONST;
}

/* Axis `axis` of `to` as axis `from` of n's index. */
static void copy_entry(struct index *to, int axis, const mc_node *n, int from)
{
    int64_t *s = &to->spec[axis * SPEC_N];
    memcpy(s, entry(n, from), SPEC_N * sizeof *s);
    for (int k = SPEC_START_KIND; k < SPEC_N; k += 2) {
        if (s[k] == BOUND_INPUT) {
            to->bound[to->nbound++] = bound_of(n, s[k + 1]);
            s[k + 1] = to->nbound;
        }
    }
}

static mc_node *part(mc_node *x, struct index *i)
{
    mc_node *in[1 + 3 * MC_MAX_RANK] = { x };
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank * SPEC_N, .ints = i->spec };
    memcpy(in + 1, i->bound, (size_t)i->nbound * sizeof *in);
    return mc_apply(x->graph, mc_op_find("subtensor"), 1 + i->nbound, in, &a);
}

static bool same_region(const mc_node *a, const mc_node *b)
{
    if (a->attr[0].n != b->attr[0].n || memcmp(a->attr[0].ints, b->attr[0].ints, (size_t)a->attr[0].n * sizeof(int64_t)) != 0) {
        return false;
    }
    int na = a->nin - a->op->sig->ntensor, nb = b->nin - b->op->sig->ntensor;
    for (int k = 1; na == nb && k <= na; k++) {
        if (bound_of(a, k) != bound_of(b, k)) {
            return false;
        }
    }
    return na == nb;
}

/* ---- one notation ---- */

/* Bounds that became numbers go into the spec; a stop at or behind the end goes. */
static mc_node *tidy(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0];
    struct index to = { .nbound = 0 };
    bool changed = mc_is_op(x, "stack") || mc_is_op(x, "shape");
    for (int k = n->op->sig->ntensor; k < n->nin; k++) {
        changed |= mc_is_const(n->in[k]);
    }
    for (int i = 0; i < x->type.rank; i++) {
        const int64_t *s = entry(n, i);
        int64_t size = x->type.dims[i];
        bool forward = s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] > 0;
        bool ends = s[SPEC_STOP_KIND] == BOUND_CONST ? size >= 0 && s[SPEC_STOP] >= size
                                                      : s[SPEC_STOP_KIND] == BOUND_INPUT && mc_size_is(bound_of(n, s[SPEC_STOP]), x, i);
        copy_entry(&to, i, n, i);
        int64_t *d = &to.spec[i * SPEC_N];
        if (!s[SPEC_INDEX] && forward && ends) {
            d[SPEC_STOP_KIND] = BOUND_NONE;
            d[SPEC_STOP] = 0;
            changed = true;
        }
        if (s[SPEC_START_KIND] == BOUND_CONST && s[SPEC_START] < 0 && size >= 0 && (s[SPEC_INDEX] ? s[SPEC_START] >= -size : forward)) {
            d[SPEC_START] = MC_MAX(s[SPEC_START] + size, 0);
            changed = true;
        }
    }
    return changed || all_whole(n) ? part(x, &to) : NULL;
}

/* ---- parts of parts ---- */

static bool counts_forward(const int64_t *s)
{
    return (s[SPEC_START_KIND] == BOUND_NONE || (s[SPEC_START_KIND] == BOUND_CONST && s[SPEC_START] >= 0)) &&
           (s[SPEC_STOP_KIND] == BOUND_NONE || (s[SPEC_STOP_KIND] == BOUND_CONST && s[SPEC_STOP] >= 0)) &&
           (s[SPEC_INDEX] || (s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] > 0));
}

static bool is_reversal(const int64_t *s)
{
    return !s[SPEC_INDEX] && !s[SPEC_START_KIND] && !s[SPEC_STOP_KIND] && s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] == -1;
}

/* x[a:b:s][c:d:t] is x[a + s*c : min(b, a + s*d) : s*t]; x[a:b:s][c] is x[a + s*c]. */
static bool compose(int64_t *d, const int64_t *in, const int64_t *out, int64_t known)
{
    int64_t a = in[SPEC_START], b = in[SPEC_STOP], s = in[SPEC_STEP], lo, hi, step;
    if (is_reversal(in) && is_reversal(out)) {
        d[SPEC_STEP_KIND] = BOUND_CONST;
        d[SPEC_STEP] = 1;
        return true;
    }
    if (!counts_forward(in) || !counts_forward(out) || !mc_mul_i64(s, out[SPEC_START], &lo) || !mc_add_i64(a, lo, &lo) ||
        !mc_mul_i64(s, out[SPEC_STOP], &hi) || !mc_add_i64(a, hi, &hi) || !mc_mul_i64(s, out[SPEC_STEP], &step)) {
        return false;
    }
    d[SPEC_START_KIND] = BOUND_CONST;
    d[SPEC_START] = lo;
    if (out[SPEC_INDEX]) {
        d[SPEC_INDEX] = 1;
        return in[SPEC_STOP_KIND] == BOUND_NONE || (known >= 0 && out[SPEC_START] < known);
    }
    bool ends = in[SPEC_STOP_KIND] || out[SPEC_STOP_KIND];
    d[SPEC_STOP_KIND] = ends ? BOUND_CONST : BOUND_NONE;
    d[SPEC_STOP] = !ends ? 0 : !out[SPEC_STOP_KIND] ? b : !in[SPEC_STOP_KIND] ? hi : MC_MIN(b, hi);
    d[SPEC_STEP_KIND] = BOUND_CONST;
    d[SPEC_STEP] = step;
    return true;
}

static mc_node *of_part(mc_node *n, mc_node *p)
{
    struct index to = { .nbound = 0 };
    for (int i = 0, k = 0; i < p->in[0]->type.rank; i++) {
        const int64_t *in = entry(p, i), *out = entry(n, MC_MIN(k, p->type.rank - 1));
        if (in[SPEC_INDEX]) {
            copy_entry(&to, i, p, i);
            continue;
        }
        int64_t *d = &to.spec[i * SPEC_N];
        if (is_whole(in)) {
            copy_entry(&to, i, n, k);
        } else if (is_whole(out)) {
            copy_entry(&to, i, p, i);
        } else if (!compose(d, in, out, p->type.dims[k])) {
            return NULL;
        }
        k++;
    }
    return part(p->in[0], &to);
}

/* ---- parts of results ---- */

/* An operand broadcast along an axis gives its only element there. */
static mc_node *of_scalar(const struct mc_match *m, mc_node *n, mc_node *f)
{
    mc_node *in[4];
    for (int k = 0; k < f->nin; k++) {
        mc_node *x = f->in[k];
        struct index to = { .nbound = 0 };
        for (int i = 0; i < x->type.rank; i++) {
            bool broadcast = x->type.dims[i] == 1 && f->type.dims[i] != 1;
            if (!broadcast) {
                copy_entry(&to, i, n, i);
            } else if (entry(n, i)[SPEC_INDEX]) {
                set_first(&to, i);
            } else {
                set_whole(&to, i);
            }
        }
        in[k] = x->type.rank ? part(x, &to) : x;
        if (mc_is_error(in[k])) {
            return in[k];
        }
    }
    return mc_apply(m->g, f->op, f->nin, in, f->attr);
}

/* The part is cut first, the axes are shuffled behind it. */
static mc_node *of_shuffle(mc_node *n, mc_node *s)
{
    mc_node *x = s->in[0];
    struct index to = { .nbound = 0 };
    int64_t order[MC_MAX_RANK], at[MC_MAX_RANK] = { 0 };
    int rank = 0;
    bool used[MC_MAX_RANK] = { 0 }, gone[MC_MAX_RANK] = { 0 };
    for (int i = 0; i < s->type.rank; i++) {
        const int64_t *e = entry(n, i);
        int64_t from = s->attr[0].ints[i];
        if (from < 0) {
            bool first = e[SPEC_INDEX] && e[SPEC_START_KIND] == BOUND_CONST && (e[SPEC_START] == 0 || e[SPEC_START] == -1);
            if (!first && !is_whole(e)) {
                return NULL;
            }
        } else {
            copy_entry(&to, (int)from, n, i);
            used[from] = true;
            gone[from] = e[SPEC_INDEX];
        }
    }
    for (int i = 0; i < x->type.rank; i++) {
        if (!used[i]) {
            set_first(&to, i);
        }
        at[i] = rank;
        rank += used[i] && !gone[i];
    }
    rank = 0;
    for (int i = 0; i < s->type.rank; i++) {
        int64_t from = s->attr[0].ints[i];
        if (!entry(n, i)[SPEC_INDEX]) {
            order[rank++] = from < 0 ? -1 : at[from];
        }
    }
    mc_node *y = part(x, &to);
    return mc_is_error(y) ? y : mc_shuffle(y, rank, order);
}

/* Rows of a product are rows of the left operand, columns those of the right one. */
static mc_node *of_dot(mc_node *n, mc_node *p)
{
    struct index rows = { .nbound = 0 }, columns = { .nbound = 0 };
    copy_entry(&rows, 0, n, 0);
    set_whole(&rows, 1);
    set_whole(&columns, 0);
    copy_entry(&columns, 1, n, 1);
    mc_node *a = part(p->in[0], &rows), *b = part(p->in[1], &columns);
    return mc_is_error(a) || mc_is_error(b) ? n->graph->error : mc_op2("dot", a, b);
}

/* Every part of one repeated number is that number, if there is such a part. */
static mc_node *of_alloc(mc_node *n, mc_node *a)
{
    for (int i = 0; i < a->type.rank; i++) {
        if (entry(n, i)[SPEC_INDEX]) {
            return NULL;
        }
    }
    for (int i = 0; i < n->type.rank; i++) {
        if (n->type.dims[i] < 0 && !mc_lifted_size(n, 0, i)) {
            return NULL;
        }
    }
    return a->in[0]->type.rank ? NULL : mc_op2("alloc", a->in[0], mc_shape_vector(n));
}

static mc_node *subtensor(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0], *y = tidy(m);
    if (y && y != n) {
        return y;
    }
    if (mc_is_op(x, "subtensor")) {
        return of_part(n, x);
    }
    if (mc_is_op(x, "subtensor_update") && mc_attr_int(&x->attr[1]) && same_region(n, x)) {
        return x->in[1];
    }
    if (mc_is_op(x, "alloc")) {
        return of_alloc(n, x);
    }
    if (mc_is_op(x, "dimshuffle")) {
        return of_shuffle(n, x);
    }
    if (!mc_used_once(m, x)) {
        return NULL;
    }
    return x->op->arity || mc_is_op(x, "cast") ? of_scalar(m, n, x) : mc_is_op(x, "dot") ? of_dot(n, x) : NULL;
}

/* ---- updates ---- */

static bool is_zero(const mc_node *n)
{
    double v;
    return mc_const_number(mc_is_op(n, "alloc") ? n->in[0] : n, &v) && v >= 0 && v <= 0;
}

static mc_node *remake(const mc_node *n, mc_node *x, mc_node *y, bool set)
{
    mc_node *in[2 + 3 * MC_MAX_RANK];
    int64_t flag = set;
    struct mc_attr a[2] = { n->attr[0], n->attr[1] };
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[0] = x;
    in[1] = y;
    a[1].ints = &flag;
    return mc_apply(n->graph, n->op, n->nin, in, a);
}

/* A value that is one number throughout broadcasts by itself. */
static mc_node *one_number(const struct mc_match *m)
{
    mc_node *n = m->root, *y = n->in[1], *in[2 + 3 * MC_MAX_RANK];
    int64_t order[MC_MAX_RANK];
    if (!mc_is_op(y, "alloc") || y->in[0]->type.rank) {
        return NULL;
    }
    for (int i = 0; i < y->type.rank; i++) {
        order[i] = -1;
    }
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[1] = mc_shuffle(y->in[0], y->type.rank, order);
    return mc_is_error(in[1]) ? in[1] : mc_node_make(m->g, n->op, n->nin, in, n->attr);
}

/* Each axis whole, forwards or backwards. */
static bool all_there(const mc_node *n)
{
    for (int i = 0; i < n->attr[0].n; i += SPEC_N) {
        const int64_t *s = &n->attr[0].ints[i];
        if (!is_whole(s) && (s[SPEC_INDEX] || s[SPEC_START_KIND] || s[SPEC_STOP_KIND] || s[SPEC_STEP_KIND] != BOUND_CONST || s[SPEC_STEP] != -1)) {
            return false;
        }
    }
    return true;
}

/* What sets all, backwards, is what it sets it to, backwards. */
static mc_node *set_backwards(mc_node *n)
{
    struct index to = { .nbound = 0 };
    mc_node *y = mc_fit(n, n->in[1]);
    for (int i = 0; y && i < y->type.rank; i++) {
        copy_entry(&to, i, n, i);
    }
    return y ? part(y, &to) : NULL;
}

/* A whole is set or increased as such; zeros are set, not increased; of two changes to one region one is left. */
static mc_node *update(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0], *y = n->in[1];
    bool set = mc_attr_int(&n->attr[1]) != 0;
    if (all_whole(n)) {
        return set ? y : mc_op2("add", x, y);
    }
    for (int k = 2; k < n->nin; k++) {
        if (mc_is_const(n->in[k])) {
            return remake(n, x, y, set);
        }
    }
    if (set && all_there(n)) {
        return set_backwards(n);
    }
    if (!set && is_zero(x)) {
        return remake(n, x, y, true);
    }
    if (mc_is_op(x, "subtensor_update") && same_region(n, x) && (set || mc_used_once(m, x))) {
        return set ? remake(n, x->in[0], y, true) : remake(n, x->in[0], mc_op2("add", x->in[1], y), mc_attr_int(&x->attr[1]));
    }
    return NULL;
}

static const struct mc_rule rows[] = {
    { .op = "subtensor", .make = subtensor, .promise = ROUND, .name = "subtensor",
      .sample = "x[1:][0]; x[1:4][1:3]; x[::-1][::-1]; (x + y[0])[1:3]; transpose(x)[1]; expand_dims(x, 0)[0, 2:]; "
                "dot(x, transpose(y))[1:3, 2]; alloc(2.0f64, x.shape)[1:]; set_subtensor(x[1:3], y[1:3])[1:3]; x[0:x.shape[0]]; "
                "cast(x, float32)[1]" },
    { .op = "subtensor_update", .make = update, .promise = FINITE, .name = "subtensor_update",
      .sample = "inc_subtensor(zeros_like(x)[1:], y[1:]); set_subtensor(set_subtensor(x[1:], y[1:])[1:], 2); "
                "inc_subtensor(inc_subtensor(x[1:], y[1:])[1:], y[1:]); set_subtensor(x[0:], y); inc_subtensor(x[0:], y); set_subtensor(x[::-1], y); inc_subtensor(zeros_like(x)[:, ::-1], y)" },
    { .op = "subtensor_update", .make = one_number, .promise = EXACT, .name = "update by a number", .sample = "set_subtensor(x[1:], alloc(2.0f64, x[1:].shape))" },
    { .op = "gather_update", .make = one_number, .promise = EXACT, .name = "updates by a number",
      .sample = "inc_subtensor(x[[0, 2]], alloc(2.0f64, [2, 5]))" },
};
const struct mc_rule_table mc_rules_index = { rows, (int)NELEM(rows) };

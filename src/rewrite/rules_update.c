/* rules_update.c: set_subtensor and inc_subtensor.
 *
 * An update of a whole tensor becomes a value or a sum. Two updates of the same region become one,
 * and so do updates of zeros side by side. */
#include "rewrite/index.h"

static bool is_zero(const mc_node *n)
{
    double v;
    return mc_const_number(n->op->form == FORM_ALLOC ? n->in[0] : n, &v) && v >= 0 && v <= 0;
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

/* A value that is a repeated scalar need not be repeated: an update broadcasts its value. */
static mc_node *one_number(const struct mc_match *m)
{
    mc_node *n = m->root, *y = n->in[1], *in[2 + 3 * MC_MAX_RANK];
    int64_t order[MC_MAX_RANK];
    if (y->op->form != FORM_ALLOC || y->in[0]->type.rank) {
        return NULL;
    }
    for (int i = 0; i < y->type.rank; i++) {
        order[i] = -1;
    }
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[1] = mc_shuffle(y->in[0], y->type.rank, order);
    return mc_is_error(in[1]) ? in[1] : mc_node_make(m->g, n->op, n->nin, in, n->attr);
}

/* Does the index take each axis whole, forwards or reversed? */
static bool have_sizes(const mc_node *n)
{
    for (int i = 0; i < n->attr[0].n; i += SPEC_N) {
        if (!index_is_whole(&n->attr[0].ints[i]) && !index_is_reversal(&n->attr[0].ints[i])) {
            return false;
        }
    }
    return true;
}

/* Setting all of x through reversed axes gives the value with those axes reversed. */
static mc_node *set_backwards(mc_node *n)
{
    struct index to = { .nbound = 0 };
    mc_node *y = mc_fit(n, n->in[1]);
    for (int i = 0; y && i < y->type.rank; i++) {
        index_copy(&to, i, n, i);
    }
    return y ? index_part(y, &to) : NULL;
}

/* An update of the whole becomes the value or a sum; adding to zeros becomes setting; two updates of the same
 * region become one. */
static mc_node *update(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0], *y = n->in[1];
    bool set = mc_attr_int(&n->attr[1]) != 0;
    if (index_all_whole(n)) {
        return set ? y : mc_op2("add", x, y);
    }
    for (int k = 2; k < n->nin; k++) {
        if (mc_is_const(n->in[k])) {
            return remake(n, x, y, set);
        }
    }
    if (set && have_sizes(n)) {
        return set_backwards(n);
    }
    if (!set && is_zero(x)) {
        return remake(n, x, y, true);
    }
    if (x->op->form == FORM_SUBTENSOR_UPDATE && index_same_region(n, x) && (set || mc_used_once(m, x))) {
        return set ? remake(n, x->in[0], y, true)
                   : remake(n, x->in[0], mc_op2("add", x->in[1], y), mc_attr_int(&x->attr[1]));
    }
    return NULL;
}

/* ---- sums of parts ---- */

/* Zeros with a value set from `from` to `to` along one axis; END: to its end, whose size is unknown. */
static const int64_t END = INT64_MAX;
struct padded {
    mc_node *n;
    int axis;
    int64_t from, to;
    bool item;                          /* one place of the axis, which the value lacks */
};

/* Is y as long as the part?  Of unknown sizes it is, unless its size 1 is promised, which is repeated.  What
 * a part has beyond the end of the axis, y has not. */
static bool is_as_long(const struct padded *p, int64_t size, int64_t have)
{
    return size >= 0 && have >= 0 ? p->to <= size && have == p->to - p->from : have != 1 && p->to >= p->from;
}

/* The part that an index which is a number takes. */
static bool is_one_place(const int64_t *s, int64_t size, struct padded *p)
{
    p->from = s[SPEC_START];
    p->to = p->from + 1;
    p->item = true;
    return s[SPEC_START_KIND] == BOUND_CONST && p->from >= 0 && p->from < size;
}

/* The part that a slice takes; the value has `have` elements there. */
static bool is_slice(const int64_t *s, int64_t size, int64_t have, struct padded *p)
{
    const bool start = s[SPEC_START_KIND] == BOUND_CONST, stop = s[SPEC_STOP_KIND] == BOUND_CONST;
    p->from = start ? s[SPEC_START] : 0;
    p->to = stop ? s[SPEC_STOP] : size < 0 ? END : size;
    return s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] == 1 && (start || !s[SPEC_START_KIND]) &&
           (stop || !s[SPEC_STOP_KIND]) && p->from >= 0 && is_as_long(p, size, have);
}

static bool is_padded(mc_node *n, struct padded *p)
{
    if (n->op->form != FORM_SUBTENSOR_UPDATE || !is_zero(n->in[0]) || n->in[1]->type.dtype != n->type.dtype) {
        return false;
    }
    const struct mc_type *y = &n->in[1]->type;
    *p = (struct padded){ .n = n, .axis = -1 };
    int at = 0; /* the value's axis */
    for (int i = 0; i < n->type.rank; i++) {
        const int64_t *s = index_entry(n, i), size = n->type.dims[i];
        const int64_t have = at < y->rank ? y->dims[at] : -1;
        const bool whole = index_is_whole(s);
        at += !s[SPEC_INDEX];
        const bool fits = whole           ? have != 1 || size == 1
                          : p->axis >= 0  ? false
                          : s[SPEC_INDEX] ? is_one_place(s, size, p)
                                          : is_slice(s, size, have, p);
        if (!fits) {
            return false;
        }
        p->axis = whole ? p->axis : i;
    }
    return p->axis >= 0 && at == y->rank;
}

/* What is set, with the axis along which it is. */
static mc_node *value_of(const struct padded *p)
{
    int64_t order[MC_MAX_RANK];
    for (int i = 0; i < p->n->type.rank; i++) {
        order[i] = i == p->axis ? -1 : i - (i > p->axis);
    }
    return p->item ? mc_shuffle(p->n->in[1], p->n->type.rank, order) : p->n->in[1];
}

/* A sum within the sum at the root. */
static bool is_inner_sum(const struct mc_match *m, mc_node *n)
{
    return n->op == m->root->op && mc_used_once(m, n);
}

/* Inner sums are normal already, so a new pair has a part on either side.  A chain of sums would be searched
 * anew at each of its nodes without this. */
static bool may_have_new_pair(const struct mc_match *m)
{
    struct padded p;
    bool may = m->root->type.rank > 0;
    for (int k = 0; k < 2; k++) {
        mc_node *side = m->root->in[k];
        may = may && (is_inner_sum(m, side) || is_padded(side, &p));
    }
    return may;
}

/* The terms of a sum whose inner sums have no other user. */
static int terms_of(const struct mc_match *m, mc_node *n, mc_node **term, int count, int most)
{
    const bool sum = n == m->root || is_inner_sum(m, n);
    for (int k = 0; sum && k < 2; k++) {
        count = count < 0 ? count : terms_of(m, n->in[k], term, count, most);
    }
    if (!sum && count >= 0 && count < most) {
        term[count++] = n;
    } else if (!sum) {
        count = -1;
    }
    return count;
}

static mc_node *side_by_side(const struct padded *a, const struct padded *b)
{
    int64_t axis = a->axis;
    const struct mc_attr attr = { .kind = ATTR_INT, .n = 1, .ints = &axis };
    mc_node *parts[2] = { value_of(a), value_of(b) },
            *y = mc_apply(a->n->graph, mc_op_find("join"), 2, parts, &attr);
    struct index to = { .nbound = 0 };
    for (int i = 0; i < a->n->type.rank; i++) {
        index_set_whole(&to, i);
    }
    int64_t *s = &to.spec[axis * SPEC_N];
    s[SPEC_START_KIND] = BOUND_CONST;
    s[SPEC_START] = a->from;
    if (b->to != END) {
        s[SPEC_STOP_KIND] = BOUND_CONST;
        s[SPEC_STOP] = b->to;
    }
    int64_t set = true;
    const struct mc_attr update_attr[2] = {
        { .kind = ATTR_INTS, .n = a->n->type.rank * SPEC_N, .ints = to.spec },
        { .kind = ATTR_BOOL, .n = 1, .ints = &set } };
    if (mc_is_error(y)) {
        return y;
    }
    return a->from == 0 && (b->to == END || b->to == a->n->type.dims[axis])
               ? mc_fit(a->n, y)
               : mc_apply(y->graph, a->n->op, 2, (mc_node *[]){ a->n->in[0], y }, update_attr);
}

/* Gradients of parts that lie side by side are summed as zeros around each: they become one join. */
static mc_node *sum_of_parts(const struct mc_match *m)
{
    enum { MOST_TERMS = 32 };
    mc_node *term[MOST_TERMS], *sum = NULL;
    struct padded p[2];
    const int n = may_have_new_pair(m) ? terms_of(m, m->root, term, 0, MOST_TERMS) : 0;
    for (int i = 0; i < n && !sum; i++) {
        for (int k = 0; k < n && !sum && is_padded(term[i], &p[0]); k++) {
            if (i == k || !is_padded(term[k], &p[1]) || p[0].axis != p[1].axis || p[0].to != p[1].from ||
                !mc_type_equal(&term[i]->type, &m->root->type) ||
                !mc_type_equal(&term[k]->type, &m->root->type)) {
                continue;
            }
            sum = side_by_side(&p[0], &p[1]);
            for (int j = 0; sum && j < n; j++) {
                sum = j == i || j == k ? sum : mc_op2("add", sum, term[j]);
            }
        }
    }
    return sum;
}

static const struct mc_rule rows[] = {
    { .op = "add", .make = sum_of_parts, .promise = FINITE, .name = "sum of parts",
      .sample = "inc_subtensor(zeros([4, 5], dtype='float64')[:, :2], specify_shape(x[:4, :2], [4, 2])) + "
                "inc_subtensor(zeros([4, 5], dtype='float64')[:, 2:], specify_shape(y[:4, 2:], [4, 3])); "
                "inc_subtensor(zeros([4, 5], dtype='float64')[1:2], specify_shape(x[:1], [1, 5])) + y + "
                "inc_subtensor(zeros([4, 5], dtype='float64')[2:], specify_shape(x[:2], [2, 5])) + "
                "inc_subtensor(zeros([4, 5], dtype='float64')[:1], specify_shape(y[1:2], [1, 5])); "
                "inc_subtensor(zeros_like(x)[:, 2:], sin(x[:, 2:])) + inc_subtensor(zeros_like(x)[:, :2], y[:, :2]); "
                "inc_subtensor(zeros([2, 4], dtype='float64')[0], x[0, :4]) + "
                "inc_subtensor(zeros([2, 4], dtype='float64')[1], y[0, :4]); "
                "inc_subtensor(zeros([4, 2], dtype='float64')[:, 1], x[:4, 0]) + "
                "inc_subtensor(zeros([4, 2], dtype='float64')[:, 0], y[:4, 0]); "
                "inc_subtensor(zeros_like(x)[1:3], x[1:3]) + inc_subtensor(zeros_like(x)[3:9], y[3:9])" },
    { .op = "subtensor_update", .make = update, .promise = FINITE, .name = "subtensor_update",
      .sample = "inc_subtensor(zeros_like(x)[1:], y[1:]); set_subtensor(set_subtensor(x[1:], y[1:])[1:], 2); "
                "inc_subtensor(inc_subtensor(x[1:], y[1:])[1:], y[1:]); set_subtensor(x[0:], y); inc_subtensor(x[0:], y); set_subtensor(x[::-1], y); inc_subtensor(zeros_like(x)[:, ::-1], y)" },
    { .op = "subtensor_update", .make = one_number, .promise = EXACT, .name = "update by a number", .sample = "set_subtensor(x[1:], alloc(2.0f64, x[1:].shape))" },
    { .op = "gather_update", .make = one_number, .promise = EXACT, .name = "updates by a number",
      .sample = "inc_subtensor(x[[0, 2]], alloc(2.0f64, [2, 5]))" },
};
const struct mc_rule_table mc_rules_update = { rows, (int)NELEM(rows) };

/* match.c: matches a node against the left side of a rule, and builds the right side.
 *
 * Operands of commutative ops match in either order. One bit for each commutative node of the pattern selects
 * the order. All settings of the bits are tried, except those that share with a failed setting all bits that
 * it looked at. */
#include "rewrite/pattern.h"
#include <math.h>

const struct mc_op *mc_pattern_root(const struct mc_pattern *p)
{
    return p->kind == CALL ? p->op : NULL;
}

struct trial {
    struct mc_match *m;
    bool once, near;
    unsigned choice;                 /* bit nswap-1-i set: commutative node i has its operands swapped */
    int nswap, used;                 /* used: number of bits that the current match has looked at */
};

/* Is every element of n the number, in n's own dtype? 0 and -0 differ, unless `near` is set. */
static bool is_number(const mc_node *n, double number, bool near)
{
    char want[8] = { 0 }, have[8] = { 0 };
    double v;
    if (!mc_const_number(n, &v) || (n->type.dtype == MC_BOOL && number != 0 && number != 1)) {
        return false;
    }
    if (near && mc_is_float(n->type.dtype)) {
        return fabs(v - number) <= 2 * mc_dtypes[n->type.dtype].eps * fabs(number);
    }
    mc_store_f64(n->type.dtype, want, number);
    mc_store_f64(n->type.dtype, have, v);
    return memcmp(want, have, sizeof want) == 0 &&
           (mc_is_float(n->type.dtype) || mc_load_f64(n->type.dtype, want) == number);
}

static bool is_axes(const struct mc_attr *a)
{
    return a->kind == ATTR_AXES || a->kind == ATTR_INT;
}

/* A set of axes as bits. Integers that are not axes of this rank are used as they are. */
static uint64_t axes_bits(const struct mc_attr *a, int rank)
{
    uint64_t bits = a->none ? (UINT64_C(1) << rank) - 1 : 0;
    for (int i = 0; i < a->n; i++) {
        int64_t k = a->ints[i] < 0 ? a->ints[i] + rank : a->ints[i];
        bits |= UINT64_C(1) << (k & 63);
    }
    return bits;
}

static bool attr_equal(const struct mc_attr *a, int ra, const struct mc_attr *b, int rb)
{
    if (is_axes(a) && is_axes(b)) {
        return axes_bits(a, ra) == axes_bits(b, rb);
    }
    return a->kind == b->kind && a->none == b->none && a->n == b->n &&
           (a->n == 0 || memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints) == 0) &&
           memcmp(&a->real, &b->real, sizeof a->real) == 0 &&
           (a->text == b->text || (a->text && b->text && strcmp(a->text, b->text) == 0));
}

static bool match_attrs(const struct mc_pattern *p, const mc_node *n, struct mc_match *m)
{
    int rank = n->nin ? n->in[0]->type.rank : 0;
    for (int i = 0; i < n->op->sig->nattr; i++) {
        int c = p->attr[i].letter;
        if (c < 0 ? !attr_equal(&p->attr[i].value, rank, &n->attr[i], rank)
                  : m->attr[c] && !attr_equal(m->attr[c], m->rank[c], &n->attr[i], rank)) {
            return false;
        }
        if (c >= 0) {
            m->attr[c] = &n->attr[i];
            m->rank[c] = rank;
        }
    }
    return true;
}

static bool match(struct trial *t, const struct mc_pattern *p, mc_node *n)
{
    double v;
    if (p->kind == NUMBER) {
        return (!p->truth || n->type.dtype == MC_BOOL) && is_number(n, p->number, t->near);
    }
    if (p->kind == CALL) {
        if (n->op != p->op || n->nin != p->nin || (t->once && n != t->m->root && !mc_used_once(t->m, n))) {
            return false;
        }
        bool swap = p->swap >= 0 && t->choice >> (t->nswap - 1 - p->swap) & 1;
        t->used = p->swap >= 0 ? p->swap + 1 : t->used;
        if (!match_attrs(p, n, t->m)) {
            return false;
        }
        for (int i = 0; i < p->nin; i++) {
            if (!match(t, p->in[i], n->in[swap ? p->nin - 1 - i : i])) {
                return false;
            }
        }
        return true;
    }
    if (p->kind == CONSTANT && !mc_const_number(n, &v)) {
        return false;
    }
    mc_node **b = &t->m->bound[p->letter];
    if (*b) {
        return *b == n;
    }
    *b = n;
    return true;
}

static bool may_be(const struct mc_pattern *p, const mc_node *n)
{
    return p->kind == ANY || (p->kind == CALL ? n->op == p->op : mc_is_const(n) || n->op->flags & OP_VIEW);
}

bool mc_pattern_may_match(const struct mc_pattern *p, const mc_node *n)
{
    if (n->op != p->op || n->nin != p->nin) {
        return false;
    }
    bool as_is = true, swapped = p->swap >= 0;
    for (int i = 0; i < p->nin; i++) {
        as_is = as_is && may_be(p->in[i], n->in[i]);
        swapped = swapped && may_be(p->in[i], n->in[p->nin - 1 - i]);
    }
    return as_is || swapped;
}

bool mc_pattern_match(const struct mc_pattern *p, const struct mc_rule *r, mc_node *n, struct mc_match *m)
{
    struct trial t = { .m = m, .once = r->once, .near = r->near, .nswap = p->nswap };
    m->root = n;
    m->g = n->graph;
    while (t.choice < 1u << t.nswap) {
        memset(m->bound, 0, sizeof m->bound);
        memset(m->attr, 0, sizeof m->attr);
        t.used = 0;
        bool fits = match(&t, p, n);
        if (fits && (!r->when || r->when(m))) {
            return true;
        }
        unsigned step = fits ? 1 : 1u << (t.nswap - t.used); /* bits that were not looked at cannot help */
        t.choice = (t.choice / step + 1) * step;
    }
    return false;
}

bool mc_matches(const struct mc_probe *p, const mc_node *n, struct mc_match *m)
{
    static const struct mc_rule unconditional = { .from = NULL };
    struct mc_match own;
    if (!mc_pattern_may_match(p->pattern, n)) {
        return false;
    }
    m = m ? m : &own;
    m->uses = NULL;
    m->nuses = 0;
    return mc_pattern_match(p->pattern, &unconditional, (mc_node *)(uintptr_t)n, m);
}

/* ---- building ---- */

/* Converts a bound attribute to the kind of the parameter: an axis to a list of one, or the reverse. */
static bool give_attr(const struct mc_param *q, const struct mc_attr *a, int rank, int64_t *storage,
                      struct mc_attr *out)
{
    *out = *a;
    out->kind = q->kind;
    if (a->kind == q->kind || (a->kind == ATTR_INT && q->kind == ATTR_AXES)) {
        return true;
    }
    if (a->kind != ATTR_AXES || q->kind != ATTR_INT || (a->none ? rank : a->n) != 1) {
        return false;
    }
    *storage = a->none ? 0 : a->ints[0];
    out->none = false;
    out->n = 1;
    out->ints = storage;
    return true;
}

static mc_node *build(const struct mc_pattern *p, const struct mc_match *m)
{
    mc_node *in[MOST_ARGS];
    struct mc_attr attr[MOST_ATTRS];
    int64_t storage[MOST_ATTRS];
    if (p->kind == NUMBER && p->truth) {
        return mc_node_number(m->g, MC_BOOL, p->number);
    }
    if (p->kind == NUMBER) {
        mc_dtype d = p->real || p->number != floor(p->number) ? MC_FLOAT64
                     : fabs(p->number) < 128                  ? MC_INT8
                                                              : MC_INT64;
        return mc_node_const(m->g, mc_array_scalar(d, p->number), true);
    }
    if (p->kind != CALL) {
        return m->bound[p->letter];
    }
    for (int i = 0; i < p->nin; i++) {
        if (!(in[i] = build(p->in[i], m)) || mc_is_error(in[i])) {
            return in[i];
        }
    }
    for (int i = 0, k = 0; i < p->op->sig->nparam; i++) {
        const struct mc_param *q = &p->op->sig->param[i];
        if (q->kind <= ATTR_TENSORS) {
            continue;
        }
        int c = p->attr[k].letter;
        if (c < 0) {
            attr[k] = p->attr[k].value;
        } else if (!m->attr[c] || !give_attr(q, m->attr[c], m->rank[c], &storage[k], &attr[k])) {
            return NULL;
        }
        k++;
    }
    return mc_apply(m->g, p->op, p->nin, in, attr);
}

mc_node *mc_pattern_build(const struct mc_pattern *p, const struct mc_match *m)
{
    return build(p, m);
}

double mc_letter_number(const struct mc_match *m, char c)
{
    double v = NAN;
    mc_const_number(m->bound[c - 'a'], &v);
    return v;
}

/* The largest float16 is 65504, so float16 is excluded. The other dtypes have room for a factor up to 1e9. */
bool mc_letter_may_wait(const struct mc_match *m, char c)
{
    const mc_node *k = mc_letter(m, c);
    double v;
    return k->type.dtype != MC_FLOAT16 && (!mc_const_number(k, &v) || (fabs(v) <= 1e9 && fabs(v) >= 1e-9));
}

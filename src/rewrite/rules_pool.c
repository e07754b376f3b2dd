/* rules_pool.c: max pooling. Element-wise work on each cell before the pooling, or on each cell of its
 * gradient, is moved to the windows: there are fewer windows than cells, and the cells need not be stored.
 *
 * The argmax marks name the largest cell of each window. An increasing function leaves it the largest, so the
 * function may be applied after the pooling. The gradient (pool_spread) is nonzero only in that cell, so a
 * factor is needed only there, and there the cell equals the result of the pooling. */
#include "op/pool_node.h"
#include "rewrite/rewrite.h"
#include <math.h>

static unsigned pooled_axes(const mc_node *n)
{
    const struct mc_attr *a = &n->attr[POOL_AXIS];
    unsigned axes = 0;
    for (int i = 0; i < a->n; i++) {
        axes |= 1u << a->ints[i];
    }
    return axes;
}

/* Is n constant along the pooled axes? */
static bool flat(const mc_node *n, int rank, unsigned pooled)
{
    bool same = n->type.rank == rank;
    for (int i = 0; same && i < rank; i++) {
        same = !(pooled >> i & 1) || n->type.dims[i] == 1;
    }
    return same || n->type.rank == 0;
}

/* ---- increasing functions ---- */

static bool is_positive(const mc_node *n)
{
    double k;
    return mc_const_number(n, &k) && k > 0 && isfinite(k);
}

enum { LOG, LOG1P };
static struct mc_probe looks[] = { [LOG] = { "log(x)" }, [LOG1P] = { "log1p(x)" } };

/* log(f(x)) may have a stable form. Its rule would not find f on the other side of a pooling. */
static bool defer_to_stable(const mc_node *n)
{
    struct mc_match log;
    if (!mc_matches(&looks[LOG], n, &log) && !mc_matches(&looks[LOG1P], n, &log)) {
        return false;
    }
    const mc_node *f = mc_letter(&log, 'x');
    return f->op->arity || f->op->flags & OP_REDUCES;
}

/* The operand that n is increasing in, where the other operands are constant along the pooled axes; NULL: no
 * such operand is known. *strictly: n is strictly increasing, but for rounding. */
static mc_node *grows_with(const mc_node *n, int rank, unsigned pooled, bool *strictly)
{
    const unsigned flags = n->op->flags;
    const bool scales = n->nin == 2 && mc_op_linear(n->op, 1); /* by the other operand */
    *strictly = flags & OP_MONOTONE || scales;
    if (!n->op->arity || !(*strictly || flags & OP_RISES) || defer_to_stable(n)) {
        return NULL;
    }
    mc_node *x = n->in[flags & OP_COMMUTES && flat(n->in[0], rank, pooled)];
    for (int k = 0; k < n->nin && x; k++) {
        x = n->in[k] == x || (flat(n->in[k], rank, pooled) && (!scales || is_positive(n->in[k]))) ? x : NULL;
    }
    return x && x->type.rank == rank && x->type.dtype == n->type.dtype ? x : NULL;
}

/* ---- pooling before an increasing function ---- */

enum { LONGEST = 8 };

static bool reduces(const mc_node *pool)
{
    int64_t stride[3] = { 1, 1, 1 };
    int n;
    return mc_const_ints(pool->in[1 + POOL_STRIDE], stride, 3, &n) &&
           (stride[0] > 1 || stride[1] > 1 || stride[2] > 1);
}

/* The same windows over x. */
static mc_node *pool_of(const mc_node *pool, mc_node *x)
{
    mc_node *in[1 + POOL_NVECTOR] = { x };
    memcpy(in + 1, pool->in + 1, POOL_NVECTOR * sizeof *in);
    return mc_node_make(pool->graph, pool->op, 1 + POOL_NVECTOR, in, pool->attr);
}

/* n with its operand x replaced by y. */
static mc_node *applied_to_pool(const mc_node *n, const mc_node *x, mc_node *y)
{
    mc_node *in[3];
    for (int i = 0; i < n->nin; i++) {
        in[i] = n->in[i] == x ? y : n->in[i];
    }
    return mc_node_make(n->graph, n->op, n->nin, in, n->attr);
}

/* item(pool_max(tanh(x + b)), 0) ==> tanh(item(pool_max(x), 0) + b). The marks become those of x: cells that
 * tanh makes equal only by rounding may differ in x. A function that is not strictly increasing, such as
 * maximum(x, k), stays if the marks are read. */
static mc_node *pool_first(const struct mc_match *m)
{
    mc_node *pool = m->root->in[0], *chain[LONGEST + 1], *y;
    int n = 0;
    if (!mc_pool_marks(pool) || !reduces(pool)) {
        return NULL;
    }
    const bool marks = !mc_used_once(m, pool) || m->root->item == 1;
    for (chain[0] = pool->in[0]; n < LONGEST && mc_used_once(m, chain[n]); n++) {
        bool strictly;
        mc_node *x = grows_with(chain[n], pool->in[0]->type.rank, pooled_axes(pool), &strictly);
        if (!x || (marks && !strictly)) {
            break;
        }
        chain[n + 1] = x;
    }
    if (!n) {
        return NULL;
    }
    y = mc_item(pool_of(pool, chain[n]), m->root->item);
    for (int i = n; m->root->item == 0 && i-- > 0 && !mc_is_error(y);) {
        y = applied_to_pool(chain[i], chain[i + 1], y);
    }
    return y;
}

/* ---- formulas over the result of pool_spread ---- */

enum { MOST_INSIDE = 32 };
/* NOTHING: none of the others.  FLAT: constant along the pooled axes.  CELLS: a function of the cells.
 * SPREAD: proportional to the spread; ZERO is proportional too. */
enum of { NOTHING, FLAT, CELLS, SPREAD, ZERO };

/* A formula over the spread, the cells that were pooled, and nodes that are constant along the pooled
 * axes. */
struct inside {
    mc_node *scattered, *cells;        /* cells: NULL if unknown */
    unsigned pooled;
    int n;
    struct { mc_node *node, *made; enum of of; unsigned seen; } part[MOST_INSIDE];
};

static int find(const struct inside *f, const mc_node *n)
{
    for (int i = 0; i < f->n; i++) {
        if (f->part[i].node == n) {
            return i;
        }
    }
    return -1;
}

/* The class of an element-wise node, from those of its operands. */
static enum of combine(const mc_node *n, const enum of *a)
{
    bool scattered = false, strange = false;
    unsigned follow = 0; /* operands that are proportional to the spread, as bits */
    for (int i = 0; i < n->nin; i++) {
        scattered |= a[i] == SPREAD;
        strange |= a[i] == NOTHING;
        follow |= (unsigned)(a[i] == SPREAD || a[i] == ZERO) << i;
    }
    if (strange || !scattered) {
        return strange ? NOTHING : CELLS;
    }
    return mc_op_linear(n->op, follow) ? SPREAD : NOTHING;
}

/* The class of n. Counts how often the formula reads each part. At most MOST_INSIDE parts, which also bounds
 * the depth. */
static enum of look(struct inside *f, mc_node *n)
{
    int at = find(f, n);
    double v;
    if (at >= 0) {
        f->part[at].seen++;
        return f->part[at].of;
    }
    if (f->n == MOST_INSIDE) {
        return NOTHING;
    }
    at = f->n++;
    f->part[at].node = n;
    f->part[at].seen = 1;
    f->part[at].of = NOTHING;
    enum of a[3] = { NOTHING, NOTHING, NOTHING }, of = NOTHING;
    if (n == f->scattered || n == f->cells) {
        of = n == f->scattered ? SPREAD : CELLS;
    } else if (mc_const_number(n, &v) && v >= 0 && v <= 0) {
        of = ZERO;
    } else if (flat(n, f->scattered->type.rank, f->pooled)) {
        of = FLAT;
    } else if (n->op->arity && n->nin <= 3) {
        for (int i = 0; i < n->nin; i++) {
            a[i] = look(f, n->in[i]);
        }
        of = combine(n, a);
    }
    f->part[at].of = of;
    return of;
}

/* Are all parts that are proportional to the spread read by this formula only? */
static bool read_once(const struct inside *f, const struct mc_match *m)
{
    for (int i = 1; i < f->n; i++) {
        const mc_node *n = f->part[i].node;
        if (f->part[i].of == SPREAD && n->id < m->nuses && m->uses[n->id] > f->part[i].seen) {
            return false;
        }
    }
    return true;
}

/* Is n read by the formula and by at most one other node? */
static bool is_read_once(const struct inside *f, const struct mc_match *m, const mc_node *n)
{
    const int at = find(f, n);
    return n->id >= m->nuses || m->uses[n->id] <= 1 + (at >= 0 ? f->part[at].seen : 0);
}

/* The formula with the spread replaced by its input g and the cells replaced by the maxima y. */
static mc_node *gather_at_argmax(struct inside *f, mc_node *n, mc_node *y)
{
    mc_node *in[3];
    int at = find(f, n);
    if (n == f->scattered || n == f->cells) {
        return n == f->scattered ? n->in[0] : y;
    }
    if (f->part[at].of == FLAT || f->part[at].of == ZERO) {
        return n;
    }
    for (int i = 0; i < n->nin && !f->part[at].made; i++) {
        in[i] = gather_at_argmax(f, n->in[i], y);
        if (mc_is_error(in[i])) {
            return in[i];
        }
    }
    if (!f->part[at].made) {
        f->part[at].made = mc_node_make(n->graph, n->op, n->nin, in, n->attr);
    }
    return f->part[at].made;
}

static mc_node *find_scatter(mc_node *n, int deep)
{
    for (int i = 0; i < n->nin; i++) {
        mc_node *s = mc_pool_pass_of(n->in[i]) == POOL_SPREAD ? n->in[i]
                     : deep && n->in[i]->op->arity            ? find_scatter(n->in[i], deep - 1)
                                                              : NULL;
        if (s) {
            return s;
        }
    }
    return NULL;
}

/* The pooling whose marks direct the spread s; NULL: there is none with the same windows. */
static mc_node *pool_behind(const mc_node *s)
{
    const mc_node *key = s->nin > 2 + POOL_NVECTOR ? s->in[2 + POOL_NVECTOR] : NULL;
    mc_node *pool = key && key->op == &mc_op_item && key->item == 1 ? key->in[0] : NULL;
    bool same = pool && mc_pool_marks(pool) &&
                memcmp(pool->in + 1, s->in + 2, POOL_NVECTOR * sizeof *s->in) == 0;
    for (int i = 0; same && i < POOL_NATTR; i++) {
        same = mc_attr_equal(&pool->attr[i], &s->attr[i]);
    }
    return same ? pool : NULL;
}

static bool fits(const mc_node *root, const mc_node *s)
{
    bool same = root->type.dtype == s->type.dtype && root->type.rank == s->type.rank;
    for (int i = 0; same && i < s->type.rank; i++) {
        same = s->type.dims[i] != 1 || root->type.dims[i] == 1;
    }
    return same;
}

/* f(x) * pool_spread(g, ..., marks of x) ==> pool_spread(f(maxima of x) * g, ..., marks of x), and
 * likewise for any formula that is proportional to the spread. If x = maximum(z, 0) was pooled and f is a
 * function of z, the maxima and marks of z are used: in a window whose cells are all below 0, the gradient
 * goes to the largest z, not to the first cell. */
static mc_node *after_scatter(const struct mc_match *m)
{
    mc_node *root = m->root, *s = find_scatter(root, 1), *pool = s ? pool_behind(s) : NULL,
            *in[3 + POOL_NVECTOR];
    mc_node *cells = pool ? pool->in[0] : NULL;
    if (!s || !fits(root, s)) {
        return NULL;
    }
    for (int level = 0; level < LONGEST; level++) {
        struct inside f = { .scattered = s, .cells = cells, .pooled = pooled_axes(s) };
        bool strictly;
        if (look(&f, root) == SPREAD && read_once(&f, m)) {
            mc_node *p = level ? pool_of(pool, cells) : pool;
            memcpy(in, s->in, (size_t)s->nin * sizeof *in);
            if (p && !mc_is_error(p)) {
                in[2 + POOL_NVECTOR] = mc_item(p, 1);
            }
            in[0] = gather_at_argmax(&f, root, p ? mc_item(p, 0) : NULL);
            return mc_is_error(in[0]) ? in[0] : mc_node_make(m->g, s->op, s->nin, in, s->attr);
        }
        cells = cells && is_read_once(&f, m, cells) ? grows_with(cells, s->type.rank, f.pooled, &strictly)
                                                    : NULL;
        if (!cells) {
            return NULL;
        }
    }
    return NULL;
}

/* Each window's value goes to one cell, so the sum over the cells is the sum over the windows. */
static mc_node *sum_of_spread(const struct mc_match *m)
{
    mc_node *n = m->root, *s = n->in[0];
    int axis[MC_MAX_RANK];
    unsigned over = 0;
    if (mc_pool_pass_of(s) != POOL_SPREAD || mc_pool_key_of(s->attr) != POOL_KEY_MARKS) {
        return NULL;
    }
    int count = (int)mc_axes_of(n, 0, s->type.rank, axis);
    for (int i = 0; i < count; i++) {
        over |= 1u << axis[i];
    }
    return pooled_axes(s) & ~over ? NULL : mc_node_make(m->g, n->op, 1, s->in, n->attr);
}

#define IMAGE   "reshape(x, [1, 1, 4, 5])"
#define WINDOWS "reshape(y[:2, :2], [1, 1, 2, 2])"
#define GRAD(f) "grad(sum(pool(" f ", [2, 2]) * " WINDOWS "), x)"
#define SPREAD  "pool_grad(" IMAGE ", " WINDOWS ", [2, 2])"
#define BEHIND(o) .op = o, .make = after_scatter, .promise = FINITE, .name = "spread in front of " o
static const struct mc_rule rows[] = {
    { .op = "item", .make = pool_first, .promise = FINITE, .name = "pool in front of what grows",
      .sample = "pool(tanh(" IMAGE " + 1) * 3, [2, 2]); pool(maximum(" IMAGE ", 0.5), [2, 3], pad=[1, 2]); "
                "pool(sigmoid(" IMAGE " / 2 + sum(y)), [3, 3], stride=2, ignore_border=False)" },
    { BEHIND("mul"),
      .sample = GRAD("tanh(" IMAGE " * 2)") "; 2 * " SPREAD "; "
                "grad(sum(pool(tanh(" IMAGE "), [2, 2], stride=1) * reshape(y[:3, :4], [1, 1, 3, 4])), x)" },
    { BEHIND("true_div"), .sample = GRAD("arctan(" IMAGE ")") },
    { BEHIND("where"),    .sample = GRAD("maximum(" IMAGE ", 0.5)") "; " GRAD("clip(softplus(" IMAGE "), 0.9, 1)") },
    { BEHIND("add"),      .sample = GRAD("relu(" IMAGE " - 0.5)") },
    { BEHIND("sub"),      .sample = "sqr(" IMAGE ") * " SPREAD " - " SPREAD },
    { BEHIND("neg"),      .sample = "-" SPREAD },
    { .op = "sum", .make = sum_of_spread, .promise = ROUND, .name = "sum of a spread",
      .sample = "sum(" SPREAD ", axis=[2, 3]); sum(" SPREAD ", axis=[1, 2, 3], keepdims=True); "
                "sum(pool_grad(" IMAGE ", reshape(y[:3, :4], [1, 1, 3, 4]), [2, 2], stride=1))" },
};
const struct mc_rule_table mc_rules_pool = { rows, (int)NELEM(rows), .probe = looks, .nprobe = (int)NELEM(looks) };

/* rules_centred.c: the sum of c (x - mean(x)) is 0 if c is constant along the summed axes. The gradient of a
 * normalisation is r g + c (x - mean(x)) minus the mean of this, with r and c constant along a row. That mean
 * is r mean(g), which does not read x again.
 *
 * Invariant: the dropped terms are 0 but for rounding; the rest varies along every summed axis. */
#include "rewrite/rewrite.h"

enum { DEEPEST = 8 }; /* the most factors, or terms, nested in each other */

enum { SUM, DIFFERENCE, PRODUCT, MEAN };
static struct mc_probe looks[] = {
    [SUM] = { "x + y" }, [DIFFERENCE] = { "x - y" }, [PRODUCT] = { "x * y" },
    [MEAN] = { "sum(x, axis=a, keepdims=b, dtype=c, acc_dtype=d) / y" },
};

/* The axes that a sum reduces. */
struct axes { int at[MC_MAX_RANK], n; };

static struct axes axes_of(const mc_node *sum)
{
    struct axes a = { .n = 0 };
    a.n = (int)mc_axes_of(sum, 0, sum->in[0]->type.rank, a.at);
    return a;
}

/* Is n constant along the axes? */
static bool is_row(const mc_node *n, const struct axes *a)
{
    bool row = true;
    for (int i = 0; i < a->n && n->type.rank; i++) {
        row &= n->type.dims[a->at[i]] == 1;
    }
    return row;
}

/* Does n vary along each axis along which `whole` does? */
static bool is_whole(const mc_node *n, const mc_node *whole, const struct axes *a)
{
    bool is = n->type.rank == whole->type.rank;
    for (int i = 0; i < a->n && is; i++) {
        is = (n->type.dims[a->at[i]] == 1) == (whole->type.dims[a->at[i]] == 1);
    }
    return is;
}

/* The operand that n is linear in, where all other operands are constant along the axes; -1: none. */
static int varying(const mc_node *n, const struct axes *a)
{
    for (int k = 0; k < n->op->arity; k++) {
        bool rows = mc_op_linear(n->op, 1u << k);
        for (int i = 0; i < n->nin && rows; i++) {
            rows = i == k || is_row(n->in[i], a);
        }
        if (rows) {
            return k;
        }
    }
    return -1;
}

static mc_node *without_cast(mc_node *n)
{
    return n->op->form == FORM_CAST ? n->in[0] : n;
}

/* Is n provably the number of elements of x along the axes (the product of their sizes)? */
static bool counts(mc_node *n, mc_node *x, const struct axes *a)
{
    mc_node *todo[DEEPEST] = { without_cast(n) };
    bool open[MC_MAX_RANK] = { false };
    double known = 1, said = 1, number;
    int left = 0;
    for (int i = 0; i < a->n; i++) {
        const int64_t size = x->type.dims[a->at[i]];
        open[i] = size < 0;
        known *= size < 0 ? 1 : (double)size;
        left += size < 0;
    }
    for (int k = 1; k > 0;) {
        mc_node *f = todo[--k];
        struct mc_match p;
        int i = 0;
        if (mc_const_number(f, &number)) {
            said *= number;
        } else if (k + 2 <= DEEPEST && mc_matches(&looks[PRODUCT], f, &p)) {
            todo[k++] = mc_letter(&p, 'x');
            todo[k++] = mc_letter(&p, 'y');
        } else {
            while (i < a->n && !(open[i] && mc_size_is(f, x, a->at[i]))) {
                i++;
            }
            if (i == a->n) {
                return false;
            }
            open[i] = false;
            left--;
        }
    }
    return left == 0 && (float)said == (float)known;
}

/* Is n of the form x - mean(x) over these axes? */
static bool is_less_mean(const mc_node *n, const struct axes *a)
{
    struct mc_match less, mean;
    if (!mc_matches(&looks[DIFFERENCE], n, &less) ||
        !mc_matches(&looks[MEAN], without_cast(mc_letter(&less, 'y')), &mean) ||
        without_cast(mc_letter(&mean, 'x')) != mc_letter(&less, 'x')) {
        return false;
    }
    const mc_node *sum = mean.root->in[0];
    const struct axes own = axes_of(sum);
    bool same = own.n == a->n && is_row(sum, a);
    for (int i = 0; i < a->n && same; i++) {
        same = own.at[i] == a->at[i];
    }
    return same && counts(mc_letter(&mean, 'y'), mc_letter(&less, 'x'), a);
}

static bool is_centred(const mc_node *n, const struct axes *a)
{
    for (int deep = 0; deep < DEEPEST; deep++) {
        const int k = varying(n, a);
        if (k < 0) {
            return is_less_mean(n, a);
        }
        n = n->in[k];
    }
    return false;
}

/* n without its centred terms; n itself if it has none or consists of nothing else. */
static mc_node *without_centred(mc_node *n, const struct axes *a, int deep)
{
    const bool minus = mc_matches(&looks[DIFFERENCE], n, NULL);
    if (deep == DEEPEST || !(minus || mc_matches(&looks[SUM], n, NULL))) {
        return n;
    }
    if (is_centred(n->in[1], a)) {
        return n->in[0];
    }
    if (is_centred(n->in[0], a)) {
        return minus ? mc_op1("neg", n->in[1]) : n->in[1];
    }
    mc_node *x = without_centred(n->in[0], a, deep + 1),
            *y = x == n->in[0] ? without_centred(n->in[1], a, deep + 1) : n->in[1];
    return x == n->in[0] && y == n->in[1] ? n : mc_apply(n->graph, n->op, 2, (mc_node *[]){ x, y }, NULL);
}

/* The sum of n over the axes of the sum `like`. Factors that are constant along the axes are moved
 * outside. */
static mc_node *summed(mc_node *n, const mc_node *like, const struct axes *a, int deep)
{
    const int k = deep < DEEPEST ? varying(n, a) : -1;
    if (k < 0 || !is_whole(n->in[k], like->in[0], a)) {
        return mc_node_make(like->graph, like->op, 1, &n, like->attr);
    }
    mc_node *in[3];
    for (int i = 0; i < n->nin; i++) {
        in[i] = i == k ? summed(n->in[k], like, a, deep + 1) : n->in[i];
    }
    return mc_apply(n->graph, n->op, n->nin, in, NULL);
}

static mc_node *sum_of_centred(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0];
    const struct axes a = axes_of(n);
    if (!mc_is_float(x->type.dtype) || n->type.dtype != x->type.dtype || a.n < 1 || is_row(x, &a)) {
        return NULL;
    }
    mc_node *rest = without_centred(x, &a, 0);
    if (rest == x || mc_is_error(rest) || !is_whole(rest, x, &a)) {
        return NULL;
    }
    return n->type.rank == x->type.rank ? summed(rest, n, &a, 0)
                                        : mc_node_make(m->g, n->op, 1, &rest, n->attr);
}

static const struct mc_rule rows[] = {
    { .op = "sum", .make = sum_of_centred, .promise = FINITE, .name = "sum of centred",
      .sample = "sum(x * y + (x - mean(x, axis=0, keepdims=True)) * sum(y, axis=0, keepdims=True), axis=0, keepdims=True); "
                "sum(y - (y - mean(y, axis=1, keepdims=True)) / (1 + sum(sqr(x), axis=1, keepdims=True)) + x, axis=1); "
                "sum(2.0f64 * (x - mean(x, keepdims=True)) - y)" },
};
const struct mc_rule_table mc_rules_centred = { rows, (int)NELEM(rows), .probe = looks, .nprobe = (int)NELEM(looks) };

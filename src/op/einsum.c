/* einsum.c: sums of products by subscripts. Diagonals are gathered, an axis of one operand alone is summed,
 * and pairs of operands are multiplied in the order of least cost, each by a product of matrices.
 *
 * Invariant: a term's labels name its axes, in order, and differ. A label is a letter, or one of the axes
 * that an ellipsis stands for. */
#include "op/op.h"

enum { LETTERS = 52, LABELS = LETTERS + MC_MAX_RANK, OPERANDS = 12 };

struct term {
    mc_node *x;
    int n;
    unsigned char label[2 * MC_MAX_RANK];
};

struct sum {
    mc_graph *g;
    int n, free;                   /* operands; axes of the ellipsis of the result */
    struct term term[OPERANDS], out;
    double size[LABELS];           /* by label, for the cost; a size that is not known counts as UNKNOWN */
    uint64_t has[1 << OPERANDS];   /* by set of operands: the labels of their product */
};
static const double UNKNOWN = 64;

static uint64_t bit(int label)
{
    return UINT64_C(1) << label;
}

static uint64_t labels_of(const struct term *t)
{
    uint64_t all = 0;
    for (int i = 0; i < t->n; i++) {
        all |= bit(t->label[i]);
    }
    return all;
}

static int count(uint64_t set)
{
    int n = 0;
    for (; set; set &= set - 1) {
        n++;
    }
    return n;
}

static int place(const struct term *t, int label)
{
    int i = 0;
    while (i < t->n && t->label[i] != label) {
        i++;
    }
    return i;
}

/* ---- subscripts ---- */

static int letter(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}

/* Reads up to a comma, an arrow or the end. An ellipsis stands for `free` axes, the last of all. */
static bool read_term(struct sum *s, const char **text, int free, struct term *t, bool *dots)
{
    const char *at = *text;
    *dots = false;
    t->n = 0;
    for (; *at && *at != ',' && strncmp(at, "->", 2) != 0; at++) {
        const bool ellipsis = strncmp(at, "...", 3) == 0;
        if (*at == ' ') {
            continue;
        }
        if ((!ellipsis && letter(*at) < 0) || (ellipsis && *dots) ||
            t->n + (ellipsis ? free : 1) > (int)NELEM(t->label)) {
            mc_node_fail(s->g, MC_EARG,
                         ellipsis && *dots              ? "einsum: two ellipses in one term"
                         : letter(*at) < 0 && !ellipsis ? "einsum: '%c' is no subscript"
                                                        : "einsum: too many subscripts",
                         *at);
            return false;
        }
        for (int i = 0; ellipsis && i < free; i++) {
            t->label[t->n++] = (unsigned char)(LABELS - free + i);
        }
        if (ellipsis) {
            *dots = true;
            at += 2;
        } else {
            t->label[t->n++] = (unsigned char)letter(*at);
        }
    }
    *text = at;
    return true;
}

static bool read_operands(struct sum *s, const char **text, int nin, mc_node *const *in)
{
    for (s->n = 0;; (*text)++) {
        struct term *t = &s->term[s->n];
        const char *again = *text;
        bool dots;
        if (s->n == nin) {
            mc_node_fail(s->g, MC_EARG, "einsum: more terms than operands, which are %d", nin);
            return false;
        }
        if (!read_term(s, &again, 0, t, &dots)) {
            return false;
        }
        const int rank = in[s->n]->type.rank, free = dots ? rank - t->n : 0;
        if (free < 0 || (!dots && rank != t->n)) {
            mc_node_fail(s->g, MC_ESHAPE, "einsum: operand %d has %d axes, its subscripts name %d", s->n + 1,
                         rank, t->n);
            return false;
        }
        if (!read_term(s, text, free, t, &dots)) {
            return false;
        }
        s->free = MC_MAX(s->free, free);
        t->x = in[s->n++];
        if (**text != ',') {
            break;
        }
    }
    if (s->n < nin) {
        mc_node_fail(s->g, MC_EARG, "einsum: %d terms for %d operands", s->n, nin);
    }
    return s->n == nin;
}

/* The result's labels: those behind the arrow, or the ellipsis and all letters that occur once. */
static bool read_result(struct sum *s, const char *text)
{
    int times[LABELS] = { 0 };
    bool dots;
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < s->term[i].n; k++) {
            times[s->term[i].label[k]]++;
        }
    }
    if (*text) {
        text += 2;
        if (!read_term(s, &text, s->free, &s->out, &dots)) {
            return false;
        }
        for (int i = 0; i < s->out.n; i++) {
            const int l = s->out.label[i];
            if (!times[l] || place(&s->out, l) < i) {
                mc_node_fail(s->g, MC_EARG,
                             times[l] ? "einsum: '%c' occurs twice in the result"
                                      : "einsum: '%c' of the result is in no operand",
                             l < 26 ? 'A' + l : 'a' + l - 26);
                return false;
            }
        }
        if (*text) {
            mc_node_fail(s->g, MC_EARG, "einsum: '%s' behind the result", text);
        }
        return !*text;
    }
    for (int i = 0; i < s->free; i++) {
        s->out.label[s->out.n++] = (unsigned char)(LABELS - s->free + i);
    }
    for (int l = 0; l < LETTERS && s->out.n < (int)NELEM(s->out.label); l++) {
        if (times[l] == 1) {
            s->out.label[s->out.n++] = (unsigned char)l;
        }
    }
    return true;
}

/* ---- one operand ---- */

static mc_node *shuffled(mc_node *x, int n, const int64_t *order)
{
    struct mc_attr a = { .kind = ATTR_INTS, .n = n, .ints = (int64_t *)(uintptr_t)order };
    bool same = n == x->type.rank;
    for (int i = 0; i < n; i++) {
        same &= order[i] == i;
    }
    return same ? x : mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a);
}

/* x with axes i and k, i < k, that have one label, as its diagonal: an axis in front, or the last axis
 * where i and k are the last ones, for that is a view. */
static void diagonal(struct term *t, int i, int k)
{
    int64_t order[MC_MAX_RANK];
    int n = 2;
    order[0] = i;
    order[1] = k;
    for (int a = 0; a < t->n; a++) {
        if (a != i && a != k) {
            order[n++] = a;
        }
    }
    const unsigned char l = t->label[i];
    memmove(t->label + k, t->label + k + 1, (size_t)(t->n - k - 1));
    if (i == t->n - 2) {
        t->n--;
        t->x = mc_expr(t->x->graph,
                       "n = agreed_size(size(x, -2), size(x, -1), op='einsum'); "
                       "diagonal(x, axis1=-2, axis2=-1)[..., :n]",
                       (struct mc_bind[]){ { "x", t->x, NULL } }, 1);
        return;
    }
    memmove(t->label + 1, t->label, (size_t)i);
    t->label[0] = l;
    t->n--;
    mc_node *x = shuffled(t->x, n, order);
    t->x = mc_is_error(x)
               ? x
               : mc_expr(x->graph,
                         "n = agreed_size(size(x, 0), size(x, 1), op='einsum'); i = arange(n); x[i, i]",
                         (struct mc_bind[]){ { "x", x, NULL } }, 1);
}

/* Drops axes known to have size 1 whose label has another size elsewhere: they broadcast. */
static void drop_ones(struct sum *s, struct term *t)
{
    int64_t order[MC_MAX_RANK];
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        bool wide = false;
        for (int k = 0; k < s->n; k++) {
            const int at = place(&s->term[k], t->label[i]);
            wide |= at < s->term[k].n && s->term[k].x->type.dims[at] != 1;
        }
        if (t->x->type.dims[i] != 1 || !wide) {
            t->label[n] = t->label[i];
            order[n++] = i;
        }
    }
    t->x = shuffled(t->x, n, order);
    t->n = n;
}

/* Sums the axes whose labels are not in `keep`, in the dtype of x. */
static void sum_others(struct term *t, uint64_t keep)
{
    int64_t axis[MC_MAX_RANK];
    int n = 0, left = 0;
    for (int i = 0; i < t->n; i++) {
        if (bit(t->label[i]) & keep) {
            t->label[left++] = t->label[i];
        } else {
            axis[n++] = i;
        }
    }
    t->n = left;
    if (n) {
        struct mc_attr a = { .kind = ATTR_AXES, .n = n, .ints = axis };
        mc_node *y = mc_expr(t->x->graph, "sum(x, axis=axis)",
                             (struct mc_bind[]){ { "x", t->x, NULL }, { "axis", NULL, &a } }, 2);
        t->x = mc_is_error(y) ? y : mc_cast_to(y, t->x->type.dtype);
    }
}

static bool prepare(struct sum *s)
{
    for (int i = 0; i < s->n; i++) {
        struct term *t = &s->term[i];
        for (int k = 1; k < t->n && !mc_is_error(t->x);) {
            const int first = place(t, t->label[k]);
            if (first < k) {
                diagonal(t, first, k);
                k = 1;
            } else {
                k++;
            }
        }
        if (mc_is_error(t->x)) {
            return false;
        }
    }
    for (int i = 0; i < s->n; i++) {
        drop_ones(s, &s->term[i]);
    }
    for (int i = 0; i < s->n; i++) {
        uint64_t keep = labels_of(&s->out);
        for (int k = 0; k < s->n; k++) {
            keep |= k == i ? 0 : labels_of(&s->term[k]);
        }
        if (!mc_is_error(s->term[i].x)) {
            sum_others(&s->term[i], keep);
        }
        if (mc_is_error(s->term[i].x)) {
            return false;
        }
        for (int k = 0; k < s->term[i].n; k++) {
            const int64_t d = s->term[i].x->type.dims[k];
            double *size = &s->size[s->term[i].label[k]];
            *size = d >= 0 ? (double)MC_MAX(d, 1) : *size > 0 ? *size : UNKNOWN;
        }
    }
    return true;
}

/* ---- two operands ---- */

static double cost_of(const struct sum *s, uint64_t labels)
{
    double c = 1;
    for (int l = 0; l < LABELS; l++) {
        c *= labels & bit(l) ? s->size[l] : 1;
    }
    return c;
}

/* x with the axes of three groups of labels, in order; each group after the first as one axis.  If x must be
 * copied for it, what is innermost stays so, and the last two axes of the copy are exchanged. */
static mc_node *grouped(const struct term *t, uint64_t batch, const unsigned char *order, int n,
                        uint64_t second, uint64_t third)
{
    mc_graph *g = t->x->graph;
    const bool turn = t->n && bit(t->label[t->n - 1]) & second;
    const uint64_t group[3] = { batch, turn ? third : second, turn ? second : third };
    int64_t axes[2 * MC_MAX_RANK];
    mc_node *size[MC_MAX_RANK + 2];
    int rank = 0, nsize = 0;
    bool merges = false;
    for (int k = 0; k < 3; k++) {
        const int first = rank;
        mc_node *all = NULL;
        for (int i = 0; i < n; i++) {
            const int at = place(t, order[i]);
            if (bit(order[i]) & group[k] && at < t->n) {
                mc_node *one = mc_size_of(t->x, at);
                all = k == 0 || !all ? one : mc_call_op(g, "mul", 2, (mc_node *[]){ all, one }, NULL);
                axes[rank++] = at;
                if (k == 0) {
                    size[nsize++] = one;
                }
            }
        }
        if (k && rank == first) {
            axes[rank++] = -1;
            all = mc_node_int(g, 1);
        }
        if (k) {
            size[nsize++] = all;
            merges |= rank > first + 1;
        }
    }
    if (rank > MC_MAX_RANK) { /* an axis of size 1 more than a tensor has */
        return mc_node_fail(g, MC_ESHAPE, "einsum: a product would have more than %d axes", MC_MAX_RANK);
    }
    mc_node *x = shuffled(t->x, rank, axes);
    x = merges && !mc_is_error(x)
            ? mc_call_op(g, "reshape", 2, (mc_node *[]){ x, mc_shape_stack(g, nsize, size) }, "ndim=%d",
                         nsize)
            : x;
    return turn && !mc_is_error(x)
               ? mc_expr(g, "swapaxes(x, -1, -2)", (struct mc_bind[]){ { "x", x, NULL } }, 1)
               : x;
}

/* x with an axis for each of n labels, of size 1 where it has none: for products element by element. */
static mc_node *spread(const struct term *t, const unsigned char *order, int n)
{
    int64_t axes[2 * MC_MAX_RANK];
    for (int i = 0; i < n; i++) {
        const int at = place(t, order[i]);
        axes[i] = at < t->n ? at : -1;
    }
    return shuffled(t->x, n, axes);
}

/* Of the last product: is the last axis of the result one of a alone?  Then b comes first. */
static bool ends_in(const struct sum *s, const struct term *a, const struct term *b)
{
    for (int i = s->out.n - 1; i >= 0; i--) {
        const bool in_a = place(a, s->out.label[i]) < a->n, in_b = place(b, s->out.label[i]) < b->n;
        if (in_a || in_b) {
            return !in_b;
        }
    }
    return false;
}

/* The product of two terms, summed over labels not in `keep`; the larger one first, unless it is the last. */
static struct term multiply(struct sum *s, const struct term *first, const struct term *second, uint64_t keep)
{
    const uint64_t l1 = labels_of(first), l2 = labels_of(second);
    const bool turn = keep == labels_of(&s->out) ? ends_in(s, first, second)
                                                 : cost_of(s, l1 & ~l2) < cost_of(s, l2 & ~l1);
    const struct term *a = turn ? second : first, *b = turn ? first : second;
    const uint64_t la = labels_of(a), lb = labels_of(b), batch = la & lb & keep, summed = la & lb & ~keep;
    struct term y = { .n = 0 };
    unsigned char all[4 * MC_MAX_RANK];
    int n = 0;
    const struct term *const both[2] = { a, b };
    for (int group = 0; group < 4; group++) { /* labels of both, of a alone, of b alone, and summed ones */
        const uint64_t of = group == 0 ? batch : group == 1 ? la & ~lb : group == 2 ? lb & ~la : summed;
        for (int k = group == 2; k < (group == 2 ? 2 : 1); k++) {
            for (int i = 0; i < both[k]->n; i++) {
                if (bit(both[k]->label[i]) & of) {
                    all[n++] = both[k]->label[i];
                }
            }
        }
    }
    y.n = n - count(summed);
    if (y.n > MC_MAX_RANK || n > 2 * MC_MAX_RANK) {
        y.x = mc_node_fail(s->g, MC_ESHAPE, "einsum: a product has more than %d axes", MC_MAX_RANK);
        return y;
    }
    memcpy(y.label, all, (size_t)y.n);
    if (!summed || (n <= MC_MAX_RANK && !(la & ~lb) && !(lb & ~la))) {
        mc_node *x[2] = { spread(a, all, n), spread(b, all, n) };
        struct term t = { .x = mc_call_op(s->g, "mul", 2, x, NULL), .n = n };
        memcpy(t.label, all, (size_t)n);
        if (!mc_is_error(t.x)) {
            sum_others(&t, keep);
        }
        return t;
    }
    mc_node *x[2] = { grouped(a, batch, all, n, la & ~lb, summed),
                      grouped(b, batch, all, n, summed, lb & ~la) };
    mc_node *m = mc_is_error(x[0]) || mc_is_error(x[1]) ? s->g->error
                                                        : mc_call_op(s->g, "matmul", 2, x, NULL);
    mc_node *size[MC_MAX_RANK];
    for (int i = 0; i < y.n && !mc_is_error(m); i++) {
        const int at = place(a, y.label[i]);
        const bool one = at < a->n && a->x->type.dims[at] == 1;
        size[i] = at < a->n && !(one && place(b, y.label[i]) < b->n) ? mc_size_of(a->x, at)
                                                                     : mc_size_of(b->x, place(b, y.label[i]));
    }
    y.x = mc_is_error(m) ? m
          : m->type.rank == y.n && count(la & ~lb) == 1 && count(lb & ~la) == 1
              ? m
              : mc_call_op(s->g, "reshape", 2, (mc_node *[]){ m, mc_shape_stack(s->g, y.n, size) }, "ndim=%d",
                           y.n);
    return y;
}

/* ---- the order ---- */

/* Labels of the product of a set of operands: those that the result or another operand has. */
static uint64_t left_of(const struct sum *s, unsigned set)
{
    uint64_t in = 0, out = labels_of(&s->out);
    for (int i = 0; i < s->n; i++) {
        *(set >> i & 1 ? &in : &out) |= labels_of(&s->term[i]);
    }
    return in & out;
}

/* The elements of a set that is one operand whose summed labels are neither its first nor its last ones, but
 * for those of a batch: it is copied.  Else 0. */
static double copied(const struct sum *s, unsigned set, uint64_t summed, uint64_t batch)
{
    int i = 0, n = 0, own = 0, from = -1, to = -1;
    while (!(set >> i & 1)) {
        i++;
    }
    for (int k = 0; set >> i == 1 && k < s->term[i].n; k++) {
        const uint64_t l = bit(s->term[i].label[k]);
        if (l & summed) {
            from = n++ ? from : own;
            to = own;
        }
        own += !(l & batch);
    }
    const bool view = n == 0 || (to - from + 1 == n && (from == 0 || to == own - 1));
    return view ? 0 : cost_of(s, labels_of(&s->term[i]));
}

/* The best way to split each set of operands in two, by the number of products of numbers and of copies; sets
 * ascend, so that the parts of a set were seen before it. */
static bool plan(struct sum *s, unsigned *split)
{
    const unsigned sets = 1u << s->n;
    double *cost = mc_calloc(sets, sizeof *cost, "einsum");
    for (unsigned set = 1; cost && set < sets; set++) {
        s->has[set] = left_of(s, set);
        split[set] = 0;
        for (unsigned part = (set - 1) & set; part; part = (part - 1) & set) {
            const unsigned rest = set & ~part;
            if (part < rest) {
                continue;
            }
            const uint64_t both = s->has[part] & s->has[rest], batch = both & s->has[set],
                           summed = both & ~batch;
            const double c = cost[part] + cost[rest] + cost_of(s, s->has[part] | s->has[rest]) +
                             copied(s, part, summed, batch) + copied(s, rest, summed, batch);
            if (!split[set] || c < cost[set]) {
                split[set] = part;
                cost[set] = c;
            }
        }
    }
    mc_free(cost);
    return cost != NULL;
}

/* Multiplies the operands of a set, parts first: a stack of sets instead of recursion. */
static struct term contract(struct sum *s, const unsigned *split)
{
    struct {
        unsigned set;
        int seen;
    } todo[2 * OPERANDS];
    struct term done[OPERANDS];
    int n = 0, ndone = 0;
    todo[n].set = (1u << s->n) - 1;
    todo[n++].seen = 0;
    while (n) {
        const unsigned set = todo[n - 1].set, part = split[set];
        if (!part) {
            int i = 0;
            while (!(set >> i & 1)) {
                i++;
            }
            done[ndone++] = s->term[i];
            n--;
        } else if (todo[n - 1].seen == 2) {
            struct term *a = &done[ndone - 2], *b = &done[ndone - 1];
            *a = mc_is_error(a->x) ? *a : mc_is_error(b->x) ? *b : multiply(s, a, b, s->has[set]);
            ndone--;
            n--;
        } else {
            const unsigned next = todo[n - 1].seen++ ? set & ~part : part;
            todo[n].set = next;
            todo[n++].seen = 0;
        }
    }
    return done[0];
}

static mc_node *build_einsum(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *x[OPERANDS], *y = g->error;
    int64_t order[2 * MC_MAX_RANK];
    if (nin < 1 || nin > OPERANDS) {
        return mc_node_fail(g, MC_EARG, "einsum: of 1 to %d operands, not %d", OPERANDS, nin);
    }
    const mc_dtype d = mc_meet(nin, in, 0);
    for (int i = 0; i < nin; i++) {
        x[i] = mc_cast_to(in[i], d);
        if (mc_is_error(x[i])) {
            return x[i];
        }
    }
    struct sum *s = mc_calloc(1, sizeof *s, "einsum");
    unsigned *split = mc_calloc(1u << OPERANDS, sizeof *split, "einsum");
    const char *text = attr[0].text ? attr[0].text : "";
    if (!s || !split) {
        y = mc_node_no_memory(g);
        goto done;
    }
    s->g = g;
    if (!read_operands(s, &text, nin, x) || !read_result(s, text) || !prepare(s)) {
        goto done;
    }
    if (!plan(s, split)) {
        y = mc_node_no_memory(g);
        goto done;
    }
    struct term t = contract(s, split);
    if (!mc_is_error(t.x)) {
        sum_others(&t, labels_of(&s->out));
    }
    for (int i = 0; i < s->out.n; i++) {
        order[i] = place(&t, s->out.label[i]);
    }
    y = mc_is_error(t.x) ? t.x
        : s->out.n > MC_MAX_RANK
            ? mc_node_fail(g, MC_ESHAPE, "einsum: the result has more than %d axes", MC_MAX_RANK)
            : shuffled(t.x, s->out.n, order);
done:
    mc_free(s);
    mc_free(split);
    return y;
}

const struct mc_op mc_ops_einsum[] = {
    BUILT({ .name = "einsum", .params = "*xs, subscripts:text", .nout = 1, .build = build_einsum,
      .example = MANUAL("a = [[1., 2], [3, 4]]; b = [[1., 0, 2], [0, 1, 3]]; einsum('ij,jk->ik', a, b)"),
      .doc = MANUAL("sums of products: a term of letters names the axes of each operand, axes of one letter are multiplied, and letters that are not "
             "behind -> are summed; ... stands for further axes, which broadcast; the order of products is the cheapest") })
};
const int mc_nops_einsum = (int)NELEM(mc_ops_einsum);

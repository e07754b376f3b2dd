/* pool_shape.c: the sizes of pooling. With i the size of an axis, w the window, s the stride, p the pad, b
 * the start:
 *
 *     ignore_border        o = max(0, (i + 2 p - w) // s + 1)
 *     ignore_border=False  o = (i - 1) // s + 1 where s >= w, else max(0, (i - 1 - w + s) // s) + 1
 *     start=b              o = ceil((i - b - w) / s) + 1, less the windows that would begin beyond the end
 *
 * Invariant: a geometry that passed the checks has no empty window. */
#include "op/pool_node.h"

enum { LARGEST = INT32_MAX }; /* the largest window, stride, pad or start */

enum border { IGNORE, KEEP, START };
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t ignore_size(int64_t i, int64_t w, int64_t s, int64_t p, int64_t b)
{
    (void)b;
    return MC_MAX(0, floor_div(i + 2 * p - w, s) + 1);
}

static int64_t keep_size(int64_t i, int64_t w, int64_t s, int64_t p, int64_t b)
{
    (void)p;
    (void)b;
    return s >= w ? floor_div(i - 1, s) + 1 : MC_MAX(0, floor_div(i - 1 - w + s, s)) + 1;
}

static int64_t start_size(int64_t i, int64_t w, int64_t s, int64_t p, int64_t b)
{
    (void)p;
    return MC_MAX(0, MC_MIN(-floor_div(w + b - i, s), floor_div(i - b - 1, s)) + 1);
}

static const struct {
    const char *says; /* the formula, for messages */
    int64_t (*size)(int64_t i, int64_t w, int64_t s, int64_t p, int64_t b);
    const char *formula;
} borders[] = {
    [IGNORE] = { "(size + 2 * pad - window) // stride + 1", ignore_size, "maximum((i + 2 * p - w) // s + 1, 0)" },
    [KEEP]   = { "(size - 1 - window + stride) // stride + 1, or (size - 1) // stride + 1 where stride >= window", keep_size,
                 "where(s >= w, (i - 1) // s + 1, maximum((i - 1 - w + s) // s, 0) + 1)" },
    [START]  = { "ceil((size - start - window) / stride) + 1", start_size,
                 "maximum(minimum(-((w + b - i) // s), (i - b - 1) // s) + 1, 0)" },
};

/* ---- words ---- */

static const char *const modes[] = {
    [POOL_MAX] = "max", [POOL_SUM] = "sum", [POOL_AVERAGE_INC] = "average_inc_pad", [POOL_AVERAGE_EXC] = "average_exc_pad",
};

static mc_status word_of(const char *op, const char *what, const char *word, const char *const *list,
                         size_t n, int *out)
{
    for (size_t i = 0; i < n; i++) {
        if (word && strcmp(word, list[i]) == 0) {
            *out = (int)i;
            return MC_OK;
        }
    }
    const char *near = mc_near_miss(word ? word : "", list, n);
    return mc_fail(MC_EARG, "%s: unknown %s '%s'%s%s%s", op, what, word ? word : "",
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static mc_status read_words(const struct mc_infer *q, struct mc_pool_shape *s)
{
    static const char *const ties[] = { "first", "all", "bits" };
    static const enum mc_pool_key keys[] = { POOL_KEY_MARKS, POOL_KEY_X, POOL_KEY_BITS };
    int mode = 0, tie = 0;
    TRY(word_of(q->op->name, "mode", q->attr[POOL_MODE].text, modes, NELEM(modes), &mode));
    TRY(word_of(q->op->name, "value of ties", q->attr[POOL_TIES].text, ties, NELEM(ties), &tie));
    s->mode = (enum mc_pool_mode)mode;
    s->key = s->mode != POOL_MAX ? POOL_KEY_NONE : keys[tie];
    return MC_OK;
}

/* ---- one axis ---- */

static enum border border_of(const struct mc_attr *attr)
{
    return !attr[POOL_START].none ? START : mc_attr_int(&attr[POOL_IGNORE_BORDER]) ? IGNORE : KEEP;
}

static int64_t start_of(const struct mc_attr *attr, int k)
{
    const struct mc_attr *a = &attr[POOL_START];
    return a->none || a->n == 0 ? 0 : a->ints[a->n == 1 ? 0 : k];
}

static mc_status in_range(const char *op, const char *what, int64_t v, int64_t least, int axis)
{
    return v < least || v > LARGEST
               ? mc_fail(MC_ESHAPE, "%s: %s %lld of axis %d is %s", op, what, (long long)v, axis,
                         v < least ? least ? "less than 1" : "negative" : "too large")
               : MC_OK;
}

/* Computes the size of y from the numbers of a slot, each -1 if unknown. */
static mc_status solve_slot(const struct mc_infer *q, enum border border, int k, int slot,
                            struct mc_pool_shape *s)
{
    const char *op = q->op->name;
    const int axis = s->axis[slot];
    const int64_t i = s->in[slot], w = s->w[slot], st = s->stride[slot], p = s->pad[slot],
                  b = start_of(q->attr, k);
    TRY(in_range(op, "start", b, 0, axis));
    if (p > 0 && border != IGNORE) {
        return mc_fail(MC_ESHAPE, "%s: pad %lld of axis %d needs ignore_border=True and no start", op,
                       (long long)p, axis);
    }
    if (w > 0 && p >= w) {
        return mc_fail(MC_ESHAPE,
                       "%s: pad %lld of axis %d is not less than the window %lld: a window would be empty",
                       op, (long long)p, axis, (long long)w);
    }
    if (b > 0 && i >= 0 && b >= i) {
        return mc_fail(MC_ESHAPE, "%s: start %lld of axis %d is not less than its size %lld", op,
                       (long long)b, axis, (long long)i);
    }
    s->out[slot] = -1;
    if (i >= 0 && w > 0 && st > 0 && p >= 0) {
        s->out[slot] = borders[border].size(i, w, st, p, b);
        s->pad[slot] = border == START ? -b : p;
    }
    if (i == 0 && s->out[slot] > 0) {
        return mc_fail(
            MC_ESHAPE,
            "%s: axis %d has size 0, but %s = %lld windows, with window %lld, stride %lld, pad %lld", op,
            axis, borders[border].says, (long long)s->out[slot], (long long)w, (long long)st, (long long)p);
    }
    return MC_OK;
}

/* The limits of cuda-convnet's kernels, for strict=True. */
static mc_status strict(const struct mc_infer *q, const struct mc_pool_shape *s)
{
    const int64_t *i = s->in, *w = s->w, *st = s->stride;
    bool same = i[1] == i[2] && w[1] == w[2] && st[1] == st[2];
    if (s->nd != 2 ||
        (i[1] >= 0 && i[2] >= 0 && w[1] > 0 && st[1] > 0 && (!same || st[2] > w[2] || w[2] > i[2]))) {
        return mc_fail(
            MC_ESHAPE,
            "%s: strict: images and windows must be square, 0 < stride <= window <= size; here sizes "
            "(%lld, %lld), windows (%lld, %lld), strides (%lld, %lld)",
            q->op->name, (long long)i[1], (long long)i[2], (long long)w[1], (long long)w[2], (long long)st[1],
            (long long)st[2]);
    }
    if (s->pass == POOL_SPREAD && s->dims[0] >= 0 && s->dims[0] % 16 != 0) {
        return mc_fail(MC_ESHAPE, "%s: strict: %lld channels are not a multiple of 16", q->op->name,
                       (long long)s->dims[0]);
    }
    return MC_OK;
}

static mc_status marks(const struct mc_infer *q, struct mc_pool_shape *s)
{
    int64_t cells = 1;
    bool known = true;
    for (int i = 0; i < 3; i++) {
        known = known && s->w[i] > 0 && mc_mul_i64(cells, s->w[i], &cells);
    }
    s->mark = known && cells <= 256 ? MC_UINT8 : MC_INT32;
    if (q->op->sig->nattr > POOL_MARKS) { /* fixed when the node was made */
        s->mark = (mc_dtype)mc_attr_int(&q->attr[POOL_MARKS]);
    }
    return known && cells > (s->mark == MC_UINT8 ? 256 : LARGEST)
               ? mc_fail(MC_ESHAPE, "%s: windows of %lld cells are too large", q->op->name, (long long)cells)
               : MC_OK;
}

static const struct { const char *name; int64_t least; } vectors[POOL_NVECTOR] = {
    [POOL_WS] = { "window", 1 }, [POOL_STRIDE] = { "stride", 1 }, [POOL_PAD] = { "pad", 0 },
};

mc_status mc_pool_solve(const struct mc_infer *q, int first, const struct mc_type *x, struct mc_pool_shape *s)
{
    const struct mc_attr *axis = &q->attr[POOL_AXIS];
    const enum border border = border_of(q->attr);
    *s = (struct mc_pool_shape){ .pass = s->pass,
                                 .rank = x->rank,
                                 .nd = axis->n,
                                 .axis = { -1, -1, -1 },
                                 .in = { 1, 1, 1 },
                                 .out = { 1, 1, 1 },
                                 .w = { 1, 1, 1 },
                                 .stride = { 1, 1, 1 },
                                 .whole = border == IGNORE };
    memcpy(s->dims, x->dims, sizeof s->dims);
    if (axis->n < 1 || axis->n > 3) {
        return mc_fail(MC_ESHAPE, "%s: 1 to 3 axes can be pooled, not %d", q->op->name, axis->n);
    }
    if (!q->attr[POOL_START].none && q->attr[POOL_START].n != 1 && q->attr[POOL_START].n != axis->n) {
        return mc_fail(MC_ESHAPE, "%s: start has %d numbers for %d axes", q->op->name, q->attr[POOL_START].n,
                       axis->n);
    }
    TRY(read_words(q, s));
    for (int k = 0; k < axis->n; k++) {
        const int slot = 3 - axis->n + k;
        int64_t *const number[POOL_NVECTOR] = { &s->w[slot], &s->stride[slot], &s->pad[slot] };
        if (axis->ints[k] < 0 || axis->ints[k] >= x->rank || (k && axis->ints[k] <= axis->ints[k - 1])) {
            return mc_fail(MC_ESHAPE, "%s: axes must be ascending and less than the rank, %d", q->op->name,
                           x->rank);
        }
        s->axis[slot] = (int)axis->ints[k];
        s->in[slot] = x->dims[s->axis[slot]];
        for (int v = 0; v < POOL_NVECTOR; v++) {
            const struct mc_type *t = &q->in[first + v];
            if (t->rank != 1 || !mc_is_int(t->dtype) || (t->dims[0] >= 0 && t->dims[0] != axis->n)) {
                return mc_fail(MC_ESHAPE, "%s: window, stride and pad must be vectors of %d integers",
                               q->op->name, axis->n);
            }
            *number[v] = -1;
            if (mc_shape_entry(q, first + v, k, number[v])) {
                TRY(in_range(q->op->name, vectors[v].name, *number[v], vectors[v].least, s->axis[slot]));
            }
        }
        TRY(solve_slot(q, border, k, slot, s));
    }
    TRY(marks(q, s));
    return mc_attr_int(&q->attr[POOL_STRICT]) ? strict(q, s) : MC_OK;
}

void mc_pool_dims(const struct mc_pool_shape *s, int64_t *dims)
{
    memcpy(dims, s->dims, sizeof s->dims);
    for (int i = 0; i < 3; i++) {
        if (s->axis[i] >= 0) {
            dims[s->axis[i]] = s->out[i];
        }
    }
}

/* ---- of a node ---- */

static const struct {
    const char *op;
    enum mc_pool_pass pass;
    int role[POOL_NARRAY], vectors; /* vectors: the index of input ws */
} nodes[] = {
    { "pool",        POOL_FORWARD, { 0, POOL_RESULT, -1 },              1 },
    { "pool_max",    POOL_FORWARD, { 0, POOL_RESULT, POOL_RESULT + 1 }, 1 },
    { "pool_spread", POOL_SPREAD,  { POOL_RESULT, 0, 5 },               2 },
    { "pool_gather", POOL_GATHER,  { 0, POOL_RESULT, 1 },               2 },
    { "pool_draw",   POOL_FORWARD, { 0, POOL_RESULT, -1 },              2 },
};

static size_t row_of(const mc_node *n)
{
    size_t i = 0;
    while (i < NELEM(nodes) && strcmp(n->op->name, nodes[i].op) != 0) {
        i++;
    }
    return i;
}

bool mc_pool_roles(const mc_node *n, int role[POOL_NARRAY])
{
    size_t row = row_of(n);
    if (row == NELEM(nodes) || mc_is_op(n, "pool_draw")) {
        return false;
    }
    memcpy(role, nodes[row].role, sizeof nodes[row].role);
    role[POOL_KEY] = nodes[row].pass == POOL_SPREAD && n->nin <= role[POOL_KEY] ? -1 : role[POOL_KEY];
    return true;
}

int mc_pool_pass_of(const mc_node *n)
{
    int role[POOL_NARRAY];
    return mc_pool_roles(n, role) ? (int)nodes[row_of(n)].pass : -1;
}

bool mc_pool_marks(const mc_node *n)
{
    int role[POOL_NARRAY];
    return mc_pool_roles(n, role) && role[POOL_KEY] >= POOL_RESULT;
}

mc_status mc_pool_shape_of(const mc_node *n, const struct mc_type *in, const mc_array *const *value,
                           struct mc_pool_shape *s)
{
    const mc_array *known[8] = { 0 };
    size_t row = row_of(n);
    if (row == NELEM(nodes) || n->nin > (int)NELEM(known)) {
        return mc_fail(MC_EARG, "%s is not a pooling op", n->op->name);
    }
    for (int i = 0; i < n->nin; i++) {
        known[i] = value && value[i] ? value[i] : n->in[i]->value;
    }
    struct mc_infer q = {
        .op = n->op, .nin = n->nin, .in = in, .value = known, .node = n->in, .attr = n->attr
    };
    struct mc_type x = in[0];
    s->pass = nodes[row].pass;
    if (s->pass == POOL_SPREAD) {
        TRY(mc_shape_wanted(&q, 1, in[0].dtype, &x));
    }
    TRY(mc_pool_solve(&q, nodes[row].vectors, &x, s));
    for (int i = 0; i < 3; i++) {
        if (s->out[i] < 0) {
            return mc_fail(MC_ESHAPE, "%s: the sizes of x, the window, the stride or the pad are not known",
                           n->op->name);
        }
    }
    if (s->pass != POOL_FORWARD && s->key == POOL_KEY_MARKS) {
        s->mark = in[s->pass == POOL_SPREAD ? 5 : 1].dtype;
    }
    return MC_OK;
}

/* ---- symbolic sizes ---- */

mc_node *mc_pool_entry(mc_node *vector, int k)
{
    mc_node *e = mc_shape_entry_node(vector, k);
    return e ? e : mc_cast_to(mc_pick(vector, 0, mc_node_int(vector->graph, k)), MC_INT64);
}

int mc_pool_slot(const mc_node *n, int axis)
{
    const struct mc_attr *a = &n->attr[POOL_AXIS];
    for (int k = 0; k < a->n; k++) {
        if (a->ints[k] == axis) {
            return k;
        }
    }
    return -1;
}

mc_node *mc_pool_size(mc_node *n, int first, mc_node *i, int slot)
{
    struct mc_bind b[] = { { "i", i, NULL },
                           { "w", mc_pool_entry(n->in[first + POOL_WS], slot), NULL },
                           { "s", mc_pool_entry(n->in[first + POOL_STRIDE], slot), NULL },
                           { "p", mc_pool_entry(n->in[first + POOL_PAD], slot), NULL },
                           { "b", mc_node_int(n->graph, start_of(n->attr, slot)), NULL } };
    const char *formula = borders[border_of(n->attr)].formula;
    int64_t w, s;
    int count;
    if (border_of(n->attr) == KEEP && mc_const_ints(b[1].node, &w, 1, &count) &&
        mc_const_ints(b[2].node, &s, 1, &count)) {
        formula = s >= w ? "(i - 1) // s + 1" : "maximum((i - 1 - w + s) // s, 0) + 1";
    }
    return mc_expr(n->graph, formula, b, (int)NELEM(b));
}

/* sort.c: sorts lines along an axis, all of them or their first elements, and permutes lines.
 *
 * Invariant: elements are compared by keys, unsigned numbers in the order of the values. NaN is last, -0
 * equals 0, and the sort is stable. */
#include "op/lines.h"

/* ---- keys ---- */

static void keys_of_floats(uint64_t *key, const double *x, int64_t n)
{
    const uint64_t sign = UINT64_C(1) << 63;
    for (int64_t i = 0; i < n; i++) {
        union {
            double f;
            uint64_t u;
        } v = { .f = x[i] + 0.0 }; /* -0 + 0 is 0 */
        key[i] = x[i] != x[i] ? UINT64_MAX : v.u & sign ? ~v.u : v.u | sign;
    }
}

static void keys_of(uint64_t *key, const mc_array *x, const char *data, int64_t stride, int64_t n)
{
    enum { CHUNK = 256 };
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t m = MC_MIN(n - at, (int64_t)CHUNK);
        if (mc_is_float(x->dtype)) {
            double some[CHUNK];
            mc_convert(MC_FLOAT64, some, sizeof *some, x->dtype, data + at * stride, stride, m);
            keys_of_floats(key + at, some, m);
        } else if (mc_dtypes[x->dtype].cls == CLASS_U64) {
            mc_convert(MC_UINT64, key + at, sizeof *key, x->dtype, data + at * stride, stride, m);
        } else {
            mc_convert(MC_INT64, key + at, sizeof *key, x->dtype, data + at * stride, stride, m);
            for (int64_t i = at; i < at + m; i++) {
                key[i] ^= UINT64_C(1) << 63;
            }
        }
    }
}

/* ---- bottom-up merge sort: runs of 1, 2, 4, ... ---- */

static void merge(int64_t *to, const int64_t *from, int64_t low, int64_t middle, int64_t high,
                  const uint64_t *key)
{
    int64_t a = low, b = middle;
    for (int64_t i = low; i < high; i++) {
        bool left = a < middle && (b >= high || key[from[a]] <= key[from[b]]);
        to[i] = from[left ? a++ : b++];
    }
}

/* The order of the keys, in a or b, which both have n elements. */
static int64_t *order_of(int64_t n, const uint64_t *key, int64_t *a, int64_t *b)
{
    for (int64_t i = 0; i < n; i++) {
        a[i] = i;
    }
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t low = 0; low < n; low += 2 * run) {
            merge(b, a, low, MC_MIN(low + run, n), MC_MIN(low + 2 * run, n), key);
        }
        int64_t *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* ---- radix sort for keys of up to 32 bits: key and index in one word, so that all words differ ---- */

enum { RADIX = 256, INSERTION_MOST = 48 };

static uint32_t key_of_float(float x)
{
    union {
        float f;
        uint32_t u;
    } v = { .f = x + 0.0f };
    return x != x ? UINT32_MAX : v.u >> 31 ? ~v.u : v.u | UINT32_C(1) << 31;
}

static void words_of(uint64_t *word, const mc_array *x, const char *data, int64_t stride, int64_t n)
{
    enum { CHUNK = 256 };
    const uint32_t sign = mc_dtypes[x->dtype].kind == KIND_UINT ? 0 : UINT32_C(1) << 31;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t m = MC_MIN(n - at, (int64_t)CHUNK);
        if (mc_is_float(x->dtype)) {
            float some[CHUNK];
            mc_convert(MC_FLOAT32, some, sizeof *some, x->dtype, data + at * stride, stride, m);
            for (int64_t i = 0; i < m; i++) {
                word[at + i] = (uint64_t)key_of_float(some[i]) << 32 | (uint64_t)(at + i);
            }
        } else {
            int64_t some[CHUNK];
            mc_convert(MC_INT64, some, sizeof *some, x->dtype, data + at * stride, stride, m);
            for (int64_t i = 0; i < m; i++) {
                word[at + i] = (uint64_t)((uint32_t)some[i] ^ sign) << 32 | (uint64_t)(at + i);
            }
        }
    }
}

static void insert_words(int64_t n, uint64_t *a)
{
    for (int64_t i = 1; i < n; i++) {
        uint64_t w = a[i];
        int64_t k = i;
        for (; k > 0 && a[k - 1] > w; k--) {
            a[k] = a[k - 1];
        }
        a[k] = w;
    }
}

/* The sorted words, in a or b: one pass for each byte of the keys, from the lowest; a byte that all keys
 * share is skipped. */
static uint64_t *order_words(int64_t n, uint64_t *a, uint64_t *b)
{
    uint32_t count[4][RADIX] = { 0 };
    if (n <= INSERTION_MOST) {
        insert_words(n, a);
        return a;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < 4; d++) {
            count[d][a[i] >> (32 + 8 * d) & (RADIX - 1)]++;
        }
    }
    for (int d = 0; d < 4; d++) {
        const int shift = 32 + 8 * d;
        uint32_t at = 0;
        if (count[d][a[0] >> shift & (RADIX - 1)] == (uint64_t)n) {
            continue;
        }
        for (int i = 0; i < RADIX; i++) {
            uint32_t c = count[d][i];
            count[d][i] = at;
            at += c;
        }
        for (int64_t i = 0; i < n; i++) {
            b[count[d][a[i] >> shift & (RADIX - 1)]++] = a[i];
        }
        uint64_t *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* ---- lines ---- */

bool mc_lines_begin(struct mc_lines *l, int axis, int n, const mc_array *const *a)
{
    char *data[3];
    const int64_t *strides[3];
    for (int k = 0; k < n; k++) {
        int to = 0;
        for (int i = 0; i < a[0]->rank; i++) {
            if (i != axis) {
                l->dims[to] = a[0]->dims[i];
                l->strides[k][to++] = a[k]->strides[i];
            }
        }
        l->step[k] = a[k]->strides[axis];
        data[k] = a[k]->data;
        strides[k] = l->strides[k];
    }
    l->count = a[0]->dims[axis];
    return mc_walk_begin(&l->walk, a[0]->rank - 1, l->dims, 0, n, data, strides);
}

static mc_status line_axis(const mc_node *n, const mc_array *x, int *axis)
{
    return mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), x->rank, axis);
}

static void put(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
}

static bool falls(const mc_node *n)
{
    return n->op->line == LINE_LAST;
}

static mc_status sort_lines(const mc_node *n, const mc_array *x, mc_array *y, bool positions)
{
    struct mc_lines l;
    int axis;
    TRY(line_axis(n, x, &axis));
    if (!mc_lines_begin(&l, axis, 2, (const mc_array *[]){ x, y })) {
        return MC_OK;
    }
    size_t bytes, size = mc_dtypes[x->dtype].size;
    if (!mc_mul_size((size_t)l.count, 3 * sizeof(int64_t), &bytes)) {
        return mc_fail_memory(SIZE_MAX, "sort");
    }
    uint64_t *key = mc_alloc(bytes + 1, "sort");
    int64_t *a = (int64_t *)key + l.count, *b = a + l.count;
    if (!key) {
        return mc_last_status();
    }
    do {
        const uint64_t *word = NULL;
        const int64_t *order = NULL;
        if (size <= sizeof(uint32_t) && l.count <= (int64_t)UINT32_MAX) {
            words_of(key, x, l.walk.p[0], l.step[0], l.count);
            for (int64_t i = 0; falls(n) && i < l.count; i++) {
                key[i] ^= UINT64_MAX << 32;
            }
            word = order_words(l.count, key, (uint64_t *)a);
        } else {
            keys_of(key, x, l.walk.p[0], l.step[0], l.count);
            for (int64_t i = 0; falls(n) && i < l.count; i++) {
                key[i] = ~key[i];
            }
            order = order_of(l.count, key, a, b);
        }
        for (int64_t i = 0; i < y->dims[axis]; i++) {
            char *to = l.walk.p[1] + i * l.step[1];
            int64_t from = word ? (int64_t)(uint32_t)word[i] : order[i];
            if (positions) {
                memcpy(to, &from, sizeof from); /* indices are int64 */
            } else {
                put(to, l.walk.p[0] + from * l.step[0], size);
            }
        }
    } while (mc_walk_next(&l.walk));
    mc_free(key);
    return MC_OK;
}

/* ---- sort, argsort ---- */

static mc_status sort_infer(struct mc_infer *q)
{
    int axis;
    q->out[0] = q->in[0];
    return mc_axis_check(q->op->name, mc_attr_int(&q->attr[0]), q->in[0].rank, &axis);
}

static mc_status argsort_infer(struct mc_infer *q)
{
    TRY(sort_infer(q));
    q->out[0].dtype = MC_INT64;
    return MC_OK;
}

static mc_status sort_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    return sort_lines(n, in[0], out[0], false);
}

static mc_status argsort_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    return sort_lines(n, in[0], out[0], true);
}

/* ---- the positions of the first k elements in rising or in falling order ---- */

static mc_status first_infer(struct mc_infer *q)
{
    int axis;
    const int64_t k = mc_attr_int(&q->attr[1]);
    q->out[0] = q->in[0];
    q->out[0].dtype = MC_INT64;
    TRY(mc_axis_check(q->op->name, mc_attr_int(&q->attr[0]), q->in[0].rank, &axis));
    q->out[0].dims[axis] = k;
    return q->in[0].dims[axis] < 0 || q->in[0].dims[axis] >= k
               ? MC_OK
               : mc_fail(MC_ESHAPE, "topk: more elements than there are: %lld of %lld", (long long)k,
                         (long long)q->in[0].dims[axis]);
}

static mc_node *first_size(mc_node *n, int item, int axis)
{
    (void)item;
    return axis == mc_attr_int(&n->attr[0]) ? mc_node_int(n->graph, mc_attr_int(&n->attr[1]))
                                            : mc_size_of(n->in[0], axis);
}

static mc_node *along(mc_graph *g, const char *op, int n, mc_node *const *in, const mc_node *like)
{
    return mc_apply(g, mc_op_named(g, op), n, in, like->attr);
}

/* Permutes each line of g by the inverse of the permutation p, which is argsort(p). */
static mc_node *permuted_back(mc_node *n, mc_node *p, mc_node *g)
{
    mc_node *in[2] = { g, along(n->graph, "argsort", 1, &p, n) };
    return along(n->graph, "permute_row_elements", 2, in, n);
}

static mc_node *sort_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return g[0] && mc_is_float(n->type.dtype)
               ? permuted_back(n, along(n->graph, "argsort", 1, n->in, n), g[0])
               : g[0];
}

/* ---- permute_row_elements(x, p): y[i] = x[p[i]] in each line ---- */

static mc_status permute_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0], *p = &q->in[1];
    TRY(sort_infer(q));
    if (mc_is_float(p->dtype) || p->dtype == MC_BOOL) {
        return mc_fail(MC_ETYPE, "permute_row_elements: the indices must be integers, not %s",
                       mc_dtype_name(p->dtype));
    }
    bool fits = x->rank == p->rank;
    for (int i = 0; fits && i < x->rank; i++) {
        fits = x->dims[i] < 0 || p->dims[i] < 0 || x->dims[i] == p->dims[i];
        q->out[0].dims[i] = MC_MAX(x->dims[i], p->dims[i]);
    }
    return fits ? MC_OK : mc_fail(MC_ESHAPE, "permute_row_elements: there must be an index for each element");
}

static mc_status permute_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const mc_array *x = in[0], *p = in[1];
    size_t size = mc_dtypes[x->dtype].size;
    struct mc_lines l;
    int axis;
    TRY(line_axis(n, x, &axis));
    if (!mc_lines_begin(&l, axis, 3, (const mc_array *[]){ x, p, out[0] })) {
        return MC_OK;
    }
    do {
        for (int64_t i = 0; i < l.count; i++) {
            int64_t from = mc_load_i64(p->dtype, l.walk.p[1] + i * l.step[1]);
            if (from < 0 || from >= l.count) {
                return mc_fail(MC_EINDEX,
                               "permute_row_elements: index %lld is out of range for a row of size %lld",
                               (long long)from, (long long)l.count);
            }
            put(l.walk.p[2] + i * l.step[2], l.walk.p[0] + from * l.step[0], size);
        }
    } while (mc_walk_next(&l.walk));
    return MC_OK;
}

/* x with `rank` axes: the axis of a vector becomes the permuted one, other tensors get new axes in front. */
static mc_node *spread_rank(mc_node *x, int rank, int axis)
{
    int64_t order[MC_MAX_RANK];
    const int less = rank - x->type.rank;
    for (int i = 0; i < rank; i++) {
        order[i] = x->type.rank == 1 ? (i == axis ? 0 : -1) : MC_MAX(i - less, -1);
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = order };
    return less ? mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a) : x;
}

/* Lines and permutations broadcast: one permutation may apply to all lines, or all permutations to one
 * line. */
static mc_node *build_permute(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *x[2], *size[MC_MAX_RANK];
    const int rank = MC_MAX(in[0]->type.rank, in[1]->type.rank);
    int axis;
    if (mc_axis_check("permute_row_elements", mc_attr_int(&attr[0]), rank, &axis) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    for (int k = 0; k < 2; k++) {
        if (in[k]->type.rank == 0) {
            return mc_node_fail(g, MC_ESHAPE,
                                "permute_row_elements: expected at least one axis, got a scalar");
        }
        x[k] = spread_rank(in[k], rank, axis);
    }
    for (int k = 0; k < 2 && !mc_is_error(x[0]) && !mc_is_error(x[1]); k++) {
        bool fill = false;
        for (int i = 0; i < rank; i++) {
            bool one = i != axis && x[k]->type.dims[i] == 1 && x[1 - k]->type.dims[i] != 1;
            size[i] = mc_size_of(x[one ? 1 - k : k], i);
            fill |= one;
        }
        x[k] = fill ? mc_call_op(g, "alloc", 2, (mc_node *[]){ x[k], mc_shape_stack(g, rank, size) }, NULL)
                    : x[k];
    }
    int64_t at = axis;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &at };
    return mc_node_make(g, mc_op_named(g, "permute_row_elements"), nin, x,
                        in[0]->type.rank == rank ? attr : &a);
}

static mc_node *permute_grad(mc_node *n, int wrt, mc_node *const *g)
{
    return wrt == 0 && g[0] && mc_is_float(n->type.dtype) ? permuted_back(n, n->in[1], g[0])
           : wrt == 0                                     ? g[0]
                                                          : NULL;
}

const struct mc_op mc_ops_sort[] = {
    { .name = "sort", .params = "x, axis=-1:int", .flags = OP_LINES, .line = LINE_SORTED, .nout = 1, .infer = sort_infer, .size = mc_same_size,
      .eval = sort_eval, .grad = sort_grad,
      .doc = MANUAL("x sorted in ascending order along an axis, NaN last") },
    { .name = "argsort", .params = "x, axis=-1:int", .flags = OP_LINES, .line = LINE_ORDER, .nout = 1, .infer = argsort_infer, .size = mc_same_size,
      .eval = argsort_eval,
      .disconnected = 1, .doc = MANUAL("the indices in x of the elements of sort(x); equal elements keep their order") },
    { .name = "first_of_rising", .params = "x, axis:int, k:int", .flags = OP_HIDDEN, .line = LINE_FIRST, .nout = 1,
      .infer = first_infer, .size = first_size, .eval = argsort_eval, .disconnected = 1,
      .doc = MANUAL("where the k smallest elements along an axis stand, equal ones in the order of x") },
    { .name = "first_of_falling", .params = "x, axis:int, k:int", .flags = OP_HIDDEN, .line = LINE_LAST, .nout = 1,
      .infer = first_infer, .size = first_size, .eval = argsort_eval, .disconnected = 1,
      .doc = MANUAL("where the k largest elements along an axis stand, NaN first, equal ones in the order of x") },
    { .name = "permute_row_elements", .params = "x, p, axis=-1:int", .flags = OP_LINES, .line = LINE_PERMUTED, .nout = 1, .infer = permute_infer,
      .size = mc_same_size,
      .eval = permute_eval, .grad = permute_grad, .build = build_permute,
      .doc = MANUAL("the elements of each row of x in the order of the permutation p; a vector x or p is used for all rows of the other") },
};
const int mc_nops_sort = (int)NELEM(mc_ops_sort);

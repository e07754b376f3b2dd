/* position.c: positions of elements: searching, counting, indices of several axes as one number.
 *
 * Invariant: of floats NaN is larger than every number, as in sort. */
#include "op/index.h"
#ifdef __SSE2__
#include <immintrin.h>
#endif

/* ---- searchsorted: a binary search in a vector that rises ---- */

static mc_status search_infer(struct mc_infer *q)
{
    q->out[0] = q->in[1];
    q->out[0].dtype = MC_INT64;
    return q->in[0].rank == 1
               ? MC_OK
               : mc_fail(MC_ESHAPE, "searchsorted: a is a vector, not of rank %d", q->in[0].rank);
}

static mc_node *search_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_size_of(n->in[1], axis);
}

/* Is u in front of v? */
static bool before(mc_dtype d, const char *u, const char *v)
{
    if (mc_is_float(d)) {
        const double a = mc_load_f64(d, u), b = mc_load_f64(d, v);
        return a < b || (b != b && a == a);
    }
    const uint64_t flip = mc_dtypes[d].cls == CLASS_U64 ? 0 : UINT64_C(1) << 63;
    return ((uint64_t)mc_load_i64(d, u) ^ flip) < ((uint64_t)mc_load_i64(d, v) ^ flip);
}

static mc_status search_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const mc_array *a = in[0], *v = in[1];
    const bool right = strcmp(n->attr[0].text, "right") == 0;
    struct mc_walk w;
    if (!mc_walk_begin(&w, v->rank, v->dims, 0, 2, (char *[]){ v->data, out[0]->data },
                       (const int64_t *[]){ v->strides, out[0]->strides })) {
        return MC_OK;
    }
    do {
        int64_t low = 0, high = a->dims[0];
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            const char *at = a->data + middle * a->strides[0];
            if (right ? !before(a->dtype, w.p[0], at) : before(a->dtype, at, w.p[0])) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        memcpy(w.p[1], &low, sizeof low);
    } while (mc_walk_next(&w));
    return MC_OK;
}

static mc_node *build_search(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *x[2];
    const mc_dtype d = mc_meet(nin, in, 0);
    if (strcmp(attr[0].text, "left") != 0 && strcmp(attr[0].text, "right") != 0) {
        return mc_node_fail(g, MC_EARG, "searchsorted: side is left or right, not '%s'", attr[0].text);
    }
    for (int i = 0; i < 2; i++) {
        x[i] = mc_cast_to(in[i], d);
        if (mc_is_error(x[i])) {
            return x[i];
        }
        x[i] = x[i]->weak ? mc_node_const(g, mc_array_ref(x[i]->value), false) : x[i];
    }
    return mc_node_make(g, mc_op_named(g, "searchsorted"), 2, x, attr);
}

/* ---- bincount ---- */

enum { AT_ONCE = 8 };

#ifdef __SSE2__
/* The largest of n numbers, a multiple of AT_ONCE, which must be from 0 to 2^52 - 1: the lower digits of
 * doubles, for which every processor has a maximum.  *all: their bits together. */
static int64_t largest_of_small(const int64_t *v, int64_t n, int64_t *all)
{
    const __m128i upper = _mm_set1_epi64x(INT64_C(0x4330000000000000));
    __m128i any[4];
    __m128d most[4];
    int64_t bits[2], two[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        any[i] = _mm_setzero_si128();
        most[i] = _mm_castsi128_pd(upper);
    }
    for (int64_t k = 0; k < n; k += AT_ONCE) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m128i x = _mm_loadu_si128((const void *)(v + k + 2 * i));
            any[i] = _mm_or_si128(any[i], x);
            most[i] = _mm_max_pd(most[i], _mm_castsi128_pd(_mm_or_si128(x, upper)));
        }
    }
    most[0] = _mm_max_pd(_mm_max_pd(most[0], most[1]), _mm_max_pd(most[2], most[3]));
    _mm_storeu_si128((void *)two, _mm_xor_si128(_mm_castpd_si128(most[0]), upper));
    _mm_storeu_si128((void *)bits, _mm_or_si128(_mm_or_si128(any[0], any[1]), _mm_or_si128(any[2], any[3])));
    *all = bits[0] | bits[1];
    return MC_MAX(two[0], two[1]);
}
#else
static int64_t largest_of_small(const int64_t *v, int64_t n, int64_t *all)
{
    int64_t a = 0, b = 0, c = 0, d = 0, any = 0;
    for (int64_t k = 0; k < n; k += 4, v += 4) { /* comparisons of four do not wait for each other */
        any |= (v[0] | v[1]) | (v[2] | v[3]);
        a = MC_MAX(a, v[0]);
        b = MC_MAX(b, v[1]);
        c = MC_MAX(c, v[2]);
        d = MC_MAX(d, v[3]);
    }
    *all = any;
    return MC_MAX(MC_MAX(a, b), MC_MAX(c, d));
}
#endif

/* The largest element, -1 of none; *negative: is one below 0? */
static int64_t largest(const mc_array *i, bool *negative)
{
    const int64_t n = i->dims[0], many = mc_array_is_contiguous(i) ? n / AT_ONCE * AT_ONCE : 0;
    int64_t any = 0, k = 0, most = -1;
    if (many) {
        most = largest_of_small((const int64_t *)(const void *)i->data, many, &any);
        k = any >> 52 ? 0 : many; /* a negative or very large one: all again */
        most = k ? most : -1;
    }
    for (; k < n; k++) {
        const int64_t v = mc_load_i64(MC_INT64, i->data + k * i->strides[0]);
        most = MC_MAX(most, v);
        any |= v;
    }
    *negative = any < 0;
    return most;
}

/* The same of numbers in any memory. */
static mc_status largest_of(const mc_array *i, int64_t *most, bool *negative)
{
    const struct mc_space *space = mc_array_space(i);
    if (space && space->largest && mc_array_is_contiguous(i)) {
        return space->largest(space, (const int64_t *)(const void *)i->data, i->dims[0], most, negative);
    }
    mc_array *near = mc_array_on_host(i);
    TRY(near ? MC_OK : mc_last_status());
    *most = largest(near, negative);
    mc_array_unref(&near);
    return MC_OK;
}

static mc_status counts_infer(struct mc_infer *q)
{
    int64_t n = -1;
    const struct mc_type *i = &q->in[0], *w = &q->in[1];
    if (i->rank != 1 || i->dtype != MC_INT64 ||
        (w->rank && (w->rank != 1 || (w->dims[0] >= 0 && i->dims[0] >= 0 && w->dims[0] != i->dims[0])))) {
        return mc_fail(MC_ESHAPE, "bincount: there must be a weight for each element");
    }
    if (q->value[0]) {
        bool negative;
        TRY(largest_of(q->value[0], &n, &negative));
        n = MC_MAX(n + 1, mc_attr_int(&q->attr[0]));
        if (negative) {
            return mc_fail(MC_EINDEX, "bincount: an element is negative");
        }
    }
    q->out[0] = mc_type_make(w->dtype, 1, &n);
    return MC_OK;
}

static mc_status counts_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const mc_array *i = in[0], *w = in[1];
    const mc_dtype d = w->dtype;
    const struct mc_space *space = mc_array_space(i);
    if (space) { /* the weight is one int64, and the space counts: see mc_call */
        return space->counts(space, (const int64_t *)(const void *)i->data, i->dims[0],
                             mc_load_i64(MC_INT64, w->data), out[0]->dims[0],
                             (int64_t *)(void *)out[0]->data);
    }
    const int64_t step = w->rank ? w->strides[0] : 0, size = mc_dtypes[d].size;
    (void)n;
    memset(out[0]->data, 0, (size_t)(out[0]->dims[0] * size));
    for (int64_t k = 0; k < i->dims[0]; k++) {
        char *to = out[0]->data + mc_load_i64(MC_INT64, i->data + k * i->strides[0]) * size;
        mc_region_row(d, false, to, 0, w->data + k * step, 0, 1);
    }
    return MC_OK;
}

static mc_node *counts_grad(mc_node *n, int wrt, mc_node *const *g)
{
    return wrt == 1 && g[0] && n->in[1]->type.rank
               ? mc_call_op(n->graph, "gather", 2, (mc_node *[]){ g[0], n->in[0] }, "axes=[0]")
               : NULL;
}

static mc_node *build_bincount(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_bind b[] = { { "x", in[0], NULL },
                           { "w", nin > 1 && in[1] ? in[1] : mc_node_int(g, 1), NULL },
                           { "least", NULL, &attr[0] },
                           { "i", NULL, NULL } };
    b[3].node = mc_expr(g, "cast(ravel(x) | 0, int64)", b, 1);
    return mc_is_error(b[3].node) ? b[3].node
                                  : mc_expr(g,
                                            nin > 1 && in[1] ? "counts_of(i, alloc(w, i.shape), least=least)"
                                                             : "counts_of(i, cast(w, int64), least=least)",
                                            b, NELEM(b));
}

/* ---- histogram ---- */

/* bins: a vector of edges, or how many of one width between the numbers of `range`, or the extremes of x. */
static mc_node *build_histogram(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *bins = nin > 1 ? in[1] : NULL, *range = nin > 2 ? in[2] : NULL,
            *weights = nin > 3 ? in[3] : NULL;
    struct mc_bind b[] = { { "x", in[0], NULL },
                           { "n", bins, NULL },
                           { "r", range, NULL },
                           { "e", bins, NULL },
                           { "w", weights, NULL } };
    enum { N = 1, RANGE, EDGES, WEIGHTS };
    mc_node *out[2];
    if (bins && bins->type.rank > 1) {
        return mc_node_fail(g, MC_ESHAPE, "histogram: bins is a number or a vector of edges");
    }
    if (!bins || bins->type.rank == 0) {
        b[N].node = bins ? bins : mc_node_int(g, 10);
        b[RANGE].node = range ? range : mc_expr(g, "stack(min(x), max(x))", b, 1);
        b[EDGES].node = mc_expr(g,
                                "f = cast(r, float64); s = cast(eq(f[0], f[1]), float64) * 0.5; lo = f[0] - "
                                "s; hi = f[1] + s; k = arange(n + 1); "
                                "where(eq(k, n), hi, lo + cast(k, float64) * ((hi - lo) / cast(n, float64)))",
                                b, EDGES);
    }
    b[WEIGHTS].node = weights ? weights : mc_node_int(g, 1);
    /* elements outside the edges go to one bin more, which is dropped */
    out[0] = mc_expr(
        g,
        "v = ravel(x); m = size(e, 0) - 1; i = minimum(searchsorted(e, v, side='right') - 1, m - 1); "
        "inc_subtensor(alloc(cast(0, w.dtype), [m + 1])[where(and_(v >= e[0], v <= e[-1]), i, m)], "
        "ravel(w))[:-1]",
        b, NELEM(b));
    out[1] = b[EDGES].node;
    if (mc_attr_int(&attr[0])) {
        out[0] = mc_expr(g, "c / (sum(c) * diff(e))",
                         (struct mc_bind[]){ { "c", out[0], NULL }, { "e", out[1], NULL } }, 2);
    }
    return mc_is_error(out[0]) ? out[0] : mc_node_make(g, &mc_op_tuple, 2, out, NULL);
}

/* ---- indices of several axes as one, in C order ---- */

/* The entries of a shape as int64 scalars; 0: they are not known. */
static int entries(mc_graph *g, const char *op, mc_node *shape, mc_node **size)
{
    const int64_t n = shape->type.rank == 1 ? shape->type.dims[0] : shape->type.rank == 0;
    if (n < 1 || n > MC_MAX_RANK || !mc_is_int(shape->type.dtype)) {
        mc_node_fail(g, MC_ESHAPE, "%s: the shape is a vector of 1 to %d integers", op, MC_MAX_RANK);
        return 0;
    }
    for (int i = 0; i < n; i++) {
        size[i] = mc_shape_entry_node(shape, i);
        if (!size[i]) {
            size[i] = mc_expr(g, "cast(s[k], int64)",
                              (struct mc_bind[]){ { "s", shape, NULL }, { "k", mc_node_int(g, i), NULL } },
                              2);
        }
        if (mc_is_error(size[i])) {
            return 0;
        }
    }
    return (int)n;
}

static mc_node *build_unravel(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *size[MC_MAX_RANK], *part[MC_MAX_RANK], *all = mc_node_int(g, 1);
    const int n = entries(g, "unravel_index", in[1], size);
    (void)nin;
    (void)attr;
    for (int i = 0; i < n; i++) {
        all = mc_call_op(g, "mul", 2, (mc_node *[]){ all, size[i] }, NULL);
    }
    mc_node *index = n ? mc_call_op(g, "check_index", 2, (mc_node *[]){ in[0], all }, NULL) : g->error;
    index = mc_is_error(index) ? index : mc_cast_to(index, MC_INT64);
    for (int i = n - 1; i >= 0 && !mc_is_error(index); i--) {
        struct mc_bind b[] = { { "i", index, NULL }, { "n", size[i], NULL } };
        part[i] = i ? mc_expr(g, "i % n", b, 2) : index;
        index = i ? mc_expr(g, "i // n", b, 2) : index;
    }
    return mc_is_error(index) ? index : n == 1 ? part[0] : mc_node_make(g, &mc_op_tuple, n, part, NULL);
}

/* What a mode makes of index i of n; NULL: there is no such mode. */
static const char *mode_text(const char *mode)
{
    static const struct { const char *mode, *text; } modes[] = {
        { "raise", "check_index(i, n)" }, { "wrap", "i % n" }, { "clip", "clip(i, 0, n - 1)" },
    };
    for (size_t i = 0; i < NELEM(modes); i++) {
        if (strcmp(modes[i].mode, mode) == 0) {
            return modes[i].text;
        }
    }
    return NULL;
}

static mc_node *build_ravel_index(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *size[MC_MAX_RANK], *y = NULL;
    const int n = entries(g, "ravel_multi_index", in[0], size);
    const char *text = mode_text(attr[0].text);
    if (n && (!text || nin - 1 != n)) {
        return !text
                   ? mc_node_fail(g, MC_EARG,
                                  "ravel_multi_index: there is no mode '%s'; there are raise, wrap and clip",
                                  attr[0].text)
                   : mc_node_fail(g, MC_EARG, "ravel_multi_index: %d indices for a shape of %d", nin - 1, n);
    }
    for (int i = 0; i < n && !(y && mc_is_error(y)); i++) {
        struct mc_bind b[] = { { "i", in[i + 1], NULL }, { "n", size[i], NULL }, { "y", y, NULL } };
        b[0].node = mc_is_int(in[i + 1]->type.dtype)
                        ? mc_expr(g, text, b, 2)
                        : mc_node_fail(g, MC_ETYPE, "ravel_multi_index: the indices are integers");
        b[0].node = mc_is_error(b[0].node) ? b[0].node : mc_cast_to(b[0].node, MC_INT64);
        y = mc_is_error(b[0].node) ? b[0].node : y ? mc_expr(g, "y * n + i", b, 3) : b[0].node;
    }
    return n ? y : g->error;
}

/* ---- choose: element by element one of several tensors ---- */

static mc_node *build_choose(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_bind b[] = { { "i", in[0], NULL },
                           { "n", mc_node_int(g, nin - 1), NULL },
                           { "y", NULL, NULL },
                           { "x", NULL, NULL },
                           { "k", NULL, NULL } };
    const char *text = mode_text(attr[0].text);
    if (!text || nin < 2 || !mc_is_int(in[0]->type.dtype)) {
        return !text
                   ? mc_node_fail(g, MC_EARG, "choose: there is no mode '%s'; there are raise, wrap and clip",
                                  attr[0].text)
               : nin < 2 ? mc_node_fail(g, MC_EARG, "choose: there is nothing to choose from")
                         : mc_node_fail(g, MC_ETYPE, "choose: the indices are integers, not %s",
                                        mc_dtype_name(in[0]->type.dtype));
    }
    b[0].node = mc_expr(g, text, b, 2);
    b[2].node = in[nin - 1];
    if (nin == 2 && !mc_is_error(b[0].node)) {
        return mc_expr(g, "where(eq(i, 0), y, y)", b, 3);
    }
    for (int k = nin - 3; k >= 0 && !mc_is_error(b[0].node) && !mc_is_error(b[2].node); k--) {
        b[3].node = in[k + 1];
        b[4].node = mc_node_int(g, k);
        b[2].node = mc_expr(g, "where(eq(i, k), x, y)", b, 5);
    }
    return mc_is_error(b[0].node) ? b[0].node : b[2].node;
}

const struct mc_op mc_ops_position[] = {
    { .name = "searchsorted", .params = "a, v, side=left:text", .line = LINE_SEARCH, .nout = 1, .infer = search_infer, .size = search_size, .eval = search_eval,
      .build = build_search, .disconnected = 3, .example = MANUAL("a = [1., 2, 2, 5]; v = [2., 6, 0]; searchsorted(a, v)"),
      .doc = MANUAL("where the elements of v can be put into a, a vector in rising order: before elements that are equal, or with side='right' behind them") },
    BUILT({ .name = "digitize", .params = "x, bins", .nout = 1, .formula = "searchsorted(bins, x, side='right')", .example = MANUAL("x = [0.5, 2, 9]; bins = [1., 2, 4]; digitize(x, bins)"),
      .doc = MANUAL("the bin of each element of x, bins being a vector of edges in rising order") })
    BUILT({ .name = "bincount", .params = "x, weights=None, minlength=0:int", .nout = 1, .build = build_bincount,
      .example = MANUAL("x = [1, 3, 1]; bincount(x)"),
      .doc = MANUAL("how often each of 0, 1, 2, ... occurs in x, integers that are not negative; with weights, their sums") })
    { .name = "counts_of", .flags = OP_HIDDEN, .params = "i, w, least=0:int", .line = LINE_COUNTS, .nout = 1, .shape_args = 1,
      .infer = counts_infer, .eval = counts_eval, .grad = counts_grad,
      .doc = MANUAL("how often each of 0, 1, 2, ... occurs in the vector i, times the scalar w, or the sums of the vector w") },
    BUILT({ .name = "histogram", .params = "x, bins=None, range=None, weights=None, density=False:bool", .nout = 1, .build = build_histogram,
      .example = MANUAL("x = [1., 2, 2, 4]; bins = 3; histogram(x, bins)"),
      .doc = MANUAL("how many elements of x fall into each bin, or their weights, and the edges of the bins: bins is their count, 10 if not given, between the two "
             "numbers of range or the extremes of x, or the edges; the last bin has its right edge") })
    BUILT({ .name = "unravel_index", .params = "i, shape", .nout = 1, .build = build_unravel, .example = MANUAL("i = [5, 2]; shape = [2, 3]; unravel_index(i, shape)"),
      .doc = MANUAL("indices into the elements of a shape as an index for each axis") })
    BUILT({ .name = "ravel_multi_index", .params = "shape, *index, mode=raise:text", .nout = 1, .build = build_ravel_index,
      .example = MANUAL("shape = [2, 3]; i = [1, 0]; j = [2, 2]; ravel_multi_index(shape, i, j)"),
      .doc = MANUAL("an index for each axis as one index into the elements of a shape; one outside is an error, or wraps or is clipped") })
    BUILT({ .name = "choose", .params = "i, *xs, mode=raise:text", .nout = 1, .build = build_choose, .example = MANUAL("i = [1, 0]; choose(i, [[1., 2], [3., 4]])"),
      .doc = MANUAL("element by element that of the i-th tensor; an index outside is an error, or wraps or is clipped") })
};
const int mc_nops_position = (int)NELEM(mc_ops_position);

/* pad.c: elements put around a tensor, in the modes of NumPy's pad.
 *
 * Invariant: axes are padded one after the other, so corners follow from the axes padded before. */
#include "op/op.h"

enum { PAD_WIDTH, PAD_MODE, PAD_CONSTANT, PAD_END, PAD_STAT, PAD_REFLECT };

/* Formulas over x, its size n along the axis, and
 *   take, odd  the positions i of the result in x, which may lie outside; s: the same along the axis
 *   side       of one side: e, the element at the edge, or the part that stat_length gives; c and end, the
 *              given values; t, the distance from the far end as a fraction
 * odd is used with reflect_type='odd'. */
static const struct mode {
    const char *name, *take, *odd, *side;
    bool part, ramp;
} modes[] = {
#define BOTH(period, other)                                                                        \
    .take = "m = i % (" period "); take(x, minimum(m, " other " - m), axis=axis)",                 \
    .odd = "m = i % (" period "); a = take(x, [0], axis=axis); b = take(x, [n - 1], axis=axis); "  \
           "v = take(x, minimum(m, " other " - m), axis=axis); "                                   \
           "cast(s // (" period ") * 2, x.dtype) * (b - a) + where(s % (" period ") < n, v, 2 * b - v)"
    { "constant", .side = "cast(c, x.dtype)" },
    { "empty", .side = "cast(0, x.dtype)" },
    { "edge", .take = "take(x, clip(i, 0, n - 1), axis=axis)" },
    { "wrap", .take = "take(x, i % n, axis=axis)" },
    { "symmetric", BOTH("2 * n", "2 * n - 1") },
    { "reflect", BOTH("maximum(2 * n - 2, 1)", "2 * n - 2") },
    { "maximum", .side = "max(e, axis=axis, keepdims=True)", .part = true },
    { "minimum", .side = "min(e, axis=axis, keepdims=True)", .part = true },
    { "mean", .side = "mean(e, axis=axis, keepdims=True)", .part = true },
    { "median", .side = "median(e, axis=axis, keepdims=True)", .part = true },
    { "linear_ramp", .side = "end + (e - end) * t", .ramp = true },
};

/* one axis */
struct side {
    const struct mode *mode;
    const struct mc_attr *attr, *axis;
    int at;                            /* the axis */
    mc_node *n;                        /* its size in x */
};

static mc_node *along(mc_node *i, int axis, int rank)
{
    int64_t order[MC_MAX_RANK];
    for (int k = 0; k < rank; k++) {
        order[k] = k == axis ? 0 : -1;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = order };
    return mc_is_error(i) ? i : mc_apply(i->graph, mc_op_named(i->graph, "dimshuffle"), 1, &i, &a);
}

/* Formulas of sides in floats give integers as NumPy does: a mean is rounded, a ramp rounded down. */
static mc_node *as_x(const struct mode *m, mc_node *v, mc_node *x)
{
    if (mc_is_error(v) || v->type.dtype == x->type.dtype) {
        return v;
    }
    const bool whole = !mc_is_float(x->type.dtype) && mc_is_float(v->type.dtype);
    v = whole ? mc_call_op(x->graph, m->ramp ? "floor" : "round", 1, &v, NULL) : v;
    return mc_cast_to(v, x->type.dtype);
}

/* What an attribute says of one side: all have one value, or front and back, or each side of each axis. */
static int place_of(const struct mc_attr *a, int axis, bool behind)
{
    return a->n > 2 ? 2 * axis + behind : behind && a->n == 2;
}

/* The w elements in front of x, or behind it. */
static mc_node *side(mc_node *x, const struct side *s, int64_t w, bool behind)
{
    mc_graph *g = x->graph;
    const struct mc_attr *stat = &s->attr[PAD_STAT];
    mc_node *size[MC_MAX_RANK], *e = x;
    const int64_t part = !s->mode->part ? 1 : stat->n ? stat->ints[place_of(stat, s->at, behind)] : 0;
    struct mc_attr value[2];
    for (int i = 0; i < 2; i++) {
        const struct mc_attr *all = &s->attr[i ? PAD_END : PAD_CONSTANT];
        value[i] = (struct mc_attr){ .kind = ATTR_REAL,
                                     .real = mc_attr_real(all, place_of(all, s->at, behind)) };
    }
    if (s->mode->ramp) {
        e = mc_expr(g, behind ? "take(x, [n - 1], axis=axis)" : "take(x, [0], axis=axis)",
                    (struct mc_bind[]){ { "x", x, NULL }, { "n", s->n, NULL }, { "axis", NULL, s->axis } },
                    3);
    } else if (part > 0) {
        mc_node *k = mc_node_int(g, behind ? -part : part);
        e = mc_part(x, s->at, behind ? k : NULL, behind ? NULL : k);
    }
    mc_node *step = along(
        mc_expr(g, behind ? "cast(w - 1 - arange(w), float64) / w" : "cast(arange(w), float64) / w",
                (struct mc_bind[]){ { "w", mc_node_int(g, w), NULL } }, 1),
        s->at, x->type.rank);
    struct mc_bind b[] = { { "x", x, NULL },
                           { "e", e, NULL },
                           { "t", mc_is_float(x->type.dtype) ? mc_cast_to(step, x->type.dtype) : step, NULL },
                           { "c", NULL, &value[0] },
                           { "end", NULL, &value[1] },
                           { "axis", NULL, s->axis } };
    mc_node *v = as_x(s->mode, mc_expr(g, s->mode->side, b, NELEM(b)), x);
    if (mc_is_error(v)) {
        return v;
    }
    for (int i = 0; i < x->type.rank; i++) {
        size[i] = i == s->at ? mc_node_int(g, w) : mc_size_of(x, i);
    }
    return mc_call_op(g, "alloc", 2, (mc_node *[]){ v, mc_shape_stack(g, x->type.rank, size) }, NULL);
}

static mc_node *pad_axis(mc_node *x, const struct side *s, int64_t before, int64_t after)
{
    mc_graph *g = x->graph;
    const bool odd = strcmp(s->attr[PAD_REFLECT].text, "odd") == 0;
    if (s->mode->take) {
        mc_node *i = mc_expr(g, "arange(b + n + a) - b",
                             (struct mc_bind[]){ { "n", s->n, NULL },
                                                 { "b", mc_node_int(g, before), NULL },
                                                 { "a", mc_node_int(g, after), NULL } },
                             3);
        struct mc_bind b[] = { { "x", x, NULL },
                               { "n", s->n, NULL },
                               { "i", i, NULL },
                               { "s", along(i, s->at, x->type.rank), NULL },
                               { "axis", NULL, s->axis } };
        return mc_expr(g, odd && s->mode->odd ? s->mode->odd : s->mode->take, b, NELEM(b));
    }
    mc_node *part[3];
    int n = 0;
    if (before) {
        part[n++] = side(x, s, before, false);
    }
    part[n++] = x;
    if (after) {
        part[n++] = side(x, s, after, true);
    }
    return mc_call_op(g, "join", n, part, "axis=%d", s->at);
}

static bool fits(const struct mc_attr *a, int rank)
{
    return !a->text && (a->n == 1 || a->n == 2 || a->n == 2 * rank);
}

static bool is_width(const struct mc_attr *a, int rank)
{
    bool good = fits(a, rank);
    for (int i = 0; good && i < a->n; i++) {
        good = a->ints[i] >= 0;
    }
    return good;
}

static mc_node *build_pad(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *x = in[0];
    const int rank = x->type.rank;
    const struct mc_attr *width = &attr[PAD_WIDTH];
    const struct mode *m = modes;
    while (m < modes + NELEM(modes) && strcmp(m->name, attr[PAD_MODE].text) != 0) {
        m++;
    }
    if (m == modes + NELEM(modes)) {
        struct mc_str list = { 0 };
        for (size_t i = 0; i < NELEM(modes); i++) {
            mc_str_addf(&list, "%s%s", i ? ", " : "", modes[i].name);
        }
        mc_node *bad = mc_node_fail(g, MC_EARG, "pad: there is no mode '%s'; there are %s",
                                    attr[PAD_MODE].text, list.s ? list.s : "");
        mc_str_free(&list);
        return bad;
    }
    if (!is_width(width, rank) || !(attr[PAD_STAT].none || is_width(&attr[PAD_STAT], rank))) {
        return mc_node_fail(g, MC_EARG,
                            "pad: %s is a number, a pair, or a pair for each of %d axes, and not negative",
                            is_width(width, rank) ? "stat_length" : "pad_width", rank);
    }
    if (!fits(&attr[PAD_CONSTANT], rank) || !fits(&attr[PAD_END], rank)) {
        return mc_node_fail(g, MC_EARG, "pad: %s is a number, a pair, or a pair for each of %d axes",
                            fits(&attr[PAD_END], rank) ? "constant_values" : "end_values", rank);
    }
    for (int i = 0; i < rank && !mc_is_error(x); i++) {
        const int64_t before = width->ints[place_of(width, i, false)],
                      after = width->ints[place_of(width, i, true)];
        int64_t at = i;
        struct mc_attr axis = { .kind = ATTR_INT, .n = 1, .ints = &at };
        struct side s = { .mode = m, .attr = attr, .axis = &axis, .at = i, .n = mc_size_of(x, i) };
        if (x->type.dims[i] == 0 && before + after && m->side != modes[0].side && m->side != modes[1].side) {
            return mc_node_fail(g, MC_ESHAPE, "pad: axis %d is empty; mode '%s' has nothing to repeat", i,
                                m->name);
        }
        x = before || after ? pad_axis(x, &s, before, after) : x;
    }
    return x;
}

const struct mc_op mc_ops_pad[] = {
    BUILT({ .name = "pad",
      .params = "x, pad_width:border, mode=constant:text, constant_values=0:reals, end_values=0:reals, stat_length=None:border, reflect_type=even:text",
      .nout = 1, .build = build_pad, .example = MANUAL("x = [1., 2, 3]; pad(x, 2, mode='reflect')"),
      .doc = MANUAL("x with elements around it: pad_width is a number, a pair for front and back, or a pair for each axis; mode: constant, empty (zeros), "
             "edge, wrap, symmetric, reflect, maximum, minimum, mean, median, linear_ramp; constant_values and end_values are given like pad_width") })
};
const int mc_nops_pad = (int)NELEM(mc_ops_pad);

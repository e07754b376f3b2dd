/* t_ops_index.c: slices, index tensors and updates against loops that follow NumPy's words, element by
 * element. */
#include "op_fixture.h"

/* ---- what an index takes of one axis: a list of places, by counting ---- */

struct axis_case {
    char text[64];
    int64_t place[32];
    int n;
    bool drops;
};

static int64_t held(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* A random index for an axis of this size.  Bounds go as numbers, or as inputs i0, i1, ... (up to 6 of
 * them). */
static struct axis_case random_axis(int64_t size, struct leaf *leaf, int *nleaf, mc_array **bounds,
                                    int *nbounds)
{
    struct axis_case c = { .text = "" };
    char part[3][24] = { "", "", "" };
    int64_t v[3] = { 0, 0, 1 };
    bool given[3] = { 0 };
    unsigned kind = (unsigned)(test_random() % 4);
    if (kind == 0 && size > 0) {
        v[0] = (int64_t)(test_random() % (uint64_t)(2 * size)) - size;
        given[0] = true;
        c.drops = true;
    } else if (kind > 1) {
        for (int i = 0; i < 3; i++) {
            given[i] = test_random() % 2;
            v[i] = given[i] ? (int64_t)(test_random() % (uint64_t)(2 * size + 5)) - size - 2 : v[i];
        }
        v[2] = given[2] ? (int64_t)(test_random() % 7) - 3 : 1;
        v[2] = v[2] ? v[2] : -1;
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[6] = { "i0", "i1", "i2", "i3", "i4", "i5" };
        if (given[i] && *nbounds < 6 && test_random() % 3 == 0) {
            snprintf(part[i], sizeof part[i], "%s", names[*nbounds]);
            bounds[*nbounds] = mc_array_scalar(test_random() % 2 ? MC_INT64 : MC_INT32, (double)v[i]);
            leaf[(*nleaf)++] = (struct leaf){ names[*nbounds], bounds[*nbounds], 0, false };
            ++*nbounds;
        } else if (given[i]) {
            snprintf(part[i], sizeof part[i], "%lld", (long long)v[i]);
        }
    }
    if (c.drops) {
        snprintf(c.text, sizeof c.text, "%s", part[0]);
        c.place[c.n++] = v[0] < 0 ? v[0] + size : v[0];
        return c;
    }
    snprintf(c.text, sizeof c.text, given[2] ? "%s:%s:%s" : "%s:%s", part[0], part[1], part[2]);
    int64_t start = v[0] < 0 ? v[0] + size : v[0], stop = v[1] < 0 ? v[1] + size : v[1];
    if (v[2] > 0) {
        start = given[0] ? held(start, 0, size) : 0;
        stop = given[1] ? held(stop, 0, size) : size;
    } else {
        start = given[0] ? held(start, -1, size - 1) : size - 1;
        stop = given[1] ? held(stop, -1, size - 1) : -1;
    }
    for (int64_t i = start; v[2] > 0 ? i < stop : i > stop; i += v[2]) {
        c.place[c.n++] = i;
    }
    return c;
}

struct region_case {
    mc_array *x, *bound[6];
    struct leaf leaf[8];
    int nleaf, nbounds, rank;
    struct axis_case axis[4];
    char text[300];               /* x[...] */
    int64_t dims[4];
    int nout;                     /* the region's rank */
};

static struct region_case random_region(mc_dtype d)
{
    struct region_case c = { .rank = 1 + (int)(test_random() % 4) };
    int64_t dims[4];
    for (int i = 0; i < c.rank; i++) {
        dims[i] = (int64_t)(test_random() % 6);
    }
    c.x = sample(d, c.rank, dims, mc_dtypes[d].kind == KIND_INT || mc_is_float(d) ? -9 : 0, 9);
    c.leaf[c.nleaf++] = (struct leaf){ "x", c.x, (unsigned)test_random(), false };
    strcpy(c.text, "x[");
    for (int i = 0; i < c.rank; i++) {
        c.axis[i] = random_axis(dims[i], c.leaf, &c.nleaf, c.bound, &c.nbounds);
        strcat(c.text, i ? ", " : "");
        strcat(c.text, c.axis[i].text);
        if (!c.axis[i].drops) {
            c.dims[c.nout++] = c.axis[i].n;
        }
    }
    strcat(c.text, "]");
    return c;
}

static void region_free(struct region_case *c)
{
    mc_array_unref(&c->x);
    for (int i = 0; i < 6; i++) {
        mc_array_unref(&c->bound[i]);
    }
}

/* Where in x the region's element `at` lies. */
static void place_of(const struct region_case *c, const int64_t *at, int64_t *out)
{
    for (int i = 0, k = 0; i < c->rank; i++) {
        out[i] = c->axis[i].place[c->axis[i].drops ? 0 : at[k++]];
    }
}

TEST(slices_are_python_s)
{
    for (int t = 0; t < (test_is_full() ? 4000 : 400); t++) {
        struct region_case c = random_region((mc_dtype)(t % MC_NDTYPE));
        mc_array *y = run(c.nleaf, c.leaf, c.text), *want = mc_array_new(c.x->dtype, c.nout, c.dims);
        int64_t at[4] = { 0 }, from[4];
        if (mc_array_size(want)) {
            do {
                place_of(&c, at, from);
                mc_array_set(want, at, mc_array_get(c.x, from));
            } while (next_index(c.nout, c.dims, at));
        }
        check_same(y, want, c.text);
        mc_array_unref(&y);
        mc_array_unref(&want);
        region_free(&c);
    }
}

TEST(regions_are_set_and_increased)
{
    for (int t = 0; t < (test_is_full() ? 4000 : 400); t++) {
        mc_dtype d = (mc_dtype)(t % MC_NDTYPE);
        struct region_case c = random_region(d);
        bool set = test_random() % 2;
        int drop = (int)(test_random() % (uint64_t)(c.nout + 1)); /* leading axes that y lets out */
        int64_t ydims[4], at[4] = { 0 }, to[4], from[4];
        unsigned ones = 0;
        for (int k = drop; k < c.nout; k++) {
            bool one = test_random() % 4 == 0;
            ones |= (unsigned)one << (k - drop);
            ydims[k - drop] = one ? 1 : c.dims[k];
        }
        mc_array *y = sample(d, c.nout - drop, ydims, 0, 5), *want = mc_array_copy(c.x);
        c.leaf[c.nleaf++] = (struct leaf){ "y", y, ones, false };
        char text[400];
        snprintf(text, sizeof text, "%s_subtensor(%s, y)", set ? "set" : "inc", c.text);
        mc_array *have = run(c.nleaf, c.leaf, text);
        if (mc_dims_count(c.nout, c.dims)) {
            do {
                place_of(&c, at, to);
                for (int k = drop; k < c.nout; k++) {
                    from[k - drop] = y->dims[k - drop] == 1 ? 0 : at[k];
                }
                double old = set ? 0 : mc_array_get(want, to), v = old + mc_array_get(y, from);
                mc_array_set(want, to, d == MC_BOOL ? v != 0 : v);
            } while (next_index(c.nout, c.dims, at));
        }
        check_same(have, want, text);
        mc_array_unref(&have);
        mc_array_unref(&want);
        mc_array_unref(&y);
        region_free(&c);
    }
}

/* stack([a, b])[0] is folded to a; set_subtensor still sets it in the stack. */
TEST(parts_of_stacks_are_set)
{
    static const struct { const char *formula; double want[3]; } rows[] = {
        { "set_subtensor(x.shape[0], 7)", { 7, 3, 4 } },
        { "inc_subtensor(x.shape[-2], x.shape[-2] * 2)", { 2, 9, 4 } },
        { "inc_subtensor(stack([sum(x), max(x), min(x)])[1], 5)", { 24, 6, 1 } },
        { "set_subtensor([sum(x), max(x), min(x)][1:], 5)", { 24, 5, 5 } },
    };
    for (size_t r = 0; r < NELEM(rows); r++) {
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3, 4));
        for (int i = 0; i < 24; i++) {
            mc_store_f64(MC_FLOAT32, x->data + i * 4, 1);
        }
        mc_array *have = run(1, (struct leaf[]){ { "x", x, 0, false } }, rows[r].formula);
        CHECK(have && have->rank == 1 && have->dims[0] == 3, "%s has not three elements", rows[r].formula);
        for (int64_t i = 0; have && have->rank == 1 && i < 3; i++) {
            const double v = mc_array_get(have, &i);
            CHECK(v >= rows[r].want[i] && v <= rows[r].want[i], "%s: element %d is %g, not %g",
                  rows[r].formula, (int)i, v, rows[r].want[i]);
        }
        mc_array_unref(&have);
        mc_array_unref(&x);
    }
}

TEST(index_out_of_range_says_where)
{
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 5 }, -1, 1), *i = mc_array_scalar(MC_INT64, 7);
    struct leaf leaf[] = { { "x", x, 0, false }, { "i", i, 0, false } };
    CHECK(!run(2, leaf, "x[:, i]") && mc_last_status() == MC_EINDEX &&
              strcmp(mc_last_error(), "index 7 is out of range for axis 1 with size 5") == 0,
          "%s", mc_last_error());
    CHECK(!run(2, leaf, "x[-4]") &&
              strstr(mc_last_error(), "index -4 is out of range for axis 0 with size 3"),
          "%s", mc_last_error());
    CHECK(!run(2, leaf, "set_subtensor(x[3], 1)") && strstr(mc_last_error(), "index 3 is out of range"), "%s",
          mc_last_error());
    CHECK(!run(2, leaf, "x[::i - 7]") && strstr(mc_last_error(), "the step of the slice is 0"), "%s",
          mc_last_error());
    leaf[0].sized = 3;
    CHECK(!run(2, leaf, "x[0, 5]") &&
              strstr(mc_last_error(),
                     "subtensor: index 5 is out of range for axis 1 with size 5  [x: float32[3, 5]]"),
          "%s", mc_last_error());
    mc_array_unref(&x);
    mc_array_unref(&i);
}

/* Far bounds and steps overflow nothing. */
TEST(slices_with_huge_bounds)
{
    mc_array *x = sample(MC_INT32, 1, (int64_t[]){ 5 }, 1, 9),
             *i = mc_array_from(MC_INT64, 0, NULL, (int64_t[]){ INT64_MIN });
    struct leaf leaf[] = { { "x", x, 0, false }, { "i", i, 0, false } };
    static const struct { const char *text; int64_t n; } rows[] = {
        { "x[i:]", 5 }, { "x[:i]", 0 }, { "x[::i]", 1 }, { "x[9223372036854775807:]", 0 }, { "x[:9223372036854775807]", 5 },
        { "x[::9223372036854775807]", 1 }, { "x[9223372036854775807::-1]", 5 }, { "x[:i:-1]", 5 }, { "x[i::-1]", 0 }, { "x[4::i]", 1 },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *y = run(2, leaf, rows[k].text);
        CHECK(y && y->dims[0] == rows[k].n, "%s: %lld elements, not %lld  %s", rows[k].text,
              y ? (long long)y->dims[0] : -1LL, (long long)rows[k].n, mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
    mc_array_unref(&i);
}

/* One region, one node: however it is written. */
TEST(equal_slices_are_one_node)
{
    static const char *const same[][2] = {
        { "x[0:3]", "x[:3]" },   { "x[1:3, :]", "x[1:3]" },     { "x[::1, 2]", "x[:, 2]" },         { "x[:]", "x" },
        { "x[...]", "x" },       { "x[..., 1]", "x[:, 1]" },    { "x.shape[0]", "size(x, 0)" },
        { "[i, 3][0]", "i" },    { "take(x, i, axis=0)", "x[i]" }, { "x[i:i]", "x[i:i:1]" },        { "take(x, 2, axis=-1)", "x[:, 2]" },
    };
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, ?]; input i int64");
    for (size_t k = 0; k < NELEM(same); k++) {
        CHECK(mc_formula(g, same[k][0]) == mc_formula(g, same[k][1]), "%s and %s: %s", same[k][0], same[k][1],
              mc_error(g));
    }
    mc_graph_free(g);
}

TEST(texts_of_indexing)
{
    static const char *const rows[][2] = {
        { "x[1:3, ::-1]", "x[1:3, ::-1]" },         { "(x + x)[0]", "(x + x)[0]" },     { "(-x)[i]", "(-x)[i]" },
        { "tanh(x)[i:, 1]", "tanh(x)[i:, 1]" },     { "x[k]", "x[k]" },                 { "x[:, k]", "x[:, k]" },
        { "x[k, [1, 2]]", "x[k, [1i64, 2i64]]" },   { "set_subtensor(x[2:], 0)", NULL }, { "inc_subtensor(x[k], 1)", NULL },
        { "x[1:][k]", "x[1:][k]" },                 { "inc_subtensor(x[1:][k], 1)", NULL }, { "x[x > 0]", NULL },
        { "x[:, None, 1:]", NULL },                 { "[1, 2, 3][1:]", NULL },           { "x[i, k]", "x[i, k]" },
        { "set_subtensor(x[1:][:, 2:], 1)", NULL }, { "[1, 2, 3][k]", NULL },
    };
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, ?]; input i int64; input k int64[?]");
    for (size_t r = 0; r < NELEM(rows); r++) {
        mc_node *n = mc_formula(g, rows[r][0]);
        char *text = mc_node_text(n);
        CHECK(!mc_is_error(n) && (!rows[r][1] || strcmp(text, rows[r][1]) == 0), "%s prints as %s  %s",
              rows[r][0], text, mc_error(g));
        CHECK(mc_formula(g, text) == n, "%s prints as %s, another node  %s", rows[r][0], text, mc_error(g));
        mc_text_free(text);
    }
    mc_graph_free(g);
}

TEST(mistakes_in_indexing)
{
    static const char *const rows[][2] = {
        { "x[1, 2, 3]", "too many indices: 3 for a tensor of rank 2" },
        { "set_subtensor(x[0], x)", "set_subtensor: the value has rank 2, but the region has rank 1" },
        { "set_subtensor(n[0], 0.5)", "set_subtensor: a value of dtype float64 would be rounded to int64; cast it" },
        { "inc_subtensor(x[0], d)", "inc_subtensor: a value of dtype float64 would be rounded to float32; cast it" },
        { "set_subtensor(s[:2], s)", "a value of shape (5,) does not broadcast to a region of shape (2,)" },
        { "set_subtensor(x.T, 0)", "the first argument must be an indexed tensor" },
        { "set_subtensor(expand_dims(x, 1), 0)", "the first argument must be an indexed tensor" },
        { "gather(x, n, axes=[5])", "gather: axis 5 is out of range for rank 2" },
        { "gather(x, [n, n], axes=[1, -1])", "the axes must be ascending" },
        { "gather(x, d, axes=[0])", "an index tensor must hold integers, not float64" },
        { "gather(x, [n], axes=[0, 1])", "gather: 1 index tensors are given for 2 axes" },
        { "subtensor(x, [], spec=[1, 2])", "the index has 2 numbers; rank 2 needs 14" },
        { "subtensor(x, [], spec=[0, 2, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1])", "bound 1 is out of range" },
        { "subtensor(x, d, spec=[0, 2, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1])", "the bounds of a slice must be integers" },
        { "nonzero(sum(x))", "nonzero: expected at least one axis, got a scalar" },
        { "take(x, n, mode=\"wrong\")", "take: unknown mode 'wrong'" },
        { "take(x, d)", "take: the indices must be integers, not float64" },
        { "take(x, n, axis=2)", "take: axis 2 is out of range for rank 2" },
    };
    for (size_t r = 0; r < NELEM(rows); r++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[?, ?]; input n int64[?]; input d float64; input s float32[5]");
        mc_formula(g, rows[r][0]);
        CHECK(strstr(mc_error(g), rows[r][1]), "%s says %s", rows[r][0], mc_error(g));
        mc_graph_free(g);
    }
}

/* ---- gradients ---- */

TEST(gradients_of_indexing)
{
    static const char *const rows[] = {
        "x[1:3]", "x[::-1, 1]", "x[i, :2]", "x[:, -2:]", "x[1:1]", "x[5:, ::2]", "x[k]", "x[:, k]", "x[k, k]", "x[[0, 0, 1]]",
        "x[x.shape[0] - 1]", "set_subtensor(x[1:3], y)", "inc_subtensor(x[1:3], y)", "set_subtensor(x[i], sum(y))",
        "inc_subtensor(x[:, ::2], x[:, 1:3])", "set_subtensor(x[k], x[[0, 1, 2]])", "inc_subtensor(x[k], 2 * x[:3])",
        "inc_subtensor(x[k, [0, 1, 2]], y[0, :3])", "set_subtensor(x[1:][[0, 2]], y)", "inc_subtensor(x[:, k], expand_dims(y[0, :2], 0)[:, [0, 1, 1]])",
        "inc_subtensor(x[:, 1:3], y[0, :1])", "inc_subtensor(x[k], dimshuffle(y[:, :1], [1, 0])[:, [0, 1, 1, 1]])",
        "take(x, k, axis=1, mode=\"wrap\")", "take(x, k)", "x[c > 0]", "x[c[:, 0] > 0, 1:]", "fill_diagonal(x, 3)", "x[i, k]", "x[k, :2][:, None]",
        "set_subtensor(x[:2], sum(x))", "split(x, [1, 3], axis=1)[1]", "nonzero_values(c) * sum(x)",
    };
    mc_array *x = sample(MC_FLOAT64, 2, (int64_t[]){ 4, 4 }, -1, 1),
             *y = sample(MC_FLOAT64, 2, (int64_t[]){ 2, 4 }, -1, 1);
    mc_array *c = sample(MC_FLOAT64, 2, (int64_t[]){ 4, 4 }, -1, 1), *i = mc_array_scalar(MC_INT64, -2);
    mc_array *k = mc_array_from(MC_INT64, MC_SHAPE(3), (int64_t[]){ 2, -1, 2 });
    mc_array *k2 = mc_array_from(MC_INT64, MC_SHAPE(3),
                                 (int64_t[]){ 2, 0, 1 }); /* no repetition: set has one gradient */
    for (size_t r = 0; r < NELEM(rows); r++) {
        struct leaf leaf[] = {
            { "x", x, (unsigned)test_random(), false }, { "y", y, 3, false }, { "c", c, 0, true },
            { "i", i, 0, true }, { "k", strstr(rows[r], "set_sub") ? k2 : k, 0, true },
        };
        check_slopes(5, leaf, rows[r]);
    }
    mc_array *all[] = { x, y, c, i, k, k2 };
    for (size_t r = 0; r < NELEM(all); r++) {
        mc_array_unref(&all[r]);
    }
}

TEST(indexing_without_memory)
{
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 4, 4 }, -1, 1),
             *k = mc_array_from(MC_INT64, MC_SHAPE(3), (int64_t[]){ 2, -1, 2 });
    struct leaf leaf[] = { { "x", x, 0, false }, { "k", k, 0, false } };
    static const char *const rows[] = { "x[1:3, ::-1]", "inc_subtensor(x[k, 0], 1)", "set_subtensor(x[:2], x[1])",
                                        "x[x > 0]", "take(x, k, mode=\"wrap\")" };
    for (size_t r = 0; r < NELEM(rows); r++) {
        ALLOC_FAIL_LOOP {
            mc_graph *g = mc_graph_new();
            if (g) {
                mc_node *in[2] = { mc_input(g, "x", MC_FLOAT32, 2), mc_input(g, "k", MC_INT64, 1) },
                        *y = mc_formula(g, rows[r]);
                mc_array *out = NULL;
                mc_status s = mc_is_error(y)
                                  ? mc_graph_status(g)
                                  : mc_eval(2, in, (mc_array *[]){ leaf[0].a, leaf[1].a }, 1, &y, &out);
                CHECK(s == MC_OK || ALLOC_FAILED, "%s failed with memory: %s", rows[r], mc_last_error());
                CHECK(s < 0 || out, "%s has no result", rows[r]);
                mc_array_unref(&out);
            }
            mc_graph_free(g);
        }
    }
    mc_array_unref(&x);
    mc_array_unref(&k);
}

/* t_ops_gather.c: index tensors, masks, nonzero and take against loops that follow NumPy's words, element by
 * element. */
#include "op_fixture.h"

/* ---- index tensors ---- */

struct gather_case {
    mc_array *x, *index[4];
    struct leaf leaf[6];
    int nleaf, nindex, nspan, rank, nout, first; /* first: where the axes spanned stand */
    int64_t axis[4], span[3], dims[MC_MAX_RANK];
    char text[100];
};

static struct gather_case random_gather(mc_dtype d)
{
    static const char *const names[4] = { "i", "j", "k", "l" };
    static const mc_dtype ints[] = { MC_INT64, MC_INT32, MC_INT8, MC_INT16 };
    struct gather_case c = { .rank = 1 + (int)(test_random() % 4) };
    int64_t dims[4];
    unsigned chosen = 0;
    for (int i = 0; i < c.rank; i++) {
        dims[i] = 1 + (int64_t)(test_random() % 4);
    }
    while (!chosen) {
        chosen = (unsigned)test_random() & ((1u << c.rank) - 1);
    }
    c.x = sample(d, c.rank, dims, 0, 9);
    c.leaf[c.nleaf++] = (struct leaf){ "x", c.x, (unsigned)test_random(), false };
    c.nspan = 1 + (int)(test_random() % 2);
    for (int k = 0; k < c.nspan; k++) {
        c.span[k] = (int64_t)(test_random() % 4);
    }
    strcpy(c.text, "x[");
    for (int i = 0; i < c.rank; i++) {
        strcat(c.text, i ? ", " : "");
        if (!(chosen >> i & 1)) {
            strcat(c.text, ":");
            continue;
        }
        int r = c.nindex ? (int)(test_random() % (uint64_t)(c.nspan + 1)) : c.nspan;
        int64_t idims[3];
        unsigned ones = 0;
        for (int k = 0; k < r; k++) {
            idims[k] = c.span[c.nspan - r + k];
            if (c.nindex && test_random() % 3 == 0) {
                idims[k] = 1;
                ones |= 1u << k;
            }
        }
        mc_array *a = sample(ints[test_random() % 4], r, idims, (double)-dims[i], (double)dims[i] - 1);
        c.leaf[c.nleaf++] = (struct leaf){ names[c.nindex], a, ones | (unsigned)test_random(), false };
        strcat(c.text, names[c.nindex]);
        c.axis[c.nindex] = i;
        c.index[c.nindex++] = a;
    }
    strcat(c.text, "]");
    bool together = c.axis[c.nindex - 1] - c.axis[0] == c.nindex - 1;
    c.first = together ? (int)c.axis[0] : 0;
    for (int i = 0, free = 0; i <= c.rank; i++) {
        bool taken = i < c.rank && chosen >> i & 1;
        if (free == c.first && (!taken || i == c.rank) && c.nout == free) {
            for (int k = 0; k < c.nspan; k++) {
                c.dims[c.nout++] = c.span[k];
            }
        }
        if (i < c.rank && !taken) {
            c.dims[c.nout++] = dims[i];
            free++;
        }
    }
    return c;
}

static void gather_free(struct gather_case *c)
{
    mc_array_unref(&c->x);
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&c->index[i]);
    }
}

/* Where in x the result's element `at` comes from. */
static void source_of(const struct gather_case *c, const int64_t *at, int64_t *out)
{
    for (int i = 0, n = 0, free = 0; i < c->rank; i++) {
        if (n < c->nindex && c->axis[n] == i) {
            const mc_array *a = c->index[n++];
            int64_t where[3];
            for (int k = 0; k < a->rank; k++) {
                where[k] = a->dims[k] == 1 ? 0 : at[c->first + c->nspan - a->rank + k];
            }
            int64_t v = (int64_t)mc_array_get(a, where);
            out[i] = v < 0 ? v + c->x->dims[i] : v;
        } else {
            out[i] = at[free < c->first ? free : free + c->nspan];
            free++;
        }
    }
}

TEST(index_tensors_are_numpy_s)
{
    for (int t = 0; t < (test_is_full() ? 4000 : 400); t++) {
        struct gather_case c = random_gather((mc_dtype)(t % MC_NDTYPE));
        mc_array *y = run(c.nleaf, c.leaf, c.text), *want = mc_array_new(c.x->dtype, c.nout, c.dims);
        int64_t at[MC_MAX_RANK] = { 0 }, from[4];
        if (mc_array_size(want)) {
            do {
                source_of(&c, at, from);
                mc_array_set(want, at, mc_array_get(c.x, from));
            } while (next_index(c.nout, c.dims, at));
        }
        check_same(y, want, c.text);
        mc_array_unref(&y);
        mc_array_unref(&want);
        gather_free(&c);
    }
}

/* Repeated indices: the last one sets, all of them add. */
TEST(index_tensors_set_and_increase)
{
    for (int t = 0; t < (test_is_full() ? 4000 : 400); t++) {
        mc_dtype d = (mc_dtype)(t % MC_NDTYPE);
        struct gather_case c = random_gather(d);
        bool set = test_random() % 2;
        mc_array *y = sample(d, c.nout, c.dims, 0, 3), *want = mc_array_copy(c.x);
        c.leaf[c.nleaf++] = (struct leaf){ "y", y, 0, false };
        char text[160];
        snprintf(text, sizeof text, "%s_subtensor(%s, y)", set ? "set" : "inc", c.text);
        mc_array *have = run(c.nleaf, c.leaf, text);
        int64_t outer[MC_MAX_RANK] = { 0 }, at[MC_MAX_RANK] = { 0 }, to[4];
        /* in C order of the places that the index tensors span, whatever stands in front of them */
        bool any = mc_dims_count(c.nout, c.dims) > 0;
        while (any) {
            int64_t inner[MC_MAX_RANK] = { 0 }, free_dims[MC_MAX_RANK];
            int nfree = c.nout - c.nspan;
            for (int k = 0; k < nfree; k++) {
                free_dims[k] = c.dims[k < c.first ? k : k + c.nspan];
            }
            do {
                for (int k = 0; k < c.nout; k++) {
                    bool spans = k >= c.first && k < c.first + c.nspan;
                    at[k] = spans ? outer[k - c.first] : inner[k < c.first ? k : k - c.nspan];
                }
                source_of(&c, at, to);
                double v = (set ? 0 : mc_array_get(want, to)) + mc_array_get(y, at);
                mc_array_set(want, to, d == MC_BOOL ? v != 0 : v);
            } while (next_index(nfree, free_dims, inner));
            any = next_index(c.nspan, c.span, outer);
        }
        check_same(have, want, text);
        mc_array_unref(&have);
        mc_array_unref(&want);
        mc_array_unref(&y);
        gather_free(&c);
    }
}

TEST(index_tensors_out_of_range)
{
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 5 }, -1, 1),
             *i = mc_array_from(MC_INT32, MC_SHAPE(2), (int32_t[]){ 0, -6 });
    mc_array *empty = mc_array_new(MC_FLOAT32, MC_SHAPE(0, 2));
    struct leaf leaf[] = { { "x", x, 0, false }, { "i", i, 0, false }, { "e", empty, 0, false } };
    CHECK(!run(3, leaf, "x[:, i]") && mc_last_status() == MC_EINDEX &&
              strcmp(mc_last_error(), "index -6 is out of range for axis 1 with size 5") == 0,
          "%s", mc_last_error());
    CHECK(!run(3, leaf, "inc_subtensor(x[i], 1)") &&
              strstr(mc_last_error(), "index -6 is out of range for axis 0"),
          "%s", mc_last_error());
    CHECK(!run(3, leaf, "e[i]") && strstr(mc_last_error(), "index 0 is out of range for axis 0 with size 0"),
          "%s", mc_last_error());
    CHECK(!run(3, leaf, "e[:, i]") &&
              strstr(mc_last_error(), "index -6 is out of range for axis 1 with size 2"),
          "an empty result does not excuse: %s", mc_last_error());
    mc_array_unref(&x);
    mc_array_unref(&i);
    mc_array_unref(&empty);
}

/* ---- masks, nonzero, take ---- */

TEST(nonzero_finds_what_is_not_zero)
{
    for (int t = 0; t < 60; t++) {
        mc_dtype d = (mc_dtype)(t % MC_NDTYPE);
        int rank = 1 + t % 3;
        int64_t dims[3] = { (int64_t)(test_random() % 4), 3, (int64_t)(test_random() % 3) + 1 },
                at[3] = { 0 }, n = 0, place[3][64];
        mc_array *x = sample(d, rank, dims, mc_is_float(d) ? -.4 : 0, mc_is_float(d) ? .4 : 1);
        if (mc_array_size(x)) {
            do {
                if (mc_is_float(d)) { /* half of them */
                    mc_array_set(x, at, test_random() % 2 ? mc_array_get(x, at) : 0);
                }
                if (mc_array_get(x, at) != 0) {
                    for (int k = 0; k < rank; k++) {
                        place[k][n] = at[k];
                    }
                    n++;
                }
            } while (next_index(rank, dims, at));
        }
        struct leaf leaf[] = { { "x", x, 0, false } };
        for (int k = 0; k < rank; k++) {
            char text[32];
            snprintf(text, sizeof text, rank > 1 ? "nonzero(x)[%d]" : "nonzero(x)", k);
            mc_array *y = run(1, leaf, text), *want = mc_array_from(MC_INT64, 1, &n, place[k]);
            check_same(y, want, text);
            mc_array_unref(&y);
            mc_array_unref(&want);
        }
        mc_array *y = run(1, leaf, "nonzero_values(x)"), *mask = run(1, leaf, "x[neq(x, 0)]");
        CHECK(y && y->dims[0] == n, "nonzero_values: %s", mc_last_error());
        for (int64_t i = 0; y && i < n; i++) {
            int64_t from[3] = { place[0][i], place[rank > 1][i], place[rank > 2 ? 2 : 0][i] };
            CHECK(mc_array_get(y, &i) == mc_array_get(x, from), "element %lld", (long long)i);
        }
        check_same(mask, y, "x[neq(x, 0)]");
        mc_array_unref(&mask);
        mc_array_unref(&y);
        mc_array_unref(&x);
    }
}

TEST(nan_is_not_zero)
{
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(4), (float[]){ 0, 0.f / 1, -0.f, 1 });
    mc_array_set(x, (int64_t[]){ 1 }, 0. / mc_array_get(x, (int64_t[]){ 0 }));
    struct leaf leaf[] = { { "x", x, 0, false } };
    mc_array *y = run(1, leaf, "nonzero(x)"),
             *want = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 1, 3 });
    check_same(y, want, "NaN, and -0");
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_array_unref(&want);
}

TEST(take_has_three_modes)
{
    mc_array *x = sample(MC_FLOAT64, 2, (int64_t[]){ 4, 3 }, -1, 1);
    mc_array *i = mc_array_from(MC_INT64, MC_SHAPE(2, 3), (int64_t[]){ -5, 0, 3, 4, 9, -1 });
    struct leaf leaf[] = { { "x", x, 0, false }, { "i", i, 0, false } };
    static const int wrap[6] = { 3, 0, 3, 0, 1, 3 }, hold[6] = { 0, 0, 3, 3, 3, 0 };
    mc_array *w = run(2, leaf, "take(x, i, axis=0, mode=\"wrap\")"),
             *c = run(2, leaf, "take(x, i, axis=0, mode=\"clip\")");
    mc_array *flat = run(2, leaf, "take(x, abs(i))"), *column = run(2, leaf, "take(x, i % 3, axis=1)");
    REQUIRE(w && c && flat && column, "%s", mc_last_error());
    CHECK(w->rank == 3 && w->dims[0] == 2 && w->dims[1] == 3 && w->dims[2] == 3, "rank %d", w->rank);
    CHECK(column->rank == 3 && column->dims[0] == 4 && column->dims[2] == 3, "rank %d", column->rank);
    for (int k = 0; k < 6; k++) {
        int64_t at[3] = { k / 3, k % 3, 2 }, index = (int64_t)mc_array_get(i, at),
                a = index < 0 ? -index : index;
        CHECK(mc_array_get(w, at) == mc_array_get(x, (int64_t[]){ wrap[k], 2 }), "wrap %d", k);
        CHECK(mc_array_get(c, at) == mc_array_get(x, (int64_t[]){ hold[k], 2 }), "clip %d", k);
        CHECK(mc_array_get(flat, at) == mc_array_get(x, (int64_t[]){ a / 3, a % 3 }), "flat %d", k);
    }
    CHECK(!run(2, leaf, "take(x, i, axis=0)") && mc_last_status() == MC_EINDEX, "%s", mc_last_error());
    mc_array *m = mc_array_from(MC_BOOL, MC_SHAPE(4), (bool[]){ 1, 0, 0, 1 }), *rows, *want;
    struct leaf more[] = { { "x", x, 0, false }, { "m", m, 0, false } };
    rows = run(2, more, "compress(m, x, axis=0)");
    want = run(2, more, "x[[0, 3]]");
    check_same(rows, want, "compress");
    mc_array *d = run(2, more, "fill_diagonal(x, 7)");
    REQUIRE(d, "%s", mc_last_error());
    for (int64_t k = 0; k < 12; k++) {
        int64_t at[2] = { k / 3, k % 3 };
        double v = at[0] == at[1] ? 7 : mc_array_get(x, at);
        CHECK(mc_array_get(d, at) == v, "fill_diagonal %lld", (long long)k);
    }
    mc_array *all[] = { x, i, w, c, flat, column, m, rows, want, d };
    for (size_t k = 0; k < NELEM(all); k++) {
        mc_array_unref(&all[k]);
    }
}

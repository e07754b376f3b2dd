/* t_export_host.c: ops without a kernel printed as C that stands alone: the bits of the reference. */
#include "export/export.h"
#include "export_text.h"
#include "op/op.h"

enum { MOST_IN = 8 };

/* The node of this op in the formula is printed.  Integer inputs are drawn from [low, high). */
static const struct row {
    const char *op, *declared, *formula;
    int low, high;
} rows[] = {
    { "random_uniform", "input r uint64[2]", "random_uniform(r, [7, 9], stream=3, dtype=float32)", 0, 1000 },
    { "random_uniform", "input r uint64[2]", "random_uniform(r, [8, 8], stream=0, dtype=float32)", 0, 1000 },
    { "random_uniform", "input r uint64[2]", "random_uniform(r, [5, 5], stream=70000, dtype=float64)", 0, 1000 },
    { "random_uniform", "input r uint64[2]", "random_uniform(r, [2, 0], stream=1, dtype=float64)", 0, 1000 },
    { "gather", "input x float32[10, 7]; input i int64[5]", "x[i]", -10, 10 },
    { "gather", "input x float32[10, 7]; input i int32[3, 4]", "x[i]", 0, 10 },
    { "gather", "input x float64[10, 2, 3]; input i uint8[6]", "x[i]", 0, 10 },
    { "gather", "input x int16[4, 10, 3]; input i int64[5]", "x[:, i]", -10, 10 },
    { "gather", "input x bool[4, 10]; input i int64[5, 2]", "x[:, i]", -10, 10 },
    { "gather", "input x float32[10, 10]; input i int64[5]; input j int32[5]", "x[i, j]", -10, 10 },
    { "gather", "input x float32[10, 10, 4]; input i int64[5, 1]; input j int32[3]", "x[i, j]", -10, 10 },
    { "gather", "input x float32[10, 3, 10]; input i int64[5]; input j uint64[5]", "x[i, :, j]", 0, 10 },
    { "gather", "input x float16[10, 3]; input i int64[5]", "x[i]", -10, 10 },
    { "gather", "input x float32[10]; input i int64[6]", "x[i]", -10, 10 },
    { "gather", "input x float32[10, 0]; input i int64[6]", "x[i]", -10, 10 },
    { "gather", "input x float32[10, 3]; input i int64[0]", "x[i]", -10, 10 },
    { "gather", "input x float32[4, 4, 4]; input i int64[6]; input j int64[6]; input k int64[6]", "x[i, j, k]", -4, 4 },
    { "gather", "input x float32[9, 6]; input i int64[4]", "take(x, i, axis=1)", 0, 6 },
    { "gather_update", "input x float32[10, 7]; input i int64[25]; input y float32[25, 7]", "inc_subtensor(x[i], y)", -10, 10 },
    { "gather_update", "input x float64[10, 7]; input i int64[25]; input y float64[25, 7]", "set_subtensor(x[i], y)", -10, 10 },
    { "gather_update", "input x float32[10, 7]; input i int64[25]", "inc_subtensor(x[i], 1)", -10, 10 },
    { "gather_update", "input x float32[4, 10, 3]; input i int64[6]; input y float32[4, 6, 3]", "inc_subtensor(x[:, i], y)", -10, 10 },
    { "gather_update", "input x float32[10, 10]; input i int64[30]; input j int64[30]; input y float32[30]", "inc_subtensor(x[i, j], y)", -10, 10 },
    { "gather_update", "input x int8[10, 3]; input i int64[30]; input y int8[30, 3]", "inc_subtensor(x[i], y)", -10, 10 },
    { "gather_update", "input x bool[10, 3]; input i int64[4]; input y bool[4, 3]", "set_subtensor(x[i], y)", -10, 10 },
    { "gather_update", "input x float32[10, 3]; input i int64[0]; input y float32[0, 3]", "inc_subtensor(x[i], y)", -10, 10 },
    { "gather_update", "input x float32[10, 7]; input i int64[3, 2]", "grad(sum(sqr(x[i])), x)", -10, 10 },
    { "subtensor_update", "input x float32[9, 7]; input y float32[4, 7]", "inc_subtensor(x[1:9:2], y)", 0, 1 },
    { "subtensor_update", "input x float32[9, 7]; input y float32[9]", "set_subtensor(x[:, -2], y)", 0, 1 },
    { "subtensor_update", "input x float64[9, 7]", "set_subtensor(x[::-3, 1:4], 2)", 0, 1 },
    { "subtensor_update", "input x int32[9, 7]; input y int32[9, 1]", "inc_subtensor(x[:, 2:5], y)", -100, 100 },
    { "subtensor_update", "input x float32[9, 7]; input i int64", "set_subtensor(x[i], 2)", -9, 9 },
    { "subtensor_update", "input x float32[9, 8, 7]; input i int64; input j int32; input y float32[4]", "inc_subtensor(x[i, 4:, j], y)", -7, 7 },
    { "cumsum", "input x float32[6, 9]", "cumsum(x, axis=1)", 0, 1 },
    { "cumsum", "input x float32[6, 9]", "cumsum(x, axis=0)", 0, 1 },
    { "cumsum", "input x float64[3, 4, 5]", "cumsum(x, axis=1)", 0, 1 },
    { "cumsum", "input x int8[3, 40]", "cumsum(x, axis=1)", -128, 127 },
    { "cumsum", "input x bool[30]", "cumsum(x)", 0, 2 },
    { "cumsum", "input x uint16[5, 7, 2]", "cumsum(x, axis=0)", 0, 60000 },
    { "cummax", "input x float32[6, 9]", "cummax(where(eq(arange(9), 5), nan, x), axis=1)", -1, 1 },
    { "cummax", "input x int8[5, 7, 2]", "cummax(x, axis=1)", -128, 127 },
    { "cummin", "input x float64[6, 9]", "cummin(x, axis=0)", -1, 1 },
    { "cummin", "input x bool[30]", "cummin(x)", 0, 2 },
    { "cumprod", "input x float32[6, 9]", "cumprod(x, axis=1)", 0, 1 },
    { "cumprod", "input x int32[3, 40]", "cumprod(x, axis=1)", -9, 9 },
    { "recurrence", "input x float32[4, 6]; input v float32[4, 6]", "recurrence(x, v, axis=1)", 0, 1 },
    { "recurrence", "input x float64[4, 6]; input v float64[4, 6]", "recurrence(x, v, axis=0, start=1, back=True)", 0, 1 },
    { "sort", "input x float32[5, 37]", "sort(x)", 0, 1 },
    { "sort", "input x float64[37, 5]", "sort(x, axis=0)", 0, 1 },
    { "sort", "input x uint64[37]", "sort(x)", -50, 50 },
    { "sort", "input x int16[2, 64]", "sort(x)", -9, 9 },
    { "argsort", "input x float32[5, 37]", "argsort(x)", 0, 1 },
    { "argsort", "input x int64[5, 37, 2]", "argsort(x, axis=1)", -9, 9 },
    { "argsort", "input x bool[20]", "argsort(x)", 0, 2 },
    { "permute_row_elements", "input x float32[5, 8]; input p int64[5, 8]", "permute_row_elements(x, p)", 0, 8 },
    { "channel_sum", "input x float32[2, 9, 3]", "channel_sum(x, 4)", 0, 1 },
    { "channel_sum", "input x float64[2, 9, 3]", "channel_sum(x, 4, back=True)", 0, 1 },
    { "channel_sum", "input x float64[2, 9, 3]", "channel_sum(x, 4, blocked=True)", 0, 1 },
    { "join", "input x float32[2, 3]; input y float32[2, 5]; input z float32[2, 1]", "join(x, y, z, axis=1)", 0, 1 },
    { "join", "input x int8[2, 3]; input y int8[0, 3]; input z int8[4, 3]", "join(x, y, z, axis=0)", -9, 9 },
    { "stack", "input x int64; input y int64", "stack(x, y)", -9, 9 },
    { "alloc", "input x float32[3, 1]", "alloc(x, [4, 3, 5])", 0, 1 },
    { "arange", "input x int32; input y int32; input z int32", "arange(x, x + 10, x * 0 + 2)", -9, 9 },
    { "reshape", "input x float32[6, 4]", "reshape(x, [8, 3])", 0, 1 },
    { "dot", "input x int32[4, 6]; input y int32[6, 5]", "dot(x, y)", -99999, 99999 },
    { "batched_dot", "input x int8[3, 4, 6]; input y int8[3, 6, 5]", "batched_dot(x, y)", -99, 99 },
    { "assert_", "input x float32[4, 6]; input y bool[3, 2]", "assert_(x, y)", 1, 2 },
};

struct made {
    mc_graph *g;
    const mc_node *n;
    mc_array *in[MOST_IN], *want;
};

/* a with other strides: transposed in memory, with gaps. */
static mc_array *spread(const mc_array *a)
{
    int64_t dims[MC_MAX_RANK], strides[MC_MAX_RANK];
    for (int i = 0; i < a->rank; i++) {
        dims[i] = a->dims[a->rank - 1 - i] + 1;
    }
    mc_array *wide = mc_array_new(a->dtype, a->rank, dims);
    for (int i = 0; i < a->rank; i++) {
        strides[i] = wide->strides[a->rank - 1 - i];
    }
    mc_array *view = mc_array_view(wide, a->rank, a->dims, strides, wide->data);
    CHECK(mc_array_assign(view, a) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&wide);
    return view;
}

static mc_array *random_array(const struct mc_type *t, int low, int high)
{
    mc_array *a = mc_array_new(t->dtype, t->rank, t->dims);
    const int64_t count = mc_array_size(a), size = mc_dtypes[t->dtype].size;
    if (mc_is_float(t->dtype)) {
        export_fill(t->dtype, a->data, count);
    }
    for (int64_t i = 0; i < count && !mc_is_float(t->dtype); i++) {
        mc_store_i64(t->dtype, a->data + i * size, low + (int64_t)(test_random() % (uint64_t)(high - low)));
    }
    return a;
}

/* The node, the arrays that it reads, and its result by the reference. */
static bool make(const struct row *row, bool strided, struct made *m)
{
    mc_node *from[MOST_IN], *wanted[MOST_IN];
    mc_array *value[MOST_IN], *out[16] = { NULL };
    size_t count = 0;
    int nfrom = 0;
    *m = (struct made){ .g = mc_graph_new() };
    mc_formula(m->g, row->declared);
    mc_node *y = mc_formula(m->g, row->formula);
    if (!CHECK(y && !mc_is_error(y), "%s: %s", row->formula, mc_last_error())) {
        return false;
    }
    mc_node **list = mc_graph_reach(1, &y, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i]->op == &mc_op_input) {
            from[nfrom] = list[i];
            value[nfrom++] = random_array(&list[i]->type, row->low, row->high);
        }
        m->n = mc_is_op(list[i], row->op) ? list[i] : m->n;
    }
    mc_free(list);
    if (!CHECK(m->n, "%s has no %s", row->formula, row->op)) {
        return false;
    }
    for (int i = 0; i < m->n->nin; i++) {
        wanted[i] = m->n->in[i];
    }
    CHECK(mc_eval(nfrom, from, value, m->n->nin, wanted, m->in) == MC_OK, "%s: %s", row->formula,
          mc_last_error());
    for (int i = 0; i < m->n->nin && strided; i++) {
        mc_array *a = spread(m->in[i]);
        mc_array_unref(&m->in[i]);
        m->in[i] = a;
    }
    for (int i = 0; i < nfrom; i++) {
        mc_array_unref(&value[i]);
    }
    CHECK(mc_eval_node(m->n, m->in, out) == MC_OK, "%s: %s", row->formula, mc_last_error());
    m->want = out[0];
    return m->want != NULL;
}

static void made_free(struct made *m)
{
    for (int i = 0; i < MOST_IN; i++) {
        mc_array_unref(&m->in[i]);
    }
    mc_array_unref(&m->want);
    mc_graph_free(m->g);
}

static const char *const at[MOST_IN] = { "p[0]", "p[1]", "p[2]", "p[3]", "p[4]", "p[5]", "p[6]", "p[7]" };

static struct mc_export_value value_of(const mc_array *a, int i)
{
    return (struct mc_export_value){ mc_type_make(a->dtype, a->rank, a->dims), a->strides, at[i], NULL };
}

static mc_status print(struct mc_str *text, const struct made *m)
{
    struct mc_export_value in[MOST_IN], result = value_of(m->want, m->n->nin);
    for (int i = 0; i < m->n->nin; i++) {
        in[i] = value_of(m->in[i], i);
    }
    return mc_export_host_op(text, m->n, in, &result);
}

/* What the block returns; *got is its result, whose bytes were 0x5a before. */
static int run(const struct made *m, export_run *fn, mc_array **got)
{
    char *p[MOST_IN + 1];
    *got = mc_array_new(m->want->dtype, m->want->rank, m->want->dims);
    memset((*got)->data, 0x5a, (size_t)mc_array_size(*got) * mc_dtypes[(*got)->dtype].size);
    for (int i = 0; i < m->n->nin; i++) {
        p[i] = m->in[i]->data;
    }
    p[m->n->nin] = (*got)->data;
    return fn ? fn(p) : -1;
}

TEST(printed_host_ops_give_the_reference)
{
    NEEDS_COMPILER();
    static struct made m[2 * NELEM(rows)];
    struct mc_str text = { 0 };
    const int n = (int)NELEM(m);
    mc_str_add(&text, export_head);
    for (int i = 0; i < n; i++) {
        export_begin(&text, i);
        if (make(&rows[i / 2], i % 2, &m[i])) {
            CHECK(print(&text, &m[i]) == MC_OK, "%s: %s", rows[i / 2].formula, mc_last_error());
        }
        export_end(&text);
    }
    mc_str_add(&text, export_foot);
    export_warnings(&text);
    struct mc_code *code = export_load(&text);
    for (int i = 0; i < n && code; i++) {
        mc_array *got = NULL;
        const int failed = m[i].want ? run(&m[i], export_function(code, i), &got) : -1;
        CHECK(failed == 0, "%s of %s returns %d", rows[i / 2].formula, rows[i / 2].declared, failed);
        CHECK(failed < 0 || mc_array_same_bits(got, m[i].want), "%s of %s, %s", rows[i / 2].formula,
              rows[i / 2].declared, i % 2 ? "strided" : "contiguous");
        mc_array_unref(&got);
        made_free(&m[i]);
    }
    mc_code_unref(&code);
    mc_str_free(&text);
}

/* A bad index, or a condition that does not hold: nothing is written. */
TEST(printed_host_ops_check_first)
{
    NEEDS_COMPILER();
    static const struct { struct row row; int input; double bad; } wrong[] = {
        { { "gather", "input x float32[10, 7]; input i int64[5]", "x[i]", 0, 10 }, 1, 10 },
        { { "gather", "input x float32[10, 7]; input i int64[5]", "x[i]", 0, 10 }, 1, -11 },
        { { "gather", "input x float32[5, 10, 2]; input i int64[5]; input j int64[5]", "x[i, j]", 0, 5 }, 2, 10 },
        { { "gather_update", "input x float32[10, 7]; input i int64[25]; input y float32[25, 7]", "inc_subtensor(x[i], y)", 0, 10 }, 2, 10 },
        { { "subtensor_update", "input x float32[5, 8]; input i int64", "set_subtensor(x[:, i], 1)", 0, 8 }, 2, 8 },
        { { "permute_row_elements", "input x float32[5, 8]; input p int64[5, 8]", "permute_row_elements(x, p)", 0, 8 }, 1, -1 },
        { { "assert_", "input x float32[4, 6]; input y bool[3, 2]", "assert_(x, y)", 1, 2 }, 1, 0 },
    };
    static struct made m[NELEM(wrong)];
    struct mc_str text = { 0 };
    mc_str_add(&text, export_head);
    for (int i = 0; i < (int)NELEM(wrong); i++) {
        export_begin(&text, i);
        if (make(&wrong[i].row, false, &m[i])) {
            CHECK(print(&text, &m[i]) == MC_OK, "%s: %s", wrong[i].row.formula, mc_last_error());
        }
        export_end(&text);
    }
    mc_str_add(&text, export_foot);
    struct mc_code *code = export_load(&text);
    for (int i = 0; i < (int)NELEM(wrong) && code; i++) {
        mc_array *got, *x = m[i].in[wrong[i].input];
        const int64_t last = mc_array_size(x) - 1;
        mc_store_f64(x->dtype, x->data + last * (int64_t)mc_dtypes[x->dtype].size, wrong[i].bad);
        CHECK(run(&m[i], export_function(code, i), &got) == 1, "%s does not fail", wrong[i].row.formula);
        bool kept = true;
        for (int64_t k = 0; k < mc_array_size(got) * (int64_t)mc_dtypes[got->dtype].size; k++) {
            kept &= got->data[k] == 0x5a;
        }
        CHECK(kept, "%s writes before it fails", wrong[i].row.formula);
        mc_array_unref(&got);
        made_free(&m[i]);
    }
    mc_code_unref(&code);
    mc_str_free(&text);
}

TEST(printed_copies)
{
    NEEDS_COMPILER();
    static const int64_t dims[] = { 3, 4, 5 };
    struct mc_str text = { 0 };
    mc_array *from[2 * MC_NDTYPE], *to[2 * MC_NDTYPE];
    mc_str_add(&text, export_head);
    for (int i = 0; i < 2 * MC_NDTYPE; i++) {
        const struct mc_type t = mc_type_make((mc_dtype)(i / 2), 3, dims);
        mc_array *a = random_array(&t, 0, 2);
        from[i] = i % 2 ? spread(a) : mc_array_ref(a);
        to[i] = i % 2 ? mc_array_new(t.dtype, 3, dims) : spread(a);
        memset(to[i]->data, 0, mc_dtypes[t.dtype].size);
        mc_array_unref(&a);
        const struct mc_export_value f = value_of(from[i], 0), v = value_of(to[i], 1);
        export_begin(&text, i);
        CHECK(mc_export_copy(&text, &f, &v) == MC_OK, "%s", mc_last_error());
        export_end(&text);
    }
    mc_str_add(&text, export_foot);
    export_warnings(&text);
    struct mc_code *code = export_load(&text);
    for (int i = 0; i < 2 * MC_NDTYPE; i++) {
        export_run *fn = code ? export_function(code, i) : NULL;
        char *p[] = { from[i]->data, to[i]->data };
        CHECK(fn && fn(p) == 0 && mc_array_same_bits(from[i], to[i]), "a copy of %s",
              mc_dtype_name((mc_dtype)(i / 2)));
        mc_array_unref(&from[i]);
        mc_array_unref(&to[i]);
    }
    mc_code_unref(&code);
    mc_str_free(&text);
}

TEST(host_ops_that_cannot_be_printed)
{
    static const struct { struct row row; const char *says; } refused[] = {
        { { "nonzero", "input x float32[6]", "nonzero(x)", 0, 1 }, "export as C: nonzero: the size of its result depends on data" },
        { { "cumsum", "input x float16[6]", "cumsum(x)", 0, 1 }, "export as C: cumsum: half types; cast to float32" },
        { { "sort", "input x float32[40000]", "sort(x)", 0, 1 }, "lines of more than 32768 elements" },
        { { "subtensor_update", "input x float32[6]; input i int64", "set_subtensor(x[i:], 1)", 0, 6 }, "a bound of a slice depends on data" },
        { { "erf", "input x float32[6]", "erf(x)", 0, 1 }, "export as C: erf: there is no printer for this op" },
    };
    for (size_t i = 0; i < NELEM(refused); i++) {
        struct mc_str text = { 0 };
        struct made m;
        if (make(&refused[i].row, false, &m)) {
            CHECK(print(&text, &m) == MC_EUNSUPPORTED && strstr(mc_last_error(), refused[i].says), "%s",
                  mc_last_error());
            CHECK(!text.n, "something is printed: %s", text.s);
            made_free(&m);
        }
        mc_str_free(&text);
    }
}

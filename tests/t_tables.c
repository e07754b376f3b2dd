/* t_tables.c: ops that NumPy or SciPy has as well, against tests/tables.txt, which tests/tables.py has
 * computed by them: by the reference, compiled, and, where a row says so, their gradients by differences. */
#include "check.h"
#include "op/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 1 << 14, MOST_INPUTS = 24, BATCH = 24 };

struct input { char name[12]; mc_array *value; };
struct row { char flags[8], formula[200]; mc_array *want; };
struct table { struct input input[MOST_INPUTS]; int ninput; struct row *row; int nrow; };

/* "float64 2 3 4 0.5 ...": a dtype, the rank, the sizes, the elements */
static mc_array *read_array(char *at)
{
    char word[16] = "";
    int used = 0;
    mc_dtype d = MC_FLOAT64;
    int64_t dims[MC_MAX_RANK];
    if (sscanf(at, "%15s%n", word, &used) != 1 || mc_dtype_parse(word, &d) < 0) {
        return NULL;
    }
    const int rank = (int)strtol(at + used, &at, 10);
    for (int i = 0; i < rank; i++) {
        dims[i] = strtol(at, &at, 10);
    }
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        char *to = a->data + i * mc_dtypes[d].size;
        if (mc_is_float(d)) {
            mc_store_f64(d, to, strtod(at, &at));
        } else {
            mc_store_i64(d, to, strtoll(at, &at, 10));
        }
    }
    return a;
}

static bool read_table(struct table *t)
{
    char path[1024], *line = malloc(LINE);
    snprintf(path, sizeof path, "%s/tables.txt", TEST_ROOT);
    FILE *f = fopen(path, "r");
    while (f && line && fgets(line, LINE, f)) {
        int used = 0;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "input ", 6) == 0 && t->ninput < MOST_INPUTS) {
            struct input *in = &t->input[t->ninput++];
            (void)!sscanf(line + 6, "%11s %n", in->name, &used);
            in->value = read_array(line + 6 + used);
        } else if (strncmp(line, "row ", 4) == 0) {
            t->row = realloc(t->row, (size_t)(t->nrow + 1) * sizeof *t->row);
            struct row *r = &t->row[t->nrow++];
            *r = (struct row){ .want = NULL };
            (void)!sscanf(line + 4, "%7s %n", r->flags, &used);
            snprintf(r->formula, sizeof r->formula, "%s", line + 4 + used);
        } else if (strncmp(line, "want ", 5) == 0 && t->nrow) {
            t->row[t->nrow - 1].want = read_array(line + 5);
        }
    }
    free(line);
    if (f) {
        fclose(f);
    }
    return t->nrow > 0;
}

static void free_table(struct table *t)
{
    for (int i = 0; i < t->ninput; i++) {
        mc_array_unref(&t->input[i].value);
    }
    for (int i = 0; i < t->nrow; i++) {
        mc_array_unref(&t->row[i].want);
    }
    free(t->row);
}

static mc_graph *graph_of(const struct table *t, mc_node **in)
{
    mc_graph *g = mc_graph_new();
    for (int i = 0; i < t->ninput; i++) {
        const mc_array *a = t->input[i].value;
        in[i] = mc_input_sized(g, t->input[i].name, a->dtype, a->rank, NULL);
    }
    return g;
}

static void check_value(const struct row *r, const mc_array *have, const char *how)
{
    const double tol = strchr(r->flags, 'r') ? (r->want->dtype == MC_FLOAT32 ? 1e-6 : 1e-10) : 4e-15;
    if (!CHECK(have && mc_dims_equal(have->rank, have->dims, r->want->rank, r->want->dims),
               "%s, %s: another shape  %s", r->formula, how, have ? "" : mc_last_error()) ||
        !CHECK(have->dtype == r->want->dtype, "%s, %s: is %s, not %s", r->formula, how,
               mc_dtype_name(have->dtype), mc_dtype_name(r->want->dtype))) {
        return;
    }
    const int64_t at = mc_array_differs(have, r->want, tol, tol);
    if (at >= 0) {
        mc_array *flat[2] = { mc_array_copy(have), mc_array_copy(r->want) };
        double v[2];
        for (int i = 0; i < 2; i++) {
            v[i] = mc_load_f64(flat[i]->dtype, flat[i]->data + at * mc_dtypes[flat[i]->dtype].size);
            mc_array_unref(&flat[i]);
        }
        CHECK(at < 0, "%s, %s: element %lld is %.17g, not %.17g", r->formula, how, (long long)at, v[0], v[1]);
    }
}

/* By all float inputs that take part. */
static void check_gradient(const struct table *t, const struct row *r, mc_node *y, mc_node *const *in)
{
    mc_node *wrt[MOST_INPUTS];
    mc_array *value[MOST_INPUTS];
    double worst = 0;
    size_t count;
    int n = 0;
    mc_node *fixed[MOST_INPUTS], *with[MOST_INPUTS];
    int nfixed = 0;
    for (int i = 0; i < t->ninput; i++) {
        if (!mc_is_float(in[i]->type.dtype)) {
            fixed[nfixed] = in[i];
            with[nfixed++] = mc_constant(y->graph, t->input[i].value);
        }
    }
    if (!CHECK(mc_graph_replace(y->graph, nfixed, fixed, with, 1, &y) == MC_OK, "%s: %s", r->formula,
               mc_error(y->graph))) {
        return;
    }
    mc_node **list = mc_graph_reach(1, &y, &count);
    for (size_t k = 0; list && k < count; k++) {
        for (int i = 0; i < t->ninput; i++) {
            if (list[k] == in[i]) {
                wrt[n] = in[i];
                value[n++] = t->input[i].value;
            }
        }
    }
    mc_free(list);
    CHECK(n && mc_verify_grad(y, n, wrt, value, &worst) == MC_OK, "%s: gradient off by %g: %s", r->formula,
          worst, n ? mc_last_error() : "depends on nothing");
}

TEST(by_the_reference)
{
    struct table t = { .nrow = 0 };
    mc_flag_set("floatX", "float64");
    REQUIRE(read_table(&t), "no tables.txt");
    for (int i = 0; i < t.nrow; i++) {
        mc_node *in[MOST_INPUTS];
        mc_array *value[MOST_INPUTS], *have = NULL;
        mc_graph *g = graph_of(&t, in);
        mc_node *y = mc_formula(g, t.row[i].formula);
        for (int k = 0; k < t.ninput; k++) {
            value[k] = t.input[k].value;
        }
        if (CHECK(!mc_is_error(y) && t.row[i].want, "%s: %s", t.row[i].formula, mc_error(g))) {
            mc_eval(t.ninput, in, value, 1, &y, &have);
            check_value(&t.row[i], have, "reference");
            if (strchr(t.row[i].flags, 'g')) {
                check_gradient(&t, &t.row[i], y, in);
            }
        }
        mc_array_unref(&have);
        mc_graph_free(g);
    }
    CHECK(t.nrow > 150, "%d rows", t.nrow);
    free_table(&t);
}

static void run_compiled(const char *mode)
{
    struct table t = { .nrow = 0 };
    mc_flag_set("floatX", "float64");
    REQUIRE(read_table(&t), "no tables.txt");
    for (int at = 0; at < t.nrow; at += BATCH) {
        const int n = t.nrow - at < BATCH ? t.nrow - at : BATCH;
        mc_node *in[MOST_INPUTS], *y[BATCH];
        mc_array *have[BATCH] = { 0 };
        mc_arg arg[MOST_INPUTS], out[BATCH];
        mc_graph *g = graph_of(&t, in);
        for (int i = 0; i < n; i++) {
            y[i] = mc_formula(g, t.row[at + i].formula);
            out[i] = mc_arg_slot(&have[i]);
        }
        for (int k = 0; k < t.ninput; k++) {
            arg[k] = mc_arg_array(t.input[k].value);
        }
        mc_function *f = mc_compile(g, &(mc_spec){ .input = in,
                                                   .ninput = t.ninput,
                                                   .output = y,
                                                   .noutput = n,
                                                   .mode = mode,
                                                   .on_unused = "ignore" });
        if (CHECK(f && mc_call_args(f, t.ninput, arg, n, out) == MC_OK, "from %s: %s", t.row[at].formula,
                  mc_last_error())) {
            for (int i = 0; i < n; i++) {
                check_value(&t.row[at + i], have[i], mode);
            }
        }
        for (int i = 0; i < n; i++) {
            mc_array_unref(&have[i]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
    free_table(&t);
}

TEST(compiled)
{
    run_compiled("FAST_RUN");
}

TEST_FULL(checked)
{
    run_compiled("DEBUG");
}

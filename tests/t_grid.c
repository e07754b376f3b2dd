/* t_grid.c: kernels printed for a grid of threads: every scalar op on every kind of dtype, every reduction in
 * every direction, several stages.  NVRTC compiles the text for each architecture, which needs no GPU; what
 * they compute, t_kernel.c and t_device_array.c ask where there is one. */
#include "grid_text.h"

#include <stdio.h>
#include <string.h>

/* Every scalar op that takes d in one function: one map. */
static void scalar_ops(mc_dtype d)
{
    mc_graph *g = mc_graph_new();
    mc_node *in[4], *out[256];
    const struct mc_op *op;
    int n = 0;
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        in[i] = mc_input(g, name, i == 3 ? MC_BOOL : d, 2);
    }
    for (int row = 0; (op = mc_op_at(row)) && op->arity; row++) {
        bool no_bool = strcmp(op->name, "sub") == 0 || strcmp(op->name, "neg") == 0;
        mc_node *arg[3] = { in[0], in[1], in[2] };
        if (n == 256 || (op->typing == TYPE_BITS && mc_is_float(d)) || (no_bool && d == MC_BOOL)) {
            continue;
        }
        if (op->typing == TYPE_WHERE) {
            arg[0] = in[3];
        }
        out[n++] = mc_op(g, op->name, op->arity, arg, NULL);
    }
    mc_function *f = mc_compile(
        g, &(mc_spec){ .on_unused = "ignore", .input = in, .ninput = 4, .output = out, .noutput = n });
    if (CHECK(f, "%s: %s", mc_dtype_name(d), mc_error(g))) {
        compiles(f, mc_dtype_name(d));
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(grid_scalar_ops_on_floats)
{
    NEEDS_NVRTC;
    scalar_ops(MC_FLOAT32);
    scalar_ops(MC_FLOAT16);
}

TEST(grid_scalar_ops_on_integers)
{
    NEEDS_NVRTC;
    scalar_ops(MC_INT32);
    scalar_ops(MC_UINT64);
    scalar_ops(MC_BOOL);
}

TEST_FULL(grid_scalar_ops_on_the_other_dtypes)
{
    NEEDS_NVRTC;
    for (int d = 0; d < MC_NDTYPE; d++) {
        if (d != MC_FLOAT32 && d != MC_FLOAT16 && d != MC_INT32 && d != MC_UINT64 && d != MC_BOOL) {
            scalar_ops((mc_dtype)d);
        }
    }
}

TEST(grid_reductions)
{
    static const char *const axes[] = { "", ", axis=0", ", axis=1", ", axis=[0, 2]" };
    static const char *const ops[] = { "sum", "prod", "max", "min", "argmax", "any", "all", "mean", "var" };
    NEEDS_NVRTC;
    for (size_t a = 0; a < NELEM(axes); a++) {
        struct mc_str out = { 0 };
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 3);
        mc_input(g, "i", MC_INT16, 3);
        for (size_t k = 0; k < NELEM(ops); k++) {
            bool alone = strncmp(ops[k], "a", 1) == 0 && strcmp(ops[k], "argmax") != 0;
            mc_str_addf(&out, "%s%s(%s%s)", k ? ", " : "", ops[k],
                        alone   ? "x > 0"
                        : k % 2 ? "i"
                                : "x",
                        axes[a]);
        }
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, i", .outputs = out.s });
        if (CHECK(f, "%s: %s", out.s, mc_error(g))) {
            compiles(f, out.s);
        }
        mc_function_free(f);
        mc_graph_free(g);
        mc_str_free(&out);
    }
}

TEST(grid_rows_of_several_stages)
{
    NEEDS_NVRTC;
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "w", MC_FLOAT32, 1);
    mc_input(g, "h", MC_FLOAT16, 2);
    mc_function *f = mc_compile(
        g, &(mc_spec){
               .inputs = "x, w, h",
               .outputs =
                   "softmax(x), layer_norm(x, w, w), grad(sum(softmax(x) * x), x), logsumexp(h, axis=1), "
                   "softmax(h), x[::-1] + w, cast(x, 'bfloat16'), sum(layer_norm(x, w, w) * x, axis=0)" });
    REQUIRE(f, "%s", mc_error(g));
    compiles(f, "rows");
    mc_function_free(f);
    mc_graph_free(g);
}

/* The first value of a column kernel is one of the kept axes, or a scalar. */
TEST(grid_columns_of_row_values)
{
    static const char *const outputs[] = {
        "s = sum(exp(b + x), axis=0); s",           "y = exp(b + x); y, sum(y, axis=0)", "y = exp(a + x); y, sum(y, axis=0)",
        "y = x * (a * b); sum(sqr(y), axis=0), a * b", "y = where(b > 0, x, a); y, max(y, axis=0)", "sum(tanh(x * b) * a, axis=0)",
    };
    NEEDS_NVRTC;
    for (size_t i = 0; i < NELEM(outputs); i++) {
        mc_graph *g = mc_graph_new();
        const char *last = strrchr(outputs[i], ';');
        mc_formula(g, "input b float32[?]; input a float32; input x float32[?, ?]");
        if (last) {
            char before[64];
            snprintf(before, sizeof before, "%.*s", (int)(last - outputs[i]), outputs[i]);
            mc_formula(g, before);
        }
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "b, a, x",
                                                   .outputs = last ? last + 1 : outputs[i],
                                                   .on_unused = "ignore" });
        REQUIRE(f, "%s", mc_error(g));
        compiles(f, outputs[i]);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* The last stage reads what the first stored, not the three that it was made of; in halves it was rounded. */
TEST(grid_stages_read_back)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16 };
    for (size_t i = 0; i < NELEM(dtypes); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", dtypes[i], 3);
        mc_input(g, "v", dtypes[i], 3);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, v",
                           .outputs = "x * v + 1, x * v + 1 - mean(x * v + 1, axis=[0, 2], keepdims=True)" });
        REQUIRE(f, "%s", mc_error(g));
        struct mc_str text = { 0 };
        int back = 0;
        grid_text(f, &text);
        /* "const float v3 = a2[j];", but not "v0 = (float)a0[j]" */
        for (const char *s = text.s; s && (s = strstr(s, " = a")); s++) {
            back += s[4] >= '0' && s[4] <= '9' && s[5] == '[';
        }
        CHECK((back > 0) == (dtypes[i] != MC_FLOAT16), "%s: %d values are read back\n%s",
              mc_dtype_name(dtypes[i]), back, text.s);
        mc_str_free(&text);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* A normalisation of channels and its gradient: squares and products about the mean are summed in the walk
 * that makes it, and the walk behind goes back from the end. */
TEST(grid_walks_of_a_normalisation)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 4);
    mc_input(g, "v", MC_FLOAT32, 4);
    mc_input(g, "g", MC_FLOAT32, 1);
    mc_function *f = mc_compile(
        g,
        &(mc_spec){ .inputs = "x, v, g",
                    .outputs = "batch_normalization_train(x, g, g, axes='spatial')[0], "
                               "grad(sum(batch_normalization_train(x, g, g, axes='spatial')[0] * v), x)" });
    REQUIRE(f, "%s", mc_error(g));
    struct mc_str text = { 0 };
    grid_text(f, &text);
    const char *of = strstr(text.s, "_of(const");
    int walks = 0, back = 0;
    for (const char *s = of; s && (s = strstr(s, "const u32 r = ")); s++) { /* once to ask, once to use */
        walks++;
        back += strncmp(s, "const u32 r = from", strlen("const u32 r = from")) == 0;
    }
    CHECK(walks == 4 && back == 2, "%d loops over elements, %d from the end\n%s", walks, back, text.s);
    mc_str_free(&text);
    mc_function_free(f);
    mc_graph_free(g);
}

/* What the host says of a kernel is what the text has: NAME_v where vectors are, launches of their own for
 * stages where sums are split and no earlier walk makes them, NAME_r where rows are kept, NAME_t where by
 * several blocks, NAME_q where they are in pieces, NAME_s where they may be short, NAME_tally where sums ride
 * along. */
TEST(grid_entries)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "y", MC_FLOAT32, 2);
    mc_input(g, "z", MC_FLOAT32, 4);
    mc_function *f = mc_compile(
        g, &(mc_spec){
               .inputs = "x, y, z",
               .outputs =
                   "tanh(x), sum(y, axis=0), softmax(x), sum(softmax(x) * x, axis=0), cast(x, 'float64'), "
                   "z / var(z, axis=[0, 2, 3], keepdims=True)" });
    REQUIRE(f, "%s", mc_error(g));
    struct mc_str text = { 0 };
    grid_text(f, &text);
    int maps = 0, splits = 0, rows = 0, pieces = 0, moments = 0, column_sums = 0;
    for (size_t i = 0; i < f->code->program.step.n; i++) {
        const struct mc_kernel *k = f->code->program.step.at[i].kernel;
        char name[48];
        if (!k) {
            continue;
        }
        snprintf(name, sizeof name, " %s_v(", k->name);
        CHECK((mc_grid_vector(k) > 1) == (strstr(text.s, name) != NULL), "%s", name);
        snprintf(name, sizeof name, "void %s_of(", k->name);
        const char *of = strstr(text.s, name), *end = of ? strstr(of, "\n}\nENTRY") : NULL,
                   *stage = of ? strstr(of, "A.first") : NULL;
        CHECK(end && mc_grid_can_split(k) == (stage && stage < end), "%s", name);
        snprintf(name, sizeof name, "%s_r(", k->name);
        CHECK((mc_grid_row(k).vector > 0) == (strstr(text.s, name) != NULL), "%s", name);
        snprintf(name, sizeof name, "%s_s(", k->name);
        CHECK(mc_grid_few_elements(k) == (strstr(text.s, name) != NULL), "%s", name);
        snprintf(name, sizeof name, "%s_t(", k->name);
        CHECK((mc_grid_row_cluster(k).vector > 0) == (strstr(text.s, name) != NULL), "%s", name);
        snprintf(name, sizeof name, "%s_q(", k->name);
        CHECK((mc_grid_row_scalar(k).vector > 0) == (strstr(text.s, name) != NULL), "%s", name);
        const char *made = of ? strstr(of, "both_(z") : NULL;
        CHECK(mc_grid_centred_sums(k, 1) == (made && made < end),
              "%s: squares about a mean, a walk of their own or none", k->name);
        snprintf(name, sizeof name, "ENTRY %s_tally(", k->name);
        CHECK(mc_grid_column_sums(k) == (strstr(text.s, name) != NULL), "%s", name);
        maps += mc_grid_vector(k) > 1;
        splits += mc_grid_can_split(k);
        rows += mc_grid_row(k).vector > 0;
        pieces += mc_grid_row_scalar(k).vector > 0;
        moments += mc_grid_centred_sums(k, 1);
        column_sums += mc_grid_column_sums(k);
    }
    CHECK(maps && splits && rows && pieces && moments && column_sums,
          "%d maps over vectors, %d split sums, %d rows, %d in pieces, %d with moments, %d with tallies",
          maps, splits, rows, pieces, moments, column_sums);
    size_t size = mc_grid_args_size(3);
    char *memory = mc_calloc(1, size, "test");
    struct mc_grid_args a = mc_grid_args(memory, 3);
    CHECK((char *)a.head == memory + 24 && (char *)a.step == memory + 24 + sizeof *a.head &&
              (char *)(a.step + 3) == memory + size,
          "three addresses, the head, three times eight steps");
    mc_free(memory);
    mc_str_free(&text);
    mc_function_free(f);
    mc_graph_free(g);
}

/* t_initial.c: initial values of declarations, "shared W float32[784, 10] = normal(std=0.02)".
 *
 * Invariant: the numbers of known_numbers are from another program: Philox4x32-10 as its paper has it
 * (checked by the paper's third known answer), and Box and Muller in Python's math. */
#include "sample_moments.h"
#include "op/op.h"
#include "text_words.h"

static mc_array *value_of(mc_graph *g, const char *name)
{
    mc_shared *s = mc_shared_named(g, name);
    return s ? mc_shared_get(s) : NULL;
}

/* ---- what is written, what it is, how it prints ---- */

/* again: NULL: as it was written */
static const struct { const char *declaration, *again; double first, last; } rows[] = {
    { "shared W float32[2, 3]",                          NULL, 0, 0 },
    { "shared W float32[2, 3] = 0.5",                    NULL, 0.5, 0.5 },
    { "shared W float32 = -3",                           NULL, -3, -3 },
    { "shared W float64[2] = 1 / 4 + 2 ** -1",           "shared W float64[2] = 0.75", 0.75, 0.75 },
    { "shared W float64[2] = 1e300",                     "shared W float64[2] = 1e+300", 1e300, 1e300 },
    { "shared W float64[2] = 4.0",                       NULL, 4, 4 },
    { "shared W float64[2] = 0.1",                       NULL, 0.1, 0.1 },
    { "shared W float64[2] = -inf",                      NULL, -INFINITY, -INFINITY },
    { "shared W float64 = 2 * pi",                       "shared W float64 = 6.283185307179586", 6.283185307179586, 6.283185307179586 },
    { "shared W int8[2] = -128",                         NULL, -128, -128 },
    { "shared W int32 = 0x10",                           "shared W int32 = 16", 16, 16 },
    { "shared W uint64[2] = 18446744073709551615",       NULL, 18446744073709551615., 18446744073709551615. },
    { "shared W bool[2] = True",                         NULL, 1, 1 },
    { "shared W float32[0, 3] = 2",                      NULL, NAN, NAN },
    { "shared W float32[2, 3] = zeros()",                NULL, 0, 0 },
    { "shared W int32[2, 3] = ones",                     "shared W int32[2, 3] = ones()", 1, 1 },
    { "shared W float32[2] = constant(value=3)",         NULL, 3, 3 },
    { "shared W float32[2] = constant(1.5,)",            "shared W float32[2] = constant(value=1.5)", 1.5, 1.5 },
    { "shared W float32[2, 3] = normal(mean=2, std=0)",  "shared W float32[2, 3] = normal(std=0, mean=2)", 2, 2 },
    { "shared W float32[2, 3] = uniform(3, 3)",          "shared W float32[2, 3] = uniform(range=3, high=3)", 3, 3 },
    { "shared W float32[2, 3] = uniform(low=-1, high=-1, seed=7)", "shared W float32[2, 3] = uniform(high=-1, low=-1, seed=7)", -1, -1 },
    { "shared W float32[2, 3] = uniform(0, auto)",       "shared W float32[2, 3] = uniform(range=0, high=auto)", 0, 0 },
    { "shared W float32[2, 3, 1, 1] = glorot_uniform(gain=0, c01b=True)", NULL, 0, 0 },
    { "shared W float32[2, 3] = he_normal(\n  gain=0\n)", "shared W float32[2, 3] = he_normal(gain=0)", 0, 0 },
    { "shared W float32[4, 4] = sparse(sparsity=1, std=0)", NULL, 0, 0 },
    { "shared W float32[1, 1] = orthogonal(gain=0)",     NULL, 0, 0 },
};

TEST(declarations_with_values)
{
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_node *n = mc_formula(g, rows[i].declaration);
        char *text = mc_graph_text(g, 1, &n);
        const char *want = rows[i].again ? rows[i].again : rows[i].declaration;
        CHECK(text && strncmp(text, want, strlen(want)) == 0 && strcmp(text + strlen(want), "\n") == 0,
              "%s prints as %s%s", want, text ? text : "", mc_error(g));
        mc_graph *h = mc_graph_new();
        mc_node *m = text ? mc_formula(h, text) : NULL;
        char *twice = m ? mc_graph_text(h, 1, &m) : NULL;
        CHECK(text && twice && strcmp(text, twice) == 0, "%s prints as %s when it was read again", text,
              twice);
        mc_array *a = value_of(g, "W"), *b = value_of(h, "W");
        if (CHECK(a && b, "%s: %s", rows[i].declaration, mc_error(g)) && mc_array_size(a)) {
            int64_t last[4] = { 0 };
            for (int k = 0; k < mc_array_rank(a); k++) {
                last[k] = mc_array_dims(a)[k] - 1;
            }
            double first = mc_array_get(a, (int64_t[4]){ 0 }), end = mc_array_get(a, last);
            double most = mc_array_dtype(a) == MC_FLOAT32 ? 1e-6 : 0;
            CHECK(first == rows[i].first || fabs(first - rows[i].first) <= most, "%s: %.17g",
                  rows[i].declaration, first);
            CHECK(end == rows[i].last || fabs(end - rows[i].last) <= most, "%s: %.17g", rows[i].declaration,
                  end);
            CHECK(memcmp(mc_array_data(a), mc_array_data(b),
                         (size_t)mc_array_size(a) * mc_dtype_size(mc_array_dtype(a))) == 0,
                  "%s: other values", text);
        }
        mc_array_unref(&a);
        mc_array_unref(&b);
        mc_text_free(text);
        mc_text_free(twice);
        mc_graph_free(g);
        mc_graph_free(h);
    }
}

/* ---- numbers ---- */

static const struct { const char *declaration; double want[6]; int n; } known_numbers[] = {
    { "shared W float64[4] = uniform(low=-1, high=1, seed=7)", { 0.7969271785404792, 0.7188837991924859, 0.3637092470988681, -0.9214827002564749 }, 4 },
    { "shared b float64[4] = uniform(low=-1, high=1, seed=7)", { 0.3433665894381961, 0.2964575167165746, 0.5877804197786385, -0.9624599668065434 }, 4 },
    { "shared W float64[6] = normal(std=2, mean=1, seed=7)",
      { 3.473484924954057, -2.9596083876094674, -1.3367630109633484, 1.1102411860569397, 0.8063323051463652, -0.009391912415265269 }, 6 },
    { "shared b float64[6] = normal(std=2, mean=1, seed=7)",
      { -1.9797994167695103, 1.1003916635992577, -1.8792742167859418, 1.0090879327155389, 0.5672567524563334, -2.9374232679521493 }, 6 },
};

TEST(the_numbers_are_philoxs)
{
    for (size_t i = 0; i < NELEM(known_numbers); i++) {
        mc_graph *g = mc_graph_new();
        mc_node *n = mc_formula(g, known_numbers[i].declaration);
        mc_array *a = value_of(g, mc_node_name(n));
        REQUIRE(a, "%s: %s", known_numbers[i].declaration, mc_error(g));
        for (int64_t k = 0; k < known_numbers[i].n; k++) {
            double have = mc_array_get(a, &k), want = known_numbers[i].want[k];
            CHECK(fabs(have - want) < 4e-15, "%s: number %d is %.17g, not %.17g",
                  known_numbers[i].declaration, (int)k, have, want);
        }
        mc_array_unref(&a);
        mc_graph_free(g);
    }
}

/* The flag gives the seed where none is given; variables of one seed differ. */
TEST(seeds)
{
    static const char *const text = "shared W float32[9] = normal(); shared V float32[9] = normal(); shared "
                                    "U float32[9] = normal(seed=3)";
    float v[4][3][9]; /* (flag 1, 1, 2, 3; W, V, U) */
    static const char *const flags[] = { "1", "1", "2", "3" };
    char before[32];
    snprintf(before, sizeof before, "%s", mc_flag_get("seed"));
    for (int i = 0; i < 4; i++) {
        mc_graph *g = mc_graph_new();
        mc_flag_set("seed", flags[i]);
        mc_formula(g, text);
        for (int k = 0; k < 3; k++) {
            mc_array *a = value_of(g, (const char *[]){ "W", "V", "U" }[k]);
            REQUIRE(a, "%s", mc_error(g));
            memcpy(v[i][k], mc_array_data(a), sizeof v[i][k]);
            mc_array_unref(&a);
        }
        mc_graph_free(g);
    }
    mc_flag_set("seed", before);
    CHECK(memcmp(v[0], v[1], sizeof v[0]) == 0, "one seed, two values");
    CHECK(memcmp(v[0][0], v[2][0], sizeof v[0][0]) != 0, "two seeds, one value");
    CHECK(memcmp(v[0][2], v[2][2], sizeof v[0][2]) == 0, "a seed of its own does not follow the flag");
    CHECK(memcmp(v[0][0], v[0][1], sizeof v[0][0]) != 0, "two names, one value");
}

/* Mean, spread and bound, within what so many numbers allow. */
static const struct { const char *type, *rule; double mean, std, most; } spreads[] = {
    { "float32[200, 50]",     "normal()",                    0, 0.01, 0 },
    { "float64[200, 50]",     "normal(2, mean=1)",           1, 2, 0 },
    { "float32[200, 50]",     "uniform()",                   0, 0.01 / 1.7320508, 0.01 },
    { "float32[200, 50]",     "uniform(low=-3, high=1)",     -1, 2 / 1.7320508, 3 },
    { "float32[200, 50]",     "uniform(std=0.5, mean=1)",    1, 0.5, 1.8661 },
    { "float32[40, 50]",      "glorot_uniform()",            0, 0.14907120, 0.25821 },
    { "float32[40, 50]",      "glorot_normal(relu)",         0, 0.21081851, 0 },
    { "float32[16, 8, 5, 5]", "glorot_uniform()",            0, 0.057735027, 0.1001 },
    { "float32[8, 5, 5, 16]", "glorot_uniform(c01b=True)",   0, 0.057735027, 0.1001 },
    { "float32[40, 50]",      "he_normal(gain=2)",           0, 0.31622777, 0 },
    { "float32[16, 8, 5, 5]", "he_uniform()",                0, 0.070710678, 0.12248 },
    { "float16[200, 50]",     "normal(1)",                   0, 1, 0 },
    { "float32[200, 50]",     "sparse(0.25, std=2)",         0, 1, 0 },
    { "float32[40, 50]",      "orthogonal()",                0, 0.14142136, 1 },
};

TEST(spreads_of_rules)
{
    for (size_t i = 0; i < NELEM(spreads); i++) {
        mc_graph *g = mc_graph_new();
        mc_formulaf(g, "shared W %s = %s", spreads[i].type, spreads[i].rule);
        mc_array *a = value_of(g, "W");
        REQUIRE(a, "%s: %s", spreads[i].rule, mc_error(g));
        check_moments(spreads[i].rule, a, spreads[i].mean, spreads[i].std, spreads[i].most);
        mc_array_unref(&a);
        mc_graph_free(g);
    }
}

/* ---- mistakes ---- */

static const struct { const char *declaration; mc_status status; const char *says; int column; } wrongs[] = {
    { "shared V float32[3] = nrmal()",               MC_ESYNTAX, "there is no initial value 'nrmal'; did you mean 'normal'?", 22 },
    { "shared V float32[3] = normal(sdt=1)",         MC_ESYNTAX, "normal has no setting 'sdt'; did you mean 'std'?", 29 },
    { "shared V float32[3] = normal(std=1, std=2)",  MC_ESYNTAX, "normal: 'std' is given twice", 40 },
    { "shared V float32[3] = normal(1, 2, 3)",       MC_ESYNTAX, "normal: too many settings", 35 },
    { "shared V float32[3] = normal(std=x)",         MC_ESYNTAX, "normal: std must be a number", 33 },
    { "shared V float32[3] = normal(std=True)",      MC_ESYNTAX, "normal: std must be a number", 33 },
    { "shared V float32[3] = normal(seed=-1)",       MC_ESYNTAX, "normal: seed must be a nonnegative whole number", 34 },
    { "shared V float32[3] = normal(seed=1, seed=1)", MC_ESYNTAX, "normal: 'seed' is given twice", 42 },
    { "shared V float32[3] = zeros(seed=1)",         MC_ESYNTAX, "zeros has no setting 'seed'", 28 },
    { "shared V float32[3] = normal(std=1",          MC_ESYNTAX, "expected ',' or ')', but the formula ends", 34 },
    { "shared V float32[3, 3] = he_normal(c01b=1)",  MC_ESYNTAX, "he_normal: c01b must be True or False", 40 },
    { "shared V float32[3, 3] = he_normal(gain=x)",  MC_ESYNTAX, "he_normal: gain must be a number or relu", 40 },
    { "shared V float32[3] = he_normal()",           MC_ESHAPE,  "shared V: he_normal: the parameter must have at least two axes", 22 },
    { "shared V float32[3, 3] = glorot_normal(c01b=True)", MC_ESHAPE, "with c01b=true the parameter must have four axes", 25 },
    { "shared V float32[3] = orthogonal()",          MC_ESHAPE,  "the parameter must have at least two axes", 22 },
    { "shared V float32[3, 3, 3] = sparse()",        MC_ESHAPE,  "the parameter must have two axes", 28 },
    { "shared V float32[3, 3] = sparse(2)",          MC_EARG,    "sparsity must be between 0 and 1", 25 },
    { "shared V float32[3] = uniform(low=1)",        MC_EARG,    "uniform: low is given without high", 22 },
    { "shared V int32[3] = normal()",                MC_ETYPE,   "normal: the dtype must be a float, not int32", 20 },
    { "shared V int32[3] = 0.5",                     MC_ETYPE,   "V has dtype int32, which cannot represent this number", 20 },
    { "shared V int8[3] = 128",                      MC_ETYPE,   "V has dtype int8, which cannot represent this number", 19 },
    { "shared V int8[3] = constant(300)",            MC_ETYPE,   "constant: the value cannot be represented in int8", 19 },
    { "shared V uint8[3] = constant(0.5)",           MC_ETYPE,   "constant: the value cannot be represented in uint8", 20 },
    { "shared V bool[3] = 2",                        MC_ETYPE,   "V has dtype bool, which cannot represent this number", 19 },
    { "shared V float16 = 1e6",                      MC_ETYPE,   "V has dtype float16, which cannot represent this number", 19 },
    { "shared V float32[3] = [1, 2, 3]",             MC_ESYNTAX, "the initial value of V must be a number, or a rule such as normal(std=0.02)", 22 },
    { "shared V float32[3] = x",                     MC_ESYNTAX, "there is no initial value 'x'", 22 },
    { "shared V float32[3] = 2 * x",                 MC_ESYNTAX, "the initial value of V must be a number", 22 },
    { "shared V float32[3] =",                       MC_ESYNTAX, "the formula ends where a value is expected", 21 },
    { "shared V float32[3] = normal() + 1",          MC_ESYNTAX, "expected the end of the statement, not '+'", 31 },
    { "shared V float32[?] = normal()",              MC_ESHAPE,  "shared V: all sizes must be given", 7 },
    { "shared W float32[3] = normal()",              MC_EARG,    "shared: the name 'W' is already in use", 7 },
    { "input V float32[3] = normal()",               MC_ESYNTAX, "expected the end of the statement, not '='", 19 },
};

TEST(mistakes_in_declarations)
{
    for (size_t i = 0; i < NELEM(wrongs); i++) {
        mc_graph *g = graph_of(declared);
        mc_node *n = mc_formula(g, wrongs[i].declaration);
        struct said said = what_it_says(g, "t_initial.c:");
        CHECK(mc_is_error(n) && mc_graph_status(g) == wrongs[i].status && strstr(said.text, wrongs[i].says),
              "%s: %s: %s", wrongs[i].declaration, mc_status_name(mc_graph_status(g)), said.text);
        CHECK(said.column == wrongs[i].column, "%s: the caret is under column %d, not %d: %s",
              wrongs[i].declaration, said.column, wrongs[i].column, said.text);
        mc_graph_free(g);
    }
}

TEST(every_failed_allocation_of_a_declaration)
{
    mc_op_find("add");
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        if (g) {
            mc_node *n = mc_formula(g, "shared W float32[3, 4] = sparse(sparsity=0.5, seed=3); shared b "
                                       "float64[4, 2] = orthogonal(relu); "
                                       "shared c float32[4] = -0.5; W");
            char *text = mc_is_error(n) ? NULL : mc_graph_text(g, 1, &n);
            CHECK(!mc_is_error(n) || (ALLOC_FAILED && mc_graph_status(g) == MC_EMEMORY && *mc_error(g)), "%s",
                  mc_error(g));
            CHECK(text || ALLOC_FAILED, "no text");
            CHECK(!text || strcmp(text, "shared W float32[3, 4] = sparse(sparsity=0.5, seed=3)\n") == 0, "%s",
                  text);
            mc_text_free(text);
        }
        mc_graph_free(g);
    }
}

/* ---- the rules themselves, for libraries on top ---- */

TEST(rules_and_wrong_calls)
{
    const mc_initial *constant = mc_initial_at(0), *normal = NULL;
    for (int i = 0; mc_initial_at(i); i++) {
        normal = strcmp(mc_initial_at(i)->name, "normal") == 0 ? mc_initial_at(i) : normal;
    }
    REQUIRE(constant && normal && !mc_initial_at(-1) && !mc_initial_at(1000), "the table");
    double set[] = { 2, 0 };
    mc_array *a = mc_initial_value(constant, set, MC_FLOAT32, MC_SHAPE(2, 2), NULL, NULL);
    CHECK(a && mc_array_get(a, (int64_t[]){ 1, 1 }) == 2, "%s", mc_last_error());
    mc_array_unref(&a);
    CHECK(!mc_initial_value(NULL, set, MC_FLOAT32, MC_SHAPE(2), NULL, NULL) &&
              strstr(mc_last_error(), "no known rule"),
          "%s", mc_last_error());
    CHECK(!mc_initial_value(constant, NULL, MC_FLOAT32, MC_SHAPE(2), NULL, NULL) &&
              strstr(mc_last_error(), "no setting"),
          "%s", mc_last_error());
    CHECK(!mc_initial_value(normal, set, MC_FLOAT32, MC_SHAPE(2), NULL, NULL) &&
              strstr(mc_last_error(), "no draw"),
          "%s", mc_last_error());
    CHECK(!mc_initial_value(constant, set, MC_FLOAT32, 1, (int64_t[]){ -1 }, NULL, NULL), "a negative size");
    CHECK(!mc_graph_keep(NULL, 8), "no graph");
    mc_graph *g = mc_graph_new();
    char *kept = mc_graph_keep(g, 3);
    CHECK(kept && !kept[0] && !kept[2], "zeros");
    mc_graph_free(g);
}

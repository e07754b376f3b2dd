/* t_norm.c: every solver of normalisation across channels against the reference, on one grid of problems. */
#include "check.h"
#include "heavy/norm/solver.h"
#include "norm_problems.h"
#include <stdio.h>

TEST(every_norm_solver_gives_the_reference)
{
    static const char *const kernels[] = { NULL, "plain", "avx2", "avx512" };
    int ran[4] = { 0 };
    for (size_t k = 0; k < NELEM(kernels); k++) {
        for (int turn = 0; mc_isa_only(kernels[k]) && turn < (test_is_full() ? 1000 : 150); turn++) {
            struct mc_norm_problem p;
            struct mc_str text = { 0 };
            norm_any(&p, norm_below(3) ? MC_FLOAT32 : MC_FLOAT64);
            mc_norm_family.key(&p.base, &text);
            for (int i = 0; mc_norm_solvers[i]; i++) {
                const struct mc_solver *s = mc_norm_solvers[i];
                struct mc_plan *plan = s->refuse && s->refuse(&p.base) ? NULL : mc_plan_with(&p.base, s);
                ran[i] += plan != NULL;
                CHECK(!plan || mc_norm_family.verify(&p.base, plan) == MC_OK, "%s: %s: %s", s->name, text.s,
                      mc_last_error());
                mc_plan_free(plan);
            }
            mc_str_free(&text);
        }
    }
    mc_isa_only(NULL);
    CHECK(ran[0] > 50 && ran[1] > 50 && ran[2] > ran[0], "ran %d, %d, %d times", ran[0], ran[1], ran[2]);
}

TEST(norm_words_and_plans)
{
    struct mc_norm_problem p = {
        .dtype = MC_FLOAT32,
        .base = { &mc_norm_family, mc_plan_options_of(NULL) },
        .s = { .rank = 4, .axis = 1, .dims = { 8, 96, 27, 27 }, .n = 5, .alpha = 1e-4, .beta = 0.75, .k = 2 }
    };
    struct mc_str word = { 0 };
    for (int r = 0; r < 3; r++) {
        memcpy(p.at[r], (const int64_t[4]){ 96 * 729, 729, 27, 1 }, 4 * sizeof(int64_t));
    }
    mc_norm_family.key(&p.base, &word);
    CHECK(word.s && strcmp(word.s, "norm f32 forward c96 n5 beta 0.75 planes 8 lanes 729") == 0, "%s",
          word.s);
    mc_str_free(&word);
    struct mc_plan *plan = mc_norm_plan(&p, AS_FLAGS(NULL));
    CHECK(plan && strcmp(plan->solver->name, "lanes") == 0, "%s",
          plan ? plan->solver->name : mc_last_error());
    mc_plan_free(plan);
    mc_flag_set("norm.algo", "lines"); /* declines, and says why */
    CHECK(!mc_norm_plan(&p, AS_FLAGS(NULL)) && strstr(mc_last_error(), "needs contiguous channels"), "%s",
          mc_last_error());
    mc_flag_set("norm.algo", "reference");
    plan = mc_norm_plan(&p, AS_FLAGS(NULL));
    CHECK(plan && strcmp(plan->solver->name, "reference") == 0, "%s",
          plan ? plan->solver->name : mc_last_error());
    mc_plan_free(plan);
    mc_flag_set("norm.algo", "auto");
    p.dtype = MC_INT32;
    CHECK(!mc_norm_plan(&p, AS_FLAGS(NULL)) && mc_last_status() == MC_ETYPE, "%s", mc_last_error());
}

TEST(norm_plans_when_memory_runs_out)
{
    struct mc_norm_problem p;
    norm_any(&p, MC_FLOAT32);
    p.s.backward = true;
    ALLOC_FAIL_LOOP {
        struct mc_plan *plan = mc_norm_plan(&p, AS_FLAGS(NULL));
        CHECK(plan ? mc_norm_family.verify(&p.base, plan) == MC_OK || ALLOC_FAILED : ALLOC_FAILED, "%s",
              mc_last_error());
        mc_plan_free(plan);
    }
}

TEST(norm_problems_of_nodes)
{
    const int64_t dims[4] = { 2, 6, 3, 3 }, bytes[4] = { 216, 36, 12, 4 };
    const int64_t *strides[3] = { bytes, bytes, bytes };
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input_sized(g, "x", MC_FLOAT32, 4, dims),
            *y = mc_formula(g, "lrn_grad(x, x * 2, n=3, alpha=0.5, beta=0.25, k=1)");
    struct mc_norm_problem p;
    REQUIRE(!mc_is_error(y) && mc_norm_problem_of(y, &x->type, strides, &p) == MC_OK, "%s %s", mc_error(g),
            mc_last_error());
    CHECK(p.s.backward && p.s.n == 3 && p.s.alpha == 0.5 && p.s.beta == 0.25 && p.s.k == 1 && p.s.axis == 1 &&
              p.at[NORM_G][1] == 9,
          "axis %d", p.s.axis);
    CHECK(mc_norm_problem_of(x, &x->type, strides, &p) == MC_EARG, "an input was normalised");
    mc_graph_free(g);
}

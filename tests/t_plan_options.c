/* t_plan_options.c: the options of a plan reach its child plans, whatever is around them, and no other
 * plan. */
#include "check.h"
#include "cuda_problems.h"
#include <monochord.h>
#include <pthread.h>
#include <stdio.h>

/* ---- a family of nested solvers ---- */

/* Level 0 is a leaf: `big` is the cheapest and needs 4096 bytes, `small` needs none.  Every other level
 * wraps the one below, which it plans as `asks` says. */
struct nest {
    struct mc_problem base;
    int level;
    bool asks; /* the planner; else the solver is named, as splitk names its child's */
};
enum { BIG = 4096, LEVELS = 4 };

static const struct nest *nest(const struct mc_problem *p)
{
    return (const struct nest *)(const void *)p;
}

static mc_status run_nothing(const struct mc_plan *p, void *const *operand, void *workspace, int threads)
{
    (void)p, (void)operand, (void)workspace, (void)threads;
    return MC_OK;
}

static double one_second(const struct mc_problem *p)
{
    (void)p;
    return 1;
}
static double two_seconds(const struct mc_problem *p)
{
    (void)p;
    return 2;
}
static const char *leaf_only(const struct mc_problem *p)
{
    return nest(p)->level > 0 ? "is a leaf" : NULL;
}
static const char *no_leaf(const struct mc_problem *p)
{
    return nest(p)->level > 0 ? NULL : "is no leaf";
}

static struct mc_plan *plan_big(const struct mc_problem *p)
{
    struct mc_plan *plan = mc_plan_bare(run_nothing);
    (void)p;
    if (plan) {
        plan->workspace = BIG;
    }
    return plan;
}

static struct mc_plan *plan_small(const struct mc_problem *p)
{
    (void)p;
    return mc_plan_bare(run_nothing);
}

static const struct mc_solver wrapping;
static struct mc_plan *plan_wrapping(const struct mc_problem *p)
{
    struct nest below = *nest(p);
    below.level--;
    struct mc_plan *plan = mc_plan_bare(run_nothing);
    if (!plan) {
        return NULL;
    }
    plan->child[0] = below.asks || below.level == 0 ? mc_plan_make(&below.base)
                                                    : mc_plan_with(&below.base, &wrapping);
    if (!plan->child[0]) {
        mc_free(plan);
        return NULL;
    }
    plan->workspace = plan->child[0]->workspace;
    return plan;
}

static const struct mc_solver big = {
    .name = "big", .refuse = leaf_only, .estimate = one_second, .plan = plan_big
};
static const struct mc_solver small = {
    .name = "small", .refuse = leaf_only, .estimate = two_seconds, .plan = plan_small
};
static const struct mc_solver wrapping = {
    .name = "wrap", .refuse = no_leaf, .estimate = one_second, .plan = plan_wrapping, .wraps = true
};

static const struct mc_solver *const nested[] = { &big, &small, &wrapping, NULL };

static void nest_word(const struct mc_problem *p, struct mc_str *out)
{
    mc_str_addf(out, "nest %d", nest(p)->level);
}

static const struct mc_family nests = {
    .name = "nest", .solvers = nested, .problem_size = sizeof(struct nest), .key = nest_word
};

static const struct mc_plan *leaf_of(const struct mc_plan *plan)
{
    while (plan && plan->child[0]) {
        plan = plan->child[0];
    }
    return plan;
}

/* Through levels that the planner selects and through those that it does not. */
TEST(options_cap_reaches_the_innermost_plan)
{
    for (int level = 0; level < LEVELS; level++) {
        for (int low = 0; low < 2; low++) {
            struct nest p = { { &nests, mc_plan_options_of(NULL) }, level, .asks = low };
            for (int asks = 0; asks < 2; asks++) {
                p.asks = asks;
                p.base.options.workspace = low ? BIG - 1 : BIG;
                struct mc_plan *plan = mc_plan_make(&p.base);
                REQUIRE(plan, "level %d: %s", level, mc_last_error());
                CHECK(leaf_of(plan)->solver == (low ? &small : &big), "level %d, cap %zu: %s", level,
                      p.base.options.workspace, leaf_of(plan)->solver->name);
                CHECK(plan->workspace == (low ? 0 : BIG), "needs %zu", plan->workspace);
                mc_plan_free(plan);
            }
        }
    }
}

/* A level that the planner selects lowers the mode of those below by one step. */
TEST(options_mode_falls_by_level)
{
    for (int mode = PLAN_ESTIMATE; mode <= PLAN_EXHAUSTIVE; mode++) {
        struct nest p = { { &nests, mc_plan_options_of(NULL) }, LEVELS, .asks = true };
        p.base.options.mode = (enum mc_plan_mode)mode;
        struct mc_plan *plan = mc_plan_make(&p.base);
        REQUIRE(plan, "%s", mc_last_error());
        int level = 0;
        for (const struct mc_plan *at = plan; at; at = at->child[0], level++) {
            const struct mc_plan_options *o = &at->problem->options;
            CHECK((int)o->solver_mode == MC_MAX(mode - level, 0), "mode %d, level %d: %d", mode, level,
                  (int)o->solver_mode);
            CHECK(o->depth == level + 1 && (int)o->mode == mode, "level %d: depth %d, mode %d", level,
                  o->depth, (int)o->mode);
        }
        CHECK(level == LEVELS + 1, "%d levels", level);
        mc_plan_free(plan);
    }
}

/* The text of an error tells a cap that a flag sets from one that is lower because memory ran out. */
TEST(options_say_why_the_cap_is_low)
{
    static const struct mc_solver *const only_big[] = { &big, NULL };
    const struct mc_family f = {
        .name = "nest", .solvers = only_big, .problem_size = sizeof(struct nest), .key = nest_word
    };
    struct nest p = { { &f, mc_plan_options_of(NULL) }, 0, .asks = true };
    p.base.options.workspace = 1024;
    CHECK(!mc_plan_make(&p.base) &&
              strstr(mc_last_error(), "big needs 4096 bytes of workspace, the flag allows 1024"),
          "%s", mc_last_error());
    p.base.options = mc_plan_options_of(NULL);
    mc_plan_options_limit(&p.base.options, 1000);
    CHECK(!mc_plan_make(&p.base) &&
              strstr(mc_last_error(), "big needs 4096 bytes of workspace, there is room for 1000"),
          "%s", mc_last_error());
    mc_plan_options_limit(&p.base.options, 1 << 20);
    CHECK(p.base.options.workspace == 1000, "the cap rose to %zu", p.base.options.workspace);
}

/* Two problems with one key, whatever their options are. */
TEST(options_are_no_part_of_a_key)
{
    struct mc_conv_problem p = convolution("n2c3f4 i6x7 k3x3", CONV_FORWARD, &variants[0]);
    struct mc_str key[2] = { { 0 } };
    mc_conv_key(&p.base, &key[0]);
    p.base.options = (struct mc_plan_options){
        .mode = PLAN_EXHAUSTIVE, .depth = 3, .workspace = 17, .check = true
    };
    mc_conv_key(&p.base, &key[1]);
    CHECK(strcmp(key[0].s, key[1].s) == 0, "%s and %s", key[0].s, key[1].s);
    mc_str_free(&key[0]);
    mc_str_free(&key[1]);
}

/* ---- the solvers there are ---- */

enum { CAP = 100 << 10 };

/* Whether every plan of the tree was made with o; but for the depth, which never falls below that around it
 * unless the child is planned as if nobody asked (`apart`), and the mode of a solver. */
static bool obeys(const struct mc_plan *plan, const struct mc_plan_options *o, int *plans)
{
    const struct mc_plan_options *has = &plan->problem->options;
    bool so = has->workspace == o->workspace && has->mode == o->mode &&
              has->deterministic == o->deterministic && has->check == o->check &&
              has->out_of_memory == o->out_of_memory;
    ++*plans;
    for (size_t i = 0; i < NELEM(plan->child); i++) {
        if (plan->child[i]) {
            const int depth = plan->child[i]->problem->options.depth;
            so = so && (depth >= has->depth || strcmp(plan->solver->name, "apart") == 0) &&
                 depth <= has->depth + 1;
            so = so && obeys(plan->child[i], o, plans);
        }
    }
    return so;
}

/* Whether the plan of a solver, under options that no flag has, has children.  It may be that no child
 * fits.  On a GPU that is this processor (scripts/fake_gpu.sh) some kernels do not compile. */
static bool tried(struct mc_problem *p, const struct mc_solver *s, int *plans)
{
    p->options = (struct mc_plan_options){
        .mode = PLAN_ESTIMATE, .depth = 1, .workspace = CAP, .out_of_memory = true, .deterministic = true
    };
    if (mc_plan_declines(p, s)) {
        return false;
    }
    int found = 0;
    struct mc_plan *plan = mc_plan_with(p, s);
    if (!plan && (p->family->site || mc_last_status() == MC_EUNSUPPORTED)) {
        return false;
    }
    struct mc_str text = { 0 };
    if (CHECK(plan, "%s: %s", s->name, mc_last_error())) {
        mc_plan_text(plan, &text);
        CHECK(obeys(plan, &p->options, &found), "other options in %s", text.s);
    }
    *plans += found;
    mc_str_free(&text);
    mc_plan_free(plan);
    return found > 1;
}

/* How many solvers of a family had child plans, on problems of every pass and layout. */
static int conv_nests(const struct mc_family *f, int *plans)
{
    static const char *const shapes[] = { "n4c40f12 i20x21 k3x3 p1x1", "n2c3f8 i24x24 k5x5 s2x2",
                                          "n2c16f24 i9x9 k1x1", "n1c1f1 i40 k5",
                                          "n16c32f32 i14x14 k3x3 p1x1 flip" };
    int nests_of = 0;
    for (int row = 0; f->solvers[row]; row++) {
        bool nests_here = false;
        for (size_t s = 0; s < NELEM(shapes); s++) {
            for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
                for (size_t v = 0; v < 8; v++) {
                    struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[v]);
                    p.base.family = f;
                    p.has_bias = p.has_bias && f->site;
                    p.act = f->site ? p.act : ACT_NONE;
                    nests_here |= tried(&p.base, f->solvers[row], plans);
                }
            }
        }
        nests_of += nests_here;
    }
    return nests_of;
}

static int gemm_nests(const struct mc_family *f, int *plans)
{
    static const int64_t sizes[][3] = { { 20, 30, 9000 }, { 64, 64, 64 }, { 300, 8, 500 } };
    int nests_of = 0;
    for (int row = 0; f->solvers[row]; row++) {
        bool nests_here = false;
        for (size_t s = 0; s < NELEM(sizes); s++) {
            for (size_t v = 0; v < (f->site ? 4 : 1); v++) {
                struct mc_gemm_problem p = product(MC_FLOAT32, sizes[s][0], sizes[s][1], sizes[s][2], "nn",
                                                   &products[v]);
                p.base.family = f;
                nests_here |= tried(&p.base, f->solvers[row], plans);
            }
        }
        nests_of += nests_here;
    }
    return nests_of;
}

TEST(options_reach_the_children_of_every_solver)
{
    int plans = 0;
    mc_flags_parse("plan=measure,onednn=none,blas=none"); /* options are not read from flags again */
    const int convs = conv_nests(&mc_conv_family, &plans), gemms = gemm_nests(&mc_gemm_family, &plans);
    CHECK(convs >= 5 && gemms >= 1 && plans > 200, "%d and %d solvers had child plans, %d plans", convs,
          gemms, plans);
}

TEST(options_reach_the_children_of_every_solver_of_a_gpu)
{
    int plans = 0;
    GPU_OR_SKIP();
    mc_flags_parse("plan=measure");
    const int convs = conv_nests(&mc_conv_cuda, &plans), gemms = gemm_nests(&mc_gemm_cuda, &plans);
    CHECK(convs >= 5 && gemms >= 1 && plans > 100, "%d and %d solvers had child plans, %d plans", convs,
          gemms, plans);
}

/* ---- two threads ---- */

enum { ROUNDS = 40, ASKED = 4 };
struct asked {
    const char *shape;
    enum mc_conv_pass pass;
};
static const struct asked asked[ASKED] = {
    { "n5c40f70 i26x23 k3x3 p1x1", CONV_FORWARD },
    { "n4c40f12 i20x21 k3x3 p1x1", CONV_INPUTS },
    { "n4c40f12 i20x21 k3x3 p1x1", CONV_WEIGHTS },
    { "n2c64f24 i40 k9 s2", CONV_FORWARD },
};

static struct mc_plan *planned_with(size_t cap, const struct asked *q)
{
    struct mc_plan_options o = mc_plan_options_of(NULL);
    struct mc_conv_problem p = convolution(q->shape, q->pass, &variants[1]);
    o.workspace = cap;
    return mc_conv_plan(&p, &o);
}

static void told(const struct mc_plan *plan, struct mc_str *out)
{
    if (plan) {
        mc_plan_text(plan, out);
    }
    mc_str_addf(out, " %zu", plan ? plan->workspace : 0);
}

struct planning {
    size_t cap;
    struct mc_str want[ASKED];
    int wrong;
};

static void *plans_again(void *arg)
{
    struct planning *x = arg;
    for (int i = 0; i < ROUNDS * ASKED; i++) {
        struct mc_str got = { 0 };
        struct mc_plan *plan = planned_with(x->cap, &asked[i % ASKED]);
        told(plan, &got);
        x->wrong += strcmp(got.s, x->want[i % ASKED].s) != 0 || !plan || plan->workspace > x->cap;
        mc_plan_free(plan);
        mc_str_free(&got);
    }
    return NULL;
}

/* Each gets the plans that it gets alone, while the other plans the same problems with another cap. */
TEST(options_of_threads_are_apart)
{
    struct planning x[2] = { { .cap = CAP }, { .cap = (size_t)1 << 30 } };
    pthread_t thread[2];
    int differ = 0;
    mc_flags_parse("onednn=none,blas=none,plan=estimate");
    for (int q = 0; q < ASKED; q++) {
        for (int i = 0; i < 2; i++) {
            struct mc_plan *plan = planned_with(x[i].cap, &asked[q]);
            REQUIRE(plan, "%s", mc_last_error());
            told(plan, &x[i].want[q]);
            mc_plan_free(plan);
        }
        differ += strcmp(x[0].want[q].s, x[1].want[q].s) != 0;
    }
    CHECK(differ >= 2, "the caps make a difference for %d problems", differ);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&thread[i], NULL, plans_again, &x[i]) == 0, "no thread");
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        CHECK(x[i].wrong == 0, "cap %zu: %d plans of %d are others than alone", x[i].cap, x[i].wrong,
              ROUNDS * ASKED);
        for (int q = 0; q < ASKED; q++) {
            mc_str_free(&x[i].want[q]);
        }
    }
}

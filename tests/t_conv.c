/* t_conv.c: every solver of convolutions in every pass against the definition.
 *
 * One grid serves all: a solver is tested because it has a row in the table.  The workspace has canaries
 * behind it and is filled with NaN before.  Beside the elements, the adjoint identity is held:
 *     <conv(x, w), y> = <x, inputs(w, y)> = <w, weights(x, y)> */
#include "conv_instance.h"

/* ---- running ---- */

static void epilogue(void *arg, const int64_t at[5], const int64_t size[5])
{
    struct instance *x = arg;
    const struct mc_conv_array a = result_of(x);
    const mc_dtype d = x->p.dtype;
    char *to = x->data[mc_conv_result(x->p.s.pass)];
    int64_t count = 1;
    for (int z = 0; z < a.rank; z++) {
        count *= z < 5 ? size[z] : a.size[z];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, e = 0, step = 1;
        for (int z = a.rank - 1; z >= 0; z--) {
            const int64_t many = z < 5 ? size[z] : a.size[z];
            e += (rest % many + (z < 5 ? at[z] : 0)) * step;
            step *= a.size[z];
            rest /= many;
        }
        char *p = to + offset(&a, e) * mc_dtypes[d].size;
        mc_store_f64(d, p, after(mc_load_f64(d, p)));
        x->seen[e]++;
    }
}

enum { CANARY = 256 };

/* Runs the plan on the result as it was in the beginning. */
static void run(struct instance *x, const struct mc_plan *plan, const char *name, int threads)
{
    const int role = mc_conv_result(x->p.s.pass);
    const struct mc_conv_array a = result_of(x);
    const size_t bytes = (size_t)x->reach[role] * mc_dtypes[x->p.dtype].size;
    void *operand[8] = { x->data[0], x->data[1], x->data[2],
                         x->v.c0 == SAME_C0 ? x->data[role] : x->data_c0 };
    mc_conv_epilogue *f = epilogue;
    memcpy(&operand[CONV_EPILOGUE], &f, sizeof f);
    operand[CONV_EPILOGUE_ARG] = x;
    memcpy(x->op[role].at, x->before, bytes);
    memset(x->seen, 0, (size_t)mc_conv_count(&a) + 1);
    unsigned char *work = aligned_alloc(64, (plan->workspace + CANARY + 63) / 64 * 64);
    memset(work, 0xff, plan->workspace + CANARY);
    const mc_status s = plan->run(plan, operand, work, threads);
    bool whole = true;
    for (size_t i = 0; i < CANARY; i++) {
        whole &= work[plan->workspace + i] == 0xff;
    }
    free(work);
    CHECK(s == MC_OK, "%s: %s", name, mc_last_error());
    CHECK(whole, "%s writes beyond its workspace of %zu", name, plan->workspace);
}

static double bound(const struct instance *x, double want)
{
    const mc_dtype d = x->p.dtype;
    const struct mc_conv_array a = result_of(x);
    const double eps = mc_dtypes[d].cls == CLASS_F64 || x->p.wide ? 0x1p-52 : 0x1p-23;
    const double taps = mc_conv_flops(&x->p) / 2 / (double)MC_MAX(mc_conv_count(&a), (int64_t)1);
    return eps * ((sqrt(taps) + 8) * fabs(x->p.alpha) * x->worst + 4 * fabs(x->p.beta)) +
           mc_dtypes[d].eps * fabs(want) + (mc_dtypes[d].size == 2 ? 0x1p-24 : 0);
}

/* Is every element right, every gap as before, and was every element finished once? */
static void judge(struct instance *x, const char *name)
{
    const int role = mc_conv_result(x->p.s.pass);
    const struct mc_conv_array a = result_of(x);
    const mc_dtype d = x->p.dtype;
    const int64_t size = mc_dtypes[d].size, n = mc_conv_count(&a);
    const size_t bytes = (size_t)(x->reach[role] * size);
    char *gaps = malloc(bytes + 1);
    int64_t wrong = 0, missed = 0, first = -1;
    double got = 0, wanted = 0, inner = 0;
    memcpy(gaps, x->op[role].at, bytes);
    for (int64_t e = 0; e < n; e++) {
        const int64_t at = offset(&a, e) * size;
        const double v = mc_load_f64(d, x->data[role] + at);
        double want = x->p.alpha * x->sum[e] + x->p.beta * x->start[e];
        want = x->v.epilogue ? after(want) : want;
        inner += v * x->number[role][e];
        if (!(fabs(v - want) <= bound(x, want)) && wrong++ == 0) {
            first = e;
            got = v;
            wanted = want;
        }
        missed += x->v.epilogue && x->seen[e] != 1;
        const int64_t byte = at + (x->data[role] - x->op[role].at);
        memcpy(gaps + byte, x->before + byte, (size_t)size);
    }
    CHECK(wrong == 0, "%s: %lld of %lld wrong, the first at %lld: %.9g, not %.9g within %.3g", name,
          (long long)wrong, (long long)n, (long long)first, got, wanted, bound(x, wanted));
    CHECK(missed == 0, "%s: the epilogue met %lld elements not once", name, (long long)missed);
    CHECK(memcmp(gaps, x->before, bytes) == 0, "%s: wrote into gaps of the result", name);
    if (x->v.adjoint) {
        const double most = (mc_dtypes[d].cls == CLASS_F64 ? 0x1p-48 : 0x1p-19) * x->inner_size + 1e-300;
        CHECK(fabs(inner - x->inner) <= most, "%s: <result, the third> is %.9g, not %.9g", name, inner,
              x->inner);
    }
    free(gaps);
}

static bool try_solver(struct instance *x, const struct mc_solver *s, const char **no)
{
    plan_as_flags(&x->p.base);
    const char *why = mc_plan_declines(&x->p.base, s);
    if (why) {
        *no = *no && strstr(*no, "no library") ? *no : why;
        return false;
    }
    struct mc_plan *plan = mc_plan_with(&x->p.base, s);
    if (!CHECK(plan, "%s: %s", s->name, mc_last_error())) {
        return false;
    }
    struct mc_str text = { 0 };
    mc_plan_text(plan, &text);
    const double seconds = s->estimate(&x->p.base);
    CHECK(seconds > 0 && isfinite(seconds), "%s estimates %g seconds", text.s, seconds);
    run(x, plan, text.s, 2);
    judge(x, text.s);
    mc_str_free(&text);
    mc_plan_free(plan);
    return true;
}

/* The bits do not depend on the threads, if the solver is ours. */
static void same_bits(struct instance *x, const struct mc_solver *s)
{
    const int role = mc_conv_result(x->p.s.pass);
    const size_t bytes = (size_t)x->reach[role] * mc_dtypes[x->p.dtype].size;
    plan_as_flags(&x->p.base);
    struct mc_plan *plan = strncmp(s->name, "onednn", 6) == 0 || (s->refuse && s->refuse(&x->p.base))
                               ? NULL
                               : mc_plan_with(&x->p.base, s);
    if (!plan) {
        return;
    }
    char *alone = malloc(bytes + 1);
    run(x, plan, s->name, 1);
    memcpy(alone, x->op[role].at, bytes);
    run(x, plan, s->name, 2);
    CHECK(memcmp(alone, x->op[role].at, bytes) == 0, "%s: other bits by two threads than by one", s->name);
    free(alone);
    mc_plan_free(plan);
}

TEST(conv_same_bits_by_any_threads)
{
    static const char *const shapes[] = { "n5c20f12 i20x21 k3x3 p1x1", "n1c33f24 i30 k9",
                                          "n9c8f16 i11x11 k1x1", "n2c3f8 i30x31 k7x7 s2x2 flip" };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = 0; v < NELEM(variants); v += 3) {
                struct mc_conv_shape s = conv_parse(shapes[i]);
                s.pass = (enum mc_conv_pass)pass;
                struct instance x = make(s, variants[v]);
                for (const struct mc_solver *const *row = mc_conv_solvers; *row; row++) {
                    same_bits(&x, *row);
                }
                unmake(&x);
            }
        }
    }
}

/* Each solver on the whole grid in one pass; it must take something somewhere. */
static void try_all(enum mc_conv_pass pass, int *served)
{
    for (size_t g = 0; g < NELEM(conv_grid); g++) {
        struct mc_conv_shape s = conv_parse(conv_grid[g]);
        s.pass = pass;
        for (size_t v = 0; v < NELEM(variants); v++) {
            if (!test_is_full() && v > 1 && (g + v) % 3 != 0) {
                continue; /* every third, another third for each shape */
            }
            struct instance x = make(s, variants[v]);
            for (int row = 0; mc_conv_solvers[row]; row++) {
                const char *no = NULL;
                if (!test_is_full() && v > 0 && (g + v) % 2 &&
                    strncmp(mc_conv_solvers[row]->name, "onednn", 6) == 0) {
                    continue; /* its plans take long to make */
                }
                name_solver(mc_conv_solvers[row]->name);
                if (try_solver(&x, mc_conv_solvers[row], &no)) {
                    served[row]++;
                } else if (no && strstr(no, "no library")) {
                    served[row] = -1;
                }
            }
            unmake(&x);
        }
    }
    name_solver("auto");
}

enum { MOST = 64 };

static void report(const char *pass, const int *served)
{
    struct mc_str text = { 0 };
    for (int row = 0; mc_conv_solvers[row]; row++) {
        mc_str_addf(&text, " %s %d", mc_conv_solvers[row]->name, served[row]);
    }
    if (getenv("MC_TEST_SHOW")) {
        printf("conv %s:%s\n", pass, text.s);
    }
    mc_str_free(&text);
}

static void try_pass(enum mc_conv_pass pass, const char *name)
{
    int served[MOST] = { 0 };
    try_all(pass, served);
    report(name, served);
    int last = 0;
    while (mc_conv_solvers[last + 1]) {
        last++;
    }
    const int all = served[last];
    CHECK(all > 0 && mc_conv_solvers[last] == &mc_conv_reference, "the reference is last and took %d", all);
}

TEST(conv_forward_by_every_solver) { try_pass(CONV_FORWARD, "forward"); }
TEST(conv_inputs_by_every_solver) { try_pass(CONV_INPUTS, "inputs"); }
TEST(conv_weights_by_every_solver) { try_pass(CONV_WEIGHTS, "weights"); }

/* A row of the table that takes nothing of the grid would pass the tests above untested. */
TEST(conv_solvers_all_serve)
{
    int served[MOST] = { 0 };
    for (int row = 0; mc_conv_solvers[row]; row++) {
        const char *no = NULL;
        name_solver(mc_conv_solvers[row]->name);
        for (size_t g = 0; g < NELEM(conv_grid) && served[row] == 0; g++) {
            for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS && served[row] == 0; pass++) {
                for (size_t v = 0; v < NELEM(variants) && served[row] == 0; v += 4) {
                    struct mc_conv_shape s = conv_parse(conv_grid[g]);
                    s.pass = (enum mc_conv_pass)pass;
                    struct instance x = make(s, variants[v]);
                    no = mc_plan_declines(&x.p.base, mc_conv_solvers[row]);
                    served[row] += !no;
                    unmake(&x);
                    if (no && (strstr(no, "no library") || strstr(no, "in libmonochord alone"))) {
                        served[row] = -1; /* not here: the second in a runtime, of `portable` */
                    }
                }
            }
        }
        CHECK(served[row] != 0, "%s takes nothing of the grid: it %s", mc_conv_solvers[row]->name, no);
    }
    name_solver("auto");
}

/* A library has no pieces: it takes half of the images after the other half. */
TEST(conv_of_a_library_runs_twice_where_room_is_short)
{
    if (mc_conv_onednn.missing(NULL)) {
        SKIP("there is no oneDNN");
    }
    int halved = 0;
    for (int pass = CONV_FORWARD; pass < CONV_WEIGHTS; pass++) {
        struct mc_conv_shape s = conv_parse("n4c16f24 i20x21 k3x3 p1x1");
        s.pass = (enum mc_conv_pass)pass;
        for (size_t v = 0; v < NELEM(variants); v++) {
            struct instance x = make(s, variants[v]);
            const char *no = NULL;
            char most[32];
            name_solver("onednn");
            struct mc_plan *whole = mc_plan_declines(&x.p.base, &mc_conv_onednn)
                                        ? NULL
                                        : mc_plan_with(&x.p.base, &mc_conv_onednn);
            if (whole && whole->workspace > 0) {
                snprintf(most, sizeof most, "%zu", whole->workspace - 1);
                mc_flag_set("workspace", most);
                plan_as_flags(&x.p.base);
                struct mc_plan *two = mc_plan_with(&x.p.base, &mc_conv_onednn);
                CHECK(two && two->child[0] && two->workspace < whole->workspace, "%s",
                      two ? "needs no less" : mc_last_error());
                mc_plan_free(two);
                halved++;
                try_solver(&x, &mc_conv_onednn, &no);
                mc_flag_set("workspace", "1G");
            }
            mc_plan_free(whole);
            name_solver("auto");
            unmake(&x);
        }
    }
    if (!halved) {
        SKIP("none of these needs room of the library");
    }
}

/* Under a low cap solvers work in smaller pieces, or the planner does without them; what is left is right. */
TEST(conv_keeps_the_workspace_cap)
{
    static const char *const shapes[] = { "n3c40f12 i20x21 k3x3 p1x1", "n2c64f24 i40 k9 s2",
                                          "n5c33f8 i12x12 k5x5 g1 flip" };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            struct mc_conv_shape s = conv_parse(shapes[i]);
            s.pass = (enum mc_conv_pass)pass;
            struct instance x = make(s, variants[(i * 3 + (size_t)pass * 2) % NELEM(variants)]);
            for (const struct mc_solver *const *row = mc_conv_solvers; *row; row++) {
                const char *no = NULL;
                name_solver((*row)->name);
                mc_flags_parse("workspace=100k");
                try_solver(&x, *row, &no);
                mc_flags_parse("workspace=1M");
                try_solver(&x, *row, &no);
            }
            name_solver("auto");
            mc_flags_parse("workspace=100k");
            struct mc_plan *plan = mc_conv_plan(&x.p, AS_FLAGS(NULL));
            CHECK(plan && plan->workspace <= 100 * 1024, "%s", plan ? "too much workspace" : mc_last_error());
            mc_plan_free(plan);
            mc_flags_parse("workspace=1G");
            unmake(&x);
        }
    }
}

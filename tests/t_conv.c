/* t_conv.c: every solver of convolutions in every pass against the definition, summed here in float64.
 *
 * One grid serves all: a solver is tested because it has a row in the table.  Operands end where a page ends that
 * may not be touched; gaps hold NaN; the workspace has canaries behind it and is filled with NaN before.  Beside the
 * elements, the adjoint identity is held:  <conv(x, w), y> = <x, inputs(w, y)> = <w, weights(x, y)>. */
#include "check.h"
#include "conv/solver.h"
#include "conv_grid.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- cases ---- */

enum { NO_C0, OTHER_C0, SAME_C0, NAN_C0 }; /* SAME: the result itself; NAN: beta is 0 */
/* MIRROR: channels and the last axis run backwards; SPREAD: one image and one filter stand for all, where read */
enum { BC01, B01C, C01B, GAPS, MIRROR, SPREAD, NLAYOUT };
static const struct variant {
    mc_dtype dtype;
    double alpha, beta;
    int c0, layout;
    bool epilogue, wide;
    bool adjoint;
} variants[] = {
    { MC_FLOAT32,  1,    0,    NO_C0,    BC01, .adjoint = true },
    { MC_FLOAT64,  -2,   0.5,  OTHER_C0, BC01, .epilogue = true },
    { MC_FLOAT32,  0.5,  1,    SAME_C0,  BC01 },
    { MC_FLOAT32,  1,    0,    NAN_C0,   GAPS, .epilogue = true },
    { MC_FLOAT32,  1,    0,    NO_C0,    B01C, .adjoint = true },
    { MC_FLOAT32,  2,    -1,   OTHER_C0, B01C, .epilogue = true },
    { MC_FLOAT32,  1,    0,    NO_C0,    C01B, .adjoint = true },
    { MC_FLOAT64,  1,    2,    SAME_C0,  C01B, .epilogue = true },
    { MC_FLOAT32,  1,    0,    NO_C0,    BC01, .wide = true },
    { MC_FLOAT16,  1,    1,    OTHER_C0, BC01, .epilogue = true },
    { MC_BFLOAT16, 0.5,  0,    NO_C0,    B01C },
    { MC_FLOAT32,  1,    1,    OTHER_C0, MIRROR, .epilogue = true },
    { MC_FLOAT64,  1,    0,    NO_C0,    SPREAD },
};

/* ---- memory whose end is guarded ---- */

struct guarded {
    char *base, *at;
    size_t mapped;
};

static struct guarded guard(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    struct guarded g = { .mapped = whole + page };
    g.base = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.base == MAP_FAILED) {
        abort();
    }
    mprotect(g.base + whole, page, PROT_NONE);
    g.at = g.base + whole - bytes;
    memset(g.base, 0xff, whole); /* NaN in every float dtype */
    return g;
}

/* ---- one problem with its operands and what must come out ---- */

struct instance {
    struct mc_conv_problem p;
    struct variant v;
    struct mc_conv_array array[3];
    struct guarded op[3], c0;
    int64_t reach[3];       /* elements, gaps included */
    char *data[3], *data_c0; /* where element 0 is */
    double *number[3];      /* each operand as a dense array in C order; the result's: what the adjoint meets */
    double *sum;            /* of the definition */
    double *start;          /* c0 */
    double worst;           /* the largest sum of absolute products */
    double inner, inner_size;
    unsigned char *seen;    /* by the epilogue */
    char *before;           /* what the result held */
};

static void lay_out(struct mc_conv_array *a, int64_t *stride, int layout, bool result)
{
    static const int orders[NLAYOUT][8] = {
        [BC01] = { 0, 1, 2, 3, 4 }, [B01C] = { 0, 2, 3, 4, 1 }, [C01B] = { 1, 2, 3, 4, 0 }, [GAPS] = { 0, 1, 2, 3, 4 },
        [MIRROR] = { 0, 1, 2, 3, 4 }, [SPREAD] = { 0, 1, 2, 3, 4 },
    };
    int64_t step = 1;
    mc_conv_dense_strides(a, stride);
    a->stride = stride;
    if (layout == BC01 || a->rank == 8) {
        return;
    }
    for (int i = 4; i >= 0; i--) {
        const int axis = orders[layout][i];
        stride[axis] = step;
        step *= MC_MAX(a->size[axis], (int64_t)1);
        step += layout == GAPS && i >= 3;
    }
    for (int i = 1; i < 5 && layout == MIRROR; i += 3) {
        stride[i] = -stride[i];
    }
    stride[0] = layout == SPREAD && !result ? 0 : stride[0];
}

static int64_t offset(const struct mc_conv_array *a, int64_t e)
{
    int64_t at = 0;
    for (int i = a->rank - 1; i >= 0; i--) {
        at += e % a->size[i] * a->stride[i];
        e /= a->size[i];
    }
    return at;
}

/* Elements that strides reach, and how many of them lie before the first. */
static int64_t reach(const struct mc_conv_array *a, int64_t *before)
{
    int64_t lo = 0, hi = 0;
    for (int i = 0; i < a->rank; i++) {
        const int64_t far = (a->size[i] - 1) * a->stride[i];
        *(far < 0 ? &lo : &hi) += far;
    }
    *before = mc_conv_count(a) ? -lo : 0;
    return mc_conv_count(a) ? hi - lo + 1 : 0;
}

/* Rounds to the dtype, so that the definition starts from what the solver reads. */
static double rounded(mc_dtype d, double v)
{
    char at[8];
    mc_store_f64(d, at, v);
    return mc_load_f64(d, at);
}

static double after(double v)
{
    return v < 0 ? 0.5 * v : v;
}

/* Calls f for every product of the definition with the flat numbers of its x, w and y. */
static void products(const struct mc_conv_shape *s, void (*f)(struct instance *x, int64_t ix, int64_t iw, int64_t iy),
                     struct instance *x)
{
    const int64_t cg = s->c / s->groups, fg = s->f / s->groups, taps = conv_volume(s->k), places = conv_volume(s->out);
    for (int64_t a = 0; a < taps; a++) {
        for (int64_t u = 0; u < places; u++) {
            const int64_t at[3] = { a / (s->k[1] * s->k[2]), a / s->k[2] % s->k[1], a % s->k[2] };
            const int64_t place[3] = { u / (s->out[1] * s->out[2]), u / s->out[2] % s->out[1], u % s->out[2] };
            int64_t i = 0, tap = 0;
            bool in = true;
            for (int z = 0; z < 3; z++) {
                const int64_t j = place[z] * s->stride[z] - s->pad[z] + at[z] * s->dilation[z];
                in &= j >= 0 && j < s->in[z];
                i = i * s->in[z] + j;
                tap = tap * s->k[z] + (s->flip ? s->k[z] - 1 - at[z] : at[z]);
            }
            for (int64_t e = 0; in && e < s->n * s->f * cg; e++) {
                const int64_t n = e / (s->f * cg), k = e / cg % s->f, c = e % cg;
                const int64_t w = (k * cg + c) * taps + tap;
                f(x, (n * s->c + k / fg * cg + c) * conv_volume(s->in) + i, s->unshared ? w * places + u : w,
                  (n * s->f + k) * places + u);
            }
        }
    }
}

static double *size_of_sum; /* of each element: the sum of absolute products */

static void add(struct instance *x, int64_t ix, int64_t iw, int64_t iy)
{
    const double vx = x->number[CONV_X][ix], vw = x->number[CONV_W][iw], vy = x->number[CONV_Y][iy];
    const enum mc_conv_pass pass = x->p.s.pass;
    const int64_t at = pass == CONV_FORWARD ? iy : pass == CONV_INPUTS ? ix : iw;
    const double v = pass == CONV_FORWARD ? vx * vw : pass == CONV_INPUTS ? vy * vw : vx * vy;
    x->sum[at] += v;
    size_of_sum[at] += fabs(v);
    x->inner += vx * vw * vy;
    x->inner_size += fabs(vx * vw * vy);
}

static void expect(struct instance *x)
{
    const int64_t n = mc_conv_count(&x->array[mc_conv_result(x->p.s.pass)]);
    x->sum = calloc((size_t)n + 1, sizeof(double));
    size_of_sum = calloc((size_t)n + 1, sizeof(double));
    products(&x->p.s, add, x);
    for (int64_t e = 0; e < n; e++) {
        x->worst = fmax(x->worst, size_of_sum[e]);
    }
    free(size_of_sum);
}

static struct instance make(struct mc_conv_shape s, struct variant v)
{
    struct instance x = { .v = v };
    const int64_t size = mc_dtypes[v.dtype].size;
    x.p = (struct mc_conv_problem){ .base.family = &mc_conv_family, .dtype = v.dtype, .s = s, .alpha = v.alpha,
                                    .beta = v.beta, .has_epilogue = v.epilogue, .wide = v.wide };
    int64_t *const strides[] = { x.p.at.x, x.p.at.w, x.p.at.y };
    for (int role = CONV_X; role <= CONV_Y; role++) {
        x.array[role] = mc_conv_array(&x.p, role);
        lay_out(&x.array[role], strides[role], v.layout, role == mc_conv_result(s.pass));
        const int64_t n = mc_conv_count(&x.array[role]);
        int64_t before;
        x.reach[role] = reach(&x.array[role], &before);
        x.op[role] = guard((size_t)(x.reach[role] * size));
        x.data[role] = x.op[role].at + before * size;
        x.number[role] = malloc((size_t)(n + 1) * sizeof(double));
        for (int64_t e = 0; e < n; e++) {
            x.number[role][e] = rounded(v.dtype, test_uniform(-1, 1));
            mc_store_f64(v.dtype, x.data[role] + offset(&x.array[role], e) * size, x.number[role][e]);
        }
        for (int64_t e = 0; e < n; e++) { /* several may share a place */
            x.number[role][e] = mc_load_f64(v.dtype, x.data[role] + offset(&x.array[role], e) * size);
        }
    }
    const int role = mc_conv_result(s.pass);
    const int64_t n = mc_conv_count(&x.array[role]);
    x.c0 = guard((size_t)(x.reach[role] * size));
    x.data_c0 = x.c0.at + (x.data[role] - x.op[role].at);
    x.start = calloc((size_t)n + 1, sizeof(double));
    x.seen = calloc((size_t)n + 1, 1);
    x.before = malloc((size_t)(x.reach[role] * size) + 1);
    for (int64_t e = 0; e < n && v.beta != 0; e++) {
        x.start[e] = v.c0 == SAME_C0 ? x.number[role][e] : rounded(v.dtype, test_uniform(-1, 1));
        mc_store_f64(v.dtype, x.data_c0 + offset(&x.array[role], e) * size, x.start[e]);
    }
    memcpy(x.before, x.op[role].at, (size_t)(x.reach[role] * size));
    expect(&x);
    return x;
}

static void unmake(struct instance *x)
{
    for (int role = CONV_X; role <= CONV_Y; role++) {
        munmap(x->op[role].base, x->op[role].mapped);
        free(x->number[role]);
    }
    munmap(x->c0.base, x->c0.mapped);
    free(x->sum);
    free(x->start);
    free(x->seen);
    free(x->before);
}

/* A copy of the problem that points at its own strides. */
static struct mc_conv_array result_of(const struct instance *x)
{
    return mc_conv_array(&x->p, mc_conv_result(x->p.s.pass));
}

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
    void *operand[8] = { x->data[0], x->data[1], x->data[2], x->v.c0 == SAME_C0 ? x->data[role] : x->data_c0 };
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
    return eps * ((sqrt(taps) + 8) * fabs(x->p.alpha) * x->worst + 4 * fabs(x->p.beta)) + mc_dtypes[d].eps * fabs(want) +
           (mc_dtypes[d].size == 2 ? 0x1p-24 : 0);
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
    CHECK(wrong == 0, "%s: %lld of %lld wrong, the first at %lld: %.9g, not %.9g within %.3g", name, (long long)wrong,
          (long long)n, (long long)first, got, wanted, bound(x, wanted));
    CHECK(missed == 0, "%s: the epilogue met %lld elements not once", name, (long long)missed);
    CHECK(memcmp(gaps, x->before, bytes) == 0, "%s: wrote into gaps of the result", name);
    if (x->v.adjoint) {
        const double most = (mc_dtypes[d].cls == CLASS_F64 ? 0x1p-48 : 0x1p-19) * x->inner_size + 1e-300;
        CHECK(fabs(inner - x->inner) <= most, "%s: <result, the third> is %.9g, not %.9g", name, inner, x->inner);
    }
    free(gaps);
}

/* Libraries are tried when they are named, but not under a sanitizer, which misjudges their threads. */
static void name_solver(const char *name)
{
    mc_flag_set("conv.algo_fwd", name);
    mc_flag_set("conv.algo_bwd_data", name);
    mc_flag_set("conv.algo_bwd_filter", name);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    mc_flags_parse("onednn=none,blas=none");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    mc_flags_parse("onednn=none,blas=none");
#endif
#endif
}

static bool try_solver(struct instance *x, const struct mc_solver *s, const char **no)
{
    const char *why = s->refuse ? s->refuse(&x->p.base) : NULL;
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
    struct mc_plan *plan = strncmp(s->name, "onednn", 6) == 0 || (s->refuse && s->refuse(&x->p.base)) ? NULL
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
    static const char *const shapes[] = { "n5c20f12 i20x21 k3x3 p1x1", "n1c33f24 i30 k9", "n9c8f16 i11x11 k1x1", "n2c3f8 i30x31 k7x7 s2x2 flip" };
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
                if (!test_is_full() && v > 0 && (g + v) % 2 && strncmp(mc_conv_solvers[row]->name, "onednn", 6) == 0) {
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
                    no = mc_conv_solvers[row]->refuse ? mc_conv_solvers[row]->refuse(&x.p.base) : NULL;
                    served[row] += !no;
                    unmake(&x);
                    if (no && strstr(no, "no library")) {
                        served[row] = -1;
                    }
                }
            }
        }
        CHECK(served[row] != 0, "%s takes nothing of the grid: it %s", mc_conv_solvers[row]->name, no);
    }
    name_solver("auto");
}

/* Under a low cap solvers work in smaller pieces, or the planner does without them; what is left is right. */
TEST(conv_keeps_the_workspace_cap)
{
    static const char *const shapes[] = { "n3c40f12 i20x21 k3x3 p1x1", "n2c64f24 i40 k9 s2", "n5c33f8 i12x12 k5x5 g1 flip" };
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
            struct mc_plan *plan = mc_conv_plan(&x.p);
            CHECK(plan && plan->workspace <= 100 * 1024, "%s", plan ? "too much workspace" : mc_last_error());
            mc_plan_free(plan);
            mc_flags_parse("workspace=1G");
            unmake(&x);
        }
    }
}

/* ---- planning ---- */

static struct mc_conv_problem problem(const char *shape, enum mc_conv_pass pass)
{
    struct mc_conv_problem p = { .dtype = MC_FLOAT32, .s = conv_parse(shape), .alpha = 1 };
    p.s.pass = pass;
    int64_t *const strides[] = { p.at.x, p.at.w, p.at.y };
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(&p, role);
        mc_conv_dense_strides(&a, strides[role]);
    }
    return p;
}

TEST(conv_words)
{
    static const struct {
        const char *shape;
        enum mc_conv_pass pass;
        const char *word;
    } rows[] = {
        { "n128c64f128 i64x64 k9x9", CONV_FORWARD, "conv f32 fwd n128c64i64x64 f128k9x9o56x56" },
        { "n2c4f6 i9 k3 s2 d2 p1 g2 flip", CONV_INPUTS, "conv f32 inputs n2c4i9 f6k3o4 s2 d2 p1 g2 flip" },
        { "n2c3f4 i6x7 k3x3 unshared", CONV_WEIGHTS, "conv f32 weights n2c3i6x7 f4k3x3o4x5 unshared" },
        { "n2c3f4 i9x9 k1x1 d2x2 flip", CONV_FORWARD, "conv f32 fwd n2c3i9x9 f4k1x1o9x9" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        const struct mc_conv_problem p = problem(rows[i].shape, rows[i].pass);
        struct mc_plan *plan = mc_conv_plan(&p);
        struct mc_str text = { 0 };
        REQUIRE(plan, "%s", mc_last_error());
        mc_conv_family.word(plan->problem, &text);
        CHECK(strcmp(text.s, rows[i].word) == 0, "%s, not %s", text.s, rows[i].word);
        mc_str_free(&text);
        mc_plan_free(plan);
    }
}

TEST(conv_layout_words)
{
    struct mc_conv_problem p = problem("n2c3f4 i6x7 k3x3", CONV_FORWARD);
    p.base.family = &mc_conv_family;
    p.beta = 1;
    p.alpha = 2;
    p.has_epilogue = true;
    memcpy(p.at.x, (int64_t[]){ 126, 1, 126, 21, 3 }, sizeof p.at.x);
    memcpy(p.at.w, (int64_t[]){ 1, 36, 36, 12, 4 }, 5 * sizeof(int64_t));
    p.at.y[0] = 90;
    struct mc_str text = { 0 };
    mc_conv_family.word(&p.base, &text);
    CHECK(strcmp(text.s, "conv f32 fwd n2c3i6x7 f4k3x3o4x5 x:b01c w:c01f y:90,20,,5,1 a c0 e") == 0, "%s", text.s);
    mc_str_free(&text);
}

TEST(conv_errors)
{
    static const struct {
        const char *flags, *shape;
        enum mc_conv_pass pass;
        const char *says;
    } rows[] = {
        { "conv.algo_fwd=nonsense", "n2c3f4 i6x7 k3x3", CONV_FORWARD, "conv has no solver 'nonsense'; there are: auto" },
        { "conv.algo_fwd=auto", "n2c3f4 i6x7 k3x3 g2", CONV_FORWARD, "these sizes cannot be" },
        { "conv.algo_fwd=auto", "n2c3f4 i6x7 k3x3 s0x1", CONV_FORWARD, "these sizes cannot be" },
        { "conv.algo_fwd=auto", "n-1c3f4 i6x7 k3x3", CONV_WEIGHTS, "these sizes cannot be" },
        { "conv.algo_fwd=auto", "n4000000000c4000000000f4 i6x7 k3x3", CONV_FORWARD, "these sizes cannot be" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_conv_problem p = { .dtype = MC_FLOAT32, .alpha = 1 };
        const bool zero = strstr(rows[i].shape, "s0") != NULL;
        p.s = zero ? conv_parse("n2c3f4 i6x7 k3x3") : conv_parse(rows[i].shape);
        p.s.stride[1] = zero ? 0 : p.s.stride[1];
        p.s.pass = rows[i].pass;
        mc_flags_parse(rows[i].flags);
        struct mc_plan *plan = mc_conv_plan(&p);
        CHECK(!plan && strstr(mc_last_error(), rows[i].says), "%s: %s", rows[i].shape, mc_last_error());
        mc_plan_free(plan);
    }
    struct mc_conv_problem p = problem("n2c3f4 i6x7 k3x3", CONV_FORWARD);
    p.dtype = MC_INT32;
    CHECK(!mc_conv_plan(&p) && strstr(mc_last_error(), "must be a float"), "%s", mc_last_error());
}

/* Theano's words plan whatever the problem is. */
TEST(conv_algo_words)
{
    static const char *const words[] = { "none", "small", "large", "fft", "fft_tiling", "winograd_non_fused", "deterministic",
                                         "guess_once", "guess_on_shape_change", "time_once", "time_on_shape_change", "auto" };
    for (size_t i = 0; i < NELEM(words); i++) {
        name_solver(words[i]);
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            const struct mc_conv_problem p = problem("n2c3f4 i6x7 k3x3 s2x2 d1x2 flip", (enum mc_conv_pass)pass);
            struct mc_plan *plan = mc_conv_plan(&p);
            CHECK(plan, "%s: %s", words[i], mc_last_error());
            CHECK(!plan || plan->measured == (strncmp(words[i], "time", 4) == 0), "%s: measured %d", words[i],
                  plan ? plan->measured : -1);
            mc_plan_free(plan);
        }
    }
    name_solver("auto");
}

/* What a node asks for counts, not the flag; and it need not live longer than the planning. */
TEST(conv_algo_of_a_problem)
{
    struct mc_conv_problem p = problem("n2c3f4 i9x7 k3x3 p1x1", CONV_FORWARD);
    char algo[] = "im2col", precision[] = "float64";
    name_solver("reference");
    p.algo = algo;
    struct mc_plan *plan = mc_conv_plan(&p);
    memset(algo, 'x', sizeof algo - 1);
    REQUIRE(plan, "%s", mc_last_error());
    CHECK(strcmp(plan->solver->name, "im2col") == 0, "%s", plan->solver->name);
    CHECK(strcmp(((const struct mc_conv_problem *)(const void *)plan->problem)->algo, "im2col") == 0, "the text was the caller's");
    mc_plan_free(plan);
    CHECK(!mc_conv_plan(&p) && strstr(mc_last_error(), "conv has no solver 'xxxxxx'"), "%s", mc_last_error());
    p.algo = "fft_tiling";
    p.precision = precision;
    plan = mc_conv_plan(&p);
    REQUIRE(plan, "%s", mc_last_error());
    CHECK(strcmp(plan->solver->name, "relayout") == 0, "float64 by %s", plan->solver->name);
    mc_plan_free(plan);
    p.algo = "one";
    p.precision = NULL;
    CHECK(!mc_conv_plan(&p) && strstr(mc_last_error(), "solver one, which was asked for, takes filters of one tap"), "%s", mc_last_error());
    name_solver("auto");
}

/* Through a function: the node's word, then the flag. */
TEST(conv_algo_of_a_node)
{
    mc_flag_set("device", "cpu"); /* the solvers named here are the processor's */
    static const struct {
        const char *formula, *solver;
    } rows[] = {
        { "dnn_conv(x, w, algo='im2col')", "im2col" },
        { "dnn_conv(x, w, algo='none')", "im2col" },
        { "dnn_conv(x, w)", "reference" },
        { "conv(x, w, precision='float64', algo='relayout')", "relayout" },
    };
    name_solver("reference");
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[2, 3, 8, 9]; input w float32[4, 3, 3, 3]");
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w", .outputs = rows[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3, 8, 9)), *w = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 3, 3, 3)), *y = NULL;
        memset(mc_array_data(x), 0, (size_t)mc_array_size(x) * 4);
        memset(mc_array_data(w), 0, (size_t)mc_array_size(w) * 4);
        CHECK(mc_call(f, MC_IN(x, w), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].formula, mc_last_error());
        bool met = false;
        for (int k = 0; k < mc_function_nsteps(f); k++) {
            const mc_step_info step = mc_function_step(f, k);
            met |= step.solver && strcmp(step.solver, rows[i].solver) == 0;
        }
        CHECK(met, "%s is not served by %s", rows[i].formula, rows[i].solver);
        mc_array_unref(&x);
        mc_array_unref(&w);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    name_solver("auto");
}

/* The solver of the convolution in the function's last call. */
static const char *solver_at(mc_function *f, int64_t n, int64_t c, int64_t size, int64_t k)
{
    mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(n, c, size, size)), *w = mc_array_new(MC_FLOAT64, MC_SHAPE(16, c, k, k)), *y = NULL;
    const char *solver = "none";
    memset(mc_array_data(x), 0, (size_t)mc_array_size(x) * 8);
    memset(mc_array_data(w), 0, (size_t)mc_array_size(w) * 8);
    CHECK(mc_call(f, MC_IN(x, w), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        const mc_step_info step = mc_function_step(f, i);
        solver = step.solver && *step.solver ? step.solver : solver;
    }
    mc_array_unref(&x);
    mc_array_unref(&w);
    mc_array_unref(&y);
    return solver;
}

/* Two shapes whose estimates differ: once keeps the first one's solver, on_shape_change does not; a solver that declines the
 * next shape is not kept. */
TEST(conv_algo_chosen_once)
{
    mc_flag_set("device", "cpu"); /* the solvers named here are the processor's */
    static const struct {
        const char *algo;
        int64_t first[4], second[4]; /* images, channels, size, taps */
        bool kept;
    } rows[] = {
        { "guess_once",            { 1, 64, 20, 3 }, { 64, 2, 12, 9 }, true },
        { "guess_on_shape_change", { 1, 64, 20, 3 }, { 64, 2, 12, 9 }, false },
        { "auto",                  { 1, 64, 20, 3 }, { 64, 2, 12, 9 }, false },
        { "guess_once",            { 4, 64, 20, 1 }, { 64, 2, 12, 9 }, false }, /* one declines nine taps */
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        char formula[80];
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float64[?, ?, ?, ?]; input w float64[?, ?, ?, ?]");
        snprintf(formula, sizeof formula, "conv(x, w, flip=False, algo='%s')", rows[i].algo);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w", .outputs = formula });
        REQUIRE(f, "%s", mc_error(g));
        const int64_t *a = rows[i].first, *b = rows[i].second;
        const char *first = solver_at(f, a[0], a[1], a[2], a[3]), *second = solver_at(f, b[0], b[1], b[2], b[3]);
        CHECK(strcmp(first, "exchange") != 0, "%s: the first shape is too much like the second", rows[i].algo);
        CHECK(strcmp(second, rows[i].kept ? first : "exchange") == 0, "%s: %s, then %s", rows[i].algo, first, second);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* In float64, where products of matrices are all there is, the rule of the two ways: by forward if n * taps < c * places. */
TEST(conv_forward_by_the_better_product)
{
    static const struct {
        const char *shape, *solver;
    } rows[] = {
        { "n32c64f128 i32x32 k5x5",   "im2col" },
        { "n32c64f128 i32x32 k28x28", "exchange" },
        { "n1c64f64 i40x40 k3x3",     "im2col" },
        { "n64c2f16 i12x12 k9x9",     "exchange" },
        { "n1c2f4 i28x28 k15x15",     "im2col" },       /* by the other, the products alone would take less */
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_conv_problem p = problem(rows[i].shape, CONV_FORWARD);
        p.dtype = MC_FLOAT64;
        struct mc_plan *plan = mc_conv_plan(&p);
        REQUIRE(plan, "%s", mc_last_error());
        CHECK(strcmp(plan->solver->name, rows[i].solver) == 0, "%s: %s", rows[i].shape, plan->solver->name);
        mc_plan_free(plan);
    }
}

/* ---- two runs ---- */

static char *bits_of(const struct mc_plan *plan, size_t *bytes)
{
    const struct mc_conv_array a = mc_conv_array(conv(plan->problem), mc_conv_result(conv(plan->problem)->s.pass));
    void *operand[8];
    if (!CHECK(mc_conv_family.operands(plan->problem, operand) == MC_OK, "%s", mc_last_error())) {
        return NULL;
    }
    void *workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "test") : NULL;
    CHECK(plan->run(plan, operand, workspace, 0) == MC_OK, "%s", mc_last_error());
    *bytes = (size_t)mc_conv_count(&a) * mc_dtypes[conv(plan->problem)->dtype].size;
    char *copy = malloc(*bytes);
    memcpy(copy, operand[mc_conv_result(conv(plan->problem)->s.pass)], *bytes);
    mc_free_pages(workspace);
    mc_conv_family.discard(plan->problem, operand);
    return copy;
}

/* What the first run timed, a second one reads from the file: the same plan to the letter, the same bits. */
TEST(conv_two_runs_choose_the_same)
{
#ifdef __SANITIZE_ADDRESS__
    mc_flag_set("onednn", "none"); /* the leak checker of gcc 12 dies of the threads it leaves behind */
#endif
    static const char *const shapes[] = { "n4c16f24 i20x21 k3x3 p1x1", "n3c4f20 i28x28 k5x5", "n2c8f8 i9x9 k1x1", "n2c3f8 i23x23 k7x7 s2x2 p3x3" };
    static const char *const modes[] = { "plan=estimate", "plan=measure" };
    char here[] = "/tmp/monochord-conv-XXXXXX", there[] = "/tmp/monochord-conv-XXXXXX";
    REQUIRE(mkdtemp(here) && mkdtemp(there), "no folders");
    for (size_t i = 0; i < NELEM(shapes) * 3 * NELEM(modes); i++) {
        const struct mc_conv_problem p = problem(shapes[i / 6], (enum mc_conv_pass)(i / 2 % 3));
        struct mc_str text[2] = { { 0 } };
        char *bits[2] = { NULL };
        size_t bytes = 0;
        mc_flags_parse(modes[i % 2]);
        for (int run = 0; run < 2; run++) {
            mc_flag_set("cache", here);
            mc_flag_set("threads", i % 2 ? "0" : run ? "1" : "2"); /* wisdom is for one number of threads, estimates for any */
            struct mc_plan *plan = mc_conv_plan(&p);
            REQUIRE(plan, "%s", mc_last_error());
            mc_plan_text(plan, &text[run]);
            bits[run] = bits_of(plan, &bytes);
            mc_plan_free(plan);
            mc_flag_set("cache", there); /* forgets what is in memory, */
            struct mc_plan *other = mc_conv_plan(&p);
            mc_plan_free(other);
            mc_wisdom_clear();
        }
        CHECK(strcmp(text[0].s, text[1].s) == 0, "%s, then %s", text[0].s, text[1].s);
        CHECK(bits[0] && bits[1] && memcmp(bits[0], bits[1], bytes) == 0, "%s: other bits", text[0].s);
        mc_str_free(&text[0]);
        mc_str_free(&text[1]);
        free(bits[0]);
        free(bits[1]);
    }
    mc_flag_set("cache", here);
    mc_wisdom_clear();
    rmdir(mc_cache_dir());
    rmdir(here);
    mc_flag_set("cache", there);
    rmdir(mc_cache_dir());
    rmdir(there);
}

TEST(conv_verify)
{
    mc_flags_parse("check=3");
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        const struct mc_conv_problem p = problem("n2c3f4 i9x7 k3x3 p1x1", (enum mc_conv_pass)pass);
        struct mc_plan *plan = mc_conv_plan(&p);
        CHECK(plan, "%s", mc_last_error());
        mc_plan_free(plan);
    }
    mc_flags_parse("check=0");
}

TEST(conv_plans_without_memory)
{
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        const struct mc_conv_problem p = problem("n2c3f4 i9x7 k3x3 p1x1", (enum mc_conv_pass)pass);
        for (const struct mc_solver *const *s = mc_conv_solvers; *s; s++) {
            struct mc_conv_problem with = p;
            with.base.family = &mc_conv_family;
            name_solver((*s)->name);
            if ((*s)->refuse && (*s)->refuse(&with.base)) {
                continue;
            }
            ALLOC_FAIL_LOOP {
                struct mc_plan *plan = mc_plan_with(&with.base, *s);
                CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
                mc_plan_free(plan);
            }
        }
        name_solver("auto");
        ALLOC_FAIL_LOOP {
            struct mc_plan *plan = mc_conv_plan(&p);
            CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
            mc_plan_free(plan);
        }
    }
}

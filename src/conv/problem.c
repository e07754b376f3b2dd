/* problem.c: the family of convolutions: its word, operands to time with, the check against the reference,
 * and the flags that name a solver.
 *
 *     conv f32 fwd n128c64i64x64 f128k9x9o56x56 s2x2 d2x2 p1x1 g2 flip unshared x:b01c a c0 e
 *
 * Invariant: problems of one word differ at most in addresses and in the values of alpha and beta. */
#include "conv/solver.h"
#include <inttypes.h>
#include <math.h>

static const char *const short_name[MC_NDTYPE] = {
    [MC_FLOAT16] = "f16", [MC_BFLOAT16] = "bf16", [MC_FLOAT32] = "f32", [MC_FLOAT64] = "f64",
};
static const char *const pass_name[] = { [CONV_FORWARD] = "fwd", [CONV_INPUTS] = "inputs", [CONV_WEIGHTS] = "weights" };

/* ---- word ---- */

static void triple(struct mc_str *out, const char *name, const int64_t *v, int from)
{
    mc_str_add(out, name);
    for (int i = from; i < 3; i++) {
        mc_str_addf(out, "%s%" PRId64, i > from ? "x" : "", v[i]);
    }
}

static void triple_unless(struct mc_str *out, const char *name, const int64_t *v, int from, int64_t usual)
{
    for (int i = from; i < 3; i++) {
        if (v[i] != usual) {
            triple(out, name, v, from);
            return;
        }
    }
}

static const struct {
    const char *name[3]; /* of x, w, y */
    int order[5];        /* outermost first */
} layouts[] = {
    { { "b01c", "f01c", "b01c" }, { 0, 2, 3, 4, 1 } },
    { { "c01b", "c01f", "c01b" }, { 1, 2, 3, 4, 0 } },
};

static bool in_order(const struct mc_conv_array *a, const int *order)
{
    int64_t step = 1;
    for (int i = 4; i >= 0; i--) {
        if (a->size[order[i]] > 1 && a->stride[order[i]] != step) {
            return false;
        }
        step *= a->size[order[i]];
    }
    return a->rank == 5;
}

/* Nothing for C order; else the layout's name, or all strides that matter. */
static void layout(struct mc_str *out, const struct mc_conv_problem *p, int role)
{
    const struct mc_conv_array a = mc_conv_array(p, role);
    if (mc_conv_dense(p, role)) {
        return;
    }
    mc_str_addf(out, " %c:", "xwy"[role]);
    for (size_t i = 0; i < NELEM(layouts); i++) {
        if (in_order(&a, layouts[i].order)) {
            mc_str_add(out, layouts[i].name[role]);
            return;
        }
    }
    for (int i = 0; i < a.rank; i++) {
        mc_str_add(out, i ? "," : "");
        if (a.size[i] > 1) {
            mc_str_addf(out, "%" PRId64, a.stride[i]);
        }
    }
}

void mc_conv_word(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    int from = 3 - MC_MIN(MC_MAX(s->nd, 1), 3);
    for (int i = from - 1; i >= 0; i--) {
        from = s->in[i] != 1 || s->out[i] != 1 || s->k[i] != 1 ? i : from;
    }
    mc_str_addf(out, "conv %s %s n%" PRId64 "c%" PRId64, short_name[p->dtype], pass_name[s->pass], s->n, s->c);
    triple(out, "i", s->in, from);
    mc_str_addf(out, " f%" PRId64, s->f);
    triple(out, "k", s->k, from);
    triple(out, "o", s->out, from);
    triple_unless(out, " s", s->stride, from, 1);
    triple_unless(out, " d", s->dilation, from, 1);
    triple_unless(out, " p", s->pad, from, 0);
    if (s->groups != 1) {
        mc_str_addf(out, " g%" PRId64, s->groups);
    }
    mc_str_add(out, s->flip ? " flip" : "");
    mc_str_add(out, s->unshared ? " unshared" : "");
    for (int role = CONV_X; role <= CONV_Y; role++) {
        layout(out, p, role);
    }
    mc_str_add(out, p->alpha != 1 ? " a" : "");
    mc_str_add(out, p->beta == 0 ? "" : p->c0_apart ? " c0 apart" : " c0");
    mc_str_add(out, p->has_epilogue ? " e" : "");
    mc_str_add(out, p->has_bias ? " bias" : "");
    mc_str_add(out, mc_act_names[p->act]);
    mc_str_add(out, p->wide ? " wide" : "");
    mc_str_add(out, p->tf32 ? " tf32" : "");
    if (p->inner) {
        mc_str_addf(out, " in%u", p->inner); /* fewer solvers come into question */
    }
}

/* ---- operands ---- */

/* Elements that strides reach: how many lie before the first (negative strides), and all. */
static int64_t reach(const struct mc_conv_array *a, int64_t *before)
{
    int64_t lo = 0, hi = 0;
    for (int i = 0; i < a->rank; i++) {
        const int64_t far = (a->size[i] - 1) * a->stride[i];
        *(far < 0 ? &lo : &hi) += far;
    }
    *before = -lo;
    return mc_conv_count(a) ? hi - lo + 1 : 0;
}

enum { DRAWN = 8191 }; /* numbers, and then those again: no size of an image */

/* Random numbers in [-1, 1): neither zeros nor all of one sign, both of which are faster than life. */
static void fill(mc_dtype d, char *at, int64_t n, uint32_t salt)
{
    const int64_t size = mc_dtypes[d].size;
    for (int64_t i = 0; i < MC_MIN(n, (int64_t)DRAWN); i++) {
        uint32_t h = ((uint32_t)i + salt * 977u) * 2654435761u + salt; /* whatever the strides, products are not squares */
        h = (h ^ h >> 15) * 2246822519u;
        h = (h ^ h >> 13) * 3266489917u;
        h ^= h >> 16;
        mc_store_f64(d, at + i * size, (double)(int32_t)h * 0x1p-31);
    }
    for (int64_t i = DRAWN; i < n; i += DRAWN) {
        memcpy(at + i * size, at, (size_t)(MC_MIN(n - i, (int64_t)DRAWN) * size));
    }
}

static struct mc_conv_array operand_array(const struct mc_conv_problem *p, int i)
{
    return mc_conv_array(p, i == CONV_C0 ? mc_conv_result(p->s.pass) : i);
}

void mc_conv_extents(const struct mc_conv_problem *p, struct mc_extent e[5])
{
    for (int i = CONV_X; i <= CONV_C0; i++) {
        const struct mc_conv_array a = operand_array(p, i);
        e[i].dtype = p->dtype;
        e[i].count = reach(&a, &e[i].before);
        e[i].count = i == CONV_C0 && p->beta == 0 ? 0 : e[i].count;
    }
    e[CONV_BIAS] = (struct mc_extent){ p->dtype, 0, p->has_bias ? p->s.f : 0 };
}

static void discard(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_extent e[5];
    mc_conv_extents(p, e);
    for (int i = 0; i < 5; i++) {
        if (operand[i] && e[i].count > 0) {
            mc_free_pages((char *)operand[i] - e[i].before * mc_dtypes[p->dtype].size);
        }
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

static mc_status operands(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_conv_problem *p = conv(p_);
    const int64_t size = mc_dtypes[p->dtype].size;
    memset(operand, 0, 8 * sizeof operand[0]);
    struct mc_extent e[5];
    mc_conv_extents(p, e);
    for (int i = 0; i < 5; i++) {
        if (e[i].count > 0) {
            char *at = mc_alloc_pages((size_t)(e[i].count * size), "planner");
            if (!at) {
                discard(p_, operand);
                return MC_EMEMORY;
            }
            fill(p->dtype, at, e[i].count, (uint32_t)i);
            operand[i] = at + e[i].before * size;
        }
    }
    if (p->has_epilogue) {
        mc_conv_epilogue *f = mc_conv_no_epilogue;
        memcpy(&operand[CONV_EPILOGUE], &f, sizeof f);
    }
    return MC_OK;
}

/* ---- a sample to time ---- */

enum { IMAGES = 16 }; /* whole vectors of images, where there are as many */

static bool images_outermost(const struct mc_conv_array *a)
{
    for (int i = 1; i < 5; i++) {
        if (a->size[i] > 1 && a->stride[i] >= a->stride[0]) {
            return false;
        }
    }
    return true;
}

/* Some of the images, unless other axes are around them: their number would be another's stride. */
static double sample(const struct mc_problem *p_, double seconds, struct mc_problem *small)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_array x = mc_conv_array(p, CONV_X), y = mc_conv_array(p, CONV_Y);
    const double all = mc_conv_best(p);
    int64_t n = p->s.n;
    if (all > seconds && images_outermost(&x) && images_outermost(&y)) {
        n = MC_MAX((int64_t)((double)n * seconds / all), (int64_t)1);
        n = n > IMAGES ? conv_ceil(n, IMAGES) * IMAGES : n;
    }
    ((struct mc_conv_problem *)(void *)small)->s.n = MC_MIN(n, p->s.n);
    return (double)p->s.n / (double)MC_MIN(n, p->s.n);
}

/* ---- verification ---- */

/* Sums of k products of numbers in [-1, 1) stay near sqrt(k); the error of any order of summation
 * stays below eps * k; halves add one rounding of the result. */
static double allowed(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const struct mc_conv_array r = mc_conv_array(p, mc_conv_result(s->pass));
    const double eps = mc_dtypes[p->dtype].cls == CLASS_F64 ? 0x1p-52 : p->tf32 ? 0x1p-10 : 0x1p-23;
    const double taps = s->pass == CONV_WEIGHTS && s->unshared ? (double)s->n
                        : mc_conv_flops(p) / 2 / (double)MC_MAX(mc_conv_count(&r), (int64_t)1);
    const double size = fabs(p->alpha) * sqrt(taps + 1) * 3 + fabs(p->beta);
    return 4 * eps * (fabs(p->alpha) * (taps + 4) * 2 + fabs(p->beta)) + mc_dtypes[p->dtype].eps * size;
}

mc_status mc_conv_compare(const struct mc_conv_problem *p, const struct mc_plan *plan, const char *got, const char *want)
{
    const struct mc_conv_array a = mc_conv_array(p, mc_conv_result(p->s.pass));
    const int64_t count = mc_conv_count(&a);
    const double most = allowed(p);
    for (int64_t e = 0; e < count; e++) {
        int64_t at = 0, rest = e;
        for (int i = a.rank - 1; i >= 0; i--) {
            at += rest % a.size[i] * a.stride[i];
            rest /= a.size[i];
        }
        const double x = mc_load_f64(p->dtype, got + at * mc_dtypes[p->dtype].size);
        const double y = mc_load_f64(p->dtype, want + at * mc_dtypes[p->dtype].size);
        if (!(fabs(x - y) <= most)) {
            struct mc_str text = { 0 };
            mc_plan_text(plan, &text);
            mc_fail(MC_ECHECK, "%s: element %" PRId64 " is %.9g, the reference has %.9g", text.s ? text.s : "conv", e, x,
                    y);
            mc_str_free(&text);
            return MC_ECHECK;
        }
    }
    return MC_OK;
}

static mc_status run_into(const struct mc_plan *plan, void *const *operand, int role, void *result)
{
    void *with[8];
    void *workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    if (plan->workspace && !workspace) {
        return MC_EMEMORY;
    }
    memcpy(with, operand, sizeof with);
    with[role] = result;
    const mc_status s = plan->run(plan, with, workspace, 0);
    mc_free_pages(workspace);
    return s;
}

static mc_status verify(const struct mc_problem *p_, const struct mc_plan *plan)
{
    const struct mc_conv_problem *p = conv(p_);
    const int role = mc_conv_result(p->s.pass);
    const struct mc_conv_array a = mc_conv_array(p, role);
    const int64_t size = mc_dtypes[p->dtype].size;
    struct mc_plan *truth = NULL;
    void *operand[8];
    char *want = NULL;
    int64_t before;
    TRY(operands(p_, operand));
    mc_status s = MC_EMEMORY;
    const size_t bytes = (size_t)(reach(&a, &before) * size);
    if (!bytes) {
        s = MC_OK;
        goto done;
    }
    truth = mc_plan_with(p_, &mc_conv_reference);
    want = mc_alloc_pages(bytes, "planner");
    if (!truth || !want) {
        goto done;
    }
    s = run_into(truth, operand, role, want + before * size);
    if (s >= 0) {
        s = run_into(plan, operand, role, operand[role]);
    }
    if (s >= 0) {
        s = mc_conv_compare(p, plan, operand[role], want + before * size);
    }
done:
    mc_plan_free(truth);
    mc_free_pages(want);
    discard(p_, operand);
    return s;
}

const struct mc_family mc_conv_family = {
    .name         = "conv",
    .solvers      = mc_conv_solvers,
    .problem_size = sizeof(struct mc_conv_problem),
    .word         = mc_conv_word,
    .sample       = sample,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
    .forced       = mc_conv_forced,
};

/* ---- planning ---- */

bool mc_conv_may_round(mc_dtype t, const char *precision)
{
    return t == MC_FLOAT32 && strcmp(precision ? precision : mc_flag_text(FLAG_conv_precision), "tf32") == 0;
}

/* What does not matter is set to what is usual, so that equal work has equal words. */
static void settle(struct mc_conv_problem *p)
{
    struct mc_conv_shape *s = &p->s;
    bool one = true;
    for (int i = 0; i < 3; i++) {
        s->dilation[i] = s->k[i] == 1 ? 1 : s->dilation[i];
        s->stride[i] = s->out[i] == 1 ? 1 : s->stride[i];
        one &= s->k[i] == 1;
    }
    s->flip &= !one;
    const char *precision = p->precision ? p->precision : mc_flag_text(FLAG_conv_precision);
    p->tf32 = p->base.family->site && ((p->tf32 && p->dtype == MC_FLOAT32) || (!p->inner && mc_conv_may_round(p->dtype, precision)));
    p->wide |= p->dtype != MC_FLOAT64 && !p->inner && strcmp(precision, "float64") == 0;
    p->precision = NULL;                                        /* plans keep the problem, but not the caller's text */
    p->algo = p->algo && !p->inner ? mc_conv_lasting(p->algo) : NULL;
}

static bool possible(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    if (s->n < 0 || s->c < 0 || s->f < 0 || s->groups < 1 || s->c % s->groups || s->f % s->groups) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        if (s->in[i] < 0 || s->out[i] < 0 || s->k[i] < 0 || s->stride[i] < 1 || s->dilation[i] < 1) {
            return false;
        }
    }
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        int64_t count = 8; /* bytes */
        for (int i = 0; i < a.rank; i++) {
            if (!mc_mul_i64(count, MC_MAX(a.size[i], (int64_t)1), &count)) {
                return false;
            }
        }
    }
    return true;
}

const char *mc_conv_keep(const struct mc_conv_problem *asked, const struct mc_plan *first)
{
    struct mc_conv_problem p = *asked;
    p.base.family = first->problem->family;
    if (!mc_conv_chooses_once(mc_conv_asked(&p)) || !possible(&p)) {
        return NULL;
    }
    settle(&p);
    return mc_plan_declines(&p.base, first->solver) ? NULL : first->solver->name;
}

struct mc_plan *mc_conv_plan_in(const struct mc_family *family, const struct mc_conv_problem *asked)
{
    struct mc_conv_problem p = *asked;
    p.base.family = family;
    if (p.dtype < 0 || p.dtype >= MC_NDTYPE || !short_name[p.dtype]) {
        mc_fail(MC_ETYPE, "conv: the dtype must be a float");
        return NULL;
    }
    if (!possible(&p)) {
        struct mc_str text = { 0 };
        mc_conv_word(&p.base, &text);
        mc_fail(MC_ESHAPE, "%s: these sizes cannot be", text.s ? text.s : "conv");
        mc_str_free(&text);
        return NULL;
    }
    settle(&p);
    return mc_plan_make(&p.base);
}

double mc_conv_seconds(const struct mc_family *family, const struct mc_conv_problem *asked)
{
    struct mc_conv_problem p = *asked;
    p.base.family = family;
    settle(&p);
    return possible(&p) ? mc_plan_seconds(&p.base) : -1;
}

struct mc_plan *mc_conv_plan(const struct mc_conv_problem *p)
{
    return mc_conv_plan_in(&mc_conv_family, p);
}

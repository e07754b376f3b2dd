/* operands.c: operands for timing a convolution, a sample of its images if timing all takes too long, and the
 * comparison of its result with the reference's.
 *
 * Invariant: the expected result is computed by the reference on the same operands. */
#include "heavy/conv/solver.h"
#include <inttypes.h>
#include <math.h>

/* ---- operands ---- */

/* The number of elements from the lowest to the highest address, and *before, how many lie below index 0
 * (negative strides). */
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

enum { DRAWN = 8191 }; /* the period of the random numbers; no usual image size divides it */

/* Random numbers in [-1, 1). Zeros or numbers of one sign would run faster than real data. */
static void fill(mc_dtype d, char *at, int64_t n, uint32_t salt)
{
    const int64_t size = mc_dtypes[d].size;
    for (int64_t i = 0; i < MC_MIN(n, (int64_t)DRAWN); i++) {
        uint32_t h = ((uint32_t)i + salt * 977u) * 2654435761u +
                     salt; /* the salt makes operands differ, so that no product is a square */
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

void mc_conv_discard(const struct mc_problem *p_, void *operand[8])
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

mc_status mc_conv_operands(const struct mc_problem *p_, void *operand[8])
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
                mc_conv_discard(p_, operand);
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

enum { IMAGES = 16 }; /* the multiple of images in a sample, if there are as many */

static bool images_outermost(const struct mc_conv_array *a)
{
    for (int i = 1; i < 5; i++) {
        if (a->size[i] > 1 && a->stride[i] >= a->stride[0]) {
            return false;
        }
    }
    return true;
}

/* Rounds n up to a whole part of a vector of images: a few images more cost as much as the rest of that
 * part. */
static int64_t whole_parts(int64_t n)
{
    int64_t part = 1;
    while (part < MC_MIN(n, (int64_t)IMAGES)) {
        part *= 2;
    }
    return conv_ceil(n, part) * part;
}

size_t mc_conv_stays(const struct mc_problem *p_, int *operand)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_array w = mc_conv_array(p, CONV_W);
    *operand = CONV_W;
    return p->w_stays ? (size_t)mc_conv_count(&w) * mc_dtypes[p->dtype].size : 0;
}

/* A sample has fewer images, if images are the outermost axis; else their number would change the strides of
 * others. A sample of more than half of the images saves too little time for its error. */
double mc_conv_sample(const struct mc_problem *p_, double seconds, struct mc_problem *small)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_array x = mc_conv_array(p, CONV_X), y = mc_conv_array(p, CONV_Y);
    const double all = mc_plan_cheapest(&p->base);
    int64_t n = p->s.n;
    if (all > seconds && images_outermost(&x) && images_outermost(&y)) {
        n = whole_parts(MC_MAX((int64_t)((double)n * seconds / all), (int64_t)1));
        n = n > p->s.n / 2 ? p->s.n : n;
    }
    ((struct mc_conv_problem *)(void *)small)->s.n = n;
    return (double)p->s.n / (double)n;
}

/* ---- verification ---- */

/* A sum of k products of numbers in [-1, 1) is about sqrt(k) in size. The error of any order of summation is
 * below eps * k. Halves add one rounding of the result. */
static double allowed(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const struct mc_conv_array r = mc_conv_array(p, mc_conv_result(s->pass));
    const double eps = mc_dtypes[p->dtype].cls == CLASS_F64 ? 0x1p-52 : p->tf32 ? 0x1p-10 : 0x1p-23;
    const double taps = s->pass == CONV_WEIGHTS && s->unshared
                            ? (double)s->n
                            : mc_conv_flops(p) / 2 / (double)MC_MAX(mc_conv_count(&r), (int64_t)1);
    const double size = fabs(p->alpha) * sqrt(taps + 1) * 3 + fabs(p->beta);
    return 4 * eps * (fabs(p->alpha) * (taps + 4) * 2 + fabs(p->beta)) + mc_dtypes[p->dtype].eps * size;
}

mc_status mc_conv_compare(const struct mc_conv_problem *p, const struct mc_plan *plan, const char *got,
                          const char *want)
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
            mc_fail(MC_ECHECK, "%s: element %" PRId64 " is %.9g, the reference has %.9g",
                    text.s ? text.s : "conv", e, x, y);
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

mc_status mc_conv_verify(const struct mc_problem *p_, const struct mc_plan *plan)
{
    const struct mc_conv_problem *p = conv(p_);
    const int role = mc_conv_result(p->s.pass);
    const struct mc_conv_array a = mc_conv_array(p, role);
    const int64_t size = mc_dtypes[p->dtype].size;
    struct mc_plan *truth = NULL;
    void *operand[8];
    char *want = NULL;
    int64_t before;
    TRY(mc_conv_operands(p_, operand));
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
    mc_conv_discard(p_, operand);
    return s;
}

/* problem.c: the family of pooled convolutions: its keys, operands for timing, and the check against the
 * reference.
 *
 *     pooled conv f32 weights n500c1i28x28 f32k5x5o24x24 w2x2 s2x2 p0x0 o12x12
 *
 * Invariant: problems with equal keys differ at most in addresses. */
#include "heavy/conv_pool/solver.h"
#include <inttypes.h>
#include <math.h>

/* ---- key ---- */

static void triple(struct mc_str *out, const char *name, const int64_t *v)
{
    mc_str_addf(out, " %s%" PRId64 "x%" PRId64 "x%" PRId64, name, v[0], v[1], v[2]);
}

static const int64_t *sizes(const struct mc_pooled_problem *p, int64_t size[5])
{
    size[0] = p->conv.s.n;
    size[1] = p->conv.s.f;
    memcpy(size + 2, p->out, sizeof p->out);
    return size;
}

static void layout(struct mc_str *out, const struct mc_pooled_problem *p, const char *name,
                   const int64_t stride[5])
{
    int64_t size[5], dense = 1, odd = 0;
    sizes(p, size);
    for (int i = 4; i >= 0; i--) {
        odd |= size[i] > 1 && stride[i] != dense;
        dense *= size[i];
    }
    for (int i = 0; i < 5 && odd; i++) {
        mc_str_addf(out, "%s%" PRId64, i ? "," : name, stride[i]);
    }
}

void mc_pooled_key(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_pooled_problem *p = pooled(p_);
    mc_str_add(out, "pooled ");
    mc_conv_key(&p->conv.base, out);
    triple(out, "w", p->w);
    triple(out, "s", p->stride);
    triple(out, "p", p->pad);
    triple(out, "o", p->out);
    mc_str_add(out, p->unmarked            ? " no marks"
                    : p->bits              ? " bits"
                    : p->marks == MC_UINT8 ? ""
                                           : " wide marks");
    layout(out, p, " g:", p->g);
    layout(out, p, " k:", p->mark);
}

/* ---- operands ---- */

static struct mc_extent extent(const struct mc_pooled_problem *p, mc_dtype t, const int64_t stride[5])
{
    int64_t size[5];
    struct mc_extent e = { .dtype = t, .count = 1 };
    sizes(p, size);
    for (int i = 0; i < 5; i++) {
        const int64_t reach = (size[i] - 1) * stride[i];
        e.before += reach < 0 ? -reach : 0;
        e.count = size[i] == 0 || e.count == 0 ? 0 : e.count + (reach < 0 ? -reach : reach);
    }
    return e;
}

void mc_pooled_extents(const struct mc_pooled_problem *p, struct mc_extent e[POOLED_NEXTENT])
{
    struct mc_extent of[5];
    mc_conv_extents(&p->conv, of);
    e[POOLED_X] = of[CONV_X];
    e[POOLED_W] = of[CONV_W];
    e[POOLED_BIAS] = of[CONV_BIAS];
    e[POOLED_G] = extent(p, p->conv.dtype, p->g);
    e[POOLED_MARKS] = p->unmarked ? (struct mc_extent){ .dtype = p->marks } : extent(p, p->marks, p->mark);
}

/* A pseudo-random cell of a window that lies inside of y, chosen by h. */
static int64_t some_cell(const struct mc_pooled_problem *p, const int64_t at[3], uint32_t h)
{
    int64_t cell = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t first = at[i] * p->stride[i] - p->pad[i], lo = MC_MAX(-first, 0),
                      hi = MC_MIN(p->w[i], p->conv.s.out[i] - first);
        cell = cell * p->w[i] + lo + (int64_t)((h >> 8 * i) % 255u) % MC_MAX(hi - lo, 1);
    }
    return cell;
}

void mc_pooled_some_marks(const struct mc_pooled_problem *p, void *marks)
{
    int64_t size[5], all = 1;
    uint32_t h = 1;
    sizes(p, size);
    for (int i = 0; i < 5; i++) {
        all *= size[i];
    }
    for (int64_t e = 0; e < all; e++) {
        int64_t at[5], to = 0;
        for (int64_t i = 4, rest = e; i >= 0; i--) {
            at[i] = rest % size[i];
            rest /= size[i];
            to += at[i] * p->mark[i];
        }
        h = h * 1664525u + 1013904223u;
        mc_store_f64(p->marks, (char *)marks + to * (int64_t)mc_dtypes[p->marks].size,
                     p->bits
                         ? (double)((1 << some_cell(p, at + 2, h >> 4)) | (1 << some_cell(p, at + 2, h >> 9)))
                         : (double)some_cell(p, at + 2, h >> 4));
    }
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[POOLED_NEXTENT];
    mc_pooled_extents(pooled(p), e);
    for (int i = 0; i < POOLED_NEXTENT; i++) {
        if (operand[i]) {
            mc_free_pages((char *)operand[i] - e[i].before * (int64_t)mc_dtypes[e[i].dtype].size);
        }
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

static mc_status operands(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[POOLED_NEXTENT];
    uint32_t seed = 12345;
    mc_pooled_extents(pooled(p), e);
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int i = 0; i < POOLED_NEXTENT; i++) {
        const int64_t size = (int64_t)mc_dtypes[e[i].dtype].size;
        char *at = e[i].count ? mc_alloc_pages((size_t)(e[i].count * size), "planner") : NULL;
        if (e[i].count && !at) {
            discard(p, operand);
            return MC_EMEMORY;
        }
        operand[i] = at ? at + e[i].before * size : NULL;
        for (int64_t k = 0; k < e[i].count && i != POOLED_MARKS; k++) {
            seed = seed * 1664525u + 1013904223u;
            mc_store_f64(e[i].dtype, at + k * size, (double)(int32_t)seed * 0x1p-31);
        }
    }
    if (operand[POOLED_MARKS]) {
        mc_pooled_some_marks(pooled(p), operand[POOLED_MARKS]);
    }
    if (pooled(p)->conv.has_epilogue) {
        mc_conv_epilogue *f = mc_conv_no_epilogue;
        memcpy(&operand[POOLED_EPILOGUE], &f, sizeof f);
    }
    return MC_OK;
}

/* ---- verification ---- */

/* Compares maxima and marks. Marks may differ where two cells are equal up to rounding, which for random
 * numbers happens in one window of some thousands. */
static mc_status compare_maxima(const struct mc_pooled_problem *p, const struct mc_plan *plan,
                                void *const *got, void *const *want)
{
    struct mc_conv_problem as_y = p->conv;
    const int64_t size = (int64_t)mc_dtypes[p->marks].size;
    int64_t dims[5], all = 1, other = 0;
    sizes(p, dims);
    for (int i = 0; i < 5; i++) {
        all *= dims[i];
    }
    for (int64_t e = 0; e < all && !p->unmarked; e++) {
        int64_t at = 0;
        for (int64_t i = 4, rest = e; i >= 0; rest /= dims[i--]) {
            at += rest % dims[i] * p->mark[i] * size;
        }
        other += memcmp((char *)got[POOLED_MARKS] + at, (char *)want[POOLED_MARKS] + at, (size_t)size) != 0;
    }
    if (other > 1 + all / 1000) {
        return mc_fail(MC_ECHECK, "%s: %" PRId64 " of %" PRId64 " marks differ from the reference's",
                       plan->solver->name, other, all);
    }
    memcpy(as_y.s.out, p->out, sizeof p->out);
    memcpy(as_y.at.y, p->g, sizeof p->g);
    return mc_conv_compare(&as_y, plan, got[POOLED_G], want[POOLED_G]);
}

mc_status mc_pooled_compare(const struct mc_problem *p_, const struct mc_plan *plan, void *const *got,
                            void *const *want)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const int role = mc_pooled_result(p);
    return p->conv.s.pass == CONV_FORWARD ? compare_maxima(p, plan, got, want)
                                          : mc_conv_compare(&p->conv, plan, got[role], want[role]);
}

static mc_status run_once(const struct mc_plan *plan, void *const *operand)
{
    void *workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    const mc_status s = plan->workspace && !workspace ? MC_EMEMORY : plan->run(plan, operand, workspace, 0);
    mc_free_pages(workspace);
    return s;
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    void *got[8], *want[8];
    TRY(operands(p, got));
    mc_status s = operands(p, want);
    struct mc_plan *truth = s < 0 ? NULL : mc_plan_with(p, &mc_pooled_reference);
    s = s < 0 ? s : truth ? run_once(truth, want) : MC_EMEMORY;
    s = s < 0 ? s : run_once(plan, got);
    s = s < 0 ? s : mc_pooled_compare(p, plan, got, want);
    mc_plan_free(truth);
    discard(p, got);
    discard(p, want);
    return s;
}

/* ---- the family ---- */

static const struct mc_solver *const solvers[] = { &mc_pooled_window_grad, &mc_pooled_image_blocks, NULL };

const struct mc_family mc_pooled_family = {
    .name         = "pooled",
    .solvers      = solvers,
    .problem_size = sizeof(struct mc_pooled_problem),
    .key         = mc_pooled_key,
    .operands     = TRIED(operands),
    .discard      = TRIED(discard),
    .verify       = TRIED(verify),
};

/* True if a flag or the node names a solver of the convolution or of the pooling. */
static bool named(const struct mc_conv_problem *p)
{
    return strcmp(mc_conv_asked(p), "auto") != 0 || strcmp(mc_flag_text(FLAG_pool_algo), "auto") != 0;
}

struct mc_plan *mc_pooled_plan_in(const struct mc_family *family, const struct mc_pooled_problem *asked,
                                  const struct mc_plan_options *o)
{
    struct mc_pooled_problem p = *asked;
    const char *precision = p.conv.precision ? p.conv.precision : mc_flag_text(FLAG_conv_precision);
    bool able = false;
    if (named(&p.conv) || mc_conv_hollow(&p.conv) || !conv_volume(p.out)) {
        return NULL;
    }
    p.base = (struct mc_problem){ family, *o };
    p.conv.wide = strcmp(precision, "float64") == 0;
    p.conv.precision = p.conv.algo = NULL; /* the plan keeps the problem, but the caller owns this text */
    for (const struct mc_solver *const *s = family->solvers; *s; s++) {
        able |= !mc_plan_declines(&p.base, *s);
    }
    struct mc_plan *plan = able ? mc_plan_make(&p.base) : NULL;
    if (able && !plan && mc_last_status() != MC_EMEMORY) {
        mc_clear_error(); /* a convolution and a pooling can do it */
    }
    return plan;
}

struct mc_plan *mc_pooled_plan(const struct mc_pooled_problem *p, const struct mc_plan_options *o)
{
    return mc_pooled_plan_in(&mc_pooled_family, p, o);
}

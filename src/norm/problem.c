/* problem.c: the family of normalisations across channels: its word, its grid, operands to time with, and the check
 * against the reference.
 *
 *     norm f32 forward c96 n5 beta 0.75 planes 128 lanes 729
 *
 * Invariant: problems of one word differ at most in addresses and in the values of alpha and k. */
#include "norm/solver.h"
#include <inttypes.h>
#include <math.h>

static const char *const short_name[MC_NDTYPE] = {
    [MC_FLOAT16] = "f16", [MC_BFLOAT16] = "bf16", [MC_FLOAT32] = "f32", [MC_FLOAT64] = "f64",
};

/* ---- the grid ---- */

static bool used(const struct mc_norm_problem *p, int r)
{
    return r != NORM_G || p->s.backward;
}

static void drop(struct mc_norm_grid *g, int i)
{
    g->nfree--;
    for (int k = i; k < g->nfree; k++) {
        g->size[k] = g->size[k + 1];
        for (int r = 0; r < 3; r++) {
            g->at[r][k] = g->at[r][k + 1];
        }
    }
}

void mc_norm_grid(const struct mc_norm_problem *p, struct mc_norm_grid *g)
{
    *g = (struct mc_norm_grid){ .c = p->s.dims[p->s.axis], .planes = 1, .lanes = 1 };
    for (int i = 0; i < p->s.rank; i++) {
        for (int r = 0; r < 3; r++) {
            const int64_t stride = used(p, r) ? p->at[r][i] : p->at[NORM_X][i];
            *(i == p->s.axis ? &g->far[r] : &g->at[r][g->nfree]) = stride;
        }
        if (i != p->s.axis && p->s.dims[i] != 1) {
            g->size[g->nfree++] = p->s.dims[i];
        }
    }
    for (int i = g->nfree - 2; i >= 0; i--) { /* axis i runs on where axis i + 1 ends */
        bool joins = true;
        for (int r = 0; r < 3; r++) {
            joins = joins && g->at[r][i] == g->at[r][i + 1] * g->size[i + 1];
        }
        if (joins) {
            g->size[i + 1] *= g->size[i];
            drop(g, i);
        }
    }
    for (int i = 0; i < g->nfree; i++) {
        if (g->lanes == 1 && g->at[0][i] == 1 && g->at[1][i] == 1 && g->at[2][i] == 1) {
            g->lanes = g->size[i];
            drop(g, i);
            i--;
        }
    }
    for (int i = 0; i < g->nfree; i++) {
        g->planes *= g->size[i];
    }
}

void mc_norm_plane(const struct mc_norm_grid *g, int64_t plane, int64_t at[3])
{
    at[0] = at[1] = at[2] = 0;
    for (int i = g->nfree - 1; i >= 0; i--) {
        for (int r = 0; r < 3; r++) {
            at[r] += plane % g->size[i] * g->at[r][i];
        }
        plane /= g->size[i];
    }
}

/* Square roots, and memory once. */
double mc_norm_seconds(const struct mc_norm_problem *p)
{
    double count = 1;
    for (int i = 0; i < p->s.rank; i++) {
        count *= (double)p->s.dims[i];
    }
    return count * (p->s.backward ? 2e-9 : 1e-9) * mc_dtypes[p->dtype].size / 4;
}

/* ---- word ---- */

void mc_norm_word(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_norm_problem *p = norming(p_);
    struct mc_norm_grid g;
    mc_norm_grid(p, &g);
    mc_str_addf(out, "norm %s %s c%" PRId64 " n%" PRId64 "%s beta %g planes %" PRId64, short_name[p->dtype],
                p->s.backward ? "backward" : "forward", g.c, p->s.n, p->s.blocked ? " blocked" : "", p->s.beta, g.planes);
    if (g.lanes > 1) {
        mc_str_addf(out, " lanes %" PRId64, g.lanes);
    }
    for (int r = 0; r < 3; r++) {
        if (g.c > 1 && used(p, r) && g.far[r] != g.lanes) {
            mc_str_addf(out, " %c%" PRId64, "xgy"[r], g.far[r]);
        }
    }
}

/* ---- operands ---- */

/* Elements from the lowest address on; *low: where the first stands. */
static int64_t extent(const struct mc_norm_problem *p, int r, int64_t *low)
{
    int64_t count = 1;
    *low = 0;
    for (int i = 0; i < p->s.rank; i++) {
        const int64_t reach = (p->s.dims[i] - 1) * p->at[r][i];
        *low -= reach < 0 ? reach : 0;
        count = p->s.dims[i] == 0 || count == 0 ? 0 : count + (reach < 0 ? -reach : reach);
    }
    return count;
}

void mc_norm_extents(const struct mc_norm_problem *p, struct mc_extent e[3])
{
    for (int r = 0; r < 3; r++) {
        e[r] = (struct mc_extent){ p->dtype, 0, 0 };
        e[r].count = used(p, r) ? extent(p, r, &e[r].before) : 0;
    }
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    for (int r = 0; r < 3; r++) {
        int64_t low;
        extent(norming(p), r, &low);
        if (operand[r]) {
            mc_free_pages((char *)operand[r] - low * (int64_t)mc_dtypes[norming(p)->dtype].size);
        }
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

static mc_status operands(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_norm_problem *p = norming(p_);
    const int64_t size = mc_dtypes[p->dtype].size;
    uint32_t seed = 12345;
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int r = 0; r < 3; r++) {
        int64_t low;
        const int64_t count = used(p, r) ? extent(p, r, &low) : 0;
        if (count == 0) {
            continue;
        }
        char *data = mc_alloc_pages((size_t)(count * size), "planner");
        if (!data) {
            discard(p_, operand);
            return MC_EMEMORY;
        }
        operand[r] = data + low * size;
        for (int64_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            mc_store_f64(p->dtype, data + i * size, (double)(int32_t)seed * 0x1p-31);
        }
    }
    return MC_OK;
}

/* ---- verification ---- */

mc_status mc_norm_compare(const struct mc_norm_problem *p, const struct mc_plan *plan, const char *got, const char *want)
{
    const double eps = mc_dtypes[p->dtype].eps, n = (double)p->s.n;
    const int64_t size = mc_dtypes[p->dtype].size;
    struct mc_walk w;
    if (!mc_walk_begin(&w, p->s.rank, p->s.dims, 0, 1, (char *[]){ (char *)(uintptr_t)got }, (const int64_t *[]){ p->at[NORM_Y] })) {
        return MC_OK;
    }
    do { /* the walk counts elements: an offset of k stands for k elements */
        const int64_t at = (w.p[0] - got) * size;
        const double x = mc_load_f64(p->dtype, got + at), y = mc_load_f64(p->dtype, want + at);
        if (!(fabs(x - y) <= 8 * eps * (n + 4) * (fabs(y) + 1)) && !(x != x && y != y)) {
            struct mc_str text = { 0 };
            mc_plan_text(plan, &text);
            mc_fail(MC_ECHECK, "%s: offset %" PRId64 " is %.9g, the reference has %.9g", text.s ? text.s : "norm", at / size, x, y);
            mc_str_free(&text);
            return MC_ECHECK;
        }
    } while (mc_walk_next(&w));
    return MC_OK;
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    void *operand[8], *truth_operand[8], *workspace = NULL;
    struct mc_plan *truth = NULL;
    TRY(operands(p, operand));
    mc_status s = operands(p, truth_operand);
    if (s < 0) {
        discard(p, operand);
        return s;
    }
    truth = mc_plan_with(p, &mc_norm_reference);
    workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    s = !truth || (plan->workspace && !workspace) ? MC_EMEMORY : truth->run(truth, truth_operand, NULL, 0);
    s = s < 0 ? s : plan->run(plan, operand, workspace, 0);
    s = s < 0 || !operand[NORM_Y] ? s : mc_norm_compare(norming(p), plan, operand[NORM_Y], truth_operand[NORM_Y]);
    mc_plan_free(truth);
    mc_free_pages(workspace);
    discard(p, operand);
    discard(p, truth_operand);
    return s;
}

static size_t solver_names(const char **names, size_t room)
{
    return mc_solver_names(mc_norm_solvers, names, 0, room);
}

__attribute__((constructor)) static void install(void)
{
    mc_flag_names_of[FLAG_norm_algo] = solver_names;
}

static const char *forced(const struct mc_problem *p, int64_t *mode)
{
    (void)p;
    (void)mode;
    return mc_flag_text(FLAG_norm_algo);
}

const struct mc_family mc_norm_family = {
    .name         = "norm",
    .solvers      = mc_norm_solvers,
    .problem_size = sizeof(struct mc_norm_problem),
    .word         = mc_norm_word,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
    .forced       = forced,
};

struct mc_plan *mc_norm_plan_in(const struct mc_family *family, const struct mc_norm_problem *asked)
{
    struct mc_norm_problem p = *asked;
    int64_t count = 1;
    p.base.family = family;
    if (p.dtype < 0 || p.dtype >= MC_NDTYPE || !short_name[p.dtype]) {
        mc_fail(MC_ETYPE, "norm: the dtype must be a float");
        return NULL;
    }
    for (int i = 0; i < p.s.rank; i++) {
        if (p.s.dims[i] < 0 || !mc_mul_i64(count, MC_MAX(p.s.dims[i], 1), &count)) {
            mc_fail(MC_ESHAPE, "norm: size %" PRId64 " of axis %d cannot be", p.s.dims[i], i);
            return NULL;
        }
    }
    return mc_plan_make(&p.base);
}

struct mc_plan *mc_norm_plan(const struct mc_norm_problem *p)
{
    return mc_norm_plan_in(&mc_norm_family, p);
}

mc_status mc_norm_problem_of(const mc_node *n, const struct mc_type *x, const int64_t *const strides[3], struct mc_norm_problem *p)
{
    *p = (struct mc_norm_problem){ .base = { &mc_norm_family }, .dtype = x->dtype };
    if (!mc_norm_shape_of(n, x, &p->s)) {
        return mc_fail(MC_EARG, "%s does not normalise across channels", n->op->name);
    }
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < x->rank && strides[r]; i++) {
            p->at[r][i] = strides[r][i] / (int64_t)mc_dtypes[x->dtype].size;
        }
    }
    return MC_OK;
}

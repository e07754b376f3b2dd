/* problem.c: normalisation across channels: its keys, its iteration space, the extents of operands, and the
 * comparison of results.
 *
 *     norm f32 forward c96 n5 beta 0.75 planes 128 lanes 729
 *
 * Invariant: problems with equal keys differ at most in addresses and in the values of alpha and k. */
#include "heavy/norm/solver.h"
#include <inttypes.h>
#include <math.h>

static const char short_name[MC_NDTYPE][5] = {
    [MC_FLOAT16] = "f16", [MC_BFLOAT16] = "bf16", [MC_FLOAT32] = "f32", [MC_FLOAT64] = "f64",
};

/* ---- the iteration space ---- */

bool mc_norm_uses(const struct mc_norm_problem *p, int r)
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
            const int64_t stride = mc_norm_uses(p, r) ? p->at[r][i] : p->at[NORM_X][i];
            *(i == p->s.axis ? &g->far[r] : &g->at[r][g->nfree]) = stride;
        }
        if (i != p->s.axis && p->s.dims[i] != 1) {
            g->size[g->nfree++] = p->s.dims[i];
        }
    }
    for (int i = g->nfree - 2; i >= 0; i--) { /* joins axes i and i + 1 if they are contiguous */
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

/* The time of square roots and of one pass over memory. */
double mc_norm_seconds(const struct mc_norm_problem *p)
{
    double count = 1;
    for (int i = 0; i < p->s.rank; i++) {
        count *= (double)p->s.dims[i];
    }
    return count * (p->s.backward ? 2e-9 : 1e-9) * mc_dtypes[p->dtype].size / 4;
}

/* ---- key ---- */

void mc_norm_key(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_norm_problem *p = norming(p_);
    struct mc_norm_grid g;
    mc_norm_grid(p, &g);
    mc_str_addf(out, "norm %s %s c%" PRId64 " n%" PRId64 "%s beta %g planes %" PRId64, short_name[p->dtype],
                p->s.backward ? "backward" : "forward", g.c, p->s.n, p->s.blocked ? " blocked" : "",
                p->s.beta, g.planes);
    if (g.lanes > 1) {
        mc_str_addf(out, " lanes %" PRId64, g.lanes);
    }
    for (int r = 0; r < 3; r++) {
        if (g.c > 1 && mc_norm_uses(p, r) && g.far[r] != g.lanes) {
            mc_str_addf(out, " %c%" PRId64, "xgy"[r], g.far[r]);
        }
    }
}

/* ---- operands ---- */

int64_t mc_norm_extent(const struct mc_norm_problem *p, int r, int64_t *low)
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
        e[r].count = mc_norm_uses(p, r) ? mc_norm_extent(p, r, &e[r].before) : 0;
    }
}

/* ---- verification ---- */

mc_status mc_norm_compare(const struct mc_norm_problem *p, const struct mc_plan *plan, const char *got,
                          const char *want)
{
    const double eps = mc_dtypes[p->dtype].eps, n = (double)p->s.n;
    const int64_t size = mc_dtypes[p->dtype].size;
    struct mc_walk w;
    if (!mc_walk_begin(&w, p->s.rank, p->s.dims, 0, 1, (char *[]){ (char *)(uintptr_t)got },
                       (const int64_t *[]){ p->at[NORM_Y] })) {
        return MC_OK;
    }
    do { /* the element size was given as 1, so offsets count elements */
        const int64_t at = (w.p[0] - got) * size;
        const double x = mc_load_f64(p->dtype, got + at), y = mc_load_f64(p->dtype, want + at);
        if (!(fabs(x - y) <= 8 * eps * (n + 4) * (fabs(y) + 1)) && !(x != x && y != y)) {
            struct mc_str text = { 0 };
            mc_plan_text(plan, &text);
            mc_fail(MC_ECHECK, "%s: offset %" PRId64 " is %.9g, the reference has %.9g",
                    text.s ? text.s : "norm", at / size, x, y);
            mc_str_free(&text);
            return MC_ECHECK;
        }
    } while (mc_walk_next(&w));
    return MC_OK;
}

/* ---- planning ---- */

struct mc_plan *mc_norm_plan_in(const struct mc_family *family, const struct mc_norm_problem *asked,
                                const struct mc_plan_options *o)
{
    struct mc_norm_problem p = *asked;
    int64_t count = 1;
    p.base = (struct mc_problem){ family, *o };
    if (p.dtype < 0 || p.dtype >= MC_NDTYPE || !*short_name[p.dtype]) {
        mc_fail(MC_ETYPE, "norm: the dtype must be a float");
        return NULL;
    }
    for (int i = 0; i < p.s.rank; i++) {
        if (p.s.dims[i] < 0 || !mc_mul_i64(count, MC_MAX(p.s.dims[i], 1), &count)) {
            mc_fail(MC_ESHAPE, "norm: size %" PRId64 " of axis %d is impossible", p.s.dims[i], i);
            return NULL;
        }
    }
    return mc_plan_make(&p.base);
}

/* grid_moment.c: sum(sqr(x - m)) of rows that are walked, in the walk before the one that it would take: m is a row's value,
 * most often its mean, and is not known yet there.
 *
 *   sum((x - m)^2) = sum(x^2) - 2 m sum(x) + n m^2
 *
 * in float64.  A lane adds up what its elements differ by from its first one, in their own type, and turns those sums
 * into x^2 and x at the end of its block; so nothing is lost where x lies far from zero.
 *
 * Invariant: a stage is left out whole, or walked. */
#include "render/grid.h"
#include <string.h>

static bool is_op(const struct mc_kval *v, const char *name)
{
    return v->kind == K_OP && v->dtype == MC_FLOAT32 && strcmp(v->op->name, name) == 0;
}

/* x - m, where r is the sum of its square; -1: r is none. */
static int centred(const struct mc_kernel *k, const struct mc_kval *r)
{
    if (strcmp(r->op->name, "sum") != 0 || (r->acc != MC_FLOAT64 && r->acc != MC_FLOAT32) || !is_op(&k->val.at[r->arg[0]], "sqr")) {
        return -1;
    }
    const int d = k->val.at[r->arg[0]].arg[0];
    const struct mc_kval *v = &k->val.at[d];
    if (!is_op(v, "sub")) {
        return -1;
    }
    const struct mc_kval *x = &k->val.at[v->arg[0]], *m = &k->val.at[v->arg[1]];
    return x->element && x->stage < r->stage && x->dtype == MC_FLOAT32 && !m->element && m->dtype == MC_FLOAT32 ? d : -1;
}

bool mc_grid_moments(const struct mc_kernel *k, int stage)
{
    bool any = false;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (v->kind == K_REDUCE && ((v->stage == stage && centred(k, v) < 0) || (v->stage == stage - 1 && mc_print_by_position(v)))) {
            return false;
        }
        any |= v->kind == K_REDUCE && v->stage == stage;
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        any &= !(o->dst && k->val.at[o->val].element && k->val.at[o->val].stage == stage);
    }
    return any && stage > 0 && !mc_grid_moments(k, stage - 1); /* which would have no walk to make them in */
}

/* f for each sum that this walk makes for the next one. */
void mc_grid_each_moment(struct print *p, void (*f)(struct print *p, int v))
{
    if (mc_grid_moments(p->k, p->stage + 1)) {
        p->stage++;
        mc_print_each(p, f);
        p->stage--;
    }
}

static int element_of(const struct print *p, int v)
{
    return p->k->val.at[centred(p->k, &p->k->val.at[v])].arg[0];
}

void mc_grid_moment_need(struct print *p, int v)
{
    mc_print_need(p, element_of(p, v));
}

/* c3: the sum of squares; z3: that of elements, its bits. */
void mc_grid_moment_acc(struct print *p, int v)
{
    mc_str_addf(p->out, "double c%d = 0; i64 z%d = 0; ", v, v);
}

/* From element k3 on: m3 elements, what they differ by, squared and as it is. */
void mc_grid_moment_lane(struct print *p, int v)
{
    mc_str_addf(p->out, "float l%d = 0, q%d = 0, k%d = 0; u32 m%d = 0; ", v, v, v, v);
}

void mc_grid_moment_add(struct print *p, int v)
{
    const int x = element_of(p, v);
    mc_str_addf(p->out, "if (!m%d) k%d = v%d; m%d++; { const float t = v%d - k%d; q%d += t; l%d += t * t; } ", v, v, x, v, x, v, v, v);
}

void mc_grid_moment_close(struct print *p, int v)
{
    mc_str_addf(p->out, "c%d += l%d + 2. * k%d * q%d + (double)m%d * k%d * k%d; z%d = both_(z%d, q%d + (double)m%d * k%d); ", v, v, v, v, v, v, v, v, v, v, v, v);
}

/* Of another lane's, or another block's. */
void mc_grid_moment_merge(struct print *p, int v)
{
    mc_str_addf(p->out, "c%d += l%d; z%d = both_(z%d, __longlong_as_double(q%d)); ", v, v, v, v, v);
}

void mc_grid_moment_finish(struct print *p, int v)
{
    const int m = p->k->val.at[centred(p->k, &p->k->val.at[v])].arg[1];
    mc_str_addf(p->out, "c%d += (double)v%d * ((double)v%d * ((double)A.count[1] * V) - 2. * __longlong_as_double(z%d)); const float v%d = c%d < 0 ? 0 : (float)c%d;\n", v, m, m, v, v, v, v);
}

/* The same of neighbour j of grid_column.c's: c3[j], q3[j] and k3[j] of the rows seen; d3[j] and z3[j]. */
void mc_grid_moment_add_column(struct print *p, int v)
{
    const int x = element_of(p, v);
    mc_str_addf(p->out, "if (!seen) k%d[j] = v%d; { const float t = v%d - k%d[j]; q%d[j] += t; c%d[j] += t * t; } ", v, x, x, v, v, v);
}

void mc_grid_moment_finish_column(struct print *p, int v)
{
    mc_str_add(p->out, "{ const double m = ");
    mc_print_ref(p, p->k->val.at[centred(p->k, &p->k->val.at[v])].arg[1]);
    mc_str_addf(p->out, "; d%d[j] += m * (m * A.count[1] - 2. * z%d[j]); r%d[j] = d%d[j] < 0 ? 0 : (float)d%d[j]; } ", v, v, v, v, v);
}

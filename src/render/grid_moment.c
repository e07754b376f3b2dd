/* grid_moment.c: sums about a row's value, made in the walk before the one that they would take: m, most often the row's mean or
 * its greatest element, is not known yet there.
 *
 *   squares   sum((x - m)^2)  = sum(x^2) - 2 m sum(x) + n m^2
 *   powers    sum(exp(x - m)) = exp(k - m) sum(exp(x - k))
 *
 * in float64.  Of squares a lane adds up what its elements differ by from its first one, in their own type, and turns those
 * sums into x^2 and x at the end of its block; so nothing is lost where x lies far from zero.  Of powers k is one of its
 * elements, the next one that lies more than 16 above it, and then its sum is scaled; so nothing overflows.
 *
 * Invariant: a stage is left out whole, or walked. */
#include "render/grid.h"
#include <string.h>

/* A sum of float64 as its bits; c of exp(x - z) and l of exp(x - k), about the greater of z, as its bits, and k. */
const char mc_grid_about[] =
    "INLINE i64 both_(i64 a, double b) { return __double_as_longlong(__longlong_as_double(a) + b); }\n"
    "INLINE void more_(double &c, i64 &z, double l, double k) { const double m = __longlong_as_double(z);\n"
    "  if (k == m) c += l; else if (k > m) { c = l + c * exp(m - k); z = __double_as_longlong(k); } else c += l * exp(k - m); }\n";

/* @ is the sum's number, # the element, $ the row's value, T the element's type, ~ its suffix.  c3 and z3 are the accumulator: z3
 * is the bits of the sum of x, or of the k that c3 is about.  Of a lane l3 is the sum, k3 where it counts from. */
static const struct moment {
    const char *op, *acc, *lane, *add, *close, *merge, *finish;
} moments[] = {
    { "sqr", "double c@ = 0; i64 z@ = 0; ", "T l@ = 0, q@ = 0, k@ = 0; u32 m@ = 0; ",
      "if (!m@) k@ = #; m@++; { const T t = # - k@; q@ += t; l@ += t * t; } ",
      "c@ += l@ + 2. * k@ * q@ + (double)m@ * k@ * k@; z@ = both_(z@, q@ + (double)m@ * k@); ", "c@ += l@; z@ = both_(z@, __longlong_as_double(q@)); ",
      "c@ += (double)$ * ((double)$ * ((double)A.count[1] * V) - 2. * __longlong_as_double(z@)); const T v@ = c@ < 0 ? 0 : (T)c@;\n" },
    { "exp", "double c@ = 0; i64 z@ = __double_as_longlong(-__builtin_inf()); ", "T l@ = 0, k@ = (T)-__builtin_inf(); ",
      "if (# > k@ + 16) { l@ *= op_exp_~(k@ - #); k@ = #; } l@ += # == k@ ? 1 : op_exp_~(# - k@); ",
      "more_(c@, z@, l@, k@); ", "more_(c@, z@, l@, __longlong_as_double(q@)); ",
      "const T v@ = c@ == 0 ? 0 : (T)(c@ * exp(__longlong_as_double(z@) - $));\n" },
};

static const struct moment *moment_of(const struct mc_kval *v)
{
    for (size_t i = 0; i < NELEM(moments); i++) {
        if (v->kind == K_OP && strcmp(v->op->name, moments[i].op) == 0) {
            return &moments[i];
        }
    }
    return NULL;
}

/* Is x's greatest among the sums of an earlier stage?  Then its powers are about that. */
static bool knows_greatest(const struct mc_kernel *k, int x, int stage)
{
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (v->kind == K_REDUCE && v->stage < stage && v->arg[0] == x && strcmp(v->op->name, "max") == 0) {
            return true;
        }
    }
    return false;
}

/* x - m, where r is the sum of its square or power; -1: r is none.  Squares of float64 would lose digits. */
static int centred(const struct mc_kernel *k, const struct mc_kval *r)
{
    const struct mc_kval *of = &k->val.at[r->arg[0]];
    const struct moment *t = moment_of(of);
    if (strcmp(r->op->name, "sum") != 0 || (r->acc != MC_FLOAT64 && r->acc != MC_FLOAT32) || !t || !mc_is_float(of->dtype)) {
        return -1;
    }
    const int d = of->arg[0];
    const struct mc_kval *v = &k->val.at[d];
    if (v->kind != K_OP || strcmp(v->op->name, "sub") != 0 || v->dtype != of->dtype) {
        return -1;
    }
    const struct mc_kval *x = &k->val.at[v->arg[0]], *m = &k->val.at[v->arg[1]];
    const bool taken = t == &moments[0] ? of->dtype == MC_FLOAT32 : knows_greatest(k, v->arg[0], r->stage);
    return taken && x->element && x->stage < r->stage && x->dtype == of->dtype && !m->element && m->dtype == of->dtype ? d : -1;
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
    return any && stage > 0 && !mc_grid_moments(k, stage - 1);
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

static void fill(struct print *p, const char *text, int v)
{
    const struct mc_kval *d = &p->k->val.at[centred(p->k, &p->k->val.at[v])];
    for (; *text; text++) {
        if (*text == '@') {
            mc_str_addf(p->out, "%d", v);
        } else if (*text == '#' || *text == '$') {
            mc_print_ref(p, d->arg[*text == '$']);
        } else if (*text == 'T' || *text == '~') {
            mc_str_add(p->out, *text == 'T' ? mc_print_calc(p, d->dtype) : p->d->suffix[d->dtype]);
        } else {
            mc_str_addn(p->out, text, 1);
        }
    }
}

static const struct moment *moment(const struct print *p, int v)
{
    return moment_of(&p->k->val.at[p->k->val.at[v].arg[0]]);
}

void mc_grid_moment_acc(struct print *p, int v)
{
    fill(p, moment(p, v)->acc, v);
}

void mc_grid_moment_lane(struct print *p, int v)
{
    fill(p, moment(p, v)->lane, v);
}

void mc_grid_moment_add(struct print *p, int v)
{
    fill(p, moment(p, v)->add, v);
}

void mc_grid_moment_close(struct print *p, int v)
{
    fill(p, moment(p, v)->close, v);
}

/* Of another lane's, or another block's. */
void mc_grid_moment_merge(struct print *p, int v)
{
    fill(p, moment(p, v)->merge, v);
}

void mc_grid_moment_finish(struct print *p, int v)
{
    fill(p, moment(p, v)->finish, v);
}

/* Squares of neighbour j of grid_column.c's, which has sums alone, so no powers: c3[j], q3[j] and k3[j] of the rows seen; d3[j] and z3[j]. */
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

/* grid_centred_sum.c: centred sums: sums about a row value m, most often a mean, are computed in the pass
 * before their own stage, where m is not known yet.
 *
 *   sum((x - m)^2) = sum(x^2) - 2 m sum(x) + n m^2        sum((x - m) y) = sum(x y) - m sum(y)
 *
 * in float64.  A lane adds the differences of its elements from its first element, in float, and
 * converts these sums to sums of x at the end of its block.  So no digits are lost where x is far from zero.
 *
 * Invariant: a stage has a pass of its own, or all its sums are computed in the pass before. */
#include "render/grid.h"
#include <string.h>

/* In the text, @ is the number of the sum, # is x, $ is m, % is y.  A lane: k is its first element, m the
 * number of elements (mul: whether there was one), l and q are its two sums; c is the result's first part, z
 * the bits of the second.  Column j of grid_column.c: k[j], c[j] and q[j] likewise, over `seen` rows; t[j] is
 * a part converted to sums of x; d and z are the parts over all rows. */
static const struct moment {
    const char *op;                                        /* op of the summand */
    /* add an element; end a lane's block; the value, in its own stage */
    const char *add, *close, *finish;
    const char *add_column, *close_column[2], *finish_column;
} moments[] = {
    { "sqr",
      "if (!m@) k@ = #; m@++; { const float t = # - k@; q@ += t; l@ += t * t; } ",
      "c@ += l@ + 2. * k@ * q@ + (double)m@ * k@ * k@; z@ = both_(z@, q@ + (double)m@ * k@); ",
      "c@ += (double)$ * ((double)$ * ((double)A.count[1] * V) - 2. * __longlong_as_double(z@)); const float "
      "v@ = c@ < 0 ? 0 : (float)c@;\n",
      "if (!seen) k@[j] = #; { const float t = # - k@[j]; q@[j] += t; c@[j] += t * t; } ",
      { "t[j] = c@[j] + 2. * k@[j] * q@[j] + (double)seen * k@[j] * k@[j]; ",
        "t[j] = q@[j] + (double)seen * k@[j]; " },
      "{ const double m = $, t = d@ + m * (m * A.count[1] - 2. * z@); r@[j] = t < 0 ? 0 : (float)t; } " },
    { "mul",
      "if (!m@) k@ = #; m@ = 1; q@ += %; l@ += (# - k@) * %; ",
      "c@ += l@ + (double)k@ * q@; z@ = both_(z@, q@); ",
      "c@ -= (double)$ * __longlong_as_double(z@); const float v@ = (float)c@;\n",
      "if (!seen) k@[j] = #; q@[j] += %; c@[j] += (# - k@[j]) * %; ",
      { "t[j] = c@[j] + (double)k@[j] * q@[j]; ", "t[j] = q@[j]; " },
      "r@[j] = (float)(d@ - (double)$ * z@); " },
};

/* The summand (x - m) * y; for "sqr", y is x. */
struct about { const struct moment *moment; int x, m, y; };

/* Halves are computed in float. */
static bool is_single(mc_dtype d)
{
    return mc_is_float(d) && mc_dtypes[d].size <= 4;
}

static bool is_float(const struct mc_kval *v, bool element, int before)
{
    return is_single(v->dtype) && v->element == element && (!element || v->stage < before);
}

bool mc_grid_adds(const struct mc_kernel *k, const struct mc_kval *r)
{
    return r->op->reduction == REDUCE_SUM && is_single(k->val.at[r->arg[0]].dtype) &&
           (r->acc == MC_FLOAT64 || r->acc == MC_FLOAT32);
}

/* Is d = x - m, with x and m computed before that stage?  The op is compared by name, as in the table of
 * moments. */
static bool is_centred_term(const struct mc_kernel *k, const struct mc_kval *d, int stage)
{
    return d->kind == K_OP && strcmp(d->op->name, "sub") == 0 && is_single(d->dtype) &&
           is_float(&k->val.at[d->arg[0]], true, stage) && is_float(&k->val.at[d->arg[1]], false, stage);
}

/* The form of sum r; moment is NULL: it is no centred sum. */
static struct about is_about(const struct mc_kernel *k, const struct mc_kval *r)
{
    const struct mc_kval *of = &k->val.at[r->arg[0]];
    if (!mc_grid_adds(k, r) || of->kind != K_OP) {
        return (struct about){ 0 };
    }
    for (size_t i = 0; i < NELEM(moments); i++) {
        for (int a = 0; a < of->narg && strcmp(of->op->name, moments[i].op) == 0; a++) {
            const struct mc_kval *d = &k->val.at[of->arg[a]];
            const int y = of->narg > 1 ? of->arg[1 - a] : d->arg[0];
            if (is_centred_term(k, d, r->stage) && is_float(&k->val.at[y], true, r->stage)) {
                return (struct about){ &moments[i], d->arg[0], d->arg[1], y };
            }
        }
    }
    return (struct about){ 0 };
}

/* v without a cast to float32, as halves are computed in float. */
static int narrow_accumulator(const struct mc_kernel *k, int v)
{
    const struct mc_kval *x = &k->val.at[v];
    return x->kind == K_CAST && x->dtype == MC_FLOAT32 && is_single(k->val.at[x->arg[0]].dtype) ? x->arg[0]
                                                                                                : v;
}

int mc_grid_centred_sum_of(const struct mc_kernel *k, int v)
{
    const struct about of = is_about(k, &k->val.at[v]);
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *x = &k->val.at[i];
        if (x->kind == K_REDUCE && x->stage == k->val.at[v].stage - 1 && mc_grid_adds(k, x) &&
            narrow_accumulator(k, x->arg[0]) == narrow_accumulator(k, of.y)) {
            return (int)i;
        }
    }
    return -1;
}

bool mc_grid_centred_sums(const struct mc_kernel *k, int stage)
{
    bool any = false;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (v->kind == K_REDUCE && ((v->stage == stage && !is_about(k, v).moment) ||
                                    (v->stage == stage - 1 && mc_print_by_position(v)))) {
            return false;
        }
        any |= v->kind == K_REDUCE && v->stage == stage;
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        any &= !(o->dst && k->val.at[o->val].element && k->val.at[o->val].stage == stage);
    }
    return any && stage > 0 &&
           !mc_grid_centred_sums(k, stage - 1); /* that stage would have no pass to compute them in */
}

/* Calls f for each centred sum of the next stage that this pass computes. */
void mc_grid_each_centred_sum(struct print *p, void (*f)(struct print *p, int v))
{
    if (mc_grid_centred_sums(p->k, p->stage + 1)) {
        p->stage++;
        mc_print_each(p, f);
        p->stage--;
    }
}

static void fill(struct print *p, const char *text, int v)
{
    const struct about of = is_about(p->k, &p->k->val.at[v]);
    for (; *text; text++) {
        if (*text == '@') {
            mc_str_addf(p->out, "%d", v);
        } else if (strchr("#$%", *text)) {
            mc_print_ref(p, *text == '#' ? of.x : *text == '$' ? of.m : of.y);
        } else {
            mc_str_addn(p->out, text, 1);
        }
    }
}

static const struct moment *moment(const struct print *p, int v)
{
    return is_about(p->k, &p->k->val.at[v]).moment;
}

void mc_grid_centred_sum_need(struct print *p, int v)
{
    const struct about of = is_about(p->k, &p->k->val.at[v]);
    mc_print_need(p, of.x);
    mc_print_need(p, of.y);
}

void mc_grid_centred_sum_acc(struct print *p, int v)
{
    fill(p, "double c@ = 0; i64 z@ = 0; ", v);
}

void mc_grid_centred_sum_lane(struct print *p, int v)
{
    fill(p, "float l@ = 0, q@ = 0, k@ = 0; u32 m@ = 0; ", v);
}

void mc_grid_centred_sum_add(struct print *p, int v)
{
    fill(p, moment(p, v)->add, v);
}

void mc_grid_centred_sum_close(struct print *p, int v)
{
    fill(p, moment(p, v)->close, v);
}

/* Adds the sums of another lane or block. */
void mc_grid_centred_sum_merge(struct print *p, int v)
{
    fill(p, "c@ += l@; z@ = both_(z@, __longlong_as_double(q@)); ", v);
}

void mc_grid_centred_sum_finish(struct print *p, int v)
{
    fill(p, moment(p, v)->finish, v);
}

void mc_grid_centred_sum_lane_column(struct print *p, int v)
{
    fill(p, "float c@[V] = { }, q@[V] = { }, k@[V] = { }; ", v);
}

void mc_grid_centred_sum_add_column(struct print *p, int v)
{
    fill(p, moment(p, v)->add_column, v);
}

void mc_grid_centred_sum_close_column(struct print *p, int v, bool second)
{
    fill(p, moment(p, v)->close_column[second], v);
}

void mc_grid_centred_sum_finish_column(struct print *p, int v)
{
    fill(p, moment(p, v)->finish_column, v);
}

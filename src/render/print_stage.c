/* print_stage.c: one stage of a kernel: what it computes for each element and once a row. render.c and grid.c
 * print the loops around it. */
#include "render/print.h"

/* The operand in which this stage reads v as an earlier stage stored it; -1: none. */
static int found_in(const struct print *p, int v)
{
    for (size_t i = 0; p->back && i < p->k->operand.n; i++) {
        if (p->back[i] && p->k->operand.at[i].val == v) {
            return (int)i;
        }
    }
    return -1;
}

void mc_print_need(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    if (!x->element || p->need[v]) {
        return;
    }
    p->need[v] = 1;
    if ((x->saved && x->stage < p->stage) || found_in(p, v) >= 0) {
        return;
    }
    for (int i = 0; i < x->narg; i++) {
        mc_print_need(p, x->arg[i]);
    }
}

static bool mark(struct print *p)
{
    bool any = false;
    memset(p->need, 0, p->k->val.n);
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        if (v->kind == K_REDUCE && v->stage == p->stage) {
            mc_print_need(p, v->arg[0]);
            any = true;
        }
        if (v->saved && v->stage == p->stage) {
            mc_print_need(p, (int)i);
        }
    }
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (o->dst && p->k->val.at[o->val].element && p->k->val.at[o->val].stage == p->stage) {
            mc_print_need(p, o->val);
            any = true;
        }
    }
    return any;
}

int mc_print_reads(const struct print *p)
{
    int n = 0;
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        n += p->need[i] && (found_in(p, (int)i) >= 0 ||
                            (v->kind == K_LOAD && mc_print_moves(p->k, &p->k->operand.at[v->operand])));
    }
    return n;
}

/* Did an earlier stage store o's value, and exactly as it was computed? */
static bool is_behind(const struct print *p, const struct mc_koperand *o)
{
    const struct mc_kval *v = o->dst ? &p->k->val.at[o->val] : NULL;
    return v && !o->column_sums && v->element && v->stage < p->stage && mc_print_moves(p->k, o) &&
           v->dtype == o->dtype && strcmp(p->d->store[o->dtype], mc_print_calc(p, v->dtype)) == 0;
}

/* A value that an earlier stage stored is read back if the stage then reads fewer operands. */
bool mc_print_mark(struct print *p)
{
    if (p->back) {
        memset(p->back, 0, p->k->operand.n);
    }
    bool any = mark(p);
    for (size_t i = 0; p->back && any && i < p->k->operand.n; i++) {
        const int before = mc_print_reads(p);
        if (is_behind(p, &p->k->operand.at[i]) && p->need[p->k->operand.at[i].val]) {
            p->back[i] = 1;
            mark(p);
            p->back[i] = mc_print_reads(p) < before;
            mark(p);
        }
    }
    return any;
}

void mc_print_store(struct print *p, int o, bool inner)
{
    const struct mc_koperand *x = &p->k->operand.at[o];
    mc_str_addf(p->out, "a%d", o);
    mc_print_index(p, o, inner);
    if (x->column_sums) {
        mc_str_add(p->out, " += ");
        mc_print_ref(p, x->val);
        mc_str_add(p->out, "; ");
        return;
    }
    mc_str_addf(p->out, *p->d->store_as[x->dtype] ? " = %s(" : " = (%s)(",
                *p->d->store_as[x->dtype] ? p->d->store_as[x->dtype] : p->d->store[x->dtype]);
    mc_print_ref(p, x->val);
    mc_str_add(p->out, "); ");
}

void mc_print_body(struct print *p, bool lanes, const char *position)
{
    const struct mc_kernel *k = p->k;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (!p->need[i] || v->kind == K_CONST) {
            continue;
        }
        if (v->saved && v->stage < p->stage) {
            mc_str_addf(p->out, "const %s v%d = b%d[j]; ", mc_print_calc(p, v->dtype), (int)i, v->saved);
            continue;
        }
        if (found_in(p, (int)i) >= 0) {
            mc_str_addf(p->out, "const %s v%d = a%d[j]; ", mc_print_calc(p, v->dtype), (int)i,
                        found_in(p, (int)i));
            continue;
        }
        mc_print_define(p, (int)i, true);
        if (v->saved) {
            mc_str_addf(p->out, "b%d[j] = v%d; ", v->saved, (int)i);
        }
    }
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (v->kind == K_REDUCE && v->stage == p->stage) {
            mc_print_fill(p, lanes ? mc_print_monoid(v)->lane : mc_print_monoid(v)->direct, (int)i, position);
        }
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->dst && k->val.at[o->val].element && k->val.at[o->val].stage == p->stage) {
            mc_print_store(p, (int)i, true);
        }
    }
}

/* Row values of this stage, except reductions, as scalars. */
void mc_print_row_values(struct print *p)
{
    const struct mc_kernel *k = p->k;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (!v->element && v->kind != K_CONST && v->kind != K_REDUCE && v->stage == p->stage && !p->done[i] &&
            !(p->wait && p->wait[i]) && !(k->mode == KERNEL_COLUMN && v->varies)) {
            p->done[i] = 1;
            mc_print_define(p, (int)i, false);
            mc_vector_kernel_spread(p, (int)i);
            mc_str_add(p->out, "\n");
        }
    }
}

void mc_print_row_stores(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (o->dst && !p->k->val.at[o->val].element) {
            mc_print_store(p, (int)i, false);
            mc_str_add(p->out, "\n");
        }
    }
}

bool mc_print_stage_reduces(const struct print *p, bool *positions)
{
    bool any = false;
    *positions = false;
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        if (v->kind == K_REDUCE && v->stage == p->stage) {
            any = true;
            *positions |= mc_print_by_position(v);
        }
    }
    return any;
}

void mc_print_each(struct print *p, void (*f)(struct print *p, int v))
{
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->k->val.at[i].kind == K_REDUCE && p->k->val.at[i].stage == p->stage) {
            f(p, (int)i);
        }
    }
}

void mc_print_acc(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "%s c%d = %s; ", mc_print_acc_type(p, x, false), v, mc_print_first(p, x));
    if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "i64 z%d = %d; ", v, mc_print_by_position(x) ? -1 : 0);
    }
}

void mc_print_lane(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "%s l%d = %s; ", mc_print_acc_type(p, x, true), v, mc_print_first(p, x));
    if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "i32 q%d = 0; ", v);
    }
}

void mc_print_merge(struct print *p, int v)
{
    mc_print_fill(p, mc_print_monoid(&p->k->val.at[v])->merge, v, "");
}

/* kernel.c: building and analysing the kernel form. */
#include "render/kernel.h"
#include "render/math.h"

int mc_kernel_add(struct mc_kernel *k, struct mc_kval v)
{
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *o = &k->val.at[i];
        if (o->kind == v.kind && o->op == v.op && o->dtype == v.dtype && o->acc == v.acc &&
            o->narg == v.narg && memcmp(o->arg, v.arg, sizeof v.arg) == 0 && o->operand == v.operand &&
            o->varies == v.varies && memcmp(o->bits, v.bits, sizeof v.bits) == 0) {
            return (int)i;
        }
    }
    return VEC_PUSH(k->val, v) ? (int)k->val.n - 1 : -1;
}

void mc_kernel_free(struct mc_kernel *k)
{
    if (k) {
        VEC_FREE(k->val);
        VEC_FREE(k->operand);
        mc_free(k);
    }
}

bool mc_kernel_checks(const struct mc_kernel *k)
{
    for (size_t v = 0; v < k->val.n; v++) {
        if (k->val.at[v].kind == K_CHECK) {
            return true;
        }
    }
    return false;
}

size_t mc_kernel_row_bytes(const struct mc_kernel *k, int64_t n)
{
    return (size_t)k->nsaved * ((size_t)n * 8 + 64);
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* Marks v if stage `stage` needs it, directly or to recompute other values.  A costly value of an earlier
 * stage is saved instead. */
static void need(struct mc_kernel *k, int v, int stage, unsigned char *mark)
{
    struct mc_kval *x = &k->val.at[v];
    if (!x->element || mark[v]) {
        return;
    }
    mark[v] = 1;
    if (x->stage < stage && k->mode == KERNEL_ROW && x->kind == K_OP && x->op->flags & OP_COSTLY) {
        x->saved = x->saved ? x->saved : ++k->nsaved;
        return;
    }
    for (int i = 0; i < x->narg; i++) {
        need(k, x->arg[i], stage, mark);
    }
}

mc_status mc_kernel_analyse(struct mc_kernel *k)
{
    /* floating-point operations that a plain and a costly op count for */
    static const double costs[] = { 1, 15 };
    k->varies = 0;
    k->nstage = 1;
    k->inner = -1;
    for (size_t i = 0; i < k->val.n; i++) {
        k->varies |= k->val.at[i].varies;
    }
    for (int a = 0; a < k->rank; a++) {
        k->inner = k->varies & 1u << a ? a : k->inner;
    }
    unsigned kept = k->varies & ~k->reduced;
    for (size_t i = 0; i < k->val.n; i++) {
        k->nreduce += k->val.at[i].kind == K_REDUCE;
    }
    k->mode = !k->nreduce                                    ? KERNEL_MAP
              : !kept                                        ? KERNEL_FULL_REDUCTION
              : k->inner >= 0 && k->reduced & 1u << k->inner ? KERNEL_ROW
                                                             : KERNEL_COLUMN;
    for (size_t i = 0; i < k->val.n; i++) {
        struct mc_kval *v = &k->val.at[i];
        v->element = k->mode == KERNEL_MAP ? v->varies != 0 : (v->varies & k->reduced) != 0;
        v->stage = 0;
        for (int j = 0; j < v->narg; j++) {
            const struct mc_kval *a = &k->val.at[v->arg[j]];
            v->stage = later(v->stage, a->stage + (a->kind == K_REDUCE));
        }
        if (v->kind == K_REDUCE || v->element) {
            k->nstage = later(k->nstage, v->stage + 1);
        }
        v->bounded = v->kind == K_OP && !v->op->custom && mc_math_range(v->op->code, v->dtype) > 0;
        k->bounded |= v->bounded;
        k->flops += v->kind == K_OP ? costs[v->op->flags & OP_COSTLY ? 1 : 0] : v->kind == K_REDUCE ? 1 : 0;
    }
    unsigned char *mark = mc_calloc(k->val.n + 1, 1, "kernel");
    if (!mark) {
        return MC_EMEMORY;
    }
    for (int stage = 1; stage < k->nstage; stage++) {
        memset(mark, 0, k->val.n);
        for (size_t i = 0; i < k->val.n; i++) {
            struct mc_kval *v = &k->val.at[i];
            if (v->kind == K_REDUCE && v->stage == stage) {
                need(k, v->arg[0], stage, mark);
            }
        }
        for (size_t i = 0; i < k->operand.n; i++) {
            const struct mc_koperand *o = &k->operand.at[i];
            if (o->dst && k->val.at[o->val].element && k->val.at[o->val].stage == stage) {
                need(k, o->val, stage, mark);
            }
        }
    }
    mc_free(mark);
    return MC_OK;
}

/* ---- equal kernels ---- */

bool mc_kernel_same_value(const struct mc_kval *a, const struct mc_kval *b)
{
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->acc == b->acc &&
           a->narg == b->narg && a->operand == b->operand && a->varies == b->varies &&
           memcmp(a->arg, b->arg, (size_t)a->narg * sizeof *a->arg) == 0 &&
           memcmp(a->bits, b->bits, sizeof a->bits) == 0;
}

bool mc_kernel_same_operand(const struct mc_koperand *a, const struct mc_koperand *b)
{
    return a->dtype == b->dtype && a->varies == b->varies && a->dst == b->dst &&
           a->column_sums == b->column_sums && a->index == b->index && (!a->dst || a->val == b->val);
}

bool mc_kernel_same(const struct mc_kernel *a, const struct mc_kernel *b)
{
    bool same = a->rank == b->rank && a->varies == b->varies && a->reduced == b->reduced &&
                a->val.n == b->val.n && a->operand.n == b->operand.n;
    for (size_t i = 0; same && i < a->val.n; i++) {
        same = mc_kernel_same_value(&a->val.at[i], &b->val.at[i]);
    }
    for (size_t i = 0; same && i < a->operand.n; i++) {
        same = mc_kernel_same_operand(&a->operand.at[i], &b->operand.at[i]);
    }
    return same;
}

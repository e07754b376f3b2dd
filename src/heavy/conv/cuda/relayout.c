/* relayout.c: on a GPU, a convolution whose arrays are copied to one layout for the solvers that require
 * it: bc01 or b01c.  Flipped filters are reversed by the copy.
 *
 * Invariant: an array that has the layout already is not copied. */
#include "heavy/conv/cuda/cuda.h"

enum layout { BC01, B01C };
static const int orders[][5] = { [BC01] = { 0, 1, 2, 3, 4 }, [B01C] = { 0, 2, 3, 4, 1 } };

struct relayout {
    struct mc_plan base;
    struct mc_cuda_copy *in[3], *out, *c0;  /* in, by role: operands; out: the result, back */
    bool moved[3];
    /* offsets in the workspace: of copies, of the child's workspace */
    size_t at[3], child_at;
};

static struct relayout *relayout(const struct mc_plan *p)
{
    return (struct relayout *)(void *)(uintptr_t)p;
}

/* Sets the dense strides of a layout.  True: the array has them already. */
static bool lay_out(const struct mc_conv_array *a, enum layout l, int64_t stride[5])
{
    int64_t step = 1;
    bool same = true;
    for (int i = 4; i >= 0; i--) {
        const int axis = orders[l][i];
        stride[axis] = step;
        same = same && (a->size[axis] == 1 || a->stride[axis] == step);
        step *= a->size[axis];
    }
    return same;
}

static struct mc_conv_problem child_of(const struct mc_conv_problem *p, enum layout l, bool moved[3])
{
    struct mc_conv_problem c = *p;
    int64_t *const stride[] = { c.at.x, c.at.w, c.at.y };
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        moved[role] = !lay_out(&a, l, stride[role]) || (role == CONV_W && p->s.flip);
    }
    c.s.flip = false;
    c.inner |= INNER_RELAYOUT;
    /* else c0 is at another address than the result */
    c.residual = c.residual && !moved[mc_conv_result(p->s.pass)];
    return c;
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct relayout *d = relayout(plan);
    const struct mc_conv_problem *p = conv(plan->problem);
    const int result = mc_conv_result(p->s.pass);
    void *with[8];
    memcpy(with, operand, sizeof with);
    for (int role = CONV_X; role <= CONV_Y; role++) {
        if (!d->moved[role]) {
            continue;
        }
        with[role] = (char *)workspace + d->at[role];
        if (role != result) {
            TRY(mc_cuda_copy_run(d->in[role], with[role], operand[role]));
        }
    }
    if (d->c0) {
        TRY(mc_cuda_copy_run(d->c0, with[result], operand[CONV_C0]));
        with[CONV_C0] = with[result];
    }
    TRY(plan->child[0]->run(plan->child[0], with, (char *)workspace + d->child_at, threads));
    return d->out ? mc_cuda_copy_run(d->out, operand[result], with[result]) : MC_OK;
}

/* ---- a plan ---- */

/* The copy between the problem's array and the child's.  Flipped filters are copied in reverse. */
static struct mc_cuda_copy *copy_operand(const struct mc_conv_problem *p, const struct mc_conv_problem *c,
                                    int role, bool back)
{
    const struct mc_conv_array ours = mc_conv_array(p, role), theirs = mc_conv_array(c, role);
    struct mc_cuda_layout l = { .to = p->dtype, .from = p->dtype, .rank = 5 };
    int64_t *const own = back ? l.to_stride : l.from_stride, *const other = back ? l.from_stride
                                                                                 : l.to_stride;
    memcpy(l.size, ours.size, sizeof l.size);
    for (int i = 0; i < 5; i++) {
        own[i] = ours.stride[i];
        other[i] = theirs.stride[i];
        if (role == CONV_W && p->s.flip && i >= 2) {
            l.flip[i] = true;
        }
    }
    return mc_cuda_copy_new(&l);
}

static void destroy(struct mc_plan *plan)
{
    struct relayout *d = relayout(plan);
    for (int role = CONV_X; role <= CONV_Y; role++) {
        mc_cuda_copy_free(d->in[role]);
    }
    mc_cuda_copy_free(d->out);
    mc_cuda_copy_free(d->c0);
}

static bool needs_copy(struct relayout *d, const struct mc_conv_problem *p, const struct mc_conv_problem *c)
{
    const int result = mc_conv_result(p->s.pass);
    size_t at = 0;
    bool ok = true;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        if (d->moved[role]) {
            struct mc_cuda_copy **to = role == result ? &d->out : &d->in[role];
            *to = copy_operand(p, c, role, role == result);
            ok = ok && *to;
            d->at[role] = at;
            at += mc_work_rounded((size_t)mc_conv_count(&a) * mc_dtypes[p->dtype].size);
        }
    }
    if (d->moved[result] && p->beta != 0) {
        d->c0 = copy_operand(p, c, result, false);
        ok = ok && d->c0;
    }
    d->child_at = at;
    return ok;
}

static struct mc_plan *make(const struct mc_conv_problem *p, enum layout l)
{
    struct relayout *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    const struct mc_conv_problem c = child_of(p, l, d->moved);
    d->base.run = run;
    d->base.destroy = destroy;
    if (needs_copy(d, p, &c)) {
        d->base.child[0] = mc_conv_plan_in(p->base.family, &c, &p->base.options);
    }
    if (!d->base.child[0]) {
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->child_at + d->base.child[0]->workspace;
    return &d->base;
}

static const char *refuse(const struct mc_conv_problem *p, enum layout l)
{
    bool moved[3];
    if (p->inner & INNER_RELAYOUT || mc_conv_hollow(p) || p->s.unshared) {
        return p->inner & INNER_RELAYOUT ? "cannot be nested"
               : p->s.unshared           ? "has one filter for all positions"
                                         : mc_conv_hollow(p);
    }
    child_of(p, l, moved);
    return moved[CONV_X] || moved[CONV_W] || moved[CONV_Y] ? NULL : "would copy no array";
}

/* The child's best time, and each copy at half the speed of memory. */
static double estimate(const struct mc_conv_problem *p, enum layout l)
{
    bool moved[3];
    const struct mc_conv_problem c = child_of(p, l, moved);
    double seconds = mc_plan_cheapest(&c.base);
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        seconds += moved[role] ? mc_cuda_seconds(p->dtype, false, 0,
                                                 4 * (double)mc_conv_count(&a) * mc_dtypes[p->dtype].size, 1)
                               : 0;
    }
    return seconds;
}

#define LAYOUT(name_, l)                                                                                     \
    static const char *refuse_##name_(const struct mc_problem *p) { return refuse(conv(p), l); }             \
    static double estimate_##name_(const struct mc_problem *p) { return estimate(conv(p), l); }              \
    static struct mc_plan *plan_##name_(const struct mc_problem *p) { return make(conv(p), l); }             \
    const struct mc_solver mc_conv_cuda_##name_ = {                                                          \
        .name = "relayout_" #name_, .refuse = refuse_##name_, .estimate = estimate_##name_,                  \
        .plan = plan_##name_, .wraps = true,                                                                 \
    };
LAYOUT(bc01, BC01)
LAYOUT(b01c, B01C)

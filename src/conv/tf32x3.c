/* tf32x3.c: float32 convolutions on tensor cores: the two operands are split in what TF32 can hold and what is left
 * (plan/split.cu), side by side along what is summed over - channels, filters or images - which becomes three times as
 * long, and one TF32 convolution sums it all.
 *
 * Invariant: the error keeps the bound of float32 sums of as many products. */
#include "conv/cuda.h"

struct tf32x3 {
    struct mc_plan base;
    struct mc_cuda_copy *split[2];
    int role[2];                /* of the operands that are split */
    size_t at[2], child_at;     /* in the workspace */
};
static const struct {
    int role[2], axis[2];       /* of each the axis that is summed over */
} passes[] = {
    [CONV_FORWARD] = { { CONV_X, CONV_W }, { 1, 1 } },
    [CONV_INPUTS]  = { { CONV_Y, CONV_W }, { 1, 0 } },
    [CONV_WEIGHTS] = { { CONV_X, CONV_Y }, { 0, 0 } },
};

static struct tf32x3 *tf32x3(const struct mc_plan *p)
{
    return (struct tf32x3 *)(void *)(uintptr_t)p;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct tf32x3 *d = tf32x3(plan);
    void *with[8];
    memcpy(with, operand, sizeof with);
    for (int i = 0; i < 2; i++) {
        with[d->role[i]] = (char *)workspace + d->at[i];
        TRY(mc_cuda_copy_run(d->split[i], with[d->role[i]], operand[d->role[i]]));
    }
    return plan->child[0]->run(plan->child[0], with, (char *)workspace + d->child_at, threads);
}

/* ---- a plan ---- */

static struct mc_conv_problem child_of(const struct mc_conv_problem *p)
{
    struct mc_conv_problem c = *p;
    c.tf32 = true;
    c.s.c *= p->s.pass == CONV_FORWARD ? 3 : 1;
    c.s.f *= p->s.pass == CONV_INPUTS ? 3 : 1;
    c.s.n *= p->s.pass == CONV_WEIGHTS ? 3 : 1;
    return c;
}

/* Dense strides for the longer array, channels closest together where they were. */
static void lay_out(const struct mc_conv_array *ours, const struct mc_conv_array *theirs, int64_t stride[5])
{
    static const int orders[][5] = { { 0, 1, 2, 3, 4 }, { 0, 2, 3, 4, 1 } };
    const int *order = orders[ours->stride[1] == 1 && ours->size[1] > 1];
    int64_t step = 1;
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        step *= theirs->size[order[i]];
    }
}

static struct mc_cuda_layout layout_of(const struct mc_conv_problem *p, struct mc_conv_problem *c, int which)
{
    int64_t *const strides[] = { c->at.x, c->at.w, c->at.y };
    const int role = passes[p->s.pass].role[which], axis = passes[p->s.pass].axis[which];
    const struct mc_conv_array ours = mc_conv_array(p, role), theirs = mc_conv_array(c, role);
    struct mc_cuda_layout l = { .to = MC_FLOAT32, .from = MC_FLOAT32, .rank = 5, .split = which ? SPLIT_RIGHT : SPLIT_LEFT };
    lay_out(&ours, &theirs, strides[role]);
    memcpy(l.size, ours.size, 5 * sizeof l.size[0]);
    memcpy(l.to_stride, strides[role], 5 * sizeof l.to_stride[0]);
    memcpy(l.from_stride, ours.stride, 5 * sizeof l.from_stride[0]);
    l.part = ours.size[axis] * strides[role][axis];
    return l;
}

static void destroy(struct mc_plan *plan)
{
    mc_cuda_copy_free(tf32x3(plan)->split[0]);
    mc_cuda_copy_free(tf32x3(plan)->split[1]);
}

static bool splits(struct tf32x3 *d, const struct mc_conv_problem *p, struct mc_conv_problem *c)
{
    for (int i = 0; i < 2; i++) {
        const struct mc_cuda_layout l = layout_of(p, c, i);
        const struct mc_conv_array ours = mc_conv_array(p, passes[p->s.pass].role[i]);
        d->role[i] = passes[p->s.pass].role[i];
        d->at[i] = d->child_at;
        d->child_at += ((size_t)(3 * mc_conv_count(&ours)) * sizeof(float) + 255) / 256 * 256;
        d->split[i] = mc_cuda_copy_new(&l);
        if (!d->split[i]) {
            return false;
        }
    }
    return true;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_conv_problem c = child_of(p);
    struct tf32x3 *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = destroy;
    d->base.child[0] = splits(d, p, &c) ? mc_conv_cuda_plan(&c) : NULL;
    if (!d->base.child[0]) {
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->child_at + d->base.child[0]->workspace;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32 || p->tf32 || p->wide                ? "serves float32 to its full precision"
           : mc_conv_hollow(p)                                         ? mc_conv_hollow(p)
           : p->s.unshared                                             ? "has one filter for all places"
           : p->s.groups != 1 && p->s.pass != CONV_WEIGHTS             ? "takes one group"
           : !mc_cuda_narrow()                                         ? "finds no tensor cores for TF32"
           : !mc_nv_found(NV_CUDNN)->there                             ? "finds no library for the convolution"
                                                                       : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_problem c = child_of(p);
    double seconds = mc_conv_cuda_seconds(&c, 0.45);
    for (int i = 0; i < 2; i++) {
        const struct mc_conv_array a = mc_conv_array(p, passes[p->s.pass].role[i]);
        seconds += mc_cuda_seconds(MC_FLOAT32, false, 0, 16 * (double)mc_conv_count(&a), 1);
    }
    return seconds;
}

const struct mc_solver mc_conv_tf32x3 = { .name = "tf32x3", .refuse = refuse, .estimate = estimate, .plan = plan };

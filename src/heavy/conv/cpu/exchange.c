/* exchange.c: a convolution computed by a solver for another direction.
 *
 * The three directions are one sum over pairs (position u, tap a) that meet at i = u * stride - pad + a *
 * dilation of x. The roles of u and a may be exchanged:
 *
 *     forward -> weights   images and channels of x change roles, w is the gradient of the child's y, the
 *                          positions of y are its taps, stride and dilation change roles
 *     weights -> forward   the same, back
 *     inputs  -> inputs    likewise: w and y change roles
 *     inputs  -> forward   stride 1: u = i - ((k - 1) * dilation - pad) + (k - 1 - a) * dilation, a full
 *     forward -> inputs    convolution with reversed taps; filters and channels change roles
 *
 * Nothing is copied: operands stay where they are and only their strides are permuted.
 *
 * Invariant: the child computes the same sums for each element; alpha, beta and c0 are passed to it. */
#include "heavy/conv/solver.h"

static void swap(int64_t *a, int64_t *b)
{
    const int64_t t = *a;
    *a = *b;
    *b = t;
}

static void copy3(int64_t to[3], const int64_t from[3])
{
    memcpy(to, from, 3 * sizeof *to);
}

/* ---- the child's problem ---- */

/* Exchanges n with c and y with w. The child's taps are the problem's positions. */
struct mc_conv_problem mc_conv_taps_as_positions(const struct mc_conv_problem *p)
{
    static const enum mc_conv_pass other[] = {
        [CONV_FORWARD] = CONV_WEIGHTS, [CONV_INPUTS] = CONV_INPUTS, [CONV_WEIGHTS] = CONV_FORWARD,
    };
    struct mc_conv_problem c = *p;
    c.s.pass = other[p->s.pass];
    swap(&c.s.n, &c.s.c);
    copy3(c.s.k, p->s.out);
    copy3(c.s.out, p->s.k);
    copy3(c.s.stride, p->s.dilation);
    copy3(c.s.dilation, p->s.stride);
    swap(&c.at.x[0], &c.at.x[1]);
    /* child: w(f, c = n, tap u) is y(n, f, u), and y(n = c, f, position a) is w(f, c, a) */
    memcpy(c.at.w, (int64_t[]){ p->at.y[1], p->at.y[0], p->at.y[2], p->at.y[3], p->at.y[4] },
           5 * sizeof(int64_t));
    memcpy(c.at.y, (int64_t[]){ p->at.w[1], p->at.w[0], p->at.w[2], p->at.w[3], p->at.w[4] },
           5 * sizeof(int64_t));
    if (p->s.flip) { /* positions cannot be flipped, so the array is read from its end */
        for (int i = 0; i < 3; i++) {
            c.at.y[2 + i] = -c.at.y[2 + i];
        }
    }
    c.s.flip = false;
    return c;
}

/* Exchanges x with y and f with c and reverses the taps. The child's border is (k - 1) * dilation - pad. */
struct mc_conv_problem mc_conv_taps_reversed(const struct mc_conv_problem *p)
{
    struct mc_conv_problem c = *p;
    c.s.pass = p->s.pass == CONV_FORWARD ? CONV_INPUTS : CONV_FORWARD;
    swap(&c.s.c, &c.s.f);
    copy3(c.s.in, p->s.out);
    copy3(c.s.out, p->s.in);
    for (int i = 0; i < 3; i++) {
        c.s.pad[i] = (p->s.k[i] - 1) * p->s.dilation[i] - p->s.pad[i];
    }
    c.s.flip = !p->s.flip;
    memcpy(c.at.x, p->at.y, sizeof c.at.x);
    memcpy(c.at.y, p->at.x, sizeof c.at.y);
    if (p->s.groups == 1) { /* else depthwise: f and c are the same index */
        swap(&c.at.w[0], &c.at.w[1]);
    }
    return c;
}

enum { AS_POSITIONS = EXCHANGE_POSITIONS, REVERSED = EXCHANGE_REVERSED };
const int mc_conv_exchange_role[][3] = {
    [AS_POSITIONS] = { CONV_X, CONV_Y, CONV_W },
    [REVERSED]  = { CONV_Y, CONV_W, CONV_X },
};

/* Bytes from where the problem's filters begin to where the child's y does. */
int64_t mc_conv_exchange_shift(const struct mc_conv_problem *p, int roles)
{
    int64_t shift = 0;
    for (int i = 0; i < 3 && roles == AS_POSITIONS && p->s.flip; i++) {
        shift += (p->s.k[i] - 1) * p->at.w[2 + i] * mc_dtypes[p->dtype].size;
    }
    return shift;
}

struct exchange {
    struct mc_plan base;
    int roles;
    int64_t shift[3];   /* bytes to add to the pointers of the child's x, w, y */
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct exchange *d = (const struct exchange *)(const void *)plan;
    const struct mc_conv_run r = mc_conv_bind(plan, operand, workspace, threads);
    const int result = mc_conv_result(conv(plan->child[0]->problem)->s.pass);
    void *with[8] = { 0 };
    for (int i = 0; i < 3; i++) {
        with[i] = r.at[mc_conv_exchange_role[d->roles][i]] + d->shift[i];
    }
    with[CONV_C0] = r.c0 ? (char *)r.c0 + d->shift[result] : NULL;
    TRY(plan->child[0]->run(plan->child[0], with, workspace, r.threads));
    mc_conv_finish_all(&r); /* the child does not know the problem's axes */
    return MC_OK;
}

static struct mc_plan *make(const struct mc_conv_problem *p, struct mc_conv_problem c, int roles)
{
    struct exchange *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    c.inner |= INNER_EXCHANGE;
    c.has_epilogue = c.w_stays = false;
    d->base.run = run;
    d->roles = roles;
    d->base.child[0] = mc_conv_plan_in(p->base.family, &c, &p->base.options);
    if (!d->base.child[0]) {
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->base.child[0]->workspace;
    d->shift[CONV_Y] = mc_conv_exchange_shift(p, roles);
    return &d->base;
}

static const char *refuse_any(const struct mc_conv_problem *p)
{
    return p->inner & INNER_EXCHANGE ? "cannot be nested in itself"
           : mc_conv_hollow(p)       ? mc_conv_hollow(p)
           : p->s.unshared           ? "takes filters shared by all positions"
                                     : NULL;
}

static double finish_cost(const struct mc_conv_problem *p)
{
    const struct mc_conv_array a = mc_conv_array(p, mc_conv_result(p->s.pass));
    return p->has_epilogue ? mc_conv_copy(2 * (double)mc_conv_count(&a) * mc_dtypes[p->dtype].size) : 0;
}

/* The least estimate for the child, and the cost of a separate epilogue. */
static double cost(const struct mc_conv_problem *p, struct mc_conv_problem c)
{
    c.inner |= INNER_EXCHANGE;
    c.has_epilogue = c.w_stays = false;
    return 2e-7 + mc_plan_cheapest(&c.base) + finish_cost(p);
}

/* ---- taps and positions change roles ---- */

const char *mc_conv_no_positions(const struct mc_conv_problem *p)
{
    return p->s.groups != 1 ? "takes one group" : refuse_any(p);
}

static const char *refuse_positions(const struct mc_problem *p)
{
    const char *no = mc_conv_no_positions(conv(p));
    return no ? no : mc_conv_shared_image_halves(conv(p));
}

/* Theano's rule for a convolution as a matrix product. There is one product of c * taps for each of n images,
 * or one of n * positions for each of c channels. The rule takes the way that writes its columns fewer
 * times. */
static bool fewer_by_channels(const struct mc_conv_shape *s)
{
    return (double)s->n * (double)conv_volume(s->k) >= (double)s->c * (double)conv_volume(s->out);
}

/* Forward and weights can each be exchanged for the other. The one that the rule is against gets a 10 %
 * higher estimate. */
static double estimate_positions(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double seconds = cost(p, mc_conv_taps_as_positions(p));
    const bool against = p->s.pass == CONV_FORWARD ? !fewer_by_channels(&p->s)
                                                   : p->s.pass == CONV_WEIGHTS && fewer_by_channels(&p->s);
    return against ? 1.1 * seconds : seconds;
}

static struct mc_plan *plan_positions(const struct mc_problem *p)
{
    return make(conv(p), mc_conv_taps_as_positions(conv(p)), AS_POSITIONS);
}

const struct mc_solver mc_conv_exchange = {
    .name = "exchange", .wraps = true, .refuse = refuse_positions, .estimate = estimate_positions,
    .plan = plan_positions,
};

/* ---- reversed taps ---- */

const char *mc_conv_no_reversed(const struct mc_conv_problem *p)
{
    if (p->s.pass == CONV_WEIGHTS) {
        return "computes only forward and inputs";
    }
    for (int i = 0; i < 3; i++) {
        if (p->s.stride[i] != 1) {
            return "takes stride 1";
        }
    }
    const bool each = p->s.groups == p->s.c && p->s.groups == p->s.f;
    return p->s.groups != 1 && !each ? "takes one group, or as many groups as channels and filters"
                                     : refuse_any(p);
}

static const char *refuse_reversed(const struct mc_problem *p)
{
    const char *no = mc_conv_no_reversed(conv(p));
    return no ? no : mc_conv_shared_image_halves(conv(p));
}

static double estimate_reversed(const struct mc_problem *p)
{
    return cost(conv(p), mc_conv_taps_reversed(conv(p)));
}

static struct mc_plan *plan_reversed(const struct mc_problem *p)
{
    return make(conv(p), mc_conv_taps_reversed(conv(p)), REVERSED);
}

const struct mc_solver mc_conv_exchange_full = {
    .name = "exchange_full", .wraps = true, .refuse = refuse_reversed, .estimate = estimate_reversed,
    .plan = plan_reversed,
};

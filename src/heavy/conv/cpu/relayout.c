/* relayout.c: a wrapper that copies operands to C order (bc01), and halves to float32, for a solver that
 * needs that. The result is computed in such a copy too, and copied back with the epilogue. If all copies
 * together exceed half the workspace cap, images are done in chunks.
 *
 * Invariant: the child's operands are contiguous, and of a dtype that every solver takes. */
#include "heavy/conv/solver.h"

enum { LINE = 64 };
struct relayout {
    struct mc_plan base;
    struct mc_conv_problem inner;   /* the problem of child[0]; its n is the images of a chunk */
    bool copied[3];
    size_t at[3], child_at;         /* offsets in the workspace */
    int64_t chunks;
    bool finish_all;                /* the epilogue runs at the end, on the whole result */
};

/* ---- running: a chunk of the images at a time ---- */

struct call {
    const struct relayout *d;
    struct mc_conv_run r;
    int64_t first;                  /* first image of the chunk */
};

static bool has_images(int role)
{
    return role != CONV_W;
}

/* The address of the chunk in an operand of the whole problem. */
static char *outer(const struct call *x, int role, const char *base)
{
    const int64_t step = role == CONV_X ? x->r.p->at.x[0] : x->r.p->at.y[0];
    return (char *)base + (has_images(role) ? x->first * step * x->r.size : 0);
}

static void copy(const struct call *x, int role, const char *base, bool back)
{
    const struct relayout *d = x->d;
    const struct mc_conv_array inner = mc_conv_array(&d->inner, role), whole = mc_conv_array(x->r.p, role);
    char *packed = x->r.workspace + d->at[role], *outside = outer(x, role, base);
    struct mc_conv_copy c = { .rank = inner.rank };
    memcpy(c.size, inner.size, sizeof c.size);
    c.to = back ? outside : packed;
    c.from = back ? packed : outside;
    c.to_type = back ? x->r.p->dtype : d->inner.dtype;
    c.from_type = back ? d->inner.dtype : x->r.p->dtype;
    c.to_stride = back ? whole.stride : inner.stride;
    c.from_stride = back ? inner.stride : whole.stride;
    c.finish = back && x->r.epilogue ? &x->r : NULL;
    c.finish_at = has_images(role) ? x->first : 0;
    mc_conv_copy_array(&c, x->r.threads);
}

static mc_status run_chunk(struct call *x, const struct mc_plan *child, int64_t chunk)
{
    const struct relayout *d = x->d;
    const int role = mc_conv_result(x->r.p->s.pass);
    void *operand[8] = { 0 };
    x->first = chunk * d->inner.s.n;
    for (int i = CONV_X; i <= CONV_Y; i++) {
        if (d->copied[i] && i != role && (chunk == 0 || has_images(i))) {
            copy(x, i, x->r.at[i], false);
        }
        operand[i] = d->copied[i] ? x->r.workspace + d->at[i] : outer(x, i, x->r.at[i]);
    }
    if (chunk > 0 && !has_images(role)) {
        operand[CONV_C0] = operand[role];
    } else if (x->r.c0 && d->copied[role]) {
        copy(x, role, x->r.c0, false);
        operand[CONV_C0] = operand[role];
    } else if (x->r.c0) {
        operand[CONV_C0] = outer(x, role, x->r.c0);
    }
    memcpy(&operand[CONV_EPILOGUE], &x->r.epilogue, sizeof x->r.epilogue);
    operand[CONV_EPILOGUE_ARG] = x->r.arg;
    TRY(child->run(child, operand, x->r.workspace + d->child_at, x->r.threads));
    if (d->copied[role] && (has_images(role) || chunk + 1 == d->chunks)) {
        copy(x, role, x->r.result, true);
    }
    return MC_OK;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct relayout *d = (const struct relayout *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    for (int64_t chunk = 0; chunk < d->chunks; chunk++) {
        TRY(run_chunk(&x, plan->child[chunk > 0 && plan->child[1]], chunk));
    }
    if (d->finish_all) {
        mc_conv_finish_all(&x.r);
    }
    return MC_OK;
}

/* ---- planning ---- */

static mc_dtype inner_type(const struct mc_conv_problem *p)
{
    return p->wide ? MC_FLOAT64 : mc_dtypes[p->dtype].size == 2 ? MC_FLOAT32 : p->dtype;
}

/* The child's problem for `n` images, and which operands must be copied. */
static struct mc_conv_problem inside(const struct mc_conv_problem *p, int64_t n, bool copied[3])
{
    struct mc_conv_problem c = *p;
    int64_t *const stride[] = { c.at.x, c.at.w, c.at.y };
    c.dtype = inner_type(p);
    c.wide = c.w_stays = false;
    c.inner |= INNER_RELAYOUT;
    c.s.n = n;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        copied[role] = c.dtype != p->dtype || !mc_conv_dense(p, role);
        if (copied[role]) {
            const struct mc_conv_array a = mc_conv_array(&c, role);
            mc_conv_dense_strides(&a, stride[role]);
        }
    }
    c.has_epilogue = p->has_epilogue && !copied[mc_conv_result(p->s.pass)] && n == p->s.n;
    return c;
}

/* Assigns offsets to the copies; returns their bytes. */
static size_t assign_offsets(struct relayout *d)
{
    size_t n = 0;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(&d->inner, role);
        const size_t bytes = (size_t)mc_conv_count(&a) * mc_dtypes[d->inner.dtype].size;
        d->at[role] = n;
        n += d->copied[role] ? (bytes + LINE - 1) / LINE * LINE : 0;
    }
    d->child_at = n;
    return n;
}

static void divide(struct relayout *d, const struct mc_conv_problem *p)
{
    const size_t cap = p->base.options.workspace / 2;
    for (d->chunks = 1; d->chunks <= p->s.n; d->chunks++) {
        if (p->s.n % d->chunks == 0) {
            d->inner = inside(p, p->s.n / d->chunks, d->copied);
            if (assign_offsets(d) <= cap || d->chunks == p->s.n) {
                return;
            }
        }
    }
}

static bool make_children(struct relayout *d)
{
    d->base.child[0] = mc_conv_plan_in(d->inner.base.family, &d->inner, &d->inner.base.options);
    if (d->base.child[0] && d->chunks > 1 &&
        d->inner.s.pass == CONV_WEIGHTS) { /* later chunks add to the first */
        struct mc_conv_problem rest = d->inner;
        rest.beta = 1;
        d->base.child[1] = mc_conv_plan_in(rest.base.family, &rest, &rest.base.options);
        return d->base.child[1];
    }
    return d->base.child[0];
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct relayout *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    divide(d, p);
    if (!make_children(d)) {
        mc_plan_free(&d->base);
        return NULL;
    }
    const size_t second = d->base.child[1] ? d->base.child[1]->workspace : 0;
    d->base.workspace = d->child_at + MC_MAX(d->base.child[0]->workspace, second);
    d->finish_all = p->has_epilogue && !d->copied[mc_conv_result(p->s.pass)] && !d->inner.has_epilogue;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    bool copied[3];
    if (p->inner & INNER_RELAYOUT) {
        return "cannot be nested in itself";
    }
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    inside(p, p->s.n, copied);
    return copied[CONV_X] || copied[CONV_W] || copied[CONV_Y]
               ? NULL
               : "has nothing to copy: all operands are in C order";
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    bool copied[3];
    const struct mc_conv_problem c = inside(p, p->s.n, copied);
    double bytes = 0;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(&c, role);
        bytes += copied[role] ? 2.5 * (double)mc_conv_count(&a) * mc_dtypes[c.dtype].size : 0;
    }
    const double seconds = mc_conv_copy(bytes) + (c.dtype != p->dtype ? bytes * 0.2e-9 : 0);
    return 2e-6 + seconds / mc_conv_threads(seconds, 16) + mc_plan_cheapest(&c.base);
}

const struct mc_solver mc_conv_relayout = {
    .name = "relayout", .wraps = true, .refuse = refuse, .estimate = estimate, .plan = plan,
};

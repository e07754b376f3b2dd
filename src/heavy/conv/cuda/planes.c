/* planes.c: on a GPU, a convolution with three axes as several with two: each tap along the first axis is
 * one of planes, whose results are added. The images of such a convolution are the planes of one image, or
 * one plane of all images, whichever takes fewer runs.
 *
 * Invariant: the first run that reaches a plane of the result, or a tap of filters, adds beta * c0; further
 * ones add to what is there. */
#include "heavy/conv/cuda/cuda.h"

enum { PLANS = 4 };

/* A plan for `images` images that starts a result, or adds to it. */
struct kind { int64_t images; bool adds; };
struct planes {
    struct mc_plan base;
    struct mc_plan *plan[PLANS];
    struct kind kind[PLANS];
    int plans;
};

static bool by_planes(const struct mc_conv_problem *p)
{
    return p->s.n <= p->s.out[0];
}

/* ---- runs ---- */

struct taps { int64_t first, end; };    /* planes of y that a tap reaches */

/* The plane of x that tap a reads for plane 0 of y. */
static int64_t shift(const struct mc_conv_shape *s, int64_t a)
{
    return (s->flip ? s->k[0] - 1 - a : a) * s->dilation[0] - s->pad[0];
}

static struct taps reach(const struct mc_conv_shape *s, int64_t a)
{
    const int64_t stride = s->stride[0], far = shift(s, a), below = MC_MAX(-far, (int64_t)0),
                  left = s->in[0] - far;
    return (struct taps){ conv_ceil(below, stride),
                          MC_MIN(s->out[0], left > 0 ? conv_ceil(left, stride) : (int64_t)0) };
}

/* One run: `images` planes of y from `plane` on, or that plane of all images; for image n. */
struct run { int64_t tap, n, plane, images; bool adds; };

/* The runs of a problem, those of the taps that reach most planes first.  touched: of the result's planes or
 * taps; false: what a run reaches was reached in part. */
struct walk {
    const struct mc_conv_problem *p;
    unsigned char *touched;
    mc_status (*call)(void *to, const struct run *r);
    void *to;
};

/* Was what the run writes written before?  -1: in part. */
static int written(const struct walk *w, const struct run *r, int64_t planes)
{
    const struct mc_conv_shape *s = &w->p->s;
    const bool filters = s->pass == CONV_WEIGHTS;
    int before = 0;
    for (int64_t i = 0; i < (filters ? 1 : planes); i++) {
        const int64_t u = r->plane + i, at = filters                   ? r->tap
                                             : s->pass == CONV_FORWARD ? u
                                                                       : u * s->stride[0] + shift(s, r->tap);
        unsigned char *const touched = &w->touched[filters ? at : r->n * MC_MAX(s->in[0], s->out[0]) + at];
        before += *touched;
        *touched = 1;
    }
    return before == 0 ? 0 : before == (filters ? 1 : planes) ? 1 : -1;
}

static mc_status walk_tap(const struct walk *w, int64_t a)
{
    const bool planes = by_planes(w->p);
    const struct taps t = reach(&w->p->s, a);
    mc_status s = MC_OK;
    for (int64_t i = 0; i < (planes ? w->p->s.n : t.end - t.first) && t.end > t.first && s == MC_OK; i++) {
        struct run r = { .tap = a, .n = planes ? i : 0, .plane = planes ? t.first : t.first + i,
                         .images = planes ? t.end - t.first : w->p->s.n };
        const int before = written(w, &r, planes ? r.images : 1);
        r.adds = before > 0;
        s = before < 0 ? MC_EUNSUPPORTED : w->call(w->to, &r);
    }
    return s;
}

static mc_status walk(const struct walk *w)
{
    const struct mc_conv_shape *s = &w->p->s;
    mc_status status = MC_OK;
    for (int64_t count = s->out[0]; count > 0 && status == MC_OK; count--) {
        for (int64_t a = 0; a < s->k[0] && status == MC_OK; a++) {
            const struct taps t = reach(s, a);
            status = t.end - t.first == count ? walk_tap(w, a) : MC_OK;
        }
    }
    return status;
}

enum { MOST_TOUCHED = 1024 };

static int64_t results(const struct mc_conv_shape *s)
{
    return s->pass == CONV_WEIGHTS ? s->k[0] : MC_MAX(s->in[0], s->out[0]) * (s->n <= s->out[0] ? s->n : 1);
}

/* ---- children ---- */

static struct mc_conv_problem child_of(const struct mc_conv_problem *p, struct kind k)
{
    struct mc_conv_problem c = *p;
    const bool planes = by_planes(p);
    c.s.n = k.images;
    c.s.in[0] = c.s.out[0] = c.s.k[0] = c.s.stride[0] = c.s.dilation[0] = 1;
    c.s.pad[0] = 0;
    c.at.x[0] = planes ? p->s.stride[0] * p->at.x[2] : p->at.x[0];
    c.at.y[0] = planes ? p->at.y[2] : p->at.y[0];
    c.beta = k.adds ? 1 : p->beta;
    c.residual = !k.adds && p->residual;
    c.has_bias = !k.adds && p->has_bias;
    return c;
}

static int find(const struct planes *d, const struct run *r)
{
    int i = 0;
    while (i < d->plans && (d->kind[i].images != r->images || d->kind[i].adds != r->adds)) {
        i++;
    }
    return i;
}

static mc_status note(void *to, const struct run *r)
{
    struct planes *d = to;
    const int i = find(d, r);
    if (i == PLANS) {
        return MC_EUNSUPPORTED;
    }
    d->kind[i] = (struct kind){ r->images, r->adds };
    d->plans = MC_MAX(d->plans, i + 1);
    return MC_OK;
}

/* Finds the kinds of runs.  false: some result is not reached, or reached in parts, or there are too many
 * kinds. */
static bool kinds(struct planes *d, const struct mc_conv_problem *p)
{
    unsigned char touched[MOST_TOUCHED] = { 0 };
    const struct mc_conv_shape *s = &p->s;
    const struct walk w = { p, touched, note, d };
    bool ok = results(s) <= MOST_TOUCHED && walk(&w) == MC_OK;
    const int64_t each = MC_MAX(s->in[0], s->out[0]), all = s->pass == CONV_WEIGHTS   ? s->k[0]
                                                            : s->pass == CONV_FORWARD ? s->out[0]
                                                                                      : s->in[0];
    for (int64_t i = 0; ok && i < results(s); i++) {
        ok = touched[i] || (s->pass != CONV_WEIGHTS && i % each >= all);
    }
    return ok;
}

/* ---- a call ---- */

struct call {
    const struct planes *d;
    const struct mc_conv_problem *p;
    void *const *operand;
    void *workspace;
    int threads;
};

static mc_status run_one(void *to, const struct run *r)
{
    const struct call *c = to;
    const struct mc_conv_problem *p = c->p;
    const struct mc_plan *plan = c->d->plan[find(c->d, r)];
    const int64_t size = mc_dtypes[p->dtype].size,
                  at[] = { [CONV_X] = r->n * p->at.x[0] +
                                      (r->plane * p->s.stride[0] + shift(&p->s, r->tap)) * p->at.x[2],
                           [CONV_W] = r->tap * p->at.w[2],
                           [CONV_Y] = r->n * p->at.y[0] + r->plane * p->at.y[2] };
    const int result = mc_conv_result(p->s.pass);
    void *with[8] = { 0 };
    for (int i = CONV_X; i <= CONV_Y; i++) {
        with[i] = (char *)c->operand[i] + at[i] * size;
    }
    with[CONV_C0] = r->adds        ? with[result]
                    : p->beta != 0 ? (char *)c->operand[CONV_C0] + at[result] * size
                                   : NULL;
    with[CONV_BIAS] = p->has_bias && !r->adds ? c->operand[CONV_BIAS] : NULL;
    return plan->run(plan, with, c->workspace, c->threads);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    unsigned char touched[MOST_TOUCHED] = { 0 };
    struct call c = { (const struct planes *)(const void *)plan, conv(plan->problem), operand, workspace,
                      threads };
    const struct walk w = { c.p, touched, run_one, &c };
    return walk(&w);
}

/* ---- a plan ---- */

static void destroy(struct mc_plan *plan)
{
    struct planes *d = (struct planes *)(void *)plan;
    for (int i = 0; i < d->plans; i++) {
        mc_plan_free(d->plan[i]);
    }
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct planes *d = mc_calloc(1, sizeof *d, "plans");
    bool ok = d && kinds(d, p);
    for (int i = 0; ok && i < d->plans; i++) {
        const struct mc_conv_problem c = child_of(p, d->kind[i]);
        d->plan[i] = mc_conv_plan_in(p->base.family, &c, &p->base.options);
        ok = d->plan[i] != NULL;
        d->base.workspace = ok ? MC_MAX(d->base.workspace, d->plan[i]->workspace) : 0;
    }
    if (!ok) {
        if (d) {
            destroy(&d->base);
        }
        mc_free(d);
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = destroy;
    return &d->base;
}

/* ---- limits and the estimate ---- */

static bool three(const struct mc_conv_shape *s)
{
    return s->k[0] > 1 && (s->in[1] > 1 || s->out[1] > 1);
}

/* Are results added in float32, or never? */
static bool exact(const struct mc_conv_problem *p, const struct planes *d)
{
    bool adds = false;
    for (int i = 0; i < d->plans; i++) {
        adds |= d->kind[i].adds;
    }
    return p->dtype == MC_FLOAT32 || p->dtype == MC_FLOAT64 || !adds;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct planes d = { .plans = 0 };
    return mc_conv_hollow(p)             ? mc_conv_hollow(p)
           : !three(&p->s)               ? "takes several taps along the first of three axes"
           : p->s.unshared               ? "takes one filter for all positions"
           : p->act != ACT_NONE          ? "fuses no activation"
           : p->wide                     ? "adds in float32, and conv.precision asks for float64"
           : p->has_bias && p->beta != 0 ? "adds a bias or c0, not both"
           : !kinds(&d, p) ? "takes taps that reach all planes of the result, or those of a phase"
           : !exact(p, &d) ? "does not add halves"
                           : NULL;
}

struct sum { const struct mc_conv_problem *p; double seconds; };

static mc_status add_seconds(void *to, const struct run *r)
{
    struct sum *s = to;
    const struct mc_conv_problem c = child_of(s->p, (struct kind){ r->images, r->adds });
    s->seconds += mc_plan_cheapest(&c.base);
    return MC_OK;
}

static double estimate(const struct mc_problem *p_)
{
    unsigned char touched[MOST_TOUCHED] = { 0 };
    struct sum s = { conv(p_), 0 };
    const struct walk w = { s.p, touched, add_seconds, &s };
    (void)walk(&w);
    return 1.05 * s.seconds;
}

const struct mc_solver mc_conv_cuda_planes = { .name = "by_planes", .refuse = refuse, .estimate = estimate,
                                               .plan = plan, .wraps = true };

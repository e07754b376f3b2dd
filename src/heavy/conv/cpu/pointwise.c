/* pointwise.c: filters of one tap, as matrix products. The positions of all images are one long axis j:
 *
 *     y(f, j) = w(f, c) * x(c, j)      x(c, j) = w(f, c)^T * y(f, j)      w(f, c) = y(f, j) * x(c, j)^T
 *
 * x and y are not copied. Images and spatial axes that are contiguous in both arrays are joined to j,
 * whatever the layout. The other axes are loops over products. If there are many products, each runs on one
 * thread; otherwise all threads work at each. For inputs w is transposed once for all products, so that the
 * summed axis is contiguous.
 *
 * Invariant: each operand lacks one of the letters f, c, j, and is identified by it. */
#include "heavy/conv/solver.h"
#include "heavy/gemm/solver.h"

enum { F, C, J, NLETTER };
static const int lacks[NLETTER] = { [F] = CONV_X, [C] = CONV_Y, [J] = CONV_W };
static const struct {
    int first, second, summed; /* letters of the result, and the one it lacks */
} letters[] = {
    [CONV_FORWARD] = { F, J, C },
    [CONV_INPUTS]  = { C, J, F },
    [CONV_WEIGHTS] = { F, C, J },
};

/* Images and spatial axes, joined where possible. */
struct axis {
    int64_t size, step[3];          /* strides in x, w (0), y */
    unsigned mask;                  /* bits of the axes that were joined: n and three spatial axes */
};
struct shape {
    struct axis axis[4];            /* by decreasing stride in y; the last is j */
    int rank;
    int64_t size[NLETTER], stride[3][NLETTER];
    int m, n;                       /* letters of the rows and columns of the product */
    bool gaps;                      /* inputs: x has elements that no window reads */
    bool in_order; /* j has the order of positions in the result, so the epilogue can be fused */
};

static void add_axis(struct shape *t, struct axis a)
{
    int i = t->rank++;
    for (; i > 0 && t->axis[i - 1].step[CONV_Y] < a.step[CONV_Y]; i--) {
        t->axis[i] = t->axis[i - 1];
    }
    t->axis[i] = a;
}

static void merge(struct shape *t)
{
    int n = 0;
    for (int i = 0; i < t->rank; i++) {
        struct axis *last = n ? &t->axis[n - 1] : NULL, a = t->axis[i];
        if (last && last->step[CONV_X] == a.step[CONV_X] * a.size &&
            last->step[CONV_Y] == a.step[CONV_Y] * a.size) {
            *last = (struct axis){ last->size * a.size,
                                   { a.step[0], a.step[1], a.step[2] },
                                   last->mask | a.mask };
        } else {
            t->axis[n++] = a;
        }
    }
    t->rank = n;
}

/* True if j is either all positions of an image, with images as the loop, or all positions of all images, in
 * C order. */
static bool follows(const struct shape *t, const struct mc_conv_problem *p)
{
    const int64_t size[4] = { p->s.n, p->s.out[0], p->s.out[1], p->s.out[2] };
    unsigned positions = 0;
    int64_t last = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        if (size[i] > 1) {
            const int64_t step = p->at.y[i ? i + 1 : 0];
            if (step > last) {
                return false;
            }
            last = step;
            positions |= i ? 1u << i : 0;
        }
    }
    return p->s.pass != CONV_WEIGHTS && !t->gaps && t->rank <= 2 &&
           (t->axis[t->rank - 1].mask | 1) == (positions | 1);
}

static bool product_takes(int64_t a, int64_t na, int64_t b, int64_t nb)
{
    return a == 1 || b == 1 || na == 1 || nb == 1;
}

/* False: the strides are not those of a matrix product. */
static bool find_shape(const struct mc_conv_problem *p, struct shape *t)
{
    const struct mc_conv_shape *s = &p->s;
    *t = (struct shape){ .size = { s->f / s->groups, s->c / s->groups, 1 } };
    for (int i = 0; i < 4; i++) {
        const int64_t size = i ? s->out[i - 1] : s->n, step = i ? s->stride[i - 1] : 1;
        if (size > 1) {
            add_axis(t, (struct axis){
                            size, { step * p->at.x[i ? i + 1 : 0], 0, p->at.y[i ? i + 1 : 0] }, 1u << i });
        }
        t->gaps |= i && s->pass == CONV_INPUTS && s->in[i - 1] != s->out[i - 1];
    }
    merge(t);
    if (t->rank == 0) {
        add_axis(t, (struct axis){ 1, { 1, 0, 1 }, 0 });
    }
    const struct axis *j = &t->axis[t->rank - 1];
    t->size[J] = j->size;
    t->stride[CONV_X][C] = p->at.x[1], t->stride[CONV_X][J] = j->step[CONV_X];
    t->stride[CONV_W][F] = p->at.w[0], t->stride[CONV_W][C] = p->at.w[1];
    t->stride[CONV_Y][F] = p->at.y[1], t->stride[CONV_Y][J] = j->step[CONV_Y];
    t->m = letters[s->pass].first, t->n = letters[s->pass].second;
    const int sum = letters[s->pass].summed, role = lacks[sum];
    if (t->stride[role][t->n] != 1 && t->size[t->n] > 1) {
        t->m = letters[s->pass].second, t->n = letters[s->pass].first;
    }
    const int a = lacks[t->n], b = lacks[t->m];
    t->in_order = follows(t, p);
    return (t->stride[role][t->n] == 1 || t->size[t->n] == 1) &&
           product_takes(t->stride[a][t->m], t->size[t->m], t->stride[a][sum], t->size[sum]) &&
           product_takes(t->stride[b][sum], t->size[sum], t->stride[b][t->n], t->size[t->n]);
}

/* ---- running: one product for each group and each index of the loops ---- */

enum { MANY = 8, LINE = 64 };
struct one {
    /* child[0]: the first product; child[1], for weights: the products that add to it */
    struct mc_plan base;
    struct shape t;
    int64_t loops;                  /* number of indices of the axes other than j */
    bool one_thread_each;                     /* each product runs on one thread */
    size_t turned_bytes;            /* bytes of w transposed to (groups, c, f); 0: w is not copied */
    int slots;
    size_t slot_bytes;
};
struct call {
    const struct one *d;
    struct mc_conv_run r;
    char *w, *work;                 /* w, or its transpose; the rest of the workspace */
    int64_t channel, image;         /* indices in the result of the product's first element */
    _Atomic int *failed;            /* nonzero: a product failed, which only a library's can */
};

/* Epilogue of a product: rows are channels and columns positions, or the other way round. */
static void finish(void *arg, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n, void *c,
                   int64_t row_stride)
{
    const struct call *x = arg;
    const bool transposed = x->d->t.m == J;
    const int64_t positions = conv_volume(x->r.p->s.out), channel = x->channel + (transposed ? j : i),
                  count = transposed ? n : m;
    int64_t at = x->image * positions + (transposed ? i : j), left = transposed ? m : n;
    (void)batch;
    (void)c;
    (void)row_stride;
    while (left > 0) {
        const int64_t now = MC_MIN(positions - at % positions, left);
        mc_conv_finish_positions(&x->r, at / positions, channel, count, at % positions, now);
        at += now;
        left -= now;
    }
}

/* Runs product i of group g. */
static void run_product(struct call *x, int64_t g, int64_t i, char *workspace, int threads)
{
    const struct one *d = x->d;
    const bool first = i == 0;
    const struct shape *t = &d->t;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int sum = letters[s->pass].summed, role = lacks[sum];
    const bool weights = s->pass == CONV_WEIGHTS;
    const int64_t w_step = d->turned_bytes ? t->size[C] * t->size[F] : t->size[F] * x->r.p->at.w[0];
    const int64_t group[3] = { g * t->size[C] * x->r.p->at.x[1], g * w_step,
                               g * t->size[F] * x->r.p->at.y[1] };
    char *const base[3] = { x->r.at[CONV_X], x->w, x->r.at[CONV_Y] };
    int64_t at[3] = { group[0] * x->r.size, group[1] * x->r.size, group[2] * x->r.size };
    x->image = t->rank > 1 ? i : 0; /* with a fused epilogue the only loop is over images */
    for (int axis = t->rank - 2; axis >= 0; axis--) {
        for (int k = 0; k < 3; k++) {
            at[k] += i % t->axis[axis].size * t->axis[axis].step[k] * x->r.size;
        }
        i /= t->axis[axis].size;
    }
    const char *c0 = t->gaps || (weights && !first) ? x->r.result : x->r.c0;
    void *operand[8] = { base[lacks[t->n]] + at[lacks[t->n]], base[lacks[t->m]] + at[lacks[t->m]],
                         x->r.result + at[role], c0 ? (char *)c0 + at[role] : NULL };
    mc_gemm_epilogue *f = finish;
    memcpy(&operand[GEMM_EPILOGUE], &f, sizeof f);
    operand[GEMM_EPILOGUE_ARG] = x;
    x->channel = g * t->size[F] * (s->pass == CONV_FORWARD) + g * t->size[C] * (s->pass == CONV_INPUTS);
    const struct mc_plan *child = d->base.child[weights && !first && d->base.child[1]];
    if (child->run(child, operand, workspace, threads) < 0) {
        atomic_store_explicit(x->failed, 1, memory_order_relaxed);
    }
}

static void product_task(void *arg, int64_t task, int slot)
{
    struct call x = *(const struct call *)arg;
    run_product(&x, task / x.d->loops, task % x.d->loops, x.work + (size_t)slot * x.d->slot_bytes, 1);
}

static void transpose_w(struct call *x)
{
    const struct shape *t = &x->d->t;
    const int64_t *w = x->r.p->at.w, to[3] = { t->size[C] * t->size[F], t->size[F], 1 },
                  from[3] = { t->size[F] * w[0], w[1], w[0] };
    mc_conv_copy_array(&(struct mc_conv_copy){ .to = x->r.workspace,
                                               .from = x->w,
                                               .to_type = x->r.p->dtype,
                                               .from_type = x->r.p->dtype,
                                               .rank = 3,
                                               .to_stride = to,
                                               .from_stride = from,
                                               .size = { x->r.p->s.groups, t->size[C], t->size[F] } },
                       x->r.threads);
    x->w = x->r.workspace;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct one *d = (const struct one *)(const void *)plan;
    _Atomic int failed = 0;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads), .failed = &failed };
    const struct mc_conv_shape *s = &x.r.p->s;
    x.w = x.r.at[CONV_W];
    x.work = x.r.workspace + d->turned_bytes;
    if (d->turned_bytes) {
        transpose_w(&x);
    }
    if (d->t.gaps) {
        mc_conv_start(&x.r, (int64_t[5]){ 0 }, (int64_t[]){ s->n, s->c, s->in[0], s->in[1], s->in[2] });
    }
    if (d->one_thread_each) {
        mc_team_tasks(product_task, &x, s->groups * d->loops, d->slots, x.r.threads, mc_conv_work(x.r.p));
    }
    for (int64_t i = 0; i < s->groups * d->loops && !d->one_thread_each; i++) {
        run_product(&x, i / d->loops, i % d->loops, x.work, x.r.threads);
    }
    if (atomic_load_explicit(&failed, memory_order_relaxed)) {
        return mc_fail(MC_EUNSUPPORTED, "conv: a matrix product of solver one failed");
    }
    if (!d->t.in_order) {
        mc_conv_finish_all(&x.r);
    }
    return MC_OK;
}

/* ---- planning ---- */

static struct mc_gemm_problem product(const struct mc_conv_problem *p, const struct shape *t)
{
    const int sum = letters[p->s.pass].summed, role = lacks[sum], a = lacks[t->n], b = lacks[t->m];
    struct mc_gemm_problem g = { .dtype = p->dtype, .batch = 1, .m = t->size[t->m], .n = t->size[t->n],
                                 .k = t->size[sum], .alpha = p->alpha, .beta = t->gaps ? 1 : p->beta };
    memcpy(g.as, (int64_t[]){ 0, t->stride[a][t->m], t->stride[a][sum] }, sizeof g.as);
    memcpy(g.bs, (int64_t[]){ 0, t->stride[b][sum], t->stride[b][t->n] }, sizeof g.bs);
    memcpy(g.cs, (int64_t[]){ 0, t->stride[role][t->m], 1 }, sizeof g.cs);
    memcpy(g.c0s, g.cs, sizeof g.c0s);
    g.has_epilogue = p->has_epilogue && t->in_order;
    return g;
}

/* Is w transposed? */
static bool turns_w(const struct mc_conv_problem *p, const struct shape *t)
{
    return p->s.pass == CONV_INPUTS && t->m == C && t->size[C] > 1 && t->size[F] > 1 &&
           t->stride[CONV_W][F] != 1;
}

static struct mc_plan *plan_with(const struct mc_problem *p_, bool next)
{
    const struct mc_conv_problem *p = conv(p_);
    struct one *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    find_shape(p, &d->t);
    const bool weights = p->s.pass == CONV_WEIGHTS;
    d->loops = 1;
    for (int i = 0; i + 1 < d->t.rank; i++) {
        d->loops *= d->t.axis[i].size;
    }
    d->one_thread_each = !weights && p->s.groups * d->loops >= MANY;
    if (turns_w(p, &d->t)) {
        const size_t bytes = (size_t)(p->s.f * d->t.size[C]) * mc_dtypes[p->dtype].size;
        d->turned_bytes = (bytes + LINE - 1) / LINE * LINE;
        d->t.stride[CONV_W][F] = 1;
        d->t.stride[CONV_W][C] = d->t.size[F];
    }
    struct mc_gemm_problem g = product(p, &d->t);
    struct mc_plan_options options = p->base.options;
#ifndef MC_RUNTIME
    g.base.options = options;
    options.solver = next ? mc_gemm_next(&g) : NULL;
#else
    (void)next;
#endif
    d->base.child[0] = mc_gemm_plan(&g, &options);
    g.beta = 1;
    const bool more = weights && d->loops > 1;
    d->base.child[1] = d->base.child[0] && more ? mc_gemm_plan(&g, &options) : NULL;
    if (!d->base.child[0] || (more && !d->base.child[1])) {
        mc_plan_free(&d->base);
        return NULL;
    }
    const size_t cap = p->base.options.workspace;
    d->slot_bytes = (MC_MAX(d->base.child[0]->workspace, more ? d->base.child[1]->workspace : 0) + LINE - 1) /
                    LINE * LINE;
    d->slots = d->one_thread_each ? mc_team_size() : 1;
    while (d->slots > 1 && d->turned_bytes + (size_t)d->slots * d->slot_bytes > cap) {
        d->slots--;
    }
    d->base.workspace = d->turned_bytes + (size_t)d->slots * d->slot_bytes;
    return &d->base;
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    return plan_with(p, false);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct shape t;
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (conv_volume(p->s.k) != 1 || p->s.unshared) {
        return "takes filters of one tap";
    }
    for (int i = 0; i < 3; i++) {
        if (p->s.pad[i] != 0 || (p->s.out[i] - 1) * p->s.stride[i] >= p->s.in[i]) {
            return "takes no padding";
        }
    }
    if (mc_conv_shared_image_halves(p)) {
        return mc_conv_shared_image_halves(p);
    }
    if (!find_shape(p, &t)) {
        return "needs channels or positions contiguous in each operand";
    }
    return NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct shape t;
    find_shape(p, &t);
    const double m = (double)conv_ceil(t.size[t.m], 4) * 4, n = (double)conv_ceil(t.size[t.n], 16) * 16;
    const double lost = m * n / ((double)t.size[t.m] * (double)t.size[t.n]);
    const double math = lost * mc_conv_flops(p) / (0.85 * mc_conv_peak(p)), bytes = mc_conv_bytes(p);
    const int64_t turned = turns_w(p, &t) ? p->s.f * t.size[C] : 0;
    const double seconds = MC_MAX(math, mc_conv_copy(bytes)) + mc_conv_copy(bytes / 2) +
                           0.7e-9 * (double)turned +
                           mc_conv_lost_lines(turned, t.stride[CONV_W][F], t.size[F]);
    double calls = (double)p->s.groups;
    for (int i = 0; i + 1 < t.rank; i++) {
        calls *= (double)t.axis[i].size;
    }
    const bool one_thread_each = p->s.pass != CONV_WEIGHTS && calls >= MANY;
    return 1e-6 + 3e-7 * calls + seconds / mc_conv_threads(one_thread_each ? seconds : seconds / calls, 64);
}

const struct mc_solver mc_conv_one = { .name = "one", .refuse = refuse, .estimate = estimate, .plan = plan };

#ifndef MC_RUNTIME
/* ---- the same by the product's solver that is estimated second ---- */

static const char *refuse_next(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct shape t;
    if (refuse(p_)) {
        return refuse(p_);
    }
    find_shape(p, &t);
    struct mc_gemm_problem g = product(p, &t);
    g.base.options = p->base.options;
    return mc_gemm_next(&g) ? NULL : "has no second solver of the product that takes as long";
}

/* By estimates `one` is chosen. */
static double estimate_next(const struct mc_problem *p)
{
    return 1.05 * estimate(p);
}

static struct mc_plan *plan_next(const struct mc_problem *p)
{
    return plan_with(p, true);
}

const struct mc_solver mc_conv_one_next = {
    .name = "one_next", .refuse = refuse_next, .estimate = estimate_next, .plan = plan_next,
};
#endif

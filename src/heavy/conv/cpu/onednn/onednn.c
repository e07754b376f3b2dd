/* onednn.c: oneDNN's convolutions, direct and Winograd, in the layouts that the library chooses: refusals and
 * plans.
 *
 * Invariant: results are the same bits on every run with one number of threads, but may differ between
 * numbers of threads. A plan runs with the number it was made for. */
#include "heavy/conv/cpu/onednn/library.h"
#include "heavy/gemm/cpu/library.h"

enum { LINE = 64 };
static const int queries[][3] = {
    [CONV_FORWARD] = { DNNL_SRC_MD, DNNL_WEIGHTS_MD, DNNL_DST_MD },
    [CONV_INPUTS]  = { DNNL_DIFF_SRC_MD, DNNL_WEIGHTS_MD, DNNL_DIFF_DST_MD },
    [CONV_WEIGHTS] = { DNNL_SRC_MD, DNNL_DIFF_WEIGHTS_MD, DNNL_DIFF_DST_MD },
};

/* ---- planning ---- */

static int axes(const struct mc_conv_shape *s)
{
    const bool one0 = s->in[0] == 1 && s->out[0] == 1 && s->k[0] == 1,
               one1 = s->in[1] == 1 && s->out[1] == 1 && s->k[1] == 1;
    return !one0 || s->pad[0] ? 3 : !one1 || s->pad[1] ? 2 : 1;
}

/* An operand's sizes and strides in oneDNN's order of axes: groups first for w, and only the spatial axes
 * that the problem has. */
static int describe(const struct mc_conv_problem *p, int role, const int64_t *stride, int64_t dims[DNNL_DIMS],
                    int64_t steps[DNNL_DIMS])
{
    const struct mc_conv_array a = mc_conv_array(p, role);
    const int nd = axes(&p->s);
    int n = 0;
    if (role == CONV_W && p->s.groups > 1) {
        dims[n] = p->s.groups;
        steps[n++] = p->s.f / p->s.groups * stride[0];
    }
    for (int i = 0; i < 5; i++) {
        if (i < 2 || i >= 5 - nd) {
            dims[n] = i == 0 && role == CONV_W ? p->s.f / p->s.groups : a.size[i];
            steps[n++] = stride[i];
        }
    }
    return n;
}

static void add_workspace(struct onednn *d, size_t bytes, size_t *at)
{
    *at = d->base.workspace;
    d->base.workspace += (bytes + LINE - 1) / LINE * LINE;
}

/* Makes the primitive descriptor for the algorithm, in layouts that the library chooses. False: the library
 * has none. */
static bool choose_layout(struct onednn *d, const struct mc_conv_problem *p, int algorithm)
{
    const struct mc_conv_shape *s = &p->s;
    const int nd = axes(s);
    struct dnnl_conv c = { .pass = s->pass, .algorithm = algorithm };
    int64_t dims[DNNL_DIMS], steps[DNNL_DIMS];
    bool made = true;
    for (int i = 0; i < nd; i++) {
        const int z = 3 - nd + i;
        c.strides[i] = s->stride[z];
        c.dilates[i] = s->dilation[z] - 1;
        c.front[i] = s->pad[z];
        c.behind[i] = conv_at(s, z, s->out[z] - 1, s->k[z] - 1) - (s->in[z] - 1);
    }
    for (int role = 0; role < 3; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        c.desc[role] = mc_onednn_desc(&d->l, describe(p, role, a.stride, dims, steps), dims, NULL);
        made &= c.desc[role] != NULL;
    }
    made = made && !d->l.engine_create(&d->engine, DNNL_CPU, 0) && !d->l.primitive_attr_create(&d->attr) &&
           !d->l.primitive_attr_set_scratchpad_mode(d->attr, DNNL_USER_SCRATCHPAD);
    const int before = mc_library_gemm_threads(d->l.handle, d->threads);
    d->pd = made ? mc_onednn_conv(&d->l, &c, d->engine, d->attr) : NULL;
    mc_library_gemm_done(d->l.handle, before);
    for (int role = 0; role < 3; role++) {
        mc_onednn_desc_free(&d->l, c.desc[role]);
    }
    return d->pd;
}

/* Makes the descriptor of one operand, and the reorder to the layout that the library chose. */
static bool make_operand(struct onednn *d, const struct mc_conv_problem *p, int role)
{
    const struct mc_conv_array a = mc_conv_array(p, role);
    const bool result = role == mc_conv_result(p->s.pass);
    const size_t bytes = (size_t)mc_conv_count(&a) * sizeof(float);
    int64_t dims[DNNL_DIMS], steps[DNNL_DIMS];
    d->plain[role] = (role == CONV_W && p->s.flip) || (result && (p->alpha != 1 || p->beta != 0));
    mc_conv_dense_strides(&a, d->plain_stride[role]);
    const int n = describe(p, role, d->plain[role] ? d->plain_stride[role] : a.stride, dims, steps);
    d->desc[role] = mc_onednn_desc(&d->l, n, dims, steps);
    d->liked[role] = d->l.primitive_desc_query_md(d->pd, queries[p->s.pass][role], 0);
    if (!d->desc[role] || !d->liked[role]) {
        return false;
    }
    if (d->plain[role]) {
        add_workspace(d, bytes, &d->plain_at[role]);
    }
    if (d->l.memory_desc_equal(d->desc[role], d->liked[role])) {
        return true;
    }
    dnnl pd = NULL;
    const void *from = result ? d->liked[role] : d->desc[role], *to = result ? d->desc[role] : d->liked[role];
    bool made = !d->l.reorder_primitive_desc_create(&pd, from, d->engine, to, d->engine, NULL);
    made = made && !d->l.primitive_create(&d->reorder[role], pd);
    if (pd) {
        d->l.primitive_desc_destroy(pd);
    }
    add_workspace(d, d->l.memory_desc_get_size(d->liked[role]), &d->at[role]);
    return made;
}

static bool make_all(struct onednn *d, const struct mc_conv_problem *p)
{
    const int before = mc_library_gemm_threads(d->l.handle, d->threads);
    bool made = !d->l.stream_create(&d->stream, d->engine, DNNL_IN_ORDER) &&
                !d->l.primitive_create(&d->primitive, d->pd);
    for (int role = 0; role < 3 && made; role++) {
        made = make_operand(d, p, role);
    }
    mc_library_gemm_done(d->l.handle, before);
    if (made) {
        add_workspace(d,
                      d->l.memory_desc_get_size(d->l.primitive_desc_query_md(d->pd, DNNL_SCRATCHPAD_MD, 0)),
                      &d->scratch_at);
    }
    return made;
}

static void destroy(struct mc_plan *plan)
{
    struct onednn *d = (struct onednn *)(void *)plan;
    const struct {
        dnnl what;
        int (*how)(dnnl what);
    } parts[] = {
        { d->reorder[0], d->l.primitive_destroy }, { d->reorder[1], d->l.primitive_destroy },
        { d->reorder[2], d->l.primitive_destroy }, { d->primitive, d->l.primitive_destroy },
        { d->pd, d->l.primitive_desc_destroy },    { d->attr, d->l.primitive_attr_destroy },
        { d->stream, d->l.stream_destroy },        { d->engine, d->l.engine_destroy },
    };
    for (int role = 0; role < 3; role++) {
        mc_onednn_desc_free(&d->l, d->desc[role]);
    }
    for (size_t i = 0; i < NELEM(parts); i++) {
        if (parts[i].what) {
            parts[i].how(parts[i].what);
        }
    }
}

/* ---- two runs ---- */

/* Runs the two halves of the images one after the other, if all at once need more workspace than the cap. */
static mc_status run_twice(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_conv_run r = mc_conv_bind(plan, operand, workspace, threads);
    const int64_t images = r.p->s.n / 2 * r.size, result = mc_conv_result(r.p->s.pass);
    const int64_t step[3] = { [CONV_X] = images * r.p->at.x[0], [CONV_Y] = images * r.p->at.y[0] };
    for (int half = 0; half < 2; half++) {
        void *with[8] = { 0 };
        for (int role = 0; role < 3; role++) {
            with[role] = r.at[role] + half * step[role];
        }
        with[CONV_C0] = r.c0 ? (char *)r.c0 + half * step[result] : NULL;
        TRY(plan->child[0]->run(plan->child[0], with, workspace, r.threads));
    }
    mc_conv_finish_all(&r);
    return MC_OK;
}

/* Not for weights: the sums of the two halves would have to be added. */
static struct mc_plan *plan_twice(const struct mc_conv_problem *p, const struct mc_solver *s)
{
    struct mc_conv_problem half = *p;
    half.s.n = p->s.n / 2;
    half.has_epilogue = false;
    struct mc_plan *made = mc_plan_bare(run_twice);
    if (made) {
        made->child[0] = mc_plan_with(&half.base, s);
        made->workspace = made->child[0] ? made->child[0]->workspace : 0;
    }
    if (made && !made->child[0]) {
        mc_free(made);
        made = NULL;
    }
    return made;
}

static bool must_run_twice(const struct mc_conv_problem *p, size_t bytes)
{
    return bytes > p->base.options.workspace && p->s.pass != CONV_WEIGHTS && p->s.n > 1 && p->s.n % 2 == 0;
}

static struct mc_plan *plan_with(const struct mc_conv_problem *p, int algorithm)
{
    struct onednn *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = mc_onednn_run;
    d->base.destroy = destroy;
    d->threads = mc_team_size();
    mc_clear_error();
    if (!mc_onednn_open(&d->l) || !choose_layout(d, p, algorithm) || !make_all(d, p)) {
        if (mc_last_status() != MC_EMEMORY) {
            mc_fail(MC_EUNSUPPORTED, "oneDNN has no such convolution");
        }
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    if (must_run_twice(p, d->base.workspace)) {
        destroy(&d->base);
        mc_free(d);
        return plan_twice(p, algorithm == DNNL_DIRECT ? &mc_conv_onednn : &mc_conv_onednn_winograd);
    }
    return &d->base;
}

static struct mc_plan *plan_direct(const struct mc_problem *p)
{
    return plan_with(conv(p), DNNL_DIRECT);
}

static struct mc_plan *plan_winograd(const struct mc_problem *p)
{
    return plan_with(conv(p), DNNL_WINOGRAD);
}

/* ---- refusals and estimates ---- */

static bool has_positive_strides(const struct mc_conv_problem *p)
{
    for (int role = 0; role < 3; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        for (int i = 0; i < a.rank; i++) {
            if (a.size[i] > 1 && a.stride[i] <= 0) {
                return false;
            }
        }
    }
    return true;
}

static bool is_cropped(const struct mc_conv_shape *s)
{
    for (int i = 0; i < 3; i++) {
        const int64_t behind = conv_at(s, i, s->out[i] - 1, s->k[i] - 1) - (s->in[i] - 1);
        if (s->pad[i] < 0 || behind + s->stride[i] <= 0) {
            return true;
        }
    }
    return false;
}

static const char *refuse(const struct mc_conv_problem *p, const char *name)
{
    const char *asked = mc_conv_asked(p);
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->dtype != MC_FLOAT32 || p->wide) {
        return "takes float32, summed in float32";
    }
    if (p->s.unshared) {
        return "takes filters shared by all positions";
    }
    if (mc_conv_bytes(p) >= 0x1p33) {
        return "takes arrays of less than 2^31 elements";
    }
    if (is_cropped(&p->s) || !has_positive_strides(p)) {
        return "takes no cropping and no negative strides";
    }
    if (p->base.options.mode == PLAN_ESTIMATE && strcmp(asked, name) != 0 &&
        strncmp(asked, "time_", 5) != 0) {
        return "is considered only by plan=measure, or by name";
    }
    return NULL;
}

static const char *missing(const struct mc_problem *p)
{
    struct dnnl_library l;
    (void)p;
    return mc_onednn_open(&l) ? NULL : "finds no library";
}

static const char *refuse_direct(const struct mc_problem *p)
{
    return refuse(conv(p), mc_conv_onednn.name);
}

static const char *refuse_winograd(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const char *no = refuse(p, mc_conv_onednn_winograd.name);
    if (no) {
        return no;
    }
    for (int i = 0; i < 3; i++) {
        if ((p->s.k[i] != 3 && (p->s.k[i] != 1 || i > 0)) || p->s.stride[i] != 1 || p->s.dilation[i] != 1) {
            return "takes 3x3 taps without stride and dilation";
        }
    }
    return NULL;
}

/* Versions and processors differ in what they support, so the library is asked. */
static const char *missing_winograd(const struct mc_problem *p)
{
    const char *no = missing(p);
    struct onednn *d = no ? NULL : mc_calloc(1, sizeof *d, "plans");
    if (no || !d) {
        mc_clear_error();
        return no ? no : "cannot query the library: out of memory";
    }
    d->threads = mc_team_size();
    no = mc_onednn_open(&d->l) && choose_layout(d, conv(p), DNNL_WINOGRAD)
             ? NULL
             : "is not in the library for this processor";
    destroy(&d->base);
    mc_free(d);
    return no;
}

/* A little higher than the estimates of the project's own solvers, so that only timing prefers oneDNN.  Its
 * vectors hold channels of the result in one group, which few channels do not fill; depthwise has kernels of
 * its own. */
static double seconds_at(const struct mc_conv_problem *p, double part)
{
    enum { LANES = 16 };
    const struct mc_conv_shape *s = &p->s;
    const bool each = s->groups == s->c && s->groups == s->f;
    const int64_t to = (s->pass == CONV_INPUTS ? s->c : s->f) / s->groups;
    const double waste = each ? 1 : (double)(conv_ceil(to, LANES) * LANES) / (double)to;
    const double seconds = waste * mc_conv_flops(p) / (part * mc_conv_peak(p)) +
                           3 * mc_conv_copy(mc_conv_bytes(p));
    return 2e-5 + seconds / mc_conv_threads(seconds, 64);
}

static double estimate_direct(const struct mc_problem *p)
{
    return seconds_at(conv(p), conv(p)->s.c / conv(p)->s.groups < 4 ? 0.3 : 0.8);
}

static double estimate_winograd(const struct mc_problem *p)
{
    return seconds_at(conv(p), 1.2);
}

const struct mc_solver mc_conv_onednn = {
    .name = "onednn", .refuse = refuse_direct, .missing = missing, .estimate = estimate_direct,
    .plan = plan_direct,
};
const struct mc_solver mc_conv_onednn_winograd = {
    .name = "onednn_winograd", .refuse = refuse_winograd, .missing = missing_winograd,
    .estimate = estimate_winograd, .plan = plan_winograd,
};

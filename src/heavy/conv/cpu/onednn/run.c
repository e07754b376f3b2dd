/* run.c: one call of oneDNN. Operands are reordered to the layouts that the library chose and back, in the
 * plan's workspace. oneDNN has no flip: a flipped filter is copied first, and a flipped gradient is reversed
 * at the end, where alpha and beta are applied too.
 *
 * Invariant: the library's number of threads is set for the calling thread only, and restored. */
#include "heavy/conv/cpu/onednn/library.h"
#include "heavy/gemm/cpu/library.h"

static const int args[][3] = { /* of x, w, y */
    [CONV_FORWARD] = { DNNL_SRC, DNNL_WEIGHTS, DNNL_DST },
    [CONV_INPUTS]  = { DNNL_DIFF_SRC, DNNL_WEIGHTS, DNNL_DIFF_DST },
    [CONV_WEIGHTS] = { DNNL_SRC, DNNL_DIFF_WEIGHTS, DNNL_DIFF_DST },
};

struct call {
    const struct onednn *d;
    struct mc_conv_run r;
    int failed;
};

/* Runs one primitive on n memories. The first failure is kept. */
static void execute(struct call *x, dnnl primitive, int n, const int *arg, const void *const *desc,
                    void *const *data)
{
    const struct dnnl_library *l = &x->d->l;
    struct dnnl_arg with[4];
    int made = 0;
    for (; made < n && !x->failed; made++) {
        with[made].arg = arg[made];
        x->failed = l->memory_create(&with[made].memory, desc[made], x->d->engine, data[made]);
        if (x->failed) {
            break;
        }
    }
    if (!x->failed) {
        x->failed = l->primitive_execute(primitive, x->d->stream, n, with);
    }
    if (!x->failed) {
        x->failed = l->stream_wait(x->d->stream);
    }
    while (made > 0) {
        l->memory_destroy(with[--made].memory);
    }
}

static void reorder(struct call *x, int role, const void *from_desc, void *from, const void *to_desc,
                    void *to)
{
    static const int from_to[] = { DNNL_SRC, DNNL_DST };
    execute(x, x->d->reorder[role], 2, from_to, (const void *const[]){ from_desc, to_desc },
            (void *const[]){ from, to });
}

/* The offset of element 0, and the strides, of w with its taps reversed if they are flipped. */
static int64_t reverse_taps(const struct mc_conv_problem *p, const int64_t *stride, int64_t *to)
{
    int64_t shift = 0;
    memcpy(to, stride, 5 * sizeof *to);
    for (int i = 0; i < 3 && p->s.flip; i++) {
        shift += (p->s.k[i] - 1) * stride[2 + i];
        to[2 + i] = -stride[2 + i];
    }
    return shift;
}

static char *load_operand(struct call *x, int role)
{
    const struct onednn *d = x->d;
    char *src = x->r.at[role];
    if (d->plain[role]) { /* a flipped filter */
        const struct mc_conv_array a = mc_conv_array(x->r.p, role);
        int64_t back[5];
        const int64_t shift = reverse_taps(x->r.p, a.stride, back);
        char *to = x->r.workspace + d->plain_at[role];
        struct mc_conv_copy c = { .to = to, .from = src + shift * x->r.size, .to_type = MC_FLOAT32,
                                  .from_type = MC_FLOAT32, .rank = 5,
                                  .to_stride = d->plain_stride[role], .from_stride = back };
        memcpy(c.size, a.size, sizeof c.size);
        mc_conv_copy_array(&c, x->r.threads);
        src = to;
    }
    if (d->reorder[role]) {
        char *to = x->r.workspace + d->at[role];
        reorder(x, role, d->desc[role], src, d->liked[role], to);
        src = to;
    }
    return src;
}

/* result = alpha * sums + beta * c0 for one index of the first two axes. */
static void combine(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct mc_conv_problem *p = x->r.p;
    const int role = mc_conv_result(p->s.pass);
    const struct mc_conv_array a = mc_conv_array(p, role);
    const float *from = (const float *)(const void *)(x->r.workspace + x->d->plain_at[role]);
    const float *c0 = (const float *)(const void *)x->r.c0, alpha = (float)p->alpha, beta = (float)p->beta;
    float *to = (float *)(void *)x->r.result;
    const int64_t i0 = task / a.size[1], i1 = task % a.size[1], rows = a.size[2] * a.size[3];
    int64_t back[5];
    const int64_t shift = role == CONV_W ? reverse_taps(p, x->d->plain_stride[role], back) : 0;
    const int64_t *fs = role == CONV_W ? back : x->d->plain_stride[role];
    (void)slot;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t i2 = row / a.size[3], i3 = row % a.size[3];
        const int64_t at = i0 * a.stride[0] + i1 * a.stride[1] + i2 * a.stride[2] + i3 * a.stride[3];
        const float *f = from + shift + i0 * fs[0] + i1 * fs[1] + i2 * fs[2] + i3 * fs[3];
        for (int64_t i = 0; i < a.size[4]; i++) {
            const int64_t e = at + i * a.stride[4];
            to[e] = alpha * f[i * fs[4]] + (c0 ? beta * c0[e] : 0);
        }
    }
    conv_finish(&x->r, (int64_t[]){ i0, i1, 0, 0, 0 }, (int64_t[]){ 1, 1, a.size[2], a.size[3], a.size[4] });
}

mc_status mc_onednn_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct onednn *d = (const struct onednn *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    const enum mc_conv_pass pass = x.r.p->s.pass;
    const int role = mc_conv_result(pass), before = mc_library_gemm_threads(d->l.handle, d->threads);
    const struct mc_conv_array a = mc_conv_array(x.r.p, role);
    void *data[4] = { 0 };
    for (int i = 0; i < 3; i++) {
        data[i] = i != role ? load_operand(&x, i) : NULL;
    }
    char *bare = d->plain[role] ? x.r.workspace + d->plain_at[role] : x.r.result;
    data[role] = d->reorder[role] ? x.r.workspace + d->at[role] : bare;
    data[3] = x.r.workspace + d->scratch_at;
    const void *const desc[4] = { d->liked[0], d->liked[1], d->liked[2],
                                  d->l.primitive_desc_query_md(d->pd, DNNL_SCRATCHPAD_MD, 0) };
    execute(&x, d->primitive, 4,
            (const int[]){ args[pass][0], args[pass][1], args[pass][2], DNNL_SCRATCHPAD }, desc, data);
    if (d->reorder[role]) {
        reorder(&x, role, d->liked[role], data[role], d->desc[role], bare);
    }
    mc_library_gemm_done(d->l.handle, before);
    if (x.failed) {
        return mc_fail(MC_EUNSUPPORTED, "conv: oneDNN failed with status %d", x.failed);
    }
    if (d->plain[role]) {
        mc_team_tasks(combine, &x, a.size[0] * a.size[1], x.r.threads, x.r.threads,
                      (double)mc_conv_count(&a) * 4e-10);
    } else {
        mc_conv_finish_all(&x.r);
    }
    return MC_OK;
}

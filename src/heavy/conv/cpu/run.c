/* run.c: binds the operands of a call, initialises and finishes results, and has the parts of estimates.
 *
 * Invariant: blocks of one image and channel (filter and channel for weights) are disjoint. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/solver.h"
#include "heavy/gemm/cpu/kernel.h"

struct mc_conv_run mc_conv_bind(const struct mc_plan *plan, void *const *operand, void *workspace,
                                int threads)
{
    const struct mc_conv_problem *p = conv(plan->problem);
    struct mc_conv_run r = {
        .p = p,
        .at = { operand[CONV_X], operand[CONV_W], operand[CONV_Y] },
        .result = operand[mc_conv_result(p->s.pass)],
        .arg = operand[CONV_EPILOGUE_ARG],
        .size = mc_dtypes[p->dtype].size,
        .workspace = workspace,
        .threads = threads > 0 ? threads : mc_team_size(),
    };
    if (p->w_stays) {
        r.prepared = operand[MC_PREPARED];
    }
    if (p->beta != 0) {
        r.c0 = operand[CONV_C0];
    }
    if (p->has_epilogue) {
        memcpy(&r.epilogue, &operand[CONV_EPILOGUE],
               sizeof r.epilogue); /* a function pointer stored in a void pointer */
    }
    return r;
}

/* ---- the epilogue as a separate step ---- */

static void finish_one(void *arg, int64_t task, int slot)
{
    const struct mc_conv_run *r = arg;
    const struct mc_conv_array a = mc_conv_array(r->p, mc_conv_result(r->p->s.pass));
    const int64_t at[5] = { task / a.size[1], task % a.size[1], 0, 0, 0 };
    const int64_t size[5] = { 1, 1, a.size[2], a.size[3], a.size[4] };
    (void)slot;
    conv_finish(r, at, size);
}

void mc_conv_finish_all(const struct mc_conv_run *r)
{
    const struct mc_conv_array a = mc_conv_array(r->p, mc_conv_result(r->p->s.pass));
    if (r->epilogue && mc_conv_count(&a) > 0) {
        mc_team_tasks(finish_one, (void *)r, a.size[0] * a.size[1], r->threads, r->threads,
                      (double)mc_conv_count(&a) * 2e-10);
    }
}

void mc_conv_no_epilogue(void *arg, const int64_t at[5], const int64_t size[5])
{
    (void)arg;
    (void)at;
    (void)size;
}

void mc_conv_finish_positions(const struct mc_conv_run *r, int64_t n, int64_t f, int64_t nf, int64_t u,
                              int64_t count)
{
    const int64_t *out = r->p->s.pass == CONV_INPUTS ? r->p->s.in : r->p->s.out, plane = out[1] * out[2];
    if (count > 0) {
        conv_finish(r, (int64_t[]){ n, f, u / plane, u / out[2] % out[1], u % out[2] },
                    (int64_t[]){ 1, nf, 1, 1, count });
    }
}

/* ---- initial values, before sums are added ---- */

static void start_row(const struct mc_conv_run *r, int64_t at, int64_t stride, int64_t n)
{
    const double beta = r->p->beta;
    if (r->p->dtype == MC_FLOAT64) {
        double *to = (double *)r->result + at;
        const double *from = (const double *)(const void *)r->c0 + at;
        for (int64_t i = 0; i < n; i++) {
            to[i * stride] = r->c0 ? beta * from[i * stride] : 0;
        }
    } else {
        float *to = (float *)r->result + at;
        const float *from = (const float *)(const void *)r->c0 + at;
        for (int64_t i = 0; i < n; i++) {
            to[i * stride] = r->c0 ? (float)beta * from[i * stride] : 0;
        }
    }
}

void mc_conv_start(const struct mc_conv_run *r, const int64_t at[5], const int64_t size[5])
{
    const struct mc_conv_array a = mc_conv_array(r->p, mc_conv_result(r->p->s.pass));
    int64_t left = a.rank > 5 ? a.size[5] * a.size[6] * a.size[7] : 1;
    for (int i = 0; i < 4; i++) {
        left *= size[i];
    }
    for (int64_t row = 0; row < left; row++) { /* unshared weights: at all positions */
        int64_t rest = row, offset = at[4] * a.stride[4];
        for (int i = a.rank - 1; i > 4; i--) {
            offset += rest % a.size[i] * a.stride[i];
            rest /= a.size[i];
        }
        for (int i = 3; i >= 0; i--) {
            offset += (at[i] + rest % size[i]) * a.stride[i];
            rest /= size[i];
        }
        start_row(r, offset, a.stride[4], size[4]);
    }
}

/* ---- refusals ---- */

const char *mc_conv_hollow(const struct mc_conv_problem *p)
{
    const struct mc_conv_array x = mc_conv_array(p, CONV_X), w = mc_conv_array(p, CONV_W),
                               y = mc_conv_array(p, CONV_Y);
    return !mc_conv_count(&x) || !mc_conv_count(&w) || !mc_conv_count(&y)
               ? "leaves empty arrays to the reference"
               : NULL;
}

const char *mc_conv_not_plain(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return mc_conv_hollow(p)                   ? mc_conv_hollow(p)
           : p->dtype != MC_FLOAT32 || p->wide ? "sums only in float32"
           : s->unshared                       ? "takes filters shared by all positions"
           : s->in[0] != 1 || s->out[0] != 1 || s->k[0] != 1 || s->pad[0] != 0
               ? "takes one or two spatial axes"
               : NULL;
}

const char *mc_conv_shared_image_halves(const struct mc_conv_problem *p)
{
    return mc_dtypes[p->dtype].size == 2 ? "takes float32 and float64; relayout converts halves for it"
           : p->wide && p->dtype != MC_FLOAT64
               ? "sums float32 in float32, and conv.precision asks for float64"
               : NULL;
}

/* ---- estimates ---- */

/* Threads that estimates assume. With the real number, it would influence the choice of solver and so the
 * bits. */
enum { NOMINAL = 4 };

/* Of one thread: cycles a second, bytes a second from its own caches, and from memory shared with others. */
static const double clock_hz = 3.5e9, own_bytes = 60e9, shared_bytes = 15e9;

double mc_conv_flops(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return 2 * (double)s->n * (double)s->f * (double)(s->c / s->groups) * (double)conv_volume(s->out) *
           (double)conv_volume(s->k);
}

double mc_conv_bytes(const struct mc_conv_problem *p)
{
    double count = 0;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        count += (double)mc_conv_count(&a);
    }
    return count * mc_dtypes[p->dtype].size;
}

double mc_conv_peak(const struct mc_conv_problem *p)
{
    return mc_gemm_kernel(p->dtype)->flops * clock_hz;
}

double mc_conv_copy(double bytes)
{
    return bytes / (bytes < (double)mc_cpu()->l2 ? own_bytes : shared_bytes);
}

double mc_conv_lost_lines(int64_t numbers, int64_t step, int64_t rows)
{
    const int64_t l2 = (int64_t)mc_cpu()->l2, l3 = (int64_t)mc_cpu()->l3;
    const int64_t size = sizeof(float), spacing = step & -step; /* a power of two */
    return numbers * size > l3 / 4 || spacing * rows * size > l2 / 2 ? (double)numbers * 2e-9 : 0;
}

double mc_conv_threads(double seconds, double tasks)
{
    return seconds < MC_TEAM_WORTH ? 1 : MC_MIN((double)NOMINAL, MC_MAX(tasks, 1));
}

double mc_conv_work(const struct mc_conv_problem *p)
{
    return MC_MAX(mc_conv_flops(p) / mc_conv_peak(p), mc_conv_copy(mc_conv_bytes(p)));
}

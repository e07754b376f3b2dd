/* rows.c: depthwise convolutions of dense planes by filters of 3 x 3 or 5 x 5, with stride 1 or 2. Planes
 * are read in place; lanes beyond an edge are not loaded and are zero.
 *
 * With stride 1 a vector is a piece of a row. It is loaded once for each column of taps and goes into the
 * sums of all rows that it reaches. With stride 2, and where rows are at most half a vector long, the
 * elements of a tap are picked from two vectors.
 *
 * Invariant: what a task writes are its own planes. */
#include "heavy/conv/cpu/depthwise/plan.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    BLOCK = 4096, PLANES = 16, /* floats of the result that are finished together, and the most planes */
    MOST_SIDE = 5, MOST_TAPS = MOST_SIDE * MOST_SIDE, MOST_LANES = 16,
};

struct rows;
typedef void plane_kernel(const struct rows *d, const float *x, float *y, const float *w);
struct rows {
    struct mc_plan base;
    plane_kernel *plane;
    int64_t in[2], out[2], pad[2], step;
    int64_t n;                  /* positions of a row that a vector has, if they are picked */
    bool two;                   /* a vector has two rows, if they are picked */
    int pick[MOST_SIDE][MOST_LANES]; /* of each column of taps, the element for each lane */
    int64_t w[MOST_TAPS];       /* of each tap, in the filter */
    int64_t taps, block, blocks; /* planes of a task; tasks of an image */
};
struct form {
    enum mc_isa isa;
    int64_t lanes;
    plane_kernel *roll[2], *pick[2], *pair[2]; /* of 3 x 3, of 5 x 5 */
};
struct call {
    const struct rows *d;
    struct mc_conv_run r;
};

#if defined(__x86_64__)
#define TARGET        __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define FUSED         static inline TARGET __attribute__((always_inline))
#define NAME(x)       avx512_##x
#define V             __m512
#define VI            __m512i
#define L             16
#define MASK          __mmask16
#define MASK_OF       avx512_lanes
#define MASK_IF(m, c) ((MASK)((m) & -(c)))
#define LOADM(p, m)   _mm512_maskz_loadu_ps(m, p)
#define STOREM        _mm512_mask_storeu_ps
#define STORE         _mm512_storeu_ps
#define ZERO          _mm512_setzero_ps
#define SET1          _mm512_set1_ps
#define FMA           _mm512_fmadd_ps
#define LOADI(p)      _mm512_loadu_si512(p)
#define PICK          _mm512_permutex2var_ps
FUSED MASK avx512_lanes(int64_t lo, int64_t hi)
{
    const int64_t a = MC_MIN(MC_MAX(lo, (int64_t)0), (int64_t)L),
                  b = MC_MIN(MC_MAX(hi, (int64_t)0), (int64_t)L);
    return (MASK)(((1u << b) - 1) & ~((1u << a) - 1));
}
#include "heavy/conv/cpu/depthwise/rows_body.h"

#define TARGET        __attribute__((target("avx2,fma")))
#define FUSED         static inline TARGET __attribute__((always_inline))
#define NAME(x)       avx2_##x
#define V             __m256
#define VI            __m256i
#define L             8
#define MASK          __m256i
#define MASK_OF       avx2_lanes
#define MASK_IF(m, c) _mm256_and_si256(m, _mm256_set1_epi32(-(c)))
#define LOADM(p, m)   _mm256_maskload_ps(p, m)
#define STOREM        _mm256_maskstore_ps
#define STORE         _mm256_storeu_ps
#define ZERO          _mm256_setzero_ps
#define SET1          _mm256_set1_ps
#define FMA           _mm256_fmadd_ps
#define LOADI(p)      _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define PICK          avx2_two
FUSED MASK avx2_lanes(int64_t lo, int64_t hi)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int a = (int)MC_MIN(MC_MAX(lo, (int64_t)0), (int64_t)L),
              b = (int)MC_MIN(MC_MAX(hi, (int64_t)0), (int64_t)L);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(a), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(b), lane));
}
/* Bit 3 of i says which. */
FUSED V avx2_two(V a, VI i, V b)
{
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(a, i), _mm256_permutevar8x32_ps(b, i),
                            _mm256_castsi256_ps(_mm256_slli_epi32(i, 28)));
}
#include "heavy/conv/cpu/depthwise/rows_body.h"

static const struct form forms[] = {
    { ISA_AVX512, 16, { avx512_roll3, avx512_roll5 }, { avx512_pick3, avx512_pick5 }, { avx512_pair3, avx512_pair5 } },
    { ISA_AVX2,   8,  { avx2_roll3,   avx2_roll5   }, { avx2_pick3,   avx2_pick5   }, { avx2_pair3,   avx2_pair5   } },
};
#else
static const struct form forms[] = { { ISA_PLAIN, 0, { 0 }, { 0 }, { 0 } } };
#endif

/* NULL: there is none. */
static const struct form *form(void)
{
    const struct form *found = NULL;
    for (size_t i = 0; i < NELEM(forms) && !found; i++) {
        found = forms[i].lanes && mc_isa_runs(forms[i].isa) ? &forms[i] : NULL;
    }
    return found;
}

/* ---- running ---- */

static void task(void *arg, int64_t i, int slot)
{
    const struct call *x = arg;
    const struct rows *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const int64_t n = i / d->blocks, c = i % d->blocks * d->block, planes = MC_MIN(d->block, p->s.c - c),
                  in = d->in[0] * d->in[1], out = d->out[0] * d->out[1];
    const float *from = (const float *)(const void *)x->r.at[CONV_X] + (n * p->s.c + c) * in;
    float *to = (float *)(void *)x->r.result + (n * p->s.c + c) * out;
    (void)slot;
    for (int64_t k = 0; k < planes; k++) {
        const float *own = (const float *)(const void *)x->r.at[CONV_W] + (c + k) * p->at.w[0];
        float w[MOST_TAPS];
        for (int64_t t = 0; t < d->taps; t++) {
            w[t] = (float)p->alpha * own[d->w[t]];
        }
        d->plane(d, from + k * in, to + k * out, w);
    }
    conv_finish(&x->r, (int64_t[]){ n, c, 0, 0, 0 }, (int64_t[]){ 1, planes, 1, d->out[0], d->out[1] });
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct rows *d = (const struct rows *)(const void *)plan;
    struct call x = { d, mc_conv_bind(plan, operand, workspace, threads) };
    mc_team_tasks(task, &x, x.r.p->s.n * d->blocks, x.r.threads, x.r.threads, mc_conv_work(x.r.p));
    return MC_OK;
}

/* ---- planning ---- */

static int64_t side(const struct mc_conv_problem *p)
{
    return p->s.k[1];
}

/* Which positions a vector has, and where their elements are. */
static void choose_windows(struct rows *d, int64_t k, int64_t lanes)
{
    const int64_t all = d->out[1], most = MC_MIN((2 * lanes - k) / d->step + 1, lanes);
    d->two = 2 * all <= lanes && d->step * (all - 1) + k <= lanes;
    d->n = d->two ? all : conv_ceil(all, conv_ceil(all, most));
    for (int64_t t = 0; t < k; t++) {
        for (int64_t i = 0; i < lanes; i++) {
            const int64_t at = d->two && i >= d->n ? lanes + d->step * (i - d->n) + t : d->step * i + t;
            d->pick[t][i] = (int)MC_MIN(at, 2 * lanes - 1);
        }
    }
}

static void measure(struct rows *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const struct form *f = form();
    for (int i = 0; i < 2; i++) {
        d->in[i] = s->in[i + 1];
        d->out[i] = s->out[i + 1];
        d->pad[i] = s->pad[i + 1];
    }
    d->step = s->stride[1];
    d->block = MC_MAX(MC_MIN(BLOCK / (d->out[0] * d->out[1]), (int64_t)PLANES), (int64_t)1);
    d->blocks = conv_ceil(s->c, d->block);
    for (int64_t r = 0; r < side(p); r++) {
        for (int64_t c = 0; c < side(p); c++) {
            d->w[d->taps++] = conv_tap(s, 1, r) * p->at.w[3] + conv_tap(s, 2, c) * p->at.w[4];
        }
    }
    const bool rolls = d->step == 1 && 2 * d->out[1] > f->lanes;
    choose_windows(d, side(p), f->lanes);
    d->plane = (rolls ? f->roll : d->two ? f->pair : f->pick)[side(p) == MOST_SIDE];
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    struct rows *d = mc_calloc(1, sizeof *d, "plans");
    if (d) {
        measure(d, conv(p_));
        d->base.run = run;
    }
    return d ? &d->base : NULL;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    if (mc_depth_not_planes(p)) {
        return mc_depth_not_planes(p);
    }
    if (s->k[1] != s->k[2] || (s->k[1] != 3 && s->k[1] != MOST_SIDE)) {
        return "takes filters of 3 x 3 and 5 x 5";
    }
    if (s->stride[1] != s->stride[2] || s->stride[1] > 2) {
        return "takes strides 1 and 2";
    }
    if (s->pad[1] >= s->k[1] || s->pad[2] >= s->k[2]) {
        return "takes a border narrower than the filter";
    }
    if (p->beta != 0) {
        return "takes no c0";
    }
    return form() ? NULL : "needs AVX2 or AVX-512";
}

/* As planes.c, it serves where solvers are timed: libmonochord-run does not have it. */
static double estimate(const struct mc_problem *p_)
{
    const double never = 1e3;
    if (mc_flag_int(FLAG_plan) == PLAN_ESTIMATE) {
        return never;
    }
    const struct mc_conv_problem *p = conv(p_);
    const double math = 2 * mc_conv_flops(p) / mc_conv_peak(p),
                 seconds = math + mc_conv_copy(mc_conv_bytes(p));
    return 1e-6 + seconds / mc_conv_threads(seconds, (double)(p->s.n * p->s.c));
}

const struct mc_solver mc_conv_rows = {
    .name = "rows", .refuse = refuse, .estimate = estimate, .plan = plan,
};

/* t_conv_fast.c: the solvers of convolutions with code for each instruction set, on all of them that this
 * processor runs, against the reference, whose result of a shape is kept: its sums take longest. */
#include "check.h"
#include "heavy/conv/cpu/fft/plan.h"
#include "heavy/conv/solver.h"
#include "heavy/gemm/cpu/kernel.h"
#include <math.h>

static const struct {
    int64_t n, c, in[2], f, k[2], stride, dilation, pad, groups;
    bool flip, last;    /* last: channels innermost */
} shapes[] = {
    { 2, 3,  { 7, 7 },   5,  { 3, 3 },   1, 1, 1, 1 },          /* one tile of 8 */
    { 3, 20, { 14, 13 }, 33, { 3, 3 },   1, 1, 1, 1 },
    { 1, 5,  { 30, 41 }, 18, { 5, 7 },   1, 1, 0, 1, true },
    { 2, 1,  { 45, 50 }, 3,  { 11, 9 },  1, 1, 4, 1 },          /* few channels: tiles in the lanes */
    { 1, 70, { 20, 9 },  17, { 2, 4 },   1, 2, 1, 1 },          /* sums in pieces */
    { 1, 2,  { 64, 64 }, 2,  { 40, 33 }, 1, 1, 7, 1 },
    { 2, 6,  { 17, 19 }, 9,  { 3, 4 },   2, 1, 1, 3 },
    { 2, 7,  { 26, 25 }, 6,  { 5, 3 },   3, 2, 2, 1, true },
    { 1, 3,  { 9, 300 }, 4,  { 3, 3 },   1, 1, 0, 1 },          /* many parts of rows */
    { 2, 19, { 12, 11 }, 19, { 3, 3 },   1, 1, 1, 19 },         /* depthwise: small planes, rows, a line; NHWC */
    { 1, 21, { 15, 13 }, 21, { 5, 5 },   2, 1, 2, 21, true },
    { 2, 3,  { 13, 90 }, 6,  { 3, 5 },   2, 1, 2, 3 },
    { 2, 3,  { 9, 75 },  3,  { 3, 3 },   1, 2, 2, 3 },
    { 2, 9,  { 1, 70 },  9,  { 1, 4 },   1, 3, 0, 9 },
    { 2, 19, { 6, 33 },  19, { 3, 3 },   1, 1, 1, 19, .last = true },
    { 1, 37, { 9, 30 },  37, { 3, 4 },   2, 1, 1, 37, .last = true },
    { 2, 8,  { 7, 7 },   8,  { 7, 7 },   1, 1, 3, 8, .last = true },
    { 3, 16, { 13, 13 }, 24, { 3, 3 },   1, 6, 6, 1, .last = true }, /* taps that read only zeros */
    { 2, 40, { 9, 11 },  56, { 3, 3 },   2, 1, 1, 2, true, .last = true },
    { 2, 24, { 9, 43 },  40, { 3, 3 },   2, 1, 1, 1, .last = true }, /* tiles within lines and across them */
    { 2, 19, { 7, 7 },   19, { 3, 3 },   1, 1, 1, 19 },         /* depthwise: planes of short and long rows */
    { 1, 5,  { 21, 37 }, 5,  { 7, 7 },   1, 1, 3, 5, true },
    { 2, 5,  { 14, 15 }, 5,  { 3, 3 },   2, 1, 1, 5 },
    { 1, 3,  { 56, 57 }, 3,  { 3, 5 },   2, 1, 2, 3, true },
    { 1, 4,  { 31, 40 }, 4,  { 2, 1 },   3, 1, 1, 4 },
    { 1, 2,  { 5, 90 },  2,  { 4, 4 },   3, 1, 4, 2 },
    { 1, 9,  { 1, 700 }, 17, { 1, 2 },   1, 16, 0, 1 },         /* nothing is padded: x in place */
    { 2, 36, { 9, 17 },  36, { 3, 3 },   1, 1, 1, 9 },          /* woven groups of 4, 8, 24, 16, 32, 12 */
    { 2, 36, { 9, 17 },  36, { 3, 3 },   2, 1, 1, 9, true, .last = true },
    { 2, 40, { 7, 30 },  40, { 3, 5 },   1, 1, 2, 5, .last = true },
    { 1, 40, { 14, 14 }, 40, { 3, 3 },   2, 1, 1, 5 },
    { 2, 72, { 8, 9 },   72, { 3, 3 },   2, 1, 1, 3, .last = true },
    { 1, 72, { 7, 8 },   72, { 3, 3 },   1, 2, 2, 3, true },
    { 1, 48, { 14, 7 },  48, { 5, 7 },   3, 2, 3, 3, .last = true },
    { 1, 96, { 12, 7 },  96, { 3, 3 },   1, 1, 1, 3 },
    { 2, 36, { 70, 67 }, 36, { 3, 3 },   2, 1, 1, 3, .last = true }, /* in bands */
    { 37, 3, { 12, 12 }, 6,  { 5, 5 },   1, 1, 0, 1, true },    /* one tile of 12; shares of images, y in place */
    { 9, 1,  { 99, 97 }, 5,  { 3, 3 },   1, 1, 0, 1 },          /* planes that one register does not sum */
    { 9, 24, { 5, 7 },   320, { 3, 3 },  1, 1, 1, 1 },          /* too many filters for planes by columns */
    { 5, 40, { 26, 23 }, 70, { 3, 3 },   1, 1, 1, 1 },          /* in blocks, under a cap */
};

static struct mc_conv_problem problem(size_t i, enum mc_conv_pass pass)
{
    struct mc_conv_problem p = {
        .base = { &mc_conv_family, mc_plan_options_of(NULL) }, .dtype = MC_FLOAT32, .alpha = 0.5, .beta = 2
    };
    struct mc_conv_shape *s = &p.s;
    *s = (struct mc_conv_shape){ .pass = pass,
                                 .nd = 2,
                                 .n = shapes[i].n,
                                 .c = shapes[i].c,
                                 .f = shapes[i].f,
                                 .groups = shapes[i].groups,
                                 .flip = shapes[i].flip };
    s->in[0] = s->out[0] = s->k[0] = s->stride[0] = s->dilation[0] = 1;
    for (int a = 1; a < 3; a++) {
        s->in[a] = shapes[i].in[a - 1], s->k[a] = shapes[i].k[a - 1], s->pad[a] = shapes[i].pad;
        s->stride[a] = shapes[i].stride, s->dilation[a] = shapes[i].dilation;
        s->out[a] = (s->in[a] + 2 * s->pad[a] - (s->k[a] - 1) * s->dilation[a] - 1) / s->stride[a] + 1;
    }
    int64_t *const strides[] = { p.at.x, p.at.w, p.at.y };
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(&p, role);
        mc_conv_dense_strides(&a, strides[role]);
        const int64_t channels = role == CONV_X ? s->c : s->f;
        if (shapes[i].last && role != CONV_W) {
            memcpy(strides[role],
                   (int64_t[]){ strides[role][0], 1, a.size[3] * a.size[4] * channels, a.size[4] * channels,
                                channels },
                   5 * sizeof(int64_t));
        }
    }
    return p;
}

/* What a plan makes of the family's operands, to be freed; NULL: it failed, or there is no plan. */
static float *made_by(const struct mc_conv_problem *p, const struct mc_plan *plan)
{
    const struct mc_conv_array a = mc_conv_array(p, mc_conv_result(p->s.pass));
    const size_t bytes = (size_t)mc_conv_count(&a) * sizeof(float);
    void *operand[8], *work = plan ? mc_alloc_pages(plan->workspace, "test") : NULL;
    float *made = mc_alloc(bytes, "test");
    bool good = work && made && mc_conv_operands(&p->base, operand) == MC_OK;
    if (good) {
        good = plan->run(plan, operand, work, 0) == MC_OK;
        memcpy(made, operand[mc_conv_result(p->s.pass)], bytes);
        mc_conv_discard(&p->base, operand);
    }
    mc_free_pages(work);
    if (!good) {
        mc_free(made);
    }
    return good ? made : NULL;
}

static float *made_by_reference(const struct mc_conv_problem *p)
{
    struct mc_plan *plan = mc_plan_with(&p->base, &mc_conv_reference);
    float *made = made_by(p, plan);
    mc_plan_free(plan);
    return made;
}

/* Does the plan of shape i give what the reference gives, which is asked once in a test? */
static bool verified(size_t i, const struct mc_conv_problem *p, const struct mc_plan *plan)
{
    static float *truth[NELEM(shapes)][CONV_WEIGHTS + 1];
    float **want = &truth[i][p->s.pass], *have = made_by(p, plan);
    *want = *want ? *want : made_by_reference(p);
    const bool same = *want && have &&
                      mc_conv_compare(p, plan, (const char *)have, (const char *)*want) == MC_OK;
    mc_free(have);
    return same;
}

static int try_solver(const struct mc_solver *s, const char *set)
{
    int taken = 0;
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            const struct mc_conv_problem p = problem(i, (enum mc_conv_pass)pass);
            if (s->refuse(&p.base)) {
                continue;
            }
            struct mc_plan *plan = mc_plan_with(&p.base, s);
            if (CHECK(plan, "%s", mc_last_error())) {
                CHECK(verified(i, &p, plan), "shape %zu, %s: %s", i, set, mc_last_error());
                taken++;
            }
            mc_plan_free(plan);
        }
    }
    return taken;
}

static void try_sets(const struct mc_solver *s, int least)
{
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    for (size_t i = 0; i < NELEM(sets); i++) {
        if (mc_isa_only(sets[i])) {
            const int taken = try_solver(s, sets[i]);
            CHECK(taken >= least, "%s took %d", sets[i], taken);
        }
    }
    mc_isa_only(NULL);
}

TEST(conv_fft_in_every_instruction_set) { try_sets(&mc_conv_fft, 21); }
TEST(conv_winograd_in_every_instruction_set) { try_sets(&mc_conv_winograd, 9); }
TEST(conv_winograd4_in_every_instruction_set) { try_sets(&mc_conv_winograd4, 9); }
TEST(conv_spread_in_every_instruction_set) { try_sets(&mc_conv_col2im, 9); }
TEST(conv_direct_in_every_instruction_set) { try_sets(&mc_conv_direct, 27); }
TEST(conv_depthwise_in_every_instruction_set) { try_sets(&mc_conv_depth, 24); }

/* Few channels, y dense and in whole vectors: sums go to y. With gaps between its rows they do not. */
TEST(conv_direct_sums_where_the_result_is)
{
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    for (size_t i = 0; i < 2 * NELEM(sets); i++) {
        struct mc_conv_problem p = problem(NELEM(shapes) - 4, CONV_FORWARD);
        p.alpha = 1;
        p.beta = 0;
        if (i % 2) {
            p.at.y[1] += p.s.out[2];
            p.at.y[0] = p.s.f * p.at.y[1];
            p.at.y[3] += 1;
        }
        if (!mc_isa_only(sets[i / 2])) {
            continue;
        }
        struct mc_plan *plan = mc_plan_with(&p.base, &mc_conv_direct);
        CHECK(plan && mc_conv_verify(&p.base, plan) == MC_OK, "%s, %zu: %s", sets[i / 2], i % 2,
              mc_last_error());
        mc_plan_free(plan);
    }
    mc_isa_only(NULL);
}

/* solvers that libmonochord-run does not have */
TEST(conv_implicit_in_every_instruction_set)
{
    if (mc_conv_implicit.missing) {
        SKIP("it is in libmonochord alone");
    }
    try_sets(&mc_conv_implicit, 63);
}

/* The same without c0, which may let a kernel store its sums in the result. */
static void sum_alone(const struct mc_solver *s, const char *set)
{
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            struct mc_conv_problem p = problem(i, (enum mc_conv_pass)pass);
            p.beta = 0;
            if (s->refuse(&p.base)) {
                continue;
            }
            struct mc_plan *plan = mc_plan_with(&p.base, s);
            CHECK(plan && mc_conv_verify(&p.base, plan) == MC_OK, "shape %zu, %s: %s", i, set,
                  mc_last_error());
            mc_plan_free(plan);
        }
    }
}

TEST(conv_grouped_in_every_instruction_set)
{
    static const char *const sets[] = { "avx512", "avx2" };
    if (mc_conv_grouped.missing) {
        SKIP("it is in libmonochord alone");
    }
    int tried = 0;
    for (size_t i = 0; i < NELEM(sets); i++) {
        if (mc_isa_only(sets[i])) {
            const int taken = try_solver(&mc_conv_grouped, sets[i]);
            CHECK(taken >= 27, "%s took %d", sets[i], taken);
            sum_alone(&mc_conv_grouped, sets[i]);
            tried++;
        }
    }
    mc_isa_only(NULL);
    if (!tried) {
        SKIP("no AVX2");
    }
}

TEST(conv_planes_in_every_instruction_set)
{
    if (mc_conv_planes.missing) {
        SKIP("it is in libmonochord alone");
    }
    try_sets(&mc_conv_planes, 8);
}

TEST(conv_channels_in_every_instruction_set)
{
    if (mc_conv_channels.missing) {
        SKIP("it is in libmonochord alone");
    }
    try_sets(&mc_conv_channels, 8);
}

/* ---- rows: planes that are read in place, of every width around a vector ---- */

enum { GUARD = 64 };
struct guarded {
    float *at, *whole;          /* GUARD NaNs on each side */
    int64_t n;
};

static struct guarded guarded(int64_t n)
{
    struct guarded a = { .whole = mc_alloc((size_t)(n + 2 * GUARD) * sizeof(float), "test"), .n = n };
    a.at = a.whole + GUARD;
    for (int64_t i = 0; i < n + 2 * GUARD; i++) {
        a.whole[i] = i >= GUARD && i < n + GUARD ? (float)((i * 7919 % 1009) - 504) / 256 : NAN;
    }
    return a;
}

static bool kept(const struct guarded *a)
{
    bool good = true;
    for (int64_t i = 0; i < GUARD; i++) {
        good = good && isnan(a->whole[i]) && isnan(a->at[a->n + i]);
    }
    return good;
}

/* The sum at (r, c) of a plane, in float64, and the sum of its terms' magnitudes. */
static double exact(const struct mc_conv_shape *s, const float *x, const float *w, int64_t r, int64_t c,
                    double *all)
{
    double sum = *all = 0;
    for (int64_t i = 0; i < s->k[1]; i++) {
        for (int64_t j = 0; j < s->k[2]; j++) {
            const int64_t a = r * s->stride[1] + i - s->pad[1], b = c * s->stride[2] + j - s->pad[2];
            const int64_t tap = s->flip ? (s->k[1] - 1 - i) * s->k[2] + s->k[2] - 1 - j : i * s->k[2] + j;
            if (a >= 0 && a < s->in[1] && b >= 0 && b < s->in[2]) {
                const double term = 0.5 * (double)x[a * s->in[2] + b] * (double)w[tap];
                sum += term;
                *all += fabs(term);
            }
        }
    }
    return sum;
}

static void try_rows(struct mc_conv_problem *p, const char *set)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t in = s->in[1] * s->in[2], out = s->out[1] * s->out[2], taps = s->k[1] * s->k[2];
    struct guarded x = guarded(s->n * s->c * in), w = guarded(s->c * taps), y = guarded(s->n * s->c * out);
    struct mc_plan *plan = mc_plan_with(&p->base, &mc_conv_rows);
    void *operand[8] = { [CONV_X] = x.at, [CONV_W] = w.at, [CONV_Y] = y.at };
    bool good = CHECK(plan && plan->run(plan, operand, NULL, 0) == MC_OK, "%s", mc_last_error());
    for (int64_t i = 0; i < y.n && good; i++) {
        const int64_t plane = i / out, at = i % out;
        double all, want = exact(s, x.at + plane * in, w.at + plane % s->c * taps, at / s->out[2],
                                 at % s->out[2], &all);
        good = CHECK(fabs((double)y.at[i] - want) <= all * 2e-7 * (double)s->k[1],
                     "%s, %lld x %lld, k %lld, stride %lld, pad %lld: %g at %lld, not %g", set,
                     (long long)s->in[1], (long long)s->in[2], (long long)s->k[1], (long long)s->stride[1],
                     (long long)s->pad[1], (double)y.at[i], (long long)i, want);
    }
    CHECK(kept(&x) && kept(&w) && kept(&y), "%s writes beyond its arrays", set);
    mc_plan_free(plan);
    mc_free(x.whole);
    mc_free(w.whole);
    mc_free(y.whole);
}

TEST(conv_rows_in_every_instruction_set)
{
    static const char *const sets[] = { "avx512", "avx2" };
    int taken = 0, there = 0;
    for (size_t i = 0; i < NELEM(sets) && !mc_conv_rows.missing; i++) {
        there += mc_isa_only(sets[i]);
        for (int64_t width = 1; width < 70 && mc_isa_only(sets[i]); width++) {
            for (int64_t v = 0; v < 2 * 2 * 3 * 2; v++) {
                const int64_t k = v % 2 ? 5 : 3, stride = v / 2 % 2 + 1, pad = v / 4 % 3,
                              tall = width % 9 + k;
                struct mc_conv_problem p = problem(0, CONV_FORWARD);
                p.beta = 0;
                p.s.n = 2, p.s.c = p.s.f = p.s.groups = 3;
                p.s.flip = v / 12;
                memcpy(p.s.in, (int64_t[]){ 1, tall, width }, sizeof p.s.in);
                memcpy(p.s.k, (int64_t[]){ 1, k, k }, sizeof p.s.k);
                memcpy(p.s.stride, (int64_t[]){ 1, stride, stride }, sizeof p.s.stride);
                memcpy(p.s.pad, (int64_t[]){ 0, pad, pad }, sizeof p.s.pad);
                for (int a = 1; a < 3; a++) {
                    p.s.out[a] = p.s.in[a] + 2 * pad < k ? 0 : (p.s.in[a] + 2 * pad - k) / stride + 1;
                }
                for (int role = CONV_X; role <= CONV_Y; role++) {
                    const struct mc_conv_array a = mc_conv_array(&p, role);
                    mc_conv_dense_strides(&a, role == CONV_X ? p.at.x : role == CONV_W ? p.at.w : p.at.y);
                }
                if (!mc_conv_rows.refuse(&p.base)) {
                    try_rows(&p, sets[i]);
                    taken++;
                }
            }
        }
    }
    mc_isa_only(NULL);
    CHECK(taken >= 1500 * there || mc_conv_rows.missing, "took %d", taken);
}

/* Spectra written past the caches are those written into them. */
TEST(conv_fft_far_spectra_are_the_same)
{
    static const struct mc_fft_kernel *const *const kernels[] = { &mc_fft_avx512, &mc_fft_avx2,
                                                                  &mc_fft_plain };
    enum { WIDTH = 2 * FFT_LANES, ROW = 2 * WIDTH, SIZE = FFT_MOST };
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    float *image = mc_alloc_pages(sizeof(float) * FFT_LANES * SIZE * SIZE, "test");
    const size_t bytes = sizeof(float) * (size_t)fft_frequencies(SIZE) * ROW;
    float *near = mc_alloc_pages(bytes, "test"), *far = mc_alloc_pages(bytes, "test");
    float *tile = mc_alloc_pages(sizeof(float) * (size_t)fft_tile(SIZE, FFT_LANES), "test");
    REQUIRE(image && near && far && tile, "no memory");
    for (int i = 0; i < FFT_LANES * SIZE * SIZE; i++) {
        image[i] = (float)test_uniform(-1, 1);
    }
    for (size_t k = 0; k < NELEM(kernels); k++) {
        if (!*kernels[k] || !mc_isa_only(sets[k])) {
            continue;
        }
        struct mc_fft_window w = { .rs = SIZE, .cs = 1, .dr = 1, .dc = 1 };
        for (int which = 0; which < FFT_SIZES; which++) {
            const int size = mc_fft_sizes[which];
            for (int l = 0; l < (*kernels[k])->lanes; l++) {
                w.lane[l] = (struct mc_fft_lane){ .at = image + l * SIZE * SIZE,
                                                  .bottom = MC_MAX(size - l, 1),
                                                  .right = size };
            }
            memset(near, 0, bytes);
            memset(far, 0, bytes);
            (*kernels[k])->forward[which](&w, k & 1, false, tile, near, ROW, WIDTH);
            (*kernels[k])->forward[which](&w, k & 1, true, tile, far, ROW, WIDTH);
            CHECK(memcmp(near, far, bytes) == 0, "%s, size %d", sets[k], size);
            CHECK(near[0] != 0 && near[(fft_frequencies(size) - 1) * ROW] != 0,
                  "%s, size %d: nothing was written", sets[k], size);
        }
    }
    mc_isa_only(NULL);
    mc_free_pages(tile);
    mc_free_pages(far);
    mc_free_pages(near);
    mc_free_pages(image);
}

/* Of windows with few cells the others are not read: spectra as of the same cells among zeros. */
TEST(conv_fft_leaves_out_what_is_zero)
{
    static const struct mc_fft_kernel *const *const kernels[] = { &mc_fft_avx512, &mc_fft_avx2,
                                                                  &mc_fft_plain };
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    enum { WIDTH = FFT_LANES, ROW = 2 * WIDTH, SIZE = FFT_MOST };
    const size_t numbers = (size_t)fft_frequencies(SIZE) * ROW;
    float *image = mc_alloc_pages(sizeof(float) * SIZE * SIZE, "test"),
          *tile = mc_alloc_pages(sizeof(float) * (size_t)fft_tile(SIZE, FFT_LANES), "test");
    float *few = mc_alloc_pages(sizeof(float) * numbers, "test"),
          *all = mc_alloc_pages(sizeof(float) * numbers, "test");
    REQUIRE(image && tile && few && all, "no memory");
    for (int i = 0; i < (int)NELEM(kernels) * FFT_SIZES * SIZE; i++) {
        const int k = i / SIZE / FFT_SIZES, which = i / SIZE % FFT_SIZES, size = mc_fft_sizes[which],
                  cells = i % SIZE + 1;
        if (cells > size || !*kernels[k] || !mc_isa_only(sets[k])) {
            continue;
        }
        struct mc_fft_window part = { .rs = SIZE, .cs = 1, .dr = 1, .dc = 1 }, whole = part;
        for (int e = 0; e < SIZE * SIZE; e++) {
            image[e] = e / SIZE < cells && e % SIZE < cells ? (float)test_uniform(-1, 1) : 0;
        }
        for (int l = 0; l < (*kernels[k])->lanes; l++) {
            part.lane[l] = (struct mc_fft_lane){ .at = image, .bottom = cells, .right = cells };
            whole.lane[l] = (struct mc_fft_lane){ .at = image, .bottom = size, .right = size };
        }
        (*kernels[k])->forward[which](&part, false, false, tile, few, ROW, WIDTH);
        (*kernels[k])->forward[which](&whole, false, false, tile, all, ROW, WIDTH);
        double most = 0;
        for (int64_t f = 0; f < fft_frequencies(size); f++) {
            most = fmax(most, fmax(fabs(few[f * ROW] - all[f * ROW]),
                                   fabs(few[f * ROW + WIDTH] - all[f * ROW + WIDTH])));
        }
        CHECK(most < 1e-5 * size * size, "%s, %d of %d: %g", sets[k], cells, size, most);
    }
    mc_isa_only(NULL);
    mc_free_pages(all);
    mc_free_pages(few);
    mc_free_pages(tile);
    mc_free_pages(image);
}

/* What one call leaves, another gives again, whatever the threads. */
TEST(conv_fast_gives_the_same_bits_on_any_threads)
{
    const struct mc_solver *const solvers[] = { &mc_conv_fft, &mc_conv_winograd, &mc_conv_winograd4,
                                                &mc_conv_direct, &mc_conv_col2im };
    for (size_t q = 0; q < NELEM(solvers); q++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            const struct mc_conv_problem p = problem(1, (enum mc_conv_pass)pass);
            if (solvers[q]->refuse(&p.base)) {
                continue;
            }
            const struct mc_conv_array a = mc_conv_array(&p, mc_conv_result(p.s.pass));
            const size_t bytes = (size_t)mc_conv_count(&a) * sizeof(float);
            struct mc_plan *plan = mc_plan_with(&p.base, solvers[q]);
            void *operand[8], *work = plan ? mc_alloc_pages(plan->workspace, "test") : NULL,
                              *first = mc_alloc(bytes, "test");
            if (CHECK(plan && work && first && mc_conv_operands(&p.base, operand) == MC_OK, "%s",
                      mc_last_error())) {
                void *result = operand[mc_conv_result(p.s.pass)];
                plan->run(plan, operand, work, 1);
                memcpy(first, result, bytes);
                for (int threads = 1; threads < 4; threads++) {
                    memset(result, 0xff, bytes);
                    plan->run(plan, operand, work, threads);
                    CHECK(memcmp(first, result, bytes) == 0, "%s, pass %d, %d threads", solvers[q]->name,
                          pass, threads);
                }
                mc_conv_discard(&p.base, operand);
            }
            mc_free(first);
            mc_free_pages(work);
            mc_plan_free(plan);
        }
    }
}

/* The plan with slim filters, in blocks of every letter; false: its products have tiles in the lanes. */
static bool make_slim(struct mc_plan *plan)
{
    struct fft *d = (struct fft *)(void *)plan;
    const int64_t lanes = d->kernel->lanes;
    if (d->lanes == M) {
        return false;
    }
    const bool vectors = d->s[CONV_X].lane == M || d->s[CONV_Y].lane == M;
    const int row = d->s[CONV_W].row, lane = d->s[CONV_W].lane;
    d->slim = true;
    d->near = 5;
    d->block[M] = MC_MIN(d->all[M], vectors ? lanes : conv_ceil(d->all[M], 2));
    d->block[lane] = MC_MIN(d->all[lane], 3 * lanes);
    d->block[row] = conv_ceil(d->all[row], 2);
    d->partial = d->ahead = false;
    mc_fft_order(d, M);
    plan->workspace = mc_fft_lay_out(d, 2);
    return true;
}

TEST(conv_slim_filters_in_every_instruction_set)
{
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    for (size_t i = 0; i < NELEM(sets); i++) {
        int slim = 0;
        for (size_t k = 0; mc_isa_only(sets[i]) && k < 3 * NELEM(shapes); k++) {
            const struct mc_conv_problem p = problem(k / 3, (enum mc_conv_pass)(CONV_FORWARD + k % 3));
            struct mc_plan *plan = mc_conv_fft.refuse(&p.base) ? NULL : mc_plan_with(&p.base, &mc_conv_fft);
            if (plan && make_slim(plan)) {
                CHECK(verified(k / 3, &p, plan), "shape %zu, pass %zu, %s: %s", k / 3, k % 3, sets[i],
                      mc_last_error());
                slim++;
            }
            mc_plan_free(plan);
        }
        CHECK(slim >= 12 || !mc_isa_only(sets[i]), "%s: %d", sets[i], slim);
    }
    mc_isa_only(NULL);
}

/* Relative to the reference, which sums in float64, in the Frobenius norm. */
static double error_of(const struct mc_solver *s, const struct mc_conv_problem *p)
{
    const struct mc_conv_array a = mc_conv_array(p, mc_conv_result(p->s.pass));
    struct mc_plan *plan = mc_plan_with(&p->base, s);
    float *have = made_by(p, plan), *want = made_by_reference(p);
    double wrong = 0, all = 0;
    if (CHECK(have && want, "%s", mc_last_error())) {
        for (int64_t i = 0; i < mc_conv_count(&a); i++) {
            wrong += ((double)have[i] - want[i]) * ((double)have[i] - want[i]);
            all += (double)want[i] * want[i];
        }
    }
    mc_free(want);
    mc_free(have);
    mc_plan_free(plan);
    return sqrt(wrong / all);
}

/* Without c0, gradients of inputs with stride 2 are interleaved from two phases: rows of both parities, pads
 * and rests beyond vectors. */
TEST(conv_direct_interleaves_phases)
{
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    for (size_t i = 0; i < 3 * NELEM(sets) * 8; i++) {
        struct mc_conv_problem p = problem(6, CONV_INPUTS);
        const int64_t width = 30 + (int64_t)(i % 8) * 5, pad = (int64_t)(i / 8 % 3);
        p.beta = 0;
        p.s.in[2] = width, p.s.pad[2] = pad, p.s.out[2] = (width + 2 * pad - 4) / 2 + 1;
        int64_t *const strides[] = { p.at.x, p.at.w, p.at.y };
        for (int role = CONV_X; role <= CONV_Y; role++) {
            const struct mc_conv_array a = mc_conv_array(&p, role);
            mc_conv_dense_strides(&a, strides[role]);
        }
        if (mc_isa_only(sets[i / 24])) {
            CHECK(error_of(&mc_conv_direct, &p) < 3e-7, "width %d, pad %d, %s", (int)width, (int)pad,
                  sets[i / 24]);
        }
    }
    mc_isa_only(NULL);
}

/* F(4x4, 3x3) with points 1 and 2 loses more than twice as much as with 5/8 and 3/2. */
TEST(conv_transforms_lose_few_digits)
{
    static const struct { const struct mc_solver *solver; double most; } rows[] = {
        { &mc_conv_fft, 3e-7 }, { &mc_conv_winograd, 4e-7 }, { &mc_conv_winograd4, 9e-7 },
    };
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        struct mc_conv_problem p = problem(4, (enum mc_conv_pass)pass);
        p.s.n = 8, p.s.c = 96, p.s.k[1] = p.s.k[2] = 3, p.s.dilation[1] = p.s.dilation[2] = 1;
        p.s.out[1] = p.s.in[1], p.s.out[2] = p.s.in[2];
        p.alpha = 1, p.beta = 0;
        int64_t *const strides[] = { p.at.x, p.at.w, p.at.y };
        for (int role = CONV_X; role <= CONV_Y; role++) {
            const struct mc_conv_array a = mc_conv_array(&p, role);
            mc_conv_dense_strides(&a, strides[role]);
        }
        for (size_t i = 0; i < NELEM(rows); i++) {
            const double error = error_of(rows[i].solver, &p);
            CHECK(error < rows[i].most, "%s, pass %d: %g", rows[i].solver->name, pass, error);
        }
    }
}

/* Sums over the positions of a large image are sums of short ones.  Twice the error of sums of 256 products
 * of these numbers, which are then added one by one, is 6e-7; all in one go have 2e-6. */
TEST(conv_gradients_of_filters_of_a_large_image_are_precise)
{
    static const struct { const struct mc_solver *solver; int64_t taps; } rows[] = {
        { &mc_conv_one, 1 }, { &mc_conv_implicit, 1 }, { &mc_conv_im2col, 1 },
        { &mc_conv_implicit, 3 }, { &mc_conv_im2col, 3 }, { &mc_conv_direct, 3 },
    };
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    size_t tried = 0;
    for (size_t i = 0; i < NELEM(rows) * NELEM(sets); i++) {
        struct mc_conv_problem p = problem(0, CONV_WEIGHTS);
        const int64_t taps = rows[i % NELEM(rows)].taps;
        p.s.n = 1, p.s.c = 24, p.s.f = 40, p.alpha = 1, p.beta = 0;
        for (int a = 1; a < 3; a++) {
            p.s.in[a] = p.s.out[a] = 129, p.s.k[a] = taps, p.s.pad[a] = taps / 2;
        }
        int64_t *const strides[] = { p.at.x, p.at.w, p.at.y };
        for (int role = CONV_X; role <= CONV_Y; role++) {
            const struct mc_conv_array a = mc_conv_array(&p, role);
            mc_conv_dense_strides(&a, strides[role]);
        }
        /* the runtime library has no implicit products */
        if (mc_isa_only(sets[i / NELEM(rows)]) && !rows[i % NELEM(rows)].solver->refuse(&p.base)) {
            const double error = error_of(rows[i % NELEM(rows)].solver, &p);
            tried++;
            CHECK(error < 6e-7, "%s, %lld taps, %s: %g", rows[i % NELEM(rows)].solver->name, (long long)taps,
                  sets[i / NELEM(rows)], error);
        }
    }
    CHECK(tried >= NELEM(rows) - 2, "%zu solvers were tried", tried);
    mc_isa_only(NULL);
}

/* Whatever the cap leaves of each letter in one block, and whichever loop is the outer one. */
TEST(conv_spectra_in_blocks_keep_the_cap)
{
    static const char *const caps[] = { "1M", "500K", "250K", "120K" };
    static const struct mc_solver *const solvers[] = { &mc_conv_fft, &mc_conv_winograd4 };
    int cut = 0, partial = 0;
    for (size_t i = 0; i < NELEM(caps) * NELEM(solvers); i++) {
        const struct mc_solver *s = solvers[i % NELEM(solvers)];
        mc_flag_set("workspace", caps[i / NELEM(solvers)]);
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            const struct mc_conv_problem p = problem(NELEM(shapes) - 1, (enum mc_conv_pass)pass);
            struct mc_plan *plan = s->refuse(&p.base) ? NULL : mc_plan_with(&p.base, s);
            if (!plan) {
                continue;
            }
            const struct fft *d = (const struct fft *)(const void *)plan;
            CHECK((int64_t)plan->workspace <= mc_flag_int(FLAG_workspace), "%s: %zu",
                  caps[i / NELEM(solvers)], plan->workspace);
            CHECK(verified(NELEM(shapes) - 1, &p, plan), "%s: %s", caps[i / NELEM(solvers)], mc_last_error());
            cut += d->block[0] < d->all[0] && d->block[1] * d->block[2] < d->all[1] * d->all[2];
            partial += d->partial;
            mc_plan_free(plan);
        }
    }
    mc_flag_set("workspace", "1G");
    CHECK(cut >= 6 && partial >= 2, "%d plans in blocks, %d with sums in the result", cut, partial);
}

/* packed.c: the general matrix product.  Both operands are copied, block by block, into panels that
 * the kernel reads in order:
 *
 *     for each block of C, (up to BLOCK, up to BLOCK)
 *         for each range of k, (up to kc)
 *             all threads: copy A's (rows, kc) into panels [kc][mr] and B's (kc, cols) into panels [kc][nr]
 *             all threads: tasks of (mb, nb) of the block, in tiles of (mr, nr)
 *
 * One row panel of A (mr, kc) stays in the L1 cache while the B of a task (kc, nb) is read from L2.  If k
 * of A has stride 1, A is read in place, as mr contiguous streams.  Halves are copied as float32, summed
 * in a float32 block and rounded once at the end.
 *
 * Invariant: kc depends on the shape, the element size and the caches, not on the number of threads. */
#include "heavy/gemm/solver.h"
#include "device/cpu/cpu.h"

enum {
    BLOCK = 2048,  /* most rows and columns of a block of C */
    PACK_K = 128,  /* rows of a panel of B that one task copies */
    PACK_A = 48,   /* rows of A, a multiple of every mr */
    HALF_K = 256,  /* rows that are converted to float32 at a time */
    LINE = 64
};

struct packed {
    struct mc_plan base;
    const struct mc_gemm_kernel *kernel;
    bool half;
    bool in_place;              /* A is not packed: its k has stride 1 */
    bool stream;                /* C is larger than the caches, and written once */
    int64_t size;               /* bytes of an element in the panels */
    int64_t kc, rows, cols;     /* a range of k; rows and columns of a block of C */
    int64_t mb, nb;             /* of a task, multiples of mr and nr */
    int slots;
    bool by_matrix;             /* each matrix of the batch is one thread's task, instead of all threads' */
    size_t a_bytes, b_bytes, acc_bytes, set_bytes; /* one set of buffers: panels of A, of B, sums of halves */
};

/* One block of C and one range of k. */
struct step {
    const struct packed *d;
    const struct mc_gemm_run *r;
    int64_t batch, i, j, k, m, n, kn; /* its first element and its sizes */
    bool first, last;                 /* it is the first, the last range of k */
    char *a, *b, *acc;
    bool b_ready;                     /* B was packed before */
    int threads;
};

/* ---- packing ---- */

/* Part of a panel: (nw, nk) elements to dst[nk][width]. */
struct patch {
    void *dst;
    const char *src;
    int64_t w_stride, k_stride, nw, nk, width;
};

static void pack_halves(const struct step *s, const struct patch *t)
{
    const struct mc_gemm_kernel *kernel = s->d->kernel;
    float some[GEMM_MAX_NR * HALF_K]; /* float32 in the order of src */
    const mc_dtype type = s->r->p->dtype;
    const int64_t size = s->r->size;
    for (int64_t k = 0; k < t->nk; k += HALF_K) {
        const int64_t nk = MC_MIN(t->nk - k, (int64_t)HALF_K), nw = t->nw;
        const char *src = t->src + k * t->k_stride * size;
        float *dst = (float *)t->dst + k * t->width;
        if (t->w_stride == 1) {
            for (int64_t p = 0; p < nk; p++) {
                mc_convert(MC_FLOAT32, some + p * nw, sizeof(float), type, src + p * t->k_stride * size, size,
                           nw);
            }
            kernel->pack(dst, some, 1, nw, nw, nk, t->width);
        } else {
            for (int64_t w = 0; w < nw; w++) {
                mc_convert(MC_FLOAT32, some + w * nk, sizeof(float), type, src + w * t->w_stride * size,
                           t->k_stride * size, nk);
            }
            kernel->pack(dst, some, nk, 1, nw, nk, t->width);
        }
    }
}

static void pack(const struct step *s, const struct patch *t)
{
    if (s->d->half) {
        pack_halves(s, t);
    } else {
        s->d->kernel->pack(t->dst, t->src, t->w_stride, t->k_stride, t->nw, t->nk, t->width);
    }
}

/* Panels begin at multiples of the full width.  The last panel of B has only as many vectors as it needs. */
static int64_t b_width(const struct packed *d, int64_t n)
{
    return n >= d->kernel->nr ? d->kernel->nr : gemm_ceil(n, d->kernel->lanes) * d->kernel->lanes;
}

static void pack_a(const struct step *s, int64_t i)
{
    const int64_t mr = s->d->kernel->mr, *as = s->r->p->as;
    pack(s, &(struct patch){ .dst = s->a + i * s->kn * s->d->size,
                             .src = gemm_a(s->r, s->batch, s->i + i, s->k),
                             .w_stride = as[1],
                             .k_stride = as[2],
                             .nw = MC_MIN(s->m - i, mr),
                             .nk = s->kn,
                             .width = mr });
}

/* Packs rows [k0, k0+nk) of the panel that begins at column j. */
static void pack_b(const struct step *s, int64_t j, int64_t k0, int64_t nk)
{
    const int64_t nr = s->d->kernel->nr, width = b_width(s->d, s->n - j), *bs = s->r->p->bs;
    pack(s, &(struct patch){ .dst = s->b + (j * s->kn + k0 * width) * s->d->size,
                             .src = gemm_b(s->r, s->batch, s->k + k0, s->j + j),
                             .w_stride = bs[2],
                             .k_stride = bs[1],
                             .nw = MC_MIN(s->n - j, nr),
                             .nk = nk,
                             .width = width });
}

/* The first tasks copy PACK_K rows of a panel of B each, the others a group of panels of A. */
static void pack_task(void *arg, int64_t task, int slot)
{
    const struct step *s = arg;
    const int64_t nr = s->d->kernel->nr, high = gemm_ceil(s->kn, PACK_K),
                  b_tasks = s->b_ready ? 0 : gemm_ceil(s->n, nr) * high;
    (void)slot;
    if (task < b_tasks) {
        const int64_t k0 = task % high * PACK_K;
        pack_b(s, task / high * nr, k0, MC_MIN(s->kn - k0, (int64_t)PACK_K));
        return;
    }
    const int64_t i0 = (task - b_tasks) * PACK_A, stop = MC_MIN(i0 + PACK_A, s->m);
    for (int64_t i = i0; i < stop; i += s->d->kernel->mr) {
        pack_a(s, i);
    }
}

/* ---- tiles ---- */

/* Converts the float32 sums of a task to halves.  alpha is already applied; beta * C0 is added here. */
static void round_halves(const struct step *s, int64_t i0, int64_t j0, int64_t m, int64_t n)
{
    const mc_dtype type = s->r->p->dtype;
    const int64_t size = s->r->size, *cs = s->r->p->cs, *c0s = s->r->p->c0s;
    for (int64_t i = 0; i < m; i++) {
        const float *acc = (const float *)(const void *)s->acc + (i0 + i) * s->n + j0;
        float some[GEMM_MAX_NR];
        for (int64_t j = 0; j < n; j += GEMM_MAX_NR) {
            const int64_t nj = MC_MIN(n - j, (int64_t)GEMM_MAX_NR);
            const float *from = acc + j;
            if (s->r->c0) {
                mc_convert(MC_FLOAT32, some, sizeof(float), type,
                           gemm_c0(s->r, s->batch, s->i + i0 + i, s->j + j0 + j), c0s[2] * size, nj);
                for (int64_t x = 0; x < nj; x++) {
                    some[x] = from[x] + (float)s->r->p->beta * some[x];
                }
                from = some;
            }
            mc_convert(type, gemm_c(s->r, s->batch, s->i + i0 + i, s->j + j0 + j), cs[2] * size, MC_FLOAT32,
                       from, sizeof(float), nj);
        }
    }
}

static void tile(const struct step *s, int64_t i, int64_t j, int64_t m, int64_t n)
{
    const struct packed *d = s->d;
    _Alignas(64) char spare[GEMM_MAX_MR * GEMM_MAX_NR * sizeof(double)];
    struct mc_gemm_tile t = {
        .k = s->kn, .m = m, .n = n, .b = s->b + j * s->kn * d->size, .b_row = b_width(d, s->n - j),
        .alpha = s->r->p->alpha, .stream = d->stream,
    };
    mc_gemm_tile_kernel *const *kernel = d->in_place ? d->kernel->direct : d->kernel->packed;
    if (d->in_place) {
        t.a = gemm_a(s->r, s->batch, s->i + i, s->k);
        t.a_row = s->r->p->as[1];
        t.a_col = s->r->p->as[2];
    } else {
        t.a = s->a + i * s->kn * d->size;
        t.a_row = 1;
        t.a_col = d->kernel->mr;
    }
    if (d->half) {
        t.c = s->acc + (i * s->n + j) * d->size;
        t.c_row = s->n;
    } else {
        t.c = gemm_c(s->r, s->batch, s->i + i, s->j + j);
        t.c_row = s->r->p->cs[1];
    }
    if (!s->first) {
        t.beta = 1;
        t.c0 = t.c;
        t.c0_row = t.c_row;
    } else if (!d->half) {
        mc_gemm_tile_c0(s->r, s->batch, s->i + i, s->j + j, &t, spare);
    }
    kernel[gemm_ceil(n, d->kernel->lanes)](&t);
}

static void tile_task(void *arg, int64_t task, int slot)
{
    const struct step *s = arg;
    const struct packed *d = s->d;
    const int64_t down = gemm_ceil(s->m, d->mb), i0 = task % down * d->mb, j0 = task / down * d->nb;
    const int64_t i1 = MC_MIN(i0 + d->mb, s->m), j1 = MC_MIN(j0 + d->nb, s->n);
    (void)slot;
    for (int64_t i = i0; i < i1; i += d->kernel->mr) {
        for (int64_t j = j0; j < j1; j += d->kernel->nr) {
            tile(s, i, j, MC_MIN(i1 - i, (int64_t)d->kernel->mr), MC_MIN(j1 - j, (int64_t)d->kernel->nr));
        }
    }
    if (d->stream) {
        d->kernel->drain();
    }
    if (s->last) {
        if (d->half) {
            round_halves(s, i0, j0, i1 - i0, j1 - j0);
        }
        gemm_finish(s->r, s->batch, s->i + i0, s->j + j0, i1 - i0, j1 - j0);
    }
}

/* ---- one matrix ---- */

static void step(struct step *s)
{
    const struct packed *d = s->d;
    const int64_t b_tasks = s->b_ready ? 0 : gemm_ceil(s->n, d->kernel->nr) * gemm_ceil(s->kn, PACK_K);
    const int64_t a_tasks = d->in_place ? 0 : gemm_ceil(s->m, PACK_A);
    const double work = 2 * (double)s->m * (double)s->n * (double)s->kn / mc_gemm_peak(s->r->p);
    if (a_tasks + b_tasks) {
        mc_team_tasks(pack_task, s, a_tasks + b_tasks, d->slots, s->threads, work);
    }
    mc_team_tasks(tile_task, s, gemm_ceil(s->m, d->mb) * gemm_ceil(s->n, d->nb), d->slots, s->threads, work);
}

/* Where the panels of that block and that range of k begin among the prepared ones. */
static size_t panels_at(const struct packed *d, const struct mc_gemm_problem *p, int64_t j, int64_t k)
{
    return (size_t)(j / d->cols * gemm_ceil(p->k, d->kc) + k / d->kc) * d->b_bytes;
}

static void prepare(const struct mc_plan *plan, void *const *operand, void *prepared, int threads)
{
    const struct packed *d = (const struct packed *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    const struct mc_gemm_run r = { .p = p, .b = operand[GEMM_B], .size = mc_dtypes[p->dtype].size };
    struct step s = { .d = d, .r = &r, .threads = threads };
    for (s.j = 0; s.j < p->n; s.j += d->cols) {
        s.n = MC_MIN(p->n - s.j, d->cols);
        for (s.k = 0; s.k < p->k; s.k += d->kc) {
            s.kn = MC_MIN(p->k - s.k, d->kc);
            s.b = (char *)prepared + panels_at(d, p, s.j, s.k);
            mc_team_tasks(pack_task, &s, gemm_ceil(s.n, d->kernel->nr) * gemm_ceil(s.kn, PACK_K), d->slots,
                          threads > 0 ? threads : mc_team_size(), mc_gemm_work(p) / (double)MC_MAX(p->m, 1));
        }
    }
}

static void multiply(const struct packed *d, const struct mc_gemm_run *r, int64_t batch, char *set,
                     int threads)
{
    const struct mc_gemm_problem *p = r->p;
    struct step s = { .d = d, .r = r, .batch = batch, .threads = threads };
    s.a = set;
    s.b = s.a + d->a_bytes;
    s.acc = s.b + d->b_bytes;
    s.b_ready = r->prepared != NULL;
    for (s.j = 0; s.j < p->n; s.j += d->cols) {
        s.n = MC_MIN(p->n - s.j, d->cols);
        for (s.i = 0; s.i < p->m; s.i += d->rows) {
            s.m = MC_MIN(p->m - s.i, d->rows);
            for (s.k = 0; s.k < p->k; s.k += d->kc) {
                s.kn = MC_MIN(p->k - s.k, d->kc);
                s.b = s.b_ready ? r->prepared + panels_at(d, p, s.j, s.k) : s.b;
                s.first = s.k == 0;
                s.last = s.k + s.kn == p->k;
                step(&s);
            }
        }
    }
}

struct batch {
    const struct packed *d;
    struct mc_gemm_run r;
};

static void matrix_task(void *arg, int64_t task, int slot)
{
    const struct batch *b = arg;
    multiply(b->d, &b->r, task, b->r.workspace + (size_t)slot * b->d->set_bytes, 1);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct packed *d = (const struct packed *)(const void *)plan;
    struct batch b = { d, mc_gemm_bind(plan, operand, workspace, threads) };
    if (d->by_matrix) {
        mc_team_tasks(matrix_task, &b, b.r.p->batch, d->slots, b.r.threads, mc_gemm_work(b.r.p));
    } else {
        for (int64_t i = 0; i < b.r.p->batch; i++) {
            multiply(d, &b.r, i, b.r.workspace, b.r.threads);
        }
    }
    return MC_OK;
}

/* ---- planning ---- */

/* The size of nearly equal parts of n, at most about `most` each, rounded up to a multiple of unit. */
static int64_t even(int64_t n, int64_t most, int64_t unit)
{
    const int64_t parts = gemm_ceil(n, most);
    return gemm_ceil(gemm_ceil(n, parts), unit) * unit;
}

static void choose_blocks(struct packed *d, const struct mc_gemm_problem *p)
{
    const struct mc_cpu *cpu = mc_cpu();
    const int64_t mr = d->kernel->mr, nr = d->kernel->nr;
    const int64_t most_k = MC_MAX((int64_t)cpu->l1d / 2 / (mr * d->size), 64);
    d->kc = even(p->k, most_k, 8);
    d->rows = even(p->m, BLOCK, mr);
    d->cols = even(p->n, BLOCK, nr);
    /* The B of a task fills half of the L2 cache, and the task below reuses it.  There are enough tasks
     * that no thread waits long at the end. */
    const int64_t most_n = MC_MAX((int64_t)cpu->l2 / 2 / (d->kc * d->size) / nr, 1) * nr;
    d->nb = even(d->cols, most_n, nr);
    d->mb = even(d->rows, 128, mr);
    const int64_t want = d->slots == 1 ? 1 : 48 * d->slots, across = gemm_ceil(d->cols, d->nb);
    if (gemm_ceil(d->rows, d->mb) * across < want) {
        d->mb = even(d->rows, MC_MAX(d->rows * across / want, mr), mr);
    }
}

static bool reads_a_in_place(const struct mc_gemm_problem *p)
{
    /* Rows at a distance that is a multiple of 2 KiB map to few sets of the L1 cache. */
    return mc_dtypes[p->dtype].size > 2 && p->as[2] == 1 && p->as[1] * mc_dtypes[p->dtype].size % 2048 != 0;
}

static size_t lines(int64_t a, int64_t b, int64_t size)
{
    return ((size_t)a * (size_t)b * (size_t)size + LINE - 1) / LINE * LINE;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct packed *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->kernel = mc_gemm_kernel(p->dtype);
    d->half = mc_dtypes[p->dtype].size == 2;
    d->size = p->dtype == MC_FLOAT64 ? 8 : 4;
    d->slots = mc_team_size();
    d->in_place = reads_a_in_place(p);
    choose_blocks(d, p);
    d->stream = d->kc >= p->k && mc_gemm_streams(p);
    d->a_bytes = d->in_place ? 0 : lines(d->rows, d->kc, d->size);
    d->b_bytes = lines(d->cols, d->kc, d->size);
    d->acc_bytes = d->half ? lines(d->rows, d->cols, d->size) : 0;
    d->set_bytes = d->a_bytes + d->b_bytes + d->acc_bytes;
    const double matrix = 2 * (double)p->m * (double)p->n * (double)p->k;
    d->by_matrix = p->batch > 1 && d->slots > 1 && matrix < 4e6;
    d->base.workspace = d->set_bytes * (size_t)(d->by_matrix ? d->slots : 1);
    if (p->b_stays) {
        d->base.prepared = (size_t)(gemm_ceil(p->n, d->cols) * gemm_ceil(p->k, d->kc)) * d->b_bytes;
        d->base.prepare = prepare;
    }
    return &d->base;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct mc_gemm_kernel *kernel = mc_gemm_kernel(p->dtype);
    struct packed d = { .kernel = kernel, .size = p->dtype == MC_FLOAT64 ? 8 : 4, .slots = 1 };
    choose_blocks(&d, p);
    const double m = (double)gemm_ceil(p->m, kernel->mr) * kernel->mr, k = (double)p->k, b = (double)p->batch;
    const double n = (double)gemm_ceil(p->n, kernel->lanes) * kernel->lanes,
                 panels = (double)gemm_ceil(p->n, kernel->nr);
    const double ranges = (double)gemm_ceil(p->k, d.kc), down = (double)gemm_ceil(p->m, d.rows);
    const double across = (double)gemm_ceil(p->n, d.cols);
    /* Panels of A are narrow, so packing costs by the element; B costs by the row of a panel. */
    const double pack_b = p->b_stays
                              ? 0
                              : down * panels * (double)gemm_ceil(p->k, PACK_K) * 37e-9 * (double)d.size / 4;
    const double pack_a = reads_a_in_place(p) ? 0 : across * m * k * 0.07e-9 * (double)d.size;
    const double far = k * n * (double)d.size > (double)mc_cpu()->l2 ? down * k * n * (double)d.size * 0.1e-9
                                                                     : 0; /* B's copy */
    const double math = 2 * m * n * k * 1.03 / mc_gemm_peak(p), tiles = m * panels * ranges * 2.2e-9;
    const double seconds = b * (math + tiles + pack_a + pack_b + far) + mc_gemm_traffic(p);
    const double barriers = seconds < MC_TEAM_WORTH ? 0 : 2.6e-6 * down * across * ranges;
    return 1e-7 * b + mc_gemm_team_seconds(seconds, b * m / kernel->mr) + barriers;
}

static const char *refuse(const struct mc_problem *p)
{
    return mc_gemm_hollow(gemm(p));
}

const struct mc_solver mc_gemm_packed = {
    .name = "packed", .refuse = refuse, .estimate = estimate, .plan = plan,
};

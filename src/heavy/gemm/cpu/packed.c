/* packed.c: the general matrix product.  Both operands are copied, block by block, into panels that
 * the kernel reads in order:
 *
 *     for each block of columns of C (up to BLOCK), for each deep range of k (several times kc)
 *         for each block of rows of C (up to BLOCK)
 *             all threads: copy A's block into panels [kc][mr], and B's into panels [kc][nr] the first time
 *             all threads: tasks of (mb, nb) of the block of C
 *
 * A task goes through its ranges of kc, its panels of B and its panels of A.  The A of a task (mb, kc), a
 * panel of B (kc, nr) and the C of a task stay in the L2 cache.  While a panel of B is in use, the kernel
 * prefetches the next one.  If k of A has stride 1, A is read in place, as mr contiguous streams.  Halves are
 * copied as float32, summed in a float32 block and rounded once at the end.
 *
 * Invariant: kc depends on the shape, the element size and the caches, not on the number of threads. */
#include "heavy/gemm/solver.h"
#include "device/cpu/cpu.h"

enum {
    BLOCK = 2048,  /* most rows and columns of a block of C */
    DEEP = 768,    /* most products that are summed before the sum is added to C: more are less precise */
    PACK_K = 128,  /* rows of a panel of B that one task copies if its columns are adjacent in memory */
    PACK_A = 48,   /* rows of A, a multiple of every mr */
    TURN_K = 16,   /* columns of these that are copied at a time if the rows are adjacent in memory */
    HALF_K = 256,  /* rows that are converted to float32 at a time */
    FEW = 8,       /* tasks for each thread that divide the work evenly enough */
    LINE = 64
};
static const int64_t panels_most = (int64_t)16 << 20; /* bytes of the panels of one operand */

struct packed {
    struct mc_plan base;
    const struct mc_gemm_kernel *kernel;
    bool half;
    bool in_place;              /* A is not packed: its k has stride 1 */
    /* C is larger than the caches: a task sums its ranges in a buffer; the last is stored past the caches */
    bool stream;
    int64_t size;               /* bytes of an element in the panels */
    int64_t kc, deep;           /* a range of k; how much of k is packed at a time, a multiple of kc */
    int64_t rows, cols;         /* of a block of C */
    int64_t mb, nb;             /* of a task, multiples of mr and nr */
    bool by_column;             /* tasks of the same columns follow each other; else those of the same rows */
    int slots;
    bool by_matrix;             /* each matrix of the batch is one thread's task, instead of all threads' */
    /* panels of A, of B for one range; sums of a block of halves, or of a task for each thread; all these */
    size_t a_bytes, b_bytes, acc_bytes, set_bytes;
};

/* One block of C and one deep range of k. */
struct step {
    const struct packed *d;
    const struct mc_gemm_run *r;
    int64_t batch, i, j, k, m, n, kn; /* its first element and its sizes */
    bool last;                        /* it is the last part of k */
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

/* The size of the range of kc that begins at k. */
static int64_t range_size(const struct step *s, int64_t k)
{
    return MC_MIN(s->kn - k, s->d->kc);
}

static char *panel_a(const struct step *s, int64_t i, int64_t k)
{
    return s->a + k / s->d->kc * (int64_t)s->d->a_bytes + i * range_size(s, k) * s->d->size;
}

static char *panel_b(const struct step *s, int64_t j, int64_t k)
{
    return s->b + k / s->d->kc * (int64_t)s->d->b_bytes + j * range_size(s, k) * s->d->size;
}

/* Packs rows [i0, stop) of the range of k that begins at k0, nk columns at a time. */
static void pack_a(const struct step *s, int64_t i0, int64_t stop, int64_t k0)
{
    const int64_t mr = s->d->kernel->mr, *as = s->r->p->as, size = s->d->size, kn = range_size(s, k0);
    /* each cache line of adjacent rows serves several panels */
    const int64_t nk = as[1] == 1 && as[2] != 1 && !s->d->half ? TURN_K : kn;
    for (int64_t k = 0; k < kn; k += nk) {
        for (int64_t i = i0; i < stop; i += mr) {
            pack(s, &(struct patch){ .dst = panel_a(s, i, k0) + k * mr * size,
                                     .src = gemm_a(s->r, s->batch, s->i + i, s->k + k0 + k),
                                     .w_stride = as[1],
                                     .k_stride = as[2],
                                     .nw = MC_MIN(stop - i, mr),
                                     .nk = MC_MIN(kn - k, nk),
                                     .width = mr });
        }
    }
}

/* Packs rows [k, k+nk) of a panel of the range that begins at k0; the panel begins at column j. */
static void pack_b(const struct step *s, int64_t j, int64_t k0, int64_t k, int64_t nk)
{
    const int64_t nr = s->d->kernel->nr, width = b_width(s->d, s->n - j), *bs = s->r->p->bs;
    pack(s, &(struct patch){ .dst = panel_b(s, j, k0) + k * width * s->d->size,
                             .src = gemm_b(s->r, s->batch, s->k + k0 + k, s->j + j),
                             .w_stride = bs[2],
                             .k_stride = bs[1],
                             .nw = MC_MIN(s->n - j, nr),
                             .nk = nk,
                             .width = width });
}

static int64_t ranges_of(const struct step *s)
{
    return gemm_ceil(s->kn, s->d->kc);
}

/* Rows of a panel of B that one task copies; where k has stride 1, the longer the better. */
static int64_t b_part(const struct step *s)
{
    return s->r->p->bs[1] == 1 ? s->d->kc : PACK_K;
}

static int64_t b_tasks(const struct step *s)
{
    return s->b_ready ? 0 : gemm_ceil(s->n, s->d->kernel->nr) * ranges_of(s) * gemm_ceil(s->d->kc, b_part(s));
}

/* The first tasks copy a part of a panel of B each, the others PACK_A rows of a range of A. */
static void pack_task(void *arg, int64_t task, int slot)
{
    const struct step *s = arg;
    const int64_t before = b_tasks(s), part = b_part(s), high = gemm_ceil(s->d->kc, part),
                  ranges = ranges_of(s);
    (void)slot;
    if (task < before) {
        const int64_t k = task % high * part, k0 = task / high % ranges * s->d->kc,
                      left = range_size(s, k0) - k;
        if (left > 0) {
            pack_b(s, task / high / ranges * s->d->kernel->nr, k0, k, MC_MIN(left, part));
        }
        return;
    }
    const int64_t i0 = (task - before) / ranges * PACK_A;
    pack_a(s, i0, MC_MIN(i0 + PACK_A, s->m), (task - before) % ranges * s->d->kc);
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

static int64_t sums_bytes(const struct packed *d)
{
    return gemm_ceil(d->mb * d->nb * d->size, LINE) * LINE;
}

/* What the tiles of one panel of B have in common, and the panel that is needed next. */
struct column {
    int64_t j, k, kn;
    const char *a;              /* the panels of A of that range */
    char *sums;                 /* (mb, nb), of its columns; NULL: C */
    const char *ahead;          /* NULL: none */
    struct mc_gemm_tile t;      /* of a tile: all but where it is and its rows */
    mc_gemm_tile_kernel *kernel;
};

/* The rows and columns of a task. */
struct area {
    int64_t i0, i1, j0, j1;
};

/* A tile of rows [i, i+m) of the block, the at-th of its task. */
static void tile(const struct step *s, struct column *p, int64_t i, int64_t m, int64_t at)
{
    const struct packed *d = s->d;
    _Alignas(64) char spare[GEMM_MAX_MR * GEMM_MAX_NR * sizeof(double)];
    struct mc_gemm_tile *t = &p->t;
    t->m = m;
    t->ahead = p->ahead ? p->ahead + at * p->kn * t->ahead_step : NULL;
    t->a = d->in_place ? gemm_a(s->r, s->batch, s->i + i, s->k + p->k) : p->a + i * p->kn * d->size;
    char *sums = d->half   ? s->acc + (i * s->n + p->j) * d->size
                 : p->sums ? p->sums + at * d->kernel->mr * d->nb * d->size
                           : NULL;
    const int64_t sums_row = d->half ? s->n : d->nb;
    const bool ends = !d->half && p->k + p->kn == s->kn;
    t->c = sums && !ends ? sums : gemm_c(s->r, s->batch, s->i + i, s->j + p->j);
    t->c_row = sums && !ends ? sums_row : s->r->p->cs[1];
    if (s->k + p->k > 0) {
        t->beta = 1;
        const bool summed = sums && (d->half || p->k > 0);
        t->c0 = summed ? sums : gemm_c(s->r, s->batch, s->i + i, s->j + p->j);
        t->c0_row = summed ? sums_row : s->r->p->cs[1];
    } else if (!d->half) {
        mc_gemm_tile_c0(s->r, s->batch, s->i + i, s->j + p->j, t, spare);
    }
    p->kernel(t);
}

/* The panel that comes after that of p: the next one of the task, else the first one of its next range, else
 * the one beside it, with which a later task begins.  The tasks before that one each fetch a part. */
static void look_ahead(const struct step *s, struct column *p, const struct area *x)
{
    const struct packed *d = s->d;
    const int64_t nr = d->kernel->nr, tiles = gemm_ceil(x->i1 - x->i0, d->kernel->mr);
    int64_t j = p->j + nr, k = p->k, parts = 1;
    if (j >= x->j1 && k + p->kn < s->kn) {
        j = x->j0;
        k += p->kn;
    } else if (j >= x->j1) {
        k = 0;
        parts = d->by_column ? gemm_ceil(s->m, d->mb) : 1;
    }
    const int64_t bytes = gemm_ceil(range_size(s, k) * b_width(d, s->n - j) * d->size, parts);
    p->ahead = j < s->n ? panel_b(s, j, k) + (parts > 1 ? x->i0 / d->mb * bytes : 0) : NULL;
    p->t.ahead_step = gemm_ceil(bytes, tiles * p->kn);
    p->ahead = p->t.ahead_step <= LINE ? p->ahead : NULL;
}

/* The tiles of columns [j, j+n) in the range that begins at k. */
static struct column column_of(const struct step *s, int64_t j, int64_t n, int64_t k)
{
    const struct packed *d = s->d;
    mc_gemm_tile_kernel *const *kernel = d->in_place ? d->kernel->rows : d->kernel->packed;
    struct column p = {
        .j = j, .k = k, .kn = range_size(s, k), .kernel = kernel[gemm_ceil(n, d->kernel->lanes)]
    };
    p.a = d->in_place ? NULL : panel_a(s, 0, k);
    p.t = (struct mc_gemm_tile){ .k = p.kn,
                                 .n = n,
                                 .b = panel_b(s, j, k),
                                 .b_row = b_width(d, s->n - j),
                                 .a_row = d->in_place ? s->r->p->as[1] : 1,
                                 .a_col = d->in_place ? s->r->p->as[2] : d->kernel->mr,
                                 .alpha = s->r->p->alpha,
                                 .stream = d->stream && !d->half && k + p.kn == s->kn };
    return p;
}

static void tile_task(void *arg, int64_t task, int slot)
{
    const struct step *s = arg;
    const struct packed *d = s->d;
    const int64_t across = gemm_ceil(s->n, d->nb), high = gemm_ceil(s->m, d->mb);
    const int64_t i0 = (d->by_column ? task % high : task / across) * d->mb,
                  j0 = (d->by_column ? task / high : task % across) * d->nb;
    const int64_t i1 = MC_MIN(i0 + d->mb, s->m), j1 = MC_MIN(j0 + d->nb, s->n);
    const struct area area = { i0, i1, j0, j1 };
    const int64_t mr = d->kernel->mr, nr = d->kernel->nr;
    char *sums = d->stream && s->kn > d->kc ? s->acc + slot * sums_bytes(d) : NULL;
    for (int64_t k = 0; k < s->kn; k += d->kc) {
        for (int64_t j = j0; j < j1; j += nr) {
            struct column p = column_of(s, j, MC_MIN(j1 - j, nr), k);
            p.sums = sums ? sums + (j - j0) * d->size : NULL;
            look_ahead(s, &p, &area);
            for (int64_t i = i0; i < i1; i += mr) {
                tile(s, &p, i, MC_MIN(i1 - i, mr), (i - i0) / mr);
            }
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
    const int64_t copies = b_tasks(s) + (d->in_place ? 0 : gemm_ceil(s->m, PACK_A) * ranges_of(s));
    const double work = 2 * (double)s->m * (double)s->n * (double)s->kn / mc_gemm_peak(s->r->p);
    if (copies) {
        mc_team_tasks(pack_task, s, copies, d->slots, s->threads, work);
    }
    mc_team_tasks(tile_task, s, gemm_ceil(s->m, d->mb) * gemm_ceil(s->n, d->nb), d->slots, s->threads, work);
}

/* Where the panels of that block and that range of k begin among the prepared ones. */
static size_t panels_at(const struct packed *d, const struct mc_gemm_problem *p, int64_t j, int64_t k)
{
    return (size_t)(j / d->cols * gemm_ceil(p->k, d->kc) + k / d->kc) * d->b_bytes;
}

static void prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                    int threads)
{
    (void)workspace;
    const struct packed *d = (const struct packed *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    const struct mc_gemm_run r = { .p = p, .b = operand[GEMM_B], .size = mc_dtypes[p->dtype].size };
    struct step s = { .d = d, .r = &r, .kn = p->k, .threads = threads };
    for (s.j = 0; s.j < p->n; s.j += d->cols) {
        s.n = MC_MIN(p->n - s.j, d->cols);
        s.b = (char *)prepared + panels_at(d, p, s.j, 0);
        mc_team_tasks(pack_task, &s, b_tasks(&s), d->slots, threads > 0 ? threads : mc_team_size(),
                      mc_gemm_work(p) / (double)MC_MAX(p->m, 1));
    }
}

/* One block of columns.  B's panels serve all rows.  For halves k is innermost: one block of sums is kept. */
static void multiply_columns(struct step *s)
{
    const struct packed *d = s->d;
    const struct mc_gemm_problem *p = s->r->p;
    const int64_t down = gemm_ceil(p->m, d->rows), parts = gemm_ceil(p->k, d->deep);
    const bool prepared = s->r->prepared != NULL;
    for (int64_t at = 0; at < down * parts; at++) {
        s->i = (d->half ? at / parts : at % down) * d->rows;
        s->k = (d->half ? at % parts : at / down) * d->deep;
        s->m = MC_MIN(p->m - s->i, d->rows);
        s->kn = MC_MIN(p->k - s->k, d->deep);
        s->b = prepared ? s->r->prepared + panels_at(d, p, s->j, s->k) : s->b;
        s->b_ready = prepared || (s->i > 0 && (!d->half || parts == 1));
        s->last = s->k + s->kn == p->k;
        step(s);
    }
}

static void multiply(const struct packed *d, const struct mc_gemm_run *r, int64_t batch, char *set,
                     int threads)
{
    struct step s = { .d = d, .r = r, .batch = batch, .threads = threads };
    const int64_t parts = d->deep / d->kc;
    s.a = set;
    s.b = s.a + parts * (int64_t)d->a_bytes;
    s.acc = s.b + parts * (int64_t)d->b_bytes;
    for (s.j = 0; s.j < r->p->n; s.j += d->cols) {
        s.n = MC_MIN(r->p->n - s.j, d->cols);
        multiply_columns(&s);
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

/* Tasks for `slots` threads: the A and the C of one take about a third of the L2 cache each.  There
 * are enough that no thread waits long at the end; the fewer rows a task has, the more often B is read.
 * Where A is small and the L2 caches do not hold B, B is what takes time to read: each panel of it is read
 * by one thread. */
static void choose_tasks(struct packed *d, const struct mc_gemm_problem *p)
{
    const int64_t mr = d->kernel->mr, nr = d->kernel->nr, l2 = (int64_t)mc_cpu()->l2, third = l2 / 3;
    const int64_t want = d->slots == 1 ? 1 : 24 * d->slots;
    d->mb = even(d->rows, MC_MAX(third / (d->kc * d->size), 4 * mr), mr);
    d->nb = even(d->cols, MC_MAX(third / (d->mb * d->size), nr), nr);
    d->by_column = p->m * p->k * d->size <= third && p->k * p->n * d->size > l2 / 2;
    const int64_t high = gemm_ceil(d->rows, d->mb);
    if (high * gemm_ceil(d->cols, d->nb) < want) {
        d->nb = even(d->cols, MC_MAX(d->cols * high / want, nr), nr);
    }
    const int64_t across = gemm_ceil(d->cols, d->nb);
    if (high * across < want && !(d->by_column && across >= FEW * d->slots)) {
        d->mb = even(d->rows, MC_MAX(d->rows * across / want, 2 * mr), mr);
    }
}

static void choose_blocks(struct packed *d, const struct mc_gemm_problem *p)
{
    const int64_t mr = d->kernel->mr, most_k = MC_MAX((int64_t)mc_cpu()->l1d / 2 / (mr * d->size), 64);
    d->kc = even(p->k, MC_MIN(most_k, (int64_t)DEEP), 8);
    d->rows = even(p->m, BLOCK, mr);
    d->cols = even(p->n, BLOCK, d->kernel->nr);
    const int64_t bytes = MC_MIN(panels_most, (int64_t)(p->base.options.workspace / 4)),
                  most = bytes / (MC_MAX(d->rows, d->cols) * d->size);
    d->deep = MC_MAX(MC_MIN(most / d->kc, gemm_ceil(p->k, d->kc)), 1) * d->kc;
    choose_tasks(d, p);
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
    d->stream = mc_gemm_streams(p);
    d->a_bytes = d->in_place ? 0 : lines(d->rows, d->kc, d->size);
    d->b_bytes = lines(d->cols, d->kc, d->size);
    d->acc_bytes = d->half     ? lines(d->rows, d->cols, d->size)
                   : d->stream ? (size_t)sums_bytes(d) * (size_t)d->slots
                               : 0;
    d->set_bytes = (size_t)(d->deep / d->kc) * (d->a_bytes + d->b_bytes) + d->acc_bytes;
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
    struct packed d = { .kernel = kernel,
                        .half = mc_dtypes[p->dtype].size == 2,
                        .size = p->dtype == MC_FLOAT64 ? 8 : 4,
                        .slots = 1 };
    choose_blocks(&d, p);
    const double m = (double)gemm_ceil(p->m, kernel->mr) * kernel->mr, k = (double)p->k, b = (double)p->batch;
    const double n = (double)gemm_ceil(p->n, kernel->lanes) * kernel->lanes,
                 panels = (double)gemm_ceil(p->n, kernel->nr);
    const double ranges = (double)gemm_ceil(p->k, d.kc), down = (double)gemm_ceil(p->m, d.rows);
    const double across = (double)gemm_ceil(p->n, d.cols), parts = (double)gemm_ceil(p->k, d.deep);
    const double packs = d.half ? down : 1; /* how often B is packed */
    /* Panels of A are narrow, so packing costs by the element; B costs by the row of a panel. */
    const double pack_b = p->b_stays
                              ? 0
                              : packs * panels * (double)gemm_ceil(p->k, PACK_K) * 37e-9 * (double)d.size / 4;
    const double pack_a = reads_a_in_place(p) ? 0 : across * m * k * 0.07e-9 * (double)d.size;
    const bool copies_far = !p->b_stays && k * n * (double)d.size > (double)mc_cpu()->l2;
    const double far = copies_far ? packs * k * n * (double)d.size * 0.1e-9 : 0; /* B's copy */
    const double math = 2 * m * n * k * (p->b_stays ? 0.99 : 1.03) / mc_gemm_peak(p),
                 tiles = m * panels * ranges * 2.2e-9;
    const double seconds = b * (math + tiles + pack_a + pack_b + far) + mc_gemm_traffic(p);
    /* Each phase waits for all threads; where nothing is copied, the first is that of any solver. */
    const double steps = down * across * parts;
    const bool copies = !p->b_stays || !reads_a_in_place(p);
    const double barriers = seconds < MC_TEAM_WORTH ? 0 : copies ? 2.6e-6 * steps : 1.3e-6 * (steps - 1);
    return 1e-7 * b + mc_gemm_team_seconds(seconds, b * m / kernel->mr) + barriers;
}

static const char *refuse(const struct mc_problem *p)
{
    return mc_gemm_hollow(gemm(p));
}

/* The ranges of k and the panels of B follow from k and n. */
static bool same_rows(const struct mc_problem *a, const struct mc_problem *b)
{
    return gemm(a)->k == gemm(b)->k && gemm(a)->n == gemm(b)->n;
}

const struct mc_solver mc_gemm_packed = {
    .name = "packed", .refuse = refuse, .estimate = estimate, .plan = plan, .same_rows = TRIED(same_rows),
};

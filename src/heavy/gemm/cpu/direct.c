/* direct.c: products whose operands are read in place.  If the columns of B do not have stride 1, one
 * panel of them at a time is transposed first.  A call of one task uses no other thread.
 *
 * A few columns beyond whole vectors, as the last of 49 (7 x 7 positions), would cost a vector for each
 * row of A.  If k of A has stride 1, they are dot products over vectors of k instead.  Those columns are
 * packed first.
 *
 * Invariant: the order of a sum depends only on the sizes, the strides and the column. */
#include "heavy/gemm/solver.h"
#include "device/cpu/cpu.h"

enum {
    LINE = 64,                       /* bytes; every vector is a divisor */
    BLOCK = 32768,                   /* bytes of C that are finished at once */
    THIN = 16,                       /* columns at most that are skinny.c's */
    LEAST_K = 64, MOST_BATCH = 64,   /* for dot products of the last columns */
    LONG = 1024, CHUNK = 512,        /* sums of more than LONG products are sums of about CHUNK */
    MOST_TURNED = 4096,              /* products of a sum, if an operand has rows where columns should be */
};

struct direct {
    struct mc_plan base;
    const struct mc_gemm_kernel *kernel;
    bool transposed;            /* B is copied into panels */
    bool stream;            /* C is larger than the caches */
    bool ahead;             /* rows of A are prefetched: they are adjacent, and more than L1 holds */
    bool early;             /* rows of B are prefetched: a panel takes more than half of L1 */
    int64_t mb, across;     /* rows of a task, a multiple of mr; parts of the columns */
    bool by_columns;        /* consecutive tasks have the same columns, else the same rows */
    int64_t wb;             /* columns that are multiplied, and finished, before a task's next */
    int slots;
    size_t panel_bytes;     /* of the workspace, one panel a slot */
    int64_t rest;           /* the last columns, which are dot products; 0: none */
    size_t rest_bytes;      /* of the workspace: those columns of one matrix of the batch */
};
struct call {
    struct mc_gemm_run r;
    const struct direct *d;
};
struct area {
    int64_t batch, i0, i1, j0, j1;
};

/* One tile.  t has the fields that all tiles of the area share. */
static void tile(const struct call *x, struct mc_gemm_tile *t, int64_t batch, int64_t i, int64_t j)
{
    _Alignas(64) char spare[GEMM_MAX_MR * GEMM_MAX_NR * sizeof(double)];
    t->a = gemm_a(&x->r, batch, i, 0);
    t->c = gemm_c(&x->r, batch, i, j);
    mc_gemm_tile_c0(&x->r, batch, i, j, t, spare);
    const struct mc_gemm_kernel *kernel = x->d->kernel;
    mc_gemm_tile_kernel *sum = x->d->early && t->n == kernel->nr
                                   ? kernel->early
                                   : kernel->direct[gemm_ceil(t->n, kernel->lanes)];
    if (t->k <= LONG) {
        sum(t);
        return;
    }
    struct mc_gemm_tile part = *t;
    const int64_t each = gemm_ceil(t->k, gemm_ceil(t->k, CHUNK));
    for (int64_t k = 0; k < t->k; k += each) {
        part.k = MC_MIN(t->k - k, each);
        sum(&part);
        part.a = (const char *)part.a + each * t->a_col * x->r.size;
        part.b = (const char *)part.b + each * t->b_row * x->r.size;
        part.ahead = t->ahead_step ? part.ahead + each * t->ahead_step : NULL;
        part.c0 = part.c, part.c0_row = part.c_row, part.beta = 1;
    }
}

/* Has the first tile of a row of tiles prefetch the rows of A that come next, also at the end of a task: a
 * thread's tasks follow each other (tasks.c). */
static void look_ahead(const struct call *x, struct mc_gemm_tile *t, int64_t batch, int64_t next)
{
    const int64_t m = MC_MIN(x->r.p->m - next, (int64_t)x->d->kernel->mr), bytes = m * t->a_row * x->r.size;
    t->ahead = gemm_a(&x->r, batch, next, 0);
    t->ahead_step = x->d->ahead && m > 0 ? gemm_ceil(bytes, t->k) : 0;
}

/* In row-major order of tiles, the order of C in memory. */
static void in_place(const struct call *x, struct mc_gemm_tile *t, const struct area *s)
{
    const int64_t mr = x->d->kernel->mr, nr = x->d->kernel->nr;
    for (int64_t i = s->i0; i < s->i1; i += mr) {
        t->m = MC_MIN(s->i1 - i, mr);
        look_ahead(x, t, s->batch, i + mr);
        for (int64_t j = s->j0; j < s->j1; j += nr) {
            t->n = MC_MIN(s->j1 - j, nr);
            t->b = gemm_b(&x->r, s->batch, 0, j);
            tile(x, t, s->batch, i, j);
            t->ahead_step = 0;
        }
    }
}

/* ---- the last columns ---- */

/* [k / lanes][column][lanes], zero beyond k. */
static void pack_task(void *arg, int64_t batch, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const struct mc_gemm_problem *p = x->r.p;
    char *to = x->r.workspace + (size_t)batch * d->rest_bytes;
    const int64_t lanes = d->kernel->lanes;
    (void)slot;
    for (int64_t k = 0; k < p->k; k += lanes, to += d->rest * lanes * x->r.size) {
        d->kernel->pack(to, gemm_b(&x->r, batch, k, p->n - d->rest), p->bs[1], p->bs[2],
                        MC_MIN(p->k - k, lanes), d->rest, lanes);
    }
}

#define PUT(name, T)                                                                                    \
    static void name(const struct call *x, int64_t batch, int64_t i, int64_t m, const T *sum)           \
    {                                                                                                   \
        const T alpha = (T)x->r.p->alpha, beta = (T)x->r.p->beta;                                       \
        for (int64_t q = 0, j = x->r.p->n - x->d->rest; q < x->d->rest; q++, j++, sum += GEMM_DOT_ROWS) { \
            for (int64_t r = 0; r < m; r++) {                                                           \
                const T *c0 = gemm_c0(&x->r, batch, i + r, j);                                          \
                *(T *)gemm_c(&x->r, batch, i + r, j) = alpha * sum[r] + (c0 ? beta * *c0 : 0);          \
            }                                                                                           \
        }                                                                                               \
    }
PUT(put_f32, float)
PUT(put_f64, double)

static void last_columns(const struct call *x, const struct area *s)
{
    const struct direct *d = x->d;
    const struct mc_gemm_problem *p = x->r.p;
    _Alignas(64) double sum[GEMM_MAX_Q * GEMM_DOT_ROWS];
    for (int64_t i = s->i0; i < s->i1; i += GEMM_DOT_ROWS) {
        const int64_t m = MC_MIN(s->i1 - i, (int64_t)GEMM_DOT_ROWS);
        d->kernel->dot[d->rest](&(struct mc_gemm_dot){ .k = p->k,
                                                       .x_row = p->as[1],
                                                       .rows = (int)m,
                                                       .x = gemm_a(&x->r, s->batch, i, 0),
                                                       .s = x->r.workspace + (size_t)s->batch * d->rest_bytes,
                                                       .out = sum });
        if (x->r.size == sizeof(double)) {
            put_f64(x, s->batch, i, m, sum);
        } else {
            put_f32(x, s->batch, i, m, (const float *)(const void *)sum);
        }
    }
}

/* Panel by panel: each is transposed once and used for all rows of the area. */
static void transposed(const struct call *x, struct mc_gemm_tile *t, const struct area *s, void *panel)
{
    const struct mc_gemm_kernel *kernel = x->d->kernel;
    const struct mc_gemm_problem *p = x->r.p;
    t->b = panel;
    for (int64_t j = s->j0; j < s->j1; j += kernel->nr) {
        t->n = MC_MIN(s->j1 - j, (int64_t)kernel->nr);
        t->b_row = gemm_ceil(t->n, kernel->lanes) * kernel->lanes;
        kernel->pack(panel, gemm_b(&x->r, s->batch, 0, j), p->bs[2], p->bs[1], t->n, p->k, t->b_row);
        for (int64_t i = s->i0; i < s->i1; i += kernel->mr) {
            t->m = MC_MIN(s->i1 - i, (int64_t)kernel->mr);
            tile(x, t, s->batch, i, j);
        }
    }
}

/* Block by block of columns, each with its epilogue while it is in a cache. */
static void in_blocks(const struct call *x, struct mc_gemm_tile *t, const struct area *s)
{
    const int64_t whole = x->r.p->n - x->d->rest;
    struct area b = *s;
    for (; b.j0 < s->j1; b.j0 = b.j1) {
        b.j1 = MC_MIN(b.j0 + x->d->wb, s->j1);
        in_place(x, t, &b);
        if (x->d->rest && b.j1 == whole) {
            last_columns(x, s);
            b.j1 = x->r.p->n;
        }
        gemm_finish(&x->r, b.batch, b.i0, b.j0, b.i1 - b.i0, b.j1 - b.j0);
    }
}

static void task(void *arg, int64_t at, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const struct mc_gemm_problem *p = x->r.p;
    const int64_t down = gemm_ceil(p->m, d->mb), of = at % (down * d->across), n = p->n - d->rest,
                  i = d->by_columns ? of % down : of / d->across,
                  j = d->by_columns ? of / down : of % d->across;
    const struct area s = { .batch = at / (down * d->across),
                            .i0 = i * d->mb,
                            .i1 = MC_MIN((i + 1) * d->mb, p->m),
                            .j0 = gemm_range_begin(n, d->kernel->nr, d->across, j),
                            .j1 = gemm_range_begin(n, d->kernel->nr, d->across, j + 1) };
    struct mc_gemm_tile t = { .k = p->k, .a_row = p->as[1], .a_col = p->as[2], .b_row = p->bs[1],
                              .alpha = p->alpha,
                              .c_row = p->cs[1], .stream = d->stream };
    if (d->transposed) {
        transposed(x, &t, &s, x->r.workspace + (size_t)slot * d->panel_bytes);
        gemm_finish(&x->r, s.batch, s.i0, s.j0, s.i1 - s.i0, s.j1 - s.j0);
    } else {
        in_blocks(x, &t, &s);
    }
    if (d->stream) {
        d->kernel->drain();
    }
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct direct *d = (const struct direct *)(const void *)plan;
    struct call x = { mc_gemm_bind(plan, operand, workspace, threads), d };
    const struct mc_gemm_problem *p = x.r.p;
    if (d->rest) {
        mc_team_tasks(pack_task, &x, p->batch, d->slots, x.r.threads, mc_gemm_work(p) / (double)p->n);
    }
    mc_team_tasks(task, &x, p->batch * gemm_ceil(p->m, d->mb) * d->across, d->slots, x.r.threads,
                  mc_gemm_work(p));
    return MC_OK;
}

static bool needs_turning(const struct mc_gemm_problem *p)
{
    return p->bs[2] != 1 && p->n > 1;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    if (mc_dtypes[p->dtype].size < 4) {
        return "takes float32 and float64 only";
    }
    /* a panel of B, or the rows of A, from beyond the caches */
    if (p->k > MOST_TURNED && (needs_turning(p) || (p->as[2] != 1 && p->m > 1))) {
        return "leaves long sums of transposed operands to others";
    }
    return mc_gemm_hollow(p);
}

/* How many of the last columns are dot products: as many as sums of one vector of them cost no more than half
 * of what they cost as a vector of columns. */
static int64_t last_of(const struct mc_gemm_problem *p, const struct mc_gemm_kernel *kernel)
{
    const int64_t rest = p->n % kernel->lanes;
    const bool pays = !needs_turning(p) && p->as[2] == 1 && p->k >= LEAST_K && p->m > kernel->mr &&
                      p->batch <= MOST_BATCH && p->n > THIN;
    return pays && 2 * rest <= kernel->lanes && rest <= kernel->dot_q ? rest : 0;
}

/* Rows at a distance that is a multiple of 4 KiB map to the same set of the L1 cache. */
static bool collides(int64_t stride, int64_t size, int64_t rows)
{
    return rows > 32 && stride * size % 4096 == 0;
}

/* Seconds for an element of A whose rows are the contiguous axis: a cache line of each k serves several
 * tiles.  If the distance of these lines is a multiple of 4 KiB, the L1 cache holds few of them; if k times
 * the power of two in the distance is far beyond L2, neither does that cache; and a large A comes from
 * beyond it. */
static double turned_cost(const struct mc_gemm_problem *p)
{
    const int64_t bytes = p->as[2] * mc_dtypes[p->dtype].size, spacing = bytes & -bytes;
    const int64_t l2 = (int64_t)mc_cpu()->l2, l3 = (int64_t)mc_cpu()->l3;
    const bool lost = spacing * p->k > 4 * l2 || bytes * p->k > l3 / 4;
    return lost ? 0.25e-9 : collides(p->as[2], mc_dtypes[p->dtype].size, p->k) ? 0.12e-9 : 0.04e-9;
}

/* Seconds added by loads of B that cross a cache line, if the last panel is narrower than a tile and has too
 * few sums to hide them.  If the row stride is a multiple of a cache line, no load crosses one. */
static double split_rows(const struct mc_gemm_problem *p, const struct mc_gemm_kernel *kernel,
                         int64_t columns, double tiles)
{
    const int64_t size = mc_dtypes[p->dtype].size, n = columns % kernel->nr, vector = kernel->lanes * size;
    const double crossing = p->bs[1] * size % 64 == 0 ? 0 : (double)MC_MIN(vector, 64) / 64;
    return tiles * (double)p->k * (double)gemm_ceil(n, kernel->lanes) * crossing * 0.5e-9;
}

/* Does L2 not hold a panel of B?  Its rows map to as many sets as there are multiples of the power of two in
 * their distance. */
static bool lost_from_l2(const struct mc_gemm_problem *p, const struct mc_gemm_kernel *kernel)
{
    const int64_t size = mc_dtypes[p->dtype].size, row = p->bs[1] * size,
                  spacing = needs_turning(p) ? 0 : row & -row;
    return p->k * MC_MAX(MC_MIN(p->n, (int64_t)kernel->nr) * size, spacing) > (int64_t)mc_cpu()->l2;
}

/* Operands cost more the less of them fits in the caches and the TLB.  A costs more if k does not have
 * stride 1: each of its cache lines then serves only one tile. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct mc_gemm_kernel *kernel = mc_gemm_kernel(p->dtype);
    const double m = (double)gemm_ceil(p->m, kernel->mr) * kernel->mr, k = (double)p->k, b = (double)p->batch;
    const int64_t rest = last_of(p, kernel), columns = p->n - rest;
    const double n = (double)gemm_ceil(columns, kernel->lanes) * kernel->lanes + 1.5 * (double)rest,
                 panels = (double)gemm_ceil(columns, kernel->nr);
    const int64_t size = mc_dtypes[p->dtype].size;
    const double math = 2 * b * m * n * k / mc_gemm_peak(p),
                 sweep = MC_MIN((n + m) * k * (double)size / 400e6, 0.3);
    double seconds = math * (0.975 + sweep) + b * m * panels * 1.9e-9;
    if (!needs_turning(p) && collides(p->bs[1], size, p->k) && p->m > kernel->mr) {
        seconds += 0.15 * math;
    }
    if (p->k * kernel->mr * size > (int64_t)mc_cpu()->l1d / 2 &&
        p->k * p->n * size > (int64_t)mc_cpu()->l2 / 2) {
        seconds += 0.08 * math; /* between two panels of B, L1 loses the rows of A */
    }
    if (p->as[2] != 1 && p->k > 1) {
        seconds += b * (double)p->m * k * panels * turned_cost(p);
    }
    if (!needs_turning(p) && p->n > 1) {
        seconds += split_rows(p, kernel, columns, b * m / kernel->mr);
    }
    if (needs_turning(p)) {
        seconds += b * n * k * 0.03e-9 * (double)size;
    }
    if (lost_from_l2(p, kernel)) { /* each row of tiles reads B from beyond L2 */
        seconds += b * (m / kernel->mr - 1) * n * k * (double)size / 80e9;
    }
    seconds += mc_gemm_traffic(p);
    const double tasks = b * (needs_turning(p) && p->m < 64 ? 1 : m / kernel->mr) * panels;
    return 6e-8 + 1e-8 * b + mc_gemm_team_seconds(seconds, tasks);
}

/* How C is divided into tasks. Few rows and many columns are divided by columns, so that no two threads read
 * the same of B, which another layer's threads have often left in their caches; other products by rows, also
 * those with a B that stays, which the cache of every thread holds. A task's columns of B fill half of the L2
 * cache at most. A transposed panel serves all rows of a task. */
static void choose_tasks(struct direct *d, const struct mc_gemm_problem *p)
{
    const int64_t size = mc_dtypes[p->dtype].size, mr = d->kernel->mr, nr = d->kernel->nr,
                  panels = gemm_ceil(p->n - d->rest, nr), tiles = gemm_ceil(p->m, mr),
                  most = MC_MAX((int64_t)mc_cpu()->l2 / 2 / (p->k * size * nr), (int64_t)1),
                  want = d->transposed ? 4 * d->slots : 24 * d->slots;
    const bool many = mc_gemm_work(p) > 2e-6;
    d->across = d->transposed ? panels : gemm_ceil(panels, most);
    d->by_columns = !d->transposed && !p->b_stays && p->m < 2 * p->k;
    if (many && !d->transposed && !p->b_stays && d->slots > 1) {
        const int64_t few = gemm_ceil(want, p->batch * tiles), least = d->by_columns ? 2 * d->slots : 1;
        d->across = MC_MIN(MC_MAX(d->across, MC_MAX(few, least)), panels);
    }
    d->mb = tiles * mr;
    if (p->batch * d->across < want && many) {
        d->mb = MC_MAX(gemm_ceil(p->m, gemm_ceil(want, p->batch * d->across) * mr), d->transposed ? 4 : 1) *
                mr;
    }
    d->wb = MC_MAX(BLOCK / (d->mb * size * nr), (int64_t)4) * nr;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t size = mc_dtypes[p->dtype].size;
    struct direct *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->kernel = mc_gemm_kernel(p->dtype);
    d->transposed = needs_turning(p);
    d->stream = mc_gemm_streams(p) && p->k <= LONG;
    d->slots = mc_team_size();
    d->ahead = p->as[2] == 1 && p->as[1] == p->k && p->m * p->k * size > (int64_t)mc_cpu()->l1d;
    d->early = d->kernel->early && !d->transposed && p->k * d->kernel->nr * size > (int64_t)mc_cpu()->l1d / 2;
    d->rest = last_of(p, d->kernel);
    d->rest_bytes = (size_t)(gemm_ceil(p->k * size, LINE) * LINE * d->rest);
    if (d->rest_bytes * (size_t)p->batch > p->base.options.workspace) {
        d->rest = 0;
    }
    d->base.workspace = d->rest ? d->rest_bytes * (size_t)p->batch : 0;
    choose_tasks(d, p);
    if (d->transposed) {
        d->panel_bytes = ((size_t)(p->k * d->kernel->nr * size) + 127) / 128 * 128;
        d->base.workspace = d->panel_bytes * (size_t)d->slots;
    }
    return &d->base;
}

/* Rows of a tile do not meet, and prepare nothing. */
static bool same_rows(const struct mc_problem *a, const struct mc_problem *b)
{
    return last_of(gemm(a), mc_gemm_kernel(gemm(a)->dtype)) ==
           last_of(gemm(b), mc_gemm_kernel(gemm(b)->dtype));
}

const struct mc_solver mc_gemm_direct = {
    .name = "direct", .refuse = refuse, .estimate = estimate, .plan = plan, .same_rows = TRIED(same_rows),
};

/* blocked.c: factorizations by blocks of BLOCK rows and columns.  A block is factorized by the texts of
 * op/matrix; what remains is updated by matrix products (update.c), in which threads share the rows.
 *
 *     cholesky    U^T U by rows of blocks: the block on the diagonal, then those beside it; the rest loses
 *                 their product
 *     lu          a panel with its pivots, then the rows beside it; the rest loses their product
 *     qr          a panel of reflections as 1 - V T V^T, applied to the columns behind it
 *     triangular  block by block: minus the product with what is known, then the block on the diagonal */
#include "heavy/factor/cpu/blocked.h"

enum { THIN = 8, CHUNK = 64, LEAST = 96, LEAST_SPECTRA = 24 }; /* CHUNK: at most BLOCK */

struct blocked {
    struct mc_plan base;
    struct mc_factor_stack stack;
};

/* ---- triangular systems ---- */

struct columns {
    const struct one *o;
    struct view t, x;
    int64_t n, k;
    int trans, lower, unit;
};

/* A block of a large matrix has its rows at a distance that is often a multiple of the size of a cache's
 * way.  So blocks are copied, and worked on, in memory of BLOCK by BLOCK elements. */
struct square {
    _Alignas(64) char at[BLOCK * BLOCK * sizeof(double)];
};

static void copy_block(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows,
                       int64_t columns, int64_t size)
{
    for (int64_t i = 0; i < rows; i++) {
        memcpy(to + i * to_row * size, from + i * from_row * size, (size_t)(columns * size));
    }
}

static void some_columns(void *arg, int64_t task, int slot)
{
    const struct columns *c = arg;
    const int64_t from = task * CHUNK, k = MC_MIN(c->k - from, (int64_t)CHUNK), size = c->o->size;
    char *x = part(c->x, 0, from, size).at;
    struct square own;
    (void)slot;
    copy_block(own.at, CHUNK, x, c->x.row, c->n, k, size);
    c->o->level->triangular[c->o->f64](c->t.at, c->t.row, own.at, CHUNK, c->n, k, c->trans, c->lower,
                                       c->unit);
    copy_block(x, c->x.row, own.at, CHUNK, c->n, k, size);
}

/* One block on the diagonal, of at most BLOCK rows, without zeros on the diagonal. */
static void solve_block(const struct columns *c)
{
    const double flops = (double)c->n * (double)c->n * (double)c->k;
    struct columns block = *c;
    struct square t;
    copy_block(t.at, BLOCK, c->t.at, c->t.row, c->n, c->n, c->o->size);
    block.t = (struct view){ t.at, BLOCK, 1 };
    mc_team_tasks(some_columns, &block, (c->k + CHUNK - 1) / CHUNK, c->o->slots, c->o->threads, flops / 8e9);
}

static int64_t zero_on_diagonal(const struct one *o, struct view t, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (mc_load_f64(o->dtype, part(t, i, i, o->size).at) == 0) {
            return i + 1;
        }
    }
    return 0;
}

static void solve_blocks(const struct columns *c)
{
    const struct one *o = c->o;
    const bool forward = c->trans ? !c->lower : c->lower;
    if (c->k < THIN) {
        o->level->triangular[o->f64](c->t.at, c->t.row, c->x.at, c->x.row, c->n, c->k, c->trans, c->lower,
                                     c->unit);
        return;
    }
    for (int64_t done = 0; done < c->n; done += BLOCK) {
        const int64_t n = MC_MIN(c->n - done, (int64_t)BLOCK), i = forward ? done : c->n - done - n,
                      known = forward ? 0 : i + n;
        struct columns block = *c;
        block.t = part(c->t, i, i, o->size);
        block.x = part(c->x, i, 0, o->size);
        block.n = n;
        multiply(o, -1, c->trans ? turned(part(c->t, known, i, o->size)) : part(c->t, i, known, o->size),
                 part(c->x, known, 0, o->size), block.x, n, c->k, done, false);
        solve_block(&block);
    }
}

static int64_t triangular(const struct one *o, const int64_t *g, const void *const *in, void *const *out)
{
    const int64_t n = g[0], k = g[1];
    const struct columns c = {
        o, { (char *)(uintptr_t)in[0], n, 1 }, { out[0], k, 1 }, n, k, g[2] != 0, g[3] != 0, g[4] != 0
    };
    memcpy(out[0], in[1], (size_t)(n * k * o->size));
    const int64_t bad = c.unit ? 0 : zero_on_diagonal(o, c.t, n);
    if (!bad) {
        solve_blocks(&c);
    }
    return bad;
}

/* ---- cholesky ---- */

static int64_t cholesky(const struct one *o, const int64_t *g, const void *const *in, void *const *out,
                        char *work)
{
    const int64_t n = g[0], size = o->size;
    const struct view u = { work, n, 1 };
    o->level->transposed[o->f64](work, n, in[0], n, n, n);
    for (int64_t k = 0; k < n; k += BLOCK) {
        const int64_t b = MC_MIN(n - k, (int64_t)BLOCK), rest = n - k - b;
        const struct view beside = part(u, k, k + b, size);
        struct square own;
        char *diagonal = part(u, k, k, size).at;
        copy_block(own.at, BLOCK, diagonal, n, b, b, size);
        const int64_t bad = o->level->cholesky[o->f64](own.at, BLOCK, b);
        if (bad) {
            memcpy(work, own.at + (bad - 1) * (BLOCK + 1) * size, (size_t)size);
            return k + bad;
        }
        copy_block(diagonal, n, own.at, BLOCK, b, b, size);
        solve_block(&(struct columns){ o, part(u, k, k, size), beside, b, rest, 1, 0, 0 });
        multiply(o, -1, turned(beside), beside, part(u, k + b, k + b, size), rest, rest, b, true);
    }
    for (int64_t i = 1; i < n; i++) { /* below the diagonal */
        memset(part(u, i, 0, size).at, 0, (size_t)(i * size));
    }
    o->level->transposed[o->f64](out[0], n, work, n, n, n);
    return 0;
}

/* ---- lu ---- */

/* Memory for a panel of m rows: its elements, the order of its rows, what stands where. */
static size_t panel_bytes(int64_t m, int64_t size)
{
    return (size_t)m * (BLOCK * (size_t)size + 3 * sizeof(int64_t)) + 64;
}

static void swap(char *a, char *b, int64_t bytes)
{
    char some[512];
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof some) {
        const size_t n = (size_t)MC_MIN(bytes - at, (int64_t)sizeof some);
        memcpy(some, a + at, n);
        memcpy(a + at, b + at, n);
        memcpy(b + at, some, n);
    }
}

/* The rows of a panel: own[i] is the number of row i of the factors, stands[i] that of row i of the matrix,
 * place its inverse. */
struct pivots {
    int64_t *own, *stands, *place;
};

/* Exchanges m rows from k on, but for the b columns of the panel, so that the first b rows are those in
 * p->own. */
static void exchange(const struct view *a, int64_t size, int64_t k, int64_t m, int64_t n, int64_t b,
                     const struct pivots *p, int64_t *order)
{
    for (int64_t i = 0; i < m; i++) {
        p->stands[i] = p->place[i] = i;
    }
    for (int64_t i = 0; i < b; i++) {
        const int64_t at = p->place[p->own[i]], t = order[k + i];
        if (at == i) {
            continue;
        }
        swap(part(*a, k + i, 0, size).at, part(*a, k + at, 0, size).at, k * size);
        swap(part(*a, k + i, k + b, size).at, part(*a, k + at, k + b, size).at, (n - k - b) * size);
        order[k + i] = order[k + at];
        order[k + at] = t;
        p->stands[at] = p->stands[i];
        p->place[p->stands[at]] = at;
    }
}

/* Returns the number of exchanges.  panel: panel_bytes */
static int64_t lu(const struct one *o, struct view a, int64_t m, int64_t n, int64_t *order, char *panel)
{
    const struct pivots own = { (int64_t *)(void *)panel, (int64_t *)(void *)panel + m,
                                (int64_t *)(void *)panel + 2 * m };
    int64_t exchanges = 0;
    const int64_t least = MC_MIN(m, n), step = n < 256 ? BLOCK / 2 : BLOCK, size = o->size;
    char *p = (char *)(own.place + m);
    for (int64_t i = 0; i < m; i++) {
        order[i] = i;
    }
    for (int64_t k = 0; k < least; k += step) {
        const int64_t b = MC_MIN(least - k, step), rows = m - k;
        const struct view left = part(a, k, k, size), beside = part(a, k, k + b, size);
        for (int64_t i = 0; i < rows; i++) {
            own.own[i] = i;
        }
        copy_block(p, b, left.at, a.row, rows, b, size);
        exchanges += o->level->lu[o->f64](p, b, rows, b, p, b, own.own);
        copy_block(left.at, a.row, p, b, rows, b, size);
        exchange(&a, size, k, rows, n, b, &own, order);
        solve_block(&(struct columns){ o, left, beside, b, n - k - b, 0, 1, 1 });
        multiply(o, -1, part(a, k + b, k, size), beside, part(a, k + b, k + b, size), rows - b, n - k - b, b,
                 false);
    }
    return exchanges;
}

static int64_t lu_factors(const struct one *o, const int64_t *g, const void *const *in, void *const *out,
                          char *work)
{
    memcpy(out[0], in[0], (size_t)(g[0] * g[1] * o->size));
    const int64_t exchanges = lu(o, (struct view){ out[0], g[1], 1 }, g[0], g[1], out[1], work);
    mc_store_f64(o->dtype, out[2], exchanges % 2 ? -1 : 1);
    return 0;
}

static int64_t solve(const struct one *o, const int64_t *g, const void *const *in, void *const *out,
                     char *work)
{
    const int64_t n = g[0], k = g[1], bytes = k * o->size;
    int64_t *order = (int64_t *)(void *)(work + (n * n * o->size + 15) / 16 * 16);
    struct columns c = { o, { work, n, 1 }, { out[0], k, 1 }, n, k, 0, 1, 1 };
    memcpy(work, in[0], (size_t)(n * n * o->size));
    lu(o, c.t, n, n, order, (char *)(order + n));
    for (int64_t i = 0; i < n; i++) {
        char *row = (char *)out[0] + i * bytes;
        if (g[2]) {
            memset(row, 0, (size_t)bytes);
            mc_store_f64(o->dtype, row + order[i] * o->size, 1);
        } else {
            memcpy(row, (const char *)in[1] + order[i] * bytes, (size_t)bytes);
        }
    }
    const int64_t bad = zero_on_diagonal(o, c.t, n);
    if (bad) {
        mc_store_f64(o->dtype, work, 0);
        return bad;
    }
    solve_blocks(&c);
    c.lower = c.unit = 0;
    solve_blocks(&c);
    return 0;
}

/* ---- qr ---- */

/* V of the block of b reflections from k on: ones on the diagonal, zeros above. */
static void copy_v(const struct one *o, const struct reflections *r, struct view f, int64_t k)
{
    const int64_t b = r->b;
    for (int64_t i = 0; i < r->rows; i++) {
        char *row = r->v.at + i * b * o->size;
        memset(row, 0, (size_t)(b * o->size));
        memcpy(row, part(f, k + i, k, o->size).at, (size_t)(MC_MIN(i, b) * o->size));
        if (i < b) {
            mc_store_f64(o->dtype, row + i * o->size, 1);
        }
    }
}

void mc_factor_make_t(const struct one *o, const struct reflections *r, const char *factor)
{
    const struct view square = { r->w, r->b, 1 };
    memset(r->w, 0, (size_t)(r->b * r->b * o->size));
    multiply(o, 1, turned(r->v), r->v, square, r->b, r->b, r->rows, false);
    o->level->block_t[o->f64](r->t, r->w, factor, r->b);
}

void mc_factor_reflect(const struct one *o, const struct reflections *r, struct view c, int64_t n,
                       bool transposed)
{
    const struct view w = { r->w, n, 1 }, w2 = { r->w2, n, 1 }, t = { r->t, 1, r->b };
    memset(r->w, 0, (size_t)(r->b * n * o->size));
    memset(r->w2, 0, (size_t)(r->b * n * o->size));
    multiply(o, 1, turned(r->v), c, w, r->b, n, r->rows, false);
    multiply(o, 1, transposed ? turned(t) : t, w, w2, r->b, n, r->b, false);
    multiply(o, -1, r->v, w2, c, r->rows, n, r->b, false);
}

static size_t reflections_bytes(const struct mc_factor *f)
{
    const size_t m = (size_t)f->g[0], n = (size_t)f->g[1], c = (size_t)f->g[2],
                 most = MC_MAX(MC_MAX(m, n), c);
    return (m * n + most + (most / BLOCK + 1) * BLOCK * BLOCK + m * BLOCK +
            2 * BLOCK * MC_MAX(most, (size_t)BLOCK) + 2 * most + 64) *
           mc_dtypes[f->dtype].size;
}

static int64_t qr(const struct one *o, const int64_t *g, const void *const *in, void *const *out, char *work)
{
    const int64_t m = g[0], n = g[1], c = g[2], least = MC_MIN(m, n), size = o->size,
                  most = MC_MAX(MC_MAX(m, n), MC_MAX(c, (int64_t)BLOCK));
    struct reflections r = { .rows = 0 };
    char *upper = out[g[3] ? 1 : 0], *factor = work + m * n * size, *t = factor + least * size,
         *rest = t + (least / BLOCK + 1) * BLOCK * BLOCK * size;
    r.v.at = rest;
    r.v.col = 1;
    r.w = rest + m * BLOCK * size;
    r.w2 = r.w + BLOCK * most * size;
    const struct view a = { work, n, 1 };
    memcpy(work, in[0], (size_t)(m * n * size));
    for (int64_t k = 0; k < least; k += BLOCK) {
        const int64_t b = MC_MIN(least - k, (int64_t)BLOCK);
        char *panel = part(a, k, k, size).at;
        r.rows = m - k;
        r.b = r.v.row = b;
        r.t = t + k * BLOCK * size;
        copy_block(r.v.at, b, panel, n, m - k, b, size);
        o->level->qr[o->f64](r.v.at, b, m - k, b, factor + k * size, r.w2 + BLOCK * most * size);
        copy_block(panel, n, r.v.at, b, m - k, b, size);
        if (n - k - b > 0 || g[3]) {
            copy_v(o, &r, a, k);
            mc_factor_make_t(o, &r, factor + k * size);
            mc_factor_reflect(o, &r, part(a, k, k + b, size), n - k - b, true);
        }
    }
    for (int64_t i = 0; i < c; i++) {
        const int64_t zeros = MC_MIN(i, n);
        memset(upper + i * n * size, 0, (size_t)(zeros * size));
        memcpy(upper + (i * n + zeros) * size, part(a, i, zeros, size).at, (size_t)((n - zeros) * size));
    }
    if (g[3]) {
        const struct view q = { out[0], c, 1 };
        memset(out[0], 0, (size_t)(m * c * size));
        for (int64_t i = 0; i < MC_MIN(m, c); i++) {
            mc_store_f64(o->dtype, part(q, i, i, size).at, 1);
        }
        for (int64_t k = (least - 1) / BLOCK * BLOCK; k >= 0 && least > 0; k -= BLOCK) {
            r.rows = m - k;
            r.b = r.v.row = MC_MIN(least - k, (int64_t)BLOCK);
            r.t = t + k * BLOCK * size;
            copy_v(o, &r, a, k);
            mc_factor_reflect(o, &r, part(q, k, k, size), c - k, false);
        }
    }
    return 0;
}

/* ---- the solver ---- */

static bool spectra(const struct mc_factor *f)
{
    return f->kind >= FACTOR_EIGH && f->kind <= FACTOR_SVDVALS;
}

static size_t own_bytes(const struct mc_factor *f)
{
    const bool qr_ = f->kind == FACTOR_QR || f->kind == FACTOR_R,
               pivots = f->kind == FACTOR_LU || f->kind == FACTOR_SOLVE || f->kind == FACTOR_INVERSE;
    const size_t bytes = qr_          ? reflections_bytes(f)
                         : spectra(f) ? mc_factor_spectra_bytes(f)
                                      : mc_factor_work(f) +
                                            (pivots ? panel_bytes(f->g[0], mc_dtypes[f->dtype].size) : 0);
    return (bytes + 63) / 64 * 64;
}

static int64_t one(const struct mc_factor *f, const void *const *in, void *const *out, char *work,
                   int threads, void *arg)
{
    const struct one o = { .level = arg, .dtype = f->dtype, .size = mc_dtypes[f->dtype].size,
        .f64 = f->dtype == MC_FLOAT64,
                           .panels = work + own_bytes(f), .threads = threads,
                               .slots = threads > 1 ? mc_team_size() : 1 };
    int64_t bad = 0;
    switch (f->kind) {
    case FACTOR_CHOLESKY: bad = cholesky(&o, f->g, in, out, work); break;
    case FACTOR_TRIANGULAR: bad = triangular(&o, f->g, in, out); break;
    case FACTOR_LU: bad = lu_factors(&o, f->g, in, out, work); break;
    case FACTOR_SOLVE:
    case FACTOR_INVERSE: bad = solve(&o, f->g, in, out, work); break;
    case FACTOR_QR:
    case FACTOR_R: bad = qr(&o, f->g, in, out, work); break;
    case FACTOR_EIGH:
    case FACTOR_EIGVALSH:
    case FACTOR_SVD:
    case FACTOR_SVDVALS: bad = mc_factor_spectra(&o, f, in, out, work); break;
    default: break; /* refused */
    }
    if (f->kind == FACTOR_TRIANGULAR && bad) {
        mc_store_f64(f->dtype, work, 0);
    }
    return bad;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    struct mc_factor_stack stack = ((const struct blocked *)(const void *)plan)->stack;
    stack.f = factoring(plan->problem);
    return mc_factor_stack_run(&stack, operand, workspace,
                               threads > 0 ? MC_MIN(threads, mc_team_size()) : mc_team_size());
}

static const char *refuse(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    if (f->kind >= FACTOR_EIG) {
        return "has no blocks for matrices that are not symmetric";
    }
    if (spectra(f)) {
        return MC_MIN(f->g[0], f->kind >= FACTOR_SVD ? f->g[1] : f->g[0]) < LEAST_SPECTRA
                   ? "takes eigenvalues and singular values of at least 24 rows and columns"
                   : NULL;
    }
    return MC_MIN(f->g[0],
                  f->kind == FACTOR_LU || f->kind == FACTOR_QR || f->kind == FACTOR_R ? f->g[1] : f->g[0]) <
                   LEAST
               ? "takes matrices of at least 96 rows and columns"
               : NULL;
}

/* As measured on a Zen 5 by one thread. */
static double estimate(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    const bool f64 = f->dtype == MC_FLOAT64, qr_ = f->kind == FACTOR_QR || f->kind == FACTOR_R;
    const double square = (double)f->g[0] * (double)f->g[0] * (double)f->batch, flops = mc_factor_flops(f);
    if (spectra(f)) {
        return 1e-5 + (f->kind >= FACTOR_SVD ? 5.5e-8 : 4e-8) * square + flops * (f64 ? 1.05e-11 : 4e-12);
    }
    return 1e-5 + flops * (f64 ? 1.2e-11 : 7e-12) +
           square * (qr_                          ? 9e-9
                     : f->kind == FACTOR_CHOLESKY ? 1.2e-9
                                                  : 2.6e-9);
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    struct blocked *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    const bool by_matrix = f->batch > 1 && mc_factor_flops(f) / (double)f->batch < 2e8;
    const int slots = by_matrix ? mc_team_size() : 1;
    d->base.run = run;
    d->stack = (struct mc_factor_stack){
        .one = one,
        .arg = (void *)(uintptr_t)mc_factor_level(),
        .slots = slots,
        .seconds = estimate(p),
        .bytes = (own_bytes(f) + mc_factor_update_bytes(f->dtype, by_matrix ? 1 : mc_team_size()) + 63) / 64 *
                 64
    };
    d->base.workspace = d->stack.bytes * (size_t)slots;
    return &d->base;
}

const struct mc_solver mc_factor_blocked = {
    .name = "blocked", .refuse = refuse, .estimate = estimate, .plan = plan,
};

/* spectra.c: eigenvalues and singular values by blocks: the stages of reduce.h and sweeps.h, and between them
 * the products of the reflections, by products of matrices.
 *
 * Invariant: results do not depend on the number of threads. */
#include "heavy/factor/cpu/blocked.h"

/* Elements of a row: a multiple of a vector, whose bytes are not a multiple of the size of a cache's way. */
static int64_t pitch(int64_t n)
{
    const int64_t lines = (n + 15) / 16;
    return 16 * (lines % 8 == 0 ? lines + 1 : lines);
}

/* Memory in pieces: with `at` NULL only their sizes are added. */
struct pieces {
    char *at;
    size_t used;
};

static void *take(struct pieces *p, int64_t bytes)
{
    void *piece = p->at ? p->at + p->used : NULL;
    p->used += ((size_t)bytes + 63) / 64 * 64;
    return piece;
}

/* Sizes, and where everything is. */
static void lay_out(const struct mc_factor *f, const struct mc_factor_level *level, struct pieces *p,
                    struct mc_factor_spectrum *s, struct reflections *r)
{
    const int64_t size = (int64_t)mc_dtypes[f->dtype].size, *g = f->g,
                  strip = 2 * (int64_t)(level ? level->width[f->dtype == MC_FLOAT64] : 16);
    s->svd = f->kind >= FACTOR_SVD;
    s->wide = s->svd && g[0] < g[1];
    s->m = s->svd ? MC_MAX(g[0], g[1]) : g[0];
    s->n = s->svd ? MC_MIN(g[0], g[1]) : g[0];
    s->lda = pitch(s->n);
    s->ldq = pitch(s->m);
    const int64_t n = s->n, c = s->svd ? MC_MAX(g[2], n) : n, most = pitch(MC_MAX(c, (int64_t)BLOCK));
    s->capacity = (SPECTRA_SWEEPS + 2) * n;
    s->nsweep = SPECTRA_SWEEPS + n + 1;
    s->a = take(p, s->m * s->lda * size);
    s->d = take(p, n * size);
    s->e = take(p, n * size);
    s->tq = take(p, n * size);
    s->tp = take(p, n * size);
    s->vq = take(p, n * s->ldq * size);
    s->vp = take(p, s->svd ? n * s->lda * size : 0);
    for (int i = 0; i < (int)NELEM(s->row); i++) {
        s->row[i] = take(p, s->ldq * size);
    }
    s->x = take(p, 2 * SPECTRA_PANEL * s->ldq * size);
    s->y = take(p, 2 * SPECTRA_PANEL * s->lda * size);
    s->sums = take(p, ((s->m + SPECTRA_CHUNK - 1) / SPECTRA_CHUNK) * s->lda * size);
    s->order = take(p, n * (int64_t)sizeof *s->order);
    s->flip = take(p, n * (int64_t)sizeof *s->flip);
    for (int i = 0; i < 4; i++) {
        struct mc_factor_sweeps *b = &s->batch[i / 2][i % 2];
        b->rotation = take(p, 2 * s->capacity * size);
        b->sweep = take(p, s->nsweep * (int64_t)sizeof *b->sweep);
    }
    r->t = take(p, BLOCK * BLOCK * size);
    r->w = take(p, BLOCK * most * size);
    r->w2 = take(p, BLOCK * most * size);
    const bool vectors = f->kind == FACTOR_EIGH || f->kind == FACTOR_SVD;
    for (int i = 0; i < (vectors ? 1 + s->svd : 0); i++) {
        struct mc_factor_side *side = &s->side[i];
        side->rows = i ? n : s->m;
        side->strips = (side->rows + strip - 1) / strip;
        side->ldq = pitch(i ? n : c);
        side->q = i || !s->svd ? take(p, side->rows * side->ldq * size) : take(p, s->m * side->ldq * size);
        side->strip = take(p, side->strips * strip * n * size);
        side->row = i ? s->vp : s->vq;
        side->ldrow = i ? s->lda : s->ldq;
    }
}

size_t mc_factor_spectra_bytes(const struct mc_factor *f)
{
    struct mc_factor_spectrum s = { .svd = false };
    struct reflections r = { .rows = 0 };
    struct pieces p = { NULL, 0 };
    lay_out(f, NULL, &p, &s, &r);
    return MC_MAX(p.used, mc_factor_work(f)) + 64;
}

/* q (rows, columns) = the product of `count` reflections, whose vectors are rows of v, from element `skip` of
 * the first one on. */
static void make_q(const struct one *o, struct reflections *r, struct view q, int64_t rows, int64_t columns,
                   struct view v, const char *factor, int64_t count, int64_t skip)
{
    memset(q.at, 0, (size_t)(rows * q.row * o->size));
    for (int64_t i = 0; i < MC_MIN(rows, columns); i++) {
        mc_store_f64(o->dtype, part(q, i, i, o->size).at, 1);
    }
    for (int64_t k = (count - 1) / BLOCK * BLOCK; k >= 0 && count > 0; k -= BLOCK) {
        const int64_t at = k + skip;
        r->b = MC_MIN(count - k, (int64_t)BLOCK);
        r->rows = rows - at;
        r->v = turned(part(v, k, at, o->size));
        mc_factor_make_t(o, r, factor + k * o->size);
        mc_factor_reflect(o, r, part(q, at, at, o->size), columns - at, false);
    }
}

/* Columns of u, or rows of vh, that belong to no singular value. */
static void other_vectors(const struct one *o, const struct mc_factor_spectrum *s, int64_t columns)
{
    const struct mc_factor_side *side = &s->side[0];
    for (int64_t i = 0; i < side->rows; i++) {
        for (int64_t j = s->n; j < columns; j++) {
            memcpy((char *)side->out + (side->in_rows ? j * side->ldo + i : i * side->ldo + j) * o->size,
                   (const char *)side->q + (i * side->ldq + j) * o->size, (size_t)o->size);
        }
    }
}

int64_t mc_factor_spectra(const struct one *o, const struct mc_factor *f, const void *const *in,
                          void *const *out, char *work)
{
    const int64_t *g = f->g, left = f->kind == FACTOR_SVD ? MC_MAX(g[2], MC_MIN(g[0], g[1])) : g[0];
    struct mc_factor_spectrum s = { .slots = o->slots, .threads = o->threads, .panels = o->panels };
    struct reflections r = { .rows = 0 };
    struct pieces p = { work, 0 };
    lay_out(f, o->level, &p, &s, &r);
    s.values = out[f->kind == FACTOR_SVD];
    memset(s.flip, 0, (size_t)s.n * sizeof *s.flip);
    if (!o->level->read[o->f64](&s, in[0])) {
        return o->level->run[o->f64][f->kind](g, in, out, work);
    }
    o->level->reduce[o->f64](&s);
    if (s.side[0].strips) {
        const struct view q = { s.side[0].q, s.side[0].ldq, 1 }, vq = { s.vq, s.ldq, 1 };
        make_q(o, &r, q, s.m, left, vq, s.tq, s.svd ? s.n : s.n - 1, s.svd ? 0 : 1);
    }
    if (s.side[1].strips) {
        const struct view q = { s.side[1].q, s.side[1].ldq, 1 }, vp = { s.vp, s.lda, 1 };
        make_q(o, &r, q, s.n, s.n, vp, s.tp, s.n - 1, 1);
        s.side[0].in_rows = s.wide;
        s.side[1].in_rows = !s.wide;
        s.side[s.wide].out = out[0];
        s.side[!s.wide].out = out[2];
        s.side[s.wide].ldo = s.wide ? s.n : left;
        s.side[!s.wide].ldo = s.wide ? s.m : s.n;
    } else {
        s.side[0].out = out[1];
        s.side[0].ldo = s.n;
    }
    o->level->iterate[o->f64](&s);
    if (s.bad) {
        const int64_t at = s.bad - 1;
        memcpy(work, (const char *)s.d + at * o->size, (size_t)o->size);
        return s.bad;
    }
    if (s.side[1].strips) {
        other_vectors(o, &s, left);
    }
    o->level->finish[o->f64](&s);
    return 0;
}

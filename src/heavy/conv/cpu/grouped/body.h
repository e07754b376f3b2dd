/* body.h: the kernels of grouped convolutions, included once for each instruction set.
 *
 * A term is loaded once for up to GROUPED_TAPS taps that read it for positions side by side: a tile of p
 * positions loads p + taps - 1 terms of a channel for p * taps products of each vector.
 *
 * Invariant: every loop over registers has constant bounds after inlining. A sum is added in the order of
 * runs, channels and taps, on every instruction set. */

#define FUSED static inline TARGET __attribute__((always_inline))
#define SEPARATE static TARGET __attribute__((noinline))

static inline __attribute__((always_inline)) double two_floats(const float *p)
{
    double d;
    memcpy(&d, p, sizeof d);
    return d;
}

FUSED V repeat(const float *p, const int weave)
{
#ifdef EIGHT
    if (weave == 8) {
        return EIGHT(p);
    }
#endif
    return weave == 4 ? FOUR(p) : weave == 2 ? TWO(p) : ONE(p);
}

#ifdef PERMUTE2
FUSED void pair_up(V v[3], const int32_t *lane)
{
    const V a = PERMUTE2(v[0], lane, v[1]), b = PERMUTE2(v[0], lane + L, v[2]),
            c = PERMUTE2(v[1], lane + 2 * L, v[2]);
    v[0] = a, v[1] = b, v[2] = c;
}
#else
FUSED void pair_up(V v[3], const int32_t *lane)
{
    (void)v;
    (void)lane;
}
#endif

/* ---- forward and inputs ---- */

FUSED void add_run(const struct mc_grouped_rows *r, const float *x, const float *w, V *acc, const int nv,
                   const int n, const int weave, const int taps)
{
    const int64_t width = r->width;
    for (int64_t c = 0; c < r->channels; c++, x += weave, w += taps * width) {
        V wv[3 * GROUPED_TAPS];
        UNROLL(9)
        for (int t = 0; t < taps * nv; t++) {
            wv[t] = LOAD(w + t / nv * width + t % nv * L);
        }
        UNROLL(16)
        for (int j = 0; j < n + taps - 1; j++) {
            const V term = repeat(x + j * width, weave);
            UNROLL(3)
            for (int t = 0; t < taps; t++) {
                if (j - t < 0 || j - t >= n) {
                    continue;
                }
                UNROLL(3)
                for (int v = 0; v < nv; v++) {
                    acc[(j - t) * nv + v] = FMA(term, wv[t * nv + v], acc[(j - t) * nv + v]);
                }
            }
        }
    }
}

/* Vectors [v, v + nv) of n positions. */
FUSED void sum_tile(const struct mc_grouped_rows *r, int64_t j, const int64_t v, const int nv, const int n,
                    const int weave)
{
    V acc[24];
    UNROLL(24)
    for (int i = 0; i < n * nv; i++) {
        acc[i] = ZERO();
    }
    for (int64_t i = 0; i < r->runs; i++) {
        const float *x = r->x + r->run[i].at + j * r->width, *w = r->w + r->run[i].w + v * L;
        if (r->run[i].taps == 3) {
            add_run(r, x, w, acc, nv, n, weave, 3);
        } else if (r->run[i].taps == 2) {
            add_run(r, x, w, acc, nv, n, weave, 2);
        } else {
            add_run(r, x, w, acc, nv, n, weave, 1);
        }
    }
    float *to = r->to + j * r->to_step + v * L;
    if (nv == 1 && weave > 1 && r->lane) {
        UNROLL(16)
        for (int i = 0; i < n; i++) {
            acc[i] = PERMUTE(acc[i], r->lane);
        }
    }
    if (nv == 3 && weave == 2 && r->lane) {
        UNROLL(8)
        for (int i = 0; i < n; i++) {
            pair_up(acc + 3 * i, r->lane);
        }
    }
    UNROLL(24)
    for (int i = 0; i < n * nv; i++) {
        STORE(to + i / nv * r->to_step + i % nv * L, acc[i]);
    }
}

/* The last tile of a row may have positions once more. */
#define TILE(nv, n, weave)                                                                         \
    SEPARATE void tile_##nv##_##n##_##weave(const struct mc_grouped_rows *r, int64_t v)                \
    {                                                                                              \
        for (int64_t j = 0; j < r->count; j += n) {                                                \
            sum_tile(r, MC_MIN(j, r->count - n), v, nv, n, weave);                                 \
        }                                                                                          \
    }
#define TILE1(nv, n) TILE(nv, n, 1)
#define TILE2(nv, n) TILE(nv, n, 2)
#define TILE4(nv, n) TILE(nv, n, 4)
TILES1(TILE1)
TILES2(TILE1)
TILES3(TILE1)
TILES1(TILE2)
TILES2(TILE2)
TILES3(TILE2)
TILES1(TILE4)
TILES2(TILE4)
TILES3(TILE4)
#ifdef EIGHT
#define TILE8(nv, n) TILE(nv, n, 8)
TILES1(TILE8)
TILES2(TILE8)
TILES3(TILE8)
#endif

typedef void tile_kernel(const struct mc_grouped_rows *r, int64_t v);
static const struct tile { int vectors, positions, weave; tile_kernel *run; } tiles[] = {
#define ROW1(nv, n) { nv, n, 1, tile_##nv##_##n##_1 },
#define ROW2(nv, n) { nv, n, 2, tile_##nv##_##n##_2 },
#define ROW4(nv, n) { nv, n, 4, tile_##nv##_##n##_4 },
    TILES1(ROW1) TILES2(ROW1) TILES3(ROW1) TILES1(ROW2) TILES2(ROW2) TILES3(ROW2)
    TILES1(ROW4) TILES2(ROW4) TILES3(ROW4)
#ifdef EIGHT
#define ROW8(nv, n) { nv, n, 8, tile_##nv##_##n##_8 },
    TILES1(ROW8) TILES2(ROW8) TILES3(ROW8)
#endif
};

/* As many positions at once as leave the fewest to compute twice. */
static const struct tile *tile_for(int64_t vectors, int64_t count, int weave)
{
    const struct tile *best = NULL;
    int64_t least = INT64_MAX;
    for (int i = 0; i < (int)NELEM(tiles); i++) {
        const int n = tiles[i].positions;
        /* fewer than eight sums do not hide the latency of one */
        const int64_t each = MC_MAX(n * vectors, (int64_t)8) + 2, cost = (count + n - 1) / n * each;
        if (tiles[i].vectors == vectors && tiles[i].weave == weave && n <= count && cost < least) {
            best = &tiles[i];
            least = cost;
        }
    }
    return best;
}

static void rows(const struct mc_grouped_rows *r, int weave)
{
    const int64_t vectors = r->width / L, parts = (vectors + 2) / 3;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t v = vectors * i / parts, end = vectors * (i + 1) / parts;
        const struct tile *tile = tile_for(end - v, r->count, weave);
        struct mc_grouped_rows one = *r;
        for (int64_t k = 0; k < r->rows; k++, one.x += r->x_row, one.to += r->to_row) {
            tile->run(&one, v);
        }
    }
}

/* ---- weights ---- */

FUSED void add_sums(double *to, const V v)
{
    float f[L];
    STORE(f, v);
    for (int i = 0; i < L; i++) {
        to[i] += (double)f[i];
    }
}

/* Channels [c, c + n) of vector v of all rows. */
FUSED void dot_tile(const struct mc_grouped_dots *d, int64_t c, int64_t v, const int n, const int taps,
                    const int weave)
{
    const int64_t width = d->width;
    V acc[DOTS * GROUPED_TAPS];
    UNROLL(24)
    for (int i = 0; i < n * taps; i++) {
        acc[i] = ZERO();
    }
    for (int64_t i = 0; i < d->rows; i++) {
        const float *x = d->x + i * d->x_row + c * weave, *y = d->y + i * d->y_row + v * L;
        for (int64_t j = 0; j < d->count + taps - 1; j++, x += width, y += width) {
            V yv[GROUPED_TAPS];
            UNROLL(3)
            for (int t = 0; t < taps; t++) {
                yv[t] = LOAD(y - t * width);
            }
            UNROLL(8)
            for (int k = 0; k < n; k++) {
                const V term = repeat(x + k * weave, weave);
                UNROLL(3)
                for (int t = 0; t < taps; t++) {
                    acc[k * taps + t] = FMA(term, yv[t], acc[k * taps + t]);
                }
            }
        }
    }
    double *to = d->sums + c * taps * width + v * L;
    UNROLL(24)
    for (int i = 0; i < n * taps; i++) {
        add_sums(to + i * width, acc[i]);
    }
}

#define DOT(weave, taps)                                                                           \
    SEPARATE void dots_##weave##_##taps(const struct mc_grouped_dots *d)                              \
    {                                                                                              \
        for (int64_t v = 0; v < d->width / L; v++) {                                               \
            int64_t c = 0;                                                                         \
            for (; c + DOTS <= d->channels; c += DOTS) {                                           \
                dot_tile(d, c, v, DOTS, taps, weave);                                              \
            }                                                                                      \
            for (; c + 4 <= d->channels; c += 4) {                                                 \
                dot_tile(d, c, v, 4, taps, weave);                                                 \
            }                                                                                      \
            for (; c < d->channels; c++) {                                                         \
                dot_tile(d, c, v, 1, taps, weave);                                                 \
            }                                                                                      \
        }                                                                                          \
    }
#define DOTS_OF(weave) DOT(weave, 1) DOT(weave, 2) DOT(weave, 3)
DOTS_OF(1)
DOTS_OF(2)
DOTS_OF(4)
#ifdef EIGHT
DOTS_OF(8)
#endif

static void dots(const struct mc_grouped_dots *d, int weave)
{
    typedef void dot_kernel(const struct mc_grouped_dots *);
    static dot_kernel *const by[][GROUPED_TAPS] = {
        [1] = { dots_1_1, dots_1_2, dots_1_3 },
        [2] = { dots_2_1, dots_2_2, dots_2_3 },
        [4] = { dots_4_1, dots_4_2, dots_4_3 },
#ifdef EIGHT
        [8] = { dots_8_1, dots_8_2, dots_8_3 },
#endif
    };
    by[weave][d->taps - 1](d);
}

/* ---- lanes ---- */

TARGET static void gather(float *to, const float *from, const int32_t *at, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        STORE(to + i, GATHER(from, at + i));
    }
}

/* One position of a unit. */
FUSED void mix_one(float *to, const float *from, const int32_t *lane, const int64_t width)
{
    float some[GROUPED_WIDTH];
    if (!lane) {
        for (int64_t v = 0; v < width; v += L) {
            STORE(to + v, LOAD(from + v));
        }
    } else if (width == L) {
        STORE(to, PERMUTE(LOAD(from), lane));
    } else {
        for (int64_t v = 0; v < width; v += L) {
            STORE(some + v, GATHER(from, lane + v));
        }
        for (int64_t v = 0; v < width; v += L) {
            STORE(to + v, LOAD(some + v));
        }
    }
}

enum { AHEAD = 8 }; /* positions */

FUSED void mix_by(const struct mc_grouped_mix *q, const bool pairs, const bool one)
{
    const struct mc_grouped_mix own = *q;
    const int64_t ahead = (own.to == own.from ? 0 : AHEAD) * own.from_step;
    for (int64_t i = 0; i < own.count; i++) {
        float *to = own.to + (own.place ? own.place[i] : i) * own.to_step;
        const float *from = own.from + i * own.from_step;
        for (int64_t u = 0; u < own.units; u++, to += own.to_unit, from += own.from_unit) {
            __builtin_prefetch(from + ahead);
            if (!pairs) {
                mix_one(to, from, own.lane, one ? L : own.width);
                continue;
            }
            V v[3] = { LOAD(from), LOAD(from + L), LOAD(from + 2 * L) };
            pair_up(v, own.lane);
            STORE(to, v[0]);
            STORE(to + L, v[1]);
            STORE(to + 2 * L, v[2]);
        }
    }
}

TARGET static void mix(const struct mc_grouped_mix *q)
{
    if (q->lane && q->pairs) {
        mix_by(q, true, false);
    } else if (q->width == L) {
        mix_by(q, false, true);
    } else {
        mix_by(q, false, false);
    }
}

#ifdef PERMUTE2
enum { PAIRS = true };
#else
enum { PAIRS = false };
#endif
#ifdef EIGHT
enum { MOST_REPEATED = 8 };
#else
enum { MOST_REPEATED = 4 };
#endif
static const struct mc_grouped_kernel kernel = { L, RUNS, MOST_REPEATED, PAIRS, rows, dots, mix, gather };

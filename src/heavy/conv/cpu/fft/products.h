/* products.h: products of spectra, frequency by frequency, a part of body.h.
 *
 * A tile is MR rows by NV vectors of sums in registers. A complex number has two sums and four products. For
 * real numbers a tile has REAL_MR rows.
 *
 * Invariant: sums over depth are added in one order, whatever the tile. */

FUSED void tile_of(const bool real, const int mr, const int nv, const struct mc_fft_product *p,
                   const float *a, const float *b, float *c, int64_t depth, bool add)
{
    V cr[REAL_MR][NV], ci[MR][NV];
    UNROLL(12)
    for (int i = 0; i < mr; i++) {
        UNROLL(4)
        for (int v = 0; v < nv; v++) {
            cr[i][v] = (V){ 0 };
            if (!real) {
                ci[i][v] = (V){ 0 };
            }
        }
    }
    for (int64_t k = 0; k < depth; k++, a += p->a_depth, b += p->b_depth) {
        V br[NV], bi[NV];
        UNROLL(4)
        for (int v = 0; v < nv; v++) {
            br[v] = load(b + v * L), bi[v] = real ? br[v] : load(b + p->b_im + v * L);
        }
        UNROLL(12)
        for (int i = 0; i < mr; i++) {
            const float ar = a[i * p->a_row], ai = real ? 0 : a[i * p->a_row + p->a_im];
            UNROLL(4)
            for (int v = 0; v < nv; v++) {
                cr[i][v] += ar * br[v];
                if (!real) {
                    ci[i][v] += ar * bi[v];
                    cr[i][v] -= ai * bi[v];
                    ci[i][v] += ai * br[v];
                }
            }
        }
    }
    if (add) {
        const float *from = c;
        UNROLL(12)
        for (int i = 0; i < mr; i++, from += p->c_row) {
            UNROLL(4)
            for (int v = 0; v < nv; v++) {
                cr[i][v] += load(from + v * L);
                if (!real) {
                    ci[i][v] += load(from + p->c_im + v * L);
                }
            }
        }
    }
    UNROLL(12)
    for (int i = 0; i < mr; i++, c += p->c_row) {
        UNROLL(4)
        for (int v = 0; v < nv; v++) {
            store(c + v * L, cr[i][v]);
            if (!real) {
                store(c + p->c_im + v * L, ci[i][v]);
            }
        }
    }
}

/* Prefetches n floats of each of some rows. */
FUSED void fetch(const float *at, int64_t rows, int64_t row, int64_t n, const bool write)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n; j += 16) {
            if (write) {        /* the builtin needs a constant here */
                __builtin_prefetch(at + i * row + j, 1, 2);
            } else {
                __builtin_prefetch(at + i * row + j, 0, 2);
            }
        }
    }
}

FUSED const float *b_at(const struct mc_fft_product *p, int64_t column)
{
    return p->b + (FFT_PANELS && p->b_panel ? column / (NV * L) * p->b_panel + column % (NV * L) : column);
}

/* Prefetches the part of the next product's operands that this tile uses of the current ones. */
static TARGET __attribute__((noinline)) void fetch_ahead(bool real, int mr, int nv,
                                                        const struct mc_fft_product *p, int64_t i,
                                                        int64_t column, int64_t k, int64_t depth)
{
    const int64_t parts = (p->rows + mr - 1) / mr, from = depth * (i / mr) / parts,
                  rows = depth * (i / mr + 1) / parts - from;
    const int64_t height = MC_MIN(p->rows - i, (int64_t)mr);
    for (int im = 0; im < (real ? 1 : 2); im++) {
        const float *a = p->a + p->a_ahead + im * p->a_im, *b = b_at(p, column) + p->b_ahead + im * p->b_im;
        fetch(b + (k + from) * p->b_depth, rows, p->b_depth, nv * L, false);
        if (column == 0 && p->a_depth == 1) {
            fetch(a + i * p->a_row + k, height, p->a_row, depth, false);
        } else if (column == 0) {
            fetch(a + (k + from) * p->a_depth, rows, p->a_depth, p->rows, false);
        }
        if (k == 0) {
            fetch(p->c + p->c_ahead + im * p->c_im + i * p->c_row + column, height, p->c_row, nv * L, true);
        }
    }
}

FUSED void rows_of(const bool real, const int nv, const struct mc_fft_product *p, int64_t column, int64_t k,
                   int64_t depth)
{
    const bool add = p->add || k > 0;
    const int most = real ? REAL_MR : MR;
    for (int64_t i = 0; i < p->rows; i += most) {
        const float *a = p->a + i * p->a_row + k * p->a_depth, *b = b_at(p, column) + k * p->b_depth;
        float *c = p->c + i * p->c_row + column;
        if (p->c_ahead) {
            fetch_ahead(real, most, nv, p, i, column, k, depth);
        }
        switch (MC_MIN(p->rows - i, (int64_t)most)) {
#define ROWS(n) case n: tile_of(real, n, nv, p, a, b, c, depth, add); break;
        EACH_ROWS(ROWS)
#undef ROWS
#define ROWS(n) case n: if (real) { tile_of(true, n, nv, p, a, b, c, depth, add); } break;
        EACH_REAL_ROWS(ROWS)
#undef ROWS
        default: break;
        }
    }
}

FUSED void product_of(const bool real, const struct mc_fft_product *p)
{
    for (int64_t column = 0, n = 0; column < p->columns; column += n) {
        n = p->columns - column >= NV * L ? NV * L : L;
        for (int64_t k = 0; k < p->depth; k += p->piece) {
            const int64_t depth = MC_MIN(p->depth - k, p->piece);
            if (n == NV * L) {
                rows_of(real, NV, p, column, k, depth);
            } else {
                rows_of(real, 1, p, column, k, depth);
            }
        }
    }
}

static TARGET void product(const struct mc_fft_product *p)
{
    product_of(false, p);
}

static TARGET void real_product(const struct mc_fft_product *p)
{
    product_of(true, p);
}

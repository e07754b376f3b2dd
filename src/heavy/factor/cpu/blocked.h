/* blocked.h: what factorizations by blocks share (blocked.c, spectra.c): matrices of any strides, their
 * products, and blocks of reflections. */
#ifndef MC_FACTOR_BLOCKED_H
#define MC_FACTOR_BLOCKED_H

#include "heavy/factor/solver.h"

enum { BLOCK = 64 };
/* One matrix: its functions, and the memory for panels of products. */
struct one {
    const struct mc_factor_level *level;
    mc_dtype dtype;
    int64_t size;
    bool f64;
    void *panels;
    int threads, slots;
};
/* A matrix of any strides. */
struct view {
    char *at;
    int64_t row, col;
};

static inline struct view part(struct view v, int64_t i, int64_t j, int64_t size)
{
    v.at += (i * v.row + j * v.col) * size;
    return v;
}

static inline struct view turned(struct view v)
{
    return (struct view){ v.at, v.col, v.row };
}

/* c (m, n) += alpha a (m, k) b (k, n) */
static inline void multiply(const struct one *o, double alpha, struct view a, struct view b, struct view c,
                            int64_t m, int64_t n, int64_t k, bool above)
{
    const struct mc_factor_update u = { .m = m, .n = n, .k = k, .alpha = alpha, .a = a.at, .a_row = a.row,
        .a_col = a.col,
                                        .b = b.at, .b_row = b.row, .b_col = b.col, .c = c.at, .c_row = c.row,
                                        .above = above };
    if (m && n && k) {
        mc_factor_update(o->dtype, &u, o->panels, o->slots, o->threads);
    }
}

/* b reflections are 1 - V T V^T.  v: (rows, b), with ones on its diagonal and zeros above it. */
struct reflections {
    struct view v;
    int64_t rows, b;
    char *t, *w, *w2;   /* T^T (b, b); memory for (b, n) twice */
};
/* T, upper triangular, of the b factors: factor[i] is T[i, i], above it are -T' (V^T v) times that. */
void mc_factor_make_t(const struct one *o, const struct reflections *r, const char *factor);
/* c (rows, n) = (1 - V T V^T) c, or with T^T */
void mc_factor_reflect(const struct one *o, const struct reflections *r, struct view c, int64_t n,
                       bool transposed);

/* ---- spectra.c: eigenvalues and singular values ---- */
size_t mc_factor_spectra_bytes(const struct mc_factor *f);
int64_t mc_factor_spectra(const struct one *o, const struct mc_factor *f, const void *const *in,
                          void *const *out, char *work);

#endif

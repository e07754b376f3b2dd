/* solver.h: what the solvers of factorizations share.
 *
 * Invariant: a result depends on the problem and the instruction set, not on the number of threads. */
#ifndef MC_FACTOR_SOLVER_H
#define MC_FACTOR_SOLVER_H

#include "device/cpu/cpu.h"
#include "heavy/factor/factor.h"
#include "value/value.h"

extern const struct mc_solver *const mc_factor_solvers[];
extern const struct mc_solver mc_factor_lapack, mc_factor_blocked, mc_factor_direct, mc_factor_by_reference;

static inline const struct mc_factor *factoring(const struct mc_problem *p)
{
    return &((const struct mc_factor_problem *)(const void *)p)->f;
}

/* ---- problem.c ---- */
void mc_factor_key(const struct mc_problem *p, struct mc_str *out);
double mc_factor_flops(const struct mc_factor *f);      /* of the whole stack */
/* elements of operand r of the whole stack, and bytes of one of them; 0: there is no such operand */
size_t mc_factor_operand(const struct mc_factor *f, int r, size_t *size);
mc_status mc_factor_compare(const struct mc_factor *f, const struct mc_plan *plan, void *const *got,
                            void *const *want);

/* ---- stack.c ---- */
/* Runs `one` on each matrix of the stack; threads share them if each alone is worth less.  work: `slots`
 * pieces of `bytes`.  inner: how many threads `one` may use itself. */
struct mc_factor_stack {
    const struct mc_factor *f;
    /* Takes `group` matrices at once, if not NULL.  0: `one` must take them. */
    int (*some)(const int64_t *g, const void *const *in, void *const *out, void *work);
    int64_t group;
    int64_t (*one)(const struct mc_factor *f, const void *const *in, void *const *out, char *work,
                   int threads, void *arg);
    void *arg;
    size_t bytes;
    int slots;
    double seconds;
};
mc_status mc_factor_stack_run(const struct mc_factor_stack *s, void *const *operand, char *workspace,
                              int threads);

/* ---- cpu/reduce.h, sweeps.h: eigenvalues and singular values; pointers are to elements of the dtype ---- */
/* rows of a task, steps of a panel, sweeps of a batch */
enum { SPECTRA_CHUNK = 64, SPECTRA_PANEL = 32, SPECTRA_SWEEPS = 32 };
/* Rotations of the vectors `row` and `row + step`, then of that and the next one, ... */
struct mc_factor_sweep {
    int64_t row, step, from, count;
};
struct mc_factor_sweeps {
    void *rotation;             /* cosine and sine of each */
    struct mc_factor_sweep *sweep;
    int64_t n, used;            /* sweeps, rotations */
};
/* Vectors that are rotated.  strips 0: none are wanted. */
struct mc_factor_side {
    int64_t rows, strips, ldq, ldrow, ldo;
    void *q, *strip, *row, *out; /* (rows, n); the same in strips; (n, rows), sorted; the result, */
    bool in_rows;               /* in rows or columns */
};
struct mc_factor_spectrum {
    bool svd, wide;             /* wide: the result on the right is u */
    int64_t m, n, lda, ldq;     /* m >= n; of vq */
    void *a, *d, *e, *tq, *tp, *vq, *vp, *x, *y, *row[2], *sums, *values, *panels;
    double most, by;            /* of the diagonals; factor of all elements */
    struct mc_factor_sweeps batch[2][2];
    struct mc_factor_side side[2];
    int64_t *order;
    bool *flip;
    int now, turns, slots, threads;
    int64_t capacity, nsweep, at, bad;
};

/* ---- cpu/level_*.c ---- */
/* The functions of one instruction set; [0] is float32, [1] is float64. */
struct mc_factor_level {
    mc_factor_run *run[2][FACTOR_NKIND];
    int64_t (*cholesky[2])(void *a, int64_t lda, int64_t n);
    int64_t (*triangular[2])(const void *t, int64_t ldt, void *x, int64_t ldx, int64_t n, int64_t k,
                             int trans, int lower,
                             int unit);
    int64_t (*lu[2])(void *a, int64_t lda, int64_t m, int64_t n, void *rows, int64_t width, int64_t *order);
    void (*qr[2])(void *a, int64_t lda, int64_t m, int64_t n, void *t, void *work);
    void (*transposed[2])(void *y, int64_t ldy, const void *x, int64_t ldx, int64_t m, int64_t n);
    /* negates x (n, with a stride) and y (adjacent) if x counts as negative (points_down in
     * op/matrix/dense.h) */
    void (*point_up[2])(void *x, int64_t stride, int64_t n, void *y, int64_t ny);
    int width[2];               /* elements of a vector */
    int (*lanes[2][FACTOR_NKIND])(const int64_t *g, const void *const *in, void *const *out, void *work);
    void (*block_t[2])(void *l, const void *vv, const void *factor, int64_t b);
    int (*read[2])(struct mc_factor_spectrum *s, const void *x); /* 0: some elements are not finite */
    void (*reduce[2])(struct mc_factor_spectrum *s);
    void (*iterate[2])(struct mc_factor_spectrum *s);
    void (*finish[2])(struct mc_factor_spectrum *s);
};
extern const struct mc_factor_level *const mc_factor_avx512, *const mc_factor_avx2, *const mc_factor_generic;
const struct mc_factor_level *mc_factor_level(void);    /* the widest that runs */

/* ---- cpu/update.c ---- */
/* c (m, n) += alpha * a (m, k) * b (k, n), any strides of a and b.  above: only elements on and above the
 * diagonal are needed, others may be changed. */
struct mc_factor_update {
    int64_t m, n, k;
    double alpha;
    const void *a, *b;
    void *c;
    int64_t a_row, a_col, b_row, b_col, c_row;
    bool above;
};
size_t mc_factor_update_bytes(mc_dtype d, int slots);
void mc_factor_update(mc_dtype d, const struct mc_factor_update *u, void *buffer, int slots, int threads);

#endif

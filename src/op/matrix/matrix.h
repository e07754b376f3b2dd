/* matrix.h: factorizations of dense matrices and systems of equations.
 *
 *   factor problem   one kind of work on each matrix of a stack, with all sizes: struct mc_factor
 *   texts            the algorithms for any type of element, in rows.h, cholesky.h, triangular.h, lu.h,
 *                    qr.h, eigh.h, svd.h and eig.h.  They are the reference (matrix.c), the basis of the
 *                    solvers (src/heavy/factor), and a part of exported files (src/export/factor.c)
 *
 * Invariant: operands are dense matrices in C order, and each matrix is computed independently of the
 * others. */
#ifndef MC_MATRIX_H
#define MC_MATRIX_H

#include "graph/graph.h"

enum mc_factor_kind {
    FACTOR_CHOLESKY,    /* a -> l */
    FACTOR_TRIANGULAR,  /* t, b -> x */
    FACTOR_LU,          /* a -> both factors, order of rows (int64), sign of the order */
    FACTOR_SOLVE,       /* a, b -> x */
    FACTOR_INVERSE,     /* a -> x */
    FACTOR_QR,          /* a -> q, r */
    FACTOR_R,           /* a -> r */
    FACTOR_EIGH,        /* a -> w, v */
    FACTOR_EIGVALSH,    /* a -> w */
    FACTOR_SVD,         /* a -> u, s, vh */
    FACTOR_SVDVALS,     /* a -> s */
    FACTOR_EIG,         /* a -> w, v */
    FACTOR_EIGVALS,     /* a -> w */
    FACTOR_NKIND
};
enum { FACTOR_MOST_IN = 2, FACTOR_MOST_OUT = 3, FACTOR_SIZES = 6 };
struct mc_factor {
    enum mc_factor_kind kind;
    const char *op;                 /* in messages */
    mc_dtype dtype;                 /* float32 or float64 */
    int64_t batch;
    /* the numbers that the texts call g: sizes, then choices */
    int64_t g[FACTOR_SIZES];
    int nin, nout;
    int64_t in[FACTOR_MOST_IN], out[FACTOR_MOST_OUT]; /* elements of one matrix of each operand */
    size_t out_size[FACTOR_MOST_OUT];                 /* bytes of an element */
};
/* Computes one matrix.  Returns 0, or what mc_factor_failed takes, with the pivot at the start of work. */
typedef int64_t mc_factor_run(const int64_t *g, const void *const *in, void *const *out, void *work);

/* The kind of a node's work; FACTOR_NKIND: its op is none of these. */
enum mc_factor_kind mc_factor_kind_of(const struct mc_op *op);
/* The problem of a node at these types of its inputs, all sizes known. */
mc_status mc_factor_of(const mc_node *n, const struct mc_type *in, struct mc_factor *f);
/* bytes of `work` of one matrix */
size_t mc_factor_work(const struct mc_factor *f);
/* The reference, by kind, of float32 and float64. */
extern mc_factor_run *const mc_factor_reference[2][FACTOR_NKIND];
/* The error for the matrix of that number: what run returned, and the pivot in work. */
mc_status mc_factor_failed(const struct mc_factor *f, int64_t matrix, int64_t bad, const void *work);
/* Computes all matrices of the stack, one after another. */
mc_status mc_factor_each(const struct mc_factor *f, mc_factor_run *run, const void *const *in,
                         void *const *out,
                         void *work);

/* ---- text.c: exported files ---- */
/* The texts that these kinds need, a bit for each kind, for float32 and float64. */
void mc_factor_text(struct mc_str *out, const unsigned kinds[2]);
bool mc_factor_is_name(const char *name); /* is it a function of the texts? */
/* The call for matrix `i` of the stack, whose value is that of mc_factor_run; `sizes` is f->g.  operand:
 * addresses, results from FACTOR_MOST_IN on. */
void mc_factor_call(struct mc_str *out, const struct mc_factor *f, const char *const *operand,
                    const char *work);

#endif

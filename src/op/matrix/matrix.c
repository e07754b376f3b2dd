/* matrix.c: factor problems: from nodes, by the reference, and their errors.
 *
 * Invariant: the reference rounds every product and every sum (src/op is compiled so). */
#include "op/matrix/matrix.h"
#include "op/op.h"
#include <inttypes.h>
#include <math.h>

#define TARGET

#define R float
#define NAME(x) x##_f32
#include "op/matrix/all.h"
#undef R
#undef NAME
#define R double
#define NAME(x) x##_f64
#include "op/matrix/all.h"

mc_factor_run *const mc_factor_reference[2][FACTOR_NKIND] = { TABLE(f32), TABLE(f64) };

/* The ops by kind.  bad: what a positive number from the text says. */
static const struct kind {
    const char *op;
    int nin, nout;
    const char *bad;
} kinds[FACTOR_NKIND] = {
    [FACTOR_CHOLESKY]   = { "cholesky", 1, 1, "is not positive definite: pivot" },
    [FACTOR_TRIANGULAR] = { "solve_triangular", 2, 1, "is singular: element on the diagonal" },
    [FACTOR_LU]         = { "lu_rows", 1, 3, "" },
    [FACTOR_SOLVE]      = { "solve", 2, 1, "is singular: pivot" },
    [FACTOR_INVERSE]    = { "matrix_inverse", 1, 1, "is singular: pivot" },
    [FACTOR_QR]         = { "qr_factors", 1, 2, "" },
    [FACTOR_R]          = { "qr_r", 1, 1, "" },
    [FACTOR_EIGH]       = { "eigh", 1, 2, "does not converge: eigenvalue" },
    [FACTOR_EIGVALSH]   = { "eigvalsh", 1, 1, "does not converge: eigenvalue" },
    [FACTOR_SVD]        = { "svd", 1, 3, "does not converge: singular value" },
    [FACTOR_SVDVALS]    = { "svdvals", 1, 1, "does not converge: singular value" },
    [FACTOR_EIG]        = { "eig", 1, 2, "does not converge: eigenvalue" },
    [FACTOR_EIGVALS]    = { "eigvals", 1, 1, "does not converge: eigenvalue" },
};

enum mc_factor_kind mc_factor_kind_of(const struct mc_op *op)
{
    int k = 0;
    while (k < FACTOR_NKIND && strcmp(kinds[k].op, op->name) != 0) {
        k++;
    }
    return (enum mc_factor_kind)k;
}

/* The numbers of one matrix: sizes, choices, elements of operands. */
static void sizes(const mc_node *n, int64_t m, int64_t c, int64_t k, struct mc_factor *f)
{
    const int64_t least = MC_MIN(m, c), most = MC_MAX(m, c), whole[2] = { least, most };
    int64_t *g = f->g, side;
    f->in[0] = m * c;
    f->in[1] = m * k;
    f->out[0] = m * c;
    g[0] = m;
    g[1] = c;
    switch (f->kind) {
    case FACTOR_CHOLESKY: break;
    case FACTOR_TRIANGULAR:
        g[1] = k;
        for (int i = 0; i < 3; i++) {
            g[2 + i] = mc_attr_int(&n->attr[i]);
        }
        f->out[0] = m * k;
        break;
    case FACTOR_LU:
        f->out[1] = m;
        f->out[2] = 1;
        f->out_size[1] = sizeof(int64_t);
        break;
    case FACTOR_SOLVE:
        g[1] = k;
        f->out[0] = m * k;
        break;
    case FACTOR_INVERSE: g[2] = 1; break;
    case FACTOR_QR:
        g[2] = whole[mc_attr_int(&n->attr[0]) != 0 && m > c];
        g[3] = 1;
        f->out[0] = m * g[2];
        f->out[1] = g[2] * c;
        break;
    case FACTOR_R:
        g[2] = least;
        f->out[0] = least * c;
        break;
    case FACTOR_SVD:
    case FACTOR_SVDVALS:
        side = f->kind == FACTOR_SVD && mc_attr_int(&n->attr[0]) ? most : least;
        g[2] = side;
        g[3] = f->kind == FACTOR_SVD;
        f->out[0] = g[3] ? m * (m > c ? side : m) : least;
        f->out[1] = least;
        f->out[2] = c * (m > c ? c : side);
        break;
    case FACTOR_EIGH:
    case FACTOR_EIG:
    case FACTOR_EIGVALSH:
    case FACTOR_EIGVALS:
        g[1] = f->kind == FACTOR_EIGH || f->kind == FACTOR_EIG;
        f->out[0] = m;
        f->out[1] = m * m;
        break;
    case FACTOR_NKIND: break;
    }
}

mc_status mc_factor_of(const mc_node *n, const struct mc_type *in, struct mc_factor *f)
{
    const int r = in[0].rank;
    *f = (struct mc_factor){ .kind = mc_factor_kind_of(n->op), .op = n->op->name, .dtype = in[0].dtype };
    if (f->kind == FACTOR_NKIND || r < 2) {
        return mc_fail(MC_EARG, "%s is no factorization", n->op->name);
    }
    f->nin = kinds[f->kind].nin;
    f->nout = kinds[f->kind].nout;
    f->batch = mc_dims_count(r - 2, in[0].dims);
    for (int i = 0; i < f->nout; i++) {
        f->out_size[i] = mc_dtypes[f->dtype].size;
    }
    sizes(n, in[0].dims[r - 2], in[0].dims[r - 1], f->nin > 1 ? in[1].dims[r - 1] : 0, f);
    return f->batch < 0 ? mc_fail(MC_ESHAPE, "%s: too many matrices", f->op) : MC_OK;
}

size_t mc_factor_work(const struct mc_factor *f)
{
    const size_t m = (size_t)f->g[0], n = (size_t)f->g[1], most = MC_MAX(m, n), least = MC_MIN(m, n),
                 c = (size_t)f->g[2];
    size_t count = 0;
    switch (f->kind) {
    case FACTOR_CHOLESKY: count = m * m; break;
    case FACTOR_TRIANGULAR:
    case FACTOR_LU:
    case FACTOR_NKIND: break;
    case FACTOR_SOLVE:
    case FACTOR_INVERSE: count = m * m + 2 * m + 2; break;
    case FACTOR_QR:
    case FACTOR_R: count = m * n + 2 * most; break;
    case FACTOR_EIGH:
    case FACTOR_EIGVALSH: count = 2 * m * m + 4 * m; break;
    case FACTOR_SVD:
    case FACTOR_SVDVALS: count = m * n + 2 * c * most + 2 * least * least + 5 * most; break;
    case FACTOR_EIG:
    case FACTOR_EIGVALS: count = 3 * m * m + 3 * m; break;
    }
    return (count + 1) * mc_dtypes[f->dtype].size + 64;
}

mc_status mc_factor_failed(const struct mc_factor *f, int64_t matrix, int64_t bad, const void *work)
{
    char which[32] = "the matrix";
    const double pivot = mc_load_f64(f->dtype, work);
    if (f->batch > 1) {
        mc_snprintf(which, sizeof which, "matrix %" PRId64, matrix);
    }
    if (bad == -1) {
        return mc_fail(MC_ECHECK, "%s: %s has elements that are not finite", f->op, which);
    }
    if (bad < 0) {
        return mc_fail(MC_ECHECK, "%s: %s has complex eigenvalues; there are no complex dtypes", f->op,
                       which);
    }
    return mc_fail(MC_ECHECK, "%s: %s %s %" PRId64 " is %g", f->op, which, kinds[f->kind].bad, bad - 1,
                   pivot);
}

mc_status mc_factor_each(const struct mc_factor *f, mc_factor_run *run, const void *const *in,
                         void *const *out,
                         void *work)
{
    const size_t size = mc_dtypes[f->dtype].size;
    for (int64_t i = 0; i < f->batch; i++) {
        const void *from[FACTOR_MOST_IN] = { NULL };
        void *to[FACTOR_MOST_OUT] = { NULL };
        for (int k = 0; k < f->nin; k++) {
            from[k] = (const char *)in[k] + (size_t)(i * f->in[k]) * size;
        }
        for (int k = 0; k < f->nout; k++) {
            to[k] = (char *)out[k] + (size_t)(i * f->out[k]) * f->out_size[k];
        }
        const int64_t bad = run(f->g, from, to, work);
        if (bad) {
            return mc_factor_failed(f, i, bad, work);
        }
    }
    return MC_OK;
}

/* cusolver.c: factorizations of large matrices by cuSOLVER, triangular systems by cuBLAS, one matrix after
 * another.
 *
 * The libraries are column-major.  Where a triangle or a symmetric matrix is given, or the result is as good
 * transposed, the memory is passed as it is, which is the transpose:
 *
 *   triangular X' T' = B', from the right
 *   inverse    A' Y = 1 with the factors of A: Y is the transposed inverse
 *   eigh       the lower triangle again
 *   svd        of a wide matrix: the transpose's, with the vectors exchanged
 *
 * Others are copied to columns, which the libraries overwrite: pivots and signs are those of rows.  So are
 * those of cholesky: the library factorizes a lower triangle in less time than an upper one.
 *
 * Invariant: all work is on the device's stream. */
#include "heavy/factor/cuda/cusolver.h"
#include "heavy/factor/cuda/large_args.h"
#include "value/value.h"
#include <math.h>

enum { R_32F = 0, R_64F = 1, FILL_UPPER = 1, FILL_LOWER = 0, RIGHT = 1, TURNED = 1 };
enum { WHOLE, BELOW, ABOVE };
enum { TRANSPOSE, UNIT, FINITE, REPLACE, TELL, ZEROS, ORDERS, UPRIGHT, AGAIN, NKERNEL };
/* parts of the scratch */
enum { PART_A, PART_B, PART_U, PART_V, PART_W, PART_T, PART_PIVOTS, PART_INFO, PART_FLAG, PART_WORK, NPART };

static const char text[] = {
#include "heavy/factor/cuda/large_text.h"
    , 0 };
const struct mc_cuda_text mc_factor_large_text = { "heavy/factor/cuda/large.cu", text };
static const char *const kernel_name[NKERNEL] = {
    [TRANSPOSE] = "transpose", [UNIT] = "unit",     [FINITE] = "infinities", [REPLACE] = "replace",
    [TELL] = "tell",           [ZEROS] = "zeros",   [ORDERS] = "orders",     [UPRIGHT] = "upright",
    [AGAIN] = "again",
};

struct mc_cusolver {
    struct mc_factor f;
    int type;
    size_t size;                /* bytes of an element */
    int64_t m, n, most, least, side; /* side: columns of q or u */
    size_t at[NPART], total, work;
    void *host;
    size_t nhost;
    int nreflect;               /* elements that orgqr needs */
    void *kernel[NKERNEL];
};
/* one matrix of a run */
struct run {
    const struct mc_cusolver *x;
    struct mc_cuda *d;
    const char *in[FACTOR_MOST_IN];
    char *out[FACTOR_MOST_OUT], *part[NPART];
    struct mc_large_args args;  /* the error words */
};

/* ---- handles ---- */

static mc_status library(int code, const char *what)
{
    return code ? mc_fail(MC_EUNSUPPORTED, "%s failed with status %d", what, code) : MC_OK;
}

/* A handle is kept when all that belongs to it was made. */
static void *solver(void)
{
    struct mc_cuda *d = mc_cuda_current();
    void *made = NULL, *with = NULL;
    if (d->solver) {
        return d->solver;
    }
    if (mc_nv.cusolverDnCreate(&made) != 0) {
        made = NULL;
    } else if (mc_nv.cusolverDnSetStream(made, d->stream) == 0 && mc_nv.cusolverDnCreateParams(&with) == 0) {
        d->solver = made;
        d->solver_options = with;
        return made;
    }
    if (made) {
        mc_nv.cusolverDnDestroy(made);
    }
    mc_fail(MC_EUNSUPPORTED, "%s: cuSOLVER does not start", d->name);
    return NULL;
}

static void *options(void)
{
    return mc_cuda_current()->solver_options;
}

static void *triangular(void)
{
    struct mc_cuda *d = mc_cuda_current();
    void *made = NULL;
    if (d->triangular) {
        return d->triangular;
    }
    if (mc_nv.cublasCreate_v2(&made) != 0) {
        made = NULL;
    } else if (mc_nv.cublasSetStream_v2(made, d->stream) == 0) {
        return d->triangular = made;
    }
    if (made) {
        mc_nv.cublasDestroy_v2(made);
    }
    mc_fail(MC_EUNSUPPORTED, "%s: cuBLAS does not start", d->name);
    return NULL;
}

const char *mc_cusolver_refuse(const struct mc_factor *f)
{
    const int64_t most = MC_MAX(f->g[0], f->g[1]);
    bool empty = f->batch < 1;
    for (int i = 0; i < f->nin; i++) {
        empty |= f->in[i] < 1;
    }
    for (int i = 0; i < f->nout; i++) {
        empty |= f->out[i] < 1;
    }
    return f->kind == FACTOR_EIG || f->kind == FACTOR_EIGVALS ? "has symmetric eigenvalues only"
           : empty || most > 1 << 20 || f->in[0] > 1 << 30    ? "takes other sizes"
           : !mc_nv_found(f->kind == FACTOR_TRIANGULAR ? NV_CUBLAS : NV_CUSOLVER)->present
               ? "finds no library"
               : NULL;
}

/* ---- scratch ---- */

static void part(struct mc_cusolver *x, int which, int64_t elements, size_t size)
{
    x->at[which] = x->total;
    x->total += mc_work_rounded((size_t)elements * size);
}

/* The library's own memory: the larger of what several of its functions need. */
static void needs(struct mc_cusolver *x, size_t device, size_t host)
{
    x->work = MC_MAX(x->work, device);
    x->nhost = MC_MAX(x->nhost, host);
}

static mc_status sizes_of_svd(struct mc_cusolver *x)
{
    const int64_t p = x->most, q = x->least;
    const int wanted = x->f.kind == FACTOR_SVD, t = x->type;
    const signed char u = (signed char)(!wanted       ? 'N'
                                        : x->side > q ? 'A'
                                                      : 'S'),
                      v = (signed char)(wanted ? 'S' : 'N');
    size_t device = 0, host = 0;
    part(x, PART_A, p * q, x->size);
    part(x, PART_U, p * x->side, x->size);
    part(x, PART_V, q * q, x->size);
    part(x, PART_W, wanted ? q * q : 1, x->size);
    TRY(library(mc_nv.cusolverDnXgesvdp_bufferSize(solver(), options(), 1, x->side == q, p, q, t, NULL, p, t,
                                                   NULL, t, NULL, p, t, NULL, q, t, &device, &host),
                "cusolverDnXgesvdp_bufferSize"));
    needs(x, device, host);
    TRY(library(mc_nv.cusolverDnXgesvd_bufferSize(solver(), options(), u, v, p, q, t, NULL, p, t, NULL, t,
                                                  NULL, p, t, NULL, q, t, &device, &host),
                "cusolverDnXgesvd_bufferSize"));
    needs(x, device, host);
    return MC_OK;
}

static mc_status sizes_of_qr(struct mc_cusolver *x)
{
    size_t device = 0, host = 0;
    const int m = (int)x->m, c = (int)x->side, k = (int)x->least;
    part(x, PART_A, x->m * MC_MAX(x->n, x->side), x->size);
    part(x, PART_T, x->least, x->size);
    TRY(library(mc_nv.cusolverDnXgeqrf_bufferSize(solver(), options(), x->m, x->n, x->type, NULL, x->m,
                                                  x->type, NULL, x->type, &device, &host),
                "cusolverDnXgeqrf_bufferSize"));
    needs(x, device, host);
    if (x->f.kind == FACTOR_QR) {
        TRY(library(x->type == R_64F
                        ? mc_nv.cusolverDnDorgqr_bufferSize(solver(), m, c, k, NULL, m, NULL, &x->nreflect)
                        : mc_nv.cusolverDnSorgqr_bufferSize(solver(), m, c, k, NULL, m, NULL, &x->nreflect),
                    "cusolverDnorgqr_bufferSize"));
        needs(x, (size_t)x->nreflect * x->size, 0);
    }
    return MC_OK;
}

static mc_status sizes_of_elimination(struct mc_cusolver *x)
{
    size_t device = 0, host = 0;
    const int64_t cols = x->f.kind == FACTOR_LU ? x->n : x->m;
    part(x, PART_A, x->m * cols, x->size);
    part(x, PART_B, x->f.kind == FACTOR_SOLVE && x->n > 1 ? x->m * x->n : 1, x->size);
    part(x, PART_PIVOTS, MC_MIN(x->m, cols), sizeof(int64_t));
    TRY(library(mc_nv.cusolverDnXgetrf_bufferSize(solver(), options(), x->m, cols, x->type, NULL, x->m,
                                                  x->type, &device, &host),
                "cusolverDnXgetrf_bufferSize"));
    needs(x, device, host);
    return MC_OK;
}

static mc_status sizes_of_others(struct mc_cusolver *x)
{
    size_t device = 0, host = 0;
    if (x->f.kind == FACTOR_CHOLESKY) {
        part(x, PART_A, x->m * x->m, x->size);
        TRY(library(mc_nv.cusolverDnXpotrf_bufferSize(solver(), options(), FILL_LOWER, x->m, x->type, NULL,
                                                      x->m, x->type, &device, &host),
                    "cusolverDnXpotrf_bufferSize"));
    } else if (x->f.kind != FACTOR_TRIANGULAR) {
        part(x, PART_A, x->m * x->m, x->size);
        TRY(library(mc_nv.cusolverDnXsyevd_bufferSize(solver(), options(), x->f.kind == FACTOR_EIGH,
                                                      FILL_UPPER, x->m, x->type, NULL, x->m, x->type, NULL,
                                                      x->type, &device, &host),
                    "cusolverDnXsyevd_bufferSize"));
    }
    needs(x, device, host);
    return MC_OK;
}

static mc_status sizes(struct mc_cusolver *x)
{
    part(x, PART_INFO, 1, sizeof(int));
    part(x, PART_FLAG, 1, sizeof(int));
    switch (x->f.kind) {
    case FACTOR_SVD:
    case FACTOR_SVDVALS: TRY(sizes_of_svd(x)); break;
    case FACTOR_QR:
    case FACTOR_R: TRY(sizes_of_qr(x)); break;
    case FACTOR_LU:
    case FACTOR_SOLVE:
    case FACTOR_INVERSE: TRY(sizes_of_elimination(x)); break;
    default: TRY(sizes_of_others(x)); break;
    }
    part(x, PART_WORK, (int64_t)x->work + 1, 1);
    return MC_OK;
}

static mc_status kernels(struct mc_cusolver *x)
{
    struct mc_str defines = { 0 };
    struct mc_cuda_kernel_ref k[NKERNEL];
    for (int i = 0; i < NKERNEL; i++) {
        k[i] = (struct mc_cuda_kernel_ref){ &x->kernel[i], kernel_name[i] };
    }
    mc_cuda_types(&defines, x->f.dtype, false);
    return mc_cuda_kernels(&mc_factor_large_text, &defines, k, NKERNEL) ? MC_OK : mc_last_status();
}

struct mc_cusolver *mc_cusolver_new(const struct mc_factor *f)
{
    struct mc_cusolver *x = mc_calloc(1, sizeof *x, "plans");
    if (!x) {
        return NULL;
    }
    x->f = *f;
    x->type = f->dtype == MC_FLOAT64 ? R_64F : R_32F;
    x->size = mc_dtypes[f->dtype].size;
    x->m = f->g[0];
    x->n = f->g[1];
    x->most = MC_MAX(x->m, x->n);
    x->least = MC_MIN(x->m, x->n);
    x->side = f->g[2];
    void *const handle = f->kind == FACTOR_TRIANGULAR ? triangular() : solver();
    mc_status s = handle ? kernels(x) : mc_last_status();
    s = s < 0 ? s : sizes(x);
    s = s < 0 || (x->host = mc_alloc(x->nhost + 64, "plans")) ? s : MC_EMEMORY;
    if (s < 0) {
        mc_cusolver_free(x);
        return NULL;
    }
    return x;
}

void mc_cusolver_free(struct mc_cusolver *x)
{
    if (x) {
        mc_free(x->host);
        mc_free(x);
    }
}

size_t mc_cusolver_scratch(const struct mc_cusolver *x)
{
    return x->total;
}

/* ---- kernels ---- */

static mc_status launch(const struct run *r, int kernel, int64_t threads, const struct mc_large_args *a)
{
    struct mc_grid g = mc_cuda_grid_1d(threads, 256);
    g.threads[0] = kernel == TELL ? 1 : 256;
    g.blocks[0] = kernel == UPRIGHT ? (unsigned)threads : g.blocks[0];
    return mc_cuda_launch(r->d, r->x->kernel[kernel], kernel_name[kernel], &g, a, sizeof *a);
}

/* to (cols, rows) = the transpose of from (rows, cols), both in C order; kept: on which side of its diagonal
 * it is not zeros */
static mc_status transpose(const struct run *r, const void *from, int64_t rows, int64_t cols, int64_t ldf,
                           void *to, int64_t ldt, int kept)
{
    const struct mc_large_args a = { .from = from,
                                     .to = to,
                                     .rows = rows,
                                     .cols = cols,
                                     .ldf = ldf,
                                     .ldt = ldt,
                                     .triangle = kept };
    return launch(r, TRANSPOSE, MC_MAX(rows * cols / 4, (int64_t)256), &a);
}

static mc_status copy(const struct run *r, void *to, const void *from, int64_t elements)
{
    return mc_cuda_copy(r->d, to, from, (size_t)elements * r->x->size);
}

static mc_status simple(const struct run *r, int kernel, void *to, int64_t rows, int64_t cols)
{
    const struct mc_large_args a = { .to = to, .rows = rows, .cols = cols };
    return launch(r, kernel, rows * cols, &a);
}

/* PART_FLAG: is an element of the matrix not finite?  Then the copy of it that is worked on becomes zeros. */
static mc_status check_finite(const struct run *r, bool triangle, int64_t elements)
{
    const struct mc_cusolver *x = r->x;
    struct mc_large_args a = { .from = r->in[0], .rows = x->m, .cols = elements / x->m, .triangle = triangle,
                               .info = (int *)(void *)r->part[PART_FLAG] };
    TRY(mc_cuda_clear(r->d, r->part[PART_FLAG], sizeof(int)));
    TRY(launch(r, FINITE, elements, &a));
    a.to = r->part[PART_A];
    a.rows = elements;
    return launch(r, REPLACE, elements, &a);
}

static mc_status tell(const struct run *r, int flag, int64_t bad, const void *numbers)
{
    struct mc_large_args a = r->args;
    a.info = (int *)(void *)r->part[flag];
    a.bad = bad;
    a.from = numbers;
    return launch(r, TELL, 1, &a);
}

/* An error for a zero on the diagonal. */
static mc_status check_diagonal(const struct run *r, const void *a_, int64_t n)
{
    struct mc_large_args a = r->args;
    a.from = a_;
    a.rows = n;
    a.ldf = n + 1;
    return launch(r, ZEROS, 1, &a);
}

/* `count` vectors of `rows` elements, with those beside them, of `cols` elements; each adjacent */
static mc_status upright(const struct run *r, int64_t count, void *to, int64_t rows, void *beside,
                         int64_t cols)
{
    const struct mc_large_args a = {
        .to = to, .rows = rows, .ldt = rows, .beside = beside, .cols = cols, .ldf = cols
    };
    return launch(r, UPRIGHT, count, &a);
}

/* ---- the kinds ---- */

static int *info(const struct run *r)
{
    return (int *)(void *)r->part[PART_INFO];
}

static mc_status cholesky(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    struct mc_large_args a = r->args;
    char *columns = r->part[PART_A];
    TRY(transpose(r, r->in[0], x->m, x->m, x->m, columns, x->m, WHOLE));
    TRY(library(mc_nv.cusolverDnXpotrf(solver(), options(), FILL_LOWER, x->m, x->type, columns, x->m, x->type,
                                       r->part[PART_WORK], x->work, x->host, x->nhost, info(r)),
                "cusolverDnXpotrf"));
    TRY(transpose(r, columns, x->m, x->m, x->m, r->out[0], x->m, BELOW));
    a.from = r->in[0];
    a.to = r->out[0];
    a.rows = x->m;
    a.info = info(r);
    return launch(r, AGAIN, 1, &a);
}

static mc_status triangular_system(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    const int n = (int)x->m, k = (int)x->n, turned = x->f.g[2] != 0,
              fill = x->f.g[3] ? FILL_UPPER : FILL_LOWER, unit = x->f.g[4] != 0;
    const double one = 1;
    const float one32 = 1;
    TRY(copy(r, r->out[0], r->in[1], x->m * x->n));
    TRY(unit ? MC_OK : check_diagonal(r, r->in[0], x->m));
    return library(
        x->type == R_64F
            ? mc_nv.cublasDtrsm_v2(triangular(), RIGHT, fill, turned, unit, k, n, &one,
                                   (const double *)(const void *)r->in[0], n, (double *)(void *)r->out[0], k)
            : mc_nv.cublasStrsm_v2(triangular(), RIGHT, fill, turned, unit, k, n, &one32,
                                   (const float *)(const void *)r->in[0], n, (float *)(void *)r->out[0], k),
        "cublastrsm");
}

/* The factors of the matrix in columns, in PART_A. */
static mc_status eliminate(const struct run *r, int64_t cols)
{
    const struct mc_cusolver *x = r->x;
    TRY(transpose(r, r->in[0], x->m, cols, cols, r->part[PART_A], x->m, WHOLE));
    return library(mc_nv.cusolverDnXgetrf(solver(), options(), x->m, cols, x->type, r->part[PART_A], x->m,
                                          (int64_t *)(void *)r->part[PART_PIVOTS], x->type,
                                          r->part[PART_WORK], x->work, x->host, x->nhost, info(r)),
                   "cusolverDnXgetrf");
}

static mc_status substitute(const struct run *r, int turned, int64_t k, void *b)
{
    const struct mc_cusolver *x = r->x;
    return library(mc_nv.cusolverDnXgetrs(solver(), options(), turned, x->m, k, x->type, r->part[PART_A],
                                          x->m, (const int64_t *)(const void *)r->part[PART_PIVOTS], x->type,
                                          b, x->m, info(r)),
                   "cusolverDnXgetrs");
}

static mc_status lu(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    const struct mc_large_args a = { .to = r->out[2],
                                     .order = (int64_t *)(void *)r->out[1],
                                     .rows = x->m,
                                     .cols = x->least,
                                     .pivot = (const int64_t *)(const void *)r->part[PART_PIVOTS] };
    TRY(eliminate(r, x->n));
    TRY(transpose(r, r->part[PART_A], x->n, x->m, x->m, r->out[0], x->n, WHOLE));
    return launch(r, ORDERS, x->m, &a);
}

static mc_status solve(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    const bool inverse = x->f.kind == FACTOR_INVERSE;
    TRY(eliminate(r, x->m));
    TRY(check_diagonal(r, r->part[PART_A], x->m));
    if (inverse) {
        TRY(simple(r, UNIT, r->out[0], x->m, x->m));
        return substitute(r, TURNED, x->m, r->out[0]);
    }
    if (x->n == 1) {
        TRY(copy(r, r->out[0], r->in[1], x->m));
        return substitute(r, 0, 1, r->out[0]);
    }
    TRY(transpose(r, r->in[1], x->m, x->n, x->n, r->part[PART_B], x->m, WHOLE));
    TRY(substitute(r, 0, x->n, r->part[PART_B]));
    return transpose(r, r->part[PART_B], x->n, x->m, x->m, r->out[0], x->n, WHOLE);
}

static mc_status qr(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    const bool whole = x->f.kind == FACTOR_QR;
    const int m = (int)x->m, c = (int)x->side, k = (int)x->least;
    void *a = r->part[PART_A], *t = r->part[PART_T], *work = r->part[PART_WORK];
    TRY(transpose(r, r->in[0], x->m, x->n, x->n, a, x->m, WHOLE));
    TRY(library(mc_nv.cusolverDnXgeqrf(solver(), options(), x->m, x->n, x->type, a, x->m, x->type, t, x->type,
                                       work, x->work, x->host, x->nhost, info(r)),
                "cusolverDnXgeqrf"));
    char *upper = r->out[whole];
    TRY(transpose(r, a, x->n, x->side, x->m, upper, x->n, ABOVE));
    if (!whole) {
        return MC_OK;
    }
    TRY(library(x->type == R_64F
                    ? mc_nv.cusolverDnDorgqr(solver(), m, c, k, a, m, t, work, x->nreflect, info(r))
                    : mc_nv.cusolverDnSorgqr(solver(), m, c, k, a, m, t, work, x->nreflect, info(r)),
                "cusolverDnorgqr"));
    return transpose(r, a, x->side, x->m, x->m, r->out[0], x->side, WHOLE);
}

static mc_status eigh(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    const bool vectors = x->f.kind == FACTOR_EIGH;
    const int64_t n = x->m;
    struct mc_large_args nan = { .value = NAN, .info = (int *)(void *)r->part[PART_FLAG] };
    char *a = r->part[PART_A];
    TRY(copy(r, a, r->in[0], n * n));
    TRY(check_finite(r, true, n * n));
    TRY(library(mc_nv.cusolverDnXsyevd(solver(), options(), vectors, FILL_UPPER, n, x->type, a, n, x->type,
                                       r->out[0], x->type, r->part[PART_WORK], x->work, x->host, x->nhost,
                                       info(r)),
                "cusolverDnXsyevd"));
    TRY(tell(r, PART_INFO, 0, r->out[0]));
    if (vectors) {
        TRY(upright(r, n, a, n, a, 0));
        TRY(transpose(r, a, n, n, n, r->out[1], n, WHOLE));
    }
    for (int i = 0; i <= vectors; i++) {
        nan.to = r->out[i];
        nan.rows = i ? n * n : n;
        TRY(launch(r, REPLACE, nan.rows, &nan));
    }
    return MC_OK;
}

/* ---- svd ---- */

/* PART_A: the tall one of the matrix and its transpose, in columns */
static mc_status tall(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    TRY(x->m >= x->n ? transpose(r, r->in[0], x->m, x->n, x->n, r->part[PART_A], x->m, WHOLE)
                     : copy(r, r->part[PART_A], r->in[0], x->m * x->n));
    return check_finite(r, false, x->m * x->n);
}

/* By the polar decomposition, with vectors always: without them cuSOLVER 12 gives wrong values.  *good: it
 * was accurate: singular values near zero are shifted, and the library tells by how much. */
static mc_status by_polar(const struct run *r, char *s, bool *good)
{
    const struct mc_cusolver *x = r->x;
    const int64_t p = x->most, q = x->least;
    const int t = x->type;
    char first[sizeof(double)];
    double shifted = NAN;
    *good = mc_nv.cusolverDnXgesvdp(solver(), options(), 1, x->side == q, p, q, t, r->part[PART_A], p, t, s,
                                    t, r->part[PART_U], p, t, r->part[PART_V], q, t, r->part[PART_WORK],
                                    x->work, x->host, x->nhost, info(r), &shifted) == 0;
    TRY(mc_cuda_copy_to_host(r->d, first, s, x->size));
    *good = *good && shifted <= 8 * (t == R_64F ? 0x1p-52 : 0x1p-23) * mc_load_f64(x->f.dtype, first);
    LOG(LOG_PLAN, "svd: shifted %g of %g", shifted, mc_load_f64(x->f.dtype, first));
    return MC_OK;
}

static mc_status by_iteration(const struct run *r, char *s)
{
    const struct mc_cusolver *x = r->x;
    const int64_t p = x->most, q = x->least;
    const int t = x->type;
    const bool wanted = x->f.kind == FACTOR_SVD;
    TRY(tall(r));
    TRY(library(mc_nv.cusolverDnXgesvd(solver(), NULL,
                                       (signed char)(!wanted       ? 'N'
                                                     : x->side > q ? 'A'
                                                                   : 'S'),
                                       (signed char)(wanted ? 'S' : 'N'), p, q, t, r->part[PART_A], p, t, s,
                                       t, r->part[PART_U], p, t, r->part[PART_W], q, t, r->part[PART_WORK],
                                       x->work, x->host, x->nhost, info(r)),
                "cusolverDnXgesvd"));
    TRY(tell(r, PART_INFO, 0, NULL));
    return wanted ? transpose(r, r->part[PART_W], q, q, q, r->part[PART_V], q, WHOLE) : MC_OK;
}

static mc_status svd(const struct run *r)
{
    const struct mc_cusolver *x = r->x;
    const bool wanted = x->f.kind == FACTOR_SVD, upright_matrix = x->m >= x->n;
    const int64_t p = x->most, q = x->least;
    char *s = r->out[wanted], *u = r->part[PART_U], *v = r->part[PART_V];
    bool good = false;
    TRY(tall(r));
    TRY(by_polar(r, s, &good));
    TRY(good ? MC_OK : by_iteration(r, s));
    TRY(tell(r, PART_FLAG, -1, NULL));
    if (!wanted) {
        return MC_OK;
    }
    if (upright_matrix) {
        TRY(upright(r, q, u, p, v, q));
        TRY(copy(r, r->out[2], v, q * q));
        return transpose(r, u, x->side, p, p, r->out[0], x->side, WHOLE);
    }
    TRY(upright(r, q, v, q, u, p));
    TRY(copy(r, r->out[2], u, x->side * p));
    return transpose(r, v, q, q, q, r->out[0], q, WHOLE);
}

/* ---- a run ---- */

static mc_status (*const kinds[FACTOR_NKIND])(const struct run *r) = {
    [FACTOR_CHOLESKY] = cholesky, [FACTOR_TRIANGULAR] = triangular_system,
    [FACTOR_LU] = lu,             [FACTOR_SOLVE] = solve,
    [FACTOR_INVERSE] = solve,     [FACTOR_QR] = qr,
    [FACTOR_R] = qr,              [FACTOR_EIGH] = eigh,
    [FACTOR_EIGVALSH] = eigh,     [FACTOR_SVD] = svd,
    [FACTOR_SVDVALS] = svd,
};

mc_status mc_cusolver_run(const struct mc_cusolver *x, char *const *operand, char *scratch, int64_t *err,
                          int64_t number)
{
    const struct mc_factor *f = &x->f;
    struct run r = { .x = x, .d = mc_cuda_current(), .args = { .err = err, .number = number } };
    for (int i = 0; i < NPART; i++) {
        r.part[i] = scratch + x->at[i];
    }
    for (int64_t i = 0; i < f->batch; i++) {
        for (int k = 0; k < f->nin; k++) {
            r.in[k] = operand[k] + (size_t)(i * f->in[k]) * x->size;
        }
        for (int k = 0; k < f->nout; k++) {
            r.out[k] = operand[FACTOR_OUT + k] + (size_t)(i * f->out[k]) * f->out_size[k];
        }
        r.args.matrix = i;
        TRY(kinds[f->kind](&r));
    }
    return MC_OK;
}

/* lapack.c: factorizations by a LAPACK, through the Fortran interface: OpenBLAS, MKL, or whatever the flag
 * `lapack` names.
 *
 * A matrix in C order is the transposed matrix in LAPACK's order.  Where a symmetric matrix, or the
 * transposed problem, does not answer the question, matrices are copied.
 *
 * Invariant: the same bits on every run, but they may depend on the number of threads.  Signs of vectors
 * are those of the other solvers. */
#include "heavy/factor/solver.h"
#include "heavy/gemm/cpu/library.h"
#include <dlfcn.h>
#include <limits.h>

static const char *const files[] = { "libopenblas.so.0", "libmkl_rt.so.2", "liblapack.so.3", NULL };
static struct mc_library_gemm library = {
    .flag = FLAG_lapack, .solver = "lapack", .files = files, .lock = PTHREAD_MUTEX_INITIALIZER,
};
/* Libraries that come with SciPy put its name before theirs. */
static const char *const prefixes[] = { "", "scipy_" };

void *mc_factor_lapack_library(void)
{
    return mc_library_gemm_open(&library);
}

static void *find(const char *name)
{
    void *handle = mc_factor_lapack_library(), *found = NULL;
    for (size_t i = 0; i < NELEM(prefixes) && handle && !found; i++) {
        char whole[48];
        mc_snprintf(whole, sizeof whole, "%s%s", prefixes[i], name);
        found = dlsym(handle, whole);
    }
    return found;
}

/* Functions take all arguments by reference; the lengths of strings come last. */
typedef void any_fn(void);
enum routine { POTRF, GETRF, GETRS, TRSM, GEQRF, ORGQR, SYEVD, GESDD, NROUTINE };
static const char *const names[NROUTINE] = { "potrf", "getrf", "getrs", "trsm", "geqrf", "orgqr", "syevd",
    "gesdd" };
/* up to two routines of each kind */
static const struct needs {
    bool any;
    enum routine first, second;
} needs[FACTOR_NKIND] = {
    [FACTOR_CHOLESKY] = { true, POTRF, POTRF }, [FACTOR_TRIANGULAR] = { true, TRSM, TRSM },
        [FACTOR_LU] = { true, GETRF, GETRF },
    [FACTOR_SOLVE] = { true, GETRF, GETRS },    [FACTOR_INVERSE] = { true, GETRF, GETRS },
         [FACTOR_QR] = { true, GEQRF, ORGQR },
    [FACTOR_R] = { true, GEQRF, GEQRF },        [FACTOR_EIGH] = { true, SYEVD, SYEVD },
            [FACTOR_EIGVALSH] = { true, SYEVD, SYEVD },
    [FACTOR_SVD] = { true, GESDD, GESDD },      [FACTOR_SVDVALS] = { true, GESDD, GESDD },
};

static any_fn *routine(enum routine r, mc_dtype d)
{
    char name[16];
    any_fn *fn = NULL;
    mc_snprintf(name, sizeof name, "%c%s_", d == MC_FLOAT64 ? 'd' : 's', names[r]);
    void *found = find(name);
    memcpy(&fn, &found, sizeof fn);
    return fn;
}

typedef void potrf_(const char *, const int *, void *, const int *, int *, size_t);
typedef void getrf_(const int *, const int *, void *, const int *, int *, int *);
typedef void getrs_(const char *, const int *, const int *, const void *, const int *, const int *, void *,
                    const int *, int *,
                    size_t);
typedef void trsm_(const char *, const char *, const char *, const char *, const int *, const int *,
                   const void *, const void *,
                   const int *, void *, const int *, size_t, size_t, size_t, size_t);
typedef void geqrf_(const int *, const int *, void *, const int *, void *, void *, const int *, int *);
typedef void orgqr_(const int *, const int *, const int *, void *, const int *, const void *, void *,
                    const int *, int *);
typedef void syevd_(const char *, const char *, const int *, void *, const int *, void *, void *,
                    const int *, int *, const int *,
                    int *, size_t, size_t);
typedef void gesdd_(const char *, const int *, const int *, void *, const int *, void *, void *, const int *,
                    void *, const int *,
                    void *, const int *, int *, int *, size_t);

struct lapack {
    struct mc_plan base;
    struct mc_factor_stack stack;
    const struct mc_factor_level *level;
    any_fn *fn[2];
    int (*threads)(void);       /* NULL: the library has no such setting */
    void (*set_threads)(int);
    int lwork, liwork;
};
/* One matrix. */
struct call {
    const struct lapack *p;
    const struct mc_factor *f;
    int64_t size;
    bool f64;
    int m, n, c, k;
    char *work;
};

static size_t lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t cholesky(const struct call *c, const void *a, char *l)
{
    int info = 0;
    const int n = c->n;
    memcpy(l, a, (size_t)n * (size_t)n * (size_t)c->size);
    ((potrf_ *)c->p->fn[0])("U", &n, l, &n, &info, 1);
    if (info > 0) {
        memcpy(c->work, l + (int64_t)(info - 1) * (n + 1) * c->size, (size_t)c->size);
        const double pivot = mc_load_f64(c->f->dtype, c->work);
        return pivot == pivot
                   ? info
                   : c->p->level->run[c->f64][FACTOR_CHOLESKY](c->f->g, &a, (void *const *)&l, c->work);
    }
    for (int64_t i = 0; i < n; i++) {
        memset(l + (i * n + i + 1) * c->size, 0, (size_t)((n - i - 1) * c->size));
    }
    return 0;
}

/* X^T T^T = B^T, from the right. */
static int64_t triangular(const struct call *c, const void *t, const void *b, char *x)
{
    const int n = c->n, k = c->k;
    const int64_t *g = c->f->g;
    const double one = 1;
    const float one_f = 1;
    for (int64_t i = 0; i < n && !g[4]; i++) {
        if (mc_load_f64(c->f->dtype, (const char *)t + i * (n + 1) * c->size) == 0) {
            mc_store_f64(c->f->dtype, c->work, 0);
            return i + 1;
        }
    }
    memcpy(x, b, (size_t)n * (size_t)k * (size_t)c->size);
    ((trsm_ *)c->p->fn[0])("R", g[3] ? "U" : "L", g[2] ? "T" : "N", g[4] ? "U" : "N", &k, &n,
                           c->f64 ? (const void *)&one : &one_f, t, &n, x, &k, 1, 1, 1, 1);
    return 0;
}

static int64_t lu(const struct call *c, const void *a, char *f, int64_t *order, char *sign)
{
    const int m = c->m, n = c->n, few = MC_MIN(m, n);
    int info = 0, *pivot = (int *)(void *)(c->work + lines((size_t)m * (size_t)n * (size_t)c->size));
    bool odd = false;
    c->p->level->transposed[c->f64](c->work, m, a, n, m, n);
    ((getrf_ *)c->p->fn[0])(&m, &n, c->work, &m, pivot, &info);
    c->p->level->transposed[c->f64](f, n, c->work, m, n, m);
    for (int i = 0; i < m; i++) {
        order[i] = i;
    }
    for (int i = 0; i < few; i++) {
        const int64_t t = order[i];
        order[i] = order[pivot[i] - 1];
        order[pivot[i] - 1] = t;
        odd ^= pivot[i] - 1 != i;
    }
    mc_store_f64(c->f->dtype, sign, odd ? -1 : 1);
    return 0;
}

static int64_t solve(const struct call *c, const void *a, const void *b, char *x)
{
    const int n = c->n, k = c->k;
    char *right = c->work + lines((size_t)n * (size_t)n * (size_t)c->size);
    int info = 0, *pivot = (int *)(void *)(right + lines((size_t)n * (size_t)k * (size_t)c->size));
    c->p->level->transposed[c->f64](c->work, n, a, n, n, n);
    ((getrf_ *)c->p->fn[0])(&n, &n, c->work, &n, pivot, &info);
    if (info > 0) {
        mc_store_f64(c->f->dtype, c->work, 0);
        return info;
    }
    if (b) {
        c->p->level->transposed[c->f64](right, n, b, k, n, k);
    } else {
        memset(right, 0, (size_t)n * (size_t)k * (size_t)c->size);
        for (int64_t i = 0; i < n; i++) {
            mc_store_f64(c->f->dtype, right + i * (n + 1) * c->size, 1);
        }
    }
    ((getrs_ *)c->p->fn[1])("N", &n, &k, c->work, &n, pivot, right, &n, &info, 1);
    c->p->level->transposed[c->f64](x, k, right, n, k, n);
    return 0;
}

static int64_t qr(const struct call *c, const void *a, char *q, char *r)
{
    const int m = c->m, n = c->n, few = MC_MIN(m, n), wide = MC_MAX(n, c->c);
    char *tau = c->work + lines((size_t)m * (size_t)wide * (size_t)c->size),
         *work = tau + lines((size_t)few * (size_t)c->size);
    int info = 0;
    c->p->level->transposed[c->f64](c->work, m, a, n, m, n);
    ((geqrf_ *)c->p->fn[0])(&m, &n, c->work, &m, tau, work, &c->p->lwork, &info);
    c->p->level->transposed[c->f64](r, n, c->work, m, n, c->c);
    for (int64_t i = 1; i < c->c; i++) {
        memset(r + i * n * c->size, 0, (size_t)(MC_MIN(i, n) * c->size));
    }
    if (q) {
        ((orgqr_ *)c->p->fn[1])(&m, &c->c, &few, c->work, &m, tau, work, &c->p->lwork, &info);
        c->p->level->transposed[c->f64](q, c->c, c->work, m, c->c, m);
    }
    return 0;
}

static int64_t eigh(const struct call *c, const void *a, char *w, char *v)
{
    const int n = c->n;
    const size_t bytes = (size_t)n * (size_t)n * (size_t)c->size;
    char *work = c->work + lines(bytes);
    int info = 0, *iwork = (int *)(void *)(work + lines((size_t)c->p->lwork * (size_t)c->size));
    memcpy(c->work, a, bytes);
    ((syevd_ *)c->p->fn[0])(v ? "V" : "N", "U", &n, c->work, &n, w, work, &c->p->lwork, iwork, &c->p->liwork,
                            &info, 1, 1);
    for (int64_t i = 0; i < n && v; i++) {
        c->p->level->point_up[c->f64](c->work + i * n * c->size, 1, n, NULL, 0);
    }
    if (v) {
        c->p->level->transposed[c->f64](v, n, c->work, n, n, n);
    }
    return info > 0 ? 1 : 0;
}

/* A^T = U S V^T gives A = V S U^T. */
static int64_t svd(const struct call *c, const void *a, char *u, char *s, char *vh)
{
    const int m = c->m, n = c->n, few = MC_MIN(m, n), one = 1;
    const int columns = m > n ? c->c : few, rows = m < n ? c->c : few; /* of u, of vh */
    const size_t bytes = (size_t)m * (size_t)n * (size_t)c->size;
    char *work = c->work + lines(bytes);
    int info = 0, *iwork = (int *)(void *)(work + lines((size_t)c->p->lwork * (size_t)c->size));
    memcpy(c->work, a, bytes);
    ((gesdd_ *)c->p->fn[0])(!u                            ? "N"
                            : MC_MAX(columns, rows) > few ? "A"
                                                          : "S",
                            &n, &m, c->work, &n, s, vh, u ? &n : &one, u, u ? &columns : &one, work,
                            &c->p->lwork, iwork, &info, 1);
    for (int64_t i = 0; i < few && u; i++) {
        c->p->level->point_up[c->f64](u + i * c->size, columns, m, vh + i * n * c->size, n);
    }
    return info > 0 ? 1 : 0;
}

static int64_t one(const struct mc_factor *f, const void *const *in, void *const *out, char *work,
                   int threads, void *arg)
{
    const struct lapack *p = arg;
    struct call c = { .p = p, .f = f, .size = mc_dtypes[f->dtype].size, .f64 = f->dtype == MC_FLOAT64,
        .m = (int)f->g[0],
                      .n = (int)f->g[0], .c = (int)f->g[2], .k = (int)f->g[1], .work = work };
    (void)threads;
    switch (f->kind) {
    case FACTOR_CHOLESKY: return cholesky(&c, in[0], out[0]);
    case FACTOR_TRIANGULAR: return triangular(&c, in[0], in[1], out[0]);
    case FACTOR_SOLVE: return solve(&c, in[0], in[1], out[0]);
    case FACTOR_INVERSE: return solve(&c, in[0], NULL, out[0]);
    case FACTOR_EIGH: return eigh(&c, in[0], out[0], out[1]);
    case FACTOR_EIGVALSH: return eigh(&c, in[0], out[0], NULL);
    default: break;
    }
    c.n = (int)f->g[1];
    switch (f->kind) {
    case FACTOR_LU: return lu(&c, in[0], out[0], out[1], out[2]);
    case FACTOR_QR: return qr(&c, in[0], out[0], out[1]);
    case FACTOR_R: return qr(&c, in[0], NULL, out[0]);
    case FACTOR_SVD: return svd(&c, in[0], out[0], out[1], out[2]);
    default: return svd(&c, in[0], NULL, out[0], NULL);
    }
}

/* ---- the solver ---- */

/* Sets the number of threads of OpenBLAS; returns the old one. */
static int set_threads(const struct lapack *p, int n)
{
    const int before = p->threads ? p->threads() : n;
    if (p->set_threads && before != n) {
        p->set_threads(n);
    }
    return before;
}

/* Are there values with which a routine might not end? */
static bool all_finite(const struct mc_factor *f, const void *a)
{
    double sum = 0;
    const size_t n = (size_t)(f->in[0] * f->batch);
    const float *x = a;
    const double *y = a;
    for (size_t i = 0; i < n; i++) {
        sum += f->dtype == MC_FLOAT64 ? y[i] - y[i] : (double)(x[i] - x[i]);
    }
    return sum == 0;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct lapack *p = (const struct lapack *)(const void *)plan;
    struct mc_factor_stack stack = p->stack;
    const struct mc_factor *f = stack.f = factoring(plan->problem);
    if (f->kind >= FACTOR_EIGH && !all_finite(f, operand[0])) { /* the reference defines what happens */
        void *work = mc_alloc(mc_factor_work(f), "factor");
        const mc_status s = work ? mc_factor_each(f, mc_factor_reference[f->dtype == MC_FLOAT64][f->kind],
                                                  (const void *const *)operand, operand + FACTOR_OUT, work)
                                 : MC_EMEMORY;
        mc_free(work);
        return s;
    }
    stack.arg = (void *)(uintptr_t)p;
    const int before = set_threads(p, threads > 0 ? MC_MIN(threads, mc_team_size()) : mc_team_size());
    const mc_status s = mc_factor_stack_run(&stack, operand, workspace, 1);
    set_threads(p, before);
    return s;
}

static const char *refuse(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    int64_t most = 0, least = INT_MAX;
    for (int i = 0; i < f->nin; i++) {
        most = MC_MAX(most, f->in[i]);
        least = MC_MIN(least, f->in[i]);
    }
    for (int i = 0; i < f->nout; i++) {
        most = MC_MAX(most, f->out[i]);
    }
    return !needs[f->kind].any ? "has no such routine"
           : least == 0        ? "takes no empty matrices"
           : most > INT_MAX    ? "takes sizes of 31 bits only"
                               : NULL;
}

static const char *missing(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    return !mc_library_gemm_open(&library) ? "finds no library"
           : !routine(needs[f->kind].first, f->dtype) || !routine(needs[f->kind].second, f->dtype)
               ? "finds no such routine in the library"
               : NULL;
}

/* As OpenBLAS was measured on a Zen 5 by one thread.  A library that is not known is used only if it was
 * timed. */
static double estimate(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    const bool f64 = f->dtype == MC_FLOAT64, qr_ = f->kind == FACTOR_QR || f->kind == FACTOR_R;
    const double square = (double)f->g[0] * (double)f->g[0] * (double)f->batch, flops = mc_factor_flops(f),
                 each = flops / (double)MC_MAX(f->batch, (int64_t)1);
    if (each < 2e6 || p->options.mode != PLAN_ESTIMATE ||
        !(find("openblas_get_config") || find("MKL_Get_Version"))) {
        return 1 + flops * 1e-9;
    }
    return f->kind >= FACTOR_EIGH
               ? 1e-5 + (f->kind >= FACTOR_SVD ? 6.2e-8 : 4.5e-8) * square + flops * (f64 ? 1.3e-11 : 8e-12)
           : qr_ ? 1e-5 + flops * (f64 ? 2.7e-11 : 1.8e-11)
                 : 1e-5 + 2e-9 * square + flops * (f64 ? 2.1e-11 : 1.2e-11);
}

/* Asks the routine for the size of its workspace. */
static bool ask(struct lapack *d, const struct mc_factor *f)
{
    const bool svd = f->kind == FACTOR_SVD || f->kind == FACTOR_SVDVALS;
    const int m = (int)f->g[0],
              n = (int)(f->kind == FACTOR_EIGH || f->kind == FACTOR_EIGVALSH ? f->g[0] : f->g[1]),
              few = MC_MIN(m, n), query = -1, c = (int)f->g[2], one_ = 1;
    char best[2][8] = { { 0 }, { 0 } };
    int info = 0;
    d->liwork = 8 * few;
    if (f->kind == FACTOR_QR || f->kind == FACTOR_R) {
        ((geqrf_ *)d->fn[0])(&m, &n, best[0], &m, best[0], best[0], &query, &info);
        if (f->kind == FACTOR_QR && info == 0) {
            ((orgqr_ *)d->fn[1])(&m, &c, &few, best[0], &m, best[0], best[1], &query, &info);
        }
    } else if (svd) {
        const int columns = m > n ? c : few;
        ((gesdd_ *)d->fn[0])(f->kind == FACTOR_SVDVALS ? "N"
                             : c > few                 ? "A"
                                                       : "S",
                             &n, &m, best[0], &n, best[0], best[0], f->kind == FACTOR_SVD ? &n : &one_,
                             best[0], f->kind == FACTOR_SVD ? &columns : &one_, best[1], &query, &d->liwork,
                             &info, 1);
        d->liwork = 8 * few;
    } else if (f->kind == FACTOR_EIGH || f->kind == FACTOR_EIGVALSH) {
        ((syevd_ *)d->fn[0])(f->kind == FACTOR_EIGH ? "V" : "N", "U", &n, best[0], &n, best[0], best[1],
                             &query, &d->liwork, &query, &info, 1, 1);
    }
    d->lwork = (int)MC_MAX(MC_MAX(mc_load_f64(f->dtype, best[0]), mc_load_f64(f->dtype, best[1])), 1) + 8;
    return info == 0;
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    const char *no = missing(p);
    if (no) {
        mc_fail(MC_EUNSUPPORTED, "lapack: %s", no);
        return NULL;
    }
    struct lapack *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->level = mc_factor_level();
    d->fn[0] = routine(needs[f->kind].first, f->dtype);
    d->fn[1] = routine(needs[f->kind].second, f->dtype);
    void *found[2] = { find("openblas_get_num_threads"), find("openblas_set_num_threads") };
    memcpy(&d->threads, &found[0], sizeof d->threads);
    memcpy(&d->set_threads, &found[1], sizeof d->set_threads);
    if (!ask(d, f)) {
        mc_free(d);
        mc_fail(MC_EUNSUPPORTED, "lapack: the library does not take the sizes");
        return NULL;
    }
    const size_t m = (size_t)f->g[0], n = (size_t)f->g[1], wide = MC_MAX(MC_MAX(m, n), (size_t)f->g[2]),
                 size = mc_dtypes[f->dtype].size;
    d->stack = (struct mc_factor_stack){ .one = one,
                                         .slots = 1,
                                         .bytes = lines(m * wide * size) + lines(m * MC_MAX(m, n) * size) +
                                                  lines((size_t)d->lwork * size) + lines(wide * size) +
                                                  lines(((size_t)d->liwork + wide) * sizeof(int)) + 512 };
    d->base.workspace = d->stack.bytes;
    return &d->base;
}

const struct mc_solver mc_factor_lapack = {
    .name = "lapack", .refuse = refuse, .missing = missing, .estimate = estimate, .plan = plan,
};

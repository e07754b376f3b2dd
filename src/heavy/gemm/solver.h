/* solver.h: the interface among the solvers of matrix products.
 *
 * Invariant: a result depends on the problem and the kernel, not on the number of threads: work is divided
 * over batch, m and n, and over k only in a way that depends on the shape (splitk.c). */
#ifndef MC_GEMM_SOLVER_H
#define MC_GEMM_SOLVER_H

#include "device/cpu/cpu.h"
#include "heavy/gemm/gemm.h"
#include "heavy/gemm/cpu/kernel.h"
#include "value/value.h"

/* ---- table.c ---- */
extern const struct mc_solver *const mc_gemm_solvers[];
extern const struct mc_solver mc_gemm_direct, mc_gemm_skinny, mc_gemm_packed, mc_gemm_splitk, mc_gemm_tall,
    mc_gemm_onednn, mc_gemm_blas, mc_gemm_portable, mc_gemm_portable_columns, mc_gemm_reference;

/* ---- problem.c ---- */
/* 'n': the second index has stride 1; 't': the first; 'x': neither.  The stride of an axis of size 1 is
 * arbitrary. */
char mc_gemm_order(const int64_t *strides, int64_t rows, int64_t cols);
void mc_gemm_key(const struct mc_problem *p, struct mc_str *out);
void mc_gemm_extents(const struct mc_gemm_problem *p, struct mc_extent e[4]); /* A, B, C, C0 */
bool mc_gemm_possible(const struct mc_gemm_problem *p);                       /* false: the error is set */
void mc_gemm_stack(struct mc_gemm_problem *p);  /* turns a batch with one B into one product if possible */
mc_status mc_gemm_compare(const struct mc_gemm_problem *p, const struct mc_plan *plan, const void *got,
                          const void *want);

/* ---- run.c: one call of a plan ---- */
struct mc_gemm_run {
    const struct mc_gemm_problem *p;
    const char *a, *b, *c0; /* c0 is NULL when beta is 0 */
    char *prepared;         /* B in panels; or NULL */
    char *c;
    mc_gemm_epilogue *epilogue; /* NULL: none */
    void *arg;
    int64_t size; /* of an element */
    char *workspace;
    int threads;
};
struct mc_gemm_run mc_gemm_bind(const struct mc_plan *plan, void *const *operand, void *workspace,
                                int threads);
/* Sets c0 and beta of the tile at (i, j).  If the columns of C0 do not have stride 1, they are copied to
 * spare (mr, nr). */
void mc_gemm_tile_c0(const struct mc_gemm_run *r, int64_t batch, int64_t i, int64_t j, struct mc_gemm_tile *t,
                     void *spare);
/* For solvers that do not run the epilogue on tiles: runs it on all of C, in blocks of rows. */
void mc_gemm_finish_all(const struct mc_gemm_run *r);

static inline const struct mc_gemm_problem *gemm(const struct mc_problem *p)
{
    return (const struct mc_gemm_problem *)(const void *)p;
}

static inline const void *gemm_a(const struct mc_gemm_run *r, int64_t batch, int64_t i, int64_t k)
{
    const int64_t *s = r->p->as;
    return r->a + (batch * s[0] + i * s[1] + k * s[2]) * r->size;
}

static inline const void *gemm_b(const struct mc_gemm_run *r, int64_t batch, int64_t k, int64_t j)
{
    const int64_t *s = r->p->bs;
    return r->b + (batch * s[0] + k * s[1] + j * s[2]) * r->size;
}

static inline void *gemm_c(const struct mc_gemm_run *r, int64_t batch, int64_t i, int64_t j)
{
    const int64_t *s = r->p->cs;
    return r->c + (batch * s[0] + i * s[1] + j * s[2]) * r->size;
}

static inline const void *gemm_c0(const struct mc_gemm_run *r, int64_t batch, int64_t i, int64_t j)
{
    const int64_t *s = r->p->c0s;
    return r->c0 ? r->c0 + (batch * s[0] + i * s[1] + j * s[2]) * r->size : NULL;
}

/* Runs the epilogue, if any, on the finished columns [j, j+n) of rows [i, i+m). */
static inline void gemm_finish(const struct mc_gemm_run *r, int64_t batch, int64_t i, int64_t j, int64_t m,
                               int64_t n)
{
    if (r->epilogue) {
        r->epilogue(r->arg, batch, i, j, m, n, gemm_c(r, batch, i, j), r->p->cs[1]);
    }
}

static inline int64_t gemm_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Begin of range i, where [0, n) is divided into `parts` nearly equal ranges of multiples of `unit`. */
static inline int64_t gemm_range_begin(int64_t n, int64_t unit, int64_t parts, int64_t i)
{
    const int64_t units = gemm_ceil(n, unit), at = (units * i / parts) * unit;
    return at < n ? at : n;
}

/* Is C so large that it should be stored past the caches?  (Its next reader would miss them anyway.) */
bool mc_gemm_streams(const struct mc_gemm_problem *p);

/* the solver with the least estimate among direct, skinny and packed */
const struct mc_solver *mc_gemm_own(const struct mc_gemm_problem *p);
/* tall, if it takes the product; else the second lowest estimate of direct, packed and splitk; NULL: it is
 * not near the lowest.  The options of p are set. */
const struct mc_solver *mc_gemm_next(const struct mc_gemm_problem *p);

/* ---- estimates: seconds, good enough to order our own solvers ---- */
double mc_gemm_peak(const struct mc_gemm_problem *p); /* operations a second of one thread */
/* the time of a team for work that takes one thread `seconds` */
double mc_gemm_team_seconds(double seconds, double tasks);
/* seconds of one thread for reading and writing all operands once */
double mc_gemm_traffic(const struct mc_gemm_problem *p);
/* seconds of one thread, rather too many than too few, for mc_team_tasks */
double mc_gemm_work(const struct mc_gemm_problem *p);
const char *mc_gemm_hollow(const struct mc_gemm_problem *p); /* refuses empty results and empty sums */

#endif

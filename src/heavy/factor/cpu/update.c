/* update.c: c += alpha a b, by the kernels of matrix products (heavy/gemm/cpu/kernel.h): what blocked
 * factorizations spend most of their time with.
 *
 *     for each range of k and of columns:
 *         b is copied into panels (range of k, nr)
 *         threads share the rows, ROWS at a time: those of a are copied into panels, and multiplied
 *
 * Invariant: the sums do not depend on the number of threads. */
#include "heavy/factor/solver.h"
#include "heavy/gemm/cpu/kernel.h"

enum { DEPTH = 256, COLUMNS = 480, ROWS = 48 }; /* COLUMNS and ROWS: multiples of every nr, mr */

struct pass {
    const struct mc_factor_update *u;
    const struct mc_gemm_kernel *kernel;
    int64_t size, k, depth, j, columns; /* the range of k and of columns */
    char *b, *a;                        /* panels of b; of a, for each slot */
};

static const char *element(const void *x, int64_t at, int64_t size)
{
    return (const char *)x + at * size;
}

static size_t panel_bytes(mc_dtype d, int64_t width)
{
    return (size_t)width * DEPTH * mc_dtypes[d].size;
}

size_t mc_factor_update_bytes(mc_dtype d, int slots)
{
    return panel_bytes(d, COLUMNS + GEMM_MAX_NR) + (size_t)slots * panel_bytes(d, ROWS + GEMM_MAX_MR);
}

/* Columns of a panel of b for n columns: whole vectors, as the kernel reads them. */
static int64_t panel_width(const struct pass *p, int64_t n)
{
    const int64_t lanes = p->kernel->lanes;
    return (n + lanes - 1) / lanes * lanes;
}

static void pack_columns(const struct pass *p)
{
    const struct mc_factor_update *u = p->u;
    const int64_t nr = p->kernel->nr;
    for (int64_t j = 0; j < p->columns; j += nr) {
        const int64_t n = MC_MIN(p->columns - j, nr);
        p->kernel->pack(p->b + j * p->depth * p->size,
                        element(u->b, p->k * u->b_row + (p->j + j) * u->b_col, p->size), u->b_col, u->b_row,
                        n, p->depth, panel_width(p, n));
    }
}

static void rows_task(void *arg, int64_t task, int slot)
{
    const struct pass *p = arg;
    const struct mc_factor_update *u = p->u;
    const int64_t mr = p->kernel->mr, nr = p->kernel->nr, i0 = task * ROWS,
                  m = MC_MIN(u->m - i0, (int64_t)ROWS);
    char *a = p->a + (size_t)slot * (size_t)(ROWS + GEMM_MAX_MR) * DEPTH * (size_t)p->size;
    if (u->above && p->j + p->columns <= i0) {
        return;
    }
    for (int64_t i = 0; i < m; i += mr) {
        p->kernel->pack(a + i * p->depth * p->size,
                        element(u->a, (i0 + i) * u->a_row + p->k * u->a_col, p->size), u->a_row, u->a_col,
                        MC_MIN(m - i, mr), p->depth, mr);
    }
    const int64_t skip = u->above ? MC_MAX(i0 - p->j, (int64_t)0) / nr * nr : 0;
    for (int64_t j = skip; j < p->columns; j += nr) {
        const int64_t n = MC_MIN(p->columns - j, nr);
        for (int64_t i = 0; i < m; i += mr) {
            struct mc_gemm_tile t = {
                .k = p->depth, .m = MC_MIN(m - i, mr), .n = n, .alpha = u->alpha, .beta = 1
            };
            t.a = a + i * p->depth * p->size;
            t.a_row = 1;
            t.a_col = mr;
            t.b = p->b + j * p->depth * p->size;
            t.b_row = panel_width(p, n);
            t.c = (char *)u->c + ((i0 + i) * u->c_row + p->j + j) * p->size;
            t.c0 = t.c;
            t.c_row = t.c0_row = u->c_row;
            p->kernel->packed[t.b_row / p->kernel->lanes](&t);
        }
    }
}

void mc_factor_update(mc_dtype d, const struct mc_factor_update *u, void *buffer, int slots, int threads)
{
    struct pass p = { .u = u, .kernel = mc_gemm_kernel(d), .size = mc_dtypes[d].size, .b = buffer };
    p.a = p.b + panel_bytes(d, COLUMNS + GEMM_MAX_NR);
    for (p.k = 0; p.k < u->k; p.k += DEPTH) {
        p.depth = MC_MIN(u->k - p.k, (int64_t)DEPTH);
        for (p.j = 0; p.j < u->n; p.j += COLUMNS) {
            p.columns = MC_MIN(u->n - p.j, (int64_t)COLUMNS);
            pack_columns(&p);
            const double flops = 2 * (double)u->m * (double)p.columns * (double)p.depth;
            mc_team_tasks(rows_task, &p, (u->m + ROWS - 1) / ROWS, slots, threads, flops / 2e10);
        }
    }
}

/* library.h: shared by the two solvers that call a library.
 *
 * Invariant: a library is opened only for plan=measure, for a flag that names its solver, or for a product
 * large enough that library_rate.c times it.  So a program with small products does not pay for opening
 * it. */
#ifndef MC_HEAVY_GEMM_CPU_LIBRARY_H
#define MC_HEAVY_GEMM_CPU_LIBRARY_H

#include "heavy/gemm/solver.h"

struct mc_library_gemm {
    enum mc_flag flag;          /* auto, none, or a file */
    const char *solver;
    const char *const *files;   /* files that `auto` tries, NULL-terminated */
    pthread_mutex_t lock;
    const char *tried;          /* the flag's text at the last attempt */
    void *handle;               /* NULL: not found */
};
void *mc_library_gemm_open(struct mc_library_gemm *f);  /* the handle, which is never closed, or NULL */
/* function: address of a function pointer, which is set to the function or NULL */
void mc_library_gemm_find(void *handle, const char *name, void *function);
/* Sets OpenMP's number of threads for the calling thread; returns the old number. */
int mc_library_gemm_threads(void *handle, int n);
void mc_library_gemm_done(void *handle, int before); /* restores the number and lets the threads sleep */
void *mc_gemm_onednn_library(void);           /* opens the library if needed; NULL: not found */
void *mc_gemm_blas_library(void);
void *mc_factor_lapack_library(void);
const char *mc_library_gemm_missing(struct mc_library_gemm *f, const char *function); /* NULL: available */
/* An operand in the libraries' terms: transposed or not, and its leading dimension. */
struct mc_library_gemm_matrix {
    char trans;
    int64_t lead;
};
bool mc_library_gemm_matrix(const int64_t *strides, int64_t rows, int64_t cols,
                            struct mc_library_gemm_matrix *out);
void mc_library_gemm_start(const struct mc_gemm_run *r); /* copies C0 to C unless they are the same */
struct mc_plan *mc_library_gemm_plan(const char *missing,
                                mc_status (*run)(const struct mc_plan *, void *const *, void *, int));

/* ---- library_rate.c ---- */
/* NULL, or why the library is not used for p. */
const char *mc_library_gemm_refuse(struct mc_library_gemm *f, const struct mc_solver *library,
                              const struct mc_gemm_problem *p);
/* The library's time for products like p, relative to our own solvers; 1 unless timing showed a gain. */
double mc_gemm_rate(struct mc_library_gemm *f, const struct mc_solver *library,
                    const struct mc_gemm_problem *p);
/* With plan=estimate: our own estimate times the rate.  Else slightly more than ours, so that the library is
 * selected only by timing. */
double mc_library_gemm_estimate(struct mc_library_gemm *f, const struct mc_solver *library,
                           const struct mc_gemm_problem *p);

#endif

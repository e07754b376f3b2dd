/* library.h: what the two solvers that call a library share.
 *
 * Invariant: no library is opened before someone asks for timing, names the solver, or plans a product so
 * large that library_rate.c asks; so that a program of small ones starts as fast as if there were none. */
#ifndef MC_HEAVY_GEMM_CPU_LIBRARY_H
#define MC_HEAVY_GEMM_CPU_LIBRARY_H

#include "heavy/gemm/solver.h"

struct mc_library_gemm {
    enum mc_flag flag;          /* auto, none, or a file */
    const char *solver;
    const char *const *files;   /* what auto tries, NULL-terminated */
    pthread_mutex_t lock;
    const char *tried;          /* the flag's text when it was last tried */
    void *handle;               /* NULL: there is none */
};
void *mc_library_gemm_open(struct mc_library_gemm *f);  /* the library's handle; it is never closed */
/* *function: a pointer to a function; NULL if absent */
void mc_library_gemm_find(void *handle, const char *name, void *function);
/* OpenMP's, for the calling thread alone; returns how many there were */
int mc_library_gemm_threads(void *handle, int n);
void mc_library_gemm_done(void *handle, int before); /* as many threads as before, and asleep */
void *mc_gemm_onednn_library(void);           /* opened if need be; NULL: there is none */
void *mc_gemm_blas_library(void);
const char *mc_library_gemm_missing(struct mc_library_gemm *f, const char *function); /* NULL: it is there */
/* An operand as libraries take it: transposed or not, and its leading dimension. */
struct mc_library_gemm_matrix {
    char trans;
    int64_t lead;
};
bool mc_library_gemm_matrix(const int64_t *strides, int64_t rows, int64_t cols, struct mc_library_gemm_matrix *out);
void mc_library_gemm_start(const struct mc_gemm_run *r); /* C = C0 where that is another matrix */
struct mc_plan *mc_library_gemm_plan(const char *missing,
                                mc_status (*run)(const struct mc_plan *, void *const *, void *, int));

/* ---- library_rate.c ---- */
/* NULL, or why the library is not to be asked about p. */
const char *mc_library_gemm_refuse(struct mc_library_gemm *f, const struct mc_solver *library,
                              const struct mc_gemm_problem *p);
/* The part of our time that the library takes for products like p; 1 unless timing showed a gain. */
double mc_gemm_rate(struct mc_library_gemm *f, const struct mc_solver *library, const struct mc_gemm_problem *p);
/* Under plan=estimate what the rate says; else a little behind ours, so that only timing prefers it. */
double mc_library_gemm_estimate(struct mc_library_gemm *f, const struct mc_solver *library,
                           const struct mc_gemm_problem *p);

#endif

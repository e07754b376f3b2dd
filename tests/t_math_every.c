/* t_math_every.c: the functions of generated kernels on every float32 there is, one number and a vector at a
 * time.
 *
 * Invariant: a right result is libm's in double, or the float64 row's, which t_math.c holds to long
 * double. */
#include "math_loops.h"

struct sweep {
    const struct mc_math_row *row;
    loop *run, *wide; /* wide: the float64 row */
    pthread_mutex_t lock;
    struct worst worst;
};

static void sweep_range(void *arg, int64_t from, int64_t to, int thread)
{
    struct sweep *s = arg;
    const struct ref *ref = ref_of(s->row);
    struct worst w = { 0 };
    float x[BLOCK], y[BLOCK];
    double xd[BLOCK], r[BLOCK];
    (void)thread;
    for (int64_t u = from; u < to; u += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            uint32_t bits = (uint32_t)u + i;
            memcpy(&x[i], &bits, sizeof bits);
            xd[i] = (double)x[i];
        }
        s->run(x, NULL, y, BLOCK);
        if (s->wide) {
            s->wide(xd, NULL, r, BLOCK);
        }
        for (int i = 0; i < BLOCK; i++) {
            double right = beyond(s->row, xd[i]) ? (double)NAN : s->wide ? r[i] : ref->narrow(xd[i]);
            /* cheaply: within half an ulp of what is not tiny, so nothing to note */
            if (fabs((double)y[i] - right) > 0x1p-25 * fabs(right) || !(fabs(right) > 0x1p-126)) {
                note_f(&w, s->row, x[i], y[i], right);
            }
        }
    }
    pthread_mutex_lock(&s->lock);
    if (w.ulp > s->worst.ulp) {
        s->worst = w;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Each function in a test of its own, so that none runs into the time limit. */
static void sweep(const char *name, bool vectors)
{
    if (!mc_cc_present() || (vectors && !vectors_run())) {
        SKIP("no C compiler, or no AVX-512");
    }
    struct mc_code *code = kernel_code(""), *wide = vectors ? vector_code("") : NULL;
    char row[2][64];
    snprintf(row[0], sizeof row[0], "mcf_%s", name);
    snprintf(row[1], sizeof row[1], "mcd_%s", name);
    struct sweep s = { .row = row_named(row[0]), .lock = PTHREAD_MUTEX_INITIALIZER };
    if (code && (wide || !vectors)) {
        s.run = vectors ? vector_loop(wide, name) : loop_of(code, s.row);
        s.wide = row_named(row[1]) ? loop_of(code, row_named(row[1])) : NULL;
        mc_team_run(sweep_range, &s, INT64_C(1) << 32, 1 << 20, 0);
        keeps_bound(s.row, &s.worst, vectors ? "of every number, on vectors" : "of every number");
    }
    mc_code_unref(&wide);
    mc_code_unref(&code);
}

#define SWEEP(id)                                                                                  \
    TEST_FULL(math_every_##id)                                                                     \
    {                                                                                              \
        sweep(#id, false);                                                                         \
    }
SWEEP(exp) SWEEP(exp2) SWEEP(expm1) SWEEP(log) SWEEP(log2) SWEEP(log10) SWEEP(log1p)
SWEEP(sin) SWEEP(cos) SWEEP(tan) SWEEP(asin) SWEEP(acos) SWEEP(atan)
SWEEP(sinh) SWEEP(cosh) SWEEP(tanh) SWEEP(asinh) SWEEP(acosh) SWEEP(atanh)
SWEEP(erf) SWEEP(erfc) SWEEP(sigmoid) SWEEP(softplus)

#define SWEEP_VECTORS(id)                                                                          \
    TEST_FULL(math_vectors_every_##id)                                                             \
    {                                                                                              \
        sweep(#id, true);                                                                          \
    }
SWEEP_VECTORS(exp) SWEEP_VECTORS(expm1) SWEEP_VECTORS(log) SWEEP_VECTORS(log1p)
SWEEP_VECTORS(tanh) SWEEP_VECTORS(sigmoid) SWEEP_VECTORS(softplus)

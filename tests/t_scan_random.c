/* Loops that random ones (tests/loops.py) showed to be wrong, made small. */
#include "check.h"
#include "graph/graph.h"

#include <math.h>

#define VARIABLES                                                                                            \
    "shared w float64[3] = normal(std=1); shared v float64[3] = normal(std=1, mean=4)\n"                     \
    "shared M float64[2, 3] = normal(std=1)\n"

/* Statements that make `loop` and, of the same steps without a loop, `steps`. */
static const char *const rows[] = {
    /* what is read as an integer is connected, with gradient 0 */
    "y = scan(x from w, steps=3: x = x + cast(v, int64)); loop = grad(sum(y) + sum(v), v); steps = ones_like(v)",
    "y = scan(i in cast(v, int64): yield cast(i, float64)); loop = grad(sum(y), v); steps = zeros_like(v)",
    /* a size that depends on data is not taken for one that is known */
    "y = scan(x from M, steps=1: a = max(x, axis=0); b = unique(a); yield fill(b, a)); loop = y[0]; steps = max(M, axis=0)",
};

TEST(small_loops_equal_their_steps)
{
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t i = 0; i < NELEM(rows) * NELEM(modes); i++) {
        const char *text = rows[i / NELEM(modes)];
        mc_graph *g = mc_graph_new();
        mc_array *r[2] = { 0 };
        mc_formula(g, VARIABLES);
        CHECK(!mc_is_error(mc_formula(g, text)), "%s\n%s", text, mc_error(g));
        mc_function *f = mc_compile(g,
                                    &(mc_spec){ .outputs = "loop, steps", .mode = modes[i % NELEM(modes)] });
        const bool ran = f && mc_call(f, MC_NONE, MC_OUT(&r[0], &r[1])) == MC_OK;
        if (CHECK(ran, "%s\n%s", text, mc_last_error()) &&
            CHECK(mc_dims_equal(r[0]->rank, r[0]->dims, r[1]->rank, r[1]->dims), "%s: other sizes", text)) {
            for (int64_t k = 0; k < mc_array_size(r[0]); k++) {
                const double a = ((double *)(void *)r[0]->data)[k], b = ((double *)(void *)r[1]->data)[k];
                CHECK(fabs(a - b) <= 1e-11 * fmax(1, fabs(b)), "%s\nelement %lld is %.17g, not %.17g", text,
                      (long long)k, a, b);
            }
        }
        mc_array_unref(&r[0]);
        mc_array_unref(&r[1]);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* t_pooled_cuda.c: pooled convolutions on a GPU against the host's reference, and what follows poolings. */
#include "cuda_test.h"
#include "heavy/cuda/cuda.h"
#include "heavy/conv_pool/solver.h"
#include "pooled_problems.h"
#include "exec/heavy/heavy.h"
#include <math.h>

/* Windows of all kinds back to filters; those that stand side by side forward too.  Marks are numbers of
 * cells, or bits of ties. */
TEST(cuda_pooled_few_channels)
{
    int served[3] = { 0 };
    if (mc_cuda_count() == 0) {
        SKIP("there is no GPU");
    }
    struct mc_cuda *d = mc_cuda_start(0);
    REQUIRE(d && mc_cuda_enter(d) >= 0, "%s", mc_last_error());
    for (int turn = 0; turn < (test_is_full() ? 400 : 60); turn++) {
        struct mc_pooled_problem p;
        const enum mc_conv_pass pass = turn & 1 ? CONV_WEIGHTS : CONV_FORWARD;
        if (!pooled_any(&p, pass, 5, 3, below(3) ? 14 : 40)) {
            continue;
        }
        for (int a = 1; a < 3 && pass == CONV_FORWARD; a++) {
            p.w[a] = p.stride[a] = 1 << below(2);
            p.pad[a] = 0;
            p.out[a] = (p.conv.s.out[a] - below(2)) / p.w[a] + 1;
            p.out[a] -= (p.out[a] - 1) * p.w[a] >= p.conv.s.out[a];
        }
        for (int a = 4, step = 1; a >= 0; a--) {
            p.g[a] = p.mark[a] = step;
            step *= (int)(a > 1 ? p.out[a - 2] : a ? p.conv.s.f : p.conv.s.n);
        }
        p.bits = p.w[1] * p.w[2] <= POOL_BITS && below(2);
        p.conv.has_bias = pass == CONV_FORWARD && below(2);
        p.conv.act = pass == CONV_FORWARD ? (enum mc_act)below(ACT_SWISH + 1) : ACT_NONE;
        p.base = (struct mc_problem){ &mc_pooled_cuda, mc_plan_options_of(&mc_site_cuda) };
        struct mc_plan *plan = mc_pooled_cuda_plan(&p, AS_FLAGS(&mc_site_cuda));
        struct mc_str word = { 0 };
        mc_pooled_key(&p.base, &word);
        CHECK(!plan || mc_pooled_cuda.verify(&p.base, plan) == MC_OK, "%s: %s", word.s, mc_last_error());
        served[pass] += plan != NULL;
        mc_str_free(&word);
        mc_plan_free(plan);
    }
    CHECK(served[CONV_FORWARD] > 8 && served[CONV_WEIGHTS] > 8, "served %d forward, %d back",
          served[CONV_FORWARD], served[CONV_WEIGHTS]);
}

/* What follows a pooling is computed by its solver: against loops in float64. */
TEST(gpu_bias_and_activation_of_maxima)
{
    static const struct { const char *formula; bool conv, bias; double (*act)(double); } rows[] = {
        { "tanh(pool(conv(x, w), (2, 2)) + dimshuffle(b, 'x', 0, 'x', 'x'))",    true,  true,  tanh },
        { "exp(pool(conv(x, w), (2, 2)) + dimshuffle(b, 'x', 0, 'x', 'x'))",     true,  true,  exp  },
        { "tanh(pool(x, (2, 2)) + dimshuffle(b, 'x', 0, 'x', 'x'))",             false, true,  tanh },
        { "tanh(pool(x, (2, 2)))",                                               false, false, tanh },
    };
    enum { N = 3, C = 4, SIDE = 9, TAPS = 2, F = 4 };
    ON_GPU();
    for (size_t r = 0; r < NELEM(rows); r++) {
        const int side = rows[r].conv ? SIDE - TAPS + 1 : SIDE, out = side / 2;
        float x[N][C][SIDE][SIDE], w[F][C][TAPS][TAPS], b[F];
        for (int i = 0; i < N * C * SIDE * SIDE; i++) {
            (&x[0][0][0][0])[i] = (float)test_uniform(-1, 1);
        }
        for (int i = 0; i < F * C * TAPS * TAPS; i++) {
            (&w[0][0][0][0])[i] = (float)test_uniform(-1, 1);
        }
        for (int i = 0; i < F; i++) {
            b[i] = (float)test_uniform(-1, 1);
        }
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[?,?,?,?]; input w float32[?,?,?,?]; input b float32[?]");
        mc_array *in[] = { mc_array_from(MC_FLOAT32, MC_SHAPE(N, C, SIDE, SIDE), x),
                           mc_array_from(MC_FLOAT32, MC_SHAPE(F, C, TAPS, TAPS), w),
                           mc_array_from(MC_FLOAT32, MC_SHAPE(F), b) },
                 *y = NULL;
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w, b", .outputs = rows[r].formula,
                                                   .on_unused = "ignore" });
        REQUIRE(f, "%s", mc_error(g));
        for (int call = 0; call < 3; call++) {
            CHECK(mc_call(f, MC_IN(in[0], in[1], in[2]), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
        }
        int fused = 0;
        for (size_t i = 0; i < f->code->program.step.n; i++) {
            fused += f->plans->step[i].heavy && f->plans->step[i].heavy->epilogue.by_solver;
        }
        CHECK(fused == (rows[r].act == tanh), "%s: %d solvers with an epilogue", rows[r].formula, fused);
        double worst = 0;
        for (int e = 0; y && e < N * F * out * out; e++) {
            const int n = e / (F * out * out), c = e / (out * out) % F, u = e / out % out, v = e % out;
            double most = -1e9;
            for (int cell = 0; cell < 4; cell++) {
                const int i = 2 * u + cell / 2, j = 2 * v + cell % 2;
                double sum = rows[r].conv ? 0 : x[n][c][i][j];
                for (int k = 0; rows[r].conv && k < C * TAPS * TAPS; k++) {
                    const int a = k / TAPS % TAPS, d = k % TAPS;
                    sum += (double)x[n][k / (TAPS * TAPS)][i + a][j + d] *
                           w[c][k / (TAPS * TAPS)][TAPS - 1 - a][TAPS - 1 - d];
                }
                most = fmax(most, sum);
            }
            const double want = rows[r].act(most + (rows[r].bias ? b[c] : 0));
            worst = fmax(worst, fabs(mc_array_get(y, (int64_t[]){ n, c, u, v }) - want) / fmax(1, fabs(want)));
        }
        CHECK(y && worst < 2e-6, "%s: off by %g", rows[r].formula, worst);
        mc_array *all[] = { in[0], in[1], in[2], y };
        for (size_t i = 0; i < NELEM(all); i++) {
            mc_array_unref(&all[i]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* t_pooled_cuda.c: pooled convolutions on a GPU against the host's reference. */
#include "cuda_test.h"
#include "heavy/cuda/cuda.h"
#include "heavy/conv_pool/solver.h"
#include "pooled_problems.h"

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

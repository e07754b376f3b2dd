/* t_gpu_ctc.c: ctc_loss on a GPU against the reference; nothing leaves the GPU; errors. */
#include "agree.h"
#include "cuda_test.h"
#include "sample.h"

#include <math.h>
#include <string.h>

static const char *const formulas[] = {
    "ctc_loss(x, y, n)",
    "ctc_loss(x, y, n, zero_infinity=True)",
    "ctc_loss(swapaxes(swapaxes(x, 0, 2), 0, 2)[:, ::-1], y[::-1, ::-1])",
    "grad(sum(ctc_loss(x, y, n)), x)",
    "grad(sum(ctc_loss(x[::-1], cast(y, int8), cast(n, uint16)) * 3), x)",
    "grad(sum(sqr(grad(sum(ctc_loss(x, y, n)), x))), x)",
};

/* Labels that repeat, padding anywhere, lengths from 0 on. */
static void compare(mc_dtype d, int64_t steps, int64_t examples, int64_t classes, int64_t most)
{
    struct agree a = { .scale = 512 };
    mc_array *y = mc_array_new(MC_INT32, 2, (int64_t[]){ examples, most }),
             *n = mc_array_new(MC_INT64, 1, (int64_t[]){ examples });
    REQUIRE(y && n, "%s", mc_last_error());
    for (int64_t b = 0; b < examples; b++) {
        ((int64_t *)(void *)n->data)[b] = b % 4 == 3 ? 0 : steps - b % 3 * (steps / 4);
        for (int64_t k = 0; k < most; k++) {
            const int64_t v = (b * 5 + k * k * 3 + k / 2) % (classes + 1) - 1;
            ((int32_t *)(void *)y->data)[b * most + k] = (int32_t)(v == 0 ? -1 : v);
        }
    }
    agree_input(&a, "x", sample(d, 3, (int64_t[]){ steps, examples, classes }, -3, 3), 0);
    agree_input(&a, "y", y, 0);
    agree_input(&a, "n", n, 0);
    for (size_t i = 0; i < NELEM(formulas); i++) {
        CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
    }
    const char *wrong = agree_in(&a, "FAST_RUN", 1);
    CHECK(!wrong, "%s, (%lld, %lld, %lld), %lld labels: %s", mc_dtype_name(d), (long long)steps,
          (long long)examples, (long long)classes, (long long)most, wrong ? wrong : "");
    agree_free(&a);
}

TEST(gpu_ctc)
{
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    compare(MC_FLOAT64, 12, 5, 6, 4);
    compare(MC_FLOAT32, 40, 3, 70, 9);
    compare(MC_FLOAT32, 1, 4, 2, 1);
    compare(MC_FLOAT64, 7, 3, 4, 0);
    compare(MC_FLOAT32, 0, 2, 3, 2);
    compare(MC_FLOAT32, 3, 0, 3, 2);
    compare(MC_FLOAT64, 700, 2, 5, 300); /* states that shared memory does not hold */
    mc_flag_set("cuda.host", "True");
}

/* What the host says. */
TEST(gpu_ctc_errors)
{
    static const struct { const char *formula, *says; } rows[] = {
        { "ctc_loss(x, y + 2, n)", "ctc_loss: the label 4, but there are 4 classes" },
        { "grad(sum(ctc_loss(x, y - 1, n)), x)", "ctc_loss: 0 is a label; it is the blank" },
        { "ctc_loss(x, y, n + 1)", "ctc_loss: the length 6, but there are 5 steps" },
        { "ctc_loss(x, y, n - 6)", "ctc_loss: the length -1, but there are 5 steps" },
        { "ctc_loss(x[:, :, :0], y, n)", "there are no classes" },
        { "ctc_loss(x, y, n)", NULL },
    };
    ON_GPU();
    mc_array *x = sample(MC_FLOAT32, 3, (int64_t[]){ 5, 3, 4 }, -1, 1),
             *y = mc_array_new(MC_INT32, 2, (int64_t[]){ 3, 2 }),
             *n = mc_array_new(MC_INT32, 1, (int64_t[]){ 3 });
    for (int i = 0; i < 6; i++) {
        ((int32_t *)(void *)y->data)[i] = 1 + i % 2;
        ((int32_t *)(void *)n->data)[i / 2] = 5;
    }
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *r = NULL, *home = NULL;
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 3);
        mc_input(g, "y", MC_INT32, 2);
        mc_input(g, "n", MC_INT32, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y, n", .outputs = rows[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        for (int k = 0; k < 2; k++) { /* and again */
            const mc_status s = mc_call(f, MC_IN(x, y, n), MC_OUT(&r));
            CHECK(rows[i].says ? s < 0 && strstr(mc_last_error(), rows[i].says) : s == MC_OK, "%s: %s",
                  rows[i].formula, mc_last_error());
            mc_array_unref(&r), mc_array_unref(&home);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&n);
}

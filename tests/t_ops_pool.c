/* t_ops_pool.c: pooling and what is made of it: values from a second way to compute them, gradients from
 * differences and from the adjoint identity. */
#include "agree.h"
#include "op/pool.h"
#include "pool_words.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Does a formula over x have these values? */
static void expect(const char *formula, const mc_array *x, int n, const double *want)
{
    mc_array *y = run1(formula, x, 0xff);
    if (CHECK(y, "%s: %s", formula, mc_last_error()) &&
        CHECK(mc_array_size(y) == n, "%s: %d elements", formula, (int)mc_array_size(y))) {
        for (int i = 0; i < n; i++) {
            CHECK(fabs(at(y, i) - want[i]) < 1e-12, "%s: element %d is %g, not %g", formula, i, at(y, i),
                  want[i]);
        }
    }
    mc_array_unref(&y);
}

/* ---- values ---- */

enum { NAXIS = 4 };
struct pooling { int64_t w[2], s[2], p[2], b[2]; char border; const char *mode, *ties, *layout; };

/* Pools the two axes in front of the last, or the last two, of (2, a, b) or (2, a, b, 3), cell by cell. */
static double brute(const mc_array *x, const struct pooling *q, int first, int64_t n, int64_t u, int64_t v,
                    int64_t lane)
{
    double most = 0, sum = 0;
    int count = 0;
    bool nan = false;
    for (int64_t a = 0; a < x->dims[first]; a++) {
        for (int64_t b = 0; b < x->dims[first + 1]; b++) {
            int64_t index[4] = { n, a, b, lane };
            const int64_t da = a - (u * q->s[0] - q->p[0] + q->b[0]),
                          db = b - (v * q->s[1] - q->p[1] + q->b[1]);
            if (da >= 0 && da < q->w[0] && db >= 0 && db < q->w[1]) {
                double e = mc_array_get(x, index);
                nan |= isnan(e);
                most = count == 0 || e > most ? e : most;
                sum += e;
                count++;
            }
        }
    }
    double whole = (double)(q->w[0] * q->w[1]);
    return strcmp(q->mode, "max") == 0                                   ? (nan ? NAN : most)
           : strcmp(q->mode, "sum") == 0                                 ? sum
           : strcmp(q->mode, "average_inc_pad") == 0 && q->border == 'i' ? sum / whole
                                                                         : sum / count;
}

static void text_of(const struct pooling *q, const char *op, const char *args, char *out, size_t n)
{
    char border[64];
    snprintf(border, sizeof border,
             q->border == 'c'   ? "start=[%d, %d]"
             : q->border == 'k' ? "ignore_border=False"
                                : "ignore_border=True",
             (int)q->b[0], (int)q->b[1]);
    snprintf(out, n, "%s(%s, [%d, %d], [%d, %d], [%d, %d], mode='%s', ties='%s', layout='%s', %s)", op, args,
             (int)q->w[0], (int)q->w[1], (int)q->s[0], (int)q->s[1], (int)q->p[0], (int)q->p[1], q->mode,
             q->ties, q->layout, border);
}

static struct pooling any_pooling(const int64_t i[2])
{
    static const char *const modes[] = { "max", "max", "sum", "average_inc_pad", "average_exc_pad" };
    struct pooling q = { .border = "ikc"[test_random() % 3], .mode = modes[test_random() % 5],
                         .ties = test_random() % 2 ? "all" : "first", .layout = test_random() % 2 ? "b01" : "b01c" };
    for (int k = 0; k < 2; k++) {
        q.w[k] = 1 + (int64_t)(test_random() % 4);
        q.s[k] = 1 + (int64_t)(test_random() % 4);
        q.p[k] = q.border == 'i' ? (int64_t)(test_random() % (uint64_t)q.w[k]) : 0;
        q.b[k] = q.border == 'c' ? (int64_t)(test_random() % (uint64_t)i[k]) : 0;
    }
    return q;
}

TEST(pool_against_counting_cells)
{
    for (int turn = 0; turn < 120; turn++) {
        const int64_t dims[4] = { 2, 1 + (int64_t)(test_random() % 7), 1 + (int64_t)(test_random() % 7), 3 };
        struct pooling q = any_pooling(dims + 1);
        mc_dtype d = test_random() % 4 ? MC_FLOAT64 : q.mode[0] == 'a' ? MC_FLOAT32 : MC_INT16;
        int rank = (int)strlen(q.layout);
        mc_array *x = sample(d, rank, dims, -4, 4);
        if (mc_is_float(d) && turn % 3 == 0) { /* with ties, zeros of both signs, and sometimes a NaN */
            for (int64_t k = 0; k < 8; k++) {
                int64_t index[4] = { k % 2, k % dims[1], (k * 3) % dims[2], k % 3 };
                mc_array_set(x, index, k == 7 && turn % 2 ? NAN : k % 2 ? -0.0 : 0.0);
            }
        }
        char text[300];
        text_of(&q, "pool", "x", text, sizeof text);
        mc_array *y = run1(text, x, (unsigned)test_random());
        if (!CHECK(y, "%s: %s", text, mc_last_error())) {
            mc_array_unref(&x);
            continue;
        }
        int64_t want[2];
        for (int k = 0; k < 2; k++) {
            want[k] = count_windows(dims[k + 1], q.w[k], q.s[k], q.p[k], q.border, q.b[k]);
        }
        CHECK(y->dims[1] == want[0] && y->dims[2] == want[1], "%s", text);
        for (int64_t k = 0, size = mc_array_size(y), lanes = rank == 4 ? 3 : 1; k < size; k++) {
            double v = brute(x, &q, 1, k / lanes / want[1] / want[0], k / lanes / want[1] % want[0],
                             k / lanes % want[1], k % lanes);
            double have = at(y, k);
            bool same = isnan(v) ? isnan(have) : fabs(have - v) < (d == MC_FLOAT32 ? 1e-6 : 1e-13) * 16;
            if (!CHECK(same, "%s: element %d is %g, not %g", text, (int)k, have, v)) {
                break;
            }
        }
        drop((mc_array *[]){ x, y }, 2);
    }
}

TEST(pool_of_one_and_three_axes)
{
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(2, 5, 4, 7), -1, 1);
    mc_array *three = run1("pool_3d(x, [3, 2, 3], [2, 2, 2], ignore_border=True)", x, 0);
    mc_array *one = run1("pool(pool(pool(x, 3, 2, axis=1), 2, 2, axis=2), 3, 2, axis=-1)", x, 5);
    mc_array *mean = run1("pool_3d(x, [5, 4, 7], ignore_border=True, mode='average_inc_pad')", x, 0);
    mc_array *flat = run1("mean(x, axis=[1, 2, 3])", x, 0);
    CHECK(three && one && mc_array_differs(three, one, 0, 0) < 0, "maxima of maxima: %s", mc_last_error());
    CHECK(mean && flat && fabs(at(mean, 1) - at(flat, 1)) < 1e-14, "the mean of all: %s", mc_last_error());
    drop((mc_array *[]){ x, three, one, mean, flat }, 5);
}

TEST(other_names_of_pooling)
{
    static const double square[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    mc_array *x = numbers(MC_SHAPE(2, 4), square);
    expect("max_pool_2d_same_size(x, [2, 2])", x, 8, (const double[]){ 0, 0, 0, 0, 0, 6, 0, 8 });
    expect("max_pool_2d_same_size(x * 0 + 1, [2, 2])", x, 8, (const double[]){ 1, 1, 1, 1, 1, 1, 1, 1 });
    expect("max_pool_2d_same_size(x * 0 + 1, [2, 2], ties='first')", x, 8,
           (const double[]){ 1, 0, 1, 0, 0, 0, 0, 0 });
    expect("max_pool_2d(x, [2, 2])", x, 2, (const double[]){ 6, 8 });
    expect("pool_2d(x, 3)", x, 2, (const double[]){ 7, 8 });
    expect("pool_2d(x, [1, 3], mode='average_inc_pad')", x, 4, (const double[]){ 2, 4, 6, 8 });
    expect("pool_2d(x, [1, 3], [1, 1], [0, 1], mode='average_inc_pad', ignore_border=True)", x, 8,
           (const double[]){ 1, 2, 3, 7. / 3, 11. / 3, 6, 7, 5 });
    expect("pool_2d(x, [1, 3], [1, 1], [0, 1], mode='average_exc_pad', ignore_border=True)", x, 8,
           (const double[]){ 1.5, 2, 3, 3.5, 5.5, 6, 7, 7.5 });
    expect("dnn_pool(reshape(x, [1, 1, 2, 4]), [2, 2])", x, 3, (const double[]){ 6, 7, 8 });
    expect("dnn_pool(reshape(x, [1, 1, 2, 4]), [2, 3], [1, 2], [1, 1], mode='average')", x, 6,
           (const double[]){ 3 / 6., 9 / 6., 14 / 6., 30 / 6., 11 / 6., 21 / 6. });
    expect("max_pool(reshape(x, [1, 2, 4, 1]), ds=2, start=1)", x, 2, (const double[]){ 7, 8 });
    expect("max_pool(reshape(x, [1, 2, 4, 1]), ds=3, stride=2)", x, 2, (const double[]){ 7, 8 });
    expect("max_pool_c01b(reshape(x, [1, 2, 4, 1]), [1, 3])", x, 4, (const double[]){ 3, 4, 7, 8 });
    expect("max_pool_grad(reshape(x, [1, 2, 4, 1]), reshape(x[0, :2], [1, 1, 2, 1]), ds=2)", x, 8,
           (const double[]){ 0, 0, 0, 0, 0, 1, 0, 2 });
    expect("max_pool_rop(reshape(x, [1, 2, 4, 1]), 10 * reshape(x, [1, 2, 4, 1]), ds=2)", x, 2,
           (const double[]){ 60, 80 });
    expect("weighted_max_pool(reshape(x, [1, 2, 4, 1]), ds=2)", x, 2,
           (const double[]){ 66. / 14, 138. / 22 });
    expect("weighted_max_pool(reshape(x * 0, [1, 2, 4, 1]), ds=2)", x, 2, (const double[]){ 0, 0 });
    expect("global_pool(reshape(x, [1, 2, 2, 2]))", x, 2, (const double[]){ 2.5, 6.5 });
    expect("global_pool(reshape(x, [1, 2, 2, 2]), mode='max')", x, 2, (const double[]){ 4, 8 });
    expect("upscale(x[:, :2], factor=2)", x, 16,
           (const double[]){ 1, 1, 2, 2, 1, 1, 2, 2, 5, 5, 6, 6, 5, 5, 6, 6 });
    expect("upscale(x[:1, :3], factor=2, mode='dilate', nd=1)", x, 6, (const double[]){ 1, 0, 2, 0, 3, 0 });
    expect("spatial_pyramid_pool(reshape(x, [1, 1, 2, 4]), pool_dims=[2, 1])", x, 5,
           (const double[]){ 2, 4, 6, 8, 8 });
    expect("spatial_pyramid_pool(reshape(x[0, :3], [1, 1, 1, 3]), pool_dims=[2], implementation='kaiming')",
           x, 4, (const double[]){ 2, 3, 2, 3 });
    expect("spatial_pyramid_pool(reshape(x, [1, 1, 2, 4]), pool_dims=[3, 1], mode='average_inc_pad', "
           "implementation='kaiming')",
           x, 10, (const double[]){ 1.5, 2.5, 3.5, 3.5, 4.5, 5.5, 5.5, 6.5, 7.5, 4.5 });
    expect("c01b_to_bc01(bc01_to_c01b(reshape(x, [1, 2, 2, 2])))", x, 8, square);
    mc_array_unref(&x);
}

TEST(pyramids_of_any_size)
{
    for (int64_t a = 4; a < 11; a++) {
        mc_array *x = sample(MC_FLOAT64, MC_SHAPE(2, 3, a, 15 - a), -1, 1);
        mc_array *y = run1("spatial_pyramid_pool(x)", x, 0), *z = run1("spatial_pyramid_pool(x)", x, 15);
        CHECK(y && z && y->dims[2] == 21 && z->dims[2] == 21 && mc_array_differs(y, z, 0, 0) < 0, "%d: %s",
              (int)a, mc_last_error());
        drop((mc_array *[]){ x, y, z }, 3);
    }
}

/* ---- gradients ---- */

TEST(pool_gradients_against_differences)
{
    for (int turn = 0; turn < 24; turn++) {
        const int64_t dims[4] = { 2, 3 + (int64_t)(test_random() % 4), 3 + (int64_t)(test_random() % 4), 3 };
        struct pooling q = any_pooling(dims + 1);
        char pool[300], text[1000];
        double worst;
        text_of(&q, "pool", "x", pool, sizeof pool);
        mc_array *x = sample(MC_FLOAT64, (int)strlen(q.layout), dims, -1, 1);
        snprintf(text, sizeof text, "y = %s; sum(y * y)", pool);
        CHECK(check_grad(text, x, (unsigned)test_random(), &worst) == MC_OK, "%s: %s", text, mc_last_error());
        snprintf(text, sizeof text, "y = %s; d = grad(sum(y * y * y), x); sum(d * d * x)", pool); /* second */
        CHECK(check_grad(text, x, (unsigned)test_random(), &worst) == MC_OK, "%s: %s", text, mc_last_error());
        snprintf(text, sizeof text, "y = %s; d = grad(sum(y ** 3), x); e = grad(sum(d * d), x); sum(e * e)",
                 pool); /* third */
        CHECK(check_grad(text, x, (unsigned)test_random(), &worst) == MC_OK, "%s: %s", text, mc_last_error());
        mc_array_unref(&x);
    }
}

/* <pool_pick(x, v), g> = <v, pool_grad(x, g)>: exactly, when all numbers are small and whole. */
TEST(pool_grad_and_pick_are_adjoint)
{
    for (int turn = 0; turn < 60; turn++) {
        const int64_t dims[4] = { 2, 1 + (int64_t)(test_random() % 6), 1 + (int64_t)(test_random() % 6), 3 };
        struct pooling q = any_pooling(dims + 1);
        q.mode = q.mode[0] == 'a' ? "sum" : q.mode;
        char pool[300], grad[300], pick[300], text[1200];
        text_of(&q, "pool", "x", pool, sizeof pool);
        text_of(&q, "pool_grad", "x, g", grad, sizeof grad);
        text_of(&q, "pool_pick", "x, v", pick, sizeof pick);
        snprintf(
            text, sizeof text,
            "v = floor(7 * cos(13 * x + 5 * x.T.T)); y = %s; g = floor(5 * y + 3); sum(%s * g) - sum(v * %s)",
            pool, pick, grad);
        mc_array *s = sample(MC_INT8, (int)strlen(q.layout), dims, -2, 2),
                 *x = mc_array_cast(s, MC_FLOAT64); /* many ties */
        mc_array *zero = run1(text, x, 0);
        CHECK(zero && at(zero, 0) == 0, "%s: %g %s", text, zero ? at(zero, 0) : 0,
              zero ? "" : mc_last_error());
        drop((mc_array *[]){ s, x, zero }, 3);
    }
}

TEST(the_rule_for_ties)
{
    static const double flat[] = { 3, 3, 1, 3, 3, 3 };
    mc_array *x = numbers(MC_SHAPE(1, 6), flat);
    expect("grad(sum(pool(x, 3, 1, axis=1)), x)", x, 6, (const double[]){ 1, 1, 0, 2, 0, 0 });
    expect("grad(sum(pool(x, 3, 1, axis=1, ties='all')), x)", x, 6, (const double[]){ 1, 2, 0, 3, 2, 1 });
    mc_array_set(x, (const int64_t[]){ 0, 4 }, NAN); /* larger than anything */
    expect("grad(sum(pool(x, 3, 1, axis=1)), x)", x, 6, (const double[]){ 1, 1, 0, 0, 2, 0 });
    expect("grad(sum(pool(x, 3, 1, axis=1, ties='all')), x)", x, 6, (const double[]){ 1, 2, 0, 1, 0, 0 });
    mc_array_unref(&x);
}

/* Windows of more than 256 cells have wider marks. */
TEST(large_windows)
{
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(3, 40, 17), -1, 1), *have, *want;
    have = run1("grad(sum(pool_2d(x, [40, 17], ignore_border=True) ** 2), x)", x, 7);
    want = run1("grad(sum(max(x, axis=[1, 2]) ** 2), x)", x, 7);
    CHECK(have && want && mc_array_differs(have, want, 1e-15, 1e-15) < 0, "%s", mc_last_error());
    drop((mc_array *[]){ x, have, want }, 3);
}

/* ---- probabilities ---- */

TEST(prob_max_pool_is_a_distribution)
{
    mc_array *z = sample(MC_FLOAT64, MC_SHAPE(2, 5, 4, 3), -3, 3);
    static const char *const same[] = {
        "r = prob_max_pool(z, ds=2); r[0] - pool(r[1], 2, start=0, mode='sum', layout='c01b')",
        "r = prob_max_pool(z, 0.5, ds=2); r[0] - pool(r[1], 2, start=0, mode='sum', layout='c01b')",
        "r = prob_max_pool(z, 0.5, ds=2); e = pool(exp(z), 2, start=0, mode='sum', layout='c01b'); r[0] - e / (e + exp(-0.5))",
        "r = prob_max_pool(z * 1000, ds=2); where(isnan(r[0]), 1, 0)", /* no overflow */
    };
    for (size_t i = 0; i < NELEM(same); i++) {
        char text[300];
        snprintf(text, sizeof text, "z = x; %s", same[i]);
        mc_array *d = run1(text, z, 0);
        CHECK(d, "%s: %s", text, mc_last_error());
        for (int64_t k = 0; d && k < mc_array_size(d); k++) {
            CHECK(fabs(at(d, k)) < 1e-14, "%s: %g", text, at(d, k));
        }
        mc_array_unref(&d);
    }
    double worst;
    CHECK(check_grad("r = prob_max_pool(x, sum(x), ds=2); sum(r[0] ** 2) + sum(r[1] ** 3)", z, 0, &worst) ==
              MC_OK,
          "%s", mc_last_error());
    mc_array_unref(&z);
}

TEST(stochastic_max_pool_draws_in_proportion)
{
    static const double cells[] = { 1, 0, 3, 4, 0, 0, 0, 0 };
    const int64_t dims[4] = { 1, 2, 2, 2000 };
    mc_graph *g = mc_graph_new();
    mc_array *x = mc_array_new(MC_FLOAT64, 4, dims), *out[2] = { 0 };
    for (int64_t i = 0; i < 4 * 2000; i++) {
        mc_array_set(x, (const int64_t[]){ 0, i / 4000, i / 2000 % 2, i % 2000 },
                     i % 2000 < 1900 ? cells[i / 2000] : 0);
    }
    mc_shared *rng = mc_random(g, "rng", 7);
    mc_node *in = mc_input(g, "x", MC_FLOAT64, 4), *y[2];
    y[0] = mc_formula(g, "y = stochastic_max_pool(rng, x, ds=2)");
    y[1] = mc_formula(g, "grad(sum(y), x)");
    REQUIRE(rng && mc_eval(1, &in, &x, 2, y, out) == MC_OK, "%s %s", mc_error(g), mc_last_error());
    int count[5] = { 0 };
    for (int64_t i = 0; i < 2000; i++) {
        double v = at(out[0], i);
        int cell = v == 1 ? 0 : v == 3 ? 2 : v == 4 ? 3 : 4;
        count[cell]++;
        CHECK((i >= 1900) == (v == 0), "window %d gave %g", (int)i, v);
        for (int k = 0; k < 4 && i < 1900; k++) {
            CHECK(at(out[1], k * 2000 + i) == (k == cell), "the gradient of window %d at cell %d", (int)i, k);
        }
    }
    CHECK(abs(count[0] - 237) < 70 && abs(count[2] - 712) < 100 && abs(count[3] - 950) < 110,
          "drawn %d, %d, %d times", count[0], count[2], count[3]);
    drop((mc_array *[]){ x, out[0], out[1] }, 3);
    mc_graph_free(g);
}

/* ---- compiled ---- */

TEST(compiled_poolings_agree_with_the_reference)
{
    static const char *const formulas[] = {
        "pool_2d(maximum(x, 0), [2, 2])", "y = pool_2d(x, [3, 3], [2, 2], [1, 1], ignore_border=True); tuple(y, grad(sum(y * y), x))",
        "y = max_pool(x * 2, ds=3, stride=2); tuple(grad(sum(exp(y)), x), exp(y))", "y = pool_2d(x, [3, 2], mode='average_exc_pad'); grad(sum(y * y), x)",
        "y = pool_2d(x, [3, 3], [1, 1], ties='all'); d = grad(sum(y * y), x); grad(sum(d * d), x)",
        "y = pool_2d(x, 2); d = grad(sum(y ** 3), x); grad(sum(d * d), x) + 1", "y = lrn(x, alpha=0.2); tuple(y, grad(sum(y ** 3), x))",
        "cross_map_norm(x, size_f=4, add_scale=0.3, pow_scale=0.6)", "r = prob_max_pool(x, ds=2); tuple(r[1], grad(sum(r[0] * r[0]), x))",
        "pool_grad(x, pool(x, 2, axis=3), 2, axis=3) + pool(pool(x, 2, 1, 1, axis=1, mode='sum'), 2, 1, 0, axis=1)",
        "r = batch_normalization_train(x, 2, 1, axes='spatial'); tuple(r[0], r[3], r[4], grad(sum(r[0] ** 3), x))", "dnn_softmax(x, mode='instance')",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        for (mc_dtype d = MC_FLOAT32; d <= MC_FLOAT64; d++) {
            struct agree a = { 0 };
            agree_input(&a, "x", sample(d, MC_SHAPE(3, 6, 7, 6), -1, 1), (unsigned)test_random());
            mc_node *y = mc_formula(a.g, formulas[i]);
            for (int k = 0; k < y->nout; k++) {
                a.out[a.nout++] = mc_item(y, k);
            }
            agree(&a, formulas[i]);
        }
    }
}

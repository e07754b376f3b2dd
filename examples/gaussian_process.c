/* gaussian_process.c: regression by a Gaussian process.  The length, height and noise of its kernel are
 * found by gradients of the marginal likelihood, through a Cholesky factor; then it predicts between and
 * beyond the points, with a standard deviation. */
#include <math.h>
#include <monochord.h>
#include <stdio.h>

enum { N = 40, M = 7 };

/* p: the logarithms of length, height and noise.  k(a, b) = height exp(-(a - b)^2 / (2 length^2)). */
static const char model[] =
    "input x float64[?]; input y float64[?]; input z float64[?]; shared p float64[3] = 0\n"
    "length = exp(p[0]); height = exp(p[1]); noise = exp(p[2])\n"
    "n = size(x, 0)\n"
    "between = height * exp(-0.5 * sqr((expand_dims(x, 1) - x) / length))\n"
    "l = cholesky(between + noise * eye(n))\n"
    "weights = cho_solve(l, y)\n"
    "nll = 0.5 * dot(y, weights) + sum(log(diag(l))) + 0.5 * cast(n, float64) * log(2 * pi)\n"
    "across = height * exp(-0.5 * sqr((expand_dims(x, 1) - z) / length))\n"
    "mean = dot(across.T, weights)\n"
    "deviation = sqrt(height + noise - sum(sqr(solve_triangular(l, across, lower=True)), axis=0))\n";

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, model);
    mc_function *fit = mc_compile(g, &(mc_spec){ .inputs = "x, y",
                                                 .outputs = "nll, length, height, noise",
                                                 .updates = "p = p - 0.02 * grad(nll, p)" });
    mc_function *predict = mc_compile(g, &(mc_spec){ .inputs = "x, y, z", .outputs = "mean, deviation" });
    if (!fit || !predict) {
        return printf("%s\n", mc_error(g)), 1;
    }

    double points[N], values[N], queries[M], nll = 0, length = 0, height = 0, noise = 0;
    for (int i = 0; i < N; i++) { /* sin(x), with an error of about 0.1 */
        points[i] = 6.0 * i / (N - 1);
        values[i] = sin(points[i]) + 0.15 * sin(i * 78.233);
    }
    for (int i = 0; i < M; i++) {
        queries[i] = 0.5 + 1.5 * i; /* the last ones lie beyond the points */
    }
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(N), points),
             *y = mc_array_from(MC_FLOAT64, MC_SHAPE(N), values),
             *z = mc_array_from(MC_FLOAT64, MC_SHAPE(M), queries), *mean = NULL, *deviation = NULL;
    for (int step = 0; step <= 300; step++) {
        if (mc_call(fit, MC_IN(x, y), MC_OUT(&nll, &length, &height, &noise)) < 0) {
            return printf("%s\n", mc_last_error()), 1;
        }
        if (step % 100 == 0) {
            printf("step %-4d nll %.3f  length %.3f  height %.3f  noise %.4f\n", step, nll, length, height,
                   noise);
        }
    }
    if (mc_call(predict, MC_IN(x, y, z), MC_OUT(&mean, &deviation)) < 0) {
        return printf("%s\n", mc_last_error()), 1;
    }
    for (int64_t i = 0; i < M; i++) {
        printf("at %5.2f  %6.3f +- %.3f  (sin: %6.3f)\n", queries[i], mc_array_get(mean, &i),
               mc_array_get(deviation, &i), sin(queries[i]));
    }
    mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&z), mc_array_unref(&mean),
        mc_array_unref(&deviation);
    mc_function_free(fit);
    mc_function_free(predict);
    mc_graph_free(g);
    return 0;
}

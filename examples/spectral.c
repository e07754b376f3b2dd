/* spectral.c: the heat equation u_t = c u_xx on a ring, by Fourier transforms: each wave decays on its own.
 *
 * The compiled function takes u at time 0 and a time, and gives u then and its slope u_x, which is a
 * product with i k in Fourier space. Both are compared with the solution, a sum of waves. Complex numbers
 * are pairs: the last axis of rfft's result has the real and the imaginary parts. */
#include <math.h>
#include <monochord.h>

enum { N = 128 };
static const double PI = 3.14159265358979323846, CONDUCTION = 0.01;

/* The waves that u begins with: a_k cos(k x) + b_k sin(k x). */
static const struct { int k; double a, b; } waves[] = {
    { 0, 1, 0 }, { 1, 0.5, -1 }, { 3, 0, 0.75 }, { 10, 0.25, 0.5 }
};

static void exact(double x, double t, double *u, double *slope)
{
    *u = *slope = 0;
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++) {
        const double k = waves[i].k, left = exp(-CONDUCTION * k * k * t);
        *u += left * (waves[i].a * cos(k * x) + waves[i].b * sin(k * x));
        *slope += left * k * (waves[i].b * cos(k * x) - waves[i].a * sin(k * x));
    }
}

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "u", MC_FLOAT64, 1);
    mc_input(g, "t", MC_FLOAT64, 0);
    mc_formula(g, "f = rfft(expand_dims(u, 0)); k = expand_dims(cast(arange(size(f, 1)), float64), -1); "
                  "now = f * exp(-0.01 * k ** 2 * t); "
                  "turned = stack([-now[..., 1], now[..., 0]], axis=-1); " /* i * now */
                  "warm = irfft(now)[0]; slope = irfft(turned * k)[0]");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "u, t", .outputs = "warm, slope" });
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    double start[N], slope;
    for (int i = 0; i < N; i++) {
        exact(2 * PI * i / N, 0, &start[i], &slope);
    }
    mc_array *u = mc_array_wrap(MC_FLOAT64, MC_SHAPE(N), NULL, start, NULL, NULL), *warm = NULL,
             *rises = NULL;
    for (double t = 0; t <= 4; t += 1) {
        double worst = 0;
        if (mc_call(f, MC_IN(u, t), MC_OUT(&warm, &rises)) < 0) {
            return puts(mc_last_error()), 1;
        }
        for (int64_t i = 0; i < N; i++) {
            double v;
            exact(2 * PI * (double)i / N, t, &v, &slope);
            worst = fmax(worst,
                         fmax(fabs(mc_array_get(warm, &i) - v), fabs(mc_array_get(rises, &i) - slope)));
        }
        printf("time %g: u(0) = %8.5f, u_x(0) = %8.5f, %s\n", t, mc_array_get(warm, &(int64_t){ 0 }),
               mc_array_get(rises, &(int64_t){ 0 }), worst < 1e-11 ? "exact to 1e-11" : "wrong");
    }
    mc_array_unref(&u);
    mc_array_unref(&warm);
    mc_array_unref(&rises);
    mc_function_free(f);
    mc_graph_free(g);
    return 0;
}

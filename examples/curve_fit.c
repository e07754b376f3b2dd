/* curve_fit.c: fits a exp(-b t) + c to points by the method of Gauss and Newton.
 *
 * Each step solves J'J d = J'r, where r are the residuals and J their Jacobian by the parameters. */
#include <math.h>
#include <monochord.h>
#include <stdio.h>

enum { N = 3 };

/* d = M^-1 r, by elimination with the largest pivots; M and r are overwritten. */
static void solve(double M[N][N], double *r, double *d)
{
    for (int k = 0; k < N; k++) {
        int top = k;
        for (int i = k + 1; i < N; i++) {
            top = fabs(M[i][k]) > fabs(M[top][k]) ? i : top;
        }
        for (int j = 0; j < N; j++) {
            double x = M[k][j];
            M[k][j] = M[top][j], M[top][j] = x;
        }
        double x = r[k];
        r[k] = r[top], r[top] = x;
        for (int i = k + 1; i < N; i++) {
            double f = M[i][k] / M[k][k];
            for (int j = k; j < N; j++) {
                M[i][j] -= f * M[k][j];
            }
            r[i] -= f * r[k];
        }
    }
    for (int k = N; k-- > 0;) {
        d[k] = r[k];
        for (int j = k + 1; j < N; j++) {
            d[k] -= M[k][j] * d[j];
        }
        d[k] /= M[k][k];
    }
}

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input p float64[3]\n"
                  "t = arange(40) / 10.0f64\n"
                  "points = 2.5 * exp(-1.3 * t) + 0.5\n"
                  "r = p[0] * exp(-p[1] * t) + p[2] - points\n"
                  "J = jacobian(r, p)");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "p", .outputs = "sum(sqr(r)), dot(J.T, J), dot(J.T, r)" });
    if (!f) {
        return puts(mc_last_error()), 1;
    }
    double p[N] = { 1, 1, 0 }, cost = 1, d[N];
    mc_array *parameters = mc_array_wrap(MC_FLOAT64, 1, (int64_t[]){ N }, NULL, p, NULL, NULL);
    for (int step = 0; step < 20 && cost > 1e-24; step++) {
        mc_array *JJ = NULL, *Jr = NULL;
        if (mc_call(f, MC_IN(parameters), MC_OUT(&cost, &JJ, &Jr)) < 0) {
            return puts(mc_last_error()), 1;
        }
        printf("step %d  cost %.3g\n", step, cost);
        solve(mc_array_data(JJ), mc_array_data(Jr), d);
        for (int k = 0; k < N; k++) {
            p[k] -= d[k];
        }
        mc_array_unref(&JJ), mc_array_unref(&Jr);
    }
    printf("%.6f exp(-%.6f t) + %.6f\n", p[0], p[1], p[2]);
    mc_array_unref(&parameters);
    mc_function_free(f), mc_graph_free(g);
    return !(cost < 1e-20);
}

/* pca.c: principal components of points in three dimensions that lie near a plane: by singular values of
 * the centred points.  The points are drawn again from two numbers each. */
#include <math.h>
#include <monochord.h>
#include <stdio.h>

enum { N = 200, D = 3, KEEP = 2 };

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float64[?, 3]\n"
                  "centre = mean(x, axis=0)\n"
                  "u, s, directions = svd(x - centre, full_matrices=False)\n"
                  "explained = sqr(s) / sum(sqr(s))\n"
                  "scores = dot(x - centre, directions[:2].T)\n"
                  "again = dot(scores, directions[:2]) + centre\n"
                  "off = sqrt(mean(sum(sqr(x - again), axis=1)))\n");
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .inputs = "x", .outputs = "explained, directions, scores, off" });
    if (!f) {
        return printf("%s\n", mc_error(g)), 1;
    }

    double points[N][D], off = 0;
    for (int i = 0; i < N; i++) { /* 2 a (1, 1, 0) + b (0, 1, 1), and a little beside the plane */
        const double a = 2 * sin(i * 12.9898), b = sin(i * 78.233), beside = 0.05 * sin(i * 37.719);
        points[i][0] = a + beside;
        points[i][1] = a + b - beside;
        points[i][2] = b + beside + 5;
    }
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(N, D), points), *explained = NULL, *directions = NULL,
             *scores = NULL;
    if (mc_call(f, MC_IN(x), MC_OUT(&explained, &directions, &scores, &off)) < 0) {
        return printf("%s\n", mc_last_error()), 1;
    }
    for (int64_t i = 0; i < D; i++) {
        printf("direction %d  [%6.3f %6.3f %6.3f]  explains %.1f%%\n", (int)i + 1,
               mc_array_get(directions, (int64_t[]){ i, 0 }), mc_array_get(directions, (int64_t[]){ i, 1 }),
               mc_array_get(directions, (int64_t[]){ i, 2 }), 100 * mc_array_get(explained, &i));
    }
    printf("%d numbers a point leave a distance of %.3f\n", KEEP, off);
    mc_array_unref(&x), mc_array_unref(&explained), mc_array_unref(&directions), mc_array_unref(&scores);
    mc_function_free(f);
    mc_graph_free(g);
    return 0;
}

/* projectile.c: a throw is computed until it lands; the gradient of its range finds the angle that throws
 * farthest.
 *
 * Without drag the range is v^2 sin(2 angle) / g, and the best angle is 45 degrees. */
#include <math.h>
#include <monochord.h>
#include <stdio.h>

static const char *const flight =
    "input angle float64; input drag float64; input speed float64\n"
    "dt = 0.002\n"
    "ox, oy, x, y, count = scan(steps=20000, ox from 0.0f64, oy from 0.0f64, x from 0.0f64, y from 0.0f64,\n"
    "                           u from speed * cos(angle), v from speed * sin(angle):\n"
    "    ox, oy = x, y;\n"
    "    ax, ay = -drag * sqrt(u * u + v * v) * u, -9.81 - drag * sqrt(u * u + v * v) * v;\n"
    "    x, y = x + dt * u + dt * dt / 2 * ax, y + dt * v + dt * dt / 2 * ay;\n"
    "    u, v = u + dt * ax, v + dt * ay;\n"
    "    yield last ox, last oy, last x, last y, count;\n"
    "    until y < 0)\n"
    "range = ox + (x - ox) * oy / (oy - y)           # between the last two points\n"
    "time = dt * cast(count, float64)\n";

/* Steps of gradient ascent from 30 degrees. */
static int farthest(mc_function *f, double drag)
{
    const double degree = acos(-1.0) / 180;
    double angle = 30 * degree, range = 0, slope = 1, time = 0;
    for (int i = 0; i < 100 && fabs(slope) > 1e-9; i++) {
        if (mc_call(f, MC_IN(angle, drag, 20.0), MC_OUT(&range, &slope, &time)) < 0) {
            return puts(mc_last_error()), 1;
        }
        angle += 0.005 * slope;
    }
    printf("drag %.2f: %.3f m after %.2f s, at %.2f degrees\n", drag, range, time, angle / degree);
    return 0;
}

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, flight);
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "angle, drag, speed", .outputs = "range, grad(range, angle), time" });
    if (!f) {
        return puts(mc_last_error()), 1;
    }
    const int failed = farthest(f, 0) || farthest(f, 0.02) || farthest(f, 0.1);
    mc_function_free(f), mc_graph_free(g);
    return failed;
}

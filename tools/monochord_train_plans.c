/* monochord_train_plans.c: in a page, which solver does each convolution of a function, and how fast.
 *
 * Invariant: the library says what a step is for; nothing here reads formulas. */
#include "train.h"
#include <string.h>

static bool is_convolution(const mc_step_info *s)
{
    return strncmp(s->kind, "conv", 4) == 0;
}

static void convolution(struct text *t, const mc_step_info *s, double all)
{
    text_addf(t, "<tr><td>");
    html_add(t, s->name);
    text_addf(t, "</td><td>");
    html_add(t, s->solver);
    text_addf(t,
              "</td><td class=\"r\">%.2f ms</td><td class=\"r\">%.0f%%</td><td class=\"r\">%.0f "
              "GFLOP/s</td></tr>\n",
              s->calls ? 1e3 * s->seconds / (double)s->calls : 0, all > 0 ? 100 * s->seconds / all : 0,
              s->seconds > 0 ? s->flops / s->seconds * 1e-9 : 0);
}

void plans_add(struct text *t, const mc_function *f)
{
    double all = 0;
    int n = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        mc_step_info s = mc_function_step(f, i);
        all += s.seconds;
        n += is_convolution(&s);
    }
    if (!n) {
        return;
    }
    text_addf(
        t, "<h2>How its convolutions are computed</h2>\n<p class=\"dim small\">The library has many ways to "
           "compute a convolution, called solvers, and selects the one that it expects or has measured to be "
           "the "
           "fastest. For each convolution of a training step: the solver, its time in one step, its share of "
           "the "
           "whole step, and its arithmetic in a second.</p>\n<div class=\"card\"><table "
           "class=\"plain\"><tr><th>convolution</th><th>solver</th><th class=\"r\">time</th><th "
           "class=\"r\">share</th><th class=\"r\">speed</th></tr>\n");
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        mc_step_info s = mc_function_step(f, i);
        if (is_convolution(&s)) {
            convolution(t, &s, all);
        }
    }
    text_addf(t, "</table></div>\n");
}

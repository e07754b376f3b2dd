/* schedule.c: schedules of the learning rate: a factor as a function of the time in epochs.
 *
 * Invariant: the factor depends only on the time and the number of epochs, so training can be resumed. */
#include "nn/nn.h"
#include <math.h>

static double constant(const struct mc_nn_settings *s, double epoch, double epochs)
{
    (void)s;
    (void)epoch;
    (void)epochs;
    return 1;
}

static double steps(const struct mc_nn_settings *s, double epoch, double epochs)
{
    (void)epochs;
    return pow(mc_nn_real(s, "by"), floor(epoch / mc_nn_real(s, "every")));
}

static double exponential(const struct mc_nn_settings *s, double epoch, double epochs)
{
    (void)epochs;
    return pow(mc_nn_real(s, "by"), epoch);
}

/* The factor goes from 1 to `to` at the last epoch. */
static double linear(const struct mc_nn_settings *s, double epoch, double epochs)
{
    double t = epochs > 0 ? fmin(epoch / epochs, 1) : 1, to = mc_nn_real(s, "to");
    return 1 + (to - 1) * t;
}

static double cosine(const struct mc_nn_settings *s, double epoch, double epochs)
{
    double t = epochs > 0 ? fmin(epoch / epochs, 1) : 1, to = mc_nn_real(s, "to");
    return to + (1 - to) * 0.5 * (1 + cos(acos(-1) * t));
}

static const struct row {
    const char *name;
    struct mc_nn_field field[4];
    double (*factor)(const struct mc_nn_settings *s, double epoch, double epochs);
    const char *doc;
} rows[] = {
#define WARM { "warmup", NN_REAL, "0", NN_FROM_0 }
#define BY(preset) { "by", NN_REAL, preset, NN_FROM_0 }, WARM
#define TO { "to", NN_REAL, "0", NN_FROM_0 }, WARM
    { "constant", { WARM }, constant, "1" },
    { "step",
      { { "every", NN_REAL, NULL, "(0, inf)" }, BY("0.1") },
      steps,
      "multiplied by `by` after each `every` epochs" },
    { "exponential", { BY(NULL) }, exponential, "multiplied by `by` after each epoch" },
    { "linear", { TO }, linear, "from 1 to `to`, linearly" },
    { "cosine", { TO }, cosine, "from 1 to `to`, along half a cosine wave" },
    { NULL, { { NULL } }, NULL, NULL },
};

bool mc_nn_schedule(const struct mc_nn_line *line, const char *at, double epoch, double epochs,
                    double *factor)
{
    struct mc_nn_slice name, word;
    struct mc_nn_settings s;
    const struct row *r = rows;
    if (!mc_nn_next_word(line, &at, ' ', &name, &word) || !word.s) {
        return mc_nn_wrong(line, line->end, MC_EARG, "a schedule is missing");
    }
    while (r->name && !mc_nn_same(word, r->name)) {
        r++;
    }
    if (!r->name) {
        return mc_nn_wrong(line, word.s, MC_EARG, "there is no schedule '%.*s'%s", (int)word.n, word.s,
                           mc_nn_near_row(word, rows, sizeof *rows).text);
    }
    if (!mc_nn_read(&s, line, at, line->end, ' ', r->field, r->name)) {
        return false;
    }
    double warm = mc_nn_real(&s, "warmup"); /* epochs in which the rate rises from 0 */
    *factor = r->factor(&s, epoch, epochs) * (epoch < warm ? epoch / warm : 1);
    return true;
}

double mc_net_rate(const mc_net *net, double epoch)
{
    if (mc_nn_null(net, "net")) {
        return 0;
    }
    struct mc_nn_line line = mc_nn_own_line((mc_net *)net, net->train.schedule);
    double factor = 1;
    mc_nn_schedule(&line, line.text, epoch, (double)net->train.epochs, &factor);
    return net->train.rate * factor;
}

void mc_nn_manual_schedules(struct mc_nn_text *t)
{
    mc_nn_manual_head(t, "Schedules", "the rate after a number of epochs, as a multiple of the initial one");
    for (const struct row *r = rows; r->name; r++) {
        mc_nn_manual_row(t, r->name, r->field, r->doc, false);
    }
}

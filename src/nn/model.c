/* model.c: reads a model: lines with layers and settings of the training.
 *
 * Invariant: the first word of a line determines its kind. An error stops the reading and shows the line with
 * a caret. */
#include "nn/nn.h"
#include <stdio.h>

/* ---- settings: their words are checked and stored ---- */

static const char *rest(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    at += strspn(at, " \t");
    size_t n = at < line->end ? (size_t)(line->end - at) : 0;
    while (n && strchr(" \t\r", at[n - 1])) {
        n--;
    }
    const char *kept = mc_nn_keep_text(net, at, n);
    return kept ? kept : "";
}

static bool whole(const struct mc_nn_line *line, const char *at, const char *what, int64_t least,
                  int64_t *out)
{
    const struct mc_nn_field field[] = { { what, NN_INT, NULL, NULL }, { NULL, NN_INT, NULL, NULL } };
    struct mc_nn_settings s;
    if (!mc_nn_read(&s, line, at, line->end, ' ', field, what)) {
        return false;
    }
    *out = mc_nn_int(&s, what);
    return *out >= least || mc_nn_wrong(line, s.value[0].s, MC_EARG, "%s is %lld; expected at least %lld",
                                        what, (long long)*out, (long long)least);
}

static bool batch(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    return whole(line, at, "batch", 1, &net->train.batch);
}

static bool epochs(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    return whole(line, at, "epochs", 1, &net->train.epochs);
}

static bool patience(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    return whole(line, at, "patience", 0, &net->train.patience);
}

static bool loss(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    net->train.loss = rest(net, line, at);
    return mc_nn_loss_check(line, at);
}

static bool rule(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    net->train.rule = rest(net, line, at);
    return mc_nn_rule_check(line, at, &net->train.rate);
}

static bool schedule(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    double factor;
    net->train.schedule = rest(net, line, at);
    return mc_nn_schedule(line, at, 0, 1, &factor);
}

static bool penalty(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    if (net->npenalty == COUNT(net->penalty)) {
        return mc_nn_wrong(line, at, MC_EARG, "more than %d penalties", COUNT(net->penalty));
    }
    net->penalty[net->npenalty++] = rest(net, line, at);
    return mc_nn_penalty_check(line, at);
}

static bool also(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    if (net->nalso == COUNT(net->also)) {
        return mc_nn_wrong(line, at, MC_EARG, "more than %d lines 'also'", COUNT(net->also));
    }
    net->also[net->nalso++] = rest(net, line, at);
    return mc_nn_also_check(line, at);
}

static bool augment(mc_net *net, const struct mc_nn_line *line, const char *at)
{
    static const struct mc_nn_field fields[] = { { "shift", NN_INT, "0", NULL },
                                                 { "flip", NN_BOOL, "false", NULL },
                                                 { "crop", NN_SIZES, "none", "none" },
                                                 { NULL, NN_INT, NULL, NULL } };
    struct mc_nn_settings s;
    net->train.augment = rest(net, line, at);
    return mc_nn_read(&s, line, at, line->end, ' ', fields, "augment");
}

static const struct setting {
    const char *name;
    bool (*take)(mc_net *net, const struct mc_nn_line *line, const char *at);
    const char *doc;
} settings[] = {
    { "batch",    batch,    "examples in a batch: batch 500" },
    { "epochs",   epochs,   "passes over all examples: epochs 50" },
    { "patience", patience, "epochs without improvement after which training stops: patience 5" },
    { "loss",     loss,     "the loss to minimize: loss categorical_crossentropy" },
    { "rule",     rule,     "the update rule: rule momentum rate=0.01 momentum=0.9" },
    { "schedule", schedule, "how the learning rate changes: schedule step every=10 by=0.5" },
    { "penalty",  penalty,  "a penalty on weights, one line each: penalty l2 0.0005" },
    { "also",     also,     "another loss, in training alone: also formula 'sqr($t - dense2[:, 0])' weight=0.3" },
    { "augment",  augment,  "augmentation of training examples: augment shift=2 flip=true" },
    { NULL, NULL, NULL },
};

bool mc_nn_setting(mc_net *net, const struct mc_nn_line *line)
{
    struct mc_nn_slice name, word, next;
    const char *at = line->text, *behind;
    if (mc_graph_status(net->g) < 0 || !mc_nn_next_word(line, &at, ' ', &name, &word) || !word.s || name.n) {
        return false;
    }
    behind = at;
    if (mc_nn_next_word(line, &behind, ' ', &name, &next) && next.s && mc_nn_same(next, "=")) {
        return false;
    }
    for (const struct setting *s = settings; s->name; s++) {
        if (mc_nn_same(word, s->name)) {
            s->take(net, line, at);
            return true;
        }
    }
    return false;
}

/* ---- lines ---- */

/* The line without its comment and surrounding spaces. */
static struct mc_nn_line trimmed(mc_net *net, const char *file, int number, const char *text, const char *end)
{
    const char *quote = NULL, *stop = text;
    for (; stop < end && (quote || *stop != '#'); stop++) {
        quote = quote ? (*stop == *quote ? NULL : quote) : *stop == '\'' || *stop == '"' ? stop : NULL;
    }
    while (text < stop && strchr(" \t\r", *text)) {
        text++;
    }
    while (text < stop && strchr(" \t\r", stop[-1])) {
        stop--;
    }
    return (struct mc_nn_line){ .g = net->g, .file = file, .number = number, .text = text, .end = stop };
}

static mc_layer *take(mc_net *net, const struct mc_nn_line *line)
{
    return line->text == line->end || mc_nn_setting(net, line) ? &net->broken : mc_nn_layer(net, line);
}

mc_layer *mc_net_add(mc_net *net, const char *text, ...)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    if (!text) {
        mc_mistake(net->g, MC_EARG, "the line is NULL");
        return &net->broken;
    }
    va_list ap;
    va_start(ap, text);
    char *kept = mc_nn_keep_printed(net, text, ap);
    va_end(ap);
    if (!kept) {
        mc_mistake(net->g, MC_EMEMORY, "out of memory");
        return &net->broken;
    }
    struct mc_nn_line line = trimmed(net, NULL, 0, kept, kept + strlen(kept));
    return take(net, &line);
}

mc_status mc_net_read(mc_net *net, const char *name, const char *text)
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    if (!text) {
        mc_mistake(net->g, MC_EARG, "the text of the model is NULL");
        return MC_EARG;
    }
    name = name ? name : "model";
    const char *kept = mc_nn_keep_text(net, text, strlen(text)),
               *file = mc_nn_keep_text(net, name, strlen(name));
    int number = 1;
    for (const char *c = kept; file && c && *c && mc_graph_status(net->g) == MC_OK; number++) {
        const char *end = c + strcspn(c, "\n");
        struct mc_nn_line line = trimmed(net, file, number, c, end);
        take(net, &line);
        c = end + (*end == '\n');
    }
    if (mc_graph_status(net->g) == MC_OK && !net->nlayer) {
        mc_mistake(net->g, MC_EARG, "%s: the model has no layers", name);
    }
    return mc_graph_status(net->g) < 0 ? mc_fail(mc_graph_status(net->g), "%s", mc_error(net->g)) : MC_OK;
}

mc_status mc_net_load(mc_net *net, const char *path)
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    char *text = NULL;
    size_t n = 0;
    mc_status s = mc_file_read(path, &text, &n);
    if (s == MC_OK && strlen(text) != n) {
        s = mc_fail(MC_EFORMAT, "%s: the file is not text", path);
    }
    if (s < 0) {
        mc_mistake(net->g, s, "%s", mc_last_error());
    } else {
        s = mc_net_read(net, path, text);
    }
    mc_free(text);
    return s;
}

const mc_training *mc_net_training(const mc_net *net)
{
    return net ? &net->train : NULL;
}

void mc_nn_manual_settings(struct mc_nn_text *t)
{
    mc_nn_manual_head(t, "Lines that are not layers", "what it sets");
    for (const struct setting *s = settings; s->name; s++) {
        mc_nn_manual_row(t, s->name, NULL, s->doc, false);
    }
}

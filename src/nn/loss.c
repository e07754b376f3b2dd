/* loss.c: losses, accuracies and penalties on weights: tables of formulas.
 *
 * Invariant: the first axis of a prediction is the batch; integer targets have one axis less. */
#include "nn/nn.h"

#define PICKED "$p[arange(size($p, 0)), $t]"
static const struct mc_nn_row losses[] = {
    /* name settings targets like the prediction */
    { "categorical_crossentropy", { { NULL } },                                     "categorical_crossentropy($p, $t)" },
    { "binary_crossentropy",      { { NULL } },                                     "binary_crossentropy($p, $t)" },
    { "squared_error",            { { NULL } },                                     "sqr($p - $t)" },
    { "absolute_error",           { { NULL } },                                     "abs($p - $t)" },
    { "binary_hinge",             { { "delta", NN_REAL, "1" } },                    "relu($delta - $p * (2 * $t - 1))" },
    { "multiclass_hinge",         { { "delta", NN_REAL, "1" } },
      "relu(max(where($t > 0, -inf, $p), axis=1) - sum($p * $t, axis=1) + $delta)" },
    { "huber",                    { { "delta", NN_REAL, "1" } },
      "where(abs($t - $p) <= $delta, 0.5 * sqr($t - $p), $delta * (abs($t - $p) - 0.5 * $delta))" },
    { NULL, { { NULL } }, NULL },
}, for_labels[] = { /* for integer targets */
    { "categorical_crossentropy", { { NULL } },                                     "crossentropy_1hot($p, $t)" },
    { "multiclass_hinge",         { { "delta", NN_REAL, "1" } },
      "relu(max(where(eq(arange(size($p, 1)), expand_dims($t, 1)), -inf, $p), axis=1) - " PICKED " + $delta)" },
    { NULL, { { NULL } }, NULL },
}, accuracies[] = {
    { "categorical",              { { NULL } },                                     "eq(argmax($p, axis=-1), $t)" },
    { "top",                      { { "k", NN_COUNT, "5" } },                         "any(eq(argsort($p)[..., -$k:], expand_dims($t, -1)), axis=-1)" },
    { "binary",                   { { "threshold", NN_REAL, "0.5" } },              "eq(cast($p >= $threshold, $t.dtype), $t)" },
    { NULL, { { NULL } }, NULL },
}, penalties[] = {
    { "l1",                       { { "weight", NN_REAL, "1" } },                   "$weight * sum(abs($p))" },
    { "l2",                       { { "weight", NN_REAL, "1" } },                   "$weight * sum(sqr($p))" },
    { NULL, { { NULL } }, NULL },
}, others[] = { /* $p: the loss so far */
    { "formula",                  { { "formula", NN_TEXT, NULL }, { "weight", NN_REAL, "0.5", "[0, 1]" } },
      "(1 - $weight) * $p + $weight * mean($formula)" },
    { NULL, { { NULL } }, NULL },
};

/* ---- rows ---- */

struct mc_nn_line mc_nn_own_line(mc_net *net, const char *text)
{
    return (struct mc_nn_line){ .g = net->g, .text = text, .end = text + strlen(text) };
}

/* The row that the first word names; *at moves past the word. */
static const struct mc_nn_row *find(const struct mc_nn_line *line, const char **at,
                                    const struct mc_nn_row *table, const char *what)
{
    struct mc_nn_slice name, word;
    if (!mc_nn_next_word(line, at, ' ', &name, &word) || !word.s) {
        mc_nn_wrong(line, line->end, MC_EARG, "a %s is missing", what);
        return NULL;
    }
    for (const struct mc_nn_row *r = table; r->name; r++) {
        if (mc_nn_same(word, r->name)) {
            return r;
        }
    }
    mc_nn_wrong(line, word.s, MC_EARG, "there is no %s '%.*s'%s", what, (int)word.n, word.s,
                mc_nn_near_row(word, table, sizeof *table).text);
    return NULL;
}

bool mc_nn_row(struct mc_nn_text *out, const struct mc_nn_line *line, const char *at, const char *end,
               const struct mc_nn_row *table, const char *what, struct mc_nn_holes *holes)
{
    struct mc_nn_settings s;
    const struct mc_nn_row *r = find(line, &at, table, what);
    struct mc_nn_text value[COUNT(r->field)] = { { 0 } };
    bool good = r && mc_nn_read(&s, line, at, end, ' ', r->field, r->name);
    for (int i = 0; good && r->field[i].name; i++) {
        mc_nn_addn(&value[i], s.value[i].s, s.value[i].n);
        good = !value[i].bad;
        mc_nn_hole(holes, r->field[i].name, value[i].s);
    }
    good = good && (!out || (mc_nn_fill(out, r->form, holes) && !out->bad));
    for (int i = 0; i < COUNT(value); i++) {
        mc_nn_free(&value[i]);
    }
    return good;
}

mc_node *mc_nn_both(mc_net *net, const char *what, const char *form, mc_node *p, mc_node *t)
{
    struct mc_nn_holes h = { .n = 0 };
    struct mc_nn_text text = { 0 };
    const char *pn = mc_nn_name(net, "prediction"), *tn = mc_nn_name(net, "target");
    mc_node *n = NULL;
    if (pn && tn && p && (!t || mc_name(t, tn)) && mc_name(p, pn)) {
        mc_nn_hole(&h, "p", pn);
        mc_nn_hole(&h, "t", tn);
        n = mc_nn_fill(&text, form, &h) && !text.bad ? mc_nn_formula(net, NULL, what, text.s) : NULL;
    }
    mc_nn_free(&text);
    return n ? n : mc_mistake(net->g, MC_EARG, "%s: a node is missing", what);
}

/* The formula of the row that the words name, for prediction p and target t. */
static mc_node *of_row(mc_net *net, const char *words, const struct mc_nn_row *table, const char *what,
                       mc_node *p, mc_node *t)
{
    struct mc_nn_line line = mc_nn_own_line(net, words);
    struct mc_nn_holes h = { .n = 0 };
    struct mc_nn_text form = { 0 };
    mc_node *n = NULL;
    mc_nn_hole(&h, "p", mc_nn_name(net, "prediction"));
    mc_nn_hole(&h, "t", mc_nn_name(net, "target"));
    if (mc_nn_row(&form, &line, line.text, line.end, table, what, &h)) {
        n = mc_nn_both(net, what, form.s, p, t);
    }
    mc_nn_free(&form);
    return n ? n : mc_mistake(net->g, MC_EMEMORY, "out of memory");
}

/* ---- losses ---- */

/* If predictions are a column and targets a vector, the targets become a column. */
static mc_node *align(mc_node *p, mc_node *t)
{
    bool column = p && t && mc_node_rank(p) == 2 && mc_node_dims(p)[1] == 1 && mc_node_rank(t) == 1;
    return column ? mc_expand_dims(t, "axis=1") : t;
}

static bool whole(const mc_node *n)
{
    return n && mc_node_dtype(n) <= MC_UINT64;
}

/* The loss of classes at every position: of all of them as rows, in the shape of the target. */
static mc_node *of_positions(mc_net *net, const char *loss, mc_node *prediction, mc_node *target)
{
    mc_node *rows = mc_nn_both(net, "loss", "reshape($p, [-1, size($p, -1)])", prediction, NULL),
            *labels = mc_nn_both(net, "loss", "ravel($p)", target, NULL),
            *each = of_row(net, loss, for_labels, "loss", rows, labels);
    return mc_nn_both(net, "loss", "reshape($p, shape($t))", each, target);
}

mc_node *mc_loss(mc_net *net, const char *loss, mc_node *prediction, mc_node *target)
{
    if (mc_nn_null(net, "net") || mc_nn_null(loss, "loss")) {
        return NULL;
    }
    bool labels = prediction && target && mc_node_rank(target) == mc_node_rank(prediction) - 1 &&
                  whole(target);
    const struct mc_nn_row *table = losses;
    for (const struct mc_nn_row *r = for_labels; labels && r->name; r++) {
        table = strncmp(loss, r->name, strlen(r->name)) == 0 ? for_labels : table;
    }
    if (table == for_labels && mc_node_rank(prediction) > 2) {
        return of_positions(net, loss, prediction, target);
    }
    return of_row(net, loss, table, "loss", prediction, table == losses ? align(prediction, target) : target);
}

mc_node *mc_accuracy(mc_net *net, const char *accuracy, mc_node *prediction, mc_node *target)
{
    if (mc_nn_null(net, "net") || mc_nn_null(accuracy, "accuracy")) {
        return NULL;
    }
    bool binary = strncmp(accuracy, "binary", 6) == 0,
         same = prediction && target && mc_node_rank(prediction) == mc_node_rank(target);
    mc_node *t = binary ? align(prediction, target) : same ? mc_argmax(target, "axis=-1") : target;
    return of_row(net, accuracy, accuracies, "accuracy", prediction, t);
}

mc_node *mc_aggregate(mc_net *net, const char *mode, mc_node *loss, mc_node *weights)
{
    if (mc_nn_null(net, "net") || mc_nn_null(mode, "mode")) {
        return NULL;
    }
    static const struct { const char *mode, *form, *weighted; } modes[] = {
        { "mean",           "mean($p)", "mean($p * $t)" },
        { "sum",            "sum($p)",  "sum($p * $t)" },
        { "normalized_sum", NULL,       "sum($p * $t) / sum($t)" },
    };
    for (int i = 0; i < COUNT(modes); i++) {
        const char *form = weights ? modes[i].weighted : modes[i].form;
        if (strcmp(mode, modes[i].mode) == 0) {
            return form ? mc_nn_both(net, "aggregate", form, loss, weights)
                        : mc_mistake(net->g, MC_EARG, "aggregate: %s needs weights", mode);
        }
    }
    return mc_mistake(net->g, MC_EARG, "aggregate: unknown mode '%s'; expected mean, sum or normalized_sum",
                      mode);
}

bool mc_nn_loss_check(const struct mc_nn_line *line, const char *at)
{
    struct mc_nn_holes h = { .n = 0 };
    return mc_nn_row(NULL, line, at, line->end, losses, "loss", &h);
}

bool mc_nn_loss_labels(const char *loss)
{
    for (const struct mc_nn_row *r = for_labels; r->name; r++) {
        if (strncmp(loss, r->name, strlen(r->name)) == 0) {
            return true;
        }
    }
    return false;
}

const char *mc_nn_loss_accuracy(const char *loss)
{
    return mc_nn_loss_labels(loss)                         ? "categorical"
           : strncmp(loss, "binary_crossentropy", 19) == 0 ? "binary"
                                                           : NULL;
}

/* ---- penalties ---- */

mc_node *mc_penalty(mc_net *net, const char *penalty, mc_layer *layer, const char *tags)
{
    if (mc_nn_null(net, "net") || mc_nn_null(penalty, "penalty")) {
        return NULL;
    }
    mc_node *all = NULL;
    mc_param p;
    for (int i = 0; (p = mc_net_param(net, tags ? tags : "regularizable", i)).name; i++) {
        if (!layer || p.layer == layer) {
            mc_node *one = of_row(net, penalty, penalties, "penalty", mc_shared_node(net->g, p.shared), NULL);
            all = all ? mc_add(all, one) : one;
        }
    }
    return all ? all : mc_number(net->g, mc_nn_float(), 0);
}

bool mc_nn_penalty_check(const struct mc_nn_line *line, const char *at)
{
    struct mc_nn_holes h = { .n = 0 };
    return mc_nn_row(NULL, line, at, line->end, penalties, "penalty", &h);
}

/* ---- another loss, while a net learns ---- */

mc_node *mc_nn_also(mc_net *net, const char *also, mc_node *loss, mc_node *target)
{
    return of_row(net, also, others, "other loss", loss, target);
}

bool mc_nn_also_check(const struct mc_nn_line *line, const char *at)
{
    struct mc_nn_holes h = { .n = 0 };
    return mc_nn_row(NULL, line, at, line->end, others, "other loss", &h);
}

void mc_nn_manual_losses(struct mc_nn_text *t)
{
    static const struct {
        const char *title;
        const struct mc_nn_row *rows;
    } tables[] = { { "Losses", losses },
                   { "Losses with whole numbers as targets", for_labels },
                   { "Accuracies", accuracies },
                   { "Penalties", penalties },
                   { "Other losses", others } };
    for (int i = 0; i < COUNT(tables); i++) {
        mc_nn_manual_head(t, tables[i].title, "formula");
        for (const struct mc_nn_row *r = tables[i].rows; r->name; r++) {
            mc_nn_manual_row(t, r->name, r->field, r->form, true);
        }
    }
}

/* layer.c: makes a layer of a line: the row of its kind, settings, inputs, parameters, and a formula for each
 * pass (training, deterministic), which the graph parses.
 *
 * Invariant: a layer's shape is that of its node, so no rule about shapes is stated twice. */
#include "nn/nn.h"
#include <stdio.h>

const struct mc_nn_kind *const mc_nn_kinds[] = {
    mc_nn_plain, mc_nn_convs, mc_nn_pools, mc_nn_merges, mc_nn_noises, mc_nn_norms, mc_nn_shapes, mc_nn_specials, mc_nn_convnets, mc_nn_recurrents, NULL,
};

static const struct mc_nn_kind *kind_at(int i)
{
    for (int t = 0; mc_nn_kinds[t]; t++) {
        for (const struct mc_nn_kind *k = mc_nn_kinds[t]; k->name; k++) {
            if (i-- == 0) {
                return k;
            }
        }
    }
    return NULL;
}

static const struct mc_nn_kind *find_kind(struct mc_nn_slice name)
{
    const struct mc_nn_kind *k = NULL;
    for (int i = 0; (k = kind_at(i)) && !mc_nn_same(name, k->name);) {
        i++;
    }
    return k;
}

static struct mc_nn_hint near_kind(struct mc_nn_slice word)
{
    const char *names[128];
    int n = 0;
    if (mc_nn_is_act(word)) {
        struct mc_nn_hint alone;
        mc_snprintf(alone.text, sizeof alone.text,
                    "; a layer that is only a nonlinearity is 'nonlinearity %.*s'", (int)word.n, word.s);
        return alone;
    }
    for (const struct mc_nn_kind *k; n < COUNT(names) && (k = kind_at(n)); n++) {
        names[n] = k->name;
    }
    return mc_nn_near(word, names, n);
}

/* ---- inputs ---- */

static mc_layer *layer_named(const mc_net *net, struct mc_nn_slice name)
{
    mc_layer *l = NULL;
    for (int i = 0; i < net->nlayer && !l; i++) {
        l = mc_nn_same(name, net->layer[i]->name) ? net->layer[i] : NULL;
    }
    return l;
}

static bool add_input(struct mc_nn_build *b, struct mc_nn_slice name, mc_layer **in, int *n, int most)
{
    mc_layer *l = layer_named(b->net, name);
    if (!l) {
        return mc_nn_wrong(b->set.line, name.s, MC_EARG, "there is no layer '%.*s'", (int)name.n, name.s);
    }
    if (*n == most) {
        return mc_nn_wrong(b->set.line, name.s, MC_EARG, "%s takes at most %d layers", b->layer->kind->name,
                           most);
    }
    in[(*n)++] = l;
    return true;
}

static bool find_inputs(struct mc_nn_build *b)
{
    enum { MOST = 32 };
    mc_layer *in[MOST];
    int n = 0, want = b->layer->kind->nin;
    struct mc_nn_slice from = mc_nn_get(&b->set, "from");
    for (const char *c = from.s, *end = c + from.n; c < end; c++) {
        const char *comma = memchr(c, ',', (size_t)(end - c));
        comma = comma ? comma : end;
        if (!add_input(b, (struct mc_nn_slice){ c, (size_t)(comma - c) }, in, &n, want < 0 ? MOST : want)) {
            return false;
        }
        c = comma;
    }
    for (int i = 0; i < b->set.nloose; i++) {
        if (!add_input(b, b->set.loose[i], in, &n, want < 0 ? MOST : want)) {
            return false;
        }
    }
    if (n == 0 && want == 1 && b->net->nlayer) {
        in[n++] = b->net->layer[b->net->nlayer - 1];
    }
    if (want == 1 && n != 1) {
        return mc_nn_wrong(b->set.line, b->set.line->text, MC_EARG,
                           "%s needs a layer before it; a model begins with its input, as in 'input 1x28x28'",
                           b->layer->kind->name);
    }
    if (want < 0 ? n < 2 : n != want) {
        return mc_nn_wrong(b->set.line, b->set.line->text, MC_EARG, "%s needs the names of %s layers",
                           b->layer->kind->name, want < 0 ? "two or more" : "two");
    }
    for (int i = 0; b->field[i].name; i++) {
        mc_layer *l = b->field[i].type == NN_SIDE ? layer_named(b->net, b->set.value[i]) : NULL;
        if (l && b->nside < COUNT(b->side) && n < MOST) {
            in[n++] = l;
            b->side[b->nside++] = b->field[i].name;
        }
    }
    b->layer->nin = n;
    b->layer->in = mc_nn_keep(b->net, (size_t)n * sizeof *in);
    if (b->layer->in && n) {
        memcpy(b->layer->in, in, (size_t)n * sizeof *in);
    }
    return b->layer->in != NULL;
}

/* The holes for inputs: $x; for several inputs $x1, $x2, ..., and $xs for all of them; $mask for one that the
 * field `mask` names. */
static void let_inputs(struct mc_nn_build *b, int pass)
{
    static const char *const names[] = { "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8" };
    struct mc_nn_text all = { 0 };
    const int n = b->layer->nin - b->nside;
    for (int i = 0; i < b->nside; i++) {
        mc_nn_hole(&b->holes, b->side[i], b->layer->in[n + i]->var[pass]);
    }
    for (int i = 0; i < n; i++) {
        const char *var = b->layer->in[i]->var[pass];
        mc_nn_addf(&all, "%s%s", i ? ", " : "", var);
        if (i < COUNT(names)) {
            mc_nn_hole(&b->holes, names[i], var);
        }
    }
    if (b->layer->nin) {
        mc_nn_hole(&b->holes, "x", b->layer->in[0]->var[pass]);
        mc_nn_let(b, "xs", "%s", all.bad ? "" : all.s);
    }
    b->failed |= all.bad;
    mc_nn_free(&all);
}

/* ---- formulas ---- */

/* The last semicolon outside of brackets, or NULL. */
static const char *last_statement(const char *s)
{
    const char *last = NULL;
    for (int depth = 0; *s; s++) {
        depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
        last = *s == ';' && depth == 0 ? s : last;
    }
    return last;
}

/* "statements; value" becomes "statements; name = act(value)"; a declaration stays as it is. */
static bool statement(struct mc_nn_build *b, int pass, struct mc_nn_text *out)
{
    struct mc_nn_text body = { 0 };
    b->holes.own = b->layer->var[pass];
    bool good = mc_nn_fill(&body, b->form[pass], &b->holes) && !body.bad;
    const char *last = good ? last_statement(body.s) : NULL, *value = last ? last + 1 : good ? body.s : "";
    value += strspn(value, " ");
    if (good && b->layer->kind->nin == 0) {
        mc_nn_add(out, value);
    } else if (good) {
        mc_nn_addf(out, "%.*s%s%s = ", last ? (int)(last - body.s) : 0, body.s, last ? "; " : "",
                   b->layer->var[pass]);
        good = b->has_act || mc_nn_field(&b->set, "act") < 0
                   ? (mc_nn_add(out, value), true)
                   : mc_nn_act(out, b->set.line, mc_nn_get(&b->set, "act"), value);
    }
    mc_nn_free(&body);
    return good && !out->bad;
}

static bool run(struct mc_nn_build *b, int pass)
{
    mc_layer *l = b->layer;
    struct mc_nn_text t = { 0 }, where = { 0 };
    let_inputs(b, pass);
    bool good = !b->failed && statement(b, pass, &t) && (l->text[pass] = mc_nn_keep_text(b->net, t.s, t.n));
    if (good) {
        mc_nn_addf(&where, "%s %s", l->kind->name, l->name);
        l->node[pass] = mc_nn_formula(b->net, b->set.line, where.bad ? l->name : where.s, t.s);
    } else if (mc_graph_status(b->net->g) == MC_OK) {
        mc_nn_wrong(b->set.line, b->set.line->text, MC_EARG,
                    "%s: the formula has a name that is not a setting: %s", l->kind->name, b->form[pass]);
    }
    mc_nn_free(&t);
    mc_nn_free(&where);
    return good && mc_graph_status(b->net->g) == MC_OK;
}

/* The deterministic pass is the same node unless the form, or that of an input, differs. */
static bool passes(struct mc_nn_build *b)
{
    mc_layer *l = b->layer;
    bool differs = strcmp(b->form[0], b->form[1]) != 0;
    for (int i = 0; i < l->nin; i++) {
        differs |= l->in[i]->node[0] != l->in[i]->node[1];
    }
    if (!run(b, 0)) {
        return false;
    }
    if (!differs) {
        l->node[1] = l->node[0];
        l->text[1] = l->text[0];
        l->var[1] = l->var[0];
    }
    return !differs || run(b, 1);
}

/* ---- names ---- */

static bool is_name(struct mc_nn_slice word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return strspn(word.s, letters) >= word.n && !strchr(letters + 53, *word.s);
}

static bool name_it(struct mc_nn_build *b, struct mc_nn_slice given)
{
    mc_layer *l = b->layer;
    struct mc_nn_text t = { 0 };
    int same = 1;
    if (given.n && !is_name(given)) {
        return mc_nn_wrong(b->set.line, given.s, MC_ESYNTAX,
                           "'%.*s' is not a valid name: use letters, digits and _, and no digit first",
                           (int)given.n, given.s);
    }
    for (int i = 0; i < b->net->nlayer; i++) {
        same += b->net->layer[i]->kind == l->kind;
    }
    if (given.n) {
        mc_nn_addn(&t, given.s, given.n);
    } else if (l->kind->nin == 0) {
        mc_nn_addf(&t, same == 1 ? "x" : "x%d", same);
    } else {
        mc_nn_addf(&t, "%s%d", l->kind->name, same);
    }
    l->name = t.bad ? NULL : mc_nn_keep_text(b->net, t.s, t.n);
    if (l->name && mc_net_find(b->net, l->name)) {
        mc_nn_free(&t);
        return mc_nn_wrong(b->set.line, given.n ? given.s : b->set.line->text, MC_EARG,
                           "there is already a layer '%s'", l->name);
    }
    t.n = 0;
    mc_nn_addf(&t, "%s_det", l->name);
    l->var[0] = l->name ? mc_nn_name(b->net, l->name) : NULL;
    l->var[1] = l->name && !t.bad ? mc_nn_name(b->net, t.s) : NULL;
    mc_nn_free(&t);
    return l->name && l->var[0] && l->var[1];
}

/* ---- the whole ---- */

/* Makes a hole of each field of the row, with its value; numbers keep their commas. */
static void let_fields(struct mc_nn_build *b)
{
    for (int i = 0; b->field[i].name; i++) {
        struct mc_nn_slice v = b->set.value[i];
        int64_t list[NN_MOST_AXES];
        int n = b->field[i].type == NN_SIZES || b->field[i].type == NN_AXES
                    ? mc_nn_list(v, list, NN_MOST_AXES)
                    : -1;
        if (n > 0) {
            mc_nn_let_ints(b, b->field[i].name, n, list);
        } else if (b->field[i].type == NN_BOOL) {
            mc_nn_hole(&b->holes, b->field[i].name, mc_nn_bool(&b->set, b->field[i].name) ? "True" : "False");
        } else {
            mc_nn_let(b, b->field[i].name, "%.*s", (int)v.n, v.s);
        }
    }
}

static bool make(struct mc_nn_build *b, const struct mc_nn_line *line, const char *at,
                 struct mc_nn_slice name)
{
    const struct mc_nn_kind *k = b->layer->kind;
    int n = 0;
    bool from = false;
    for (; n < NN_MOST_FIELDS - 1 && k->field[n].name; n++) {
        b->field[n] = k->field[n];
        from |= strcmp(k->field[n].name, "from") == 0;
    }
    if (!from) {
        b->field[n] = (struct mc_nn_field){ "from", NN_TEXT, "" };
    }
    if (!mc_nn_read(&b->set, line, at, line->end, ' ', b->field, k->name) || !find_inputs(b) ||
        !name_it(b, name)) {
        return false;
    }
    mc_nn_hole(&b->holes, "random", b->net->rng);
    mc_nn_hole(&b->holes, "var", b->layer->var[0]);
    let_fields(b);
    b->form[0] = k->training;
    b->form[1] = k->deterministic ? k->deterministic : k->training;
    let_inputs(b, 0);
    const char *before = mc_label(b->net->g, b->layer->name);
    if (k->make) {
        k->make(b);
    }
    bool good = !b->failed && passes(b);
    mc_label(b->net->g, before);
    return good;
}

mc_layer *mc_nn_layer(mc_net *net, const struct mc_nn_line *line)
{
    struct mc_nn_slice name = { NULL, 0 }, setting, word, equals;
    const char *at = line->text;
    if (mc_graph_status(net->g) < 0 || !mc_nn_next_word(line, &at, ' ', &setting, &word) || !word.s) {
        return &net->broken;
    }
    const char *behind = at;
    if (setting.n) { /* name=kind */
        name = setting;
    } else if (mc_nn_next_word(line, &behind, ' ', &setting, &equals) &&
               mc_nn_same(equals, "=")) { /* name = kind */
        name = word;
        at = behind;
        if (!mc_nn_next_word(line, &at, ' ', &setting, &word)) {
            mc_nn_wrong(line, line->end, MC_ESYNTAX, "a kind of layer is missing");
            return &net->broken;
        }
    }
    const struct mc_nn_kind *kind = find_kind(word);
    if (!kind) {
        mc_nn_wrong(line, word.s, MC_EARG, "there is no layer '%.*s'%s", (int)word.n, word.s,
                    near_kind(word).text);
        return &net->broken;
    }
    struct mc_nn_build *b = mc_nn_keep(net, sizeof *b);
    mc_layer *l = mc_nn_keep(net, sizeof *l);
    if (!b || !l) {
        return &net->broken;
    }
    *l = (mc_layer){ .net = net, .kind = kind };
    b->net = net;
    b->layer = l;
    bool made = make(b, line, at, name) &&
                mc_nn_push(net, &net->layer, &net->nlayer, &net->layer_cap, sizeof l, &l);
    if (!mc_nn_check_error(net, made) && !strchr(mc_error(net->g), '^')) {
        mc_nn_set_error(net->g, line, kind->name); /* the graph refused a variable's name or sizes */
    }
    return made ? l : &net->broken;
}

/* init.c: initial values of parameters. Random values are counter-based and are drawn by functions of a graph
 * of the net: on every machine they depend only on the seed and the order of the layers.
 *
 * Invariant: the rules and their settings are those of mc_initial_at; this file reads them from a line. */
#include "nn/nn.h"

/* ---- numbers ---- */

enum { UNIFORM, NORMAL };

/* n numbers, uniform from low to high or normal with mean low and deviation high; NULL: the graph has the
 * error. */
static mc_array *numbers(void *arg, int how, int64_t n, double low, double high)
{
    mc_net *net = arg;
    static const char *const form[] = { "uniform(random, [n]) * (b - a) + a", "normal(random, [n]) * b + a" };
    bool many = n > 1 << 20; /* worth a compiled kernel */
    mc_function **f = &net->draw[2 * how + many];
    mc_array *out = NULL;
    if (!*f) {
        *f = mc_compile_at(net->draw_graph,
                           &(mc_spec){ .name = "initial values",
                                       .inputs = "n, a, b",
                                       .outputs = form[how],
                                       .mode = many ? "FAST_RUN" : "FAST_COMPILE" },
                           NULL, 0);
    }
    if (!*f || mc_call(*f, MC_IN(n, low, high), MC_OUT(&out)) < 0) {
        mc_mistake(net->g, MC_EMEMORY, "initial values: %s", mc_last_error());
        return NULL;
    }
    return out;
}

/* ---- settings ---- */

enum { MOST_SETTINGS = COUNT(((mc_initial *)NULL)->setting) };

static void fields_of(const mc_initial *rule, struct mc_nn_field field[MOST_SETTINGS])
{
    int i = 0;
    for (; rule->setting[i].name; i++) {
        bool truth = mc_nn_same((struct mc_nn_slice){ "false", 5 }, rule->setting[i].preset);
        enum mc_nn_type type = truth ? NN_BOOL : rule->setting[i].word ? NN_TEXT : NN_REAL;
        field[i] = (struct mc_nn_field){ rule->setting[i].name, type, rule->setting[i].preset, NULL };
    }
    field[i].name = NULL;
}

/* A number, or a word that is allowed instead of one. */
static bool number_or_word(const struct mc_nn_line *line, const mc_initial *rule, int i, struct mc_nn_slice v,
                           double *out)
{
    char copy[64], *end = copy;
    mc_snprintf(copy, sizeof copy, "%.*s", (int)v.n, v.s);
    bool word = strcmp(copy, rule->setting[i].word) == 0;
    *out = word ? rule->setting[i].means : mc_strtod(copy, &end);
    return word || (end != copy && !*end) ||
           mc_nn_wrong(line, v.s, MC_EARG, "%s: %s takes a number or %s, not '%s'", rule->name,
                       rule->setting[i].name, rule->setting[i].word, copy);
}

static const mc_initial *find_rule(const struct mc_nn_line *line, struct mc_nn_slice *name,
                                   struct mc_nn_slice *args)
{
    const char *names[64];
    int n = 0;
    char first = name->n ? *name->s : ' ';
    if (strchr("0123456789.-+", first)) { /* a number alone is a constant */
        *args = *name;
        return mc_initial_at(0);
    }
    *name = mc_nn_call(*name, args);
    for (; n < COUNT(names) && mc_initial_at(n); n++) {
        names[n] = mc_initial_at(n)->name;
        if (mc_nn_same(*name, names[n])) {
            return mc_initial_at(n);
        }
    }
    mc_nn_wrong(line, name->s, MC_EARG, "there is no initial value and no variable '%.*s'%s", (int)name->n,
                name->s, mc_nn_near(*name, names, n).text);
    return NULL;
}

mc_array *mc_nn_draw(mc_net *net, const struct mc_nn_line *line, struct mc_nn_slice call, int rank,
                     const int64_t *dims)
{
    struct mc_nn_slice args;
    struct mc_nn_field field[MOST_SETTINGS];
    struct mc_nn_settings set;
    double number[MOST_SETTINGS] = { 0 };
    const mc_initial *r = find_rule(line, &call, &args);
    if (r) {
        fields_of(r, field);
    }
    if (!r || !mc_nn_read(&set, line, args.s, args.s + args.n, ',', field, r->name)) {
        return NULL;
    }
    for (int i = 0; field[i].name; i++) {
        number[i] = field[i].type == NN_BOOL ? mc_nn_bool(&set, field[i].name)
                                             : mc_nn_real(&set, field[i].name);
        if (field[i].type == NN_TEXT && !number_or_word(line, r, i, set.value[i], &number[i])) {
            return NULL;
        }
    }
    mc_array *out = mc_initial_value(r, number, mc_nn_float(), rank, dims, numbers, net);
    if (!out && mc_graph_status(net->g) == MC_OK) {
        mc_nn_wrong(line, line->text, mc_last_status(), "%s", mc_last_error());
    }
    return out;
}

mc_array *mc_init(mc_net *net, const char *init, int rank, const int64_t *dims)
{
    if (mc_nn_null(net, "net") || mc_nn_null(init, "initial value")) {
        return NULL;
    }
    struct mc_nn_line line = { .g = net->g, .text = init, .end = init + strlen(init) };
    return mc_nn_draw(net, &line, (struct mc_nn_slice){ init, strlen(init) }, rank, dims);
}

void mc_nn_manual_inits(struct mc_nn_text *t)
{
    mc_nn_manual_head(t, "Initial values", "what it does");
    for (int i = 0; mc_initial_at(i); i++) {
        struct mc_nn_field field[MOST_SETTINGS];
        fields_of(mc_initial_at(i), field);
        mc_nn_manual_row(t, mc_initial_at(i)->name, field, mc_initial_at(i)->doc, false);
    }
}

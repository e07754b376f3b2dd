/* monochord_train_model.c: a model from its text, and does it fit the data?
 *
 * Invariant: a model that was made has one input and one row of numbers for each example: a number a class,
 * or the numbers that are learned. */
#include "train.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* models/NAME.txt, built in; the last row is empty. */
static const struct {
    const char *name;
    const char *text;
} built_in[] = {
#include "models_text.h"
    { NULL, NULL },
};

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static const char *near_model(const char *name)
{
    const char *names[COUNT(built_in)];
    size_t n = 0;
    for (; built_in[n].name; n++) {
        names[n] = built_in[n].name;
    }
    return mc_near_miss(name, names, n);
}

bool model_find(struct text *out, const char *name)
{
    if (is_file(name)) {
        return text_read(out, name);
    }
    struct text known = { 0 };
    text_addf(&known, "%s", "");
    for (int i = 0; built_in[i].name; i++) {
        if (strcmp(built_in[i].name, name) == 0) {
            text_add(out, built_in[i].text, strlen(built_in[i].text));
            text_free(&known);
            return true;
        }
        text_addf(&known, "%s%s", i ? ", " : "", built_in[i].name);
    }
    const char *near = near_model(name);
    if (access(name, F_OK) == 0) { /* a folder */
        text_free(&known);
        return text_read(out, name);
    }
    complain("there is no file '%s', and no such model%s%s%s; models: %s", name,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", known.s);
    text_free(&known);
    return false;
}

static void add_lines(struct text *t, const char *const *lines, int n)
{
    if (t->n && t->s[t->n - 1] != '\n') {
        text_add(t, "\n", 1);
    }
    for (int i = 0; i < n; i++) {
        text_addf(t, "%s\n", lines[i]);
    }
}

/* The input's sizes without the batch. */
static int input_rank(const struct model *m)            { return mc_layer_rank(mc_net_layer(m->net, 0)) - 1; }
static const int64_t *input_dims(const struct model *m) { return mc_layer_dims(mc_net_layer(m->net, 0)) + 1; }

static bool check_shape(struct model *m, const char *name)
{
    mc_layer *out = mc_net_layer(m->net, -1);
    int inputs = 0;
    for (int i = 0; i < mc_net_nlayers(m->net); i++) {
        inputs += mc_layer_ninputs(mc_net_layer(m->net, i)) == 0;
    }
    if (inputs != 1 || mc_layer_ninputs(mc_net_layer(m->net, 0)) != 0) {
        return complain("%s: a model to train must begin with its only input", name), false;
    }
    const int last = mc_layer_rank(out) - 1;
    if (last < 1 || mc_layer_dims(out)[last] < 1) {
        return complain("%s: the last layer must give rows of numbers, one for each class or for each number "
                        "to learn",
                        name),
               false;
    }
    if (mc_layer_dims(out)[0] >= 0 && mc_layer_dims(out)[0] != mc_layer_dims(mc_net_layer(m->net, 0))[0]) {
        return complain("%s: the last layer, %s, gives %lld rows however many examples there are", name,
                        mc_layer_name(out), (long long)mc_layer_dims(out)[0]),
               false;
    }
    for (int k = 0; k < input_rank(m); k++) {
        if (input_dims(m)[k] < 0) {
            return complain("%s: the sizes of the input must be given", name), false;
        }
    }
    m->classes = (int)mc_layer_dims(out)[last];
    return true;
}

/* The logarithm of what is no probability is no number, sooner or later. */
static bool check_loss(struct model *m, const char *name)
{
    const mc_layer *out = mc_net_layer(m->net, -1);
    const char *loss = mc_net_training(m->net)->loss,
               *formula = strchr(mc_layer_text(out, MC_DETERMINISTIC), '=');
    bool relu = formula && strncmp(formula, "= relu(", 7) == 0,
         sums = formula && strncmp(formula, "= dot(", 6) == 0;
    if ((relu || sums) && strcmp(loss, "categorical_crossentropy") == 0) {
        return complain("%s: %s takes probabilities, but the last layer, %s, gives %s; 'dense %d softmax' "
                        "gives them",
                        name, loss, mc_layer_name(out), relu ? "relu's" : "sums", m->classes),
               false;
    }
    m->errors = mc_net_wrong(m->net, MC_DETERMINISTIC) != NULL;
    if (mc_graph_status(m->g) < 0 || !mc_net_target(m->net)) {
        return complain("%s: %s", name, mc_error(m->g)), false;
    }
    const mc_node *t = mc_net_target(m->net);
    m->numbers = mc_node_dtype(t) != MC_INT32;
    m->places = 1;
    for (int k = 1; k < mc_node_rank(t) && !m->numbers; k++) {
        m->places *= mc_node_dims(t)[k];
    }
    if (m->numbers && mc_node_rank(t) != 2) {
        return complain("%s: the last layer gives numbers to learn of %d axes, not a row for each example",
                        name, mc_node_rank(t) - 1),
               false;
    }
    return true;
}

/* Layers and cost; functions are compiled by whoever needs them. */
bool model_make(struct model *m, const char *name, long seed, const char *const *lines, int nlines)
{
    m->g = must(mc_graph_new());
    m->net = must(mc_net_new(m->g, NULL, (uint64_t)seed));
    add_lines(&m->text, lines, nlines);
    mc_here(NULL, 0); /* the place of a mistake is in the model, not here */
    if ((mc_net_read)(m->net, name, m->text.s) < 0) {
        return complain("%s", mc_error(m->g)), false;
    }
    if (!check_shape(m, name)) {
        return false;
    }
    return check_loss(m, name);
}

/* "label" or "target" as a setting of the place. */
static bool says(const char *where, const char *setting)
{
    size_t n = strlen(setting);
    while ((where = strstr(where, setting)) && where[n] != '=' && where[n] != ':' && where[n]) {
        where += n;
    }
    return where != NULL;
}

bool is_table(const char *where)
{
    size_t n = strlen(where);
    bool ends = n > 4 && (strcmp(where + n - 4, ".csv") == 0 || strcmp(where + n - 4, ".tsv") == 0);
    return ends || strncmp(where, "csv:", 4) == 0 || strstr(where, ".csv:") || strstr(where, ".tsv:");
}

bool is_text(const char *where)
{
    return strncmp(where, "text:", 5) == 0;
}

char *table_file(const char *where)
{
    struct text t = { 0 };
    if (is_text(where)) { /* settings have an equals sign */
        const char *end = where + strlen(where);
        for (const char *colon = end; colon > where + 4; colon--) {
            end = *colon == ':' && memchr(colon, '=', (size_t)(end - colon)) ? colon : end;
        }
        text_addf(&t, "%.*s", (int)(end - where - 5), where + 5);
        return t.s;
    }
    const char *from = strncmp(where, "csv:", 4) == 0 ? where + 4 : where, *end = strstr(from, ".csv:");
    end = end                     ? end + 4
          : strstr(from, ".tsv:") ? strstr(from, ".tsv:") + 4
          : from > where          ? from + strcspn(from, ":")
                                  : from + strlen(from);
    text_addf(&t, "%.*s", is_table(where) ? (int)(end - from) : (int)strlen(where),
              is_table(where) ? from : where);
    return t.s;
}

char *model_data(const struct model *m, const char *where)
{
    struct text t = { 0 };
    bool last = is_table(where) && m->numbers && !says(where, ":label") && !says(where, ":target");
    text_addf(&t, "%s%s%s", last && strncmp(where, "csv:", 4) != 0 ? "csv:" : "", where,
              last ? ":target" : "");
    return t.s;
}

void model_free(struct model *m)
{
    mc_function_free(m->step);
    mc_function_free(m->test);
    mc_net_free(m->net);
    mc_graph_free(m->g);
    text_free(&m->text);
}

static void add_dims(struct text *t, int rank, const int64_t *dims)
{
    for (int k = 0; k < rank; k++) {
        text_addf(t, "%s%lld", k ? "x" : "", (long long)dims[k]);
    }
}

/* Sizes but for those that are 1: examples of 28x28 are as good as of 1x28x28. */
static int squeezed(int rank, const int64_t *dims, int64_t out[MC_MAX_RANK])
{
    int n = 0;
    for (int k = 0; k < rank; k++) {
        out[n] = dims[k];
        n += dims[k] != 1;
    }
    return n;
}

bool model_takes(const struct model *m, const mc_data *d, const int64_t *dims, const char *where)
{
    int64_t given[MC_MAX_RANK], taken[MC_MAX_RANK];
    int ngiven = squeezed(mc_data_rank(d), dims, given),
        ntaken = squeezed(input_rank(m), input_dims(m), taken);
    int64_t have = 1, want = 1;
    for (int k = 0; k < mc_data_rank(d); k++) {
        have *= dims[k];
    }
    for (int k = 0; k < input_rank(m); k++) {
        want *= input_dims(m)[k];
    }
    bool flat = input_rank(m) == 1 || mc_data_rank(d) == 1;
    bool same = ngiven == ntaken && memcmp(given, taken, (size_t)ngiven * sizeof *given) == 0;
    if (have != want || !(flat || same)) {
        struct text t = { 0 };
        add_dims(&t, mc_data_rank(d), dims);
        text_addf(&t, ", but the model expects ");
        add_dims(&t, input_rank(m), input_dims(m));
        complain("%s: the examples are %s", where, t.s);
        text_free(&t);
        return false;
    }
    return true;
}

bool model_fits(const struct model *m, const mc_data *d, const int64_t *dims, const char *where)
{
    if (!model_takes(m, d, dims, where)) {
        return false;
    }
    if (m->numbers && !mc_data_targets(d)) {
        return complain("%s: the examples have classes, but the loss %s is not one of classes; use "
                        "categorical_crossentropy",
                        where, mc_net_training(m->net)->loss),
               false;
    }
    if (!m->numbers && mc_data_targets(d)) {
        return complain("%s: the examples have numbers to learn, but the loss %s is one of classes; use "
                        "squared_error",
                        where, mc_net_training(m->net)->loss),
               false;
    }
    if (m->numbers && mc_data_targets(d) != m->classes) {
        return complain("%s: there %s %d number%s to learn, but the model gives %d", where,
                        mc_data_targets(d) == 1 ? "is" : "are", mc_data_targets(d),
                        mc_data_targets(d) == 1 ? "" : "s", m->classes),
               false;
    }
    if (!m->numbers && mc_data_places(d) != m->places) {
        return complain("%s: an example has %lld class%s, but the model gives %lld", where,
                        (long long)mc_data_places(d), mc_data_places(d) == 1 ? "" : "es",
                        (long long)m->places),
               false;
    }
    if (mc_data_classes(d) > m->classes) {
        return complain("%s: the examples have %d classes, but the model has %d", where, mc_data_classes(d),
                        m->classes),
               false;
    }
    return true;
}

mc_array *model_input(const struct model *m, const mc_array *x)
{
    int64_t dims[MC_MAX_RANK] = { mc_array_dims(x)[0] };
    mc_dtype want = mc_node_dtype(mc_layer_node(mc_net_layer(m->net, 0), MC_TRAINING));
    memcpy(dims + 1, input_dims(m), (size_t)input_rank(m) * sizeof *dims);
    mc_array *shaped = must(mc_array_reshape(x, input_rank(m) + 1, dims));
    mc_array *cast = mc_array_dtype(shaped) == want ? mc_array_ref(shaped)
                                                    : must(mc_array_cast(shaped, want));
    mc_array_unref(&shaped);
    return cast;
}

/* init.c: initial values.  Random ones are the library's counter-based numbers, drawn by functions of the net's own
 * graph, so they follow from the seed and the order of the layers alone, on every machine.
 *
 * Invariant: a rule is a row; those that look at the shape turn it into a spread and draw like the others. */
#include "nn/nn.h"
#include <math.h>
#include <stdlib.h>

struct draw {
    mc_net *net;
    const struct mc_nn_line *line;
    struct mc_nn_settings set;
    int rank;
    const int64_t *dims;
    int64_t size;
    mc_array *out; /* zeros of the shape, where `fill` starts */
};

/* ---- numbers ---- */

enum { UNIFORM, NORMAL };

/* n numbers from low to high, or around low with the spread high; NULL: the graph knows why. */
static mc_array *numbers(mc_net *net, int how, int64_t n, double low, double high)
{
    static const char *const form[] = { "uniform(random, [n]) * (b - a) + a", "normal(random, [n]) * b + a" };
    bool many = n > 1 << 20; /* worth a compiled kernel */
    mc_function **f = &net->draw[2 * how + many];
    mc_array *out = NULL;
    if (!*f) {
        *f = mc_compile_at(net->draw_graph, &(mc_spec){ .name = "initial values", .inputs = "n, a, b", .outputs = form[how],
                                                     .mode = many ? "FAST_RUN" : "FAST_COMPILE" }, NULL, 0);
    }
    if (!*f || mc_call(*f, MC_IN(n, low, high), MC_OUT(&out)) < 0) {
        mc_mistake(net->g, MC_EMEMORY, "initial values: %s", mc_last_error());
        return NULL;
    }
    return out;
}

static bool put(struct draw *d, mc_array *flat)
{
    mc_array *shaped = flat ? mc_array_reshape(flat, d->rank, d->dims) : NULL;
    mc_array_unref(&d->out);
    mc_array_unref(&flat);
    d->out = shaped;
    return shaped != NULL;
}

static bool spread(struct draw *d, int how, double mean, double std)
{
    double half = sqrt(3) * std;
    return put(d, how == NORMAL ? numbers(d->net, how, d->size, mean, std) : numbers(d->net, how, d->size, mean - half, mean + half));
}

/* ---- the rules ---- */

static bool refuse(struct draw *d, const char *what, const char *why)
{
    return mc_nn_wrong(d->line, d->line->text, MC_ESHAPE, "%s: %s", what, why);
}

static double gain(const struct draw *d)
{
    return mc_nn_is(&d->set, "gain", "relu") ? sqrt(2) : mc_nn_real(&d->set, "gain");
}

static bool constant(struct draw *d)
{
    static const int64_t still[NN_MOST_AXES] = { 0 };
    double v = mc_nn_real(&d->set, "value");
    mc_array *same = mc_array_wrap(MC_FLOAT64, d->rank, d->dims, still, &v, NULL, NULL);
    mc_status s = same ? mc_array_assign(d->out, same) : MC_EMEMORY;
    mc_array_unref(&same);
    return s >= 0;
}

static bool normal(struct draw *d)
{
    return spread(d, NORMAL, mc_nn_real(&d->set, "mean"), mc_nn_real(&d->set, "std"));
}

static bool uniform(struct draw *d)
{
    double range = mc_nn_real(&d->set, "range"), high = mc_nn_real(&d->set, "high");
    if (mc_nn_real(&d->set, "std") != 0) {
        return spread(d, UNIFORM, mc_nn_real(&d->set, "mean"), mc_nn_real(&d->set, "std"));
    }
    bool pair = !mc_nn_is(&d->set, "high", "auto");
    return put(d, numbers(d->net, UNIFORM, d->size, pair ? range : -range, pair ? high : range));
}

/* The places of a filter, and its channels on both sides; c01b: channels, rows, columns, filters. */
static bool fans(struct draw *d, const char *what, double *one, double *two, double *field)
{
    bool last = mc_nn_bool(&d->set, "c01b");
    if (last && d->rank != 4) {
        return refuse(d, what, "with c01b=true a weight has four axes");
    }
    if (d->rank < 2) {
        return refuse(d, what, "a weight has two axes or more");
    }
    int other = last ? d->rank - 1 : 1;
    *one = (double)d->dims[0];
    *two = (double)d->dims[other];
    *field = 1;
    for (int i = 1; i < d->rank; i++) {
        *field *= i == other ? 1 : (double)d->dims[i];
    }
    return true;
}

static bool glorot(struct draw *d, int how)
{
    double one = 0, two = 0, field = 0;
    return fans(d, "glorot", &one, &two, &field) && spread(d, how, 0, gain(d) * sqrt(2 / ((one + two) * field)));
}

static bool glorot_uniform(struct draw *d)
{
    return glorot(d, UNIFORM);
}

static bool glorot_normal(struct draw *d)
{
    return glorot(d, NORMAL);
}

/* What goes into a unit: a matrix has inputs first, filters have them behind. */
static bool he(struct draw *d, int how)
{
    double one = 0, two = 0, field = 0;
    if (!fans(d, "he", &one, &two, &field)) {
        return false;
    }
    double in = d->rank == 2 || mc_nn_bool(&d->set, "c01b") ? one * field : two * field;
    return spread(d, how, 0, gain(d) * sqrt(1 / in));
}

static bool he_uniform(struct draw *d)
{
    return he(d, UNIFORM);
}

static bool he_normal(struct draw *d)
{
    return he(d, NORMAL);
}

static double at(const mc_array *a, int64_t i)
{
    return mc_array_get(a, &i);
}

struct ranked {
    double key;
    int64_t at;
};

static int by_key(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;
    return p->key < q->key ? -1 : p->key > q->key ? 1 : p->at < q->at ? -1 : 1;
}

/* In each column as many entries as the share says, at places drawn without putting back. */
static bool sparse(struct draw *d)
{
    if (d->rank != 2) {
        return refuse(d, "sparse", "a weight has two axes");
    }
    int64_t rows = d->dims[0], columns = d->dims[1], few = (int64_t)(mc_nn_real(&d->set, "sparsity") * (double)rows);
    mc_array *keys = numbers(d->net, UNIFORM, d->size, 0, 1), *values = numbers(d->net, NORMAL, few * columns, 0, mc_nn_real(&d->set, "std"));
    struct ranked *order = keys && values ? mc_alloc((size_t)rows * sizeof *order + 1, "nets") : NULL;
    for (int64_t c = 0; order && c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            order[r] = (struct ranked){ at(keys, r * columns + c), r };
        }
        qsort(order, (size_t)rows, sizeof *order, by_key);
        for (int64_t r = 0; r < few; r++) {
            mc_array_set(d->out, (int64_t[]){ order[r].at, c }, at(values, c * few + r));
        }
    }
    mc_array_unref(&keys);
    mc_array_unref(&values);
    bool good = order != NULL;
    mc_free(order);
    return good;
}

/* Rows of v made orthogonal and of length one; twice is enough (Kahan). */
static void orthonormal(double *v, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int twice = 0; twice < 2; twice++) {
            for (int64_t k = 0; k < i; k++) {
                double dot = 0;
                for (int64_t j = 0; j < n; j++) {
                    dot += v[i * n + j] * v[k * n + j];
                }
                for (int64_t j = 0; j < n; j++) {
                    v[i * n + j] -= dot * v[k * n + j];
                }
            }
        }
        double norm = 0;
        for (int64_t j = 0; j < n; j++) {
            norm += v[i * n + j] * v[i * n + j];
        }
        for (int64_t j = 0; j < n; j++) {
            v[i * n + j] /= sqrt(norm);
        }
    }
}

static bool orthogonal(struct draw *d)
{
    if (d->rank < 2) {
        return refuse(d, "orthogonal", "a weight has two axes or more");
    }
    int64_t rows = d->dims[0], columns = rows ? d->size / rows : 0, few = rows < columns ? rows : columns, many = rows + columns - few;
    mc_array *drawn = numbers(d->net, NORMAL, d->size, 0, 1);
    double *v = drawn ? mc_alloc((size_t)d->size * sizeof *v + 1, "nets") : NULL, factor = gain(d);
    for (int64_t i = 0; v && i < d->size; i++) {
        v[i] = at(drawn, i);
    }
    if (v) {
        orthonormal(v, few, many);
    }
    for (int64_t i = 0; v && i < d->size; i++) { /* the few vectors are rows, or columns */
        int64_t r = i / columns, c = i % columns, k = 0, index[NN_MOST_AXES], rest = i;
        k = few == rows ? r * many + c : c * many + r;
        for (int a = d->rank; a-- > 0; rest /= d->dims[a]) {
            index[a] = rest % d->dims[a];
        }
        mc_array_set(d->out, index, factor * v[k]);
    }
    mc_array_unref(&drawn);
    bool good = v != NULL;
    mc_free(v);
    return good;
}

#define GAIN { "gain", NN_TEXT, "1" }, { "c01b", NN_BOOL, "false" }
static const struct rule {
    const char *name;
    struct mc_nn_field field[5];
    bool (*fill)(struct draw *d);
    const char *doc;
} rules[] = {
    { "constant",       { { "value", NN_REAL, "0" } },                                            constant,
      "all the same; a number alone says it too" },
    { "normal",         { { "std", NN_REAL, "0.01" }, { "mean", NN_REAL, "0" } },                 normal,
      "normal numbers" },
    { "uniform",        { { "range", NN_REAL, "0.01" }, { "high", NN_TEXT, "auto" }, { "std", NN_REAL, "0" }, { "mean", NN_REAL, "0" } }, uniform,
      "from -range to range, or from range to high, or with a standard deviation" },
    { "glorot_uniform", { GAIN }, glorot_uniform, "variance 2 / (inputs + outputs); gain: a number, or relu for sqrt(2)" },
    { "glorot_normal",  { GAIN }, glorot_normal,  "the same, normal" },
    { "he_uniform",     { GAIN }, he_uniform,     "variance 1 / inputs" },
    { "he_normal",      { GAIN }, he_normal,      "the same, normal" },
    { "sparse",         { { "sparsity", NN_REAL, "0.1" }, { "std", NN_REAL, "0.01" } },           sparse,
      "a matrix with a share of normal numbers in each column, else zeros" },
    { "orthogonal",     { { "gain", NN_TEXT, "1" } },                                             orthogonal,
      "rows, or columns, orthogonal and of length one" },
    { NULL, { { NULL } }, NULL, NULL },
};

static const struct rule *find_rule(const struct mc_nn_line *line, struct mc_nn_slice *name, struct mc_nn_slice *args)
{
    char first = name->n ? *name->s : ' ';
    if (strchr("0123456789.-+", first)) { /* a number alone is a constant */
        *args = *name;
        return &rules[0];
    }
    *name = mc_nn_call(*name, args);
    for (const struct rule *r = rules; r->name; r++) {
        if (mc_nn_same(*name, r->name)) {
            return r;
        }
    }
    mc_nn_wrong(line, name->s, MC_EARG, "there is no initial value and no variable '%.*s'%s", (int)name->n, name->s,
                mc_nn_near_row(*name, rules, sizeof *rules).text);
    return NULL;
}

mc_array *mc_nn_draw(mc_net *net, const struct mc_nn_line *line, struct mc_nn_slice call, int rank, const int64_t *dims)
{
    struct mc_nn_slice args;
    struct draw d = { .net = net, .line = line, .rank = rank, .dims = dims, .size = 1 };
    const struct rule *r = find_rule(line, &call, &args);
    if (!r || !mc_nn_read(&d.set, line, args.s, args.s + args.n, ',', r->field, r->name)) {
        return NULL;
    }
    for (int i = 0; i < rank; i++) {
        d.size *= dims[i];
    }
    d.out = mc_array_new(mc_nn_float(), rank, dims);
    if (!d.out || !r->fill(&d)) {
        if (mc_graph_status(net->g) == MC_OK) {
            mc_mistake(net->g, MC_EMEMORY, "initial values: %s", mc_last_error());
        }
        mc_array_unref(&d.out);
    }
    return d.out;
}

mc_array *mc_init(mc_net *net, const char *init, int rank, const int64_t *dims)
{
    if (mc_nn_none(net, "net") || mc_nn_none(init, "initial value")) {
        return NULL;
    }
    struct mc_nn_line line = { .g = net->g, .text = init, .end = init + strlen(init) };
    return mc_nn_draw(net, &line, (struct mc_nn_slice){ init, strlen(init) }, rank, dims);
}

void mc_nn_manual_inits(struct mc_nn_text *t)
{
    mc_nn_manual_head(t, "Initial values", "what they are");
    for (const struct rule *r = rules; r->name; r++) {
        mc_nn_manual_row(t, r->name, r->field, r->doc, false);
    }
}

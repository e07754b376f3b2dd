/* torch.c: parameters under the names and in the layouts of a PyTorch state dict.
 *
 * A module has the name of its layer unless a line `layer = module` gives another.  The table has the names
 * of a module's tensors, and how their layout differs from that of the layer's parameters.
 *
 * Invariant: no parameter changes until every array of the file was checked. */
#include "nn/nn.h"
#include <math.h>

enum how {
    SWAP = 1,      /* the first two axes are exchanged */
    FLIP = 2,      /* spatial axes are reversed if the layer flips its filters */
    POSITIONS = 4, /* PyTorch's tensor has an axis of size 1 more for each spatial axis */
    VECTOR = 8,    /* only a parameter with one axis has a counterpart */
    VARIANCE = 16, /* the parameter is 1 / sqrt(v + epsilon), PyTorch's tensor is v */
    LOOP = 32,     /* a parameter for each layer and direction: W_in, W_in_l1_reverse are _l0, _l1_reverse */
    ADDED = 64     /* a second tensor of the same parameter, to which it is added; saved as zeros */
};
static const struct tensor {
    const char *kinds, *ours, *theirs;
    unsigned how;
} tensors[] = { /* docs/networks.md has this table too */
    { " dense ",                  "W",       "weight",       SWAP },
    { " dense ",                  "b",       "bias",         VECTOR },
    { " conv conv_mm conv_dnn ",  "W",       "weight",       FLIP },
    { " dilated_conv ",           "W",       "weight",       SWAP },
    { " deconv ",                 "W",       "weight",       FLIP },
    { " nin ",                    "W",       "weight",       SWAP | POSITIONS },
    { " conv conv_mm conv_dnn dilated_conv deconv nin ", "b", "bias", VECTOR },
    { " batch_norm ",             "gamma",   "weight",       VECTOR },
    { " batch_norm ",             "beta",    "bias",         VECTOR },
    { " batch_norm ",             "mean",    "running_mean", VECTOR },
    { " batch_norm ",             "inv_std", "running_var",  VECTOR | VARIANCE },
    { " batch_norm ",             NULL,      "num_batches_tracked", 0 }, /* saved as 0, and not needed */
    { " layer_norm instance_norm ", "scale", "weight",       VECTOR },
    { " layer_norm instance_norm ", "bias",  "bias",         VECTOR },
    { " prelu ",                  "alpha",   "weight",       VECTOR },
    { " scale ",                  "scales",  "layer_scale",  VECTOR | POSITIONS },
    { " embedding ",              "W",       "weight",       0 },
    { " recurrent lstm gru_dnn ", "W_in",    "weight_ih",    SWAP | LOOP },
    { " recurrent lstm gru_dnn ", "W_hid",   "weight_hh",    SWAP | LOOP },
    { " recurrent lstm gru_dnn ", "b",       "bias_ih",      VECTOR | LOOP },
    { " recurrent lstm ",         "b",       "bias_hh",      VECTOR | LOOP | ADDED },
    { " gru_dnn ",                "b_hid",   "bias_hh",      VECTOR | LOOP },
};

struct line { /* layer = module epsilon=0.001 axes=2 */
    struct mc_nn_slice ours, theirs;
    double epsilon;
    int axes; /* of PyTorch's weights, which end with axes of size 1 more or less; 0: as the row says */
};
struct part { /* a tensor of the state dict */
    const struct tensor *row;
    const struct mc_nn_param *param; /* NULL: the number of batches */
    char *name;
    double epsilon;
    int axes;
    mc_array *value;
};
struct dict {
    const mc_net *net;
    struct line *line;
    struct part *part;
    int nline, npart;
};
#define EPSILON 1e-5 /* the default of PyTorch's batch norms */

/* ---- names ---- */

static struct mc_nn_slice word(const char **at)
{
    *at += strspn(*at, " \t\r");
    struct mc_nn_slice w = { *at, strcspn(*at, " \t\r\n=#") };
    *at += w.n;
    *at += strspn(*at, " \t\r");
    return w;
}

/* Reads the rest of epsilon=0.001 or axes=2. */
static bool read_setting(const char **at, struct mc_nn_slice key, struct line *l)
{
    if (**at != '=') {
        return false;
    }
    ++*at;
    *at += strspn(*at, " \t\r");
    char *end;
    const double value = mc_strtod(*at, &end);
    const bool axes = mc_nn_same(key, "axes"),
               fits = axes ? value >= 1 && value <= NN_MOST_AXES && value == (int)value
                           : mc_nn_same(key, "epsilon") && value >= 0 && value < 1;
    if (end == *at || !fits) {
        return false;
    }
    *at = end + strspn(end, " \t\r");
    l->epsilon = axes ? l->epsilon : value;
    l->axes = axes ? (int)value : l->axes;
    return true;
}

/* Reads a line at *at and moves *at behind it.  An empty line: ours is empty. */
static mc_status read_line(const char **at, int number, struct line *l)
{
    *l = (struct line){ .epsilon = EPSILON };
    l->ours = word(at);
    bool good = l->ours.n == 0;
    if (**at == '=' && l->ours.n) {
        ++*at;
        l->theirs = word(at);
        good = l->theirs.n > 0;
        for (struct mc_nn_slice key; good && (key = word(at)).n;) {
            good = read_setting(at, key, l);
        }
    }
    *at += **at == '#' ? strcspn(*at, "\n") : 0;
    if (!good || (**at && **at != '\n')) {
        return mc_fail(MC_ESYNTAX,
                       "names, line %d: expected 'layer = module', and epsilon=0.001 or axes=2 behind it if "
                       "PyTorch's differ",
                       number);
    }
    *at += **at == '\n';
    return MC_OK;
}

static bool is_layer(const mc_net *net, struct mc_nn_slice name)
{
    for (int i = 0; i < net->nlayer; i++) {
        if (mc_nn_same(name, net->layer[i]->name)) {
            return true;
        }
    }
    return mc_nn_same(name, "none");
}

static mc_status read_lines(struct dict *d, const char *names)
{
    int most = 1, number = 1;
    for (const char *s = names; *s; s++) {
        most += *s == '\n';
    }
    d->line = mc_calloc((size_t)most, sizeof *d->line, "nets");
    mc_status s = d->line ? MC_OK : MC_EMEMORY;
    for (; s == MC_OK && *names; number++) {
        struct line l;
        s = read_line(&names, number, &l);
        if (s < 0 || !l.ours.n) {
            continue;
        }
        if (!is_layer(d->net, l.ours)) {
            s = mc_fail(MC_EARG, "names, line %d: there is no layer '%.*s'", number, (int)l.ours.n, l.ours.s);
        }
        d->line[d->nline++] = l;
    }
    return s;
}

/* The module of a layer.  Of several lines about one layer the last counts. */
static struct line module_of(const struct dict *d, const mc_layer *l)
{
    for (int i = d->nline; i-- > 0;) {
        if (mc_nn_same(d->line[i].ours, l->name)) {
            return d->line[i];
        }
    }
    const struct mc_nn_slice own = { l->name, strlen(l->name) };
    return (struct line){ own, own, EPSILON, 0 };
}

/* ---- the tensors of the state dict ---- */

/* Is the word in the list?  Each word of the list has a space before and after it. */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at++) {
        if (at[-1] == ' ' && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

/* Is it the row of the field `ours` (NULL: of a tensor that has no parameter in the layer)?  *rest: the layer
 * and direction in the field, "_l1_reverse". */
static bool is_row(const struct tensor *t, const mc_layer *l, const char *ours, const char **rest)
{
    *rest = "";
    if (!has_word(t->kinds, l->kind->name) || !t->ours || !ours) {
        return has_word(t->kinds, l->kind->name) && t->ours == ours;
    }
    const size_t n = strlen(t->ours);
    if (t->how & LOOP && strncmp(ours, t->ours, n) == 0) {
        *rest = ours + n;
        return !**rest || strncmp(*rest, "_l", 2) == 0 || strcmp(*rest, "_reverse") == 0;
    }
    return strcmp(t->ours, ours) == 0;
}

/* The shape of PyTorch's tensor, which ends with axes of size 1 where the parameter has fewer axes or
 * more; returns its rank, or -1: axes of another size would be left out. */
static int torch_dims(const struct part *p, mc_graph *g, int64_t dims[NN_MOST_AXES])
{
    const mc_node *n = mc_shared_node(g, p->param->shared);
    int rank = mc_node_rank(n);
    for (int i = 0; i < NN_MOST_AXES; i++) {
        const int from = p->row->how & SWAP && i < 2 ? 1 - i : i;
        dims[i] = from < rank ? mc_node_dims(n)[from] : 1;
    }
    const int more = p->row->how & POSITIONS ? mc_layer_rank(p->param->layer) - 2 : 0,
              want = p->axes && !(p->row->how & VECTOR) ? p->axes : rank + more;
    for (; rank > want; rank--) {
        if (dims[rank - 1] != 1) {
            return -1;
        }
    }
    return want;
}

static mc_status add_part(struct dict *d, const struct tensor *row, const struct mc_nn_param *p,
                          const mc_layer *l, const char *rest)
{
    const struct line m = module_of(d, l);
    struct mc_nn_text name = { 0 };
    if (mc_nn_same(m.theirs, "none")) {
        return MC_OK;
    }
    mc_nn_addf(&name, "%.*s.%s%s%s", (int)m.theirs.n, m.theirs.s, row->theirs,
               row->how & LOOP && strncmp(rest, "_l", 2) != 0 ? "_l0" : "", rest);
    if (name.bad) {
        mc_nn_free(&name);
        return MC_EMEMORY;
    }
    for (int i = 0; i < d->npart; i++) {
        if (strcmp(d->part[i].name, name.s) == 0) {
            mc_fail(MC_EARG, "two layers have the name '%s' in PyTorch", name.s);
            mc_nn_free(&name);
            return MC_EARG;
        }
    }
    struct part *part = &d->part[d->npart++];
    *part = (struct part){ row, p, name.s, m.epsilon, m.axes, NULL };
    int64_t dims[NN_MOST_AXES];
    return !p || torch_dims(part, d->net->g, dims) >= 0
               ? MC_OK
               : mc_fail(MC_EUNSUPPORTED, "'%s' cannot have %d axes in PyTorch: it has %d", p->name, m.axes,
                         mc_node_rank(mc_shared_node(d->net->g, p->shared)));
}

static mc_status add_param(struct dict *d, const struct mc_nn_param *p)
{
    const char *rest;
    bool found = false;
    mc_status s = MC_OK;
    if (p->layer && mc_nn_same(module_of(d, p->layer).theirs, "none")) {
        return MC_OK;
    }
    for (int i = 0; i < COUNT(tensors) && p->layer && p->field && s == MC_OK; i++) {
        const bool fits = is_row(&tensors[i], p->layer, p->field, &rest) &&
                          !(tensors[i].how & VECTOR &&
                            mc_node_rank(mc_shared_node(d->net->g, p->shared)) != 1);
        s = fits ? add_part(d, &tensors[i], p, p->layer, rest) : MC_OK;
        found |= fits;
    }
    return s < 0 || found ? s : mc_fail(MC_EUNSUPPORTED, "'%s' has no counterpart in PyTorch", p->name);
}

static mc_status make(struct dict *d, const mc_net *net, const char *names)
{
    *d = (struct dict){ .net = net };
    d->part = mc_calloc((size_t)(2 * net->nparam + net->nlayer), sizeof *d->part, "nets");
    mc_status s = d->part ? read_lines(d, names ? names : "") : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < net->nparam; i++) {
        s = strstr(net->param[i].tags, " state ") ? MC_OK : add_param(d, &net->param[i]);
    }
    for (int i = 0; s == MC_OK && i < net->nlayer * COUNT(tensors); i++) {
        const struct tensor *row = &tensors[i % COUNT(tensors)];
        const mc_layer *l = net->layer[i / COUNT(tensors)];
        const char *rest;
        s = is_row(row, l, NULL, &rest) ? add_part(d, row, NULL, l, rest) : MC_OK;
    }
    return s;
}

static void release(struct dict *d)
{
    for (int i = 0; i < d->npart; i++) {
        mc_free(d->part[i].name);
        mc_array_unref(&d->part[i].value);
    }
    mc_free(d->part);
    mc_free(d->line);
}

/* ---- layouts ---- */

/* Frees x; returns what was made of it. */
static mc_array *next(mc_array *x, mc_array *made)
{
    mc_array_unref(&x);
    return made;
}

/* load: 1 / sqrt(v + epsilon) of each element v; else v of each. */
static mc_array *variance(const mc_array *x, double epsilon, bool load)
{
    mc_array *wide = mc_array_cast(x, MC_FLOAT64), *out = NULL;
    double *v = wide ? mc_array_data(wide) : NULL;
    for (int64_t i = 0; wide && i < mc_array_size(wide); i++) {
        v[i] = load ? 1 / sqrt(v[i] + epsilon) : 1 / (v[i] * v[i]) - epsilon;
    }
    out = wide ? mc_array_cast(wide, mc_array_dtype(x)) : NULL;
    mc_array_unref(&wide);
    return out;
}

/* a in the layout of the parameter (load) or of PyTorch. */
static mc_array *convert(const struct part *p, mc_graph *g, const mc_array *a, bool load)
{
    const unsigned how = p->row->how;
    int axes[NN_MOST_AXES] = { 1, 0, 2, 3, 4, 5, 6, 7 };
    int64_t dims[NN_MOST_AXES];
    const int rank = torch_dims(p, g, dims), own = mc_node_rank(mc_shared_node(g, p->param->shared));
    mc_array *x = mc_array_ref((mc_array *)a);
    if (x && load && own != rank) {
        x = next(x, mc_array_reshape(x, own, dims));
    }
    if (x && how & SWAP) {
        x = next(x, mc_array_transpose(x, axes));
    }
    for (int i = 2; x && how & FLIP && p->param->layer->flips && i < mc_array_rank(x); i++) {
        const int64_t n = mc_array_dims(x)[i];
        x = next(x, mc_array_slice(x, i, n - 1, n, -1));
    }
    if (x && !load && own != rank) {
        x = next(x, mc_array_reshape(x, rank, dims));
    }
    return x && how & VARIANCE ? next(x, variance(x, p->epsilon, load)) : x;
}

/* ---- files ---- */

mc_status mc_net_save_torch(const mc_net *net, const char *path, const char *names)
{
    struct dict d;
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    mc_status s = make(&d, net, names);
    const char **name = mc_calloc((size_t)d.npart + 1, sizeof *name, "nets");
    mc_array **value = mc_calloc((size_t)d.npart + 1, sizeof *value, "nets");
    s = s < 0 || (name && value) ? s : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < d.npart; i++) {
        struct part *p = &d.part[i];
        mc_array *own = p->param ? mc_shared_get(p->param->shared) : NULL;
        p->value = !p->param             ? mc_array_scalar(MC_INT64, 0)
                   : !own                ? NULL
                   : p->row->how & ADDED ? mc_array_new(mc_array_dtype(own), 1, mc_array_dims(own))
                                         : convert(p, net->g, own, false);
        mc_array_unref(&own);
        name[i] = p->name;
        value[i] = p->value;
        s = p->value ? MC_OK : mc_last_status();
    }
    s = s < 0 ? s : mc_archive_save(path, NULL, d.npart, name, (const mc_array *const *)value);
    mc_free(name);
    mc_free(value);
    release(&d);
    return s;
}

/* Is it a tensor of the net, or of a module that a line `none = module` leaves out? */
static bool expected(const struct dict *d, const char *name)
{
    for (int i = 0; i < d->npart; i++) {
        if (strcmp(d->part[i].name, name) == 0) {
            return true;
        }
    }
    for (int i = 0; i < d->nline; i++) {
        const struct line *l = &d->line[i];
        if (mc_nn_same(l->ours, "none") && strncmp(name, l->theirs.s, l->theirs.n) == 0 &&
            name[l->theirs.n] == '.') {
            return true;
        }
    }
    return false;
}

/* The value in the file, in the layout and dtype of the parameter. */
static mc_status load_part(const struct dict *d, struct part *p, const char *path, mc_archive *z)
{
    int64_t dims[NN_MOST_AXES];
    if (!p->param) {
        return MC_OK;
    }
    if (!mc_archive_has(z, p->name)) {
        return mc_fail(MC_EARG, "%s: the file has no '%s' for '%s'", path, p->name, p->param->name);
    }
    mc_array *a = mc_archive_load(z, p->name);
    const int rank = torch_dims(p, d->net->g, dims);
    if (!a) {
        return mc_last_status();
    }
    mc_status s = mc_nn_fits(path, p->name, a, rank, dims);
    mc_array *own = s == MC_OK ? convert(p, d->net->g, a, true) : NULL;
    p->value = own ? mc_array_cast(own, mc_node_dtype(mc_shared_node(d->net->g, p->param->shared))) : NULL;
    mc_array_unref(&own);
    mc_array_unref(&a);
    return s < 0 || p->value ? s : mc_last_status();
}

/* *a becomes a + b; vectors of the same size and dtype. */
static mc_status sum(mc_array **a, const mc_array *b)
{
    mc_array *x = mc_array_cast(*a, MC_FLOAT64), *y = mc_array_cast(b, MC_FLOAT64), *made = NULL;
    for (int64_t i = 0; x && y && i < mc_array_size(x); i++) {
        ((double *)mc_array_data(x))[i] += ((const double *)mc_array_data(y))[i];
    }
    made = x && y ? mc_array_cast(x, mc_array_dtype(*a)) : NULL;
    mc_array_unref(&x);
    mc_array_unref(&y);
    if (made) {
        mc_array_unref(a);
        *a = made;
    }
    return made ? MC_OK : mc_last_status();
}

mc_status mc_net_load_torch(mc_net *net, const char *path, const char *names)
{
    struct dict d;
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    mc_status s = make(&d, net, names);
    mc_archive *z = s == MC_OK ? mc_archive_open(path) : NULL;
    s = s < 0 || z ? s : mc_last_status();
    for (int i = 0; s == MC_OK && i < mc_archive_count(z); i++) {
        s = expected(&d, mc_archive_name(z, i))
                ? MC_OK
                : mc_fail(MC_EARG, "%s: the file has '%s', but the net has not", path, mc_archive_name(z, i));
    }
    for (int i = 0; s == MC_OK && i < d.npart; i++) {
        s = load_part(&d, &d.part[i], path, z);
    }
    for (int i = 0; s == MC_OK && i < d.npart; i++) { /* stands behind the part that it is added to */
        s = d.part[i].row->how & ADDED ? sum(&d.part[i - 1].value, d.part[i].value) : MC_OK;
    }
    for (int i = 0; s == MC_OK && i < d.npart; i++) {
        s = d.part[i].param && !(d.part[i].row->how & ADDED)
                ? mc_shared_set(d.part[i].param->shared, d.part[i].value)
                : MC_OK;
    }
    mc_archive_close(z);
    release(&d);
    return s;
}

/* net.c: nets: creation and destruction, layers, parameters.
 *
 * Invariant: memory of mc_nn_keep does not move until the net is freed. Lists may move; what they point at
 * does not. */
#include "nn/nn.h"
#include <stdio.h>

struct mc_nn_block {
    struct mc_nn_block *next;
    _Alignas(16) char bytes[];
};

void *mc_nn_keep(mc_net *net, size_t n)
{
    struct mc_nn_block *b = mc_alloc(sizeof *b + n, "nets");
    if (!b) {
        mc_mistake(net->g, MC_EMEMORY, "out of memory");
        return NULL;
    }
    memset(b->bytes, 0, n);
    b->next = net->blocks;
    net->blocks = b;
    return b->bytes;
}

bool mc_nn_check_error(mc_net *net, bool good)
{
    if (!good && mc_graph_status(net->g) == MC_OK) {
        mc_mistake(net->g, MC_EMEMORY, "out of memory");
    }
    return good;
}

char *mc_nn_keep_text(mc_net *net, const char *s, size_t n)
{
    char *p = mc_nn_keep(net, n + 1);
    return p ? memcpy(p, s, n) : NULL;
}

char *mc_nn_keep_printed(mc_net *net, const char *fmt, va_list ap)
{
    struct mc_nn_text t = { 0 };
    mc_nn_addn(&t, "", 0);
    mc_nn_addv(&t, fmt, ap);
    char *kept = t.bad ? NULL : mc_nn_keep_text(net, t.s, t.n);
    mc_nn_free(&t);
    return kept;
}

bool mc_nn_push(mc_net *net, void *list, int *n, int *cap, size_t size, const void *item)
{
    char *at;
    memcpy(&at, list, sizeof at);
    if (*n == *cap) {
        int more = *cap ? 2 * *cap : 16;
        char *p = mc_nn_keep(net, (size_t)more * size);
        if (!p) {
            return false;
        }
        if (*n) {
            memcpy(p, at, (size_t)*n * size);
        }
        at = p;
        memcpy(list, &at, sizeof at);
        *cap = more;
    }
    memcpy(at + (size_t)(*n)++ * size, item, size);
    return true;
}

mc_dtype mc_nn_float(void)
{
    mc_dtype d = MC_FLOAT64;
    const char *name = mc_flag_get("floatX");
    if (name) {
        mc_dtype_parse(name, &d);
    }
    return d;
}

/* ---- creation and destruction ---- */

const char *mc_nn_name(mc_net *net, const char *name)
{
    struct mc_nn_text t = { 0 };
    mc_nn_addf(&t, "%s%s%s", net->prefix, *net->prefix ? "_" : "", name);
    const char *kept = t.bad ? NULL : mc_nn_keep_text(net, t.s, t.n);
    mc_nn_free(&t);
    return kept;
}

static bool start(mc_net *net, const char *prefix, uint64_t seed)
{
    net->prefix = mc_nn_keep_text(net, prefix, strlen(prefix));
    const char *rng = net->rng = net->prefix ? mc_nn_name(net, "random") : NULL;
    net->broken = (mc_layer){ .net = net, .name = "", .text = { "", "" } };
    net->train = (struct mc_training){ .batch = 100,
                                       .epochs = 10,
                                       .rate = 0.01,
                                       .loss = "categorical_crossentropy",
                                       .rule = "sgd 0.01",
                                       .schedule = "constant",
                                       .augment = "" };
    net->draw_graph = mc_graph_new();
    if (!rng || !net->draw_graph) {
        return false;
    }
    mc_shared *stream = mc_random(net->g, rng, seed);
    mc_input(net->draw_graph, "n", MC_INT64, 0);
    mc_input(net->draw_graph, "a", mc_nn_float(), 0);
    mc_input(net->draw_graph, "b", mc_nn_float(), 0);
    return mc_random(net->draw_graph, "random", seed ^ UINT64_C(0x9e3779b97f4a7c15)) && stream &&
           mc_nn_push(net, &net->param, &net->nparam, &net->param_cap, sizeof *net->param,
                      &(struct mc_nn_param){ rng, " state random ", stream, NULL, NULL });
}

mc_net *mc_net_new(mc_graph *g, const char *prefix, uint64_t seed)
{
    mc_net *net = mc_nn_null(g, "graph") ? NULL : mc_alloc(sizeof *net, "nets");
    if (!net) {
        return NULL;
    }
    *net = (mc_net){ .g = g };
    if (!start(net, prefix ? prefix : "", seed)) {
        mc_net_free(net);
        return NULL;
    }
    return net;
}

void mc_net_free(mc_net *net)
{
    if (!net) {
        return;
    }
    for (int i = 0; i < COUNT(net->draw); i++) {
        mc_function_free(net->draw[i]);
    }
    mc_graph_free(net->draw_graph);
    for (struct mc_nn_block *b = net->blocks, *next; b; b = next) {
        next = b->next;
        mc_free(b);
    }
    mc_free(net);
}

mc_graph *mc_net_graph(const mc_net *net)
{
    return net ? net->g : NULL;
}

/* ---- layers ---- */

int mc_net_nlayers(const mc_net *net)
{
    return net ? net->nlayer : 0;
}

mc_layer *mc_net_layer(const mc_net *net, int i)
{
    i += i < 0 ? mc_net_nlayers(net) : 0;
    return i >= 0 && i < mc_net_nlayers(net) ? net->layer[i] : NULL;
}

mc_layer *mc_net_find(const mc_net *net, const char *name)
{
    for (int i = 0; name && i < mc_net_nlayers(net); i++) {
        if (strcmp(net->layer[i]->name, name) == 0) {
            return net->layer[i];
        }
    }
    return NULL;
}

const char *mc_layer_name(const mc_layer *l)
{
    return l ? l->name : "";
}

const char *mc_layer_kind(const mc_layer *l)
{
    return l && l->kind ? l->kind->name : "";
}

int mc_layer_ninputs(const mc_layer *l)
{
    return l ? l->nin : 0;
}

mc_layer *mc_layer_input(const mc_layer *l, int i)
{
    return i >= 0 && i < mc_layer_ninputs(l) ? l->in[i] : NULL;
}

mc_node *mc_layer_node(const mc_layer *l, enum mc_pass pass)
{
    return l ? l->node[pass == MC_DETERMINISTIC] : NULL;
}

int mc_layer_rank(const mc_layer *l)
{
    return l && l->node[0] ? mc_node_rank(l->node[0]) : 0;
}

const int64_t *mc_layer_dims(const mc_layer *l)
{
    return l && l->node[0] ? mc_node_dims(l->node[0]) : NULL;
}

const char *mc_layer_text(const mc_layer *l, enum mc_pass pass)
{
    return l ? l->text[pass == MC_DETERMINISTIC] : "";
}

/* ---- parameters ---- */

mc_shared *mc_nn_param(mc_net *net, mc_layer *layer, const char *field, const char *name, const char *tags,
                       mc_array *value)
{
    mc_shared *s = value ? mc_shared_new(net->g, name, value) : NULL;
    const char *kept = s ? mc_nn_keep_text(net, name, strlen(name)) : NULL;
    mc_array_unref(&value);
    bool known = kept && mc_nn_push(net, &net->param, &net->nparam, &net->param_cap, sizeof *net->param,
                                    &(struct mc_nn_param){ kept, tags, s, layer, field });
    return known ? s : NULL;
}

mc_status mc_net_tag(mc_net *net, mc_shared *s, const char *tags)
{
    if (mc_nn_null(net, "net") || mc_nn_null(s, "shared variable")) {
        return MC_EARG;
    }
    if (mc_shared_named(net->g, mc_shared_name(s)) != s) {
        return mc_fail(MC_EARG, "'%s' is not a shared variable of the net's graph", mc_shared_name(s));
    }
    struct mc_nn_text words = { 0 };
    mc_nn_addf(&words, " %s ", tags ? tags : "");
    const char *kept = words.bad ? NULL : mc_nn_keep_text(net, words.s, words.n),
               *name = mc_nn_keep_text(net, mc_shared_name(s), strlen(mc_shared_name(s)));
    mc_nn_free(&words);
    if (!kept || !name) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < net->nparam; i++) {
        if (net->param[i].shared == s) {
            net->param[i].tags = kept;
            return MC_OK;
        }
    }
    struct mc_nn_param p = { name, kept, s, NULL, NULL };
    return mc_nn_push(net, &net->param, &net->nparam, &net->param_cap, sizeof p, &p) ? MC_OK : MC_EMEMORY;
}

/* Does a parameter have every word of the tags, and none of those with a minus? */
static bool has_tags(const struct mc_nn_param *p, const char *tags)
{
    bool state = false;
    for (const char *t = tags ? tags : ""; *t;) {
        size_t n = strcspn(t, " ");
        bool without = *t == '-', found = false;
        for (const char *w = p->tags; n && (w = strchr(w, ' ')) && *++w;) {
            size_t k = n - without;
            found |= strncmp(w, t + without, k) == 0 && w[k] == ' ';
        }
        if (n && found == without) {
            return false;
        }
        state |= n == 5 && strncmp(t, "state", 5) == 0;
        t += n + (t[n] == ' ');
    }
    return state || !strstr(p->tags, " state ");
}

mc_param mc_net_param(const mc_net *net, const char *tags, int i)
{
    for (int k = 0; net && k < net->nparam && i >= 0; k++) {
        const struct mc_nn_param *p = &net->param[k];
        if (has_tags(p, tags) && i-- == 0) {
            return (mc_param){ p->name, p->shared, p->layer };
        }
    }
    return (mc_param){ NULL, NULL, NULL };
}

static int64_t numbers(mc_net *net, mc_shared *s)
{
    mc_node *n = mc_shared_node(net->g, s);
    int64_t all = 1;
    for (int i = 0; i < mc_node_rank(n); i++) {
        all *= mc_node_dims(n)[i];
    }
    return all;
}

int64_t mc_net_count(const mc_net *net, const char *tags)
{
    int64_t all = 0;
    mc_param p;
    for (int i = 0; (p = mc_net_param(net, tags, i)).name; i++) {
        all += numbers((mc_net *)net, p.shared);
    }
    return all;
}

/* ---- the table ---- */

static void shape_text(const mc_layer *l, char *out, size_t n)
{
    size_t at = 0;
    *out = '\0';
    for (int i = 0; i < mc_layer_rank(l) && at + 24 < n; i++) {
        int64_t d = mc_layer_dims(l)[i];
        at += (size_t)(d < 0 ? mc_snprintf(out + at, n - at, "%s?", i ? "x" : "")
                             : mc_snprintf(out + at, n - at, "%s%lld", i ? "x" : "", (long long)d));
    }
}

mc_status mc_net_print(const mc_net *net, FILE *to)
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    struct mc_nn_text t = { 0 };
    mc_nn_addf(&t, "%-14s %-16s %-20s %12s  %s\n", "layer", "kind", "shape", "parameters", "from");
    for (int i = 0; i < net->nlayer; i++) {
        const mc_layer *l = net->layer[i];
        char shape[200];
        int64_t own = 0;
        for (int k = 0; k < net->nparam; k++) {
            own += net->param[k].layer == l ? numbers((mc_net *)net, net->param[k].shared) : 0;
        }
        shape_text(l, shape, sizeof shape);
        mc_nn_addf(&t, "%-14s %-16s %-20s %12lld ", l->name, l->kind->name, shape, (long long)own);
        for (int k = 0; k < l->nin; k++) {
            mc_nn_addf(&t, "%s%s", k ? ", " : " ", l->in[k]->name);
        }
        mc_nn_add(&t, "\n");
    }
    mc_nn_addf(&t, "%-52s %12lld\n", "all", (long long)mc_net_count(net, NULL));
    mc_status s = MC_EMEMORY;
    if (!t.bad) {
        s = fwrite(t.s, 1, t.n, to) == t.n ? MC_OK : mc_fail(MC_EFILE, "net: cannot write the table");
    }
    mc_nn_free(&t);
    return s;
}

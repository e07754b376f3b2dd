/* shared.c: shared variables: values that live beside graphs, and are counted.
 *
 * Invariant: what a variable holds has its dtype, its rank and the sizes it promised; it is changed under its
 * lock. */
#include "graph/graph.h"

/* dims: the sizes it accepts; NULL: those of value. */
static mc_shared *shared_make(mc_graph *g, const char *name, mc_array *value, const int64_t *dims)
{
    if (!g || !value) { /* no memory for a copy */
        if (g) {
            mc_node_fail(g, mc_last_status(), "shared %s: %s", name, mc_last_error());
        }
        mc_array_unref(&value);
        return NULL;
    }
    mc_shared *s = NULL;
    if (mc_dict_get(&g->names, name)) {
        mc_node_fail(g, MC_EARG, "shared: the name '%s' is already in use", name);
    } else if ((s = mc_calloc(1, sizeof *s, "shared")) && (s->name = mc_strdup(name))) {
        s->refs = 1;
        s->type = mc_type_make(value->dtype, value->rank, dims ? dims : value->dims);
        s->value = value;
        value = NULL;
        pthread_mutex_init(&s->lock, NULL);
        if (mc_is_error(mc_shared_node(g, s))) {
            mc_shared_unref(&s);
        } else {
            s->refs--; /* the graph's reference keeps s alive; the caller may add its own */
        }
    } else {
        mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
        mc_free(s);
        s = NULL;
    }
    mc_array_unref(&value);
    return s;
}

mc_shared *mc_shared_new(mc_graph *g, const char *name, const mc_array *value)
{
    if (!value) {
        if (g) {
            mc_node_fail(g, MC_EARG, "shared %s: the value is NULL", name ? name : "");
        }
        return NULL;
    }
    return shared_make(g, name ? name : "", mc_array_copy(value), NULL);
}

mc_shared *mc_shared_sized(mc_graph *g, const char *name, const mc_array *value, const int64_t *dims)
{
    int64_t any[MC_MAX_RANK];
    for (int i = 0; i < MC_MAX_RANK; i++) {
        any[i] = -1;
    }
    dims = dims ? dims : any;
    for (int i = 0; value && i < value->rank; i++) {
        if (dims[i] >= 0 && dims[i] != value->dims[i]) {
            mc_node_fail(g, MC_ESHAPE,
                         "shared %s: axis %d is declared with size %lld, but the value has size %lld",
                         name ? name : "", i, (long long)dims[i], (long long)value->dims[i]);
            return NULL;
        }
    }
    return value ? shared_make(g, name ? name : "", mc_array_copy(value), dims)
                 : mc_shared_new(g, name, NULL);
}

mc_shared *mc_shared_zeros(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims)
{
    if (!g) {
        return NULL;
    }
    mc_array *value = mc_array_new(d, rank, dims);
    if (!value) {
        mc_node_fail(g, mc_last_status(), "shared %s: %s", name ? name : "", mc_last_error());
    }
    return shared_make(g, name ? name : "", value, NULL);
}

mc_shared *mc_shared_ref(mc_shared *s)
{
    if (s) {
        atomic_fetch_add(&s->refs, 1);
    }
    return s;
}

void mc_shared_unref(mc_shared **ps)
{
    mc_shared *s = ps ? *ps : NULL;
    if (s && atomic_fetch_sub(&s->refs, 1) == 1) {
        mc_array_unref(&s->value);
        pthread_mutex_destroy(&s->lock);
        mc_free(s->initial);
        mc_free(s->name);
        mc_free(s);
    }
    if (ps) {
        *ps = NULL;
    }
}

mc_node *mc_shared_node(mc_graph *g, mc_shared *s)
{
    if (!g || !s) {
        return g ? g->error : NULL;
    }
    mc_node *n = mc_dict_get(&g->names, s->name);
    if (n && n->shared == s) {
        return n;
    }
    if (n) {
        return mc_node_fail(g, MC_EARG, "shared: the name '%s' is already in use", s->name);
    }
    n = mc_shared_leaf(g, s);
    if (!mc_is_error(n)) {
        if (!VEC_PUSH(g->shareds, s)) {
            return mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
        }
        mc_shared_ref(s);
        n = mc_name(n, s->name);
    }
    return n;
}

mc_shared *mc_shared_named(mc_graph *g, const char *name)
{
    mc_node *n = g && name ? mc_dict_get(&g->names, name) : NULL;
    return n ? n->shared : NULL;
}

const char *mc_shared_name(const mc_shared *s)
{
    return s ? s->name : "";
}

mc_array *mc_shared_get(const mc_shared *s)
{
    if (!s) {
        mc_fail(MC_EARG, "shared_get: the shared variable is NULL");
        return NULL;
    }
    mc_shared *w = (mc_shared *)s; /* the lock is not part of the value */
    pthread_mutex_lock(&w->lock);
    mc_array *copy = mc_array_copy(s->value);
    pthread_mutex_unlock(&w->lock);
    return copy;
}

mc_array *mc_shared_borrow(mc_shared *s)
{
    if (!s) {
        mc_fail(MC_EARG, "shared_borrow: the shared variable is NULL");
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->lent = true;
    mc_array *value = mc_array_ref(s->value);
    pthread_mutex_unlock(&s->lock);
    return value;
}

/* Does s accept the value?  what: the function named in the message. */
static mc_status fits(const mc_shared *s, const mc_array *value, const char *what)
{
    bool fits = value->rank == s->type.rank;
    for (int i = 0; fits && i < value->rank; i++) {
        fits = s->type.dims[i] < 0 || s->type.dims[i] == value->dims[i];
    }
    if (!fits) {
        struct mc_str have = { 0 };
        struct mc_str want = { 0 };
        mc_dims_text(&have, value->rank, value->dims);
        mc_dims_text(&want, s->type.rank, s->type.dims);
        mc_status st = mc_fail(MC_ESHAPE, "%s: %s has shape %s, not %s", what, s->name, want.s ? want.s : "",
                               have.s ? have.s : "");
        mc_str_free(&have);
        mc_str_free(&want);
        return st;
    }
    if (value->dtype != s->type.dtype && mc_dtype_promote(value->dtype, s->type.dtype) != s->type.dtype) {
        return mc_fail(MC_ETYPE, "%s: %s has dtype %s; a value of dtype %s would lose digits; cast it first",
                       what, s->name, mc_dtype_name(s->type.dtype), mc_dtype_name(value->dtype));
    }
    return MC_OK;
}

static bool same_sizes(const mc_shared *s, const mc_array *value)
{
    return mc_dims_equal(s->value->rank, s->value->dims, value->rank, value->dims);
}

mc_status mc_shared_set(mc_shared *s, const mc_array *value)
{
    if (!s || !value) {
        return mc_fail(MC_EARG, "shared_set: the %s is NULL", s ? "value" : "shared variable");
    }
    mc_status st = fits(s, value, "shared_set");
    if (st < 0) {
        return st;
    }
    pthread_mutex_lock(&s->lock);
    if (same_sizes(s, value)) {
        st = mc_array_assign(s->value, value);
    } else {
        mc_array *copy = mc_array_cast(value, s->type.dtype);
        if (copy) {
            mc_array_unref(&s->value);
            s->value = copy;
        }
        st = copy ? MC_OK : mc_last_status();
    }
    s->version++;
    pthread_mutex_unlock(&s->lock);
    return st;
}

mc_status mc_shared_default_update(mc_graph *g, mc_shared *s, mc_node *value)
{
    if (!g || !s || !value) {
        return mc_fail(MC_EARG, "default_update: an argument is missing");
    }
    if (mc_is_error(value)) {
        return mc_fail(g->status < 0 ? g->status : MC_EARG, "default_update: %s",
                       g->status < 0 ? mc_error(g) : "the value is the error node");
    }
    for (size_t i = 0; i < g->defaults.n; i++) {
        if (g->defaults.at[i].shared == s) {
            g->defaults.at[i].value = value;
            return MC_OK;
        }
    }
    struct mc_default_update u = { s, value };
    return VEC_PUSH(g->defaults, u) ? MC_OK : mc_last_status();
}

/* ---- all of a graph, in a file ---- */

mc_status mc_graph_save_shared(const mc_graph *g, const char *path)
{
    if (!g || !path) {
        return mc_fail(MC_EARG, "save_shared: the %s is NULL", g ? "path" : "graph");
    }
    size_t n = g->shareds.n;
    const char **name = mc_calloc(n + 1, sizeof *name, "shared");
    mc_array **value = name ? mc_calloc(n + 1, sizeof *value, "shared") : NULL;
    mc_status s = value ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; s == MC_OK && i < n; i++) {
        name[i] = g->shareds.at[i]->name;
        value[i] = mc_shared_get(g->shareds.at[i]);
        s = value[i] ? MC_OK : mc_last_status();
    }
    s = s < 0 ? s : mc_archive_save(path, NULL, (int)n, name, (const mc_array *const *)value);
    for (size_t i = 0; value && i < n; i++) {
        mc_array_unref(&value[i]);
    }
    mc_free(value);
    mc_free(name);
    return s;
}

/* The value of s in the file, in s's dtype. */
static mc_array *load(mc_archive *z, const char *path, const mc_shared *s)
{
    if (!mc_archive_has(z, s->name)) {
        mc_fail(MC_EARG, "%s: the file has no '%s'", path, s->name);
        return NULL;
    }
    mc_array *value = mc_archive_load(z, s->name), *cast = NULL;
    if (value && fits(s, value, path) == MC_OK) {
        cast = mc_array_cast(value, s->type.dtype);
    }
    mc_array_unref(&value);
    return cast;
}

mc_status mc_graph_load_shared(mc_graph *g, const char *path)
{
    if (!g || !path) {
        return mc_fail(MC_EARG, "load_shared: the %s is NULL", g ? "path" : "graph");
    }
    size_t n = g->shareds.n;
    mc_archive *z = mc_archive_open(path);
    mc_array **value = z ? mc_calloc(n + 1, sizeof *value, "shared") : NULL;
    mc_status s = value ? MC_OK : mc_last_status();
    for (int i = 0; s == MC_OK && i < mc_archive_count(z); i++) {
        bool known = false;
        for (size_t k = 0; k < n && !known; k++) {
            known = strcmp(mc_archive_name(z, i), g->shareds.at[k]->name) == 0;
        }
        s = known ? MC_OK
                  : mc_fail(MC_EARG, "%s: the file has '%s', but the graph has not", path,
                            mc_archive_name(z, i));
    }
    for (size_t i = 0; s == MC_OK && i < n; i++) {
        value[i] = load(z, path, g->shareds.at[i]);
        s = value[i] ? MC_OK : mc_last_status();
    }
    /* Allocates nothing: sizes are equal, or the array is taken over. */
    for (size_t i = 0; s == MC_OK && i < n; i++) {
        mc_shared *to = g->shareds.at[i];
        pthread_mutex_lock(&to->lock);
        if (same_sizes(to, value[i])) {
            s = mc_array_assign(to->value, value[i]);
        } else {
            mc_array *old = to->value;
            to->value = value[i];
            value[i] = old;
        }
        to->version++;
        pthread_mutex_unlock(&to->lock);
    }
    for (size_t i = 0; value && i < n; i++) {
        mc_array_unref(&value[i]);
    }
    mc_free(value);
    mc_archive_close(z);
    return s;
}

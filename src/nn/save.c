/* save.c: parameters in files, under their names.
 *
 * Invariant: nothing in a net changes until every array of the file has been found to fit. */
#include "nn/nn.h"

static int count(const mc_net *net, const char *tags)
{
    int n = 0;
    while (mc_net_param(net, tags, n).name) {
        n++;
    }
    return n;
}

mc_status mc_net_save_params(const mc_net *net, const char *path, const char *tags)
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    int n = count(net, tags);
    const char **names = mc_calloc((size_t)n + 1, sizeof *names, "nets");
    mc_array **arrays = mc_calloc((size_t)n + 1, sizeof *arrays, "nets");
    mc_status s = names && arrays ? MC_OK : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < n; i++) {
        mc_param p = mc_net_param(net, tags, i);
        names[i] = p.name;
        arrays[i] = mc_shared_get(p.shared);
        s = arrays[i] ? MC_OK : mc_last_status();
    }
    s = s < 0 ? s : mc_archive_save(path, NULL, n, names, (const mc_array *const *)arrays);
    for (int i = 0; arrays && i < n; i++) {
        mc_array_unref(&arrays[i]);
    }
    mc_free(arrays);
    mc_free(names);
    return s;
}

static void shape_text(char *out, size_t size, int rank, const int64_t *dims)
{
    struct mc_nn_text t = { 0 };
    mc_nn_add(&t, "(");
    for (int i = 0; i < rank; i++) {
        mc_nn_addf(&t, i ? ", %lld" : "%lld", (long long)dims[i]);
    }
    mc_nn_add(&t, ")");
    size_t n = t.bad ? 0 : t.n < size ? t.n : size - 1;
    if (n) {
        memcpy(out, t.s, n);
    }
    out[n] = '\0';
    mc_nn_free(&t);
}

mc_status mc_nn_fits(const char *path, const char *name, const mc_array *a, int rank, const int64_t *dims)
{
    char have[120], want[120];
    bool same = mc_array_rank(a) == rank;
    for (int i = 0; same && i < rank; i++) {
        same = mc_array_dims(a)[i] == dims[i];
    }
    if (!same) {
        shape_text(have, sizeof have, mc_array_rank(a), mc_array_dims(a));
        shape_text(want, sizeof want, rank, dims);
        return mc_fail(MC_ESHAPE, "%s: '%s' has shape %s; the net's has %s", path, name, have, want);
    }
    return MC_OK;
}

/* A name of the file that is none of the net's. */
static mc_status all_known(const mc_net *net, const char *path, const mc_archive *z)
{
    for (int i = 0; i < mc_archive_count(z); i++) {
        bool known = false;
        for (int k = 0; k < net->nparam && !known; k++) {
            known = strcmp(net->param[k].name, mc_archive_name(z, i)) == 0;
        }
        if (!known) {
            return mc_fail(MC_EARG, "%s: the file has '%s', but the net has not", path,
                           mc_archive_name(z, i));
        }
    }
    return MC_OK;
}

mc_status mc_net_load_params(mc_net *net, const char *path, const char *tags)
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    int n = count(net, tags);
    mc_archive *z = mc_archive_open(path);
    mc_array **arrays = z ? mc_calloc((size_t)n + 1, sizeof *arrays, "nets") : NULL;
    mc_status s = !z ? mc_last_status() : arrays ? all_known(net, path, z) : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < n; i++) {
        mc_param p = mc_net_param(net, tags, i);
        if (!mc_archive_has(z, p.name)) {
            s = mc_fail(MC_EARG, "%s: the file has no '%s'", path, p.name);
        } else if (!(arrays[i] = mc_archive_load(z, p.name))) {
            s = mc_last_status();
        } else {
            const mc_node *own = mc_shared_node(net->g, p.shared);
            s = mc_nn_fits(path, p.name, arrays[i], mc_node_rank(own), mc_node_dims(own));
        }
    }
    for (int i = 0; s == MC_OK && i < n; i++) {
        mc_param p = mc_net_param(net, tags, i);
        mc_array *cast = mc_array_cast(arrays[i], mc_node_dtype(mc_shared_node(net->g, p.shared)));
        s = cast ? mc_shared_set(p.shared, cast) : mc_last_status();
        mc_array_unref(&cast);
    }
    for (int i = 0; arrays && i < n; i++) {
        mc_array_unref(&arrays[i]);
    }
    mc_free(arrays);
    mc_archive_close(z);
    return s;
}

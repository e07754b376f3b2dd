/* pools.c: pooling over positions, over channels, and upscaling.
 *
 * Invariant: windows are those of the op pool; the default stride is the window. */
#include "nn/kind.h"

static void pool(struct mc_nn_build *b)
{
    int n = mc_nn_rank(b, 0) - 2;
    int64_t v[NN_MOST_AXES];
    static const char *const fields[] = { "size", "stride", "pad" };
    if (n < 1 || n > 3) {
        mc_nn_refuse(b, NULL, "the input has rank %d; expected batch, channels and one to three spatial axes",
                     n + 2);
        return;
    }
    for (int i = 0; i < COUNT(fields); i++) {
        bool left = mc_nn_is(&b->set, fields[i], "size") || mc_nn_is(&b->set, fields[i], "0");
        if (left) {
            mc_nn_let(b, fields[i], "%s", "");
        } else if (!mc_nn_sizes(b, fields[i], n, 1, v)) {
            return;
        } else {
            mc_nn_let_ints(b, fields[i], n, v);
        }
    }
    mc_nn_let(b, "mode", "%s",
              mc_nn_is(&b->set, "mode", "max")    ? ""
              : mc_nn_is(&b->set, "mode", "mean") ? "average_exc_pad"
                                                  : "$mode_");
    mc_nn_let(b, "mode_", "%.*s", (int)mc_nn_get(&b->set, "mode").n, mc_nn_get(&b->set, "mode").s);
    mc_nn_let(b, "border", "%s", mc_nn_bool(&b->set, "ignore_border") ? "" : "False");
}

static void upscale(struct mc_nn_build *b)
{
    int n = mc_nn_rank(b, 0) - 2;
    int64_t f[NN_MOST_AXES];
    struct mc_nn_text form = { 0 };
    if (n < 1 || n > 3 || !mc_nn_sizes(b, "factor", n, 1, f)) {
        mc_nn_refuse(b, NULL, "the input has rank %d; expected batch, channels and one to three spatial axes",
                     n + 2);
        return;
    }
    bool same = true, repeat = mc_nn_is(&b->set, "mode", "repeat");
    for (int i = 1; i < n; i++) {
        same &= f[i] == f[0];
    }
    if (same) {
        mc_nn_addf(&form, "upscale($x, %lld, mode='$mode', nd=%d)", (long long)f[0], n);
    } else if (repeat) {
        mc_nn_add(&form, "$x");
        for (int i = n; i-- > 0;) {
            struct mc_nn_text inner = form;
            form = (struct mc_nn_text){ 0 };
            mc_nn_addf(&form, "repeat(%s, %lld, axis=%d)", inner.s ? inner.s : "", (long long)f[i], i + 2);
            mc_nn_free(&inner);
        }
    } else {
        mc_nn_add(&form, "set_subtensor(zeros([size($x, 0), size($x, 1)");
        for (int i = 0; i < n; i++) {
            int64_t d = mc_nn_dims(b, 0)[i + 2];
            mc_nn_addf(&form, d >= 0 ? ", %lld" : ", size($x, %lld) * %lld",
                       (long long)(d >= 0 ? d * f[i] : i + 2), (long long)f[i]);
        }
        mc_nn_add(&form, "], dtype=$float)[:, :");
        for (int i = 0; i < n; i++) {
            mc_nn_addf(&form, ", ::%lld", (long long)f[i]);
        }
        mc_nn_add(&form, "], $x)");
    }
    mc_nn_let(b, "float", "%s", mc_dtype_name(mc_node_dtype(b->layer->in[0]->node[0])));
    mc_nn_let(b, "upscaled", "%s", form.bad ? "" : form.s);
    mc_nn_free(&form);
}

/* Splits an axis into groups of `size` neighbours; the new axis of neighbours follows it. */
static void groups(struct mc_nn_build *b)
{
    int rank = mc_nn_rank(b, 0);
    int64_t size = mc_nn_int(&b->set, "size"), axis = mc_nn_int(&b->set, "axis"), all[NN_MOST_AXES + 1],
            order[NN_MOST_AXES + 1];
    struct mc_nn_text t = { 0 };
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || !mc_nn_known(b, "its groups", (int)axis)) {
        mc_nn_refuse(b, "axis", "the axis is out of range");
        return;
    }
    if (size < 1 || mc_nn_dims(b, 0)[axis] % size) {
        mc_nn_refuse(b, "size", "%lld channels cannot be divided into groups of %lld",
                     (long long)mc_nn_dims(b, 0)[axis], (long long)size);
        return;
    }
    for (int i = 0; i < rank; i++) {
        all[i] = mc_nn_dims(b, 0)[i];
        order[i + (i > axis)] = -1;
        if (i == axis) {
            mc_nn_addf(&t, "%s%lld, %lld", i ? ", " : "", (long long)(all[i] / size), (long long)size);
        } else {
            mc_nn_addf(&t, all[i] >= 0 ? "%s%lld" : "%ssize($x, %lld)", i ? ", " : "",
                       all[i] >= 0 ? (long long)all[i] : (long long)i);
        }
    }
    order[axis + 1] = 0;
    mc_nn_let_shape(b, "whole", rank, all);
    mc_nn_let_ints(b, "order", rank + 1, order);
    mc_nn_let(b, "grouped", "reshape($x, [%s])", t.bad ? "" : t.s);
    mc_nn_let(b, "inner", "%lld", (long long)axis + 1);
    mc_nn_free(&t);
}

#define REDUCE "max|min|mean|sum|prod|std|var|logsumexp"
const struct mc_nn_kind mc_nn_pools[] = {
    { "pool",         "each window reduced to one number: max, sum or a mean",       1,
      { { "size", NN_SIZES, NULL }, { "mode", NN_WORD, "max", "max|sum|mean|average_inc_pad|average_exc_pad" }, { "stride", NN_SIZES, "size", "size" },
        { "pad", NN_SIZES, "0" }, { "ignore_border", NN_BOOL, "true" } },
      pool,           "pool($x, $size{, stride=$stride}{, pad=$pad}{, mode='$mode'}{, ignore_border=$border})", NULL },
    { "upscale",      "elements repeated, or separated by zeros",      1,
      { { "factor", NN_SIZES, NULL }, { "mode", NN_WORD, "repeat", "repeat|dilate" } },
      upscale,        "$upscaled", NULL },
    { "feature_pool", "groups of channels reduced to one each: maxout with max",       1,
      { { "size", NN_COUNT, NULL }, { "mode", NN_WORD, "max", REDUCE }, { "axis", NN_INT, "1" } },
      groups,         "$mode($grouped, axis=$inner)", NULL },
    { "feature_wta",  "the largest channel of each group kept, the others set to 0", 1,
      { { "size", NN_COUNT, NULL }, { "axis", NN_INT, "1" } },
      groups,         "$x * reshape(cast(eq(argmax($grouped, axis=$inner, keepdims=True), dimshuffle(arange($size), $order)), $x.dtype), $whole)", NULL },
    { "global_pool",  "each channel reduced to one number",                       1,
      { { "mode", NN_WORD, "mean", REDUCE } },
      NULL,           "$mode(flatten($x, ndim=3), axis=2)", NULL },
    { "spatial_pyramid", "maxima or means of n by n parts of the image, for each n of levels", 1,
      { { "levels", NN_AXES, "4,2,1" }, { "mode", NN_WORD, "max", "max|average_inc_pad|average_exc_pad" },
        { "implementation", NN_WORD, "fast", "fast|kaiming" } },
      NULL,           "spatial_pyramid_pool($x, pool_dims=$levels, mode='$mode', implementation='$implementation')", NULL },
    LAST_KIND,
};

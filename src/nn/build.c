/* build.c: functions with which kinds of layers build: holes of a formula, known shapes, parameters.
 *
 * Invariant: a failure sets the graph's error and leaves the build failed. */
#include "nn/nn.h"
#include <stdio.h>

void mc_nn_let(struct mc_nn_build *b, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *kept = mc_nn_keep_printed(b->net, fmt, ap);
    va_end(ap);
    b->failed |= !kept;
    mc_nn_hole(&b->holes, name, kept ? kept : "");
}

void mc_nn_let_unless(struct mc_nn_build *b, const char *name, bool empty, int64_t v)
{
    char text[24] = "";
    if (!empty) {
        mc_snprintf(text, sizeof text, "%lld", (long long)v);
    }
    mc_nn_let(b, name, "%s", text);
}

void mc_nn_let_ints(struct mc_nn_build *b, const char *name, int n, const int64_t *v)
{
    struct mc_nn_text t = { 0 };
    mc_nn_add(&t, "[");
    for (int i = 0; i < n; i++) {
        mc_nn_addf(&t, "%s%lld", i ? ", " : "", (long long)v[i]);
    }
    mc_nn_add(&t, "]");
    mc_nn_let(b, name, "%s", t.bad ? "" : t.s);
    b->failed |= t.bad;
    mc_nn_free(&t);
}

const int64_t *mc_nn_dims(const struct mc_nn_build *b, int input)
{
    return mc_layer_dims(b->layer->in[input]);
}

int mc_nn_rank(const struct mc_nn_build *b, int input)
{
    return mc_layer_rank(b->layer->in[input]);
}

bool mc_nn_known(struct mc_nn_build *b, const char *why, int axis)
{
    return axis < mc_nn_rank(b, 0) && mc_nn_dims(b, 0)[axis] >= 0 ? true
           : axis < mc_nn_rank(b, 0)
               ? mc_nn_refuse(b, NULL, "size %d of the input must be known for %s", axis, why)
               : mc_nn_refuse(b, NULL, "the input has rank %d and no axis %d", mc_nn_rank(b, 0), axis);
}

void mc_nn_let_shape(struct mc_nn_build *b, const char *name, int rank, const int64_t *dims)
{
    struct mc_nn_text t = { 0 };
    mc_nn_add(&t, "[");
    for (int i = 0; i < rank; i++) {
        mc_nn_addf(&t, dims[i] >= 0 ? "%s%lld" : "%ssize($x, %lld)", i ? ", " : "",
                   dims[i] >= 0 ? (long long)dims[i] : (long long)i);
    }
    mc_nn_add(&t, "]");
    mc_nn_let(b, name, "%s", t.bad ? "" : t.s);
    mc_nn_free(&t);
}

bool mc_nn_sizes(struct mc_nn_build *b, const char *field, int n, int64_t least, int64_t *out)
{
    int have = mc_nn_list(mc_nn_get(&b->set, field), out, NN_MOST_AXES);
    if (have != n && have != 1) {
        return mc_nn_refuse(b, field, "%s has %d sizes for %d axes", field, have, n);
    }
    for (int i = 0; i < n; i++) {
        out[i] = out[have == 1 ? 0 : i];
        if (out[i] < least) {
            return mc_nn_refuse(b, field, "%s is %lld; expected at least %lld", field, (long long)out[i],
                                (long long)least);
        }
    }
    return true;
}

bool mc_nn_axes(struct mc_nn_build *b, const char *field, int rank, bool *in)
{
    int64_t list[NN_MOST_AXES];
    int n = mc_nn_is(&b->set, field, "auto") || mc_nn_is(&b->set, field, "all")
                ? 0
                : mc_nn_list(mc_nn_get(&b->set, field), list, NN_MOST_AXES);
    for (int i = 0; i < rank; i++) {
        in[i] = mc_nn_is(&b->set, field, "all") || (mc_nn_is(&b->set, field, "auto") && i != 1);
    }
    for (int i = 0; i < n; i++) {
        int64_t axis = list[i] < 0 ? list[i] + rank : list[i];
        if (axis < 0 || axis >= rank) {
            return mc_nn_refuse(b, field, "axis %lld is out of range for rank %d", (long long)list[i], rank);
        }
        in[axis] = true;
    }
    return true;
}

/* The variable that already has that name, for parameters that layers share. */
static bool borrow(struct mc_nn_build *b, const char *field, const char *own, mc_shared *s, const char *tags,
                   int rank, const int64_t *dims)
{
    mc_node *n = mc_shared_node(b->net->g, s);
    bool same = mc_node_rank(n) == rank, known = false;
    for (int i = 0; same && i < rank; i++) {
        same = mc_node_dims(n)[i] == dims[i];
    }
    if (!same) {
        return mc_nn_refuse(b, field, "the shape of '%s' is not that of %s", mc_shared_name(s), field);
    }
    for (int i = 0; i < b->net->nparam; i++) {
        known |= b->net->param[i].shared == s;
    }
    mc_nn_let(b, field, "%s", mc_shared_name(s));
    return known ||
           mc_nn_push(b->net, &b->net->param, &b->net->nparam, &b->net->param_cap, sizeof *b->net->param,
                      &(struct mc_nn_param){ mc_shared_name(s), tags, s, b->layer, own });
}

/* A contiguous array of `blocks` drawn arrays, beside each other along the last axis. */
static mc_array *draw_blocks(struct mc_nn_build *b, int blocks, const struct mc_nn_slice *init, int rank,
                             const int64_t *dims)
{
    int64_t all[NN_MOST_AXES], rows = 1;
    if (blocks == 1) {
        return mc_nn_draw(b->net, b->set.line, init[0], rank, dims);
    }
    for (int i = 0; i < rank; i++) {
        all[i] = dims[i] * (i == rank - 1 ? blocks : 1);
        rows *= i < rank - 1 ? dims[i] : 1;
    }
    mc_array *whole = mc_array_new(mc_nn_float(), rank, all);
    for (int k = 0; whole && k < blocks; k++) {
        mc_array *one = mc_nn_draw(b->net, b->set.line, init[k], rank, dims);
        const size_t row = (size_t)dims[rank - 1] * mc_dtype_size(mc_nn_float());
        for (int64_t r = 0; one && r < rows; r++) {
            memcpy((char *)mc_array_data(whole) + ((size_t)r * (size_t)blocks + (size_t)k) * row,
                   (const char *)mc_array_data(one) + (size_t)r * row, row);
        }
        if (!one) {
            mc_array_unref(&whole);
        }
        mc_array_unref(&one);
    }
    return whole;
}

bool mc_nn_blocks(struct mc_nn_build *b, const char *field, const char *own, const char *tags, int blocks,
                  const struct mc_nn_slice *init, int rank, const int64_t *dims)
{
    struct mc_nn_text name = { 0 };
    int64_t all[NN_MOST_AXES];
    if (b->failed || mc_nn_same(init[0], "none")) {
        mc_nn_hole(&b->holes, field, "");
        return !b->failed;
    }
    for (int i = 0; i < rank; i++) {
        all[i] = dims[i] * (i == rank - 1 ? blocks : 1);
    }
    mc_nn_addn(&name, init[0].s, init[0].n);
    mc_shared *s = name.bad ? NULL : mc_shared_named(b->net->g, name.s);
    if (s) {
        b->failed |= !borrow(b, field, own, s, tags, rank, all);
    } else {
        mc_array *value = name.bad ? NULL : draw_blocks(b, blocks, init, rank, dims);
        name.n = 0;
        mc_nn_addf(&name, "%s_%s", b->layer->var[0], own);
        if (name.bad) {
            mc_array_unref(&value);
        }
        s = value ? mc_nn_param(b->net, b->layer, own, name.s, tags, value) : NULL;
        b->failed |= !s;
        mc_nn_let(b, field, "%s", s ? mc_shared_name(s) : "");
    }
    mc_nn_free(&name);
    return !b->failed;
}

bool mc_nn_weights(struct mc_nn_build *b, const char *field, const char *tags, int rank, const int64_t *dims)
{
    const struct mc_nn_slice init = mc_nn_get(&b->set, field);
    return mc_nn_blocks(b, field, field, tags, 1, &init, rank, dims);
}

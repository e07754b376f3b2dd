/* shapes.c: layers that reshape, shuffle, pad or slice.
 *
 * Invariant: formulas compute only sizes that are not known before the call. */
#include "nn/kind.h"
#include <stdlib.h>

/* The size of the -1, if it is known before the call: each unknown size of the input must occur once. */
static int64_t rest(const struct mc_nn_build *b, const int64_t *size, const int *axis, int n)
{
    int64_t left = 1, taken = 1;
    bool follows = true;
    for (int i = 0; i < mc_nn_rank(b, 0); i++) {
        int64_t d = mc_nn_dims(b, 0)[i];
        int times = 0;
        for (int k = 0; k < n; k++) {
            times += axis[k] == i;
        }
        follows = follows && (d >= 0 || times == 1) && !__builtin_mul_overflow(left, d >= 0 ? d : 1, &left);
    }
    for (int k = 0; k < n; k++) {
        follows = follows && !__builtin_mul_overflow(taken, size[k] >= 0 ? size[k] : 1, &taken);
    }
    return follows && taken > 0 && left % taken == 0 ? left / taken : -1;
}

/* 8,[0],-1: a number, the size of an input axis, and one size that follows from the rest. */
static void reshape(struct mc_nn_build *b)
{
    struct mc_nn_slice v = mc_nn_get(&b->set, "shape");
    struct mc_nn_text t = { 0 };
    int rank = mc_nn_rank(b, 0), n = 0, axis[MC_MAX_RANK];
    int64_t size[MC_MAX_RANK];
    for (const char *c = v.s, *end = v.s + v.n; c < end; n++) {
        const char *comma = memchr(c, ',', (size_t)(end - c)), *stop = comma ? comma : end;
        bool ref = *c == '[';
        char *after;
        long d = strtol(c + ref, &after, 10);
        if (after == c + ref || after + ref != stop || (ref && (*after != ']' || d < 0)) ||
            (!ref && (d == 0 || d < -1))) {
            mc_nn_refuse(b, "shape", "'%.*s' is not a size; expected a number, [axis] or -1", (int)(stop - c),
                         c);
            return;
        }
        if (n == MC_MAX_RANK || (ref && d >= rank)) {
            n == MC_MAX_RANK
                ? mc_nn_refuse(b, "shape", "more than %d sizes", n)
                : mc_nn_refuse(b, "shape", "[%ld] is out of range for an input of rank %d", d, rank);
            return;
        }
        axis[n] = ref ? (int)d : -1;
        size[n] = ref ? mc_nn_dims(b, 0)[d] : d;
        c = stop + (stop < end);
    }
    int64_t follows = rest(b, size, axis, n);
    for (int k = 0; k < n; k++) {
        bool known = size[k] >= 0 || axis[k] < 0;
        mc_nn_addf(&t, known ? "%s%lld" : "%ssize($x, %lld)", k ? ", " : "",
                   (long long)(!known        ? axis[k]
                               : size[k] < 0 ? follows
                                             : size[k]));
    }
    mc_nn_let(b, "sizes", "[%s]", t.bad || !t.s ? "" : t.s);
    mc_nn_free(&t);
}

/* 0,2,1,x: axes in another order; x is a new axis. */
static void dimshuffle(struct mc_nn_build *b)
{
    struct mc_nn_slice v = mc_nn_get(&b->set, "order");
    struct mc_nn_text t = { 0 };
    for (const char *c = v.s, *end = v.s + v.n; c < end;) {
        const char *comma = memchr(c, ',', (size_t)(end - c)), *stop = comma ? comma : end;
        struct mc_nn_slice one = { c, (size_t)(stop - c) };
        mc_nn_addf(&t, "%s%.*s", t.n ? ", " : "", mc_nn_same(one, "x") ? 2 : (int)one.n,
                   mc_nn_same(one, "x") ? "-1" : one.s);
        c = stop + (stop < end);
    }
    mc_nn_let(b, "axes", "[%s]", t.bad || !t.s ? "" : t.s);
    mc_nn_free(&t);
}

/* width: one number for all axes after the batch, one for each, or before:after. */
static void pad(struct mc_nn_build *b)
{
    int rank = mc_nn_rank(b, 0), kept = (int)mc_nn_int(&b->set, "batch_axes"), n = 0;
    struct mc_nn_slice v = mc_nn_get(&b->set, "width");
    struct mc_nn_text sizes = { 0 }, index = { 0 };
    long front[NN_MOST_AXES] = { 0 }, behind[NN_MOST_AXES] = { 0 };
    for (const char *c = v.s, *end = v.s + v.n; c < end && n < NN_MOST_AXES; n++) {
        char *after;
        front[n] = behind[n] = strtol(c, &after, 10);
        if (*after == ':' && after < end) {
            behind[n] = strtol(after + 1, &after, 10);
        }
        if (after == c || (after < end && *after != ',') || front[n] < 0 || behind[n] < 0) {
            mc_nn_refuse(b, "width",
                         "'%.*s' is not a width; expected 2 or 1:2, one for all axes or one for each, "
                         "separated by commas",
                         (int)v.n, v.s);
            return;
        }
        c = after + (after < end);
    }
    if (n != 1 && n > rank - kept) {
        mc_nn_refuse(b, "width", "%d widths are given for %d axes", n, rank - kept);
        return;
    }
    for (int i = 0; i < rank; i++) {
        int k = n == 1 ? 0 : i - kept;
        bool padded = i >= kept && k < n;
        int64_t d = mc_nn_dims(b, 0)[i], more = padded ? front[k] + behind[k] : 0;
        mc_nn_add(&sizes, i ? ", " : "");
        mc_nn_add(&index, i ? ", " : "");
        if (d >= 0) {
            mc_nn_addf(&sizes, "%lld", (long long)(d + more));
        } else {
            mc_nn_addf(&sizes, "size($x, %d) + %lld", i, (long long)more);
        }
        if (!more) {
            mc_nn_add(&index, ":");
        } else if (d >= 0) {
            mc_nn_addf(&index, "%ld:%lld", front[k], (long long)(d + front[k]));
        } else {
            mc_nn_addf(&index, "%ld:size($x, %d) + %ld", front[k], i, front[k]);
        }
    }
    mc_nn_let(b, "sizes", "[%s]", sizes.bad ? "" : sizes.s);
    mc_nn_let(b, "index", "%s", index.bad ? "" : index.s);
    mc_nn_free(&sizes);
    mc_nn_free(&index);
}

static void slice(struct mc_nn_build *b)
{
    int rank = mc_nn_rank(b, 0);
    int64_t axis = mc_nn_int(&b->set, "axis");
    struct mc_nn_slice v = mc_nn_get(&b->set, "indices");
    struct mc_nn_text t = { 0 };
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) {
        mc_nn_refuse(b, "axis", "axis %lld is out of range for rank %d",
                     (long long)mc_nn_int(&b->set, "axis"), rank);
        return;
    }
    for (int i = 0; i < axis; i++) {
        mc_nn_add(&t, ":, ");
    }
    mc_nn_addf(&t, "%.*s", (int)v.n, v.s);
    mc_nn_let(b, "index", "%s", t.bad ? "" : t.s);
    mc_nn_free(&t);
}

const struct mc_nn_kind mc_nn_shapes[] = {
    { "flatten",    "the last axes merged so that the given number remain",        1, { { "axes", NN_INT, "2" } },      NULL,       "flatten($x, ndim=$axes)", NULL },
    { "reshape",    "another shape: 8,[0],-1; [0] is the size of that axis of the input", 1, { { "shape", NN_TEXT, NULL } }, reshape, "reshape($x, $sizes)", NULL },
    { "dimshuffle", "axes in another order: 0,2,1,x; x is a new axis",  1, { { "order", NN_TEXT, NULL } },   dimshuffle, "dimshuffle($x, $axes)", NULL },
    { "pad",        "a border: 2, or for each axis 1,2:0; before:after", 1,
      { { "width", NN_TEXT, NULL }, { "value", NN_REAL, "0" }, { "batch_axes", NN_INT, "2" } },
      pad,          "$_all = alloc(cast($value, $x.dtype), $sizes); set_subtensor($_all[$index], $x)", NULL },
    { "slice",      "a part along an axis: 3, or 1:8:2",               1,
      { { "indices", NN_TEXT, NULL }, { "axis", NN_INT, "-1" } },
      slice,        "$x[$index]", NULL },
    LAST_KIND,
};

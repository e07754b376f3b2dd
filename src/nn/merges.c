/* merges.c: layers with several inputs.
 *
 * Invariant: known sizes of the inputs are equal, except on the concatenated axis and on cropped axes. */
#include "nn/kind.h"

/* The crop of an axis; none beyond the end of the list. */
static struct mc_nn_slice crop_of(struct mc_nn_build *b, int axis)
{
    struct mc_nn_slice v = mc_nn_get(&b->set, "crop"), one = { v.s, 0 };
    const char *c = v.s, *end = v.s + v.n;
    for (int i = 0; c < end; i++) {
        const char *comma = memchr(c, ',', (size_t)(end - c));
        comma = comma ? comma : end;
        if (i == axis) {
            one = (struct mc_nn_slice){ c, (size_t)(comma - c) };
            return mc_nn_same(one, "none") ? (struct mc_nn_slice){ c, 0 } : one;
        }
        c = comma + (comma < end);
    }
    return one;
}

static bool agree(struct mc_nn_build *b, int axis)
{
    int rank = mc_nn_rank(b, 0);
    for (int i = 1; i < b->layer->nin; i++) {
        if (mc_nn_rank(b, i) != rank) {
            return mc_nn_refuse(b, "from", "'%s' has rank %d, '%s' has %d", b->layer->in[0]->name, rank,
                                b->layer->in[i]->name, mc_nn_rank(b, i));
        }
    }
    for (int a = 0; a < rank; a++) {
        for (int i = 0, first = -1; i < b->layer->nin && a != axis && !crop_of(b, a).n; i++) {
            int64_t d = mc_nn_dims(b, i)[a];
            if (d >= 0 && first >= 0 && mc_nn_dims(b, first)[a] != d) {
                return mc_nn_refuse(b, "from", "on axis %d '%s' has size %lld, '%s' has %lld", a,
                                    b->layer->in[first]->name, (long long)mc_nn_dims(b, first)[a],
                                    b->layer->in[i]->name, (long long)d);
            }
            first = d >= 0 && first < 0 ? i : first;
        }
    }
    return true;
}

/* The size of an axis of input i, as a number or a formula. */
static void add_size(struct mc_nn_build *b, struct mc_nn_text *t, int i, int axis)
{
    int64_t d = mc_nn_dims(b, i)[axis];
    mc_nn_addf(t, d >= 0 ? "%lld" : "size($x%lld, %d)", d >= 0 ? (long long)d : (long long)i + 1, axis);
}

static void add_least(struct mc_nn_build *b, struct mc_nn_text *t, int axis)
{
    for (int i = 0; i < b->layer->nin - 1; i++) {
        mc_nn_add(t, "minimum(");
        add_size(b, t, i, axis);
        mc_nn_add(t, ", ");
    }
    add_size(b, t, b->layer->nin - 1, axis);
    for (int i = 0; i < b->layer->nin - 1; i++) {
        mc_nn_add(t, ")");
    }
}

static bool cropped(struct mc_nn_build *b, int axis)
{
    bool any = false;
    for (int a = 0; a < mc_nn_rank(b, 0); a++) {
        any |= a != axis && crop_of(b, a).n > 0;
    }
    return any;
}

/* Input i, cropped to the smallest size of all inputs on the cropped axes. */
static void add_input(struct mc_nn_build *b, struct mc_nn_text *t, int i, int axis)
{
    mc_nn_addf(t, "$x%d", i + 1);
    if (!cropped(b, axis)) {
        return;
    }
    for (int a = 0; a < mc_nn_rank(b, 0); a++) {
        struct mc_nn_slice crop = a == axis ? (struct mc_nn_slice){ "", 0 } : crop_of(b, a);
        mc_nn_add(t, a ? ", " : "[");
        if (!crop.n) {
            mc_nn_add(t, ":");
        } else if (mc_nn_same(crop, "lower")) {
            mc_nn_add(t, ":");
            add_least(b, t, a);
        } else if (mc_nn_same(crop, "upper")) {
            mc_nn_add(t, "-");
            add_least(b, t, a);
            mc_nn_add(t, ":");
        } else if (mc_nn_same(crop, "center")) {
            mc_nn_add(t, "(");
            add_size(b, t, i, a);
            mc_nn_add(t, " - ");
            add_least(b, t, a);
            mc_nn_add(t, ") // 2:(");
            add_size(b, t, i, a);
            mc_nn_add(t, " - ");
            add_least(b, t, a);
            mc_nn_add(t, ") // 2 + ");
            add_least(b, t, a);
        } else {
            mc_nn_refuse(b, "crop", "unknown crop '%.*s'; expected none, lower, center or upper", (int)crop.n,
                         crop.s);
        }
    }
    mc_nn_add(t, "]");
}

static void let_parts(struct mc_nn_build *b, struct mc_nn_text *t)
{
    mc_nn_let(b, "merged", "%s", t->bad ? "" : t->s);
    b->failed |= t->bad;
    mc_nn_free(t);
}

static void concat(struct mc_nn_build *b)
{
    struct mc_nn_text t = { 0 };
    int64_t axis = mc_nn_int(&b->set, "axis");
    axis += axis < 0 ? mc_nn_rank(b, 0) : 0;
    if (!agree(b, (int)axis)) {
        return;
    }
    mc_nn_add(&t, "join(");
    for (int i = 0; i < b->layer->nin; i++) {
        add_input(b, &t, i, (int)axis);
        mc_nn_add(&t, ", ");
    }
    mc_nn_addf(&t, "axis=%lld)", (long long)axis);
    let_parts(b, &t);
}

static void sum(struct mc_nn_build *b)
{
    struct mc_nn_text t = { 0 };
    struct mc_nn_slice all = mc_nn_get(&b->set, "coeffs");
    const char *c = all.s, *end = all.s + all.n;
    int n = 1;
    for (const char *k = c; k < end; k++) {
        n += *k == ',';
    }
    if (n != 1 && n != b->layer->nin) {
        mc_nn_refuse(b, "coeffs", "%d coefficients for %d layers", n, b->layer->nin);
        return;
    }
    for (int i = 0; agree(b, -1) && i < b->layer->nin; i++) {
        const char *comma = memchr(c, ',', (size_t)(end - c));
        struct mc_nn_slice one = { c, (size_t)((comma ? comma : end) - c) };
        mc_nn_add(&t, i ? " + " : "");
        if (!mc_nn_same(one, "1")) {
            mc_nn_addf(&t, "%.*s * ", (int)one.n, one.s);
        }
        add_input(b, &t, i, -1);
        c = comma ? comma + 1 : c; /* a single one is used for all inputs */
    }
    let_parts(b, &t);
}

static void merge(struct mc_nn_build *b)
{
    struct mc_nn_text t = { 0 };
    struct mc_nn_slice op = mc_nn_get(&b->set, "op");
    for (int i = 1; agree(b, -1) && i < b->layer->nin; i++) {
        mc_nn_addf(&t, "%.*s(", (int)op.n, op.s);
    }
    for (int i = 0; !b->failed && i < b->layer->nin; i++) {
        mc_nn_add(&t, i ? ", " : "");
        add_input(b, &t, i, -1);
        mc_nn_add(&t, i ? ")" : "");
    }
    let_parts(b, &t);
}

/* The second layer has a number for each example and channel of the first. */
static void excite(struct mc_nn_build *b)
{
    const int rank = mc_nn_rank(b, 0);
    if (rank < 3 || mc_nn_rank(b, 1) != 2) {
        mc_nn_refuse(b, "from", "'%s' has rank %d, '%s' has %d; expected 3 or more, and 2",
                     b->layer->in[0]->name, rank, b->layer->in[1]->name, mc_nn_rank(b, 1));
        return;
    }
    const int64_t channels = mc_nn_dims(b, 0)[1], factors = mc_nn_dims(b, 1)[1];
    if (channels >= 0 && factors >= 0 && channels != factors) {
        mc_nn_refuse(b, "from", "'%s' has %lld channels, '%s' has %lld numbers", b->layer->in[0]->name,
                     (long long)channels, b->layer->in[1]->name, (long long)factors);
        return;
    }
    int64_t order[NN_MOST_AXES] = { 0, 1 };
    for (int i = 2; i < rank; i++) {
        order[i] = -1;
    }
    mc_nn_let_ints(b, "order", rank, order);
}

#define CROP { "crop", NN_TEXT, "none" }
const struct mc_nn_kind mc_nn_merges[] = {
    { "concat", "layers joined along an axis; crop=none,none,center,lower: how larger layers are cut on each axis", -1,
      { LAYERS, { "axis", NN_INT, "1" }, CROP, ACT("linear") }, concat, "$merged", NULL },
    { "sum",    "the sum of layers, each times its coefficient",                                                          -1,
      { LAYERS, { "coeffs", NN_TEXT, "1" }, CROP, ACT("linear") }, sum, "$merged", NULL },
    { "excite", "each channel of the first layer times a number of the second, as in squeeze-and-excitation",              2,
      { LAYERS, ACT("linear") }, excite, "$x1 * dimshuffle($x2, $order)", NULL },
    { "merge",  "layers combined by any op of two tensors: merge a b op=maximum",                                               -1,
      { LAYERS, { "op", NN_CALL, "mul" }, CROP, ACT("linear") }, merge, "$merged", NULL },
    LAST_KIND,
};

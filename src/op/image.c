/* image.c: splits images into patches, joins patches into images, and enlarges images.
 *
 * Invariant: the ops are composed of gathers, reshapes and convolutions, which have the gradients. */
#include "op/op.h"

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

static struct mc_bind number(mc_graph *g, const char *name, int64_t v)
{
    return (struct mc_bind){ name, mc_node_int(g, v), NULL };
}

/* Reads two numbers, each at least 1, from a list of one or two. */
static mc_status pair(const char *what, const struct mc_attr *a, int64_t v[2])
{
    for (int i = 0; i < 2; i++) {
        if (a->n != 1 && a->n != 2) {
            return mc_fail(MC_EARG, "%s has %d numbers; expected two: rows and columns", what, a->n);
        }
        v[i] = a->ints[a->n == 1 ? 0 : i];
        if (v[i] < 1 || v[i] > INT32_MAX) {
            return mc_fail(MC_EARG, "%s is %lld, and must be at least 1 and less than 2^31", what,
                           (long long)v[i]);
        }
    }
    return MC_OK;
}

/* ---- patches ---- */

/* Along an axis, patches of w elements begin every s elements, at -before, s - before, and so on. The axis
 * is extended by `before` at both ends. */
enum edge { NONE, HALF, WHOLE };
static const struct mode {
    const char *name;
    enum edge edge;
    bool exact;                     /* the steps must divide the extended axis */
    bool wraps;                     /* a patch around each s-th position, wrapping at the edges */
} modes[] = {
    { "valid",          NONE,  true,  false },
    { "ignore_borders", NONE,  false, false },
    { "half",           HALF,  true,  false },
    { "full",           WHOLE, true,  false },
    { "wrap_centered",  HALF,  false, true },
};

/* The indices of the elements of each patch along an axis of size n, as (patches, w); some may be out of
 * range. The check of n is attached to these small tensors, not to the image. */
static mc_node *steps(const struct mode *m, mc_node *n, int64_t w, int64_t s)
{
    mc_graph *g = n->graph;
    int64_t before = m->edge == NONE ? 0 : m->edge == HALF ? w / 2 : w - 1;
    struct mc_bind b[5] = { { "n", n, NULL },
                            number(g, "w", w),
                            number(g, "s", s),
                            number(g, "before", before),
                            number(g, "over", 2 * before - w) };
    mc_node *at = mc_expr(g,
                          m->wraps ? "(expand_dims(arange((n + s - 1) // s) * s - before, 1) + arange(w)) % n"
                                   : "expand_dims(arange((n + over) // s + 1) * s - before, 1) + arange(w)",
                          b, 5);
    at = mc_hold(at, mc_expr(g, "n >= w", b, 2), "the patches are larger than the image");
    return m->exact ? mc_hold(at, mc_expr(g, "(n + over) % s == 0", b, 5),
                              "the steps do not divide the image: size and step are not consistent")
                    : at;
}

static mc_node *build_images2neibs(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mode *m = NULL;
    int64_t w[2] = { 1, 1 }, s[2] = { 1, 1 };
    mc_node *x = in[0];
    (void)nin;
    for (size_t i = 0; i < NELEM(modes); i++) {
        m = !attr[2].none && strcmp(modes[i].name, attr[2].text) == 0 ? &modes[i] : m;
    }
    if (!m) {
        return mc_node_fail(g, MC_EARG,
                            "unknown mode '%s'; expected valid, ignore_borders, half, full or wrap_centered",
                            attr[2].none ? "None" : attr[2].text);
    }
    if (x->type.rank != 4) {
        return mc_node_fail(g, MC_ESHAPE, "x has rank %d; expected 4", x->type.rank);
    }
    if (pair("neib_shape", &attr[0], w) < 0 || pair("neib_step", attr[1].none ? &attr[0] : &attr[1], s) < 0) {
        return failed(g);
    }
    if (m->wraps && (w[0] % 2 == 0 || w[1] % 2 == 0)) {
        return mc_node_fail(g, MC_EARG, "wrap_centered needs patches of odd size, not %lld x %lld",
                            (long long)w[0], (long long)w[1]);
    }
    mc_node *rows = mc_size_of(x, 2), *columns = mc_size_of(x, 3);
    struct mc_bind b[6] = { { "x", x, NULL },
                            { "i", steps(m, rows, w[0], s[0]), NULL },
                            { "j", steps(m, columns, w[1], s[1]), NULL },
                            { "r", rows, NULL },
                            { "c", columns, NULL },
                            number(g, "all", w[0] * w[1]) };
    for (int i = 0; i < 6; i++) {
        if (mc_is_error(b[i].node)) {
            return g->error;
        }
    }
    bool outside = !m->wraps && m->edge != NONE; /* there are zeros around the image */
    return mc_expr(
        g,
        outside ? "i = dimshuffle(i, [0, -1, 1, -1]); j = dimshuffle(j, [-1, 0, -1, 1]); "
                  "p = x[:, :, clip(i, 0, r - 1), clip(j, 0, c - 1)]; "
                  "reshape(where((i >= 0) & (i < r) & (j >= 0) & (j < c), p, 0), [-1, all])"
                : "reshape(x[:, :, dimshuffle(i, [0, -1, 1, -1]), dimshuffle(j, [-1, 0, -1, 1])], [-1, all])",
        b, 6);
}

static mc_node *build_neibs2images(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t w[2] = { 1, 1 }, v[2];
    int n;
    (void)nin;
    bool rest = !attr[0].none && strcmp(attr[0].text, "ignore_borders") == 0;
    if (attr[0].none || (!rest && strcmp(attr[0].text, "valid") != 0)) {
        return mc_node_fail(g, MC_EARG, "unknown mode '%s'; expected valid or ignore_borders",
                            attr[0].none ? "None" : attr[0].text);
    }
    if (!mc_const_ints(in[1], v, 2, &n)) {
        return mc_node_fail(g, MC_EARG, "neib_shape must be two numbers");
    }
    struct mc_attr a = { .n = n, .ints = v };
    if (pair("neib_shape", &a, w) < 0) {
        return failed(g);
    }
    if (in[0]->type.rank != 2 || in[2]->type.rank != 1 ||
        (in[2]->type.dims[0] >= 0 && in[2]->type.dims[0] != 4)) {
        return mc_node_fail(g, MC_ESHAPE, "neibs must be a matrix, and original_shape four sizes");
    }
    struct mc_bind b[8] = {
        { "x", in[0], NULL }, number(g, "u", w[0]), number(g, "v", w[1]), { "shape", in[2], NULL }
    };
    static const char *const names[4] = { "n", "m", "r", "c" };
    for (int i = 0; i < 4; i++) {
        mc_node *size = mc_shape_entry_node(in[2], i);
        b[4 + i] = (struct mc_bind){ names[i], size ? size : mc_pick(in[2], 0, mc_node_int(g, i)), NULL };
    }
    return mc_expr(
        g,
        rest ? "p = dimshuffle(reshape(x, [n, m, r // u, c // v, u, v]), [0, 1, 2, 4, 3, 5]); "
               "set_subtensor(alloc(cast(0, x.dtype), [n, m, r, c])[:, :, :r // u * u, :c // v * v], "
               "reshape(p, [n, m, r // u * u, c // v * v]))"
             : "reshape(dimshuffle(reshape(x, [n, m, r // u, c // v, u, v]), [0, 1, 2, 4, 3, 5]), [n, m, r, "
               "c])",
        b, 8);
}

/* ---- larger images ---- */

/* Linear interpolation: u[t] is x at the position (t - (r - 1) // 2) / r, with the edges of x repeated
 * beyond its ends. It is conv_inputs of the extended x with stride r and a triangular filter. */
static mc_node *enlarge(mc_node *x, const int64_t r[2], bool separable)
{
    mc_graph *g = x->graph;
    struct mc_bind b[6] = { { "x", x, NULL },
                            number(g, "r", r[0]),
                            number(g, "q", r[1]),
                            { 0 },
                            number(g, "p", 2 * r[0] - (r[0] - 1) / 2 - 1),
                            number(g, "o", 2 * r[1] - (r[1] - 1) / 2 - 1) };
    mc_node *e = mc_expr(g,
                         "e = reshape(x, [-1, 1, size(x, 2), size(x, 3)]); e = concatenate([e[:, :, :1], e, "
                         "e[:, :, -1:]], axis=2); "
                         "concatenate([e[:, :, :, :1], e, e[:, :, :, -1:]], axis=3)",
                         b, 1);
    b[3] = (struct mc_bind){ "e", e, NULL };
    return mc_is_error(e)
               ? e
               : mc_expr(g,
                         separable
                             ? "k = dimshuffle(cast(bilinear_kernel_1D(ratio=r), x.dtype), [-1, -1, 0, -1]); "
                               "l = dimshuffle(cast(bilinear_kernel_1D(ratio=q), x.dtype), [-1, -1, -1, 0]); "
                               "e = conv_inputs(k, e, [size(x, 2) * r, size(x, 3) + 2], border=[p, 0], "
                               "stride=[r, 1]); "
                               "e = conv_inputs(l, e, [size(x, 2) * r, size(x, 3) * q], border=[0, o], "
                               "stride=[1, q]); "
                               "reshape(e, [size(x, 0), size(x, 1), size(x, 2) * r, size(x, 3) * q])"
                             : "k = dimshuffle(cast(outer(bilinear_kernel_1D(ratio=r), "
                               "bilinear_kernel_1D(ratio=q)), x.dtype), [-1, -1, 0, 1]); "
                               "e = conv_inputs(k, e, [size(x, 2) * r, size(x, 3) * q], border=[p, o], "
                               "stride=[r, q]); "
                               "reshape(e, [size(x, 0), size(x, 1), size(x, 2) * r, size(x, 3) * q])",
                         b, 6);
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b ? divisor(b, a % b) : a;
}

enum { B_RATIO, B_FRACTION, B_BATCH, B_CHANNELS, B_SEPARABLE };

/* For a ratio a / b, the image is enlarged a times and each b-th element is kept. */
static mc_node *build_bilinear(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_attr *whole = &attr[B_RATIO], *part = &attr[B_FRACTION];
    int64_t r[2] = { 1, 1 }, each[2] = { 1, 1 };
    (void)nin;
    if (whole->none == part->none) {
        return mc_node_fail(g, MC_EARG, "give either ratio or frac_ratio");
    }
    if (in[0]->type.rank != 4 || !mc_is_float(in[0]->type.dtype)) {
        return mc_node_fail(g, MC_ESHAPE, "x has rank %d and dtype %s; expected rank 4 and a float dtype",
                            in[0]->type.rank, mc_dtype_name(in[0]->type.dtype));
    }
    if (!part->none && part->n != 2 && part->n != 4) {
        return mc_node_fail(
            g, MC_EARG,
            "frac_ratio has %d numbers; expected [a, b], or such a pair for rows and one for columns",
            part->n);
    }
    for (int i = 0; i < 2; i++) {
        const int64_t *ab = part->none ? NULL : part->ints + (part->n == 4 ? 2 * i : 0);
        r[i] = ab ? ab[0] : mc_attr_int(whole);
        each[i] = ab ? ab[1] : 1;
        if (r[i] < 1 || each[i] < 1 || r[i] > 65536 || each[i] > 65536) {
            return mc_node_fail(g, MC_EARG, "the ratio is %lld/%lld; both numbers must be from 1 to 65536",
                                (long long)r[i], (long long)each[i]);
        }
        int64_t d = divisor(r[i], each[i]);
        r[i] /= d;
        each[i] /= d;
    }
    int64_t sizes[4] = { attr[B_BATCH].none ? -1 : mc_attr_int(&attr[B_BATCH]),
                         attr[B_CHANNELS].none ? -1 : mc_attr_int(&attr[B_CHANNELS]), -1, -1 };
    struct mc_attr promise = { .kind = ATTR_INTS, .n = 4, .ints = sizes };
    mc_node *x = sizes[0] < 0 && sizes[1] < 0 ? in[0]
                                              : mc_apply(g, mc_op_named(g, "specify_shape"), 1, in, &promise);
    mc_node *u = mc_is_error(x) ? x : enlarge(x, r, mc_attr_int(&attr[B_SEPARABLE]) != 0);
    struct mc_bind b[3] = { { "u", u, NULL }, number(g, "a", each[0]), number(g, "b", each[1]) };
    return mc_is_error(u) || (each[0] == 1 && each[1] == 1) ? u : mc_expr(g, "u[:, :, ::a, ::b]", b, 3);
}

const struct mc_op mc_ops_image[] = {
    { .name = "images2neibs", .params = "x, neib_shape:ints, neib_step=None:ints, mode=valid:text", .nout = 1, .build = build_images2neibs,
      .doc = MANUAL("patches of the last two axes of x, one in each row of the result; neib_step: the distance "
             "between patches, neib_shape if it is None; mode: valid, ignore_borders (incomplete patches are "
             "left out), half, full (padded with zeros), wrap_centered (patches wrap around the edges)") },
    { .name = "neibs2images", .params = "neibs, neib_shape, original_shape, mode=valid:text", .nout = 1, .build = build_neibs2images,
      .doc = MANUAL("the inverse of images2neibs for adjacent patches; mode: valid, or ignore_borders (zeros where there is no patch)") },
    { .name = "bilinear_kernel_1D", .params = "ratio:int, normalize=True:bool", .nout = 1,
      .formula = "i = arange(1, 2 * ratio); cast_to(minimum(i, 2 * ratio - i)) / cast_to(1 + normalize * (ratio - 1))",
      .doc = MANUAL("1, 2, ... ratio, ... 2, 1, divided by ratio if normalize") },
    { .name = "bilinear_kernel_2D", .params = "ratio:int, normalize=True:bool", .nout = 1,
      .formula = "k = bilinear_kernel_1D(ratio=ratio, normalize=normalize); outer(k, k)", .doc = MANUAL("the outer product of bilinear_kernel_1D with itself") },
    { .name = "bilinear_upsampling", .nout = 1, .build = build_bilinear,
      .params = "x, ratio=None:int, frac_ratio=None:border, batch_size=None:int, num_input_channels=None:int, use_1D_kernel=True:bool",
      .example = MANUAL("x = [[[[1., 2], [3, 5]]]]; bilinear_upsampling(x, ratio=2)"),
      .doc = MANUAL("x with its last two axes enlarged ratio times by linear interpolation; frac_ratio: [a, b] for a/b, or such a pair for rows and one for columns") },
};
const int mc_nops_image = (int)NELEM(mc_ops_image);

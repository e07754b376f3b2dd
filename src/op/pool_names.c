/* pool_names.c: pooling under the names of other libraries, as formulas over pool, which has the rule for
 * ties.
 *
 * Invariant: each op has the shape rules and defaults of the library that its name is from. Images of
 * cuda-convnet are c01b: channels, rows, columns, batch. */
#include "op/pool_node.h"

/* ---- dnn_pool: two or three spatial axes after batch and channels ---- */

static mc_node *build_dnn_pool(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const int rank = in[0]->type.rank;
    struct mc_pool_how how = { .mode = attr[0].text, .ties = attr[1].text, .nd = rank - 2 };
    mc_node *one = mc_node_int(g, 1);
    if (rank != 4 && rank != 5) {
        return mc_node_fail(g, MC_ESHAPE, "dnn_pool: images must have rank 4 or 5, not %d", rank);
    }
    return mc_pool_make(in[0], (mc_node *[]){ in[1], nin > 2 && in[2] ? in[2] : one, nin > 3 ? in[3] : NULL },
                        &how);
}

/* ---- levels of a pyramid: n by n windows that cover the image ---- */

enum { MOST_BANDS = 64 };

/* Band k of n along an axis is the range from floor(k size / n) to ceil((k + 1) size / n). Neighbours may
 * share a cell, so any size is possible. Each band is reduced to one element. */
static mc_node *bands(mc_node *x, int axis, int64_t n, const char *one)
{
    mc_graph *g = x->graph;
    mc_node *part[MOST_BANDS];
    char text[128];
    mc_snprintf(text, sizeof text, "%s(x[%s s * k // n:(s * (k + 1) + n - 1) // n], axis=%d, keepdims=True)",
                one, axis == 2 ? ":, :," : "...,", axis);
    for (int64_t k = 0; k < n; k++) {
        struct mc_bind b[4] = { { "x", x, NULL },
                                { "s", mc_size_of(x, axis), NULL },
                                { "k", mc_node_int(g, k), NULL },
                                { "n", mc_node_int(g, n), NULL } };
        part[k] = mc_expr(g, text, b, 4);
        if (mc_is_error(part[k])) {
            return part[k];
        }
    }
    return mc_call_op(g, "join", (int)n, part, "axis=%d", axis);
}

static mc_node *shared_level(mc_node *x, int64_t n, const char *mode)
{
    mc_graph *g = x->graph;
    const char *one = strcmp(mode, "max") == 0 ? "max" : strcmp(mode, "sum") == 0 ? "sum" : "mean";
    if (n > MOST_BANDS) {
        return mc_node_fail(
            g, MC_EARG,
            "spatial_pyramid_pool: a level has %lld windows that may overlap; at most %d are supported",
            (long long)n, MOST_BANDS);
    }
    mc_node *rows = bands(x, 2, n, one), *y = mc_is_error(rows) ? rows : bands(rows, 3, n, one);
    struct mc_bind b[2] = { { "y", y, NULL }, { "k", mc_node_int(g, n * n), NULL } };
    return mc_is_error(y) ? y : mc_expr(g, "reshape(y, [size(y, 0), size(y, 1), k])", b, 2);
}

/* n windows of size i - (n - 1) (i // n) with stride i // n: together they cover the axis of size i. */
static mc_node *level(mc_node *x, int64_t n, const char *mode)
{
    mc_graph *g = x->graph;
    mc_node *ws[2], *stride[2];
    for (int i = 0; i < 2; i++) {
        struct mc_bind b[2] = { { "i", mc_size_of(x, 2 + i), NULL }, { "n", mc_node_int(g, n), NULL } };
        ws[i] = mc_expr(g, "i - (n - 1) * (i // n)", b, 2);
        stride[i] = mc_expr(g, "i // n", b, 2);
        int64_t w;
        int count;
        if (!mc_is_error(ws[i]) &&
            x->type.dims[2 + i] >= 0) { /* constants, so that the sizes of the result are known */
            w = x->type.dims[2 + i];
            ws[i] = mc_node_int(g, w - (n - 1) * (w / n));
            stride[i] = mc_node_int(g, w / n);
        }
        if (mc_const_ints(stride[i], &w, 1, &count) && w < 1) {
            return mc_node_fail(g, MC_ESHAPE,
                                "spatial_pyramid_pool: size %lld of axis %d is less than %lld windows",
                                (long long)x->type.dims[2 + i], 2 + i, (long long)n);
        }
    }
    struct mc_pool_how how = { .mode = mode };
    mc_node *y = mc_pool_make(
        x, (mc_node *[]){ mc_shape_stack(g, 2, ws), mc_shape_stack(g, 2, stride), NULL }, &how);
    struct mc_bind b[2] = { { "y", y, NULL }, { "k", mc_node_int(g, n * n), NULL } };
    return mc_is_error(y) ? y : mc_expr(g, "reshape(y, [size(y, 0), size(y, 1), k])", b, 2);
}

static mc_node *build_pyramid(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const int64_t usual[] = { 4, 2, 1 };
    const int64_t *n = attr[0].none ? usual : attr[0].ints;
    const int count = attr[0].none ? (int)NELEM(usual) : attr[0].n;
    const bool shared = strcmp(attr[2].text, "kaiming") == 0;
    mc_node *part[MC_MAX_RANK];
    (void)nin;
    if (!shared && strcmp(attr[2].text, "fast") != 0) {
        return mc_node_fail(g, MC_EARG,
                            "spatial_pyramid_pool: unknown implementation '%s'; expected fast or kaiming",
                            attr[2].text);
    }
    if (in[0]->type.rank != 4 || count < 1 || count > (int)NELEM(part)) {
        return mc_node_fail(g, MC_ESHAPE,
                            "spatial_pyramid_pool: expected images of rank 4 and 1 to %d levels",
                            (int)NELEM(part));
    }
    for (int i = 0; i < count; i++) {
        if (n[i] < 1 || n[i] > INT16_MAX) {
            return mc_node_fail(g, MC_EARG, "spatial_pyramid_pool: a level of %lld windows is not possible",
                                (long long)n[i]);
        }
        part[i] = (shared ? shared_level : level)(in[0], n[i], attr[1].text);
        if (mc_is_error(part[i])) {
            return part[i];
        }
    }
    return mc_call_op(g, "join", count, part, "axis=2");
}

/* ---- upscale: every element becomes a block ---- */

static mc_node *build_upscale(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const char *mode = attr[1].text;
    bool repeats = strcmp(mode, "repeat") == 0;
    const int64_t k = mc_attr_int(&attr[0]), nd = mc_attr_int(&attr[2]);
    mc_node *x = in[0], *size[MC_MAX_RANK];
    const int rank = x->type.rank;
    (void)nin;
    if (!repeats && strcmp(mode, "dilate") != 0) {
        return mc_node_fail(g, MC_EARG, "upscale: unknown mode '%s'; expected repeat or dilate", mode);
    }
    if (k < 1 || k > INT16_MAX || nd < 1 || nd > 3 || nd > rank) {
        return mc_node_fail(g, MC_ESHAPE, "upscale: factor %lld over %lld axes is not possible for rank %d",
                            (long long)k, (long long)nd, rank);
    }
    x = mc_cast_to(x, mc_dtype_to_float(x->type.dtype));
    for (int i = 0; i < rank; i++) {
        struct mc_bind b[2] = { { "i", mc_size_of(x, i), NULL }, { "k", mc_node_int(g, k), NULL } };
        size[i] = i < rank - nd          ? b[0].node
                  : x->type.dims[i] >= 0 ? mc_node_int(g, x->type.dims[i] * k)
                                         : mc_expr(g, "i * k", b, 2);
        if (mc_is_error(size[i])) {
            return size[i];
        }
    }
    /* SPREAD of a sum over blocks. To dilate, the windows have one cell, with the stride of the blocks. */
    int64_t v[3][3], axis[3], no[3] = { 1, 0, MC_UINT8 };
    for (int i = 0; i < nd; i++) {
        v[0][i] = repeats ? k : 1;
        v[1][i] = k;
        v[2][i] = 0;
        axis[i] = rank - nd + i;
    }
    struct mc_attr a[POOL_NATTR] = {
        [POOL_MODE] = { .kind = ATTR_TEXT, .text = "sum" }, [POOL_IGNORE_BORDER] = { .kind = ATTR_BOOL, .n = 1, .ints = &no[0] },
        [POOL_START] = { .kind = ATTR_INTS, .none = true }, [POOL_TIES] = { .kind = ATTR_TEXT, .text = "first" },
        [POOL_AXIS] = { .kind = ATTR_INTS, .n = (int)nd, .ints = axis }, [POOL_STRICT] = { .kind = ATTR_BOOL, .n = 1, .ints = &no[1] },
        [POOL_LAYOUT] = { .kind = ATTR_TEXT, .none = true },
    };
    mc_node *all[5] = { x, mc_shape_stack(g, rank, size), mc_node_ints(g, (int)nd, v[0]), mc_node_ints(g, (int)nd, v[1]),
                        mc_node_ints(g, (int)nd, v[2]) };
    return mc_apply(g, mc_op_named(g, "pool_spread"), 5, all, a);
}

#define FORMULA(text) .formula = text, .infer = mc_formula_infer, .eval = mc_formula_eval
#define THEANO "x, ws, stride=None, pad=None, ignore_border=False:bool, mode=max:text, ties=first:text"
#define CUDA "ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text, strict=False:bool"
#define OF_CUDA "start=start, layout='c01b', ties=ties, strict=strict"
const struct mc_op mc_ops_pool_names[] = {
    { .name = "pool_2d", .params = THEANO, .nout = 1,
      FORMULA("pool(x, ws, stride, pad, axis=[-2, -1], mode=mode, ignore_border=ignore_border, ties=ties)"),
      .example = MANUAL("x = [[[[1., 5, 2, 0], [3, 4, 1, 7], [2, 0, 6, 1], [8, 3, 2, 2]]]]; pool_2d(x, 2)"),
      .doc = MANUAL("pool over the last two axes; incomplete windows at the border are kept unless ignore_border is True") },
    { .name = "pool_3d", .params = THEANO, .nout = 1,
      FORMULA("pool(x, ws, stride, pad, axis=[-3, -2, -1], mode=mode, ignore_border=ignore_border, ties=ties)"),
      .doc = MANUAL("pool over the last three axes; incomplete windows at the border are kept unless ignore_border is True") },
    { .name = "max_pool_2d", .params = "x, ds, st=None, padding=None, ignore_border=False:bool, ties=first:text", .nout = 1,
      FORMULA("pool(x, ds, st, padding, axis=[-2, -1], ignore_border=ignore_border, ties=ties)"),
      .example = MANUAL("x = [[[[1., 5, 2, 0], [3, 4, 1, 7], [2, 0, 6, 1], [8, 3, 2, 2]]]]; max_pool_2d(x, 2)"),
      .doc = MANUAL("pool_2d with its old argument names") },
    { .name = "max_pool_2d_same_size", .params = "x, ws, ties=all:text", .nout = 1,
      FORMULA("pool_grad(x, pool(x, ws, axis=[-2, -1], ties=ties), ws, axis=[-2, -1], ties=ties)"),
      .example = MANUAL("x = [[[[1., 5, 2, 0], [3, 4, 1, 7], [2, 0, 6, 1], [8, 3, 2, 2]]]]; max_pool_2d_same_size(x, 2)"),
      .doc = MANUAL("x where it is the maximum of its window, else 0; of equal maxima all are kept, with ties='first' only the first") },
    { .name = "dnn_pool", .params = "img, ws, stride=None, pad=None, mode=max:text, ties=first:text", .nout = 1, .build = build_dnn_pool,
      .doc = MANUAL("pool over the two or three axes after batch and channels, as cuDNN does: the stride is 1 by "
             "default, incomplete windows are left out") },
    { .name = "max_pool", .params = "x, " CUDA, .nout = 1, FORMULA("pool(x, ds, stride, " OF_CUDA ")"),
      .example = MANUAL("x = [[[[1.], [5], [2]], [[3], [4], [1]], [[2], [0], [6]]]]; max_pool(x, ds=2)"),
      .doc = MANUAL("cuda-convnet's pooling of c01b images: windows of size ds begin at start and may extend past "
             "the end; the stride is ds by default; outputs is not used; strict: shapes beyond the limits of "
             "cuda-convnet's kernels are errors") },
    { .name = "max_pool_grad", .params = "x, g, " CUDA, .nout = 1, FORMULA("pool_grad(x, g, ds, stride, " OF_CUDA ")"),
      .example = MANUAL("x = [[[[1.], [5], [2]], [[3], [4], [1]], [[2], [0], [6]]]]; g = [[[[1.], [2]], [[3], [4]]]]; max_pool_grad(x, g, ds=2)"),
      .doc = MANUAL("the gradient of max_pool(x) with respect to x, from the gradient of its result") },
    { .name = "max_pool_rop", .params = "x, v, " CUDA, .nout = 1, FORMULA("pool_pick(x, v, ds, stride, " OF_CUDA ")"),
      .example = MANUAL("x = [[[[1.], [5], [2]], [[3], [4], [1]], [[2], [0], [6]]]]; v = 10 * x; max_pool_rop(x, v, ds=2)"),
      .doc = MANUAL("the derivative of max_pool(x) in the direction v") },
    { .name = "max_pool_c01b", .params = "x, pool_shape:ints, pool_stride=None:ints, ties=first:text", .nout = 1,
      FORMULA("pool(x, pool_shape, pool_stride, start=0, layout='c01b', ties=ties)"),
      .example = MANUAL("x = [[[[1.], [5], [2]], [[3], [4], [1]], [[2], [0], [6]]]]; max_pool_c01b(x, [2, 2])"),
      .doc = MANUAL("max_pool with windows and strides for each axis") },
    { .name = "prob_max_pool", .params = "z, t=None, ds:int", .nout = 2,
      FORMULA("b = default(t, 0); n = consider_constant(maximum(pool(z, ds, ds, start=0, layout='c01b'), -b)); "
              "e = exp(z - pool_grad(z, n, ds, ds, mode='sum', start=0, layout='c01b')); off = exp(-b - n); "
              "d = pool(e, ds, ds, mode='sum', start=0, layout='c01b') + off; "
              "[1 - off / d, e / pool_grad(z, d, ds, ds, mode='sum', start=0, layout='c01b')]"),
      .doc = MANUAL("probabilistic max pooling of c01b images z with top-down input t: in each window of ds by ds at "
             "most one cell is on; the results are the probability that any cell of a window is on, and that "
             "of each cell") },
    { .name = "weighted_max_pool", .params = "x, " CUDA, .nout = 1,
      FORMULA("s = pool(x, ds, stride, mode='sum', " OF_CUDA "); none = eq(s, 0); "
              "where(none, 0, pool(x * x, ds, stride, mode='sum', " OF_CUDA ") / where(none, 1, s))"),
      .example = MANUAL("x = [[[[1.], [5], [2]], [[3], [4], [1]], [[2], [0], [6]]]]; weighted_max_pool(x, ds=2)"),
      .doc = MANUAL("the mean of each window weighted by its own elements, 0 where their sum is 0: the expected "
             "value of stochastic_max_pool") },
    { .name = "stochastic_max_pool", .flags = OP_RANDOM, .params = "rng, x, " CUDA ", stream=-1:int", .nout = 1,
      FORMULA("s = pool(x, ds, stride, mode='sum', " OF_CUDA "); u = random_uniform(rng, s.shape, stream=stream, dtype=x.dtype); "
              "where(s > 0, ravel(x)[pool_draw(x, u, ds, stride, " OF_CUDA ")], 0)"),
      .example = MANUAL("x = [[[[1.], [5], [2]], [[3], [4], [1]], [[2], [0], [6]]]]; stochastic_max_pool(rng, x, ds=2)"),
      .doc = MANUAL("an element of each window of x, which must not be negative, drawn with probability in "
             "proportion to its value; 0 where all are 0; the gradient goes to the drawn cell") },
    { .name = "global_pool", .params = "x, mode=average_inc_pad:text", .nout = 1,
      FORMULA("y = flatten(x, ndim=3); pool(y, size(y, 2), axis=2, mode=mode)[:, :, 0]"),
      .doc = MANUAL("each channel of x reduced to one number: one window over all axes after batch and channels") },
    { .name = "spatial_pyramid_pool", .params = "x, pool_dims=None:ints, mode=max:text, implementation=fast:text", .nout = 1,
      .build = build_pyramid,
      .doc = MANUAL("pooling over levels of 4 by 4, 2 by 2 and 1 by 1 windows, or those of pool_dims, for images of "
             "any size; the result has the axes batch, channels, windows of all levels; "
             "implementation='kaiming': neighbouring windows share a cell where the size is not a multiple, "
             "and images may have fewer cells than windows") },
    { .name = "upscale", .params = "x, factor:int, mode=repeat:text, nd=2:int", .nout = 1, .build = build_upscale,
      .doc = MANUAL("x with its last nd axes enlarged factor times: elements are repeated, or with mode='dilate' separated by zeros") },
    { .name = "bc01_to_c01b", .params = "x", .nout = 1, FORMULA("dimshuffle(x, [1, 2, 3, 0])"), .doc = MANUAL("images in the layout bc01, brought to the layout c01b of cuda-convnet") },
    { .name = "c01b_to_bc01", .params = "x", .nout = 1, FORMULA("dimshuffle(x, [3, 0, 1, 2])"), .doc = MANUAL("images in the layout c01b of cuda-convnet, brought to the layout bc01") },
};
const int mc_nops_pool_names = (int)NELEM(mc_ops_pool_names);

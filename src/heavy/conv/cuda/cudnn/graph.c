/* graph.c: a convolution as an operation graph of cuDNN's backend: the pass and, after a forward pass, c0,
 * a bias and an activation where the problem has them.
 *
 * cuDNN takes two spatial axes where a problem has one or two.  Its engines recognize layouts by strides;
 * so axes of size 1 get the strides that they have in the layout of the rest of the array.
 *
 * Invariant: after a descriptor of the graph has failed no further one is made. */
#include "heavy/conv/cuda/cuda.h"

/* ---- descriptors ---- */

void *mc_dnn_new(struct mc_dnn *g, int type)
{
    void *desc = NULL;
    if (g->failed || !VEC_RESERVE(g->made, 1) || mc_nv.cudnnBackendCreateDescriptor(type, &desc) != 0) {
        g->failed = true;
        return NULL;
    }
    VEC_PUSH(g->made, desc);
    return desc;
}

void mc_dnn_set(struct mc_dnn *g, void *desc, int name, int type, int64_t n, const void *values)
{
    g->failed = g->failed || mc_nv.cudnnBackendSetAttribute(desc, name, type, n, values) != 0;
}

void mc_dnn_finish(struct mc_dnn *g, void *desc)
{
    g->failed = g->failed || mc_nv.cudnnBackendFinalize(desc) != 0;
}

void mc_dnn_free(struct mc_dnn *g)
{
    for (size_t i = g->made.n; i > 0; i--) {
        mc_nv.cudnnBackendDestroyDescriptor(g->made.at[i - 1]);
    }
    VEC_FREE(g->made);
    g->failed = false;
}

/* ---- geometry ---- */

static const int dtypes[MC_NDTYPE] = {
    [MC_FLOAT16] = CUDNN_DATA_HALF, [MC_BFLOAT16] = CUDNN_DATA_BFLOAT16, [MC_FLOAT32] = CUDNN_DATA_FLOAT,
    [MC_FLOAT64] = CUDNN_DATA_DOUBLE, };
struct shape { int rank; int64_t size[5], stride[5]; };
static const int orders[][5] = { { 0, 1, 2, 3, 4 }, { 0, 2, 3, 4, 1 } }; /* bc01, b01c: outermost first */

static int64_t axes(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return s->in[0] == 1 && s->out[0] == 1 && s->k[0] == 1 && s->pad[0] == 0 ? 2 : 3;
}

/* The dense strides of an order; false: the array has others on an axis longer than 1. */
static bool in_order(const struct mc_conv_array *a, const int *order, int64_t stride[5])
{
    int64_t step = 1;
    bool same = true;
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        same = same && (a->size[order[i]] == 1 || a->stride[order[i]] == step);
        step *= a->size[order[i]];
    }
    return same;
}

/* All three arrays in one order if possible, else each with its own strides. */
static void strides(const struct mc_conv_problem *p, int64_t to[3][5])
{
    for (size_t o = 0; o < NELEM(orders); o++) {
        bool all = true;
        for (int role = CONV_X; role <= CONV_Y; role++) {
            const struct mc_conv_array a = mc_conv_array(p, role);
            all = in_order(&a, orders[o], to[role]) && all;
        }
        if (all) {
            return;
        }
    }
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        if (in_order(&a, orders[0], to[role]) || in_order(&a, orders[1], to[role])) {
            continue;
        }
        int64_t most = 1;
        for (int i = 0; i < 5; i++) {
            most = MC_MAX(most, a.size[i] > 1 ? a.stride[i] * a.size[i] : 1);
        }
        for (int i = 0; i < 5; i++) {
            to[role][i] = a.size[i] > 1 ? a.stride[i] : most;
        }
    }
}

static struct shape shape_of(const struct mc_conv_problem *p, int role)
{
    const struct mc_conv_array a = mc_conv_array(p, role);
    const int n = (int)axes(p), skip = 3 - n;
    struct shape s = { .rank = 2 + n };
    int64_t all[3][5];
    strides(p, all);
    for (int i = 0; i < s.rank; i++) {
        const int from = i < 2 ? i : i + skip;
        s.size[i] = a.size[from];
        s.stride[i] = all[role][from];
    }
    return s;
}

/* The border behind an axis: the same as in front if that gives the same windows, else the smallest;
 * negative: the image is cropped. */
static int64_t behind(const struct mc_conv_shape *s, int i)
{
    const int64_t least = (s->out[i] - 1) * s->stride[i] + (s->k[i] - 1) * s->dilation[i] + 1 - s->in[i] -
                          s->pad[i];
    return s->pad[i] >= least && s->pad[i] < least + s->stride[i] ? s->pad[i]
           : least < 0 && least + s->stride[i] > 0                ? 0
                                                                  : least;
}

/* cuDNN's engines read filters as dense, in the order of the images, whatever their strides are. */
static bool filters_in_order(const struct mc_conv_problem *p)
{
    const struct mc_conv_array w = mc_conv_array(p, CONV_W);
    int64_t unused[5];
    bool all = true;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        all = in_order(&a, orders[1], unused) && all;
    }
    return all || in_order(&w, orders[0], unused);
}

bool mc_dnn_fused(const struct mc_conv_problem *p)
{
    return p->has_bias || p->act != ACT_NONE || (p->beta != 0 && p->residual && p->s.pass == CONV_FORWARD);
}

const char *mc_dnn_refuse(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (s->unshared || (p->wide && p->dtype != MC_FLOAT64)) {
        return s->unshared ? "has one filter for all positions"
                           : "sums in float32, and conv.precision asks for float64";
    }
    if (mc_dnn_fused(p) && (s->pass != CONV_FORWARD || p->dtype == MC_FLOAT64)) {
        return "fuses epilogues of forward passes in float32 or halves only";
    }
    if (p->beta != 0 && p->residual && !mc_dnn_fused(p)) {
        return "would copy c0 first, which apart does not";
    }
    for (int i = 0; i < 3; i++) {
        if (s->pad[i] < 0 || behind(s, i) < 0) {
            return "takes no negative pads";
        }
    }
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        for (int i = 0; i < 5; i++) {
            if (a.size[i] > 1 && a.stride[i] < 1) {
                return "takes strides above 0";
            }
        }
    }
    return filters_in_order(p) ? NULL : "takes filters as bc01, or all arrays as b01c";
}

/* ---- tensors ---- */

static void *tensor(struct mc_dnn *g, int64_t id, int type, const struct shape *s, bool is_virtual,
                    int64_t alignment)
{
    void *t = mc_dnn_new(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    mc_dnn_set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    mc_dnn_set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    mc_dnn_set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    mc_dnn_set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, s->rank, s->size);
    mc_dnn_set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, s->rank, s->stride);
    if (is_virtual) {
        mc_dnn_set(g, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    }
    mc_dnn_finish(g, t);
    return t;
}

static void *convolution(struct mc_dnn *g, const struct mc_conv_problem *p, int compute)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t n = axes(p), skip = 3 - n;
    const int mode = s->flip ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    int64_t post[3];
    for (int i = 0; i < 3; i++) {
        post[i] = behind(s, i);
    }
    void *c = mc_dnn_new(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    mc_dnn_set(g, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
    mc_dnn_set(g, c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    mc_dnn_set(g, c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    mc_dnn_set(g, c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, s->pad + skip);
    mc_dnn_set(g, c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, post + skip);
    mc_dnn_set(g, c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, s->dilation + skip);
    mc_dnn_set(g, c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, s->stride + skip);
    mc_dnn_finish(g, c);
    return c;
}

/* ---- operations ---- */

static const struct {
    int descriptor, conv, alpha, beta, role[3]; /* attributes of x, w, y */
} passes[] = {
    [CONV_FORWARD] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                       { CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y } },
    [CONV_INPUTS]  = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                       { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY } },
    [CONV_WEIGHTS] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                       { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY } },
};

static void scalar(struct mc_dnn *g, void *op, int name, bool wide, double v)
{
    const float narrow = (float)v;
    mc_dnn_set(g, op, name, wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
               wide ? (const void *)&v : &narrow);
}

/* y = mode(alpha * x, beta * b); b may be NULL. */
static void *pointwise(struct mc_dnn *g, int mode, double alpha, void *x, double beta, void *b, void *y)
{
    const int precision = CUDNN_DATA_FLOAT;
    void *what = mc_dnn_new(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    mc_dnn_set(g, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    mc_dnn_set(g, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    mc_dnn_finish(g, what);
    void *op = mc_dnn_new(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    mc_dnn_set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &what);
    mc_dnn_set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    if (b) {
        mc_dnn_set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
        scalar(g, op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, false, alpha);
        scalar(g, op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, false, beta);
    }
    mc_dnn_set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    mc_dnn_finish(g, op);
    return op;
}

static const int modes[] = {
    [ACT_RELU] = CUDNN_POINTWISE_RELU_FWD, [ACT_GELU] = CUDNN_POINTWISE_GELU_APPROX_TANH_FWD,
    [ACT_TANH] = CUDNN_POINTWISE_TANH_FWD,
    [ACT_SIGMOID] = CUDNN_POINTWISE_SIGMOID_FWD, [ACT_ELU] = CUDNN_POINTWISE_ELU_FWD,
    [ACT_GELU_ERF] = CUDNN_POINTWISE_GELU_FWD, [ACT_SWISH] = CUDNN_POINTWISE_SWISH_FWD,
};

/* Appends the epilogue in order. to[]: where each operation writes; the last one writes y. */
static int follow(struct mc_dnn *g, const struct mc_conv_problem *p, const struct shape *ys, void *from,
                  void *y, int64_t alignment, void *op[3])
{
    const bool c0 = p->beta != 0, act = p->act != ACT_NONE;
    int left = c0 + p->has_bias + act, n = 0;
    int64_t id = DNN_VIRTUAL + 1;
    double alpha = p->alpha;
    const struct shape bias = { ys->rank,
                                { 1, ys->size[1], 1, 1, 1 },
                                { ys->size[1], 1, ys->size[1], ys->size[1], ys->size[1] } };
    void *b[2] = { NULL, NULL };
    if (c0) {
        b[0] = tensor(g, DNN_C0, dtypes[p->dtype], ys, false, alignment);
    }
    if (p->has_bias) {
        b[c0] = tensor(g, DNN_BIAS, dtypes[p->dtype], &bias, false, alignment);
    }
    for (; left > 0; left--, id++) {
        const bool add = n < c0 + p->has_bias;
        void *to = left == 1 ? y : tensor(g, id, CUDNN_DATA_FLOAT, ys, true, alignment);
        const int mode = add ? CUDNN_POINTWISE_ADD : modes[p->act];
        op[n] = pointwise(g, mode, alpha, from, c0 && n == 0 ? p->beta : 1, add ? b[n] : NULL, to);
        from = to;
        alpha = 1;
        n++;
    }
    return n;
}

void *mc_dnn_graph(struct mc_dnn *g, void *handle, const struct mc_conv_problem *p, int64_t alignment)
{
    const bool wide = p->dtype == MC_FLOAT64, fused = mc_dnn_fused(p),
               adds = fused && (p->beta != 0 || p->has_bias);
    const int compute = wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    void *op[4], *array[3], *sum = NULL;
    int n = 1;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct shape s = shape_of(p, role);
        array[role] = tensor(g, DNN_X + role, dtypes[p->dtype], &s, false, alignment);
    }
    const struct shape ys = shape_of(p, CONV_Y);
    sum = fused ? tensor(g, DNN_VIRTUAL, CUDNN_DATA_FLOAT, &ys, true, alignment) : NULL;
    void *c = convolution(g, p, compute);
    op[0] = mc_dnn_new(g, passes[p->s.pass].descriptor);
    mc_dnn_set(g, op[0], passes[p->s.pass].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c);
    for (int role = CONV_X; role <= CONV_Y; role++) {
        void *a = fused && role == CONV_Y ? sum : array[role];
        mc_dnn_set(g, op[0], passes[p->s.pass].role[role], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a);
    }
    scalar(g, op[0], passes[p->s.pass].alpha, wide, adds ? 1 : p->alpha);
    scalar(g, op[0], passes[p->s.pass].beta, wide, fused ? 0 : p->beta);
    mc_dnn_finish(g, op[0]);
    if (fused) {
        n += follow(g, p, &ys, sum, array[CONV_Y], alignment, op + 1);
    }
    void *graph = mc_dnn_new(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    mc_dnn_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    mc_dnn_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, op);
    mc_dnn_finish(g, graph);
    return g->failed ? NULL : graph;
}

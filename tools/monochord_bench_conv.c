/* monochord_bench_conv.c: convolutions in three passes, planned by measuring: the suites conv and conv128;
 * narrow, which allows fewer bits; corrmm, by products of columns alone, and on a GPU of windows that are
 * gathered while they are multiplied; room, which allows less workspace; few, those of one and three
 * channels; nets, the layers that networks are made of; zoo, the convolutions and products of zoo.def, some
 * of them with --shard; layouts, those of steps of training, with channels innermost and not.
 * bench/peers/layers.py has the same table.
 *
 * Invariant: the row whose algo begins with "auto" is what a user gets with plan=measure, wisdom included;
 * with "b01c", what one gets who keeps channels innermost. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>

/* Sizes of as many axes as there are: those in front are 1. */
#define ONE(n)     { 1, 1, n }
#define TWO(n)     { 1, n, n }
#define THREE(n)   { n, n, n }
#define COUNTED(a, b, c, name, ...) name
#define AXES(...)   COUNTED(__VA_ARGS__, AXES3, AXES2, AXES1, )(__VA_ARGS__)
#define AXES1(n)    { 1, 1, n }
#define AXES2(m, n) { 1, m, n }
#define AXES3(l, m, n) { l, m, n }
#define ALONG(...)  COUNTED(__VA_ARGS__, 3, 2, 1, )
#define ZOO(class, name, c, in, f, k, stride, pad, dilation, groups)                                         \
    ZOO_OF(class, name, 1, c, in, f, k, stride, pad, dilation, groups, { 0 }, { 0 })                         \
    ZOO_OF(class, name, 16, c, in, f, k, stride, pad, dilation, groups, { 0 }, { 0 })
#define ZOO_AXES(class, name, c, in, f, k, strides, pads, dilation, groups)                                  \
    ZOO_OF(class, name, 1, c, in, f, k, 0, 0, dilation, groups, AXES strides, AXES pads)                     \
    ZOO_OF(class, name, 16, c, in, f, k, 0, 0, dilation, groups, AXES strides, AXES pads)
#define ZOO_OF(class, name, n, c, in, f, k, stride, pad, dilation, groups, ...)                              \
    { "zoo", #class " " name " b" #n, n, c, AXES in, f, AXES k, stride, pad, false, false, NULL,              \
      dilation, groups, ALONG in, false, __VA_ARGS__ },
#define PRODUCT(name, rows, c, f) PRODUCT_OF(name, 1, rows, c, f) PRODUCT_OF(name, 16, rows, c, f)
#define PRODUCT_OF(name, n, rows, c, f) DENSE("zoo", "product " name " b" #n, n * rows, c, f)
#define DENSE(suite, name, n, c, f) { suite, name, n, c, ONE(1), f, ONE(1), 1, 0, .product = true },
static const struct layer {
    const char *suite, *name;
    int n, c;
    int64_t in[3];
    int f;
    int64_t k[3];
    int stride, pad;
    bool wide;             /* float64 */
    bool twin;             /* timed in turns with the row in front */
    const char *workspace; /* a cap, which its suite gives it; NULL: as the flag says */
    int dilation, groups;  /* 0: 1 */
    int axes;              /* 0: as many as the sizes tell */
    bool product;          /* n rows, no axes */
    int64_t strides[3], pads[3]; /* of each axis, where `stride` is 0 */
} layers[] = {
    /* those of the benchmark that compared convolutions in 2014 */
    { "conv",    "L1 b16",             16,  3,   TWO(128),   96,  TWO(11), 1, 0 },
    { "conv",    "L2 b16",             16,  64,  TWO(64),    128, TWO(9),  1, 0 },
    { "conv",    "L3 b16",             16,  128, TWO(32),    128, TWO(9),  1, 0 },
    { "conv",    "L4 b16",             16,  128, TWO(16),    128, TWO(7),  1, 0 },
    { "conv",    "L5 b16",             16,  384, TWO(13),    384, TWO(3),  1, 0 },
    { "conv128", "L1 b128",            128, 3,   TWO(128),   96,  TWO(11), 1, 0 },
    { "conv128", "L2 b128",            128, 64,  TWO(64),    128, TWO(9),  1, 0 },
    { "conv128", "L3 b128",            128, 128, TWO(32),    128, TWO(9),  1, 0 },
    { "conv128", "L4 b128",            128, 128, TWO(16),    128, TWO(7),  1, 0 },
    { "conv128", "L5 b128",            128, 384, TWO(13),    384, TWO(3),  1, 0 },
    /* few channels, whose gradients leave little to share */
    { "few",     "LeNet 1 b500",       500, 1,   TWO(28),    32,  TWO(5),  1, 0 },
    { "few",     "VGG 1.1 b4",         4,   3,   TWO(224),   64,  TWO(3),  1, 1 },
    { "few",     "ResNet 7x7 b4",      4,   3,   TWO(224),   64,  TWO(7),  2, 3 },
    { "few",     "L1 b16",             16,  3,   TWO(128),   96,  TWO(11), 1, 0 },
    /* the same sums with small filters and with large ones */
    { "nets",    "pair 5x5 b32",       32,  64,  TWO(32),    128, TWO(5),  1, 0 },
    { "nets",    "pair 28x28 b32",     32,  64,  TWO(32),    128, TWO(28), 1, 0, .twin = true },
    { "nets",    "LeNet 1 b500",       500, 1,   TWO(28),    32,  TWO(5),  1, 0 },
    { "nets",    "LeNet 2 b500",       500, 32,  TWO(12),    64,  TWO(5),  1, 0 },
    { "nets",    "VGG 1.1 b4",         4,   3,   TWO(224),   64,  TWO(3),  1, 1 },
    { "nets",    "VGG 2.2 b4",         4,   128, TWO(112),   128, TWO(3),  1, 1 },
    { "nets",    "VGG 3.2 b4",         4,   256, TWO(56),    256, TWO(3),  1, 1 },
    { "nets",    "VGG 5.1 b4",         4,   512, TWO(14),    512, TWO(3),  1, 1 },
    { "nets",    "VGG 5.1 b1",         1,   512, TWO(14),    512, TWO(3),  1, 1 },
    { "nets",    "ResNet 7x7 b4",      4,   3,   TWO(224),   64,  TWO(7),  2, 3 },
    { "nets",    "ResNet 7x7 b1",      1,   3,   TWO(224),   64,  TWO(7),  2, 3 },
    { "nets",    "ResNet 1x1 56 b4",   4,   256, TWO(56),    64,  TWO(1),  1, 0 },
    { "nets",    "ResNet 3x3 56 b4",   4,   64,  TWO(56),    64,  TWO(3),  1, 1 },
    { "nets",    "ResNet 3x3 56 b1",   1,   64,  TWO(56),    64,  TWO(3),  1, 1 },
    { "nets",    "ResNet 3x3 s2 b4",   4,   128, TWO(56),    128, TWO(3),  2, 1 },
    { "nets",    "ResNet 1x1 14 b4",   4,   1024, TWO(14),   256, TWO(1),  1, 0 },
    { "nets",    "ResNet 3x3 7 b4",    4,   512, TWO(7),     512, TWO(3),  1, 1 },
    { "nets",    "one axis b8",        8,   64,  ONE(4096),  64,  ONE(9),  1, 0 },
    { "nets",    "one axis s2 b8",     8,   64,  ONE(4096),  64,  ONE(9),  2, 4 },
    { "nets",    "three axes b2",      2,   16,  THREE(32),  32,  THREE(3), 1, 1 },
    { "nets",    "three axes 64 b2",   2,   64,  THREE(16),  64,  THREE(3), 1, 1 },
    { "nets",    "double L5 b8",       8,   384, TWO(13),    384, TWO(3),  1, 0, .wide = true },
    { "nets",    "double 5x5 b8",      8,   64,  TWO(32),    128, TWO(5),  1, 0, .wide = true },
    { "nets",    "double three axes b2", 2, 64,  THREE(16),  64,  THREE(3), 1, 1, .wide = true },
#include "zoo.def"
    /* the rate of products: on a processor, on a GPU */
    DENSE("rate here", "rate product", 2048, 2048, 2048)
    DENSE("rate there", "rate product", 8192, 8192, 8192)
    /* of steps of training */
    { "layouts", "AlexNet 1",       128, 3,    TWO(224),  64,   TWO(11),  4, 2 },
    { "layouts", "AlexNet 2",       128, 64,   TWO(27),   192,  TWO(5),   1, 2 },
    { "layouts", "AlexNet 3",       128, 192,  TWO(13),   384,  TWO(3),   1, 1 },
    { "layouts", "AlexNet 4",       128, 384,  TWO(13),   256,  TWO(3),   1, 1 },
    { "layouts", "AlexNet 5",       128, 256,  TWO(13),   256,  TWO(3),   1, 1 },
    { "layouts", "VGG-A 1",         64,  3,    TWO(224),  64,   TWO(3),   1, 1 },
    { "layouts", "VGG-A 2",         64,  64,   TWO(112),  128,  TWO(3),   1, 1 },
    { "layouts", "VGG-A 3",         64,  128,  TWO(56),   256,  TWO(3),   1, 1 },
    { "layouts", "VGG-A 4",         64,  256,  TWO(56),   256,  TWO(3),   1, 1 },
    { "layouts", "VGG-A 5",         64,  256,  TWO(28),   512,  TWO(3),   1, 1 },
    { "layouts", "VGG-A 6",         64,  512,  TWO(28),   512,  TWO(3),   1, 1 },
    { "layouts", "VGG-A 7",         64,  512,  TWO(14),   512,  TWO(3),   1, 1 },
    { "layouts", "ResNet 1x1 in",   32,  256,  TWO(56),   64,   TWO(1),   1, 0 },
    { "layouts", "ResNet 3x3",      32,  64,   TWO(56),   64,   TWO(3),   1, 1 },
    { "layouts", "ResNet 1x1 out",  32,  64,   TWO(56),   256,  TWO(1),   1, 0 },
    { "layouts", "ResNet 1x1 in 14", 32,  1024, TWO(14),   256,  TWO(1),   1, 0 },
    { "layouts", "ResNet 3x3 14",   32,  256,  TWO(14),   256,  TWO(3),   1, 1 },
    { "layouts", "ResNet 1x1 out 14", 32,  256,  TWO(14),   1024, TWO(1),   1, 0 },
};
static const struct pass {
    const char *name, *inputs, *call;
    int result;
    const char *dense;
} passes[] = {
    { "fwd",     "x, w", "conv(x, w",         2, "dot(x, w.T)" },
    { "inputs",  "w, y", "conv_inputs(w, y",  0, "dot(y, w)" },
    { "weights", "x, y", "conv_weights(x, y", 1, "dot(y.T, x)" },
};
enum { FLOAT32 = 1, TF32 = 2, BFLOAT16 = 4, EVERY_MODE = 7 }; /* sets of rows of modes[] */
static const struct mode { const char *name, *precision; mc_dtype dtype; } modes[] = {
    { "float32",  "as_input_f32", MC_FLOAT32  },
    { "tf32",     "tf32",         MC_FLOAT32  },
    { "bfloat16", "as_input_f32", MC_BFLOAT16 },
};
static const struct mode float64 = { "float64", "as_input_f32", MC_FLOAT64 };
static const struct suite {
    const char *name, *layers[2];
    unsigned modes, only_there; /* sets; only_there: on a GPU alone */
    bool last;                  /* with channels innermost, too: on a GPU, or where there is a `here` */
    double seconds;
    const char *solvers[2], *there; /* there: on a GPU, beside the first */
    bool both;                  /* both layouts on a processor, too */
    int here;                   /* so many images on a processor; 0: as many as there */
    /* each layer once more within so much workspace, in turns with itself; NULL: as the flag says */
    const char *room;
} suites[] = {
    { "conv",    { "conv" },            FLOAT32,             0,                      true,  0.5, { "auto", "onednn" } },
    { "conv128", { "conv128" },         FLOAT32,             0,                      true,  0.3, { "auto" } },
    { "narrow",  { "conv128" },         EVERY_MODE,          0,                      true,  0.3, { "auto" } },
    { "corrmm",  { "conv128" },         FLOAT32,             0,                      false, 0.1, { "im2col" }, "split" },
    { "room",    { "conv", "conv128" }, FLOAT32,             0,                      false, 1.0, { "auto" }, .room = "64M" },
    { "few",     { "few" },             FLOAT32,             0,                      false, 0.3, { "auto" } },
    { "nets",    { "nets" },            FLOAT32,             0,                      true,  0.1, { "auto" } },
    { "zoo",     { "zoo" },             FLOAT32 | BFLOAT16,  BFLOAT16,               true,  0.05, { "auto" }, .both = true },
    { "layouts", { "layouts" },         EVERY_MODE,          EVERY_MODE & ~FLOAT32,  true,  0.1, { "auto" }, .here = 16 },
};

/* Spatial axes: in[] has a 1 for those that are not there. */
static int axes(const struct layer *l)
{
    return l->product ? 0 : l->axes ? l->axes : l->in[0] > 1 ? 3 : l->in[1] > 1 ? 2 : 1;
}

static int64_t stride(const struct layer *l, int axis)
{
    return l->stride ? l->stride : l->strides[axis];
}

/* Along axes with more than one tap. */
static int64_t pad(const struct layer *l, int axis)
{
    return l->k[axis] == 1 ? 0 : l->stride ? l->pad : l->pads[axis];
}

static int dilation(const struct layer *l)
{
    return l->dilation ? l->dilation : 1;
}

static int groups(const struct layer *l)
{
    return l->groups ? l->groups : 1;
}

static int64_t out(const struct layer *l, int axis)
{
    const int64_t extent = (l->k[axis] - 1) * dilation(l) + 1;
    return axis < 3 - axes(l) ? 1 : (l->in[axis] + 2 * pad(l, axis) - extent) / stride(l, axis) + 1;
}

/* Sizes of x, w and y: first axis, second, and three others. */
static void sizes(const struct layer *l, int64_t dims[3][5])
{
    memcpy(dims[0], (int64_t[]){ l->n, l->c, l->in[0], l->in[1], l->in[2] }, sizeof dims[0]);
    memcpy(dims[1], (int64_t[]){ l->f, l->c / groups(l), l->k[0], l->k[1], l->k[2] }, sizeof dims[1]);
    memcpy(dims[2], (int64_t[]){ l->n, l->f, out(l, 0), out(l, 1), out(l, 2) }, sizeof dims[2]);
}

/* "[32, 32]", of the axes that are there. */
static const char *list(const struct layer *l, const int64_t value[3], char to[64])
{
    size_t used = (size_t)snprintf(to, 64, "[");
    for (int i = 3 - axes(l); i < 3; i++) {
        used += (size_t)snprintf(to + used, 64 - used, "%lld%s", (long long)value[i], i < 2 ? ", " : "]");
    }
    return to;
}

/* "borrow(conv_inputs(w, y, [32, 32], ...))" */
static void formula(const struct layer *l, const struct pass *p, bool last, char *to, size_t room)
{
    static const char *const layouts[] = { "", ", layout='b0c'", ", layout='b01c'", ", layout='b012c'" };
    const int64_t pads[] = { pad(l, 0), pad(l, 1), pad(l, 2) };
    const int64_t strides[] = { stride(l, 0), stride(l, 1), stride(l, 2) };
    char size[64], step[64], border[64];
    if (l->product) {
        snprintf(to, room, "borrow(%s)", p->dense);
        return;
    }
    snprintf(to, room, "borrow(%s%s%s, flip=False, stride=%s, border=%s, dilation=%d, groups=%d%s))", p->call,
             p->result == 2 ? "" : ", ", p->result == 2 ? "" : list(l, p->result == 0 ? l->in : l->k, size),
             list(l, strides, step), list(l, pads, border), dilation(l), groups(l),
             layouts[last ? axes(l) : 0]);
}

/* (first, second, others) to (first, others, second). */
static void turn(const float *from, float *to, const int64_t dims[5])
{
    const int64_t others = dims[2] * dims[3] * dims[4];
    for (int64_t n = 0; n < dims[0]; n++) {
        for (int64_t c = 0; c < dims[1]; c++) {
            for (int64_t u = 0; u < others; u++) {
                to[(n * others + u) * dims[1] + c] = from[(n * dims[1] + c) * others + u];
            }
        }
    }
}

/* The sizes of an array of so many axes, as a function of that layout has it. */
static void own_sizes(const int64_t dims[5], int n, bool last, int64_t own[5])
{
    own[0] = dims[0];
    own[last ? 1 + n : 1] = dims[1];
    memcpy(own + (last ? 1 : 2), dims + 5 - n, (size_t)n * sizeof *own);
}

/* Random numbers of [-1, 1) in a dtype and layout, and the same as floats with the second axis second. */
static mc_array *numbers(const struct mode *m, int n, const int64_t dims[5], bool last, uint64_t *state,
                         mc_array **plain)
{
    int64_t own[5];
    own_sizes(dims, n, false, own);
    mc_array *a = must(mc_array_new(MC_FLOAT32, 2 + n, own));
    float *to = mc_array_data(a);
    for (int64_t k = mc_array_size(a); k-- > 0;) {
        to[k] = (float)(2 * random_next(state) - 1);
    }
    mc_array *rounded = must(mc_array_cast(a, m->dtype));
    mc_array_unref(&a);
    *plain = must(mc_array_cast(rounded, MC_FLOAT32));
    if (last) {
        own_sizes(dims, n, true, own);
        a = must(mc_array_new(MC_FLOAT32, 2 + n, own));
        turn(mc_array_data(*plain), mc_array_data(a), dims);
        mc_array_unref(&rounded);
        rounded = must(mc_array_cast(a, m->dtype));
        mc_array_unref(&a);
    }
    return rounded;
}

/* A layer's pass, compiled and planned, ready to be timed. */
struct timed {
    const struct layer *l;
    const struct pass *p;
    bool last;
    mc_array *array[3], *plain[3]; /* operands as x, w, y; with the second axis second */
    struct bench_function b;
    char algo[48];
};

static void set_flags(const struct layer *l, const struct pass *p, const struct mode *m, const char *solver,
                      const char *plan)
{
    static const char *const flags[] = { "conv.algo_bwd_data", "conv.algo_bwd_filter", "conv.algo_fwd" };
    if (l->workspace) {
        mc_flag_set("workspace", l->workspace);
    }
    mc_flag_set(flags[p->result], solver);
    mc_flag_set("plan", plan);
    mc_flag_set("conv.precision", m->precision);
}

/* Its graph and its operands, as that layout has them. */
static void take_operands(struct timed *t, const struct mode *m)
{
    static const char *const names[] = { "x", "w", "y" };
    const struct layer *l = t->l;
    int64_t dims[3][5];
    uint64_t state = 1;
    t->b = (struct bench_function){ .g = must(mc_graph_new()), .nin = 2, .nout = 1 };
    sizes(l, dims);
    for (int i = 0; i < 3; i++) {
        int64_t own[5];
        own_sizes(dims[i], axes(l), t->last, own);
        if (i != t->p->result) {
            t->array[i] = numbers(m, axes(l), dims[i], t->last, &state, &t->plain[i]);
        }
        mc_input_sized(t->b.g, names[i], m->dtype, 2 + axes(l), own);
    }
    t->b.in[0] = must(bench_place(mc_array_ref(t->array[t->p->result == 0])));
    t->b.in[1] = must(bench_place(mc_array_ref(t->array[t->p->result == 2 ? 1 : 2])));
}

/* The first call plans.  What it then asks of the flags is theirs as they were. */
static bool begin(struct timed *t, const struct layer *l, const struct pass *p, const struct mode *m,
                  bool last, const char *solver)
{
    struct text stays = { 0 };
    char output[240], *room = must(strdup(mc_flag_get("workspace")));
    const bool chosen = strcmp(solver, "auto") == 0;
    *t = (struct timed){ .l = l, .p = p, .last = last };
    take_operands(t, m);
    formula(l, p, last, output, sizeof output);
    bench_stay(&stays, output);
    set_flags(l, p, m, solver, "measure");
    t->b.f = mc_compile(t->b.g, &(mc_spec){ .name = "conv", .inputs = p->inputs, .outputs = stays.s });
    const bool good = t->b.f && bench_call(&t->b);
    if (good) {
        snprintf(t->algo, sizeof t->algo, "%s%s%s", last ? "b01c" : solver, chosen ? ":" : "",
                 chosen ? mc_function_step(t->b.f, mc_function_nsteps(t->b.f) - 1).solver : "");
    }
    text_free(&stays);
    set_flags(l, p, &modes[0], "auto", "estimate");
    mc_flag_set("workspace", room);
    free(room);
    return good;
}

static double error_of(const struct timed *t)
{
    const struct layer *l = t->l;
    struct bench_sums sums = {
        .axes = axes(l), .stride = { stride(l, 0), stride(l, 1), stride(l, 2) },
        .dilation = dilation(l), .groups = groups(l), .pad = { pad(l, 0), pad(l, 1), pad(l, 2) },
        .result = t->p->result, .last = t->last
    };
    mc_array *home = must(mc_array_to(t->b.out[0], "cpu")), *wide = must(mc_array_cast(home, MC_FLOAT32));
    sizes(l, sums.dims);
    for (int i = 0; i < 3; i++) {
        sums.operand[i] = t->plain[i] ? mc_array_data(t->plain[i]) : NULL;
    }
    const double error = bench_sums_error(&sums, mc_array_data(wide));
    mc_array_unref(&home);
    mc_array_unref(&wide);
    return error;
}

static void report(const struct suite *suite, const struct timed *t, const struct mode *m, struct timing time)
{
    const struct layer *l = t->l;
    struct result r = { suite->name, l->name, t->p->name, m->name, t->algo, time };
    r.flops = 2. * l->n * l->f * (l->c / groups(l)) *
              (double)(l->k[0] * l->k[1] * l->k[2] * out(l, 0) * out(l, 1) * out(l, 2));
    int64_t dims[3][5];
    sizes(l, dims);
    for (int i = 0; i < 3; i++) {
        const int64_t n = dims[i][0] * dims[i][1] * dims[i][2] * dims[i][3] * dims[i][4];
        r.bytes += (double)mc_dtype_size(m->dtype) * (double)n;
    }
    r.error = error_of(t);
    bench_report(&r);
}

static void end(struct timed *t)
{
    for (int i = 0; i < 3; i++) {
        mc_array_unref(&t->array[i]);
        mc_array_unref(&t->plain[i]);
    }
    bench_free(&t->b);
}

/* Twins in turns; false: not all of them could be. */
static bool measure(const struct suite *suite, int n, const struct layer *twin, const struct pass *p,
                    const struct mode *m, bool last, const char *solver)
{
    struct timed t[MOST_TURNS];
    struct timing time[MOST_TURNS];
    void *function[MOST_TURNS];
    int begun = 0;
    bool good = true;
    while (begun < n && good) {
        good = begin(&t[begun], &twin[begun], p, m, last, solver);
        function[begun] = &t[begun].b;
        begun++;
    }
    good = good && time_turns(bench_call, n, function, suite->seconds, time);
    for (int i = 0; i < begun; i++) {
        if (good) {
            report(suite, &t[i], m, time[i]);
        }
        end(&t[i]);
    }
    return good;
}

static bool is_rate(const struct layer *l)
{
    return strncmp(l->suite, "rate", 4) == 0;
}

/* The rows of n twins in a suite, as many as are asked for: with its images, and within its room. */
struct rows {
    struct layer row[MOST_TURNS];
    char name[MOST_TURNS][48];
    int n;
};

static void add_row(struct rows *r, const struct layer *l, const struct suite *s, const char *room,
                    const struct pass *p, const struct mode *m)
{
    char wanted[64];
    snprintf(r->name[r->n], sizeof r->name[r->n], "%s%s%s", l->name, room ? " in " : "", room ? room : "");
    snprintf(wanted, sizeof wanted, "%s %s", r->name[r->n], p->name);
    if (is_rate(l) || bench_wanted(wanted, m->name)) {
        r->row[r->n] = *l;
        r->row[r->n].name = r->name[r->n];
        r->row[r->n].n = bench_far() || !s->here ? l->n : s->here;
        r->row[r->n++].workspace = room;
    }
}

/* One row for each twin by each of a suite's modes, layouts and solvers; false: the planner's own choice
 * failed. */
static bool measure_all(const struct suite *s, int n, const struct layer *l, const struct pass *p)
{
    bool good = true;
    int solvers = bench_far() ? 1 + (s->there != NULL) : COUNT(s->solvers);
    const bool turned = axes(l) > 0 && (bench_far() || s->here || (s->both && axes(l) > 1));
    const int layouts = turned && s->last ? 2 : 1;
    unsigned asked = bench_far() ? s->modes : s->modes & ~s->only_there;
    for (int i = 0; i < COUNT(modes) * layouts * solvers; i++) {
        const char *solver = bench_far() && i % solvers ? s->there : s->solvers[i % solvers];
        const int mode = i / solvers / layouts, count = asked >> mode & 1 ? n : 0;
        const struct mode *m = l->wide ? &float64 : &modes[mode];
        struct rows r = { .n = 0 };
        for (int j = 0; j < count; j++) {
            add_row(&r, &l[j], s, NULL, p, m);
        }
        for (int j = 0; j < count && s->room; j++) {
            add_row(&r, &l[j], s, s->room, p, m);
        }
        if (solver && r.n && !measure(s, r.n, r.row, p, m, i / solvers % layouts, solver) &&
            i % solvers == 0) {
            good = bench_fail(l->name);
        }
    }
    return good;
}

static int twins(const struct layer *l)
{
    int n = 1;
    while (l + n < layers + COUNT(layers) && l[n].twin) {
        n++;
    }
    return n;
}

static bool serves(const struct suite *s, const struct layer *l, const struct pass *p)
{
    if (is_rate(l)) {
        return strcmp(s->name, "zoo") == 0 && p == passes &&
               strcmp(l->suite, bench_far() ? "rate there" : "rate here") == 0;
    }
    return (strcmp(l->suite, s->layers[0]) == 0 || (s->layers[1] && strcmp(l->suite, s->layers[1]) == 0)) &&
           (strcmp(l->suite, "zoo") != 0 || bench_in_shard(l->name));
}

bool bench_conv(const char *suite)
{
    bool good = true;
    const struct suite *s = suites;
    while (strcmp(s->name, suite) != 0) {
        s++;
    }
    for (const struct layer *l = layers; l < layers + COUNT(layers); l += twins(l)) {
        for (int i = 0; i < COUNT(passes); i++) {
            good = (!serves(s, l, &passes[i]) || measure_all(s, twins(l), l, &passes[i])) && good;
        }
    }
    return good;
}

/* random.c: counter-based random numbers. A stream is a shared uint64[2] = { seed, step }. Each draw in a
 * graph has a stream number of its own, and each call of a function increments step.
 *
 * Invariant: element i (in C order) of a draw is a pure function of (seed, step, stream, i), the same on
 * every device and for every number of threads. The function is Philox4x32-10:
 *
 *     key      64 bits: mix(seed + (stream + 1) * 0x9e3779b97f4a7c15), the low half is key[0]
 *              mix(z): z ^= z >> 30, z *= 0xbf58476d1ce4e5b9, z ^= z >> 27, z *= 0x94d049bb133111eb,
 *                      z ^= z >> 31
 *     counter  { block, block >> 32, step, step >> 32 }, each 32 bits
 *     words    four of 32 bits in a block; an element of float64 takes two, all others one:
 *              float64   block = i / 2; v = word[2 (i % 2) + 1] << 32 | word[2 (i % 2)]; (v >> 11) * 2^-53
 *              float32   block = i / 4; (word[i % 4] >> 8) * 2^-24
 *              float16   (word >> 21) * 2^-11
 *              bfloat16  (word >> 24) * 2^-8
 *
 * All of these are exact, so uniforms and integers have the same bits everywhere. Normals are formulas
 * over them and agree up to rounding. */
#include "op/op.h"
#include "op/special.h"

/* ---- Philox: "Parallel random numbers: as easy as 1, 2, 3", 2011 ---- */

void mc_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1], c[4];
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * c[0], b = UINT64_C(0xcd9e8d57) * c[2];
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[3] = (uint32_t)a;
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
    memcpy(out, c, sizeof c);
}

uint64_t mc_random_mix(uint64_t seed, uint64_t stream)
{
    uint64_t z = seed + (stream + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The word of one element, as kernels compute it; pair: the 64 bits of an element that takes two words. */
uint64_t mc_random_word(uint64_t i, uint64_t key, uint64_t step, int pair)
{
    uint64_t k = pair ? i / 2 : i / 4;
    uint32_t word[4];
    mc_philox((uint32_t[]){ (uint32_t)key, (uint32_t)(key >> 32) },
              (uint32_t[]){ (uint32_t)k, (uint32_t)(k >> 32), (uint32_t)step, (uint32_t)(step >> 32) }, word);
    return pair ? (uint64_t)word[2 * (i % 2) + 1] << 32 | word[2 * (i % 2)] : word[i % 4];
}

/* ---- random_uniform: the draw that all other distributions are formulas over ---- */

static mc_status uniform_infer(struct mc_infer *q)
{
    const struct mc_type *rng = &q->in[0];
    mc_dtype d = q->attr[1].none ? mc_dtype_floatX() : (mc_dtype)mc_attr_int(&q->attr[1]);
    if (rng->dtype != MC_UINT64 || rng->rank != 1 || (rng->dims[0] >= 0 && rng->dims[0] != 2)) {
        return mc_fail(MC_ETYPE, "a random stream must be two uint64: the seed and the step");
    }
    if (!mc_is_float(d)) {
        return mc_fail(MC_ETYPE, "the dtype of uniform numbers must be a float, not %s", mc_dtype_name(d));
    }
    return mc_shape_wanted(q, 1, d, &q->out[0]);
}

static mc_node *uniform_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_shape_entry_node(n->in[1], axis);
}

static const struct { int shift; double unit; } rows[MC_NDTYPE] = {
    [MC_FLOAT32] = { 8, 0x1p-24 }, [MC_FLOAT16] = { 21, 0x1p-11 }, [MC_BFLOAT16] = { 24, 0x1p-8 },
};

/* Converts one block: 2 elements of float64, 4 of the others. */
static int block(mc_dtype d, const uint32_t word[4], double *u)
{
    if (d == MC_FLOAT64) {
        for (int i = 0; i < 2; i++) {
            u[i] = (double)(((uint64_t)word[2 * i + 1] << 32 | word[2 * i]) >> 11) * 0x1p-53;
        }
        return 2;
    }
    for (int i = 0; i < 4; i++) {
        u[i] = (double)(word[i] >> rows[d].shift) * rows[d].unit;
    }
    return 4;
}

static mc_status uniform_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_array *y = out[0];
    size_t size = mc_dtypes[y->dtype].size;
    uint64_t seed = (uint64_t)mc_load_i64(MC_UINT64, in[0]->data);
    uint64_t step = (uint64_t)mc_load_i64(MC_UINT64, in[0]->data + in[0]->strides[0]);
    uint64_t key = mc_random_mix(seed, (uint64_t)mc_attr_int(&n->attr[0]));
    int64_t count = mc_array_size(y), at = 0;
    for (uint64_t k = 0; at < count; k++) {
        uint32_t word[4];
        double u[4];
        bool whole = y->dtype == MC_FLOAT32 && at + 4 <= count;
        mc_philox((uint32_t[]){ (uint32_t)key, (uint32_t)(key >> 32) },
                  (uint32_t[]){ (uint32_t)k, (uint32_t)(k >> 32), (uint32_t)step, (uint32_t)(step >> 32) },
                  word);
        for (int i = 0; i < 4 && whole; i++) { /* fast path for a whole block */
            ((float *)(void *)y->data)[at++] = (float)(word[i] >> rows[MC_FLOAT32].shift) *
                                               (float)rows[MC_FLOAT32].unit;
        }
        if (whole) {
            continue;
        }
        int m = (int)MC_MIN(count - at, (int64_t)block(y->dtype, word, u));
        mc_convert(y->dtype, y->data + (size_t)at * size, (int64_t)size, MC_FLOAT64, u, sizeof *u, m);
        at += m;
    }
    return MC_OK;
}

/* ---- stream numbers ---- */

/* The first of n stream numbers that no other draw from this shared variable has, unless the user gave
 * one. */
static mc_status next_stream(const mc_node *rng, const struct mc_attr *given, int n, int64_t *stream)
{
    struct mc_shared *s = rng->shared;
    *stream = mc_attr_int(given);
    if (!given->none && *stream >= 0) {
        return MC_OK;
    }
    if (!s) {
        return mc_fail(
            MC_EARG,
            "the random stream is not a shared variable; give the draw a number of its own by stream=");
    }
    pthread_mutex_lock(&s->lock);
    *stream = s->random;
    s->random += n;
    pthread_mutex_unlock(&s->lock);
    return MC_OK;
}

static mc_node *draw(mc_node *rng, mc_node *shape, int64_t stream, mc_dtype d)
{
    int64_t dtype = (int64_t)d;
    struct mc_attr a[2] = { { .kind = ATTR_INT, .n = 1, .ints = &stream },
                            { .kind = ATTR_DTYPE, .n = 1, .ints = &dtype } };
    mc_node *in[2] = { rng, shape };
    return mc_node_make(rng->graph, mc_op_named(rng->graph, "random_uniform"), 2, in, a);
}

/* Half types are too coarse: formulas draw in float32 and round at the end. */
static mc_dtype work_dtype(mc_dtype d)
{
    return d == MC_FLOAT64 ? d : MC_FLOAT32;
}

static mc_dtype wanted_dtype(const struct mc_attr *a)
{
    return a->none ? mc_dtype_floatX() : (mc_dtype)mc_attr_int(a);
}

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

static mc_node *or_number(mc_graph *g, mc_node *x, mc_dtype d, double v)
{
    return x ? mc_cast_to(x, d) : mc_node_number(g, d, v);
}

/* ---- the distributions: formulas over random_uniform with the given shape and stream ---- */

static mc_node *build_random_uniform(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    (void)nin;
    return next_stream(in[0], &attr[0], 1, &stream) < 0 ? failed(g)
                                                        : draw(in[0], in[1], stream, wanted_dtype(&attr[1]));
}

/* What the formulas of rows start from: n draws of streams of their own, in the dtype of the computation. */
static mc_node *build_units(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    mc_node *u[2];
    const int n = (int)mc_attr_int(&attr[2]);
    const mc_dtype d = attr[0].none ? mc_dtype_floatX() : (mc_dtype)mc_attr_int(&attr[0]);
    (void)nin;
    if (next_stream(in[0], &attr[1], n, &stream) < 0) {
        return failed(g);
    }
    for (int i = 0; i < n; i++) {
        u[i] = draw(in[0], in[1], stream + i, mc_is_float(d) ? work_dtype(d) : MC_FLOAT64);
        if (mc_is_error(u[i])) {
            return u[i];
        }
    }
    return n == 1 ? u[0] : mc_node_make(g, &mc_op_tuple, n, u, NULL);
}

/* low + u (high - low), in [low, high). */
static mc_node *build_uniform(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    mc_dtype d = wanted_dtype(&attr[0]), w = work_dtype(d);
    mc_node *low = nin > 2 ? in[2] : NULL, *high = nin > 3 ? in[3] : NULL;
    if (next_stream(in[0], &attr[1], 1, &stream) < 0) {
        return failed(g);
    }
    if (!mc_is_float(d) || (!low && !high)) {
        return draw(in[0], in[1], stream, d);
    }
    struct mc_bind b[] = { { "u", draw(in[0], in[1], stream, w), NULL },
                           { "low", or_number(g, low, w, 0), NULL },
                           { "high", or_number(g, high, w, 1), NULL } };
    return mc_cast_to(mc_expr(g, "low + u * (high - low)", b, 3), d);
}

/* Box-Muller: one number from two uniforms of two streams.  1 - u is exact and never 0. */
static mc_node *build_normal(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    mc_dtype d = wanted_dtype(&attr[0]), w = work_dtype(d);
    mc_node *avg = nin > 2 ? in[2] : NULL, *std = nin > 3 ? in[3] : NULL;
    if (!mc_is_float(d)) {
        return mc_node_fail(g, MC_ETYPE, "normal: the dtype must be a float, not %s", mc_dtype_name(d));
    }
    if (next_stream(in[0], &attr[1], 2, &stream) < 0) {
        return failed(g);
    }
    struct mc_bind b[] = { { "u", draw(in[0], in[1], stream, w), NULL },
                           { "v", draw(in[0], in[1], stream + 1, w), NULL },
                           { "avg", or_number(g, avg, w, 0), NULL },
                           { "std", or_number(g, std, w, 1), NULL },
                           { "n", NULL, NULL } };
    b[4].node = mc_expr(g, "rayleigh(u) * cos_turn(v)", b, 2);
    return mc_cast_to(!avg && !std ? b[4].node : mc_expr(g, "avg + std * n", b, 5), d);
}

/* One where u < p. */
static mc_node *build_bernoulli(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    mc_node *p = in[1], *shape = nin > 2 && in[2] ? in[2] : mc_shape_of(p);
    mc_dtype w = work_dtype(p->weak || !mc_is_float(p->type.dtype) ? mc_dtype_floatX() : p->type.dtype);
    if (next_stream(in[0], &attr[1], 1, &stream) < 0) {
        return failed(g);
    }
    mc_node *pair[2] = { draw(in[0], shape, stream, w), mc_cast_to(p, w) };
    return mc_cast_to(mc_call_op(g, "lt", 2, pair, NULL), wanted_dtype(&attr[0]));
}

/* Without n, or with n = 1, bernoulli. */
static mc_node *build_binomial(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *n = nin > 3 ? in[3] : NULL;
    double one;
    if (!n || (mc_const_number(n, &one) && one >= 1 && one <= 1)) {
        return build_bernoulli(g, MC_MIN(nin, 3), in, attr);
    }
    struct mc_bind b[] = { { "rng", in[0], NULL },
                           { "p", in[1], NULL },
                           { "shape", nin > 2 && in[2] ? in[2] : mc_shape_of(in[1]), NULL },
                           { "n", n, NULL },
                           { "stream", NULL, &attr[1] } };
    mc_node *y = mc_expr(g,
                         "binomial_quantile(units(rng, shape, dtype=float64, stream=stream), cast(n, "
                         "float64), cast(p, float64))",
                         b, NELEM(b));
    return mc_is_error(y) ? y : mc_cast_to(y, wanted_dtype(&attr[0]));
}

/* u, scaled by the sum of the row, falls between two cumulative sums; p need not add up to one. */
static mc_node *build_multinomial(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    mc_node *p = in[1], *size[MC_MAX_RANK];
    int r = p->type.rank;
    const int64_t n = mc_attr_int(&attr[2]);
    mc_dtype d = attr[0].none ? MC_INT64 : (mc_dtype)mc_attr_int(&attr[0]);
    (void)nin;
    if (r < 1 || !mc_is_float(p->type.dtype)) {
        return mc_node_fail(g, MC_ETYPE, "multinomial: the probabilities must be rows of floats");
    }
    if (next_stream(in[0], &attr[1], 1, &stream) < 0) {
        return failed(g);
    }
    p = mc_cast_to(p, work_dtype(p->type.dtype));
    for (int i = 0; i < r; i++) {
        size[i] = i < r - 1 ? mc_size_of(p, i) : mc_node_int(g, n);
    }
    if (n < 0) {
        return mc_node_fail(g, MC_EARG, "multinomial: n is not negative");
    }
    struct mc_bind b[] = { { "u", draw(in[0], mc_shape_stack(g, r, size), stream, p->type.dtype), NULL },
                           { "c", mc_call_op(g, "cumsum", 1, &p, "axis=%d", r - 1), NULL } };
    return mc_cast_to(
        mc_expr(g,
                n == 1 ? "eq(arange(size(c, -1)), sum(c <= u * max(c, axis=-1, keepdims=True), axis=-1, "
                         "keepdims=True))"
                       : "v = expand_dims(c, -2); w = expand_dims(u * max(c, axis=-1, keepdims=True), -1); "
                         "sum(eq(arange(size(c, -1)), sum(v <= w, axis=-1, keepdims=True)), axis=-2)",
                b, 2),
        d);
}

static mc_node *build_poisson(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_bind b[] = { { "rng", in[0], NULL },
                           { "lam", in[1], NULL },
                           { "shape", nin > 2 && in[2] ? in[2] : mc_shape_of(in[1]), NULL },
                           { "stream", NULL, &attr[1] } };
    mc_node *y = mc_expr(
        g, "poisson_quantile(units(rng, shape, dtype=float64, stream=stream), cast(lam, float64))", b,
        NELEM(b));
    return mc_is_error(y) ? y : mc_cast_to(y, attr[0].none ? MC_INT64 : (mc_dtype)mc_attr_int(&attr[0]));
}

/* argsort of n random numbers, as whole numbers of 53 bits: the same order, and a byte less to sort by. */
static mc_node *build_permutation(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    (void)nin;
    if (in[1]->type.rank != 0) {
        return mc_node_fail(g, MC_ESHAPE, "permutation: n must be a scalar");
    }
    if (next_stream(in[0], &attr[0], 1, &stream) < 0) {
        return failed(g);
    }
    struct mc_bind b[] = { { "u", draw(in[0], in[1], stream, MC_FLOAT64), NULL } };
    return mc_expr(g, "argsort(cast(u * 9007199254740992., int64))", b, 1);
}

/* Positions: whole numbers below n, with weights p by their running sums; without replacement the first of an
 * order at random, with weights that of exponential numbers divided by them. */
static mc_node *build_choice(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *a = in[1], *p = nin > 3 ? in[3] : NULL;
    const bool again = mc_attr_int(&attr[0]) != 0;
    mc_node *n = a->type.rank ? mc_size_of(a, 0) : mc_cast_to(a, MC_INT64);
    struct mc_bind b[] = { { "rng", in[0], NULL }, { "shape", in[2], NULL },     { "p", p, NULL },
                           { "n", n, NULL },       { "stream", NULL, &attr[1] }, { "k", NULL, NULL } };
    if (a->type.rank == 0 && !mc_is_int(a->type.dtype)) {
        return mc_node_fail(g, MC_ETYPE,
                            "choice: a is a whole number or a tensor whose first axis is chosen from");
    }
    if (p && p->type.rank != 1) {
        return mc_node_fail(g, MC_ESHAPE, "choice: the weights are a vector");
    }
    if (!again) {
        b[5].node = mc_expr(g, "prod(shape)", b, 2);
        b[5].node = mc_is_error(b[5].node) ? b[5].node
                                           : mc_hold(b[5].node, mc_expr(g, "k <= n", b, NELEM(b)),
                                                     "choice: more without replacement than there are");
    }
    mc_node *at = mc_expr(g,
                          again ? (p ? "c = cumsum(cast(p, float64)); searchsorted(c, units(rng, shape, "
                                       "dtype=float64, stream=stream) * c[-1], side='right')"
                                     : "random_integers(rng, shape, 0, n - 1, stream=stream)")
                          : p ? "reshape(argsort(-log1p(-units(rng, p.shape, dtype=float64, stream=stream)) "
                                "/ cast(p, float64))[:k], shape)"
                              : "reshape(permutation(rng, n, stream=stream)[:k], shape)",
                          b, NELEM(b));
    return mc_is_error(at) || a->type.rank == 0 ? at
                                                : mc_call_op(g, "take", 2, (mc_node *[]){ a, at }, "axis=0");
}

/* low + floor(u n), n = high - low + 1: never high + 1 for n up to 2^52. */
static mc_node *build_integers(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t stream;
    mc_dtype d = attr[0].none ? MC_INT64 : (mc_dtype)mc_attr_int(&attr[0]);
    (void)nin;
    if (mc_is_float(in[2]->type.dtype) || mc_is_float(in[3]->type.dtype)) {
        return mc_node_fail(g, MC_ETYPE, "random_integers: low and high must be integers");
    }
    if (next_stream(in[0], &attr[1], 1, &stream) < 0) {
        return failed(g);
    }
    struct mc_bind b[] = { { "u", draw(in[0], in[1], stream, MC_FLOAT64), NULL },
                           { "low", mc_cast_to(in[2], MC_INT64), NULL },
                           { "high", mc_cast_to(in[3], MC_INT64), NULL } };
    return mc_cast_to(mc_expr(g, "low + cast(floor(u * cast(high - low + 1, float64)), int64)", b, 3), d);
}

/* ---- streams ---- */

mc_shared *mc_random(mc_graph *g, const char *name, uint64_t seed)
{
    const uint64_t value[2] = { seed == MC_SEED_OF_FLAG ? (uint64_t)mc_flag_int(FLAG_seed) : seed, 0 },
                   next[2] = { 0, 1 };
    const int64_t two = 2;
    if (!g) {
        return NULL;
    }
    mc_array *a = mc_array_from(MC_UINT64, 1, &two, value);
    mc_shared *s = a ? mc_shared_new(g, name, a) : NULL;
    if (!a) {
        failed(g);
    }
    mc_array_unref(&a);
    if (s) {
        mc_node *pair[2] = { mc_shared_node(g, s),
                             mc_node_const(g, mc_array_from(MC_UINT64, 1, &two, next), false) };
        s->is_random = true;
        if (mc_shared_default_update(g, s, mc_call_op(g, "add", 2, pair, NULL)) < 0) {
            failed(g);
            return NULL;
        }
    }
    return s;
}

#define DRAWS .flags = OP_RANDOM, .nout = 1
#define TAIL "dtype=None:dtype, stream=-1:int"
const struct mc_op mc_ops_random[] = {
    { .name = "random_uniform", .params = "rng, shape, stream=-1:int, dtype=None:dtype", DRAWS, .line = LINE_DRAW, .shape_args = 2,
      .build = build_random_uniform, .infer = uniform_infer, .size = uniform_size, .eval = uniform_eval, .disconnected = 3,
      .doc = MANUAL("uniform numbers in [0, 1), from which all other random numbers are made") },
    BUILT({ .name = "uniform", .params = "rng, shape, low=None, high=None, " TAIL, DRAWS, .build = build_uniform,
      .doc = MANUAL("uniform numbers in [low, high); floatX unless a dtype is given") })
    BUILT({ .name = "normal", .params = "rng, shape, avg=None, std=None, " TAIL, DRAWS, .build = build_normal,
      .doc = MANUAL("normal numbers with mean avg and standard deviation std; floatX unless a dtype is given") })
    BUILT({ .name = "bernoulli", .params = "rng, p, shape=None, " TAIL, DRAWS, .build = build_bernoulli,
      .doc = MANUAL("1 with probability p, else 0; floatX unless a dtype is given") })
    BUILT({ .name = "binomial", .params = "rng, p, shape=None, n=None, " TAIL, DRAWS, .build = build_binomial,
      .doc = MANUAL("how many of n trials of probability p succeed, 1 if n is not given; floatX unless a dtype is given") })
    BUILT({ .name = "multinomial", .params = "rng, p, " TAIL ", n=1:int", DRAWS, .build = build_multinomial,
      .doc = MANUAL("for each row of probabilities how often each outcome occurs in n trials; int64 unless a dtype is given") })
    BUILT({ .name = "units", .flags = OP_RANDOM | OP_HIDDEN, .nout = 1, .params = "rng, shape, " TAIL ", n=1:int", .build = build_units,
      .doc = MANUAL("n tensors of numbers in [0, 1), of streams of their own") })
    BUILT({ .name = "exponential", .params = "rng, shape, scale=None, " TAIL, DRAWS,
      .formula = "cast_to(-log1p(-units(rng, shape, dtype=dtype, stream=stream)) * default(scale, 1), dtype=dtype)",
      .doc = MANUAL("exponential numbers of mean scale, 1 if not given") })
    BUILT({ .name = "laplace", .params = "rng, shape, avg=None, scale=None, " TAIL, DRAWS,
      .formula = "u = units(rng, shape, dtype=dtype, stream=stream); e = -log1p(-where(u < 0.5, 2 * u, 2 * u - 1)); "
                 "cast_to(where(u < 0.5, -e, e) * default(scale, 1) + default(avg, 0), dtype=dtype)",
      .doc = MANUAL("numbers of Laplace's distribution: exponential ones of either sign about avg") })
    BUILT({ .name = "truncated_normal", .params = "rng, shape, low, high, avg=None, std=None, " TAIL, DRAWS,
      .formula = "m = cast(default(avg, 0), float64); s = cast(default(std, 1), float64); a = (low - m) / s; b = (high - m) / s; up = a > 0; "
                 "l = 0.5 * erfc(where(up, b, -a) * 0.70710678118654752440); h = 0.5 * erfc(where(up, a, -b) * 0.70710678118654752440); "
                 "x = -1.4142135623730950488 * erfcinv(2 * (l + units(rng, shape, dtype=float64, stream=stream) * (h - l))); "
                 "cast_to(clip(m + s * where(up, -x, x), cast(low, float64), cast(high, float64)), dtype=dtype)",
      .example = MANUAL("truncated_normal(rng, shape, -1., 2.)"), .doc = MANUAL("normal numbers of those between low and high") })
    BUILT({ .name = "poisson", .params = "rng, lam, shape=None, " TAIL, DRAWS, .build = build_poisson, .example = MANUAL("poisson(rng, [0.5, 4, 100])"),
      .doc = MANUAL("counts of mean lam; of int64 unless a dtype is given") })
    BUILT({ .name = "random_gamma", .params = "rng, shape, k, scale=None, " TAIL, DRAWS,
      .formula = "cast_to(gammaincinv(cast(k, float64), units(rng, shape, dtype=float64, stream=stream)) * default(scale, 1), dtype=dtype)",
      .example = MANUAL("random_gamma(rng, shape, 2.)"), .doc = MANUAL("numbers of the gamma distribution of order k") })
    BUILT({ .name = "random_beta", .params = "rng, shape, a, b, " TAIL, DRAWS,
      .formula = "u = units(rng, shape, dtype=float64, stream=stream, n=2); x = gammaincinv(cast(a, float64), u[0]); y = gammaincinv(cast(b, float64), u[1]); "
                 "cast_to(x / (x + y), dtype=dtype)",
      .example = MANUAL("random_beta(rng, shape, 2., 3.)"), .doc = MANUAL("numbers of the beta distribution of a and b") })
    BUILT({ .name = "choice", .params = "rng, a, shape, p=None, replace=True:bool, stream=-1:int", DRAWS, .build = build_choice, .example = MANUAL("choice(rng, 5, [3])"),
      .doc = MANUAL("elements of a along its first axis, or whole numbers below a, chosen at random with equal weights or p; with replace=False each once at most") })
    BUILT({ .name = "shuffle", .params = "rng, x, stream=-1:int", DRAWS, .formula = "take(x, permutation(rng, size(x, 0), stream=stream), axis=0)",
      .doc = MANUAL("x with the elements of its first axis in random order") })
    BUILT({ .name = "shuffle_row_elements", .params = "rng, x, stream=-1:int", DRAWS,
      .formula = "permute_row_elements(x, argsort(random_uniform(rng, x.shape, stream=stream, dtype=float64)))", .doc = MANUAL("x with each row in a random order of its own") })
    BUILT({ .name = "dropout", .params = "rng, x, p=0.5:real, stream=-1:int", DRAWS,
      .formula = "where(units(rng, x.shape, dtype=x.dtype, stream=stream) < p, 0, x / (1 - p))",
      .doc = MANUAL("x with each element 0 with probability p, else divided by 1 - p") })
    BUILT({ .name = "permutation", .params = "rng, n, stream=-1:int", DRAWS, .build = build_permutation,
      .doc = MANUAL("the numbers 0 to n - 1 in random order") })
    BUILT({ .name = "random_integers", .params = "rng, shape, low, high, " TAIL, DRAWS, .build = build_integers,
      .doc = MANUAL("integers from low to high, both included; int64 unless a dtype is given") })
};
const int mc_nops_random = (int)NELEM(mc_ops_random);

/* fft.c: discrete Fourier transforms along the axes behind the first, which is the batch.
 * Complex numbers are a last axis of 2. Two nodes do the work, without factors: fft_forward; and
 * fft_backward, which reads half a spectrum as the whole one of real numbers.
 *
 * Invariant: computed in float64. A length that is no power of two is a convolution of twice the length or
 * more, by powers of two (Bluestein). */
#include "op/op.h"
#include <math.h>

struct complex { double re, im; };

static struct complex times(struct complex a, struct complex b)
{
    return (struct complex){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* ---- lines of one length ---- */

struct line {
    int64_t n, m;                      /* length; power of two at which it is computed */
    double sign;
    struct complex *turn;              /* (m): e^(-2 pi i j / m) */
    struct complex *chirp, *kernel;    /* (n), (m): NULL if n is m */
    struct complex *x;                 /* (m): the line */
};

/* In place, m a power of two: bits of the index reversed, then steps of 2, 4, ... back: the conjugate. */
static void by_two(const struct line *l, struct complex *x, bool back)
{
    for (int64_t i = 1, j = 0; i < l->m; i++) {
        int64_t bit = l->m >> 1;
        for (; j & bit; bit >>= 1) {
            j ^= bit;
        }
        j ^= bit;
        if (i < j) {
            const struct complex t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
    }
    for (int64_t half = 1; half < l->m; half *= 2) {
        const int64_t step = l->m / (2 * half);
        for (int64_t at = 0; at < l->m; at += 2 * half) {
            for (int64_t k = 0; k < half; k++) {
                struct complex w = l->turn[k * step], *a = &x[at + k], *b = a + half;
                w.im = back ? -w.im : w.im;
                const struct complex t = times(w, *b);
                *b = (struct complex){ a->re - t.re, a->im - t.im };
                *a = (struct complex){ a->re + t.re, a->im + t.im };
            }
        }
    }
}

static struct complex turned(double part)      /* e^(-2 pi i part) */
{
    return (struct complex){ cos(6.28318530717958647693 * part), -sin(6.28318530717958647693 * part) };
}

static void line_end(struct line *l)
{
    mc_free(l->turn);
}

static mc_status line_begin(struct line *l, int64_t n, double sign)
{
    size_t bytes;
    *l = (struct line){ .n = n, .m = 1, .sign = sign };
    while (l->m < n && l->m < INT64_C(1) << 40) {
        l->m *= 2;
    }
    const bool whole = l->m == n;
    while (!whole && l->m < 2 * n - 1) {
        l->m *= 2;
    }
    if (!mc_mul_size((size_t)(whole ? 2 * l->m : 3 * l->m + n), sizeof *l->turn, &bytes)) {
        return mc_fail_memory(SIZE_MAX, "fft");
    }
    l->turn = mc_alloc(bytes, "fft");
    if (!l->turn) {
        return mc_last_status();
    }
    l->x = l->turn + l->m;
    for (int64_t j = 0; j < l->m; j++) {
        l->turn[j] = turned((double)j / (double)l->m);
    }
    if (!whole) {
        l->kernel = l->x + l->m;
        l->chirp = l->kernel + l->m;
        memset(l->kernel, 0, (size_t)l->m * sizeof *l->kernel);
        for (int64_t j = 0; j < n; j++) { /* j^2 / 2n, of which whole turns do not count */
            const uint64_t square = (uint64_t)j * (uint64_t)j % (2 * (uint64_t)n);
            l->chirp[j] = turned((double)square / (2 * (double)n));
            const struct complex c = { l->chirp[j].re, -l->chirp[j].im };
            l->kernel[j] = c;
            l->kernel[j ? l->m - j : 0] = c;
        }
        by_two(l, l->kernel, false);
    }
    return MC_OK;
}

/* Transforms l->x[0..n). A backward transform is that of the conjugate, conjugated. */
static void line_run(struct line *l)
{
    for (int64_t j = 0; l->sign > 0 && j < l->n; j++) {
        l->x[j].im = -l->x[j].im;
    }
    if (!l->kernel) {
        by_two(l, l->x, false);
    } else {
        for (int64_t j = 0; j < l->m; j++) {
            l->x[j] = j < l->n ? times(l->x[j], l->chirp[j]) : (struct complex){ 0, 0 };
        }
        by_two(l, l->x, false);
        for (int64_t j = 0; j < l->m; j++) {
            l->x[j] = times(l->x[j], l->kernel[j]);
        }
        by_two(l, l->x, true);
        for (int64_t j = 0; j < l->n; j++) {
            const struct complex c = times(l->x[j], l->chirp[j]);
            l->x[j] = (struct complex){ c.re / (double)l->m, c.im / (double)l->m };
        }
    }
    for (int64_t j = 0; l->sign > 0 && j < l->n; j++) {
        l->x[j].im = -l->x[j].im;
    }
}

/* Transforms `count` lines of n elements, `stride` apart, that begin at x, x + 1, ... of each block. */
static mc_status axis_run(struct complex *x, int64_t blocks, int64_t n, int64_t stride, double sign)
{
    struct line l;
    mc_status s = line_begin(&l, n, sign);
    for (int64_t b = 0; s == MC_OK && b < blocks; b++) {
        for (int64_t k = 0; k < stride; k++) {
            struct complex *at = x + b * n * stride + k;
            for (int64_t i = 0; i < n; i++) {
                l.x[i] = at[i * stride];
            }
            line_run(&l);
            for (int64_t i = 0; i < n; i++) {
                at[i * stride] = l.x[i];
            }
        }
    }
    line_end(&l);
    return s;
}

/* All axes of a tensor of complex numbers but the first and the last. */
static mc_status inner_axes(struct complex *x, int rank, const int64_t *dims, double sign)
{
    int64_t stride = dims[rank - 1];
    mc_status s = MC_OK;
    for (int i = rank - 2; s == MC_OK && i > 0; i--) {
        int64_t blocks = 1;
        for (int k = 0; k < i; k++) {
            blocks *= dims[k];
        }
        s = axis_run(x, blocks, dims[i], stride, sign);
        stride *= dims[i];
    }
    return s;
}

/* ---- forward ---- */

static mc_status forward_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0];
    if (!mc_is_float(x->dtype) || x->rank < 2 || x->rank > 4) {
        return mc_fail(MC_ESHAPE, "rfft: x has a batch axis and one to three axes to transform, not rank %d",
                       x->rank);
    }
    q->out[0] = *x;
    q->out[0].rank = x->rank + 1;
    q->out[0].dims[x->rank - 1] = x->dims[x->rank - 1] < 0 ? -1 : x->dims[x->rank - 1] / 2 + 1;
    q->out[0].dims[x->rank] = 2;
    for (int i = 1; i < x->rank; i++) {
        if (x->dims[i] == 0) {
            return mc_fail(MC_ESHAPE, "rfft: axis %d has no elements", i);
        }
    }
    return MC_OK;
}

static mc_node *forward_size(mc_node *n, int item, int axis)
{
    const int last = n->in[0]->type.rank - 1;
    (void)item;
    return axis > last   ? mc_node_int(n->graph, 2)
           : axis < last ? mc_size_of(n->in[0], axis)
                         : mc_expr(n->graph, "n // 2 + 1",
                                   (struct mc_bind[]){ { "n", mc_size_of(n->in[0], last), NULL } }, 1);
}

static mc_status forward_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const int rank = in[0]->rank;
    int64_t dims[MC_MAX_RANK];
    memcpy(dims, in[0]->dims, (size_t)rank * sizeof *dims);
    const int64_t size = dims[rank - 1], half = size / 2 + 1, lines = mc_array_size(in[0]) / MC_MAX(size, 1);
    mc_array *x = mc_array_cast(in[0], MC_FLOAT64);
    struct complex *y = x ? mc_calloc((size_t)(lines * half) + 1, sizeof *y, "fft") : NULL;
    struct line l = { 0 };
    mc_status s = y ? line_begin(&l, size, -1) : mc_last_status();
    (void)n;
    for (int64_t i = 0; s == MC_OK && i < lines; i++) {
        const double *from = (const double *)(const void *)x->data + i * size;
        for (int64_t k = 0; k < size; k++) {
            l.x[k] = (struct complex){ from[k], 0 };
        }
        line_run(&l);
        l.x[0].im = 0;
        l.x[half - 1].im = size % 2 ? l.x[half - 1].im : 0; /* of real numbers these are exact */
        memcpy(y + i * half, l.x, (size_t)half * sizeof *y);
    }
    line_end(&l);
    dims[rank - 1] = half;
    s = s == MC_OK ? inner_axes(y, rank, dims, -1) : s;
    if (s == MC_OK) {
        mc_convert(out[0]->dtype, out[0]->data, (int64_t)mc_dtypes[out[0]->dtype].size, MC_FLOAT64, y,
                   sizeof(double), 2 * lines * half);
    }
    mc_free(y);
    mc_array_unref(&x);
    return s;
}

/* ---- backward ---- */

static mc_status backward_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0];
    if (!mc_is_float(x->dtype) || x->rank < 3 || x->rank > 5 ||
        (x->dims[x->rank - 1] >= 0 && x->dims[x->rank - 1] != 2)) {
        return mc_fail(MC_ESHAPE,
                       "irfft: x has a batch axis, one to three axes to transform and a last axis of 2");
    }
    q->out[0] = *x;
    q->out[0].rank = x->rank - 1;
    q->out[0].dims[x->rank - 2] = q->value[1] ? mc_load_i64(q->value[1]->dtype, q->value[1]->data) : -1;
    return q->value[1] && q->out[0].dims[x->rank - 2] < 1
               ? mc_fail(MC_ESHAPE, "irfft: the result would have no elements")
               : MC_OK;
}

static mc_node *backward_size(mc_node *n, int item, int axis)
{
    (void)item;
    return axis == n->type.rank - 1 ? n->in[1] : mc_size_of(n->in[0], axis);
}

static mc_status backward_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const int rank = out[0]->rank;
    const int64_t size = out[0]->dims[rank - 1], half = in[0]->dims[rank - 1],
                  lines = mc_array_size(out[0]) / MC_MAX(size, 1);
    mc_array *x = mc_array_cast(in[0], MC_FLOAT64);
    double *y = x ? mc_calloc((size_t)(lines * size) + 1, sizeof *y, "fft") : NULL;
    struct complex *half_of = x ? (struct complex *)(void *)x->data : NULL;
    struct line l = { 0 };
    mc_status s = y ? MC_OK : mc_last_status();
    (void)n;
    if (s == MC_OK && half != size / 2 + 1) {
        s = mc_fail(MC_ESHAPE, "irfft: %lld elements are not half the spectrum of %lld", (long long)half,
                    (long long)size);
    }
    s = s == MC_OK ? inner_axes(half_of, rank, in[0]->dims, 1) : s;
    s = s == MC_OK ? line_begin(&l, size, 1) : s;
    for (int64_t i = 0; s == MC_OK && i < lines; i++) {
        for (int64_t k = 0; k < half; k++) {
            const struct complex c = half_of[i * half + k];
            const bool real = k == 0 || 2 * k == size;
            l.x[k] = (struct complex){ c.re, real ? 0 : c.im };
            if (!real) {
                l.x[size - k] = (struct complex){ c.re, -c.im };
            }
        }
        line_run(&l);
        for (int64_t k = 0; k < size; k++) {
            y[i * size + k] = l.x[k].re;
        }
    }
    line_end(&l);
    if (s == MC_OK) {
        mc_convert(out[0]->dtype, out[0]->data, (int64_t)mc_dtypes[out[0]->dtype].size, MC_FLOAT64, y,
                   sizeof(double), lines * size);
    }
    mc_free(y);
    mc_array_unref(&x);
    return s;
}

/* ---- gradients: each is the other, the spectrum times 1 where a number stands for itself and by 2, or 1/2,
 * where it stands for its conjugate as well ---- */

#define WEIGHTS(others) "k = arange(m); cast(where(or_(eq(k, 0), eq(2 * k, n)), 1, " others "), g.dtype)"

static mc_node *forward_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const int last = n->type.rank - 2;
    struct mc_bind b[] = { { "g", g[0], NULL },
                           { "n", mc_size_of(n->in[0], last), NULL },
                           { "m", mc_size_of(n, last), NULL },
                           { "w", NULL, NULL } };
    (void)wrt;
    if (!g[0]) {
        return NULL;
    }
    b[3].node = mc_expr(n->graph, WEIGHTS("0.5"), b, 3);
    return mc_expr(n->graph, "fft_backward(g * expand_dims(w, 1), n)", b, 4);
}

static mc_node *backward_grad(mc_node *n, int wrt, mc_node *const *g)
{
    struct mc_bind b[] = { { "g", g[0], NULL },
                           { "n", n->in[1], NULL },
                           { "m", mc_size_of(n->in[0], n->type.rank - 1), NULL },
                           { "w", NULL, NULL } };
    if (wrt || !g[0]) {
        return NULL;
    }
    b[3].node = mc_expr(n->graph, WEIGHTS("2"), b, 3);
    return mc_expr(n->graph, "fft_forward(g) * expand_dims(w, 1)", b, 4);
}

/* ---- the ops of users ---- */

/* y divided as the norm says: by the number of elements in a transform, or by its root. last: the number
 * along the last axis, which is axis `axis` of x. */
static mc_node *scaled(mc_graph *g, const char *op, mc_node *y, mc_node *x, mc_node *last, int axis,
                       const char *norm, bool back)
{
    struct mc_bind b[] = { { "y", y, NULL }, { "n", last, NULL }, { "k", NULL, NULL } };
    const bool none = !norm, ortho = norm && strcmp(norm, "ortho") == 0;
    if (norm && !ortho && strcmp(norm, "no_norm") != 0) {
        return mc_node_fail(g, MC_EARG, "%s: norm is None, ortho or no_norm, not '%s'", op, norm);
    }
    if (mc_is_error(y) || (!ortho && !(none && back))) {
        return y;
    }
    for (int i = 1; i < axis; i++) {
        b[2].node = mc_size_of(x, i);
        b[1].node = mc_expr(g, "n * k", b, 3);
    }
    return mc_expr(g, ortho ? "y / cast(sqrt(n), y.dtype)" : "y / cast(n, y.dtype)", b, 2);
}

static mc_node *build_rfft(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *x = mc_is_float(in[0]->type.dtype) ? in[0] : mc_cast_to(in[0], mc_dtype_floatX());
    (void)nin;
    mc_node *y = mc_is_error(x) ? x : mc_call_op(g, "fft_forward", 1, &x, NULL);
    return mc_is_error(y) ? y
                          : scaled(g, "rfft", y, x, mc_size_of(x, x->type.rank - 1), x->type.rank - 1,
                                   attr[0].text, false);
}

static mc_node *build_irfft(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *x = mc_is_float(in[0]->type.dtype) ? in[0] : mc_cast_to(in[0], mc_dtype_floatX());
    (void)nin;
    if (mc_is_error(x) || x->type.rank < 3) {
        return mc_is_error(x)
                   ? x
                   : mc_node_fail(
                         g, MC_ESHAPE,
                         "irfft: x has a batch axis, one to three axes to transform and a last axis of 2");
    }
    mc_node *n = mc_expr(g, mc_attr_int(&attr[1]) ? "2 * m - 1" : "2 * m - 2",
                         (struct mc_bind[]){ { "m", mc_size_of(x, x->type.rank - 2), NULL } }, 1);
    mc_node *y = mc_call_op(g, "fft_backward", 2, (mc_node *[]){ x, n }, NULL);
    return scaled(g, "irfft", y, x, n, x->type.rank - 2, attr[0].text, true);
}

/* ---- complex numbers: the spectra of both parts, each from its half.  What a half lacks is the conjugate of
 * what stands at the opposite place of every axis. ---- */

static mc_node *opposite(mc_graph *g, mc_node *half, mc_node *n, int last)
{
    struct mc_bind b[] = { { "h", half, NULL }, { "n", n, NULL } };
    b[0].node = mc_expr(g, "h[..., 1:(n + 1) // 2, :][..., ::-1, :]", b, 2);
    for (int i = 1; i < last; i++) {
        char text[64];
        mc_snprintf(text, sizeof text, "roll(flip(h, axis=%d), 1, axis=%d)", i, i);
        b[0].node = mc_expr(g, text, b, 1);
    }
    return b[0].node;
}

static mc_node *spectrum(mc_graph *g, mc_node *x)
{
    const int last = x->type.rank - 2;
    mc_node *n = mc_size_of(x, last);
    struct mc_bind b[] = { { "x", x, NULL },    { "b", mc_size_of(x, 0), NULL }, { "h", NULL, NULL },
                           { "p", NULL, NULL }, { "low", NULL, NULL },           { "high", NULL, NULL } };
    b[2].node = mc_expr(g, "concatenate([x[..., 0], x[..., 1]])", b, 1);
    b[2].node = mc_is_error(b[2].node) ? b[2].node : mc_call_op(g, "fft_forward", 1, &b[2].node, NULL);
    if (mc_is_error(b[2].node)) {
        return b[2].node;
    }
    b[3].node = opposite(g, b[2].node, n, last);
    b[4].node = mc_expr(g, "stack([h[:b, ..., 0] - h[b:, ..., 1], h[:b, ..., 1] + h[b:, ..., 0]], axis=-1)",
                        b, 3);
    b[5].node = mc_expr(g, "stack([p[:b, ..., 0] + p[b:, ..., 1], p[b:, ..., 0] - p[:b, ..., 1]], axis=-1)",
                        b, 4);
    return mc_expr(g, "concatenate([low, high], axis=-2)", b, 6);
}

static mc_node *build_complex(mc_graph *g, mc_node *of, const struct mc_attr *attr, bool back)
{
    const char *const name = back ? "ifft" : "fft";
    mc_node *x = mc_is_float(of->type.dtype) ? of : mc_cast_to(of, mc_dtype_floatX());
    if (mc_is_error(x) || x->type.rank < 3 || x->type.rank > 5 ||
        (x->type.dims[x->type.rank - 1] >= 0 && x->type.dims[x->type.rank - 1] != 2)) {
        return mc_is_error(x)
                   ? x
                   : mc_node_fail(
                         g, MC_ESHAPE,
                         "%s: x has a batch axis, one to three axes to transform and a last axis of 2", name);
    }
    struct mc_bind b[] = { { "x", x, NULL } };
    x = b[0].node = x->type.dims[x->type.rank - 1] == 2
                        ? x
                        : mc_expr(g, "reshape(x, concatenate([x.shape[:-1], [2]]))", b, 1);
    if (mc_is_error(x)) {
        return x;
    }
    /* forward, with both parts exchanged before and after, is backward */
    b[0].node = back ? mc_expr(g, "x[..., ::-1]", b, 1) : x;
    b[0].node = spectrum(g, b[0].node);
    mc_node *y = back && !mc_is_error(b[0].node) ? mc_expr(g, "x[..., ::-1]", b, 1) : b[0].node;
    return scaled(g, name, y, x, mc_size_of(x, x->type.rank - 2), x->type.rank - 2, attr[0].text, back);
}

static mc_node *build_fft(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return build_complex(g, in[0], attr, false);
}

static mc_node *build_ifft(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return build_complex(g, in[0], attr, true);
}

const struct mc_op mc_ops_fft[] = {
    BUILT({ .name = "rfft", .params = "x, norm=None:text", .nout = 1, .build = build_rfft, .example = MANUAL("x = [[1., 2, 0, 1]]; rfft(x)"),
      .doc = MANUAL("the Fourier transform of real x over all axes but the first: half of the last axis, n // 2 + 1, and a last axis of real and imaginary "
             "parts; norm: None, ortho (divided by the root of the number of elements) or no_norm") })
    BUILT({ .name = "irfft", .params = "x, norm=None:text, is_odd=False:bool", .nout = 1, .build = build_irfft,
      .example = MANUAL("x = [[[4., 0], [1, -1], [-2, 0]]]; irfft(x)"),
      .doc = MANUAL("rfft undone: 2 * (m - 1) elements along the last axis from m, or one more with is_odd; divided by their number unless norm says otherwise") })
    BUILT({ .name = "fft", .params = "x, norm=None:text", .nout = 1, .build = build_fft, .example = MANUAL("x = [[[1., 0], [0, 1], [2, 0]]]; fft(x)"),
      .doc = MANUAL("the Fourier transform of complex x, whose last axis has real and imaginary parts, over all other axes but the first; norm: None, ortho "
             "(divided by the root of the number of elements) or no_norm") })
    BUILT({ .name = "ifft", .params = "x, norm=None:text", .nout = 1, .build = build_ifft, .example = MANUAL("x = [[[3., 1], [1, -1], [-1, 0]]]; ifft(x)"),
      .doc = MANUAL("fft undone: divided by the number of elements unless norm says otherwise") })
    { .name = "fft_forward", .flags = OP_HIDDEN, .params = "x", .nout = 1, .infer = forward_infer, .size = forward_size, .eval = forward_eval,
      .grad = forward_grad, .doc = MANUAL("rfft without a factor") },
    { .name = "fft_backward", .flags = OP_HIDDEN, .params = "x, n", .nout = 1, .shape_args = 2, .infer = backward_infer, .size = backward_size,
      .eval = backward_eval, .grad = backward_grad, .disconnected = 2, .doc = MANUAL("irfft without a factor, of n elements along the last axis") },
};
const int mc_nops_fft = (int)NELEM(mc_ops_fft);

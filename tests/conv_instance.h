/* conv_instance.h: one convolution with its operands and what must come out of it, summed in float64.
 *
 * Invariant: operands end where a page ends that may not be touched, and gaps hold NaN. */
#ifndef CONV_INSTANCE_H
#define CONV_INSTANCE_H

#include "check.h"
#include "heavy/conv/solver.h"
#include "conv_grid.h"
#include "guarded.h"
#include "plan_options.h"
#include <math.h>
#include <stdlib.h>

/* ---- cases ---- */

enum { NO_C0, OTHER_C0, SAME_C0, NAN_C0 }; /* SAME: the result itself; NAN: beta is 0 */
/* MIRROR: channels and the last axis run backwards; SPREAD: one image and one filter stand for all, where
 * read */
enum { BC01, B01C, C01B, GAPS, MIRROR, SPREAD, NLAYOUT };
static const struct variant {
    mc_dtype dtype;
    double alpha, beta;
    int c0, layout;
    bool epilogue, wide;
    bool adjoint;
} variants[] = {
    { MC_FLOAT32,  1,    0,    NO_C0,    BC01, .adjoint = true },
    { MC_FLOAT64,  -2,   0.5,  OTHER_C0, BC01, .epilogue = true },
    { MC_FLOAT32,  0.5,  1,    SAME_C0,  BC01 },
    { MC_FLOAT32,  1,    0,    NAN_C0,   GAPS, .epilogue = true },
    { MC_FLOAT32,  1,    0,    NO_C0,    B01C, .adjoint = true },
    { MC_FLOAT32,  2,    -1,   OTHER_C0, B01C, .epilogue = true },
    { MC_FLOAT32,  1,    0,    NO_C0,    C01B, .adjoint = true },
    { MC_FLOAT64,  1,    2,    SAME_C0,  C01B, .epilogue = true },
    { MC_FLOAT32,  1,    0,    NO_C0,    BC01, .wide = true },
    { MC_FLOAT16,  1,    1,    OTHER_C0, BC01, .epilogue = true },
    { MC_BFLOAT16, 0.5,  0,    NO_C0,    B01C },
    { MC_FLOAT32,  1,    1,    OTHER_C0, MIRROR, .epilogue = true },
    { MC_FLOAT64,  1,    0,    NO_C0,    SPREAD },
};

/* ---- one problem with its operands and what must come out ---- */

struct instance {
    struct mc_conv_problem p;
    struct variant v;
    struct mc_conv_array array[3];
    struct guarded op[3], c0;
    int64_t reach[3];       /* elements, gaps included */
    char *data[3], *data_c0; /* where element 0 is */
    /* each operand as a dense array in C order; the result's: what the adjoint meets */
    double *number[3];
    double *sum;            /* of the definition */
    double *start;          /* c0 */
    double worst;           /* the largest sum of absolute products */
    double inner, inner_size;
    unsigned char *seen;    /* by the epilogue */
    char *before;           /* what the result held */
};

static void lay_out(struct mc_conv_array *a, int64_t *stride, int layout, bool result)
{
    static const int orders[NLAYOUT][8] = {
        [BC01] = { 0, 1, 2, 3, 4 }, [B01C] = { 0, 2, 3, 4, 1 }, [C01B] = { 1, 2, 3, 4, 0 }, [GAPS] = { 0, 1, 2, 3, 4 },
        [MIRROR] = { 0, 1, 2, 3, 4 }, [SPREAD] = { 0, 1, 2, 3, 4 },
    };
    int64_t step = 1;
    mc_conv_dense_strides(a, stride);
    a->stride = stride;
    if (layout == BC01 || a->rank == 8) {
        return;
    }
    for (int i = 4; i >= 0; i--) {
        const int axis = orders[layout][i];
        stride[axis] = step;
        step *= MC_MAX(a->size[axis], (int64_t)1);
        step += layout == GAPS && i >= 3;
    }
    for (int i = 1; i < 5 && layout == MIRROR; i += 3) {
        stride[i] = -stride[i];
    }
    stride[0] = layout == SPREAD && !result ? 0 : stride[0];
}

static int64_t offset(const struct mc_conv_array *a, int64_t e)
{
    int64_t at = 0;
    for (int i = a->rank - 1; i >= 0; i--) {
        at += e % a->size[i] * a->stride[i];
        e /= a->size[i];
    }
    return at;
}

/* Elements that strides reach, and how many of them lie before the first. */
static int64_t reach(const struct mc_conv_array *a, int64_t *before)
{
    int64_t lo = 0, hi = 0;
    for (int i = 0; i < a->rank; i++) {
        const int64_t far = (a->size[i] - 1) * a->stride[i];
        *(far < 0 ? &lo : &hi) += far;
    }
    *before = mc_conv_count(a) ? -lo : 0;
    return mc_conv_count(a) ? hi - lo + 1 : 0;
}

/* Rounds to the dtype, so that the definition starts from what the solver reads. */
static double rounded(mc_dtype d, double v)
{
    char at[8];
    mc_store_f64(d, at, v);
    return mc_load_f64(d, at);
}

static double after(double v)
{
    return v < 0 ? 0.5 * v : v;
}

/* Calls f for every product of the definition with the flat numbers of its x, w and y. */
static void products(const struct mc_conv_shape *s,
                     void (*f)(struct instance *x, int64_t ix, int64_t iw, int64_t iy), struct instance *x)
{
    const int64_t cg = s->c / s->groups, fg = s->f / s->groups, taps = conv_volume(s->k),
                  places = conv_volume(s->out);
    for (int64_t a = 0; a < taps; a++) {
        for (int64_t u = 0; u < places; u++) {
            const int64_t at[3] = { a / (s->k[1] * s->k[2]), a / s->k[2] % s->k[1], a % s->k[2] };
            const int64_t place[3] = { u / (s->out[1] * s->out[2]), u / s->out[2] % s->out[1],
                                       u % s->out[2] };
            int64_t i = 0, tap = 0;
            bool in = true;
            for (int z = 0; z < 3; z++) {
                const int64_t j = place[z] * s->stride[z] - s->pad[z] + at[z] * s->dilation[z];
                in &= j >= 0 && j < s->in[z];
                i = i * s->in[z] + j;
                tap = tap * s->k[z] + (s->flip ? s->k[z] - 1 - at[z] : at[z]);
            }
            for (int64_t e = 0; in && e < s->n * s->f * cg; e++) {
                const int64_t n = e / (s->f * cg), k = e / cg % s->f, c = e % cg;
                const int64_t w = (k * cg + c) * taps + tap;
                f(x, (n * s->c + k / fg * cg + c) * conv_volume(s->in) + i, s->unshared ? w * places + u : w,
                  (n * s->f + k) * places + u);
            }
        }
    }
}

static double *size_of_sum; /* of each element: the sum of absolute products */

static void add(struct instance *x, int64_t ix, int64_t iw, int64_t iy)
{
    const double vx = x->number[CONV_X][ix], vw = x->number[CONV_W][iw], vy = x->number[CONV_Y][iy];
    const enum mc_conv_pass pass = x->p.s.pass;
    const int64_t at = pass == CONV_FORWARD ? iy : pass == CONV_INPUTS ? ix : iw;
    const double v = pass == CONV_FORWARD ? vx * vw : pass == CONV_INPUTS ? vy * vw : vx * vy;
    x->sum[at] += v;
    size_of_sum[at] += fabs(v);
    x->inner += vx * vw * vy;
    x->inner_size += fabs(vx * vw * vy);
}

static void expect(struct instance *x)
{
    const int64_t n = mc_conv_count(&x->array[mc_conv_result(x->p.s.pass)]);
    x->sum = calloc((size_t)n + 1, sizeof(double));
    size_of_sum = calloc((size_t)n + 1, sizeof(double));
    products(&x->p.s, add, x);
    for (int64_t e = 0; e < n; e++) {
        x->worst = fmax(x->worst, size_of_sum[e]);
    }
    free(size_of_sum);
}

static struct instance make(struct mc_conv_shape s, struct variant v)
{
    struct instance x = { .v = v };
    const int64_t size = mc_dtypes[v.dtype].size;
    x.p = (struct mc_conv_problem){ .base = { &mc_conv_family, mc_plan_options_of(NULL) },
                                    .dtype = v.dtype,
                                    .s = s,
                                    .alpha = v.alpha,
                                    .beta = v.beta,
                                    .has_epilogue = v.epilogue,
                                    .wide = v.wide };
    int64_t *const strides[] = { x.p.at.x, x.p.at.w, x.p.at.y };
    for (int role = CONV_X; role <= CONV_Y; role++) {
        x.array[role] = mc_conv_array(&x.p, role);
        lay_out(&x.array[role], strides[role], v.layout, role == mc_conv_result(s.pass));
        const int64_t n = mc_conv_count(&x.array[role]);
        int64_t before;
        x.reach[role] = reach(&x.array[role], &before);
        x.op[role] = guard((size_t)(x.reach[role] * size));
        x.data[role] = x.op[role].at + before * size;
        x.number[role] = malloc((size_t)(n + 1) * sizeof(double));
        for (int64_t e = 0; e < n; e++) {
            x.number[role][e] = rounded(v.dtype, test_uniform(-1, 1));
            mc_store_f64(v.dtype, x.data[role] + offset(&x.array[role], e) * size, x.number[role][e]);
        }
        for (int64_t e = 0; e < n; e++) { /* several may share a place */
            x.number[role][e] = mc_load_f64(v.dtype, x.data[role] + offset(&x.array[role], e) * size);
        }
    }
    const int role = mc_conv_result(s.pass);
    const int64_t n = mc_conv_count(&x.array[role]);
    x.c0 = guard((size_t)(x.reach[role] * size));
    x.data_c0 = x.c0.at + (x.data[role] - x.op[role].at);
    x.start = calloc((size_t)n + 1, sizeof(double));
    x.seen = calloc((size_t)n + 1, 1);
    x.before = malloc((size_t)(x.reach[role] * size) + 1);
    for (int64_t e = 0; e < n && v.beta != 0; e++) {
        x.start[e] = v.c0 == SAME_C0 ? x.number[role][e] : rounded(v.dtype, test_uniform(-1, 1));
        mc_store_f64(v.dtype, x.data_c0 + offset(&x.array[role], e) * size, x.start[e]);
    }
    memcpy(x.before, x.op[role].at, (size_t)(x.reach[role] * size));
    expect(&x);
    return x;
}

static void unmake(struct instance *x)
{
    for (int role = CONV_X; role <= CONV_Y; role++) {
        unguard(&x->op[role]);
        free(x->number[role]);
    }
    unguard(&x->c0);
    free(x->sum);
    free(x->start);
    free(x->seen);
    free(x->before);
}

/* A copy of the problem that points at its own strides. */
static struct mc_conv_array result_of(const struct instance *x)
{
    return mc_conv_array(&x->p, mc_conv_result(x->p.s.pass));
}

#endif

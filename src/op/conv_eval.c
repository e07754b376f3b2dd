/* conv_eval.c: the reference of all three passes, in double.
 *
 * There is one sum over images, filters, channels, taps and positions; the pass selects the array that is
 * added to. Invariant: a position is visited only if its tap reads an element of x, so zeros around x are
 * never multiplied. */
#include "op/conv_node.h"

struct sum {
    struct mc_conv_shape s;
    struct mc_conv_strides at;
    double *p[3];                   /* x, w, y */
    int result;                     /* the role of the result */
};

/* n positions along the last axis: p[result] += the product of the other two. */
static void row(const struct sum *q, double *const *p, const int64_t *step, int64_t n)
{
    int a = q->result == 0, b = q->result == 2 ? 1 : 2;
    double *to = p[q->result];
    const double *u = p[a], *v = p[b];
    for (int64_t i = 0; i < n; i++) {
        *to += *u * *v;
        to += step[q->result];
        u += step[a];
        v += step[b];
    }
}

/* The positions from..end along one axis whose tap a lies within x. */
static void range_within(const struct mc_conv_shape *s, int j, int64_t a, int64_t *from, int64_t *end)
{
    int64_t reach = a * s->dilation[j] - s->pad[j], last = s->in[j] - 1 - reach;
    *from = reach >= 0 ? 0 : (-reach + s->stride[j] - 1) / s->stride[j];
    *end = last < 0 ? 0 : MC_MIN(last / s->stride[j] + 1, s->out[j]);
}

/* All positions for one image, filter, channel and tap. */
static void tap(const struct sum *q, double *const *base, const int64_t *a)
{
    const struct mc_conv_shape *s = &q->s;
    const struct mc_conv_strides *at = &q->at;
    int64_t from[3], end[3], step[3] = { s->stride[2] * at->x[4], at->w[7], at->y[4] };
    for (int j = 0; j < 3; j++) {
        range_within(s, j, a[j], &from[j], &end[j]);
    }
    for (int64_t u0 = from[0]; u0 < end[0]; u0++) {
        for (int64_t u1 = from[1]; u1 < end[1] && from[2] < end[2]; u1++) {
            const int64_t u[3] = { u0, u1, from[2] };
            double *p[3] = { base[CONV_X], base[CONV_W], base[CONV_Y] };
            for (int j = 0; j < 3; j++) {
                p[CONV_X] += (u[j] * s->stride[j] - s->pad[j] + a[j] * s->dilation[j]) * at->x[2 + j];
                p[CONV_W] += (s->flip ? s->k[j] - 1 - a[j] : a[j]) * at->w[2 + j] + u[j] * at->w[5 + j];
                p[CONV_Y] += u[j] * at->y[2 + j];
            }
            row(q, p, step, end[2] - from[2]);
        }
    }
}

static void add_up(const struct sum *q)
{
    const struct mc_conv_shape *s = &q->s;
    const struct mc_conv_strides *at = &q->at;
    int64_t each = s->c / s->groups, filters = s->f / s->groups, a[3];
    for (int64_t n = 0; n < s->n; n++) {
        for (int64_t f = 0; f < s->f; f++) {
            for (int64_t c = 0; c < each; c++) {
                double *base[3] = { q->p[CONV_X] + n * at->x[0] + (f / filters * each + c) * at->x[1],
                                    q->p[CONV_W] + f * at->w[0] + c * at->w[1], q->p[CONV_Y] + n * at->y[0] + f * at->y[1] };
                for (a[0] = 0; a[0] < s->k[0]; a[0]++) {
                    for (a[1] = 0; a[1] < s->k[1]; a[1]++) {
                        for (a[2] = 0; a[2] < s->k[2]; a[2]++) {
                            tap(q, base, a);
                        }
                    }
                }
            }
        }
    }
}

/* A copy of a as contiguous doubles. */
static mc_array *widened(const mc_array *a)
{
    mc_array *w = mc_array_empty(MC_FLOAT64, a->rank, a->dims);
    if (w && mc_array_assign(w, a) < 0) {
        mc_array_unref(&w);
    }
    return w;
}

mc_status mc_conv_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct sum q = { .result = 0 };
    struct mc_type type[3];
    mc_array *wide[3] = { NULL };
    const signed char *from = mc_conv_operand[mc_conv_pass_of(n->op)];
    for (int i = 0; i < n->nin; i++) {
        type[i] = mc_type_make(in[i]->dtype, in[i]->rank, in[i]->dims);
    }
    TRY(mc_conv_shape_of(n, type, (const mc_array *const *)in, NULL, &q.s));
    mc_status s = MC_OK;
    for (int r = 0; s == MC_OK && r < 3; r++) {
        wide[r] = from[r] >= 0 ? widened(in[(int)from[r]])
                               : mc_array_new(MC_FLOAT64, out[0]->rank, out[0]->dims);
        s = wide[r] ? MC_OK : mc_last_status();
        q.p[r] = wide[r] ? (double *)(void *)wide[r]->data : NULL;
        q.result = from[r] < 0 ? r : q.result;
    }
    if (s == MC_OK) {
        mc_conv_strides_of(n, wide[CONV_X]->strides, wide[CONV_W]->strides, wide[CONV_Y]->strides,
                           sizeof(double), &q.at);
        add_up(&q);
        s = mc_array_assign(out[0], wide[q.result]);
    }
    for (int r = 0; r < 3; r++) {
        mc_array_unref(&wide[r]);
    }
    return s;
}

/* monochord_bench_sums.c: how far a convolution's result is off: elements drawn from it, made again by the
 * definition.
 *
 * Invariant: sums are in float64, of the numbers that the convolution was given. */
#include "bench.h"
#include <math.h>

enum { SAMPLES = 300 };

static double read(const float *a, const int64_t dims[5], int64_t first, int64_t second, const int64_t at[3])
{
    int64_t place = first * dims[1] + second;
    for (int i = 0; i < 3; i++) {
        if (at[i] < 0 || at[i] >= dims[2 + i]) {
            return 0;
        }
        place = place * dims[2 + i] + at[i];
    }
    return a[place];
}

/* Where tap w and a place of y meet, the terms of all channels, filters or images are added. */
static double element(const struct bench_sums *s, const int64_t at[5])
{
    const int64_t(*dims)[5] = s->dims,
          *loop = s->result == 1 ? dims[2] + 2 : dims[1] + 2; /* over places, or over taps */
    const int64_t c = dims[1][1], f = dims[1][0] / s->groups; /* channels and filters of a group */
    const int64_t sum_over = s->result == 2 ? c : s->result == 0 ? f : dims[0][0];
    double sum = 0;
    for (int64_t i = 0; i < sum_over; i++) {
        for (int64_t t = 0; t < loop[0] * loop[1] * loop[2]; t++) {
            int64_t x[3], w[3], y[3], rest[3] = { t / loop[2] / loop[1], t / loop[2] % loop[1], t % loop[2] };
            bool meet = true;
            for (int k = 0; k < 3; k++) {
                bool there = k >= 3 - s->axes;
                int64_t stride = there ? s->stride[k] : 1, pad = there ? s->pad[k] : 0;
                w[k] = s->result == 1 ? at[2 + k] : rest[k];
                int64_t far = w[k] * s->dilation, from = at[2 + k] + pad - far;
                y[k] = s->result == 2 ? at[2 + k] : s->result == 1 ? rest[k] : from / stride;
                x[k] = s->result == 0 ? at[2 + k] : y[k] * stride - pad + far;
                meet = meet && (s->result != 0 || (from >= 0 && from % stride == 0));
            }
            if (meet) {
                sum += s->result == 2 ? read(s->operand[0], dims[0], at[0], at[1] / f * c + i, x) *
                                            read(s->operand[1], dims[1], at[1], i, w)
                       : s->result == 1 ? read(s->operand[0], dims[0], i, at[0] / f * c + at[1], x) *
                                              read(s->operand[2], dims[2], i, at[0], y)
                                        : read(s->operand[2], dims[2], at[0], at[1] / c * f + i, y) *
                                              read(s->operand[1], dims[1], at[1] / c * f + i, at[1] % c, w);
            }
        }
    }
    return sum;
}

double bench_sums_error(const struct bench_sums *s, const float *have)
{
    static const int orders[2][5] = { { 0, 1, 2, 3, 4 }, { 0, 2, 3, 4, 1 } };
    const int64_t *dims = s->dims[s->result];
    double wrong = 0, all = 0;
    uint64_t state = 7;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t at[5], place = 0;
        for (int k = 0; k < 5; k++) {
            at[k] = (int64_t)(random_next(&state) * (double)dims[k]);
        }
        for (int k = 0; k < 5; k++) {
            place = place * dims[orders[s->last][k]] + at[orders[s->last][k]];
        }
        double want = element(s, at), d = have[place] - want;
        wrong += d * d;
        all += want * want;
    }
    return sqrt(wrong / all);
}

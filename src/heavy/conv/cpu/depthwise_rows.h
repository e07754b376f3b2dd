/* depthwise_rows.h: the three loops over rows of a depthwise convolution, for one instruction set. TARGET is
 * the function attribute, NAME makes the names of functions. The compiler lowers vectors of 16 to the
 * target's registers. Reads may go up to a vector beyond a row; writes never do. */

TARGET static void NAME(forward)(float *to, const float *x, const struct mc_depthwise_taps *t, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2 * DEPTH_LANES) {
        vector a = { 0 }, b = { 0 };
        for (int64_t k = 0; k < t->n; k++) {
            const float *from = x + t->at[k] + i;
            const vector w = t->w[k] - (vector){ 0 };
            a += w * *(const vector *)(const void *)from;
            b += w * *(const vector *)(const void *)(from + DEPTH_LANES);
        }
        if (i + 2 * DEPTH_LANES <= n) {
            *(vector *)(void *)(to + i) = a;
            *(vector *)(void *)(to + i + DEPTH_LANES) = b;
        } else {
            vector last[2] = { a, b };
            memcpy(to + i, last, (size_t)(n - i) * sizeof *to);
        }
    }
}

TARGET static void NAME(add)(float *to, const float *y, float w, int64_t n)
{
    int64_t i = 0;
    const vector many = w - (vector){ 0 };
    for (; i + DEPTH_LANES <= n; i += DEPTH_LANES) {
        *(vector *)(void *)(to + i) += many * *(const vector *)(const void *)(y + i);
    }
    for (; i < n; i++) {
        to[i] += w * y[i];
    }
}

TARGET static void NAME(weights)(float *sum, const float *x, const float *y,
                                 const struct mc_depthwise_taps *t, int64_t n)
{
    static const lanes index = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int64_t whole = n / DEPTH_LANES * DEPTH_LANES;
    const lanes in = index < (int)(n - whole); /* masks what follows the row, which may be NaN */
    for (int64_t k = 0; k < t->n; k++) {
        const float *from = x + t->at[k];
        vector all = *(const vector *)(const void *)(sum + k * DEPTH_LANES);
        for (int64_t i = 0; i < whole; i += DEPTH_LANES) {
            all += *(const vector *)(const void *)(from + i) * *(const vector *)(const void *)(y + i);
        }
        if (whole < n) {
            const lanes last = *(const lanes *)(const void *)(from + whole) & in;
            all += (vector)last * *(const vector *)(const void *)(y + whole);
        }
        *(vector *)(void *)(sum + k * DEPTH_LANES) = all;
    }
}

static const struct mc_depthwise_rows NAME(rows) = { NAME(forward), NAME(add), NAME(weights) };

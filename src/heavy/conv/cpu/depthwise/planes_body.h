/* planes_body.h: planes from planes (struct mc_depth_flat), compiled for each instruction set with body.h,
 * which includes this file.
 *
 * Invariant: a sum is added in the order of the taps, on every instruction set. */

/* Lines of n floats that are `step` apart. A short one ends with zeros, up to L - 1 of them. */
FUSED V short_line(const float *from, int64_t n, const int64_t step)
{
    const V v = step == 1 ? load(from) : __builtin_shufflevector(load(from), load(from + L), EVEN);
    return first_lanes(v, (int)n);
}

FUSED void long_line(float *to, const float *from, int64_t n, const int64_t step)
{
    for (int64_t i = 0; i < n; i += L) {
        const int64_t k = MC_MIN(i, n - L);
        const float *at = from + step * k;
        store(to + k, step == 1 ? load(at) : __builtin_shufflevector(load(at), load(at + L), EVEN));
    }
}

FUSED void lines_in(float *to, int64_t to_step, const float *from, int64_t from_step, int64_t lines,
                    int64_t n, const int64_t step, int64_t limit)
{
    const bool whole = step <= 2 && (lines - 1) * from_step + step * MC_MAX(n, (int64_t)L) <= limit;
    for (int64_t r = 0; r < lines; r++, to += to_step, from += from_step) {
        if (whole && n < L) {
            store(to, short_line(from, n, step));
        } else if (whole) {
            long_line(to, from, n, step);
        } else {
            for (int64_t i = 0; i < n; i++) {
                to[i] = from[i * step];
            }
        }
    }
}

/* The phase (down, across) of a plane. */
FUSED void phase_in(const struct mc_depth_flat *f, int64_t plane, int64_t down, int64_t across,
                    const int64_t by, const int64_t step)
{
    const int64_t above = f->pad[0] > down ? (f->pad[0] - down + by - 1) / by : 0,
                  left = f->pad[1] > across ? (f->pad[1] - across + step - 1) / step : 0,
                  row = above * by + down - f->pad[0], column = left * step + across - f->pad[1],
                  lines = MC_MIN((f->in[0] - row + by - 1) / by, f->lines - above),
                  n = MC_MIN((f->in[1] - column + step - 1) / step, f->pitch - left),
                  at = plane * f->in[0] * f->in[1] + row * f->in[1] + column;
    if (lines > 0 && n > 0) {
        lines_in(f->copy + plane * f->copy_plane + (down * f->phases[1] + across) * f->phase +
                     above * f->pitch + left,
                 f->pitch, f->x + at, by * f->in[1], lines, n, step, f->x_limit - at);
    }
}

FUSED void plane_in(const struct mc_depth_flat *f, int64_t plane, const int64_t by, const int64_t step)
{
    for (int64_t i = 0; i < f->phases[0]; i++) {
        for (int64_t j = 0; j < f->phases[1]; j++) {
            phase_in(f, plane, i, j, by, step);
        }
    }
}

/* Four vectors of sums. */
FUSED void flat_sums(const int64_t taps, const struct mc_depth_flat *f, const float *w, const float *copy,
                     float *to)
{
    V acc[4] = { { 0 } };
    UNROLL(9)
    for (int64_t t = 0; t < taps; t++) {
        const V one = w[t] - (V){ 0 };
        const float *x = copy + f->at[t];
        UNROLL(4)
        for (int k = 0; k < 4; k++) {
            acc[k] += one * load(x + k * L);
        }
    }
    UNROLL(4)
    for (int k = 0; k < 4; k++) {
        store(to + k * L, acc[k]);
    }
}

/* All rows as one of the copy's pitch. */
FUSED void short_rows(const struct mc_depth_flat *f, int64_t plane)
{
    const float *w = f->taps_of + plane * f->taps, *copy = f->copy + plane * f->copy_plane;
    float *to = f->sums + plane * f->sums_plane;
    for (int64_t i = 0; i < (f->out[0] - 1) * f->pitch + f->out[1]; i += 4 * L) {
        if (f->taps == 9) {
            flat_sums(9, f, w, copy + i, to + i);
        } else {
            flat_sums(f->taps, f, w, copy + i, to + i);
        }
    }
}

/* What is written beyond a row is the next one's. */
FUSED void short_rows_out(const struct mc_depth_flat *f, int64_t plane)
{
    const int64_t rows = f->out[0], n = f->out[1], limit = (f->planes - plane) * rows * n;
    const bool whole = (rows - 1) * n + L <= limit;
    float *to = f->y + plane * rows * n;
    const float *from = f->sums + plane * f->sums_plane;
    for (int64_t r = 0; r < rows; r++, to += n, from += f->pitch) {
        if (whole || r * n + L <= limit) {
            store(to, load(from));
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            to[i] = from[i];
        }
    }
}

/* The last vector of a row ends with it. */
FUSED void long_rows(const struct mc_depth_flat *f, int64_t plane)
{
    for (int64_t t = 0; t < f->taps; t++) {
        store(f->w + t * L, f->taps_of[plane * f->taps + t] - (V){ 0 });
    }
    struct mc_depth_sum s = { .group = f->group,
                              .groups = f->groups,
                              .x = f->copy + plane * f->copy_plane,
                              .w = f->w,
                              .y = f->y + plane * f->out[0] * f->out[1],
                              .x_row = f->pitch,
                              .y_row = f->out[1],
                              .w_tap = L,
                              .x_strip = L,
                              .y_strip = L,
                              .rows = f->out[0],
                              .strips = f->out[1] / L };
    sum(&s);
    if (f->out[1] % L) {
        s.x += f->out[1] - L;
        s.y += f->out[1] - L;
        s.strips = 1;
        sum(&s);
    }
}

/* Stage by stage, so that no load waits for the stores in front of it. */
TARGET static void flat(const struct mc_depth_flat *f)
{
    for (int64_t k = 0; k < f->planes; k++) {
        if (f->step[0] == 1 && f->step[1] == 1) {
            plane_in(f, k, 1, 1);
        } else if (f->step[0] == 2 && f->step[1] == 2) {
            plane_in(f, k, 2, 2);
        } else {
            plane_in(f, k, f->step[0], f->step[1]);
        }
    }
    for (int64_t k = 0; k < f->planes; k++) {
        if (f->out[1] < L) {
            short_rows(f, k);
        } else {
            long_rows(f, k);
        }
    }
    for (int64_t k = 0; k < f->planes && f->out[1] < L; k++) {
        short_rows_out(f, k);
    }
}

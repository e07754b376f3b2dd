/* channels_body.h: sums of blocks of channels (struct mc_depth_block), compiled for each instruction set with
 * body.h, which includes this file.
 *
 * Invariant: a sum is added in the order of the taps, on every instruction set. */

/* One tap's terms for n positions that are a constant step apart. */
FUSED void add_tap(const int n, V acc[DEPTH_ROWS], const float *w, const float *x, const int64_t step)
{
    const V one = load(w);
    UNROLL(8)
    for (int j = 0; j < n; j++) {
        acc[j] += one * load(x + j * step * L);
    }
}

/* n positions of a row. small: there are three by three taps. */
FUSED void some_sums(const int n, const bool small, const int64_t step, const struct mc_depth_block *b,
                     const float *x, float *to)
{
    V acc[DEPTH_ROWS];
    UNROLL(8)
    for (int j = 0; j < n; j++) {
        acc[j] = (V){ 0 };
    }
    if (small) {
        UNROLL(9)
        for (int t = 0; t < 9; t++) {
            add_tap(n, acc, b->w + t * L, x + (t / 3 * b->pitch + t % 3) * L, step);
        }
    } else {
        const float *w = b->w;
        for (int64_t r = 0; r < b->taps[0]; r++) {
            for (int64_t c = 0; c < b->taps[1]; c++, w += L) {
                add_tap(n, acc, w, x + (r * b->pitch + c) * L, step);
            }
        }
    }
    UNROLL(8)
    for (int j = 0; j < n; j++) {
        store(to + j * L, acc[j]);
    }
}

/* The last n positions of a row may be computed twice. */
FUSED void block_rows(const int n, const bool small, const int64_t step, const struct mc_depth_block *b)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const float *x = b->copy + i * b->step[0] * b->pitch * L;
        float *to = b->sums + i * b->columns * L;
        for (int64_t j = 0; j < b->columns; j += n) {
            const int64_t k = MC_MIN(j, b->columns - n);
            some_sums(n, small, step, b, x + k * step * L, to + k * L);
        }
    }
}

FUSED void block_by(const int n, const struct mc_depth_block *b)
{
    const bool small = b->taps[0] == 3 && b->taps[1] == 3;
    if (small && b->step[1] == 1) {
        block_rows(n, true, 1, b);
    } else if (small && b->step[1] == 2) {
        block_rows(n, true, 2, b);
    } else {
        block_rows(n, false, b->step[1], b);
    }
}

/* As many positions at once as leave the fewest sums to compute twice, and load filters least often. */
TARGET static void block(const struct mc_depth_block *b)
{
    static const int many[] = { 8, 7, 6, 4, 1 };
    int64_t best = 0, least = INT64_MAX;
    for (int i = 0; i < (int)NELEM(many); i++) {
        const int64_t cost = (b->columns + many[i] - 1) / many[i] * (many[i] + 1);
        if (many[i] <= b->columns && cost < least) {
            best = many[i];
            least = cost;
        }
    }
    switch (best) {
    case 8: block_by(8, b); break;
    case 7: block_by(7, b); break;
    case 6: block_by(6, b); break;
    case 4: block_by(4, b); break;
    default: block_by(1, b); break;
    }
}

/* channels_body.h: sums of blocks of channels (struct mc_depth_block), compiled for each instruction set with
 * body.h, which includes this file.
 *
 * Invariant: a sum is added in the order of the taps, on every instruction set. */

/* n positions of a row, a constant step apart. */
FUSED void some_sums(const int n, const int64_t down, const int64_t across, const int64_t step,
                     const struct mc_depth_block *b, const float *x, float *to)
{
    V acc[DEPTH_ROWS];
    const float *w = b->w;
    UNROLL(8)
    for (int j = 0; j < n; j++) {
        acc[j] = (V){ 0 };
    }
    UNROLL(3)
    for (int64_t r = 0; r < down; r++) {
        UNROLL(3)
        for (int64_t c = 0; c < across; c++, w += L) {
            const V one = load(w);
            UNROLL(8)
            for (int j = 0; j < n; j++) {
                acc[j] += one * load(x + (r * b->pitch + c + j * step) * L);
            }
        }
    }
    UNROLL(8)
    for (int j = 0; j < n; j++) {
        store(to + j * L, acc[j]);
    }
}

/* The last n positions of a row may be computed twice. */
FUSED void block_rows(const int n, const int64_t down, const int64_t across, const int64_t step,
                      const struct mc_depth_block *b)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const float *x = b->copy + i * b->step[0] * b->pitch * L;
        float *to = b->sums + i * b->columns * L;
        for (int64_t j = 0; j < b->columns; j += n) {
            const int64_t k = MC_MIN(j, b->columns - n);
            some_sums(n, down, across, step, b, x + k * step * L, to + k * L);
        }
    }
}

FUSED void block_by(const int n, const struct mc_depth_block *b)
{
    const bool small = b->taps[0] == 3 && b->taps[1] == 3;
    if (small && b->step[1] == 1) {
        block_rows(n, 3, 3, 1, b);
    } else if (small && b->step[1] == 2) {
        block_rows(n, 3, 3, 2, b);
    } else {
        block_rows(n, b->taps[0], b->taps[1], b->step[1], b);
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

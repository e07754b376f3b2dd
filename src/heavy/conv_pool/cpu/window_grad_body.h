/* window_grad_body.h: the sums of window_grad.h, compiled for each instruction set by the file that
 * includes it. That file defines TARGET, L (lanes), MOST (vectors of a call for inputs), EACH(F) for 1 to
 * MOST, and for weights SHAPES(F): the lines and columns of vectors that fit in registers; SUMS: the most
 * vectors of a shape; LINES: the most lines by columns.
 *
 * Invariant: a sum begins at zero and has its terms in a fixed order. Then it is added to memory. */
#include "heavy/conv/cpu/lanes.h"

FUSED void add_to(float *p, V v)
{
    store(p, load(p) + v);
}

/* Offsets in bytes, kept in registers or on the stack, so that they are not read again through a pointer. */
FUSED void in_bytes(const int nv, int64_t *to, const int64_t *from)
{
    UNROLL(12)
    for (int v = 0; v < nv; v++) {
        to[v] = from[v] * (int64_t)sizeof(float);
    }
}

FUSED void weights_of(const int lines, const int columns, const struct mc_window_grad_weights *a)
{
    V sum[SUMS];
    const int64_t line = a->x_line;
    UNROLL(28)
    for (int v = 0; v < lines * columns; v++) {
        sum[v] = (V){ 0 };
    }
    for (int64_t i = 0; i < a->n; i++) {
        const float *x = a->x + a->first[i] + a->off[a->mark[i]];
        const float g = a->g[i];
        UNROLL(7)
        for (int u = 0; u < lines; u++) {
            /* keeps x in one register; columns are constant offsets from it, not pointers in other
             * registers */
            __asm__("" : "+r"(x));
            UNROLL(7)
            for (int v = 0; v < columns; v++) {
                sum[u * columns + v] += g * load(x + v * L);
            }
            x += line;
        }
    }
    UNROLL(28)
    for (int v = 0; v < lines * columns; v++) {
        add_to(a->sum + v / columns * a->sum_line + v % columns * L, sum[v]);
    }
}

FUSED void inputs_of(const int nv, const struct mc_window_grad_inputs *a)
{
    int64_t tap[MOST];
    in_bytes(nv, tap, a->tap);
    for (int64_t e = 0; e < a->n; e++) {
        V sum[MOST];
        char *const x = (char *)(a->x + a->cell_offset[e]);
        if (a->begin[e] == a->begin[e + 1]) {
            continue;
        }
        UNROLL(12)
        for (int v = 0; v < nv; v++) {
            sum[v] = (V){ 0 };
        }
        for (int64_t i = a->begin[e]; i < a->begin[e + 1]; i++) {
            const float *w = a->w + a->at[i], g = a->g[i];
            UNROLL(12)
            for (int v = 0; v < nv; v++) {
                sum[v] += g * load(w + v * L);
            }
        }
        UNROLL(12)
        for (int v = 0; v < nv; v++) {
            add_to((float *)(void *)(x + tap[v]), sum[v]);
        }
    }
}

/* One function for each shape.  They are selected by `switch`, because a table of functions is relocated when
 * the library is loaded. */
#define WEIGHTS(lines, columns)                                                                              \
    static TARGET __attribute__((noinline)) void weights_##lines##x##columns(                                \
        const struct mc_window_grad_weights *a)                                                              \
    {                                                                                                        \
        weights_of(lines, columns, a);                                                                       \
    }
#define INPUTS(nv)                                                                                           \
    static TARGET __attribute__((noinline)) void inputs_##nv(const struct mc_window_grad_inputs *a)          \
    {                                                                                                        \
        inputs_of(nv, a);                                                                                    \
    }
SHAPES(WEIGHTS)
EACH(INPUTS)

#define CALL_WEIGHTS(lines, columns)                                                                         \
    case (lines) * (WINDOW_GRAD_ACROSS + 1) + (columns): weights_##lines##x##columns(a); break;
#define CALL_INPUTS(nv) case nv: inputs_##nv(a); break;
static void weights(const struct mc_window_grad_weights *a, int lines, int columns)
{
    switch (lines * (WINDOW_GRAD_ACROSS + 1) + columns) {
        SHAPES(CALL_WEIGHTS)
    default: break;
    }
}

static void inputs(const struct mc_window_grad_inputs *a, int vectors)
{
    switch (vectors) {
        EACH(CALL_INPUTS)
    default: break;
    }
}

static const struct mc_window_grad_kernel kernel = { .lanes = L, .most = MOST, .lines = LINES,
                                                     .weights = weights, .inputs = inputs };

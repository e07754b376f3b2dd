/* marked_body.h: the one text of the sums over marked windows, compiled for each instruction set by the file that includes
 * it, which defines TARGET, L (lanes), MOST (vectors of a call) and EACH(F) for 1 to MOST.
 *
 * Invariant: a sum begins at zero and has its terms in their order; then it is added to what is there. */
#include "conv/lanes.h"

FUSED void add_to(float *p, V v)
{
    store(p, load(p) + v);
}

/* Distances in bytes: a register each, or a place beside the stack, not to be read again through a pointer. */
FUSED void in_bytes(const int nv, int64_t *to, const int64_t *from)
{
    UNROLL(12)
    for (int v = 0; v < nv; v++) {
        to[v] = from[v] * (int64_t)sizeof(float);
    }
}

FUSED void weights_of(const int nv, const struct mc_marked_weights *a)
{
    V sum[MOST];
    int64_t tap[MOST];
    in_bytes(nv, tap, a->tap);
    UNROLL(12)
    for (int v = 0; v < nv; v++) {
        sum[v] = (V){ 0 };
    }
    for (int64_t i = 0; i < a->n; i++) {
        const char *at = (const char *)(a->x + a->first[i] + a->off[a->mark[i]]);
        const float g = a->g[i];
        __asm__("" : "+r"(at)); /* one register: with tap[v] it is the address, without a sum of its own */
        UNROLL(12)
        for (int v = 0; v < nv; v++) {
            sum[v] += g * load((const float *)(const void *)(at + tap[v]));
        }
    }
    UNROLL(12)
    for (int v = 0; v < nv; v++) {
        add_to(a->sum + v * L, sum[v]);
    }
}

FUSED void inputs_of(const int nv, const struct mc_marked_inputs *a)
{
    V sum[MOST];
    UNROLL(12)
    for (int v = 0; v < nv; v++) {
        sum[v] = (V){ 0 };
    }
    for (int64_t i = 0; i < a->n; i++) {
        const float *w = a->w + a->at[i], g = a->g[i];
        UNROLL(12)
        for (int v = 0; v < nv; v++) {
            sum[v] += g * load(w + v * L);
        }
    }
    UNROLL(12)
    for (int v = 0; v < nv; v++) {
        add_to(a->x + a->tap[v], sum[v]);
    }
}

#define WEIGHTS(nv) \
    static TARGET void weights_##nv(const struct mc_marked_weights *a) { weights_of(nv, a); }
#define INPUTS(nv) \
    static TARGET void inputs_##nv(const struct mc_marked_inputs *a) { inputs_of(nv, a); }
EACH(WEIGHTS)
EACH(INPUTS)

#define WEIGHTS_ROW(nv) [nv] = weights_##nv,
#define INPUTS_ROW(nv) [nv] = inputs_##nv,
static void weights(const struct mc_marked_weights *a, int vectors)
{
    static void (*const of[])(const struct mc_marked_weights *) = { EACH(WEIGHTS_ROW) };
    of[vectors](a);
}

static void inputs(const struct mc_marked_inputs *a, int vectors)
{
    static void (*const of[])(const struct mc_marked_inputs *) = { EACH(INPUTS_ROW) };
    of[vectors](a);
}

static const struct mc_marked_kernel kernel = { .lanes = L, .most = MOST, .weights = weights, .inputs = inputs };

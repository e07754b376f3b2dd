/* draw.c: uniform numbers in vectors (philox.h), with threads.
 *
 * Invariant: the numbers are those of the reference in op/random.c, bit for bit. */
#include "heavy/lines/draw.h"

enum { PART = 4096 };           /* elements of a task */
static const double SECONDS = 6e-10;

struct draw { uint64_t key, step; char *y; int64_t n; bool wide; const struct level *level; };

static void floats_plain(uint64_t key, uint64_t step, uint64_t block, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = (float)(mc_random_word(block * 4 + (uint64_t)i, key, step, 0) >> 8) * 0x1p-24f;
    }
}

static void doubles_plain(uint64_t key, uint64_t step, uint64_t block, int64_t n, double *y)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = (double)(mc_random_word(block * 2 + (uint64_t)i, key, step, 1) >> 11) * 0x1p-53;
    }
}

static const struct level {
    void (*floats)(uint64_t key, uint64_t step, uint64_t block, int64_t n, float *y);
    void (*doubles)(uint64_t key, uint64_t step, uint64_t block, int64_t n, double *y);
} levels[ISA_COUNT] = {
#if defined(__x86_64__)
    [ISA_AVX512] = { mc_draw_floats_avx512, mc_draw_doubles_avx512 },
    [ISA_AVX2]   = { mc_draw_floats_avx2,   mc_draw_doubles_avx2   },
#endif
    [ISA_PLAIN]  = { floats_plain,          doubles_plain          },
};

static const struct level *level(void)
{
    static const int lanes[ISA_COUNT] = { [ISA_AVX512] = 8, [ISA_AVX2] = 4, [ISA_PLAIN] = 1 };
    const enum mc_isa isa = mc_isa_fitting(lanes, 8);
    return &levels[levels[isa].floats ? isa : ISA_PLAIN];
}

static void draw_part(void *arg, int64_t part, int slot)
{
    const struct draw *d = arg;
    const int64_t from = part * PART, m = MC_MIN(d->n - from, (int64_t)PART);
    (void)slot;
    if (d->wide) {
        d->level->doubles(d->key, d->step, (uint64_t)from / 2, m, (double *)(void *)d->y + from);
    } else {
        d->level->floats(d->key, d->step, (uint64_t)from / 4, m, (float *)(void *)d->y + from);
    }
}

size_t mc_draw_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    (void)in;
    (void)threads;
    return n->type.dtype == MC_FLOAT32 || n->type.dtype == MC_FLOAT64 ? 0 : SIZE_MAX;
}

mc_status mc_draw_run(const struct mc_line_work *w)
{
    const mc_array *rng = w->in[0], *y = w->out[0];
    const uint64_t seed = (uint64_t)mc_load_i64(MC_UINT64, rng->data);
    struct draw d = { .key = mc_random_mix(seed, (uint64_t)mc_attr_int(&w->node->attr[0])),
                      .step = (uint64_t)mc_load_i64(MC_UINT64, rng->data + rng->strides[0]),
                      .y = y->data, .n = mc_array_size(y), .wide = y->dtype == MC_FLOAT64, .level = level() };
    mc_team_tasks(draw_part, &d, (d.n + PART - 1) / PART, w->threads, w->threads, (double)d.n * SECONDS);
    return MC_OK;
}

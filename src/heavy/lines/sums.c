/* sums.c: running sums of lines along the last axis.
 *
 * Floats are added in blocks, each from zero, and what precedes a block is added to its sums: the order of
 * the reference (src/op/running.c), whose blocks are as long. So blocks can be computed side by side. */
#define LEVEL plain
#define TARGET
#include "heavy/lines/sums.h"

enum { GROUP = MC_SUM_GROUP, MOST_PARTS = 16, PART_LEAST = 1 << 14 };
static const double SECONDS = 6e-10;

struct sums {
    mc_dtype from, to, work;
    const char *x;
    char *y;
    int64_t sx, sy, n, blocks, first; /* first: blocks of all parts but the last */
    int parts;
    const struct mc_sum_level *level;
    struct mc_line_set set;
    char *scratch;
    union total { double f; uint64_t u; } *total; /* (first): of a block, then of those before it */
};

static int parts_of(int64_t n, int within)
{
    return n < PART_LEAST ? 1 : MC_MIN(within, (int)MOST_PARTS);
}

static const struct mc_sum_level *level(void)
{
    static const struct mc_sum_level plain = LEVEL_ROW;
#if defined(__x86_64__)
    if (mc_isa_runs(ISA_AVX512)) {
        return &mc_sums_avx512;
    }
    if (mc_isa_runs(ISA_AVX2)) {
        return &mc_sums_avx2;
    }
#endif
    return &plain;
}

/* Local running sums of n elements from `at` on, of up to GROUP blocks, and their totals. */
static void local_sums(const struct sums *s, int64_t at, int64_t n, double *b, double *total)
{
    const char *x = s->x + at * s->sx;
    if (s->from == MC_FLOAT32 && s->sx == sizeof(float)) {
        s->level->floats((const float *)(const void *)x, n, b, total);
    } else if (s->from == MC_FLOAT64 && s->sx == sizeof(double)) {
        s->level->doubles((const double *)(const void *)x, n, b, total);
    } else {
        mc_convert(MC_FLOAT64, b, sizeof *b, s->from, x, s->sx, n);
        s->level->doubles(b, n, b, total);
    }
}

/* Of one block: what precedes it is added. */
static void store_sums(const struct sums *s, int64_t at, int64_t n, double *b, double off)
{
    char *y = s->y + at * s->sy;
    if (s->to == MC_FLOAT32 && s->sy == sizeof(float)) {
        s->level->to_floats((float *)(void *)y, b, off, n);
    } else if (s->to == MC_FLOAT64 && s->sy == sizeof(double)) {
        s->level->to_doubles((double *)(void *)y, b, off, n);
    } else {
        for (int64_t i = 0; i < n; i++) {
            b[i] = off + b[i];
        }
        mc_convert(s->to, y, s->sy, MC_FLOAT64, b, sizeof *b, n);
    }
}

static void total_group(void *arg, int64_t group, int slot)
{
    const struct sums *s = arg;
    const int64_t block = group * GROUP, at = block * BLOCK,
                  m = MC_MIN(s->first - block, (int64_t)GROUP) * BLOCK;
    (void)slot;
    if (s->work == MC_FLOAT64) {
        double b[GROUP * BLOCK], total[GROUP];
        local_sums(s, at, m, b, total);
        for (int64_t g = 0; g < m / BLOCK; g++) {
            s->total[block + g].f = total[g];
        }
    } else {
        uint64_t x[GROUP * BLOCK];
        mc_convert(s->work, x, sizeof *x, s->from, s->x + at * s->sx, s->sx, m);
        for (int64_t g = 0; g < m / BLOCK; g++) {
            uint64_t sum = 0;
            for (int i = 0; i < BLOCK; i++) {
                sum += x[g * BLOCK + i];
            }
            s->total[block + g].u = sum;
        }
    }
}

/* Sums of whole numbers from `sum` on; int32 and int64 without a copy between. */
static void whole_sums(const struct sums *s, int64_t from, int64_t to, uint64_t sum)
{
    const char *x = s->x + from * s->sx;
    uint64_t *y = (uint64_t *)(void *)(s->y + from * s->sy);
    const int64_t size = mc_dtypes[s->from].size;
    if (s->sy == sizeof *y && s->sx == size && (s->from == MC_INT64 || s->from == MC_UINT64)) {
        s->level->longs(y, (const int64_t *)(const void *)x, to - from, sum);
        return;
    }
    if (s->sy == sizeof *y && s->sx == size && s->from == MC_INT32) {
        s->level->ints(y, (const int32_t *)(const void *)x, to - from, sum);
        return;
    }
    for (int64_t at = from; at < to; at += GROUP * BLOCK) {
        const int64_t m = MC_MIN(to - at, (int64_t)GROUP * BLOCK);
        uint64_t u[GROUP * BLOCK];
        mc_convert(s->work, u, sizeof *u, s->from, s->x + at * s->sx, s->sx, m);
        for (int64_t i = 0; i < m; i++) {
            u[i] = sum += u[i];
        }
        mc_convert(s->to, s->y + at * s->sy, s->sy, s->work, u, sizeof *u, m);
    }
}

static void sum_part(void *arg, int64_t part, int slot)
{
    const struct sums *s = arg;
    const int64_t from = s->blocks * part / s->parts * BLOCK,
                  to = MC_MIN(s->blocks * (part + 1) / s->parts * BLOCK, s->n);
    union total before = { 0 };
    (void)slot;
    if (part) {
        before = s->total[from / BLOCK];
    }
    if (s->work != MC_FLOAT64) {
        whole_sums(s, from, to, before.u);
        return;
    }
    for (int64_t at = from; at < to; at += GROUP * BLOCK) {
        const int64_t m = MC_MIN(to - at, (int64_t)GROUP * BLOCK);
        double b[GROUP * BLOCK], total[GROUP];
        local_sums(s, at, m, b, total);
        for (int64_t g = 0; g * BLOCK < m; g++) {
            store_sums(s, at + g * BLOCK, MC_MIN(m - g * BLOCK, (int64_t)BLOCK), b + g * BLOCK, before.f);
            before.f = before.f + total[g];
        }
    }
}

static void one_line(void *arg, int64_t line, int slot)
{
    struct sums s = *(const struct sums *)arg;
    s.x += mc_line_offset(&s.set, 0, line);
    s.y += mc_line_offset(&s.set, 1, line);
    s.total = (union total *)(void *)s.scratch;
    (void)slot;
    if (s.parts > 1) {
        union total sum = { 0 };
        mc_team_tasks(total_group, &s, (s.first + GROUP - 1) / GROUP, s.parts, s.parts,
                      (double)s.n * SECONDS);
        for (int64_t b = 0; b < s.first; b++) {
            const union total t = s.total[b];
            s.total[b] = sum;
            if (s.work == MC_FLOAT64) {
                sum.f = sum.f + t.f;
            } else {
                sum.u += t.u;
            }
        }
        s.total[s.first] = sum;
    }
    mc_team_tasks(sum_part, &s, s.parts, s.parts, s.parts, (double)s.n * SECONDS);
}

size_t mc_sums_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    const bool last = mc_attr_int(&n->attr[0]) == in[0].rank - 1;
    return last ? ((size_t)(in[0].dims[in[0].rank - 1] / BLOCK) + 2) * sizeof(union total) : SIZE_MAX;
    (void)threads;
}

mc_status mc_sums_run(const struct mc_line_work *w)
{
    const mc_array *x = w->in[0], *y = w->out[0];
    struct sums s = { .from = x->dtype, .to = y->dtype, .x = x->data, .y = y->data,
                      .set = mc_lines_at(w->node, x, y, w->threads),
                      .scratch = w->scratch,
                      .level = level() };
    s.work = mc_is_float(y->dtype) ? MC_FLOAT64 : mc_dtypes[y->dtype].cls == CLASS_U64 ? MC_UINT64 : MC_INT64;
    s.sx = s.set.step[0];
    s.sy = s.set.step[1];
    s.n = s.set.count;
    s.blocks = (s.n + BLOCK - 1) / BLOCK;
    s.parts = parts_of(s.n, s.set.within);
    s.first = s.blocks * (s.parts - 1) / s.parts;
    mc_line_each(&s.set, one_line, &s, SECONDS);
    return MC_OK;
}

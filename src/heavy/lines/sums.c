/* sums.c: running sums of lines along the last axis.
 *
 * Floats are added in blocks, each from zero, and what precedes a block is added to its sums: the order of
 * the reference (src/op/running.c), whose blocks are as long. So blocks can be computed side by side. */
#include "heavy/lines/lines.h"

enum { BLOCK = MC_SUM_BLOCK, GROUP = 4, MOST_PARTS = 16, PART_LEAST = 1 << 14 };
static const double SECONDS = 6e-10;

struct sums {
    mc_dtype from, to, work;
    const char *x;
    char *y;
    int64_t sx, sy, n, blocks, first; /* first: blocks of all parts but the last */
    int parts;
    struct mc_line_set set;
    char *scratch;
    union total { double f; uint64_t u; } *total; /* (first): of a block, then of those before it */
};

static int parts_of(int64_t n, int within)
{
    return n < PART_LEAST ? 1 : MC_MIN(within, (int)MOST_PARTS);
}

/* Local running sums of up to GROUP blocks of doubles, and their totals. x has room for GROUP blocks. */
static void local_sums(double *x, int64_t n, double total[GROUP])
{
    double s[GROUP] = { 0 };
    if (n > BLOCK) {
        memset(x + n, 0, (size_t)(GROUP * BLOCK - n) * sizeof *x);
        for (int i = 0; i < BLOCK; i++) {
            for (int g = 0; g < GROUP; g++) {
                x[g * BLOCK + i] = s[g] += x[g * BLOCK + i];
            }
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            x[i] = s[i / BLOCK] += x[i];
        }
    }
    memcpy(total, s, sizeof s);
}

static void total_group(void *arg, int64_t group, int slot)
{
    const struct sums *s = arg;
    const int64_t block = group * GROUP, at = block * BLOCK,
                  m = MC_MIN(s->first - block, (int64_t)GROUP) * BLOCK;
    (void)slot;
    if (s->work == MC_FLOAT64) {
        double x[GROUP * BLOCK], total[GROUP];
        mc_convert(MC_FLOAT64, x, sizeof *x, s->from, s->x + at * s->sx, s->sx, m);
        local_sums(x, m, total);
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

static bool is_dense(const struct sums *s)
{
    return s->work != MC_FLOAT64 && s->from == s->to && s->sx == 8 && s->sy == 8;
}

/* From x to y without a copy between. */
static void dense_sums(uint64_t *y, const uint64_t *x, int64_t n, uint64_t sum)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) { /* one addition in four waits for the last sum */
        const uint64_t a = x[i], b = a + x[i + 1], c = b + x[i + 2], d = c + x[i + 3];
        y[i] = sum + a;
        y[i + 1] = sum + b;
        y[i + 2] = sum + c;
        y[i + 3] = sum += d;
    }
    for (; i < n; i++) {
        y[i] = sum += x[i];
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
    if (is_dense(s)) {
        dense_sums((uint64_t *)(void *)(s->y + from * 8), (const uint64_t *)(const void *)(s->x + from * 8),
                   to - from, before.u);
        return;
    }
    for (int64_t at = from; at < to; at += GROUP * BLOCK) {
        const int64_t m = MC_MIN(to - at, (int64_t)GROUP * BLOCK);
        union {
            double f[GROUP * BLOCK];
            uint64_t u[GROUP * BLOCK];
        } x;
        mc_convert(s->work, &x, 8, s->from, s->x + at * s->sx, s->sx, m);
        if (s->work == MC_FLOAT64) {
            double total[GROUP];
            local_sums(x.f, m, total);
            for (int64_t g = 0; g * BLOCK < m; g++) {
                const double off = before.f;
                for (int64_t i = g * BLOCK; i < MC_MIN((g + 1) * BLOCK, m); i++) {
                    x.f[i] = off + x.f[i];
                }
                before.f = off + total[g];
            }
        } else {
            uint64_t sum = before.u;
            for (int64_t i = 0; i < m; i++) {
                x.u[i] = sum += x.u[i];
            }
            before.u = sum;
        }
        mc_convert(s->to, s->y + at * s->sy, s->sy, s->work, &x, 8, m);
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
                      .set = mc_lines_at(w->node, x, y, w->threads), .scratch = w->scratch };
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

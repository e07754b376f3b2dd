/* counts.c: how often whole numbers occur, and sums of their weights.
 *
 * Each thread counts in tables of its own, which are added at the end. Sums of float weights are made by one
 * thread, in the order of the elements, as the reference makes them. */
#include "heavy/lines/lines.h"

enum { MOST_BINS = 1 << 16, TABLES = 2, PART_LEAST = 1 << 14 };
static const double SECONDS = 6e-10;

struct counts { const int64_t *i; int64_t n, bins; int parts; int64_t *table; /* (parts, TABLES, bins) */ };

/* Two tables in turn: a number that repeats need not wait for its last count. */
static void count_part(void *arg, int64_t part, int slot)
{
    const struct counts *c = arg;
    const int64_t from = c->n * part / c->parts, to = c->n * (part + 1) / c->parts, *i = c->i;
    int64_t *one = c->table + part * TABLES * c->bins, *two = one + c->bins, k = from;
    (void)slot;
    memset(one, 0, (size_t)(TABLES * c->bins) * sizeof *one);
    for (; k + 1 < to; k += 2) {
        one[i[k]]++;
        two[i[k + 1]]++;
    }
    if (k < to) {
        one[i[k]]++;
    }
}

size_t mc_counts_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    (void)n;
    (void)in;
    return (size_t)(threads * TABLES) * MOST_BINS * sizeof(int64_t);
}

#define WEIGHTED(T)                                                                                \
    static void add_##T(T *y, const int64_t *i, const T *w, int64_t n)                             \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++) {                                                          \
            y[i[k]] += w[k];                                                                       \
        }                                                                                          \
    }
WEIGHTED(float)
WEIGHTED(double)
WEIGHTED(int64_t)

static void add_counts(struct counts *c, int64_t *y, int64_t weight, int threads)
{
    if (c->n < PART_LEAST || c->bins > c->n) {
        const int64_t *i = c->i, n = c->n; /* y might be these, as far as a compiler sees */
        for (int64_t k = 0; k < n; k++) {
            y[i[k]] += weight;
        }
        return;
    }
    c->parts = threads;
    mc_team_tasks(count_part, c, c->parts, c->parts, c->parts, (double)c->n * SECONDS);
    for (int64_t part = 0; part < c->parts * TABLES; part++) {
        for (int64_t b = 0; b < c->bins; b++) {
            y[b] += c->table[part * c->bins + b] * weight;
        }
    }
}

mc_status mc_counts_run(const struct mc_line_work *w)
{
    const mc_array *weight = w->in[1];
    mc_array *y = w->out[0];
    struct counts c = { .i = (const int64_t *)(const void *)w->in[0]->data, .n = w->in[0]->dims[0],
                        .bins = y->dims[0], .table = (int64_t *)(void *)w->scratch };
    const bool counted = !weight->rank && y->dtype == MC_INT64;
    if (mc_array_space(w->in[0]) || !mc_array_is_contiguous(w->in[0]) || !mc_array_is_contiguous(weight) ||
        (!counted && !weight->rank) || (counted && c.bins > MOST_BINS)) {
        return w->node->op->eval(w->node, w->in, w->out);
    }
    memset(y->data, 0, (size_t)c.bins * mc_dtypes[y->dtype].size);
    if (counted) {
        add_counts(&c, (int64_t *)(void *)y->data, *(const int64_t *)(const void *)weight->data, w->threads);
        return MC_OK;
    }
    switch (y->dtype) {
    case MC_FLOAT32:
        add_float((float *)(void *)y->data, c.i, (const float *)(void *)weight->data, c.n);
        break;
    case MC_FLOAT64:
        add_double((double *)(void *)y->data, c.i, (const double *)(void *)weight->data, c.n);
        break;
    case MC_INT64:
        add_int64_t((int64_t *)(void *)y->data, c.i, (const int64_t *)(void *)weight->data, c.n);
        break;
    default: return w->node->op->eval(w->node, w->in, w->out);
    }
    return MC_OK;
}

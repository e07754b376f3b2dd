/* search.c: binary searches of many elements in one vector, some at a time, so that their reads overlap.
 *
 * Invariant: elements are compared by keys, as in sort.c. */
#include "heavy/lines/lines.h"

enum { GROUP = 16, PART = 1024, WORTH = 16 }; /* a vector up to WORTH times as long is made keys of */
static const double SECONDS = 1.5e-8;

struct search {
    const mc_array *v, *y;
    void *key;                  /* of the vector */
    int64_t n, count;
    bool right;
};

#define INLINE static inline __attribute__((always_inline))
/* to[j]: how many of the n keys are below v[j], or not above. */
#define SEARCH(W, U)                                                                                  \
    INLINE void group_##W(const U *a, int64_t n, const U *v, int64_t *to, bool right)                          \
    {                                                                                                          \
        const U *base[GROUP];                                                                                  \
        for (int j = 0; j < GROUP; j++) {                                                                      \
            base[j] = a;                                                                                       \
        }                                                                                                      \
        for (; n > 1;) {                                                                                       \
            const int64_t half = n / 2;                                                                        \
            n -= half;                                                                                         \
            for (int j = 0; j < GROUP; j++) {                                                                  \
                const U at = base[j][half - 1];                                                                \
                base[j] += half & -(int64_t)(right ? at <= v[j] : at < v[j]);                                     \
                __builtin_prefetch(base[j] + n / 2 - 1);                                                       \
            }                                                                                                  \
        }                                                                                                      \
        for (int j = 0; j < GROUP; j++) {                                                                      \
            to[j] = base[j] - a + (right ? *base[j] <= v[j] : *base[j] < v[j]);                                \
        }                                                                                                      \
    }                                                                                                          \
    static void search_part_##W(void *arg, int64_t part, int slot)                                             \
    {                                                                                                          \
        const struct search *s = arg;                                                                          \
        const int64_t size = (int64_t)mc_dtypes[s->v->dtype].size, from = part * PART,                         \
                      to = MC_MIN(from + PART, s->count);                                                      \
        U v[GROUP] = { 0 };                                                                                    \
        (void)slot;                                                                                            \
        for (int64_t at = from; at < to; at += GROUP) {                                                        \
            const int64_t m = MC_MIN(to - at, (int64_t)GROUP);                                                 \
            int64_t place[GROUP];                                                                              \
            mc_keys_##W(v, s->v->dtype, s->v->data + at * size, size, m, 0);                                   \
            if (s->right) {                                                                                    \
                group_##W(s->key, s->n, v, place, true);                                                       \
            } else {                                                                                           \
                group_##W(s->key, s->n, v, place, false);                                                      \
            }                                                                                                  \
            memcpy(s->y->data + at * (int64_t)sizeof *place, place, (size_t)m * sizeof *place);                \
        }                                                                                                      \
    }
SEARCH(32, uint32_t)
SEARCH(64, uint64_t)

size_t mc_search_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    (void)n;
    (void)threads;
    return in[0].dims[0] / WORTH > mc_dims_count(in[1].rank, in[1].dims)
               ? SIZE_MAX
               : (size_t)in[0].dims[0] * sizeof(uint64_t);
}

mc_status mc_search_run(const struct mc_line_work *w)
{
    const mc_array *a = w->in[0];
    struct search s = { .v = w->in[1], .y = w->out[0], .key = w->scratch, .n = a->dims[0],
                        .count = mc_array_size(w->in[1]), .right = strcmp(w->node->attr[0].text, "right") == 0 };
    const bool narrow = mc_dtypes[a->dtype].size <= sizeof(uint32_t);
    if (!mc_array_is_contiguous(s.v)) {
        return w->node->op->eval(w->node, w->in, w->out);
    }
    if (narrow) {
        mc_keys_32(s.key, a->dtype, a->data, a->strides[0], s.n, 0);
    } else {
        mc_keys_64(s.key, a->dtype, a->data, a->strides[0], s.n, 0);
    }
    mc_team_tasks(narrow ? search_part_32 : search_part_64, &s, (s.count + PART - 1) / PART, w->threads,
                  w->threads, (double)s.count * SECONDS);
    return MC_OK;
}

/* first.c: the positions of the first k elements of a line in rising or falling order.
 *
 * A sample gives a limit that probably some more than k keys are not above.  These are gathered, then sorted.
 * If they become too many, the first k stay, and the limit falls; if they are fewer than k, all are gathered.
 * Each part of a line is gathered by one thread.  Invariant: a part sees its elements in their order, so of
 * equal ones the first are kept. */
#include "heavy/lines/lines.h"
#include <math.h>

enum { CHUNK = 256, SHORT = 2048 /* all may be candidates */ };
enum { GATHER_LEAST = SHORT, REGISTER = 16, MOST_PARTS = 16, PART_LEAST = 1 << 14 };
static const double SECONDS = 2e-10;

struct candidates {
    void *key;                  /* (most + REGISTER), of 32 or 64 bits */
    uint32_t *at;               /* as many positions */
    uint64_t *word;             /* twice as many, and room for copies of k keys and positions */
    void *count;
    int64_t many;
};

struct first {
    mc_dtype d;
    uint64_t flip, limit;
    const char *x;
    char *y;
    int64_t sx, sy, n, k, most; /* most: candidates of a part, at most */
    int parts;
    struct mc_line_set set;
    char *scratch;
    struct candidates part[MOST_PARTS];
};

#define W 32
#define U uint32_t
#define NAME(x) x##_32
#define keys_32 mc_keys_32
#define sorted_32(a, b, n, low, count) mc_radix_keys32(a, b, n, count)
#define below_32 mc_quick()->below32
#include "heavy/lines/first.h"
#undef W
#undef U
#undef NAME
#define W 64
#define U uint64_t
#define NAME(x) x##_64
#define keys_64 mc_keys_64
#define sorted_64 mc_radix_keys64
#define below_64 mc_quick()->below64
#include "heavy/lines/first.h"

static int parts_of(int64_t n, int64_t k, int within)
{
    return n < PART_LEAST || k * 8 > n ? 1 : MC_MIN(within, (int)MOST_PARTS);
}

/* Assigns the scratch; the first part has room for what all parts gather.  Its bytes. */
static size_t lay_out(struct first *f, char *scratch)
{
    size_t at = 0;
    for (int i = 0; i < f->parts; i++) {
        const size_t many = (size_t)f->most * (size_t)(i ? 1 : f->parts) + REGISTER;
        f->part[i] = (struct candidates){
            .key = mc_line_take(scratch, &at, many * sizeof(uint64_t)),
            .at = mc_line_take(scratch, &at, many * sizeof(uint32_t)),
            .word = mc_line_take(scratch, &at, (3 * many + (size_t)f->k) * sizeof(uint64_t)),
            .count = mc_line_take(scratch, &at, mc_radix_counts((int64_t)many)),
        };
    }
    return at;
}

static void set_sizes(struct first *f, const mc_node *n, int64_t count, int within)
{
    f->n = count;
    f->k = mc_attr_int(&n->attr[1]);
    f->parts = parts_of(count, f->k, within);
    f->most = f->k * 4 >= count ? count : MC_MIN(MC_MAX(4 * f->k, (int64_t)GATHER_LEAST), count);
}

size_t mc_first_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    const struct mc_line_set s = mc_line_set_of(n, in, threads);
    struct first f;
    set_sizes(&f, n, s.count, s.within);
    return f.k ? lay_out(&f, NULL) * (size_t)s.slots : SIZE_MAX;
}

static void one_line(void *arg, int64_t line, int slot)
{
    struct first f = *(const struct first *)arg;
    lay_out(&f, f.scratch + (size_t)slot * lay_out(&f, NULL));
    f.x += mc_line_offset(&f.set, 0, line);
    f.y += mc_line_offset(&f.set, 1, line);
    const uint64_t *word = mc_dtypes[f.d].size <= sizeof(uint32_t) ? choose_32(&f) : choose_64(&f);
    for (int64_t i = 0; i < f.k; i++) {
        const int64_t at = f.part->at[(uint32_t)word[i]];
        memcpy(f.y + i * f.sy, &at, sizeof at);
    }
}

mc_status mc_first_run(const struct mc_line_work *w)
{
    const mc_array *x = w->in[0], *y = w->out[0];
    struct first f = { .d = x->dtype, .flip = w->node->op->line == LINE_LAST ? UINT64_MAX : 0, .x = x->data,
                       .y = y->data, .set = mc_lines_at(w->node, x, y, w->threads), .scratch = w->scratch };
    f.sx = f.set.step[0];
    f.sy = f.set.step[1];
    set_sizes(&f, w->node, f.set.count, f.set.within);
    mc_line_each(&f.set, one_line, &f, SECONDS);
    return MC_OK;
}

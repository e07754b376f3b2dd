/* buckets.c: sorts of long lines by all threads: elements are counted and moved by the bucket that they
 * belong to, then each bucket is sorted by one thread, in its caches.
 *
 * Invariant: which element goes to which bucket does not depend on the number of threads. */
#include "heavy/lines/lines.h"

enum { CHUNK = 256, ALONE = 1 << 18, SHARED = 1 << 15, MOST_PARTS = 16 };
static const double SECONDS = 2e-9, SORT_SECONDS = 6e-9; /* for an element */

struct work {
    const struct mc_bucket_sort *s;
    const void *heap;
    int64_t start[MC_BUCKETS + 1];
};

#define U uint32_t
#define NAME(x) x##_32
#define sorted_32(a, b, n, low, count) mc_radix_keys32(a, b, n, count)
#define classes_32 mc_quick()->classes32
#include "heavy/lines/buckets.h"
#undef U
#undef NAME
#define U uint64_t
#define NAME(x) x##_64
#define sorted_64 mc_radix_keys64
#define classes_64 mc_quick()->classes64
#include "heavy/lines/buckets.h"

bool mc_buckets_pay(int64_t n, int threads)
{
    return n >= (threads > 1 ? SHARED : ALONE);
}

/* Assigns the scratch.  Its bytes. */
static size_t lay_out(struct mc_bucket_sort *s, char *scratch)
{
    size_t at = 0;
    s->id = mc_line_take(scratch, &at, (size_t)s->n);
    s->count = mc_line_take(scratch, &at, (size_t)s->threads * mc_radix_counts(s->n));
    s->place = mc_line_take(scratch, &at, sizeof *s->place * MC_BUCKETS * MOST_PARTS);
    return at;
}

size_t mc_bucket_bytes(int64_t n, int threads)
{
    struct mc_bucket_sort s = { .n = n, .threads = threads };
    return lay_out(&s, NULL);
}

/* Counts become places: of a bucket, those of the first part come first. */
static void set_places(struct work *w)
{
    int64_t at = 0;
    for (int b = 0; b < MC_BUCKETS; b++) {
        w->start[b] = at;
        for (int part = 0; part < w->s->parts; part++) {
            int64_t *place = &w->s->place[part * MC_BUCKETS + b], count = *place;
            *place = at;
            at += count;
        }
    }
    w->start[MC_BUCKETS] = at;
}

void mc_bucket_run(struct mc_bucket_sort *s, char *scratch)
{
    struct work w = { .s = s };
    uint32_t heap32[MC_BUCKETS];
    uint64_t heap64[MC_BUCKETS];
    lay_out(s, scratch);
    s->parts = MC_MIN(s->threads, (int)MOST_PARTS);
    if (s->wide) {
        choose_64(s, heap64);
    } else {
        choose_32(s, heap32);
    }
    w.heap = s->wide ? (void *)heap64 : (void *)heap32;
    mc_team_tasks(s->wide ? count_part_64 : count_part_32, &w, s->parts, s->parts, s->parts,
                  (double)s->n * SECONDS);
    set_places(&w);
    mc_team_tasks(s->wide ? move_part_64 : move_part_32, &w, s->parts, s->parts, s->parts,
                  (double)s->n * SECONDS);
    mc_team_tasks(s->wide ? sort_bucket_64 : sort_bucket_32, &w, MC_BUCKETS, s->threads, s->threads,
                  (double)s->n * SORT_SECONDS);
}

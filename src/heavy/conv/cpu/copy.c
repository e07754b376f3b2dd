/* copy.c: copies an array into another layout or dtype. Threads copy disjoint boxes.
 *
 * A box is copied in rows along the axis that is innermost in the destination. If another axis is innermost
 * in the source, rows are copied in tiles over the two axes, so that the cache lines of both stay in the L1
 * cache.
 *
 * Invariant: boxes are disjoint and cover the array. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/solver.h"
#include <stdlib.h>

/* a tile: elements along the source's innermost axis, and along the destination's */
enum { ACROSS = 16, ALONG = 64 };

struct axis {
    int64_t size, to, from;         /* strides */
};
struct box {
    struct axis axis[8]; /* those with more than one element, by decreasing stride in the destination */
    int rank;
    int across;                     /* innermost axis of the source if that is not the last; else -1 */
    int64_t to, from;               /* offsets of the first element */
};

static int64_t distance(int64_t v)
{
    return v < 0 ? -v : v;
}

static void add_axis(struct box *b, struct axis a)
{
    int i = b->rank++;
    for (; i > 0 && distance(b->axis[i - 1].to) < distance(a.to); i--) {
        b->axis[i] = b->axis[i - 1];
    }
    b->axis[i] = a;
}

/* Joins adjacent axes that are contiguous in both arrays. */
static void merge(struct box *b)
{
    int n = 0;
    for (int i = 0; i < b->rank; i++) {
        struct axis *last = n ? &b->axis[n - 1] : NULL, a = b->axis[i];
        if (last && last->to == a.to * a.size && last->from == a.from * a.size) {
            *last = (struct axis){ last->size * a.size, a.to, a.from };
        } else {
            b->axis[n++] = a;
        }
    }
    b->rank = n;
}

static struct box make_box(const struct mc_conv_copy *c, const int64_t *at, const int64_t *size)
{
    struct box b = { .across = -1 };
    for (int i = 0; i < c->rank; i++) {
        b.to += at[i] * c->to_stride[i];
        b.from += at[i] * c->from_stride[i];
        if (size[i] > 1) {
            add_axis(&b, (struct axis){ size[i], c->to_stride[i], c->from_stride[i] });
        }
    }
    merge(&b);
    if (b.rank == 0) {
        b.axis[b.rank++] = (struct axis){ 1, 1, 1 };
    }
    int64_t near = distance(b.axis[b.rank - 1].from);
    for (int i = 0; i + 1 < b.rank; i++) {
        if (distance(b.axis[i].from) < near) {
            near = distance(b.axis[i].from);
            b.across = i;
        }
    }
    return b;
}

#define ROW(type)                                                                                            \
    static void row_##type(type *restrict to, int64_t ts, const type *restrict from, int64_t fs, int64_t n)  \
    {                                                                                                        \
        if (ts == 1 && fs == 1) {                                                                            \
            memcpy(to, from, (size_t)n * sizeof *to);                                                        \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            to[i * ts] = from[i * fs];                                                                       \
        }                                                                                                    \
    }
ROW(float)
ROW(double)

static void row(const struct mc_conv_copy *c, int64_t to, int64_t ts, int64_t from, int64_t fs, int64_t n)
{
    if (c->to_type == c->from_type && c->to_type == MC_FLOAT32) {
        row_float((float *)c->to + to, ts, (const float *)c->from + from, fs, n);
    } else if (c->to_type == c->from_type && c->to_type == MC_FLOAT64) {
        row_double((double *)c->to + to, ts, (const double *)c->from + from, fs, n);
    } else {
        const int64_t tb = mc_dtypes[c->to_type].size, fb = mc_dtypes[c->from_type].size;
        mc_convert(c->to_type, (char *)c->to + to * tb, ts * tb, c->from_type,
                   (const char *)c->from + from * fb, fs * fb, n);
    }
}

/* Copies all of the last axis and of axis `across`, at one point of the others. */
static void plane(const struct mc_conv_copy *c, const struct box *b, int64_t to, int64_t from)
{
    const struct axis last = b->axis[b->rank - 1],
                      cross = b->across < 0 ? (struct axis){ 1, 0, 0 } : b->axis[b->across];
    const int64_t most = b->across < 0 ? last.size : ALONG;
    for (int64_t j0 = 0; j0 < cross.size; j0 += ACROSS) {
        for (int64_t i = 0; i < last.size; i += most) {
            for (int64_t j = j0; j < MC_MIN(j0 + ACROSS, cross.size); j++) {
                row(c, to + j * cross.to + i * last.to, last.to, from + j * cross.from + i * last.from,
                    last.from, MC_MIN(most, last.size - i));
            }
        }
    }
}

static void copy_box(const struct mc_conv_copy *c, const int64_t *at, const int64_t *size)
{
    const struct box b = make_box(c, at, size);
    int64_t index[8] = { 0 }, to = b.to, from = b.from;
    for (;;) {
        plane(c, &b, to, from);
        int i = b.rank - 2;
        for (; i >= 0; i--) {
            if (i == b.across) {
                continue;
            }
            to += b.axis[i].to;
            from += b.axis[i].from;
            if (++index[i] < b.axis[i].size) {
                break;
            }
            to -= index[i] * b.axis[i].to;
            from -= index[i] * b.axis[i].from;
            index[i] = 0;
        }
        if (i < 0) {
            return;
        }
    }
}

/* ---- tasks: an index of the outermost axis of the destination, or of the two outermost ---- */

struct job {
    const struct mc_conv_copy *c;
    int first, second;              /* the axes divided among tasks, or -1 */
};

static int outermost(const struct mc_conv_copy *c, int but)
{
    int best = -1;
    for (int i = 0; i < MC_MIN(c->rank, 5); i++) {
        const bool more = best < 0 || distance(c->to_stride[i]) > distance(c->to_stride[best]);
        best = i != but && c->size[i] > 1 && more ? i : best;
    }
    return best;
}

static void task(void *arg, int64_t i, int slot)
{
    const struct job *j = arg;
    const struct mc_conv_copy *c = j->c;
    int64_t at[8] = { 0 }, size[8], position[5];
    (void)slot;
    memcpy(size, c->size, sizeof size);
    if (j->second >= 0) {
        at[j->second] = i % c->size[j->second];
        size[j->second] = 1;
        i /= c->size[j->second];
    }
    if (j->first >= 0) {
        at[j->first] = i;
        size[j->first] = 1;
    }
    copy_box(c, at, size);
    if (c->finish) {
        memcpy(position, at, sizeof position);
        position[0] += c->finish_at;
        conv_finish(c->finish, position, size);
    }
}

void mc_conv_copy_array(const struct mc_conv_copy *c, int threads)
{
    struct job j = { c, outermost(c, -1), -1 };
    int64_t n = j.first >= 0 ? c->size[j.first] : 1, count = 1;
    if (n < 32) {
        j.second = outermost(c, j.first);
        n *= j.second >= 0 ? c->size[j.second] : 1;
    }
    for (int i = 0; i < c->rank; i++) {
        count *= c->size[i];
    }
    if (count > 0) {
        mc_team_tasks(task, &j, n, threads, threads, (double)count * 5e-10);
    }
}

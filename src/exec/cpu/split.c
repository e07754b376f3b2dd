/* split.c: how threads share a kernel's work, and whether its results are stored past the caches.
 *
 * Invariant: the order in which numbers are added follows from the shape alone, never from the number of
 * threads. */
#include "exec/cpu/launch.h"

/* bytes of operands: more does not stay even in a large cache shared by many cores */
static const double MOST_KEPT = 24e6;
enum { REDUCTION_CHUNK = 32768, REDUCTION_CHUNKS = 256 };

/* Each reduction of a row adds 8 ns, to combine the lanes. */
static double ns_of(const struct mc_kernel *k, const struct mc_launch *l, double elements)
{
    double rows = k->mode == KERNEL_ROW ? (double)(l->n[1] * l->outer_total) : 0;
    return elements * (k->flops * 0.03) + l->bytes * 0.03 + rows * k->nreduce * 8;
}

static int threads_for(const struct mc_function *f, double ns)
{
    return ns < 8000 ? 1 : f->threads;
}

int mc_launch_threads(const struct mc_function *f, double flops, double bytes)
{
    return threads_for(f, (flops + bytes) * 0.03);
}

void mc_launch_split(const struct mc_function *f, const struct mc_step *st, struct mc_launch *l,
                     double elements)
{
    enum mc_kernel_mode mode = st->kernel->mode;
    l->ns = ns_of(st->kernel, l, elements);
    l->threads = threads_for(f, l->ns);
    l->split = SPLIT_NOT;
    l->units = l->grain = 1;
    if (mode == KERNEL_FULL_REDUCTION) {
        int64_t chunks = l->outer_total;
        l->chunk = l->n[0];
        if (l->outer_total == 1 && l->n[2] == 1 && l->n[0] > REDUCTION_CHUNK) {
            chunks = MC_MIN((l->n[0] + REDUCTION_CHUNK - 1) / REDUCTION_CHUNK, REDUCTION_CHUNKS);
            l->chunk = ((l->n[0] + chunks - 1) / chunks + 2047) / 2048 * 2048;
            chunks = (l->n[0] + l->chunk - 1) / l->chunk;
        }
        l->split = SPLIT_FULL_REDUCTION;
        l->units = chunks;
        return;
    }
    bool kept1 = mode == KERNEL_MAP || mode == KERNEL_ROW,
         kept0 = mode == KERNEL_MAP || mode == KERNEL_COLUMN;
    int64_t t = l->threads;
    if (l->outer_total >= 2 * t && l->outer_total > 1) {
        l->split = SPLIT_OUTER;
        l->units = l->outer_total;
    } else if (kept1 && l->n[1] >= 2 * t && l->n[1] > 1) {
        l->split = SPLIT_1;
        l->units = l->n[1];
    } else if (kept0 && l->n[0] > 1) {
        l->split = SPLIT_0;
        l->units = l->n[0];
        l->grain = mode == KERNEL_COLUMN ? KERNEL_COLUMNS : 64;
    }
}

/* Do all rows of operand k begin at a cache line? */
static bool rows_aligned(const struct mc_launch *l, const struct mc_koperand *o, int k)
{
    int64_t size = (int64_t)mc_dtypes[o->dtype].size;
    bool so = l->n[0] * size % 64 == 0 && l->s[3 * k + 1] * size % 64 == 0 &&
              l->s[3 * k + 2] * size % 64 == 0;
    for (int d = 0; d < l->nouter; d++) {
        so &= l->step[k * MC_MAX_RANK + d] % 64 == 0;
    }
    return so;
}

/* Large results in fresh memory are stored past the caches if each thread begins at a cache line: a map of
 * one loop, or rows of whole lines.  A result that overwrites an operand is in the cache already. */
bool mc_launch_streams(const struct mc_shape_plan *p, const struct mc_step *st, const struct mc_launch *l)
{
    double bytes = 0, all = 0;
    bool row = st->kernel->mode == KERNEL_ROW,
         loop = st->kernel->mode == KERNEL_MAP && l->split == SPLIT_0 && l->n[1] == 1 && l->outer_total == 1;
    if (!st->kernel->wide || (!loop && !row)) {
        return false;
    }
    for (int k = 0; k < l->nop; k++) {
        const struct mc_koperand *o = &st->kernel->operand.at[k];
        const struct mc_slot *at = l->value[k] < 0 || !o->dst || o->column_sums ||
                                           !st->kernel->val.at[o->val].element
                                       ? NULL
                                       : &p->slot[l->value[k]];
        for (int j = 0; at && j < l->nop; j++) {
            const struct mc_slot *src = l->value[j] < 0 || st->kernel->operand.at[j].dst
                                            ? NULL
                                            : &p->slot[l->value[j]];
            if (src && src->base == at->base && src->base == BASE_ARENA && src->offset == at->offset) {
                return false;
            }
        }
        if (at && row && !rows_aligned(l, o, k)) {
            return false;
        }
        bytes += at ? (double)mc_slot_bytes(at) : 0;
        all += l->value[k] < 0 ? 0 : (double)mc_slot_bytes(&p->slot[l->value[k]]);
    }
    return bytes * 4 >= all && all > MC_MIN((double)mc_cpu()->l3, MOST_KEPT);
}

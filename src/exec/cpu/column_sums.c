/* column_sums.c: column sums of a row kernel.  Each chunk of rows has partial sums of its own, which are
 * added in double at the end.
 *
 * Invariant: chunks follow from the shape alone, so the bits do not depend on the number of threads. */
#include "exec/cpu/launch.h"

enum { CHUNK_ROWS = 64, COLUMNS = 256 };
/* for the partial sums of all chunks, at most, where longer chunks help */
static const size_t most_bytes = 8 << 20;

static size_t bytes_of(const struct mc_slot *at)
{
    return (mc_slot_bytes(at) + 63) / 64 * 64;
}

void mc_column_sums_plan(const struct mc_step *st, const struct mc_shape_plan *p, struct mc_launch *l)
{
    int64_t rows = l->n[1] * l->outer_total;
    for (int k = 0; k < l->nop; k++) {
        l->column_sums += st->kernel->operand.at[k].column_sums ? bytes_of(&p->slot[l->value[k]]) : 0;
    }
    if (!l->column_sums) {
        return;
    }
    l->split = SPLIT_COLUMN_SUMS;
    l->grain = 1;
    l->chunk = CHUNK_ROWS;
    while (rows / l->chunk > 8 && (size_t)(rows / l->chunk) * l->column_sums > most_bytes) {
        l->chunk *= 2;
    }
    l->units = (rows + l->chunk - 1) / l->chunk;
}

void mc_column_sums_bases(const struct mc_running *r, int64_t chunk, char **base)
{
    char *at = r->column_sums + (size_t)chunk * r->l->column_sums;
    memcpy(base, r->base, (size_t)r->l->nop * sizeof *base);
    memset(at, 0, r->l->column_sums);
    for (int k = 0; k < r->l->nop; k++) {
        if (r->st->kernel->operand.at[k].column_sums) {
            base[k] = at;
            at += bytes_of(&r->slot[r->l->value[k]]);
        }
    }
}

/* Adds the partial sums of n columns, starting at column `from`. */
static void add_parts(const struct mc_running *r, mc_dtype d, const char *part, char *to, int64_t from,
                      int64_t n)
{
    double sum[COLUMNS] = { 0 };
    for (int64_t c = 0; c < r->l->units; c++, part += r->l->column_sums) {
        for (int64_t j = 0; j < n; j++) {
            sum[j] += d == MC_FLOAT32 ? (double)((const float *)(const void *)part)[from + j]
                                      : ((const double *)(const void *)part)[from + j];
        }
    }
    for (int64_t j = 0; j < n; j++) {
        mc_store_f64(d, to + (from + j) * (int64_t)mc_dtypes[d].size, sum[j]);
    }
}

void mc_column_sums_join(const struct mc_running *r, char *const *base)
{
    size_t offset = 0;
    for (int k = 0; k < r->l->nop; k++) {
        const struct mc_koperand *o = &r->st->kernel->operand.at[k];
        if (!o->column_sums) {
            continue;
        }
        const struct mc_slot *at = &r->slot[r->l->value[k]];
        int64_t n = (int64_t)(mc_slot_bytes(at) / mc_dtypes[o->dtype].size);
        for (int64_t j = 0; j < n; j += COLUMNS) {
            add_parts(r, o->dtype, r->column_sums + offset, base[k], j, MC_MIN(COLUMNS, n - j));
        }
        offset += bytes_of(at);
    }
}

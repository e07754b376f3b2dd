/* lines.h: ops on long lines of numbers, with threads: sort, argsort, the first of an order, searches,
 * counts, running sums, uniform numbers.
 *
 * Invariant: results have the bits of the reference (src/op), for every number of threads; but for the sign
 * of NaN in running sums. */
#ifndef MC_HEAVY_LINES_H
#define MC_HEAVY_LINES_H

#include "device/cpu/cpu.h"
#include "op/lines.h"

struct mc_line_work {
    const mc_node *node;
    mc_array *const *in, *const *out; /* in: any strides; NULL where only a shape is read from it */
    char *scratch;              /* of mc_line_scratch bytes, aligned to 64 */
    int threads;
};

/* Bytes of scratch for inputs of these types, all sizes known.  False: the op, or its sizes, have no function
 * here. */
bool mc_line_scratch(const mc_node *n, const struct mc_type *in, int threads, size_t *bytes);
mc_status mc_line_run(const struct mc_line_work *w);

/* ---- one row of the table in lines.c each ---- */
typedef size_t mc_line_scratch_of(const mc_node *n, const struct mc_type *in, int threads);
typedef mc_status mc_line_run_of(const struct mc_line_work *w);
mc_line_scratch_of mc_sort_scratch, mc_first_scratch, mc_sums_scratch, mc_search_scratch, mc_counts_scratch,
    mc_draw_scratch;
mc_line_run_of mc_sort_run, mc_first_run, mc_sums_run, mc_search_run, mc_counts_run, mc_draw_run;

/* ---- set.c: the lines of x, and of a result with as many, along the node's axis ---- */
struct mc_line_set {
    int axes;                   /* other than that of the lines */
    int64_t dims[MC_MAX_RANK], stride[2][MC_MAX_RANK];
    int64_t lines, count, step[2]; /* count: elements of a line of x; step: in bytes */
    int slots, within;          /* threads that share the lines; threads that share a line */
};
struct mc_line_set mc_line_set_of(const mc_node *n, const struct mc_type *x, int threads); /* no addresses */
struct mc_line_set mc_lines_at(const mc_node *n, const mc_array *x, const mc_array *y, int threads);
int64_t mc_line_offset(const struct mc_line_set *s, int array, int64_t line); /* in bytes */
/* one(arg, line, slot) of each line; seconds: for an element, about */
void mc_line_each(const struct mc_line_set *s, mc_team_task *one, void *arg, double seconds);

/* ---- sort.c: keys, unsigned numbers in the order of the values; NaN is last, -0 equals 0 ---- */
/* Keys of n elements: 32 bits for dtypes of up to 4 bytes, else 64.  flip: all bits inverted, the falling
 * order. True: some element is a NaN or -0, which its key alone does not give back. */
bool mc_keys_32(uint32_t *key, mc_dtype d, const char *x, int64_t step, int64_t n, uint32_t flip);
bool mc_keys_64(uint64_t *key, mc_dtype d, const char *x, int64_t step, int64_t n, uint64_t flip);
struct mc_pair { uint64_t key; int64_t at; };
/* Sorts by the bits from `low` up, the result is in a or b, which both have n elements.  Below `low` are bits
 * that rise with the position, or none.  count: mc_radix_counts(n, threads) bytes. */
uint32_t *mc_radix_keys32(uint32_t *a, uint32_t *b, int64_t n, void *count, int threads);
uint64_t *mc_radix_keys64(uint64_t *a, uint64_t *b, int64_t n, int low, void *count, int threads);
/* stably; keys of pairs have so many bits */
struct mc_pair *mc_radix_pairs(struct mc_pair *a, struct mc_pair *b, int64_t n, int bits, void *count);
size_t mc_radix_counts(int64_t n, int threads);
/* Puts the first k of n keys, by all their bits, in place and sorted; spare: n elements. */
typedef void mc_quick32(uint32_t *a, uint32_t *spare, int64_t n, int64_t k);
typedef void mc_quick64(uint64_t *a, uint64_t *spare, int64_t n, int64_t k);
mc_quick64 *mc_quick_keys64(void); /* of this processor, or NULL */
/* ---- quick_avx512.c ---- */
mc_quick32 mc_quick_keys32_avx512;
mc_quick64 mc_quick_keys64_avx512;

#endif

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

/* For loops that the compiler makes vectors of. */
#if defined(__clang__)
#define MC_LINES_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define MC_LINES_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif

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
/* The next bytes of a scratch, of which *at are taken; NULL where there is none and only their number is
 * asked for. */
void *mc_line_take(char *scratch, size_t *at, size_t bytes);

/* ---- keys.c: unsigned numbers in the order of the values; NaN is last, -0 equals 0 ---- */
/* Keys of n elements: 32 bits for dtypes of up to 4 bytes, else 64.  flip: all bits inverted, the falling
 * order. True: some element is a NaN or -0, which its key alone does not give back. */
typedef bool mc_keys32(uint32_t *key, mc_dtype d, const char *x, int64_t step, int64_t n, uint32_t flip);
typedef bool mc_keys64(uint64_t *key, mc_dtype d, const char *x, int64_t step, int64_t n, uint64_t flip);
typedef void mc_values32(char *y, int64_t step, mc_dtype d, const uint32_t *key, int64_t n);
typedef void mc_values64(char *y, int64_t step, mc_dtype d, const uint64_t *key, int64_t n);
mc_keys32 mc_keys_32;
mc_keys64 mc_keys_64;
mc_values32 mc_values_32;
mc_values64 mc_values_64;
struct mc_key_level { mc_keys32 *keys32; mc_keys64 *keys64; mc_values32 *values32; mc_values64 *values64; };
extern const struct mc_key_level mc_keys_avx2, mc_keys_avx512;

/* ---- sums.h ---- */
enum { MC_SUM_GROUP = 8 };
struct mc_sum_level {
    /* Running sums of n elements, each block's (op/lines.h) from zero, and the totals; b may be x. */
    void (*floats)(const float *x, int64_t n, double *b, double *total);
    void (*doubles)(const double *x, int64_t n, double *b, double *total);
    void (*to_floats)(float *y, const double *b, double off, int64_t n); /* off + b */
    void (*to_doubles)(double *y, const double *b, double off, int64_t n);
    void (*ints)(uint64_t *y, const int32_t *x, int64_t n, uint64_t sum); /* running sums from `sum` on */
    void (*longs)(uint64_t *y, const int64_t *x, int64_t n, uint64_t sum);
};
extern const struct mc_sum_level mc_sums_avx2, mc_sums_avx512;

/* ---- radix.c: sorts on one thread ---- */
/* Sorts by the bits from `low` up, the result is in a or b, which both have n elements.  Below `low` are bits
 * that rise with the position, or none.  count: mc_radix_counts(n) bytes. */
uint32_t *mc_radix_keys32(uint32_t *a, uint32_t *b, int64_t n, void *count);
uint64_t *mc_radix_keys64(uint64_t *a, uint64_t *b, int64_t n, int low, void *count);
size_t mc_radix_counts(int64_t n);
/* Words in order have the upper bits of a key in their upper halves, and where the element is in the lower
 * ones. Sorts each run with equal upper halves by the rest of the keys.  spare: n words */
typedef uint32_t mc_rest_of_key(const void *arg, uint32_t at);
void mc_radix_runs(uint64_t *word, uint64_t *spare, int64_t n, mc_rest_of_key *rest, const void *arg,
                   void *count);

/* ---- buckets.c: sorts by all threads ---- */
enum { MC_BUCKETS = 64 };
struct mc_bucket_sort {
    int64_t n;
    int threads, low;           /* low: as of mc_radix_keys64 */
    bool wide;                  /* keys of 64 bits */
    uint64_t mask;              /* keys that agree in these bits come into one bucket */
    void (*load)(void *arg, int64_t at, int64_t n, int part, void *key); /* some keys, more than once */
    void (*done)(void *arg, int64_t at, int64_t n, int slot, void *sorted);
    void *arg, *a, *b;          /* a, b: n keys */
    /* set by mc_bucket_run */
    int parts;
    uint8_t *id;                /* (n): buckets */
    int64_t *place;             /* (parts, MC_BUCKETS) */
    void *count;
};
bool mc_buckets_pay(int64_t n, int threads);
size_t mc_bucket_bytes(int64_t n, int threads);
void mc_bucket_run(struct mc_bucket_sort *s, char *scratch);

/* ---- quick.h: functions in vectors, NULL where there are none ---- */
/* Puts the first k of n keys, by all their bits, in place and sorted; spare: n elements. */
typedef void mc_quick32(uint32_t *a, uint32_t *spare, int64_t n, int64_t k);
typedef void mc_quick64(uint64_t *a, uint64_t *spare, int64_t n, int64_t k);
/* The buckets of n keys, from the heap of their splitters. */
typedef void mc_classes32(const uint32_t *key, int64_t n, const uint32_t *heap, uint8_t *id);
typedef void mc_classes64(const uint64_t *key, int64_t n, const uint64_t *heap, uint8_t *id);
/* Appends the keys that are not above `most`, and their positions from `at` on; how many.  There is room
 * for n and a register. */
typedef int64_t mc_below32(const uint32_t *key, int64_t n, uint32_t most, uint32_t at, uint32_t *to,
                           uint32_t *position);
typedef int64_t mc_below64(const uint64_t *key, int64_t n, uint64_t most, uint32_t at, uint64_t *to,
                           uint32_t *position);
struct mc_quick {
    mc_quick32 *keys32;
    mc_quick64 *keys64;
    mc_classes32 *classes32;
    mc_classes64 *classes64;
    mc_below32 *below32;
    mc_below64 *below64;
};
const struct mc_quick *mc_quick(void); /* of this processor */
extern const struct mc_quick mc_quick_avx512;

#endif

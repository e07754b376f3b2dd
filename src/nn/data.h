/* data.h: shared by the readers of data: sets of examples from which an mc_data is made, and counter-based
 * random numbers.
 *
 * Invariant: a reader that fails has set the error and leaves a set that mc_example_set_free can free. */
#ifndef MC_DATA_H
#define MC_DATA_H

#include "nn/null_check.h"
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct mc_example_set {
    mc_array *x, *t;
    int classes;      /* 0: not given */
    /* numbers to learn for each example instead of a class: t is (n, targets) of floats; 0: classes */
    int targets;
    char **name;      /* of the classes, or of the targets, or NULL */
    char **column;    /* names of the numbers of an example of rank 1, ncolumn of them, or NULL */
    int ncolumn;
    bool whole;       /* the source has no parts for training and testing */
    const char *text; /* what they are; a literal */
};
void mc_example_set_free(struct mc_example_set *r);
mc_status mc_example_set_names(struct mc_example_set *r, int n); /* room for n names, all NULL */
/* takes what r has, also when it fails */
mc_data *mc_data_finish(struct mc_example_set *r, enum mc_part part);

/* borrowed: (n, ...) uint8 or float32; (n) or (n, places) int32, or (n, targets) float32 */
void mc_data_arrays(const mc_data *d, const mc_array **x, const mc_array **t);

/* Counter-based random numbers: those of a stream depend only on its key. */
struct mc_augment_random {
    uint64_t state;
};
static inline uint64_t mc_augment_random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}
#define MC_DICE_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t mc_augment_random_key(uint64_t seed, uint64_t a)
{
    return mc_augment_random_mix(mc_augment_random_mix(seed + MC_DICE_STEP) + a);
}
static inline struct mc_augment_random mc_augment_random_of(uint64_t seed, uint64_t a, uint64_t b)
{
    return (struct mc_augment_random){ mc_augment_random_mix(mc_augment_random_key(seed, a) + b) };
}
static inline uint64_t mc_augment_random_next(struct mc_augment_random *d)
{
    return mc_augment_random_mix(d->state += MC_DICE_STEP);
}
/* A number from 0 to n - 1, n below 2^32; the relative error of its probability is below
 * n / 2^32. */
static inline int64_t mc_augment_random_below(struct mc_augment_random *d, int64_t n)
{
    return (int64_t)((mc_augment_random_next(d) >> 32) * (uint64_t)n >> 32);
}

/* data_augment.c: pictures moved, mirrored, cropped */
struct mc_augment {
    int64_t shift, crop[2]; /* rows and columns of the part; 0: all */
    bool flip, drawn;       /* drawn: the part is at a random position, otherwise in the middle */
    int rank;
    int64_t dims[MC_MAX_RANK]; /* of an augmented example */
    /* of the picture; of the part (high, wide); set if anything is changed */
    int64_t planes, rows, columns, high, wide;
};
/* Reads `text`, for examples of these sizes. */
mc_status mc_augment_make(const char *text, bool drawn, int rank, const int64_t *dims, struct mc_augment *a);
bool mc_augment_changes(const struct mc_augment *a);
void mc_augment_example(const struct mc_augment *a, struct mc_augment_random dice, const float *from,
                        float *to);
/* In g, the formula x: the examples of `data` whose numbers are in `order`, as floats, augmented by `key`, an
 * mc_augment_random_key. */
mc_status mc_augment_formula(const struct mc_augment *a, mc_graph *g);

/* data_resident.c: resident data, augmented or not, on the GPU of the flag `device`. */
/* is that device a GPU, and are the examples few enough? */
bool mc_resident_fits(const mc_data *d, const struct mc_augment *a);
struct mc_resident *mc_resident_new(const mc_data *d, const struct mc_augment *a); /* NULL: mc_last_error */
void mc_resident_free(struct mc_resident *r);
/* n examples in this order, augmented by key. */
mc_status mc_resident_start(struct mc_resident *r, const int32_t *order, int64_t n, uint64_t key);
/* Examples at to at + n of that order, n at most size; the arrays are valid until the next call. */
mc_status mc_resident_batch(struct mc_resident *r, int64_t at, int64_t n, int64_t size, const mc_array **x,
                            const mc_array **t);

/* A reader of one format. knows: does `where` look like it? */
struct mc_reader {
    bool (*knows)(const char *where);
    mc_status (*read)(const char *where, enum mc_part part, struct mc_example_set *out);
};
bool mc_digits_knows(const char *where);
bool mc_idx_knows(const char *where);
bool mc_csv_knows(const char *where);
bool mc_text_knows(const char *where);
bool mc_cifar_knows(const char *where);
bool mc_archive_knows(const char *where);
bool mc_pictures_knows(const char *where);
mc_status mc_digits_read(const char *where, enum mc_part part, struct mc_example_set *out);
mc_status mc_idx_read(const char *where, enum mc_part part, struct mc_example_set *out);
mc_status mc_csv_read(const char *where, enum mc_part part, struct mc_example_set *out);
mc_status mc_text_read(const char *where, enum mc_part part, struct mc_example_set *out);
mc_status mc_cifar_read(const char *where, enum mc_part part, struct mc_example_set *out);
mc_status mc_archive_read_data(const char *where, enum mc_part part, struct mc_example_set *out);
mc_status mc_pictures_read(const char *where, enum mc_part part, struct mc_example_set *out);

/* data_file.c */
enum { MC_PATH = 4096 };
char *mc_path_join(char path[MC_PATH], const char *folder, const char *name); /* path; cut off if too long */
bool mc_path_is(const char *path, bool folder);
bool mc_path_ends(const char *path, const char *end);
/* a file, or what is in it if it is gzip */
mc_status mc_file_unpacked(const char *path, char **data, size_t *n);

#endif

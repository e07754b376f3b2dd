/* data.h: what the readers of data share: raw examples on their way to a mc_data, and random numbers by counter.
 *
 * Invariant: a reader that fails has set the error and leaves a raw that mc_raw_free takes. */
#ifndef MC_DATA_H
#define MC_DATA_H

#include <monochord_nn.h>
#include <stdbool.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct mc_raw {
    mc_array *x, *t;
    int classes;      /* 0: not said */
    char **name;      /* of the classes, or NULL */
    bool whole;       /* where said nothing of parts */
    const char *text; /* what they are; a literal */
};
void mc_raw_free(struct mc_raw *r);
mc_status mc_raw_names(struct mc_raw *r, int n); /* room for n names, all NULL */
mc_data *mc_data_finish(struct mc_raw *r, enum mc_part part); /* takes what r has, also when it fails */

void mc_data_arrays(const mc_data *d, const mc_array **x, const mc_array **t); /* borrowed: (n, ...) uint8 or float32; (n) int32 */

/* data_resident.c: examples kept on the GPU that the flag device names.  NULL with MC_OK: there is none, or they are too many. */
struct mc_resident *mc_resident_new(const mc_data *d, mc_status *s);
void mc_resident_free(struct mc_resident *r);
mc_status mc_resident_start(struct mc_resident *r, const int32_t *order, int64_t n);
/* Examples at to at + n of that order, n at most size; the arrays are valid until the next call. */
mc_status mc_resident_batch(struct mc_resident *r, int64_t at, int64_t n, int64_t size, const mc_array **x, const mc_array **t);

/* One a format: does `where` look like it, and reading it. */
struct mc_reader {
    bool (*knows)(const char *where);
    mc_status (*read)(const char *where, enum mc_part part, struct mc_raw *out);
};
bool mc_digits_knows(const char *where);
bool mc_idx_knows(const char *where);
bool mc_cifar_knows(const char *where);
bool mc_npz_knows(const char *where);
bool mc_pictures_knows(const char *where);
mc_status mc_digits_read(const char *where, enum mc_part part, struct mc_raw *out);
mc_status mc_idx_read(const char *where, enum mc_part part, struct mc_raw *out);
mc_status mc_cifar_read(const char *where, enum mc_part part, struct mc_raw *out);
mc_status mc_npz_read_data(const char *where, enum mc_part part, struct mc_raw *out);
mc_status mc_pictures_read(const char *where, enum mc_part part, struct mc_raw *out);

/* data_file.c */
enum { MC_PATH = 4096 };
char *mc_path_join(char path[MC_PATH], const char *folder, const char *name); /* path; cut off if too long */
bool mc_path_is(const char *path, bool folder);
bool mc_path_ends(const char *path, const char *end);
mc_status mc_file_unpacked(const char *path, char **data, size_t *n); /* a file, or what is in it if it is gzip */

/* A counter's random numbers: those of one stream follow from its key alone. */
struct mc_dice {
    uint64_t state;
};
static inline uint64_t mc_dice_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}
static inline struct mc_dice mc_dice_of(uint64_t seed, uint64_t a, uint64_t b)
{
    return (struct mc_dice){ mc_dice_mix(mc_dice_mix(mc_dice_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) + a) + b) };
}
static inline uint64_t mc_dice_next(struct mc_dice *d)
{
    return mc_dice_mix(d->state += UINT64_C(0x9e3779b97f4a7c15));
}
/* Of 0 to n - 1, n below 2^32; unevenness is below n / 2^32. */
static inline int64_t mc_dice_below(struct mc_dice *d, int64_t n)
{
    return (int64_t)((mc_dice_next(d) >> 32) * (uint64_t)n >> 32);
}

#endif

/* kernel_generic.c: pooling kernels in vectors of 16 bytes for every processor, and the loops over single
 * windows.
 *
 * Invariant: no instruction beyond the library's build target. */
#include "heavy/pool/cpu/kernel.h"
#include "base/small.h"

#define SLOW(T, name)                                                                                        \
    static void max_##name(const struct mc_pool_row *r, int64_t band, int64_t j)                             \
    {                                                                                                        \
        char *key = r->key && !r->bits ? (char *)r->key + band * r->key_band : NULL;                         \
        for (T *y = (T *)(void *)((char *)r->y + band * r->y_band); j < r->n; j++) {                         \
            int32_t at = !r->more || !key ? 0 : r->wide ? ((int32_t *)(void *)key)[j] : ((uint8_t *)key)[j]; \
            T best = y[j];                                                                                   \
            bool none = !r->more;                                                                            \
            for (int i = 0; i < r->nrow; i++) {                                                              \
                const T *x = (const T *)(void *)(r->x[i] + band * r->x_band) + j * r->s;                     \
                for (int b = 0; b < r->w; b++) {                                                             \
                    if (none || (!(x[b] <= best) && best == best)) {                                         \
                        best = x[b];                                                                         \
                        at = r->mark[i] + b;                                                                 \
                        none = false;                                                                        \
                    }                                                                                        \
                }                                                                                            \
            }                                                                                                \
            y[j] = best;                                                                                     \
            if (key && r->wide) {                                                                            \
                ((int32_t *)(void *)key)[j] = at;                                                            \
            } else if (key) {                                                                                \
                ((uint8_t *)key)[j] = (uint8_t)at;                                                           \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void sum_##name(const struct mc_pool_row *r, int64_t band, int64_t j)                             \
    {                                                                                                        \
        for (T *y = (T *)(void *)((char *)r->y + band * r->y_band); j < r->n; j++) {                         \
            T sum = r->more ? y[j] : 0;                                                                      \
            for (int i = 0; i < r->nrow; i++) {                                                              \
                const T *x = (const T *)(void *)(r->x[i] + band * r->x_band) + j * r->s;                     \
                for (int b = 0; b < r->w; b++) {                                                             \
                    sum += x[b];                                                                             \
                }                                                                                            \
            }                                                                                                \
            y[j] = sum * (T)r->scale;                                                                        \
        }                                                                                                    \
    }
SLOW(float, f32)
SLOW(double, f64)

void mc_pool_max_slow(const struct mc_pool_row *r, int64_t band, int64_t from, bool f64)
{
    f64 ? max_f64(r, band, from) : max_f32(r, band, from);
}

void mc_pool_bits_slow(const struct mc_pool_row *r)
{
    for (int64_t band = 0; band < r->bands; band++) {
        uint8_t *key = (uint8_t *)r->key + band * r->key_band;
        const float *y = (const float *)(const void *)((const char *)r->y + band * r->y_band);
        for (int64_t j = 0; j < r->n; j++) {
            key[j] = 0;
            for (int i = 0; i < r->nrow * r->w; i++) {
                const float *x = (const float *)(void *)(r->x[i / r->w] + band * r->x_band) + j * r->s;
                key[j] |= (uint8_t)((x[i % r->w] == y[j]) << (r->mark[i / r->w] + i % r->w));
            }
        }
    }
}

void mc_pool_sum_slow(const struct mc_pool_row *r, int64_t band, int64_t from, bool f64)
{
    f64 ? sum_f64(r, band, from) : sum_f32(r, band, from);
}

#define TARGET
#define ISA "plain"

#define BITS 1
#define T float
#define IT int32_t
#define L 4
#define NAME(x) f32_##x
#define EVENS 0, 2, 5, 7
#define LOWER 0, 4, 1, 5
#define UPPER 2, 6, 3, 7
#include "heavy/pool/cpu/kernel_vector.h"

#define T double
#define IT int64_t
#define L 2
#define NAME(x) f64_##x
#define EVENS 0, 3
#define LOWER 0, 2
#define UPPER 1, 3
#include "heavy/pool/cpu/kernel_vector.h"

const struct mc_pool_kernel *const mc_pool_plain[2] = { &f32_kernel, &f64_kernel };

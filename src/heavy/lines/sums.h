/* sums.h: running sums of blocks at one level of instructions.  The includer names LEVEL, TARGET, and,
 * where it has them, LONGS and INTS.
 *
 * Invariant: floats of a block are added one after the other, as the reference adds them. */
#include "heavy/lines/lines.h"

#define JOIN__(a, b) a##_##b
#define JOIN_(a, b) JOIN__(a, b)
#define JOIN(a) JOIN_(a, LEVEL)

enum { BLOCK = MC_SUM_BLOCK };

/* `chains` blocks side by side, the last of them of `last` elements: their additions do not wait for each
 * other. */
#define LOCAL(T)                                                                                   \
    TARGET static inline __attribute__((always_inline)) void JOIN(chains_##T)(                     \
        const T *x, int64_t last, double *b, double *total, const int chains)                      \
    {                                                                                              \
        double s[MC_SUM_GROUP] = { 0 };                                                            \
        for (int64_t i = 0; i < last; i++) {                                                       \
            _Pragma("GCC unroll 8") for (int g = 0; g < chains; g++)                               \
            {                                                                                      \
                b[g * BLOCK + i] = s[g] += (double)x[g * BLOCK + i];                               \
            }                                                                                      \
        }                                                                                          \
        for (int64_t i = last; i < BLOCK; i++) {                                                   \
            _Pragma("GCC unroll 8") for (int g = 0; g < chains - 1; g++)                           \
            {                                                                                      \
                b[g * BLOCK + i] = s[g] += (double)x[g * BLOCK + i];                               \
            }                                                                                      \
        }                                                                                          \
        memcpy(total, s, (size_t)chains * sizeof *s);                                              \
    }                                                                                              \
    TARGET static void JOIN(local_##T)(const T *x, int64_t n, double *b, double *total)            \
    {                                                                                              \
        for (int64_t many; n > 0; n -= many * BLOCK) {                                             \
            const int64_t blocks = (n + BLOCK - 1) / BLOCK;                                        \
            many = blocks >= 8 ? 8 : blocks >= 4 ? 4 : blocks >= 2 ? 2 : 1;                        \
            const int64_t last = MC_MIN(n - (many - 1) * BLOCK, (int64_t)BLOCK);                   \
            switch (many) {                                                                        \
            case 8:  JOIN(chains_##T)(x, last, b, total, 8); break;                                \
            case 4:  JOIN(chains_##T)(x, last, b, total, 4); break;                                \
            case 2:  JOIN(chains_##T)(x, last, b, total, 2); break;                                \
            default: JOIN(chains_##T)(x, last, b, total, 1); break;                                \
            }                                                                                      \
            x += many * BLOCK;                                                                     \
            b += many * BLOCK;                                                                     \
            total += many;                                                                         \
        }                                                                                          \
    }                                                                                              \
    TARGET static void JOIN(shift_##T)(T *restrict y, const double *restrict b, double off, int64_t n) \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            y[i] = (T)(off + b[i]);                                                                \
        }                                                                                          \
    }
LOCAL(float)
LOCAL(double)

/* One addition in four waits for the last sum. */
#define WHOLE(T)                                                                                   \
    TARGET static void JOIN(whole_##T)(uint64_t *y, const T *x, int64_t n, uint64_t sum)           \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + 4 <= n; i += 4) {                                                               \
            const uint64_t a = (uint64_t)x[i], b = a + (uint64_t)x[i + 1], c = b + (uint64_t)x[i + 2], \
                           d = c + (uint64_t)x[i + 3];                                             \
            y[i] = sum + a;                                                                        \
            y[i + 1] = sum + b;                                                                    \
            y[i + 2] = sum + c;                                                                    \
            y[i + 3] = sum += d;                                                                   \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            y[i] = sum += (uint64_t)x[i];                                                          \
        }                                                                                          \
    }
#ifndef LONGS
WHOLE(int32_t)
WHOLE(int64_t)
#define LONGS JOIN(whole_int64_t)
#define INTS JOIN(whole_int32_t)
#endif

#define LEVEL_ROW \
    { \
        JOIN(local_float), JOIN(local_double), JOIN(shift_float), JOIN(shift_double), INTS, LONGS \
    }

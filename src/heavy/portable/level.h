/* level.h: the functions of core.h for both element types at one LEVEL, as a table.  The includer names it
 * LEVEL_TABLE. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif
#include "heavy/portable/panel.h"
#include "heavy/portable/portable.h"
#include "heavy/portable/threads.h"
#include <math.h>
#include <string.h>
#if LEVEL > 128 || defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include "heavy/portable/vectors.h"
enum { FINISHES = 0 }; /* epilogues are calls of their own */
_Static_assert((int)(WIDE * WIDTH_f32) <= (int)MOST_STRIP && (int)DOT_COLUMNS <= (int)MOST_DOTS &&
                   (int)WIDTH_f32 <= (int)MOST_WIDTH,
               "panel.h has the most of every level");

#define R float
#define S f32
#define LANES 16
#include "heavy/portable/core.h"
#include "heavy/portable/gradients.h"
#undef R
#undef S
#undef LANES
#define R double
#define S f64
#define LANES 8
#include "heavy/portable/core.h"
#include "heavy/portable/gradients.h"

#define FOR_ANY(S, R)                                                                                        \
    static void any_copy_##S(void *dst, const void *src, const int64_t *g)                                   \
    {                                                                                                        \
        copy_##S(dst, src, g);                                                                               \
    }                                                                                                        \
    static void any_add_##S(void *dst, const void *src, const int64_t *g)                                    \
    {                                                                                                        \
        add_##S(dst, src, g);                                                                                \
    }                                                                                                        \
    static void any_columns_##S(const int64_t *g, const int64_t *offsets, const void *w, const void *x,      \
                                void *y, void *panel)                                                        \
    {                                                                                                        \
        columns_##S(g, offsets, w, x, y, panel, NULL, 0);                                                             \
    }                                                                                                        \
    static void any_box_##S(const int64_t *g, const int64_t *offsets, const void *w, const void *x, void *y) \
    {                                                                                                        \
        box_##S(g, offsets, w, x, y, NULL, 0);                                                                        \
    }                                                                                                        \
    static void any_outer_##S(const int64_t *g, const int64_t *offsets, const void *x, const void *v,        \
                              void *y, int add)                                                              \
    {                                                                                                        \
        outer_##S(g, offsets, x, v, y, add);                                                                 \
    }                                                                                                        \
    static void any_col2im_##S(const int64_t *g, const int64_t *offsets, void *x, const void *v)             \
    {                                                                                                        \
        col2im_##S(g, offsets, x, v);                                                                        \
    }                                                                                                        \
    static void any_dots_##S(const int64_t *g, const int64_t *offsets, const void *a, const void *b, void *y, \
                             int add, void *panel)                                                           \
    {                                                                                                        \
        dots_##S(g, offsets, a, b, y, add, panel);                                                           \
    }
FOR_ANY(f32, float)
FOR_ANY(f64, double)
static const struct mc_portable_level table = {
    .copy = { any_copy_f32, any_copy_f64 },
    .add = { any_add_f32, any_add_f64 },
    .columns = { any_columns_f32, any_columns_f64 },
    .box = { any_box_f32, any_box_f64 },
    .outer = { any_outer_f32, any_outer_f64 },
    .col2im = { any_col2im_f32, any_col2im_f64 },
    .dots = { any_dots_f32, any_dots_f64 },
};
const struct mc_portable_level *const LEVEL_TABLE = &table;

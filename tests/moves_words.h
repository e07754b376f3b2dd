/* moves_words.h: a table whose elements tell where they were, and the parts of it that slices take whose
 * start is a value i of the call. */
#ifndef MOVES_WORDS_H
#define MOVES_WORDS_H

#include "exec/backend.h"
#include "function_words.h"

enum { ROWS = 1000, COLUMNS = 4, BATCH = 5 };

static inline double element(int64_t row, int64_t column)
{
    return (double)((row * 7 + column * 3) % 64);
}

static inline mc_array *table(void)
{
    mc_array *a = mc_array_new(MC_FLOAT64, MC_SHAPE(ROWS, COLUMNS));
    for (int64_t i = 0; a && i < (int64_t)ROWS * COLUMNS; i++) {
        mc_store_f64(MC_FLOAT64, a->data + i * 8, element(i / COLUMNS, i % COLUMNS));
    }
    return a;
}

/* Row r of the result is 2 * row (first + step * r) of x; its columns begin at `column`. */
struct region { int64_t rows, columns, first, step, column; };
static inline struct region batch(int64_t i)
{
    const int64_t first = i * BATCH < ROWS ? i * BATCH : ROWS, left = ROWS - first;
    return (struct region){ left < BATCH ? left : BATCH, COLUMNS, first, 1, 0 };
}
static inline struct region corner(int64_t i)
{
    return (struct region){ BATCH, 2, i * 2, 1, i % 3 };
}
static inline struct region backward(int64_t i)
{
    return (struct region){ 4, COLUMNS, i + 12, -3, 0 };
}
static inline struct region from_end(int64_t i)
{
    return (struct region){ BATCH, COLUMNS, ROWS - i - 6, 1, 0 };
}
static inline struct region inner(int64_t i)
{
    return (struct region){ 2, COLUMNS, i * 4 + i % 3, 1, 0 };
}

/* Do slices of all values move on the device of f? */
static inline bool moves_all(const mc_function *f)
{
    return !f->code->device->space || f->code->backend->starts;
}

#endif

/* data_augment.c: augmentation: moves, mirrors and crops one picture by a loop, or many by a formula.
 *
 * Invariant: both give the same bits.  The changes of an example depend only on its random numbers, which are
 * drawn in the order top, left, flip. */
#include "nn/data.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading the settings ---- */

static mc_status parse_number(const char *at, const char **end, int64_t most, int64_t *out)
{
    char *stop;
    long long v = strtoll(at, &stop, 10);
    *end = stop;
    *out = v;
    return stop == at || v < 0 || v > most ? MC_EARG : MC_OK;
}

static mc_status parse(const char *text, struct mc_augment *a)
{
    static const char flags[2][8] = { "false", "true" };
    mc_status s = MC_OK;
    for (const char *at = text ? text : "", *end; s == MC_OK && *(at += strspn(at, " ")); at = end) {
        size_t n = strcspn(at, "= ");
        end = at + n + (at[n] == '=');
        if (n == 5 && memcmp(at, "shift", n) == 0) {
            s = parse_number(end, &end, 4096, &a->shift);
        } else if (n == 4 && memcmp(at, "crop", n) == 0) {
            s = parse_number(end, &end, 1 << 20, &a->crop[0]);
            a->crop[1] = a->crop[0];
            s = s == MC_OK && *end == 'x' ? parse_number(end + 1, &end, 1 << 20, &a->crop[1]) : s;
        } else if (n == 4 && memcmp(at, "flip", n) == 0) {
            a->flip = at[n] != '=' || memcmp(end, flags[1], 4) == 0;
            end += at[n] == '=' ? strcspn(end, " ") : 0;
        } else {
            s = MC_EARG;
        }
        s = s == MC_OK && *end && *end != ' ' ? MC_EARG : s;
    }
    return s == MC_OK
               ? s
               : mc_fail(MC_EARG,
                         "unknown augmentation '%s'; expected settings such as shift=2 flip=true crop=24",
                         text);
}

bool mc_augment_changes(const struct mc_augment *a)
{
    return a->shift || a->crop[0] || a->crop[1] || a->flip;
}

/* Rows and columns are the last two axes. */
static mc_status fit(struct mc_augment *a, int rank, const int64_t *dims)
{
    a->rank = rank;
    memcpy(a->dims, dims, (size_t)rank * sizeof *dims);
    if (!mc_augment_changes(a)) {
        return MC_OK;
    }
    if (rank < 2) {
        return mc_fail(MC_ESHAPE, "augmentation needs pictures, not examples of rank %d", rank);
    }
    for (int k = 0; k < 2; k++) {
        int64_t *have = &a->dims[rank - 2 + k];
        if (a->crop[k] > *have) {
            return mc_fail(MC_ESHAPE, "crop=%lld is larger than the pictures, %lld", (long long)a->crop[k],
                           (long long)*have);
        }
        *have = a->crop[k] ? a->crop[k] : *have;
    }
    a->planes = 1;
    for (int k = 0; k < rank - 2; k++) {
        a->planes *= dims[k];
    }
    a->rows = dims[rank - 2];
    a->columns = dims[rank - 1];
    a->high = a->dims[rank - 2];
    a->wide = a->dims[rank - 1];
    return MC_OK;
}

mc_status mc_augment_make(const char *text, bool drawn, int rank, const int64_t *dims, struct mc_augment *a)
{
    *a = (struct mc_augment){ .drawn = drawn };
    mc_status s = parse(text, a);
    return s < 0 ? s : fit(a, rank, dims);
}

/* ---- by a loop ---- */

/* The first row or column of a part of `part` out of `have`. It is outside of the picture if the picture is
 * moved so far. */
static int64_t start(const struct mc_augment *a, int64_t have, int64_t part, struct mc_augment_random *dice)
{
    return a->drawn ? mc_augment_random_below(dice, have - part + 2 * a->shift + 1) - a->shift
                    : (have - part) / 2;
}

/* Cells that a moved picture does not cover are zero. */
void mc_augment_example(const struct mc_augment *a, struct mc_augment_random dice, const float *from,
                        float *to)
{
    int64_t top = start(a, a->rows, a->high, &dice), left = start(a, a->columns, a->wide, &dice);
    bool flip = a->drawn && a->flip && mc_augment_random_below(&dice, 2);
    for (int64_t p = 0; p < a->planes; p++) {
        for (int64_t y = 0; y < a->high; y++) {
            for (int64_t x = 0; x < a->wide; x++) {
                int64_t sy = top + y, sx = left + (flip ? a->wide - 1 - x : x);
                bool in = sy >= 0 && sy < a->rows && sx >= 0 && sx < a->columns;
                *to++ = in ? from[(p * a->rows + sy) * a->columns + sx] : 0.0f;
            }
        }
    }
}

/* ---- by a formula ---- */

/* mc_augment_random_mix: a division by 2^n is its shift. */
#define MIX "k = (k ^ k // 0x40000000u64) * 0xbf58476d1ce4e5b9u64\n" \
            "k = (k ^ k // 0x8000000u64) * 0x94d049bb133111ebu64\n" \
            "k = k ^ k // 0x80000000u64\n"

/* Adds formulas to g; `text` has room for any numbers in them. */
static void add(mc_graph *g, const char *fmt, ...) MC_FORMAT(2, 3);
static void add(mc_graph *g, const char *fmt, ...)
{
    char text[1536];
    va_list ap;
    va_start(ap, fmt);
    mc_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    mc_formula(g, text);
}

/* Defines `name`: for each example the draw-th random number below `below`, less `minus`. */
static void add_throw(mc_graph *g, const char *name, int draw, int64_t below, int64_t minus)
{
    add(g,
        "k = dice + %lluu64\n" MIX "%s = cast(k // 0x100000000u64 * %lldu64 // 0x100000000u64, int32) - %lld",
        (unsigned long long)((uint64_t)draw * MC_DICE_STEP), name, (long long)below, (long long)minus);
}

static void add_start(const struct mc_augment *a, mc_graph *g, const char *name, int draw, int64_t have,
                      int64_t part)
{
    if (a->drawn) {
        add_throw(g, name, draw, have - part + 2 * a->shift + 1, a->shift);
    } else {
        add(g, "%s = 0 * order + %lld", name, (long long)((have - part) / 2));
    }
}

static void add_changes(const struct mc_augment *a, mc_graph *g)
{
    add(g, "k = key + cast(order, uint64)\n" MIX "dice = k");
    add_start(a, g, "top", 1, a->rows, a->high);
    add_start(a, g, "left", 2, a->columns, a->wide);
    add(g, "across = arange(%lld, dtype=int32)[None, None, None, :]", (long long)a->wide);
    if (a->drawn && a->flip) {
        add_throw(g, "flip", 3, 2, 0);
        add(g, "across = where(flip[:, None, None, None] == 1, %lld - across, across)",
            (long long)a->wide - 1);
    }
    add(g,
        "sy = top[:, None, None, None] + arange(%lld, dtype=int32)[None, None, :, None]\n"
        "sx = left[:, None, None, None] + across\n"
        "plane = arange(%lld, dtype=int32)[None, :, None, None]\n"
        "pictures = reshape(data, [-1, %lld, %lld, %lld])\n"
        "x = pictures[order[:, None, None, None], plane, clip(sy, 0, %lld), clip(sx, 0, %lld)]\n"
        "x = where((sy >= 0) & (sy < %lld) & (sx >= 0) & (sx < %lld), x, cast(0, x.dtype))",
        (long long)a->high, (long long)a->planes, (long long)a->planes, (long long)a->rows,
        (long long)a->columns, (long long)a->rows - 1, (long long)a->columns - 1, (long long)a->rows,
        (long long)a->columns);
}

/* Bytes are scaled as mc_data_example scales them. */
mc_status mc_augment_formula(const struct mc_augment *a, mc_graph *g)
{
    if (mc_augment_changes(a)) {
        add_changes(a, g);
    } else {
        mc_formula(g, "x = data[order]");
    }
    if (mc_node_dtype(mc_formula(g, "x")) == MC_UINT8) {
        mc_formula(g, "x = cast(x, float32) / cast(255, float32)");
    }
    if (mc_augment_changes(a)) {
        char sizes[MC_MAX_RANK * 24] = "";
        for (int k = 0, at = 0; k < a->rank; k++) {
            at += mc_snprintf(sizes + at, sizeof sizes - (size_t)at, ", %lld", (long long)a->dims[k]);
        }
        add(g, "x = reshape(x, [order.shape[0]%s])", sizes);
    }
    return mc_graph_status(g) < 0 ? mc_fail(mc_graph_status(g), "%s", mc_error(g)) : MC_OK;
}

/* print.h: what the printers of poolings share: pieces of text, loops over planes, windows and cells. */
#ifndef MC_POOL_PRINT_H
#define MC_POOL_PRINT_H

#include "heavy/pool/solver.h"
#include <inttypes.h>

enum {
    UNROLLED = 16, /* cells of a window whose loop is printed cell by cell, at most */
    ROW = 4096     /* float64 sums of a row, at most: 32 KiB of stack */
};
/* What the innermost loop runs over.  ALONG_WINDOWS: those of the last slot, all inside the image. */
enum mc_pool_along { ALONG_NOTHING, ALONG_LANES, ALONG_WINDOWS };

struct mc_pool_printer {
    struct mc_c_text c;
    const struct mc_pool_shape *s;
    struct mc_pool_grid g;
    bool keyed, windows;        /* the block reads or writes KEY; there are windows */
    const char *type, *mark;    /* of X and Y; of KEY */
    bool inside[3];             /* no window of the slot is clipped */
    int64_t from, to;           /* windows of the last slot that are printed now */
    bool by_planes;             /* threads share planes, else windows or cells */
};

#define LINE(p, ...) mc_c_line(&(p)->c, __VA_ARGS__)

/* ---- print.c ---- */
struct mc_c_sum mc_pool_print_named(const char *name, int i);
/* The first element of the window (u0, u1, u2) in an array: the first cell, perhaps outside the image, or the
 * window's own element. */
struct mc_c_sum mc_pool_print_window_start(const struct mc_pool_printer *p, int role);
/* The position of a cell of the window; name: "a", or "lo" for its first cell. */
struct mc_c_sum mc_pool_print_cell_position(const struct mc_pool_printer *p, int role, const char *name);
/* The number of cell (a0, a1, a2) of a window. */
struct mc_c_sum mc_pool_print_cell_number(const struct mc_pool_printer *p, const char *name);
/* Declares the cells [lo, hi) of the window that lie in the image, for each clipped slot. */
void mc_pool_print_declare_clips(struct mc_pool_printer *p);
/* Opens loops over the cells of the window that lie in the image. */
void mc_pool_print_open_cells(struct mc_pool_printer *p);
bool mc_pool_print_all_inside(const struct mc_pool_printer *p);
int64_t mc_pool_print_window_cells(const struct mc_pool_shape *s);
/* Lets threads share the next `loops` loops. */
void mc_pool_print_parallel(struct mc_pool_printer *p, bool planes, int loops);
/* " / 4.0": what divides a sum over the window; needs lo and hi of its clipped slots. */
struct mc_c_sum mc_pool_print_divisor(const struct mc_pool_printer *p);
/* Opens the loops over windows, except the innermost one that `along` names. */
void mc_pool_print_open_windows(struct mc_pool_printer *p, enum mc_pool_along along);
void mc_pool_print_open_along(struct mc_pool_printer *p, enum mc_pool_along along);
/* Declares `most`, the largest cell of the window in an array, and if asked for its number. */
void mc_pool_print_find_most(struct mc_pool_printer *p, int role, const char *array, bool number);
/* ---- print_spread.c ---- */
void mc_pool_print_spread(struct mc_pool_printer *p);

#endif

/* print.c: a pooling as a block of C99 with all sizes as numbers, for files that stand alone.
 *
 * FORWARD and GATHER go window by window.  SPREAD goes cell by cell: each cell adds what it gets from the
 * windows that cover it.  If windows tile the image, SPREAD goes window by window too, and writes each cell
 * once.
 *
 * Invariant: the block gives the bits of op/pool_loops.c: a number is the sum of the same terms in the same
 * order, in float64, rounded once. */
#include "heavy/pool/solver.h"
#include <inttypes.h>

enum {
    UNROLLED = 16, /* cells of a window whose loop is printed cell by cell, at most */
    ROW = 4096     /* float64 sums of a row, at most: 32 KiB of stack */
};
/* What the innermost loop runs over.  ALONG_WINDOWS: those of the last slot, all inside the image. */
enum along { ALONG_NOTHING, ALONG_LANES, ALONG_WINDOWS };

struct printer {
    struct mc_str *out;
    int depth;
    const struct mc_pool_shape *s;
    struct mc_pool_grid g;
    bool keyed, windows;        /* the block reads or writes KEY; there are windows */
    const char *type, *mark;    /* of X and Y; of KEY */
    bool inside[3];             /* no window of the slot is clipped */
    int64_t from, to;           /* windows of the last slot that are printed now */
};
struct text { char s[256]; };

/* ---- pieces of text ---- */

#define LINE(p, ...) mc_str_code((p)->out, (p)->depth, __VA_ARGS__)

static void open_loop(struct printer *p, const char *type, const char *name, int64_t from, int64_t to)
{
    LINE(p, "for (%s %s = %" PRId64 "; %s < %" PRId64 "; %s++) {", type, name, from, name, to, name);
    p->depth++;
}

static void close_to(struct printer *p, int depth)
{
    while (p->depth > depth) {
        p->depth--;
        LINE(p, "}");
    }
}

/* Adds factor * name to a sum; an empty name is 1. */
static void add_term(struct text *t, const char *name, int64_t factor)
{
    const size_t n = strlen(t->s);
    const char *sign = factor < 0 ? (n ? " - " : "-") : n ? " + " : "";
    const uint64_t size = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
    if (factor == 0) {
        return;
    }
    if (!*name) {
        mc_snprintf(t->s + n, sizeof t->s - n, "%s%" PRIu64, sign, size);
    } else if (size == 1) {
        mc_snprintf(t->s + n, sizeof t->s - n, "%s%s", sign, name);
    } else {
        mc_snprintf(t->s + n, sizeof t->s - n, "%s%s * %" PRIu64, sign, name, size);
    }
}

static struct text or_zero(struct text t)
{
    return t.s[0] ? t : (struct text){ "0" };
}

static struct text named(const char *name, int i)
{
    struct text t;
    mc_snprintf(t.s, sizeof t.s, "%s%d", name, i);
    return t;
}

/* The first element of the window (u0, u1, u2) in an array: the first cell, perhaps outside the image, or the
 * window's own element. */
static struct text window_sum(const struct printer *p, int role)
{
    const struct mc_pool_shape *s = p->s;
    const bool cells = role == POOL_X || (role == POOL_KEY && s->key == POOL_KEY_X);
    struct text t = { "" };
    for (int i = 0; i < 3; i++) {
        const int64_t step = p->g.slot[role][i];
        add_term(&t, s->out[i] > 1 ? named("u", i).s : "",
                 s->out[i] > 1 ? step * (cells ? s->stride[i] : 1) : 0);
    }
    add_term(&t, "l", p->g.lanes > 1);
    int64_t before = 0;
    for (int i = 0; i < 3 && cells; i++) {
        before -= s->pad[i] * p->g.slot[role][i];
    }
    add_term(&t, "", before);
    return t;
}

static struct text window_place(const struct printer *p, int role)
{
    return or_zero(window_sum(p, role));
}

/* The place of a cell of the window; name: "a", or "lo" for its first cell. */
static struct text cell_place(const struct printer *p, int role, const char *name)
{
    struct text t = window_sum(p, role);
    for (int i = 0; i < 3; i++) {
        const bool fixed = p->s->w[i] == 1 || (name[0] == 'l' && p->inside[i]);
        add_term(&t, named(name, i).s, fixed ? 0 : p->g.slot[role][i]);
    }
    return or_zero(t);
}

/* The number of cell (a0, a1, a2) of a window. */
static struct text cell_number(const struct printer *p, const char *name)
{
    const int64_t *w = p->s->w, factor[3] = { w[1] * w[2], w[2], 1 };
    struct text t = { "" };
    for (int i = 0; i < 3; i++) {
        const bool fixed = w[i] == 1 || (name[0] == 'l' && p->inside[i]);
        add_term(&t, named(name, i).s, fixed ? 0 : factor[i]);
    }
    return or_zero(t);
}

/* Declares the cells [lo, hi) of the window that lie in the image, for each clipped slot. */
static void declare_clips(struct printer *p)
{
    const struct mc_pool_shape *s = p->s;
    for (int i = 0; i < 3; i++) {
        struct text first = { "" };
        if (p->inside[i] || s->w[i] == 1) {
            continue;
        }
        add_term(&first, named("u", i).s, s->out[i] > 1 ? s->stride[i] : 0);
        add_term(&first, "", -s->pad[i]);
        LINE(p, "const int64_t first%d = %s;", i, or_zero(first).s);
        LINE(p, "const int64_t lo%d = first%d < 0 ? -first%d : 0;", i, i, i);
        LINE(p, "const int64_t hi%d = first%d < %" PRId64 " ? %" PRId64 " : %" PRId64 " - first%d;", i, i,
             s->in[i] - s->w[i], s->w[i], s->in[i], i);
    }
}

/* Opens loops over the cells of the window that lie in the image. */
static void open_cells(struct printer *p)
{
    for (int i = 0; i < 3; i++) {
        if (p->s->w[i] == 1) {
            continue;
        }
        if (p->inside[i]) {
            open_loop(p, "int64_t", named("a", i).s, 0, p->s->w[i]);
        } else {
            LINE(p, "for (int64_t a%d = lo%d; a%d < hi%d; a%d++) {", i, i, i, i, i);
            p->depth++;
        }
    }
}

static bool all_inside(const struct printer *p)
{
    return p->inside[0] && p->inside[1] && p->inside[2];
}

static int64_t window_cells(const struct mc_pool_shape *s)
{
    return s->w[0] * s->w[1] * s->w[2];
}

/* " / 4.0": what divides a sum over the window; needs lo and hi of its clipped slots. */
static struct text divisor(const struct printer *p)
{
    const struct mc_pool_shape *s = p->s;
    struct text t = { "" };
    if (s->mode != POOL_AVERAGE_INC && s->mode != POOL_AVERAGE_EXC) {
        return t;
    }
    if (all_inside(p) || (s->mode == POOL_AVERAGE_INC && s->whole)) {
        if (window_cells(s) > 1) {
            mc_snprintf(t.s, sizeof t.s, " / %" PRId64 ".0", window_cells(s));
        }
        return t;
    }
    mc_snprintf(t.s, sizeof t.s, " / (double)(");
    bool more = false;
    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(t.s);
        if (s->w[i] > 1 && p->inside[i]) {
            mc_snprintf(t.s + n, sizeof t.s - n, "%s%" PRId64, more ? " * " : "", s->w[i]);
        } else if (s->w[i] > 1) {
            mc_snprintf(t.s + n, sizeof t.s - n, "%s(hi%d - lo%d)", more ? " * " : "", i, i);
        }
        more |= s->w[i] > 1;
    }
    const size_t n = strlen(t.s);
    mc_snprintf(t.s + n, sizeof t.s - n, "%s)", more ? "" : "1");
    return t;
}

/* ---- loops over planes and windows ---- */

static bool is_used(const struct printer *p, int role)
{
    return role == POOL_KEY ? p->keyed : role == POOL_Y ? p->windows : true;
}

static const char *constness(const struct printer *p, int role)
{
    const enum mc_pool_pass pass = p->s->pass;
    const bool written = role == (pass == POOL_SPREAD ? POOL_X : POOL_Y) ||
                         (role == POOL_KEY && pass == POOL_FORWARD);
    return written ? "" : "const ";
}

/* The operands are named first: their text may contain the names of loops. */
static void open_planes(struct printer *p, const char *const operand[POOL_NARRAY])
{
    static const char *const name[] = { "x", "y", "key" };
    for (int r = 0; r < POOL_NARRAY; r++) {
        if (is_used(p, r)) {
            LINE(p, "%s%s *pool_%s = %s;", constness(p, r), r == POOL_KEY ? p->mark : p->type, name[r],
                 operand[r]);
        }
    }
    for (int i = 0; i < p->g.nfree; i++) {
        open_loop(p, "int64_t", named("i", i).s, 0, p->g.size[i]);
    }
    for (int r = 0; r < POOL_NARRAY; r++) {
        struct text t = { "" };
        for (int i = 0; i < p->g.nfree; i++) {
            add_term(&t, named("i", i).s, p->g.at[r][i]);
        }
        if (is_used(p, r)) {
            LINE(p, "%s%s *%s = pool_%s + %s;", constness(p, r), r == POOL_KEY ? p->mark : p->type, name[r],
                 name[r], or_zero(t).s);
        }
    }
}

/* Opens the loops over windows, except the innermost one that `along` names. */
static void open_windows(struct printer *p, enum along along)
{
    for (int i = 0; i < (along == ALONG_WINDOWS ? 2 : 3); i++) {
        if (p->s->out[i] > 1) {
            open_loop(p, "int64_t", named("u", i).s, i == 2 ? p->from : 0, i == 2 ? p->to : p->s->out[i]);
        }
    }
}

static void open_along(struct printer *p, enum along along)
{
    if (along == ALONG_WINDOWS && p->s->out[2] > 1) {
        open_loop(p, "int64_t", "u2", p->from, p->to);
    } else if (along != ALONG_WINDOWS && p->g.lanes > 1) {
        open_loop(p, "int64_t", "l", 0, p->g.lanes);
    }
}

/* A NaN is larger than any number, but not than another NaN. */
static const char more[] = "most == most && !(next <= most)";

/* ---- forward ---- */

static void first_cell(struct printer *p, int64_t offset)
{
    const bool alone = window_cells(p->s) == 1;
    LINE(p, "%s most = at[%" PRId64 "]%s;", p->type, offset, alone ? "" : ", next");
    if (p->keyed) {
        LINE(p, "int mark = 0%s;", alone ? "" : ", larger");
    }
}

/* Selections of two, one after another, are what GCC vectorises. */
static void next_cell(struct printer *p, int64_t number)
{
    if (p->keyed) {
        LINE(p, "larger = next <= most ? 0 : 1;");
        LINE(p, "larger = most != most ? 0 : larger;");
        LINE(p, "most = larger ? next : most;");
        LINE(p, "mark = larger ? %" PRId64 " : mark;", number);
    } else {
        LINE(p, "next = next <= most ? most : next;");
        LINE(p, "most = most != most ? most : next;");
    }
}

/* One window, its cells printed one by one; the loops around it are open. */
static void forward_unrolled(struct printer *p, const char *y, const char *key)
{
    const struct mc_pool_shape *s = p->s;
    int64_t number = 0;
    const bool max = s->mode == POOL_MAX;
    LINE(p, "const %s *at = x + %s;", p->type, window_place(p, POOL_X).s);
    for (int64_t a = 0; a < s->w[0]; a++) {
        for (int64_t b = 0; b < s->w[1]; b++) {
            for (int64_t c = 0; c < s->w[2]; c++, number++) {
                const int64_t off = a * p->g.slot[POOL_X][0] + b * p->g.slot[POOL_X][1] +
                                    c * p->g.slot[POOL_X][2];
                if (!max) {
                    LINE(p, "%s at[%" PRId64 "];", number ? "sum +=" : "double sum = 0.0 +", off);
                } else if (number == 0) {
                    first_cell(p, off);
                } else {
                    LINE(p, "next = at[%" PRId64 "];", off);
                    next_cell(p, number);
                }
            }
        }
    }
    if (max) {
        LINE(p, "y[%s] = most;", y);
    } else {
        LINE(p, "y[%s] = (%s)(sum%s);", y, p->type, divisor(p).s);
    }
    if (p->keyed) {
        LINE(p, "key[%s] = (%s)mark;", key, p->mark);
    }
}

/* Declares `most`, the largest cell of the window in an array, and if asked for its number. */
static void find_most(struct printer *p, int role, const char *array, bool number)
{
    const int depth = p->depth;
    LINE(p, "%s most = %s[%s];", p->type, array, cell_place(p, role, "lo").s);
    if (number) {
        LINE(p, "int64_t mark = %s;", cell_number(p, "lo").s);
    }
    open_cells(p);
    LINE(p, "const %s next = %s[%s];", p->type, array, cell_place(p, role, "a").s);
    LINE(p, "if (%s) {", more);
    p->depth++;
    LINE(p, "most = next;");
    if (number) {
        LINE(p, "mark = %s;", cell_number(p, "a").s);
    }
    p->depth--;
    LINE(p, "}");
    close_to(p, depth);
}

static void forward_window(struct printer *p, const char *y, const char *key)
{
    const int depth = p->depth;
    if (p->s->mode == POOL_MAX) {
        find_most(p, POOL_X, "x", p->keyed);
        LINE(p, "y[%s] = most;", y);
        if (p->keyed) {
            LINE(p, "key[%s] = (%s)mark;", key, p->mark);
        }
        return;
    }
    LINE(p, "double sum = 0;");
    open_cells(p);
    LINE(p, "sum += x[%s];", cell_place(p, POOL_X, "a").s);
    close_to(p, depth);
    LINE(p, "y[%s] = (%s)(sum%s);", y, p->type, divisor(p).s);
}

/* A row of windows, cell by cell: Y is the maxima so far. */
static void forward_max_row(struct printer *p, enum along along, const char *y, const char *key)
{
    const int depth = p->depth;
    open_along(p, along);
    LINE(p, "y[%s] = x[%s];", y, cell_place(p, POOL_X, "lo").s);
    if (p->keyed) {
        LINE(p, "key[%s] = (%s)(%s);", key, p->mark, cell_number(p, "lo").s);
    }
    close_to(p, depth);
    open_cells(p);
    if (p->keyed) {
        LINE(p, "const int cell = (int)(%s);", cell_number(p, "a").s);
    }
    open_along(p, along);
    LINE(p, "const %s most = y[%s];", p->type, y);
    LINE(p, "%s next = x[%s];", p->type, cell_place(p, POOL_X, "a").s);
    if (p->keyed) {
        LINE(p, "const int mark = key[%s];", key);
        LINE(p, "const int number = next <= most ? mark : cell;");
        LINE(p, "key[%s] = (%s)(most != most ? mark : number);", key, p->mark);
    }
    LINE(p, "next = next <= most ? most : next;");
    LINE(p, "y[%s] = most != most ? most : next;", y);
    close_to(p, depth);
}

static void forward_sum_row(struct printer *p, enum along along, const char *y)
{
    const int depth = p->depth;
    const char *v = along == ALONG_LANES ? "l" : p->s->out[2] > 1 ? "u2" : "0";
    LINE(p, "double sum[%" PRId64 "];", along == ALONG_LANES ? p->g.lanes : p->s->out[2]);
    open_along(p, along);
    LINE(p, "sum[%s] = 0;", v);
    close_to(p, depth);
    open_cells(p);
    open_along(p, along);
    LINE(p, "sum[%s] += x[%s];", v, cell_place(p, POOL_X, "a").s);
    close_to(p, depth);
    open_along(p, along);
    LINE(p, "y[%s] = (%s)(sum[%s]%s);", y, p->type, v, divisor(p).s);
    close_to(p, depth);
}

/* The windows [from, to) of the last slot. */
static void forward(struct printer *p, enum along along)
{
    const int depth = p->depth;
    const bool max = p->s->mode == POOL_MAX, unrolled = all_inside(p) && window_cells(p->s) <= UNROLLED;
    const int64_t length = along == ALONG_LANES ? p->g.lanes : p->s->out[2];
    const bool row = !unrolled && along != ALONG_NOTHING && length > 1 && (max || length <= ROW);
    const struct text to = window_place(p, POOL_Y), mark = window_place(p, POOL_KEY);
    const char *y = to.s, *key = mark.s;
    if (p->from >= p->to) {
        return;
    }
    open_windows(p, along);
    declare_clips(p);
    if (row && max) {
        forward_max_row(p, along, y, key);
    } else if (row) {
        forward_sum_row(p, along, y);
    } else {
        open_along(p, along);
        if (unrolled) {
            forward_unrolled(p, y, key);
        } else {
            forward_window(p, y, key);
        }
    }
    close_to(p, depth);
}

/* Calls `part` for the windows of the last slot: without lanes, those inside the image are one part. */
static void each_part(struct printer *p, void (*part)(struct printer *p, enum along along))
{
    const struct mc_pool_shape *s = p->s;
    const struct mc_pool_span in = mc_pool_windows_inside(s, 2);
    const bool inside = p->inside[2];
    p->from = 0;
    p->to = s->out[2];
    if (p->g.lanes > 1 || s->out[2] == 1 || in.from >= in.to) {
        part(p, p->g.lanes > 1 ? ALONG_LANES : ALONG_NOTHING);
        return;
    }
    p->to = in.from;
    part(p, ALONG_NOTHING);
    p->from = in.from;
    p->to = in.to;
    p->inside[2] = true;
    part(p, ALONG_WINDOWS);
    p->inside[2] = inside;
    p->from = in.to;
    p->to = s->out[2];
    part(p, ALONG_NOTHING);
}

/* ---- gather ---- */

/* Declares a0, a1, a2: the cell that the mark names.  A mark that is no cell of the window names the first
 * cell of the window. */
static void find_mark(struct printer *p, const char *key)
{
    const int64_t *w = p->s->w;
    LINE(p, "const int64_t mark = key[%s];", key);
    for (int i = 0; i < 3; i++) {
        const int64_t below = i == 0 ? w[1] * w[2] : i == 1 ? w[2] : 1;
        struct text t = { "mark" };
        if (w[i] == 1) {
            continue;
        }
        if (below > 1) {
            mc_snprintf(t.s, sizeof t.s, "mark / %" PRId64, below);
        }
        const size_t n = strlen(t.s);
        if (i > 0) {
            mc_snprintf(t.s + n, sizeof t.s - n, " %% %" PRId64, w[i]);
        }
        LINE(p, "int64_t a%d = %s;", i, t.s);
        if (p->inside[i] && i > 0 && p->s->mark == MC_UINT8) {
            continue;
        }
        if (p->inside[i]) {
            LINE(p, "a%d = a%d < 0 || a%d >= %" PRId64 " ? 0 : a%d;", i, i, i, w[i], i);
        } else {
            LINE(p, "a%d = a%d < lo%d || a%d >= hi%d ? lo%d : a%d;", i, i, i, i, i, i, i);
        }
    }
}

static void gather(struct printer *p, enum along along)
{
    const int depth = p->depth;
    const struct text to = window_place(p, POOL_Y), mark = window_place(p, POOL_KEY);
    if (p->from >= p->to) {
        return;
    }
    open_windows(p, along);
    declare_clips(p);
    open_along(p, along);
    if (p->s->key == POOL_KEY_X) {
        find_most(p, POOL_KEY, "key", false);
        LINE(p, "double sum = 0;");
        const int inner = p->depth;
        open_cells(p);
        LINE(p, "const %s mine = key[%s];", p->type, cell_place(p, POOL_KEY, "a").s);
        LINE(p, "sum += mine >= most && mine <= most ? x[%s] : 0.0;", cell_place(p, POOL_X, "a").s);
        close_to(p, inner);
        LINE(p, "y[%s] = (%s)sum;", to.s, p->type);
    } else {
        if (p->keyed) {
            find_mark(p, mark.s);
        }
        LINE(p, "y[%s] = x[%s];", to.s, cell_place(p, POOL_X, "a").s);
    }
    close_to(p, depth);
}

/* ---- spread ---- */

/* No two windows share a cell, none is clipped, and there is no gap between them. */
static bool tiles(const struct printer *p)
{
    bool yes = all_inside(p) && p->s->key != POOL_KEY_X && (!p->keyed || p->s->mark == MC_UINT8);
    for (int i = 0; i < 3; i++) {
        const int64_t w = p->s->w[i], step = p->s->stride[i];
        yes = yes && p->s->pad[i] == 0 && (w == step || (w < step && p->s->out[i] == 1));
    }
    return yes || !p->windows;
}

/* Clears the cells beyond the last window along slot i, as far as those of slots before it have not been. */
static void clear_rest(struct printer *p, int i)
{
    const struct mc_pool_shape *s = p->s;
    const int depth = p->depth;
    struct text t = { "" };
    if (s->out[i] * s->w[i] >= s->in[i]) {
        return;
    }
    for (int k = 0; k < 3; k++) {
        const int64_t covered = MC_MIN(s->out[k] * s->w[k], s->in[k]), from = k == i ? covered : 0,
                      to = k < i ? covered : s->in[k];
        if (from > 0 || to > 1) {
            open_loop(p, "int64_t", named("c", k).s, from, to);
            add_term(&t, named("c", k).s, p->g.slot[POOL_X][k]);
        }
    }
    add_term(&t, "l", p->g.lanes > 1);
    open_along(p, ALONG_LANES);
    LINE(p, "x[%s] = 0;", or_zero(t).s);
    close_to(p, depth);
}

/* Writes the cells of a window one by one. */
static void spread_unrolled(struct printer *p)
{
    const int64_t *w = p->s->w, *step = p->g.slot[POOL_X];
    int64_t number = 0;
    for (int64_t a = 0; a < w[0]; a++) {
        for (int64_t b = 0; b < w[1]; b++) {
            for (int64_t c = 0; c < w[2]; c++, number++) {
                struct text t = window_sum(p, POOL_X);
                add_term(&t, "", a * step[0] + b * step[1] + c * step[2]);
                if (p->keyed) {
                    LINE(p, "x[%s] = mark == %" PRId64 " ? g : 0;", or_zero(t).s, number);
                } else {
                    LINE(p, "x[%s] = g;", or_zero(t).s);
                }
            }
        }
    }
}

static void spread_window(struct printer *p)
{
    const struct text from = window_place(p, POOL_Y), cell = cell_place(p, POOL_X, "a");
    const int64_t *w = p->s->w;
    if (!p->keyed) {
        LINE(p, "const %s g = (%s)(0 + (double)y[%s]%s);", p->type, p->type, from.s, divisor(p).s);
    } else { /* a mark beyond the window names a cell of its first plane */
        const struct text mark = window_place(p, POOL_KEY);
        LINE(p, "const %s g = 0 + y[%s];", p->type, from.s);
        LINE(p, "int mark = key[%s];", mark.s);
        if (w[0] == 1) {
            LINE(p, "mark %%= %" PRId64 ";", window_cells(p->s));
        } else {
            LINE(p, "mark = mark < %" PRId64 " ? mark : mark %% %" PRId64 ";", window_cells(p->s),
                 w[1] * w[2]);
        }
    }
    if (window_cells(p->s) <= UNROLLED) {
        spread_unrolled(p);
    } else if (p->keyed) {
        LINE(p, "x[%s] = mark == %s ? g : 0;", cell.s, cell_number(p, "a").s);
    } else {
        LINE(p, "x[%s] = g;", cell.s);
    }
}

/* Writes each cell once.  0 + g turns -0 to 0, as a sum does. */
static void spread_tiles(struct printer *p)
{
    const int depth = p->depth;
    const enum along along = p->g.lanes > 1 ? ALONG_LANES : ALONG_WINDOWS;
    p->from = 0;
    p->to = p->s->out[2];
    if (p->windows) {
        open_windows(p, along);
        if (window_cells(p->s) > UNROLLED) {
            open_cells(p);
        }
        open_along(p, along);
        spread_window(p);
        close_to(p, depth);
    }
    for (int i = 0; i < 3; i++) {
        clear_rest(p, i);
    }
}

/* Does a loop run over the windows of the slot that cover a cell?  Not if there is one window, one cell. */
static bool many(const struct mc_pool_shape *s, int i)
{
    return s->out[i] > 1 || s->in[i] > 1;
}

/* Declares [from, to), the windows that cover the cell, for each slot, and `e`, the cell's number in window
 * 0. */
static void declare_covers(struct printer *p)
{
    const struct mc_pool_shape *s = p->s;
    for (int i = 0; i < 3; i++) {
        struct text e = { "" };
        if (!many(s, i)) {
            continue;
        }
        add_term(&e, named("c", i).s, s->in[i] > 1);
        add_term(&e, "", s->pad[i]);
        LINE(p, "const int64_t e%d = %s;", i, or_zero(e).s);
        LINE(p, "const int64_t from%d = e%d < %" PRId64 " ? 0 : (e%d - %" PRId64 ") / %" PRId64 " + 1;", i, i,
             s->w[i], i, s->w[i], s->stride[i]);
        LINE(p, "const int64_t to%d = e%d < 0 ? 0 : e%d < %" PRId64 " ? e%d / %" PRId64 " + 1 : %" PRId64 ";",
             i, i, i, (s->out[i] - 1) * s->stride[i], i, s->stride[i], s->out[i]);
    }
}

static void open_covers(struct printer *p)
{
    for (int i = 0; i < 3; i++) {
        if (many(p->s, i)) {
            LINE(p, "for (int64_t u%d = from%d; u%d < to%d; u%d++) {", i, i, i, i, i);
            p->depth++;
        }
    }
}

/* The number of the cell in window (u0, u1, u2). */
static void declare_number(struct printer *p)
{
    const int64_t *w = p->s->w, factor[3] = { w[1] * w[2], w[2], 1 };
    struct text t = { "" };
    for (int i = 0; i < 3; i++) {
        char name[40];
        if (!many(p->s, i)) { /* the one cell, in the one window */
            add_term(&t, "", p->s->pad[i] * factor[i]);
            continue;
        }
        mc_snprintf(name, sizeof name, "(e%d - u%d * %" PRId64 ")", i, i, p->s->stride[i]);
        add_term(&t, name, factor[i]);
    }
    LINE(p, "const int number = (int)(%s);", or_zero(t).s);
}

/* What a window's gradient adds to the cell: the right side of sum +=. */
static void add_gradient(struct printer *p, const char *sum)
{
    const struct text from = window_place(p, POOL_Y), mark = window_place(p, POOL_KEY);
    if (p->s->key == POOL_KEY_MARKS && p->keyed) {
        LINE(p, "%s += key[%s] == number ? y[%s] : 0.0;", sum, mark.s, from.s);
    } else if (p->s->key == POOL_KEY_X) {
        LINE(p, "%s += mine >= most && mine <= most ? y[%s]%s : 0.0;", sum, from.s, divisor(p).s);
    } else {
        LINE(p, "%s += %sy[%s]%s;", sum, divisor(p).s[0] ? "(double)" : "", from.s, divisor(p).s);
    }
}

static void spread_cells(struct printer *p)
{
    const struct mc_pool_shape *s = p->s;
    const int depth = p->depth;
    const bool row = p->g.lanes > 1 && p->g.lanes <= ROW && s->key != POOL_KEY_X;
    const char *sum = row ? "sum[l]" : "sum";
    struct text cell = { "" }, twin = { "" };
    for (int i = 0; i < 3; i++) {
        if (s->in[i] > 1) {
            open_loop(p, "int64_t", named("c", i).s, 0, s->in[i]);
            add_term(&cell, named("c", i).s, p->g.slot[POOL_X][i]);
            add_term(&twin, named("c", i).s, p->g.slot[POOL_KEY][i]);
        }
    }
    add_term(&cell, "l", p->g.lanes > 1);
    add_term(&twin, "l", p->g.lanes > 1);
    declare_covers(p);
    if (!row) {
        open_along(p, ALONG_LANES);
        LINE(p, "double sum = 0;");
    } else {
        LINE(p, "double sum[%" PRId64 "];", p->g.lanes);
        LINE(p, "for (int64_t l = 0; l < %" PRId64 "; l++) {", p->g.lanes);
        LINE(p, "    sum[l] = 0;");
        LINE(p, "}");
    }
    if (s->key == POOL_KEY_X) {
        LINE(p, "const %s mine = key[%s];", p->type, or_zero(twin).s);
    }
    const int inner = p->depth;
    open_covers(p);
    if (s->key == POOL_KEY_MARKS && p->keyed) {
        declare_number(p);
    } else if (s->key == POOL_KEY_X || strstr(divisor(p).s, "hi")) {
        declare_clips(p);
    }
    if (s->key == POOL_KEY_X) {
        find_most(p, POOL_KEY, "key", false);
    }
    if (row) {
        open_along(p, ALONG_LANES);
    }
    add_gradient(p, sum);
    close_to(p, inner);
    if (row) {
        open_along(p, ALONG_LANES);
    }
    LINE(p, "x[%s] = (%s)%s;", or_zero(cell).s, p->type, sum);
    close_to(p, depth);
}

/* ---- the block ---- */

static bool hollow(const struct printer *p)
{
    const int64_t *written = p->s->pass == POOL_SPREAD ? p->s->in : p->s->out;
    return p->g.planes * p->g.lanes * written[0] * written[1] * written[2] == 0;
}

mc_status mc_pool_print(struct mc_str *out, const struct mc_pool_problem *q,
                        const char *const operand[POOL_NARRAY])
{
    struct mc_pool_problem own = *q;
    struct printer p = { .out = out, .depth = 1, .s = &own.s };
    struct mc_str key = { 0 };
    if (q->dtype != MC_FLOAT32 && q->dtype != MC_FLOAT64) {
        return mc_fail(MC_EUNSUPPORTED, "pooling is exported in float32 and float64, not in %s",
                       mc_dtype_name(q->dtype));
    }
    own.marks = own.marks && operand[POOL_KEY];
    p.windows = q->s.out[0] * q->s.out[1] * q->s.out[2] > 0;
    /* there is one mark of windows of one cell */
    p.keyed = mc_pool_keyed(&own) && p.windows &&
              (q->s.key == POOL_KEY_X || q->s.pass == POOL_FORWARD || window_cells(&q->s) > 1);
    p.type = q->dtype == MC_FLOAT32 ? "float" : "double";
    p.mark = q->s.key == POOL_KEY_X ? p.type : q->s.mark == MC_UINT8 ? "uint8_t" : "int32_t";
    mc_pool_grid(&own, &p.g);
    for (int i = 0; i < 3; i++) {
        const struct mc_pool_span in = mc_pool_windows_inside(&q->s, i);
        p.inside[i] = q->s.w[i] == 1 || in.to - in.from == q->s.out[i];
    }
    mc_pool_key(&own.base, &key);
    LINE(&p, "{");
    p.depth++;
    LINE(&p, "/* %s */", key.s ? key.s : "pool");
    mc_str_free(&key);
    if (!hollow(&p)) {
        open_planes(&p, operand);
        if (q->s.pass == POOL_FORWARD) {
            each_part(&p, forward);
        } else if (q->s.pass == POOL_GATHER) {
            each_part(&p, gather);
        } else if (tiles(&p)) {
            spread_tiles(&p);
        } else {
            spread_cells(&p);
        }
    }
    close_to(&p, 1);
    return out->bad ? MC_EMEMORY : MC_OK;
}

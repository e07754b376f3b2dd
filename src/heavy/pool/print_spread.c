/* print_spread.c: the gradient of a pooling as a block of C99 with all sizes as numbers.
 *
 * It goes cell by cell: each cell adds what it gets from the windows that cover it.  If windows tile the
 * image, it goes window by window, and writes each cell once.
 *
 * Invariant: a cell is the sum of the same terms in the same order as in op/pool_loops.c, in float64, rounded
 * once. */
#include "heavy/pool/print.h"

/* No two windows share a cell, none is clipped, and there is no gap between them. */
static bool tiles(const struct mc_pool_printer *p)
{
    bool yes = mc_pool_print_all_inside(p) && p->s->key != POOL_KEY_X && p->s->key != POOL_KEY_BITS &&
               (!p->keyed || p->s->mark == MC_UINT8);
    for (int i = 0; i < 3; i++) {
        const int64_t w = p->s->w[i], step = p->s->stride[i];
        yes = yes && p->s->pad[i] == 0 && (w == step || (w < step && p->s->out[i] == 1));
    }
    return yes || !p->windows;
}

/* Clears the cells beyond the last window along slot i, as far as those of slots before it have not been. */
static void clear_rest(struct mc_pool_printer *p, int i)
{
    const struct mc_pool_shape *s = p->s;
    const int depth = p->c.depth;
    struct mc_c_sum t = { "0" };
    if (s->out[i] * s->w[i] >= s->in[i]) {
        return;
    }
    for (int k = 0; k < 3; k++) {
        const int64_t covered = MC_MIN(s->out[k] * s->w[k], s->in[k]), from = k == i ? covered : 0,
                      to = k < i ? covered : s->in[k];
        if (from > 0 || to > 1) {
            mc_c_loop(&p->c, mc_pool_print_named("c", k).s, from, to);
            mc_c_add(&t, mc_pool_print_named("c", k).s, p->g.slot[POOL_X][k]);
        }
    }
    mc_c_add(&t, "l", p->g.lanes > 1);
    mc_pool_print_open_along(p, ALONG_LANES);
    LINE(p, "x[%s] = 0;", t.s);
    mc_c_close(&p->c, depth);
}

/* The mark of the window.  One beyond the window names a cell of its first plane. */
static void declare_mark(struct mc_pool_printer *p)
{
    const struct mc_c_sum at = mc_pool_print_window_start(p, POOL_KEY);
    const int64_t *w = p->s->w, cells = mc_pool_print_window_cells(p->s);
    LINE(p, "int mark = key[%s];", at.s);
    if (w[0] == 1) {
        LINE(p, "mark %%= %" PRId64 ";", cells);
    } else {
        LINE(p, "mark = mark < %" PRId64 " ? mark : mark %% %" PRId64 ";", cells, w[1] * w[2]);
    }
}

/* Clears the image, then writes one cell for each window, at a place from a table: a selection for each cell
 * would be a branch that processors cannot predict. */
static void spread_by_marks(struct mc_pool_printer *p)
{
    enum { IN_A_LINE = 8 };
    const int64_t *w = p->s->w, *step = p->g.slot[POOL_X], cells = mc_pool_print_window_cells(p->s);
    const struct mc_c_sum to = mc_pool_print_window_start(p, POOL_X),
                          from = mc_pool_print_window_start(p, POOL_Y);
    struct mc_c_sum cell = { "0" };
    const int depth = p->c.depth;
    LINE(p, "static const int32_t place[] = {");
    for (int64_t n = 0; n < cells; n += IN_A_LINE) {
        char line[IN_A_LINE * 24] = "";
        for (int64_t k = n; k < cells && k < n + IN_A_LINE; k++) {
            const int64_t at = k / (w[1] * w[2]) * step[0] + k / w[2] % w[1] * step[1] + k % w[2] * step[2];
            const size_t used = strlen(line);
            mc_snprintf(line + used, sizeof line - used, "%s%" PRId64 ",", k > n ? " " : "", at);
        }
        LINE(p, "    %s", line);
    }
    LINE(p, "};");
    for (int i = 0; i < 3; i++) {
        if (p->s->in[i] > 1) {
            mc_c_loop(&p->c, mc_pool_print_named("c", i).s, 0, p->s->in[i]);
            mc_c_add(&cell, mc_pool_print_named("c", i).s, step[i]);
        }
    }
    LINE(p, "x[%s] = 0;", cell.s);
    mc_c_close(&p->c, depth);
    mc_pool_print_open_windows(p, ALONG_NOTHING);
    declare_mark(p);
    LINE(p, "x[%s + place[mark]] = 0 + y[%s];", to.s, from.s);
    mc_c_close(&p->c, depth);
}

/* Writes the cells of a window one by one. */
static void spread_unrolled(struct mc_pool_printer *p)
{
    const int64_t *w = p->s->w, *step = p->g.slot[POOL_X];
    int64_t number = 0;
    for (int64_t a = 0; a < w[0]; a++) {
        for (int64_t b = 0; b < w[1]; b++) {
            for (int64_t c = 0; c < w[2]; c++, number++) {
                struct mc_c_sum t = mc_pool_print_window_start(p, POOL_X);
                mc_c_add(&t, "", a * step[0] + b * step[1] + c * step[2]);
                if (p->keyed) {
                    LINE(p, "x[%s] = mark == %" PRId64 " ? g : 0;", t.s, number);
                } else {
                    LINE(p, "x[%s] = g;", t.s);
                }
            }
        }
    }
}

static void spread_window(struct mc_pool_printer *p)
{
    const struct mc_c_sum from = mc_pool_print_window_start(p, POOL_Y),
                          cell = mc_pool_print_cell_position(p, POOL_X, "a");
    if (!p->keyed) {
        LINE(p, "const %s g = (%s)(0 + (double)y[%s]%s);", p->type, p->type, from.s,
             mc_pool_print_divisor(p).s);
    } else {
        LINE(p, "const %s g = 0 + y[%s];", p->type, from.s);
        declare_mark(p);
    }
    if (mc_pool_print_window_cells(p->s) <= UNROLLED) {
        spread_unrolled(p);
    } else if (p->keyed) {
        LINE(p, "x[%s] = mark == %s ? g : 0;", cell.s, mc_pool_print_cell_number(p, "a").s);
    } else {
        LINE(p, "x[%s] = g;", cell.s);
    }
}

/* Writes each cell once.  0 + g turns -0 to 0, as a sum does. */
static void spread_tiles(struct mc_pool_printer *p)
{
    const int depth = p->c.depth;
    const enum mc_pool_along along = p->g.lanes > 1 ? ALONG_LANES : ALONG_WINDOWS;
    p->from = 0;
    p->to = p->s->out[2];
    if (p->windows && p->keyed && p->g.lanes == 1) {
        spread_by_marks(p);
        return;
    }
    if (p->windows) {
        mc_pool_print_open_windows(p, along);
        if (mc_pool_print_window_cells(p->s) > UNROLLED) {
            mc_pool_print_open_cells(p);
        }
        mc_pool_print_open_along(p, along);
        spread_window(p);
        mc_c_close(&p->c, depth);
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
static void declare_covers(struct mc_pool_printer *p)
{
    const struct mc_pool_shape *s = p->s;
    for (int i = 0; i < 3; i++) {
        struct mc_c_sum e = { "0" };
        if (!many(s, i)) {
            continue;
        }
        mc_c_add(&e, mc_pool_print_named("c", i).s, s->in[i] > 1);
        mc_c_add(&e, "", s->pad[i]);
        LINE(p, "const int64_t e%d = %s;", i, e.s);
        LINE(p, "const int64_t from%d = e%d < %" PRId64 " ? 0 : (e%d - %" PRId64 ") / %" PRId64 " + 1;", i, i,
             s->w[i], i, s->w[i], s->stride[i]);
        LINE(p, "const int64_t to%d = e%d < 0 ? 0 : e%d < %" PRId64 " ? e%d / %" PRId64 " + 1 : %" PRId64 ";",
             i, i, i, (s->out[i] - 1) * s->stride[i], i, s->stride[i], s->out[i]);
    }
}

static void open_covers(struct mc_pool_printer *p)
{
    for (int i = 0; i < 3; i++) {
        if (many(p->s, i)) {
            LINE(p, "for (int64_t u%d = from%d; u%d < to%d; u%d++) {", i, i, i, i, i);
            p->c.depth++;
        }
    }
}

/* The number of the cell in window (u0, u1, u2). */
static void declare_number(struct mc_pool_printer *p)
{
    const int64_t *w = p->s->w, factor[3] = { w[1] * w[2], w[2], 1 };
    struct mc_c_sum t = { "0" };
    for (int i = 0; i < 3; i++) {
        char name[40];
        if (!many(p->s, i)) { /* the one cell, in the one window */
            mc_c_add(&t, "", p->s->pad[i] * factor[i]);
            continue;
        }
        mc_snprintf(name, sizeof name, "(e%d - u%d * %" PRId64 ")", i, i, p->s->stride[i]);
        mc_c_add(&t, name, factor[i]);
    }
    LINE(p, "const int number = (int)(%s);", t.s);
}

/* What a window's gradient adds to the cell: the right side of sum +=. */
static void add_gradient(struct mc_pool_printer *p, const char *sum)
{
    const struct mc_c_sum from = mc_pool_print_window_start(p, POOL_Y),
                          mark = mc_pool_print_window_start(p, POOL_KEY);
    if (p->s->key == POOL_KEY_MARKS && p->keyed) {
        LINE(p, "%s += key[%s] == number ? y[%s] : 0.0;", sum, mark.s, from.s);
    } else if (p->s->key == POOL_KEY_BITS) {
        LINE(p, "%s += key[%s] >> number & 1 ? y[%s] : 0.0;", sum, mark.s, from.s);
    } else if (p->s->key == POOL_KEY_X) {
        LINE(p, "%s += mine >= most && mine <= most ? y[%s]%s : 0.0;", sum, from.s,
             mc_pool_print_divisor(p).s);
    } else {
        LINE(p, "%s += %sy[%s]%s;", sum, mc_pool_print_divisor(p).s[0] ? "(double)" : "", from.s,
             mc_pool_print_divisor(p).s);
    }
}

static void spread_cells(struct mc_pool_printer *p)
{
    const struct mc_pool_shape *s = p->s;
    const int depth = p->c.depth;
    const bool row = p->g.lanes > 1 && p->g.lanes <= ROW && s->key != POOL_KEY_X;
    const char *sum = row ? "sum[l]" : "sum";
    struct mc_c_sum cell = { "0" }, key_cell = { "0" };
    mc_pool_print_parallel(p, false, (s->in[0] > 1) + (s->in[1] > 1) + (s->in[2] > 1));
    for (int i = 0; i < 3; i++) {
        if (s->in[i] > 1) {
            mc_c_loop(&p->c, mc_pool_print_named("c", i).s, 0, s->in[i]);
            mc_c_add(&cell, mc_pool_print_named("c", i).s, p->g.slot[POOL_X][i]);
            mc_c_add(&key_cell, mc_pool_print_named("c", i).s, p->g.slot[POOL_KEY][i]);
        }
    }
    mc_c_add(&cell, "l", p->g.lanes > 1);
    mc_c_add(&key_cell, "l", p->g.lanes > 1);
    declare_covers(p);
    if (!row) {
        mc_pool_print_open_along(p, ALONG_LANES);
        LINE(p, "double sum = 0;");
    } else {
        LINE(p, "double sum[%" PRId64 "];", p->g.lanes);
        LINE(p, "for (int64_t l = 0; l < %" PRId64 "; l++) {", p->g.lanes);
        LINE(p, "    sum[l] = 0;");
        LINE(p, "}");
    }
    if (s->key == POOL_KEY_X) {
        LINE(p, "const %s mine = key[%s];", p->type, key_cell.s);
    }
    const int inner = p->c.depth;
    open_covers(p);
    if (mc_pool_key_like_y(s) && p->keyed) {
        declare_number(p);
    } else if (s->key == POOL_KEY_X || strstr(mc_pool_print_divisor(p).s, "hi")) {
        mc_pool_print_declare_clips(p);
    }
    if (s->key == POOL_KEY_X) {
        mc_pool_print_find_most(p, POOL_KEY, "key", false);
    }
    if (row) {
        mc_pool_print_open_along(p, ALONG_LANES);
    }
    add_gradient(p, sum);
    mc_c_close(&p->c, inner);
    if (row) {
        mc_pool_print_open_along(p, ALONG_LANES);
    }
    LINE(p, "x[%s] = (%s)%s;", cell.s, p->type, sum);
    mc_c_close(&p->c, depth);
}

void mc_pool_print_spread(struct mc_pool_printer *p)
{
    if (tiles(p)) {
        spread_tiles(p);
    } else {
        spread_cells(p);
    }
}

/* print.c: a pooling as a block of C99 with all sizes as numbers, for files that stand alone.
 *
 * FORWARD and GATHER go window by window.  print_spread.c has SPREAD.
 *
 * Invariant: the block gives the bits of op/pool_loops.c: a number is the sum of the same terms in the same
 * order, in float64, rounded once. */
#include "heavy/pool/print.h"

/* ---- pieces of text ---- */

struct mc_c_sum mc_pool_print_named(const char *name, int i)
{
    struct mc_c_sum t;
    mc_snprintf(t.s, sizeof t.s, "%s%d", name, i);
    return t;
}

/* The first element of the window (u0, u1, u2) in an array: the first cell, perhaps outside the image, or the
 * window's own element. */
struct mc_c_sum mc_pool_print_window_start(const struct mc_pool_printer *p, int role)
{
    const struct mc_pool_shape *s = p->s;
    const bool cells = role == POOL_X || (role == POOL_KEY && s->key == POOL_KEY_X);
    struct mc_c_sum t = { "0" };
    for (int i = 0; i < 3; i++) {
        const int64_t step = p->g.slot[role][i];
        mc_c_add(&t, s->out[i] > 1 ? mc_pool_print_named("u", i).s : "",
                 s->out[i] > 1 ? step * (cells ? s->stride[i] : 1) : 0);
    }
    mc_c_add(&t, "l", p->g.lanes > 1);
    int64_t before = 0;
    for (int i = 0; i < 3 && cells; i++) {
        before -= s->pad[i] * p->g.slot[role][i];
    }
    mc_c_add(&t, "", before);
    return t;
}

/* The position of a cell of the window; name: "a", or "lo" for its first cell. */
struct mc_c_sum mc_pool_print_cell_position(const struct mc_pool_printer *p, int role, const char *name)
{
    struct mc_c_sum t = mc_pool_print_window_start(p, role);
    for (int i = 0; i < 3; i++) {
        const bool fixed = p->s->w[i] == 1 || (name[0] == 'l' && p->inside[i]);
        mc_c_add(&t, mc_pool_print_named(name, i).s, fixed ? 0 : p->g.slot[role][i]);
    }
    return t;
}

/* The number of cell (a0, a1, a2) of a window. */
struct mc_c_sum mc_pool_print_cell_number(const struct mc_pool_printer *p, const char *name)
{
    const int64_t *w = p->s->w, factor[3] = { w[1] * w[2], w[2], 1 };
    struct mc_c_sum t = { "0" };
    for (int i = 0; i < 3; i++) {
        const bool fixed = w[i] == 1 || (name[0] == 'l' && p->inside[i]);
        mc_c_add(&t, mc_pool_print_named(name, i).s, fixed ? 0 : factor[i]);
    }
    return t;
}

/* Declares the cells [lo, hi) of the window that lie in the image, for each clipped slot. */
void mc_pool_print_declare_clips(struct mc_pool_printer *p)
{
    const struct mc_pool_shape *s = p->s;
    for (int i = 0; i < 3; i++) {
        struct mc_c_sum first = { "0" };
        if (p->inside[i] || s->w[i] == 1) {
            continue;
        }
        mc_c_add(&first, mc_pool_print_named("u", i).s, s->out[i] > 1 ? s->stride[i] : 0);
        mc_c_add(&first, "", -s->pad[i]);
        LINE(p, "const int64_t first%d = %s;", i, first.s);
        LINE(p, "const int64_t lo%d = first%d < 0 ? -first%d : 0;", i, i, i);
        LINE(p, "const int64_t hi%d = first%d < %" PRId64 " ? %" PRId64 " : %" PRId64 " - first%d;", i, i,
             s->in[i] - s->w[i], s->w[i], s->in[i], i);
    }
}

/* Opens loops over the cells of the window that lie in the image. */
void mc_pool_print_open_cells(struct mc_pool_printer *p)
{
    for (int i = 0; i < 3; i++) {
        if (p->s->w[i] == 1) {
            continue;
        }
        if (p->inside[i]) {
            mc_c_loop(&p->c, mc_pool_print_named("a", i).s, 0, p->s->w[i]);
        } else {
            LINE(p, "for (int64_t a%d = lo%d; a%d < hi%d; a%d++) {", i, i, i, i, i);
            p->c.depth++;
        }
    }
}

bool mc_pool_print_all_inside(const struct mc_pool_printer *p)
{
    return p->inside[0] && p->inside[1] && p->inside[2];
}

int64_t mc_pool_print_window_cells(const struct mc_pool_shape *s)
{
    return s->w[0] * s->w[1] * s->w[2];
}

/* " / 4.0": what divides a sum over the window; needs lo and hi of its clipped slots. */
struct mc_c_sum mc_pool_print_divisor(const struct mc_pool_printer *p)
{
    const struct mc_pool_shape *s = p->s;
    struct mc_c_sum t = { "" };
    if (s->mode != POOL_AVERAGE_INC && s->mode != POOL_AVERAGE_EXC) {
        return t;
    }
    if (mc_pool_print_all_inside(p) || (s->mode == POOL_AVERAGE_INC && s->whole)) {
        if (mc_pool_print_window_cells(s) > 1) {
            mc_snprintf(t.s, sizeof t.s, " / %" PRId64 ".0", mc_pool_print_window_cells(s));
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

/* Multiply-adds that take as long, about: each cell of each window, and the arrays. */
static double work_of(const struct mc_pool_printer *p)
{
    const struct mc_pool_shape *s = p->s;
    double windows = 1, cells = 1;
    for (int i = 0; i < 3; i++) {
        windows *= (double)s->out[i] * (double)s->w[i];
        cells *= (double)s->in[i];
    }
    return (8 * windows + 4 * cells) * (double)p->g.lanes;
}

void mc_pool_print_parallel(struct mc_pool_printer *p, bool planes, int loops)
{
    if (planes == p->by_planes) {
        mc_c_parallel(&p->c, false, loops, work_of(p) * (double)(planes ? p->g.planes : 1), "");
    }
}

static bool is_used(const struct mc_pool_printer *p, int role)
{
    return role == POOL_KEY ? p->keyed : role == POOL_Y ? p->windows : true;
}

static const char *constness(const struct mc_pool_printer *p, int role)
{
    const enum mc_pool_pass pass = p->s->pass;
    const bool written = role == (pass == POOL_SPREAD ? POOL_X : POOL_Y) ||
                         (role == POOL_KEY && pass == POOL_FORWARD);
    return written ? "" : "const ";
}

/* The operands are named first: their text may contain the names of loops. */
static void open_planes(struct mc_pool_printer *p, const char *const operand[POOL_NARRAY])
{
    static const char *const name[] = { "x", "y", "key" };
    for (int r = 0; r < POOL_NARRAY; r++) {
        if (is_used(p, r)) {
            LINE(p, "%s%s *pool_%s = %s;", constness(p, r), r == POOL_KEY ? p->mark : p->type, name[r],
                 operand[r]);
        }
    }
    mc_pool_print_parallel(p, true, p->g.planes > 1 ? p->g.nfree : 0);
    for (int i = 0; i < p->g.nfree; i++) {
        mc_c_loop(&p->c, mc_pool_print_named("i", i).s, 0, p->g.size[i]);
    }
    for (int r = 0; r < POOL_NARRAY; r++) {
        struct mc_c_sum t = { "0" };
        for (int i = 0; i < p->g.nfree; i++) {
            mc_c_add(&t, mc_pool_print_named("i", i).s, p->g.at[r][i]);
        }
        if (is_used(p, r)) {
            LINE(p, "%s%s *%s = pool_%s + %s;", constness(p, r), r == POOL_KEY ? p->mark : p->type, name[r],
                 name[r], t.s);
        }
    }
}

/* Opens the loops over windows, except the innermost one that `along` names. */
void mc_pool_print_open_windows(struct mc_pool_printer *p, enum mc_pool_along along)
{
    const int slots = along == ALONG_WINDOWS ? 2 : 3;
    int first = 0;
    while (first < slots && p->s->out[first] == 1) {
        first++;
    }
    for (int i = 0; i < slots; i++) {
        if (p->s->out[i] > 1) {
            mc_pool_print_parallel(p, false, i == first);
            mc_c_loop(&p->c, mc_pool_print_named("u", i).s, i == 2 ? p->from : 0,
                      i == 2 ? p->to : p->s->out[i]);
        }
    }
}

void mc_pool_print_open_along(struct mc_pool_printer *p, enum mc_pool_along along)
{
    if (along == ALONG_WINDOWS && p->s->out[2] > 1) {
        mc_c_loop(&p->c, "u2", p->from, p->to);
    } else if (along != ALONG_WINDOWS && p->g.lanes > 1) {
        mc_c_loop(&p->c, "l", 0, p->g.lanes);
    }
}

/* A NaN is larger than any number, but not than another NaN. */
static const char more[] = "most == most && !(next <= most)";

/* ---- forward ---- */

static void first_cell(struct mc_pool_printer *p, int64_t offset)
{
    const bool alone = mc_pool_print_window_cells(p->s) == 1;
    LINE(p, "%s most = at[%" PRId64 "]%s;", p->type, offset, alone ? "" : ", next");
    if (p->keyed) {
        LINE(p, "int mark = 0%s;", alone ? "" : ", larger");
    }
}

/* Selections of two, one after another, are what GCC vectorises. */
static void next_cell(struct mc_pool_printer *p, int64_t number)
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
static void forward_unrolled(struct mc_pool_printer *p, const char *y, const char *key)
{
    const struct mc_pool_shape *s = p->s;
    int64_t number = 0;
    const bool max = s->mode == POOL_MAX;
    LINE(p, "const %s *at = x + %s;", p->type, mc_pool_print_window_start(p, POOL_X).s);
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
        LINE(p, "y[%s] = (%s)(sum%s);", y, p->type, mc_pool_print_divisor(p).s);
    }
    if (p->keyed) {
        LINE(p, "key[%s] = (%s)mark;", key, p->mark);
    }
}

/* Declares `most`, the largest cell of the window in an array, and if asked for its number. */
void mc_pool_print_find_most(struct mc_pool_printer *p, int role, const char *array, bool number)
{
    const int depth = p->c.depth;
    LINE(p, "%s most = %s[%s];", p->type, array, mc_pool_print_cell_position(p, role, "lo").s);
    if (number) {
        LINE(p, "int64_t mark = %s;", mc_pool_print_cell_number(p, "lo").s);
    }
    mc_pool_print_open_cells(p);
    LINE(p, "const %s next = %s[%s];", p->type, array, mc_pool_print_cell_position(p, role, "a").s);
    LINE(p, "if (%s) {", more);
    p->c.depth++;
    LINE(p, "most = next;");
    if (number) {
        LINE(p, "mark = %s;", mc_pool_print_cell_number(p, "a").s);
    }
    p->c.depth--;
    LINE(p, "}");
    mc_c_close(&p->c, depth);
}

static void forward_window(struct mc_pool_printer *p, const char *y, const char *key)
{
    const int depth = p->c.depth;
    if (p->s->mode == POOL_MAX) {
        mc_pool_print_find_most(p, POOL_X, "x", p->keyed);
        LINE(p, "y[%s] = most;", y);
        if (p->keyed) {
            LINE(p, "key[%s] = (%s)mark;", key, p->mark);
        }
        return;
    }
    LINE(p, "double sum = 0;");
    mc_pool_print_open_cells(p);
    LINE(p, "sum += x[%s];", mc_pool_print_cell_position(p, POOL_X, "a").s);
    mc_c_close(&p->c, depth);
    LINE(p, "y[%s] = (%s)(sum%s);", y, p->type, mc_pool_print_divisor(p).s);
}

/* A row of windows, cell by cell: Y is the maxima so far. */
static void forward_max_row(struct mc_pool_printer *p, enum mc_pool_along along, const char *y,
                            const char *key)
{
    const int depth = p->c.depth;
    mc_pool_print_open_along(p, along);
    LINE(p, "y[%s] = x[%s];", y, mc_pool_print_cell_position(p, POOL_X, "lo").s);
    if (p->keyed) {
        LINE(p, "key[%s] = (%s)(%s);", key, p->mark, mc_pool_print_cell_number(p, "lo").s);
    }
    mc_c_close(&p->c, depth);
    mc_pool_print_open_cells(p);
    if (p->keyed) {
        LINE(p, "const int cell = (int)(%s);", mc_pool_print_cell_number(p, "a").s);
    }
    mc_pool_print_open_along(p, along);
    LINE(p, "const %s most = y[%s];", p->type, y);
    LINE(p, "%s next = x[%s];", p->type, mc_pool_print_cell_position(p, POOL_X, "a").s);
    if (p->keyed) {
        LINE(p, "const int mark = key[%s];", key);
        LINE(p, "const int number = next <= most ? mark : cell;");
        LINE(p, "key[%s] = (%s)(most != most ? mark : number);", key, p->mark);
    }
    LINE(p, "next = next <= most ? most : next;");
    LINE(p, "y[%s] = most != most ? most : next;", y);
    mc_c_close(&p->c, depth);
}

static void forward_sum_row(struct mc_pool_printer *p, enum mc_pool_along along, const char *y)
{
    const int depth = p->c.depth;
    const char *v = along == ALONG_LANES ? "l" : p->s->out[2] > 1 ? "u2" : "0";
    LINE(p, "double sum[%" PRId64 "];", along == ALONG_LANES ? p->g.lanes : p->s->out[2]);
    mc_pool_print_open_along(p, along);
    LINE(p, "sum[%s] = 0;", v);
    mc_c_close(&p->c, depth);
    mc_pool_print_open_cells(p);
    mc_pool_print_open_along(p, along);
    LINE(p, "sum[%s] += x[%s];", v, mc_pool_print_cell_position(p, POOL_X, "a").s);
    mc_c_close(&p->c, depth);
    mc_pool_print_open_along(p, along);
    LINE(p, "y[%s] = (%s)(sum[%s]%s);", y, p->type, v, mc_pool_print_divisor(p).s);
    mc_c_close(&p->c, depth);
}

/* The windows [from, to) of the last slot. */
static void forward(struct mc_pool_printer *p, enum mc_pool_along along)
{
    const int depth = p->c.depth;
    const bool max = p->s->mode == POOL_MAX,
               unrolled = mc_pool_print_all_inside(p) && mc_pool_print_window_cells(p->s) <= UNROLLED;
    const int64_t length = along == ALONG_LANES ? p->g.lanes : p->s->out[2];
    const bool row = !unrolled && along != ALONG_NOTHING && length > 1 && (max || length <= ROW);
    const struct mc_c_sum to = mc_pool_print_window_start(p, POOL_Y),
                          mark = mc_pool_print_window_start(p, POOL_KEY);
    const char *y = to.s, *key = mark.s;
    if (p->from >= p->to) {
        return;
    }
    mc_pool_print_open_windows(p, along);
    mc_pool_print_declare_clips(p);
    if (row && max) {
        forward_max_row(p, along, y, key);
    } else if (row) {
        forward_sum_row(p, along, y);
    } else {
        mc_pool_print_open_along(p, along);
        if (unrolled) {
            forward_unrolled(p, y, key);
        } else {
            forward_window(p, y, key);
        }
    }
    mc_c_close(&p->c, depth);
}

/* Calls `part` for the windows of the last slot: without lanes, those inside the image are one part. */
static void each_part(struct mc_pool_printer *p,
                      void (*part)(struct mc_pool_printer *p, enum mc_pool_along along))
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
static void find_mark(struct mc_pool_printer *p, const char *key)
{
    const int64_t *w = p->s->w;
    LINE(p, "const int64_t mark = key[%s];", key);
    for (int i = 0; i < 3; i++) {
        const int64_t below = i == 0 ? w[1] * w[2] : i == 1 ? w[2] : 1;
        struct mc_c_sum t = { "mark" };
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

static void gather(struct mc_pool_printer *p, enum mc_pool_along along)
{
    const int depth = p->c.depth;
    const struct mc_c_sum to = mc_pool_print_window_start(p, POOL_Y),
                          mark = mc_pool_print_window_start(p, POOL_KEY);
    if (p->from >= p->to) {
        return;
    }
    mc_pool_print_open_windows(p, along);
    mc_pool_print_declare_clips(p);
    mc_pool_print_open_along(p, along);
    if (p->s->key == POOL_KEY_X) {
        mc_pool_print_find_most(p, POOL_KEY, "key", false);
        LINE(p, "double sum = 0;");
        const int inner = p->c.depth;
        mc_pool_print_open_cells(p);
        LINE(p, "const %s mine = key[%s];", p->type, mc_pool_print_cell_position(p, POOL_KEY, "a").s);
        LINE(p, "sum += mine >= most && mine <= most ? x[%s] : 0.0;",
             mc_pool_print_cell_position(p, POOL_X, "a").s);
        mc_c_close(&p->c, inner);
        LINE(p, "y[%s] = (%s)sum;", to.s, p->type);
    } else {
        if (p->keyed) {
            find_mark(p, mark.s);
        }
        LINE(p, "y[%s] = x[%s];", to.s, mc_pool_print_cell_position(p, POOL_X, "a").s);
    }
    mc_c_close(&p->c, depth);
}

/* ---- bits ---- */

/* After the maxima: a bit for each cell that equals its window's. */
static void tie_bits(struct mc_pool_printer *p, enum mc_pool_along along)
{
    const int depth = p->c.depth;
    if (p->from >= p->to) {
        return;
    }
    mc_pool_print_open_windows(p, along);
    mc_pool_print_declare_clips(p);
    mc_pool_print_open_along(p, along);
    LINE(p, "const %s most = y[%s];", p->type, mc_pool_print_window_start(p, POOL_Y).s);
    LINE(p, "int bits = 0;");
    const int inner = p->c.depth;
    mc_pool_print_open_cells(p);
    LINE(p, "const %s mine = x[%s];", p->type, mc_pool_print_cell_position(p, POOL_X, "a").s);
    LINE(p, "bits |= (mine >= most && mine <= most) << (%s);", mc_pool_print_cell_number(p, "a").s);
    mc_c_close(&p->c, inner);
    LINE(p, "key[%s] = (%s)bits;", mc_pool_print_window_start(p, POOL_KEY).s, p->mark);
    mc_c_close(&p->c, depth);
}

/* ---- the block ---- */

static bool hollow(const struct mc_pool_printer *p)
{
    const int64_t *written = p->s->pass == POOL_SPREAD ? p->s->in : p->s->out;
    return p->g.planes * p->g.lanes * written[0] * written[1] * written[2] == 0;
}

mc_status mc_pool_print(struct mc_str *out, const struct mc_pool_problem *q,
                        const char *const operand[POOL_NARRAY])
{
    struct mc_pool_problem own = *q;
    struct mc_pool_printer p = { .c = { out, 1 }, .s = &own.s };
    struct mc_str key = { 0 };
    if (q->dtype != MC_FLOAT32 && q->dtype != MC_FLOAT64) {
        return mc_fail(MC_EUNSUPPORTED, "pooling is exported in float32 and float64, not in %s",
                       mc_dtype_name(q->dtype));
    }
    own.marks = own.marks && operand[POOL_KEY];
    p.windows = q->s.out[0] * q->s.out[1] * q->s.out[2] > 0;
    /* there is one mark of windows of one cell */
    p.keyed = mc_pool_keyed(&own) && p.windows &&
              (q->s.key == POOL_KEY_X || q->s.key == POOL_KEY_BITS || q->s.pass == POOL_FORWARD ||
               mc_pool_print_window_cells(&q->s) > 1);
    p.type = q->dtype == MC_FLOAT32 ? "float" : "double";
    p.mark = q->s.key == POOL_KEY_X ? p.type : q->s.mark == MC_UINT8 ? "uint8_t" : "int32_t";
    mc_pool_grid(&own, &p.g);
    p.by_planes = p.g.planes >= 16;
    for (int i = 0; i < 3; i++) {
        const struct mc_pool_span in = mc_pool_windows_inside(&q->s, i);
        p.inside[i] = q->s.w[i] == 1 || in.to - in.from == q->s.out[i];
    }
    mc_pool_key(&own.base, &key);
    mc_c_open(&p.c, key.s ? key.s : "pool");
    mc_str_free(&key);
    if (!hollow(&p)) {
        open_planes(&p, operand);
        if (q->s.pass == POOL_FORWARD) {
            const bool bits = p.keyed && q->s.key == POOL_KEY_BITS;
            p.keyed = p.keyed && !bits;
            each_part(&p, forward);
            p.keyed = p.keyed || bits;
            if (bits) {
                each_part(&p, tie_bits);
            }
        } else if (q->s.pass == POOL_GATHER) {
            each_part(&p, gather);
        } else {
            mc_pool_print_spread(&p);
        }
    }
    mc_c_close(&p.c, 1);
    return out->bad ? MC_EMEMORY : MC_OK;
}

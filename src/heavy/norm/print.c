/* print.c: a normalisation across channels as a block of C99 with all sizes as numbers, for files that stand
 * alone.
 *
 * Forward, each channel is computed from x directly.  Backward, a line of channels is computed as a whole:
 * part[c] is g[c] d[c]^-beta and term[c] is what channel c adds to the sums of the windows it is in.
 *
 * Invariant: the block gives the bits of op/norm.c: float64 throughout, the same terms in the same order,
 * rounded once. */
#include "heavy/norm/solver.h"
#include <inttypes.h>
#include <math.h>

struct printer {
    struct mc_c_text c;
    const struct mc_norm_problem *q;
    struct mc_norm_grid g;
    const char *type;
};
struct text { char s[64]; };

#define LINE(p, ...) mc_c_line(&(p)->c, __VA_ARGS__)

/* x[c * 64 + l]: channel `c` of array r. */
static struct text element(const struct printer *p, int r, const char *channel)
{
    const char *lane = p->g.lanes > 1 ? " + l" : "";
    struct text t;
    if (p->g.far[r] == 1) {
        mc_snprintf(t.s, sizeof t.s, "%c[%s%s]", "xgy"[r], channel, lane);
    } else {
        mc_snprintf(t.s, sizeof t.s, "%c[%s * %" PRId64 "%s]", "xgy"[r], channel, p -> g.far[r], lane);
    }
    return t;
}

/* A compiler may replace pow by products or roots if it knows an exponent such as -1 or 0.5.  They do not
 * always give the bits of pow. */
static void declare_power(struct printer *p, const char *name, double power)
{
    struct mc_str text = { 0 };
    const bool short_cut = floor(2 * power) >= 2 * power;
    mc_c_real(&text, power);
    LINE(p, "const %sdouble %s = %s;%s", short_cut ? "volatile " : "", name, text.s ? text.s : "0",
         short_cut ? " /* volatile: call pow */" : "");
    p->c.out->bad |= text.bad;
    mc_str_free(&text);
}

static void declare_number(struct printer *p, const char *name, double v)
{
    struct mc_str text = { 0 };
    mc_c_real(&text, v);
    LINE(p, "const double %s = %s;", name, text.s ? text.s : "0");
    p->c.out->bad |= text.bad;
    mc_str_free(&text);
}

/* Declares the window [from, to) of channel c, by mc_norm_window. */
static void declare_window(struct printer *p, bool back)
{
    const struct mc_norm_shape *s = &p->q->s;
    const int64_t before = back ? s->n - s->n / 2 - 1 : s->n / 2, last = p->g.c - s->n;
    if (s->blocked) {
        LINE(p, "const int64_t from = c / %" PRId64 " * %" PRId64 ";", s->n, s->n);
        LINE(p, "const int64_t to = from < %" PRId64 " ? from + %" PRId64 " : %" PRId64 ";", last, s->n,
             p->g.c);
    } else {
        LINE(p, "const int64_t from = c < %" PRId64 " ? 0 : c - %" PRId64 ";", before, before);
        LINE(p, "const int64_t to = c < %" PRId64 " ? c + %" PRId64 " : %" PRId64 ";", last + before,
             s->n - before, p->g.c);
    }
}

/* Declares `base`, k + alpha times the sum of the squares of the window. */
static void declare_base(struct printer *p)
{
    LINE(p, "double squares = 0;");
    LINE(p, "for (int64_t e = from; e < to; e++) {");
    LINE(p, "    const double v = %s;", element(p, NORM_X, "e").s);
    LINE(p, "    squares += v * v;");
    LINE(p, "}");
    LINE(p, "const double base = k + alpha * squares;");
}

/* Threads share the planes, or with few planes the channels or lanes.  A power takes as long as some 200
 * multiply-adds. */
static void parallel(struct printer *p, bool planes, int loops)
{
    const double each = 200 * (double)p->g.c * (double)p->g.lanes;
    if (planes == (p->g.planes >= 16)) {
        mc_c_parallel(&p->c, false, loops, planes ? each * (double)p->g.planes : each, "");
    }
}

static void forward(struct printer *p)
{
    parallel(p, false, 1);
    mc_c_loop(&p->c, "c", 0, p->g.c);
    declare_window(p, false);
    if (p->g.lanes > 1) {
        mc_c_loop(&p->c, "l", 0, p->g.lanes);
    }
    declare_base(p);
    LINE(p, "%s = (%s)(%s * pow(base, power));", element(p, NORM_Y, "c").s, p->type,
         element(p, NORM_X, "c").s);
}

static void backward(struct printer *p)
{
    if (p->g.lanes > 1) {
        parallel(p, false, 1);
        mc_c_loop(&p->c, "l", 0, p->g.lanes);
    }
    const int depth = p->c.depth;
    LINE(p, "double part[%" PRId64 "], term[%" PRId64 "];", p->g.c, p->g.c);
    mc_c_loop(&p->c, "c", 0, p->g.c);
    declare_window(p, false);
    declare_base(p);
    LINE(p, "part[c] = %s * pow(base, power);", element(p, NORM_G, "c").s);
    LINE(p, "term[c] = (double)%s * %s * pow(base, next_power);", element(p, NORM_G, "c").s,
         element(p, NORM_X, "c").s);
    mc_c_close(&p->c, depth);
    mc_c_loop(&p->c, "c", 0, p->g.c);
    declare_window(p, true);
    LINE(p, "double sum = 0;");
    LINE(p, "for (int64_t e = from; e < to; e++) {");
    LINE(p, "    sum += term[e];");
    LINE(p, "}");
    LINE(p, "%s = (%s)(part[c] - factor * %s * sum);", element(p, NORM_Y, "c").s, p->type,
         element(p, NORM_X, "c").s);
}

static void declare_operands(struct printer *p, const char *const operand[3])
{
    for (int r = 0; r < 3; r++) {
        if (mc_norm_uses(p->q, r)) {
            LINE(p, "%s%s *norm_%c = %s;", r == NORM_Y ? "" : "const ", p->type, "xgy"[r], operand[r]);
        }
    }
}

static void open_planes(struct printer *p)
{
    parallel(p, true, p->g.planes > 1 ? p->g.nfree : 0);
    for (int i = 0; i < p->g.nfree; i++) {
        char loop[16];
        mc_snprintf(loop, sizeof loop, "i%d", i);
        mc_c_loop(&p->c, loop, 0, p->g.size[i]);
    }
    for (int r = 0; r < 3; r++) {
        if (mc_norm_uses(p->q, r)) {
            mc_str_addf(p->c.out, "%*s%s%s *%c = norm_%c", 4 * p->c.depth, "", r == NORM_Y ? "" : "const ",
                        p->type, "xgy"[r], "xgy"[r]);
            for (int i = 0; i < p->g.nfree; i++) {
                mc_str_addf(p->c.out, " + i%d * %" PRId64, i, p->g.at[r][i]);
            }
            mc_str_add(p->c.out, ";\n");
        }
    }
}

mc_status mc_norm_print(struct mc_str *out, const struct mc_norm_problem *q, const char *const operand[3])
{
    const struct mc_norm_shape *s = &q->s;
    struct printer p = {
        .c = { out, 1 }, .q = q, .type = q->dtype == MC_FLOAT32 ? "float" : "double"
    };
    struct mc_str key = { 0 };
    if (norm_refuse(q)) {
        return mc_fail(MC_EUNSUPPORTED, "normalisation is exported in float32 and float64, not in %s",
                       mc_dtype_name(q->dtype));
    }
    mc_norm_grid(q, &p.g);
    mc_norm_key(&q->base, &key);
    mc_c_open(&p.c, key.s ? key.s : "norm");
    mc_str_free(&key);
    if (p.g.c * p.g.planes * p.g.lanes > 0) {
        declare_operands(&p, operand); /* first: their text may contain the names that follow */
        declare_number(&p, "k", s->k);
        declare_number(&p, "alpha", s->alpha);
        declare_power(&p, "power", -s->beta);
        if (s->backward) {
            declare_power(&p, "next_power", -s->beta - 1);
            declare_number(&p, "factor", 2 * s->alpha * s->beta);
        }
        open_planes(&p);
        if (s->backward) {
            backward(&p);
        } else {
            forward(&p);
        }
    }
    mc_c_close(&p.c, 1);
    return out->bad ? MC_EMEMORY : MC_OK;
}

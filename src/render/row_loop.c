/* row_loop.c: the innermost loops of row and fold kernels.
 *
 * Sums of floats: lanes add CHUNK elements, a section; a block of BLOCK elements adds the sums of its
 * sections, so that long rows lose no digits.  There are two forms of the loop over a section.  Either it is
 * one reduction, in an order that the compiler selects, or it has sixteen lanes (mc_kernel.lanes): element j
 * of the section belongs to lane j % 16, and at its end the lanes are combined in a tree: 8 with 8, 4 with 4,
 * 2 with 2, 1 with 1.  The loop over the lanes has no sum that a compiler would have to reorder, so it
 * becomes vector code of any width, with the same bits.
 *
 * Invariant: with lanes, the order of floating-point operations follows from the text and the sizes alone. */
#include "render/print.h"

enum { BLOCK = 2048, CHUNK = 128, LANES = 16 };

/* Elements f to e of a row, as text: variables, or numbers. */
struct section {
    const char *f, *e;
    int64_t whole;              /* elements in whole lanes, if f and e are numbers; -1: variables */
    int64_t rest;               /* and after those; -1: any */
};

static bool in_blocks(const struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    return mc_is_float(x->acc) && x->op->reduction == REDUCE_SUM;
}

static void declare_block(struct print *p, int v)
{
    if (in_blocks(p, v)) {
        mc_str_addf(p->out, "%s s%d = 0; ", mc_print_acc_type(p, &p->k->val.at[v], false), v);
    }
}

static void end_few(struct print *p, int v)
{
    if (in_blocks(p, v)) {
        mc_str_addf(p->out, "s%d += l%d; ", v, v);
    } else {
        mc_print_merge(p, v);
    }
}

static void end_block(struct print *p, int v)
{
    if (in_blocks(p, v)) {
        mc_str_addf(p->out, "c%d += s%d; ", v, v);
    }
}

/* ---- one reduction ---- */

/* The loop over one section, in the order that the compiler selects. */
static void reduce_loop(struct print *p, const struct section *x)
{
    mc_print_each(p, mc_print_lane);
    struct mc_str clauses = { 0 }, *out = p->out;
    p->out = &clauses;
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->k->val.at[i].kind == K_REDUCE && p->k->val.at[i].stage == p->stage) {
            mc_print_fill(p, mc_print_monoid(&p->k->val.at[i])->clause, (int)i, "");
        }
    }
    p->out = out;
    mc_str_add(&clauses, p->k->bounded ? " reduction(|:beyond)" : "");
    mc_str_add(p->out, "\n");
    mc_str_addf(p->out, p->d->reduce_loop, clauses.s ? clauses.s : "");
    p->out->bad |= clauses.bad;
    mc_str_free(&clauses);
    mc_str_addf(p->out, "for (i64 j = %s; j < %s; j++) { ", x->f, x->e);
    mc_print_body(p, true, "");
    mc_str_add(p->out, "}\n");
}

/* ---- lanes ---- */

/* The lanes of value and flag, "m3" and "y3", beside "l3" and "q3", which are the section's. */
static void declare(struct print *p, int v)
{
    mc_str_addf(p->out, "%s m%d[%d]; ", mc_print_acc_type(p, &p->k->val.at[v], true), v, LANES);
    if (mc_print_monoid(&p->k->val.at[v])->flags) {
        mc_str_addf(p->out, "i32 y%d[%d]; ", v, LANES);
    }
}

static void first(struct print *p, int v)
{
    mc_str_addf(p->out, "m%d[i] = %s; ", v, mc_print_first(p, &p->k->val.at[v]));
    if (mc_print_monoid(&p->k->val.at[v])->flags) {
        mc_str_addf(p->out, "y%d[i] = 0; ", v);
    }
}

/* "m3[i] += m3[i + 8]; ": adds lane i + p->lanes to lane i; of one lane "m3[0] += m3[1]; " */
static void combine(struct print *p, int v)
{
    static const char from[] = "czlq", to[] = "mymy";
    for (const char *t = mc_print_monoid(&p->k->val.at[v])->merge; *t; t++) {
        const char *at = t[1] == '@' ? strchr(from, *t) : NULL;
        if (!at) {
            mc_str_addn(p->out, t, 1);
            continue;
        }
        const bool lower = at - from < 2;
        mc_str_addf(p->out, "%c%d[", to[at - from], v);
        if (p->lanes == 1) {
            mc_str_add(p->out, lower ? "0]" : "1]");
        } else {
            mc_str_addf(p->out, lower ? "i]" : "i + %d]", p->lanes);
        }
        t++;
    }
    mc_str_add(p->out, " ");
}

static void end(struct print *p, int v)
{
    mc_str_addf(p->out, "const %s l%d = m%d[0]; ", mc_print_acc_type(p, &p->k->val.at[v], true), v, v);
    if (mc_print_monoid(&p->k->val.at[v])->flags) {
        mc_str_addf(p->out, "const i32 q%d = y%d[0]; ", v, v);
    }
}

/* "for (i64 i = 0; i < 16; i++) { const i64 j = g + i; ... }" */
static void lanes_from(struct print *p, const char *pragma, const char *from, const char *count)
{
    if (strcmp(count, "1") == 0) {
        mc_str_addf(p->out, "{ const i64 i = 0, j = %s; ", from);
    } else {
        mc_str_addf(p->out, pragma, "");
        mc_str_addf(p->out, "for (i64 i = 0; i < %s; i++) { const i64 j = ", count);
        mc_str_addf(p->out, strcmp(from, "0") == 0 ? "i; " : "%s + i; ", from);
    }
    mc_print_body(p, true, "");
    mc_str_add(p->out, "}\n");
}

/* Does this stage compute a value that may be beyond its bound? */
static bool has_bounded(const struct print *p)
{
    bool any = false;
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        any |= v->bounded && p->need[i] && !(v->saved && v->stage < p->stage);
    }
    return any;
}

static void lanes_loop(struct print *p, const struct section *x)
{
    const bool bounded = has_bounded(p);
    char from[24] = "g", rest[24] = "e - g";
    mc_print_each(p, declare);
    if (bounded) {
        mc_str_addf(p->out, "i32 far[%d]; ", LANES);
    }
    mc_str_addf(p->out, "\nfor (i64 i = 0; i < %d; i++) { ", LANES);
    mc_print_each(p, first);
    mc_str_add(p->out, bounded ? "far[i] = 0; }\n" : "}\n");
    p->lanes = LANES;
    if (x->whole < 0) {
        mc_str_addf(p->out, "i64 g = %s;\nfor (; %s - g >= %d; g += %d) {\n", x->f, x->e, LANES, LANES);
    } else {
        mc_snprintf(from, sizeof from, "%lld", (long long)x->whole);
        mc_snprintf(rest, sizeof rest, "%lld", (long long)x->rest);
        if (x->whole > LANES) {
            mc_str_addf(p->out, "for (i64 g = 0; g < %s; g += %d) {\n", from, LANES);
        }
    }
    if (x->whole) {
        lanes_from(p, p->d->reduce_loop, x->whole == LANES ? "0" : "g", "16");
        mc_str_add(p->out, x->whole == LANES ? "" : "}\n");
    }
    if (x->rest) {
        lanes_from(p, p->d->loop, from, rest);
    }
    for (p->lanes = LANES / 2; p->lanes > 1; p->lanes /= 2) {
        mc_str_addf(p->out, "for (i64 i = 0; i < %d; i++) { ", p->lanes);
        mc_print_each(p, combine);
        mc_str_addf(p->out, bounded ? "far[i] |= far[i + %d]; }\n" : "}\n", p->lanes);
    }
    mc_print_each(p, combine);
    p->lanes = 0;
    mc_print_each(p, end);
    mc_str_add(p->out, bounded ? "beyond |= far[0] | far[1];\n" : "\n");
}

/* ---- a row ---- */

/* "for (i64 f = b; f < stop; f += 128) {\nconst i64 e = stop - f < 128 ? stop : f + 128;\n", without what is
 * known of n, the size of the whole: of one step only the brace */
static void for_steps(struct print *p, int64_t n, int step, const char *const name[4])
{
    if (n >= 0 && n <= step) {
        mc_str_add(p->out, "{\n");
        return;
    }
    mc_str_addf(p->out, "for (i64 %s = %s; %s < %s; %s += %d) {\n", name[0], name[1], name[0], name[2],
                name[0], step);
    if (n >= 0 && n % step == 0) {
        mc_str_addf(p->out, "const i64 %s = %s + %d;\n", name[3], name[0], step);
    } else {
        mc_str_addf(p->out, "const i64 %s = %s - %s < %d ? %s : %s + %d;\n", name[3], name[2], name[0], step,
                    name[2], name[0], step);
    }
}

static void elements(struct print *p, bool reduces)
{
    struct mc_str position = { 0 };
    mc_print_position(p, &position);
    mc_print_for_elements(p, reduces ? "" : p->d->loop);
    mc_print_body(p, false, position.s ? position.s : "");
    mc_str_add(p->out, "}\n");
    p->out->bad |= position.bad;
    mc_str_free(&position);
}

void mc_print_row_loop(struct print *p)
{
    bool positions, reduces = mc_print_stage_reduces(p, &positions);
    if (p->k->wide) {
        mc_vector_kernel_loop(p, reduces);
        return;
    }
    if (!reduces || positions) {
        elements(p, reduces);
        return;
    }
    const int64_t n = mc_print_known(p, 0);
    const char *n0 = mc_print_count(p, 0);
    const bool block = n >= 0 && n <= BLOCK, chunk = n >= 0 && n <= CHUNK;
    const struct section x = { .f = chunk ? "0" : "f",
                               .e = chunk ? n0 : "e",
                               .whole = chunk ? n / LANES * LANES : -1,
                               .rest = n < 0 ? -1 : n % LANES };
    for_steps(p, n, BLOCK, (const char *const[]){ "b", "0", n0, "stop" });
    mc_print_each(p, declare_block);
    mc_str_add(p->out, "\n");
    for_steps(p, n, CHUNK, (const char *const[]){ "f", block ? "0" : "b", block ? n0 : "stop", "e" });
    if (p->k->lanes) {
        lanes_loop(p, &x);
    } else {
        reduce_loop(p, &x);
    }
    mc_print_each(p, end_few);
    mc_str_add(p->out, "}\n");
    mc_print_each(p, end_block);
    mc_str_add(p->out, "}\n");
}

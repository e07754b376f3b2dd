/* lanes.c: reductions along the innermost loop in an order that the text fixes.
 *
 * A section of at most FEW elements (render.c) has sixteen lanes for each reduction: element j of it belongs
 * to lane j % 16.  At its end the lanes are combined in a tree: 8 with 8, 4 with 4, 2 with 2, 1 with 1.  The
 * loop over the lanes has no sum that a compiler would have to reorder, so it becomes vector code of any
 * width, with the same bits.
 *
 * Invariant: the order of floating-point operations follows from the text and the sizes alone. */
#include "render/print.h"

enum { LANES = 16 };

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

/* "m3[i] += m3[i + 8]; ": adds lane i + p->lanes to lane i */
static void combine(struct print *p, int v)
{
    for (const char *t = mc_print_monoid(&p->k->val.at[v])->merge; *t; t++) {
        static const char from[] = "czlq", to[] = "mymy";
        const char *at = t[1] == '@' ? strchr(from, *t) : NULL;
        if (!at) {
            mc_str_addn(p->out, t, 1);
            continue;
        }
        mc_str_addf(p->out, at - from < 2 ? "%c%d[i]" : "%c%d[i + %d]", to[at - from], v, p->lanes);
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

static void element(struct print *p)
{
    mc_str_add(p->out, "const i64 j = g + i; ");
    mc_print_body(p, true, "");
}

void mc_print_lanes_loop(struct print *p)
{
    const bool bounded = p->k->bounded;
    mc_print_each(p, declare);
    mc_str_addf(p->out, bounded ? "i32 far[%d]; " : "", LANES);
    mc_str_addf(p->out, "\nfor (i64 i = 0; i < %d; i++) { ", LANES);
    mc_print_each(p, first);
    mc_str_add(p->out, bounded ? "far[i] = 0; }\n" : "}\n");
    p->lanes = LANES;
    mc_str_addf(p->out, "i64 g = f;\nfor (; e - g >= %d; g += %d) {\n", LANES, LANES);
    mc_str_addf(p->out, p->d->reduce_loop, "");
    mc_str_addf(p->out, "for (i64 i = 0; i < %d; i++) { ", LANES);
    element(p);
    mc_str_add(p->out, "}\n}\n");
    mc_str_add(p->out, p->d->loop);
    mc_str_add(p->out, "for (i64 i = 0; i < e - g; i++) { ");
    element(p);
    mc_str_add(p->out, "}\n");
    for (p->lanes = LANES / 2; p->lanes; p->lanes /= 2) {
        mc_str_addf(p->out, "for (i64 i = 0; i < %d; i++) { ", p->lanes);
        mc_print_each(p, combine);
        mc_str_addf(p->out, bounded ? "far[i] |= far[i + %d]; }\n" : "}\n", p->lanes);
    }
    mc_print_each(p, end);
    mc_str_add(p->out, bounded ? "beyond |= far[0];\n" : "\n");
}

/* vector_loop.c: the innermost loops of vector kernels.
 *
 * A loop takes sixteen elements at a time.  The rest of a row runs through the same loop once more: it is
 * copied to and from a separate vector, and reductions ignore the lanes after it.  A row that is one vector
 * needs no loop: all its values stay in registers. */
#include "render/print.h"
#include <stdio.h>

/* rows of a column kernel that add in float; elements of a row's block; elements of a block that add in
 * float */
enum { ROWS = 32, BLOCK = 2048, CHUNK = 256 };
enum { SINGLE = 4 }; /* most elements at the end of a row of a map that are computed one by one */

/* ---- reductions ---- */

static char lane(const struct print *p)
{
    return p->second ? 'h' : 'l';
}

static void reduce_element(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    const struct mc_monoid_text *m = mc_print_monoid(x);
    int a = x->arg[0];
    if (p->k->mode == KERNEL_COLUMN && mc_print_by_position(x)) {
        mc_str_addf(p->out, "%s((vf *)(l%d + j), (vf *)(g%d + j), v%d, rows); ", m->combine, v, v, a);
        return;
    }
    if (p->k->mode == KERNEL_COLUMN) { /* lanes in memory; those after the last column are undefined */
        mc_str_addf(p->out, "*(vf *)(l%d + j) = %s(*(vf *)(l%d + j), v%d); ", v, m->combine, v, a);
        if (m->flags) {
            mc_str_addf(p->out, "q%d[j / 16] |= v_ne(v%d, v%d); ", v, a, a);
        }
        return;
    }
    if (mc_print_by_position(x)) {
        mc_str_addf(p->out, "%s(&%c%d, &%c%d, v_sel(keep, v%d, v_all(%s)), j - b); ", m->combine, lane(p), v,
                    p->second ? 'k' : 'g', v, a, mc_print_first(p, x));
        return;
    }
    mc_str_addf(p->out, "%c%d = %s(%c%d, v_sel(keep, v%d, v_all(%s))); ", lane(p), v, m->combine, lane(p), v,
                a, mc_print_first(p, x));
    if (m->flags) {
        mc_str_addf(p->out, "q%d |= keep & v_ne(v%d, v%d); ", v, a, a);
    }
}

static double cost_of_vector(const struct print *p)
{
    double cost = 0;
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        cost += !p->need[i] || v->kind != K_OP ? 0 : v->op->flags & OP_COSTLY ? 20 : 1;
    }
    return cost;
}

/* Is one vector computed before an accumulator can take the next?  Then two accumulators alternate. */
static bool is_cheap(const struct print *p)
{
    return cost_of_vector(p) <= 8;
}

/* Are two vectors of a map computed side by side?  The compiler interleaves them, so that fewer instructions
 * wait for operands.  Long maps do not gain, and would take longer to compile. */
static bool in_pairs(const struct print *p)
{
    return p->k->mode == KERNEL_MAP && !is_cheap(p) && cost_of_vector(p) <= 64;
}

/* Is v a sum of a row?  Lanes add a few elements in float, then in double. */
static bool sums(const struct print *p, int v)
{
    return !p->held && p->k->val.at[v].op->reduction == REDUCE_SUM;
}

static void begin_second(struct print *p, int v)
{
    mc_str_addf(p->out, "vf h%d = v_all(%s); ", v, mc_print_first(p, &p->k->val.at[v]));
    if (mc_print_by_position(&p->k->val.at[v])) {
        mc_str_addf(p->out, "vf k%d = v_all(0); ", v);
    }
}

static void end_second(struct print *p, int v)
{
    if (sums(p, v)) {
        return;
    }
    if (mc_print_by_position(&p->k->val.at[v])) {
        mc_str_addf(p->out, "v_first_both(&l%d, &g%d, h%d, k%d); ", v, v, v, v);
        return;
    }
    mc_str_addf(p->out, "l%d = %s(l%d, h%d); ", v, mc_print_monoid(&p->k->val.at[v])->combine, v, v);
}

static void begin(struct print *p, int v)
{
    mc_str_addf(p->out, "vf l%d = v_all(%s); ", v, mc_print_first(p, &p->k->val.at[v]));
    if (mc_print_by_position(&p->k->val.at[v])) {
        mc_str_addf(p->out, "vf g%d = v_all(0); ",
                    v); /* if no element of a lane is larger, the first one is the first maximum */
    } else if (mc_print_monoid(&p->k->val.at[v])->flags) {
        mc_str_addf(p->out, "vm q%d = 0; ", v);
    }
}

static void end(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    const struct mc_monoid_text *m = mc_print_monoid(x);
    const char *t = mc_print_acc_type(p, x, false);
    if (mc_print_by_position(x)) {
        mc_str_addf(p->out,
                    "{ i64 q%d = base + i2 * n0 + b; const %s t = %s(l%d, g%d, &q%d); { const %s l%d = t; ",
                    v, t, m->lanes, v, v, v, t, v);
    } else {
        mc_str_addf(p->out,
                    sums(p, v) ? "{ const %s t = %s(d%d); { const %s l%d = t; "
                               : "{ const %s t = %s(l%d); { const %s l%d = t; ",
                    t, sums(p, v) ? "v_total" : m->lanes, v, t, v);
    }
    mc_print_fill(p, m->merge, v, "");
    mc_str_add(p->out, "} } ");
}

static void each_reduction(struct print *p, void (*f)(struct print *p, int v))
{
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->k->val.at[i].kind == K_REDUCE && p->k->val.at[i].stage == p->stage) {
            f(p, (int)i);
        }
    }
}

/* ---- the loop ---- */

static bool is_stored_in_loop(const struct print *p, const struct mc_koperand *o)
{
    return o->dst && p->k->val.at[o->val].element && p->k->val.at[o->val].stage == p->stage;
}

static void store(struct print *p, int i)
{
    const struct mc_koperand *o = &p->k->operand.at[i];
    if (!mc_print_moves(p->k, o)) {
        mc_str_addf(p->out, "a%d[0] = v%d[0]; ", i, o->val);
    } else if (p->single) {
        mc_str_addf(p->out, o->column_sums ? "a%d[j] += v%d[0]; " : "a%d[j] = v%d[0]; ", i, o->val);
    } else if (p->held && o->column_sums) {
        mc_str_addf(p->out, "v_store(a%d, v_load(a%d, keep) + v%d, keep); ", i, i, o->val);
    } else if (p->held) {
        mc_str_addf(p->out, "v_store(a%d, v%d, keep); ", i, o->val);
    } else if (o->column_sums) {
        mc_str_addf(p->out, "*(vu *)(a%d + j) += v%d; ", i, o->val);
    } else if (p->k->mode == KERNEL_MAP || p->k->mode == KERNEL_ROW) {
        mc_str_addf(p->out, "if (stream) v_stream(a%d + j, v%d); else *(vu *)(a%d + j) = v%d; ", i, o->val, i,
                    o->val);
    } else {
        mc_str_addf(p->out, "*(vu *)(a%d + j) = v%d; ", i, o->val);
    }
}

/* Is operand i read in this stage? */
static bool is_loaded_in_loop(const struct print *p, int i)
{
    for (size_t v = 0; v < p->k->val.n; v++) {
        const struct mc_kval *x = &p->k->val.at[v];
        if (x->kind == K_LOAD && x->operand == i && p->need[v]) {
            return true;
        }
    }
    return false;
}

/* Prefetches operands where results are streamed: these are in memory, and the hardware prefetcher stops at
 * the end of each page of 4 KiB. */
static void fetch_page(struct print *p)
{
    mc_str_add(p->out, "if (stream) { ");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (!o->dst && mc_print_moves(p->k, o) && is_loaded_in_loop(p, (int)i)) {
            mc_str_addf(p->out, "__builtin_prefetch(a%zu + j + 1024); ", i);
        }
    }
    mc_str_add(p->out, "} ");
}

static void define_values(struct print *p)
{
    const struct mc_kernel *k = p->k;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (!p->need[i] || v->kind == K_CONST || (p->held && p->held[i]) || (p->steady && p->steady[i])) {
            continue;
        }
        if (p->held) {
            p->held[i] = 1;
        } else if (v->saved && v->stage < p->stage) {
            mc_str_addf(p->out, "const vf v%zu = *(const vu *)(b%d + j); ", i, v->saved);
            continue;
        }
        mc_vector_kernel_define(p, (int)i);
        if (v->saved && !p->held) {
            mc_str_addf(p->out, "*(vu *)(b%d + j) = v%zu; ", v->saved, i);
        }
    }
}

static void store_values(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (is_stored_in_loop(p, &p->k->operand.at[i])) {
            store(p, (int)i);
        }
    }
    if (p->k->mode == KERNEL_MAP && !p->single) {
        fetch_page(p);
    }
}

static void body(struct print *p)
{
    define_values(p);
    each_reduction(p, reduce_element);
    store_values(p);
}

/* Is operand i a result whose value another has not, and which each vector computes anew? */
static bool is_held(const struct print *p, size_t i)
{
    const struct mc_koperand *o = &p->k->operand.at[i];
    if (!is_stored_in_loop(p, o) || (p->steady && p->steady[o->val]) ||
        p->k->val.at[o->val].kind == K_CONST) {
        return false;
    }
    for (size_t k = 0; k < i; k++) {
        if (p->k->operand.at[k].dst && p->k->operand.at[k].val == o->val) {
            return false;
        }
    }
    return true;
}

/* "h3 = v3; ": for each value that is stored */
static void each_stored(struct print *p, const char *format)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (is_held(p, i)) {
            mc_str_addf(p->out, format, p->k->operand.at[i].val, p->k->operand.at[i].val);
        }
    }
}

/* Both vectors are computed before either is stored: a load does not wait for a store in front of it. */
static void print_pairs(struct print *p)
{
    mc_str_add(p->out, "for (; j + 16 < m; j += 32) { ");
    each_stored(p, "vf h%d; ");
    mc_str_add(p->out, "{ ");
    define_values(p);
    each_stored(p, "h%d = v%d; ");
    mc_str_add(p->out, "} { const i64 first = j; { const i64 j = first + 16; ");
    body(p);
    mc_str_add(p->out, "} } ");
    each_stored(p, "const vf v%d = h%d; ");
    store_values(p);
    mc_str_add(p->out, "}\n");
}

/* Defines the values of a map that no iteration changes, as the factors of a channel: the compiler cannot
 * move them in front of the loop, because a store might change the memory that they come from. */
static void print_steady(struct print *p)
{
    const struct mc_kernel *k = p->k;
    p->steady = k->mode == KERNEL_MAP ? mc_calloc(k->val.n + 1, 1, "render") : NULL;
    p->out->bad |= k->mode == KERNEL_MAP && !p->steady;
    bool any = false;
    for (size_t i = 0; p->steady && i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        bool same = v->kind == K_OP || v->kind == K_CAST ||
                    (v->kind == K_LOAD && !mc_print_moves(k, &k->operand.at[v->operand]));
        for (int a = 0; a < v->narg; a++) {
            same = same && (p->steady[v->arg[a]] || k->val.at[v->arg[a]].kind == K_CONST);
        }
        p->steady[i] = same && p->need[i];
        if (p->steady[i]) {
            mc_vector_kernel_define(p, (int)i);
            any = true;
        }
    }
    mc_str_add(p->out, any ? "\n" : "");
}

/* Operands that vary along the loop are read from and written to a separate vector: "a0 = v_head(t0, a0 + m,
 * left) - m;" */
static void print_tail_iteration(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (!mc_print_moves(p->k, o)) {
            continue;
        }
        if (is_stored_in_loop(p, o)) {
            mc_str_addf(p->out,
                        o->column_sums ? "o%zu = a%zu + m; a%zu = (float *)v_head(t%zu, o%zu, left) - m; "
                                       : "o%zu = a%zu + m; a%zu = t%zu - m; ",
                        i, i, i, i, i);
        } else if (!o->dst && is_loaded_in_loop(p, (int)i)) {
            mc_str_addf(p->out, "a%zu = v_head(t%zu, a%zu + m, left) - m; ", i, i, i);
        }
    }
}

static void print_tail_addresses(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        bool out = is_stored_in_loop(p, o);
        if (mc_print_moves(p->k, o) && (out || (!o->dst && is_loaded_in_loop(p, (int)i)))) {
            mc_str_addf(p->out, "float t%zu[16] __attribute__((aligned(64))); ", i);
            if (out) {
                mc_str_addf(p->out, "float *o%zu; ", i);
            }
        }
    }
}

static void print_tail_end(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (mc_print_moves(p->k, &p->k->operand.at[i]) && is_stored_in_loop(p, &p->k->operand.at[i])) {
            mc_str_addf(p->out, "v_store(o%zu, *(vf *)t%zu, keep); ", i, i);
        }
    }
}

/* The last few elements of a row of a cheap map one by one, in a vector's first lane: a load of the next row
 * would wait for a masked store in front of it. */
static void print_single(struct print *p)
{
    if (p->k->mode == KERNEL_MAP && is_cheap(p)) {
        p->single = true;
        mc_str_addf(p->out, "if (e - m <= %d) {\nfor (; j < e; j++) { ", SINGLE);
        body(p);
        mc_str_add(p->out, "}\nbreak;\n}\n");
        p->single = false;
    }
}

static void walk(struct print *p)
{
    mc_str_add(p->out, "for (;;) {\nfor (; j < m; j += 16) { ");
    body(p);
    mc_str_add(p->out, "}\nif (m >= e) break;\n");
    print_single(p);
    mc_str_add(p->out, "const i64 left = e - m; keep = (vm)((1u << left) - 1); ");
    print_tail_iteration(p);
    mc_str_add(p->out, "m += 16;\n");
    mc_str_add(p->out, p->k->mode == KERNEL_MAP ? "stream = 0;\n}\n" : "}\n");
    mc_str_add(p->out, "if (keep != (vm)-1) { ");
    print_tail_end(p);
    mc_str_add(p->out, "}\n");
}

/* ---- column kernels: few rows add in float, many in double ---- */

static void begin_columns(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "for (i64 j = 0; j < nb; j += 16) { *(vf *)(l%d + j) = v_all(%s); ", v,
                mc_print_first(p, x));
    if (mc_print_by_position(x)) {
        mc_str_addf(p->out, "*(vf *)(g%d + j) = v_all(0); ", v);
    } else if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "q%d[j / 16] = 0; ", v);
    }
    mc_str_add(p->out, "}\n");
}

static void declare_columns(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "float l%d[%d] __attribute__((aligned(64))); ", v, KERNEL_COLUMNS);
    if (mc_print_by_position(x)) {
        mc_str_addf(p->out, "float g%d[%d] __attribute__((aligned(64))); ", v, KERNEL_COLUMNS);
    } else if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "vm q%d[%d]; ", v, KERNEL_COLUMNS / 16);
    }
    begin_columns(p, v);
}

static void end_columns(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    char position[40];
    mc_snprintf(position, sizeof position, "(first + (i64)g%d[j])", v);
    mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++) { const float v%d = l%d[j]; ", x->arg[0], v);
    mc_print_fill(p, mc_print_monoid(x)->direct, v, position);
    if (mc_print_monoid(x)->flags && !mc_print_by_position(x)) {
        mc_str_addf(p->out, "z%d[j] |= q%d[j / 16] >> j %% 16 & 1; ", v, v);
    }
    mc_str_add(p->out, "}\n");
}

void mc_vector_kernel_columns(struct print *p,
                              void (*pointers)(struct print *p, bool elements, const char *offset))
{
    mc_str_add(p->out, "{\n");
    each_reduction(p, declare_columns);
    mc_str_add(p->out, "\ni64 rows = 0, first = 0; (void)first;\nfor (i64 i2 = 0; i2 < n2; i2++) for (i64 i1 "
                       "= 0; i1 < n1; i1++) {\n");
    pointers(p, true, "j12");
    print_tail_addresses(p);
    mc_str_add(p->out, "\nvm keep = (vm)-1; const i64 e = nb; i64 j = 0, m = e / 16 * 16;\n");
    walk(p);
    mc_str_addf(p->out, "if (++rows == %d) { rows = 0;\n", ROWS);
    each_reduction(p, end_columns);
    mc_str_addf(p->out, "first += %d;\n", ROWS);
    each_reduction(p, begin_columns);
    mc_str_add(p->out, "} }\n");
    each_reduction(p, end_columns);
    mc_str_add(p->out, "}\n");
}

static void begin_sums(struct print *p, int v)
{
    if (sums(p, v)) {
        mc_str_addf(p->out, "struct v_pair d%d = { 0 }; ", v);
    }
}

static void end_sums(struct print *p, int v)
{
    if (sums(p, v)) {
        mc_str_addf(p->out, "v_widen(&d%d, l%d); l%d = v_all(0); ", v, v, v);
    }
}

static void end_second_sums(struct print *p, int v)
{
    if (sums(p, v)) {
        mc_str_addf(p->out, "l%d += h%d; h%d = v_all(0); ", v, v, v);
    }
}

void mc_vector_kernel_loop(struct print *p, bool reduces)
{
    mc_str_addf(p->out,
                reduces ? "for (i64 b = 0; b < n0; b += %d) {\nconst i64 stop = n0 - b < %d ? n0 : b + %d;\n"
                        : "{\nconst i64 b = 0, stop = n0;\n",
                BLOCK, BLOCK, BLOCK);
    bool two = reduces && is_cheap(p);
    each_reduction(p, begin);
    each_reduction(p, begin_sums);
    if (two) {
        each_reduction(p, begin_second);
    }
    print_tail_addresses(p);
    mc_str_addf(p->out,
                reduces
                    ? "\nfor (i64 f = b; f < stop; f += %d) {\nconst i64 e = stop - f < %d ? stop : f + %d;\n"
                    : "\n{\nconst i64 f = b, e = stop;\n",
                CHUNK, CHUNK, CHUNK);
    mc_str_add(p->out, "vm keep = (vm)-1; i64 j = f, m = f + (e - f) / 16 * 16;\n");
    print_steady(p);
    if (two) {
        mc_str_add(p->out, "for (; j + 16 < m; j += 32) { { ");
        body(p);
        p->second = true;
        mc_str_add(p->out, "} { const i64 first = j; { const i64 j = first + 16; ");
        body(p);
        p->second = false;
        mc_str_add(p->out, "} } }\n");
    } else if (in_pairs(p)) {
        print_pairs(p);
    }
    walk(p);
    if (two) {
        each_reduction(p, end_second_sums);
    }
    each_reduction(p, end_sums);
    mc_str_add(p->out, "}\n");
    if (two) {
        each_reduction(p, end_second);
    }
    each_reduction(p, end);
    mc_str_add(p->out, "}\n");
    mc_free(p->steady);
    p->steady = NULL;
}

void mc_vector_kernel_vector(struct print *p)
{
    each_reduction(p, begin);
    mc_str_add(p->out, "\n");
    body(p);
    mc_str_add(p->out, "\n");
    each_reduction(p, end);
}

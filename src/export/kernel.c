/* kernel.c: kernels in an exported file: their text, and a call at one shape, with the loops, chunks and partial sums of
 * src/exec/cpu/launch.c.
 *
 * Invariant: kernels are called with the same counts and strides, in the same order, as the library calls them. */
#include "export/exporting.h"
#include <inttypes.h>

/* ---- text ---- */

/* A copy of the step's kernel as it is printed: under the file's own name. */
static struct mc_kernel printed(const struct mc_export_one *x, int step)
{
    struct mc_kernel k = *x->f->code->program.step.at[step].kernel;
    char name[sizeof k.name];
    mc_snprintf(name, sizeof name, "f%d_%s", x->number, k.name);
    memcpy(k.name, name, sizeof name);
    k.exact = k.lanes = true;
    k.wide = false;
    return k;
}

/* Was a kernel of that name printed for an earlier step? */
static bool is_printed(const struct mc_program *p, size_t step)
{
    for (size_t i = 0; i < step; i++) {
        if (p->step.at[i].kernel && strcmp(p->step.at[i].kernel->name, p->step.at[step].kernel->name) == 0) {
            return true;
        }
    }
    return false;
}

mc_status mc_export_kernels(struct mc_export_one *x)
{
    const struct mc_program *p = &x->f->code->program;
    for (size_t i = 0; i < p->step.n; i++) {
        if (!p->step.at[i].kernel || is_printed(p, i)) {
            continue;
        }
        const struct mc_kernel k = printed(x, (int)i);
        if (k.bounded) {
            return mc_fail(MC_EUNSUPPORTED, "sin, cos and tan are not exported:\n    %s",
                           mc_step_text(x->f->code, (int)i));
        }
        if (!VEC_PUSH(x->to->kernel, k)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

/* ---- calls ---- */

static void numbers(struct mc_str *out, const char *name, const int64_t *v, int n)
{
    mc_str_addf(out, "static const i64 %s[] = { ", name);
    for (int i = 0; i < n; i++) {
        mc_str_addf(out, "%s%" PRId64, i ? ", " : "", v[i]);
    }
    mc_str_add(out, n ? " };\n" : "0 };\n");
}

/* "char *const base[] = { ... };": the operands, then nothing.  Contiguous copies are made first. */
static void bases(struct mc_export_one *x, int step, const struct mc_launch *l)
{
    struct mc_str *out = &x->to->code;
    for (int k = 0; k < l->nop; k++) {
        if (l->dense && l->dense[k] >= 0) {
            mc_export_dense(out, &x->p->slot[l->value[k]], mc_export_address(x, l->value[k]),
                            mc_export_scratch(x, step, (size_t)l->dense[k]));
        }
    }
    mc_str_add(out, "char *const base[] = {");
    for (int k = 0; k < l->nop; k++) {
        mc_str_addf(out, "\n    %s,",
                    l->value[k] < 0                    ? "NULL"
                    : l->dense && l->dense[k] >= 0 ? mc_export_scratch(x, step, (size_t)l->dense[k])
                                                       : mc_export_address(x, l->value[k]));
    }
    mc_str_add(out, "\n};\n");
}

/* Sets p to the operands at position `at` of the outer loops, moved by `more` (or NULL) along a loop. */
static void positions(struct mc_export_one *x, int step, const struct mc_launch *l, const char *at)
{
    struct mc_str *out = &x->to->code;
    const struct mc_kernel *k = x->f->code->program.step.at[step].kernel;
    bool moves = false;
    for (int d = 0; d < l->nouter; d++) {
        mc_str_addf(out, "const int64_t o%d = %s", d, at);
        int64_t before = 1;
        for (int e = 0; e < d; e++) {
            before *= l->outer[e];
        }
        if (before > 1) {
            mc_str_addf(out, " / %" PRId64, before);
        }
        mc_str_addf(out, d + 1 < l->nouter ? " %% %" PRId64 ";\n" : ";\n", l->outer[d]);
        moves = true;
    }
    for (int i = 0; i < l->nop && moves; i++) {
        bool any = false;
        for (int d = 0; d < l->nouter; d++) {
            any |= l->step[i * MC_MAX_RANK + d] != 0;
        }
        if (any) {
            mc_str_addf(out, k->operand.at[i].index ? "p[%d] = (char *)((uintptr_t)p[%d]" : "p[%d] += (0", i, i);
            for (int d = 0; d < l->nouter; d++) {
                if (l->step[i * MC_MAX_RANK + d]) {
                    mc_str_addf(out, " + %so%d * %" PRId64, k->operand.at[i].index ? "(uintptr_t)" : "", d,
                                l->step[i * MC_MAX_RANK + d]);
                }
            }
            mc_str_add(out, ");\n");
        }
    }
}

/* Moves all operands by `by` along a loop. */
static void move(struct mc_export_one *x, int step, const struct mc_launch *l, int loop, const char *by)
{
    const struct mc_kernel *k = x->f->code->program.step.at[step].kernel;
    for (int i = 0; i < l->nop; i++) {
        const int64_t s = l->s[3 * i + loop];
        if (s && k->operand.at[i].index) {
            mc_str_addf(&x->to->code, "p[%d] = (char *)((uintptr_t)p[%d] + (uintptr_t)(%s) * %" PRId64 ");\n", i, i, by, s);
        } else if (s) {
            mc_str_addf(&x->to->code, "p[%d] += (%s) * %" PRId64 ";\n", i, by,
                        s * (int64_t)mc_dtypes[k->operand.at[i].dtype].size);
        }
    }
}

static void call(struct mc_export_one *x, int step, const char *suffix, const char *n)
{
    mc_str_addf(&x->to->code, "f%d_%s%s(p, s, %s, err);\n", x->number,
                x->f->code->program.step.at[step].kernel->name, suffix, n);
}

static void full_reduction(struct mc_export_one *x, int step, const struct mc_launch *l)
{
    struct mc_str *out = &x->to->code;
    const int each = 16 * x->f->code->program.step.at[step].kernel->nreduce;
    mc_str_addf(out, "for (int64_t c = 0; c < %" PRId64 "; c++) {\nmemcpy(p, base, sizeof base);\n", l->units);
    mc_str_addf(out, "p[%d] = %s + c * %d;\n", l->nop, mc_export_scratch(x, step, l->copies), each);
    if (l->outer_total > 1) {
        positions(x, step, l, "c");
        mc_str_addf(out, "const i64 n[] = { %" PRId64 ", %" PRId64 ", %" PRId64 ", c * %" PRId64 " };\n", l->n[0],
                    l->n[1], l->n[2], l->n[0] * l->n[2]);
    } else {
        char by[60];
        mc_snprintf(by, sizeof by, "c * %" PRId64, l->chunk);
        move(x, step, l, 0, by);
        mc_str_addf(out,
                    "const int64_t left = %" PRId64 " - c * %" PRId64 ";\nconst i64 n[] = { left < %" PRId64
                    " ? left : %" PRId64 ", %" PRId64 ", %" PRId64 ", c * %" PRId64 " };\n",
                    l->n[0], l->chunk, l->chunk, l->chunk, l->n[1], l->n[2], l->chunk);
    }
    call(x, step, "", "n");
    mc_str_addf(out, "}\nmemcpy(p, base, sizeof base);\np[%d] = %s;\nstatic const i64 chunks[] = { %" PRId64 ", 1, 1, 0 };\n",
                l->nop, mc_export_scratch(x, step, l->copies), l->units);
    call(x, step, "_join", "chunks");
}

static size_t bytes_of(const struct mc_slot *at)
{
    return (mc_slot_bytes(at) + 63) / 64 * 64;
}

/* Rows in chunks, each with column sums of its own, which are added in double (src/exec/cpu/column_sums.c). */
static void column_sums(struct mc_export_one *x, int step, const struct mc_launch *l)
{
    struct mc_str *out = &x->to->code;
    const struct mc_kernel *k = x->f->code->program.step.at[step].kernel;
    const int64_t rows = l->n[1] * l->outer_total;
    const char *part = mc_export_scratch(x, step, l->copies + l->scratch * (size_t)l->threads);
    mc_str_addf(out, "for (int64_t c = 0; c < %" PRId64 "; c++) {\nchar *part = %s + c * %zu;\n", l->units, part,
                l->column_sums);
    mc_str_addf(out, "memset(part, 0, %zu);\nint64_t row = c * %" PRId64 ", end = row + %" PRId64 ";\n",
                l->column_sums, l->chunk, l->chunk);
    mc_str_addf(out, "end = end < %" PRId64 " ? end : %" PRId64 ";\nwhile (row < end) {\n", rows, rows);
    mc_str_addf(out,
                "const int64_t i = row %% %" PRId64 ", rest = %" PRId64 " - i, o = row / %" PRId64
                ";\nconst int64_t many = rest < end - row ? rest : end - row;\n"
                "const i64 n[] = { %" PRId64 ", many, %" PRId64 ", 0 };\n(void)o;\n",
                l->n[1], l->n[1], l->n[1], l->n[0], l->n[2]);
    mc_str_add(out, "memcpy(p, base, sizeof base);\n");
    size_t at = 0;
    for (int i = 0; i < l->nop; i++) {
        if (k->operand.at[i].column_sums) {
            mc_str_addf(out, "p[%d] = part + %zu;\n", i, at);
            at += bytes_of(&x->p->slot[l->value[i]]);
        }
    }
    mc_str_addf(out, "p[%d] = %s;\n", l->nop, mc_export_scratch(x, step, l->copies));
    positions(x, step, l, "o");
    move(x, step, l, 1, "i");
    call(x, step, "", "n");
    mc_str_add(out, "row += many;\n}\n}\n");
    at = 0;
    for (int i = 0; i < l->nop; i++) {
        if (!k->operand.at[i].column_sums) {
            continue;
        }
        const struct mc_slot *slot = &x->p->slot[l->value[i]];
        const char *type = mc_export_type(slot->type.dtype);
        mc_str_addf(out,
                    "for (int64_t j = 0; j < %zu; j++) {\ndouble sum = 0;\nfor (int64_t c = 0; c < %" PRId64
                    "; c++) {\nsum += (double)((const %s *)(%s + c * %zu + %zu))[j];\n}\n((%s *)base[%d])[j] = (%s)sum;\n}\n",
                    mc_slot_bytes(slot) / mc_dtypes[slot->type.dtype].size, l->units, type, part, l->column_sums,
                    at, type, i, type);
        at += bytes_of(slot);
    }
}

static void plain(struct mc_export_one *x, int step, const struct mc_launch *l)
{
    struct mc_str *out = &x->to->code;
    const bool loops = l->outer_total != 1;
    numbers(out, "n", (const int64_t[]){ l->n[0], l->n[1], l->n[2], 0 }, 4);
    if (loops) {
        mc_str_addf(out, "for (int64_t o = 0; o < %" PRId64 "; o++) {\n", l->outer_total);
    }
    mc_str_add(out, "memcpy(p, base, sizeof base);\n");
    mc_str_addf(out, "p[%d] = %s;\n", l->nop, mc_export_scratch(x, step, l->copies));
    if (loops) {
        positions(x, step, l, "o");
    }
    call(x, step, "", "n");
    mc_str_add(out, loops ? "}\n" : "");
}

/* The declarations that every call needs. */
static void begin(struct mc_export_one *x, int step, const struct mc_launch *l)
{
    bases(x, step, l);
    mc_str_addf(&x->to->code, "char *p[%d];\ni64 err[4] = { 0 };\n", l->nop + 1);
}

static void end(struct mc_export_one *x, int step)
{
    if (mc_kernel_checks(x->f->code->program.step.at[step].kernel)) {
        mc_str_add(&x->to->code, "if (err[0]) {\nreturn 1;\n}\n");
    }
}

mc_status mc_export_kernel(struct mc_export_one *x, int step, const struct mc_launch *l)
{
    const struct mc_kernel *k = x->f->code->program.step.at[step].kernel;
    const bool reduces_all = l->split == SPLIT_FOLD;
    if (!reduces_all && (l->n[0] == 0 || l->n[1] == 0 || l->outer_total == 0) &&
        !(k->mode == KERNEL_ROW && l->n[1]) && k->mode != KERNEL_COLUMN && !l->column_sums) {
        return MC_OK; /* no result has elements */
    }
    numbers(&x->to->code, "s", l->s, 3 * l->nop);
    begin(x, step, l);
    if (reduces_all) {
        full_reduction(x, step, l);
    } else if (l->split == SPLIT_COLUMN_SUMS) {
        column_sums(x, step, l);
    } else {
        plain(x, step, l);
    }
    end(x, step);
    return MC_OK;
}

/* ---- epilogues ---- */

/* Are axes a and b one axis for every operand? */
static bool joins(const struct mc_launch *l, int a, int b)
{
    for (int k = 0; k < l->nop; k++) {
        if (l->step[k * MC_MAX_RANK + a] != l->step[k * MC_MAX_RANK + b] * l->outer[b]) {
            return false;
        }
    }
    return true;
}

void mc_export_epilogue(struct mc_export_one *x, int step)
{
    struct mc_str *out = &x->to->code;
    const struct mc_kernel *k = x->f->code->program.step.at[step].kernel;
    const struct mc_launch *l = x->p->step[step].heavy->finish;
    int inner = MC_MAX(k->inner, 0), a = inner;
    int64_t n[4] = { l->outer[inner], 1, 1, 0 }, s[3 * MOST_OPERANDS];
    for (; a > 0 && joins(l, a - 1, a); a--) {
        n[0] *= l->outer[a - 1];
    }
    const int second = a - 1;
    n[1] = second >= 0 ? l->outer[second] : 1;
    for (int i = 0; i < l->nop; i++) {
        s[3 * i] = l->step[i * MC_MAX_RANK + inner];
        s[3 * i + 1] = second < 0 ? 0 : l->step[i * MC_MAX_RANK + second];
        s[3 * i + 2] = 0;
    }
    numbers(out, "s", s, 3 * l->nop);
    numbers(out, "n", n, 4);
    begin(x, step, l);
    for (int b = 0; b < second; b++) {
        mc_str_addf(out, "for (int64_t o%d = 0; o%d < %" PRId64 "; o%d++) {\n", b, b, l->outer[b], b);
    }
    mc_str_add(out, "memcpy(p, base, sizeof base);\n");
    mc_str_addf(out, "p[%d] = NULL;\n", l->nop);
    for (int i = 0; i < l->nop; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        for (int b = 0; b < second; b++) {
            const int64_t by = l->step[i * MC_MAX_RANK + b];
            if (by && o->index) {
                mc_str_addf(out, "p[%d] = (char *)((uintptr_t)p[%d] + (uintptr_t)o%d * %" PRId64 ");\n", i, i, b, by);
            } else if (by) {
                mc_str_addf(out, "p[%d] += o%d * %" PRId64 ";\n", i, b, by * (int64_t)mc_dtypes[o->dtype].size);
            }
        }
    }
    call(x, step, "", "n");
    for (int b = 0; b < second; b++) {
        mc_str_add(out, "}\n");
    }
    end(x, step);
}

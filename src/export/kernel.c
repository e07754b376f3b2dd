/* kernel.c: kernels in an exported file: their text, and a call at one shape, with the loops, chunks and
 * partial sums of src/exec/cpu/launch.c, and which of these loops threads share.
 *
 * Invariant: kernels are called with the same counts and strides, in the same order, as the library calls
 * them. */
#include "export/exporting.h"
#include <inttypes.h>

/* ---- text ---- */

/* A copy of the step's kernel as it is printed. */
static struct mc_kernel printed(const struct mc_export_one *x, int step)
{
    struct mc_kernel k = *x->f->code->program.step.at[step].kernel;
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
        x->bounded |= k.bounded;
        if (!VEC_PUSH(x->to->kernel, k)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

/* ---- launches ---- */

/* A launch that is being printed: where each operand begins, as an expression. */
struct printing {
    struct mc_export_one *x;
    int step;
    const struct mc_launch *l;
    const struct mc_kernel *k;
    const char **base; /* by operand, then row buffers or accumulators */
    /* The loops that threads share, and the work of one time that they are entered.  ALL: outer loops, or
     * chunks. */
    enum { SHARED_NOT = -1, SHARED_0, SHARED_1, SHARED_ALL } shared;
    double work;
    const char *line;     /* what is printed before them; NULL: nothing */
    const char *each_row; /* each thread has its row buffers on its stack; NULL: there are none */
};

/* ---- threads ---- */

/* "reduction(|: err)": what the iterations of a shared loop set.  inner: inside of the kernel's block, where
 * a bounded kernel has a variable of its own. */
static const char *clauses(const struct printing *q, bool inner)
{
    const bool checks = mc_kernel_checks(q->k), bounded = q->k->bounded;
    return inner ? (checks && bounded ? "reduction(|: err, beyond)"
                    : checks          ? "reduction(|: err)"
                    : bounded         ? "reduction(|: beyond)"
                                      : "")
                 : (checks || bounded ? "reduction(|: err)" : "");
}

/* Prints the line before loops that threads share.  False: it would not be worth it. */
static bool parallel(struct printing *q, bool elements, int loops, bool inner, struct mc_str *out)
{
    struct mc_c_text c = { out, 0 };
    return mc_c_parallel(&c, elements, loops, q->work, clauses(q, inner));
}

/* Work of the whole launch in multiply-adds: a byte of an operand counts as one, a reduction of a row as 256.
 * n: counts of the kernel's loops; outer: of those around them. */
static double work_of(const struct printing *q, const int64_t *n, int64_t outer)
{
    const double rows = q->k->mode == KERNEL_ROW ? (double)(n[1] * outer) : 0;
    double work = (double)n[0] * (double)n[1] * (double)n[2] * (double)outer * q->k->flops +
                  rows * q->k->nreduce * 256;
    for (int i = 0; i < q->l->nop; i++) {
        const int v = q->l->value[i];
        work += v < 0 ? 0 : (double)mc_slot_bytes(&q->x->p->slot[v]);
    }
    return work;
}

/* Puts the row buffers of each row on the stack.  False: they are too large. */
static bool stack_rows(struct printing *q, const int64_t *n)
{
    enum { MOST = 32768 };
    const size_t bytes = q->k->mode == KERNEL_ROW ? mc_kernel_row_bytes(q->k, n[0] * n[2]) : 0;
    if (bytes && bytes <= MOST) {
        q->each_row = mc_export_format(q->x, "double row_buffer[%zu];\n", bytes / 8);
        q->base[q->l->nop] = "(char *)row_buffer";
    }
    return bytes <= MOST;
}

/* Selects the loops that threads share: the outermost with at least sixteen iterations, else that with the
 * most. */
static void share(struct printing *q, const int64_t *n, int64_t outer)
{
    const enum mc_kernel_mode mode = q->k->mode;
    const struct {
        int64_t units, entered;
        int loops;
    } of[] = {
        { outer, 1, SHARED_ALL },
        { mode == KERNEL_MAP || mode == KERNEL_ROW ? n[1] : 1, outer, SHARED_1 },
        { mode == KERNEL_MAP      ? n[0] / 64
          : mode == KERNEL_COLUMN ? (n[0] + KERNEL_COLUMNS - 1) / KERNEL_COLUMNS
                                  : 1,
          mode == KERNEL_MAP ? outer * n[1] : outer, SHARED_0 },
    };
    int best = 0;
    for (int i = 1; i < (int)NELEM(of); i++) {
        best = of[best].units < 16 && of[i].units > of[best].units ? i : best;
    }
    q->shared = of[best].units > 1 ? of[best].loops : SHARED_NOT;
    q->work = work_of(q, n, outer) / (double)MC_MAX(of[best].entered, 1);
}

/* Sets the line before a loop of the kernel's own that threads share. */
static void parallel_inner(struct printing *q, const int64_t *n)
{
    const bool elements = q->shared == SHARED_0 && q->k->mode == KERNEL_MAP;
    struct mc_str line = { 0 };
    if ((q->shared == SHARED_0 || q->shared == SHARED_1) && parallel(q, elements, 1, true, &line) &&
        stack_rows(q, n)) {
        q->line = mc_export_format(q->x, "%s", line.s ? line.s : "");
    }
    q->x->to->code.bad |= line.bad;
    mc_str_free(&line);
}

/* Prints the line before loops around the kernel's own that threads share, "collapse(2)" of two. */
static void parallel_outer(struct printing *q, const int64_t *n, int loops)
{
    struct mc_str line = { 0 };
    if (q->shared == SHARED_ALL && parallel(q, false, loops, false, &line) && stack_rows(q, n)) {
        mc_str_add(&q->x->to->code, line.s ? line.s : "");
    }
    q->x->to->code.bad |= line.bad;
    mc_str_free(&line);
}

/* Adds a term to the address of operand i: "+ outer0 * 400". */
static void advance(struct printing *q, int i, const char *count, int64_t stride)
{
    if (stride) {
        q->base[i] = mc_export_format(q->x, "%s + %s * %" PRId64, q->base[i], count, stride);
    }
}

/* Moves all operands along a loop of the kernel. */
static void advance_loop(struct printing *q, int loop, const char *count)
{
    for (int i = 0; i < q->l->nop; i++) {
        const struct mc_koperand *o = &q->k->operand.at[i];
        advance(q, i, count, q->l->s[3 * i + loop] * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size));
    }
}

/* Starts a launch: contiguous copies are printed, addresses are set. */
static bool begin(struct printing *q, size_t copies)
{
    struct mc_export_one *x = q->x;
    q->base = mc_arena_alloc(&x->names, (size_t)(q->l->nop + 1) * sizeof *q->base);
    for (int i = 0; i < q->l->nop && q->base; i++) {
        const int v = q->l->value[i];
        q->base[i] = v < 0 ? "0" : mc_export_address(x, v);
        if (q->l->dense && q->l->dense[i] >= 0) {
            const char *to = mc_export_scratch(x, q->step, (size_t)q->l->dense[i]);
            mc_export_dense(&x->to->code, &x->p->slot[v], q->base[i], to);
            q->base[i] = to;
        }
    }
    if (q->base) {
        q->base[q->l->nop] = mc_export_scratch(x, q->step, copies);
    }
    if (mc_kernel_checks(q->k) || q->k->bounded) {
        mc_str_add(&x->to->code, "i64 err[4] = { 0 };\n");
    }
    return q->base != NULL;
}

static void end(struct printing *q)
{
    if (mc_kernel_checks(q->k)) {
        mc_str_add(&q->x->to->code, "if (err[0]) {\nreturn 1;\n}\n");
    }
    if (q->k->bounded) { /* there the library computes the step by its reference */
        mc_str_add(&q->x->to->code, "if (err[3]) {\nreturn 2;\n}\n");
    }
}

static void block(struct printing *q, const int64_t *s, const int64_t *n, bool chunks)
{
    const struct mc_kernel_launch at = {
        .s = s, .n = n, .base = q->base, .count = chunks ? "count" : NULL, .first = chunks ? "first" : NULL,
        .parallel = q->line, .shared = q->shared, .each_row = q->each_row
    };
    mc_render_launch(&q->x->to->code, q->x->to->dialect, q->k, &at);
}

/* "for (int64_t outer0 = 0; ...": the loops around the kernel's own; operands move along them. */
static void outer_loops(struct printing *q)
{
    share(q, q->l->n, q->l->outer_total);
    parallel_outer(q, q->l->n, q->l->nouter);
    parallel_inner(q, q->l->n);
    for (int d = 0; d < q->l->nouter; d++) {
        const char *count = mc_export_format(q->x, "outer%d", d);
        mc_str_addf(&q->x->to->code, "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {\n", count, count,
                    q->l->outer[d], count);
        for (int i = 0; i < q->l->nop; i++) {
            advance(q, i, count, q->l->step[i * MC_MAX_RANK + d]);
        }
    }
}

static void close_loops(struct printing *q, int n)
{
    for (int d = 0; d < n; d++) {
        mc_str_add(&q->x->to->code, "}\n");
    }
}

/* The library walks the outer loops with the first one innermost.  The order matters to nothing but a full
 * reduction, whose chunks they are. */
static void position_of_chunk(struct printing *q)
{
    int64_t before = 1;
    for (int d = 0; d < q->l->nouter; d++) {
        const char *count = before == 1 ? "chunk" : mc_export_format(q->x, "chunk / %" PRId64, before);
        if (d + 1 < q->l->nouter) {
            count = mc_export_format(q->x, "%s %% %" PRId64, count, q->l->outer[d]);
        }
        count = strcmp(count, "chunk") == 0 ? count : mc_export_format(q->x, "(%s)", count);
        for (int i = 0; i < q->l->nop; i++) {
            advance(q, i, count, q->l->step[i * MC_MAX_RANK + d]);
        }
        before *= q->l->outer[d];
    }
}

/* Gives the launch addresses of its own to move.  Returns those before; NULL: no memory. */
static const char **own_bases(struct printing *q)
{
    const char **const all = q->base;
    const size_t n = (size_t)(q->l->nop + 1) * sizeof *all;
    const char **moved = mc_arena_alloc(&q->x->names, n);
    if (moved) {
        memcpy(moved, all, n);
        q->base = moved;
    }
    return moved ? all : NULL;
}

static void full_reduction(struct printing *q)
{
    struct mc_str *out = &q->x->to->code;
    const struct mc_launch *l = q->l;
    const char **const all = own_bases(q);
    if (!all) {
        out->bad = true;
        return;
    }
    q->shared = l->units > 1 ? SHARED_ALL : SHARED_NOT;
    q->work = work_of(q, l->n, l->outer_total);
    parallel_outer(q, l->n, 1);
    mc_str_addf(out, "for (int64_t chunk = 0; chunk < %" PRId64 "; chunk++) {\n", l->units);
    advance(q, l->nop, "chunk", 16 * q->k->nreduce);
    if (l->outer_total > 1) {
        position_of_chunk(q);
        mc_str_addf(out, "const i64 first = chunk * %" PRId64 ", count = %" PRId64 ";\n", l->n[0] * l->n[2],
                    l->n[0]);
    } else {
        mc_str_addf(out,
                    "const i64 first = chunk * %" PRId64 ", rest = %" PRId64
                    " - first, count = rest < %" PRId64 " ? rest : %" PRId64 ";\n",
                    l->chunk, l->n[0], l->chunk, l->chunk);
        advance_loop(q, 0, "first");
    }
    mc_str_add(out, "(void)first;\n");
    block(q, l->s, l->n, true);
    mc_str_add(out, "}\n");
    q->base = all;
    const int64_t n[4] = { l->units, 1, 1, 0 };
    mc_render_launch_join(out, q->x->to->dialect, q->k,
                          &(struct mc_kernel_launch){ .s = l->s, .n = n, .base = all });
}

static size_t bytes_of(const struct mc_slot *at)
{
    return (mc_slot_bytes(at) + 63) / 64 * 64;
}

/* Rows in chunks, each with column sums of its own, which are added in double
 * (src/exec/cpu/column_sums.c). */
static void column_sums(struct printing *q)
{
    struct mc_export_one *x = q->x;
    struct mc_str *out = &x->to->code;
    const struct mc_launch *l = q->l;
    const int64_t rows = l->n[1] * l->outer_total, n[4] = { l->n[0], 1, l->n[2], 0 };
    const char *part = mc_export_scratch(x, q->step, l->copies + l->scratch * (size_t)l->threads);
    const char **const all = own_bases(q);
    if (!all) {
        out->bad = true;
        return;
    }
    q->shared = l->units > 1 ? SHARED_ALL : SHARED_NOT;
    q->work = work_of(q, n, rows);
    parallel_outer(q, n, 1);
    mc_str_addf(out,
                "for (int64_t chunk = 0; chunk < %" PRId64 "; chunk++) {\nchar *part = %s + chunk * %zu;\n",
                l->units, part, l->column_sums);
    mc_str_addf(
        out, "const int64_t begin = chunk * %" PRId64 ", end = begin + %" PRId64 ";\nmemset(part, 0, %zu);\n",
        l->chunk, l->chunk, l->column_sums);
    mc_str_addf(out, "for (int64_t row = begin; row < end && row < %" PRId64 "; row++) {\n", rows);
    size_t at = 0;
    for (int i = 0; i < l->nop; i++) {
        if (q->k->operand.at[i].column_sums) {
            q->base[i] = mc_export_format(x, "part + %zu", at);
            at += bytes_of(&x->p->slot[l->value[i]]);
        }
    }
    int64_t before = l->n[1];
    for (int d = 0; d < l->nouter; d++) {
        const char *count = mc_export_format(x, "(row / %" PRId64 " %% %" PRId64 ")", before, l->outer[d]);
        for (int i = 0; i < l->nop; i++) {
            advance(q, i, count, l->step[i * MC_MAX_RANK + d]);
        }
        before *= l->outer[d];
    }
    advance_loop(q, 1, l->outer_total > 1 ? mc_export_format(x, "(row %% %" PRId64 ")", l->n[1]) : "row");
    block(q, l->s, n, false);
    mc_str_add(out, "}\n}\n");
    at = 0;
    for (int i = 0; i < l->nop; i++) {
        if (!q->k->operand.at[i].column_sums) {
            continue;
        }
        const struct mc_slot *slot = &x->p->slot[l->value[i]];
        const char *type = mc_export_type(slot->type.dtype);
        struct mc_c_text c = { out, 0 };
        mc_c_parallel(&c, false, 1, (double)mc_slot_bytes(slot) * (double)l->units, "");
        mc_str_addf(out,
                    "for (int64_t column = 0; column < %zu; column++) {\ndouble sum = 0;\n"
                    "for (int64_t chunk = 0; chunk < %" PRId64 "; chunk++) {\n"
                    "sum += (double)((const %s *)(%s + chunk * %zu + %zu))[column];\n}\n"
                    "((%s *)(%s))[column] = (%s)sum;\n}\n",
                    mc_slot_bytes(slot) / mc_dtypes[slot->type.dtype].size, l->units, type, part,
                    l->column_sums, at, type, all[i], type);
        at += bytes_of(slot);
    }
}

mc_status mc_export_kernel(struct mc_export_one *x, int step, const struct mc_launch *l)
{
    const struct mc_kernel k = printed(x, step);
    struct printing q = { .x = x, .step = step, .l = l, .k = &k };
    const bool reduces_all = l->split == SPLIT_FULL_REDUCTION;
    if (!reduces_all && (l->n[0] == 0 || l->n[1] == 0 || l->outer_total == 0) &&
        !(k.mode == KERNEL_ROW && l->n[1]) && k.mode != KERNEL_COLUMN && !l->column_sums) {
        return MC_OK; /* no result has elements */
    }
    if (!begin(&q, l->copies)) {
        return MC_EMEMORY;
    }
    if (reduces_all) {
        full_reduction(&q);
    } else if (l->split == SPLIT_COLUMN_SUMS) {
        column_sums(&q);
    } else {
        outer_loops(&q);
        block(&q, l->s, l->n, false);
        close_loops(&q, l->nouter);
    }
    end(&q);
    return MC_OK;
}

/* ---- epilogues ---- */

/* Elements of axis a in the part. */
static int64_t size_of(const struct mc_launch *l, const struct mc_export_part *part, int a)
{
    int64_t size = l->outer[a];
    for (int i = 0; part && i < 3; i++) {
        size = part->axis[i] == a ? part->size[i] : size;
    }
    return size;
}

/* Are axes a and b one axis for every operand, and does the part have all of b? */
static bool joins(const struct mc_launch *l, const struct mc_export_part *part, int a, int b)
{
    if (size_of(l, part, b) != l->outer[b]) {
        return false;
    }
    for (int k = 0; k < l->nop; k++) {
        if (l->step[k * MC_MAX_RANK + a] != l->step[k * MC_MAX_RANK + b] * l->outer[b]) {
            return false;
        }
    }
    return true;
}

bool mc_export_has_parts(const struct mc_export_one *x, int step)
{
    const struct mc_kernel *k = x->f->code->program.step.at[step].kernel;
    const struct mc_launch *l = x->p->step[step].heavy->finish;
    bool good = k->mode == KERNEL_MAP && !k->bounded && !mc_kernel_checks(k);
    for (int i = 0; i < l->nop && l->dense; i++) {
        good &= l->dense[i] < 0;
    }
    return good;
}

mc_status mc_export_epilogue(struct mc_export_one *x, int step, const struct mc_export_part *part)
{
    const struct mc_kernel k = printed(x, step);
    const struct mc_launch *l = x->p->step[step].heavy->finish;
    struct printing q = { .x = x, .step = step, .l = l, .k = &k };
    const int inner = MC_MAX(k.inner, 0);
    int a = inner;
    int64_t n[4] = { size_of(l, part, inner), 1, 1, 0 }, s[3 * MOST_OPERANDS];
    for (; a > 0 && joins(l, part, a - 1, a); a--) {
        n[0] *= size_of(l, part, a - 1);
    }
    const int second = a - 1;
    n[1] = second >= 0 ? size_of(l, part, second) : 1;
    for (int i = 0; i < l->nop; i++) {
        s[3 * i] = l->step[i * MC_MAX_RANK + inner];
        s[3 * i + 1] = second < 0 ? 0 : l->step[i * MC_MAX_RANK + second];
        s[3 * i + 2] = 0;
    }
    if (!begin(&q, 0)) {
        return MC_EMEMORY;
    }
    for (int p = 0; part && p < 3; p++) {
        for (int i = 0; i < l->nop && part->axis[p] >= 0 && strcmp(part->index[p], "0") != 0; i++) {
            const struct mc_koperand *o = &k.operand.at[i];
            advance(&q, i, part->index[p],
                    part->size[p] * l->step[i * MC_MAX_RANK + part->axis[p]] *
                        (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size));
        }
    }
    int64_t outer = 1;
    for (int b = 0; b < second; b++) {
        outer *= size_of(l, part, b);
    }
    share(&q, n, outer);
    q.work /= part ? (double)part->parts : 1;
    parallel_outer(&q, n, MC_MAX(second, 0));
    parallel_inner(&q, n);
    for (int b = 0; b < second; b++) {
        const char *count = mc_export_format(x, "outer%d", b);
        mc_str_addf(&x->to->code, "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {\n", count, count,
                    size_of(l, part, b), count);
        for (int i = 0; i < l->nop; i++) {
            const struct mc_koperand *o = &k.operand.at[i];
            advance(&q, i, count,
                    l->step[i * MC_MAX_RANK + b] * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size));
        }
    }
    block(&q, s, n, false);
    close_loops(&q, MC_MAX(second, 0));
    end(&q);
    return MC_OK;
}

/* render.c: kernels as text.  There is one renderer, and dialects are data.  Each kernel is printed as a loop
 * nest whose innermost loop is plain enough for the compiler to vectorise.
 *
 * Invariant: along the innermost loop an operand has stride 1 if it varies along the kernel's innermost axis,
 * else 0.  The launch copies operands of any other stride. */
#include "render/print.h"
#include "render/prelude.h"

/* ---- loops ---- */

/* The addresses of the operands at the current outer indices: "+ i1 * s[4]". */
static void pointers(struct print *p, bool elements, const char *offset)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        bool element = o->dst ? p->k->val.at[o->val].element
                              : (o->varies & (p->k->mode == KERNEL_MAP ? ~0u : p->k->reduced)) != 0;
        if (element != elements) {
            continue;
        }
        const char *t = p->d->store[o->dtype];
        if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)p[%zu]", i, i);
        } else {
            mc_str_addf(p->out, "%s%s *a%zu = (%s%s *)p[%zu]", o->dst ? "" : "const ", t, i,
                        o->dst ? "" : "const ", t, i);
        }
        for (const char *f = offset; *f; f++) { /* "12": + i1 * s[3k+1] + i2 * s[3k+2]; "j": + j0 * s[3k] */
            if (*f == 'j') {
                mc_str_add(p->out, mc_print_moves(p->k, o) ? " + j0" : "");
            } else {
                mc_str_addf(p->out, " + i%c * s[%zu]", *f, 3 * i + (size_t)(*f - '0'));
            }
        }
        mc_str_add(p->out, ";\n");
    }
}

/* Sums of floats: lanes add CHUNK elements, a block of BLOCK elements adds those sums, so that long rows lose
 * no digits. */
enum { BLOCK = 2048, CHUNK = 128 };

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

static void end_chunk(struct print *p, int v)
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

/* The innermost loop of kernels of rows and of full reductions. */
static void row_loop(struct print *p)
{
    bool positions, reduces = mc_print_stage_reduces(p, &positions);
    if (p->k->wide) {
        mc_vector_kernel_loop(p, reduces);
        return;
    }
    if (!reduces || positions) {
        if (!reduces) {
            mc_str_add(p->out, p->d->loop);
        }
        mc_str_add(p->out, "for (i64 j = 0; j < n0; j++) { ");
        mc_print_body(p, false, "(base + i2 * n0 + j)");
        mc_str_add(p->out, "}\n");
        return;
    }
    mc_str_addf(p->out, "for (i64 b = 0; b < n0; b += %d) {\nconst i64 stop = n0 - b < %d ? n0 : b + %d;\n",
                BLOCK, BLOCK, BLOCK);
    mc_print_each(p, declare_block);
    mc_str_addf(p->out,
                "\nfor (i64 f = b; f < stop; f += %d) {\nconst i64 e = stop - f < %d ? stop : f + %d;\n",
                CHUNK, CHUNK, CHUNK);
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
    mc_str_free(&clauses);
    mc_str_add(p->out, "for (i64 j = f; j < e; j++) { ");
    mc_print_body(p, true, "");
    mc_str_add(p->out, "}\n");
    mc_print_each(p, end_chunk);
    mc_str_add(p->out, "}\n");
    mc_print_each(p, end_block);
    mc_str_add(p->out, "}\n");
}

/* The loop over i2, with operands' addresses, around `loop`. */
static void walk(struct print *p, const char *offset, void (*loop)(struct print *p))
{
    mc_str_add(p->out, "for (i64 i2 = 0; i2 < n2; i2++) {\n");
    pointers(p, true, offset);
    for (int b = 1; b <= p->k->nsaved; b++) {
        const char *t = "float";
        for (size_t i = 0; i < p->k->val.n; i++) {
            t = p->k->val.at[i].saved == b ? mc_print_calc(p, p->k->val.at[i].dtype) : t;
        }
        mc_str_addf(p->out, "%s *b%d = (%s *)(p[%zu] + %d * (n0 * n2 * 8 + 64)) + i2 * n0; (void)b%d;\n", t,
                    b, t, p->k->operand.n, b - 1, b);
    }
    loop(p);
    mc_str_add(p->out, "}\n");
}

static void map_loop(struct print *p)
{
    if (p->k->wide) {
        mc_vector_kernel_loop(p, false);
        return;
    }
    mc_str_add(p->out, p->d->loop);
    mc_str_add(p->out, "for (i64 j = 0; j < n0; j++) { ");
    mc_print_body(p, false, "");
    mc_str_add(p->out, "}\n");
}

static void print_map(struct print *p)
{
    pointers(p, false, "");
    mc_print_row_values(p);
    mc_print_row_stores(p);
    if (!mc_print_mark(p)) {
        return;
    }
    mc_str_add(p->out, p->k->wide ? "int stream = (int)n[3];\nfor (i64 i1 = 0; i1 < n1; i1++)\n"
                                  : "for (i64 i1 = 0; i1 < n1; i1++)\n");
    walk(p, "12", map_loop);
    mc_str_add(p->out, p->k->wide ? "if (n[3]) __builtin_ia32_sfence();\n" : "");
}

static void each_row(struct print *p)
{
    mc_str_add(p->out, "for (i64 i1 = 0; i1 < n1; i1++) {\n");
    pointers(p, false, "1");
    if (p->held) {
        pointers(p, true, "1");
    }
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        mc_print_row_values(p);
        if (mc_print_mark(p)) {
            mc_print_each(p, mc_print_acc);
            mc_str_add(p->out, "\n");
            if (p->held) {
                mc_vector_kernel_vector(p);
            } else {
                walk(p, "12", row_loop);
            }
            mc_print_each(p, mc_print_finish);
            mc_str_add(p->out, "\n");
        }
    }
    mc_print_row_stores(p);
    mc_str_add(p->out, "}\n");
}

/* Prints the case of rows that are one vector, whose values all stay in registers; the code after it is for
 * longer rows. */
static void print_vectors(struct print *p)
{
    const bool all = p->k->never & ROW_LOOP;
    p->held = p->done + p->k->val.n;
    mc_str_addf(p->out, all ? "{\n" : "if (n0 <= %d && n2 == 1) {\n", VECTOR_LANES);
    mc_str_add(p->out, "const vm keep = (vm)((1u << n0) - 1); const i64 j = 0, b = 0, i2 = 0; (void)j; "
                       "(void)b; (void)i2;\n");
    each_row(p);
    mc_str_add(p->out, all ? "}\n" : "} else\n");
    memset(p->done, 0, p->k->val.n);
    p->held = NULL;
}

static void print_row(struct print *p)
{
    mc_str_add(p->out, "const i64 base = 0; (void)base;\n");
    mc_str_add(p->out, p->k->wide ? "const int stream = (int)n[3]; (void)stream;\n" : "");
    if (p->k->wide && !(p->k->never & ROW_VECTOR)) {
        print_vectors(p);
    }
    if (!p->k->wide || !(p->k->never & ROW_LOOP)) {
        each_row(p);
    }
    mc_str_add(p->out, p->k->wide ? "if (n[3]) __builtin_ia32_sfence();\n" : "");
}

static int slot_of(const struct print *p, int v)
{
    int slot = 0;
    for (int i = 0; i < v; i++) {
        slot += p->k->val.at[i].kind == K_REDUCE;
    }
    return slot;
}

static void keep_acc(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    const int slot = slot_of(p, v);
    mc_str_addf(p->out, "*(%s *)(to + %d) = c%d; ", mc_print_acc_type(p, x, false), 16 * slot, v);
    if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "*(i64 *)(to + %d) = z%d; ", 16 * slot + 8, v);
    }
}

/* "double c3 = *(double *)(to + 16); ": reads an accumulator that was stored, under another name. */
static void read_acc(struct print *p, int v, const char *from, const char *as, char value, char flag)
{
    const struct mc_kval *x = &p->k->val.at[v];
    const char *t = mc_print_acc_type(p, x, false);
    mc_str_addf(p->out, "%s%s %c%d = *(const %s *)(%s + %d); ", as, t, value, v, t, from, 16 * slot_of(p, v));
    if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "%si64 %c%d = *(const i64 *)(%s + %d); ", as, flag, v, from,
                    16 * slot_of(p, v) + 8);
    }
}

static void open_acc(struct print *p, int v)
{
    read_acc(p, v, "to", "", 'c', 'z');
}

static void fetch_acc(struct print *p, int v)
{
    read_acc(p, v, "acc", "const ", 'l', 'q');
}

/* Declares and reports `beyond` in a bounded kernel. */
static void begin_bounded(struct print *p)
{
    mc_str_add(p->out, p->k->bounded ? "i32 beyond = 0;\n" : "");
}

static void end_bounded(struct print *p)
{
    mc_str_add(p->out, p->k->bounded ? "if (beyond) err[3] = 1;\n}\n" : "}\n");
}

static void print_reduction(struct print *p)
{
    pointers(p, false, "");
    mc_print_row_values(p);
    mc_str_add(p->out, "const i64 base = n[3]; (void)base;\n");
    mc_print_mark(p);
    mc_print_each(p, mc_print_acc);
    mc_str_add(p->out, "\nfor (i64 i1 = 0; i1 < n1; i1++)\n");
    walk(p, "12", row_loop);
    mc_str_addf(p->out, "char *to = p[%zu]; ", p->k->operand.n);
    mc_print_each(p, keep_acc);
    mc_str_add(p->out, "\n");
    end_bounded(p);

    memset(p->done, 0, p->k->val.n);
    mc_str_addf(p->out, p->d->reduce_fn, p->k->name);
    mc_str_add(p->out, "const i64 chunks = n[0]; (void)s; (void)err;\n");
    begin_bounded(p);
    pointers(p, false, "");
    mc_str_addf(p->out,
                "for (i64 d = 1; d < chunks; d *= 2) for (i64 i = 0; i + d < chunks; i += 2 * d) {\nchar *to "
                "= p[%zu] + i * %d; const char *acc = to + d * %d;\n",
                p->k->operand.n, 16 * p->k->nreduce, 16 * p->k->nreduce);
    mc_print_each(p, open_acc);
    mc_print_each(p, fetch_acc);
    mc_print_each(p, mc_print_merge);
    mc_print_each(p, keep_acc);
    mc_str_add(p->out, "}\n");
    mc_print_each(p, mc_print_acc);
    mc_str_addf(p->out, "\nif (chunks) { const char *acc = p[%zu];\n", p->k->operand.n);
    mc_print_each(p, fetch_acc);
    mc_print_each(p, mc_print_merge);
    mc_str_add(p->out, "}\n");
    mc_print_row_values(p);
    mc_print_each(p, mc_print_finish);
    mc_str_add(p->out, "\n");
    for (p->stage = 1; p->stage <= p->k->nstage; p->stage++) {
        mc_print_row_values(p);
    }
    mc_print_row_stores(p);
}

/* ---- column kernels: row values are arrays over up to KERNEL_COLUMNS columns ---- */

static void column_loop(struct print *p)
{
    mc_str_add(p->out, p->d->loop);
    mc_str_add(p->out, "for (i64 j = 0; j < nb; j++) { ");
    mc_print_body(p, false, "(i2 * n1 + i1)");
    mc_str_add(p->out, "}\n");
}

static void declare_columns(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "%s c%d[%d]; ", mc_print_acc_type(p, x, false), v, KERNEL_COLUMNS);
    if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "i64 z%d[%d]; ", v, KERNEL_COLUMNS);
    }
    mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++) { c%d[j] = %s; ", v, mc_print_first(p, x));
    if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "z%d[j] = %d; ", v, mc_print_by_position(x) ? -1 : 0);
    }
    mc_str_add(p->out, "}\n");
}

/* Row values of this stage, column by column, including loads. */
void mc_print_column_values(struct print *p)
{
    const struct mc_kernel *k = p->k;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        if (!v->element && v->varies && v->kind != K_CONST && v->kind != K_REDUCE && v->stage == p->stage &&
            !(p->wait && p->wait[i])) {
            mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++) { r%zu[j] = ", i);
            mc_print_expression(p, (int)i, true);
            mc_str_add(p->out, "; ");
            mc_print_beyond(p, (int)i);
            mc_str_add(p->out, "}\n");
            if (v->kind == K_CHECK) {
                mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++) if ((u64)r%zu[j] >= (u64)", i);
                mc_print_ref(p, v->arg[1]);
                mc_str_addf(p->out, ") { err[0] = %zu; err[1] = r%zu[j]; err[2] = (i64)", i + 1, i);
                mc_print_ref(p, v->arg[1]);
                mc_str_add(p->out, "; }\n");
            }
        }
    }
}

static void print_column(struct print *p)
{
    const struct mc_kernel *k = p->k;
    mc_str_addf(p->out,
                "for (i64 j0 = 0; j0 < n0; j0 += %d) {\nconst i64 nb = n0 - j0 < %d ? n0 - j0 : %d;\n",
                KERNEL_COLUMNS, KERNEL_COLUMNS, KERNEL_COLUMNS);
    for (size_t i = 0; i < k->val.n; i++) {
        if (!k->val.at[i].element && k->val.at[i].varies && k->val.at[i].kind != K_CONST) {
            mc_str_addf(p->out, "%s r%zu[%d];\n", mc_print_calc(p, k->val.at[i].dtype), i, KERNEL_COLUMNS);
        }
    }
    pointers(p, false, "j");
    for (p->stage = 0; p->stage <= k->nstage; p->stage++) {
        mc_print_row_values(p);
        mc_print_column_values(p);
        if (mc_print_mark(p)) {
            mc_print_each(p, declare_columns);
            if (k->wide) {
                mc_vector_kernel_columns(p, pointers);
            } else {
                mc_str_add(p->out, "for (i64 i2 = 0; i2 < n2; i2++) for (i64 i1 = 0; i1 < n1; i1++) {\n");
                pointers(p, true, "j12");
                column_loop(p);
                mc_str_add(p->out, "}\n");
            }
            mc_str_add(p->out, "for (i64 j = 0; j < nb; j++) { ");
            mc_print_each(p, mc_print_finish);
            mc_str_add(p->out, "}\n");
        }
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->dst && !k->val.at[o->val].element) {
            mc_str_add(p->out, "for (i64 j = 0; j < nb; j++) { ");
            mc_print_store(p, (int)i, true);
            mc_str_add(p->out, "}\n");
        }
    }
    mc_str_add(p->out, "}\n");
}

static void print_kernel(struct print *p)
{
    static void (*const mode[])(struct print *p) = {
        [KERNEL_MAP] = print_map, [KERNEL_ROW] = print_row, [KERNEL_COLUMN] = print_column,
        [KERNEL_FULL_REDUCTION] = print_reduction,
    };
    p->need = mc_calloc(p->k->val.n + 1, 3, "kernel");
    if (!p->need) {
        p->out->bad = true;
        return;
    }
    p->done = p->need + p->k->val.n;
    p->stage = 0;
    mc_str_add(p->out, "\n");
    mc_str_addf(p->out, p->d->head, p->k->name);
    mc_str_add(
        p->out,
        "const i64 n0 = n[0], n1 = n[1], n2 = n[2]; (void)n0; (void)n1; (void)n2; (void)s; (void)err;\n");
    begin_bounded(p);
    mode[p->k->mode](p);
    end_bounded(p);
    mc_free(p->need);
}

void mc_print_prelude(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    bool exact = false;
    for (int i = 0; i < n; i++) {
        exact |= kernels[i]->exact;
    }
    mc_str_add(out, exact ? d->exact : "");
    mc_str_add(out, d->prelude);
    mc_str_add(out, d->builtins);
    mc_str_add(out, mc_prelude_code);
}

void mc_render(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    bool wide = false;
    for (int i = 0; i < n; i++) {
        wide |= kernels[i]->wide;
    }
    mc_print_prelude(out, d, n, kernels);
    mc_print_functions(out, d, n, kernels);
    if (wide) {
        mc_str_add(out, mc_vector_kernel_text);
        mc_str_add(out, mc_vector_kernel_names);
        mc_vector_kernel_functions(out, n, kernels);
    }
    for (int i = 0; i < n; i++) {
        struct print p = { .out = out, .d = d, .k = kernels[i] };
        print_kernel(&p);
    }
}

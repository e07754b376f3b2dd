/* render.c: kernels as text.  There is one renderer, and dialects are data.  Each kernel is printed as a loop
 * nest whose innermost loop is plain enough for the compiler to vectorise.
 *
 * Invariant: along the innermost loop an operand has stride 1 if it varies along the kernel's innermost axis,
 * else 0.  The launch copies operands of any other stride. */
#include "render/print.h"
#include "render/prelude.h"

/* ---- loops ---- */

/* The loop over i2, with operands' addresses, around `loop`. */
static void walk(struct print *p, const char *offset, void (*loop)(struct print *p))
{
    mc_print_for(p, 2, " {\n");
    mc_print_pointers(p, true, offset);
    for (int b = 1; b <= p->k->nsaved; b++) {
        const char *t = "float";
        for (size_t i = 0; i < p->k->val.n; i++) {
            t = p->k->val.at[i].saved == b ? mc_print_calc(p, p->k->val.at[i].dtype) : t;
        }
        mc_print_row_buffer(p, b, t);
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
    mc_print_for_elements(p, p->d->loop);
    mc_print_body(p, false, "");
    mc_str_add(p->out, "}\n");
}

static void print_map(struct print *p)
{
    mc_print_pointers(p, false, "");
    mc_print_row_values(p);
    mc_print_row_stores(p);
    if (!mc_print_mark(p)) {
        return;
    }
    mc_str_add(p->out, p->k->wide ? "int stream = (int)n[3];\n" : "");
    mc_print_for(p, 1, "\n");
    walk(p, "12", map_loop);
    mc_str_add(p->out, p->k->wide ? "if (n[3]) __builtin_ia32_sfence();\n" : "");
}

static void each_row(struct print *p)
{
    mc_print_for(p, 1, " {\n");
    mc_str_add(p->out, p->at && p->at->each_row ? p->at->each_row : "");
    mc_print_pointers(p, false, "1");
    if (p->held) {
        mc_print_pointers(p, true, "1");
    }
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        mc_print_row_values(p);
        if (mc_print_mark(p)) {
            mc_print_each(p, mc_print_acc);
            mc_str_add(p->out, "\n");
            if (p->held) {
                mc_vector_kernel_vector(p);
            } else {
                walk(p, "12", mc_print_row_loop);
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
    mc_str_add(p->out, p->at ? "" : "const i64 base = 0; (void)base;\n");
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
    mc_print_pointers(p, false, "");
    mc_print_row_values(p);
    mc_str_add(p->out, p->at ? "" : "const i64 base = n[3]; (void)base;\n");
    mc_print_mark(p);
    mc_print_each(p, mc_print_acc);
    mc_str_add(p->out, "\n");
    mc_print_for(p, 1, "\n");
    walk(p, "12", mc_print_row_loop);
    mc_str_add(p->out, "char *to = ");
    mc_print_address(p, p->k->operand.n);
    mc_str_add(p->out, "; ");
    mc_print_each(p, keep_acc);
    mc_str_add(p->out, "\n");
}

/* Combines the accumulators of all chunks, in a tree. */
static void print_join(struct print *p)
{
    const int size = 16 * p->k->nreduce;
    const char *chunks = p->at ? mc_print_count(p, 0) : "chunks";
    const int64_t known = mc_print_known(p, 0);
    mc_print_pointers(p, false, "");
    if (known < 0 || known > 1) {
        mc_str_addf(p->out,
                    "for (i64 d = 1; d < %s; d *= 2) for (i64 i = 0; i + d < %s; i += 2 * d) {\nchar *to = ",
                    chunks, chunks);
        mc_print_address(p, p->k->operand.n);
        mc_str_addf(p->out, " + i * %d; const char *acc = to + d * %d;\n", size, size);
        mc_print_each(p, open_acc);
        mc_print_each(p, fetch_acc);
        mc_print_each(p, mc_print_merge);
        mc_print_each(p, keep_acc);
        mc_str_add(p->out, "}\n");
    }
    mc_print_each(p, mc_print_acc);
    if (known < 0) {
        mc_str_addf(p->out, "\nif (%s) { const char *acc = ", chunks);
    } else {
        mc_str_add(p->out, known ? "\n{ const char *acc = " : "\n");
    }
    if (known) {
        mc_print_address(p, p->k->operand.n);
        mc_str_add(p->out, ";\n");
        mc_print_each(p, fetch_acc);
        mc_print_each(p, mc_print_merge);
        mc_str_add(p->out, "}\n");
    }
    mc_print_row_values(p);
    mc_print_each(p, mc_print_finish);
    mc_str_add(p->out, "\n");
    for (p->stage = 1; p->stage <= p->k->nstage; p->stage++) {
        mc_print_row_values(p);
    }
    mc_print_row_stores(p);
}

/* ---- column kernels: row values are arrays over up to KERNEL_COLUMNS columns ---- */

/* columns in the arrays of a kernel */
static int columns(const struct print *p)
{
    return mc_print_one_block(p) ? (int)MC_MAX(mc_print_known(p, 0), 1) : KERNEL_COLUMNS;
}

/* "for (i64 j = 0; j < nb; j++)", and `after` */
static void each_column(struct print *p, const char *after)
{
    const int64_t n = mc_print_known(p, 0);
    if (p->grid || n < 0 || (n > KERNEL_COLUMNS && n % KERNEL_COLUMNS)) {
        mc_str_addf(p->out, "for (i64 j = 0; j < nb; j++)%s", after);
    } else if (n == 1 && strchr(after, '{')) {
        mc_str_add(p->out, "{ const i64 j = 0; ");
    } else {
        mc_str_addf(p->out, "for (i64 j = 0; j < %lld; j++)%s", (long long)MC_MIN(n, KERNEL_COLUMNS), after);
    }
}

static void column_loop(struct print *p)
{
    mc_str_add(p->out, mc_print_known(p, 0) == 1 ? "" : p->d->loop);
    struct mc_str position = { 0 };
    mc_print_position(p, &position);
    each_column(p, " { ");
    mc_print_body(p, false, position.s ? position.s : "");
    mc_str_add(p->out, "}\n");
    p->out->bad |= position.bad;
    mc_str_free(&position);
}

static void declare_columns(struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "%s c%d[%d]; ", mc_print_acc_type(p, x, false), v, columns(p));
    if (mc_print_monoid(x)->flags) {
        mc_str_addf(p->out, "i64 z%d[%d]; ", v, columns(p));
    }
    each_column(p, " { ");
    mc_str_addf(p->out, "c%d[j] = %s; ", v, mc_print_first(p, x));
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
            each_column(p, " { ");
            mc_str_addf(p->out, "r%zu[j] = ", i);
            mc_print_expression(p, (int)i, true);
            mc_str_add(p->out, "; ");
            mc_print_beyond(p, (int)i);
            mc_str_add(p->out, "}\n");
            if (v->kind == K_CHECK) {
                each_column(p, " ");
                mc_str_addf(p->out, "if ((u64)r%zu[j] >= (u64)", i);
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
    const char *n0 = mc_print_count(p, 0);
    if (mc_print_one_block(p)) {
        mc_str_add(p->out, "{\n");
    } else {
        mc_print_parallel(p, 0, "");
        mc_str_addf(p->out,
                    "for (i64 j0 = 0; j0 < %s; j0 += %d) {\nconst i64 nb = %s - j0 < %d ? %s - j0 : %d;\n",
                    n0, KERNEL_COLUMNS, n0, KERNEL_COLUMNS, n0, KERNEL_COLUMNS);
    }
    for (size_t i = 0; i < k->val.n; i++) {
        if (!k->val.at[i].element && k->val.at[i].varies && k->val.at[i].kind != K_CONST) {
            mc_str_addf(p->out, "%s r%zu[%d];\n", mc_print_calc(p, k->val.at[i].dtype), i, columns(p));
        }
    }
    mc_print_pointers(p, false, "j");
    for (p->stage = 0; p->stage <= k->nstage; p->stage++) {
        mc_print_row_values(p);
        mc_print_column_values(p);
        if (mc_print_mark(p)) {
            mc_print_each(p, declare_columns);
            if (k->wide) {
                mc_vector_kernel_columns(p, mc_print_pointers);
            } else {
                mc_print_for(p, 2, " ");
                mc_print_for(p, 1, " {\n");
                mc_print_pointers(p, true, "j12");
                column_loop(p);
                mc_str_add(p->out, "}\n");
            }
            each_column(p, " { ");
            mc_print_each(p, mc_print_finish);
            mc_str_add(p->out, "}\n");
        }
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->dst && !k->val.at[o->val].element) {
            each_column(p, " { ");
            mc_print_store(p, (int)i, true);
            mc_str_add(p->out, "}\n");
        }
    }
    mc_str_add(p->out, "}\n");
}

/* Begins to print p->k; false: out of memory. */
static bool start(struct print *p)
{
    p->need = mc_calloc(p->k->val.n + 1, 3, "kernel");
    p->out->bad |= !p->need;
    p->done = p->need ? p->need + p->k->val.n : NULL;
    return p->need;
}

static void body(struct print *p)
{
    static void (*const mode[])(struct print *p) = {
        [KERNEL_MAP] = print_map, [KERNEL_ROW] = print_row, [KERNEL_COLUMN] = print_column,
        [KERNEL_FULL_REDUCTION] = print_reduction,
    };
    begin_bounded(p);
    mode[p->k->mode](p);
    end_bounded(p);
}

static void print_kernel(struct print *p)
{
    if (!start(p)) {
        return;
    }
    mc_str_add(p->out, "\n");
    mc_str_addf(p->out, p->d->head, p->k->name);
    mc_str_add(
        p->out,
        "const i64 n0 = n[0], n1 = n[1], n2 = n[2]; (void)n0; (void)n1; (void)n2; (void)s; (void)err;\n");
    body(p);
    if (p->k->mode == KERNEL_FULL_REDUCTION) {
        memset(p->done, 0, p->k->val.n);
        mc_str_addf(p->out, p->d->reduce_fn, p->k->name);
        mc_str_add(p->out, "const i64 chunks = n[0]; (void)s; (void)err;\n");
        begin_bounded(p);
        print_join(p);
        end_bounded(p);
    }
    mc_free(p->need);
}

void mc_render_launch(struct mc_str *out, const struct mc_dialect *d, const struct mc_kernel *k,
                      const struct mc_kernel_launch *at)
{
    struct print p = { .out = out, .d = d, .k = k, .at = at };
    if (start(&p)) {
        mc_str_add(out, "{\n");
        body(&p);
        mc_free(p.need);
    }
}

void mc_render_launch_join(struct mc_str *out, const struct mc_dialect *d, const struct mc_kernel *k,
                           const struct mc_kernel_launch *at)
{
    struct print p = { .out = out, .d = d, .k = k, .at = at };
    if (start(&p)) {
        mc_str_add(out, "{\n");
        begin_bounded(&p);
        print_join(&p);
        end_bounded(&p);
        mc_free(p.need);
    }
}

void mc_print_prelude(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    bool exact = false, keeps = false;
    for (int i = 0; i < n; i++) {
        exact |= kernels[i]->exact;
        for (size_t v = 0; v < kernels[i]->val.n; v++) {
            keeps |= mc_print_keeps(&kernels[i]->val.at[v]);
        }
    }
    mc_str_add(out, exact ? d->exact : "");
    mc_str_add(out, d->prelude);
    mc_str_add(out, d->builtins);
    mc_str_add(out, mc_prelude_code);
    mc_str_add(out, keeps && d->keeps ? d->keeps : "");
}

void mc_render_functions(struct mc_str *out, const struct mc_dialect *d, int n,
                         struct mc_kernel *const *kernels)
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
}

void mc_render(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    mc_render_functions(out, d, n, kernels);
    for (int i = 0; i < n; i++) {
        struct print p = { .out = out, .d = d, .k = kernels[i] };
        print_kernel(&p);
    }
}

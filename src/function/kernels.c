/* kernels.c: the kernels of a function: printed, compiled, found in what was compiled.
 *
 * Invariant: a step whose kernel has no compiled form says why, and runs by the reference. */
#include "function/compiling.h"
#include "function/backend.h"
#include <stdio.h>

/* Kernels over whole vectors and the others are apart: the first need no vectoriser, and what they lose without the
 * later passes of -O2 is nothing that was measured.  Many are several texts, compiled at the same time: a text takes a
 * tenth of a second less for every six kernels that it has not, and 30 ms for being one. */
static const struct part {
    bool wide;
    const char *flags;
} parts[] = {
    { true,  MC_KERNEL_FLAGS " -O1 -fexpensive-optimizations -fgcse -fno-tree-vectorize" },
    { false, MC_KERNEL_FLAGS },
};
enum { EACH = MC_TEXTS / NELEM(parts), WORTH = 4 }; /* texts of a part; kernels that are worth one */
struct load {
    const struct part *part;
    struct mc_str text;
    struct mc_code *code;
    mc_status status;
    char why[1000]; /* errors belong to threads */
};

static void *load(void *arg)
{
    struct load *l = arg;
    l->code = mc_code_load(l->text.s, l->part->flags, &l->status);
    mc_snprintf(l->why, sizeof l->why, "%s", l->status < 0 ? mc_last_error() : "");
    return NULL;
}

/* All texts at once, each in a thread but for the last. */
static mc_status load_all(struct load *l, int n)
{
    pthread_t thread[MC_TEXTS];
    bool started[MC_TEXTS] = { false };
    mc_status s = MC_OK;
    for (int i = 0; i < n; i++) {
        started[i] = i < n - 1 && pthread_create(&thread[i], NULL, load, &l[i]) == 0;
        if (!started[i]) {
            load(&l[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        if (started[i]) {
            pthread_join(thread[i], NULL);
        }
        if (l[i].status < 0 && s == MC_OK) {
            s = l[i].status == MC_EMEMORY ? mc_fail_memory(0, "kernels") : mc_fail(l[i].status, "%s", l[i].why);
        }
    }
    return s;
}

/* Of the steps whose kernel is in a text. */
static mc_status find_kernels(struct mc_code_unit *u, const int *to, int text, struct mc_code *lib)
{
    const struct mc_program *p = &u->program;
    for (size_t i = 0; i < p->step.n && lib; i++) {
        const struct mc_kernel *k = p->step.at[i].kernel;
        char join[40];
        if (k && to[i] == text) {
            void *fn = mc_code_function(lib, k->name);
            memcpy(&u->fn[i], &fn, sizeof fn);
            if (!fn) {
                return MC_ECOMPILE;
            }
            mc_snprintf(join, sizeof join, "%s_join", k->name);
            fn = k->mode == KERNEL_FOLD ? mc_code_symbol(lib, join) : NULL;
            memcpy(&u->join[i], &fn, sizeof fn);
        }
    }
    return MC_OK;
}

/* ---- which kernel goes where ---- */

int *mc_kernels_share(struct mc_program *p)
{
    int *first = mc_alloc((p->step.n + 1) * sizeof *first, "compile"), *kept = mc_alloc((p->step.n + 1) * sizeof *kept, "compile"), n = 0;
    for (size_t i = 0; first && kept && i < p->step.n; i++) {
        struct mc_kernel *k = p->step.at[i].kernel;
        int j = k ? 0 : n;
        while (j < n && !mc_kernel_same(p->step.at[kept[j]].kernel, k)) {
            j++;
        }
        first[i] = k ? j < n ? kept[j] : (int)i : -1;
        if (k && j == n) {
            kept[n++] = (int)i;
        } else if (k) {
            memcpy(k->name, p->step.at[kept[j]].kernel->name, sizeof k->name);
        }
    }
    if (!kept) {
        mc_free(first);
        return NULL;
    }
    mc_free(kept);
    return first;
}

void mc_kernels_rule_out(const struct mc_program *p, const int *first, unsigned (*never)(const struct mc_step *st))
{
    for (size_t i = 0; i < p->step.n; i++) {
        if (first[i] >= 0) {
            struct mc_kernel *printed = p->step.at[first[i]].kernel;
            const unsigned one = never(&p->step.at[i]);
            printed->never = first[i] == (int)i ? one : printed->never & one;
        }
    }
    for (size_t i = 0; i < p->step.n; i++) { /* a form is to the host what it is in the text */
        if (first[i] >= 0) {
            p->step.at[i].kernel->never = p->step.at[first[i]].kernel->never;
        }
    }
}

/* Of the forms over vectors.  Several reduced axes may lie apart: then no row is a vector, however short. */
static unsigned never_wide(const struct mc_step *st)
{
    const unsigned reduced = st->kernel->reduced;
    const int64_t length = st->kernel->mode == KERNEL_ROW && st->kernel->wide ? mc_known_length(st) : -1;
    return length > VECTOR_LANES ? ROW_VECTOR : length >= 0 && (reduced & (reduced - 1)) == 0 ? ROW_LOOP : 0;
}

/* What compiling a kernel takes, roughly, in the time of a map. */
static int weight(const struct mc_kernel *k)
{
    const int loops = k->never & ROW_LOOP ? 0 : 2 + 2 * k->nstage, vector = k->mode != KERNEL_ROW || k->never & ROW_VECTOR ? 0 : 2;
    return (int)(10 + k->val.n) * (k->mode == KERNEL_MAP ? 1 : loops + vector);
}

int mc_kernels_spread(const struct mc_program *p, const int *first, int most, int *to)
{
    int total[MC_MOST_TEXTS] = { 0 }, texts = 0, kernels = 0;
    for (size_t i = 0; i < p->step.n; i++) {
        to[i] = -1;
        kernels += first[i] == (int)i;
    }
    most = MC_MIN(most, kernels);
    for (int left = kernels; left > 0; left--) {
        int heaviest = -1, lightest = 0;
        for (int i = 0; i < (int)p->step.n; i++) {
            bool open = first[i] == i && to[i] < 0;
            heaviest = open && (heaviest < 0 || weight(p->step.at[i].kernel) > weight(p->step.at[heaviest].kernel)) ? i : heaviest;
        }
        for (int t = 1; t < most; t++) {
            lightest = total[t] < total[lightest] ? t : lightest;
        }
        to[heaviest] = lightest;
        total[lightest] += weight(p->step.at[heaviest].kernel);
        texts = MC_MAX(texts, lightest + 1);
    }
    for (size_t i = 0; i < p->step.n; i++) {
        to[i] = first[i] < 0 ? -1 : to[first[i]];
    }
    return texts;
}

int mc_kernels_of(const struct mc_program *p, const int *first, const int *to, int text, struct mc_kernel **k)
{
    int n = 0;
    for (size_t i = 0; i < p->step.n; i++) {
        if (to[i] == text && first[i] == (int)i) {
            k[n++] = p->step.at[i].kernel;
        }
    }
    return n;
}

/* ---- all kernels of a function ---- */

struct printing {
    const struct mc_program *p;
    int *first, *own, *among;   /* own: first, of one part alone; among: which of its texts */
    int *to;                    /* by step: which of load */
    struct mc_kernel **k;
    struct load load[MC_TEXTS];
    int n;
};

/* A part's kernels as texts; none if there are none. */
static mc_status print_part(struct printing *q, const struct part *part)
{
    int kernels = 0;
    for (size_t i = 0; i < q->p->step.n; i++) {
        const bool mine = q->first[i] >= 0 && q->p->step.at[i].kernel->wide == part->wide;
        q->own[i] = mine ? q->first[i] : -1;
        kernels += q->own[i] == (int)i;
    }
    const int texts = mc_kernels_spread(q->p, q->own, MC_MIN(MC_MIN(mc_cpu()->threads, EACH), MC_MAX(kernels / WORTH, 1)), q->among);
    for (size_t i = 0; i < q->p->step.n; i++) {
        q->to[i] = q->among[i] >= 0 ? q->n + q->among[i] : q->to[i];
    }
    for (int t = 0; t < texts; t++) {
        struct load *l = &q->load[q->n];
        l->part = part;
        mc_render(&l->text, &mc_dialect_c, mc_kernels_of(q->p, q->own, q->to, q->n, q->k), q->k);
        q->n++;
        if (l->text.bad) {
            return MC_EMEMORY;
        }
        LOG(LOG_KERNEL, "%s", l->text.s);
    }
    return MC_OK;
}

static void print_free(struct printing *q)
{
    for (int i = 0; i < q->n; i++) {
        mc_str_free(&q->load[i].text);
    }
    mc_free(q->first);
    mc_free(q->own);
    mc_free(q->among);
    mc_free(q->to);
    mc_free(q->k);
}

static bool print_start(struct printing *q, struct mc_program *p)
{
    const size_t n = p->step.n + 1;
    *q = (struct printing){ .p = p, .first = mc_kernels_share(p), .own = mc_alloc(n * sizeof *q->own, "compile"),
                            .among = mc_alloc(n * sizeof *q->among, "compile"), .to = mc_alloc(n * sizeof *q->to, "compile"),
                            .k = mc_alloc(n * sizeof *q->k, "compile") };
    for (size_t i = 0; q->to && i < p->step.n; i++) {
        q->to[i] = -1;
    }
    return q->first && q->own && q->among && q->to && q->k;
}

const char mc_no_compiler[] = "no C compiler: the reference loops";

mc_status mc_compile_kernels(struct compiling *c)
{
    struct mc_program *p = &c->code->program;
    struct printing q;
    struct mc_str source = { 0 };
    c->code->fn = mc_calloc(p->step.n + 1, sizeof *c->code->fn, "compile");
    c->code->join = mc_calloc(p->step.n + 1, sizeof *c->code->join, "compile");
    mc_status s = print_start(&q, p) && c->code->fn && c->code->join ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < p->step.n; i++) {
        if (p->step.at[i].kernel) {
            p->step.at[i].kernel->wide = mc_kernel_wide(&mc_dialect_c, p->step.at[i].kernel);
        }
    }
    if (s == MC_OK) {
        mc_kernels_rule_out(p, q.first, never_wide);
    }
    for (size_t i = 0; i < NELEM(parts) && s == MC_OK && c->mode != MODE_FAST_COMPILE; i++) {
        s = print_part(&q, &parts[i]);
    }
    for (int i = 0; i < q.n && s == MC_OK; i++) {
        mc_str_add(&source, q.load[i].text.s);
    }
    if (s == MC_OK && q.n && mc_cc_known() && !c->plain) {
        s = load_all(q.load, q.n);
    }
    for (int i = 0; i < q.n; i++) {
        mc_status found = find_kernels(c->code, q.to, i, q.load[i].code);
        s = s < 0 ? s : found;
        c->code->lib[i] = q.load[i].code;
    }
    print_free(&q);
    for (size_t i = 0; i < p->step.n && s == MC_OK; i++) {
        if (p->step.at[i].kernel && !c->code->fn[i]) {
            p->step.at[i].reason = c->mode == MODE_FAST_COMPILE ? "FAST_COMPILE: the reference loops" : mc_no_compiler;
        }
    }
    s = source.bad && s == MC_OK ? MC_EMEMORY : s;
    c->code->source = source.s ? mc_str_take(&source) : mc_strdup("");
    mc_str_free(&source);
    return s < 0 ? s : c->code->source ? MC_OK : MC_EMEMORY;
}

/* compile_kernels.c: the kernels of a function on the CPU: printed as C, compiled, looked up.
 *
 * Invariant: a step whose kernel has no compiled form has a reason, and runs by the reference. */
#include "exec/cpu/launch.h"
#include "exec/kernels.h"
#include <stdio.h>

/* Vector kernels and the others are compiled separately: vector kernels need no vectoriser, and omitting the
 * later passes of -O2 cost them nothing measurable.  Many kernels are divided
 * among several texts, compiled at the same time: a text compiles a tenth of a second faster for every six
 * kernels fewer, and costs 30 ms itself. */
static const struct part {
    bool wide;
    const char *flags;
} parts[] = {
    { true,  MC_KERNEL_FLAGS " -O1 -fexpensive-optimizations -fgcse -fno-tree-vectorize" },
    { false, MC_KERNEL_FLAGS },
};
/* texts of a part, at most; kernels that are worth a text of their own */
enum { EACH = MC_TEXTS / NELEM(parts), WORTH = 4 };
struct load {
    const struct part *part;
    struct mc_str text;
    struct mc_code *code;
    mc_status status;
    char why[1000]; /* the message: errors are per thread */
};

static void *load(void *arg)
{
    struct load *l = arg;
    l->code = mc_code_load(l->text.s, l->part->flags, &l->status);
    mc_snprintf(l->why, sizeof l->why, "%s", l->status < 0 ? mc_last_error() : "");
    return NULL;
}

/* Compiles all texts at the same time, each in a thread of its own except the last. */
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
            s = l[i].status == MC_EMEMORY ? mc_fail_memory(0, "kernels")
                                          : mc_fail(l[i].status, "%s", l[i].why);
        }
    }
    return s;
}

/* Looks up the functions of the steps whose kernel is in this text. */
static mc_status find_kernels(struct mc_code_unit *u, const int *to, int text, struct mc_code *lib)
{
    const struct mc_program *p = &u->program;
    for (size_t i = 0; i < p->step.n && lib; i++) {
        if (p->step.at[i].kernel && to[i] == text) {
            mc_find_kernel(u, (int)i, lib);
            if (!u->fn[i]) {
                return mc_code_lacks(lib, p->step.at[i].kernel->name);
            }
        }
    }
    return MC_OK;
}

/* The forms of a vector kernel that the step never needs.  With several reduced axes, which may not be
 * contiguous, no row is one vector, however short. */
static unsigned never_wide(const struct mc_step *st)
{
    const unsigned reduced = st->kernel->reduced;
    const int64_t length = st->kernel->mode == KERNEL_ROW && st->kernel->wide ? mc_static_length(st) : -1;
    return length > VECTOR_LANES ? ROW_VECTOR : length >= 0 && (reduced & (reduced - 1)) == 0 ? ROW_LOOP : 0;
}

/* ---- all kernels of a function ---- */

struct printing {
    const struct mc_program *p;
    /* own: `first`, for the kernels of one part alone; among: the number of the part's text */
    int *first, *own, *among;
    int *to;                    /* by step: index into load; -1: none */
    struct mc_kernel **k;
    struct load load[MC_TEXTS];
    int n;
};

/* Prints a part's kernels as `most` texts, or fewer; no kernels, no texts. */
static mc_status print_part(struct printing *q, const struct part *part, int most)
{
    int kernels = 0;
    for (size_t i = 0; i < q->p->step.n; i++) {
        const bool mine = q->first[i] >= 0 && q->p->step.at[i].kernel->wide == part->wide;
        q->own[i] = mine ? q->first[i] : -1;
        kernels += q->own[i] == (int)i;
    }
    const int texts = mc_kernels_distribute(q->p, q->own, MC_MIN(most, MC_MAX(kernels / WORTH, 1)), q->among);
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
    *q = (struct printing){ .p = p,
                            .first = mc_kernels_share(p),
                            .own = mc_alloc(n * sizeof *q->own, "compile"),
                            .among = mc_alloc(n * sizeof *q->among, "compile"),
                            .to = mc_alloc(n * sizeof *q->to, "compile"),
                            .k = mc_alloc(n * sizeof *q->k, "compile") };
    for (size_t i = 0; q->to && i < p->step.n; i++) {
        q->to[i] = -1;
    }
    return q->first && q->own && q->among && q->to && q->k;
}

/* Prints the kernels of all parts, each as `most` texts or fewer.  k->wide and its like are set before. */
static mc_status print_parts(struct printing *q, struct mc_program *p, int most)
{
    mc_status s = print_start(q, p) ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        mc_kernels_rule_out(p, q->first, never_wide);
    }
    for (size_t i = 0; i < NELEM(parts) && s == MC_OK; i++) {
        s = print_part(q, &parts[i], most);
    }
    return s;
}

const char mc_no_compiler[] = "no C compiler: the reference loops";

/* For a processor that code with these flags is for. */
static void choose_forms(struct mc_program *p, const char *flags)
{
    const bool vectors = mc_cpu_flags_vectors(flags);
    for (size_t i = 0; i < p->step.n; i++) {
        struct mc_kernel *k = p->step.at[i].kernel;
        if (k) {
            k->wide = vectors && !k->lanes && mc_kernel_can_vectorize(&mc_dialect_c, k);
        }
    }
}

mc_status mc_compile_kernels(struct mc_code_unit *u)
{
    struct mc_program *p = &u->program;
    struct printing q = { 0 };
    struct mc_str source = { 0 };
    u->fn = mc_calloc(p->step.n + 1, sizeof *u->fn, "compile");
    u->reduce_fn = mc_calloc(p->step.n + 1, sizeof *u->reduce_fn, "compile");
    mc_status s = u->fn && u->reduce_fn ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < p->step.n; i++) {
        struct mc_kernel *k = p->step.at[i].kernel;
        if (k && mc_flag_int(FLAG_portable)) {
            k->exact = k->lanes = true;
        }
    }
    choose_forms(p, mc_cpu_flags());
    if (s == MC_OK && u->mode != MODE_FAST_COMPILE) {
        s = print_parts(&q, p, MC_MIN(mc_cpu()->threads, EACH));
    }
    for (int i = 0; i < q.n && s == MC_OK; i++) {
        mc_str_add(&source, q.load[i].text.s);
    }
    if (s == MC_OK && q.n && mc_cc_known() && !u->uncompiled) {
        s = load_all(q.load, q.n);
    }
    for (int i = 0; i < q.n; i++) {
        mc_status found = find_kernels(u, q.to, i, q.load[i].code);
        s = s < 0 ? s : found;
        u->lib[i] = q.load[i].code;
    }
    print_free(&q);
    for (size_t i = 0; i < p->step.n && s == MC_OK; i++) {
        if (p->step.at[i].kernel && !u->fn[i]) {
            p->step.at[i].reason = u->mode == MODE_FAST_COMPILE ? "FAST_COMPILE: the reference loops"
                                                                : mc_no_compiler;
        }
    }
    s = source.bad && s == MC_OK ? MC_EMEMORY : s;
    u->source = source.s ? mc_str_take(&source) : mc_strdup("");
    mc_str_free(&source);
    return s < 0 ? s : u->source ? MC_OK : MC_EMEMORY;
}

/* A copy of the steps and their kernels, whose forms may differ; the kernels' lists are p's. */
static mc_status copy_steps(struct mc_program *copy, const struct mc_program *p)
{
    *copy = (struct mc_program){ .value = p->value };
    for (size_t i = 0; i < p->step.n; i++) {
        if (!VEC_PUSH(copy->step, p->step.at[i])) {
            return MC_EMEMORY;
        }
        struct mc_kernel **k = &copy->step.at[i].kernel, *own = *k ? mc_alloc(sizeof *own, "kernel") : NULL;
        if (*k && !own) {
            *k = NULL;
            return MC_EMEMORY;
        }
        if (*k) {
            *own = **k;
            *k = own;
        }
    }
    return MC_OK;
}

static mc_status add_images(struct mc_kernel_set *set, const struct printing *q)
{
    for (int i = 0; i < q->n; i++) {
        struct mc_str image = { 0 };
        mc_status s = mc_code_image(q->load[i].text.s, q->load[i].part->flags, set->level, &image);
        if (s < 0 || !VEC_PUSH(set->image, image)) {
            mc_str_free(&image);
            return s < 0 ? s : MC_EMEMORY;
        }
    }
    return MC_OK;
}

mc_status mc_kernel_set_make(struct mc_kernel_set *set, const struct mc_program *p, const char *flags)
{
    struct printing q = { 0 };
    struct mc_program copy;
    mc_status s = copy_steps(&copy, p);
    if (s == MC_OK) {
        choose_forms(&copy, flags);
        s = print_parts(&q, &copy, 1);
    }
    s = s < 0 ? s : add_images(set, &q);
    for (size_t i = 0; i < copy.step.n; i++) {
        const struct mc_kernel *k = copy.step.at[i].kernel;
        const struct mc_kernel_form form = { k && k->wide, k ? k->never : 0 };
        s = s < 0 || VEC_PUSH(set->form, form) ? s : MC_EMEMORY;
        mc_free(copy.step.at[i].kernel);
    }
    print_free(&q);
    VEC_FREE(copy.step);
    return s;
}

void mc_kernel_set_free(struct mc_kernel_set *set)
{
    for (size_t i = 0; i < set->image.n; i++) {
        mc_str_free(&set->image.at[i]);
    }
    VEC_FREE(set->image);
    VEC_FREE(set->form);
}

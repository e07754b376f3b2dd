/* kernels.c: the kernels of a function: printed, compiled, found in what was compiled.
 *
 * Invariant: a step whose kernel has no compiled form says why, and runs by the reference. */
#include "function/compiling.h"
#include "function/far.h"
#include <stdio.h>

/* Kernels over whole vectors and the others are two texts, compiled at the same time: the first need no
 * vectoriser, and what they lose without the later passes of -O2 is nothing that was measured. */
static const struct part {
    bool wide;
    const char *flags;
} parts[] = {
    { true,  MC_KERNEL_FLAGS " -O1 -fexpensive-optimizations -fgcse -fno-tree-vectorize" },
    { false, MC_KERNEL_FLAGS },
};
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
    snprintf(l->why, sizeof l->why, "%s", l->status < 0 ? mc_last_error() : "");
    return NULL;
}

/* All texts at once, each in a thread but for the last. */
static mc_status load_all(struct load *l, int n)
{
    pthread_t thread[NELEM(parts)];
    bool started[NELEM(parts)] = { false };
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

static void find_kernels(struct mc_code_unit *u, const struct part *part, struct mc_code *lib)
{
    const struct mc_program *p = &u->program;
    for (size_t i = 0; i < p->step.n && lib; i++) {
        const struct mc_kernel *k = p->step.at[i].kernel;
        char join[40];
        if (k && k->wide == part->wide) {
            void *fn = mc_code_symbol(lib, k->name);
            memcpy(&u->fn[i], &fn, sizeof fn);
            snprintf(join, sizeof join, "%s_join", k->name);
            fn = k->mode == KERNEL_FOLD ? mc_code_symbol(lib, join) : NULL;
            memcpy(&u->join[i], &fn, sizeof fn);
        }
    }
}

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

/* The kernels of one part as text; no text if there are none. */
static mc_status print_part(const struct mc_program *p, const struct part *part, const int *first, struct mc_kernel **k, struct mc_str *text)
{
    int n = 0;
    for (size_t i = 0; i < p->step.n; i++) {
        if (first[i] == (int)i && p->step.at[i].kernel->wide == part->wide) {
            k[n++] = p->step.at[i].kernel;
        }
    }
    if (n) {
        mc_render(text, &mc_dialect_c, n, k);
    }
    return text->bad ? MC_EMEMORY : MC_OK;
}

mc_status mc_compile_kernels(struct compiling *c)
{
    if (c->code->cuda) {
        double begun = mc_now();
        mc_status t = mc_cuda_enter(c->code->cuda);
        t = t < 0 ? t : mc_far_kernels(c->code);
        mc_cuda_leave(c->code->cuda);
        c->code->cc_seconds = mc_now() - begun;
        return t;
    }
    struct mc_program *p = &c->code->program;
    struct mc_kernel **k = mc_alloc((p->step.n + 1) * sizeof *k, "compile");
    struct load l[NELEM(parts)] = { 0 };
    struct mc_str source = { 0 };
    int n = 0, *first = mc_kernels_share(p);
    c->code->fn = mc_calloc(p->step.n + 1, sizeof *c->code->fn, "compile");
    c->code->join = mc_calloc(p->step.n + 1, sizeof *c->code->join, "compile");
    mc_status s = k && first && c->code->fn && c->code->join ? MC_OK : MC_EMEMORY;
    double start = mc_now();
    for (size_t i = 0; i < p->step.n; i++) {
        if (p->step.at[i].kernel) {
            p->step.at[i].kernel->wide = mc_kernel_wide(&mc_dialect_c, p->step.at[i].kernel);
        }
    }
    for (size_t i = 0; i < NELEM(parts) && s == MC_OK && c->mode != MODE_FAST_COMPILE; i++) {
        l[n].part = &parts[i];
        s = print_part(p, l[n].part, first, k, &l[n].text);
        if (s == MC_OK && l[n].text.n) {
            LOG(LOG_KERNEL, "%s", l[n].text.s);
            mc_str_add(&source, l[n++].text.s);
        }
    }
    if (s == MC_OK && n && mc_cc_present()) {
        s = load_all(l, n);
    }
    for (int i = 0; i < n; i++) {
        find_kernels(c->code, l[i].part, l[i].code);
        c->code->lib[i] = l[i].code;
    }
    for (size_t i = 0; i < NELEM(parts); i++) {
        mc_str_free(&l[i].text);
    }
    c->code->cc_seconds = mc_now() - start;
    for (size_t i = 0; i < p->step.n && s == MC_OK; i++) {
        if (p->step.at[i].kernel && !c->code->fn[i]) {
            p->step.at[i].reason = c->mode == MODE_FAST_COMPILE ? "FAST_COMPILE: the reference loops" : "no C compiler: the reference loops";
        }
    }
    s = source.bad && s == MC_OK ? MC_EMEMORY : s;
    c->code->source = source.s ? mc_str_take(&source) : mc_strdup("");
    mc_str_free(&source);
    mc_free(first);
    mc_free(k);
    return s < 0 ? s : c->code->source ? MC_OK : MC_EMEMORY;
}

/* function.c: makes, copies and frees functions.  Copies share the code unit, which is counted. */
#include "compile/compiling.h"
#include "schedule/schedule.h"
#include <stdlib.h>

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (struct mc_shared *const *)a, y = (uintptr_t) * (struct mc_shared *const *)b;
    return x < y ? -1 : x > y;
}

/* Collects the shared variables that are read or updated: sorted by address, each once, with a reference. */
static mc_status collect_shared(mc_function *f)
{
    const struct mc_program *p = &f->code->program;
    f->shared = mc_calloc(p->value.n + (size_t)p->nupdate + 1, sizeof *f->shared, "function");
    f->target = mc_calloc((size_t)p->nupdate + 1, sizeof *f->target, "function");
    if (!f->shared || !f->target) {
        return MC_EMEMORY;
    }
    int n = 0;
    for (size_t i = 0; i < p->value.n; i++) {
        if (p->value.at[i].kind == VALUE_SHARED) {
            f->shared[n++] = p->value.at[i].node->shared;
        }
    }
    for (int i = 0; i < p->nupdate; i++) {
        f->target[i] = p->shared[i];
        f->shared[n++] = p->shared[i];
    }
    qsort(f->shared, (size_t)n, sizeof *f->shared, by_address);
    for (int i = 0; i < n; i++) {
        if (!f->nshared || f->shared[f->nshared - 1] != f->shared[i]) {
            f->shared[f->nshared++] = mc_shared_ref(f->shared[i]);
        }
    }
    return MC_OK;
}

mc_function *mc_function_new(struct mc_code_unit *code, const char *name, int threads, bool profile)
{
    mc_function *f = mc_calloc(1, sizeof *f, "function");
    const struct mc_program *p = &code->program;
    if (!f) {
        return NULL;
    }
    size_t nkey = 1;
    for (int i = 0; i < p->ninput; i++) {
        nkey += 2 * MC_MAX_RANK + 64;
    }
    f->code = code;
    atomic_fetch_add(&code->refs, 1);
    pthread_mutex_init(&f->lock, NULL);
    f->name = mc_strdup(name ? name : "function");
    f->input = mc_calloc((size_t)p->ninput + 1, sizeof *f->input, "function");
    f->output = mc_calloc((size_t)p->noutput + 1, sizeof *f->output, "function");
    f->ptr = mc_calloc(p->value.n + 1, sizeof *f->ptr, "function");
    f->arg = mc_calloc((size_t)p->ninput + 1, sizeof *f->arg, "function");
    f->result = mc_calloc((size_t)p->noutput + 1, sizeof *f->result, "function");
    f->borrowed = mc_calloc((size_t)p->noutput + 1, sizeof *f->borrowed, "function");
    f->time = mc_calloc(p->step.n + 1, sizeof *f->time, "function");
    f->threads = mc_step_threads(threads);
    f->profile = profile;
    f->loop = code->loop ? mc_calloc(p->step.n + 1, sizeof *f->loop, "function") : NULL;
    for (size_t i = 0; f->loop && i < p->step.n; i++) {
        f->loop[i] = code->loop[i] ? mc_function_new(code->loop[i], "scan", threads, profile) : NULL;
        if (code->loop[i] && !f->loop[i]) {
            mc_function_free(f);
            return NULL;
        }
        if (f->loop[i]) {
            const struct mc_attr *a = p->step.at[i].node[0]->attr;
            f->loop[i]->is_body = true;
            f->loop[i]->first_constant = (int)(a[LOOP_SEQUENCES].ints[0] + a[LOOP_STATES].ints[0]);
        }
    }
    f->branch = code->branch ? mc_calloc(p->step.n + 1, sizeof *f->branch, "function") : NULL;
    for (size_t i = 0; f->branch && i < p->step.n; i++) {
        for (int side = 0; side < 2 && code->branch[i][0]; side++) {
            f->branch[i][side] = mc_function_new(code->branch[i][side], "ifelse", threads, false);
            if (!f->branch[i][side]) {
                mc_function_free(f);
                return NULL;
            }
        }
    }
    mc_status s = f->name && (f->loop || !code->loop) && (f->branch || !code->branch) && f->input &&
                          f->output && f->ptr && f->arg && f->result && f->borrowed && f->time
                      ? collect_shared(f)
                      : MC_EMEMORY;
    nkey += (size_t)f->nshared * 2 * MC_MAX_RANK;
    f->key = mc_alloc(nkey * sizeof *f->key, "function");
    s = s < 0                          ? s
        : !f->key                      ? MC_EMEMORY
        : code->backend->function_init ? code->backend->function_init(f)
                                       : MC_OK;
    if (s < 0) {
        mc_function_free(f);
        return NULL;
    }
    return f;
}

void mc_code_unit_drop_steps(struct mc_code_unit *u)
{
    for (int i = 0; u->words && i < u->nstep; i++) {
        mc_free(u->words[i].text);
        mc_free(u->words[i].name);
    }
    if (u->backend && u->backend->drop_kernels) {
        u->backend->drop_kernels(u);
    }
    for (int i = 0; u->loop && i < u->nstep; i++) {
        mc_code_unit_unref(u->loop[i]);
    }
    for (int i = 0; u->branch && i < u->nstep; i++) {
        mc_code_unit_unref(u->branch[i][0]);
        mc_code_unit_unref(u->branch[i][1]);
    }
    mc_free(u->loop);
    mc_free(u->branch);
    u->loop = NULL;
    u->branch = NULL;
    mc_free(u->words);
    mc_free(u->source);
    mc_program_free(&u->program);
    u->words = NULL, u->source = NULL;
}

void mc_code_unit_unref(struct mc_code_unit *u)
{
    if (!u || atomic_fetch_sub(&u->refs, 1) != 1) {
        return;
    }
    mc_code_unit_drop_steps(u);
    mc_free(u->warning);
    VEC_FREE(u->rewritten);
    VEC_FREE(u->twin);
    if (u->backend && u->device) {
        if (u->backend->code_free) {
            u->backend->code_free(u);
        }
    }
    mc_free(u->text);
    mc_graph_free(u->graph);
    mc_free(u);
}

void mc_memory_free(struct mc_function *f)
{
    if (f->arena && f->code->backend->arena_free) {
        f->code->backend->arena_free(f);
    } else {
        f->code->device->ops->free(f->code->device, f->arena);
    }
    f->arena = NULL;
    f->arena_size = 0;
}

void mc_function_free(mc_function *f)
{
    if (!f) {
        return;
    }
    while (f->plans) {
        struct mc_shape_plan *next = f->plans->next;
        mc_shape_plan_free(f, f->plans);
        f->plans = next;
    }
    for (size_t i = 0; f->loop && i < f->code->program.step.n; i++) {
        mc_function_free(f->loop[i]);
    }
    for (size_t i = 0; f->branch && i < f->code->program.step.n; i++) {
        mc_function_free(f->branch[i][0]);
        mc_function_free(f->branch[i][1]);
    }
    mc_free(f->loop);
    mc_free(f->branch);
    for (int i = 0; f->input && i < f->code->program.ninput; i++) {
        mc_free(f->input[i].name);
        mc_array_unref(&f->input[i].dflt);
    }
    for (int i = 0; f->borrowed && i < f->code->program.noutput; i++) {
        mc_array_unref(&f->borrowed[i]);
    }
    for (int i = 0; i < f->nshared; i++) {
        mc_shared_unref(&f->shared[i]);
    }
    pthread_mutex_destroy(&f->lock);
    mc_free(f->shared);
    mc_free(f->target);
    mc_free(f->name);
    mc_free(f->input);
    mc_free(f->output);
    mc_free(f->ptr);
    mc_free(f->key);
    mc_free(f->arg);
    mc_free(f->result);
    mc_free(f->borrowed);
    mc_free(f->time);
    mc_memory_free(f);
    if (f->code->backend->function_free) {
        f->code->backend->function_free(f);
    }
    mc_code_unit_unref(f->code);
    mc_free(f);
}

mc_function *mc_function_copy(mc_function *f, int share_updates)
{
    if (!f) {
        mc_fail(MC_EARG, "function_copy: the function is NULL");
        return NULL;
    }
    const struct mc_program *p = &f->code->program;
    mc_function *n = mc_function_new(f->code, f->name, f->threads, f->profile);
    for (int i = 0; n && i < p->ninput; i++) {
        n->input[i].has_default = f->input[i].has_default;
        n->input[i].dflt = mc_array_ref(f->input[i].dflt);
        if (!(n->input[i].name = mc_strdup(f->input[i].name))) {
            mc_function_free(n);
            return NULL;
        }
    }
    for (int i = 0; n && i < p->noutput; i++) {
        n->output[i] = f->output[i];
    }
    if (n) {
        n->skip_updates = !share_updates;
        n->traced = f->traced;
    }
    return n;
}


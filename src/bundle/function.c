/* function.c: one function of a bundle: its program, its inputs and results, its solvers. */
#include "bundle/bundle.h"
#include "compile/compiling.h"
#include "device/cpu/cpu.h"
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "inspect/profile.h"
#include "schedule/schedule.h"
#include <stdlib.h>

static void inputs(struct mc_wire *w, struct mc_function *f, struct mc_input_info *list, int n)
{
    if (f) { /* mc_function_set may change defaults */
        pthread_mutex_lock(&f->lock);
    }
    for (int i = 0; i < n && mc_wire_good(w); i++) {
        const char *name = f ? f->input[i].name : NULL;
        mc_wire_text(w, &name);
        list[i].name = (char *)name;
        list[i].has_default = mc_wire_bool(w, f && f->input[i].has_default);
        list[i].dflt = f ? f->input[i].dflt : NULL;
        mc_wire_array(w, &list[i].dflt);
        if (w->reading && mc_wire_good(w) && !name) {
            mc_wire_fail(w, "an input has no name");
        }
    }
    if (f) {
        pthread_mutex_unlock(&f->lock);
    }
}

static void outputs(struct mc_wire *w, const struct mc_function *f, struct mc_output_info *list,
                    const char **name, int n)
{
    for (int i = 0; i < n && mc_wire_good(w); i++) {
        name[i] = f && f->code->output_name ? f->code->output_name[i] : NULL;
        mc_wire_text(w, &name[i]);
        list[i].borrow = mc_wire_bool(w, f && f->output[i].borrow);
        list[i].on_device = mc_wire_bool(w, f && f->output[i].on_device);
    }
}

/* ---- solvers ---- */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct mc_chosen_solver *)a)->key, ((const struct mc_chosen_solver *)b)->key);
}

/* The solvers of a plan, and of the plans of its bodies. */
static bool collect_plan(const struct mc_function *f, const struct mc_shape_plan *p, struct mc_arena *a,
                         mc_chosen_list *list)
{
    bool good = true;
    for (int i = 0; i < (int)f->code->program.step.n && good; i++) {
        const struct mc_heavy *h = p->step[i].heavy;
        struct mc_loop_planned loop;
        good = (!h || !h->plan || mc_plan_chosen(h->plan, a, list)) &&
               (!h || !h->pooled || mc_plan_chosen(h->pooled, a, list)) &&
               (!mc_loop_planned(f, p, i, &loop) || collect_plan(loop.body, loop.plan, a, list));
        for (int side = 0; side < 2 && good; side++) {
            const struct mc_shape_plan *taken = mc_branch_planned(f, p, i, side);
            good = !taken || collect_plan(f->branch[i][side], taken, a, list);
        }
    }
    return good;
}

/* The solvers that the shape plans of f were made of, and those that its file had, each problem once. */
static bool collect_chosen(struct mc_function *f, struct mc_arena *a, mc_chosen_list *list)
{
    bool good = true;
    pthread_mutex_lock(&f->lock); /* calls make and drop plans */
    for (const struct mc_shape_plan *p = f->plans; p && good; p = p->next) {
        good = collect_plan(f, p, a, list);
    }
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; f->code->chosen && i < f->code->chosen->n; i++) { /* sizes that were not called yet */
        good = good && VEC_PUSH(*list, f->code->chosen->at[i]);
    }
    size_t n = 0;
    if (list->n) {
        qsort(list->at, list->n, sizeof *list->at, by_key);
    }
    for (size_t i = 0; i < list->n; i++) {
        if (!n || strcmp(list->at[n - 1].key, list->at[i].key) != 0) {
            list->at[n++] = list->at[i];
        }
    }
    list->n = n;
    return good;
}

static void chosen_solver(struct mc_wire *w, struct mc_chosen_solver *c)
{
    mc_wire_text(w, &c->key);
    mc_wire_text(w, &c->solver);
    mc_wire_bytes(w, &c->seconds, sizeof c->seconds);
    if (w->reading && mc_wire_good(w) && (!c->key || !c->solver || !(c->seconds >= 0))) {
        mc_wire_fail(w, "a solver has no name");
    }
}

/* What solvers were timed on: the GPU's name, or the processor and the number of threads. */
static mc_status timed_on(const struct mc_code_unit *u, uint64_t *place)
{
    struct mc_str name = { 0 };
    if (!u->backend->site) {
        *place = mc_hash_mix(mc_cpu_hash(), (uint64_t)mc_team_size());
        return MC_OK;
    }
    TRY(mc_device_enter(u->device));
    u->backend->site->name(&name);
    mc_device_leave(u->device);
    *place = mc_hash_str(name.s ? name.s : "");
    const bool good = !name.bad;
    mc_str_free(&name);
    return good ? MC_OK : MC_EMEMORY;
}

/* On other hardware, or for another number of threads, they are ignored. */
static void solvers(struct mc_wire *w, struct mc_function *f, struct mc_code_unit *u)
{
    struct mc_arena arena = { 0 };
    mc_chosen_list list = { 0 };
    if (f && !collect_chosen(f, &arena, &list)) {
        w->status = MC_EMEMORY;
    }
    uint64_t place = 0;
    w->status = mc_wire_good(w) ? timed_on(u, &place) : w->status;
    const uint64_t here = place;
    mc_wire_bytes(w, &place, sizeof place);
    struct mc_chosen chosen = { list.at, list.n };
    chosen.n = (size_t)mc_wire_int(w, (int)chosen.n, 0, INT32_MAX);
    chosen.at = mc_wire_list(w, chosen.at, (int64_t)chosen.n, sizeof *chosen.at);
    for (size_t i = 0; i < chosen.n && mc_wire_good(w); i++) {
        chosen_solver(w, &chosen.at[i]);
    }
    if (w->reading && mc_wire_good(w) && chosen.n && place == here) {
        qsort(chosen.at, chosen.n, sizeof *chosen.at, by_key);
        u->chosen = mc_arena_copy(w->arena, &chosen, sizeof chosen);
        w->status = u->chosen ? w->status : MC_EMEMORY;
    }
    VEC_FREE(list);
    mc_arena_free(&arena);
}

/* ---- what may be saved, and where it runs ---- */

static bool lacks_kernels(const struct mc_code_unit *u)
{
    bool lacks = u->uncompiled;
    for (size_t i = 0; i < u->program.step.n && u->mode != MODE_FAST_COMPILE; i++) {
        lacks |= u->program.step.at[i].kernel && !u->fn[i];
    }
    for (size_t i = 0; u->loop && i < u->program.step.n; i++) {
        lacks |= u->loop[i] && lacks_kernels(u->loop[i]);
    }
    for (size_t i = 0; u->branch && i < u->program.step.n; i++) {
        lacks |= u->branch[i][0] && (lacks_kernels(u->branch[i][0]) || lacks_kernels(u->branch[i][1]));
    }
    return lacks;
}

static bool has_ranks(const struct mc_code_unit *u)
{
    bool has = false;
    for (size_t i = 0; i < u->program.step.n; i++) {
        const struct mc_step *st = &u->program.step.at[i];
        has |= st->nnode && st->node[0]->op->form == FORM_RANKS;
        has |= u->loop && u->loop[i] && has_ranks(u->loop[i]);
        has |= u->branch && u->branch[i][0] && (has_ranks(u->branch[i][0]) || has_ranks(u->branch[i][1]));
    }
    return has;
}

static mc_status may_save(const struct mc_wire *w, const struct mc_function *f)
{
    const struct mc_code_unit *u = f->code;
    const bool host = u->backend == &mc_backend_cpu, elsewhere = u->backend && u->backend->images;
    const char *why = u->mode == MODE_DEBUG      ? "its mode is DEBUG; compile it in mode FAST_RUN"
                      : host && lacks_kernels(u) ? "it was compiled without a C compiler"
                      : has_ranks(u)             ? "ranks work together in it, and a file has none"
                                                 : NULL;
    if (!why && !host && !elsewhere) {
        return mc_fail(MC_EUNSUPPORTED, "%s: %s is for the device %s; compile it with the flag device=cpu",
                       w->what, f->name, u->device->name);
    }
    return why ? mc_fail(MC_EUNSUPPORTED, "%s: %s cannot be saved: %s", w->what, f->name, why) : MC_OK;
}

/* The device: the one that the flag names, if it is of the backend, else the backend's first. */
static mc_status start_device(struct mc_wire *w, struct mc_code_unit *u, const char *name,
                              struct mc_images *images)
{
    const char *flag = mc_flag_text(FLAG_device);
    u->backend = mc_backend_of(name);
    u->device = !u->backend ? NULL : u->backend->start(mc_backend_of(flag) == u->backend ? flag : name);
    if (!u->device) {
        return mc_fail_again("%s: ", w->what);
    }
    if (u->backend == &mc_backend_cpu) {
        return MC_OK;
    }
    if (!u->backend->image_rank) {
        return mc_fail(MC_EUNSUPPORTED, "%s is for the device %s", w->what, name);
    }
    u->images = mc_images_ref(images);
    return mc_bundle_fits(images, u, w->what);
}

static mc_status start_code(struct mc_wire *w, struct mc_code_unit *u)
{
    u->graph = u->program.graph = mc_graph_make(&mc_op_language);
    w->arena = &u->program.arena;
    mc_custom_install();
    return u->graph && u->device ? MC_OK : mc_last_status();
}

/* Texts and names of steps are made on first use. */
static void start_words(struct mc_wire *w, struct mc_code_unit *u)
{
    u->nstep = (int)u->program.step.n;
    u->words = mc_calloc(u->program.step.n + 1, sizeof *u->words, "bundle");
    w->status = u->words ? w->status : MC_EMEMORY;
}

/* What the function has beside its code.  NULL: error, which w has. */
static mc_function *finish(struct mc_wire *w, struct mc_code_unit *u, const char *name, int threads,
                           struct mc_input_info *in, const struct mc_output_info *out)
{
    bool traced = false;
    if (mc_trace_open(&traced) < 0) {
        w->status = mc_last_status();
        return NULL;
    }
    mc_function *f = mc_function_new(u, name, threads, mc_flag_int(FLAG_profile) || traced);
    if (f) {
        f->traced = traced;
    }
    for (int i = 0; f && i < u->program.ninput; i++) {
        f->input[i] = (struct mc_input_info){ mc_strdup(in[i].name), in[i].has_default, in[i].dflt };
        in[i].dflt = NULL;
        if (!f->input[i].name) {
            w->status = MC_EMEMORY;
        }
    }
    for (int i = 0; f && i < u->program.noutput; i++) {
        f->output[i] = out[i];
    }
    w->status = f ? w->status : mc_last_status();
    if (f && !mc_wire_good(w)) {
        mc_function_free(f);
        f = NULL;
    }
    return f;
}

/* ---- bodies ---- */

static bool is_item(const mc_node *n, const mc_node *of, int i)
{
    return of->nout == 1 ? n == of : n->op == &mc_op_item && n->in[0] == of && n->item == i;
}

/* Does the program compute body `which` of the loop or branch that the step is? */
static bool fits(const struct mc_program *outer, const struct mc_step *st, int which,
                 const struct mc_program *inner)
{
    const mc_node *n = st->node[0];
    const struct mc_body *b = n->attr[which].body;
    bool good = st->nsrc == n->nin && st->ndst == n->nout && inner->ninput == b->nin &&
                inner->noutput == b->nout && !inner->nupdate && !inner->dynamic;
    for (int i = 0; i < n->nin && good; i++) {
        good = outer->value.at[st->src[i]].node == n->in[i];
    }
    for (int i = 0; i < n->nout && good; i++) {
        good = is_item(outer->value.at[st->dst[i]].node, n, i);
    }
    for (int i = 0; i < b->nin && good; i++) {
        good = mc_type_equal(&inner->input[i]->type, &b->in[i]->type) && (b->key[i] || !inner->key_input[i]);
    }
    for (size_t v = 0; v < inner->value.n && good; v++) {
        good = inner->value.at[v].kind != VALUE_SHARED;
    }
    return good;
}

static void code(struct mc_wire *w, const struct mc_function *f, struct mc_code_unit *u,
                 const struct mc_bundle_shared *s, const char *isa);

/* Reading: body `which` of step i of `outer`. */
static void read_body(struct mc_wire *w, const struct mc_code_unit *outer, int i, int which,
                      struct mc_code_unit **at, const struct mc_bundle_shared *s)
{
    struct mc_arena *before = w->arena;
    struct mc_code_unit *u = *at = mc_calloc(1, sizeof *u, "bundle");
    if (!u) {
        w->status = MC_EMEMORY;
        return;
    }
    u->refs = 1;
    u->mode = outer->mode;
    u->backend = outer->backend;
    u->device = outer->device;
    u->images = mc_images_ref(outer->images);
    w->status = start_code(w, u);
    if (mc_wire_good(w)) {
        code(w, NULL, u, s, NULL);
    }
    if (mc_wire_good(w) && !fits(&outer->program, &outer->program.step.at[i], which, &u->program)) {
        mc_wire_fail(w, "a loop or an ifelse has another body than its steps");
    }
    w->arena = before;
}

/* The code of one body; of: the function that it is, or NULL while reading. */
static void body(struct mc_wire *w, const struct mc_function *of, struct mc_code_unit *outer, int i,
                 int which, struct mc_code_unit **at, const struct mc_bundle_shared *s, const char *isa)
{
    const bool loop = outer->program.step.at[i].node[0]->op->form == FORM_LOOP;
    if (!mc_wire_good(w) || !mc_wire_enter(w, loop)) {
        return;
    }
    if (of) {
        code(w, of, of->code, s, isa);
    } else {
        read_body(w, outer, i, which, at, s);
    }
    mc_wire_leave(w, loop);
}

/* Reading: the lists that have a place for each body. */
static bool have_lists(struct mc_code_unit *u, bool loop)
{
    const size_t n = u->program.step.n + 1;
    if (loop) {
        u->loop = u->loop ? u->loop : mc_calloc(n, sizeof *u->loop, "bundle");
        return u->loop;
    }
    u->branch = u->branch ? u->branch : mc_calloc(n, sizeof *u->branch, "bundle");
    return u->branch;
}

/* The code of the bodies of loops and branches, but of those that the reference computes.  The attribute
 * BRANCH_TRUE is the body of the side `true`. */
static void bodies(struct mc_wire *w, const struct mc_function *f, struct mc_code_unit *u,
                   const struct mc_bundle_shared *s, const char *isa)
{
    for (int i = 0; i < (int)u->program.step.n && mc_wire_good(w); i++) {
        const struct mc_step *st = &u->program.step.at[i];
        const int nbody = st->kind == STEP_HOST ? mc_bodies_of(st->node[0]->op) : 0;
        const bool loop = nbody == 1;
        const bool have = f && (loop ? f->loop && f->loop[i] : nbody && f->branch && f->branch[i][0]);
        if (!nbody || !mc_wire_bool(w, have)) {
            continue;
        }
        if (w->reading && !have_lists(u, loop)) {
            w->status = MC_EMEMORY;
        }
        if (loop) {
            body(w, f ? f->loop[i] : NULL, u, i, LOOP_BODY, u->loop ? &u->loop[i] : NULL, s, isa);
        }
        for (int side = 1; side >= 0 && !loop; side--) {
            body(w, f ? f->branch[i][side] : NULL, u, i, side ? BRANCH_TRUE : BRANCH_FALSE,
                 u->branch ? &u->branch[i][side] : NULL, s, isa);
        }
    }
}

/* Program, text, kernels, bodies.  f NULL: reading. */
static void code(struct mc_wire *w, const struct mc_function *f, struct mc_code_unit *u,
                 const struct mc_bundle_shared *s, const char *isa)
{
    mc_wire_program(w, &u->program, s, u->backend == &mc_backend_cpu);
    const char *text = u->text;
    mc_wire_text(w, &text);
    if (w->reading && mc_wire_good(w)) {
        u->text = mc_strdup(text ? text : "");
        w->status = u->text ? w->status : MC_EMEMORY;
        start_words(w, u);
    }
    if (mc_wire_good(w)) {
        mc_wire_kernels(w, f, u, isa); /* on a GPU it sets the source */
        if (w->reading && mc_wire_good(w) && !u->source) {
            u->source = mc_strdup("");
            w->status = u->source ? w->status : MC_EMEMORY;
        }
        bodies(w, f, u, s, isa);
    }
}

/* ---- functions ---- */

static void function(struct mc_wire *w, mc_function **at, struct mc_code_unit *u,
                     const struct mc_bundle_shared *s, const char *isa)
{
    mc_function *f = *at;
    const char *name = f ? f->name : NULL;
    const int all = mc_step_threads(0);
    mc_wire_text(w, &name);
    const int threads = mc_wire_int(w, f && f->threads != all ? f->threads : 0, 0, INT32_MAX);
    MC_WIRE_INT(w, u->mode, MODE_FAST_RUN, MODE_NANGUARD);
    const bool skips = mc_wire_bool(w, f && f->skip_updates);
    if (u->mode == MODE_DEBUG) {
        mc_wire_fail(w, "its mode is DEBUG");
    }
    code(w, f, u, s, isa);
    const int ninput = u->program.ninput, noutput = u->program.noutput;
    struct mc_input_info *in = mc_calloc((size_t)ninput + 1, sizeof *in, "bundle");
    struct mc_output_info *out = mc_calloc((size_t)noutput + 1, sizeof *out, "bundle");
    const char **names = f ? mc_calloc((size_t)noutput + 1, sizeof *names, "bundle")
                           : mc_arena_alloc(w->arena, ((size_t)noutput + 1) * sizeof *names);
    if (!in || !out || !names) {
        w->status = MC_EMEMORY;
    } else {
        inputs(w, f, in, ninput);
        outputs(w, f, out, names, noutput);
        solvers(w, f, u);
    }
    if (w->reading && mc_wire_good(w)) {
        u->output_name = names;
        *at = finish(w, u, name, threads, in, out);
        if (*at) {
            (*at)->skip_updates = skips;
        }
    }
    for (int i = 0; w->reading && in && i < ninput; i++) {
        mc_array_unref(&in[i].dflt);
    }
    if (f) {
        mc_free(names);
    }
    mc_free(in);
    mc_free(out);
}

void mc_wire_function(struct mc_wire *w, mc_function **f, const struct mc_bundle_shared *s, const char *isa)
{
    const char *device = NULL;
    if (!w->reading) {
        w->status = may_save(w, *f);
        if (mc_wire_good(w)) {
            device = (*f)->code->backend->name;
            mc_wire_text(w, &device);
            function(w, f, (*f)->code, s, isa);
        }
        return;
    }
    mc_wire_text(w, &device);
    if (mc_wire_good(w) && !device) {
        mc_wire_fail(w, "a function has no device");
    }
    if (!mc_wire_good(w)) {
        return;
    }
    struct mc_code_unit *u = mc_calloc(1, sizeof *u, "bundle");
    w->status = u ? w->status : MC_EMEMORY;
    if (u) {
        u->refs = 1;
        w->status = start_device(w, u, device, s->images);
        w->status = mc_wire_good(w) ? start_code(w, u) : w->status;
        if (mc_wire_good(w)) {
            function(w, f, u, s, NULL);
        }
        mc_code_unit_unref(u);
    }
}

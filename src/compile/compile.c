/* compile.c: makes a function from a spec, by the passes of one table. */
#include "compile/compiling.h"
#include "exec/backend.h"
#include "inspect/profile.h"
#include <stdatomic.h>

static mc_status find_device(struct compiling *c);
static mc_status copy_graph(struct compiling *c);
static mc_status simplify_loops(struct compiling *c);
static mc_status make_branches(struct compiling *c);
static mc_status rewrite(struct compiling *c);
static mc_status layout(struct compiling *c);
static mc_status tie_bits(struct compiling *c);
static mc_status keep_text(struct compiling *c);
static mc_status lower(struct compiling *c);
static mc_status describe(struct compiling *c);
static mc_status kernels(struct compiling *c);
static mc_status loops(struct compiling *c);
static mc_status branches(struct compiling *c);
static mc_status make_function(struct compiling *c);

static const struct { const char *name; mc_status (*run)(struct compiling *c); } passes[] = {
    { "inputs",          mc_spec_inputs },
    { "outputs",         mc_spec_outputs },
    { "updates",         mc_spec_updates },
    { "default updates", mc_spec_default_updates },
    { "givens",          mc_spec_givens },
    { "unused inputs",   mc_spec_unused },
    { "device",          find_device },
    { "copy",            copy_graph },       /* from here on the user's graph is not changed */
    { "simplify loops",  simplify_loops },
    { "make branches",   make_branches },
    { "rewrite",         rewrite },
    { "layout",          layout },
    { "tie bits",        tie_bits },
    { "text",            keep_text },
    { "lower",           lower },
    { "describe",        describe },
    { "kernels",         kernels },
    { "loops",           loops },
    { "branches",        branches },
    { "function",        make_function },
};

static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG", "NANGUARD" };

/* Stores the error in the user's graph as well. */
static mc_status fail_at(struct compiling *c, mc_status code)
{
    if (c->user->status == MC_OK) {
        char text[1600];
        mc_snprintf(text, sizeof text, "%s", mc_last_error());
        mc_node_fail(c->user, code, "%s", text);
    }
    return code;
}

/* ---- the device ---- */

static mc_status find_device(struct compiling *c)
{
    const char *name = mc_flag_text(FLAG_device);
    c->code->backend = mc_backend_of(name);
    c->code->device = c->code->backend ? c->code->backend->start(name) : NULL;
    return c->code->device ? MC_OK : mc_last_status();
}

/* ---- the function's own graph ---- */

/* Transfers are dropped from the copy: the function places its values itself.  mc_spec_outputs has recorded
 * which outputs stay on the device. */
static bool is_transfer(const mc_node *x)
{
    return x->nin == 1 && x->op->flags & OP_TRANSFER;
}

/* spec->fixed_sizes: the node has the sizes of the value.  1 stays open, since a size that is known to be 1
 * broadcasts, and so does 0, which marks a value that is yet to be set. */
static mc_node *copy_shared(struct compiling *c, struct mc_shared *s)
{
    mc_node *n = mc_shared_node(c->g, s);
    if (c->spec->fixed_sizes && !mc_is_error(n)) {
        pthread_mutex_lock(&s->lock);
        for (int i = 0; i < n->type.rank && !s->varies; i++) {
            n->type.dims[i] = s->value->dims[i] > 1 ? s->value->dims[i] : n->type.dims[i];
        }
        pthread_mutex_unlock(&s->lock);
    }
    return n;
}

static mc_node *copy_node(struct compiling *c, const mc_node *x, mc_node **in)
{
    mc_node *n = NULL;
    mc_here(x->file, x->line);
    if (x->op == &mc_op_input) {
        n = mc_input_sized(c->g, x->name, x->type.dtype, x->type.rank, x->type.dims);
    } else if (is_transfer(x)) {
        return in[0];
    } else if (mc_is_const(x)) {
        n = mc_node_const(c->g, mc_array_ref(x->value), false);
    } else if (x->shared) {
        n = copy_shared(c, x->shared);
    } else if (x->op == &mc_op_item) {
        n = mc_item(in[0], x->item);
    } else {
        n = mc_node_make(c->g, x->op, x->nin, in, x->attr);
    }
    if (!mc_is_error(n) && x->label && !n->label) {
        n->label = mc_label_copy(c->g, x->label);
    }
    if (!mc_is_error(n) && x->name && !n->name) {
        n->name = mc_arena_str(&c->g->arena, x->name, strlen(x->name));
    }
    return n;
}

static mc_status copy_graph(struct compiling *c)
{
    size_t n, count = 0, widest = 1;
    mc_node **all = mc_spec_results(c, &n);
    mc_node **list = all ? mc_graph_reach((int)n, all, &count) : NULL;
    mc_node **map = mc_calloc(c->user->nodes.n + 1, sizeof *map, "compile"), **in = NULL;
    for (size_t i = 0; list && i < count; i++) {
        widest = MC_MAX(widest, (size_t)list[i]->nin);
    }
    in = mc_alloc(widest * sizeof *in, "compile");
    c->g = mc_graph_new();
    mc_status s = all && list && map && in && c->g ? MC_OK : MC_EMEMORY;
    s = s < 0 ? s : mc_custom_share(c->g, c->user);
    s = s < 0 ? s : mc_rewrite_share(c->g, c->user);
    for (size_t i = 0; i < c->in.n && s == MC_OK; i++) {
        map[c->in.at[i]->id] = copy_node(c, c->in.at[i], NULL);
        c->in.at[i] = map[c->in.at[i]->id];
        s = mc_is_error(c->in.at[i]) ? c->g->status : MC_OK;
    }
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        if (map[list[i]->id]) {
            continue;
        }
        for (int k = 0; k < list[i]->nin; k++) {
            in[k] = map[list[i]->in[k]->id];
        }
        map[list[i]->id] = copy_node(c, list[i], in);
        s = mc_is_error(map[list[i]->id]) ? (c->g->status < 0 ? c->g->status : MC_EMEMORY) : MC_OK;
    }
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        all[i] = map[all[i]->id];
    }
    if (s == MC_OK) {
        mc_spec_put_results(c, all);
        c->code->nodes_before = count;
    }
    mc_here(c->file, c->line);
    mc_free(all);
    mc_free(list);
    mc_free(map);
    mc_free(in);
    return s;
}

/* ---- passes over the results: outputs, then updates ---- */

static mc_status simplify_loops(struct compiling *c)
{
    size_t n;
    mc_node **all = mc_spec_results(c, &n);
    const bool whole = c->mode != MODE_FAST_COMPILE && !mc_stage_off("loops", c->spec->excluding);
    mc_status s = all ? mc_loops_simplify(c->g, (int)n, all, whole) : MC_EMEMORY;
    if (s == MC_OK) {
        mc_spec_put_results(c, all);
    }
    mc_free(all);
    return s;
}

/* leaves: no ifelse, except in bodies, whose own compiling makes them branches */
static mc_status make_branches(struct compiling *c)
{
    size_t n;
    mc_node **all = mc_spec_results(c, &n);
    mc_status s = all ? mc_branches_make(c->g, (int)n, all) : MC_EMEMORY;
    if (s == MC_OK) {
        mc_spec_put_results(c, all);
    }
    mc_free(all);
    return s;
}

static mc_status rewrite(struct compiling *c)
{
    size_t n;
    mc_node **all = mc_spec_results(c, &n);
    double start = mc_now();
    struct mc_rewrite how = { .including = c->spec->including, .excluding = c->spec->excluding,
                              .strict = mc_flag_int(FLAG_strict_math) != 0,
                              .level = c->mode == MODE_FAST_COMPILE ? REWRITE_FAST : REWRITE_FULL,
                              .watch = c->mode == MODE_DEBUG ? mc_debug_note : NULL, .arg = c };
    mc_status s = all ? mc_rewrite(c->g, (int)n, all, &how) : MC_EMEMORY;
    if (s == MC_OK) {
        mc_spec_put_results(c, all);
    }
    c->code->rewrite_seconds = mc_now() - start;
    mc_free(all);
    return s;
}

/* requires: rewritten.  leaves: the same values; convolutions, and what is between them, in the order of axes
 * that is estimated to be cheapest.  The device makes the estimates, so the thread enters it. */
static mc_status layout(struct compiling *c)
{
    if (c->mode == MODE_FAST_COMPILE || mc_stage_off("layout", c->spec->excluding)) {
        return MC_OK;
    }
    TRY(mc_device_enter(c->code->device));
    size_t n;
    mc_node **all = mc_spec_results(c, &n);
    mc_status s = all ? mc_lower_layout(c->g, (int)n, all, &c->code->backend->layouts) : MC_EMEMORY;
    mc_device_leave(c->code->device);
    if (s == MC_OK) {
        mc_spec_put_results(c, all);
    }
    mc_free(all);
    return s;
}

/* requires: the order of axes is decided.  leaves: the same values; some poolings keep bits, not cells. */
static mc_status tie_bits(struct compiling *c)
{
    if (c->mode == MODE_FAST_COMPILE || !c->code->backend->tie_bits) {
        return MC_OK;
    }
    size_t n;
    mc_node **all = mc_spec_results(c, &n);
    mc_status s = all ? mc_lower_tie_bits(c->g, (int)n, all) : MC_EMEMORY;
    if (s == MC_OK) {
        mc_spec_put_results(c, all);
    }
    mc_free(all);
    return s;
}

/* requires: no pass before "lower" changes the graph.  leaves: the graph's text and number of nodes; in DEBUG
 * mode, float64 twins of the nodes that rules replaced. */
static mc_status keep_text(struct compiling *c)
{
    size_t n;
    mc_node **all = mc_spec_results(c, &n);
    mc_node **left = all ? mc_graph_reach((int)n, all, &c->code->nodes_after) : NULL;
    c->code->text = left ? mc_graph_text(c->g, (int)n, all) : NULL;
    mc_status s = c->code->text ? MC_OK : MC_EMEMORY;
    s = s == MC_OK && c->mode == MODE_DEBUG ? mc_debug_widen(c) : s;
    c->code->check_rules = c->mode == MODE_DEBUG ? mc_debug_rewrites : NULL;
    mc_free(left);
    mc_free(all);
    return s;
}

static mc_status lower(struct compiling *c)
{
    const struct mc_backend *b = c->code->backend;
    bool whole = c->mode != MODE_FAST_COMPILE && !c->code->uncompiled &&
                 (!b->may_compile || b->may_compile()) && !mc_stage_off("fusion", c->spec->excluding);
    enum mc_fusing fuse = whole ? b->fuses : FUSE_NOTHING;
    const struct mc_lower_how how = { fuse, c->mode == MODE_DEBUG, b->starts && !c->user->of_body };
    mc_status s = mc_program_make(&c->code->program, c->g, (int)c->in.n, c->in.at, (int)c->out.n, c->out.at,
                                  (int)c->target.n, c->target.at, c->update.at, &how);
    c->code->graph = c->g;
    c->g = NULL; /* owned by the code unit now */
    const struct mc_backend *other = s == MC_OK && c->code->program.dynamic ? b->grows() : b;
    if (other != b) {
        c->code->backend = other;
        c->code->device = other ? other->start(other->name) : NULL;
        return c->code->device ? MC_OK : mc_last_status();
    }
    return s;
}

/* Allocates the table of step texts, which are made on demand; the log channel `kernel` prints all. */
static mc_status describe(struct compiling *c)
{
    const struct mc_program *p = &c->code->program;
    c->code->nstep = (int)p->step.n;
    c->code->words = mc_calloc(p->step.n + 1, sizeof *c->code->words, "compile");
    for (int i = 0; c->code->words && i < c->code->nstep && mc_logs(LOG_KERNEL); i++) {
        LOG(LOG_KERNEL, "step %d: %s", i, mc_step_text(c->code, i));
    }
    return c->code->words ? MC_OK : MC_EMEMORY;
}

static mc_status compile_kernels(struct compiling *c)
{
    double start = mc_now();
    TRY(mc_device_enter(c->code->device));
    mc_status s = c->code->backend->kernels(c->code);
    mc_device_leave(c->code->device);
    c->code->cc_seconds = mc_now() - start;
    return s;
}

/* Counts the kernels that run as reference loops because there is no compiler.  The warning is kept with the
 * function, and logged once a process. */
static mc_status note_missing(struct compiling *c)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    const struct mc_program *p = &c->code->program;
    struct mc_str out = { 0 };
    int slow = 0, kernels = 0;
    for (size_t i = 0; i < p->step.n; i++) {
        kernels += p->step.at[i].kernel != NULL;
        slow += p->step.at[i].kernel && strcmp(p->step.at[i].reason, mc_no_compiler) == 0;
    }
    if (!slow || !c->code->backend->compiler_missing) {
        return MC_OK;
    }
    mc_str_addf(&out, "%d of %d kernels run as reference loops, several times slower than compiled ones: %s",
                slow, kernels, c->code->backend->compiler_missing());
    c->code->warning = mc_str_take(&out);
    if (c->code->warning && !atomic_flag_test_and_set(&warned)) {
        LOG(LOG_WARN, "%s: %s", c->spec->name ? c->spec->name : "a function", c->code->warning);
    }
    return c->code->warning ? MC_OK : MC_EMEMORY;
}

/* Without a compiler, kernels from the cache are used.  If one is not there, the program is made again
 * without fusion, so that solvers and not the reference do the heavy work. */
static mc_status kernels(struct compiling *c)
{
    bool clean = mc_last_status() == MC_OK;
    mc_status s = compile_kernels(c);
    if (s != MC_ECOMPILE || !c->code->backend->has_compiler || c->code->backend->has_compiler()) {
        return s < 0 ? s : note_missing(c);
    }
    if (clean) {
        mc_clear_error();
    }
    mc_code_unit_drop_steps(c->code);
    c->g = c->code->graph;
    c->code->graph = NULL;
    c->code->uncompiled = true;
    TRY(lower(c));
    TRY(describe(c));
    TRY(compile_kernels(c));
    return note_missing(c);
}

/* ---- loops and branches ---- */

/* Compiles a body as a function over nodes.  The body itself does not change: the pipeline reads a copy.
 * *unit NULL: sizes depend on data, and the reference computes the body. */
static mc_status compile_body(struct compiling *c, const struct mc_body *b, const char *name,
                              struct mc_code_unit **unit)
{
    const struct mc_body *own = mc_body_make(b->graph, b->nin, b->in, b->nout, b->out);
    if (!own) {
        return mc_last_status();
    }
    const mc_spec spec = { .name = name,
                           .input = own->in,
                           .ninput = own->nin,
                           .output = own->out,
                           .noutput = own->nout,
                           .mode = modes[c->mode],
                           .including = c->spec->including,
                           .excluding = c->spec->excluding,
                           .on_unused = "ignore",
                           .no_default_updates = 1,
                           .threads = c->spec->threads };
    mc_status s = mc_rewrite_share(own->graph, c->user); /* the user's rules hold in bodies too */
    mc_function *f = s == MC_OK ? mc_compile_at(own->graph, &spec, NULL, 0) : NULL;
    s = f ? MC_OK : mc_last_status();
    if (f && !f->code->program.dynamic && f->code->backend == c->code->backend) {
        *unit = f->code;
        atomic_fetch_add(&f->code->refs, 1);
    }
    mc_function_free(f);
    mc_body_unref(own);
    mc_here(c->file, c->line);
    return s;
}

/* given: the number of inputs that change from step to step */
static mc_status loop(struct compiling *c, const struct mc_body *b, int given, struct mc_code_unit **unit)
{
    bool sizes = false;
    for (int i = 0; i < given; i++) {
        sizes |= b->key[i];
    }
    return sizes ? MC_OK : compile_body(c, b, "scan", unit);
}

/* leaves: a code unit for each loop whose body the backend can compile */
static mc_status loops(struct compiling *c)
{
    const struct mc_program *p = &c->code->program;
    for (size_t i = 0; i < p->step.n && c->code->backend->zero; i++) {
        const struct mc_step *st = &p->step.at[i];
        if (st->kind != STEP_HOST || st->node[0]->op->form != FORM_LOOP) {
            continue;
        }
        c->code->loop = c->code->loop ? c->code->loop
                                      : mc_calloc(p->step.n + 1, sizeof *c->code->loop, "compile");
        const struct mc_attr *a = st->node[0]->attr;
        const int given = (int)(a[LOOP_SEQUENCES].ints[0] + a[LOOP_STATES].ints[0]);
        TRY(c->code->loop ? loop(c, a[LOOP_BODY].body, given, &c->code->loop[i]) : MC_EMEMORY);
        if (c->code->loop[i]) {
            c->code->program.step.at[i].reason = "";
        }
    }
    return MC_OK;
}

static mc_status branch(struct compiling *c, const struct mc_attr *attr, struct mc_code_unit **unit)
{
    TRY(compile_body(c, attr[BRANCH_TRUE].body, "ifelse", &unit[true]));
    TRY(compile_body(c, attr[BRANCH_FALSE].body, "ifelse", &unit[false]));
    for (int side = 0; side < 2 && !(unit[0] && unit[1]); side++) { /* both or none */
        mc_code_unit_unref(unit[side]);
        unit[side] = NULL;
    }
    return MC_OK;
}

/* leaves: two code units for each branch whose bodies the backend can compile */
static mc_status branches(struct compiling *c)
{
    const struct mc_program *p = &c->code->program;
    for (size_t i = 0; i < p->step.n && c->code->backend->zero; i++) {
        const struct mc_step *st = &p->step.at[i];
        if (st->kind != STEP_HOST || st->node[0]->op->form != FORM_BRANCH) {
            continue;
        }
        c->code->branch = c->code->branch ? c->code->branch
                                          : mc_calloc(p->step.n + 1, sizeof *c->code->branch, "compile");
        TRY(c->code->branch ? branch(c, st->node[0]->attr, c->code->branch[i]) : MC_EMEMORY);
        if (c->code->branch[i][0]) {
            c->code->program.step.at[i].reason = "";
        }
    }
    return MC_OK;
}

/* ---- the function ---- */

static mc_status make_function(struct compiling *c)
{
    bool traced;
    TRY(mc_trace_open(&traced));
    c->f = mc_function_new(c->code, c->spec->name, c->spec->threads,
                           c->spec->profile || mc_flag_int(FLAG_profile) || traced);
    if (!c->f) {
        return mc_last_status();
    }
    c->f->traced = traced;
    for (size_t i = 0; i < c->inputs.n; i++) {
        c->f->input[i].name = mc_strdup(c->inputs.at[i].name);
        if (!c->f->input[i].name) {
            return MC_EMEMORY;
        }
        if (c->inputs.at[i].has_default) {
            if (c->in.at[i]->type.rank) {
                return mc_fail(
                    MC_ESHAPE,
                    "compile: inputs: '%s' has rank %d; only a scalar can have a number as default",
                    c->inputs.at[i].name, c->in.at[i]->type.rank);
            }
            c->f->input[i].has_default = true;
            c->f->input[i].dflt = mc_array_scalar(c->in.at[i]->type.dtype, c->inputs.at[i].dflt);
            if (!c->f->input[i].dflt) {
                return mc_last_status();
            }
        }
    }
    const char **name = c->code->output_name = mc_arena_alloc(&c->code->program.arena,
                                                              (c->out.n + 1) * sizeof *name);
    if (!name) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < c->out.n; i++) {
        name[i] = c->out_name.at[i]
                      ? mc_arena_str(&c->code->program.arena, c->out_name.at[i], strlen(c->out_name.at[i]))
                      : NULL;
        if (c->out_name.at[i] && !name[i]) {
            return MC_EMEMORY;
        }
        c->f->output[i].borrow = c->borrow.at[i];
        c->f->output[i].on_device = c->stays.at[i];
    }
    return MC_OK;
}

static mc_status known_words(struct compiling *c)
{
    TRY(mc_rewrite_words(c->user, "including", c->spec->including));
    TRY(mc_rewrite_words(c->user, "excluding", c->spec->excluding));
    TRY(mc_rewrite_words(c->user, "the flag rewrite.including",
                         c->spec->including ? NULL : mc_flag_text(FLAG_including)));
    return mc_rewrite_words(c->user, "the flag rewrite.excluding",
                            c->spec->excluding ? NULL : mc_flag_text(FLAG_excluding));
}

static mc_status find_mode(struct compiling *c)
{
    const char *word = c->spec->mode ? c->spec->mode : mc_flag_text(FLAG_mode);
    for (size_t i = 0; i < NELEM(modes); i++) {
        if (strcmp(word, modes[i]) == 0) {
            c->mode = (enum mc_mode)i;
            return MC_OK;
        }
    }
    const char *near = mc_near_miss(word, modes, NELEM(modes));
    return mc_fail(MC_EARG, "compile: unknown mode '%s'%s%s%s", word,
                   near ? "; did you mean '" : "; expected FAST_RUN, FAST_COMPILE, DEBUG or NANGUARD",
                   near ? near : "", near ? "'?" : "");
}

static void let_go(struct compiling *c)
{
    mc_named_free(c->inputs.at, (int)c->inputs.n);
    mc_named_free(c->outputs, c->noutputs);
    VEC_FREE(c->in);
    VEC_FREE(c->out);
    VEC_FREE(c->out_name);
    VEC_FREE(c->update);
    VEC_FREE(c->target);
    VEC_FREE(c->borrow);
    VEC_FREE(c->stays);
    mc_graph_free(c->g);
    mc_code_unit_unref(c->code);
}

mc_function *mc_compile_at(mc_graph *g, const mc_spec *spec, const char *file, int line)
{
    if (!g || !spec) {
        mc_fail(MC_EARG, "compile: the %s is NULL", g ? "spec" : "graph");
        return NULL;
    }
    struct compiling c = { .user = g, .spec = spec, .file = file, .line = line };
    double start = mc_now();
    mc_here(file, line);
    mc_custom_install();
    mc_status s = mc_flags_status();
    if (s == MC_OK && g->status < 0) {
        s = mc_fail(g->status, "%s", mc_error(g));
    }
    s = s < 0 ? s : find_mode(&c);
    s = s < 0 ? s : known_words(&c);
    c.code = s < 0 ? NULL : mc_calloc(1, sizeof *c.code, "function");
    s = s < 0 || c.code ? s : MC_EMEMORY;
    if (c.code) {
        c.code->refs = 1;
        c.code->mode = c.mode;
    }
    for (size_t i = 0; i < NELEM(passes) && s == MC_OK; i++) {
        s = passes[i].run(&c);
        LOG(LOG_TIME, "%s: %s done at %.3f ms", spec->name ? spec->name : "function", passes[i].name,
            (mc_now() - start) * 1e3);
    }
    if (s < 0) {
        fail_at(&c, s);
        mc_function_free(c.f);
        c.f = NULL;
    } else {
        c.code->compile_seconds = mc_now() - start;
    }
    let_go(&c);
    return c.f;
}

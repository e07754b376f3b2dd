/* compile.c: from a spec to a function: one array of passes that reads as prose. */
#include "function/function.h"
#include "grad/grad.h"
#include <stdlib.h>

/* What is known of a function while it is made. */
struct compiling {
    mc_graph *user;                 /* the caller's graph */
    const struct mc_spec *spec;
    enum mc_mode mode;
    VEC(struct mc_named) inputs, outputs; /* of the text parts; nodes of the lists are appended */
    VEC(mc_node *) in, out, update;
    VEC(struct mc_shared *) target;
    VEC(bool) borrow;
    mc_graph *g;                    /* the function's own */
    mc_function *f;
    struct mc_code_unit *code;
    const char *file;
    int line;
};

static mc_status read_inputs(struct compiling *c);
static mc_status read_outputs(struct compiling *c);
static mc_status read_updates(struct compiling *c);
static mc_status add_default_updates(struct compiling *c);
static mc_status apply_givens(struct compiling *c);
static mc_status check_inputs(struct compiling *c);
static mc_status copy_graph(struct compiling *c);
static mc_status rewrite(struct compiling *c);
static mc_status lower(struct compiling *c);
static mc_status describe(struct compiling *c);
static mc_status compile_kernels(struct compiling *c);
static mc_status make_function(struct compiling *c);

static const struct { const char *name; mc_status (*run)(struct compiling *c); } passes[] = {
    { "inputs",          read_inputs },
    { "outputs",         read_outputs },
    { "updates",         read_updates },
    { "default updates", add_default_updates },
    { "givens",          apply_givens },
    { "unused inputs",   check_inputs },
    { "copy",            copy_graph },       /* from here on the user's graph is not touched */
    { "rewrite",         rewrite },
    { "lower",           lower },
    { "describe",        describe },
    { "kernels",         compile_kernels },
    { "function",        make_function },
};

static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG", "NANGUARD" };

/* The user's mistake, kept with his graph. */
static mc_status fail_at(struct compiling *c, mc_status code)
{
    if (c->user->status == MC_OK) {
        char text[1600];
        snprintf(text, sizeof text, "%s", mc_last_error());
        mc_node_fail(c->user, code, "%s", text);
    }
    return code;
}

/* ---- reading the spec ---- */

static mc_status read_inputs(struct compiling *c)
{
    struct mc_named *v = NULL;
    int n = 0;
    if (c->spec->inputs) {
        TRY(mc_parse_list(c->user, c->spec->inputs, false, &v, &n));
    }
    for (int i = 0; i < n; i++) {
        if (v[i].has_default && v[i].name) {
            v[i].node = mc_dict_get(&c->user->names, v[i].name);
        }
        if (!VEC_PUSH(c->inputs, v[i])) {
            return MC_EMEMORY;
        }
    }
    mc_free(v);
    for (int i = 0; i < c->spec->ninput; i++) {
        struct mc_named one = { .node = c->spec->input[i] };
        one.name = mc_strdup(mc_node_name(one.node));
        if (!one.name || !VEC_PUSH(c->inputs, one)) {
            mc_free(one.name);
            return MC_EMEMORY;
        }
    }
    for (size_t i = 0; i < c->inputs.n; i++) {
        mc_node *x = c->inputs.at[i].node;
        if (!x || x->graph != c->user || x->op != &mc_op_input) {
            return mc_fail(MC_EARG, "compile: inputs: '%s' is not an input of this graph", c->inputs.at[i].name ? c->inputs.at[i].name : "");
        }
        for (size_t k = 0; k < i; k++) {
            if (c->inputs.at[k].node == x) {
                return mc_fail(MC_EARG, "compile: inputs: '%s' is given twice", mc_node_name(x));
            }
        }
        if (!VEC_PUSH(c->in, x)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

static mc_status add_output(struct compiling *c, mc_node *n, bool borrow)
{
    if (!n || n->graph != c->user) {
        return mc_fail(MC_EARG, "compile: an output is missing or belongs to another graph");
    }
    if (mc_is_error(n)) {
        return c->user->status < 0 ? c->user->status : mc_fail(MC_EARG, "compile: an output is the error node");
    }
    for (int i = 0; i < n->nout; i++) { /* a tuple is all of its items */
        if (!VEC_PUSH(c->out, mc_item(n, i)) || !VEC_PUSH(c->borrow, borrow)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

static mc_status read_outputs(struct compiling *c)
{
    struct mc_named *v = NULL;
    int n = 0;
    mc_status s = c->spec->outputs ? mc_parse_list(c->user, c->spec->outputs, false, &v, &n) : MC_OK;
    for (int i = 0; i < n && s == MC_OK; i++) {
        s = add_output(c, v[i].node, v[i].borrow);
    }
    mc_named_free(v, n);
    for (int i = 0; i < c->spec->noutput && s == MC_OK; i++) {
        s = add_output(c, c->spec->output[i], false);
    }
    return s;
}

/* The new value in the variable's dtype and rank. */
static mc_status add_update(struct compiling *c, struct mc_shared *t, mc_node *value)
{
    for (size_t i = 0; i < c->target.n; i++) {
        if (c->target.at[i] == t) {
            return mc_fail(MC_EARG, "compile: updates: '%s' is updated twice", t->name);
        }
    }
    if (!value || mc_is_error(value)) {
        return c->user->status < 0 ? c->user->status : mc_fail(MC_EARG, "compile: updates: the value of '%s' is missing", t->name);
    }
    if (value->type.rank != t->type.rank) {
        return mc_fail(MC_ESHAPE, "compile: updates: '%s' has rank %d, its new value rank %d", t->name, t->type.rank, value->type.rank);
    }
    for (int i = 0; i < t->type.rank; i++) {
        if (t->type.dims[i] >= 0 && value->type.dims[i] >= 0 && t->type.dims[i] != value->type.dims[i]) {
            return mc_fail(MC_ESHAPE, "compile: updates: '%s' has size %lld on axis %d, its new value %lld", t->name,
                           (long long)t->type.dims[i], i, (long long)value->type.dims[i]);
        }
    }
    if (value->type.dtype != t->type.dtype) {
        if (mc_is_float(value->type.dtype) && !mc_is_float(t->type.dtype)) {
            return mc_fail(MC_ETYPE, "compile: updates: '%s' is %s, its new value %s; cast it if digits may be lost", t->name,
                           mc_dtype_name(t->type.dtype), mc_dtype_name(value->type.dtype));
        }
        value = mc_cast_to(value, t->type.dtype);
    }
    return VEC_PUSH(c->target, t) && VEC_PUSH(c->update, value) ? MC_OK : MC_EMEMORY;
}

static mc_status read_updates(struct compiling *c)
{
    struct mc_named *v = NULL;
    int n = 0;
    mc_status s = c->spec->updates ? mc_parse_list(c->user, c->spec->updates, true, &v, &n) : MC_OK;
    for (int i = 0; i < n && s == MC_OK; i++) {
        mc_node *t = mc_dict_get(&c->user->names, v[i].name);
        s = t && t->shared ? add_update(c, t->shared, v[i].node)
                           : mc_fail(MC_EARG, "compile: updates: '%s' is not a shared variable", v[i].name);
    }
    mc_named_free(v, n);
    for (int i = 0; i < c->spec->nupdate && s == MC_OK; i++) {
        mc_node *t = c->spec->update_of[i];
        s = t && t->shared ? add_update(c, t->shared, c->spec->update[i])
                           : mc_fail(MC_EARG, "compile: updates: target %d is not a shared variable", i);
    }
    return s;
}

static mc_node **all_results(const struct compiling *c, size_t *n)
{
    *n = c->out.n + c->update.n;
    mc_node **all = mc_alloc((*n + 1) * sizeof *all, "compile");
    for (size_t i = 0; all && i < *n; i++) {
        all[i] = i < c->out.n ? c->out.at[i] : c->update.at[i - c->out.n];
    }
    return all;
}

static void put_results(struct compiling *c, mc_node *const *all)
{
    for (size_t i = 0; i < c->out.n + c->update.n; i++) {
        *(i < c->out.n ? &c->out.at[i] : &c->update.at[i - c->out.n]) = all[i];
    }
}

/* Variables that say what becomes of them when a function uses them: random streams, running averages. */
static mc_status add_default_updates(struct compiling *c)
{
    bool more = !c->spec->no_default_updates;
    while (more) { /* an update may use a variable that has one */
        size_t n, count = 0;
        mc_node **all = all_results(c, &n), **list = all ? mc_graph_reach((int)n, all, &count) : NULL;
        mc_status s = list || !n ? MC_OK : MC_EMEMORY;
        more = false;
        for (size_t i = 0; i < count && s == MC_OK; i++) {
            for (size_t k = 0; list[i]->shared && k < c->user->defaults.n && s == MC_OK; k++) {
                bool has = c->user->defaults.at[k].shared != list[i]->shared;
                for (size_t j = 0; j < c->target.n; j++) {
                    has |= c->target.at[j] == list[i]->shared;
                }
                if (!has) {
                    s = add_update(c, list[i]->shared, c->user->defaults.at[k].value);
                    more = true;
                }
            }
        }
        mc_free(all);
        mc_free(list);
        TRY(s);
    }
    return MC_OK;
}

static mc_status apply_givens(struct compiling *c)
{
    struct mc_named *v = NULL;
    int n = 0;
    size_t nall;
    mc_status s = c->spec->givens ? mc_parse_list(c->user, c->spec->givens, true, &v, &n) : MC_OK;
    mc_node **from = mc_alloc((size_t)(n + 1) * sizeof *from, "compile"), **to = mc_alloc((size_t)(n + 1) * sizeof *to, "compile");
    mc_node **all = all_results(c, &nall);
    s = from && to && all ? s : MC_EMEMORY;
    for (int i = 0; i < n && s == MC_OK; i++) {
        from[i] = mc_dict_get(&c->user->names, v[i].name);
        to[i] = v[i].node;
        if (!from[i]) {
            s = mc_fail(MC_EARG, "compile: givens: there is no variable '%s'", v[i].name);
        } else if (from[i]->type.rank != to[i]->type.rank) {
            s = mc_fail(MC_ESHAPE, "compile: givens: '%s' has rank %d, what is given rank %d", v[i].name, from[i]->type.rank, to[i]->type.rank);
        } else {
            to[i] = mc_cast_to(to[i], from[i]->type.dtype);
        }
    }
    if (n && s == MC_OK) {
        s = mc_graph_replace(c->user, n, from, to, (int)nall, all);
        put_results(c, all);
    }
    mc_named_free(v, n);
    mc_free(from);
    mc_free(to);
    mc_free(all);
    return s;
}

static mc_status check_inputs(struct compiling *c)
{
    const char *what = c->spec->on_unused ? c->spec->on_unused : mc_flag_text(FLAG_on_unused);
    size_t n, count = 0;
    mc_node **all = all_results(c, &n), **list = all ? mc_graph_reach((int)n, all, &count) : NULL;
    mc_status s = list || !n ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        bool given = list[i]->op != &mc_op_input;
        for (size_t k = 0; k < c->in.n; k++) {
            given |= c->in.at[k] == list[i];
        }
        if (!given) {
            s = mc_fail(MC_EARG, "compile: '%s' is needed but is not among the inputs", mc_node_name(list[i]));
        }
    }
    for (size_t k = 0; k < c->in.n && s == MC_OK && strcmp(what, "ignore") != 0; k++) {
        bool used = false;
        for (size_t i = 0; i < count; i++) {
            used |= list[i] == c->in.at[k];
        }
        if (!used && strcmp(what, "warn") == 0) {
            LOG(LOG_PLAN, "compile: input '%s' is not used", mc_node_name(c->in.at[k]));
        } else if (!used) {
            s = mc_fail(MC_EARG, "compile: input '%s' is not used; leave it out, or set on_unused to warn or ignore", mc_node_name(c->in.at[k]));
        }
    }
    mc_free(all);
    mc_free(list);
    return s;
}

/* ---- the function's own graph ---- */

static mc_node *copy_node(struct compiling *c, const mc_node *x, mc_node **in)
{
    mc_node *n = NULL;
    mc_here(x->file, x->line);
    if (x->op == &mc_op_input) {
        n = mc_input_sized(c->g, x->name, x->type.dtype, x->type.rank, x->type.dims);
    } else if (mc_is_const(x)) {
        n = mc_node_const(c->g, mc_array_ref(x->value), false);
    } else if (x->shared) {
        n = mc_shared_node(c->g, x->shared);
    } else if (x->op == &mc_op_item) {
        n = mc_item(in[0], x->item);
    } else {
        n = mc_node_make(c->g, x->op, x->nin, in, x->attr);
    }
    if (!mc_is_error(n) && x->name && !n->name) {
        n->name = mc_arena_str(&c->g->arena, x->name, strlen(x->name));
    }
    return n;
}

static mc_status copy_graph(struct compiling *c)
{
    size_t n, count = 0, widest = 1;
    mc_node **all = all_results(c, &n);
    for (size_t i = 0; all && i < c->in.n; i++) { /* inputs come along though nothing may need them */
    }
    mc_node **list = all ? mc_graph_reach((int)n, all, &count) : NULL;
    mc_node **map = mc_calloc(c->user->nodes.n + 1, sizeof *map, "compile"), **in = NULL;
    for (size_t i = 0; list && i < count; i++) {
        widest = MC_MAX(widest, (size_t)list[i]->nin);
    }
    in = mc_alloc(widest * sizeof *in, "compile");
    c->g = mc_graph_new();
    mc_status s = all && list && map && in && c->g ? MC_OK : MC_EMEMORY;
    if (s == MC_OK && c->user->custom.n) {
        s = mc_custom_share(c->g, c->user);
    }
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
        put_results(c, all);
        c->code->nodes_before = count;
    }
    mc_here(c->file, c->line);
    mc_free(all);
    mc_free(list);
    mc_free(map);
    mc_free(in);
    return s;
}

static mc_status rewrite(struct compiling *c)
{
    size_t n;
    mc_node **all = all_results(c, &n);
    double start = mc_now();
    struct mc_rewrite how = { .including = c->spec->including, .excluding = c->spec->excluding, .strict = mc_flag_int(FLAG_strict_math) != 0,
                              .level = c->mode == MODE_FAST_COMPILE ? REWRITE_FAST : REWRITE_FULL };
    mc_status s = all ? mc_rewrite(c->g, (int)n, all, &how) : MC_EMEMORY;
    if (s == MC_OK) {
        put_results(c, all);
        c->code->text = mc_graph_text(c->g, (int)n, all);
        s = c->code->text ? MC_OK : MC_EMEMORY;
    }
    c->code->rewrite_seconds = mc_now() - start;
    mc_free(all);
    return s;
}

static mc_status lower(struct compiling *c)
{
    bool fuse = c->mode != MODE_FAST_COMPILE && mc_cc_present();
    mc_status s = mc_program_make(&c->code->program, c->g, (int)c->in.n, c->in.at, (int)c->out.n, c->out.at, (int)c->target.n,
                                  c->target.at, c->update.at, fuse);
    c->code->graph = c->g;
    c->g = NULL; /* the code's now */
    return s;
}

/* What each step computes, in the text form: its results over its sources. */
static mc_status describe(struct compiling *c)
{
    const struct mc_program *p = &c->code->program;
    c->code->nstep = (int)p->step.n;
    c->code->step_text = mc_calloc(p->step.n + 1, sizeof *c->code->step_text, "compile");
    if (!c->code->step_text) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < p->step.n; i++) {
        const struct mc_step *s = &p->step.at[i];
        struct mc_str out = { 0 };
        if (s->gemm && s->kernel) {
            mc_node_print(&out, s->gemm, 2);
            mc_str_add(&out, ", then ");
        }
        for (int k = 0, shown = 0; k < s->nnode; k++) {
            int v = p->value_of[s->node[k]->id];
            if ((v >= 0 && p->value.at[v].step == (int)i) || s->nnode == 1) {
                mc_str_add(&out, shown++ ? ", " : "");
                mc_node_print(&out, s->node[k], 6);
            }
        }
        c->code->step_text[i] = mc_str_take(&out);
        if (!c->code->step_text[i]) {
            return MC_EMEMORY;
        }
        LOG(LOG_KERNEL, "step %zu: %s", i, c->code->step_text[i]);
    }
    return MC_OK;
}

/* ---- kernels ---- */

static mc_status compile_kernels(struct compiling *c)
{
    struct mc_program *p = &c->code->program;
    size_t n = p->step.n;
    struct mc_kernel **k = mc_alloc((n + 1) * sizeof *k, "compile");
    struct mc_str source = { 0 };
    int nk = 0;
    c->code->fn = mc_calloc(n + 1, sizeof *c->code->fn, "compile");
    c->code->join = mc_calloc(n + 1, sizeof *c->code->join, "compile");
    mc_status s = k && c->code->fn && c->code->join ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        if (p->step.at[i].kernel) {
            k[nk++] = p->step.at[i].kernel;
        }
    }
    bool wanted = nk && c->mode != MODE_FAST_COMPILE;
    if (s == MC_OK && wanted) {
        double start = mc_now();
        mc_render(&source, &mc_dialect_c, nk, k);
        s = source.bad ? MC_EMEMORY : MC_OK;
        if (s == MC_OK && mc_cc_present()) {
            LOG(LOG_KERNEL, "%s", source.s);
            c->code->lib = mc_code_load(source.s, "-fwrapv -fopenmp-simd", &s);
        }
        c->code->cc_seconds = mc_now() - start;
    }
    for (size_t i = 0; i < n && s == MC_OK && c->code->lib; i++) {
        if (p->step.at[i].kernel) {
            char join[40];
            void *fn = mc_code_symbol(c->code->lib, p->step.at[i].kernel->name);
            memcpy(&c->code->fn[i], &fn, sizeof fn);
            if (p->step.at[i].kernel->mode == KERNEL_FOLD) {
                snprintf(join, sizeof join, "%s_join", p->step.at[i].kernel->name);
                fn = mc_code_symbol(c->code->lib, join);
                memcpy(&c->code->join[i], &fn, sizeof fn);
            }
        }
    }
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        if (p->step.at[i].kernel && !c->code->fn[i]) {
            p->step.at[i].reason = c->mode == MODE_FAST_COMPILE ? "FAST_COMPILE: the reference loops" : "no C compiler: the reference loops";
        }
    }
    c->code->source = source.s ? mc_str_take(&source) : mc_strdup("");
    mc_str_free(&source);
    mc_free(k);
    return s < 0 ? s : c->code->source ? MC_OK : MC_EMEMORY;
}

/* ---- the function ---- */

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(struct mc_shared *const *)a, y = (uintptr_t)*(struct mc_shared *const *)b;
    return x < y ? -1 : x > y;
}

/* Every shared variable that is read or updated, sorted, each once and counted. */
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

static mc_function *new_function(struct mc_code_unit *code, const char *name, int threads, bool profile)
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
    f->time = mc_calloc(p->step.n + 1, sizeof *f->time, "function");
    f->threads = threads > 0 ? threads : mc_flag_int(FLAG_threads) > 0 ? (int)mc_flag_int(FLAG_threads) : mc_team_size();
    f->profile = profile;
    mc_status s = f->name && f->input && f->output && f->ptr && f->arg && f->result && f->time ? collect_shared(f) : MC_EMEMORY;
    nkey += (size_t)f->nshared * 2 * MC_MAX_RANK;
    f->key = mc_alloc(nkey * sizeof *f->key, "function");
    if (s < 0 || !f->key) {
        mc_function_free(f);
        return NULL;
    }
    return f;
}

static mc_status make_function(struct compiling *c)
{
    c->f = new_function(c->code, c->spec->name, c->spec->threads, c->spec->profile || mc_flag_int(FLAG_profile));
    if (!c->f) {
        return mc_last_status();
    }
    for (size_t i = 0; i < c->inputs.n; i++) {
        c->f->input[i].name = mc_strdup(c->inputs.at[i].name);
        if (!c->f->input[i].name) {
            return MC_EMEMORY;
        }
        if (c->inputs.at[i].has_default) {
            if (c->in.at[i]->type.rank) {
                return mc_fail(MC_ESHAPE, "compile: inputs: '%s' has rank %d; only a scalar can have a number as default", c->inputs.at[i].name,
                               c->in.at[i]->type.rank);
            }
            c->f->input[i].has_default = true;
            c->f->input[i].dflt = mc_array_scalar(c->in.at[i]->type.dtype, c->inputs.at[i].dflt);
            if (!c->f->input[i].dflt) {
                return mc_last_status();
            }
        }
    }
    for (size_t i = 0; i < c->out.n; i++) {
        c->f->output[i].borrow = c->borrow.at[i];
    }
    return MC_OK;
}

static void code_unref(struct mc_code_unit *u)
{
    if (!u || atomic_fetch_sub(&u->refs, 1) != 1) {
        return;
    }
    for (int i = 0; u->step_text && i < u->nstep; i++) {
        mc_free(u->step_text[i]);
    }
    mc_free(u->step_text);
    mc_code_unref(&u->lib);
    mc_free(u->fn);
    mc_free(u->join);
    mc_free(u->source);
    mc_free(u->text);
    mc_program_free(&u->program);
    mc_graph_free(u->graph);
    mc_free(u);
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
    for (int i = 0; f->input && i < f->code->program.ninput; i++) {
        mc_free(f->input[i].name);
        mc_array_unref(&f->input[i].dflt);
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
    mc_free(f->time);
    mc_free_pages(f->arena);
    code_unref(f->code);
    mc_free(f);
}

mc_function *mc_function_copy(mc_function *f, int share_updates)
{
    if (!f) {
        mc_fail(MC_EARG, "function_copy: there is no function");
        return NULL;
    }
    const struct mc_program *p = &f->code->program;
    mc_function *n = new_function(f->code, f->name, f->threads, f->profile);
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
    if (n && !share_updates) {
        n->skip_updates = true;
    }
    return n;
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
    return mc_fail(MC_EARG, "compile: there is no mode '%s'%s%s%s", word, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void let_go(struct compiling *c)
{
    mc_named_free(c->inputs.at, (int)c->inputs.n);
    VEC_FREE(c->outputs);
    VEC_FREE(c->in);
    VEC_FREE(c->out);
    VEC_FREE(c->update);
    VEC_FREE(c->target);
    VEC_FREE(c->borrow);
    mc_graph_free(c->g);
    code_unref(c->code);
}

mc_function *mc_compile_at(mc_graph *g, const mc_spec *spec, const char *file, int line)
{
    if (!g || !spec) {
        mc_fail(MC_EARG, "compile: there is no %s", g ? "spec" : "graph");
        return NULL;
    }
    struct compiling c = { .user = g, .spec = spec, .file = file, .line = line };
    double start = mc_now();
    mc_here(file, line);
    mc_grad_install();
    mc_status s = mc_flags_status();
    if (s == MC_OK && g->status < 0) {
        s = mc_fail(g->status, "%s", mc_error(g));
    }
    s = s < 0 ? s : find_mode(&c);
    c.code = s < 0 ? NULL : mc_calloc(1, sizeof *c.code, "function");
    s = s < 0 || c.code ? s : MC_EMEMORY;
    if (c.code) {
        c.code->refs = 1;
        c.code->mode = c.mode;
    }
    for (size_t i = 0; i < NELEM(passes) && s == MC_OK; i++) {
        s = passes[i].run(&c);
        LOG(LOG_TIME, "%s: %s done at %.3f ms", spec->name ? spec->name : "function", passes[i].name, (mc_now() - start) * 1e3);
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

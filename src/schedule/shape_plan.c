/* shape_plan.c: makes the plan of a program at one shape: sizes by each op's infer function, plan-time
 * values, views, solver plans, memory, launches. Plans are cached by the sizes and strides of inputs and
 * shared variables and the contents of inputs that determine sizes.  Where these only move views, a plan is
 * moved (moves.c).
 *
 * Nothing is compiled here, and nothing is timed unless the flag `plan` asks for it. */
#include "schedule/schedule.h"
#include "exec/heavy/heavy.h"

enum { MOST_PLANS = 64 };

/* ---- keys ---- */

/* On a device kernels are chosen by what addresses are multiples of. */
static bool is_loose(const mc_array *a)
{
    return mc_array_space(a) && (uintptr_t)a->data % MC_ALIGNED;
}

static int array_key(int64_t *key, const mc_array *a)
{
    memcpy(key, a->dims, (size_t)a->rank * sizeof *key);
    memcpy(key + a->rank, a->strides, (size_t)a->rank * sizeof *key);
    key[2 * a->rank] = is_loose(a);
    return 2 * a->rank + 1;
}

static int contents_key(int64_t *key, const mc_array *a)
{
    int64_t n = mc_array_size(a);
    for (int64_t i = 0; i < n; i++) { /* bits, not integers: 0.25 and 0.75 must differ */
        key[i] = 0;
        memcpy(&key[i], a->data + (a->rank ? i * a->strides[0] : 0), mc_dtypes[a->dtype].size);
    }
    return (int)n;
}

/* Sizes and strides, then contents.  Returns how many numbers both have; *arrays: the former. */
static int make_key(struct mc_function *f, int *arrays)
{
    const struct mc_program *p = &f->code->program;
    int n = 0;
    for (int i = 0; i < p->ninput; i++) {
        n += array_key(f->key + n, f->arg[i]);
    }
    for (int i = 0; i < f->nshared; i++) {
        n += array_key(f->key + n, f->shared[i]->value);
    }
    *arrays = n;
    for (int i = 0; i < p->ninput; i++) {
        n += p->key_input[i] ? contents_key(f->key + n, f->arg[i]) : 0;
    }
    return n;
}

/* Moves a plan of these sizes and strides to these contents. */
static bool move_plan(struct mc_function *f, struct mc_shape_plan *p, int n, int arrays)
{
    const struct mc_program *pr = &f->code->program;
    bool good = p->moves && p->nkey == n && memcmp(p->key, f->key, (size_t)arrays * sizeof *p->key) == 0;
    for (int i = 0, at = arrays; i < pr->ninput && good; i++) {
        const int64_t count = pr->key_input[i] ? mc_array_size(f->arg[i]) : 0;
        good = !count || !mc_moves_pin(f, p, i) ||
               memcmp(p->key + at, f->key + at, (size_t)count * sizeof *p->key) == 0;
        at += (int)count;
    }
    good = good && mc_moves_make(f, p);
    if (good) {
        memcpy(p->key, f->key, (size_t)n * sizeof *p->key);
    }
    return good;
}

/* ---- slots ---- */

static void place_array(struct mc_slot *slot, enum mc_base base, int index, const mc_array *a)
{
    *slot = (struct mc_slot){
        .base = base, .index = index, .loose = is_loose(a), .type = mc_type_make(a->dtype, a->rank, a->dims)
    };
    memcpy(slot->strides, a->strides, (size_t)a->rank * sizeof *a->strides);
}

/* Shared variables have the sizes that the function was compiled for (mc_spec.fixed_sizes). */
static mc_status check_shared(const struct mc_function *f)
{
    const struct mc_program *pr = &f->code->program;
    for (size_t v = 0; v < pr->value.n; v++) {
        const mc_node *x = pr->value.at[v].node;
        const mc_array *a = pr->value.at[v].kind == VALUE_SHARED ? x->shared->value : NULL;
        for (int i = 0; a && i < a->rank; i++) {
            if (x->type.dims[i] >= 0 && x->type.dims[i] != a->dims[i]) {
                x->shared->varies = true;
                return mc_fail(MC_ESHAPE,
                               "shared variable %s: axis %d has size %lld, and the function was compiled for "
                               "size %lld; compile it again",
                               x->shared->name, i, (long long)a->dims[i], (long long)x->type.dims[i]);
            }
        }
    }
    return MC_OK;
}

/* Places inputs, constants and shared variables. If sizes depend on data, each is an array, so that ops
 * can read its contents during planning. */
static void place_leaves(struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    for (size_t v = 0; v < pr->value.n; v++) {
        const struct mc_value *x = &pr->value.at[v];
        if (x->kind == VALUE_INPUT) {
            place_array(&p->slot[v], BASE_INPUT, x->input, f->arg[x->input]);
        } else if (x->kind == VALUE_CONST) {
            place_array(&p->slot[v], BASE_FIXED, 0, x->node->value);
            p->slot[v].fixed = mc_array_ref(x->node->value);
        } else if (x->kind == VALUE_SHARED) {
            for (int i = 0; i < f->nshared; i++) {
                if (f->shared[i] == x->node->shared) {
                    place_array(&p->slot[v], BASE_SHARED, i, f->shared[i]->value);
                }
            }
        }
        if (pr->dynamic && (x->kind == VALUE_INPUT || x->kind == VALUE_SHARED)) {
            p->slot[v].fixed = mc_array_ref(x->kind == VALUE_INPUT ? f->arg[x->input]
                                                                   : f->shared[p->slot[v].index]->value);
            p->slot[v].base = BASE_FIXED;
        }
    }
}

/* ---- plan-time values ---- */

static mc_status plan_early(struct mc_step_types *q, const struct mc_step *st)
{
    mc_node *n = st->node[0];
    struct mc_shape_plan *p = q->p;
    struct mc_infer out;
    mc_array *in[16] = { 0 }, *made[1] = { 0 };
    mc_status s = n->nin <= 16 ? mc_step_infer(q, n, &out)
                               : mc_fail(MC_EUNSUPPORTED, "%s: too many sizes", n->op->name);
    if (s < 0) {
        return s;
    }
    bool sizes = mc_reads_type_only(n);
    if (sizes) { /* a size: the input may have no memory, its type is enough */
        struct mc_type t;
        const mc_array *value;
        int axis = 0;
        TRY(mc_step_input_type(q, n->in[0], &t, &value));
        made[0] = mc_array_empty(MC_INT64, out.out[0].rank, out.out[0].dims);
        if (made[0] && n->op->form == FORM_SHAPE) {
            memcpy(made[0]->data, t.dims, (size_t)t.rank * sizeof(int64_t));
        } else if (made[0] && (s = mc_axis_check("size", mc_attr_int(&n->attr[0]), t.rank, &axis)) == MC_OK) {
            memcpy(made[0]->data, &t.dims[axis], sizeof(int64_t));
        }
        s = made[0] ? s : mc_last_status();
    } else {
        for (int i = 0; i < n->nin && s == MC_OK; i++) {
            in[i] = mc_value_array(q->f, p, st->src[i]);
            s = in[i] ? MC_OK : mc_last_status();
        }
        s = s < 0 ? s : mc_eval_node(n, in, made);
        for (int i = 0; i < n->nin; i++) {
            mc_array_unref(&in[i]);
        }
    }
    if (s == MC_OK) {
        struct mc_slot *to = &p->slot[st->dst[0]];
        place_array(to, BASE_FIXED, 0, made[0]);
        to->fixed = made[0];
    } else {
        mc_array_unref(&made[0]);
    }
    return s;
}

/* ---- steps ---- */

/* The kernel's iteration space: for each axis the size of the nodes that vary along it. */
static mc_status kernel_space(const struct mc_step_types *q, int64_t *space)
{
    const struct mc_kernel *k = q->step->kernel;
    for (int a = 0; a < MC_MAX_RANK; a++) {
        space[a] = 1;
    }
    for (int i = 0; i < q->step->nnode; i++) {
        const mc_node *n = q->step->node[i];
        for (int j = -1; j < n->nin; j++) {
            const mc_node *x = j < 0 ? n : n->in[j];
            struct mc_type t = q->type[i];
            const mc_array *value;
            if (j >= 0 && (n->op->flags & OP_REDUCES) == 0) {
                break; /* an op that does not reduce has the axes of its result */
            }
            if (j >= 0) {
                TRY(mc_step_input_type((struct mc_step_types *)q, (mc_node *)x, &t, &value));
            }
            for (int a = 0; a < t.rank && t.rank == k->rank; a++) {
                if (x->type.dims[a] != 1) {
                    space[a] = t.dims[a];
                }
            }
        }
    }
    return MC_OK;
}

mc_status mc_shape_plan_step(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_type on_stack[32],
        *type = st->nnode <= 32 ? on_stack : mc_alloc((size_t)st->nnode * sizeof *type, "plan");
    struct mc_step_types q = { f, p, type, st };
    struct mc_infer out = { 0 };
    mc_status s = type ? MC_OK : MC_EMEMORY;

    if (s == MC_OK && st->kind == STEP_PLAN_TIME) {
        s = plan_early(&q, st);
    } else if (s == MC_OK && st->kernel) {
        if (st->heavy) {
            s = mc_step_infer(&q, st->heavy, &out);
            for (int i = 0; i < st->heavy->nout && s == MC_OK; i++) {
                mc_slot_set(&p->slot[mc_heavy_result(st, i)], &out.out[i]);
            }
        }
        struct mc_type one;
        for (int i = 0; i < st->nnode && s == MC_OK; i++) {
            s = mc_step_infer(&q, st->node[i], &out);
            one = out.out[0];
            type[i] = one;
            int v = f->code->program.value_of[st->node[i]->id];
            if (s == MC_OK && v >= 0 && f->code->program.value.at[v].step == step) {
                mc_slot_set(&p->slot[v], &one);
                p->slot[v].base = f->code->program.value.at[v].kind == VALUE_FUSED ? BASE_TYPE : BASE_ARENA;
            }
        }
        s = s < 0 ? s : kernel_space(&q, p->step[step].space);
    } else if (s == MC_OK) {
        s = mc_step_infer(&q, st->node[0], &out);
        if (s == MC_OK && st->kind == STEP_VIEW) {
            s = st->node[0]->op->form == FORM_SUBTENSOR ? mc_step_slice(f, p, st, &out.out[0])
                                                        : mc_step_view(f, p, st, &out.out[0]);
#ifndef MC_RUNTIME
            if (s == MC_OK && p->moves) {
                mc_moves_slice(f, p, step);
            }
#endif
        } else if (s == MC_OK) {
            for (int i = 0; i < st->ndst; i++) {
                mc_slot_set(&p->slot[st->dst[i]], &out.out[i]);
                p->slot[st->dst[i]].base = st->kind == STEP_TYPE ? BASE_TYPE : BASE_ARENA;
            }
#ifndef MC_RUNTIME
            s = p->moves && mc_step_sets_part(st) ? mc_moves_part(f, p, step) : s;
#endif
        }
    }
    if (type != on_stack) {
        mc_free(type);
    }
    return s;
}

mc_status mc_shape_plan_work(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    mc_status s = mc_step_is_ahead(p, step) || mc_join_is_made(f, p, step) ? MC_OK
                  : f->loop && f->loop[step]        ? mc_loop_plan(f, p, step, mc_shape_plan_work)
                  : f->branch && f->branch[step][0] ? mc_branch_plan(f, p, step)
                                                    : f->code->backend->plan(f, p, step);
    p->scratch = MC_MAX(p->scratch, p->step[step].workspace);
    return s;
}

static void exec_free(struct mc_exec *e)
{
    if (e && e->ops->free) {
        e->ops->free(e);
    }
}

void mc_shape_plan_free(struct mc_function *f, struct mc_shape_plan *p)
{
    if (!p) {
        return;
    }
    if (f->code->backend->shape_free) {
        f->code->backend->shape_free(f, p);
    }
    for (size_t i = 0; p->slot && i < f->code->program.value.n; i++) {
        mc_array_unref(&p->slot[i].fixed);
    }
    for (size_t i = 0; p->step && i < f->code->program.step.n; i++) {
        exec_free(p->step[i].exec);
        exec_free(p->step[i].epilogue);
        mc_heavy_free(p->step[i].heavy);
    }
    VEC_FREE(p->block);
    mc_moves_free(p);
    mc_free(p->slot);
    mc_free(p->step);
    mc_free(p->key);
    mc_free(p);
}

void mc_shape_plan_release_arrays(const struct mc_function *f, struct mc_shape_plan *p)
{
    for (size_t i = 0; i < f->code->program.value.n; i++) {
        mc_array_unref(&p->slot[i].fixed);
    }
}

/* Sizes, solver plans, arena, launches, joint launches, in this order. */
static mc_status plan_all(struct mc_function *f, struct mc_shape_plan *p, mc_shape_plan_one *work)
{
    const struct mc_program *pr = &f->code->program;
    const int n = (int)pr->step.n;
    for (int i = 0; i < n; i++) {
        TRY(mc_shape_plan_step(f, p, i));
    }
    for (int i = 0; i < n; i++) {
        TRY(pr->step.at[i].kind == STEP_HEAVY ? mc_heavy_plan(f, p, i) : MC_OK);
    }
    TRY(mc_pooled_step_plan(f, p));
    TRY(mc_plan_join_parts(f, p));
    TRY(mc_plan_memory(f, p));
    TRY(f->code->backend->shape ? f->code->backend->shape(f, p) : MC_OK);
    for (int i = 0; i < n; i++) {
        TRY(work(f, p, i));
    }
#ifndef MC_RUNTIME
    TRY(work == mc_shape_plan_work ? mc_plan_joint(f, p) : MC_OK);
#endif
    return mc_plan_workspaces(f, p);
}

/* If sizes depend on data, a call plans each step before it runs the step, and only the backend's part is
 * planned here. */
static mc_status plan_shape(struct mc_function *f, struct mc_shape_plan *p, mc_shape_plan_one *work)
{
    if (!f->code->program.dynamic) {
        return plan_all(f, p, work);
    }
    return f->code->backend->shape ? f->code->backend->shape(f, p) : MC_OK;
}

static struct mc_plan_options options_of(const struct mc_function *f, int64_t workspace_cap)
{
    struct mc_plan_options o = mc_plan_options_of(f->code->backend->site);
    o.chosen = f->code->chosen;
    if (workspace_cap < INT64_MAX) {
        mc_plan_options_limit(&o, (size_t)workspace_cap);
    }
    return o;
}

/* For the shapes in f->arg, whose key has nkey numbers.  moves: other calls may move its views. */
static struct mc_shape_plan *new_plan(struct mc_function *f, int nkey, const struct mc_plan_options *o,
                                      mc_shape_plan_one *work, bool moves)
{
    const struct mc_program *pr = &f->code->program;
    struct mc_shape_plan *p = mc_calloc(1, sizeof *p, "plan");
    if (!p) {
        return NULL;
    }
    p->options = *o;
    p->slot = mc_calloc(pr->value.n + 1, sizeof *p->slot, "plan");
    p->step = mc_calloc(pr->step.n + 1, sizeof *p->step, "plan");
    p->key = mc_alloc((size_t)(nkey + 1) * sizeof *p->key, "plan");
    mc_status s = MC_EMEMORY;
    if (p->slot && p->step && p->key) {
        if (nkey) {
            memcpy(p->key, f->key, (size_t)nkey * sizeof *p->key);
        }
        p->nkey = nkey;
        place_leaves(f, p);
        s = check_shared(f);
        s = s == MC_OK && moves ? mc_moves_find(f, p) : s;
        s = s < 0 ? s : plan_shape(f, p, work);
    }
    if (s < 0) {
        mc_shape_plan_free(f, p);
        return NULL;
    }
    return p;
}

struct mc_shape_plan *mc_shape_plan_make(struct mc_function *f, const struct mc_plan_options *o,
                                         mc_shape_plan_one *work)
{
    int arrays;
    return new_plan(f, make_key(f, &arrays), o, work, false);
}

void mc_shape_plan_drop(struct mc_function *f, struct mc_shape_plan *p)
{
    struct mc_shape_plan **at = &f->plans;
    while (*at != p) {
        at = &(*at)->next;
    }
    *at = p->next;
    mc_shape_plan_free(f, p);
    f->nplans--;
}

static void drop_oldest(struct mc_function *f)
{
    struct mc_shape_plan *oldest = f->plans;
    for (struct mc_shape_plan *p = f->plans; p; p = p->next) {
        oldest = p->used < oldest->used ? p : oldest;
    }
    mc_shape_plan_drop(f, oldest);
}

/* To the front: most calls repeat the last shape. */
static struct mc_shape_plan *take_to_front(struct mc_function *f, struct mc_shape_plan **at)
{
    struct mc_shape_plan *p = *at;
    *at = p->next;
    p->next = f->plans;
    f->plans = p;
    return p;
}

/* The plan with this key, else one that can be moved to it; NULL: there is none. */
static struct mc_shape_plan *find_plan(struct mc_function *f, int n, int arrays)
{
    for (struct mc_shape_plan **at = &f->plans; *at; at = &(*at)->next) {
        if (mc_dims_equal((*at)->nkey, (*at)->key, n, f->key)) {
            return take_to_front(f, at);
        }
    }
    for (struct mc_shape_plan **at = &f->plans; *at; at = &(*at)->next) {
        if (move_plan(f, *at, n, arrays)) {
            return take_to_front(f, at);
        }
    }
    return NULL;
}

struct mc_shape_plan *mc_shape_plan_find(struct mc_function *f, int64_t workspace_cap)
{
    int arrays, n = make_key(f, &arrays);
    f->clock++;
    struct mc_shape_plan *found = f->code->program.dynamic ? NULL : find_plan(f, n, arrays);
    if (found) {
        found->used = f->clock;
        return found;
    }
    double start = mc_now();
    const struct mc_plan_options o = options_of(f, workspace_cap);
    struct mc_shape_plan *p = new_plan(f, n, &o, mc_shape_plan_work, true);
    if (!p) {
        return NULL;
    }
    if (f->nplans >= MOST_PLANS || f->code->program.dynamic) {
        while (f->nplans && (f->nplans >= MOST_PLANS || f->code->program.dynamic)) {
            drop_oldest(f);
        }
    }
    p->used = f->clock;
    p->next = f->plans;
    f->plans = p;
    f->nplans++;
    f->planned++;
    f->plan_seconds += mc_now() - start;
    LOG(LOG_PLAN, "%s: plan %lld, arena %zu bytes, scratch %zu, both %zu, %.3f ms", f->name,
        (long long)f->planned, p->arena, p->scratch, p->memory, (mc_now() - start) * 1e3);
    return p;
}

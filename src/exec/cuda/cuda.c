/* cuda.c: the backend of GPUs: compiles kernels as grids, launches steps on the stream one by one, or as a
 * captured call. */
#include "exec/cuda/cuda.h"
#include "device/cpu/cpu.h"
#include "exec/heavy/heavy.h"
#include "exec/kernels.h"
#include "heavy/conv/conv.h"
#include "heavy/gemm/gemm.h"
#include "heavy/norm/norm.h"
#include "heavy/pool/pool.h"
#include "heavy/conv_pool/conv_pool.h"
#include <stdlib.h>

enum { EAGER_RUNS = 1 };

/* ---- which device ---- */

static struct mc_device *start(const char *device)
{
    int ordinal;
    struct mc_cuda *d = mc_cuda_parse(device, &ordinal) < 0 ? NULL : mc_cuda_start(ordinal);
    if (d) {
        mc_cuda_space_counts(d);
    }
    return d ? &d->device : NULL;
}

/* ---- kernels ---- */

_Static_assert((int)MC_CUDA_TEXTS <= (int)MC_MOST_TEXTS, "kernels can be spread over as many texts");

static void *find(struct mc_cuda_code *code, const struct mc_kernel *k, const char *suffix)
{
    char name[48];
    mc_snprintf(name, sizeof name, "%s%s", k->name, suffix);
    return mc_cuda_code_kernel(code, name);
}

static mc_status print_text(const struct mc_program *p, const int *first, const int *to, int text,
                            struct mc_kernel **k, struct mc_str *out)
{
    int n = mc_kernels_of(p, first, to, text, k);
    mc_render_grid(out, &mc_dialect_cuda, n, k);
    LOG(LOG_KERNEL, "%s", out->bad ? "" : out->s);
    return out->bad ? MC_EMEMORY : MC_OK;
}

/* Finds where each STEP_HOST runs, and whether any step checks indices.  Returns whether there are loops,
 * whose bodies may check indices. */
static bool find_grids(struct mc_program *p, const struct mc_cuda *d, struct mc_cuda_fn_code *own)
{
    bool loops = false;
    for (size_t i = 0; i < p->step.n; i++) {
        struct mc_step *st = &p->step.at[i];
        own->checks |= st->kernel && mc_kernel_checks(st->kernel);
        if (st->kind == STEP_HOST) {
            mc_comm *comm = mc_cuda_ranks_of(st, d);
            const bool has_kernel = comm || mc_copy_step_can(p, st, &own->checks) ||
                                    mc_lines_can(st, &own->checks) || mc_cuda_factor_can(st, &own->checks) ||
                                    mc_cuda_fft_can(st) || mc_cuda_ctc_can(st, &own->checks);
            st->reason = has_kernel ? "" : "no kernel on the GPU: runs on the host by the reference";
            own->comm = !comm ? own->comm : !own->ranks || own->comm == comm ? comm : NULL;
            own->ranks |= comm != NULL;
            loops |= st->node[0]->op->form == FORM_LOOP || st->node[0]->op->form == FORM_BRANCH;
        }
    }
    return loops;
}

static void find_kernels(const struct mc_program *p, const struct mc_cuda_fn_code *own, const int *to,
                         const int *many)
{
    for (size_t i = 0; i < p->step.n; i++) {
        const struct mc_kernel *k = p->step.at[i].kernel;
        struct mc_cuda_code *c = k ? own->text[to[i]] : NULL;
        if (k) {
            own->grid[i] = (struct mc_grid_kernel){
                find(c, k, ""),
                mc_grid_vector(k) > 1 ? find(c, k, "_v") : NULL,
                mc_grid_few_elements(k) ? find(c, k, "_s") : NULL,
                mc_grid_row(k).vector ? find(c, k, "_r") : NULL,
                mc_grid_row_cluster(k).vector ? find(c, k, "_t") : NULL,
                mc_grid_row_scalar(k).vector ? find(c, k, "_q") : NULL,
                mc_grid_column(k) ? find(c, k, "_c") : NULL,
                mc_grid_column_sums(k) ? find(c, k, "_tally") : NULL,
                many[i] < 0 ? NULL : find(own->text[to[many[i]]], p->step.at[many[i]].kernel, "_many")
            };
        }
    }
}

/* requires: the steps' kernels. leaves: their functions, loaded.  The kernel that ends a call is compiled at
 * the same time. */
static mc_status kernels(struct mc_code_unit *u)
{
    struct mc_program *p = &u->program;
    struct mc_kernel **k = mc_alloc((p->step.n + 1) * sizeof *k, "compile");
    int *to = mc_alloc((p->step.n + 1) * sizeof *to, "compile"), *first = mc_kernels_share(p),
        *many = mc_alloc((p->step.n + 1) * sizeof *many, "compile");
    struct mc_str text[MC_CUDA_TEXTS] = { 0 }, source = { 0 };
    const char *at[MC_CUDA_TEXTS];
    struct mc_cuda_fn_code *own = u->own = mc_calloc(1, sizeof *own, "compile");
    bool finishes = false;
    mc_status s = k && to && first && many && own &&
                          (own->grid = mc_calloc(p->step.n + 1, sizeof *own->grid, "compile"))
                      ? MC_OK
                      : MC_EMEMORY;
    if (s == MC_OK) {
        mc_kernels_rule_out(p, first, mc_grid_excluded_forms);
        s = mc_grid_find_many(p, first, many);
    }
    const int most = u->texts ? u->texts : mc_cpu()->threads; /* a bundle's texts are divided as they were */
    int n = s == MC_OK ? mc_kernels_distribute(p, first, MC_MIN(most, MC_CUDA_TEXTS - 1), to) : 0;
    u->texts = MC_MAX(n, 1);
    for (int i = 0; i < n && s == MC_OK; i++) {
        s = print_text(p, first, to, i, k, &text[i]);
        at[i] = text[i].s;
        mc_str_add(&source, s == MC_OK ? text[i].s : "");
    }
    if (s == MC_OK) {
        finishes = find_grids(p, mc_cuda_of(u), own) || own->checks || p->nupdate;
    }
    if (finishes) {
        own->settles = true;
        mc_finish_call_source(&text[n]);
        s = text[n].bad ? MC_EMEMORY : MC_OK;
        at[n] = text[n].s;
        n++;
    }
    s = s < 0 || !n ? s : mc_cuda_code_load_all(mc_cuda_of(u), n, at, MC_CUDA_OPTIONS, own->text);
    if (s == MC_OK) {
        find_kernels(p, own, to, many);
        u->source = source.n || source.bad ? mc_str_take(&source) : mc_strdup("");
        s = u->source ? mc_cuda_fn_custom_compile(u) : MC_EMEMORY;
    }
    for (int i = 0; i < MC_CUDA_TEXTS; i++) {
        mc_str_free(&text[i]);
    }
    mc_str_free(&source);
    mc_free(first);
    mc_free(many);
    mc_free(to);
    mc_free(k);
    return s;
}

/* ---- running ---- */

static mc_status timed_step(struct mc_function *f, const struct mc_shape_plan *p, int step, double *seconds)
{
    struct mc_cuda *d = mc_cuda_of(f->code);
    void *from = seconds ? mc_cuda_event_record(d) : NULL;
    mc_status s = mc_step_run(f, p, step);
    if (seconds) {
        double t = mc_cuda_event_seconds(d, from, mc_cuda_event_record(d));
        *seconds += MC_MAX(t, 0);
    }
    return s;
}

/* False: a step cannot be captured: it runs on the host, or waits for the device. */
static bool capturable(const struct mc_function *f, const struct mc_shape_plan *p, int *launches)
{
    *launches = 0;
    for (size_t i = 0; i < f->code->program.step.n; i++) {
        const struct mc_exec *e = p->step[i].exec;
        if (e && (e->ops->host || e->ops->eager)) {
            return false;
        }
        *launches += e && !e->ops->ahead;
    }
    return true;
}

/* May the steps make the updates?  Yes if all are plain copies that change no shape. */
static bool updates_captured(const struct mc_function *f, const struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    bool so = !f->skip_updates;
    for (int i = 0; i < pr->noutput && so; i++) {
        so = p->slot[pr->output[i]].base != BASE_SHARED;
    }
    for (int i = 0; i < pr->nupdate && so; i++) {
        const struct mc_slot *at = &p->slot[pr->update[i]];
        so = mc_update_is_plain(f, p, i) && mc_slot_contiguous(at) &&
             at->type.dtype == f->target[i]->value->dtype;
        for (int a = 0; a < at->type.rank && so; a++) {
            so = f->target[i]->type.dims[a] < 0 || f->target[i]->type.dims[a] == at->type.dims[a];
        }
    }
    return so;
}

static bool updates_made(const struct mc_shape_plan *p)
{
    return mc_cuda_fn_plan(p)->updates;
}

static mc_status begin_call(struct mc_function *f, struct mc_shape_plan *p)
{
    TRY(mc_cuda_fn_ready(f));
    mc_cuda_fn_plan(p)->updates = false;
    mc_cuda_fn_plan(p)->replayed = NULL;
    return mc_remote_upload_inputs(f, p);
}

static mc_status run_all(struct mc_function *f, struct mc_shape_plan *p)
{
    struct mc_cuda_fn_plan *q = p->own;
    int launches;
    q->updates = updates_captured(f, p);
    if (!q->runs++) {
        q->no_capture = !capturable(f, p, &launches) ||
                        !launches; /* even a single launch is faster replayed: 2.0 us against 2.6 */
    }
    bool eager = q->no_capture || q->runs <= EAGER_RUNS ||
                 mc_cuda_blocking(); /* the first run loads lazily loaded code */
    TRY(mc_copies_ahead(f, p));
    TRY(eager ? mc_cuda_fn_steps(f, p) : mc_cuda_fn_replay(f, p));
    bool behind = !q->updates && f->code->program.nupdate &&
                  !f->skip_updates; /* updates that the host makes must not follow a failed check */
    return behind || mc_cuda_blocking() ? mc_cuda_fn_error_wait(f) : MC_OK;
}

/* ---- the backend ---- */

static bool compiled(const struct mc_function *f, int step)
{
    const struct mc_grid_kernel *k = &mc_cuda_fn_code(f)->grid[step];
    return k->plain || k->few_elements; /* short rows of a static length have no other form */
}

static bool is_left_to_reference(const struct mc_function *f, int step)
{
    const struct mc_shape_plan *p = mc_newest_plan(f);
    const struct mc_exec *e = p ? p->step[step].exec : NULL;
    return p ? e && e->ops->host : f->code->program.step.at[step].reason[0] != '\0';
}

static void code_free(struct mc_code_unit *u)
{
    struct mc_cuda_fn_code *own = u->own;
    for (int i = 0; own && i < MC_CUDA_TEXTS; i++) {
        mc_cuda_code_free(own->text[i]);
    }
    if (own) {
        VEC_FREE(own->code);
        mc_free(own->grid);
    }
    mc_free(own);
    mc_images_unref(&u->images);
}

static mc_status init_function(struct mc_function *f)
{
    struct mc_cuda_fn_function *own = f->own = mc_calloc(1, sizeof *own, "function");
    if (!own ||
        !(own->pinned = mc_calloc((size_t)f->code->program.noutput + 1, sizeof *own->pinned, "function"))) {
        return MC_EMEMORY;
    }
    return mc_cuda_fn_bodies(f);
}

static void free_function(struct mc_function *f)
{
    struct mc_cuda_fn_function *own = f->own;
    if (own) {
        mc_cuda_fn_unwatch(f);
        mc_cuda_free(mc_cuda_of(f->code), own->is_body ? NULL : own->failed);
        mc_array_unref(&own->error_flag);
        mc_free(own->pinned);
        mc_free(own);
    }
}

static enum mc_concurrent run_concurrently(void)
{
    static const enum mc_concurrent words[] = { CONCURRENT_IF_SMALL, CONCURRENT_ALWAYS, CONCURRENT_NEVER };
    return words[mc_flag_int(FLAG_cuda_beside)];
}

/* Programs with dynamic sizes run on the host, unless the flag cuda.host forbids that. */
static const struct mc_backend *backend_for_dynamic_sizes(void)
{
    if (mc_flag_int(FLAG_cuda_host)) {
        return &mc_backend_cpu;
    }
    mc_fail(MC_EUNSUPPORTED,
            "the function would run on the host, which the flag cuda.host forbids: sizes depend on data");
    return NULL;
}

static mc_status make_plan(struct mc_function *f, struct mc_shape_plan *p)
{
    struct mc_cuda_fn_plan *q = p->own = mc_calloc(1, sizeof *q, "plan");
    return q ? mc_remote_plan(f, p) : MC_EMEMORY;
}

static void free_plan(struct mc_function *f, struct mc_shape_plan *p)
{
    struct mc_cuda_fn_plan *q = p->own;
    if (q) {
        mc_cuda_fn_captures_free(f, q);
        mc_cuda_fn_made_in_free(f, q);
        mc_cuda_resident_free(q->resident);
        mc_remote_forget(f, p);
    }
}

static mc_status plan_step(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_step_plan *sp = &p->step[step];
    switch (st->kind) {
    case STEP_PLAN_TIME:
    case STEP_TYPE: return MC_OK;
    case STEP_VIEW: return mc_copy_step_plan(f, p, step, &sp->exec);
    case STEP_KERNEL: return mc_grid_plan(f, p, step, &sp->exec);
    case STEP_HEAVY:
        sp->exec = &sp->heavy->exec;
        TRY(mc_cuda_fn_note(f->code, sp->heavy->plan));
        TRY(mc_cuda_fn_note(f->code, sp->heavy->pooled));
        return st->kernel && !sp->heavy->epilogue.by_solver ? mc_grid_plan(f, p, step, &sp->epilogue) : MC_OK;
    case STEP_HOST:
        TRY(mc_cuda_fn_custom_plan(f, p, step, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_lines_plan(f, p, step, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_cuda_factor_plan(f, p, step, false, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_cuda_fft_plan(f, p, step, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_cuda_ctc_plan(f, p, step, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_cuda_ranks_plan(f, p, step, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_copy_step_plan(f, p, step, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_cuda_factor_plan(f, p, step, true, &sp->exec));
        sp->exec = sp->exec ? sp->exec : &mc_exec_reference;
    }
    return MC_OK;
}

static mc_status plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    mc_code_list *before = mc_cuda_note(&mc_cuda_fn_code(f)->code);
    const mc_status s = plan_step(f, p, step);
    mc_cuda_note(before);
    return s;
}

static int image_rank(const struct mc_device *d, const char *arch)
{
    return mc_cuda_arch_rank(arch, ((const struct mc_cuda *)d)->sm);
}

const struct mc_backend mc_backend_cuda = {
    .name = "cuda", .start = start, .describe = mc_cuda_report, .has = mc_cuda_has,
    .synchronize = mc_cuda_fn_synchronize,
    .numbered = true, .fuses = FUSE_DRAWS, .epilogues = EPILOGUE_SOLVER,
    .grows = backend_for_dynamic_sizes, .in_place = true, .starts = true,
    .dense_inputs = true,
    .language = "CUDA", .lead = "\nstruct k", .head = "\nstruct %s_args {",
    .elsewhere = "no kernel at this shape: runs on the host by the reference",
    .site = &mc_site_cuda,
    .product = mc_gemm_cuda_plan, .conv = mc_conv_cuda_plan,
    .pool = mc_pool_cuda_plan, .norm = mc_norm_cuda_plan, .pooled = mc_pooled_cuda_plan,
    .layouts = { .convs = &mc_conv_cuda, .bandwidth = 2.4e12, .tensor = true },
    .tie_bits = true,
    .kernels = kernels, .compiled = compiled, .left_to_reference = is_left_to_reference,
    .code_free = code_free, .function_init = init_function, .function_free = free_function,
    .arena = mc_cuda_fn_arena, .arena_free = mc_cuda_fn_arena_free,
    .input_bytes = mc_remote_inputs, .concurrent = run_concurrently, .shape = make_plan,
    .plan = plan, .joint = mc_grid_joint, .shape_free = free_plan,
    .address = mc_cuda_fn_address, .begin = begin_call, .step = timed_step, .run = run_all,
    .error_wait = mc_cuda_fn_error_wait, .error_seen = mc_cuda_fn_error_seen,
    .fetch = mc_remote_fetch, .store = mc_remote_store, .copy = mc_cuda_fn_copy,
    .zero = mc_cuda_fn_zero, .body = mc_cuda_fn_body,
    .resident = mc_cuda_resident_begin, .note = mc_cuda_resident_note, .run_noted = mc_cuda_resident_run,
    .copy_on_device = mc_remote_copy_on_device, .result_make = mc_cuda_fn_result_make,
    .result_take = mc_cuda_fn_result_take, .images = mc_cuda_fn_images, .image_rank = image_rank,
    .updated = updates_made,
};

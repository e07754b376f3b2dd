/* watch.c: runs a step of a function, or of the body of a loop, that is timed or checked: its time is added
 * up, in DEBUG mode the reference computes it again, in NANGUARD mode its results are searched for NaN and
 * infinity.
 *
 * Invariant: a function that is neither profiled nor in one of these modes never comes here from a loop. */
#include "exec/backend.h"
#include <math.h>

bool mc_steps_watched(const struct mc_function *f)
{
    return f->profile || f->code->mode == MODE_DEBUG || f->code->mode == MODE_NANGUARD;
}

/* Reports that element `at` of the value is v.  A step may compute several values; the formula is that of
 * this one. */
static mc_status not_finite(const struct mc_function *f, int value, int step, double v, int64_t at)
{
    enum { COLUMNS = 240 };
    struct mc_str formula = { 0 }, line = { 0 };
    mc_node_print(&formula, f->code->program.value.at[value].node, 3);
    mc_str_line(&line, formula.s ? formula.s : "", COLUMNS);
    mc_status s = formula.bad || line.bad
                      ? MC_EMEMORY
                      : mc_fail(MC_ECHECK, "NANGUARD: step %d%s makes %s at element %lld: %s", step,
                                f->is_body ? " of the body" : "", isnan(v) ? "NaN" : "an infinity",
                                (long long)at, line.s);
    mc_str_free(&formula);
    mc_str_free(&line);
    return s;
}

static mc_status check_finite(struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    for (int i = 0; i < st->ndst; i++) {
        const struct mc_slot *at = &p->slot[st->dst[i]];
        if (!mc_is_float(at->type.dtype) || st->kind == STEP_VIEW) {
            continue;
        }
        mc_array *a = mc_value_array(f, p, st->dst[i]);
        int64_t n = a ? mc_array_size(a) : 0, bad = 0;
        double v = 0;
        while (bad < n && isfinite(v = mc_load_f64(at->type.dtype,
                                                   a->data + (size_t)bad * mc_dtypes[at->type.dtype].size))) {
            bad++;
        }
        mc_array_unref(&a);
        if (!a && n == 0 && mc_dims_count(at->type.rank, at->type.dims) > 0) {
            return mc_last_status();
        }
        if (bad < n) {
            return not_finite(f, st->dst[i], step, v, bad);
        }
    }
    return MC_OK;
}

mc_status mc_step_watched(struct mc_function *f, const struct mc_shape_plan *p, int step, double *took)
{
    const struct mc_backend *b = f->code->backend;
    *took = 0;
    mc_status s = b->step(f, p, step, f->profile ? took : NULL);
    s = s < 0 ? mc_step_error(f, step, s) : s;
    if (f->profile) {
        struct mc_step_time *t = &f->time[step];
        t->seconds += *took;
        t->calls++;
        t->flops += p->step[step].flops;
        t->bytes += p->step[step].bytes;
    }
    enum mc_step_kind kind = f->code->program.step.at[step].kind;
    if (s == MC_OK && f->code->mode == MODE_DEBUG) {
        /* report a device's index error before the reference finds the same one */
        s = b->error_wait ? b->error_wait(f) : MC_OK;
    }
    if (s == MC_OK && f->code->mode == MODE_DEBUG && (kind == STEP_KERNEL || kind == STEP_HEAVY)) {
        s = mc_reference_step(f, p, step, true);
    }
    if (s == MC_OK && f->code->mode == MODE_NANGUARD) {
        s = check_finite(f, p, step);
    }
    return s;
}

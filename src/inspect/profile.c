/* profile.c: tables of a function's time and memory, as Theano prints them.
 *
 * Invariant: percentages refer to the time of all steps, so the cumulative column ends at 100%. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "inspect/profile.h"
#include <stdlib.h>

enum { MOST_VALUES = 20, LINE_COLUMNS = 160, NAME_COLUMNS = 40 };

/* ---- rows ---- */

static const char *const kernel_kind[] = {
    [KERNEL_MAP] = "kernel map", [KERNEL_ROW] = "kernel row", [KERNEL_COLUMN] = "kernel column", [KERNEL_FULL_REDUCTION] = "kernel full reduction",
};

static const struct mc_function *body_of(const struct mc_function *f, int step)
{
    return f->loop ? f->loop[step] : NULL;
}

static void classify(const struct mc_function *f, int step, struct mc_step_row *r)
{
    const struct mc_step *s = &f->code->program.step.at[step];
    const struct mc_shape_plan *plan = mc_newest_plan(f);
    bool compiled = mc_step_compiled(f, step);
    switch (s->kind) {
    case STEP_KERNEL:
        mc_snprintf(r->class, sizeof r->class, "%s", kernel_kind[s->kernel->mode]);
        r->type = !compiled ? "ref" : f->code->backend->language;
        break;
    case STEP_HEAVY: {
        const struct mc_heavy *h = plan ? plan->step[step].heavy : NULL;
        const bool kernel = s->kernel && !(h && h->epilogue.by_solver);
        mc_snprintf(r->class, sizeof r->class, "%s %s%s", mc_heavy_family(s), mc_heavy_solver(h),
                    kernel ? " + kernel" : "");
        r->type = s->kernel && !compiled ? "ref" : "lib";
        break;
    }
    case STEP_VIEW:
        mc_snprintf(r->class, sizeof r->class, "view");
        r->type = "view";
        break;
    case STEP_HOST:
        if (f->branch && f->branch[step][0]) {
            const int64_t *taken = f->time[step].taken;
            mc_snprintf(r->class, sizeof r->class, "ifelse: true %lld, false %lld", (long long)taken[true],
                        (long long)taken[false]);
            r->type = f->code->backend->language;
            break;
        } /* fall through */
    default:
        mc_snprintf(r->class, sizeof r->class, "host %.40s", s->node[0]->op->name);
        r->type = "ref";
        if (body_of(f, step)) {
            mc_snprintf(r->class, sizeof r->class, "loop");
            r->type = "loop";
        }
    }
}

/* Bytes that the step reads and writes at the newest shape. A view counts with its own size. */
static double step_bytes(const struct mc_function *f, int step)
{
    const struct mc_step *s = &f->code->program.step.at[step];
    const struct mc_shape_plan *plan = mc_newest_plan(f);
    double bytes = 0;
    for (int i = 0; plan && i < s->nsrc + s->ndst; i++) {
        const struct mc_slot *at = &plan->slot[i < s->nsrc ? s->src[i] : s->dst[i - s->nsrc]];
        bytes += at->base == BASE_NONE || at->base == BASE_TYPE ? 0 : (double)mc_slot_bytes(at);
    }
    return bytes;
}

static int by_seconds(const void *a, const void *b)
{
    const struct mc_step_row *x = a, *y = b;
    return x->seconds > y->seconds   ? -1
           : x->seconds < y->seconds ? 1
                                     : (x->step > y->step) - (x->step < y->step);
}

/* The steps of one function, without those of bodies. */
static mc_status own_rows(const struct mc_function *f, int depth, mc_step_rows *rows)
{
    for (int i = 0; i < f->code->nstep; i++) {
        enum mc_step_kind kind = f->code->program.step.at[i].kind;
        const struct mc_step_time *t = &f->time[i];
        struct mc_step_row r = { .f = f,
                                 .step = i,
                                 .depth = depth,
                                 .calls = t->calls,
                                 .seconds = t->seconds,
                                 .own = t->seconds,
                                 .flops = t->flops,
                                 .bytes = t->bytes };
        if (!t->calls || kind == STEP_PLAN_TIME || kind == STEP_TYPE) {
            continue;
        }
        classify(f, i, &r);
        if (kind != STEP_KERNEL && kind != STEP_VIEW && !body_of(f, i)) {
            r.bytes = step_bytes(f, i) * (double)t->calls;
        }
        if (!VEC_PUSH(*rows, r)) {
            return MC_EMEMORY;
        }
    }
    if (rows->n) {
        qsort(rows->at, rows->n, sizeof *rows->at, by_seconds);
    }
    return MC_OK;
}

/* Adds the steps of f, each loop followed by the steps of its body.  The sums of the steps of f itself are
 * added to `of`. */
static mc_status find_rows(struct mc_profile *p, const struct mc_function *f, int depth,
                           struct mc_step_row *of)
{
    mc_step_rows rows = { 0 };
    mc_status s = own_rows(f, depth, &rows);
    for (size_t i = 0; i < rows.n && s == MC_OK; i++) {
        const struct mc_function *body = body_of(f, rows.at[i].step);
        const size_t at = p->row.n;
        struct mc_step_row in = { .seconds = 0 };
        s = VEC_PUSH(p->row, rows.at[i]) ? MC_OK : MC_EMEMORY;
        s = s == MC_OK && body ? find_rows(p, body, depth + 1, &in) : s;
        if (s == MC_OK) {
            struct mc_step_row *r = &p->row.at[at];
            r->own = MC_MAX(r->seconds - in.seconds, 0);
            r->flops += in.flops;
            r->bytes += in.bytes;
            of->seconds += r->seconds;
            of->flops += r->flops;
            of->bytes += r->bytes;
        }
    }
    VEC_FREE(rows);
    return s;
}

const struct mc_step_row *mc_profile_row(const struct mc_profile *p, const struct mc_function *f, int step)
{
    for (size_t i = 0; i < p->row.n; i++) {
        if (p->row.at[i].f == f && p->row.at[i].step == step) {
            return &p->row.at[i];
        }
    }
    return NULL;
}

static int by_bytes(const void *a, const void *b)
{
    const struct mc_life *x = a, *y = b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes ? 1 : (x->value > y->value) - (x->value < y->value);
}

static mc_status find_lives(struct mc_profile *p, const struct mc_function *f)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_shape_plan *plan = f->plans;
    for (size_t i = 0; plan && i < pr->value.n; i++) {
        const struct mc_value *v = &pr->value.at[i];
        const struct mc_slot *at = &plan->slot[i];
        bool own = v->kind == VALUE_TEMP || (v->kind == VALUE_VIEW && at->own);
        if (!own || at->base != BASE_ARENA || v->step < 0) {
            continue;
        }
        struct mc_life l = { (int)i, mc_slot_bytes(at), at->offset, v->step,
                             MC_MIN(MC_MAX(v->last, v->step), f->code->nstep - 1) };
        p->separate += (l.bytes + 63) / 64 * 64;
        if (!VEC_PUSH(p->life, l)) {
            return MC_EMEMORY;
        }
    }
    if (p->life.n) {
        qsort(p->life.at, p->life.n, sizeof *p->life.at, by_bytes);
    }
    p->arena = plan ? plan->arena : 0;
    p->scratch = plan ? plan->scratch : 0;
    p->loops = mc_loops_memory(f);
    p->prepared = plan ? mc_prepared_memory(f, plan) : 0;
    return MC_OK;
}

mc_status mc_profile_make(struct mc_profile *p, const struct mc_function *f)
{
    *p = (struct mc_profile){ 0 };
    struct mc_step_row all = { .seconds = 0 };
    mc_status s = find_rows(p, f, 0, &all);
    p->seconds = all.seconds;
    s = s < 0 ? s : find_lives(p, f);
    if (s < 0) {
        mc_profile_free(p);
    }
    return s;
}

void mc_profile_free(struct mc_profile *p)
{
    VEC_FREE(p->row);
    VEC_FREE(p->life);
}

/* ---- words ---- */

void mc_value_text(struct mc_str *out, const struct mc_function *f, int value)
{
    const struct mc_program *p = &f->code->program;
    const mc_node *n = p->value.at[value].node;
    for (int i = 0; i < p->noutput; i++) {
        if (p->output[i] == value && f->code->output_name[i]) {
            mc_str_add(out, f->code->output_name[i]);
            return;
        }
    }
    for (int i = 0; i < p->nupdate; i++) {
        if (p->update[i] == value) {
            mc_str_addf(out, "new %s", mc_shared_name(p->shared[i]));
            return;
        }
    }
    if (n->name) {
        mc_str_add(out, n->name);
    } else {
        mc_node_print(out, n, 3);
    }
}

void mc_seconds_text(struct mc_str *out, double seconds)
{
    static const struct { double least, scale; const char *unit; } unit[] = {
        { 1, 1, "s" }, { 1e-3, 1e3, "ms" }, { 1e-6, 1e6, "µs" }, { 0, 1e9, "ns" },
    };
    for (size_t i = 0; i < NELEM(unit); i++) {
        if (seconds >= unit[i].least) {
            double v = seconds * unit[i].scale;
            mc_str_addf(out, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, unit[i].unit);
            return;
        }
    }
}

void mc_rate_text(struct mc_str *out, double amount, double seconds)
{
    if (amount > 0 && seconds > 0) {
        mc_str_addf(out, "%.2f", amount / seconds * 1e-9);
    } else {
        mc_str_add(out, "-");
    }
}

/* ---- tables ---- */

static double share(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void header(struct mc_str *out, const struct mc_function *f, const struct mc_profile *p)
{
    const struct mc_code_unit *c = f->code;
    mc_str_addf(out, "Function profiling\n==================\n  Function: %s\n", f->name);
    mc_str_addf(out, "  Time in %lld calls to mc_call: %.6es\n", (long long)f->calls, f->call_seconds);
    mc_str_addf(out, "  Time in steps: %.6es (%.3f%%)\n", p->seconds, share(p->seconds, f->call_seconds));
    mc_str_addf(out, "  Time in %lld plans: %.6es (%.3f%%)\n", (long long)f->planned, f->plan_seconds,
                share(f->plan_seconds, f->call_seconds));
    mc_str_addf(out, "  Total compile time: %.6es\n", c->compile_seconds);
    mc_str_addf(out, "    Number of nodes: %zu before the rewriting, %zu after\n", c->nodes_before,
                c->nodes_after);
    mc_str_addf(out, "    Number of steps: %d, of which %d kernels\n", c->nstep, c->program.nkernel);
    mc_str_addf(out, "    Rewriting time: %.6es\n", c->rewrite_seconds);
    mc_str_addf(out, "    Rendering and C compiler time: %.6es\n", c->cc_seconds);
    if (!f->profile) {
        mc_str_add(out,
                   "\n  The steps were not timed: compile with .profile = 1, or set the flag profile.\n");
    }
    mc_str_add(out, "\n");
}

/* Adds up the rows of the same class and type; the slowest first.  The time of a loop is that without its
 * body. */
static mc_status by_class(const struct mc_profile *p, struct mc_profile *sums)
{
    for (size_t i = 0; i < p->row.n; i++) {
        const struct mc_step_row *r = &p->row.at[i];
        size_t k = 0;
        while (k < sums->row.n &&
               (strcmp(sums->row.at[k].class, r->class) != 0 || strcmp(sums->row.at[k].type, r->type) != 0)) {
            k++;
        }
        if (k == sums->row.n) {
            struct mc_step_row new = *r;
            new.step = 0; /* here: number of steps */
            new.calls = 0;
            new.seconds = 0;
            if (!VEC_PUSH(sums->row, new)) {
                return MC_EMEMORY;
            }
        }
        sums->row.at[k].step++;
        sums->row.at[k].calls += r->calls;
        sums->row.at[k].seconds += r->own;
    }
    if (sums->row.n) {
        qsort(sums->row.at, sums->row.n, sizeof *sums->row.at, by_seconds);
    }
    return MC_OK;
}

static mc_status class_table(struct mc_str *out, const struct mc_profile *p)
{
    struct mc_profile sums = { 0 };
    double sum = 0;
    mc_status s = by_class(p, &sums);
    mc_str_add(
        out,
        "Class\n---\n<% time> <sum %> <step time> <time per call> <type> <#call> <#step> <Class name>\n");
    for (size_t i = 0; i < sums.row.n && s == MC_OK; i++) {
        const struct mc_step_row *r = &sums.row.at[i];
        sum += r->seconds;
        mc_str_addf(out, "%6.1f%%  %6.1f%%  %9.3fs      %.2es  %-6s %7lld %7d  %s\n",
                    share(r->seconds, p->seconds), share(sum, p->seconds), r->seconds,
                    r->seconds / (double)r->calls, r->type, (long long)r->calls, r->step, r->class);
    }
    mc_str_add(out, "\n");
    mc_profile_free(&sums);
    return s;
}

static void results(struct mc_str *out, const struct mc_function *f, int step)
{
    const struct mc_step *s = &f->code->program.step.at[step];
    const struct mc_shape_plan *plan = mc_newest_plan(f);
    for (int i = 0; i < s->ndst && plan; i++) {
        const struct mc_slot *at = &plan->slot[s->dst[i]];
        if (at->base != BASE_NONE) {
            struct mc_str what = { 0 };
            mc_value_text(&what, f, s->dst[i]);
            mc_str_addf(out, "%*s", 68, "");
            mc_str_line(out, what.s ? what.s : "", NAME_COLUMNS);
            mc_str_add(out, ": ");
            out->bad |= what.bad;
            mc_str_free(&what);
            mc_type_text(out, &at->type);
            mc_str_add(out, mc_slot_contiguous(at) ? "\n" : ", strided\n");
        }
    }
}

/* The first two columns: the share of the time, and the sum of the shares so far.  Steps of bodies are a part
 * of their loop's share; theirs is behind a bar for each loop that they are in. */
static void shares(struct mc_str *out, const struct mc_profile *p, int depth, double seconds, double sum)
{
    if (!depth) {
        mc_str_addf(out, "%6.1f%%  %6.1f%%", share(seconds, p->seconds), share(sum, p->seconds));
        return;
    }
    for (int i = 0; i < MC_MIN(depth, 4); i++) {
        mc_str_add(out, " |");
    }
    mc_str_addf(out, "%*.1f%%", 15 - 2 * MC_MIN(depth, 4), share(seconds, p->seconds));
}

/* What a loop does beside the steps of its body, as a step of its body. */
static void rest_line(struct mc_str *out, const struct mc_profile *p, const struct mc_step_row *r)
{
    shares(out, p, r->depth + 1, r->own, 0);
    mc_str_addf(out, "  %9.3fs      %.2es %7lld %4s %9s %6s  the loop itself\n", r->own,
                r->own / (double)r->calls, (long long)r->calls, "-", "-", "-");
}

static void step_line(struct mc_str *out, const struct mc_profile *p, const struct mc_step_row *r, double sum)
{
    struct mc_str flops = { 0 }, bytes = { 0 };
    mc_rate_text(&flops, r->flops, r->seconds);
    mc_rate_text(&bytes, r->bytes, r->seconds);
    out->bad |= flops.bad || bytes.bad;
    if (!out->bad) {
        shares(out, p, r->depth, r->seconds, sum);
        mc_str_addf(out, "  %9.3fs      %.2es %7lld %4d %9s %6s  %s, %s: ", r->seconds,
                    r->seconds / (double)r->calls, (long long)r->calls, r->step, flops.s, bytes.s,
                    mc_step_name(r->f->code, r->step), r->class);
    }
    mc_str_line(out, mc_step_text(r->f->code, r->step), LINE_COLUMNS);
    mc_str_add(out, "\n");
    results(out, r->f, r->step);
    mc_str_free(&flops);
    mc_str_free(&bytes);
}

/* Prints the rows from i on that are in the same loops, each with its body; returns the next row. */
static size_t step_lines(struct mc_str *out, const struct mc_profile *p, size_t i)
{
    const int depth = p->row.at[i].depth;
    double sum = 0;
    while (i < p->row.n && p->row.at[i].depth == depth) {
        const struct mc_step_row *r = &p->row.at[i++];
        sum += r->seconds;
        step_line(out, p, r, sum);
        if (i < p->row.n && p->row.at[i].depth > depth) {
            i = step_lines(out, p, i);
            rest_line(out, p, r);
        }
    }
    return i;
}

static void step_table(struct mc_str *out, const struct mc_profile *p)
{
    mc_str_add(
        out,
        "Steps\n------\n<% time> <sum %> <step time> <time per call> <#call> <id> <GFLOP/s> <GB/s> <Step>\n");
    if (p->row.n) {
        step_lines(out, p, 0);
    }
    mc_str_add(out, "\n");
}

static void memory_table(struct mc_str *out, const struct mc_function *f, const struct mc_profile *p)
{
    mc_str_add(out, "Memory of the newest shape\n---\n");
    if (!f->plans) {
        mc_str_add(out, "  Not planned yet: the function was not called.\n");
        return;
    }
    mc_str_add(out, "  Arena of intermediate values: ");
    mc_str_bytes(out, (double)p->arena);
    mc_str_add(out, " planned, ");
    mc_str_bytes(out, (double)p->separate);
    mc_str_add(out, " if no two shared memory\n  Workspaces and row buffers: ");
    mc_str_bytes(out, (double)p->scratch);
    if (p->loops) {
        mc_str_add(out, "\n  Values and states of loops: ");
        mc_str_bytes(out, (double)p->loops);
    }
    if (p->prepared) {
        mc_str_add(out, "\n  Filters and weights that solvers keep: ");
        mc_str_bytes(out, (double)p->prepared);
    }
    mc_str_addf(out, "\n\n<bytes> <offset> <from step> <to step> <type> <value>\n");
    for (size_t i = 0; i < p->life.n && i < MOST_VALUES; i++) {
        const struct mc_life *l = &p->life.at[i];
        struct mc_str what = { 0 };
        mc_value_text(&what, f, l->value);
        mc_str_addf(out, "%10zu %10lld %4d %4d  ", l->bytes, (long long)l->offset, l->first, l->last);
        mc_type_text(out, &f->plans->slot[l->value].type);
        mc_str_add(out, "  ");
        mc_str_line(out, what.s ? what.s : "", LINE_COLUMNS);
        mc_str_add(out, "\n");
        out->bad |= what.bad;
        mc_str_free(&what);
    }
    if (p->life.n > MOST_VALUES) {
        mc_str_addf(out, "   ... and %zu smaller values\n", p->life.n - MOST_VALUES);
    }
}

mc_status mc_function_profile(const mc_function *f, FILE *to)
{
    struct mc_profile p;
    struct mc_str out = { 0 };
    if (!f) {
        return mc_fail(MC_EARG, "profile: the function is NULL");
    }
    pthread_mutex_t *lock = &((mc_function *)f)->lock;
    pthread_mutex_lock(lock);
    mc_status s = mc_profile_make(&p, f);
    if (s == MC_OK) {
        header(&out, f, &p);
        s = class_table(&out, &p);
        step_table(&out, &p);
        memory_table(&out, f, &p);
        mc_profile_free(&p);
    }
    pthread_mutex_unlock(lock);
    if (s < 0) {
        mc_str_free(&out);
        return s;
    }
    return mc_str_write(&out, to, "profile");
}

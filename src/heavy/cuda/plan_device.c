/* plan_device.c: timing on a GPU, operands for timing, and the check of a plan against the host's
 * reference.
 *
 * Invariant: a time is that of the work on the device.  Runs are captured and replayed as one graph, so
 * the host's time for enqueuing them is not included, as in a function that is replayed. */
#include "heavy/cuda/cuda.h"
#include "heavy/cuda/fill_args.h"
#include "value/value.h"
#include <math.h>
#include <stdlib.h>

static const char fill_text[] = {
#include "heavy/cuda/fill_text.h"
    , 0 };
const struct mc_cuda_text mc_cuda_fill_text = { "heavy/cuda/fill.cu", fill_text };

/* ---- key and memory ---- */

static void device_name(struct mc_str *out)
{
    const struct mc_cuda *d = mc_cuda_current();
    mc_str_addf(out, "cuda %s", d ? d->name : "?");
}

static void *alloc(size_t bytes)
{
    return mc_cuda_alloc(mc_cuda_current(), bytes, "planner");
}

static void dealloc(void *p)
{
    mc_cuda_free(mc_cuda_current(), p);
}

/* ---- time ---- */

enum { SAMPLES = 15, MOST = 256 };
static const double grain = 200e-6; /* a batch shorter than this measures the launch of its graph */

/* Captures n runs as one graph; NULL: failed. */
static void *record(struct mc_cuda *d, mc_status (*run)(void *arg), void *arg, int n)
{
    void *graph = NULL;
    mc_status s = mc_cuda_capture_begin(d);
    if (s < 0) {
        return NULL;
    }
    for (int i = 0; i < n && s >= 0; i++) {
        s = run(arg);
    }
    if (mc_cuda_capture_end(d, &graph) < 0 || s < 0) {
        mc_cuda_graph_free(d, graph);
        return NULL;
    }
    return graph;
}

/* Seconds between two events around the graph; negative: failed. */
static double replay(struct mc_cuda *d, void *graph)
{
    void *from = mc_cuda_event_record(d);
    const mc_status s = mc_cuda_replay(d, graph);
    void *to = mc_cuda_event_record(d);
    const double t = from && to ? mc_cuda_event_seconds(d, from, to) : -1;
    return s < 0 ? -1 : t;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first runs show whether the plan works, whether it is hopeless, and how many runs make a batch. */
static struct mc_timing time_runs(mc_status (*run)(void *arg), void *arg, double budget, double hopeless)
{
    struct mc_cuda *d = mc_cuda_current();
    struct mc_timing t = { 0 };
    double sample[SAMPLES], begun = mc_now(), end = begun + budget;
    if (run(arg) < 0 || mc_cuda_wait(d) < 0) {
        return t;
    }
    const double start = mc_now(), first = start - begun;
    if (hopeless > 0 && first > 10 * hopeless + 0.05) { /* more than loading takes */
        return (struct mc_timing){ first, first, first, 1 };
    }
    if (run(arg) < 0 || mc_cuda_wait(d) < 0) {
        return t;
    }
    const double once = mc_now() - start;
    if (hopeless > 0 && once > 2 * hopeless + 100e-6) { /* 100e-6: limit of the host's part of a call */
        return (struct mc_timing){ once, once, once, 1 };
    }
    const int n = once > grain ? 1 : (int)MC_MIN(grain / MC_MAX(once / 4, 1e-6) + 1, (double)MOST);
    void *graph = record(d, run, arg, n);
    if (!graph) {
        return t;
    }
    if (replay(d, graph) >= 0) { /* the first launch of a graph uploads it */
        double got;
        do {
            got = replay(d, graph) / n;
            if (got < 0) {
                t.n = 0;
                break;
            }
            sample[t.n++] = got;
        } while (t.n < SAMPLES && mc_now() < end && !(hopeless > 0 && got > hopeless));
    }
    mc_cuda_graph_free(d, graph);
    if (t.n > 0) {
        qsort(sample, (size_t)t.n, sizeof sample[0], by_value);
        t.median = sample[t.n / 2];
        t.least = sample[0];
        t.most = sample[t.n - 1];
    }
    return t;
}

const struct mc_site mc_site_cuda = { .name = device_name, .take = alloc, .give = dealloc, .time = time_runs,
                                  .note = mc_cuda_note };

/* ---- operands ---- */

static size_t bytes_of(const struct mc_extent *e)
{
    return (size_t)e->count * mc_dtypes[e->dtype].size;
}

static size_t first_element(const struct mc_extent *e)
{
    return (size_t)e->before * mc_dtypes[e->dtype].size;
}

void mc_cuda_discard(const struct mc_extent *e, int n, void *operand[8])
{
    for (int i = 0; i < n; i++) {
        if (e[i].count > 0 && operand[i]) {
            mc_cuda_free(mc_cuda_current(), (char *)operand[i] - first_element(&e[i]));
        }
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

static mc_status fill(const struct mc_extent *e, void *to)
{
    const struct mc_cuda_fill_args args = { to, e->count };
    struct mc_str defines = { 0 };
    void *kernel;
    mc_cuda_types(&defines, e->dtype, false);
    mc_code_list *before = mc_cuda_note(NULL); /* a plan does not need the kernel */
    const bool made = mc_cuda_kernels(&mc_cuda_fill_text, &defines,
                                      &(struct mc_cuda_kernel_ref){ &kernel, "fill" }, 1);
    mc_cuda_note(before);
    if (!made) {
        return mc_last_status();
    }
    const struct mc_grid grid = mc_cuda_grid_1d(e->count, 256);
    return mc_cuda_launch_dependent(mc_cuda_current(), kernel, "fill", &grid, &args, sizeof args);
}

mc_status mc_cuda_operands(const struct mc_extent *e, int n, void *operand[8])
{
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int i = 0; i < n; i++) {
        if (e[i].count <= 0) {
            continue;
        }
        char *at = mc_cuda_alloc(mc_cuda_current(), bytes_of(&e[i]), "planner");
        operand[i] = at ? at + first_element(&e[i]) : NULL;
        const mc_status s = at ? fill(&e[i], at) : MC_EMEMORY;
        if (s < 0) {
            mc_cuda_discard(e, n, operand);
            return s;
        }
    }
    return MC_OK;
}

/* ---- verification ---- */

/* Copies all operands from the host to the device, or back. */
static mc_status move(const struct mc_extent *e, int n, void *const *host, void *const *device, bool back)
{
    for (int i = 0; i < n; i++) {
        if (e[i].count > 0) {
            char *h = (char *)host[i] - first_element(&e[i]), *t = (char *)device[i] - first_element(&e[i]);
            struct mc_cuda *d = mc_cuda_current();
            TRY(back ? mc_cuda_copy_to_host(d, h, t, bytes_of(&e[i]))
                     : mc_cuda_copy_to_device(d, t, h, bytes_of(&e[i])));
        }
    }
    return MC_OK;
}

static mc_status run_on_device(const struct mc_plan *plan, const struct mc_extent *e, int n,
                               void *const *host)
{
    void *device[8], *workspace = NULL;
    TRY(mc_cuda_operands(e, n, device));
    mc_status s = move(e, n, host, device, false);
    if (s >= 0 && plan->workspace) {
        workspace = alloc(plan->workspace);
        s = workspace ? MC_OK : MC_EMEMORY;
    }
    s = s < 0 ? s : plan->run(plan, device, workspace, 0);
    s = s < 0 ? s : move(e, n, host, device, true);
    dealloc(workspace);
    mc_cuda_discard(e, n, device);
    return s;
}

static mc_status run_reference(const struct mc_cuda_check *c, const struct mc_problem *p,
                               void *const *operand)
{
    struct mc_problem *copy = mc_alloc(p->family->problem_size, "plans");
    if (!copy) {
        return MC_EMEMORY;
    }
    memcpy(copy, p, p->family->problem_size);
    copy->family = c->host;
    struct mc_plan *truth = mc_plan_with(copy, c->reference);
    const mc_status s = truth ? truth->run(truth, operand, NULL, 0) : MC_EMEMORY;
    mc_plan_free(truth);
    mc_free(copy);
    return s;
}

double mc_cuda_acted(enum mc_act act, double v)
{
    return act == ACT_RELU       ? (v < 0 ? 0 : v)
           : act == ACT_GELU     ? 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))
           : act == ACT_TANH     ? tanh(v)
           : act == ACT_SIGMOID  ? 1 / (1 + exp(-v))
           : act == ACT_ELU      ? (v > 0 ? v : expm1(v))
           : act == ACT_GELU_ERF ? 0.5 * v * erfc(-0.7071067811865476 * v)
           : act == ACT_SWISH    ? v / (1 + exp(-v))
                                 : v;
}

void mc_cuda_finish_on_host(const struct mc_cuda_finish *q, void *y, const void *bias)
{
    const int64_t size = mc_dtypes[q->dtype].size,
                  count = bias || q->act != ACT_NONE ? mc_dims_count(q->rank, q->size) : 0;
    for (int64_t e = 0; e < count; e++) {
        int64_t at = 0, rest = e, c = 0;
        for (int i = q->rank - 1; i >= 0; i--) {
            at += rest % q->size[i] * q->stride[i];
            c = i == q->channel ? rest % q->size[i] : c;
            rest /= q->size[i];
        }
        char *v = (char *)y + at * size;
        const double more = bias ? mc_load_f64(q->dtype, (const char *)bias + c * size) : 0;
        mc_store_f64(q->dtype, v, mc_cuda_acted(q->act, mc_load_f64(q->dtype, v) + more));
    }
}

mc_status mc_cuda_verify(const struct mc_cuda_check *c, const struct mc_problem *p,
                         const struct mc_plan *plan, const struct mc_extent *e, int n)
{
    void *got[8], *want[8];
    TRY(c->host->operands(p, got));
    mc_status s = c->host->operands(p, want);
    if (s < 0) {
        c->host->discard(p, got);
        return s;
    }
    s = run_on_device(plan, e, n, got);
    s = s < 0 ? s : run_reference(c, p, want);
    if (s >= 0) {
        if (c->after) {
            c->after(p, want);
        }
        s = c->compare(p, plan, got, want);
    }
    c->host->discard(p, got);
    c->host->discard(p, want);
    return s;
}

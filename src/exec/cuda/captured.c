/* captured.c: captured calls, and when a call is captured, replayed, or launched step by step.
 *
 * A capture is good for the addresses that it was made with.  They alternate between few where a result is
 * a new array and the caller releases the one before, or where inputs are arrays of the GPU: a plan has
 * several captures.  A caller that keeps all results gives every call a new address: results then get
 * memory of the plan, and are copied from there.  If other addresses go on changing, only those that come
 * again are captured.
 *
 * Invariant: a capture is replayed only if all addresses of the call are those that it was made with. */
#include "exec/cuda/cuda.h"

/* calls in a row whose addresses had no capture, after which addresses count as unsteady */
enum { UNSTEADY = 2 * MC_CUDA_CAPTURES };

/* ---- addresses ---- */

static size_t count(const struct mc_function *f)
{
    return f->code->program.value.n + (size_t)f->code->program.nupdate + 1;
}

/* Compares all addresses of a call with those in `seen`; note: stores them there. */
static bool same_addresses(const struct mc_function *f, char **seen, bool note)
{
    const size_t n = f->code->program.value.n;
    bool same = (n == 0 || memcmp(seen, f->ptr, n * sizeof *f->ptr) == 0) && seen[n] == f->arena;
    for (int i = 0; i < f->code->program.nupdate && (same || note); i++) {
        same = same && seen[n + 1 + (size_t)i] == f->target[i]->value->data;
        if (note) {
            seen[n + 1 + (size_t)i] = f->target[i]->value->data;
        }
    }
    if (note) {
        memcpy(seen, f->ptr, n * sizeof *f->ptr);
        seen[n] = f->arena;
    }
    return same;
}

/* The entry with the addresses of the call; NULL: there is none. */
static struct mc_cuda_captured *find(const struct mc_function *f, struct mc_cuda_fn_plan *q)
{
    for (int i = 0; i < MC_CUDA_CAPTURES; i++) {
        struct mc_cuda_captured *r = &q->captured[i];
        if (r->address && r->with_updates == q->updates && same_addresses(f, r->address, false)) {
            return r;
        }
    }
    return NULL;
}

/* An empty entry, or the one whose last use is longest ago, emptied, with the addresses of the call.  NULL:
 * out of memory. */
static struct mc_cuda_captured *replace(const struct mc_function *f, struct mc_cuda_fn_plan *q)
{
    struct mc_cuda_captured *r = q->captured;
    for (int i = 1; i < MC_CUDA_CAPTURES; i++) {
        r = q->captured[i].used < r->used ? &q->captured[i] : r;
    }
    mc_cuda_graph_free(mc_cuda_of(f->code), r->replay);
    r->replay = NULL;
    if (!r->address && !(r->address = mc_calloc(count(f), sizeof *r->address, "plan"))) {
        return NULL;
    }
    same_addresses(f, r->address, true);
    r->with_updates = q->updates;
    return r;
}

/* ---- capture and replay ---- */

mc_status mc_cuda_fn_steps(struct mc_function *f, const struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    for (int i = 0; i < (int)pr->step.n; i++) {
        mc_status s = mc_step_is_ahead(p, i) ? MC_OK : mc_step_run(f, p, i);
        if (s < 0) {
            return mc_step_error(f, i, s);
        }
    }
    return mc_finish_call(f, p);
}

static mc_status capture(struct mc_function *f, struct mc_shape_plan *p, struct mc_cuda_captured *r)
{
    TRY(mc_cuda_capture_begin(mc_cuda_of(f->code)));
    const bool forks = p->reuse_distance || mc_cuda_fn_code(f)->ranks;
    mc_status s = mc_cuda_can_fork_capture() ? mc_cuda_fn_capture(f, p, forks) : mc_cuda_fn_steps(f, p);
    mc_status end = mc_cuda_capture_end(mc_cuda_of(f->code), &r->replay);
    return s < 0 ? s : end;
}

mc_status mc_cuda_fn_replay(struct mc_function *f, struct mc_shape_plan *p)
{
    struct mc_cuda_fn_plan *q = p->own;
    struct mc_cuda_captured *r = find(f, q);
    q->unseen = r ? 0 : q->unseen + 1;
    if (q->unseen > UNSTEADY && q->way < MC_CUDA_CAPTURE_AGAIN) {
        q->way++; /* for results from the next call on */
        q->unseen = 0;
    }
    const bool wanted = r || q->way < MC_CUDA_CAPTURE_AGAIN;
    r = r ? r : replace(f, q);
    if (!r) {
        return MC_EMEMORY;
    }
    r->used = q->runs;
    if (!wanted) {
        return mc_cuda_fn_steps(f, p);
    }
    TRY(r->replay ? MC_OK : capture(f, p, r));
    q->replayed = r;
    return mc_cuda_replay(mc_cuda_of(f->code), r->replay);
}

void mc_cuda_fn_captures_free(struct mc_function *f, struct mc_cuda_fn_plan *q)
{
    for (int i = 0; i < MC_CUDA_CAPTURES; i++) {
        mc_cuda_graph_free(mc_cuda_of(f->code), q->captured[i].replay);
        mc_free(q->captured[i].address);
        q->captured[i] = (struct mc_cuda_captured){ 0 };
    }
}

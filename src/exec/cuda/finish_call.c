/* finish_call.c: how a call on a GPU ends.  One launch makes all updates; if an index check has failed, it
 * sets the error flag instead.  The host reads the flag when results are copied, at the next call, or in
 * mc_synchronize.
 *
 * Invariant: after a failed check no update is made until the error has been returned. */
#include "exec/cuda/ctc_args.h"
#include "exec/cuda/cuda.h"
#include "exec/cuda/finish_call_args.h"
#include "heavy/factor/cuda/factor_args.h"
#include "op/ctc.h"
#include <stdatomic.h>

/* words of a check; after them, the element that a view returns for an index out of range, or the pivot of a
 * matrix */
enum { CHECK = 4, SPILL = 1,
       SPREAD = 16 << 10 };

static const char source[] = {
#include "exec/cuda/finish_call_text.h"
    , 0 };
const struct mc_cuda_text mc_finish_call_text = { "exec/cuda/finish_call.cu", source };

void mc_finish_call_source(struct mc_str *out)
{
    mc_cuda_source(&mc_finish_call_text, "", out);
}

static mc_status launch(const struct mc_function *f, const struct mc_settle_args *a)
{
    void *kernel = mc_cuda_kernel(&mc_finish_call_text, "", "settle");
    uint64_t most = 0;
    for (int i = 0; i < a->n; i++) {
        most = MC_MAX(most, a->at[i].bytes);
    }
    const unsigned wide = (unsigned)MC_MIN(most / SPREAD + 1, (uint64_t)mc_cuda_of(f->code)->processors);
    const struct mc_grid g = { { wide, (unsigned)MC_MAX(a->n, 1), 1 }, { 256, 1, 1 }, 0 };
    return kernel ? mc_cuda_launch(mc_cuda_of(f->code), kernel, "settle", &g, a, sizeof *a)
                  : mc_last_status();
}

/* ---- before the steps ---- */

/* Is the source of the step's copy itself copied before the steps? */
static bool follows_copy(const struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_program *pr = &f->code->program;
    return p->slot[mc_memory_of(pr, p, pr->step.at[step].src[0])].own;
}

mc_status mc_copies_ahead(struct mc_function *f, const struct mc_shape_plan *p)
{
    struct mc_settle_args a = { .n = 0 };
    for (int i = 0; p->moves && i < (int)f->code->program.step.n; i++) {
        const struct mc_slot *view = mc_step_is_ahead(p, i) ? p->step[i].moving : NULL;
        const bool plain = view && mc_cuda_fn_code(f)->settles && mc_slot_contiguous(view) &&
                           !follows_copy(f, p, i) && a.n < SETTLE_PAIRS;
        if (plain && mc_slot_bytes(view)) {
            a.at[a.n].to = f->ptr[f->code->program.step.at[i].dst[0]];
            a.at[a.n].from = f->ptr[f->code->program.step.at[i].src[0]] + view->offset;
            a.at[a.n++].bytes = mc_slot_bytes(view);
        }
    }
    TRY(a.n ? launch(f, &a) : MC_OK);
    for (int i = 0, n = 0; p->moves && i < (int)f->code->program.step.n; i++) {
        const bool done = n < a.n && mc_step_is_ahead(p, i) &&
                          a.at[n].to == f->ptr[f->code->program.step.at[i].dst[0]];
        const mc_status s = !mc_step_is_ahead(p, i) || done ? MC_OK : mc_step_run(f, p, i);
        n += done;
        if (s < 0) {
            return mc_step_error(f, i, s);
        }
    }
    return MC_OK;
}

/* ---- the end of the steps ---- */

mc_status mc_finish_call(const struct mc_function *f, const struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_cuda_fn_function *own = mc_cuda_fn_of(f);
    struct mc_settle_args a = { own->failed,
                                own->error_flag ? (int64_t *)(void *)own->error_flag->data : NULL, .n = 0 };
    bool owed = own->failed != NULL;
    for (int i = 0; i < pr->nupdate && mc_cuda_fn_plan(p)->updates; i++) {
        const size_t bytes = mc_slot_bytes(&p->slot[pr->update[i]]);
        if (!bytes || mc_is_in_place(f, p, i)) {
            continue;
        }
        if (a.n == SETTLE_PAIRS) {
            TRY(launch(f, &a));
            a.n = 0;
        }
        a.at[a.n].to = f->target[i]->value->data;
        a.at[a.n].from = f->ptr[pr->update[i]];
        a.at[a.n++].bytes = bytes;
        owed = true;
    }
    return owed ? launch(f, &a) : MC_OK;
}

/* ---- errors on the host ---- */

static atomic_llong *word(const struct mc_function *f)
{
    const mc_array *flag = mc_cuda_fn_of(f)->error_flag;
    return flag ? (atomic_llong *)(void *)flag->data : NULL;
}

mc_status mc_cuda_fn_ready(struct mc_function *f)
{
    struct mc_cuda_fn_function *own = mc_cuda_fn_of(f);
    if (!own->checks || own->failed) {
        return MC_OK;
    }
    const int64_t page = 4096;
    own->failed = mc_cuda_alloc(mc_cuda_of(f->code), (CHECK + SPILL) * sizeof(int64_t), "checks");
    TRY(own->failed ? mc_cuda_clear(mc_cuda_of(f->code), own->failed, CHECK * sizeof(int64_t))
                    : mc_last_status());
    own->error_flag = mc_cuda_pinned_array(mc_cuda_of(f->code), MC_INT64, 1,
                                           &page); /* NULL: every call waits and reads the error words */
    if (own->error_flag) {
        atomic_store(word(f), 0);
    }
    return MC_OK;
}

mc_status mc_cuda_fn_error_wait(struct mc_function *f)
{
    const struct mc_cuda_fn_function *own = mc_cuda_fn_of(f);
    int64_t err[CHECK + SPILL] = { 0 };
    if (!own->failed) {
        return MC_OK;
    }
    TRY(mc_cuda_copy_to_host(mc_cuda_of(f->code), err, own->failed, sizeof err));
    if (!err[0]) {
        return MC_OK;
    }
    TRY(mc_cuda_clear(mc_cuda_of(f->code), own->failed, sizeof err));
    if (own->error_flag) {
        atomic_store(word(f), 0);
    }
    if (err[0] == MC_CUDA_ERR_MATRIX) {
        const struct mc_shape_plan *p = mc_newest_plan(f);
        return mc_step_error(f, (int)err[3], mc_cuda_factor_error(p ? p->step[err[3]].exec : NULL, err));
    }
    if (err[0] == MC_CUDA_ERR_CTC) {
        return mc_step_error(f, (int)err[3], mc_ctc_failed(err[1], err[2], err[4]));
    }
    if (err[0] == MC_CUDA_ERR_PART) {
        return mc_step_error(
            f, (int)err[3],
            err[4] < 0 ? mc_fail(MC_EINDEX, "the step of the slice is 0 on axis %lld", (long long)err[1])
                       : mc_fail(MC_ESHAPE,
                                 "the value has size %lld along axis %lld of the region, which has size %lld",
                                 (long long)err[4], (long long)err[1], (long long)err[2]));
    }
    char axis[32] = "";
    if (err[0] < 0) { /* for a region, word 0 is -1 - axis */
        mc_snprintf(axis, sizeof axis, "axis %lld with ", (long long)(-1 - err[0]));
    }
    return mc_step_error(f, (int)err[3],
                         mc_fail(MC_EINDEX, "index %lld is out of range for %ssize %lld", (long long)err[1],
                                 axis, (long long)err[2]));
}

mc_status mc_cuda_fn_error_seen(struct mc_function *f)
{
    const struct mc_cuda_fn_function *own = mc_cuda_fn_of(f);
    return own->failed && (!own->error_flag || atomic_load(word(f))) ? mc_cuda_fn_error_wait(f) : MC_OK;
}

/* ---- all functions that check indices, for mc_synchronize ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before a function's lock */
static struct mc_function *checking;

void mc_cuda_fn_watch(struct mc_function *f)
{
    pthread_mutex_lock(&lock);
    mc_cuda_fn_of(f)->checking = checking;
    checking = f;
    pthread_mutex_unlock(&lock);
}

void mc_cuda_fn_unwatch(struct mc_function *f)
{
    pthread_mutex_lock(&lock);
    for (struct mc_function **p = &checking; *p; p = &mc_cuda_fn_of(*p)->checking) {
        if (*p == f) {
            *p = mc_cuda_fn_of(f)->checking;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

mc_status mc_cuda_fn_synchronize(void)
{
    mc_status s = MC_OK;
    for (int i = 0; i < MC_CUDA_MOST; i++) {
        struct mc_cuda *d = mc_cuda_running(i);
        mc_status t = d ? mc_cuda_enter(d) : MC_OK;
        if (d && t == MC_OK) {
            t = mc_cuda_wait(d);
            mc_cuda_leave(d);
        }
        s = s < 0 ? s : t;
    }
    pthread_mutex_lock(&lock);
    for (struct mc_function *f = checking; f; f = mc_cuda_fn_of(f)->checking) {
        pthread_mutex_lock(&f->lock);
        mc_status t = mc_cuda_enter(mc_cuda_of(f->code));
        if (t == MC_OK) {
            t = mc_cuda_fn_error_seen(f);
            mc_cuda_leave(mc_cuda_of(f->code));
        }
        pthread_mutex_unlock(&f->lock);
        s = s < 0 ? s : t;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* reference_threads.c: host steps whose lines along an axis are independent; threads share the lines.
 *
 * The same for ops whose elements along axis 0 are independent.
 *
 * Invariant: the reference computes each line as a whole, so no bit depends on the number of threads. */
#include "exec/function.h"
#include "device/cpu/cpu.h"

enum { MOST_INPUTS = 4, PARTS = 8 }; /* parts of the work for each thread */
/* for an element, at least; for what OP_ROWS computes, per element of its first input */
static const double SECONDS = 1e-9, ROW_SECONDS = 1e-8;

struct lines {
    const mc_node *n;
    mc_array *const *in, *out;
    int axis;                   /* the axis that is divided into parts */
    int64_t parts;
    pthread_mutex_t lock;
    mc_status status;           /* of the first part that failed */
    int64_t failed;
    char said[300];             /* the failed part's message: errors are per thread */
};

/* The axis that threads share: the longest one other than that of the lines; -1: none has two elements. */
static int other_axis(const mc_node *n, const mc_array *x)
{
    if (n->op->flags & OP_ROWS) {
        return x->dims[0] > 1 ? 0 : -1;
    }
    int64_t line = mc_attr_int(&n->attr[0]);
    int best = -1;
    line += line < 0 ? x->rank : 0;
    for (int i = 0; i < x->rank; i++) {
        if (i != line && x->dims[i] > 1 && (best < 0 || x->dims[i] > x->dims[best])) {
            best = i;
        }
    }
    return best;
}

static void part(void *arg, int64_t at, int slot)
{
    struct lines *l = arg;
    const int64_t size = l->out->dims[l->axis], from = size * at / l->parts,
                  count = size * (at + 1) / l->parts - from;
    mc_array *in[MOST_INPUTS] = { 0 }, *out = mc_array_slice(l->out, l->axis, from, count, 1);
    mc_status s = out ? MC_OK : mc_last_status();
    (void)slot;
    for (int i = 0; i < l->n->nin && s == MC_OK; i++) {
        in[i] = mc_array_slice(l->in[i], l->axis, from, count, 1);
        s = in[i] ? MC_OK : mc_last_status();
    }
    s = s < 0 ? s : l->n->op->eval(l->n, in, &out);
    if (s < 0) {
        pthread_mutex_lock(&l->lock);
        if (l->status == MC_OK || at < l->failed) {
            l->status = s;
            l->failed = at;
            mc_snprintf(l->said, sizeof l->said, "%s", mc_last_error());
        }
        pthread_mutex_unlock(&l->lock);
    }
    for (int i = 0; i < l->n->nin; i++) {
        mc_array_unref(&in[i]);
    }
    mc_array_unref(&out);
}

bool mc_reference_parallel(const mc_node *n, const mc_array *out)
{
    return n->op->flags & (OP_LINES | OP_ROWS) && n->nout == 1 && n->nin <= MOST_INPUTS && out &&
           other_axis(n, out) >= 0;
}

mc_status mc_lines_eval(const mc_node *n, mc_array *const *in, mc_array *out, int threads)
{
    struct lines l = {
        .n = n, .in = in, .out = out, .axis = other_axis(n, out), .lock = PTHREAD_MUTEX_INITIALIZER
    };
    l.parts = MC_MIN(out->dims[l.axis], (int64_t)threads * PARTS);
    const double seconds = n->op->flags & OP_ROWS ? (double)mc_array_size(in[0]) * ROW_SECONDS
                                                  : (double)mc_array_size(out) * SECONDS;
    mc_team_tasks(part, &l, l.parts, threads, threads, seconds);
    pthread_mutex_destroy(&l.lock);
    return l.status < 0 ? mc_fail(l.status, "%s", l.said) : MC_OK;
}

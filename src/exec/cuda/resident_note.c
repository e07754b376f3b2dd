/* resident_note.c: where the operands of a resident loop are in each step, and before which phases its blocks
 * meet at a barrier.
 *
 * Invariant: a phase that reads or writes what another block wrote since the last barrier has one before
 * it. */
#include "exec/cuda/resident.h"

enum { LOOK = 4 };              /* steps of the loop whose memory is compared */

static bool note_address(struct mc_resident_move *m, int64_t t, uint64_t a)
{
    if (t == 0) {
        *m = (struct mc_resident_move){ .first = a, .base = a, .mask = ~(uint64_t)0 };
    } else if (t == 1) {
        m->base = a;
    } else if (t == 2) {
        m->stride = (int64_t)(a - m->base);
    } else if (t == 3 && m->stride && a == m->base) {
        m->mask = 1;
    }
    return a == (t ? m->base + ((uint64_t)(t - 1) & m->mask) * (uint64_t)m->stride : m->first);
}

static bool even_strides(int64_t h, int n, const uint32_t *size, const int64_t *stride)
{
    bool even = size[0] % h == 0 && stride[0] == 1;
    for (int x = 1; x < n; x++) {
        even &= size[x] == 1 || stride[x] % h == 0;
    }
    return even;
}

/* Rows of a batch that is the outermost of n axes, or a part of it; step: bytes.  size[0] elements are v
 * times as many, of `step[0] / v` bytes. */
static struct rows rows_of(const struct mc_cuda_resident *r, int n, const uint32_t *size, const int64_t *step,
                           unsigned v)
{
    const int64_t batch = r->batch;
    while (n > 1 && size[n - 1] == 1) {
        n--;
    }
    const int64_t outer = n ? (int64_t)size[n - 1] * (n == 1 ? v : 1) : 0;
    bool whole = n && batch > 0 && outer % batch == 0 && (n > 1 || outer / batch % r->period == 0);
    for (int x = 0; x < n; x++) {
        whole &= step[x] > 0;
    }
    if (!whole) {
        return (struct rows){ 0, 0 };
    }
    const int64_t each = step[n - 1] / (n == 1 ? v : 1);
    struct rows rows = { outer / batch * each, (outer / batch - 1) * each + (int64_t)sizeof(float) };
    for (int x = 0; x < n - 1; x++) {
        rows.width += (int64_t)(size[x] - (x ? 1 : 0)) * step[x] - (x ? 0 : (int64_t)sizeof(float));
    }
    return rows;
}

static bool even_map(const struct mc_cuda_resident *r, const struct mc_function *f, const struct phase *w,
                     int k, struct rows *rows)
{
    const struct mc_kernel *q = w->st->kernel;
    const struct mc_grid_args a = mc_grid_args(w->map->args, q->operand.n);
    const struct mc_grid_kernel *g = &mc_cuda_fn_code(f)->grid[w->st - f->code->program.step.at];
    const unsigned v = w->map->fn == g->vector ? (unsigned)mc_grid_vector(q) : 1;
    const int64_t bytes = sizeof(float), count = (int64_t)a.head->count[0] * v;
    if (mc_dtypes[q->operand.at[k].dtype].size != sizeof(float) || q->operand.at[k].index ||
        count % r->period) {
        return false;
    }
    *rows = rows_of(r, (int)a.head->axes[0], a.head->size, a.step[k], v);
    bool even = a.head->size[0] * v % (unsigned)r->period == 0 && a.step[k][0] == v * bytes;
    for (uint32_t x = 1; x < a.head->axes[0]; x++) {
        even &= a.step[k][x] % (r->period * bytes) == 0;
    }
    return even;
}

/* Is the k-th value of a phase even?  Sets its rows. */
static bool is_even(const struct mc_cuda_resident *r, const struct mc_function *f, const struct phase *w,
                    int k, struct rows *rows)
{
    const int h = r->period;
    const int64_t bytes = sizeof(float);
    if (!h) {
        return false;
    }
    if (w->map) {
        return even_map(r, f, w, k, rows);
    }
    if (w->product) {
        const struct mc_gemm_problem *q = w->product;
        *rows = (struct rows){ (k == 2 ? q->cs[1] : q->c0s[1]) * bytes, q->n * bytes };
        return k == 2   ? q->m == 1 || q->cs[1] % h == 0
               : k == 3 ? q->c0s[2] == 1 && (q->m == 1 || q->c0s[1] % h == 0)
                        : false;
    }
    int64_t step[RESIDENT_RANK];
    for (int x = 0; x < RESIDENT_RANK; x++) {
        step[x] = (k ? w->copy.to : w->copy.from)[x] * bytes;
    }
    *rows = rows_of(r, RESIDENT_RANK, w->copy.size, step, 1);
    return even_strides(h, RESIDENT_RANK, w->copy.size, k ? w->copy.to : w->copy.from);
}

static struct span span_of(const struct mc_function *f, const struct mc_shape_plan *p, int v)
{
    v = mc_cuda_fn_memory_of(f, p, v);
    return (struct span){ .from = f->ptr[v], .end = f->ptr[v] + mc_slot_bytes(&p->slot[v]) };
}

/* Does a row of one operand overlap only the same row of the other? */
static bool same_rows(const struct span *a, const struct span *b)
{
    const struct span *first = a->at <= b->at ? a : b, *second = first == a ? b : a;
    return first->rows.pitch > 0 && first->rows.pitch == second->rows.pitch &&
           (int64_t)(second->at - first->at) + second->rows.width <= first->rows.pitch &&
           first->rows.width <= first->rows.pitch;
}

/* Do two accesses need a barrier between them? */
static bool conflict_of(const struct mc_cuda_resident *r, const struct span *a, const struct span *b)
{
    const bool together = (a->write || b->write) && a->from < b->end && b->from < a->end;
    return together &&
           !(a->even && b->even && (int64_t)(a->at - b->at) % (r->period * (int64_t)sizeof(float)) == 0 &&
             (r->bands == 1 || same_rows(a, b)));
}

/* Notes what phase i touches; where that overlaps what others wrote, a barrier precedes it. */
static bool touch(struct mc_cuda_resident *r, int i, int n, const struct span *s)
{
    bool conflict = false;
    for (int k = 0; k < n; k++) {
        for (size_t o = 0; o < r->open.n; o++) {
            conflict |= conflict_of(r, &s[k], &r->open.at[o]);
        }
    }
    if (conflict) {
        r->head.barriers |= 1u << i;
        r->open.n = 0;
    }
    bool good = true;
    for (int k = 0; k < n && good; k++) {
        good = VEC_PUSH(r->open, s[k]);
    }
    return good;
}

/* The address of a phase's k-th value; to: those of the copied results. */
static char *address(const struct phase *w, const struct mc_function *f, int k, char *const *to)
{
    const int v = w->map ? w->map->value[k] : w->value[k];
    return k == 1 && w->result ? to[w->result - 1] : v < 0 ? NULL : f->ptr[v] + (k == 1 ? w->by : 0);
}

static bool is_written(const struct phase *w, int k)
{
    return w->map ? w->st->kernel->operand.at[k].dst : w->product ? k == 2 : k == 1;
}

/* A copy to the place where the value is already does nothing. */
static bool note_phase(struct mc_cuda_resident *r, const struct mc_function *f, const struct mc_shape_plan *p,
                       int i, char *const *to)
{
    struct phase *w = &r->phase[i];
    const int64_t t = r->noted;
    struct span s[MOST_OPERANDS];
    int spans = 0;
    bool good = true;
    for (int k = 0; k < w->nvalue && good; k++) {
        const uintptr_t at = (uintptr_t)address(w, f, k, to);
        const int v = w->map ? w->map->value[k] : w->value[k];
        struct mc_resident_move *m = &r->move[w->move + k];
        good = note_address(m, t, at) &&
               (!w->product || (k == 0 ? at % WORD == 0 : k != 1 || m->first == at)); /* W stays */
        if (at && t < LOOK) {
            struct span *x = &s[spans++];
            *x = v >= 0 ? span_of(f, p, v)
                        : (struct span){ (char *)at, (char *)at + w->copy.count * sizeof(float) };
            x->at = at;
            x->write = is_written(w, k);
            x->even = is_even(r, f, w, k, &x->rows);
        }
    }
    const bool idle = !w->map && !w->product && address(w, f, 0, to) == address(w, f, 1, to);
    return good && (idle || touch(r, i, spans, s));
}

bool mc_cuda_resident_note(struct mc_function *f, const struct mc_shape_plan *p, char *const *to)
{
    struct mc_cuda_resident *r = mc_cuda_fn_plan(p)->resident;
    bool good = true;
    for (int i = 0; i < r->n && good; i++) {
        good = note_phase(r, f, p, i, to);
    }
    r->noted++;
    return good;
}


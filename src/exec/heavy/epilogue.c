/* epilogue.c: which terms of an epilogue are a bias and a residual at one shape, for solvers that compute
 * epilogues.
 *
 * Invariant: a solver computes all of an epilogue or nothing; in that case the step's kernel runs after
 * it. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "op/conv.h"

/* Does `a` have the sizes and strides of y? */
static bool is_whole(const struct mc_slot *y, const struct mc_slot *a)
{
    bool all = mc_dims_equal(y->type.rank, y->type.dims, a->type.rank, a->type.dims);
    for (int i = 0; all && i < y->type.rank; i++) {
        all = y->type.dims[i] == 1 || y->strides[i] == a->strides[i];
    }
    return all;
}

/* Does `a` have one number for each position of y along the axis, adjacent in memory? */
static bool is_bias(const struct mc_slot *y, const struct mc_slot *a, int axis)
{
    bool is = axis >= 0 && a->type.rank == y->type.rank;
    for (int i = 0; is && i < y->type.rank; i++) {
        is = a->type.dims[i] == (i == axis ? y->type.dims[i] : 1);
    }
    return is && (y->type.dims[axis] == 1 || a->strides[axis] == (int64_t)mc_dtypes[a->type.dtype].size);
}

bool mc_heavy_epilogue_at(const struct mc_function *f, const struct mc_shape_plan *p, int step, int axis,
                          struct mc_heavy_epilogue *e)
{
    return f->code->backend->epilogues == EPILOGUE_SOLVER && f->code->mode == MODE_FAST_RUN &&
           mc_heavy_epilogue_terms(f, p, step, axis, e);
}

bool mc_heavy_epilogue_terms(const struct mc_function *f, const struct mc_shape_plan *p, int step, int axis,
                             struct mc_heavy_epilogue *e)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_epilogue *q = &st->epilogue;
    *e = (struct mc_heavy_epilogue){ false, q->act, -1, -1, -1, q->result };
    const bool chained = st->before >= 0 && mc_conv_pass_of(st->heavy->op) >= 0;
    if (!q->known || chained) {
        return false;
    }
    const struct mc_slot *y = &p->slot[mc_heavy_result(st, 0)];
    if (q->cast != y->type.dtype || !is_whole(y, &p->slot[q->result])) {
        return false;
    }
    for (int i = 0; i < q->nterm; i++) {
        const struct mc_slot *term = &p->slot[q->term[i]];
        int *to = e->bias < 0 && is_bias(y, term, axis)  ? &e->bias
                  : e->residual < 0 && is_whole(y, term) ? &e->residual
                                                         : &e->other;
        if (*to >= 0 || term->type.rank != y->type.rank) {
            return false;
        }
        *to = q->term[i];
    }
    return true;
}

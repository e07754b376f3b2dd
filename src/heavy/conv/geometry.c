/* geometry.c: the operands of a convolution as plain arrays, and which positions read which elements.
 *
 * Invariant: an element's address is the sum of its indices times the strides, whatever their sign. */
#include "heavy/conv/solver.h"

struct mc_conv_array mc_conv_array(const struct mc_conv_problem *p, int role)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t cg = s->groups ? s->c / s->groups : 0;
    switch (role) {
    case CONV_X: return (struct mc_conv_array){ 5, { s->n, s->c, s->in[0], s->in[1], s->in[2] }, p->at.x };
    case CONV_Y: return (struct mc_conv_array){ 5, { s->n, s->f, s->out[0], s->out[1], s->out[2] }, p->at.y };
    default:
        return (
            struct mc_conv_array){ s->unshared ? 8 : 5,
                                   { s->f, cg, s->k[0], s->k[1], s->k[2], s->out[0], s->out[1], s->out[2] },
                                   p->at.w };
    }
}

int64_t mc_conv_count(const struct mc_conv_array *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++) {
        n *= a->size[i];
    }
    return n;
}

/* Axes from the outermost to the innermost. In an unshared w the positions come between filters and
 * channels. */
static const int plain[] = { 0, 1, 2, 3, 4 }, placed[] = { 0, 5, 6, 7, 1, 2, 3, 4 };

void mc_conv_dense_strides(const struct mc_conv_array *a, int64_t *stride)
{
    const int *order = a->rank == 8 ? placed : plain;
    int64_t step = 1;
    for (int i = a->rank - 1; i >= 0; i--) {
        stride[order[i]] = step;
        step *= MC_MAX(a->size[order[i]], (int64_t)1);
    }
}

static bool is_contiguous(const struct mc_conv_array *a, int from)
{
    const int *order = a->rank == 8 ? placed : plain;
    int64_t step = 1;
    for (int i = a->rank - 1; i >= from; i--) {
        const int axis = order[i];
        if (a->size[axis] > 1 && a->stride[axis] != step) {
            return false;
        }
        step *= a->size[axis];
    }
    return true;
}

bool mc_conv_dense(const struct mc_conv_problem *p, int role)
{
    const struct mc_conv_array a = mc_conv_array(p, role);
    return is_contiguous(&a, 0);
}

bool mc_conv_dense_inner(const struct mc_conv_problem *p, int role, int inner)
{
    const struct mc_conv_array a = mc_conv_array(p, role);
    return is_contiguous(&a, a.rank - inner);
}

void mc_conv_range(const struct mc_conv_shape *s, int axis, int64_t a, int64_t *lo, int64_t *hi)
{
    const int64_t first = a * s->dilation[axis] - s->pad[axis], step = s->stride[axis], out = s->out[axis];
    const int64_t from = step == 1 ? -first : conv_ceil(-first, step);
    const int64_t to = step == 1 ? s->in[axis] - first : conv_ceil(s->in[axis] - first, step);
    *lo = MC_MIN(MC_MAX(from, (int64_t)0), out);
    *hi = MC_MAX(MC_MIN(to, out), *lo);
}

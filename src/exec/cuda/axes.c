/* axes.c: the axes of a kernel at one shape on a GPU: axes of size 1 are dropped, adjacent axes joined, and
 * the layout of the operands along them is checked.
 *
 * Invariant: two axes are joined only if every operand is contiguous across them. */
#include "exec/cuda/grid.h"

static bool joins(const struct mc_axes *s, int nop, const struct mc_axis *inner, int outer)
{
    for (int i = 0; i < nop; i++) {
        if (s->stride[i][outer] != s->stride[i][inner->at] * inner->size) {
            return false;
        }
    }
    return true;
}

/* The kept or the reduced axes, innermost first, joined where possible; one of size 1 if there are none. */
void mc_axes_collapse(struct mc_axes *s, const struct mc_kernel *k, const int64_t *size, bool reduced)
{
    int first = reduced ? s->n[0] : 0, n = 0, nop = (int)k->operand.n;
    s->count[reduced] = 1;
    for (int a = k->rank; a-- > 0;) {
        if (!(k->varies & 1u << a) || ((k->reduced & 1u << a) != 0) != reduced) {
            continue;
        }
        s->count[reduced] *= size[a];
        struct mc_axis *last = &s->axis[first + MC_MAX(n, 1) - 1];
        if (size[a] == 1) {
            continue;
        }
        if (n && joins(s, nop, last, a)) {
            last->size *= size[a];
        } else {
            s->axis[first + n++] = (struct mc_axis){ size[a], a };
        }
    }
    s->n[reduced] = n;
}

/* Are all operands contiguous along the innermost axis of this kind, so that v elements can be read at once
 * from aligned addresses? */
bool mc_axes_dense(const struct mc_kernel *k, const struct mc_axes *s, const struct mc_grid_launch *l,
                   const struct mc_slot *slot, int first, int v)
{
    int inner = s->axis[first].at;
    if (s->axis[first].size % v) {
        return false;
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        int64_t size = o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size;
        bool moves = k->inner >= 0 && o->varies & 1u << k->inner;
        if (s->stride[i][inner] != (moves ? size : 0)) {
            return false;
        }
        if (moves && !o->index && (slot[l->value[i]].offset % (v * size) || slot[l->value[i]].loose)) {
            return false;
        }
        for (int a = 0; a < s->n[0] + s->n[1] && moves && !o->index; a++) {
            if (a != first && s->stride[i][s->axis[a].at] % (v * size)) {
                return false;
            }
        }
    }
    return true;
}

/* At most two axes are reduced, there is room to read one step after the last, and the steps of the reduced
 * axes fit 32 bits, also times a vector's size. */
bool mc_axes_fit_int32(const struct mc_kernel *k, const struct mc_axes *s)
{
    const int64_t most = INT32_MAX / 16;
    bool near = s->n[1] <= 2 && s->n[0] + 2 <= MC_MAX_RANK;
    for (int a = s->n[0]; a < s->n[0] + s->n[1]; a++) {
        for (size_t i = 0; i < k->operand.n; i++) {
            near &= s->stride[i][s->axis[a].at] >= -most && s->stride[i][s->axis[a].at] <= most;
        }
    }
    return near;
}

void mc_axes_divide(struct mc_grid_head *h, int axis)
{
    const struct mc_cuda_divider d = mc_cuda_divider(h->size[axis]);
    h->magic[axis] = d.times;
    h->shift[axis] = d.shift;
}

/* static_size.c: sizes of a step that are static.
 *
 * Invariant: a size that the types of its nodes state is the size in every call. */
#include "lower/lower.h"

int64_t mc_static_length(const struct mc_step *st)
{
    const struct mc_kernel *k = st->kernel;
    int64_t size[MC_MAX_RANK], length = 1;
    for (int a = 0; a < MC_MAX_RANK; a++) {
        size[a] = 1;
    }
    for (int i = 0; i < st->nnode; i++) {
        const mc_node *n = st->node[i];
        for (int j = -1; j < (n->op->flags & OP_REDUCES ? n->nin : 0); j++) {
            const struct mc_type *t = j < 0 ? &n->type : &n->in[j]->type;
            for (int a = 0; a < t->rank && t->rank == k->rank; a++) {
                size[a] = t->dims[a] > 1 || (t->dims[a] < 0 && size[a] == 1) ? t->dims[a] : size[a];
            }
        }
    }
    for (int a = 0; a < k->rank && length >= 0; a++) {
        bool walked = k->mode == KERNEL_MAP || k->reduced & 1u << a;
        length = !walked ? length
                 : size[a] < 0 || !mc_mul_size((size_t)length, (size_t)size[a], &(size_t){ 0 })
                     ? -1
                     : length * size[a];
    }
    return length;
}

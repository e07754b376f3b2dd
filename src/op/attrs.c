/* attrs.c: reading of attributes for infer and eval. */
#include "op/op.h"

int64_t mc_attr_int(const struct mc_attr *a)
{
    return a->n ? a->ints[0] : 0;
}

mc_status mc_axis_check(const char *op, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        return mc_fail(MC_ESHAPE, "%s: axis %lld is out of range for rank %d", op, (long long)axis, rank);
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return MC_OK;
}

static mc_status axes(const char *op, const struct mc_attr *a, int rank, int *axis, int *n)
{
    unsigned seen = 0;
    *n = 0;
    for (int i = 0; i < (a->none ? rank : a->n); i++) {
        int k = 0;
        TRY(mc_axis_check(op, a->none ? i : a->ints[i], rank, &k));
        if (seen & 1u << k) {
            return mc_fail(MC_EARG, "%s: axis %d is given twice", op, k);
        }
        seen |= 1u << k;
    }
    for (int k = 0; k < rank; k++) {
        if (seen & 1u << k) {
            axis[(*n)++] = k;
        }
    }
    return MC_OK;
}

mc_status mc_attr_axes(const struct mc_infer *q, int i, int rank, int *axis, int *n)
{
    return axes(q->op->name, &q->attr[i], rank, axis, n);
}

mc_status mc_axes_of(const mc_node *n, int attr, int rank, int *axis)
{
    int count = 0;
    mc_status s = axes(n->op->name, &n->attr[attr], rank, axis, &count);
    return s < 0 ? s : (mc_status)count;
}

const struct mc_attr *mc_attr_named(const mc_node *n, const char *name)
{
    int k = 0;
    for (int i = 0; i < n->op->sig->nparam; i++) {
        if (n->op->sig->param[i].kind > ATTR_TENSORS) {
            if (strcmp(n->op->sig->param[i].name, name) == 0) {
                return &n->attr[k];
            }
            k++;
        }
    }
    return NULL;
}

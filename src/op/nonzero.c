/* nonzero.c: the indices of the elements that are not 0, one vector for each axis, in C order. */
#include "op/index.h"

static int64_t visit(const mc_array *x, mc_array *const *out)
{
    struct mc_walk w;
    int64_t n = 0;
    int last = x->rank - 1;
    if (!mc_walk_begin(&w, x->rank, x->dims, 1, 1, (char *[]){ x->data },
                       (const int64_t *[]){ x->strides })) {
        return 0;
    }
    do {
        for (int64_t j = 0; j < x->dims[last]; j++) {
            const char *p = w.p[0] + j * x->strides[last];
            if (mc_is_float(x->dtype) ? mc_load_f64(x->dtype, p) == 0 : mc_load_i64(x->dtype, p) == 0) {
                continue;
            }
            for (int k = 0; out && k < x->rank; k++) {
                mc_store_i64(MC_INT64, out[k]->data + (size_t)n * sizeof(int64_t), k == last ? j : w.at[k]);
            }
            n++;
        }
    } while (mc_walk_next(&w));
    return n;
}

/* A mask must have the sizes of the tensor that it masks; they are the inputs after it, if given. */
static mc_status fits(int64_t have, const mc_array *want)
{
    int64_t size = want ? mc_load_i64(want->dtype, want->data) : have;
    return have < 0 || have == size ? MC_OK
                                    : mc_fail(MC_ESHAPE, "the mask has size %lld, but the axis has size %lld",
                                              (long long)have, (long long)size);
}

mc_status mc_nonzero_infer(struct mc_infer *q)
{
    int64_t n = q->value[0] && q->in[0].rank ? visit(q->value[0], NULL) : -1;
    if (q->in[0].rank == 0) {
        return mc_fail(MC_ESHAPE, "nonzero: expected at least one axis, got a scalar");
    }
    for (int k = 0; k + 1 < q->nin && k < q->in[0].rank; k++) {
        TRY(fits(q->in[0].dims[k], q->value[1 + k]));
    }
    q->nout = q->in[0].rank;
    for (int i = 0; i < q->nout; i++) {
        q->out[i] = mc_type_make(MC_INT64, 1, &n);
    }
    return MC_OK;
}

mc_status mc_nonzero_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    for (int k = 0; k + 1 < n->nin && k < in[0]->rank; k++) {
        TRY(fits(in[0]->dims[k], in[1 + k]));
    }
    visit(in[0], out);
    return MC_OK;
}

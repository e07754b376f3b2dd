/* reshape.c: the same elements in the same order with another shape.
 *
 * Invariant: elements are copied only if no strides describe the new shape. */
#include "value/value.h"

/* Replaces the one -1 by its size, and checks that the numbers of elements agree. */
static mc_status complete_dims(const mc_array *a, int rank, const int64_t *dims, int64_t *out)
{
    int hole = -1;
    int64_t have = mc_array_size(a), known;
    if (rank < 0 || rank > MC_MAX_RANK || (rank > 0 && !dims)) {
        return mc_fail(MC_ESHAPE, "mc_array_reshape: an array cannot have %d axes; at most %d are possible",
                       rank, MC_MAX_RANK);
    }
    for (int i = 0; i < rank; i++) {
        out[i] = dims[i];
        if (dims[i] == -1 && hole < 0) {
            hole = i;
            out[i] = 1;
        }
    }
    known = mc_dims_count(rank, out);
    if (hole >= 0 && known > 0 && have % known == 0) {
        out[hole] = have / known;
        known = have;
    }
    /* 0 = ? * 0 does not determine the size */
    if (known != have || (hole >= 0 && known == 0 && out[hole] == 1)) {
        struct mc_str text = { 0 };
        mc_dims_text(&text, a->rank, a->dims);
        mc_str_add(&text, " to ");
        mc_dims_text(&text, rank, dims);
        mc_status s = text.bad ? MC_EMEMORY
                               : mc_fail(MC_ESHAPE, "mc_array_reshape: cannot reshape %s", text.s);
        mc_str_free(&text);
        return s;
    }
    return MC_OK;
}

/* Strides of a's elements with the new dims; false: there are none.  Axes of length 1 do not matter.  Both
 * shapes are split into the shortest groups of axes with equal products; a group can be reshaped if its old
 * axes are contiguous relative to each other. */
static bool regroup(const mc_array *a, int rank, const int64_t *dims, int64_t *strides)
{
    int64_t old[MC_MAX_RANK], step[MC_MAX_RANK];
    int n = 0;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != 1) {
            old[n] = a->dims[i];
            step[n++] = a->strides[i];
        }
    }
    int i = 0, j = 0;
    while (i < n && j < rank) {
        int64_t from = old[i], to = dims[j];
        int i1 = i + 1, j1 = j + 1;
        while (from != to) {
            if (from < to) {
                from *= old[i1++];
            } else {
                to *= dims[j1++];
            }
        }
        for (int k = i; k + 1 < i1; k++) {
            if (step[k] != step[k + 1] * old[k + 1]) {
                return false;
            }
        }
        int64_t s = step[i1 - 1];
        for (int k = j1 - 1; k >= j; k--) {
            strides[k] = s;
            s *= dims[k];
        }
        i = i1;
        j = j1;
    }
    for (; j < rank; j++) { /* the remaining axes have length 1 */
        strides[j] = mc_dtypes[a->dtype].size;
    }
    return true;
}

mc_array *mc_array_reshape(const mc_array *a, int rank, const int64_t *dims)
{
    int64_t full[MC_MAX_RANK], strides[MC_MAX_RANK];
    if (!a) {
        mc_fail(MC_EARG, "mc_array_reshape: the array is NULL");
        return NULL;
    }
    if (complete_dims(a, rank, dims, full) < 0) {
        return NULL;
    }
    if (mc_array_is_contiguous(a)) {
        mc_contiguous_strides(a->dtype, rank, full, strides);
        return mc_array_view(a, rank, full, strides, a->data);
    }
    if (regroup(a, rank, full, strides)) {
        return mc_array_view(a, rank, full, strides, a->data);
    }
    mc_array *flat = mc_array_copy(a);
    if (!flat) {
        return NULL;
    }
    mc_contiguous_strides(a->dtype, rank, full, strides);
    mc_array *r = mc_array_view(flat, rank, full, strides, flat->data);
    mc_array_unref(&flat);
    return r;
}

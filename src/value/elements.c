/* elements.c: operations on the elements of arrays: walking, copying, casting, comparing.
 *
 * Invariant: only mc_walk steps through strided memory; all other code gets rows from it. */
#include "value/value.h"
#include <math.h>

/* ---- the odometer ---- */

bool mc_walk_begin(struct mc_walk *w, int rank, const int64_t *dims, int inner, int n, char *const *data,
                   const int64_t *const *strides)
{
    int64_t all = mc_dims_count(rank, dims);
    w->rank = MC_MAX(rank - inner, 0);
    w->n = n;
    for (int i = 0; i < w->rank; i++) {
        w->dims[i] = dims[i];
        w->at[i] = 0;
    }
    for (int k = 0; k < n; k++) {
        w->p[k] = data[k];
        w->strides[k] = strides[k];
    }
    w->left = all > 0 ? mc_dims_count(w->rank, dims) : 0;
    return w->left > 0;
}

bool mc_walk_next(struct mc_walk *w)
{
    if (--w->left <= 0) {
        return false;
    }
    for (int i = w->rank - 1; i >= 0; i--) {
        if (++w->at[i] < w->dims[i]) {
            for (int k = 0; k < w->n; k++) {
                w->p[k] += w->strides[k][i];
            }
            return true;
        }
        for (int k = 0; k < w->n; k++) {
            w->p[k] -= w->strides[k][i] * (w->dims[i] - 1);
        }
        w->at[i] = 0;
    }
    return false;
}

/* Two arrays of one shape with axes merged: the fewest axes that give the same pairs of elements in the same
 * order. */
struct two {
    int rank;
    int64_t dims[MC_MAX_RANK], sa[MC_MAX_RANK], sb[MC_MAX_RANK];
};

static struct two merge_axes(const mc_array *a, const mc_array *b)
{
    struct two t = { 0 };
    for (int i = 0; i < a->rank; i++) {
        int last = t.rank - 1;
        if (a->dims[i] == 1) {
            continue;
        }
        if (last >= 0 && t.sa[last] == a->strides[i] * a->dims[i] &&
            t.sb[last] == b->strides[i] * a->dims[i]) {
            t.dims[last] *= a->dims[i];
        } else {
            t.dims[++last] = a->dims[i];
        }
        t.sa[last] = a->strides[i];
        t.sb[last] = b->strides[i];
        t.rank = last + 1;
    }
    if (t.rank == 0) {
        t.dims[t.rank++] = mc_array_size(a);
        t.sa[0] = mc_dtypes[a->dtype].size;
        t.sb[0] = mc_dtypes[b->dtype].size;
    }
    return t;
}

/* ---- copies ---- */

static void convert_all(mc_array *dst, const mc_array *src)
{
    struct two t = merge_axes(dst, src);
    struct mc_walk w;
    int in = t.rank - 1;
    if (!mc_walk_begin(&w, t.rank, t.dims, 1, 2, (char *[]){ dst->data, src->data },
                       (const int64_t *[]){ t.sa, t.sb })) {
        return;
    }
    do {
        mc_convert(dst->dtype, w.p[0], t.sa[in], src->dtype, w.p[1], t.sb[in], t.dims[in]);
    } while (mc_walk_next(&w));
}

mc_array *mc_array_cast(const mc_array *a, mc_dtype d)
{
    if (!a) {
        mc_fail(MC_EARG, "mc_array_cast: the array is NULL");
        return NULL;
    }
    if (mc_array_space(a) && a->dtype == d) {
        return mc_array_on_host(a);
    }
    mc_array *near = mc_array_on_host(a), *r = near ? mc_array_empty(d, a->rank, a->dims) : NULL;
    if (r) {
        convert_all(r, near);
    }
    mc_array_unref(&near);
    return r;
}

mc_array *mc_array_copy(const mc_array *a)
{
    if (!a) {
        mc_fail(MC_EARG, "mc_array_copy: the array is NULL");
        return NULL;
    }
    return mc_array_cast(a, a->dtype);
}

static mc_status fail_shapes(const mc_array *dst, const mc_array *src)
{
    struct mc_str text = { 0 };
    mc_dims_text(&text, src->rank, src->dims);
    mc_str_add(&text, " to ");
    mc_dims_text(&text, dst->rank, dst->dims);
    mc_status s = text.bad ? MC_EMEMORY
                           : mc_fail(MC_ESHAPE, "mc_array_assign: cannot assign shape %s", text.s);
    mc_str_free(&text);
    return s;
}

/* If the arrays share memory, src is copied first, so that no element is read after it was written. */
mc_status mc_array_assign(mc_array *dst, const mc_array *src)
{
    if (!dst || !src) {
        return mc_fail(MC_EARG, "mc_array_assign: the array is NULL");
    }
    if (!mc_dims_equal(dst->rank, dst->dims, src->rank, src->dims)) {
        return fail_shapes(dst, src);
    }
    if (mc_array_space(dst) || mc_array_space(src)) {
        return mc_array_assign_device(dst, src);
    }
    if (dst->data == src->data && dst->dtype == src->dtype &&
        mc_dims_equal(dst->rank, dst->strides, src->rank, src->strides)) {
        return MC_OK; /* onto itself: for example the borrowed result of the previous call */
    }
    if (!mc_array_overlaps(dst, src)) {
        convert_all(dst, src);
        return MC_OK;
    }
    mc_array *copy = mc_array_copy(src);
    if (!copy) {
        return mc_last_status();
    }
    convert_all(dst, copy);
    mc_array_unref(&copy);
    return MC_OK;
}

/* ---- single elements ---- */

static char *element(const mc_array *a, const int64_t *index, const char *who)
{
    char *p = a ? a->data : NULL;
    if (!a || mc_array_size(a) == 0) {
        mc_fail(MC_EINDEX, "%s: the array is NULL or empty", who);
        return NULL;
    }
    for (int i = 0; index && i < a->rank; i++) {
        if (index[i] < 0 || index[i] >= a->dims[i]) {
            mc_fail(MC_EINDEX, "%s: index %lld is out of range for axis %d with size %lld", who,
                    (long long)index[i], i, (long long)a->dims[i]);
            return NULL;
        }
        p += index[i] * a->strides[i];
    }
    return p;
}

double mc_array_get(const mc_array *a, const int64_t *index)
{
    uint64_t box;
    const char *p = element(a, index, "mc_array_get");
    if (!p || mc_array_fetch(a, &box, p, mc_dtypes[a->dtype].size) < 0) {
        return (double)NAN;
    }
    return mc_load_f64(a->dtype, &box);
}

mc_status mc_array_set(mc_array *a, const int64_t *index, double value)
{
    char *p = element(a, index, "mc_array_set");
    if (!p) {
        return MC_EINDEX;
    }
    uint64_t box;
    mc_store_f64(a->dtype, &box, value);
    return mc_array_store(a, p, &box, mc_dtypes[a->dtype].size);
}

/* ---- comparisons ---- */

static bool same_bits(const mc_array *a, const mc_array *b)
{
    struct two t = merge_axes(a, b);
    struct mc_walk w;
    int in = t.rank - 1;
    size_t size = mc_dtypes[a->dtype].size;
    bool flat = t.sa[in] == (int64_t)size && t.sb[in] == (int64_t)size;
    int64_t steps = flat ? 1 : t.dims[in];
    size_t bytes = flat ? size * (size_t)t.dims[in] : size;
    if (!mc_walk_begin(&w, t.rank, t.dims, 1, 2, (char *[]){ a->data, b->data },
                       (const int64_t *[]){ t.sa, t.sb })) {
        return true;
    }
    do {
        for (int64_t i = 0; i < steps; i++) {
            if (memcmp(w.p[0] + i * t.sa[in], w.p[1] + i * t.sb[in], bytes) != 0) {
                return false;
            }
        }
    } while (mc_walk_next(&w));
    return true;
}

/* False if an array cannot be copied to the host. */
bool mc_array_same_bits(const mc_array *a, const mc_array *b)
{
    if (a->dtype != b->dtype || !mc_dims_equal(a->rank, a->dims, b->rank, b->dims)) {
        return false;
    }
    mc_array *na = mc_array_on_host(a), *nb = mc_array_on_host(b);
    bool same = na && nb && same_bits(na, nb);
    mc_array_unref(&na);
    mc_array_unref(&nb);
    return same;
}

static bool close_enough(double x, double y, double rtol, double atol)
{
    if (isnan(x) || isnan(y)) {
        return isnan(x) && isnan(y);
    }
    return x == y || (isfinite(x) && isfinite(y) && fabs(x - y) <= atol + rtol * fabs(y));
}

/* Integers beyond 2^53 may be equal as doubles, so without a tolerance they are compared as integers. */
static int64_t differs(const mc_array *a, const mc_array *b, double rtol, double atol)
{
    enum { CHUNK = 256 };
    double x[CHUNK], y[CHUNK];
    struct mc_walk w;
    int64_t flat = 0;
    struct two t = merge_axes(a, b);
    int in = t.rank - 1;
    bool exact = !mc_is_float(a->dtype) && !mc_is_float(b->dtype) && rtol == 0 && atol == 0;
    if (!mc_walk_begin(&w, t.rank, t.dims, 1, 2, (char *[]){ a->data, b->data },
                       (const int64_t *[]){ t.sa, t.sb })) {
        return -1;
    }
    do {
        for (int64_t i = 0; i < t.dims[in]; i += CHUNK) {
            int64_t n = MC_MIN(t.dims[in] - i, (int64_t)CHUNK);
            const char *pa = w.p[0] + i * t.sa[in], *pb = w.p[1] + i * t.sb[in];
            mc_convert(MC_FLOAT64, x, sizeof *x, a->dtype, pa, t.sa[in], n);
            mc_convert(MC_FLOAT64, y, sizeof *y, b->dtype, pb, t.sb[in], n);
            for (int64_t k = 0; k < n; k++) {
                if (!close_enough(x[k], y[k], rtol, atol) ||
                    (exact &&
                     mc_load_i64(a->dtype, pa + k * t.sa[in]) != mc_load_i64(b->dtype, pb + k * t.sb[in]))) {
                    return flat + i + k;
                }
            }
        }
        flat += t.dims[in];
    } while (mc_walk_next(&w));
    return -1;
}

int64_t mc_array_differs(const mc_array *a, const mc_array *b, double rtol, double atol)
{
    if (!mc_dims_equal(a->rank, a->dims, b->rank, b->dims)) {
        return 0;
    }
    mc_array *na = mc_array_on_host(a), *nb = mc_array_on_host(b);
    int64_t at = na && nb ? differs(na, nb, rtol, atol) : 0;
    mc_array_unref(&na);
    mc_array_unref(&nb);
    return at;
}

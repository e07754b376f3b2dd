/* array.c: arrays and views of arrays.
 *
 * Invariant: the shape, strides and memory of an array never change; its elements may.  Views share the
 * storage, which is freed with the last of them. */
#include "value/value.h"

/* ---- shapes ---- */

int64_t mc_dims_count(int rank, const int64_t *dims)
{
    int64_t n = 1;
    bool zero = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            return -1;
        }
        zero |= dims[i] == 0;
    }
    for (int i = 0; i < rank && !zero; i++) {
        if (!mc_mul_i64(n, dims[i], &n)) {
            return -1;
        }
    }
    return zero ? 0 : n;
}

bool mc_dims_equal(int ra, const int64_t *a, int rb, const int64_t *b)
{
    bool same = ra == rb;
    for (int i = 0; same && i < ra; i++) { /* a call of memcmp takes longer: ranks are small */
        same = a[i] == b[i];
    }
    return same;
}

void mc_dims_text(struct mc_str *out, int rank, const int64_t *dims)
{
    mc_str_add(out, "(");
    for (int i = 0; i < rank; i++) {
        mc_str_add(out, i ? ", " : "");
        if (dims[i] < 0) {
            mc_str_add(out, "?");
        } else {
            mc_str_addf(out, "%lld", (long long)dims[i]);
        }
    }
    mc_str_add(out, rank == 1 ? ",)" : ")");
}

void mc_contiguous_strides(mc_dtype d, int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = mc_dtypes[d].size;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= MC_MAX(dims[i], (int64_t)1);
    }
}

static mc_status fail_shape(mc_status code, const char *what, int rank, const int64_t *dims)
{
    struct mc_str text = { 0 };
    mc_dims_text(&text, rank, dims);
    mc_status s = text.bad ? MC_EMEMORY : mc_fail(code, "%s %s", what, text.s);
    mc_str_free(&text);
    return s;
}

/* The bytes of a new array, or an error.  The size and every stride must fit into int64; strides treat an
 * empty axis as one of length 1. */
static mc_status check_shape(mc_dtype d, int rank, const int64_t *dims, int64_t *bytes)
{
    int64_t span = mc_dtype_size(d) ? (int64_t)mc_dtype_size(d) : 1;
    if ((unsigned)d >= MC_NDTYPE) {
        return mc_fail(MC_EARG, "%d is not a dtype", (int)d);
    }
    if (rank < 0 || rank > MC_MAX_RANK || (rank > 0 && !dims)) {
        return mc_fail(MC_ESHAPE, "an array cannot have %d axes; at most %d are possible", rank, MC_MAX_RANK);
    }
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            return fail_shape(MC_ESHAPE, "an array cannot have the shape", rank, dims);
        }
        if (!mc_mul_i64(span, MC_MAX(dims[i], (int64_t)1), &span) || (uint64_t)span > SIZE_MAX / 2) {
            return fail_shape(MC_ESHAPE, "too large: the shape", rank, dims);
        }
    }
    *bytes = mc_dims_count(rank, dims) ? span : 0;
    return MC_OK;
}

/* ---- storage ---- */

static struct mc_storage *storage_new(void *data, size_t bytes, void (*release)(void *), void *arg)
{
    struct mc_storage *s = mc_alloc(sizeof *s, "arrays");
    if (s) {
        *s = (struct mc_storage){ .refs = 1, .data = data, .bytes = bytes, .release = release, .arg = arg };
    }
    return s;
}

static void storage_unref(struct mc_storage *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    if (s->release) {
        s->release(s->arg);
    } else if (s->space) {
        s->space->release(s->space, s->data);
    } else {
        mc_free_pages(s->data);
    }
    mc_free(s);
}

/* Takes ownership of the storage; releases it if there is no memory for the array. */
static mc_array *array_on(struct mc_storage *s, mc_dtype d, int rank, const int64_t *dims,
                          const int64_t *strides, char *data)
{
    mc_array *a = s ? mc_alloc(sizeof *a, "arrays") : NULL;
    if (!a) {
        storage_unref(s);
        return NULL;
    }
    *a = (mc_array){ .refs = 1, .dtype = d, .rank = rank, .data = data, .storage = s };
    if (rank) {
        memcpy(a->dims, dims, (size_t)rank * sizeof *dims);
        memcpy(a->strides, strides, (size_t)rank * sizeof *strides);
    }
    return a;
}

/* The release function until the array is made: after a failure the memory still belongs to the caller. */
static void keep_memory(void *arg)
{
    (void)arg;
}

static mc_array *array_alloc(mc_dtype d, int rank, const int64_t *dims, void *(*get)(size_t, const char *))
{
    int64_t bytes = 0, strides[MC_MAX_RANK];
    if (check_shape(d, rank, dims, &bytes) < 0) {
        return NULL;
    }
    char *data = get((size_t)bytes, "arrays");
    struct mc_storage *s = data ? storage_new(data, (size_t)bytes, NULL, NULL) : NULL;
    if (!s) {
        mc_free_pages(data);
        return NULL;
    }
    mc_contiguous_strides(d, rank, dims, strides);
    return array_on(s, d, rank, dims, strides, data);
}

/* ---- making arrays ---- */

mc_array *mc_array_new(mc_dtype d, int rank, const int64_t *dims)
{
    return array_alloc(d, rank, dims, mc_calloc_pages);
}

mc_array *mc_array_empty(mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *a = array_alloc(d, rank, dims, mc_alloc_pages);
#if defined(MC_POISON)
    if (a) { /* all bits set: NaN in every float, an unlikely integer */
        memset(a->data, d == MC_BOOL ? 1 : 0xff, a->storage->bytes);
    }
#endif
    return a;
}

mc_array *mc_array_from(mc_dtype d, int rank, const int64_t *dims, const void *data)
{
    mc_array *a = mc_array_empty(d, rank, dims);
    if (a && a->storage->bytes && !data) {
        mc_fail(MC_EARG, "mc_array_from: the elements are NULL");
        mc_array_unref(&a);
    } else if (a && a->storage->bytes) {
        memcpy(a->data, data, a->storage->bytes);
    }
    return a;
}

/* The range of bytes that the elements occupy, relative to the first element: lo inclusive, hi exclusive; 0,
 * 0 if there are none. */
static bool extent(mc_dtype d, int rank, const int64_t *dims, const int64_t *strides, int64_t *lo,
                   int64_t *hi)
{
    *lo = *hi = 0;
    if (mc_dims_count(rank, dims) == 0) {
        return true;
    }
    *hi = mc_dtypes[d].size;
    for (int i = 0; i < rank; i++) {
        int64_t span, *end = strides[i] < 0 ? lo : hi;
        if (!mc_mul_i64(strides[i], dims[i] - 1, &span) || !mc_add_i64(*end, span, end)) {
            return false;
        }
    }
    return true;
}

mc_array *mc_array_wrap(mc_dtype d, int rank, const int64_t *dims, const int64_t *strides, void *data,
                        void (*release)(void *arg), void *arg)
{
    int64_t bytes = 0, lo, hi, dense[MC_MAX_RANK];
    if (check_shape(d, rank, dims, &bytes) < 0) {
        return NULL;
    }
    if (!data && bytes) {
        mc_fail(MC_EARG, "mc_array_wrap: no memory was given for %lld bytes", (long long)bytes);
        return NULL;
    }
    if (!strides) {
        mc_contiguous_strides(d, rank, dims, dense);
        strides = dense;
    }
    if (!extent(d, rank, dims, strides, &lo, &hi)) {
        fail_shape(MC_ESHAPE, "mc_array_wrap: too large: the strides", rank, strides);
        return NULL;
    }
    struct mc_storage *s = storage_new(data, (size_t)(hi - lo), keep_memory, NULL);
    mc_array *a = array_on(s, d, rank, dims, strides, data);
    if (a && release) {
        s->release = release;
        s->arg = arg;
    }
    return a;
}

mc_array *mc_array_on_device(const struct mc_space *space, mc_dtype d, int rank, const int64_t *dims,
                             void *data)
{
    int64_t bytes = 0, strides[MC_MAX_RANK];
    if (check_shape(d, rank, dims, &bytes) < 0) {
        return NULL;
    }
    struct mc_storage *s = storage_new(data, (size_t)bytes, keep_memory, NULL);
    mc_contiguous_strides(d, rank, dims, strides);
    mc_array *a = array_on(s, d, rank, dims, strides, data);
    if (a) {
        s->space = space;
        s->release = NULL;
    }
    return a;
}

mc_array *mc_array_scalar(mc_dtype d, double value)
{
    mc_array *a = mc_array_empty(d, MC_NOSHAPE);
    if (a) {
        mc_store_f64(d, a->data, value);
    }
    return a;
}

mc_array *mc_array_ref(const mc_array *a)
{
    mc_array *b = (mc_array *)(uintptr_t)a; /* the reference count is not part of the value */
    if (b) {
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    }
    return b;
}

void mc_array_unref(mc_array **a)
{
    mc_array *b = a ? *a : NULL;
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) {
        storage_unref(b->storage);
        mc_free(b);
    }
    if (a) {
        *a = NULL;
    }
}

/* ---- properties ---- */

mc_dtype mc_array_dtype(const mc_array *a)
{
    return a ? a->dtype : MC_BOOL;
}

int mc_array_rank(const mc_array *a)
{
    return a ? a->rank : 0;
}

const int64_t *mc_array_dims(const mc_array *a)
{
    return a ? a->dims : NULL;
}

const int64_t *mc_array_strides(const mc_array *a)
{
    return a ? a->strides : NULL;
}

int64_t mc_array_size(const mc_array *a)
{
    return a ? mc_dims_count(a->rank, a->dims) : 0;
}

void *mc_array_data(const mc_array *a)
{
    if (!a) {
        return NULL;
    }
    if (mc_array_space(a)) {
        mc_fail(MC_EDEVICE,
                "mc_array_data: the array is on %s; mc_array_to(a, \"cpu\") brings it to the host",
                mc_array_device(a));
        return NULL;
    }
    return a->data;
}

const char *mc_array_device(const mc_array *a)
{
    return a && mc_array_space(a) ? mc_array_space(a)->name : "cpu";
}

int mc_array_is_contiguous(const mc_array *a)
{
    int64_t step = mc_dtypes[mc_array_dtype(a)].size;
    for (int i = mc_array_rank(a) - 1; i >= 0; i--) {
        if (a->dims[i] != 1 && a->strides[i] != step) {
            return mc_array_size(a) == 0;
        }
        step *= MC_MAX(a->dims[i], (int64_t)1);
    }
    return 1;
}

bool mc_array_overlaps(const mc_array *a, const mc_array *b)
{
    int64_t alo = 0, ahi = 0, blo = 0, bhi = 0;
    extent(a->dtype, a->rank, a->dims, a->strides, &alo, &ahi);
    extent(b->dtype, b->rank, b->dims, b->strides, &blo, &bhi);
    intptr_t at = (intptr_t)a->data, bt = (intptr_t)b->data;
    return mc_array_space(a) == mc_array_space(b) && ahi > alo && bhi > blo && at + alo < bt + bhi &&
           bt + blo < at + ahi;
}

/* ---- views ---- */

/* An array in a memory space must be contiguous, so a view of it must be, too. */
static mc_array *contiguous_on_device(mc_array *view, const char *who)
{
    if (view && mc_array_space(view) && !mc_array_is_contiguous(view)) {
        mc_fail(MC_EUNSUPPORTED,
                "%s: arrays on %s must be contiguous, and this view would not be; "
                "mc_array_to(a, \"cpu\") brings the array to the host",
                who, mc_array_device(view));
        mc_array_unref(&view);
    }
    return view;
}

mc_array *mc_array_view(const mc_array *a, int rank, const int64_t *dims, const int64_t *strides, char *data)
{
    atomic_fetch_add_explicit(&a->storage->refs, 1, memory_order_relaxed);
    return array_on(a->storage, a->dtype, rank, dims, strides, data);
}

mc_array *mc_array_slice(const mc_array *a, int axis, int64_t start, int64_t count, int64_t step)
{
    int64_t last, dims[MC_MAX_RANK], strides[MC_MAX_RANK];
    if (!a || axis < 0 || axis >= a->rank) {
        mc_fail(MC_EARG, "mc_array_slice: axis %d is out of range for an array with %d axes", axis,
                a ? a->rank : 0);
        return NULL;
    }
    int64_t n = a->dims[axis];
    bool fits = count >= 0 && start >= 0 && start <= n && step != 0;
    if (fits && count > 0) {
        fits = mc_mul_i64(count - 1, step, &last) && mc_add_i64(last, start, &last) && start < n &&
               last >= 0 && last < n;
    }
    if (!fits) {
        mc_fail(
            MC_EINDEX,
            "mc_array_slice: %lld elements from %lld in steps of %lld do not lie in an axis of length %lld",
            (long long)count, (long long)start, (long long)step, (long long)n);
        return NULL;
    }
    memcpy(dims, a->dims, sizeof dims);
    memcpy(strides, a->strides, sizeof strides);
    dims[axis] = count;
    strides[axis] *= count > 1 ? step : 1; /* an axis of length 1 keeps its stride: step may be huge */
    return contiguous_on_device(
        mc_array_view(a, a->rank, dims, strides, a->data + (count ? start * a->strides[axis] : 0)),
        "mc_array_slice");
}

mc_array *mc_array_transpose(const mc_array *a, const int *axes)
{
    int64_t dims[MC_MAX_RANK] = { 0 }, strides[MC_MAX_RANK] = { 0 };
    unsigned seen = 0;
    if (!a) {
        mc_fail(MC_EARG, "mc_array_transpose: the array is NULL");
        return NULL;
    }
    for (int i = 0; i < a->rank; i++) {
        int from = axes ? axes[i] : a->rank - 1 - i;
        if (from < 0 || from >= a->rank || seen >> from & 1) {
            mc_fail(MC_EARG, "mc_array_transpose: axis %d is repeated or out of range for %d axes", from,
                    a->rank);
            return NULL;
        }
        seen |= 1u << from;
        dims[i] = a->dims[from];
        strides[i] = a->strides[from];
    }
    return contiguous_on_device(mc_array_view(a, a->rank, dims, strides, a->data), "mc_array_transpose");
}

/* dtype.c: the table of dtypes, promotion, single elements.
 *
 * Invariant: dtypes.def is the only list of dtypes; everything that follows from its columns is computed. */
#include "value/value.h"

const struct mc_dtype_row mc_dtypes[MC_NDTYPE] = {
#define DTYPE(id, name, storage, kind, cls, npy, tensors, c, eps, dl)                              \
    [MC_##id] = { name, sizeof(storage), KIND_##kind, CLASS_##cls, npy, tensors, c, eps, dl },
#include "value/dtypes.def"
#undef DTYPE
};

size_t mc_dtype_size(mc_dtype d)
{
    return (unsigned)d < MC_NDTYPE ? mc_dtypes[d].size : 0;
}

const char *mc_dtype_name(mc_dtype d)
{
    return (unsigned)d < MC_NDTYPE ? mc_dtypes[d].name : "?";
}

mc_dtype mc_dtype_floatX(void)
{
    mc_dtype d = MC_FLOAT64;
    mc_dtype_parse(mc_flag_text(FLAG_floatX), &d);
    return d;
}

mc_status mc_dtype_parse(const char *name, mc_dtype *out)
{
    const char *names[MC_NDTYPE];
    name = name ? name : "";
    for (int d = 0; d < MC_NDTYPE; d++) {
        if (strcmp(name, mc_dtypes[d].name) == 0) {
            *out = (mc_dtype)d;
            return MC_OK;
        }
        names[d] = mc_dtypes[d].name;
    }
    if (strcmp(name, "floatX") == 0) {
        *out = mc_dtype_floatX();
        return MC_OK;
    }
    mc_fail(MC_ETYPE, "unknown dtype '%s'", name);
    const char *near = mc_near_miss(name, names, MC_NDTYPE);
    return near ? mc_fail(MC_ETYPE, "%s; did you mean '%s'?", mc_last_error(), near) : MC_ETYPE;
}

/* ---- promotion: the smallest dtype that holds the values of both ---- */

static mc_dtype by_kind(enum mc_kind kind, int size)
{
    for (int d = 0; d < MC_NDTYPE; d++) {
        if (mc_dtypes[d].kind == kind && mc_dtypes[d].size == size) {
            return (mc_dtype)d;
        }
    }
    return MC_FLOAT64; /* an integer that would need more than 64 bits */
}

mc_dtype mc_dtype_promote(mc_dtype a, mc_dtype b)
{
    const struct mc_dtype_row *x = &mc_dtypes[a], *y = &mc_dtypes[b];
    if (x->kind > y->kind || (x->kind == y->kind && x->size > y->size)) {
        /* from here on y has the greater kind or, with equal kinds, the greater size */
        return mc_dtype_promote(b, a);
    }
    if (a == b || x->kind == KIND_BOOL) {
        return b;
    }
    if (x->kind == KIND_INT && y->kind == KIND_UINT) {
        return x->size > y->size ? a : by_kind(KIND_INT, 2 * y->size);
    }
    if (x->kind == KIND_FLOAT && x->size == y->size) {
        return MC_FLOAT32; /* float16 and bfloat16 */
    }
    if (x->kind < KIND_FLOAT && y->kind == KIND_FLOAT) {
        int need = x->size == 1 ? 2 : x->size == 2 ? 4 : 8; /* bytes of a float that holds the integer */
        return need > y->size ? by_kind(KIND_FLOAT, need) : b;
    }
    return b;
}

mc_dtype mc_dtype_to_float(mc_dtype d)
{
    return mc_is_float(d) ? d : mc_dtypes[d].size <= 2 ? MC_FLOAT32 : MC_FLOAT64;
}

/* ---- single elements ---- */

double mc_load_f64(mc_dtype d, const void *p)
{
    double v;
    mc_convert(MC_FLOAT64, &v, sizeof v, d, p, 0, 1);
    return v;
}

int64_t mc_load_i64(mc_dtype d, const void *p)
{
    int64_t v;
    mc_convert(MC_INT64, &v, sizeof v, d, p, 0, 1);
    return v;
}

void mc_store_f64(mc_dtype d, void *p, double v)
{
    mc_convert(d, p, 0, MC_FLOAT64, &v, 0, 1);
}

void mc_store_i64(mc_dtype d, void *p, int64_t v)
{
    mc_convert(d, p, 0, MC_INT64, &v, 0, 1);
}

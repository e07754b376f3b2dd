/* address.c: where values lie in an exported file, as C expressions.
 *
 * Invariant: an expression is the address that a call of the library would use: the same slot, the same
 * offset. */
#include "export/exporting.h"
#include <inttypes.h>
#include <math.h>

const char *mc_export_format(struct mc_export_one *x, const char *fmt, ...)
{
    struct mc_str text = { 0 };
    va_list ap;
    va_start(ap, fmt);
    mc_str_addv(&text, fmt, ap);
    va_end(ap);
    char *kept = text.bad ? NULL : mc_arena_alloc(&x->names, text.n + 1);
    if (kept) {
        memcpy(kept, text.s ? text.s : "", text.n + 1);
    } else {
        x->to->code.bad = true;
    }
    mc_str_free(&text);
    return kept ? kept : "";
}

/* ---- elements ---- */

static void print_float(struct mc_str *out, double v, bool single)
{
    if (isnan(v)) {
        mc_str_add(out, signbit(v) ? "-NAN" : "NAN");
    } else if (isinf(v)) {
        mc_str_addf(out, "%sHUGE_VAL%s", v < 0 ? "-" : "", single ? "F" : "");
    } else {
        char text[40];
        mc_snprintf(text, sizeof text, single ? "%.9g" : "%.17g", v);
        mc_str_addf(out, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
    }
}

void mc_export_elements(struct mc_str *out, const mc_array *a)
{
    const int64_t n = mc_array_size(a), size = (int64_t)mc_dtypes[a->dtype].size;
    for (int64_t i = 0; i < n; i++) {
        const char *at = a->data + i * size;
        mc_str_add(out, i % 8 ? " " : "\n    ");
        if (a->dtype == MC_FLOAT32 || a->dtype == MC_FLOAT64) {
            print_float(out, mc_load_f64(a->dtype, at), a->dtype == MC_FLOAT32);
        } else if (mc_dtypes[a->dtype].size == 2 && mc_is_float(a->dtype)) {
            uint16_t bits;
            memcpy(&bits, at, sizeof bits);
            mc_str_addf(out, "0x%04x", bits);
        } else if (a->dtype == MC_UINT64) {
            mc_str_addf(out, "%" PRIu64 "u", (uint64_t)mc_load_i64(a->dtype, at));
        } else {
            const int64_t v = mc_load_i64(a->dtype, at);
            if (v == INT64_MIN) { /* its digits are no literal of a signed type */
                mc_str_add(out, "-9223372036854775807 - 1");
            } else {
                mc_str_addf(out, "%" PRId64, v);
            }
        }
        mc_str_add(out, ",");
    }
}

/* ---- addresses ---- */

const char *mc_export_in(struct mc_export_one *x)
{
    return x->depth ? mc_export_format(x, "in%d", x->depth) : "in";
}

const char *mc_export_out(struct mc_export_one *x)
{
    return x->depth ? mc_export_format(x, "out%d", x->depth) : "out";
}

/* The constant's array in the file's data: "constant3", with the bytes before its first element. */
static const char *constant(struct mc_export_one *x, int value)
{
    const mc_array *a = x->p->slot[value].fixed;
    int64_t before = 0, count = 1;
    const int64_t size = (int64_t)mc_dtypes[a->dtype].size;
    for (int k = 0; k < a->rank; k++) {
        const int64_t last = a->dims[k] > 0 ? (a->dims[k] - 1) * a->strides[k] / size : 0;
        before -= MC_MIN(last, (int64_t)0);
        count += last < 0 ? -last : last;
    }
    if (!x->constant[value]) {
        const bool empty = mc_array_size(a) == 0;
        struct mc_str text = { 0 };
        mc_array *all = empty ? NULL
                              : mc_array_wrap(a->dtype, 1, &count, NULL, a->data - before * size, NULL, NULL);
        x->constant[value] = (int)x->to->data.n + 1;
        mc_str_addf(&text, "static const %s constant%d[] = {", mc_export_type(a->dtype), x->constant[value]);
        if (all) {
            mc_export_elements(&text, all);
        }
        mc_str_add(&text, empty ? " 0 };\n" : "\n};\n");
        mc_array_unref(&all);
        if (text.bad || !VEC_PUSH(x->to->data, text)) {
            mc_str_free(&text);
            x->to->code.bad = true;
        }
    }
    return before ? mc_export_format(x, "(char *)(constant%d + %" PRId64 ")", x->constant[value], before)
                  : mc_export_format(x, "(char *)constant%d", x->constant[value]);
}

const char *mc_export_address(struct mc_export_one *x, int value)
{
    const struct mc_slot *at = &x->p->slot[value];
    const char *base = "NULL";
    switch (at->base) {
    case BASE_ARENA:
        return mc_export_format(x, at->offset || x->arena_at ? "arena + %" PRId64 : "arena",
                                at->offset + (int64_t)x->arena_at);
    case BASE_INPUT: base = mc_export_format(x, "(char *)%s[%d]", mc_export_in(x), at->index); break;
    case BASE_SHARED: base = mc_export_format(x, "(char *)model->%s", mc_export_member(x, at->index)); break;
    case BASE_OUTPUT: base = mc_export_format(x, "(char *)%s[%d]", mc_export_out(x), at->index); break;
    case BASE_FIXED: base = constant(x, value); break;
    case BASE_NONE:
    case BASE_TYPE: break;
    }
    return at->offset ? mc_export_format(x, "%s + %" PRId64, base, at->offset) : base;
}

const char *mc_export_pointer(struct mc_export_one *x, int value)
{
    return mc_export_format(x, "(%s *)(%s)", mc_export_type(x->p->slot[value].type.dtype),
                            mc_export_address(x, value));
}

const char *mc_export_scratch(struct mc_export_one *x, int step, size_t offset)
{
    return mc_export_format(x, "arena + %zu", x->arena_at + x->p->step[step].workspace_at + offset);
}

void mc_export_dense(struct mc_str *out, const struct mc_slot *slot, const char *from, const char *to)
{
    struct mc_slot dense = *slot;
    mc_slot_set(&dense, &slot->type);
    const struct mc_export_value src = { slot->type, slot->strides, from, NULL },
                                 dst = { slot->type, dense.strides, to, NULL };
    mc_export_copy(out, &src, &dst); /* it fails only if there is no memory, which out knows */
}

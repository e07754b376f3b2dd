/* custom.c: kernels of users' ops that are given as kernel text, each compiled by itself: when the reference
 * first runs an op where it is not fused with others (custom_run.c), or all of a graph, for a bundle. */
#include "device/cpu/code.h"
#include "exec/cpu/launch.h"
#include "op/op.h"

/* y = op(a, b, c) along one axis.  dtype: of the inputs, then of the result. */
static bool fill(struct mc_kernel *k, const struct mc_op *op, const mc_dtype *dtype)
{
    struct mc_kval v = {
        .kind = K_OP, .op = op, .dtype = dtype[op->arity], .narg = op->arity, .varies = 1
    };
    bool ok = true;
    mc_custom_symbol(op, dtype, k->name);
    k->rank = 1;
    k->exact = mc_flag_int(FLAG_portable) != 0;
    for (int i = 0; i < op->arity && ok; i++) {
        struct mc_koperand o = { .dtype = dtype[i], .varies = 1, .val = i };
        struct mc_kval load = { .kind = K_LOAD, .dtype = o.dtype, .operand = i, .varies = 1 };
        v.arg[i] = ok && VEC_PUSH(k->operand, o) ? mc_kernel_add(k, load) : -1;
        ok = v.arg[i] >= 0;
    }
    struct mc_koperand y = {
        .dtype = v.dtype, .varies = 1, .dst = true, .val = ok ? mc_kernel_add(k, v) : -1
    };
    return ok && y.val >= 0 && VEC_PUSH(k->operand, y) && mc_kernel_analyse(k) == MC_OK;
}

mc_kernel_fn *mc_custom_compile(const struct mc_op *op, const mc_dtype *dtype, struct mc_code **lib,
                                mc_status *s)
{
    struct mc_kernel *k = mc_calloc(1, sizeof *k, "kernel");
    struct mc_str source = { 0 };
    mc_kernel_fn *fn = NULL;
    if (!mc_cc_known()) {
        mc_kernel_free(k);
        *s = mc_fail(MC_EUNSUPPORTED, "%s: its kernel text needs a C compiler, and there is none", op->name);
        return NULL;
    }
    *s = k && fill(k, op, dtype) ? MC_OK : MC_EMEMORY;
    if (*s == MC_OK) {
        mc_render(&source, &mc_dialect_c, 1, &k);
        *s = source.bad ? MC_EMEMORY : MC_OK;
    }
    *lib = *s == MC_OK ? mc_code_load(source.s, MC_KERNEL_FLAGS, s) : NULL;
    if (*lib) {
        void *p = mc_code_function(*lib, k->name);
        memcpy(&fn, &p, sizeof fn);
        *s = fn ? MC_OK : MC_ECOMPILE;
    }
    mc_str_free(&source);
    mc_kernel_free(k);
    return fn;
}

/* ---- all of a graph ---- */

typedef VEC(struct mc_kernel *) kernels;

static bool has_kernel(const kernels *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static mc_status collect(const mc_graph *g, kernels *list)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const mc_node *n = g->nodes.at[i];
        mc_dtype dtype[4];
        char name[MC_CUSTOM_SYMBOL];
        if (!mc_custom_dtypes(n, dtype)) {
            continue;
        }
        mc_custom_symbol(n->op, dtype, name);
        if (has_kernel(list, name)) {
            continue;
        }
        struct mc_kernel *k = mc_calloc(1, sizeof *k, "kernel");
        if (!k || !fill(k, n->op, dtype) || !VEC_PUSH(*list, k)) {
            mc_kernel_free(k);
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

mc_status mc_custom_image(const mc_graph *g, const char *level, struct mc_str *image)
{
    kernels list = { 0 };
    struct mc_str source = { 0 };
    mc_status s = collect(g, &list);
    if (s == MC_OK && list.n) {
        mc_render(&source, &mc_dialect_c, (int)list.n, list.at);
        s = source.bad ? MC_EMEMORY : mc_code_image(source.s, MC_KERNEL_FLAGS, level, image);
    }
    for (size_t i = 0; i < list.n; i++) {
        mc_kernel_free(list.at[i]);
    }
    VEC_FREE(list);
    mc_str_free(&source);
    return s;
}

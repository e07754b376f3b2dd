/* custom_run.c: the reference of users' ops that are given as kernel text, where the op is not fused with
 * others.  Its compiled form came with a bundle, or is made now and kept in the cache of kernels (custom.c).
 *
 * Invariant: mc_custom_kernel_hook is set before main begins. */
#include "exec/cpu/launch.h"
#include "op/op.h"

/* ---- compiled forms ---- */

bool mc_custom_dtypes(const mc_node *n, mc_dtype *dtype)
{
    if (!n->op->custom || !n->op->custom->kernel) {
        return false;
    }
    for (int i = 0; i < n->nin; i++) {
        dtype[i] = n->in[i]->type.dtype;
    }
    dtype[n->nin] = n->type.dtype;
    return true;
}

void mc_custom_symbol(const struct mc_op *op, const mc_dtype *dtype, char name[MC_CUSTOM_SYMBOL])
{
    uint64_t h = mc_hash_str(op->name);
    for (int i = 0; i <= op->arity; i++) {
        h = mc_hash_mix(h, (uint64_t)dtype[i]);
    }
    mc_snprintf(name, MC_CUSTOM_SYMBOL, "c%016llx", (unsigned long long)h);
}

bool mc_custom_kernels(const mc_graph *g)
{
    mc_dtype dtype[4];
    for (size_t i = 0; i < g->nodes.n; i++) {
        if (mc_custom_dtypes(g->nodes.at[i], dtype)) {
            return true;
        }
    }
    return false;
}

mc_status mc_custom_find(const mc_graph *g, const struct mc_code *lib)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const mc_node *n = g->nodes.at[i];
        struct mc_custom_code code = { .fn = NULL };
        char name[MC_CUSTOM_SYMBOL];
        if (!mc_custom_dtypes(n, code.dtype)) {
            continue;
        }
        mc_custom_symbol(n->op, code.dtype, name);
        void *fn = mc_code_symbol(lib, name);
        if (!fn) {
            return mc_fail(MC_EFORMAT, "there is no kernel of '%s'", n->op->name);
        }
        memcpy(&code.fn, &fn, sizeof code.fn);
        TRY(mc_custom_code_add(n->op, &code));
    }
    return MC_OK;
}

/* ---- the reference ---- */

/* x broadcast to y's sizes and copied to C order, as the kernel reads its operands. */
static mc_array *broadcast(const mc_array *x, const mc_array *y)
{
    int64_t strides[MC_MAX_RANK] = { 0 };
    for (int k = 0; k < x->rank; k++) {
        strides[k] = x->dims[k] == 1 ? 0 : x->strides[k];
    }
    mc_array *wide = mc_array_view(x, y->rank, y->dims, strides, x->data);
    mc_array *dense = wide ? mc_array_copy(wide) : NULL;
    mc_array_unref(&wide);
    return dense;
}

/* The compiled form for the dtypes of the arrays, as n may have no inputs. *lib: what was compiled now. */
static mc_kernel_fn *function_of(const mc_node *n, mc_array *const *in, struct mc_code **lib, mc_status *s)
{
    mc_dtype dtype[4];
    mc_kernel_fn *fn = NULL;
    for (int i = 0; i < n->nin; i++) {
        dtype[i] = in[i]->dtype;
    }
    dtype[n->nin] = n->type.dtype;
    const struct mc_custom_code *code = mc_custom_code_of(n->op, dtype);
    *s = MC_OK;
    if (code) {
        memcpy(&fn, &code->fn, sizeof fn);
        return fn;
    }
    return mc_custom_compile(n->op, dtype, lib, s);
}

static mc_status by_kernel(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_code *lib = NULL;
    mc_array *whole[3] = { 0 };
    char *p[4];
    int64_t s[3 * 4] = { 0 }, count[4] = { mc_array_size(out[0]), 1, 1, 0 }, err[4] = { 0 };
    mc_status st;
    mc_kernel_fn *fn = function_of(n, in, &lib, &st);
    for (int i = 0; i < n->nin && st == MC_OK; i++) {
        whole[i] = broadcast(in[i], out[0]);
        st = whole[i] ? MC_OK : mc_last_status();
        p[i] = whole[i] ? whole[i]->data : NULL;
        s[3 * i] = 1;
    }
    if (st == MC_OK) {
        p[n->nin] = out[0]->data;
        s[3 * n->nin] = 1;
        fn(p, s, count, err);
    }
    for (int i = 0; i < n->nin; i++) {
        mc_array_unref(&whole[i]);
    }
    mc_code_unref(&lib);
    return st;
}

static void set_hook(void)
{
    mc_custom_kernel_hook = by_kernel;
}

/* Once, so that no thread writes the hook while another one reads it. */
__attribute__((constructor)) void mc_custom_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_hook);
}

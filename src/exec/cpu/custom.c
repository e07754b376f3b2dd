/* custom.c: a user's op that is given as kernel text, compiled by itself.  The reference runs it where the op
 * is not fused with others.  The text is compiled as a kernel of one op and kept in the cache of kernels.
 *
 * Invariant: mc_custom_kernel_hook is set before main begins. */
#include "exec/cpu/launch.h"

/* y = op(a, b, c) along one axis.  Dtypes are those of the arrays, as n may have no inputs. */
static bool fill(struct mc_kernel *k, const mc_node *n, mc_array *const *in)
{
    struct mc_kval v = { .kind = K_OP, .op = n->op, .dtype = n->type.dtype, .narg = n->nin, .varies = 1 };
    bool ok = true;
    mc_snprintf(k->name, sizeof k->name, "k0");
    k->rank = 1;
    for (int i = 0; i < n->nin && ok; i++) {
        struct mc_koperand o = { .dtype = in[i]->dtype, .varies = 1, .val = i };
        struct mc_kval load = { .kind = K_LOAD, .dtype = o.dtype, .operand = i, .varies = 1 };
        v.arg[i] = ok && VEC_PUSH(k->operand, o) ? mc_kernel_add(k, load) : -1;
        ok = v.arg[i] >= 0;
    }
    struct mc_koperand y = {
        .dtype = v.dtype, .varies = 1, .dst = true, .val = ok ? mc_kernel_add(k, v) : -1
    };
    return ok && y.val >= 0 && VEC_PUSH(k->operand, y) && mc_kernel_analyse(k) == MC_OK;
}

/* The kernel's function. *lib owns its code. */
static mc_kernel_fn *load(const mc_node *n, mc_array *const *in, struct mc_code **lib, mc_status *s)
{
    struct mc_kernel *k = mc_calloc(1, sizeof *k, "kernel");
    struct mc_str source = { 0 };
    mc_kernel_fn *fn = NULL;
    *s = k && fill(k, n, in) ? MC_OK : MC_EMEMORY;
    if (*s == MC_OK) {
        k->exact = mc_flag_int(FLAG_portable) != 0;
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

static mc_status by_kernel(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_code *lib = NULL;
    mc_array *whole[3] = { 0 };
    char *p[4];
    int64_t s[3 * 4] = { 0 }, count[4] = { mc_array_size(out[0]), 1, 1, 0 }, err[4] = { 0 };
    if (!mc_cc_known()) {
        return mc_fail(MC_EUNSUPPORTED, "%s: its kernel text needs a C compiler, and there is none",
                       n->op->name);
    }
    mc_status st;
    mc_kernel_fn *fn = load(n, in, &lib, &st);
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

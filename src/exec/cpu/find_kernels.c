/* find_kernels.c: the compiled kernels of a code unit: found in loaded libraries, and let go.
 *
 * Invariant: it does not depend on how the libraries were made. */
#include "exec/cpu/launch.h"

mc_status mc_find_kernels(struct mc_code_unit *u, const int *to, int text, struct mc_code *lib)
{
    const struct mc_program *p = &u->program;
    for (size_t i = 0; i < p->step.n && lib; i++) {
        const struct mc_kernel *k = p->step.at[i].kernel;
        char reduce_fn[40];
        if (k && to[i] == text) {
            void *fn = mc_code_function(lib, k->name);
            memcpy(&u->fn[i], &fn, sizeof fn);
            if (!fn) {
                return MC_ECOMPILE;
            }
            mc_snprintf(reduce_fn, sizeof reduce_fn, "%s_join", k->name);
            fn = k->mode == KERNEL_FULL_REDUCTION ? mc_code_symbol(lib, reduce_fn) : NULL;
            memcpy(&u->reduce_fn[i], &fn, sizeof fn);
        }
    }
    return MC_OK;
}

void mc_drop_kernels(struct mc_code_unit *u)
{
    for (size_t i = 0; i < NELEM(u->lib); i++) {
        mc_code_unref(&u->lib[i]);
    }
    mc_free(u->fn);
    mc_free(u->reduce_fn);
    u->fn = NULL, u->reduce_fn = NULL;
}

/* find_kernels.c: looks up compiled kernels in loaded libraries. */
#include "exec/cpu/launch.h"

void mc_find_kernel(struct mc_code_unit *u, int step, const struct mc_code *lib)
{
    const struct mc_kernel *k = u->program.step.at[step].kernel;
    char reduce_fn[40];
    void *fn = mc_code_symbol(lib, k->name);
    memcpy(&u->fn[step], &fn, sizeof fn);
    mc_snprintf(reduce_fn, sizeof reduce_fn, "%s_join", k->name);
    fn = fn && k->mode == KERNEL_FULL_REDUCTION ? mc_code_symbol(lib, reduce_fn) : NULL;
    memcpy(&u->reduce_fn[step], &fn, sizeof fn);
}

mc_status mc_find_kernels(struct mc_code_unit *u)
{
    const struct mc_program *p = &u->program;
    u->fn = mc_calloc(p->step.n + 1, sizeof *u->fn, "bundle");
    u->reduce_fn = mc_calloc(p->step.n + 1, sizeof *u->reduce_fn, "bundle");
    if (!u->fn || !u->reduce_fn) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < p->step.n; i++) {
        const struct mc_kernel *k = p->step.at[i].kernel;
        for (size_t t = 0; k && t < NELEM(u->lib) && u->lib[t] && !u->fn[i]; t++) {
            mc_find_kernel(u, (int)i, u->lib[t]);
        }
        if (k && u->lib[0] && !u->fn[i]) {
            return mc_fail(MC_EFORMAT, "there is no kernel '%s'", k->name);
        }
    }
    return MC_OK;
}

void mc_drop_kernels(struct mc_code_unit *u)
{
    for (size_t i = 0; i < NELEM(u->lib); i++) {
        mc_code_unref(&u->lib[i]);
    }
    mc_code_unref(&u->custom);
    mc_free(u->fn);
    mc_free(u->reduce_fn);
    u->fn = NULL, u->reduce_fn = NULL;
}

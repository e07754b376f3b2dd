/* families.c: the ops of libmonochord-run: those that a program may have when it was lowered.  Ops that are
 * built of others, or are formulas of others, are not among them.
 *
 * Invariant: scalar ops are first, in the order of ops.def, as src/op/scalar.c counts them. */
#include "op/op.h"

/* A row of ops.def without pointers, which the loader would have to relocate. */
static const struct compact {
    char name[18];
    unsigned char arity, typing;
    unsigned flags;
} compact[] = {
#define OP(id, n, ty, fl, ...) { #id, n, TYPE_##ty, fl },
#define OPI OP
#include "op/ops.def"
#undef OP
#undef OPI
};
static struct mc_op scalars[NELEM(compact)];

__attribute__((constructor)) static void expand(void)
{
    static const char *const params[] = { "", "a", "a, b", "a, b, c" };
    for (size_t i = 0; i < NELEM(compact); i++) {
        const struct compact *c = &compact[i];
        scalars[i] = (struct mc_op){ .name = c->name,
                                     .arity = c->arity,
                                     .typing = c->typing,
                                     .nout = 1,
                                     .flags = c->flags,
                                     .params = params[c->arity],
                                     .infer = mc_scalar_infer,
                                     .eval = mc_scalar_eval };
    }
}

const struct mc_op_family mc_op_families[] = {
    { NULL, scalars, (int)NELEM(scalars) },
    { NULL, mc_ops_shape, .count = &mc_nops_shape },
    { NULL, mc_ops_axes, .count = &mc_nops_axes },
    { NULL, mc_ops_reduce, .count = &mc_nops_reduce },
    { NULL, mc_ops_running, .count = &mc_nops_running },
    { NULL, mc_ops_index, .count = &mc_nops_index },
    { NULL, mc_ops_gather, .count = &mc_nops_gather },
    { NULL, mc_ops_along, .count = &mc_nops_along },
    { NULL, mc_ops_position, .count = &mc_nops_position },
    { NULL, mc_ops_join, .count = &mc_nops_join },
    { NULL, mc_ops_make, .count = &mc_nops_make },
    { NULL, mc_ops_product, .count = &mc_nops_product },
    { NULL, mc_ops_fft, .count = &mc_nops_fft },
    { NULL, mc_ops_linalg, .count = &mc_nops_linalg },
    { NULL, mc_ops_conv, .count = &mc_nops_conv },
    { NULL, mc_ops_pool, .count = &mc_nops_pool },
    { NULL, mc_ops_pool_draw, .count = &mc_nops_pool_draw },
    { NULL, mc_ops_norm, .count = &mc_nops_norm },
    { NULL, mc_ops_ctc, .count = &mc_nops_ctc },
    { NULL, mc_ops_sort, .count = &mc_nops_sort },
    { NULL, mc_ops_scan, .count = &mc_nops_scan },
    { NULL, mc_ops_ifelse, .count = &mc_nops_ifelse },
    { NULL, mc_ops_branch, .count = &mc_nops_branch },
    { NULL, mc_ops_random, .count = &mc_nops_random },
    { NULL, mc_ops_effect, .count = &mc_nops_effect },
};
const int mc_nop_families = (int)NELEM(mc_op_families);

/* host_op.c: the ops without a kernel that can be printed as C.
 *
 * Invariant: nothing is printed for an op that is refused. */
#include "export/block.h"

static const struct row {
    const char *op;
    mc_block_print *print;
    const char *advice;             /* where print is NULL: why, and what would help */
} rows[] = {
    { "random_uniform",       mc_block_uniform },
    { "gather",               mc_block_gather },
    { "gather_update",        mc_block_gather_update },
    { "subtensor_update",     mc_block_part_update },
    { "cumsum",               mc_block_running },
    { "cumprod",              mc_block_running },
    { "cummax",               mc_block_running },
    { "cummin",               mc_block_running },
    { "recurrence",           mc_block_recurrence },
    { "sort",                 mc_block_sort },
    { "argsort",              mc_block_sort },
    { "first_of_rising",      mc_block_sort },
    { "first_of_falling",     mc_block_sort },
    { "permute_row_elements", mc_block_permute },
    { "channel_sum",          mc_block_channels },
    { "join",                 mc_block_join },
    { "stack",                mc_block_stack },
    { "alloc",                mc_block_alloc },
    { "arange",               mc_block_arange },
    { "reshape",              mc_block_reshape },
    { "dot",                  mc_block_product },
    { "batched_dot",          mc_block_product },
    { "assert_",              mc_block_assert },
    { "print_",               NULL, "a file that stands alone prints nothing; compile the function without print_" },
    { "scan",                 NULL, "a size in its body depends on what the loop computes" },
    { "counts_of",            NULL, "the size of its result depends on data; sum eq(x, k) for each k" },
    { "nonzero",              NULL, "the size of its result depends on data; use where(mask, x, 0) in place of x[mask]" },
    { "mask_where",           NULL, "the size of its result depends on data; use where(mask, x, 0) in place of x[mask]" },
};

mc_status mc_export_host_op(struct mc_str *out, const mc_node *n, const struct mc_export_value *in,
                            const struct mc_export_value *result)
{
    struct mc_block b = { .c = { out, 1 }, .n = n, .in = in, .result = result };
    const size_t start = out->n;
    for (size_t i = 0; i < NELEM(rows); i++) {
        if (strcmp(rows[i].op, n->op->name) == 0) {
            const mc_status s = rows[i].print ? rows[i].print(&b) : mc_block_refuse(n, rows[i].advice);
            if (s < 0 && out->s) { /* takes back what was printed before the refusal */
                out->n = start;
                out->s[start] = '\0';
            }
            if (s < 0) {
                return s;
            }
            mc_c_close(&b.c, 1);
            return out->bad ? MC_EMEMORY : MC_OK;
        }
    }
    return mc_block_refuse(n, n->op->custom
                                  ? "a custom op; its function is not text. Write it with built-in ops"
                                  : "there is no printer for this op; write it with other ops, such as "
                                    "those of arithmetic and reductions");
}

/* export.h: steps of a program that are neither kernels nor solver steps, printed as C99 with all sizes as
 * numbers, for files that stand alone.
 *
 * A block is indented for the body of a function.  It needs stdint.h, string.h and, for HUGE_VAL, math.h.  It
 * declares in_0, in_1, ... and out_0, names that the expressions it is given may not use.  No result may
 * share memory with an operand.  The block gives the bits of the reference. */
#ifndef MC_EXPORT_H
#define MC_EXPORT_H

#include "op/op.h"

struct mc_export_value {
    struct mc_type type;            /* all sizes are known */
    const int64_t *strides;         /* in bytes, multiples of the size of an element */
    const char *at;                 /* C expression of type char * or const char * */
    const mc_array *value;          /* if it is known now, such as the bounds of slices; else NULL */
};
const char *mc_export_type(mc_dtype d); /* how an element is stored: "uint16_t" for halves */
/* host_op.c: prints a block that computes one op, which has no kernel.  in, result: for each input and each
 * result of n.  A bad index or a condition that does not hold makes the block execute `return 1;` before
 * anything is written.  An op that cannot be printed is MC_EUNSUPPORTED; the message names the op and says
 * what would help. */
mc_status mc_export_host_op(struct mc_str *out, const mc_node *n, const struct mc_export_value *in,
                            const struct mc_export_value *result);
/* block.c: prints a block that copies `from` to `to`, of one dtype and shape: a view with memory of its own.
 * (A reshape has another shape; mc_export_host_op prints it.) */
mc_status mc_export_copy(struct mc_str *out, const struct mc_export_value *from,
                         const struct mc_export_value *to);

#endif

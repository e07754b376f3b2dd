/* conv_node.h: shared by the files of the convolution ops: the attributes of a node, read once. */
#ifndef MC_OP_CONV_NODE_H
#define MC_OP_CONV_NODE_H

#include "op/conv.h"
#include "op/op.h"

/* The attributes of conv, conv_inputs and conv_weights, in the order of their signature. */
enum {
    CONV_BORDER,
    CONV_STRIDE,
    CONV_DILATION,
    CONV_GROUPS,
    CONV_FLIP,
    CONV_UNSHARED,
    CONV_LAYOUT,
    CONV_CEIL,
    CONV_ALGO,
    CONV_PRECISION,
    CONV_NATTR
};

/* A named border: the zeros before and after an axis for a filter that covers e elements. */
struct mc_border {
    const char *name;
    int64_t (*before)(int64_t e), (*behind)(int64_t e);
    const char *margin;             /* before + behind - e as a formula over e */
    bool determines;                /* does the size of y determine that of the filter? */
};

/* The attributes as numbers. Spatial axes are in the last nd of three slots; axes that are absent are -1. */
struct mc_conv_form {
    enum mc_conv_pass pass;
    int nd;
    const struct mc_border *border; /* NULL: before and behind are numbers */
    int64_t before[3], behind[3], stride[3], dilation[3], groups;
    bool flip, unshared, ceil;
    int x[5], w[8], y[5];           /* the axis of each meaning, as in struct mc_conv_strides */
};

/* conv_form.c */
const struct mc_border *mc_border_find(const char *name);
const char *mc_conv_name(enum mc_conv_pass pass);
mc_status mc_conv_form_read(enum mc_conv_pass pass, int nd, const struct mc_attr *attr,
                            struct mc_conv_form *f);
void mc_conv_form_of(const mc_node *n, struct mc_conv_form *f);
int mc_conv_rank(const struct mc_conv_form *f, int role);       /* axes of x, w or y */
const int *mc_conv_axes(const struct mc_conv_form *f, int role);

/* conv_shape.c */
/* The sizes of a node, -1 where unknown; an error if they contradict each other. out: the type of the result,
 * if known. */
mc_status mc_conv_solve(const struct mc_infer *q, const struct mc_conv_form *f, const struct mc_type *out,
                        struct mc_conv_shape *s);
void mc_conv_dims(const struct mc_conv_form *f, const struct mc_conv_shape *s, int role, int64_t *dims);
/* conv_size.c: sizes as formulas */
/* the zeros around an axis minus the extent of the filter */
mc_node *mc_conv_margin(const struct mc_conv_form *f, int slot, mc_node *k);
mc_node *mc_conv_size(mc_node *n, int item, int axis);
/* The input `shape` of op(in[0], in[1], shape), with each -1 replaced by the size that follows from the
 * operands. */
mc_node *mc_conv_full_shape(const struct mc_op *op, mc_node *const *in, const struct mc_attr *attr);

/* conv_eval.c */
mc_status mc_conv_eval(const mc_node *n, mc_array *const *in, mc_array *const *out);

/* conv.c: makes one of the three nodes from attributes by meaning. given[i] NULL: the default; in[2] may
 * be NULL. */
void mc_conv_attrs(const struct mc_op *op, const struct mc_attr *const *given, struct mc_attr *attr);
mc_node *mc_conv_make(mc_graph *g, enum mc_conv_pass pass, int nin, mc_node *const *in,
                      const struct mc_attr *const *given);

#endif

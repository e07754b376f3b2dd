/* conv.h: the geometry that every convolution is reduced to.
 *
 * There is one sum over the taps a of a window, with three directions over the same sizes:
 *
 *   y[n, f, u] = sum over c in the group of f, over a:
 *                  x[n, c, u * stride - pad + a * dilation] * w[f, c, a']
 *
 * a' is a for a correlation, and k - 1 - a when the filter is flipped (convolution). Outside of x there
 * are zeros. How far the last window extends beyond the end follows from `out`, so one-sided padding,
 * cuda-convnet's rounding up and cropping need no fields of their own. INPUTS is the gradient with respect
 * to x, given w and the gradient of y; WEIGHTS is the gradient with respect to w, given x and the gradient
 * of y. Both are the same sum with another array as the result.
 *
 * There are always three spatial axes here. A convolution with fewer has leading axes with size 1, one
 * tap, stride 1 and pad 0. */
#ifndef MC_OP_CONV_H
#define MC_OP_CONV_H

#include "graph/graph.h"
#include "op/conv_pass.h"

struct mc_conv_shape {
    enum mc_conv_pass pass;
    int nd;                         /* spatial axes of the op: 1, 2 or 3 */
    int64_t n, c, f, groups;        /* images, input channels, filters; w has c / groups channels */
    int64_t in[3], out[3], k[3];    /* of x, y, w */
    int64_t stride[3], dilation[3], pad[3]; /* pad: zeros before each axis */
    bool flip;                      /* taps are applied from last to first */
    bool unshared;                  /* w has a filter for each position of y: f, out..., c / groups, k... */
};
/* The three arrays by role, the same in every pass: x, w, y. Strides in elements, by the meaning of the
 * axis. */
enum { CONV_X, CONV_W, CONV_Y };
struct mc_conv_strides {
    int64_t x[5];                   /* n, c, three spatial axes */
    int64_t w[8];                   /* f, c, three taps; if unshared, then three axes of y */
    int64_t y[5];                   /* n, f, three spatial axes */
};

/* The input of a node that has a role: mc_conv_operand[pass][CONV_X]; -1: this role is the result. */
extern const signed char mc_conv_operand[3][3];
int mc_conv_pass_of(const struct mc_op *op);    /* CONV_FORWARD, ...; -1: not one of the three nodes */

/* conv_shape.c: the shape of a conv node when all sizes are known. in[]: types of its inputs; value[] (or
 * NULL): arrays of the known inputs, of which only `shape` is read; out: the type of the result, or NULL
 * if it follows from the inputs. An impossible shape is an error that prints the formula. */
mc_status mc_conv_shape_of(const struct mc_node *n, const struct mc_type *in, const mc_array *const *value,
                           const struct mc_type *out, struct mc_conv_shape *s);
/* Strides by meaning, from the strides of the three arrays and the layout of the node, divided by unit: 1
 * for strides in elements, the element size for strides in bytes. Absent axes have stride 0. */
void mc_conv_strides_of(const struct mc_node *n, const int64_t *x, const int64_t *w, const int64_t *y,
                        int64_t unit, struct mc_conv_strides *at);

/* Set by the family of solvers: fails if no algorithm has this name. */
extern mc_status (*mc_conv_algo_hook)(const char *algo);

/* The axis of a node's result for each meaning: n, f (or c), three spatial axes; for weights: f, c, three
 * tap axes. -1: absent. */
void mc_conv_result_axes(const mc_node *n, int axis[5]);

#endif

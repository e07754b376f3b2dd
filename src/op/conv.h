/* conv.h: the geometry that every convolution comes down to, whatever it is called.
 *
 * One sum over the taps a of a window, in three directions, on one set of sizes:
 *
 *   y[n, f, u] = sum over c of the group of f, over a:   x[n, c, u * stride - pad + a * dilation] * w[f, c,
 *                                                        a']
 *
 * a' is a (correlation), or k - 1 - a when the filter is flipped (convolution).  Outside of x there are
 * zeros: how far the last window reaches over the end follows from `out`, so one-sided padding,
 * cuda-convnet's rounding up and cropping need no fields of their own.  INPUTS is the gradient with respect
 * to x given w and y's gradient, WEIGHTS the one with respect to w given x and y's gradient; both are the
 * same sum, read otherwise.
 *
 * There are always three spatial axes here; what has fewer has leading axes of size 1, taps 1, stride 1, pad
 * 0. */
#ifndef MC_OP_CONV_H
#define MC_OP_CONV_H

#include "graph/graph.h"

enum mc_conv_pass { CONV_FORWARD, CONV_INPUTS, CONV_WEIGHTS };
struct mc_conv_shape {
    enum mc_conv_pass pass;
    int nd;                         /* spatial axes the user sees: 1, 2 or 3 */
    int64_t n, c, f, groups;        /* images, input channels, filters; w has c / groups channels */
    int64_t in[3], out[3], k[3];    /* of x, y, w */
    int64_t stride[3], dilation[3], pad[3]; /* pad: zeros in front of each axis */
    bool flip;                      /* taps run backwards */
    bool unshared;                  /* w has a filter for each place of y: f, out..., c / groups, k... */
};
/* The three arrays by role, whatever the pass: x, w, y.  Element strides of each by meaning. */
enum { CONV_X, CONV_W, CONV_Y };
struct mc_conv_strides {
    int64_t x[5];                   /* n, c, three spatial axes */
    int64_t w[8];                   /* f, c, three taps; unshared: then three places of y */
    int64_t y[5];                   /* n, f, three spatial axes */
};

/* Which input of a node has which role: mc_conv_operand[pass][CONV_X]; -1: it is the result. */
extern const signed char mc_conv_operand[3][3];
int mc_conv_pass_of(const struct mc_op *op);    /* CONV_FORWARD, ...; -1: not one of the three nodes */

/* conv_shape.c: the shape of a conv node, all sizes known.  in[]: types of its inputs; value[] (or NULL):
 * arrays of those that are known, of which only the `shape` input's is read; out: the result's type, or NULL
 * if it follows from the inputs. An impossible shape is an error that prints the formula. */
mc_status mc_conv_shape_of(const struct mc_node *n, const struct mc_type *in, const mc_array *const *value,
                           const struct mc_type *out, struct mc_conv_shape *s);
/* The strides by meaning, from those of the arrays by role and the node's layout, divided by unit: 1 for
 * strides in elements, the element's size for strides in bytes.  Axes that are not there have stride 0. */
void mc_conv_strides_of(const struct mc_node *n, const int64_t *x, const int64_t *w, const int64_t *y,
                        int64_t unit, struct mc_conv_strides *at);

/* Set by the family of solvers: an error unless a node may ask for an algorithm of this name. */
extern mc_status (*mc_conv_algo_hook)(const char *algo);

/* Which axis of a node's result has which meaning: n, f (or c), three spatial axes; weights: f, c, three
 * taps; -1: not there. */
void mc_conv_result_axes(const mc_node *n, int axis[5]);

#endif

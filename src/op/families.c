/* families.c: the families of ops, and the rows of scalar ops and of formulas.  A runtime has a list of its
 * own: of the ops that are left when a program is made (src/run/families.c). */
#include "op/op.h"

#define DX(a, b, c) { a, b, c, NULL }
static const struct mc_op scalars[] = {
#define OP(id, n, ty, fl, src, da, db, dc, l, h, text)                                                       \
    { .name = #id, .arity = n, .typing = TYPE_##ty, .flags = fl, .nout = 1, .code = #src, .dx = DX(da, db, dc), .lo = l, \
      .hi = h, .doc = text, .params = n == 1 ? "a" : n == 2 ? "a, b" : "a, b, c", .infer = mc_scalar_infer,  \
      .size = mc_scalar_size, .eval = mc_scalar_eval },
#define OPI(id, n, ty, fl, src, isrc, da, db, dc, l, h, text)                                                \
    { .name = #id, .arity = n, .typing = TYPE_##ty, .flags = fl, .nout = 1, .code = #src, .icode = #isrc,    \
      .dx = DX(da, db, dc), .lo = l, .hi = h, .doc = text, .params = n == 1 ? "a" : n == 2 ? "a, b" : "a, b, c", \
      .infer = mc_scalar_infer, .size = mc_scalar_size, .eval = mc_scalar_eval },
#include "op/ops.def"
#undef OP
#undef OPI
};
static const struct mc_op formulas[] = {
#define FORMULA(id, par, fl, n, text, d0, d1, ...)                                                           \
    { .name = #id, .params = par, .flags = fl, .nout = n, .formula = text, .dx = DX(d0, d1, NULL),           \
      .infer = mc_formula_infer, .eval = mc_formula_eval, .doc = __VA_ARGS__ },
#include "op/formulas.def"
#undef FORMULA
};

/* The families, in the order of the table and of the manual. */
const struct mc_op_family mc_op_families[] = {
    { "Element by element", scalars, (int)NELEM(scalars), .rules =
      "The inputs broadcast as in NumPy: axes are aligned from the last one. An axis broadcasts if its size is known to be 1 "
      "when the graph is built; `specify_shape` promises that. Inputs of several dtypes are promoted to one, as NumPy promotes "
      "arrays; a literal takes the dtype of the other operand if it fits." },
    { "Formulas of other ops", formulas, (int)NELEM(formulas), .rules =
      "Each op stands for a formula of other ops, and is compiled as that formula is. Dtypes, sizes and errors follow from it." },
    { "Shapes, axes, dtypes", mc_ops_shape, .count = &mc_nops_shape, .rules =
      "No element is computed here; most results are views. An axis may be negative: -1 is the last. A "
      "reshape to a shape with another number of elements is an error: MC_ESHAPE while building if the "
      "sizes are known, else when the function is called." },
    { "Shapes, axes, dtypes", mc_ops_axes, .count = &mc_nops_axes },
    { "Reductions", mc_ops_reduce, .count = &mc_nops_reduce, .rules =
      "`axis` is one axis, a list of axes, or None for all. With `keepdims=True` the axes stay, with size 1. "
      "For no elements `sum` is 0, `prod` is 1, `any` is False and `all` is True; `max`, `min`, `argmax` and "
      "`argmin` refuse them." },
    { "Cumulative sums", mc_ops_running, .count = &mc_nops_running, .rules =
      "The result has the shape of x; with `axis=None` x is flattened first. Small integers and bool become "
      "64-bit integers." },
    { "Slices", mc_ops_index, .count = &mc_nops_index },
    { "Indexing by tensors", mc_ops_gather, .count = &mc_nops_gather, .rules =
      "Indices are integers; negative ones count from the end. An index out of range is an error, "
      "MC_EINDEX, at the latest when the function is called. Indices have no gradient." },
    { "Along one axis", mc_ops_along, .count = &mc_nops_along, .rules =
      "`axis` is one axis; None, where it is allowed, flattens x first. NaN is larger than every number." },
    { "Positions", mc_ops_position, .count = &mc_nops_position, .rules =
      "Results are int64 unless weights have another dtype. Indices and counts have no gradient; weights and choices have one." },
    { "Joining and splitting", mc_ops_join, .count = &mc_nops_join, .rules =
      "Inputs of several dtypes are promoted to one. Their sizes must agree along all axes but the one that "
      "they are joined along." },
    { "Joining and splitting", mc_ops_pad, .count = &mc_nops_pad },
    { "Arrays from shapes", mc_ops_make, .count = &mc_nops_make, .rules =
      "A shape is a vector of integers or a list of integer scalars. Its length must be known when the "
      "graph is built." },
    { "Products", mc_ops_product, .count = &mc_nops_product, .rules =
      "Inputs of two dtypes are promoted to one. Sizes that are summed over must agree, else the error is "
      "MC_ESHAPE. Products of floats are computed by one of the solvers in `src/heavy/gemm`, which the planner "
      "chooses." },
    { "Products", mc_ops_einsum, .count = &mc_nops_einsum },
    { "Fourier transforms", mc_ops_fft, .count = &mc_nops_fft, .rules =
      "A complex number is a last axis of two. The first axis is the batch. Transforms are computed in float64 by the reference." },
    { "Linear algebra", mc_ops_linalg, .count = &mc_nops_linalg, .rules =
      "A matrix is the last two axes; what comes before them is a stack of matrices, each of which is treated alone. Integers "
      "become float64; float16 and bfloat16 are refused, as in NumPy. A matrix that the op cannot treat, such as a singular "
      "one, is an error, MC_ECHECK, which names the matrix of the stack and the pivot: [linear algebra](../linalg.md)." },
    { "Linear algebra", mc_ops_linalg_names, .count = &mc_nops_linalg_names },
    { "Convolution", mc_ops_conv, .count = &mc_nops_conv, .rules =
      "x has the axes batch, channels, then one to three spatial axes; w has filters, channels of a group, "
      "then taps. Both are promoted to one float dtype; two arrays of integers are an error. `flip=True` "
      "flips the filters, as a convolution does; with `flip=False` the op is a correlation. Each is computed "
      "by one of the solvers in `src/heavy/conv`, which the planner chooses: [convolution](../convolution.md)." },
    { "Convolution under other names", mc_ops_conv_names, .count = &mc_nops_conv_names, .rules =
      "These are `conv`, `conv_inputs` and `conv_weights` under the names and with the arguments of other "
      "libraries. Shapes and dtypes are theirs." },
    { "cuda-convnet and Nervana", mc_ops_conv_kin, .count = &mc_nops_conv_kin, .rules =
      "These have the layouts of cuda-convnet (channels, rows, columns, batch) and of Nervana, and are "
      "computed as `conv` is." },
    { "Images", mc_ops_image, .count = &mc_nops_image, .rules =
      "The last two axes are rows and columns." },
    { "Pooling", mc_ops_pool, .count = &mc_nops_pool, .rules =
      "Windows lie along the last axes, as many as `ws` has numbers, unless `axis` or `layout` names "
      "others. `stride` and `pad` have as many numbers as `ws`. Maxima have the dtype of x; averages of "
      "integers are floats." },
    { "Pooling", mc_ops_pool_draw, .count = &mc_nops_pool_draw },
    { "Pooling under other names", mc_ops_pool_names, .count = &mc_nops_pool_names, .rules =
      "These are `pool` and related ops under the names and with the arguments of other libraries." },
    { "Normalisation", mc_ops_norm, .count = &mc_nops_norm, .rules =
      "The result has the dtype of x; integers become floats." },
    { "Normalisation", mc_ops_norm_batch, .count = &mc_nops_norm_batch },
    { "Sequences", mc_ops_ctc, .count = &mc_nops_ctc, .rules =
      "Costs of sequences have the dtype of the activations." },
    { "Sorting", mc_ops_sort, .count = &mc_nops_sort, .rules =
      "NaN is larger than every number. Equal elements stay in their order." },
    { "Random", mc_ops_random, .count = &mc_nops_random, .rules =
      "`rng` is a random stream, made by `mc_random`. The numbers follow from its seed, the number of the "
      "draw and the index of the element: they are the same on every device and for every number of "
      "threads. Gradients do not pass through a draw." },
    { "Effects", mc_ops_effect, .count = &mc_nops_effect, .rules =
      "The result is x, with its dtype and shape. What differs is the gradient, or something that happens "
      "when the function is called." },
    { "Ranks", mc_ops_collective, .count = &mc_nops_collective, .rules =
      "Each rank, a process or a thread, runs the same program on its share of the data. Sums are added in one fixed "
      "order over the ranks, so that all have the same bits. `group` names a group that `mc_graph_ranks` made; without a "
      "name it is the graph's first, and without any group a rank is alone. Gradients are those of the sum of the "
      "costs of all ranks. [Many ranks](../ranks.md) has the details." },
    { "Loops", mc_ops_scan, .count = &mc_nops_scan },
    { "Branches", mc_ops_ifelse, .count = &mc_nops_ifelse, .rules =
      "`c` is a scalar of any dtype, which is true unless it is 0. Both sides have the same dtype and rank. Only "
      "what the chosen side needs is computed; what both sides or other nodes need as well is computed in any "
      "case. [Branches](../text-form.md#branches) has the details." },
    { "Branches", mc_ops_branch, .count = &mc_nops_branch },
};
const int mc_nop_families = (int)NELEM(mc_op_families);

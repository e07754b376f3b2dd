/* monochord_ops.h: one function an op.  Written from the table of ops (tests/t_generated.c); do not edit.
 *
 * A tensor that a signature lets out (b=None) may be NULL.  Attributes go as text, as in a formula,
 * printf-like; NULL leaves all at their defaults:
 *
 *     mc_node *y = mc_sum(x, "axis=%d, keepdims=True", 1), *z = mc_softmax(x, NULL);
 *
 * Ops with several results give a tuple: mc_item(t, 0).  Each function notes the file and line it is called
 * from, for messages; a name in brackets, (mc_exp)(x), does not. */
#ifndef MONOCHORD_OPS_H
#define MONOCHORD_OPS_H

#include <monochord.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ Element by element ---- */

MC_API mc_node *mc_add(mc_node *a, mc_node *b);              /* a + b */
MC_API mc_node *mc_sub(mc_node *a, mc_node *b);              /* a - b */
MC_API mc_node *mc_mul(mc_node *a, mc_node *b);              /* a * b */
MC_API mc_node *mc_true_div(mc_node *a, mc_node *b);         /* a / b; integers give floatX */
/* floor of a / b; division by 0 gives 0 for integers and a / b for floats */
MC_API mc_node *mc_int_div(mc_node *a, mc_node *b);
/* remainder of a // b, exact, with the sign of b; if b is 0, the result is 0 for integers and NaN for
 * floats */
MC_API mc_node *mc_mod(mc_node *a, mc_node *b);
/* what a / b leaves, exact, with the sign of a; of integers by 0 it is 0, of floats NaN */
MC_API mc_node *mc_fmod(mc_node *a, mc_node *b);
MC_API mc_node *mc_pow(mc_node *a, mc_node *b);              /* a to the power b */
MC_API mc_node *mc_neg(mc_node *a);                          /* -a */
MC_API mc_node *mc_abs(mc_node *a);                          /* absolute value */
MC_API mc_node *mc_sqr(mc_node *a);                          /* a * a */
MC_API mc_node *mc_sqrt(mc_node *a);                         /* square root */
MC_API mc_node *mc_reciprocal(mc_node *a);                   /* 1 / a */
MC_API mc_node *mc_maximum(mc_node *a, mc_node *b);          /* the larger of a and b; NaN if either is NaN */
/* the smaller of a and b; NaN if either is NaN */
MC_API mc_node *mc_minimum(mc_node *a, mc_node *b);
MC_API mc_node *mc_clip(mc_node *a, mc_node *b, mc_node *c); /* a limited to the range from b to c */
MC_API mc_node *mc_sgn(mc_node *a);                          /* sign of a: -1, 0 or 1 */
MC_API mc_node *mc_copysign(mc_node *a, mc_node *b);         /* a with the sign of b */
MC_API mc_node *mc_hypot(mc_node *a, mc_node *b);            /* sqrt(a * a + b * b), without overflow */
MC_API mc_node *mc_lt(mc_node *a, mc_node *b);               /* a < b */
MC_API mc_node *mc_le(mc_node *a, mc_node *b);               /* a <= b */
MC_API mc_node *mc_gt(mc_node *a, mc_node *b);               /* a > b */
MC_API mc_node *mc_ge(mc_node *a, mc_node *b);               /* a >= b */
MC_API mc_node *mc_eq(mc_node *a, mc_node *b);               /* a == b */
MC_API mc_node *mc_neq(mc_node *a, mc_node *b);              /* a != b */
MC_API mc_node *mc_isnan(mc_node *a);                        /* True where a is NaN */
MC_API mc_node *mc_isinf(mc_node *a);                        /* True where a is infinite */
MC_API mc_node *mc_isfinite(mc_node *a);                     /* is it neither an infinity nor NaN */
MC_API mc_node *mc_signbit(mc_node *a);                      /* is the sign bit set: below 0, or -0 */
MC_API mc_node *mc_where(mc_node *a, mc_node *b, mc_node *c); /* b where a is true, else c */
MC_API mc_node *mc_and_(mc_node *a, mc_node *b);             /* bitwise and; logical on bool */
MC_API mc_node *mc_or_(mc_node *a, mc_node *b);              /* bitwise or; logical on bool */
MC_API mc_node *mc_xor(mc_node *a, mc_node *b);              /* bitwise exclusive or; logical on bool */
MC_API mc_node *mc_invert(mc_node *a);                       /* bitwise not; logical on bool */
MC_API mc_node *mc_exp(mc_node *a);                          /* e to the power a */
MC_API mc_node *mc_exp2(mc_node *a);                         /* 2 to the power a */
MC_API mc_node *mc_expm1(mc_node *a);                        /* exp(a) - 1, accurate near 0 */
MC_API mc_node *mc_log(mc_node *a);                          /* natural logarithm */
MC_API mc_node *mc_log2(mc_node *a);                         /* logarithm to base 2 */
MC_API mc_node *mc_log10(mc_node *a);                        /* logarithm to base 10 */
MC_API mc_node *mc_log1p(mc_node *a);                        /* log(1 + a), accurate near 0 */
MC_API mc_node *mc_floor(mc_node *a);                        /* largest integer not above a */
MC_API mc_node *mc_ceil(mc_node *a);                         /* smallest integer not below a */
MC_API mc_node *mc_trunc(mc_node *a);                        /* a rounded towards zero */
MC_API mc_node *mc_round(mc_node *a);                        /* nearest integer; halves round to even */
/* nearest integer; halves round away from zero */
MC_API mc_node *mc_round_half_away(mc_node *a);
/* nearest integer as int64; halves round to even */
MC_API mc_node *mc_iround(mc_node *a);
MC_API mc_node *mc_sin(mc_node *a);                          /* sine */
MC_API mc_node *mc_cos(mc_node *a);                          /* cosine */
MC_API mc_node *mc_tan(mc_node *a);                          /* tangent */
MC_API mc_node *mc_arcsin(mc_node *a);                       /* inverse sine */
MC_API mc_node *mc_arccos(mc_node *a);                       /* inverse cosine */
MC_API mc_node *mc_arctan(mc_node *a);                       /* inverse tangent */
MC_API mc_node *mc_arctan2(mc_node *a, mc_node *b);          /* angle of the point (b, a) */
MC_API mc_node *mc_sinh(mc_node *a);                         /* hyperbolic sine */
MC_API mc_node *mc_cosh(mc_node *a);                         /* hyperbolic cosine */
MC_API mc_node *mc_tanh(mc_node *a);                         /* hyperbolic tangent */
MC_API mc_node *mc_arcsinh(mc_node *a);                      /* inverse hyperbolic sine */
MC_API mc_node *mc_arccosh(mc_node *a);                      /* inverse hyperbolic cosine */
MC_API mc_node *mc_arctanh(mc_node *a);                      /* inverse hyperbolic tangent */
MC_API mc_node *mc_deg2rad(mc_node *a);                      /* degrees to radians */
MC_API mc_node *mc_rad2deg(mc_node *a);                      /* radians to degrees */
MC_API mc_node *mc_erf(mc_node *a);                          /* error function */
MC_API mc_node *mc_erfc(mc_node *a);                         /* 1 - erf(a), accurate for large a */
/* logarithm of the absolute value of the gamma function */
MC_API mc_node *mc_gammaln(mc_node *a);
MC_API mc_node *mc_psi(mc_node *a);                          /* derivative of gammaln */
MC_API mc_node *mc_tri_gamma(mc_node *a);                    /* derivative of psi */
MC_API mc_node *mc_erfinv(mc_node *a);                       /* the inverse of erf */
MC_API mc_node *mc_erfcinv(mc_node *a);                      /* the inverse of erfc, exact for small a */
MC_API mc_node *mc_erfcx(mc_node *a);                        /* exp(a * a) * erfc(a), without overflow */
MC_API mc_node *mc_gamma(mc_node *a);                        /* the gamma function */
/* the lower incomplete gamma function of order a, regularised */
MC_API mc_node *mc_gammainc(mc_node *a, mc_node *b);
/* the upper incomplete gamma function of order a, regularised: 1 - gammainc(a, b) */
MC_API mc_node *mc_gammaincc(mc_node *a, mc_node *b);
MC_API mc_node *mc_gammaincinv(mc_node *a, mc_node *b);      /* the x whose gammainc(a, x) is b */
/* the incomplete beta function of a and b at c, regularised */
MC_API mc_node *mc_betainc(mc_node *a, mc_node *b, mc_node *c);
/* the Bessel function of the first kind of order 0 */
MC_API mc_node *mc_j0(mc_node *a);
/* the Bessel function of the first kind of order 1 */
MC_API mc_node *mc_j1(mc_node *a);
/* the Bessel function of the first kind of order a, a real number; of b < 0 whole orders only */
MC_API mc_node *mc_jv(mc_node *a, mc_node *b);
/* the modified Bessel function of the first kind of order 0 */
MC_API mc_node *mc_i0(mc_node *a);
/* the modified Bessel function of the first kind of order 1 */
MC_API mc_node *mc_i1(mc_node *a);
/* the modified Bessel function of the first kind of order a; of b < 0 whole orders only */
MC_API mc_node *mc_iv(mc_node *a, mc_node *b);
MC_API mc_node *mc_sigmoid(mc_node *a);                      /* 1 / (1 + exp(-a)) */
MC_API mc_node *mc_softplus(mc_node *a);                     /* log(1 + exp(a)) */
MC_API mc_node *mc_logaddexp(mc_node *a, mc_node *b);        /* log(exp(a) + exp(b)) */
MC_API mc_node *mc_xlogx(mc_node *a);                        /* a * log(a), 0 at 0 */
MC_API mc_node *mc_xlogy0(mc_node *a, mc_node *b);           /* a * log(b), 0 where a is 0 */
/* a; as the result of a function it stays in device memory */
MC_API mc_node *mc_gpu_from_host(mc_node *a);
MC_API mc_node *mc_host_from_gpu(mc_node *a);                /* a, in host memory */

/* --------------------------------------------------------------- Formulas of other ops ---- */

MC_API mc_node *mc_inv(mc_node *x);                          /* 1 / x */
MC_API mc_node *mc_square(mc_node *x);                       /* x * x */
MC_API mc_node *mc_switch(mc_node *c, mc_node *a, mc_node *b); /* a where c is true, else b */
MC_API mc_node *mc_ceil_intdiv(mc_node *a, mc_node *b);      /* a / b rounded up, for integers */
MC_API mc_node *mc_divmod(mc_node *a, mc_node *b);           /* the quotient and the remainder */
/* relu(x, alpha=0:real): x where positive, else alpha * x; the derivative at 0 is the mean of the two
 * slopes */
MC_API mc_node *mc_relu(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* elu(x, alpha=1:real): x where positive, else alpha * (exp(x) - 1) */
MC_API mc_node *mc_elu(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
MC_API mc_node *mc_selu(mc_node *x);                         /* scaled exponential linear unit */
/* approximation of sigmoid by three straight lines */
MC_API mc_node *mc_hard_sigmoid(mc_node *x);
/* piecewise approximation of sigmoid; the error is at most 0.07 */
MC_API mc_node *mc_ultra_fast_sigmoid(mc_node *x);
MC_API mc_node *mc_softsign(mc_node *x);                     /* x / (1 + |x|) */
/* the probability that a chi-squared number of k degrees of freedom is larger than x */
MC_API mc_node *mc_chi2sf(mc_node *x, mc_node *k);
/* the upper incomplete gamma function, not regularised */
MC_API mc_node *mc_gammau(mc_node *k, mc_node *x);
/* the lower incomplete gamma function, not regularised */
MC_API mc_node *mc_gammal(mc_node *k, mc_node *x);
/* x times the normal distribution function of x */
MC_API mc_node *mc_gelu(mc_node *x);
/* gelu as it is approximated by a tanh, within 0.0005 */
MC_API mc_node *mc_gelu_tanh(mc_node *x);
MC_API mc_node *mc_silu(mc_node *x);                         /* x * sigmoid(x), also called swish */
MC_API mc_node *mc_mish(mc_node *x);                         /* x * tanh(softplus(x)) */
/* x * clip(x / 6 + 0.5, 0, 1): silu in three pieces */
MC_API mc_node *mc_hardswish(mc_node *x);
/* x where positive, else alpha * x; alpha may be learnt */
MC_API mc_node *mc_prelu(mc_node *x, mc_node *alpha);
MC_API mc_node *mc_rsqrt(mc_node *x);                        /* 1 / sqrt(x) */
/* the bits of a moved b places up, of a bool as int8; 0 if b is negative or too large */
MC_API mc_node *mc_left_shift(mc_node *a, mc_node *b);
/* the bits of a moved b places down, copies of the sign moving in; a negative b moves all out */
MC_API mc_node *mc_right_shift(mc_node *a, mc_node *b);
/* isclose(a, b, rtol=1e-05:real, atol=1e-08:real): True where a and b are close: abs(a - b) <= atol + rtol
 * * abs(b) */
MC_API mc_node *mc_isclose(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
/* allclose(a, b, rtol=1e-05:real, atol=1e-08:real): True if all elements of a and b are close, as isclose
 * defines it */
MC_API mc_node *mc_allclose(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_identity(mc_node *x);                     /* x */
/* x; values of a graph never change, so no copy is made */
MC_API mc_node *mc_tensor_copy(mc_node *x);
MC_API mc_node *mc_gpu_contiguous(mc_node *x);               /* x: layouts are chosen by the compiler */
/* x: where values are stored is chosen by the compiler */
MC_API mc_node *mc_as_cuda_ndarray_variable(mc_node *x);
/* where each point of an image of that size is read, (images, height, width, 2) of x and y from -1 to 1,
 * by affine maps theta of (images, 2, 3) */
MC_API mc_node *mc_spatial_grid(mc_node *theta, mc_node *height, mc_node *width);
/* images (images, channels, rows, columns) read between their elements at the points of a grid, 0 outside */
MC_API mc_node *mc_spatial_sample(mc_node *img, mc_node *grid);
/* dnn_spatialtf(img, theta, scale_width=1:real, scale_height=1:real): a spatial transformer: images read
 * at the points that affine maps theta of (images, 2, 3) say */
MC_API mc_node *mc_dnn_spatialtf(mc_node *img, mc_node *theta, const char *how, ...) MC_FORMAT(3, 4);
/* dnn_ctc_loss(activations, labels, lengths=None, zero_infinity=False:bool): ctc_loss by cuDNN's name */
MC_API mc_node *mc_dnn_ctc_loss(mc_node *activations, mc_node *labels, mc_node *lengths, const char *how, ...)
    MC_FORMAT(4, 5);
MC_API mc_node *mc_second(mc_node *a, mc_node *b);           /* b broadcast to the shape of a */
/* b broadcast to the shape of a, with the dtype of a */
MC_API mc_node *mc_fill(mc_node *a, mc_node *b);
MC_API mc_node *mc_zeros_like(mc_node *x);                   /* zeros with the shape and dtype of x */
MC_API mc_node *mc_ones_like(mc_node *x);                    /* ones with the shape and dtype of x */
/* zeros(shape, dtype=None:dtype): zeros of the given shape */
MC_API mc_node *mc_zeros(mc_node *shape, const char *how, ...) MC_FORMAT(2, 3);
/* ones(shape, dtype=None:dtype): ones of the given shape */
MC_API mc_node *mc_ones(mc_node *shape, const char *how, ...) MC_FORMAT(2, 3);
/* mean(x, axis=None:axes, keepdims=False:bool): mean over axes; float64 for integers */
MC_API mc_node *mc_mean(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* var(x, axis=None:axes, keepdims=False:bool, ddof=0:int): variance over axes; the divisor is the number
 * of elements minus ddof */
MC_API mc_node *mc_variance(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* std(x, axis=None:axes, keepdims=False:bool, ddof=0:int): standard deviation over axes: the square root
 * of var */
MC_API mc_node *mc_std(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* ptp(x, axis=None:axes): largest minus smallest element over axes */
MC_API mc_node *mc_ptp(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* max_and_argmax(x, axis=None:axes, keepdims=False:bool): the largest element over axes and the index of
 * its first occurrence */
MC_API mc_node *mc_max_and_argmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* logsumexp(x, axis=None:axes, keepdims=False:bool): log of the sum of exp over axes; rewriting makes it
 * safe from overflow */
MC_API mc_node *mc_logsumexp(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nansum(x, axis=None:axes, keepdims=False:bool): sum of the elements that are not NaN */
MC_API mc_node *mc_nansum(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nanmax(x, axis=None:axes, keepdims=False:bool): the largest element that is not NaN; NaN if all are */
MC_API mc_node *mc_nanmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nanmin(x, axis=None:axes, keepdims=False:bool): the smallest element that is not NaN; NaN if all are */
MC_API mc_node *mc_nanmin(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nanmean(x, axis=None:axes, keepdims=False:bool): mean of the elements that are not NaN; NaN if all are */
MC_API mc_node *mc_nanmean(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nanvar(x, axis=None:axes, keepdims=False:bool, ddof=0:int): variance of the elements that are not NaN,
 * divided by their count less ddof */
MC_API mc_node *mc_nanvar(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nanstd(x, axis=None:axes, keepdims=False:bool, ddof=0:int): standard deviation of the elements that are
 * not NaN */
MC_API mc_node *mc_nanstd(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cov(x, ddof=1:int): covariances of the rows of x, each a variable, its columns observations; of a vector
 * the variance */
MC_API mc_node *mc_cov(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* correlations of the rows of x, each a variable */
MC_API mc_node *mc_corrcoef(mc_node *x);
/* softmax(x, axis=-1:int): exp(x) divided by its sum along an axis */
MC_API mc_node *mc_softmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* logsoftmax(x, axis=-1:int): log of softmax, accurate for large differences */
MC_API mc_node *mc_logsoftmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* -log(softmax(x))[i, t[i]] for each row i */
MC_API mc_node *mc_crossentropy_softmax_1hot(mc_node *x, mc_node *t);
/* cross-entropy of distributions p and t, row by row */
MC_API mc_node *mc_categorical_crossentropy(mc_node *p, mc_node *t);
MC_API mc_node *mc_crossentropy_1hot(mc_node *p, mc_node *t); /* -log(p[i, t[i]]) for each row i */
/* cross-entropy of probabilities p and targets t */
MC_API mc_node *mc_binary_crossentropy(mc_node *p, mc_node *t);
/* binary_crossentropy(sigmoid(x), t), accurate for large x */
MC_API mc_node *mc_sigmoid_binary_crossentropy(mc_node *x, mc_node *t);
MC_API mc_node *mc_softmax_with_bias(mc_node *x, mc_node *b); /* softmax of x + b */
/* -log(softmax(x + b))[i, t[i]] for each row i */
MC_API mc_node *mc_crossentropy_softmax_1hot_with_bias(mc_node *x, mc_node *b, mc_node *t);
/* crossentropy_softmax_1hot, and the largest element of each row with the index of its first occurrence */
MC_API mc_node *mc_crossentropy_softmax_max_and_argmax_1hot(mc_node *x, mc_node *t);
/* crossentropy_softmax_max_and_argmax_1hot of x + b */
MC_API mc_node *mc_crossentropy_softmax_max_and_argmax_1hot_with_bias(mc_node *x, mc_node *b, mc_node *t);
/* softmax in two levels: over classes by W1 (features, classes), then over the outputs of a class by W2
 * (classes, features, outputs); the result has the first n_outputs outputs */
MC_API mc_node *mc_h_softmax(mc_node *x, mc_node *W1, mc_node *b1, mc_node *W2, mc_node *b2, mc_node
    *n_outputs);
/* h_softmax(...)[i, t[i]] for each row i, without the other outputs */
MC_API mc_node *mc_h_softmax_at(mc_node *x, mc_node *W1, mc_node *b1, mc_node *W2, mc_node *b2, mc_node *t);
/* the number of examples with label u[i] in t and u[j] in p, and the labels u in ascending order */
MC_API mc_node *mc_confusion_matrix(mc_node *t, mc_node *p);
/* the matrix x with a column of v in front */
MC_API mc_node *mc_prepend_scalar_to_each_row(mc_node *v, mc_node *x);
/* the matrix x with a column of zeros in front */
MC_API mc_node *mc_prepend_0_to_each_row(mc_node *x);
MC_API mc_node *mc_prepend_1_to_each_row(mc_node *x);        /* the matrix x with a column of ones in front */
/* -log(p[i, t[i]]) for each row i */
MC_API mc_node *mc_crossentropy_categorical_1hot(mc_node *p, mc_node *t);
MC_API mc_node *mc_ravel(mc_node *x);                        /* all elements of x as a vector */
MC_API mc_node *mc_inverse_permutation(mc_node *p);          /* the permutation that undoes p */
/* the distinct elements of x in ascending order; all NaN count as one, which is the last */
MC_API mc_node *mc_unique(mc_node *x);
/* the elements of unique, where each first stands in x, for each element of x its place among them, and
 * how often each occurs */
MC_API mc_node *mc_unique_all(mc_node *x);
/* x repeated along axes of size 1, and new ones in front, to a shape */
MC_API mc_node *mc_broadcast_to(mc_node *x, mc_node *shape);
MC_API mc_node *mc_full_like(mc_node *x, mc_node *value);    /* value in the shape and dtype of x */
/* linspace(start, stop, num=50:int, endpoint=True:bool): num numbers from start to stop at equal
 * distances; without endpoint stop is left out */
MC_API mc_node *mc_linspace(mc_node *start, mc_node *stop, const char *how, ...) MC_FORMAT(3, 4);
/* logspace(start, stop, num=50:int, endpoint=True:bool, base=10:real): base to the powers linspace(start,
 * stop) */
MC_API mc_node *mc_logspace(mc_node *start, mc_node *stop, const char *how, ...) MC_FORMAT(3, 4);
/* geomspace(start, stop, num=50:int, endpoint=True:bool): num numbers from start to stop at equal ratios */
MC_API mc_node *mc_geomspace(mc_node *start, mc_node *stop, const char *how, ...) MC_FORMAT(3, 4);
/* eye(n, m=None, k=0:int, dtype=None:dtype): matrix with ones on the k-th diagonal, else zeros */
MC_API mc_node *mc_eye(mc_node *n, mc_node *m, const char *how, ...) MC_FORMAT(3, 4);
/* ones on the diagonal, else zeros, with the shape and dtype of x */
MC_API mc_node *mc_identity_like(mc_node *x);
/* the triangular window of n points, 0 at both ends; 1 for a single point */
MC_API mc_node *mc_bartlett(mc_node *n);
/* tri(n, m=None, k=0:int, dtype=None:dtype): matrix with ones on and below the k-th diagonal, else zeros */
MC_API mc_node *mc_tri(mc_node *n, mc_node *m, const char *how, ...) MC_FORMAT(3, 4);
/* tril(x, k=0:int): x on and below the k-th diagonal, else zeros */
MC_API mc_node *mc_tril(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* triu(x, k=0:int): x on and above the k-th diagonal, else zeros */
MC_API mc_node *mc_triu(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* to_one_hot(t, n, dtype=None:dtype): rows of length n: row i has a 1 at index t[i], else zeros */
MC_API mc_node *mc_to_one_hot(mc_node *t, mc_node *n, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_zero_grad(mc_node *x);                    /* x, treated as a constant by gradients */
/* x, treated as a constant by gradients; the same as zero_grad */
MC_API mc_node *mc_disconnected_grad(mc_node *x);
/* x normalised by the given mean and standard deviation, times gamma, plus beta */
MC_API mc_node *mc_batch_normalization(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *mean, mc_node
    *std);
/* layer_norm(x, gamma=None, beta=None, epsilon=1e-05:real): x normalised to mean 0 and variance 1 along
 * the last axis, times gamma, plus beta */
MC_API mc_node *mc_layer_norm(mc_node *x, mc_node *gamma, mc_node *beta, const char *how, ...) MC_FORMAT(4,
    5);
/* rms_norm(x, gamma=None, epsilon=1e-05:real): rows divided by the root of the mean of their squares,
 * times gamma */
MC_API mc_node *mc_rms_norm(mc_node *x, mc_node *gamma, const char *how, ...) MC_FORMAT(3, 4);
/* group_norm(x, gamma=None, beta=None, groups:int, epsilon=1e-05:real): each group of channels (axis 1) of
 * each image with mean 0 and variance 1, times gamma, plus beta, which have an element a channel */
MC_API mc_node *mc_group_norm(mc_node *x, mc_node *gamma, mc_node *beta, const char *how, ...) MC_FORMAT(4,
    5);
/* instance_norm(x, gamma=None, beta=None, epsilon=1e-05:real): each channel (axis 1) of each image with
 * mean 0 and variance 1, times gamma, plus beta */
MC_API mc_node *mc_instance_norm(mc_node *x, mc_node *gamma, mc_node *beta, const char *how, ...) MC_FORMAT(4,
    5);
/* the LU factors of a matrix with partial pivoting: L without its diagonal of ones and U in one matrix,
 * and the order p of rows, so that x[p] = L U */
MC_API mc_node *mc_lu_factor(mc_node *x);
/* P, L and U with P L U = x: a permutation, a lower triangular matrix with ones on its diagonal, an upper
 * triangular one */
MC_API mc_node *mc_lu(mc_node *x);
/* the determinant of a matrix, by its LU factors */
MC_API mc_node *mc_det(mc_node *x);
/* the sign of the determinant and the logarithm of its magnitude; 0 and -inf for a singular matrix */
MC_API mc_node *mc_slogdet(mc_node *x);
/* the exponential of a matrix: a Pade approximant of x divided by a power of two, which is then squared;
 * of a stack the same power for all */
MC_API mc_node *mc_expm(mc_node *x);
/* the solution x of a x = b for lower triangular a */
MC_API mc_node *mc_solve_lower_triangular(mc_node *a, mc_node *b);
/* the solution x of a x = b for upper triangular a */
MC_API mc_node *mc_solve_upper_triangular(mc_node *a, mc_node *b);
/* the condition number of a matrix: its largest singular value divided by the least */
MC_API mc_node *mc_cond(mc_node *x);

/* ---------------------------------------------------------------- Shapes, axes, dtypes ---- */

/* cast(x, dtype:dtype): x converted to a dtype */
MC_API mc_node *mc_cast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* dimshuffle(x, order:ints): x with its axes in another order; -1 adds an axis of size 1, axes of size 1
 * may be left out */
MC_API mc_node *mc_dimshuffle(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* reshape(x, shape, ndim=None:int): the elements of x in another shape; one size may be -1 */
MC_API mc_node *mc_reshape(mc_node *x, mc_node *shape, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_shape(mc_node *x);                        /* the sizes of x as a vector */
/* size(x, axis:int): the size of x along an axis */
MC_API mc_node *mc_size(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* specify_shape(x, sizes:ints): x, with a promise of its sizes; -1: unknown */
MC_API mc_node *mc_specify_shape(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* transpose(x, axes=None:ints): x with its axes reversed, or in the given order */
MC_API mc_node *mc_transpose(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* swapaxes(x, a:int, b:int): x with two axes exchanged */
MC_API mc_node *mc_swapaxes(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* moveaxis(x, source:ints, destination:ints): axes moved to other places; the others keep their order */
MC_API mc_node *mc_moveaxis(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* flip(x, axis=None:axes): x read backwards along all axes, or those given */
MC_API mc_node *mc_flip(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* expand_dims(x, axis:int): x with a new axis of size 1 */
MC_API mc_node *mc_expand_dims(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* shape_padleft(x, n=1:int): x with n axes of size 1 added in front */
MC_API mc_node *mc_shape_padleft(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* shape_padright(x, n=1:int): x with n axes of size 1 added at the end */
MC_API mc_node *mc_shape_padright(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* shape_padaxis(x, axis:int): x with a new axis of size 1 */
MC_API mc_node *mc_shape_padaxis(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* squeeze(x, axis=None:axes): x without axes of size 1 */
MC_API mc_node *mc_squeeze(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* flatten(x, ndim=1:int): x with its last axes merged, so that ndim axes remain */
MC_API mc_node *mc_flatten(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nan_to_num(x, nan=0:real, posinf=None:real, neginf=None:real): x with numbers in place of NaN and of the
 * infinities, which become the largest of the dtype unless others are given */
MC_API mc_node *mc_nan_to_num(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* count(x, axis=None:axes): the number of elements along the axes */
MC_API mc_node *mc_count(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* addbroadcast(x, axis:axes): x, with a promise that these axes have size 1 */
MC_API mc_node *mc_addbroadcast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* unbroadcast(x, axis:axes): x, which no longer broadcasts along these axes */
MC_API mc_node *mc_unbroadcast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* patternbroadcast(x, pattern:ints): x; pattern has an entry for each axis: 1 as addbroadcast, 0 as
 * unbroadcast, -1 unchanged */
MC_API mc_node *mc_patternbroadcast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* -------------------------------------------------------------------------- Reductions ---- */

/* sum(x, axis=None:axes, keepdims=False:bool, dtype=None:dtype, acc_dtype=None:dtype): sum over axes;
 * small integers are summed in 64 bits */
MC_API mc_node *mc_sum(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* prod(x, axis=None:axes, keepdims=False:bool, dtype=None:dtype, acc_dtype=None:dtype): product over axes;
 * small integers are multiplied in 64 bits */
MC_API mc_node *mc_prod(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* max(x, axis=None:axes, keepdims=False:bool): the largest element over axes; NaN if one is NaN */
MC_API mc_node *mc_max(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* min(x, axis=None:axes, keepdims=False:bool): the smallest element over axes; NaN if one is NaN */
MC_API mc_node *mc_min(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* argmax(x, axis=None:axes, keepdims=False:bool): the index of the first largest element, or of the first
 * NaN, in the flattened reduced axes */
MC_API mc_node *mc_argmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* argmin(x, axis=None:axes, keepdims=False:bool): the index of the first smallest element, or of the first
 * NaN, in the flattened reduced axes */
MC_API mc_node *mc_argmin(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* any(x, axis=None:axes, keepdims=False:bool): True if an element over axes is nonzero */
MC_API mc_node *mc_any(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* all(x, axis=None:axes, keepdims=False:bool): True if all elements over axes are nonzero */
MC_API mc_node *mc_all(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* norm(x, ord=2:real, axis=None:axes): the norm of order ord over axes: the ord-th root of the sum of
 * abs(x) ** ord; inf: the largest magnitude, -inf: the smallest, 0: the number of nonzero elements */
MC_API mc_node *mc_norm(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* --------------------------------------------------------------------- Cumulative sums ---- */

/* cumsum(x, axis=None:int): cumulative sum along an axis; with axis=None of flattened x */
MC_API mc_node *mc_cumsum(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cumprod(x, axis=None:int): cumulative product along an axis; with axis=None of flattened x */
MC_API mc_node *mc_cumprod(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cummax(x, axis=None:int): the largest of the first elements along an axis, from a NaN on NaN; None
 * flattens */
MC_API mc_node *mc_cummax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cummin(x, axis=None:int): the smallest of the first elements along an axis, from a NaN on NaN; None
 * flattens */
MC_API mc_node *mc_cummin(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* ----------------------------------------------------------------- Indexing by tensors ---- */

/* gather(x, *index, axes:ints): x[idx]: elements of x at index tensors for these axes */
MC_API mc_node *mc_gather(mc_node *x, int n, mc_node *const *index, const char *how, ...) MC_FORMAT(4, 5);
/* the indices of the nonzero elements of x: a vector for each axis */
MC_API mc_node *mc_nonzero(mc_node *x);
/* take(x, index, axis=None:int, mode=raise:text): the elements of x at index along an axis, or of
 * flattened x; mode: an index out of range is an error (raise), wraps around (wrap) or is clipped (clip) */
MC_API mc_node *mc_take(mc_node *x, mc_node *index, const char *how, ...) MC_FORMAT(3, 4);
/* the indices of the nonzero elements of flattened x */
MC_API mc_node *mc_flatnonzero(mc_node *x);
MC_API mc_node *mc_nonzero_values(mc_node *x);               /* the nonzero elements of x as a vector */
/* compress(c, x, axis=None:int): the slices of x along an axis where the vector c is nonzero */
MC_API mc_node *mc_compress(mc_node *c, mc_node *x, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_fill_diagonal(mc_node *x, mc_node *v);    /* the matrix x with v on its diagonal */
/* the matrix x with v on its diagonal above the main one, or below it if offset is negative */
MC_API mc_node *mc_fill_diagonal_offset(mc_node *x, mc_node *v, mc_node *offset);

/* ---------------------------------------------------------------------- Along one axis ---- */

/* take_along_axis(x, index, axis=-1:int): elements of each line of x along an axis, at the indices of the
 * same line */
MC_API mc_node *mc_take_along_axis(mc_node *x, mc_node *index, const char *how, ...) MC_FORMAT(3, 4);
/* put_along_axis(x, index, v, axis=-1:int, mode=set:text): x with its elements at the indices of each line
 * set to v (mode set), increased by v as often as an index repeats (add), or replaced by v where that is
 * larger (max) or smaller (min) */
MC_API mc_node *mc_put_along_axis(mc_node *x, mc_node *index, mc_node *v, const char *how, ...) MC_FORMAT(4,
    5);
/* topk(x, k:int, axis=-1:int): the k largest elements along an axis, in falling order, NaN first; of k < 0
 * the -k smallest, in rising order */
MC_API mc_node *mc_topk(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* argtopk(x, k:int, axis=-1:int): where the elements of topk stand in x; equal ones in the order of x */
MC_API mc_node *mc_argtopk(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* topk_and_argtopk(x, k:int, axis=-1:int): the two as one op of two results */
MC_API mc_node *mc_topk_and_argtopk(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* median(x, axis=None:int, keepdims=False:bool): the element in the middle along an axis, or of all; of an
 * even count the mean of two; NaN if one is NaN */
MC_API mc_node *mc_median(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* quantile(x, q, axis=None:int, keepdims=False:bool, method=linear:text): the number below which a
 * fraction q of the elements lies; of a vector q one for each, along a first axis; method: linear, lower,
 * higher, nearest, midpoint, hazen, weibull, median_unbiased, normal_unbiased */
MC_API mc_node *mc_quantile(mc_node *x, mc_node *q, const char *how, ...) MC_FORMAT(3, 4);
/* percentile(x, q, axis=None:int, keepdims=False:bool, method=linear:text): quantile of q / 100 */
MC_API mc_node *mc_percentile(mc_node *x, mc_node *q, const char *how, ...) MC_FORMAT(3, 4);
/* diff(x, n=1:int, axis=-1:int): each element along an axis less the one before, n times; of bool whether
 * they differ */
MC_API mc_node *mc_diff(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* --------------------------------------------------------------------------- Positions ---- */

/* searchsorted(a, v, side=left:text): where the elements of v can be put into a, a vector in rising order:
 * before elements that are equal, or with side='right' behind them */
MC_API mc_node *mc_searchsorted(mc_node *a, mc_node *v, const char *how, ...) MC_FORMAT(3, 4);
/* the bin of each element of x, bins being a vector of edges in rising order */
MC_API mc_node *mc_digitize(mc_node *x, mc_node *bins);
/* bincount(x, weights=None, minlength=0:int): how often each of 0, 1, 2, ... occurs in x, integers that
 * are not negative; with weights, their sums */
MC_API mc_node *mc_bincount(mc_node *x, mc_node *weights, const char *how, ...) MC_FORMAT(3, 4);
/* histogram(x, bins=None, range=None, weights=None, density=False:bool): how many elements of x fall into
 * each bin, or their weights, and the edges of the bins: bins is their count, 10 if not given, between the
 * two numbers of range or the extremes of x, or the edges; the last bin has its right edge */
MC_API mc_node *mc_histogram(mc_node *x, mc_node *bins, mc_node *range, mc_node *weights, const char *how,
    ...) MC_FORMAT(5, 6);
/* indices into the elements of a shape as an index for each axis */
MC_API mc_node *mc_unravel_index(mc_node *i, mc_node *shape);
/* ravel_multi_index(shape, *index, mode=raise:text): an index for each axis as one index into the elements
 * of a shape; one outside is an error, or wraps or is clipped */
MC_API mc_node *mc_ravel_multi_index(mc_node *shape, int n, mc_node *const *index, const char *how, ...)
    MC_FORMAT(4, 5);
/* choose(i, *xs, mode=raise:text): element by element that of the i-th tensor; an index outside is an
 * error, or wraps or is clipped */
MC_API mc_node *mc_choose(mc_node *i, int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(4, 5);

/* --------------------------------------------------------------- Joining and splitting ---- */

/* join(*xs, axis=0:int): tensors joined along an axis */
MC_API mc_node *mc_join(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
/* stack(*xs, axis=0:int): tensors of the same shape joined along a new axis */
MC_API mc_node *mc_stack(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
/* concatenate(*xs, axis=0:int): tensors joined along an axis; the same as join */
MC_API mc_node *mc_concatenate(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_vertical_stack(int n, mc_node *const *xs); /* matrices joined along axis 0 */
MC_API mc_node *mc_horizontal_stack(int n, mc_node *const *xs); /* matrices joined along axis 1 */
/* split(x, sizes:ints, axis=0:int): x split along an axis into parts of these sizes */
MC_API mc_node *mc_split(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* roll(x, shift, axis=None:int): x rotated by shift along an axis: the last shift elements move to the
 * front; without an axis, x is rotated as if it were flat */
MC_API mc_node *mc_roll(mc_node *x, mc_node *shift, const char *how, ...) MC_FORMAT(3, 4);
/* tile(x, reps:ints): x repeated reps[i] times along each axis i */
MC_API mc_node *mc_tile(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* repeat(x, n, axis=None:int): each element of x repeated n times along an axis; without an axis, x is
 * flattened first */
MC_API mc_node *mc_repeat(mc_node *x, mc_node *n, const char *how, ...) MC_FORMAT(3, 4);
/* pad(x, pad_width:border, mode=constant:text, constant_values=0:reals, end_values=0:reals,
 * stat_length=None:border, reflect_type=even:text): x with elements around it: pad_width is a number, a
 * pair for front and back, or a pair for each axis; mode: constant, empty (zeros), edge, wrap, symmetric,
 * reflect, maximum, minimum, mean, median, linear_ramp; constant_values and end_values are given like
 * pad_width */
MC_API mc_node *mc_pad(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* ------------------------------------------------------------------ Arrays from shapes ---- */

/* alloc(x, shape): x broadcast to this shape */
MC_API mc_node *mc_full(mc_node *x, mc_node *shape);
/* full(shape, value, dtype=None:dtype): value repeated until it has this shape; of its dtype unless
 * another is given */
MC_API mc_node *mc_full_of(mc_node *shape, mc_node *value, const char *how, ...) MC_FORMAT(3, 4);
/* arange(start, stop=None, step=None, dtype=None:dtype): start, start + step, ... up to but not including
 * stop; arange(n) starts at 0 */
MC_API mc_node *mc_arange(mc_node *start, mc_node *stop, mc_node *step, const char *how, ...) MC_FORMAT(4, 5);
/* meshgrid(*xs, indexing=xy:text, sparse=False:bool): the coordinates of the points of a grid, from a
 * vector for each axis; the first vector varies along axis 1 with 'xy', along axis 0 with 'ij' */
MC_API mc_node *mc_meshgrid(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
/* meshgrid with 'ij'; a scalar n stands for arange(n) */
MC_API mc_node *mc_mgrid(int n, mc_node *const *xs);
/* mgrid with results of size 1 along the other axes */
MC_API mc_node *mc_ogrid(int n, mc_node *const *xs);

/* ---------------------------------------------------------------------------- Products ---- */

/* matrix product: the sum over the last axis of a and the last but one of b */
MC_API mc_node *mc_dot(mc_node *a, mc_node *b);
/* dot(a[i], b[i]) for each i; a first axis of size 1 broadcasts */
MC_API mc_node *mc_batched_dot(mc_node *a, mc_node *b);
/* NumPy's matmul: products of the matrices in the last two axes; the axes before them broadcast; the same
 * as a @ b */
MC_API mc_node *mc_matmul(mc_node *a, mc_node *b);
/* tensordot(a, b, axes=2:ints, axes_b=None:ints): sum over the last axes of a and the first of b, or over
 * a's axes paired with b's axes_b */
MC_API mc_node *mc_tensordot(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
/* batched_tensordot(a, b, axes=2:ints, axes_b=None:ints): tensordot(a[i], b[i]) for each i; axes count
 * from the batch axis, 0 */
MC_API mc_node *mc_batched_tensordot(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
/* the sum of a * b over all elements: dot of a and b as vectors */
MC_API mc_node *mc_vdot(mc_node *a, mc_node *b);
/* the sum over the last axis of a and the last of b */
MC_API mc_node *mc_inner(mc_node *a, mc_node *b);
MC_API mc_node *mc_outer(mc_node *a, mc_node *b);            /* a[i] * b[j], of a and b as vectors */
/* the vector product along the last axis, which has size 3 */
MC_API mc_node *mc_cross(mc_node *a, mc_node *b);
/* einsum(*xs, subscripts:text): sums of products: a term of letters names the axes of each operand, axes
 * of one letter are multiplied, and letters that are not behind -> are summed; ... stands for further
 * axes, which broadcast; the order of products is the cheapest */
MC_API mc_node *mc_einsum(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);

/* ------------------------------------------------------------------ Fourier transforms ---- */

/* rfft(x, norm=None:text): the Fourier transform of real x over all axes but the first: half of the last
 * axis, n // 2 + 1, and a last axis of real and imaginary parts; norm: None, ortho (divided by the root of
 * the number of elements) or no_norm */
MC_API mc_node *mc_rfft(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* irfft(x, norm=None:text, is_odd=False:bool): rfft undone: 2 * (m - 1) elements along the last axis from
 * m, or one more with is_odd; divided by their number unless norm says otherwise */
MC_API mc_node *mc_irfft(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* fft(x, norm=None:text): the Fourier transform of complex x, whose last axis has real and imaginary
 * parts, over all other axes but the first; norm: None, ortho (divided by the root of the number of
 * elements) or no_norm */
MC_API mc_node *mc_fft(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* ifft(x, norm=None:text): fft undone: divided by the number of elements unless norm says otherwise */
MC_API mc_node *mc_ifft(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* ---------------------------------------------------------------------- Linear algebra ---- */

/* cholesky(x, lower=True:bool): the lower triangular L with L L^T = x, for symmetric positive definite x,
 * whose lower triangle is read; lower=False: the upper triangular U with U^T U = x, from the upper
 * triangle */
MC_API mc_node *mc_cholesky(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* solve_triangular(a, b, trans=0:int, lower=False:bool, unit_diagonal=False:bool): the solution x of a x =
 * b, or with trans=1 of a^T x = b, for triangular a, of which one triangle is read; unit_diagonal: its
 * diagonal counts as ones; b is a vector or a matrix */
MC_API mc_node *mc_solve_triangular(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
/* solve(a, b, assume_a=gen:text): the solution x of a x = b, by LU factors with partial pivoting, or with
 * assume_a='pos' by Cholesky's; b of rank 1 is a vector, else a matrix or a stack of matrices */
MC_API mc_node *mc_solve(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
/* the inverse of a matrix; NumPy's linalg.inv. inv(x) is 1 / x */
MC_API mc_node *mc_matrix_inverse(mc_node *x);
/* qr(x, mode=reduced:text): Q with orthonormal columns and upper triangular R with Q R = x, by
 * reflections; of an m by n matrix with k = min(m, n) Q is m by k, with mode='complete' m by m; mode='r':
 * R alone. Signs are LAPACK's: the diagonal of R may be negative */
MC_API mc_node *mc_qr(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* eigh(x, UPLO=L:text): eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns; the
 * lower triangle is read, or with UPLO='U' the upper one. In each vector the first element that is at
 * least half as large as the largest one is positive */
MC_API mc_node *mc_eigh(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* eigvalsh(x, UPLO=L:text): eigenvalues of a symmetric matrix, ascending; the triangle that is read is
 * that of eigh */
MC_API mc_node *mc_eigvalsh(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* svd(x, full_matrices=True:bool, compute_uv=True:bool): U, s and V^T with U diag(s) V^T = x: singular
 * values s, descending, and vectors as columns of U and rows of V^T; full_matrices=False: of the longer
 * side only min(m, n) vectors; compute_uv=False: s alone. Signs of the columns of U are those of eigh's
 * vectors */
MC_API mc_node *mc_svd(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
MC_API mc_node *mc_svdvals(mc_node *x);                      /* singular values of a matrix, descending */
/* eigenvalues of a square matrix, ascending, and eigenvectors of length 1 as columns, with signs as
 * eigh's; complex eigenvalues are an error, MC_ECHECK, when the function is called */
MC_API mc_node *mc_eig(mc_node *x);
/* eigenvalues of a square matrix, ascending; complex ones are an error */
MC_API mc_node *mc_eigvals(mc_node *x);
/* diagonal(x, offset=0:int, axis1=0:int, axis2=1:int): the elements x[i, i + offset] of two axes, which
 * become the last axis of the result */
MC_API mc_node *mc_diagonal(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* diag(x, k=0:int): of a vector: the matrix with it on the k-th diagonal, else zeros; of a matrix: its
 * k-th diagonal */
MC_API mc_node *mc_diag(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* trace(x, offset=0:int, axis1=0:int, axis2=1:int): the sum of diagonal(x) */
MC_API mc_node *mc_trace(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* matrix_power(x, n:int): the product of n factors x, by squaring; n = 0: the unit matrix; n < 0: of the
 * inverse */
MC_API mc_node *mc_matrix_power(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* the product of matrices, in the order that takes the fewest multiplications by the sizes known when the
 * graph is built; the first and the last factor may be vectors */
MC_API mc_node *mc_matrix_dot(int n, mc_node *const *xs);
/* the Kronecker product: a block a[i, j] * b for each element of a */
MC_API mc_node *mc_kron(mc_node *a, mc_node *b);
/* cho_solve(c, b, lower=True:bool): the solution x of a x = b, from the Cholesky factor c of a;
 * lower=False: the upper one */
MC_API mc_node *mc_cho_solve(mc_node *c, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
/* matrix_norm(x, ord=fro:text): the norm of a matrix: 'fro' Frobenius, 'nuc' the sum of singular values,
 * '2' and '-2' the largest and the least, '1' and '-1' of the sums of columns, 'inf' and '-inf' of the
 * sums of rows, of magnitudes */
MC_API mc_node *mc_matrix_norm(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* pinv(x, rcond=None:real): the pseudo-inverse of a matrix; singular values up to rcond times the largest
 * count as zero, by default the precision of the dtype times the longer side, as in SciPy */
MC_API mc_node *mc_pinv(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* matrix_rank(x, rcond=None:real): the number of singular values above rcond times the largest; rcond is
 * that of pinv */
MC_API mc_node *mc_matrix_rank(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* lstsq(a, b, rcond=None:real): the x of least norm(b - a x), and of these the least x; the sums of
 * squares of b - a x; the rank of a; its singular values. rcond is that of pinv. NumPy leaves the sums out
 * where a has not full rank or no more rows than columns */
MC_API mc_node *mc_lstsq(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);

/* ------------------------------------------------------------------------- Convolution ---- */

/* conv(x, w, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int, flip=True:bool,
 * unshared=False:bool, layout=None:text, ceil=False:bool, algo=None:text, precision=None:text):
 * convolution along 1 to 3 axes of x (images, channels, axes) with w (filters, channels / groups, axes);
 * the result has (i + p - (k - 1)*d - 1)//s + 1 positions along an axis; ceil rounds the quotient up.
 * border: valid, full, half, same, causal, or zeros on each side: one number, one for each axis, or a pair
 * (before, after) for each axis; flip: taps are applied from the last to the first; unshared: w has a
 * filter for each position, whose axes follow its first one; layout: the order of x's axes, such as bc01,
 * b01c, c01b; w has its filters where x has b */
MC_API mc_node *mc_conv(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* conv_inputs(w, y, shape=None, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int,
 * flip=True:bool, unshared=False:bool, layout=None:text, ceil=False:bool, algo=None:text,
 * precision=None:text): the gradient of conv(x, w) with respect to x, from the gradient y of its result;
 * shape: the shape of x or its spatial sizes, required if the stride is not 1 */
MC_API mc_node *mc_conv_inputs(mc_node *w, mc_node *y, mc_node *shape, const char *how, ...) MC_FORMAT(4, 5);
/* conv_weights(x, y, shape=None, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int,
 * flip=True:bool, unshared=False:bool, layout=None:text, ceil=False:bool, algo=None:text,
 * precision=None:text): the gradient of conv(x, w) with respect to w, from the gradient y of its result;
 * shape: the shape of w or its spatial sizes, required if the stride is not 1 or the border is half, same
 * or causal */
MC_API mc_node *mc_conv_weights(mc_node *x, mc_node *y, mc_node *shape, const char *how, ...) MC_FORMAT(4, 5);

/* ------------------------------------------------------- Convolution under other names ---- */

/* conv1d(x, w, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv along 1
 * axes, with the argument names of Theano's conv1d; shapes are promises, -1: unknown */
MC_API mc_node *mc_conv1d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* conv2d(x, w, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv along 2
 * axes, with the argument names of Theano's conv2d; shapes are promises, -1: unknown */
MC_API mc_node *mc_conv2d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* conv3d(x, w, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv along 3
 * axes, with the argument names of Theano's conv3d; shapes are promises, -1: unknown */
MC_API mc_node *mc_conv3d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* corr2d(input_, filters, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border,
 * subsample=1:ints): conv2d whose filters are not turned round */
MC_API mc_node *mc_corr2d(mc_node *input_, mc_node *filters, const char *how, ...) MC_FORMAT(3, 4);
/* conv2d_grad_wrt_inputs(output_grad, filters, input_shape=None, filter_shape=None:ints,
 * border_mode=valid:border, subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints,
 * num_groups=1:int, unshared=False:bool): the gradient of conv2d with respect to its images, which have
 * input_shape */
MC_API mc_node *mc_conv2d_grad_wrt_inputs(mc_node *output_grad, mc_node *filters, mc_node *input_shape, const
    char *how, ...) MC_FORMAT(4, 5);
/* conv2d_grad_wrt_weights(input_, output_grad, filter_shape=None, input_shape=None:ints,
 * border_mode=valid:border, subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints,
 * num_groups=1:int, unshared=False:bool): the gradient of conv2d with respect to its filters, which have
 * filter_shape */
MC_API mc_node *mc_conv2d_grad_wrt_weights(mc_node *input_, mc_node *output_grad, mc_node *filter_shape, const
    char *how, ...) MC_FORMAT(4, 5);
/* conv2d_transpose(x, filters, output_shape=None, filter_shape=None:ints, border_mode=valid:border,
 * input_dilation=1:ints, filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int,
 * unshared=False:bool): conv2d_grad_wrt_inputs under another name; filters are those of the forward
 * convolution */
MC_API mc_node *mc_conv2d_transpose(mc_node *x, mc_node *filters, mc_node *output_shape, const char *how, ...)
    MC_FORMAT(4, 5);
/* separable_conv2d(x, depthwise_filters, pointwise_filters, num_channels:int, border_mode=valid:border,
 * subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints, input_shape=None:ints,
 * depthwise_filter_shape=None:ints, pointwise_filter_shape=None:ints): depthwise convolution of
 * num_channels channels, then a convolution across channels, usually of one tap */
MC_API mc_node *mc_separable_conv2d(mc_node *x, mc_node *depthwise_filters, mc_node *pointwise_filters, const
    char *how, ...) MC_FORMAT(4, 5);
/* conv3d_grad_wrt_inputs(output_grad, filters, input_shape=None, filter_shape=None:ints,
 * border_mode=valid:border, subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints,
 * num_groups=1:int, unshared=False:bool): the gradient of conv3d with respect to its images, which have
 * input_shape */
MC_API mc_node *mc_conv3d_grad_wrt_inputs(mc_node *output_grad, mc_node *filters, mc_node *input_shape, const
    char *how, ...) MC_FORMAT(4, 5);
/* conv3d_grad_wrt_weights(input_, output_grad, filter_shape=None, input_shape=None:ints,
 * border_mode=valid:border, subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints,
 * num_groups=1:int, unshared=False:bool): the gradient of conv3d with respect to its filters, which have
 * filter_shape */
MC_API mc_node *mc_conv3d_grad_wrt_weights(mc_node *input_, mc_node *output_grad, mc_node *filter_shape, const
    char *how, ...) MC_FORMAT(4, 5);
/* conv3d_transpose(x, filters, output_shape=None, filter_shape=None:ints, border_mode=valid:border,
 * input_dilation=1:ints, filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int,
 * unshared=False:bool): conv3d_grad_wrt_inputs under another name; filters are those of the forward
 * convolution */
MC_API mc_node *mc_conv3d_transpose(mc_node *x, mc_node *filters, mc_node *output_shape, const char *how, ...)
    MC_FORMAT(4, 5);
/* separable_conv3d(x, depthwise_filters, pointwise_filters, num_channels:int, border_mode=valid:border,
 * subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints, input_shape=None:ints,
 * depthwise_filter_shape=None:ints, pointwise_filter_shape=None:ints): depthwise convolution of
 * num_channels channels, then a convolution across channels, usually of one tap */
MC_API mc_node *mc_separable_conv3d(mc_node *x, mc_node *depthwise_filters, mc_node *pointwise_filters, const
    char *how, ...) MC_FORMAT(4, 5);
/* conv_transpose(x, w, shape=None, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int,
 * flip=True:bool, layout=None:text, output_padding=0:ints): transposed convolution: the result has (o -
 * 1)*s + (k - 1)*d + 1 - p + output_padding positions along an axis, or the given shape; w has the layout
 * of conv: the channels of x are the filters of w */
MC_API mc_node *mc_conv_transpose(mc_node *x, mc_node *w, mc_node *shape, const char *how, ...) MC_FORMAT(4,
    5);
/* causal_conv1d(x, w, filter_shape=None:ints, input_shape=None:ints, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv1d whose
 * result at t depends on x up to t: dilation*(k - 1) zeros are added in front */
MC_API mc_node *mc_causal_conv1d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* corrmm(x, w, border_mode=valid:border, subsample=1:ints, filter_dilation=1:ints, num_groups=1:int,
 * unshared=False:bool, pad=None:border): correlation with the argument names of Theano's CorrMM: conv with
 * flip=False; pad is the old name of border_mode */
MC_API mc_node *mc_corrmm(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* corrmm_grad_weights(x, topgrad, shape=None, border_mode=valid:border, subsample=1:ints,
 * filter_dilation=1:ints, num_groups=1:int, unshared=False:bool, pad=None:border): the gradient of corrmm
 * with respect to its filters */
MC_API mc_node *mc_corrmm_grad_weights(mc_node *x, mc_node *topgrad, mc_node *shape, const char *how, ...)
    MC_FORMAT(4, 5);
/* corrmm_grad_inputs(w, topgrad, shape=None, border_mode=valid:border, subsample=1:ints,
 * filter_dilation=1:ints, num_groups=1:int, unshared=False:bool, pad=None:border): the gradient of corrmm
 * with respect to its images */
MC_API mc_node *mc_corrmm_grad_inputs(mc_node *w, mc_node *topgrad, mc_node *shape, const char *how, ...)
    MC_FORMAT(4, 5);
/* dnn_conv(img, kerns, border_mode=valid:border, subsample=1:ints, dilation=1:ints, conv_mode=conv:text,
 * direction_hint=None:text, workmem=None:text, algo=None:text, precision=None:text, num_groups=1:int):
 * conv with the argument names of Theano's cuDNN module; conv_mode: conv flips the filter, cross does not;
 * algo: the requested solver; direction_hint is checked, but the planner decides */
MC_API mc_node *mc_dnn_conv(mc_node *img, mc_node *kerns, const char *how, ...) MC_FORMAT(3, 4);
/* dnn_gradinput(kerns, topgrad, img_shp, border_mode=valid:border, subsample=1:ints, dilation=1:ints,
 * conv_mode=conv:text, direction_hint=None:text, workmem=None:text, algo=None:text, precision=None:text,
 * num_groups=1:int): the gradient of dnn_conv with respect to images of shape img_shp */
MC_API mc_node *mc_dnn_gradinput(mc_node *kerns, mc_node *topgrad, mc_node *img_shp, const char *how, ...)
    MC_FORMAT(4, 5);
/* dnn_gradweight(img, topgrad, kerns_shp, border_mode=valid:border, subsample=1:ints, dilation=1:ints,
 * conv_mode=conv:text, direction_hint=None:text, workmem=None:text, algo=None:text, precision=None:text,
 * num_groups=1:int): the gradient of dnn_conv with respect to filters of shape kerns_shp */
MC_API mc_node *mc_dnn_gradweight(mc_node *img, mc_node *topgrad, mc_node *kerns_shp, const char *how, ...)
    MC_FORMAT(4, 5);
/* get_out_shape(ishape, kshape, border_mode=valid:border, subsample=1:ints, dilation=1:ints): the shape of
 * the result of dnn_conv, for images of shape ishape and filters of shape kshape */
MC_API mc_node *mc_get_out_shape(mc_node *ishape, mc_node *kshape, const char *how, ...) MC_FORMAT(3, 4);
/* dnn_conv3d(img, kerns, border_mode=valid:border, subsample=1:ints, dilation=1:ints, conv_mode=conv:text,
 * direction_hint=None:text, workmem=None:text, algo=None:text, precision=None:text, num_groups=1:int):
 * dnn_conv along 3 axes */
MC_API mc_node *mc_dnn_conv3d(mc_node *img, mc_node *kerns, const char *how, ...) MC_FORMAT(3, 4);
/* dnn_gradinput3d(kerns, topgrad, img_shp, border_mode=valid:border, subsample=1:ints, dilation=1:ints,
 * conv_mode=conv:text, direction_hint=None:text, workmem=None:text, algo=None:text, precision=None:text,
 * num_groups=1:int): dnn_gradinput along 3 axes */
MC_API mc_node *mc_dnn_gradinput3d(mc_node *kerns, mc_node *topgrad, mc_node *img_shp, const char *how, ...)
    MC_FORMAT(4, 5);
/* dnn_gradweight3d(img, topgrad, kerns_shp, border_mode=valid:border, subsample=1:ints, dilation=1:ints,
 * conv_mode=conv:text, direction_hint=None:text, workmem=None:text, algo=None:text, precision=None:text,
 * num_groups=1:int): dnn_gradweight along 3 axes */
MC_API mc_node *mc_dnn_gradweight3d(mc_node *img, mc_node *topgrad, mc_node *kerns_shp, const char *how, ...)
    MC_FORMAT(4, 5);

/* ------------------------------------------------------------ cuda-convnet and Nervana ---- */

/* filter_acts(images, filters, pad=0:int, partial_sum=None:int, stride=1:int, strict=False:bool):
 * cuda-convnet's FilterActs: correlation of images (channels, rows, columns, batch) with filters
 * (channels, rows, columns, filters), ceil((i + 2*pad - k)/stride) + 1 positions along an axis; strict:
 * shapes beyond the limits of cuda-convnet's kernels are errors, those of weight_acts where the gradient
 * of the filters is derived */
MC_API mc_node *mc_filter_acts(mc_node *images, mc_node *filters, const char *how, ...) MC_FORMAT(3, 4);
/* image_acts(hid_acts, filters, output_shape=None, pad=0:int, partial_sum=None:int, stride=1:int,
 * strict=False:bool): cuda-convnet's ImageActs: the gradient of filter_acts with respect to its images,
 * whose rows and columns are output_shape */
MC_API mc_node *mc_image_acts(mc_node *hid_acts, mc_node *filters, mc_node *output_shape, const char *how,
    ...) MC_FORMAT(4, 5);
/* weight_acts(images, hid_grads, output_shape=None, pad=0:int, partial_sum=None:int, stride=1:int,
 * strict=False:bool): cuda-convnet's WeightActs: the gradient of filter_acts with respect to its filters,
 * whose rows and columns are output_shape; partial_sum only sets the order of summation; the partial sums
 * are not returned */
MC_API mc_node *mc_weight_acts(mc_node *images, mc_node *hid_grads, mc_node *output_shape, const char *how,
    ...) MC_FORMAT(4, 5);
/* nervana_conv(input_, filters, padding=None:border, strides=1:ints, dimshuffle=True:bool,
 * relu=False:bool): correlation along 1 to 3 axes; padding: valid, full, half or same (both k // 2), or
 * numbers; dimshuffle=False: axes in the order channels, positions, batch, with filters last; relu: relu
 * is applied to the result */
MC_API mc_node *mc_nervana_conv(mc_node *input_, mc_node *filters, const char *how, ...) MC_FORMAT(3, 4);
/* nervana_dot(x, y, relu=False:bool): the product of two matrices; relu: relu is applied to the result */
MC_API mc_node *mc_nervana_dot(mc_node *x, mc_node *y, const char *how, ...) MC_FORMAT(3, 4);

/* ------------------------------------------------------------------------------ Images ---- */

/* images2neibs(x, neib_shape:ints, neib_step=None:ints, mode=valid:text): patches of the last two axes of
 * x, one in each row of the result; neib_step: the distance between patches, neib_shape if it is None;
 * mode: valid, ignore_borders (incomplete patches are left out), half, full (padded with zeros),
 * wrap_centered (patches wrap around the edges) */
MC_API mc_node *mc_images2neibs(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* neibs2images(neibs, neib_shape, original_shape, mode=valid:text): the inverse of images2neibs for
 * adjacent patches; mode: valid, or ignore_borders (zeros where there is no patch) */
MC_API mc_node *mc_neibs2images(mc_node *neibs, mc_node *neib_shape, mc_node *original_shape, const char *how,
    ...) MC_FORMAT(4, 5);
/* bilinear_kernel_1D(ratio:int, normalize=True:bool): 1, 2, ... ratio, ... 2, 1, divided by ratio if
 * normalize */
MC_API mc_node *mc_bilinear_kernel_1D(mc_graph *g, const char *how, ...) MC_FORMAT(2, 3);
/* bilinear_kernel_2D(ratio:int, normalize=True:bool): the outer product of bilinear_kernel_1D with itself */
MC_API mc_node *mc_bilinear_kernel_2D(mc_graph *g, const char *how, ...) MC_FORMAT(2, 3);
/* bilinear_upsampling(x, ratio=None:int, frac_ratio=None:border, batch_size=None:int,
 * num_input_channels=None:int, use_1D_kernel=True:bool): x with its last two axes enlarged ratio times by
 * linear interpolation; frac_ratio: [a, b] for a/b, or such a pair for rows and one for columns */
MC_API mc_node *mc_bilinear_upsampling(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* ----------------------------------------------------------------------------- Pooling ---- */

/* pool(x, ws, stride=None, pad=None, mode=max:text, ignore_border=True:bool, start=None:ints,
 * ties=first:text, axis=None:ints, strict=False:bool, layout=None:text): each window of x reduced to one
 * number: mode max, sum, average_inc_pad or average_exc_pad; the pooled axes are the last ones, those of
 * axis, or the digits of layout ('c01b'); the stride is ws by default; ignore_border=False keeps
 * incomplete windows at the border; start selects cuda-convnet's windows; of equal maxima the first
 * receives the gradient, with ties='all' each does */
MC_API mc_node *mc_pool(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* pool_grad(x, g, ws, stride=None, pad=None, mode=max:text, ignore_border=True:bool, start=None:ints,
 * ties=first:text, axis=None:ints, strict=False:bool, layout=None:text): the gradient of pool(x, ...) with
 * respect to x, from the gradient of its result */
MC_API mc_node *mc_pool_grad(mc_node *x, mc_node *g, mc_node *ws, mc_node *stride, mc_node *pad, const char
    *how, ...) MC_FORMAT(6, 7);
/* pool_pick(x, v, ws, stride=None, pad=None, mode=max:text, ignore_border=True:bool, start=None:ints,
 * ties=first:text, axis=None:ints, strict=False:bool, layout=None:text): v at the maximum of each window
 * of x: the derivative of pool(x, ...) in the direction v */
MC_API mc_node *mc_pool_pick(mc_node *x, mc_node *v, mc_node *ws, mc_node *stride, mc_node *pad, const char
    *how, ...) MC_FORMAT(6, 7);

/* ----------------------------------------------------------- Pooling under other names ---- */

/* pool_2d(x, ws, stride=None, pad=None, ignore_border=False:bool, mode=max:text, ties=first:text): pool
 * over the last two axes; incomplete windows at the border are kept unless ignore_border is True */
MC_API mc_node *mc_pool_2d(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* pool_3d(x, ws, stride=None, pad=None, ignore_border=False:bool, mode=max:text, ties=first:text): pool
 * over the last three axes; incomplete windows at the border are kept unless ignore_border is True */
MC_API mc_node *mc_pool_3d(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* max_pool_2d(x, ds, st=None, padding=None, ignore_border=False:bool, ties=first:text): pool_2d with its
 * old argument names */
MC_API mc_node *mc_max_pool_2d(mc_node *x, mc_node *ds, mc_node *st, mc_node *padding, const char *how, ...)
    MC_FORMAT(5, 6);
/* max_pool_2d_same_size(x, ws, ties=all:text): x where it is the maximum of its window, else 0; of equal
 * maxima all are kept, with ties='first' only the first */
MC_API mc_node *mc_max_pool_2d_same_size(mc_node *x, mc_node *ws, const char *how, ...) MC_FORMAT(3, 4);
/* dnn_pool(img, ws, stride=None, pad=None, mode=max:text, ties=first:text): pool over the two or three
 * axes after batch and channels, as cuDNN does: the stride is 1 by default, incomplete windows are left
 * out */
MC_API mc_node *mc_dnn_pool(mc_node *img, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* max_pool(x, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text, strict=False:bool):
 * cuda-convnet's pooling of c01b images: windows of size ds begin at start and may extend past the end;
 * the stride is ds by default; outputs is not used; strict: shapes beyond the limits of cuda-convnet's
 * kernels are errors */
MC_API mc_node *mc_max_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* max_pool_grad(x, g, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool): the gradient of max_pool(x) with respect to x, from the gradient of its result */
MC_API mc_node *mc_max_pool_grad(mc_node *x, mc_node *g, const char *how, ...) MC_FORMAT(3, 4);
/* max_pool_rop(x, v, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool): the derivative of max_pool(x) in the direction v */
MC_API mc_node *mc_max_pool_rop(mc_node *x, mc_node *v, const char *how, ...) MC_FORMAT(3, 4);
/* max_pool_c01b(x, pool_shape:ints, pool_stride=None:ints, ties=first:text): max_pool with windows and
 * strides for each axis */
MC_API mc_node *mc_max_pool_c01b(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* prob_max_pool(z, t=None, ds:int): probabilistic max pooling of c01b images z with top-down input t: in
 * each window of ds by ds at most one cell is on; the results are the probability that any cell of a
 * window is on, and that of each cell */
MC_API mc_node *mc_prob_max_pool(mc_node *z, mc_node *t, const char *how, ...) MC_FORMAT(3, 4);
/* weighted_max_pool(x, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool): the mean of each window weighted by its own elements, 0 where their sum is 0: the
 * expected value of stochastic_max_pool */
MC_API mc_node *mc_weighted_max_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* stochastic_max_pool(rng, x, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool, stream=-1:int): an element of each window of x, which must not be negative, drawn
 * with probability in proportion to its value; 0 where all are 0; the gradient goes to the drawn cell */
MC_API mc_node *mc_stochastic_max_pool(mc_node *rng, mc_node *x, const char *how, ...) MC_FORMAT(3, 4);
/* global_pool(x, mode=average_inc_pad:text): each channel of x reduced to one number: one window over all
 * axes after batch and channels */
MC_API mc_node *mc_global_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* spatial_pyramid_pool(x, pool_dims=None:ints, mode=max:text, implementation=fast:text): pooling over
 * levels of 4 by 4, 2 by 2 and 1 by 1 windows, or those of pool_dims, for images of any size; the result
 * has the axes batch, channels, windows of all levels; implementation='kaiming': neighbouring windows
 * share a cell where the size is not a multiple, and images may have fewer cells than windows */
MC_API mc_node *mc_spatial_pyramid_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* upscale(x, factor:int, mode=repeat:text, nd=2:int): x with its last nd axes enlarged factor times:
 * elements are repeated, or with mode='dilate' separated by zeros */
MC_API mc_node *mc_upscale(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* images in the layout bc01, brought to the layout c01b of cuda-convnet */
MC_API mc_node *mc_bc01_to_c01b(mc_node *x);
/* images in the layout c01b of cuda-convnet, brought to the layout bc01 */
MC_API mc_node *mc_c01b_to_bc01(mc_node *x);

/* ----------------------------------------------------------------------- Normalisation ---- */

/* lrn(x, n=5:int, alpha=0.0001:real, beta=0.75:real, k=2:real, axis=1:int, blocked=False:bool,
 * strict=False:bool): local response normalisation: x / (k + alpha * s) ** beta, s the sum of squares of
 * the n neighbouring channels; alpha is not divided by n */
MC_API mc_node *mc_lrn(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* lrn_grad(x, g, n=5:int, alpha=0.0001:real, beta=0.75:real, k=2:real, axis=1:int, blocked=False:bool,
 * strict=False:bool): the gradient of lrn(x) with respect to x, from the gradient of its result */
MC_API mc_node *mc_lrn_grad(mc_node *x, mc_node *g, const char *how, ...) MC_FORMAT(3, 4);
/* cross_map_norm(x, size_f:int, add_scale:real, pow_scale:real, blocked=False:bool, strict=False:bool,
 * axis=0:int): cuda-convnet's normalisation of c01b images: x / d ** pow_scale and d = 1 + add_scale * s,
 * s the sum of squares of the size_f neighbouring channels, or with blocked of the aligned block of
 * size_f; strict: shapes beyond the limits of cuda-convnet's kernels are errors */
MC_API mc_node *mc_cross_map_norm(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cross_map_norm_undo(x, y, d, g, size_f:int, add_scale:real, pow_scale:real, blocked=False:bool,
 * strict=False:bool, axis=0:int): the gradient of cross_map_norm with respect to its images x, from its
 * results y and d and the gradient g of y */
MC_API mc_node *mc_cross_map_norm_undo(mc_node *x, mc_node *y, mc_node *d, mc_node *g, const char *how, ...)
    MC_FORMAT(5, 6);
/* channel_sum(x, n:int, axis=1:int, blocked=False:bool, back=False:bool): for each channel c the sum of n
 * channels from c - n // 2 on; blocked: of its aligned block of n; back: of the channels whose window
 * contains c */
MC_API mc_node *mc_channel_sum(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* batch_normalization_train(x, gamma, beta, running_mean=None, running_var=None,
 * axes=per-activation:border, epsilon=0.0001:real, running_average_factor=0.1:real): normalised x, mean,
 * 1/std, new running mean, new running variance; averaged over the batch ('per-activation'), all but the
 * channels ('spatial') or a list of axes; parameters have the rank of x, or only the axes that are not
 * averaged */
MC_API mc_node *mc_batch_normalization_train(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *running_mean,
    mc_node *running_var, const char *how, ...) MC_FORMAT(6, 7);
/* batch_normalization_test(x, gamma, beta, mean, var, axes=None:border, epsilon=0.0001:real): x normalised
 * by running statistics; if axes is given, parameters may have only the axes that are not averaged */
MC_API mc_node *mc_batch_normalization_test(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *mean, mc_node
    *var, const char *how, ...) MC_FORMAT(6, 7);
/* dnn_softmax(x, mode=channel:text, algo=accurate:text, layout=bc01:text): softmax over the channels at
 * each position (mode='channel') or over a whole image (mode='instance'); algo: accurate, log, or fast,
 * which can overflow */
MC_API mc_node *mc_dnn_softmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* dnn_softmax_grad(dy, sm, mode=channel:text, algo=accurate:text, layout=bc01:text): the gradient of
 * dnn_softmax, from the gradient of its result and the result itself */
MC_API mc_node *mc_dnn_softmax_grad(mc_node *dy, mc_node *sm, const char *how, ...) MC_FORMAT(3, 4);

/* --------------------------------------------------------------------------- Sequences ---- */

/* ctc_loss(activations, labels, lengths=None, zero_infinity=False:bool): minus the logarithm of the
 * probability of each example's labels, summed over all alignments (CTC). activations: (steps, examples,
 * classes), before softmax, class 0 is the blank; labels: (examples, labels), from 1 on, negative ones are
 * padding; lengths: (examples), the steps of each example, None: all. For labels that no alignment spells
 * the cost is inf, with zero_infinity it is 0, and the gradient is 0. There are second derivatives, no
 * third ones */
MC_API mc_node *mc_ctc_loss(mc_node *activations, mc_node *labels, mc_node *lengths, const char *how, ...)
    MC_FORMAT(4, 5);

/* ----------------------------------------------------------------------------- Sorting ---- */

/* sort(x, axis=-1:int): x sorted in ascending order along an axis, NaN last */
MC_API mc_node *mc_sort(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* argsort(x, axis=-1:int): the indices in x of the elements of sort(x); equal elements keep their order */
MC_API mc_node *mc_argsort(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* permute_row_elements(x, p, axis=-1:int): the elements of each row of x in the order of the permutation
 * p; a vector x or p is used for all rows of the other */
MC_API mc_node *mc_permute_row_elements(mc_node *x, mc_node *p, const char *how, ...) MC_FORMAT(3, 4);

/* ------------------------------------------------------------------------------ Random ---- */

/* random_uniform(rng, shape, stream=-1:int, dtype=None:dtype): uniform numbers in [0, 1), from which all
 * other random numbers are made */
MC_API mc_node *mc_random_uniform(mc_node *rng, mc_node *shape, const char *how, ...) MC_FORMAT(3, 4);
/* uniform(rng, shape, low=None, high=None, dtype=None:dtype, stream=-1:int): uniform numbers in [low,
 * high); floatX unless a dtype is given */
MC_API mc_node *mc_uniform(mc_node *rng, mc_node *shape, mc_node *low, mc_node *high, const char *how, ...)
    MC_FORMAT(5, 6);
/* normal(rng, shape, avg=None, std=None, dtype=None:dtype, stream=-1:int): normal numbers with mean avg
 * and standard deviation std; floatX unless a dtype is given */
MC_API mc_node *mc_normal(mc_node *rng, mc_node *shape, mc_node *avg, mc_node *std, const char *how, ...)
    MC_FORMAT(5, 6);
/* bernoulli(rng, p, shape=None, dtype=None:dtype, stream=-1:int): 1 with probability p, else 0; floatX
 * unless a dtype is given */
MC_API mc_node *mc_bernoulli(mc_node *rng, mc_node *p, mc_node *shape, const char *how, ...) MC_FORMAT(4, 5);
/* binomial(rng, p, shape=None, n=None, dtype=None:dtype, stream=-1:int): how many of n trials of
 * probability p succeed, 1 if n is not given; floatX unless a dtype is given */
MC_API mc_node *mc_binomial(mc_node *rng, mc_node *p, mc_node *shape, mc_node *n, const char *how, ...)
    MC_FORMAT(5, 6);
/* multinomial(rng, p, dtype=None:dtype, stream=-1:int, n=1:int): for each row of probabilities how often
 * each outcome occurs in n trials; int64 unless a dtype is given */
MC_API mc_node *mc_multinomial(mc_node *rng, mc_node *p, const char *how, ...) MC_FORMAT(3, 4);
/* exponential(rng, shape, scale=None, dtype=None:dtype, stream=-1:int): exponential numbers of mean scale,
 * 1 if not given */
MC_API mc_node *mc_exponential(mc_node *rng, mc_node *shape, mc_node *scale, const char *how, ...)
    MC_FORMAT(4, 5);
/* laplace(rng, shape, avg=None, scale=None, dtype=None:dtype, stream=-1:int): numbers of Laplace's
 * distribution: exponential ones of either sign about avg */
MC_API mc_node *mc_laplace(mc_node *rng, mc_node *shape, mc_node *avg, mc_node *scale, const char *how, ...)
    MC_FORMAT(5, 6);
/* truncated_normal(rng, shape, low, high, avg=None, std=None, dtype=None:dtype, stream=-1:int): normal
 * numbers of those between low and high */
MC_API mc_node *mc_truncated_normal(mc_node *rng, mc_node *shape, mc_node *low, mc_node *high, mc_node *avg,
    mc_node *std, const char *how, ...) MC_FORMAT(7, 8);
/* poisson(rng, lam, shape=None, dtype=None:dtype, stream=-1:int): counts of mean lam; of int64 unless a
 * dtype is given */
MC_API mc_node *mc_poisson(mc_node *rng, mc_node *lam, mc_node *shape, const char *how, ...) MC_FORMAT(4, 5);
/* random_gamma(rng, shape, k, scale=None, dtype=None:dtype, stream=-1:int): numbers of the gamma
 * distribution of order k */
MC_API mc_node *mc_random_gamma(mc_node *rng, mc_node *shape, mc_node *k, mc_node *scale, const char *how,
    ...) MC_FORMAT(5, 6);
/* random_beta(rng, shape, a, b, dtype=None:dtype, stream=-1:int): numbers of the beta distribution of a
 * and b */
MC_API mc_node *mc_random_beta(mc_node *rng, mc_node *shape, mc_node *a, mc_node *b, const char *how, ...)
    MC_FORMAT(5, 6);
/* choice(rng, a, shape, p=None, replace=True:bool, stream=-1:int): elements of a along its first axis, or
 * whole numbers below a, chosen at random with equal weights or p; with replace=False each once at most */
MC_API mc_node *mc_choice(mc_node *rng, mc_node *a, mc_node *shape, mc_node *p, const char *how, ...)
    MC_FORMAT(5, 6);
/* shuffle(rng, x, stream=-1:int): x with the elements of its first axis in random order */
MC_API mc_node *mc_shuffled(mc_node *rng, mc_node *x, const char *how, ...) MC_FORMAT(3, 4);
/* shuffle_row_elements(rng, x, stream=-1:int): x with each row in a random order of its own */
MC_API mc_node *mc_shuffle_row_elements(mc_node *rng, mc_node *x, const char *how, ...) MC_FORMAT(3, 4);
/* dropout(rng, x, p=0.5:real, stream=-1:int): x with each element 0 with probability p, else divided by 1
 * - p */
MC_API mc_node *mc_dropout(mc_node *rng, mc_node *x, const char *how, ...) MC_FORMAT(3, 4);
/* permutation(rng, n, stream=-1:int): the numbers 0 to n - 1 in random order */
MC_API mc_node *mc_permutation(mc_node *rng, mc_node *n, const char *how, ...) MC_FORMAT(3, 4);
/* random_integers(rng, shape, low, high, dtype=None:dtype, stream=-1:int): integers from low to high, both
 * included; int64 unless a dtype is given */
MC_API mc_node *mc_random_integers(mc_node *rng, mc_node *shape, mc_node *low, mc_node *high, const char *how,
    ...) MC_FORMAT(5, 6);

/* ----------------------------------------------------------------------------- Effects ---- */

MC_API mc_node *mc_consider_constant(mc_node *x);            /* x, treated as a constant by gradients */
MC_API mc_node *mc_undefined_grad(mc_node *x);               /* x; asking for its gradient is an error */
/* grad_clip(x, lo:real, hi:real): x, whose gradient is limited to the range from lo to hi */
MC_API mc_node *mc_grad_clip(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* grad_scale(x, by:real): x, whose gradient is multiplied by a number */
MC_API mc_node *mc_grad_scale(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* assert_(x, *conditions, msg=None:text): x; an error at run time if a condition has a zero element */
MC_API mc_node *mc_assert_(mc_node *x, int n, mc_node *const *conditions, const char *how, ...) MC_FORMAT(4,
    5);
/* print_(x, message=None:text): x; prints a message and x each time it is computed */
MC_API mc_node *mc_print_(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* y computed with other values: of each pair after it the first is replaced by the second wherever y
 * depends on it */
MC_API mc_node *mc_clone(mc_node *y, int n, mc_node *const *pairs);

/* ------------------------------------------------------------------------------- Ranks ---- */

/* all_reduce(x, op=sum:text, group=None:text, order=fixed:text): x of all ranks, reduced by sum, mean, max
 * or min; every rank has the result. Without a group x is alone. order=any: in whatever order is fastest,
 * not in the fixed tree */
MC_API mc_node *mc_all_reduce(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* broadcast(x, root=0:int, group=None:text): x of rank root, in every rank */
MC_API mc_node *mc_broadcast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* all_gather(x, group=None:text): x of all ranks, one after another along the first axis */
MC_API mc_node *mc_all_gather(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* reduce_scatter(x, op=sum:text, group=None:text, order=fixed:text): the rank's own part, along the first
 * axis, of what all_reduce gives */
MC_API mc_node *mc_reduce_scatter(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* rank_of(group=None:text): the number of this rank in its group, from 0; an int64 */
MC_API mc_node *mc_rank_of(mc_graph *g, const char *how, ...) MC_FORMAT(2, 3);

/* ---------------------------------------------------------------------------- Branches ---- */

/* a if the scalar c is not 0, else b; only what the chosen one needs is computed. Lists of values are
 * chosen as a whole: ifelse(c, [a, b], [d, e]). See docs/text-form.md */
MC_API mc_node *mc_ifelse(mc_node *c, mc_node *a, mc_node *b);

/* ------------------------------------------------------------------- Where the user is ---- */

/* Nodes made from here on belong to this line of the user's. */
MC_API void mc_here(const char *file, int line);

#if !defined(MC_BUILD)
#define mc_input(...) (mc_here(__FILE__, __LINE__), mc_input(__VA_ARGS__))
#define mc_input_sized(...) (mc_here(__FILE__, __LINE__), mc_input_sized(__VA_ARGS__))
#define mc_constant(...) (mc_here(__FILE__, __LINE__), mc_constant(__VA_ARGS__))
#define mc_number(...) (mc_here(__FILE__, __LINE__), mc_number(__VA_ARGS__))
#define mc_formula(...) (mc_here(__FILE__, __LINE__), mc_formula(__VA_ARGS__))
#define mc_formulaf(...) (mc_here(__FILE__, __LINE__), mc_formulaf(__VA_ARGS__))
#define mc_op(...) (mc_here(__FILE__, __LINE__), mc_op(__VA_ARGS__))
#define mc_opf(...) (mc_here(__FILE__, __LINE__), mc_opf(__VA_ARGS__))
#define mc_index(...) (mc_here(__FILE__, __LINE__), mc_index(__VA_ARGS__))
#define mc_set_subtensor(...) (mc_here(__FILE__, __LINE__), mc_set_subtensor(__VA_ARGS__))
#define mc_inc_subtensor(...) (mc_here(__FILE__, __LINE__), mc_inc_subtensor(__VA_ARGS__))
#define mc_shared_new(...) (mc_here(__FILE__, __LINE__), mc_shared_new(__VA_ARGS__))
#define mc_shared_zeros(...) (mc_here(__FILE__, __LINE__), mc_shared_zeros(__VA_ARGS__))
#define mc_shared_sized(...) (mc_here(__FILE__, __LINE__), mc_shared_sized(__VA_ARGS__))
#define mc_grad(...) (mc_here(__FILE__, __LINE__), mc_grad(__VA_ARGS__))
#define mc_add(...) (mc_here(__FILE__, __LINE__), mc_add(__VA_ARGS__))
#define mc_sub(...) (mc_here(__FILE__, __LINE__), mc_sub(__VA_ARGS__))
#define mc_mul(...) (mc_here(__FILE__, __LINE__), mc_mul(__VA_ARGS__))
#define mc_true_div(...) (mc_here(__FILE__, __LINE__), mc_true_div(__VA_ARGS__))
#define mc_int_div(...) (mc_here(__FILE__, __LINE__), mc_int_div(__VA_ARGS__))
#define mc_mod(...) (mc_here(__FILE__, __LINE__), mc_mod(__VA_ARGS__))
#define mc_fmod(...) (mc_here(__FILE__, __LINE__), mc_fmod(__VA_ARGS__))
#define mc_pow(...) (mc_here(__FILE__, __LINE__), mc_pow(__VA_ARGS__))
#define mc_neg(...) (mc_here(__FILE__, __LINE__), mc_neg(__VA_ARGS__))
#define mc_abs(...) (mc_here(__FILE__, __LINE__), mc_abs(__VA_ARGS__))
#define mc_sqr(...) (mc_here(__FILE__, __LINE__), mc_sqr(__VA_ARGS__))
#define mc_sqrt(...) (mc_here(__FILE__, __LINE__), mc_sqrt(__VA_ARGS__))
#define mc_reciprocal(...) (mc_here(__FILE__, __LINE__), mc_reciprocal(__VA_ARGS__))
#define mc_maximum(...) (mc_here(__FILE__, __LINE__), mc_maximum(__VA_ARGS__))
#define mc_minimum(...) (mc_here(__FILE__, __LINE__), mc_minimum(__VA_ARGS__))
#define mc_clip(...) (mc_here(__FILE__, __LINE__), mc_clip(__VA_ARGS__))
#define mc_sgn(...) (mc_here(__FILE__, __LINE__), mc_sgn(__VA_ARGS__))
#define mc_copysign(...) (mc_here(__FILE__, __LINE__), mc_copysign(__VA_ARGS__))
#define mc_hypot(...) (mc_here(__FILE__, __LINE__), mc_hypot(__VA_ARGS__))
#define mc_lt(...) (mc_here(__FILE__, __LINE__), mc_lt(__VA_ARGS__))
#define mc_le(...) (mc_here(__FILE__, __LINE__), mc_le(__VA_ARGS__))
#define mc_gt(...) (mc_here(__FILE__, __LINE__), mc_gt(__VA_ARGS__))
#define mc_ge(...) (mc_here(__FILE__, __LINE__), mc_ge(__VA_ARGS__))
#define mc_eq(...) (mc_here(__FILE__, __LINE__), mc_eq(__VA_ARGS__))
#define mc_neq(...) (mc_here(__FILE__, __LINE__), mc_neq(__VA_ARGS__))
#define mc_isnan(...) (mc_here(__FILE__, __LINE__), mc_isnan(__VA_ARGS__))
#define mc_isinf(...) (mc_here(__FILE__, __LINE__), mc_isinf(__VA_ARGS__))
#define mc_isfinite(...) (mc_here(__FILE__, __LINE__), mc_isfinite(__VA_ARGS__))
#define mc_signbit(...) (mc_here(__FILE__, __LINE__), mc_signbit(__VA_ARGS__))
#define mc_where(...) (mc_here(__FILE__, __LINE__), mc_where(__VA_ARGS__))
#define mc_and_(...) (mc_here(__FILE__, __LINE__), mc_and_(__VA_ARGS__))
#define mc_or_(...) (mc_here(__FILE__, __LINE__), mc_or_(__VA_ARGS__))
#define mc_xor(...) (mc_here(__FILE__, __LINE__), mc_xor(__VA_ARGS__))
#define mc_invert(...) (mc_here(__FILE__, __LINE__), mc_invert(__VA_ARGS__))
#define mc_exp(...) (mc_here(__FILE__, __LINE__), mc_exp(__VA_ARGS__))
#define mc_exp2(...) (mc_here(__FILE__, __LINE__), mc_exp2(__VA_ARGS__))
#define mc_expm1(...) (mc_here(__FILE__, __LINE__), mc_expm1(__VA_ARGS__))
#define mc_log(...) (mc_here(__FILE__, __LINE__), mc_log(__VA_ARGS__))
#define mc_log2(...) (mc_here(__FILE__, __LINE__), mc_log2(__VA_ARGS__))
#define mc_log10(...) (mc_here(__FILE__, __LINE__), mc_log10(__VA_ARGS__))
#define mc_log1p(...) (mc_here(__FILE__, __LINE__), mc_log1p(__VA_ARGS__))
#define mc_floor(...) (mc_here(__FILE__, __LINE__), mc_floor(__VA_ARGS__))
#define mc_ceil(...) (mc_here(__FILE__, __LINE__), mc_ceil(__VA_ARGS__))
#define mc_trunc(...) (mc_here(__FILE__, __LINE__), mc_trunc(__VA_ARGS__))
#define mc_round(...) (mc_here(__FILE__, __LINE__), mc_round(__VA_ARGS__))
#define mc_round_half_away(...) (mc_here(__FILE__, __LINE__), mc_round_half_away(__VA_ARGS__))
#define mc_iround(...) (mc_here(__FILE__, __LINE__), mc_iround(__VA_ARGS__))
#define mc_sin(...) (mc_here(__FILE__, __LINE__), mc_sin(__VA_ARGS__))
#define mc_cos(...) (mc_here(__FILE__, __LINE__), mc_cos(__VA_ARGS__))
#define mc_tan(...) (mc_here(__FILE__, __LINE__), mc_tan(__VA_ARGS__))
#define mc_arcsin(...) (mc_here(__FILE__, __LINE__), mc_arcsin(__VA_ARGS__))
#define mc_arccos(...) (mc_here(__FILE__, __LINE__), mc_arccos(__VA_ARGS__))
#define mc_arctan(...) (mc_here(__FILE__, __LINE__), mc_arctan(__VA_ARGS__))
#define mc_arctan2(...) (mc_here(__FILE__, __LINE__), mc_arctan2(__VA_ARGS__))
#define mc_sinh(...) (mc_here(__FILE__, __LINE__), mc_sinh(__VA_ARGS__))
#define mc_cosh(...) (mc_here(__FILE__, __LINE__), mc_cosh(__VA_ARGS__))
#define mc_tanh(...) (mc_here(__FILE__, __LINE__), mc_tanh(__VA_ARGS__))
#define mc_arcsinh(...) (mc_here(__FILE__, __LINE__), mc_arcsinh(__VA_ARGS__))
#define mc_arccosh(...) (mc_here(__FILE__, __LINE__), mc_arccosh(__VA_ARGS__))
#define mc_arctanh(...) (mc_here(__FILE__, __LINE__), mc_arctanh(__VA_ARGS__))
#define mc_deg2rad(...) (mc_here(__FILE__, __LINE__), mc_deg2rad(__VA_ARGS__))
#define mc_rad2deg(...) (mc_here(__FILE__, __LINE__), mc_rad2deg(__VA_ARGS__))
#define mc_erf(...) (mc_here(__FILE__, __LINE__), mc_erf(__VA_ARGS__))
#define mc_erfc(...) (mc_here(__FILE__, __LINE__), mc_erfc(__VA_ARGS__))
#define mc_gammaln(...) (mc_here(__FILE__, __LINE__), mc_gammaln(__VA_ARGS__))
#define mc_psi(...) (mc_here(__FILE__, __LINE__), mc_psi(__VA_ARGS__))
#define mc_tri_gamma(...) (mc_here(__FILE__, __LINE__), mc_tri_gamma(__VA_ARGS__))
#define mc_erfinv(...) (mc_here(__FILE__, __LINE__), mc_erfinv(__VA_ARGS__))
#define mc_erfcinv(...) (mc_here(__FILE__, __LINE__), mc_erfcinv(__VA_ARGS__))
#define mc_erfcx(...) (mc_here(__FILE__, __LINE__), mc_erfcx(__VA_ARGS__))
#define mc_gamma(...) (mc_here(__FILE__, __LINE__), mc_gamma(__VA_ARGS__))
#define mc_gammainc(...) (mc_here(__FILE__, __LINE__), mc_gammainc(__VA_ARGS__))
#define mc_gammaincc(...) (mc_here(__FILE__, __LINE__), mc_gammaincc(__VA_ARGS__))
#define mc_gammaincinv(...) (mc_here(__FILE__, __LINE__), mc_gammaincinv(__VA_ARGS__))
#define mc_betainc(...) (mc_here(__FILE__, __LINE__), mc_betainc(__VA_ARGS__))
#define mc_j0(...) (mc_here(__FILE__, __LINE__), mc_j0(__VA_ARGS__))
#define mc_j1(...) (mc_here(__FILE__, __LINE__), mc_j1(__VA_ARGS__))
#define mc_jv(...) (mc_here(__FILE__, __LINE__), mc_jv(__VA_ARGS__))
#define mc_i0(...) (mc_here(__FILE__, __LINE__), mc_i0(__VA_ARGS__))
#define mc_i1(...) (mc_here(__FILE__, __LINE__), mc_i1(__VA_ARGS__))
#define mc_iv(...) (mc_here(__FILE__, __LINE__), mc_iv(__VA_ARGS__))
#define mc_sigmoid(...) (mc_here(__FILE__, __LINE__), mc_sigmoid(__VA_ARGS__))
#define mc_softplus(...) (mc_here(__FILE__, __LINE__), mc_softplus(__VA_ARGS__))
#define mc_logaddexp(...) (mc_here(__FILE__, __LINE__), mc_logaddexp(__VA_ARGS__))
#define mc_xlogx(...) (mc_here(__FILE__, __LINE__), mc_xlogx(__VA_ARGS__))
#define mc_xlogy0(...) (mc_here(__FILE__, __LINE__), mc_xlogy0(__VA_ARGS__))
#define mc_gpu_from_host(...) (mc_here(__FILE__, __LINE__), mc_gpu_from_host(__VA_ARGS__))
#define mc_host_from_gpu(...) (mc_here(__FILE__, __LINE__), mc_host_from_gpu(__VA_ARGS__))
#define mc_inv(...) (mc_here(__FILE__, __LINE__), mc_inv(__VA_ARGS__))
#define mc_square(...) (mc_here(__FILE__, __LINE__), mc_square(__VA_ARGS__))
#define mc_switch(...) (mc_here(__FILE__, __LINE__), mc_switch(__VA_ARGS__))
#define mc_ceil_intdiv(...) (mc_here(__FILE__, __LINE__), mc_ceil_intdiv(__VA_ARGS__))
#define mc_divmod(...) (mc_here(__FILE__, __LINE__), mc_divmod(__VA_ARGS__))
#define mc_relu(...) (mc_here(__FILE__, __LINE__), mc_relu(__VA_ARGS__))
#define mc_elu(...) (mc_here(__FILE__, __LINE__), mc_elu(__VA_ARGS__))
#define mc_selu(...) (mc_here(__FILE__, __LINE__), mc_selu(__VA_ARGS__))
#define mc_hard_sigmoid(...) (mc_here(__FILE__, __LINE__), mc_hard_sigmoid(__VA_ARGS__))
#define mc_ultra_fast_sigmoid(...) (mc_here(__FILE__, __LINE__), mc_ultra_fast_sigmoid(__VA_ARGS__))
#define mc_softsign(...) (mc_here(__FILE__, __LINE__), mc_softsign(__VA_ARGS__))
#define mc_chi2sf(...) (mc_here(__FILE__, __LINE__), mc_chi2sf(__VA_ARGS__))
#define mc_gammau(...) (mc_here(__FILE__, __LINE__), mc_gammau(__VA_ARGS__))
#define mc_gammal(...) (mc_here(__FILE__, __LINE__), mc_gammal(__VA_ARGS__))
#define mc_gelu(...) (mc_here(__FILE__, __LINE__), mc_gelu(__VA_ARGS__))
#define mc_gelu_tanh(...) (mc_here(__FILE__, __LINE__), mc_gelu_tanh(__VA_ARGS__))
#define mc_silu(...) (mc_here(__FILE__, __LINE__), mc_silu(__VA_ARGS__))
#define mc_mish(...) (mc_here(__FILE__, __LINE__), mc_mish(__VA_ARGS__))
#define mc_hardswish(...) (mc_here(__FILE__, __LINE__), mc_hardswish(__VA_ARGS__))
#define mc_prelu(...) (mc_here(__FILE__, __LINE__), mc_prelu(__VA_ARGS__))
#define mc_rsqrt(...) (mc_here(__FILE__, __LINE__), mc_rsqrt(__VA_ARGS__))
#define mc_left_shift(...) (mc_here(__FILE__, __LINE__), mc_left_shift(__VA_ARGS__))
#define mc_right_shift(...) (mc_here(__FILE__, __LINE__), mc_right_shift(__VA_ARGS__))
#define mc_isclose(...) (mc_here(__FILE__, __LINE__), mc_isclose(__VA_ARGS__))
#define mc_allclose(...) (mc_here(__FILE__, __LINE__), mc_allclose(__VA_ARGS__))
#define mc_identity(...) (mc_here(__FILE__, __LINE__), mc_identity(__VA_ARGS__))
#define mc_tensor_copy(...) (mc_here(__FILE__, __LINE__), mc_tensor_copy(__VA_ARGS__))
#define mc_gpu_contiguous(...) (mc_here(__FILE__, __LINE__), mc_gpu_contiguous(__VA_ARGS__))
#define mc_as_cuda_ndarray_variable(...) (mc_here(__FILE__, __LINE__), mc_as_cuda_ndarray_variable(__VA_ARGS__))
#define mc_spatial_grid(...) (mc_here(__FILE__, __LINE__), mc_spatial_grid(__VA_ARGS__))
#define mc_spatial_sample(...) (mc_here(__FILE__, __LINE__), mc_spatial_sample(__VA_ARGS__))
#define mc_dnn_spatialtf(...) (mc_here(__FILE__, __LINE__), mc_dnn_spatialtf(__VA_ARGS__))
#define mc_dnn_ctc_loss(...) (mc_here(__FILE__, __LINE__), mc_dnn_ctc_loss(__VA_ARGS__))
#define mc_second(...) (mc_here(__FILE__, __LINE__), mc_second(__VA_ARGS__))
#define mc_fill(...) (mc_here(__FILE__, __LINE__), mc_fill(__VA_ARGS__))
#define mc_zeros_like(...) (mc_here(__FILE__, __LINE__), mc_zeros_like(__VA_ARGS__))
#define mc_ones_like(...) (mc_here(__FILE__, __LINE__), mc_ones_like(__VA_ARGS__))
#define mc_zeros(...) (mc_here(__FILE__, __LINE__), mc_zeros(__VA_ARGS__))
#define mc_ones(...) (mc_here(__FILE__, __LINE__), mc_ones(__VA_ARGS__))
#define mc_mean(...) (mc_here(__FILE__, __LINE__), mc_mean(__VA_ARGS__))
#define mc_variance(...) (mc_here(__FILE__, __LINE__), mc_variance(__VA_ARGS__))
#define mc_std(...) (mc_here(__FILE__, __LINE__), mc_std(__VA_ARGS__))
#define mc_ptp(...) (mc_here(__FILE__, __LINE__), mc_ptp(__VA_ARGS__))
#define mc_max_and_argmax(...) (mc_here(__FILE__, __LINE__), mc_max_and_argmax(__VA_ARGS__))
#define mc_logsumexp(...) (mc_here(__FILE__, __LINE__), mc_logsumexp(__VA_ARGS__))
#define mc_nansum(...) (mc_here(__FILE__, __LINE__), mc_nansum(__VA_ARGS__))
#define mc_nanmax(...) (mc_here(__FILE__, __LINE__), mc_nanmax(__VA_ARGS__))
#define mc_nanmin(...) (mc_here(__FILE__, __LINE__), mc_nanmin(__VA_ARGS__))
#define mc_nanmean(...) (mc_here(__FILE__, __LINE__), mc_nanmean(__VA_ARGS__))
#define mc_nanvar(...) (mc_here(__FILE__, __LINE__), mc_nanvar(__VA_ARGS__))
#define mc_nanstd(...) (mc_here(__FILE__, __LINE__), mc_nanstd(__VA_ARGS__))
#define mc_cov(...) (mc_here(__FILE__, __LINE__), mc_cov(__VA_ARGS__))
#define mc_corrcoef(...) (mc_here(__FILE__, __LINE__), mc_corrcoef(__VA_ARGS__))
#define mc_softmax(...) (mc_here(__FILE__, __LINE__), mc_softmax(__VA_ARGS__))
#define mc_logsoftmax(...) (mc_here(__FILE__, __LINE__), mc_logsoftmax(__VA_ARGS__))
#define mc_crossentropy_softmax_1hot(...) (mc_here(__FILE__, __LINE__), mc_crossentropy_softmax_1hot(__VA_ARGS__))
#define mc_categorical_crossentropy(...) (mc_here(__FILE__, __LINE__), mc_categorical_crossentropy(__VA_ARGS__))
#define mc_crossentropy_1hot(...) (mc_here(__FILE__, __LINE__), mc_crossentropy_1hot(__VA_ARGS__))
#define mc_binary_crossentropy(...) (mc_here(__FILE__, __LINE__), mc_binary_crossentropy(__VA_ARGS__))
#define mc_sigmoid_binary_crossentropy(...) (mc_here(__FILE__, __LINE__), mc_sigmoid_binary_crossentropy(__VA_ARGS__))
#define mc_softmax_with_bias(...) (mc_here(__FILE__, __LINE__), mc_softmax_with_bias(__VA_ARGS__))
#define mc_crossentropy_softmax_1hot_with_bias(...) (mc_here(__FILE__, __LINE__), mc_crossentropy_softmax_1hot_with_bias(__VA_ARGS__))
#define mc_crossentropy_softmax_max_and_argmax_1hot(...) (mc_here(__FILE__, __LINE__), mc_crossentropy_softmax_max_and_argmax_1hot(__VA_ARGS__))
#define mc_crossentropy_softmax_max_and_argmax_1hot_with_bias(...) (mc_here(__FILE__, __LINE__), mc_crossentropy_softmax_max_and_argmax_1hot_with_bias(__VA_ARGS__))
#define mc_h_softmax(...) (mc_here(__FILE__, __LINE__), mc_h_softmax(__VA_ARGS__))
#define mc_h_softmax_at(...) (mc_here(__FILE__, __LINE__), mc_h_softmax_at(__VA_ARGS__))
#define mc_confusion_matrix(...) (mc_here(__FILE__, __LINE__), mc_confusion_matrix(__VA_ARGS__))
#define mc_prepend_scalar_to_each_row(...) (mc_here(__FILE__, __LINE__), mc_prepend_scalar_to_each_row(__VA_ARGS__))
#define mc_prepend_0_to_each_row(...) (mc_here(__FILE__, __LINE__), mc_prepend_0_to_each_row(__VA_ARGS__))
#define mc_prepend_1_to_each_row(...) (mc_here(__FILE__, __LINE__), mc_prepend_1_to_each_row(__VA_ARGS__))
#define mc_crossentropy_categorical_1hot(...) (mc_here(__FILE__, __LINE__), mc_crossentropy_categorical_1hot(__VA_ARGS__))
#define mc_ravel(...) (mc_here(__FILE__, __LINE__), mc_ravel(__VA_ARGS__))
#define mc_inverse_permutation(...) (mc_here(__FILE__, __LINE__), mc_inverse_permutation(__VA_ARGS__))
#define mc_unique(...) (mc_here(__FILE__, __LINE__), mc_unique(__VA_ARGS__))
#define mc_unique_all(...) (mc_here(__FILE__, __LINE__), mc_unique_all(__VA_ARGS__))
#define mc_broadcast_to(...) (mc_here(__FILE__, __LINE__), mc_broadcast_to(__VA_ARGS__))
#define mc_full_like(...) (mc_here(__FILE__, __LINE__), mc_full_like(__VA_ARGS__))
#define mc_linspace(...) (mc_here(__FILE__, __LINE__), mc_linspace(__VA_ARGS__))
#define mc_logspace(...) (mc_here(__FILE__, __LINE__), mc_logspace(__VA_ARGS__))
#define mc_geomspace(...) (mc_here(__FILE__, __LINE__), mc_geomspace(__VA_ARGS__))
#define mc_eye(...) (mc_here(__FILE__, __LINE__), mc_eye(__VA_ARGS__))
#define mc_identity_like(...) (mc_here(__FILE__, __LINE__), mc_identity_like(__VA_ARGS__))
#define mc_bartlett(...) (mc_here(__FILE__, __LINE__), mc_bartlett(__VA_ARGS__))
#define mc_tri(...) (mc_here(__FILE__, __LINE__), mc_tri(__VA_ARGS__))
#define mc_tril(...) (mc_here(__FILE__, __LINE__), mc_tril(__VA_ARGS__))
#define mc_triu(...) (mc_here(__FILE__, __LINE__), mc_triu(__VA_ARGS__))
#define mc_to_one_hot(...) (mc_here(__FILE__, __LINE__), mc_to_one_hot(__VA_ARGS__))
#define mc_zero_grad(...) (mc_here(__FILE__, __LINE__), mc_zero_grad(__VA_ARGS__))
#define mc_disconnected_grad(...) (mc_here(__FILE__, __LINE__), mc_disconnected_grad(__VA_ARGS__))
#define mc_batch_normalization(...) (mc_here(__FILE__, __LINE__), mc_batch_normalization(__VA_ARGS__))
#define mc_layer_norm(...) (mc_here(__FILE__, __LINE__), mc_layer_norm(__VA_ARGS__))
#define mc_rms_norm(...) (mc_here(__FILE__, __LINE__), mc_rms_norm(__VA_ARGS__))
#define mc_group_norm(...) (mc_here(__FILE__, __LINE__), mc_group_norm(__VA_ARGS__))
#define mc_instance_norm(...) (mc_here(__FILE__, __LINE__), mc_instance_norm(__VA_ARGS__))
#define mc_lu_factor(...) (mc_here(__FILE__, __LINE__), mc_lu_factor(__VA_ARGS__))
#define mc_lu(...) (mc_here(__FILE__, __LINE__), mc_lu(__VA_ARGS__))
#define mc_det(...) (mc_here(__FILE__, __LINE__), mc_det(__VA_ARGS__))
#define mc_slogdet(...) (mc_here(__FILE__, __LINE__), mc_slogdet(__VA_ARGS__))
#define mc_expm(...) (mc_here(__FILE__, __LINE__), mc_expm(__VA_ARGS__))
#define mc_solve_lower_triangular(...) (mc_here(__FILE__, __LINE__), mc_solve_lower_triangular(__VA_ARGS__))
#define mc_solve_upper_triangular(...) (mc_here(__FILE__, __LINE__), mc_solve_upper_triangular(__VA_ARGS__))
#define mc_cond(...) (mc_here(__FILE__, __LINE__), mc_cond(__VA_ARGS__))
#define mc_cast(...) (mc_here(__FILE__, __LINE__), mc_cast(__VA_ARGS__))
#define mc_dimshuffle(...) (mc_here(__FILE__, __LINE__), mc_dimshuffle(__VA_ARGS__))
#define mc_reshape(...) (mc_here(__FILE__, __LINE__), mc_reshape(__VA_ARGS__))
#define mc_shape(...) (mc_here(__FILE__, __LINE__), mc_shape(__VA_ARGS__))
#define mc_size(...) (mc_here(__FILE__, __LINE__), mc_size(__VA_ARGS__))
#define mc_specify_shape(...) (mc_here(__FILE__, __LINE__), mc_specify_shape(__VA_ARGS__))
#define mc_transpose(...) (mc_here(__FILE__, __LINE__), mc_transpose(__VA_ARGS__))
#define mc_swapaxes(...) (mc_here(__FILE__, __LINE__), mc_swapaxes(__VA_ARGS__))
#define mc_moveaxis(...) (mc_here(__FILE__, __LINE__), mc_moveaxis(__VA_ARGS__))
#define mc_flip(...) (mc_here(__FILE__, __LINE__), mc_flip(__VA_ARGS__))
#define mc_expand_dims(...) (mc_here(__FILE__, __LINE__), mc_expand_dims(__VA_ARGS__))
#define mc_shape_padleft(...) (mc_here(__FILE__, __LINE__), mc_shape_padleft(__VA_ARGS__))
#define mc_shape_padright(...) (mc_here(__FILE__, __LINE__), mc_shape_padright(__VA_ARGS__))
#define mc_shape_padaxis(...) (mc_here(__FILE__, __LINE__), mc_shape_padaxis(__VA_ARGS__))
#define mc_squeeze(...) (mc_here(__FILE__, __LINE__), mc_squeeze(__VA_ARGS__))
#define mc_flatten(...) (mc_here(__FILE__, __LINE__), mc_flatten(__VA_ARGS__))
#define mc_nan_to_num(...) (mc_here(__FILE__, __LINE__), mc_nan_to_num(__VA_ARGS__))
#define mc_count(...) (mc_here(__FILE__, __LINE__), mc_count(__VA_ARGS__))
#define mc_addbroadcast(...) (mc_here(__FILE__, __LINE__), mc_addbroadcast(__VA_ARGS__))
#define mc_unbroadcast(...) (mc_here(__FILE__, __LINE__), mc_unbroadcast(__VA_ARGS__))
#define mc_patternbroadcast(...) (mc_here(__FILE__, __LINE__), mc_patternbroadcast(__VA_ARGS__))
#define mc_sum(...) (mc_here(__FILE__, __LINE__), mc_sum(__VA_ARGS__))
#define mc_prod(...) (mc_here(__FILE__, __LINE__), mc_prod(__VA_ARGS__))
#define mc_max(...) (mc_here(__FILE__, __LINE__), mc_max(__VA_ARGS__))
#define mc_min(...) (mc_here(__FILE__, __LINE__), mc_min(__VA_ARGS__))
#define mc_argmax(...) (mc_here(__FILE__, __LINE__), mc_argmax(__VA_ARGS__))
#define mc_argmin(...) (mc_here(__FILE__, __LINE__), mc_argmin(__VA_ARGS__))
#define mc_any(...) (mc_here(__FILE__, __LINE__), mc_any(__VA_ARGS__))
#define mc_all(...) (mc_here(__FILE__, __LINE__), mc_all(__VA_ARGS__))
#define mc_norm(...) (mc_here(__FILE__, __LINE__), mc_norm(__VA_ARGS__))
#define mc_cumsum(...) (mc_here(__FILE__, __LINE__), mc_cumsum(__VA_ARGS__))
#define mc_cumprod(...) (mc_here(__FILE__, __LINE__), mc_cumprod(__VA_ARGS__))
#define mc_cummax(...) (mc_here(__FILE__, __LINE__), mc_cummax(__VA_ARGS__))
#define mc_cummin(...) (mc_here(__FILE__, __LINE__), mc_cummin(__VA_ARGS__))
#define mc_gather(...) (mc_here(__FILE__, __LINE__), mc_gather(__VA_ARGS__))
#define mc_nonzero(...) (mc_here(__FILE__, __LINE__), mc_nonzero(__VA_ARGS__))
#define mc_take(...) (mc_here(__FILE__, __LINE__), mc_take(__VA_ARGS__))
#define mc_flatnonzero(...) (mc_here(__FILE__, __LINE__), mc_flatnonzero(__VA_ARGS__))
#define mc_nonzero_values(...) (mc_here(__FILE__, __LINE__), mc_nonzero_values(__VA_ARGS__))
#define mc_compress(...) (mc_here(__FILE__, __LINE__), mc_compress(__VA_ARGS__))
#define mc_fill_diagonal(...) (mc_here(__FILE__, __LINE__), mc_fill_diagonal(__VA_ARGS__))
#define mc_fill_diagonal_offset(...) (mc_here(__FILE__, __LINE__), mc_fill_diagonal_offset(__VA_ARGS__))
#define mc_take_along_axis(...) (mc_here(__FILE__, __LINE__), mc_take_along_axis(__VA_ARGS__))
#define mc_put_along_axis(...) (mc_here(__FILE__, __LINE__), mc_put_along_axis(__VA_ARGS__))
#define mc_topk(...) (mc_here(__FILE__, __LINE__), mc_topk(__VA_ARGS__))
#define mc_argtopk(...) (mc_here(__FILE__, __LINE__), mc_argtopk(__VA_ARGS__))
#define mc_topk_and_argtopk(...) (mc_here(__FILE__, __LINE__), mc_topk_and_argtopk(__VA_ARGS__))
#define mc_median(...) (mc_here(__FILE__, __LINE__), mc_median(__VA_ARGS__))
#define mc_quantile(...) (mc_here(__FILE__, __LINE__), mc_quantile(__VA_ARGS__))
#define mc_percentile(...) (mc_here(__FILE__, __LINE__), mc_percentile(__VA_ARGS__))
#define mc_diff(...) (mc_here(__FILE__, __LINE__), mc_diff(__VA_ARGS__))
#define mc_searchsorted(...) (mc_here(__FILE__, __LINE__), mc_searchsorted(__VA_ARGS__))
#define mc_digitize(...) (mc_here(__FILE__, __LINE__), mc_digitize(__VA_ARGS__))
#define mc_bincount(...) (mc_here(__FILE__, __LINE__), mc_bincount(__VA_ARGS__))
#define mc_histogram(...) (mc_here(__FILE__, __LINE__), mc_histogram(__VA_ARGS__))
#define mc_unravel_index(...) (mc_here(__FILE__, __LINE__), mc_unravel_index(__VA_ARGS__))
#define mc_ravel_multi_index(...) (mc_here(__FILE__, __LINE__), mc_ravel_multi_index(__VA_ARGS__))
#define mc_choose(...) (mc_here(__FILE__, __LINE__), mc_choose(__VA_ARGS__))
#define mc_join(...) (mc_here(__FILE__, __LINE__), mc_join(__VA_ARGS__))
#define mc_stack(...) (mc_here(__FILE__, __LINE__), mc_stack(__VA_ARGS__))
#define mc_concatenate(...) (mc_here(__FILE__, __LINE__), mc_concatenate(__VA_ARGS__))
#define mc_vertical_stack(...) (mc_here(__FILE__, __LINE__), mc_vertical_stack(__VA_ARGS__))
#define mc_horizontal_stack(...) (mc_here(__FILE__, __LINE__), mc_horizontal_stack(__VA_ARGS__))
#define mc_split(...) (mc_here(__FILE__, __LINE__), mc_split(__VA_ARGS__))
#define mc_roll(...) (mc_here(__FILE__, __LINE__), mc_roll(__VA_ARGS__))
#define mc_tile(...) (mc_here(__FILE__, __LINE__), mc_tile(__VA_ARGS__))
#define mc_repeat(...) (mc_here(__FILE__, __LINE__), mc_repeat(__VA_ARGS__))
#define mc_pad(...) (mc_here(__FILE__, __LINE__), mc_pad(__VA_ARGS__))
#define mc_full(...) (mc_here(__FILE__, __LINE__), mc_full(__VA_ARGS__))
#define mc_full_of(...) (mc_here(__FILE__, __LINE__), mc_full_of(__VA_ARGS__))
#define mc_arange(...) (mc_here(__FILE__, __LINE__), mc_arange(__VA_ARGS__))
#define mc_meshgrid(...) (mc_here(__FILE__, __LINE__), mc_meshgrid(__VA_ARGS__))
#define mc_mgrid(...) (mc_here(__FILE__, __LINE__), mc_mgrid(__VA_ARGS__))
#define mc_ogrid(...) (mc_here(__FILE__, __LINE__), mc_ogrid(__VA_ARGS__))
#define mc_dot(...) (mc_here(__FILE__, __LINE__), mc_dot(__VA_ARGS__))
#define mc_batched_dot(...) (mc_here(__FILE__, __LINE__), mc_batched_dot(__VA_ARGS__))
#define mc_matmul(...) (mc_here(__FILE__, __LINE__), mc_matmul(__VA_ARGS__))
#define mc_tensordot(...) (mc_here(__FILE__, __LINE__), mc_tensordot(__VA_ARGS__))
#define mc_batched_tensordot(...) (mc_here(__FILE__, __LINE__), mc_batched_tensordot(__VA_ARGS__))
#define mc_vdot(...) (mc_here(__FILE__, __LINE__), mc_vdot(__VA_ARGS__))
#define mc_inner(...) (mc_here(__FILE__, __LINE__), mc_inner(__VA_ARGS__))
#define mc_outer(...) (mc_here(__FILE__, __LINE__), mc_outer(__VA_ARGS__))
#define mc_cross(...) (mc_here(__FILE__, __LINE__), mc_cross(__VA_ARGS__))
#define mc_einsum(...) (mc_here(__FILE__, __LINE__), mc_einsum(__VA_ARGS__))
#define mc_rfft(...) (mc_here(__FILE__, __LINE__), mc_rfft(__VA_ARGS__))
#define mc_irfft(...) (mc_here(__FILE__, __LINE__), mc_irfft(__VA_ARGS__))
#define mc_fft(...) (mc_here(__FILE__, __LINE__), mc_fft(__VA_ARGS__))
#define mc_ifft(...) (mc_here(__FILE__, __LINE__), mc_ifft(__VA_ARGS__))
#define mc_cholesky(...) (mc_here(__FILE__, __LINE__), mc_cholesky(__VA_ARGS__))
#define mc_solve_triangular(...) (mc_here(__FILE__, __LINE__), mc_solve_triangular(__VA_ARGS__))
#define mc_solve(...) (mc_here(__FILE__, __LINE__), mc_solve(__VA_ARGS__))
#define mc_matrix_inverse(...) (mc_here(__FILE__, __LINE__), mc_matrix_inverse(__VA_ARGS__))
#define mc_qr(...) (mc_here(__FILE__, __LINE__), mc_qr(__VA_ARGS__))
#define mc_eigh(...) (mc_here(__FILE__, __LINE__), mc_eigh(__VA_ARGS__))
#define mc_eigvalsh(...) (mc_here(__FILE__, __LINE__), mc_eigvalsh(__VA_ARGS__))
#define mc_svd(...) (mc_here(__FILE__, __LINE__), mc_svd(__VA_ARGS__))
#define mc_svdvals(...) (mc_here(__FILE__, __LINE__), mc_svdvals(__VA_ARGS__))
#define mc_eig(...) (mc_here(__FILE__, __LINE__), mc_eig(__VA_ARGS__))
#define mc_eigvals(...) (mc_here(__FILE__, __LINE__), mc_eigvals(__VA_ARGS__))
#define mc_diagonal(...) (mc_here(__FILE__, __LINE__), mc_diagonal(__VA_ARGS__))
#define mc_diag(...) (mc_here(__FILE__, __LINE__), mc_diag(__VA_ARGS__))
#define mc_trace(...) (mc_here(__FILE__, __LINE__), mc_trace(__VA_ARGS__))
#define mc_matrix_power(...) (mc_here(__FILE__, __LINE__), mc_matrix_power(__VA_ARGS__))
#define mc_matrix_dot(...) (mc_here(__FILE__, __LINE__), mc_matrix_dot(__VA_ARGS__))
#define mc_kron(...) (mc_here(__FILE__, __LINE__), mc_kron(__VA_ARGS__))
#define mc_cho_solve(...) (mc_here(__FILE__, __LINE__), mc_cho_solve(__VA_ARGS__))
#define mc_matrix_norm(...) (mc_here(__FILE__, __LINE__), mc_matrix_norm(__VA_ARGS__))
#define mc_pinv(...) (mc_here(__FILE__, __LINE__), mc_pinv(__VA_ARGS__))
#define mc_matrix_rank(...) (mc_here(__FILE__, __LINE__), mc_matrix_rank(__VA_ARGS__))
#define mc_lstsq(...) (mc_here(__FILE__, __LINE__), mc_lstsq(__VA_ARGS__))
#define mc_conv(...) (mc_here(__FILE__, __LINE__), mc_conv(__VA_ARGS__))
#define mc_conv_inputs(...) (mc_here(__FILE__, __LINE__), mc_conv_inputs(__VA_ARGS__))
#define mc_conv_weights(...) (mc_here(__FILE__, __LINE__), mc_conv_weights(__VA_ARGS__))
#define mc_conv1d(...) (mc_here(__FILE__, __LINE__), mc_conv1d(__VA_ARGS__))
#define mc_conv2d(...) (mc_here(__FILE__, __LINE__), mc_conv2d(__VA_ARGS__))
#define mc_conv3d(...) (mc_here(__FILE__, __LINE__), mc_conv3d(__VA_ARGS__))
#define mc_corr2d(...) (mc_here(__FILE__, __LINE__), mc_corr2d(__VA_ARGS__))
#define mc_conv2d_grad_wrt_inputs(...) (mc_here(__FILE__, __LINE__), mc_conv2d_grad_wrt_inputs(__VA_ARGS__))
#define mc_conv2d_grad_wrt_weights(...) (mc_here(__FILE__, __LINE__), mc_conv2d_grad_wrt_weights(__VA_ARGS__))
#define mc_conv2d_transpose(...) (mc_here(__FILE__, __LINE__), mc_conv2d_transpose(__VA_ARGS__))
#define mc_separable_conv2d(...) (mc_here(__FILE__, __LINE__), mc_separable_conv2d(__VA_ARGS__))
#define mc_conv3d_grad_wrt_inputs(...) (mc_here(__FILE__, __LINE__), mc_conv3d_grad_wrt_inputs(__VA_ARGS__))
#define mc_conv3d_grad_wrt_weights(...) (mc_here(__FILE__, __LINE__), mc_conv3d_grad_wrt_weights(__VA_ARGS__))
#define mc_conv3d_transpose(...) (mc_here(__FILE__, __LINE__), mc_conv3d_transpose(__VA_ARGS__))
#define mc_separable_conv3d(...) (mc_here(__FILE__, __LINE__), mc_separable_conv3d(__VA_ARGS__))
#define mc_conv_transpose(...) (mc_here(__FILE__, __LINE__), mc_conv_transpose(__VA_ARGS__))
#define mc_causal_conv1d(...) (mc_here(__FILE__, __LINE__), mc_causal_conv1d(__VA_ARGS__))
#define mc_corrmm(...) (mc_here(__FILE__, __LINE__), mc_corrmm(__VA_ARGS__))
#define mc_corrmm_grad_weights(...) (mc_here(__FILE__, __LINE__), mc_corrmm_grad_weights(__VA_ARGS__))
#define mc_corrmm_grad_inputs(...) (mc_here(__FILE__, __LINE__), mc_corrmm_grad_inputs(__VA_ARGS__))
#define mc_dnn_conv(...) (mc_here(__FILE__, __LINE__), mc_dnn_conv(__VA_ARGS__))
#define mc_dnn_gradinput(...) (mc_here(__FILE__, __LINE__), mc_dnn_gradinput(__VA_ARGS__))
#define mc_dnn_gradweight(...) (mc_here(__FILE__, __LINE__), mc_dnn_gradweight(__VA_ARGS__))
#define mc_get_out_shape(...) (mc_here(__FILE__, __LINE__), mc_get_out_shape(__VA_ARGS__))
#define mc_dnn_conv3d(...) (mc_here(__FILE__, __LINE__), mc_dnn_conv3d(__VA_ARGS__))
#define mc_dnn_gradinput3d(...) (mc_here(__FILE__, __LINE__), mc_dnn_gradinput3d(__VA_ARGS__))
#define mc_dnn_gradweight3d(...) (mc_here(__FILE__, __LINE__), mc_dnn_gradweight3d(__VA_ARGS__))
#define mc_filter_acts(...) (mc_here(__FILE__, __LINE__), mc_filter_acts(__VA_ARGS__))
#define mc_image_acts(...) (mc_here(__FILE__, __LINE__), mc_image_acts(__VA_ARGS__))
#define mc_weight_acts(...) (mc_here(__FILE__, __LINE__), mc_weight_acts(__VA_ARGS__))
#define mc_nervana_conv(...) (mc_here(__FILE__, __LINE__), mc_nervana_conv(__VA_ARGS__))
#define mc_nervana_dot(...) (mc_here(__FILE__, __LINE__), mc_nervana_dot(__VA_ARGS__))
#define mc_images2neibs(...) (mc_here(__FILE__, __LINE__), mc_images2neibs(__VA_ARGS__))
#define mc_neibs2images(...) (mc_here(__FILE__, __LINE__), mc_neibs2images(__VA_ARGS__))
#define mc_bilinear_kernel_1D(...) (mc_here(__FILE__, __LINE__), mc_bilinear_kernel_1D(__VA_ARGS__))
#define mc_bilinear_kernel_2D(...) (mc_here(__FILE__, __LINE__), mc_bilinear_kernel_2D(__VA_ARGS__))
#define mc_bilinear_upsampling(...) (mc_here(__FILE__, __LINE__), mc_bilinear_upsampling(__VA_ARGS__))
#define mc_pool(...) (mc_here(__FILE__, __LINE__), mc_pool(__VA_ARGS__))
#define mc_pool_grad(...) (mc_here(__FILE__, __LINE__), mc_pool_grad(__VA_ARGS__))
#define mc_pool_pick(...) (mc_here(__FILE__, __LINE__), mc_pool_pick(__VA_ARGS__))
#define mc_pool_2d(...) (mc_here(__FILE__, __LINE__), mc_pool_2d(__VA_ARGS__))
#define mc_pool_3d(...) (mc_here(__FILE__, __LINE__), mc_pool_3d(__VA_ARGS__))
#define mc_max_pool_2d(...) (mc_here(__FILE__, __LINE__), mc_max_pool_2d(__VA_ARGS__))
#define mc_max_pool_2d_same_size(...) (mc_here(__FILE__, __LINE__), mc_max_pool_2d_same_size(__VA_ARGS__))
#define mc_dnn_pool(...) (mc_here(__FILE__, __LINE__), mc_dnn_pool(__VA_ARGS__))
#define mc_max_pool(...) (mc_here(__FILE__, __LINE__), mc_max_pool(__VA_ARGS__))
#define mc_max_pool_grad(...) (mc_here(__FILE__, __LINE__), mc_max_pool_grad(__VA_ARGS__))
#define mc_max_pool_rop(...) (mc_here(__FILE__, __LINE__), mc_max_pool_rop(__VA_ARGS__))
#define mc_max_pool_c01b(...) (mc_here(__FILE__, __LINE__), mc_max_pool_c01b(__VA_ARGS__))
#define mc_prob_max_pool(...) (mc_here(__FILE__, __LINE__), mc_prob_max_pool(__VA_ARGS__))
#define mc_weighted_max_pool(...) (mc_here(__FILE__, __LINE__), mc_weighted_max_pool(__VA_ARGS__))
#define mc_stochastic_max_pool(...) (mc_here(__FILE__, __LINE__), mc_stochastic_max_pool(__VA_ARGS__))
#define mc_global_pool(...) (mc_here(__FILE__, __LINE__), mc_global_pool(__VA_ARGS__))
#define mc_spatial_pyramid_pool(...) (mc_here(__FILE__, __LINE__), mc_spatial_pyramid_pool(__VA_ARGS__))
#define mc_upscale(...) (mc_here(__FILE__, __LINE__), mc_upscale(__VA_ARGS__))
#define mc_bc01_to_c01b(...) (mc_here(__FILE__, __LINE__), mc_bc01_to_c01b(__VA_ARGS__))
#define mc_c01b_to_bc01(...) (mc_here(__FILE__, __LINE__), mc_c01b_to_bc01(__VA_ARGS__))
#define mc_lrn(...) (mc_here(__FILE__, __LINE__), mc_lrn(__VA_ARGS__))
#define mc_lrn_grad(...) (mc_here(__FILE__, __LINE__), mc_lrn_grad(__VA_ARGS__))
#define mc_cross_map_norm(...) (mc_here(__FILE__, __LINE__), mc_cross_map_norm(__VA_ARGS__))
#define mc_cross_map_norm_undo(...) (mc_here(__FILE__, __LINE__), mc_cross_map_norm_undo(__VA_ARGS__))
#define mc_channel_sum(...) (mc_here(__FILE__, __LINE__), mc_channel_sum(__VA_ARGS__))
#define mc_batch_normalization_train(...) (mc_here(__FILE__, __LINE__), mc_batch_normalization_train(__VA_ARGS__))
#define mc_batch_normalization_test(...) (mc_here(__FILE__, __LINE__), mc_batch_normalization_test(__VA_ARGS__))
#define mc_dnn_softmax(...) (mc_here(__FILE__, __LINE__), mc_dnn_softmax(__VA_ARGS__))
#define mc_dnn_softmax_grad(...) (mc_here(__FILE__, __LINE__), mc_dnn_softmax_grad(__VA_ARGS__))
#define mc_ctc_loss(...) (mc_here(__FILE__, __LINE__), mc_ctc_loss(__VA_ARGS__))
#define mc_sort(...) (mc_here(__FILE__, __LINE__), mc_sort(__VA_ARGS__))
#define mc_argsort(...) (mc_here(__FILE__, __LINE__), mc_argsort(__VA_ARGS__))
#define mc_permute_row_elements(...) (mc_here(__FILE__, __LINE__), mc_permute_row_elements(__VA_ARGS__))
#define mc_random_uniform(...) (mc_here(__FILE__, __LINE__), mc_random_uniform(__VA_ARGS__))
#define mc_uniform(...) (mc_here(__FILE__, __LINE__), mc_uniform(__VA_ARGS__))
#define mc_normal(...) (mc_here(__FILE__, __LINE__), mc_normal(__VA_ARGS__))
#define mc_bernoulli(...) (mc_here(__FILE__, __LINE__), mc_bernoulli(__VA_ARGS__))
#define mc_binomial(...) (mc_here(__FILE__, __LINE__), mc_binomial(__VA_ARGS__))
#define mc_multinomial(...) (mc_here(__FILE__, __LINE__), mc_multinomial(__VA_ARGS__))
#define mc_exponential(...) (mc_here(__FILE__, __LINE__), mc_exponential(__VA_ARGS__))
#define mc_laplace(...) (mc_here(__FILE__, __LINE__), mc_laplace(__VA_ARGS__))
#define mc_truncated_normal(...) (mc_here(__FILE__, __LINE__), mc_truncated_normal(__VA_ARGS__))
#define mc_poisson(...) (mc_here(__FILE__, __LINE__), mc_poisson(__VA_ARGS__))
#define mc_random_gamma(...) (mc_here(__FILE__, __LINE__), mc_random_gamma(__VA_ARGS__))
#define mc_random_beta(...) (mc_here(__FILE__, __LINE__), mc_random_beta(__VA_ARGS__))
#define mc_choice(...) (mc_here(__FILE__, __LINE__), mc_choice(__VA_ARGS__))
#define mc_shuffled(...) (mc_here(__FILE__, __LINE__), mc_shuffled(__VA_ARGS__))
#define mc_shuffle_row_elements(...) (mc_here(__FILE__, __LINE__), mc_shuffle_row_elements(__VA_ARGS__))
#define mc_dropout(...) (mc_here(__FILE__, __LINE__), mc_dropout(__VA_ARGS__))
#define mc_permutation(...) (mc_here(__FILE__, __LINE__), mc_permutation(__VA_ARGS__))
#define mc_random_integers(...) (mc_here(__FILE__, __LINE__), mc_random_integers(__VA_ARGS__))
#define mc_consider_constant(...) (mc_here(__FILE__, __LINE__), mc_consider_constant(__VA_ARGS__))
#define mc_undefined_grad(...) (mc_here(__FILE__, __LINE__), mc_undefined_grad(__VA_ARGS__))
#define mc_grad_clip(...) (mc_here(__FILE__, __LINE__), mc_grad_clip(__VA_ARGS__))
#define mc_grad_scale(...) (mc_here(__FILE__, __LINE__), mc_grad_scale(__VA_ARGS__))
#define mc_assert_(...) (mc_here(__FILE__, __LINE__), mc_assert_(__VA_ARGS__))
#define mc_print_(...) (mc_here(__FILE__, __LINE__), mc_print_(__VA_ARGS__))
#define mc_clone(...) (mc_here(__FILE__, __LINE__), mc_clone(__VA_ARGS__))
#define mc_all_reduce(...) (mc_here(__FILE__, __LINE__), mc_all_reduce(__VA_ARGS__))
#define mc_broadcast(...) (mc_here(__FILE__, __LINE__), mc_broadcast(__VA_ARGS__))
#define mc_all_gather(...) (mc_here(__FILE__, __LINE__), mc_all_gather(__VA_ARGS__))
#define mc_reduce_scatter(...) (mc_here(__FILE__, __LINE__), mc_reduce_scatter(__VA_ARGS__))
#define mc_rank_of(...) (mc_here(__FILE__, __LINE__), mc_rank_of(__VA_ARGS__))
#define mc_ifelse(...) (mc_here(__FILE__, __LINE__), mc_ifelse(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif

#endif

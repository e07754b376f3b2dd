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
/* floor of a / b; of integers by 0 it is 0, of floats a / b */
MC_API mc_node *mc_int_div(mc_node *a, mc_node *b);
/* what a // b leaves, exact, with the sign of b; of integers by 0 it is 0, of floats NaN */
MC_API mc_node *mc_mod(mc_node *a, mc_node *b);
/* what a / b leaves, exact, with the sign of a; of integers by 0 it is 0, of floats NaN */
MC_API mc_node *mc_fmod(mc_node *a, mc_node *b);
MC_API mc_node *mc_pow(mc_node *a, mc_node *b);              /* a to the b */
MC_API mc_node *mc_neg(mc_node *a);                          /* -a */
MC_API mc_node *mc_abs(mc_node *a);                          /* absolute value */
MC_API mc_node *mc_sqr(mc_node *a);                          /* a * a */
MC_API mc_node *mc_sqrt(mc_node *a);                         /* square root */
MC_API mc_node *mc_reciprocal(mc_node *a);                   /* 1 / a */
MC_API mc_node *mc_maximum(mc_node *a, mc_node *b);          /* the larger; NaN if either is NaN */
MC_API mc_node *mc_minimum(mc_node *a, mc_node *b);          /* the smaller; NaN if either is NaN */
MC_API mc_node *mc_clip(mc_node *a, mc_node *b, mc_node *c); /* a held between b and c */
MC_API mc_node *mc_sgn(mc_node *a);                          /* -1, 0 or 1 */
MC_API mc_node *mc_copysign(mc_node *a, mc_node *b);         /* a with the sign of b */
MC_API mc_node *mc_hypot(mc_node *a, mc_node *b);            /* sqrt(a * a + b * b), without overflow */
MC_API mc_node *mc_lt(mc_node *a, mc_node *b);               /* a < b */
MC_API mc_node *mc_le(mc_node *a, mc_node *b);               /* a <= b */
MC_API mc_node *mc_gt(mc_node *a, mc_node *b);               /* a > b */
MC_API mc_node *mc_ge(mc_node *a, mc_node *b);               /* a >= b */
MC_API mc_node *mc_eq(mc_node *a, mc_node *b);               /* a == b */
MC_API mc_node *mc_neq(mc_node *a, mc_node *b);              /* a != b */
MC_API mc_node *mc_isnan(mc_node *a);                        /* is it NaN */
MC_API mc_node *mc_isinf(mc_node *a);                        /* is it an infinity */
MC_API mc_node *mc_isfinite(mc_node *a);                     /* is it neither an infinity nor NaN */
MC_API mc_node *mc_signbit(mc_node *a);                      /* is the sign bit set: below 0, or -0 */
MC_API mc_node *mc_where(mc_node *a, mc_node *b, mc_node *c); /* b where a, else c */
MC_API mc_node *mc_and_(mc_node *a, mc_node *b);             /* bitwise and; logical on bool */
MC_API mc_node *mc_or_(mc_node *a, mc_node *b);              /* bitwise or; logical on bool */
MC_API mc_node *mc_xor(mc_node *a, mc_node *b);              /* bitwise exclusive or; logical on bool */
MC_API mc_node *mc_invert(mc_node *a);                       /* bitwise not; logical on bool */
MC_API mc_node *mc_exp(mc_node *a);                          /* e to the a */
MC_API mc_node *mc_exp2(mc_node *a);                         /* 2 to the a */
MC_API mc_node *mc_expm1(mc_node *a);                        /* exp(a) - 1, exact near 0 */
MC_API mc_node *mc_log(mc_node *a);                          /* natural logarithm */
MC_API mc_node *mc_log2(mc_node *a);                         /* logarithm to base 2 */
MC_API mc_node *mc_log10(mc_node *a);                        /* logarithm to base 10 */
MC_API mc_node *mc_log1p(mc_node *a);                        /* log(1 + a), exact near 0 */
MC_API mc_node *mc_floor(mc_node *a);                        /* largest whole number not above a */
MC_API mc_node *mc_ceil(mc_node *a);                         /* smallest whole number not below a */
MC_API mc_node *mc_trunc(mc_node *a);                        /* towards zero */
MC_API mc_node *mc_round(mc_node *a);                        /* nearest whole number, halves to even */
MC_API mc_node *mc_round_half_away(mc_node *a);              /* nearest whole number, halves away from zero */
MC_API mc_node *mc_iround(mc_node *a);                       /* round as int64 */
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
MC_API mc_node *mc_erfc(mc_node *a);                         /* 1 - erf(a), exact for large a */
MC_API mc_node *mc_gammaln(mc_node *a);                      /* logarithm of the absolute gamma function */
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
/* a; as a function's result it stays in the device's memory */
MC_API mc_node *mc_gpu_from_host(mc_node *a);
MC_API mc_node *mc_host_from_gpu(mc_node *a);                /* a, in the host's memory */

/* --------------------------------------------------------------- Formulas of other ops ---- */

MC_API mc_node *mc_inv(mc_node *x);                          /* 1 / x */
MC_API mc_node *mc_square(mc_node *x);                       /* x * x */
MC_API mc_node *mc_switch(mc_node *c, mc_node *a, mc_node *b); /* a where c, else b */
MC_API mc_node *mc_ceil_intdiv(mc_node *a, mc_node *b);      /* a / b rounded up, for integers */
MC_API mc_node *mc_divmod(mc_node *a, mc_node *b);           /* the quotient and the remainder */
/* relu(x, alpha=0:real): x where positive, else alpha * x; its derivative at 0 is the mean of both */
MC_API mc_node *mc_relu(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* elu(x, alpha=1:real): x where positive, else alpha * (exp(x) - 1) */
MC_API mc_node *mc_elu(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
MC_API mc_node *mc_selu(mc_node *x);                         /* scaled exponential linear unit */
MC_API mc_node *mc_hard_sigmoid(mc_node *x);                 /* sigmoid as three straight lines */
MC_API mc_node *mc_ultra_fast_sigmoid(mc_node *x);           /* sigmoid in pieces, wrong by at most 0.07 */
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
/* isclose(a, b, rtol=1e-05:real, atol=1e-08:real): are a and b close, element by element */
MC_API mc_node *mc_isclose(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
/* allclose(a, b, rtol=1e-05:real, atol=1e-08:real): are all elements close */
MC_API mc_node *mc_allclose(mc_node *a, mc_node *b, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_identity(mc_node *x);                     /* x */
/* x: values of a graph are never changed, so it is its own copy */
MC_API mc_node *mc_tensor_copy(mc_node *x);
MC_API mc_node *mc_second(mc_node *a, mc_node *b);           /* b in the shape of a */
MC_API mc_node *mc_fill(mc_node *a, mc_node *b);             /* b in the shape and dtype of a */
MC_API mc_node *mc_zeros_like(mc_node *x);                   /* zeros in the shape and dtype of x */
MC_API mc_node *mc_ones_like(mc_node *x);                    /* ones in the shape and dtype of x */
/* zeros(shape, dtype=None:dtype): zeros */
MC_API mc_node *mc_zeros(mc_node *shape, const char *how, ...) MC_FORMAT(2, 3);
/* ones(shape, dtype=None:dtype): ones */
MC_API mc_node *mc_ones(mc_node *shape, const char *how, ...) MC_FORMAT(2, 3);
/* mean(x, axis=None:axes, keepdims=False:bool): mean over axes; of integers in float64 */
MC_API mc_node *mc_mean(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* var(x, axis=None:axes, keepdims=False:bool, ddof=0:int): variance over axes, divided by the count less
 * ddof */
MC_API mc_node *mc_variance(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* std(x, axis=None:axes, keepdims=False:bool, ddof=0:int): standard deviation */
MC_API mc_node *mc_std(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* ptp(x, axis=None:axes): largest less smallest */
MC_API mc_node *mc_ptp(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* max_and_argmax(x, axis=None:axes, keepdims=False:bool): the largest element and where it first stands */
MC_API mc_node *mc_max_and_argmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* logsumexp(x, axis=None:axes, keepdims=False:bool): log of the sum of exp; rewrites make it safe */
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
/* softmax(x, axis=-1:int): exp(x) over its sum along an axis */
MC_API mc_node *mc_softmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* logsoftmax(x, axis=-1:int): log of softmax, exact for large differences */
MC_API mc_node *mc_logsoftmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* -log(softmax(x))[i, t[i]] for each row i */
MC_API mc_node *mc_crossentropy_softmax_1hot(mc_node *x, mc_node *t);
/* cross-entropy of distributions p and t, row by row */
MC_API mc_node *mc_categorical_crossentropy(mc_node *p, mc_node *t);
MC_API mc_node *mc_crossentropy_1hot(mc_node *p, mc_node *t); /* -log(p[i, t[i]]) for each row i */
/* cross-entropy of probabilities p and targets t */
MC_API mc_node *mc_binary_crossentropy(mc_node *p, mc_node *t);
/* binary_crossentropy(sigmoid(x), t), exact for large x */
MC_API mc_node *mc_sigmoid_binary_crossentropy(mc_node *x, mc_node *t);
/* softmax of x + b: one kernel, as everything around a softmax is */
MC_API mc_node *mc_softmax_with_bias(mc_node *x, mc_node *b);
/* -log(softmax(x + b))[i, t[i]] for each row i */
MC_API mc_node *mc_crossentropy_softmax_1hot_with_bias(mc_node *x, mc_node *b, mc_node *t);
/* crossentropy_softmax_1hot, the largest element of each row and where it first stands */
MC_API mc_node *mc_crossentropy_softmax_max_and_argmax_1hot(mc_node *x, mc_node *t);
/* the same of x + b */
MC_API mc_node *mc_crossentropy_softmax_max_and_argmax_1hot_with_bias(mc_node *x, mc_node *b, mc_node *t);
/* softmax in two levels, of classes by W1 (features, classes) and of outputs in a class by W2 (classes,
 * features, outputs): the first n_outputs */
MC_API mc_node *mc_h_softmax(mc_node *x, mc_node *W1, mc_node *b1, mc_node *W2, mc_node *b2, mc_node
    *n_outputs);
/* h_softmax(...)[i, t[i]] for each row i, without the other outputs */
MC_API mc_node *mc_h_softmax_at(mc_node *x, mc_node *W1, mc_node *b1, mc_node *W2, mc_node *b2, mc_node *t);
/* how often label u[i] was taken for u[j], and the labels u in rising order */
MC_API mc_node *mc_confusion_matrix(mc_node *t, mc_node *p);
MC_API mc_node *mc_prepend_scalar_to_each_row(mc_node *v, mc_node *x); /* the matrix x behind a column of v */
MC_API mc_node *mc_prepend_0_to_each_row(mc_node *x);        /* the matrix x behind a column of zeros */
MC_API mc_node *mc_prepend_1_to_each_row(mc_node *x);        /* the matrix x behind a column of ones */
/* -log(p[i, t[i]]) for each row i */
MC_API mc_node *mc_crossentropy_categorical_1hot(mc_node *p, mc_node *t);
MC_API mc_node *mc_ravel(mc_node *x);                        /* all elements as a vector */
MC_API mc_node *mc_inverse_permutation(mc_node *p);          /* the permutation that undoes p */
/* the elements of x in rising order, each once; one NaN at most, as the last */
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
/* eye(n, m=None, k=0:int, dtype=None:dtype): ones on the k-th diagonal */
MC_API mc_node *mc_eye(mc_node *n, mc_node *m, const char *how, ...) MC_FORMAT(3, 4);
/* ones on the diagonal, in the shape and dtype of x */
MC_API mc_node *mc_identity_like(mc_node *x);
/* the triangular window of n points, 0 at both ends; of one point 1 */
MC_API mc_node *mc_bartlett(mc_node *n);
/* tri(n, m=None, k=0:int, dtype=None:dtype): ones on and below the k-th diagonal */
MC_API mc_node *mc_tri(mc_node *n, mc_node *m, const char *how, ...) MC_FORMAT(3, 4);
/* tril(x, k=0:int): x below and on the k-th diagonal */
MC_API mc_node *mc_tril(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* triu(x, k=0:int): x above and on the k-th diagonal */
MC_API mc_node *mc_triu(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* to_one_hot(t, n, dtype=None:dtype): rows with a one at t[i] */
MC_API mc_node *mc_to_one_hot(mc_node *t, mc_node *n, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_zero_grad(mc_node *x);                    /* x, a constant to gradients */
MC_API mc_node *mc_disconnected_grad(mc_node *x);            /* x, cut off from gradients */
/* x normalised by given mean and standard deviation */
MC_API mc_node *mc_batch_normalization(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *mean, mc_node
    *std);
/* layer_norm(x, gamma=None, beta=None, epsilon=1e-05:real): rows with mean 0 and variance 1, times gamma,
 * plus beta */
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

/* ---------------------------------------------------------------- Shapes, axes, dtypes ---- */

/* cast(x, dtype:dtype): x in another dtype */
MC_API mc_node *mc_cast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* dimshuffle(x, order:ints): x's axes in another order; -1 makes an axis of size 1, axes of size 1 may be
 * left out */
MC_API mc_node *mc_dimshuffle(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* reshape(x, shape, ndim=None:int): the elements of x in another shape; one size may be -1 */
MC_API mc_node *mc_reshape(mc_node *x, mc_node *shape, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_shape(mc_node *x);                        /* the sizes of x */
/* size(x, axis:int): the size of one axis */
MC_API mc_node *mc_size(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* specify_shape(x, sizes:ints): x, whose sizes are promised; -1 promises nothing */
MC_API mc_node *mc_specify_shape(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* transpose(x, axes=None:ints): axes reversed, or in the order given */
MC_API mc_node *mc_transpose(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* swapaxes(x, a:int, b:int): two axes exchanged */
MC_API mc_node *mc_swapaxes(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* moveaxis(x, source:ints, destination:ints): axes moved to other places; the others keep their order */
MC_API mc_node *mc_moveaxis(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* flip(x, axis=None:axes): x read backwards along all axes, or those given */
MC_API mc_node *mc_flip(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* expand_dims(x, axis:int): a new axis of size 1 */
MC_API mc_node *mc_expand_dims(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* shape_padleft(x, n=1:int): n axes of size 1 in front */
MC_API mc_node *mc_shape_padleft(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* shape_padright(x, n=1:int): n axes of size 1 behind */
MC_API mc_node *mc_shape_padright(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* shape_padaxis(x, axis:int): a new axis of size 1 */
MC_API mc_node *mc_shape_padaxis(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* squeeze(x, axis=None:axes): axes of size 1 dropped */
MC_API mc_node *mc_squeeze(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* flatten(x, ndim=1:int): the last axes joined so that ndim remain */
MC_API mc_node *mc_flatten(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* nan_to_num(x, nan=0:real, posinf=None:real, neginf=None:real): x with numbers in place of NaN and of the
 * infinities, which become the largest of the dtype unless others are given */
MC_API mc_node *mc_nan_to_num(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* count(x, axis=None:axes): how many elements the axes hold */
MC_API mc_node *mc_count(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* addbroadcast(x, axis:axes): x, promised to have size 1 on these axes */
MC_API mc_node *mc_addbroadcast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* unbroadcast(x, axis:axes): x, which no longer broadcasts along these axes */
MC_API mc_node *mc_unbroadcast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* patternbroadcast(x, pattern:ints): x, with an entry for each axis: 1 as addbroadcast, 0 as unbroadcast,
 * -1 as it is */
MC_API mc_node *mc_patternbroadcast(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* --------------------------------------------------------------------------- Over axes ---- */

/* sum(x, axis=None:axes, keepdims=False:bool, dtype=None:dtype, acc_dtype=None:dtype): sum over axes; of
 * small integers in 64 bits */
MC_API mc_node *mc_sum(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* prod(x, axis=None:axes, keepdims=False:bool, dtype=None:dtype, acc_dtype=None:dtype): product over axes;
 * of small integers in 64 bits */
MC_API mc_node *mc_prod(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* max(x, axis=None:axes, keepdims=False:bool): the largest over axes; NaN if one is NaN */
MC_API mc_node *mc_max(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* min(x, axis=None:axes, keepdims=False:bool): the smallest over axes; NaN if one is NaN */
MC_API mc_node *mc_min(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* argmax(x, axis=None:axes, keepdims=False:bool): where the largest first stands, or the first NaN: an
 * index into the reduced axes flattened */
MC_API mc_node *mc_argmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* argmin(x, axis=None:axes, keepdims=False:bool): where the smallest first stands */
MC_API mc_node *mc_argmin(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* any(x, axis=None:axes, keepdims=False:bool): is an element over axes not zero */
MC_API mc_node *mc_any(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* all(x, axis=None:axes, keepdims=False:bool): is no element over axes zero */
MC_API mc_node *mc_all(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* norm(x, ord=2:real, axis=None:axes): the ord-norm over axes: the ord-th root of the sum of abs(x) **
 * ord; inf: the largest magnitude, -inf: the least, 0: how many are not 0 */
MC_API mc_node *mc_norm(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* ---------------------------------------------------------------- Running over an axis ---- */

/* cumsum(x, axis=None:int): sums of the first elements along an axis; None flattens */
MC_API mc_node *mc_cumsum(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cumprod(x, axis=None:int): products of the first elements along an axis; None flattens */
MC_API mc_node *mc_cumprod(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cummax(x, axis=None:int): the largest of the first elements along an axis, from a NaN on NaN; None
 * flattens */
MC_API mc_node *mc_cummax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cummin(x, axis=None:int): the smallest of the first elements along an axis, from a NaN on NaN; None
 * flattens */
MC_API mc_node *mc_cummin(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* -------------------------------------------------------------------- At index tensors ---- */

/* gather(x, *index, axes:ints): x[idx]: elements of x at index tensors for these axes */
MC_API mc_node *mc_gather(mc_node *x, int n, mc_node *const *index, const char *how, ...) MC_FORMAT(4, 5);
/* where x is not 0: a vector of indices for each axis */
MC_API mc_node *mc_nonzero(mc_node *x);
/* take(x, index, axis=None:int, mode=raise:text): x at index along an axis, or of x flattened; an index
 * outside is an error, or wraps or is clipped */
MC_API mc_node *mc_take(mc_node *x, mc_node *index, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_flatnonzero(mc_node *x);                  /* where x, flattened, is not 0 */
MC_API mc_node *mc_nonzero_values(mc_node *x);               /* the elements of x that are not 0 */
/* compress(c, x, axis=None:int): the slices of x along an axis where the vector c is not 0 */
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

/* ------------------------------------------------------------------------ Side by side ---- */

/* join(*xs, axis=0:int): tensors one behind the other along an axis */
MC_API mc_node *mc_join(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
/* stack(*xs, axis=0:int): tensors of one shape along a new axis */
MC_API mc_node *mc_stack(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
/* concatenate(*xs, axis=0:int): join by its other name */
MC_API mc_node *mc_concatenate(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
MC_API mc_node *mc_vertical_stack(int n, mc_node *const *xs); /* matrices one below the other */
MC_API mc_node *mc_horizontal_stack(int n, mc_node *const *xs); /* matrices side by side */
/* split(x, sizes:ints, axis=0:int): x taken apart along an axis into parts of these sizes */
MC_API mc_node *mc_split(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* roll(x, shift, axis=None:int): the last shift elements along an axis to the front; of x flattened if no
 * axis is given */
MC_API mc_node *mc_roll(mc_node *x, mc_node *shift, const char *how, ...) MC_FORMAT(3, 4);
/* tile(x, reps:ints): x as often along each axis as reps says */
MC_API mc_node *mc_tile(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* repeat(x, n, axis=None:int): each element n times, along an axis or of x flattened; n may be a vector
 * with a count for each */
MC_API mc_node *mc_repeat(mc_node *x, mc_node *n, const char *how, ...) MC_FORMAT(3, 4);
/* pad(x, pad_width:border, mode=constant:text, constant_values=0:real, end_values=0:real,
 * stat_length=None:border, reflect_type=even:text): x with elements around it: pad_width is a number, a
 * pair for front and back, or a pair for each axis; mode: constant, empty (zeros), edge, wrap, symmetric,
 * reflect, maximum, minimum, mean, median, linear_ramp */
MC_API mc_node *mc_pad(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* ------------------------------------------------------------------- Made from a shape ---- */

/* alloc(x, shape): x repeated until it has this shape */
MC_API mc_node *mc_full(mc_node *x, mc_node *shape);
/* full(shape, value, dtype=None:dtype): value repeated until it has this shape; of its dtype unless
 * another is given */
MC_API mc_node *mc_full_of(mc_node *shape, mc_node *value, const char *how, ...) MC_FORMAT(3, 4);
/* arange(start, stop=None, step=None, dtype=None:dtype): start, start + step, ... as long as it stays
 * before stop; arange(n) counts from 0 */
MC_API mc_node *mc_arange(mc_node *start, mc_node *stop, mc_node *step, const char *how, ...) MC_FORMAT(4, 5);
/* meshgrid(*xs, indexing=xy:text, sparse=False:bool): for vectors along the axes of a box, where each
 * point lies along each; 'xy' has the first along axis 1 */
MC_API mc_node *mc_meshgrid(int n, mc_node *const *xs, const char *how, ...) MC_FORMAT(3, 4);
/* meshgrid with 'ij'; a number n stands for arange(n) */
MC_API mc_node *mc_mgrid(int n, mc_node *const *xs);
/* mgrid whose results have size 1 along the other axes */
MC_API mc_node *mc_ogrid(int n, mc_node *const *xs);

/* ---------------------------------------------------------------------------- Products ---- */

/* matrix product; the sum over a's last axis and b's last but one */
MC_API mc_node *mc_dot(mc_node *a, mc_node *b);
/* dot(a[i], b[i]) for each i; a first axis of size 1 stands for all */
MC_API mc_node *mc_batched_dot(mc_node *a, mc_node *b);
/* NumPy's matmul: products of the matrices in the last two axes, the axes in front broadcast; as a @ b */
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

/* ------------------------------------------------------------------------- Convolution ---- */

/* conv(x, w, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int, flip=True:bool,
 * unshared=False:bool, layout=None:text, ceil=False:bool, algo=None:text, precision=None:text):
 * convolution along 1 to 3 axes of x (images, channels, axes) with w (filters, channels / groups, axes);
 * the result has (i + p - (k - 1)*d - 1)//s + 1 places along an axis, one more with ceil where that does
 * not divide. border: valid, full, half, same, causal, or zeros on both sides, on each axis, or in front
 * and behind; flip: taps run backwards; unshared: w has a filter for each place, behind its first axis;
 * layout: the order of x's axes, bc01, b01c, c01b, w's filters where x has b */
MC_API mc_node *mc_conv(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* conv_inputs(w, y, shape=None, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int,
 * flip=True:bool, unshared=False:bool, layout=None:text, ceil=False:bool, algo=None:text,
 * precision=None:text): the gradient of conv(x, w) with respect to x, given y's; shape: x's, or its
 * spatial sizes, needed where the stride is not 1 */
MC_API mc_node *mc_conv_inputs(mc_node *w, mc_node *y, mc_node *shape, const char *how, ...) MC_FORMAT(4, 5);
/* conv_weights(x, y, shape=None, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int,
 * flip=True:bool, unshared=False:bool, layout=None:text, ceil=False:bool, algo=None:text,
 * precision=None:text): the gradient of conv(x, w) with respect to w, given y's; shape: w's, or its
 * spatial sizes, needed where the stride is not 1 or the border is half, same or causal */
MC_API mc_node *mc_conv_weights(mc_node *x, mc_node *y, mc_node *shape, const char *how, ...) MC_FORMAT(4, 5);

/* ------------------------------------------------------ Convolution by its other names ---- */

/* conv1d(x, w, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv along 1
 * axes, by the names of Theano's conv1d; shapes are promises, -1 promises nothing */
MC_API mc_node *mc_conv1d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* conv2d(x, w, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv along 2
 * axes, by the names of Theano's conv2d; shapes are promises, -1 promises nothing */
MC_API mc_node *mc_conv2d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* conv3d(x, w, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv along 3
 * axes, by the names of Theano's conv3d; shapes are promises, -1 promises nothing */
MC_API mc_node *mc_conv3d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
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
 * unshared=False:bool): conv2d_grad_wrt_inputs by its other name: filters as the forward convolution has
 * them */
MC_API mc_node *mc_conv2d_transpose(mc_node *x, mc_node *filters, mc_node *output_shape, const char *how, ...)
    MC_FORMAT(4, 5);
/* separable_conv2d(x, depthwise_filters, pointwise_filters, num_channels:int, border_mode=valid:border,
 * subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints, input_shape=None:ints,
 * depthwise_filter_shape=None:ints, pointwise_filter_shape=None:ints): each of num_channels channels with
 * filters of its own, then a convolution across channels, of one tap as a rule */
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
 * unshared=False:bool): conv3d_grad_wrt_inputs by its other name: filters as the forward convolution has
 * them */
MC_API mc_node *mc_conv3d_transpose(mc_node *x, mc_node *filters, mc_node *output_shape, const char *how, ...)
    MC_FORMAT(4, 5);
/* separable_conv3d(x, depthwise_filters, pointwise_filters, num_channels:int, border_mode=valid:border,
 * subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints, input_shape=None:ints,
 * depthwise_filter_shape=None:ints, pointwise_filter_shape=None:ints): each of num_channels channels with
 * filters of its own, then a convolution across channels, of one tap as a rule */
MC_API mc_node *mc_separable_conv3d(mc_node *x, mc_node *depthwise_filters, mc_node *pointwise_filters, const
    char *how, ...) MC_FORMAT(4, 5);
/* conv_transpose(x, w, shape=None, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int,
 * flip=True:bool, layout=None:text, output_padding=0:ints): what conv does to the sizes of an image,
 * undone: the result has (o - 1)*s + (k - 1)*d + 1 - p places along an axis and output_padding more, or
 * the shape given; w as conv has it: x's channels are w's filters */
MC_API mc_node *mc_conv_transpose(mc_node *x, mc_node *w, mc_node *shape, const char *how, ...) MC_FORMAT(4,
    5);
/* causal_conv1d(x, w, filter_shape=None:ints, input_shape=None:ints, subsample=1:ints,
 * filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool): conv1d whose
 * result at t follows from x up to t: dilation*(k - 1) zeros in front */
MC_API mc_node *mc_causal_conv1d(mc_node *x, mc_node *w, const char *how, ...) MC_FORMAT(3, 4);
/* corrmm(x, w, border_mode=valid:border, subsample=1:ints, filter_dilation=1:ints, num_groups=1:int,
 * unshared=False:bool, pad=None:border): correlation, by the names of Theano's CorrMM: conv with
 * flip=False; pad: border_mode by its first name */
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
 * conv by the names of Theano's cuDNN module; conv_mode: conv turns the filter round, cross does not;
 * algo: the solver that is asked for; direction_hint is read, and the planner decides */
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
 * (channels, rows, columns, filters), ceil((i + 2*pad - k)/stride) + 1 places along an axis; strict: its
 * kernels' limits are errors */
MC_API mc_node *mc_filter_acts(mc_node *images, mc_node *filters, const char *how, ...) MC_FORMAT(3, 4);
/* image_acts(hid_acts, filters, output_shape=None, pad=0:int, partial_sum=None:int, stride=1:int,
 * strict=False:bool): cuda-convnet's ImageActs: the gradient of filter_acts with respect to its images,
 * whose rows and columns are output_shape */
MC_API mc_node *mc_image_acts(mc_node *hid_acts, mc_node *filters, mc_node *output_shape, const char *how,
    ...) MC_FORMAT(4, 5);
/* weight_acts(images, hid_grads, output_shape=None, pad=0:int, partial_sum=None:int, stride=1:int,
 * strict=False:bool): cuda-convnet's WeightActs: the gradient of filter_acts with respect to its filters,
 * whose rows and columns are output_shape; partial_sum only orders a sum, and its scratch is not handed
 * out */
MC_API mc_node *mc_weight_acts(mc_node *images, mc_node *hid_grads, mc_node *output_shape, const char *how,
    ...) MC_FORMAT(4, 5);
/* nervana_conv(input_, filters, padding=None:border, strides=1:ints, dimshuffle=True:bool,
 * relu=False:bool): correlation along 1 to 3 axes; padding: valid, full, half or same (both k // 2),
 * numbers; dimshuffle=False: axes in the order channels, places, batch, and filters last; relu: of the
 * result */
MC_API mc_node *mc_nervana_conv(mc_node *input_, mc_node *filters, const char *how, ...) MC_FORMAT(3, 4);
/* nervana_dot(x, y, relu=False:bool): the product of two matrices; relu: of the result */
MC_API mc_node *mc_nervana_dot(mc_node *x, mc_node *y, const char *how, ...) MC_FORMAT(3, 4);

/* ------------------------------------------------------------------------------ Images ---- */

/* images2neibs(x, neib_shape:ints, neib_step=None:ints, mode=valid:text): patches of the last two axes of
 * x, each a row of the result; neib_step: from one to the next, neib_shape if it is None; mode: valid,
 * ignore_borders (what is left over is), half, full (zeros around), wrap_centered (round the edge) */
MC_API mc_node *mc_images2neibs(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* neibs2images(neibs, neib_shape, original_shape, mode=valid:text): images2neibs undone, of patches side
 * by side; mode: valid, or ignore_borders (zeros where no patch was) */
MC_API mc_node *mc_neibs2images(mc_node *neibs, mc_node *neib_shape, mc_node *original_shape, const char *how,
    ...) MC_FORMAT(4, 5);
/* bilinear_kernel_1D(ratio:int, normalize=True:bool): 1, 2, ... ratio, ... 2, 1, divided by ratio if
 * normalize */
MC_API mc_node *mc_bilinear_kernel_1D(mc_graph *g, const char *how, ...) MC_FORMAT(2, 3);
/* bilinear_kernel_2D(ratio:int, normalize=True:bool): bilinear_kernel_1D along both axes */
MC_API mc_node *mc_bilinear_kernel_2D(mc_graph *g, const char *how, ...) MC_FORMAT(2, 3);
/* bilinear_upsampling(x, ratio=None:int, frac_ratio=None:border, batch_size=None:int,
 * num_input_channels=None:int, use_1D_kernel=True:bool): the last two axes of x, ratio times longer,
 * linear in between; frac_ratio: [a, b] for a/b, or such pairs for rows and columns */
MC_API mc_node *mc_bilinear_upsampling(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

/* ----------------------------------------------------------------------------- Pooling ---- */

/* pool(x, ws, stride=None, pad=None, mode=max:text, ignore_border=True:bool, start=None:ints,
 * ties=first:text, axis=None:ints, strict=False:bool, layout=None:text): windows of x as one number each:
 * mode max, sum, average_inc_pad or average_exc_pad, over the last axes, or those of axis, or the digits
 * of layout ('c01b'); stride is ws unless given; ignore_border=False keeps windows that the border cuts;
 * start gives cuda-convnet's windows; of equal maxima the first gets the gradient, with ties='all' each
 * does */
MC_API mc_node *mc_pool(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* pool_grad(x, g, ws, stride=None, pad=None, mode=max:text, ignore_border=True:bool, start=None:ints,
 * ties=first:text, axis=None:ints, strict=False:bool, layout=None:text): the gradient of pool(x, ...) by
 * x, given that by its result */
MC_API mc_node *mc_pool_grad(mc_node *x, mc_node *g, mc_node *ws, mc_node *stride, mc_node *pad, const char
    *how, ...) MC_FORMAT(6, 7);
/* pool_pick(x, v, ws, stride=None, pad=None, mode=max:text, ignore_border=True:bool, start=None:ints,
 * ties=first:text, axis=None:ints, strict=False:bool, layout=None:text): v where the windows of x have
 * their maxima: how pool(x, ...) changes when x changes by v */
MC_API mc_node *mc_pool_pick(mc_node *x, mc_node *v, mc_node *ws, mc_node *stride, mc_node *pad, const char
    *how, ...) MC_FORMAT(6, 7);

/* ---------------------------------------------------------- Pooling by its other names ---- */

/* pool_2d(x, ws, stride=None, pad=None, ignore_border=False:bool, mode=max:text, ties=first:text): pool
 * over the last two axes; windows that the border cuts are kept unless ignore_border */
MC_API mc_node *mc_pool_2d(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* pool_3d(x, ws, stride=None, pad=None, ignore_border=False:bool, mode=max:text, ties=first:text): pool
 * over the last three axes; windows that the border cuts are kept unless ignore_border */
MC_API mc_node *mc_pool_3d(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* max_pool_2d(x, ds, st=None, padding=None, ignore_border=False:bool, ties=first:text): pool_2d by its old
 * names */
MC_API mc_node *mc_max_pool_2d(mc_node *x, mc_node *ds, mc_node *st, mc_node *padding, const char *how, ...)
    MC_FORMAT(5, 6);
/* max_pool_2d_same_size(x, ws, ties=all:text): x where it is the maximum of its window, else 0: of equal
 * maxima all stay, with ties='first' the first */
MC_API mc_node *mc_max_pool_2d_same_size(mc_node *x, mc_node *ws, const char *how, ...) MC_FORMAT(3, 4);
/* dnn_pool(x, ws, stride=None, pad=None, mode=max:text, ties=first:text): pool over the two or three axes
 * behind batch and channels, as cuDNN does: stride is 1 unless given, cut windows are left out */
MC_API mc_node *mc_dnn_pool(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
    MC_FORMAT(5, 6);
/* max_pool(x, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text, strict=False:bool):
 * cuda-convnet's pooling of c01b images: windows of ds begin at start and hang over the end; stride is ds
 * unless given, outputs is not used, strict brings its limits back */
MC_API mc_node *mc_max_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* max_pool_grad(x, g, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool): the gradient of max_pool(x) by x, given that by its result */
MC_API mc_node *mc_max_pool_grad(mc_node *x, mc_node *g, const char *how, ...) MC_FORMAT(3, 4);
/* max_pool_rop(x, v, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool): how max_pool(x) changes when x changes by v */
MC_API mc_node *mc_max_pool_rop(mc_node *x, mc_node *v, const char *how, ...) MC_FORMAT(3, 4);
/* max_pool_c01b(x, pool_shape:ints, pool_stride=None:ints, ties=first:text): max_pool with windows and
 * strides for each axis */
MC_API mc_node *mc_max_pool_c01b(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* prob_max_pool(z, t=None, ds:int): probabilistic max pooling of c01b images z with top-down input t: of
 * each window of ds by ds at most one cell is on; the probability that one is, and that each is */
MC_API mc_node *mc_prob_max_pool(mc_node *z, mc_node *t, const char *how, ...) MC_FORMAT(3, 4);
/* weighted_max_pool(x, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool): the mean of each window's elements weighted by themselves, 0 where their sum is:
 * what stochastic_max_pool draws on average */
MC_API mc_node *mc_weighted_max_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* stochastic_max_pool(rng, x, ds:int, stride=None:int, start=0:int, outputs=0:int, ties=first:text,
 * strict=False:bool, stream=-1:int): an element of each window of x, not negative, drawn in proportion to
 * the elements; 0 where all are 0; the gradient goes to the cell that was drawn */
MC_API mc_node *mc_stochastic_max_pool(mc_node *rng, mc_node *x, const char *how, ...) MC_FORMAT(3, 4);
/* global_pool(x, mode=average_inc_pad:text): each channel of x as one number: all axes behind batch and
 * channels in one window */
MC_API mc_node *mc_global_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* spatial_pyramid_pool(x, pool_dims=None:ints, mode=max:text, implementation=fast:text): (batch, channels,
 * all windows) of levels of 4 by 4, 2 by 2 and 1 window, or those of pool_dims, whatever the size of the
 * image; implementation='kaiming': neighbours share a cell where the size is no multiple, and images may
 * have fewer cells than windows */
MC_API mc_node *mc_spatial_pyramid_pool(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* upscale(x, factor:int, mode=repeat:text, nd=2:int): the last nd axes factor times as long: elements
 * repeated, or with mode='dilate' zeros between them */
MC_API mc_node *mc_upscale(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* images with the batch in front as cuda-convnet has them */
MC_API mc_node *mc_bc01_to_c01b(mc_node *x);
/* cuda-convnet's images with the batch in front */
MC_API mc_node *mc_c01b_to_bc01(mc_node *x);

/* ----------------------------------------------------------------------- Normalisation ---- */

/* lrn(x, n=5:int, alpha=0.0001:real, beta=0.75:real, k=2:real, axis=1:int, blocked=False:bool,
 * strict=False:bool): local response normalisation: x / (k + alpha * s) ** beta, s the sum of squares of
 * the n channels around; alpha is not divided by n */
MC_API mc_node *mc_lrn(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* lrn_grad(x, g, n=5:int, alpha=0.0001:real, beta=0.75:real, k=2:real, axis=1:int, blocked=False:bool,
 * strict=False:bool): the gradient of lrn(x) by x, given that by its result */
MC_API mc_node *mc_lrn_grad(mc_node *x, mc_node *g, const char *how, ...) MC_FORMAT(3, 4);
/* cross_map_norm(x, size_f:int, add_scale:real, pow_scale:real, blocked=False:bool, strict=False:bool,
 * axis=0:int): cuda-convnet's normalisation of c01b images: x / d ** pow_scale and d = 1 + add_scale * s,
 * s the sum of squares of the size_f channels around, or of the aligned block of as many; strict brings
 * its limits back */
MC_API mc_node *mc_cross_map_norm(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* cross_map_norm_undo(x, y, d, g, size_f:int, add_scale:real, pow_scale:real, blocked=False:bool,
 * strict=False:bool, axis=0:int): the gradient of cross_map_norm by its images x, from its results y and d
 * and the gradient g by y */
MC_API mc_node *mc_cross_map_norm_undo(mc_node *x, mc_node *y, mc_node *d, mc_node *g, const char *how, ...)
    MC_FORMAT(5, 6);
/* channel_sum(x, n:int, axis=1:int, blocked=False:bool, back=False:bool): sums of the n channels around
 * each, from c - n // 2 on, or of its aligned block of n; back: of those whose window it is in */
MC_API mc_node *mc_channel_sum(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* batch_normalization_train(x, gamma, beta, running_mean=None, running_var=None,
 * axes=per-activation:border, epsilon=0.0001:real, running_average_factor=0.1:real): normalised x, mean,
 * 1/std, new running mean, new running variance; averaged over the batch ('per-activation'), all but the
 * channels ('spatial') or a list of axes; parameters have x's rank, or the axes only that stay */
MC_API mc_node *mc_batch_normalization_train(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *running_mean,
    mc_node *running_var, const char *how, ...) MC_FORMAT(6, 7);
/* batch_normalization_test(x, gamma, beta, mean, var, axes=None:border, epsilon=0.0001:real): x normalised
 * by running statistics; with axes, parameters may have the axes only that stay */
MC_API mc_node *mc_batch_normalization_test(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *mean, mc_node
    *var, const char *how, ...) MC_FORMAT(6, 7);
/* dnn_softmax(x, mode=channel:text, algo=accurate:text, layout=bc01:text): softmax over the channels of
 * each place (mode='channel') or over all of an image (mode='instance'); algo is accurate, log, or fast,
 * which overflows */
MC_API mc_node *mc_dnn_softmax(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* dnn_softmax_grad(dy, sm, mode=channel:text, algo=accurate:text, layout=bc01:text): the gradient of
 * dnn_softmax, from that by its result and the result itself */
MC_API mc_node *mc_dnn_softmax_grad(mc_node *dy, mc_node *sm, const char *how, ...) MC_FORMAT(3, 4);

/* ---------------------------------------------------------------------------- In order ---- */

/* sort(x, axis=-1:int): x in rising order along an axis, NaN last */
MC_API mc_node *mc_sort(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* argsort(x, axis=-1:int): where the elements of sort(x) stand in x; equal ones in the order of x */
MC_API mc_node *mc_argsort(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* permute_row_elements(x, p, axis=-1:int): the elements of each line of x in the order p, a permutation; a
 * vector is the permutation, or the line, of all */
MC_API mc_node *mc_permute_row_elements(mc_node *x, mc_node *p, const char *how, ...) MC_FORMAT(3, 4);

/* ------------------------------------------------------------------------------ Random ---- */

/* random_uniform(rng, shape, stream=-1:int, dtype=None:dtype): numbers in [0, 1): what all other random
 * numbers are made from */
MC_API mc_node *mc_random_uniform(mc_node *rng, mc_node *shape, const char *how, ...) MC_FORMAT(3, 4);
/* uniform(rng, shape, low=None, high=None, dtype=None:dtype, stream=-1:int): numbers in [low, high); of
 * floatX unless a dtype is given */
MC_API mc_node *mc_uniform(mc_node *rng, mc_node *shape, mc_node *low, mc_node *high, const char *how, ...)
    MC_FORMAT(5, 6);
/* normal(rng, shape, avg=None, std=None, dtype=None:dtype, stream=-1:int): normal numbers; of floatX
 * unless a dtype is given */
MC_API mc_node *mc_normal(mc_node *rng, mc_node *shape, mc_node *avg, mc_node *std, const char *how, ...)
    MC_FORMAT(5, 6);
/* bernoulli(rng, p, shape=None, dtype=None:dtype, stream=-1:int): 1 with probability p, else 0; of floatX
 * unless a dtype is given */
MC_API mc_node *mc_bernoulli(mc_node *rng, mc_node *p, mc_node *shape, const char *how, ...) MC_FORMAT(4, 5);
/* binomial(rng, p, shape=None, n=None, dtype=None:dtype, stream=-1:int): how many of n trials of
 * probability p succeed, 1 if n is not given; of floatX unless a dtype is given */
MC_API mc_node *mc_binomial(mc_node *rng, mc_node *p, mc_node *shape, mc_node *n, const char *how, ...)
    MC_FORMAT(5, 6);
/* multinomial(rng, p, dtype=None:dtype, stream=-1:int, n=1:int): for each row of probabilities how often
 * each outcome occurs in n trials; of int64 unless a dtype is given */
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
/* permutation(rng, n, stream=-1:int): 0 to n - 1 in random order */
MC_API mc_node *mc_permutation(mc_node *rng, mc_node *n, const char *how, ...) MC_FORMAT(3, 4);
/* random_integers(rng, shape, low, high, dtype=None:dtype, stream=-1:int): integers from low to high, both
 * possible; of int64 unless a dtype is given */
MC_API mc_node *mc_random_integers(mc_node *rng, mc_node *shape, mc_node *low, mc_node *high, const char *how,
    ...) MC_FORMAT(5, 6);

/* ----------------------------------------------------------------------------- Effects ---- */

MC_API mc_node *mc_consider_constant(mc_node *x);            /* x, which gradients take for a constant */
/* x, which it is a mistake to ask the gradient of */
MC_API mc_node *mc_undefined_grad(mc_node *x);
/* grad_clip(x, lo:real, hi:real): x, whose gradient is held between lo and hi */
MC_API mc_node *mc_grad_clip(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* grad_scale(x, by:real): x, whose gradient is multiplied by a number */
MC_API mc_node *mc_grad_scale(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);
/* assert_(x, *conditions, msg=None:text): x; an error while running if a condition has an element that is
 * zero */
MC_API mc_node *mc_assert_(mc_node *x, int n, mc_node *const *conditions, const char *how, ...) MC_FORMAT(4,
    5);
/* print_(x, message=None:text): x; prints a message and x each time it is computed */
MC_API mc_node *mc_print_(mc_node *x, const char *how, ...) MC_FORMAT(2, 3);

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
#define mc_conv(...) (mc_here(__FILE__, __LINE__), mc_conv(__VA_ARGS__))
#define mc_conv_inputs(...) (mc_here(__FILE__, __LINE__), mc_conv_inputs(__VA_ARGS__))
#define mc_conv_weights(...) (mc_here(__FILE__, __LINE__), mc_conv_weights(__VA_ARGS__))
#define mc_conv1d(...) (mc_here(__FILE__, __LINE__), mc_conv1d(__VA_ARGS__))
#define mc_conv2d(...) (mc_here(__FILE__, __LINE__), mc_conv2d(__VA_ARGS__))
#define mc_conv3d(...) (mc_here(__FILE__, __LINE__), mc_conv3d(__VA_ARGS__))
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
#endif

#ifdef __cplusplus
}
#endif

#endif

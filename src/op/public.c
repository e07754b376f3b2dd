/* public.c: one function an op.  Written from the table of ops (tests/t_generated.c); do not edit. */
#include "op/call.h"

mc_node *mc_add(mc_node *a, mc_node *b)
{
    return mc_call_plain("add", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_sub(mc_node *a, mc_node *b)
{
    return mc_call_plain("sub", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_mul(mc_node *a, mc_node *b)
{
    return mc_call_plain("mul", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_true_div(mc_node *a, mc_node *b)
{
    return mc_call_plain("true_div", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_int_div(mc_node *a, mc_node *b)
{
    return mc_call_plain("int_div", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_mod(mc_node *a, mc_node *b)
{
    return mc_call_plain("mod", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_pow(mc_node *a, mc_node *b)
{
    return mc_call_plain("pow", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_neg(mc_node *a)
{
    return mc_call_plain("neg", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_abs(mc_node *a)
{
    return mc_call_plain("abs", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_sqr(mc_node *a)
{
    return mc_call_plain("sqr", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_sqrt(mc_node *a)
{
    return mc_call_plain("sqrt", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_reciprocal(mc_node *a)
{
    return mc_call_plain("reciprocal", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_maximum(mc_node *a, mc_node *b)
{
    return mc_call_plain("maximum", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_minimum(mc_node *a, mc_node *b)
{
    return mc_call_plain("minimum", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_clip(mc_node *a, mc_node *b, mc_node *c)
{
    return mc_call_plain("clip", NULL, 3, (mc_node *[]){ a, b, c }, 0, NULL);
}

mc_node *mc_sgn(mc_node *a)
{
    return mc_call_plain("sgn", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_lt(mc_node *a, mc_node *b)
{
    return mc_call_plain("lt", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_le(mc_node *a, mc_node *b)
{
    return mc_call_plain("le", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_gt(mc_node *a, mc_node *b)
{
    return mc_call_plain("gt", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_ge(mc_node *a, mc_node *b)
{
    return mc_call_plain("ge", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_eq(mc_node *a, mc_node *b)
{
    return mc_call_plain("eq", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_neq(mc_node *a, mc_node *b)
{
    return mc_call_plain("neq", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_isnan(mc_node *a)
{
    return mc_call_plain("isnan", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_isinf(mc_node *a)
{
    return mc_call_plain("isinf", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_where(mc_node *a, mc_node *b, mc_node *c)
{
    return mc_call_plain("where", NULL, 3, (mc_node *[]){ a, b, c }, 0, NULL);
}

mc_node *mc_and_(mc_node *a, mc_node *b)
{
    return mc_call_plain("and_", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_or_(mc_node *a, mc_node *b)
{
    return mc_call_plain("or_", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_xor(mc_node *a, mc_node *b)
{
    return mc_call_plain("xor", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_invert(mc_node *a)
{
    return mc_call_plain("invert", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_exp(mc_node *a)
{
    return mc_call_plain("exp", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_exp2(mc_node *a)
{
    return mc_call_plain("exp2", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_expm1(mc_node *a)
{
    return mc_call_plain("expm1", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_log(mc_node *a)
{
    return mc_call_plain("log", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_log2(mc_node *a)
{
    return mc_call_plain("log2", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_log10(mc_node *a)
{
    return mc_call_plain("log10", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_log1p(mc_node *a)
{
    return mc_call_plain("log1p", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_floor(mc_node *a)
{
    return mc_call_plain("floor", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_ceil(mc_node *a)
{
    return mc_call_plain("ceil", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_trunc(mc_node *a)
{
    return mc_call_plain("trunc", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_round(mc_node *a)
{
    return mc_call_plain("round", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_round_half_away(mc_node *a)
{
    return mc_call_plain("round_half_away", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_iround(mc_node *a)
{
    return mc_call_plain("iround", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_sin(mc_node *a)
{
    return mc_call_plain("sin", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_cos(mc_node *a)
{
    return mc_call_plain("cos", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_tan(mc_node *a)
{
    return mc_call_plain("tan", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_arcsin(mc_node *a)
{
    return mc_call_plain("arcsin", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_arccos(mc_node *a)
{
    return mc_call_plain("arccos", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_arctan(mc_node *a)
{
    return mc_call_plain("arctan", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_arctan2(mc_node *a, mc_node *b)
{
    return mc_call_plain("arctan2", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_sinh(mc_node *a)
{
    return mc_call_plain("sinh", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_cosh(mc_node *a)
{
    return mc_call_plain("cosh", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_tanh(mc_node *a)
{
    return mc_call_plain("tanh", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_arcsinh(mc_node *a)
{
    return mc_call_plain("arcsinh", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_arccosh(mc_node *a)
{
    return mc_call_plain("arccosh", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_arctanh(mc_node *a)
{
    return mc_call_plain("arctanh", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_deg2rad(mc_node *a)
{
    return mc_call_plain("deg2rad", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_rad2deg(mc_node *a)
{
    return mc_call_plain("rad2deg", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_erf(mc_node *a)
{
    return mc_call_plain("erf", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_erfc(mc_node *a)
{
    return mc_call_plain("erfc", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_gammaln(mc_node *a)
{
    return mc_call_plain("gammaln", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_psi(mc_node *a)
{
    return mc_call_plain("psi", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_tri_gamma(mc_node *a)
{
    return mc_call_plain("tri_gamma", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_sigmoid(mc_node *a)
{
    return mc_call_plain("sigmoid", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_softplus(mc_node *a)
{
    return mc_call_plain("softplus", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_xlogx(mc_node *a)
{
    return mc_call_plain("xlogx", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_xlogy0(mc_node *a, mc_node *b)
{
    return mc_call_plain("xlogy0", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_gpu_from_host(mc_node *a)
{
    return mc_call_plain("gpu_from_host", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_host_from_gpu(mc_node *a)
{
    return mc_call_plain("host_from_gpu", NULL, 1, (mc_node *[]){ a }, 0, NULL);
}

mc_node *mc_inv(mc_node *x)
{
    return mc_call_plain("inv", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_square(mc_node *x)
{
    return mc_call_plain("square", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_switch(mc_node *c, mc_node *a, mc_node *b)
{
    return mc_call_plain("switch", NULL, 3, (mc_node *[]){ c, a, b }, 0, NULL);
}

mc_node *mc_ceil_intdiv(mc_node *a, mc_node *b)
{
    return mc_call_plain("ceil_intdiv", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_divmod(mc_node *a, mc_node *b)
{
    return mc_call_plain("divmod", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_relu(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("relu", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_elu(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("elu", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_selu(mc_node *x)
{
    return mc_call_plain("selu", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_hard_sigmoid(mc_node *x)
{
    return mc_call_plain("hard_sigmoid", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_ultra_fast_sigmoid(mc_node *x)
{
    return mc_call_plain("ultra_fast_sigmoid", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_softsign(mc_node *x)
{
    return mc_call_plain("softsign", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_isclose(mc_node *a, mc_node *b, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("isclose", NULL, 2, (mc_node *[]){ a, b }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_allclose(mc_node *a, mc_node *b, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("allclose", NULL, 2, (mc_node *[]){ a, b }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_identity(mc_node *x)
{
    return mc_call_plain("identity", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_tensor_copy(mc_node *x)
{
    return mc_call_plain("tensor_copy", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_second(mc_node *a, mc_node *b)
{
    return mc_call_plain("second", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_fill(mc_node *a, mc_node *b)
{
    return mc_call_plain("fill", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_zeros_like(mc_node *x)
{
    return mc_call_plain("zeros_like", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_ones_like(mc_node *x)
{
    return mc_call_plain("ones_like", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_zeros(mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("zeros", NULL, 1, (mc_node *[]){ shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_ones(mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("ones", NULL, 1, (mc_node *[]){ shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_mean(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("mean", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_variance(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("var", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_std(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("std", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_ptp(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("ptp", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max_and_argmax(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max_and_argmax", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_logsumexp(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("logsumexp", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_softmax(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("softmax", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_logsoftmax(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("logsoftmax", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_crossentropy_softmax_1hot(mc_node *x, mc_node *t)
{
    return mc_call_plain("crossentropy_softmax_1hot", NULL, 2, (mc_node *[]){ x, t }, 0, NULL);
}

mc_node *mc_categorical_crossentropy(mc_node *p, mc_node *t)
{
    return mc_call_plain("categorical_crossentropy", NULL, 2, (mc_node *[]){ p, t }, 0, NULL);
}

mc_node *mc_crossentropy_1hot(mc_node *p, mc_node *t)
{
    return mc_call_plain("crossentropy_1hot", NULL, 2, (mc_node *[]){ p, t }, 0, NULL);
}

mc_node *mc_binary_crossentropy(mc_node *p, mc_node *t)
{
    return mc_call_plain("binary_crossentropy", NULL, 2, (mc_node *[]){ p, t }, 0, NULL);
}

mc_node *mc_sigmoid_binary_crossentropy(mc_node *x, mc_node *t)
{
    return mc_call_plain("sigmoid_binary_crossentropy", NULL, 2, (mc_node *[]){ x, t }, 0, NULL);
}

mc_node *mc_softmax_with_bias(mc_node *x, mc_node *b)
{
    return mc_call_plain("softmax_with_bias", NULL, 2, (mc_node *[]){ x, b }, 0, NULL);
}

mc_node *mc_crossentropy_softmax_1hot_with_bias(mc_node *x, mc_node *b, mc_node *t)
{
    return mc_call_plain("crossentropy_softmax_1hot_with_bias", NULL, 3, (mc_node *[]){ x, b, t }, 0, NULL);
}

mc_node *mc_crossentropy_softmax_max_and_argmax_1hot(mc_node *x, mc_node *t)
{
    return mc_call_plain("crossentropy_softmax_max_and_argmax_1hot", NULL, 2, (mc_node *[]){ x, t }, 0, NULL);
}

mc_node *mc_crossentropy_softmax_max_and_argmax_1hot_with_bias(mc_node *x, mc_node *b, mc_node *t)
{
    return mc_call_plain("crossentropy_softmax_max_and_argmax_1hot_with_bias", NULL, 3, (mc_node *[]){ x, b, t }, 0, NULL);
}

mc_node *mc_h_softmax(mc_node *x, mc_node *W1, mc_node *b1, mc_node *W2, mc_node *b2, mc_node *n_outputs)
{
    return mc_call_plain("h_softmax", NULL, 6, (mc_node *[]){ x, W1, b1, W2, b2, n_outputs }, 0, NULL);
}

mc_node *mc_h_softmax_at(mc_node *x, mc_node *W1, mc_node *b1, mc_node *W2, mc_node *b2, mc_node *t)
{
    return mc_call_plain("h_softmax_at", NULL, 6, (mc_node *[]){ x, W1, b1, W2, b2, t }, 0, NULL);
}

mc_node *mc_confusion_matrix(mc_node *t, mc_node *p)
{
    return mc_call_plain("confusion_matrix", NULL, 2, (mc_node *[]){ t, p }, 0, NULL);
}

mc_node *mc_prepend_scalar_to_each_row(mc_node *v, mc_node *x)
{
    return mc_call_plain("prepend_scalar_to_each_row", NULL, 2, (mc_node *[]){ v, x }, 0, NULL);
}

mc_node *mc_prepend_0_to_each_row(mc_node *x)
{
    return mc_call_plain("prepend_0_to_each_row", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_prepend_1_to_each_row(mc_node *x)
{
    return mc_call_plain("prepend_1_to_each_row", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_crossentropy_categorical_1hot(mc_node *p, mc_node *t)
{
    return mc_call_plain("crossentropy_categorical_1hot", NULL, 2, (mc_node *[]){ p, t }, 0, NULL);
}

mc_node *mc_ravel(mc_node *x)
{
    return mc_call_plain("ravel", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_outer(mc_node *x, mc_node *y)
{
    return mc_call_plain("outer", NULL, 2, (mc_node *[]){ x, y }, 0, NULL);
}

mc_node *mc_inverse_permutation(mc_node *p)
{
    return mc_call_plain("inverse_permutation", NULL, 1, (mc_node *[]){ p }, 0, NULL);
}

mc_node *mc_unique(mc_node *x)
{
    return mc_call_plain("unique", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_eye(mc_node *n, mc_node *m, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("eye", NULL, 2, (mc_node *[]){ n, m }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_identity_like(mc_node *x)
{
    return mc_call_plain("identity_like", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_bartlett(mc_node *n)
{
    return mc_call_plain("bartlett", NULL, 1, (mc_node *[]){ n }, 0, NULL);
}

mc_node *mc_tri(mc_node *n, mc_node *m, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("tri", NULL, 2, (mc_node *[]){ n, m }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_tril(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("tril", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_triu(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("triu", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_to_one_hot(mc_node *t, mc_node *n, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("to_one_hot", NULL, 2, (mc_node *[]){ t, n }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_zero_grad(mc_node *x)
{
    return mc_call_plain("zero_grad", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_disconnected_grad(mc_node *x)
{
    return mc_call_plain("disconnected_grad", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_batch_normalization(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *mean, mc_node *std)
{
    return mc_call_plain("batch_normalization", NULL, 5, (mc_node *[]){ x, gamma, beta, mean, std }, 0, NULL);
}

mc_node *mc_layer_norm(mc_node *x, mc_node *gamma, mc_node *beta, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("layer_norm", NULL, 3, (mc_node *[]){ x, gamma, beta }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_cast(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("cast", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dimshuffle(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dimshuffle", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_reshape(mc_node *x, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("reshape", NULL, 2, (mc_node *[]){ x, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_shape(mc_node *x)
{
    return mc_call_plain("shape", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_size(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("size", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_specify_shape(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("specify_shape", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_transpose(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("transpose", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_swapaxes(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("swapaxes", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_expand_dims(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("expand_dims", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_shape_padleft(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("shape_padleft", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_shape_padright(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("shape_padright", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_shape_padaxis(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("shape_padaxis", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_squeeze(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("squeeze", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_flatten(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("flatten", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_count(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("count", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_addbroadcast(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("addbroadcast", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_unbroadcast(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("unbroadcast", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_patternbroadcast(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("patternbroadcast", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_sum(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("sum", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_prod(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("prod", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_min(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("min", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_argmax(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("argmax", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_argmin(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("argmin", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_any(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("any", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_all(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("all", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_norm(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("norm", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_cumsum(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("cumsum", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_cumprod(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("cumprod", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_gather(mc_node *x, int n, mc_node *const *index, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("gather", NULL, 1, (mc_node *[]){ x }, n, index, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_nonzero(mc_node *x)
{
    return mc_call_plain("nonzero", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_take(mc_node *x, mc_node *index, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("take", NULL, 2, (mc_node *[]){ x, index }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_flatnonzero(mc_node *x)
{
    return mc_call_plain("flatnonzero", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_nonzero_values(mc_node *x)
{
    return mc_call_plain("nonzero_values", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_compress(mc_node *c, mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("compress", NULL, 2, (mc_node *[]){ c, x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_fill_diagonal(mc_node *x, mc_node *v)
{
    return mc_call_plain("fill_diagonal", NULL, 2, (mc_node *[]){ x, v }, 0, NULL);
}

mc_node *mc_join(int n, mc_node *const *xs, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("join", NULL, 0, NULL, n, xs, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_stack(int n, mc_node *const *xs, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("stack", NULL, 0, NULL, n, xs, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_concatenate(int n, mc_node *const *xs, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("concatenate", NULL, 0, NULL, n, xs, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_vertical_stack(int n, mc_node *const *xs)
{
    return mc_call_plain("vertical_stack", NULL, 0, NULL, n, xs);
}

mc_node *mc_horizontal_stack(int n, mc_node *const *xs)
{
    return mc_call_plain("horizontal_stack", NULL, 0, NULL, n, xs);
}

mc_node *mc_split(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("split", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_roll(mc_node *x, mc_node *shift, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("roll", NULL, 2, (mc_node *[]){ x, shift }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_tile(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("tile", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_repeat(mc_node *x, mc_node *n, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("repeat", NULL, 2, (mc_node *[]){ x, n }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_full(mc_node *x, mc_node *shape)
{
    return mc_call_plain("alloc", NULL, 2, (mc_node *[]){ x, shape }, 0, NULL);
}

mc_node *mc_arange(mc_node *start, mc_node *stop, mc_node *step, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("arange", NULL, 3, (mc_node *[]){ start, stop, step }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_meshgrid(int n, mc_node *const *xs, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("meshgrid", NULL, 0, NULL, n, xs, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_mgrid(int n, mc_node *const *xs)
{
    return mc_call_plain("mgrid", NULL, 0, NULL, n, xs);
}

mc_node *mc_ogrid(int n, mc_node *const *xs)
{
    return mc_call_plain("ogrid", NULL, 0, NULL, n, xs);
}

mc_node *mc_dot(mc_node *a, mc_node *b)
{
    return mc_call_plain("dot", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_batched_dot(mc_node *a, mc_node *b)
{
    return mc_call_plain("batched_dot", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_matmul(mc_node *a, mc_node *b)
{
    return mc_call_plain("matmul", NULL, 2, (mc_node *[]){ a, b }, 0, NULL);
}

mc_node *mc_tensordot(mc_node *a, mc_node *b, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("tensordot", NULL, 2, (mc_node *[]){ a, b }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv(mc_node *x, mc_node *w, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv", NULL, 2, (mc_node *[]){ x, w }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv_inputs(mc_node *w, mc_node *y, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv_inputs", NULL, 3, (mc_node *[]){ w, y, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv_weights(mc_node *x, mc_node *y, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv_weights", NULL, 3, (mc_node *[]){ x, y, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv1d(mc_node *x, mc_node *w, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv1d", NULL, 2, (mc_node *[]){ x, w }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv2d(mc_node *x, mc_node *w, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv2d", NULL, 2, (mc_node *[]){ x, w }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv3d(mc_node *x, mc_node *w, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv3d", NULL, 2, (mc_node *[]){ x, w }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv2d_grad_wrt_inputs(mc_node *output_grad, mc_node *filters, mc_node *input_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv2d_grad_wrt_inputs", NULL, 3, (mc_node *[]){ output_grad, filters, input_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv2d_grad_wrt_weights(mc_node *input_, mc_node *output_grad, mc_node *filter_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv2d_grad_wrt_weights", NULL, 3, (mc_node *[]){ input_, output_grad, filter_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv2d_transpose(mc_node *x, mc_node *filters, mc_node *output_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv2d_transpose", NULL, 3, (mc_node *[]){ x, filters, output_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_separable_conv2d(mc_node *x, mc_node *depthwise_filters, mc_node *pointwise_filters, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("separable_conv2d", NULL, 3, (mc_node *[]){ x, depthwise_filters, pointwise_filters }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv3d_grad_wrt_inputs(mc_node *output_grad, mc_node *filters, mc_node *input_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv3d_grad_wrt_inputs", NULL, 3, (mc_node *[]){ output_grad, filters, input_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv3d_grad_wrt_weights(mc_node *input_, mc_node *output_grad, mc_node *filter_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv3d_grad_wrt_weights", NULL, 3, (mc_node *[]){ input_, output_grad, filter_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv3d_transpose(mc_node *x, mc_node *filters, mc_node *output_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv3d_transpose", NULL, 3, (mc_node *[]){ x, filters, output_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_separable_conv3d(mc_node *x, mc_node *depthwise_filters, mc_node *pointwise_filters, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("separable_conv3d", NULL, 3, (mc_node *[]){ x, depthwise_filters, pointwise_filters }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_conv_transpose(mc_node *x, mc_node *w, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("conv_transpose", NULL, 3, (mc_node *[]){ x, w, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_causal_conv1d(mc_node *x, mc_node *w, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("causal_conv1d", NULL, 2, (mc_node *[]){ x, w }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_corrmm(mc_node *x, mc_node *w, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("corrmm", NULL, 2, (mc_node *[]){ x, w }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_corrmm_grad_weights(mc_node *x, mc_node *topgrad, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("corrmm_grad_weights", NULL, 3, (mc_node *[]){ x, topgrad, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_corrmm_grad_inputs(mc_node *w, mc_node *topgrad, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("corrmm_grad_inputs", NULL, 3, (mc_node *[]){ w, topgrad, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_conv(mc_node *img, mc_node *kerns, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_conv", NULL, 2, (mc_node *[]){ img, kerns }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_gradinput(mc_node *kerns, mc_node *topgrad, mc_node *img_shp, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_gradinput", NULL, 3, (mc_node *[]){ kerns, topgrad, img_shp }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_gradweight(mc_node *img, mc_node *topgrad, mc_node *kerns_shp, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_gradweight", NULL, 3, (mc_node *[]){ img, topgrad, kerns_shp }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_conv3d(mc_node *img, mc_node *kerns, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_conv3d", NULL, 2, (mc_node *[]){ img, kerns }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_gradinput3d(mc_node *kerns, mc_node *topgrad, mc_node *img_shp, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_gradinput3d", NULL, 3, (mc_node *[]){ kerns, topgrad, img_shp }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_gradweight3d(mc_node *img, mc_node *topgrad, mc_node *kerns_shp, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_gradweight3d", NULL, 3, (mc_node *[]){ img, topgrad, kerns_shp }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_filter_acts(mc_node *images, mc_node *filters, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("filter_acts", NULL, 2, (mc_node *[]){ images, filters }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_image_acts(mc_node *hid_acts, mc_node *filters, mc_node *output_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("image_acts", NULL, 3, (mc_node *[]){ hid_acts, filters, output_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_weight_acts(mc_node *images, mc_node *hid_grads, mc_node *output_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("weight_acts", NULL, 3, (mc_node *[]){ images, hid_grads, output_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_nervana_conv(mc_node *input_, mc_node *filters, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("nervana_conv", NULL, 2, (mc_node *[]){ input_, filters }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_nervana_dot(mc_node *x, mc_node *y, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("nervana_dot", NULL, 2, (mc_node *[]){ x, y }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_images2neibs(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("images2neibs", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_neibs2images(mc_node *neibs, mc_node *neib_shape, mc_node *original_shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("neibs2images", NULL, 3, (mc_node *[]){ neibs, neib_shape, original_shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_bilinear_kernel_1D(mc_graph *g, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("bilinear_kernel_1D", g, 0, NULL, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_bilinear_kernel_2D(mc_graph *g, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("bilinear_kernel_2D", g, 0, NULL, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_bilinear_upsampling(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("bilinear_upsampling", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_pool(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("pool", NULL, 4, (mc_node *[]){ x, ws, stride, pad }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_pool_grad(mc_node *x, mc_node *g, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("pool_grad", NULL, 5, (mc_node *[]){ x, g, ws, stride, pad }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_pool_pick(mc_node *x, mc_node *v, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("pool_pick", NULL, 5, (mc_node *[]){ x, v, ws, stride, pad }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_pool_2d(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("pool_2d", NULL, 4, (mc_node *[]){ x, ws, stride, pad }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_pool_3d(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("pool_3d", NULL, 4, (mc_node *[]){ x, ws, stride, pad }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max_pool_2d(mc_node *x, mc_node *ds, mc_node *st, mc_node *padding, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max_pool_2d", NULL, 4, (mc_node *[]){ x, ds, st, padding }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max_pool_2d_same_size(mc_node *x, mc_node *ws, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max_pool_2d_same_size", NULL, 2, (mc_node *[]){ x, ws }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_pool(mc_node *x, mc_node *ws, mc_node *stride, mc_node *pad, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_pool", NULL, 4, (mc_node *[]){ x, ws, stride, pad }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max_pool(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max_pool", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max_pool_grad(mc_node *x, mc_node *g, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max_pool_grad", NULL, 2, (mc_node *[]){ x, g }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max_pool_rop(mc_node *x, mc_node *v, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max_pool_rop", NULL, 2, (mc_node *[]){ x, v }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_max_pool_c01b(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("max_pool_c01b", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_prob_max_pool(mc_node *z, mc_node *t, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("prob_max_pool", NULL, 2, (mc_node *[]){ z, t }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_weighted_max_pool(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("weighted_max_pool", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_stochastic_max_pool(mc_node *rng, mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("stochastic_max_pool", NULL, 2, (mc_node *[]){ rng, x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_global_pool(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("global_pool", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_spatial_pyramid_pool(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("spatial_pyramid_pool", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_upscale(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("upscale", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_bc01_to_c01b(mc_node *x)
{
    return mc_call_plain("bc01_to_c01b", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_c01b_to_bc01(mc_node *x)
{
    return mc_call_plain("c01b_to_bc01", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_lrn(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("lrn", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_lrn_grad(mc_node *x, mc_node *g, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("lrn_grad", NULL, 2, (mc_node *[]){ x, g }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_cross_map_norm(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("cross_map_norm", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_cross_map_norm_undo(mc_node *x, mc_node *y, mc_node *d, mc_node *g, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("cross_map_norm_undo", NULL, 4, (mc_node *[]){ x, y, d, g }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_channel_sum(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("channel_sum", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_batch_normalization_train(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *running_mean, mc_node *running_var, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("batch_normalization_train", NULL, 5, (mc_node *[]){ x, gamma, beta, running_mean, running_var }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_batch_normalization_test(mc_node *x, mc_node *gamma, mc_node *beta, mc_node *mean, mc_node *var, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("batch_normalization_test", NULL, 5, (mc_node *[]){ x, gamma, beta, mean, var }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_softmax(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_softmax", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_dnn_softmax_grad(mc_node *dy, mc_node *sm, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("dnn_softmax_grad", NULL, 2, (mc_node *[]){ dy, sm }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_sort(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("sort", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_argsort(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("argsort", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_permute_row_elements(mc_node *x, mc_node *p, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("permute_row_elements", NULL, 2, (mc_node *[]){ x, p }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_random_uniform(mc_node *rng, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("random_uniform", NULL, 2, (mc_node *[]){ rng, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_uniform(mc_node *rng, mc_node *shape, mc_node *low, mc_node *high, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("uniform", NULL, 4, (mc_node *[]){ rng, shape, low, high }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_normal(mc_node *rng, mc_node *shape, mc_node *avg, mc_node *std, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("normal", NULL, 4, (mc_node *[]){ rng, shape, avg, std }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_bernoulli(mc_node *rng, mc_node *p, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("bernoulli", NULL, 3, (mc_node *[]){ rng, p, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_binomial(mc_node *rng, mc_node *p, mc_node *shape, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("binomial", NULL, 3, (mc_node *[]){ rng, p, shape }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_multinomial(mc_node *rng, mc_node *p, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("multinomial", NULL, 2, (mc_node *[]){ rng, p }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_permutation(mc_node *rng, mc_node *n, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("permutation", NULL, 2, (mc_node *[]){ rng, n }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_random_integers(mc_node *rng, mc_node *shape, mc_node *low, mc_node *high, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("random_integers", NULL, 4, (mc_node *[]){ rng, shape, low, high }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_consider_constant(mc_node *x)
{
    return mc_call_plain("consider_constant", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_undefined_grad(mc_node *x)
{
    return mc_call_plain("undefined_grad", NULL, 1, (mc_node *[]){ x }, 0, NULL);
}

mc_node *mc_grad_clip(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("grad_clip", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_grad_scale(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("grad_scale", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_assert_(mc_node *x, int n, mc_node *const *conditions, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("assert_", NULL, 1, (mc_node *[]){ x }, n, conditions, how, ap_);
    va_end(ap_);
    return made_;
}

mc_node *mc_print_(mc_node *x, const char *how, ...)
{
    va_list ap_;
    va_start(ap_, how);
    mc_node *made_ = mc_call_how("print_", NULL, 1, (mc_node *[]){ x }, 0, NULL, how, ap_);
    va_end(ap_);
    return made_;
}

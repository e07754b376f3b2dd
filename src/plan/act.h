/* act.h: the activations that solvers may apply to a result, for C and for kernels' texts. */
#ifndef MC_PLAN_ACT_H
#define MC_PLAN_ACT_H

/* max(v, 0), which keeps NaN; gelu by tanh; v if positive, else exp(v) - 1; gelu by erf; v sigmoid(v). */
enum mc_act { ACT_NONE, ACT_RELU, ACT_GELU, ACT_TANH, ACT_SIGMOID, ACT_ELU, ACT_GELU_ERF, ACT_SWISH };

#endif

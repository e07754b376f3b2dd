/* epilogue.h: an epilogue in the form that solvers can compute:
 *
 *   result = cast(activation(product + term + ...))
 *
 * "product" is the result of the solver's op. The form is found once, on the nodes, for all devices. Which
 * term is a bias and which is a residual depends on sizes and strides (src/exec/heavy/epilogue.c). */
#ifndef MC_EPILOGUE_H
#define MC_EPILOGUE_H

#include "plan/plan.h"

enum { EPILOGUE_TERMS = 2 };
struct mc_epilogue {
    bool known;                 /* the step's kernel computes this and nothing else */
    enum mc_act act;
    int term[EPILOGUE_TERMS], nterm; /* value ids */
    int result;                 /* value id */
    mc_dtype cast;              /* dtype of the result; equal to the product's if nothing is cast */
};

#endif

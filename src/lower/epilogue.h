/* epilogue.h: what a program computes of the result of heavy work, element by element, where it has the form
 * that solvers know:
 *
 *   result = cast(activation(product + term + ...))
 *
 * "product" is what the heavy op makes.  The form is found once, on the nodes, for all devices.  Which term
 * is a bias and which a residual depends on sizes and strides (src/exec/heavy/epilogue.c). */
#ifndef MC_EPILOGUE_H
#define MC_EPILOGUE_H

#include "plan/plan.h"

enum { EPILOGUE_TERMS = 2 };
struct mc_epilogue {
    bool known;                 /* the step's kernel computes this and nothing else */
    enum mc_act act;
    int term[EPILOGUE_TERMS], nterm; /* value ids */
    int result;                 /* value id */
    mc_dtype cast;              /* of the result; that of the product: nothing is cast */
};

#endif

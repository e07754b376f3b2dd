/* math.h: the functions that generated kernels call, as C text.
 *
 * Invariant: a function is added after those it calls, so names may be added in any order through
 * mc_math_add.  In the kernel's text M(name) is mcf_name for float and mcd_name for double. */
#ifndef MC_MATH_H
#define MC_MATH_H

#include "base/base.h"

#define MC_MATH_WORDS 3 /* of 64 rows each */

struct mc_math_row {
    const char *name;  /* in C: "mcf_exp" */
    const char *needs; /* C names of the rows its text calls */
    const char *text;
    mc_dtype dtype;    /* MC_FLOAT32 or MC_FLOAT64 */
    bool called;       /* its text has loops, and is not inlined: dialects say what CALLED is */
    int arity;         /* 0: a part of other functions, not for kernels */
    double ulp;        /* the largest error the tests allow, in units in the last place */
    /* ulp holds for |x| below this.  Beyond it the result is NaN, and the kernel reports that (kernel.h:
     * bounded). 0: everywhere. */
    double range;
};

extern const struct mc_math_row mc_math_rows[];
extern const size_t mc_nmath;

/* The text of a function ("exp"); NULL: libm's is used.  Any dtype but float64 means float32. */
const char *mc_math_text(const char *name, mc_dtype d);

/* The range of a function that an op's expression calls, where M(name) is one: from there on it is NaN.
 * 0: none has one. */
double mc_math_range(const char *code, mc_dtype d);

/* Appends the definition of a function and of those it calls, each once. `have` has MC_MATH_WORDS words, zero
 * at first, and notes what was printed.  A name without a row becomes the compiler's builtin: rint, fabs,
 * sqrt and the like become instructions, the rest calls of libm. */
void mc_math_add(struct mc_str *out, uint64_t *have, const char *name, mc_dtype d);

#endif

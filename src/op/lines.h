/* lines.h: walks the lines of arrays along one axis: all axes but that one.
 *
 * Invariant: the arrays agree in the sizes of the other axes. */
#ifndef MC_LINES_H
#define MC_LINES_H

#include "op/op.h"

struct mc_lines {
    struct mc_walk walk;                         /* walk.p[k]: the first element of array k's line */
    int64_t dims[MC_MAX_RANK], strides[3][MC_MAX_RANK];
    int64_t count;                               /* elements of a line of array 0 */
    int64_t step[3];                             /* bytes from one to the next, by array */
};

enum { MC_SUM_BLOCK = 256 };  /* running sums of floats are added in blocks of so many, each from zero */

/* n arrays, at most 3. False: there is no line. Then mc_walk_next(&l->walk) goes on to the next. */
bool mc_lines_begin(struct mc_lines *l, int axis, int n, const mc_array *const *a);

#endif

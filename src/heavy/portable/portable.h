/* portable.h: sums of products in an order that is part of their definition.  The solvers named "portable"
 * run them, and exported files contain their text (vectors.h, core.h), so both give the same bits.
 *
 *   columns   y (f, p): a sum over c and taps of w times x, p contiguous: forward convolutions, products
 *   box       the same sums for few f, at a box of positions: depthwise convolutions
 *   dots      y (f, q): a sum over positions, contiguous in both operands: gradients of weights, products
 *   outer     y (c and taps, f): a sum over positions, f contiguous: gradients of weights with many of them
 *   col2im    x: the sums of what taps add to it, of a product of all taps: gradients of inputs
 *   copy      a box of elements between any strides: padding, layouts, phases
 *
 * A program is a list of these with all numbers.  It runs once for each image and group. */
#ifndef MC_PORTABLE_H
#define MC_PORTABLE_H

#include "plan/plan.h"
#include "value/value.h"

/* The functions of one instruction set.  [0] is float32, [1] is float64.  core.h explains the arguments. */
struct mc_portable_level {
    void (*copy[2])(void *dst, const void *src, const int64_t *g);
    void (*add[2])(void *dst, const void *src, const int64_t *g);
    void (*columns[2])(const int64_t *g, const int64_t *offsets, const void *w, const void *x, void *y,
                       void *panel);
    void (*box[2])(const int64_t *g, const int64_t *offsets, const void *w, const void *x, void *y);
    void (*outer[2])(const int64_t *g, const int64_t *offsets, const void *x, const void *v, void *y,
                     int add);
    void (*col2im[2])(const int64_t *g, const int64_t *offsets, void *x, const void *v);
    void (*dots[2])(const int64_t *g, const int64_t *offsets, const void *a, const void *b, void *y, int add,
                    void *panel);
};
extern const struct mc_portable_level *const mc_portable_avx512, *const mc_portable_avx2,
    *const mc_portable_generic;
/* the widest that runs */
const struct mc_portable_level *mc_portable_level(void);

/* ---- programs ---- */
/* Memory of a program: the operands by number, and the workspace. */
enum { PORTABLE_WORKSPACE = 3, PORTABLE_NMEMORY };
enum mc_portable_kind {
    PORTABLE_COPY,
    PORTABLE_COLUMNS,
    PORTABLE_BOX,
    PORTABLE_DOTS,
    PORTABLE_OUTER,  /* begins with zeros at each image that begins a chain, and adds at others */
    PORTABLE_TOTAL,  /* at the end of a chain: a copy, then additions to it */
    PORTABLE_COL2IM
};
/* One array: memory, first element, elements by which an image, a group and a block move it. */
struct mc_portable_at {
    int memory;
    int64_t first, image, group, block;
};
struct mc_portable_call {
    enum mc_portable_kind kind;
    int64_t g[21]; /* as in core.h */
    int noffset;
    int64_t *offset;
    /* y, x, w of COLUMNS and BOX; y, a, b of DOTS; y, x, v of OUTER; to and from of COPY, TOTAL, COL2IM */
    struct mc_portable_at to, from, with;
    bool blocked; /* it runs for each block; those before it run once */
};
struct mc_portable_program {
    mc_dtype dtype;
    /* step: images of one run; DOTS sums over them, and adds the sum of a run to those before it */
    int64_t groups, images, step;
    int64_t blocks; /* parts of the result of an image and group, each complete after the calls for it */
    int64_t chain; /* images of one sum of OUTER; step is 1 then */
    /* elements of the workspace; those at its start that are zero when the program begins */
    int64_t workspace, zeros;
    int64_t panel; /* elements after those, for copies that are read many times */
    VEC(struct mc_portable_call) call;
};
/* A call at the end of the program, without offsets; NULL: out of memory. */
struct mc_portable_call *mc_portable_add(struct mc_portable_program *p, enum mc_portable_kind kind,
                                         int noffset);
/* Reserves the panel that the call needs, when its g is known. */
void mc_portable_panel(struct mc_portable_program *p, const struct mc_portable_call *c);
void mc_portable_free(struct mc_portable_program *p);
/* memory: by number; [PORTABLE_WORKSPACE] has p->workspace + p->panel elements */
void mc_portable_run(const struct mc_portable_program *p, void *const memory[PORTABLE_NMEMORY]);
/* How finished sums become results. */
struct mc_portable_after {
    /* printed after the calls for an image, group and block, which are numbers or names of variables; NULL:
     * nothing is */
    void (*print)(void *arg, const char *image, const char *group, const char *block);
    void *arg;
    /* COLUMNS and BOX do this themselves: they add the bias of a row, `rows` of them a group (NULL: none),
     * and relu cuts below 0 */
    const char *bias;
    int64_t rows;
    bool relu;
};
/* Is the result complete after the calls for an image, group and block, and are there several of them? */
bool mc_portable_has_parts(const struct mc_portable_program *p);
/* Can its sums be finished by a bias and relu where they are made?  Then one call of COLUMNS or BOX makes
 * them. */
bool mc_portable_can_finish(const struct mc_portable_program *p);
/* Prints it as a block of C; memory: expressions of typed pointers; after: NULL: nothing. */
void mc_portable_print(struct mc_str *out, const struct mc_portable_program *p,
                       const char *const memory[PORTABLE_NMEMORY], const struct mc_portable_after *after);
/* A plan whose solver runs a program. */
struct mc_portable_plan {
    struct mc_plan base;
    struct mc_portable_program program;
};
struct mc_portable_plan *mc_portable_plan(mc_status (*run)(const struct mc_plan *p, void *const *operand,
                                                           void *workspace, int threads));
/* The plan when its program is complete; fits: no memory was missing.  NULL: it is freed. */
struct mc_plan *mc_portable_finish(struct mc_portable_plan *p, bool fits);
/* NULL: the plan runs no program */
const struct mc_portable_program *mc_portable_program_of(const struct mc_plan *p);
/* Texts of an exported file.  First panel.h and threads.h; then vectors.h, at the level that LEVEL is, and
 * core.h, for these element types; finishes: some call has a bias or relu. */
void mc_portable_text(struct mc_str *out);
void mc_portable_level_text(struct mc_str *out, bool f32, bool f64, bool finishes);
/* Defines each name of that second text as AT_LEVEL(name), so that a file may have it for several levels;
 * undefines its macros, before it is read again. */
void mc_portable_rename(struct mc_str *out);
void mc_portable_undefine(struct mc_str *out);
bool mc_portable_is_name(const char *name); /* is it one of them? */

#endif

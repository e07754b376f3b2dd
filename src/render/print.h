/* print.h: the parts of the renderer: values, reductions, loops. */
#ifndef MC_PRINT_H
#define MC_PRINT_H

#include "render/kernel.h"

/* The state of printing one kernel. */
struct print {
    struct mc_str *out;
    const struct mc_dialect *d;
    const struct mc_kernel *k;
    const struct mc_kernel_launch *at; /* the only launch; NULL: a function for any shape */
    char number[3][24];        /* its counts */
    int stage;
    bool second;               /* vector_loop.c: printing for the second of two accumulators */
    bool keeps;                /* grid_map.c: blocks of random words are kept from one element to the next */
    bool grid;                 /* printed by grid.c: a failed check stores its step's number */
    /* grid.c: adjacent points are kept, and the lanes of a point differ in threadIdx.y */
    bool above;
    unsigned char *need;       /* by value: elements that this stage computes */
    /* by operand: stored by an earlier stage, and read here instead of recomputed; NULL: nothing is read
     * back */
    unsigned char *back;
    unsigned char *done;       /* row values printed so far */
    unsigned char *wait;       /* grid_column.c: row values that are not to be printed yet; NULL: none */
    int lanes;                 /* row_loop.c: reductions are in lane i; 0: they are scalars */
    /* vector_loop.c: a row is one vector, and the values that it has so far; NULL: rows of any size */
    unsigned char *held;
    /* vector_loop.c: values of a map that are the same all along the innermost loop, printed in front of it;
     * NULL: none are */
    unsigned char *steady;
    bool single;               /* vector_loop.c: one element at a time, in the first lane */
};
/* A reduction as text: @ is the value's number, # the element, C the accumulator, Z its flag, $ the
 * position. */
struct mc_monoid_text {
    const char *first, *clause, *lane, *merge, *direct;
    bool flags;     /* it has z@ beside c@: whether there was a NaN (max, min), or the position (argmax) */
    /* vector functions: combine two vectors lane by lane; reduce the lanes of one.  NULL: not over
     * vectors. */
    const char *combine, *lanes;
};

/* print_value.c */
const char *mc_print_op_code(const struct mc_op *op, mc_dtype d);             /* its expression in C for d */
mc_dtype mc_print_op_dtype(const struct mc_kernel *k, const struct mc_kval *v); /* the dtype it computes in */
const char *mc_print_calc(const struct print *p, mc_dtype d);               /* the type d is computed in */
void mc_print_prelude(struct mc_str *out, const struct mc_dialect *d, int n,
                      struct mc_kernel *const *kernels);
void mc_print_functions(struct mc_str *out, const struct mc_dialect *d, int n,
                        struct mc_kernel *const *kernels);
void mc_print_ref(struct print *p, int v);                                  /* v7, r7[j], 0.5f */
bool mc_print_moves(const struct mc_kernel *k, const struct mc_koperand *o);
void mc_print_index(struct print *p, int o, bool inner);
void mc_print_expression(struct print *p, int v, bool inner);
void mc_print_define(struct print *p, int v, bool inner);
/* is it a random word, whose block adjacent elements share? */
static inline bool mc_print_keeps(const struct mc_kval *v)
{
    return v->kind == K_OP && v->op->flags & OP_WORDS;
}
/* sets `beyond` if an argument was beyond the bound; not in grids */
void mc_print_beyond(struct print *p, int v);
/* print_reduce.c */
const struct mc_monoid_text *mc_print_monoid(const struct mc_kval *v);
bool mc_print_by_position(const struct mc_kval *v);
const char *mc_print_acc_type(const struct print *p, const struct mc_kval *v, bool lane);
const char *mc_print_first(const struct print *p, const struct mc_kval *v);
void mc_print_fill(struct print *p, const char *text, int v, const char *position);
void mc_print_finish(struct print *p, int v);
/* render.c */
/* row values of this stage, for nb columns */
void mc_print_column_values(struct print *p);
/* address.c */
/* the count of a loop; -1: only a call tells */
int64_t mc_print_known(const struct print *p, int loop);
const char *mc_print_count(struct print *p, int loop); /* "n1", "100" */
void mc_print_parallel(struct print *p, int loop, const char *otherwise);
/* "for (i64 i1 = 0; i1 < n1; i1++)", and `after`; of one iteration only the brace in `after` */
void mc_print_for(struct print *p, int loop, const char *after);
/* "for (i64 j = 0; j < n0; j++) { "; of one element a block in which j is 0 */
void mc_print_for_elements(struct print *p, const char *pragma);
void mc_print_address(struct print *p, size_t i); /* "p[3]", or its expression */
/* does a column kernel compute all its columns at once? */
bool mc_print_one_block(const struct print *p);
/* The addresses of the operands on the element level, or of the others.  offset: "12": + i1 * s[4] + i2 *
 * s[5]; "j": + j0 */
void mc_print_pointers(struct print *p, bool elements, const char *offset);
void mc_print_row_buffer(struct print *p, int b, const char *type);
/* the position of an element, for reductions by position */
void mc_print_position(struct print *p, struct mc_str *position);
/* print_stage.c */
/* marks the elements that p->stage computes; false: none */
bool mc_print_mark(struct print *p);
/* marks v and the values it is computed from */
void mc_print_need(struct print *p, int v);
/* number of operands that the stage reads by element */
int  mc_print_reads(const struct print *p);
/* the computation of one element */
void mc_print_body(struct print *p, bool lanes, const char *position);
/* the store of a result */
void mc_print_store(struct print *p, int o, bool inner);
/* row values of this stage, as scalars */
void mc_print_row_values(struct print *p);
void mc_print_row_stores(struct print *p);
bool mc_print_stage_reduces(const struct print *p, bool *positions);
/* calls f for each reduction of this stage */
void mc_print_each(struct print *p, void (*f)(struct print *p, int v));
/* declare the accumulator; declare a lane's sum; add that to the accumulator */
void mc_print_acc(struct print *p, int v);
void mc_print_lane(struct print *p, int v);
void mc_print_merge(struct print *p, int v);
/* row_loop.c: the innermost loop of row and fold kernels */
void mc_print_row_loop(struct print *p);
/* vector_kernel.c: values as vectors; vector_loop.c: the innermost loops */
/* the text of vector.h; macros that ops' expressions use */
extern const char mc_vector_kernel_text[], mc_vector_kernel_names[];
/* "exp": v_exp exists; differs: its bits differ from those of mcf_exp */
struct mc_vector_kernel_function { const char *name; bool differs; };
extern const struct mc_vector_kernel_function mc_vector_kernel_functions_known[];
extern const int mc_nwide;
void mc_vector_kernel_functions(struct mc_str *out, int n, struct mc_kernel *const *kernels);
void mc_vector_kernel_spread(struct print *p, int v);
void mc_vector_kernel_define(struct print *p, int v);
void mc_vector_kernel_loop(struct print *p, bool reduces);
/* the same for a row that is one vector */
void mc_vector_kernel_vector(struct print *p);
void mc_vector_kernel_columns(struct print *p,
                              void (*pointers)(struct print *p, bool elements, const char *offset));

#endif

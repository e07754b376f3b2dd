/* print.h: the parts of the renderer: values, reductions, loops. */
#ifndef MC_PRINT_H
#define MC_PRINT_H

#include "render/kernel.h"

/* What is being printed, and how far. */
struct print {
    struct mc_str *out;
    const struct mc_dialect *d;
    const struct mc_kernel *k;
    int stage;
    bool second;               /* vector_kernel.c: of two accumulators that take turns */
    bool grid;                 /* printed by grid.c: a failed check tells which step it is of */
    bool above;                /* grid.c: neighbours are kept, and lanes stand above each other */
    unsigned char *need;       /* elements of this stage */
    /* by operand: stored by an earlier stage, and read by this one rather than computed again; NULL: none
     * ever is */
    unsigned char *back;
    unsigned char *done;       /* row values printed so far */
    unsigned char *wait;       /* grid_column.c: row values that are not printed yet; NULL: none wait */
    /* vector_loop.c: a row is one vector, and these of its values are there; NULL: rows of any size */
    unsigned char *held;
};
/* A reduction as text: @ is the value's number, # the element, C the accumulator, Z its flag, $ the
 * position. */
struct mc_monoid_text {
    const char *first, *clause, *lane, *merge, *direct;
    bool flags;     /* z@ beside c@: NaN seen (max, min) or the position (argmax) */
    /* over vectors: of two vectors lane by lane, of the lanes of one; NULL: not over vectors */
    const char *combine, *lanes;
};

/* print_value.c */
const char *mc_print_op_code(const struct mc_op *op, mc_dtype d);             /* its expression in C for d */
mc_dtype mc_print_op_dtype(const struct mc_kernel *k, const struct mc_kval *v); /* in which it computes */
const char *mc_print_calc(const struct print *p, mc_dtype d);               /* the type d is computed in */
void mc_print_prelude(struct mc_str *out, const struct mc_dialect *d, int n,
                      struct mc_kernel *const *kernels);
void mc_print_functions(struct mc_str *out, const struct mc_dialect *d, int n,
                        struct mc_kernel *const *kernels);
void mc_print_ref(struct print *p, int v);                                  /* v7, r7[j], 0.5f */
bool mc_print_moves(const struct mc_kernel *k, const struct mc_koperand *o);
void mc_print_place(struct print *p, int o, bool inner);
void mc_print_expression(struct print *p, int v, bool inner);
void mc_print_define(struct print *p, int v, bool inner);
/* notes an argument beyond the bound; grids have none */
void mc_print_beyond(struct print *p, int v);
/* print_reduce.c */
const struct mc_monoid_text *mc_print_monoid(const struct mc_kval *v);
bool mc_print_by_position(const struct mc_kval *v);
const char *mc_print_acc_type(const struct print *p, const struct mc_kval *v, bool lane);
const char *mc_print_first(const struct print *p, const struct mc_kval *v);
void mc_print_fill(struct print *p, const char *text, int v, const char *position);
void mc_print_finish(struct print *p, int v);
/* render.c */
/* row values of this stage, of nb columns */
void mc_print_column_values(struct print *p);
/* print_stage.c */
/* which elements walk p->stage computes; false: nothing */
bool mc_print_mark(struct print *p);
/* v too, and what it is made of */
void mc_print_need(struct print *p, int v);
/* operands of which it then reads an element */
int  mc_print_reads(const struct print *p);
void mc_print_body(struct print *p, bool lanes, const char *position);      /* what happens for one element */
/* of what an operand is made from */
void mc_print_store(struct print *p, int o, bool inner);
/* those there from this stage on, as scalars */
void mc_print_row_values(struct print *p);
void mc_print_row_stores(struct print *p);
bool mc_print_stage_reduces(const struct print *p, bool *positions);
void mc_print_each(struct print *p, void (*f)(struct print *p, int v));     /* reduction of this stage */
/* declared: the accumulator, a block's lane; the lane added to it */
void mc_print_acc(struct print *p, int v);
void mc_print_lane(struct print *p, int v);
void mc_print_merge(struct print *p, int v);
/* vector_kernel.c: values over vectors; vector_loop.c: the innermost loops */
/* vector.h; what ops' expressions call its parts */
extern const char mc_vector_kernel_text[], mc_vector_kernel_names[];
/* "exp": there is v_exp; its bits differ from those of mcf_exp */
struct mc_vector_kernel_function { const char *name; bool differs; };
extern const struct mc_vector_kernel_function mc_vector_kernel_functions_known[];
extern const int mc_nwide;
void mc_vector_kernel_functions(struct mc_str *out, int n, struct mc_kernel *const *kernels);
void mc_vector_kernel_spread(struct print *p, int v);
void mc_vector_kernel_define(struct print *p, int v);
void mc_vector_kernel_loop(struct print *p, bool reduces);
/* the same, where a row is one vector */
void mc_vector_kernel_vector(struct print *p);
void mc_vector_kernel_columns(struct print *p, void (*pointers)(struct print *p, bool elements, const char *offset));

#endif

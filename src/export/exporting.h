/* exporting.h: the parts of an export: one function at one shape, and the text that is being written.
 *
 * An exported file is, from the top: its structure of shared variables and their initial values; the text of
 * vectors and portable sums; the kernels of all functions; then each function, a static function a step. */
#ifndef MC_EXPORTING_H
#define MC_EXPORTING_H

#include <monochord.h>
#include "exec/heavy/heavy.h"
#include "export/export.h"
#include "heavy/portable/portable.h"
#include "schedule/schedule.h"

/* A shared variable of any of the functions: a member of the structure. */
struct mc_export_shared {
    struct mc_shared *shared;
    char *name; /* a C identifier */
};
/* A file that is being written. */
struct mc_export_file {
    const char *name; /* the prefix of its public names */
    const char *file; /* "lenet", of lenet.c and lenet.h */
    bool measure;     /* solvers are timed */
    bool freestanding; /* of the C library it needs memcpy and memset alone */
    int widest;       /* bits of the widest vectors that calls may choose; 0: those of the compiler alone */
    VEC(struct mc_export_shared) shared;
    const struct mc_dialect *dialect;   /* of its kernels */
    VEC(struct mc_kernel) kernel; /* copies, for the functions that they call */
    VEC(struct mc_str) data;         /* constants: the text of array constant1, ... */
    struct mc_str code;             /* functions of steps, and what calls them */
    struct mc_str entry;            /* functions that choose one for the processor */
    bool f32, f64;                /* portable sums that it needs */
    bool finishes;                /* some of them compute epilogues */
    /* factorizations of float32 and float64 that it needs: a bit for each kind */
    unsigned factors[2];
    bool ctc;                     /* it needs the text of ctc_loss */
    size_t memory;                /* bytes of the largest arena */
};
/* One function at one shape. */
struct mc_export_one {
    struct mc_export_file *to;
    struct mc_function *f;
    struct mc_shape_plan *p;
    const char *name;      /* "train" */
    const char **parameter; /* names of inputs, then of outputs */
    struct mc_arena names; /* expressions */
    int *constant;         /* by value: the number of the array that holds it; 0: none yet */
    bool bounded;          /* some kernel calls a function with a bound: sin, cos, tan */
    size_t memory;         /* bytes of the arena, copies of updates included */
    /* Of a body: how many bodies contain it, itself included; where its memory begins in the arena. */
    int depth;
    size_t arena_at;
};

/* names.c */
const char *mc_export_file_name(const char *path); /* without its folders */
/* A C identifier made of s: other characters become '_'.  The caller frees it; NULL: no memory. */
char *mc_export_identifier(const char *s, bool upper);
bool mc_export_is_identifier(const char *s);
bool mc_export_is_letter(char c); /* of identifiers: digits and _ too */
/* a word of C or C++, or a name that the file or a header has */
bool mc_export_is_reserved(const char *s);
/* Prints text of the user inside a comment, which it cannot end. */
void mc_export_comment(struct mc_str *out, const char *text);
mc_status mc_export_add_shared(struct mc_export_file *to, struct mc_function *f);
/* the member for the i-th shared variable of the function */
const char *mc_export_member(const struct mc_export_one *x, int i);
mc_status mc_export_name_parameters(struct mc_export_one *x); /* sets x->parameter */
/* address.c: C expressions; "" and to->code.bad if there is no memory */
const char *mc_export_format(struct mc_export_one *x, const char *fmt, ...) MC_PRINTF(2, 3);
/* the names of the arrays of pointers to inputs and results */
const char *mc_export_in(struct mc_export_one *x);
const char *mc_export_out(struct mc_export_one *x);
/* of type char *: the first element of a value */
const char *mc_export_address(struct mc_export_one *x, int value);
/* the same as a pointer to the value's dtype */
const char *mc_export_pointer(struct mc_export_one *x, int value);
const char *mc_export_scratch(struct mc_export_one *x, int step, size_t offset); /* char * */
/* prints the elements of an array, contiguous, as a list */
void mc_export_elements(struct mc_str *out, const mc_array *a);
/* prints a copy of the slot's elements at `from` to contiguous memory at `to`, both char * */
void mc_export_dense(struct mc_str *out, const struct mc_slot *slot, const char *from, const char *to);
/* steps.c */
mc_status mc_export_plan_step(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_export_step(struct mc_export_one *x, int step, bool *nothing); /* nothing: it has no code */
/* the function `of` at plan p as a body in a step of x */
struct mc_export_one mc_export_body_of(const struct mc_export_one *x, int step, struct mc_function *of,
                                       struct mc_shape_plan *p);
/* prints the text of a body as comments; its steps, each as a block */
void mc_export_body_text(struct mc_str *out, const struct mc_body *b);
mc_status mc_export_body(struct mc_export_one *x, struct mc_export_one *body);
/* loop.c, branch.c: a loop, a branch whose bodies are functions of their own */
mc_status mc_export_loop(struct mc_export_one *x, int step);
mc_status mc_export_branch(struct mc_export_one *x, int step);
/* kernel.c */
mc_status mc_export_kernels(struct mc_export_one *x); /* collects those of the function in to->kernel */
mc_status mc_export_kernel(struct mc_export_one *x, int step, const struct mc_launch *l);
/* A part of the result: along each axis, `size` elements from index * size.  axis -1: none. */
struct mc_export_part {
    int axis[3];
    int64_t size[3];
    const char *index[3]; /* expressions */
    int64_t parts;        /* of the whole */
};
/* the epilogue kernel of a solver step, on a part of the result; NULL: on all of it */
mc_status mc_export_epilogue(struct mc_export_one *x, int step, const struct mc_export_part *part);
bool mc_export_has_parts(const struct mc_export_one *x, int step); /* can it run part by part? */
/* text.c: what precedes the constants: types, kernels; and what follows them: portable sums, functions */
mc_status mc_export_head(struct mc_str *out, const struct mc_export_file *f, const char *macro);
void mc_export_functions(struct mc_str *out, const struct mc_export_file *f, const char *macro);
/* prints statements, indented, with decimal numbers */
void mc_export_code(struct mc_str *out, const char *text);
/* variables.c: the values of the shared variables, contiguous, on the host; where they are, and the function
 * that sets them: NAME_init from the C file, or NAME_load from a file of parameters */
struct mc_export_values {
    int n;
    mc_array **array;
    const char **name;   /* in a .safetensors file */
    bool in_file;        /* a file of parameters has them */
    bool tensors;        /* it is a .safetensors file */
    struct mc_str bytes; /* else: its bytes */
};
/* parameters: the path of that file; NULL: none */
mc_status mc_export_values(struct mc_export_values *v, const struct mc_export_file *to,
                           const char *parameters);
/* prints the values, if there is no such file, and the function; sets the bytes of a file without a format */
mc_status mc_export_loader(struct mc_str *out, const struct mc_export_file *to, struct mc_export_values *v);
void mc_export_values_free(struct mc_export_values *v);
/* file.c: functions: the text of their declarations */
mc_status mc_export_write(const struct mc_export_file *to, const mc_export_spec *spec, const char *functions);
void mc_export_file_free(struct mc_export_file *to);
/* freestanding.c.  MC_EUNSUPPORTED: a step that such a file cannot have; text: what was printed for it */
mc_status mc_export_check_freestanding(const struct mc_export_one *x, int step, const char *text);
void mc_export_freestanding_head(struct mc_str *out);
/* calls the file's own functions in place of compilers' from there on */
mc_status mc_export_freestanding_calls(struct mc_str *text, size_t from);
/* factor.c: a step of the host that is a factorization */
bool mc_export_is_factor(const struct mc_step *st);
mc_status mc_export_factor_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_export_factor(struct mc_export_one *x, int step);
/* loop.c: has a size the number of steps that a loop with `until` makes? */
bool mc_export_has_cut_loop(const struct mc_program *pr);
/* ctc.c: a step of the host that is a cost of ctc_loss, its gradient or its Hessian; the text of all */
bool mc_export_is_ctc(const struct mc_step *st);
mc_status mc_export_ctc_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_export_ctc(struct mc_export_one *x, int step);
void mc_export_ctc_text(struct mc_str *out);
/* heavy.c */
mc_status mc_export_heavy(struct mc_export_one *x, int step);

#endif

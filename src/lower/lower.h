/* lower.h: from a rewritten graph to a program: a flat list of steps over values.
 *
 * A value is what has memory of its own, or is a view of what has: inputs, shared variables, constants,
 * results of steps.  Everything between is inside kernels. */
#ifndef MC_LOWER_H
#define MC_LOWER_H

#include "lower/epilogue.h"
#include "render/kernel.h"

enum mc_value_kind {
    VALUE_INPUT, VALUE_SHARED, VALUE_CONST,
    VALUE_PLAN_TIME,   /* computed on the host when a plan is made: sizes and what follows from them */
    VALUE_TEMP,    /* made by a step, in the arena */
    VALUE_FUSED,  /* inside a kernel; only its size is asked for */
    VALUE_VIEW     /* of another value's memory */
};
struct mc_value {
    enum mc_value_kind kind;
    mc_node *node;
    int step;              /* that makes it; -1: a leaf */
    int view_of;           /* VALUE_VIEW */
    int last;              /* last step that reads it, through views too; a large number for outputs */
    int input;             /* VALUE_INPUT: its number */
    bool is_output;
};
enum mc_step_kind {
    STEP_KERNEL,   /* a fused kernel */
    /* matrix products, convolutions...: by the planner's choice, maybe with a kernel as epilogue */
    STEP_HEAVY,
    STEP_VIEW,     /* no work: sizes and strides */
    STEP_PLAN_TIME,    /* on the host, when the plan is made */
    STEP_TYPE,     /* no work: only the size of the result is asked for */
    STEP_HOST      /* the reference of one op */
};
struct mc_step {
    enum mc_step_kind kind;
    mc_node **node;        /* what it computes, in order; one but for kernels */
    int nnode;
    struct mc_kernel *kernel;
    int *operand;          /* the kernel's: value ids, or -1 - k for index operands over node[k]'s axes */
    int *src, nsrc;        /* value ids read */
    int *dst, ndst;        /* value ids made */
    int product;           /* STEP_HEAVY with an epilogue: which of the kernel's operands it makes; -1 */
    mc_node *heavy;        /* STEP_HEAVY */
    struct mc_epilogue epilogue; /* what the kernel of a STEP_HEAVY computes, where a solver may as well */
    int before;            /* STEP_HEAVY: the step before, of pooled_steps.c; -1: none */
    const char *reason;    /* why not faster, or "" */
};
struct mc_program {
    mc_graph *graph;       /* its own */
    VEC(struct mc_value) value;
    VEC(struct mc_step) step;
    int *value_of;         /* by node id; -1 */
    int ninput, noutput, nupdate;
    mc_node **input;
    int *output;           /* value ids */
    struct mc_shared **shared; /* of updates */
    int *update;           /* value ids */
    bool dynamic;          /* some sizes are known only while running */
    bool *key_input;       /* inputs whose contents decide sizes */
    /* the last step that may end a call with an error: it checks indices, or runs on the host; -1 */
    int last_check;
    struct mc_arena arena;
    int nkernel;
};

/* expand.c: formulas become their ops, reductions keep their axes, dropped axes wander to the end */
mc_status mc_lower_expand(mc_graph *g, int n, mc_node **out, bool draws);
/* One sweep in id order: each node but leaves becomes what `one` makes of it over the new inputs. */
mc_status mc_lower_sweep(mc_graph *g, int n, mc_node **out,
                         mc_node *(*one)(mc_node *n, mc_node **in, const void *arg), const void *arg);
/* draw.c: of random_uniform, over in[] */
mc_node *mc_lower_draw(mc_node *n, mc_node **in);
/* sizes.c: axes that have the same size whatever it is */
struct mc_sizes { size_t *parent; int64_t *known; };
mc_status mc_sizes_find(struct mc_sizes *s, const mc_graph *g, mc_node *const *list, size_t count);
bool mc_sizes_equal(const struct mc_sizes *s, const mc_node *a, const mc_node *b, int axis);
void mc_sizes_free(struct mc_sizes *s);
/* group.c: which nodes go into one kernel: group[id], -1 for leaves; singletons for what is no kernel */
struct mc_groups {
    int *of;
    int n;
    struct mc_group_axes {
        unsigned varies, reduced;
    } * axes;
    mc_node **list;
    size_t count;
};
bool mc_is_fusible(const mc_node *n);
/* column_sums: column sums are computed by row kernels; draws: random numbers are computed by kernels */
enum mc_fusing { FUSE_NOTHING, FUSE_COLUMN_SUMS, FUSE_DRAWS };
mc_status mc_group(mc_graph *g, int n, mc_node *const *out, enum mc_fusing fuse, struct mc_groups *groups);
void mc_groups_free(struct mc_groups *groups);
/* program.c; rounds: float16 and bfloat16 are rounded after each operation, as the reference does */
mc_status mc_program_make(struct mc_program *p, mc_graph *g, int nin, mc_node *const *in, int nout,
                          mc_node *const *out, int nup, struct mc_shared *const *shared,
                          mc_node *const *update, enum mc_fusing fuse, bool rounds);
int mc_value_root(const struct mc_program *p, int v);   /* whose memory it is a view of */
void mc_program_free(struct mc_program *p);
/* pooled_steps.c: which steps may do the work of one in front; before lifetimes are known */
void mc_find_pooled_steps(struct mc_program *p);
/* static_size.c: elements along the axes that a walk of a step's kernel goes along; -1: only a call tells */
int64_t mc_static_length(const struct mc_step *st);
/* The axis along which n is a position 0, 1, 2...: arange, or arange with axes of size 1 around it; -1: it is
 * none. */
int mc_position_axis(const mc_node *n);
unsigned mc_varies(const struct mc_type *t);  /* axes not known to have size 1 */

#endif

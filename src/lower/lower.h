/* lower.h: turns a rewritten graph into a program: a flat list of steps over values.
 *
 * A value has memory of its own or is a view of one that has: inputs, shared variables, constants, results of
 * steps. Other nodes are computed inside kernels. */
#ifndef MC_LOWER_H
#define MC_LOWER_H

#include "lower/epilogue.h"
#include "render/kernel.h"

enum mc_value_kind {
    VALUE_INPUT, VALUE_SHARED, VALUE_CONST,
    VALUE_PLAN_TIME,   /* computed on the host at plan time: sizes and values that follow from them */
    VALUE_TEMP,    /* result of a step, in the arena */
    VALUE_FUSED,  /* inside a kernel; only its size is read */
    VALUE_VIEW     /* view of another value's memory */
};
struct mc_value {
    enum mc_value_kind kind;
    mc_node *node;
    int step;              /* the step that makes it; -1: a leaf */
    int view_of;           /* VALUE_VIEW */
    int last;              /* last step that reads it or a view of it; INT_MAX: outputs and updates */
    int input;             /* VALUE_INPUT: its number */
    bool is_output;
};
enum mc_step_kind {
    STEP_KERNEL,   /* a fused kernel */
    STEP_HEAVY,    /* a solver step, perhaps with a kernel as epilogue */
    STEP_VIEW,     /* a view: only sizes and strides are computed */
    STEP_PLAN_TIME,    /* computed on the host at plan time */
    STEP_TYPE,     /* not computed: only the size of the result is read */
    STEP_HOST      /* one op, by the reference */
};
struct mc_step {
    enum mc_step_kind kind;
    mc_node **node;        /* the nodes that it computes, in order; one, except for kernels */
    int nnode;
    struct mc_kernel *kernel;
    int *operand;          /* of the kernel: value ids, or -1 - axis for positions */
    int *src, nsrc;        /* value ids read */
    int *dst, ndst;        /* value ids made */
    /* STEP_HEAVY with an epilogue: the kernel's operand that the solver makes; or -1 */
    int product;
    mc_node *heavy;        /* STEP_HEAVY */
    struct mc_epilogue epilogue; /* the epilogue kernel's formula, if a solver can compute it instead */
    /* STEP_HEAVY: an earlier step that its solver may do too (pooled_steps.c); or -1 */
    int before;
    const char *reason;    /* why it is not faster, or "" */
};
/* does it set or add to a slice of a value? */
static inline bool mc_step_sets_part(const struct mc_step *st)
{
    return st->kind == STEP_HOST && st->node[0]->op->form == FORM_SUBTENSOR_UPDATE;
}
struct mc_program {
    mc_graph *graph;       /* the program's own */
    VEC(struct mc_value) value;
    VEC(struct mc_step) step;
    int *value_of;         /* by node id: value id, or -1 */
    int ninput, noutput, nupdate;
    mc_node **input;
    int *output;           /* value ids */
    struct mc_shared **shared; /* of updates */
    int *update;           /* value ids */
    bool dynamic;          /* some sizes depend on data */
    bool *key_input;       /* by input: its contents determine sizes */
    /* the last step that may fail during a call: it checks indices or runs on the host; or -1 */
    int last_check;
    struct mc_arena arena;
    int nkernel;
};

/* expand.c: expands formula ops; reductions keep their axes; dropping axes moves towards the outputs */
mc_status mc_lower_expand(mc_graph *g, int n, mc_node **out, bool draws);
/* Replaces each node, in id order, by the result of `one` over its new inputs. Leaves stay. */
mc_status mc_lower_sweep(mc_graph *g, int n, mc_node **out,
                         mc_node *(*one)(mc_node *n, mc_node **in, const void *arg), const void *arg);
/* copies.c: parts of joins that others read too are copied by the kernels that make them */
mc_status mc_lower_copies(mc_graph *g, int n, mc_node **out);
/* tie_bits.c: gradients of max poolings that ties share read bits in place of the cells */
mc_status mc_lower_tie_bits(mc_graph *g, int n, mc_node **out);
/* draw.c: random_uniform over in[] as element-wise ops */
mc_node *mc_lower_draw(mc_node *n, mc_node **in);
/* sizes.c: axes that have equal sizes at any shape */
struct mc_sizes { size_t *parent; int64_t *known; };
mc_status mc_sizes_find(struct mc_sizes *s, const mc_graph *g, mc_node *const *list, size_t count);
bool mc_sizes_equal(const struct mc_sizes *s, const mc_node *a, const mc_node *b, int axis);
void mc_sizes_free(struct mc_sizes *s);
/* group.c: the group of each node, -1 for leaves; a node that is not fusible is a group of its own */
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
/* program.c; rounds: float16 and bfloat16 are rounded after each operation, as the reference does; starts:
 * where a part begins that is set or added to is found at plan time, if it follows from inputs */
struct mc_lower_how {
    enum mc_fusing fuse;
    bool rounds, starts;
};
mc_status mc_program_make(struct mc_program *p, mc_graph *g, int nin, mc_node *const *in, int nout,
                          mc_node *const *out, int nup, struct mc_shared *const *shared,
                          mc_node *const *update, const struct mc_lower_how *how);
/* pooled_steps.c: finds steps whose solver may also do an earlier step; called before liveness */
void mc_find_pooled_steps(struct mc_program *p);
/* static_size.c: number of elements along the axes that the step's kernel loops over; -1: not static */
int64_t mc_static_length(const struct mc_step *st);
/* values.c */
int mc_value_root(const struct mc_program *p, int v);   /* the value whose memory v is or views */
/* of a step that sets or adds to a part: is it known at plan time where that is? */
bool mc_part_is_known(const struct mc_program *p, const struct mc_step *st);
void mc_program_free(struct mc_program *p);
bool mc_counts(const mc_node *n);                       /* is n 0, 1, 2, ...? */
/* The axis along which n is the position 0, 1, 2, ...: arange, perhaps with axes of size 1 added; -1: n is
 * not a position. */
int mc_position_axis(const mc_node *n);
/* is n a constant number or a position, which a kernel does not read from memory? */
static inline bool mc_is_inline_operand(const mc_node *n)
{
    return mc_position_axis(n) >= 0 || (mc_is_const(n) && mc_array_size(n->value) == 1);
}
unsigned mc_varies(const struct mc_type *t);  /* axes not known to have size 1 */

#endif

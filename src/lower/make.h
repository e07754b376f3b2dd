/* make.h: a program while it is made: what is known of each node, by id. */
#ifndef MC_MAKE_H
#define MC_MAKE_H

#include "lower/lower.h"

struct make {
    struct mc_program *p;
    struct mc_groups groups;
    bool exact;              /* floats are compared that may be computed twice: see struct mc_kernel */
    /* each float16 and bfloat16 is rounded where it is made, not only where it is stored */
    bool rounds;
    unsigned char *early;    /* by node id: computed on the host when a plan is made */
    unsigned char *needed;   /* its data are needed, not only its type */
    unsigned char *wanted;   /* must have memory: somebody outside its kernel reads it */
    unsigned char *coded;    /* stored for kernels alone, though a byte could stand for it */
    int *last_of;            /* by group: the number of its nodes still to come */
    int *val;                /* by node id: the kernel value while a kernel is made */
    int *made;               /* by node id: the kernel step it is inside of, plus one */
    int *epilogue;           /* by group: the node id of the result of heavy work that it finishes, or -1 */
    int *within;             /* by node id: the last group whose kernel computes it, plus one */
    /* by node id, of heavy work: the group that finishes it, and makes all its results, plus one */
    int *finisher;
};
struct mc_node_list { mc_node **at; size_t n, cap; };

static inline bool mc_is_heavy(const mc_node *n)
{
    return n->op->flags & OP_HEAVY && mc_is_float(n->type.dtype);
}

/* plan_time.c: what is computed on the host when a plan is made */
bool mc_is_shape_arg(const mc_node *n, int i); /* does input i decide sizes? */
void mc_find_shape_work(struct make *m, mc_node *const *list, size_t count);
void mc_find_required(struct make *m, mc_node *const *list, size_t count);
/* order.c: groups in an order in which each stands behind what it reads; what needs memory */
mc_status mc_order_groups(struct make *m, mc_node *const *list, size_t count, mc_node **sorted);
/* the nodes outside the kernel that n reads from memory */
void mc_mark_stored_inputs(struct make *m, mc_node *n);
mc_node *mc_main_result(mc_node *n); /* of heavy work: what a kernel may finish; a tuple's first item */
mc_status mc_find_epilogues(struct make *m, mc_node *const *list, size_t count);
/* as a kernel's operand: a number, or a position */
bool mc_is_inline_operand(const mc_node *n);
/* recompute.c: what its readers compute again is not wanted; the nodes of a kernel, in id order */
mc_status mc_find_recomputed(struct make *m, mc_node *const *list, size_t count);
mc_status mc_kernel_nodes(struct make *m, int group, mc_node *const *node, int n, struct mc_node_list *to);
/* sign_byte.c: what a byte can stand for is made of one, where it would be stored; changed: lowering begins
 * again with the new outputs */
bool mc_fits_in_byte(const mc_node *n);
mc_status mc_lower_sign_bytes(const struct make *m, int nout, mc_node **out, bool *changed);
/* fused.c: the kernel form of a group */
bool mc_counts(const mc_node *n);                                   /* 0, 1, 2, ... */
/* along which axis n is a position; -1: it is none */
int  mc_index_axis(const mc_node *n);
bool mc_inside(const struct make *m, const mc_node *n, int group);
mc_status mc_make_kernel(struct make *m, int group, mc_node **node, int nnode);
/* epilogue.c: what kernel k of a group that finishes heavy work computes; it stores `result` alone.  All that
 * it reads and stores has a value. */
mc_status mc_find_epilogue(const struct make *m, int group, mc_node *result, const struct mc_kernel *k,
                           struct mc_epilogue *e);
/* program.c */
int  mc_add_value(struct make *m, enum mc_value_kind kind, mc_node *n, int step);
/* leaves get theirs at first sight; -1: none */
int  mc_value_of(struct make *m, mc_node *n);
bool mc_copy_list(struct mc_program *p, int **to, const int *from, int n);
mc_status mc_add_step(struct make *m, enum mc_step_kind kind, mc_node *n, const char *reason);

#endif

/* make.h: the state of making a program: facts about each node, by id. */
#ifndef MC_MAKE_H
#define MC_MAKE_H

#include "lower/lower.h"

struct make {
    struct mc_program *p;
    struct mc_groups groups;
    bool exact;              /* compares floats that may be computed twice: see struct mc_kernel */
    /* float16 and bfloat16 are rounded after each operation, not only when stored */
    bool rounds;
    bool starts;             /* see struct mc_lower_how */
    unsigned char *early;    /* by node id: computed on the host at plan time */
    unsigned char *needed;   /* by node id: its data are needed, not only its type */
    unsigned char *wanted;   /* by node id: must be stored, since it is read outside its kernel */
    unsigned char *coded;    /* by node id: stored, read by kernels only, and fits in a byte */
    int *last_of;            /* by group: number of its nodes that are still to come */
    int *val;                /* by node id: its value in the kernel that is being made */
    int *made;               /* by node id: the kernel step that computes it, plus one */
    int *epilogue;           /* by group: node id of the solver's result that it is the epilogue of, or -1 */
    int *within;             /* by node id: the last group whose kernel computes it, plus one */
    bool updates_late;       /* groups that only make updates run after all others, unless they are large */
    /* by group: it is one that does; it only makes updates and is no epilogue, unless it only adds */
    bool *late, *separate;
    int *finisher;           /* by node id, of a solver's op: the group that is its epilogue, plus one */
};
struct mc_node_list { mc_node **at; size_t n, cap; };

static inline bool mc_is_heavy(const mc_node *n)
{
    return n->op->flags & OP_HEAVY && mc_is_float(n->type.dtype);
}

/* plan_time.c: nodes that are computed on the host at plan time */
void mc_find_shape_work(struct make *m, mc_node *const *list, size_t count);
void mc_find_required(struct make *m, mc_node *const *list, size_t count);
/* late.c: finds the groups that only make updates; called before epilogues are found */
mc_status mc_find_updates(struct make *m, mc_node *const *list, size_t count);
/* order.c: the order in which groups run, and the nodes that must be stored */
mc_status mc_order_groups(struct make *m, mc_node *const *list, size_t count, mc_node **sorted);
/* marks the inputs of n that its kernel reads from memory */
void mc_mark_stored_inputs(struct make *m, mc_node *n);
mc_node *mc_main_result(mc_node *n); /* the result that an epilogue reads: n, or a tuple's first item */
mc_status mc_find_epilogues(struct make *m, mc_node *const *list, size_t count);
/* recompute.c: finds nodes that their readers recompute; lists the nodes of a kernel in id order */
mc_status mc_find_recomputed(struct make *m, mc_node *const *list, size_t count);
mc_status mc_kernel_nodes(struct make *m, int group, mc_node *const *node, int n, struct mc_node_list *to);
/* sign_byte.c: stores a byte instead of a value that can be computed from one; changed: lowering starts again
 * with the new outputs */
bool mc_fits_in_byte(const mc_node *n);
mc_status mc_lower_sign_bytes(const struct make *m, int nout, mc_node **out, bool *changed);
/* fused.c: the kernel form of a group */
bool mc_inside(const struct make *m, const mc_node *n, int group);
mc_status mc_make_kernel(struct make *m, int group, mc_node **node, int nnode);
/* epilogue.c: may n be a sum of terms in an epilogue that solvers know? */
bool mc_joins_terms(const mc_node *n);
/* the form of the epilogue that kernel k computes. k is analysed and stores only `result`, and
 * all its operands have values. */
mc_status mc_find_epilogue(const struct make *m, int group, mc_node *result, const struct mc_kernel *k,
                           struct mc_epilogue *e);
/* program.c */
int  mc_add_value(struct make *m, enum mc_value_kind kind, mc_node *n, int step);
/* the value of n; a leaf gets one at first use; -1: none */
int  mc_value_of(struct make *m, mc_node *n);
bool mc_copy_list(struct mc_program *p, int **to, const int *from, int n);
mc_status mc_add_step(struct make *m, enum mc_step_kind kind, mc_node *n, const char *reason);

#endif

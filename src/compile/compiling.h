/* compiling.h: what is known of a function while it is made; the passes of compile.c work on it. */
#ifndef MC_COMPILING_H
#define MC_COMPILING_H

#include "exec/function.h"

struct compiling {
    mc_graph *user;                 /* the caller's graph */
    const struct mc_spec *spec;
    enum mc_mode mode;
    VEC(struct mc_named) inputs;    /* of the text part; nodes of the list are appended */
    VEC(mc_node *) in, out, update;
    VEC(const char *) out_name;     /* what the user calls them; NULL: nothing */
    VEC(struct mc_shared *) target;
    VEC(bool) borrow, stays;
    mc_graph *g;                    /* the function's own */
    mc_function *f;
    struct mc_code_unit *code;
    const char *file;
    int line;
};

/* spec.c: the user's words, over his graph */
mc_status mc_spec_inputs(struct compiling *c);
mc_status mc_spec_outputs(struct compiling *c);
mc_status mc_spec_updates(struct compiling *c);
mc_status mc_spec_default_updates(struct compiling *c);
mc_status mc_spec_givens(struct compiling *c);
mc_status mc_spec_unused(struct compiling *c);
mc_node **mc_spec_results(const struct compiling *c, size_t *n);   /* outputs, then updates; the caller's */
void mc_spec_put_results(struct compiling *c, mc_node *const *all);
/* function.c: functions made, copied, freed */
mc_function *mc_function_new(struct mc_code_unit *code, const char *name, int threads, bool profile);
void mc_code_unit_unref(struct mc_code_unit *u);
/* the program, its texts and its kernels; the graph stays */
void mc_code_unit_drop_steps(struct mc_code_unit *u);
void mc_memory_free(struct mc_function *f);           /* its arena */

/* debug.c */
mc_status mc_debug_note(void *compiling, const struct mc_rule *rule, mc_node *from, mc_node *to);
mc_status mc_debug_widen(struct compiling *c);
/* MC_ECHECK: a rule changed values; between steps and updates */
mc_status mc_debug_rewrites(const struct mc_function *f);

#endif

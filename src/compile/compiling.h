/* compiling.h: the state of a function while it is compiled, for the passes of compile.c. */
#ifndef MC_COMPILING_H
#define MC_COMPILING_H

#include "exec/function.h"

struct compiling {
    mc_graph *user;                 /* the caller's graph */
    const struct mc_spec *spec;
    enum mc_mode mode;
    VEC(struct mc_named) inputs;    /* of the text in the spec; then those of its list of nodes */
    struct mc_named *outputs;       /* of the text in the spec */
    int noutputs;
    VEC(mc_node *) in, out, update;
    VEC(const char *) out_name;     /* names that the user gave; NULL: none */
    VEC(struct mc_shared *) target;
    VEC(bool) borrow, stays;
    mc_graph *g;                    /* the function's copy */
    mc_function *f;
    struct mc_code_unit *code;
    const char *file;
    int line;
};

/* spec.c: reads the spec over the user's graph */
mc_status mc_spec_inputs(struct compiling *c);
mc_status mc_spec_outputs(struct compiling *c);
mc_status mc_spec_updates(struct compiling *c);
mc_status mc_spec_default_updates(struct compiling *c);
mc_status mc_spec_givens(struct compiling *c);
mc_status mc_spec_unused(struct compiling *c);
/* outputs, then updates; the caller frees it */
mc_node **mc_spec_results(const struct compiling *c, size_t *n);
void mc_spec_put_results(struct compiling *c, mc_node *const *all);
/* function.c: makes, copies and frees functions */
mc_function *mc_function_new(struct mc_code_unit *code, const char *name, int threads, bool profile);
void mc_code_unit_unref(struct mc_code_unit *u);
/* frees the program, its texts and its kernels, but not the graph */
void mc_code_unit_drop_steps(struct mc_code_unit *u);
void mc_memory_free(struct mc_function *f);           /* frees the arena of f */

/* debug.c */
mc_status mc_debug_note(void *compiling, const struct mc_rule *rule, mc_node *from, mc_node *to);
mc_status mc_debug_widen(struct compiling *c);
/* MC_ECHECK: a rule changed values.  Call it after the steps and before the updates. */
mc_status mc_debug_rewrites(const struct mc_function *f);

#endif

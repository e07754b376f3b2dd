/* compiling.h: what is known of a function while it is made; the passes of compile.c work on it. */
#ifndef MC_COMPILING_H
#define MC_COMPILING_H

#include "function/function.h"

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
    bool plain;                     /* nothing is fused: its kernels cannot be had */
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
/* life.c: functions made, copied, freed */
mc_function *mc_function_new(struct mc_code_unit *code, const char *name, int threads, bool profile);
void mc_code_unit_unref(struct mc_code_unit *u);
void mc_code_unit_drop_steps(struct mc_code_unit *u); /* the program, its texts and its kernels; the graph stays */

mc_status mc_debug_note(void *compiling, const struct mc_rule *rule, mc_node *from, mc_node *to); /* debug.c */
mc_status mc_debug_widen(struct compiling *c);
mc_status mc_compile_kernels(struct compiling *c); /* kernels.c */
extern const char mc_no_compiler[];                /* there: the reason of a step that runs by the reference for want of a compiler */
/* By step the first whose kernel prints as this one's does, and whose name it gets, so that one serves both: itself for the
 * first of a kind; -1 without a kernel.  The caller's; NULL: no memory. */
int *mc_kernels_share(struct mc_program *p);
/* What no step of those that share a kernel needs is not printed: never() says so of one step. */
void mc_kernels_rule_out(const struct mc_program *p, const int *first, unsigned (*never)(const struct mc_step *st));
enum { MC_MOST_TEXTS = 16 };
/* Kernels that first names, one for all that share it, are divided among texts: the heaviest first, each to the lightest
 * text.  There are at most `most` texts, which is no more than MC_MOST_TEXTS; to[i] is that of step i, -1 for none.
 * Returns how many there are. */
int mc_kernels_spread(const struct mc_program *p, const int *first, int most, int *to);
/* The kernels of one text; returns how many. */
int mc_kernels_of(const struct mc_program *p, const int *first, const int *to, int text, struct mc_kernel **k);

#endif

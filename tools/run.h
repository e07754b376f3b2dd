/* run.h: a text-form program between monochord_read.c, which reads it, and monochord_run.c, which does what
 * the command line asks of it. */
#ifndef RUN_H
#define RUN_H

#include "tool.h"

enum { MOST_INPUTS = 64, MOST_OUTPUTS = 64, MOST_FEEDS = 64, UNKNOWN_SIZE = 8 };

struct program {
    const char *path;
    struct text formulas;           /* what mc_formula reads */
    struct text inputs, outputs, updates; /* as mc_spec takes them */
    char *input[MOST_INPUTS];
    int ninput;
    mc_graph *g;
    mc_node *result[MOST_OUTPUTS]; /* of outputs, then of updates */
    int nresult, nnamed;            /* nnamed: of outputs */
    mc_function *f;
    mc_array *in[MOST_INPUTS], *out[MOST_OUTPUTS];
    int nout;
};

bool word_is(const char *s, size_t n, const char *word);
/* the file, its declarations, formulas and results; false: complained */
bool read_program(struct program *p);

#endif

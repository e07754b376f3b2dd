/* parse_desc.h: descriptors in formulas, and the arguments of a call. */
#ifndef MC_PARSE_DESC_H
#define MC_PARSE_DESC_H

#include "graph/parse.h"

struct args {
    struct val value[64];
    const char *name[64]; /* NULL: positional */
    size_t at[64];        /* start of the name, or of the value if there is no name */
    int n;
};
/* a descriptor that was assigned to a name */
struct mc_desc {
    const char *name;
    struct val v;
    const struct mc_desc *next; /* assigned before it */
};

bool mc_parse_is_desc(const char *name);
/* the descriptor that the call of `name` with arguments a makes */
struct val mc_parse_desc(struct parser *p, const char *name, const struct args *a, size_t at);
/* puts the arguments of descriptors among a in place of these */
void mc_parse_desc_spread(struct parser *p, const char *op, struct args *a);
void mc_parse_desc_keep(struct parser *p, const char *name, const struct val *v);
const struct val *mc_parse_desc_named(const struct parser *p, const char *name); /* NULL: there is none */

#endif

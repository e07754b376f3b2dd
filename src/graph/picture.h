/* picture.h: a graph as a drawing: the nodes shown, their positions, and the SVG.
 *
 * Invariant: a picture does not change the graph.  Its texts are clean (one line, valid UTF-8, no control
 * characters) but not escaped. */
#ifndef MC_PICTURE_H
#define MC_PICTURE_H

#include "graph/graph.h"

/* MOST: most nodes shown; of a larger graph, those nearest the outputs.  NESTED: loops in loops whose bodies
 * are shown */
enum { PICTURE_MOST = 300, PICTURE_NESTED = 4 };

enum mc_role { ROLE_OP, ROLE_INPUT, ROLE_SHARED, ROLE_CONSTANT, ROLE_OUTPUT, MC_NROLE };
extern const char *const mc_role_name[MC_NROLE];

struct mc_picture;
struct mc_pictured {
    const mc_node *node;
    enum mc_role role;
    const char *head;           /* the node's name, or the op with its attributes */
    const char *sub;            /* the op of a named node, else "" */
    const char *type;
    const char *badge;          /* text given by the caller, or "" */
    char *tip;                  /* the formula, a few levels deep */
    int hidden;                 /* number of inputs that are not shown */
    struct mc_picture *body;    /* of a loop; or NULL */
};
struct mc_arrow { int from, to, port; }; /* port: index of the argument of `to` */
struct mc_picture {
    struct mc_arena arena;
    VEC(struct mc_pictured) node; /* in topological order */
    VEC(struct mc_arrow) arrow;
    size_t total;               /* number of nodes that the outputs need */
};
/* Texts given by the caller; any may be NULL. */
struct mc_picture_says {
    const char *const *output;  /* by output: its name */
    const char *const *badge;   /* by node id; NULL: none */
    const char *const *sub;     /* by node id: what to write below the name of an input; NULL: nothing */
    const struct mc_picture_body *const *body; /* by node id: what to draw as the body of a loop */
};
/* A body other than the one in the attributes, with as many inputs and outputs: the one that was compiled. */
struct mc_picture_body {
    int nin, nout;
    mc_node *const *in, *const *out;
    struct mc_picture_says says; /* badge and body */
};
/* picture.c.  Constants of few elements are drawn once for each reader, which avoids long crossing wires. */
mc_status mc_picture_make(struct mc_picture *p, int n, mc_node *const *outputs,
                          const struct mc_picture_says *says);
void mc_picture_free(struct mc_picture *p);
int mc_text_columns(const char *s);

/* layout.c: boxes in layers, each node below its inputs.  A wire goes down from one source through the
 * layers, with a bend in each; arrows branch off from it. */
struct mc_box { double x, y, w, h; int layer; }; /* x: the centre; y: the top */
struct mc_bend { int from, layer; double x; };
struct mc_layout {
    struct mc_box *box;         /* by picture node */
    VEC(struct mc_bend) bend;   /* those of one source are consecutive, in the order of layers */
    int *first_bend;            /* by picture node; -1: none */
    double *top;                /* by layer: y of its boxes */
    double *deep;               /* by layer: the largest height of its boxes */
    int nlayer;
    double w, h;
};
/* requires: box[i].w and box[i].h are set */
mc_status mc_layout_make(struct mc_layout *l, const struct mc_picture *p);
void mc_layout_free(struct mc_layout *l);

/* svg.c: the <svg> element alone */
mc_status mc_svg_add(struct mc_str *out, const struct mc_picture *p);

#endif

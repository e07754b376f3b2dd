/* band.h: the body of a loop as it runs on some of its rows: a band.
 *
 * A body is row-wise if row i of what a step makes depends on row i of the states, sequences and constants
 * that have rows, and on what has none: maps and reductions along other axes, products whose left operand has
 * the rows.  Then each thread runs all steps of the loop on its own band, and waits for no other thread until
 * the end.
 *
 * Invariant: a row has the same bits in any band. */
#ifndef MC_BAND_H
#define MC_BAND_H

#include "schedule/schedule.h"

struct mc_moving {          /* a value of the body that lies elsewhere in each step */
    int value;
    bool input;             /* in input `of`, else in result `of` */
    int of;
    int64_t offset;
};
struct mc_port {            /* an input or a result of the body */
    char *at;               /* where it is in this step */
    int64_t stride;         /* bytes from step to step */
    bool copied;            /* a result that the body does not store: copied after the step */
    int64_t first;          /* bytes from the first of all rows to that of the band */
};
struct mc_band {
    const struct mc_loop *l;
    struct mc_function *body; /* of all rows: the function's own; else one for this band */
    struct mc_shape_plan *plan;
    bool shares;            /* the plan is that of another band */
    mc_array **arg;         /* what the body's inputs look like; their memory is that of the step */
    struct mc_port *in, *out;
    struct mc_moving *moving;
    int nmoving;
    int *run;               /* the steps that do something */
    int nrun;
    mc_status status;       /* of its last run */
};

/* band.c */
/* finds by the band's plan which values move and which steps run */
mc_status mc_band_read_plan(struct mc_band *b);
void mc_band_free(struct mc_band *b);   /* all but the body and its plan */
/* Tells the body where the values are that lie elsewhere in each step. */
void mc_band_place(const struct mc_band *b);
/* to the next element of each sequence, and the next place of each result that is collected */
void mc_band_advance(const struct mc_band *b);
mc_status mc_band_run(const struct mc_band *b, bool watched);   /* one step of the loop */

/* row_axes.c: Is the body row-wise, with the rows along axis 0 of every state?  Then axis[v] is the axis of
 * value v that the rows are along; -1: v has none. */
mc_status mc_row_axes(const struct mc_band *all, int *axis, bool *is);

/* bands.c */
/* plans the body for b->arg, if it has no plan, and reads the plan (loop.c, which shape plans need) */
typedef mc_status mc_band_planner(struct mc_band *b, const void *arg);
/* The bands of a loop that runs on all rows as `all` does.  *good: false: its rows are not divided.  The
 * caller frees the list, also after an error. */
mc_status mc_bands_plan(const struct mc_band *all, int64_t steps, mc_band_planner *plan, const void *arg,
                        struct mc_band **list, int *n, bool *good);
/* before a run: the band reads what solvers have prepared for all rows */
void mc_band_share(const struct mc_band *b, const struct mc_band *all);
/* before the band's plan is freed: leaves what is not its own */
void mc_band_unshare(struct mc_band *b);
void mc_band_body_free(struct mc_function *body);
size_t mc_bands_memory(const struct mc_band *list, int n); /* bytes */

#endif

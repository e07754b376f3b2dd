/* nn.h: makes layers, update rules and settings of lines of text. Uses only the public headers.
 *
 * Invariant: what a net makes is in its memory (mc_nn_keep) until mc_net_free; names and texts are not freed
 * one by one. */
#ifndef MC_NN_H
#define MC_NN_H

#include "nn/null_check.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* ---- text.c: text that grows, and formulas with holes ---- */

struct mc_nn_text {
    char *s; /* NUL-terminated; NULL until something is added */
    size_t n, cap;
    bool bad; /* out of memory */
};
void mc_nn_addn(struct mc_nn_text *t, const char *s, size_t n);
void mc_nn_add(struct mc_nn_text *t, const char *s);
void mc_nn_addf(struct mc_nn_text *t, const char *fmt, ...) MC_FORMAT(2, 3);
void mc_nn_addv(struct mc_nn_text *t, const char *fmt, va_list ap);
void mc_nn_free(struct mc_nn_text *t);

/* Fills the holes of a form: $name is replaced by the text of that name, with its own holes filled; $_name by
 * `own`_name, a name for an intermediate value; $$ by $, a hole that is filled later; {...} is dropped if a
 * hole in it is empty. False: there is no such name. */
struct mc_nn_hole {
    const char *name, *text;
};
struct mc_nn_holes {
    struct mc_nn_hole at[64];
    int n;
    const char *own;
};
void mc_nn_hole(struct mc_nn_holes *h, const char *name, const char *text); /* replaces an earlier one */
bool mc_nn_fill(struct mc_nn_text *out, const char *form, const struct mc_nn_holes *holes);

/* ---- settings.c: words of a line, and the fields they fill ---- */

struct mc_nn_slice {
    const char *s;
    size_t n;
};
struct mc_nn_line { /* the origin of a text, for messages */
    mc_graph *g;
    const char *file; /* NULL: the text is an argument of a call */
    int number;
    const char *text, *end;
};
enum mc_nn_type {
    NN_INT,   /* -1 */
    NN_COUNT, /* 500; at least 1 */
    NN_REAL,  /* 0.5 */
    NN_BOOL,  /* true, false */
    NN_SIZES, /* 5x5; 5 is the same for each axis */
    NN_AXES,  /* 0,2,3 or auto */
    NN_WORD,  /* one of `words` */
    NN_CALL,  /* a name, perhaps with settings in brackets: leaky_rectify(0.2) */
    NN_TEXT,  /* any text; in quotes if it has spaces */
    NN_LAYERS, /* names of layers, separated by commas */
    NN_SIDE    /* the name of a layer, which becomes an input beside the others, or what NN_CALL takes */
};
struct mc_nn_field {
    const char *name;
    enum mc_nn_type type;
    const char *preset; /* NULL: must be given */
    const char *words;  /* NN_WORD: "max|sum"; NN_REAL: the allowed interval, "[0, 1)"; NULL: any value */
};
#define NN_FROM_0 "[0, inf)"
enum { NN_MOST_FIELDS = 26, NN_MOST_AXES = 8 };
struct mc_nn_settings {
    const struct mc_nn_line *line;
    const struct mc_nn_field *field;
    struct mc_nn_slice value[NN_MOST_FIELDS]; /* a slice of the line, or the preset */
    bool given[NN_MOST_FIELDS];
    struct mc_nn_slice loose[32]; /* words without a name, if the first field is NN_LAYERS */
    int nloose;
};

/* Reads a word at *at, which moves past it. name is empty unless the word is name=text. False: no more
 * words. */
bool mc_nn_next_word(const struct mc_nn_line *line, const char **at, char separator, struct mc_nn_slice *name,
                     struct mc_nn_slice *text);
/* Reads words from `at` to the end of the line into fields (the last has no name). what: for messages. */
bool mc_nn_read(struct mc_nn_settings *s, const struct mc_nn_line *line, const char *at, const char *end,
                char separator, const struct mc_nn_field *fields, const char *what);
int mc_nn_field(const struct mc_nn_settings *s, const char *name); /* index of a field, which must exist */
struct mc_nn_slice mc_nn_get(const struct mc_nn_settings *s, const char *name);
bool mc_nn_is(const struct mc_nn_settings *s, const char *name, const char *word);
int64_t mc_nn_int(const struct mc_nn_settings *s, const char *name);
double mc_nn_real(const struct mc_nn_settings *s, const char *name);
bool mc_nn_bool(const struct mc_nn_settings *s, const char *name);
/* parses 5x5, 0,2 or [5, 5]; the number of elements, -1: not a list of numbers */
int mc_nn_list(struct mc_nn_slice text, int64_t *out, int most);
/* The name of "normal(0.1)"; args: the text in the brackets, or empty. */
struct mc_nn_slice mc_nn_call(struct mc_nn_slice call, struct mc_nn_slice *args);
bool mc_nn_same(struct mc_nn_slice a, const char *b);
bool mc_nn_is_letter(char c); /* a letter, a digit, an underscore */
/* "; did you mean 'conv'?" for the nearest of the names, or for one that contains the word or is contained in
 * it; or "". */
struct mc_nn_hint {
    char text[80];
};
struct mc_nn_hint mc_nn_near(struct mc_nn_slice word, const char *const *names, int n);
/* The same for a table of rows of `size` bytes that begin with a name; the last has none. */
struct mc_nn_hint mc_nn_near_row(struct mc_nn_slice word, const void *table, size_t size);
/* Reports an error at `at` in the line (NULL: at its start). Returns false. */
bool mc_nn_wrong(const struct mc_nn_line *line, const char *at, mc_status code, const char *fmt, ...)
    MC_FORMAT(4, 5);

/* ---- net.c ---- */

struct mc_nn_param {
    const char *name, *tags; /* tags: words, each with a space before and after: " trainable " */
    mc_shared *shared;
    mc_layer *layer;
    const char *field; /* the setting that it was made from: "W"; NULL: it belongs to no layer */
};
struct mc_nn_running { /* a variable that each training step sets to `to` */
    mc_shared *shared;
    mc_node *to;
};
struct mc_layer {
    mc_net *net;
    const struct mc_nn_kind *kind;
    const char *name;
    mc_layer **in;
    int nin;
    const char *var[2];  /* its name in formulas, by pass */
    const char *text[2];
    mc_node *node[2];
    bool flips; /* its convolution flips the filter */
};
struct mc_net {
    mc_graph *g;
    const char *prefix;
    struct mc_nn_block *blocks;
    mc_layer **layer;
    int nlayer, layer_cap;
    struct mc_nn_param *param;
    int nparam, param_cap;
    struct mc_nn_running *running;
    int nrunning, running_cap;
    mc_layer broken;
    const char *rng;     /* the name of the stream of random numbers */
    mc_shared *rate;     /* NULL until an update rule is made */
    mc_shared *sums;     /* sums of cost and wrong: float64[2]; NULL until a learner is made */
    mc_graph *draw_graph; /* for functions that draw initial values */
    mc_function *draw[4]; /* made at first use: init.c */
    struct mc_training train;
    const char *also[4];   /* the words of each line `also` */
    int nalso;
    const char *penalty[8]; /* the words of each line `penalty` */
    int npenalty;
    mc_layer *last;         /* the layer for which target, cost and wrong were made */
    mc_node *target, *cost[2], *wrong[2];
    mc_node *loss, *penalties; /* the terms of cost while it learns; NULL: without penalties */
};

/* zeroed; NULL: out of memory, set on the graph */
void *mc_nn_keep(mc_net *net, size_t n);
bool mc_nn_check_error(mc_net *net, bool good); /* returns good; if false without an error: out of memory */
char *mc_nn_keep_text(mc_net *net, const char *s, size_t n);
char *mc_nn_keep_printed(mc_net *net, const char *fmt, va_list ap);
/* list: the address of a pointer */
bool mc_nn_push(mc_net *net, void *list, int *n, int *cap, size_t size, const void *item);
const char *mc_nn_name(mc_net *net, const char *name);      /* with the net's prefix; NULL: out of memory */
/* Makes a shared variable and adds it to the net with its tags. Takes over `value`. */
mc_shared *mc_nn_param(mc_net *net, mc_layer *layer, const char *field, const char *name, const char *tags,
                       mc_array *value);
mc_dtype mc_nn_float(void);                                 /* floatX */
/* Makes the node of a formula. An error is shown under the line (if not NULL) and begins with `where`. */
mc_node *mc_nn_formula(mc_net *net, const struct mc_nn_line *line, const char *where, const char *text);
/* Adds the line and `where` to the graph's error. */
void mc_nn_set_error(mc_graph *g, const struct mc_nn_line *line, const char *where);

/* rule.c: the updates of the states of the net's rule for a vector p, which gets this name and becomes *to.
 * n is 0 for a rule without states, *to NULL on failure. */
mc_updates mc_nn_share_updates(mc_net *net, const char *name, mc_node *p, mc_node *grad, mc_node **to);

/* fit.c: a function of the net's inputs, and the target; u may be NULL.  NULL: mc_last_error */
mc_function *mc_nn_compile(mc_net *net, const char *name, bool target, int nout, mc_node *const *out,
                           const mc_updates *u, const char *givens);
/* one array of both sums, so that adding to them is one step; false: the graph has the error */
bool mc_nn_sums(mc_net *net);

/* save.c: an error unless `a`, the array `name` of a file, has this shape */
mc_status mc_nn_fits(const char *path, const char *name, const mc_array *a, int rank, const int64_t *dims);

/* ---- layer.c: kinds are rows ---- */

struct mc_nn_build { /* one layer being made */
    mc_net *net;
    mc_layer *layer;
    struct mc_nn_field field[NN_MOST_FIELDS + 1]; /* those of the row, and `from` */
    struct mc_nn_settings set;
    struct mc_nn_holes holes;
    const char *form[2]; /* by pass: those of the row, unless make() changed them */
    const char *side[4]; /* the fields of type NN_SIDE that name layers: the last nside inputs of the layer */
    int nside;
    bool has_act;        /* set by make(): the form applies the nonlinearity itself */
    bool failed;
};
struct mc_nn_kind {
    const char *name, *doc;
    int nin; /* 0, 1, 2; -1: two or more */
    struct mc_nn_field field[NN_MOST_FIELDS];
    /* checks, makes parameters and holes; NULL: the only holes are the fields */
    void (*make)(struct mc_nn_build *b);
    const char *training, *deterministic; /* forms; NULL: the same */
};
extern const struct mc_nn_kind *const mc_nn_kinds[]; /* tables, each ended by a row without a name; NULL */
extern const struct mc_nn_kind mc_nn_plain[], mc_nn_convs[], mc_nn_pools[], mc_nn_merges[], mc_nn_noises[],
    mc_nn_norms[], mc_nn_shapes[], mc_nn_specials[], mc_nn_convnets[],
    mc_nn_recurrents[];
mc_layer *mc_nn_layer(mc_net *net, const struct mc_nn_line *line);

/* For make: build.c, and mc_nn_refuse of error.c */
void mc_nn_let(struct mc_nn_build *b, const char *name, const char *fmt, ...) MC_FORMAT(3, 4); /* a hole */
/* a hole with the number, or empty */
void mc_nn_let_unless(struct mc_nn_build *b, const char *name, bool empty, int64_t v);
void mc_nn_let_ints(struct mc_nn_build *b, const char *name, int n, const int64_t *v);           /* [5, 5] */
bool mc_nn_refuse(struct mc_nn_build *b, const char *field, const char *fmt, ...) MC_FORMAT(3, 4); /* false */
/* Makes the parameter layer_name, with the initial values of the field of that name ("none": no parameter,
 * and the hole is empty). */
bool mc_nn_weights(struct mc_nn_build *b, const char *name, const char *tags, int rank, const int64_t *dims);
/* The same for the field `name` and a parameter layer_own, drawn in `blocks` blocks along its last axis, each
 * of these sizes and with its own initial values. */
bool mc_nn_blocks(struct mc_nn_build *b, const char *name, const char *own, const char *tags, int blocks,
                  const struct mc_nn_slice *init, int rank, const int64_t *dims);
/* The n numbers of a field (a single one is used for all), each at least `least`. */
bool mc_nn_sizes(struct mc_nn_build *b, const char *field, int n, int64_t least, int64_t *out);
bool mc_nn_axes(struct mc_nn_build *b, const char *field, int rank, bool *in); /* auto: all but axis 1 */
const int64_t *mc_nn_dims(const struct mc_nn_build *b, int input);
int mc_nn_rank(const struct mc_nn_build *b, int input);
/* Is the size of that axis of the input known? If not, sets an error. */
bool mc_nn_known(struct mc_nn_build *b, const char *why, int axis);
/* The hole `name`: the sizes of the input as a list, unknown ones by formula. */
void mc_nn_let_shape(struct mc_nn_build *b, const char *name, int rank, const int64_t *dims);

/* act.c: a nonlinearity around a formula */
bool mc_nn_is_act(struct mc_nn_slice name); /* is it in the table or often used as a nonlinearity? */
bool mc_nn_act(struct mc_nn_text *out, const struct mc_nn_line *line, struct mc_nn_slice call,
               const char *inner);
/* init.c */
mc_array *mc_nn_draw(mc_net *net, const struct mc_nn_line *line, struct mc_nn_slice call, int rank,
                     const int64_t *dims);

/* Rows that are formulas: a loss, an accuracy, a penalty. */
struct mc_nn_row {
    const char *name;
    struct mc_nn_field field[4];
    const char *form;
};
/* Fills the form of the row that the words from `at` to `end` name, into out. what: "loss", for messages. */
bool mc_nn_row(struct mc_nn_text *out, const struct mc_nn_line *line, const char *at, const char *end,
               const struct mc_nn_row *table, const char *what, struct mc_nn_holes *holes);
struct mc_nn_line mc_nn_own_line(mc_net *net, const char *text); /* for a text that is an argument */
/* the node of a form with $p and $t */
mc_node *mc_nn_both(mc_net *net, const char *what, const char *form, mc_node *p, mc_node *t);

/* manual.c: a table's head, and a row of it; each file prints its own tables */
void mc_nn_manual_head(struct mc_nn_text *t, const char *title, const char *second);
void mc_nn_manual_row(struct mc_nn_text *t, const char *name, const struct mc_nn_field *fields,
                      const char *doc, bool code);
void mc_nn_manual_acts(struct mc_nn_text *t);
void mc_nn_manual_inits(struct mc_nn_text *t);
void mc_nn_manual_rules(struct mc_nn_text *t);
void mc_nn_manual_losses(struct mc_nn_text *t);
void mc_nn_manual_schedules(struct mc_nn_text *t);
void mc_nn_manual_settings(struct mc_nn_text *t);

/* model.c: if the line is a setting of the training, stores it and returns true. */
bool mc_nn_setting(mc_net *net, const struct mc_nn_line *line);
/* Checks of a setting's words; they report what is wrong. */
bool mc_nn_loss_check(const struct mc_nn_line *line, const char *at);
/* The loss with that of a line `also`: the mean of another formula. */
mc_node *mc_nn_also(mc_net *net, const char *also, mc_node *loss, mc_node *target);
bool mc_nn_also_check(const struct mc_nn_line *line, const char *at);
bool mc_nn_penalty_check(const struct mc_nn_line *line, const char *at);
bool mc_nn_rule_check(const struct mc_nn_line *line, const char *at, double *rate);
bool mc_nn_schedule(const struct mc_nn_line *line, const char *at, double epoch, double epochs,
                    double *factor);
bool mc_nn_loss_labels(const char *loss);           /* are its targets integers? */
const char *mc_nn_loss_accuracy(const char *loss);  /* the accuracy for this loss; or NULL */

#endif

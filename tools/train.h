/* train.h: what the parts of `monochord train` and `monochord predict` share.
 *
 * Invariant: all that a run goes on from is in its parameters and in struct progress; the order of the data,
 * their augmentation and the rate follow from these and the model's text.  So a run that was broken off ends
 * with the same bits. */
#ifndef TRAIN_H
#define TRAIN_H

#include "tool.h"
#include <monochord_nn.h>

struct options {
    const char *model, *data, *save;
    const char *report, *curve;               /* NULL: none */
    const char *lines[16];                    /* of the model, after its own: "epochs 3" */
    int nlines;
    char *preset;                             /* what save points at where nobody said */
    long seed, seconds;                       /* between two checkpoints */
    double temperature;                       /* of the text that a model of characters writes; 0: none */
    const char *ranks;                        /* what started them: "mpi", "tcp"; NULL: one process */
    const char *devices;                      /* "cuda0,cuda1": one a rank; NULL: that of the flag device */
    long parts;                               /* of a batch; 0: one a rank */
    bool shard;                               /* the rule's states are divided among the ranks */
    bool resume, anew, quiet;
    bool maybe;                               /* --resume auto: as --resume if there is a checkpoint */
};

/* One epoch, as it ended. */
struct epoch { /* where nothing is wrong or right, errors are the losses */
    double loss, error, test_loss, test_error, rate, seconds;
};

struct progress {
    int64_t epoch, batch, step;  /* what comes next; steps done */
    /* sums over the epoch's examples; the first two as when they were looked at last */
    double cost, wrong, seen;
    double seconds;              /* spent on this epoch before it was broken off */
    int64_t best;                /* the epoch with the least test error, -1: none */
    int nhistory, cap;
    struct epoch *history;
};

/* A model with its functions. */
struct model {
    struct text text;            /* its lines */
    mc_graph *g;
    mc_net *net;
    mc_function *step, *test;    /* NULL until needed */
    int classes;                 /* that it tells apart; of numbers, how many it gives */
    int64_t places;              /* classes that it gives for an example; 1: the example's own */
    bool numbers;                /* it learns numbers, not classes */
    bool errors;                 /* its loss says what is wrong: a share of the examples */
};

/* A run as it was at a moment. */
struct snapshot {
    int n, nparam;               /* arrays; those that are parameters come first */
    char **name;
    mc_array **value;
    struct progress p;           /* its history is among the values */
};

struct run {
    struct options o;
    struct model m;
    mc_comm *comm;               /* NULL: one rank */
    int errors;                  /* where complaints go meanwhile: ranks_hush; 0: nowhere else */
    mc_learner *learner;         /* instead of m.step, where batches are divided */
    mc_function *speak;          /* the predictor that writes text; NULL until needed */
    mc_data *train, *held;       /* what is learned, what is tested with */
    mc_batches *batches, *test_batches;
    struct progress p;
    struct snapshot *last;       /* as it was when it was saved last, or began */
    struct snapshot *best;       /* of the best epoch; only where the model has patience */
    /* this epoch, the last checkpoint, the last look at the sums: on the clock */
    double began, saved, looked;
    double saving;               /* seconds that took */
    bool newer;                  /* an epoch has ended since */
    bool kept;                   /* there is a checkpoint of this run */
    bool unsaved;                /* the last one could not be written */
};

struct findings;

/* ---- monochord_train_options.c ---- */
/* false: complained; to options_free in any case */
bool options_read(struct options *o, int argc, char **argv);
void options_free(struct options *o);

/* ---- monochord_train_model.c ---- */
/* name: a file, or a model that is built in.  False: complained. */
bool model_find(struct text *out, const char *name);
bool model_make(struct model *m, const char *name, long seed, const char *const *lines, int nlines);
/* csv:FILE, or a name that ends in .csv or .tsv, with settings behind it or none */
bool is_table(const char *where);
bool is_text(const char *where); /* text:FILE, with settings behind it or none */
char *table_file(const char *where); /* the file alone; anything else as it is.  To free */
/* The place of data with what the model's loss tells of it: a table's last column is a label or a number.  To
 * free. */
char *model_data(const struct model *m, const char *where);
void model_free(struct model *m);
/* examples and what is learned of them */
bool model_fits(const struct model *m, const mc_data *d, const int64_t *dims, const char *where);
/* examples alone */
bool model_takes(const struct model *m, const mc_data *d, const int64_t *dims, const char *where);
/* A batch in the shape that the model's input has; to mc_array_unref. */
mc_array *model_input(const struct model *m, const mc_array *x);

/* ---- monochord_train_snapshot.c ---- */
/* NULL: a parameter is not finite, ill says which */
struct snapshot *snapshot_take(const struct run *r, struct text *ill);
/* The parameters and how far, nothing else.  Every rank calls it; the rule's states are in that of the first
 * alone. */
struct snapshot *snapshot_params(const struct run *r);
/* The names of what it has, each with an array of its dtype and shape; no rank waits for others. */
struct snapshot *snapshot_like(const struct run *r);
bool snapshot_put(struct run *r, const struct snapshot *s);            /* the parameters as they were */
bool snapshot_return(struct run *r, const struct snapshot *s);         /* and how far the run was */
void snapshot_free(struct snapshot *s);
bool snapshot_finite(const mc_array *a);                                /* are all numbers? */
void snapshot_add(struct snapshot *s, const char *name, mc_array *value); /* takes value over */
#define BEST "best/"         /* before the names of the best epoch's parameters */
enum { PROGRESS_NUMBERS = 8, EPOCH_NUMBERS = 6 }; /* of struct progress that are saved; of struct epoch */

/* ---- monochord_train_save.c ---- */
/* The file appears whole or not at all, the one before it stays as FILE.old.  False: complained, what was
 * there is there. */
bool snapshot_save(const struct run *r, const struct snapshot *s);
/* nothing but checkpoints has their names; else complains */
bool checkpoint_room(const struct options *o);
/* FILE, or FILE.old where that is damaged */
bool checkpoint_load(struct run *r);
/* For predict.  words: names of the classes or of the targets, and of the columns, lines each. */
struct words { struct text classes, columns, data; };
bool checkpoint_model(struct model *m, const char *path, struct words *w);
const char *word_at(const struct text *lines, int k, char out[64]); /* line k; "" where there is none */

/* by the end of the name: .npz or .safetensors */
bool is_checkpoint(const char *name);
void words_free(struct words *w);

/* ---- monochord_build.c ---- */
/* Has the file been made by monochord build? */
bool is_bundle(const char *path);
/* The model of a bundle, without its parameters, and its functions; m->test is set. */
bool bundle_model(struct model *m, const char *path, struct words *w, mc_function **predictor);

/* ---- monochord_train_ranks.c: without ranks, as if this were the only one ---- */
bool ranks_open(struct run *r);
/* has mpirun or torchrun started this process as another rank than 0? */
bool ranks_other(void);
bool ranks_first(const struct run *r);              /* the rank that speaks and writes */
bool ranks_all(const struct run *r, bool good);     /* is this so in all ranks? */
int ranks_most(const struct run *r, int n);         /* the largest of all ranks'; -1: lost, and said */
enum { STRICT_PARTS = 8 };      /* of a batch with deterministic=strict, unless the user says otherwise */
bool ranks_strict(void);                           /* is the number of parts fixed by deterministic=strict? */
bool ranks_compile(struct run *r);                  /* sets r->learner */
bool ranks_agree(struct run *r);                    /* are all about to make the same steps? */
void ranks_saved(const struct run *r);              /* a checkpoint was written, or none yet */
void ranks_signal(const struct run *r);             /* a signal came: ends by force soon */
void ranks_calm(void);                              /* all have seen it: no force is needed */
void ranks_hush(struct run *r);                     /* what ranks complain of from here on is kept, */
void ranks_speak(struct run *r, bool tell);         /* until here: the first rank with a complaint tells it */
bool devices_good(const char *said);                /* is that a list of devices?  false: complained */
/* monochord_train_devices.c: sets the flag device to that of this rank, and starts a process for each of the
 * other devices where nobody else has.  False: complained. */
bool ranks_devices(struct options *o);
bool free_port(char out[16]); /* a port of this machine that nobody has, as text; false: complained */
void ranks_wait(void);                              /* for the end of the processes that it has started */
void ranks_close(struct run *r, bool alone);        /* alone: the others still go on, and are ended */

/* ---- monochord_train_elastic.c ---- */
enum { MOST_RANKS = 65536 };
int elastic_ranks(const char *ranks);               /* N of mpi:N; else 0 */
int elastic_train(const struct options *o, int argc, char **argv); /* the exit status */

/* ---- monochord_train_test.c ---- */
struct mistake {
    int64_t example;
    int32_t label, answer;
    double sure;                 /* the probability that was given to the answer */
};
struct findings {
    double loss, error;
    int64_t *confusion;          /* (classes, classes): label, answer; NULL: of places none is kept */
    struct mistake *worst;       /* the surest first */
    int nworst, classes;
    double *truth, *guess;       /* of numbers: (n, classes) each, in the order of the data */
    int64_t n;
};
/* How well numbers are met: the share of the variance that is explained, 1 - sum (t - y)^2 / sum (t - mean
 * t)^2 (NaN where all t are the same); the mean of |t - y|, and its largest. */
struct fit { double r2, mean_error, worst_error, least, most; int64_t worst; };
struct fit fit_of(const struct findings *f, int target);
enum { MOST_MISTAKES = 40 };
/* All of the test batches; f may have no confusion and no worst: then only loss and error. */
bool test_run(struct model *m, mc_batches *b, struct findings *f);
/* The same with the batches divided among ranks; all have the findings of all.  Every rank calls it. */
bool test_divided(struct run *r, struct findings *f);
bool findings_make(struct findings *f, const struct model *m);
void findings_free(struct findings *f);

/* ---- monochord_train_show.c ---- */
void show_progress(const struct run *r, bool force); /* on a terminal: one line that is written over */
void show_epoch(const struct run *r, const struct epoch *e);
void show_curve(const struct run *r);
void show_confusion(const struct findings *f, const mc_data *d);
void show_fits(const struct findings *f, const mc_data *d);
/* "error 0.72%, loss 0.0290", and of a text the bits a character */
void show_result(const struct findings *f, const struct model *m, const char *where);

/* ---- monochord_train_text.c ---- */
/* Text that the model writes; false: complained. */
bool sample_text(struct run *r, struct text *out);
bool show_sample(struct run *r); /* prints it, if the data is a text */

/* ---- monochord_train_draw.c: into a page ---- */
void draw_curves(struct text *t, const struct run *r);
bool curve_write(const struct run *r); /* the curve of errors alone, as SVG, to where the options say */
/* v: (rows, columns, channels); says: what stands over it when one points at it. */
void draw_picture(struct text *t, const uint8_t *v, int64_t rows, int64_t columns, int channels, int wide,
                  const char *says);
bool draw_can(const mc_data *d);       /* are its examples pictures? */
void draw_example(struct text *t, const mc_data *d, int64_t i, int wide, const char *says);
static inline uint8_t draw_byte(double v) { return (uint8_t)(v <= 0 ? 0 : v >= 1 ? 255 : v * 255 + 0.5); }

/* ---- monochord_train_fit.c: numbers in a page ---- */
void draw_fits(struct text *t, const struct run *r, const struct findings *f);

/* ---- monochord_train_see.c ---- */
void draw_filters(struct text *t, const struct run *r);
void draw_way(struct text *t, const struct run *r);

/* ---- monochord_train_plans.c ---- */
void plans_add(struct text *t, const mc_function *f); /* f has been profiled */

/* ---- monochord_train_net.c ---- */
void draw_network(struct text *t, const struct run *r);
void layer_gives(struct text *t, const mc_layer *l);     /* its sizes without the batch: 32×24×24 */

/* ---- monochord_train_report.c ---- */
void html_add(struct text *t, const char *s); /* its signs as HTML writes them */
void text_count(struct text *t, double value);  /* with commas: 569,606 */
bool report_write(struct run *r, const struct findings *f, const char *extra_html);

/* ---- monochord_train.c ---- */
bool train_floats(void); /* floatX is float32 unless the user said something; false: complained */
int train_and_report(const struct options *o, const char *extra_html); /* the exit status */

/* ---- monochord_demo_export.c ---- */
/* Exports the checkpoint's model, compiles it, and compares it with the library on the data's test set.
 * False: complained. */
bool demo_export(const char *checkpoint, const char *data);

#endif

/* monochord_nn.h: networks of layers, written on monochord.h alone.
 *
 * A net is a graph's layers in order.  Each is made from one line of text, the same line that a model file
 * has:
 *
 *     mc_flag_set("floatX", "float32");
 *     mc_graph *g = mc_graph_new();
 *     mc_net *net = mc_net_new(g, NULL, 1);
 *     mc_net_add(net, "input 1x28x28");
 *     mc_net_add(net, "conv %d 5x5 tanh", 32);
 *     mc_net_add(net, "pool 2x2");
 *     mc_net_add(net, "dense 10 softmax");
 *     mc_net_add(net, "rule momentum rate=0.01");
 *     mc_function *train = mc_net_trainer(net), *test = mc_net_tester(net);
 *     float cost, error;
 *     if (!train || mc_call(train, MC_IN(images, labels), MC_OUT(&cost, &error)) < 0) puts(mc_last_error());
 *
 * A layer is a formula over variables of the graph: its input, named as the layer it comes from, and its
 * parameters, named layer_W, layer_b; mc_layer_text shows it.  So a cost of your own is mc_formula(g,
 * "mean(sqr(dense1 - t))").
 *
 * The general rules are those of monochord.h.  Builders always return something usable: after a mistake the
 * first message stays with the graph (mc_error).  A NULL net, layer, data or batches, as makers return that
 * failed, may be handed on: that is an error again, and a layer or data that are not there have no
 * properties.
 *
 * Layers, texts, updates and parameters belong to their net, and live as long.  A net belongs to one thread
 * at a time, as its graph does; functions that are made from it are ordinary functions, which stay when it is
 * freed.
 *
 * docs/networks.md has the words of a line; mc_nn_manual prints the tables they are read from. */
#ifndef MONOCHORD_NN_H
#define MONOCHORD_NN_H

#include <monochord.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------- nets ---- */

typedef struct mc_net mc_net;     /* the layers of a graph, and the settings of its training */
typedef struct mc_layer mc_layer; /* a formula, its parameters, its shape; belongs to its net */

/* An empty net in a graph; the caller's, to be freed by mc_net_free.  prefix goes in front of every name
 * that the net gives in the graph, so that a graph may have several nets (NULL: none).  All random
 * numbers, those of initial values too, follow from the seed. */
MC_API mc_net *mc_net_new(mc_graph *g, const char *prefix, uint64_t seed);
/* frees it, before its graph; parameters and functions stay */
MC_API void mc_net_free(mc_net *net);
MC_API mc_graph *mc_net_graph(const mc_net *net);  /* the graph that it was made in */

/* Adds one line, printf-like: a layer, or a setting of the training.  The layer's input is the one before
 * it, or those it names.  Returns the layer; after a mistake, or where the line is a setting, one without
 * a node. */
MC_API mc_layer *mc_net_add(mc_net *net, const char *line, ...) MC_FORMAT(2, 3);
/* Adds a whole model from a text: lines as those of mc_net_add, # begins a comment.  A mistake shows
 * `name`, the line and a caret. */
MC_API mc_status mc_net_read(mc_net *net, const char *name, const char *text);
MC_API mc_status mc_net_load(mc_net *net, const char *path); /* adds a whole model from a file */

/* -------------------------------------------------------------------------------- layers ---- */

/* What a layer computes is a node of the graph, of which there are two: for training and for use.  Layers
 * and texts belong to the net. */

/* with dropout, noise and the batch's statistics, or without */
enum mc_pass { MC_TRAINING, MC_DETERMINISTIC };

MC_API int mc_net_nlayers(const mc_net *net);                           /* the number of layers */
/* The i-th layer; -1: the last; NULL: no such layer. */
MC_API mc_layer *mc_net_layer(const mc_net *net, int i);
/* The layer of that name; NULL if there is none. */
MC_API mc_layer *mc_net_find(const mc_net *net, const char *name);
MC_API const char *mc_layer_name(const mc_layer *l);                    /* its name: "conv1" */
/* the first word of its line: "conv" */
MC_API const char *mc_layer_kind(const mc_layer *l);
MC_API int mc_layer_ninputs(const mc_layer *l);                         /* the number of layers it reads */
/* The i-th of them; NULL: no such layer. */
MC_API mc_layer *mc_layer_input(const mc_layer *l, int i);
MC_API mc_node *mc_layer_node(const mc_layer *l, enum mc_pass pass);    /* what it computes, as a node */
/* Axes of what it computes, the batch too. */
MC_API int mc_layer_rank(const mc_layer *l);
/* Their sizes; -1: not known before the call. */
MC_API const int64_t *mc_layer_dims(const mc_layer *l);
/* Its formula: "conv1 = tanh(conv(x, conv1_W) + ...)". */
MC_API const char *mc_layer_text(const mc_layer *l, enum mc_pass pass);
/* Prints a table: layers, shapes, parameters. */
MC_API mc_status mc_net_print(const mc_net *net, FILE *to);

/* ---------------------------------------------------------------------------- parameters ---- */

/* A parameter is a shared variable with tags.  Tags: a text of words, each of which a parameter must have,
 * or with a minus in front must not; NULL or "": all of the model.  Layers tag theirs trainable,
 * regularizable, or batch_norm_stat.  What is no part of the model is tagged state and only listed where
 * that word stands: what an update rule remembers, the rate, the stream of random numbers. */

typedef struct mc_parameter { /* one parameter; its name is NULL where there is none */
    const char *name;  /* in the graph and in files: the same as long as the lines are */
    mc_shared *shared;
    mc_layer *layer;   /* NULL: of no layer */
} mc_param;
/* The i-th parameter with these tags; its name is NULL where i is beyond the last. */
MC_API mc_param mc_net_param(const mc_net *net, const char *tags, int i);
/* How many numbers the parameters with these tags have. */
MC_API int64_t mc_net_count(const mc_net *net, const char *tags);
/* Sets the tags of a shared variable for functions made from now on.  One that an expression uses becomes a
 * parameter by that: listed, saved, learned if it is trainable.  A layer's without the word trainable
 * stays as it is. */
MC_API mc_status mc_net_tag(mc_net *net, mc_shared *s, const char *tags);

/* Saves the parameters with these tags, one array a parameter: as .safetensors if path ends so, else as .npz.
 * The file appears whole or not at all. */
MC_API mc_status mc_net_save_params(const mc_net *net, const char *path, const char *tags);
/* Loads the parameters with these tags from such a file.  Every name and shape is checked before anything
 * changes. */
MC_API mc_status mc_net_load_params(mc_net *net, const char *path, const char *tags);

/* Saves all parameters as a PyTorch state dict has them: modules' names, axes in their order, filters
 * unflipped (docs/networks.md).  A module has its layer's name unless a line of names, which may be NULL,
 * says otherwise: "conv1 = features.0", or "bn1 = features.1 epsilon=0.001" where a batch norm there has
 * another epsilon than 1e-5.  "dense1 = none": the layer is left out.  MC_EUNSUPPORTED: a layer has no
 * counterpart. */
MC_API mc_status mc_net_save_torch(const mc_net *net, const char *path, const char *names);
/* Loads all parameters from such a file.  A layer that is `none` keeps its own; a line "none = fc" passes
 * over a module.  Every name and shape is checked before anything changes. */
MC_API mc_status mc_net_load_torch(mc_net *net, const char *path, const char *names);

/* ------------------------------------------------------------------------------ training ---- */

/* The settings of the training, and functions that train. */

/* ---- settings ---- */

typedef struct mc_training { /* what the lines that are no layers said; presets where they did not */
    int64_t batch, epochs, patience;     /* patience: epochs without a better one; 0: never stop early */
    double rate;                         /* the rule's, before any schedule */
    const char *loss, *rule, *schedule;  /* the words of their lines: "momentum rate=0.01" */
    const char *augment;                 /* "shift=2 flip=true"; "": not at all */
} mc_training;
/* the settings; they belong to the net */
MC_API const mc_training *mc_net_training(const mc_net *net);
/* The rate that the schedule gives at an epoch. */
MC_API double mc_net_rate(const mc_net *net, double epoch);
/* Sets the rate, of functions that are compiled too. */
MC_API mc_status mc_net_set_rate(mc_net *net, double rate);

/* ---- costs ---- */

/* Made on first use from the last layer and an input `t`. */

/* the input t: what the last layer should give */
MC_API mc_node *mc_net_target(mc_net *net);
MC_API mc_node *mc_net_cost(mc_net *net, enum mc_pass pass);    /* the mean of the loss, with penalties */
/* How much of the batch is wrong; NULL: the loss cannot say. */
MC_API mc_node *mc_net_wrong(mc_net *net, enum mc_pass pass);

/* ---- functions ---- */

/* Functions of the net's inputs and t, in this order; the caller's, to be freed by mc_function_free.  NULL
 * on failure. Where the loss cannot say what is wrong, that result is left out.  Arrays are taken as they
 * are: bytes are 0 to 1 in batches only. */

MC_API mc_function *mc_net_trainer(mc_net *net);    /* results: cost, wrong; with all updates */
/* Cost, wrong and the last layer's result, of the deterministic pass. */
MC_API mc_function *mc_net_tester(mc_net *net);
MC_API mc_function *mc_net_predictor(mc_net *net);  /* of the inputs alone: the last layer's result */
/* The trainer without results, so that nothing needs to come home after each step: cost and wrong, times
 * the examples, are added up beside the parameters. */
MC_API mc_function *mc_net_learner(mc_net *net);
/* The sums of cost and of wrong since they were set. */
MC_API mc_status mc_net_sums(const mc_net *net, double sums[2]);
MC_API mc_status mc_net_set_sums(mc_net *net, const double sums[2]); /* sets these sums, for one to zeros */

/* ---- on many ranks ---- */

typedef struct mc_learner mc_learner; /* a net that learns from parts of batches, on one rank or many */
/* Learns as mc_net_learner does, but divides each batch of at most `batch` examples into `parts` (0: one a
 * rank), which the ranks of comm (NULL: one rank) compute; each rank has the whole batch and takes its
 * share. How many ranks there are changes no bit of the result, if they and parts are powers of two; the
 * number of parts does. The gradients of the parts are averaged; normalisation has the means of its part.
 * The caller's, to be freed by mc_learner_free before net and comm. NULL: mc_last_error. docs/ranks.md */
MC_API mc_learner *mc_learner_new(mc_net *net, mc_comm *comm, int64_t batch, int64_t parts);
/* The same results with the states of the update rule divided among the ranks: each updates its share of the
 * parameters.  The rule has neither max_norm nor clip. */
MC_API mc_learner *mc_learner_sharded(mc_net *net, mc_comm *comm, int64_t batch, int64_t parts);
/* The i-th state of the update rule: its name, and a variable of its dtype and shape; the same for any number
 * of ranks.  The name is NULL where i is beyond the last. */
MC_API mc_param mc_learner_state_like(const mc_learner *l, int i);
/* Its value, whole.  Every rank calls it for each i, from 0; to mc_array_unref. */
MC_API mc_array *mc_learner_state(mc_learner *l, int i);
/* Sets it from a whole one, of which a rank keeps its share. */
MC_API mc_status mc_learner_set_state(mc_learner *l, const char *name, const mc_array *value);
MC_API int64_t mc_learner_bytes(const mc_learner *l, int64_t *whole); /* of states on this rank; if whole */
/* What each part of this rank calls: for its profile, if the flag profile was set. */
MC_API const mc_function *mc_learner_part(const mc_learner *l);
/* Are the version, the flags that change results, the net, the parts, and `more`, lines of the program's own
 * (NULL: none), the same in all ranks?  MC_ECHECK in all of them, with what differs. The first step asks if
 * the program has not. */
MC_API mc_status mc_learner_agree(mc_learner *l, const char *more);
/* for nets of one input */
MC_API mc_status mc_learner_step(mc_learner *l, const mc_array *x, const mc_array *t);
MC_API void mc_learner_free(mc_learner *l); /* NULL is fine */

/* ---- update rules ---- */

/* Updates for a function of your own: .update_of = u.of, .update = u.to, .nupdate = u.n.  They belong to
 * the net. */

typedef struct mc_updates { /* pairs of a variable and its new value, n of them; none after a mistake */
    mc_node **of, **to;
    int n;
} mc_updates;
/* The updates of a rule, "momentum rate=0.01", for all trainable parameters, with running averages; NULL:
 * the model's own rule. */
MC_API mc_updates mc_net_updates(mc_net *net, mc_node *cost, const char *rule);
/* The updates of a rule for any shared variables and any gradients (NULL: the cost's). */
MC_API mc_updates mc_updates_of(mc_net *net, mc_node *cost, int n, mc_shared *const *params,
                                mc_node *const *grads, const char *rule);
/* The same for a graph without a net: mc_rule_updates(g, NULL, "adam rate=0.002", cost, n, params, NULL).
 * The updates belong to the graph; n = 0 after a mistake (mc_error).  What the rule remembers are shared
 * variables named after the parameter, W_m and W_v: a second call with the same rule goes on where the first
 * is.  The rate is the shared variable `rate`, read at each call of the function; the number of steps is
 * `step`.  A prefix, "critic" for `critic_rate` and `critic_step`, lets a graph have several rules at
 * different rates. */
MC_API mc_updates mc_rule_updates(mc_graph *g, const char *prefix, const char *rule, mc_node *cost, int n,
                                  mc_shared *const *params, mc_node *const *grads);

/* ------------------------------------------------------------------- parts, for formulas ---- */

/* Parts of costs, as nodes, for a cost of your own.  Words are those of the lines of a model:
 * docs/layers.md. */

/* A loss: one number for each example, or each of its outputs: mc_loss(net, "huber delta=2", prediction,
 * target). */
MC_API mc_node *mc_loss(mc_net *net, const char *loss, mc_node *prediction, mc_node *target);
/* An accuracy: 1 where right, else 0: "categorical", "top 5", "binary threshold=0.5". */
MC_API mc_node *mc_accuracy(mc_net *net, const char *accuracy, mc_node *prediction, mc_node *target);
/* A loss as one number: its mean, sum, or normalized_sum (over the sum of the weights); weights may be
 * NULL. */
MC_API mc_node *mc_aggregate(mc_net *net, const char *mode, mc_node *loss, mc_node *weights);
/* The sum of a penalty, "l2 0.0005", over the parameters with these tags (NULL: regularizable) of one
 * layer, or of all. */
MC_API mc_node *mc_penalty(mc_net *net, const char *penalty, mc_layer *layer, const char *tags);
/* x scaled so that no norm over axes ("axis=[1, 2]"; NULL: those of one unit, as the rank says) is above
 * max. */
MC_API mc_node *mc_norm_constraint(mc_net *net, mc_node *x, double max, const char *axis);
/* n nodes scaled by one factor so that the norm of all together is not above max, into out[n], which may
 * be x. */
MC_API mc_status mc_total_norm_constraint(mc_net *net, int n, mc_node *const *x, double max, mc_node **out);
/* Initial values, drawn from the net's stream; the caller's array: mc_init(net, "glorot_uniform(relu)",
 * MC_SHAPE(784, 10)). */
MC_API mc_array *mc_init(mc_net *net, const char *init, int rank, const int64_t *dims);

/* Docs/layers.md: every kind of layer, rule, loss, initial value, with its settings. */
MC_API mc_status mc_nn_manual(FILE *to);

/* ---------------------------------------------------------------------------------- data ---- */

/* Labelled examples in memory: pictures as bytes, (n, channels, rows, columns), or numbers of any shape, and
 * for each one the number of its class, or a row of numbers to learn, its targets.  Data never change, so any
 * thread may read them.  Numbers of examples and classes are not checked. */

/* ---- examples ---- */

typedef struct mc_data mc_data;      /* examples and their labels; the maker's, to be freed by mc_data_free */
enum mc_part { MC_TRAIN, MC_TEST };  /* which part of a set */

/* Opens a set of examples.  where: "digits", which are generated, 60,000 and 10,000 (digits:N: N and N/6); a
 * folder with the files of MNIST (IDX, .gz or not) or of CIFAR (binary); a .npz or .safetensors with
 * x_train, y_train, x_test, y_test, or x and y; csv:FILE, a table as text with settings behind it, as in
 * csv:houses.csv:target=price (docs/networks.md); text:FILE, the characters of a text, with settings behind
 * it; a folder with a folder of pictures (PNG, PPM, PGM) for each class, or with two such, train and test;
 * or one IDX file of pictures.  Where nothing is said of parts, every tenth example is MC_TEST; of a text,
 * the last tenth.  NULL: mc_last_error. */
MC_API mc_data *mc_data_open(const char *where, enum mc_part part);
/* Draws digits of 28x28, the same bits on every machine. */
MC_API mc_data *mc_data_digits(int64_t n, uint64_t seed);
/* Examples of your own.  The arrays are held, not copied, where they have a dtype that serves.  x has
 * examples along its first axis; labels are whole numbers, one for each example, or one for each of its
 * places: of examples (n, 3, 64, 64), (n, 64, 64).  classes: 0 for one more than the largest label. */
MC_API mc_data *mc_data_new(const mc_array *x, const mc_array *labels, int classes);
/* The same for numbers to learn: targets is (n, m) of any dtype, a row for each example. */
MC_API mc_data *mc_data_new_targets(const mc_array *x, const mc_array *targets);
MC_API void mc_data_free(mc_data *d);                  /* frees them, after all their batches */
MC_API const char *mc_data_text(const mc_data *d);     /* what they are: "generated digits" */
MC_API int64_t mc_data_count(const mc_data *d);        /* the number of examples */
MC_API int mc_data_rank(const mc_data *d);             /* the number of axes of one example */
MC_API const int64_t *mc_data_dims(const mc_data *d);  /* the sizes of one example */
MC_API int mc_data_classes(const mc_data *d);          /* the number of classes; 0: there are targets */
/* how many numbers are learned for each example; 0: classes */
MC_API int mc_data_targets(const mc_data *d);
/* The name of class k, "7", or the folder's; of target k, where there are targets.  Valid until the next
 * call. */
MC_API const char *mc_data_class(const mc_data *d, int k);
/* The name of number k of an example, where a table has one; NULL: none. */
MC_API const char *mc_data_column(const mc_data *d, int k);
/* how many classes an example has: 1; or one for each of its places, as of a picture; 0: there are targets */
MC_API int64_t mc_data_places(const mc_data *d);
/* the class of example i; -1: it has none, or one for each place */
MC_API int32_t mc_data_label(const mc_data *d, int64_t i);
/* target k of example i; NaN: there are none */
MC_API double mc_data_target(const mc_data *d, int64_t i, int k);
/* Writes it as a batch has it: bytes become 0 to 1. */
MC_API void mc_data_example(const mc_data *d, int64_t i, float *x);

/* ---- pictures ---- */

/* A PNG, PPM or PGM file as uint8 (1 or 3, rows, columns). */
MC_API mc_array *mc_image_load(const char *path);
/* A picture v (rows, columns, channels), of 1 or 3 channels, as a PNG in memory of *n bytes, to mc_free. */
MC_API void *mc_image_png(const uint8_t *v, int64_t rows, int64_t columns, int channels, size_t *n);

/* ---- batches ---- */

/* Batches of an epoch, made on a thread of their own.  What batch b of epoch e holds follows from the
 * seed, e and b alone.  One thread at a time may ask for them. */

typedef struct mc_batches mc_batches; /* where batches come from */
typedef struct mc_batch_spec { /* how batches are made */
    int64_t size;        /* examples; the last batch of an epoch may have fewer */
    /* another order each epoch; 0: the order of the data, and augment only crops, in the middle */
    int shuffle;
    uint64_t seed;
    /* "shift=2 flip=true crop=24x24": moved by up to 2, mirrored, a part; NULL: as they are */
    const char *augment;
    /* where the flag device names a GPU, up to 1 GiB of examples stay there, are augmented there, and
     * batches are arrays there */
    int resident;
} mc_batch_spec;
/* Batches of d, which must outlive them; the caller's, to be freed by mc_batches_free. */
MC_API mc_batches *mc_batches_new(const mc_data *d, const mc_batch_spec *spec);
MC_API void mc_batches_free(mc_batches *b);            /* ends their thread and frees them */
MC_API int64_t mc_batches_count(const mc_batches *b);  /* the number of batches of an epoch */
MC_API const int64_t *mc_batches_dims(const mc_batches *b); /* the sizes of one example in a batch, cropped */
/* Says what mc_batches_next gives next. */
MC_API void mc_batches_start(mc_batches *b, int64_t epoch, int64_t batch);
/* 1 with the next batch, its arrays valid until the next call and not the caller's; 0 after the last of
 * the epoch; a negative status on failure.  x: float32; t: int32 (n), or float32 (n, targets). */
MC_API int mc_batches_next(mc_batches *b, const mc_array **x, const mc_array **t);
/* Which of the data is the i-th of the last batch. */
MC_API int64_t mc_batches_example(const mc_batches *b, int64_t i);

#if !defined(MC_BUILD) /* messages show the line that made the mistake, as those of ops do */
#define mc_net_add(...) (mc_here(__FILE__, __LINE__), mc_net_add(__VA_ARGS__))
#define mc_net_read(...) (mc_here(__FILE__, __LINE__), mc_net_read(__VA_ARGS__))
#define mc_net_load(...) (mc_here(__FILE__, __LINE__), mc_net_load(__VA_ARGS__))
#define mc_net_cost(...) (mc_here(__FILE__, __LINE__), mc_net_cost(__VA_ARGS__))
#define mc_net_wrong(...) (mc_here(__FILE__, __LINE__), mc_net_wrong(__VA_ARGS__))
#define mc_net_trainer(...) (mc_here(__FILE__, __LINE__), mc_net_trainer(__VA_ARGS__))
#define mc_net_tester(...) (mc_here(__FILE__, __LINE__), mc_net_tester(__VA_ARGS__))
#define mc_net_learner(...) (mc_here(__FILE__, __LINE__), mc_net_learner(__VA_ARGS__))
#define mc_net_predictor(...) (mc_here(__FILE__, __LINE__), mc_net_predictor(__VA_ARGS__))
#define mc_net_updates(...) (mc_here(__FILE__, __LINE__), mc_net_updates(__VA_ARGS__))
#define mc_updates_of(...) (mc_here(__FILE__, __LINE__), mc_updates_of(__VA_ARGS__))
#define mc_rule_updates(...) (mc_here(__FILE__, __LINE__), mc_rule_updates(__VA_ARGS__))
#define mc_loss(...) (mc_here(__FILE__, __LINE__), mc_loss(__VA_ARGS__))
#define mc_accuracy(...) (mc_here(__FILE__, __LINE__), mc_accuracy(__VA_ARGS__))
#define mc_aggregate(...) (mc_here(__FILE__, __LINE__), mc_aggregate(__VA_ARGS__))
#define mc_penalty(...) (mc_here(__FILE__, __LINE__), mc_penalty(__VA_ARGS__))
#define mc_norm_constraint(...) (mc_here(__FILE__, __LINE__), mc_norm_constraint(__VA_ARGS__))
#define mc_init(...) (mc_here(__FILE__, __LINE__), mc_init(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif

#endif

/* learner.h: a net that learns on many ranks: parallel.c, its functions parts.c, and shard.c where the states
 * of the update rule are divided among them. */
#ifndef MC_NN_LEARNER_H
#define MC_NN_LEARNER_H

#include "nn/nn.h"

enum { FLAT, SUMS };            /* results of a part: gradients and changes; cost, wrong, weight */
#define GROUP "ranks"           /* of the graph */

enum { MOST_SLOTS = 8 };        /* states of one parameter; a rule has at most 3, its base as many */

/* This rank's share of the states: of all parameters, one after another as they lie in flat, elements
 * rank * each ... rank * each + each - 1; zeros behind the last. */
struct mc_shard {
    bool on;
    int64_t each, all;          /* elements of a share; of all parameters */
    int nparam, nslot;
    mc_shared **param;          /* in the order of flat */
    mc_shared *slot[MOST_SLOTS]; /* (each) */
    const char *after[MOST_SLOTS]; /* of a state's name, behind the parameter's: "_m" */
    mc_function *gather[MOST_SLOTS]; /* a slot of all ranks */
    mc_array *whole;            /* what gather[at] gave last; NULL */
    int at;
};

/* What one all_reduce takes: gradients of n parameters from `first` on, or, where `first` is behind the last,
 * the changes of all running averages. */
struct mc_bucket {
    int first, n;
    int64_t from, size;         /* elements, as they lie in the array of a part */
    const char *name;           /* of the input */
};

/* The array of a part has the gradients of n parameters, `all` elements, then changes of running averages,
 * `size` with them.  The nodes of parts.c. */
struct mc_layout {
    int n, nbucket;
    int64_t all, size;
    mc_shared **params;
    mc_node **own, **mean;      /* gradients and changes here, as vectors; mean gradients over all examples */
    mc_node **of_penalty;       /* gradients of penalties that are no part of `own`; NULL: there are none */
    struct mc_bucket *bucket;   /* none where states are divided */
    mc_node *own_sums, *weight; /* of a part; the share of its examples that it has */
    mc_node *in[2];             /* of step */
    const char *flat_name, *sums_name, *sums_all;
    mc_updates to;              /* has place for one more */
};

struct mc_learner {
    mc_net *net;
    mc_comm *comm;              /* NULL: one rank */
    int64_t parts, each;        /* parts of a batch; examples of one */
    int64_t batch;              /* the most examples of a batch */
    struct mc_layout layout;
    mc_function *whole;         /* NULL: the functions of parts are used for all batches */
    mc_function *part, *add, *step; /* NULL: not made yet */
    mc_array *nothing[2];       /* the results of a part without examples */
    mc_shared *rng;             /* NULL: the net draws nothing */
    uint64_t key;               /* word 0 of the stream; word 1 counts draws */
    bool any_order;             /* gradients of ranks may be added in any order; one part a rank */
    bool agreed;                /* all ranks are to make the same steps */
    struct mc_shard shard;
};

static inline const char *mc_learner_group(const struct mc_learner *r)
{
    return r->comm ? ", group='" GROUP "'" : "";
}
static inline const char *mc_learner_order(const struct mc_learner *r)
{
    return r->any_order ? ", order='any'" : "";
}

/* ---- parts.c ---- */
int64_t mc_nn_elements(mc_net *net, mc_shared *s);
bool mc_learner_makes(struct mc_learner *r); /* the formulas, and whole where it serves */
bool mc_learner_makes_parts(struct mc_learner *r); /* part, add and step */

/* ---- shard.c ---- */
/* The updates of a step: of states by this rank's share of the mean gradient, of all parameters by what all
 * ranks make of theirs. flat, sums: the names of the sum over this rank's parts, and of that over all.  n is
 * 0 on failure. */
mc_updates mc_shard_updates(struct mc_learner *r, const struct mc_layout *l, const char *flat,
                            const char *sums);
bool mc_shard_gathers(struct mc_learner *r); /* once the updates are made */
void mc_shard_free(struct mc_shard *s);
#endif

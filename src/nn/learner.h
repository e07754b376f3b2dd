/* learner.h: a net that learns on many ranks: parallel.c, and shard.c where the states of the update rule are
 * divided among them. */
#ifndef MC_NN_LEARNER_H
#define MC_NN_LEARNER_H

#include "nn/nn.h"

enum { FLAT, SUMS };            /* results of a part: gradients and changes; cost, wrong, examples */
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

struct mc_learner {
    mc_net *net;
    mc_comm *comm;              /* NULL: one rank */
    int64_t parts, each;        /* parts of a batch; examples of one */
    int64_t batch;              /* the most examples of a batch */
    mc_function *part, *add, *step;
    mc_array *nothing[2];       /* the results of a part without examples */
    mc_shared *rng;             /* NULL: the net draws nothing */
    uint64_t key;               /* word 0 of the stream; word 1 counts draws */
    bool any_order;             /* gradients of ranks may be added in any order */
    bool agreed;                /* all ranks are to make the same steps */
    struct mc_shard shard;
};

/* What flat has: gradients of n parameters, then changes of running averages; without these, `all`
 * elements. */
struct mc_layout { int n; int64_t all; mc_shared **params; mc_node **grad; };

static inline const char *mc_learner_group(const struct mc_learner *r)
{
    return r->comm ? ", group='" GROUP "'" : "";
}
static inline const char *mc_learner_order(const struct mc_learner *r)
{
    return r->any_order ? ", order='any'" : "";
}
int64_t mc_nn_elements(mc_net *net, mc_shared *s);

/* ---- shard.c ---- */
/* The updates of a step: of states by this rank's share of the mean gradient, of all parameters by what all
 * ranks make of theirs. flat, sums: the names of the sum over this rank's parts, and of that over all.  n is
 * 0 on failure. */
mc_updates mc_shard_updates(struct mc_learner *r, const struct mc_layout *l, const char *flat,
                            const char *sums);
bool mc_shard_gathers(struct mc_learner *r); /* once the updates are made */
void mc_shard_free(struct mc_shard *s);
#endif

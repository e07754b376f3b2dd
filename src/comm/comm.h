/* comm.h: ranks that work together.
 *
 *   communicator   one rank's place among `size` ranks; counted, as graphs and functions hold it
 *   engine         what carries bytes between ranks: threads of this process (local.c), MPI (mpi.c),
 *                  sockets (tcp.c). A row of functions. NCCL carries those of GPUs
 *                  (exec/cuda/nccl.c), beside an engine for the host's
 *
 * Invariants: what is reduced is added in one fixed tree over the ranks, ((0 + 1) + (2 + 3)) + ..., so that
 * every rank, by any engine, has the same bits; only where the program allows any order may NCCL choose one.
 * Before its data, a rank says what it takes part in; ranks that disagree get an error, all of them. On a
 * GPU they do so before the first time. */
#ifndef MC_COMM_H
#define MC_COMM_H

#include "value/value.h"

enum mc_ranks_op { RANKS_SUM, RANKS_MEAN, RANKS_MAX, RANKS_MIN, RANKS_N };
extern const char *const mc_ranks_ops[RANKS_N];

/* What a rank is about to do.  Equal in all ranks. */
struct mc_comm_call { char what[24]; int32_t reduce, dtype, root, program; int64_t n; };

struct mc_comm_engine {
    const char *name;
    /* bytes of every rank into y, in the order of the ranks */
    mc_status (*gather)(struct mc_comm *c, const void *x, size_t bytes, void *y);
    /* Block i of x goes to rank i, block i of y is from rank i: at[i] bytes from the start; at[size] is the
     * end. */
    mc_status (*exchange)(struct mc_comm *c, const char *x, const size_t *x_at, char *y, const size_t *y_at);
    void (*close)(struct mc_comm *c); /* frees c */
    void (*abort)(struct mc_comm *c); /* the others need not wait for this rank */
    /* a rank that has left, or -1; any thread may ask, also during a call.  NULL: not known */
    int (*left)(struct mc_comm *c);
};

struct mc_comm {
    const struct mc_comm_engine *engine;
    _Atomic int refs;
    int rank, size;
    void *own;                  /* the engine's */
    mc_status broken;           /* a call failed on the way: ranks no longer agree on where they are */
};

mc_comm *mc_comm_make(const struct mc_comm_engine *engine, int rank, int size, void *own);
mc_status mc_comm_left(int rank); /* the error that this rank has left */
static inline mc_comm *mc_comm_ref(mc_comm *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}
static inline void mc_comm_drop(mc_comm *c)
{
    if (c && atomic_fetch_sub(&c->refs, 1) == 1) {
        c->engine->close(c);
    }
}

/* y = x reduced over all ranks, n elements each; y may be x.  who: for messages. */
mc_status mc_comm_reduce_to(mc_comm *c, const char *who, enum mc_ranks_op how, mc_dtype d, const void *x,
                            void *y, int64_t n);
/* y, n elements, of the n * size of x: this rank's part of what is reduced */
mc_status mc_comm_scatter_to(mc_comm *c, const char *who, enum mc_ranks_op how, mc_dtype d, const void *x,
                             void *y, int64_t n);
/* y, n * size elements: x of all ranks, one after another */
mc_status mc_comm_gather_to(mc_comm *c, const char *who, mc_dtype d, const void *x, void *y, int64_t n);
/* x of rank root to all */
mc_status mc_comm_broadcast_to(mc_comm *c, const char *who, int root, mc_dtype d, void *x, int64_t n);

/* Does every rank say the same?  root, reduce: -1 where there is none */
mc_status mc_comm_meet(mc_comm *c, const char *who, int reduce, mc_dtype d, int root, int64_t n);

/* mpi.c */
mc_comm *mc_comm_mpi(void);
/* tcp.c */
mc_comm *mc_comm_tcp(void);
#endif

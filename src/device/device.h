/* device.h: a place where functions run: its memory, and who may use it when.  The processor is one.
 *
 * Invariant: a device that has been found is kept until the process ends. */
#ifndef MC_DEVICE_H
#define MC_DEVICE_H

#include "value/value.h"

enum { MC_DEVICE_MOST = 64 };   /* of one kind, in one process */
struct mc_device {
    const char *name;             /* "cpu", "cuda0" */
    int number;                   /* among those of its kind; -1: there is but one */
    size_t memory;                /* bytes in all; 0: not known */
    const struct mc_space *space; /* its memory, as arrays know it; NULL: it is the host's */
    const struct mc_device_ops *ops;
};
struct mc_device_ops {
    mc_status (*enter)(struct mc_device *d);   /* for this thread, before all else, until leave; nests */
    void (*leave)(struct mc_device *d);
    void *(*alloc)(struct mc_device *d, size_t bytes, const char *what); /* NULL: error */
    void (*free)(struct mc_device *d, void *p);
    /* contiguous, not cleared */
    mc_array *(*array)(struct mc_device *d, mc_dtype t, int rank, const int64_t *dims);
};
extern struct mc_device mc_host;
mc_status mc_device_unknown(const char *name); /* the error for it */

static inline mc_status mc_device_enter(struct mc_device *d) { return d->ops->enter(d); }
static inline void mc_device_leave(struct mc_device *d) { d->ops->leave(d); }

#endif

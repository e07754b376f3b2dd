/* device.h: a device runs functions and owns memory; a thread enters it before use.  The CPU is a device.
 *
 * Invariant: a device lives until the process ends. */
#ifndef MC_DEVICE_H
#define MC_DEVICE_H

#include "value/value.h"

enum { MC_DEVICE_MOST = 64 };   /* devices of one kind in a process */
struct mc_device {
    const char *name;             /* "cpu", "cuda0" */
    int number;                   /* index among devices of its kind; -1: the only one */
    size_t memory;                /* total bytes; 0: unknown */
    const struct mc_space *space; /* its memory space; NULL: host memory */
    const struct mc_device_ops *ops;
};
struct mc_device_ops {
    mc_status (*enter)(struct mc_device *d);   /* required before any other use by this thread; nests */
    void (*leave)(struct mc_device *d);
    void *(*alloc)(struct mc_device *d, size_t bytes, const char *what); /* NULL: error */
    void (*free)(struct mc_device *d, void *p);
    /* contiguous; elements are not initialised */
    mc_array *(*array)(struct mc_device *d, mc_dtype t, int rank, const int64_t *dims);
};
extern struct mc_device mc_host;
mc_status mc_device_unknown(const char *name); /* sets the error for an unknown device name */

static inline mc_status mc_device_enter(struct mc_device *d) { return d->ops->enter(d); }
static inline void mc_device_leave(struct mc_device *d) { d->ops->leave(d); }

#endif

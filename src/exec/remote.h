/* remote.h: functions of a backend's row for a device whose memory the host cannot address.
 *
 * Invariant: f->ptr holds device addresses; the host accesses them through the device's memory space
 * alone. */
#ifndef MC_REMOTE_H
#define MC_REMOTE_H

#include "exec/backend.h"

struct mc_remote {              /* first member of the backend's data of a shape plan */
    char *fixed;                /* constants and values of plan time, in one block */
    int64_t *at;                /* by value: offset in that block; -1: not there */
    int64_t *slot;              /* by input: offset in the arena */
    bool *read;                 /* by input: the device reads it */
    /* Steps whose part of a value moves, and where their parts begin, which is sent to `starts`. */
    int *moving, nmoving;
    int64_t *offset;
    char *starts;
    bool *renewed;              /* by value: of plan time, another when the plan has moved, and read there */
    int64_t sent;               /* how often the plan had moved when all these were sent */
};
static inline struct mc_remote *mc_remote_of(const struct mc_shape_plan *p) { return p->own; }
static inline mc_status mc_remote_put(const struct mc_function *f, void *to, const void *from, size_t n)
{
    return f->code->device->space->put(f->code->device->space, to, from, n);
}
static inline mc_status mc_remote_get(const struct mc_function *f, void *to, const void *from, size_t n)
{
    return f->code->device->space->get(f->code->device->space, to, from, n);
}

/* .input_bytes: copies of host inputs are at the start of the arena */
size_t mc_remote_inputs(const struct mc_function *f);
/* .shape: copies constants; makes p->own if it is NULL */
mc_status mc_remote_plan(struct mc_function *f, struct mc_shape_plan *p);
void mc_remote_forget(struct mc_function *f, struct mc_shape_plan *p);          /* .shape_free */
char *mc_remote_address(const struct mc_function *f, const struct mc_shape_plan *p, size_t value);
/* where the device reads the offset of the step's part; NULL: it does not move */
const int64_t *mc_remote_start(const struct mc_shape_plan *p, int step);
/* .begin: copies inputs, and what has changed since the plan moved */
mc_status mc_remote_upload_inputs(struct mc_function *f, const struct mc_shape_plan *p);
/* is it in the device's memory? */
bool mc_remote_is(const struct mc_function *f, const mc_array *a);
/* a copy on the host */
mc_array *mc_remote_fetch(struct mc_function *f, const struct mc_shape_plan *p, int value);
mc_status mc_remote_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a);
/* a copy on the device */
mc_array *mc_remote_copy_on_device(struct mc_function *f, const struct mc_shape_plan *p, int value);
/* before the steps: the destination of a result */
mc_status mc_remote_result_make(struct mc_function *f, const struct mc_shape_plan *p, int output,
                                const mc_arg *out);
/* after the steps: copies the result */
mc_status mc_remote_result_take(struct mc_function *f, const struct mc_shape_plan *p, int output);

#endif

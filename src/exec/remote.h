/* remote.h: functions of a backend's row for a device whose memory the host cannot touch.
 *
 * Invariant: f->ptr holds addresses of the device; the host reaches them through the device's space alone. */
#ifndef MC_REMOTE_H
#define MC_REMOTE_H

#include "exec/backend.h"

struct mc_remote {              /* what a shape plan owns begins with this */
    char *fixed;                /* constants and early values, one block */
    int64_t *at;                /* by value: its place in that block; -1 */
    int64_t *slot;              /* by input: its place in the arena */
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

/* .front: host inputs lie at the arena's beginning */
size_t mc_remote_inputs(const struct mc_function *f);
/* .shape: constants are sent; p->own is made if it is NULL */
mc_status mc_remote_plan(struct mc_function *f, struct mc_shape_plan *p);
void mc_remote_forget(struct mc_function *f, struct mc_shape_plan *p);          /* .forget */
char *mc_remote_address(const struct mc_function *f, const struct mc_shape_plan *p, size_t value);
mc_status mc_remote_upload_inputs(struct mc_function *f, const struct mc_shape_plan *p); /* for .begin: the inputs */
bool mc_remote_is(const struct mc_function *f, const mc_array *a);              /* in the device's memory? */
mc_array *mc_remote_fetch(struct mc_function *f, const struct mc_shape_plan *p, int value);   /* a copy */
mc_status mc_remote_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a);
/* a copy on the device */
mc_array *mc_remote_copy_on_device(struct mc_function *f, const struct mc_shape_plan *p, int value);
/* where a result goes */
mc_status mc_remote_result_make(struct mc_function *f, const struct mc_shape_plan *p, int output, const mc_arg *out);
/* it goes there */
mc_status mc_remote_result_take(struct mc_function *f, const struct mc_shape_plan *p, int output);

#endif

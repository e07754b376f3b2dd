/* set.c: the lines of an array along the axis of a node, and how threads share them. */
#include "heavy/lines/lines.h"

/* The axis is the first attribute of all ops on lines. */
static int axis_of(const mc_node *n, int rank)
{
    const int64_t axis = mc_attr_int(&n->attr[0]);
    return (int)(axis < 0 ? axis + rank : axis);
}

struct mc_line_set mc_line_set_of(const mc_node *n, const struct mc_type *x, int threads)
{
    struct mc_line_set s = { .lines = 1 };
    const int axis = axis_of(n, x->rank);
    for (int i = 0; i < x->rank; i++) {
        if (i != axis) {
            s.dims[s.axes++] = x->dims[i];
            s.lines *= x->dims[i];
        }
    }
    s.count = x->dims[axis];
    s.slots = s.lines >= threads ? threads : 1;
    s.within = s.slots == 1 ? threads : 1;
    return s;
}

struct mc_line_set mc_lines_at(const mc_node *n, const mc_array *x, const mc_array *y, int threads)
{
    struct mc_type t = { .dtype = x->dtype, .rank = x->rank };
    memcpy(t.dims, x->dims, (size_t)x->rank * sizeof *t.dims);
    struct mc_line_set s = mc_line_set_of(n, &t, threads);
    const int axis = axis_of(n, x->rank);
    for (int i = 0, to = 0; i < x->rank; i++) {
        if (i != axis) {
            s.stride[0][to] = x->strides[i];
            s.stride[1][to++] = y->strides[i];
        }
    }
    s.step[0] = x->strides[axis];
    s.step[1] = y->strides[axis];
    return s;
}

int64_t mc_line_offset(const struct mc_line_set *s, int array, int64_t line)
{
    int64_t at = 0;
    for (int i = s->axes; i-- > 0; line /= s->dims[i]) {
        at += line % s->dims[i] * s->stride[array][i];
    }
    return at;
}

void mc_line_each(const struct mc_line_set *s, mc_team_task *one, void *arg, double seconds)
{
    if (s->slots == 1) {
        for (int64_t i = 0; i < s->lines; i++) {
            one(arg, i, 0);
        }
        return;
    }
    mc_team_tasks(one, arg, s->lines, s->slots, s->slots, (double)(s->lines * s->count) * seconds);
}

void *mc_line_take(char *scratch, size_t *at, size_t bytes)
{
    char *to = scratch ? scratch + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return to;
}

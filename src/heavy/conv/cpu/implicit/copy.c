/* copy.c: the source of an implicit product, copied with the zeros around it. A task is the planes of one
 * channel, or a row of all channels where these are innermost.
 *
 * Invariant: every float of the copy that is read is written. */
#include "heavy/conv/cpu/implicit/plan.h"

/* One row of the copy: `lead` zeros, n elements, zeros up to `width`. An element is `unit` adjacent floats,
 * and takes `pitch` of the copy. */
static void copy_row(float *to, const float *from, int64_t lead, int64_t n, int64_t width, int64_t unit,
                     int64_t pitch, int64_t step)
{
    memset(to, 0, (size_t)(lead * pitch) * sizeof *to);
    if (step == unit && pitch == unit) {
        memcpy(to + lead * pitch, from, (size_t)(n * unit) * sizeof *to);
    } else if (unit == 1) {
        for (int64_t i = 0; i < n; i++) {
            to[lead + i] = from[i * step];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            memcpy(to + (lead + i) * pitch, from + i * step, (size_t)unit * sizeof *to);
        }
    }
    memset(to + (lead + n) * pitch, 0, (size_t)((width - lead - n) * pitch) * sizeof *to);
}

/* Row (i, j) of the copy of an image, from the image's element at `from`. */
static void copy_line(const struct implicit_call *x, float *to, const float *from, int64_t i, int64_t j,
                      int64_t unit)
{
    const struct implicit *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *size = s->pass == CONV_INPUTS ? s->out : s->in;
    const int64_t *stride = implicit_source_strides(x->r.p) + 2, row = i - d->before[0],
                  line = j - d->before[1];
    const int64_t n = MC_MIN(size[2], d->size[2] - d->before[2]);
    if (row < 0 || row >= size[0] || line < 0 || line >= size[1]) {
        memset(to, 0, (size_t)d->stride[2] * sizeof *to);
        return;
    }
    copy_row(to, from + row * stride[0] + line * stride[1], d->before[2], n, d->size[2], unit, d->stride[3],
             stride[2]);
}

static void copy_task(void *arg, int64_t task, int slot)
{
    const struct implicit_call *x = arg;
    const struct implicit *d = x->d;
    const int64_t channels = d->from * x->r.p->s.groups, unit = d->channels_last ? channels : 1;
    const int64_t *stride = implicit_source_strides(x->r.p);
    const char *at = x->r.at[x->r.p->s.pass == CONV_INPUTS ? CONV_Y : CONV_X];
    const int64_t each = d->channels_last ? d->size[0] * d->size[1] : channels, n = task / each,
                  i = task % each;
    const float *from = (const float *)(const void *)at + (x->first + n) * stride[0];
    float *to = implicit_floats(x, d->source_at) + n * d->image;
    (void)slot;
    if (d->channels_last) {
        copy_line(x, to + i * d->stride[2], from, i / d->size[1], i % d->size[1], unit);
        return;
    }
    for (int64_t j = 0; j < d->size[0] * d->size[1]; j++) {
        copy_line(x, to + i * d->stride[0] + j * d->stride[2], from + i * stride[1], j / d->size[1],
                  j % d->size[1], unit);
    }
}

void mc_implicit_copy(struct implicit_call *x)
{
    const struct implicit *d = x->d;
    const int64_t each = d->channels_last ? d->size[0] * d->size[1] : d->from * x->r.p->s.groups;
    mc_team_tasks(copy_task, x, x->n * each, x->r.threads, x->r.threads, (double)(x->n * d->image) * 2e-10);
}

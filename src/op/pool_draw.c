/* pool_draw.c: draws a cell of each window with probability proportional to its value.
 *
 * Invariant: a cell that is not above 0 is drawn only if no cell of the window is above 0. */
#include "op/pool_node.h"

static mc_status draw_infer(struct mc_infer *q)
{
    struct mc_pool_shape s = { .pass = POOL_FORWARD };
    TRY(mc_pool_type(q, 2, &q->in[0], &s, &q->out[0]));
    q->out[0].dtype = MC_INT64;
    if (!mc_is_float(q->in[0].dtype) || !mc_is_float(q->in[1].dtype)) {
        return mc_fail(MC_ETYPE, "pool_draw: x and u must be floats");
    }
    return mc_pool_fits(q, "the array of random numbers", &q->in[1], &q->out[0]);
}

static mc_node *draw_size(mc_node *n, int item, int axis)
{
    mc_node *i = mc_size_of(n->in[0], axis);
    int slot = mc_pool_slot(n, axis);
    (void)item;
    return slot < 0 ? i : mc_pool_size(n, 2, i, slot);
}

/* The flat index of the cell of the window at which the running sum reaches u times the total. Cells that
 * are not above 0 are skipped; if there are no others, it is the first cell. */
static int64_t draw_cell(const struct mc_pool_shape *s, const mc_array *x, const char *at, const int64_t u[3],
                         double random)
{
    int64_t chosen = -1, lo[3], hi[3];
    double total = 0, sum = 0;
    for (int i = 0; i < 3; i++) {
        int64_t first = u[i] * s->stride[i] - s->pad[i];
        lo[i] = MC_MAX(first, 0);
        hi[i] = MC_MIN(first + s->w[i], s->in[i]);
    }
    for (int turn = 0; turn < 2; turn++) { /* first the total, then the cell */
        for (int64_t a = lo[0]; a < hi[0]; a++) {
            for (int64_t b = lo[1]; b < hi[1]; b++) {
                for (int64_t c = lo[2]; c < hi[2]; c++) {
                    const int64_t cell[3] = { a, b, c };
                    int64_t off = 0, flat = 0, row = 1;
                    for (int k = s->rank - 1; k >= 0; k--) {
                        for (int i = 0; i < 3; i++) {
                            off += s->axis[i] == k ? cell[i] * x->strides[k] : 0;
                            flat += s->axis[i] == k ? cell[i] * row : 0;
                        }
                        row *= x->dims[k];
                    }
                    double v = mc_load_f64(x->dtype, at + off);
                    bool open = turn && sum <= random * total;
                    sum += v > 0 ? v : 0;
                    chosen = chosen < 0 || (open && v > 0) ? flat : chosen;
                }
            }
        }
        total = sum;
        sum = 0;
    }
    return chosen;
}

static mc_status draw_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_pool_shape s;
    const mc_array *x = in[0], *y = out[0];
    TRY(mc_pool_shape_at(n, in, &s));
    struct mc_walk w;
    if (!mc_walk_begin(&w, y->rank, y->dims, 0, 2, (char *[]){ y->data, in[1]->data },
                       (const int64_t *[]){ y->strides, in[1]->strides })) {
        return MC_OK;
    }
    do {
        int64_t u[3] = { 0 }, flat = 0, row = 1;
        const char *at = x->data;
        for (int k = s.rank - 1; k >= 0; k--) {
            bool pooled = false;
            for (int i = 0; i < 3; i++) {
                u[i] = s.axis[i] == k ? w.at[k] : u[i];
                pooled |= s.axis[i] == k;
            }
            at += pooled ? 0 : w.at[k] * x->strides[k];
            flat += pooled ? 0 : w.at[k] * row;
            row *= x->dims[k];
        }
        mc_store_i64(MC_INT64, w.p[0], flat + draw_cell(&s, x, at, u, mc_load_f64(in[1]->dtype, w.p[1])));
    } while (mc_walk_next(&w));
    return MC_OK;
}

static mc_node *build_draw(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_pool_how how = mc_pool_how(attr);
    (void)g;
    return mc_pool_draw_make(in[0], in[1],
                             (mc_node *[]){ in[2], nin > 3 ? in[3] : NULL, nin > 4 ? in[4] : NULL }, &how);
}

const struct mc_op mc_ops_pool_draw[] = {
    { .name = "pool_draw", .flags = OP_HIDDEN, .params = "x, u, ws, stride=None, pad=None, " POOL_ATTRS, .nout = 1, .shape_args = 0x1c,
      .build = build_draw, .infer = draw_infer, .size = draw_size, .eval = draw_eval, .disconnected = 0x1f,
      .doc = MANUAL("the flat index of a cell of each window of x, drawn with probability in proportion to its element, by uniform numbers u") },
};
const int mc_nops_pool_draw = (int)NELEM(mc_ops_pool_draw);

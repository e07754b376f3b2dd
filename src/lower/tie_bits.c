/* tie_bits.c: max poolings whose gradient goes to every cell that equals the maximum keep a bit for each cell
 * of a window, a byte in all, and their gradient reads these bytes in place of the cells.  So the cells, most
 * often the largest result of a net, need not be stored until then.
 *
 * requires: the order of axes is decided.  leaves: the same values.  On a backend with solvers for bits.
 *
 * Invariant: a pooling changes only where its gradient does, and windows have at most as many cells as a byte
 * has bits. */
#include "lower/lower.h"
#include "op/pool_node.h"

enum { KEY = 2 + POOL_NVECTOR }; /* the input of pool_spread that has the cells */

/* Do windows have 2 to POOL_BITS cells and not overlap? */
static bool has_small_windows(const mc_node *s)
{
    int64_t w[3], step[3], cells = 1;
    int n = 0, m = 0;
    bool good = mc_const_ints(s->in[2 + POOL_WS], w, 3, &n) &&
                mc_const_ints(s->in[2 + POOL_STRIDE], step, 3, &m);
    for (int i = 0; good && i < n; i++) {
        cells *= w[i];
        good = m == n && w[i] <= POOL_BITS && step[i] >= w[i];
    }
    return good && cells > 1 && cells <= POOL_BITS;
}

/* A gradient that every equal cell receives, of planes whose columns are likely to be contiguous. */
static bool fits(const mc_node *s)
{
    const struct mc_attr *axis = &s->attr[POOL_AXIS];
    return mc_pool_pass_of(s) == POOL_SPREAD && mc_pool_key_of(s->attr) == POOL_KEY_X && s->nin > KEY &&
           s->type.dtype == MC_FLOAT32 && axis->ints[axis->n - 1] == s->type.rank - 1 && has_small_windows(s);
}

/* Is p the pooling of which s is the gradient? */
static bool is_gradient_of(const mc_node *s, const mc_node *p)
{
    bool same = p->op->nout == 1 && mc_pool_pass_of(p) == POOL_FORWARD && p->in[0] == s->in[KEY] &&
                memcmp(p->in + 1, s->in + 2, POOL_NVECTOR * sizeof *s->in) == 0;
    for (int i = 0; same && i < POOL_NATTR; i++) {
        same = mc_attr_equal(&p->attr[i], &s->attr[i]);
    }
    return same;
}

/* The maxima of x and their bits; vector: window, stride and pad. */
static mc_node *maxima(const mc_node *n, mc_node *x, mc_node *const *vector, struct mc_attr *attr)
{
    static int64_t byte = MC_UINT8;
    mc_node *in[1 + POOL_NVECTOR] = { x };
    memcpy(in + 1, vector, POOL_NVECTOR * sizeof *in);
    memcpy(attr, n->attr, POOL_NATTR * sizeof *attr);
    attr[POOL_TIES] = (struct mc_attr){ .kind = ATTR_TEXT, .text = "bits" };
    attr[POOL_MARKS] = (struct mc_attr){ .kind = ATTR_DTYPE, .n = 1, .ints = &byte };
    return mc_node_make(n->graph, mc_op_named(n->graph, "pool_max"), 1 + POOL_NVECTOR, in, attr);
}

static mc_node *with_bits(mc_node *n, mc_node **in, const void *chosen)
{
    struct mc_attr attr[POOL_NATTR + 1];
    if (!((const unsigned char *)chosen)[n->id]) {
        return mc_apply(n->graph, n->op, n->nin, in, n->attr);
    }
    if (mc_pool_pass_of(n) == POOL_FORWARD) {
        return mc_item(maxima(n, in[0], in + 1, attr), 0);
    }
    in[KEY] = mc_item(maxima(n, in[KEY], in + 2, attr), 1);
    return mc_node_make(n->graph, n->op, n->nin, in, attr);
}

mc_status mc_lower_tie_bits(mc_graph *g, int n, mc_node **out)
{
    size_t count = 0;
    bool any = false;
    mc_node **list = mc_graph_reach(n, out, &count);
    unsigned char *chosen = list && count ? mc_calloc((size_t)list[count - 1]->id + 1, 1, "lower") : NULL;
    for (size_t i = 0; chosen && i < count; i++) {
        const size_t others = fits(list[i]) ? count : 0;
        for (size_t k = 0; k < others; k++) {
            if (is_gradient_of(list[i], list[k])) {
                chosen[list[i]->id] = chosen[list[k]->id] = 1;
                any = true;
            }
        }
    }
    mc_status s = !list || (count && !chosen) ? MC_EMEMORY
                  : any                       ? mc_lower_sweep(g, n, out, with_bits, chosen)
                                              : MC_OK;
    mc_free(chosen);
    mc_free(list);
    return s;
}

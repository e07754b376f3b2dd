/* layout.c: chooses the layout of the images between the layers of a net: bc01, as formulas have it, or b01c,
 * channels innermost, which the tensor cores of a GPU need.
 *
 * Convolutions, poolings, and maps and sums over images that read each other's results are one region.
 * min_cut.c gets what each convolution costs in either layout, and what it costs to read a tensor in the
 * other layout than it was made in, and finds the layouts of least total cost.  Costs need sizes.  If the
 * number of images is not static it is taken to be IMAGES: costs are nearly proportional to it.  A node with
 * any other unknown size keeps bc01.
 *
 * Invariant: a node that keeps bc01 reads its inputs in bc01, through views. */
#include "lower/layout.h"
#include "heavy/conv/conv.h"
#include "lower/min_cut.h"
#include "lower/layout_node.h"
#include "op/conv_node.h"

enum { IMAGES = 64, MIXED = 3 }; /* MIXED: factor of the cost of pooling arrays of different layouts */

struct layouts {
    mc_graph *g;
    const struct mc_layout_costs *costs;
    bool always;                /* b01c, whatever it costs */
    mc_node **list;
    size_t count;
    const struct mc_layout_kind **part; /* by node id; NULL: keeps bc01 */
    int *thing;                 /* by node id: its number in the min cut; -1: none */
    bool *turned;               /* by number in the min cut: it gets b01c */
    mc_node **now;              /* by node id: the new node, in b01c where `turned` */
};

/* ---- costs ---- */

static struct mc_type known_type(const struct mc_type *t)
{
    struct mc_type s = *t;
    s.dims[0] = s.rank && s.dims[0] < 0 ? IMAGES : s.dims[0];
    return s;
}

static void dense(int n, const int64_t *size, const int *order, int64_t *stride)
{
    int64_t step = 1;
    for (int i = n; i-- > 0;) {
        stride[order[i]] = step;
        step *= size[order[i]];
    }
}

/* Can b01c be faster for n?  Tensor cores need channels innermost, and other layouts are copied for them.
 * Other solvers rearrange tiles in registers and caches, and take the same time either way. */
static bool benefits(const struct layouts *l, const mc_node *n)
{
    const mc_dtype d = n->type.dtype;
    return l->costs->tensor &&
           (mc_dtypes[d].size == 2 || mc_conv_may_round(d, mc_attr_named(n, "precision")->text));
}

/* Seconds of a convolution whose images are in bc01 or, if `last`, in b01c; filters stay as they were
 * written. < 0: not known. */
static double conv_seconds(const struct layouts *l, const mc_node *n, bool last)
{
    static const int orders[2][5] = { { 0, 1, 2, 3, 4 }, { 0, 2, 3, 4, 1 } };
    struct mc_type in[3], out = known_type(&n->type);
    struct mc_conv_problem q = { .dtype = n->type.dtype,
                                 .alpha = 1,
                                 .algo = mc_attr_named(n, "algo")->text,
                                 .precision = mc_attr_named(n, "precision")->text };
    const bool weights = mc_conv_pass_of(n->op) == CONV_WEIGHTS;
    for (int i = 0; i < n->nin; i++) {
        in[i] = mc_layout_image(n, i) ? known_type(&n->in[i]->type) : n->in[i]->type;
    }
    if (mc_conv_shape_of(n, in, NULL, weights ? &n->type : &out, &q.s) < 0) {
        mc_clear_error();
        return -1;
    }
    const struct mc_conv_shape *s = &q.s;
    dense(5, (int64_t[]){ s->n, s->c, s->in[0], s->in[1], s->in[2] }, orders[last], q.at.x);
    dense(5, (int64_t[]){ s->n, s->f, s->out[0], s->out[1], s->out[2] }, orders[last], q.at.y);
    dense(5, (int64_t[]){ s->f, s->c / s->groups, s->k[0], s->k[1], s->k[2] }, orders[0], q.at.w);
    const struct mc_plan_options o = mc_plan_options_of(l->costs->convs->site);
    return mc_conv_seconds(l->costs->convs, &q, &o);
}

/* picoseconds: the cost of one more step; a cost that is never paid */
static const int64_t step = 2000000, never = INT64_MAX >> 20;

static int64_t picoseconds(double seconds)
{
    return (int64_t)(MC_MIN(seconds, 1) * 1e12);
}

/* The cost of reading a tensor in the other layout: a read and a write at half the memory bandwidth. */
static int64_t permute_cost(const struct layouts *l, const struct mc_type *t)
{
    const struct mc_type s = known_type(t);
    double bytes = (double)mc_dtypes[t->dtype].size;
    for (int i = 0; i < s.rank; i++) {
        bytes *= s.dims[i] < 0 ? 1 : (double)s.dims[i];
    }
    return step + picoseconds(4 * bytes / l->costs->bandwidth);
}

/* ---- the choice ---- */

static void find_regions(struct layouts *l, int n, mc_node *const *out, int *things)
{
    *things = 0;
    for (size_t i = 0; i < l->count; i++) {
        const mc_node *x = l->list[i];
        l->thing[x->id] = -1;
        l->part[x->id] = mc_layout_kind_of(x);
    }
    /* outputs keep bc01, and so do the tuples that they are items of */
    for (int i = 0; i < n; i++) {
        if (mc_layout_makes_images(out[i])) {
            l->part[out[i]->id] = NULL;
            l->part[out[i]->op == &mc_op_item ? out[i]->in[0]->id : out[i]->id] = NULL;
        }
    }
    for (size_t i = 0; i < l->count; i++) {
        const mc_node *x = l->list[i];
        if (x->op == &mc_op_item && l->part[x->id]) { /* goes where its tuple goes */
            l->thing[x->id] = l->thing[x->in[0]->id];
        } else if (l->part[x->id]) {
            l->thing[x->id] = (*things)++;
        }
    }
}

/* The cost of a convolution in either layout.  Returns whether b01c is faster. */
static bool conv_cost(const struct layouts *l, const mc_node *x, int64_t *first, int64_t *last)
{
    const bool asked = !l->always && benefits(l, x);
    const double plain = asked ? conv_seconds(l, x, false) : -1,
                 turned = asked ? conv_seconds(l, x, true) : -1;
    const bool known = plain >= 0 && turned >= 0;
    *first = l->always ? never : known ? picoseconds(plain) : 0;
    *last = l->always ? 0 : known ? picoseconds(turned) : never;
    if (asked) {
        LOG(LOG_PLAN, "layouts: %s takes %.3g us in bc01, %.3g us in b01c", x->op->name, plain * 1e6,
            turned * 1e6);
    }
    return *last < *first;
}

/* The cost of x reading its input k in the other layout than it is made in. */
static mc_status edge_cost(const struct layouts *l, struct mc_min_cut *c, const mc_node *x, int k)
{
    const mc_node *u = x->in[k];
    const int reader = l->thing[x->id], maker = mc_layout_makes_images(u) ? l->thing[u->id] : -1;
    const int64_t cost = u->type.rank == LAYOUT_RANK
                             ? (mc_layout_pools(x) ? MIXED : 1) * permute_cost(l, &u->type)
                             : 0;
    if (x->op == &mc_op_item || cost == 0 || (reader >= 0 && !mc_layout_image(x, k)) ||
        (reader < 0 && (maker < 0 || mc_reads_type_only(x)))) {
        return MC_OK;
    }
    return reader >= 0 && maker >= 0 ? mc_min_cut_edge(c, reader, maker, cost)
                                     : mc_min_cut_side_cost(c, reader >= 0 ? reader : maker, 0, cost);
}

/* All costs.  *gains: is any convolution faster in b01c? */
static mc_status node_cost(const struct layouts *l, struct mc_min_cut *c, bool *gains)
{
    for (size_t i = 0; i < l->count; i++) {
        const mc_node *x = l->list[i];
        int64_t first = 0, last = 0;
        if (l->thing[x->id] >= 0 && mc_conv_pass_of(x->op) >= 0) {
            *gains |= conv_cost(l, x, &first, &last);
            TRY(mc_min_cut_side_cost(c, l->thing[x->id], first, last));
        }
        for (int k = 0; k < x->nin; k++) {
            TRY(edge_cost(l, c, x, k));
        }
    }
    return MC_OK;
}

/* ---- the new graph ---- */

static bool changes_layout(const struct layouts *l, const mc_node *n)
{
    return l->thing[n->id] >= 0 && l->turned[l->thing[n->id]];
}

static mc_node *rebuilt(struct layouts *l, mc_node *n)
{
    mc_node **in = mc_alloc((size_t)(n->nin + 1) * sizeof *in, "lower"), *y;
    bool changed = changes_layout(l, n);
    for (int i = 0; in && i < n->nin; i++) {
        mc_node *x = n->in[i];
        const bool is_nhwc = changes_layout(l, x) && mc_layout_makes_images(x) && x->nout == 1,
                   wanted = changes_layout(l, n) && mc_layout_image(n, i) && x->nout == 1;
        in[i] = l->now[x->id];
        in[i] = is_nhwc == wanted ? in[i]
                                  : mc_layout_axes(in[i], wanted ? mc_layout_to_nhwc : mc_layout_to_nchw);
        changed |= in[i] != x;
    }
    if (!in) {
        return NULL;
    }
    y = changes_layout(l, n)   ? l->part[n->id]->turned(n, in)
        : !changed             ? n
        : n->op == &mc_op_item ? mc_item(in[0], n->item)
                               : mc_apply(l->g, n->op, n->nin, in, n->attr);
    mc_free(in);
    return y;
}

static mc_status rebuild(struct layouts *l, int n, mc_node **out)
{
    for (size_t i = 0; i < l->count; i++) {
        size_t first = l->g->nodes.n;
        mc_node *x = l->list[i], *y = l->now[x->id] = rebuilt(l, x);
        mc_label_since(l->g, first, x->label);
        if (!y || (mc_is_error(y) && !mc_is_error(x))) {
            return l->g->status < 0 ? mc_fail(l->g->status, "%s", mc_error(l->g)) : MC_EMEMORY;
        }
    }
    for (int i = 0; i < n; i++) {
        out[i] = l->now[out[i]->id];
    }
    return MC_OK;
}

static mc_status lower_layout(struct layouts *l, struct mc_min_cut *c, int n, mc_node **out)
{
    int things = 0;
    bool gains = false;
    l->list = mc_graph_reach(n, out, &l->count);
    const size_t nodes = l->g->nodes.n + 1;
    l->part = mc_calloc(nodes, sizeof *l->part, "lower");
    l->thing = mc_alloc(nodes * sizeof *l->thing, "lower");
    l->now = mc_calloc(nodes, sizeof *l->now, "lower");
    if (!l->list || !l->part || !l->thing || !l->now) {
        return MC_EMEMORY;
    }
    find_regions(l, n, out, &things);
    l->turned = mc_calloc((size_t)things + 1, sizeof *l->turned, "lower");
    if (!l->turned) {
        return MC_EMEMORY;
    }
    TRY(mc_min_cut_begin(c, things));
    TRY(node_cost(l, c, &gains));
    if (gains) {
        mc_min_cut_solve(c, l->turned);
        TRY(rebuild(l, n, out));
    }
    return MC_OK;
}

mc_status mc_lower_layout(mc_graph *g, int n, mc_node **out, const struct mc_layout_costs *costs)
{
    struct layouts l = { .g = g, .costs = costs, .always = mc_flag_int(FLAG_layout) == LAYOUT_B01C };
    struct mc_min_cut c = { 0 };
    if (mc_flag_int(FLAG_layout) == LAYOUT_WRITTEN) {
        return MC_OK;
    }
    mc_status s = lower_layout(&l, &c, n, out);
    mc_min_cut_free(&c);
    mc_free(l.list);
    mc_free(l.part);
    mc_free(l.thing);
    mc_free(l.turned);
    mc_free(l.now);
    return s;
}

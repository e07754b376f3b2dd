/* layouts.c: in which order images lie between the layers of a net: as it was written, bc01, or with channels
 * innermost, b01c, as the tensor cores of a GPU want them.
 *
 * Convolutions, poolings, maps and sums over them that are joined by tensors are one region.  What each
 * convolution takes in either order, and what it takes to turn a tensor where the two meet, is given to
 * sides.c, which finds the orders that take least in all.  Sizes are needed for that: where the number of
 * images is known only to a call it is taken to be IMAGES, for costs grow with it alike; whatever else is not
 * known leaves a node as it was written.
 *
 * Invariant: a node that is not turned sees its inputs' axes in the order in which they were written, through
 * views. */
#include "lower/layouts.h"
#include "heavy/conv/conv.h"
#include "lower/sides.h"
#include "lower/turn.h"
#include "op/conv_node.h"

enum { IMAGES = 64, MIXED = 3 }; /* MIXED: so many times dearer is it to pool arrays of different orders */

struct layouts {
    mc_graph *g;
    const struct mc_layout_costs *costs;
    bool always;                /* whatever it takes */
    mc_node **list;
    size_t count;
    const struct mc_turn **part; /* by node id; NULL: stays as it was written */
    int *thing;                 /* of sides.c */
    bool *turned;               /* by thing */
    mc_node **now;              /* by node id: what it became; of what is turned, with its axes turned */
};

/* ---- what it takes ---- */

static struct mc_type sized(const struct mc_type *t)
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

/* What tensor cores multiply is: they want channels innermost, and what lies otherwise is copied for them.
 * What else there is re-lays tile by tile, in registers and caches, and takes the same either way. */
static bool may_gain(const struct layouts *l, const mc_node *n)
{
    const mc_dtype d = n->type.dtype;
    return l->costs->tensor &&
           (mc_dtypes[d].size == 2 || mc_conv_may_round(d, mc_attr_named(n, "precision")->text));
}

/* Seconds of a convolution whose images lie in that order; filters lie as they were written. < 0: not
 * known. */
static double conv_seconds(const struct layouts *l, const mc_node *n, bool last)
{
    static const int orders[2][5] = { { 0, 1, 2, 3, 4 }, { 0, 2, 3, 4, 1 } };
    struct mc_type in[3], out = sized(&n->type);
    struct mc_conv_problem q = { .dtype = n->type.dtype,
                                 .alpha = 1,
                                 .algo = mc_attr_named(n, "algo")->text,
                                 .precision = mc_attr_named(n, "precision")->text };
    const bool weights = mc_conv_pass_of(n->op) == CONV_WEIGHTS;
    for (int i = 0; i < n->nin; i++) {
        in[i] = mc_turn_image(n, i) ? sized(&n->in[i]->type) : n->in[i]->type;
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

/* picoseconds: one step more, whatever its size; what is out of the question */
static const int64_t step = 2000000, never = INT64_MAX >> 20;

static int64_t picoseconds(double seconds)
{
    return (int64_t)(MC_MIN(seconds, 1) * 1e12);
}

/* Of a tensor that is read in the other order: there and back at half the speed of memory. */
static int64_t turning(const struct layouts *l, const struct mc_type *t)
{
    const struct mc_type s = sized(t);
    double bytes = (double)mc_dtypes[t->dtype].size;
    for (int i = 0; i < s.rank; i++) {
        bytes *= s.dims[i] < 0 ? 1 : (double)s.dims[i];
    }
    return step + picoseconds(4 * bytes / l->costs->bandwidth);
}

/* ---- the choice ---- */

static void find_parts(struct layouts *l, int n, mc_node *const *out, int *things)
{
    *things = 0;
    for (size_t i = 0; i < l->count; i++) {
        const mc_node *x = l->list[i];
        l->thing[x->id] = -1;
        l->part[x->id] = mc_turn_of(x);
    }
    /* what is asked for is as it was written, and so is the tuple that it is of */
    for (int i = 0; i < n; i++) {
        if (mc_turn_makes_images(out[i])) {
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

/* What a convolution takes on either side.  Is it faster when it is turned? */
static bool weigh_conv(const struct layouts *l, const mc_node *x, int64_t *first, int64_t *last)
{
    const bool asked = !l->always && may_gain(l, x);
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

/* What it takes that x reads input k in the other order. */
static mc_status weigh_input(const struct layouts *l, struct mc_sides *c, const mc_node *x, int k)
{
    const mc_node *u = x->in[k];
    const int reader = l->thing[x->id], maker = mc_turn_makes_images(u) ? l->thing[u->id] : -1;
    const int64_t cost = u->type.rank == TURN_RANK ? (mc_turn_pools(x) ? MIXED : 1) * turning(l, &u->type)
                                                   : 0;
    if (x->op == &mc_op_item || cost == 0 || (reader >= 0 && !mc_turn_image(x, k)) ||
        (reader < 0 && (maker < 0 || mc_reads_type_only(x)))) {
        return MC_OK;
    }
    return reader >= 0 && maker >= 0 ? mc_sides_parted(c, reader, maker, cost)
                                     : mc_sides_cost(c, reader >= 0 ? reader : maker, 0, cost);
}

/* What each side costs.  *gains: is any convolution faster when it is turned? */
static mc_status weigh(const struct layouts *l, struct mc_sides *c, bool *gains)
{
    for (size_t i = 0; i < l->count; i++) {
        const mc_node *x = l->list[i];
        int64_t first = 0, last = 0;
        if (l->thing[x->id] >= 0 && mc_conv_pass_of(x->op) >= 0) {
            *gains |= weigh_conv(l, x, &first, &last);
            TRY(mc_sides_cost(c, l->thing[x->id], first, last));
        }
        for (int k = 0; k < x->nin; k++) {
            TRY(weigh_input(l, c, x, k));
        }
    }
    return MC_OK;
}

/* ---- the graph anew ---- */

static bool turns(const struct layouts *l, const mc_node *n)
{
    return l->thing[n->id] >= 0 && l->turned[l->thing[n->id]];
}

static mc_node *rebuilt(struct layouts *l, mc_node *n)
{
    mc_node **in = mc_alloc((size_t)(n->nin + 1) * sizeof *in, "lower"), *y;
    bool changed = turns(l, n);
    for (int i = 0; in && i < n->nin; i++) {
        mc_node *x = n->in[i];
        const bool there = turns(l, x) && mc_turn_makes_images(x) && x->nout == 1,
                   wanted = turns(l, n) && mc_turn_image(n, i) && x->nout == 1;
        in[i] = l->now[x->id];
        in[i] = there == wanted ? in[i] : mc_turn_axes(in[i], wanted ? mc_turn_there : mc_turn_back);
        changed |= in[i] != x;
    }
    if (!in) {
        return NULL;
    }
    y = turns(l, n)            ? l->part[n->id]->turned(n, in)
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

mc_status mc_lower_layouts(mc_graph *g, int n, mc_node **out, const struct mc_layout_costs *costs)
{
    struct layouts l = { .g = g, .costs = costs, .always = mc_flag_int(FLAG_layout) == LAYOUT_B01C };
    struct mc_sides c = { 0 };
    int things = 0;
    bool gains = false;
    if (mc_flag_int(FLAG_layout) == LAYOUT_WRITTEN) {
        return MC_OK;
    }
    l.list = mc_graph_reach(n, out, &l.count);
    const size_t nodes = g->nodes.n + 1;
    l.part = mc_calloc(nodes, sizeof *l.part, "lower");
    l.thing = mc_alloc(nodes * sizeof *l.thing, "lower");
    l.now = mc_calloc(nodes, sizeof *l.now, "lower");
    mc_status s = l.list && l.part && l.thing && l.now ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        find_parts(&l, n, out, &things);
    }
    l.turned = s == MC_OK ? mc_calloc((size_t)things + 1, sizeof *l.turned, "lower") : NULL;
    s = s < 0 || l.turned ? s : MC_EMEMORY;
    s = s < 0 ? s : mc_sides_begin(&c, things);
    s = s < 0 ? s : weigh(&l, &c, &gains);
    if (s == MC_OK && gains) {
        mc_sides_find(&c, l.turned);
        s = rebuild(&l, n, out);
    }
    mc_sides_free(&c);
    mc_free(l.list);
    mc_free(l.part);
    mc_free(l.thing);
    mc_free(l.turned);
    mc_free(l.now);
    return s;
}

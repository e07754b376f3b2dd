/* layouts.c: in which order images lie between the layers of a net: as it was written, bc01, or with channels innermost,
 * b01c, as the tensor cores of a GPU want them.
 *
 * Convolutions, poolings, maps and sums over them that are joined by tensors are one region.  What each convolution
 * takes in either order, and what it takes to turn a tensor where the two meet, is given to sides.c, which finds the
 * orders that take least in all.  Sizes are needed for that: where the number of images is known only to a call it is
 * taken to be IMAGES, for costs grow with it alike; whatever else is not known leaves a node as it was written.
 *
 * Invariant: a node that is not turned sees its inputs' axes in the order in which they were written, through views. */
#include "lower/layouts.h"
#include "conv/conv.h"
#include "lower/sides.h"
#include "op/conv_node.h"
#include "op/pool_node.h"
#include "render/kernel.h"

enum { IMAGES = 64, RANK = 4, MIXED = 3 }; /* MIXED: so many times dearer is it to pool arrays of different orders */
static const int64_t turn[RANK] = { 0, 2, 3, 1 }, back[RANK] = { 0, 3, 1, 2 }; /* of dimshuffle; back[i] is where axis i goes, too */

/* What is done for a node that is turned. */
static mc_node *turn_conv(mc_node *n, mc_node **in), *turn_pool(mc_node *n, mc_node **in), *turn_sum(mc_node *n, mc_node **in),
    *turn_map(mc_node *n, mc_node **in), *turn_item(mc_node *n, mc_node **in);
static bool is_conv(const mc_node *n), is_pool(const mc_node *n), is_sum(const mc_node *n), is_map(const mc_node *n), is_item(const mc_node *n);
static const struct part {
    bool (*is)(const mc_node *n);
    mc_node *(*turned)(mc_node *n, mc_node **in); /* in[]: images in the new order */
} parts[] = {
    { is_conv, turn_conv },
    { is_pool, turn_pool },
    { is_map,  turn_map  },
    { is_sum,  turn_sum  },
    { is_item, turn_item }, /* of a pooling */
};

struct layouts {
    mc_graph *g;
    bool far, always;           /* for a GPU; whatever it takes */
    mc_node **list;
    size_t count;
    const struct part **part;   /* by node id; NULL: stays as it was written */
    int *thing;                 /* of sides.c */
    bool *turned;               /* by thing */
    mc_node **now;              /* by node id: what it became; of what is turned, with its axes turned */
};

/* ---- what may be turned ---- */

static bool is_op(const mc_node *n, const char *name) { return strcmp(n->op->name, name) == 0; }

/* Is input i images, whose axes are turned with the node? */
static bool is_image(const mc_node *n, int i)
{
    const int pass = mc_conv_pass_of(n->op);
    return n->in[i]->type.rank == RANK && (pass < 0 || (i < 2 && mc_conv_operand[pass][CONV_W] != i));
}

/* Are the result's axes turned with the node? */
static bool makes_images(const mc_node *n)
{
    return n->type.rank == RANK && mc_conv_pass_of(n->op) != CONV_WEIGHTS;
}

static bool all_known(const struct mc_type *t)
{
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0 && i > 0) {
            return false;
        }
    }
    return true;
}

static bool is_conv(const mc_node *n)
{
    struct mc_conv_form f;
    if (mc_conv_pass_of(n->op) < 0 || n->type.rank != RANK || !n->attr[CONV_LAYOUT].none || (n->nin > 2 && !mc_shape_entry_node(n->in[2], 0))) {
        return false;
    }
    mc_conv_form_of(n, &f);
    return !f.unshared && all_known(&n->type) && all_known(&n->in[0]->type) && all_known(&n->in[1]->type);
}

static bool is_pool(const mc_node *n)
{
    int role[POOL_NARRAY];
    const struct mc_attr *axis = mc_pool_roles(n, role) ? &n->attr[POOL_AXIS] : NULL;
    const bool places = axis && n->type.rank == RANK && !axis->none && axis->n == 2 && axis->ints[0] == 2 && axis->ints[1] == 3;
    return places && (!is_op(n, "pool_spread") || mc_shape_entry_node(n->in[1], 0));
}

static bool is_item(const mc_node *n)
{
    return n->op == &mc_op_item && is_pool(n->in[0]);
}

static bool is_map(const mc_node *n)
{
    bool all = n->type.rank == RANK && (n->op->arity || is_op(n, "cast"));
    for (int i = 0; i < n->nin; i++) {
        all = all && (n->in[i]->type.rank == RANK || n->in[i]->type.rank == 0);
    }
    return all;
}

/* Axes that are left stay in their order, whichever way the node is done. */
static bool is_sum(const mc_node *n)
{
    const struct mc_monoid *m = n->op->flags & OP_REDUCES && n->nout == 1 ? mc_monoid(n->op) : NULL;
    int axis[MC_MAX_RANK], next = 0;
    int64_t last = -1;
    if (!m || m->positions || n->in[0]->type.rank != RANK) {
        return false;
    }
    const int count = (int)mc_axes_of(n, 0, RANK, axis);
    for (int i = 0; i < RANK && !mc_attr_int(&n->attr[1]); i++) {
        const bool gone = next < count && axis[next] == i;
        next += gone;
        if (!gone && back[i] < last) {
            return false;
        }
        last = gone ? last : back[i];
    }
    return true;
}

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

/* What tensor cores multiply is: they want channels innermost, and what lies otherwise is copied for them.  What else there is
 * re-lays tile by tile, in registers and caches, and takes the same either way. */
static bool may_gain(const struct layouts *l, const mc_node *n)
{
    return l->far && (mc_dtypes[n->type.dtype].size == 2 || mc_conv_may_round(n->type.dtype, mc_attr_named(n, "precision")->text));
}

/* Seconds of a convolution whose images lie in that order; filters lie as they were written. < 0: not known. */
static double conv_seconds(const struct layouts *l, const mc_node *n, bool last)
{
    static const int orders[2][5] = { { 0, 1, 2, 3, 4 }, { 0, 2, 3, 4, 1 } };
    struct mc_type in[3], out = sized(&n->type);
    struct mc_conv_problem q = { .dtype = n->type.dtype, .alpha = 1, .algo = mc_attr_named(n, "algo")->text, .precision = mc_attr_named(n, "precision")->text };
    const bool weights = mc_conv_pass_of(n->op) == CONV_WEIGHTS;
    for (int i = 0; i < n->nin; i++) {
        in[i] = is_image(n, i) ? sized(&n->in[i]->type) : n->in[i]->type;
    }
    if (mc_conv_shape_of(n, in, NULL, weights ? &n->type : &out, &q.s) < 0) {
        mc_clear_error();
        return -1;
    }
    const struct mc_conv_shape *s = &q.s;
    dense(5, (int64_t[]){ s->n, s->c, s->in[0], s->in[1], s->in[2] }, orders[last], q.at.x);
    dense(5, (int64_t[]){ s->n, s->f, s->out[0], s->out[1], s->out[2] }, orders[last], q.at.y);
    dense(5, (int64_t[]){ s->f, s->c / s->groups, s->k[0], s->k[1], s->k[2] }, orders[0], q.at.w);
    return mc_conv_seconds(l->far ? &mc_conv_cuda : &mc_conv_family, &q);
}

static const double bandwidth[] = { 2e10, 2.4e12 };  /* bytes a second, here and on a GPU */
static const int64_t step = 2000000, never = INT64_MAX >> 20; /* picoseconds: one step more, whatever its size; what is out of the question */

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
    return step + picoseconds(4 * bytes / bandwidth[l->far]);
}

/* ---- the choice ---- */

static void find_parts(struct layouts *l, int n, mc_node *const *out, int *things)
{
    *things = 0;
    for (size_t i = 0; i < l->count; i++) {
        const mc_node *x = l->list[i];
        l->thing[x->id] = -1;
        for (size_t k = 0; k < NELEM(parts) && !l->part[x->id]; k++) {
            l->part[x->id] = parts[k].is(x) ? &parts[k] : NULL;
        }
    }
    for (int i = 0; i < n; i++) { /* what is asked for is as it was written, and so is the tuple that it is of */
        if (makes_images(out[i])) {
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
    const double plain = asked ? conv_seconds(l, x, false) : -1, turned = asked ? conv_seconds(l, x, true) : -1;
    const bool known = plain >= 0 && turned >= 0;
    *first = l->always ? never : known ? picoseconds(plain) : 0;
    *last = l->always ? 0 : known ? picoseconds(turned) : never;
    if (asked) {
        LOG(LOG_PLAN, "layouts: %s takes %.3g us in bc01, %.3g us in b01c", x->op->name, plain * 1e6, turned * 1e6);
    }
    return *last < *first;
}

/* What it takes that x reads input k in the other order. */
static mc_status weigh_input(const struct layouts *l, struct mc_sides *c, const mc_node *x, int k)
{
    const mc_node *u = x->in[k];
    const int reader = l->thing[x->id], maker = makes_images(u) ? l->thing[u->id] : -1;
    const int64_t cost = u->type.rank == RANK ? (is_pool(x) ? MIXED : 1) * turning(l, &u->type) : 0;
    if (x->op == &mc_op_item || cost == 0 || (reader >= 0 && !is_image(x, k)) || (reader < 0 && (maker < 0 || is_op(x, "size") || is_op(x, "shape")))) {
        return MC_OK;
    }
    return reader >= 0 && maker >= 0 ? mc_sides_parted(c, reader, maker, cost) : mc_sides_cost(c, reader >= 0 ? reader : maker, 0, cost);
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

static mc_node *shuffled(mc_node *x, const int64_t *order)
{
    int64_t both[RANK];
    const bool again = is_op(x, "dimshuffle");
    for (int i = 0; i < RANK; i++) {
        both[i] = again && order[i] >= 0 ? x->attr[0].ints[order[i]] : order[i];
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = RANK, .ints = both };
    return mc_apply(x->graph, mc_op_find("dimshuffle"), 1, again ? &x->in[0] : &x, &a);
}

static mc_node *turn_map(mc_node *n, mc_node **in)
{
    return mc_apply(n->graph, n->op, n->nin, in, n->attr);
}

static mc_node *turn_item(mc_node *n, mc_node **in)
{
    return mc_item(in[0], n->item);
}

/* Sizes are said of places alone: those of images and channels follow. */
static mc_node *turn_conv(mc_node *n, mc_node **in)
{
    struct mc_attr attr[CONV_NATTR];
    const int w = mc_conv_operand[mc_conv_pass_of(n->op)][CONV_W];
    memcpy(attr, n->attr, sizeof attr);
    attr[CONV_LAYOUT] = (struct mc_attr){ .kind = ATTR_TEXT, .text = "b01c" };
    if (w >= 0) {
        in[w] = shuffled(in[w], turn);
    }
    if (n->nin > 2 && n->in[2]->type.dims[0] == RANK) {
        mc_node *size[2] = { mc_shape_entry_node(in[2], 2), mc_shape_entry_node(in[2], 3) };
        in[2] = mc_shape_stack(n->graph, 2, size);
    }
    mc_node *y = mc_apply(n->graph, n->op, n->nin, in, attr);
    return w < 0 && !mc_is_error(y) ? shuffled(y, back) : y;
}

static mc_node *turn_pool(mc_node *n, mc_node **in)
{
    struct mc_attr attr[POOL_NATTR + 1];
    int64_t places[2] = { 1, 2 };
    memcpy(attr, n->attr, (size_t)n->op->sig->nattr * sizeof *attr);
    attr[POOL_AXIS].ints = places;
    if (is_op(n, "pool_spread")) {
        mc_node *size[RANK];
        for (int i = 0; i < RANK; i++) {
            size[i] = mc_shape_entry_node(in[1], (int)turn[i]);
        }
        in[1] = mc_shape_stack(n->graph, RANK, size);
    }
    return mc_apply(n->graph, n->op, n->nin, in, attr);
}

static mc_node *turn_sum(mc_node *n, mc_node **in)
{
    struct mc_attr attr[8];
    int axis[MC_MAX_RANK], count = 0;
    int64_t own[RANK];
    unsigned gone = 0;
    memcpy(attr, n->attr, (size_t)n->op->sig->nattr * sizeof *attr);
    for (int i = (int)mc_axes_of(n, 0, RANK, axis); i-- > 0;) {
        gone |= 1u << back[axis[i]];
    }
    for (int i = 0; i < RANK; i++) {
        if (gone >> i & 1) {
            own[count++] = i;
        }
    }
    attr[0] = (struct mc_attr){ .kind = attr[0].kind, .n = count, .ints = own };
    return mc_apply(n->graph, n->op, n->nin, in, attr);
}

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
        const bool there = turns(l, x) && makes_images(x) && x->nout == 1, wanted = turns(l, n) && is_image(n, i) && x->nout == 1;
        in[i] = l->now[x->id];
        in[i] = there == wanted ? in[i] : shuffled(in[i], wanted ? turn : back);
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
        mc_node *x = l->list[i], *y = l->now[x->id] = rebuilt(l, x);
        if (!y || (mc_is_error(y) && !mc_is_error(x))) {
            return l->g->status < 0 ? mc_fail(l->g->status, "%s", mc_error(l->g)) : MC_EMEMORY;
        }
    }
    for (int i = 0; i < n; i++) {
        out[i] = l->now[out[i]->id];
    }
    return MC_OK;
}

mc_status mc_lower_layouts(mc_graph *g, int n, mc_node **out, bool far)
{
    struct layouts l = { .g = g, .far = far, .always = mc_flag_int(FLAG_layout) == LAYOUT_B01C };
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

/* layout_node.c: which nodes can have their images in b01c, channels innermost, and the node that each of
 * them becomes.
 *
 * Invariant: the new node has the same values, with the axes of its images permuted by mc_layout_there. */
#include "lower/layout_node.h"
#include "op/conv_node.h"
#include "op/pool_node.h"
#include "render/kernel.h"

const int64_t mc_layout_to_nhwc[LAYOUT_RANK] = { 0, 2, 3, 1 }, mc_layout_to_nchw[LAYOUT_RANK] = { 0, 3, 1, 2 };

bool mc_layout_image(const mc_node *n, int i)
{
    const int pass = mc_conv_pass_of(n->op);
    return n->in[i]->type.rank == LAYOUT_RANK && (pass < 0 || (i < 2 && mc_conv_operand[pass][CONV_W] != i));
}

bool mc_layout_makes_images(const mc_node *n)
{
    return n->type.rank == LAYOUT_RANK && mc_conv_pass_of(n->op) != CONV_WEIGHTS;
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
    if (mc_conv_pass_of(n->op) < 0 || n->type.rank != LAYOUT_RANK || !n->attr[CONV_LAYOUT].none ||
        (n->nin > 2 && !mc_shape_entry_node(n->in[2], 0))) {
        return false;
    }
    mc_conv_form_of(n, &f);
    return !f.unshared && all_known(&n->type) && all_known(&n->in[0]->type) && all_known(&n->in[1]->type);
}

static bool is_pool(const mc_node *n)
{
    int role[POOL_NARRAY];
    const struct mc_attr *axis = mc_pool_roles(n, role) ? &n->attr[POOL_AXIS] : NULL;
    const bool spatial = axis && n->type.rank == LAYOUT_RANK && !axis->none && axis->n == 2 &&
                         axis->ints[0] == 2 && axis->ints[1] == 3;
    return spatial && (mc_pool_pass_of(n) != POOL_SPREAD || mc_shape_entry_node(n->in[1], 0));
}

static bool is_item(const mc_node *n)
{
    return n->op == &mc_op_item && is_pool(n->in[0]);
}

static bool is_map(const mc_node *n)
{
    bool all = n->type.rank == LAYOUT_RANK && mc_is_elementwise(n);
    for (int i = 0; i < n->nin; i++) {
        all = all && (n->in[i]->type.rank == LAYOUT_RANK || n->in[i]->type.rank == 0);
    }
    return all;
}

/* Is n a reduction whose remaining axes have the same order in both layouts? */
static bool is_sum(const mc_node *n)
{
    int axis[MC_MAX_RANK], next = 0;
    int64_t last = -1;
    if (n->op->reduction == REDUCE_NONE || n->op->reduction == REDUCE_POSITION ||
        n->in[0]->type.rank != LAYOUT_RANK) {
        return false;
    }
    const int count = (int)mc_axes_of(n, 0, LAYOUT_RANK, axis);
    for (int i = 0; i < LAYOUT_RANK && !mc_attr_int(&n->attr[1]); i++) {
        const bool gone = next < count && axis[next] == i;
        next += gone;
        if (!gone && mc_layout_to_nchw[i] < last) {
            return false;
        }
        last = gone ? last : mc_layout_to_nchw[i];
    }
    return true;
}

mc_node *mc_layout_axes(mc_node *x, const int64_t *order)
{
    int64_t both[LAYOUT_RANK];
    const bool again = x->op->form == FORM_DIMSHUFFLE;
    for (int i = 0; i < LAYOUT_RANK; i++) {
        both[i] = again && order[i] >= 0 ? x->attr[0].ints[order[i]] : order[i];
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = LAYOUT_RANK, .ints = both };
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

/* The size argument is reduced to the spatial axes; the sizes of the other axes follow from the operands. */
static mc_node *turn_conv(mc_node *n, mc_node **in)
{
    struct mc_attr attr[CONV_NATTR];
    const int w = mc_conv_operand[mc_conv_pass_of(n->op)][CONV_W];
    memcpy(attr, n->attr, sizeof attr);
    attr[CONV_LAYOUT] = (struct mc_attr){ .kind = ATTR_TEXT, .text = "b01c" };
    if (w >= 0) {
        in[w] = mc_layout_axes(in[w], mc_layout_to_nhwc);
    }
    if (n->nin > 2 && n->in[2]->type.dims[0] == LAYOUT_RANK) {
        mc_node *size[2] = { mc_shape_entry_node(in[2], 2), mc_shape_entry_node(in[2], 3) };
        in[2] = mc_shape_stack(n->graph, 2, size);
    }
    mc_node *y = mc_apply(n->graph, n->op, n->nin, in, attr);
    return w < 0 && !mc_is_error(y) ? mc_layout_axes(y, mc_layout_to_nchw) : y;
}

static mc_node *turn_pool(mc_node *n, mc_node **in)
{
    struct mc_attr attr[POOL_NATTR + 1];
    int64_t spatial[2] = { 1, 2 };
    memcpy(attr, n->attr, (size_t)n->op->sig->nattr * sizeof *attr);
    attr[POOL_AXIS].ints = spatial;
    if (mc_pool_pass_of(n) == POOL_SPREAD) {
        mc_node *size[LAYOUT_RANK];
        for (int i = 0; i < LAYOUT_RANK; i++) {
            size[i] = mc_shape_entry_node(in[1], (int)mc_layout_to_nhwc[i]);
        }
        in[1] = mc_shape_stack(n->graph, LAYOUT_RANK, size);
    }
    return mc_apply(n->graph, n->op, n->nin, in, attr);
}

static mc_node *turn_sum(mc_node *n, mc_node **in)
{
    struct mc_attr attr[8];
    int axis[MC_MAX_RANK], count = 0;
    int64_t own[LAYOUT_RANK];
    unsigned gone = 0;
    memcpy(attr, n->attr, (size_t)n->op->sig->nattr * sizeof *attr);
    for (int i = (int)mc_axes_of(n, 0, LAYOUT_RANK, axis); i-- > 0;) {
        gone |= 1u << mc_layout_to_nchw[axis[i]];
    }
    for (int i = 0; i < LAYOUT_RANK; i++) {
        if (gone >> i & 1) {
            own[count++] = i;
        }
    }
    attr[0] = (struct mc_attr){ .kind = attr[0].kind, .n = count, .ints = own };
    return mc_apply(n->graph, n->op, n->nin, in, attr);
}

static const struct mc_layout_kind parts[] = {
    { is_conv, turn_conv },
    { is_pool, turn_pool },
    { is_map,  turn_map  },
    { is_sum,  turn_sum  },
    { is_item, turn_item }, /* of a pooling */
};

const struct mc_layout_kind *mc_layout_kind_of(const mc_node *n)
{
    for (size_t i = 0; i < NELEM(parts); i++) {
        if (parts[i].is(n)) {
            return &parts[i];
        }
    }
    return NULL;
}

bool mc_layout_pools(const mc_node *n)
{
    return is_pool(n);
}

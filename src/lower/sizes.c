/* sizes.c: finds axes of nodes that have equal sizes at any shape, so that one loop can run over them.
 *
 * Two axes are united (union-find) if an op fails unless they are equal. Axes have equal sizes if they were
 * united, or if both sizes are known and equal. */
#include "lower/lower.h"

static size_t find_root(const struct mc_sizes *s, const mc_node *n, int axis)
{
    size_t i = (size_t)n->id * MC_MAX_RANK + (size_t)axis;
    while (s->parent[i] != i) {
        i = s->parent[i] = s->parent[s->parent[i]];
    }
    return i;
}

static void unite(struct mc_sizes *s, const mc_node *a, int i, const mc_node *b, int j)
{
    size_t x = find_root(s, a, i), y = find_root(s, b, j);
    s->known[x] = MC_MAX(s->known[x], s->known[y]);
    s->parent[y] = x;
}

/* x if n = size(x, axis), else NULL. */
static const mc_node *size_value(const mc_node *n, int *axis)
{
    if (n->op->form != FORM_SIZE ||
        mc_axis_check("size", mc_attr_int(&n->attr[0]), n->in[0]->type.rank, axis) < 0) {
        return NULL;
    }
    return n->in[0];
}

/* alloc(x, [size(y, 0), ...]), alloc(x, shape(y)), arange(0, size(y, 0), 1) */
static void unite_results(struct mc_sizes *s, const mc_node *n)
{
    const mc_node *of = n->op->form == FORM_ALLOC ? n->in[1] : n, *y;
    int axis;
    if (of->op->form == FORM_SHAPE) {
        for (int i = 0; i < n->type.rank; i++) {
            unite(s, n, i, of->in[0], i);
        }
    } else if (of->op->form == FORM_STACK) {
        for (int i = 0; i < n->type.rank && i < of->nin; i++) {
            if ((y = size_value(of->in[i], &axis))) {
                unite(s, n, i, y, axis);
            }
        }
    } else if (n->type.rank == 1 && (y = size_value(n->op->form == FORM_ARANGE ? n->in[1] : of, &axis))) {
        unite(s, n, 0, y, axis);
    }
}

static void unite_inputs(struct mc_sizes *s, const mc_node *n)
{
    bool reduces = n->op->flags & OP_REDUCES;
    if (n->op->form == FORM_DIMSHUFFLE) {
        for (int i = 0; i < n->attr[0].n; i++) {
            if (n->attr[0].ints[i] >= 0) {
                unite(s, n, i, n->in[0], (int)n->attr[0].ints[i]);
            }
        }
    } else if (n->op->form == FORM_ALLOC || (n->op->form == FORM_ARANGE && mc_is_fusible(n))) {
        unite_results(s, n);
    } else if (mc_is_fusible(n)) {
        unsigned gone = reduces ? mc_varies(&n->in[0]->type) & ~mc_varies(&n->type) : 0;
        for (int k = 0; k < (reduces || !n->op->arity ? 1 : n->nin); k++) {
            for (int i = 0; i < n->type.rank && n->in[k]->type.rank == n->type.rank; i++) {
                if (n->in[k]->type.dims[i] != 1 && !(gone >> i & 1)) {
                    unite(s, n, i, n->in[k], i);
                }
            }
        }
    }
}

mc_status mc_sizes_find(struct mc_sizes *s, const mc_graph *g, mc_node *const *list, size_t count)
{
    size_t n = (g->nodes.n + 1) * MC_MAX_RANK;
    *s = (struct mc_sizes){ mc_alloc(n * sizeof *s->parent, "lower"),
                            mc_alloc(n * sizeof *s->known, "lower") };
    if (!s->parent || !s->known) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        s->parent[i] = i;
        s->known[i] = -1;
    }
    for (size_t i = 0; i < count; i++) {
        for (int a = 0; a < list[i]->type.rank; a++) {
            s->known[(size_t)list[i]->id * MC_MAX_RANK + (size_t)a] = list[i]->type.dims[a];
        }
    }
    for (size_t i = 0; i < count; i++) {
        unite_inputs(s, list[i]);
    }
    return MC_OK;
}

bool mc_sizes_equal(const struct mc_sizes *s, const mc_node *a, const mc_node *b, int axis)
{
    size_t x = find_root(s, a, axis), y = find_root(s, b, axis);
    return x == y || (s->known[x] >= 0 && s->known[x] == s->known[y]);
}

void mc_sizes_free(struct mc_sizes *s)
{
    mc_free(s->parent);
    mc_free(s->known);
    *s = (struct mc_sizes){ 0 };
}

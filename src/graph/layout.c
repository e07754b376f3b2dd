/* layout.c: positions of the boxes of a picture.
 *
 * Sugiyama's method in four steps: layers by longest path; a bend in each layer that a wire passes; an order
 * within each layer by the mean position of the neighbours; positions as close to that mean as the order
 * allows.  The last step is least squares under x[i+1] - x[i] >= gap, that is isotonic regression, solved by
 * pooling.
 *
 * Invariant: boxes and bends of a layer never overlap. */
#include "graph/picture.h"
#include <stdlib.h>

enum { SWEEPS = 14, SETTLE = 10 };
static const double gap_boxes = 20, gap_bends = 12, gap_layers = 38;

/* A box or a bend; a bend's number is the number of boxes plus its own. */
struct cell { int layer; double x, w; };
/* cell a is one layer above cell b; port: offset on b from its middle */
struct tie { int a, b; double port; };
struct slot { double want, weight; int cell; size_t rank; };
struct nets {
    struct mc_layout *l;
    const struct mc_picture *p;
    VEC(struct cell) cell;
    VEC(struct tie) tie;
    int *up, *down;             /* indices of ties, sorted by lower cell and by upper cell */
    int *up_at, *down_at;       /* start of each cell's ties; one more entry at the end */
    struct slot *slot;          /* cells layer by layer, in order */
    int *slot_at;               /* start of each layer; one more entry at the end */
    double *mean, *mass;        /* pooled blocks */
    int *size;
};

/* ---- layers ---- */

/* Layer = length of the longest path from a leaf.  Leaves, and nodes that read leaves only, then move down to
 * the layer above their first reader. */
static mc_status find_layers(struct mc_layout *l, const struct mc_picture *p)
{
    int n = (int)p->node.n;
    int *least = mc_alloc((size_t)(n + 1) * sizeof *least, "picture"); /* layer of the first reader */
    /* 1: reads leaves only; 2: reads other nodes too */
    unsigned char *reads = mc_calloc((size_t)n + 1, 1, "picture");
    mc_status s = least && reads ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; s == MC_OK && i < p->arrow.n; i++) { /* arrows are sorted by reader */
        const struct mc_arrow *a = &p->arrow.at[i];
        l->box[a->to].layer = MC_MAX(l->box[a->to].layer, l->box[a->from].layer + 1);
        reads[a->to] = reads[a->to] == 2 || reads[a->from] ? 2 : 1;
    }
    for (int i = 0; s == MC_OK && i < n; i++) {
        least[i] = -1;
        l->nlayer = MC_MAX(l->nlayer, l->box[i].layer + 1);
    }
    for (size_t i = p->arrow.n; s == MC_OK && i-- > 0;) {
        const struct mc_arrow *a = &p->arrow.at[i];
        int *to = &l->box[a->to].layer;
        if (reads[a->to] < 2 && least[a->to] > 0) {
            *to = least[a->to] - 1;
        }
        least[a->from] = least[a->from] < 0 ? *to : MC_MIN(least[a->from], *to);
    }
    for (int i = 0; s == MC_OK && i < n; i++) {
        if (!reads[i] && least[i] > 0) {
            l->box[i].layer = least[i] - 1;
        }
    }
    mc_free(least);
    mc_free(reads);
    return s;
}

/* ---- wires ---- */

static mc_status find_bends(struct mc_layout *l, const struct mc_picture *p)
{
    int n = (int)p->node.n;
    int *deepest = mc_calloc((size_t)n + 1, sizeof *deepest, "picture");
    mc_status s = deepest ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; s == MC_OK && i < p->arrow.n; i++) {
        const struct mc_arrow *a = &p->arrow.at[i];
        deepest[a->from] = MC_MAX(deepest[a->from], l->box[a->to].layer);
    }
    for (int i = 0; i < n && s == MC_OK; i++) {
        l->first_bend[i] = l->box[i].layer + 1 < deepest[i] ? (int)l->bend.n : -1;
        for (int k = l->box[i].layer + 1; k < deepest[i] && s == MC_OK; k++) {
            struct mc_bend b = { i, k, 0 };
            s = VEC_PUSH(l->bend, b) ? MC_OK : MC_EMEMORY;
        }
    }
    mc_free(deepest);
    return s;
}

static double port_of(const struct mc_layout *l, const struct mc_picture *p, const struct mc_arrow *a)
{
    double w = l->box[a->to].w;
    int n = MC_MAX(p->node.at[a->to].node->nin, a->port + 1);
    return w * (a->port + 1) / (n + 1) - w / 2;
}

static mc_status find_ties(struct nets *t)
{
    const struct mc_layout *l = t->l;
    int n = (int)t->p->node.n;
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        struct cell c = { l->box[i].layer, 0, l->box[i].w };
        good = VEC_PUSH(t->cell, c);
    }
    for (size_t i = 0; i < l->bend.n && good; i++) {
        const struct mc_bend *b = &l->bend.at[i];
        struct cell c = { b->layer, 0, 0 };
        struct tie e = { (int)i == l->first_bend[b->from] ? b->from : n + (int)i - 1, n + (int)i, 0 };
        good = VEC_PUSH(t->cell, c) && VEC_PUSH(t->tie, e);
    }
    for (size_t i = 0; i < t->p->arrow.n && good; i++) {
        const struct mc_arrow *a = &t->p->arrow.at[i];
        int above = l->box[a->to].layer - 1 - l->box[a->from].layer; /* number of bends passed */
        struct tie e = { above ? n + l->first_bend[a->from] + above - 1 : a->from, a->to,
                         port_of(l, t->p, a) };
        good = VEC_PUSH(t->tie, e);
    }
    return good ? MC_OK : MC_EMEMORY;
}

/* Builds the lists of ties by cell and of cells by layer. */
static mc_status find_lists(struct nets *t)
{
    size_t nc = t->cell.n, nt = t->tie.n, nl = (size_t)t->l->nlayer;
    t->up = mc_alloc((nt + 1) * sizeof *t->up, "picture");
    t->down = mc_alloc((nt + 1) * sizeof *t->down, "picture");
    t->up_at = mc_calloc(nc + 2, sizeof *t->up_at, "picture");
    t->down_at = mc_calloc(nc + 2, sizeof *t->down_at, "picture");
    t->slot = mc_alloc((nc + 1) * sizeof *t->slot, "picture");
    t->slot_at = mc_calloc(nl + 2, sizeof *t->slot_at, "picture");
    t->mean = mc_alloc((nc + 1) * sizeof *t->mean, "picture");
    t->mass = mc_alloc((nc + 1) * sizeof *t->mass, "picture");
    t->size = mc_alloc((nc + 1) * sizeof *t->size, "picture");
    if (!t->up || !t->down || !t->up_at || !t->down_at || !t->slot || !t->slot_at || !t->mean || !t->mass ||
        !t->size) {
        return MC_EMEMORY;
    }
    /* counts are stored one entry further on, so that filling turns them into starts */
    for (size_t i = 0; i < nt; i++) {
        t->up_at[t->tie.at[i].b + 2]++;
        t->down_at[t->tie.at[i].a + 2]++;
    }
    for (size_t i = 0; i < nc; i++) {
        t->slot_at[t->cell.at[i].layer + 2]++;
        t->up_at[i + 2] += t->up_at[i + 1];
        t->down_at[i + 2] += t->down_at[i + 1];
    }
    for (size_t i = 0; i < nl; i++) {
        t->slot_at[i + 2] += t->slot_at[i + 1];
    }
    for (size_t i = 0; i < nt; i++) {
        t->up[t->up_at[t->tie.at[i].b + 1]++] = (int)i;
        t->down[t->down_at[t->tie.at[i].a + 1]++] = (int)i;
    }
    for (size_t i = 0; i < nc; i++) {
        t->slot[t->slot_at[t->cell.at[i].layer + 1]++].cell = (int)i;
    }
    return MC_OK;
}

/* ---- positions ---- */

/* The wanted position of a cell: the mean over the ties above it, below it, or both. */
static void wish(struct nets *t, struct slot *s, bool above, bool below)
{
    const struct cell *c = &t->cell.at[s->cell];
    double sum = 0;
    int n = 0;
    for (int i = t->up_at[s->cell]; above && i < t->up_at[s->cell + 1]; i++, n++) {
        const struct tie *e = &t->tie.at[t->up[i]];
        sum += t->cell.at[e->a].x - e->port;
    }
    for (int i = t->down_at[s->cell]; below && i < t->down_at[s->cell + 1]; i++, n++) {
        const struct tie *e = &t->tie.at[t->down[i]];
        sum += t->cell.at[e->b].x + e->port;
    }
    s->want = n ? sum / n : c->x;
    s->weight = n ? (c->w > 0 ? n : 4) : 0.1; /* bends get more weight, which straightens wires */
}

static int by_want(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return x->want < y->want ? -1 : x->want > y->want ? 1 : (x->rank > y->rank) - (x->rank < y->rank);
}

static double distance_between(const struct nets *t, int a, int b)
{
    double wa = t->cell.at[a].w, wb = t->cell.at[b].w;
    return (wa + wb) / 2 + (wa > 0 || wb > 0 ? gap_boxes : gap_bends);
}

/* Least squares: the wanted position minus the space needed by the cells to the left must not decrease;
 * blocks that violate this are pooled. */
static void settle(struct nets *t, struct slot *s, int n)
{
    double width = 0;
    int blocks = 0, k = 0;
    for (int i = 0; i < n; i++) {
        width += i ? distance_between(t, s[i - 1].cell, s[i].cell) : 0;
        t->mean[blocks] = s[i].want - width;
        t->mass[blocks] = s[i].weight;
        t->size[blocks] = 1;
        for (; blocks > 0 && t->mean[blocks - 1] > t->mean[blocks]; blocks--) {
            double mass = t->mass[blocks - 1] + t->mass[blocks];
            t->mean[blocks - 1] = (t->mean[blocks - 1] * t->mass[blocks - 1] +
                                   t->mean[blocks] * t->mass[blocks]) /
                                  mass;
            t->mass[blocks - 1] = mass;
            t->size[blocks - 1] += t->size[blocks];
        }
        blocks++;
    }
    width = 0;
    for (int b = 0; b < blocks; b++) {
        for (int i = 0; i < t->size[b]; i++, k++) {
            width += k ? distance_between(t, s[k - 1].cell, s[k].cell) : 0;
            t->cell.at[s[k].cell].x = t->mean[b] + width;
        }
    }
}

static void sweep(struct nets *t, bool down, bool order, bool both)
{
    for (int k = 0; k < t->l->nlayer; k++) {
        int layer = down ? k : t->l->nlayer - 1 - k, n = t->slot_at[layer + 1] - t->slot_at[layer];
        struct slot *s = &t->slot[t->slot_at[layer]];
        for (int i = 0; i < n; i++) {
            s[i].rank = (size_t)i;
            wish(t, &s[i], both || down, both || !down);
        }
        if (order) {
            qsort(s, (size_t)n, sizeof *s, by_want);
        }
        settle(t, s, n);
    }
}

static void assign_positions(struct nets *t)
{
    /* initial positions: side by side, in the order of creation */
    for (int layer = 0; layer < t->l->nlayer; layer++) {
        struct slot *s = &t->slot[t->slot_at[layer]];
        int n = t->slot_at[layer + 1] - t->slot_at[layer];
        for (int i = 0; i < n; i++) {
            s[i].want = 0;
            s[i].weight = 1;
        }
        settle(t, s, n);
    }
    for (int i = 0; i < SWEEPS; i++) {
        sweep(t, i % 2, true, false);
    }
    for (int i = 0; i < SETTLE; i++) {
        sweep(t, i % 2, false, true);
    }
}

/* ---- the sheet ---- */

static void finish(struct mc_layout *l, const struct nets *t)
{
    int n = (int)t->p->node.n;
    double left = 0, right = 0, y = 0;
    for (size_t i = 0; i < t->cell.n; i++) {
        const struct cell *c = &t->cell.at[i];
        left = i ? MC_MIN(left, c->x - c->w / 2) : c->x - c->w / 2;
        right = i ? MC_MAX(right, c->x + c->w / 2) : c->x + c->w / 2;
    }
    for (int i = 0; i < n; i++) {
        l->box[i].x = t->cell.at[i].x - left;
        l->deep[l->box[i].layer] = MC_MAX(l->deep[l->box[i].layer], l->box[i].h);
    }
    for (size_t i = 0; i < l->bend.n; i++) {
        l->bend.at[i].x = t->cell.at[n + (int)i].x - left;
    }
    for (int k = 0; k < l->nlayer; k++) {
        l->top[k] = y;
        y += l->deep[k] + gap_layers;
    }
    for (int i = 0; i < n; i++) {
        l->box[i].y = l->top[l->box[i].layer] + (l->deep[l->box[i].layer] - l->box[i].h) / 2;
    }
    l->w = right - left;
    l->h = y - gap_layers;
}

mc_status mc_layout_make(struct mc_layout *l, const struct mc_picture *p)
{
    struct nets t = { .l = l, .p = p };
    l->first_bend = mc_alloc((p->node.n + 1) * sizeof *l->first_bend, "picture");
    mc_status s = l->first_bend ? find_layers(l, p) : MC_EMEMORY;
    s = s < 0 ? s : find_bends(l, p);
    s = s < 0 ? s : find_ties(&t);
    s = s < 0 ? s : find_lists(&t);
    if (s == MC_OK) {
        l->top = mc_calloc((size_t)l->nlayer + 1, sizeof *l->top, "picture");
        l->deep = mc_calloc((size_t)l->nlayer + 1, sizeof *l->deep, "picture");
        s = l->top && l->deep ? MC_OK : MC_EMEMORY;
    }
    if (s == MC_OK) {
        assign_positions(&t);
        finish(l, &t);
    }
    VEC_FREE(t.cell);
    VEC_FREE(t.tie);
    mc_free(t.up);
    mc_free(t.down);
    mc_free(t.up_at);
    mc_free(t.down_at);
    mc_free(t.slot);
    mc_free(t.slot_at);
    mc_free(t.mean);
    mc_free(t.mass);
    mc_free(t.size);
    return s;
}

void mc_layout_free(struct mc_layout *l)
{
    mc_free(l->box);
    mc_free(l->first_bend);
    mc_free(l->top);
    mc_free(l->deep);
    VEC_FREE(l->bend);
}

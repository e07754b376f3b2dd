/* min_cut.c: assigns things to two sides at the least total cost.  A thing has a cost on each side, and a
 * pair of things may have a cost for being on different sides.  It is a minimum cut, found by shortest
 * augmenting paths.
 *
 * Invariant: arc e ^ 1 is the reverse of arc e; the sum of their capacities does not change. */
#include "lower/min_cut.h"

/* Vertices are the things, numbered from 0, then one for each side. */
static int source_node(const struct mc_min_cut *c)
{
    return c->things;
}

static int sink_node(const struct mc_min_cut *c)
{
    return c->things + 1;
}

static mc_status add_edge(struct mc_min_cut *c, int a, int b, int64_t forward, int64_t backward)
{
    struct mc_min_cut_arc to = { b, c->newest[a], forward }, from = { a, c->newest[b], backward };
    if (!VEC_PUSH(c->arc, to) || !VEC_PUSH(c->arc, from)) {
        return MC_EMEMORY;
    }
    c->newest[a] = (int)c->arc.n - 2;
    c->newest[b] = (int)c->arc.n - 1;
    return MC_OK;
}

mc_status mc_min_cut_begin(struct mc_min_cut *c, int things)
{
    const size_t n = (size_t)things + 2;
    *c = (struct mc_min_cut){ .things = things };
    c->newest = mc_alloc(n * sizeof *c->newest, "lower");
    c->by = mc_alloc(n * sizeof *c->by, "lower");
    c->line = mc_alloc(n * sizeof *c->line, "lower");
    if (!c->newest || !c->by || !c->line) {
        mc_min_cut_free(c);
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        c->newest[i] = -1;
    }
    return MC_OK;
}

mc_status mc_min_cut_side_cost(struct mc_min_cut *c, int thing, int64_t first, int64_t second)
{
    const int64_t least = MC_MIN(first, second); /* is paid on either side */
    if (second > least) {
        TRY(add_edge(c, source_node(c), thing, second - least, 0));
    }
    return first > least ? add_edge(c, thing, sink_node(c), first - least, 0) : MC_OK;
}

mc_status mc_min_cut_edge(struct mc_min_cut *c, int a, int b, int64_t cost)
{
    return add_edge(c, a, b, cost, cost);
}

/* Searches backwards from the second side along arcs with capacity left.  by[]: the arc that leads on towards
 * the second side; -1: none.  Returns whether the first side is reached. */
static bool augment(struct mc_min_cut *c)
{
    int head = 0, tail = 0;
    for (int i = 0; i < c->things + 2; i++) {
        c->by[i] = -1;
    }
    c->line[tail++] = sink_node(c);
    while (head < tail) {
        const int v = c->line[head++];
        for (int e = c->newest[v]; e >= 0; e = c->arc.at[e].next) {
            const int u = c->arc.at[e].to;
            if (c->arc.at[e ^ 1].capacity > 0 && c->by[u] < 0 && u != sink_node(c)) {
                c->by[u] = e ^ 1;
                c->line[tail++] = u;
            }
        }
    }
    return c->by[source_node(c)] >= 0;
}

void mc_min_cut_solve(struct mc_min_cut *c, bool *second)
{
    while (augment(c)) {
        int64_t most = INT64_MAX;
        for (int v = source_node(c); v != sink_node(c); v = c->arc.at[c->by[v]].to) {
            most = MC_MIN(most, c->arc.at[c->by[v]].capacity);
        }
        for (int v = source_node(c); v != sink_node(c); v = c->arc.at[c->by[v]].to) {
            c->arc.at[c->by[v]].capacity -= most;
            c->arc.at[c->by[v] ^ 1].capacity += most;
        }
    }
    for (int i = 0; i < c->things; i++) {
        second[i] = c->by[i] >= 0;
    }
}

void mc_min_cut_free(struct mc_min_cut *c)
{
    VEC_FREE(c->arc);
    mc_free(c->newest);
    mc_free(c->by);
    mc_free(c->line);
    c->newest = c->by = c->line = NULL;
}

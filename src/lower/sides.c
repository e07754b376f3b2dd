/* sides.c: things that go to one of two sides, each with what it costs there, some with what it costs to be
 * parted: the sides that cost least in all.  A minimum cut, by shortest augmenting paths.
 *
 * Invariant: arcs stand in pairs, each behind or before its reverse; the rooms of a pair have the same sum
 * for ever. */
#include "lower/sides.h"

/* Things are numbered from 0; the first side and the second are two more. */
static int first_side(const struct mc_sides *c)
{
    return c->things;
}

static int second_side(const struct mc_sides *c)
{
    return c->things + 1;
}

static mc_status join(struct mc_sides *c, int a, int b, int64_t there, int64_t back)
{
    struct mc_arc to = { b, c->newest[a], there }, from = { a, c->newest[b], back };
    if (!VEC_PUSH(c->arc, to) || !VEC_PUSH(c->arc, from)) {
        return MC_EMEMORY;
    }
    c->newest[a] = (int)c->arc.n - 2;
    c->newest[b] = (int)c->arc.n - 1;
    return MC_OK;
}

mc_status mc_sides_begin(struct mc_sides *c, int things)
{
    const size_t n = (size_t)things + 2;
    *c = (struct mc_sides){ .things = things };
    c->newest = mc_alloc(n * sizeof *c->newest, "lower");
    c->by = mc_alloc(n * sizeof *c->by, "lower");
    c->line = mc_alloc(n * sizeof *c->line, "lower");
    if (!c->newest || !c->by || !c->line) {
        mc_sides_free(c);
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        c->newest[i] = -1;
    }
    return MC_OK;
}

mc_status mc_sides_cost(struct mc_sides *c, int thing, int64_t first, int64_t second)
{
    const int64_t least = MC_MIN(first, second); /* is paid anyway */
    mc_status s = second > least ? join(c, first_side(c), thing, second - least, 0) : MC_OK;
    return s < 0 || first == least ? s : join(c, thing, second_side(c), first - least, 0);
}

mc_status mc_sides_parted(struct mc_sides *c, int a, int b, int64_t cost)
{
    return join(c, a, b, cost, cost);
}

/* From the second side backwards along arcs with room: by[] has the arc that leads on, -1 where none does.
 * Is the first side reached? */
static bool search(struct mc_sides *c)
{
    int head = 0, tail = 0;
    for (int i = 0; i < c->things + 2; i++) {
        c->by[i] = -1;
    }
    c->line[tail++] = second_side(c);
    while (head < tail) {
        const int v = c->line[head++];
        for (int e = c->newest[v]; e >= 0; e = c->arc.at[e].next) {
            const int u = c->arc.at[e].to;
            if (c->arc.at[e ^ 1].room > 0 && c->by[u] < 0 && u != second_side(c)) {
                c->by[u] = e ^ 1;
                c->line[tail++] = u;
            }
        }
    }
    return c->by[first_side(c)] >= 0;
}

void mc_sides_find(struct mc_sides *c, bool *second)
{
    while (search(c)) {
        int64_t most = INT64_MAX;
        for (int v = first_side(c); v != second_side(c); v = c->arc.at[c->by[v]].to) {
            most = MC_MIN(most, c->arc.at[c->by[v]].room);
        }
        for (int v = first_side(c); v != second_side(c); v = c->arc.at[c->by[v]].to) {
            c->arc.at[c->by[v]].room -= most;
            c->arc.at[c->by[v] ^ 1].room += most;
        }
    }
    for (int i = 0; i < c->things; i++) {
        second[i] = c->by[i] >= 0;
    }
}

void mc_sides_free(struct mc_sides *c)
{
    VEC_FREE(c->arc);
    mc_free(c->newest);
    mc_free(c->by);
    mc_free(c->line);
    c->newest = c->by = c->line = NULL;
}

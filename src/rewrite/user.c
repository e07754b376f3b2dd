/* user.c: rules that a user adds to one graph. They run in every pass after the built-in rules, the oldest
 * first, under the same checks. */
#include "rewrite/rewrite.h"

static const char *keep(mc_graph *g, const char *s)
{
    return s ? mc_arena_str(&g->arena, s, strlen(s)) : NULL;
}

static mc_status add(mc_graph *g, const char *from, const char *to, const char *tags)
{
    struct mc_user_rule *u = mc_arena_alloc(&g->arena, sizeof *u), **end = &g->rules;
    if (!u) {
        return MC_EMEMORY;
    }
    u->rule = (struct mc_rule){
        .from = keep(g, from), .to = keep(g, to), .promise = ROUND, .tags = keep(g, tags)
    };
    if (!u->rule.from || !u->rule.to || (tags && !u->rule.tags)) {
        return MC_EMEMORY;
    }
    u->from = mc_pattern_parse(g, u->rule.from, NULL);
    u->to = u->from ? mc_pattern_parse(g, u->rule.to, u->from) : NULL;
    if (!u->from || !u->to) {
        return g->status;
    }
    while (*end) {
        end = &(*end)->next;
    }
    *end = u;
    return MC_OK;
}

/* An error in a rule does not put the graph into an error state. */
mc_status mc_rewrite_add(mc_graph *g, const char *from, const char *to, const char *tags)
{
    if (!g || !from || !to) {
        return mc_fail(MC_EARG, "rewrite_add: no %s", !g ? "graph" : !from ? "left side" : "right side");
    }
    mc_status before = g->status;
    char *message = g->message;
    g->status = MC_OK;
    g->message = NULL;
    mc_status s = add(g, from, to, tags);
    if (s < 0 && g->message) {
        mc_fail(s, "rewrite_add: %s", g->message);
    }
    mc_graph_clear_error(g);
    g->status = before;
    g->message = message;
    return s;
}

mc_status mc_rewrite_share(mc_graph *g, const mc_graph *from)
{
    for (const struct mc_user_rule *u = from->rules; u; u = u->next) {
        TRY(mc_rewrite_add(g, u->rule.from, u->rule.to, u->rule.tags));
    }
    return MC_OK;
}

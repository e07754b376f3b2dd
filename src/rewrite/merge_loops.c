/* merge_loops.c: loops with the same inputs that compute the same states become one loop with the results of
 * both.  A gradient adds such a loop, which saves what the gradient reads.
 *
 * Invariant: a merged loop has the values of both, bit for bit. */
#include "op/loop.h"
#include "rewrite/rewrite.h"

struct pair {
    mc_node *n[2];
    struct mc_loop l[2];
    mc_graph *g;            /* of the merged body */
    mc_node *in[MC_MOST_LOOP_INPUTS], *out[2][MC_MOST_RESULTS]; /* in it: what both bodies are */
    mc_node *collect[MC_MOST_RESULTS]; /* what either collects, each once */
    int ncollect;
};

static bool same_inputs(const mc_node *a, const mc_node *b)
{
    bool same = a->op == b->op && a->nin == b->nin;
    for (int i = 0; i < a->nin && same; i++) {
        same = a->in[i] == b->in[i];
    }
    for (int i = LOOP_SEQUENCES; i < MC_LOOP_ATTRS && same; i++) {
        same = i == LOOP_KEPT || mc_attr_int(&a->attr[i]) == mc_attr_int(&b->attr[i]);
    }
    return same;
}

/* Copies both bodies over the same inputs. */
static mc_status copy_bodies(struct pair *p)
{
    const struct mc_body *b = p->l[0].body;
    for (int i = 0; i < b->nin; i++) {
        p->in[i] = mc_node_blank(p->g, &b->in[i]->type);
        if (mc_is_error(p->in[i])) {
            return MC_EMEMORY;
        }
        mc_node_call(p->in[i], mc_body_name(b, i));
    }
    for (int k = 0; k < 2; k++) {
        b = p->l[k].body;
        memcpy(p->out[k], b->out, (size_t)b->nout * sizeof *b->out);
        TRY(mc_graph_copy(p->g, b->nin, b->in, p->in, b->nout, p->out[k]));
    }
    return MC_OK;
}

/* Do both compute the same states, and end by the same condition? */
static bool same_states(const struct pair *p)
{
    bool same = true;
    for (int i = 0; i < p->l[0].nstate && same; i++) {
        same = p->out[0][i] == p->out[1][i];
    }
    return same && (!p->l[0].until || p->out[0][p->l[0].body->nout - 1] == p->out[1][p->l[1].body->nout - 1]);
}

/* The position of n among what is collected; -1: there are too many. */
static int collected(struct pair *p, mc_node *n)
{
    int i = 0;
    while (i < p->ncollect && p->collect[i] != n) {
        i++;
    }
    if (i == p->ncollect && p->l[0].nstate + i + 1 < MC_MOST_RESULTS) {
        p->collect[p->ncollect++] = n;
    }
    return i < p->ncollect ? i : -1;
}

/* NULL: there would be too many results, or an error */
static mc_node *merged_loop(struct pair *p)
{
    const struct mc_loop *l = &p->l[0];
    mc_node *out[MC_MOST_RESULTS];
    int n = 0;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < p->l[k].ncollect; i++) {
            if (collected(p, p->out[k][l->nstate + i]) < 0) {
                return NULL;
            }
        }
    }
    for (int i = 0; i < l->nstate; i++) {
        out[n++] = p->out[0][i];
    }
    for (int i = 0; i < p->ncollect; i++) {
        out[n++] = p->collect[i];
    }
    if (l->until) {
        out[n++] = p->out[0][l->body->nout - 1];
    }
    const struct mc_body *body = mc_body_make(p->g, l->body->nin, p->in, n, out);
    if (!body) {
        return NULL;
    }
    int64_t kept = (int64_t)(p->l[0].kept | p->l[1].kept);
    struct mc_attr attr[MC_LOOP_ATTRS];
    memcpy(attr, p->n[0]->attr, sizeof attr);
    attr[LOOP_BODY] = (struct mc_attr){ .kind = ATTR_BODY, .text = body->text, .body = body };
    attr[LOOP_KEPT].ints = &kept;
    mc_node *made = mc_node_make(p->n[0]->graph, p->n[0]->op, p->n[0]->nin, p->n[0]->in, attr);
    mc_body_unref(body);
    return mc_is_error(made) ? NULL : made;
}

static mc_node *result_of(mc_node *n, int i)
{
    return n->nout == 1 ? n : mc_item(n, i);
}

/* What result i of loop k is in the merged one. */
static mc_node *in_merged(struct pair *p, mc_node *merged, int k, int i)
{
    const struct mc_loop *l = &p->l[k], m = mc_loop_of(merged->attr);
    int at = i;
    if (l->until && i == l->nstate + l->nkept + l->ncollect) {
        at = merged->nout - 1;
    } else if (i >= l->nstate + l->nkept) {
        at = mc_loop_collect_result(&m, collected(p, p->out[k][i - l->nkept]));
    } else if (i >= l->nstate) {
        int state = 0;
        while (mc_loop_kept_result(l, state) != i) {
            state++;
        }
        at = mc_loop_kept_result(&m, state);
    }
    return result_of(merged, at);
}

static mc_status replace(struct pair *p, mc_node *merged, int n, mc_node **out)
{
    mc_node *from[2 * MC_MOST_RESULTS], *to[2 * MC_MOST_RESULTS];
    int count = 0;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < p->n[k]->nout; i++) {
            from[count] = result_of(p->n[k], i);
            to[count] = in_merged(p, merged, k, i);
            if (mc_is_error(from[count]) || mc_is_error(to[count])) {
                return MC_EMEMORY;
            }
            count++;
        }
    }
    return mc_graph_replace(merged->graph, count, from, to, n, out);
}

/* *merged: whether the loops became one */
static mc_status merge(mc_node *a, mc_node *b, int n, mc_node **out, bool *merged)
{
    struct pair *p = mc_calloc(1, sizeof *p, "loops");
    *merged = false;
    if (!p) {
        return MC_EMEMORY;
    }
    *p = (struct pair){ .n = { a, b },
                        .l = { mc_loop_of(a->attr), mc_loop_of(b->attr) },
                        .g = mc_graph_make(a->graph->language) };
    mc_status s = p->g ? a->graph->language->share(p->g, a->graph) : MC_EMEMORY;
    s = s < 0 ? s : copy_bodies(p);
    mc_node *made = s == MC_OK && same_states(p) ? merged_loop(p) : NULL;
    if (made) {
        s = replace(p, made, n, out);
        *merged = s == MC_OK;
    }
    mc_graph_free(p->g);
    mc_free(p);
    return s;
}

/* Merges the first two loops that can be merged. */
static mc_status merge_first(int n, mc_node **out, bool *merged)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(n, out, &count);
    mc_status s = list ? MC_OK : MC_EMEMORY;
    *merged = false;
    for (size_t i = 0; i < count && s == MC_OK && !*merged; i++) {
        for (size_t k = i + 1; k < count && list[i]->op->form == FORM_LOOP && s == MC_OK && !*merged; k++) {
            if (same_inputs(list[i], list[k])) {
                s = merge(list[i], list[k], n, out, merged);
            }
        }
    }
    mc_free(list);
    return s;
}

mc_status mc_loops_merge(int n, mc_node **out)
{
    mc_status s = MC_OK;
    for (bool more = true; more && s == MC_OK;) {
        s = merge_first(n, out, &more);
    }
    return s;
}

/* scan_checkpoint.c: a loop as a loop over segments of `every` steps, whose body is the loop over one
 * segment, and a loop over the steps that are left.  The gradient of the outer loop reads the states before
 * each segment, and computes the inner loop again: gradients do not save the results of inner loops.
 *
 * Invariant: the values are those of the plain loop, bit for bit. */
#include "op/loop.h"

struct segments {
    mc_graph *g, *b;        /* the loop's graph; that of the body of the outer loop */
    mc_node *n;             /* the plain loop */
    struct mc_loop l;
    mc_node *every, *count, *covered, *rest; /* steps of a segment; segments; steps in them; steps left */
    mc_node *inner[1 + MC_MOST_LOOP_INPUTS]; /* inputs of the inner loop */
    VEC(struct mc_loop_item) item;
};

static bool good(const mc_node *n)
{
    return !mc_is_error(n);
}

static mc_node *expr(struct segments *s, const char *text, mc_node *x)
{
    const struct mc_bind b[] = { { "x", x, NULL },
                                 { "n", s->n->in[0], NULL },
                                 { "k", s->every, NULL },
                                 { "m", s->count, NULL },
                                 { "c", s->covered, NULL } };
    return good(x) ? mc_expr(s->g, text, b, 5) : x;
}

static mc_node *with_sizes(struct segments *s, mc_node *x, int sizes, mc_node *const *size)
{
    mc_node *vector = mc_call_op(s->g, "stack", sizes, size, NULL);
    struct mc_attr rank = { .kind = ATTR_INT, .n = 1, .ints = (int64_t[]){ sizes } };
    return good(vector) ? mc_apply(s->g, mc_op_named(s->g, "reshape"), 2, (mc_node *[]){ x, vector }, &rank)
                        : vector;
}

/* The segments of a sequence: (count, every, ...) of its first elements. */
static mc_node *split(struct segments *s, mc_node *x)
{
    mc_node *size[MC_MAX_RANK + 1], *head = expr(s, "x[:c]", x);
    int n = 0;
    if (!good(head) || x->type.rank == MC_MAX_RANK) {
        return good(head) ? mc_node_fail(s->g, MC_ESHAPE, "scan: a sequence with %d axes has no checkpoints",
                                         MC_MAX_RANK)
                          : head;
    }
    size[n++] = s->count;
    size[n++] = s->every;
    for (int k = 1; k < x->type.rank; k++) {
        size[n++] = mc_size_of(x, k);
    }
    return with_sizes(s, head, n, size);
}

/* (count, every, ...) as one axis of steps */
static mc_node *as_steps(struct segments *s, mc_node *x)
{
    mc_node *size[MC_MAX_RANK + 1];
    int n = 0;
    if (!good(x)) {
        return x;
    }
    size[n++] = s->covered;
    for (int k = 2; k < x->type.rank; k++) {
        size[n++] = mc_size_of(x, k);
    }
    return with_sizes(s, x, n, size);
}

static bool add(struct segments *s, enum mc_loop_part part, mc_node *outer, const struct mc_type *inner,
                int i)
{
    mc_node *blank = mc_node_blank(s->b, inner);
    if (!good(outer) || !good(blank)) {
        return false;
    }
    mc_node_call(blank, mc_body_name(s->l.body, i));
    s->inner[1 + i] = blank;
    return VEC_PUSH(s->item, ((struct mc_loop_item){ .part = part, .outer = outer, .inner = blank }));
}

/* The inputs of the outer loop, and in its body what stands for them. */
static bool add_inputs(struct segments *s)
{
    const int first_constant = s->l.nsequence + s->l.nstate;
    bool fine = true;
    for (int i = 0; i < s->l.body->nin && fine; i++) {
        mc_node *outer = s->n->in[1 + i];
        struct mc_type t = outer->type;
        if (i < s->l.nsequence) {
            t.dims[0] = -1;
            double every;
            t.dims[0] = mc_const_number(s->every, &every) ? (int64_t)every : -1;
            fine = add(s, LOOP_SEQUENCE, split(s, outer), &t, i);
        } else {
            fine = add(s, i < first_constant ? LOOP_STATE : LOOP_CONSTANT, outer, &t, i);
        }
    }
    return fine;
}

/* The loop over the steps that are left, from the states behind the segments. */
static mc_node *remainder_loop(struct segments *s, mc_node *outer, const struct mc_loop_spec *made)
{
    mc_node *in[1 + MC_MOST_LOOP_INPUTS];
    in[0] = s->rest;
    for (int i = 0; i < s->l.body->nin; i++) {
        mc_node *x = s->n->in[1 + i];
        in[1 + i] = i < s->l.nsequence                 ? expr(s, "x[c:]", x)
                    : i < s->l.nsequence + s->l.nstate ? mc_item(outer, made->item[i].result)
                                                       : x;
        if (!good(in[1 + i])) {
            return in[1 + i];
        }
    }
    return mc_apply(s->g, s->n->op, 1 + s->l.body->nin, in, s->n->attr);
}

static mc_node *results(struct segments *s, mc_node *outer, const struct mc_loop_spec *made)
{
    const int nresult = s->l.nstate + s->l.nkept + s->l.ncollect;
    mc_node *rest = remainder_loop(s, outer, made), *out[MC_MOST_RESULTS];
    for (int i = 0; i < nresult && good(rest); i++) {
        mc_node *last = mc_item(rest, i);
        out[i] = last;
        if (i >= s->l.nstate) {
            mc_node *both[2] = { as_steps(s, mc_item(outer, made->collected + i - s->l.nstate)), last };
            out[i] = good(both[0])
                         ? mc_expr(s->g, "concatenate(a, b, axis=0)",
                                   (struct mc_bind[]){ { "a", both[0], NULL }, { "b", last, NULL } }, 2)
                         : both[0];
        }
        if (!good(out[i])) {
            return out[i];
        }
    }
    return !good(rest) ? rest : nresult == 1 ? out[0] : mc_node_make(s->g, &mc_op_tuple, nresult, out, NULL);
}

static mc_node *segmented(struct segments *s, int64_t every)
{
    mc_node *collect[MC_MOST_RESULTS];
    s->every = mc_node_int(s->g, every);
    s->count = s->covered = s->every;
    s->count = expr(s, "cast(n, 'int64') // k", s->every);
    s->covered = good(s->count) ? expr(s, "m * k", s->every) : s->count;
    s->rest = good(s->covered) ? expr(s, "cast(n, 'int64') - c", s->every) : s->covered;
    s->inner[0] = mc_node_int(s->b, every);
    if (!good(s->rest) || !good(s->inner[0]) || !add_inputs(s)) {
        return s->g->error;
    }
    mc_node *loop = mc_apply(s->b, s->n->op, 1 + s->l.body->nin, s->inner, s->n->attr);
    if (!good(loop)) {
        return mc_node_fail(s->g, mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY, "%s",
                            mc_last_error());
    }
    for (int i = 0; i < s->l.nstate; i++) {
        s->item.at[s->l.nsequence + i].next = mc_item(loop, i);
    }
    for (int i = 0; i < s->l.nkept + s->l.ncollect; i++) {
        collect[i] = mc_item(loop, s->l.nstate + i);
    }
    struct mc_loop_spec made = { .from = s->b, .steps = s->count, .item = s->item.at, .nitem = (int)s->item.n,
                                 .collect = collect, .ncollect = s->l.nkept + s->l.ncollect };
    mc_node *outer = mc_loop_make(s->g, &made);
    return good(outer) ? results(s, outer, &made) : outer;
}

mc_node *mc_loop_checkpointed(mc_node *n, int64_t every)
{
    struct segments s = { .g = n->graph, .n = n, .l = mc_loop_of(n->attr) };
    if (s.l.until || s.l.truncate) {
        return mc_node_fail(s.g, MC_EUNSUPPORTED, "scan: a loop with 'checkpoint' has no '%s'",
                            s.l.until ? "until" : "truncate_gradient");
    }
    s.b = mc_graph_make(s.g->language);
    if (!s.b || s.g->language->share(s.b, s.g) < 0) {
        mc_graph_free(s.b);
        return mc_node_no_memory(s.g);
    }
    mc_node *made = segmented(&s, every);
    if (!good(made) && !*mc_error(s.g)) {
        made = mc_node_no_memory(s.g);
    }
    VEC_FREE(s.item);
    mc_graph_free(s.b);
    return made;
}

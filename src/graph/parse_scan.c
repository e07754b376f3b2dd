/* parse_scan.c: parses a loop, after "scan(":
 *
 *     scan(x in xs, h from h0: h = tanh(dot(x, W) + dot(h, U)); yield h, last h)
 *
 *   steps = n    the number of steps
 *   x in xs      x is an element of xs
 *   h from h0    h is a state; what the body assigns to it is its value in the next step
 *   k = e        k is the value of e, which is computed before the loop
 *
 * The body is a list of statements.  `yield` lists the results: a value of every step, `last h`, or with
 * `until` or `halt` `count`, the number of steps that were made.  Without it the results are the states.
 * `until c` ends the loop after the step in which c is true; `halt c` too, but the results are as long as
 * without it, with zeros.
 *
 * Invariant: names of the body hide others, and are unknown outside. */
#include "graph/parse.h"

enum { MOST_NAMES = 400, MOST_PARTS = 120 };
struct result { enum { RESULT_ALL, RESULT_LAST, RESULT_COUNT } kind; int of; };
struct scan {
    struct mc_bind bind[MOST_NAMES];
    const char *name[MOST_PARTS]; /* of the states */
    mc_node *element[MOST_PARTS], *state[MOST_PARTS], *next[MOST_PARTS], *collect[MOST_PARTS], *steps, *until;
    bool kept[MOST_PARTS], cut; /* cut: the results end with the last step that was made */
    struct result result[MOST_PARTS];
    int nelement, nstate, ncollect, nresult;
};

/* Binds a name; false: there are too many. */
static bool bind(struct parser *p, struct scan *s, const char *name, mc_node *n)
{
    if (p->nbind == MOST_NAMES) {
        mc_parse_fail(p, p->tok.at, "a scan has at most %d names", MOST_NAMES);
        return false;
    }
    s->bind[p->nbind++] = (struct mc_bind){ name, n, NULL };
    return true;
}

static char *take_name(struct parser *p)
{
    if (p->tok.kind != T_NAME) {
        mc_parse_fail(p, p->tok.at, "expected a name");
        return NULL;
    }
    char *name = mc_parse_copy(p, &p->tok);
    mc_parse_next(p);
    return name;
}

static mc_node *take_node(struct parser *p)
{
    struct val v = mc_parse_expr(p);
    mc_node *n = p->failed ? p->g->error : mc_val_node(p, &v);
    return p->failed ? p->g->error : n;
}

static bool take_word(struct parser *p, const char *word)
{
    const bool is = mc_parse_word(p, word);
    if (is) {
        mc_parse_next(p);
    }
    return is;
}

static mc_node *stand_in(mc_node *n, const char *op)
{
    mc_node *strong = n->weak ? mc_node_const(n->graph, mc_array_ref(n->value), false) : n;
    return mc_apply_plain(n->graph, op, 1, &strong);
}

/* One part of the head.  Its expression sees the names outside; its name is bound when the head is complete.
 * */
static void parse_part(struct parser *p, struct scan *s, struct mc_bind *made)
{
    const size_t at = p->tok.at;
    char *name = take_name(p);
    const bool in = take_word(p, "in"), from = !in && take_word(p, "from");
    if (p->failed) {
        return;
    }
    if (!in && !from && !mc_parse_take(p, "=")) {
        mc_parse_fail(p, p->tok.at, "expected 'in', 'from' or '=' after '%s'", name);
        return;
    }
    mc_node *n = take_node(p), *stands = n;
    if (p->failed) {
        return;
    }
    p->location.at = at;
    *made = (struct mc_bind){ name, n, NULL };
    if (in || from) {
        int *count = in ? &s->nelement : &s->nstate;
        if (*count == MOST_PARTS) {
            mc_parse_fail(p, at, "a scan has at most %d sequences and %d states", MOST_PARTS, MOST_PARTS);
            return;
        }
        stands = mc_val_made(p, stand_in(n, in ? "scan_element" : "scan_state"), at).node;
        s->name[s->nstate] = from ? name : s->name[s->nstate];
        (in ? s->element : s->state)[(*count)++] = stands;
        made->node = stands;
    } else if (strcmp(name, "steps") == 0) {
        s->steps = n;
    }
}

static void parse_head(struct parser *p, struct scan *s)
{
    struct mc_bind made[3 * MOST_PARTS];
    int n = 0;
    while (!p->failed && !mc_parse_is(p, ":")) {
        if (n == (int)NELEM(made)) {
            mc_parse_fail(p, p->tok.at, "a scan has at most %d parts", n);
            return;
        }
        parse_part(p, s, &made[n++]);
        mc_parse_separator(p, ":");
    }
    mc_parse_expect(p, ":");
    for (int i = 0; i < n && !p->failed; i++) {
        bind(p, s, made[i].name, made[i].node);
    }
}

static mc_node *bound(const struct parser *p, const char *name)
{
    for (int i = p->nbind; i-- > 0;) {
        if (strcmp(p->bind[i].name, name) == 0) {
            return p->bind[i].node;
        }
    }
    return NULL;
}

/* "a, b = e, f": all expressions are read before a name is bound. */
static void parse_assignment(struct parser *p, struct scan *s)
{
    char *name[MOST_PARTS];
    mc_node *value[MOST_PARTS];
    const size_t at = p->tok.at;
    int n = 0, have = 0;
    do {
        name[n++] = take_name(p);
    } while (!p->failed && n < MOST_PARTS && mc_parse_take(p, ","));
    mc_parse_expect(p, "=");
    do {
        struct val v = p->failed ? mc_val_of(p->g->error, at) : mc_parse_expr(p);
        const bool several = v.kind == V_NODE && v.node && v.node->nout > 1;
        if (several && have + v.node->nout <= n && n > 1) {
            for (int i = 0; i < v.node->nout; i++) {
                value[have++] = mc_item(v.node, i);
            }
        } else if (have < n && !p->failed) {
            value[have++] = several ? v.node : mc_val_node(p, &v);
        } else if (!p->failed) {
            mc_parse_fail(p, at, "more values than names");
        }
    } while (!p->failed && mc_parse_take(p, ","));
    if (!p->failed && have != n) {
        mc_parse_fail(p, at, "%d names are assigned %d values", n, have);
    }
    for (int i = 0; i < n && !p->failed; i++) {
        bind(p, s, name[i], value[i]);
    }
}

static int state_named(const struct scan *s, const char *name)
{
    int i = s->nstate;
    while (i-- > 0 && strcmp(s->name[i], name) != 0) {
    }
    return i;
}

/* Is the expression that follows a single name, which is that of a state?  Takes it. */
static int take_state(struct parser *p, const struct scan *s)
{
    struct parser ahead = *p;
    char *name = p->tok.kind == T_NAME ? mc_parse_copy(p, &p->tok) : NULL;
    const int i = name ? state_named(s, name) : -1;
    if (i < 0) {
        return -1;
    }
    mc_parse_next(&ahead);
    if (!mc_parse_is(&ahead, ",") && !mc_parse_is(&ahead, ";") && !mc_parse_is(&ahead, ")") &&
        !mc_parse_is(&ahead, "\n")) {
        return -1;
    }
    mc_parse_next(p);
    return i;
}

static void parse_yield(struct parser *p, struct scan *s)
{
    do {
        struct result r = { RESULT_ALL, -1 };
        if (s->nresult == MOST_PARTS || s->ncollect == MOST_PARTS) {
            mc_parse_fail(p, p->tok.at, "a scan has at most %d results", MOST_PARTS);
            return;
        }
        if (take_word(p, "count")) {
            r.kind = RESULT_COUNT;
        } else if (take_word(p, "last")) {
            const size_t at = p->tok.at;
            r = (struct result){ RESULT_LAST, take_state(p, s) };
            if (r.of < 0) {
                mc_parse_fail(p, at, "expected the name of a state after 'last'");
            }
        } else if ((r.of = take_state(p, s)) >= 0) {
            s->kept[r.of] = true;
        } else {
            s->collect[s->ncollect] = take_node(p);
            r.of = s->nstate + s->ncollect++;
        }
        s->result[s->nresult++] = r;
    } while (!p->failed && mc_parse_take(p, ","));
}

static void parse_body(struct parser *p, struct scan *s)
{
    bool yields = false;
    mc_parse_skip(p);
    while (!p->failed && !mc_parse_is(p, ")")) {
        if (take_word(p, "yield")) {
            parse_yield(p, s);
            yields = true;
        } else if (mc_parse_word(p, "until") || mc_parse_word(p, "halt")) {
            s->cut = take_word(p, "until");
            if (!s->cut) {
                mc_parse_next(p);
            }
            s->until = take_node(p);
        } else {
            parse_assignment(p, s);
        }
        if (!p->failed && !mc_parse_skip(p) && !mc_parse_is(p, ")")) {
            mc_parse_fail(p, p->tok.at, "expected the end of a statement in the body of a scan");
        }
    }
    for (int i = 0; i < s->nstate && !p->failed; i++) {
        s->next[i] = bound(p, s->name[i]);
        if (s->next[i] == s->state[i]) {
            LOG(LOG_WARN, "scan: the body assigns nothing to the state '%s'", s->name[i]);
        }
    }
    for (int i = 0; i < s->nstate && !yields; i++) {
        s->kept[i] = true;
        s->result[s->nresult++] = (struct result){ RESULT_ALL, i };
    }
    mc_parse_expect(p, ")");
}

/* Result r of the loop's node. */
static mc_node *result(struct parser *p, const struct scan *s, mc_node *loop, const struct result *r)
{
    int nkept = 0, rank = 0;
    for (int i = 0; i < s->nstate; i++) {
        rank += i < r->of && s->kept[i];
        nkept += s->kept[i];
    }
    mc_node *count = s->until ? mc_item(loop, loop->nout - 1) : NULL;
    if (r->kind == RESULT_COUNT) {
        return count ? count : mc_node_fail(p->g, MC_ESYNTAX, "'count' needs 'until' or 'halt'");
    }
    if (r->kind == RESULT_LAST) {
        return mc_item(loop, r->of);
    }
    mc_node *all = mc_item(loop, r->of < s->nstate ? s->nstate + rank : nkept + r->of);
    return s->cut ? mc_expr(p->g, "x[:n]", (struct mc_bind[]){ { "x", all, NULL }, { "n", count, NULL } }, 2)
                  : all;
}

struct val mc_parse_scan(struct parser *p, size_t at)
{
    struct scan *s = mc_calloc(1, sizeof *s, "formula");
    const struct mc_bind *outer = p->bind;
    const int nouter = p->nbind;
    mc_node *out[MOST_PARTS], *made = p->g->error;
    if (!s || !p->g->language->scan) {
        mc_parse_fail(p, at, s ? "this graph has no loops" : "out of memory");
        mc_free(s);
        return mc_val_of(p->g->error, at);
    }
    if (nouter) {
        memcpy(s->bind, outer, (size_t)MC_MIN(nouter, MOST_NAMES) * sizeof *outer);
    }
    parse_head(p, s);
    p->bind = s->bind;
    if (!p->failed) {
        parse_body(p, s);
    }
    p->bind = outer;
    p->nbind = nouter;
    if (!p->failed) {
        const mc_scan_spec spec = { .steps = s->steps, .element = s->element, .nelement = s->nelement, .state = s->state,
                                    .next = s->next, .nstate = s->nstate, .collect = s->collect, .ncollect = s->ncollect,
                                    .until = s->until };
        p->location.at = at;
        made = p->g->language->scan(p->g, &spec, s->kept);
        for (int i = 0; i < s->nresult && !mc_is_error(made); i++) {
            out[i] = result(p, s, made, &s->result[i]);
            made = mc_is_error(out[i]) ? out[i] : made;
        }
        made = mc_is_error(made) || s->nresult == 0 ? made
               : s->nresult == 1                    ? out[0]
                                                    : mc_node_make(p->g, &mc_op_tuple, s->nresult, out, NULL);
    }
    mc_free(s);
    return mc_val_made(p, made, at);
}

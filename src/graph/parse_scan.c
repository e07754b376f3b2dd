/* parse_scan.c: parses a loop, after "scan(", "map(", "reduce(", "foldl(" or "foldr(":
 *
 *     scan(x in xs, h from h0: h = tanh(dot(x, W) + dot(h, U)); yield h, last h)
 *
 *   steps = n    the number of steps
 *   x in xs      x is an element of xs; "a, b in xs taps [-1, 1]": a is the element before, b the one after
 *   h from h0    h is a state; what the body assigns to it is its value in the next step.  "p, h from h0 taps
 *                [-2, -1]": p is the value before h, and h0 has two values along its first axis
 *   k = e        k is the value of e, which is computed before the loop
 *   go_backwards = True, truncate_gradient = k, checkpoint = k: options of the loop
 *
 * The body is a list of statements.  `yield` lists the results: a value of every step, `last h`, or with
 * `until` or `halt` `count`, the number of steps that were made.  Without it the results are the states.
 * `until c` ends the loop after the step in which c is true; `halt c` too, but the results are as long as
 * without it, with zeros.
 *
 * The body of the other words ends with expressions: values of every step (map), or the next values of the
 * states, whose last values are the results (reduce, foldl; foldr goes backwards).
 *
 * Invariant: names of the body hide others, and are unknown outside. */
#include "graph/parse.h"

enum { MOST_NAMES = 400, MOST_PARTS = 120, MOST_TAPS = 30 };
struct result { enum { RESULT_ALL, RESULT_LAST, RESULT_COUNT } kind; int of; };
struct scan {
    struct mc_bind bind[MOST_NAMES];
    const char *name[MOST_PARTS]; /* of the states; NULL: it only keeps an older value */
    mc_node *read[MOST_PARTS];    /* what the name of a state is before it is assigned */
    mc_node *element[MOST_PARTS], *state[MOST_PARTS], *next[MOST_PARTS], *collect[MOST_PARTS], *steps, *until;
    int64_t go_backwards, truncate_gradient, checkpoint;
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

/* A part of the head: names, and what they stand for in the body. */
struct part {
    int n;
    char *name[MOST_TAPS];
    int64_t tap[MOST_TAPS];
    size_t at;
    bool state;
};

static int64_t least(const struct part *q)
{
    int64_t m = q->tap[0];
    for (int i = 1; i < q->n; i++) {
        m = MC_MIN(m, q->tap[i]);
    }
    return m;
}

/* The position of the greatest tap. */
static int newest(const struct part *q)
{
    int best = 0;
    for (int i = 1; i < q->n; i++) {
        best = q->tap[i] > q->tap[best] ? i : best;
    }
    return best;
}

/* "taps [-1, 0, 1]": a whole number for each name */
static void parse_taps(struct parser *p, struct part *q)
{
    const size_t at = p->tok.at;
    if (!take_word(p, "taps")) {
        q->tap[0] = q->state ? -1 : 0;
        if (q->n > 1) {
            mc_parse_fail(p, at, "expected 'taps' and a list with a number for each of the %d names", q->n);
        }
        return;
    }
    const struct val v = mc_parse_expr(p);
    bool fits = !p->failed && v.kind == V_LIST && v.n == q->n;
    for (int i = 0; fits && i < v.n; i++) {
        fits = v.item[i].kind == V_INT && v.item[i].i > -1000000 && v.item[i].i < 1000000;
        q->tap[i] = fits ? v.item[i].i : 0;
        for (int k = 0; k < i && fits; k++) {
            fits = q->tap[k] != q->tap[i];
        }
    }
    if (!p->failed && !fits) {
        mc_parse_fail(
            p, at, "expected a list with %d different whole numbers after 'taps', one for each name", q->n);
    } else if (!p->failed && q->state && (q->tap[newest(q)] > -1 || least(q) < -MOST_TAPS)) {
        mc_parse_fail(p, at, "a tap of the state '%s' is not from %d to -1", q->name[newest(q)], -MOST_TAPS);
    }
}

/* Returns a stand-in with that name. */
static mc_node *stands(struct parser *p, mc_node *n, const char *op, const char *name, size_t at)
{
    mc_node *made = mc_val_made(p, p->failed ? p->g->error : n, at).node;
    made = p->failed ? made : mc_val_made(p, stand_in(made, op), at).node;
    if (!p->failed) {
        mc_node_call(made, name);
    }
    return made;
}

static bool too_many(struct parser *p, int n, int more, size_t at)
{
    if (n + more > MOST_PARTS) {
        mc_parse_fail(p, at, "a scan has at most %d sequences and %d states", MOST_PARTS, MOST_PARTS);
    }
    return n + more > MOST_PARTS;
}

static void add_elements(struct parser *p, struct scan *s, const struct part *q, mc_node *x,
                         struct mc_bind *made)
{
    const int64_t last = MC_MAX(q->tap[newest(q)], 0), first = MC_MIN(least(q), 0);
    if (too_many(p, s->nelement, q->n, q->at)) {
        return;
    }
    if (first < last) {
        x = mc_val_made(p, mc_tap_checked(x, q->name[newest(q)], false, (int)(last - first)), q->at).node;
    }
    for (int i = 0; i < q->n && !p->failed; i++) {
        mc_node *slice = first < last ? mc_tap_slice(x, (int)q->tap[i], (int)first, (int)last) : x;
        made[i].node = s->element[s->nelement++] = stands(p, slice, "scan_element", q->name[i], q->at);
    }
}

/* A state, and one more for each step that it is read further back. */
static void add_states(struct parser *p, struct scan *s, const struct part *q, mc_node *initial,
                       struct mc_bind *made)
{
    const int depth = (int)-least(q), first = s->nstate;
    const char *name = q->name[newest(q)];
    if (too_many(p, s->nstate, depth, q->at)) {
        return;
    }
    if (depth > 1) {
        initial = mc_val_made(p, mc_tap_checked(initial, name, true, depth), q->at).node;
    }
    for (int back = 1; back <= depth && !p->failed; back++) {
        mc_node *x = depth > 1 ? mc_tap_initial(initial, depth, back) : initial;
        s->name[s->nstate] = back == 1 ? name : NULL;
        s->state[s->nstate++] = stands(p, x, "scan_state", back == 1 ? name : NULL, q->at);
    }
    for (int i = 0; i < q->n && !p->failed; i++) {
        made[i].node = s->state[first - 1 - (int)q->tap[i]];
        mc_node_call(made[i].node, q->name[i]);
    }
    s->read[first] = p->failed ? NULL : made[newest(q)].node;
}

/* "go_backwards = True", "checkpoint = 10": the number; an option has no name in the body. */
static int64_t *option(struct scan *s, const char *name)
{
    return strcmp(name, "go_backwards") == 0        ? &s->go_backwards
           : strcmp(name, "truncate_gradient") == 0 ? &s->truncate_gradient
           : strcmp(name, "checkpoint") == 0        ? &s->checkpoint
                                                    : NULL;
}

static void parse_option(struct parser *p, const char *name, int64_t *to, size_t at)
{
    const struct val v = mc_parse_expr(p);
    const bool logical = strcmp(name, "go_backwards") == 0,
               never = !logical && v.kind == V_INT && v.i == -1; /* Theano's default */
    if (!p->failed && (logical ? v.kind != V_BOOL : v.kind != V_INT || v.i == 0 || v.i < -1)) {
        mc_parse_fail(p, at, logical ? "%s is True or False" : "%s is a positive number of steps, or -1",
                      name);
        return;
    }
    *to = never ? 0 : v.i;
}

/* One part of the head.  Its expression sees the names outside; its names are bound when the head is
 * complete.  Returns how many names it has. */
static int parse_part(struct parser *p, struct scan *s, struct mc_bind *made)
{
    struct part q = { .at = p->tok.at };
    do {
        q.name[q.n++] = take_name(p);
    } while (!p->failed && q.n < MOST_TAPS && mc_parse_take(p, ","));
    const bool in = take_word(p, "in");
    q.state = !in && take_word(p, "from");
    if (p->failed) {
        return 0;
    }
    if (!in && !q.state && (q.n > 1 || !mc_parse_take(p, "="))) {
        mc_parse_fail(p, p->tok.at, "expected 'in', 'from' or '=' after '%s'", q.name[q.n - 1]);
        return 0;
    }
    if (!in && !q.state && option(s, q.name[0])) {
        parse_option(p, q.name[0], option(s, q.name[0]), q.at);
        return 0;
    }
    mc_node *n = take_node(p);
    if (in || q.state) {
        parse_taps(p, &q);
    }
    if (p->failed) {
        return 0;
    }
    p->location.at = q.at;
    for (int i = 0; i < q.n; i++) {
        made[i] = (struct mc_bind){ q.name[i], n, NULL };
    }
    if (in) {
        add_elements(p, s, &q, n, made);
    } else if (q.state) {
        add_states(p, s, &q, n, made);
    } else if (strcmp(q.name[0], "steps") == 0) {
        s->steps = n;
    }
    return q.n;
}

static void parse_head(struct parser *p, struct scan *s)
{
    struct mc_bind made[3 * MOST_PARTS + MOST_TAPS];
    int n = 0;
    while (!p->failed && !mc_parse_is(p, ":")) {
        if (n >= 3 * MOST_PARTS) {
            mc_parse_fail(p, p->tok.at, "a scan has at most %d parts", n);
            return;
        }
        n += parse_part(p, s, &made[n]);
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
    while (i-- > 0 && (!s->name[i] || strcmp(s->name[i], name) != 0)) {
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

/* Is the next statement an assignment, "a, b = ..."? */
static bool assigns(const struct parser *p)
{
    struct parser ahead = *p;
    while (ahead.tok.kind == T_NAME) {
        mc_parse_next(&ahead);
        if (!mc_parse_take(&ahead, ",")) {
            return mc_parse_is(&ahead, "=");
        }
    }
    return false;
}

/* The expressions that end the body of a map or a fold. */
static void parse_values(struct parser *p, struct scan *s, bool map)
{
    const size_t at = p->tok.at;
    int n = 0, state = 0;
    do {
        mc_node *x = take_node(p);
        while (!map && state < s->nstate && !s->name[state]) {
            state++;
        }
        if (!p->failed && (map ? n == MOST_PARTS : state == s->nstate)) {
            mc_parse_fail(p, at, map ? "a map has at most %d results" : "more values than the %d states", n);
        } else if (map) {
            s->collect[n] = x;
            s->result[n] = (struct result){ RESULT_ALL, s->nstate + n };
        } else if (!p->failed) {
            s->result[n] = (struct result){ RESULT_LAST, state };
            s->next[state++] = x;
        }
        n++;
    } while (!p->failed && mc_parse_take(p, ","));
    while (!map && state < s->nstate && !s->name[state]) {
        state++;
    }
    if (!p->failed && !map && state < s->nstate) {
        mc_parse_fail(p, at, "the state '%s' is given no value", s->name[state]);
    }
    s->ncollect = map ? n : 0;
    s->nresult = n;
}

static void parse_statement(struct parser *p, struct scan *s)
{
    if (mc_parse_word(p, "until") || mc_parse_word(p, "halt")) {
        s->cut = take_word(p, "until");
        if (!s->cut) {
            mc_parse_next(p);
        }
        s->until = take_node(p);
    } else {
        parse_assignment(p, s);
    }
}

/* A body that yields its results. */
static void parse_body(struct parser *p, struct scan *s)
{
    bool yields = false;
    mc_parse_skip(p);
    while (!p->failed && !mc_parse_is(p, ")")) {
        if (take_word(p, "yield")) {
            parse_yield(p, s);
            yields = true;
        } else {
            parse_statement(p, s);
        }
        if (!p->failed && !mc_parse_skip(p) && !mc_parse_is(p, ")")) {
            mc_parse_fail(p, p->tok.at, "expected the end of a statement in the body of a scan");
        }
    }
    for (int i = 0; i < s->nstate && !p->failed; i++) {
        s->next[i] = s->name[i] ? bound(p, s->name[i]) : NULL;
        if (s->name[i] && s->next[i] == s->read[i]) {
            LOG(LOG_WARN, "scan: the body assigns nothing to the state '%s'", s->name[i]);
        }
    }
    for (int i = 0; i < s->nstate && !yields; i++) {
        if (s->name[i]) {
            s->kept[i] = true;
            s->result[s->nresult++] = (struct result){ RESULT_ALL, i };
        }
    }
    mc_parse_expect(p, ")");
}

/* The body of a map or a fold: assignments, then values. */
static void parse_fold(struct parser *p, struct scan *s, bool map)
{
    mc_parse_skip(p);
    if (!p->failed && (map ? s->nstate > 0 : s->nstate == 0)) {
        mc_parse_fail(p, p->tok.at, map ? "a map has no states; scan has" : "there is no state: 's from s0'");
    }
    while (!p->failed && assigns(p)) {
        parse_assignment(p, s);
        if (!p->failed && !mc_parse_skip(p)) {
            mc_parse_fail(p, p->tok.at, "expected a value at the end");
        }
    }
    if (!p->failed) {
        parse_values(p, s, map);
        mc_parse_skip(p);
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

bool mc_parse_is_loop(const char *name)
{
    static const char *const words[] = { "scan", "map", "reduce", "foldl", "foldr" };
    for (size_t i = 0; i < NELEM(words); i++) {
        if (strcmp(words[i], name) == 0) {
            return true;
        }
    }
    return false;
}

struct val mc_parse_scan(struct parser *p, const char *word, size_t at)
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
        if (strcmp(word, "scan") == 0) {
            parse_body(p, s);
        } else {
            parse_fold(p, s, strcmp(word, "map") == 0);
            s->go_backwards ^= strcmp(word, "foldr") == 0;
        }
    }
    for (int i = 0; i < s->nstate && !p->failed; i++) {
        s->next[i] = s->name[i] ? s->next[i] : s->state[i - 1];
    }
    p->bind = outer;
    p->nbind = nouter;
    if (!p->failed) {
        const mc_scan_spec spec = { .steps = s->steps, .element = s->element, .nelement = s->nelement, .state = s->state,
                                    .next = s->next, .nstate = s->nstate, .collect = s->collect, .ncollect = s->ncollect,
                                    .until = s->until, .backwards = s->go_backwards != 0,
                                    .truncate_gradient = (int)s->truncate_gradient,
                                    .checkpoint = (int)s->checkpoint };
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

/* ---- taps ----
 *
 * With taps from `first` to `last`, step t reads x[t + tap - first]: each tap is a slice of x, and x needs
 * last - first more elements than there are steps.  A state that is read `depth` steps back is `depth`
 * states, each of which takes the value that the next newer one had. */

void mc_node_call(mc_node *n, const char *name)
{
    if (n && !mc_is_error(n) && !n->name && name && mc_node_can_be_called(name)) {
        n->name = mc_arena_str(&n->graph->arena, name, strlen(name));
    }
}

mc_node *mc_tap_checked(mc_node *x, const char *name, bool state, int least)
{
    const int64_t number[2] = { least, state };
    const struct mc_attr n = { .kind = ATTR_INT, .n = 1, .ints = (int64_t *)&number[0] },
                         s = { .kind = ATTR_BOOL, .n = 1, .ints = (int64_t *)&number[1] },
                         word = { .kind = ATTR_TEXT, .text = name ? name : "" };
    const struct mc_bind bind[] = {
        { "x", x, NULL }, { "n", NULL, &n }, { "s", NULL, &s }, { "word", NULL, &word }
    };
    return mc_is_error(x) ? x : mc_expr(x->graph, "scan_taps(x, least=n, name=word, state=s)", bind, 4);
}

mc_node *mc_tap_slice(mc_node *checked, int tap, int first, int last)
{
    const int64_t from = tap - first, to = tap - last;
    const struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = (int64_t *)&from },
                         b = { .kind = ATTR_INT, .n = 1, .ints = (int64_t *)&to };
    const struct mc_bind bind[] = { { "x", checked, NULL }, { "a", NULL, &a }, { "b", NULL, &b } };
    return mc_is_error(checked) ? checked
                                : mc_expr(checked->graph, to ? "x[a:b]" : "x[a:]", bind, to ? 3 : 2);
}

mc_node *mc_tap_initial(mc_node *checked, int depth, int back)
{
    const int64_t at = depth - back;
    const struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = (int64_t *)&at };
    return mc_is_error(checked) ? checked
                                : mc_expr(checked->graph, "x[a]",
                                          (struct mc_bind[]){ { "x", checked, NULL }, { "a", NULL, &a } }, 2);
}

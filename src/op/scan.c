/* scan.c: loops: types, and the reference, which evaluates the body step by step. */
#include "op/loop.h"

struct mc_loop mc_loop_of(const struct mc_attr *attr)
{
    const struct mc_body *b = attr[LOOP_BODY].body;
    struct mc_loop l = { .body = b, .nsequence = (int)mc_attr_int(&attr[LOOP_SEQUENCES]), .nstate = (int)mc_attr_int(&attr[LOOP_STATES]),
                         .kept = (unsigned)mc_attr_int(&attr[LOOP_KEPT]), .until = mc_attr_int(&attr[LOOP_UNTIL]) != 0,
                         .truncate = mc_attr_int(&attr[LOOP_TRUNCATE]) };
    l.nconstant = b->nin - l.nsequence - l.nstate;
    l.ncollect = b->nout - l.nstate - l.until;
    for (int i = 0; i < l.nstate && i < MC_MOST_STATES; i++) { /* infer has not checked them yet */
        l.nkept += (int)(l.kept >> i & 1);
    }
    return l;
}

int mc_loop_kept_result(const struct mc_loop *l, int state)
{
    int at = l->nstate;
    for (int i = 0; i < state; i++) {
        at += (int)(l->kept >> i & 1);
    }
    return l->kept >> state & 1 ? at : -1;
}

/* ---- what results depend on ---- */

static bool reads_one(const mc_node *x, const bool *mark)
{
    bool any = false;
    for (int k = 0; k < x->nin && !any; k++) {
        any = mark[x->in[k]->id] && !(k < 8 && x->op->disconnected >> k & 1);
    }
    return any;
}

static mc_status loop_depends(const mc_node *x, const bool *mark, bool *depends);

mc_status mc_marks_spread(mc_node *const *list, size_t count, bool *mark)
{
    for (size_t i = 0; i < count; i++) {
        const mc_node *x = list[i], *loop = x->op == &mc_op_item ? x->in[0] : x;
        if (mark[x->id]) {
            continue;
        }
        if (loop->op->form == FORM_LOOP && (x != loop || x->nout == 1)) {
            TRY(loop_depends(x, mark, &mark[x->id]));
        } else {
            mark[x->id] = reads_one(x, mark);
        }
    }
    return MC_OK;
}

/* mark: of the loop's inputs.  *depends: does x, a result of the loop, depend on one that is marked? */
static mc_status loop_depends(const mc_node *x, const bool *mark, bool *depends)
{
    const mc_node *n = x->op == &mc_op_item ? x->in[0] : x;
    const struct mc_loop l = mc_loop_of(n->attr);
    const struct mc_body *b = l.body;
    size_t count = 0;
    mc_node **list = mc_graph_reach(b->nout, b->out, &count);
    bool *inner = mc_calloc(b->graph->nodes.n + 1, sizeof *inner, "scan"), more = true;
    mc_status s = list && inner ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < b->nin && s == MC_OK; i++) {
        inner[b->in[i]->id] = mark[n->in[1 + i]->id];
    }
    while (s == MC_OK && more) { /* a state depends on what its value in the step before depends on */
        s = mc_marks_spread(list, count, inner);
        more = false;
        for (int i = 0; i < l.nstate; i++) {
            bool *state = &inner[b->in[l.nsequence + i]->id];
            more |= inner[b->out[i]->id] && !*state;
            *state |= inner[b->out[i]->id];
        }
    }
    int at = x->item;
    for (int i = 0; i < l.nstate && at >= l.nstate; i++) {
        at = mc_loop_kept_result(&l, i) == x->item ? i : at;
    }
    if (s == MC_OK) {
        *depends = inner[b->out[at < l.nstate ? at : at - l.nkept]->id] ||
                   (l.until && inner[b->out[b->nout - 1]->id]) ||
                   (at < l.nstate && mark[n->in[1 + l.nsequence + at]->id]);
    }
    mc_free(list);
    mc_free(inner);
    return s;
}

/* ---- types ---- */

/* The types of all nodes of a body at known sizes, and the values of those that follow from sizes. */
struct body_types {
    mc_node **list;
    size_t count;
    struct mc_type **type;  /* by id; all results */
    mc_array **value;       /* by id */
    struct mc_arena memory;
};

static void types_free(struct body_types *t, const mc_graph *g)
{
    for (size_t i = 0; t->value && i < g->nodes.n; i++) {
        mc_array_unref(&t->value[i]);
    }
    mc_free(t->list);
    mc_free(t->type);
    mc_free(t->value);
    mc_arena_free(&t->memory);
}

static bool small(const struct mc_type *t)
{
    const int64_t n = mc_dims_count(t->rank, t->dims);
    return t->rank <= 1 && n >= 0 && n <= 64;
}

/* The value of a node that reads sizes, or small values that are known. */
static mc_status find_value(struct body_types *t, const mc_node *n, const struct mc_type *in)
{
    mc_array *made[MC_MOST_RESULTS] = { 0 }, *arg[8];
    bool known = n->nout == 1 && n->nin > 0 && n->nin <= (int)NELEM(arg) && small(&t->type[n->id][0]) &&
                 !(n->op->flags & (OP_IMPURE | OP_RANDOM)) && !n->op->custom && n->op->eval;
    if (known && mc_reads_type_only(n)) {
        const bool whole = n->op->form == FORM_SHAPE;
        int axis = 0;
        TRY(whole ? MC_OK : mc_axis_check("size", mc_attr_int(&n->attr[0]), in[0].rank, &axis));
        const int64_t rank = in[0].rank;
        for (int k = whole ? 0 : axis; k < (whole ? in[0].rank : axis + 1); k++) {
            if (in[0].dims[k] < 0) {
                return MC_OK;
            }
        }
        t->value[n->id] = mc_array_from(MC_INT64, whole, &rank, whole ? in[0].dims : &in[0].dims[axis]);
        return t->value[n->id] ? MC_OK : mc_last_status();
    }
    for (int k = 0; known && k < n->nin; k++) {
        arg[k] = t->value[n->in[k]->id];
        known = arg[k] != NULL;
    }
    if (known) {
        TRY(mc_eval_node(n, arg, made));
        t->value[n->id] = made[0];
    }
    return MC_OK;
}

static mc_status type_node(struct body_types *t, const mc_node *n)
{
    struct mc_infer q = { .op = n->op, .nin = n->nin, .attr = n->attr, .nout = n->op->nout };
    if (mc_is_const(n)) {
        t->type[n->id] = (struct mc_type *)&n->type;
        t->value[n->id] = mc_array_ref(n->value);
        return MC_OK;
    }
    if (n->op == &mc_op_item) {
        t->type[n->id] = &t->type[n->in[0]->id][n->item];
        return MC_OK;
    }
    struct mc_type *in = mc_arena_alloc(&t->memory, (size_t)(n->nin + 1) * sizeof *in);
    const mc_array **value = mc_arena_alloc(&t->memory, (size_t)(n->nin + 1) * sizeof *value);
    if (!in || !value) {
        return MC_EMEMORY;
    }
    for (int k = 0; k < n->nin; k++) {
        in[k] = t->type[n->in[k]->id][0];
        value[k] = t->value[n->in[k]->id];
    }
    q.in = in;
    q.value = value;
    TRY(n->op->infer(&q));
    t->type[n->id] = mc_arena_copy(&t->memory, q.out, (size_t)q.nout * sizeof *q.out);
    return t->type[n->id] ? find_value(t, n, in) : MC_EMEMORY;
}

mc_status mc_body_types(const struct mc_body *b, const struct mc_type *in, mc_array *const *value,
                        struct mc_type *out)
{
    struct body_types t = { .list = mc_graph_reach(b->nout, b->out, &t.count) };
    t.type = mc_calloc(b->graph->nodes.n + 1, sizeof *t.type, "scan");
    t.value = mc_calloc(b->graph->nodes.n + 1, sizeof *t.value, "scan");
    mc_status s = t.list && t.type && t.value ? MC_OK : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < b->nin; i++) {
        t.type[b->in[i]->id] = (struct mc_type *)&in[i];
        t.value[b->in[i]->id] = value[i] ? mc_array_ref(value[i]) : NULL;
    }
    for (size_t i = 0; s == MC_OK && i < t.count; i++) {
        s = t.type[t.list[i]->id] ? MC_OK : type_node(&t, t.list[i]);
    }
    for (int i = 0; s == MC_OK && i < b->nout; i++) {
        out[i] = *t.type[b->out[i]->id];
    }
    types_free(&t, b->graph);
    return s;
}

/* What input i of the body is called in messages: "state 'h'", or its number if it has no name. */
enum { MOST_NAME = 80 };
static const char *called(char *text, const struct mc_loop *l, int i)
{
    const char *name = mc_body_name(l->body, i);
    const bool sequence = i < l->nsequence, state = !sequence && i < l->nsequence + l->nstate;
    const char *kind = sequence ? "sequence" : state ? "state" : "constant";
    const int number = 1 + i - (sequence ? 0 : state ? l->nsequence : l->nsequence + l->nstate);
    if (name) {
        mc_snprintf(text, MOST_NAME, "%s '%s'", kind, name);
    } else {
        mc_snprintf(text, MOST_NAME, "%s %d", kind, number);
    }
    return text;
}

/* "WHAT is TYPE, SAYS TYPE" */
static mc_status type_error(const char *what, const struct mc_type *have, const char *says,
                            const struct mc_type *want)
{
    struct mc_str a = { 0 }, b = { 0 };
    mc_type_text(&a, have);
    mc_type_text(&b, want);
    mc_status s = mc_fail(have->dtype == want->dtype ? MC_ESHAPE : MC_ETYPE, "%s is %s%s %s", what,
                          a.s ? a.s : "", says, b.s ? b.s : "");
    mc_str_free(&a);
    mc_str_free(&b);
    return s;
}

bool mc_types_meet(const struct mc_type *a, const struct mc_type *b)
{
    bool meet = a->dtype == b->dtype && a->rank == b->rank;
    for (int k = 0; meet && k < a->rank; k++) {
        meet = a->dims[k] < 0 || b->dims[k] < 0 || a->dims[k] == b->dims[k];
    }
    return meet;
}

static mc_status stacked(const struct mc_type *of, int64_t steps, struct mc_type *out)
{
    if (of->rank == MC_MAX_RANK) {
        return mc_fail(MC_ESHAPE, "a value with %d axes cannot be kept for every step", MC_MAX_RANK);
    }
    *out = *of;
    out->rank++;
    memcpy(out->dims + 1, of->dims, (size_t)of->rank * sizeof *of->dims);
    out->dims[0] = steps;
    return MC_OK;
}

/* Sequence i has another length than there are steps, or than sequence k. */
static mc_status length_error(const struct mc_infer *q, const struct mc_loop *l, int i, int k, int64_t steps)
{
    char name[MOST_NAME], other[MOST_NAME];
    const long long have = q->in[1 + i].dims[0];
    return k >= 0 ? mc_fail(MC_ESHAPE, "%s has %lld elements, but %s has %lld", called(name, l, i), have,
                            called(other, l, k), (long long)q->in[1 + k].dims[0])
                  : mc_fail(MC_ESHAPE, "%s has %lld elements, but there are %lld steps", called(name, l, i),
                            have, (long long)steps);
}

/* Sequences have as many elements as there are steps. */
static mc_status check_lengths(const struct mc_infer *q, const struct mc_loop *l, int64_t steps)
{
    int known = -1; /* a sequence of the right length, as far as that is known */
    for (int i = 0; i < l->nsequence; i++) {
        char name[MOST_NAME];
        if (q->in[1 + i].rank == 0) {
            return mc_fail(MC_ESHAPE, "%s is a scalar", called(name, l, i));
        }
        const int64_t n = q->in[1 + i].dims[0];
        if (known < 0 && n >= 0 && (steps < 0 || n == steps)) {
            known = i;
        }
    }
    for (int i = 0; i < l->nsequence; i++) {
        const int64_t n = q->in[1 + i].dims[0], want = known >= 0 ? q->in[1 + known].dims[0] : steps;
        if (n >= 0 && want >= 0 && n != want) {
            return length_error(q, l, i, known, steps);
        }
    }
    return MC_OK;
}

/* The types of the inputs as the body sees them, checked against those that it was made for. */
static mc_status type_inputs(const struct mc_infer *q, const struct mc_loop *l, int64_t steps,
                             struct mc_type *in)
{
    TRY(check_lengths(q, l, steps));
    for (int i = 0; i < l->body->nin; i++) {
        const struct mc_type *want = &l->body->in[i]->type, *have = &q->in[1 + i];
        char name[MOST_NAME];
        in[i] = *have;
        if (i < l->nsequence) {
            in[i].rank--;
            memcpy(in[i].dims, have->dims + 1, (size_t)in[i].rank * sizeof *in[i].dims);
        }
        if (!mc_types_meet(&in[i], want)) {
            return type_error(called(name, l, i), &in[i],
                              i < l->nsequence ? " in a step, the body reads" : ", the body reads", want);
        }
    }
    return MC_OK;
}

static mc_status scan_infer(struct mc_infer *q)
{
    const struct mc_body *b = q->attr[LOOP_BODY].body;
    const struct mc_type *n = &q->in[0];
    struct mc_loop l = mc_loop_of(q->attr);
    struct mc_type in[1 + MC_MOST_LOOP_INPUTS], out[MC_MOST_RESULTS];
    mc_array *value[1 + MC_MOST_LOOP_INPUTS];
    int64_t steps = -1;
    if (l.nsequence < 0 || l.nstate < 0 || l.nconstant < 0 || l.ncollect < 0 || b->nin != q->nin - 1 ||
        l.nstate > MC_MOST_STATES || l.nstate + l.ncollect == 0 || l.kept >> l.nstate) {
        return mc_fail(MC_EARG, "the attributes do not fit the body and the inputs");
    }
    if (b->nin > MC_MOST_LOOP_INPUTS || b->nout > MC_MOST_RESULTS ||
        l.nstate + l.nkept + l.ncollect + l.until > MC_MOST_RESULTS) {
        return mc_fail(MC_EUNSUPPORTED, "a loop has at most %d inputs and %d results", MC_MOST_LOOP_INPUTS,
                       MC_MOST_RESULTS);
    }
    if (n->rank || mc_is_float(n->dtype) || n->dtype == MC_BOOL) {
        return mc_fail(MC_ETYPE, "the number of steps must be an integer scalar");
    }
    if (q->value[0] && (steps = mc_load_i64(q->value[0]->dtype, q->value[0]->data)) < 0) {
        return mc_fail(MC_ESHAPE, "the number of steps is %lld", (long long)steps);
    }
    TRY(type_inputs(q, &l, steps, in));
    for (int i = 0; i < b->nout; i++) {
        out[i] = b->out[i]->type;
    }
    for (int i = 0; i < b->nin; i++) {
        value[i] = i < l.nsequence + l.nstate ? NULL : (mc_array *)q->value[1 + i];
    }
    TRY(q->graph ? MC_OK : mc_body_types(b, in, value, out));
    q->nout = 0;
    for (int i = 0; i < l.nstate; i++) {
        const struct mc_type *before = &in[l.nsequence + i];
        bool same = mc_types_meet(before, &out[i]);
        for (int k = 0; same && q->graph && k < before->rank; k++) { /* size 1 is promised to the body */
            same = before->dims[k] != 1 || out[i].dims[k] == 1;
        }
        if (!same) {
            char name[MOST_NAME];
            return type_error(called(name, &l, l.nsequence + i), before, " before a step and after it",
                              &out[i]);
        }
        q->out[q->nout++] = *before;
    }
    for (int i = 0; i < l.nstate; i++) {
        if (l.kept >> i & 1) {
            TRY(stacked(&in[l.nsequence + i], steps, &q->out[q->nout++]));
        }
    }
    for (int i = 0; i < l.ncollect; i++) {
        TRY(stacked(&out[l.nstate + i], steps, &q->out[q->nout++]));
    }
    if (l.until) {
        const struct mc_type *stop = &out[b->nout - 1];
        if (stop->rank || stop->dtype != MC_BOOL) {
            return type_error("the condition that ends the loop", stop, ", not",
                              &(struct mc_type){ .dtype = MC_BOOL });
        }
        q->out[q->nout++] = mc_type_make(MC_INT64, 0, NULL);
    }
    return MC_OK;
}

static mc_node *scan_size(mc_node *n, int item, int axis)
{
    const struct mc_loop l = mc_loop_of(n->attr);
    if (item < l.nstate) {
        return mc_size_of(n->in[1 + l.nsequence + item], axis);
    }
    if (l.until && item == n->nout - 1) {
        return NULL;
    }
    if (axis == 0) {
        return mc_cast_to(n->in[0], MC_INT64);
    }
    for (int i = 0; i < l.nstate; i++) {
        if (mc_loop_kept_result(&l, i) == item) {
            return mc_size_of(n->in[1 + l.nsequence + i], axis - 1);
        }
    }
    return NULL;
}

/* ---- the reference ---- */

/* Element t along axis 0; the caller releases it. */
static mc_array *element(const mc_array *a, int64_t t)
{
    return mc_array_wrap(a->dtype, a->rank - 1, a->dims + 1, a->strides + 1, a->data + t * a->strides[0],
                         NULL, NULL);
}

static mc_status put(mc_array *all, int64_t t, const mc_array *x)
{
    mc_array *to = element(all, t);
    mc_status s = !to ? mc_last_status()
                  : mc_dims_equal(to->rank, to->dims, x->rank, x->dims)
                      ? mc_array_assign(to, x)
                      : mc_fail(MC_ESHAPE, "scan: a value has another shape at step %lld than before",
                                (long long)t);
    mc_array_unref(&to);
    return s;
}

static mc_status one_step(const struct mc_loop *l, mc_array *const *in, mc_array **state, int64_t t,
                          mc_array **made)
{
    const struct mc_body *b = l->body;
    mc_array *arg[1 + MC_MOST_LOOP_INPUTS] = { 0 };
    mc_status s = MC_OK;
    for (int i = 0; i < b->nin && s == MC_OK; i++) {
        arg[i] = i < l->nsequence               ? element(in[1 + i], t)
                 : i < l->nsequence + l->nstate ? mc_array_ref(state[i - l->nsequence])
                                                : mc_array_ref(in[1 + i]);
        s = arg[i] ? MC_OK : mc_last_status();
    }
    s = s < 0 ? s : mc_eval(b->nin, b->in, arg, b->nout, b->out, made);
    for (int i = 0; i < l->nstate && s == MC_OK; i++) { /* may be a view of memory that the step is given */
        mc_array *own = mc_array_copy(made[i]);
        mc_array_unref(&made[i]);
        made[i] = own;
        s = own ? MC_OK : mc_last_status();
    }
    for (int i = 0; i < b->nin; i++) {
        mc_array_unref(&arg[i]);
    }
    return s;
}

static mc_status shape_error(const struct mc_loop *l, int i, int64_t t, const mc_array *before,
                             const mc_array *after)
{
    const struct mc_type a = mc_type_make(before->dtype, before->rank, before->dims),
                         b = mc_type_make(after->dtype, after->rank, after->dims);
    char name[MOST_NAME], what[MOST_NAME + 40];
    mc_snprintf(what, sizeof what, "scan: at step %lld %s", (long long)t, called(name, l, l->nsequence + i));
    return type_error(what, &a, " before the step and after it", &b);
}

static mc_status scan_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const struct mc_loop l = mc_loop_of(n->attr);
    const int64_t steps = mc_load_i64(in[0]->dtype, in[0]->data);
    mc_array *state[MC_MOST_STATES] = { 0 };
    int64_t t = 0;
    bool stop = false;
    mc_status s = MC_OK;
    for (int i = 0; i < l.nstate; i++) {
        state[i] = mc_array_ref(in[1 + l.nsequence + i]);
    }
    for (int i = l.nstate; i < l.nstate + l.nkept + l.ncollect; i++) {
        memset(out[i]->data, 0, (size_t)mc_array_size(out[i]) * mc_dtypes[out[i]->dtype].size);
    }
    for (; t < steps && !stop && s == MC_OK; t++) {
        mc_array *made[MC_MOST_RESULTS] = { 0 };
        s = one_step(&l, in, state, t, made);
        for (int i = 0; i < l.nstate && s == MC_OK; i++) {
            const bool kept = l.kept >> i & 1;
            s = mc_dims_equal(made[i]->rank, made[i]->dims, state[i]->rank, state[i]->dims)
                    ? MC_OK
                    : shape_error(&l, i, t, state[i], made[i]);
            s = s < 0 || !kept ? s : put(out[mc_loop_kept_result(&l, i)], t, made[i]);
            mc_array_unref(&state[i]);
            state[i] = mc_array_ref(made[i]);
        }
        for (int i = 0; i < l.ncollect && s == MC_OK; i++) {
            s = put(out[mc_loop_collect_result(&l, i)], t, made[l.nstate + i]);
        }
        stop = s == MC_OK && l.until && *made[l.body->nout - 1]->data;
        for (int i = 0; i < l.body->nout; i++) {
            mc_array_unref(&made[i]);
        }
    }
    for (int i = 0; i < l.nstate; i++) {
        s = s < 0 ? s : mc_array_assign(out[i], state[i]);
        mc_array_unref(&state[i]);
    }
    if (s == MC_OK && l.until) {
        mc_store_i64(MC_INT64, out[n->nout - 1]->data, t);
    }
    return s;
}

/* ---- what stands for elements and states until mc_scan is called ---- */

static mc_status element_infer(struct mc_infer *q)
{
    if (q->in[0].rank == 0) {
        return mc_fail(MC_ESHAPE, "a scalar has no elements");
    }
    q->out[0] = mc_type_make(q->in[0].dtype, q->in[0].rank - 1, q->in[0].dims + 1);
    return MC_OK;
}

static mc_node *element_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_size_of(n->in[0], axis + 1);
}

static mc_status state_infer(struct mc_infer *q)
{
    q->out[0] = q->in[0];
    return MC_OK;
}

/* An error if x has fewer elements along axis 0 than the taps of a sequence or state reach over. */
static mc_status taps_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0];
    const int64_t least = mc_attr_int(&q->attr[0]);
    const char *name = q->attr[1].text ? q->attr[1].text : "";
    const bool state = mc_attr_int(&q->attr[2]) != 0;
    q->out[0] = *x;
    if (x->rank && (x->dims[0] < 0 || x->dims[0] >= least)) {
        return MC_OK;
    }
    struct mc_str type = { 0 };
    mc_type_text(&type, x);
    mc_status s = mc_fail(MC_ESHAPE, "scan: %s%s%s%s is %s, but its taps need at least %lld %s",
                          state ? "the block of initial values of state" : "sequence", *name ? " '" : "",
                          name, *name ? "'" : "", type.s ? type.s : "", (long long)least,
                          state ? "values" : "elements");
    mc_str_free(&type);
    return s;
}

static mc_status same_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    return mc_array_assign(out[0], in[0]);
}

static mc_node *same_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)n;
    (void)wrt;
    return g[0];
}

static mc_status no_value(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)in;
    (void)out;
    return mc_fail(MC_EARG, "%s: it stands for a value in the body of a loop; no loop has it among its %s",
                   n->op->name, n->op->infer == element_infer ? "elements" : "states");
}

const struct mc_op mc_ops_scan[] = {
    { .name = "scan", .params = "steps, *inputs, body:body, sequences=0:int, states=0:int, kept=0:int, until=False:bool, truncate=0:int",
      .flags = OP_NOFOLD | OP_HIDDEN, .form = FORM_LOOP, .nout = 1, .disconnected = 1, .infer = scan_infer, .size = scan_size,
      .eval = scan_eval, .grad = mc_loop_grad, .doc = MANUAL("a loop; mc_scan makes it") },
    { .name = "scan_element", .params = "x", .flags = OP_IMPURE | OP_HIDDEN, .nout = 1, .infer = element_infer,
      .size = element_size, .eval = no_value, .disconnected = 1, .doc = MANUAL("an element of x in the body of a loop") },
    { .name = "scan_state", .params = "initial", .flags = OP_IMPURE | OP_HIDDEN, .nout = 1, .infer = state_infer,
      .size = mc_same_size, .eval = no_value, .disconnected = 1, .doc = MANUAL("a state before a step in the body of a loop") },
    { .name = "scan_taps", .form = FORM_SPECIFY, .params = "x, least:int, name='':text, state=False:bool", .flags = OP_VIEW | OP_HIDDEN, .nout = 1,
      .infer = taps_infer, .size = mc_same_size, .eval = same_eval, .grad = same_grad, .doc = MANUAL("x, which has at least so many elements") },
};
const int mc_nops_scan = (int)NELEM(mc_ops_scan);

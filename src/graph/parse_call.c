/* parse_call.c: parses name(...) and assigns the arguments to the op's tensors and attributes; also the few
 * functions that are no ops. */
#include "graph/parse_desc.h"
#include <stdlib.h>

static void parse_args(struct parser *p, struct args *a)
{
    while (!p->failed && !mc_parse_is(p, ")")) {
        if (a->n == (int)NELEM(a->value)) {
            mc_parse_fail(p, p->tok.at, "too many arguments; give a list");
            return;
        }
        struct tok name = p->tok;
        size_t behind = p->at;
        a->name[a->n] = NULL;
        a->at[a->n] = p->tok.at;
        if (p->tok.kind == T_NAME) {
            mc_parse_next(p);
            if (mc_parse_take(p, "=")) {
                a->name[a->n] = mc_parse_copy(p, &name);
            } else {
                if (mc_parse_is(p, "(") || mc_parse_is(p, "[")) {
                    p->brackets--;
                } else if (mc_parse_is(p, ")") || mc_parse_is(p, "]")) {
                    p->brackets++;
                }
                p->tok = name;
                p->at = behind;
            }
        }
        a->value[a->n++] = mc_parse_expr(p);
        mc_parse_separator(p, ")");
    }
    mc_parse_expect(p, ")");
}

static bool has_gradients(struct parser *p, size_t at)
{
    if (!p->g->language->grads) {
        mc_parse_fail(p, at, "formulas of this graph cannot take gradients");
    }
    return p->g->language->grads != NULL;
}

/* grad(cost, wrt): wrt may be a list. */
static struct val call_grad(struct parser *p, struct args *a, size_t at)
{
    if (a->n != 2 || !has_gradients(p, at)) {
        mc_parse_fail(p, at, "grad takes a cost and the variables to differentiate with respect to");
        return mc_val_of(p->g->error, at);
    }
    mc_node *cost = mc_val_node(p, &a->value[0]);
    const struct val *by = &a->value[1];
    bool list = by->kind == V_LIST;
    int n = list ? by->n : 1;
    mc_node **wrt = mc_arena_alloc(&p->g->arena, (size_t)n * 2 * sizeof *wrt + 1);
    struct val *one = mc_arena_alloc(&p->g->arena, (size_t)n * sizeof *one + 1);
    if (!wrt || !one) {
        mc_parse_memory(p);
        return mc_val_of(p->g->error, at);
    }
    for (int i = 0; i < n; i++) {
        wrt[i] = mc_val_node(p, list ? &by->item[i] : by);
    }
    p->location.at = at;
    if (p->failed || p->g->language->grads(cost, n, wrt, wrt + n, NULL) < 0) {
        return mc_val_made(p, p->g->error, at);
    }
    for (int i = 0; i < n; i++) {
        one[i] = mc_val_of(wrt[n + i], at);
    }
    struct val all = mc_val_list(p, one, n, at);
    all.several = true;
    return list ? all : one[0];
}

/* Lop(f, x, eval), Rop(f, x, eval): products of the Jacobian df/dx with a vector, from the left and from the
 * right */
static struct val call_product(struct parser *p, struct args *a, size_t at, bool left)
{
    mc_node *in[3] = { NULL };
    if (a->n != 3) {
        mc_parse_fail(
            p, at,
            "%s takes f, the variable to differentiate with respect to, and a vector of the shape of %s",
            left ? "Lop" : "Rop", left ? "f" : "the variable");
    }
    for (int i = 0; i < 3 && !p->failed; i++) {
        in[i] = mc_val_node(p, &a->value[i]);
    }
    p->location.at = at;
    if (p->failed || !has_gradients(p, at)) {
        return mc_val_of(p->g->error, at);
    }
    return mc_val_made(p, (left ? p->g->language->Lop : p->g->language->Rop)(in[0], in[1], in[2]), at);
}

/* jacobian(y, x), hessian(cost, x): x may be a list. */
static struct val call_jacobian(struct parser *p, struct args *a, size_t at, bool hessian)
{
    if (a->n != 2 || !has_gradients(p, at)) {
        mc_parse_fail(p, at, "%s takes %s and the variables to differentiate with respect to",
                      hessian ? "hessian" : "jacobian", hessian ? "a cost" : "what is differentiated");
        return mc_val_of(p->g->error, at);
    }
    mc_node *y = mc_val_node(p, &a->value[0]);
    const struct val *by = &a->value[1];
    const bool list = by->kind == V_LIST;
    const int n = list ? by->n : 1;
    struct val *one = mc_arena_alloc(&p->g->arena, (size_t)n * sizeof *one + 1);
    if (!one) {
        mc_parse_memory(p);
        return mc_val_of(p->g->error, at);
    }
    for (int i = 0; i < n; i++) {
        mc_node *x = mc_val_node(p, list ? &by->item[i] : by);
        p->location.at = at;
        if (p->failed) {
            return mc_val_of(p->g->error, at);
        }
        one[i] = mc_val_made(p, (hessian ? p->g->language->hessian : p->g->language->jacobian)(y, x), at);
    }
    struct val all = mc_val_list(p, one, n, at);
    all.several = true;
    return list ? all : one[0];
}

/* tuple(a, b): the printed form of a formula with several results */
static struct val call_tuple(struct parser *p, struct args *a, size_t at)
{
    mc_node *in[NELEM(a->value)];
    for (int i = 0; i < a->n; i++) {
        in[i] = mc_val_node(p, &a->value[i]);
    }
    if (a->n < 2) {
        mc_parse_fail(p, at, "a tuple must have at least two values");
    }
    p->location.at = at;
    return p->failed ? mc_val_of(p->g->error, at)
                     : mc_val_made(p, mc_node_make(p->g, &mc_op_tuple, a->n, in, NULL), at);
}

static struct val call_update(struct parser *p, struct args *a, size_t at, bool set)
{
    mc_node *x = a->n == 2 ? mc_val_node(p, &a->value[0]) : NULL,
            *y = a->n == 2 ? mc_val_node(p, &a->value[1]) : NULL;
    if (a->n != 2) {
        mc_parse_fail(p, at, "%s takes an indexed tensor and a value: %s(x[2:4], y)",
                      set ? "set_subtensor" : "inc_subtensor", set ? "set_subtensor" : "inc_subtensor");
    }
    p->location.at = at;
    return p->failed ? mc_val_of(p->g->error, at) : mc_val_made(p, mc_index_update(x, y, set), at);
}

/* ifelse(c, [a, b], [d, e]): the sides may be lists */
static struct val call_ifelse(struct parser *p, struct args *a, size_t at)
{
    const bool both = a->n == 3 && !a->name[0] && !a->name[1] && !a->name[2];
    const struct val *yes = &a->value[1], *no = &a->value[2];
    if (!both || yes->kind != V_LIST || no->kind != V_LIST || yes->n != no->n || !yes->n) {
        mc_parse_fail(p, at, "ifelse takes a condition and two values, or two lists of the same length");
        return mc_val_of(p->g->error, at);
    }
    const int n = 1 + 2 * yes->n;
    mc_node **in = mc_arena_alloc(&p->g->arena, (size_t)n * sizeof *in);
    if (!in) {
        mc_parse_memory(p);
        return mc_val_of(p->g->error, at);
    }
    for (int i = 0; i < n; i++) {
        in[i] = mc_val_node(p, i == 0        ? &a->value[0]
                               : i <= yes->n ? &yes->item[i - 1]
                                             : &no->item[i - 1 - yes->n]);
    }
    p->location.at = at;
    return p->failed ? mc_val_of(p->g->error, at)
                     : mc_val_made(p, mc_apply(p->g, mc_op_named(p->g, "ifelse_list"), n, in, NULL), at);
}

/* array(dtype, [2, 3], "hex digits"): the printed form of a large constant */
static struct val call_array(struct parser *p, struct args *a, size_t at)
{
    mc_dtype d;
    int64_t dims[MC_MAX_RANK];
    bool ok = a->n == 3 && a->value[0].kind == V_TEXT && mc_dtype_parse(a->value[0].text, &d) >= 0 &&
              a->value[1].kind == V_LIST && a->value[1].n <= MC_MAX_RANK && a->value[2].kind == V_TEXT;
    size_t bytes = ok ? mc_dtypes[d].size : 0;
    for (int i = 0; ok && i < a->value[1].n; i++) {
        dims[i] = a->value[1].item[i].i;
        ok = a->value[1].item[i].kind == V_INT && dims[i] >= 0 && mc_mul_size(bytes, (size_t)dims[i], &bytes);
    }
    const char *hex = ok ? a->value[2].text : "";
    ok = ok && strlen(hex) / 2 == bytes && strlen(hex) % 2 == 0 &&
         hex[strspn(hex, "0123456789abcdef")] == '\0';
    mc_array *v = ok ? mc_array_new(d, a->value[1].n, dims) : NULL; /* not larger than the text */
    if (!v) {
        mc_parse_fail(p, at, "array takes a dtype, a list of sizes and as many hexadecimal bytes");
        return mc_val_of(p->g->error, at);
    }
    for (size_t i = 0; i < bytes; i++) {
        char pair[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        v->data[i] = (char)strtol(pair, NULL, 16);
    }
    return mc_val_made(p, mc_node_const(p->g, v, false), at);
}

const struct mc_op *mc_parse_op(struct parser *p, const char *name)
{
    for (size_t i = 0; i < p->g->custom.n; i++) {
        if (strcmp(p->g->custom.at[i]->name, name) == 0) {
            return p->g->custom.at[i];
        }
    }
    const struct mc_op *op = mc_op_named(p->g, name);
    return op && !(op->flags & OP_LEAF) ? op : NULL;
}

static void unknown_function(struct parser *p, const char *name, size_t at)
{
    const char *list[600];
    size_t n = 0;
    for (size_t i = 0; i < p->g->custom.n && n < 80; i++) {
        list[n++] = p->g->custom.at[i]->name;
    }
    const struct mc_op *op;
    for (int i = 0; n < NELEM(list) && (op = p->g->language->op(i)); i++) {
        if (!(op->flags & OP_HIDDEN)) {
            list[n++] = op->name;
        }
    }
    const char *near = mc_near_miss(name, list, n);
    if (near) {
        mc_parse_fail(p, at, "there is no function '%s'; did you mean '%s'?", name, near);
    } else {
        mc_parse_fail(p, at, "there is no function '%s'", name);
    }
}

/* ---- arguments assigned to the signature's tensors and attributes ---- */

struct sorted {
    struct mc_attr attr[16];
    mc_node *in[64 + 24], **arg; /* arg: in, or a larger array */
    bool given[24];
    int nin, position;           /* position: parameter of the next argument without a name */
};

static int parameter_named(struct parser *p, const struct mc_op *op, const char *name, size_t at)
{
    static const struct {
        const char *older, *now;
    } renamed[] = { { "image_shape", "input_shape" } };
    const char *list[24];
    for (int j = 0; j < op->sig->nparam; j++) {
        list[j] = op->sig->param[j].name;
        bool same = strcmp(list[j], name) == 0;
        for (size_t i = 0; i < NELEM(renamed); i++) {
            same |= strcmp(renamed[i].older, name) == 0 && strcmp(renamed[i].now, list[j]) == 0;
        }
        if (same) {
            return j;
        }
    }
    const char *near = mc_near_miss(name, list, (size_t)op->sig->nparam);
    mc_parse_fail(p, at, "%s has no parameter '%s'%s%s%s: %s(%s)", op->name, name,
                  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", op->name, op->params);
    return -1;
}

/* The attribute that takes a word: the subscripts of einsum('ij,jk', a, b). k: there is none. */
static int parameter_of_word(const struct mc_signature *s, int k)
{
    for (int j = 0; j < s->nparam; j++) {
        if (s->param[j].kind == ATTR_TEXT) {
            return j;
        }
    }
    return k;
}

/* The parameter of argument i; -1: none. */
static int parameter_of(struct parser *p, const struct mc_op *op, const struct args *a, int i,
                        struct sorted *q)
{
    const struct mc_signature *s = op->sig;
    int k = a->name[i] ? parameter_named(p, op, a->name[i], a->at[i]) : q->position;
    if (k >= s->nparam) {
        mc_parse_fail(p, a->value[i].at, "%s takes %d argument%s: %s(%s)", op->name, s->nparam,
                      s->nparam == 1 ? "" : "s", op->name, op->params);
        return -1;
    }
    if (k >= 0 && s->param[k].kind == ATTR_TENSORS && a->value[i].kind == V_TEXT) {
        k = parameter_of_word(s, k);
        q->position -= s->param[k].kind != ATTR_TENSORS; /* the next argument is one of the tensors still */
    }
    if (k >= 0 && q->given[k] && s->param[k].kind != ATTR_TENSORS) {
        mc_parse_fail(p, a->at[i], "%s: '%s' is given twice", op->name, s->param[k].name);
        return -1;
    }
    if (k >= 0) {
        q->position += !a->name[i] && s->param[k].kind != ATTR_TENSORS;
        q->given[k] = true;
    }
    return k;
}

static void take_tensors(struct parser *p, const struct mc_op *op, const struct val *v, struct sorted *q)
{
    const int n = v->kind == V_LIST ? v->n : 1;
    q->nin = MC_MAX(q->nin, op->sig->ntensor);
    if (q->nin + n > (int)NELEM(q->in) && q->arg == q->in) { /* long list: allocate room */
        mc_node **more = mc_arena_alloc(&p->g->arena, (size_t)(q->nin + n + 64) * sizeof *more);
        if (!more) {
            mc_parse_memory(p);
            return;
        }
        q->arg = memcpy(more, q->in, (size_t)q->nin * sizeof *more);
    }
    for (int j = 0; j < n && !p->failed; j++) {
        q->arg[q->nin++] = mc_val_node(p, v->kind == V_LIST ? &v->item[j] : v);
    }
}

static void take(struct parser *p, const struct mc_op *op, int k, const struct val *v, struct sorted *q)
{
    const struct mc_param *of = &op->sig->param[k];
    int slot = 0;
    if (of->kind == ATTR_TENSORS) {
        take_tensors(p, op, v, q);
    } else if (of->kind != ATTR_TENSOR) {
        for (int j = 0; j < k; j++) {
            slot += op->sig->param[j].kind > ATTR_TENSORS;
        }
        mc_val_attr(p, op, of, v, &q->attr[slot]);
    } else if (!(v->kind == V_NONE && of->optional)) {
        q->in[k] = mc_val_node(p, v);
        q->nin = MC_MAX(q->nin, k + 1);
    }
}

/* x.dimshuffle(1, 2, 0): where the last parameter is a list, its elements may be arguments. */
static void gather_list(struct parser *p, const struct mc_op *op, struct args *a)
{
    const int last = op->sig->nparam - 1;
    int n = 0;
    while (n < a->n && !a->name[n]) {
        n++;
    }
    if (last >= 0 && n > last + 1 && n == a->n && op->sig->param[last].kind == ATTR_INTS) {
        a->value[last] = mc_val_list(p, &a->value[last], n - last, a->at[last]);
        a->n = last + 1;
    }
}

static struct val call_op(struct parser *p, const struct mc_op *op, struct args *a, size_t at)
{
    gather_list(p, op, a);
    mc_parse_desc_spread(p, op->name, a);
    bool plain = op->arity && !op->custom && a->n == op->arity;
    for (int i = 0; plain && i < a->n; i++) {
        plain = !a->name[i] && mc_val_is_number(&a->value[i]);
    }
    if (plain) { /* pow(10, -3) is 10 ** -3 */
        return mc_parse_apply(p, op->name, a->value, a->n, at);
    }
    struct sorted q = { .arg = q.in };
    mc_attr_defaults(op, q.attr);
    for (int i = 0; i < a->n && !p->failed; i++) {
        int k = parameter_of(p, op, a, i, &q);
        if (k >= 0) {
            take(p, op, k, &a->value[i], &q);
        }
    }
    for (int i = 0; i < q.nin && !p->failed; i++) {
        if (!q.arg[i] && !(op->sig->param[i].optional && (op->build || op->formula))) {
            mc_parse_fail(p, at, "%s needs the argument '%s': %s(%s)", op->name, op->sig->param[i].name,
                          op->name, op->params);
        }
    }
    const struct mc_param *missing = mc_attr_missing(op, q.given);
    if (missing && !p->failed) {
        mc_parse_fail(p, at, "%s needs the argument '%s': %s(%s)", op->name, missing->name, op->name,
                      op->params);
    }
    if (p->failed) {
        return mc_val_of(p->g->error, at);
    }
    p->location.at = at;
    return mc_val_made(p, mc_apply(p->g, op, q.nin, q.arg, q.attr), at);
}

/* ---- any call ---- */

struct val mc_parse_call(struct parser *p, const char *name, const struct val *self, size_t at)
{
    struct args *a = mc_calloc(1, sizeof *a, "parse");
    struct val v = mc_val_of(p->g->error, at);
    if (!a) {
        mc_parse_memory(p);
        return v;
    }
    if (self) {
        a->value[a->n++] = *self;
    }
    parse_args(p, a);
    const struct mc_op *op = p->failed ? NULL : mc_parse_op(p, name);
    if (p->failed) {
        v = mc_val_of(p->g->error, at);
    } else if (strcmp(name, "grad") == 0) {
        v = call_grad(p, a, at);
    } else if (strcmp(name, "Lop") == 0 || strcmp(name, "Rop") == 0) {
        v = call_product(p, a, at, name[0] == 'L');
    } else if (strcmp(name, "jacobian") == 0 || strcmp(name, "hessian") == 0) {
        v = call_jacobian(p, a, at, name[0] == 'h');
    } else if (strcmp(name, "set_subtensor") == 0 || strcmp(name, "inc_subtensor") == 0) {
        v = call_update(p, a, at, name[0] == 's');
    } else if (strcmp(name, "array") == 0) {
        v = call_array(p, a, at);
    } else if (strcmp(name, "tuple") == 0) {
        v = call_tuple(p, a, at);
    } else if (strcmp(name, "item") == 0 && a->n == 2 && a->value[0].kind == V_NODE &&
               a->value[1].kind == V_INT) {
        v = mc_val_made(p, mc_item(a->value[0].node, (int)a->value[1].i), at);
    } else if (strcmp(name, "ifelse") == 0 && a->n > 1 &&
               (a->value[1].kind == V_LIST || (a->n > 2 && a->value[2].kind == V_LIST))) {
        v = call_ifelse(p, a, at);
    } else if (mc_parse_is_desc(name)) {
        v = mc_parse_desc(p, name, a, at);
    } else if (op) {
        v = call_op(p, op, a, at);
    } else {
        unknown_function(p, name, at);
    }
    mc_free(a);
    return v;
}

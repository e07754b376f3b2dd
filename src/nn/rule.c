/* rule.c: update rules. A rule is a row of formulas over a parameter p, its gradient g and the learning
 * rate.
 *
 * Invariant: the state of a rule is in shared variables that are named after the parameter and tagged
 * "state". They are found by name, so a second function with the same rule continues with the state of the
 * first. */
#include "nn/nn.h"

struct slot {
    const char *name, *next; /* a state, which starts at zero; the formula of its next value */
};
static const struct rule {
    const char *name;
    struct mc_nn_field field[8];
    const char *base;        /* setting that names a base rule: $new is p after it; or NULL */
    struct slot slot[3];
    const char *let, *to;    /* statements that next and to share; the new value of p */
    bool counts;             /* $t is the number of this step */
    const char *doc;
} rules[] = {
#define BELOW_1 "[0, 1)"
#define COMMON(rate) { "rate", NN_REAL, rate, NN_FROM_0 }
#define EPSILON(least) { "epsilon", NN_REAL, least, NN_FROM_0 }
#define LIMITS { "max_norm", NN_REAL, "0", NN_FROM_0 }, { "clip", NN_REAL, "0", NN_FROM_0 }
#define MOMENTUM { COMMON("0.01"), { "momentum", NN_REAL, "0.9", "[0, 1]" }, { "base", NN_CALL, "sgd" }, LIMITS }
#define BETAS { "beta1", NN_REAL, "0.9", BELOW_1 }, { "beta2", NN_REAL, "0.999", BELOW_1 }
#define ADAM_FIELDS(rate) COMMON(rate), BETAS, EPSILON("1e-8")
#define ADAM(rate) { ADAM_FIELDS(rate), LIMITS }
#define M { "m", "$_m1" }
#define M_NEXT "$_m1 = $beta1 * $m + (1 - $beta1) * $g; "
#define V_NEXT "$_v1 = $beta2 * $v + (1 - $beta2) * sqr($g); "
#define STEP "$rate * sqrt(1 - $beta2 ** $t) / (1 - $beta1 ** $t)"
    { "sgd",
      { COMMON("0.01"), LIMITS },
      NULL,
      { { NULL, NULL } },
      NULL,
      "$p - $rate * $g",
      false,
      "gradient descent" },
    { "momentum",
      MOMENTUM,
      "base",
      { { "v", "$_x - $p" } },
      "$_x = $momentum * $v + $new",
      "$_x",
      false,
      "gradient descent with momentum" },
    { "nesterov",
      MOMENTUM,
      "base",
      { { "v", "$_x" } },
      "$_x = $momentum * $v + $new - $p",
      "$momentum * $_x + $new",
      false,
      "gradient descent with Nesterov momentum" },
    { "adagrad",
      { COMMON("1"), EPSILON("1e-6"), LIMITS },
      NULL,
      { { "accu", "$_a" } },
      "$_a = $accu + sqr($g)",
      "$p - $rate * $g / sqrt($_a + $epsilon)",
      false,
      "the gradient divided by the root of the sum of its squares so far" },
    { "rmsprop",
      { COMMON("1"), { "rho", NN_REAL, "0.9", BELOW_1 }, EPSILON("1e-6"), LIMITS },
      NULL,
      { { "accu", "$_a" } },
      "$_a = $rho * $accu + (1 - $rho) * sqr($g)",
      "$p - $rate * $g / sqrt($_a + $epsilon)",
      false,
      "the gradient divided by the root of the running mean of its squares" },
    { "adadelta",
      { COMMON("1"), { "rho", NN_REAL, "0.95", BELOW_1 }, EPSILON("1e-6"), LIMITS },
      NULL,
      { { "accu", "$_a" }, { "delta", "$rho * $delta + (1 - $rho) * sqr($_d)" } },
      "$_a = $rho * $accu + (1 - $rho) * sqr($g); $_d = $g * sqrt($delta + $epsilon) / sqrt($_a + $epsilon)",
      "$p - $rate * $_d",
      false,
      "rmsprop with step sizes in proportion to recent steps" },
    { "adam",
      ADAM("0.001"),
      NULL,
      { M, { "v", "$_v1" } },
      M_NEXT V_NEXT "$_s = " STEP " * $_m1 / (sqrt($_v1) + $epsilon)",
      "$p - $_s",
      true,
      "running mean of the gradient, divided by the root of that of its squares" },
    { "adamw",
      { ADAM_FIELDS("0.001"), { "decay", NN_REAL, "0.01", NN_FROM_0 }, LIMITS },
      NULL,
      { M, { "v", "$_v1" } },
      M_NEXT V_NEXT "$_s = $rate / (1 - $beta1 ** $t) * $_m1 / (sqrt($_v1 / (1 - $beta2 ** $t)) + $epsilon)",
      "$p * (1 - $rate * $decay) - $_s",
      true,
      "adam that also takes the rate times `decay` of each parameter away, past the means" },
    { "adamax",
      ADAM("0.002"),
      NULL,
      { M, { "u", "$_u1" } },
      M_NEXT
      "$_u1 = maximum($beta2 * $u, abs($g)); $_s = $rate / (1 - $beta1 ** $t) * $_m1 / ($_u1 + $epsilon)",
      "$p - $_s",
      true,
      "adam that divides by the decaying maximum of the magnitude" },
    { "amsgrad",
      ADAM("0.001"),
      NULL,
      { M, { "v", "$_v1" }, { "top", "$_w1" } },
      M_NEXT V_NEXT "$_w1 = maximum($top, $_v1); $_s = " STEP " * $_m1 / (sqrt($_w1) + $epsilon)",
      "$p - $_s",
      true,
      "adam that divides by the root of the largest mean of squares so far" },
    { NULL, { { NULL } }, NULL, { { NULL, NULL } }, NULL, NULL, false, NULL },
};

/* A rule with its settings. A base rule has a second one. */
struct use {
    const struct rule *rule;
    struct mc_nn_settings set;
};

static const struct rule *find(struct mc_nn_slice name)
{
    const struct rule *r = rules;
    while (r->name && !mc_nn_same(name, r->name)) {
        r++;
    }
    return r->name ? r : NULL;
}

static bool read_use(struct use *u, const struct mc_nn_line *line, struct mc_nn_slice name, const char *at,
                     const char *end, char separator)
{
    u->rule = find(name);
    return u->rule ? mc_nn_read(&u->set, line, at, end, separator, u->rule->field, u->rule->name)
                   : mc_nn_wrong(line, name.s, MC_EARG, "there is no rule '%.*s'%s", (int)name.n, name.s,
                                 mc_nn_near_row(name, rules, sizeof *rules).text);
}

/* use[0]: the rule; use[1]: its base, whose `rule` is NULL if there is none. */
static bool read_rule(struct use use[2], const struct mc_nn_line *line, const char *at)
{
    struct mc_nn_slice name, word, args;
    if (!mc_nn_next_word(line, &at, ' ', &name, &word) || !word.s) {
        return mc_nn_wrong(line, line->end, MC_EARG, "a rule is missing");
    }
    use[1].rule = NULL;
    if (!read_use(&use[0], line, word, at, line->end, ' ')) {
        return false;
    }
    if (use[0].rule->base) {
        struct mc_nn_slice call = mc_nn_get(&use[0].set, use[0].rule->base), base = mc_nn_call(call, &args);
        if (!read_use(&use[1], line, base, args.s, args.s + args.n, ',')) {
            return false;
        }
        if (use[1].rule->base) {
            return mc_nn_wrong(line, call.s, MC_EARG, "%s cannot be the base of %s", use[1].rule->name,
                               use[0].rule->name);
        }
    }
    return true;
}

bool mc_nn_rule_check(const struct mc_nn_line *line, const char *at, double *rate)
{
    struct use use[2];
    bool good = read_rule(use, line, at);
    *rate = good ? mc_nn_real(&use[0].set, "rate") : 0;
    return good;
}

/* ---- the state of rules ---- */

/* The state variable of that name; it starts as zeros in the shape of the parameter. */
static mc_shared *remembered(mc_net *net, const char *name, mc_dtype d, int rank, const int64_t *dims)
{
    mc_shared *s = mc_shared_named(net->g, name);
    if (!s) {
        mc_array *zeros = mc_array_new(d, rank, dims);
        if (!zeros) {
            mc_mistake(net->g, MC_EMEMORY, "%s: %s", name, mc_last_error());
        }
        s = mc_nn_param(net, NULL, NULL, name, " state ", zeros);
    }
    return s;
}

static bool rate_variable(mc_net *net, double rate)
{
    if (!net->rate) {
        const char *name = mc_nn_name(net, "rate");
        net->rate = name ? remembered(net, name, mc_nn_float(), 0, NULL) : NULL;
    }
    if (net->rate && mc_net_set_rate(net, rate) < 0) {
        mc_mistake(net->g, mc_last_status(), "rule: the rate cannot be set: %s", mc_last_error());
    }
    return net->rate && mc_graph_status(net->g) == MC_OK;
}

mc_status mc_net_set_rate(mc_net *net, double rate)
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    if (!net->rate) {
        net->train.rate = rate;
        return MC_OK;
    }
    mc_array *value = mc_array_new(mc_nn_float(), 0, NULL);
    mc_status s = value ? mc_array_set(value, NULL, rate) : MC_EMEMORY;
    s = s < 0 ? s : mc_shared_set(net->rate, value);
    mc_array_unref(&value);
    return s;
}

/* ---- updates ---- */

struct making {
    mc_net *net;
    struct mc_nn_line *line;
    mc_updates out;
    int cap;
};

static bool add(struct making *m, mc_node *of, mc_node *to)
{
    int n = m->out.n, cap = m->cap;
    if (mc_graph_status(m->net->g) < 0 || !mc_nn_push(m->net, &m->out.of, &n, &cap, sizeof of, &of)) {
        return false;
    }
    return mc_nn_push(m->net, &m->out.to, &m->out.n, &m->cap, sizeof to, &to);
}

/* Makes the node of a form of the rule. Formulas can call it p_what, unless `what` is NULL. */
static mc_node *run(struct making *m, const struct mc_nn_holes *h, const char *form, const char *what)
{
    struct mc_nn_text t = { 0 };
    mc_node *n = NULL;
    if (what) {
        mc_nn_addf(&t, "%s_%s = ", h->own, what);
    }
    if (mc_nn_fill(&t, form, h) && !t.bad) {
        n = mc_nn_formula(m->net, m->line, h->own, t.s);
    } else {
        mc_mistake(m->net->g, t.bad ? MC_EMEMORY : MC_EARG, "rule: '%s' has a placeholder without a text",
                   form);
    }
    mc_nn_free(&t);
    return n;
}

static void let(struct making *m, struct mc_nn_holes *h, const char *name, const char *fmt, ...)
    MC_FORMAT(4, 5);
static void let(struct making *m, struct mc_nn_holes *h, const char *name, const char *fmt, ...)
{
    struct mc_nn_text t = { 0 };
    va_list ap;
    va_start(ap, fmt);
    mc_nn_addv(&t, fmt, ap);
    va_end(ap);
    const char *kept = t.s && !t.bad ? mc_nn_keep_text(m->net, t.s, t.n) : NULL;
    mc_nn_hole(h, name, kept ? kept : "");
    mc_nn_free(&t);
}

/* The new value of one parameter by one rule. Adds the updates of the rule's state. */
static mc_node *step(struct making *m, struct use *u, struct mc_nn_holes *h, mc_node *p)
{
    const struct rule *r = u->rule;
    mc_node *slot[COUNT(r->slot)] = { NULL };
    for (int i = 0; r->field[i].name; i++) {
        if (strcmp(r->field[i].name, "rate") != 0) {
            let(m, h, r->field[i].name, "%.*s", (int)u->set.value[i].n, u->set.value[i].s);
        }
    }
    for (int i = 0; i < COUNT(r->slot) && r->slot[i].name; i++) {
        let(m, h, r->slot[i].name, "%s_%s", h->own, r->slot[i].name);
        mc_shared *s = remembered(m->net, h->at[h->n - 1].text, mc_node_dtype(p), mc_node_rank(p),
                                  mc_node_dims(p));
        slot[i] = s ? mc_shared_node(m->net->g, s) : NULL;
    }
    if (r->let) {
        run(m, h, r->let, NULL);
    }
    mc_node *to = run(m, h, r->to, "new");
    for (int i = 0; i < COUNT(r->slot) && slot[i]; i++) {
        if (!add(m, slot[i], run(m, h, r->slot[i].next, NULL))) {
            return NULL;
        }
    }
    return to;
}

/* The number of this step, if the rule reads it: a variable that each step increases by one. */
static bool count_steps(struct making *m, const struct rule *r)
{
    const char *name = mc_nn_name(m->net, "step");
    mc_shared *s = name ? remembered(m->net, name, mc_nn_float(), 0, NULL) : NULL;
    struct mc_nn_text t = { 0 };
    mc_nn_addf(&t, "%s_now = %s + 1", name ? name : "", name ? name : "");
    mc_node *now = s && !t.bad ? mc_nn_formula(m->net, m->line, r->name, t.s) : NULL;
    mc_nn_free(&t);
    return now && add(m, mc_shared_node(m->net->g, s), now);
}

/* The new value of p, whose name is `own`; the updates of the rule's state are added. */
static mc_node *new_value(struct making *m, struct use use[2], const char *own, mc_node *p, mc_node *grad)
{
    mc_graph *g = m->net->g;
    struct mc_nn_holes h = { .n = 0, .own = own };
    double most = mc_nn_real(&use[0].set, "max_norm");
    let(m, &h, "p", "%s", h.own);
    let(m, &h, "g", "%s_grad", h.own);
    let(m, &h, "new", "%s_new", h.own);
    /* Numbers of dtype floatX are cast to p's dtype. */
    const char *now = mc_nn_name(m->net, "step_now"), *d = mc_dtype_name(mc_node_dtype(p));
    let(m, &h, "rate", "cast(%s, %s)", mc_shared_name(m->net->rate), d);
    let(m, &h, "t", "cast(%s, %s)", now ? now : "", d);
    mc_name(grad, h.at[1].text);
    struct mc_nn_text label = { 0 };
    mc_nn_addf(&label, "update of %s", h.own);
    const char *before = mc_label(g, label.bad ? NULL : label.s);
    mc_nn_free(&label);
    if (use[1].rule) {
        step(m, &use[1], &h, p);
    }
    mc_node *to = step(m, &use[0], &h, p);
    to = to && most > 0 && mc_node_rank(p) > 1 ? mc_norm_constraint(m->net, to, most, NULL) : to;
    mc_label(g, before);
    return to;
}

static bool one_parameter(struct making *m, struct use use[2], mc_shared *param, mc_node *grad)
{
    mc_node *p = mc_shared_node(m->net->g, param), *to = new_value(m, use, mc_shared_name(param), p, grad);
    return to && add(m, p, to);
}

static bool gradients(struct making *m, mc_node *cost, int n, mc_shared *const *params, mc_node *const *given,
                      double clip, mc_node **grad)
{
    mc_graph *g = m->net->g;
    mc_node **p = mc_nn_keep(m->net, (size_t)n * sizeof *p + 1);
    if (!cost && !given) {
        mc_mistake(g, MC_EARG, "neither a cost nor gradients are given");
        return false;
    }
    for (int i = 0; p && i < n; i++) {
        p[i] = mc_shared_node(g, params[i]);
    }
    if (!p || (!given && mc_grads(cost, n, p, grad, NULL) < 0)) {
        return false;
    }
    for (int i = 0; given && i < n; i++) {
        grad[i] = given[i];
    }
    const char *before = mc_label(g, "clipping of gradients");
    bool good = clip <= 0 || mc_total_norm_constraint(m->net, n, grad, clip, grad) == MC_OK;
    mc_label(g, before);
    return good;
}

/* Sets the rate, and counts steps if the rule does. */
static bool begin(struct making *m, struct use use[2], const char *rule)
{
    return read_rule(use, m->line, m->line->text) &&
           rate_variable(m->net, rule ? mc_nn_real(&use[0].set, "rate") : m->net->train.rate);
}

static bool counted(struct making *m, struct use use[2])
{
    const bool counts = use[0].rule->counts || (use[1].rule && use[1].rule->counts);
    return !counts || count_steps(m, use[0].rule);
}

mc_updates mc_nn_share_updates(mc_net *net, const char *name, mc_node *p, mc_node *grad, mc_node **to)
{
    struct mc_nn_line line = mc_nn_own_line(net, net->train.rule);
    struct making m = { .net = net, .line = &line };
    struct use *use = mc_nn_keep(net, 2 * sizeof *use);
    mc_updates none = { NULL, NULL, 0 };
    *to = NULL;
    if (!use || mc_graph_status(net->g) < 0 || !begin(&m, use, NULL)) {
        mc_nn_check_error(net, false);
        return none;
    }
    for (int i = 0; i < 2; i++) {
        const char *const whole = i ? "clip" : "max_norm"; /* norms of what a rank has not */
        if (mc_nn_real(&use[0].set, whole) > 0) {
            mc_mistake(net->g, MC_EUNSUPPORTED,
                       "the states of '%s' cannot be divided among ranks: %s needs whole parameters",
                       net->train.rule, whole);
            return none;
        }
    }
    mc_name(p, name);
    *to = counted(&m, use) ? new_value(&m, use, name, p, grad) : NULL;
    return *to ? m.out : none;
}

static mc_updates make(mc_net *net, mc_node *cost, int n, mc_shared *const *params, mc_node *const *grads,
                       const char *rule)
{
    struct mc_nn_line line = mc_nn_own_line(net, rule ? rule : net->train.rule);
    struct making m = { .net = net, .line = &line };
    struct use *use = mc_nn_keep(net, 2 * sizeof *use);
    mc_node **grad = mc_nn_keep(net, (size_t)n * sizeof *grad + 1);
    mc_updates none = { NULL, NULL, 0 };
    if (!use || !grad || mc_graph_status(net->g) < 0 || !begin(&m, use, rule) ||
        !gradients(&m, cost, n, params, grads, mc_nn_real(&use[0].set, "clip"), grad) || !counted(&m, use)) {
        mc_nn_check_error(net, false);
        return none;
    }
    for (int i = 0; i < n; i++) {
        if (!mc_nn_check_error(net, one_parameter(&m, use, params[i], grad[i]))) {
            return none;
        }
    }
    return m.out;
}

mc_updates mc_updates_of(mc_net *net, mc_node *cost, int n, mc_shared *const *params, mc_node *const *grads,
                         const char *rule)
{
    if (mc_nn_null(net, "net")) {
        return (mc_updates){ NULL, NULL, 0 };
    }
    return make(net, cost, n, params, grads, rule);
}

mc_updates mc_net_updates(mc_net *net, mc_node *cost, const char *rule)
{
    if (mc_nn_null(net, "net")) {
        return (mc_updates){ NULL, NULL, 0 };
    }
    int n = 0;
    while (mc_net_param(net, "trainable", n).name) {
        n++;
    }
    mc_shared **params = mc_nn_keep(net, (size_t)n * sizeof *params + 1);
    mc_updates u = { NULL, NULL, 0 };
    for (int i = 0; params && i < n; i++) {
        params[i] = mc_net_param(net, "trainable", i).shared;
    }
    if (!params) {
        return u;
    }
    u = make(net, cost, n, params, NULL, rule);
    struct making m = { .net = net, .out = u, .cap = u.n };
    for (int i = 0; u.n && i < net->nrunning; i++) {
        if (!add(&m, mc_shared_node(net->g, net->running[i].shared), net->running[i].to)) {
            return u;
        }
    }
    return m.out;
}

static bool usable(mc_graph *g, const char *rule, int n, mc_shared *const *params)
{
    if (!rule || n < 1 || !params) {
        mc_mistake(g, MC_EARG, "rule: no %s is given", rule ? "parameter" : "rule");
    }
    for (int i = 0; i < n && mc_graph_status(g) == MC_OK; i++) {
        mc_node *p = params[i] ? mc_shared_node(g, params[i]) : NULL;
        mc_dtype d = p ? mc_node_dtype(p) : MC_BOOL;
        if (!p || (mc_graph_status(g) == MC_OK && d < MC_FLOAT16)) {
            mc_mistake(g, p ? MC_ETYPE : MC_EARG,
                       p ? "rule: parameter %d, %s, has dtype %s; only floats can be trained"
                         : "rule: parameter %d is NULL",
                       i + 1, mc_shared_name(params[i]), mc_dtype_name(d));
        }
    }
    return mc_graph_status(g) == MC_OK;
}

mc_updates mc_rule_updates(mc_graph *g, const char *prefix, const char *rule, mc_node *cost, int n,
                           mc_shared *const *params, mc_node *const *grads)
{
    mc_updates none = { NULL, NULL, 0 }, kept = none, u = none;
    if (mc_nn_null(g, "graph") || !usable(g, rule, n, params)) {
        return none;
    }
    mc_net *net = mc_calloc(1, sizeof *net, "nets"); /* without layers, and without random numbers */
    if (!net) {
        mc_mistake(g, MC_EMEMORY, "out of memory");
        return none;
    }
    net->g = g;
    net->prefix = prefix ? prefix : "";
    u = make(net, cost, n, params, grads, rule);
    kept.of = u.n ? mc_graph_keep(g, (size_t)u.n * sizeof *u.of) : NULL;
    kept.to = kept.of ? mc_graph_keep(g, (size_t)u.n * sizeof *u.to) : NULL;
    if (kept.to) {
        memcpy(kept.of, u.of, (size_t)u.n * sizeof *u.of);
        memcpy(kept.to, u.to, (size_t)u.n * sizeof *u.to);
        kept.n = u.n;
    }
    mc_net_free(net);
    return kept.to ? kept : none;
}

/* ---- norms ---- */

/* The node of a form of x, with the numbers printed into it. */
static mc_node *of(mc_net *net, mc_node *x, const char *fmt, ...) MC_FORMAT(3, 4);
static mc_node *of(mc_net *net, mc_node *x, const char *fmt, ...)
{
    struct mc_nn_text t = { 0 };
    va_list ap;
    va_start(ap, fmt);
    mc_nn_addv(&t, fmt, ap);
    va_end(ap);
    mc_node *n = t.bad ? NULL : mc_nn_both(net, "norm constraint", t.s, x, NULL);
    mc_nn_free(&t);
    return n;
}

#define RATIO "minimum($p, %.17g) / (1e-7 + $p)"
mc_node *mc_norm_constraint(mc_net *net, mc_node *x, double max, const char *axis)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    static const char *const of_unit[] = {
        NULL, NULL, "axis=0", "axis=[1, 2]", "axis=[1, 2, 3]", "axis=[1, 2, 3, 4]"
    };
    int rank = x ? mc_node_rank(x) : 0;
    axis = axis ? axis : rank < COUNT(of_unit) ? of_unit[rank] : NULL;
    if (!x || !axis) {
        return mc_mistake(net->g, MC_EARG, "norm constraint: rank %d needs axes", rank);
    }
    mc_node *norm = of(net, x, "sqrt(sum(sqr($p), %s, keepdims=True))", axis);
    return mc_mul(x, of(net, norm, RATIO, max));
}

mc_status mc_total_norm_constraint(mc_net *net, int n, mc_node *const *x, double max, mc_node **out)
{
    mc_node *all = NULL;
    for (int i = 0; i < n; i++) {
        mc_node *one = mc_sum(mc_sqr(x[i]), NULL);
        all = all ? mc_add(all, one) : one;
    }
    mc_node *factor = all ? of(net, mc_sqrt(all), RATIO, max) : NULL;
    for (int i = 0; i < n; i++) {
        out[i] = mc_mul(x[i], factor);
    }
    return mc_graph_status(net->g) < 0 ? mc_fail(mc_graph_status(net->g), "%s", mc_error(net->g)) : MC_OK;
}

void mc_nn_manual_rules(struct mc_nn_text *t)
{
    mc_nn_manual_head(t, "Rules", "what it does");
    for (const struct rule *r = rules; r->name; r++) {
        mc_nn_manual_row(t, r->name, r->field, r->doc, false);
    }
}

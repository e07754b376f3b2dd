/* recurrent.c: recurrent layers.  A layer is a loop over the time steps for each of its layers and
 * directions; a kind of cell is a row: its gates and the formula of a step.
 *
 * Invariant: the matrices of the gates are blocks of one matrix, in the order of PyTorch:
 * W_in (features, gates * units), W_hid (units, gates * units), b (gates * units).
 *
 * In the form of a step, $_x is the input of the step times W_in plus b, $_h and $_c are the states before
 * it, $_y and $_z after it.  $g0, $g1, ... are the columns of the gates, $act0, $act1, ... their
 * nonlinearities. */
#include "nn/kind.h"

enum { MOST_GATES = 4 };
struct gate {
    const char *field;   /* the setting that changes its presets; NULL: it has none */
    const char *act, *of; /* the nonlinearity, and the name of what it is applied to */
};
struct cell {
    const char *kind;
    struct gate gate[MOST_GATES];
    bool memory;         /* there is a second state */
    const char *step;
};

#define SUM "$_a = $clip($_x + dot($_h, $W_hid)$end); "
#define GRU \
    "$_a = $clip($_x$end); $_d = $clip(dot($_h, $W_hid){ + $b_hid}$end); " \
    "$_r = $_a[:, $g0] + $_d[:, $g0]; $_u = $_a[:, $g1] + $_d[:, $g1]; $_u = $act1; " \
    "$_n = $clip($_a[:, $g2] + $act0 * $_d[:, $g2]$end); "
static const struct cell cells[] = {
    { "recurrent", { { NULL, "", "$_a" } }, false, SUM "$_y = $act0; " },
    { "lstm", { { "ingate", "sigmoid", "$_i" }, { "forgetgate", "sigmoid", "$_f" }, { "cell", "tanh", "$_a[:, $g2]" }, { "outgate", "sigmoid", "$_o" } }, true,
      SUM "$_i = $_a[:, $g0]{ + $_c * $W_cell[$g0]}; $_f = $_a[:, $g1]{ + $_c * $W_cell[$g1]}; $_z = $act1 * $_c + $act0 * $act2; "
      "$_o = $_a[:, $g3]{ + $_z * $W_cell[$g2]}; $_y = $act3 * $act; " },
    { "gru", { { "resetgate", "sigmoid", "$_r" }, { "updategate", "sigmoid", "$_u" }, { "hidden_update", "tanh", "$_n" } }, false,
      GRU "$_y = (1 - $_u) * $_h + $_u * $act2; " },
    { "gru_dnn", { { "resetgate", "sigmoid", "$_r" }, { "updategate", "sigmoid", "$_u" }, { "hidden_update", "tanh", "$_n" } }, false,
      GRU "$_y = (1 - $_u) * $act2 + $_u * $_h; " },
    { "custom_recurrent", { { NULL, "", "$_a" } }, false, "$_a = $clip($step$end); $_y = $act0; " },
};

struct loops {
    struct mc_nn_build *b;
    const struct cell *cell;
    struct mc_nn_holes holes;   /* for the form of one loop */
    struct mc_nn_text text[2];  /* of all loops, by pass */
    int64_t units, features;
    int gates;
    bool bad;
};

static bool has(const struct mc_nn_build *b, const char *field)
{
    return mc_nn_field(&b->set, field) >= 0;
}

static bool option(const struct mc_nn_build *b, const char *field)
{
    return has(b, field) && mc_nn_bool(&b->set, field);
}

static bool is_layer(const struct mc_nn_build *b, const char *field)
{
    for (int i = 0; i < b->nside; i++) {
        if (strcmp(b->side[i], field) == 0) {
            return true;
        }
    }
    return false;
}

/* Fills a form with the loop's holes; the text is kept. */
static const char *filled(struct loops *l, const char *form)
{
    struct mc_nn_text t = { 0 };
    const bool good = mc_nn_fill(&t, form, &l->holes) && !t.bad;
    const char *kept = good ? mc_nn_keep_text(l->b->net, t.s, t.n) : NULL;
    l->bad |= !kept;
    mc_nn_free(&t);
    return kept ? kept : "";
}

static void let(struct loops *l, const char *name, const char *fmt, ...) MC_FORMAT(3, 4);
static void let(struct loops *l, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *kept = mc_nn_keep_printed(l->b->net, fmt, ap);
    va_end(ap);
    l->bad |= !kept;
    mc_nn_hole(&l->holes, name, kept ? kept : "");
}

/* Adds a form to the texts of both passes. */
static void add(struct loops *l, const char *form)
{
    const char *text = filled(l, form);
    mc_nn_add(&l->text[0], text);
    mc_nn_add(&l->text[1], text);
}

/* ---- parameters ---- */

static const struct mc_nn_field gate_fields[] = {
    { "W_in", NN_CALL, "", NULL }, { "W_hid", NN_CALL, "", NULL }, { "W_cell", NN_CALL, "", NULL }, { "b", NN_CALL, "", NULL },
    { "act", NN_CALL, "", NULL },  { NULL, NN_TEXT, NULL, NULL },
};

/* What a gate's setting, gate(b=1), says of a field; empty: nothing. */
static struct mc_nn_slice of_gate(struct loops *l, int gate, const char *field)
{
    const char *setting = l->cell->gate[gate].field;
    struct mc_nn_settings s;
    struct mc_nn_slice args, none = { "", 0 };
    if (!setting || l->b->failed) {
        return none;
    }
    const struct mc_nn_slice call = mc_nn_get(&l->b->set, setting);
    if (!mc_nn_same(mc_nn_call(call, &args), "gate")) {
        mc_nn_refuse(l->b, setting, "%s takes gate(...), as in gate(b=1,act=hard_sigmoid), not '%.*s'",
                     setting, (int)call.n, call.s);
        return none;
    }
    if (!mc_nn_read(&s, l->b->set.line, args.s, args.s + args.n, ',', gate_fields, "gate")) {
        l->b->failed = true;
        return none;
    }
    return mc_nn_field(&s, field) < 0 ? none : mc_nn_get(&s, field);
}

/* The parameter of a field: blocks for the gates whose bit is set.  Its hole is its name, or empty. */
static void parameter(struct loops *l, const char *field, const char *suffix, const char *tags,
                      unsigned gates, int rank, const int64_t *dims)
{
    struct mc_nn_slice init[MOST_GATES];
    struct mc_nn_text t = { 0 }, hole = { 0 };
    int n = 0;
    for (int i = 0; i < l->gates; i++) {
        if (gates >> i & 1) {
            init[n] = mc_nn_get(&l->b->set, field);
            const struct mc_nn_slice own = mc_nn_same(init[n], "none") ? init[n] : of_gate(l, i, field);
            init[n] = own.n ? own : init[n];
            n++;
        }
    }
    mc_nn_addf(&t, "%s%s", field, suffix);
    const char *name = t.bad ? NULL : mc_nn_keep_text(l->b->net, t.s, t.n);
    l->bad |= !name;
    if (name && !l->b->failed) {
        mc_nn_blocks(l->b, field, name, tags, n, init, rank, dims);
    }
    char form[24];
    mc_snprintf(form, sizeof form, "$%s", field);
    if (!l->b->failed && mc_nn_fill(&hole, form, &l->b->holes) && !hole.bad) {
        let(l, field, "%s", hole.s);
    }
    l->bad |= hole.bad;
    mc_nn_free(&hole);
    mc_nn_free(&t);
}

/* The value of a state before the first step: zeros, the layer that is named, or a parameter. */
static void initial(struct loops *l, const char *hole, const char *field, const char *suffix)
{
    const bool learned = mc_nn_bool(&l->b->set, "learn_init");
    if (is_layer(l->b, field)) {
        if (learned || *suffix || option(l->b, "bidirectional")) {
            mc_nn_refuse(l->b, field,
                         "a layer gives the initial state of a single loop, which is not learned");
        }
        let(l, hole, "$$%s", field);
    } else if (mc_nn_is(&l->b->set, field, "0") && !learned) {
        let(l, "units", "%lld", (long long)l->units);
        let(l, hole, "%s", filled(l, "zeros([size($$$$x, 0), $units], dtype=$$$$_in$s.dtype)"));
    } else {
        parameter(l, field, suffix, learned ? TRAINABLE : " ", 1, 2, (int64_t[]){ 1, l->units });
        let(l, hole, "alloc(%s, [size($$x, 0), %lld])",
            filled(l, strcmp(field, "hid_init") == 0 ? "$hid_init" : "$cell_init"), (long long)l->units);
    }
}

static void parameters(struct loops *l, const char *suffix)
{
    static const struct { const char *field, *tags; } rows[] = {
        { "W_in", REGULARIZABLE }, { "W_hid", REGULARIZABLE }, { "W_cell", REGULARIZABLE }, { "b", TRAINABLE }, { "b_hid", TRAINABLE },
    };
    const unsigned all = (1U << l->gates) - 1;
    for (int i = 0; i < COUNT(rows); i++) {
        const bool cell = strcmp(rows[i].field, "W_cell") == 0;
        const int rank = i < 2 ? 2 : 1;
        const int64_t dims[] = { i == 0 ? l->features : l->units, l->units };
        mc_nn_hole(&l->holes, rows[i].field, "");
        if (has(l->b, rows[i].field) && !(cell && !option(l->b, "peepholes"))) {
            parameter(l, rows[i].field, suffix, rows[i].tags, cell ? all & ~4U : all, rank, dims);
        }
    }
}

/* ---- the loops ---- */

/* The nonlinearities of the gates, and of the layer around its memory. */
static void nonlinearities(struct loops *l)
{
    static const char *const act[] = { "act0", "act1", "act2", "act3" }, *const column[] = { "g0", "g1", "g2",
                                                                                             "g3" };
    for (int i = 0; i < l->gates; i++) {
        const struct gate *g = &l->cell->gate[i];
        const struct mc_nn_slice own = of_gate(l, i, "act");
        struct mc_nn_slice call = { g->act, strlen(g->act) };
        struct mc_nn_text t = { 0 };
        let(l, column[i], "%lld:%lld", (long long)(i * l->units), (long long)((i + 1) * l->units));
        call = own.n ? own : call.n ? call : mc_nn_get(&l->b->set, "act");
        l->b->failed |= !mc_nn_act(&t, l->b->set.line, call, filled(l, g->of));
        let(l, act[i], "%s", t.s ? t.s : "");
        mc_nn_free(&t);
    }
    if (l->cell->memory) {
        struct mc_nn_text t = { 0 };
        l->b->failed |= !mc_nn_act(&t, l->b->set.line, mc_nn_get(&l->b->set, "act"), filled(l, "$_z"));
        let(l, "act", "%s", t.s ? t.s : "");
        mc_nn_free(&t);
    }
}

/* One loop, over $_seq or backwards.  Its result is $_out with the suffix: (time, batch, units), or the last
 * step's (batch, units). */
static void loop(struct loops *l, const char *suffix, bool back, bool final)
{
    const bool custom = has(l->b, "step");
    let(l, "s", "%s", suffix);
    let(l, "back", "%s", back ? "[::-1]" : "");
    parameters(l, suffix);
    initial(l, "h0", "hid_init", suffix);
    if (l->cell->memory) {
        initial(l, "c0", "cell_init", suffix);
    }
    let(l, "result", "%s%s", final ? "last " : "", filled(l, "$_h"));
    nonlinearities(l);
    add(l, custom ? "$$_in$s = $$_seq$back; " : "$$_in$s = dot($$_seq$back, $W_in){ + $b}; ");
    if (is_layer(l->b, "mask")) {
        let(l, "mask", "%s", filled(l, "$$$$_mask$back"));
    }
    add(l, "$$_out$s = scan($_x in $$_in$s, {$_m in $mask, }$_h from $h0{, $_c from $c0}: ");
    add(l, l->cell->step);
    add(l, is_layer(l->b, "mask") ? "$_h = where($_m, $_y, $_h); {$_c = $c1; }" : "$_h = $_y; {$_c = $c1; }");
    add(l, final ? "yield $result); " : "yield $result)$back; ");
}

/* All layers and directions.  $_seq is the input of the next layer. */
static void stack(struct loops *l)
{
    const int64_t layers = has(l->b, "layers") ? mc_nn_int(&l->b->set, "layers") : 1;
    const bool both = option(l->b, "bidirectional"), final = option(l->b, "only_return_final"),
               back = option(l->b, "backwards");
    const double drop = has(l->b, "dropout") ? mc_nn_real(&l->b->set, "dropout") : 0;
    if (both && back) {
        mc_nn_refuse(l->b, "backwards", "a layer in both directions is not backwards");
    }
    add(l, mc_nn_rank(l->b, 0) > 3 ? "$$_seq = dimshuffle(flatten($$x, ndim=3), [1, 0, 2]); "
                                   : "$$_seq = dimshuffle($$x, [1, 0, 2]); ");
    if (is_layer(l->b, "mask")) {
        add(l, "$$_mask = dimshuffle(neq($$mask, 0), [1, 0, -1]); ");
    }
    for (int64_t i = 0; i < layers && !l->b->failed && !l->bad; i++) {
        const bool last = i == layers - 1;
        char suffix[2][40] = { "", "_reverse" };
        if (i) {
            mc_snprintf(suffix[0], sizeof suffix[0], "_l%lld", (long long)i);
            mc_snprintf(suffix[1], sizeof suffix[1], "_l%lld_reverse", (long long)i);
        }
        for (int d = 0; d <= both; d++) {
            loop(l, suffix[d], back || d, final && last);
        }
        let(l, "s", "%s", suffix[0]);
        let(l, "r", "%s", suffix[1]);
        add(l, !both           ? "$$_seq = $$_out$s; "
               : final && last ? "$$_seq = concatenate($$_out$s, $$_out$r, axis=1); "
                               : "$$_seq = concatenate($$_out$s, $$_out$r, axis=2); ");
        if (drop > 0 && !last) {
            let(l, "keep", "%.17g", 1 - drop);
            mc_nn_add(&l->text[0],
                      filled(l, "$$_seq = $$_seq * (bernoulli($$random, $keep, shape($$_seq)) / $keep); "));
        }
        l->features = l->units * (1 + both);
    }
    add(l, final ? "$$_seq" : "dimshuffle($$_seq, [1, 0, 2])");
}

static bool check_mask(struct mc_nn_build *b)
{
    if (is_layer(b, "mask")) {
        const mc_layer *m = b->layer->in[b->layer->nin - b->nside];
        for (int i = 0; i < b->nside; i++) {
            m = strcmp(b->side[i], "mask") == 0 ? b->layer->in[b->layer->nin - b->nside + i] : m;
        }
        return mc_layer_rank(m) == 2 ||
               mc_nn_refuse(b, "mask",
                            "a mask has an axis of examples and one of steps, but '%s' has rank %d",
                            mc_layer_name(m), mc_layer_rank(m));
    }
    return mc_nn_is(&b->set, "mask", "none") ||
           mc_nn_refuse(b, "mask", "there is no layer '%.*s'", (int)mc_nn_get(&b->set, "mask").n,
                        mc_nn_get(&b->set, "mask").s);
}

static void recurrent(struct mc_nn_build *b)
{
    struct loops l = { .b = b, .units = mc_nn_int(&b->set, "units"), .features = 1 };
    const double clip = mc_nn_real(&b->set, "grad_clipping");
    if (mc_nn_rank(b, 0) < 3) {
        mc_nn_refuse(b, NULL, "the input has rank %d; expected 3: examples, steps, features",
                     mc_nn_rank(b, 0));
        return;
    }
    for (int i = 0; i < COUNT(cells); i++) {
        l.cell = strcmp(cells[i].kind, b->layer->kind->name) == 0 ? &cells[i] : l.cell;
    }
    while (l.gates < MOST_GATES && l.cell->gate[l.gates].of) {
        l.gates++;
    }
    for (int i = 2; i < mc_nn_rank(b, 0); i++) {
        if (!mc_nn_known(b, "its weights", i)) {
            return;
        }
        l.features *= mc_nn_dims(b, 0)[i];
    }
    if (!check_mask(b)) {
        return;
    }
    l.holes.own = b->layer->var[0];
    let(&l, "x", "%s", filled(&l, "$_x"));
    let(&l, "h", "%s", filled(&l, "$_h"));
    let(&l, "step", "%.*s", has(b, "step") ? (int)mc_nn_get(&b->set, "step").n : 0,
        has(b, "step") ? mc_nn_get(&b->set, "step").s : "");
    const bool known = !l.bad;
    filled(&l, "$step");
    if (known && l.bad && has(b, "step")) {
        mc_nn_refuse(b, "step", "the formula has a name that is neither $x nor $h");
        return;
    }
    let(&l, "clip", "%s", clip > 0 ? "grad_clip" : "");
    let(&l, "end", "%s", "");
    if (clip > 0) {
        let(&l, "end", ", -%.17g, %.17g", clip, clip);
    }
    let(&l, "mask", "%s", "");
    let(&l, "c0", "%s", "");
    let(&l, "c1", "%s",
        !l.cell->memory ? "" : filled(&l, is_layer(b, "mask") ? "where($_m, $_z, $_c)" : "$_z"));
    stack(&l);
    for (int pass = 0; pass < 2; pass++) {
        b->failed |= l.bad || l.text[pass].bad;
        b->form[pass] = b->failed ? "$x" : mc_nn_keep_text(b->net, l.text[pass].s, l.text[pass].n);
        b->failed |= !b->form[pass];
        mc_nn_free(&l.text[pass]);
    }
    b->has_act = true;
}

#define UNITS { "units", NN_COUNT, NULL }
#define GATE(name) { name, NN_CALL, "gate" }
#define WEIGHTS(preset) { "W_in", NN_CALL, preset }, { "W_hid", NN_CALL, preset }, { "b", NN_CALL, "0" }
#define LOOP \
    { "hid_init", NN_SIDE, "0" }, { "learn_init", NN_BOOL, "false" }, { "backwards", NN_BOOL, "false" }, { "only_return_final", NN_BOOL, "false" }, \
    { "grad_clipping", NN_REAL, "0", NN_FROM_0 }, { "mask", NN_SIDE, "none" }
#define STACK { "layers", NN_COUNT, "1" }, { "bidirectional", NN_BOOL, "false" }, { "dropout", NN_REAL, "0", "[0, 1)" }
#define GRU_GATES GATE("resetgate"), GATE("updategate"), GATE("hidden_update")
const struct mc_nn_kind mc_nn_recurrents[] = {
    { "recurrent", "in each step: act(x W_in + h W_hid + b), h from the step before", 1,
      { UNITS, ACT("rectify"), WEIGHTS("uniform"), LOOP, STACK },
      recurrent, "$x", NULL },
    { "lstm",      "long short-term memory, with peepholes unless peepholes=false",   1,
      { UNITS, ACT("tanh"), WEIGHTS("normal(0.1)"), { "W_cell", NN_CALL, "normal(0.1)" }, GATE("ingate"), GATE("forgetgate"), GATE("cell"), GATE("outgate"),
        { "peepholes", NN_BOOL, "true" }, { "cell_init", NN_SIDE, "0" }, LOOP, STACK },
      recurrent, "$x", NULL },
    { "gru",       "gated recurrent unit as in Lasagne: u is the part of the new value in h = (1 - u) h + u n", 1,
      { UNITS, WEIGHTS("normal(0.1)"), GRU_GATES, LOOP, STACK },
      recurrent, "$x", NULL },
    { "gru_dnn",   "gated recurrent unit as in cuDNN and PyTorch: h = (1 - u) n + u h, and a bias b_hid beside h W_hid", 1,
      { UNITS, WEIGHTS("normal(0.1)"), { "b_hid", NN_CALL, "0" }, GRU_GATES, LOOP, STACK },
      recurrent, "$x", NULL },
    { "custom_recurrent", "in each step: act of any formula of $x, the input of the step, and $h, the state", 1,
      { UNITS, { "step", NN_TEXT, NULL }, ACT("linear"), LOOP },
      recurrent, "$x", NULL },
    LAST_KIND,
};

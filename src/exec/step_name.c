/* step_name.c: the text and the name of a step.  The text is its formula.  The name is made of the labels of
 * its results; else of the updates and outputs that they are; else of the formula: "conv1, pool1 forward",
 * "gradient of W", "update of W, b and 6 more".
 *
 * Both are made on first use: a large graph has as many steps as nodes, and most names are never needed.
 *
 * Invariant: names are for people, and nothing depends on them; two steps may have the same name. */
#include "exec/backend.h"
#include "graph/picture.h"

enum { MOST_WORDS = 3, FORMULA_COLUMNS = 60 };
enum way { PLAIN, FORWARD, BACKWARD, GRADIENT, NWAY };
struct word { enum way way; const char *text; };
typedef VEC(struct word) words;

static bool add(words *w, enum way way, const char *text)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->at[i].way == way && strcmp(w->at[i].text, text) == 0) {
            return true;
        }
    }
    struct word one = { way, text };
    return VEC_PUSH(*w, one);
}

static const struct mc_label *label_of(const mc_node *n)
{
    return n->label || n->op != &mc_op_item ? n->label : n->in[0]->label;
}

/* False: there is no label. */
static bool add_label(words *w, const struct mc_label *l, bool *good)
{
    if (!l) {
        return false;
    }
    enum way way = l->gradient ? (l->of ? GRADIENT : BACKWARD) : l->differentiated ? FORWARD : PLAIN;
    *good &= add(w, way, way == GRADIENT ? l->of : l->text ? l->text : "");
    return true;
}

/* Names a value without a label: the update or the output that it is, or its own name.  False: it has
 * none. */
static bool add_value(words *w, struct mc_arena *a, const struct mc_program *p, int value,
                      const char *const *output_name, bool *good)
{
    const mc_node *n = p->value.at[value].node;
    for (int i = 0; i < p->nupdate; i++) {
        if (p->update[i] == value) {
            const char *name = mc_shared_name(p->shared[i]);
            size_t size = strlen(name) + sizeof "update of ";
            char *text = mc_arena_alloc(a, size);
            *good &= text != NULL;
            if (text) {
                mc_snprintf(text, size, "update of %s", name);
                *good &= add(w, PLAIN, text);
            }
            return true;
        }
    }
    const char *name = n->name;
    for (int i = 0; i < p->noutput; i++) {
        name = p->output[i] == value && output_name && output_name[i] ? output_name[i] : name;
    }
    if (name) {
        *good &= add(w, PLAIN, name);
    }
    return name != NULL;
}

/* s from the first word on in which it differs from `before`. */
static const char *new_words(const char *s, const char *before)
{
    const char *from = s, *at = s;
    for (; before && *at && *at == *before; at++, before++) {
        from = *at == ' ' ? at + 1 : from;
    }
    return from;
}

static void say(struct mc_str *out, const words *w, enum way way)
{
    static const char *const before[NWAY] = { [GRADIENT] = "gradient of " }, *const behind[NWAY] = {
        [FORWARD] = " forward", [BACKWARD] = " backward"
    };
    const char *last = NULL;
    int said = 0, left = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (w->at[i].way != way) {
            continue;
        }
        if (said == MOST_WORDS) {
            left++;
            continue;
        }
        if (!said) {
            mc_str_add(out, out->n ? "; " : "");
            mc_str_add(out, before[way] ? before[way] : "");
        }
        mc_str_add(out, said++ ? ", " : "");
        mc_str_add(out, !*w->at[i].text ? "gradient" : new_words(w->at[i].text, last));
        last = w->at[i].text;
    }
    if (left) {
        mc_str_addf(out, " and %d more", left);
    }
    if (said && behind[way] && *last) {
        mc_str_add(out, behind[way]);
    }
}

/* Nodes inside the step are named only if no result has a name.  NULL: out of memory. */
static char *name_of(const struct mc_code_unit *u, int step)
{
    const struct mc_program *p = &u->program;
    const struct mc_step *s = &p->step.at[step];
    words w = { 0 };
    struct mc_arena a = { 0 };
    struct mc_str out = { 0 }, formula = { 0 };
    bool good = true;
    if (s->heavy) {
        add_label(&w, label_of(s->heavy), &good);
    }
    for (int i = 0; i < s->ndst; i++) {
        if (!add_label(&w, label_of(p->value.at[s->dst[i]].node), &good)) {
            add_value(&w, &a, p, s->dst[i], u->output_name, &good);
        }
    }
    for (int i = 0; i < s->nnode && !w.n; i++) {
        add_label(&w, label_of(s->node[i]), &good);
    }
    for (enum way way = PLAIN; way < NWAY; way++) { /* order: forward, backward, gradients, plain */
        say(&out, &w, (enum way)((way + 1) % NWAY));
    }
    if (!out.n && s->nnode) {
        mc_node_print(&formula, s->node[s->nnode - 1], 2);
        mc_str_line(&out, formula.s ? formula.s : "", FORMULA_COLUMNS);
    }
    out.bad |= !good || formula.bad;
    char *name = mc_str_take(&out);
    mc_str_free(&formula);
    VEC_FREE(w);
    mc_arena_free(&a);
    return name;
}

/* The formulas of the step's results over its inputs.  NULL: out of memory. */
static char *text_of(const struct mc_code_unit *u, int step)
{
    const struct mc_program *p = &u->program;
    const struct mc_step *s = &p->step.at[step];
    struct mc_str out = { 0 };
    if (s->heavy && s->kernel) {
        mc_node_print(&out, s->heavy, 2);
        mc_str_add(&out, ", then ");
    }
    for (int k = 0, shown = 0; k < s->nnode; k++) {
        int v = p->value_of[s->node[k]->id];
        if ((v >= 0 && p->value.at[v].step == step) || s->nnode == 1) {
            mc_str_add(&out, shown++ ? ", " : "");
            mc_node_print(&out, s->node[k], 6);
        }
    }
    return mc_str_take(&out);
}

/* Returns *at, made first if it is NULL.  If two threads make it, the first result is kept. */
static const char *get_or_make(char *_Atomic *at, char *(*make)(const struct mc_code_unit *u, int step),
                               const struct mc_code_unit *u, int step)
{
    char *have = atomic_load(at);
    if (!have) {
        char *made = make(u, step);
        if (made && atomic_compare_exchange_strong(at, &have, made)) {
            return made;
        }
        mc_free(made);
    }
    return have ? have : "";
}

const char *mc_step_text(const struct mc_code_unit *u, int step)
{
    return step >= 0 && step < u->nstep ? get_or_make(&u->words[step].text, text_of, u, step) : "";
}

const char *mc_step_name(const struct mc_code_unit *u, int step)
{
    return step >= 0 && step < u->nstep ? get_or_make(&u->words[step].name, name_of, u, step) : "";
}

/* passes.c: the passes, which are lists of rule tables, and the reading of the tables.
 *
 * Invariant: each rule has a number that does not change during the process: its place in the tables of
 * `stages` below, in order. */
#include "rewrite/rewrite.h"
#include "rewrite/passes.h"

/* ---- the passes in order ---- */

#define ALWAYS &mc_rules_fold, &mc_rules_shape, &mc_rules_index, &mc_rules_update, &mc_rules_join, &mc_rules_reduce, &mc_rules_centred, &mc_rules_canon, \
    &mc_rules_product, &mc_rules_conv, &mc_rules_pool
/* The tables that bring a formula to canonical form, so that recognition and stabilization work.
 * Convolutions, parts and updates stay as they are, which suits gradients; fewer rules suit FAST_COMPILE. */
#define SPELLING &mc_rules_fold, &mc_rules_shape, &mc_rules_reduce, &mc_rules_canon
enum { FULL = 1 << REWRITE_FULL, FAST = 1 << REWRITE_FAST, COST = 1 << REWRITE_COST };
static const struct mc_pass passes[] = {
    { "recognise",    { &mc_rules_recognise },                         FULL | FAST | COST }, /* as written: before views move into a quotient */
    { "canonicalize", { ALWAYS },                                      FULL | FAST },
    { "recognise",    { ALWAYS, &mc_rules_recognise },                 FULL },  /* before parts of a softmax are made stable */
    { "stabilize",    { ALWAYS, &mc_rules_recognise, &mc_rules_stable }, FULL },
    { "specialize",   { ALWAYS, &mc_rules_special, &mc_rules_late },   FULL },
    { "recognise",  { SPELLING, &mc_rules_recognise },            COST | FAST },
    { "stabilize",  { SPELLING, &mc_rules_recognise, &mc_rules_stable }, COST | FAST },
    { "stabilize",  { SPELLING, &mc_rules_recognise, &mc_rules_stable }, COST },       /* axes sink past one shared node per pass */
};
/* The stages that `including` and `excluding` may name, besides single rules and tags. */
static const struct stage { const char *name; const struct mc_rule_table *table[16]; } stages[] = {
    { "canonicalize", { ALWAYS } },
    { "recognise",    { &mc_rules_recognise } },
    { "stabilize",    { &mc_rules_stable } },
    { "specialize",   { &mc_rules_special, &mc_rules_late } },
    /* Stages without rules: compile.c asks mc_stage_off. */
    { "layout",       { NULL } },
    { "fusion",       { NULL } },
    { "loops",        { NULL } },
};

/* ---- reading the tables, once ---- */

static struct {
    pthread_mutex_t lock;
    bool ready;
    mc_graph *patterns;            /* its arena holds the patterns */
    VEC(struct mc_compiled) rules;
    VEC(int) list[NELEM(passes)][MC_OPS_MOST + 1];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void forget(void)
{
    for (size_t p = 0; p < NELEM(passes); p++) {
        for (size_t i = 0; i < NELEM(all.list[p]); i++) {
            VEC_FREE(all.list[p][i]);
        }
    }
    VEC_FREE(all.rules);
    mc_graph_free(all.patterns);
    all.patterns = NULL;
}

static mc_status read_row(const struct mc_rule *row, const struct mc_rule_table *table, const char *stage)
{
    struct mc_compiled c = { .rule = row, .table = table, .stage = stage };
    if (row->from) {
        c.from = mc_pattern_parse(all.patterns, row->from, NULL);
        c.to = c.from && row->to ? mc_pattern_parse(all.patterns, row->to, c.from) : NULL;
        if (!c.from || (row->to && !c.to)) {
            return mc_fail(all.patterns->status, "rule '%s': %s", row->from, mc_error(all.patterns));
        }
        c.op = mc_pattern_root(c.from);
    } else if (strcmp(row->op, "*") != 0) {
        c.op = strcmp(row->op, "item") == 0 ? &mc_op_item : mc_op_find(row->op);
        if (!c.op) {
            return mc_fail(MC_EARG, "rule '%s': there is no op '%s'", mc_rule_name(row), row->op);
        }
    }
    return VEC_PUSH(all.rules, c) ? MC_OK : mc_last_status();
}

static mc_status read_probe(struct mc_probe *p)
{
    p->pattern = mc_pattern_parse(all.patterns, p->text, NULL);
    return p->pattern ? MC_OK
                      : mc_fail(all.patterns->status, "probe '%s': %s", p->text, mc_error(all.patterns));
}

static bool pass_has(const struct mc_pass *p, const struct mc_rule_table *table)
{
    for (size_t i = 0; i < NELEM(p->table); i++) {
        if (p->table[i] == table) {
            return true;
        }
    }
    return false;
}

/* Lists for each pass and op the numbers of its rules, in the order of the tables. */
static mc_status sort_rules(void)
{
    for (size_t p = 0; p < NELEM(passes); p++) {
        for (size_t i = 0; i < all.rules.n; i++) {
            const struct mc_compiled *c = &all.rules.at[i];
            if (!pass_has(&passes[p], c->table)) {
                continue;
            }
            int from = c->op ? mc_op_slot(c->op) : 0, to = c->op ? from : MC_OPS_MOST;
            for (int k = from; k <= to; k++) {
                if (!VEC_PUSH(all.list[p][k], (int)i)) {
                    return mc_last_status();
                }
            }
        }
    }
    return MC_OK;
}

static mc_status read_tables(void)
{
    all.patterns = mc_graph_make(&mc_op_language);
    if (!all.patterns) {
        return mc_last_status();
    }
    for (const struct stage *s = stages; s < stages + NELEM(stages); s++) {
        for (int t = 0; s->table[t]; t++) {
            for (int i = 0; i < s->table[t]->n; i++) {
                TRY(read_row(&s->table[t]->row[i], s->table[t], s->name));
            }
            for (int i = 0; i < s->table[t]->nprobe; i++) {
                TRY(read_probe(&s->table[t]->probe[i]));
            }
        }
    }
    return sort_rules();
}

mc_status mc_passes_ready(void)
{
    pthread_mutex_lock(&all.lock);
    mc_status s = all.ready ? MC_OK : read_tables();
    if (s < 0) {
        forget();
    }
    all.ready = s == MC_OK;
    pthread_mutex_unlock(&all.lock);
    return s;
}

/* ---- access for the driver ---- */

const struct mc_pass *mc_pass_at(int i)
{
    return i >= 0 && i < (int)NELEM(passes) ? &passes[i] : NULL;
}

int mc_op_slot(const struct mc_op *op)
{
    return mc_op_at(op->index) == op ? op->index : MC_OPS_MOST; /* items and users' ops share the last one */
}

const int *mc_pass_rules(int pass, const struct mc_op *op, int *n)
{
    *n = (int)all.list[pass][mc_op_slot(op)].n;
    return all.list[pass][mc_op_slot(op)].at;
}

const struct mc_compiled *mc_compiled_at(int i)
{
    return &all.rules.at[i];
}

int mc_rule_count(void)
{
    return mc_passes_ready() < 0 ? -1 : (int)all.rules.n;
}

const struct mc_rule *mc_rule_at(int i)
{
    return i >= 0 && i < mc_rule_count() ? all.rules.at[i].rule : NULL;
}

const char *mc_rule_name(const struct mc_rule *r)
{
    return r->name ? r->name : r->from ? r->from : r->op;
}

/* ---- by name and tag ---- */

static bool word_in(const char *list, const char *word, size_t n)
{
    for (const char *s = list; s && *s; s += *s == ':') {
        size_t k = strcspn(s, ":");
        if (k == n && strncmp(s, word, n) == 0) {
            return true;
        }
        s += k;
    }
    return false;
}

static bool named_in(const char *list, const struct mc_rule *r, const char *stage)
{
    const char *name = mc_rule_name(r);
    if (!list || !*list) {
        return false;
    }
    if (word_in(list, name, strlen(name)) || (stage && word_in(list, stage, strlen(stage)))) {
        return true;
    }
    for (const char *s = r->tags; s && *s; s += *s == ':') {
        size_t k = strcspn(s, ":");
        if (k && word_in(list, s, k)) {
            return true;
        }
        s += k;
    }
    return false;
}

bool mc_rule_mends(int i)
{
    const struct mc_compiled *c = &all.rules.at[i];
    return c->table->mends || word_in(c->rule->tags, "mends", 5);
}

bool mc_rule_off(const struct mc_rule *r, const char *stage, const struct mc_rewrite *o)
{
    return named_in(o->excluding, r, stage) ||
           (word_in(r->tags, "off", 3) && !named_in(o->including, r, stage));
}

bool mc_stage_off(const char *stage, const char *excluding)
{
    return word_in(excluding ? excluding : mc_flag_text(FLAG_excluding), stage, strlen(stage));
}

/* ---- checking the words of `including` and `excluding` ---- */

static bool names_rule(const char *word, const struct mc_rule *r)
{
    return strcmp(word, mc_rule_name(r)) == 0 || word_in(r->tags, word, strlen(word));
}

static bool names_any(const mc_graph *g, const char *word)
{
    for (size_t i = 0; i < NELEM(stages); i++) {
        if (strcmp(word, stages[i].name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < all.rules.n; i++) {
        if (names_rule(word, all.rules.at[i].rule)) {
            return true;
        }
    }
    for (const struct mc_user_rule *u = g->rules; u; u = u->next) {
        if (names_rule(word, &u->rule)) {
            return true;
        }
    }
    return false;
}

static mc_status refuse(const mc_graph *g, const char *what, const char *word)
{
    VEC(const char *) name = { 0 };
    bool fits = true;
    for (size_t i = 0; i < NELEM(stages); i++) {
        fits = fits && VEC_PUSH(name, stages[i].name);
    }
    for (size_t i = 0; i < all.rules.n; i++) {
        fits = fits && VEC_PUSH(name, mc_rule_name(all.rules.at[i].rule));
    }
    for (const struct mc_user_rule *u = g->rules; u; u = u->next) {
        fits = fits && VEC_PUSH(name, mc_rule_name(&u->rule));
    }
    const char *near = fits ? mc_near_miss(word, name.at, name.n) : NULL;
    struct mc_str hint = { 0 };
    if (near) {
        mc_str_addf(&hint, "did you mean '%s'?", near);
    }
    for (size_t i = 0; i < NELEM(stages) && !near; i++) {
        mc_str_addf(&hint, "%s %s", i ? "," : "the stages are", stages[i].name);
    }
    mc_status s = !fits || hint.bad ? MC_EMEMORY
                                    : mc_fail(MC_EARG, "compile: %s: no rule, tag or stage is named '%s'; %s",
                                              what, word, hint.s);
    mc_str_free(&hint);
    VEC_FREE(name);
    return s;
}

mc_status mc_rewrite_words(const mc_graph *g, const char *what, const char *list)
{
    TRY(mc_passes_ready());
    for (const char *s = list; s && *s; s += *s == ':') {
        size_t k = strcspn(s, ":");
        struct mc_str word = { 0 };
        mc_str_addf(&word, "%.*s", (int)k, s);
        mc_status made = word.bad ? MC_EMEMORY : !k || names_any(g, word.s) ? MC_OK : refuse(g, what, word.s);
        mc_str_free(&word);
        TRY(made);
        s += k;
    }
    return MC_OK;
}

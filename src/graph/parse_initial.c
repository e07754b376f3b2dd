/* parse_initial.c: the initial value of a declaration: "shared W float32[784, 10] = normal(std=0.02)".
 *
 * Invariant: the text that is kept gives the same value when it is read again, and prints unchanged. */
#include "graph/parse.h"
#include "base/flag.h"
#include <math.h>

enum { MOST_SETTINGS = NELEM(((mc_initial *)NULL)->setting) };

static void print_real(struct mc_str *out, double v)
{
    mc_attr_text(out, &(struct mc_attr){ .kind = ATTR_REAL, .real = v });
}

/* ---- a number ---- */

static bool is_number(const struct val *v)
{
    return v->kind == V_INT || v->kind == V_WIDE || v->kind == V_REAL || v->kind == V_BOOL;
}

/* Does the dtype hold the number?  Only float dtypes hold reals. */
static bool holds(mc_dtype d, const struct val *v)
{
    struct whole w;
    uint64_t u;
    char stored[8];
    if (d == MC_BOOL) {
        return v->kind == V_BOOL;
    }
    if (v->kind == V_WIDE && d == MC_UINT64) {
        w = *v->wide;
        return mc_bigint_u64(&w, &u);
    }
    if (!mc_is_float(d)) {
        return v->kind == V_BOOL || (v->kind == V_INT && mc_literal_fits(v->i, d));
    }
    mc_store_f64(d, stored, v->real);
    return isfinite(mc_load_f64(d, stored)) || !isfinite(v->real);
}

static mc_array *number(struct parser *p, const char *name, const struct mc_type *t, struct mc_str *text)
{
    static const int64_t still[MC_MAX_RANK] = { 0 };
    size_t at = p->tok.at;
    struct val v = mc_parse_expr(p);
    uint64_t u = 0;
    if (!p->failed && !is_number(&v)) {
        mc_parse_fail(p, at, "the initial value of %s must be a number, or a rule such as normal(std=0.02)",
                      name);
    } else if (!p->failed && !holds(t->dtype, &v)) {
        mc_parse_refuse(p, at, MC_ETYPE, "%s has dtype %s, which cannot represent this number", name,
                        mc_dtype_name(t->dtype));
    }
    if (p->failed) {
        return NULL;
    }
    bool whole = v.kind == V_INT || v.kind == V_BOOL, wide = v.kind == V_WIDE && mc_bigint_u64(v.wide, &u);
    void *from = whole ? (void *)&v.i : wide ? (void *)&u : (void *)&v.real;
    mc_dtype d = whole ? MC_INT64 : wide ? MC_UINT64 : MC_FLOAT64;
    mc_array *same = mc_array_wrap(d, t->rank, t->dims, still, from, NULL, NULL);
    mc_array *out = same ? mc_array_new(t->dtype, t->rank, t->dims) : NULL;
    if (out && mc_array_assign(out, same) < 0) {
        mc_array_unref(&out);
    }
    mc_array_unref(&same);
    if (v.kind == V_BOOL) {
        mc_str_add(text, v.i ? "True" : "False");
    } else if (whole) {
        mc_str_addf(text, "%lld", (long long)v.i);
    } else if (wide) {
        mc_str_addf(text, "%llu", (unsigned long long)u);
    } else {
        size_t before = text->n;
        print_real(text, v.real);
        mc_str_add(text, text->s && !strpbrk(text->s + before, ".en") ? ".0" : "");
    }
    return out;
}

/* ---- a rule ---- */

struct reading {
    const mc_initial *rule;
    double set[MOST_SETTINGS];
    bool given[MOST_SETTINGS], seeded;
    int64_t seed;
};

static const mc_initial *find_rule(struct parser *p)
{
    const char *name[64];
    char word[48] = { 0 };
    int n = 0;
    memcpy(word, p->text + p->tok.at, MC_MIN(p->tok.n, sizeof word - 1));
    for (; mc_initial_at(n) && n < (int)NELEM(name); n++) {
        name[n] = mc_initial_at(n)->name;
        if (mc_parse_word(p, name[n])) {
            return mc_initial_at(n);
        }
    }
    const char *near = mc_near_miss(word, name, (size_t)n);
    mc_parse_fail(p, p->tok.at,
                  near ? "there is no initial value '%s'; did you mean '%s'?"
                       : "there is no initial value '%s'",
                  word, near);
    return NULL;
}

static bool is_truth(const mc_initial *r, int i)
{
    return strcmp(r->setting[i].preset, "false") == 0;
}

/* The setting that the next argument sets: the named one, or the first that is not set; -1: the seed, -2: a
 * mistake. */
static int which_setting(struct parser *p, const struct reading *q, int *next)
{
    const mc_initial *r = q->rule;
    const char *name[MOST_SETTINGS + 1];
    char word[48] = { 0 };
    struct parser back = *p;
    struct tok t = p->tok;
    int n = 0;
    if (t.kind == T_NAME) {
        mc_parse_next(p);
        if (mc_parse_take(p, "=")) {
            for (; r->setting[n].name; n++) {
                name[n] = r->setting[n].name;
                if (strlen(name[n]) == t.n && memcmp(name[n], p->text + t.at, t.n) == 0) {
                    return n;
                }
            }
            name[n] = "seed";
            memcpy(word, p->text + t.at, MC_MIN(t.n, sizeof word - 1));
            if (r->random && strcmp(word, "seed") == 0) {
                return -1;
            }
            const char *near = mc_near_miss(word, name, (size_t)(n + r->random));
            mc_parse_fail(p, t.at,
                          near ? "%s has no setting '%s'; did you mean '%s'?" : "%s has no setting '%s'",
                          r->name, word, near);
            return -2;
        }
        *p = back;
    }
    while (r->setting[*next].name && q->given[*next]) {
        ++*next;
    }
    if (!r->setting[*next].name) {
        mc_parse_fail(p, t.at, "%s: too many settings", r->name);
        return -2;
    }
    return *next;
}

static void read_setting(struct parser *p, struct reading *q, int i)
{
    const mc_initial *r = q->rule;
    size_t at = p->tok.at;
    if (i < 0 ? q->seeded : q->given[i]) {
        mc_parse_fail(p, at, "%s: '%s' is given twice", r->name, i < 0 ? "seed" : r->setting[i].name);
        return;
    }
    if (i >= 0 && r->setting[i].word && mc_parse_word(p, r->setting[i].word)) {
        q->set[i] = r->setting[i].means;
        q->given[i] = true;
        mc_parse_next(p);
        return;
    }
    struct val v = mc_parse_expr(p);
    if (p->failed) {
        return;
    }
    if (i < 0) {
        q->seed = v.i;
        q->seeded = v.kind == V_INT && v.i >= 0;
        if (!q->seeded) {
            mc_parse_fail(p, at, "%s: seed must be a nonnegative whole number", r->name);
        }
        return;
    }
    bool good = is_truth(r, i) ? v.kind == V_BOOL : is_number(&v) && v.kind != V_BOOL;
    q->set[i] = v.kind == V_BOOL || v.kind == V_INT ? (double)v.i : v.real;
    q->given[i] = good;
    if (!good) {
        const char *word = r->setting[i].word;
        mc_parse_fail(p, at, "%s: %s must be %s%s%s", r->name, r->setting[i].name,
                      is_truth(r, i) ? "True or False" : "a number", word ? " or " : "", word ? word : "");
    }
}

static void read_settings(struct parser *p, struct reading *q)
{
    const mc_initial *r = q->rule;
    int next = 0;
    mc_parse_next(p);
    for (int i = 0; r->setting[i].name; i++) {
        const char *preset = r->setting[i].preset, *word = r->setting[i].word;
        bool means = word && strcmp(preset, word) == 0;
        q->set[i] = means ? r->setting[i].means : is_truth(r, i) ? 0 : mc_strtod(preset, NULL);
    }
    if (!mc_parse_take(p, "(")) {
        return;
    }
    while (!p->failed && !mc_parse_is(p, ")")) {
        int i = which_setting(p, q, &next);
        if (i > -2) {
            read_setting(p, q, i);
        }
        mc_parse_separator(p, ")");
    }
    mc_parse_expect(p, ")");
}

static void print_rule(struct mc_str *text, const struct reading *q)
{
    const mc_initial *r = q->rule;
    const char *between = "";
    mc_str_addf(text, "%s(", r->name);
    for (int i = 0; r->setting[i].name; i++) {
        if (q->given[i]) {
            const char *word = r->setting[i].word;
            bool means = word && (q->set[i] == r->setting[i].means || isnan(q->set[i]));
            mc_str_addf(text, "%s%s=", between, r->setting[i].name);
            if (means || is_truth(r, i)) {
                mc_str_add(text, means ? word : q->set[i] != 0 ? "True" : "False");
            } else {
                print_real(text, q->set[i]);
            }
            between = ", ";
        }
    }
    if (q->seeded) {
        mc_str_addf(text, "%sseed=%lld", between, (long long)q->seed);
    }
    mc_str_add(text, ")");
}

static mc_array *by_rule(struct parser *p, const char *name, const struct mc_type *t, struct mc_str *text)
{
    size_t at = p->tok.at;
    struct reading q = { .rule = find_rule(p) };
    if (q.rule) {
        read_settings(p, &q);
    }
    if (p->failed) {
        return NULL;
    }
    struct mc_numbers numbers = mc_numbers_of((uint64_t)(q.seeded ? q.seed : mc_flag_int(FLAG_seed)), name);
    mc_array *value = mc_initial_value(q.rule, q.set, t->dtype, t->rank, t->dims, mc_numbers_draw, &numbers);
    if (!value) {
        mc_parse_refuse(p, at, mc_last_status(), "shared %s: %s", name, mc_last_error());
    }
    print_rule(text, &q);
    return value;
}

mc_array *mc_parse_initial(struct parser *p, const char *name, const struct mc_type *t, char **rule)
{
    static const char *const numbers[] = { "True", "False", "inf", "nan", "pi" };
    struct mc_str text = { 0 };
    bool word = p->tok.kind == T_NAME;
    for (size_t i = 0; i < NELEM(numbers); i++) {
        word &= !mc_parse_word(p, numbers[i]);
    }
    mc_array *value = word ? by_rule(p, name, t, &text) : number(p, name, t, &text);
    *rule = mc_str_take(&text);
    if (!p->failed && (!value || !*rule)) {
        mc_parse_memory(p);
    }
    if (p->failed) {
        mc_array_unref(&value);
        mc_free(*rule);
        *rule = NULL;
    }
    return value;
}

/* t_rules.c: every row of every table of rules, held to its promise.
 *
 * Text rows: the left side is built over sampled letters until the row matches it, then both sides are
 * evaluated by the reference.  Rows with a C function bring formulas; the row must fire in them. */
#include "check.h"
#include "rewrite/rewrite.h"
#include <math.h>
#include <stdio.h>

/* ---- samples ---- */

enum cast_of { MATRIX, NUMBER, COLUMN, SOFTMAX, SIGMOID, SCATTER, THIN, CUBE, CUBE_NUMBER, NCAST, ROW };
enum { ROWS = 13, COLS = 13, MOST_LETTERS = 26 };
static const mc_dtype dtypes[] = { MC_FLOAT64, MC_FLOAT32, MC_INT32, MC_INT8, MC_UINT8, MC_BOOL };
static const double constants[] = { 2, -3, 0.5, 7, 1, 4, -2, 3 };

/* One letter's values: special ones so that every two letters meet in all pairs, or random ones. */
static double special(int k)
{
    static const double v[] = { 0,         -0.0, 1,      -1,     2.5,   -3.75, INFINITY,
                                -INFINITY, NAN,  1e-310, -1e-40, 65535, 1e30 };
    return v[k % ROWS];
}

struct sample {
    mc_graph *g;
    mc_node *input[MOST_LETTERS];      /* leaves behind the letters */
    mc_array *value[MOST_LETTERS];
    int n;
    mc_dtype dtype;
    bool specials, large;              /* large: any integers */
    double lo, hi;
};

static mc_array *fill(struct sample *s, int letter, int rank, const int64_t *dims)
{
    mc_array *a = mc_array_new(s->dtype, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        int row = (int)(i / COLS) % ROWS, col = (int)(i % COLS),
            pick = letter % 3 == 0   ? row
                   : letter % 3 == 1 ? col
                                     : row + col;
        double v = s->specials ? special(pick) : test_uniform(s->lo, s->hi);
        char *at = a->data + (size_t)i * mc_dtypes[s->dtype].size;
        if (mc_is_float(s->dtype)) {
            mc_store_f64(s->dtype, at, v);
        } else {
            int64_t i64 = (int64_t)test_random();
            mc_store_i64(s->dtype, at, s->large ? i64 : i64 % 5);
        }
    }
    return a;
}

static mc_node *leaf(struct sample *s, int letter, int rank, const int64_t *dims)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", s->n);
    s->value[s->n] = fill(s, letter, rank, dims);
    return s->input[s->n++] = mc_input_sized(s->g, name, s->dtype, rank, dims);
}

/* What a letter stands for in one try. */
static mc_node *letter_node(struct sample *s, int letter, enum cast_of c)
{
    int64_t dims[3] = { c == ROW ? 1 : ROWS, c == COLUMN ? 1 : COLS, COLS };
    char name = (char)('a' + letter);
    if (strchr("kmn", name)) {
        double v = constants[test_random() % (sizeof constants / sizeof *constants)];
        return mc_is_float(s->dtype) || v >= floor(v) ? mc_node_number(s->g, s->dtype, v) : NULL;
    }
    if (name == 'c') { /* a condition */
        mc_node *x = leaf(s, letter, 2, dims);
        return mc_op2("gt", x, mc_node_like(x, 0));
    }
    mc_node *x = leaf(s, letter, c == NUMBER ? 0 : c == CUBE ? 3 : 2, dims);
    if (c == SOFTMAX || c == SIGMOID) {
        return mc_is_float(s->dtype) ? mc_op1(c == SOFTMAX ? "softmax" : "sigmoid", x) : NULL;
    }
    if (c == SCATTER) {
        struct mc_bind b[] = { { "x", x, NULL } };
        return mc_expr(s->g, "inc_subtensor(zeros_like(x)[arange(13), arange(13) % 5], x[:, 0])", b, 1);
    }
    return x;
}

static void sample_free(struct sample *s)
{
    for (int i = 0; i < s->n; i++) {
        mc_array_unref(&s->value[i]);
    }
    mc_graph_free(s->g);
}

/* ---- one row ---- */

static bool same_bits(const mc_array *a, const mc_array *b)
{
    size_t size = mc_dtypes[a->dtype].size;
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        const char *p = a->data + (size_t)i * size, *q = b->data + (size_t)i * size;
        bool nan = mc_is_float(a->dtype) && isnan(mc_load_f64(a->dtype, p)) &&
                   isnan(mc_load_f64(b->dtype, q));
        if (!nan && memcmp(p, q, size) != 0) {
            return false;
        }
    }
    return true;
}

/* Where the left side is a finite number; true if at least a quarter of it is. */
static bool close_where_finite(const mc_array *a, const mc_array *b, bool *enough)
{
    double tol = a->dtype == MC_FLOAT64 ? 1e-9 : 2e-4;
    int64_t n = mc_array_size(a), seen = 0;
    size_t size = mc_dtypes[a->dtype].size;
    bool ok = true;
    for (int64_t i = 0; i < n; i++) {
        double x = mc_load_f64(a->dtype, a->data + (size_t)i * size),
               y = mc_load_f64(a->dtype, b->data + (size_t)i * size);
        if (isfinite(x)) {
            seen++;
            ok &= fabs(x - y) <= tol * (1 + fabs(x));
        }
    }
    *enough = 4 * seen >= n;
    return ok;
}

enum outcome { NO_MATCH, HOLDS, BROKEN };

/* Both sides over one sample. */
static enum outcome try_row(const struct mc_rule *row, struct sample *s, enum cast_of c, const char **why)
{
    enum cast_of x = c == SCATTER       ? SCATTER
                     : c == THIN        ? COLUMN
                     : c == CUBE_NUMBER ? CUBE
                     : c == CUBE        ? CUBE
                                        : MATRIX;
    enum cast_of y = c == SCATTER ? SOFTMAX : c == THIN ? MATRIX : c == CUBE_NUMBER ? NUMBER : c;
    enum cast_of other = c == THIN ? ROW : c == CUBE || c == CUBE_NUMBER ? CUBE : MATRIX;
    int64_t axis = 1, yes = 1;
    struct mc_attr a = { .kind = ATTR_AXES, .n = 1, .ints = &axis },
                   b = { .kind = ATTR_BOOL, .n = 1, .ints = &yes };
    struct mc_match m = { .g = s->g }, found = { .g = s->g };
    const struct mc_pattern *from = mc_pattern_parse(s->g, row->from, NULL),
                            *to = mc_pattern_parse(s->g, row->to, from);
    if (!from || !to) {
        *why = mc_error(s->g);
        return BROKEN;
    }
    m.attr[0] = &a;
    m.rank[0] = 2;
    m.attr[1] = &b;
    for (int i = 0; i < MOST_LETTERS; i++) {
        char letter[2] = { (char)('a' + i), 0 };
        const char *at = row->from;
        bool used = false;
        for (; (at = strstr(at, letter)); at++) { /* a letter by itself */
            bool left = at == row->from ||
                        !((at[-1] >= 'a' && at[-1] <= 'z') || at[-1] == '=' || at[-1] == '_');
            bool right = !((at[1] >= 'a' && at[1] <= 'z') || at[1] == '_' || at[1] == '(' ||
                           (at[1] >= '0' && at[1] <= '9'));
            used |= left && right;
        }
        if (used && !(m.bound[i] = letter_node(s, i, i == 'x' - 'a' ? x : i == 'y' - 'a' ? y : other))) {
            return NO_MATCH;
        }
    }
    mc_node *side[2] = { mc_pattern_build(from, &m), NULL };
    if (!side[0] || mc_is_error(side[0]) || !mc_pattern_may_match(from, side[0]) ||
        !mc_pattern_match(from, row, side[0], &found)) {
        return NO_MATCH;
    }
    side[1] = mc_pattern_build(to, &found);
    side[1] = side[1] && !mc_is_error(side[1]) ? mc_fit(side[0], side[1]) : NULL;
    if (!side[1]) {
        *why = s->g->status < 0 ? mc_error(s->g) : "the right side has another type";
        return row->promise == EXACT || mc_is_float(side[0]->type.dtype) ? BROKEN : NO_MATCH;
    }
    if (mc_is_float(side[0]->type.dtype) && !mc_is_float(s->dtype) && s->large) {
        return NO_MATCH;
    }
    mc_array *v[2] = { NULL, NULL };
    enum outcome r = BROKEN;
    bool real = mc_is_float(side[0]->type.dtype) || mc_is_float(side[0]->in[0]->type.dtype), enough = true;
    if (mc_eval(s->n, s->input, s->value, 2, side, v) < 0) {
        *why = mc_last_error();
    } else if (!real || (row->promise == EXACT && s->specials)) {
        r = same_bits(v[0], v[1]) ? HOLDS : BROKEN;
        *why = "the bits differ";
    } else {
        bool close = close_where_finite(v[0], v[1], &enough);
        r = !enough ? NO_MATCH : close ? HOLDS : BROKEN;
        *why = "the values differ";
    }
    mc_array_unref(&v[0]);
    mc_array_unref(&v[1]);
    return r;
}

/* Over dtypes, kinds of letters and kinds of values; counts tries that said something. */
static int check_row(const struct mc_rule *row, bool *holds, char *why, size_t room)
{
    int tries = 0;
    *holds = true;
    for (int round = 0; round < 6; round++) {
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            for (int c = 0; c < NCAST; c++) {
                struct sample s = { .g = mc_graph_new(), .dtype = dtypes[d], .specials = row->promise == EXACT && round % 3 == 0, .large = round % 3 == 0,
                                    .lo = round % 3 == 1 ? -2 : 0.1, .hi = round % 3 == 1 ? 2 : 0.9 };
                const char *says = "";
                enum outcome r = try_row(row, &s, (enum cast_of)c, &says);
                tries += r != NO_MATCH;
                if (r == BROKEN && *holds) {
                    *holds = false;
                    snprintf(why, room, "%s (%s)", says, mc_dtype_name(dtypes[d]));
                }
                sample_free(&s);
            }
        }
    }
    return tries;
}

TEST(rules_keep_their_promise)
{
    REQUIRE(mc_rule_count() > 100, "%d rules: %s", mc_rule_count(), mc_last_error());
    for (int i = 0; i < mc_rule_count(); i++) {
        const struct mc_rule *row = mc_rule_at(i);
        char why[256] = "";
        bool holds;
        if (row->from && row->to) {
            int tries = check_row(row, &holds, why, sizeof why);
            CHECK(holds, "%s => %s: %s", row->from, row->to, why);
            CHECK(tries > 0, "%s: no sample matches it", row->from);
        }
    }
}

/* What a slip of the pen would make of a row: its right side and one, or the opposite truth. */
TEST(rules_corrupted_are_caught)
{
    for (int i = 0; i < mc_rule_count(); i++) {
        struct mc_rule row = *mc_rule_at(i);
        char wrong[512], why[256];
        static const char *const slips[] = { "(%s) + 1", "~(%s)", "False%.0s" };
        bool caught = !row.from || !row.to;
        for (int k = 0; k < 3 && !caught; k++) {
            bool holds;
            snprintf(wrong, sizeof wrong, slips[k], mc_rule_at(i)->to);
            row.to = wrong;
            caught = check_row(&row, &holds, why, sizeof why) > 0 && !holds;
        }
        CHECK(caught, "%s => %s was taken for right", row.from, row.to);
    }
}

/* EXACT is more than close: rows that round are found out when they claim it. */
TEST(rules_that_round_are_not_exact)
{
    static const struct mc_rule liars[] = {
        { "x + 0", "x", EXACT }, { "x * 0", "0", EXACT }, { "x - x", "0", EXACT }, { "x / x", "1", EXACT },
        { "(x + y) - y", "x", EXACT }, { "log(1 + x)", "log1p(x)", EXACT }, { "x ** 0.5", "sqrt(x)", EXACT },
        { "-(x - y)", "y - x", EXACT }, { "x == x", "1", EXACT }, { "exp(log(x))", "x", EXACT }, { "abs(sqr(x))", "sqr(x)", EXACT },
    };
    for (size_t i = 0; i < sizeof liars / sizeof *liars; i++) {
        bool holds;
        char why[256];
        int tries = check_row(&liars[i], &holds, why, sizeof why);
        CHECK(tries > 0 && !holds, "%s => %s passed as EXACT", liars[i].from, liars[i].to);
    }
}

/* ---- rows in C ---- */

/* Everything but one rule, as a list to exclude. */
static char *all_but(int rule)
{
    struct mc_str s = { 0 };
    for (int i = 0; i < mc_rule_count(); i++) {
        if (i != rule) {
            mc_str_addf(&s, "%s:", mc_rule_name(mc_rule_at(i)));
        }
    }
    return mc_str_take(&s);
}

/* The formula before and after rewriting, alone and with all rules. */
static void check_sample(int rule, const char *text)
{
    const struct mc_rule *row = mc_rule_at(rule);
    int64_t dims[2] = { 4, 5 };
    unsigned *fired = mc_calloc((size_t)mc_rule_count(), sizeof *fired, "test");
    char *others = all_but(rule);
    bool any = false;
    for (int alone = 0; alone < 2; alone++) {
        struct sample s = { .g = mc_graph_new(), .dtype = MC_FLOAT64, .lo = 0.1, .hi = 0.9 };
        s.input[0] = mc_input(s.g, "x", MC_FLOAT64, 2);
        s.input[1] = mc_input(s.g, "y", MC_FLOAT64, 2);
        s.value[0] = fill(&s, 0, 2, dims);
        s.value[1] = fill(&s, 1, 2, dims);
        s.n = 2;
        mc_node *side[2] = { mc_formula(s.g, text), NULL };
        side[1] = side[0];
        mc_array *v[2] = { NULL, NULL };
        struct mc_rewrite o = { .fired = fired,
                                .excluding = alone ? others : "",
                                .including = mc_rule_name(row) };
        if (CHECK(!mc_is_error(side[0]), "%s: %s", text, mc_error(s.g)) &&
            CHECK(mc_rewrite(s.g, 1, &side[1], &o) == MC_OK, "%s: %s", text, mc_last_error()) &&
            CHECK(mc_eval(2, s.input, s.value, 2, side, v) == MC_OK, "%s: %s", text, mc_last_error())) {
            bool real = mc_is_float(v[0]->dtype), enough;
            bool exact = alone && row->promise == EXACT;
            CHECK(!real || exact ? same_bits(v[0], v[1]) : close_where_finite(v[0], v[1], &enough),
                  "%s: %s changes the value of %s", text, mc_rule_name(row), alone ? "it alone" : "it");
        }
        any |= fired[rule] > 0;
        mc_array_unref(&v[0]);
        mc_array_unref(&v[1]);
        sample_free(&s);
    }
    CHECK(any, "%s: %s did not fire", text, mc_rule_name(row));
    mc_free(fired);
    mc_text_free(others);
}

TEST(rules_in_c_fire_and_keep_values)
{
    for (int i = 0; i < mc_rule_count(); i++) {
        const struct mc_rule *row = mc_rule_at(i);
        if (!row->make) {
            continue;
        }
        CHECK(row->sample != NULL, "%s has no sample", mc_rule_name(row));
        for (const char *at = row->sample; at && *at;) {
            char text[512];
            size_t n = strcspn(at, ";");
            snprintf(text, sizeof text, "%.*s", (int)n, at);
            check_sample(i, text + strspn(text, " "));
            at += n + (at[n] == ';');
        }
    }
}

TEST(rules_have_names_of_their_own)
{
    for (int i = 0; i < mc_rule_count(); i++) {
        const char *name = mc_rule_name(mc_rule_at(i));
        CHECK(!strchr(name, ':'), "%s: a name may not hold ':'", name);
        CHECK(mc_rule_at(i)->make == NULL || mc_rule_at(i)->name, "%s has no name", name);
    }
}

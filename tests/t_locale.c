/* t_locale.c: a program that has set a locale, as every program with a desktop's windows does, reads and
 * writes the same text.
 *
 * Invariant: the locales are made by localedef in the test's own folder, so that no machine needs them
 * installed. */
#include "own_folder.h"
#include "own_cache.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include <locale.h>
#include <monochord_nn.h>

/* Decimal commas and points between thousands; letters whose case is not that of ASCII. */
static const char *const locales[] = { "de_DE", "tr_TR" };

/* Makes the locale and takes it on; false: this machine cannot, and says why. */
static bool enter(const char *name, const char **why)
{
    char command[512], whole[64];
    snprintf(whole, sizeof whole, "%s.UTF-8", name);
    snprintf(command, sizeof command, "localedef --no-archive -i %s -f UTF-8 '%s' >'%s' 2>&1", name,
             in_folder(whole), in_folder("said"));
    const bool made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    *why = !made ? "no localedef, or no descriptions of locales"
                 : "the C library does not take the locale that localedef made";
    const bool taken = made &&
                       setlocale(LC_ALL, whole); /* musl takes every name and writes points all the same */
    snprintf(whole, sizeof whole, "%.1f", 0.5);
    return taken && strcmp(whole, "0,5") == 0;
}

#define ENTER(name)                                                                                \
    do {                                                                                           \
        const char *why_;                                                                          \
        if (!enter(name, &why_)) {                                                                 \
            drop_folder();                                                                         \
            SKIP("%s", why_);                                                                      \
        }                                                                                          \
    } while (0)

/* A decimal comma, "0,5", which no text here has for another reason. */
static bool has_comma(const char *s)
{
    for (const char *c = strchr(s, ','); c && c > s; c = strchr(c + 1, ',')) {
        if (c[-1] >= '0' && c[-1] <= '9' && c[1] >= '0' && c[1] <= '9') {
            return true;
        }
    }
    return false;
}

TEST(formulas_are_read_and_computed_in_every_locale)
{
    for (size_t i = 0; i < NELEM(locales); i++) {
        ENTER(locales[i]);
        mc_flag_set("cache", in_folder("cache")); /* the text of a kernel is compiled anew */
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float64[?]");
        mc_node *y = mc_formula(g, "y = grad_clip(x, -0.75, 1.5) * 0.5 + 2.5e-3 + cast(0.25f32, float64)");
        CHECK(!mc_is_error(y), "%s: %s", locales[i], mc_error(g));
        CHECK(mc_formulaf(g, "x * %g + %.3f", 0.5, 1e3) == mc_formula(g, "x * 0.5 + 1000.0"), "%s: %s",
              locales[i], mc_error(g));
        mc_node *b = mc_formulaf(g, "shared b float64 = %g; b", 0.25);
        char *declared = mc_graph_text(g, 1, &b);
        CHECK(declared && strcmp(declared, "shared b float64 = 0.25\n") == 0, "%s: %s", locales[i], declared);
        mc_text_free(declared);
        char *text = mc_node_text(y), *again = text ? mc_node_text(mc_formula(g, text)) : NULL;
        CHECK(text && again && strstr(text, "-0.75") && strstr(text, "0.0025") && strcmp(text, again) == 0,
              "%s: %s", locales[i], text);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "sum(y)", .profile = 1 });
        double got = 0;
        mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(2), (double[]){ 1.5, -3 });
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&got)) == MC_OK, "%s: %s", locales[i], mc_last_error());
        CHECK(got > -0.2450001 && got < -0.2449999, "%s: %.17g, not -0.245", locales[i], got);
        CHECK(f && strstr(mc_function_source(f), "0.2525") && !has_comma(mc_function_graph_text(f)),
              "%s: the kernel is\n%s", locales[i], f ? mc_function_source(f) : "");
        char *shown = mc_array_text(x);
        CHECK(shown && strcmp(shown, "[ 1.5 -3. ]") == 0, "%s: %s", locales[i], shown);
        char *page = NULL;
        size_t n;
        FILE *to = open_memstream(&page, &n);
        CHECK(f && mc_function_profile(f, to) == MC_OK && mc_graph_svg(g, 1, &y, to) == MC_OK, "%s",
              mc_last_error());
        fclose(to);
        CHECK(!has_comma(page), "%s: a comma in\n%s", locales[i], page);
        free(page);
        mc_text_free(shown);
        mc_text_free(text);
        mc_text_free(again);
        mc_array_unref(&x);
        mc_function_free(f);
        mc_graph_free(g);
        char after[8];
        snprintf(after, sizeof after, "%.1f", 0.5);
        CHECK(strcmp(after, "0,5") == 0, "the program's own numbers are another's now: %s", after);
        setlocale(LC_ALL, "C");
    }
    drop_folder();
}

TEST(wisdom_is_kept_in_every_locale)
{
    char path[256], solver[64], *text = NULL;
    double seconds = 0;
    size_t n;
    ENTER("de_DE");
    wisdom_path(path);
    mc_wisdom_put("gemm f32 nn m1n1k1", "packed", 1.25e-6);
    CHECK(mc_file_read(path, &text, &n) == MC_OK && strstr(text, " packed 1.2500e-06\n"), "%s%s",
          mc_last_error(), text);
    setlocale(LC_ALL, "C"); /* as another process reads it */
    mc_flag_set("cache", "/tmp/monochord-elsewhere");
    mc_wisdom_find("x", solver, &seconds);
    own_cache();
    CHECK(mc_wisdom_find("gemm f32 nn m1n1k1", solver, &seconds) && seconds == 1.25e-6, "lost, or %g",
          seconds);
    setlocale(LC_ALL, "de_DE.UTF-8");
    CHECK(mc_wisdom_import(path) == MC_OK, "%s", mc_last_error());
    mc_free(text);
    mc_wisdom_clear();
    gone();
    drop_folder();
}

TEST(models_are_read_in_every_locale)
{
    for (size_t i = 0; i < NELEM(locales); i++) {
        ENTER(locales[i]);
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_status s = mc_net_read(
            net, "m",
            "input 20\ndense 5 leaky_rectify(0.25) W=normal(0.125)\ndropout 0.5\ndense 3 softmax\n"
            "penalty l2 0.001\nrule adam rate=0.002 max_norm=2.5\n");
        CHECK(s == MC_OK, "%s: %s", locales[i], mc_error(g));
        mc_node *cost = s == MC_OK ? mc_net_cost(net, MC_TRAINING) : NULL;
        mc_updates u = cost ? mc_net_updates(net, cost, NULL) : (mc_updates){ 0 };
        CHECK(u.n > 0 && mc_graph_status(g) == MC_OK, "%s: %s", locales[i], mc_error(g));
        char *text = u.n ? mc_graph_text(g, u.n, u.to) : NULL;
        CHECK(text && strstr(text, "0.001") && strstr(text, "2.5"), "%s: %s", locales[i], text);
        mc_text_free(text);
        mc_net_free(net);
        mc_graph_free(g);
        setlocale(LC_ALL, "C");
    }
    drop_folder();
}

/* What fails to be true of numbers as text, over their range; the locale's own functions are no witness. */
TEST(numbers_are_text_and_back_in_every_locale)
{
    static const struct {
        const char *text;
        double value;
    } rows[] = { { "0.1", 0.1 },           { "1e-5", 1e-5 },
                 { "-2.5E3", -2500 },      { "1.7976931348623157e308", 1.7976931348623157e308 },
                 { "4.9e-324", 4.9e-324 }, { "7", 7 } };
    ENTER("de_DE");
    for (size_t i = 0; i < NELEM(rows); i++) {
        char *end, text[40];
        CHECK(mc_strtod(rows[i].text, &end) == rows[i].value && !*end, "%s left '%s'", rows[i].text, end);
        CHECK(mc_strtof(rows[i].text, &end) == (float)rows[i].value && !*end, "%s left '%s'", rows[i].text,
              end);
        mc_snprintf(text, sizeof text, "%.17g", rows[i].value);
        CHECK(!strchr(text, ',') && mc_strtod(text, NULL) == rows[i].value, "%s", text);
    }
    char *end;
    CHECK(mc_strtod("0,5", &end) == 0 && strcmp(end, ",5") == 0, "a comma is read as a point");
    mc_fail(MC_ECHECK, "%.9g is not %.2f", 0.5, 1.25);
    CHECK(strcmp(mc_last_error(), "0.5 is not 1.25") == 0, "%s", mc_last_error());
    drop_folder();
}

/* t_profile.c: what a function says of itself: the tables of its times, the page about it. */
#include "check.h"
#include "exec/function.h"
#include "inspect/profile.h"
#include "markup.h"
#include <math.h>
#include <stdlib.h>

static mc_function *trained(mc_graph **g, int profile, int calls)
{
    *g = mc_graph_new();
    mc_input(*g, "x", MC_FLOAT32, 2);
    mc_input(*g, "t", MC_INT32, 1);
    mc_shared_zeros(*g, "W", MC_FLOAT32, MC_SHAPE(20, 5));
    mc_formula(*g, "h = dot(x, W); cost = mean(crossentropy_softmax_1hot(h, t))");
    mc_function *f = mc_compile(*g, &(mc_spec){ .name = "train <1>",
                                                .inputs = "x, t",
                                                .outputs = "cost, argmax(h, axis=1)",
                                                .updates = "W = W - 0.1 * grad(cost, W)",
                                                .profile = profile });
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(30, 20)), *t = mc_array_new(MC_INT32, MC_SHAPE(30));
    double cost;
    for (int i = 0; i < calls && f; i++) {
        CHECK(mc_call(f, MC_IN(x, t), MC_OUT(&cost)) == MC_OK, "%s", mc_last_error());
    }
    mc_array_unref(&x);
    mc_array_unref(&t);
    return f;
}

/* The first number of each line of the table under `head`, added up; lines are counted. */
static double column(const char *text, const char *head, int *lines)
{
    double sum = 0, v;
    const char *s = strstr(text, head);
    *lines = 0;
    for (s = s ? strchr(s, '\n') : NULL; s && s[1] && s[1] != '\n'; s = strchr(s + 1, '\n')) {
        char percent;
        if (sscanf(s + 1, "%lf%c", &v, &percent) == 2 && percent == '%') {
            sum += v;
            ++*lines;
        }
    }
    return sum;
}

TEST(tables_add_up)
{
    mc_graph *g;
    mc_function *f = trained(&g, 1, 7);
    REQUIRE(f, "%s", mc_error(g));
    mc_status s;
    char *text = MARKUP_WRITTEN(s, to, mc_function_profile(f, to));
    int classes, steps;
    CHECK(s == MC_OK, "%s", mc_last_error());
    CHECK(strstr(text, "Function: train <1>") && strstr(text, "Time in 7 calls"), "%s", text);
    double by_class = column(text, "<Class name>", &classes), by_step = column(text, "<Step>", &steps);
    CHECK(fabs(by_class - 100) < 0.06 * classes && fabs(by_step - 100) < 0.06 * steps, "%g and %g", by_class,
          by_step);
    int worked = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        mc_step_info one = mc_function_step(f, i);
        worked += one.calls && strcmp(one.kind, "size") != 0;
        CHECK(strcmp(one.kind, "kernel") != 0 || one.calls == 7, "step %d ran %lld times", i,
              (long long)one.calls);
    }
    mc_compile_info info = mc_function_compile_info(f);
    CHECK(info.plan_seconds > 0, "%g s of planning", info.plan_seconds);
    CHECK(info.nodes_before > 0 && info.nodes_after > 0, "%zu nodes, %zu after", info.nodes_before,
          info.nodes_after);
    CHECK(steps == worked && classes > 1 && classes <= steps, "%d lines for %d steps, %d classes", steps,
          worked, classes);
    CHECK(strstr(text, "  cost: float32\n") && strstr(text, "  new W: float32[20, 5]\n"),
          "results go by their names:\n%s", text);
    CHECK(!strstr(text, "result "), "a name or a formula stands for each:\n%s", text);
    CHECK(strstr(text, "gemm "), "%s", text);
    free(text);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(lives_lie_in_the_arena_and_apart)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    mc_graph *g;
    mc_function *f = trained(&g, 1, 1);
    REQUIRE(f, "%s", mc_error(g));
    struct mc_profile p;
    int works = 0;
    REQUIRE(mc_profile_make(&p, f) == MC_OK, "%s", mc_last_error());
    CHECK(p.life.n > 1 && p.arena > 0 && p.arena <= p.separate, "%zu values, %zu of %zu bytes", p.life.n,
          p.arena, p.separate);
    for (size_t i = 0; i < p.life.n; i++) {
        const struct mc_life *a = &p.life.at[i];
        CHECK(a->offset >= 0 && (size_t)a->offset + a->bytes <= p.arena && a->first <= a->last, "value %d",
              a->value);
        CHECK(!i || p.life.at[i - 1].bytes >= a->bytes, "the largest first");
        for (size_t k = 0; k < i; k++) {
            const struct mc_life *b = &p.life.at[k];
            bool takes_over = a->offset == b->offset && (a->first == b->last || b->first == a->last);
            bool apart = a->first > b->last || b->first > a->last ||
                         a->offset >= b->offset + (int64_t)b->bytes ||
                         b->offset >= a->offset + (int64_t)a->bytes;
            CHECK(apart || takes_over, "values %d and %d meet", a->value, b->value);
        }
        for (int step = a->first; step <= a->last; step++) {
            const struct mc_step_plan *w = &f->plans->step[step];
            works += w->workspace > 0;
            CHECK(!w->workspace || (int64_t)(w->workspace_at + w->workspace) <= a->offset ||
                      (int64_t)w->workspace_at >= a->offset + (int64_t)a->bytes,
                  "step %d works upon value %d", step, a->value);
            CHECK(w->workspace_at + w->workspace <= f->plans->memory, "step %d works outside", step);
        }
    }
    CHECK(works > 0 && f->plans->memory >= p.arena && f->plans->memory <= p.arena + p.scratch,
          "%d, %zu bytes in all", works, f->plans->memory);
    mc_profile_free(&p);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(profile_without_times_says_so)
{
    mc_graph *g;
    mc_function *f = trained(&g, 0, 0);
    REQUIRE(f, "%s", mc_error(g));
    mc_status s;
    char *text = MARKUP_WRITTEN(s, to, mc_function_profile(f, to));
    CHECK(s == MC_OK && strstr(text, "not timed") && strstr(text, "was not called"), "%s", text);
    free(text);
    CHECK(mc_function_profile(NULL, stderr) == MC_EARG && mc_function_report(NULL, stderr) == MC_EARG,
          "no function");
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(report_is_one_good_page)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    for (int profile = 0; profile < 2; profile++) {
        mc_graph *g;
        mc_function *f = trained(&g, profile, 3 * profile);
        REQUIRE(f, "%s", mc_error(g));
        mc_status s;
        struct markup m;
        char *page = MARKUP_WRITTEN(s, to,
                                    mc_function_report_with(f, to, "A & B", "<p id=\"mine\">extra</p>"));
        CHECK(s == MC_OK && markup_good(&m, page, true), "%s %s", mc_last_error(), m.why);
        CHECK(strstr(page, "<title>A &amp; B</title>") && strstr(page, "<p id=\"mine\">extra</p>"),
              "title and extra");
        CHECK(strstr(page, "new W") && strstr(page, ">cost<") && strstr(page, "result 2"),
              "results are named");
        CHECK(!strstr(page, "http://") ||
                  markup_count(page, "http://") == markup_count(page, "http://www.w3.org/2000/svg"),
              "nothing is fetched");
        for (int i = 0; i < mc_function_nsteps(f); i++) {
            mc_step_info info = mc_function_step(f, i);
            char head[64];
            snprintf(head, sizeof head, "void %s(", info.solver);
            bool kernel = strcmp(info.kind, "kernel") == 0 && *mc_function_source(f);
            CHECK(!kernel || markup_count(page, head) == 2,
                  "the source of %s stands there twice: its own and the whole", info.solver);
        }
        CHECK(!profile || markup_count(page, "class=\"fill\"") > 1, "bars");
        CHECK(!profile || strstr(page, "<h2>Memory</h2>"), "memory");
        free(page);
        page = MARKUP_WRITTEN(s, to, mc_function_report(f, to));
        CHECK(s == MC_OK && strstr(page, "<title>train &lt;1&gt;</title>"), "named for the function");
        free(page);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(reports_without_memory)
{
    mc_graph *g;
    mc_function *f = trained(&g, 1, 2);
    REQUIRE(f, "%s", mc_error(g));
    FILE *to = fopen("/dev/null", "w");
    ALLOC_FAIL_LOOP {
        mc_status s = mc_function_profile(f, to);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s", mc_last_error());
    }
    ALLOC_FAIL_LOOP {
        mc_status s = mc_function_report(f, to);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s", mc_last_error());
    }
    fclose(to);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Brackets and quotes close, and nothing follows the last. */
static bool whole_json(const char *s)
{
    char open[16];
    int depth = 0;
    do {
        if (*s == '"') {
            for (s++; *s && *s != '"'; s += *s == '\\' && s[1] ? 2 : 1) {
            }
        } else if (*s == '[' || *s == '{') {
            open[depth++] = *s == '[' ? ']' : '}';
        } else if ((*s == ']' || *s == '}') && (!depth || open[--depth] != *s)) {
            return false;
        }
    } while (*s && *++s && depth && depth < 16);
    return !depth && !*s;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *s = text; (s = strstr(s, word)); s++) {
        n++;
    }
    return n;
}

TEST(calls_leave_a_trace)
{
    char folder[] = "/tmp/mc_trace_XXXXXX", name[64], text[20000];
    REQUIRE(mkdtemp(folder), "no folder");
    snprintf(name, sizeof name, "%s/trace.json", folder);
    mc_graph *g;
    CHECK(mc_flag_set("trace", "/nowhere/at all") == MC_OK, "%s", mc_last_error());
    REQUIRE(!trained(&g, 0, 0) && mc_last_status() == MC_EFILE &&
                strstr(mc_last_error(), "trace: cannot write '/nowhere/at all'"),
            "%s", mc_last_error());
    mc_graph_free(g);
    CHECK(mc_flag_set("trace", name) == MC_OK, "%s", mc_last_error());
    mc_function *f = trained(&g, 0, 3);
    CHECK(mc_flag_set("trace", "") == MC_OK, "%s", mc_last_error());
    REQUIRE(f, "%s", mc_error(g));
    FILE *from = fopen(name, "r");
    REQUIRE(from, "no trace");
    size_t n = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    remove(name);
    remove(folder);
    text[n] = '\0';
    int steps = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        const char *kind = mc_function_step(f, i).kind;
        steps += strcmp(kind, "view") != 0 && strcmp(kind, "size") != 0;
    }
    CHECK(whole_json(text), "%s", text);
    CHECK(count_of(text, "\"cat\":\"call\"") == 3 && count_of(text, "\"name\":\"train \\u003c1>\"") == 3,
          "%s", text);
    CHECK(steps > 2 && count_of(text, "\"cat\":\"step\"") == 3 * steps, "%d steps in %s", steps, text);
    for (int i = 0; i < mc_function_nsteps(f); i++) { /* by the names that tables and reports have */
        const char *kind = mc_function_step(f, i).kind;
        char event[200];
        snprintf(event, sizeof event, "\"name\":\"%s\"", mc_function_step(f, i).name);
        bool told = strcmp(kind, "view") != 0 && strcmp(kind, "size") != 0;
        CHECK(!told || count_of(text, event) >= 3, "%s is not in %s", event, text);
    }
    CHECK(strstr(text, "update of W"), "%s", text);
    mc_function_free(f);
    mc_graph_free(g);
}

/* t_loop_inspect.c: loops in profiles, traces, reports, pictures and printed graphs; the checking modes in
 * their bodies. */
#include "check.h"
#include "device/device.h"
#include "exec/function.h"
#include "graph/picture.h"
#include "inspect/profile.h"
#include "markup.h"
#include "own_folder.h"
#include <math.h>
#include <stdlib.h>

enum { STEPS = 7, CALLS = 3 };

static mc_function *compiled(mc_graph **g, const char *formula, const char *outputs, int profile,
                             const char *mode)
{
    *g = mc_graph_new();
    mc_input(*g, "xs", MC_FLOAT32, 2);
    mc_input(*g, "h0", MC_FLOAT32, 1);
    mc_formula(*g, formula);
    return mc_compile(*g, &(mc_spec){ .name = "looped",
                                      .inputs = "xs, h0",
                                      .outputs = outputs,
                                      .profile = profile,
                                      .mode = mode,
                                      .on_unused = "ignore" });
}

static mc_status called(mc_function *f, int64_t steps, double x, double h, int calls)
{
    mc_array *xs = mc_array_new(MC_FLOAT32, MC_SHAPE(steps, 300)),
             *h0 = mc_array_new(MC_FLOAT32, MC_SHAPE(300));
    mc_status s = MC_OK;
    for (int i = 0; i < 300 * steps; i++) {
        ((float *)(void *)xs->data)[i] = (float)x;
    }
    for (int i = 0; i < 300; i++) {
        ((float *)(void *)h0->data)[i] = (float)h;
    }
    for (int i = 0; i < calls && s == MC_OK; i++) {
        s = mc_call(f, MC_IN(xs, h0), MC_NONE);
    }
    mc_array_unref(&xs);
    mc_array_unref(&h0);
    return s;
}

/* The first step that is a loop; -1: none. */
static int loop_of(const mc_function *f)
{
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        if (mc_function_body(f, i)) {
            return i;
        }
    }
    return -1;
}

static int times(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; at && (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

static const char two_steps[] = "hs = scan(x in xs, h from h0: h = cumsum(tanh(x + 0.5 * h)) / 300)";
static const char nested[] = "hs = scan(x in xs, h from h0: "
                             "h = scan(steps=5, k from h: k = tanh(k + x); yield last k))";

TEST(profile_has_the_steps_of_bodies)
{
    mc_graph *g;
    mc_function *f = compiled(&g, two_steps, "hs", 1, NULL);
    REQUIRE(f && called(f, STEPS, 0.5, 0.25, CALLS) == MC_OK, "%s", mc_last_error());
    const int at = loop_of(f);
    if (at >= 0) { /* else the device computes loops by the reference */
        const mc_function *body = mc_function_body(f, at);
        mc_step_info loop = mc_function_step(f, at);
        int ran = 0;
        double sum = 0;
        CHECK(strcmp(loop.kind, "loop") == 0 && loop.calls == CALLS && loop.seconds > 0, "%s, %lld calls",
              loop.kind, (long long)loop.calls);
        for (int i = 0; i < mc_function_nsteps(body); i++) {
            mc_step_info one = mc_function_step(body, i);
            CHECK(!one.calls || one.calls == STEPS * CALLS, "step %d ran %lld times", i,
                  (long long)one.calls);
            ran += one.calls > 0;
            sum += one.seconds;
        }
        CHECK(ran >= 2 && sum > 0, "%d steps took %g s", ran, sum);
        CHECK(f->code->device->space || sum <= loop.seconds, "the body took %g s of %g s", sum, loop.seconds);
        struct mc_profile p;
        REQUIRE(mc_profile_make(&p, f) == MC_OK, "%s", mc_last_error());
        double top = 0, own = 0;
        for (size_t i = 0; i < p.row.n; i++) {
            top += p.row.at[i].depth ? 0 : p.row.at[i].seconds;
            own += p.row.at[i].own;
            CHECK(p.row.at[i].depth == (p.row.at[i].f == body), "row %zu", i);
            CHECK(!p.row.at[i].depth || (i && (p.row.at[i - 1].step == at || p.row.at[i - 1].depth)),
                  "row %zu follows its loop", i);
        }
        CHECK(fabs(top - p.seconds) <= 1e-12 + 1e-9 * top, "%g of %g s", top, p.seconds);
        CHECK(f->code->device->space || fabs(own - p.seconds) <= 1e-12 + 1e-9 * top, "%g of %g s", own,
              p.seconds);
        CHECK(p.loops >= 2 * 300 * sizeof(float) && mc_function_memory(f) >= p.loops + p.arena,
              "%zu bytes of the loop, %zu in all", p.loops, mc_function_memory(f));
        mc_profile_free(&p);
        mc_status s;
        char *text = MARKUP_WRITTEN(s, to, mc_function_profile(f, to));
        CHECK(s == MC_OK && strstr(text, "\n |   ") && strstr(text, "  the loop itself\n") &&
                  strstr(text, "loop: scan(") && strstr(text, "Values and states of loops: "),
              "%s", text);
        free(text);
    }
    CHECK(!mc_function_body(f, -1) && !mc_function_body(f, mc_function_nsteps(f)) &&
              !mc_function_body(NULL, 0),
          "there is no such step");
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(bodies_are_timed_only_when_asked)
{
    mc_graph *g;
    mc_function *f = compiled(&g, two_steps, "hs", 0, NULL);
    REQUIRE(f && called(f, STEPS, 0.5, 0.25, 1) == MC_OK, "%s", mc_last_error());
    const mc_function *body = mc_function_body(f, loop_of(f));
    for (int i = 0; body && i < mc_function_nsteps(body); i++) {
        mc_step_info one = mc_function_step(body, i);
        CHECK(!one.calls && !(one.seconds > 0), "step %d has a time", i);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(loops_in_loops_are_profiled)
{
    mc_graph *g;
    mc_function *f = compiled(&g, nested, "hs", 1, NULL);
    REQUIRE(f && called(f, STEPS, 0.5, 0.25, CALLS) == MC_OK, "%s", mc_last_error());
    const mc_function *body = mc_function_body(f, loop_of(f)),
                      *inner = body ? mc_function_body(body, loop_of(body)) : NULL;
    if (inner) {
        int64_t most = 0;
        for (int i = 0; i < mc_function_nsteps(inner); i++) {
            most = MC_MAX(most, mc_function_step(inner, i).calls);
        }
        CHECK(most == 5 * STEPS * CALLS, "%lld runs", (long long)most);
        struct mc_profile p;
        REQUIRE(mc_profile_make(&p, f) == MC_OK, "%s", mc_last_error());
        CHECK(mc_profile_row(&p, inner, 0) && mc_profile_row(&p, inner, 0)->depth == 2, "no row");
        mc_profile_free(&p);
        mc_status s;
        char *text = MARKUP_WRITTEN(s, to, mc_function_profile(f, to));
        CHECK(s == MC_OK && strstr(text, "\n | |   "), "%s", text);
        free(text);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(report_shows_the_body)
{
    for (int profile = 0; profile < 2; profile++) {
        mc_graph *g;
        mc_function *f = compiled(&g, nested, "hs", profile, NULL);
        REQUIRE(f && called(f, STEPS, 0.5, 0.25, profile) == MC_OK, "%s", mc_last_error());
        mc_status s;
        struct markup m;
        char *page = MARKUP_WRITTEN(s, to, mc_function_report(f, to));
        CHECK(s == MC_OK && markup_good(&m, page, true), "%s %s", mc_last_error(), m.why);
        CHECK(loop_of(f) < 0 || times(page, "class=\"body\"") == 2, "a list of steps for each loop");
        CHECK(times(page, " loop\" x=") == 2 && strstr(page, "element of xs") &&
                  strstr(page, "state, from h0") && strstr(page, "next k") && strstr(page, "next h"),
              "two loops in the picture");
        free(page);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* ---- pictures and texts ---- */

TEST(pictures_have_the_body_in_a_box)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "xs", MC_FLOAT32, 2);
    mc_input(g, "h0", MC_FLOAT32, 1);
    mc_node *hs = mc_formula(g, nested);
    REQUIRE(!mc_is_error(hs), "%s", mc_error(g));
    struct mc_picture p;
    REQUIRE(mc_picture_make(&p, 1, &hs, NULL) == MC_OK, "%s", mc_last_error());
    const struct mc_picture *body = NULL, *inner = NULL;
    for (size_t i = 0; i < p.node.n; i++) {
        body = p.node.at[i].body ? p.node.at[i].body : body;
    }
    for (size_t i = 0; body && i < body->node.n; i++) {
        inner = body->node.at[i].body ? body->node.at[i].body : inner;
    }
    CHECK(body && inner, "the loop and the loop in it");
    for (size_t i = 0; inner && i < inner->node.n; i++) {
        CHECK(inner->node.at[i].node->op->form != FORM_LOOP && !inner->node.at[i].body, "nothing is below");
    }
    mc_picture_free(&p);
    mc_status s;
    struct markup m;
    char *svg = MARKUP_WRITTEN(s, to, mc_graph_svg(g, 1, &hs, to));
    CHECK(s == MC_OK && markup_good(&m, svg, false), "%s %s", mc_last_error(), m.why);
    CHECK(strstr(svg, ">tanh</text>") && strstr(svg, "element of xs"), "%s", svg);
    free(svg);
    char *dot = MARKUP_WRITTEN(s, to, mc_graph_dot(g, 1, &hs, to));
    CHECK(s == MC_OK && times(dot, "subgraph cluster_n") == 2, "%s", dot);
    int open = 0, close = 0;
    for (const char *c = dot; *c; c++) {
        open += *c == '{';
        close += *c == '}';
    }
    CHECK(open == 3 && close == 3, "%s", dot);
    free(dot);
    mc_graph_free(g);
}

TEST(bodies_are_indented_and_read_back)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "xs", MC_FLOAT32, 2);
    mc_input(g, "h0", MC_FLOAT32, 1);
    mc_node *hs = mc_formula(g, nested);
    char *text = mc_graph_text(g, 1, &hs), said[4000] = "";
    CHECK(strstr(text, ":\n    ") && strstr(text, ":\n        "), "%s", text);
    mc_graph *h = mc_graph_new();
    snprintf(said, sizeof said, "%s\nitem(t1, 1)", text);
    mc_node *again = mc_formula(h, said);
    if (CHECK(!mc_is_error(again), "%s\n%s", mc_error(h), said)) {
        char *back = mc_graph_text(h, 1, &again);
        const char *one = strstr(text, "scan("), *two = strstr(back, "scan("); /* behind the loop's name */
        CHECK(one && two && strcmp(one, two) == 0, "%s\n%s", text, back);
        mc_text_free(back);
    }
    mc_text_free(text);
    mc_graph_free(h);
    mc_graph_free(g);
}

/* ---- modes that check ---- */

/* h counts down from 20 in steps of 1, so that the root is of a negative number first at t = 20, where h is
 * -1 after the step. */
TEST(nanguard_names_the_step_of_the_body_and_the_iteration)
{
    mc_graph *g;
    mc_function *f = compiled(&g, "ys = scan(x in xs, h from h0: h = h - x; y = cumsum(sqrt(h)); yield y)",
                              "ys", 0, "NANGUARD");
    REQUIRE(f, "%s", mc_error(g));
    CHECK(called(f, 20, 1, 20, 1) == MC_OK, "%s", mc_last_error());
    CHECK(called(f, 30, 1, 20, 1) == MC_ECHECK && strstr(mc_last_error(), "NANGUARD: step ") &&
              strstr(mc_last_error(), "makes NaN at element "),
          "%s", mc_last_error());
    if (loop_of(f) >= 0) {
        CHECK(strstr(mc_last_error(), "looped: t = 20: NANGUARD: step ") &&
                  strstr(mc_last_error(), " of the body makes NaN at element 0: ") &&
                  strstr(mc_last_error(), "sqrt("),
              "%s", mc_last_error());
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(debug_names_a_wrong_rule_in_a_body)
{
    for (int debug = 0; debug < 2; debug++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "xs", MC_FLOAT32, 2);
        mc_input(g, "h0", MC_FLOAT32, 1);
        REQUIRE(mc_rewrite_add(g, "tanh(x)", "sinh(x) * 1.5", "wrong") == MC_OK, "%s", mc_last_error());
        mc_formula(g, "hs = scan(x in xs, h from h0: h = tanh(x + h))");
        mc_function *f = mc_compile(g, &(mc_spec){ .name = "looped",
                                                   .inputs = "xs, h0",
                                                   .outputs = "hs",
                                                   .mode = debug ? "DEBUG" : "FAST_RUN" });
        REQUIRE(f, "%s", mc_error(g));
        const mc_status s = called(f, STEPS, 0.5, 0.25, 1);
        if (loop_of(f) >= 0) {
            CHECK(s == (debug ? MC_ECHECK : MC_OK), "%s", mc_last_error());
            CHECK(!debug ||
                      (strstr(mc_last_error(), "t = 0: ") && strstr(mc_last_error(), "DEBUG: the rule") &&
                       strstr(mc_last_error(), "tanh(x)")),
                  "%s", mc_last_error());
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

static mc_kernel_fn *right;

/* The kernel, but for the first element of its result, which is its last operand. */
static void wrong(char *const *p, const int64_t *s, const int64_t *n, int64_t *err)
{
    right(p, s, n, err);
    *(float *)(void *)p[2] += 1;
}

TEST(debug_names_a_wrong_kernel_in_a_body)
{
    mc_flag_set("device", "cpu"); /* the kernel that is replaced is in C */
    mc_graph *g;
    mc_function *f = compiled(&g, "hs = scan(x in xs, h from h0: h = tanh(x + h))", "hs", 0, "DEBUG");
    REQUIRE(f, "%s", mc_error(g));
    const int at = loop_of(f);
    int found = -1;
    for (int i = 0; at >= 0 && i < f->loop[at]->code->nstep; i++) {
        found = f->loop[at]->code->fn && f->loop[at]->code->fn[i] ? i : found;
    }
    if (found >= 0) { /* else there is no compiler */
        CHECK(called(f, STEPS, 0.5, 0.25, 1) == MC_OK, "%s", mc_last_error());
        right = f->loop[at]->code->fn[found];
        f->loop[at]->code->fn[found] = wrong;
        mc_status s = called(f, STEPS + 1, 0.5, 0.25, 1); /* another size: planned again */
        f->loop[at]->code->fn[found] = right;
        CHECK(s == MC_ECHECK && strstr(mc_last_error(), "t = 0: DEBUG: step ") &&
                  strstr(mc_last_error(), "differs from the reference"),
              "%s", mc_last_error());
    }
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- the trace ---- */

TEST(trace_has_an_event_a_loop)
{
    CHECK(mc_flag_set("trace", in_folder("trace.json")) == MC_OK, "%s", mc_last_error());
    mc_graph *g;
    mc_function *f = compiled(&g, two_steps, "hs", 0, NULL);
    mc_flag_set("trace", "");
    REQUIRE(f && called(f, STEPS, 0.5, 0.25, 2) == MC_OK, "%s", mc_last_error());
    char *text = NULL;
    size_t n = 0;
    CHECK(mc_file_read(in_folder("trace.json"), &text, &n) == MC_OK, "%s", mc_last_error());
    int events = 0;
    char runs[40];
    snprintf(runs, sizeof runs, "\"runs\":%d,", STEPS); /* of one call, in the second too */
    for (const char *at = text; at && (at = strstr(at, "\"body\":[")) != NULL; at++, events++) {
        const char *end = strchr(at, '\n'), *has = strstr(at, runs);
        CHECK(end && has && has < end, "%.300s", at);
    }
    CHECK(loop_of(f) < 0 || events == 2, "%d events", events);
    mc_free(text);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

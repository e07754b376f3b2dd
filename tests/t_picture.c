/* t_picture.c: pictures of graphs: everything is there, nothing overlaps, the files are well-formed. */
#include "check.h"
#include "graph/picture.h"
#include "markup.h"
#include <math.h>

static mc_graph *regression(mc_node **out)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "t", MC_FLOAT32, 1);
    mc_shared_zeros(g, "w", MC_FLOAT32, MC_SHAPE(784));
    out[0] = mc_formula(
        g, "p = sigmoid(dot(x, w)); cost = mean(-t * log(p) - (1 - t) * log(1 - p)) + 0.01 * sum(w * w)");
    out[1] = mc_formula(g, "w - 0.5 * grad(cost, w)");
    return g;
}

/* A chain of n nodes, each reading the one before and, now and then, the input. */
static mc_graph *chain(int n, mc_node **out)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = x;
    for (int i = 0; i < n; i++) {
        y = i % 5 == 4 ? mc_mul(y, x) : mc_tanh(y);
    }
    *out = y;
    return g;
}

static void check_boxes(const struct mc_picture *p, const struct mc_layout *l)
{
    for (size_t i = 0; i < p->node.n; i++) {
        const struct mc_box *a = &l->box[i];
        CHECK(a->x - a->w / 2 > -0.01 && a->x + a->w / 2 < l->w + 0.01 && a->y >= 0 &&
                  a->y + a->h < l->h + 0.01,
              "box %zu leaves the sheet", i);
        for (size_t k = 0; k < i; k++) {
            const struct mc_box *b = &l->box[k];
            bool apart = fabs(a->x - b->x) > (a->w + b->w) / 2 || a->y > b->y + b->h || b->y > a->y + a->h;
            CHECK(apart, "%s and %s overlap", p->node.at[i].head, p->node.at[k].head);
        }
    }
    for (size_t i = 0; i < p->arrow.n; i++) {
        const struct mc_arrow *a = &p->arrow.at[i];
        CHECK(l->box[a->from].y + l->box[a->from].h < l->box[a->to].y, "an arrow goes up, to %s",
              p->node.at[a->to].head);
    }
    for (size_t i = 0; i < l->bend.n; i++) { /* a wire passes beside boxes, not through them */
        const struct mc_bend *n = &l->bend.at[i];
        for (size_t k = 0; k < p->node.n; k++) {
            CHECK(l->box[k].layer != n->layer || fabs(l->box[k].x - n->x) > l->box[k].w / 2,
                  "a wire crosses %s", p->node.at[k].head);
        }
    }
}

static void layout_of(int n, mc_node *const *out)
{
    struct mc_picture p;
    REQUIRE(mc_picture_make(&p, n, out, NULL) == MC_OK, "%s", mc_last_error());
    struct mc_layout l = { .box = mc_calloc(p.node.n, sizeof *l.box, "test") };
    for (size_t i = 0; i < p.node.n; i++) {
        l.box[i].w = 40 + (double)(i * 37 % 90);
        l.box[i].h = 30 + (double)(i * 13 % 20);
    }
    if (CHECK(mc_layout_make(&l, &p) == MC_OK, "%s", mc_last_error())) {
        check_boxes(&p, &l);
    }
    mc_layout_free(&l);
    mc_picture_free(&p);
}

TEST(boxes_do_not_overlap)
{
    mc_node *out[2];
    mc_graph *g = regression(out);
    layout_of(2, out);
    mc_graph_free(g);
    g = chain(100, out);
    layout_of(1, out);
    mc_graph_free(g);
}

TEST(svg_shows_every_node)
{
    mc_node *out[2];
    mc_graph *g = regression(out);
    mc_status s;
    char *svg = MARKUP_WRITTEN(s, to, mc_graph_svg(g, 2, out, to));
    struct markup m;
    CHECK(s == MC_OK && markup_good(&m, svg, false), "%s %s", mc_last_error(), m.why);
    size_t count, small = 0;
    mc_node **list = mc_graph_reach(2, out, &count);
    for (size_t i = 0; i < count; i++) {
        const char *word = mc_is_const(list[i]) ? "" : list[i]->name ? list[i]->name : list[i]->op->name;
        char text[80];
        snprintf(text, sizeof text, ">%s", word);
        CHECK(strstr(svg, text), "%s is not there", word);
        small += mc_is_const(list[i]);
    }
    CHECK(markup_count(svg, "<title>") >= (int)count, "%d boxes for %zu nodes", markup_count(svg, "<title>"),
          count);
    CHECK(small > 0 && markup_count(svg, "<title>") < 2 * (int)count, "%zu constants", small);
    CHECK(strstr(svg, "float32[?, 784]") || strstr(svg, "float32[?, ?]"), "types are shown");
    CHECK(markup_count(svg, "rect class=\"input\"") == 3 && markup_count(svg, "rect class=\"shared\"") == 2 &&
              markup_count(svg, "rect class=\"output\"") == 3,
          "two inputs, a shared variable, two outputs, and the key to the colours");
    CHECK(!strstr(svg, "nearest the outputs"), "all of it is shown");
    mc_free(list);
    free(svg);
    mc_graph_free(g);
}

TEST(dot_shows_every_node)
{
    mc_node *out[2];
    mc_graph *g = regression(out);
    mc_status s;
    char *dot = MARKUP_WRITTEN(s, to, mc_graph_dot(g, 2, out, to));
    CHECK(s == MC_OK && strncmp(dot, "digraph", 7) == 0 && strstr(dot, "label=\"w\\nshared\\nfloat32[784]\""),
          "%s", dot);
    CHECK(strstr(dot, " -> ") && dot[strlen(dot) - 2] == '}', "%s", dot);
    free(dot);
    mc_graph_free(g);
}

TEST(large_graphs_are_cut_and_say_so)
{
    mc_node *out;
    mc_graph *g = chain(4000, &out);
    mc_status s;
    char *svg = MARKUP_WRITTEN(s, to, mc_graph_svg(g, 1, &out, to));
    struct markup m;
    CHECK(s == MC_OK && markup_good(&m, svg, false), "%s %s", mc_last_error(), m.why);
    CHECK(strstr(svg, "300 of 4001 nodes: those nearest the outputs"), "says what is missing");
    CHECK(markup_count(svg, "<title>") == PICTURE_MOST, "%d", markup_count(svg, "<title>"));
    CHECK(strstr(svg, "class=\"cut\""), "shows where");
    free(svg);
    mc_graph_free(g);
}

TEST(odd_texts_stay_well_formed)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 0);
    mc_node *y = mc_op(g, "print_", 1, &x, "message=\"<b> & 'a' \\\"q\\\" \x01\xff\xc3\xa9\xed\xa0\x80\"");
    REQUIRE(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    mc_status s;
    char *svg = MARKUP_WRITTEN(s, to, mc_graph_svg(g, 1, &y, to));
    struct markup m;
    CHECK(s == MC_OK && markup_good(&m, svg, false), "%s", m.why);
    free(svg);
    mc_graph_free(g);
    struct mc_str line = { 0 };
    mc_str_line(&line, "a\xc3\xa9\x02z\xff", 9);
    CHECK(strcmp(line.s, "a\xc3\xa9?z?") == 0, "%s", line.s);
    mc_str_free(&line);
    mc_str_line(&line, "abcdefgh", 4);
    CHECK(strcmp(line.s, "abc\xe2\x80\xa6") == 0, "%s", line.s);
    mc_str_free(&line);
}

TEST(pictures_of_nothing_are_errors)
{
    mc_graph *g = mc_graph_new();
    mc_node *bad = mc_formula(g, "1 +");
    CHECK(mc_graph_svg(g, 0, NULL, stderr) == MC_EARG, "%s", mc_last_error());
    CHECK(mc_graph_svg(g, 1, &bad, stderr) == MC_EARG && strstr(mc_last_error(), "1 +"), "%s",
          mc_last_error());
    mc_node *none = NULL;
    CHECK(mc_graph_dot(g, 1, &none, stderr) == MC_EARG, "%s", mc_last_error());
    mc_graph_free(g);
}

TEST(pictures_without_memory)
{
    mc_node *out[2];
    mc_graph *g = regression(out);
    FILE *to = fopen("/dev/null", "w");
    ALLOC_FAIL_LOOP {
        mc_status s = mc_graph_svg(g, 2, out, to);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s", mc_last_error());
    }
    ALLOC_FAIL_LOOP {
        mc_status s = mc_graph_dot(g, 2, out, to);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s", mc_last_error());
    }
    fclose(to);
    mc_graph_free(g);
}

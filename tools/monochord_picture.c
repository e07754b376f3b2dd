/* monochord_picture.c: `monochord wisdom picture FILE`: which solver was fastest for each convolution, as a
 * page of SVG.
 *
 * Invariant: it shows what wisdom says and nothing else; a convolution has one row, its passes a column
 * each. */
#include "tool.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 3, LABEL = 330, CELL = 240, ROW = 26, TOP = 34, MARGIN = 8, COLOURS = 10, MOST_SOLVERS = 32 };
static const char *const passes[PASSES] = { "fwd", "inputs", "weights" };
static const char *const titles[PASSES] = { "forward", "gradient of inputs", "gradient of weights" };
static const char *const colours[COLOURS] = { "#cfe3f7", "#fbe0c4", "#d3efd0", "#f7d0d6", "#e2d6f3",
                                              "#fdf3bd", "#cdeeee", "#e9dccb", "#dde3ea", "#f3d6ec" };

struct choice {
    char label[160];
    struct { char solver[64]; double seconds; } of[PASSES];
    double flops;
};
struct picture {
    struct choice *rows;
    int n, room;
    char solvers[MOST_SOLVERS][64]; /* in the order met: their colours */
    int nsolvers;
};

/* ---- wisdom ---- */

/* The product of the numbers behind a letter: "k11x11" is 121.  1 where there is no such letter. */
static double product(const char *label, char letter)
{
    for (const char *at = label; *at; at++) {
        if (*at == letter && isdigit((unsigned char)at[1])) {
            double all = 1;
            char *end = (char *)at;
            do {
                all *= (double)strtoll(end + 1, &end, 10);
            } while (*end == 'x');
            return all;
        }
    }
    return 1;
}

static double flops_of(const char *label)
{
    return 2 * product(label, 'n') * product(label, 'f') * product(label, 'c') / product(label, 'g') *
           product(label, 'k') * product(label, 'o');
}

static struct choice *row_of(struct picture *p, const char *label)
{
    for (int i = 0; i < p->n; i++) {
        if (strcmp(p->rows[i].label, label) == 0) {
            return &p->rows[i];
        }
    }
    if (p->n == p->room) {
        p->room = 2 * p->room + 16;
        p->rows = must(realloc(p->rows, (size_t)p->room * sizeof *p->rows));
    }
    struct choice *c = &p->rows[p->n++];
    memset(c, 0, sizeof *c);
    snprintf(c->label, sizeof c->label, "%s", label);
    c->flops = flops_of(label);
    return c;
}

static int pass_of(const char *word)
{
    for (int i = 0; i < PASSES; i++) {
        if (strcmp(passes[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

/* conv f32 fwd n16c3i128x128 f96k11x11o118x118 ... t2 s0badcafe fft 2.2e-02 */
static void take_line(struct picture *p, char *line)
{
    char *word[32], label[160] = "";
    int n = 0, pass;
    for (char *at = strtok(line, " \n"); at && n < COUNT(word); at = strtok(NULL, " \n")) {
        word[n++] = at;
    }
    if (n < 8 || strcmp(word[0], "conv") != 0 || (pass = pass_of(word[2])) < 0) {
        return;
    }
    word[2] = strcmp(word[1], "f32") == 0
                  ? ""
                  : word[1]; /* the pass is known; a dtype that is not usual is part of the label */
    for (int i = 2; i < n && !(word[i][0] == 't' && isdigit((unsigned char)word[i][1])); i++) {
        if (strncmp(word[i], "in", 2) == 0 && isdigit((unsigned char)word[i][2])) {
            return; /* a part of another convolution's plan */
        }
        size_t used = strlen(label);
        snprintf(label + used, sizeof label - used, "%s%s", used && *word[i] ? " " : "", word[i]);
    }
    struct choice *c = row_of(p, label);
    snprintf(c->of[pass].solver, sizeof c->of[pass].solver, "%s", word[n - 2]);
    c->of[pass].seconds = strtod(word[n - 1], NULL);
}

static bool take_all(struct picture *p)
{
    char line[512];
    FILE *text = tmpfile();
    bool good = text && mc_wisdom_print(text) >= 0;
    if (good) {
        rewind(text);
        while (fgets(line, sizeof line, text)) {
            take_line(p, line);
        }
    }
    if (text) {
        fclose(text);
    }
    return good || complain_library("wisdom");
}

/* ---- drawing ---- */

static const char *colour_of(struct picture *p, const char *solver)
{
    int i = 0;
    while (i < p->nsolvers && strcmp(p->solvers[i], solver) != 0) {
        i++;
    }
    if (i == p->nsolvers && i < MOST_SOLVERS) {
        snprintf(p->solvers[p->nsolvers++], sizeof p->solvers[0], "%s", solver);
    }
    return colours[i % COLOURS];
}

static void draw_cell(struct picture *p, const struct choice *c, int pass, int y, FILE *to)
{
    double seconds = c->of[pass].seconds;
    int x = MARGIN + LABEL + pass * CELL;
    if (!*c->of[pass].solver) {
        return;
    }
    fprintf(to, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"%s\"/>\n", x, y, CELL - 4,
            ROW - 4, colour_of(p, c->of[pass].solver));
    fprintf(to, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 6, y + 15, c->of[pass].solver);
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" class=\"s\">%.3g ms, %.0f GFLOP/s</text>\n",
            x + CELL - 10, y + 15, seconds * 1e3, seconds > 0 ? c->flops / seconds * 1e-9 : 0);
}

static void draw(struct picture *p, FILE *to)
{
    int width = 2 * MARGIN + LABEL + PASSES * CELL, height = TOP + p->n * ROW + MARGIN;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n",
            width, height, width, height);
    fputs("<style>text{font:12px "
          "sans-serif;fill:#222}.s{font-size:10px;fill:#555}.h{font-weight:bold}.l{font-family:monospace;"
          "font-size:11px}"
          "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
          to);
    for (int i = 0; i < PASSES; i++) {
        fprintf(to, "<text x=\"%d\" y=\"%d\" class=\"h\">%s</text>\n", MARGIN + LABEL + i * CELL + 6,
                TOP - 14, titles[i]);
    }
    for (int i = 0; i < p->n; i++) {
        int y = TOP + i * ROW;
        fprintf(to, "<text x=\"%d\" y=\"%d\" class=\"l\">%s</text>\n", MARGIN, y + 15, p->rows[i].label);
        for (int pass = 0; pass < PASSES; pass++) {
            draw_cell(p, &p->rows[i], pass, y, to);
        }
    }
    fputs("</svg>\n", to);
}

/* The largest first: they are what a network's time is. */
static int by_flops(const void *a_, const void *b_)
{
    const struct choice *a = a_, *b = b_;
    return a->flops < b->flops ? 1 : a->flops > b->flops ? -1 : strcmp(a->label, b->label);
}

int wisdom_picture(const char *path)
{
    struct picture p = { 0 };
    int failed = !take_all(&p);
    if (!failed && p.n == 0) {
        failed = complain("wisdom has no convolutions yet: plan some with plan=measure");
    }
    if (!failed) {
        qsort(p.rows, (size_t)p.n, sizeof *p.rows, by_flops);
        FILE *to = fopen(path, "w");
        if (to) {
            draw(&p, to);
        }
        if (!to || fclose(to) != 0) {
            failed = complain("cannot write '%s': %s", path, strerror(errno));
        }
    }
    free(p.rows);
    return failed;
}

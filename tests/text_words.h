/* text_words.h: declarations that tests of the text form build on. */
#ifndef TEXT_WORDS_H
#define TEXT_WORDS_H

#include "check.h"
#include <monochord.h>
#include <stdio.h>
#include <string.h>

static const char *const declared =
    "input x float32[?, 3]; input y float32[?, 3]; input u float32[?]; input s float32; input k int64[?]; "
    "input j int8[?]; input b bool[?]; shared W float32[3, 5]; input t float64[2, 3, 4]";

/* The graph's mistake without its last line, the place in the program; the column of its caret in the
 * formula, -1: it has none. */
struct said { char text[2000]; bool placed; int column; };
static inline struct said what_it_says(mc_graph *g, const char *file)
{
    struct said s = { .column = -1 };
    snprintf(s.text, sizeof s.text, "%s", mc_error(g));
    char *line = strstr(s.text, "\n    at "), *caret;
    s.placed = line && strstr(line, file);
    *(line ? line : s.text) = 0;
    caret = strrchr(s.text, '\n');
    if (caret && strchr(caret, '^')) {
        s.column = (int)strlen(caret) - 1 - 5; /* behind the line end and four blanks */
    }
    return s;
}

static inline mc_graph *graph_of(const char *text)
{
    mc_graph *g = mc_graph_new();
    mc_flag_set("floatX", "float64");
    mc_formula(g, text);
    CHECK(mc_graph_status(g) == MC_OK, "%s: %s", text, mc_error(g));
    return g;
}

#endif

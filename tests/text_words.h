/* text_words.h: declarations that tests of the text form build on. */
#ifndef TEXT_WORDS_H
#define TEXT_WORDS_H

#include "check.h"
#include <monochord.h>

static const char *const declared = "input x float32[?, 3]; input y float32[?, 3]; input u float32[?]; input s float32; input k int64[?]; "
                                    "input j int8[?]; input b bool[?]; shared W float32[3, 5]; input t float64[2, 3, 4]";

static inline mc_graph *graph_of(const char *text)
{
    mc_graph *g = mc_graph_new();
    mc_flag_set("floatX", "float64");
    mc_formula(g, text);
    CHECK(mc_graph_status(g) == MC_OK, "%s: %s", text, mc_error(g));
    return g;
}

#endif

/* math.c: finds and prints the functions of math_f64.def, math_f32.def and src/op/special.def.
 *
 * Invariant: a function calls only functions of rows above its own, so adding those first ends. */
#include "render/math.h"

#include <stdio.h>

#define MATH_DTYPE_f MC_FLOAT32
#define MATH_DTYPE_d MC_FLOAT64

/* # must be in the first macro that takes the text: a macro in between would expand names in it */
#define PIECE(kind, id, need, ...)                                                                 \
    { .name = "mc" #kind "_" #id, .needs = need, .text = #__VA_ARGS__, .dtype = MATH_DTYPE_##kind },
#define CALLED(kind, id, need, ...)                                                                \
    { .name = "mc" #kind "_" #id, .needs = need, .text = #__VA_ARGS__, .dtype = MATH_DTYPE_##kind, .called = true },
#define UNARY(kind, id, bound, reach, need, ...)                                                   \
    { .name = "mc" #kind "_" #id, .needs = need, .text = #__VA_ARGS__, .dtype = MATH_DTYPE_##kind, \
      .arity = 1, .ulp = bound, .range = reach },
#define BINARY(kind, id, bound, need, ...)                                                         \
    { .name = "mc" #kind "_" #id, .needs = need, .text = #__VA_ARGS__, .dtype = MATH_DTYPE_##kind, \
      .arity = 2, .ulp = bound },

const struct mc_math_row mc_math_rows[] = {
#include "op/special.def"
#include "render/math_f64.def"
#include "render/math_f32.def"
};
const size_t mc_nmath = NELEM(mc_math_rows);

_Static_assert(NELEM(mc_math_rows) <= 64 * MC_MATH_WORDS, "a bit for every row");

/* the row whose C name is the n letters at name; mc_nmath: none */
static size_t find(const char *name, size_t n)
{
    size_t i = 0;
    while (i < mc_nmath && (strncmp(mc_math_rows[i].name, name, n) != 0 || mc_math_rows[i].name[n] != '\0')) {
        i++;
    }
    return i;
}

static size_t find_for(const char *name, mc_dtype d)
{
    char c[64];
    int n = mc_snprintf(c, sizeof c, "mc%c_%s", d == MC_FLOAT64 ? 'd' : 'f', name);
    return n < (int)sizeof c ? find(c, (size_t)n) : mc_nmath;
}

static void add_row(struct mc_str *out, uint64_t *have, size_t i)
{
    if (have[i / 64] >> i % 64 & 1) {
        return;
    }
    have[i / 64] |= UINT64_C(1) << i % 64;
    const char *word = mc_math_rows[i].needs;
    while (*word) {
        size_t n = strcspn(word, " ");
        add_row(out, have, find(word, n));
        word += n + (word[n] == ' ');
    }
    /* a compiler that does not inline it would leave a call in the loop, which then is not vectorised */
    mc_str_addf(out, "%s %s\n", mc_math_rows[i].called ? "CALLED" : "__attribute__((always_inline))",
                mc_math_rows[i].text);
}

const char *mc_math_text(const char *name, mc_dtype d)
{
    size_t i = find_for(name, d);
    return i < mc_nmath ? mc_math_rows[i].text : NULL;
}

double mc_math_range(const char *code, mc_dtype d)
{
    double range = 0;
    for (const char *m = strstr(code, "M("); m; m = strstr(m + 1, "M(")) {
        char word[32];
        mc_snprintf(word, sizeof word, "%.*s", (int)strcspn(m + 2, ")"), m + 2);
        size_t i = find_for(word, d);
        range = i < mc_nmath && mc_math_rows[i].range > 0 ? mc_math_rows[i].range : range;
    }
    return range;
}

void mc_math_add(struct mc_str *out, uint64_t *have, const char *name, mc_dtype d)
{
    size_t i = find_for(name, d);
    if (i < mc_nmath) {
        add_row(out, have, i);
    } else if (d == MC_FLOAT64) { /* an identical definition may be repeated in C */
        mc_str_addf(out, "#define mcd_%s __builtin_%s\n", name, name);
    } else {
        mc_str_addf(out, "#define mcf_%s __builtin_%sf\n", name, name);
    }
}

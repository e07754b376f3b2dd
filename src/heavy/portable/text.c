/* text.c: the texts of this folder that an exported file contains, and the names in them.
 *
 * Invariant: every name that the text of a level declares at file scope is in the tables. */
#include "heavy/portable/portable.h"
#include <string.h>

/* ---- texts ---- */

static const char panel[] = {
#include "heavy/portable/panel_text.h"
    , 0
};
static const char threads[] = {
#include "heavy/portable/threads_text.h"
    , 0
};
static const char vectors[] = {
#include "heavy/portable/vectors_text.h"
    , 0
};
static const char core[] = {
#include "heavy/portable/core_text.h"
    , 0
};
static const char gradients[] = {
#include "heavy/portable/gradients_text.h"
    , 0
};

/* The code of a text, without the comment at its head, which speaks of this library. */
static const char *code_of(const char *text)
{
    const char *end = strstr(text, "*/\n");
    return end ? end + 3 : text;
}

void mc_portable_text(struct mc_str *out)
{
    mc_str_add(out, code_of(panel));
    mc_str_add(out, code_of(threads));
}

void mc_portable_level_text(struct mc_str *out, bool f32, bool f64, bool finishes)
{
    static const struct {
        const char *type, *suffix;
        int lanes;
    } of[] = { { "float", "f32", 16 }, { "double", "f64", 8 } };
    mc_str_add(out, code_of(vectors));
    mc_str_addf(out, "enum { FINISHES = %d }; /* do sums add a bias and cut below 0 here? */\n", finishes);
    for (int i = 0; i < 2; i++) {
        if (i ? f64 : f32) {
            mc_str_addf(out,
                        "#define R     %s\n#define S     %s\n#define LANES %d\n%s%s#undef R\n#undef "
                        "S\n#undef LANES\n",
                        of[i].type, of[i].suffix, of[i].lanes, code_of(core), code_of(gradients));
        }
    }
}

/* ---- the names of that text ---- */

static const char *const plain_names[] = {
    "ROWS", "VECTORS", "WIDE", "WIDE_ROWS", "BOX_ROWS", "DOT_ROWS", "DOT_COLUMNS", "FINISHES",
};
static const char *const typed_names[] = { /* with _f32 and _f64 */
    /* vectors.h */
    "v", "WIDTH", "zero", "load", "load_n", "load_part", "store", "store_n", "splat", "evens", "plus", "madd",
    "half", "first", "lanes", "positive", "bits",
    /* core.h */
    "copy", "copy_rows", "copy_evens", "add", "copy_row", "columns_tile", "columns_strip", "columns_thin",
    "pack", "columns_part", "rows_of_part", "columns", "box_tile", "box_tile_3x3", "is_3x3", "box_strip", "box_plane", "box",
    /* gradients.h */
    "outer_tile", "outer_strip", "outer_part", "outer", "col2im_sum", "col2im", "dots_tile", "dots_columns",
    "dots_rows", "dots",
};
static const char *const suffixes[] = { "_f32", "_f64" };

void mc_portable_rename(struct mc_str *out)
{
    for (size_t i = 0; i < NELEM(plain_names); i++) {
        mc_str_addf(out, "#define %s AT_LEVEL(%s)\n", plain_names[i], plain_names[i]);
    }
    for (size_t i = 0; i < NELEM(typed_names); i++) {
        for (size_t k = 0; k < NELEM(suffixes); k++) {
            const char *name = typed_names[i], *suffix = suffixes[k];
            mc_str_addf(out, "#define %s%s AT_LEVEL(%s%s)\n", name, suffix, name, suffix);
        }
    }
}

void mc_portable_undefine(struct mc_str *out)
{
    mc_str_add(out, "#undef TARGET\n#undef FORCE_INLINE\n#undef IN_REGISTER\n#undef FETCH\n#undef UNROLL\n");
}

bool mc_portable_is_name(const char *name)
{
    const char *suffix = strrchr(name, '_');
    bool found = false;
    for (size_t i = 0; i < NELEM(plain_names); i++) {
        found |= strcmp(name, plain_names[i]) == 0;
    }
    if (suffix && (strcmp(suffix, suffixes[0]) == 0 || strcmp(suffix, suffixes[1]) == 0)) {
        const size_t n = (size_t)(suffix - name);
        for (size_t i = 0; i < NELEM(typed_names); i++) {
            found |= strlen(typed_names[i]) == n && strncmp(name, typed_names[i], n) == 0;
        }
    }
    return found;
}

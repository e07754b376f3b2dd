/* markdown.c: rows and heads of the tables in docs/layers.md. */
#include "nn/nn.h"

/* Escapes characters that Markdown would interpret in a table. */
static void escaped(struct mc_nn_text *t, const char *s, bool code)
{
    for (; *s; s++) {
        mc_nn_addf(t, *s == '|' || (!code && strchr("*<", *s)) ? "\\%c" : "%c", *s);
    }
}

void mc_nn_manual_head(struct mc_nn_text *t, const char *title, const char *second)
{
    mc_nn_addf(t, "\n## %s\n\n| name and settings | %s |\n| --- | --- |\n", title, second);
}

void mc_nn_manual_row(struct mc_nn_text *t, const char *name, const struct mc_nn_field *fields,
                      const char *doc, bool code)
{
    mc_nn_addf(t, "| `%s", name);
    for (const struct mc_nn_field *f = fields; f && f->name; f++) {
        if (f->type == NN_LAYERS) {
            mc_nn_add(t, " A B ...");
        } else if (f->preset) {
            mc_nn_addf(t, " %s=%s", f->name, f->preset);
        } else {
            mc_nn_addf(t, " %s", f->name);
        }
    }
    mc_nn_add(t, code ? "` | `" : "` | ");
    escaped(t, doc, code);
    mc_nn_add(t, code ? "` |\n" : " |\n");
}

/* manual.c: prints the tables of ops and of flags as Markdown: the whole text of docs/ops.md and
 * docs/flags.md. */
#include "base/flag.h"
#include "op/op.h"
#include <errno.h>

static mc_status print(struct mc_str *text, FILE *to)
{
    mc_status s = text->bad ? MC_EMEMORY
                  : fwrite(text->s, 1, text->n, to) == text->n
                      ? MC_OK
                      : mc_fail(MC_EFILE, "manual: cannot write: %s", strerror(errno));
    mc_str_free(text);
    return s;
}

/* A cell of a table, with the characters escaped that Markdown would interpret. */
static void cell(struct mc_str *out, const char *s, const char *special)
{
    for (; *s; s++) {
        if (strchr(special, *s)) {
            mc_str_add(out, "\\");
        }
        mc_str_addn(out, s, 1);
    }
}

static const char *const outside_code = "|*<`", *const inside_code = "|";

/* ---- ops ---- */

static void op_row(struct mc_str *out, const struct mc_op *op)
{
    struct mc_str call = { 0 };
    mc_op_call_text(&call, op);
    mc_str_add(out, "| `");
    cell(out, call.s ? call.s : "", inside_code);
    mc_str_add(out, "` | ");
    cell(out, op->doc ? op->doc : "", outside_code);
    if (op->formula) {
        mc_str_add(out, ": `");
        cell(out, op->formula, inside_code);
        mc_str_add(out, "`");
    }
    mc_str_add(out, op->nout > 1 ? " (several results) |\n" : " |\n");
    out->bad |= call.bad;
    mc_str_free(&call);
}

mc_status mc_ops_manual(FILE *to)
{
    struct mc_str out = { 0 };
    const char *family = "";
    mc_str_add(
        &out,
        "# Ops\n\n"
        "Written by `make docs` from the table of ops. Each name can be used in a formula, "
        "`mc_formula(g, \"sum(x, axis=0)\")`, and is a C function with the prefix `mc_`. Arguments after "
        "`axis=`, `dtype=` and the like are attributes: numbers, lists, words.\n");
    for (int i = 0; i < mc_op_count(); i++) {
        const struct mc_op *op = mc_op_at(i);
        if (op->flags & (OP_HIDDEN | OP_LEAF)) {
            continue;
        }
        if (strcmp(family, mc_op_family(op)) != 0) {
            family = mc_op_family(op);
            mc_str_addf(&out, "\n## %s\n\n| op | what it is |\n| --- | --- |\n", family);
        }
        op_row(&out, op);
    }
    return print(&out, to);
}

/* ---- flags ---- */

mc_status mc_flags_manual(FILE *to)
{
    static const char *const kind[] = { [BOOL] = "True or False", [INT] = "number", [REAL] = "number", [BYTES] = "bytes: 1k, 2M, 3G",
                                        [WORD] = "one of ", [WORDS] = "any of ", [TEXT] = "text" };
    struct mc_str out = { 0 };
    mc_str_add(
        &out,
        "# Flags\n\nWritten by `make docs` from the table of flags. They are read from `~/.monochordrc` (or "
        "the file `$MONOCHORDRC` names), then from `MONOCHORD_FLAGS=name=value,name=value`, then set by "
        "`mc_flag_set(\"name\", \"value\")`; the last one counts. The error for an unknown name or value "
        "suggests a similar one.\n\n| flag | default | values | what it does |\n| --- | --- | --- | --- |\n");
    for (int f = 0; f < MC_NFLAG; f++) {
        const struct mc_flag_row *r = &mc_flag_rows[f];
        mc_str_addf(&out, "| `%s` | %s%s%s | %s", r->name, *r->dflt ? "`" : "", r->dflt, *r->dflt ? "`" : "",
                    kind[r->kind]);
        if (r->kind == INT && *r->values) {
            mc_str_add(&out, ", ");
        }
        for (const char *s = r->values; *s; s++) {
            *s == '|' ? mc_str_add(&out, ", ") : cell(&out, (const char[]){ *s, '\0' }, outside_code);
        }
        mc_str_add(&out, " | ");
        cell(&out, r->doc, outside_code);
        mc_str_add(&out, " |\n");
    }
    return print(&out, to);
}

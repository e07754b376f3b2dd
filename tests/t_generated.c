/* t_generated.c: include/monochord_ops.h is written from the table of ops, here.  A test fails when it does
 * not say what the table says; `make bless` writes it anew.  The build makes the functions' bodies from that
 * header (cmake/public.cmake). */
#include "check.h"
#include "op/op.h"
#include <stdlib.h>

enum { COLUMN = 60, WIDEST = 110 };

/* Functions of monochord.h that note the user's line, as all of monochord_ops.h do. */
static const char *const noting[] = {
    "input", "input_sized", "constant", "number", "formula", "formulaf", "op", "opf", "index", "set_subtensor", "inc_subtensor", "shared_new",
    "shared_zeros", "shared_sized", "grad",
};

static bool is_public(const struct mc_op *op)
{
    return !(op->flags & (OP_HIDDEN | OP_LEAF));
}

/* Words in lines of at most `width`, each further line behind `indent`. */
static void wrap(struct mc_str *out, const char *text, size_t width, const char *indent)
{
    size_t at = 0, from = out->n;
    while (text[at]) {
        size_t n = strcspn(text + at, " ");
        if (out->n > from && out->n - from + 1 + n > width) {
            mc_str_addf(out, "\n%s", indent);
            from = out->n - strlen(indent);
        } else if (at) {
            mc_str_add(out, " ");
        }
        mc_str_addn(out, text + at, n);
        at += n + strspn(text + at + n, " ");
    }
}

static void declare(struct mc_str *out, const struct mc_op *op)
{
    struct mc_str line = { 0 }, says = { 0 };
    mc_str_add(&line, "MC_API ");
    int how = mc_op_prototype(&line, op);
    bool signature = how || strcmp(mc_op_function(op), op->name) != 0;
    if (how) {
        mc_str_addf(&line, " MC_FORMAT(%d, %d)", how, how + 1);
    }
    mc_str_add(&says, "/* ");
    if (signature) {
        mc_str_addf(&says, "%s(%s): ", op->name, op->params);
    }
    mc_str_add(&line, ";");
    mc_str_add(&says, op->doc);
    if (!signature && MC_MAX(line.n, COLUMN) + says.n + 4 <= WIDEST) {
        mc_str_addf(out, "%-*s %s */\n", COLUMN, line.s, says.s);
    } else {
        wrap(out, says.s, WIDEST - 3, " * ");
        mc_str_add(out, " */\n");
        wrap(out, line.s, WIDEST, "    ");
        mc_str_add(out, "\n");
    }
    mc_str_free(&line);
    mc_str_free(&says);
}

static void section(struct mc_str *out, const char *title)
{
    mc_str_add(out, "\n/* ");
    for (size_t i = strlen(title); i < 84; i++) {
        mc_str_add(out, "-");
    }
    mc_str_addf(out, " %s ---- */\n\n", title);
}

/* Every op in the order of the table, a heading where a family begins. */
static void declare_all(struct mc_str *out)
{
    const char *family = "";
    for (int i = 0; i < mc_op_count(); i++) {
        const struct mc_op *op = mc_op_at(i);
        if (!is_public(op)) {
            continue;
        }
        if (strcmp(family, mc_op_family(op)) != 0) {
            family = mc_op_family(op);
            section(out, family);
        }
        declare(out, op);
    }
}

static char *header(void)
{
    struct mc_str out = { 0 };
    mc_str_add(&out,
               "/* monochord_ops.h: one function an op.  Written from the table of ops "
               "(tests/t_generated.c); do not edit.\n"
               " *\n"
               " * A tensor that a signature lets out (b=None) may be NULL.  Attributes go as text, as in a "
               "formula,\n"
               " * printf-like; NULL leaves all at their defaults:\n"
               " *\n"
               " *     mc_node *y = mc_sum(x, \"axis=%d, keepdims=True\", 1), *z = mc_softmax(x, NULL);\n"
               " *\n"
               " * Ops with several results give a tuple: mc_item(t, 0).  Each function notes the file and "
               "line it is "
               "called\n"
               " * from, for messages; a name in brackets, (mc_exp)(x), does not. */\n"
               "#ifndef MONOCHORD_OPS_H\n#define MONOCHORD_OPS_H\n\n#include <monochord.h>\n\n"
               "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    declare_all(&out);
    section(&out, "Where the user is");
    mc_str_add(&out,
               "/* Nodes made from here on belong to this line of the user's. */\nMC_API void mc_here(const "
               "char *file, int line);\n\n");
    mc_str_add(&out, "#if !defined(MC_BUILD)\n");
    for (size_t i = 0; i < NELEM(noting); i++) {
        mc_str_addf(&out, "#define mc_%s(...) (mc_here(__FILE__, __LINE__), mc_%s(__VA_ARGS__))\n", noting[i],
                    noting[i]);
    }
    for (int i = 0; i < mc_op_count(); i++) {
        if (is_public(mc_op_at(i))) {
            const char *name = mc_op_function(mc_op_at(i));
            mc_str_addf(&out, "#define mc_%s(...) (mc_here(__FILE__, __LINE__), mc_%s(__VA_ARGS__))\n", name,
                        name);
        }
    }
    mc_str_add(&out, "#endif\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    return mc_str_take(&out);
}

static bool blessing(void)
{
    const char *bless = getenv("MC_BLESS");
    return bless && *bless == '1';
}

/* Compares with the file, or writes it when blessing. */
static void same_file(const char *path, char *text)
{
    char *have = NULL;
    size_t n = 0;
    REQUIRE(text, "no text for %s: %s", path, mc_last_error());
    if (blessing()) {
        CHECK(mc_file_write(path, text, strlen(text)) == MC_OK, "%s: %s", path, mc_last_error());
    } else if (CHECK(mc_file_read(path, &have, &n) == MC_OK, "%s: %s", path, mc_last_error())) {
        size_t at = 0, line = 1;
        while (at < n && text[at] == have[at]) {
            line += text[at++] == '\n';
        }
        CHECK(n == strlen(text) && at == n, "%s is older than the table of ops, from line %zu on; make bless",
              path, line);
    }
    mc_free(have);
    mc_free(text);
}

TEST(header_says_what_the_table_says)
{
    same_file(TEST_ROOT "/../include/monochord_ops.h", header());
}

/* ---- what the build made of the header ---- */

/* mc_call_how("sum", NULL, 1, ...: an op, the graph if no tensor tells it, how many tensors stand alone. */
static void call_of(struct mc_str *out, const struct mc_op *op)
{
    const struct mc_signature *s = op->sig;
    mc_str_addf(out, " mc_call_%s(\"%s\", %s, %d, ", s->nattr ? "how" : "plain", op->name,
                !s->ntensor && !s->variadic ? "g" : "NULL", s->ntensor);
}

TEST(functions_call_what_the_table_says)
{
    char *text = NULL;
    size_t n, bodies = 0, ops = 0;
    if (blessing()) {
        SKIP("the header may be new");
    }
    REQUIRE(mc_file_read(TEST_GEN "/op/public.c", &text, &n) == MC_OK, "%s", mc_last_error());
    for (const char *at = text; (at = strstr(at, "\n{\n")); at++) {
        bodies++;
    }
    for (int i = 0; i < mc_op_count(); i++) {
        const struct mc_op *op = mc_op_at(i);
        struct mc_str head = { 0 }, call = { 0 };
        if (!is_public(op)) {
            continue;
        }
        ops++;
        mc_op_prototype(&head, op);
        mc_str_add(&head, "\n{\n");
        call_of(&call, op);
        const char *body = strstr(text, head.s), *end = body ? strstr(body, "\n}\n") : NULL;
        const char *found = body ? strstr(body, call.s) : NULL;
        CHECK(found && found < end, "mc_%s does not call%s...", mc_op_function(op), call.s);
        mc_str_free(&head);
        mc_str_free(&call);
    }
    CHECK(bodies == ops, "%zu functions for %zu ops", bodies, ops);
    mc_free(text);
}

/* ---- no op takes a name that a header has given to something else ---- */

static const char *const headers[] = {
    "include/monochord.h", "src/base/base.h", "src/value/value.h", "src/graph/graph.h", "src/graph/parse.h", "src/op/op.h",
};

/* Does a line that begins a declaration name this function? */
static bool declares(const char *text, const char *name)
{
    char call[80];
    snprintf(call, sizeof call, "mc_%s(", name);
    for (const char *at = text; (at = strstr(at, call)); at++) {
        const char *line = at;
        while (line > text && line[-1] != '\n') {
            line--;
        }
        if (at > line && (at[-1] == ' ' || at[-1] == '*') && *line != '/' && *line != ' ' && *line != '#') {
            return true;
        }
    }
    return false;
}

TEST(names_of_ops_are_free)
{
    for (int i = 0; i < mc_op_count(); i++) {
        CHECK(mc_op_find(mc_op_name(i)) == mc_op_at(i), "two ops are called %s", mc_op_name(i));
    }
    for (size_t h = 0; h < NELEM(headers); h++) {
        char path[512], *text = NULL;
        size_t n;
        snprintf(path, sizeof path, "%s/../%s", TEST_ROOT, headers[h]);
        REQUIRE(mc_file_read(path, &text, &n) == MC_OK, "%s", mc_last_error());
        for (int i = 0; i < mc_op_count(); i++) {
            const struct mc_op *op = mc_op_at(i);
            CHECK(!is_public(op) || !declares(text, mc_op_function(op)),
                  "%s has mc_%s already; rename the op's function", headers[h], mc_op_function(op));
        }
        mc_free(text);
    }
}

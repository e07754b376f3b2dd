/* pages.c: prints the reference of ops as Markdown, one page for each family: docs/api/ops-*.md.
 *
 * No text here names an op. The example of an op is that of its row, or is found by trying values for the
 * arguments; the reference evaluates it. Dtypes, sizes and gradients are found by building the op on
 * inputs. */
#include "rewrite/rewrite.h"

enum { ARGUMENTS = 8, CHOICES = 8, LONGEST_SIZE = 60 };

/* ---- examples: "x = [1, 2]; sum(x)" ---- */

#define MATRIX "[[1.5, -2, 0], [3, 0.5, -1]]"
#define IMAGE "[[[[1., 5, 2, 0], [3, 4, 1, 7], [2, 0, 6, 1], [8, 3, 2, 2]]]]"
#define FILTER "[[[[1., 0], [2, -1]]]]"
#define SERIES "[[[1., 5, 2, 0]]]"
#define VOLUME "[[[[[1., 5, 2], [3, 4, 1], [2, 0, 6]], [[8, 3, 2], [0, 1, 1], [4, 2, 5]]]]]"
#define FILTER3 "[[[[[1., 0], [2, -1]]]]]"
#define C01B "[[[[1.], [5], [2]], [[3], [4], [1]], [[2], [0], [6]]]]"
#define C01B_QUARTER "[[[[1.], [2]], [[3], [4]]]]"
#define QUARTER "[[[[1., 2], [3, 4]]]]"
#define TALL "[[1., 0], [2, -1], [0, 1]]"
#define STREAM "" /* no value: a random stream */

/* Values for an argument of this name, in the order in which they are tried; other names use those of x. */
static const struct { const char *name, *value[CHOICES]; } values[] = {
    { "x",         { MATRIX, "[3., 1.5, 2]", IMAGE, VOLUME, SERIES, "2.", "3" } },
    { "a",         { "[1.5, -2, 0]", MATRIX } },
    { "b",         { "[0.5, 2, -1]", TALL } },
    { "c",         { "[True, False]", "[True, False, True]" } },
    { "y",         { "[0.5, 2, -1]", FILTER, MATRIX } },
    { "w",         { FILTER, "[[[1., -1]]]", FILTER3 } },
    { "v",         { "9.", MATRIX, IMAGE } },
    { "g",         { "[[1., 2], [3, 4]]", MATRIX, QUARTER, C01B_QUARTER, IMAGE } },
    { "p",         { "[[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]", "[2, 0, 1]", "0.5" } },
    { "t",         { "[2, 0]", "[[0., 1, 0], [1, 0, 0]]" } },
    { "n",         { "3" } },
    { "start",     { "4" } },
    { "shape",     { "[2, 3]" } },
    { "sizes",     { "[1, 2]", "[2, 3]" } },
    { "index",     { "[1, 0]" } },
    { "rng",       { STREAM } },
    { "low",       { "1" } },
    { "high",      { "6" } },
    { "gamma",     { "[1., 2, 0.5]" } },
    { "beta",      { "[0., 1, 0]" } },
    { "mean",      { "[1., 0, -0.5]" } },
    { "var",       { "[2., 1, 0.5]" } },
    { "std",       { "[2., 1, 0.5]" } },
    { "ws",        { "2" } },
    { "ds",        { "2" } },
    { "d",         { MATRIX, IMAGE } },
    { "images",    { C01B, IMAGE } },
    { "hid_acts",  { C01B } },
    { "hid_grads", { C01B_QUARTER } },
    { "img",       { IMAGE, VOLUME } },
    { "input_",    { IMAGE, VOLUME } },
    { "z",         { C01B } },
    { "filters",   { "[[[[1.], [0]], [[2], [-1]]]]", FILTER, FILTER3 } },
    { "kerns",     { FILTER, FILTER3 } },
    { "depthwise_filters", { FILTER, FILTER3 } },
    { "pointwise_filters", { "[[[[2.]]]]", "[[[[[2.]]]]]" } },
    { "topgrad",   { "[[[[1., 2, 0], [0, 4, 1], [3, 0, 5]]]]", "[[[[[1., 2], [0, 4]], [[3, 0], [1, 5]]]]]" } },
    { "output_grad", { "[[[[1., 2, 0], [0, 4, 1], [3, 0, 5]]]]", "[[[[[1., 2], [0, 4]], [[3, 0], [1, 5]]]]]" } },
    { "img_shp",   { "[1, 1, 4, 4]", "[1, 1, 2, 3, 3]" } },
    { "kerns_shp", { "[1, 1, 2, 2]", "[1, 1, 1, 2, 2]" } },
    { "neibs",     { "[[1., 5, 3, 4], [2, 0, 1, 7], [2, 0, 8, 3], [6, 1, 2, 2]]" } },
    { "neib_shape", { "[2, 2]" } },
    { "original_shape", { "[1, 1, 4, 4]" } },
};
/* Values for attributes without a default. */
static const struct { const char *name, *value; } settings[] = {
    { "axis", "0" }, { "axes", "[0]" }, { "dtype", "float32" }, { "order", "[1, 0]" }, { "shift", "1" }, { "reps", "[2, 1]" },
    { "n", "2" }, { "ratio", "2" }, { "by", "0.5" }, { "lo", "-1" }, { "hi", "1" }, { "sizes", "[2, 3]" }, { "a", "0" }, { "b", "1" },
    { "ds", "2" }, { "pool_shape", "[2, 2]" }, { "factor", "2" }, { "neib_shape", "[2, 2]" }, { "size_f", "3" }, { "num_channels", "1" },
    { "add_scale", "0.5" }, { "pow_scale", "0.75" }, { "pattern", "[0, 0]" },
};

enum { LONGEST_NAME = 31, LONGEST_VALUE = 159 };
struct argument { char name[LONGEST_NAME + 1], value[LONGEST_VALUE + 1]; };
struct example {
    struct argument arg[ARGUMENTS];
    int n;
    char call[LONGEST_VALUE + 1]; /* "sum(x, axis=1)" */
};

/* Sets the value of an argument, or adds the argument. */
static void bind(struct example *e, const char *name, const char *value)
{
    int i = 0;
    while (i < e->n && strcmp(e->arg[i].name, name) != 0) {
        i++;
    }
    if (i < ARGUMENTS) {
        mc_snprintf(e->arg[i].name, sizeof e->arg[i].name, "%s", name);
        mc_snprintf(e->arg[i].value, sizeof e->arg[i].value, "%s", value);
        e->n = MC_MAX(e->n, i + 1);
    }
}

/* Prints v with a decimal point or an exponent, so that it is read as a float: "-72." */
static void add_real(struct mc_str *out, double v)
{
    char text[40];
    mc_snprintf(text, sizeof text, "%.3g", v);
    mc_str_addf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".");
}

/* Arguments of a scalar op: a vector a, numbers b and c, from the domain that tests draw from. */
static void bind_scalar(struct example *e, const struct mc_op *op)
{
    const double lo = op->lo, step = op->hi - op->lo;
    for (int i = 0; i < op->arity; i++) {
        struct mc_str value = { 0 };
        if (op->typing == TYPE_BITS) {
            mc_str_add(&value, i ? "6" : "[12, 5, 1]");
        } else if (op->typing == TYPE_WHERE && i == 0) {
            mc_str_add(&value, "[True, False, True]");
        } else if (op->typing == TYPE_BOOL && op->arity == 1) {
            mc_str_add(&value, "[1.5, inf, nan]");
        } else if (i == 0) {
            static const double part[] = { .1, .45, .9 };
            for (int k = 0; k < 3; k++) {
                mc_str_add(&value, k ? ", " : "[");
                add_real(&value, lo + part[k] * step);
            }
            mc_str_add(&value, "]");
        } else {
            add_real(&value, lo + (i == 1 ? .3 : .8) * step);
        }
        bind(e, (const char[]){ "abc"[i], '\0' }, value.bad ? "0" : value.s);
        mc_str_free(&value);
    }
}

/* The example of the op's row: "x = [1, 2]; sum(x)". Values for missing arguments are found by trying. */
static void bind_own(struct example *e, const char *text)
{
    for (const char *at = text, *end; *at; at = *end ? end + 2 : end) {
        end = strchr(at, ';') ? strchr(at, ';') : at + strlen(at);
        const size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        char name[LONGEST_NAME + 1], value[LONGEST_VALUE + 1];
        if (strncmp(at + word, " = ", 3) == 0) {
            mc_snprintf(name, sizeof name, "%.*s", (int)word, at);
            mc_snprintf(value, sizeof value, "%.*s", (int)(end - at - (ptrdiff_t)word - 3), at + word + 3);
            bind(e, name, value);
        } else {
            mc_snprintf(e->call, sizeof e->call, "%.*s", (int)(end - at), at);
        }
    }
}

/* "name(a, b, axis=0)": all arguments without a default, two for a list, and one axis if the default is all
 * axes. */
static void write_call(struct example *e, const struct mc_op *op, bool axis)
{
    struct mc_str out = { 0 };
    const char *comma = "";
    mc_str_addf(&out, "%s(", op->name);
    for (int i = 0; i < op->sig->nparam; i++) {
        const struct mc_param *p = &op->sig->param[i];
        if (p->optional) {
            if (axis && p->dflt.none && strcmp(p->name, "axis") == 0) {
                mc_str_addf(&out, "%saxis=1", comma);
                comma = ", ";
            }
            continue;
        }
        if (p->kind == ATTR_TENSORS) {
            mc_str_addf(&out, "%sx, 2 * x", comma);
        } else if (p->kind == ATTR_TENSOR) {
            mc_str_addf(&out, "%s%s", comma, p->name);
        }
        for (size_t k = 0; p->kind > ATTR_TENSORS && k < NELEM(settings); k++) {
            if (strcmp(settings[k].name, p->name) == 0) {
                mc_str_addf(&out, "%s%s=%s", comma, p->name, settings[k].value);
                break;
            }
        }
        comma = ", ";
    }
    mc_str_add(&out, ")");
    mc_snprintf(e->call, sizeof e->call, "%s", out.bad ? "" : out.s);
    mc_str_free(&out);
}

/* ---- building an example ---- */

struct built {
    mc_graph *graph;
    mc_node *arg[ARGUMENTS]; /* NULL: a constant */
    mc_node *y;
    int nout;
    bool good;
};
enum { AS_CONSTANTS = -1, AS_INPUTS = MC_NDTYPE };

/* Are different dtypes tried for the argument? */
static bool varies(const struct mc_op *op, const mc_node *value)
{
    return mc_is_float(value->type.dtype) || (op->typing == TYPE_BITS && op->arity);
}

/* Builds the call on constants, or on inputs of unknown size, in their own dtype or in the given one.
 * Integers stay constants: shapes may depend on them. */
static struct built build(const struct example *e, const struct mc_op *op, int as)
{
    struct built b = { .graph = mc_graph_new(), .nout = 1 };
    for (int i = 0; i < e->n && b.graph; i++) {
        const struct argument *a = &e->arg[i];
        if (!*a->value) {
            mc_random(b.graph, a->name, 1);
            continue;
        }
        mc_node *value = mc_formula(b.graph, a->value);
        if (as == AS_CONSTANTS || !(varies(op, value) || value->type.dtype == MC_BOOL)) {
            char text[LONGEST_NAME + LONGEST_VALUE + 4];
            mc_snprintf(text, sizeof text, "%s = %s", a->name, a->value);
            mc_formula(b.graph, text);
            continue;
        }
        const mc_dtype d = as == AS_INPUTS || !varies(op, value) ? value->type.dtype : (mc_dtype)as;
        b.arg[i] = mc_input(b.graph, a->name, d, value->type.rank);
    }
    b.y = b.graph ? mc_formula(b.graph, e->call) : NULL;
    b.good = b.graph && mc_graph_status(b.graph) == MC_OK;
    b.nout = b.good ? b.y->nout : 0;
    return b;
}

static mc_node *result(const struct built *b, int i)
{
    return b->nout > 1 ? mc_item(b->y, i) : b->y;
}

/* The results of an example as text, each line a comment; false: it does not run. */
static bool evaluate(struct mc_str *out, const struct example *e, const struct mc_op *op)
{
    struct built b = build(e, op, AS_CONSTANTS);
    bool good = b.good && (op->flags & OP_IMPURE || b.nout > 0);
    for (int i = 0; good && i < b.nout && !(op->flags & OP_IMPURE); i++) {
        mc_node *y = result(&b, i);
        mc_array *a = NULL;
        good = mc_eval(0, NULL, NULL, 1, &y, &a) == MC_OK && mc_array_size(a) > 0;
        char *text = good ? mc_array_text(a) : NULL;
        if (b.nout > 1) {
            mc_str_addf(out, "# result %d:\n", i);
        }
        for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
            end = strchr(line, '\n');
            mc_str_addf(out, "# %.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
        }
        mc_text_free(text);
        mc_array_unref(&a);
    }
    mc_graph_free(b.graph);
    return good;
}

/* Does a call have this name as an argument? */
static bool mentions(const char *call, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = strchr(call, '('); at && (at = strstr(at, name)); at++) {
        const char before = at[-1], after = at[n];
        if ((before == '(' || before == ' ') && (after == ',' || after == ')')) {
            return true;
        }
    }
    return false;
}

/* Tries values for the arguments from number `at` on until the example runs. */
static bool find_values(struct example *e, const struct mc_op *op, int at, struct mc_str *out)
{
    const struct mc_signature *s = op->sig;
    int i = at;
    for (; i < s->nparam; i++) {
        const struct mc_param *p = &s->param[i];
        bool known = p->optional || p->kind > ATTR_TENSORS;
        known = known || (p->kind == ATTR_TENSOR && !mentions(e->call, p->name));
        for (int k = 0; k < e->n && !known; k++) {
            known = strcmp(e->arg[k].name, p->name) == 0;
        }
        if (!known) {
            break;
        }
    }
    if (i == s->nparam) {
        mc_str_free(out);
        return evaluate(out, e, op);
    }
    const char *name = s->param[i].kind == ATTR_TENSORS ? "x" : s->param[i].name;
    size_t row = 0;
    for (size_t k = 0; k < NELEM(values); k++) {
        row = strcmp(values[k].name, name) == 0 ? k : row;
    }
    for (int k = 0; k < CHOICES && values[row].value[k]; k++) {
        const int n = e->n;
        bind(e, name, values[row].value[k]);
        if (find_values(e, op, i + 1, out)) {
            return true;
        }
        e->n = n;
    }
    return false;
}

static bool find_example(struct example *e, const struct mc_op *op, struct mc_str *out)
{
    if (op->example) {
        bind_own(e, op->example);
    } else if (op->arity) {
        bind_scalar(e, op);
    }
    if (*e->call) {
        return find_values(e, op, 0, out);
    }
    write_call(e, op, true);
    if (find_values(e, op, 0, out)) {
        return true;
    }
    write_call(e, op, false);
    return find_values(e, op, 0, out);
}

/* ---- what the op does to dtypes, sizes, gradients ---- */

/* "float16, float32: the same; int32: float64; bool: refused" */
static void dtypes(struct mc_str *out, const struct example *e, const struct mc_op *op)
{
    static const mc_dtype tried[] = { MC_BOOL,    MC_INT8,    MC_INT32,  MC_INT64,
                                      MC_FLOAT16, MC_FLOAT32, MC_FLOAT64 };
    char says[NELEM(tried)][120];
    for (size_t k = 0; k < NELEM(tried); k++) {
        struct built b = build(e, op, (int)tried[k]);
        bool any = false, same = true;
        int n = 0;
        for (int i = 0; i < e->n && b.good; i++) {
            any |= b.arg[i] && b.arg[i]->type.dtype == tried[k];
        }
        mc_snprintf(says[k], sizeof says[k], "%s", any || !b.good ? "refused" : "");
        for (int i = 0; i < b.nout && any; i++) {
            const mc_dtype d = result(&b, i)->type.dtype;
            same = same && d == tried[k];
            n += mc_snprintf(says[k] + n, n < 100 ? sizeof says[k] - (size_t)n : 0, "%s`%s`", i ? ", " : "",
                             mc_dtype_name(d));
        }
        if (any && same) {
            mc_snprintf(says[k], sizeof says[k], "the same");
        }
        mc_graph_free(b.graph);
    }
    const char *semicolon = "";
    for (size_t k = 0; k < NELEM(tried); k++) {
        bool first = *says[k] != '\0';
        for (size_t j = 0; j < k; j++) {
            first = first && strcmp(says[j], says[k]) != 0;
        }
        if (!first) {
            continue;
        }
        const char *comma = semicolon;
        for (size_t j = k; j < NELEM(tried); j++) {
            if (strcmp(says[j], says[k]) == 0) {
                mc_str_addf(out, "%s`%s`", comma, mc_dtype_name(tried[j]));
                comma = ", ";
            }
        }
        mc_str_addf(out, ": %s", says[k]);
        semicolon = "; ";
    }
}

/* Do the rules for sizes express the size by sizes of the inputs? */
static bool follows(mc_node *size)
{
    size_t count = 0;
    mc_node **all = mc_graph_reach(1, &size, &count);
    bool good = all != NULL;
    for (size_t i = 0; i < count && good; i++) {
        good = !mc_reads_type_only(all[i]) || !all[i]->in[0]->nin;
    }
    mc_free(all);
    return good;
}

/* "size(x, axis=0) - 1", or "?". */
static void size_text(struct mc_str *out, mc_node *y, int axis)
{
    struct mc_str text = { 0 };
    mc_node *n = mc_size_of(y, axis);
    const struct mc_rewrite by_default = { .including = "", .excluding = "" };
    if (mc_rewrite(y->graph, 1, &n, &by_default) == MC_OK && follows(n)) {
        mc_node_print(&text, n, -1);
    }
    if (text.bad || !text.n || text.n > LONGEST_SIZE) {
        mc_str_add(out, "?");
    }
    for (const char *s = text.n && text.n <= LONGEST_SIZE ? text.s : ""; *s; s++) {
        const bool suffix = s > text.s && s[-1] >= '0' && s[-1] <= '9' && strncmp(s, "i64", 3) == 0;
        s += suffix ? 2 : 0;
        mc_str_addn(out, s, suffix ? 0 : 1);
    }
    mc_str_free(&text);
}

/* Sizes of the results as formulas of the inputs' sizes, where the formulas are short. */
static void sizes(struct mc_str *out, const struct example *e, const struct mc_op *op)
{
    struct built b = build(e, op, AS_INPUTS);
    for (int i = 0; i < b.nout; i++) {
        mc_node *y = result(&b, i);
        mc_str_add(out, i ? ", `[" : "`[");
        for (int axis = 0; axis < y->type.rank; axis++) {
            mc_str_add(out, axis ? ", " : "");
            size_text(out, y, axis);
        }
        mc_str_add(out, "]`");
    }
    mc_graph_free(b.graph);
}

static bool is_zero(const mc_node *n)
{
    while (n->nin && (n->op->form == FORM_ALLOC || n->op->form == FORM_CAST)) {
        n = n->in[0];
    }
    double v = 1;
    return mc_const_number(n, &v) && v == 0;
}

/* Is there a gradient of the sum of all results with respect to the argument? 'y'es, 'z'ero, 'n'one; ' ': the
 * argument is not a float. */
static char gradient_of(const struct example *e, const struct mc_op *op, int arg)
{
    struct built b = build(e, op, AS_INPUTS);
    char is = b.arg[arg] && mc_is_float(b.arg[arg]->type.dtype) ? 'n' : ' ';
    mc_node *cost = NULL, *grad = NULL;
    for (int i = 0; i < b.nout && is == 'n'; i++) {
        mc_node *y = result(&b, i);
        if (mc_is_float(y->type.dtype)) {
            y = mc_op(b.graph, "sum", 1, &y, NULL);
            cost = cost ? mc_op(b.graph, "add", 2, (mc_node *[]){ cost, y }, NULL) : y;
        }
    }
    if (cost && b.arg[arg] != cost && mc_grads(cost, 1, &b.arg[arg], &grad, NULL) == MC_OK) {
        is = is_zero(grad) ? 'z' : 'y';
    }
    mc_graph_free(b.graph);
    return is;
}

static void gradients(struct mc_str *out, const struct example *e, const struct mc_op *op)
{
    static const struct { char is; const char *before; } kinds[] = {
        { 'y', "by " }, { 'z', "zero by " }, { 'n', "none by " },
    };
    const size_t from = out->n;
    for (size_t k = 0; k < NELEM(kinds); k++) {
        const char *comma = out->n > from ? "; " : "";
        bool first = true;
        for (int i = 0; i < e->n; i++) {
            if (gradient_of(e, op, i) == kinds[k].is) {
                mc_str_addf(out, "%s%s`%s`", comma, first ? kinds[k].before : "", e->arg[i].name);
                comma = ", ";
                first = false;
            }
        }
    }
    if (out->n == from) {
        mc_str_add(out, "none");
    }
}

/* ---- pages ---- */

/* s with the characters escaped that Markdown would interpret. */
static void words(struct mc_str *out, const char *s, const char *special)
{
    for (; s && *s; s++) {
        if (strchr(special, *s)) {
            mc_str_add(out, "\\");
        }
        mc_str_addn(out, s, 1);
    }
}

/* "sum over axes" as "Sum over axes."; a name or a formula at the start is not capitalised. */
static void sentence(struct mc_str *out, const char *doc)
{
    const size_t n = strspn(doc, "abcdefghijklmnopqrstuvwxyz");
    const bool word = n > 1 && doc[n] == ' ' && strspn(doc + n + 1, "abcdefghijklmnopqrstuvwxyz");
    const char first = (char)(*doc - 'a' + 'A');
    mc_str_addn(out, &first, word ? 1 : 0);
    words(out, doc + word, "*<`");
    mc_str_add(out, ".\n\n");
}

static mc_status op_entry(struct mc_str *out, const struct mc_op *op)
{
    struct example e = { .n = 0 };
    struct mc_str values_of = { 0 };
    bool found = find_example(&e, op, &values_of);
    mc_str_addf(out, "\n## %s\n\n`", op->name);
    mc_op_call_text(out, op);
    mc_str_add(out, "`\\\nC: `");
    mc_op_prototype(out, op);
    mc_str_add(out, "`\n\n");
    sentence(out, op->doc);
    if (op->formula) {
        mc_str_addf(out, "It stands for `%s`.\n\n", op->formula);
    }
    if (found) {
        mc_str_add(out, "```formula\n");
        for (int i = 0; i < e.n; i++) {
            if (*e.arg[i].value) {
                mc_str_addf(out, "%s = %s\n", e.arg[i].name, e.arg[i].value);
            } else {
                mc_str_addf(out, "# %s is mc_random(g, \"%s\", 1)\n", e.arg[i].name, e.arg[i].name);
            }
        }
        mc_str_addf(out, "%s\n%s```\n\n", e.call, values_of.s ? values_of.s : "");
        mc_str_add(out, "| | |\n| --- | --- |\n| dtypes | ");
        dtypes(out, &e, op);
        mc_str_add(out, " |\n| sizes | ");
        sizes(out, &e, op);
        mc_str_add(out, " |\n| gradient | ");
        gradients(out, &e, op);
        mc_str_add(out, " |\n");
    }
    mc_status s = MC_OK;
    if (!found) {
        s = mc_fail(MC_EINTERNAL, "ops: no example of %s runs: %s: %s", op->name, e.call, mc_last_error());
    }
    mc_str_free(&values_of);
    return s;
}

/* "docs/api/ops-over-axes.md" */
static void path_of(struct mc_str *out, const char *folder, const char *family)
{
    mc_str_addf(out, "%s/ops-", folder);
    for (const char *s = family; *s; s++) {
        const char low = (char)(*s >= 'A' && *s <= 'Z' ? *s + 'a' - 'A' : *s);
        const bool word = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') || low == '-';
        if (word || low == ' ') {
            mc_str_addn(out, word ? &low : "-", 1);
        }
    }
    mc_str_add(out, ".md");
}

static bool is_public(const struct mc_op *op)
{
    return !(op->flags & (OP_HIDDEN | OP_LEAF));
}

/* Writes the page of the family whose first op is `first`; *next: the op after its last. */
static mc_status page(const char *folder, int first, int *next)
{
    const struct mc_op *op = mc_op_at(first);
    const char *family = mc_op_family(op), *rules = mc_op_family_rules(op);
    struct mc_str text = { 0 }, path = { 0 };
    mc_status s = MC_OK;
    int entries = 0;
    mc_str_addf(&text, "# Ops: %s\n\nWritten by `make docs` from the table of ops; ", family);
    mc_str_add(&text, "how to read it: [the reference](index.md).\n");
    if (rules) {
        mc_str_addf(&text, "\n%s\n", rules);
    }
    int i = first;
    for (; s == MC_OK && (op = mc_op_at(i)) && strcmp(mc_op_family(op), family) == 0; i++) {
        if (is_public(op)) {
            s = op_entry(&text, op);
            entries++;
        }
    }
    path_of(&path, folder, family);
    if (s == MC_OK && entries) {
        s = text.bad || path.bad ? MC_EMEMORY : mc_file_write(path.s, text.s, text.n);
    }
    mc_str_free(&text);
    mc_str_free(&path);
    *next = i;
    return s;
}

mc_status mc_ops_pages(const char *folder)
{
    mc_status s = MC_OK;
    for (int i = 0; s == MC_OK && i < mc_op_count();) {
        s = page(folder, i, &i);
    }
    return s;
}

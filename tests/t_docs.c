/* t_docs.c: what the documents say is so: their formulas parse, their mistakes are mistakes, the lines they
 * show are lines of the tree, the files and functions they name are there, their programs print what stands
 * below them, and the formulas of their tables give what stands beside them. */
#include "cuda_test.h"
#include "program.h"
#include "graph/graph.h"
#include "own_folder.h"
#include "program.h"
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <monochord_nn.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const documents[] = { "docs/text-form.md", "docs/map.md", "docs/adding-an-op.md", "docs/adding-a-rule.md", "docs/adding-a-solver.md", "docs/convolution.md", "docs/pooling.md", "docs/networks.md",
                                         "docs/gpu.md", "docs/math.md", "docs/glossary.md", "docs/limits.md", "docs/design/gpu.md",
                                         "docs/design/convolution.md", "docs/design/kernels.md", "docs/design/math.md", "README.md",
                                         "docs/first-steps.md", "docs/tutorial.md", "docs/from-numpy.md", "docs/from-pytorch.md",
                                         "docs/python.md", "docs/theano.md", "docs/threads.md", "docs/deploy.md", "docs/export.md", "CONTRIBUTING.md", "CHANGELOG.md" };
/* Their c blocks are run. */
static const char *const with_programs[] = { "docs/tutorial.md", "docs/from-numpy.md", "docs/from-pytorch.md",
                                             "docs/threads.md", "docs/deploy.md", "docs/first-steps.md", "docs/export.md" };
/* For users alone: the functions they name are public. */
static const char *const taught[] = { "docs/tutorial.md", "docs/from-numpy.md", "docs/from-pytorch.md",
                                      "docs/threads.md", "docs/deploy.md", "docs/export.md" };

static char *slurp(const char *name)
{
    char path[1024];
    char *text;
    size_t n;
    snprintf(path, sizeof path, TEST_ROOT "/../%s", name);
    return mc_file_read(path, &text, &n) == MC_OK ? text : NULL;
}

/* The next fenced block: its info line and its text, both cut out of *s; false: there is none. */
static bool block(char **s, char **info, char **body)
{
    char *open = strncmp(*s, "```", 3) == 0 ? *s : strstr(*s, "\n```");
    if (!open) {
        return false;
    }
    *info = open + (*open == '\n' ? 4 : 3);
    *body = strchr(*info, '\n');
    char *end = *body ? strstr(*body, "\n```") : NULL;
    if (!end) {
        return false;
    }
    *(*body)++ = '\0';
    *end = '\0';
    *s = end + 4;
    return true;
}

static void check_formula(const char *text, bool good, const char *where)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, text);
    CHECK((mc_graph_status(g) == MC_OK) == good, "%s:\n%s\n%s", where, text,
          good ? mc_error(g) : "is no mistake");
    CHECK(good || strchr(mc_error(g), '^'), "%s: no caret: %s", where, mc_error(g));
    mc_graph_free(g);
}

TEST(formulas_of_the_documents_parse)
{
    int formulas = 0, mistakes = 0;
    for (size_t i = 0; i < NELEM(documents); i++) {
        char *text = slurp(documents[i]), *s = text, *info, *body;
        REQUIRE(text, "%s is not there", documents[i]);
        while (block(&s, &info, &body)) {
            bool good = strcmp(info, "formula") == 0, bad = strcmp(info, "mistake") == 0;
            if (good || bad) {
                check_formula(body, good, documents[i]);
                formulas += good;
                mistakes += bad;
            }
        }
        mc_free(text);
    }
    CHECK(formulas >= 10 && mistakes >= 4, "%d formulas, %d mistakes", formulas, mistakes);
}

/* A model is made, to its cost and its updates; one that is a mistake has a caret. */
static void check_model(const char *text, bool good, const char *where)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, where, text);
    bool made = mc_graph_status(g) == MC_OK && mc_net_updates(net, mc_net_cost(net, MC_TRAINING), NULL).n > 0;
    CHECK(made == good, "%s:\n%s\n%s", where, text, good ? mc_error(g) : "is no mistake");
    CHECK(good || strchr(mc_error(g), '^'), "%s: no caret: %s", where, mc_error(g));
    mc_net_free(net);
    mc_graph_free(g);
}

TEST(models_of_the_documents_are_read)
{
    int models = 0;
    char *text = slurp("docs/networks.md"), *s = text, *info, *body;
    REQUIRE(text, "docs/networks.md is not there");
    while (block(&s, &info, &body)) {
        bool good = strcmp(info, "model") == 0, bad = strcmp(info, "model mistake") == 0;
        if (good || bad) {
            check_model(body, good, "model.txt");
            models++;
        }
    }
    CHECK(models >= 5, "%d models", models);
    mc_free(text);
}

/* Without the blanks around it. */
static char *trimmed(char *line)
{
    size_t n = strlen(line);
    while (n && (line[n - 1] == ' ' || line[n - 1] == '\n')) {
        line[--n] = '\0';
    }
    return line + strspn(line, " ");
}

TEST(lines_shown_are_lines_of_the_tree)
{
    int lines = 0;
    for (size_t i = 0; i < NELEM(documents); i++) {
        char *text = slurp(documents[i]), *s = text, *info, *body;
        REQUIRE(text, "%s is not there", documents[i]);
        while (block(&s, &info, &body)) {
            if (strncmp(info, "c from ", 7) != 0) {
                continue;
            }
            char *file = slurp(info + 7);
            REQUIRE(file, "%s names %s", documents[i], info + 7);
            for (char *line = strtok(body, "\n"); line; line = strtok(NULL, "\n")) {
                CHECK(strstr(file, trimmed(line)), "%s shows a line that %s has not: %s", documents[i],
                      info + 7, line);
                lines++;
            }
            mc_free(file);
        }
        mc_free(text);
    }
    CHECK(lines > 10, "%d lines", lines);
}

/* What stands in `back quotes` and begins like a path of the tree. */
TEST(files_named_are_there)
{
    static const char *const begins[] = { "src/", "docs/", "tests/", "include/", "scripts/" };
    int named = 0;
    for (size_t i = 0; i < NELEM(documents); i++) {
        char *text = slurp(documents[i]);
        REQUIRE(text, "%s is not there", documents[i]);
        for (size_t k = 0; k < NELEM(begins); k++) {
            for (char *at = text; (at = strstr(at, begins[k])); at++) {
                size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-");
                char path[1024];
                struct stat st;
                if (at == text || at[-1] != '`' || at[n] != '`') {
                    continue;
                }
                snprintf(path, sizeof path, TEST_ROOT "/../%.*s", (int)n, at);
                CHECK(stat(path, &st) == 0, "%s names %.*s", documents[i], (int)n, at);
                named++;
            }
        }
        mc_free(text);
    }
    CHECK(named > 50, "%d", named);
}

TEST(the_map_shows_every_folder)
{
    char *map = slurp("docs/map.md");
    DIR *dir = opendir(TEST_ROOT "/../src");
    REQUIRE(map && dir, "the map and src are there");
    for (struct dirent *e; (e = readdir(dir));) {
        char word[300], path[600];
        snprintf(word, sizeof word, "| `src/%s` |", e->d_name);
        snprintf(path, sizeof path, TEST_ROOT "/../src/%s", e->d_name);
        DIR *inside = *e->d_name == '.' ? NULL : opendir(path);
        int files = 0;
        for (struct dirent *f; inside && (f = readdir(inside));) {
            files += *f->d_name != '.';
        }
        if (inside) {
            closedir(inside);
        }
        CHECK(!files || strstr(map, word), "src/%s is not on the map", e->d_name);
    }
    closedir(dir);
    mc_free(map);
}

/* ---- programs: the c blocks of a section are one program, its output blocks what that prints ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 }; /* a program without the sanitizer cannot load the library */
#else
enum { SANITIZED = 0 };
#endif

/* Is text what the pattern says?  Three points stand for anything within a line. */
static bool alike(const char *text, const char *pattern)
{
    for (; strncmp(pattern, "...", 3) != 0; text++, pattern++) {
        if (*text != *pattern) {
            return false;
        }
        if (!*text) {
            return true;
        }
    }
    for (;; text++) {
        if (alike(text, pattern + 3)) {
            return true;
        }
        if (!*text || *text == '\n') {
            return false;
        }
    }
}

/* The code is a whole program, or what stands in main. */
static char *ran(const char *code, int *status)
{
    struct mc_str whole = { 0 }, command = { 0 };
    const bool bare = !strstr(code, "int main(");
    mc_str_add(&whole, bare ? "#include <monochord_nn.h>\nint main(void)\n{\n#line 1\n" : "");
    mc_str_add(&whole, code);
    mc_str_add(&whole, bare ? "}\n" : "");
    put_file("program.c", whole.s, whole.n);
    mc_str_addf(&command,
                "{ cd %s && cc -std=c11 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L -I'%s/../include' "
                "program.c "
                "-L@ -L@/.. -lmonochord -lm -lpthread -Wl,-rpath,@:@/.. -o program && ./program; }",
                folder, TEST_ROOT);
    char *said = output_of(command.s, status);
    mc_str_free(&whole);
    mc_str_free(&command);
    return said;
}

struct section {
    const char *document, *title;
    struct mc_str code, output;
    bool without_gpu; /* what is printed there */
};

/* True if it cannot be run here: made for another processor, or no compiler. */
static bool run_section(struct section *c, int *programs)
{
    int status = 0;
    if (c->code.n) {
        const char *said = ran(c->code.s, &status), *want = c->output.s ? c->output.s : "";
        const bool gpu = c->without_gpu && nvrtc_here() && mc_cuda_count() > 0;
        CHECK(status == 0 || status == 126 || status == 127, "%s, '%s' ends with %d:\n%s", c->document,
              c->title, status, said);
        CHECK(status || gpu || alike(said, want), "%s, '%s' prints\n%s\nnot\n%s", c->document, c->title, said,
              want);
        (*programs)++;
    }
    c->code.n = c->output.n = 0;
    c->without_gpu = false;
    return status == 126 || status == 127;
}

/* The last heading between two places. */
static char *heading(char *from, const char *to)
{
    char *last = NULL;
    for (char *h = from; (h = strstr(h, "\n## ")) && h < to; h++) {
        last = h + 4;
    }
    return last;
}

TEST(programs_of_the_documents_print_what_they_show)
{
    int programs = 0;
    bool foreign = false;
    if (SANITIZED) {
        SKIP("programs without the sanitizer cannot load the library");
    }
    for (size_t i = 0; i < NELEM(with_programs) && !foreign; i++) {
        char *text = slurp(with_programs[i]), *s = text, *info, *body, *title;
        struct section c = { .document = with_programs[i] };
        REQUIRE(text, "%s is not there", with_programs[i]);
        for (char *from = s; block(&s, &info, &body) && !foreign; from = s) {
            if ((title = heading(from, info))) {
                foreign = run_section(&c, &programs);
                title[strcspn(title, "\n")] = '\0';
                c.title = title;
            }
            const bool code = strcmp(info, "c") == 0;
            if (code || strncmp(info, "output", 6) == 0) {
                mc_str_addf(code ? &c.code : &c.output, "%s\n", body);
                c.without_gpu |= !code && strstr(info, "without a GPU");
            }
        }
        foreign = foreign || run_section(&c, &programs);
        mc_str_free(&c.code);
        mc_str_free(&c.output);
        mc_free(text);
    }
    drop_folder();
    if (foreign) {
        SKIP("no compiler here, or what it makes does not run here");
    }
    CHECK(programs >= 10, "%d programs", programs);
}

/* ---- tables of equivalents ---- */

/* The next cell of a row, without blanks around it, \| as |; *at is behind it.  NULL: there is none. */
static char *cell(char **at)
{
    char *from = *at, *to = from, *c = from;
    if (!*from) {
        return NULL;
    }
    for (; *c && *c != '|'; c++) {
        c += c[0] == '\\' && c[1] == '|';
        *to++ = *c;
    }
    *at = c + (*c == '|');
    *to = '\0';
    return trimmed(from);
}

/* The next text in `back quotes`; *at is behind it. */
static char *quoted(char **at)
{
    char *open = strchr(*at, '`'), *end = open ? strchr(open + 1, '`') : NULL;
    if (!end) {
        return NULL;
    }
    *end = '\0';
    *at = end + 1;
    return open + 1;
}

/* Each input holds 1, 2, 3, ...; of bools True, False, True, ... */
static mc_array *counted(const mc_node *n)
{
    mc_array *a = mc_array_new(mc_node_dtype(n), mc_node_rank(n), mc_node_dims(n));
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        const double v = a->dtype == MC_BOOL ? (double)(i % 2 == 0) : (double)(i + 1);
        mc_store_f64(a->dtype, a->data + (size_t)i * mc_dtype_size(a->dtype), v);
    }
    return a;
}

/* What the formula gives, its results joined by "; ", each on one line; NULL: the graph or the thread has the
 * error. */
static char *value_of(mc_graph *g, const char *formula, int ninput, mc_node *const *input, struct mc_str *out)
{
    mc_arg in[16], slot[8];
    mc_array *result[8] = { 0 };
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = formula,
                                               .mode = "FAST_COMPILE",
                                               .on_unused = "ignore",
                                               .ninput = ninput,
                                               .input = input });
    mc_status s = f ? MC_OK : MC_EARG;
    for (int i = 0; i < ninput; i++) {
        in[i] = mc_arg_array(counted(input[i]));
    }
    const int nout = f ? mc_function_noutputs(f) : 0;
    for (int i = 0; i < nout; i++) {
        slot[i] = mc_arg_slot(&result[i]);
    }
    s = s < 0 ? s : mc_call_args(f, ninput, in, nout, slot);
    for (int i = 0; i < nout; i++) {
        char *text = s < 0 ? NULL : mc_array_text(result[i]);
        mc_str_add(out, i ? "; " : "");
        for (const char *c = text; c && *c; c++) {
            if (!isspace((unsigned char)*c) || !isspace((unsigned char)c[1])) {
                mc_str_addn(out, isspace((unsigned char)*c) ? " " : c, 1);
            }
        }
        mc_text_free(text);
        mc_array_unref(&result[i]);
    }
    for (int i = 0; i < ninput; i++) {
        mc_array *a = (mc_array *)in[i].u.array;
        mc_array_unref(&a);
    }
    mc_function_free(f);
    return s < 0 ? NULL : out->s;
}

/* The same text, but for blanks inside brackets and the last digits of numbers. */
static bool same_value(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, " ");
        b += strspn(b, " ");
        char *after_a, *after_b;
        const double x = strtod(a, &after_a), y = strtod(b, &after_b);
        if (after_a != a && after_b != b) {
            if (!(x == y || fabs(x - y) <= 1e-3 * fabs(y) || (isnan(x) && isnan(y)))) {
                return false;
            }
            a = after_a;
            b = after_b;
        } else if (*a != *b) {
            return false;
        } else if (!*a++) {
            return true;
        } else {
            b++;
        }
    }
}

static void check_equivalent(const char *document, const char *declared, const char *formula,
                             const char *gives)
{
    mc_graph *g = mc_graph_new();
    mc_node *input[16];
    int n = 0;
    struct mc_str value = { 0 };
    mc_random(g, "rng", 1);
    mc_formula(g, declared);
    for (const char *at = declared; (at = strstr(at, "input ")); at++) {
        char name[64] = "";
        memcpy(name, at + 6, strcspn(at + 6, " "));
        input[n++] = mc_var(g, name);
    }
    const char *got = value_of(g, formula, n, input, &value);
    CHECK(got, "%s: %s: %s", document, formula, mc_error(g)[0] ? mc_error(g) : mc_last_error());
    CHECK(!got || !*gives || same_value(got, gives), "%s: %s gives %s, not %s", document, formula, got,
          gives);
    mc_str_free(&value);
    mc_graph_free(g);
}

static void check_line(const char *document, const char *model, const char *line)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, document, model);
    mc_net_add(net, "%s", line);
    CHECK(mc_graph_status(g) == MC_OK, "%s: %s", document, mc_error(g));
    mc_net_free(net);
    mc_graph_free(g);
}

/* A table headed "... | formula | gives | ..." has formulas over what the last block `declare` declares; one
 * headed "... | line | ..." has lines that may follow the last block `model`. */
struct tables {
    const char *document, *declared, *model;
    enum { NONE, FORMULA, LINE } kind; /* of the table at hand */
    int checked;
};

/* Cuts a row up; checks what stands in back quotes in its second cell. */
static void check_row(struct tables *t, char *row)
{
    char *at = row + 1, *theirs = cell(&at), *ours = cell(&at), *gives = cell(&at);
    if (!theirs || !ours || !gives) {
        return;
    }
    if (strcmp(ours, "formula") == 0 || strcmp(ours, "line") == 0) {
        t->kind = *ours == 'f' ? FORMULA : LINE;
        return;
    }
    const char *value = t->kind == FORMULA ? quoted(&gives) : NULL;
    for (char *q; t->kind != NONE && (q = quoted(&ours)); t->checked++) {
        if (t->kind == FORMULA) {
            check_equivalent(t->document, t->declared, q, value ? value : "");
        } else {
            check_line(t->document, t->model, q);
        }
    }
}

static int check_tables(const char *document, char *text)
{
    struct tables t = { .document = document, .declared = "", .model = "" };
    char *next;
    for (char *line = text; line; line = next) {
        if (strncmp(line, "```", 3) == 0) {
            char *info, *body;
            next = line;
            if (!CHECK(block(&next, &info, &body), "%s: a block has no end", document)) {
                break;
            }
            t.declared = strcmp(info, "declare") == 0 ? body : t.declared;
            t.model = strcmp(info, "model") == 0 ? body : t.model;
            next = strchr(next, '\n');
            next = next ? next + 1 : NULL;
            continue;
        }
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (*line == '|') {
            check_row(&t, line);
        } else {
            t.kind = NONE;
        }
    }
    return t.checked;
}

TEST(tables_of_equivalents_hold)
{
    static const struct { const char *document; int rows; } tables[] = {
        { "docs/from-numpy.md", 80 },
        { "docs/from-pytorch.md", 60 },
    };
    for (size_t i = 0; i < NELEM(tables); i++) {
        char *text = slurp(tables[i].document);
        REQUIRE(text, "%s is not there", tables[i].document);
        const int rows = check_tables(tables[i].document, text);
        CHECK(rows >= tables[i].rows, "%s: %d rows", tables[i].document, rows);
        mc_free(text);
    }
}

/* ---- names ---- */

/* ---- messages ---- */

static mc_status nothing(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out)
{
    (void)arg, (void)nin, (void)in, (void)nout, (void)out;
    return MC_OK;
}

/* What makes each message of docs/export.md, in its order: y is exported. */
static const struct refusal {
    const char *text, *inputs, *shapes, *file;
    int freestanding;
} refusals[] = {
    { "input x float32[?]; y = x[x > 0]",                        "x",    "x[4]",       "f.c" },
    { "input x float32[?]; input z float32[?]; y = ifelse(sum(x) > 0, x, z)", "x, z", "x[4], z[4]", "f.c" },
    { "input x float32[?, 3]; y = scan(r in x, h from x[0]: h = h + r; yield h; until sum(h) > 3)", "x", "x[4, 3]", "f.c" },
    { "input x float32[4]; y = scan(k in arange(3), h from 0.0f32: h = h + sum(x[:k]))", "x", NULL, "f.c" },
    { "input x float32[?]; input n int64; y = x[:n]",            "x, n", "x[4]",       "f.c" },
    { "input x float32[2]; y = x + 1",                           "x",    NULL,         NULL  }, /* needs a GPU: t_export.c */
    { "input x float16[4, 4]; y = dot(x, x)",                    "x",    NULL,         "f.c" },
    { "input x float64[4]; y = x + 1",                           "x",    NULL,         "f.c", 1 },
    { "input x float32[4]; y = sin(x)",                          "x",    NULL,         "f.c", 1 },
    { "input x float32[3, 1, 2]; y = ctc_loss(x, [[1]])",        "x",    NULL,         "f.c", 1 },
    { "input x float16[3, 1, 2]; y = ctc_loss(x, [[1]])",        "x",    NULL,         "f.c" },
    { "input x float16[4]; y = sort(x)",                         "x",    NULL,         "f.c" },
    { "input x float64[4]; y = f(x)",                            "x",    NULL,         "f.c" },
    { "input x float32[?, 784]; y = x + 1",                      "x",    NULL,         "f.c" },
    { "input x float32[?, 3]; y = x + 1",                        "x",    "x[2, 4]",    "f.c" },
    { "input x float32[?]; y = x + 1",                           "x",    "x[2], y[2]", "f.c" },
    { "input x float32[2]; y = x + 1",                           "x",    NULL,         "f.txt" },
};

static void check_refusal(const struct refusal *r, const char *message)
{
    mc_graph *g = mc_graph_new();
    mc_register(g, &(mc_custom){ .name = "f", .nin = 1, .nout = 1, .run = nothing });
    mc_formula(g, r->text);
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "f", .inputs = r->inputs, .outputs = "y" });
    CHECK(f, "%s: %s", r->text, mc_error(g));
    if (f && r->file) {
        const mc_export_function one = { f, "f", r->shapes };
        mc_status s = mc_export(&(mc_export_spec){
            .path = in_folder(r->file), .nfunction = 1, .function = &one, .freestanding = r->freestanding });
        CHECK(s < 0 && strstr(mc_last_error(), message), "%s: not '%s', but '%s'", r->text, message,
              s < 0 ? mc_last_error() : "exported");
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(messages_of_exports_are_given)
{
    char *text = slurp("docs/export.md"), *next = text;
    size_t n = 0;
    bool table = false;
    REQUIRE(text, "docs/export.md is not there");
    mc_flag_set("device", "cpu");
    for (char *line = next; line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (strncmp(line, "| message |", 11) == 0 || line[0] != '|') {
            table = line[0] == '|';
        } else if (table && line[1] != '-') {
            const char *message = quoted(&line);
            REQUIRE(message && n < NELEM(refusals), "a message too many: %s", line);
            check_refusal(&refusals[n++], message);
        }
    }
    CHECK(n == NELEM(refusals), "%zu messages", n);
    drop_folder();
    mc_free(text);
}

TEST(functions_named_are_in_the_headers)
{
    static const char *const headers[] = { "include/monochord.h", "include/monochord_nn.h",
                                           "include/monochord_ops.h" };
    struct mc_str all = { 0 };
    int names = 0;
    for (size_t i = 0; i < NELEM(headers); i++) {
        char *text = slurp(headers[i]);
        mc_str_addf(&all, "%s", text ? text : "");
        mc_free(text);
    }
    for (size_t i = 0; i < NELEM(taught); i++) {
        char *text = slurp(taught[i]);
        REQUIRE(text && all.s, "%s is not there", taught[i]);
        for (const char *at = text; *at; at++) {
            const size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
            char word[128];
            if ((strncmp(at, "mc_", 3) == 0 || strncmp(at, "MC_", 3) == 0) && n < sizeof word) {
                snprintf(word, sizeof word, "%.*s", (int)n, at);
                CHECK(strstr(all.s, word), "%s names %s", taught[i], word);
                names++;
            }
            at += n ? n - 1 : 0;
        }
        mc_free(text);
    }
    CHECK(names > 100, "%d names", names);
    mc_str_free(&all);
}

/* A script of the repository that compares documents with what they are made from. */
static void check_by_script(const char *name)
{
    char command[256];
    int status;
    output_of("python3 -c pass", &status);
    if (status) {
        SKIP("no python3");
    }
    snprintf(command, sizeof command, "python3 " TEST_ROOT "/../scripts/%s.py --check", name);
    const char *text = output_of(command, &status);
    CHECK(status == 0, "%.2000s", text);
}

/* The pages of docs/api about the public headers are what the headers say; `make docs` writes them. */
TEST(reference_is_what_the_headers_say)
{
    check_by_script("api");
}

/* The tables of docs/scale.md are what the model makes of bench/results. */
TEST(scale_is_of_what_was_measured)
{
    check_by_script("scale");
}

/* Every link of the documents, and every heading that one names, is there: the site is not made otherwise. */
TEST(links_lead_somewhere)
{
    int status;
    output_of("python3 -c pass", &status);
    if (status) {
        SKIP("no python3");
    }
    const char *text = output_of("d=$(mktemp -d) && python3 " TEST_ROOT
                                 "/../scripts/site.py $d/site >$d/said 2>&1; "
                                 "s=$?; cat $d/said; rm -r $d; exit $s",
                                 &status);
    CHECK(status == 0 && strstr(text, "pages"), "%.2000s", text);
}

/* t_docs.c: what the documents say is so: their formulas parse, their mistakes are mistakes, the lines they show
 * are lines of the tree, the files they name are there. */
#include "program.h"
#include "graph/graph.h"
#include <dirent.h>
#include <monochord_nn.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const documents[] = { "docs/text-form.md", "docs/map.md", "docs/adding-an-op.md", "docs/adding-a-rule.md", "docs/adding-a-solver.md", "docs/convolution.md", "docs/pooling.md", "docs/networks.md",
                                         "docs/gpu.md", "docs/math.md", "docs/chain.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md" };

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
    CHECK((mc_graph_status(g) == MC_OK) == good, "%s:\n%s\n%s", where, text, good ? mc_error(g) : "is no mistake");
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
                CHECK(strstr(file, trimmed(line)), "%s shows a line that %s has not: %s", documents[i], info + 7, line);
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

/* The pages of docs/api about the public headers are what the headers say; `make docs` writes them. */
TEST(reference_is_what_the_headers_say)
{
    int status;
    output_of("python3 -c pass", &status);
    if (status) {
        SKIP("no python3");
    }
    const char *text = output_of("python3 " TEST_ROOT "/../scripts/api.py --check", &status);
    CHECK(status == 0, "%.2000s", text);
}

/* Every link of the documents, and every heading that one names, is there: the site is not made otherwise. */
TEST(links_lead_somewhere)
{
    int status;
    output_of("python3 -c pass", &status);
    if (status) {
        SKIP("no python3");
    }
    const char *text = output_of("d=$(mktemp -d) && python3 " TEST_ROOT "/../scripts/site.py $d/site >$d/said 2>&1; "
                                 "s=$?; cat $d/said; rm -r $d; exit $s",
                                 &status);
    CHECK(status == 0 && strstr(text, "pages"), "%.2000s", text);
}

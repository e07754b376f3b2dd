/* bundle_formulas.h: functions of formulas beside what is loaded from their files; and files in which a byte
 * is wrong. */
#ifndef BUNDLE_FORMULAS_H
#define BUNDLE_FORMULAS_H

#include "bundle/bundle.h"
#include "bundle_words.h"
#include <fcntl.h>
#include <unistd.h>

struct formulas { const char *inputs, *lines, *outputs, *updates, *mode; };

static inline mc_function *compiled(mc_graph *g, const struct formulas *row)
{
    mc_array *w = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 3 }, -1, 1), *one = mc_array_scalar(MC_FLOAT32, 1);
    mc_shared_new(g, "W", w);
    mc_shared_new(g, "c", one);
    mc_random(g, "rng", 17);
    mc_array_unref(&w), mc_array_unref(&one);
    CHECK(mc_register(
              g, &(mc_custom){ .name = "smooth",
                               .nin = 1,
                               .nout = 1,
                               .kernel = "a / (1 + M(exp)(-a))",
                               .kernel_grad = { "g * (sigmoid(a) + a * sigmoid(a) * (1 - sigmoid(a)))" } }) ==
              MC_OK,
          "%s", mc_last_error());
    if (row->lines) {
        mc_formula(g, row->lines);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "formulas",
                                               .inputs = row->inputs,
                                               .outputs = row->outputs,
                                               .updates = row->updates,
                                               .mode = row->mode,
                                               .on_unused = "ignore" });
    CHECK(f, "%s: %s", row->outputs, mc_error(g));
    return f;
}

/* Are the bodies of all loops and branches compiled, in f and in the loaded one alike? */
static inline void same_bodies(const mc_function *f, const mc_function *g)
{
    REQUIRE(f && g && f->code->program.step.n == g->code->program.step.n, "other steps");
    for (size_t i = 0; i < f->code->program.step.n; i++) {
        const struct mc_function *a = f->loop ? f->loop[i] : NULL, *b = g->loop ? g->loop[i] : NULL;
        CHECK(!a == !b, "step %zu has a body in one alone", i);
        if (a && b) {
            same_bodies(a, b);
        }
        for (int side = 0; side < 2; side++) {
            const struct mc_function *own = f->branch ? f->branch[i][side] : NULL,
                                     *other = g->branch ? g->branch[i][side] : NULL;
            CHECK(!own == !other, "step %zu has a side in one alone", i);
            if (own && other) {
                same_bodies(own, other);
            }
        }
    }
}

static inline void same_formulas(const struct formulas *row)
{
    mc_graph *g = given_graph();
    mc_function *f = compiled(g, row), *loaded = f ? reloaded(f) : NULL;
    if (f && loaded) {
        same_bodies(f, loaded);
        CHECK(strcmp(mc_function_graph_text(f), mc_function_graph_text(loaded)) == 0, "another text");
        for (int i = 0; i < mc_function_nsteps(f); i++) {
            const char *a = mc_function_step(f, i).text;
            char *kept = mc_strdup(a);
            CHECK(strcmp(kept, mc_function_step(loaded, i).text) == 0, "step %d: %s", i, kept);
            mc_free(kept);
        }
    }
    same_rounds(f, loaded, row->inputs, row->outputs);
    mc_function *again = loaded ? reloaded(loaded) : NULL; /* with the variables as they are now */
    same_rounds(loaded, again, row->inputs, row->outputs);
    mc_function_free(again);
    mc_function_free(loaded);
    mc_function_free(f);
    mc_graph_free(g);
}

#define SAME_FORMULAS(...)                                                                                   \
    ON_ITS_DEVICE();                                                                                        \
    const struct formulas rows[] = { __VA_ARGS__ };                                                          \
    for (size_t i = 0; i < NELEM(rows); i++) {                                                               \
        same_formulas(&rows[i]);                                                                             \
    }                                                                                                        \
    drop_folder()

/* ---- files in which a byte is wrong ---- */

/* Each byte is changed: no such file is loaded. */
static inline void no_byte_may_change(const struct formulas *row)
{
    mc_graph *g = given_graph();
    mc_function *f = compiled(g, row), *h = NULL;
    char *data = NULL;
    size_t n = 0, taken = 0, at = 0;
    REQUIRE(f && mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    REQUIRE(mc_file_read(in_folder("a.mcf"), &data, &n) == MC_OK, "%s", mc_last_error());
    const int fd = open(in_folder("flipped.mcf"), O_RDWR | O_CREAT, 0666);
    REQUIRE(fd >= 0 && write(fd, data, n) == (ssize_t)n, "not written");
    const char *path = in_folder("flipped.mcf");
    for (size_t i = 0; i < n; i++) {
        const char wrong = (char)(data[i] ^ (1 << i % 8));
        REQUIRE(pwrite(fd, &wrong, 1, (off_t)i) == 1, "not written");
        if (mc_bundle_load(path, 1, &h) != MC_EFORMAT) {
            taken++, at = i;
        }
        mc_function_free(h);
        REQUIRE(pwrite(fd, &data[i], 1, (off_t)i) == 1, "not written");
    }
    CHECK(!taken, "%zu of %zu changed bytes are no error; the last is byte %zu", taken, n, at);
    CHECK(mc_bundle_load(path, 1, &h) == 1, "%s", mc_last_error());
    mc_function_free(h);
    close(fd);
    mc_free(data);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* Each byte of the description is changed, and the checksum fits: loading ends in a function, which has the
 * bodies that it needs, or in an error. */
static inline void wrong_numbers(const struct formulas *row)
{
    mc_graph *g = given_graph();
    mc_function *f = compiled(g, row), *h = NULL;
    char *data = NULL;
    size_t n = 0;
    int loaded = 0, refused = 0;
    struct mc_bundle_header head;
    REQUIRE(f && mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    REQUIRE(mc_file_read(in_folder("a.mcf"), &data, &n) == MC_OK, "%s", mc_last_error());
    memcpy(&head, data, sizeof head);
    for (size_t i = sizeof head; i < sizeof head + head.description; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct mc_bundle_header now = head;
            data[i] ^= (char)(1 << bit);
            now.sums[0] = mc_bundle_checksum(data + sizeof head, (size_t)head.description);
            memcpy(data, &now, sizeof now);
            REQUIRE(mc_file_write(in_folder("wrong.mcf"), data, n) == MC_OK, "%s", mc_last_error());
            const int have = mc_bundle_load(in_folder("wrong.mcf"), 1, &h);
            CHECK(have >= 1 ? h != NULL : have < 0 && !h && *mc_last_error(), "%d after byte %zu", have, i);
            *(have >= 1 ? &loaded : &refused) += 1;
            mc_function_free(h);
            data[i] ^= (char)(1 << bit);
        }
    }
    CHECK(refused > 1000 && loaded > 100, "%d loaded, %d refused", loaded, refused);
    mc_free(data);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* Saving and loading end in an error or in the same function, whichever allocation fails.  inputs: x, v */
static inline void every_failed_allocation(const struct formulas *small)
{
    mc_graph *g = given_graph();
    struct formulas row = *small;
    row.mode = NULL;
    mc_function *f = compiled(g, &row), *h = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("a.mcf"));
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 2 }, -1, 1),
             *v = sample(MC_FLOAT32, 1, (int64_t[]){ 2 }, -1, 1);
    REQUIRE(f, "%s", mc_error(g));
    ALLOC_FAIL_LOOP {
        const mc_status s = mc_function_save(f, path);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        remove(path);
    }
    REQUIRE(mc_function_save(f, path) == MC_OK, "%s", mc_last_error());
    ALLOC_FAIL_LOOP {
        const int n = mc_bundle_load(path, 1, &h);
        CHECK(n == 1 || (ALLOC_FAILED && n == MC_EMEMORY), "%d: %s", n, mc_last_error());
        if (n == 1 && ALLOC_FAILED) { /* what failed is not missed */
            same_call(f, h, 2, (mc_arg[]){ mc_arg_array(x), mc_arg_array(v) }, "loaded");
        }
        mc_function_free(h);
    }
    mc_array_unref(&x), mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

#endif

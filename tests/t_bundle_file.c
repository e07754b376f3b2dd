/* t_bundle_file.c: the files of bundles: wrong calls, what cannot be saved, sets of instructions, damaged and
 * cut files, places that cannot be written, memory that ends, machines with nothing but the library. */
#include "bundle/bundle.h"
#include "bundle_words.h"
#include "program.h"
#include <dirent.h>
#include <fcntl.h>
#include <monochord_nn.h>
#include <unistd.h>

static int files(void)
{
    DIR *d = opendir(in_folder(""));
    int n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* A function of "x = 2" that needs no compiler, with a variable. */
static mc_function *plain(mc_graph **g)
{
    *g = mc_graph_new();
    mc_array *a = mc_array_scalar(MC_FLOAT32, 3);
    mc_shared_new(*g, "W", a);
    mc_array_unref(&a);
    mc_input(*g, "x", MC_FLOAT32, 0);
    mc_function *f = mc_compile(*g, &(mc_spec){ .name = "f",
                                                .inputs = "x = 2",
                                                .outputs = "y = tanh(x) * W",
                                                .updates = "W = W + x",
                                                .mode = "FAST_COMPILE" });
    CHECK(f, "%s", mc_error(*g));
    return f;
}

static bool says(mc_status s, mc_status want, const char *words)
{
    return CHECK(s == want && strstr(mc_last_error(), words), "%s: %s; not %s with '%s'", mc_status_name(s),
                 mc_last_error(), mc_status_name(want), words);
}

/* Loading fails, and makes nothing. */
static void not_loaded(const char *name, mc_status want, const char *words)
{
    mc_function *f[2] = { (mc_function *)f, NULL };
    mc_clear_error();
    const int n = mc_bundle_load(in_folder(name), 2, f);
    says((mc_status)n, want, words);
    CHECK(!f[0] && !f[1], "a function is made");
}

/* ---- wrong calls ---- */

TEST(bundle_wrong_calls)
{
    ON_CPU();
    mc_graph *g;
    mc_function *f = plain(&g), *none = NULL;
    REQUIRE(f, "none");
    const char *path = in_folder("a.mcf");
    says(mc_bundle_save(NULL), MC_EARG, "bundle_save: the spec is NULL");
    says(mc_bundle_save(&(mc_bundle_spec){ .nfunction = 1, .function = &f }), MC_EARG, "there is no path");
    says(mc_bundle_save(&(mc_bundle_spec){ .path = path, .function = &f }), MC_EARG, "there is no function");
    says(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = -1, .function = &f }), MC_EARG,
         "there is no function");
    says(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 1 }), MC_EARG, "there is no function");
    says(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 1, .function = &none }), MC_EARG,
         "bundle_save: function 0 is NULL");
    says(mc_function_save(f, NULL), MC_EARG, "there is no path");
    says(mc_function_save(NULL, path), MC_EARG, "function 0 is NULL");
    says(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 1, .function = &f, .nnote = 1 }),
         MC_EARG, "bundle_save: note 0 has no key");
    says(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 1, .function = &f, .nnote = -1 }),
         MC_EARG, "bundle_save: -1 notes");
    says(mc_bundle_save(&(mc_bundle_spec){ .path = path,
                                           .nfunction = 1,
                                           .function = &f,
                                           .nnote = 1,
                                           .note = &(mc_bundle_note){ "key", NULL } }),
         MC_EARG, "bundle_save: note 0 has no text");
    CHECK(files() == 0, "%d files", files());
    says((mc_status)mc_bundle_load(NULL, 1, &none), MC_EARG, "bundle_load: there is no path");
    says((mc_status)mc_bundle_load(path, 1, NULL), MC_EARG, "bundle_load: there is no array of functions");
    says((mc_status)mc_bundle_load(path, -1, &none), MC_EARG, "bundle_load: there is no array of functions");
    CHECK(!mc_function_load(NULL), "loaded");
    says(mc_last_status(), MC_EARG, "bundle_load: there is no path");
    CHECK(!mc_bundle_text(NULL, "key") && !mc_bundle_text(path, NULL), "a text");
    not_loaded("a.mcf", MC_EFILE, "a.mcf");
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(texts_of_a_bundle)
{
    ON_CPU();
    mc_graph *g;
    mc_function *f = plain(&g);
    const char *path = in_folder("a.mcf");
    const mc_bundle_note note[] = {
        { "model", "dense 3\ndense 4\n" }, { "", "of no key" }, { "empty", "" }, { "model", "another" }
    };
    CHECK(mc_bundle_save(&(mc_bundle_spec){
              .path = path, .nfunction = 1, .function = &f, .nnote = NELEM(note), .note = note }) == MC_OK,
          "%s", mc_last_error());
    for (size_t i = 0; i < 3; i++) {
        char *text = mc_bundle_text(path, note[i].key);
        CHECK(text && strcmp(text, note[i].text) == 0, "%s", text ? text : mc_last_error());
        mc_text_free(text);
    }
    CHECK(!mc_bundle_text(path, "classes"), "a text");
    says(mc_last_status(), MC_EARG, "a.mcf' has no text 'classes'");
    mc_function *h = mc_function_load(path);
    CHECK(h && same_call(f, h, 0, NULL, "with texts") == MC_OK, "%s", mc_last_error());
    mc_function_free(h);
    CHECK(mc_function_save(f, path) == MC_OK && !mc_bundle_text(path, "model"), "a text");
    says(mc_last_status(), MC_EARG, "has no text 'model'");
    ALLOC_FAIL_LOOP {
        mc_bundle_save(&(mc_bundle_spec){
            .path = path, .nfunction = 1, .function = &f, .nnote = NELEM(note), .note = note });
        mc_clear_error();
        char *text = mc_bundle_text(path, "empty");
        CHECK(text || (ALLOC_FAILED && mc_last_status() == MC_EMEMORY) || mc_last_status() == MC_EARG, "%s",
              mc_last_error());
        mc_text_free(text);
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* ---- what cannot be saved ---- */

static mc_status own_infer(void *arg, int nin, const mc_dtype *dtype, const int *rank,
                           const int64_t *const *dims, int i, mc_dtype *out_dtype, int *out_rank,
                           int64_t *out_dims)
{
    (void)arg, (void)nin, (void)i;
    *out_dtype = dtype[0];
    *out_rank = rank[0];
    memcpy(out_dims, dims[0], (size_t)rank[0] * sizeof *out_dims);
    return MC_OK;
}

static mc_status own_run(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out)
{
    (void)arg, (void)nin, (void)nout;
    return mc_array_assign(out[0], in[0]);
}

TEST(functions_that_cannot_be_saved)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    static const mc_custom ops[] = {
        { .name = "copied", .nin = 1, .nout = 1, .run = own_run },
        { .name = "sized", .nin = 1, .nout = 1, .run = own_run, .infer = own_infer },
        { .name = "both", .nin = 1, .nout = 1, .run = own_run, .cuda = "text" },
        { .name = "far", .nin = 1, .nout = 1, .cuda = "text" },
    };
    for (size_t i = 0; i < NELEM(ops); i++) {
        CHECK(mc_register(g, &ops[i]) == MC_OK, "%s", mc_last_error());
    }
    static const struct { const char *outputs, *mode, *says; } rows[] = {
        { "x + 1", "DEBUG", "f cannot be saved: its mode is DEBUG; compile it in mode FAST_RUN" },
        { "copied(x)", NULL,
          "the op 'copied' computes by a function of the program (run), which no file can hold; give it as C "
          "text (kernel)" },
        { "copied(x)", "FAST_COMPILE", "the op 'copied' computes by a function of the program (run)" },
        { "x * 2 + sized(x)", NULL, "the op 'sized' finds its sizes by a function of the program (infer)" },
        { "both(x)", NULL, "the op 'both' computes by a function of the program (run) on the CPU" },
        { "far(x)", NULL, "the op 'far' has code for a GPU alone (cuda)" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_function *f = mc_compile(
            g, &(mc_spec){ .name = "f", .inputs = "x", .outputs = rows[i].outputs, .mode = rows[i].mode });
        if (CHECK(f, "%s", mc_error(g))) {
            says(mc_function_save(f, in_folder("a.mcf")), MC_EUNSUPPORTED, rows[i].says);
            CHECK(files() == 0, "a file is written");
        }
        mc_function_free(f);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .outputs = "x + 1" });
    REQUIRE(f, "%s", mc_error(g));
    const struct mc_backend *own = f->code->backend;
    f->code->backend = NULL;
    says(mc_function_save(f, in_folder("a.mcf")), MC_EUNSUPPORTED,
         "f is for the device cpu; compile it with the flag device=cpu");
    f->code->backend = own;
    CHECK(files() == 0, "a file is written");
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* A function whose kernels run as reference loops is not saved as a fast one, even if there is a compiler by
 * then.  One that has no kernels is. */
TEST(functions_made_without_a_compiler)
{
    ON_CPU();
    char cc[256];
    snprintf(cc, sizeof cc, "%s", mc_flag_get("cc"));
    mc_flag_set("cc", "/nonexistent");
    mc_flag_set("cache", in_folder("cache"));
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .outputs = "tanh(x) + 1" });
    mc_function *h = mc_compile(g, &(mc_spec){ .name = "h", .inputs = "x", .outputs = "sort(x)" });
    REQUIRE(f && h, "%s", mc_error(g));
    says(mc_function_save(f, in_folder("a.mcf")), MC_EUNSUPPORTED,
         "f cannot be saved: it was compiled without a C compiler");
    CHECK(mc_function_save(h, in_folder("b.mcf")) == MC_OK, "%s", mc_last_error());
    mc_function *loaded = mc_function_load(in_folder("b.mcf"));
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 5 }, -1, 1);
    CHECK(loaded && same_call(h, loaded, 1, (mc_arg[]){ mc_arg_array(x) }, "sort") == MC_OK, "%s",
          mc_last_error());
    mc_flag_set("cc", cc);
    says(mc_function_save(f, in_folder("a.mcf")), MC_EUNSUPPORTED,
         "f cannot be saved: it was compiled without a C compiler");
    mc_array_unref(&x);
    mc_function_free(f), mc_function_free(h), mc_function_free(loaded);
    mc_graph_free(g);
    drop_folder();
}

/* ---- sets of instructions ---- */

TEST(instruction_sets_of_a_bundle)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "softmax(x), sum(exp(x))" });
    REQUIRE(f, "%s", mc_error(g));
    static const struct { const char *isa, *says; } wrong[] = {
        { "", "names no instruction set" },
        { ",", "names no instruction set" },
        { "avx2,", "names no instruction set" },
        { "avx2,,sse2", "names no instruction set" },
        { ",native", "names no instruction set" },
        { "avx", "there is no instruction set 'avx'" },
        { "native,AVX2", "there is no instruction set 'AVX2'" },
        { "native, sse2", "there is no instruction set ' sse2'" },
        { "sse2345678901234567890", "there is no instruction set 'sse2345678901234567890'" },
    };
    for (size_t i = 0; i < NELEM(wrong); i++) {
        const mc_bundle_spec spec = {
            .path = in_folder("a.mcf"), .nfunction = 1, .function = &f, .isa = wrong[i].isa
        };
        says(mc_bundle_save(&spec), MC_EARG, wrong[i].says);
        CHECK(files() == 0, "a file is written");
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* The kernels are those of functions that were compiled for the set. */
TEST(kernels_of_the_first_set_that_fits)
{
    NEEDS_COMPILER();
    static const char *const names[] = { "avx512", "avx2", "sse2" };
    struct mc_str flags = { 0 };
    if (!mc_cpu_level("sse2", &flags)) {
        SKIP("no x86");
    }
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    const mc_spec spec = { .inputs = "x", .outputs = "softmax(x), sum(exp(x)), sum(x, axis=0), x * x + x" };
    mc_function *f = mc_compile(g, &spec), *loaded;
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 37, 41 }, -1, 1);
    const mc_arg in = mc_arg_array(x);
    REQUIRE(f, "%s", mc_error(g));
    CHECK(mc_bundle_save(&(mc_bundle_spec){
              .path = in_folder("all.mcf"), .nfunction = 1, .function = &f, .isa = "avx512,avx2,sse2" }) ==
              MC_OK,
          "%s", mc_last_error());
    CHECK(mc_bundle_save(&(mc_bundle_spec){
              .path = in_folder("last.mcf"), .nfunction = 1, .function = &f, .isa = "sse2,native" }) == MC_OK,
          "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(names); i++) {
        mc_flag_set("cpu.isa", names[i]);
        mc_function *want = mc_compile(g, &spec);
        loaded = mc_function_load(in_folder("all.mcf"));
        CHECK(loaded && same_call(want, loaded, 1, &in, names[i]) == MC_OK, "%s", mc_last_error());
        mc_function_free(want), mc_function_free(loaded);
        const mc_bundle_spec one = {
            .path = in_folder("one.mcf"), .nfunction = 1, .function = &f, .isa = names[i]
        };
        CHECK(mc_bundle_save(&one) == MC_OK, "%s", mc_last_error());
        loaded = mc_function_load(in_folder("one.mcf"));
        mc_str_free(&flags);
        mc_cpu_level(names[i], &flags);
        CHECK(mc_cpu_has(flags.s ? flags.s : "") == (loaded != NULL), "%s: %s", names[i], mc_last_error());
        if (!loaded) {
            says(mc_last_status(), MC_EFORMAT, "has kernels for other processors only (avx");
        }
        mc_function_free(loaded);
    }
    mc_function *want = mc_compile(g, &spec); /* still for sse2 */
    loaded = mc_function_load(in_folder("last.mcf"));
    CHECK(loaded && same_call(want, loaded, 1, &in, "last") == MC_OK, "%s", mc_last_error());
    mc_function_free(loaded);
    CHECK(mc_bundle_save(
              &(mc_bundle_spec){ .path = in_folder("here.mcf"), .nfunction = 1, .function = &want }) == MC_OK,
          "%s", mc_last_error());
    loaded = mc_function_load(in_folder("here.mcf")); /* native: what the flag leaves of this processor */
    CHECK(loaded && same_call(want, loaded, 1, &in, "native") == MC_OK, "%s", mc_last_error());
    mc_function_free(loaded), mc_function_free(want), mc_function_free(f);
    mc_array_unref(&x);
    mc_str_free(&flags);
    mc_graph_free(g);
    drop_folder();
}

/* ---- damaged files ---- */

static void put(const char *name, const char *data, size_t n)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    REQUIRE(fd >= 0 && write(fd, data, n) == (ssize_t)n && close(fd) == 0, "not written");
}

/* Each byte in turn: from where to where, in such steps. */
static void flip_all(const char *data, size_t n, size_t step)
{
    int fd = open(in_folder("flipped.mcf"), O_RDWR | O_CREAT, 0666);
    mc_function *f = NULL;
    size_t taken = 0, at = 0;
    REQUIRE(fd >= 0 && write(fd, data, n) == (ssize_t)n, "not written");
    const char *path = in_folder("flipped.mcf");
    for (size_t i = 0; i < n; i += step) {
        const char wrong = (char)(data[i] ^ (1 << i % 8));
        if (pwrite(fd, &wrong, 1, (off_t)i) != 1) {
            CHECK(false, "not written");
            break;
        }
        const int have = mc_bundle_load(path, 1, &f);
        if (have >= 0 || mc_last_status() != MC_EFORMAT) {
            taken++, at = i;
        }
        mc_function_free(f);
        if (pwrite(fd, &data[i], 1, (off_t)i) != 1) {
            break;
        }
    }
    CHECK(!taken, "%zu of %zu changed bytes are no error; the last is byte %zu", taken, n, at);
    CHECK(mc_bundle_load(path, 1, &f) == 1, "%s", mc_last_error());
    mc_function_free(f);
    close(fd);
}

static void cut_all(const char *data, size_t n, size_t step)
{
    const char *path = in_folder("cut.mcf");
    mc_function *f = NULL;
    size_t taken = 0, at = 0;
    put("cut.mcf", data, n);
    for (size_t left = n - 1;; left -= MC_MIN(step, left)) {
        if (truncate(path, (off_t)left) < 0 || mc_bundle_load(path, 1, &f) != MC_EFORMAT) {
            taken++, at = left;
        }
        if (!left) {
            break;
        }
    }
    CHECK(!taken, "%zu cut files are no error; the last has %zu of %zu bytes", taken, at, n);
}

TEST(damaged_bundles)
{
    ON_CPU();
    mc_graph *g;
    mc_function *f = plain(&g);
    char *data = NULL;
    size_t n = 0;
    REQUIRE(f && mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    REQUIRE(mc_file_read(in_folder("a.mcf"), &data, &n) == MC_OK, "%s", mc_last_error());
    CHECK(n < 4096, "%zu bytes", n);
    flip_all(data, n, 1);
    cut_all(data, n, 1);
    char *longer = calloc(1, n + 64);
    memcpy(longer, data, n);
    put("longer.mcf", longer, n + 1);
    not_loaded("longer.mcf", MC_EFORMAT, "longer.mcf' is incomplete");
    put("longer.mcf", longer, n + 64);
    not_loaded("longer.mcf", MC_EFORMAT, "longer.mcf' is incomplete");
    free(longer);
    mc_free(data);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(damaged_bundles_with_kernels)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "tanh(x)" });
    char *data = NULL;
    size_t n = 0;
    REQUIRE(f && mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    REQUIRE(mc_file_read(in_folder("a.mcf"), &data, &n) == MC_OK, "%s", mc_last_error());
    flip_all(data, n, 61);
    cut_all(data, n, 97);
    mc_free(data);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

static mc_bundle_note odd(struct mc_bundle_header *h, int row)
{
    switch (row) {
    case 0: h->magic[7]++; return (mc_bundle_note){ "magic", "odd.mcf' is no bundle" };
    case 1: h->format++; break;
    case 2: h->order = 0x01000000; break;
    case 3: h->version[0]++; break;
    case 4: memset(h->version, 'x', sizeof h->version); break;
    case 5: h->size++; return (mc_bundle_note){ "size", "odd.mcf' is incomplete" };
    case 6:
        h->description = UINT64_MAX - 8;
        return (mc_bundle_note){ "description", "odd.mcf' is incomplete" };
    case 7: h->description = h->size - sizeof *h; return (mc_bundle_note){ "all", "odd.mcf' is" };
    case 8: h->sums[0]++; return (mc_bundle_note){ "sum", "odd.mcf' is damaged: a checksum differs" };
    case 9: h->sums[1]++; return (mc_bundle_note){ "sum", "odd.mcf' is damaged: a checksum differs" };
    default: return (mc_bundle_note){ NULL, NULL };
    }
    return (mc_bundle_note){
        "version", "was made by another version of Monochord or on another kind of machine; save it again"
    };
}

TEST(files_that_are_no_bundles)
{
    ON_CPU();
    mc_graph *g;
    mc_function *f = plain(&g);
    char *data = NULL;
    size_t n = 0;
    REQUIRE(f && mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    REQUIRE(mc_file_read(in_folder("a.mcf"), &data, &n) == MC_OK, "%s", mc_last_error());
    for (int row = 0;; row++) {
        struct mc_bundle_header h;
        char *other = malloc(n);
        memcpy(other, data, n);
        memcpy(&h, data, sizeof h);
        const mc_bundle_note wrong = odd(&h, row);
        memcpy(other, &h, sizeof h);
        put("odd.mcf", other, n);
        free(other);
        if (!wrong.key) {
            break;
        }
        not_loaded("odd.mcf", MC_EFORMAT, wrong.text);
        CHECK(!mc_bundle_text(in_folder("odd.mcf"), "key") && mc_last_status() == MC_EFORMAT, "%s",
              mc_last_error());
    }
    put("empty.mcf", "", 0);
    not_loaded("empty.mcf", MC_EFORMAT, "empty.mcf' is no bundle");
    put("text.mcf", "MCBUNDLE", 8);
    not_loaded("text.mcf", MC_EFORMAT, "text.mcf' is no bundle");
    mkdir(in_folder("folder.mcf"), 0777);
    not_loaded("folder.mcf", MC_EFILE, "it is no regular file");
    CHECK(mkfifo(in_folder("fifo.mcf"), 0666) == 0, "no FIFO"); /* nobody writes to it */
    not_loaded("fifo.mcf", MC_EFILE, "it is no regular file");
    not_loaded("none.mcf", MC_EFILE, "none.mcf");
    mc_free(data);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* ---- places ---- */

TEST(bundles_are_written_whole_or_not)
{
    ON_CPU();
    mc_graph *g;
    mc_function *f = plain(&g);
    REQUIRE(f, "none");
    says(mc_function_save(f, in_folder("none/a.mcf")), MC_EFILE, "none/a.mcf");
    mkdir(in_folder("b.mcf"), 0777);
    says(mc_function_save(f, in_folder("b.mcf")), MC_EFILE, "b.mcf");
    says(mc_function_save(f, "/dev/full"), MC_EFILE, "/dev/full");
    CHECK(files() == 1, "%d files", files());
    mkdir(in_folder("shut"), 0777);
    CHECK(mc_function_save(f, in_folder("shut/a.mcf")) == MC_OK, "%s", mc_last_error());
    chmod(in_folder("shut"), 0555);
    if (geteuid() != 0) { /* root may write there */
        says(mc_function_save(f, in_folder("shut/a.mcf")), MC_EFILE, "shut/a.mcf");
    }
    mc_function *h = mc_function_load(in_folder("shut/a.mcf"));
    CHECK(h && same_call(f, h, 0, NULL, "the old file") == MC_OK, "%s", mc_last_error());
    chmod(in_folder("shut"), 0777);
    mc_function_free(h);
    CHECK(symlink(in_folder("shut/a.mcf"), in_folder("link.mcf")) == 0, "no link");
    CHECK(mc_function_save(f, in_folder("link.mcf")) == MC_OK, "%s", mc_last_error());
    struct stat st;
    CHECK(lstat(in_folder("link.mcf"), &st) == 0 && S_ISLNK(st.st_mode), "the link is replaced");
    h = mc_function_load(in_folder("link.mcf"));
    CHECK(h && same_call(f, h, 0, NULL, "by the link") == MC_OK, "%s", mc_last_error());
    mc_function_free(h);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* A loaded function goes on after its file was replaced, cut or removed. */
TEST(a_bundle_is_saved_over_itself)
{
    NEEDS_COMPILER();
    mc_graph *g = given_graph();
    mc_array *w = sample(MC_FLOAT32, 2, (int64_t[]){ 300, 200 }, -1, 1);
    mc_shared_new(g, "W", w);
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "s", .outputs = "sum(W * s), W + s", .updates = "W = W * 0.5" });
    REQUIRE(f, "%s", mc_error(g));
    const char *path = in_folder("a.mcf");
    CHECK(mc_function_save(f, path) == MC_OK, "%s", mc_last_error());
    mc_function *h = mc_function_load(path), *again = NULL;
    const mc_arg in = mc_arg_real(1.25);
    for (int i = 0; i < 4; i++) {
        CHECK(h && mc_function_save(h, path) == MC_OK, "%s", mc_last_error());
        again = mc_function_load(path);
        CHECK(unlink(path) == 0, "no file");
        CHECK(again && same_call(h, again, 1, &in, "saved over itself") == MC_OK, "%s", mc_last_error());
        same_variables(h, again, "saved over itself");
        CHECK(mc_call(f, MC_IN(1.25), MC_NONE) == MC_OK, "%s", mc_last_error());
        same_variables(f, again, "the first function");
        mc_function_free(h);
        h = again;
    }
    mc_function_free(h);
    mc_function_free(f);
    mc_array_unref(&w);
    mc_graph_free(g);
    drop_folder();
}

/* ---- memory ---- */

/* All parts of a file: two sets of kernels, variables, defaults, labels, solvers, texts. */
static int all_parts(mc_graph *g, mc_function *f[2])
{
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "s", MC_FLOAT32, 0);
    mc_label(g, "first");
    mc_random(g, "rng", 3);
    mc_array *w = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 2 }, -1, 1);
    mc_shared_new(g, "W", w);
    mc_array_unref(&w);
    f[0] = mc_compile(
        g, &(mc_spec){ .name = "one",
                       .inputs = "x, s = 2",
                       .outputs = "y = softmax(dot(x, W)) * s, borrow(sum(x)), sort(x), nonzero(x)",
                       .updates = "W = W - 0.1 * grad(mean(tanh(dot(x, W))), W)" });
    mc_register(g, &(mc_custom){ .name = "smooth", .nin = 1, .nout = 1, .kernel = "a / (1 + M(exp)(-a))" });
    f[1] = mc_compile(g, &(mc_spec){ .outputs = "smooth(W), uniform(rng, [3])",
                                     .updates = "W = smooth(W) * 3",
                                     .mode = "FAST_COMPILE" });
    return f[0] && f[1] ? 2 : 0;
}

TEST(bundles_survive_every_failed_allocation)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f[2], *h[2];
    const mc_bundle_note note = { "key", "text" };
    REQUIRE(all_parts(g, f) == 2, "%s", mc_error(g));
    mc_function *quiet = mc_function_copy(f[0], false);
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 4, 3 }, -1, 1), *before = NULL;
    REQUIRE(mc_call(f[0], MC_IN(x), MC_OUT(&before)) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&before);
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("all.mcf"));
    ALLOC_FAIL_LOOP {
        const mc_status s = mc_bundle_save(&(mc_bundle_spec){
            .path = path, .nfunction = 2, .function = f, .isa = "native,native", .nnote = 1, .note = &note });
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        CHECK(files() == (s == MC_OK), "%d files after %s", files(), mc_status_name(s));
        remove(path);
    }
    REQUIRE(mc_bundle_save(&(mc_bundle_spec){
                .path = path, .nfunction = 2, .function = f, .isa = "native", .nnote = 1, .note = &note }) ==
                MC_OK,
            "%s", mc_last_error());
    ALLOC_FAIL_LOOP {
        const int n = mc_bundle_load(path, 2, h);
        CHECK(n == 2 || (ALLOC_FAILED && n == MC_EMEMORY), "%d: %s", n, mc_last_error());
        CHECK(n == 2 ? h[0] && h[1] : !h[0] && !h[1], "functions after %d", n);
        for (int i = 0; n == 2 && i < f[0]->code->nstep; i++) {
            const struct mc_kernel *a = f[0]->code->program.step.at[i].kernel,
                                   *b = h[0]->code->program.step.at[i].kernel;
            CHECK(!a || (a->nsaved == b->nsaved && a->nstage == b->nstage), "step %d: %d row buffers of %d",
                  i, b->nsaved, a->nsaved);
        }
        if (n == 2 && ALLOC_FAILED) { /* what failed is not missed */
            same_call(quiet, h[0], 1, (mc_arg[]){ mc_arg_array(x) }, "loaded");
        }
        mc_function_free(h[0]), mc_function_free(h[1]);
    }
    mc_function_free(f[0]), mc_function_free(f[1]), mc_function_free(quiet);
    mc_array_unref(&x);
    mc_graph_free(g);
    drop_folder();
}

/* ---- other processes ---- */

/* Loads the bundle in the folder, and compares its results with those that are there. */
static void alone(const char *where)
{
    char path[3][512];
    static const char *const names[] = { "all.mcf", "x.npy", "y.npy" };
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", where, names[i]);
    }
    CHECK(!mc_cc_present() && !getenv("HOME"), "there is a compiler, or a home");
    mc_function *f[2] = { NULL };
    mc_array *x = mc_npy_load(path[1]), *y = mc_npy_load(path[2]), *now = NULL;
    REQUIRE(x && y && mc_bundle_load(path[0], 2, f) == 2, "%s", mc_last_error());
    for (int i = 0; i < mc_function_nsteps(f[0]); i++) {
        const mc_step_info st = mc_function_step(f[0], i);
        CHECK(!strstr(st.reason, "compiler"), "%s: %s", st.text, st.reason);
    }
    CHECK(mc_call(f[0], MC_IN(x), MC_OUT(&now)) == MC_OK && mc_array_same_bits(now, y), "other bits: %s",
          mc_last_error());
    CHECK(mc_call(f[1], MC_NONE, MC_NONE) == MC_OK, "an op given as text: %s", mc_last_error());
    mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&now);
    mc_function_free(f[0]), mc_function_free(f[1]);
}

TEST(a_process_with_nothing_but_the_library)
{
    if (getenv("BUNDLE_ALONE")) {
        alone(getenv("BUNDLE_ALONE"));
        return;
    }
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f[2];
    REQUIRE(all_parts(g, f) == 2, "%s", mc_error(g));
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 40, 3 }, -1, 1), *y = NULL;
    CHECK(mc_bundle_save(&(mc_bundle_spec){ .path = in_folder("all.mcf"), .nfunction = 2, .function = f }) ==
              MC_OK,
          "%s", mc_last_error());
    CHECK(mc_call(f[0], MC_IN(x), MC_OUT(&y)) == MC_OK && mc_npy_save(in_folder("y.npy"), y) == MC_OK &&
              mc_npy_save(in_folder("x.npy"), x) == MC_OK,
          "%s", mc_last_error());
    char command[512];
    int status;
    snprintf(command, sizeof command,
             "env -i PATH=/nonexistent MONOCHORD_FLAGS=cpu.isa=%s BUNDLE_ALONE='%s' @/monochord_tests "
             "t_bundle_file/a_process_with",
             mc_flag_get("cpu.isa"), folder);
    const char *said = output_of(command, &status);
    CHECK(status == 0 && strstr(said, "1 passed"), "%s", said);
    mc_array_unref(&x), mc_array_unref(&y);
    mc_function_free(f[0]), mc_function_free(f[1]);
    mc_graph_free(g);
    drop_folder();
}

/* ---- solvers ---- */

static char *wisdom(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    CHECK(to && mc_wisdom_print(to) == MC_OK && fclose(to) == 0, "%s", mc_last_error());
    return text;
}

/* Lets wisdom say that solvers are fast that nobody would take. */
static void odd_wisdom(void)
{
    char *text = wisdom();
    const char *isa = mc_flag_get("cpu.isa"); /* unless it is native, lines begin with it */
    const size_t n = strlen(isa);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *seconds = strrchr(line, ' '), *solver;
        line += strncmp(line, isa, n) == 0 && line[n] == ' ' ? n + 1 : 0;
        if (seconds && (*seconds = '\0', solver = strrchr(line, ' '))) {
            *solver = '\0';
            if (strncmp(line, "conv", 4) == 0 || strncmp(line, "gemm", 4) == 0) {
                mc_wisdom_put(line, *line == 'c' ? "im2col" : "reference", 1e-9);
            }
        }
    }
    free(text);
}

static void solvers_of(mc_function *f, mc_array *img, mc_array *w, char text[1000])
{
    mc_array *y = NULL, *z = NULL;
    *text = '\0';
    CHECK(mc_call(f, MC_IN(img, w), MC_OUT(&y, &z)) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&y), mc_array_unref(&z);
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        const mc_step_info st = mc_function_step(f, i);
        snprintf(text + strlen(text), 1000 - strlen(text), "%s %s\n", st.kind, st.solver);
    }
}

/* What was measured is used again, where there is no wisdom, and nothing is timed. */
TEST(measured_solvers_are_in_the_file)
{
    NEEDS_COMPILER();
    mc_flag_set("cache", in_folder("cache"));
    mc_flag_set("plan", "measure");
    mc_flag_set("onednn", "none");
    mc_flag_set("blas", "none");
    mc_graph *g = given_graph();
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "img, w",
                       .outputs = "conv(img, w), dot(flatten(w, ndim=2), flatten(w, ndim=2).T)" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *img = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 8, 14, 14)),
             *w = mc_array_new(MC_FLOAT32, MC_SHAPE(16, 8, 3, 3));
    char plain_text[1000], want[1000], have[1000];
    solvers_of(f, img, w, plain_text);
    odd_wisdom();
    mc_function *odd = mc_function_copy(f, true);
    solvers_of(odd, img, w, want);
    CHECK(strstr(want, "im2col") && strstr(want, "reference") && strcmp(want, plain_text) != 0, "%s", want);
    CHECK(mc_function_save(odd, in_folder("odd.mcf")) == MC_OK, "%s", mc_last_error());
    mc_wisdom_clear();
    static const char *const modes[] = { "measure", "estimate", "exhaustive" };
    for (size_t i = 0; i < NELEM(modes); i++) {
        mc_flag_set("plan", modes[i]);
        mc_function *h = mc_function_load(in_folder("odd.mcf"));
        REQUIRE(h, "%s", mc_last_error());
        CHECK(mc_function_save(h, in_folder("again.mcf")) == MC_OK, "%s", mc_last_error()); /* not called */
        solvers_of(h, img, w, have);
        CHECK(strcmp(have, want) == 0, "plan=%s:\n%snot\n%s", modes[i], have, want);
        mc_function_free(h);
        h = mc_function_load(in_folder("again.mcf"));
        REQUIRE(h, "%s", mc_last_error());
        solvers_of(h, img, w, have);
        CHECK(strcmp(have, want) == 0, "saved again, plan=%s:\n%snot\n%s", modes[i], have, want);
        mc_function_free(h);
        char *text = wisdom();
        CHECK(!strstr(text, "conv ") && !strstr(text, "gemm "), "timed: %s", text);
        free(text);
    }
    mc_flag_set("plan", "estimate");
    mc_flag_set("threads", mc_team_size() == 1 ? "2" : "1"); /* then they do not hold */
    mc_function *h = mc_function_load(in_folder("odd.mcf"));
    REQUIRE(h, "%s", mc_last_error());
    solvers_of(h, img, w, have);
    CHECK(!strstr(have, "reference"), "%s", have);
    mc_function_free(h), mc_function_free(f), mc_function_free(odd);
    mc_array_unref(&img), mc_array_unref(&w);
    mc_graph_free(g);
    drop_folder();
}

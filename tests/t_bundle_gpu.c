/* t_bundle_gpu.c: bundles of functions on a GPU: machine code for several architectures, which loads without
 * NVRTC; what runs where; shapes whose kernels are not in the file.  With device=cuda the tests of t_bundle.c
 * compare functions on the GPU too. */
#include "bundle/bundle.h"
#include "bundle_words.h"
#include "device/cache.h"
#include "exec/heavy/heavy.h"
#include "program.h"

static bool says(mc_status s, mc_status want, const char *words)
{
    return CHECK(s == want && strstr(mc_last_error(), words), "%s: %s; not %s with '%s'", mc_status_name(s),
                 mc_last_error(), mc_status_name(want), words);
}

/* ---- functions of every kind of step ---- */

static const mc_custom smooth = { .name = "smooth", .nin = 1, .nout = 1, .kernel = "a / (1 + M(exp)(-a))" };
static const mc_custom halved = {
    .name = "halved",
    .nin = 1,
    .nout = 1,
    .threads = 128,
    .cuda = "extern \"C\" __global__ void halved(view<const float> x, view<float> y)\n{\n"
            "    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
            "    if (i < y.n) y[i] = x[i] / 2;\n}\n"
};
static const struct { const char *inputs, *outputs, *updates; } rows[] = {
    { "x, v", "tanh(x) + v, softmax(x), sum(x, axis=0), sum(x), argmax(x, axis=1), x.T", NULL },
    { "x, y", "dot(x, y), relu(dot(x, y) + 1), dot(x, x.T), tanh(dot(x, y)) * 2", "W = W * 0.5 + 1" },
    { "img, w", "conv(img, w, border=1), pool(conv(img, w), [2, 2]), lrn(img), grad(sum(sqr(conv(img, w))), w)", NULL },
    { "x, i", "sort(x, axis=1), cumsum(x, axis=0), x[i], x[1:3, ::2], concatenate(x, x, axis=1), x[::-1].T", NULL },
    { "x, h", "smooth(x) * 2, halved(x), sum(halved(smooth(x)), axis=1), smooth(h)", "W = halved(W)" },
    { "x, v", "scan(r in x, a from v * 0: a = ifelse(sum(r) > 0, a + softmax(r), smooth(a) * 0.5); yield a), "
              "ifelse(sum(x) > 0, tanh(dot(x, x.T)), dot(x, x.T) + 1), ifelse(sum(x) <= 0, sum(tanh(x)), max(x))", NULL },
    /* one kernel for all steps: launches of each have other sums */
    { "y", "scan(steps=12, a from y: a = tanh(dot(a, dot(y.T, y)) * 0.1); yield a)", NULL },
};
enum { ROWS = NELEM(rows) };

static void functions(mc_graph *g, mc_function *f[ROWS])
{
    mc_array *w = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 5 }, -2, 2);
    mc_shared_new(g, "W", w);
    mc_array_unref(&w);
    CHECK(mc_register(g, &smooth) == MC_OK && mc_register(g, &halved) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < ROWS; i++) {
        f[i] = mc_compile(
            g,
            &(mc_spec){ .inputs = rows[i].inputs, .outputs = rows[i].outputs, .updates = rows[i].updates });
        CHECK(f[i], "%s: %s", rows[i].outputs, mc_error(g));
    }
}

static int call(mc_function *f, int n, mc_array *const *value, mc_array **out)
{
    mc_arg in[8], to[16];
    const int nout = mc_function_noutputs(f);
    for (int i = 0; i < n; i++) {
        in[i] = mc_arg_array(value[i]);
    }
    for (int i = 0; i < nout; i++) {
        out[i] = NULL;
        to[i] = mc_arg_slot(&out[i]);
    }
    CHECK(mc_call_args(f, n, in, nout, to) == MC_OK, "%s", mc_last_error());
    return nout;
}

/* ---- a process with nothing but the driver ---- */

/* what: 'x', an input of that row; 'y', a result */
static const char *array_path(const char *where, char what, int row, int i)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%c%d-%d.npy", where, what, row, i);
    return path;
}

/* The row's inputs and results, by a copy that makes no updates. */
static void write_call(mc_function *f, int row)
{
    mc_array *in[8], *out[16];
    const int nin = given_values(rows[row].inputs, 0, in), nout = call(f, nin, in, out);
    for (int i = 0; i < nin; i++) {
        CHECK(mc_npy_save(array_path(folder, 'x', row, i), in[i]) == MC_OK, "%s", mc_last_error());
        mc_array_unref(&in[i]);
    }
    for (int i = 0; i < nout; i++) {
        CHECK(out[i] && mc_npy_save(array_path(folder, 'y', row, i), out[i]) == MC_OK, "%s", mc_last_error());
        mc_array_unref(&out[i]);
    }
}

static void compare_call(mc_function *f, const char *where, int row)
{
    mc_array *in[8], *out[16];
    for (int i = 0; i < mc_function_ninputs(f); i++) {
        in[i] = mc_npy_load(array_path(where, 'x', row, i));
        CHECK(in[i], "%s", mc_last_error());
    }
    const int nout = call(f, mc_function_ninputs(f), in, out);
    for (int i = 0; i < nout; i++) {
        mc_array *want = mc_npy_load(array_path(where, 'y', row, i));
        CHECK(out[i] && want && mc_array_same_bits(out[i], want), "%s: result %d differs", rows[row].outputs,
              i);
        mc_array_unref(&out[i]), mc_array_unref(&want);
    }
    for (int i = 0; i < mc_function_ninputs(f); i++) {
        mc_array_unref(&in[i]);
    }
}

/* Loads the bundle in the folder, and calls its functions. */
static void alone(const char *where)
{
    char path[256];
    mc_function *f[ROWS] = { NULL };
    CHECK(!*mc_cache_dir(), "there is a cache: %s", mc_cache_dir());
    snprintf(path, sizeof path, "%s/all.mcf", where);
    REQUIRE(mc_bundle_load(path, ROWS, f) == ROWS, "%s", mc_last_error());
    for (int row = 0; row < ROWS; row++) {
        compare_call(f[row], where, row);
    }
    snprintf(path, sizeof path, "%s/again.mcf", where);
    CHECK(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = ROWS, .function = f }) == MC_OK, "%s",
          mc_last_error());
    const struct mc_cuda_code_stats s = mc_cuda_code_stats();
    CHECK(s.compiled == 0 && s.from_disk == 0 && s.from_bundle > ROWS,
          "%d compiled, %d from disk, %d from the file", (int)s.compiled, (int)s.from_disk,
          (int)s.from_bundle);
    for (int row = 0; row < ROWS; row++) {
        mc_function_free(f[row]);
    }
}

/* A filter of another size: its kernels are not in the file.  With NVRTC they are compiled, without it the
 * call is an error. */
static void other_shape(const char *where)
{
    char path[256];
    mc_function *f[ROWS] = { NULL };
    snprintf(path, sizeof path, "%s/all.mcf", where);
    REQUIRE(mc_bundle_load(path, ROWS, f) == ROWS, "%s", mc_last_error());
    mc_array *img = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 7, 40, 33)),
             *w = mc_array_new(MC_FLOAT32, MC_SHAPE(5, 7, 6, 5));
    const mc_status s = mc_call(f[2], MC_IN(img, w), MC_NONE);
    if (!mc_nv_found(NV_NVRTC)->present && s < 0) {
        says(s, mc_last_status(), "no bundle that is loaded has this kernel for sm_");
        says(s, mc_last_status(), "a function is called at each size before it is saved");
        says(s, mc_last_status(), "NVRTC is needed");
    } else {
        CHECK(s == MC_OK, "%s", mc_last_error());
    }
    compare_call(f[0], where, 0); /* others go on */
    mc_array_unref(&img), mc_array_unref(&w);
    for (int row = 0; row < ROWS; row++) {
        mc_function_free(f[row]);
    }
}

/* Runs this test again, without a cache and a home; path: where libraries are. */
static void in_another_process(const char *what, const char *path, const char *library_path)
{
    char command[1024];
    int status;
    const char *gpus = getenv("FAKE_GPUS");
    snprintf(command, sizeof command,
             "env -i PATH=/usr/bin:/bin %s%s LD_LIBRARY_PATH='%s' MONOCHORD_FLAGS=device=cuda,cuda.path=%s "
             "%s='%s' "
             "@/monochord_tests t_bundle_gpu/a_gpu_with_nothing_but_the_driver",
             gpus ? "FAKE_GPUS=" : "", gpus ? gpus : "", library_path, path, what, folder);
    const char *said = output_of(command, &status);
    CHECK(status == 0 && strstr(said, "1 passed"), "%s", said);
}

TEST(a_gpu_with_nothing_but_the_driver)
{
    if (getenv("BUNDLE_ALONE") || getenv("BUNDLE_SHAPE")) {
        getenv("BUNDLE_ALONE") ? alone(getenv("BUNDLE_ALONE")) : other_shape(getenv("BUNDLE_SHAPE"));
        return;
    }
    ON_GPU();
    mc_graph *g = given_graph();
    mc_function *f[ROWS];
    functions(g, f);
    in_folder("");                         /* makes it */
    for (int row = 0; row < ROWS; row++) { /* without updates, so that variables are saved as they are here */
        REQUIRE(f[row], "no function");
        mc_function *quiet = mc_function_copy(f[row], false);
        write_call(quiet, row);
        mc_function_free(f[row]);
        f[row] = quiet;
    }
    REQUIRE(mc_bundle_save(
                &(mc_bundle_spec){ .path = in_folder("all.mcf"), .nfunction = ROWS, .function = f }) == MC_OK,
            "%s", mc_last_error());
    const char *cuda_path = mc_flag_get("cuda.path"), *libraries = getenv("LD_LIBRARY_PATH");
    char path[600];
    snprintf(path, sizeof path, "%s", cuda_path);
    in_another_process("BUNDLE_ALONE", path, libraries ? libraries : "");
    /* a folder with the driver alone, if it is from a folder */
    char from[700];
    snprintf(from, sizeof from, "%s/libcuda.so.1", path);
    if (access(from, R_OK) == 0) {
        CHECK(symlink(from, in_folder("libcuda.so.1")) == 0, "no link");
        snprintf(path, sizeof path, "%s", folder);
    }
    in_another_process("BUNDLE_ALONE", path, libraries ? libraries : "");
    in_another_process("BUNDLE_SHAPE", path, libraries ? libraries : "");
    for (int row = 0; row < ROWS; row++) {
        mc_function_free(f[row]);
    }
    mc_graph_free(g);
    drop_folder();
}

/* ---- architectures ---- */

/* As CUDA defines it: machine code runs from its own GPU on within a generation, that of "a" on its own GPU
 * alone, PTX on every later GPU.  PTX from before Hopper is not taken there. */
TEST(what_machine_code_runs_on)
{
    static const struct { const char *arch; int sm; bool runs; } table[] = {
        { "sm_80", 80, true },      { "sm_80", 86, true },       { "sm_80", 89, true },    { "sm_80", 75, false },
        { "sm_80", 90, false },     { "sm_86", 80, false },      { "sm_90a", 90, true },   { "sm_90a", 100, false },
        { "sm_90a", 120, false },   { "sm_100", 103, true },     { "sm_100", 120, false }, { "sm_120", 121, true },
        { "compute_80", 89, true }, { "compute_80", 90, false }, { "compute_90", 90, true }, { "compute_90", 120, true },
        { "compute_120", 90, false }, { "", 90, false },         { "sm_", 90, false },     { "sm_90b", 90, false },
        { "sm_90aa", 90, false },   { "SM_90", 90, false },      { "90", 90, false },      { "sm_-90", 90, false },
        { "compute_80a", 89, false }, { "avx512", 90, false },
    };
    for (size_t i = 0; i < NELEM(table); i++) {
        CHECK((mc_cuda_arch_rank(table[i].arch, table[i].sm) > 0) == table[i].runs, "%s on sm_%d",
              table[i].arch, table[i].sm);
    }
    CHECK(mc_cuda_arch_rank("sm_89", 89) > mc_cuda_arch_rank("sm_86", 89) &&
              mc_cuda_arch_rank("sm_86", 89) > mc_cuda_arch_rank("sm_80", 89) &&
              mc_cuda_arch_rank("sm_80", 89) > mc_cuda_arch_rank("compute_80", 89),
          "a worse one is preferred");
}

/* The image that is for a GPU, not another one of the same text. */
TEST(images_are_found_by_text_and_architecture)
{
    static const struct { const char *source, *options, *arch, *data; } table[] = {
        { "one", "", "sm_80", "one for 80" },   { "one", "", "sm_86", "one for 86" },
        { "one", "-x", "sm_86", "with -x" },    { "two", NULL, "sm_90a", "two for 90" },
        { "two", "", "compute_90", "two PTX" },
    };
    static const struct { const char *source, *options; int sm; const char *data, *arch; } wanted[] = {
        { "one", "", 80, "one for 80", "sm_80" }, { "one", NULL, 89, "one for 86", "sm_86" },
        { "one", "-x", 89, "with -x", "sm_86" },  { "one", "-x", 80, NULL, NULL },
        { "one", "", 90, NULL, NULL },            { "two", "", 90, "two for 90", "sm_90a" },
        { "two", "", 120, "two PTX", "compute_90" }, { "three", "", 90, NULL, NULL },
    };
    struct mc_images *l = mc_images_new();
    for (size_t i = 0; i < NELEM(table); i++) {
        const struct mc_image image = { mc_image_text(table[i].source, table[i].options), table[i].arch,
                                        table[i].data, strlen(table[i].data) };
        REQUIRE(l && VEC_PUSH(l->image, image), "no memory");
    }
    for (int published = 0; published < 2; published++) {
        for (size_t i = 0; i < NELEM(wanted); i++) {
            struct mc_str data = { 0 };
            char arch[MC_IMAGE_ARCH] = "";
            const bool found = mc_image_find(mc_image_text(wanted[i].source, wanted[i].options),
                                             mc_cuda_arch_rank, wanted[i].sm, &data, arch);
            CHECK(found == (published && wanted[i].data), "row %zu", i);
            CHECK(!found || (strcmp(data.s, wanted[i].data) == 0 && strcmp(arch, wanted[i].arch) == 0),
                  "row %zu: %s for %s", i, data.s, arch);
            mc_str_free(&data);
        }
        if (!published) {
            mc_images_publish(l);
        }
    }
    mc_images_unref(&l);
    CHECK(!mc_images_published() && !l, "still there");
}

/* Where there is NVRTC and no GPU too: ELF files for NVIDIA's processors (machine 190), one for each. */
TEST(machine_code_for_several_architectures)
{
    NEEDS_NVRTC;
    const struct mc_cuda_input in[] = { { TWICE, MC_CUDA_OPTIONS }, { TWICE "/* another text */", "" } };
    static const char *const archs[] = { "sm_80", "sm_90a" };
    struct mc_images *l = mc_images_new();
    REQUIRE(l && mc_cuda_images(90, NELEM(in), in, "sm_80,native", l) == MC_OK, "%s", mc_last_error());
    CHECK(l->image.n == 4, "%zu images", l->image.n);
    for (size_t i = 0; i < l->image.n; i++) {
        const struct mc_image *image = &l->image.at[i];
        const struct mc_key text = mc_image_text(in[i % 2].source, in[i % 2].options);
        CHECK(strcmp(image->arch, archs[i / 2]) == 0 && memcmp(&image->text, &text, sizeof text) == 0,
              "image %zu is for %s", i, image->arch);
        if (!getenv("FAKE_GPUS")) {
            CHECK(image->size > 64 && memcmp(image->data, "\177ELF\2\1", 6) == 0 &&
                      image->data[18] == (char)190,
                  "image %zu is no machine code", i);
        }
        CHECK(i < 2 || image->size != l->image.at[i - 2].size ||
                  memcmp(image->data, l->image.at[i - 2].data, image->size) != 0 || getenv("FAKE_GPUS"),
              "the same for both");
    }
    CHECK(mc_cuda_images(90, NELEM(in), in, "sm_90,sm_90a,sm_80", l) == MC_OK && l->image.n == 4,
          "%zu images: %s", l->image.n, mc_last_error());
    static const struct { const char *archs, *says; } wrong[] = {
        { "", "there is no architecture ''" },         { "sm_90,", "there is no architecture ''" },
        { "avx512", "there is no architecture 'avx512'" }, { "sm_", "there is no architecture 'sm_'" },
        { "sm_80a", "there is no architecture 'sm_80a'" }, { "sm_80, sm_90", "there is no architecture ' sm_90'" },
        { "compute_80", "there is no architecture 'compute_80'" },
        { "sm_123456789012345678901234567890123", "there is no architecture 'sm_1234567890123456789012345678'" },
        { "sm_999", "NVRTC does not know the architecture sm_999" },
        { "native,native,native,native,native,native,native,native,native,native,native,native,native,native,native,"
          "native,native",
          "more than 16 architectures" },
    };
    for (size_t i = 0; i < NELEM(wrong); i++) {
        says(mc_cuda_images(90, NELEM(in), in, wrong[i].archs, l), MC_EARG, wrong[i].says);
    }
    mc_images_unref(&l);
}

/* What the driver is given ends where its tables say. */
TEST(cut_machine_code_is_refused)
{
    NEEDS_NVRTC;
    if (getenv("FAKE_GPUS")) {
        SKIP("no machine code of NVIDIA's");
    }
    const struct mc_cuda_input in = { TWICE, "" };
    struct mc_images *l = mc_images_new();
    REQUIRE(l && mc_cuda_images(90, 1, &in, "sm_90", l) == MC_OK, "%s", mc_last_error());
    for (size_t n = 0; n <= l->image.at[0].size; n++) {
        struct mc_str part = { 0 };
        mc_str_addn(&part, l->image.at[0].data, n);
        const mc_status s = mc_cuda_image_check(&part);
        CHECK((s == MC_OK) == (n < 4 || n == l->image.at[0].size), "%zu of %zu bytes: %s", n,
              l->image.at[0].size, mc_last_error());
        mc_str_free(&part);
    }
    mc_images_unref(&l);
}

TEST(bundles_for_other_gpus)
{
    NEEDS_GPU(d);
    ON_GPU();
    mc_graph *g = given_graph();
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "softmax(x)" });
    REQUIRE(f, "%s", mc_error(g));
    const char *other = d->sm / 10 == 8 ? "sm_90" : "sm_80";
    char list[64], words[128];
    mc_bundle_spec spec = { .path = in_folder("a.mcf"), .nfunction = 1, .function = &f, .gpu = other };
    REQUIRE(mc_bundle_save(&spec) == MC_OK, "%s", mc_last_error());
    CHECK(!mc_function_load(in_folder("a.mcf")), "loaded");
    snprintf(words, sizeof words, "has kernels for other GPUs than cuda0 only (%s", other);
    says(mc_last_status(), MC_EFORMAT, words);
    says(mc_last_status(), MC_EFORMAT,
         "save it with the architectures that are needed: gpu = \"sm_90,sm_80\"");
    CHECK(mc_bundle_load(in_folder("a.mcf"), 0, NULL) == 1, "%s", mc_last_error()); /* none is made */
    snprintf(list, sizeof list, "%s,native", other);
    spec.gpu = list;
    REQUIRE(mc_bundle_save(&spec) == MC_OK, "%s", mc_last_error());
    mc_function *h = mc_function_load(in_folder("a.mcf"));
    CHECK(h, "%s", mc_last_error());
    same_rounds(f, h, "x", "two architectures");
    mc_function *again = reloaded(h); /* with the images for both */
    CHECK(again && again->code->images && h->code->images &&
              again->code->images->image.n == h->code->images->image.n,
          "other images");
    spec.gpu = "sm_80,rdna3";
    says(mc_bundle_save(&spec), MC_EARG, "bundle_save: there is no architecture 'rdna3'");
    mc_function_free(f), mc_function_free(h), mc_function_free(again);
    CHECK(!mc_images_published(), "images are left");
    mc_graph_free(g);
    drop_folder();
}

/* ---- what is in the file ---- */

static size_t images_of(mc_function *f)
{
    mc_function *h = reloaded(f);
    const size_t n = h && h->code->images ? h->code->images->image.n : 0;
    mc_function_free(h);
    return n;
}

/* The kernels of solvers that lost a comparison are not saved. */
TEST(images_of_the_solvers_that_were_chosen)
{
    ON_GPU();
    mc_flag_set("cache", in_folder("cache"));
    mc_graph *g = given_graph();
    const mc_spec spec = { .inputs = "x, y", .outputs = "dot(x, y)" };
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(64, 48)), *y = mc_array_new(MC_FLOAT32, MC_SHAPE(48, 40));
    mc_flag_set("plan", "measure");
    mc_function *timed = mc_compile(g, &spec), *remembered = mc_compile(g, &spec);
    REQUIRE(timed && remembered, "%s", mc_error(g));
    const size_t none = images_of(timed);
    CHECK(mc_call(timed, MC_IN(x, y), MC_NONE) == MC_OK, "%s", mc_last_error());
    CHECK(mc_call(remembered, MC_IN(x, y), MC_NONE) == MC_OK, "%s", mc_last_error()); /* by wisdom */
    const size_t n = images_of(timed);
    CHECK(n >= none && n == images_of(remembered),
          "%zu images after timing, %zu by wisdom, %zu before: %s, %s", n, images_of(remembered), none,
          mc_function_step(timed, 0).solver, mc_function_step(remembered, 0).solver);
    mc_function *h = reloaded(timed);
    mc_flag_set("plan", "estimate");
    mc_wisdom_clear();
    CHECK(h && mc_call(h, MC_IN(x, y), MC_NONE) == MC_OK, "%s", mc_last_error());
    for (int i = 0; h && i < mc_function_nsteps(h); i++) {
        const char *solver = mc_function_step(timed, i).solver;
        CHECK(strcmp(solver, mc_function_step(h, i).solver) == 0, "%s, then %s", solver,
              mc_function_step(h, i).solver);
    }
    CHECK(n == images_of(h), "%zu images, then %zu", n, images_of(h));
    mc_function_free(timed), mc_function_free(remembered), mc_function_free(h);
    mc_array_unref(&x), mc_array_unref(&y);
    mc_graph_free(g);
    drop_folder();
}

/* `monochord build` calls each function at each size, so nothing is compiled for those. */
TEST(a_model_built_for_a_gpu)
{
    ON_GPU();
    char command[512];
    int status;
    snprintf(
        command, sizeof command,
        "echo 'input 1x8x8\nconv 4 3x3 tanh\npool 2x2\ndense 3 softmax\nrule momentum rate=0.1' > %s && "
        "MONOCHORD_FLAGS=$MONOCHORD_FLAGS,plan=estimate,cuda.path=%s @/monochord build %s -o %s --gpu native "
        "--train",
        in_folder("model.txt"), mc_flag_get("cuda.path"), in_folder("model.txt"), in_folder("model.mcf"));
    const char *said = output_of(command, &status);
    REQUIRE(status == 0 && strstr(said, "wrote"), "%s", said);
    mc_function *f[3];
    const struct mc_cuda_code_stats before = mc_cuda_code_stats();
    REQUIRE(mc_bundle_load(in_folder("model.mcf"), 3, f) == 3, "%s", mc_last_error());
    mc_array *x = sample(MC_FLOAT32, 4, (int64_t[]){ 1, 1, 8, 8 }, -1, 1),
             *t = mc_array_new(MC_INT32, MC_SHAPE(1));
    for (int i = 0; i < 3; i++) {
        CHECK(strncmp(f[i]->code->device->name, "cuda", 4) == 0, "on %s", f[i]->code->device->name);
        const mc_status s = mc_function_ninputs(f[i]) == 1 ? mc_call(f[i], MC_IN(x), MC_NONE)
                                                           : mc_call(f[i], MC_IN(x, t), MC_NONE);
        CHECK(s == MC_OK, "%s", mc_last_error());
        mc_function_free(f[i]);
    }
    const struct mc_cuda_code_stats s = mc_cuda_code_stats();
    CHECK(s.compiled == before.compiled && s.from_disk == before.from_disk &&
              s.from_bundle > before.from_bundle,
          "%d compiled, %d from disk", (int)s.compiled, (int)s.from_disk);
    mc_array_unref(&x), mc_array_unref(&t);
    drop_folder();
}

/* Functions for the CPU and for a GPU in one file share a variable. */
TEST(both_devices_in_a_bundle)
{
    ON_GPU();
    mc_graph *g = given_graph();
    mc_array *w = sample(MC_FLOAT32, 1, (int64_t[]){ 6 }, -1, 1);
    mc_shared_new(g, "W", w);
    mc_function *f[2], *h[2] = { NULL };
    const mc_spec spec = { .inputs = "s", .outputs = "W * s", .updates = "W = W + s" };
    f[0] = mc_compile(g, &spec);
    mc_flag_set("device", "cpu");
    f[1] = mc_compile(g, &spec);
    REQUIRE(f[0] && f[1] && f[0]->code->backend != f[1]->code->backend, "%s", mc_error(g));
    const char *path = in_folder("both.mcf");
    CHECK(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 2, .function = f }) == MC_OK, "%s",
          mc_last_error());
    REQUIRE(mc_bundle_load(path, 2, h) == 2, "%s", mc_last_error()); /* with device=cpu */
    for (int i = 0; i < 4; i++) {
        same_call(f[i % 2], h[i % 2], 1, (mc_arg[]){ mc_arg_real(0.25 * i) }, "both devices");
        same_variables(f[i % 2], h[i % 2], "both devices");
    }
    CHECK(h[0]->code->backend == f[0]->code->backend && h[1]->code->backend == f[1]->code->backend &&
              mc_function_shared_named(h[0], "W") == mc_function_shared_named(h[1], "W"),
          "another device, or another variable");
    for (int i = 0; i < 2; i++) {
        mc_function_free(f[i]), mc_function_free(h[i]);
    }
    mc_array_unref(&w);
    mc_graph_free(g);
    drop_folder();
}

/* Results that stay on the GPU, of a copy that outlives the loaded function. */
TEST(results_of_loaded_functions_stay_on_the_gpu)
{
    ON_GPU();
    mc_graph *g = given_graph();
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "gpu_from_host(exp(x)), x * 2" });
    mc_function *h = reloaded(f), *copy = h ? mc_function_copy(h, true) : NULL;
    REQUIRE(copy, "%s", mc_last_error());
    mc_function_free(h);
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 5, 7 }, -1, 1), *y = NULL, *z = NULL;
    CHECK(mc_call(copy, MC_IN(x), MC_OUT(&y, &z)) == MC_OK, "%s", mc_last_error());
    CHECK(y && z && strcmp(mc_array_device(y), "cuda0") == 0 && strcmp(mc_array_device(z), "cpu") == 0,
          "on %s and %s", mc_array_device(y), mc_array_device(z));
    mc_array_unref(&y), mc_array_unref(&z);
    same_rounds(f, copy, "x", "a copy");
    mc_array_unref(&x);
    mc_function_free(f), mc_function_free(copy);
    CHECK(!mc_images_published(), "images are left");
    mc_graph_free(g);
    drop_folder();
}

TEST(a_second_gpu_loads_the_same_file)
{
    ON_GPU();
    if (mc_cuda_count() < 2) {
        SKIP("one GPU");
    }
    mc_graph *g = given_graph();
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = "softmax(dot(x, y))" });
    REQUIRE(f, "%s", mc_error(g));
    CHECK(mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    mc_flag_set("device", "cuda1");
    mc_function *h = mc_function_load(in_folder("a.mcf"));
    CHECK(h && strcmp(h->code->device->name, "cuda1") == 0, "%s", mc_last_error());
    same_rounds(f, h, "x, y", "cuda1");
    mc_function_free(f), mc_function_free(h);
    mc_graph_free(g);
    drop_folder();
}

TEST(gpu_bundles_survive_every_failed_allocation)
{
    ON_GPU();
    mc_graph *g = given_graph();
    mc_register(g, &halved);
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .inputs = "x, y", .outputs = "halved(dot(x, y)), softmax(x)" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *value[2];
    given_values("x, y", 0, value);
    CHECK(mc_call(f, MC_IN(value[0], value[1]), MC_NONE) == MC_OK, "%s", mc_last_error());
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("a.mcf"));
    REQUIRE(mc_function_save(f, path) == MC_OK, "%s", mc_last_error());
    ALLOC_FAIL_LOOP {
        const mc_status s = mc_function_save(f, path);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
    }
    ALLOC_FAIL_LOOP {
        mc_function *h = mc_function_load(path);
        CHECK(h || (ALLOC_FAILED && mc_last_status() == MC_EMEMORY), "%s", mc_last_error());
        mc_function_free(h);
        CHECK(!mc_images_published(), "images are left");
    }
    mc_array_unref(&value[0]), mc_array_unref(&value[1]);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

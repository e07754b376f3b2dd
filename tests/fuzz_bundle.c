/* fuzz_bundle.c: whatever the bytes, loading them as a bundle ends in functions or in an error.  Each input
 * is tried as it is, and again with a header and checksums that fit it.  Functions are looked at and freed,
 * but not called: a bundle has machine code.  Their kernels are printed for a GPU, as loading there does, and
 * what looks like machine code for a GPU is checked.
 *
 * Good inputs are made of functions at the start, without machine code, so that they follow the format.
 *
 * Invariant: no library of an input is opened. */
#include "fuzz.h"
#include "bundle/bundle.h"
#include "exec/cuda/cuda.h"
#include "exec/kernels.h"

#include <dlfcn.h>

enum { SEEDS = 17 };
static const struct { const char *inputs, *outputs, *updates, *mode; } formulas[SEEDS] = {
    { "x", "x + 1", NULL, "FAST_COMPILE" },
    { "x, s", "y = tanh(x) * s, borrow(sum(x, axis=0))", "W = W * 0.5 + s", NULL },
    { "x", "softmax(x), x.T, x[1:, ::-1], reshape(x, [-1])", NULL, NULL },
    { "x", "dot(x, W), sum(maximum(dot(x, W) + 1, 0), axis=0)", NULL, NULL },
    { "img, w", "conv(img, w, border='same', stride=2), pool(img, [2, 2])", NULL, NULL },
    { "x", "sort(x, axis=0), cumsum(x, axis=1), nonzero(x), argmax(x)", NULL, NULL },
    { "x, i", "x[i], set_subtensor(x[i], 0), x[0, i]", "n = n + 1", NULL },
    { "s", "uniform(rng, [3]) * s, alloc(s, [2, n]), arange(n)", NULL, NULL },
    { "x, s", "grad(sum(sqr(dot(x, W))), x), concatenate(x, x, axis=1)", "W = W - s * grad(sum(dot(x, W)), W)", NULL },
    { "img", "lrn(img), mean(img, axis=[2, 3]), dimshuffle(img, [0, 2, 3, 1])", NULL, "FAST_COMPILE" },
    { "x", "cast(x, 'float16') + 1, cast(x, 'int8') // 2, x == x, specify_shape(x, [-1, 3])", NULL, NULL },
    { "", "W, n, [1, 2, 3]", "n = n * 2", "NANGUARD" },
    { "x, s", "smooth(x), sum(mixed(x, s), axis=0)", "W = smooth(W)", NULL },
    { "x, s", "scan(r in x, h from s: h = tanh(h + sum(smooth(r))); yield h, last h; until h > 2), "
              "grad(sum(scan(r in x, h from zeros([2], dtype='float32'): h = tanh(dot(r, W) + h))), x)", NULL, NULL },
    { "s", "scan(steps=3, a from s: b = scan(steps=n, b from a: b = b * 0.5 + a; yield last b); a = a + b; yield a)",
      "n = n + 1", "FAST_COMPILE" },
    { "x, s", "ifelse(s > 0, [dot(x, W), sum(smooth(x))], [ifelse(s < -1, dot(x, W) + 1, dot(x, W) * 2), prod(x)])[0], "
              "ifelse(n > 1, x[1:], x)", "W = W - grad(ifelse(s > 0, sum(sqr(dot(x, W))), sum(W)), W)", NULL },
    { "x, s", "scan(r in x, h from s: h = ifelse(h > 0, h - sum(softmax(r)), scan(steps=n, b from h: b = ifelse(b > 1, "
              "b * 0.5, b + 1); yield last b)); yield h)", NULL, "FAST_COMPILE" },
};
static struct mc_str seed[SEEDS];
static char folder[64], path[128];
static bool closed; /* no library is opened any more */

/* In place of the C library's: kernels are compiled for good inputs, and then nothing is loaded. */
void *dlopen(const char *file, int mode)
{
    static void *(*own)(const char *file, int mode);
    if (!own) {
        void *at = dlsym(RTLD_NEXT, "dlopen");
        memcpy(&own, &at, sizeof own);
    }
    return closed ? NULL : own(file, mode);
}

static void clean(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) {
        perror(folder);
    }
}

/* ---- headers ---- */

static size_t aligned(size_t n)
{
    return (n + MC_BUNDLE_ALIGN - 1) / MC_BUNDLE_ALIGN * MC_BUNDLE_ALIGN;
}

/* The bytes behind the header, as a file whose header fits them. */
static struct mc_str fitting(const uint8_t *data, size_t n)
{
    static const char zeros[MC_BUNDLE_ALIGN];
    struct mc_bundle_header h = { .magic = "MCBUNDL", .format = MC_BUNDLE_FORMAT, .order = 1 };
    struct mc_str file = { 0 };
    uint64_t description;
    memcpy(&description, data + offsetof(struct mc_bundle_header, description), sizeof description);
    h.magic[7] = 'E';
    h.description = MC_MIN(description, n - sizeof h);
    const size_t end = sizeof h + (size_t)h.description, front = aligned(end);
    memcpy(h.version, MC_VERSION, sizeof MC_VERSION);
    mc_str_addn(&file, (const char *)&h, sizeof h);
    mc_str_addn(&file, (const char *)data + sizeof h, (size_t)h.description);
    mc_str_addn(&file, zeros, front - end);
    mc_str_addn(&file, (const char *)data + MC_MIN(front, n), n - MC_MIN(front, n));
    h.size = file.n;
    h.sums[0] = mc_bundle_checksum(file.s + sizeof h, (size_t)h.description);
    h.sums[1] = mc_bundle_checksum(file.s + front, file.n - front);
    memcpy(file.s, &h, sizeof h);
    return file;
}

/* ---- good inputs ---- */

/* Machine code for two GPUs, or none.  The first has the header of an ELF file with one section. */
static struct mc_images *some_images(int row)
{
    static const char text[] = "a text";
    static char elf[192] = { 127,           'E', 'L', 'F', [40] = 64, [58] = 64, [60] = 1, [64 + 24] = 100,
                             [64 + 32] = 20 };
    struct mc_images *l = row % 3 ? NULL : mc_images_new();
    const struct mc_image image[] = { { mc_image_text(text, ""), "sm_90a", elf, sizeof elf },
                                      { mc_image_text(text, ""), "compute_90", "PTX", 3 } };
    for (size_t i = 0; l && i < NELEM(image); i++) {
        if (!VEC_PUSH(l->image, image[i])) {
            fuzz_wrong("no memory");
        }
    }
    return l;
}

/* A file of one function, without libraries. */
static void write_seed(struct mc_str *to, mc_function *f, struct mc_images *images)
{
    struct mc_wire w = { .what = "seed" };
    struct mc_bundle_shared s = { f->shared, f->nshared, images };
    struct mc_bundle_header h = { 0 };
    mc_wire_int(&w, 0, 0, 0); /* texts */
    mc_wire_shared(&w, &s);
    mc_wire_images(&w, &s);
    mc_wire_int(&w, 1, 1, 1); /* functions */
    mc_wire_function(&w, &f, &s, NULL);
    if (!mc_wire_good(&w)) {
        fuzz_wrong("no seed");
    }
    h.description = w.out.n;
    struct mc_str plain = { 0 };
    mc_str_addn(&plain, (const char *)&h, sizeof h);
    mc_str_addn(&plain, w.out.s, w.out.n);
    mc_str_addn(&plain, (const char[MC_BUNDLE_ALIGN]){ 0 }, aligned(plain.n) - plain.n);
    for (size_t i = 0; i < w.blob.n; i++) {
        mc_str_addn(&plain, w.blob.at[i].data, w.blob.at[i].n);
    }
    *to = fitting((const uint8_t *)plain.s, plain.n);
    mc_str_free(&plain);
    mc_wire_free(&w);
}

static void make_seeds(void)
{
    for (int i = 0; i < SEEDS; i++) {
        mc_graph *g = mc_graph_new();
        mc_array *w = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 2)), *n = mc_array_scalar(MC_INT64, 2);
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_input(g, "s", MC_FLOAT32, 0);
        mc_input(g, "i", MC_INT64, 1);
        mc_input(g, "img", MC_FLOAT32, 4);
        mc_input_sized(g, "w", MC_FLOAT32, 4, (int64_t[]){ 4, 2, 3, 3 });
        mc_shared_new(g, "W", w);
        mc_shared_new(g, "n", n);
        mc_random(g, "rng", 1);
        mc_register(g,
                    &(mc_custom){ .name = "smooth", .nin = 1, .nout = 1, .kernel = "a / (1 + M(exp)(-a))" });
        mc_register(g, &(mc_custom){ .name = "mixed", .nin = 2, .nout = 1, .kernel = "a * b - b" });
        mc_label(g, "layer");
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = formulas[i].inputs,
                                                   .outputs = formulas[i].outputs,
                                                   .updates = formulas[i].updates,
                                                   .mode = formulas[i].mode });
        if (!f) {
            fuzz_wrong(formulas[i].outputs);
        }
        struct mc_images *images = some_images(i);
        write_seed(&seed[i], f, images);
        mc_images_unref(&images);
        mc_array_unref(&w), mc_array_unref(&n);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

static void start(void)
{
    if (*folder) {
        return;
    }
    fuzz_folder(folder);
    snprintf(path, sizeof path, "%s/one.mcf", folder);
    atexit(clean);
    mc_flag_set("device", "cpu");
    make_seeds();
    closed = true;
    fuzz_small_memory();
}

/* ---- one input ---- */

/* As the backend of GPUs prints them. */
static void print_for_gpu(mc_function *f)
{
    struct mc_program *p = &f->code->program;
    int *first = mc_kernels_share(p), *to = mc_alloc((p->step.n + 1) * sizeof *to, "fuzz");
    struct mc_kernel **k = mc_alloc((p->step.n + 1) * sizeof *k, "fuzz");
    struct mc_str out = { 0 };
    if (first && to && k) {
        mc_kernels_rule_out(p, first, mc_grid_excluded_forms);
        for (int i = 0, n = mc_kernels_distribute(p, first, 3, to); i < n; i++) {
            mc_render_grid(&out, &mc_dialect_cuda, mc_kernels_of(p, first, to, i, k), k);
        }
    }
    mc_str_free(&out);
    mc_free(first), mc_free(to), mc_free(k);
}

/* Whatever is where a blob may be. */
static void check_images(const uint8_t *data, size_t n)
{
    for (size_t at = 0; at < n; at += MC_BUNDLE_ALIGN) {
        struct mc_str image = { malloc(n - at), n - at, n - at, false };
        memcpy(image.s, data + at, n - at);
        mc_cuda_image_check(&image);
        free(image.s);
    }
}

static void look(const mc_function *f)
{
    size_t n = strlen(mc_function_graph_text(f)) + strlen(mc_function_source(f));
    for (int i = 0; i < mc_function_ninputs(f); i++) {
        n += strlen(mc_function_input_name(f, i));
    }
    for (int i = 0; i < mc_function_noutputs(f); i++) {
        n += strlen(mc_function_output_name(f, i));
    }
    for (int i = 0; i < mc_function_nshared(f); i++) {
        n += strlen(mc_shared_name(mc_function_shared(f, i)));
    }
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        const mc_step_info s = mc_function_step(f, i);
        n += strlen(s.kind) + strlen(s.name) + strlen(s.text) + strlen(s.solver) + strlen(s.reason);
    }
    if (n == SIZE_MAX) {
        abort();
    }
}

static void load(const void *data, size_t n)
{
    mc_function *f[2];
    if (mc_file_write(path, data, n) < 0) {
        fuzz_wrong("not written");
    }
    mc_clear_error();
    const int have = mc_bundle_load(path, 2, f);
    if (have < 0 ? !*mc_last_error() || f[0] || f[1] : have < 1 || !f[0] || (have > 1) != (f[1] != NULL)) {
        fuzz_wrong("neither functions nor an error");
    }
    for (int i = 0; i < 2 && have > 0; i++) {
        if (f[i]) {
            look(f[i]);
            print_for_gpu(f[i]);
        }
        mc_function_free(f[i]);
    }
    mc_text_free(mc_bundle_text(path, "key"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    start();
    check_images(data, n);
    if (n < sizeof(struct mc_bundle_header)) {
        load(data, n);
        return 0;
    }
    struct mc_str file = fitting(data, n);
    if (file.n != n || memcmp(file.s, data, n) != 0) {
        load(data, n);
    }
    load(file.s, file.n);
    mc_str_free(&file);
    return 0;
}

/* Another number in place of one of the description, which may be longer or shorter; the new size.  at and
 * number choose. */
static size_t other_number(uint8_t *data, size_t n, size_t most, size_t at, unsigned number)
{
    static const uint64_t liked[] = { 0,          1,         2, 3, 4, 5, 14, 16, 18, 127, 128, UINT32_MAX - 1,
                                      UINT32_MAX, UINT64_MAX };
    uint64_t old = 0, description;
    uint8_t now[10];
    size_t was = 0, is = 0;
    if (n <= sizeof(struct mc_bundle_header)) {
        return n;
    }
    at = sizeof(struct mc_bundle_header) + at % (n - sizeof(struct mc_bundle_header));
    do {
        old |= (uint64_t)(data[at + was] & 0x7f) << MC_MIN(7 * was, 63);
    } while (data[at + was++] & 0x80 && at + was < n && was < sizeof now);
    const unsigned which = number % (NELEM(liked) + 4);
    uint64_t v = which < NELEM(liked) ? liked[which] : old + 2 * (which - NELEM(liked)) - 4;
    do {
        now[is++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    } while (v >>= 7);
    if (n - was + is > most) {
        return n;
    }
    memmove(data + at + is, data + at + was, n - at - was);
    memcpy(data + at, now, is);
    memcpy(&description, data + offsetof(struct mc_bundle_header, description), sizeof description);
    description += is - was;
    memcpy(data + offsetof(struct mc_bundle_header, description), &description, sizeof description);
    return n - was + is;
}

#if defined(MC_LIBFUZZER)

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned number);

/* One of sixteen begins with a good input. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned number)
{
    start();
    const struct mc_str *s = &seed[number / 16 % SEEDS];
    if (number % 16 == 0 && s->n <= most) {
        memcpy(data, s->s, s->n);
        n = s->n;
    }
    return number % 3 ? other_number(data, n, most, number / 16, number / 3)
                      : LLVMFuzzerMutate(data, n, most);
}

#else

static void one(void)
{
    start();
    enum { ROOM = 64 };
    const struct mc_str *s = &seed[fuzz_below(SEEDS)];
    size_t size = s->n;
    if (fuzz_below(3)) {
        uint8_t *data = malloc(size + ROOM);
        memcpy(data, s->s, size);
        for (size_t k = 1 + fuzz_below(3); k > 0; k--) {
            size = other_number(data, size, s->n + ROOM, fuzz_below(1 << 20), (unsigned)fuzz_below(1 << 20));
        }
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    } else {
        unsigned char *data = fuzz_changed(s->s, &size);
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif

/* runtime.c [FOLDER]: a program that is linked with libmonochord-run alone: arrays, files, flags,
 * errors, memory;
 * and the functions of FOLDER, which save.c wrote: their results have the bits that libmonochord gave.
 *
 * What the files of arrays hold was written by NumPy (npz_sample.h) and by Python's struct
 * (safetensors_sample.h). */
#include <monochord.h>

#include "../npz_sample.h"
#include "../safetensors_sample.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int checks, failures;

static void check(int good, int line, const char *what)
{
    checks++;
    if (!good) {
        failures++;
        printf("runtime.c:%d: %s; last error: %s\n", line, what, mc_last_error());
    }
}
#define CHECK(x) check((x) != 0, __LINE__, #x)

static const char *scratch(void) /* a file of this program's own */
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/mc-runtime-%ld", (long)getpid());
    return path;
}

static void write_hex(const char *hex)
{
    FILE *f = fopen(scratch(), "wb");
    for (; f && *hex; hex += 2) {
        char byte[3] = { hex[0], hex[1], 0 };
        fputc((int)strtol(byte, NULL, 16), f);
    }
    CHECK(f && fclose(f) == 0);
}

/* Does the array print as NumPy prints it? */
static int reads(const mc_array *a, const char *want)
{
    char *text = a ? mc_array_text(a) : NULL;
    const int same = text && strncmp(text, want, strlen(want)) == 0 &&
                     strspn(text + strlen(want), "\n") == strlen(text + strlen(want));
    if (text && !same) {
        printf("got %s\n", text);
    }
    mc_text_free(text);
    return same;
}

static void arrays(void)
{
    mc_array *a = mc_array_from(MC_INT32, MC_SHAPE(2, 3), (int[]){ 1, 2, 3, 4, 5, 6 });
    mc_array *t = mc_array_transpose(a, NULL), *part = mc_array_slice(t, 0, 2, 2, -1);
    mc_array *flat = mc_array_reshape(t, MC_SHAPE(-1)), *half = mc_array_cast(flat, MC_FLOAT16);
    CHECK(reads(t, "[[1 4]\n [2 5]\n [3 6]]"));
    CHECK(reads(part, "[[3 6]\n [2 5]]"));
    CHECK(reads(flat, "[1 4 2 5 3 6]"));
    CHECK(reads(half, "[1. 4. 2. 5. 3. 6.]"));
    CHECK(mc_array_get(part, (int64_t[]){ 1, 1 }) == 5);
    CHECK(mc_dtype_promote(MC_INT32, MC_FLOAT16) == MC_FLOAT64);
    mc_array *here = mc_array_to(a, "cpu");
    CHECK(here == a);
    struct DLManagedTensor *lent = mc_array_to_dlpack(t);
    mc_array *back = lent ? mc_array_from_dlpack(lent) : NULL;
    CHECK(back && mc_array_data(back) == mc_array_data(a) && reads(back, "[[1 4]\n [2 5]\n [3 6]]"));
    mc_array *all[] = { a, t, part, flat, half, here, back };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        mc_array_unref(&all[i]);
    }
}

static void npz(void)
{
    write_hex(npz_sample);
    mc_archive *z = mc_archive_open(scratch());
    mc_array *x = z ? mc_archive_load(z, "x") : NULL, *yy = z ? mc_archive_load(z, "yy") : NULL;
    CHECK(z && mc_archive_count(z) == 2 && strcmp(mc_archive_name(z, 1), "yy") == 0);
    CHECK(reads(x, "[[  1   2   3]\n [ -4 500   6]]") && mc_array_dtype(x) == MC_INT16);
    CHECK(yy && mc_array_rank(yy) == 0 && mc_array_get(yy, NULL) == 2.5);
    CHECK(z && !mc_archive_load(z, "z") && mc_last_status() == MC_EARG);
    mc_archive_close(z);
    CHECK(mc_npy_save(scratch(), x) == MC_OK);
    mc_array *again = mc_npy_load(scratch());
    CHECK(again && mc_array_dtype(again) == MC_INT16 && reads(again, "[[  1   2   3]\n [ -4 500   6]]"));
    mc_array_unref(&x);
    mc_array_unref(&yy);
    mc_array_unref(&again);
}

static void safetensors(void)
{
    write_hex(safetensors_sample);
    mc_archive *z = mc_archive_open(scratch());
    mc_array *w = z ? mc_archive_load(z, "a.weight") : NULL, *h = z ? mc_archive_load(z, "h") : NULL;
    CHECK(z && mc_archive_count(z) == 15 && mc_archive_has(z, "i64") && !mc_archive_has(z, "weight"));
    CHECK(reads(w, "[[ 1.  -2.   3.5]\n [ 0.   5.   6. ]]") && mc_array_dtype(w) == MC_FLOAT32);
    CHECK(reads(h, "[ 1.5 -2. ]") && mc_array_dtype(h) == MC_FLOAT16);
    mc_archive_close(z);
    mc_array_unref(&w);
    mc_array_unref(&h);
}

static void errors_and_flags(void)
{
    CHECK(!mc_npy_load("/nowhere/x.npy") && mc_last_status() == MC_EFILE);
    CHECK(strcmp(mc_status_name(MC_EFILE), "file") == 0);
    CHECK(mc_flag_set("thread", "2") == MC_EARG && strstr(mc_last_error(), "'threads'"));
    CHECK(mc_flags_parse("threads=2,plan=estimate") == MC_OK && strcmp(mc_flag_get("threads"), "2") == 0);
    mc_array *a = mc_array_scalar(MC_FLOAT64, 1);
    CHECK(!mc_array_to(a, "cuda0") && mc_last_status() == MC_EUNSUPPORTED &&
          strstr(mc_last_error(), "no GPUs"));
    mc_array_unref(&a);
    CHECK(mc_call_args(NULL, MC_NONE, MC_NONE) == MC_EARG);
    CHECK(mc_synchronize() == MC_OK);
}

/* ---- functions ---- */

static int same_bits(const mc_array *a, const mc_array *b)
{
    const int rank = mc_array_rank(a);
    return mc_array_dtype(a) == mc_array_dtype(b) && rank == mc_array_rank(b) &&
           memcmp(mc_array_dims(a), mc_array_dims(b), (size_t)rank * sizeof(int64_t)) == 0 &&
           memcmp(mc_array_data(a), mc_array_data(b),
                  (size_t)mc_array_size(a) * mc_dtype_size(mc_array_dtype(a))) == 0;
}

static mc_array *of_archive(mc_archive *z, const char *kind, int i)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, i);
    return mc_archive_load(z, name);
}

/* One call: the results are those that the archive has under the names kind0, kind1, ... */
static void call(mc_function *f, mc_archive *z, const char *name, const char *kind)
{
    enum { MOST = 8 };
    mc_array *in[MOST] = { 0 }, *out[MOST] = { 0 };
    mc_arg from[MOST], to[MOST];
    const int nin = mc_function_ninputs(f), nout = mc_function_noutputs(f);
    CHECK(nin <= MOST && nout > 0 && nout <= MOST);
    for (int i = 0; i < nin; i++) {
        in[i] = of_archive(z, "in", i);
        from[i] = mc_arg_array(in[i]);
    }
    for (int i = 0; i < nout; i++) {
        to[i] = mc_arg_slot(&out[i]);
    }
    CHECK(mc_call_args(f, nin, from, nout, to) == MC_OK);
    for (int i = 0; i < nout; i++) {
        mc_array *want = of_archive(z, kind, i);
        const int same = want && out[i] && same_bits(want, out[i]);
        CHECK(same);
        if (!same) {
            printf("%s: result %d of the %s call differs\n", name, i, kind);
        }
        mc_array_unref(&want);
        mc_array_unref(&out[i]);
    }
    for (int i = 0; i < nin; i++) {
        mc_array_unref(&in[i]);
    }
}

static void functions(const char *folder)
{
    static const char *const names[] = { "maps",     "reductions", "products", "images",
                                         "training", "indexing",   "random",   "custom",
                                         "custom by the reference", "loops", "convolutions", "windows",
                                         "skinny products", "casts", "choices" };
    char path[1000];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s.mcf", folder, names[i]);
        mc_function *f = mc_function_load(path);
        snprintf(path, sizeof path, "%s/%s.npz", folder, names[i]);
        mc_archive *z = mc_archive_open(path);
        CHECK(f && z && strcmp(mc_function_name(f), names[i]) == 0);
        if (f && z) {
            call(f, z, names[i], "first");
            call(f, z, names[i], "second");
        }
        mc_archive_close(z);
        mc_function_free(f);
    }
    snprintf(path, sizeof path, "%s/maps.npz", folder);
    CHECK(!mc_function_load(path) && mc_last_status() == MC_EFORMAT);
}

/* ---- memory: all of it through the allocator, and all given back ---- */

static long blocks;

static void *count(void *arg, void *p, size_t n)
{
    (void)arg;
    if (n == 0) {
        blocks -= p != NULL;
        free(p);
        return NULL;
    }
    void *q = realloc(p, n);
    blocks += q && !p;
    return q;
}

int main(int argc, char **argv)
{
    mc_set_allocator(&(mc_allocator){ count, NULL });
    CHECK(strcmp(mc_version(), MC_VERSION) == 0);
    CHECK(mc_flag_set("threads", "1") == MC_OK); /* flags keep what they were set to */
    const long before = blocks;
    arrays();
    npz();
    safetensors();
    CHECK(blocks == before);
    if (argc > 1) {
        functions(argv[1]);
    }
    errors_and_flags();
    unlink(scratch());
    printf("runtime: %d checks, %d failed\n", checks, failures);
    return failures != 0;
}

/* t_export_load.c: the reader of .safetensors files in exported C: what others write is read, and no header
 * does harm. */
#include "export_words.h"
#include "safetensors_sample.h"
#include "unhex.h"
#include "value/archive.h"
#include <monochord.h>
#include <stddef.h>

#include "export/reader.h"

/* ---- headers by hand ---- */

struct pair {
    float w[6];
    int64_t n;
    unsigned char truth[3], none;
};
static const struct safetensors_variable of_pair[] = {
    { "W", "F32", 2, { 2, 3 }, offsetof(struct pair, w), 24, 4 },
    { "n\303\274", "I64", 0, { 0 }, offsetof(struct pair, n), 8, 8 },
    { "truth", "BOOL", 1, { 3 }, offsetof(struct pair, truth), 3, 1 },
    { "none", "U8", 2, { 0, 4 }, offsetof(struct pair, none), 0, 1 },
};
enum { VARIABLES = NELEM(of_pair), DATA = 40 };

/* A file in memory of just its size: header, then `data` bytes 0, 1, 2, ...; length 0: that of the header.
 * The caller frees it. */
static char *file(const char *header, uint64_t length, size_t data, size_t *size)
{
    const size_t n = strlen(header);
    char *b = malloc(8 + n + data);
    for (size_t i = 0; i < 8; i++) {
        b[i] = (char)((length ? length : n) >> 8 * i);
    }
    memcpy(b + 8, header, n);
    for (size_t i = 0; i < data; i++) {
        b[8 + n + i] = (char)i;
    }
    *size = 8 + n + data;
    return b;
}

static int load(struct pair *to, const void *bytes, size_t size)
{
    uint64_t begin[VARIABLES];
    return read_safetensors(to, bytes, size, of_pair, VARIABLES, begin);
}

static bool untouched(const struct pair *p)
{
    struct pair fresh;
    memset(&fresh, 0xa5, sizeof fresh);
    return memcmp(p, &fresh, sizeof fresh) == 0;
}

#define ENTRY(dtype, shape, at, to) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #at "," #to "]}"
#define W "\"W\":" ENTRY("F32", "[2,3]", 0, 24)
#define N "\"n\303\274\":" ENTRY("I64", "[]", 24, 32)
#define TRUTH "\"truth\":" ENTRY("BOOL", "[3]", 33, 36)
#define NONE "\"none\":" ENTRY("U8", "[0,4]", 36, 36)
#define REST N "," TRUTH "," NONE "}"

TEST(headers_of_parameters)
{
    static const struct {
        const char *header;
        uint64_t length;
        int want;
    } rows[] = {
        { "{" W "," REST, 0, 0 },
        { " {" W "," REST " \n\t\r", 0, 0 },
        { "{" REST, 0, 1 }, /* W is missing */
        { "{" W "}", 0, 1 },
        { "{}", 0, 1 },
        { "", 0, 1 },
        { "{" W "," REST, 3, 1 },
        { "{" W "," REST, 100000, 1 },
        { "{" W "," REST, UINT64_MAX, 1 },
        { "{" W "," REST, UINT64_C(1) << 63, 1 },
        { "{" W "," REST "x", 0, 1 },
        { "{" W "," REST "}", 0, 1 },
        { "{" W "," W "," REST, 0, 1 }, /* twice */
        { "{" W ",\"\\u0057\":" ENTRY("F32", "[2,3]", 0, 24) "," REST, 0, 1 },
        { "{" W REST, 0, 1 },
        { "{," W "," REST, 0, 1 },
        { "{" W ",," REST, 0, 1 },
        { "[" W "," REST, 0, 1 },
        /* names, escaped and not */
        { "{\"\\u0057\":" ENTRY("F32", "[2,3]", 0, 24) "," REST, 0, 0 },
        { "{" W ",\"n\\u00FC\":" ENTRY("I64", "[]", 24, 32) "," TRUTH "," NONE "}", 0, 0 },
        { "{" W ",\"\\u006e\\u00fc\":" ENTRY("I64", "[]", 24, 32) "," TRUTH "," NONE "}", 0, 0 },
        { "{" W ",\"n\":" ENTRY("I64", "[]", 24, 32) "," TRUTH "," NONE "}", 0, 1 },
        { "{\"W \":" ENTRY("F32", "[2,3]", 0, 24) "," REST, 0, 1 },
        { "{\"WW\":" ENTRY("F32", "[2,3]", 0, 24) "," REST, 0, 1 },
        { "{\"\":" ENTRY("F32", "[2,3]", 0, 24) "," REST, 0, 1 },
        { "{\"\\u0057\\ud834\\udd1e\":3," W "," REST, 0, 0 },
        { "{\"\\ud834\":3," W "," REST, 0, 1 },
        { "{\"\\ud834\\u0041\":3," W "," REST, 0, 1 },
        { "{\"\\udd1e\":3," W "," REST, 0, 1 },
        { "{\"\\u0000\":3," W "," REST, 0, 1 },
        { "{\"\\u12g4\":3," W "," REST, 0, 1 },
        { "{\"\\x\":3," W "," REST, 0, 1 },
        { "{\"\n\":3," W "," REST, 0, 1 },
        { "{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":3," W "," REST, 0, 0 },
        /* others: extra tensors, metadata, keys */
        { "{\"__metadata__\":{\"format\":\"pt\"}," W ",\"V\":" ENTRY("C64", "[9,9]", 0, 99) "," REST, 0, 0 },
        { "{\"__metadata__\":{\"a\":[1,{\"b\":[]},null,-2.5e3,true]}," W "," REST, 0, 0 },
        { "{\"__metadata__\":{\"a\":[1,]}," W "," REST, 0, 1 },
        { "{\"__metadata__\":{\"a\"}," W "," REST, 0, 1 },
        { "{\"__metadata__\":{\"a\":1,}," W "," REST, 0, 1 },
        { "{\"__metadata__\":{3:1}," W "," REST, 0, 1 },
        { "{\"__metadata__\":," W "," REST, 0, 1 },
        { "{\"a\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]," W "," REST, 0, 0 }, /* sixteen levels */
        { "{\"a\":[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]," W "," REST, 0, 1 },
        { "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, 1 },
        { "{\"W\":{\"shape\" : [ 2 , 3 ] , \"new\":{\"a\":[]},\"data_offsets\": [0,24], \"dtype\":\"\\u00463"
          "2\" } ," REST,
          0, 0 },
        /* entries */
        { "{\"W\":3," REST, 0, 1 },
        { "{\"W\":{}," REST, 0, 1 },
        { "{\"W\":" ENTRY("F64", "[2,3]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F3", "[2,3]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F322", "[2,3]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[3,2]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[6]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2,3,1]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2,3,]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[02,3]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2.0,3]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[-2,3]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[18446744073709551618,3]", 0, 24) "," REST, 0, 1 }, /* 2^64 + 2 */
        { "{\"W\":" ENTRY("F32", "[,]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[]", 0, 24) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2,3]", 0, 28) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2,3]", 0, 20) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2,3]", 24, 0) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2,3]", 16, 40) "," REST, 0, 0 },
        { "{\"W\":" ENTRY("F32", "[2,3]", 17, 41) "," REST, 0, 1 }, /* a byte beyond the end */
        { "{\"W\":" ENTRY("F32", "[2,3]", 18446744073709551592, 0) "," REST, 0, 1 },
        { "{\"W\":" ENTRY("F32", "[2,3]", 18446744073709551600, 18446744073709551624) "," REST, 0, 1 },
        { "{\"W\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24,24]}," REST, 0, 1 },
        { "{\"W\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0]}," REST, 0, 1 },
        { "{\"W\":{\"dtype\":\"F32\",\"shape\":[2,3]}," REST, 0, 1 },
        { "{\"W\":{\"dtype\":\"F32\",\"data_offsets\":[0,24]}," REST, 0, 1 },
        { "{\"W\":{\"shape\":[2,3],\"data_offsets\":[0,24]}," REST, 0, 1 },
        { "{\"W\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}," REST, 0,
          1 },
        { "{\"W\":{\"dtype\":\"F32\",\"shape\":[2,3],\"shape\":[2,3],\"data_offsets\":[0,24]}," REST, 0, 1 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        size_t size;
        struct pair p;
        char *bytes = file(rows[i].header, rows[i].length, DATA, &size);
        memset(&p, 0xa5, sizeof p);
        const int got = load(&p, bytes, size);
        CHECK(got == rows[i].want, "row %zu, %s: %d", i, rows[i].header, got);
        CHECK(got == 0 || untouched(&p), "row %zu: refused, and yet set", i);
        for (size_t n = 0; got == 0 && i == 0 && n < size; n++) { /* cut off anywhere */
            char *part = malloc(n + 1);
            memcpy(part, bytes, n);
            memset(&p, 0xa5, sizeof p);
            /* bytes behind the last tensor are no part of it */
            CHECK(load(&p, part, n) == (n < size - (DATA - 36)), "%zu bytes of %zu", n, size);
            free(part);
        }
        free(bytes);
    }
    size_t size;
    struct pair p;
    char *bytes = file("{" W "," REST, 0, DATA, &size);
    static const unsigned char third[] = { 8, 9, 10, 11 }, count[] = { 24, 25, 26, 27, 28, 29, 30, 31 };
    memset(&p, 0xa5, sizeof p);
    memset(bytes + size - DATA + 34, 0, 1);
    CHECK(load(&p, bytes, size) == 0, "refused");
    if (*(const unsigned char *)&(uint16_t){ 1 }) { /* the low byte first, as in the file */
        CHECK(memcmp(&p.w[2], third, 4) == 0 && memcmp(&p.n, count, 8) == 0, "other bytes");
    }
    CHECK(p.truth[0] == 1 && p.truth[1] == 0 && p.truth[2] == 1, "truth is %d %d %d", p.truth[0], p.truth[1],
          p.truth[2]);
    CHECK(p.none == 0xa5, "set though empty");
    free(bytes);
}

/* Files with changed bytes: no harm, and what the library reads is read. */
TEST(damaged_parameters)
{
    static const struct safetensors_variable v[] = { { "a.weight", "F32", 2, { 2, 3 }, 0, 24, 4 } };
    struct mc_str b = unhex(safetensors_sample);
    const size_t header = 8 + (size_t)mc_little((const unsigned char *)b.s, 8);
    int read = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        const size_t cut = test_random() % 8 ? b.n : test_random() % (b.n + 1);
        char *bytes = malloc(cut + 1);
        memcpy(bytes, b.s, cut);
        for (int n = (int)(test_random() % 4); n > 0 && cut; n--) {
            static const char likely[] = "{}[]\",:0123456789\\u FIBU";
            char *at = bytes + test_random() % MC_MIN(cut, header);
            *at = test_random() % 4 ? likely[test_random() % (sizeof likely - 1)] : (char)test_random();
        }
        mc_clear_error();
        mc_archive *a = mc_archive_read(
            (struct mc_source){ .fd = -1, .mem = bytes, .size = cut, .name = "mem" });
        mc_array *w = a && mc_archive_has(a, "a.weight") ? mc_archive_load(a, "a.weight") : NULL;
        const bool same = w && w->dtype == MC_FLOAT32 && w->rank == 2 && w->dims[0] == 2 && w->dims[1] == 3;
        char *exact = realloc(bytes, MC_MAX(cut, (size_t)1)); /* a byte beyond the end is not there */
        float got[6] = { 0 };
        uint64_t begin[1];
        const int failed = read_safetensors(got, exact, cut, v, 1, begin);
        read += same;
        refused += failed;
        CHECK(!same || (!failed && memcmp(got, w->data, sizeof got) == 0),
              "round %d: the library reads a.weight, the file's own reader returns %d", round, failed);
        mc_array_unref(&w);
        mc_archive_close(a);
        free(exact);
    }
    CHECK(read > 1000 && refused > 1000, "%d read, %d refused: too few to tell", read, refused);
    mc_str_free(&b);
}

/* ---- whole exports ---- */

/* Compiled with warnings as errors; NULL: a failed check. */
static struct mc_code *accepted_code(const char *name)
{
    compiles(name);
    return code_of(name);
}

#define NEEDS_COMPILER()                                                                                     \
    if (!mc_cc_present()) {                                                                                  \
        SKIP("no C compiler");                                                                               \
    }                                                                                                        \
    mc_flag_set("device", "cpu")

/* Variables with the names, types and shapes of a file that tests/safetensors.py wrote: in another order,
 * with metadata, and with tensors whose names no variable has.  The exported function returns what it
 * loaded. */
TEST(export_loads_what_others_write)
{
    NEEDS_COMPILER();
    struct mc_str b = unhex(safetensors_sample);
    mc_archive *a = mc_archive_read(
        (struct mc_source){ .fd = -1, .mem = b.s, .size = b.n, .name = "sample" });
    REQUIRE(a, "%s", mc_last_error());
    enum { MOST = 16 };
    static const char *const names[] = { "b", "u64", "empty", "u8",  "u16", "u32", "i64",
                                         "i8", "i16", "i32",  "bf", "h",   "d" };
    const int n = NELEM(names);
    mc_graph *g = mc_graph_new();
    mc_node *out[MOST];
    mc_array *want[MOST];
    for (int i = 0; i < n; i++) { /* the variables are zeros: they are not those of the file yet */
        want[i] = mc_archive_load(a, names[i]);
        REQUIRE(want[i], "%s", mc_last_error());
        mc_array *zeros = mc_array_new(want[i]->dtype, want[i]->rank, want[i]->dims);
        mc_shared *s = mc_shared_new(g, names[i], zeros);
        REQUIRE(s, "%s", mc_error(g));
        out[i] = mc_shared_node(g, s);
        mc_array_unref(&zeros);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "f", .output = out, .noutput = n });
    REQUIRE(f, "%s", mc_error(g));
    char path[256], parameters[256];
    snprintf(path, sizeof path, "%s", in_folder("f.c"));
    snprintf(parameters, sizeof parameters, "%s", in_folder("f.safetensors"));
    const mc_export_function one = { f, "run", NULL };
    CHECK(mc_export(&(mc_export_spec){
              .path = path, .nfunction = 1, .function = &one, .parameters = parameters }) == MC_OK,
          "%s", mc_last_error());
    struct mc_code *code = accepted_code("f.c");
    typedef int load_function(void *m, const void *bytes, size_t size);
    typedef int run_function(const void *m, void *memory, void *, void *, void *, void *, void *, void *,
                             void *, void *, void *, void *, void *, void *, void *);
    load_function *load_it = (load_function *)function_of(code, "f_load");
    run_function *run = (run_function *)function_of(code, "f_run");
    REQUIRE(load_it && run, "no functions");
    double model[64], y[MOST][8] = { { 0 } };
    char *own = NULL;
    size_t size = 0;
    CHECK(mc_file_read(parameters, &own, &size) == MC_OK && load_it(model, own, size) == 0,
          "its own parameters are refused");
    CHECK(load_it(model, b.s, b.n) == 0, "the file is refused");
    CHECK(run(model, NULL, y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7], y[8], y[9], y[10], y[11], y[12]) ==
              0,
          "run fails");
    for (int i = 0; i < n; i++) {
        const size_t bytes = (size_t)mc_array_size(want[i]) * mc_dtypes[want[i]->dtype].size;
        CHECK(memcmp(y[i], want[i]->data, bytes) == 0, "%s differs", names[i]);
        mc_array_unref(&want[i]);
    }
    mc_free(own);
    mc_code_unref(&code);
    mc_function_free(f);
    mc_graph_free(g);
    mc_archive_close(a);
    mc_str_free(&b);
    drop_folder();
}

/* The parameters that were exported are read by the library, under the names of the variables; where these
 * are no names of tensors, under those of the members. */
TEST(export_writes_parameters_that_others_read)
{
    NEEDS_COMPILER();
    /* "int" is no name of a member, "__metadata__" none of a tensor, and there are two variables W */
    static const char *const names[] = { "U", "W", "__metadata__", "int" }, *const in_file[] = {
        "U", "W", "v__metadata__", "int", "W_2"
    };
    mc_graph *g = mc_graph_new(), *h = mc_graph_new();
    mc_node *sum = mc_number(g, MC_FLOAT32, 0.0);
    mc_shared *other = NULL;
    for (size_t i = 0; i < NELEM(in_file); i++) {
        const bool last = i == NELEM(names);
        mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ (float)i, 0.5f });
        mc_shared *s = mc_shared_new(last ? h : g, last ? "W" : names[i], x);
        REQUIRE(s, "%s %s", mc_error(g), mc_error(h));
        sum = last ? sum : mc_add(sum, mc_shared_node(g, s));
        other = s;
        mc_array_unref(&x);
    }
    mc_node *of_other = mc_shared_node(h, other);
    mc_function *f = mc_compile(g, &(mc_spec){ .output = &sum, .noutput = 1 }),
                *f2 = mc_compile(h, &(mc_spec){ .output = &of_other, .noutput = 1 });
    REQUIRE(f && f2, "%s %s", mc_error(g), mc_error(h));
    char path[256], parameters[256];
    snprintf(path, sizeof path, "%s", in_folder("safetensors_variable.c")); /* a name that the file has */
    snprintf(parameters, sizeof parameters, "%s", in_folder("p.safetensors"));
    const mc_export_function both[] = { { f, "run", NULL }, { f2, "other", NULL } };
    mc_export_spec spec = { .path = path, .nfunction = 2, .function = both, .parameters = parameters };
    ALLOC_FAIL_LOOP {
        const mc_status s = mc_export(&spec);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "status %d: %s", (int)s, mc_last_error());
    }
    mc_archive *a = mc_archive_open(parameters);
    REQUIRE(a && mc_archive_count(a) == (int)NELEM(in_file), "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(in_file); i++) {
        mc_array *x = mc_archive_load(a, in_file[i]);
        CHECK(x && *(float *)(void *)x->data == (float)i, "%s: %s", in_file[i], mc_last_error());
        mc_array_unref(&x);
    }
    mc_archive_close(a);
    struct mc_code *code = accepted_code("safetensors_variable.c");
    any_function *load_it = function_of(code, "safetensors_variable__load"),
                 *run = function_of(code, "safetensors_variable__run");
    float model[16] = { 0 }, y[2] = { 0 };
    char *own = NULL;
    size_t size = 0;
    CHECK(mc_file_read(parameters, &own, &size) == MC_OK, "%s", mc_last_error());
    if (load_it && run) {
        CHECK(((int (*)(void *, const void *, size_t))load_it)(model, own, size) == 0, "refused");
        CHECK(((int (*)(const void *, void *, float *))run)(model, NULL, y) == 0 && y[0] == 6 && y[1] == 2,
              "%g %g", (double)y[0], (double)y[1]);
    }
    mc_free(own);
    mc_code_unref(&code);
    mc_function_free(f), mc_function_free(f2);
    mc_graph_free(g), mc_graph_free(h);
    drop_folder();
}

/* t_base.c: allocation, arena, vectors, strings, hashing, errors. */
#include "base/base.h"
#include "own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- memory ---- */

TEST(products_of_sizes_are_checked)
{
    size_t s = 0;
    int64_t i = 0;
    CHECK(mc_mul_size(1 << 20, 1 << 20, &s) && s == (size_t)1 << 40, "gave %zu", s);
    CHECK(!mc_mul_size(SIZE_MAX / 2, 3, &s), "no overflow seen");
    CHECK(mc_mul_i64(-3, 5, &i) && i == -15, "gave %lld", (long long)i);
    CHECK(!mc_mul_i64(INT64_MIN, -1, &i), "no overflow seen");
    CHECK(mc_add_i64(INT64_MAX - 1, 1, &i) && i == INT64_MAX, "gave %lld", (long long)i);
    CHECK(!mc_add_i64(INT64_MAX, 1, &i), "no overflow seen");
    CHECK(!mc_calloc(SIZE_MAX / 2, 3, "tests") && mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
    CHECK(!mc_alloc_pages(SIZE_MAX - 10, "tests") && mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
}

TEST(pages_are_aligned_and_cleared)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 4096, 100000, (2 << 20) - 1, 2 << 20, 5 << 20 };
    for (size_t i = 0; i < NELEM(sizes); i++) {
        size_t align = sizes[i] >= 2 << 20 ? 2 << 20 : 64, set = 0;
        char *p = mc_alloc_pages(sizes[i], "tests"), *q = mc_calloc_pages(sizes[i], "tests");
        REQUIRE(p && q, "%s", mc_last_error());
        CHECK((uintptr_t)p % align == 0 && (uintptr_t)q % align == 0, "%zu bytes at %p, %p", sizes[i],
              (void *)p, (void *)q);
        memset(p, 1, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++) {
            set += q[k] != 0;
        }
        CHECK(set == 0, "%zu of %zu bytes are not zero", set, sizes[i]);
        mc_free_pages(p);
        mc_free_pages(q);
    }
    mc_free_pages(NULL);
    mc_free(NULL);
}

static long hooked;

static void *counting(void *arg, void *p, size_t n)
{
    hooked += *(int *)arg;
    if (n == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, n);
}

TEST(the_hook_sees_every_allocation)
{
    int one = 1;
    mc_set_allocator(&(mc_allocator){ counting, &one });
    void *p = mc_alloc(10, "tests"), *q = mc_calloc(3, 5, "tests"), *r = mc_alloc_pages(100, "tests"),
         *s = mc_calloc_pages(100, "tests");
    char *t = mc_strdup("text");
    CHECK(hooked == 5, "%ld calls", hooked);
    p = mc_realloc(p, 1000, "tests");
    mc_free(p);
    mc_free(q);
    mc_free_pages(r);
    mc_free_pages(s);
    mc_text_free(t);
    CHECK(hooked == 11, "%ld calls", hooked);
    mc_set_allocator(NULL);
    mc_free(mc_alloc(1, "tests"));
    CHECK(hooked == 11, "the C library's allocator was not put back");
}

TEST(the_arena_gives_cleared_aligned_pieces)
{
    struct mc_arena a = { 0 };
    char *piece[500];
    size_t size[500];
    for (int i = 0; i < 500; i++) {
        size[i] = i % 50 == 49 ? 3 << 20 : (size_t)(test_random() % 300);
        piece[i] = mc_arena_alloc(&a, size[i]);
        REQUIRE(piece[i], "%s", mc_last_error());
        bool clear = true;
        for (size_t k = 0; k < size[i]; k++) {
            clear &= piece[i][k] == 0;
        }
        CHECK(clear && (uintptr_t)piece[i] % 16 == 0, "piece %d of %zu bytes at %p", i, size[i],
              (void *)piece[i]);
        memset(piece[i], i, size[i]);
    }
    for (int i = 0; i < 500; i++) {
        size_t wrong = 0;
        for (size_t k = 0; k < size[i]; k++) {
            wrong += piece[i][k] != (char)i;
        }
        CHECK(wrong == 0, "piece %d was written over", i);
    }
    CHECK(strcmp(mc_arena_str(&a, "hello", 4), "hell") == 0, "not the text");
    CHECK(memcmp(mc_arena_copy(&a, "ab", 2), "ab", 2) == 0, "not the copy");
    mc_arena_free(&a);
    CHECK(!a.block && a.total == 0, "%zu bytes left", a.total);
}

TEST(the_arena_goes_back_to_a_mark)
{
    struct mc_arena a = { 0 };
    char *keep = mc_arena_str(&a, "keep", 4);
    struct mc_arena_mark m = mc_arena_mark(&a);
    size_t total = a.total;
    char *first = mc_arena_alloc(&a, 100);
    memset(first, 7, 100);
    for (int i = 0; i < 100; i++) {
        mc_arena_alloc(&a, 1000);
    }
    CHECK(a.total > total, "nothing more was taken");
    mc_arena_release(&a, m);
    CHECK(a.total == total, "%zu bytes, before %zu", a.total, total);
    char *again = mc_arena_alloc(&a, 100);
    CHECK(again == first && again[0] == 0 && again[99] == 0, "not the same place, or not cleared");
    CHECK(strcmp(keep, "keep") == 0, "what was older was lost");
    mc_arena_free(&a);
}

TEST(vectors_grow)
{
    VEC(int) v = { 0 };
    for (int i = 0; i < 10000; i++) {
        REQUIRE(VEC_PUSH(v, i * i), "%s", mc_last_error());
    }
    CHECK(v.n == 10000 && v.cap < 20000, "%zu of %zu", v.n, v.cap);
    CHECK(v.at[0] == 0 && v.at[9999] == 9999 * 9999, "not what was pushed");
    CHECK(!VEC_RESERVE(v, SIZE_MAX / 3), "too much was granted");
    CHECK(v.n == 10000 && v.at[100] == 10000, "a refusal changed the vector");
    VEC_FREE(v);
    CHECK(!v.at && v.n == 0 && v.cap == 0, "not empty");
}

/* ---- text ---- */

TEST(text_grows_and_formats)
{
    struct mc_str b = { 0 };
    for (int i = 0; i < 1000; i++) {
        mc_str_addf(&b, "%d,", i);
    }
    CHECK(b.n == 10 * 2 + 90 * 3 + 900 * 4 && strlen(b.s) == b.n, "%zu characters", b.n);
    mc_str_addf(&b, "%s", "");
    mc_str_addn(&b, "a\0b", 3);
    CHECK(memcmp(b.s + b.n - 7, "999,a\0b", 8) == 0, "not the end");
    mc_str_free(&b);
    char *empty = mc_str_take(&b);
    CHECK(empty && *empty == '\0', "empty text is NULL");
    mc_text_free(empty);
}

TEST(text_is_escaped)
{
    struct mc_str b = { 0 };
    mc_str_json(&b, "a\"b\\c\nd\t</x>");
    CHECK(strcmp(b.s, "\"a\\\"b\\\\c\\nd\\u0009\\u003c/x>\"") == 0, "%s", b.s);
    mc_str_free(&b);
    mc_str_html(&b, "a<b>&\"c'");
    CHECK(strcmp(b.s, "a&lt;b&gt;&amp;&quot;c&#39;") == 0, "%s", b.s);
    mc_str_free(&b);
}

/* ---- tables ---- */

TEST(maps_hold_any_key_and_value)
{
    struct mc_map m = { 0 };
    int x, y;
    CHECK(mc_map_get(&m, 0, &x) == &x, "something in an empty map");
    for (uint64_t k = 0; k < 5000; k++) {
        REQUIRE(mc_map_put(&m, k << 40, k % 3 ? (void *)(uintptr_t)k : NULL), "%s", mc_last_error());
    }
    CHECK(m.n == 5000, "%zu keys", m.n);
    size_t wrong = 0;
    for (uint64_t k = 0; k < 5000; k++) {
        wrong += mc_map_get(&m, k << 40, &x) != (k % 3 ? (void *)(uintptr_t)k : NULL);
    }
    CHECK(wrong == 0, "%zu keys lost", wrong);
    CHECK(mc_map_get(&m, 77, &x) == &x, "a key that was never put");
    CHECK(mc_map_put(&m, 0, &y) && m.n == 5000 && mc_map_get(&m, 0, &x) == &y, "not replaced");
    mc_map_free(&m);
}

TEST(dictionaries_copy_their_keys)
{
    struct mc_dict d = { 0 };
    char key[16];
    int at[1000];
    CHECK(!mc_dict_get(&d, "x"), "something in an empty dictionary");
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        REQUIRE(mc_dict_put(&d, key, &at[i]), "%s", mc_last_error());
    }
    size_t wrong = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        wrong += mc_dict_get(&d, key) != &at[i];
    }
    CHECK(wrong == 0 && d.n == 1000, "%zu keys lost of %zu", wrong, d.n);
    CHECK(mc_dict_put(&d, "key7", &wrong) && mc_dict_get(&d, "key7") == &wrong && d.n == 1000,
          "not replaced");
    CHECK(!mc_dict_get(&d, "key1000") && !mc_dict_get(&d, ""), "a key that was never put");
    mc_dict_free(&d);
}

/* Each bit of the input changes each bit of the hash about half of the time; the place does not matter. */
TEST(hashes_mix_every_bit)
{
    unsigned char text[40], other[41];
    for (size_t n = 1; n <= sizeof text; n++) {
        for (size_t i = 0; i < n; i++) {
            text[i] = (unsigned char)test_random();
        }
        memcpy(other + 1, text, n);
        uint64_t h = mc_hash(text, n, 3);
        CHECK(mc_hash(other + 1, n, 3) == h, "depends on where the %zu bytes lie", n);
        CHECK(mc_hash(text, n, 4) != h && mc_hash(text, n - 1, 3) != h, "seed or length does not count");
        int flips = 0, least = 64;
        for (size_t b = 0; b < 8 * n; b++) {
            other[1 + b / 8] ^= (unsigned char)(1 << b % 8);
            int diff = __builtin_popcountll(mc_hash(other + 1, n, 3) ^ h);
            flips += diff;
            least = MC_MIN(least, diff);
            other[1 + b / 8] ^= (unsigned char)(1 << b % 8);
        }
        double mean = flips / (8.0 * (double)n);
        CHECK(mean > 26 && mean < 38 && least >= 8, "%zu bytes: %g bits flip, at least %d", n, mean, least);
    }
}

/* ---- errors ---- */

TEST(an_error_has_a_code_and_a_text)
{
    mc_clear_error();
    CHECK(*mc_last_error() == '\0' && mc_last_status() == MC_OK, "%s", mc_last_error());
    CHECK(mc_fail(MC_ESHAPE, "axis %d", 3) == MC_ESHAPE, "not the code");
    CHECK(mc_last_status() == MC_ESHAPE && strcmp(mc_last_error(), "axis 3") == 0, "%s", mc_last_error());
    CHECK(mc_fail_again("%s: ", "dot") == MC_ESHAPE && strcmp(mc_last_error(), "dot: axis 3") == 0, "%s",
          mc_last_error());
    mc_fail(MC_EARG, "<%s>", mc_last_error());
    CHECK(strcmp(mc_last_error(), "<dot: axis 3>") == 0, "a text cannot quote itself: %s", mc_last_error());
    mc_fail_memory(12, "nodes");
    CHECK(strcmp(mc_last_error(), "out of memory: 12 bytes for nodes") == 0, "%s", mc_last_error());
    char longer[5000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    mc_fail(MC_EARG, "%s", longer);
    size_t n = strlen(mc_last_error());
    CHECK(n > 1000 && n < 5000 && strcmp(mc_last_error() + n - 4, "x...") == 0, "%zu characters", n);
}

TEST(every_status_has_a_name_of_its_own)
{
    for (int s = 0; s >= MC_EINTERNAL; s--) {
        for (int t = 0; t > s; t--) {
            CHECK(strcmp(mc_status_name((mc_status)s), mc_status_name((mc_status)t)) != 0, "%d and %d", s, t);
        }
    }
    CHECK(strcmp(mc_status_name(MC_ESHAPE), "shape") == 0, "%s", mc_status_name(MC_ESHAPE));
    CHECK(strcmp(mc_status_name((mc_status)-99), "unknown") == 0, "%s", mc_status_name((mc_status)-99));
    CHECK(strcmp(mc_version(), MC_VERSION) == 0, "%s", mc_version());
}

static void *fail_elsewhere(void *arg)
{
    bool *fresh = arg;
    *fresh = *mc_last_error() == '\0';
    mc_fail(MC_EARG, "elsewhere");
    return NULL;
}

TEST(threads_have_their_own_errors)
{
    pthread_t thread;
    bool fresh = false;
    mc_fail(MC_EARG, "here");
    REQUIRE(pthread_create(&thread, NULL, fail_elsewhere, &fresh) == 0, "no thread");
    pthread_join(thread, NULL);
    CHECK(fresh && strcmp(mc_last_error(), "here") == 0, "%s", mc_last_error());
}

TEST(near_misses)
{
    static const char *const words[] = { "device", "floatX", "float32", "threads", "exp", "sum", "softmax" };
    static const struct {
        const char *word, *want;
    } rows[] = {
        { "devcie", "device" },
        { "Device", "device" },
        { "floatx", "floatX" },
        { "flaot32", "float32" },
        { "thread", "threads" },
        { "sofmtax", "softmax" },
        { "exp1", "exp" },
        { "smu", "sum" },
        { "zebra", NULL },
        { "", NULL },
        { "x", NULL },
        { "softmaximum", NULL },
        { "a word that is much too long to be one of these here", NULL },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        const char *have = mc_near_miss(rows[i].word, words, NELEM(words));
        bool same = rows[i].want ? have && strcmp(have, rows[i].want) == 0 : !have;
        CHECK(same, "'%s' gave '%s'", rows[i].word, have ? have : "nothing");
    }
}

/* ---- every allocation may fail ---- */

TEST(base_survives_every_failed_allocation)
{
    const char *path = in_folder("x");
    ALLOC_FAIL_LOOP {
        struct mc_arena arena = { 0 };
        struct mc_map map = { 0 };
        struct mc_dict dict = { 0 };
        struct mc_str str = { 0 };
        VEC(int) vec = { 0 };
        char *data = NULL, key[16];
        size_t n;
        bool good = true;
        mc_clear_error();
        for (int i = 0; i < 100; i++) {
            snprintf(key, sizeof key, "%d", i);
            good &= mc_arena_alloc(&arena, 300) != NULL;
            good &= mc_map_put(&map, (uint64_t)i, key);
            good &= mc_dict_put(&dict, key, key);
            good &= VEC_PUSH(vec, i);
            mc_str_addf(&str, "%d ", i);
        }
        char *text = mc_str_take(&str);
        good &= text != NULL;
        good &= mc_file_write(path, "abc", 3) == MC_OK && mc_file_read(path, &data, &n) == MC_OK;
        good &= mc_dir_make(folder) == MC_OK && mc_flags_parse("threads=2,cc=gcc") == MC_OK;
        CHECK(good == !ALLOC_FAILED, "good is %d: %s", good, mc_last_error());
        CHECK(good || mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
        mc_arena_free(&arena);
        mc_map_free(&map);
        mc_dict_free(&dict);
        VEC_FREE(vec);
        mc_free(data);
        mc_free(text);
    }
    drop_folder();
}

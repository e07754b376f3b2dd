/* t_wisdom.c: what timing found is kept, shared with other processes, and ignored where it is damaged. */
#include "own_cache.h"
#include "plan/plan.h"
#include <stdlib.h>

static char *text_of(const char *path, size_t *n)
{
    char *text = NULL;
    CHECK(mc_file_read(path, &text, n) == MC_OK, "%s", mc_last_error());
    return text;
}

static bool knows(const char *w)
{
    char solver[64];
    double seconds;
    return mc_wisdom_find(w, solver, &seconds);
}

/* Makes the library forget what it holds in memory and read the file again. */
static void reread(void)
{
    mc_flag_set("cache", "/tmp/monochord-elsewhere");
    knows("x");
    own_cache();
}

TEST(wisdom_is_kept)
{
    char path[256], solver[64];
    double seconds = 0;
    wisdom_path(path);
    CHECK(!knows("gemm f32 nn m1n1k1"), "knows what nobody told");
    mc_wisdom_put("gemm f32 nn m1n1k1", "packed", 1.5e-6);
    mc_wisdom_put("conv b", "fft", 2e-3);
    mc_wisdom_put("gemm f32 nn m1n1k1", "direct", 1.25e-6);
    reread();
    CHECK(mc_wisdom_find("gemm f32 nn m1n1k1", solver, &seconds), "forgot");
    CHECK(strcmp(solver, "direct") == 0 && seconds == 1.25e-6, "%s %g", solver, seconds);
    CHECK(knows("conv b"), "forgot the other");
    CHECK(!knows("conv"), "takes a part for the whole");
    char copy[300];
    snprintf(copy, sizeof copy, "%s.copy", path);
    FILE *to = fopen(copy, "w");
    CHECK(to && mc_wisdom_print(to) == MC_OK, "%s", mc_last_error());
    fclose(to);
    CHECK(mc_wisdom_clear() == MC_OK && !knows("conv b") && access(path, F_OK) != 0, "not cleared");
    CHECK(mc_wisdom_import(copy) == MC_OK && knows("conv b"), "import: %s", mc_last_error());
    reread();
    CHECK(knows("conv b"), "what was imported was not saved");
    remove(copy);
    gone();
}

/* What is fastest with fewer instructions is remembered beside what is fastest with all, in one file. */
TEST(wisdom_is_of_one_level)
{
    char solver[64];
    double seconds;
    own_cache();
    mc_flag_set("cpu.isa", "native");
    mc_wisdom_put("gemm f32 nn m1n1k1", "packed", 1e-6);
    mc_flag_set("cpu.isa", "sse2");
    CHECK(!knows("gemm f32 nn m1n1k1"), "the time with all instructions counts with few");
    mc_wisdom_put("gemm f32 nn m1n1k1", "direct", 2e-6);
    for (int i = 0; i < 2; i++) {
        CHECK(mc_wisdom_find("gemm f32 nn m1n1k1", solver, &seconds) && strcmp(solver, "direct") == 0, "sse2 %d: not kept", i);
        mc_flag_set("cpu.isa", "native");
        CHECK(mc_wisdom_find("gemm f32 nn m1n1k1", solver, &seconds) && strcmp(solver, "packed") == 0, "native %d: not kept", i);
        mc_flag_set("cpu.isa", "sse2");
        reread();
    }
    mc_wisdom_clear();
    gone();
}

/* What another process wrote meanwhile is kept. */
TEST(wisdom_of_others_is_kept)
{
    char path[256];
    size_t n = 0;
    wisdom_path(path);
    mc_wisdom_put("theirs", "a", 1);
    char *text = text_of(path, &n);
    mc_wisdom_clear();
    mc_wisdom_put("first", "a", 1);
    mc_file_write(path, text, n);
    mc_free(text);
    mc_wisdom_put("ours", "b", 1);
    reread();
    CHECK(knows("theirs") && knows("ours") && knows("first"), "something was lost");
    mc_wisdom_clear();
    gone();
}

TEST(wisdom_that_is_damaged_is_ignored)
{
    char path[256];
    size_t n = 0;
    wisdom_path(path);
    mc_wisdom_put("a b", "one", 1e-3);
    mc_wisdom_put("c", "two", 2e-3);
    char *good = text_of(path, &n);
    for (size_t i = 0; i < 2 * n; i++) { /* cut at every place, then every byte changed */
        char *bad = malloc(n);
        memcpy(bad, good, n);
        bad[i % n] = (char)(bad[i % n] ^ (i < n ? 0 : 1));
        const size_t keep = i < n ? i : n;
        CHECK(mc_file_write(path, bad, keep) == MC_OK, "%s", mc_last_error());
        reread();
        CHECK(!knows("a b") && !knows("c") && !knows(""), "byte %zu %s", i % n, i < n ? "cut" : "changed");
        mc_clear_error();
        CHECK(mc_wisdom_import(path) == MC_EFORMAT, "byte %zu %s: imported", i % n, i < n ? "cut" : "changed");
        free(bad);
    }
    mc_file_write(path, good, n);
    reread();
    CHECK(knows("a b") && knows("c"), "the whole file is not read");
    mc_free(good);
    mc_wisdom_clear();
    gone();
}

TEST(wisdom_refuses_what_would_not_read_back)
{
    own_cache();
    mc_wisdom_put("two\nlines", "a", 1);
    mc_wisdom_put("word", "two words", 1);
    CHECK(!knows("two\nlines") && !knows("word"), "kept");
    CHECK(mc_wisdom_import("/tmp/monochord-no-such-file") == MC_EFILE, "%s", mc_last_error());
    mc_wisdom_clear();
    gone();
}

TEST(wisdom_survives_failing_allocations)
{
    own_cache();
    ALLOC_FAIL_LOOP {
        mc_wisdom_put("some word", "solver", 1);
        FILE *to = fopen("/dev/null", "w");
        CHECK(mc_wisdom_print(to) == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        fclose(to);
        CHECK(knows("some word") || ALLOC_FAILED, "lost");
        mc_wisdom_clear();
    }
    gone();
}

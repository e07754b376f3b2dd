/* t_wisdom.c: what timing found is kept, shared with other processes, and ignored where it is damaged. */
#include "own_cache.h"
#include "forked.h"
#include "plan/plan.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

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
        CHECK(mc_wisdom_find("gemm f32 nn m1n1k1", solver, &seconds) && strcmp(solver, "direct") == 0,
              "sse2 %d: not kept", i);
        mc_flag_set("cpu.isa", "native");
        CHECK(mc_wisdom_find("gemm f32 nn m1n1k1", solver, &seconds) && strcmp(solver, "packed") == 0,
              "native %d: not kept", i);
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
        CHECK(mc_wisdom_import(path) == MC_EFORMAT, "byte %zu %s: imported", i % n,
              i < n ? "cut" : "changed");
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

/* ---- several writers, killed writers, and what is no file ---- */

enum { WRITERS = 4, WORDS = 25 };

/* Each line that any of the processes found is in the file when all have ended. */
TEST(wisdom_of_writers_at_once_is_kept)
{
    pid_t pid[WRITERS];
    char word[64];
    own_cache();
    for (int w = 0; w < WRITERS; w++) {
        pid[w] = fork_child();
        if (pid[w] == 0) {
            for (int i = 0; i < WORDS; i++) {
                snprintf(word, sizeof word, "writer %d word %d", w, i);
                mc_wisdom_put(word, "a", 1);
            }
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        waitpid(pid[w], &status, 0);
        CHECK(status == 0, "writer %d ended with %d", w, status);
    }
    reread();
    for (int w = 0; w < WRITERS; w++) {
        for (int i = 0; i < WORDS; i++) {
            snprintf(word, sizeof word, "writer %d word %d", w, i);
            CHECK(knows(word), "lost: %s", word);
        }
    }
    mc_wisdom_clear();
    gone();
}

/* What another process has timed since stands, unless this one timed the same. */
TEST(wisdom_that_is_newer_is_kept)
{
    char solver[64];
    double seconds;
    own_cache();
    mc_wisdom_put("a", "old", 1);
    mc_wisdom_put("b", "old", 1);
    reread();
    mc_wisdom_put("b", "ours", 3);
    pid_t pid = fork_child();
    if (pid == 0) {
        mc_wisdom_put("a", "new", 2);
        mc_wisdom_put("b", "new", 2);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    mc_wisdom_put("c", "ours", 3);
    reread();
    CHECK(mc_wisdom_find("a", solver, &seconds) && strcmp(solver, "new") == 0, "a is %s", solver);
    CHECK(mc_wisdom_find("b", solver, &seconds) && strcmp(solver, "ours") == 0, "b is %s", solver);
    CHECK(knows("c"), "lost");
    mc_wisdom_clear();
    gone();
}

TEST(wisdom_sweeps_what_killed_writers_left)
{
    static const struct {
        const char *name;
        bool swept;
    } rows[] = { { ".4711-0.tmp", true },
                 { ".1-12.tmp", true },
                 { ".tmp", false },
                 { ".mine", false },
                 { "x.1-1.tmp", false } };
    char path[256], left[300];
    wisdom_path(path);
    for (size_t i = 0; i < NELEM(rows); i++) {
        snprintf(left, sizeof left, "%s%s", path, rows[i].name);
        CHECK(mc_file_write(left, "half a l", 8) == MC_OK, "%s", mc_last_error());
    }
    mc_wisdom_put("a", "b", 1);
    for (size_t i = 0; i < NELEM(rows); i++) {
        snprintf(left, sizeof left, "%s%s", path, rows[i].name);
        CHECK((access(left, F_OK) != 0) == rows[i].swept, "wisdom.txt%s %s", rows[i].name,
              rows[i].swept ? "stays" : "is gone");
        remove(left);
    }
    CHECK(knows("a"), "lost");
    mc_wisdom_clear();
    gone();
}

/* Neither opened, which would wait for ever, nor replaced. */
TEST(wisdom_in_a_fifo_is_left_alone)
{
    char path[256], lock[300];
    struct stat st;
    wisdom_path(path);
    alarm(30);
    REQUIRE(mkfifo(path, 0600) == 0, "no FIFO");
    CHECK(!knows("a"), "knows what nobody told");
    mc_wisdom_put("a", "b", 1);
    CHECK(knows("a"), "forgot in memory what cannot be written");
    CHECK(lstat(path, &st) == 0 && S_ISFIFO(st.st_mode), "the FIFO was replaced");
    remove(path);
    snprintf(lock, sizeof lock, "%.*slock", (int)strlen(path) - 3, path);
    remove(lock);
    REQUIRE(mkfifo(lock, 0600) == 0, "no FIFO");
    mc_wisdom_put("c", "d", 1);
    CHECK(lstat(lock, &st) == 0 && S_ISFIFO(st.st_mode), "the FIFO was replaced");
    mc_wisdom_clear();
    gone();
}

TEST(wisdom_follows_no_link)
{
    static const char *const names[] = { "txt", "lock" };
    char path[256], from[300], target[300], *text = NULL;
    size_t n = 0;
    struct stat st;
    wisdom_path(path);
    snprintf(target, sizeof target, "%s.mine", path);
    mc_wisdom_put("theirs", "a", 1);
    char *wisdom = text_of(path, &n);
    mc_wisdom_clear();
    for (size_t i = 0; i < NELEM(names); i++) {
        snprintf(from, sizeof from, "%.*s%s", (int)strlen(path) - 3, path, names[i]);
        remove(from);
        CHECK(mc_file_write(target, wisdom, n) == MC_OK && symlink(target, from) == 0, "no link");
        reread();
        CHECK(!knows("theirs"), "read through a link, %s", names[i]);
        mc_wisdom_put("a", "b", 1);
        CHECK(lstat(from, &st) == 0 && S_ISLNK(st.st_mode), "the link %s was replaced", names[i]);
        mc_free(text);
        text = text_of(target, &n);
        CHECK(strcmp(text, wisdom) == 0, "written through the link %s", names[i]);
        remove(from);
        mc_wisdom_clear();
    }
    mc_free(text);
    mc_free(wisdom);
    remove(target);
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

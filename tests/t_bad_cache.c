/* t_bad_cache.c: cache folders and entries that somebody else may have prepared: none is used, nothing is
 * written there. */
#include "compile_folder.h"
#include <dlfcn.h>

/* ---- what somebody did: the cache holds one entry then ---- */

static const char *kernels(void)
{
    return in_root("cache/kernels");
}

static const char *entry(void)
{
    static char path[512];
    entries(".so", path, NULL);
    return path;
}

static bool link_the_kernels(void)
{
    return rename(kernels(), in_root("aside")) == 0 && symlink(in_root("aside"), kernels()) == 0;
}

static bool open_the_kernels(void)
{
    return chmod(kernels(), 0777) == 0;
}

static bool open_the_kernels_to_a_group(void)
{
    return chmod(kernels(), 0770) == 0;
}

static bool open_the_cache(void)
{
    return chmod(in_root("cache"), 0777) == 0;
}

static bool give_the_kernels_away(void)
{
    return chown(kernels(), 65534, 65534) == 0;
}

static bool give_the_cache_away(void)
{
    return chown(in_root("cache"), 65534, 65534) == 0;
}

static bool link_the_entry(void)
{
    return rename(entry(), in_root("aside")) == 0 && symlink(in_root("aside"), entry()) == 0;
}

static bool pipe_for_the_entry(void)
{
    return unlink(entry()) == 0 && mkfifo(entry(), 0600) == 0;
}

static bool lengthen_the_entry(void)
{
    return truncate(entry(), (off_t)1 << 40) == 0;
}

static bool open_the_entry(void)
{
    return chmod(entry(), 0666) == 0;
}

static bool give_the_entry_away(void)
{
    return chown(entry(), 65534, 65534) == 0;
}

static const struct done {
    const char *name;
    bool (*to)(void);
    bool root;                  /* root alone can do it */
    bool refused;               /* the folder is used no more; else the entry is made again */
} dones[] = {
    { "the kernels are a link",           link_the_kernels,            false, true  },
    { "all may write the kernels",        open_the_kernels,            false, true  },
    { "a group may write the kernels",    open_the_kernels_to_a_group, false, true  },
    { "all may write the cache",          open_the_cache,              false, true  },
    { "the kernels are another's",        give_the_kernels_away,       true,  true  },
    { "the cache is another's",           give_the_cache_away,         true,  true  },
    { "the entry is a link",              link_the_entry,              false, false },
    { "the entry is a pipe",              pipe_for_the_entry,          false, false },
    { "the entry is a terabyte",          lengthen_the_entry,          false, false },
    { "all may write the entry",          open_the_entry,              false, false },
    { "the entry is another's",           give_the_entry_away,         true,  false },
};
static const struct done *done;

static int fill(void)
{
    return answer(text_of(1)) == 1 ? 0 : 1;
}

static int use(void)
{
    struct stat st = { 0 };
    int before = compilations();
    CHECK(answer(text_of(1)) == 1 && mc_last_status() == MC_OK, "%s: %s", done->name, mc_last_error());
    CHECK(compilations() == before + 1, "%s: the entry was used", done->name);
    CHECK(answer(text_of(2)) == 2, "%s: %s", done->name, mc_last_error());
    CHECK(entries(".so", NULL, NULL) == (done->refused ? 1 : 2) && entries("tmp", NULL, NULL) == 0,
          "%s: %d entries", done->name, entries(".so", NULL, NULL));
    if (!done->refused) {
        CHECK(answer_anew(text_of(1)) == 1 && compilations() == before + 2, "%s: it was not made again",
              done->name);
        CHECK(lstat(entry(), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600, "%s: mode %o",
              done->name, (unsigned)st.st_mode);
    }
    return 0;
}

static int try_row(void)
{
    if (!begin("exec cc \"$@\"")) {
        return 2;
    }
    CHECK(in_child(fill) == 0 && entries(".so", NULL, NULL) == 1, "%s: no cache to begin with", done->name);
    CHECK(done->to(), "%s: %s", done->name, strerror(errno));
    return in_child(use);
}

TEST(bad_cache_folders_and_entries)
{
    if (system("cc --version >/dev/null 2>&1") != 0) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(dones); i++) {
        done = &dones[i];
        int code = done->root && geteuid() != 0 ? 0 : in_child(try_row);
        CHECK(code == 0, "%s: code %d", done->name, code);
    }
}

TEST(bad_cache_says_why)
{
    REQUIRE(begin("exit 1"), "no folder");
    mkdir(in_root("cache"), 0700);
    REQUIRE(open_the_cache(), "%s", strerror(errno));
    CHECK(mc_cache_dir()[0] == '\0', "it is used: %s", mc_cache_dir());
    char text[8192] = "";
    FILE *to = fmemopen(text, sizeof text, "w");
    REQUIRE(to, "no stream");
    CHECK(mc_info(to) == MC_OK, "%s", mc_last_error());
    fclose(to);
    CHECK(strstr(text, in_root("cache")) && strstr(text, "others may write"), "%s", text);
}

/* ---- who may read and write what we make ---- */

static void check_mode(const char *path, unsigned want)
{
    struct stat st = { 0 };
    CHECK(lstat(path, &st) == 0 && (st.st_mode & 0777) == want, "%s: mode %o", path,
          (unsigned)st.st_mode & 0777);
}

TEST(cache_is_its_owners_alone)
{
    NEEDS_CC();
    char path[512] = "";
    umask(0);
    mc_flag_set("cache", in_root("a/cache"));
    CHECK(answer(text_of(1)) == 1, "%s", mc_last_error());
    check_mode(in_root("a"), 0700);
    check_mode(in_root("a/cache"), 0700);
    check_mode(in_root("a/cache/kernels"), 0700);
    DIR *d = opendir(in_root("a/cache/kernels"));
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%.200s", in_root("a/cache/kernels"), e->d_name);
            check_mode(path, 0600);
            n++;
        }
    }
    if (d) {
        closedir(d);
    }
    CHECK(n >= 2, "%d files", n);
}

/* What a link to a folder leads to stays, when what killed processes left is removed. */
TEST(cache_sweeps_no_folder_behind_a_link)
{
    NEEDS_CC();
    struct timespec when[2] = { { time(NULL) - 7200, 0 }, { time(NULL) - 7200, 0 } };
    mkdir(in_root("cache"), 0700);
    mkdir(kernels(), 0700);
    mkdir(in_root("dear"), 0700);
    write_text(in_root("dear/letter"), "dear", 0600);
    REQUIRE(symlink(in_root("dear"), in_root("cache/kernels/tmp-old")) == 0, "%s", strerror(errno));
    CHECK(utimensat(AT_FDCWD, in_root("cache/kernels/tmp-old"), when, AT_SYMLINK_NOFOLLOW) == 0, "%s",
          strerror(errno));
    CHECK(answer(text_of(1)) == 1, "%s", mc_last_error());
    CHECK(access(in_root("dear/letter"), F_OK) == 0, "a file behind a link was removed");
    CHECK(entries("tmp-old", NULL, NULL) == 0, "the link is still there");
}

/* ---- the very file that was looked at ---- */

TEST(cache_loads_what_it_looked_at)
{
    NEEDS_CC();
    REQUIRE(in_child(fill) == 0, "no entry");
    int fd = -1;
    struct mc_key key;
    unsigned long long at[2];
    struct mc_str path = { 0 }, content = { 0 };
    REQUIRE(sscanf(strrchr(entry(), '/') + 1, "%16llx%16llx", &at[0], &at[1]) == 2, "%s", entry());
    key.at[0] = at[0], key.at[1] = at[1];
    REQUIRE(mc_cache_path(key, ".so", &path) && mc_cache_find(key, ".so", &content, &fd) && fd >= 0,
            "not found");
    unlink(path.s);
    write_text(path.s, "another file by now", 0600);
    void *library = mc_library_open(fd, path.s);
    int (*f)(void) = NULL;
    *(void **)&f = library ? dlsym(library, "answer") : NULL;
    CHECK(library || access("/proc/self/fd", X_OK) < 0, "not loaded: %s", mc_last_error());
    CHECK(!library || (f && f() == 1), "another file is loaded");
    close(fd);
    mc_str_free(&path);
    mc_str_free(&content);
}

/* Libraries that are loaded at the same time through the same descriptor are not taken for each other. */
TEST(cache_loads_each_by_its_own)
{
    NEEDS_CC();
    struct mc_code *c[6] = { 0 };
    for (int i = 0; i < 6; i++) {
        mc_status s;
        int (*f)(void) = NULL;
        c[i] = mc_code_load(text_of(i + 50), NULL, &s);
        REQUIRE(c[i], "%s", mc_last_error());
        *(void **)&f = mc_code_symbol(c[i], "answer");
        CHECK(f && f() == i + 50, "%d instead of %d", f ? f() : -1, i + 50);
    }
    for (int i = 0; i < 6; i++) {
        mc_code_unref(&c[i]);
    }
}

/* ---- no compiler, but what it made before ---- */

/* 0: the function's values are right.  *loaded: how many of its kernels were loaded from disk. */
static int compute(const char *formula, const double want[3], int64_t *loaded)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(3), (double[]){ 1, 2, 3 }), *y = NULL;
    int64_t before = mc_code_stats().from_disk;
    mc_input(g, "x", MC_FLOAT64, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = formula });
    bool good = CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK && mc_last_status() == MC_OK, "%s",
                      mc_last_error());
    for (int i = 0; i < 3 && good; i++) {
        good = CHECK(((const double *)mc_array_data(y))[i] == want[i], "element %d: %g", i,
                     ((const double *)mc_array_data(y))[i]);
    }
    *loaded = mc_code_stats().from_disk - before;
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
    return !good;
}

static const double squares[3] = { 2, 5, 10 }, sums[3] = { 14, 28, 42 };

static int compile_first(void)
{
    int64_t loaded;
    return fill() || compute("x * x + 1", squares, &loaded) || mc_code_stats().compiled != 2;
}

static int then_without(void)
{
    int64_t loaded;
    mc_status s = MC_OK;
    CHECK(!mc_cc_present() && !mc_cc_version()[0], "there is a compiler");
    CHECK(answer(text_of(1)) == 1, "%s", mc_last_error());
    CHECK(!mc_code_load(text_of(2), NULL, &s) && s == MC_ECOMPILE && strstr(mc_last_error(), "no C compiler"),
          "status %d: %s", s, mc_last_error());
    mc_clear_error();
    compute("x * x + 1", squares, &loaded);
    CHECK(loaded == 1, "%d kernels from disk", (int)loaded);
    compute("x * sum(x * x) * 1", sums, &loaded); /* not compiled before: by the reference */
    CHECK(loaded == 0, "%d kernels from disk", (int)loaded);
    return 0;
}

static const char *const ways_to_lose[] = { "rm $0", "exit 1", "kill -9 $$", "exit 0" };
static const char *lose;

static int without_compiler(void)
{
    if (!begin("exec cc \"$@\"")) {
        return 2;
    }
    CHECK(in_child(compile_first) == 0, "no kernels to begin with");
    char script[128];
    snprintf(script, sizeof script, "#!/bin/sh\n%s\n", lose);
    write_text(in_root("cc.sh"), script, 0755);
    if (strcmp(lose, "rm $0") == 0) {
        unlink(in_root("cc.sh"));
    }
    return in_child(then_without);
}

TEST(cache_serves_without_a_compiler)
{
    if (system("cc --version >/dev/null 2>&1") != 0) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(ways_to_lose); i++) {
        lose = ways_to_lose[i];
        int code = in_child(without_compiler);
        CHECK(code == 0, "%s: code %d", lose, code);
    }
}

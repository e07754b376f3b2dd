/* t_cache.c: the folder of compiled kernels: damaged, read-only, full, gone, shared, bounded.
 *
 * Where only the running matters, the compiler of these tests copies a library made before. */
#include "compile_folder.h"

/* ---- the folder ---- */

static void truncate_it(const char *path)
{
    CHECK(truncate(path, 5000) == 0, "%s", strerror(errno));
}

static void empty_it(const char *path)
{
    CHECK(truncate(path, 0) == 0, "%s", strerror(errno));
}

static void change_a_byte(const char *path)
{
    char c = 0;
    int fd = open(path, O_RDWR);
    bool done = fd >= 0 && pread(fd, &c, 1, 4700) == 1 && (c ^= 1, pwrite(fd, &c, 1, 4700) == 1);
    CHECK(done && close(fd) == 0, "%s", strerror(errno));
}

static void lengthen_it(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(fd >= 0 && write(fd, "more", 4) == 4 && close(fd) == 0, "%s", strerror(errno));
}

static void replace_with_another(const char *path)
{
    char other[512] = "", keep[512] = "";
    snprintf(keep, sizeof keep, "%s.aside", path);
    REQUIRE(rename(path, keep) == 0, "%s", strerror(errno));
    REQUIRE(answer_anew(text_of(1001)) == 1001, "%s", mc_last_error());
    unlink(keep);
    REQUIRE(entries(".so", other, NULL) == 1, "%d entries", entries(".so", NULL, NULL));
    CHECK(rename(other, path) == 0, "%s", strerror(errno));
}

static void seal_nonsense(const char *path)
{
    struct mc_key key;
    const char *name = strrchr(path, '/') + 1;
    unsigned long long at[2];
    REQUIRE(sscanf(name, "%16llx%16llx", &at[0], &at[1]) == 2, "name %s", name);
    key.at[0] = at[0], key.at[1] = at[1];
    mc_cache_put(key, ".so", "this is no library", 18);
}

static void put_a_folder_there(const char *path)
{
    CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0, "%s", strerror(errno));
}

static const struct damage {
    const char *name;
    void (*damage)(const char *path);
    bool mended;
} damages[] = {
    { "truncated",       truncate_it,          true  },
    { "empty",           empty_it,             true  },
    { "a changed byte",  change_a_byte,        true  },
    { "too long",        lengthen_it,          true  },
    { "another's",       replace_with_another, true  },
    { "sealed nonsense", seal_nonsense,        true  },
    { "a folder",        put_a_folder_there,   false },
};

TEST(cache_mends_damage)
{
    NEEDS_CC();
    REQUIRE(answer(text_of(1000)) == 1000, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(damages); i++) {
        char path[512] = "";
        REQUIRE(entries(".so", path, NULL) == 1, "%s: %d entries", damages[i].name,
                entries(".so", NULL, NULL));
        damages[i].damage(path);
        int before = compilations();
        CHECK(answer_anew(text_of(1000)) == 1000, "%s: %s", damages[i].name, mc_last_error());
        CHECK(compilations() == before + 1, "%s: %d compilations", damages[i].name, compilations() - before);
        if (damages[i].mended) {
            CHECK(answer_anew(text_of(1000)) == 1000 && compilations() == before + 1, "%s: not mended",
                  damages[i].name);
        }
    }
}

static int no_version_note(void)
{
    return mc_cc_present() && mc_cc_version()[0] ? 0 : 1;
}

TEST(cache_version_note_damaged)
{
    NEEDS_CC();
    char path[512];
    CHECK(in_child(no_version_note) == 0 && in_child(no_version_note) == 0, "no compiler");
    REQUIRE(ran("--version") == 1 && entries(".cc", path, NULL) == 1, "asked %d times", ran("--version"));
    lengthen_it(path);
    CHECK(in_child(no_version_note) == 0 && ran("--version") == 2, "asked %d times", ran("--version"));
    write_text(in_root("cc.sh"), "#!/bin/sh\necho another 2.0\n", 0755); /* another compiler under its name */
    CHECK(mc_cc_present() && strcmp(mc_cc_version(), "another 2.0") == 0, "version '%s'", mc_cc_version());
}

TEST(cache_in_impossible_folders)
{
    NEEDS_CC();
    char path[300];
    snprintf(path, sizeof path, "%s/beneath/a/file", in_root("cc.sh"));
    mc_flag_set("cache", path);
    CHECK(mc_cache_dir()[0] == '\0', "a cache in '%s'", mc_cache_dir());
    CHECK(answer(text_of(3)) == 3, "%s", mc_last_error());
    CHECK(mc_last_status() == MC_OK, "success, but the error is %s", mc_last_error());
    mc_flag_set("cache", in_root("cache"));
    mc_flag_set("cache_size", "0");
    CHECK(mc_cache_dir()[0] == '\0', "a cache of no size in '%s'", mc_cache_dir());
    CHECK(answer(text_of(4)) == 4 && entries("", NULL, NULL) == 0, "%s", mc_last_error());
}

TEST(cache_default_folder)
{
    REQUIRE(begin("exit 1"), "no folder");
    mc_flag_set("cache", "");
    setenv("XDG_CACHE_HOME", in_root("xdg"), 1);
    CHECK(strcmp(mc_cache_dir(), in_root("xdg/monochord")) == 0, "'%s'", mc_cache_dir());
}

TEST(cache_read_only)
{
    NEEDS_CC();
    REQUIRE(answer(text_of(10)) == 10, "%s", mc_last_error());
    chmod(root, 0755);
    chmod(in_root("tally"), 0666);
    REQUIRE(chmod(in_root("cache/kernels"), 0555) == 0, "%s", strerror(errno));
    char command[300];
    snprintf(command, sizeof command, "chown -R 65534 '%s'", in_root("cache"));
    if (geteuid() == 0 &&
        (system(command) != 0 || seteuid(65534) < 0)) { /* nobody: root could write there all the same */
        SKIP("cannot stop being root");
    }
    CHECK(answer_anew(text_of(10)) == 10 && compilations() == 1, "an entry cannot be read: %s",
          mc_last_error());
    CHECK(answer(text_of(11)) == 11, "%s", mc_last_error());
    CHECK(answer_anew(text_of(11)) == 11 && compilations() == 3, "%d compilations", compilations());
    if (getuid() == 0) {
        CHECK(seteuid(0) == 0, "%s", strerror(errno));
    }
    chmod(in_root("cache/kernels"), 0755);
}

/* Mounts in a name space of the test's own. */
static bool own_mounts(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

TEST(cache_disk_full)
{
    NEEDS_CC();
    mkdir(in_root("cache"), 0777);
    if (!own_mounts() || mount("none", in_root("cache"), "tmpfs", 0, "size=8k") < 0) {
        SKIP("cannot mount a small disk");
    }
    CHECK(answer(text_of(12)) == 12, "%s", mc_last_error());
    CHECK(entries(".so", NULL, NULL) == 0 && entries("tmp", NULL, NULL) == 0,
          "something is left on the full disk");
    CHECK(umount2(in_root("cache"), MNT_DETACH) == 0, "%s", strerror(errno));
}

TEST(cache_nothing_can_be_written)
{
    NEEDS_CC();
    mc_flag_set("cc", "cc");
    REQUIRE(mc_cc_present(), "no compiler");
    unsetenv("TMPDIR");
    if (!own_mounts() || mount("none", in_root("cache"), "tmpfs", MS_RDONLY, NULL) < 0 ||
        mount("none", "/var/tmp", "tmpfs", MS_RDONLY, NULL) < 0 ||
        mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL) < 0 ||
        mount("none", "/tmp", "tmpfs", MS_RDONLY, NULL) < 0) {
        SKIP("cannot mount read-only disks");
    }
    mc_status s = MC_OK;
    CHECK(!mc_code_load(text_of(13), NULL, &s) && s == MC_ECOMPILE, "status %d", s);
    CHECK(strstr(mc_last_error(), "no folder") && strstr(mc_last_error(), "Read-only"), "%s",
          mc_last_error());
    umount2("/tmp", MNT_DETACH);
    umount2(in_root("cache"), MNT_DETACH);
    CHECK(answer(text_of(13)) == 13, "after it is writable again: %s", mc_last_error());
}

/* ---- its size; with a compiler that copies ---- */

/* Makes the library made.so with a real compiler, then a compiler that hands it out for any text. */
static bool begin_copying(void)
{
    char command[600];
    if (!begin("case $1 in --version) echo copy 1.0; exit;; esac\n"
               "while [ \"$1\" != -o ]; do shift; done\nexec cp $(dirname $0)/made.so $2")) {
        return false;
    }
    snprintf(command, sizeof command, "echo 'int answer(void) { return 1; }' | cc -shared -fPIC -x c - -o %s",
             in_root("made.so"));
    return system(command) == 0;
}

TEST(code_idle_is_bounded)
{
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    mc_flag_set("cache_size", "0");
    for (int i = 0; i < 70; i++) {
        REQUIRE(answer(text_of(i)) == 1, "%s", mc_last_error());
    }
    answer(text_of(69));
    answer(text_of(6));
    CHECK(compilations() == 70, "%d compilations: the 64 released last are not kept", compilations());
    answer(text_of(0));
    CHECK(compilations() == 71, "%d compilations: all are kept for ever", compilations());
}

TEST(cache_is_bounded)
{
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    struct stat st;
    REQUIRE(stat(in_root("made.so"), &st) == 0, "no library");
    int64_t cap = 6 * st.st_size, bytes;
    char size[32];
    snprintf(size, sizeof size, "%lld", (long long)cap);
    mc_flag_set("cache_size", size);
    for (int i = 0; i < 25; i++) {
        CHECK(answer(text_of(i)) == 1, "%s", mc_last_error());
        bytes = 0;
        entries("", NULL, &bytes);
        CHECK(bytes <= cap, "%d bytes after %d kernels", (int)bytes, i + 1);
    }
    CHECK(bytes > cap / 2 - st.st_size, "only %d bytes are kept", (int)bytes);
    int before = compilations();
    CHECK(answer_anew(text_of(24)) == 1 && compilations() == before, "the newest was removed");
    CHECK(answer_anew(text_of(0)) == 1 && compilations() == before + 1, "the oldest was kept");
}

static void make_older(const char *path, time_t seconds)
{
    struct timespec when[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };
    CHECK(utimensat(AT_FDCWD, path, when, 0) == 0, "%s: %s", path, strerror(errno));
}

TEST(cache_use_is_noted_daily)
{
    static const struct {
        time_t age;
        bool noted;
    } ages[] = { { 2 * 86400, true }, { 3600, false } };
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(ages); i++) {
        char path[512];
        struct stat st = { 0 };
        REQUIRE(answer_anew(text_of(0)) == 1 && entries(".so", path, NULL) == 1, "%s", mc_last_error());
        make_older(path, ages[i].age);
        CHECK(answer_anew(text_of(0)) == 1 && stat(path, &st) == 0, "%s", mc_last_error());
        bool noted = time(NULL) - st.st_mtime < 1000;
        CHECK(noted == ages[i].noted, "of an age of %ld s, %s", (long)ages[i].age,
              noted ? "noted" : "not noted");
    }
}

static const struct left {
    const char *name;
    bool folder;
    time_t age;
    bool stays;
} things[] = {
    { "tmp-killed",    true,  7200, false },
    { "tmp-at-work",   true,  600,  true  },
    { "x.cc.1-2.tmp",  false, 7200, false },
    { "y.cc.1-2.tmp",  false, 600,  true  },
    { "someones.text", false, 7200, true  },
};

TEST(cache_removes_what_the_killed_left)
{
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    mkdir(in_root("cache"), 0777);
    mkdir(in_root("cache/kernels"), 0777);
    for (size_t i = 0; i < NELEM(things); i++) {
        char path[512], inside[600];
        snprintf(path, sizeof path, "%s/%s", in_root("cache/kernels"), things[i].name);
        snprintf(inside, sizeof inside, "%s/kernel.so", path);
        if (things[i].folder) {
            mkdir(path, 0777);
        }
        write_text(things[i].folder ? inside : path, "something", 0644);
        make_older(path, things[i].age);
    }
    REQUIRE(answer(text_of(0)) == 1, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(things); i++) {
        bool there = entries(things[i].name, NULL, NULL) == 1;
        CHECK(there == things[i].stays, "%s %s", things[i].name, there ? "is still there" : "is gone");
    }
}

static int compile_and_be_killed(void)
{
    mc_cc_present();
    pid_t self = getpid();
    if (fork() == 0) {
        usleep(50000);
        kill(self, SIGKILL);
        _exit(0);
    }
    return answer(text_of(0));
}

TEST(cache_survives_kill)
{
    REQUIRE(begin("case $1 in --version) echo slow; exit;; esac; sleep 0.2; exec cc \"$@\""), "no folder");
    CHECK(in_child(compile_and_be_killed) == 128 + SIGKILL, "it was not killed");
    CHECK(entries("tmp-", NULL, NULL) == 1 && entries(".so", NULL, NULL) == 0, "%d at work",
          entries("tmp-", NULL, NULL));
    usleep(300000); /* let the orphaned compiler end before the folder goes */
    if (system("cc --version >/dev/null 2>&1") == 0) {
        CHECK(answer(text_of(21)) == 21, "%s", mc_last_error());
    }
}

/* ---- allocations that fail ---- */

TEST(code_allocation_failures)
{
    static const char *const sizes[] = { "1M", "0" };
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(sizes); i++) {
        mc_flag_set("cache_size", sizes[i]);
        int n = 0;
        ALLOC_FAIL_LOOP {
            mc_status s = MC_OK, again = MC_OK;
            mc_clear_error();
            struct mc_code *c = mc_code_load(text_of(n++), NULL, &s);
            CHECK(c ? s == MC_OK : s == MC_EMEMORY && ALLOC_FAILED, "status %d: %s", s, mc_last_error());
            struct mc_code *d = mc_code_load(text_of(0), NULL, &again);
            CHECK(d ? again == MC_OK : again == MC_EMEMORY && ALLOC_FAILED, "status %d: %s", again,
                  mc_last_error());
            mc_code_unref(&c);
            mc_code_unref(&d);
            mc_code_flush();
        }
        CHECK(mc_cc_present(), "a compiler is forgotten after memory ran out");
    }
}

/* t_bad_compiler.c: compilers that misbehave, as a table of scripts: each gets a true message, and none hangs
 * the call.
 *
 * Each row runs in a process of its own, so a row that hangs or crashes is that row's failure. */
#include "compile_folder.h"

/* ---- compilers: scripts that get $out, the file they should write, and $made, a library that works ---- */

static const struct bad {
    const char *name, *script;
    const char *says[2];                /* in the message */
    bool works;                         /* it compiles after all */
} bads[] = {
    { "killed", "kill -9 $$", { "signal 9", "SIGKILL" }, false },
    { "crashes", "kill -11 $$", { "signal 11", "SIGSEGV" }, false },
    { "its disk breaks", "kill -7 $$", { "signal 7", "SIGBUS" }, false },
    { "fails with words", "echo I am sorry; exit 3", { "code 3", "I am sorry" }, false },
    { "fails without a word", "exit 1", { "code 1", "says nothing" }, false },
    { "writes nothing", "exit 0", { "no failure", "no file" }, false },
    { "writes an empty file", ": > $out", { "no failure", "empty" }, false },
    { "writes text", "echo hello, this is no library at all > $out", { "no failure", "no library" }, false },
    { "writes half", "head -c 5000 $made > $out", { "no failure", "incomplete" }, false },
    { "lacks the last byte",
      "head -c $(($(wc -c < $made) - 1)) $made > $out",
      { "no failure", "incomplete" },
      false },
    { "writes a terabyte",
      "dd if=/dev/null of=$out bs=1 seek=1T 2>/dev/null",
      { "no failure", "gigabyte" },
      false },
    { "writes a folder", "mkdir $out", { "no failure", "no regular file" }, false },
    { "writes a pipe", "mkfifo $out", { "no failure", "no regular file" }, false },
    { "writes a link", "ln -s $made $out", { "no failure", "no regular file" }, false },
    { "removes the folder", "cd /; rm -rf $(dirname $out)", { "no failure", "no file" }, false },
    { "another's machine",
      "cp $made $out; printf '\\377\\377' | dd of=$out bs=1 seek=18 conv=notrunc 2>/dev/null",
      { "no failure", "another kind of processor" },
      false },
    { "says a lot", "head -c 3000000 /dev/zero | tr '\\0' x; cp $made $out", { NULL }, true },
    { "hangs", "sleep 50", { "1 s", "cc.timeout" }, false },
    { "hangs, outputs shut", "exec >&- 2>&-; sleep 50", { "1 s", "cc.timeout" }, false },
    { "hangs and ignores", "trap '' TERM INT HUP; sleep 50; sleep 50", { "1 s", "cc.timeout" }, false },
    { "stops", "kill -STOP $$", { "1 s", "cc.timeout" }, false },
    { "never ends talking", "while :; do sleep 0.01; echo more; done", { "1 s", "cc.timeout" }, false },
    { "leaves a child", "sleep 50 & echo $! > $root/child; cp $made $out", { NULL }, true },
    { "leaves a child, fails",
      "sleep 50 & echo $! > $root/child; echo sorry; exit 4",
      { "code 4", "sorry" },
      false },
    { "leaves a talker",
      "(trap '' PIPE; while sleep 0.01; do echo more; done 2>/dev/null) & echo $! > $root/child; cp $made "
      "$out",
      { NULL },
      true },
};
static const struct bad *bad; /* the row at hand */

/* A compiler that tells its version, then does `then`.  False: no compiler that makes $made. */
static bool begin_bad(const char *version, const char *then)
{
    char text[1024], command[600];
    snprintf(text, sizeof text,
             "root=$(dirname $0); made=$root/made.so\ncase $1 in --version) %s; exit;; esac\n"
             "while [ \"$1\" != -o ]; do shift; done\nout=$2\n%s",
             version, then);
    if (!begin(text)) {
        return false;
    }
    snprintf(command, sizeof command, "echo 'int answer(void) { return 1; }' | cc -shared -fPIC -x c - -o %s",
             in_root("made.so"));
    return system(command) == 0;
}

/* Only a compiler that never ends is given no more than a second: a loaded machine takes longer over a good
 * one. */
static void limit(const struct bad *b)
{
    mc_flag_set("cc.timeout", b->says[1] && strcmp(b->says[1], "cc.timeout") == 0 ? "1" : "30");
}

static void end_child(void)
{
    int pid = 0;
    FILE *f = fopen(in_root("child"), "r");
    if (f && fscanf(f, "%d", &pid) == 1 && pid > 1) {
        kill(pid, SIGKILL);
    }
    if (f) {
        fclose(f);
    }
}

static int load(void)
{
    mc_status s = MC_OK;
    limit(bad);
    double start = mc_now();
    struct mc_code *c = mc_code_load(text_of(1), NULL, &s);
    double took = mc_now() - start;
    end_child();
    CHECK(took < 20, "%s: %.1f s", bad->name, took);
    CHECK((c != NULL) == bad->works && s == (bad->works ? MC_OK : MC_ECOMPILE), "%s: status %d: %s",
          bad->name, s, mc_last_error());
    for (size_t i = 0; i < NELEM(bad->says) && bad->says[i]; i++) {
        CHECK(strstr(mc_last_error(), bad->says[i]), "%s: no '%s' in: %s", bad->name, bad->says[i],
              mc_last_error());
    }
    CHECK(bad->works || !strstr(mc_last_error(), "no folder"), "%s: the folder is not to blame: %s",
          bad->name, mc_last_error());
    CHECK(entries(".so", NULL, NULL) == bad->works && entries("tmp", NULL, NULL) == 0,
          "%s: %d entries, %d left behind", bad->name, entries(".so", NULL, NULL),
          entries("tmp", NULL, NULL));
    mc_code_unref(&c);
    return 0;
}

static int try_bad(void)
{
    return begin_bad("echo bad 1.0", bad->script) ? load() : 0;
}

TEST(bad_compilers)
{
    if (system("cc --version >/dev/null 2>&1") != 0) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(bads); i++) {
        bad = &bads[i];
        int code = in_child(try_bad);
        CHECK(code == 0, "%s: code %d", bad->name, code);
    }
}

static const struct bad versions[] = {
    { "killed",       "kill -9 $$",             { "signal 9", "SIGKILL" }, false },
    { "silent",       "exit 0",                 { "--version", "says nothing" }, false },
    { "silent fails", "exit 5",                 { "--version", "code 5" }, false },
    { "hangs",        "sleep 50",               { "1 s", "cc.timeout" }, false },
    { "leaves child", "sleep 50 & echo $! > $root/child; echo good 1.0", { NULL }, true },
};

static int try_version(void)
{
    return begin_bad(bad->script, "cp $made $out") ? load() : 0;
}

TEST(bad_compiler_versions)
{
    if (system("cc --version >/dev/null 2>&1") != 0) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(versions); i++) {
        bad = &versions[i];
        int code = in_child(try_version);
        CHECK(code == 0, "%s: code %d", bad->name, code);
    }
}

/* Has the process ended, or is it about to?  One that waits for a parent to ask has. */
static bool gone(int pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    bool there = f && fgets(line, sizeof line, f);
    const char *state = strrchr(line, ')');
    if (f) {
        fclose(f);
    }
    return !there || (state && state[2] == 'Z') || kill(pid, 0) < 0;
}

TEST(bad_compiler_is_ended_with_its_children)
{
    int pid[3] = { 0 };
    if (!begin_bad("echo bad 1.0",
                   "trap '' TERM; sleep 50 & echo $! > $root/pids\n(trap '' TERM HUP; sleep 50; sleep 50) &\n"
                   "echo $! >> $root/pids; echo $$ >> $root/pids; wait")) {
        SKIP("no C compiler");
    }
    mc_flag_set("cc.timeout", "1");
    CHECK(answer(text_of(1)) == -1, "it compiles");
    FILE *f = fopen(in_root("pids"), "r");
    bool read = f && fscanf(f, "%d %d %d", &pid[0], &pid[1], &pid[2]) == 3;
    if (f) {
        fclose(f);
    }
    REQUIRE(read, "no process started");
    for (int i = 0; i < 3; i++) {
        for (int tries = 0; tries < 100 && !gone(pid[i]); tries++) {
            usleep(20000);
        }
        CHECK(gone(pid[i]), "process %d of the compiler is still there", i);
        kill(pid[i], SIGKILL);
    }
}

/* No part of a library is taken for the whole, nor one whose tables were never written. */
TEST(bad_library_is_not_whole)
{
    char *data = NULL;
    size_t n = 0;
    if (!begin_bad("echo bad 1.0", "exit 1")) {
        SKIP("no C compiler");
    }
    REQUIRE(mc_file_read(in_root("made.so"), &data, &n) == MC_OK, "%s", mc_last_error());
    CHECK(!mc_library_flaw(data, n), "of the whole: %s", mc_library_flaw(data, n));
    for (size_t some = 0; some < n; some++) {
        char *part = malloc(some + 1); /* of its own, for the sanitizers */
        memcpy(part, data, some);
        const char *flaw = mc_library_flaw(part, some);
        free(part);
        REQUIRE(flaw, "%zu of %zu bytes are taken for whole", some, n);
    }
    memset(data + n / 8, 0, n - n / 8);
    CHECK(mc_library_flaw(data, n), "zeros are taken for tables");
    mc_free(data);
}

TEST(bad_compiler_writes_a_library_without_the_function)
{
    if (!begin_bad("echo bad 1.0", "cp $made $out")) {
        SKIP("no C compiler");
    }
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT64, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "exp(x) + x" });
    CHECK(!f && mc_last_status() == MC_ECOMPILE && strstr(mc_last_error(), "lacks"), "%s",
          f ? "it compiles" : mc_last_error());
    CHECK(entries(".so", NULL, NULL) == 0, "the library is kept");
    mc_function_free(f);
    mc_graph_free(g);
}

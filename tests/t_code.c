/* t_code.c: C text made into code: by one process or many, with a compiler or without. */
#include "compile_folder.h"

/* ---- compiling ---- */

TEST(code_is_shared_and_kept)
{
    NEEDS_CC();
    mc_status s;
    struct mc_code *a = mc_code_load(text_of(42), NULL, &s);
    struct mc_code *b = mc_code_load(text_of(42), NULL, &s);
    struct mc_code *other = mc_code_load(text_of(42), "-DOTHER", &s);
    REQUIRE(a && b && other, "%s", mc_last_error());
    CHECK(a == b && a != other, "two texts, but %p %p %p", (void *)a, (void *)b, (void *)other);
    CHECK(!mc_code_symbol(a, "question"), "a symbol that is not there");
    mc_code_unref(&a);
    mc_code_unref(&b);
    mc_code_unref(&other);
    CHECK(!a && !b, "unref leaves the pointer");
    CHECK(answer(text_of(42)) == 42, "%s", mc_last_error());
    CHECK(compilations() == 2, "%d compilations of two texts", compilations());
    CHECK(answer_anew(text_of(42)) == 42, "%s", mc_last_error());
    struct mc_code_stats n = mc_code_stats();
    CHECK(n.compiled == 2 && n.from_memory == 2 && n.from_disk == 1,
          "compiled %d, from memory %d, from disk %d", (int)n.compiled, (int)n.from_memory, (int)n.from_disk);
    CHECK(n.cc_seconds > 0, "compilations in no time");
    CHECK(entries("", NULL, NULL) == 4, "%d files for two kernels, a version and the last compiler",
          entries("", NULL, NULL));
}

static int warm(void)
{
    clock_t start = clock(); /* of this process: others may keep the processor busy */
    int value = answer(text_of(5));
    double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC;
    return value == 5 && mc_code_stats().from_disk == 1 && ms < 20 ? 0 : 1;
}

TEST(code_warm_start_runs_no_process)
{
    NEEDS_CC();
    REQUIRE(in_child(warm) == 1, "the first process finds it on disk");
    int before = ran("");
    CHECK(before == 2, "%d processes for a version and a kernel", before);
    CHECK(in_child(warm) == 0, "the second process does not");
    CHECK(ran("") == before, "it ran the compiler: %d", ran(""));
}

TEST(code_warm_start_is_quick)
{
    NEEDS_CC();
    double best = 1;
    for (int i = 0; i < 10; i++) {
        double start = mc_now();
        CHECK(answer_anew(text_of(6)) == 6, "%s", mc_last_error());
        best = MC_MIN(best, mc_now() - start);
    }
    CHECK(best < 1e-3, "%.3f ms to load a kernel from disk", best * 1e3);
}

TEST(code_error_has_the_compilers_text)
{
    NEEDS_CC();
    mc_status s = MC_OK;
    struct mc_code *c = mc_code_load("int f(void) { return no_such_name; }\n", "-DMARK", &s);
    CHECK(!c && s == MC_ECOMPILE && mc_last_status() == MC_ECOMPILE, "status %d", s);
    CHECK(strstr(mc_last_error(), "no_such_name"), "no word of the compiler: %s", mc_last_error());
    CHECK(strstr(mc_last_error(), "cc.sh -x c") && strstr(mc_last_error(), "-DMARK"), "no command: %s",
          mc_last_error());
    CHECK(compilations() == 1, "tried %d times", compilations());
    CHECK(entries("", NULL, NULL) == 2, "%d files left behind", entries("", NULL, NULL) - 2);
    CHECK(!mc_code_load("int f(void) { return no_such_name; }\n", "-DMARK", NULL), "works the second time");
}

TEST(code_error_is_short)
{
    NEEDS_CC();
    struct mc_str text = { 0 };
    for (int i = 0; i < 300; i++) {
        mc_str_addf(&text, "int f%d(void) { return wrong%d; }\n", i, i);
    }
    CHECK(!mc_code_load(text.s, NULL, NULL), "compiles");
    CHECK(strstr(mc_last_error(), "wrong0") && !strstr(mc_last_error(), "wrong40"), "%s", mc_last_error());
    mc_str_free(&text);
}

TEST(code_finds_the_libraries_it_needs)
{
    NEEDS_CC();
    CHECK(answer("double pow(double, double); volatile double x = 2;\n"
                 "int answer(void) { return (int)pow(x, 5); }\n") == 32,
          "%s", mc_last_error());
    CHECK(compilations() == 1, "linked %d times", compilations());
    /* a routine of the compiler's own library, which the lean link leaves out */
    CHECK(answer("volatile unsigned long long x = 6;\n"
                 "int answer(void) { return (int)((unsigned __int128)x * x / x); }\n") == 6,
          "%s", mc_last_error());
    CHECK(mc_last_status() == MC_OK, "success, but the error is %s", mc_last_error());
    int before = compilations();
    CHECK(answer("int nowhere_at_all(void); int answer(void) { return nowhere_at_all(); }\n") == -1, "works");
    CHECK(mc_last_status() == MC_ECOMPILE && strstr(mc_last_error(), "nowhere_at_all"), "%s",
          mc_last_error());
    CHECK(compilations() - before == 2, "linked %d times", compilations() - before);
}

TEST(code_without_compiler)
{
    mc_flag_set("cc", "/nonexistent -O9");
    CHECK(!mc_cc_present() && !mc_cc_version()[0], "version '%s'", mc_cc_version());
    mc_status s = MC_OK;
    CHECK(!mc_code_load(text_of(1), NULL, &s) && s == MC_ECOMPILE, "status %d", s);
    CHECK(strstr(mc_last_error(), "/nonexistent"), "%s", mc_last_error());
    mc_flag_set("cc", "");
    CHECK(!mc_cc_present(), "the empty compiler");
    CHECK(!mc_code_load(text_of(1), NULL, &s) && strstr(mc_last_error(), "empty"), "%s", mc_last_error());
    REQUIRE(begin("exit 3"), "no folder");
    CHECK(!mc_cc_present(), "a compiler that fails");
    CHECK(!mc_code_load(text_of(1), NULL, &s) && strstr(mc_last_error(), "code 3"), "%s", mc_last_error());
    CHECK(!mc_cc_present() && ran("") == 1, "asked %d times", ran(""));
}

TEST(code_with_arguments_in_cc)
{
    NEEDS_CC();
    CHECK(mc_cc_present() && mc_cc_version()[0], "no version");
    char cc[300];
    snprintf(cc, sizeof cc, "%s  -DVALUE=17 ", in_root("cc.sh"));
    mc_flag_set("cc", cc);
    mc_flag_set("cflags", "-DMORE=3");
    CHECK(answer("int answer(void) { return VALUE + MORE; }\n") == 20, "%s", mc_last_error());
    mc_flag_set("cflags", "-DMORE=4");
    CHECK(answer("int answer(void) { return VALUE + MORE; }\n") == 21, "%s", mc_last_error());
}

/* A host that waits for no child, blocks signals and has closed its standard files. */
static int odd_host(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN);
    close(0);
    close(1);
    close(2);
    return answer(text_of(9)) == 9 && answer("int answer(void) { return bad; }\n") == -1 ? 0 : 1;
}

TEST(code_in_an_odd_host)
{
    NEEDS_CC();
    CHECK(in_child(odd_host) == 0, "it does not compile there");
}

/* ---- several at once ---- */

static void *answer_in_thread(void *arg)
{
    char text[128];
    snprintf(text, sizeof text, "int answer(void) { return %d; }\n", *(int *)arg);
    return (void *)(intptr_t)answer(text);
}

TEST(code_one_compilation_for_many_threads)
{
    NEEDS_CC();
    int value[8];
    pthread_t thread[8];
    for (int i = 0; i < 8; i++) {
        value[i] = 100 + i % 2;
        REQUIRE(pthread_create(&thread[i], NULL, answer_in_thread, &value[i]) == 0, "no thread");
    }
    for (int i = 0; i < 8; i++) {
        void *got;
        pthread_join(thread[i], &got);
        CHECK((intptr_t)got == value[i], "%d instead of %d", (int)(intptr_t)got, value[i]);
    }
    CHECK(compilations() == 2, "%d compilations of two texts", compilations());
    CHECK(mc_code_stats().from_memory == 6, "%d shared", (int)mc_code_stats().from_memory);
}

TEST(code_errors_reach_all_who_wait)
{
    NEEDS_CC();
    int value = 0;
    pthread_t thread[4];
    mc_flag_set("cflags", "-Dreturn=wrong");
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&thread[i], NULL, answer_in_thread, &value) == 0, "no thread");
    }
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(thread[i], &got);
        CHECK((intptr_t)got == -1, "%d", (int)(intptr_t)got);
    }
}

TEST(code_processes_race)
{
    NEEDS_CC();
    enum { PROCESSES = 6 };
    pid_t pid[PROCESSES];
    int gate[2];
    REQUIRE(pipe(gate) == 0, "no pipe");
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = fork_child();
        if (pid[i] == 0) {
            char c;
            close(gate[1]);
            ssize_t none = read(gate[0], &c, 1); /* until the parent opens the gate */
            _exit(none == 0 && answer(text_of(77)) == 77 && answer_anew(text_of(77)) == 77 ? 0 : 1);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        waitpid(pid[i], &status, 0);
        CHECK(status == 0, "process %d: status %d", i, status);
    }
    CHECK(entries(".so", NULL, NULL) == 1 && entries("tmp", NULL, NULL) == 0, "%d entries, %d left behind",
          entries(".so", NULL, NULL), entries("tmp", NULL, NULL));
    CHECK(answer(text_of(77)) == 77 && mc_code_stats().from_disk == 1, "%s", mc_last_error());
}

static void *compile_slowly(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)answer(text_of(8));
}

TEST(code_fork_while_compiling)
{
    REQUIRE(begin("sleep 0.1; exec cc \"$@\""), "no folder");
    if (!mc_cc_present()) {
        SKIP("no C compiler");
    }
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, compile_slowly, NULL) == 0, "no thread");
    usleep(50000);
    pid_t pid = fork_child();
    if (pid == 0) {
        _exit(answer("int answer(void) { return 8; }\n") == 8 ? 0 : 1); /* the parent is at the same text */
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "the child ends with status %d", status);
    void *got;
    pthread_join(thread, &got);
    CHECK((intptr_t)got == 8, "%d", (int)(intptr_t)got);
}

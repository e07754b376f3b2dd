/* t_settings.c: the log and its channels; flags from settings, the environment and a file. */
#include "base/base.h"
#include "own_folder.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- log ---- */

TEST(a_channel_prints_when_it_is_open)
{
    char *text = NULL;
    size_t n;
    const char *path = in_folder("log");
    int old = dup(2), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(old >= 0 && fd >= 0 && dup2(fd, 2) == 2, "no file");
    mc_flag_set("debug", "plan");
    LOG(LOG_PLAN, "chose %s", "winograd");
    LOG(LOG_REWRITE, "not to be seen");
    mc_flag_set("debug", "");
    LOG(LOG_PLAN, "nor this");
    dup2(old, 2);
    close(old);
    close(fd);
    REQUIRE(mc_file_read(path, &text, &n) == MC_OK, "%s", mc_last_error());
    CHECK(strcmp(text, "plan: chose winograd\n") == 0, "%s", text);
    mc_free(text);
    drop_folder();
}

/* ---- flags ---- */

TEST(settings_are_checked)
{
    static const struct {
        const char *name, *value, *want; /* what it is then, or the message */
        int64_t number;
    } good[] = {
        { "floatX", "float32", "float32", 1 },
        { "floatX", "float64", "float64", 0 },
        { "threads", "4", "4", 4 },
        { "profile", "1", "True", 1 },
        { "profile", "no", "False", 0 },
        { "workspace", "64k", "64k", 64 << 10 },
        { "workspace", "3M", "3M", 3 << 20 },
        { "workspace", "17", "17", 17 },
        { "debug", "plan:kernel", "plan:kernel", 6 },
        { "debug", "", "", 0 },
        { "cc", "", "", 0 },
        { "seed", "9223372036854775807", "9223372036854775807", INT64_MAX },
        { "rewrite.excluding", "a:b", "a:b", 0 },
    }, wrong[] = {
        { "devcie", "cpu", "unknown flag 'devcie'; did you mean 'device'?", 0 },
        { "zebra", "1", "unknown flag 'zebra'", 0 },
        { "floatX", "flaot32", "flag 'floatX' cannot be 'flaot32': it takes one of float64|float32|float16|bfloat16; "
                               "did you mean 'float32'?", 0 },
        { "floatX", "", "flag 'floatX' cannot be '': it takes one of float64|float32|float16|bfloat16", 0 },
        { "threads", "1025", "flag 'threads' cannot be '1025': it takes a number in 0..1024", 0 },
        { "threads", "-1", "flag 'threads' cannot be '-1': it takes a number in 0..1024", 0 },
        { "threads", "4x", "flag 'threads' cannot be '4x': it takes a number in 0..1024", 0 },
        { "threads", "", "flag 'threads' cannot be '': it takes a number in 0..1024", 0 },
        { "profile", "maybe", "flag 'profile' cannot be 'maybe': it takes True or False", 0 },
        { "workspace", "3Q", "flag 'workspace' cannot be '3Q': it takes a size such as 64k, 2M or 1G", 0 },
        { "workspace", "-3M", "flag 'workspace' cannot be '-3M': it takes a size such as 64k, 2M or 1G", 0 },
        { "workspace", "99999999999T",
          "flag 'workspace' cannot be '99999999999T': it takes a size such as 64k, 2M or 1G", 0 },
        { "debug", "plan:kernal", "flag 'debug' cannot be 'kernal': it takes words joined by ':' of "
                                  "rewrite|plan|kernel|mem|time|warn; did you mean 'kernel'?", 0 },
        { "seed", "9223372036854775808", "flag 'seed' cannot be '9223372036854775808': it takes a number in "
                                         "0..9223372036854775807", 0 },
    };
    for (size_t i = 0; i < NELEM(good); i++) {
        CHECK(mc_flag_set(good[i].name, good[i].value) == MC_OK, "%s", mc_last_error());
        CHECK(strcmp(mc_flag_get(good[i].name), good[i].want) == 0, "%s is %s", good[i].name,
              mc_flag_get(good[i].name));
    }
    for (size_t i = 0; i < NELEM(wrong); i++) {
        const char *before = mc_flag_get(wrong[i].name);
        CHECK(mc_flag_set(wrong[i].name, wrong[i].value) == MC_EARG, "%s=%s passed", wrong[i].name,
              wrong[i].value);
        CHECK(strcmp(mc_last_error(), wrong[i].want) == 0, "%s", mc_last_error());
        CHECK(mc_flag_get(wrong[i].name) == before, "%s changed", wrong[i].name);
    }
    CHECK(mc_flag_set(NULL, "x") == MC_EARG && mc_flag_set("cc", NULL) == MC_EARG && !mc_flag_get(NULL),
          "NULL passed");
}

TEST(flags_read_as_numbers)
{
    mc_flag_set("floatX", "bfloat16");
    mc_flag_set("workspace", "2G");
    mc_flag_set("debug", "rewrite:time");
    CHECK(mc_flag_int(FLAG_floatX) == 3, "%lld", (long long)mc_flag_int(FLAG_floatX));
    CHECK(mc_flag_int(FLAG_workspace) == INT64_C(2) << 30, "%lld", (long long)mc_flag_int(FLAG_workspace));
    CHECK(mc_flag_real(FLAG_workspace) == 0x1p31, "%g", mc_flag_real(FLAG_workspace));
    CHECK(mc_flag_int(FLAG_debug) == (1 << LOG_REWRITE | 1 << LOG_TIME), "%lld",
          (long long)mc_flag_int(FLAG_debug));
    CHECK(mc_log_mask == (1u << LOG_REWRITE | 1u << LOG_TIME), "%u", mc_log_mask);
    mc_flag_set("debug", "");
    const char *old = mc_flag_text(FLAG_cc);
    for (int i = 0; i < 1000; i++) { /* a text that was read stays readable, and is kept once */
        mc_flag_set("cc", i % 2 ? "gcc" : "clang");
    }
    CHECK(*old && mc_flag_text(FLAG_cc) == mc_flag_get("cc"), "not the same text");
}

TEST(a_list_of_flags_counts_whole_or_not_at_all)
{
    CHECK(mc_flags_parse(" threads = 2 , ,plan=measure,") == MC_OK, "%s", mc_last_error());
    CHECK(mc_flag_int(FLAG_threads) == 2 && mc_flag_int(FLAG_plan) == 1, "not set");
    CHECK(mc_flags_parse("threads=3,plna=estimate") == MC_EARG, "passed");
    CHECK(strcmp(mc_last_error(), "unknown flag 'plna'; did you mean 'plan'?") == 0, "%s", mc_last_error());
    CHECK(mc_flag_int(FLAG_threads) == 2, "threads is %s", mc_flag_get("threads"));
    CHECK(mc_flags_parse("profile") == MC_EARG, "passed");
    CHECK(strcmp(mc_last_error(), "flag 'profile' has no value: expected name=value") == 0, "%s",
          mc_last_error());
    CHECK(mc_flags_parse("") == MC_OK && mc_flags_parse(NULL) == MC_EARG, "empty or NULL");
}

static const char ini[] = "# a comment\n; another\n\nthreads = 3\n[global]\nfloatX = float32\n"
                          "[rewrite]\nexcluding = fusion:inplace\n[gemm]\nalgo=blas";

TEST(the_file_and_the_environment_set_flags)
{
    const char *path = in_folder("rc");
    REQUIRE(mc_file_write(path, ini, strlen(ini)) == MC_OK, "%s", mc_last_error());
    setenv("MONOCHORDRC", path, 1);
    setenv("MONOCHORD_FLAGS", "threads=5,check=2", 1);
    mc_fail(MC_EGRAD, "an older error");
    CHECK(mc_flag_int(FLAG_threads) == 5, "the environment comes last: %s", mc_flag_get("threads"));
    CHECK(mc_last_status() == MC_EGRAD && strcmp(mc_last_error(), "an older error") == 0, "%s",
          mc_last_error());
    CHECK(mc_flags_status() == MC_OK, "%s", mc_last_error());
    CHECK(mc_flag_int(FLAG_check) == 2 && mc_flag_int(FLAG_floatX) == 1, "not set");
    CHECK(strcmp(mc_flag_get("rewrite.excluding"), "fusion:inplace") == 0, "%s",
          mc_flag_get("rewrite.excluding"));
    CHECK(strcmp(mc_flag_get("gemm.algo"), "blas") == 0, "%s", mc_flag_get("gemm.algo"));
    drop_folder();
}

TEST(mistakes_in_the_environment_are_remembered)
{
    setenv("MONOCHORDRC", "", 1);
    setenv("HOME", "/nowhere", 1);
    setenv("MONOCHORD_FLAGS", "devcie=cuda,check=3,threads=many", 1);
    CHECK(mc_flag_int(FLAG_check) == 3, "the rest does not count");
    for (int i = 0; i < 2; i++) {
        CHECK(mc_flags_status() == MC_EARG, "no mistake");
        CHECK(strcmp(mc_last_error(), "MONOCHORD_FLAGS: unknown flag 'devcie'; did you mean 'device'?") == 0,
              "%s", mc_last_error());
        mc_clear_error();
    }
}

TEST(mistakes_in_the_file_have_a_line)
{
    char want[256];
    const char *path = in_folder("rc");
    REQUIRE(mc_file_write(path, "threads=1\n[rewrite\n", 19) == MC_OK, "%s", mc_last_error());
    setenv("MONOCHORDRC", path, 1);
    snprintf(want, sizeof want, "%s:2: '[rewrite' is neither [section] nor name = value", path);
    CHECK(mc_flags_status() == MC_EARG && strcmp(mc_last_error(), want) == 0, "%s", mc_last_error());
    CHECK(mc_flag_int(FLAG_threads) == 1, "what was right does not count");
    drop_folder();
}

TEST(a_file_that_was_named_must_be_there)
{
    setenv("MONOCHORDRC", "/nowhere/rc", 1);
    CHECK(mc_flags_status() == MC_EFILE && strstr(mc_last_error(), "/nowhere/rc"), "%s", mc_last_error());
}

TEST(flags_print_themselves) /* at their defaults: what the environment sets may be of any length */
{
    static const struct {
        const char *name, *dflt;
    } rows[] = {
#define FLAG(id, name, kind, dflt, values, doc) { name, dflt },
#include "base/flags.def"
#undef FLAG
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        REQUIRE(mc_flag_set(rows[i].name, rows[i].dflt) == MC_OK, "%s", mc_last_error());
    }
    char *text = NULL;
    size_t n = 0;
    mc_flag_set("threads", "7");
    FILE *to = open_memstream(&text, &n);
    REQUIRE(to && mc_flags_print(to) == MC_OK, "%s", mc_last_error());
    fclose(to);
    for (size_t i = 0; i < NELEM(rows); i++) {
        char line[64];
        snprintf(line, sizeof line, "%s = ", rows[i].name);
        CHECK(strstr(text, line), "%s is missing", rows[i].name);
    }
    CHECK(strstr(text, "threads = 7  (default: 0)\n    threads that a function"), "%s", text);
    size_t longest = 0;
    for (char *line = text; *line; line += strcspn(line, "\n") + 1) {
        longest = MC_MAX(longest, strcspn(line, "\n"));
    }
    CHECK(longest <= 80, "a line of %zu characters", longest);
    free(text);
}

static void *set_and_read(void *arg)
{
    long *wrong = arg;
    for (int i = 0; i < 2000; i++) {
        mc_flag_set("cflags", i % 2 ? "-O1" : "-O2");
        const char *now = mc_flag_text(FLAG_cflags);
        *wrong += strcmp(now, "-O1") != 0 && strcmp(now, "-O2") != 0;
    }
    return NULL;
}

TEST(threads_set_and_read_flags_at_once)
{
    pthread_t thread[4];
    long wrong[4] = { 0 };
    mc_flag_set("cflags", "-O1");
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&thread[i], NULL, set_and_read, &wrong[i]) == 0, "no thread");
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(wrong[i] == 0, "thread %d read %ld wrong values", i, wrong[i]);
    }
}

/* A flag that names a solver is refused where it is set, not at the first call that would need it. */
TEST(flags_of_solvers_take_names_that_there_are)
{
    static const struct { const char *flag, *bad, *says, *good; } rows[] = {
        { "conv.algo_fwd",        "wnograd",  "flag 'conv.algo_fwd' cannot be 'wnograd'; did you mean 'winograd'?",     "winograd" },
        { "conv.algo_bwd_data",   "im2coll",  "flag 'conv.algo_bwd_data' cannot be 'im2coll'; did you mean 'im2col'?",  "im2col" },
        { "conv.algo_bwd_filter", "zzzzzz",   "flag 'conv.algo_bwd_filter' cannot be 'zzzzzz': it takes one of auto, ", "time_once" },
        { "gemm.algo",            "packd",    "flag 'gemm.algo' cannot be 'packd'; did you mean 'packed'?",             "packed" },
        { "gemm.algo",            "",         "flag 'gemm.algo' cannot be '': it takes one of auto, ",                  "auto" },
        { "pool.algo",            "nonsense", "flag 'pool.algo' cannot be 'nonsense': it takes one of auto, ",          "auto" },
        { "norm.algo",            "aut",      "flag 'norm.algo' cannot be 'aut'; did you mean 'auto'?",                 "auto" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(mc_flag_set(rows[i].flag, rows[i].good) == MC_OK, "%s=%s: %s", rows[i].flag, rows[i].good,
              mc_last_error());
        CHECK(mc_flag_set(rows[i].flag, rows[i].bad) == MC_EARG && strstr(mc_last_error(), rows[i].says),
              "%s=%s: %s", rows[i].flag, rows[i].bad, mc_last_error());
        CHECK(strcmp(mc_flag_get(rows[i].flag), rows[i].good) == 0, "%s is %s now", rows[i].flag,
              mc_flag_get(rows[i].flag));
    }
}

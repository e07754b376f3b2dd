/* export_text.h: blocks of exported C as functions run_0, run_1, ... of one text, which is compiled by all
 * compilers that are there, with warnings as errors. */
#ifndef EXPORT_TEXT_H
#define EXPORT_TEXT_H

#include "check.h"
#include "device/cpu/cpu.h"
#include "value/value.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char export_head[] = "#include <math.h>\n"
                                  "#include <stdint.h>\n"
                                  "#include <string.h>\n"
                                  "#define PARALLEL(clauses)\n"
                                  "#ifdef __cplusplus\n"
                                  "extern \"C\" {\n"
                                  "#endif\n";
static const char export_foot[] = "#ifdef __cplusplus\n"
                                  "}\n"
                                  "#endif\n";

static inline void export_begin(struct mc_str *text, int number)
{
    mc_str_addf(text, "int run_%d(char *const *p);\nint run_%d(char *const *p)\n{\n    (void)p;\n", number,
                number);
}

static inline void export_end(struct mc_str *text)
{
    mc_str_add(text, "    return 0;\n}\n\n");
}

/* Compiles the text as C99 and as C++ by the compilers that are there, with all warnings as errors. */
static inline void export_warnings(const struct mc_str *text)
{
    static const char *const compilers[] = { "gcc -x c -std=c99", "clang -x c -std=c99", "g++ -x c++ -std=c++11",
                                             "clang++ -x c++ -std=c++11" };
    char path[] = "/tmp/monochord-export-XXXXXX", command[256];
    const int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    REQUIRE(f, "no file for the test");
    fputs(text->s, f);
    fclose(f);
    for (size_t i = 0; i < NELEM(compilers); i++) {
        const int word = (int)strcspn(compilers[i], " ");
        snprintf(command, sizeof command, "command -v %.*s >/dev/null", word, compilers[i]);
        if (system(command) == 0) {
            snprintf(command, sizeof command, "%s -O1 -Wall -Wextra -Wpedantic -Werror -fsyntax-only %s >&2",
                     compilers[i], path);
            CHECK(system(command) == 0, "%s", command);
        }
    }
    remove(path);
}

/* The text as a library; NULL: not compiled, which is a failed check. */
static inline struct mc_code *export_load(const struct mc_str *text)
{
    mc_status s = MC_OK;
    struct mc_code *code = mc_code_load(text->s, "-std=c99 -ffp-contract=off", &s);
    CHECK(code != NULL, "%s", mc_last_error());
    return code;
}

typedef int export_run(char *const *p);
static inline export_run *export_function(struct mc_code *code, int number)
{
    char name[32];
    export_run *run = NULL;
    mc_snprintf(name, sizeof name, "run_%d", number);
    void *at = mc_code_function(code, name);
    memcpy(&run, &at, sizeof run);
    return run;
}

/* Few values, so that there are ties; -0 and NaN among them. */
static inline void export_fill(mc_dtype d, char *data, int64_t count)
{
    static const double values[] = { 0, -0.0, 1, -1, 0.5, 1.25, -2.5, 3, 1e-3, 0.1 };
    for (int64_t i = 0; i < count; i++) {
        const uint64_t r = test_random();
        const double v = r % 16 < 10 ? values[r % 16] : r % 256 == 15 ? (double)NAN : test_uniform(-4, 4);
        mc_store_f64(d, data + i * (int64_t)mc_dtypes[d].size, mc_is_float(d) ? v : floor(v));
    }
}

#define NEEDS_COMPILER()                                                                                     \
    do {                                                                                                     \
        if (!mc_cc_present()) {                                                                              \
            SKIP("no C compiler");                                                                           \
        }                                                                                                    \
    } while (0)

#endif

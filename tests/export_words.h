/* export_words.h: exported files of a test's folder: compiled with all warnings as errors, loaded, called. */
#ifndef EXPORT_WORDS_H
#define EXPORT_WORDS_H

#include "check.h"
#include "device/cpu/cpu.h"
#include "own_folder.h"
#include <monochord.h>
#include <stdlib.h>
#include <string.h>

/* Compiles a file by all compilers that are there, with all warnings as errors. */
static inline void compiles(const char *name)
{
    static const char *const compilers[] = { "gcc -x c -std=c99", "clang -x c -std=c99", "g++ -x c++ -std=c++11",
                                             "clang++ -x c++ -std=c++11", "gcc -x c", "gcc -x c -std=c99 -fopenmp",
                                             "clang -x c -std=c99 -fopenmp", "g++ -x c++ -std=c++11 -fopenmp",
                                             "clang++ -x c++ -std=c++11 -fopenmp" };
    char command[1024];
    for (size_t i = 0; i < NELEM(compilers); i++) {
        const int word = (int)strcspn(compilers[i], " ");
        snprintf(command, sizeof command, "command -v %.*s >/dev/null", word, compilers[i]);
        if (system(command) == 0) {
            snprintf(command, sizeof command, "%s -O1 -Wall -Wextra -Wpedantic -Werror -fsyntax-only %s >&2",
                     compilers[i], in_folder(name));
            CHECK(system(command) == 0, "%s", command);
        }
    }
}

typedef void any_function(void);

/* The exported function of a file that was written; NULL: a failed check. */
static inline any_function *function_of(struct mc_code *code, const char *name)
{
    any_function *f = NULL;
    void *at = code ? mc_code_function(code, name) : NULL;
    CHECK(at, "no function %s: %s", name, mc_last_error());
    memcpy(&f, &at, sizeof f);
    return f;
}

static inline struct mc_code *code_with(const char *name, const char *more)
{
    char flags[256];
    mc_status s = MC_OK;
    char *text = NULL;
    size_t n = 0;
    CHECK(mc_file_read(in_folder(name), &text, &n) == MC_OK, "%s", mc_last_error());
    snprintf(flags, sizeof flags, "-std=c99 %s -I%s", more, in_folder(""));
    struct mc_code *code = text ? mc_code_load(text, flags, &s) : NULL;
    CHECK(code, "%s does not compile: %s", name, mc_last_error());
    mc_free(text);
    return code;
}

static inline struct mc_code *code_of(const char *name)
{
    return code_with(name, "");
}

#endif

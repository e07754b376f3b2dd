/* compile_folder.h: the surroundings of a test that compiles: a folder of its own, and before the real
 * compiler one that keeps a column_sums, so a test can say how often it ran. */
#ifndef COMPILE_FOLDER_H
#define COMPILE_FOLDER_H

#include "device/cpu/code.h"
#include "forked.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[128]; /* a folder of this test, removed in the end by the process that made it */
static pid_t owner;

static inline void clean_up(void)
{
    char command[192];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (owner == getpid() && system(command) != 0) {
        perror(root);
    }
}

static inline const char *in_root(const char *name)
{
    static char path[4][256];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    return p;
}

static inline void write_text(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
        chmod(path, mode);
    }
}

/* A cache of the test's own, and a compiler that writes a line to `column_sums` and does `then`. */
static inline bool begin(const char *then)
{
    char text[2048];
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/mc-test-XXXXXX", tmp && strlen(tmp) < 90 ? tmp : "/tmp");
    if (!mkdtemp(root)) {
        return false;
    }
    owner = getpid();
    atexit(clean_up);
    snprintf(text, sizeof text, "#!/bin/sh\necho \"$*\" >> %s/tally\n%s\n", root, then);
    write_text(in_root("cc.sh"), text, 0755);
    mc_flag_set("device", "cpu"); /* whose kernels a C compiler makes */
    return mc_flag_set("cc", in_root("cc.sh")) == MC_OK && mc_flag_set("cache", in_root("cache")) == MC_OK;
}

/* Lines of the column_sums which have the word. */
static inline int ran(const char *word)
{
    char line[4096];
    int n = 0;
    FILE *f = fopen(in_root("tally"), "r");
    while (f && fgets(line, sizeof line, f)) {
        n += strstr(line, word) != NULL;
    }
    if (f) {
        fclose(f);
    }
    return n;
}

static inline int compilations(void)
{
    return ran("-x c");
}

#define NEEDS_CC()                                                                                           \
    do {                                                                                                     \
        if (system("cc --version >/dev/null 2>&1") != 0) {                                                   \
            SKIP("no C compiler");                                                                           \
        }                                                                                                    \
        REQUIRE(begin("exec cc \"$@\""), "no folder for the test");                                          \
    } while (0)

static inline const char *text_of(int value)
{
    static char text[128];
    snprintf(text, sizeof text, "int answer(void) { return %d; }\n", value);
    return text;
}

/* What the compiled text answers; -1: it was not compiled. */
static inline int answer(const char *text)
{
    mc_status s = MC_EARG;
    struct mc_code *c = mc_code_load(text, NULL, &s);
    CHECK((c != NULL) == (s == MC_OK), "status %d, code %p", s, (void *)c);
    int (*f)(void) = NULL;
    if (c) {
        *(void **)&f = mc_code_symbol(c, "answer");
    }
    int value = f ? f() : -1;
    mc_code_unref(&c);
    return value;
}

static inline int answer_anew(const char *text) /* as a process that just started */
{
    mc_code_flush();
    return answer(text);
}

/* Files in the cache folder whose names contain the word; path gets the last one's. */
static inline int entries(const char *word, char path[512], int64_t *bytes)
{
    int n = 0;
    struct dirent *e;
    DIR *d = opendir(in_root("cache/kernels"));
    while (d && (e = readdir(d))) {
        struct stat st;
        if (e->d_name[0] != '.' && strstr(e->d_name, word)) {
            n++;
            if (path) {
                snprintf(path, 512, "%s/%s", in_root("cache/kernels"), e->d_name);
            }
            if (bytes && fstatat(dirfd(d), e->d_name, &st, 0) == 0) {
                *bytes += st.st_size;
            }
        }
    }
    if (d) {
        closedir(d);
    }
    return n;
}

#endif

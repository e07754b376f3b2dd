/* program.h: runs the programs of this build, which lie beside the tests, and holds what they say against a
 * table. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Runs a shell command in which @ stands for the build folder; its output, and its exit status. */
static inline char *output_of(const char *command, int *status)
{
    static char text[1 << 16];
    char self[2048], whole[8192];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    *(slash ? slash : self) = '\0';
    size_t at = 0;
    for (const char *c = command; *c && at + sizeof self < sizeof whole; c++) {
        at += (size_t)(*c == '@' ? snprintf(whole + at, sizeof whole - at, "%s", self)
                                 : snprintf(whole + at, sizeof whole - at, "%c", *c));
    }
    snprintf(whole + at, sizeof whole - at, " 2>&1");
    FILE *from = popen(whole, "r");
    size_t got = from ? fread(text, 1, sizeof text - 1, from) : 0;
    text[got] = '\0';
    /* who writes more is to end as it would */
    for (char rest[4096]; from && fread(rest, 1, sizeof rest, from) > 0;) {
    }
    int code = from ? pclose(from) : -1;
    *status = WIFEXITED(code) ? WEXITSTATUS(code) : 128;
    return text;
}

/* A command, how it ends, and what its output has in it. */
struct row {
    const char *command;
    int status;
    const char *says[3];
};

static inline void run_rows(const struct row *row, size_t n, char *(*run)(const char *command, int *status))
{
    for (size_t i = 0; i < n; i++) {
        int status;
        const char *text = run(row[i].command, &status);
        if (status == 127) {
            SKIP("not built: %s", row[i].command);
        }
        CHECK(status == row[i].status, "%s: ended with %d, not %d:\n%s", row[i].command, status,
              row[i].status, text);
        for (int k = 0; k < 3 && row[i].says[k]; k++) {
            CHECK(strstr(text, row[i].says[k]), "%s does not say '%s' but\n%s", row[i].command,
                  row[i].says[k], text);
        }
    }
}

#endif

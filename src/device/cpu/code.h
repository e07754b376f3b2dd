/* code.h: what cc.c (the compiler as a process) and compile.c (text to a loaded library) say to each
 * other. */
#ifndef MC_CODE_H
#define MC_CODE_H

#include "device/cpu/cpu.h"

/* ---- cc.c ---- */
struct mc_words { /* a command line */
    char **at; /* at[n] is NULL once there is a word */
    size_t n, cap;
    struct mc_arena arena;
};
bool mc_words_add(struct mc_words *w, const char *word, size_t n); /* false: no memory */
bool mc_words_split(struct mc_words *w, const char *text);         /* at blanks */
void mc_words_free(struct mc_words *w);

/* Runs a program found in PATH: standard input from fd `in` (-1: nothing), LC_ALL=C, and TMPDIR=tmp
 * unless that is NULL.  The beginning of what it says on both outputs goes to *said.  *code: its exit code, 128 + signal, or 0 where the system will not tell. */
mc_status mc_cc_run(const struct mc_words *w, int in, const char *tmp, struct mc_str *said, int *code);

struct mc_compiler {
    struct mc_compiler *next;
    const char *flag;  /* the text of the flag cc that it stands for */
    bool works;
    char version[256]; /* "" if it does not */
    char why[256];     /* it does not */
};
const struct mc_compiler *mc_compiler(void); /* of the flag as it is now; NULL: no memory */

/* ---- compile.c ---- */
void mc_code_flush(void); /* unloads what nobody holds */

/* ---- job.c ---- */
struct mc_job {
    const char *source;
    struct mc_str command; /* the flag cc, and all flags but those of the linker and for the output */
    struct mc_key key;
    void *library;
    double cc_seconds;
};
mc_status mc_job_describe(struct mc_job *j, const char *source, const char *flags); /* its command and key */
bool mc_job_from_cache(struct mc_job *j);
mc_status mc_job_compile(struct mc_job *j);          /* in the first of a few places that will have it */

#endif

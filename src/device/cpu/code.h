/* code.h: what the files say to each other that make a loaded library of C text: process.c, cc.c, library.c,
 * compile_job.c, compile.c. */
#ifndef MC_CODE_H
#define MC_CODE_H

#include "device/cpu/cpu.h"

/* ---- process.c ---- */
struct mc_argv { /* a command line */
    char **at; /* at[n] is NULL once there is a word */
    size_t n, cap;
    struct mc_arena arena;
};
bool mc_words_add(struct mc_argv *w, const char *word, size_t n); /* false: no memory */
bool mc_words_split(struct mc_argv *w, const char *text);         /* at blanks */
void mc_words_free(struct mc_argv *w);

struct mc_child_exit {
    enum { ENDED_UNKNOWN, ENDED_CODE, ENDED_SIGNAL, ENDED_LATE } how; /* unknown: the system does not tell */
    int number; /* exit code, signal, or the seconds it was given */
};
enum { MC_ENDING = 128 };
bool mc_ending_good(const struct mc_child_exit *e);                                 /* so far as one can know */
const char *mc_ending_text(const struct mc_child_exit *e, char text[MC_ENDING]);    /* "ends with code 1" */
/* Runs a program found in PATH, in a process group of its own, for at most the flag cc.timeout's seconds:
 * standard input from fd `in` (-1: nothing), LC_ALL=C, and TMPDIR=tmp unless that is NULL.  The beginning of
 * what it says on both outputs goes to *said. */
mc_status mc_cc_run(const struct mc_argv *w, int in, const char *tmp, struct mc_str *said,
                    struct mc_child_exit *end);

/* ---- cc.c ---- */
struct mc_compiler {
    struct mc_compiler *next;
    const char *flag;  /* the text of the flag cc that it stands for */
    bool works;
    /* if it does not, of the one that did when this cache was last used with the flag; "" if none did */
    char version[256];
    char why[256];     /* it does not */
    char advice[400];  /* that, and what to do about it */
};
const struct mc_compiler *mc_compiler(void); /* of the flag as it is now; NULL: no memory */

/* ---- library.c ---- */
/* NULL: an ELF library, as long as it says it is; or not ELF's system */
const char *mc_library_flaw(const char *data, size_t n);
/* Loads the file that is open, whatever has its name by now; NULL: mc_last_error says why. */
void *mc_library_open(int fd, const char *path);

/* ---- compile.c ---- */
void mc_code_flush(void); /* unloads what nobody holds */

/* ---- compile_job.c ---- */
struct mc_job {
    const char *source;
    struct mc_str command; /* the flag cc, and all flags but those of the linker and for the output */
    struct mc_key key;
    void *library;
    double cc_seconds;
    bool doubt; /* whether the place was at fault, when the last error is MC_EFILE */
};
mc_status mc_job_describe(struct mc_job *j, const char *source, const char *flags); /* its command and key */
bool mc_job_from_cache(struct mc_job *j);
mc_status mc_job_compile(struct mc_job *j);          /* in the first of a few places that will have it */

#endif

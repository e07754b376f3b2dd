/* code.h: the interface among the files that compile C text to a loaded library: process.c, cc.c, library.c,
 * compile_job.c, compile.c. */
#ifndef MC_CODE_H
#define MC_CODE_H

#include "device/cpu/cpu.h"

/* ---- process.c ---- */
struct mc_argv { /* a command line */
    char **at; /* at[n] is NULL, except while n is 0 */
    size_t n, cap;
    struct mc_arena arena;
};
bool mc_words_add(struct mc_argv *w, const char *word, size_t n); /* false: out of memory */
bool mc_words_split(struct mc_argv *w, const char *text);         /* adds the words of text */
void mc_words_free(struct mc_argv *w);

struct mc_child_exit {
    enum { ENDED_UNKNOWN, ENDED_CODE, ENDED_SIGNAL, ENDED_LATE } how; /* unknown: waitpid gave no status */
    int number; /* exit code, signal, or the time limit in seconds */
};
enum { MC_ENDING = 128 };
bool mc_ending_good(const struct mc_child_exit *e);                              /* exit code 0 or unknown */
const char *mc_ending_text(const struct mc_child_exit *e, char text[MC_ENDING]);    /* "ends with code 1" */
/* Runs a program found in PATH, in its own process group, for at most cc.timeout (a flag) seconds.
 * Standard input is fd `in` (-1: empty).  The environment has LC_ALL=C, and TMPDIR=tmp unless tmp is NULL.
 * *said receives the beginning of what the program writes to standard output and standard error. */
mc_status mc_cc_run(const struct mc_argv *w, int in, const char *tmp, struct mc_str *said,
                    struct mc_child_exit *end);

/* ---- cc.c ---- */
struct mc_compiler {
    struct mc_compiler *next;
    const char *flag;  /* the text of the flag cc that names it */
    bool works;
    /* Version of the compiler.  If it does not work: the last version recorded in the cache for this flag, or
     * "" */
    char version[256];
    char why[256];     /* why it does not work */
    char advice[400];  /* why, and what to do about it */
};
const struct mc_compiler *mc_compiler(void); /* for the current flag cc; NULL: error set */

/* ---- library.c ---- */
/* NULL: a complete ELF library for this processor.  On systems without ELF only emptiness is checked. */
const char *mc_library_flaw(const char *data, size_t n);
/* Loads the open file, even if its path now names another file.  NULL: mc_last_error has the reason. */
void *mc_library_open(int fd, const char *path);
/* Checks the bytes of a library and loads them. */
void *mc_library_load(const char *image, size_t size);

/* ---- compile.c ---- */
void mc_code_flush(void); /* unloads all libraries without references */

/* ---- compile_job.c ---- */
struct mc_job {
    const char *source;
    struct mc_str command; /* the flag cc and all options except those for linking and for the output */
    struct mc_key key;
    void *library;
    const char *image;      /* a library to load instead of a source to compile; or NULL */
    size_t size;            /* its bytes */
    struct mc_str *wanted;  /* gets the bytes of the library that was found or made; or NULL */
    double cc_seconds;
    bool doubt; /* the last error is MC_EFILE, but the folder may not be its cause */
};
/* sets command and key; cpu: flags of the instruction set */
mc_status mc_job_describe(struct mc_job *j, const char *source, const char *flags, const char *cpu);
bool mc_job_from_cache(struct mc_job *j);
mc_status mc_job_compile(struct mc_job *j);          /* in the first folder where it succeeds */

#endif

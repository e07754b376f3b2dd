/* code.h: what cc.c (the compiler as a process), cache.c (the folder of compiled kernels) and
 * compile.c (text to a loaded library) say to each other. */
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

/* ---- cache.c ---- */
struct mc_key {
    uint64_t at[2];
};
struct mc_key mc_key(const char *const *part, size_t n); /* of the texts and of where each ends */

/* Entries are files NAME = <key><suffix> of the folder <cache>/kernels, sealed by a trailer which
 * holds key, size and hash; so a damaged or misnamed file is never used, but removed. */
bool mc_cache_folder(struct mc_str *path);  /* makes it; false: no cache */
bool mc_cache_path(struct mc_key key, const char *suffix, struct mc_str *path);
bool mc_cache_find(struct mc_key key, const char *suffix, struct mc_str *path, struct mc_str *content);
void mc_cache_put(struct mc_key key, const char *suffix, const char *content, size_t n);
/* Makes the file `from`, in the same file system, the entry `path`.  Its size in bytes; 0: it did not. */
size_t mc_cache_adopt(struct mc_key key, const char *from, const char *path);
void mc_cache_sweep(size_t added);          /* after `added` more bytes: stale and least recently used files go */
void mc_folder_remove(const char *path);    /* with the files in it */

/* ---- compile.c ---- */
void mc_code_flush(void); /* unloads what nobody holds */

#endif

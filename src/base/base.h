/* base.h: what all other folders use: allocation, arenas, vectors, strings, hashing, errors, log channels,
 * flags, files.  Nothing here depends on tensors.
 *
 * Invariant: every allocation of the library goes through mc_alloc and its relatives, so the hook that a
 * program (or a test that fails the n-th allocation) installs sees all of them. */
#ifndef MC_BASE_H
#define MC_BASE_H

#include <monochord.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>

#define NELEM(a) (sizeof(a) / sizeof *(a))
/* A text of a table that only the library has: libmonochord-run is small. */
#ifdef MC_RUNTIME
#define MANUAL(...) NULL
#else
#define MANUAL(...) __VA_ARGS__
#endif
#define TRY(e)                                                                                     \
    do {                                                                                           \
        mc_status e_ = (e);                                                                        \
        if (e_ < 0) {                                                                              \
            return e_;                                                                             \
        }                                                                                          \
    } while (0) /* returns the error code of e, if it is one */
#define MC_MIN(a, b) ((a) < (b) ? (a) : (b))
#define MC_MAX(a, b) ((a) > (b) ? (a) : (b))

#if defined(__GNUC__)
#define MC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MC_LIKELY(x) __builtin_expect(!!(x), 1)
#else
#define MC_PRINTF(fmt, args)
#define MC_LIKELY(x) (x)
#endif

/* ---- alloc.c: beside mc_alloc, mc_calloc, mc_realloc, mc_free and mc_strdup, which are public ---- */
void *mc_alloc_pages(size_t n, const char *tag);    /* 64-byte aligned, 2 MiB aligned when large */
void *mc_calloc_pages(size_t n, const char *tag);   /* the same, all zero */
void  mc_free_pages(void *p);
bool  mc_mul_size(size_t a, size_t b, size_t *out); /* false on overflow */
bool  mc_mul_i64(int64_t a, int64_t b, int64_t *out);
bool  mc_add_i64(int64_t a, int64_t b, int64_t *out);

/* ---- arena.c: many small allocations, freed together ---- */
struct mc_arena {
    struct mc_arena_block *block; /* newest first */
    size_t used, cap;             /* of the newest block */
    size_t total;                 /* bytes taken from mc_alloc */
};
struct mc_arena_mark {
    struct mc_arena_block *block;
    size_t used, cap, total;
};
void *mc_arena_alloc(struct mc_arena *a, size_t n);         /* 16-byte aligned, zeroed; NULL: no memory */
void *mc_arena_copy(struct mc_arena *a, const void *src, size_t n);
char *mc_arena_str(struct mc_arena *a, const char *s, size_t n);
void  mc_arena_free(struct mc_arena *a);
struct mc_arena_mark mc_arena_mark(const struct mc_arena *a);
void  mc_arena_release(struct mc_arena *a, struct mc_arena_mark m);

/* ---- vec: VEC(int) v = {0}; if (!VEC_PUSH(v, 3)) no memory; v.at[i], v.n ---- */
#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t n, cap;                                                                             \
    }
bool mc_vec_grow(void **at, size_t *cap, size_t need, size_t size);
#define VEC_RESERVE(v, more)                                                                       \
    ((v).n + (more) <= (v).cap ||                                                                  \
     mc_vec_grow((void **)&(v).at, &(v).cap, (v).n + (more), sizeof *(v).at))
#define VEC_PUSH(v, x) (VEC_RESERVE(v, 1) ? ((v).at[(v).n++] = (x), true) : false)
#define VEC_FREE(v) (mc_free((v).at), (v).at = NULL, (v).n = (v).cap = 0)

/* ---- str.c: growable text; a failure is remembered, so that a printer needs no checks ---- */
struct mc_str {
    char *s; /* NUL-terminated once anything was added */
    size_t n, cap;
    bool bad; /* out of memory; s is the text before the failure */
};
void mc_str_add(struct mc_str *b, const char *s);
void mc_str_addn(struct mc_str *b, const char *s, size_t n);
void mc_str_bytes(struct mc_str *b, double bytes); /* "1.5 MiB" */
void mc_str_addf(struct mc_str *b, const char *fmt, ...) MC_PRINTF(2, 3);
void mc_str_addv(struct mc_str *b, const char *fmt, va_list ap);
/* a line of C text: four spaces for each level of depth, the text, a newline */
void mc_str_json(struct mc_str *b, const char *s);   /* quoted and escaped */
void mc_str_html(struct mc_str *b, const char *s);   /* escaped for HTML and SVG text */
/* s in one line, at most `columns` wide: control characters and broken UTF-8 become '?' */
void mc_str_line(struct mc_str *b, const char *s, int columns);
char *mc_str_take(struct mc_str *b);                 /* the text, owned by the caller; NULL if bad */
void mc_str_free(struct mc_str *b);
/* writes to a stream and frees the text; what: for the message */
mc_status mc_str_write(struct mc_str *b, FILE *to, const char *what);

/* ---- c_text.c: C text that is printed a line at a time ---- */
struct mc_c_text {
    struct mc_str *out;
    int depth; /* of braces: four spaces each */
};
void mc_c_line(struct mc_c_text *c, const char *fmt, ...) MC_PRINTF(2, 3);
void mc_c_open(struct mc_c_text *c, const char *title); /* a block with a comment */
/* opens a loop of an int64_t over [from, to) */
void mc_c_loop(struct mc_c_text *c, const char *name, int64_t from, int64_t to);
void mc_c_close(struct mc_c_text *c, int depth); /* closes braces down to the depth */
/* Prints a macro that lets threads share the next loop, or the next few that are nested directly:
 * "PARALLEL(collapse(2) if (WORTH(50000)) CLAUSES)".  work: that of all their iterations, in multiply-adds.
 * elements: the loop becomes vector code, and is PARALLEL_ELEMENTS.  False: the work is too little, and
 * nothing is printed.  An exported file has the macros (heavy/portable/threads.h). */
bool mc_c_parallel(struct mc_c_text *c, bool elements, int loops, double work, const char *clauses);
struct mc_c_sum { char s[400]; }; /* "i0 * 12 + i1"; of no terms "0" */
void mc_c_add(struct mc_c_sum *t, const char *name, int64_t factor); /* adds a term; an empty name is 1 */
void mc_c_real(struct mc_str *out, double v); /* a literal of type double, with all its bits */

/* Bytes of the UTF-8 character at s, which has n of them; 0: none begins here. */
size_t mc_utf8(const char *s, size_t n);

/* ---- json.c ---- */
struct mc_json { /* JSON text that is being read */
    const char *at, *end; /* what is left of it */
    const char *what;     /* it is, for messages */
};
mc_status mc_json_string(struct mc_json *j, struct mc_str *out); /* in place of out's text; it has no NUL */
mc_status mc_json_count(struct mc_json *j, uint64_t *v);         /* a whole number from 0 on */
/* Reads each item, or each value, by a function, which gets arg. */
mc_status mc_json_array(struct mc_json *j, mc_status (*item)(struct mc_json *j, void *arg), void *arg);
mc_status mc_json_object(struct mc_json *j, mc_status (*value)(struct mc_json *j, const char *key, void *arg),
                         void *arg);
mc_status mc_json_end(struct mc_json *j);                        /* nothing but white space is left */
/* "WHAT: what at 'what is left'": MC_EFORMAT */
mc_status mc_json_wrong(const struct mc_json *j, const char *what);

/* ---- number.c: beside mc_strtod and mc_snprintf, which are public; all use the C locale ---- */
float mc_strtof(const char *s, char **end);
int   mc_vfprintf(FILE *to, const char *fmt, va_list ap);
int   mc_fprintf(FILE *to, const char *fmt, ...) MC_PRINTF(2, 3);
bool  mc_is_space(char c);
bool  mc_same_word(const char *a, const char *b); /* case-insensitive comparison */

/* ---- hash.c ---- */
uint64_t mc_hash(const void *p, size_t n, uint64_t seed);
uint64_t mc_hash_str(const char *s);
static inline uint64_t mc_hash_mix(uint64_t h, uint64_t x)
{
    h ^= x + UINT64_C(0x9e3779b97f4a7c15) + (h << 6) + (h >> 2);
    h *= UINT64_C(0xff51afd7ed558ccd);
    return h ^ (h >> 32);
}
struct mc_map { /* uint64 key -> pointer; key 0 and value NULL are allowed */
    struct mc_map_slot *slot;
    size_t n, cap;
};
void *mc_map_get(const struct mc_map *m, uint64_t key, void *missing);
bool  mc_map_put(struct mc_map *m, uint64_t key, void *value); /* false: no memory */
void  mc_map_free(struct mc_map *m);
struct mc_dict { /* string -> pointer; keys are copied */
    struct mc_dict_slot *slot;
    size_t n, cap;
};
void *mc_dict_get(const struct mc_dict *d, const char *key); /* NULL: missing */
bool  mc_dict_put(struct mc_dict *d, const char *key, void *value);
void  mc_dict_free(struct mc_dict *d);

/* ---- error.c: every failure is reported here; mc_fail, mc_fail_again are public ---- */
mc_status mc_failv(mc_status code, const char *fmt, va_list ap);
mc_status mc_fail_memory(size_t bytes, const char *tag);
void mc_clear_error(void);

/* ---- log.c: debug=rewrite:plan:kernel:mem:time:warn ---- */
enum mc_channel { LOG_REWRITE, LOG_PLAN, LOG_KERNEL, LOG_MEM, LOG_TIME, LOG_WARN, MC_NCHANNEL };
extern _Atomic unsigned mc_log_mask;
void mc_log_line(enum mc_channel ch, const char *fmt, ...) MC_PRINTF(2, 3);
void mc_say(const char *text);   /* prints to stdout, for the op print_ only */
static inline bool mc_logs(enum mc_channel ch)
{
    return atomic_load_explicit(&mc_log_mask, memory_order_relaxed) & 1u << ch;
}
#define LOG(ch, ...)                                                                               \
    do {                                                                                           \
        if (mc_logs(ch)) {                                                                         \
            mc_log_line(ch, __VA_ARGS__);                                                          \
        }                                                                                          \
    } while (0)

/* ---- flags.c: the table is flags.def; reading a flag is one atomic load ---- */
enum mc_flag {
#define FLAG(id, name, kind, dflt, values, doc) FLAG_##id,
#include "base/flags.def"
#undef FLAG
    MC_NFLAG
};
int64_t     mc_flag_int(enum mc_flag f);   /* bool, int, bytes, or the index of a WORD */
double      mc_flag_real(enum mc_flag f);
const char *mc_flag_text(enum mc_flag f);  /* stays valid for the life of the process */
/* For a TEXT flag whose values are names known elsewhere: a function that lists them and returns their
 * number.  It is set before main. */
typedef size_t mc_flag_names(const char **names, size_t capacity);
extern mc_flag_names *mc_flag_names_of[];
mc_status   mc_flags_status(void);         /* the first mistake in the file or the environment; MC_OK: none */

/* ---- file.c: beside mc_file_read and mc_file_write, which are public ---- */
struct mc_piece {
    const void *data;
    size_t n;
};
/* writes the pieces one after another */
mc_status mc_file_write_pieces(const char *path, const struct mc_piece *piece, size_t n);
/* The bytes of a file as private memory: writing to it does not change the file.  *n is 0 and *data NULL for
 * an empty file. */
mc_status mc_file_map(const char *path, char **data, size_t *n);
void mc_file_unmap(char *data, size_t n);
/* reads from the current position; path: for messages */
mc_status mc_fd_read(int fd, const char *path, char **data, size_t *n);
mc_status mc_fd_write(int fd, const char *path, struct mc_piece p);
/* with its parents; permissions for this user only */
mc_status mc_dir_make(const char *path);
double    mc_now(void);                                                   /* seconds, monotonic */

#endif

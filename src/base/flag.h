/* flag.h: a flag and its value, shared by flag_value.c, which parses values, and flags.c. */
#ifndef MC_FLAG_H
#define MC_FLAG_H

#include "base/base.h"

struct mc_flag_row {
    char name[24], dflt[16]; /* not pointers, which the loader would relocate */
    enum { BOOL, INT, REAL, BYTES, WORD, WORDS, TEXT } kind;
    const char *values;
    const char *doc;         /* NULL in libmonochord-run */
};
extern const struct mc_flag_row mc_flag_rows[MC_NFLAG];

struct mc_flag_value {
    int64_t i;        /* a number, the index of a word, or a bit for each of several words */
    double r;
    const char *text; /* the text that is shown: as it was read, or a constant */
};
mc_status mc_flag_check(enum mc_flag f, const char *text, struct mc_flag_value *v);

#endif

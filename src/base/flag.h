/* flag.h: one flag and one setting of it, between flag_value.c, which reads text, and flags.c. */
#ifndef MC_FLAG_H
#define MC_FLAG_H

#include "base/base.h"

struct mc_flag_row {
    const char *name;
    enum { BOOL, INT, REAL, BYTES, WORD, WORDS, TEXT } kind;
    const char *dflt, *values, *doc;
};
extern const struct mc_flag_row mc_flag_rows[MC_NFLAG];

struct mc_flag_value {
    int64_t i;        /* a number, the index of a word, a bit for each of several words */
    double r;
    const char *text; /* as it is shown: the text that was read, or a constant */
};
mc_status mc_flag_check(enum mc_flag f, const char *text, struct mc_flag_value *v);

#endif

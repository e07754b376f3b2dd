/* array_text.h: an array shows as this text. */
#ifndef ARRAY_TEXT_H
#define ARRAY_TEXT_H

#include "check.h"
#include <monochord.h>
#include <string.h>

static inline void check_text(const mc_array *a, const char *want)
{
    char *have = a ? mc_array_text(a) : NULL;
    CHECK(have && strcmp(have, want) == 0, "\n%s\n    and not\n%s", have ? have : mc_last_error(), want);
    mc_text_free(have);
}

#endif

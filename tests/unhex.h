/* unhex.h: bytes written as hexadecimal digits. */
#ifndef UNHEX_H
#define UNHEX_H

#include "base/base.h"
#include <stdlib.h>

static inline struct mc_str unhex(const char *hex)
{
    struct mc_str b = { 0 };
    for (; *hex; hex += 2) {
        char byte[3] = { hex[0], hex[1], 0 };
        mc_str_addn(&b, (char[]){ (char)strtol(byte, NULL, 16) }, 1);
    }
    return b;
}

#endif

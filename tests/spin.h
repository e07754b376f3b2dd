/* spin.h: work that takes so long and does nothing. */
#ifndef SPIN_H
#define SPIN_H

#include "base/base.h"

static inline void spin(double seconds)
{
    for (const double end = mc_now() + seconds; mc_now() < end;) {
    }
}

#endif

/* points.h: the data of bundle.c, export.c, exported_main.c and exported_main.cpp: points of a square, and which of
 * them lie in a ring.
 *
 * Invariant: every compiler gives the same numbers: coordinates are n / 128, labels follow from integers. */
#ifndef POINTS_H
#define POINTS_H

#include <stdint.h>

enum { POINTS = 32 };

/* x: (POINTS, 2); t: (POINTS) */
static inline void draw_points(float *x, int32_t *t, unsigned *state)
{
    for (int i = 0; i < POINTS; i++) {
        int at[2];
        for (int k = 0; k < 2; k++) {
            *state = *state * 1664525u + 1013904223u;
            at[k] = (int)(*state >> 24) - 128;
            x[2 * i + k] = (float)at[k] / 128;
        }
        const int square = at[0] * at[0] + at[1] * at[1];
        t[i] = square >= 50 * 50 && square < 100 * 100;
    }
}

#endif

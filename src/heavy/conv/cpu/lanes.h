/* lanes.h: vectors of L floats. For code that is compiled once for each instruction set, by a file that
 * defines TARGET and L. */
typedef float V __attribute__((vector_size(4 * L)));
#ifndef FUSED
#define FUSED static inline TARGET __attribute__((always_inline))
#endif

FUSED V load(const float *p)
{
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

FUSED void store(float *p, V v)
{
    memcpy(p, &v, sizeof v);
}

/* arguments.c: calls that must not compile, one for each value of WRONG; 0 is right.  t_call.c compiles
 * them. */
#include <monochord.h>
#include <stddef.h>

mc_status call(mc_function *f, mc_array *y, const mc_array *x)
{
    char word[] = "y";
    char letter = 0;
    const double fixed = 0;
    long double wide = 0;
    struct {
        int i;
    } thing = { 0 };
    size_t n = 0;
    int8_t a = 0;
    uint8_t b = 0;
    int16_t c = 0;
    uint16_t d = 0;
    int32_t e = 0;
    uint32_t g = 0;
    int64_t h = 0;
    uint64_t i = 0;
    _Bool j = 0;
    (void)word, (void)letter, (void)fixed, (void)wide, (void)thing, (void)x;
    switch (WRONG) {
    case 0:
        mc_call(f, MC_IN(x, y, NULL, a, b, c, d, e, g, h, i, j),
                MC_OUT(&a, &b, &c, &d, &e, &g, &h, &i, &j, &n, NULL, &y));
        return mc_call(f, MC_IN(fixed, 1.5f, wide, letter, n, 'c', 2u, 3ll), MC_OUT((void *)NULL));
#if WRONG == 1
    case 1: return mc_call(f, MC_NONE, MC_OUT(y)); /* &y was meant */
#elif WRONG == 2
    case 2: return mc_call(f, MC_NONE, MC_OUT("y"));
#elif WRONG == 3
    case 3: return mc_call(f, MC_NONE, MC_OUT(word));
#elif WRONG == 4
    case 4: return mc_call(f, MC_NONE, MC_OUT(&letter)); /* a string of one letter looks the same */
#elif WRONG == 5
    case 5: return mc_call(f, MC_NONE, MC_OUT(x));
#elif WRONG == 6
    case 6: return mc_call(f, MC_NONE, MC_OUT(e)); /* &e was meant */
#elif WRONG == 7
    case 7: return mc_call(f, MC_NONE, MC_OUT(1.0));
#elif WRONG == 8
    case 8: return mc_call(f, MC_NONE, MC_OUT(&fixed));
#elif WRONG == 9
    case 9: return mc_call(f, MC_NONE, MC_OUT(&wide));
#elif WRONG == 10
    case 10: return mc_call(f, MC_NONE, MC_OUT(&thing));
#elif WRONG == 11
    case 11: return mc_call(f, MC_IN("x"), MC_NONE);
#elif WRONG == 12
    case 12: return mc_call(f, MC_IN(&x), MC_NONE);
#elif WRONG == 13
    case 13: return mc_call(f, MC_IN(&e), MC_NONE);
#elif WRONG == 14
    case 14: return mc_call(f, MC_IN(thing), MC_NONE);
#elif WRONG == 15
    case 15: return mc_call(f, MC_NONE, MC_OUT(&x)); /* what comes out is to be written to */
#endif
    }
    return MC_OK;
}

/* chain.c: what y = a x + b tanh x - c / (1 + x x) costs as arithmetic alone, in the first cache, one thread, and which
 * other ways to write it were weighed; with AVX-512, on the vectors that kernels are printed with.
 *
 *     gcc -std=gnu11 -O2 -fno-math-errno -fno-trapping-math -mavx512f -mavx512dq -Di64='long long' \
 *         -include src/render/vector.h bench/chain.c -o /tmp/chain && /tmp/chain
 *
 * Ways marked * compute something else at the same cost (coefficients of other pieces): they are here for their time. */
#include <stdio.h>
#include <time.h>

enum { N = 2048, CALLS = 100, TURNS = 300 };
static float from[N] __attribute__((aligned(64))), to[N] __attribute__((aligned(64)));
static volatile float scalar[3] = { 1.5f, -0.7f, 2.25f };
static volatile int streams; /* results go past the caches: no */

/* ---- tanh ---- */

#define V_MUL(a, b) ((vf)__builtin_ia32_mulps512_mask(a, b, a, (vm)-1, 4)) /* never joined with a sum */
#define PICK(n) v_pick(v_tanh##n##a, k, v_tanh##n##b)
#define SPLIT                                                                                      \
    vf a = v_least(v_all(9.02f), v_fabs(x)), t = a + 0.75f;                                        \
    vi k = (vi)t >> 20;                                                                            \
    vf d = a - ((vf)((vi)t & v_piece) - 0.75f)

VECTOR vf apart(vf x)
{
    SPLIT;
    vf p = V_MUL(PICK(4), d) + PICK(3);
    p = V_MUL(p, d) + PICK(2);
    p = V_MUL(p, d) + PICK(1);
    p = V_MUL(p, d) + PICK(0);
    return v_copysign(p, x);
}
VECTOR vf by_halves(vf x) /* (c4 dd + c3 d + c2) dd + (c1 d + c0) */
{
    SPLIT;
    vf dd = d * d;
    return v_copysign((PICK(4) * dd + (PICK(3) * d + PICK(2))) * dd + (PICK(1) * d + PICK(0)), x);
}
VECTOR vf two_in_one(vf x) /* the highest coefficient in the lower half of its neighbour */
{
    SPLIT;
    vf c = PICK(3), p = (vf)((vi)c << 16) * d + c;
    return v_copysign(((p * d + PICK(2)) * d + PICK(1)) * d + PICK(0), x);
}
#define ONE(t) ((vf)__builtin_ia32_permvarsf512_mask(t, k, t, (vm)-1))
VECTOR vf sixteen(vf x) /* half as many pieces, degree 6, five of seven coefficients picked from one register each */
{
    vf a = v_least(v_all(9.02f), v_fabs(x)), t = a + 3;
    vi k = (vi)t >> 20;
    vf d = a - ((vf)((vi)t & v_piece) - 3);
    vf c = ONE(v_tanh4a), p = (vf)((vi)c << 16) * d + c;
    return v_copysign(((((p * d + ONE(v_tanh3b)) * d + ONE(v_tanh3a)) * d + ONE(v_tanh2a)) * d + ONE(v_tanh1a)) * d + ONE(v_tanh0a), x);
}
VECTOR vf itself(vf x)
{
    return x;
}

/* ---- the chain ---- */

#define LOOP(name, tanh, over)                                                                     \
    static __attribute__((noinline)) void name(void)                                               \
    {                                                                                              \
        const vf a = v_all(scalar[0]), b = v_all(scalar[1]), c = v_all(scalar[2]);                 \
        const int stream = streams;                                                                \
        for (int i = 0; i < N; i += 16) {                                                          \
            const vf x = *(const vu *)(from + i);                                                  \
            const vf y = a * x, z = b * tanh(x);                                                   \
            const vf w = y + z - (c over (x * x + 1));                                             \
            if (stream) v_stream(to + i, w); else *(vu *)(to + i) = w;                             \
        }                                                                                          \
    }
LOOP(as_printed, v_tanh, /)
LOOP(products_apart, apart, /)
LOOP(halves, by_halves, /)
LOOP(packed, two_in_one, /)
LOOP(pieces16, sixteen, /)
LOOP(no_tanh, itself, /)
LOOP(no_division, v_tanh, *)

/* Three vectors side by side, op by op. */
#define EACH(what) do { { enum { u = 0 }; what; } { enum { u = 1 }; what; } { enum { u = 2 }; what; } } while (0)
#define STEP(n) EACH(p[u] = p[u] * d[u] + v_pick(v_tanh##n##a, k[u], v_tanh##n##b))
static __attribute__((noinline)) void three(void)
{
    const vf a = v_all(scalar[0]), b = v_all(scalar[1]), c = v_all(scalar[2]);
    for (int i = 0; i + 48 <= N; i += 48) {
        vf x[3], d[3], t[3], p[3], q[3];
        vi k[3];
        EACH(x[u] = *(const vu *)(from + i + 16 * u));
        EACH(d[u] = v_least(v_all(9.02f), v_fabs(x[u])));
        EACH(t[u] = d[u] + 0.75f);
        EACH(k[u] = (vi)t[u] >> 20);
        EACH(d[u] = d[u] - ((vf)((vi)t[u] & v_piece) - 0.75f));
        EACH(q[u] = c / (x[u] * x[u] + 1));
        EACH(p[u] = v_pick(v_tanh4a, k[u], v_tanh4b));
        STEP(3);
        STEP(2);
        STEP(1);
        STEP(0);
        EACH(p[u] = v_copysign(p[u], x[u]));
        EACH(*(vu *)(to + i + 16 * u) = a * x[u] + b * p[u] - q[u]);
    }
}

static const struct way { const char *name; void (*run)(void); int vectors; } ways[] = {
    { "as kernels print it",                                as_printed,     N / 16 },
    { "products and sums apart",                            products_apart, N / 16 },
    { "(c4 dd + c3 d + c2) dd + (c1 d + c0)",               halves,         N / 16 },
    { "two coefficients in one lane *",                     packed,         N / 16 },
    { "16 pieces of degree 6 *",                            pieces16,       N / 16 },
    { "three vectors side by side",                         three,          N / 48 * 3 },
    { "x in the place of tanh x *",                         no_tanh,        N / 16 },
    { "times in the place of the division *",               no_division,    N / 16 },
};

/* ---- what the processor starts in a cycle: groups of instructions that do not wait for each other ---- */

#define ON(i) "%%zmm" #i
#define FMA(i) "vfmadd213ps %%zmm15, %%zmm14, " ON(i) "\n"
#define MUL(i) "vmulps %%zmm15, %%zmm14, " ON(i) "\n"
#define ADD(i) "vaddps %%zmm15, %%zmm14, " ON(i) "\n"
#define PAIR(i) "vpermt2ps %%zmm15, %%zmm14, " ON(i) "\n"
#define ALONE(i) "vpermps %%zmm15, %%zmm14, " ON(i) "\n"
#define QUOTIENT(i) "vdivps %%zmm15, %%zmm14, " ON(i) "\n"
#define EIGHT(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#define TWICE(f, g) f(0) g(1) f(2) g(3) f(4) g(5) f(6) g(7) f(8) g(9) f(10) g(11) f(12) g(13) f(0) g(1)
#define THRICE(f, g, h) f(0) g(1) h(2) f(3) g(4) h(5) f(6) g(7) h(8) f(9) g(10) h(11) f(12) g(13) h(0) f(1) g(2) h(3) \
    f(4) g(5) h(6) f(7) g(8) h(9)
#define GROUP(name, text)                                                                          \
    static void name(void)                                                                         \
    {                                                                                              \
        for (int i = 0; i < CALLS; i++) {                                                          \
            __asm__ volatile(text ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                             "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");        \
        }                                                                                          \
    }
GROUP(product_sum, EIGHT(FMA))
GROUP(pair, EIGHT(PAIR))
GROUP(quotient, EIGHT(QUOTIENT))
GROUP(fma_add, TWICE(FMA, ADD))
GROUP(fma_alone, TWICE(FMA, ALONE))
GROUP(fma_pair, TWICE(FMA, PAIR))
GROUP(mul_add_pair, THRICE(MUL, ADD, PAIR))

static const struct group { const char *name; void (*run)(void); } groups[] = {
    { "multiply-and-add",                                   product_sum },
    { "pick from two registers",                            pair },
    { "division",                                           quotient },
    { "multiply-and-add; sum",                              fma_add },
    { "multiply-and-add; pick from one register",           fma_alone },
    { "multiply-and-add; pick from two registers",          fma_pair },
    { "product; sum; pick from two registers",              mul_add_pair },
};

/* ---- times ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void spin(void)
{
    long n = 10000;
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}

/* ns a call, the least of many turns */
static double least(void (*run)(void))
{
    double best = 1e18;
    for (int turn = 0; turn < TURNS; turn++) {
        const double start = now();
        for (int i = 0; i < CALLS; i++) {
            run();
        }
        const double took = (now() - start) / CALLS;
        best = took < best ? took : best;
    }
    return best;
}

int main(void)
{
    for (int i = 0; i < N; i++) {
        from[i] = (float)(i * 2654435761u % 2000) / 200 - 5;
    }
    const double cycle = least(spin) / 10000; /* a turn of that loop is one */
    printf("| the chain on a vector of 16 floats | ns | cycles |\n|---|--:|--:|\n");
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        const double ns = least(ways[i].run) / ways[i].vectors;
        printf("| %s | %.2f | %.1f |\n", ways[i].name, ns, ns / cycle);
    }
    printf("\n| eight of each, 16 floats wide | cycles |\n|---|--:|\n");
    for (unsigned i = 0; i < sizeof groups / sizeof *groups; i++) {
        printf("| %s | %.1f |\n", groups[i].name, least(groups[i].run) / CALLS / cycle);
    }
}

/* fuzz_graph.c: random graphs, compiled and by the reference.  `fuzz_graph SECONDS [SEED]`: seed after seed,
 * the first that fails is shown with its graph and ends it; `fuzz_graph 0 SEED` shows one. */
#include "random_graph.h"

#include <stdarg.h>

static uint64_t state;

uint64_t test_random(void) /* xorshift; sample.h draws from it too */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 8;
}

double test_uniform(double lo, double hi)
{
    return lo + (hi - lo) * (double)(test_random() % 1000003) / 1000003;
}

void check_passed(void) { }

void check_failed(const char *cond, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("%s:%d: not so: %s\n", file, line, cond);
    vprintf(fmt, ap);
    va_end(ap);
}

static unsigned draw(void *arg)
{
    (void)arg;
    return (unsigned)test_random();
}

/* Everything at once: the modes take turns, so that each graph costs one compilation. */
static bool try_seed(uint64_t seed, bool show)
{
    static const char *const modes[] = { "FAST_RUN", "DEBUG", "FAST_RUN", "FAST_COMPILE" };
    struct random_graph r = { .structured = seed % 2, .random = draw };
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < 4; i++) {
        test_random();
    }
    rg_make(&r, 3 + rg_below(&r, seed % 3 ? 12 : 60));
    const char *wrong = r.a.nout ? agree_in(&r.a, modes[seed % NELEM(modes)], 1 + (int)(seed % 2)) : NULL;
    if (wrong || show) {
        char *text = mc_graph_text(r.a.g, r.a.nout, r.a.out);
        printf("%s\nseed %llu: %s\n", text ? text : "", (unsigned long long)seed, wrong ? wrong : "right");
        for (int i = 0; i < r.a.nin && show; i++) {
            struct mc_str s = { 0 };
            mc_dims_text(&s, r.a.value[i]->rank, r.a.value[i]->dims);
            mc_str_addf(&s, " strides");
            mc_dims_text(&s, r.a.value[i]->rank, r.a.value[i]->strides);
            printf("x%d %s\n", i, s.s);
            mc_str_free(&s);
        }
        mc_text_free(text);
    }
    agree_free(&r.a);
    return !wrong;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 30, start = mc_now();
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, first = seed;
    do {
        if (!try_seed(seed, seconds <= 0)) {
            return 1;
        }
        seed++;
    } while (mc_now() - start < seconds);
    printf("%llu graphs agree\n", (unsigned long long)(seed - first));
    return 0;
}

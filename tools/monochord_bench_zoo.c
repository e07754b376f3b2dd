/* monochord_bench_zoo.c: the suite zoo: layers of published networks (zoo.def), all of them or a shard, and
 * two rates of the machine, which the table of bench/compare.py measures them by.
 *
 * Invariant: a seed draws the same layers as bench/peers/networks.py does. */
#include "bench.h"
#include <string.h>

#define NAMES(class, name)                                                                                   \
    { #class, #class " " name " b1" }, { #class, #class " " name " b16" },
#define ZOO(class, name, ...)      NAMES(class, name)
#define ZOO_AXES(class, name, ...) NAMES(class, name)
#define PRODUCT(name, ...)         NAMES(product, name)
#define NORM(kind, name, ...)      NAMES(norm, name)
static const struct named { const char *class, *name; } layers[] = {
#include "zoo.def"
};

/* FNV-1a of the seed's decimals and the layer's name. */
static uint32_t hash(int64_t seed, const char *name)
{
    char text[96];
    uint32_t hash = 2166136261u;
    snprintf(text, sizeof text, "%lld %s", (long long)seed, name);
    for (const char *c = text; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    }
    return hash;
}

/* rank: in a class of n, by hash */
static struct drawn { uint32_t hash; int64_t rank, n; } drawn[COUNT(layers)];

static void draw(int64_t seed)
{
    for (int i = 0; i < COUNT(layers); i++) {
        drawn[i] = (struct drawn){ hash(seed, layers[i].name), 0, 0 };
    }
    for (int i = 0; i < COUNT(layers); i++) {
        for (int j = 0; j < COUNT(layers); j++) {
            const bool same = strcmp(layers[i].class, layers[j].class) == 0;
            drawn[i].n += same;
            drawn[i].rank += same && drawn[j].hash < drawn[i].hash;
        }
    }
}

/* By the share of its class that is before it, then by hash. */
static bool before(const struct drawn *a, const struct drawn *b)
{
    const int64_t left = a->rank * b->n, right = b->rank * a->n;
    return left < right || (left == right && a->hash < b->hash);
}

bool bench_in_shard(const char *name)
{
    const struct bench_shard shard = bench_shard();
    int64_t earlier = 0;
    int at = 0;
    if (shard.count == 0) {
        return true;
    }
    if (drawn[0].n == 0) {
        draw(shard.seed);
    }
    while (strcmp(layers[at].name, name) != 0) {
        at++;
    }
    for (int i = 0; i < COUNT(layers); i++) {
        earlier += before(&drawn[i], &drawn[at]);
    }
    return earlier < shard.count;
}

bool bench_zoo(const char *suite)
{
    const bool convolutions = bench_conv(suite);
    return bench_layers(suite) && convolutions;
}

int bench_list_zoo(void)
{
    for (int i = 0; i < COUNT(layers); i++) {
        if (bench_in_shard(layers[i].name)) {
            puts(layers[i].name);
        }
    }
    return 0;
}

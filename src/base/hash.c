/* hash.c: a hash of bytes, a map from numbers and a dictionary from strings.
 *
 * Invariant: tables are open-addressed, their sizes are powers of two, at most three quarters of the slots
 * are used, and nothing is deleted; so a search ends at the first unused slot. */
#include "base/base.h"

static uint64_t word(const unsigned char *p, size_t n) /* little-endian on every machine */
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) {
        x |= (uint64_t)p[i] << 8 * i;
    }
    return x;
}

uint64_t mc_hash(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = mc_hash_mix(seed, n);
    for (; n >= 8; p += 8, n -= 8) {
        h = mc_hash_mix(h, word(p, 8));
    }
    return mc_hash_mix(mc_hash_mix(h, word(p, n)), 0);
}

uint64_t mc_hash_str(const char *s)
{
    return mc_hash(s, strlen(s), 0);
}

/* ---- numbers ---- */

struct mc_map_slot {
    uint64_t key;
    void *value;
    bool used;
};

static struct mc_map_slot *map_find(const struct mc_map *m, uint64_t key)
{
    size_t i = (size_t)mc_hash_mix(0, key) & (m->cap - 1);
    while (m->slot[i].used && m->slot[i].key != key) {
        i = (i + 1) & (m->cap - 1);
    }
    return &m->slot[i];
}

void *mc_map_get(const struct mc_map *m, uint64_t key, void *missing)
{
    if (!m->cap) {
        return missing;
    }
    const struct mc_map_slot *s = map_find(m, key);
    return s->used ? s->value : missing;
}

static bool map_grow(struct mc_map *m)
{
    struct mc_map big = { .n = m->n, .cap = m->cap ? 2 * m->cap : 16 };
    big.slot = mc_calloc(big.cap, sizeof *big.slot, "maps");
    if (!big.slot) {
        return false;
    }
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slot[i].used) {
            *map_find(&big, m->slot[i].key) = m->slot[i];
        }
    }
    mc_free(m->slot);
    *m = big;
    return true;
}

bool mc_map_put(struct mc_map *m, uint64_t key, void *value)
{
    if ((m->n + 1) * 4 > m->cap * 3 && !map_grow(m)) {
        return false;
    }
    struct mc_map_slot *s = map_find(m, key);
    m->n += !s->used;
    *s = (struct mc_map_slot){ key, value, true };
    return true;
}

void mc_map_free(struct mc_map *m)
{
    mc_free(m->slot);
    *m = (struct mc_map){ 0 };
}

/* ---- strings ---- */

struct mc_dict_slot {
    char *key; /* NULL: unused */
    uint64_t hash;
    void *value;
};

static struct mc_dict_slot *dict_find(const struct mc_dict *d, const char *key, uint64_t hash)
{
    size_t i = (size_t)hash & (d->cap - 1);
    while (d->slot[i].key && (d->slot[i].hash != hash || strcmp(d->slot[i].key, key) != 0)) {
        i = (i + 1) & (d->cap - 1);
    }
    return &d->slot[i];
}

void *mc_dict_get(const struct mc_dict *d, const char *key)
{
    return d->cap ? dict_find(d, key, mc_hash_str(key))->value : NULL;
}

static bool dict_grow(struct mc_dict *d)
{
    struct mc_dict big = { .n = d->n, .cap = d->cap ? 2 * d->cap : 16 };
    big.slot = mc_calloc(big.cap, sizeof *big.slot, "maps");
    if (!big.slot) {
        return false;
    }
    for (size_t i = 0; i < d->cap; i++) {
        if (d->slot[i].key) {
            *dict_find(&big, d->slot[i].key, d->slot[i].hash) = d->slot[i];
        }
    }
    mc_free(d->slot);
    *d = big;
    return true;
}

bool mc_dict_put(struct mc_dict *d, const char *key, void *value)
{
    if ((d->n + 1) * 4 > d->cap * 3 && !dict_grow(d)) {
        return false;
    }
    uint64_t hash = mc_hash_str(key);
    struct mc_dict_slot *s = dict_find(d, key, hash);
    if (!s->key) {
        char *copy = mc_strdup(key);
        if (!copy) {
            return false;
        }
        *s = (struct mc_dict_slot){ .key = copy, .hash = hash };
        d->n++;
    }
    s->value = value;
    return true;
}

void mc_dict_free(struct mc_dict *d)
{
    for (size_t i = 0; i < d->cap; i++) {
        mc_free(d->slot[i].key);
    }
    mc_free(d->slot);
    *d = (struct mc_dict){ 0 };
}

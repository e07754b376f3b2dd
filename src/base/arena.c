/* arena.c: many small allocations that are freed together.
 *
 * Invariant: only the newest block is allocated from, so a mark is four words, and releasing to it frees the
 * blocks that are newer. */
#include "base/base.h"

enum { ALIGN = 16, FIRST = 4 << 10, LARGEST = 1 << 20 };

struct mc_arena_block {
    struct mc_arena_block *next; /* the next older block */
    _Alignas(ALIGN) char data[];
};

/* Block sizes double up to LARGEST; a larger request gets a block of its own size. */
static bool add_block(struct mc_arena *a, size_t n)
{
    size_t cap = MC_MIN(MC_MAX(a->cap * 2, (size_t)FIRST), (size_t)LARGEST);
    cap = MC_MAX(cap, n);
    struct mc_arena_block *b = mc_alloc(sizeof *b + cap, "arena");
    if (!b) {
        return false;
    }
    b->next = a->block;
    a->block = b;
    a->used = 0;
    a->cap = cap;
    a->total += sizeof *b + cap;
    return true;
}

static void *take(struct mc_arena *a, size_t n)
{
    if (n > SIZE_MAX / 2) {
        mc_fail_memory(n, "arena");
        return NULL;
    }
    n = (MC_MAX(n, (size_t)1) + ALIGN - 1) / ALIGN * ALIGN;
    if (n > a->cap - a->used && !add_block(a, n)) {
        return NULL;
    }
    void *p = a->block->data + a->used;
    a->used += n;
    return p;
}

void *mc_arena_alloc(struct mc_arena *a, size_t n)
{
    void *p = take(a, n);
    return p ? memset(p, 0, n) : NULL;
}

void *mc_arena_copy(struct mc_arena *a, const void *src, size_t n)
{
    void *p = take(a, n);
    if (p && n) {
        memcpy(p, src, n);
    }
    return p;
}

char *mc_arena_str(struct mc_arena *a, const char *s, size_t n)
{
    char *p = take(a, n + 1);
    if (p) {
        memcpy(p, s, n);
        p[n] = '\0';
    }
    return p;
}

void mc_arena_free(struct mc_arena *a)
{
    mc_arena_release(a, (struct mc_arena_mark){ 0 });
}

struct mc_arena_mark mc_arena_mark(const struct mc_arena *a)
{
    return (struct mc_arena_mark){ a->block, a->used, a->cap, a->total };
}

void mc_arena_release(struct mc_arena *a, struct mc_arena_mark m)
{
    while (a->block != m.block) {
        struct mc_arena_block *next = a->block->next;
        mc_free(a->block);
        a->block = next;
    }
    a->used = m.used;
    a->cap = m.cap;
    a->total = m.total;
}

/* alloc.c: allocates memory.
 *
 * Invariant: no other code of the library calls malloc or its relatives, and memory allocated here is freed
 * here, so a hook sees every allocation.  A request for 0 bytes returns a pointer of its own. */
#include "base/base.h"
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE_ALIGN = 64 };
#define HUGE_SIZE ((size_t)2 << 20)

static void *libc_realloc(void *arg, void *p, size_t n)
{
    (void)arg;
    if (n == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, n);
}

static mc_allocator hook = { libc_realloc, NULL };

void mc_set_allocator(const mc_allocator *a)
{
    hook = a && a->realloc ? *a : (mc_allocator){ libc_realloc, NULL };
}

void *mc_realloc(void *p, size_t n, const char *tag)
{
    void *q = hook.realloc(hook.arg, p, n ? n : 1);
    if (!q) {
        mc_fail_memory(n, tag);
    }
    return q;
}

void *mc_alloc(size_t n, const char *tag)
{
    return mc_realloc(NULL, n, tag);
}

/* calloc gets large blocks from the system as zero pages, which a memset would touch. */
static void *zeroed(size_t n, const char *tag)
{
    if (hook.realloc == libc_realloc) {
        void *p = calloc(1, n ? n : 1);
        if (!p) {
            mc_fail_memory(n, tag);
        }
        return p;
    }
    void *p = mc_alloc(n, tag);
    return p ? memset(p, 0, n) : NULL;
}

void *mc_calloc(size_t n, size_t size, const char *tag)
{
    size_t bytes;
    if (!mc_mul_size(n, size, &bytes)) {
        mc_fail_memory(SIZE_MAX, tag);
        return NULL;
    }
    return zeroed(bytes, tag);
}

void mc_free(void *p)
{
    if (p) {
        hook.realloc(hook.arg, p, 0);
    }
}

/* The block begins before the aligned part; its address is stored in the word just below that part. */
static void *pages(size_t n, const char *tag, void *(*get)(size_t, const char *))
{
    size_t align = n >= HUGE_SIZE ? HUGE_SIZE : PAGE_ALIGN;
    if (n > SIZE_MAX / 2) {
        mc_fail_memory(n, tag);
        return NULL;
    }
    char *block = get(n + align + sizeof(void *), tag);
    if (!block) {
        return NULL;
    }
    uintptr_t first = (uintptr_t)block + sizeof(void *);
    char *p = block + ((first + align - 1) / align * align - (uintptr_t)block);
    memcpy(p - sizeof block, &block, sizeof block);
#if defined(MADV_HUGEPAGE)
    if (align == HUGE_SIZE) {
        (void)madvise(p, n / HUGE_SIZE * HUGE_SIZE, MADV_HUGEPAGE);
    }
#endif
    LOG(LOG_MEM, "%zu bytes for %s", n, tag);
    return p;
}

void *mc_alloc_pages(size_t n, const char *tag)
{
    return pages(n, tag, mc_alloc);
}

void *mc_calloc_pages(size_t n, const char *tag)
{
    return pages(n, tag, zeroed);
}

void mc_free_pages(void *p)
{
    if (p) {
        void *block;
        memcpy(&block, (char *)p - sizeof block, sizeof block);
        mc_free(block);
    }
}

char *mc_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = mc_alloc(n, "text");
    return copy ? memcpy(copy, s, n) : NULL;
}

void mc_text_free(char *text)
{
    mc_free(text);
}

bool mc_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool mc_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool mc_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Capacity grows by half, so n pushes cost O(n) and little memory is unused.  After a failure the vector is
 * unchanged. */
bool mc_vec_grow(void **at, size_t *cap, size_t need, size_t size)
{
    size_t n = MC_MAX(need, MC_MAX(*cap + *cap / 2, (size_t)8));
    size_t bytes;
    if (!mc_mul_size(n, size, &bytes)) {
        mc_fail_memory(SIZE_MAX, "vectors");
        return false;
    }
    void *p = mc_realloc(*at, bytes, "vectors");
    if (!p) {
        return false;
    }
    *at = p;
    *cap = n;
    return true;
}

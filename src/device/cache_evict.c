/* cache_evict.c: limits the size of the folder of compiled kernels and removes leftovers of killed processes.
 *
 * A scan takes time proportional to the number of files.  So a process scans at its first entry, and again
 * whenever it has added a quarter of the free space that the last scan found.  Only a quarter, because other
 * processes add entries too. */
#include "device/cache.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600, DEPTH = 8 }; /* DEPTH: levels of nested folders that are removed */

struct entry {
    char *name;
    int64_t size;
    struct timespec used;
};

struct listing {
    VEC(struct entry) entries;
    struct mc_arena names;
    int64_t total;
};

static bool ends_with(const char *s, const char *ending)
{
    size_t n = strlen(s), m = strlen(ending);
    return n >= m && strcmp(s + n - m, ending) == 0;
}

/* A work folder, or a file that has not been renamed to its final name.  Stale if its process was killed. */
static bool is_temporary(const char *name)
{
    return strncmp(name, "tmp-", 4) == 0 || ends_with(name, ".tmp");
}

static bool is_entry(const char *name)
{
    static const char *const suffix[] = { ".so", ".cc", ".last", ".cubin" };
    for (size_t i = 0; i < NELEM(suffix); i++) {
        if (ends_with(name, suffix[i])) {
            return true;
        }
    }
    return false;
}

/* Removes a folder and its contents.  Does not follow symbolic links. */
static void remove_at(int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        const bool itself = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!itself && unlinkat(dirfd(d), e->d_name, 0) < 0 && depth > 0) {
            remove_at(dirfd(d), e->d_name, depth - 1);
        }
    }
    if (d) {
        closedir(d);
    } else if (fd >= 0) {
        close(fd);
    }
    unlinkat(at, name, AT_REMOVEDIR);
}

static bool stat_entry(struct listing *l, DIR *d, const char *name)
{
    struct stat st;
    if (fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return true;
    }
    if (is_temporary(name)) {
        if (time(NULL) - st.st_mtime > HOUR) {
            S_ISDIR(st.st_mode) ? remove_at(dirfd(d), name, DEPTH) : (void)unlinkat(dirfd(d), name, 0);
        }
        return true;
    }
    if (!S_ISREG(st.st_mode) || !is_entry(name)) {
        return true; /* not a cache entry: left alone */
    }
    struct entry e = { mc_arena_str(&l->names, name, strlen(name)), st.st_size, st.st_mtim };
    l->total += st.st_size;
    return e.name && VEC_PUSH(l->entries, e);
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;
    return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
                                  : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static void remove_oldest(struct listing *l, DIR *d, int64_t cap)
{
    if (l->total <= cap) {
        return;
    }
    qsort(l->entries.at, l->entries.n, sizeof *l->entries.at, by_use);
    for (size_t i = 0; i < l->entries.n && l->total > cap / 4 * 3; i++) {
        unlinkat(dirfd(d), l->entries.at[i].name, 0);
        l->total -= l->entries.at[i].size;
    }
}

/* Returns the bytes of the entries that remain, or -1 if the scan failed. */
static int64_t sweep(int folder, int64_t cap)
{
    struct listing l = { 0 };
    struct dirent *e;
    /* a new description: its read position is not shared with `folder` */
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    bool whole = d != NULL;
    while (whole && (e = readdir(d))) {
        whole = stat_entry(&l, d, e->d_name);
    }
    if (whole) {
        remove_oldest(&l, d, cap);
    }
    if (d) {
        closedir(d);
    } else if (fd >= 0) {
        close(fd);
    }
    VEC_FREE(l.entries);
    mc_arena_free(&l.names);
    return whole ? l.total : -1;
}

void mc_cache_sweep(int folder, size_t added)
{
    static const char *_Atomic known_dir;
    static _Atomic int64_t known_cap, unchecked;
    const char *dir = mc_cache_dir();
    int64_t cap = mc_flag_int(FLAG_cache_size);
    if (atomic_load(&known_dir) == dir && atomic_load(&known_cap) == cap &&
        atomic_fetch_sub(&unchecked, (int64_t)added) >= (int64_t)added) {
        return;
    }
    int64_t total = sweep(folder, cap);
    if (total >= 0) {
        atomic_store(&known_dir, dir);
        atomic_store(&known_cap, cap);
        atomic_store(&unchecked, (cap - total) / 4);
    }
}

void mc_folder_remove(const char *path)
{
    remove_at(AT_FDCWD, path, DEPTH);
}

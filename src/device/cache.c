/* cache.c: the folder of compiled kernels, shared by every process of the user, with no lock file.
 *
 * Invariant: an entry is complete before it gets its name, and is proved whole by its seal before it
 * is used; so a killed writer, a full disk or a damaged file cost one compilation and nothing else.
 * Whatever fails here is no error: there is just no entry. */
#include "device/cache.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600, DAY = 24 * HOUR };

/* ---- keys ---- */

struct mc_key mc_key(const char *const *part, size_t n)
{
    struct mc_key k = { { UINT64_C(0x6d6f6e6f63686f72), UINT64_C(0x64206b65726e656c) } };
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(part[i]);
        k.at[0] = mc_hash(part[i], len, k.at[0]);
        k.at[1] = mc_hash(part[i], len, k.at[1]);
    }
    return k;
}

/* ---- the seal ---- */

struct seal { /* the last bytes of an entry; what loads libraries does not look at them */
    char magic[8];
    struct mc_key key;
    uint64_t size;
    uint64_t sum[2];
};
static const char magic[8] = "mcseal1\n";

static struct seal seal_of(struct mc_key key, const char *data, size_t n)
{
    struct seal s = { .key = key, .size = n, .sum = { mc_hash(data, n, 1), mc_hash(data, n, 2) } };
    memcpy(s.magic, magic, sizeof magic);
    return s;
}

/* True if data is whole and belongs to key; *n becomes the size without the seal. */
static bool sealed(struct mc_key key, const char *data, size_t *n)
{
    if (*n < sizeof(struct seal)) {
        return false;
    }
    size_t body = *n - sizeof(struct seal);
    struct seal want = seal_of(key, data, body);
    *n = body;
    return memcmp(data + body, &want, sizeof want) == 0;
}

/* ---- the folder ---- */

static struct place { /* what a text of the flag `cache` led to; only ever added to */
    struct place *next;
    const char *flag;
    char dir[];
} *_Atomic places;

static void wanted_dir(const char *flag, struct mc_str *out)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (flag[0]) {
        mc_str_add(out, flag);
    } else if (xdg && xdg[0] == '/') {
        mc_str_add(out, xdg);
        mc_str_add(out, "/monochord");
    } else if (home && home[0] == '/') {
        mc_str_add(out, home);
        mc_str_add(out, "/.cache/monochord");
    } else {
        mc_str_add(out, "");
    }
}

static const struct place *find_place(const char *flag)
{
    struct mc_str b = { 0 };
    struct place *p = NULL;
    bool clean = mc_last_status() == MC_OK;
    wanted_dir(flag, &b);
    if (!b.bad && b.n && mc_dir_make(b.s) < 0) {
        b.bad = mc_last_status() == MC_EMEMORY; /* says nothing about the folder: ask again */
        b.n = 0;
        b.s[0] = '\0';
        if (clean && !b.bad) {
            mc_clear_error();
        }
    }
    if (!b.bad) {
        p = mc_alloc(sizeof *p + b.n + 1, "cache");
    }
    if (p) {
        p->flag = flag;
        memcpy(p->dir, b.s, b.n + 1);
        p->next = atomic_load(&places);
        while (!atomic_compare_exchange_weak(&places, &p->next, p)) {
        } /* a twin made by another thread says the same */
    }
    mc_str_free(&b);
    return p;
}

const char *mc_cache_dir(void)
{
    if (mc_flag_int(FLAG_cache_size) == 0) {
        return "";
    }
    const char *flag = mc_flag_text(FLAG_cache);
    const struct place *p = atomic_load(&places);
    while (p && p->flag != flag) { /* flags keep each text once */
        p = p->next;
    }
    p = p ? p : find_place(flag);
    return p ? p->dir : "";
}

static bool folder_path(struct mc_str *path)
{
    const char *dir = mc_cache_dir();
    if (dir[0]) {
        mc_str_add(path, dir);
        mc_str_add(path, "/kernels");
    }
    return dir[0] && !path->bad;
}

bool mc_cache_folder(struct mc_str *path)
{
    return folder_path(path) && mc_dir_make(path->s) == MC_OK;
}

bool mc_cache_path(struct mc_key key, const char *suffix, struct mc_str *path)
{
    if (!folder_path(path)) {
        return false;
    }
    mc_str_addf(path, "/%016llx%016llx%s", (unsigned long long)key.at[0], (unsigned long long)key.at[1], suffix);
    return !path->bad;
}

/* ---- entries ---- */

/* Code is loaded only from files that this user or root wrote. */
static bool trusted(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0);
}

static bool read_entry(struct mc_key key, const char *path, struct mc_str *content)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return false;
    }
    if (!trusted(&st) || mc_file_read(path, &content->s, &content->n) < 0) {
        return false; /* unreadable is not damaged: no memory, no permission, just removed */
    }
    content->cap = content->n + 1;
    if (!sealed(key, content->s, &content->n)) {
        unlink(path);
        return false;
    }
    content->s[content->n] = '\0';
    if (time(NULL) - st.st_mtime > DAY) {
        utimensat(AT_FDCWD, path, NULL, 0); /* used, so not to be swept soon */
    }
    return true;
}

bool mc_cache_find(struct mc_key key, const char *suffix, struct mc_str *path, struct mc_str *content)
{
    struct mc_str p = { 0 }, c = { 0 };
    bool found = mc_cache_path(key, suffix, &p) && read_entry(key, p.s, &c);
    if (found && path) {
        mc_str_add(path, p.s);
        found = !path->bad;
    }
    if (found && content) {
        *content = c;
        c = (struct mc_str){ 0 };
    }
    mc_str_free(&p);
    mc_str_free(&c);
    return found;
}

void mc_cache_put(struct mc_key key, const char *suffix, const char *content, size_t n)
{
    struct mc_str folder = { 0 }, path = { 0 };
    struct seal seal = seal_of(key, content, n);
    struct mc_piece piece[] = { { content, n }, { &seal, sizeof seal } };
    if (mc_cache_folder(&folder) && mc_cache_path(key, suffix, &path) &&
        mc_file_write_pieces(path.s, piece, NELEM(piece)) == MC_OK) {
        mc_cache_sweep(n + sizeof seal);
    }
    mc_str_free(&folder);
    mc_str_free(&path);
}

size_t mc_cache_adopt(struct mc_key key, const char *from, const char *path)
{
    char *data;
    size_t n;
    if (mc_file_read(from, &data, &n) < 0) {
        return 0;
    }
    struct seal seal = seal_of(key, data, n);
    mc_free(data);
    int fd = open(from, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    bool good = write(fd, &seal, sizeof seal) == (ssize_t)sizeof seal;
    good = close(fd) == 0 && good && rename(from, path) == 0;
    return good ? n + sizeof seal : 0;
}

/* ---- keeping it small ---- */

void mc_folder_remove(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d) {
        closedir(d);
    }
    rmdir(path);
}

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

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* What a killed process left: its folder, or a file that never got its name. */
static bool unfinished(const char *name)
{
    return strncmp(name, "tmp-", 4) == 0 || ends_with(name, ".tmp");
}

static bool look_at(struct listing *l, const char *folder, DIR *d, const char *name)
{
    struct stat st;
    if (fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return true;
    }
    if (unfinished(name)) {
        struct mc_str path = { 0 };
        mc_str_addf(&path, "%s/%s", folder, name);
        if (time(NULL) - st.st_mtime > HOUR && !path.bad) {
            S_ISDIR(st.st_mode) ? mc_folder_remove(path.s) : (void)unlink(path.s);
        }
        mc_str_free(&path);
        return true;
    }
    if (!S_ISREG(st.st_mode) || (!ends_with(name, ".so") && !ends_with(name, ".cc") && !ends_with(name, ".cubin"))) {
        return true; /* not ours */
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

static void evict(struct listing *l, DIR *d, int64_t cap)
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

/* Returns the bytes left in the folder, or -1 where it could not be looked through. */
static int64_t sweep(const char *folder, int64_t cap)
{
    struct listing l = { 0 };
    struct dirent *e;
    DIR *d = opendir(folder);
    bool whole = d != NULL;
    while (whole && (e = readdir(d))) {
        whole = look_at(&l, folder, d, e->d_name);
    }
    if (whole) {
        evict(&l, d, cap);
    }
    if (d) {
        closedir(d);
    }
    VEC_FREE(l.entries);
    mc_arena_free(&l.names);
    return whole ? l.total : -1;
}

/* Looking through the folder costs time in proportion to what is in it, so it is done at a process's
 * first entry, and then whenever it has added a quarter of the room there was; others add as well. */
void mc_cache_sweep(size_t added)
{
    static const char *_Atomic known_dir;
    static _Atomic int64_t known_cap, room;
    const char *dir = mc_cache_dir();
    int64_t cap = mc_flag_int(FLAG_cache_size);
    if (atomic_load(&known_dir) == dir && atomic_load(&known_cap) == cap &&
        atomic_fetch_sub(&room, (int64_t)added) >= (int64_t)added) {
        return;
    }
    struct mc_str folder = { 0 };
    int64_t total = folder_path(&folder) ? sweep(folder.s, cap) : -1;
    mc_str_free(&folder);
    if (total >= 0) {
        atomic_store(&known_dir, dir);
        atomic_store(&known_cap, cap);
        atomic_store(&room, (cap - total) / 4);
    }
}

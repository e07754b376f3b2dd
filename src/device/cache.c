/* cache.c: the folder of compiled kernels, shared by all processes of the user without a lock file.
 *
 * Invariant: an entry is complete before it is renamed to its final name, and its seal is checked before it
 * is used.  So a killed writer, a full disk or a damaged file costs one compilation and nothing else.
 * Folders and entries are opened once; owner and permissions are checked on the open descriptor.
 * A failure here sets no error: the entry counts as missing. */
#include "device/cache.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DAY = 24 * 3600 };

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

struct seal { /* the last bytes of an entry; the dynamic loader ignores them */
    char magic[8];
    struct mc_key key;
    uint64_t size;
    uint64_t sum[2];
};
static const char magic[8] = "mcseal1\n";

static struct seal checksum_of(struct mc_key key, const char *data, size_t n)
{
    struct seal s = { .key = key, .size = n, .sum = { mc_hash(data, n, 1), mc_hash(data, n, 2) } };
    memcpy(s.magic, magic, sizeof magic);
    return s;
}

/* True if data is complete and belongs to key.  *n becomes the size without the seal. */
static bool has_valid_checksum(struct mc_key key, const char *data, size_t *n)
{
    if (*n < sizeof(struct seal)) {
        return false;
    }
    size_t body = *n - sizeof(struct seal);
    struct seal want = checksum_of(key, data, body);
    *n = body;
    return memcmp(data + body, &want, sizeof want) == 0;
}

/* ---- owner and permissions ---- */

static const char kernels[] = "kernels"; /* the folder of entries, inside the cache folder */

/* NULL, or the reason not to load code from there.  Only this user and root are trusted. */
static const char *untrusted_reason(const struct stat *st)
{
    return st->st_uid != geteuid() && st->st_uid != 0 ? "it belongs to another user"
           : st->st_mode & (S_IWGRP | S_IWOTH)        ? "others may write to it"
                                                      : NULL;
}

/* Returns a descriptor of the folder, or -1: the folder is missing, or refused for the reason *why. */
static int open_folder_at(int at, const char *name, int flags, const char **why)
{
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    *why = fd >= 0 && fstat(fd, &st) == 0 ? untrusted_reason(&st) : NULL;
    if (*why) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Opens the folder of entries.  The path to the cache folder may contain symbolic links: the user chose
 * it. */
static int open_kernels(void)
{
    const char *dir = mc_cache_dir(), *why = NULL;
    int top = dir[0] ? open_folder_at(AT_FDCWD, dir, 0, &why) : -1;
    int fd = top >= 0 ? open_folder_at(top, kernels, O_NOFOLLOW, &why) : -1;
    if (top >= 0) {
        close(top);
    }
    if (why) {
        LOG(LOG_KERNEL, "the folder of compiled kernels in '%s' is refused: %s", dir, why);
    }
    return fd;
}

/* ---- the folder ---- */

static struct found_folder { /* the folder found for one text of the flag `cache`; the list only grows */
    struct found_folder *next;
    const char *flag;
    const char *dir;     /* "" when the folder cannot be used */
    char why[];          /* why it was refused for its owner or permissions, or "" */
} *_Atomic folders;

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

/* NULL, or why the folder (which exists) is not trusted. */
static const char *check_owner(const char *dir)
{
    const char *why = NULL;
    int fd = open_folder_at(AT_FDCWD, dir, 0, &why);
    if (fd >= 0) {
        close(fd);
    }
    return why;
}

static struct found_folder *new_folder(const char *flag, const char *dir, const char *refused)
{
    struct mc_str why = { 0 };
    struct found_folder *p = NULL;
    if (refused) {
        mc_str_addf(&why, "'%s': %s", dir, refused);
    }
    const size_t n = strlen(dir) + 1;
    if (!why.bad) {
        p = mc_alloc(sizeof *p + why.n + 1 + n, "cache");
    }
    if (p) {
        char *copy = p->why + why.n + 1;
        memcpy(p->why, why.n ? why.s : "", why.n + 1);
        memcpy(copy, dir, n);
        p->flag = flag;
        p->dir = refused ? "" : copy;
    }
    mc_str_free(&why);
    return p;
}

static const struct found_folder *find_folder(const char *flag)
{
    struct mc_str b = { 0 };
    struct found_folder *p = NULL;
    bool clean = mc_last_status() == MC_OK;
    wanted_dir(flag, &b);
    if (!b.bad && b.n && mc_dir_make(b.s) < 0) {
        b.bad = mc_last_status() == MC_EMEMORY; /* not the folder's fault: store nothing, try again later */
        b.n = 0;
        b.s[0] = '\0';
        if (clean && !b.bad) {
            mc_clear_error();
        }
    }
    if (!b.bad) {
        p = new_folder(flag, b.s, b.n ? check_owner(b.s) : NULL);
    }
    if (p) {
        p->next = atomic_load(&folders);
        while (!atomic_compare_exchange_weak(&folders, &p->next, p)) {
        } /* a duplicate made by another thread has the same content */
    }
    mc_str_free(&b);
    return p;
}

static const struct found_folder *folder_now(void)
{
    const char *flag = mc_flag_text(FLAG_cache);
    const struct found_folder *p = atomic_load(&folders);
    while (p && p->flag != flag) { /* flag texts are interned: equal texts have equal addresses */
        p = p->next;
    }
    return p ? p : find_folder(flag);
}

const char *mc_cache_dir(void)
{
    const struct found_folder *p = mc_flag_int(FLAG_cache_size) == 0 ? NULL : folder_now();
    return p ? p->dir : "";
}

const char *mc_cache_refused(void)
{
    const struct found_folder *p = mc_flag_int(FLAG_cache_size) == 0 ? NULL : folder_now();
    return p ? p->why : "";
}

static bool folder_path(struct mc_str *path)
{
    const char *dir = mc_cache_dir();
    if (dir[0]) {
        mc_str_addf(path, "%s/%s", dir, kernels);
    }
    return dir[0] && !path->bad;
}

/* Opens the folder of entries and creates it if needed; -1: there is no cache. */
static int make_kernels(void)
{
    struct mc_str path = { 0 };
    bool clean = mc_last_status() == MC_OK;
    int fd = folder_path(&path) && mc_dir_make(path.s) == MC_OK ? open_kernels() : -1;
    if (clean) {
        mc_clear_error();
    }
    mc_str_free(&path);
    return fd;
}

bool mc_cache_folder(struct mc_str *path)
{
    int fd = make_kernels();
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 && folder_path(path);
}

static bool entry_name(struct mc_key key, const char *suffix, struct mc_str *name)
{
    mc_str_addf(name, "%016llx%016llx%s", (unsigned long long)key.at[0], (unsigned long long)key.at[1],
                suffix);
    return !name->bad;
}

bool mc_cache_path(struct mc_key key, const char *suffix, struct mc_str *path)
{
    if (!folder_path(path)) {
        return false;
    }
    mc_str_add(path, "/");
    return entry_name(key, suffix, path);
}

/* ---- entries ---- */

/* Follows no link and does not block on a pipe.  -1: no such file, or it is not trusted. */
static int open_entry(int folder, const char *name, struct stat *st)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || untrusted_reason(st) ||
                    st->st_size > mc_flag_int(FLAG_cache_size))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool read_entry(struct mc_key key, int folder, const char *name, int fd, const struct stat *st,
                       struct mc_str *content)
{
    if (mc_fd_read(fd, name, &content->s, &content->n) < 0) {
        return false; /* kept: the cause is memory or the disk, not necessarily the file */
    }
    content->cap = content->n + 1;
    if (!has_valid_checksum(key, content->s, &content->n)) {
        unlinkat(folder, name, 0);
        return false;
    }
    content->s[content->n] = '\0';
    if (time(NULL) - st->st_mtime > DAY) {
        utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW); /* marks the use, which eviction sorts by */
    }
    return true;
}

bool mc_cache_find(struct mc_key key, const char *suffix, struct mc_str *content, int *fd)
{
    struct mc_str name = { 0 }, c = { 0 };
    struct stat st;
    int folder = open_kernels();
    int file = folder >= 0 && entry_name(key, suffix, &name) ? open_entry(folder, name.s, &st) : -1;
    bool found = file >= 0 && read_entry(key, folder, name.s, file, &st, &c);
    if (folder >= 0) {
        close(folder);
    }
    if (found && fd) {
        *fd = file;
    } else if (file >= 0) {
        close(file);
    }
    if (found) {
        *content = c;
    } else {
        mc_str_free(&c);
    }
    mc_str_free(&name);
    return found;
}

/* Writes to a temporary name, then renames: an entry under its final name is complete. */
static bool write_entry(int folder, const char *name, const struct mc_piece *piece, size_t n)
{
    static atomic_uint count;
    struct mc_str tmp = { 0 };
    bool good = true;
    mc_str_addf(&tmp, "%s.%ld-%u.tmp", name, (long)getpid(), atomic_fetch_add(&count, 1));
    int fd = tmp.bad ? -1 : openat(folder, tmp.s, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        for (size_t i = 0; i < n && good; i++) {
            good = mc_fd_write(fd, name, piece[i]) == MC_OK;
        }
        good = close(fd) == 0 && good && renameat(folder, tmp.s, folder, name) == 0;
        if (!good) {
            unlinkat(folder, tmp.s, 0);
        }
    }
    mc_str_free(&tmp);
    return fd >= 0 && good;
}

void mc_cache_put(struct mc_key key, const char *suffix, const char *content, size_t n)
{
    struct mc_str name = { 0 };
    struct seal seal = checksum_of(key, content, n);
    struct mc_piece piece[] = { { content, n }, { &seal, sizeof seal } };
    bool clean = mc_last_status() == MC_OK;
    int folder = make_kernels();
    if (folder >= 0 && entry_name(key, suffix, &name) && write_entry(folder, name.s, piece, NELEM(piece))) {
        mc_cache_sweep(folder, n + sizeof seal);
    }
    if (folder >= 0) {
        close(folder);
    }
    if (clean) {
        mc_clear_error();
    }
    mc_str_free(&name);
}

void mc_cache_drop(struct mc_key key, const char *suffix)
{
    struct mc_str name = { 0 };
    int folder = open_kernels();
    if (folder >= 0 && entry_name(key, suffix, &name)) {
        unlinkat(folder, name.s, 0);
    }
    if (folder >= 0) {
        close(folder);
    }
    mc_str_free(&name);
}

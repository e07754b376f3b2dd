/* file.c: reads and writes whole files, makes folders, and reads the clock.
 *
 * Invariant: a file is written completely or not at all: the bytes go to a new file in the same folder, which
 * is then renamed. */
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static mc_status fail_at(const char *what, const char *path)
{
    return mc_fail(MC_EFILE, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* Reads to the end, whatever size is reported: pipes and files in /proc report 0. */
static mc_status read_all(int fd, const char *path, struct mc_str *out)
{
    for (;;) {
        if (out->cap - out->n < 4096 && !mc_vec_grow((void **)&out->s, &out->cap, out->n + 65536, 1)) {
            return MC_EMEMORY;
        }
        ssize_t got = read(fd, out->s + out->n, out->cap - out->n - 1);
        if (got < 0 && errno != EINTR) {
            return fail_at("read", path);
        }
        if (got == 0) {
            out->s[out->n] = '\0';
            return MC_OK;
        }
        out->n += got > 0 ? (size_t)got : 0;
    }
}

mc_status mc_fd_read(int fd, const char *path, char **data, size_t *n)
{
    struct mc_str text = { 0 };
    struct stat st;
    mc_status s = MC_OK;
    *data = NULL;
    *n = 0;
    if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size < SIZE_MAX / 2 &&
        !mc_vec_grow((void **)&text.s, &text.cap, (size_t)st.st_size + 4097, 1)) {
        s = MC_EMEMORY;
    }
    if (s == MC_OK) {
        s = read_all(fd, path, &text);
    }
    if (s < 0) {
        mc_str_free(&text);
        return s;
    }
    *data = text.s;
    *n = text.n;
    return MC_OK;
}

mc_status mc_file_read(const char *path, char **data, size_t *n)
{
    *data = NULL;
    *n = 0;
    if (!path) {
        return mc_fail(MC_EARG, "there is no path of a file to read (NULL)");
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail_at("open", path);
    }
    mc_status s = mc_fd_read(fd, path, data, n);
    close(fd);
    return s;
}

mc_status mc_file_map(const char *path, char **data, size_t *n)
{
    struct stat st;
    *data = NULL;
    *n = 0;
    if (!path) {
        return mc_fail(MC_EARG, "there is no path of a file to read (NULL)");
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return fail_at("open", path);
    }
    mc_status s = MC_OK;
    if (fstat(fd, &st) < 0) {
        s = fail_at("read", path);
    } else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > SIZE_MAX / 2) {
        s = mc_fail(MC_EFILE, "cannot read '%s': it is no regular file", path);
    } else if (st.st_size) {
        void *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        s = at == MAP_FAILED ? fail_at("read", path) : MC_OK;
        *data = s < 0 ? NULL : at;
        *n = s < 0 ? 0 : (size_t)st.st_size;
    }
    close(fd);
    return s;
}

void mc_file_unmap(char *data, size_t n)
{
    if (data) {
        munmap(data, n);
    }
}

mc_status mc_fd_write(int fd, const char *path, struct mc_piece p)
{
    const char *at = p.data;
    while (p.n > 0) {
        ssize_t put = write(fd, at, MC_MIN(p.n, (size_t)1 << 30));
        if (put < 0 && errno != EINTR) {
            return fail_at("write", path);
        }
        at += put > 0 ? put : 0;
        p.n -= put > 0 ? (size_t)put : 0;
    }
    return MC_OK;
}

/* Creates a new file beside path; *name: its name, owned by the caller. */
static int open_neighbour(const char *path, char **name)
{
    static atomic_uint count;
    struct mc_str b = { 0 };
    for (int tries = 0; tries < 100; tries++) {
        b.n = 0;
        mc_str_addf(&b, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&count, 1));
        if (b.bad) {
            break;
        }
        int fd = open(b.s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            *name = mc_str_take(&b);
            return fd;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    if (!b.bad) {
        fail_at("create", path);
    }
    mc_str_free(&b);
    return -1;
}

/* Devices and pipes are written to directly, not replaced. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

mc_status mc_file_write_pieces(const char *path, const struct mc_piece *piece, size_t n)
{
    char *name = NULL, real[PATH_MAX];
    mc_status s = MC_OK;
    if (!path) {
        return mc_fail(MC_EARG, "there is no path of a file to write (NULL)");
    }
    const bool special = is_special(path);
    path = realpath(path, real) ? real : path; /* write through a symbolic link, do not replace it */
    int fd = special ? open(path, O_WRONLY | O_CLOEXEC) : open_neighbour(path, &name);
    if (fd < 0) {
        return special ? fail_at("write", path) : mc_last_status();
    }
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        s = mc_fd_write(fd, path, piece[i]);
    }
    if (close(fd) < 0 && s == MC_OK) {
        s = fail_at("write", path);
    }
    if (name && s == MC_OK && rename(name, path) < 0) {
        s = fail_at("create", path);
    }
    if (name && s < 0) {
        unlink(name);
    }
    mc_free(name);
    return s;
}

mc_status mc_file_write(const char *path, const void *data, size_t n)
{
    return mc_file_write_pieces(path, &(struct mc_piece){ data, n }, 1);
}

/* A parent that cannot be made may exist; if it does not, the last mkdir reports the error. */
mc_status mc_dir_make(const char *path)
{
    struct stat st;
    mc_status s = MC_OK;
    char *part = mc_strdup(path);
    if (!part) {
        return MC_EMEMORY;
    }
    for (char *p = part; s == MC_OK && *p; p++) {
        if (*p == '/' && p > part) {
            *p = '\0';
            if (mkdir(part, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES) {
                s = fail_at("create folder", part);
            }
            *p = '/';
        }
    }
    mc_free(part);
    if (s == MC_OK && mkdir(path, 0700) < 0 && (errno != EEXIST || stat(path, &st) < 0)) {
        s = fail_at("create folder", path);
    } else if (s == MC_OK && stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        s = fail_at("create folder", path);
    }
    return s;
}

double mc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

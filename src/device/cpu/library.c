/* library.c: checks that a library file is complete and loads it by its descriptor.
 *
 * Invariant: the file that is loaded is the one that was opened and checked, even if its path was renamed. */
#include "device/cpu/code.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __ELF__
#include <elf.h>
#endif

/* ---- check: touching the pages of a truncated library would crash ---- */

#ifdef __ELF__
#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Ehdr file_header;
typedef Elf64_Phdr segment;
typedef Elf64_Shdr section;
typedef Elf64_Dyn entry;
enum { CLASS = ELFCLASS64 };
#else
typedef Elf32_Ehdr file_header;
typedef Elf32_Phdr segment;
typedef Elf32_Shdr section;
typedef Elf32_Dyn entry;
enum { CLASS = ELFCLASS32 };
#endif

/* The processor that this code was built for.  musl's loader does not check it. */
#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_NONE }; /* not checked */
#endif

struct image {
    const char *data;
    size_t n;
    file_header h;
};

static bool within(const struct image *f, uint64_t at, uint64_t bytes)
{
    return at <= f->n && bytes <= f->n - at;
}

static segment segment_of(const struct image *f, unsigned i)
{
    segment s;
    memcpy(&s, f->data + f->h.e_phoff + i * sizeof s, sizeof s);
    return s;
}

/* Is the address in a segment that is loaded from the file? */
static bool loaded_from_file(const struct image *f, uint64_t address)
{
    for (unsigned i = 0; i < f->h.e_phnum; i++) {
        const segment s = segment_of(f, i);
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
            return true;
        }
    }
    return false;
}

/* Has the library the tables that every loader reads without a check? */
static bool has_tables(const struct image *f, const segment *dynamic)
{
    const int64_t tags[] = { DT_STRTAB, DT_SYMTAB };
    size_t found = 0;
    for (uint64_t at = 0; at + sizeof(entry) <= dynamic->p_filesz; at += sizeof(entry)) {
        entry e;
        memcpy(&e, f->data + dynamic->p_offset + at, sizeof e);
        if (e.d_tag == DT_NULL) {
            break;
        }
        for (size_t i = 0; i < NELEM(tags); i++) {
            if (e.d_tag == tags[i]) {
                found += loaded_from_file(f, e.d_un.d_ptr) ? 1 : 0;
            }
        }
    }
    return found == NELEM(tags);
}

static const char *flaw_of_segments(const struct image *f)
{
    bool loads = false, dynamic = false;
    for (unsigned i = 0; i < f->h.e_phnum; i++) {
        const segment s = segment_of(f, i);
        if ((s.p_type == PT_LOAD || s.p_type == PT_DYNAMIC) &&
            (!within(f, s.p_offset, s.p_filesz) || s.p_memsz < s.p_filesz)) {
            return "the file is incomplete";
        }
        loads = loads || s.p_type == PT_LOAD;
        dynamic = dynamic || (s.p_type == PT_DYNAMIC && has_tables(f, &s));
    }
    return loads && dynamic ? NULL : "the file is incomplete";
}

const char *mc_library_flaw(const char *data, size_t n)
{
    struct image f = { .data = data, .n = n };
    if (n == 0) {
        return "the file is empty";
    }
    if (n < sizeof f.h || memcmp(data, ELFMAG, SELFMAG) != 0) {
        return "the file is no library";
    }
    memcpy(&f.h, data, sizeof f.h);
    if (f.h.e_type != ET_DYN) {
        return "the file is no library, but another kind of object";
    }
    if (f.h.e_ident[EI_CLASS] != CLASS || f.h.e_phentsize != sizeof(segment) ||
        (MACHINE != EM_NONE && f.h.e_machine != MACHINE)) {
        return "the library is for another kind of processor";
    }
    if (!within(&f, f.h.e_phoff, (uint64_t)f.h.e_phnum * sizeof(segment)) ||
        (f.h.e_shoff && !within(&f, f.h.e_shoff, (uint64_t)f.h.e_shnum * sizeof(section)))) {
        return "the file is incomplete";
    }
    return flaw_of_segments(&f);
}
#else
const char *mc_library_flaw(const char *data, size_t n)
{
    (void)data;
    return n == 0 ? "the file is empty" : NULL;
}
#endif

/* ---- loading ---- */

static bool same_file(const char *path, int fd)
{
    struct stat a, b;
    return stat(path, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A unique path of the open file.  A loader returns the old library for a path that it has seen, and
 * descriptors are reused.  So the path spells a running number in binary: "/" is 0 and "/." is 1. */
static void name_of_fd(int fd, char *name, size_t n)
{
    static atomic_uint count;
    char turn[2 * 32 + 1] = "";
    char *at = turn;
    for (unsigned c = atomic_fetch_add(&count, 1) + 1; c; c >>= 1) {
        *at++ = '/';
        if (c & 1) {
            *at++ = '.';
        }
    }
    *at = '\0';
    mc_snprintf(name, n, "/proc/self/fd%s/%d", turn, fd);
}

void *mc_library_open(int fd, const char *path)
{
    char name[128];
    name_of_fd(fd, name, sizeof name);
    const bool by_number = same_file(name, fd);
    /* without /proc the file could still be replaced between this check and dlopen, by the folder's owner */
    if (!by_number && !same_file(path, fd)) {
        mc_fail(MC_EFILE, "a compiled kernel cannot be loaded: '%s' was replaced by another file", path);
        return NULL;
    }
    void *library = dlopen(by_number ? name : path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        why = why ? why : "the loader does not say why";
        why += strncmp(why, name, strlen(name)) == 0 ? strlen(name) + strspn(why + strlen(name), ": ") : 0;
        mc_fail(MC_EFILE, "a compiled kernel cannot be loaded: %s", why);
    }
    return library;
}

/* An open file for this process alone; path: its name, "" if it has none; -1: error. */
static int private_file(char *path, size_t n)
{
    *path = '\0';
#ifdef MFD_CLOEXEC
    if (access("/proc/self/fd", X_OK) == 0) {
        const int fd = memfd_create("monochord-kernels", MFD_CLOEXEC);
        if (fd >= 0) {
            return fd;
        }
    }
#endif
    const char *folder = getenv("TMPDIR");
    mc_snprintf(path, n, "%s/monochord-XXXXXX", folder && *folder ? folder : "/tmp");
    const int fd = mkstemp(path);
    if (fd < 0) {
        mc_fail(MC_EFILE, "cannot make a file for kernels, '%s': %s", path, strerror(errno));
        *path = '\0';
    }
    return fd;
}

void *mc_library_load(const char *image, size_t size)
{
    char path[512];
    const char *flaw = mc_library_flaw(image, size);
    if (flaw) {
        mc_fail(MC_EFORMAT, "%s", flaw);
        return NULL;
    }
    const int fd = private_file(path, sizeof path);
    const struct mc_piece bytes = { image, size };
    void *library = fd >= 0 && mc_fd_write(fd, "a file of kernels", bytes) == MC_OK
                        ? mc_library_open(fd, path)
                        : NULL;
    if (*path) {
        unlink(path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return library;
}

const char *mc_library_file(const void *at)
{
    Dl_info where;
    return at && dladdr(at, &where) && where.dli_fname ? where.dli_fname : "";
}

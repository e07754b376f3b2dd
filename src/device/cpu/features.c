/* features.c: the features of the CPU.
 *
 * Invariant: an instruction set is used only if CPUID reports it, the operating system saves its registers
 * (XGETBV), and the flag cpu.isa allows it.  The vendor's name does not matter. */
#include "device/cpu/cpu.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define X86 1
#else
#define X86 0
#endif

enum reg { EAX, EBX, ECX, EDX };
enum saved { YMM = 0x06, ZMM = 0xe6 }; /* bits of XCR0 */

/* field: the bool of struct mc_cpu to set, or NONE; flag: the compiler's option, for gcc and clang. */
#define AT(field) offsetof(struct mc_cpu, field)
#define NONE SIZE_MAX
static const struct feature {
    unsigned leaf, sub;
    enum reg reg;
    unsigned bit;
    enum saved saved;
    size_t field;
    const char *flag;
} features[] = {
    { 7,          0, EBX, 5,  YMM, AT(avx2),       "-mavx2"       },
    { 1,          0, ECX, 12, YMM, AT(fma),        "-mfma"        },
    { 1,          0, ECX, 29, YMM, AT(f16c),       "-mf16c"       },
    { 1,          0, ECX, 23, YMM, NONE,           "-mpopcnt"     },
    { 7,          0, EBX, 3,  YMM, NONE,           "-mbmi"        },
    { 7,          0, EBX, 8,  YMM, NONE,           "-mbmi2"       },
    { 0x80000001, 0, ECX, 5,  YMM, NONE,           "-mlzcnt"      },
    { 7,          0, EBX, 16, ZMM, AT(avx512f),    "-mavx512f"    },
    { 7,          0, EBX, 31, ZMM, AT(avx512vl),   "-mavx512vl"   },
    { 7,          0, EBX, 30, ZMM, AT(avx512bw),   "-mavx512bw"   },
    { 7,          0, EBX, 17, ZMM, AT(avx512dq),   "-mavx512dq"   },
    { 7,          1, EAX, 5,  ZMM, AT(avx512bf16), "-mavx512bf16" },
};

/* By value of the flag cpu.isa: the registers that features may use. */
static const unsigned allowed[] = { YMM | ZMM, YMM | ZMM, YMM, 0, 0 };

static struct level {
    struct mc_cpu cpu;
    char flags[256];
} levels[NELEM(allowed)];

static void read_cpuid(unsigned leaf, unsigned sub, unsigned reg[4])
{
    memset(reg, 0, 4 * sizeof *reg);
#if X86
    __get_cpuid_count(leaf, sub, &reg[EAX], &reg[EBX], &reg[ECX], &reg[EDX]);
#else
    (void)leaf, (void)sub;
#endif
}

/* The register state that the operating system keeps for each thread. */
static unsigned saved_state(void)
{
    unsigned reg[4], low = 0;
    read_cpuid(1, 0, reg);
#if X86
    if (reg[ECX] >> 27 & 1) { /* OSXSAVE: XGETBV may be used */
        unsigned high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    }
#endif
    return low;
}

static void add_flag(struct level *l, const char *flag)
{
    size_t n = strlen(l->flags);
    mc_snprintf(l->flags + n, sizeof l->flags - n, "%s%s", n ? " " : "", flag);
}

static void read_features(struct level *l, unsigned may)
{
    unsigned have = saved_state() & may;
    for (size_t i = 0; i < NELEM(features); i++) {
        const struct feature *f = &features[i];
        unsigned reg[4];
        read_cpuid(f->leaf, f->sub, reg);
        if ((have & f->saved) != f->saved || !(reg[f->reg] >> f->bit & 1)) {
            continue;
        }
        if (f->field != NONE) {
            *(bool *)((char *)&l->cpu + f->field) = true;
        }
        add_flag(l, f->flag);
    }
    if (l->cpu.avx512f) {
        add_flag(l, "-mprefer-vector-width=512");
    }
}

static void read_brand(struct mc_cpu *cpu)
{
    unsigned reg[4];
    char text[3 * sizeof reg + 1] = { 0 };
    for (unsigned i = 0; i < 3; i++) {
        read_cpuid(0x80000002 + i, 0, reg);
        memcpy(text + i * sizeof reg, reg, sizeof reg);
    }
    mc_snprintf(cpu->brand, sizeof cpu->brand, "%s",
                text[0] ? text + strspn(text, " ") : "unknown processor");
}

/* The CPU limit of the container (cgroup quota), rounded up; INT32_MAX: none. */
static int quota(void)
{
    long long share = 0, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!f) {
        return INT32_MAX;
    }
    bool limited = fscanf(f, "%lld %lld", &share, &period) == 2 && share > 0 && period > 0;
    fclose(f);
    return limited ? (int)MC_MIN((share + period - 1) / period, INT32_MAX) : INT32_MAX;
}

static int processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
    cpu_set_t set[16]; /* 16384 processors: the kernel refuses a set smaller than its own */
    if (sched_getaffinity(0, sizeof set, set) == 0) {
        n = CPU_COUNT_S(sizeof set, set);
    }
#endif
    n = MC_MIN(n, quota());
    return (int)MC_MAX(1, MC_MIN(n, 1024));
}

#ifndef _SC_LEVEL1_DCACHE_SIZE /* not in POSIX; sysconf(-1) fails, so guesses are used */
#define _SC_LEVEL1_DCACHE_SIZE (-1)
#define _SC_LEVEL2_CACHE_SIZE (-1)
#define _SC_LEVEL3_CACHE_SIZE (-1)
#endif

static size_t cache_size(int name, size_t guess)
{
    long n = sysconf(name);
    return n > 0 ? (size_t)n : guess;
}

static void read_caches(struct mc_cpu *cpu)
{
    cpu->l1d = cache_size(_SC_LEVEL1_DCACHE_SIZE, (size_t)32 << 10);
    cpu->l2 = cache_size(_SC_LEVEL2_CACHE_SIZE, (size_t)1 << 20);
    cpu->shared = cache_size(_SC_LEVEL3_CACHE_SIZE, (size_t)16 << 20);
    cpu->l3 = MC_MIN(cpu->shared, (size_t)32 << 20); /* the system may report the total of a socket */
}

static void look(void)
{
    struct mc_cpu cpu = { .threads = processors() };
    read_brand(&cpu);
    read_caches(&cpu);
    for (size_t i = 0; i < NELEM(levels); i++) {
        levels[i].cpu = cpu;
        read_features(&levels[i], allowed[i]);
    }
}

static const struct level *level(int64_t i)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look);
    return &levels[i];
}

const struct mc_cpu *mc_cpu(void)
{
    return &level(mc_flag_int(FLAG_isa))->cpu;
}

const char *mc_cpu_flags(void)
{
    return level(mc_flag_int(FLAG_isa))->flags;
}

static bool is_bf16(const struct feature *f)
{
    return f->field == AT(avx512bf16);
}

bool mc_cpu_level(const char *name, struct mc_str *flags)
{
    static const struct { const char *name; unsigned may; } named[] = {
        { "avx512", YMM | ZMM }, { "avx2", YMM }, { "sse2", 0 },
    };
    if (strcmp(name, "native") == 0) {
        mc_str_add(flags, mc_cpu_flags());
        return true;
    }
    for (size_t i = 0; i < NELEM(named) && X86; i++) {
        if (strcmp(name, named[i].name) != 0) {
            continue;
        }
        for (size_t k = 0; k < NELEM(features); k++) {
            if ((named[i].may & features[k].saved) == features[k].saved && !is_bf16(&features[k])) {
                mc_str_addf(flags, "%s ", features[k].flag);
            }
        }
        mc_str_add(flags, named[i].may & ZMM & ~(unsigned)YMM ? "-mprefer-vector-width=512" : "");
        return true;
    }
    return false;
}

static bool has_word(const char *flags, const char *word, size_t n)
{
    for (const char *at = flags; *(at += strspn(at, " ")); at += strcspn(at, " ")) {
        if (strncmp(at, word, n) == 0 && (at[n] == ' ' || !at[n])) {
            return true;
        }
    }
    return false;
}

bool mc_cpu_has(const char *flags)
{
    const char *have = mc_cpu_flags();
    for (size_t n; *(flags += strspn(flags, " ")); flags += n) {
        n = strcspn(flags, " ");
        if (!has_word(have, flags, n)) {
            return false;
        }
    }
    return true;
}

bool mc_cpu_flags_vectors(const char *flags)
{
    static const char f[] = "-mavx512f", dq[] = "-mavx512dq";
    return has_word(flags, f, sizeof f - 1) && has_word(flags, dq, sizeof dq - 1);
}

uint64_t mc_cpu_hash(void)
{
    return mc_hash_mix(mc_hash_str(level(0)->cpu.brand), mc_hash_str(level(0)->flags));
}

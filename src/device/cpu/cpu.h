/* cpu.h: the CPU as a device: its features, the thread team, compilation of C text. */
#ifndef MC_CPU_H
#define MC_CPU_H

#include "device/cache.h"

/* ---- features.c: features as CPUID and XGETBV report them, limited to the vector instructions that the flag
 * cpu.isa allows ---- */
struct mc_cpu {
    bool avx2, fma, f16c, avx512f, avx512vl, avx512bw, avx512dq, avx512bf16;
    int  threads;               /* processors this process may run on */
    size_t l1d, l2, l3;         /* bytes, guessed where unknown; l3: at most what one core can reach */
    size_t shared;              /* bytes of the last-level cache as the system reports it */
    char brand[64];             /* for reports and for mc_cpu_hash */
};
const struct mc_cpu *mc_cpu(void);
const char *mc_cpu_flags(void);  /* compiler flags that match: "-mavx2 -mfma ... -mprefer-vector-width=512" */
/* Adds the compiler flags of a set of instructions: "avx512", "avx2", "sse2", whether this CPU has it or not;
 * "native": what this CPU has, limited by the flag cpu.isa.  False: there is no such set on this kind of
 * processor. */
bool mc_cpu_level(const char *name, struct mc_str *flags);
/* Does this CPU, limited by the flag cpu.isa, run code that was compiled with these flags? */
bool mc_cpu_has(const char *flags);
/* Have processors that such code is for the vectors of vector kernels? */
bool mc_cpu_flags_vectors(const char *flags);
/* hashes the brand and all features of the CPU, independent of the flag */
uint64_t mc_cpu_hash(void);

/* ---- isa.c: instruction sets that hand-written kernels are compiled for, widest first ---- */
enum mc_isa { ISA_AVX512, ISA_AVX2, ISA_PLAIN, ISA_COUNT };
bool mc_isa_runs(enum mc_isa i);
/* The widest set that runs and has at most n lanes; if there is none, the narrowest set that runs.  lanes: of
 * each set's vectors; 0: no kernel is compiled for it. */
enum mc_isa mc_isa_fitting(const int lanes[ISA_COUNT], int64_t n);
/* For tests: allows only the named set; false if the CPU lacks it.  NULL allows all again. */
bool mc_isa_only(const char *name);

/* ---- team.c: the thread team, one for each process, created on first use.  A caller that finds it busy,
 * or is itself a member at work, runs the work alone.  A forked child creates its own. ---- */
typedef void mc_team_work(void *arg, int64_t from, int64_t to, int thread);
int  mc_team_size(void);                           /* threads of the team, the caller included */
/* Splits [0, n) into at most `threads` (0: mc_team_size) nearly equal ranges of multiples of `grain`.  The
 * ranges depend on n, grain and threads only. */
void mc_team_run(mc_team_work *work, void *arg, int64_t n, int64_t grain, int threads);

/* ---- tasks.c ---- */
/* Calls one(arg, task, slot) once for each task in [0, n), on any thread.  No two threads have the same slot,
 * a number in [0, slots).  Other threads take part only if the estimated `seconds` of work justify it. */
typedef void mc_team_task(void *arg, int64_t task, int slot);
void mc_team_tasks(mc_team_task *one, void *arg, int64_t n, int slots, int threads, double seconds);
#define MC_TEAM_WORTH 3e-6 /* seconds of work below which waking the team costs more than it saves */

/* ---- evict.c ---- */
/* Writes memory back and removes it from all caches, where the processor can. */
void mc_cpu_evict(void *p, size_t n);

/* ---- compile.c: C text to a loaded library ---- */
struct mc_code;                                     /* reference counted; equal texts share one */
struct mc_code *mc_code_load(const char *source, const char *flags, mc_status *status); /* cached on disk */
/* A library from memory.  NULL: *status says why. */
struct mc_code *mc_code_open(const char *image, size_t size, mc_status *status);
/* The bytes of the library made of a text, for an instruction set (mc_cpu_level). */
mc_status mc_code_image(const char *source, const char *flags, const char *level, struct mc_str *image);
void *mc_code_symbol(const struct mc_code *c, const char *name);
/* NULL: the library lacks the function; sets an error and drops c from the cache */
void *mc_code_function(const struct mc_code *c, const char *name);
mc_status mc_code_lacks(const struct mc_code *c, const char *name); /* that error alone */
void  mc_code_unref(struct mc_code **c);
bool  mc_cc_present(void);                          /* a compiler works; tried once */
/* a compiler works, or once worked and may have left kernels in the cache */
bool  mc_cc_known(void);
/* a sentence: why no compiler works and what to do; "" if one works */
const char *mc_cc_missing(void);
const char *mc_cc_version(void);                    /* first line of cc --version, "" if none */
/* path of the loaded library that contains the address; "" if unknown */
const char *mc_library_file(const void *at);
struct mc_code_stats { int64_t compiled, from_memory, from_disk; double cc_seconds; };
struct mc_code_stats mc_code_stats(void);

#endif

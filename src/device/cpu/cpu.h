/* cpu.h: the processor as a device: what it can do, a team of threads, C text made into code. */
#ifndef MC_CPU_H
#define MC_CPU_H

#include "device/cache.h"

/* ---- features.c: by what CPUID and XGETBV report, never by the maker's name; of vector instructions what
 * the flag cpu.isa allows ---- */
struct mc_cpu {
    bool avx2, fma, f16c, avx512f, avx512vl, avx512bw, avx512dq, avx512bf16;
    int  threads;               /* processors this process may run on */
    size_t l1d, l2, l3;         /* bytes, sensible guesses where unknown; of l3 what one core reaches */
    size_t shared;              /* bytes of the last cache, all that the system counts */
    char brand[64];             /* for reports only */
};
const struct mc_cpu *mc_cpu(void);
const char *mc_cpu_flags(void);  /* compiler flags that match: "-mavx2 -mfma ... -mprefer-vector-width=512" */
/* of the brand and of all that the processor has, whatever the flag allows */
uint64_t mc_cpu_hash(void);

/* ---- isa.c: instruction sets that hand-written kernels are kept in, widest first ---- */
enum mc_isa { ISA_AVX512, ISA_AVX2, ISA_PLAIN, ISA_COUNT };
bool mc_isa_runs(enum mc_isa i);
/* The widest set whose vectors n elements fill, or the narrowest; lanes: of each set's vectors, 0 where it is
 * not compiled. */
enum mc_isa mc_isa_fitting(const int lanes[ISA_COUNT], int64_t n);
/* for tests: kernels of the named one alone, false if it does not run; NULL: of all again */
bool mc_isa_only(const char *name);

/* ---- team.c: threads that spin a little, then sleep.  One team a process, made on first use; a caller that
 * finds it busy, or is itself on the team, runs the work alone.  A forked child makes its own. ---- */
typedef void mc_team_work(void *arg, int64_t from, int64_t to, int thread);
int  mc_team_size(void);                           /* threads that would take part, the caller included */
/* Splits [0, n) in at most `threads` (0: the flag) equal ranges of multiples of `grain`; which numbers
 * go into one range depends on n, grain and threads alone. */
void mc_team_run(mc_team_work *work, void *arg, int64_t n, int64_t grain, int threads);

/* ---- tasks.c ---- */
/* Calls one(arg, task, slot) for each task in [0, n), each on any thread; a slot in [0, slots) is one
 * thread's for the call.  Threads other than the caller take part when `seconds` of work are worth it. */
typedef void mc_team_task(void *arg, int64_t task, int slot);
void mc_team_tasks(mc_team_task *one, void *arg, int64_t n, int slots, int threads, double seconds);
#define MC_TEAM_WORTH 3e-6 /* seconds of work below which waking the team costs more than it saves */

/* ---- compile.c: C text to a loaded library ---- */
struct mc_code;                                     /* reference counted: one a text, shared by all who ask */
struct mc_code *mc_code_load(const char *source, const char *flags, mc_status *status); /* cached on disk */
void *mc_code_symbol(const struct mc_code *c, const char *name);
/* NULL is the compiler's lie, and an error; the cache forgets c */
void *mc_code_function(const struct mc_code *c, const char *name);
void  mc_code_unref(struct mc_code **c);
bool  mc_cc_present(void);                          /* a compiler that works, tried once */
/* there is one, or there was: its kernels may lie in the cache */
bool  mc_cc_known(void);
/* why there is none, and what to do: a sentence; "" if there is one */
const char *mc_cc_missing(void);
const char *mc_cc_version(void);                    /* first line of cc --version, "" if none */
/* of the loaded library that holds the address; "" where that is not known */
const char *mc_library_file(const void *at);
struct mc_code_stats { int64_t compiled, from_memory, from_disk; double cc_seconds; };
struct mc_code_stats mc_code_stats(void);

#endif

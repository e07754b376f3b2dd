/* threads.h: loops that threads share, in exported files that are compiled with OpenMP.  It is part of those
 * files.
 *
 * An exported file defines PARALLEL_WORK: the work, in multiply-adds, from which a loop is shared.  Without
 * it, as in the library, or without OpenMP 4.5, there is one thread.
 *
 * Invariant: iterations of such a loop write different elements and read none that another one writes, so the
 * bits do not depend on the number of threads. */
#ifdef __GNUC__
#define ALONE __attribute__((noinline)) /* the body of a shared loop: compiled as well as without threads */
#else
#define ALONE
#endif
#if defined(_OPENMP) && _OPENMP >= 201511 && defined(PARALLEL_WORK)
#define WORTH(work)                ((work) >= PARALLEL_WORK)
#define PRAGMA(text)               _Pragma(#text)
#define PARALLEL(clauses)          PRAGMA(omp parallel for clauses)
#ifdef __clang__ /* it warns of loops with simd that it does not make vector code of */
#define PARALLEL_ELEMENTS(clauses) PARALLEL(clauses)
#else
#define PARALLEL_ELEMENTS(clauses) PRAGMA(omp parallel for simd clauses)
#endif
#define SHARED_LOOP(panel)         NULL /* in a loop that threads share already: products use one */
enum { OWN_PANEL = STACK_PANEL };
#else
#define WORTH(work)                ((work) < 0)
#define PARALLEL(clauses)
#define PARALLEL_ELEMENTS(clauses) INDEPENDENT
#define SHARED_LOOP(panel)         (panel)
enum { OWN_PANEL = 1 };
#endif

/* small.h: in libmonochord-run, kernels for every processor have a small form: functions with arguments
 * instead of copies for constants, and loops that are not unrolled.  A kernel file includes it before its
 * body.
 *
 * Invariant: sums have the same order in both forms.  Their bits are the same where no instruction fuses a
 * product with a sum, so there is no small form for other processors. */
#if defined MC_RUNTIME && (defined __x86_64__ || defined __i386__) && !defined __FMA__
#undef UNROLL
#define UNROLL(n)
#define FUSED static inline TARGET
#endif
